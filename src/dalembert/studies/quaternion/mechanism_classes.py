"""Sizes of the paper's mechanisms, and which of them are redundant, overactuated or not fully driven."""
from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import dalembert as da
from dalembert.studies.study import Report, study


class Example(NamedTuple):
    """A mechanism of the zoo, and what the paper says of its own: table 5, then table 4."""

    make: Callable[[], da.Mechanism]
    components: int
    constraints: int
    equations: int
    controls: int
    variables: int
    redundant: bool
    overactuated: bool
    driven: bool  # fully


EXAMPLES = {
    "T-handle": Example(da.zoo.t_handle, 1, 0, 0, 0, 14, False, False, False),
    "spinning top": Example(da.zoo.spinning_top, 1, 1, 3, 0, 17, False, False, False),
    "pendulum": Example(da.zoo.fast_pendulum, 1, 1, 5, 0, 19, False, False, False),
    "Hoberman sphere": Example(da.zoo.hoberman_sphere, 240, 420, 1980, 0, 5340, True, False, False),
    "satellite": Example(da.zoo.solar_panel_satellite, 26, 37, 192, 7, 556, True, True, False),
    "figure (Iron Man)": Example(da.zoo.animatronic_figure, 151, 198, 982, 27, 3096, True, False, True),
    "character (Gazelle)": Example(da.zoo.character, 38, 45, 236, 22, 768, True, True, True),
}
SIZES = ("components", "constraints", "constraint equations", "control variables", "state variables")


@study("tables 4 and 5", "the ready mechanisms have the sizes of the paper's and fall in the same classes")
def mechanism_classes(report: Report) -> None:
    sizes, classes, wrong = [], [], []
    for name, example in report.each(EXAMPLES.items(), "mechanism"):
        mechanism = example.make()
        found = da.Simulation(mechanism, da.Implicit(dt=0.01)).redundancy()
        bodies, controls = len(mechanism.bodies), found.driven_rows
        rows = found.rows + controls
        ours = (bodies, len(mechanism.joints), rows, controls, 14 * bodies + rows)
        theirs = example[1:6]
        kinds = (found.rows > found.rank, found.driven_rows > found.driven_rank, found.freedom == 0)
        sizes.append((name, *(f"{a} ({b})" for a, b in zip(ours, theirs))))
        classes.append((name, "fully actuated" if kinds[2] else f"{found.freedom} passive freedoms", found.rows - found.rank, found.driven_rows - found.driven_rank))
        wrong += [] if ours == theirs and kinds == example[6:] else [name]
    report.table(("mechanism", *(f"{size} (paper)" for size in SIZES)), sizes, name="sizes")
    report.table(("mechanism", "drives", "redundant constraint rows", "redundant drives"), classes, name="classes")
    axis = report.axes("state variables in the paper", "state variables here")
    for name, example in EXAMPLES.items():
        row = next(row for row in sizes if row[0] == name)
        axis.loglog(example.variables, int(row[-1].split()[0]), "o", label=name)
    axis.plot((10, 1e4), (10, 1e4), color="#999999", linewidth=0.8)
    report.verdict(not wrong, f"{len(EXAMPLES) - len(wrong)} of {len(EXAMPLES)} agree in every count and class" + (f", not {', '.join(wrong)}" if wrong else ""))
