"""The adjoint of a stage in joint coordinates (RedMax section 3.5, REDMAX.md): from bars of its end to those of what it started from.

Unknowns are the rates v of the coordinates, x = a_q + c v, x'' = (v - a_v)/c, and the forces of rows that stay closed. The weights z
of the equations solve H^T z = -(bars of x), H the stage's own Newton matrix in displacements c dv, factored and solved in linear time. As in ``implicit.adjoint``,
every pass only adds, and refines what that matrix leaves out: how rows of loops turn, users' laws.
"""
from __future__ import annotations

from dalembert.formulations.maximal.pull_forces import pull_load
from dalembert.formulations.reduced.equations import residual
from dalembert.formulations.reduced.pull_ties import (
    hand_on_forces,
    load_forces,
    pull_ties,
    solve_ties_transposed,
    store_row_weights,
)
from dalembert.formulations.reduced.pull_tree import (
    carry_weights,
    clear_frames,
    pull_bodies,
    pull_frames,
    pull_laws,
)
from dalembert.formulations.reduced.step import direction, factorise, move
from dalembert.formulations.reduced.tree_solve import solve_transposed
from dalembert.kernels import kernel

#: a pass that leaves this part of what the first one met is the last one, the same of unknown forces, whose bars are what the compliance
#: of the rows made of them; most passes
SMALL, SMALL_FORCE, PASSES = 1e-12, 1e-6, 40
#: redundant forces are taken away where that changes forces by this part; iterations after that
LOADED, POLISH = 1e-3, 2


@kernel
def open_stage(stage, bars):
    """Evaluate the equations at the solution in work and scratch, factor Newton's matrix there, note the velocities. False when singular."""
    _, fine = residual(stage)
    if not fine:
        return False
    _, regular = factorise(stage, 0.0)
    if stage.ties.rows.shape[0] > 0 and regular:
        regular = relax(stage)
    for i in range(stage.model.bodies.shape[0] - 1):
        for c in range(6):
            bars.bodies[i].u[c] = stage.work.velocity[i, c]
    if stage.ties.rows.shape[0] > 0:
        hand_on_forces(stage)
    return regular


@kernel
def relax(stage):
    """Take away what Newton left in redundant forces, which moves nothing and can be large: the matrix leaves out how rows turn with them.

    Needs the factored matrix, and leaves it factored. Returns False when it is singular.
    """
    rows, regular = stage.ties.rows, True
    for attempt in range(2 + POLISH):
        direction(stage, attempt < 2)
        forces, change = 0.0, 0.0
        for i in range(rows.shape[0]):
            forces, change = max(forces, abs(rows[i].mu)), max(change, abs(rows[i].dmu))
        if attempt == 0 and not change > LOADED * forces:
            return True
        move(stage, 1.0)
        fine = residual(stage)[1]
        regular = fine and factorise(stage, 0.0)[1]
        if not regular:
            return False
    return True


@kernel
def load_unknowns(stage, bars, nodes):
    """Bars of the unknowns, those of rates as those of displacements, into ``g`` and the ties' vector. Returns the largest of each."""
    c, size = stage.c, 0.0
    for i in range(stage.tree.shape[0]):
        node, bar, g = stage.tree[i], nodes[i], stage.own.nodes[i].g
        for j in range(node.count):
            g[j] = 0.0 if node.driven else bar.x[j] + bar.v[j] / c + bar.a[j] / (c * c)
            size = max(size, abs(g[j]))
    return size, load_forces(stage, bars)


@kernel
def solve_weights(stage, bars, nodes):
    """Weights of all equations with the transposed Newton matrix."""
    if stage.ties.rows.shape[0] > 0:
        solve_ties_transposed(stage)
        store_row_weights(stage, bars)
    else:
        for i in range(nodes.shape[0]):
            stage.own.nodes[i].s[:] = 0.0
        solve_transposed(stage.tree, stage.own)
    for i in range(nodes.shape[0]):
        for j in range(3):
            nodes[i].z[j] = -stage.own.nodes[i].dq[j] if j < stage.tree[i].count else 0.0


@kernel
def pull_equations(stage, bars, nodes):
    """Adds the equations with weights z and those of the closed rows to the bars of x, x', x'', of numbers and of inputs."""
    carry_weights(stage, bars, nodes)
    if stage.ties.rows.shape[0] > 0:
        pull_ties(stage, bars)
    for i in range(stage.model.loads.shape[0]):
        pull_load(stage.model, stage.work, bars, i, 1.0)
    pull_bodies(stage, bars, nodes)
    pull_laws(stage, bars, nodes)
    pull_frames(stage, bars, nodes)


@kernel
def pull_stage(stage, bars, nodes):
    """From bars of x, x' and x'' at the end of a stage to those of its aggregates, of the targets and of where rotations are centred.

    Needs ``open_stage`` before. Returns what is left of the unknowns' bars, relative.
    """
    moved, forced = load_unknowns(stage, bars, nodes)
    first, first_force = moved, forced
    for attempt in range(PASSES):
        if not (moved > SMALL * first or forced > SMALL_FORCE * first_force):
            break
        before, before_force = moved, forced
        clear_frames(bars, nodes)
        solve_weights(stage, bars, nodes)
        pull_equations(stage, bars, nodes)
        moved, forced = load_unknowns(stage, bars, nodes)
        if attempt == 0:
            first_force = max(first_force, forced)
        elif not (moved < 0.5 * before or forced < 0.5 * before_force):
            break
    return moved / first if first > 0.0 else 0.0
