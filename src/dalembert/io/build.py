"""How the links of a robot become a mechanism.

A file's link may have no mass, or hang on several joints in a row; a body of a mechanism has mass and hangs on one joint at a
time. Links without mass merge with their neighbours, and so does a fixed link whose inertia could not turn by itself. Between
joints in a row there are light bodies (see ``chains``).
"""
from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from dalembert.errors import ModelError
from dalembert.io.chains import Light, moved, split
from dalembert.io.robot import Drawing, Link, LinkJoint, Robot, Touch, fresh
from dalembert.mechanism.joints import Fixed
from dalembert.mechanism.mechanism import Body, Mechanism
from dalembert.mechanism.shapes import check_inertia

#: smallest moment of inertia, relative to the largest one, that a body can have
THIN = 1e-10


def build(robot: Robot, *, merge_fixed: bool = False) -> Mechanism:
    """The mechanism of a robot. ``merge_fixed``: links fixed to another become part of it."""
    links = _merge(robot, merge_fixed)
    mechanism = Mechanism(robot.name or "robot", gravity=robot.gravity)
    for link in links.values():
        link.inertia = _regular(link, robot)
        _check(link, robot)
    lights = split(links, robot)
    bodies: dict[int, Body] = {-1: mechanism.world}
    taken = {"world"} | {link.name for link in links.values()}
    for index, link in links.items():
        bodies[index] = _add_link(mechanism, robot, link, lights.get(index, []), bodies[link.parent], taken)
    _draw(mechanism, mechanism.world, robot.drawings)
    for index, link in links.items():
        _draw(mechanism, bodies[index], link.drawings)
    taken |= set(mechanism._names)
    for touch in robot.touches:
        _stand(mechanism, robot, touch, taken)
    for index, link in links.items():
        _touch(mechanism, robot, bodies[index], link.touches, taken)
    for a, b in _neighbours(links):
        mechanism.contact_pair(bodies[a], bodies[b], collide=False)
    mechanism.report.extend(robot.report)
    return mechanism


def _merge(robot: Robot, merge_fixed: bool) -> dict[int, Link]:
    """Links that become bodies, by index: no massless ones, and no fixed ones if they shall be merged."""
    links = dict(enumerate(robot.links))
    below: dict[int, set[int]] = {}
    for i, link in links.items():
        below.setdefault(link.parent, set()).add(i)
    heavy = {i: link.mass > 0.0 for i, link in links.items()}
    for i in reversed(list(links)):  # a subtree without any mass goes
        link = links[i]
        if not heavy[i] and not below.get(i) and not link.fixed:
            robot.report.append(f"link {link.name!r} has no mass and carries none: it is left out with its joints ({', '.join(j.name for j in link.joints)})")
            del links[i]
            below[link.parent].discard(i)
    for i in list(links):
        link = links[i]
        children = sorted(below.get(i, ()))
        thin = link.parent >= 0 and (_singular(link.inertia) or _singular(links[link.parent].inertia))
        fixed = [j for j in children if links[j].fixed]
        if link.floating and not link.joints and not heavy[i] and fixed:
            _hand_over(robot, links, below, i, fixed[0])
        elif link.fixed and (not heavy[i] or (merge_fixed and link.parent >= 0) or thin):
            _absorb(robot, links, below, i)
        elif not heavy[i] and len(children) == 1 and not links[children[0]].floating:
            child = links[children[0]]
            child.joints = [*link.joints, *child.joints]
            child.floating = link.floating
            _move(links, below, i, link.parent)
            child.drawings += link.drawings
            if link.touches:
                robot.report.append(f"link {link.name!r} has no mass of its own: what it would touch is left out ({', '.join(t.name for t in link.touches)})")
            robot.carriers[link.name] = child.name
            del links[i]
            below[link.parent].discard(i)
        elif not heavy[i]:
            raise ModelError(f"link {link.name!r} has no mass, but moves and carries {len(children)} links: give it an <inertial>")
    return _parents_first(links)


def _move(links: dict[int, Link], below: dict[int, set[int]], old: int, new: int) -> None:
    """Hang all that hangs on a link on another one."""
    for j in below.pop(old, set()):
        links[j].parent = new
        below.setdefault(new, set()).add(j)


