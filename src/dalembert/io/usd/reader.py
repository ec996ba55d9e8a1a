"""A USD stage, translated: rigid bodies with their mass, then joints, shapes that touch and pictures."""
from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.io.budget import PER_LINK, Meter
from dalembert.io.hulls import hull, touching_shape
from dalembert.io.options import Options
from dalembert.io.robot import fresh
from dalembert.mechanism.convex import Convex
from dalembert.mechanism.forces import Servo
from dalembert.mechanism.joints import Distance, Fixed, Joint, Prismatic, Revolute, Spherical
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.shapes import (
    Box,
    Capsule,
    Composite,
    Cone,
    Cylinder,
    Ellipsoid,
    Shape,
    Sphere,
    check_inertia,
    check_mass,
)
from dalembert.mechanism.visuals import Mesh

AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
#: shapes about an axis, with the radius and the height that they have without others
ROUND: dict[str, tuple[Any, float, float]] = {"Capsule": (Capsule, 0.5, 1.0), "Cylinder": (Cylinder, 1.0, 2.0), "Cone": (Cone, 1.0, 2.0)}
#: kg/m^3 of bodies for which a file gives neither mass nor density, as UsdPhysics has it for metres
DENSITY = 1000.0


class Place(NamedTuple):
    """A pose of the world with the scale of what is in it: ``position`` (3,), ``rotation``, ``scale`` (3,)."""

    position: np.ndarray
    rotation: Rotation
    scale: np.ndarray

    def point(self, local: Any) -> np.ndarray:
        return self.position + self.rotation.apply(self.scale * np.asarray(local, dtype=float))


