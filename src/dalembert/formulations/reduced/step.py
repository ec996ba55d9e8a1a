"""Kernels of the BDF and DIRK methods in joint coordinates (RedMax section 3.4): one step, and runs of steps."""
from __future__ import annotations

from typing import NamedTuple

from dalembert.forces.loads import apply_inputs, clear_inputs
from dalembert.formulations.implicit.step import bdf_gamma, history_of
from dalembert.formulations.implicit.tableaus import Tableau
from dalembert.formulations.reduced.equations import (
    Stage,
    load_derivatives,
    place_node,
    residual,
    rounding_floor,
    size_of,
)
from dalembert.formulations.reduced.knots import write_joints
from dalembert.formulations.reduced.map_equations import (
    accept_maps,
    begin_maps,
    begin_stage_maps,
    combine_maps,
    guess_maps,
    keep_stage_maps,
)
from dalembert.formulations.reduced.switching import nearest_turns, switch_charts
from dalembert.formulations.reduced.tie_equations import factor_ties, tie_direction, tie_stiffness
from dalembert.formulations.reduced.ties import CLOSED, KEPT, MOVED
from dalembert.formulations.reduced.tree_solve import factor, solve
from dalembert.kernels import inline, kernel
from dalembert.model.frames import ball_vector
from dalembert.model.pose import put6
from dalembert.model.rotations import coordinates_of, in_joint, in_node, rotation
from dalembert.model.rows import aim
from dalembert.model.tree import AXIS, POINT, SPLINE, TARGET
from dalembert.solvers.newton import Linear, build_newton
from dalembert.solvers.outcomes import BEYOND, NOT_CONVERGED, SOLVED, TOO_FAST
from dalembert.solvers.redundant import COMPLIANCES, NUDGES, nudge
from dalembert.spatial import quaternion, so3
from dalembert.spatial.tuples import (
    load3,
    load4,
    load9,
    mat_vec,
    norm3,
    scale3,
    store3,
    store4,
    sub3,
)
from dalembert.spatial.twists import load6

#: how far (rad) a turning joint of a mechanism with loops may go in a step
FAR = 1.0
#: how far (rad) a free rotation may go in a step
HALF_ROUND = 2.5


class StepOptions(NamedTuple):
    """What a step takes besides model, state and inputs. ``multistep``: order of the BDF formula, 0 for a DIRK method throughout."""

    compliance: float
    tolerance: float
    max_iterations: int
    multistep: int
    tableau: Tableau


@kernel
def factorise(stage, size):
    """Factor the Newton matrix at the iterate, and measure the residual by it."""
    load_derivatives(stage)
    tied = stage.ties.rows.shape[0] > 0
    if tied:
        tie_stiffness(stage)
    regular = factor(stage) and (not tied or factor_ties(stage))
    return size_of(stage), regular


@kernel
def direction(stage, second):
    """Newton's direction from the residuals, in ``dq`` of the nodes."""
    if stage.ties.rows.shape[0] > 0:
        tie_direction(stage, second)
        return
    for i in range(stage.tree.shape[0]):
        stage.own.nodes[i].e[:] = 0.0
    solve(stage.tree, stage.own)


@kernel
def move(stage, step):
    """Iterate minus ``step`` times the direction."""
    nodes, rows = stage.own.nodes, stage.ties.rows
    for i in range(rows.shape[0]):
        if rows[i].kind == MOVED:
            stage.own.maps.own[rows[i].index].v -= step * rows[i].dmu / stage.c
        else:
            rows[i].mu -= step * rows[i].dmu
    for i in range(stage.tree.shape[0]):
        for j in range(stage.tree[i].count):
            nodes[i].v[j] -= step * nodes[i].dq[j] / stage.c


@kernel
def restart(stage):
    """There is no safer guess than the first one."""
    return False


#: stiff servos gain little for many iterations before they converge: all that are allowed are made
ENDLESS = 2**31 - 1

newton = build_newton(
    "newton", __file__, linear=Linear(factorise, direction), residual=residual, restart=restart, move=move, floor=rounding_floor,
    ends_at_rounding=True, patience=ENDLESS,
)


@inline
def centred(node, past):
    """True for a free rotation by a vector from the last knot."""
    return node.kind == POINT and past.chart == 0.0


