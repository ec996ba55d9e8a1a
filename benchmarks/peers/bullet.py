"""PyBullet: Featherstone's multibodies from URDF, its own settings of the solver; all damping that it adds by itself is turned off."""
from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from benchmarks.comparison.scene import WORLD, Poses, Scene, Touching

#: N; Bullet bounds the forces that hold loops together
STRONG = 1e7
#: coordinates of a multibody that it has room for
MOST = 128


def words(values: Any) -> str:
    return " ".join(repr(float(v)) for v in values)


def origin(position: np.ndarray, turn: np.ndarray) -> str:
    return f'<origin xyz="{words(position)}" rpy="{words(Rotation.from_matrix(turn).as_euler("xyz"))}"/>'


@contextmanager
def silent() -> Iterator[None]:
    """Its C code prints to the terminal."""
    sys.stdout.flush()
    kept, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nothing)


class BulletModel:
    def __init__(self, scene: Scene, dt: float) -> None:
        with silent():
            self.bullet: Any = importlib.import_module("pybullet")
            self.client = self.bullet.connect(self.bullet.DIRECT)
        self.scene, self.dt, self.kept = scene, dt, dict(physicsClientId=self.client)
        #: per body, the axes of its inertia at the start, in the world
        self.principal = [link.rotation @ principal_axes(link.inertia)[1] for link in scene.links]
        self.bullet.setGravity(*scene.gravity, **self.kept)
        self.bullet.setPhysicsEngineParameter(fixedTimeStep=dt, numSubSteps=1, **self.kept)
        #: (multibody, link) of each body
        self.place: dict[int, tuple[int, int]] = {}
        self.add_ground()
        for root in [*scene.roots, *([WORLD] if any(h.parent == WORLD for h in scene.tree) else [])]:
            self.add_tree(root)
        self.close_loops()
        self.set_start()
        self.springs = [(*self.place[h.child], h.stiffness, h.damping, h.target) for h in scene.tree if h.stiffness or h.damping]
        self.start = self.bullet.saveState(**self.kept)

    def add_ground(self) -> None:
        if self.scene.ground is not None:
            plane = self.bullet.createCollisionShape(self.bullet.GEOM_PLANE, planeNormal=[0, 0, 1], **self.kept)
            floor = self.bullet.createMultiBody(0, plane, basePosition=[0, 0, self.scene.ground.height], **self.kept)
            self.bullet.changeDynamics(floor, -1, lateralFriction=np.sqrt(self.scene.ground.friction), **self.kept)

    def add_tree(self, root: int) -> None:
        """A multibody of all that hangs on a root, its frames at the hinges with the world's axes at the start."""
        scene, below = self.scene, [root]
        hinges = [h for h in scene.tree if h.parent in below and (below.append(h.child) or True)]
        at = {root: np.zeros(3) if root == WORLD else scene.links[root].position, **{h.child: h.point for h in hinges}}
        text = '<robot name="tree">' + "".join(self.link(index, at[index]) for index in below)
        for number, h in enumerate(hinges):
            kind = {"revolute": "continuous"}.get(h.kind, h.kind)
            text += (f'<joint name="j{number}" type="{kind}"><parent link="b{h.parent}"/><child link="b{h.child}"/>{origin(h.point - at[h.parent], np.eye(3))}'
                     f'<axis xyz="{words(h.axis)}"/><limit lower="1" upper="-1" effort="1e9" velocity="1e9"/></joint>')
        flags = self.bullet.URDF_USE_INERTIA_FROM_FILE | (self.bullet.URDF_USE_SELF_COLLISION if scene.together else 0)
        with tempfile.TemporaryDirectory() as folder, silent():
            file = Path(folder) / "tree.urdf"
            file.write_text(text.replace("><", ">\n<") + "\n</robot>\n", encoding="utf-8")  # its reader breaks long lines
            body = self.bullet.loadURDF(str(file), basePosition=at[root].tolist(), useFixedBase=root == WORLD, flags=flags, **self.kept)
        if root != WORLD:
            self.place[root] = body, -1
            self.bullet.resetBasePositionAndOrientation(
                body, scene.links[root].position.tolist(), Rotation.from_matrix(self.principal[root]).as_quat().tolist(), **self.kept)
        for k in range(self.bullet.getNumJoints(body, **self.kept)):
            self.place[int(self.bullet.getJointInfo(body, k, **self.kept)[12].decode()[1:])] = body, k
        for index in below:
            if index != WORLD:
                self.bullet.changeDynamics(
                    *self.place[index], linearDamping=0.0, angularDamping=0.0, jointDamping=0.0, maxJointVelocity=1e9,
                    lateralFriction=np.sqrt(scene.ground.friction) if scene.ground is not None else 0.5, **self.kept)

    def link(self, index: int, at: np.ndarray) -> str:
        if index == WORLD:
            return f'<link name="b{WORLD}"/>'
        link = self.scene.links[index]
        moments = principal_axes(link.inertia)[0]
        text = (f'<link name="b{index}"><inertial>{origin(link.position - at, self.principal[index])}<mass value="{link.mass!r}"/>'
                '<inertia ixx="{!r}" iyy="{!r}" izz="{!r}" ixy="0" ixz="0" iyz="0"/></inertial>'.format(*moments.tolist()))
        for part in link.touching:
            shape, turn = geometry(part)
            text += f"<collision>{origin(link.position - at + link.rotation @ part.position, link.rotation @ turn)}<geometry>{shape}</geometry></collision>"
        return text + "</link>"

    def close_loops(self) -> None:
        bullet = self.bullet
        for h in self.scene.loops:
            ends = [self.principal[b].T @ (h.point - self.scene.links[b].position) if b != WORLD else h.point for b in (h.parent, h.child)]
            first = self.place.get(h.parent, (self.place[h.child][0], -1))
            held = bullet.createConstraint(*first, *self.place[h.child], bullet.JOINT_POINT2POINT, [0, 0, 0], ends[0].tolist(), ends[1].tolist(), **self.kept)
            bullet.changeConstraint(held, maxForce=STRONG, **self.kept)

    def set_start(self) -> None:
        bullet = self.bullet
        for index in self.scene.roots:
            link = self.scene.links[index]
            bullet.resetBaseVelocity(self.place[index][0], link.velocity.tolist(), link.angular.tolist(), **self.kept)
        for h in self.scene.tree:
            body, k = self.place[h.child]
            if h.kind == "spherical":
                bullet.resetJointStateMultiDof(body, k, [0, 0, 0, 1], h.rate.tolist(), **self.kept)
                bullet.setJointMotorControlMultiDof(
                    body, k, bullet.POSITION_CONTROL, targetPosition=[0, 0, 0, 1], targetVelocity=[0, 0, 0], positionGain=0, velocityGain=0, force=[0, 0, 0], **self.kept)
            elif h.kind != "fixed":
                bullet.resetJointState(body, k, 0.0, float(h.rate[0]), **self.kept)
                bullet.setJointMotorControl2(body, k, bullet.VELOCITY_CONTROL, force=0.0, **self.kept)

    def reset(self) -> None:
        self.bullet.restoreState(self.start, **self.kept)

    def run(self, steps: int) -> None:
        bullet, client = self.bullet, self.client
        if not self.springs:
            for _ in range(steps):
                bullet.stepSimulation(client)
            return
        body, joints = self.springs[0][0], [spring[1] for spring in self.springs]
        stiffness, damping, target = (np.array([spring[k] for spring in self.springs]) for k in (2, 3, 4))
        for _ in range(steps):
            state = np.array([state[:2] for state in bullet.getJointStates(body, joints, physicsClientId=client)])
            torque = stiffness * (target - state[:, 0]) - damping * state[:, 1]
            bullet.setJointMotorControlArray(body, joints, bullet.TORQUE_CONTROL, forces=torque, physicsClientId=client)
            bullet.stepSimulation(client)

    def poses(self) -> Poses:
        position, rotation = [], []
        for index, link in enumerate(self.scene.links):
            body, k = self.place[index]
            state = self.bullet.getBasePositionAndOrientation(body, **self.kept) if k < 0 else self.bullet.getLinkState(body, k, computeForwardKinematics=1, **self.kept)
            if not np.linalg.norm(state[1]) > 0.0:  # it has diverged
                return Poses(np.full((len(self.place), 3), np.nan), np.full((len(self.place), 3, 3), np.nan))
            position.append(state[0])
            rotation.append(Rotation.from_quat(state[1]).as_matrix() @ self.principal[index].T @ link.rotation)
        return Poses(np.array(position), np.array(rotation))

    def __del__(self) -> None:
        self.bullet.disconnect(self.client)


