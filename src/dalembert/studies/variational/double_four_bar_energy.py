"""The double four-bar linkage through its singular poses, against an integrator that keeps constraints of velocity too (GGL)."""
from __future__ import annotations

import numpy as np

import dalembert as da
from dalembert.studies.baselines.ggl import PlanarLinkage, step
from dalembert.studies.study import Report, study

DT = 0.01


def planar_double_four_bar() -> tuple[PlanarLinkage, np.ndarray, np.ndarray]:
    """``da.zoo.double_four_bar`` for the planar integrator: three cranks, two couplers; coordinates and momenta at the start."""
    half = 0.5
    cranks = [(-1, (float(i), 0.0), i, (-half, 0.0)) for i in range(3)]
    couplers = [pin for k in range(2) for pin in ((k, (half, 0.0), 3 + k, (-half, 0.0)), (k + 1, (half, 0.0), 3 + k, (half, 0.0)))]
    linkage = PlanarLinkage(np.ones(5), np.full(5, 1.0 / 12.0), tuple(cranks + couplers))
    q = np.array([*((i, half, 0.5 * np.pi) for i in range(3)), (0.5, 1.0, 0.0), (1.5, 1.0, 0.0)])
    v = np.array([*((half, 0.0, -1.0) for _ in range(3)), (1.0, 0.0, 0.0), (1.0, 0.0, 0.0)])
    return linkage, q.ravel(), v.ravel() * linkage.weights


def drift(error: np.ndarray, kinetic: np.ndarray) -> float:
    """How the energy error (J) changes from the first time that the cranks stand upright, at their slowest, to the last."""
    upright = np.flatnonzero((kinetic[1:-1] < kinetic[:-2]) & (kinetic[1:-1] <= kinetic[2:])) + 1
    return float(error[upright[-1]] - error[0])


@study("figure 12", "the energy of the double four-bar stays bounded through its singular poses, while that of the GGL method drifts; both keep the joints closed")
def double_four_bar_energy(report: Report) -> None:
    duration = 5.0 if report.quick else 20.0
    run = da.Simulation(da.zoo.double_four_bar(), da.Variational(dt=DT)).run(duration, progress=False)
    report.page(run)
    linkage, q, p = planar_double_four_bar()
    kept = [(q, p)]
    for _ in report.each(range(round(duration / DT)), "step"):
        kept.append(step(linkage, *kept[-1], DT))
    q, p = (np.array(part) for part in zip(*kept))
    kinetic, potential = linkage.energy(q, p)
    gap = np.array([np.abs(linkage.rows(each, each)[0]).max() for each in q])
    ours = run.energy()
    errors = {"variational": ours.total - ours.total[0], "GGL": kinetic + potential - (kinetic + potential)[0]}
    gaps = {"variational": run.constraint_violation(), "GGL": gap}
    tip = {"variational": run.point("crank 0", (0.5, 0.0, 0.0)), "GGL": q[:, :2] + 0.5 * np.stack([np.cos(q[:, 2]), np.sin(q[:, 2])], axis=1)}
    axes = report.panels(2, 2, width=9.0, height=6.5)
    rows = []
    for name, error in errors.items():
        axes[0].plot(run.time, tip[name][:, 0], label=name)
        axes[1].plot(run.time, error, label=name)
        axes[2].semilogy(run.time, gaps[name].clip(1e-17), label=name)
        rows.append((name, np.abs(error).max(), drift(error, ours.kinetic if name == "variational" else kinetic), gaps[name].max()))
    for name, energy in (("kinetic", ours.kinetic), ("potential", ours.potential), ("total", ours.total)):
        axes[3].plot(run.time, energy, label=name)
    for axis, label in zip(axes, ("x of the first coupler's end / m", "energy error / J", "constraint violation / m", "energy / J")):
        axis.set(xlabel="time / s", ylabel=label)
    report.table(("method", "largest energy error / J", "error when last upright / J", "violation / m"), rows)
    (_, largest, our_drift, our_gap), (_, _, their_drift, their_gap) = rows
    report.verdict(
        abs(our_drift) < 0.1 * largest and abs(their_drift) > 10.0 * abs(our_drift) and max(our_gap, their_gap) < 1e-8,
        f"energy error when last upright {our_drift:.0e} J, never more than {largest:.2g} J; GGL {their_drift:.2g} J; violations {our_gap:.0e} and {their_gap:.0e} m",
    )