@kernel
def begin_step(stage, state, order):
    """Centre free rotations at the knot, and make the aggregate of the last two knots; ``order`` 1 takes the last one alone."""
    first, second = (1.0, 0.0) if order == 1 else (4.0 / 3.0, -1.0 / 3.0)
    for i in range(stage.tree.shape[0]):
        at, past = stage.own.nodes[i], state.nodes[i]
        q, q1, v1 = load3(past.q), load3(past.q1), load3(past.v1)
        at.chart = past.chart
        if centred(stage.tree[i], past):
            store4(at.turn, load4(past.turn))
            q = (0.0, 0.0, 0.0)
            q1 = quaternion.log(quaternion.multiply(quaternion.conjugate(load4(past.turn)), load4(past.turn1)))
            v1 = mat_vec(so3.right_jacobian_inverse(q1), v1)
        for j in range(3):
            at.aq[j] = first * q[j] + second * q1[j]
            at.av[j] = first * past.v[j] + second * v1[j]
    begin_maps(stage.own.maps, state.maps, first, second)


@kernel
def begin_stage(stage, state, a, index, dt):
    """Aggregate of the knot and of the earlier stages' derivatives. Needs ``begin_step`` with order 1 before the first one."""
    for i in range(stage.tree.shape[0]):
        at, past = stage.own.nodes[i], state.nodes[i]
        for j in range(3):
            at.aq[j] = 0.0 if centred(stage.tree[i], past) else past.q[j]
            at.av[j] = past.v[j]
            for k in range(index):
                at.aq[j] += dt * a[index, k] * at.kq[k, j]
                at.av[j] += dt * a[index, k] * at.kv[k, j]
    begin_stage_maps(stage.own.maps, state.maps, a, index, dt)


@kernel
def try_stage(stage, state, targets, extrapolate, options):
    """A stage from its first guess; with ties, with one compliance after the other until it is solved."""
    ties = stage.ties
    if ties.rows.shape[0] == 0:
        guess(stage, state, extrapolate)
        follow_targets(stage, targets)
        outcome, iterations, size = newton(stage, options.tolerance, options.max_iterations)
        return (TOO_FAST if outcome == SOLVED and turns_far(stage, state) else outcome), iterations, size
    outcome, iterations, size = NOT_CONVERGED, 0, 0.0
    for attempt in range(len(COMPLIANCES) + NUDGES):
        ties.compliance[0] = options.compliance * (COMPLIANCES[attempt] if attempt < len(COMPLIANCES) else COMPLIANCES[0])
        for i in range(stage.model.joints.shape[0]):
            for k in range(6):
                stage.work.joints[i].coordinate[k] = state.joints[i].coordinate[k]
        if attempt < len(COMPLIANCES):
            guess(stage, state, extrapolate and attempt == 0)
        else:
            nudge_all(stage, attempt)
        follow_targets(stage, targets)
        for i in range(ties.rows.shape[0]):
            ties.rows[i].mu = 0.0
            ties.rows[i].dmu = 0.0
        outcome, spent, size = newton(stage, options.tolerance, options.max_iterations)
        iterations += spent
        if outcome == SOLVED:
            return (TOO_FAST if turns_far(stage, state) else SOLVED), iterations, size
    return outcome, iterations, size


@kernel
def turns_far(stage, state):
    """True when a joint turns so far from the last knot that a loop may have come out on another branch of its assembly, or that
    a rotation vector from knot to knot no longer tells how often it went round.
    """
    closed = False
    for i in range(stage.ties.rows.shape[0]):
        closed = closed or stage.ties.rows[i].kind == CLOSED or stage.ties.rows[i].kind == KEPT
    for i in range(stage.tree.shape[0]):
        node, at, past = stage.tree[i], stage.own.nodes[i], state.nodes[i]
        if node.driven:
            continue
        if closed and node.kind == AXIS and abs(at.x[0] - past.q[0]) > FAR:
            return True
        if node.kind == POINT:
            vector = centred(node, past)
            turned = norm3(sub3(load3(at.x), (0.0, 0.0, 0.0) if vector else load3(past.q)))
            if (closed and turned > FAR) or (vector and turned > HALF_ROUND):
                return True
    return False


@kernel
def nudge_all(stage, attempt):
    """Move the coordinates a little aside, by parts of the fastest."""
    fastest = 0.0
    for i in range(stage.tree.shape[0]):
        for j in range(stage.tree[i].count):
            fastest = max(fastest, abs(stage.own.nodes[i].v[j]))
    for i in range(stage.tree.shape[0]):
        for j in range(stage.tree[i].count):
            stage.own.nodes[i].v[j] += nudge(3 * i + j, attempt) * fastest
    for k in range(stage.own.maps.own.shape[0]):
        stage.own.maps.own[k].v *= 1.0 + nudge(k, attempt)


