"""The simulators of the benchmarks move as ours does, and their page says what was measured."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dalembert as da
from benchmarks.comparison.page import page, write_page
from benchmarks.comparison.problems import PROBLEMS, NotInstalled, exact
from benchmarks.comparison.scene import describe
from benchmarks.comparison.work_precision import cost_at, ranking
from benchmarks.comparison.workers import Crew, Failed
from benchmarks.peers import KNOWN, peer_named

#: s that all simulators move for
MOMENT = 0.1
#: methods that are compared, a finer step than the one that is timed, by how much, and the largest difference (m) that they may show after the moment
METHODS = {"MuJoCo": ("RK4", 4, 1e-5), "Pinocchio": ("RK4", 2, 1e-6), "Drake": ("RK3", 2, 1e-6), "Exudyn": ("generalized alpha", 4, 1e-4), "PyBullet": ("semi-implicit Euler", 20, 5e-3)}
#: of what is not rigid there: MuJoCo's loops and contacts; Drake's friction, which lifts what slides by some millimetres; of first-order steps
SOFT = {"MuJoCo": 3e-3, "Drake": 1e-2, "PyBullet": 5e-3, "Pinocchio": 1e-6, "Exudyn": 1e-4}
QUICK = ("chain 10", "ball chain 10", "four-bar chain 4", "five-bar", "double four-bar", "heavy top", "T-handle", "A1 in the air", "A1 standing", "sliding box")


def scene_of(name):
    try:
        return PROBLEMS[name].scene()
    except NotInstalled as error:
        pytest.skip(str(error))


def truth(name, scene):
    found = exact(name, scene, MOMENT)
    if found is None:
        dt = 0.25 * PROBLEMS[name].dt
        model = peer_named("dalembert").build(scene, "Variational", dt)
        model.run(round(MOMENT / dt))
        found = model.poses()
    return found


def cases():
    for peer in METHODS:
        for name in PROBLEMS:
            quick = peer == "MuJoCo" and name in QUICK
            yield pytest.param(peer, name, marks=[] if quick else [pytest.mark.slow])


@pytest.mark.parametrize(("peer", "name"), list(cases()))
def test_the_same_motion(peer, name):
    pytest.importorskip(KNOWN[peer][0])
    scene, simulator = scene_of(name), peer_named(peer)
    method, finer, tolerance = METHODS[peer]
    method = simulator.methods[0] if simulator.refuses(scene, method) else method
    refusal = simulator.refuses(scene, method)
    if refusal is not None:
        pytest.skip(refusal)
    dt = PROBLEMS[name].dt / finer
    model = simulator.build(scene, method, dt)
    model.run(round(MOMENT / dt))
    moved = model.poses()
    spin = max(1.0, *(np.linalg.norm(link.angular) / 10.0 for link in scene.links))  # fast tops ask for more
    allowed = SOFT[peer] if scene.loops or scene.ground is not None or method == "SAP" else tolerance * spin
    assert scene.error(moved, truth(name, scene)) < allowed
    assert scene.error(moved, scene.start) > 3e-4  # it did move
    model.reset()
    assert scene.error(model.poses(), scene.start) < 1e-12


def test_another_problem_is_told_apart():
    scene = describe(da.zoo.pendulum(3))
    heavier = replace(scene, links=(*scene.links[:2], replace(scene.links[2], mass=1.5)))
    model = peer_named("MuJoCo").build(heavier, "RK4", 0.001)
    model.run(100)
    assert scene.error(model.poses(), exact("chain", scene, MOMENT)) > 10 * METHODS["MuJoCo"][2]  # type: ignore[arg-type]


def test_openings_and_depths():
    scene = describe(da.zoo.double_four_bar())
    assert scene.opening(scene.start) < 1e-12
    apart = scene.start._replace(position=scene.start.position + np.outer(np.arange(5) == 4, (0.0, 0.0, 4e-3)))
    assert scene.opening(apart) == pytest.approx(4e-3)
    box = describe(da.zoo.box_drop(height=0.1))
    low = box.start._replace(position=box.start.position - (0.0, 0.0, 0.15))
    assert box.depth(box.start) == 0.0
    assert box.depth(low) == pytest.approx(0.05)


def test_cost_at_an_error():
    points = [dict(dt=0.1, error=1e-1, ms=1.0), dict(dt=0.01, error=1e-2, ms=10.0), dict(dt=0.001, error=1e-4, ms=100.0)]
    found = cost_at(points, 1e-3)
    assert found is not None
    assert found["ms"] == pytest.approx(10.0**1.5)
    assert found["dt"] == pytest.approx(10.0**-2.5)
    assert cost_at(points, 1e-5) is None
    assert cost_at(points, 0.5) == dict(ms=1.0, dt=0.1)
    assert cost_at([*points, dict(dt=1e-4, error=1.0, ms=1e3)], 1e-3) is None  # a lucky run


def test_a_worker_that_fails_says_why_and_goes_on():
    with Crew() as crew:
        worker = crew.get("MuJoCo")
        with pytest.raises(Failed, match="KeyError"):
            worker.ask("build", "x", "no such problem", "MuJoCo", "Euler", 0.01)
        worker.ask("build", "x", "chain 10", "MuJoCo", "Euler", 0.01)
        assert worker.ask("spend", "x", 10) > 0.0
        worker.process.kill()
        with pytest.raises(Failed, match="died"):
            worker.ask("spend", "x", 10)
        assert crew.get("MuJoCo").ask("refuses", "chain 10", "MuJoCo", "Euler") is None


def small_result() -> dict[str, Any]:
    row: dict[str, Any] = dict(simulator="dalembert", method="Variational", us=2.0, us_low=1.9, us_high=2.1, opening=0.0, depth=0.0, diverged=False, build=0.1, first_step=0.2, error=1e-6)
    theirs = row | dict(simulator="MuJoCo", method="Euler", us=1.0, error=1e-2)
    speed = dict(problem="chain 10", about="rods", dt=0.002, steps=10, rounds=3, bodies=10, loops=0, contact=False, rows=[row, theirs])
    curves = [
        dict(simulator="dalembert", method="Variational", points=[dict(dt=0.01, error=1e-4, ms=3.0)], at_error=dict(ms=3.0, dt=0.01)),
        dict(simulator="MuJoCo", method="Euler", points=[dict(dt=0.01, error=1e-4, ms=4.0)], at_error=dict(ms=4.0, dt=0.01)),
    ]
    precision = dict(problem="pendulum chain", duration=1.0, curves=curves)
    about = dict(processor="abacus", system="x", Python="3", numpy="2", numba="0")
    return dict(made="2026-01-01T00:00", quick=True, seconds=60.0, processor_seconds=55.0, machine=about, simulators=dict(dalembert="0", MuJoCo="4"), speed=[speed], work_precision=[precision])


def test_the_page_says_who_wins_and_who_loses(tmp_path):
    result = small_result()
    assert [row["simulator"] for row in ranking(result["work_precision"][0])] == ["dalembert", "MuJoCo"]
    files = write_page(result, tmp_path)
    text = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert "We are the fastest on pendulum chain; we lose on none of them." in text
    assert "slower than MuJoCo's by a factor of 2 (chain 10, Variational)" in text
    assert all(file.stat().st_size > 200 for file in files)
    result["work_precision"][0]["curves"][1]["at_error"]["ms"] = 1.0
    assert "We are the fastest on none of them; we lose on pendulum chain." in page(result)
