"""Random scenes with contacts as recipes: bodies of all shapes on joints of all kinds, on a ground and between obstacles, and what an oracle says of their runs."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from mechanisms import Call, Make, Maker, Recipe, rounded
from scipy.spatial.transform import Rotation

import dalembert as da
from dalembert.mechanism.touching import Touching, collider_surface, environment_surface

sys.path.insert(0, str(Path(__file__).parents[1] / "contact"))

from convex_oracle import Placed, least_distance, support  # pyright: ignore[reportMissingImports]

#: formulations and options that take turns
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Variational", {}), ("Implicit", {}), ("Reduced", {}), ("Variational", {"cone": "linear"}), ("Variational", {"events": "exact"}),
)
#: m by which shapes may overlap at a knot: what the watch over pairs allows, and the oracle's own error
DEEP = 2e-8
#: the same at a start, which may overlap by so much
START = 1e-7
#: part of the energy that moves by which the whole of it may rise, over what motors put in; more has to fall away with the step
GAIN = 0.03
#: least part of what a run rose by that may be left with a quarter of the step, for the swing of an integrator
LEFT = 0.6


class SceneMaker(Maker):
    """A recipe in the making, of bodies with shapes: friction 0 to 5, restitution 0 to 1, masses that differ by up to 1e4."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng, touching=True, shaped=False)
        self.straight, self.mass = False, 1.0
        #: masses lie within so many decades on either side
        self.spread = float(rng.choice([0.3, 1.0, 2.0]))
        self.flags |= {"touching", "shaped"}

    def coefficients(self) -> tuple[tuple[str, Any], ...]:
        """Friction and restitution, often at the ends of their ranges."""
        rng = self.rng
        friction = float(rng.choice([0.0, rng.uniform(0.0, 1.0), rng.uniform(0.0, 5.0)], p=[0.2, 0.5, 0.3]))
        restitution = float(rng.choice([0.0, rng.uniform(0.0, 1.0), 1.0], p=[0.4, 0.4, 0.2]))
        return (("friction", rounded(friction)[0]), ("restitution", rounded(restitution)[0]))

    def shape(self, mass: float) -> Make:
        """Any shape, of some centimetres or decimetres."""
        rng = self.rng
        size, axis = rounded(rng.uniform(0.03, 0.15, 3)), rounded(rng.normal(size=3))
        words: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = (
            ("Sphere", (("radius", size[0]),)), ("Box", (("size", rounded(2.0 * np.array(size))),)),
            ("Capsule", (("radius", size[0]), ("length", rounded(2.0 * size[1])[0]), ("axis", axis))),
            ("Cylinder", (("radius", size[0]), ("length", rounded(2.0 * size[1])[0]), ("axis", axis))),
            ("Ellipsoid", (("semi_axes", size),)),
            ("Convex", (("points", tuple(rounded(point) for point in 0.1 * rng.normal(size=(int(rng.integers(5, 14)), 3)))),)),
        )
        name, arguments = words[int(rng.integers(len(words)))]
        return Make(name, (*arguments, ("mass", mass)))

    def body(self) -> str:
        """Bodies lie about above the ground; what touches is a collider with the same shape, which has coefficients of its own."""
        rng, name = self.rng, f"b{len(self.bodies)}"
        place = rounded(np.array([0.25, 0.25, 0.2]) * rng.normal(size=3) + (0.0, 0.0, 0.5))
        shape = self.shape(rounded(10.0 ** rng.uniform(-self.spread, self.spread))[0])
        self.build.append(Call("body", (name,), (("shape", shape), ("position", place), ("orientation", self.turn())), name))
        self.build.append(Call("collider", (f"c{name[1:]}", name, shape), self.coefficients(), f"c{name[1:]}", (name,)))
        self.bodies.append(name)
        self.places[name] = np.array(place)
        return name

    def laws(self, kind: Make) -> Make:
        """Those of any mechanism, and motors that follow rates; what is moved at any price has no motion where it meets a wall."""
        made = super().laws(kind)
        words = {key: value for key, value in made.arguments if (key, value) != ("drive", "motion")}
        turns = {word for word, _ in made().directions}
        if turns and "ball" not in turns and not {"servo", "drive", "armature"} & set(words) and self.chance(0.1):
            gains = (("stiffness", 0.0), ("damping", rounded(self.rng.uniform(0.1, 5.0))[0]), ("target", rounded(self.rng.normal())[0]))
            words["servo"] = Make("Servo", (*gains, ("bound", 2.0), ("follows", "rate")))
            self.flags.add("driven")
        return Make(made.name, tuple(words.items()))

    def around(self) -> None:
        """A ground, maybe a wall, and shapes that stand still."""
        self.build.append(Call("ground", (), self.coefficients(), "ground"))
        if self.chance(0.3):
            options = (("normal", rounded((-1.0, *(0.3 * self.rng.normal(size=2))))), ("offset", -0.8), ("name", "wall"), *self.coefficients())
            self.build.append(Call("ground", (), options, "wall"))
        for k in range(int(self.rng.choice([0, 1, 2], p=[0.5, 0.3, 0.2]))):
            place = rounded(np.array([0.4, 0.4, 0.05]) * self.rng.normal(size=3))
            self.build.append(Call("obstacle", (f"o{k}", self.shape(1.0)), (("position", place), ("orientation", self.turn()), *self.coefficients()), f"o{k}"))

    def begins(self) -> None:
        """Free bodies fly and spin, joints move, and what overlaps is brought apart."""
        hung = {end for call in self.build if call.method == "joint" for end in call.needs}
        speed = 10.0 ** self.rng.uniform(-1.0, 0.7)
        for name in self.bodies:
            if name not in hung:
                linear, angular = speed * self.rng.normal(size=3), 3.0 * speed * self.rng.normal(size=3)
                self.begin.append(Call("set_velocity", (name,), (("linear", rounded(linear)), ("angular", rounded(angular))), "", (name,)))
        super().begins()


