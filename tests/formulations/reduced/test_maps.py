"""Coordinate maps: one angle bends a finger, in all formulations, against an equation of one freedom and against gears."""
import numba
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dalembert as da
from dalembert.errors import ModelError
from dalembert.formulations.reduced.equations import Stage, residual
from dalembert.formulations.reduced.step import direction, factorise
from dalembert.formulations.reduced.ties import MOVED
from dalembert.model.tree import FOLLOWER

LENGTHS, MASSES, WIDTH, STIFFNESS = (0.5, 0.4, 0.3), (1.0, 0.8, 0.6), 0.05, 2.0
RATIOS = np.array([1.0, 0.8, 0.6])
NAMES = ["joint 0", "joint 1", "joint 2"]
FORMULATIONS = {"Reduced": da.Reduced, "Implicit": da.Implicit, "Variational": da.Variational}


def chain(damping: float = 0.0) -> da.Mechanism:
    """Three boxes along x on hinges about y, the first with a spring."""
    mechanism, last, reach = da.Mechanism("finger"), None, 0.0
    for i, (length, mass) in enumerate(zip(LENGTHS, MASSES)):
        body = mechanism.body(f"link {i}", da.Box(size=(length, WIDTH, WIDTH), mass=mass), position=(reach + length / 2, 0, 0))
        joint = da.Revolute(axis="y", stiffness=STIFFNESS if i == 0 else 0.0, damping=damping)
        mechanism.joint(NAMES[i], joint, last or mechanism.world, body, at=(reach, 0, 0))
        last, reach = body, reach + length
    return mechanism


def bent(y):
    """A map that is not linear, of a single number."""
    return [y[0], 0.8 * y[0] + 0.1 * y[0] ** 2, np.sin(0.6 * y[0])]


def mapped(function=None, y=0.5, rate=1.0, **more) -> da.Mechanism:
    mechanism = chain(more.pop("damping", 0.0))
    mechanism.coordinate_map("curl", NAMES, **({"matrix": RATIOS} if function is None else {"function": function}), **more)
    mechanism.start("curl", y, rate=rate)
    return mechanism


def geared() -> da.Mechanism:
    mechanism = chain()
    for i, ratio in enumerate(RATIOS):
        if i > 0:
            mechanism.gear(f"gear {i}", NAMES[i], NAMES[0], ratio=float(ratio))
        mechanism.start(NAMES[i], 0.5 * ratio, rate=ratio)
    return mechanism


def one_freedom(function, slopes, duration, y=0.5, rate=1.0):
    """y and y' of the planar chain by the equation of its one freedom, M y'' + M' y'^2 / 2 + V' = 0; slopes by complex step."""

    def energies(y):
        turn = np.cumsum(np.array(function(np.array([y]))))
        dturn = np.cumsum(np.array(slopes(y)))
        x = z = dx = dz = M = V = 0.0
        for length, mass, t, dt in zip(LENGTHS, MASSES, turn, dturn):
            c, s = length * np.cos(t), -length * np.sin(t)
            M += mass * ((dx + s * dt / 2) ** 2 + (dz - c * dt / 2) ** 2) + mass * (length**2 + WIDTH**2) / 12 * dt**2
            V += mass * 9.81 * (z + s / 2)
            x, z, dx, dz = x + c, z + s, dx + s * dt, dz - c * dt
        return M, V + 0.5 * STIFFNESS * function(np.array([y]))[0] ** 2

    def flow(_, state):
        (M, V), h = energies(complex(state[0], 1e-30)), 1e-30
        return [state[1], -(V.imag / h + 0.5 * M.imag / h * state[1] ** 2) / M.real]

    return solve_ivp(flow, (0.0, duration), [y, rate], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]


LINEAR = (lambda y: RATIOS * y[0], lambda y: RATIOS)
BENT = (bent, lambda y: [1.0, 0.8 + 0.2 * y, 0.6 * np.cos(0.6 * y)])


