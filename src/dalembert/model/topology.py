"""The mechanism as a graph: spanning trees, loops, and placing bodies along a tree."""
from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from dalembert.mechanism.mechanism import JointElement, Mechanism

Pose = tuple[np.ndarray, Rotation]


def holds(joint: JointElement) -> bool:
    """True when a joint can carry a subtree: it fixes the child relative to the parent but for its coordinates."""
    return joint.type.places


def spanning_tree(mechanism: Mechanism, first: Iterable[str] = ()) -> set[int]:
    """Indices of joints that form a spanning forest rooted at the world.

    Joints without rows come first, since nothing else can hold them, then those named in ``first``.
    """
    wanted = set(first)
    root = list(range(-1, len(mechanism.bodies)))

    def find(i: int) -> int:
        while root[i + 1] != i:
            i = root[i + 1]
        return i

    tree: set[int] = set()
    candidates = [j for j in mechanism.joints if holds(j)]
    for joint in sorted(candidates, key=lambda j: (j.type.has_rows, j.name not in wanted, j.type.freedom == 6, j.index)):
        a, b = find(joint.parent.index), find(joint.child.index)
        if a != b:
            root[max(a, b) + 1] = min(a, b)
            tree.add(joint.index)
    return tree


def tree_order(mechanism: Mechanism, tree: set[int]) -> list[tuple[int, int, int]]:
    """(joint, known body, next body) along the forest from the world outwards, then from the first body of each rest."""
    neighbours: dict[int, list[tuple[int, int]]] = {}
    for index in sorted(tree):
        joint = mechanism.joints[index]
        neighbours.setdefault(joint.parent.index, []).append((index, joint.child.index))
        neighbours.setdefault(joint.child.index, []).append((index, joint.parent.index))
    seen: set[int] = set()
    order: list[tuple[int, int, int]] = []
    for root in range(-1, len(mechanism.bodies)):
        if root in seen:
            continue
        seen.add(root)
        todo = deque([root])
        while todo:
            here = todo.popleft()
            for joint, there in neighbours.get(here, ()):
                if there not in seen:
                    seen.add(there)
                    order.append((joint, here, there))
                    todo.append(there)
    return order


def tree_holds_all(mechanism: Mechanism) -> bool:
    """Whether a joint that moves carries its subtree along and nothing else has to give."""
    tree = spanning_tree(mechanism)
    return all(j.index in tree for j in mechanism.joints if j.type.holds) and not (mechanism.couplings or mechanism.constraints or mechanism.maps)


def loop_of(mechanism: Mechanism, joint: JointElement) -> list[str]:
    """Names of the joints of the loop that ``joint`` closes (with the shortest way round through the others)."""
    neighbours: dict[int, list[tuple[int, int]]] = {}
    for other in mechanism.joints:
        if other is not joint and other.type.freedom < 6:
            neighbours.setdefault(other.parent.index, []).append((other.index, other.child.index))
            neighbours.setdefault(other.child.index, []).append((other.index, other.parent.index))
    start, end = joint.parent.index, joint.child.index
    came: dict[int, tuple[int, int]] = {start: (-1, -1)}
    todo = deque([start])
    while todo and end not in came:
        here = todo.popleft()
        for index, there in neighbours.get(here, ()):
            if there not in came:
                came[there] = (index, here)
                todo.append(there)
    if end not in came:
        return [joint.name]
    names, here = [joint.name], end
    while here != start:
        index, here = came[here]
        names.append(mechanism.joints[index].name)
    return names


def loop_count(mechanism: Mechanism) -> int:
    """Number of independent loops: joints that hold something beyond a spanning forest."""
    constraining = [j for j in mechanism.joints if j.type.freedom < 6 and not any(k == "distance" for k, _ in j.type.directions)]
    return len(constraining) - len(spanning_tree(mechanism) & {j.index for j in constraining})


def place(mechanism: Mechanism, poses: list[Pose], values: Mapping[str, ArrayLike]) -> list[Pose]:
    """Poses of all bodies after the joints in ``values`` were moved to new coordinates, their subtrees carried along."""
    placed = [*poses, (np.zeros(3), Rotation.identity())]
    old = list(placed)
    for index, here, there in tree_order(mechanism, spanning_tree(mechanism, values)):
        joint = mechanism.joints[index]
        if joint.name not in values:
            relative = _between(old[here], old[there])
        else:
            X = joint.type.motion(np.atleast_1d(np.asarray(values[joint.name], dtype=float)))
            rotation = Rotation.from_matrix(joint.frame_parent @ X[:3, :3] @ joint.frame_child.T)
            relative = joint.point_parent + joint.frame_parent @ X[:3, 3] - rotation.apply(joint.point_child), rotation
            if here != joint.parent.index:
                inverse = relative[1].inv()
                relative = -inverse.apply(relative[0]), inverse
        x, R = placed[here]
        placed[there] = x + R.apply(relative[0]), R * relative[1]
    return placed[:-1]


def _between(a: Pose, b: Pose) -> Pose:
    inverse = a[1].inv()
    return inverse.apply(b[0] - a[0]), inverse * b[1]
