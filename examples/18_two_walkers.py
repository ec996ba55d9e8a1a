"""Six motors would do for the six freedoms of a character's pelvis: which two of eight may be left out?

A motor holds its place with some stiffness, so that a torque turns it a little, and the poses of all bodies follow. How far, depends
on how the linkages stand. One run of the dance, with the pelvis led and no motor at all, gives the derivatives of all poses and of all
motors' coordinates by the pose of the pelvis; with those, the sensitivity of any choice of six motors. Two designs, as in figure 12 of
Maloisel et al. (2025): without motors 1 and 8, and without 5 and 6, which passes poses that its motors do not hold. The first one
is then run with its own six motors, and differentiated by their targets. Draws out/two_walkers.png, writes the dance to out/two_walkers.html.
"""
from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert import zoo
from dalembert.view.plots import COLOURS, add_legend, finish_axis, finished, new_figure

START, DURATION = 1.0, 4.0  # s: the dance has grown to its full size after a second
STIFFNESS = 2000.0  # N m/rad of a motor at its joint
MOTORS = list(zoo.walker_motion())
#: m/rad or 1: what turns the knees' struts into angles
LEVER = np.array([0.07 if "knee" in name else 1.0 for name in MOTORS])
DESIGNS = {"without motors 1 and 8": (0, 7), "without motors 5 and 6": (4, 5)}
method = da.Implicit(dt=0.05, solver="general")


def pelvis(time: float) -> np.ndarray:
    """Its displacement and rotation vector in the dance."""
    displacement, rotation = zoo.dance(time + START)
    return np.concatenate([displacement, Rotation.from_matrix(rotation).as_rotvec()])


def by_target(run: da.Trajectory, joint: str, direction) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives by a target, at each knot: of poses (N, 6 bodies) and of the motors' coordinates (N, 8), as angles."""
    change = run.jvp({f"{joint}.target": np.broadcast_to(direction, (len(run), *np.shape(direction)))})
    poses = np.concatenate([change["position"], change["orientation"]], axis=2).reshape(len(run), -1)
    return poses[1:], change["coordinate"][1:, [run.joints.index(name) for name in MOTORS], 0] / LEVER


led = zoo.walker_legs(drive=None)
led.joint("lead", da.Free(drive="motion"), led.world, "pelvis", at=led["pelvis"].position)
led.start("lead", pelvis(0.0))
sim = da.Simulation(led, method)
sim.set_target("lead", pelvis)
dance = sim.run(DURATION, tape=True)
parts = [by_target(dance, "lead", unit) for unit in np.eye(6)]
poses, turns = (np.stack(part, axis=2) for part in zip(*parts))


def sensitivity(left_out: tuple[int, int]) -> np.ndarray:
    """The largest change of a pose (m or rad) that 1 N m at a motor makes, at each knot."""
    kept = np.delete(turns, left_out, axis=1)
    return np.abs(poses @ np.linalg.inv(kept)).max(axis=(1, 2)) / STIFFNESS


curves = {name: sensitivity(left_out) for name, left_out in DESIGNS.items()}
good, bad = curves.values()
peaks = [i for i in range(1, len(bad) - 1) if bad[i] > max(bad[i - 1], bad[i + 1]) and bad[i] > 10 * np.median(good)]
for name, curve in curves.items():
    print(f"{name}: {1e3 * curve.min():.2f} to {1e3 * curve.max():.1f} mm or mrad for 1 N m")
print("peaks at", *(f"{dance.time[1 + i] + START:.2f}" for i in peaks), "s")
ranking = sorted(combinations(range(8), 2), key=lambda pair: sensitivity(pair).max())
print("of all 28 pairs, best to leave out:", " and ".join(MOTORS[i] for i in ranking[0]))

# the first design with its own six motors
left_out = [MOTORS[i] for i in DESIGNS["without motors 1 and 8"]]
own, motion = zoo.walker_legs(passive=left_out), zoo.walker_motion(lambda time: zoo.dance(time + START))
for name, target in motion.items():
    own.start(name, target(0.0))
sim = da.Simulation(own, method)
for name, target in motion.items():
    if name not in left_out:
        sim.set_target(name, target)
run = sim.run(1.0, tape=True)
kept = [i for i, name in enumerate(MOTORS) if name not in left_out]
direct = np.stack([LEVER[i] * by_target(run, MOTORS[i], 1.0)[0] for i in kept], axis=2)
error = np.abs(np.abs(direct).max(axis=(1, 2)) / STIFFNESS - good[: len(direct)]).max() / good.max()
print(f"with its own motors, the first design's sensitivity is the same to {error:.0e}")

Path("out").mkdir(exist_ok=True)
figure = new_figure("out/two_walkers.png", height=3.2)
axis = figure.subplots()
for k, (name, curve) in enumerate(curves.items()):
    axis.semilogy(dance.time[1:] + START, 1e3 * curve, color=COLOURS[k], label=name)
finish_axis(axis, "mm or mrad for 1 N m")
axis.set_xlabel("time / s")
add_legend(axis)
finished(figure, "largest sensitivity of a pose to a motor's torque, over a dance", "out/two_walkers.png")
dance.to_html("out/two_walkers.html")
if not (good.max() < 1.5 * good.min() and bad.max() > 30 * good.max() and len(peaks) >= 3 and error < 1e-6):
    raise SystemExit("the designs are not as far apart as they should be")
