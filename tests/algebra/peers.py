"""A mechanism as a model of Pinocchio, and how its rates are made of ours: v_theirs = T v, with T' for moving axes."""
from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.mechanism.mechanism import JointElement


def skew(w: np.ndarray) -> np.ndarray:
    return np.cross(np.eye(3), w)


class Peer:
    """A tree whose bodies hang on earlier ones, body i by joint i (or on nothing), in Pinocchio."""

    def __init__(self, pin: Any, mechanism: da.Mechanism, algebra: da.Algebra, native: tuple[str, ...]) -> None:
        """``native``: joints that are one joint of theirs; others are made of slides, turns and balls."""
        self.pin, self.mechanism, self.algebra, self.native = pin, mechanism, algebra, native
        self.model = pin.Model()
        self.model.gravity.linear = np.array(mechanism.gravity)
        #: per joint of theirs: what it is, where its numbers stand in our vectors, whether it is read backwards
        self.parts: list[tuple[str, Any, bool]] = []
        self.frames: dict[str, int] = {}
        # of each body, their joint and the body's pose in its frame
        self.at: dict[int, tuple[int, Any]] = {-1: (0, pin.SE3.Identity())}
        joints = {max(j.parent.index, j.child.index): j for j in mechanism.joints}
        on = {body.index: min(joints[body.index].parent.index, joints[body.index].child.index) if body.index in joints else -1 for body in mechanism.bodies}

        def grow(parent: int) -> None:
            # their matrices take joints in depth-first order
            for body in mechanism.bodies:
                if on[body.index] == parent:
                    self.add_joint(joints[body.index], body) if body.index in joints else self.add_free(body)
                    grow(body.index)

        grow(-1)
        self.data = self.model.createData()

    def add_free(self, body: Any) -> None:
        """A body without a joint."""
        first = self.algebra.slot(body.name).start
        joint = self.add(self.pin.JointModelFreeFlyer(), 0, self.pin.SE3.Identity(), "free", (first, first + 3), False)
        self.finish(body, joint, self.pin.SE3.Identity())

    def add(self, kind: Any, parent: int, placement: Any, what: str, where: Any, backwards: bool) -> int:
        self.parts.append((what, where, backwards))
        return self.model.addJoint(parent, kind, placement, f"{what} {len(self.parts)}")

    def finish(self, body: Any, joint: int, pose: Any) -> None:
        """Hang a body on a joint of theirs, at a pose in its frame."""
        self.model.appendBodyToJoint(joint, self.pin.Inertia(body.mass, np.zeros(3), body.inertia), pose)
        frame = self.pin.Frame(body.name, joint, 0, pose, self.pin.FrameType.OP_FRAME)
        self.frames[body.name] = self.model.addFrame(frame)
        self.at[body.index] = joint, pose

    def add_joint(self, joint: JointElement, body: Any) -> None:
        pin, kind = self.pin, joint.type
        ends = [pin.SE3(frame @ kind.basis, point) for frame, point in ((joint.frame_parent, joint.point_parent), (joint.frame_child, joint.point_child))]
        backwards = joint.child is not body
        here, there = ends[::-1] if backwards else ends
        other = joint.child if backwards else joint.parent
        parent, pose = self.at[other.index]
        placement, sign = pose * here, -1.0 if backwards else 1.0
        first = self.algebra.slot(joint.name).start if kind.freedom else 0
        name, axes = type(kind).__name__, np.eye(3)
        if name == "Fixed":
            self.finish(body, parent, placement * there.inverse())
            return
        if name in self.native and not backwards:
            models = {
                "Cartesian": pin.JointModelTranslation, "Planar": pin.JointModelPlanar, "Free": pin.JointModelFreeFlyer,
                "Universal": lambda: pin.JointModelUniversal(axes[0], axes[1]),
            }
            where = (first, first + 3) if name == "Free" else first
            last = self.add(models[name](), parent, placement, name.lower(), where, False)
        else:
            parts: list[tuple[Any, str, int]] = []
            for i, (what, axis) in enumerate(kind.directions):
                along = sign * axes[axis]
                if what == "slide":
                    parts.append((pin.JointModelPrismaticUnaligned(along), "single", first + i))
                elif what == "ball" and axis == 0:
                    parts.append((pin.JointModelSpherical(), "ball", first + i))
                elif what != "ball" and name == "Helical":
                    parts.append((pin.JointModelHelicalUnaligned(along, kind.lead), "single", first + i))
                elif what != "ball":
                    parts.append((pin.JointModelRevoluteUnaligned(along), "single", first + i))
            last = parent
            for model, what, where in parts[::-1] if backwards else parts:
                last = self.add(model, last, placement, what, where, backwards)
                placement = pin.SE3.Identity()
        for inertia in np.atleast_1d(np.asarray(kind.armature, dtype=float)):
            if inertia:
                self.model.armature[self.model.idx_vs[last]] = inertia
        self.finish(body, last, there.inverse())

    def motion(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Their configuration, T and its time derivative."""
        theirs = np.zeros(self.model.nq)
        T, T_rate = np.zeros((2, self.model.nv, len(q)))
        for index, (what, where, backwards) in enumerate(self.parts, start=1):
            a, b = self.model.idx_qs[index], self.model.idx_vs[index]
            if what in ("single", "cartesian", "universal"):
                count = self.model.nvs[index]
                theirs[a : a + count] = q[where : where + count]
                T[b : b + count, where : where + count] = np.eye(count)
            elif what == "planar":
                angle, rate = q[where + 2], v[where + 2]
                theirs[a : a + 4] = *q[where : where + 2], np.cos(angle), np.sin(angle)
                R = Rotation.from_euler("z", angle).as_matrix().T
                T[b : b + 3, where : where + 3] = R
                T_rate[b : b + 3, where : where + 3] = -skew(np.array([0.0, 0.0, rate])) @ R
            else:
                turn = where if what == "ball" else where[1]
                E = Rotation.from_rotvec(q[turn : turn + 3])
                R = E.as_matrix().T
                spin = -skew(R @ v[turn : turn + 3]) @ R
                if what == "ball":
                    theirs[a : a + 4] = (E.inv() if backwards else E).as_quat()
                    T[b : b + 3, turn : turn + 3] = -np.eye(3) if backwards else R
                    T_rate[b : b + 3, turn : turn + 3] = 0.0 if backwards else spin
                else:
                    slide = where[0]
                    theirs[a : a + 7] = *q[slide : slide + 3], *E.as_quat()
                    for row, column in ((b, slide), (b + 3, turn)):
                        T[row : row + 3, column : column + 3] = R
                        T_rate[row : row + 3, column : column + 3] = spin
        return theirs, T, T_rate