class Reader:
    """One stage being read; what has no place goes into the report."""

    geom: Any
    physics: Any
    shade: Any

    def __init__(self, stage: Any, path: Path, options: Options, meter: Meter) -> None:
        self.geom, self.physics, self.shade = (import_module(f"pxr.{name}") for name in ("UsdGeom", "UsdPhysics", "UsdShade"))
        self.stage, self.path, self.options, self.meter = stage, path, options, meter
        self.cache = self.geom.XformCache()
        self.unit, self.kilograms = float(self.geom.GetStageMetersPerUnit(stage)), float(self.physics.GetStageKilogramsPerUnit(stage))
        self.upright = Rotation.from_euler("x", 90.0, degrees=True) if self.geom.GetStageUpAxis(stage) == "Y" else Rotation.identity()
        self.report: list[str] = []
        self.bodies: dict[str, Body] = {}
        self.taken = {"world"}

    def mechanism(self) -> Mechanism:
        prims = list(self.stage.Traverse())
        self.meter.elements(50 * len(prims), "its prims")
        default = self.stage.GetDefaultPrim()
        self.made = Mechanism(default.GetName() if default else self.path.stem, gravity=self._gravity(prims))
        moving = [p for p in prims if p.HasAPI(self.physics.RigidBodyAPI) and self._get(self.physics.RigidBodyAPI(p).GetRigidBodyEnabledAttr(), True)]
        if not moving:
            raise ModelError(f"{self.path} has no rigid bodies: prims with PhysicsRigidBodyAPI")
        shapes: dict[str, list[tuple[Any, Shape | Mesh | None, Place]]] = {}
        for prim in prims:
            if prim.IsA(self.geom.Gprim):
                shapes.setdefault(self._owner(prim), []).append((prim, self._shape(prim), self._place(prim)))
        for prim in moving:
            self._body(prim, shapes.get(str(prim.GetPath()), []))
        for owner, found in shapes.items():
            for prim, shape, place in found:
                self._use(self.bodies.get(owner, self.made.world), prim, shape, place)
        for prim in prims:
            if prim.IsA(self.physics.Joint):
                self._joint(prim)
        self.made.report[:] = self.report
        return self.made

    def _get(self, attribute: Any, default: Any) -> Any:
        value = attribute.Get() if attribute else None
        return default if value is None else value

    def _gravity(self, prims: list[Any]) -> np.ndarray:
        scenes = [self.physics.Scene(p) for p in prims if p.IsA(self.physics.Scene)]
        direction, size = np.zeros(3), float("-inf")
        if scenes:
            direction, size = np.array(self._get(scenes[0].GetGravityDirectionAttr(), (0, 0, 0)), dtype=float), float(self._get(scenes[0].GetGravityMagnitudeAttr(), float("-inf")))
        down = self.upright.apply(direction / np.linalg.norm(direction)) if np.linalg.norm(direction) > 0 else np.array([0.0, 0.0, -1.0])
        return down * (9.81 if not np.isfinite(size) or size < 0 else size * self.unit)

    def _owner(self, prim: Any) -> str:
        """The path of the rigid body that a prim moves with, or empty."""
        while prim and not prim.IsPseudoRoot():
            if prim.HasAPI(self.physics.RigidBodyAPI):
                return str(prim.GetPath())
            prim = prim.GetParent()
        return ""

    def _place(self, prim: Any) -> Place:
        matrix = np.array(self.cache.GetLocalToWorldTransform(prim))
        linear = matrix[:3, :3].T
        scale = np.linalg.norm(linear, axis=0)
        if not np.isfinite(matrix).all() or scale.min() < 1e-12:
            raise ModelError(f"{self.path}: {prim.GetPath()} has a transform that is not finite, or flat")
        if np.linalg.det(linear) < 0:
            scale[0] *= -1.0
        turn = linear / scale
        if np.abs(turn.T @ turn - np.eye(3)).max() > 1e-4:
            self.report.append(f"{prim.GetPath()} is sheared, which is left out")
        return Place(self.upright.apply(matrix[3, :3] * self.unit), self.upright * Rotation.from_matrix(turn), scale * self.unit)

    # ---- bodies

    def _body(self, prim: Any, shapes: list[tuple[Any, Any, Place]]) -> None:
        path, place = str(prim.GetPath()), self._place(prim)
        self.meter.elements(PER_LINK, f"body {path!r}")
        mass, centre, inertia = self._inertial(prim, place, shapes)
        name = fresh(prim.GetName(), self.taken, "body")
        what = f"body {name!r}"
        self.bodies[path] = self.made._append_body(
            name, check_mass(mass, what), check_inertia(inertia, what), place.position + place.rotation.apply(centre), place.rotation.as_quat(scalar_first=True), None,
        )
        self.made.visuals[name] = []

    def _inertial(self, prim: Any, place: Place, shapes: list[tuple[Any, Any, Place]]) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass, centre and inertia about it in the body's axes: as given, and the rest from the shapes that touch."""
        given = self.physics.MassAPI(prim)
        mass = float(self._get(given.GetMassAttr(), 0.0)) * self.kilograms
        density = float(self._get(given.GetDensityAttr(), 0.0)) * self.kilograms / self.unit**3 or DENSITY
        solid, parts = place.rotation.inv(), []
        for piece, shape, where in shapes:
            if piece.HasAPI(self.physics.CollisionAPI):
                full = shape
                if isinstance(shape, Mesh):
                    around = hull(shape.vertices, self.meter, str(piece.GetPath()), self.report)
                    full = None if around is None else Convex(points=around.points, density=1.0)
                if full is not None:
                    turn = solid * where.rotation
                    parts.append((full, solid.apply(where.position - place.position) + turn.apply(full.center_of_mass), turn.as_quat(scalar_first=True)))
        together = Composite(parts=parts) if parts else None
        if mass <= 0.0:
            mass = together.mass * density if together is not None else 1.0
        centre = np.array(self._get(given.GetCenterOfMassAttr(), (-np.inf,) * 3), dtype=float)
        centre = place.scale * centre if np.isfinite(centre).all() else together.center_of_mass if together is not None else np.zeros(3)
        diagonal = np.array(self._get(given.GetDiagonalInertiaAttr(), (0, 0, 0)), dtype=float) * self.kilograms * self.unit**2
        if np.all(diagonal > 0.0):
            turn = self._quaternion(self._get(given.GetPrincipalAxesAttr(), None)).as_matrix()
            return mass, centre, turn @ np.diag(diagonal) @ turn.T
        if together is None:
            self.report.append(f"{prim.GetPath()} has neither an inertia nor a shape: it is taken for a ball of 0.1 m")
            return mass, centre, np.eye(3) * 0.4 * mass * 0.01
        return mass, centre, np.asarray(together.inertia) * mass / together.mass

    @staticmethod
    def _quaternion(value: Any) -> Rotation:
        if value is None or abs(value.GetLength()) < 1e-9:
            return Rotation.identity()
        return Rotation.from_quat([value.GetReal(), *value.GetImaginary()], scalar_first=True)

    # ---- shapes

    def _shape(self, prim: Any) -> Shape | Mesh | None:
        """The shape of a prim in its own frame, with the scale of the world; of mass 1 per cubic metre."""
        scale, kind = self._place(prim).scale, prim.GetTypeName()
        size = np.abs(scale)
        even = np.ptp(size) < 1e-6 * size.max()

        def number(name: str, default: float) -> float:
            return float(self._get(prim.GetAttribute(name), default))

        if kind == "Cube":
            return Box(size=(number("size", 2.0) * size).tolist(), density=1.0)
        if kind == "Sphere":
            radius = number("radius", 1.0)
            return Sphere(radius=radius * size[0], density=1.0) if even else Ellipsoid(semi_axes=(radius * size).tolist(), density=1.0)
        if kind in ROUND and even:
            shape, radius, height = ROUND[kind]
            axis = np.sign(scale) * AXES[str(self._get(prim.GetAttribute("axis"), "Z"))]
            return shape(radius=number("radius", radius) * size[0], length=number("height", height) * size[0], axis=axis.tolist(), density=1.0)
        if kind == "Mesh":
            return self._mesh(prim, scale)
        if kind != "Plane":
            self.report.append(f"{prim.GetPath()} is left out: a {kind}{'' if even else ' that is stretched'} is not known here")
        return None

    def _mesh(self, prim: Any, scale: np.ndarray) -> Mesh | None:
        mesh = self.geom.Mesh(prim)
        points, counts, corners = (np.array(self._get(attribute, ())) for attribute in (mesh.GetPointsAttr(), mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr()))
        if len(points) < 3 or not len(counts) or counts.sum() != len(corners) or corners.min() < 0 or corners.max() >= len(points):
            self.report.append(f"{prim.GetPath()} is left out: its mesh has no faces, or wrong ones")
            return None
        self.meter.elements(len(points) + len(corners), f"mesh {prim.GetPath()}")
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        faces = [(corners[s], corners[s + k], corners[s + k + 1]) for s, count in zip(starts, counts) for k in range(1, count - 1)]
        faces = np.array(faces)
        return Mesh(points * scale, faces if np.prod(scale) > 0 else faces[:, ::-1])

    def _use(self, body: Body, prim: Any, shape: Any, place: Place) -> None:
        """Draw a shape, and let it touch where it shall."""
        touches = prim.HasAPI(self.physics.CollisionAPI) and self._get(self.physics.CollisionAPI(prim).GetCollisionEnabledAttr(), True)
        turn = Rotation.from_quat(np.array(body.orientation), scalar_first=True).inv()
        centre = shape.center_of_mass if isinstance(shape, Shape) else np.zeros(3)
        position, orientation = turn.apply(place.point(centre / place.scale) - body.position), (turn * place.rotation).as_quat(scalar_first=True)
        imageable = self.geom.Imageable(prim)
        if shape is not None and imageable.ComputePurpose() != "guide" and imageable.ComputeVisibility() != "invisible":
            self.made.visual(body, shape, position=position, orientation=orientation, colour=self._colour(prim))
        if not touches or not self.options.contacts:
            return
        name, laws = fresh(f"{prim.GetName()} of {body.name}", self.taken, "shape"), self._laws(prim)
        if prim.GetTypeName() == "Plane":
            normal = place.rotation.apply(AXES[str(self._get(prim.GetAttribute("axis"), "Z"))])
            if body is self.made.world:
                self.made.ground(normal=normal, offset=float(normal @ place.position), name=name, **laws)
            else:
                self.report.append(f"{prim.GetPath()} is left out: a plane that moves")
            return
        if isinstance(shape, Mesh):
            shape = touching_shape(shape, self.options.decompose, self.meter, str(prim.GetPath()), self.report)
            position = position if shape is None else turn.apply(place.position + place.rotation.apply(shape.center_of_mass) - body.position)
        if shape is None:
            return
        if body is self.made.world:
            self.made.obstacle(name, shape, position=position, orientation=orientation, **laws)
        else:
            own = dict(layer=2, mask=-1) if self.options.self_collisions is not False else dict(layer=2, mask=~2)
            self.made.collider(name, body, shape, position=position, orientation=orientation, **laws, **own)

    def _laws(self, prim: Any) -> dict[str, Any]:
        material, _ = self.shade.MaterialBindingAPI(prim).ComputeBoundMaterial("physics")
        if not material or not material.GetPrim().HasAPI(self.physics.MaterialAPI):
            return {}
        given = self.physics.MaterialAPI(material.GetPrim())
        friction, bounce = float(self._get(given.GetDynamicFrictionAttr(), 0.0)), float(self._get(given.GetRestitutionAttr(), 0.0))
        return dict(friction=max(friction, 0.0), restitution=min(max(bounce, 0.0), 1.0))

    def _colour(self, prim: Any) -> Any:
        colours = self._get(self.geom.Gprim(prim).GetDisplayColorAttr(), ())
        return None if len(colours) == 0 else (*(float(np.clip(c, 0.0, 1.0)) for c in colours[0]), 1.0)

    # ---- joints

    def _joint(self, prim: Any) -> None:
        path, joint, kind = str(prim.GetPath()), self.physics.Joint(prim), prim.GetTypeName()
        if not self._get(joint.GetJointEnabledAttr(), True):
            self.report.append(f"joint {path!r} is switched off")
            return
        ends, points, frames = [], [], []
        for relation, position, rotation in ((joint.GetBody0Rel(), joint.GetLocalPos0Attr(), joint.GetLocalRot0Attr()), (joint.GetBody1Rel(), joint.GetLocalPos1Attr(), joint.GetLocalRot1Attr())):
            targets = relation.GetTargets()
            target = self.stage.GetPrimAtPath(targets[0]) if targets else None
            if targets and not target:
                raise ModelError(f"{self.path}: joint {path!r} names {targets[0]}, which does not exist")
            place = self._place(target) if target else Place(np.zeros(3), self.upright, np.full(3, self.unit))
            ends.append(self.bodies.get(self._owner(target) if target else "", self.made.world))
            points.append(place.point(self._get(position, (0, 0, 0))))
            frames.append((place.rotation * self._quaternion(self._get(rotation, None))).as_quat(scalar_first=True))
        if ends[0] is ends[1]:
            self.report.append(f"joint {path!r} is left out: both of its ends move together")
            return
        swapped = ends[1] is self.made.world
        made = self._type(prim, kind, -1.0 if swapped else 1.0)
        if made is None:
            self.report.append(f"joint {path!r} is left out: a {kind} is not known here")
            return
        order = slice(None, None, -1) if swapped else slice(None)
        name = fresh(prim.GetName(), self.taken, "joint")
        self.made.joint(name, made, *ends[order], at=tuple(points[order]), frame=tuple(frames[order]))
        if self._get(joint.GetCollisionEnabledAttr(), False) and self.made.world not in ends:
            self.made.contact_pair(*ends)

    def _type(self, prim: Any, kind: str, sign: float) -> Joint | None:
        physics = self.physics
        if kind == "PhysicsFixedJoint":
            return Fixed()
        if kind == "PhysicsSphericalJoint":
            cone = [float(self._get(prim.GetAttribute(f"physics:coneAngle{k}Limit"), -1.0)) for k in (0, 1)]
            if any(0.0 <= angle < 180.0 for angle in cone):
                self.report.append(f"joint {prim.GetPath()}: the cone of a ball joint is not enforced")
            return Spherical()
        if kind == "PhysicsDistanceJoint":
            least, most = (float(self._get(prim.GetAttribute(f"physics:{word}Distance"), -1.0)) * self.unit for word in ("min", "max"))
            return Distance(length=most) if 0.0 < least == most else None
        if kind not in ("PhysicsRevoluteJoint", "PhysicsPrismaticJoint"):
            return None
        turning = kind == "PhysicsRevoluteJoint"
        per = np.pi / 180.0 if turning else self.unit
        axis: Any = tuple(sign * np.array(AXES[str(self._get(prim.GetAttribute("physics:axis"), "X"))]))
        low, high = (float(self._get(prim.GetAttribute(f"physics:{end}Limit"), default)) * per for end, default in (("lower", -np.inf), ("upper", np.inf)))
        limits = (low, high) if low < high and np.isfinite((low, high)).any() and self.options.limits else None
        return (Revolute if turning else Prismatic)(axis=axis, limits=limits, **self._drive(physics.DriveAPI.Get(prim, "angular" if turning else "linear"), prim, turning, per))

    def _drive(self, drive: Any, prim: Any, turning: bool, per: float) -> dict[str, Any]:
        if not drive:
            return dict(drive="force")
        unit = self.kilograms * self.unit**2 / per if turning else self.kilograms
        stiffness, damping = (float(self._get(attribute, 0.0)) * unit for attribute in (drive.GetStiffnessAttr(), drive.GetDampingAttr()))
        bound = float(self._get(drive.GetMaxForceAttr(), np.inf)) * self.kilograms * self.unit ** (2 if turning else 1)
        if str(self._get(drive.GetTypeAttr(), "force")) != "force":
            self.report.append(f"joint {prim.GetPath()}: its drive counts forces, not accelerations")
        if not stiffness and not damping:
            return dict(drive="force")
        rate = float(self._get(drive.GetTargetVelocityAttr(), 0.0)) * per
        if not stiffness:
            return dict(servo=Servo.velocity(damping=damping, target=rate, bound=bound if bound > 0.0 else np.inf))
        if rate:
            self.report.append(f"joint {prim.GetPath()}: the target velocity of its drive, which holds a position too, is left out")
        return dict(servo=Servo(stiffness=stiffness, damping=damping, target=float(self._get(drive.GetTargetPositionAttr(), 0.0)) * per, bound=bound if bound > 0.0 else np.inf))
