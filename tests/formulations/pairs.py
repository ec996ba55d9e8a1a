"""Two bodies joined by each joint of the table, in random poses that satisfy the joint: fixtures for derivative tests."""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.mechanism.joints import Joint

TYPES: dict[str, Joint] = {
    "fixed": da.Fixed(),
    "prismatic": da.Prismatic(axis=(1, 2, 2)),
    "revolute": da.Revolute(axis="y"),
    "cylindrical": da.Cylindrical(axis=(0, 1, 1)),
    "helical": da.Helical(axis="x", pitch=0.3),
    "universal": da.Universal(axes=("z", "x")),
    "spherical": da.Spherical(),
    "planar": da.Planar(normal="y"),
    "rectangular": da.Rectangular(normal=(1, 1, 0)),
    "planar free orientation": da.PlanarFreeOrientation(normal="z"),
    "pin in slot": da.PinInSlot(slot="x", axis="z"),
    "slot": da.Slot(axis="z"),
    "cartesian": da.Cartesian(),
    "rotation along axis": da.RotationAlongAxis(axis=(3, 0, 4)),
    "free": da.Free(),
    "distance": da.Distance(),
}


def with_laws(joint: Joint, **laws) -> Joint:
    """The same joint with springs, dampers or drives."""
    return type(joint)(**{**joint.describe(), **laws})


def pair(joint: Joint, seed: int = 0, *, grounded: bool = False, gravity=(0.3, -0.2, -9.81)) -> da.Mechanism:
    """Two bodies (the first one fixed to the world if ``grounded``) and one joint, everything askew."""
    rng = np.random.default_rng(seed)
    mechanism = da.Mechanism("pair", gravity=gravity)
    names = ("b",) if grounded else ("a", "b")
    for name in names:
        A = rng.normal(size=(3, 3))
        inertia = np.trace(A @ A.T) * np.eye(3) - A @ A.T
        mechanism.body(name, mass=float(rng.uniform(0.5, 2.0)), inertia=0.1 * inertia, position=rng.normal(size=3),
                       orientation=rng.normal(size=4))
    at = rng.normal(size=3)
    parent = mechanism.world if grounded else "a"
    apart = (at, at + np.array([0.4, 0.3, -0.2]))
    mechanism.joint("joint", joint, parent, "b", at=apart if isinstance(joint, da.Distance) else at, frame=rng.normal(size=4))
    return mechanism


def moved(joint: Joint, seed: int = 0, *, grounded: bool = False, gravity=(0.3, -0.2, -9.81), dt: float = 0.01) -> da.Simulation:
    """A simulation of such a pair at random coordinates and velocities."""
    rng = np.random.default_rng(seed + 1000)
    mechanism = pair(joint, seed, grounded=grounded, gravity=gravity)
    if joint.freedom:
        mechanism.start("joint", rng.uniform(-0.6, 0.6, joint.freedom))
    sim = da.Simulation(mechanism, da.Variational(dt=dt, tolerance=1e-12))
    for body in mechanism.bodies:
        sim.set_velocity(body.name, linear=rng.normal(size=3), angular=rng.normal(size=3))
    return sim


def tangent(q: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """A quaternion turned by a small body-frame rotation vector."""
    return (Rotation.from_quat(q, scalar_first=True) * Rotation.from_rotvec(phi)).as_quat(scalar_first=True)