@pytest.mark.parametrize(("make", "closed"), [(mapped, LINEAR), (lambda: mapped(bent), BENT)], ids=["matrix", "function"])
@pytest.mark.parametrize(("method", "order"), [("bdf1", 1), ("bdf2", 2), ("sdirk2", 2), ("pareschi_russo", 2)])
def test_reduced_tends_to_the_equation_of_one_freedom(make, closed, method, order):
    exact = one_freedom(*closed, 0.4)
    errors = []
    for dt in (0.01, 0.005):
        series = da.Simulation(make(), da.Reduced(dt=dt, method=method, tolerance=1e-12)).run(0.4).coordinate_map("curl")
        errors.append(abs(series.coordinates[-1] - exact[0]) + abs(series.rates[-1] - exact[1]))
    assert np.log2(errors[0] / errors[1]) > order - 0.15
    assert errors[1] < (0.05 if order == 1 else 2e-3)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_map_is_gears_or_a_constraint(name):
    """The same motion and the same joint forces as with gears; and with a function the exact motion, at second order."""
    formulation = FORMULATIONS[name](dt=0.005, tolerance=1e-12)
    runs = [da.Simulation(make(), formulation).run(0.3) for make in (mapped, geared)]
    for joint in NAMES:
        first, second = (run.joint(joint) for run in runs)
        np.testing.assert_allclose(first.coordinates, second.coordinates, atol=1e-9)
        np.testing.assert_allclose(first.force, second.force, atol=1e-6)
        np.testing.assert_allclose(first.torque, second.torque, atol=1e-6)
    assert runs[0].constraint_violation().max() < 1e-10
    errors = []
    for dt in (0.01, 0.005):
        run = da.Simulation(mapped(bent), FORMULATIONS[name](dt=dt, tolerance=1e-12)).run(0.3)
        assert run.constraint_violation().max() < 1e-9
        errors.append(abs(run.coordinate_map("curl").coordinates[-1] - one_freedom(*BENT, 0.3)[0]))
    assert np.log2(errors[0] / errors[1]) > 1.85
    assert errors[1] < 5e-4


def test_energy_falls_fourfold_per_halving():
    drift = [np.ptp(da.Simulation(mapped(bent), da.Reduced(dt=dt)).run(1.0).energy().total) for dt in (0.01, 0.005, 0.0025)]
    assert min(np.log2(drift[0] / drift[1]), np.log2(drift[1] / drift[2])) > 1.85


def test_compiled_and_python_functions_agree():
    @numba.njit
    def compiled(y):
        return np.array([y[0], 0.8 * y[0] + 0.1 * y[0] ** 2, np.sin(0.6 * y[0])])

    @numba.njit
    def slopes(y):
        return np.array([[1.0], [0.8 + 0.2 * y[0]], [0.6 * np.cos(0.6 * y[0])]])

    given = [{}, {"jacobian": lambda y: BENT[1](y[0])}]
    runs = [da.Simulation(mapped(bent, **more), da.Reduced(dt=0.01)).run(0.3) for more in given]
    runs += [da.Simulation(mapped(compiled, **more), da.Reduced(dt=0.01)).run(0.3) for more in ({}, {"jacobian": slopes})]
    for run in runs[1:]:
        np.testing.assert_allclose(run.position, runs[0].position, atol=1e-9)


def branched(damping: float = 0.0) -> da.Mechanism:
    """Two numbers that set four coordinates, those of a universal joint among them; free joints above, between and below; a spring."""
    rng = np.random.default_rng(3)
    mechanism, last, names = da.Mechanism("branched"), None, []
    kinds = [da.Revolute(axis="y", damping=0.1), da.Universal(), da.Revolute(axis=[1, 2, 3], stiffness=2.0, armature=0.3), da.Spherical(damping=0.2),
             da.Prismatic(axis="x"), da.Revolute(axis="z")]
    for i, kind in enumerate(kinds):
        body = mechanism.body(f"body {i}", da.Box(size=(0.5, 0.2, 0.1), mass=1.0 + 0.2 * i), position=(0.5 * i + 0.25, 0, 0.1 * rng.normal()))
        names.append(mechanism.joint(f"joint {i}", kind, last or mechanism.world, body, at=(0.5 * i, 0, 0)).name)
        last = body
    mechanism.path("spring", [("body 1", (0.9, 0.1, 0.0)), ("world", (1.0, 1.0, 1.0)), ("body 5", (2.8, 0, 0))], stiffness=30.0, damping=damping)
    mechanism.coordinate_map(
        "map", [("joint 1", 0), "joint 4", ("joint 1", 1), "joint 2"], coordinates=2,
        function=lambda y: [y[0] + 0.3 * y[1] ** 2, 0.5 * y[1] - y[0] * y[1], y[1] - 0.2 * y[0] ** 2, 0.4 * y[0] + 0.6 * y[1]],
    )
    return mechanism


