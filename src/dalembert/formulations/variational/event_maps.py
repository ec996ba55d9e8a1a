"""What happens at an impact, or where slides end, as functions of the state before it and of the model, for derivatives.

The half kick that closes the interval, the impact itself at given impulses, its gaps, and the momenta with which the run begins anew:
each is evaluated by the kernels that the run is made of, at poses, velocities and models beside those of the run.
"""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dalembert.contact.geometry import at_knot
from dalembert.contact.narrow import find_features
from dalembert.contact.nodes import limit_at_knot
from dalembert.formulations.engine import Inputs
from dalembert.formulations.maximal.forward import turned
from dalembert.formulations.maximal.touching_forward import FEATURES, TouchingModel
from dalembert.formulations.variational.blows import OPEN, SLIDE, STICK, Blow, Closed, laws
from dalembert.model.placement import Placement
from dalembert.model.pose import evaluate_pose, joint_rates


class Event(NamedTuple):
    """An impact on a tape: after so many entries, between a knot and the next at a part ``start`` of the interval."""

    entry: int
    knot: int
    start: float
    timed: bool  # whether the step before it is as long as its gap says
    places: np.ndarray  # (n, 8) for which the list of what is near was made
    numbers: np.ndarray  # the state before it
    inputs: Inputs  # that its velocities are read with
    rates: np.ndarray  # (joints, 6) of driven directions
    struck: Any  # what was closed: contacts and ends of limits
    ended: int  # the one of them whose flight or slide ended
    way: np.ndarray | None  # (3,) where a slide ended, which of its velocities (normal, tangents) is zero there
    blows: list[Blow]


