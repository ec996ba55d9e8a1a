"""Random mechanisms as recipes: lists of calls that can be made, printed as a program, and shrunk one by one."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import dalembert as da

#: every joint of the table between two frames at one place, with the arguments that say where its axes lie
KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Revolute", ("axis",)), ("Prismatic", ("axis",)), ("Helical", ("axis", "pitch")), ("Cylindrical", ("axis",)), ("Universal", ()),
    ("Spherical", ()), ("Planar", ("normal",)), ("Rectangular", ("normal",)), ("PlanarFreeOrientation", ("normal",)), ("PinInSlot", ()),
    ("Cartesian", ()), ("Slot", ("axis",)), ("RotationAlongAxis", ("axis",)), ("CylindricalFreeOrientation", ("axis",)), ("Free", ()), ("Fixed", ()),
)
#: joints that hold a place, of which sensible loops are made
FIRM = ("Revolute", "Spherical", "Universal", "Cylindrical", "Prismatic", "Planar", "Slot", "PinInSlot", "Fixed")


@dataclass(frozen=True)
class Make:
    """A joint or a part of one, to be made: ``da.name(**arguments)``."""

    name: str
    arguments: tuple[tuple[str, Any], ...] = ()

    def __call__(self) -> Any:
        return getattr(da, self.name)(**{key: made(value) for key, value in self.arguments})

    def __repr__(self) -> str:
        return f"da.{self.name}({', '.join(f'{key}={value!r}' for key, value in self.arguments)})"


@dataclass(frozen=True)
class Wave:
    """A function of time: sizes times sin(rate t), one number or as many as there are sizes."""

    sizes: tuple[float, ...]
    rate: float

    def __call__(self, time: float) -> Any:
        values = [size * math.sin(self.rate * time) for size in self.sizes]
        return values if len(values) > 1 else values[0]

    def __repr__(self) -> str:
        terms = [f"{size!r} * math.sin({self.rate!r} * t)" for size in self.sizes]
        return f"lambda t: [{', '.join(terms)}]" if len(terms) > 1 else f"lambda t: {terms[0]}"


def made(value: Any) -> Any:
    """A value with all that is to be made in it."""
    if isinstance(value, Make):
        return value()
    return tuple(map(made, value)) if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Call:
    """A method of the mechanism, or of the simulation, with arguments; ``name`` is the element that it adds, ``needs`` are those that it names."""

    method: str
    arguments: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...] = ()
    name: str = ""
    needs: tuple[str, ...] = ()

    def make(self, owner: Any) -> None:
        getattr(owner, self.method)(*map(made, self.arguments), **{key: made(value) for key, value in self.options})

    def line(self, owner: str) -> str:
        words = [*map(repr, self.arguments), *(f"{key}={value!r}" for key, value in self.options)]
        return f"{owner}.{self.method}({', '.join(words)})"


@dataclass(frozen=True)
class Recipe:
    """A mechanism, how its simulation begins, and how it is run. ``flags``: what the generator knows of it."""

    build: tuple[Call, ...]
    begin: tuple[Call, ...]
    method: Make
    steps: int
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    flags: frozenset[str] = field(default_factory=frozenset)

    def mechanism(self) -> da.Mechanism:
        mechanism = da.Mechanism("random", gravity=self.gravity)
        for call in self.build:
            call.make(mechanism)
        return mechanism

    def simulation(self, method: Make | None = None) -> da.Simulation:
        sim = da.Simulation(self.mechanism(), (method or self.method)())
        for call in self.begin:
            call.make(sim)
        return sim

    @property
    def dt(self) -> float:
        return dict(self.method.arguments)["dt"]

    def with_dt(self, dt: float, steps: int) -> Recipe:
        arguments = {**dict(self.method.arguments), "dt": dt}
        return replace(self, method=Make(self.method.name, tuple(arguments.items())), steps=steps)

    def program(self) -> str:
        """What does the same."""
        lines = ["import math", "import dalembert as da", f"mechanism = da.Mechanism('random', gravity={self.gravity!r})"]
        lines += [call.line("mechanism") for call in self.build]
        lines += [f"sim = da.Simulation(mechanism, {self.method!r})", *(call.line("sim") for call in self.begin)]
        return "\n".join([*lines, f"run = sim.run({self.steps} * {self.dt!r})"]).replace("'world'", "mechanism.world")

    def without(self, index: int) -> Recipe:
        """Less one element, and all that needs it."""
        gone, build = {self.build[index].name}, []
        for i, call in enumerate(self.build):
            if i == index or gone & set(call.needs):
                gone.add(call.name)
            else:
                build.append(call)
        begin = tuple(call for call in self.begin if not gone & set(call.needs))
        return replace(self, build=tuple(build), begin=begin)


def shrink(recipe: Recipe, fails: Callable[[Recipe], bool], tries: int = 60) -> Recipe:
    """The smallest recipe on the way that still fails: elements go, laws of joints go, runs get shorter."""
    changed = True
    while changed and tries > 0:
        changed = False
        for smaller in smaller_ones(recipe):
            tries -= 1
            if tries < 0:
                break
            if smaller.build and any(call.method == "body" for call in smaller.build) and fails(smaller):
                recipe, changed = smaller, True
                break
    return recipe


def smaller_ones(recipe: Recipe) -> Sequence[Recipe]:
    """Recipes that are a little simpler."""
    found = [recipe.without(i) for i in reversed(range(len(recipe.build)))]
    found += [replace(recipe, begin=recipe.begin[:i] + recipe.begin[i + 1 :]) for i in range(len(recipe.begin))]
    for i, call in enumerate(recipe.build):
        if call.method == "joint":
            kind = call.arguments[1]
            for key, _ in kind.arguments:
                less = Make(kind.name, tuple(pair for pair in kind.arguments if pair[0] != key))
                simpler = replace(call, arguments=(call.arguments[0], less, *call.arguments[2:]))
                found.append(replace(recipe, build=(*recipe.build[:i], simpler, *recipe.build[i + 1 :])))
    if recipe.steps > 1:
        found.append(replace(recipe, steps=recipe.steps // 2))
    return found


def rounded(values: Any, digits: int = 3) -> tuple[float, ...]:
    """Numbers that can be printed and read back as they are."""
    return tuple(float(f"{value:.{digits}g}") for value in np.ravel(values))


def random_recipe(rng: np.random.Generator, method: str, options: dict[str, Any], *, dt: float = 0.004, steps: int = 24, touching: bool = True) -> Recipe:
    """A tree or a mechanism with loops of two to six bodies, whose joints carry all kinds of laws.

    ``touching``: limits, dry friction, bearings and contacts may occur.
    """
    maker = Maker(rng, touching, touching and rng.random() < 0.15)
    maker.tree(int(rng.integers(1, 7)))
    if rng.random() < 0.3:
        maker.loops(int(rng.integers(1, 3)))
    maker.forces()
    if touching and rng.random() < 0.3:
        maker.contacts()
    if maker.shaped:
        maker.obstacles()
    maker.begins()
    gravity = (0.0, 0.0, 0.0) if rng.random() < 0.2 else (0.0, 0.0, -9.81)
    dt = float(f"{dt * 10.0 ** rng.uniform(-1.0, 0.5):.2g}")
    return Recipe(tuple(maker.build), tuple(maker.begin), Make(method, (("dt", dt), *options.items())), steps, gravity, frozenset(maker.flags))


class Maker:
    """A recipe in the making."""

    def __init__(self, rng: np.random.Generator, touching: bool, shaped: bool) -> None:
        self.rng, self.touching, self.shaped = rng, touching, shaped
        #: all places and points on one line, where loops are at dead centres
        self.straight = bool(rng.random() < 0.08)
        self.build: list[Call] = []
        self.begin: list[Call] = []
        self.flags: set[str] = set()
        self.bodies: list[str] = []
        self.places: dict[str, np.ndarray] = {}
        self.tree_joints: list[tuple[str, Make]] = []
        #: masses lie around this one
        self.mass = 10.0 ** rng.choice([rng.uniform(-2.0, 2.0), -6.0, 6.0], p=[0.8, 0.1, 0.1]) if rng.random() < 0.3 else 1.0
        self.spread = 1.5 if rng.random() < 0.2 else 0.3

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def turn(self) -> tuple[float, ...]:
        return rounded(self.rng.normal(size=4))

    def body(self) -> str:
        rng, name = self.rng, f"b{len(self.bodies)}"
        mass = self.mass * 10.0 ** rng.uniform(-self.spread, self.spread)
        sides = rng.uniform(0.05, 0.4, 3)
        inertia = mass / 12.0 * (np.sum(sides**2) - sides**2)
        place = self.near(0.5 * rng.normal(size=3))
        options: tuple[tuple[str, Any], ...] = (("position", place), ("orientation", self.turn()))
        if self.shaped:  # what may touch other bodies, obstacles and the ground
            options += (("shape", self.shape(rounded(mass)[0])), ("collide", True))
            self.flags |= {"touching", "shaped"}
        else:
            options += (("mass", rounded(mass)[0]), ("inertia", tuple(map(tuple, np.diag(rounded(inertia)).tolist()))))
        self.build.append(Call("body", (name,), options, name))
        self.bodies.append(name)
        self.places[name] = np.array(place)
        return name

    def near(self, place: np.ndarray) -> tuple[float, ...]:
        """A place that can be printed; on the line, if all are."""
        return rounded(place * (1.0, 0.0, 0.0)) if self.straight else rounded(place)

    def shape(self, mass: float) -> Make:
        """A small shape, so that most bodies are apart."""
        size = rounded(self.rng.uniform(0.03, 0.1, 3))
        words = (("Sphere", (("radius", size[0]),)), ("Box", (("size", size),)), ("Capsule", (("radius", size[0]), ("length", size[1]))))
        name, arguments = words[int(self.rng.integers(3))]
        return Make(name, (*arguments, ("mass", mass)))

    def kind(self, names: Sequence[str] | None = None) -> Make:
        """A joint of the table with its axes."""
        rng = self.rng
        choice = [kind for kind in KINDS if names is None or kind[0] in names]
        name, words = choice[int(rng.integers(len(choice)))]
        arguments: dict[str, Any] = {}
        for word in words:
            arguments[word] = rounded(rng.uniform(0.02, 0.3))[0] if word == "pitch" else rounded(rng.normal(size=3))
        return Make(name, tuple(arguments.items()))

    def laws(self, kind: Make) -> Make:
        """Springs, dampers, limits, friction, servos, drives along the free directions."""
        rng, type = self.rng, kind()
        freedom = type.freedom
        if freedom == 0 or self.chance(0.35):
            return kind
        extra: dict[str, Any] = {}
        scale = self.mass
        ball = any(direction == "ball" for direction, _ in type.directions)

        def some(low: float, high: float) -> tuple[float, ...]:
            values = scale * 10.0 ** rng.uniform(low, high, freedom)
            return rounded(np.where(rng.random(freedom) < 0.7, values, 0.0))

        if self.chance(0.5):
            extra["stiffness"] = some(-1.0, 2.0)
        if self.chance(0.5):
            extra["damping"] = some(-2.0, 0.5)
        if self.chance(0.2) and not ball:
            extra["armature"] = some(-3.0, -0.5)
        choice = rng.random()
        if choice < 0.12 and not ball:
            extra["servo"] = Make("Servo", (("stiffness", rounded(scale * 10.0 ** rng.uniform(0, 2))[0]), ("damping", rounded(scale * 10.0 ** rng.uniform(-1, 1))[0])))
            self.flags.add("driven")
        elif choice < 0.2:
            extra["drive"] = "force"
            self.flags.add("force")
        elif choice < 0.27 and not ball and freedom == 1 and "armature" not in extra:
            extra["drive"] = "motion"
            self.flags.add("driven")
        if self.touching and extra.get("drive") != "motion":
            if self.chance(0.25):
                extra["limits"] = tuple(rounded((-abs(a), b)) for a, b in rng.uniform(0.005, 0.1, (freedom, 2)))
                extra["restitution"] = rounded(rng.uniform(0, 1))[0] if self.chance(0.3) else 0.0
                self.flags.add("touching")
            if self.chance(0.25):
                extra["friction"] = some(-5.0, 0.5)
                self.flags.add("touching")
            elif self.chance(0.1) and type.bears:
                # one whose friction is small against its size: others jam, and have no motion
                extra["bearing"] = Make("Bearing", (("friction", rounded(rng.uniform(0.01, 0.1))[0]), ("radius", rounded(rng.uniform(0.1, 0.2))[0]), ("length", 0.5)))
                self.flags.add("touching")
        return Make(kind.name, (*kind.arguments, *extra.items()))

    def joint(self, name: str, kind: Make, first: str, second: str) -> None:
        here = self.places[second] if first == "world" else 0.5 * (self.places[first] + self.places[second])
        place = self.near(here + 0.2 * self.rng.normal(size=3))
        ends = tuple(end for end in (first, second) if end != "world")
        self.build.append(Call("joint", (name, kind, first, second), (("at", place), ("frame", self.turn())), name, ends))

    def tree(self, count: int) -> None:
        """Bodies, each hung on one before it, on the world or on nothing."""
        rng, grounded = self.rng, self.rng.choice([0.15, 0.4, 0.0])
        for i in range(count):
            body = self.body()
            if i == 0 and grounded == 0.0 and self.chance(0.5):
                self.flags.add("floating")
                continue
            other = self.bodies[int(rng.integers(i))] if i and rng.random() >= grounded else "world"
            if self.chance(0.05):
                continue
            ends = (other, body) if other == "world" or self.chance(0.5) else (body, other)
            kind = self.laws(self.kind())
            name = f"j{i}"
            self.joint(name, kind, *ends)
            self.tree_joints.append((name, kind))

    def loops(self, count: int) -> None:
        """Joints between bodies that hang together already, and rods."""
        for k in range(count):
            ends = self.pair()
            if ends is None:
                return
            self.flags.add("loops")
            if self.chance(0.25):
                points = tuple(rounded((0.0 if end == "world" else self.places[end]) + 0.2 * self.rng.normal(size=3)) for end in ends)
                self.build.append(Call("joint", (f"rod{k}", Make("Distance"), *ends), (("at", points),), f"rod{k}", tuple(end for end in ends if end != "world")))
            else:
                self.joint(f"l{k}", self.kind(FIRM), *ends)

    def pair(self) -> tuple[str, str] | None:
        """Two different bodies, or the world and one."""
        names = ["world", *self.bodies]
        if len(names) < 2:
            return None
        first, second = sorted(self.rng.choice(len(names), 2, replace=False))
        return names[first], names[second]

    def forces(self) -> None:
        """Springs between points, paths, cables, drag, wrenches, gears."""
        rng = self.rng
        for k in range(int(rng.integers(0, 3))):
            ends = self.pair()
            if ends is None:
                break
            points = tuple(rounded((0.0 if end == "world" else self.places[end]) + 0.2 * rng.normal(size=3)) for end in ends)
            needs = tuple(end for end in ends if end != "world")
            stiffness = rounded(self.mass * 10.0 ** rng.uniform(0.0, 2.5))[0]
            damping = rounded(self.mass * 10.0 ** rng.uniform(-1.0, 0.5))[0] if self.chance(0.5) else 0.0
            laws = (("stiffness", stiffness), ("damping", damping))
            if self.chance(0.6):
                self.build.append(Call("spring", (f"s{k}", *ends), (("at", points), *laws), f"s{k}", needs))
            else:
                self.build.append(Call("cable" if self.chance(0.5) else "path", (f"s{k}", tuple(zip(ends, points))), laws, f"s{k}", needs))
        if self.chance(0.15):
            self.build.append(Call("drag", ("drag", self.bodies[-1]), (("linear", rounded(self.mass)[0]), ("angular", rounded(0.1 * self.mass)[0])), "drag", (self.bodies[-1],)))
        if self.chance(0.1):
            self.build.append(Call("wrench", (self.bodies[-1],), (("force", rounded(self.mass * rng.normal(size=3))),), "", (self.bodies[-1],)))
            self.flags.add("pushed")
        single = [(name, kind) for name, kind in self.tree_joints if kind.name in ("Revolute", "Prismatic") and dict(kind.arguments).get("drive") != "motion"]
        if len(single) > 1 and self.chance(0.5):
            first, second = (single[i][0] for i in rng.choice(len(single), 2, replace=False))
            self.build.append(Call("gear", ("gear", first, second), (("ratio", rounded(rng.uniform(-2, 2))[0]),), "gear", (first, second)))
            self.flags.add("loops")

    def contacts(self) -> None:
        """A ground below, and points or spheres of some bodies above it."""
        lowest = min(place[2] for place in self.places.values()) - 0.5
        self.build.append(Call("ground", (), (("offset", rounded(lowest - self.rng.uniform(0.0, 0.1), 6)[0]), ("friction", rounded(self.rng.uniform(0, 1))[0]))))
        for name in self.bodies:
            if self.chance(0.5):
                self.build.append(Call("contact_point", (name,), (("point", rounded(0.1 * self.rng.normal(size=3))), ("radius", 0.05)), f"p {name}", (name,)))
        self.flags.add("touching")

    def obstacles(self) -> None:
        """Shapes that stand still below and between the bodies."""
        for k in range(int(self.rng.integers(1, 3))):
            place = rounded(0.5 * self.rng.normal(size=3) - (0.0, 0.0, 0.4))
            self.build.append(Call("obstacle", (f"o{k}", self.shape(1.0)), (("position", place), ("friction", rounded(self.rng.uniform(0, 1))[0])), f"o{k}"))

    def begins(self) -> None:
        """Values and rates of joints, inputs and targets over time; bodies that overlap are moved apart."""
        speed = 10.0 ** self.rng.uniform(-1.0, 1.0)
        for name, kind in self.tree_joints:
            words, freedom = dict(kind.arguments), kind().freedom
            if not freedom:
                continue
            if words.get("drive") == "force" and self.chance(0.5):
                self.begin.append(Call("set_input", (name, Wave(rounded(self.mass * self.rng.normal(size=freedom)), rounded(self.rng.uniform(1, 30))[0])), (), "", (name,)))
            if (words.get("drive") == "motion" or "servo" in words) and self.chance(0.5) and "loops" not in self.flags:
                self.begin.append(Call("set_target", (name, Wave(rounded(0.05 * self.rng.normal(size=freedom)), rounded(self.rng.uniform(1, 20))[0])), (), "", (name,)))
            elif "loops" not in self.flags and words.get("drive") != "motion":
                if self.chance(0.15) and "limits" not in words:
                    self.begin.append(Call("set_joint", (name, rounded(0.3 * self.rng.normal(size=freedom))), (), "", (name,)))
                if self.chance(0.6):  # where there are loops, joints have no rates of their own
                    self.begin.append(Call("set_joint", (name,), (("rate", rounded(speed * self.rng.normal(size=freedom))),), "", (name,)))
        if "shaped" in self.flags:
            self.begin.append(Call("resolve_overlaps", ()))
