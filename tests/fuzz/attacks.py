"""Files that were made to do harm: to read what is not theirs, or to take all memory and time.

Each is a function of a folder that makes a file in ``folder/model`` and gives its path; ``folder/secret`` holds what nobody may read.
"""
from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from dalembert.io.hdf5 import seal

Attack = Callable[[Path], Path]
READS: dict[str, Attack] = {}
BOMBS: dict[str, Attack] = {}

GEOM = '<worldbody><geom type="mesh" mesh="s"/></worldbody>'
ASSET = '<asset><mesh name="s" file="{}"/></asset>'
LINK = '<robot name="a"><link name="a"><visual><geometry><mesh filename="{}"/></geometry></visual></link></robot>'

MODEL = '<sdf version="1.9"><model name="a"><link name="a"><visual name="v"><geometry><mesh><uri>{}</uri></mesh></geometry></visual></link></model></sdf>'


def tetrahedron() -> bytes:
    """A mesh as binary STL."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype="<f4")
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    return bytes(80) + struct.pack("<I", 4) + b"".join(struct.pack("<3f", 0, 0, 0) + corners[list(face)].tobytes() + b"\0\0" for face in faces)


def prepare(folder: Path) -> None:
    """The folders with something to steal."""
    (folder / "model" / "sub").mkdir(parents=True)
    (folder / "secret" / "urdf").mkdir(parents=True)
    for name in ("s.stl", "urdf/s.stl"):
        (folder / "secret" / name).write_bytes(tetrahedron())
    (folder / "secret" / "s.xml").write_text("<mujoco><worldbody><body name='stolen'><geom size='1'/></body></worldbody></mujoco>")
    (folder / "secret" / "numbers.bin").write_bytes(bytes(8 * 21 * 12))
    (folder / "secret" / "s.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")


def put(folder: Path, **files: str | bytes) -> Path:
    """Writes files into the model's folder (``a_xml`` is a.xml, ``sub__b_xml`` is sub/b.xml); the path of the first."""
    paths = []
    for name, content in files.items():
        path = folder / "model" / ".".join(name.replace("__", "/").rsplit("_", 1))
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths.append(path)
    return paths[0]


def reads(attack: Attack) -> Attack:
    READS[attack.__name__.replace("_", " ")] = attack
    return attack


def bomb(attack: Attack) -> Attack:
    BOMBS[attack.__name__.replace("_", " ")] = attack
    return attack


# ---- reading what lies elsewhere


def _mjcf(name: str, text: str, **files: str) -> None:
    READS[name] = lambda folder: put(folder, a_xml=text.replace("SECRET", str(folder / "secret")), **{k: v.replace("SECRET", str(folder / "secret")) for k, v in files.items()})


