"""A bicycle that balances by itself: the benchmark bicycle of Meijaard and others (2007), pushed from the side at 5 m/s.

Nobody rides: the frame leans, the fork steers into the lean, and the weave dies out. Rigid wheels roll on rigid ground. Its frequency and decay are compared with
the published eigenvalue -0.775 + 4.465i 1/s. Writes out/bicycle.html and out/bicycle.png.
"""
from pathlib import Path

import numpy as np
from scipy.optimize import curve_fit

import dalembert as da

SPEED, TILT, WEAVE = 5.0, np.pi / 10, -0.77534 + 4.46487j
bicycle = da.Mechanism("bicycle")
bicycle.ground(friction=1.0)


def wheel(name: str, x: float, radius: float, mass: float, across: float, about: float) -> None:
    """Thin and round: an ellipsoid touches where the rim does."""
    body = bicycle.body(name, mass=mass, inertia=np.diag([across, about, across]), position=(x, 0, radius))
    bicycle.collider(f"{name} rim", body, da.Ellipsoid(semi_axes=(radius, 0.002, radius), mass=1.0))


def upright(values: tuple[float, float, float, float]) -> np.ndarray:
    """Inertia from (xx, yy, zz, xz), in axes with z up: the published ones have z down."""
    xx, yy, zz, xz = values
    return np.array([[xx, 0, -xz], [0, yy, 0], [-xz, 0, zz]])


wheel("rear wheel", 0.0, 0.3, 2.0, 0.0603, 0.12)
wheel("front wheel", 1.02, 0.35, 3.0, 0.1405, 0.28)
bicycle.body("frame", mass=85.0, inertia=upright((9.2, 11.0, 2.8, 2.4)), position=(0.3, 0, 0.9))
bicycle.body("fork", mass=4.0, inertia=upright((0.05892, 0.06, 0.00708, -0.00756)), position=(0.9, 0, 0.7))
for p, q in (((0, 0, 0.3), (0.35, 0, 0.85)), ((0.35, 0, 0.85), (0.8, 0, 0.85)), ((0.35, 0, 0.85), (0.45, 0, 0.3)), ((0.45, 0, 0.3), (0, 0, 0.3)), ((0.45, 0, 0.3), (0.8, 0, 0.85))):
    tube = da.Rod.between(p, q, radius=0.02, mass=1.0)
    bicycle.visual("frame", tube.shape, position=np.subtract(tube.position, (0.3, 0, 0.9)), colour=(0.2, 0.35, 0.6, 1.0))
steer = (-np.sin(TILT), 0.0, np.cos(TILT))  # up along the head tube
bicycle.joint("rear axle", da.Revolute(axis="y"), "frame", "rear wheel", at=(0, 0, 0.3))
bicycle.joint("head", da.Revolute(axis=steer), "frame", "fork", at=(1.02 + 0.08 - 0.9 * np.tan(TILT), 0, 0.9))
bicycle.joint("front axle", da.Revolute(axis="y"), "fork", "front wheel", at=(1.02, 0, 0.35))

sim = da.Simulation(bicycle, da.Variational(dt=0.001))
sim.set_velocity("frame", linear=(SPEED, 0, 0), angular=(0, 0, 0))
sim.set_joint("rear axle", rate=SPEED / 0.3)
sim.set_joint("front axle", rate=SPEED / 0.35)
run = sim.run(2.5, control=lambda sim: {"frame": (0, 30 if sim.time < 0.1 else 0, 0, 0, 0, 0)})

late = run.time > 0.8
steering, t = run.joint("head").coordinates[late], run.time[late]
fit, _ = curve_fit(lambda t, a, b, s, w, c, r: np.exp(s * t) * (a * np.cos(w * t) + b * np.sin(w * t)) + c * np.exp(r * t), t, steering, p0=(0.1, 0.1, -0.8, 4.5, 0.0, -0.3))
print(f"weave: {fit[2]:.3f} + {fit[3]:.3f}i 1/s, published {WEAVE.real:.3f} + {WEAVE.imag:.3f}i; it leans by {np.abs(run.body('frame').orientation[:, 1]).max() * 2:.3f} rad at most")
Path("out").mkdir(exist_ok=True)
run.snapshot("out/bicycle.png", time=0.4, follow="frame", show="contacts")
run.to_html("out/bicycle.html")
if not abs(complex(fit[2], fit[3]) - WEAVE) < 0.15:
    raise SystemExit("this is another bicycle")
