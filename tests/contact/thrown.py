"""Pairs of bodies thrown at each other, and what an oracle says of their run."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from convex_oracle import KINDS, Placed, by_coal, half_thickness, least_distance, random_shape
from scipy.spatial.transform import Rotation

import dalembert as da

#: kinds of the throws that tests name by their numbers
NUMBERED = tuple(kind for kind in KINDS if kind != "cone")
#: part of the kinetic energy by which the whole of it may rise
GAIN = 0.02
#: part of the thinner body's half thickness by which straight ways between knots may overlap: a little more than what is promised
WAY = 1.2e-2


@dataclass(frozen=True, eq=False)
class Throw:
    """Two bodies without weight, the first of which flies at the other one; both spin."""

    mechanism: da.Mechanism
    dt: float
    speed: float
    steps: int

    @classmethod
    def random(cls, random: np.random.Generator, kinds: Sequence[str] = NUMBERED, others: Sequence[str] = ()) -> Throw:
        """Speeds of 1 to 20 m/s, steps of 1 or 5 ms; one of some ``kinds`` at one of some ``others``, or of the same."""
        speed, dt = float(np.exp(random.uniform(0.0, np.log(20.0)))), float(random.choice([1e-3, 5e-3]))
        toward, far = random.normal(size=3), random.uniform(0.4, 0.8)
        toward /= np.linalg.norm(toward)
        mechanism = da.Mechanism("thrown", gravity=(0, 0, 0))
        turns = random.normal(size=(2, 4))
        places = -far * toward + 0.05 * random.normal(size=3), np.zeros(3)
        shapes = [random_shape(str(random.choice(some)), random) for some in (kinds, others or kinds)]
        matrices = Rotation.from_quat(turns, scalar_first=True).as_matrix()
        while least_distance((places[0], matrices[0], shapes[0]), (places[1], matrices[1], shapes[1])) < 0.0:  # two large ones
            places, far = (places[0] - 0.1 * toward, places[1]), far + 0.1
        for name, place, turn, shape in zip("ab", places, turns, shapes):
            mechanism.body(name, shape, position=place, orientation=turn, collide=True)
        mechanism.contact_pair("a", "b", friction=float(random.choice([0.0, 0.5])), restitution=float(random.choice([0.0, 0.0, 0.5])))
        mechanism.start("a", linear=speed * toward, angular=2.0 * speed * random.normal(size=3))
        mechanism.start("b", angular=2.0 * speed * random.normal(size=3))
        return cls(mechanism, dt, speed, int(np.ceil(1.6 * far / speed / dt)) + 4)

    def placed(self, trajectory: da.Trajectory, knot: int) -> list[Placed]:
        """Both bodies at a knot."""
        turns = Rotation.from_quat(trajectory.orientation[knot], scalar_first=True).as_matrix()
        return [(trajectory.position[knot, i], turns[i], body.shape) for i, body in enumerate(self.mechanism.bodies)]  # type: ignore[misc]

    def complaints(self, trajectory: da.Trajectory) -> list[str]:
        """What must not be: overlaps at knots and on straight ways between them, an impulse that is not due, and energy out of nothing."""
        found, gaps = [], []
        energy = trajectory.energy()
        rise = float(energy.total.max() - energy.total[0])
        if rise > GAIN * energy.kinetic.max():
            found.append(f"the energy rises by {rise:.3g} of {energy.kinetic.max():.3g} J")
        thin = min(half_thickness(body.shape) for body in self.mechanism.bodies)  # type: ignore[arg-type]
        poses = [self.placed(trajectory, knot) for knot in range(len(trajectory))]
        for knot, (a, b) in enumerate(poses):
            gaps.append(least_distance(a, b))
            if gaps[-1] < -1e-8:
                found.append(f"overlap of {-gaps[-1]:.2g} m at knot {knot}")
        for knot, (one, two) in enumerate(pairwise(poses)):
            if gaps[knot] < reach(one, two):
                # where a step was divided, their way was not straight
                most = (WAY if trajectory.substeps[knot + 1] == 1 else 0.5) * thin
                least = min(least_distance(*between(one, two, t), worry=-most) for t in np.arange(1, 8) / 8.0)
                if least < -most:
                    found.append(f"overlap of {-least:.2g} m between knots {knot} and {knot + 1}")
        changed = np.linalg.norm(np.diff(trajectory.position, 2, axis=0), axis=2).max(axis=1) > 1e-9 * self.speed * self.dt
        if changed.any():  # the first impulse is due: on their way they would have met in this step
            knot = int(np.argmax(changed)) + 1
            free = between(poses[knot - 1], poses[knot], 2.0)
            least = min(by_coal(*between(poses[knot], free, t))[0] for t in np.arange(1, 33) / 32.0)
            if least > 0.03 * reach(poses[knot], free) + 1e-6:
                found.append(f"an impulse at knot {knot}, though they would have passed each other {least:.2g} m apart")
        return found


def between(one: list[Placed], two: list[Placed], t: float) -> list[Placed]:
    """Poses on the straight way from one to the other, or beyond."""
    return [
        (x + t * (y - x), R @ Rotation.from_rotvec(t * Rotation.from_matrix(R.T @ S).as_rotvec()).as_matrix(), shape)
        for (x, R, shape), (y, S, _) in zip(one, two)
    ]


def reach(one: list[Placed], two: list[Placed]) -> float:
    """How much nearer two bodies may come between two poses, at most."""
    return sum(
        float(np.linalg.norm(y - x)) + 0.5 * Rotation.from_matrix(R.T @ S).magnitude() for (x, R, _), (y, S, _) in zip(one, two)
    )