_mjcf("mjcf: a mesh above", f"<mujoco>{ASSET.format('../secret/s.stl')}{GEOM}</mujoco>")
_mjcf("mjcf: an absolute mesh", f"<mujoco>{ASSET.format('SECRET/s.stl')}{GEOM}</mujoco>")
_mjcf("mjcf: backslashes", f"<mujoco>{ASSET.format(chr(92).join(('..', 'secret', 's.stl')))}{GEOM}</mujoco>")
_mjcf("mjcf: backslashes in meshdir", f'<mujoco><compiler meshdir="..{chr(92)}secret"/>{ASSET.format("s.stl")}{GEOM}</mujoco>')
_mjcf("mjcf: meshdir", f'<mujoco><compiler meshdir="../secret"/>{ASSET.format("s.stl")}{GEOM}</mujoco>')
_mjcf("mjcf: assetdir", f'<mujoco><compiler assetdir="../secret"/>{ASSET.format("s.stl")}{GEOM}</mujoco>')
_mjcf("mjcf: the second meshdir", f'<mujoco><compiler meshdir="sub"/><compiler meshdir="../secret"/>{ASSET.format("s.stl")}{GEOM}</mujoco>')
_mjcf("mjcf: strippath", f'<mujoco><compiler strippath="true" meshdir="../secret"/>{ASSET.format("x/y/s.stl")}{GEOM}</mujoco>')
_mjcf("mjcf: an include above", '<mujoco><include file="../secret/s.xml"/></mujoco>')
_mjcf("mjcf: meshdir here, mesh in the include", f'<mujoco><compiler meshdir="../secret"/><include file="b.xml"/>{GEOM}</mujoco>', b_xml=f"<mujoco>{ASSET.format('s.stl')}</mujoco>")
_mjcf("mjcf: mesh here, meshdir in the include", f'<mujoco><include file="b.xml"/>{ASSET.format("s.stl")}{GEOM}</mujoco>', b_xml='<mujoco><compiler meshdir="../secret"/></mujoco>')
_mjcf("mjcf: a mesh from below", f'<mujoco><include file="sub/b.xml"/>{GEOM}</mujoco>', sub__b_xml=f"<mujoco>{ASSET.format('../../secret/s.stl')}</mujoco>")
_mjcf("mjcf: an include in an include", f'<mujoco><include file="sub/b.xml"/>{GEOM}</mujoco>', sub__b_xml='<mujoco><include file="c.xml"/></mujoco>', sub__c_xml=f"<mujoco>{ASSET.format('../secret/s.stl')}</mujoco>")
_ATTACH = '<mujoco><asset><model name="x" file="{}"/></asset><worldbody><attach model="x" body="{}" prefix="q"/></worldbody></mujoco>'
_mjcf("mjcf: a model of a model", _ATTACH.format("sub/b.xml", "bb"), sub__b_xml=f"<mujoco>{ASSET.format('../../secret/s.stl')}<worldbody><body name='bb'><geom type='mesh' mesh='s'/></body></worldbody></mujoco>")
_mjcf("mjcf: a model of a model with meshdir", _ATTACH.format("sub/b.xml", "bb"), sub__b_xml=f"<mujoco><compiler meshdir='SECRET'/>{ASSET.format('s.stl')}<worldbody><body name='bb'><geom type='mesh' mesh='s'/></body></worldbody></mujoco>")
_mjcf("mjcf: a model elsewhere", _ATTACH.format("../secret/s.xml", "stolen"))
_mjcf("mjcf: a soft body", '<mujoco><worldbody><body name="b"><flexcomp name="f" type="mesh" file="../secret/s.stl" dim="2" mass="1"/></body></worldbody></mujoco>')
_mjcf("mjcf: a field", '<mujoco><asset><hfield name="h" size="1 1 1 1" file="../secret/numbers.bin"/></asset></mujoco>')
_mjcf("mjcf: a cube's picture", '<mujoco><asset><texture type="cube" name="t" fileright="../secret/s.png"/></asset></mujoco>')


@reads
def mjcf_a_link(folder: Path) -> Path:
    (folder / "model" / "link.stl").symlink_to(folder / "secret" / "s.stl")
    return put(folder, a_xml=f"<mujoco>{ASSET.format('link.stl')}{GEOM}</mujoco>")


@reads
def mjcf_a_link_by_strippath(folder: Path) -> Path:
    (folder / "model" / "link.stl").symlink_to(folder / "secret" / "s.stl")
    return put(folder, a_xml=f'<mujoco><compiler strippath="true"/>{ASSET.format("sub/link.stl")}{GEOM}</mujoco>')


@reads
def urdf_a_mesh_above(folder: Path) -> Path:
    return put(folder, a_urdf=LINK.format("../secret/s.stl"))


@reads
def sdf_a_mesh_above(folder: Path) -> Path:
    return put(folder, a_sdf=MODEL.format("../secret/s.stl"))


@reads
def sdf_dots_in_a_model(folder: Path) -> Path:
    return put(folder, a_sdf=MODEL.format("model://model/../secret/s.stl"))


