"""Options of the reduced formulation: joint coordinates along spanning trees (RedMax)."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.errors import ModelError
from dalembert.formulations.implicit.tableaus import MULTISTEP, TABLEAUS
from dalembert.formulations.maximal.checks import check_options
from dalembert.mechanism.mechanism import Mechanism
from dalembert.spatial.charts import CHARTS

if TYPE_CHECKING:
    from dalembert.formulations.engine import Engine
    from dalembert.formulations.reduced.moments import Moment

#: methods that step by rates of change; the last two are baselines for loops
EXPLICIT = ("rk4", "semi_implicit", "linearly_implicit", "kkt_velocity", "kkt_acceleration")
#: contact in "linearly_implicit", the first by default
PROGRAMS = ("staggered", "single")
#: those of ``scipy.integrate.solve_ivp``
ADAPTIVE = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")
#: all methods
METHODS = (*MULTISTEP, *TABLEAUS, *EXPLICIT, *ADAPTIVE)


#: rotation vectors from the last knot
EXPONENTIAL = "exponential"


@dataclass(frozen=True, kw_only=True)
class Reduced:
    """Joint coordinates with step ``dt`` (s) and a ``method``.

    "bdf1", "bdf2", "sdirk2", "pareschi_russo": implicit, loops exact inside the step. BDF2 starts with a step of SDIRK2.
    ``rotations``: coordinates of free rotations: "exponential", rotation vectors from the last
    knot, which have no singularity, or the Euler angles of a chart, such as "xyz" or "zxz", along the axes of the joint's frame; or
    one of these by joint, and by body for bodies without a joint ({"hip": "xyz"}). ``switch_charts``: change a chart when it comes
    near to its singularity. What ``Simulation`` and ``Trajectory`` call coordinates does not depend on it. ``tolerance``: largest residual
    of a step in m/s; ``max_iterations``: Newton iterations per stage; ``max_halvings``: a step without solution is split into up
    to 2**max_halvings steps before ``StepFailure``.

    Contacts: ``cone``: "exact", or "linear" with an even number of ``cone_edges``; ``resting_speed`` (m/s, or rad/s for
    limits): what closes more slowly than this does not bounce; ``impacts``: "limited", Newton's law of restitution as far as impacts create
    no energy, or "newton", his law as it is, which with friction or several impacts at once may create some. Steps in which something closes or opens are made by backward Euler.
    ``contact``: "interior_point" in these methods; in "linearly_implicit" the RedMax paper's programs, "staggered" (projections in turn,
    the default there) or "single" (one program with ``cone_edges``, which lifts what slides), to compare with.

    "rk4", "semi_implicit" and "linearly_implicit": rates of change in linear time, no iterations; the last takes stiff springs
    and dampers. Loops are projected after every step. "kkt_velocity" and "kkt_acceleration" are the paper's baselines for loops:
    linearly and semi-implicit Euler that only pull back the part ``stabilization`` (0 to 1) of what is open. Free rotations are
    quaternions in these methods and the next, and nothing may touch but in "linearly_implicit".

    "RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA": SciPy's methods, which choose their steps by ``rtol`` and ``atol``; ``dt`` is the
    distance of the knots that are recorded. They take joint limits (an impact each time one is met; below ``resting_speed``
    it stays there) and ``events``: functions of a ``da.Moment`` whose sign changes are noted in ``Trajectory.events``,
    and end the run if they have an attribute ``terminal`` that is true; ``direction`` as for ``solve_ivp``.
    """

    dt: float
    method: str = "bdf2"
    rotations: str | Mapping[str, str] = EXPONENTIAL
    switch_charts: bool = False
    tolerance: float = 1e-10
    max_iterations: int = 40
    max_halvings: int = 8
    cone: str = "exact"
    cone_edges: int = 4
    resting_speed: float = 0.01
    impacts: str = "limited"
    contact: str | None = None
    stabilization: float = 0.2
    rtol: float = 1e-8
    atol: float = 1e-10
    events: Sequence[Callable[[Moment], float]] = ()

    def __post_init__(self) -> None:
        if isinstance(self.events, str):
            raise ModelError(
                f"Reduced: events={self.events!r}, but they are functions here, for a method with dense output: "
                "Variational(dt=..., events=\"exact\") finds the moments of impacts"
            )
        check_options(self)
        if self.method not in METHODS:
            raise ModelError(f"Reduced: unknown method {self.method!r}; choose one of {', '.join(METHODS)}")
        ways = PROGRAMS if self.method == "linearly_implicit" else ("interior_point",) if self.method in (*MULTISTEP, *TABLEAUS) else ()
        if self.contact is not None and self.contact not in ways:
            known = f"choose {' or '.join(map(repr, ways))}" if ways else "it takes no contact"
            raise ModelError(f"Reduced: contact={self.contact!r} does not go with method={self.method!r}: {known}")
        if self.events and self.method not in ADAPTIVE:
            raise ModelError(f"Reduced: events need a method with dense output ({', '.join(ADAPTIVE)}), not {self.method!r}")
        for name in (self.rotations,) if isinstance(self.rotations, str) else self.rotations.values():
            if name != EXPONENTIAL and name not in CHARTS:
                raise ModelError(f"Reduced: unknown coordinates {name!r} of rotations; choose {EXPONENTIAL!r} or a chart: {', '.join(CHARTS)}")
            if name != EXPONENTIAL and self.method in (*EXPLICIT, *ADAPTIVE):
                raise ModelError(f"Reduced: method={self.method!r} keeps rotations as quaternions and takes no chart such as {name!r}; leave rotations out")

    def engine(self, mechanism: Mechanism) -> Engine:
        """What runs a mechanism in this formulation."""
        if self.method == "linearly_implicit" and mechanism.touches:
            from dalembert.formulations.reduced.programs_engine import ProgramsEngine

            return ProgramsEngine(mechanism, self)
        if self.method in EXPLICIT:
            from dalembert.formulations.reduced.explicit_engine import ExplicitEngine

            return ExplicitEngine(mechanism, self)
        if self.method in ADAPTIVE:
            from dalembert.formulations.reduced.adaptive_engine import AdaptiveEngine

            return AdaptiveEngine(mechanism, self)
        if mechanism.touches:
            from dalembert.formulations.reduced.contact_engine import ContactEngine

            return ContactEngine(mechanism, self)
        from dalembert.formulations.reduced.engine import ReducedEngine

        return ReducedEngine(mechanism, self)
