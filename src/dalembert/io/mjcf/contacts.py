"""What touches in an MJCF model: geoms as colliders, obstacles, grounds or terrain, and what is said about pairs of them."""
from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from dalembert.errors import ModelError
from dalembert.io.budget import PER_OVERLAP
from dalembert.io.hulls import touching_shape
from dalembert.io.mjcf.geoms import kind, mesh, pose, primitive
from dalembert.io.mjcf.source import Source, listed, softened
from dalembert.io.robot import Touch, fresh
from dalembert.mechanism.shapes import Ellipsoid, Shape
from dalembert.mechanism.touching import Touching

#: depth (m) at which shapes of a robot that overlap at the start are kept from colliding
OVERLAP = 1e-7
#: bits of contype and of conaffinity
BITS = 32


def touching(source: Source) -> list[int]:
    """The geoms that may touch something."""
    model = source.model
    if not source.options.contacts or source.disabled("CONTACT", "CONSTRAINT"):
        return []
    paired = {int(g) for g in (*model.pair_geom1, *model.pair_geom2)}
    return [g for g in range(model.ngeom) if model.geom_contype[g] or model.geom_conaffinity[g] or g in paired]


def count_pairs(source: Source) -> None:
    """Spend what the pairs of geoms that may touch will take."""
    count = len(touching(source))
    source.meter.elements(0.5 * count * (count - 1), f"pairs of {count} shapes that may touch")


def still(source: Source, g: int) -> bool:
    """True when a geom belongs to the environment."""
    return int(source.model.body_weldid[source.model.geom_bodyid[g]]) == 0


def bits(source: Source, g: int) -> dict[str, int]:
    """Layer and mask of a geom: contype and conaffinity, or such ones that no two geoms of bodies meet."""
    kind_, affinity = (int(v[g]) & (2**BITS - 1) for v in (source.model.geom_contype, source.model.geom_conaffinity))
    if source.options.self_collisions is not False:
        return dict(layer=kind_, mask=affinity)
    if still(source, g):
        return dict(layer=0, mask=kind_ << BITS | affinity)
    return dict(layer=affinity << BITS | kind_, mask=0)


def friction(source: Source, g: int) -> float:
    """Coulomb's coefficient of a geom by itself; a contact of dimension 1 has none."""
    return 0.0 if source.model.geom_condim[g] == 1 else float(source.model.geom_friction[g, 0])


def read_touches(source: Source) -> None:
    """Geoms with a shape, on links or in the world."""
    taken: set[str] = set()
    for g in touching(source):
        named = source.mj.mj_id2name(source.model, source.mj.mjtObj.mjOBJ_GEOM, g)
        body = int(source.model.geom_bodyid[g])
        name = source.named[g] = fresh(named or f"{source.name('body', body)} {kind(source, g)}", taken, "geom")
        if kind(source, g) in ("plane", "hfield"):
            continue
        shape = _shape(source, g, name)
        if shape is None:
            continue
        position, rotation = pose(source, g)
        touch = Touch(name, shape, position + rotation.apply(shape.center_of_mass), rotation, friction(source, g), **bits(source, g))
        (source.robot.touches if still(source, g) else source.robot.links[body - 1].touches).append(touch)


def _shape(source: Source, g: int, name: str) -> Shape | None:
    if kind(source, g) == "mesh":
        return touching_shape(mesh(source, g), source.options.decompose, source.meter, f"geom {name!r}", source.report)
    shape = primitive(source, g)
    if shape is None:
        source.report.append(f"geom {name!r} is of the kind {kind(source, g)}: its contacts are not simulated")
    return shape


def add_environment(source: Source) -> None:
    """Planes become grounds, a height field the terrain; colliders and obstacles are there already."""
    for g in touching(source):
        name = source.named[g]
        if kind(source, g) == "plane":
            position, rotation = pose(source, g)
            normal = rotation.apply((0.0, 0.0, 1.0))
            ground = source.mechanism.ground(
                normal=normal, offset=float(normal @ position), friction=friction(source, g), name=source.free_name(name), **bits(source, g))
            source.elements[g] = ground.name
        elif kind(source, g) == "hfield":
            _add_terrain(source, g, name)
        elif name in source.robot.colliders:
            source.elements[g] = source.robot.colliders[name]
    _report(source, list(source.elements))


def _add_terrain(source: Source, g: int, name: str) -> None:
    model, (position, rotation), index = source.model, pose(source, g), int(source.model.geom_dataid[g])
    if rotation.magnitude() > 1e-9 or source.mechanism.terrains:
        source.report.append(f"geom {name!r}: a height field that is turned, or a second one, is not simulated")
        return
    rows, columns, first = int(model.hfield_nrow[index]), int(model.hfield_ncol[index]), int(model.hfield_adr[index])
    half_x, half_y, top, _ = model.hfield_size[index]
    data = np.array(model.hfield_data[first : first + rows * columns]).reshape(rows, columns).T
    field = source.mechanism.height_field(
        position[2] + top * data, origin=position[:2] - (half_x, half_y), spacing=(2 * half_x / (columns - 1), 2 * half_y / (rows - 1)),
        friction=friction(source, g), name=source.free_name(name), **bits(source, g))
    source.elements[g] = field.name
    source.report.append(f"geom {name!r}: its height field is smooth between its points and goes on beyond its rim; balls, ends and corners touch it")
    for collider in source.mechanism.colliders:
        if isinstance(collider.shape, Ellipsoid):
            source.mechanism.contact_pair(collider, field, collide=False)
            source.report.append(f"geom {collider.name!r}: an ellipsoid does not touch the height field {name!r}")