@reads
def urdf_the_name_of_a_folder_above(folder: Path) -> Path:
    return put(folder, a_urdf=LINK.format(f"package://{folder.name}/secret/s.stl"))


@reads
def urdf_the_name_of_the_top_folder(folder: Path) -> Path:
    first, *rest = folder.parts[1:]
    return put(folder, a_urdf=LINK.format(f"package://{'/'.join((first, *rest))}/secret/s.stl"))


@reads
def urdf_a_package_called_dots(folder: Path) -> Path:
    (folder / "package.xml").write_text("<package/>")
    (folder / "model" / "package.xml").write_text("<package/>")
    return put(folder, a_urdf=LINK.format("package://../secret/s.stl"))


@reads
def urdf_dots_in_a_package(folder: Path) -> Path:
    return put(folder, a_urdf=LINK.format("package://model/../secret/s.stl"))


@reads
def urdf_a_file_address(folder: Path) -> Path:
    return put(folder, a_urdf=LINK.format(f"file://{folder}/secret/s.stl"))


@reads
def urdf_a_mesh_that_names_another(folder: Path) -> Path:
    buffer = {"uri": "../secret/numbers.bin", "byteLength": 36}
    text = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}], "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
            "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}], "bufferViews": [{"buffer": 0, "byteLength": 36}], "buffers": [buffer]}
    return put(folder, a_urdf=LINK.format("m.gltf"), m_gltf=json.dumps(text))


@reads
def urdf_collada_with_an_entity(folder: Path) -> Path:
    text = f'<?xml version="1.0"?><!DOCTYPE COLLADA [<!ENTITY x SYSTEM "file://{folder}/secret/s.xml">]><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>&x;</asset></COLLADA>'
    return put(folder, a_urdf=LINK.format("m.dae"), m_dae=text)


@reads
def urdf_an_archive_that_unpacks_above(folder: Path) -> Path:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../secret/s.obj", "v 0 0 0\n")
    return put(folder, a_urdf=LINK.format("m.zip"), m_zip=packed.getvalue())


def _trajectory(folder: Path) -> Path:
    """A trajectory to change, from where the tests keep one."""
    path = folder / "model" / "run.h5"
    path.write_bytes((folder.parent / "run.h5").read_bytes())
    return path


def _changed(name: str, kind: dict[str, Attack], change: Callable[[object, Path], None]) -> None:
    def attack(folder: Path) -> Path:
        import h5py

        path = _trajectory(folder)
        with h5py.File(path, "r+") as file:
            change(file, folder)
        seal(path)
        return path

    kind[name] = attack


def _external_link(file, folder: Path) -> None:
    import h5py

    (folder / "secret" / "other.h5").write_bytes((folder.parent / "run.h5").read_bytes())
    del file["series/position"]
    file["series/position"] = h5py.ExternalLink(str(folder / "secret" / "other.h5"), "/series/position")


def _external_storage(file, folder: Path) -> None:
    shape = file["series/position"].shape
    del file["series/position"]
    file["series"].create_dataset("position", shape=shape, dtype="f8", external=[(str(folder / "secret" / "numbers.bin"), 0, 8 * int(np.prod(shape)))])


def _virtual(file, folder: Path) -> None:
    import h5py

    (folder / "secret" / "other.h5").write_bytes((folder.parent / "run.h5").read_bytes())
    shape = file["series/position"].shape
    layout = h5py.VirtualLayout(shape=shape, dtype="f8")
    layout[...] = h5py.VirtualSource(str(folder / "secret" / "other.h5"), "series/position", shape=shape)
    del file["series/position"]
    file["series"].create_virtual_dataset("position", layout)


def _external_group(file, folder: Path) -> None:
    import h5py

    (folder / "secret" / "other.h5").write_bytes((folder.parent / "run.h5").read_bytes())
    del file["series"]
    file["series"] = h5py.ExternalLink(str(folder / "secret" / "other.h5"), "/series")


