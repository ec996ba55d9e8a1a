"""A parsed SDF file, translated: frames first, then links, joints, shapes and sensors."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import BudgetError, ModelError
from dalembert.io.budget import PER_LINK, Meter
from dalembert.io.hulls import touching_shape
from dalembert.io.link_shapes import Shapes
from dalembert.io.options import Options
from dalembert.io.robot import fresh
from dalembert.io.sdf.frames import HERE, Frames, Pose, numbers, read_pose
from dalembert.mechanism.actuators import Actuator
from dalembert.mechanism.joints import Fixed, Helical, Joint, Prismatic, Revolute, Spherical, Universal
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.sensors import IMU, ForceTorque
from dalembert.mechanism.shapes import Capsule, Cone, Ellipsoid, Shape, check_inertia, check_mass
from dalembert.mechanism.visuals import Mesh

#: numbers of <limit> from which on there is none
UNLIMITED = 1e8
#: what a frame counts for in a budget
PER_FRAME = 200
#: elements that say nothing about motion, or that are read
SILENT = {
    "world": {"physics", "scene", "light", "gui", "audio", "magnetic_field", "spherical_coordinates", "gravity", "model", "frame", "joint", "state", "atmosphere"},
    "model": {"pose", "static", "self_collide", "link", "joint", "frame", "model", "allow_auto_disable", "placement_frame"},
    "link": {"pose", "inertial", "visual", "collision", "sensor", "self_collide", "gravity", "kinematic", "light", "must_be_base_link", "enable_wind"},
    "joint": {"pose", "parent", "child", "axis", "axis2", "sensor", "physics", "screw_thread_pitch", "thread_pitch"},
}


@dataclass
class Scope:
    """A model being read: its full name with "::" at the end, whether it stands still, and which bits its shapes touch by."""

    prefix: str
    frame: str
    static: bool
    layer: int
    mask: int


class Reader:
    """One file being read; what has no place goes into the report."""

    def __init__(self, root: Element, path: Path, options: Options, meter: Meter) -> None:
        self.root, self.path, self.options, self.meter = root, path, options, meter
        self.frames = Frames()
        self.report: list[str] = []
        self.shapes = Shapes(path, options.root, self.report, meter)
        self.scopes: list[tuple[Scope, Element]] = []
        self.bodies: dict[str, Body] = {}
        self.joined: set[str] = set()
        self.taken = {"world"}

    def mechanism(self) -> Mechanism:
        worlds = self.root.findall("world")
        if len(worlds) > 1:
            self.report += [f"world {w.get('name')!r} is left out: the first one is read" for w in worlds[1:]]
        top = worlds[0] if worlds else self.root
        models = top.findall("model")
        if not models:
            raise ModelError(f"{self.path} has no models")
        single = len(models) == 1
        title = models[0].get("name") if single else top.get("name")
        gravity = numbers(top.findtext("gravity", "0 0 -9.81"), 3, "gravity")
        self.made = Mechanism(title or self.path.stem, gravity=gravity)
        self._unread(top, "world", f"world {top.get('name')!r}")
        for frame in top.findall("frame"):
            self._frame(frame, "", "world")
        for k, model in enumerate(models):
            self._model(model, "", "world", False, k, single)
        for scope, model in self.scopes:
            for link in model.findall("link"):
                self._link(scope, link)
        for scope, model in self.scopes:
            for joint in model.findall("joint"):
                self._joint(scope, joint)
        for joint in top.findall("joint"):
            self._joint_frame(joint, "", "world")
            self._joint(Scope("", "world", False, 1, 1), joint)
        if not self.made.bodies:
            raise ModelError(f"{self.path} has no links that move: all of its models are static")
        if self.options.base == "fixed":
            self._hold()
        self.made.report[:] = self.report
        return self.made

    # ---- models and frames

    def _model(self, model: Element, prefix: str, around: str, static: bool, number: int, single: bool) -> None:
        """Take in a model's frames; ``single``: its name stands before those of its elements only where there are several."""
        name = self._name(model, "model")
        full, inner = prefix + name, "" if single else f"{prefix}{name}::"
        what = f"model {full!r}"
        self._unread(model, "model", what)
        still = static or model.findtext("static", "false").strip() in ("true", "1")
        own = 1 << (1 + number % 60)
        touching = model.findtext("self_collide", "false").strip() in ("true", "1") if self.options.self_collisions is None else self.options.self_collisions
        frame = f"{full}::__model__"
        pose = model.find("pose")
        self.frames.add(frame, self._relative(pose, around, prefix, around), read_pose(pose, what))
        if not single:
            self.frames.add(full, frame, HERE)
        scope = Scope(inner, frame, still, own, -1 if touching else ~own)
        self.scopes.append((scope, model))
        for element in (*model.findall("link"), *model.findall("frame")):
            self._frame(element, inner, frame)
        for joint in model.findall("joint"):
            self._joint_frame(joint, inner, frame)
        for nested in model.findall("model"):
            self._model(nested, inner, frame, still, number, False)

    def _frame(self, element: Element, prefix: str, around: str) -> None:
        name, pose = self._name(element, element.tag), element.find("pose")
        self.meter.elements(PER_FRAME, f"frame {name!r}")
        attached = element.get("attached_to")
        default = around if not attached else self._find(prefix, attached)
        self.frames.add(prefix + name, self._relative(pose, default, prefix, around), read_pose(pose, f"{element.tag} {prefix + name!r}"))

    def _joint_frame(self, joint: Element, prefix: str, around: str) -> None:
        """The frame of a joint, in that of its child unless it says otherwise."""
        name, child, pose = self._name(joint, "joint"), (joint.findtext("child") or "").strip(), joint.find("pose")
        self.frames.add(f"{prefix}{name}::joint", self._relative(pose, self._find(prefix, child), prefix, around), read_pose(pose, f"joint {prefix + name!r}"))

    def _relative(self, pose: Element | None, default: str, prefix: str, model: str) -> str:
        """The frame that a pose is given in; ``model``: that of the model around it."""
        wanted = None if pose is None else pose.get("relative_to")
        if not wanted:
            return default
        return model if wanted == "__model__" else self._find(prefix, wanted)

    @staticmethod
    def _find(prefix: str, name: str) -> str:
        return name if name == "world" else prefix + name

    def _name(self, element: Element, what: str) -> str:
        name = element.get("name", "")
        if not name:
            raise ModelError(f"{self.path}: a {what} has no name")
        return name

    def _unread(self, element: Element, kind: str, what: str) -> None:
        for tag, count in Counter(child.tag for child in element if child.tag not in SILENT[kind]).items():
            self.report.append(f"{what}: <{tag}> is left out" + (f" ({count} times)" if count > 1 else ""))

    # ---- links

    def _link(self, scope: Scope, link: Element) -> None:
        name = scope.prefix + self._name(link, "link")
        what = f"link {name!r}"
        self._unread(link, "link", what)
        self.meter.elements(PER_LINK, what)
        pose = self.frames.pose(name)
        if scope.static:
            body = self.made.world
        else:
            mass, center, inertia = self._inertial(link, what)
            body = self.made._append_body(
                fresh(name, self.taken, "link"), mass, inertia, pose.position + pose.rotation.apply(center), pose.rotation.as_quat(scalar_first=True), None,
            )
            if link.findtext("gravity", "true").strip() in ("false", "0"):
                self.made.wrench(body, force=-mass * np.asarray(self.made.gravity))
        self.bodies[name] = body
        for visual in link.findall("visual"):
            self._draw(body, visual, pose, f"visual {visual.get('name')!r} of {what}")
        for collision in link.findall("collision") if self.options.contacts else []:
            self._touch(scope, body, collision, pose, f"{name} {collision.get('name') or 'collision'}")
        for sensor in link.findall("sensor"):
            place = self._in_body(body, pose.then(read_pose(sensor.find("pose"), f"sensor {sensor.get('name')!r}")))
            if sensor.get("type") == "imu" and body is not self.made.world:
                self._sense(sensor, IMU(point=place.position, frame=place.rotation.as_quat(scalar_first=True)), body)
            else:
                self.report.append(f"{what}: the {sensor.get('type')} sensor {sensor.get('name')!r} is left out")

    def _inertial(self, link: Element, what: str) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass, centre and inertia about it in the link's axes; 1 kg and 1 kg m^2 where the file says nothing, as SDF has it."""
        given = link.find("inertial")
        if given is None:
            self.report.append(f"{what} has no <inertial>: it is taken for 1 kg and 1 kg m^2, as SDF has it")
            return 1.0, np.zeros(3), np.eye(3)
        mass = float(numbers(given.findtext("mass", "1"), 1, f"the mass of {what}")[0])
        entries = {key: float(numbers(given.findtext(f"inertia/{key}", "1" if key[1] == key[2] else "0"), 1, f"{key} of {what}")[0]) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")}
        matrix = np.array([[entries["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
        place = read_pose(given.find("pose"), f"the inertia of {what}")
        turn = place.rotation.as_matrix()
        inertia = turn @ matrix @ turn.T
        return check_mass(mass, what), place.position, check_inertia(0.5 * (inertia + inertia.T), what)

    def _in_body(self, body: Body, pose: Pose) -> Pose:
        """A pose of the world in a body's frame."""
        turn = Rotation.from_quat(np.array(body.orientation), scalar_first=True).inv()
        return Pose(turn.apply(pose.position - body.position), turn * pose.rotation)

    def _draw(self, body: Body, visual: Element, pose: Pose, what: str) -> None:
        try:
            shape = self._geometry(visual.find("geometry"), what)
        except BudgetError as error:  # pictures are not worth refusing a robot
            self.meter.look_at_clock()
            self.report.append(f"{what} is not drawn: {error}")
            return
        if shape is None or shape == "plane":
            return
        place = self._in_body(body, pose.then(read_pose(visual.find("pose"), what)))
        colour = visual.findtext("material/diffuse") or visual.findtext("material/ambient")
        rgba = None
        if colour is not None:
            values = [float(v) for v in colour.split()]
            rgba = tuple(np.clip([*values, 1.0][:4], 0.0, 1.0).tolist()) if len(values) in (3, 4) else None
        centre = shape.center_of_mass if isinstance(shape, Shape) else np.zeros(3)
        self.made.visual(body, shape, position=place.position + place.rotation.apply(centre), orientation=place.rotation.as_quat(scalar_first=True), colour=rgba)

    def _touch(self, scope: Scope, body: Body, collision: Element, pose: Pose, name: str) -> None:
        what = f"collision {name!r}"
        place = pose.then(read_pose(collision.find("pose"), what))
        shape = self._geometry(collision.find("geometry"), what)
        friction = self._coefficient(collision, ("surface/friction/ode/mu", "surface/friction/bullet/friction"), 1.0, what)
        bounce = min(self._coefficient(collision, ("surface/bounce/restitution_coefficient",), 0.0, what), 1.0)
        laws: dict[str, Any] = dict(friction=friction, restitution=bounce, layer=scope.layer, mask=scope.mask)
        title = fresh(name, self.taken, "shape")
        if shape == "plane":
            normal = place.rotation.apply(numbers(collision.findtext("geometry/plane/normal", "0 0 1"), 3, f"the normal of {what}"))
            if body is self.made.world:
                self.made.ground(normal=normal, offset=float(normal @ place.position / np.linalg.norm(normal)), name=title, **laws)
            else:
                self.report.append(f"{what} is left out: a plane that moves")
            return
        if isinstance(shape, Mesh):
            shape = touching_shape(shape, self.options.decompose, self.meter, what, self.report)
        if shape is None:
            return
        place = Pose(place.position + place.rotation.apply(shape.center_of_mass), place.rotation)
        local = place if body is self.made.world else self._in_body(body, place)
        pieces: dict[str, Any] = dict(position=local.position, orientation=local.rotation.as_quat(scalar_first=True), **laws)
        if body is self.made.world:
            self.made.obstacle(title, shape, **pieces)
        else:
            self.made.collider(title, body, shape, **pieces)

    def _coefficient(self, collision: Element, ways: tuple[str, ...], default: float, what: str) -> float:
        text = next((found for way in ways if (found := collision.findtext(way)) is not None), None)
        return default if text is None else max(float(numbers(text, 1, f"a coefficient of {what}")[0]), 0.0)

    def _geometry(self, geometry: Element | None, what: str) -> Any:
        """A shape, a mesh, "plane", or None with a line in the report."""
        kind = None if geometry is None or len(geometry) == 0 else geometry[0]
        if kind is None or kind.tag == "empty":
            return None
        if kind.tag == "plane":
            return "plane"

        def size(tag: str, count: int = 1) -> Any:
            values = numbers(kind.findtext(tag), count, f"<{tag}> of {what}")
            return float(values[0]) if count == 1 else values.tolist()

        try:
            if kind.tag == "capsule":
                return Capsule(radius=size("radius"), length=size("length"), mass=1.0)
            if kind.tag == "cone":
                return Cone(radius=size("radius"), length=size("length"), mass=1.0)
            if kind.tag == "ellipsoid":
                return Ellipsoid(semi_axes=size("radii", 3), mass=1.0)
            same: dict[str, Any] = dict(box=None, cylinder=None, sphere=None, mesh=None)
            if kind.tag == "box":
                same["box"] = SimpleNamespace(size=size("size", 3))
            elif kind.tag == "cylinder":
                same["cylinder"] = SimpleNamespace(radius=size("radius"), length=size("length"))
            elif kind.tag == "sphere":
                same["sphere"] = SimpleNamespace(radius=size("radius"))
            elif kind.tag == "mesh":
                if kind.find("submesh") is not None:
                    self.report.append(f"{what} takes the whole mesh, not a part of it")
                same["mesh"] = SimpleNamespace(filename=(kind.findtext("uri") or "").strip(), scale=numbers(kind.findtext("scale", "1 1 1"), 3, f"the scale of {what}"))
            else:
                self.report.append(f"{what} is left out: a {kind.tag} is not known here")
                return None
        except BudgetError:
            raise
        except ModelError as error:
            self.report.append(f"{what} is left out: {error}")
            return None
        return self.shapes.shape(SimpleNamespace(**same), what)

    # ---- joints

    def _joint(self, scope: Scope, joint: Element) -> None:
        name, kind = self._name(joint, "joint"), joint.get("type", "")
        what = f"joint {scope.prefix + name!r}"
        self._unread(joint, "joint", what)
        ends = [self._end(scope, (joint.findtext(tag) or "").strip(), what) for tag in ("parent", "child")]
        if ends[0] is ends[1]:
            self.report.append(f"{what} is left out: both of its links stand still")
            return
        pose = self.frames.pose(f"{scope.prefix}{name}::joint")
        swapped = ends[1] is self.made.world
        parent, child = ends[::-1] if swapped else ends
        type_, effort = self._type(scope, joint, kind, pose, -1.0 if swapped else 1.0, what)
        if type_ is None:
            return
        title = fresh(scope.prefix + name, self.taken, "joint")
        self.made.joint(title, type_, parent, child, at=pose.position, frame=pose.rotation.as_quat(scalar_first=True))
        self.joined.add(child.name)
        limits = type_.limits[0] if type_.freedom == 1 and type_.limits is not None else None  # type: ignore[index]
        if limits is not None and not limits[0] <= 0.0 <= limits[1]:
            self.made.start(title, float(np.clip(0.0, *limits)))
        if effort is not None:
            self.made.actuators[title] = Actuator(name=title, arms={title: 1.0}, force_range=(-effort, effort))
        for sensor in joint.findall("sensor"):
            if sensor.get("type") == "force_torque":
                self._sense(sensor, ForceTorque(), self.made[title])
            else:
                self.report.append(f"{what}: the {sensor.get('type')} sensor {sensor.get('name')!r} is left out")

    def _end(self, scope: Scope, name: str, what: str) -> Body:
        if name == "world":
            return self.made.world
        full = scope.prefix + name
        if full in self.bodies:
            return self.bodies[full]
        raise ModelError(f"{self.path}: {what} names the link {name!r}, which does not exist")

    def _type(self, scope: Scope, joint: Element, kind: str, pose: Pose, sign: float, what: str) -> tuple[Joint | None, float | None]:
        """The joint with its laws, and the bound of its effort."""
        if kind == "fixed":
            return Fixed(), None
        if kind == "ball":
            return Spherical(), None
        first = joint.find("axis")
        if kind in ("universal", "revolute2"):
            axes = [self._axis(scope, joint.find(tag), pose, what) for tag in ("axis", "axis2")]
            if abs(float(axes[0] @ axes[1])) > 1e-6:
                self.report.append(f"{what} is left out: its two axes are not at right angles")
                return None, None
            damping = [self._dynamics(joint.find(tag), what)["damping"] for tag in ("axis", "axis2")]
            order = slice(None, None, int(sign))  # seen from the child, the second axis comes first
            first_axis, second_axis = (tuple(sign * axis) for axis in axes[order])
            return Universal(axes=(first_axis, second_axis), damping=tuple(damping[order]), drive="force"), None
        if kind not in ("revolute", "continuous", "prismatic", "screw"):
            self.report.append(f"{what} is left out: a {kind} joint is not known here")
            return None, None
        axis: Any = tuple((sign * self._axis(scope, first, pose, what)).tolist())
        laws: dict[str, Any] = dict(drive="force", **self._dynamics(first, what))
        laws["limits"], effort = self._limits(first, what)
        if not self.options.limits:
            laws |= dict(limits=None, friction=0.0)
        if kind == "screw":
            pitch = float(numbers(joint.findtext("screw_thread_pitch", "0.01"), 1, f"the pitch of {what}")[0])
            if joint.find("thread_pitch") is not None:
                self.report.append(f"{what}: thread_pitch is left out; screw_thread_pitch is read")
            return Helical(axis=axis, pitch=pitch, **laws), effort
        return {"prismatic": Prismatic}.get(kind, Revolute)(axis=axis, **laws), effort

    def _axis(self, scope: Scope, axis: Element | None, pose: Pose, what: str) -> np.ndarray:
        """A unit vector in the joint's frame."""
        xyz = None if axis is None else axis.find("xyz")
        values = numbers("0 0 1" if xyz is None else xyz.text, 3, f"the axis of {what}")
        if np.linalg.norm(values) < 1e-9:
            raise ModelError(f"{self.path}: the axis of {what} must not be zero")
        named = None if xyz is None else xyz.get("expressed_in")
        if axis is not None and axis.findtext("use_parent_model_frame", "0").strip() in ("1", "true"):
            named = "__model__"
        if named:
            there = self.frames.pose(scope.frame if named == "__model__" else self._find(scope.prefix, named))
            values = (pose.rotation.inv() * there.rotation).apply(values)
        return values / np.linalg.norm(values)

    def _dynamics(self, axis: Element | None, what: str) -> dict[str, float]:
        found = {}
        for key, tag, least in (("damping", "damping", 0.0), ("friction", "friction", 0.0), ("stiffness", "spring_stiffness", 0.0), ("rest", "spring_reference", -np.inf)):
            text = None if axis is None else axis.findtext(f"dynamics/{tag}")
            value = 0.0 if text is None else float(numbers(text, 1, f"{tag} of {what}")[0])
            if value < least:
                raise ModelError(f"{self.path}: {tag} of {what} must not be negative, got {value}")
            found[key] = value
        return found

    def _limits(self, axis: Element | None, what: str) -> tuple[tuple[float, float] | None, float | None]:
        limit = None if axis is None else axis.find("limit")
        if limit is None:
            return None, None

        def bound(tag: str, default: float) -> float:
            text = (limit.findtext(tag) or "").strip().lower()
            if text in ("", "inf", "+inf", "-inf"):
                return default
            return float(numbers(text, 1, f"{tag} of {what}")[0])

        lower, upper, effort = bound("lower", -np.inf), bound("upper", np.inf), bound("effort", np.inf)
        ends = (lower if lower > -UNLIMITED else -np.inf, upper if upper < UNLIMITED else np.inf)
        if not ends[0] < ends[1]:
            self.report.append(f"{what}: its limits {lower:g} to {upper:g} leave no room, and are not enforced")
            ends = -np.inf, np.inf
        if bound("velocity", np.inf) < UNLIMITED and bound("velocity", np.inf) > 0.0 and self.options.limits:
            self.report.append(f"{what}: its velocity limit is not enforced")
        return (ends if np.isfinite(ends).any() else None), (effort if 0.0 < effort < UNLIMITED else None)

    def _sense(self, sensor: Element, kind: Any, on: Any) -> None:
        self.made.sensor(fresh(sensor.get("name") or "sensor", self.taken, "sensor"), kind, on)
        if sensor.find(".//noise") is not None:
            self.report.append(f"sensor {sensor.get('name')!r}: its noise is not added; Mechanism.change can")

    def _hold(self) -> None:
        """Fix the first link of every model that no joint ties to the world."""
        grounded = {j.child.name for j in self.made.joints if j.parent is self.made.world}
        for scope, model in self.scopes:
            links = [self.bodies[scope.prefix + link.get("name", "")] for link in model.findall("link")]
            if links and not scope.static and not any(link.name in grounded for link in links) and links[0].name not in self.joined:
                self.made.joint(fresh(f"{links[0].name} fixed", self.taken, "joint"), Fixed(), self.made.world, links[0], at=links[0].position)