def test_newton_takes_the_direction_that_differences_give():
    rng = np.random.default_rng(0)
    engine = da.Reduced(dt=0.01).engine(branched())
    tree, own, ties, c = engine.tree.nodes, engine.own, engine.ties, 0.05
    stage = Stage(engine.model, tree, engine.work, own, ties, c)
    nodes, numbers, rows = own.nodes, own.maps.own, ties.rows
    free = [(i, j) for i, node in enumerate(tree) for j in range(int(node["count"])) if node["driven"] != FOLLOWER]
    index = tuple(np.array(free).T)
    nodes["aq"], nodes["av"] = 0.3 * rng.normal(size=nodes["aq"].shape), rng.normal(size=nodes["av"].shape)
    nodes["turn"] = [1.0, 0.0, 0.0, 0.0]
    numbers["ay"], numbers["av"] = [0.3, -0.2], [0.7, 0.4]
    pushing = rows["kind"] != MOVED
    rows["mu"][pushing] = 0.0
    rows["mu"][0] = 3.0  # the tension of the spring

    def equations(unknowns):
        v, u, mu = np.split(unknowns, [len(free), len(free) + 2])
        nodes["v"][index], numbers["v"], rows["mu"][0] = v, u, mu[0]
        residual(stage)
        return np.concatenate([nodes["g"][index], rows["r"][~pushing], rows["r"][:1]])

    at = np.concatenate([rng.normal(size=len(free) + 2), [3.0]])
    h, count = 1e-4, len(free) + 3
    steps = h * np.eye(count)
    first, second, third = (np.array([equations(at + k * e) - equations(at - k * e) for e in steps]).T for k in (1, 2, 3))
    H = (45.0 * first - 9.0 * second + third) / (60.0 * h)
    g = equations(at)
    assert factorise(stage, 0.0)[1]
    direction(stage, False)
    found = np.concatenate([nodes["dq"][index] / c, rows["dmu"][~pushing] / c, rows["dmu"][:1]])
    expected = np.linalg.solve(H, g)
    # rates of a quadratic map have a third derivative of zero: the matrix is exact
    assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()


def test_two_numbers_with_free_joints_and_a_spring_agree_with_implicit():
    apart = []
    for dt in (0.004, 0.002):
        ends = [da.Simulation(branched(1.0), formulation(dt=dt, tolerance=1e-12)).run(0.2).position[-1] for formulation in (da.Reduced, da.Implicit)]
        apart.append(np.abs(ends[0] - ends[1]).max())
    assert np.log2(apart[0] / apart[1]) > 1.85
    assert apart[1] < 2e-5


def test_set_joint_moves_the_whole_map():
    for formulation in (da.Reduced(dt=0.01), da.Variational(dt=0.01)):
        sim = da.Simulation(mapped(bent), formulation)
        sim.set_joint("curl", 0.8, rate=-0.5)
        run = sim.run(0.01)
        for name, q, slope in zip(NAMES, bent([0.8]), BENT[1](0.8)):
            assert run.joint(name).coordinates[0] == pytest.approx(q, abs=1e-9)
            assert run.joint(name).rates[0] == pytest.approx(-0.5 * slope, abs=1e-8)


# ---- bad input


def test_a_map_with_a_kink_is_refused_where_it_is_used():
    def kinked(y):
        return [y[0], abs(y[0] - 0.9), 0.0]

    with pytest.raises(ModelError, match=r"'curl'.*not differentiable near y = \[0\.9.*'joint 1'"):
        da.Simulation(mapped(kinked), da.Reduced(dt=0.01)).run(1.0)
    with pytest.raises(ModelError, match=r"'curl'.*not differentiable near y = \[0.*'joint 1'"):
        chain().coordinate_map("curl", NAMES, function=lambda y: [y[0], abs(y[0]), 0.0])