for _name, _change in (("hdf5: a link to another file", _external_link), ("hdf5: data in another file", _external_storage), ("hdf5: a virtual dataset", _virtual), ("hdf5: a group elsewhere", _external_group)):
    _changed(_name, READS, _change)


# ---- taking all memory and time


def _text(name: str, ending: str, text: Callable[[], str | bytes], **files: Callable[[], str | bytes]) -> None:
    BOMBS[name] = lambda folder: put(folder, **{f"a_{ending}": text(), **{k: make() for k, make in files.items()}})


_text("xml: billions of laughs", "urdf", lambda: '<!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">' + "".join(f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9)) + ']><robot name="&j;"/>')
_text("xml: deep", "urdf", lambda: "<a>" * 100_000)
_text("xml: many elements", "urdf", lambda: '<robot name="a">' + "<link/>" * 2_000_000 + "</robot>")
_text("xml: a long text", "xml", lambda: "<mujoco>" + "<!--" + "x" * 60_000_000 + "--></mujoco>")
_text("mjcf: soft bodies by the million", "xml", lambda: '<mujoco><worldbody><body name="b"><flexcomp name="f" type="grid" count="300 300 300" spacing=".1 .1 .1" mass="1" dim="3"/></body></worldbody></mujoco>')
_text("mjcf: soft bodies, one side long", "xml", lambda: '<mujoco><worldbody><body name="b"><flexcomp name="f" type="grid" count="20000 20000 1" spacing=".1 .1 .1" mass="1" dim="2"/></body></worldbody></mujoco>')
_text("mjcf: a large field", "xml", lambda: '<mujoco><asset><hfield name="h" nrow="20000" ncol="20000" size="1 1 1 1"/></asset></mujoco>')
_text("mjcf: a large picture", "xml", lambda: '<mujoco><asset><texture name="t" type="cube" builtin="flat" width="20000" height="20000"/></asset></mujoco>')
_text("mjcf: many keyframes", "xml", lambda: '<mujoco><size nkey="10000000"/><worldbody>' + "<body><freejoint/><geom size='1'/></body>" * 50 + "</worldbody></mujoco>")
_text("mjcf: user data", "xml", lambda: '<mujoco><size nuser_body="9000000" nuser_geom="9000000"/><worldbody>' + "<body><freejoint/><geom size='1'/></body>" * 50 + "</worldbody></mujoco>")
_text("mjcf: stack", "xml", lambda: '<mujoco><size nstack="100000000000"/><worldbody><geom size="1"/></worldbody></mujoco>')
_text("mjcf: memory", "xml", lambda: '<mujoco><size memory="500G"/><worldbody><geom size="1"/></worldbody></mujoco>')
_text("mjcf: copies of copies", "xml", lambda: '<mujoco><worldbody><replicate count="200"><replicate count="200"><replicate count="200"><geom size="1"/></replicate></replicate></replicate></worldbody></mujoco>')
_text("mjcf: bodies in one place", "xml", lambda: "<mujoco><worldbody>" + "".join(f'<body name="b{i}"><freejoint/><geom size="0.1"/></body>' for i in range(4000)) + "</worldbody></mujoco>")
_text("mjcf: fewer bodies in one place", "xml", lambda: "<mujoco><worldbody>" + "".join(f'<body name="b{i}"><freejoint/><geom size="0.1"/></body>' for i in range(1000)) + "</worldbody></mujoco>")
_text("mjcf: a fine ball", "xml", lambda: f'<mujoco><asset><mesh name="s" builtin="sphere" params="14"/></asset>{GEOM}</mujoco>')
_text("mjcf: a fine torus", "xml", lambda: f'<mujoco><asset><mesh name="s" builtin="supertorus" params="40000 0.5 0.5 0.5"/></asset>{GEOM}</mujoco>')
_text("mjcf: a deep tree", "xml", lambda: f'<mujoco><asset><mesh name="s" file="s.stl" octree_maxdepth="20"/></asset>{GEOM}</mujoco>', s_stl=tetrahedron)
_text("urdf: bodies in one place", "urdf", lambda: "<robot name='m'>" + "".join(
    f'<link name="l{i}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial><collision name="c"><geometry><sphere radius="0.1"/></geometry></collision></link>'
    + (f'<joint name="j{i}" type="continuous"><parent link="l0"/><child link="l{i}"/></joint>' if i else "") for i in range(4000)) + "</robot>")
