"""Pinocchio: its algorithms in a loop in Python, since it brings no simulator; loops by its constraint dynamics."""
from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.comparison.scene import WORLD, Poses, Scene

#: pulls loops back within about this time, s
BAUMGARTE = 0.05


class PinocchioModel:
    def __init__(self, scene: Scene, method: str, dt: float) -> None:
        self.pin: Any = importlib.import_module("pinocchio")
        self.scene, self.dt, self.step = scene, dt, {"semi-implicit Euler": self.euler, "RK4": self.rk4}[method]
        self.build_tree()
        self.data = self.model.createData()
        #: where velocities of free rotations stand, (k, 3), and of free bodies, (k, 6)
        firsts, counts = np.array(self.model.idx_vs.tolist()[1:]), np.array(self.model.nvs.tolist()[1:])
        self.balls, self.free = (firsts[counts == count][:, None] + np.arange(count) for count in (3, 6))
        self.close_loops()
        self.tau, self.damping = np.zeros((2, self.model.nv))
        for hinge in scene.tree:
            if hinge.damping:
                self.damping[self.model.idx_vs[self.joint[hinge.child]]] = hinge.damping
        self.damped = bool(self.damping.any())
        self.q0, self.v0 = self.pin.neutral(self.model), self.start_velocities()
        self.reset()

    def build_tree(self) -> None:
        """Each body's joint has its frame at the hinge, with the world's axes at the start."""
        pin, scene = self.pin, self.scene
        self.model = pin.Model()
        self.model.gravity.linear = scene.gravity
        #: per body: their joint, and where its frame was at the start
        self.joint: dict[int, int] = {WORLD: 0}
        self.origin: dict[int, np.ndarray] = {WORLD: np.zeros(3)}
        hinges = {hinge.child: hinge for hinge in scene.tree}
        below: dict[int, list[int]] = {}
        for index in range(len(scene.links)):
            below.setdefault(hinges[index].parent if index in hinges else WORLD, []).append(index)
        waiting = below.get(WORLD, [])[::-1]
        while waiting:  # depth first, as their algorithms want it
            index = waiting.pop()
            self.add(index, hinges.get(index))
            waiting += below.get(index, [])[::-1]

    def add(self, index: int, hinge: Any) -> None:
        pin, link = self.pin, self.scene.links[index]
        if hinge is None:
            self.origin[index] = link.position
            placement = pin.SE3(np.eye(3), link.position)
            self.joint[index] = self.model.addJoint(0, pin.JointModelFreeFlyer(), placement, f"free {index}")
        elif hinge.kind == "fixed":
            self.joint[index], self.origin[index] = self.joint[hinge.parent], self.origin[hinge.parent]
        else:
            kinds = {
                "revolute": lambda: pin.JointModelRevoluteUnaligned(hinge.axis), "prismatic": lambda: pin.JointModelPrismaticUnaligned(hinge.axis),
                "spherical": pin.JointModelSpherical,
            }
            self.origin[index] = hinge.point
            placement = pin.SE3(np.eye(3), hinge.point - self.origin[hinge.parent])
            self.joint[index] = self.model.addJoint(self.joint[hinge.parent], kinds[hinge.kind](), placement, hinge.name)
            if hinge.armature:
                self.model.armature[self.model.idx_vs[self.joint[index]]] = hinge.armature
        R = link.rotation
        inertia = pin.Inertia(link.mass, np.zeros(3), R @ link.inertia @ R.T)
        self.model.appendBodyToJoint(self.joint[index], inertia, pin.SE3(np.eye(3), link.position - self.origin[index]))

    def close_loops(self) -> None:
        pin = self.pin
        self.loops, self.loop_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for hinge in self.scene.loops:
            ends = []
            for body in (hinge.child, hinge.parent):
                ends += [self.joint[body], pin.SE3(np.eye(3), hinge.point - self.origin[body])]
            loop = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, self.model, *ends, pin.LOCAL)
            loop.setBaumgarteCorrectorParameters(pin.BaumgarteCorrectorParameters(1.0 / BAUMGARTE**2, 2.0 / BAUMGARTE))
            self.loops.append(loop)
            self.loop_data.append(loop.createData())
        if self.scene.loops:
            pin.initConstraintDynamics(self.model, self.data, self.loops, self.loop_data)
            self.settings = pin.ProximalSettings(1e-12, 1e-8, 20)

    def start_velocities(self) -> np.ndarray:
        velocity = np.zeros(self.model.nv)
        for index in self.scene.roots:
            link, first = self.scene.links[index], self.model.idx_vs[self.joint[index]]
            velocity[first : first + 6] = *link.velocity, *link.angular
        for hinge in self.scene.tree:
            first = self.model.idx_vs[self.joint[hinge.child]]
            velocity[first : first + len(hinge.rate)] = hinge.rate
        return velocity

    def reset(self) -> None:
        self.q, self.v = self.q0.copy(), self.v0.copy()

    def acceleration(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        if self.damped:
            self.tau = -self.damping * v
        if self.scene.loops:
            return self.pin.constraintDynamics(self.model, self.data, q, v, self.tau, self.loops, self.loop_data, self.settings).copy()
        return self.pin.aba(self.model, self.data, q, v, self.tau).copy()

    def euler(self) -> None:
        self.v = self.v + self.dt * self.acceleration(self.q, self.v)
        self.q = self.pin.integrate(self.model, self.q, self.dt * self.v)

    def rk4(self) -> None:
        """Runge and Kutta's method on the configurations' Lie group (Munthe-Kaas): steps are vectors at the start of the step."""
        h, v = self.dt, self.v
        a1 = self.acceleration(self.q, v)
        v2, s2 = v + 0.5 * h * a1, 0.5 * h * v
        a2, k2 = self.acceleration(self.moved(s2), v2), self.at_start(v2, s2)
        v3, s3 = v + 0.5 * h * a2, 0.5 * h * k2
        a3, k3 = self.acceleration(self.moved(s3), v3), self.at_start(v3, s3)
        v4, s4 = v + h * a3, h * k3
        a4, k4 = self.acceleration(self.moved(s4), v4), self.at_start(v4, s4)
        self.q = self.moved(h / 6 * (v + 2 * k2 + 2 * k3 + k4))
        self.v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)

    def moved(self, step: np.ndarray) -> np.ndarray:
        return self.pin.integrate(self.model, self.q, step)

    def at_start(self, velocity: np.ndarray, step: np.ndarray) -> np.ndarray:
        """The rate of a step whose end has a velocity: the inverse of the exponential's differential, as far as order 4 needs it."""
        if not len(self.balls) and not len(self.free):
            return velocity
        once = self.bracket(step, velocity)
        return velocity + 0.5 * once + self.bracket(step, once) / 12.0

    def bracket(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """By which two steps do not commute, joint by joint."""
        result = np.zeros(len(a))
        if len(self.balls):
            result[self.balls] = cross(a[self.balls], b[self.balls])
        if len(self.free):
            (v, w), (x, y) = ((u[self.free[:, :3]], u[self.free[:, 3:]]) for u in (a, b))
            result[self.free] = np.hstack([cross(v, y) + cross(w, x), cross(w, y)])
        return result

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def poses(self) -> Poses:
        self.pin.forwardKinematics(self.model, self.data, self.q)
        position, rotation = [], []
        for index, link in enumerate(self.scene.links):
            place = self.data.oMi[self.joint[index]]
            position.append(place.translation + place.rotation @ (link.position - self.origin[index]))
            rotation.append(place.rotation @ link.rotation)
        return Poses(np.array(position), np.array(rotation))


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of rows, faster than NumPy's for few of them."""
    return a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]]


class Pinocchio:
    name = "Pinocchio"
    methods = ("semi-implicit Euler", "RK4")

    def version(self) -> str:
        return importlib.import_module("pinocchio").__version__

    def refuses(self, scene: Scene, method: str) -> str | None:
        if scene.ground is not None:
            return "no contact in a plain loop over its algorithms"
        return None

    def build(self, scene: Scene, method: str, dt: float) -> PinocchioModel:
        return PinocchioModel(scene, method, dt)