@kernel
def guess(stage, state, extrapolate):
    """First guess of a stage: the rates of the last knot, or of the last two extrapolated."""
    for i in range(stage.tree.shape[0]):
        at, past = stage.own.nodes[i], state.nodes[i]
        for j in range(3):
            at.v[j] = 3.0 * at.av[j] - 2.0 * past.v[j] if extrapolate else past.v[j]
    guess_maps(stage.own.maps, state.maps, extrapolate)


@kernel
def follow_targets(stage, targets):
    """Put driven coordinates where their ``targets`` (joints, 6) are; servos take theirs."""
    model, tree, work, nodes = stage.model, stage.tree, stage.work, stage.own.nodes
    for i in model.driven:
        for k in range(model.joints[i].free):
            work.joints[i].target[k] = targets[i, k]
        aim(model.joints[i], work.joints[i])
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        if node.driven != TARGET:
            continue
        if node.kind != POINT:
            for j in range(node.count):
                at.x[j] = targets[node.joint, node.direction + j]
            continue
        M = in_node(node, so3.exp_matrix(load3(targets[node.joint, node.direction :])))
        x = coordinates_of(node, int(at.chart), at.turn, M)
        store3(at.x, nearest_turns(x, load3(at.aq)) if at.chart > 0.0 else x)


@kernel
def keep_stage(stage, index):
    """Derivatives of a solved stage."""
    for i in range(stage.tree.shape[0]):
        at = stage.own.nodes[i]
        for j in range(3):
            at.kq[index, j] = at.v[j]
            at.kv[index, j] = at.a[j]
    keep_stage_maps(stage.own.maps, index)


@kernel
def combine(stage, state, b, dt):
    """Coordinates and rates at the end of a step that is no stage: the knot plus the stages' derivatives by their weights."""
    for i in range(stage.tree.shape[0]):
        at, past = stage.own.nodes[i], state.nodes[i]
        for j in range(3):
            at.x[j] = 0.0 if centred(stage.tree[i], past) else past.q[j]
            at.v[j] = past.v[j]
            for k in range(b.shape[0]):
                at.x[j] += dt * b[k] * at.kq[k, j]
                at.v[j] += dt * b[k] * at.kv[k, j]
    combine_maps(stage.own.nodes, stage.own.maps, state.maps, b, dt)


@kernel
def accept(stage, state, after):
    """The coordinates and rates of the scratch are the next knot; the knot becomes the one before."""
    for i in range(stage.tree.shape[0]):
        at, past, new = stage.own.nodes[i], state.nodes[i], after.nodes[i]
        store3(new.q1, load3(past.q))
        store3(new.v1, load3(past.v))
        store4(new.turn1, load4(past.turn))
        x, v = load3(at.x), load3(at.v)
        new.chart = past.chart
        if centred(stage.tree[i], past):
            store4(new.turn, quaternion.normalize(quaternion.multiply(load4(past.turn), quaternion.exp(x))))
            store3(new.q, (0.0, 0.0, 0.0))
            store3(new.v, mat_vec(so3.right_jacobian(x), v))
        else:
            store3(new.q, x)
            store3(new.v, v)
    accept_maps(stage.own.maps, state.maps, after.maps)


@inline
def finish(stage, state, targets, history, dt, after):
    """A solved step: coordinates and targets of the joints at the next knot, its clock, and charts that are better from there."""
    model, tree, nodes = stage.model, stage.tree, stage.own.nodes
    for i in range(tree.shape[0]):
        node, at = tree[i], nodes[i]
        if node.joint < 0 or node.count == 0:
            continue
        new, k = after.joints[node.joint], node.direction
        if node.kind != POINT:
            for j in range(node.count):
                new.coordinate[k + j] = at.x[j]
            continue
        there = after.nodes[i]
        E = in_joint(node, rotation(node, int(there.chart), there.turn, there.q))
        store3(new.coordinate[k:], ball_vector(E, load3(state.joints[node.joint].coordinate[k:])))
    for i in stage.ties.loops:
        for k in range(model.joints[i].free):
            after.joints[i].coordinate[k] = stage.work.joints[i].coordinate[k]
    for i in model.driven:
        for k in range(model.joints[i].free):
            if model.joints[i].follows[k]:
                after.joints[i].target[k] = targets[i, k]
    after.clock[0], after.clock[1] = dt, history + 1.0
    switch_charts(tree, after)


