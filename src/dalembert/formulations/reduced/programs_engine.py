"""Linearly implicit Euler in joint coordinates with the contact programs of the RedMax paper (1.13, 2.11): its own way, to compare with.

Linearly implicit Euler is one Newton iteration of backward Euler from the rates of the knot; its matrix, loops included, is also
what impulses of contacts work against (by its symmetric part, which keeps the order). Rates that contacts ask for come from
``contact.projections``; gaps close at most within the step, N v >= -gap/h, and what closes fast bounces by Newton's law.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from dalembert.contact.events import ROUNDS, bounce, end_gap, prepare, put_all_rows, strays, wake
from dalembert.contact.forces import keep_forces, keep_places, note_state, write_log
from dalembert.contact.narrow import find_features
from dalembert.contact.nodes import Encounter
from dalembert.contact.projections import ContactProblem, ContactSolution, single_program, staggered_projections
from dalembert.contact.watch import watch
from dalembert.errors import ModelError, StepFailure
from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.engine import Inputs, KernelCall, Source
from dalembert.formulations.maximal.checks import refuse_surfaces
from dalembert.formulations.maximal.contact_engine import ContactRecording
from dalembert.formulations.reduced.bearing_loads import bear_in_tree
from dalembert.formulations.reduced.contact_engine import ContactEngine
from dalembert.formulations.reduced.contact_step import carry_on, recall, recall_pose
from dalembert.formulations.reduced.encounter import motion_to_end, nodes
from dalembert.formulations.reduced.equations import Stage, balance, residual
from dalembert.formulations.reduced.options import Reduced
from dalembert.formulations.reduced.step import (
    accept,
    begin_step,
    direction,
    factorise,
    finish,
    follow_targets,
    guess,
    record,
)
from dalembert.kernels import kernel
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.pose import evaluate_pose
from dalembert.solvers.outcomes import LOG_FULL, LOST, NOT_CONVERGED, SINGULAR, SOLVED, TOO_FAST
from dalembert.solvers.redundant import COMPLIANCE

load_nodes = nodes.residual


@kernel
def first_direction(stage, state, targets):
    """Newton's direction at the rates of the knot. Returns False when the matrix is singular."""
    begin_step(stage, state, 1)
    guess(stage, state, False)
    follow_targets(stage, targets)
    for i in range(stage.ties.rows.shape[0]):
        stage.ties.rows[i].mu = 0.0
    _, fine = residual(stage)
    if not fine:
        return False
    _, regular = factorise(stage, 0.0)
    direction(stage, False)
    return regular


@kernel
def responses(stage, X):
    """Columns of X (freedom, freedom): what coordinates change by with unit forces along them. The residuals are used up."""
    tree, own = stage.tree, stage.own.nodes
    for i in range(stage.ties.rows.shape[0]):
        stage.ties.rows[i].r = 0.0
    for i in range(tree.shape[0]):
        for j in range(tree[i].count):
            for k in range(tree.shape[0]):
                for c in range(3):
                    own[k].g[c] = 0.0
            own[i].g[j] = 0.0 if tree[i].driven else 1.0
            direction(stage, False)
            for k in range(tree.shape[0]):
                for c in range(tree[k].count):
                    X[tree[k].dof + c, tree[i].dof + j] = own[k].dq[c]


@kernel
def carry_loads(encounter):
    """Forces that joints carry with the impulses in the scene, at the rates of the nodes; those of ties are what balances them."""
    stage = encounter.step
    rows = stage.ties.rows
    for i in range(rows.shape[0]):
        rows[i].mu = 0.0
    for again in range(2 if rows.shape[0] > 0 else 1):
        _, fine = motion_to_end(stage)
        if not fine:
            return False
        load_nodes(encounter)
        balance(stage)
        if again == 0 and rows.shape[0] > 0:
            factorise(stage, 0.0)
            direction(stage, False)
            for i in range(rows.shape[0]):
                rows[i].mu -= rows[i].dmu
    return True


