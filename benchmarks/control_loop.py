"""A control loop in Python: one step, one reset, and sensors of a cart with a pole, in microseconds of the processor."""
from __future__ import annotations

from time import process_time

import numpy as np

import dalembert as da

REPEATS, COUNT = 7, 1000


def cart_pole() -> da.Mechanism:
    m = da.Mechanism("cart and pole")
    m.body("cart", da.Box(size=(0.3, 0.2, 0.1), mass=1.0))
    m.body("pole", da.Rod(length=0.6, radius=0.01, mass=0.2), position=(0, 0, 0.3))
    m.joint("slide", da.Prismatic(axis="x", drive="force"), "world", "cart")
    m.joint("hinge", da.Revolute(axis="y", damping=1e-3), "cart", "pole")
    m.sensor("angle", da.Encoder(), "hinge")
    m.sensor("imu", da.IMU(), "pole")
    m.sensor("bearing", da.ForceTorque(), "hinge")
    return m


def main() -> None:
    for formulation in (da.Variational(dt=0.01), da.Implicit(dt=0.01), da.Reduced(dt=0.01)):
        sim = da.Simulation(cart_pole(), formulation)
        sim.set_joint("hinge", 0.1)

        def fresh(name: str, sim: da.Simulation = sim) -> None:
            sim.step({"slide": 0.1})
            sim.sensor(name)

        jobs = {
            "step": lambda sim=sim: sim.step({"slide": 0.1}), "reset": sim.reset,
            **{f"step and sensor {s.name!r}": lambda name=s.name: fresh(name) for s in sim.mechanism.sensors},
        }
        for name, job in jobs.items():
            job()
            count, times = COUNT if name in ("step", "reset") else COUNT // 10, []
            for _ in range(REPEATS):
                sim.reset()
                tick = process_time()
                for _ in range(count):
                    job()
                times.append((process_time() - tick) / count * 1e6)
            print(f"{type(formulation).__name__:12} {name:28} {np.median(times):8.1f} us (spread {np.ptp(times):.1f})")


if __name__ == "__main__":
    main()
