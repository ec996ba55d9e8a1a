"""MJCF files, through MuJoCo's own compiler: structure and numbers are those that MuJoCo itself simulates.

Coordinates count from the reference pose (``qpos0``): where a joint has ``ref``, ours is MuJoCo's minus that.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.links import Drawing, Link, LinkJoint, Robot, build, fresh
from dalembert.io.safety import check_counts, inside, read_model, scan_xml
from dalembert.mechanism.actuators import Actuator
from dalembert.mechanism.joints import Fixed, Spherical
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box, Capsule, Cylinder, Ellipsoid, Sphere
from dalembert.mechanism.visuals import Mesh

FOLDERS = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "texture": "texturedir"}
DEEPEST_INCLUDE = 8
#: groups of geoms that MuJoCo's viewer shows from the start
VISIBLE_GROUPS = 3


def load_mjcf(path: Path, *, merge_fixed: bool = False, base: str | None = None, root: Path | None = None) -> Mechanism:
    """A mechanism from an MJCF file. ``base``: "fixed" holds all free bodies where they are, None does as the file says."""
    mujoco = _mujoco()
    check_files(path, path.parent if root is None else root, path.parent)
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
    except MemoryError:
        raise ModelError(f"{path} asks for more memory than there is") from None
    except Exception as error:
        raise ModelError(f"MuJoCo cannot load {path}: {' '.join(str(error).split())}") from error
    return _Reader(mujoco, model, data, path.stem, base).mechanism(merge_fixed)


def check_files(path: Path, root: Path, home: Path, depth: int = 0) -> None:
    """Look through an MJCF file and what it includes, before MuJoCo opens anything. ``home``: the folder names count from."""
    elements = scan_xml(read_model(path), path)
    check_counts(elements, path)
    folders = {"meshdir": "", "texturedir": ""}
    for element in elements:
        if element.tag == "compiler":
            for name in folders:
                folders[name] = element.attributes.get(name, element.attributes.get("assetdir", folders[name]))
    for element in elements:
        names = [value for key, value in element.attributes.items() if key.startswith("file") and value]
        for name in names:
            if element.tag == "include":
                if depth >= DEEPEST_INCLUDE:
                    raise ModelError(f"{path} includes files more than {DEEPEST_INCLUDE} deep, or in a circle")
                check_files(inside(root, home, name, path), root, home, depth + 1)
            else:
                inside(root, home / folders.get(FOLDERS.get(element.tag, ""), ""), name, path)


class _Reader:
    """A compiled model, translated piece by piece; what has no place goes into the report."""

    def __init__(self, mujoco: Any, model: Any, data: Any, name: str, base: str | None) -> None:
        self.mj, self.model, self.data, self.base = mujoco, model, data, base
        title = model.names[: model.names.find(b"\0")].decode(errors="replace")
        self.robot = Robot(title or name)
        self.report = self.robot.report
        self.joint_of: dict[int, LinkJoint] = {}

    def name(self, kind: str, index: int) -> str:
        text = self.mj.mj_id2name(self.model, getattr(self.mj.mjtObj, f"mjOBJ_{kind.upper()}"), index)
        return text or f"{kind} {index}"

    def mechanism(self, merge_fixed: bool) -> Mechanism:
        self._options()
        self._actuated = {int(self.model.actuator_trnid[k, 0]) for k in range(self.model.nu) if self._drives_joint(k)}
        for b in range(1, self.model.nbody):
            self.robot.links.append(self._link(b))
        for g in range(self.model.ngeom):
            self._geom(g)
        mechanism = build(self.robot, merge_fixed=merge_fixed)
        self.mechanism_ = mechanism
        self._compensate_gravity()
        for k in range(self.model.neq):
            self._equality(k)
        for k in range(self.model.ntendon):
            self._tendon(k)
        for k in range(self.model.nu):
            self._actuator(k)
        for kind, count in (("sensor", self.model.nsensor), ("key", self.model.nkey), ("flex", self.model.nflex), ("skin", self.model.nskin)):
            self.report += [f"{'keyframe' if kind == 'key' else kind} {self.name(kind, k)!r} is left out" for k in range(count)]
        mechanism.report[:] = self.report
        return mechanism

    def _options(self) -> None:
        option, flags = self.model.opt, self.mj.mjtDisableBit
        off = option.disableflags & flags.mjDSBL_GRAVITY
        self.robot.gravity = np.zeros(3) if off else np.array(option.gravity)
        if option.density or option.viscosity:
            self.report.append(f"option: a fluid of density {option.density:g} and viscosity {option.viscosity:g} is not simulated")
        if np.any(option.wind):
            self.report.append("option: wind is not simulated")

    def _link(self, b: int) -> Link:
        model, data = self.model, self.data
        rotation = _rotation(data.xquat[b])
        turn = _rotation(model.body_iquat[b]).as_matrix()
        link = Link(
            name=self.name("body", b), parent=int(model.body_parentid[b]) - 1, mass=float(model.body_mass[b]),
            center=np.array(data.xipos[b]), inertia=turn @ np.diag(model.body_inertia[b]) @ turn.T,
            rotation=rotation, origin=np.array(data.xpos[b]),
        )
        for j in range(model.body_jntadr[b], model.body_jntadr[b] + model.body_jntnum[b]):
            self._joint(link, j)
        if model.body_mocapid[b] >= 0:
            self.report.append(f"body {link.name!r} is a mocap body: it stays where it is")
        return link

    def _joint(self, link: Link, j: int) -> None:
        model, kinds = self.model, self.mj.mjtJoint
        kind, dof, name = int(model.jnt_type[j]), int(model.jnt_dofadr[j]), self.name("joint", j)
        if kind == kinds.mjJNT_FREE and self.base == "fixed":
            return
        free = kind == kinds.mjJNT_FREE
        damping, stiffness = float(model.dof_damping[dof]), float(model.jnt_stiffness[j])
        if free:
            link.floating = True
            if damping == 0.0 and stiffness == 0.0:
                return
        q = int(model.jnt_qposadr[j])
        single = kind in (kinds.mjJNT_HINGE, kinds.mjJNT_SLIDE)
        joint = LinkJoint(
            name, {kinds.mjJNT_HINGE: "hinge", kinds.mjJNT_SLIDE: "slide", kinds.mjJNT_BALL: "ball", kinds.mjJNT_FREE: "free"}[kind],
            np.array(self.data.xanchor[j]), np.array(self.data.xaxis[j]), spring=stiffness, damping=damping,
            rest=float(model.qpos_spring[q] - model.qpos0[q]) if single else 0.0,
            armature=float(model.dof_armature[dof]) if single else 0.0,
            drive="force" if j in self._actuated and single else None,
        )
        if not single and model.dof_armature[dof] > 0.0:
            self.report.append(f"joint {name!r}: armature of a ball or free joint is not simulated")
        if not single and stiffness and not np.allclose(model.qpos_spring[q : q + 4], model.qpos0[q : q + 4]):
            self.report.append(f"joint {name!r}: its spring rests at the reference pose, not at springref")
        for what, law in (("stiffness", "jnt_stiffnesspoly"), ("damping", "dof_dampingpoly")):
            if np.any(getattr(model, law, np.zeros(model.nv))[j if law.startswith("jnt") else dof]):
                self.report.append(f"joint {name!r}: only the linear part of its {what} is simulated")
        if model.dof_frictionloss[dof] > 0.0:
            self.report.append(f"joint {name!r}: frictionloss {model.dof_frictionloss[dof]:g} is not simulated")
        if model.jnt_limited[j]:
            low, high = model.jnt_range[j] - (model.qpos0[q] if single else 0.0)
            self.report.append(f"joint {name!r}: its range {low:.6g} to {high:.6g} is not enforced")
        if getattr(model, "jnt_actgravcomp", np.zeros(model.njnt))[j]:
            self.report.append(f"joint {name!r}: gravity compensation acts on its bodies, not through its actuator")
        self.joint_of[j] = joint
        link.joints.append(joint)

    def _geom(self, g: int) -> None:
        model, kinds = self.model, self.mj.mjtGeom
        kind, body = int(model.geom_type[g]), int(model.geom_bodyid[g])
        collides = bool(model.geom_contype[g] or model.geom_conaffinity[g])
        if collides and not model.opt.disableflags & self.mj.mjtDisableBit.mjDSBL_CONTACT:
            self.report.append(f"geom {self.name('geom', g)!r} of {self.name('body', body)!r}: its contacts are not simulated")
        if kind in (kinds.mjGEOM_PLANE, kinds.mjGEOM_HFIELD, kinds.mjGEOM_SDF) or model.geom_group[g] >= VISIBLE_GROUPS:
            return
        a, b, c = (max(float(s), 1e-9) for s in model.geom_size[g])
        if kind == kinds.mjGEOM_MESH:
            geometry = self._mesh(int(model.geom_dataid[g]))
        else:
            geometry = {
                kinds.mjGEOM_SPHERE: lambda: Sphere(radius=a, mass=1.0), kinds.mjGEOM_CAPSULE: lambda: Capsule(radius=a, length=2 * b, mass=1.0),
                kinds.mjGEOM_ELLIPSOID: lambda: Ellipsoid(semi_axes=(a, b, c), mass=1.0), kinds.mjGEOM_CYLINDER: lambda: Cylinder(radius=a, length=2 * b, mass=1.0),
                kinds.mjGEOM_BOX: lambda: Box(size=(2 * a, 2 * b, 2 * c), mass=1.0),
            }[kind]()
        material = int(model.geom_matid[g])
        colour = model.mat_rgba[material] if material >= 0 and np.allclose(model.geom_rgba[g], (0.5, 0.5, 0.5, 1.0)) else model.geom_rgba[g]
        drawing = Drawing(
            geometry, np.array(self.data.geom_xpos[g]), Rotation.from_matrix(self.data.geom_xmat[g].reshape(3, 3)), tuple(float(v) for v in colour))  # type: ignore[arg-type]
        (self.robot.drawings if body == 0 else self.robot.links[body - 1].drawings).append(drawing)

    def _mesh(self, index: int) -> Mesh:
        model = self.model
        vertex, face = int(model.mesh_vertadr[index]), int(model.mesh_faceadr[index])
        return Mesh(model.mesh_vert[vertex : vertex + model.mesh_vertnum[index]], model.mesh_face[face : face + model.mesh_facenum[index]])

    def _compensate_gravity(self) -> None:
        for b in range(1, self.model.nbody):
            share = float(self.model.body_gravcomp[b])
            carrier = self.robot.carriers.get(self.name("body", b), "world")
            if share and carrier != "world" and self.model.body_mass[b] > 0.0:
                self.mechanism_.load(carrier, force=-share * self.model.body_mass[b] * self.robot.gravity)

    def _body(self, b: int) -> str:
        return "world" if b == 0 else self.robot.carriers.get(self.name("body", b), "world")

    def _element_name(self, name: str) -> str:
        return fresh(name, set(self.mechanism_._names), "constraint")

    def _equality(self, k: int) -> None:
        model, kinds, mechanism = self.model, self.mj.mjtEq, self.mechanism_
        kind, one, two, numbers = int(model.eq_type[k]), int(model.eq_obj1id[k]), int(model.eq_obj2id[k]), model.eq_data[k]
        name = self._element_name(self.mj.mj_id2name(model, self.mj.mjtObj.mjOBJ_EQUALITY, k) or f"equality {k}")
        if not model.eq_active0[k]:
            self.report.append(f"{name!r} is not active in the file and is left out")
        elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
            if model.eq_objtype[k] == self.mj.mjtObj.mjOBJ_SITE:
                points = [np.array(self.data.site_xpos[s]) if hasattr(self.data, "site_xpos") else np.zeros(3) for s in (one, two)]
                one, two = int(model.site_bodyid[one]), int(model.site_bodyid[two])
            elif kind == kinds.mjEQ_CONNECT:
                points = [self._point(one, numbers[:3]), self._point(two, numbers[3:6])]
            else:
                points = [self._point(two, numbers[:3])] * 2
            bodies = [self._body(one), self._body(two)]
            if bodies[1] == "world":
                bodies, points = bodies[::-1], points[::-1]
            if bodies[0] == bodies[1]:
                self.report.append(f"{name!r} ties {bodies[0]!r} to itself and is left out")
                return
            if kind == kinds.mjEQ_WELD and not np.allclose(self._weld_offset(one, two, numbers), 0.0, atol=1e-9):
                self.report.append(f"{name!r} welds at another relative pose than the reference pose and is left out")
                return
            mechanism.joint(name, Spherical() if kind == kinds.mjEQ_CONNECT else Fixed(), bodies[0], bodies[1], at=(points[0], points[1]))
        elif kind == kinds.mjEQ_JOINT and two >= 0 and one in self.joint_of and two in self.joint_of and not np.any(numbers[2:5]):
            names = [self.robot.joints[self.joint_of[j].name] for j in (one, two)]
            mechanism.gear(name, *names, ratio=float(numbers[1]), offset=float(numbers[0]))
        elif kind == kinds.mjEQ_TENDON and two < 0 and (pair := self._pair(one)) is not None and not np.any(numbers[1:5]):
            (first, a), (second, b) = pair
            mechanism.gear(name, first, second, ratio=-b / a, offset=float(numbers[0]) / a)
        else:
            word = {kinds.mjEQ_JOINT: "joint", kinds.mjEQ_TENDON: "tendon"}.get(kind, "flex or other")
            self.report.append(f"{name!r}: this equality of kind {word} is not simulated (only straight lines between two joints are)")

    def _weld_offset(self, one: int, two: int, numbers: np.ndarray) -> np.ndarray:
        if self.model.eq_objtype[0] == self.mj.mjtObj.mjOBJ_SITE or not np.any(numbers[6:10]):
            return np.zeros(6)
        here, there = _rotation(self.data.xquat[one]), _rotation(self.data.xquat[two])
        gap = here.inv().apply(self._point(two, numbers[:3]) - self.data.xpos[one]) - numbers[3:6]
        return np.concatenate([gap, (here.inv() * there * _rotation(numbers[6:10]).inv()).as_rotvec()])

    def _point(self, body: int, local: np.ndarray) -> np.ndarray:
        return np.array(self.data.xpos[body]) + _rotation(self.data.xquat[body]).apply(local)

    def _wraps(self, k: int) -> list[tuple[int, int, float]]:
        model = self.model
        return [(int(model.wrap_type[w]), int(model.wrap_objid[w]), float(model.wrap_prm[w]))
                for w in range(model.tendon_adr[k], model.tendon_adr[k] + model.tendon_num[k])]

    def _pair(self, k: int) -> list[tuple[str, float]] | None:
        """The two joints of a fixed tendon with their coefficients."""
        wraps = [w for w in self._wraps(k) if w[2] != 0.0]
        if len(wraps) != 2 or any(kind != self.mj.mjtWrap.mjWRAP_JOINT or j not in self.joint_of for kind, j, _ in wraps):
            return None
        return [(self.robot.joints[self.joint_of[j].name], weight) for _, j, weight in wraps]

    def _tendon(self, k: int) -> None:
        model, wraps, name = self.model, self._wraps(k), self.name("tendon", k)
        stiffness, damping = float(model.tendon_stiffness[k]), float(model.tendon_damping[k])
        straight = len(wraps) == 2 and all(kind == self.mj.mjtWrap.mjWRAP_SITE for kind, *_ in wraps)
        low, high = (float(v) for v in model.tendon_lengthspring[k])
        if stiffness or damping:
            if straight and (low == high or stiffness == 0.0):
                ends = [int(model.site_bodyid[s]) for _, s, _ in wraps]
                sites = [self._point(b, model.site_pos[s]) for b, (_, s, _) in zip(ends, wraps)]
                bodies = [self._body(b) for b in ends]
                if bodies[1] == "world":
                    bodies, sites = bodies[::-1], sites[::-1]
                if bodies[0] != bodies[1]:
                    length = low if stiffness else None
                    self.mechanism_.spring(self._element_name(name), *bodies, at=(sites[0], sites[1]), stiffness=stiffness, damping=damping, length=length)
            else:
                self.report.append(f"tendon {name!r}: stiffness and damping of a tendon that is no straight spring are not simulated")
        if model.tendon_limited[k]:
            self.report.append(f"tendon {name!r}: its range is not enforced")
        if model.tendon_frictionloss[k] > 0.0:
            self.report.append(f"tendon {name!r}: frictionloss is not simulated")
        if getattr(model, "tendon_armature", np.zeros(model.ntendon))[k] > 0.0:
            self.report.append(f"tendon {name!r}: armature is not simulated")

    def _drives_joint(self, k: int) -> bool:
        model, mj = self.model, self.mj
        joint = int(model.actuator_trnid[k, 0])
        return bool(
            mj.mjtTrn(model.actuator_trntype[k]) in (mj.mjtTrn.mjTRN_JOINT, mj.mjtTrn.mjTRN_JOINTINPARENT)
            and mj.mjtJoint(model.jnt_type[joint]) in (mj.mjtJoint.mjJNT_HINGE, mj.mjtJoint.mjJNT_SLIDE)
            and mj.mjtDyn(model.actuator_dyntype[k]) == mj.mjtDyn.mjDYN_NONE
            and mj.mjtGain(model.actuator_gaintype[k]) == mj.mjtGain.mjGAIN_FIXED
            and mj.mjtBias(model.actuator_biastype[k]) in (mj.mjtBias.mjBIAS_NONE, mj.mjtBias.mjBIAS_AFFINE)
        )

    def _actuator(self, k: int) -> None:
        model, name = self.model, self.name("actuator", k)
        joint = int(model.actuator_trnid[k, 0])
        if not self._drives_joint(k) or joint not in self.joint_of:
            self.report.append(f"actuator {name!r} is not simulated: only motor, position and velocity actuators on a hinge or slide are")
            return
        bias = model.actuator_biasprm[k, :3] if model.actuator_biastype[k] == self.mj.mjtBias.mjBIAS_AFFINE else np.zeros(3)
        ranges = [tuple(float(v) for v in limits[k]) if limited[k] else None for limits, limited in (
            (model.actuator_ctrlrange, model.actuator_ctrllimited), (model.actuator_forcerange, model.actuator_forcelimited))]
        self.mechanism_.actuators[name] = Actuator(
            name=name, joint=self.robot.joints[self.joint_of[joint].name], gain=float(model.actuator_gainprm[k, 0]),
            bias=tuple(float(v) for v in bias), gear=float(model.actuator_gear[k, 0]),  # type: ignore[arg-type]
            control_range=ranges[0], force_range=ranges[1], reference=float(model.qpos0[model.jnt_qposadr[joint]]),  # type: ignore[arg-type]
        )


def _rotation(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.asarray(q, dtype=float), scalar_first=True)


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError:
        raise MissingExtraError("reading MJCF files needs MuJoCo: pip install dalembert[mjcf]") from None
    return mujoco
