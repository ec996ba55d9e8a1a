"""Options of the implicit formulation: maximal coordinates with additive quaternions, BDF and DIRK methods (Quaternion)."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dalembert.errors import ModelError
from dalembert.formulations.implicit.tableaus import MULTISTEP, TABLEAUS
from dalembert.formulations.maximal.checks import check_options
from dalembert.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from dalembert.formulations.engine import Engine


@dataclass(frozen=True, kw_only=True)
class Implicit:
    """Implicit integration with step ``dt`` (s) and ``method``: "bdf1", "bdf2", "sdirk2", "pareschi_russo", or the
    baseline "semi_implicit" with the Baumgarte factor ``stabilization`` (0 to 1; eq. 49).

    BDF2 starts with a step of the stiffly accurate SDIRK2. ``tolerance``: largest residual of a step in m/s;
    ``max_iterations``: Newton iterations per stage; ``max_halvings``: a step without solution is split into up to
    2**max_halvings steps before ``StepFailure``.
    ``accuracy`` (m; stiffly accurate DIRK methods, as others leave rows open by more than a smaller step may move): every
    step ``dt`` is covered by as many smaller ones as keep the estimated error of each below this; rotations count by the
    size of the body.
    ``solver``: "general", "kinematic" (for mechanisms whose drives leave no freedom, BDF methods only: poses first, forces
    after; section 6.3), or "auto", which takes the kinematic one where it applies, and the general one for steps to poses in
    which the drives hold the mechanism too loosely for that. ``drive_weight``: how much the forces of
    motion drives weigh against those of joints when the kinematic solver shares out redundant ones.

    Contacts: ``cone``: "exact", or "linear" with an even number of ``cone_edges``; ``resting_speed`` (m/s, or rad/s for
    limits): what closes more slowly than this does not bounce; ``impacts``: "limited", Newton's law of restitution as far as impacts create
    no energy, or "newton", his law as it is, which with friction or several impacts at once may create some. Steps in which something closes or opens are made by backward
    Euler. The kinematic solver, "semi_implicit" and ``accuracy`` are for mechanisms in which nothing can touch. ``events``: None; moments of impacts
    are for ``Variational``.
    """

    dt: float
    method: str = "bdf2"
    tolerance: float = 1e-10
    max_iterations: int = 40
    max_halvings: int = 8
    accuracy: float | None = None
    stabilization: float = 0.2
    solver: str = "auto"
    drive_weight: float = 1.0
    cone: str = "exact"
    cone_edges: int = 4
    resting_speed: float = 0.01
    impacts: str = "limited"
    events: str | None = None

    def __post_init__(self) -> None:
        check_options(self)
        if self.events is not None:
            raise ModelError(f"Implicit: events={self.events!r}, but its steps end at knots: Variational(dt=..., events=\"exact\") finds the moments of impacts")
        if self.solver not in ("auto", "general", "kinematic"):
            raise ModelError(f"Implicit: unknown solver {self.solver!r}; choose auto, general or kinematic")
        if self.solver == "kinematic" and self.method not in MULTISTEP:
            raise ModelError(f"Implicit: the kinematic solver takes bdf1 or bdf2, not {self.method!r}")
        methods = (*MULTISTEP, *TABLEAUS, "semi_implicit")
        if self.method not in methods:
            raise ModelError(f"Implicit: unknown method {self.method!r}; choose one of {', '.join(methods)}")
        if self.accuracy is not None and not (self.method in TABLEAUS and TABLEAUS[self.method].stiffly_accurate):
            raise ModelError(f"Implicit: accuracy needs a stiffly accurate DIRK method such as 'sdirk2', not {self.method!r}")

    def engine(self, mechanism: Mechanism) -> Engine:
        """What runs a mechanism in this formulation."""
        if mechanism.touches:
            self._check_touching(mechanism.name)
            from dalembert.formulations.implicit.contact_engine import ContactEngine

            return ContactEngine(mechanism, self)
        if self.method == "semi_implicit":
            from dalembert.formulations.implicit.semi_implicit_engine import SemiImplicitEngine

            return SemiImplicitEngine(mechanism, self)
        driven = any("motion" in joint.type.drive for joint in mechanism.joints)  # type: ignore[operator]
        if self.solver == "kinematic" or (self.solver == "auto" and driven and self.method in MULTISTEP and not mechanism.couplings and not mechanism.maps):
            from dalembert.formulations.implicit.kinematic_engine import KinematicEngine

            engine = KinematicEngine(mechanism, self)
            if engine.applies:
                return engine
            if self.solver == "kinematic":
                raise ModelError(
                    f"the kinematic solver needs drives that leave {mechanism.name!r} no freedom, and no gears or paths; "
                    f"{engine.freedom} velocities are free. Use solver='general'."
                )
        from dalembert.formulations.implicit.engine import ImplicitEngine

        return ImplicitEngine(mechanism, self)

    def _check_touching(self, name: str) -> None:
        """Refuse what cannot be had with contacts, limits or dry friction."""
        kind = ""
        if self.method == "semi_implicit":
            kind = "method='semi_implicit'; choose 'bdf2', 'bdf1', 'sdirk2' or 'pareschi_russo'"
        elif self.solver == "kinematic":
            kind = "solver='kinematic'; choose solver='general'"
        elif self.accuracy is not None:
            kind = "accuracy=; choose a dt"
        if kind:
            raise ModelError(
                f"Implicit: {name!r} has contacts, limits or dry friction, which do not go with {kind}, use Variational, or leave them "
                "out, from a model file with load(..., contacts=False, limits=False)"
            )
