"""A gripper closes on a box by a force, lifts it and shakes it: dry friction holds what two rigid jaws press.

The jaws slide on a hand, tied by a gear so that they move alike. The box would slip where friction times the press is less than
its share of weight and shaking. Writes out/parallel_gripper.png and out/parallel_gripper.html.
"""
from pathlib import Path

import numpy as np

import dalembert as da

PRESS, MASS, FRICTION = 20.0, 1.0, 0.6  # N on each jaw, kg, coefficient

gripper = da.Mechanism("gripper")
gripper.ground(friction=0.5)
gripper.body("box", da.Box(size=(0.08, 0.08, 0.08), mass=MASS), position=(0, 0, 0.04), collide=True)
gripper.body("hand", da.Box(size=(0.3, 0.06, 0.04), mass=2.0), position=(0, 0, 0.2))
gripper.joint("lift", da.Prismatic(axis="z", drive="motion"), "world", "hand", at=(0, 0, 0.2))
for name, side in (("left", -1), ("right", 1)):
    jaw = gripper.body(name, da.Box(size=(0.02, 0.06, 0.14), mass=0.2), position=(0.08 * side, 0, 0.11), collide=True)
    gripper.joint(f"{name} slide", da.Prismatic(axis="x", drive="force"), "hand", jaw, at=(0.08 * side, 0, 0.18))
    gripper.contact_pair(jaw, "box", friction=FRICTION)
    gripper.contact_pair(jaw, "ground", collide=False)
gripper.gear("together", "left slide", "right slide", ratio=-1.0)
gripper.contact_pair("left", "right", collide=False)


def lift(t: float) -> float:
    """Nothing for 0.2 s, up by 0.3 m within 0.8 s, then shaking."""
    s = np.clip((t - 0.2) / 0.8, 0.0, 1.0)
    return 0.3 * s * s * (3 - 2 * s) + 0.005 * (1 - np.cos(30.0 * max(t - 1.0, 0.0)))


sim = da.Simulation(gripper, da.Variational(dt=0.002))
sim.set_target("lift", lift)
run = sim.run(1.5, control=lambda sim: {"left slide": PRESS, "right slide": -PRESS})

box, hand = run.body("box").position, run.body("hand").position
held = run.time > 0.25
slip = np.ptp((box - hand)[held, 2])
pressed = run.contacts().of("left", "box").normal_force.sum() * 0.002 / run.time[-1]
print(f"the box rises by {box[-1, 2] - box[0, 2]:.4f} m and slips by {slip:.1e} m; the jaws press with {pressed:.1f} N in the mean")
print(f"friction can hold {2 * FRICTION * PRESS:.0f} N, the box asks for up to {MASS * (9.81 + 0.005 * 30**2):.1f} N")
Path("out").mkdir(exist_ok=True)
run.snapshot("out/parallel_gripper.png", show="contacts")
run.to_html("out/parallel_gripper.html")
if not (slip < 1e-5 and abs(box[-1, 2] - 0.04 - lift(1.5)) < 1e-4 and abs(pressed / PRESS - 1) < 0.2):
    raise SystemExit("the box was lost")
