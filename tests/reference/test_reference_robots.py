"""Robots of URDF files: what Pinocchio says about them, verified against MuJoCo."""
import hashlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from published import problem

import dalembert as da

ROBOTS = problem("robot_dynamics_pinocchio")["reference"]
BOUND = 1e-10


def file_of(robot: dict) -> Path:
    """The robot's URDF file in the installed package, if it is the one that the numbers are of."""
    if importlib.util.find_spec("yourdfpy") is None:
        pytest.skip("yourdfpy is not installed")
    for base in (Path(p) for p in sys.path if p.endswith("site-packages")):
        for path in (base / "cmeel.prefix/share/example-robot-data/robots").rglob(robot["urdf"]):
            if hashlib.sha256(path.read_bytes()).hexdigest() == robot["urdf_sha256"]:
                return path
    pytest.skip(f"the package with {robot['urdf']} is not installed")


def apart(found, expected) -> float:
    """Largest difference, relative to the largest number."""
    return float(np.abs(np.asarray(found) - np.asarray(expected)).max() / np.abs(np.asarray(expected)).max())


@pytest.mark.parametrize("name", ROBOTS)
def test_algebra_of_robots(name):
    robot = ROBOTS[name]
    algebra = da.Algebra(da.load(file_of(robot)))
    assert list(algebra.names) == robot["joint_names"]
    q, v, a = (np.array(robot[key]) for key in "qva")
    M = algebra.mass_matrix(q)
    pairs = [
        (algebra.inverse_dynamics(q, v, a), robot["tau_rnea"]), (algebra.bias_forces(q, v), robot["nonlinear_effects"]),
        (algebra.forward_dynamics(q, v, np.zeros(len(q))), robot["ddq_free"]), (algebra.kinetic_energy(q, v), robot["kinetic"]),
        (algebra.potential_energy(q), robot["potential"]), (np.trace(M), robot["mass_matrix_trace"]),
        (np.linalg.slogdet(M)[1], robot["mass_matrix_logdet"]), (algebra.center_of_mass(q), robot["com"]),
        (algebra.centroidal_momentum(q, v), robot["centroidal_momentum_lin_ang"]), (algebra.mass, robot["moving_mass"]),
    ]
    for found, expected in [*pairs, *([(M, robot["mass_matrix"])] if "mass_matrix" in robot else [])]:
        assert apart(found, expected) < BOUND
