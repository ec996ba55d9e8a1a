"""Forward dynamics in linear time, against the inverse dynamics of the same trees: every tree joint, also read backwards."""
import numpy as np
import pytest
from test_tree_solve import JOINTS, SPLINES, random_tree

import dalembert as da
from dalembert.formulations.reduced.engine import ReducedEngine
from dalembert.formulations.reduced.equations import Stage, inverse_dynamics
from dalembert.formulations.reduced.forward import Flow, forward_dynamics, inverse_inertia, new_flow
from dalembert.model.tree import POINT


def in_motion(seed: int):
    """An engine of a random tree with forward dynamics in motion, and the same motion for inverse dynamics."""
    rng = np.random.default_rng(seed)
    engine = ReducedEngine(random_tree(9, rng, (*SPLINES, *SPLINES, *JOINTS)), da.Reduced(dt=0.01))
    tree = engine.tree.nodes
    own = new_flow(tree)
    nodes = own.nodes
    count = tree["count"][:, None] > np.arange(3)
    nodes["v"] = np.where(count, rng.normal(size=(len(tree), 3)), 0.0)
    nodes["x"][:, :2] = np.where(((tree["count"] == 1) | (tree["count"] == 2))[:, None], rng.uniform(0.2, 0.9, size=(len(tree), 2)), 0.0)
    start = rng.normal(size=(len(tree), 4))
    point = tree["kind"] == POINT
    nodes["turn"][point] = (start / np.linalg.norm(start, axis=1, keepdims=True))[point]
    return engine, own, count, rng


def asked(engine, nodes, acceleration):
    """What inverse dynamics says is missing along the coordinates, (nodes, 3)."""
    own = engine.own.nodes
    for name in ("x", "v", "turn"):
        own[name] = nodes[name]
    own["a"] = acceleration
    assert inverse_dynamics(Stage(engine.model, engine.tree.nodes, engine.work, engine.own, engine.ties, 1.0))
    return own["g"].copy(), own["tau"].copy()


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_inverse_dynamics_of_the_accelerations_leaves_nothing(seed, loaded):
    engine, own, count, rng = in_motion(seed)
    nodes = own.nodes
    engine.work.joints["input"] = rng.normal(size=engine.work.joints["input"].shape)
    if loaded:
        engine.work.bodies["push"][:-1] = rng.normal(size=(len(engine.mechanism.bodies), 6))
    assert forward_dynamics(Flow(engine.model, engine.tree.nodes, engine.work, own, engine.ties, loaded, True, False))
    missing, _ = asked(engine, nodes, nodes["a"])
    assert np.abs(missing[count]).max() < 1e-10 * max(1.0, np.abs(nodes["a"][count]).max())


@pytest.mark.parametrize("seed", range(6))
def test_given_accelerations_are_kept_and_their_forces_found(seed):
    engine, own, count, rng = in_motion(seed)
    nodes = own.nodes
    tree = engine.tree.nodes
    given = rng.random(len(tree)) < 0.5
    tree["driven"] = given & (tree["count"] > 0)
    nodes["a"] = np.where(count, rng.normal(size=nodes["a"].shape), 0.0)
    wanted = nodes["a"].copy()
    assert forward_dynamics(Flow(engine.model, tree, engine.work, own, engine.ties, False, False, False))
    assert np.array_equal(nodes["a"][given], wanted[given])
    tree["driven"] = 0
    missing, laws = asked(engine, nodes, nodes["a"])
    laws[:, 0] += tree["rotor"] * nodes["a"][:, 0]
    held = np.where(given[:, None] & count, nodes["tau"] - laws, 0.0)
    assert np.abs((missing - held)[count]).max() < 1e-10 * max(1.0, np.abs(nodes["tau"][count]).max())


def test_inverse_inertia_undoes_the_mass_matrix():
    engine, own, count, rng = in_motion(3)
    nodes = own.nodes
    flow = Flow(engine.model, engine.tree.nodes, engine.work, own, engine.ties, False, False, False)
    assert forward_dynamics(flow)
    wanted = np.where(count, rng.normal(size=nodes["tau"].shape), 0.0)
    own.answers["f"] = wanted
    inverse_inertia(flow)
    found = own.answers["a"]
    change = asked(engine, nodes, found)[0] - asked(engine, nodes, np.zeros_like(found))[0]
    assert np.abs((change - wanted)[count]).max() < 1e-10 * np.abs(found[count]).max()
