"""What a run leaves behind: poses over time, and everything that can be derived from them, computed when asked for."""
from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dalembert.checks import (
    ANYTHING,
    BY_NAME,
    NAMES,
    NOTHING,
    NUMBER,
    PORT,
    POSITIVE,
    SIZE,
    TEXT,
    as_given,
    checked,
    checked_as,
    counted,
    number,
    numbers,
    shown,
)
from dalembert.errors import GradientError, ModelError
from dalembert.formulations.engine import SHARES, Compute, Readings
from dalembert.mechanism.mechanism import Mechanism
from dalembert.model.compile_forces import coupling_names
from dalembert.simulation.record import Record

if TYPE_CHECKING:
    from dalembert.contact.series import ContactSeries
    from dalembert.gradients.events import Derivatives
    from dalembert.gradients.step import StepJacobians
    from dalembert.io.budget import Budget
    from dalembert.simulation.sensing import SensorSeries


#: endings of files that ``Trajectory.save`` writes
ENDINGS = (".h5", ".hdf5", ".csv", ".npz")
#: pictures per second
RATE = number("be positive and below 1e6", least=1e-6, most=1e6)
#: where pictures are seen from
LOOK = dict(
    azimuth=NUMBER | NOTHING, elevation=NUMBER | NOTHING, distance=POSITIVE | NOTHING, target=as_given(numbers(3)) | NOTHING, follow=TEXT | NOTHING,
    show=TEXT | NAMES,
)


@dataclass(frozen=True)
class EnergySeries:
    """Energies over time in J, each (N,)."""

    kinetic: np.ndarray
    potential: np.ndarray

    @property
    def total(self) -> np.ndarray:
        return self.kinetic + self.potential


@dataclass(frozen=True)
class MomentumSeries:
    """Momenta over time in the world: ``linear`` (N, 3) in N s, ``angular`` (N, 3) about the origin in N m s."""

    linear: np.ndarray
    angular: np.ndarray


@dataclass(frozen=True, eq=False)
class BodySeries:
    """One body over time.

    ``position`` (N, 3) of its centre of mass, m; ``orientation`` (N, 4) unit quaternions, scalar first, body to world;
    ``velocity`` (N, 3), m/s; ``angular_velocity`` (N, 3) in the body frame, rad/s. Velocities are computed when asked for.
    """

    name: str
    position: np.ndarray
    orientation: np.ndarray
    _trajectory: Trajectory = field(repr=False)

    @property
    def velocity(self) -> np.ndarray:
        return self._trajectory.velocity[:, self._trajectory._body_index(self.name)]

    @property
    def angular_velocity(self) -> np.ndarray:
        return self._trajectory.angular_velocity[:, self._trajectory._body_index(self.name)]


@dataclass(frozen=True)
class JointSeries:
    """One joint over time.

    ``coordinates`` and ``rates``: (N, freedom), or (N,) for a joint with one. ``force`` (N, 3) and ``torque`` (N, 3):
    what the parent exerts on the child, at the joint's point in the joint's frame on the parent, in N and N m.
    ``actuation``: the part along the free directions, shaped as the coordinates, and ``shares``: what it is made of, by name
    and of the same shape: "drive" (motion drives, servos and forces of controllers: what the motor does), "spring",
    "damper", "rotor" (reflected inertia), dry "friction", "limit".
    """

    name: str
    coordinates: np.ndarray
    rates: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    actuation: np.ndarray
    shares: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class PathSeries:
    """A path or cable over time: ``length`` (N,), m; its ``rate`` (N,), m/s; ``tension`` (N,), N, positive where it pulls."""

    name: str
    length: np.ndarray
    rate: np.ndarray
    tension: np.ndarray


@dataclass(frozen=True)
class StrandSeries:
    """A strand over time: ``points`` (N, n, 3) in the world, m; ``tension`` (N, n - 1) of its stretches, N, positive where they pull."""

    name: str
    points: np.ndarray
    tension: np.ndarray


@dataclass(frozen=True)
class MapSeries:
    """The own coordinates y of a coordinate map over time and their rates: (N, count), or (N,) for a single one."""

    name: str
    coordinates: np.ndarray
    rates: np.ndarray


@dataclass(frozen=True)
class Event:
    """Something that happened between knots: ``time`` (s), its ``name``, and the poses then, (bodies, 3) and (bodies, 4)."""

    time: float
    name: str
    position: np.ndarray
    orientation: np.ndarray


