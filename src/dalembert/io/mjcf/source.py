"""A compiled MuJoCo model at its reference pose, and what every part of the importer asks of it."""
from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import MissingExtraError, ModelError
from dalembert.io.budget import Meter
from dalembert.io.options import Options
from dalembert.io.robot import LinkJoint, Robot, fresh
from dalembert.mechanism.mechanism import Mechanism

#: switches of <option><flag> that say nothing about motion, or that are honoured
SILENT = {
    "GRAVITY", "CONTACT", "CONSTRAINT", "LIMIT", "FRICTIONLOSS", "EQUALITY", "SPRING", "DAMPER", "PASSIVE",
    "AUTORESET", "EULERDAMP", "ISLAND", "MIDPHASE", "MULTICCD", "NATIVECCD", "REFSAFE", "SENSOR", "WARMSTART",
    "DIAGEXACT", "ENERGY", "FWDINV", "INVDISCRETE", "SLEEP", "SPECULATIVE",
}

#: softness of constraints that nothing was said about
SOLREF, SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)


def compiled(path: Path) -> tuple[Any, Any]:
    """MuJoCo itself, and its model of a file."""
    try:
        mujoco: Any = import_module("mujoco")
    except ImportError:
        raise MissingExtraError("reading MJCF files needs MuJoCo: pip install dalembert[mjcf]") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mujoco, mujoco.MjSpec.from_file(str(path)).compile()
    except MemoryError:
        raise ModelError(f"{path} asks for more memory than there is") from None
    except Exception as error:
        raise ModelError(f"MuJoCo cannot load {path}: {' '.join(str(error).split())}") from error


class Source:
    """A model, the pose from which coordinates count, and the robot that is read from it.

    ``joints``, ``tendons`` and ``elements``: what became of joints, straight tendons and geoms that touch, by index;
    ``named``: names of these geoms; ``ties``: joints that close loops, with their bodies. What has no place goes into the report. ``mechanism`` is there once the links are built.
    """

    mechanism: Mechanism

    def __init__(self, mujoco: Any, model: Any, name: str, options: Options, meter: Meter) -> None:
        self.mj, self.model, self.options, self.meter = mujoco, model, options, meter
        self.key = self._keyframe()
        self.data = mujoco.MjData(model)
        if self.key is not None:
            self.data.mocap_pos[:], self.data.mocap_quat[:] = model.key_mpos[self.key].reshape(-1, 3), model.key_mquat[self.key].reshape(-1, 4)
        for j in range(model.njnt):  # free bodies start where they are: their pose is no coordinate
            if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE:
                q = int(model.jnt_qposadr[j])
                self.data.qpos[q : q + 7] = self.start_qpos[q : q + 7]
        mujoco.mj_kinematics(model, self.data)
        mujoco.mj_comPos(model, self.data)
        title = model.names[: model.names.find(b"\0")].decode(errors="replace")
        self.robot = Robot(title or name)
        self.report = self.robot.report
        self.joints: dict[int, LinkJoint] = {}
        self.tendons: dict[int, str] = {}
        self.ties: list[tuple[str, str, str]] = []
        self.named: dict[int, str] = {}
        self.elements: dict[int, str] = {}
        self._options()

    def _keyframe(self) -> int | None:
        key, names = self.options.keyframe, [self.name("key", k) for k in range(self.model.nkey)]
        if key is None:
            return None
        if isinstance(key, str) and key in names:
            return names.index(key)
        if isinstance(key, int) and 0 <= key < len(names):
            return key
        raise ModelError(f"there is no keyframe {key!r}; the file has: {', '.join(names) or 'none'}")

    @property
    def start_qpos(self) -> np.ndarray:
        """The chosen keyframe's positions, or the reference ones."""
        return self.model.qpos0 if self.key is None else self.model.key_qpos[self.key]

    def disabled(self, *flags: str) -> bool:
        """True when the file switches one of these off."""
        bits = [int(getattr(self.mj.mjtDisableBit, f"mjDSBL_{flag}", 0)) for flag in flags]
        return any(self.model.opt.disableflags & bit for bit in bits)

    def _options(self) -> None:
        option = self.model.opt
        self.robot.gravity = np.zeros(3) if self.disabled("GRAVITY") else np.array(option.gravity)
        if option.density or option.viscosity:
            self.report.append(f"option: a fluid of density {option.density:g} and viscosity {option.viscosity:g} is not simulated")
        if np.any(option.wind):
            self.report.append("option: wind is not simulated")
        for kind, prefix, flags, word in (
            (self.mj.mjtDisableBit, "mjDSBL_", option.disableflags, "off"), (self.mj.mjtEnableBit, "mjENBL_", option.enableflags, "on"),
        ):
            for name in dir(kind):
                title = name.removeprefix(prefix)
                if name.startswith(prefix) and flags & int(getattr(kind, name)) and title not in SILENT:
                    self.report.append(f"option: the flag {title.lower()}, switched {word}, is not honoured")

    def name(self, kind: str, index: int) -> str:
        """The name of an element, made up where it has none."""
        text = self.mj.mj_id2name(self.model, getattr(self.mj.mjtObj, f"mjOBJ_{kind.upper()}"), index)
        return text or f"{kind} {index}"

    def free_name(self, name: str) -> str:
        """A name for a new element of the mechanism."""
        return fresh(name, set(self.mechanism._names), "constraint")

    def body(self, b: int) -> str:
        """The body of the mechanism that moves with one of the file."""
        return "world" if b == 0 else self.robot.carriers.get(self.name("body", b), "world")

    def joint(self, j: int) -> str:
        """The joint of the mechanism that stands for one of the file."""
        return self.robot.joints[self.joints[j].name]

    def point(self, b: int, local: np.ndarray) -> np.ndarray:
        """A point of a body (its own frame), in the world."""
        return np.array(self.data.xpos[b]) + rotation(self.data.xquat[b]).apply(local)

    def extra(self, field: str, index: int) -> float:
        """The largest number of a field that only some versions of MuJoCo have; zero where there is none."""
        values = getattr(self.model, field, None)
        return 0.0 if values is None or not np.size(values) else float(np.max(np.abs(np.atleast_1d(values[index]))))


def rotation(q: np.ndarray) -> Rotation:
    return Rotation.from_quat(np.asarray(q, dtype=float), scalar_first=True)


def softened(solref: np.ndarray, solimp: np.ndarray) -> bool:
    """True when a file chooses the softness of a constraint itself."""
    return not (np.array_equal(solref, SOLREF) and np.array_equal(solimp, SOLIMP))


def listed(names: list[str], most: int = 6) -> str:
    """Some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
