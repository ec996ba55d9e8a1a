"""MuJoCo, with its own settings for contacts and equality constraints."""
from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from benchmarks.comparison.scene import WORLD, Hinge, Poses, Scene

INTEGRATORS = {"Euler": "EULER", "implicitfast": "IMPLICITFAST", "RK4": "RK4"}
#: flags in MuJoCo's MJCF words
SPHERE, CAPSULE, BOX, PLANE = "mjGEOM_SPHERE", "mjGEOM_CAPSULE", "mjGEOM_BOX", "mjGEOM_PLANE"


def quaternion(matrix: np.ndarray) -> np.ndarray:
    return Rotation.from_matrix(matrix).as_quat(scalar_first=True)


class MujocoModel:
    def __init__(self, scene: Scene, method: str, dt: float) -> None:
        self.mujoco: Any = importlib.import_module("mujoco")
        self.scene = scene
        self.model = build_spec(self.mujoco, scene, method, dt).compile()
        self.data = self.mujoco.MjData(self.model)
        self.bodies = [self.model.body(f"body {i}").id for i in range(len(scene.links))]
        self.velocity = start_velocities(self.model, scene)
        self.reset()

    def reset(self) -> None:
        self.mujoco.mj_resetData(self.model, self.data)
        self.data.qvel[:] = self.velocity

    def run(self, steps: int) -> None:
        self.mujoco.mj_step(self.model, self.data, steps)

    def poses(self) -> Poses:
        if self.data.warning.number.any():  # it has diverged and begun anew
            return Poses(np.full((len(self.bodies), 3), np.nan), np.full((len(self.bodies), 3, 3), np.nan))
        self.mujoco.mj_kinematics(self.model, self.data)
        return Poses(self.data.xpos[self.bodies].copy(), self.data.xmat[self.bodies].reshape(-1, 3, 3).copy())


class Mujoco:
    name = "MuJoCo"
    methods = tuple(INTEGRATORS)

    def version(self) -> str:
        return importlib.import_module("mujoco").__version__

    def refuses(self, scene: Scene, method: str) -> str | None:
        return None

    def build(self, scene: Scene, method: str, dt: float) -> MujocoModel:
        return MujocoModel(scene, method, dt)


def build_spec(mujoco: Any, scene: Scene, method: str, dt: float) -> Any:
    """Bodies with frames at their centres of mass, hinges of the tree, and a point held together per loop."""
    spec = mujoco.MjSpec()
    spec.option.timestep, spec.option.integrator = dt, getattr(mujoco.mjtIntegrator, f"mjINT_{INTEGRATORS[method]}")
    spec.option.gravity = scene.gravity
    spec.compiler.degree = False
    frames: dict[int, tuple[Any, np.ndarray, np.ndarray]] = {WORLD: (spec.worldbody, np.zeros(3), np.eye(3))}
    hinges = {hinge.child: hinge for hinge in scene.tree}

    def add(index: int) -> None:
        hinge, link = hinges.get(index), scene.links[index]
        parent, place, turn = frames[WORLD if hinge is None else hinge.parent]
        body = parent.add_body(name=f"body {index}", pos=turn.T @ (link.position - place), quat=quaternion(turn.T @ link.rotation))
        frames[index] = body, link.position, link.rotation
        body.explicitinertial = True
        body.mass, body.ipos = link.mass, np.zeros(3)
        body.fullinertia = link.inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        if hinge is None:
            body.add_freejoint(name=f"free {index}")
        elif hinge.kind != "fixed":
            add_joint(mujoco, spec, body, hinge, link.rotation, link.position)
        add_shapes(mujoco, spec, scene, body, index)

    for index in scene.roots:
        add(index)
    for hinge in scene.tree:
        add(hinge.child)
    if scene.ground is not None:
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], pos=[0, 0, scene.ground.height], friction=[scene.ground.friction, 0, 0], contype=1, conaffinity=3)
    for first, second in scene.apart if scene.together else ():
        spec.add_exclude(bodyname1=f"body {first}", bodyname2=f"body {second}")
    for gear in scene.mechanism.couplings:
        tie = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, objtype=mujoco.mjtObj.mjOBJ_JOINT, name1=gear.first.name, name2=gear.second.name)
        tie.data[:5] = 0.0, gear.ratio, 0.0, 0.0, 0.0
    for hinge in scene.loops:
        body, place, turn = frames[hinge.child]
        held = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, objtype=mujoco.mjtObj.mjOBJ_BODY, name1=body.name, name2=frames[hinge.parent][0].name)
        held.data[:3] = turn.T @ (hinge.point - place)
    return spec