@dataclass(repr=False)
class Trajectory:
    """Poses of all bodies at the knots, and what follows from them. Shapes and units stand with each property."""

    mechanism: str
    formulation: str
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    couplings: tuple[str, ...]
    coordinate_units: tuple[tuple[str, ...], ...]
    mass: np.ndarray
    inertia: np.ndarray
    _values: dict[str, np.ndarray]
    touching: tuple[str, ...] = ()
    #: those of the couplings that are paths or cables
    paths: tuple[str, ...] = ()
    _providers: tuple[tuple[frozenset[str], Compute], ...] = field(default=(), repr=False)
    _least_norm: Callable[..., Mapping[str, np.ndarray]] | None = field(default=None, repr=False)
    #: (joints, 6) inertia reflected along the free directions, kg or kg m^2; None where there is none
    armature: np.ndarray | None = None
    #: names of what happened between knots, for ``events``
    happenings: tuple[str, ...] = ()
    #: the mechanism that ran, where it is known: for pictures
    model: Mechanism | None = field(default=None, repr=False)
    #: what derivatives need, of a run with tape=True
    record: Record | None = field(default=None, repr=False)
    #: whether Ctrl-C ended the run before its time: a loop over runs may stop there
    interrupted: bool = False

    def _get(self, name: str) -> np.ndarray:
        if name not in self._values:
            for names, compute in self._providers:
                if name in names:
                    self._values.update((known, series) for known, series in compute().items() if known in names)  # what else it holds is another's
                    break
            else:
                raise ModelError(f"this trajectory holds no {name!r}")
        return self._values[name]

    def __getstate__(self) -> dict[str, Any]:
        """All series, computed now: what another process gets, or a file. The mechanism stays behind where it cannot be pickled."""
        self.complete()
        kept = {**self.__dict__, "_providers": (), "_least_norm": None, "record": None}
        try:
            pickle.dumps(self.model)
        except Exception:  # functions of the user
            kept["model"] = None
        return kept

    def complete(self) -> None:
        """Compute every series now, which otherwise happens when somebody asks for it."""
        for names, _ in self._providers:
            for name in names:
                self._get(name)

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        ended = ", interrupted" if self.interrupted else ""
        return (
            f"<trajectory of {self.mechanism!r} in {self.formulation}: {len(self)} knots from t = {self.time[0]:g} to {self.time[-1]:g} s, "
            f"{counted(len(self.bodies), 'body', 'bodies')}, {counted(len(self.joints), 'joint')}{ended}>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from dalembert.view.notebook import trajectory_table

        return trajectory_table(self)

    @property
    def freedom(self) -> tuple[int, ...]:
        """Number of coordinates of each joint."""
        return tuple(len(units) for units in self.coordinate_units)

    @property
    def time(self) -> np.ndarray:
        """(N,) seconds."""
        return self._values["time"]

    @property
    def position(self) -> np.ndarray:
        """(N, bodies, 3) of the centres of mass, metres."""
        return self._values["position"]

    @property
    def orientation(self) -> np.ndarray:
        """(N, bodies, 4) unit quaternions, scalar first, body to world."""
        return self._values["orientation"]

    @property
    def velocity(self) -> np.ndarray:
        """(N, bodies, 3) at the knots, m/s."""
        return self._get("velocity")

    @property
    def angular_velocity(self) -> np.ndarray:
        """(N, bodies, 3) at the knots, in the body frame, rad/s."""
        return self._get("angular_velocity")

    @property
    def substeps(self) -> np.ndarray:
        """(N,) number of substeps that the interval before each knot took (1 is the rule, 0 at the start)."""
        return self._values["substeps"]

    @property
    def target_correction(self) -> np.ndarray:
        """(N,) largest amount (m or rad) by which targets of redundant drives were moved onto what the joints allow."""
        return self._values.get("target_correction", np.zeros(len(self)))

    @property
    def iterations(self) -> np.ndarray:
        """(N,) Newton iterations of the interval before each knot."""
        return self._values["iterations"]

    @property
    def residuals(self) -> np.ndarray:
        """(N, most iterations + 1) of a run with ``residuals=True``: what is left of the equations of the interval before each knot, in m/s, at its first
        guess and after each Newton iteration; NaN beyond the last one, and at the start.
        """
        if "residuals" not in self._values:
            raise ModelError("this trajectory holds no residuals: ask for them with run(..., residuals=True)")
        return self._values["residuals"]

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened between knots, in order: joint limits met, and events of the user's (``Reduced`` with an adaptive method)."""
        if "event_time" not in self._values:
            return ()
        series = (self._values[f"event_{name}"] for name in ("time", "kind", "position", "orientation"))
        return tuple(Event(float(time), self.happenings[kind], position, turn) for time, kind, position, turn in zip(*series))

    def _index(self, kind: str, names: tuple[str, ...], name: str) -> int:
        if not isinstance(name, str) or name not in names:
            raise ModelError(f"the trajectory of {self.mechanism!r} has no {kind} {shown(name)}; it has: {', '.join(names)}")
        return names.index(name)

    def _body_index(self, name: str) -> int:
        """Where a body stands along the second axis."""
        return self._index("body", self.bodies, name)

    def body(self, name: str) -> BodySeries:
        """Poses and velocities of a body by name."""
        i = self._body_index(name)
        return BodySeries(name, self.position[:, i], self.orientation[:, i], self)

    def joint(self, name: str) -> JointSeries:
        """Coordinates and forces of a joint by name."""
        i = self._index("joint", self.joints, name)
        free = len(self.coordinate_units[i])

        def of(values: np.ndarray) -> np.ndarray:
            return _squeezed(values[:, i], free)

        coordinates, rates = of(self._get("coordinate")), of(self._get("rate"))
        shares = _shares(self._get("share")[:, i], free)
        return JointSeries(name, coordinates, rates, self._get("force")[:, i], self._get("torque")[:, i], of(self._get("actuation")), shares)

    def path(self, name: str) -> PathSeries:
        """Length and tension of a path or cable by name."""
        self._index("path", self.paths, name)
        i = self.couplings.index(name)
        return PathSeries(name, self._get("coupling")[:, i], self._get("coupling_rate")[:, i], 0.0 - self._get("coupling_force")[:, i])

    def strand(self, name: str) -> StrandSeries:
        """Points and tensions of a strand by name."""
        strand = self._element("strand", name, [] if self.model is None else self.model.strands)
        places = [np.broadcast_to(p, (len(self), 3)) if b.index < 0 else self.point(b.name, p) for b, p in zip(strand.bodies, strand.points)]
        return StrandSeries(name, np.stack(places, axis=1), np.stack([self.path(path.name).tension for path in strand.paths], axis=1))

    def coordinate_map(self, name: str) -> MapSeries:
        """The own coordinates of a map by name, from those of its joints."""
        tied = self._element("coordinate map", name, [] if self.model is None else self.model.maps)
        at = [j.index for j in tied.joints], list(tied.directions)
        y, rows, rates = tied.near, [], []
        for q, v in zip(self._get("coordinate")[:, *at], self._get("rate")[:, *at]):
            y = tied.inverse(q, y)
            rows.append(y)
            rates.append(np.linalg.lstsq(tied.slopes(y), v, rcond=None)[0])
        return MapSeries(name, _squeezed(np.array(rows), tied.count), _squeezed(np.array(rates), tied.count))

    def _element(self, kind: str, name: str, elements: Sequence[Any]) -> Any:
        """An element of the mechanism that ran."""
        if self.model is None:
            raise ModelError(f"a {kind} can be read only where the mechanism is known: ask the trajectory that a run returned, not one from a file")
        return elements[self._index(kind, tuple(e.name for e in elements), name)]

    @checked(drive_weight=POSITIVE)
    def least_norm(
        self, weights: Mapping[str, ArrayLike] | None = None, *, drive_weight: float = 1.0, knots: ArrayLike | None = None,
    ) -> dict[str, JointSeries]:
        """Joint forces by name with the redundant part least in a weighted norm (Quaternion eq. 32).

        ``weights``: per joint, a number or one per row (1 N and 1 N m weigh alike by default); ``drive_weight``: of all
        motion drives, large to spare the motors; ``knots``: indices of the knots to do (all by default).
        """
        given = np.zeros(0) if knots is None else np.atleast_1d(np.asarray(knots))
        if given.size and (given.ndim != 1 or given.dtype.kind not in "iuf" or not np.all((given == np.round(given)) & (np.abs(given + 0.5) < len(self)))):
            raise ModelError(f"Trajectory.least_norm: knots must be whole numbers from {-len(self)} to {len(self) - 1}, got {shown(knots)}")
        if self._least_norm is None:
            raise ModelError("least-norm forces need the mechanism: ask the trajectory that a run returned, not one from a file")
        chosen = np.arange(len(self)) if knots is None else given.astype(int) % len(self)
        found = self._least_norm(weights, drive_weight, chosen)
        result = {}
        for i, name in enumerate(self.joints):
            series, free = self.joint(name), self.freedom[i]
            result[name] = JointSeries(
                name, series.coordinates[chosen], series.rates[chosen], found["force"][:, i], found["torque"][:, i],
                _squeezed(found["actuation"][:, i], free), _shares(found["share"][:, i], free),
            )
        return result

    def coupling_force(self, name: str) -> np.ndarray:
        """(N,) what a gear exerts along the first joint's coordinate, or a row of a constraint along its number, in N or N m."""
        i = self._index("gear or constraint", self.couplings, name)
        return self._get("coupling_force")[:, i]

    def step_jacobians(self) -> StepJacobians:
        """Derivatives of all steps of a run in joint coordinates that was made with ``tape=True``: trees of slides and turns."""
        from dalembert.gradients.step import step_jacobians

        return step_jacobians(self)

    @checked_as(GradientError, cotangents=BY_NAME, weights=ANYTHING, drive_weight=ANYTHING)
    def vjp(
        self, cotangents: Mapping[str, ArrayLike], parameters: Sequence[str], *, weights: Mapping[str, ArrayLike] | None = None,
        drive_weight: float | None = None, gradient_smoothing: float = 0.0,
    ) -> Derivatives:
        """Gradient of a function of this run by parameters, from its derivatives by what the run gives (the adjoint).

        ``cotangents``: any of "position", "orientation" (by body-frame tangents), "velocity", "angular_velocity" (N, bodies, 3),
        "coordinate", "rate" (N, joints, 6), "force", "torque" (N, joints, 3), "energy", "kinetic", "potential" (N,). Where rows are
        redundant, forces and torques are those of ``least_norm`` with ``weights`` and ``drive_weight``. ``parameters``: names as in
        ``Simulation.parameters``, and of the start and the inputs: see the page on gradients.

        Through contacts, limits and dry friction the gradient is exact for this run. With ``gradient_smoothing`` (m/s, or rad/s of
        limits) it is that of the same steps solved less sharply, as if contacts pushed from some way off; the run stays as it is.
        The result's ``smoothing`` says which was used.
        """
        from dalembert.gradients.adjoint import pull_back

        return pull_back(self, cotangents, parameters, weights, drive_weight, gradient_smoothing)

    @checked_as(GradientError, tangents=BY_NAME, weights=ANYTHING, drive_weight=ANYTHING)
    def jvp(
        self, tangents: Mapping[str, ArrayLike], *, weights: Mapping[str, ArrayLike] | None = None, drive_weight: float | None = None,
        gradient_smoothing: float = 0.0,
    ) -> Derivatives:
        """How this run changes with parameters by name: the tangents of what it gives, by the names of ``vjp``'s cotangents.

        ``gradient_smoothing`` as for ``vjp``.
        """
        from dalembert.gradients.forward import push_forward

        return push_forward(self, tangents, weights, drive_weight, gradient_smoothing)

    @property
    def differenced(self) -> tuple[str, ...]:
        """What gradients of this run take by differences: "controller" where its derivatives were not given, and users' laws and constraints by name."""
        from dalembert.gradients.adjoint import record_of
        from dalembert.gradients.controller import differenced

        return differenced(record_of(self))

    @property
    def can_touch(self) -> bool:
        """Whether something in it could touch: whether there are ``contacts`` to ask for."""
        return "contact_log" in self._values

    def sensor(self, name: str) -> SensorSeries:
        """What a sensor of the mechanism says at the knots."""
        from dalembert.simulation.sensing import sensor_series

        if self.model is None:
            raise ModelError("a sensor can be read only where the mechanism is known: ask the trajectory that a run returned")
        return sensor_series(self.model, name, self)

    def contacts(self) -> ContactSeries:
        """Gaps, forces, points and normals of all contacts, step by step."""
        from dalembert.contact.series import read_log

        if not self.can_touch:
            raise ModelError(f"{self.mechanism!r} was run without contacts: nothing in it can touch")
        return read_log(self.time, self.touching, self._values["contact_log"])

    def energy_after(self) -> EnergySeries:
        """Energies just after the knots (right limits), where contacts have acted; those at the knots where nothing can touch."""
        if not self.can_touch:
            return self.energy()
        momentum = self._get("momentum_after")
        linear = 0.5 * np.einsum("nbi,b->n", momentum[..., :3] ** 2, 1.0 / self.mass)
        angular = 0.5 * np.einsum("nbi,bij,nbj->n", momentum[..., 3:], np.linalg.inv(self.inertia), momentum[..., 3:])
        rotors = 0.5 * np.einsum("jd,njd->n", self.armature, self._get("rate_after") ** 2) if self.armature is not None else 0.0
        return EnergySeries(linear + angular + rotors, self._get("potential"))

    def energy(self) -> EnergySeries:
        """Kinetic and potential energy at the knots."""
        linear = 0.5 * np.einsum("b,nbi,nbi->n", self.mass, self.velocity, self.velocity)
        angular = 0.5 * np.einsum("nbi,bij,nbj->n", self.angular_velocity, self.inertia, self.angular_velocity)
        rotors = 0.5 * np.einsum("jd,njd->n", self.armature, self._get("rate") ** 2) if self.armature is not None else 0.0
        return EnergySeries(linear + angular + rotors, self._get("potential"))

    def momentum(self) -> MomentumSeries:
        """Total linear and angular momentum at the knots."""
        p = self.mass[None, :, None] * self.velocity
        spin = rotate(self.orientation, np.einsum("bij,nbj->nbi", self.inertia, self.angular_velocity))
        return MomentumSeries(p.sum(axis=1), (np.cross(self.position, p) + spin).sum(axis=1))

    def constraint_violation(self) -> np.ndarray:
        """(N,) largest amount by which any joint or gear is open, m or rad."""
        rows, gaps = self._get("violation"), self._get("coupling_violation")
        return np.maximum(np.abs(rows).max(axis=(1, 2), initial=0.0), np.abs(gaps).max(axis=1, initial=0.0))

    @checked(point=numbers(3))
    def point(self, body: str, point: Any) -> np.ndarray:
        """(N, 3) path of a point given in body coordinates, from the centre of mass."""
        series = self.body(body)
        return series.position + rotate(series.orientation, np.broadcast_to(point, (len(self), 3)))

    @checked
    def save(self, path: str | Path) -> None:
        """Write everything to an HDF5 file, or tables to a .csv or .npz file; the file appears whole or not at all."""
        ending = Path(path).suffix.lower()
        if ending not in ENDINGS:
            raise ModelError(f"cannot tell by its ending {ending!r} how to save {path}: choose from {', '.join(ENDINGS)}")
        if ending in (".csv", ".npz"):
            from dalembert.io import tables

            (tables.save_csv if ending == ".csv" else tables.save_npz)(self, Path(path))
            return
        from dalembert.io.hdf5 import save_trajectory

        self.complete()
        save_trajectory(self, Path(path))

    @classmethod
    @checked
    def load(cls, path: str | Path, *, budget: Budget | None = None) -> Trajectory:
        """Read a trajectory that ``save`` wrote, or one in parts from the folder of ``Simulation.stream``; shapes and a checksum say whether it is the same.

        ``budget``: what reading may cost beyond the bytes that the file takes on the disk.
        """
        if Path(path).is_dir():
            from dalembert.simulation.streaming import load_parts

            return load_parts(Path(path), budget)
        from dalembert.io.hdf5 import load_trajectory

        return load_trajectory(Path(path), budget)

    @checked(names=TEXT | NAMES | NOTHING)
    def plot(self, what: str = "energy", *, path: str | Path | None = None, names: tuple[str, ...] | None = None) -> Any:
        """Plot "energy", "coordinates", "velocities", "forces", "violation" or the "gaps" of contacts over time, or the "phase" portrait.

        Returns the Matplotlib figure. ``names``: joints to show (of gaps: bodies, grounds or pairs), all by default; ``path``:
        also write the picture there.
        """
        from dalembert.view.plots import plot_trajectory

        return plot_trajectory(self, what, path=path, names=names)

    @checked(fps=RATE)
    def to_html(self, path: str | Path | None = None, *, fps: float = 50.0) -> Any:
        """Write one page that shows the run and works without a network; returns its path. Without a path, a page that a notebook shows.

        ``fps``: pictures per second, fewer in long runs and more in those that are too short to be seen at their own pace.
        """
        if path is None:
            from dalembert.view.notebook import InlinePage

            return InlinePage(self, fps)
        from dalembert.view.page import write_page

        return write_page(self, Path(path), fps=fps)

    @checked(fps=RATE)
    def to_gltf(self, path: str | Path, *, fps: float = 60.0) -> Path:
        """Write bodies with their animation to a binary glTF file (.glb), for Blender, game engines and the web; returns its path."""
        if Path(path).suffix.lower() != ".glb":
            raise ModelError(f"cannot write glTF to {path}: the ending must be .glb")
        from dalembert.view.gltf import write_gltf

        return write_gltf(self, Path(path), fps=fps)

    @checked(size=SIZE, **LOOK)
    def snapshot(self, path: str | Path, *, time: float | None = None, size: tuple[int, int] = (960, 720), **view: Any) -> Path:
        """Write a picture (.png) of one moment, the end by default. Needs no display.

        ``view``: ``azimuth`` and ``elevation`` (degrees), ``distance`` (m), ``target`` (3,), ``follow`` (a body's name), and
        ``show``: any of "frames", "axes", "forces", "contacts".
        """
        from dalembert.view.raster import write_snapshot

        return write_snapshot(self, Path(path), time=time, size=size, **view)

    @checked(fps=number("lie between 1 and 240", least=1.0, most=240.0), speed=POSITIVE | NOTHING, size=SIZE, **LOOK)
    def to_video(self, path: str | Path, *, fps: int = 30, speed: float | None = None, size: tuple[int, int] = (640, 480), **view: Any) -> Path:
        """Write a film (.mp4 or .gif). Needs no display; ``view`` as in ``snapshot``.

        ``speed``: 1 is real time, which is the rule, but slower for runs of less than two seconds.
        """
        from dalembert.view.raster import write_video

        return write_video(self, Path(path), fps=fps, speed=speed, size=size, **view)

    @checked(port=PORT)
    def view(self, *, port: int = 8080, block: bool = True, browser: bool | None = None) -> Any:
        """Serve a page that shows the run live: play, scrub, follow, forces. ``browser``: open one for it, by default where there is a display.

        Returns when Ctrl-C is pressed, or at once with the viewer when ``block`` is false; its ``stop`` ends the page. In a notebook nothing is
        served: the page stands below the cell.
        """
        from dalembert.view.notebook import in_notebook

        if in_notebook() and browser is None:
            return self.to_html()
        from dalembert.view.live import view_trajectory

        return view_trajectory(self, port=port, block=block, browser=browser)


#: units of coordinates by their kind, where they are not angles; a spline's count its pieces
UNITS = {"slide": "m", "distance": "m", "spline": "1"}


def read_trajectory(mechanism: Mechanism, formulation: str, time: np.ndarray, readings: Readings) -> Trajectory:
    """The trajectory of a recorded run, at times (N,)."""
    armature = np.zeros((len(mechanism.joints), 6))
    for joint in mechanism.joints:
        armature[joint.index, : joint.type.freedom] = joint.type.armature
    return Trajectory(
        mechanism=mechanism.name, formulation=formulation,
        bodies=tuple(b.name for b in mechanism.bodies), joints=tuple(j.name for j in mechanism.joints),
        couplings=tuple(coupling_names(mechanism)), paths=tuple(path.name for path in mechanism.paths),
        coordinate_units=tuple(tuple(UNITS.get(kind, "rad") for kind, _ in j.type.directions) for j in mechanism.joints),
        mass=np.array([b.mass for b in mechanism.bodies]), inertia=np.array([b.inertia for b in mechanism.bodies]),
        armature=armature if armature.any() else None, model=mechanism, touching=readings.touching, happenings=readings.events,
        _values={"time": time, **readings.values}, _providers=readings.providers, _least_norm=readings.least_norm,
    )


def _squeezed(values: np.ndarray, free: int) -> np.ndarray:
    """Numbers (N, 6) along a joint's directions as (N, freedom), or (N,) for a joint with one."""
    return values[:, 0] if free == 1 else values[:, :free]


def _shares(values: np.ndarray, free: int) -> dict[str, np.ndarray]:
    """Shares (N, 6, shares) by name."""
    return {name: _squeezed(values[..., k], free) for k, name in enumerate(SHARES)}


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Rotate vectors (..., 3) by unit quaternions (..., 4)."""
    w, u = q[..., :1], q[..., 1:]
    t = 2.0 * cross(u, v)
    return v + w * t + cross(u, t)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross products (..., 3); for few vectors several times as fast as NumPy's."""
    return a[..., NEXT] * b[..., AFTER] - a[..., AFTER] * b[..., NEXT]


#: which axes follow x, y and z
NEXT, AFTER = np.array([1, 2, 0]), np.array([2, 0, 1])
