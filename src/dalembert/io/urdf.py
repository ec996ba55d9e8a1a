"""URDF files, through yourdfpy: links, joints, mimics and visuals; mesh inertia through trimesh where asked."""
from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.links import Drawing, Link, LinkJoint, Robot, build, fresh
from dalembert.io.safety import inside, read_model, scan_xml
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box, Cylinder, Sphere
from dalembert.mechanism.visuals import Mesh

KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "planar": "planar", "floating": "free", "fixed": "fixed"}


def load_urdf(
    path: Path,
    *,
    merge_fixed: bool = False,
    base: str | None = None,
    root: Path | None = None,
    mesh_density: float | None = None,
    drive: str | None = "force",
) -> Mechanism:
    """A mechanism from a URDF file, all joints at zero.

    ``base``: "fixed" (the default) holds the root link on the world, "free" lets it float. ``mesh_density`` (kg/m^3):
    links without <inertial> get the mass of their collision geometry. ``drive``: of every moving joint.
    """
    text = read_model(path)
    scan_xml(text, path)
    model = _parse(text, path)
    return _Reader(model, path, base, root, mesh_density, drive).mechanism(merge_fixed)


def _parse(text: bytes, path: Path) -> Any:
    try:
        import yourdfpy
    except ImportError:
        raise MissingExtraError("reading URDF files needs yourdfpy: pip install dalembert[urdf]") from None
    logging.getLogger("yourdfpy.urdf").setLevel(logging.CRITICAL)
    try:
        return yourdfpy.URDF.load(
            io.BytesIO(text), build_scene_graph=False, build_collision_scene_graph=False, load_meshes=False,  # type: ignore[arg-type]
        ).robot
    except Exception as error:
        raise ModelError(f"{path} cannot be read as a URDF file: {type(error).__name__}: {' '.join(str(error).split())[:300]}") from error


