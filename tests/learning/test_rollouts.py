"""Rollouts in PyTorch and JAX: their own checkers of gradients, batches, and what is wrong with bad input."""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import dalembert as da

METHOD, STEPS = da.Variational(dt=0.02, tolerance=1e-13), 5
DURATION = STEPS * METHOD.dt
OUTPUTS = ("position", "orientation", "velocity", "angular_velocity", "coordinate", "rate", "energy")
VALUES = {
    "elbow.damping": np.array(0.2), "lower.mass": np.array(0.6), "shoulder.start": np.array([0.3, -0.2]),
    "elbow.start_rate": np.array([0.5, 0.1]), "elbow.input": np.linspace(-1.0, 1.0, STEPS),
}


def arm() -> da.Mechanism:
    mechanism = da.Mechanism("arm")
    upper = mechanism.body("upper", da.Rod(length=1.0, mass=1.0, radius=0.05, axis="x"), position=(0.5, 0, 0))
    lower = mechanism.body("lower", da.Rod(length=0.8, mass=0.6, radius=0.04, axis="x"), position=(1.4, 0, 0))
    mechanism.joint("shoulder", da.Universal(axes=("y", "z"), damping=0.1), mechanism.world, upper)
    mechanism.joint("elbow", da.Revolute(axis="y", damping=0.2, drive="force"), upper, lower, at=(1, 0, 0))
    return mechanism


def loop() -> da.Mechanism:
    return da.zoo.n_four_bar(1)


def by_hand(values: dict[str, np.ndarray], name: str = "position") -> np.ndarray:
    """What a run of a simulation that is set up step by step gives."""
    sim = da.Simulation(arm(), METHOD)
    sim.set_parameters({name: value for name, value in values.items() if name in sim.parameters()})
    sim.set_joint("shoulder", values["shoulder.start"])
    sim.set_joint("elbow", rate=values["elbow.start_rate"])
    torques = iter(values["elbow.input"])
    return getattr(sim.run(DURATION, control=lambda _: {"elbow": next(torques)}), name)


def one(batch: int) -> dict[str, np.ndarray]:
    """A member of the batch of two."""
    return {**VALUES, "elbow.start_rate": VALUES["elbow.start_rate"][batch]}