def test_a_map_that_ends_is_refused_where_it_ends():
    def ending(y):
        return [y[0], np.sqrt(0.9 - y[0]) if y[0] <= 0.9 else np.nan, 0.0]

    with pytest.raises(ModelError, match=r"'curl'.*not finite"):
        da.Simulation(mapped(ending), da.Reduced(dt=0.01)).run(1.0)


@pytest.mark.parametrize(("more", "message"), [
    ({}, "needs a matrix or a function"),
    ({"matrix": [1.0, 2.0]}, "one row per joint, 3"),
    ({"matrix": np.ones((3, 2))}, "two move them alike"),
    ({"matrix": [0.0, 0.0, 0.0]}, "move no joint"),
    ({"function": lambda y: [1.0, 2.0]}, "shape"),
    ({"function": lambda y: 1 / 0}, "ZeroDivisionError"),
    ({"function": bent, "coordinates": 4}, "from 1 to 3"),
    ({"function": bent, "offset": 1.0}, "into the function"),
    ({"matrix": RATIOS, "jacobian": bent}, "needs no jacobian"),
    ({"matrix": [1.0, np.nan, 0.0]}, "finite"),
])
def test_bad_maps_are_refused(more, message):
    with pytest.raises(ModelError, match=message):
        chain().coordinate_map("curl", NAMES, **more)


def test_joints_that_cannot_follow_are_refused():
    mechanism = chain()
    ball = mechanism.body("ball", da.Sphere(radius=0.1, mass=1.0))
    mechanism.joint("socket", da.Spherical(), "link 2", ball)
    mechanism.joint("motor", da.Revolute(drive="motion"), "link 2", mechanism.body("wheel", da.Sphere(radius=0.1, mass=1.0)))
    for joints, message in ((["socket"], "no slide or single turn"), (["motor"], "follows a target"), (["link 0"], "needs joints"), (["joint 0"] * 2, "once"), ([], "needs joints")):
        with pytest.raises(ModelError, match=message):
            mechanism.coordinate_map("map", joints, matrix=np.ones(len(joints)))
    mechanism.coordinate_map("map", ["joint 0"], matrix=[1.0])
    with pytest.raises(ModelError, match="already"):
        mechanism.coordinate_map("other", ["joint 0"], matrix=[1.0])


@pytest.mark.parametrize("method", ["rk4", "DOP853"])
def test_methods_of_rates_of_change_keep_a_map_as_a_constraint(method):
    run = da.Simulation(mapped(bent), da.Reduced(dt=0.005, method=method)).run(0.3)
    exact = one_freedom(*BENT, 0.3)
    assert abs(run.coordinate_map("curl").coordinates[-1] - exact[0]) < 1e-5
    assert run.constraint_violation().max() < 1e-8


def test_limits_stop_joints_that_follow_a_map():
    """The whole finger stops where its second joint meets the end of its range, in every formulation at the same time."""
    stops = []
    for formulation in (da.Reduced(dt=0.002), da.Variational(dt=0.002)):
        mechanism = da.Mechanism("finger")
        bone, tip = (mechanism.body(name, da.Box(size=(0.5, 0.05, 0.05), mass=1.0), position=(x, 0, 0)) for name, x in (("bone", 0.25), ("tip", 0.75)))
        mechanism.joint("knuckle", da.Revolute(axis="y"), mechanism.world, bone)
        mechanism.joint("end", da.Revolute(axis="y", limits=(-1.0, 0.4)), bone, tip, at=(0.5, 0, 0))
        mechanism.coordinate_map("curl", ["knuckle", "end"], matrix=[1.0, 0.5])
        run = da.Simulation(mechanism, formulation).run(0.8)
        assert run.joint("end").coordinates.max() < 0.4 + 1e-6
        np.testing.assert_allclose(run.joint("knuckle").coordinates, 2.0 * run.joint("end").coordinates, atol=1e-8)
        stops.append(run.time[np.argmax(run.joint("end").coordinates > 0.4 - 1e-3)])
        assert abs(run.joint("end").rates[-1]) < 1e-6
    assert abs(stops[0] - stops[1]) < 0.005
