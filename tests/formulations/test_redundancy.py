"""Redundancy analysis and least-norm forces against dense linear algebra."""
from __future__ import annotations

import numpy as np
import pytest
from machines import two_motors

import dalembert as da
from dalembert import zoo
from dalembert.model.least_norm import least_norm
from dalembert.model.placement import Placement
from dalembert.model.redundancy import row_set


def geared_wheels() -> da.Mechanism:
    """Two wheels that mesh twice: one gear is redundant."""
    mechanism = da.Mechanism("wheels")
    for name, x in (("first", 0.0), ("second", 0.3)):
        mechanism.body(name, da.Cylinder(radius=0.1, length=0.02, mass=1.0, axis="y"), position=(x, 0, 0))
        mechanism.joint(f"{name} axle", da.Revolute(axis="y"), mechanism.world, name, at=(x, 0, 0))
    for gear in ("gear", "same gear"):
        mechanism.gear(gear, "first axle", "second axle", ratio=-2.0)
    return mechanism


MACHINES = {
    "free body": zoo.free_body, "door": zoo.door, "double four-bar": zoo.double_four_bar, "Bricard": zoo.bricard, "Andrews": zoo.andrews_squeezer,
    "conical pendulum": zoo.conical_pendulum, "two motors": two_motors, "geared wheels": geared_wheels, "satellite": zoo.solar_panel_satellite,
    "walker": zoo.walker_legs, "figure": zoo.animatronic_figure, "Hoberman": zoo.hoberman_sphere,
}


def rank(rows: np.ndarray) -> int:
    if rows.size == 0:
        return 0
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return int(np.count_nonzero(np.linalg.eigvalsh(unit.T @ unit) > 1e-10))


LARGE = ("figure", "Hoberman")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in MACHINES])
def test_ranks_and_rows_to_drop(name):
    sim = da.Simulation(MACHINES[name](), da.Variational(dt=0.01))
    found, rows = sim.redundancy(), row_set(Placement.of(sim.mechanism))
    G, owners, driven = rows.matrix.toarray(), np.array(rows.owners, dtype=object), rows.driven
    assert (found.rows, found.driven_rows) == (int(np.count_nonzero(~driven)), int(np.count_nonzero(driven)))
    assert found.rank == rank(G[~driven])
    assert found.freedom == G.shape[1] - rank(G)
    assert found.driven_rank == rank(G) - found.rank
    assert (len(found.redundant), len(found.redundant_drives)) == (found.rows - found.rank, found.driven_rows - found.driven_rank)
    kept = np.array([tuple(owner) not in {*found.redundant, *found.redundant_drives} for owner in owners], dtype=bool)
    assert rank(G[kept]) == rank(G) == np.count_nonzero(kept)
    assert found.gap > 1e6


def test_the_hoberman_sphere():
    found = da.Simulation(zoo.hoberman_sphere(), da.Variational(dt=0.01)).redundancy()
    assert (found.rows, found.rank, found.freedom, len(found.redundant)) == (1980, 1433, 7, 547)
    assert found.gap > 1e9


@pytest.mark.parametrize("weight", [1.0, 1e5])
@pytest.mark.parametrize("name", ["door", "Bricard", "geared wheels", "walker"])
def test_least_norm_forces(name, weight):
    """The same effect on every body as before, and the least weighted norm: no multiple of a null vector makes it smaller."""
    sim = da.Simulation(MACHINES[name](), da.Variational(dt=0.01))
    trajectory = sim.run(0.03)
    placement = Placement.of(sim.mechanism)
    placement.put(trajectory.position[1], trajectory.orientation[1])
    rows, held = row_set(placement), np.arange(6) < placement.model.joints["locks"][:, None]
    forces, gears = trajectory._get("row_force")[1], trajectory._get("coupling_force")[1]
    weights = np.where(np.arange(len(rows.owners)) % 3 == 0, weight, 1.0)
    found, found_gears = least_norm(placement, forces, gears, weights)
    before, after = np.concatenate([forces[held], gears]), np.concatenate([found[held], found_gears])
    G = rows.matrix.toarray()
    assert np.abs(G.T @ (after - before)).max() < 1e-10 * (1.0 + np.abs(before).max())
    u, sizes, _ = np.linalg.svd(G)
    null = u[:, np.count_nonzero(sizes > 1e-9 * sizes[0]) :]
    assert null.shape[1] > 0
    assert np.abs(null.T @ (weights * after)).max() < 1e-7 * np.abs(weights * after).max()
