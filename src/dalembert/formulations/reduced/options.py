"""Options of the reduced formulation: joint coordinates along spanning trees (RedMax)."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.errors import ModelError
from dalembert.formulations.implicit.tableaus import MULTISTEP, TABLEAUS
from dalembert.formulations.maximal.checks import check_contacts, check_steps
from dalembert.mechanism.mechanism import Mechanism
from dalembert.spatial.charts import CHARTS

if TYPE_CHECKING:
    from dalembert.formulations.engine import Engine


#: rotation vectors from the last knot
EXPONENTIAL = "exponential"


@dataclass(frozen=True, kw_only=True)
class Reduced:
    """Joint coordinates with step ``dt`` (s) and ``method``: "bdf1", "bdf2", "sdirk2" or "pareschi_russo".

    BDF2 starts with a step of SDIRK2. ``rotations``: coordinates of free rotations: "exponential", rotation vectors from the last
    knot, which have no singularity, or the Euler angles of a chart, such as "xyz" or "zxz", along the axes of the joint's frame; or
    one of these by joint, and by body for bodies without a joint ({"hip": "xyz"}). ``switch_charts``: change a chart when it comes
    near to its singularity. What ``Simulation`` and ``Trajectory`` call coordinates does not depend on it. ``tolerance``: largest residual
    of a step in m/s; ``max_iterations``: Newton iterations per stage; ``max_halvings``: a step without solution is split into up
    to 2**max_halvings steps before ``StepFailure``.

    Contacts: ``cone``: "exact", or "linear" with an even number of ``cone_edges``; ``resting_speed`` (m/s, or rad/s for
    limits): what closes more slowly than this does not bounce. Steps in which something closes or opens are made by backward Euler.
    """

    dt: float
    method: str = "bdf2"
    rotations: str | Mapping[str, str] = EXPONENTIAL
    switch_charts: bool = False
    tolerance: float = 1e-10
    max_iterations: int = 40
    max_halvings: int = 6
    cone: str = "exact"
    cone_edges: int = 4
    resting_speed: float = 0.01

    def __post_init__(self) -> None:
        check_steps(self)
        check_contacts(self)
        methods = (*MULTISTEP, *TABLEAUS)
        if self.method not in methods:
            raise ModelError(f"Reduced: unknown method {self.method!r}; choose one of {', '.join(methods)}")
        for name in (self.rotations,) if isinstance(self.rotations, str) else self.rotations.values():
            if name != EXPONENTIAL and name not in CHARTS:
                raise ModelError(f"Reduced: unknown coordinates {name!r} of rotations; choose {EXPONENTIAL!r} or a chart: {', '.join(CHARTS)}")

    def engine(self, mechanism: Mechanism) -> Engine:
        """What runs a mechanism in this formulation."""
        if mechanism.touches:
            from dalembert.formulations.reduced.contact_engine import ContactEngine

            return ContactEngine(mechanism, self)
        from dalembert.formulations.reduced.engine import ReducedEngine

        return ReducedEngine(mechanism, self)