def _report(source: Source, geoms: list[int]) -> None:
    """What is said about contacts and has no use here, since they are rigid."""
    model = source.model

    def names(chosen: list[int]) -> str:
        return listed([source.named[g] for g in chosen])

    for lines, chosen in (
        ("contacts are rigid: solref and solimp are not used, of", [g for g in geoms if softened(model.geom_solref[g], model.geom_solimp[g])]),
        ("contacts begin where surfaces meet: margin and gap are not used, of", [g for g in geoms if model.geom_margin[g] or model.geom_gap[g]]),
        ("surfaces that stick or move by themselves are not simulated, of", [g for g in geoms if source.extra("geom_adhesion", g) or source.extra("geom_surfacevel", g)]),
    ):
        if chosen:
            source.report.append(f"{lines} {names(chosen)}")


def add_pairs(source: Source) -> None:
    """Pairs that the file declares or excludes, pairs whose friction is not the larger one of the two, overlaps at the start."""
    model, mechanism = source.model, source.mechanism
    for k in range(model.nexclude if source.elements else 0):
        for names in product(*(_elements(source, b) for b in divmod(int(model.exclude_signature[k]), 2**16))):
            if names[0] != names[1]:
                mechanism.contact_pair(*names, collide=False)
    _leave_level(source)
    _correct_friction(source)
    _part(source)
    for name, one, two in source.ties:
        ends = [[c for c in mechanism.colliders if c.body.name == body] for body in (one, two)]
        if any(a.layer & b.mask or b.layer & a.mask for a, b in product(*ends)):
            source.report.append(f"{one!r} and {two!r}, which {name!r} ties, do not collide")
    for k in range(model.npair):
        _declare(source, k)


def _leave_level(source: Source) -> None:
    """Let bodies pass along planes that their joints keep them level with: what carries them, joint or plane, nothing tells."""
    model, mechanism = source.model, source.mechanism
    if not source.elements:
        return
    for g in (g for g in source.elements if kind(source, g) == "plane" and still(source, g)):
        normal = pose(source, g)[1].apply((0.0, 0.0, 1.0))
        level = [b for b in range(1, model.nbody) if model.body_weldid[b] and any(name in mechanism for name in _elements(source, b)) and _stays_level(source, b, normal)]
        touching_here = {int(model.geom_bodyid[other]) for other in source.elements}
        for b in (b for b in level if b in touching_here):
            mechanism.contact_pair(source.body(b), source.elements[g], collide=False)
            source.report.append(f"{source.body(b)!r} and {source.elements[g]!r} do not collide: joints keep them at one distance")


def _stays_level(source: Source, b: int, normal: np.ndarray) -> bool:
    """Whether all joints from the world to a body slide along a plane or turn about its normal."""
    model, mj = source.model, source.mj
    while b > 0:
        for j in range(int(model.body_jntadr[b]), int(model.body_jntadr[b]) + int(model.body_jntnum[b])):
            along = float(abs(source.data.xaxis[j] @ normal))
            slides = model.jnt_type[j] == mj.mjtJoint.mjJNT_SLIDE and along < 1e-9
            turns = model.jnt_type[j] == mj.mjtJoint.mjJNT_HINGE and along > 1.0 - 1e-9
            if not (slides or turns):
                return False
        b = int(model.body_parentid[b])
    return True


def _elements(source: Source, b: int) -> list[str]:
    """The elements of the mechanism that one of the file's bodies means: the body itself, or what stands still of it."""
    if source.model.body_weldid[b]:
        return [source.body(b)]
    return [name for g, name in source.elements.items() if source.model.geom_bodyid[g] == b]


def _correct_friction(source: Source) -> None:
    """Say the coefficients of pairs that touch by others than the larger one of the two, or resist spinning and rolling."""
    state = Touching(source.mechanism)
    surfaces = {surface.names[0]: surface for surface in (*state.moving, *state.obstacles, *state.around)}
    for a, b in _unusual(source):
        law = state.law(surfaces[source.elements[a]], surfaces[source.elements[b]])
        sizes = _pair_friction(source, a, b)
        if law is not None and sizes != (law.friction, 0.0, 0.0):
            source.mechanism.contact_pair(source.elements[a], source.elements[b], **_coefficients(sizes))


