"""A gripper from an MJCF file: two fingers on four-bar linkages, coupled by a gear, close on nothing and open again.

Loads the file, lists what it asks for and dalembert does not simulate, drives the gripper, writes a page that shows the
run to out/gripper.html and a picture to out/gripper.png. Needs dalembert[mjcf].
"""
from pathlib import Path

import numpy as np

import dalembert as da

FINGER = """
  <body name="{side} crank" pos="{x} 0 0"><joint name="{side} crank" axis="0 1 0" armature="0.002" damping="0.02"/>
    <geom type="capsule" fromto="0 0 0 {out} 0 0.08" size="0.006" rgba="0.27 0.47 0.67 1"/>
    <body name="{side} finger" pos="{out} 0 0.08"><joint name="{side} finger" axis="0 1 0"/>
      <geom type="box" size="0.006 0.012 0.05" pos="0 0 0.05" rgba="0.93 0.4 0.47 1"/>
      <geom type="capsule" fromto="0 0 0 {inner} 0 0" size="0.006" rgba="0.93 0.4 0.47 1"/></body></body>
  <body name="{side} rocker" pos="{y} 0 0"><joint name="{side} rocker" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 {out} 0 0.08" size="0.004" rgba="0.13 0.53 0.2 1"/></body>
"""
LEFT = FINGER.format(side="left", x="0.05", y="0.02", out="0.04", inner="-0.03")
RIGHT = FINGER.format(side="right", x="-0.05", y="-0.02", out="-0.04", inner="0.03")
MODEL = f"""<mujoco model="gripper"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
<default><geom density="2700" contype="0" conaffinity="0"/></default>
<worldbody><geom type="box" size="0.07 0.02 0.01" pos="0 0 -0.015" rgba="0.4 0.4 0.4 1"/>{LEFT}{RIGHT}</worldbody>
<equality>
  <connect body1="left rocker" body2="left finger" anchor="0.04 0 0.08"/>
  <connect body1="right rocker" body2="right finger" anchor="-0.04 0 0.08"/>
  <joint joint1="right crank" joint2="left crank" polycoef="0 -1 0 0 0"/>
</equality>
<actuator><motor name="motor" joint="left crank" gear="2"/></actuator></mujoco>"""

Path("out").mkdir(exist_ok=True)
Path("out/gripper.xml").write_text(MODEL)
gripper = da.load("out/gripper.xml")
print(gripper, *gripper.report, sep="\n  ")

STIFFNESS, DAMPING = 4.0, 0.3  # N m/rad, N m s/rad


def control(sim: da.Simulation) -> dict[str, float]:
    goal = -0.45 * np.sin(np.pi * sim.time) ** 2  # close and open within a second
    return {"left crank joint": STIFFNESS * (goal - sim.coordinates("left crank joint")[0]) - DAMPING * sim.rates("left crank joint")[0]}


run = da.Simulation(gripper, da.Variational(dt=0.002)).run(2.0, control=control)
run.to_html("out/gripper.html")
run.snapshot("out/gripper.png", time=0.5, azimuth=-80, elevation=15)

tips = [run.point(f"{side} finger", (0, 0, 0.05)) for side in ("left", "right")]
opening = tips[0][:, 0] - tips[1][:, 0]
mirror = np.abs(tips[0][:, 0] + tips[1][:, 0]).max()
tilt = np.abs(run.body("left finger").orientation[:, 2]).max()
print(f"the fingers are {1000 * opening.min():.1f} to {1000 * opening.max():.1f} mm apart, mirrored to {mirror:.1e} m, upright to {tilt:.1e}")
print(f"largest constraint violation {run.constraint_violation().max():.1e} m or rad")
if not (mirror < 1e-8 and tilt < 1e-8 and run.constraint_violation().max() < 1e-9 and opening.min() < opening.max() - 0.03):
    raise SystemExit("the gripper does not close as a parallel gripper should")
