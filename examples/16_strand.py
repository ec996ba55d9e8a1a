"""A taut strand as a chain of small links: its first transverse modes, and those of a string as the links become smaller.

The last link slides along the strand and is pulled: the chain is a loop, closed through the world. A string of length L, mass M
and tension T has the frequencies k / 2 sqrt(T / (L M)). Writes out/strand_modes.png and a film of the third mode, out/strand.html.
"""
from pathlib import Path

import numpy as np

import dalembert as da
from dalembert.view.plots import COLOURS, add_legend, finish_axis, finished, new_figure

LENGTH, MASS, TENSION = 2.0, 0.1, 80.0  # m, kg, N


def strand(links: int) -> da.Mechanism:
    """Rods from a nail to a sleeve on a rail, which is pulled."""
    mechanism, step = da.Mechanism("strand", gravity=(0, 0, 0)), LENGTH / links
    rod = da.Rod(length=step, mass=MASS / links, radius=0.004, axis="x")
    before = mechanism.world
    for i in range(links):
        mechanism.body(f"link {i}", rod, position=((i + 0.5) * step, 0, 0))
        mechanism.joint(f"hinge {i}", da.Revolute(axis="y"), before, f"link {i}", at=(i * step, 0, 0))
        before = mechanism[f"link {i}"]
    mechanism.body("sleeve", da.Sphere(radius=0.02, mass=0.05), position=(LENGTH, 0, 0))
    mechanism.joint("end", da.Revolute(axis="y"), before, "sleeve", at=(LENGTH, 0, 0))
    mechanism.joint("rail", da.Prismatic(axis="x"), mechanism.world, "sleeve", at=(LENGTH, 0, 0))
    mechanism.force("pull", "sleeve", (TENSION, 0, 0))
    return mechanism


string = 0.5 * np.arange(1, 5) * np.sqrt(TENSION / (LENGTH * MASS))
print("links   " + "".join(f"{f'mode {k}':>12}" for k in range(1, 5)))
errors = []
for links in (10, 20, 40):
    sim = da.Simulation(strand(links), da.Variational(dt=0.001))
    modes = sim.modes()
    errors.append(abs(modes.frequencies[:4] / string - 1))
    print(f"{links:<8}" + "".join(f"{value:9.4f} Hz" for value in modes.frequencies[:4]))
print("string  " + "".join(f"{value:9.4f} Hz" for value in string))
ratio = errors[-2] / errors[-1]
print("links half as long divide the difference by", *(f"{value:.2f}" for value in ratio))

Path("out").mkdir(exist_ok=True)
figure = new_figure("out/strand_modes.png", height=3.2)
axis = figure.subplots()
for k in range(4):
    height = modes.body_shapes[k, :-1, 2]
    axis.plot(sim.position[:-1, 0], height / abs(height).max(), color=COLOURS[k], label=f"{modes.frequencies[k]:.2f} Hz")
finish_axis(axis, "shape")
axis.set_xlabel("x / m")
add_legend(axis)
finished(figure, "modes of a strand of 40 links", "out/strand_modes.png")
modes.animate(2).to_html("out/strand.html")
if not (np.all(abs(ratio - 4) < 0.3) and errors[-1].max() < 0.01):
    raise SystemExit("the strand does not become a string")
