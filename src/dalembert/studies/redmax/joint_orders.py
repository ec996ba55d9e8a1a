"""Implicit integrators in joint coordinates, joint by joint: errors as the step is halved."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.mechanism.joints import JOINTS, Distance, Fixed
from dalembert.studies.study import Report, study

#: method: the order that it should have on a tree
METHODS = {"bdf1": 1, "bdf2": 2, "sdirk2": 2}
QUICK = (da.Revolute, da.Spherical, da.Cylindrical, da.Planar)


def two_bodies(kind: type[da.Joint]) -> da.Mechanism:
    """A body on a hinge with another one on the joint, both moving."""
    mechanism = da.Mechanism(kind.__name__)
    upper = mechanism.body("upper", da.Box(size=(0.1, 0.2, 0.5), mass=1.0), position=(0, 0, -0.25))
    lower = mechanism.body("lower", da.Box(size=(0.3, 0.1, 0.4), mass=0.7), position=(0.1, 0, -0.7))
    mechanism.joint("hinge", da.Revolute(axis="x"), mechanism.world, upper)
    joint = kind()
    mechanism.joint("joint", joint, upper, lower, at=(0, 0, -0.5))
    mechanism.start("hinge", 0.4, rate=1.0)
    mechanism.start("joint", rate=np.linspace(0.5, -0.4, joint.freedom))
    return mechanism


def end(run: da.Trajectory) -> np.ndarray:
    """Positions and velocities at the end."""
    return np.concatenate([run.position[-1].ravel(), run.velocity[-1].ravel(), run.angular_velocity[-1].ravel()])


@study("sections 2.4 and 3.4", "with every type of joint BDF1 is of first order, BDF2 and SDIRK2 of second, and joints never open")
def joint_orders(report: Report) -> None:
    steps = (0.004, 0.002) if report.quick else (0.008, 0.004, 0.002, 0.001)
    kinds = [kind for kind in (QUICK if report.quick else JOINTS) if kind not in (Fixed, Distance)]
    panels = dict(zip(METHODS, report.panels(1, 3, width=13.0, height=4.2)))
    rows, wrong, opened = [], [], 0.0
    for kind in report.each(kinds, "joint"):
        mechanism = two_bodies(kind)
        exact = end(da.Simulation(mechanism, da.Reduced(dt=0.02, method="DOP853", rtol=1e-12, atol=1e-13)).run(0.2, progress=False))
        orders = []
        for method, expected in METHODS.items():
            runs = [da.Simulation(mechanism, da.Reduced(dt=dt, method=method, tolerance=1e-12), energy_bound=None).run(0.2, progress=False) for dt in steps]
            errors = [float(np.abs(end(run) - exact).max()) for run in runs]
            opened = max(opened, *(run.constraint_violation().max() for run in runs))
            orders.append(np.log2(errors[-2] / errors[-1]))
            wrong += [] if abs(orders[-1] - expected) < 0.25 else [f"{kind.__name__} with {method}"]
            panels[method].loglog(steps, errors, "o-", markersize=3, label=kind.__name__ if method == "sdirk2" else None)
        rows.append((kind.__name__, *orders))
    for method, axis in panels.items():
        axis.set_xticks(steps, [f"{step:g}" for step in steps])
        axis.minorticks_off()
        axis.set(xlabel="step / s", ylabel=f"error of {method.upper()} / m, m/s, rad/s")
    report.table(("joint", *(f"order of {method.upper()}" for method in METHODS)), rows)
    report.verdict(not wrong and opened < 1e-12, f"{len(rows)} joints, opened by {opened:.0e} at the most" + (f"; not {', '.join(wrong)}" if wrong else ""))