def _parents_first(links: dict[int, Link]) -> dict[int, Link]:
    ordered: dict[int, Link] = {}
    for i in links:
        way = [i]
        while links[way[-1]].parent >= 0 and links[way[-1]].parent not in ordered:
            way.append(links[way[-1]].parent)
        ordered |= {k: links[k] for k in reversed(way) if k not in ordered}
    return ordered


def _hand_over(robot: Robot, links: dict[int, Link], below: dict[int, set[int]], i: int, heir: int) -> None:
    """Make a floating link without mass part of one that is fixed to it, which floats in its place."""
    link, other = links.pop(i), links[heir]
    below[link.parent].discard(i)
    below[i].discard(heir)
    _move(links, below, i, heir)
    other.parent, other.floating, other.velocity = -1, True, link.velocity
    below.setdefault(-1, set()).add(heir)
    other.drawings += link.drawings
    other.touches += link.touches
    robot.carriers[link.name] = other.name


def _absorb(robot: Robot, links: dict[int, Link], below: dict[int, set[int]], i: int) -> None:
    """Make a fixed link part of its parent (or of the world)."""
    link = links.pop(i)
    below[link.parent].discard(i)
    _move(links, below, i, link.parent)
    if link.parent < 0:
        robot.drawings += link.drawings
        robot.touches += link.touches
        robot.carriers[link.name] = "world"
        return
    parent = links[link.parent]
    parent.drawings += link.drawings
    parent.touches += link.touches
    robot.carriers[link.name] = parent.name
    if link.mass > 0.0:
        mass = parent.mass + link.mass
        center = (parent.mass * parent.center + link.mass * link.center) / mass
        turn = (parent.rotation.inv() * link.rotation).as_matrix()
        offsets = [moved(p.mass, parent.rotation.inv().apply(p.center - center)) for p in (parent, link)]
        parent.inertia = parent.inertia + offsets[0] + turn @ link.inertia @ turn.T + offsets[1]
        parent.mass, parent.center = mass, center


def _singular(inertia: np.ndarray) -> bool:
    moments = np.linalg.eigvalsh(0.5 * (inertia + inertia.T))
    return bool(moments[0] <= THIN * np.abs(moments).max())


def _add_link(mechanism: Mechanism, robot: Robot, link: Link, lights: list[Light], parent: Body, taken: set[str]) -> Body:
    """A link's body, its joints and the light bodies between them."""
    name = link.name if link.name not in mechanism else fresh(link.name, taken, "link")
    quaternion = link.rotation.as_quat(scalar_first=True)
    between = []
    for joint, light in zip(link.joints, lights):
        title = fresh(f"{name} after {joint.name}", taken, "light")
        between.append(mechanism._append_body(title, light.mass, _symmetric(light.inertia), light.position, quaternion, None))
        mechanism.visuals[title] = []
        for giver, share in light.givers.items():
            robot.masses.setdefault(giver, {})[title] = share
    body = mechanism._append_body(name, link.mass, _symmetric(link.inertia), link.center, quaternion, None)
    robot.carriers[link.name] = name
    robot.masses.setdefault(link.name, {})[name] = link.mass
    for joint, (above, below) in zip(link.joints, zip([parent, *between], [*between, body])):
        robot.joints[joint.name] = fresh(joint.name, taken, "joint")
        mechanism.joint(robot.joints[joint.name], joint.type(), above, below, at=joint.anchor)
        _start(mechanism, robot, joint)
    if link.fixed:
        mechanism.joint(fresh(link.fixing or f"{name} fixed", taken, "joint"), Fixed(), parent, body, at=link.origin)
    if link.floating and link.velocity is not None:
        spin = link.rotation.apply(link.velocity[3:])
        mechanism.start(name, linear=link.velocity[:3] + np.cross(spin, link.center - link.origin), angular=link.velocity[3:])
    return body


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return 0.5 * (matrix + matrix.T)


