"""What mechanisms of the zoo do of themselves: the quadruped walks, the hopper hops, the Hoberman sphere opens, the figure gestures.

    driven = DRIVEN["quadruped"]
    arguments = {**driven.start, "friction": 0.5}
    sim = da.Simulation(da.zoo.quadruped(**arguments), da.Variational(dt=driven.dt))
    run = sim.run(driven.duration, control=driven.set_up(sim, arguments))
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from dalembert.zoo.character import character_motion
from dalembert.zoo.exoskeleton import exoskeleton_tracking
from dalembert.zoo.figure import figure_motion
from dalembert.zoo.hopper import hopper_turn
from dalembert.zoo.quadruped import WALKING, leg_controller
from dalembert.zoo.satellite import deployment
from dalembert.zoo.walker import walker_motion

Functions = Mapping[str, Callable[[float], float]]


@dataclass(frozen=True, kw_only=True)
class Driven:
    """How a mechanism is driven. The functions take the arguments that the mechanism was made with, those of ``start`` included.

    ``what``: in a word or two; ``start``: arguments that differ from the mechanism's own defaults; ``control``: its controller; ``targets``
    and ``inputs``: functions of time by joint, for ``Simulation.set_target`` and ``set_input``; ``dt``, ``duration``: s, that show it well.
    """

    what: str
    start: Mapping[str, Any] = field(default_factory=dict)
    control: Callable[[Mapping[str, Any]], Callable[[Any], dict[str, Any]]] | None = None
    targets: Callable[[Mapping[str, Any]], Functions] | None = None
    inputs: Callable[[Mapping[str, Any]], Functions] | None = None
    dt: float = 0.01
    duration: float = 5.0

    def set_up(self, simulation: Any, arguments: Mapping[str, Any], leave: Collection[str] = ()) -> Callable[[Any], dict[str, Any]] | None:
        """Let joints follow their motions, but for those to ``leave`` and those without such a drive; returns the controller."""
        for given, kind, put in ((self.targets, "motion", simulation.set_target), (self.inputs, "force", simulation.set_input)):
            for name, function in (given(arguments) if given else {}).items():
                if name in simulation.mechanism and name not in leave and kind in simulation.mechanism[name].type.drive:
                    put(name, function)
        return self.control(arguments) if self.control else None


def _gait(arguments: Mapping[str, Any]) -> Any:
    return leg_controller(arguments["gait"])


#: by name of the mechanism
DRIVEN: dict[str, Driven] = {
    "animatronic_figure": Driven(what="gestures", targets=lambda _: figure_motion()),
    "character": Driven(what="dances", targets=lambda arguments: character_motion(design=arguments.get("design"))),
    "exoskeleton": Driven(what="leads the arm", inputs=lambda arguments: exoskeleton_tracking(scale=arguments.get("scale", 1.0)), dt=0.002),
    "hoberman_sphere": Driven(what="opens by its spin", start={"opening": 1.1, "spin": 4.0}, dt=0.005, duration=1.0),
    "hopper": Driven(what="hops with a full turn in the air", control=lambda _: hopper_turn(), dt=0.001, duration=2.0),
    "quadruped": Driven(what="walks", start={"gait": WALKING}, control=_gait, dt=0.005),
    "solar_panel_satellite": Driven(what="unfolds its wing", targets=lambda arguments: deployment(arguments.get("design")), duration=10.0),
    "walker_legs": Driven(what="dances", targets=lambda arguments: walker_motion(design=arguments.get("design"))),
}
