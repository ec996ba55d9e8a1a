"""Rounds of the fuzzer with files: broken at random, or made to do harm. Each is refused or loaded, and takes little."""
from __future__ import annotations

import base64
import warnings
import zlib
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import attacks
import numpy as np
from fuzzing import Failure
from sandbox import Outcome, measured, watched

import dalembert as da

#: what a file may take at the most: s of the processor, MB
SECONDS, MEGABYTES = 5.0, 1000.0
WORDS = (
    b"nan", b"1e308", b"-1", b"0", b"", b"inf", b"99999999999999999999", b"x" * 3000, b"<", b"&", b"\x00", b"\xff\xfe", b"../secret/s.stl", b"..\\secret\\s.stl",
    b"package://secret/s.stl", b"1 2", b"1e9 1e9 1e9", b"true", b"[]", b"{}", b"null", b"world",
)

ARM = """<robot name="arm"><link name="world"/>
  <link name="upper"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="m.stl" scale="1 1 1"/></geometry></visual><collision><geometry><box size="0.1 0.1 1"/></geometry></collision></link>
  <link name="lower"><inertial><mass value="2"/><inertia ixx="0.2" iyy="0.2" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="world"/><child link="upper"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/><dynamics damping="0.3" friction="0.1"/></joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><origin xyz="0 0 -1" rpy="0 0 1"/><axis xyz="0 1 0"/><mimic joint="shoulder" multiplier="2" offset="0.1"/></joint></robot>"""
LEG = """<mujoco model="leg"><compiler angle="radian" meshdir="."/><option gravity="0 0 -5"/><size nkey="1"/><include file="b.xml"/>
<worldbody><geom type="plane" size="1 1 1"/><body name="thigh" pos="0 0 1"><joint name="hip" axis="0 1 0" range="-1 1" stiffness="3" armature="0.1" frictionloss="0.4"/>
  <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.04"/><geom type="mesh" mesh="s"/><site name="s1" pos="0 0 -0.2"/>
  <body name="shank" pos="0 0 -0.5"><joint name="knee" axis="0 1 0" ref="0.3" damping="0.2"/><geom type="box" size="0.04 0.04 0.25"/><site name="s2" pos="0 0 -0.3"/></body></body>
 <body name="ball" pos="1 0 1"><freejoint/><geom type="sphere" size="0.1"/></body><replicate count="3" offset="1 0 0"><geom type="box" size="1 1 1" pos="0 9 0"/></replicate></worldbody>
<asset><hfield name="h" nrow="3" ncol="3" size="1 1 1 1"/></asset><equality><connect body1="shank" body2="ball" anchor="0 0 0"/></equality>
<tendon><spatial name="band" stiffness="20"><site site="s1"/><site site="s2"/></spatial></tendon><actuator><position name="p" joint="knee" kp="40"/></actuator></mujoco>"""
INCLUDED = '<mujoco><asset><mesh name="s" file="m.stl"/></asset></mujoco>'


@cache
def sources() -> dict[str, bytes]:
    """Files to break, by name."""
    mechanism = da.zoo.double_four_bar()
    mechanism.body("stone", da.Convex(points=np.random.default_rng(1).normal(size=(12, 3)), mass=1.0), position=(9, 9, 9))
    with TemporaryDirectory() as folder:
        place = Path(folder)
        mechanism.save(place / "a.toml")
        mechanism.save(place / "a.json")
        simulation = da.Simulation(da.zoo.double_pendulum(), da.Variational(dt=0.01))
        simulation.run(0.05).save(place / "a.h5")
        simulation.state.save(place / "a.npz")
        saved = {path.name: path.read_bytes() for path in sorted(place.iterdir())}
    corners = "".join(f"v {x} {y} {z}\n" for x, y, z in [*np.eye(3).tolist(), [0, 0, 0]])
    made = {"a.urdf": ARM.encode(), "a.xml": LEG.encode(), "b.xml": INCLUDED.encode(), "m.stl": attacks.tetrahedron(), "m.obj": (corners + "f 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n").encode()}
    return made | saved


def load(path: Path) -> str:
    """What becomes of a file."""
    read = {".h5": da.Trajectory.load, ".npz": da.State.load}.get(path.suffix, da.load)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read(path)
        except da.ModelError as error:
            return f"refused: {error}"
    return "loaded"


def judge(outcome: Outcome, opened: list[str]) -> str:
    """What is wrong with what became of a file; empty when nothing is."""
    if not (outcome.answer.startswith("refused") or outcome.answer == "loaded"):
        return outcome.answer
    if outcome.seconds > SECONDS or outcome.megabytes > MEGABYTES:
        return f"took {outcome.seconds:.1f} s and {outcome.megabytes:.0f} MB"
    return f"read {', '.join(sorted(set(opened)))} outside of its folder" if opened else ""


