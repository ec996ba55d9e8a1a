"""Small runs through every kernel that users reach: all formulations and methods, trees, loops, drives, contact; readings, single steps, gradients."""
from __future__ import annotations

import warnings

import numpy as np

import dalembert as da
from dalembert.formulations.reduced.options import METHODS

FORMULATIONS = [
    da.Variational(dt=1e-3), da.Variational(dt=1e-3, cone="linear"), da.Variational(dt=1e-3, events="exact"),
    *(da.Implicit(dt=1e-3, method=method) for method in ("bdf1", "bdf2", "sdirk2", "pareschi_russo", "semi_implicit")),
    *(da.Reduced(dt=1e-3, method=method) for method in METHODS),
]


def machine() -> da.Mechanism:
    """A loop with a servo, a gear, a cable and a driven joint."""
    m = da.Mechanism("machine")
    for name, x in (("crank", 0.0), ("rocker", 1.0)):
        m.body(name, da.Box(size=(0.05, 0.05, 1.0), mass=1.0), position=(x, 0, 0.5))
    m.body("coupler", da.Box(size=(1.0, 0.05, 0.05), mass=1.0), position=(0.5, 0, 1))
    m.body("wheel", da.Cylinder(radius=0.1, length=0.05, mass=0.5, axis="y"), position=(2, 0, 0))
    m.body("flag", da.Sphere(radius=0.1, mass=0.2), position=(2, 0, 0.5))
    m.joint("drive", da.Revolute(axis="y", drive="motion"), "world", "crank")
    m.joint("a", da.Revolute(axis="y", damping=0.1), "crank", "coupler", at=(0, 0, 1))
    m.joint("b", da.Revolute(axis="y"), "coupler", "rocker", at=(1, 0, 1))
    m.joint("c", da.Revolute(axis="y", stiffness=1.0), "rocker", "wheel", at=(1, 0, 0))
    m.joint("axle", da.Revolute(axis="y", servo=da.Servo(stiffness=10.0, damping=1.0)), "world", "wheel", at=(2, 0, 0))
    m.joint("ball", da.Spherical(damping=0.01), "wheel", "flag", at=(2, 0, 0.2))
    m.cable("cord", [("world", (2, 0, 2)), ("flag", (2, 0, 0.5))], stiffness=10.0, damping=0.1)
    return m


def boxes() -> da.Mechanism:
    """Bodies of every shape on the ground and on one another, with limits and dry friction."""
    m = da.Mechanism("boxes")
    m.ground()
    shapes = [da.Box(size=(0.2, 0.2, 0.2), mass=1.0), da.Sphere(radius=0.1, mass=1.0), da.Capsule(radius=0.1, length=0.2, mass=1.0), da.Cylinder(radius=0.1, length=0.2, mass=1.0)]
    for k, shape in enumerate(shapes):
        m.body(f"low {k}", shape, position=(0.5 * k, 0, 0.2 if k == 2 else 0.1), collide=True)
        m.body(f"high {k}", da.Box(size=(0.1, 0.1, 0.1), mass=0.2), position=(0.5 * k, 0, 0.5), collide=True)
    m.body("door", da.Box(size=(0.4, 0.02, 0.4), mass=1.0), position=(0.2, 1, 1))
    m.joint("hinge", da.Revolute(axis="z", limits=(-0.5, 0.5), friction=0.05, drive="force"), "world", "door", at=(0, 1, 1))
    return m


def reach(mechanism: da.Mechanism, formulation: object) -> None:
    try:
        sim = da.Simulation(mechanism, formulation)  # type: ignore[arg-type]
        run = sim.run(3e-3)
        run.complete()
        sim.step()
        sim.run(2e-3, control=lambda sim: {})
        for look in (sim.energy, sim.latest().complete, run.energy, run.momentum, run.constraint_violation):
            look()
        tape = da.Simulation(mechanism, formulation).run(3e-3, tape=True)  # type: ignore[arg-type]
        bars = {"position": np.ones_like(tape.position), "velocity": np.ones_like(tape.velocity), "energy": np.ones(len(tape))}
        tape.vjp(bars, ["gravity", f"{mechanism.bodies[0].name}.mass"])
        tape.jvp({"gravity": np.array([0.0, 0.0, 1.0])})
    except (da.DalembertError, NotImplementedError) as refused:
        print(f"{mechanism.name} in {formulation}: {str(refused)[:100]}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for formulation in FORMULATIONS:
        for mechanism in (da.zoo.double_pendulum(), machine(), boxes()):
            print(mechanism.name, formulation, flush=True)
            reach(mechanism, formulation)
    algebra = da.Algebra(da.zoo.double_pendulum())
    q = np.zeros(2)
    algebra.mass_matrix(q)
    algebra.bias_forces(q, q)
    algebra.inverse_dynamics(q, q, q)
    algebra.forward_dynamics(q, q, q)
    pendulum = da.Simulation(da.zoo.double_pendulum(), da.Variational(dt=1e-3))
    for look in (pendulum.linearise, pendulum.equilibrium, pendulum.modes):
        look()
