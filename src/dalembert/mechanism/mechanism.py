"""The mechanism: bodies, joints, springs, couplings and wrenches by name, with no word about how it is simulated."""
from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, fields
from pathlib import Path as FilePath
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.checks import (
    NAME,
    NOT_NEGATIVE,
    NOTHING,
    check_fields,
    checked,
    choices,
    counted,
    kind_of,
    numbers,
    shown,
    unit_quaternion,
    vector,
)
from dalembert.errors import ModelError
from dalembert.mechanism.actuators import Actuator
from dalembert.mechanism.editing import Editor
from dalembert.mechanism.environment import (
    Collider,
    ContactPoint,
    EnvironmentBuilder,
    Ground,
    HeightField,
    Obstacle,
    PairLaw,
)
from dalembert.mechanism.forces import Constraint, Drag, ForceBuilder, ForceLaw, Path, Penalty, PointForce
from dalembert.mechanism.joints import Distance, Joint, PointSpring
from dalembert.mechanism.maps import CoordinateMap, MapBuilder
from dalembert.mechanism.sensors import Sensor, SensorBuilder
from dalembert.mechanism.shapes import Placed, Shape, check_inertia, check_mass, unplaced
from dalembert.mechanism.strands import Strand, StrandBuilder
from dalembert.mechanism.visuals import Colour, Mesh, Visual

#: energy of a body at (position (3,), orientation (4,)), in J
Energy = Callable[[np.ndarray, np.ndarray], float]


def rotation_matrix(q: ArrayLike) -> np.ndarray:
    """(3, 3) matrix of a unit quaternion, scalar first."""
    return Rotation.from_quat(np.asarray(q, dtype=float), scalar_first=True).as_matrix()


