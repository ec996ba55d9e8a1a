"""Vibrations about an equilibrium: frequencies, damping, shapes, and films of them."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.transform import Rotation

from dalembert.errors import AssemblyError, EquilibriumError, ModelError
from dalembert.forces.loads import potential_energy
from dalembert.formulations.engine import SHARES, Readings
from dalembert.gradients.coordinates import coordinate_rows, coordinates_of
from dalembert.gradients.curved import reaches
from dalembert.gradients.equilibrium import balance_at
from dalembert.gradients.linearise import Linearisation, linearise
from dalembert.gradients.situation import Situation
from dalembert.gradients.space import Closer, follow_motion
from dalembert.simulation.trajectory import Trajectory, read_trajectory

#: forces in balance, as a part of all forces that act
BALANCED = 1e-6
#: parts of the largest eigenvalue that count as none
NOTHING = 1e-9
#: a film moves bodies by this part of the size of the mechanism, or (rad) turns them by this much
SEEN = 0.15


@dataclass(frozen=True, eq=False)
class Modes:
    """Vibrations about an equilibrium, the slowest first; m of them.

    ``eigenvalues`` (m,), 1/s: the motion of a mode is the real part of its shape times exp(eigenvalue t). Of a pair of complex
    ones there is that with the positive imaginary part; a mode that does not swing has a real one. ``coordinates``: names of the
    independent coordinates, in the order of ``shapes`` (m, d); ``body_shapes`` (m, n, 6): displacement (world) and rotation (body
    axes) of each body. Shapes are real where nothing damps; they are scaled to unit modal mass (x^H M x = 1).
    """

    eigenvalues: np.ndarray
    coordinates: tuple[str, ...]
    shapes: np.ndarray
    body_shapes: np.ndarray
    linearisation: Linearisation
    _situation: Situation = field(repr=False)

    def __len__(self) -> int:
        return len(self.eigenvalues)

    @property
    def angular_frequencies(self) -> np.ndarray:
        """(m,) rad/s, of the undamped motion: the sizes of the eigenvalues; zero for modes that grow or decay without swinging."""
        return np.where(self.swinging, np.abs(self.eigenvalues), 0.0)

    @property
    def frequencies(self) -> np.ndarray:
        """(m,) Hz, of the undamped motion."""
        return self.angular_frequencies / (2.0 * np.pi)

    @property
    def damped_frequencies(self) -> np.ndarray:
        """(m,) Hz, at which the modes do swing."""
        return np.imag(self.eigenvalues) / (2.0 * np.pi)

    @property
    def damping_ratios(self) -> np.ndarray:
        """(m,) 0 without damping, 1 where a mode no longer swings; negative for modes that grow."""
        sizes = np.abs(self.eigenvalues)
        return np.where(sizes > 0.0, -np.real(self.eigenvalues) / np.where(sizes > 0.0, sizes, 1.0), 0.0)

    @property
    def growing(self) -> np.ndarray:
        """(m,) whether a mode grows: then the equilibrium is unstable."""
        return np.real(self.eigenvalues) > NOTHING * np.abs(self.eigenvalues).max(initial=0.0)

    @property
    def swinging(self) -> np.ndarray:
        """(m,) whether a mode swings."""
        return np.imag(self.eigenvalues) > 0.0

    @cached_property
    def _all_coordinates(self) -> dict[str, np.ndarray]:
        placement = self._situation.placement()
        motions = self.body_shapes.reshape(len(self), -1).T
        return {
            j.name: (coordinate_rows(placement, coordinates_of(j)) @ motions).T for j in self._situation.mechanism.joints if j.type.freedom
        }

    def joint(self, name: str) -> np.ndarray:
        """(m, freedom), or (m,) for a joint with one: what a joint's coordinates, independent or not, do in each mode."""
        if name not in self._all_coordinates:
            raise ModelError(f"{self._situation.mechanism.name!r} has no joint {name!r} with coordinates; it has: {', '.join(self._all_coordinates)}")
        shape = self._all_coordinates[name]
        return shape[:, 0] if shape.shape[1] == 1 else shape

    def body(self, name: str) -> np.ndarray:
        """(m, 6) displacement (world) and rotation (body axes) of a body in each mode."""
        names = [b.name for b in self._situation.mechanism.bodies]
        if name not in names:
            raise ModelError(f"{self._situation.mechanism.name!r} has no body {name!r}; it has: {', '.join(names)}")
        return self.body_shapes[:, names.index(name)]

    def animate(self, mode: int, *, amplitude: float | None = None, periods: float = 2.0, frames: int = 60) -> Trajectory:
        """A film of a mode, as a trajectory: ``to_html``, ``view``, ``to_video`` and ``snapshot`` show it.

        ``amplitude``: factor of the shape, by default one that can be seen; ``frames``: per period. Joints stay closed: bodies go along
        the shape and then where their joints allow. The film does not decay or grow, takes a second per period for modes that do
        not swing, and knows poses, velocities and energies; forces in it are zero.
        """
        if not isinstance(mode, int | np.integer) or not -len(self) <= mode < len(self):
            raise ModelError(f"there are {len(self)} modes, numbered from 0; got {mode!r}")
        for value, what in ((periods, "periods"), (frames, "frames"), (1.0 if amplitude is None else amplitude, "amplitude")):
            if not (np.isfinite(value) and value > 0):
                raise ModelError(f"{what} of a film must be positive, got {value!r}")
        return _film(self, int(mode) % len(self), amplitude, periods, int(frames))


