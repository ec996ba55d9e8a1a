"""A robot arm from a URDF file, let go: what its joints have to bear, a page to mail, and the run in files.

Takes the path of a file, or the Franka Emika Panda of the package example-robot-data (pip install example-robot-data).
Writes out/robot.html, a picture with the joint forces to out/robot.png, plots to out/robot_energy.png and
out/robot_coordinates.png, and the trajectory to out/robot.h5 and out/robot.csv. Needs dalembert[urdf,files,plot].
"""
import sys
from pathlib import Path

import numpy as np

import dalembert as da

PANDA = "cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf"
found = [Path(folder) / PANDA for folder in sys.path if (Path(folder) / PANDA).is_file()]
path = Path(sys.argv[1]) if len(sys.argv) > 1 else next(iter(found), None)
if path is None:
    raise SystemExit("name a URDF file, or pip install example-robot-data")

robot = da.load(path, merge_fixed=True)  # fixed links become part of their neighbours
print(f"{robot}, {robot.mass:.2f} kg; not simulated: {len(robot.report)} lines such as '{next(iter(robot.report), '')}'")

simulation = da.Simulation(robot, da.Variational(dt=0.002))
for joint, angle in {"panda_joint2": -0.8, "panda_joint4": -2.2, "panda_joint6": 1.6}.items():
    if joint in robot:
        simulation.set_joint(joint, angle)
run = simulation.run(3.0)

moving = [joint.name for joint in robot.joints if joint.type.freedom == 1]
braked = sum(np.trapezoid(run.joint(name).actuation * run.joint(name).rates, run.time) for name in moving)
energy = run.energy().total
rest = abs(energy[-1] - energy[0] - braked)
print(f"the dampers of its joints took {-braked:.2f} J, all but {rest:.1e} J of what is missing; joints open by {run.constraint_violation().max():.1e} m or rad")
for name in moving[:3]:
    force, torque = (np.linalg.norm(v, axis=1).max() for v in (run.joint(name).force, run.joint(name).torque))
    print(f"{name} bears up to {force:.0f} N and {torque:.0f} N m")

Path("out").mkdir(exist_ok=True)
run.to_html("out/robot.html")
run.snapshot("out/robot.png", time=0.25, show="forces")
run.plot("energy", path="out/robot_energy.png")
run.plot("coordinates", path="out/robot_coordinates.png")
run.save("out/robot.h5")  # everything, with the model: da.Trajectory.load("out/robot.h5").view()
run.save("out/robot.csv")  # a table for other programs
again = da.Trajectory.load("out/robot.h5")
if not (rest < 2e-2 * np.ptp(run.energy().kinetic) and np.array_equal(again.position, run.position) and len(Path("out/robot.csv").read_text().splitlines()) == len(run) + 1):
    raise SystemExit("the energy or the files do not hold what they should")