#: directions of two joints
TWO = kind_of("two whole numbers, one per joint", lambda value: isinstance(value, tuple | list) and len(value) == 2)


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body. ``position`` is that of the centre of mass; ``inertia`` is about it, in body axes."""

    name: str
    index: int
    mass: float
    inertia: np.ndarray
    position: np.ndarray
    orientation: np.ndarray
    shape: Shape | None = None
    collide: bool = False

    def __repr__(self) -> str:
        return f"<body {self.name!r}, {self.mass:g} kg>"


@dataclass(frozen=True, eq=False)
class JointElement:
    """A joint between two bodies: the type, and its frame on each of them (point and axes in body coordinates)."""

    name: str
    index: int
    type: Joint
    parent: Body
    child: Body
    point_parent: np.ndarray
    point_child: np.ndarray
    frame_parent: np.ndarray
    frame_child: np.ndarray

    def __repr__(self) -> str:
        return f"<joint {self.name!r}: {type(self.type).__name__} {self.parent.name!r} -> {self.child.name!r}>"


@dataclass(frozen=True, eq=False)
class Coupling:
    """A gear, belt or rack: coordinate of ``first`` = ``ratio`` times coordinate of ``second`` + ``offset``."""

    name: str
    index: int
    first: JointElement
    second: JointElement
    ratio: float
    offset: float
    first_direction: int = 0
    second_direction: int = 0

    def __repr__(self) -> str:
        return f"<gear {self.name!r}: {self.first.name!r} = {self.ratio:g} * {self.second.name!r}>"


@dataclass(eq=False)
class Mechanism(EnvironmentBuilder, ForceBuilder, MapBuilder, StrandBuilder, SensorBuilder, Editor):
    """Bodies and what holds them together. Build it by name; give it to a ``Simulation``.

    ``gravity`` in m/s^2. Positions given to the builder are those of the reference pose, in which every joint's
    coordinates are zero.
    """

    name: str = "mechanism"
    gravity: ArrayLike = (0.0, 0.0, -9.81)
    bodies: list[Body] = field(default_factory=list, init=False)
    joints: list[JointElement] = field(default_factory=list, init=False)
    couplings: list[Coupling] = field(default_factory=list, init=False)
    maps: list[CoordinateMap] = field(default_factory=list, init=False)
    paths: list[Path] = field(default_factory=list, init=False)
    strands: list[Strand] = field(default_factory=list, init=False)
    point_forces: list[PointForce] = field(default_factory=list, init=False)
    drags: list[Drag] = field(default_factory=list, init=False)
    penalties: list[Penalty] = field(default_factory=list, init=False)
    force_laws: list[ForceLaw] = field(default_factory=list, init=False)
    constraints: list[Constraint] = field(default_factory=list, init=False)
    #: constant wrenches (6,) by body: force in N (world axes), torque in N m (body axes)
    wrenches: dict[str, np.ndarray] = field(default_factory=dict, init=False)
    grounds: list[Ground] = field(default_factory=list, init=False)
    obstacles: list[Obstacle] = field(default_factory=list, init=False)
    terrains: list[HeightField] = field(default_factory=list, init=False)
    colliders: list[Collider] = field(default_factory=list, init=False)
    contact_points: list[ContactPoint] = field(default_factory=list, init=False)
    pair_laws: dict[frozenset[str], PairLaw] = field(default_factory=dict, init=False)
    initial_joints: dict[str, tuple[Any, Any]] = field(default_factory=dict, init=False)
    initial_velocities: dict[str, tuple[Any, Any]] = field(default_factory=dict, init=False)
    #: actuators of a model file by name; ``dalembert.mechanism.actuators.actuate`` turns their controls into joint forces
    actuators: dict[str, Actuator] = field(default_factory=dict, init=False)
    #: what is measured
    sensors: list[Sensor] = field(default_factory=list, init=False)
    #: what bodies look like, by body; bodies without an entry are drawn by their shape
    visuals: dict[str, list[Visual]] = field(default_factory=dict, init=False)
    #: what a model file asked for and the mechanism does not have, a line each
    report: list[str] = field(default_factory=list, init=False)
    world: Body = field(init=False)

    def __post_init__(self) -> None:
        check_fields(self, name=NAME)
        self.gravity = vector(self.gravity, 3, f"gravity of {self.name!r}")
        self.world = Body("world", -1, 0.0, np.zeros((3, 3)), np.zeros(3), np.array([1.0, 0, 0, 0]))
        self._names: dict[str, Any] = {"world": self.world}

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str) or name not in self._names:
            raise ModelError(f"{self.name!r} has no element named {shown(name)}; {choices(name, self._names)}")
        return self._names[name]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._names

    def __repr__(self) -> str:
        return f"<mechanism {self.name!r}: {counted(len(self.bodies), 'body', 'bodies')}, {counted(len(self.joints), 'joint')}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from dalembert.view.notebook import mechanism_table

        return mechanism_table(self)

    def snapshot(self) -> Mechanism:
        """A copy that later changes of this mechanism do not reach. Elements never change, and are shared."""
        twin = copy(self)
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, list):
                setattr(twin, entry.name, list(value))
            elif isinstance(value, dict):
                setattr(twin, entry.name, {key: list(item) if isinstance(item, list) else item for key, item in value.items()})
        twin.gravity = np.array(self.gravity, dtype=float)
        twin._names = dict(self._names)
        return twin

    def _take_name(self, name: str, what: str) -> str:
        if not isinstance(name, str) or not name:
            raise ModelError(f"{what} needs a name that is a non-empty string, got {shown(name)}")
        if name in self._names:
            raise ModelError(f"the name {name!r} is taken by {self._names[name]!r}; choose another for this {what}")
        return name

    def _body(self, body: Body | str, what: str) -> Body:
        if isinstance(body, str):
            body = self[body]
        if not isinstance(body, Body):
            raise ModelError(f"{what} needs a body or a body's name, got {shown(body)}")
        if self._names.get(body.name) is not body:
            since = f", or was changed since: take mechanism[{body.name!r}]" if body.name in self._names else ""
            raise ModelError(f"{what}: {body!r} belongs to another mechanism than {self.name!r}{since}")
        return body

    @checked(name=NAME)
    def body(
        self,
        name: str,
        shape: Shape | Placed | None = None,
        *,
        mass: float | None = None,
        inertia: ArrayLike | None = None,
        position: ArrayLike | None = None,
        orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        collide: bool = False,
    ) -> Body:
        """Add a body, from a shape or from ``mass`` (kg) and ``inertia`` (kg m^2, about the centre of mass, body axes).

        ``position`` (m): that of the centre of mass, the origin by default; shapes such as ``Rod.between(p, q)`` bring their own.
        ``collide``: its shape touches the environment and the shapes of other bodies that collide.
        """
        self._take_name(name, "body")
        shape, position = unplaced(shape, position, f"body {name!r}")
        if shape is not None:
            if not isinstance(shape, Shape):
                raise ModelError(f"body {name!r}: shape must be one of dalembert's shapes, got {shape!r}")
            if mass is not None or inertia is not None:
                raise ModelError(f"body {name!r}: give a shape or mass and inertia, not both")
            mass, inertia = shape.mass, shape.inertia
        elif mass is None or inertia is None:
            raise ModelError(f"body {name!r} needs a shape, or mass= and inertia=")
        if collide and shape is None:
            raise ModelError(f"body {name!r} has no shape to collide with: give it one, or use contact_point")
        return self._append_body(
            name, check_mass(mass, name), check_inertia(inertia, name),
            vector(position, 3, f"body {name!r}: position"), unit_quaternion(orientation, f"body {name!r}: orientation"), shape,
            collide,
        )

    def _append_body(
        self, name: str, mass: float, inertia: np.ndarray, position: np.ndarray, orientation: np.ndarray, shape: Shape | None,
        collide: bool = False,
    ) -> Body:
        body = Body(self._take_name(name, "body"), len(self.bodies), mass, inertia, position, orientation, shape, collide)
        for array in (inertia, position, orientation):
            array.flags.writeable = False  # simulations and trajectories share it
        self.bodies.append(body)
        self._names[name] = body
        return body

    @checked
    def visual(
        self,
        body: Body | str,
        geometry: Shape | Mesh,
        *,
        position: ArrayLike = (0.0, 0.0, 0.0),
        orientation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
        colour: Colour | None = None,
    ) -> None:
        """Draw a shape or mesh on a body, at a ``position`` from its centre of mass, in body axes. Changes no motion."""
        body = self._body(body, "visual")
        if not isinstance(geometry, Shape | Mesh):
            raise ModelError(f"a visual of {body.name!r} must be a shape or a Mesh, got {geometry!r}")
        visual = Visual(
            geometry, vector(position, 3, f"visual {body.name!r}: position"),
            unit_quaternion(orientation, f"visual {body.name!r}: orientation"),
            None if colour is None else tuple(vector(colour, 4, f"visual {body.name!r}: colour").tolist()),  # type: ignore[arg-type]
        )
        self.visuals.setdefault(body.name, []).append(visual)

    @checked(name=NAME)
    def joint(
        self,
        name: str,
        type: Joint,
        parent: Body | str,
        child: Body | str,
        *,
        at: ArrayLike | tuple[ArrayLike, ArrayLike] = (0.0, 0.0, 0.0),
        frame: ArrayLike | tuple[ArrayLike, ArrayLike] = (1.0, 0.0, 0.0, 0.0),
    ) -> JointElement:
        """Join ``child`` to ``parent`` at a world point of the reference pose (or a pair: one on each body).

        ``frame``: orientation of the joint's axes in the world at the reference pose, a quaternion (or a pair: one on each
        body); what a joint transmits is reported along these axes, carried by the parent.
        """
        self._take_name(name, "joint")
        if not isinstance(type, Joint):
            raise ModelError(f"joint {name!r}: the type must be a joint such as dalembert.Revolute(), got {type!r}")
        parent, child = self._body(parent, f"joint {name!r}"), self._body(child, f"joint {name!r}")
        if parent is child:
            raise ModelError(f"joint {name!r} goes from {parent.name!r} to itself; it needs two different bodies")
        if child is self.world:
            raise ModelError(f"joint {name!r}: the world can only be the parent; swap {parent.name!r} and the world")
        points = self._points(at, f"joint {name!r}")
        turns = self._pair(frame, 4, f"joint {name!r}: frame")
        axes = [rotation_matrix(unit_quaternion(turn, f"joint {name!r}: frame")) for turn in turns]
        if not type.has_rows:  # the child's frame stands where the motion begins
            home = type.motion(np.zeros(type.freedom))
            points, axes = (points[0], points[1] + axes[1] @ home[:3, 3]), [axes[0], axes[1] @ home[:3, :3]]
        element = JointElement(
            name, len(self.joints), type, parent, child,
            *(rotation_matrix(b.orientation).T @ (p - b.position) for b, p in zip((parent, child), points)),
            *(rotation_matrix(b.orientation).T @ turn for b, turn in zip((parent, child), axes)),
        )
        apart = float(np.linalg.norm(points[1] - points[0]))
        if isinstance(type, Distance | PointSpring) and apart < 1e-9 and getattr(type, "length", None) is None:
            raise ModelError(f"{name!r}: its two points coincide; give at=(point on parent, point on child)")
        self.joints.append(element)
        self._names[name] = element
        return element

    @staticmethod
    def _points(at: ArrayLike | tuple[ArrayLike, ArrayLike], what: str) -> tuple[np.ndarray, np.ndarray]:
        first, second = Mechanism._pair(at, 3, f"{what}: at")
        return first, second

    @staticmethod
    def _pair(value: Any, size: int, what: str) -> np.ndarray:
        """(2, size): a pair of vectors, or one twice."""
        array = (numbers(size) | numbers(2, size))(value, what)
        return array if array.ndim == 2 else np.array([array, array])

    @checked(name=NAME, length=NOT_NEGATIVE | NOTHING)
    def spring(
        self,
        name: str,
        parent: Body | str,
        child: Body | str,
        *,
        at: tuple[ArrayLike, ArrayLike],
        stiffness: float = 0.0,
        damping: float = 0.0,
        length: float | None = None,
    ) -> JointElement:
        """A spring (N/m) and damper (N s/m) between two world points of the reference pose, slack at ``length`` metres."""
        first, second = self._points(at, f"spring {name!r}")
        if length is None:
            length = float(np.linalg.norm(second - first))
        return self.joint(name, PointSpring(stiffness=stiffness, damping=damping, rest=length), parent, child, at=at)

    @checked(name=NAME, directions=TWO)
    def gear(
        self,
        name: str,
        first: JointElement | str,
        second: JointElement | str,
        *,
        ratio: float,
        offset: float = 0.0,
        directions: tuple[int, int] = (0, 0),
    ) -> Coupling:
        """Tie two joints: coordinate of ``first`` = ``ratio`` * coordinate of ``second`` + ``offset``.

        Two revolutes make a gear pair, a revolute and a prismatic a rack and pinion (ratio in rad/m or m/rad).
        """
        self._take_name(name, "gear")
        ends = [self._single_turn(joint, direction, f"gear {name!r}") for joint, direction in zip((first, second), directions)]
        if ends[0] is ends[1] and directions[0] == directions[1]:
            raise ModelError(f"gear {name!r} ties joint {ends[0].name!r} to itself; it needs two joints, or two directions of one")
        gear = Coupling(name, len(self.couplings), ends[0], ends[1], ratio, offset, *directions)
        self.couplings.append(gear)
        self._names[name] = gear
        return gear

    def _single_turn(self, joint: JointElement | str, direction: int, what: str) -> JointElement:
        """The joint whose slide or single turn is to be tied to others."""
        element = self[joint] if isinstance(joint, str) else joint
        if not isinstance(element, JointElement) or self._names.get(element.name) is not element:
            raise ModelError(f"{what} needs joints of {self.name!r}, got {shown(joint)}")
        kinds = element.type.directions
        if not isinstance(direction, int | np.integer) or not 0 <= direction < len(kinds) or kinds[direction][0] in ("ball", "distance") or not element.type.has_rows:
            raise ModelError(f"{what}: direction {shown(direction)} of {element!r} is no slide or single turn that can be tied")
        return element

    @checked
    def wrench(self, body: Body | str, *, force: ArrayLike = (0.0, 0.0, 0.0), torque: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        """A constant wrench on a body: ``force`` in N at the centre of mass, world axes; ``torque`` in N m, body axes."""
        body = self._body(body, "wrench")
        if body is self.world:
            raise ModelError("a wrench on the world moves nothing; name a body")
        wrench = np.concatenate([vector(force, 3, f"wrench {body.name!r}: force"), vector(torque, 3, f"wrench {body.name!r}: torque")])
        self.wrenches[body.name] = self.wrenches.get(body.name, np.zeros(6)) + wrench

    def load(self, *_: Any, **__: Any) -> NoReturn:
        """Says what to call instead."""
        raise ModelError("Mechanism has no load: use wrench() for a constant force or torque on a body, dalembert.load for a model file")

    @property
    def loads(self) -> NoReturn:
        """Says what to read instead."""
        raise ModelError("Mechanism has no loads: the constant wrenches on bodies are in wrenches")

    @checked(name=NAME)
    def potential(
        self,
        name: str,
        body: Body | str,
        energy: Energy,
        *,
        wrench: Callable[[np.ndarray, np.ndarray], ArrayLike] | None = None,
    ) -> ForceLaw:
        """A potential energy (J) of one body as a function of its position (3,) and orientation (4,).

        ``wrench`` gives force (world) and torque (body axes), six numbers, the negative gradient; without it the
        energy is differentiated numerically. ``force_law`` takes laws over several bodies, and of velocities.
        """
        return self.force_law(
            name, body, None if wrench is None else lambda x, q, _: wrench(x[0], q[0]), energy=lambda x, q: energy(x[0], q[0]),
        )

    @checked
    def draw_graph(self, path: str | FilePath | None = None) -> Any:
        """Draw bodies and joints as a graph with its loops, beside the pattern of the step matrix and its fill-in.

        Returns the Matplotlib figure; ``path``: also write the picture there.
        """
        from dalembert.view.graph import draw_graph

        return draw_graph(self, path)

    @checked
    def save(self, path: str | FilePath) -> None:
        """Write everything to a .toml or .json file for ``dalembert.load``, or the tree of links and joints to a .urdf file."""
        path = FilePath(path)
        if path.suffix.lower() == ".urdf":
            from dalembert.io.urdf_export import save_urdf

            save_urdf(self, path)
        else:
            from dalembert.io.native import save_native

            save_native(self, path)

    @property
    def mass(self) -> float:
        """Total mass in kg."""
        return float(sum(b.mass for b in self.bodies))

    @checked(element=NAME)
    def start(
        self,
        element: str,
        value: ArrayLike | None = None,
        *,
        rate: ArrayLike | None = None,
        linear: ArrayLike | None = None,
        angular: ArrayLike | None = None,
    ) -> None:
        """Say how simulations of this mechanism start: coordinates and rates of a joint or a coordinate map, or a body's velocities.

        The arguments are those of ``Simulation.set_joint`` and ``Simulation.set_velocity``.
        """
        found = self[element]
        moves = isinstance(found, CoordinateMap | JointElement)
        if not moves and (not isinstance(found, Body) or found is self.world):
            raise ModelError(f"start needs a joint, a coordinate map or a body that moves, got {found!r}")
        if moves and not (linear is None and angular is None):
            raise ModelError(f"start of {found!r}: linear= and angular= are velocities of bodies; a joint has rate=")
        if not moves and not (value is None and rate is None):
            raise ModelError(f"start of {found!r}: a value and a rate are those of joints; a body has linear= and angular=")
        if isinstance(found, CoordinateMap):
            self.initial_joints |= found.joint_settings(value, rate)
        elif isinstance(found, JointElement):
            free = found.type.freedom
            for given, what in ((value, "value"), (rate, "rate")):
                if given is not None:
                    vector(np.atleast_1d(given), free, f"{what} of the start of joint {element!r}")
            self.initial_joints[element] = (value, rate)
        else:
            for given, what in ((linear, "linear"), (angular, "angular")):
                if given is not None:
                    vector(given, 3, f"{what} velocity of the start of {element!r}")
            self.initial_velocities[element] = (linear, angular)
