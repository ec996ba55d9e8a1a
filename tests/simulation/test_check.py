"""The self-test of a mechanism in its formulation: quiet about what is right, and not about what is wrong."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dalembert as da


def arm() -> da.Mechanism:
    """Two links, the second on a damped spring."""
    mechanism = da.Mechanism("arm")
    upper = mechanism.body("upper", da.Box(size=(0.4, 0.05, 0.05), mass=1.0), position=(0.2, 0.0, 0.0))
    lower = mechanism.body("lower", da.Box(size=(0.4, 0.05, 0.05), mass=0.5), position=(0.6, 0.0, 0.0))
    mechanism.joint("shoulder", da.Revolute(axis="y"), mechanism.world, upper, at=(0.0, 0.0, 0.0))
    mechanism.joint("elbow", da.Revolute(axis="y", stiffness=2.0, damping=0.05), upper, lower, at=(0.4, 0.0, 0.0))
    return mechanism


@pytest.mark.parametrize("formulation", [da.Variational(dt=0.005), da.Implicit(dt=0.005), da.Reduced(dt=0.005)], ids=lambda f: type(f).__name__)
def test_what_is_right(formulation):
    sim = da.Simulation(arm(), formulation)
    sim.set_joint("shoulder", 0.3, rate=1.0)
    sim.run(0.05)
    before = sim.state
    found = sim.check(steps=20)
    assert found.ok, str(found)
    assert sim.state == before
    names = [line.name for line in found.lines]
    assert names[:6] == ["steps", "joints", "energy", "rates", "rows and laws", "derivatives"]
    assert len(names) == 8
    assert all(line.ok for line in found.lines), str(found)
    assert "'arm' in" in str(found)
    assert "against" in str(found)


def test_what_cannot_be_compared_is_said():
    sim = da.Simulation(arm(), da.Variational(dt=0.005))
    sim.set_input("upper", [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = sim.check(steps=8)
    assert found.ok, str(found)
    assert {line.name: line.ok for line in found.lines}["energy"] is None


def test_what_is_wrong():
    """A formulation without a step says so."""
    sim = da.Simulation(arm(), da.Variational(dt=0.2, max_halvings=0))
    sim.set_joint("elbow", rate=40.0)
    found = sim.check(steps=8)
    assert not found.ok
    assert [line.name for line in found.lines] == ["steps"]
    assert "WRONG" in str(found)
    assert "StepFailure" in str(found)


def test_a_wrong_model_is_found(monkeypatch):
    """A formulation that has gone wrong on its own, here by another mass in its model, parts from the others."""
    sim = da.Simulation(arm(), da.Variational(dt=0.005))
    from dalembert.formulations.variational import engine

    honest = engine.VariationalEngine.__init__

    def heavier(self, mechanism, options):
        honest(self, mechanism, options)
        bodies = self.model.bodies.copy()
        bodies["mass"][1] *= 1.5
        self.model = self.model._replace(bodies=bodies)

    monkeypatch.setattr(engine.VariationalEngine, "__init__", heavier)
    found = sim.check(steps=20)
    assert not found.ok
    assert {line.name for line in found.lines if line.ok is False} >= {"against Implicit", "against Reduced"}


@pytest.mark.parametrize("wrong", [None, "constraint", "path", "potential"])
def test_derivatives_of_users_are_looked_at_one_by_one(wrong):
    """A gradient, a stiffness and a wrench of users, each twice what it should be, are told by name; what is right is not."""
    times = {name: 2.0 if name == wrong else 1.0 for name in ("constraint", "path", "potential")}
    mechanism = arm()
    mechanism.constraint("plane", "lower", lambda x, _: x[0, 1], gradient=lambda x, _: times["constraint"] * np.array([[0.0, 1.0, 0.0, 0.0, 0.0, 0.0]]))
    k, d, rest = 3.0, 0.1, 0.2

    def law(length: float, rate: float) -> tuple[float, float, float, float]:
        return k * (length - rest) + d * rate, times["path"] * k, d, 0.5 * k * (length - rest) ** 2

    mechanism.path("tendon", [(mechanism.world, (0.0, 0.0, 0.4)), ("lower", (0.7, 0.0, 0.1))], law=law)
    mechanism.potential(
        "well", "upper", lambda x, _: float(x @ x), wrench=lambda x, _: [*(-2.0 * times["potential"] * x), 0.0, 0.0, 0.0],
    )
    sim = da.Simulation(mechanism, da.Variational(dt=0.005))
    sim.set_joint("elbow", 0.2)
    found = sim.check(steps=6)
    names = {"constraint": "rows of 'plane'", "path": "law of path 'tendon'", "potential": "wrench of 'well'"}
    lines = [line for line in found.lines if line.name in names.values()]
    assert [line.name for line in lines] == ([] if wrong is None else [names[wrong]]), str(found)
    assert all("derivatives miss differences by" in line.found for line in lines)


def test_bad_arguments():
    sim = da.Simulation(arm(), da.Variational(dt=0.005))
    bad: list[Any] = [0, -1, 2.5, "many", None, np.nan]
    for wrong in bad:
        with pytest.raises(da.ModelError, match="steps"):
            sim.check(steps=wrong)