class _Reader:
    """A parsed URDF, translated link by link from the root outwards."""

    def __init__(
        self, model: Any, path: Path, base: str | None, root: Path | None, mesh_density: float | None, drive: str | None
    ) -> None:
        self.model, self.path, self.root, self.density, self.drive = model, path, root, mesh_density, drive
        self.base = base or "fixed"
        self.robot = Robot(model.name or path.stem)
        self.report = self.robot.report
        self.materials = {m.name: m for m in model.materials or []}
        self.meshes: dict[str, Any] = {}

    def mechanism(self, merge_fixed: bool) -> Mechanism:
        order = self._order()
        index: dict[str, int] = {}
        poses: dict[str, tuple[np.ndarray, Rotation]] = {}
        for name, joint in order:
            if joint is None:
                poses[name] = np.zeros(3), Rotation.identity()
            else:
                position, rotation = poses[joint.parent]
                shift, turn = self._pose(joint.origin, f"joint {joint.name!r}")
                poses[name] = position + rotation.apply(shift), rotation * turn
            index[name] = len(self.robot.links)
            self.robot.links.append(self._link(name, joint, index, poses[name]))
        mechanism = build(self.robot, merge_fixed=merge_fixed)
        for joint in self.model.joints:
            self._mimic(mechanism, joint)
        for transmission in getattr(self.model, "transmissions", None) or []:
            self.report.append(f"transmission {transmission.name!r} is left out: joints take their forces directly")
        mechanism.report[:] = self.report
        return mechanism

    def _order(self) -> list[tuple[str, Any]]:
        """Links with the joint that carries each, from the root outwards."""
        links = {link.name: link for link in self.model.links}
        if not links:
            raise ModelError(f"{self.path} has no links")
        for what, elements in (("link", self.model.links), ("joint", self.model.joints)):
            names = [e.name for e in elements]
            if not all(isinstance(n, str) and n for n in names):
                raise ModelError(f"{self.path}: a {what} has no name")
            if len(set(names)) < len(names):
                raise ModelError(f"{self.path}: two {what}s are named {next(n for n in names if names.count(n) > 1)!r}")
        below: dict[str, list[Any]] = {}
        carried: dict[str, Any] = {}
        for joint in self.model.joints:
            for end in (joint.parent, joint.child):
                if end not in links:
                    raise ModelError(f"{self.path}: joint {joint.name!r} names the link {end!r}, which does not exist")
            if joint.child in carried:
                raise ModelError(f"{self.path}: link {joint.child!r} hangs on two joints, {carried[joint.child].name!r} and {joint.name!r}; URDF is a tree")
            if joint.type not in KINDS:
                raise ModelError(f"{self.path}: joint {joint.name!r} has the unknown type {joint.type!r}")
            carried[joint.child] = joint
            below.setdefault(joint.parent, []).append(joint)
        roots = [name for name in links if name not in carried]
        if len(roots) != 1:
            raise ModelError(f"{self.path} needs one root link, found {', '.join(map(repr, roots)) or 'none: its joints go in a circle'}")
        order: list[tuple[str, Any]] = [(roots[0], None)]
        for name, _ in order:
            order += [(joint.child, joint) for joint in below.get(name, [])]
        return order

    def _pose(self, matrix: np.ndarray | None, what: str) -> tuple[np.ndarray, Rotation]:
        if matrix is None:
            return np.zeros(3), Rotation.identity()
        matrix = np.asarray(matrix, dtype=float)
        if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
            raise ModelError(f"{self.path}: the origin of {what} is not finite")
        return matrix[:3, 3].copy(), Rotation.from_matrix(matrix[:3, :3])

    def _link(self, name: str, joint: Any, index: dict[str, int], pose: tuple[np.ndarray, Rotation]) -> Link:
        source = next(link for link in self.model.links if link.name == name)
        position, rotation = pose
        mass, center, inertia = self._inertial(source)
        link = Link(
            name, -1 if joint is None else index[joint.parent], mass, position + rotation.apply(center), inertia, rotation, position,
            fixing="" if joint is None else joint.name,
        )
        if joint is None:
            link.floating = self.base == "free" and mass > 0.0
            if self.base == "free" and mass == 0.0:
                self.report.append(f"root link {name!r} has no mass: it stays on the world although base='free' was asked for")
        elif joint.type == "floating":
            link.floating = True
        elif joint.type != "fixed":
            link.joints.append(self._joint(joint, position, rotation))
        for visual in source.visuals or []:
            self._draw(link, visual, position, rotation)
        return link

    def _inertial(self, link: Any) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass, centre and inertia about it in the link's frame; mass zero for a link without."""
        given = link.inertial
        if given is None or not given.mass:
            if given is not None and given.inertia is not None and np.any(given.inertia):
                self.report.append(f"link {link.name!r}: an inertia without a mass is left out")
            return self._mesh_inertial(link) if self.density is not None and given is None else (0.0, np.zeros(3), np.zeros((3, 3)))
        if not (np.isfinite(given.mass) and given.mass > 0.0):
            raise ModelError(f"{self.path}: link {link.name!r} has the mass {given.mass}; it must be positive")
        shift, turn = self._pose(given.origin, f"the inertia of link {link.name!r}")
        inertia = np.zeros((3, 3)) if given.inertia is None else np.asarray(given.inertia, dtype=float)
        if inertia.shape != (3, 3) or not np.isfinite(inertia).all():
            raise ModelError(f"{self.path}: the inertia of link {link.name!r} is not finite")
        return float(given.mass), shift, turn.as_matrix() @ inertia @ turn.as_matrix().T

    def _mesh_inertial(self, link: Any) -> tuple[float, np.ndarray, np.ndarray]:
        """Mass properties of a link's collision geometry (or of what is seen of it) at ``mesh_density``."""
        trimesh = _trimesh()
        parts = []
        for element in (link.collisions or link.visuals or []):
            mesh = self._solid(trimesh, element.geometry)
            if mesh is not None:
                mesh.apply_transform(np.eye(4) if element.origin is None else element.origin)
                mesh.density = self.density
                properties = mesh.mass_properties
                if properties["mass"] > 0.0:
                    parts.append((float(properties["mass"]), np.array(properties["center_mass"]), np.array(properties["inertia"])))
        if not parts:
            return 0.0, np.zeros(3), np.zeros((3, 3))
        mass = sum(p[0] for p in parts)
        center = sum(p[0] * p[1] for p in parts) / mass
        inertia = sum(p[2] + p[0] * ((p[1] - center) @ (p[1] - center) * np.eye(3) - np.outer(p[1] - center, p[1] - center)) for p in parts)
        return mass, np.asarray(center), np.asarray(inertia)

    def _solid(self, trimesh: Any, geometry: Any) -> Any:
        if geometry.box is not None:
            return trimesh.creation.box(geometry.box.size)
        if geometry.cylinder is not None:
            return trimesh.creation.cylinder(radius=geometry.cylinder.radius, height=geometry.cylinder.length)
        if geometry.sphere is not None:
            return trimesh.creation.icosphere(radius=geometry.sphere.radius)
        mesh = self._mesh(geometry.mesh)
        return None if mesh is None else trimesh.Trimesh(mesh.vertices.astype(float), mesh.faces)

    def _joint(self, joint: Any, position: np.ndarray, rotation: Rotation) -> LinkJoint:
        axis = np.array([1.0, 0.0, 0.0]) if joint.axis is None else np.asarray(joint.axis, dtype=float)
        if axis.shape != (3,) or not np.isfinite(axis).all() or np.linalg.norm(axis) < 1e-9:
            raise ModelError(f"{self.path}: the axis of joint {joint.name!r} must be three numbers that are not all zero, got {axis}")
        damping = friction = 0.0
        if joint.dynamics is not None:
            damping, friction = float(joint.dynamics.damping or 0.0), float(joint.dynamics.friction or 0.0)
        if not (np.isfinite(damping) and damping >= 0.0):
            raise ModelError(f"{self.path}: the damping of joint {joint.name!r} must not be negative, got {damping}")
        if friction:
            self.report.append(f"joint {joint.name!r}: friction {friction:g} is not simulated")
        if joint.limit is not None and joint.type in ("revolute", "prismatic"):
            self.report.append(f"joint {joint.name!r}: its limits {joint.limit.lower} to {joint.limit.upper} are not enforced")
        return LinkJoint(joint.name, KINDS[joint.type], position, rotation.apply(axis / np.linalg.norm(axis)), damping=damping, drive=self.drive)

    def _mimic(self, mechanism: Mechanism, joint: Any) -> None:
        if joint.mimic is None:
            return
        ends = [self.robot.joints.get(name) for name in (joint.name, joint.mimic.joint)]
        if None in ends or ends[0] == ends[1]:
            self.report.append(f"joint {joint.name!r} mimics {joint.mimic.joint!r}, which does not move: left out")
            return
        ratio, offset = (1.0 if joint.mimic.multiplier is None else joint.mimic.multiplier), joint.mimic.offset or 0.0
        mechanism.gear(fresh(f"{joint.name} mimic", set(mechanism._names), "gear"), ends[0], ends[1], ratio=float(ratio), offset=float(offset))  # type: ignore[arg-type]

    def _draw(self, link: Link, visual: Any, position: np.ndarray, rotation: Rotation) -> None:
        shift, turn = self._pose(visual.origin, f"a visual of link {link.name!r}")
        geometry = visual.geometry
        shape = self._mesh(geometry.mesh) if geometry is not None and geometry.mesh is not None else self._primitive(geometry, link.name)
        if shape is not None:
            link.drawings.append(Drawing(shape, position + rotation.apply(shift), rotation * turn, self._colour(visual.material)))

    def _primitive(self, geometry: Any, name: str) -> Box | Cylinder | Sphere | None:
        try:
            if geometry.box is not None:
                return Box(size=[float(v) for v in geometry.box.size], mass=1.0)
            if geometry.cylinder is not None:
                return Cylinder(radius=float(geometry.cylinder.radius), length=float(geometry.cylinder.length), mass=1.0)
            return Sphere(radius=float(geometry.sphere.radius), mass=1.0)
        except (TypeError, AttributeError, ModelError) as error:
            self.report.append(f"a visual of link {name!r} cannot be drawn: {error}")
            return None

    def _colour(self, material: Any) -> Any:
        if material is None:
            return None
        colour = material.color or (self.materials[material.name].color if material.name in self.materials else None)
        if colour is None or colour.rgba is None or len(colour.rgba) != 4:
            return None
        return tuple(float(v) for v in colour.rgba)

    def _mesh(self, source: Any) -> Mesh | None:
        """The triangles of a mesh file, in m; None with a line in the report when there is no such file."""
        if source is None or not source.filename:
            return None
        scale = np.ones(3) if source.scale is None else np.broadcast_to(np.asarray(source.scale, dtype=float), (3,))
        if source.filename not in self.meshes:
            self.meshes[source.filename] = self._read_mesh(source.filename)
        mesh = self.meshes[source.filename]
        return None if mesh is None else Mesh(mesh[0] * scale, mesh[1] if np.prod(scale) > 0 else mesh[1][:, ::-1])

    def _read_mesh(self, name: str) -> tuple[np.ndarray, np.ndarray] | None:
        path = self._resolve(name)
        if path is None or not path.is_file():
            self.report.append(f"mesh {name!r} was not found: what it shows is left out")
            return None
        trimesh = _trimesh()
        try:
            logging.getLogger("trimesh").setLevel(logging.CRITICAL)
            mesh = trimesh.load(path, force="mesh", skip_materials=True)
            return np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=int)
        except Exception as error:
            self.report.append(f"mesh {name!r} cannot be read: {type(error).__name__}: {' '.join(str(error).split())[:120]}")
            return None

    def _resolve(self, name: str) -> Path | None:
        """The file that a URDF means, within the package that the URDF is part of (or within ``root``)."""
        home = self.path.resolve().parent
        package = next((p for p in [home, *home.parents][:6] if (p / "package.xml").is_file()), None)
        for scheme in ("package://", "model://"):
            if name.startswith(scheme):
                title, _, rest = name[len(scheme) :].lstrip("/").partition("/")
                folder = next((p for p in [home, *home.parents] if p.name == title), None)
                if folder is None and package is not None and (package.parent / title / "package.xml").is_file():
                    folder = package.parent / title
                if folder is None and self.root is not None:
                    folder = self.root / title if (self.root / title).is_dir() else self.root
                return None if folder is None else inside(folder, folder, rest, self.path)
        name = name.removeprefix("file://")
        return inside(self.root or package or home, home, name, self.path)


def _trimesh() -> Any:
    try:
        import trimesh
    except ImportError:
        raise MissingExtraError("meshes need trimesh: pip install dalembert[urdf]") from None
    return trimesh
