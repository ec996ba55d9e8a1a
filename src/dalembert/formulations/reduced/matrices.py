"""The RedMax matrices in plain NumPy: the check of the recursions that run (RedMax Algorithms 1, 2 and 11, section 3.3).

Every node's twist is V_i = J_i q'. Here J, J', dJ/dq and dJ'/dq are filled as the paper does, cubic tensors and all, and with
them M_r = J^T M J, the forces f with the quadratic velocity vector f_QVV, and K = df/dq, D = df/dq'. For trees of tens of
nodes: time and memory grow with the cube. Twists are (angular, linear) in the nodes' frames.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.errors import ModelError
from dalembert.formulations.reduced.equations import place_node
from dalembert.formulations.reduced.state import new_scratch
from dalembert.kernels import kernel
from dalembert.model.motions import along_derivative, along_rate, rate_derivative, unit3
from dalembert.model.records import Model
from dalembert.model.tree import POINT, SPLINE
from dalembert.spatial.twists import store6


class Jacobians(NamedTuple):
    """J and its time derivative (N, 6, n); their derivatives by the coordinates (n, N, 6, n), coordinate first; rotations (N, 3, 3)
    of the nodes in the world.
    """

    J: np.ndarray
    J_rate: np.ndarray
    dJ: np.ndarray
    dJ_rate: np.ndarray
    rotation: np.ndarray


class Matrices(NamedTuple):
    """M_r q'' = f: the reduced inertia (n, n) with its derivative (n, n, n), coordinate first; all forces f (n,) and of them the
    quadratic velocity vector f_QVV; K = df/dq and D = df/dq' (n, n).
    """

    M: np.ndarray
    dM: np.ndarray
    f: np.ndarray
    f_QVV: np.ndarray
    K: np.ndarray
    D: np.ndarray

    def residual(self, a: np.ndarray) -> np.ndarray:
        """M_r a - f."""
        return self.M @ a - self.f

    def newton(self, a: np.ndarray, c: float) -> np.ndarray:
        """H = dg/dx of a stage: q' changes by 1/c and q'' by 1/c^2 (section 3.3)."""
        return np.einsum("kij,j->ik", self.dM, a) - self.K - self.D / c + self.M / c**2


@kernel
def place(model, tree, own, i, dS, S_rate, dS_rate):
    """Place a node by itself, and write how its columns change: dS (3, 3, 6) by coordinate and column, S' (3, 6), dS' (3, 3, 6)."""
    place_node(model, tree, own, i)
    node, at = tree[i], own.nodes[i]
    spline = own.splines[node.spline]
    for j in range(node.count):
        store6(S_rate[j], along_rate(node, at, spline, unit3(j)))
        for k in range(node.count):
            store6(dS[k, j], along_derivative(node, at, spline, k, unit3(j)))
            store6(dS_rate[k, j], rate_derivative(node, at, spline, k, unit3(j)))


def skew(w: np.ndarray) -> np.ndarray:
    """[w], with [w] x = w x x."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def adjoint(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """A (6, 6): a twist of the parent's frame in that of a frame at (R, p)."""
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ skew(p), R.T]])


def ad(V: np.ndarray) -> np.ndarray:
    """ad(V) (6, 6)."""
    return np.block([[skew(V[:3]), np.zeros((3, 3))], [skew(V[3:]), skew(V[:3])]])


def fill_jacobians(model: Model, nodes: np.ndarray, at: np.ndarray) -> Jacobians:
    """Algorithm 11 at the coordinates ``x`` and rates ``v`` (N, 3) of records of the nodes, with ``turn`` (N, 4) and ``chart`` of free rotations."""
    own = new_scratch(len(nodes), int(np.count_nonzero(nodes["kind"] == SPLINE)))
    for name in ("x", "v", "turn", "chart"):
        own.nodes[name] = at[name]
    v = own.nodes["v"]
    N, n = len(nodes), int(nodes["count"].sum())
    J, J_rate = np.zeros((N, 6, n)), np.zeros((N, 6, n))
    dJ, dJ_rate = np.zeros((n, N, 6, n)), np.zeros((n, N, 6, n))
    rotation = np.zeros((N, 3, 3))
    for i, node in enumerate(nodes):
        S_rate, dS, dS_rate = np.zeros((3, 6)), np.zeros((3, 3, 6)), np.zeros((3, 3, 6))
        place(model, nodes, own, i, dS, S_rate, dS_rate)
        R, p, S = own.nodes["R"][i].reshape(3, 3), own.nodes["p"][i], own.nodes["S"][i]
        above, count, first = int(node["parent"]), int(node["count"]), int(node["dof"])
        rotation[i] = R if above < 0 else rotation[above] @ R
        if above >= 0:
            A = adjoint(R, p)
            A_rate = -ad(S.T @ v[i]) @ A
            J[i] = A @ J[above]
            J_rate[i] = A @ J_rate[above] + A_rate @ J[above]
            dJ[:, i] = A @ dJ[:, above]
            dJ_rate[:, i] = A @ dJ_rate[:, above] + A_rate @ dJ[:, above]
            for k in range(count):
                dA = -ad(S[k]) @ A
                dA_rate = -ad(dS[k].T @ v[i]) @ A - ad(S.T @ v[i]) @ dA
                dJ[first + k, i] += dA @ J[above]
                dJ_rate[first + k, i] += dA @ J_rate[above] + dA_rate @ J[above]
        here = slice(first, first + count)
        J[i, :, here], J_rate[i, :, here] = S[:count].T, S_rate[:count].T
        for k in range(count):
            dJ[first + k, i, :, here], dJ_rate[first + k, i, :, here] = dS[k, :count].T, dS_rate[k, :count].T
    return Jacobians(J, J_rate, dJ, dJ_rate, rotation)