class ProgramsEngine(ContactEngine):
    """A mechanism with contacts stepped by linearly implicit Euler and quadratic programs."""

    whole_steps = True  # type: ignore[assignment]

    @property
    def reach_beside(self) -> tuple[float, float]:
        from dalembert.formulations.reduced.contact_whole import WIDE

        return WIDE, WIDE

    def __init__(self, mechanism: Mechanism, options: Reduced) -> None:
        super().__init__(mechanism, options)
        refuse_surfaces(mechanism, "Reduced with method='linearly_implicit'")
        if len(self.maps.own):
            raise ModelError(
                f"Reduced: {mechanism.name!r} has coordinate maps beside contacts, limits or friction, which do not go with "
                "method='linearly_implicit'; choose an implicit method such as 'bdf2'"
            )

    def kernel_call(self, numbers: np.ndarray, recording: Any, source: Source, count: int, dt: float) -> KernelCall | None:
        """There is none: the programs are solved in Python."""
        return None

    def _run_steps(
        self, state: Any, inputs: Inputs, recording: ContactRecording, used: int, done: int, first: int, count: int, dt: float,
    ) -> tuple[int, int, float, int]:
        clear_inputs(self.model, self.graph.work)
        for index in range(count):
            knot, begins = first + index, state.clock[0] == 0.0
            if used + len(self.scene.contacts) > len(self.log):
                return LOG_FULL, index, 0.0, used
            apply_inputs(self.model, self.graph.work, inputs, done + index)
            outcome, programs, change = self._step(state, inputs.target[done + index + 1], dt)
            if outcome != SOLVED:
                return outcome, index, change, used
            used = write_log(self.scene, self.log, used, knot + 1, 1.0 / dt)
            if begins:  # nothing else says what acts at a start
                note_state(state, recording.tape, knot)
                recording.tape.steps[knot, 0] = 0.0
            note_state(state, recording.tape, knot + 1)
            recording.plain.substeps[knot + 1] = 1
            recording.plain.iterations[knot + 1] = programs
            record(self.model, self.tree.nodes, self.at_knot, state, recording.plain, knot + 1)
        return SOLVED, count, 0.0, used

    def _step(self, state: Any, targets: np.ndarray, dt: float) -> tuple[int, int, float]:
        """One step. Returns (outcome, how many programs, what was left of their change in sqrt(J))."""
        model, work, scene, parts, touching = self.model, self.graph.work, self.scene, self.parts, self.contact_options
        recall(parts, state)
        recall_pose(parts, state, False)
        if strays(model, work, state.bodies, touching.sizes, dt, False):
            return LOST, 0, 0.0
        evaluate_pose(model, work)
        find_features(work.bodies, scene.contacts, scene.shapes, 0.0)
        carry_on(parts, state, dt)
        speed = max(dt * float(np.linalg.norm(model.gravity)), 1e-3)
        if watch(work.bodies, scene, True) < 0:
            return TOO_FAST, 0, 0.0
        prepare(model, work, scene, dt, dt, speed)
        put_all_rows(scene, work.bodies)
        scene.limits["cap"] = np.where(scene.limits["bears"] != 0, 0.0, scene.limits["cap"])
        jacobian = self._jacobian()
        rows = len(self.ties.rows)
        ties = self.ties._replace(S=np.zeros((rows, rows)), order=np.zeros(rows, np.int64), vector=np.zeros(rows))  # without room for contacts
        ties.compliance[0] = COMPLIANCE
        stage = Stage(model, self.tree.nodes, work, self.own, ties, dt)
        if not first_direction(stage, state, targets):
            return SINGULAR, 0, 0.0
        free = self._rates("v") - self._rates("dq") / dt
        X = np.zeros((self.tree.freedom, self.tree.freedom))
        responses(stage, X)
        response = 0.5 * (X + X.T) / (dt * dt)
        momenta = work.bodies[["p", "l"]].copy()
        programs = 0
        for _ in range(ROUNDS):
            found = self._contacts(stage, free, response, jacobian, dt)
            programs += found.iterations
            work.bodies["p"], work.bodies["l"] = momenta["p"], momenta["l"]
            if wake(work, scene) + bounce(model, work, scene, dt, touching.resting) == 0:
                recall_pose(parts, state, False)  # bodies went along with the rates
                added = watch(work.bodies, scene, False)
                if added < 0:
                    return TOO_FAST, programs, 0.0
                if added == 0:
                    break
        if not found.converged:
            return NOT_CONVERGED, programs, found.change
        recall_pose(parts, state, False)
        if strays(model, work, state.bodies, touching.sizes, 0.0, True):
            return LOST, programs, 0.0
        keep_places(state, state)
        keep_forces(model, work, scene, state, 1.0 / dt, touching.resting)
        accept(stage, state, state)
        finish(stage, state, targets, -1.0, dt, state)
        return SOLVED, programs, 0.0

    def _rates(self, name: str) -> np.ndarray:
        """(freedom,) numbers of the nodes along their coordinates."""
        return np.concatenate([at[name][: int(node["count"])] for node, at in zip(self.tree.nodes, self.own.nodes)])

    def _jacobian(self) -> np.ndarray:
        """(n + 1, 6, freedom) velocities (world) and angular velocities (body frame) of the bodies by the rates, at the knot (RedMax Algorithm 1)."""
        own = np.zeros((len(self.tree.nodes), 6, self.tree.freedom))
        found = np.zeros((self.sizes[0] + 1, 6, self.tree.freedom))
        for i, (node, at) in enumerate(zip(self.tree.nodes, self.at_knot.nodes)):
            if node["parent"] >= 0:
                R, above = at["R"].reshape(3, 3), own[int(node["parent"])]
                own[i, :3] = R.T @ above[:3]
                own[i, 3:] = R.T @ (above[3:] + np.cross(above[:3].T, at["p"]).T)
            for j in range(int(node["count"])):
                own[i, :, int(node["dof"]) + j] += at["S"][j]
            if node["body"] >= 0:
                found[int(node["body"]), :3], found[int(node["body"]), 3:] = at["W"].reshape(3, 3) @ own[i, 3:], own[i, :3]
        return found

    def _contacts(self, stage: Stage, free: np.ndarray, response: np.ndarray, jacobian: np.ndarray, dt: float) -> ContactSolution:
        """Solve the programs for what is awake; impulses go to the scene, rates to the nodes."""
        contacts, limits = self.scene.contacts, self.scene.limits
        awake = np.flatnonzero(contacts["awake"])
        across = [np.einsum("kc,cf->kf", c["Ga"], jacobian[c["a"]]) + np.einsum("kc,cf->kf", c["Gb"], jacobian[c["b"]]) for c in contacts[awake]]
        along = np.array([l["Ga"] @ jacobian[l["a"]] + l["Gb"] @ jacobian[l["b"]] for l in limits]).reshape(-1, len(free))
        ends = [(k, side) for k in range(len(limits)) for side in range(2) if limits["awake"][k, side]]
        dry = np.flatnonzero((limits["friction"] > 0.0) | (limits["bears"] != 0))
        normal = [row[0] for row in across] + [along[k] if side == 0 else -along[k] for k, side in ends]
        bound = [*(contacts["bound"] - contacts["gap0"] / dt)[awake], *(limits["bound"][k, side] - end_gap(limits[k], side, limits["c0"][k]) / dt for k, side in ends)]
        encounter = Encounter(stage, self.scene, dt)

        def put(solution: ContactSolution) -> None:
            contacts["gamma"][awake], contacts["beta"][awake] = solution.normal[: len(awake)], solution.tangential[: len(awake)]
            limits["gamma"] = 0.0
            for (k, side), size in zip(ends, solution.normal[len(awake) :]):
                limits["gamma"][k, side] = size
            limits["beta"] = 0.0
            limits["beta"][dry] = solution.dry
            for node, at in zip(self.tree.nodes, self.own.nodes):
                own = slice(int(node["dof"]), int(node["dof"]) + int(node["count"]))
                at["v"][: int(node["count"])] = solution.velocity[own]
            if not carry_loads(encounter):
                raise StepFailure(f"{self.mechanism.name!r}: a contact leads to velocities that are not finite. Use a smaller dt.")

        def bearing(solution: ContactSolution, asked: int) -> tuple[np.ndarray, int]:
            put(solution)
            limits["eta"] = along @ solution.velocity
            wrong = bear_in_tree(stage, limits, asked, self.options.tolerance)
            return np.where(limits["bears"][dry] != 0, limits["cap"][dry], 0.0), int(wrong)

        problem = ContactProblem(
            free=free, inverse=lambda columns: response @ columns, normal=np.array(normal).reshape(-1, len(free)), bound=np.array(bound),
            tangent=np.array([row[1:] for row in across] + [np.zeros((2, len(free)))] * len(ends)).reshape(-1, 2, len(free)),
            friction=np.concatenate([contacts["friction"][awake], np.zeros(len(ends))]), dry=along[dry],
            dry_bound=dt * limits["friction"][dry], bearing=bearing if np.any(limits["bears"]) else None,
        )
        if self.options.contact == "single":
            found = single_program(problem, self.options.cone_edges)
        else:
            found = staggered_projections(problem, max_iterations=self.options.max_iterations * 25)
        put(found)
        return found
