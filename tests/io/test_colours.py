"""Colours of mesh files: a visual of a .dae file in the colours of its materials, unless the model gives one."""
from __future__ import annotations

import re

import numpy as np
import pytest

import dalembert as da

RED, GLASS = (1.0, 0.0, 0.0, 1.0), (0.0, 0.2, 1.0, 0.4)
LINK = '<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>' \
       '<visual><geometry><mesh filename="two.dae" scale="2 2 2"/></geometry>%s</visual></link></robot>'


@pytest.fixture
def robot(tmp_path):
    """A function that writes a robot whose one link looks like a .dae file of two triangles, red and glass."""
    collada = pytest.importorskip("collada")
    file = collada.Collada()
    names = []
    for k, colour in enumerate((RED, GLASS)):
        opaque = collada.material.Effect(f"effect{k}", [], "phong", diffuse=(*colour[:3], 1.0), transparent=(1.0, 1.0, 1.0, colour[3]))
        material = collada.material.Material(f"material{k}", f"material{k}", opaque)
        file.effects.append(opaque)
        file.materials.append(material)
        corners = collada.source.FloatSource(f"corners{k}", np.array([k, 0, 0, k + 1, 0, 0, k, 1, 0], float), ("X", "Y", "Z"))
        geometry = collada.geometry.Geometry(file, f"mesh{k}", f"mesh{k}", [corners])
        inputs = collada.source.InputList()
        inputs.addInput(0, "VERTEX", f"#corners{k}")
        geometry.primitives.append(geometry.createTriangleSet(np.array([0, 1, 2]), inputs, "symbol"))
        file.geometries.append(geometry)
        bound = collada.scene.MaterialNode("symbol", material, inputs=[])
        names.append(collada.scene.Node(f"node{k}", children=[collada.scene.GeometryNode(geometry, [bound])]))
    scene = collada.scene.Scene("scene", names)
    file.scenes.append(scene)
    file.scene = scene
    file.write(str(tmp_path / "two.dae"))

    def load(material: str = "") -> da.Mechanism:
        (tmp_path / "r.urdf").write_text(LINK % material)
        return da.load(tmp_path / "r.urdf", base="free")

    return load


def test_materials_of_the_file_are_its_colours(robot):
    visuals = robot().visuals["a"]
    assert [np.round(v.colour, 2).tolist() for v in visuals] == [list(RED), [*GLASS]]
    assert [len(v.geometry.faces) for v in visuals] == [1, 1]
    np.testing.assert_allclose(visuals[1].geometry.vertices, [[2, 0, 0], [4, 0, 0], [2, 2, 0]])


def test_the_colour_of_the_model_goes_before(robot):
    green = robot('<material name="green"><color rgba="0 1 0 1"/></material>').visuals["a"]
    assert {v.colour for v in green} == {(0.0, 1.0, 0.0, 1.0)}


def test_pages_show_them(robot, tmp_path):
    run = da.Simulation(robot(), da.Variational(dt=0.01)).run(0.02)
    text = run.to_html(tmp_path / "run.html").read_text()
    shown = [[float(n) for n in found.split(",")] for found in re.findall(r'"colour": ?\[([^\]]*)\]', text)]
    for colour in (RED, GLASS):
        assert any(np.allclose(found, colour, atol=0.01) for found in shown), shown