class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        return pytest.importorskip("torch")

    @pytest.fixture
    def f(self):
        return da.torch.rollout(arm(), METHOD, DURATION, OUTPUTS)

    def test_gradcheck_of_a_batch(self, torch, f):
        tensors = [torch.tensor(value, requires_grad=True) for value in VALUES.values()]
        weights = [torch.randn(shape, dtype=torch.float64) for shape in (f.rollout.output_shape(name) for name in OUTPUTS)]

        def loss(*tensors):
            found = f(dict(zip(VALUES, tensors)))
            return torch.stack([(weight * found[name]).sum() for name, weight in zip(OUTPUTS, weights)])

        assert torch.autograd.gradcheck(loss, tensors, eps=1e-5, atol=1e-7, rtol=1e-6)

    def test_what_it_gives_is_what_runs_give(self, torch, f):
        found = f({name: torch.tensor(value) for name, value in VALUES.items()})
        for name in ("position", "orientation", "velocity"):
            for k in range(2):
                np.testing.assert_allclose(found[name][k], by_hand(one(k), name), atol=1e-12)

    def test_a_closed_loop(self, torch):
        mechanism = loop()
        crank = mechanism.joints[0].name
        f = da.torch.rollout(mechanism, METHOD, DURATION, ["position", "rate"])
        values = torch.tensor([0.3, 0.5], dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(lambda x: f({f"{crank}.start_rate": x})["rate"], [values], eps=1e-4, atol=1e-7, rtol=1e-6)

    def test_single_precision_and_modules(self, torch, f):
        """Torques of a network: its weights get gradients, in their own precision."""
        network = torch.nn.Linear(1, 1)
        time = torch.linspace(0, 1, STEPS)[:, None]
        found = f({"elbow.input": network(time)[:, 0]})["coordinate"]
        found[-1, 1, 0].backward()
        assert found.dtype == torch.float32
        assert network.weight.grad.dtype == torch.float32
        assert network.weight.grad.abs() > 0

    def test_without_gradients_no_tape_is_made(self, torch, f):
        reduced = da.torch.rollout(arm(), da.Reduced(dt=0.02, method="rk4"), DURATION)  # cannot be differentiated
        assert reduced({"elbow.damping": torch.tensor(0.1)})["position"].shape == (STEPS + 1, 2, 3)

    @pytest.mark.parametrize(("values", "said"), [
        ({}, "at least one value"), ({"elbow.mass": 1.0}, "no parameter 'elbow.mass'"), ({"shoulder.start": [1.0]}, r"must have shape \(2,\)"),
        ({"elbow.damping": [1.0, 2.0], "lower.mass": [1.0, 2.0, 3.0]}, "disagree"),
    ])
    def test_bad_values(self, torch, f, values, said):
        with pytest.raises(da.GradientError, match=said):
            f({name: torch.tensor(value) for name, value in values.items()})


class TestJax:
    @pytest.fixture(autouse=True)
    def jax(self):
        jax = pytest.importorskip("jax")
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", True)
        yield jax
        jax.config.update("jax_enable_x64", before)

    @pytest.fixture
    def loss(self, jax):
        f = da.jax.rollout(arm(), METHOD, DURATION, OUTPUTS)
        return lambda values: sum(jax.numpy.sin(3.0 * array).sum() for array in f(values).values())

    def test_check_grads_of_a_batch(self, jax, loss):
        from jax.test_util import check_grads  # pyright: ignore[reportMissingImports]

        check_grads(loss, (VALUES,), order=1, modes=["rev"], eps=1e-5, atol=1e-6, rtol=1e-6)

    def test_inside_jit_and_vmap(self, jax, loss):
        """The gradient of a batch is that of its members, however they are put together."""
        plain = jax.grad(loss)(VALUES)
        np.testing.assert_allclose(jax.jit(jax.grad(loss))(VALUES)["elbow.input"], plain["elbow.input"], rtol=1e-12)
        axes = {name: 0 if name == "elbow.start_rate" else None for name in VALUES}
        mapped = jax.vmap(jax.grad(loss), in_axes=(axes,))(VALUES)
        np.testing.assert_allclose(mapped["elbow.start_rate"], plain["elbow.start_rate"], rtol=1e-12)
        np.testing.assert_allclose(mapped["lower.mass"].sum(), plain["lower.mass"], rtol=1e-12)

    def test_what_it_gives_is_what_runs_give(self, jax):
        f = da.jax.rollout(arm(), METHOD, DURATION)
        np.testing.assert_allclose(f(VALUES)["position"][1], by_hand(one(1)), atol=1e-12)

    def test_single_precision(self, jax):
        jax.config.update("jax_enable_x64", False)
        f = da.jax.rollout(arm(), METHOD, DURATION, ["energy"])
        gradient = jax.grad(lambda mass: f({"lower.mass": mass})["energy"][-1])(0.6)
        assert gradient.dtype == np.float32
        assert abs(gradient) > 0

    def test_bad_values(self, jax):
        f = da.jax.rollout(arm(), METHOD, DURATION)
        with pytest.raises(da.GradientError, match="no parameter"):
            f({"elbow.mass": 1.0})
        with pytest.raises(da.GradientError, match="at least one"):
            f({})


@pytest.mark.parametrize("outputs", ["position", [], ["place"]])
def test_outputs_must_be_known(outputs):
    pytest.importorskip("torch")
    with pytest.raises(da.GradientError, match="outputs of a rollout"):
        da.torch.rollout(arm(), METHOD, DURATION, outputs)


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_a_missing_package_is_named(package, monkeypatch):
    mechanism = arm()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(da.MissingExtraError, match=rf"dalembert\[{package}\]"):
        getattr(da, package).rollout(mechanism, METHOD, DURATION)


def test_neither_is_imported_with_dalembert():
    program = "import sys, dalembert; assert not {'torch', 'jax'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