_text("urdf: a long chain", "urdf", lambda: "<robot name='m'>" + "".join(
    f'<link name="l{i}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    + (f'<joint name="j{i}" type="continuous"><parent link="l{i - 1}"/><child link="l{i}"/></joint>' if i else "") for i in range(30_000)) + "</robot>")


def _zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("m.stl", "w", force_zip64=True) as file:
        for _ in range(40):
            file.write(bytes(2**24))
    return packed.getvalue()


def _png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compressobj(9)
    data = b"".join(rows.compress(bytes(3 * width + 1)) for _ in range(height)) + rows.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


_text("urdf: a packed mesh", "urdf", lambda: LINK.format("m.zip"), m_zip=_zipped)
_text("urdf: a mesh packed as 3mf", "urdf", lambda: LINK.format("m.3mf"), m_3mf=_zipped)
_text("urdf: a mesh that promises much", "urdf", lambda: LINK.format("m.ply"), m_ply=lambda: "ply\nformat binary_little_endian 1.0\nelement vertex 4000000000\nproperty float x\nproperty float y\nproperty float z\nelement face 0\nproperty list uchar int vertex_indices\nend_header\n")
_text("urdf: an OFF that promises much", "urdf", lambda: LINK.format("m.off"), m_off=lambda: "OFF\n4000000000 1 0\n0 0 0\n")
_text("sdf: bodies in one place", "sdf", lambda: "<sdf><model name='m'>" + "".join(
    f"<link name='l{k}'><collision name='c'><geometry><sphere><radius>1</radius></sphere></geometry></collision></link>" for k in range(4000)) + "</model></sdf>")
_text("sdf: frames in a row", "sdf", lambda: "<sdf><model name='m'><link name='l0'/>" + "".join(
    f"<frame name='f{k}'><pose relative_to='f{k + 1}'>0 0 0 0 0 0</pose></frame>" for k in range(100_000)) + "</model></sdf>")
_text("urdf: a large text mesh", "urdf", lambda: LINK.format("m.obj"), m_obj=lambda: "v 0 0 0\nv 1 0 0\nv 0 1 0\n" + "f 1 2 3\n" * 10_000_000)
_text("urdf: collada of laughs", "urdf", lambda: LINK.format("m.dae"), m_dae=lambda: '<!DOCTYPE COLLADA [<!ENTITY a "aaaaaaaaaa">' + "".join(f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9)) + "]><COLLADA>&j;</COLLADA>")
_text("mjcf: a large PNG", "xml", lambda: '<mujoco><asset><texture name="t" type="2d" file="t.png"/></asset></mujoco>', t_png=lambda: _png(30_000, 1_000))


@bomb
def urdf_a_glb_that_promises_much(folder: Path) -> Path:
    text = json.dumps({
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}], "accessors": [{"componentType": 5126, "count": 2_000_000_000, "type": "VEC3"}], "buffers": [{"byteLength": 0}],
    }).encode()
    text += b" " * (-len(text) % 4)
    data = struct.pack("<4sII", b"glTF", 2, 12 + 8 + len(text)) + struct.pack("<I4s", len(text), b"JSON") + text
    return put(folder, a_urdf=LINK.format("m.glb"), m_glb=data)


