"""A heavy door on three hinges: fifteen constraint rows where five would do, and still each hinge has its force.

Rigid hinges leave open how they share the load; dalembert takes the sharing of least norm, the same on every run.
"""
import numpy as np

import dalembert as da

MASS, WIDTH, HEIGHT, RATE = 80.0, 1.0, 2.2, 3.0  # kg, m, m, rad/s

door = da.Mechanism("door")
leaf = door.body("leaf", da.Box(size=(WIDTH, 0.06, HEIGHT), mass=MASS), position=(WIDTH / 2, 0, HEIGHT / 2))
hinges = {"lower": 0.2, "middle": 1.1, "upper": 2.0}
for name, height in hinges.items():
    door.joint(name, da.Revolute(axis="z"), door.world, leaf, at=(0, 0, height))

simulation = da.Simulation(door, da.Variational(dt=0.01))
simulation.set_joint("lower", 0.0, rate=RATE)
trajectory = simulation.run(2.0)

# the hinges' frames are those of the world: turn the forces along with the door
angle = trajectory.joint("lower").coordinates
outward = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
forces = {name: trajectory.joint(name).force for name in hinges}
for name, force in forces.items():
    print(f"{name:7}carries {force[-1, 2]:7.2f} N of the weight and pulls the door inward with {-(force * outward).sum(axis=1)[-1]:8.2f} N")

total = np.sum(list(forces.values()), axis=0)
centripetal = MASS * RATE**2 * WIDTH / 2
weight_error = np.abs(total[:, 2] - MASS * 9.81).max()
pull_error = np.abs(-(total * outward).sum(axis=1) - centripetal).max()
print(f"together: the weight to {weight_error:.1e} N, the centripetal force of {centripetal:.0f} N to {pull_error:.1e} N")
if not (weight_error < 1e-5 and pull_error < 1e-3 * centripetal):
    raise SystemExit("the hinges do not carry the door")
