"""What touches at a pose, as rows: contacts, ends of joint directions and dry friction, for steps that are solved outside of kernels."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dalembert.contact.build import GroundList, build_limits
from dalembert.contact.geometry import at_knot
from dalembert.contact.impacts import NUMBERS
from dalembert.contact.narrow import find_features
from dalembert.contact.nodes import limit_at_knot
from dalembert.contact.records import CONTACT, Scene
from dalembert.contact.shapes import PairList
from dalembert.linalg.compact import no_room
from dalembert.mechanism.touching import Touching
from dalembert.model.placement import Placement


class Rows(NamedTuple):
    """Rows over the velocities of all bodies, (n, 6) each: linear (world) and angular (body frame)."""

    gap: np.ndarray  # (c,) m or rad, of contacts and then of ends of joint directions
    normal: np.ndarray  # (c, n, 6) their rates
    tangent: np.ndarray  # (c, 2, n, 6) zero where there is no friction across
    friction: np.ndarray  # (c,)
    restitution: np.ndarray  # (c,)
    dry: np.ndarray  # (d, n, 6) rates of the directions with dry friction
    dry_bound: np.ndarray  # (d,) N or N m; zero for bearings
    dry_record: np.ndarray  # (d,) index of each direction among the limits
    label: list[str]  # (c,) who touches


class Encounters:
    """Finds what touches, or may within ``reach`` (m or rad), at the poses of a placement."""

    def __init__(self, placement: Placement) -> None:
        mechanism = placement.mechanism
        self.placement, self.labels = placement, list[str]()
        touching = Touching(mechanism)
        self.grounds = GroundList(mechanism, touching, 0, self.labels)
        self.pairs = PairList(touching, self.grounds.weights, 0)
        self.limits = build_limits(placement)
        terrain = mechanism.terrains[0] if mechanism.terrains else None
        heights = terrain.heights if terrain else np.zeros((2, 2))
        frame = np.concatenate([terrain.origin, terrain.spacing]) if terrain else np.array([0.0, 0.0, 1.0, 1.0])
        count = placement.sizes[0]
        self.scene = Scene(np.zeros(0, CONTACT), np.zeros(0, CONTACT), self.limits, heights, frame, self.pairs.shapes, np.zeros(6), np.zeros(count), np.zeros((NUMBERS, count)), no_room())

    def rows(self, reach: float) -> Rows:
        """What is nearer than ``reach`` at the placement's pose."""
        bodies, count = self.placement.work.bodies, self.placement.sizes[0]
        contacts = self._contacts(reach)
        near = [c for c in contacts if c["gap0"] < reach]
        ends = self._ends(reach)
        total = len(near) + len(ends)
        gap, normal, tangent = np.zeros(total), np.zeros((total, count + 1, 6)), np.zeros((total, 2, count + 1, 6))
        friction, restitution = np.zeros(total), np.zeros(total)
        for k, contact in enumerate(near):
            gap[k], friction[k], restitution[k] = contact["gap0"], contact["friction"], contact["restitution"]
            for body, G in ((contact["a"], contact["Ga"]), (contact["b"], contact["Gb"])):
                normal[k, body] += G[0]
                tangent[k, :, body] += G[1:]
        for k, (room, row, bounce, _) in enumerate(ends, len(near)):
            gap[k], normal[k], restitution[k] = room, row, bounce
        dry = np.flatnonzero((self.limits["friction"] > 0.0) | (self.limits["bears"] != 0))
        rows = np.array([self._row(self.limits[k]) for k in dry]).reshape(-1, count + 1, 6)
        label = [self.labels[int(c["owner"])] for c in near] + [name for *_, name in ends]
        assert len(bodies) == count + 1
        return Rows(
            gap, normal[:, :-1], tangent[:, :, :-1], friction, restitution, rows[:, :-1], self.limits["friction"][dry], dry, label,
        )

    def _contacts(self, reach: float) -> np.ndarray:
        """Records of the contacts that may be near, with gap and rows at the pose."""
        bodies = self.placement.work.bodies
        rooms = np.full((len(bodies) - 1, 1), reach)
        places = np.hstack([bodies["x"][:-1], bodies["q"][:-1], rooms])
        standing = self.grounds.contacts[self.grounds.near(places)]
        slots, shapes = self.pairs.build(self.pairs.near(places), len(standing), self.labels)
        contacts = np.concatenate([standing, slots])
        scene = self.scene._replace(contacts=contacts, shapes=shapes)
        if len(shapes.pairs):
            find_features(bodies, contacts, shapes, reach)
        contacts = contacts[contacts["used"] != 0]
        for k in range(len(contacts)):
            at_knot(contacts[k], scene, bodies)
        return contacts

    def _ends(self, reach: float) -> list[tuple[float, np.ndarray, float, str]]:
        """Room, row, restitution and name of the ends of joint directions that are near; notes the rows of all directions."""
        placement, found = self.placement, []
        for k in range(len(self.limits)):
            limit = self.limits[k]
            joint, at = placement.model.joints[limit["joint"]], placement.work.joints[limit["joint"]]
            limit_at_knot(limit, joint, at, placement.work.bodies, self.scene.scratch)
            name = placement.mechanism.joints[int(limit["joint"])].name
            for sign, end in ((1.0, limit["end"][0]), (-1.0, limit["end"][1])):
                room = sign * (float(limit["c0"]) - end)
                if room < reach:
                    found.append((room, sign * self._row(limit), float(limit["restitution"]), f"limit of {name!r}"))
        return found

    def _row(self, limit: np.void) -> np.ndarray:
        row = np.zeros((self.placement.sizes[0] + 1, 6))
        row[limit["a"]] += limit["Ga"]
        row[limit["b"]] += limit["Gb"]
        return row