def find_modes(situation: Situation, coordinates: Iterable[str] | None) -> Modes:
    """Modes about a situation that is an equilibrium."""
    name = situation.mechanism.name
    if np.abs(situation.start.velocity).max() > 0.0:
        raise EquilibriumError(f"{name!r} moves: modes are those about rest. Call equilibrium() first; linearise() takes moving states.")
    balance = balance_at(situation.placement(), situation)
    if balance.size > BALANCED * balance.scale:
        raise EquilibriumError(
            f"the forces on {name!r} are not in balance here: {balance.size / balance.scale:.2g} of them would move it. Call equilibrium() first."
        )
    linear = linearise(situation, [], coordinates)
    eigenvalues, shapes = _solve(linear.mass, linear.damping, linear.stiffness)
    bodies = (linear.motions @ shapes.T).T.reshape(len(shapes), -1, 6)
    return Modes(eigenvalues, linear.coordinates, shapes, bodies, linear, situation)


def _solve(M: np.ndarray, D: np.ndarray, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (m,) and shapes (m, d) of (s^2 M + s D + K) x = 0."""
    size = np.abs(K).max(initial=0.0)
    symmetric = np.abs(K - K.T).max() <= 1e-7 * size
    if symmetric and not D.any():
        values, vectors = eigh(0.5 * (K + K.T), M)
        values = np.where(np.abs(values) <= NOTHING * np.abs(values).max(), 0.0, values)
        eigenvalues = np.where(values >= 0.0, 1j * np.sqrt(np.abs(values)), np.sqrt(np.abs(values)))
        return _sorted(eigenvalues, _signed(vectors.T))
    count = len(M)
    if symmetric:
        K = 0.5 * (K + K.T)
    # Scaled so that positions and rates are alike in size, which eigenvalue solvers like.
    pace = np.sqrt(max(size / np.abs(M).max(), 1e-300)) if size > 0.0 else 1.0
    A = np.block([[np.zeros((count, count)), pace * np.eye(count)], [-np.linalg.solve(M, K) / pace, -np.linalg.solve(M, D)]])
    values, vectors = np.linalg.eig(A)
    nothing = NOTHING * np.abs(values).max(initial=0.0)
    values = np.where(np.abs(np.imag(values)) <= nothing, np.real(values) + 0j, values)
    values = np.where(np.abs(values) <= nothing, 0j, values)
    kept = np.imag(values) >= 0.0
    shapes = vectors[:count, kept].T
    sizes = np.sqrt(np.real(np.einsum("mi,ij,mj->m", shapes.conj(), M, shapes)))
    shapes = shapes / np.maximum(sizes, 1e-300)[:, None]
    return _sorted(values[kept], _signed(shapes))


def _sorted(values: np.ndarray, shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((np.real(values), np.abs(values)))
    return values[order], shapes[order]


def _signed(shapes: np.ndarray) -> np.ndarray:
    """Shapes whose largest number is real and positive."""
    largest = shapes[np.arange(len(shapes)), np.argmax(np.abs(shapes), axis=1)]
    return shapes * (np.abs(largest) / np.where(largest == 0.0, 1.0, largest))[:, None]


def _film(modes: Modes, mode: int, amplitude: float | None, periods: float, frames: int) -> Trajectory:
    situation, mechanism = modes._situation, modes._situation.mechanism
    placement = situation.placement()
    shape, spin = modes.body_shapes[mode].ravel(), float(np.imag(modes.eigenvalues[mode]))
    rate = spin if spin > 0.0 else 2.0 * np.pi
    amplitude = _visible(situation, shape) if amplitude is None else amplitude
    time = np.arange(round(periods * frames) + 1) / frames * 2.0 * np.pi / rate
    count, joints, couplings = placement.sizes
    knots = len(time)
    values = dict(
        position=np.zeros((knots, count, 3)), orientation=np.zeros((knots, count, 4)), coordinate=np.zeros((knots, joints, 6)), potential=np.zeros(knots),
        violation=np.zeros((knots, joints, 6)), coupling_violation=np.zeros((knots, couplings)), coupling=np.zeros((knots, couplings)),
        substeps=np.zeros(knots, dtype=int), iterations=np.zeros(knots, dtype=int),
        force=np.zeros((knots, joints, 3)), torque=np.zeros((knots, joints, 3)), actuation=np.zeros((knots, joints, 6)),
        share=np.zeros((knots, joints, 6, len(SHARES))), coupling_force=np.zeros((knots, couplings)),
    )
    begun, closer = placement.keep(), Closer(placement)
    for knot, t in enumerate(time):
        placement.restore(begun)
        follow_motion(placement, amplitude * np.real(shape * np.exp(1j * rate * t)))
        try:
            closer.close()
        except AssemblyError:
            raise ModelError(f"mode {mode} of {mechanism.name!r} cannot be shown with an amplitude of {amplitude:g}: a loop does not close. Take less.") from None
        work = placement.work
        values["position"][knot], values["orientation"][knot] = work.bodies["x"][:-1], work.bodies["q"][:-1]
        values["coordinate"][knot], values["coupling"][knot] = work.joints["coordinate"], work.couplings["value"]
        values["violation"][knot], values["coupling_violation"][knot] = placement.opened()
        values["potential"][knot] = potential_energy(placement.model, work)
    values["velocity"] = _slopes(values["position"], time)
    turns = [Rotation.from_quat(values["orientation"][:, body], scalar_first=True) for body in range(count)]
    steps = np.stack([(turn[:-1].inv() * turn[1:]).as_rotvec() for turn in turns], axis=1) / np.diff(time)[:, None, None]
    values["angular_velocity"] = np.concatenate([steps[:1], 0.5 * (steps[1:] + steps[:-1]), steps[-1:]])
    values["rate"], values["coupling_rate"] = _slopes(values["coordinate"], time), _slopes(values["coupling"], time)
    return read_trajectory(mechanism, f"mode {mode}", time, Readings(values, ()))


def _slopes(values: np.ndarray, time: np.ndarray) -> np.ndarray:
    return np.gradient(values, time, axis=0) if values.size else values.copy()


def _visible(situation: Situation, shape: np.ndarray) -> float:
    """A factor of a shape (6 n,) that shows it."""
    extent = float(np.ptp(situation.start.position, axis=0).max())
    extent = max(extent, float(reaches(situation.model).max()))
    step = np.abs(shape.reshape(-1, 6))
    return SEEN / max(float(step[:, :3].max()) / extent, 0.5 * float(step[:, 3:].max()), 1e-300)
