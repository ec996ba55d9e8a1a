"""Eight motors move six freedoms: the legs of a walking character sway, feet on the ground, and the load can be shared in
many ways. Rigid bodies leave the sharing open; weights choose it, here so that the motors or the joints do the work.

Writes the force of a motor in both sharings to out/sharing_forces.png and a page to out/sharing_forces.html.
"""
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import dalembert as da

legs = da.zoo.walker_legs()
simulation = da.Simulation(legs, da.Implicit(dt=0.02))
for joint, target in da.zoo.walker_motion().items():
    simulation.set_target(joint, target)
run = simulation.run(4.0)

motors = [joint.name for joint in legs.joints if any(joint.type.drive)]
sharings = {"all alike": run.least_norm(), "motors spared": run.least_norm(drive_weight=1e4)}
effort = {name: np.sqrt(np.mean([forces[m].actuation ** 2 for m in motors])) for name, forces in sharings.items()}
for name, value in effort.items():
    print(f"{name:14} mean effort of the eight motors {value:8.2f} N m or N")

feet = [joint.name for joint in legs.joints if joint.parent is legs.world]
support = {name: sum(forces[f].force for f in feet) for name, forces in sharings.items()}
weight = sum(9.81 * body.mass for body in legs.bodies)
differ = np.abs(support["all alike"] - support["motors spared"]).max()
print(f"the ground carries {support['all alike'][0, 2]:.2f} N of {weight:.2f} N at rest; the sharings agree on it to {differ:.1e} N")

figure = Figure(figsize=(6.4, 3.4), layout="constrained")
axis = figure.subplots()
for (name, forces), colour in zip(sharings.items(), ("#4477AA", "#EE6677")):
    axis.plot(run.time, forces["left knee drive"].actuation, color=colour, label=name)
axis.set(xlabel="time / s", ylabel="force of the left knee drive / N")
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
Path("out").mkdir(exist_ok=True)
figure.savefig("out/sharing_forces.png", dpi=200)
run.to_html("out/sharing_forces.html")
if not (effort["motors spared"] < 0.99 * effort["all alike"] and differ < 1e-6 * weight and abs(support["all alike"][0, 2] - weight) < 1e-3 * weight):
    raise SystemExit("the forces do not add up")
