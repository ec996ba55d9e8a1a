"""An arm with a cable-driven elbow in all three formulations: one answer, in joint coordinates at less error per step.

A shoulder on a ball, an elbow pulled by a stiff tendon, a wrist on a slide. The same mechanism goes into Variational, Implicit
and Reduced; their ends are compared with ever smaller steps, and with DOP853 at a tight tolerance. Writes the arm's motion to
out/reduced_arm.html, with a picture, out/reduced_arm.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da


def arm() -> da.Mechanism:
    """Upper arm, forearm and a hand that slides, with a tendon from the upper arm to the forearm."""
    mechanism = da.Mechanism("arm with a tendon")
    upper = mechanism.body("upper", da.Rod(length=0.4, mass=2.0, radius=0.03, axis="x"), position=(0.2, 0, 0))
    lower = mechanism.body("lower", da.Rod(length=0.4, mass=1.2, radius=0.025, axis="x"), position=(0.6, 0, 0))
    hand = mechanism.body("hand", da.Box(size=(0.1, 0.06, 0.03), mass=0.4), position=(0.85, 0, 0))
    mechanism.joint("shoulder", da.Spherical(), mechanism.world, upper)
    mechanism.joint("elbow", da.Revolute(axis="y"), upper, lower, at=(0.4, 0, 0))
    mechanism.joint("wrist", da.Prismatic(axis="x", stiffness=400.0), lower, hand, at=(0.8, 0, 0))
    mechanism.cable("tendon", [(upper, (0.1, 0, 0.05)), (lower, (0.5, 0, 0.05))], stiffness=3000.0, damping=5.0, length=0.38)
    mechanism.start("shoulder", (0.0, 0.0, 0.0), rate=(0.0, 0.0, 2.0))
    return mechanism


STEPS, LENGTH = (0.004, 0.002, 0.001), 0.5  # s
METHODS = {
    "Variational": lambda dt: da.Variational(dt=dt),
    "Implicit bdf2": lambda dt: da.Implicit(dt=dt),
    "Reduced bdf2": lambda dt: da.Reduced(dt=dt),
    "Reduced sdirk2": lambda dt: da.Reduced(dt=dt, method="sdirk2"),
}
exact = da.Simulation(arm(), da.Reduced(dt=LENGTH, method="DOP853", rtol=1e-11, atol=1e-12)).run(LENGTH)
ends = {name: [da.Simulation(arm(), make(dt)).run(LENGTH) for dt in STEPS] for name, make in METHODS.items()}
errors = {name: [np.abs(run.position[-1] - exact.position[-1]).max() for run in runs] for name, runs in ends.items()}
forces = {name: np.linalg.norm(runs[-1].joint("shoulder").force[-1]) for name, runs in ends.items()}
pull = np.linalg.norm(exact.joint("shoulder").force[-1])

print("largest error of a position, m".ljust(34) + "".join(f"{f'dt {dt:g}':>11}" for dt in STEPS) + "   force in the shoulder, N")
for name, values in errors.items():
    print(name.ljust(34) + "".join(f"{value:11.1e}" for value in values) + f"{forces[name]:12.4f}")
print("DOP853".ljust(67) + f"{pull:12.4f}")

Path("out").mkdir(exist_ok=True)
ends["Reduced bdf2"][-1].to_html("out/reduced_arm.html")
ends["Reduced bdf2"][-1].snapshot("out/reduced_arm.png", time=0.3)
slack = min(run.path("tendon").tension.min() for runs in ends.values() for run in runs)
falls = all(values[0] > 8 * values[2] for values in errors.values())  # second order: 16
if not (falls and all(abs(force - pull) < 0.1 for force in forces.values()) and slack > -1e-9):
    raise SystemExit("the formulations do not agree")
