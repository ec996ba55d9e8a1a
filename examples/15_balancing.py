"""A closed linkage balanced by the cart it stands on: LQR with the linear system that ``linearise`` gives.

Two legs and a plate make a parallelogram that stands on a cart and would fall over; a force on the cart is all there is to hold
it. The gains come from A and B of one step, in two independent coordinates: the loop's other joints follow. Writes a picture of
the start, out/balancing.png, the coordinates over time, out/balancing_coordinates.png, and out/balancing.html.
"""
from pathlib import Path

import numpy as np
from scipy.linalg import solve_discrete_are

import dalembert as da

LEG, WIDTH = 0.5, 0.3  # m
stand = da.Mechanism("balanced linkage")
stand.body("cart", da.Box(size=(0.5, 0.2, 0.1), mass=2.0))
stand.joint("rail", da.Prismatic(axis="x", drive="force"), stand.world, "cart")
stand.body("plate", da.Box(size=(WIDTH, 0.2, 0.04), mass=1.0), position=(0, 0, LEG))
for name, x in (("left", -WIDTH / 2), ("right", WIDTH / 2)):
    stand.body(f"{name} leg", da.Rod(length=LEG, mass=0.3, radius=0.015), position=(x, 0, LEG / 2))
    stand.joint(f"{name} foot", da.Revolute(axis="y"), "cart", f"{name} leg", at=(x, 0, 0))
    stand.joint(f"{name} pin", da.Revolute(axis="y"), f"{name} leg", "plate", at=(x, 0, LEG))

sim = da.Simulation(stand, da.Variational(dt=0.01))
balance = sim.equilibrium()
linear = sim.linearise(inputs=["rail"], coordinates=["rail", "left foot"])
growth = np.real(linear.eigenvalues).max()
print(f"upright it is {balance.stability}: what is off grows by a factor of {np.exp(growth):.0f} in a second")

A, B = linear.A_step, linear.B_step
Q, R = np.diag([10.0, 10.0, 1.0, 1.0]), np.array([[0.1]])
P = solve_discrete_are(A, B, Q, R)
gain = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
print("with the gains, the slowest part decays by", f"{abs(np.linalg.eigvals(A - B @ gain)).max():.4f} a step")

sim.set_joint("left foot", 0.25)  # 14 degrees
trajectory = sim.run(6.0, control=lambda sim: {"rail": -gain @ linear.deviation(sim)})
lean, cart = trajectory.joint("left foot").coordinates, trajectory.joint("rail").coordinates
print(f"from {lean[0]:.2f} rad it comes back to {lean[-1]:+.1e} rad, the cart to {cart[-1]:+.1e} m, after {abs(cart).max():.2f} m at the most")

Path("out").mkdir(exist_ok=True)
trajectory.plot("coordinates", path="out/balancing_coordinates.png")
trajectory.snapshot("out/balancing.png", time=0.0)
trajectory.to_html("out/balancing.html")
if not (balance.stability == "unstable" and abs(lean[-1]) < 1e-3 and abs(cart[-1]) < 1e-2):
    raise SystemExit("the linkage did not find its balance")
