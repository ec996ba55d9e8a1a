"""A round of the fuzzer with USD files, whose bytes usd-core itself parses: text and crate files, and layers below them, with a few changes."""
from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attacks
import numpy as np
from fuzzing import Failure
from rounds_files import apply, edits_of, judge, load, program
from sandbox import measured, watched

SCENE = """#usda 1.0
(
  metersPerUnit = 0.01
  upAxis = "Y"
  defaultPrim = "arm"
)
def PhysicsScene "scene" {
  vector3f physics:gravityDirection = (0, -1, 0)
  float physics:gravityMagnitude = 981
}
def Xform "arm" {
  def Xform "upper" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
    double3 xformOp:translate = (50, 200, 0)
    quatf xformOp:orient = (1, 0, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]
    float physics:mass = 1
    float3 physics:diagonalInertia = (100, 200, 300)
    def Capsule "bar" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
      double radius = 4
      double height = 90
      uniform token axis = "X"
    }
  }
  def Xform "lower" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {
    double3 xformOp:translate = (150, 200, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Mesh "hull" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"]) {
      int[] faceVertexCounts = [3, 3, 3, 3]
      int[] faceVertexIndices = [0, 1, 2, 0, 1, 3, 0, 2, 3, 1, 2, 3]
      point3f[] points = [(0, 0, 0), (30, 0, 0), (0, 30, 0), (0, 0, 30)]
      uniform token physics:approximation = "convexHull"
    }
  }
  def PhysicsRevoluteJoint "shoulder" (prepend apiSchemas = ["PhysicsDriveAPI:angular"]) {
    uniform token physics:axis = "Z"
    rel physics:body1 = </arm/upper>
    point3f physics:localPos0 = (0, 200, 0)
    point3f physics:localPos1 = (-50, 0, 0)
    float physics:lowerLimit = -90
    float physics:upperLimit = 170
    float drive:angular:physics:stiffness = 3
    float drive:angular:physics:damping = 0.3
  }
  def PhysicsSphericalJoint "elbow" {
    rel physics:body0 = </arm/upper>
    rel physics:body1 = </arm/lower>
    point3f physics:localPos0 = (50, 0, 0)
    point3f physics:localPos1 = (-50, 0, 0)
  }
}
"""
ABOVE = '#usda 1.0\n(\n  subLayers = [@./a.usda@]\n  metersPerUnit = 0.01\n  upAxis = "Y"\n)\nover "arm" {\n  over "upper" {\n    float physics:mass = 2\n  }\n}\n'


@cache
def sources() -> dict[str, bytes]:
    """Files to break, by name: a scene as text and as a crate, and a layer above it."""
    Sdf: Any = import_module("pxr.Sdf")
    with TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "a.usda").write_text(SCENE)
        Sdf.Layer.OpenAsAnonymous(str(place / "a.usda")).Export(str(place / "c.usdc"))
        crate = (place / "c.usdc").read_bytes()
    return {"a.usda": SCENE.encode(), "b.usda": ABOVE.encode(), "c.usdc": crate}


def mutated(random: np.random.Generator, folder: Path, trial: int) -> None:
    """A USD file, or a layer below it, with a few changes: refused or loaded, below the bars, and no crash."""
    names = ("a.usda", "b.usda", "c.usdc", "c.usdc")
    broken, edits = names[trial % len(names)], edits_of(random)
    main = ("a.usda", "b.usda")[trial // len(names) % 2] if broken == "a.usda" else broken
    attacks.prepare(folder)
    for name, data in sources().items():
        (folder / "model" / name).write_bytes(apply(edits, data) if name == broken else data)
    with watched(folder / "secret") as opened:
        outcome = measured(lambda: load(folder / "model" / main))
    problem = judge(outcome, opened)
    if problem:
        raise Failure(problem, program(folder / "model", main, broken))


def warm(folder: Path) -> None:
    """Load each kind once, so that libraries are there before anything is measured."""
    attacks.prepare(folder)
    for name, data in sources().items():
        (folder / "model" / name).write_bytes(data)
    for name in sources():
        answer = load(folder / "model" / name)
        if answer != "loaded":
            raise Failure(f"{name} itself: {answer}")


ROUNDS = {"mutated USD": mutated} if find_spec("pxr") else {}