def _unusual(source: Source) -> list[tuple[int, int]]:
    """Pairs of geoms whose friction may not be the larger one of the two, or not of sliding alone."""
    geoms = np.array(list(source.elements), dtype=int)
    priority, condim, own = source.model.geom_priority[geoms], source.model.geom_condim[geoms], source.model.geom_friction[geoms, 0]
    pairs = []
    for k in range(len(geoms)):
        same = (np.minimum(condim[k + 1 :], condim[k]) > 1) & (np.maximum(condim[k + 1 :], condim[k]) <= 3) & ((priority[k + 1 :] == priority[k]) | (own[k + 1 :] == own[k]))
        pairs += [(int(geoms[k]), int(geoms[k + 1 + other])) for other in np.flatnonzero(~same)]
    return pairs


def _pair_friction(source: Source, a: int, b: int) -> tuple[float, float, float]:
    """Coefficients of sliding, spinning and rolling (m) by MuJoCo's rule: the geom of higher priority decides, or else the larger ones count."""
    model, geoms = source.model, [a, b]
    priority = model.geom_priority[geoms]
    if priority[0] != priority[1]:
        geoms = [geoms[int(np.argmax(priority))]]
    return _resists(int(model.geom_condim[geoms].max()), *model.geom_friction[geoms].max(axis=0))


def _resists(condim: int, sliding: float, spinning: float, rolling: float) -> tuple[float, float, float]:
    """What is left of coefficients in a contact of so many dimensions: none in one, sliding in three, spinning too in four, all in six."""
    return float(sliding) if condim > 1 else 0.0, float(spinning) if condim > 3 else 0.0, float(rolling) if condim > 4 else 0.0


def _coefficients(sizes: tuple[float, float, float]) -> dict[str, Any]:
    """As a pair takes them: what does not resist is left out."""
    sliding, spinning, rolling = sizes
    return dict(friction=sliding) | {name: size for name, size in (("spin_friction", spinning), ("rolling_friction", rolling)) if size > 0.0}


def _declare(source: Source, k: int) -> None:
    """A <pair>, whatever the bits and joints of its geoms say."""
    model = source.model
    a, b = int(model.pair_geom1[k]), int(model.pair_geom2[k])
    name = f"{source.name('geom', a)} and {source.name('geom', b)}"
    if a not in source.elements or b not in source.elements or (still(source, a) and still(source, b)):
        if source.options.contacts:
            source.report.append(f"the contact pair of {name} is not simulated")
        return
    sizes = model.pair_friction[k]
    condim = int(model.pair_dim[k])
    if (condim > 1 and sizes[0] != sizes[1]) or (condim > 4 and sizes[3] != sizes[4]):
        source.report.append(f"the contact pair of {name}: its friction is the same all around, with the first coefficients of sliding and rolling, {sizes[0]:g} and {sizes[3]:g} m")
    if softened(model.pair_solref[k], model.pair_solimp[k]) or model.pair_margin[k] or model.pair_gap[k]:
        source.report.append(f"the contact pair of {name} is rigid: its solref, solimp, margin and gap are not used")
    try:
        source.mechanism.contact_pair(source.elements[a], source.elements[b], **_coefficients(_resists(condim, sizes[0], sizes[2], sizes[3])))
    except ModelError as error:
        source.report.append(f"the contact pair of {name} is not simulated: {error}")


def _part(source: Source) -> None:
    """Keep shapes of the robot itself that overlap at the start from colliding: rigid ones would have to be moved apart first."""
    if not source.elements or source.options.self_collisions is False:
        return
    mj, model = source.mj, source.model
    data = mj.MjData(model)
    data.qpos[:] = source.start_qpos
    for j, joint in source.joints.items():
        if joint.limits is not None:
            q = int(model.jnt_qposadr[j])
            data.qpos[q] = np.clip(data.qpos[q], *(np.array(joint.limits) + model.qpos0[q]))
    mj.mj_kinematics(model, data)
    mj.mj_comPos(model, data)
    mj.mj_collision(model, data)
    source.meter.look_at_clock()
    moving = np.zeros(model.ngeom, dtype=bool)
    moving[[g for g in source.elements if not still(source, g)]] = True
    geoms, distance = data.contact.geom, data.contact.dist
    deep = (distance < -OVERLAP) & (geoms >= 0).all(axis=1) & moving[geoms].all(axis=1)
    geoms, distance = geoms[deep].astype(np.int64), distance[deep]
    _, first, pair = np.unique(geoms[:, 0] * model.ngeom + geoms[:, 1], return_index=True, return_inverse=True)
    source.meter.elements(PER_OVERLAP * len(first), f"{len(first)} pairs of shapes that overlap at the start")  # before anything is done for each
    least = np.zeros(len(first))
    np.minimum.at(least, pair, distance)
    for k in np.argsort(first):
        a, b = map(int, geoms[first[k]])
        source.mechanism.contact_pair(source.elements[a], source.elements[b], collide=False)
        source.report.append(f"geoms {source.named[a]!r} and {source.named[b]!r} overlap by {-least[k]:.3g} m at the start: they do not collide")
