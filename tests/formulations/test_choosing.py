"""What the page on choosing a formulation says about energy, momentum and stiff springs."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da


def test_a_spring_that_the_step_does_not_resolve():
    """1 kg on 1e6 N/m at 0.01 s: ten steps would fit into 1.6 oscillations."""
    mechanism = da.zoo.damped_oscillator(mass=1.0, stiffness=1e6, damping=10.0)
    for method in ("bdf1", "bdf2", "sdirk2"):
        run = da.Simulation(mechanism, da.Implicit(dt=0.01, method=method)).run(1.0)
        assert np.abs(run.position[-1]).max() < 1e-6, method
        assert np.abs(run.position).max() <= 0.1 + 1e-12, method
    grown = da.Simulation(mechanism, da.Variational(dt=0.01)).run(0.2)
    assert np.abs(grown.position[-1]).max() > 10.0


@pytest.fixture(scope="module")
def lost() -> dict[str, float]:
    """Energy (J) that a double pendulum loses within two seconds."""
    formulations = {"variational": da.Variational(dt=0.005), **{m: da.Implicit(dt=0.005, method=m) for m in ("bdf1", "bdf2", "sdirk2", "pareschi_russo")}}
    runs = {name: da.Simulation(da.zoo.double_pendulum(), f).run(2.0) for name, f in formulations.items()}
    return {name: float(run.energy().total[0] - run.energy().total[-1]) for name, run in runs.items()}


def test_who_loses_energy(lost):
    assert lost["bdf1"] > lost["sdirk2"] > 10 * abs(lost["bdf2"])
    assert abs(lost["variational"]) < 0.1 * abs(lost["bdf2"])
    assert abs(lost["pareschi_russo"]) < 0.1 * lost["sdirk2"]


def test_momentum_of_a_free_body():
    drift = {}
    for name, formulation in {"variational": da.Variational(dt=0.005), "bdf2": da.Implicit(dt=0.005)}.items():
        spin = da.Simulation(da.zoo.t_handle(), formulation).run(1.0).momentum().angular
        drift[name] = np.abs(spin - spin[0]).max() / np.abs(spin).max()
    assert drift["variational"] < 1e-9
    assert 1e-7 < drift["bdf2"] < 0.1