def random_scene(rng: np.random.Generator, method: str, options: dict[str, Any]) -> Recipe:
    """One to six bodies with all that touches and moves, steps of 1 to 10 ms over about a third of a second."""
    maker = SceneMaker(rng)
    maker.around()
    maker.tree(int(rng.integers(1, 7)))
    if rng.random() < 0.3:
        maker.loops(int(rng.integers(1, 3)))
    if rng.random() < 0.3:
        maker.forces()
    maker.begins()
    dt = float(f"{10.0 ** rng.uniform(-3.0, -2.0):.2g}")
    return Recipe(tuple(maker.build), tuple(maker.begin), Make(method, (("dt", dt), *options.items())), int(np.ceil(0.3 / dt)), flags=frozenset(maker.flags))


def run(recipe: Recipe) -> tuple[da.Simulation, da.Trajectory] | None:
    """The run of a scene; nothing where its bodies cannot be brought apart, or its loops not closed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sim = recipe.simulation()
        except (da.OverlapError, da.AssemblyError):
            return None
        return sim, sim.run(recipe.steps * recipe.dt, progress=False)


def judge(recipe: Recipe) -> str | None:
    """What is wrong with a scene, or nothing; steps without a solution raise."""
    done = run(recipe)
    return None if done is None else penetration(*done) or gain(recipe, *done)


def pairs(mechanism: da.Mechanism) -> Iterator[tuple[Any, Any]]:
    """Surfaces that may touch, the first of them on a body."""
    touching = Touching(mechanism)
    moving = [collider_surface(collider) for collider in mechanism.colliders]
    still = [environment_surface(element) for element in mechanism.obstacles]
    yield from ((a, b) for a, b in combinations(moving, 2) if touching.law(a, b) is not None)
    yield from ((a, b) for a in moving for b in still if touching.law(a, b) is not None)


def penetration(sim: da.Simulation, run: da.Trajectory) -> str | None:
    """Overlaps at knots, of shapes by coal and of shapes and grounds by how far they reach."""
    mechanism = sim.mechanism
    turns = Rotation.from_quat(run.orientation.reshape(-1, 4), scalar_first=True).as_matrix().reshape(*run.orientation.shape[:2], 3, 3)
    touching = Touching(mechanism)
    for collider in mechanism.colliders:
        i, surface = collider.body.index, collider_surface(collider)
        for ground in mechanism.grounds:
            if touching.law(surface, environment_surface(ground)) is None:
                continue
            n = np.asarray(ground.normal, dtype=float)
            for knot in range(len(run)):
                gap = float(n @ run.position[knot, i]) - ground.offset - support(collider.shape, -turns[knot, i].T @ n)
                if gap < -(DEEP if knot else START):
                    return f"penetration: {collider.body.name} in {ground.name} by {-gap:.3g} m at knot {knot}"
    for a, b in pairs(mechanism):
        sizes = sum(float(np.linalg.norm([support(one.shape, axis) for axis in (*np.eye(3), *-np.eye(3))])) for one in (a, b))
        for knot in range(len(run)):
            one, two = (placed(surface, run, turns, knot) for surface in (a, b))
            if np.linalg.norm(one[0] - two[0]) < sizes:
                gap = least_distance(one, two)
                if gap < -(DEEP if knot else START):
                    return f"penetration: {a.owner} and {b.owner} by {-gap:.3g} m at knot {knot}"
    return None


def placed(surface: Any, run: da.Trajectory, turns: np.ndarray, knot: int) -> Placed:
    """A surface at a knot."""
    if surface.body < 0:
        return np.asarray(surface.position), Rotation.from_quat(surface.orientation, scalar_first=True).as_matrix(), surface.shape
    return run.position[knot, surface.body], turns[knot, surface.body], surface.shape


def rise(recipe: Recipe, sim: da.Simulation, run: da.Trajectory) -> float:
    """How far the energy rises over what it was before and what motors and inputs put in since, as a part of what moves and what weighs."""
    energy = run.energy_after()
    work = np.zeros(len(run))
    for element in sim.mechanism.joints:
        series = run.joint(element.name)
        for share in ("servo", "drive", "input"):
            if share in series.shares:
                power = np.reshape(series.shares[share], (len(run), -1)) * np.reshape(series.rates, (len(run), -1))
                own = np.maximum(power, 0.0).sum(axis=1)
                work[1:] += recipe.dt * np.maximum(own[1:], own[:-1])
    total = energy.total - np.cumsum(work)
    size = max(float(np.ptp(energy.kinetic)), float(energy.kinetic.max()), float(np.ptp(energy.potential)), 1e-3 * sim.mechanism.mass)
    return float((total - np.minimum.accumulate(total)).max()) / size


def gain(recipe: Recipe, sim: da.Simulation, run_: da.Trajectory) -> str | None:
    """Energy out of nothing: more than GAIN, of which most is left with a quarter of the step and with a sixteenth."""
    if "pushed" in recipe.flags:
        return None
    rises = [rise(recipe, sim, run_)]
    for parts in (4, 16):
        if rises[-1] <= GAIN:
            return None
        finer = run(recipe.with_dt(recipe.dt / parts, parts * recipe.steps))
        assert finer is not None
        rises.append(rise(recipe.with_dt(recipe.dt / parts, parts * recipe.steps), *finer))
        if rises[-1] < LEFT * rises[-2]:
            return None
    return f"gain: the energy rises by {', '.join(f'{part:.3g}' for part in rises)} of what moves with dt, dt/4, dt/16"
