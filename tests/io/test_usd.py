"""USD files with physics: units and axes of any kind, joints, drives, shapes; nothing outside of the folder is read."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dalembert as da

pytest.importorskip("pxr", reason="usd-core is not installed")

BODY = """def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{
  double3 xformOp:translate = ({place})
  uniform token[] xformOpOrder = ["xformOp:translate"]
  float physics:mass = {mass}
  float3 physics:diagonalInertia = ({inertia})
  point3f physics:centerOfMass = (0, 0, 0)
  def Cube "box" {{ double size = 1
    float3 xformOp:scale = ({scale})
    uniform token[] xformOpOrder = ["xformOp:scale"]
    color3f[] primvars:displayColor = [(1, 0, 0)]
  }}
}}
"""
HINGE = """def PhysicsRevoluteJoint "{name}" {{
  uniform token physics:axis = "{axis}"
  rel physics:body0 = {body0}
  rel physics:body1 = {body1}
  point3f physics:localPos0 = ({at0})
  point3f physics:localPos1 = ({at1})
{more}}}
"""


def arm(unit: float, up: str) -> str:
    """A double pendulum in lengths of ``unit`` metres, with that axis up."""
    def place(x: float, z: float) -> str:
        return f"{x / unit}, {z / unit}, 0" if up == "Y" else f"{x / unit}, 0, {z / unit}"

    inertia = ", ".join(str(v / unit**2) for v in ((0.01, 0.03, 0.02) if up == "Y" else (0.01, 0.02, 0.03)))
    axis, more = ("Z", "") if up == "Y" else ("Y", "")
    text = f'#usda 1.0\n(\n metersPerUnit = {unit}\n upAxis = "{up}"\n)\ndef PhysicsScene "scene" {{ }}\n'
    scale = f"{1 / unit}, {0.1 / unit}, {0.1 / unit}"
    text += BODY.format(name="upper", place=place(0.5, 2), mass=1, inertia=inertia, scale=scale) + BODY.format(name="lower", place=place(1.5, 2), mass=2, inertia=inertia, scale=scale)
    limits = "  float physics:lowerLimit = -90\n  float physics:upperLimit = 170\n"
    text += HINGE.format(name="shoulder", axis=axis, body0="None", body1="</upper>", at0=place(0, 2), at1=place(-0.5, 0), more=limits)
    return text + HINGE.format(name="elbow", axis=axis, body0="</upper>", body1="</lower>", at0=place(0.5, 0), at1=place(-0.5, 0), more=more)


@pytest.mark.parametrize(("unit", "up"), [(1.0, "Z"), (0.01, "Z"), (1.0, "Y"), (0.01, "Y")])
def test_units_and_axes(tmp_path: Path, unit: float, up: str):
    """The same arm in metres and centimetres, with y or z up."""
    (tmp_path / "arm.usda").write_text(arm(unit, up))
    found = da.load(tmp_path / "arm.usda")
    built = da.Mechanism("arm")
    for name, x, mass in (("upper", 0.5, 1.0), ("lower", 1.5, 2.0)):
        built.body(name, mass=mass, inertia=np.diag([0.01, 0.02, 0.03]), position=(x, 0, 2))
    built.joint("shoulder", da.Revolute(axis="y"), "world", "upper", at=(0, 0, 2))
    built.joint("elbow", da.Revolute(axis="y"), "upper", "lower", at=(1, 0, 2))
    assert np.allclose(np.degrees(np.sort(np.abs(found["shoulder"].type.limits[0]))), (90, 170), atol=1e-4)
    runs = [da.Simulation(m, da.Variational(dt=1e-3)).run(0.2) for m in (found, built)]
    assert np.allclose(runs[0].position, runs[1].position, atol=2e-7)
    assert len(found.visuals["upper"]) == 1


SCENE = """#usda 1.0
(
 metersPerUnit = 1
 upAxis = "Z"
)
def PhysicsScene "scene" {{ vector3f physics:gravityDirection = (0, 0, -1)
 float physics:gravityMagnitude = 5
}}
def Material "rubber" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {{ float physics:dynamicFriction = 0.7
 float physics:restitution = 0
}}
def Plane "floor" (prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]) {{ uniform token axis = "Z"
 rel material:binding:physics = </rubber>
}}
def Xform "crate" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {{
  double3 xformOp:translate = (0, 0, 0.1)
  uniform token[] xformOpOrder = ["xformOp:translate"]
  float physics:mass = 2
  def Cube "box" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{ double size = 0.2
  }}
}}
def Xform "slider" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{
  double3 xformOp:translate = (1, 0, 1)
  uniform token[] xformOpOrder = ["xformOp:translate"]
  def {shape} (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{
 {sizes}
  }}
}}
def PhysicsPrismaticJoint "rail" (prepend apiSchemas = ["PhysicsDriveAPI:linear"]) {{
  uniform token physics:axis = "X"
  rel physics:body1 = </slider>
  point3f physics:localPos0 = (1, 0, 1)
  float drive:linear:physics:stiffness = 100
  float drive:linear:physics:damping = 20
  float drive:linear:physics:targetPosition = 0.5
}}
"""


@pytest.mark.parametrize(("shape", "sizes", "mass"), [
    ('Sphere "ball"', "double radius = 0.1", 1000 * 4 / 3 * np.pi * 1e-3),
    ('Cylinder "drum"', 'double radius = 0.1\n double height = 0.4\n uniform token axis = "Y"', 1000 * np.pi * 0.01 * 0.4),
    ('Cone "hat"', 'double radius = 0.1\n double height = 0.4\n uniform token axis = "X"', 1000 * np.pi * 0.01 * 0.4 / 3),
    ('Mesh "tetrahedron"', "int[] faceVertexCounts = [3, 3, 3, 3]\n int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]\n point3f[] points = [(0, 0, 0), (0.3, 0, 0), (0, 0.3, 0), (0, 0, 0.3)]", 1000 * 0.027 / 6),
])
def test_contact_drives_and_masses(tmp_path: Path, shape: str, sizes: str, mass: float):
    (tmp_path / "scene.usda").write_text(SCENE.format(shape=shape, sizes=sizes))
    m = da.load(tmp_path / "scene.usda")
    assert m["slider"].mass == pytest.approx(mass, rel=1e-6)
    assert m["rail"].type.servo[0].target == 0.5
    assert m.grounds[0].friction == pytest.approx(0.7)
    run = da.Simulation(m, da.Variational(dt=5e-3)).run(0.1)
    assert np.allclose(run.position[-1, 0], (0, 0, 0.1), atol=1e-6)
    assert np.allclose(run.contacts().total_force()[-1], (0, 0, 10), atol=1e-3)
    assert run.joint("rail").coordinates[-1] > 1e-4


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path):
    (tmp_path / "model").mkdir()
    (tmp_path / "secret.usda").write_text(arm(1.0, "Z"))
    for how in ("subLayers = [@../secret.usda@]", f"subLayers = [@{tmp_path}/secret.usda@]", "subLayers = [@http://example.org/a.usda@]"):
        (tmp_path / "model" / "a.usda").write_text(f"#usda 1.0\n(\n {how}\n)\n")
        with pytest.raises(da.ModelError, match=r"outside of|own folder"):
            da.load(tmp_path / "model" / "a.usda")
    (tmp_path / "model" / "a.usda").write_text('#usda 1.0\ndef "a" (references = @../secret.usda@</upper>) { }\n')
    with pytest.raises(da.ModelError, match="outside of"):
        da.load(tmp_path / "model" / "a.usda")
    (tmp_path / "model" / "part.usda").write_text(arm(1.0, "Z"))
    (tmp_path / "model" / "a.usda").write_text("#usda 1.0\n(\n subLayers = [@./part.usda@]\n upAxis = \"Z\"\n metersPerUnit = 1\n)\n")
    assert len(da.load(tmp_path / "model" / "a.usda").bodies) == 2


def test_mistakes_are_named(tmp_path: Path):
    path = tmp_path / "a.usda"
    for text, words in (("no usd at all", "cannot be"), ("#usda 1.0\n", "no rigid bodies"), (arm(1.0, "Z").replace("</lower>", "</lowest>"), "does not exist")):
        path.write_text(text)
        with pytest.raises(da.ModelError, match=words):
            da.load(path)
    with pytest.raises(da.ModelError, match="no such file"):
        da.load(tmp_path / "b.usd")
