"""A finger of three bones that one tendon bends: springs hold it open, a cable over five points pulls it shut.

In rest, the torque of each spring is the tension times the cable's lever about that joint. Writes out/tendon_finger.html and out/tendon_finger.png.
"""
from pathlib import Path

import numpy as np

import dalembert as da

LENGTH, TENSION, STIFFNESS, LEVER = 0.04, 2.0, (0.06, 0.05, 0.04), 0.008  # m, N, N m/rad, m

finger = da.Mechanism("tendon finger", gravity=(0, 0, 0))
route: list = [("world", (-0.01, 0, -LEVER))]
last = "world"
for k, stiffness in enumerate(STIFFNESS):
    bone = finger.body(f"bone {k}", da.Box(size=(LENGTH, 0.012, 0.012), mass=0.01), position=(LENGTH * (k + 0.5), 0, 0))
    finger.joint(f"joint {k}", da.Revolute(axis="y", stiffness=stiffness, damping=2e-3), last, bone, at=(LENGTH * k, 0, 0))
    route.append((bone, (LENGTH * (k + 0.25), 0, -LEVER)))
    route += [(bone, (LENGTH * (k + 0.75), 0, -LEVER))] if k < 2 else []
    last = bone.name
finger.path("tendon", route, drive="force")

sim = da.Simulation(finger, da.Variational(dt=1e-3))
run = sim.run(1.5, control=lambda sim: {"tendon": TENSION * min(sim.time / 0.5, 1.0)})


def lever(k: int, step: float = 1e-5) -> float:
    """How the length of the cable changes with a joint's angle: by differences."""
    lengths = []
    for sign in (-1, 1):
        other = da.Simulation(finger, da.Variational(dt=1e-3))
        for i in range(3):
            other.set_joint(f"joint {i}", run.joint(f"joint {i}").coordinates[-1] + sign * step * (i == k))
        lengths.append(other.path_length("tendon"))
    return (lengths[1] - lengths[0]) / (2 * step)


angles = np.array([run.joint(f"joint {k}").coordinates[-1] for k in range(3)])
levers = np.array([lever(k) for k in range(3)])
miss = np.abs(np.array(STIFFNESS) * angles + TENSION * levers).max() / (TENSION * LEVER)
print(f"the joints bend by {', '.join(f'{np.degrees(a):.1f}' for a in angles)} degrees; levers of the cable {', '.join(f'{-1000 * arm:.2f}' for arm in levers)} mm")
print(f"springs and tendon balance within {miss:.1e}; the tension is {run.path('tendon').tension[-1]:.3f} N, the cable {1000 * np.ptp(run.path('tendon').length):.2f} mm shorter")
Path("out").mkdir(exist_ok=True)
run.snapshot("out/tendon_finger.png")
run.to_html("out/tendon_finger.html")
if not (miss < 1e-3 and np.all(np.abs(angles) > 0.1)):
    raise SystemExit("the finger is not in balance")