# ---- files that are broken

Edit = tuple[str, float, float, int]


def edits_of(random: np.random.Generator) -> list[Edit]:
    """What to do to a file: changes by kind, with places as parts of its length."""
    kinds = ("byte", "cut", "double", "end", "value", "value", "value", "swap")
    return [(kinds[random.integers(len(kinds))], float(random.random()), float(random.random()), int(random.integers(256))) for _ in range(random.integers(1, 5))]


def apply(edits: list[Edit], text: bytes) -> bytes:
    data = bytearray(text)
    for kind, where, reach, number in edits:
        if not data:
            break
        a = int(where * len(data))
        b = min(len(data), a + 1 + int(reach * 400))
        if kind == "byte":
            data[a] = number
        elif kind == "cut":
            del data[a:b]
        elif kind == "double":
            data[a:a] = data[a:b] * (1 + number % 3)
        elif kind == "end" and number % 4 == 0:
            del data[a:]
        elif kind == "swap":
            c = int(reach * len(data))
            data[a : a + 8], data[c : c + 8] = data[c : c + 8], data[a : a + 8]
        elif kind == "value":
            quotes = [i for i in range(len(data)) if data[i] in b"\"'= ,:\n"]
            k = int(where * (len(quotes) - 1))
            if k >= 0 and len(quotes) > 1:
                data[quotes[k] + 1 : quotes[k + 1]] = WORDS[number % len(WORDS)]
    return bytes(data)


def mutated(random: np.random.Generator, folder: Path, trial: int) -> None:
    """A file, or one that it names, with a few changes."""
    names = list(sources())
    broken = names[trial % len(names)]
    edits = edits_of(random)
    main = {"b.xml": "a.xml", "m.stl": ("a.urdf", "a.xml")[trial // len(names) % 2], "m.obj": "a.urdf"}.get(broken, broken)
    attacks.prepare(folder)

    def attempt(chosen: list[Edit]) -> str:
        for name, text in sources().items():
            if name == "a.urdf" and broken == "m.obj":
                text = text.replace(b"m.stl", b"m.obj")
            (folder / "model" / name).write_bytes(apply(chosen, text) if name == broken else text)
        with watched(folder / "secret") as opened:
            outcome = measured(lambda: load(folder / "model" / main))
        return judge(outcome, opened)

    problem = attempt(edits)
    if problem:
        for edit in list(edits):  # as few changes as do it
            fewer = [e for e in edits if e is not edit]
            if attempt(fewer) == problem:
                edits = fewer
        attempt(edits)
        raise Failure(problem, program(folder / "model", main, broken))


def program(folder: Path, main: str, broken: str) -> str:
    """A program that does it again."""
    files = {main, broken, *(("b.xml", "m.stl") if main == "a.xml" else ("m.stl",) if main == "a.urdf" else ())}
    lines = ["import base64, zlib", "from pathlib import Path", "import dalembert as da", ""]
    for name in sorted(files):
        packed = base64.b64encode(zlib.compress((folder / name).read_bytes(), 9)).decode()
        lines.append(f"Path({name!r}).write_bytes(zlib.decompress(base64.b64decode({packed!r})))")
    call = {".h5": "da.Trajectory.load", ".npz": "da.State.load"}.get(Path(main).suffix, "da.load")
    return "\n".join([*lines, f"{call}({main!r})"])


# ---- files that do harm


def attacked(random: np.random.Generator, folder: Path, trial: int) -> None:
    """One of the list of attacks."""
    listed = {**attacks.READS, **attacks.BOMBS}
    name = list(listed)[trial % len(listed)]
    (folder.parent / "run.h5").write_bytes(sources()["a.h5"])
    attacks.prepare(folder)
    path = Path(measured(lambda: str(listed[name](folder))).answer)  # apart, to have its memory back
    with watched(folder / "secret") as opened:
        outcome = measured(lambda: load(path))
    problem = judge(outcome, opened)
    if problem:
        raise Failure(f"{name}: {problem}", f"# the attack {name!r} of tests/fuzz/attacks.py")


def warm(folder: Path) -> None:
    """Load each kind once, so that libraries are there before anything is measured."""
    attacks.prepare(folder)
    for name, text in sources().items():
        (folder / "model" / name).write_bytes(text)
    for name in sources():
        if name.startswith("a."):
            load(folder / "model" / name)


ROUNDS = {"mutated file": mutated, "attack": attacked}
#: rounds with so many different trials and no more
MOST = {"attack": len(attacks.READS) + len(attacks.BOMBS)}