def principal_axes(inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Moments (3,) and axes (3, 3), right-handed; the body's own where they are principal."""
    if np.abs(inertia - np.diag(np.diag(inertia))).max() < 1e-14 * np.trace(inertia):
        return np.diag(inertia), np.eye(3)
    moments, axes = np.linalg.eigh(inertia)
    return moments, axes * np.array([1.0, 1.0, np.linalg.det(axes)])


def geometry(part: Touching) -> tuple[str, np.ndarray]:
    shape, turn = part.shape, part.rotation
    if isinstance(shape, da.Sphere):
        return f'<sphere radius="{shape.radius!r}"/>', turn
    if isinstance(shape, da.Box):
        return f'<box size="{words(shape.size)}"/>', turn
    if isinstance(shape, da.Capsule):
        turn = turn @ Rotation.align_vectors([shape.axis], [[0.0, 0.0, 1.0]])[0].as_matrix()
        return f'<capsule radius="{shape.radius!r}" length="{shape.length!r}"/>', turn
    raise TypeError(f"no {type(shape).__name__} in Bullet")


class Bullet:
    name = "PyBullet"
    methods = ("semi-implicit Euler",)

    def version(self) -> str:
        return version("pybullet")

    def refuses(self, scene: Scene, method: str) -> str | None:
        if any(h.armature for h in scene.tree):
            return "has no armature"
        coordinates = {"spherical": 4, "fixed": 0}
        if sum(coordinates.get(h.kind, 1) for h in scene.tree) > MOST:
            return f"takes {MOST} coordinates"
        return None

    def build(self, scene: Scene, method: str, dt: float) -> BulletModel:
        return BulletModel(scene, dt)
