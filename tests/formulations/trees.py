"""Random trees of bodies, with joints of given kinds, read from parent to child or from child to parent."""
from collections.abc import Callable, Sequence

import numpy as np

import dalembert as da
from dalembert.mechanism.mechanism import Body


def curve() -> da.SplineCurve:
    """A motion along a bent line that turns."""
    rng = np.random.default_rng(1)
    turns = np.column_stack([np.ones(6), 0.4 * rng.normal(size=(6, 3))])
    return da.SplineCurve(np.column_stack([0.5 * np.arange(6), 0.2 * rng.normal(size=(6, 2)), turns]))


def surface() -> da.SplineSurface:
    """A motion over a bent sheet."""
    grid = 0.2 * np.random.default_rng(2).normal(size=(5, 4, 6))
    grid[..., 0] += 0.4 * np.arange(5)[:, None]
    grid[..., 1] += 0.4 * np.arange(4)
    return da.SplineSurface(grid)


#: joints that bring a motion of their own
MOVING: dict[str, Callable[[], da.Joint]] = {
    "SplineCurve": curve, "SplineSurface": surface,
    "CompositeJoint": lambda: da.CompositeJoint(da.Spherical(), da.Cylindrical(axis=(1, 1, 0)), position=(0.3, 0, 0.1), orientation=(1, 0.2, 0.3, 0.1)),
}
#: every joint of the table that can be part of a tree
KINDS: dict[str, Callable[[], da.Joint]] = {
    "Revolute": lambda: da.Revolute(axis=[1, 2, 3]), "Prismatic": lambda: da.Prismatic(axis=[2, -1, 1]),
    "Helical": lambda: da.Helical(axis=[0, 1, 1], pitch=0.3), "Cylindrical": da.Cylindrical, "Universal": da.Universal,
    "Spherical": da.Spherical, "Planar": lambda: da.Planar(normal=[1, 1, 0]), "Rectangular": da.Rectangular,
    "PlanarFreeOrientation": da.PlanarFreeOrientation, "PinInSlot": da.PinInSlot, "Cartesian": da.Cartesian, "Slot": da.Slot,
    "RotationAlongAxis": da.RotationAlongAxis, "CylindricalFreeOrientation": da.CylindricalFreeOrientation, "Free": da.Free, "Fixed": da.Fixed,
}


def random_body(mechanism: da.Mechanism, name: str, rng: np.random.Generator) -> Body:
    """A body of some mass and inertia, somewhere, turned somehow."""
    square = np.cov(rng.normal(size=(3, 9)))
    orientation = rng.normal(size=4)
    return mechanism.body(
        name, mass=float(rng.uniform(0.5, 2.0)), inertia=0.2 * (np.trace(square) * np.eye(3) - square),
        position=rng.normal(size=3), orientation=orientation / np.linalg.norm(orientation),
    )


def random_tree(
    kinds: Sequence[Callable[[], da.Joint] | None], rng: np.random.Generator, *, reach: int = 100, reverse: float = 0.5, grounded: float = 0.15,
) -> da.Mechanism:
    """A body per kind of joint (None: it hangs on nothing), each hung on one of the last ``reach`` bodies or on the world.

    ``reverse``, ``grounded``: how probable it is that a joint is given from child to parent, and that it hangs on the world.
    """
    mechanism = da.Mechanism("tree")
    for i, kind in enumerate(kinds):
        body = random_body(mechanism, f"body {i}", rng)
        if kind is None:
            continue
        other = mechanism.bodies[int(rng.integers(max(0, i - reach), i))] if i and rng.random() >= grounded else mechanism.world
        ends = (other, body) if other is mechanism.world or rng.random() >= reverse else (body, other)
        turn = rng.normal(size=4)
        mechanism.joint(f"joint {i}", kind(), *ends, at=rng.normal(size=3), frame=turn / np.linalg.norm(turn))
    return mechanism
