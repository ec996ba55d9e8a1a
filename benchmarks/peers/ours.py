"""dalembert itself: the public ``run``, with what it records."""
from __future__ import annotations

import warnings

from scipy.spatial.transform import Rotation

import dalembert as da
from benchmarks.comparison.scene import Poses, Scene
from dalembert.formulations.engine import Formulation

VARIATIONAL, IMPLICIT, REDUCED = "Variational", "Implicit", "Reduced"
#: those that take contact
IMPLICIT_METHODS = ("bdf2", "bdf1", "sdirk2", "pareschi_russo")
EXPLICIT = ("semi_implicit", "linearly_implicit", "rk4")
ADAPTIVE = ("RK45", "DOP853")


class OurModel:
    def __init__(self, scene: Scene, formulation: Formulation) -> None:
        self.sim = da.Simulation(scene.mechanism, formulation, energy_bound=None)
        self.start, self.dt = self.sim.state, formulation.dt

    def reset(self) -> None:
        self.sim.restore(self.start)

    def run(self, steps: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", da.TurnWarning)  # coarse steps are part of the comparison
            self.sim.run(steps * self.dt, progress=False)

    def poses(self) -> Poses:
        return Poses(self.sim.position.copy(), Rotation.from_quat(self.sim.orientation, scalar_first=True).as_matrix())


class Ours:
    name = "dalembert"
    methods = (
        VARIATIONAL, *(f"{IMPLICIT} {m}" for m in (*IMPLICIT_METHODS, "semi_implicit")), *(f"{REDUCED} {m}" for m in (*IMPLICIT_METHODS, *EXPLICIT, *ADAPTIVE)),
    )

    def version(self) -> str:
        return da.__version__

    def refuses(self, scene: Scene, method: str) -> str | None:
        kind = method.split()[-1]
        if scene.ground is not None and (kind in (*EXPLICIT, *ADAPTIVE)):
            return "takes no contact"
        return None

    def build(self, scene: Scene, method: str, dt: float, accuracy: float = 1e-6) -> OurModel:
        return OurModel(scene, formulation(method, dt, accuracy))


def formulation(method: str, dt: float, accuracy: float = 1e-6) -> Formulation:
    """``"Reduced rk4"`` and so on; ``accuracy``: of adaptive methods."""
    name, _, kind = method.partition(" ")
    if name == VARIATIONAL:
        return da.Variational(dt=dt)
    if name == IMPLICIT:
        return da.Implicit(dt=dt, method=kind)
    if kind in ADAPTIVE:
        return da.Reduced(dt=dt, method=kind, rtol=accuracy, atol=1e-2 * accuracy)
    return da.Reduced(dt=dt, method=kind)