class Maps:
    """The functions of one event. ``one``: a model with what may touch in it, None for that of the run."""

    def __init__(self, engine: Any, event: Event) -> None:
        self.engine, self.event = engine, event
        self.state = engine.view(event.numbers.copy())
        self.before = float(self.state.clock[0])
        self.wrench = self.state.bodies["wrench"].copy()
        self.along = self.state.joints["friction"] + self.state.joints["limit"]

    # ---- velocities just before

    def velocity(
        self, state: np.ndarray, spin: np.ndarray, before: float, wrench: np.ndarray, along: np.ndarray, inputs: Inputs, one: TouchingModel | None,
    ) -> np.ndarray:
        """(n, 6) for a change ``state`` (n, 18), ``spin`` (joints, 6) and ``before`` (s) of the state, with forces of contacts that last."""
        recording, model = self.recording(state, spin, before), self._model(one)
        if self.before == 0.0:
            fixed = model.bodies[:-1]
            momentum = recording.momentum[0]
            turning = np.linalg.solve(fixed["inertia"].reshape(-1, 3, 3), momentum[:, 3:, None])[..., 0]
            return np.concatenate([momentum[:, :3] / fixed["mass"][:, None], turning], axis=1)
        pushed = inputs._replace(wrench=inputs.wrench + wrench, joint=inputs.joint + along)
        seen = self.engine.seen(recording, pushed, self.event.rates, self.state.joints["coordinate"], model)
        return np.concatenate([seen["velocity"], seen["angular_velocity"]], axis=1)

    def recording(self, state: np.ndarray, spin: np.ndarray, before: float) -> Any:
        """A recording of the state before the impact alone, changed."""
        from dalembert.formulations.maximal.recording import new_recording

        one = new_recording(1, *self.engine.sizes)
        bodies = self.state.bodies
        one.position[0] = bodies["x"] + state[:, :3]
        one.orientation[0] = turned(bodies["q"], state[:, 3:6])
        one.momentum[0] = np.concatenate([bodies["p"], bodies["l"]], axis=1) + state[:, 6:12]
        one.step_before[0], one.spin[0] = self.before + before, self.state.joints["spin"] + spin
        return one

    def _model(self, one: TouchingModel | None) -> Any:
        return self.engine.model if one is None else one.model

    # ---- the impact

    def closed(self, pose: np.ndarray, one: TouchingModel | None = None) -> tuple[Closed, np.ndarray]:
        """What is closed, and its gaps, at a change (n, 6) of the pose."""
        engine, event, model = self.engine, self.event, self._model(one)
        engine.follow_places(event.places)
        work, scene = engine.graph.work, engine.scene
        kept = scene.contacts.copy(), scene.limits.copy()
        shapes = scene.shapes
        if one is not None:
            standing = engine.standing
            for name in FEATURES:
                scene.contacts[name][: len(standing)] = one.grounds[name][standing]
            for pair in shapes.pairs:
                law = one.pairs._law(int(pair["i"]), int(pair["j"]))
                slots = scene.contacts[int(pair["first"]) : int(pair["first"]) + int(pair["slots"])]
                slots["restitution"], slots["friction"] = law.restitution, law.friction  # type: ignore[union-attr]
            scene.limits["end"], scene.limits["restitution"] = one.limits["end"], one.limits["restitution"]
            shapes = one.pairs.shapes._replace(pairs=shapes.pairs)
        work.bodies["x"][:-1] = self.state.bodies["x"] + pose[:, :3]
        work.bodies["q"][:-1] = turned(self.state.bodies["q"], pose[:, 3:])
        work.joints["coordinate"], work.joints["target"] = self.state.joints["coordinate"], self.state.joints["target"]
        evaluate_pose(model, work)
        find_features(work.bodies, scene.contacts, shapes, np.inf)
        contacts, limits = scene.contacts, scene.limits
        gaps = []
        for i in event.struck.contacts:
            at_knot(contacts[i], scene._replace(shapes=shapes), work.bodies)
            gaps.append(float(contacts["gap0"][i]))
        for i, side in event.struck.ends:
            limit_at_knot(limits[i], model.joints[int(limits["joint"][i])], work.joints[int(limits["joint"][i])], work.bodies, scene.scratch)
            gaps.append((1.0 if side == 0 else -1.0) * float(limits["c0"][i] - limits["end"][i, side]))
        found = engine.closed(event.struck, model)
        scene.contacts[:], scene.limits[:] = kept
        return found, np.array(gaps)

    def begin(self, pose: np.ndarray, velocity: np.ndarray, one: TouchingModel | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Momenta (n, 6), and those of reflected inertias (joints, 6), with which a run begins."""
        engine, model = self.engine, self._model(one)
        rates = np.zeros((engine.sizes[1], 6))
        if np.any(model.joints["armature"]):
            placement = Placement(engine.mechanism, model, engine.reading.work)
            placement.put(self.state.bodies["x"] + pose[:, :3], turned(self.state.bodies["q"], pose[:, 3:]), self.state.joints["coordinate"])
            joint_rates(model, placement.work, np.concatenate([velocity, np.zeros((1, 6))]), rates)
        fixed = model.bodies[:-1]
        turning = np.einsum("nij,nj->ni", fixed["inertia"].reshape(-1, 3, 3), velocity[:, 3:])
        return np.concatenate([fixed["mass"][:, None] * velocity[:, :3], turning], axis=1), model.joints["armature"] * rates


def packed(closed: Closed) -> np.ndarray:
    """All numbers of what is closed in one array."""
    return np.concatenate([array.ravel() for array in closed])


def blow_along(blow: Blow, closed: Closed, change: np.ndarray) -> np.ndarray:
    """Derivative of the rows of an impact at given impulses, that of its work where it is limited, and the velocities after it, along a change (as ``packed``) of what is closed."""
    ends = np.cumsum([array.size for array in closed])[:-1]
    dC, de, dmu, dM, dJ = (part.reshape(array.shape) for part, array in zip(np.split(change, ends), closed))
    v, P, who = blow.before, blow.impulse, blow.who
    N, B = closed.solved()
    turn = B @ dJ @ N
    dN = -N @ dM @ N - turn - turn.T
    C, dC = closed.rows[who].reshape(-1, len(v)), dC[who].reshape(-1, len(v))
    dA = dC @ N @ C.T + C @ dN @ C.T + C @ N @ dC.T
    before, dbefore = C @ v, dC @ v
    u, du = (before + C @ N @ (C.T @ P.ravel())).reshape(-1, 3), (dbefore + dA @ P.ravel()).reshape(-1, 3)
    rows = np.zeros_like(P)
    for i, kind in enumerate(blow.kind):
        if kind == OPEN:
            continue
        rebound = de[who[i]] * before[3 * i] + closed.restitution[who[i]] * dbefore[3 * i]
        rows[i, 0] = du[i, 0] + blow.part * blow.bounced[i] * rebound
        mu = closed.friction[who[i]]
        if kind == STICK and mu > 0.0:
            rows[i, 1:] = du[i, 1:]
        elif kind == SLIDE:
            speed = max(float(np.linalg.norm(u[i, 1:])), 1e-300)
            t = u[i, 1:] / speed
            rows[i, 1:] = P[i, 0] * (dmu[who[i]] * t + mu * (du[i, 1:] - t * (t @ du[i, 1:])) / speed)
    work = [P.ravel() @ (dbefore + 0.5 * dA @ P.ravel())] if blow.limited else []
    return np.concatenate([rows.ravel(), work, dN @ (C.T @ P.ravel()) + N @ (dC.T @ P.ravel())])


def blow_by_velocity(blow: Blow, closed: Closed) -> np.ndarray:
    """Derivative of the rows of ``blow_along`` by the velocities (6n,) before the impact."""
    C = closed.rows[blow.who].reshape(-1, len(blow.before))
    A, P, mu = C @ closed.solved()[0] @ C.T, blow.impulse, closed.friction[blow.who]
    u = (C @ blow.before + A @ P.ravel()).reshape(-1, 3)
    slopes = np.zeros_like(C)
    for i, kind in enumerate(blow.kind):
        if kind == OPEN:
            continue
        slopes[3 * i] = (1.0 + blow.part * closed.restitution[blow.who[i]] * blow.bounced[i]) * C[3 * i]
        tangents = slice(3 * i + 1, 3 * i + 3)
        if mu[i] > 0.0 and kind == STICK:
            slopes[tangents] = C[tangents]
        elif mu[i] > 0.0:
            speed = max(float(np.linalg.norm(u[i, 1:])), 1e-300)
            t = u[i, 1:] / speed
            slopes[tangents] = mu[i] * P[i, 0] / speed * (np.eye(2) - np.outer(t, t)) @ C[tangents]
    return np.vstack([slopes, P.ravel() @ C]) if blow.limited else slopes


def blow_slopes(blow: Blow, closed: Closed) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of the same by the impulses, and by the part where it is limited."""
    v = blow.before
    C = closed.rows[blow.who].reshape(-1, len(v))
    moved = closed.solved()[0] @ C.T
    A, u, P = C @ moved, C @ v, blow.impulse.ravel()
    rebound = closed.restitution[blow.who] * u[::3] * blow.bounced
    _, slopes = laws(A, (u + A @ P).reshape(-1, 3), blow.impulse, blow.kind, -blow.part * rebound, closed.friction[blow.who])
    if not blow.limited:
        return slopes, moved
    whole = np.zeros((len(P) + 1, len(P) + 1))
    whole[:-1, :-1], whole[-1, :-1] = slopes, u + A @ P
    whole[:-1:3, -1] = np.where(blow.kind != OPEN, rebound, 0.0)
    return whole, np.column_stack([moved, np.zeros(len(v))])
