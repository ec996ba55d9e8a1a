"""One mechanism, several formulations, one answer: Bricard's linkage in all of them, with ever smaller steps.

Its six hinges close a loop that by counting could not move, and does: one row is redundant. The command
"dalembert compare bricard" draws the same for all methods. Writes the linkage's graph, and the pattern of its equations
with what their factors add, to out/one_answer.png.
"""
from pathlib import Path

import dalembert as da

STEPS, LENGTH = (0.02, 0.01, 0.005, 0.0025), 0.5  # s
METHODS = {
    "variational": lambda dt: da.Variational(dt=dt),
    "bdf2": lambda dt: da.Implicit(dt=dt, method="bdf2"),
    "bdf1": lambda dt: da.Implicit(dt=dt, method="bdf1"),
}
linkage = da.zoo.bricard()
end = {name: [da.Simulation(linkage, make(dt)).run(LENGTH).position[-1] for dt in STEPS] for name, make in METHODS.items()}
exact = end["variational"][-1] + (end["variational"][-1] - end["variational"][-2]) / 3  # second order: what is left at dt = 0
errors = {name: [abs(x - exact).max() for x in values] for name, values in end.items()}

print("dt / s".ljust(14) + "".join(f"{dt:>10g}" for dt in STEPS))
for name, values in errors.items():
    print(f"{name:14}" + "".join(f"{value:10.1e}" for value in values) + "  m")

Path("out").mkdir(exist_ok=True)
linkage.draw_graph("out/one_answer.png")
ratio = {name: values[0] / values[2] for name, values in errors.items()}  # over two halvings
print("two halvings of the step divide the error by", *(f"{value:.1f} ({name})" for name, value in ratio.items()))
if not (12 < ratio["variational"] < 20 and 12 < ratio["bdf2"] < 25 and 3 < ratio["bdf1"] < 5.5):
    raise SystemExit("the formulations do not agree")
