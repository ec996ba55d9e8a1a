"""Where the robots of installed packages are, and what other simulators say about them."""
from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dalembert as da

_CASSIE = "shared/models/agility_cassie/cassie.xml"
CASSIE = next((p / _CASSIE for p in Path(__file__).parents if (p / _CASSIE).is_file()), Path(_CASSIE))
_DATA = "cmeel.prefix/share/example-robot-data/robots/"

URDF = {
    "a1": _DATA + "a1_description/urdf/a1.urdf",
    "go1": _DATA + "go1_description/urdf/go1.urdf",
    "go2": _DATA + "go2_description/urdf/go2.urdf",
    "anymal b": _DATA + "anymal_b_simple_description/robots/anymal.urdf",
    "anymal c": _DATA + "anymal_c_simple_description/urdf/anymal.urdf",
    "panda": _DATA + "panda_description/urdf/panda.urdf",
    "ur5": _DATA + "ur_description/urdf/ur5_robot.urdf",
    "talos": _DATA + "talos_data/robots/talos_reduced.urdf",
    "talos full": _DATA + "talos_data/robots/talos_full_v2.urdf",
    "g1": _DATA + "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "pybullet a1": "pybullet_data/a1/a1.urdf",
    "pybullet laikago": "pybullet_data/laikago/laikago_toes.urdf",
    "pybullet minitaur": "pybullet_data/quadruped/minitaur.urdf",
}
MJCF = {
    "ant": "gymnasium/envs/mujoco/assets/ant.xml",
    "humanoid": "gymnasium/envs/mujoco/assets/humanoid.xml",
    "half cheetah": "gymnasium/envs/mujoco/assets/half_cheetah.xml",
    "dm humanoid": "dm_control/suite/humanoid.xml",
    "dm dog": "dm_control/suite/dog.xml",
    "dm quadruped": "dm_control/suite/quadruped.xml",
}


def slow_unless(name: str, quick: tuple[str, ...]):
    """A parameter that is quick or has the slow marker."""
    return pytest.param(name, marks=[] if name in quick else [pytest.mark.slow])


def find(name: str) -> Path:
    """The file of a robot in an installed package; the test is skipped without it."""
    relative = {**URDF, **MJCF}[name]
    spec = importlib.util.find_spec(relative.split("/")[0]) if "cmeel" not in relative else None
    bases = [Path(spec.origin).parent.parent] if spec and spec.origin else [Path(p) for p in sys.path if p.endswith("site-packages")]
    for base in bases:
        if (base / relative).is_file():
            return base / relative
    pytest.skip(f"the package with {relative} is not installed")


@dataclass
class Whole:
    """A robot as a whole: mass, centre of mass, inertia about it in world axes, kinetic energy."""

    mass: float
    center: np.ndarray
    inertia: np.ndarray
    kinetic: float


def whole(simulation: da.Simulation) -> Whole:
    """The sums over all bodies of a simulation."""
    mechanism = simulation.mechanism
    mass = np.array([b.mass for b in mechanism.bodies])
    x, turn = simulation.position, Rotation.from_quat(simulation.orientation, scalar_first=True).as_matrix()
    center = mass @ x / mass.sum()
    inertia = composite(mass, x - center, turn, np.array([b.inertia for b in mechanism.bodies]))
    return Whole(mass.sum(), center, inertia, simulation.energies()[1])


def composite(mass: np.ndarray, offset: np.ndarray, turn: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """(3, 3) inertia of many bodies about the origin of their offsets."""
    J = np.einsum("nij,njk,nlk->il", turn, inertia, turn)
    return J + np.einsum("n,ni,ni->", mass, offset, offset) * np.eye(3) - np.einsum("n,ni,nj->ij", mass, offset, offset)


def moving(mechanism: da.Mechanism, values: dict[str, float], rates: dict[str, float], dt: float = 1e-3) -> da.Simulation:
    """A simulation that starts at given joint coordinates and rates."""
    for name in values:
        mechanism.start(name, values[name], rate=rates[name])
    return da.Simulation(mechanism, da.Variational(dt=dt))
