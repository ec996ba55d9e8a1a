"""The simulators, each in a file of its own: what takes part is what can be imported."""
from __future__ import annotations

import importlib
from importlib.util import find_spec

from benchmarks.peers.peer import Model, Peer

#: by name: the module that has to be there, and the file and class here
KNOWN = {
    "dalembert": ("dalembert", "ours", "Ours"), "MuJoCo": ("mujoco", "mujoco", "Mujoco"), "Pinocchio": ("pinocchio", "pinocchio", "Pinocchio"),
    "Drake": ("pydrake", "drake", "Drake"), "Exudyn": ("exudyn", "exudyn", "Exudyn"), "PyBullet": ("pybullet", "bullet", "Bullet"),
}
#: these have to be there
ALWAYS = ("dalembert", "MuJoCo")


def peer_named(name: str) -> Peer:
    _, file, kind = KNOWN[name]
    return getattr(importlib.import_module(f"benchmarks.peers.{file}"), kind)()


def installed() -> list[Peer]:
    """Ours, MuJoCo, and those of the others that are there."""
    return [peer_named(name) for name, (module, _, _) in KNOWN.items() if name in ALWAYS or find_spec(module) is not None]


__all__ = ["Model", "Peer", "installed", "peer_named"]