def _start(mechanism: Mechanism, robot: Robot, joint: LinkJoint) -> None:
    """Where a joint starts: as the file says, but within its limits."""
    name, value = robot.joints[joint.name], joint.start
    if joint.limits is not None:
        wish = 0.0 if value is None else float(np.asarray(value))
        inside = float(np.clip(wish, *joint.limits))
        if inside != wish:
            robot.report.append(f"joint {name!r} starts within its limits, at {inside:.6g} or beyond, and not at {wish:.6g}")
            value = None if value is None else inside
    if value is not None or joint.rate is not None:
        mechanism.start(name, value, rate=joint.rate)


def _regular(link: Link, robot: Robot) -> np.ndarray:
    """The inertia of a link, made positive definite by a little on the diagonal where it is not."""
    if not np.isfinite(link.inertia).all() or not _singular(link.inertia):
        return link.inertia
    moments = np.linalg.eigvalsh(0.5 * (link.inertia + link.inertia.T))
    added = max(THIN * float(np.abs(moments).max()), 1e-12 * link.mass) - min(float(moments[0]), 0.0)
    robot.report.append(f"link {link.name!r}: its inertia has the moment {moments[0]:.3g} kg m^2; {added:.3g} was added on the diagonal")
    return link.inertia + added * np.eye(3)


def _check(link: Link, robot: Robot) -> None:
    """An inertia that no real body has is kept, with a line in the report, as long as motion follows from it."""
    inertia = _symmetric(link.inertia)
    try:
        check_inertia(inertia, link.name)
    except ModelError as error:
        if not np.isfinite(inertia).all() or np.linalg.eigvalsh(inertia)[0] <= 0.0:
            raise
        if "no real body" in str(error):
            moments = ", ".join(f"{m:.6g}" for m in np.linalg.eigvalsh(inertia))
            robot.report.append(f"link {link.name!r}: its principal moments {moments} kg m^2 belong to no real body; they are taken as they are")


def _draw(mechanism: Mechanism, body: Body, drawings: list[Drawing]) -> None:
    turn = Rotation.from_quat(body.orientation, scalar_first=True).inv()
    for drawing in drawings:
        mechanism.visual(
            body, drawing.geometry, position=turn.apply(drawing.position - body.position),
            orientation=(turn * drawing.rotation).as_quat(scalar_first=True), colour=drawing.colour,
        )
    if body is not mechanism.world:
        mechanism.visuals.setdefault(body.name, [])


def _touch(mechanism: Mechanism, robot: Robot, body: Body, touches: list[Touch], taken: set[str]) -> None:
    """The colliders of a body."""
    turn = Rotation.from_quat(body.orientation, scalar_first=True).inv()
    for touch in touches:
        name = robot.colliders[touch.name] = fresh(touch.name, taken, "collider")
        mechanism.collider(
            name, body, touch.shape, position=turn.apply(touch.position - body.position),
            orientation=(turn * touch.rotation).as_quat(scalar_first=True), friction=touch.friction, restitution=touch.restitution,
            layer=touch.layer, mask=touch.mask,
        )


def _stand(mechanism: Mechanism, robot: Robot, touch: Touch, taken: set[str]) -> None:
    """An obstacle."""
    name = robot.colliders[touch.name] = fresh(touch.name, taken, "obstacle")
    given = dict(friction=touch.friction, restitution=touch.restitution)
    mechanism.obstacle(
        name, touch.shape, position=touch.position, orientation=touch.rotation.as_quat(scalar_first=True),
        layer=touch.layer, mask=touch.mask, **{k: v for k, v in given.items() if v is not None},
    )


def _neighbours(links: dict[int, Link]) -> list[tuple[int, int]]:
    """Links that touch and are neighbours but for light bodies between them: they do not collide, as if one joint joined them."""
    root: dict[int, int] = {-1: -1}
    for index, link in links.items():  # of links fixed to one another, the one nearest to the world
        root[index] = root[link.parent] if link.fixed and link.parent >= 0 else index
    group: dict[int, list[int]] = {r: [] for r in root.values()}
    for index, link in links.items():
        if link.touches:
            group[root[index]].append(index)
    chains = [(root[link.parent], index) for index, link in links.items() if len(link.joints) > 1 and link.parent >= 0]
    return [(a, b) for above, below in chains for a in group[above] for b in group[below]]