def add_joint(mujoco: Any, spec: Any, body: Any, hinge: Hinge, turn: np.ndarray, place: np.ndarray) -> None:
    kind = {"revolute": "HINGE", "prismatic": "SLIDE", "spherical": "BALL"}[hinge.kind]
    body.add_joint(
        name=hinge.name, type=getattr(mujoco.mjtJoint, f"mjJNT_{kind}"), pos=turn.T @ (hinge.point - place), axis=turn.T @ hinge.axis,
        armature=hinge.armature, damping=hinge.damping, stiffness=hinge.stiffness, springref=hinge.target, frictionloss=hinge.friction)
    if hinge.ends is not None:
        joint = body.joints[-1]
        joint.limited, joint.range = mujoco.mjtLimited.mjLIMITED_TRUE, np.clip(hinge.ends, -1e3, 1e3)


def add_shapes(mujoco: Any, spec: Any, scene: Scene, body: Any, index: int) -> None:
    """Without mass. Bodies that do not touch one another touch the ground alone."""
    bits = dict(contype=1, conaffinity=1) if scene.together else dict(contype=2, conaffinity=0)
    for number, part in enumerate(scene.links[index].touching):
        shape, turn, more = part.shape, part.rotation, {}
        if isinstance(shape, da.Sphere):
            kind, size = mujoco.mjtGeom.mjGEOM_SPHERE, [shape.radius, 0, 0]
        elif isinstance(shape, da.Box):
            kind, size = mujoco.mjtGeom.mjGEOM_BOX, 0.5 * np.array(shape.size)
        elif isinstance(shape, da.Convex):
            kind, size, more = mujoco.mjtGeom.mjGEOM_MESH, np.zeros(3), dict(meshname=f"hull {index} {number}")
            spec.add_mesh(name=more["meshname"], uservert=shape.corners.ravel())
        elif isinstance(shape, da.Capsule | da.Cylinder):
            kind = mujoco.mjtGeom.mjGEOM_CAPSULE if isinstance(shape, da.Capsule) else mujoco.mjtGeom.mjGEOM_CYLINDER
            size = [shape.radius, 0.5 * shape.length, 0]
            turn = turn @ Rotation.align_vectors([shape.axis], [[0.0, 0.0, 1.0]])[0].as_matrix()
        else:
            raise TypeError(f"no {type(shape).__name__} in MuJoCo")
        friction = scene.ground.friction if scene.ground is not None and not scene.together else 0.5 if part.friction is None else part.friction
        body.add_geom(type=kind, size=size, pos=part.position, quat=quaternion(turn), friction=[friction, 0, 0], mass=0.0, **bits, **more)


def start_velocities(model: Any, scene: Scene) -> np.ndarray:
    """``qvel`` at the start: rates of joints, of balls in the child's axes; free bodies by their velocities."""
    velocity = np.zeros(model.nv)
    for index in scene.roots:
        link, first = scene.links[index], model.joint(f"free {index}").dofadr[0]
        velocity[first : first + 6] = *link.velocity, *(link.rotation.T @ link.angular)
    for hinge in scene.tree:
        if hinge.kind != "fixed":
            first = model.joint(hinge.name).dofadr[0]
            velocity[first : first + len(hinge.rate)] = scene.links[hinge.child].rotation.T @ hinge.rate if hinge.kind == "spherical" else hinge.rate
    return velocity