@kernel
def multistep_step(model, tree, state, targets, dt, options, history, work, own, ties):
    """One step of a BDF formula (eq. 3.60, 3.77) to the ``targets`` at its end."""
    stage = Stage(model, tree, work, own, ties, bdf_gamma(options.multistep, dt))
    begin_step(stage, state, options.multistep)
    return try_stage(stage, state, targets, options.multistep == 2 and history >= 1.0, options)


@kernel
def dirk_step(model, tree, state, targets, dt, options, work, own, ties):
    """One step of a diagonally implicit Runge-Kutta method; ``targets`` (stages, joints, 6): at the stages."""
    tableau, total, size = options.tableau, 0, 0.0
    begin_step(Stage(model, tree, work, own, ties, dt), state, 1)
    for index in range(tableau.b.shape[0]):
        stage = Stage(model, tree, work, own, ties, dt * tableau.a[index, index])
        begin_stage(stage, state, tableau.a, index, dt)
        outcome, iterations, size = try_stage(stage, state, targets[index], False, options)
        total += iterations
        if outcome != SOLVED:
            return outcome, total, size
        keep_stage(stage, index)
    if not tableau.stiffly_accurate:
        combine(Stage(model, tree, work, own, ties, dt), state, tableau.b, dt)
    return SOLVED, total, size


@kernel
def within_splines(tree, own):
    """False when a coordinate lies beyond the ends of its spline."""
    for i in range(tree.shape[0]):
        node, at = tree[i], own.nodes[i]
        if node.kind == SPLINE and not node.closed:
            for j in range(node.count):
                if at.x[j] < -1e-9 or at.x[j] > node.cells[j] + 1e-9:
                    return False
    return True


@inline
def step(model, tree, state, inputs, index, dt, options, work, own, ties, after):
    """One step of length ``dt`` with the inputs ``index``. Returns (outcome, iterations, residual).

    BDF2 starts, and starts anew where the step changes, by a DIRK step. ``after``, which may be ``state`` itself, is written only if the step is solved.
    """
    apply_inputs(model, work, inputs, index)
    targets, history = inputs.target[index + 1], history_of(state.clock, dt)
    if options.multistep == 1 or (options.multistep == 2 and history >= 1.0):
        outcome, iterations, size = multistep_step(model, tree, state, targets, dt, options, history, work, own, ties)
    else:
        between = inputs.stage[min(index, inputs.stage.shape[0] - 1)]
        outcome, iterations, size = dirk_step(model, tree, state, between, dt, options, work, own, ties)
    if outcome == SOLVED and not within_splines(tree, own):
        outcome = BEYOND
    if outcome == SOLVED:
        stage = Stage(model, tree, work, own, ties, dt)
        accept(stage, state, after)
        finish(stage, state, targets, history, dt, after)
    return outcome, iterations, size


@kernel
def place_knot(model, tree, own, state):
    """Poses and twists of all nodes at the state's knot."""
    for i in range(tree.shape[0]):
        at, past = own.nodes[i], state.nodes[i]
        store3(at.x, load3(past.q))
        store3(at.v, load3(past.v))
        store4(at.turn, load4(past.turn))
        at.chart = past.chart
        place_node(model, tree, own, i)


@kernel
def record(model, tree, own, state, recording, knot):
    """Write the state into the recording: poses and momenta, coordinates and rates of joints in the tree."""
    recording.step_before[knot] = state.clock[0]
    place_knot(model, tree, own, state)
    write_joints(tree, own, state, recording.coordinate[knot], recording.rate[knot])
    for i in range(tree.shape[0]):
        node, at = tree[i], own.nodes[i]
        if node.body < 0:
            continue
        W = load9(at.W)
        w, v = load6(at.V)
        store3(recording.position[knot, node.body], load3(at.place))
        store4(recording.orientation[knot, node.body], quaternion.from_matrix(W))
        put6(recording.momentum[knot, node.body], scale3(node.mass, mat_vec(W, v)), mat_vec(load9(node.inertia), w))


@kernel
def run_steps(model, tree, state, inputs, options, work, own, ties, recording, first, count, dt):
    """``count`` steps from knot ``first`` of the recording, which already holds that knot. ``inputs`` start at that knot.

    Returns (outcome, steps done, residual of the last try); the state is that of the last step that was solved.
    """
    size = 0.0
    clear_inputs(model, work)
    for index in range(count):
        outcome, iterations, size = step(model, tree, state, inputs, index, dt, options, work, own, ties, state)
        if outcome != SOLVED:
            return outcome, index, size
        recording.substeps[first + index + 1] = 1
        recording.iterations[first + index + 1] = iterations
        record(model, tree, own, state, recording, first + index + 1)
    return SOLVED, count, size
