"""Where many shapes may touch a ground, only near ones are part of a step, and the motion is the same."""
from __future__ import annotations

import numpy as np
import pytest

import dalembert as da
from dalembert.contact import build
from dalembert.formulations.variational.contact_engine import ContactEngine


def falling_boxes() -> da.Mechanism:
    mechanism = da.Mechanism("boxes")
    mechanism.ground(friction=0.4)
    for i in range(20):
        mechanism.body(f"box {i}", da.Box(size=(0.2, 0.1, 0.1), mass=1.0), position=(0.5 * i, 0, 0.06 + 0.15 * i), collide=True)
        mechanism.contact_pair(f"box {i}", "ground", friction=0.4)
        for k in range(i):
            mechanism.contact_pair(f"box {k}", f"box {i}", collide=False)
        mechanism.start(f"box {i}", linear=(0.1 * i, 0, 0))
    return mechanism


def test_far_shapes_are_no_part_of_a_step(monkeypatch):
    runs, listed = [], []
    for crowd in (build.CROWD, 10**9):
        monkeypatch.setattr(build, "CROWD", crowd)
        simulation = da.Simulation(falling_boxes(), da.Variational(dt=0.005))
        runs.append(simulation.run(0.1))
        engine = simulation._engine
        assert isinstance(engine, ContactEngine)
        listed.append(len(engine.scene.contacts))
        runs[-1] = simulation.run(0.7)
    assert listed[0] <= 100
    assert listed[1] == 160
    np.testing.assert_allclose(runs[0].position, runs[1].position, atol=1e-7)
    assert runs[0].contacts().least_gap().min() >= -1e-8
    landed = runs[0].position[-1, :, 2]
    assert landed[:8] == pytest.approx(0.05, abs=1e-6)