def reduced_matrices(model: Model, nodes: np.ndarray, at: np.ndarray) -> Matrices:
    """Matrices of a tree under gravity, constant wrenches, and springs, dampers and rotors along single directions.

    ``at``: records of the nodes as in ``fill_jacobians``. Raises ModelError for laws that only the kernels know.
    """
    _refuse(model, nodes)
    J, J_rate, dJ, dJ_rate, rotation = fill_jacobians(model, nodes, at)
    q, v = at["x"], at["v"]
    n = J.shape[2]
    rates = np.zeros(n)
    for i, node in enumerate(nodes):
        rates[node["dof"] : node["dof"] + node["count"]] = v[i, : node["count"]]
    M, dM = np.zeros((n, n)), np.zeros((n, n, n))
    f, f_QVV, K, D = np.zeros(n), np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    for i, node in enumerate(nodes):
        if node["body"] < 0:
            continue
        M_m = np.zeros((6, 6))
        M_m[:3, :3], M_m[3:, 3:] = node["inertia"].reshape(3, 3), node["mass"] * np.eye(3)
        M += J[i].T @ M_m @ J[i]
        turned = dJ[:, i].transpose(0, 2, 1) @ M_m @ J[i]
        dM += turned + turned.transpose(0, 2, 1)
        V, drift = J[i] @ rates, J_rate[i] @ rates
        wrench = model.bodies["wrench"][node["body"]]
        load = np.concatenate([wrench[3:], rotation[i].T @ (node["mass"] * model.gravity + wrench[:3])])
        inertial = ad(V).T @ M_m @ V - M_m @ drift
        f_QVV += J[i].T @ inertial
        f += J[i].T @ (inertial + load)
        # how the wrench changes with V, and with the pose: a force that is fixed in the world turns in the body's frame
        to_V = ad(V).T @ M_m + np.array([ad(e).T @ (M_m @ V) for e in np.eye(6)]).T
        to_pose = np.zeros((6, 6))
        to_pose[3:, :3] = skew(load[3:])
        dV = np.einsum("kxj,j->xk", dJ[:, i], rates)
        d_drift = np.einsum("kxj,j->xk", dJ_rate[:, i], rates)
        K += np.einsum("kxj,x->jk", dJ[:, i], inertial + load) + J[i].T @ (to_V @ dV - M_m @ d_drift + to_pose @ J[i])
        D += J[i].T @ (to_V @ J[i] - M_m @ (J_rate[i] + dV))
    for i, node in enumerate(nodes):
        if node["joint"] < 0 or node["kind"] == POINT:
            continue
        joint = model.joints[node["joint"]]
        for j in range(int(node["count"])):
            direction, k = int(node["direction"]) + j, int(node["dof"]) + j
            f[k] -= joint["stiffness"][direction] * (q[i, j] - joint["rest"][direction]) + joint["damping"][direction] * v[i, j]
            K[k, k] -= joint["stiffness"][direction]
            D[k, k] -= joint["damping"][direction]
            M[k, k] += joint["armature"][direction]
    return Matrices(M, dM, f, f_QVV, K, D)


def _refuse(model: Model, nodes: np.ndarray) -> None:
    """Raise for laws that are not written here."""
    if len(model.loads) or len(model.couplings):
        raise ModelError("the RedMax matrices hold gravity, constant wrenches and springs and dampers along joints: there are other forces or couplings")
    for node in nodes:
        joint = model.joints[node["joint"]] if node["joint"] >= 0 else None
        if joint is not None and node["kind"] == POINT and (joint["stiffness"].any() or joint["damping"].any()):
            raise ModelError(f"the RedMax matrices know no springs or dampers of free rotations: joint {int(node['joint'])} has some")
        if joint is not None and (joint["follows"].any() or joint["driven"].any()):
            raise ModelError(f"the RedMax matrices know no targets: joint {int(node['joint'])} follows one")