_text("toml: a dotted key", "toml", lambda: "a." * 500_000 + "a = 1\n")
_text("toml: a dotted key in quotes", "toml", lambda: '"a" . ' * 300_000 + "a = 1\n")
_text("toml: dotted in a table", "toml", lambda: "x = {" + "a." * 500_000 + "a = 1}\n")
_text("toml: a dotted heading", "toml", lambda: "[" + "a." * 500_000 + "a]\n")
_text("toml: deep lists", "toml", lambda: "a = " + "[" * 100_000)
_text("json: deep lists", "json", lambda: "[" * 1_000_000)
_text("json: many numbers", "json", lambda: '{"format": 1, "x": [' + "0," * 20_000_000 + "0]}")
_text("json: a large number", "json", lambda: '{"format": ' + "9" * 5_000_000 + "}")


def _model(**more: object) -> str:
    inertia = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    body = {"name": "b", "mass": 1.0, "inertia": inertia, "position": [0, 0, 0], "orientation": [1, 0, 0, 0]}
    return json.dumps({"format": 1, "name": "m", "gravity": [0, 0, 0], "bodies": [body | more]})


def _on_ball(count: int) -> list[list[float]]:
    points = np.random.default_rng(1).normal(size=(count, 3))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).tolist()


_text("json: a hull of very many corners", "json", lambda: _model(shape={"type": "Convex", "points": _on_ball(50_000), "mass": 1.0}))
_text("json: a hull of many corners", "json", lambda: _model(shape={"type": "Convex", "points": _on_ball(20_000), "mass": 1.0}))


def _huge(file, folder: Path) -> None:
    del file["series/position"]
    file["series"].create_dataset("position", shape=(10**9, 1000, 1), dtype="f8", chunks=(1000, 1000, 1))


def _packed(file, folder: Path) -> None:
    del file["series/force"]
    file["series"].create_dataset("force", data=np.zeros((2**20, 75)), compression="gzip")


def _large_model(file, folder: Path) -> None:
    del file["model"]
    file.create_dataset("model", shape=(2**33,), dtype="u1", chunks=(2**20,), compression="gzip")


for _name, _change in (("hdf5: 8 TB", _huge), ("hdf5: zeros", _packed), ("hdf5: a large model", _large_model)):
    _changed(_name, BOMBS, _change)


@bomb
def hdf5_a_file_with_holes(folder: Path) -> Path:
    import h5py

    path = _trajectory(folder)
    with h5py.File(path, "r+") as file:
        del file["series/position"]
        made = file.create_dataset("series/position", shape=(10**8, 10, 3), dtype="f8", fillvalue=None)
        made[-1] = 1.0  # room is taken in the file, but not on the disk
    return path


@bomb
def state_that_promises_much(folder: Path) -> Path:
    path, header = folder / "model" / "a.npz", io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("kind", "clock", "numbers", "inputs"):
            archive.writestr(f"{name}.npy", header.getvalue())
    return path


@bomb
def state_of_zeros(folder: Path) -> Path:
    path = folder / "model" / "a.npz"
    np.savez_compressed(path, kind=np.array("x"), clock=np.array([0.0, 1.0, 0.1]), numbers=np.zeros(75_000_000), inputs=np.zeros(1))
    return path


@bomb
def state_that_is_a_pickle(folder: Path) -> Path:
    path = folder / "model" / "a.npz"
    np.savez(path, kind=np.array("x"), clock=np.array([0.0, 1.0, 0.1]), numbers=np.array([print, 1], dtype=object), inputs=np.zeros(1))
    return path


for _name in ("hdf5: zeros", "state of zeros", "urdf: a packed mesh", "urdf: a mesh packed as 3mf", "urdf: a large text mesh", "mjcf: a large PNG"):
    BOMBS[_name] = BOMBS.pop(_name)  # last: they take seconds to be made
#: those that do not
QUICK = len(READS) + len(BOMBS) - 6
