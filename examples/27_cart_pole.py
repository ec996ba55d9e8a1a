"""A control loop with resets: a pole on a cart is balanced from a hundred random starts, step by step.

``sim.reset()`` goes back to the start, ``set_joint`` changes it, ``sim.step`` takes the force of each step: what a learner does. The gains
are those of a linear regulator, from ``sim.linearise``. Writes the last episode to out/cart_pole.html.
"""
from pathlib import Path

import numpy as np
from scipy.linalg import solve_discrete_are

import dalembert as da

sim = da.Simulation(da.zoo.cart_pole(), da.Variational(dt=0.02))
linear = sim.linearise(inputs=["rail"], coordinates=["rail", "hinge"])
A, B = linear.A_step, linear.B_step
P = solve_discrete_are(A, B, np.diag([1.0, 10.0, 0.1, 0.1]), [[0.1]])
gain = np.linalg.solve(B.T @ P @ B + 0.1, B.T @ P @ A)[0]


def push(sim: da.Simulation) -> dict[str, float]:
    """The force on the cart."""
    seen = [sim.coordinates("rail")[0], sim.coordinates("hinge")[0], sim.rates("rail")[0], sim.rates("hinge")[0]]
    return {"rail": float(np.clip(-gain @ seen, -20.0, 20.0))}


rng = np.random.default_rng(1)
upright, longest = 0, 0.0
for _ in range(100):
    sim.reset()
    sim.set_joint("hinge", rng.uniform(-0.3, 0.3), rate=rng.uniform(-0.5, 0.5))
    sim.set_joint("rail", rng.uniform(-0.5, 0.5))
    for _ in range(250):
        sim.step(push(sim))
    upright += abs(sim.coordinates("hinge")[0]) < 0.01
    longest = max(longest, abs(sim.coordinates("rail")[0]))
print(f"{upright} of 100 poles stand after 5 s, carts within {longest:.3f} m of the middle")

sim.reset()
sim.set_joint("hinge", 0.3)
run = sim.run(5.0, control=push)
Path("out").mkdir(exist_ok=True)
run.to_html("out/cart_pole.html")
if not (upright == 100 and longest < 0.2):
    raise SystemExit("a pole fell")
