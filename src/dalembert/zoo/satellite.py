"""A satellite that unfolds a solar wing: twelve panels, kept in step by a lattice of struts, on seven cooperating drives.

The wing folds in the x-z plane of the bus. Panel k and strut k cross in their middles like scissors, and the ends of
each cell are hinged to the next, so all panels and struts lie along two directions: the odd panels and even struts at
an angle ``a`` above the x axis, the others at an angle ``b``. Panel 1 is hinged to the bus at the root; the first strut's
free end hangs on a swing link, on a bracket of the bus beside the stowed wing. Root, panel, strut and swing link are a
four-bar, which gives b from a in closed form: one internal degree of freedom, for whatever number of panels.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, hypot, sin

import numpy as np

from dalembert.errors import ModelError
from dalembert.mechanism.joints import Drive, Revolute
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.shapes import Box
from dalembert.zoo.drives import DriveMotion, Point, direction_of, meeting, smooth_step
from dalembert.zoo.links import rod_between, sized, turn_about


@dataclass(frozen=True, kw_only=True)
class SatelliteDesign:
    """Sizes in m, masses in kg, angles in rad.

    ``stowed`` and ``deployed``: angles of the first panel above the x axis; at both, the wing points straight along x.
    """

    panels: int = 12
    panel_length: float = 0.8
    panel_width: float = 1.6
    panel_mass: float = 4.5
    strut_mass: float = 0.35
    swing_reach: float = 1.2
    swing_mass: float = 0.5
    bus_size: tuple[float, float, float] = (1.4, 1.5, 1.6)
    bus_mass: float = 320.0
    stowed: float = 1.4
    deployed: float = 0.2

    def __post_init__(self) -> None:
        if int(self.panels) != self.panels or self.panels < 2:
            raise ModelError(f"SatelliteDesign: panels must be a whole number of at least 2, got {self.panels!r}")
        if not 0.05 <= self.deployed < self.stowed <= 1.5:
            raise ModelError(f"SatelliteDesign needs 0.05 <= deployed < stowed <= 1.5 rad, got {self.deployed:g} and {self.stowed:g}")
        if not self.swing_reach > 0.0:
            raise ModelError(f"SatelliteDesign: swing_reach must be positive, got {self.swing_reach}")

    @property
    def swing(self) -> tuple[Point, float]:
        """Where the swing link hangs on the bus, (x, z) from the root, and its length: chosen so that b = -a at both ends."""
        high, low = self.panel_length * sin(self.stowed), self.panel_length * sin(self.deployed)
        return (self.swing_reach, 0.5 * (high + low)), hypot(self.swing_reach, 0.5 * (high - low))

    @property
    def driven(self) -> tuple[str, ...]:
        """The driven hinges: the root and every other hinge between panels, seven for twelve panels."""
        return ("root", *(f"hinge {k}" for k in range(1, self.panels, 2)))

    def angles(self, panel: float) -> tuple[float, float]:
        """Angles (a, b) of the odd panels and of the odd struts when the first panel stands at ``panel``."""
        half = 0.5 * self.panel_length
        middle = half * cos(panel), half * sin(panel)
        hang, length = self.swing
        free_end = meeting(middle, half, hang, length, side=1.0)
        return panel, direction_of(free_end, middle)


@sized
def solar_panel_satellite(design: SatelliteDesign | None = None, *, drive: Drive = "motion") -> Mechanism:
    """A free-flying satellite with its solar wing stowed (in the spirit of Quaternion, Fig. 8, tables 4 to 6).

    26 bodies and 37 hinges with twelve panels: "bus", "swing link", "panel 1", "strut 1", ... Hinges, all about -y:
    "root" (bus to panel 1), "hinge k" (panel k to k + 1), "strut hinge k", "scissor k" (panel k to strut k), "swing"
    (bus to swing link) and "swing pin". Seven are driven (``SatelliteDesign.driven``) and move one degree of freedom;
    ``drive``: "motion", "force" or None. No gravity; the six freedoms of flight stay passive.
    """
    design = SatelliteDesign() if design is None else design
    mechanism = Mechanism("solar panel satellite", gravity=(0.0, 0.0, 0.0))
    L, edge = design.panel_length, 0.5 * design.panel_width
    bus = mechanism.body("bus", Box(size=design.bus_size, mass=design.bus_mass), position=(-0.5 * design.bus_size[0] - 0.1, 0.0, 0.5 * L))
    hang, _ = design.swing
    free_end = (0.0, edge, L * sin(design.stowed))
    link = rod_between(mechanism, "swing link", (hang[0], edge, hang[1]), free_end, mass=design.swing_mass, radius=0.015)

    def hinge(name: str, parent: Body, child: Body, at: np.ndarray) -> None:
        mechanism.joint(name, Revolute(axis="-y", drive=drive if name in design.driven else None), parent, child, at=at)

    before = None
    for k in range(1, design.panels + 1):
        angle = design.stowed if k % 2 else -design.stowed
        x, z = (k - 0.5) * L * cos(design.stowed), 0.5 * L * sin(design.stowed)
        reach = 0.5 * L * np.array([cos(angle), 0.0, sin(angle)])
        panel = mechanism.body(
            f"panel {k}", Box(size=(L, design.panel_width - 0.1, 0.02), mass=design.panel_mass),
            position=(x, 0.0, z), orientation=turn_about("y", -angle),
        )
        middle, lattice = np.array([x, 0.0, z]), np.array([x, edge, z])
        mirrored = reach * (1.0, 1.0, -1.0)
        strut = rod_between(mechanism, f"strut {k}", lattice - mirrored, lattice + mirrored, mass=design.strut_mass, radius=0.012)
        hinge(f"scissor {k}", panel, strut, lattice)
        if before is None:
            hinge("root", bus, panel, middle - reach)
            hinge("swing", bus, link, np.array([hang[0], edge, hang[1]]))
            hinge("swing pin", link, strut, np.array(free_end))
        else:
            hinge(f"hinge {k - 1}", before[0], panel, middle - reach)
            hinge(f"strut hinge {k - 1}", before[1], strut, lattice - mirrored)
        before = panel, strut
    return mechanism


@sized
def satellite_drives(panel: float, design: SatelliteDesign | None = None) -> dict[str, float]:
    """Coordinates (rad) of the driven hinges when the first panel stands ``panel`` rad above the x axis: they agree to rounding."""
    design = SatelliteDesign() if design is None else design
    a, b = design.angles(panel)
    opened = 2.0 * design.stowed - (a - b)  # from panel k at a to panel k + 1 at b, against stowed and -stowed
    return {"root": a - design.stowed, **dict.fromkeys(design.driven[1:], opened)}


@sized
def deployment(design: SatelliteDesign | None = None, *, start: float = 0.0, duration: float = 10.0) -> DriveMotion:
    """Targets of the driven hinges over time: the wing unfolds from rest to rest, from ``start`` (s) on, within ``duration`` (s)."""
    design = SatelliteDesign() if design is None else design

    def target(name: str) -> Callable[[float], float]:
        def coordinate(time: float) -> float:
            panel = design.stowed + (design.deployed - design.stowed) * smooth_step((time - start) / duration)
            return satellite_drives(panel, design)[name]

        return coordinate

    return {name: target(name) for name in design.driven}
