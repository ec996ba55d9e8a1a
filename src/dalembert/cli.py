"""The ``dalembert`` command: run, view, info, compare, convert, zoo.

Exit codes: 0 done, 1 the simulation or a check failed, 2 wrong usage, 3 a file or model was refused, 4 an extra is
missing, 130 interrupted. Errors are one line on stderr; ``--debug`` shows the traceback.
"""
from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from dalembert.errors import DalembertError, MissingExtraError, ModelError

DONE, FAILED, USAGE, REFUSED, MISSING, INTERRUPTED = 0, 1, 2, 3, 4, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return options.action(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return DONE
    except Exception as error:
        if options.debug:
            raise
        if not isinstance(error, DalembertError | OSError):
            print(f"dalembert: {type(error).__name__}: {_line(error)} (--debug shows where)", file=sys.stderr)
            return FAILED
        print(f"dalembert: {_line(error)}", file=sys.stderr)
        if isinstance(error, MissingExtraError):
            return MISSING
        return REFUSED if isinstance(error, ModelError | OSError) else FAILED


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _parser() -> argparse.ArgumentParser:
    import dalembert

    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of errors")
    loading = argparse.ArgumentParser(add_help=False)
    loading.add_argument("model", metavar="MODEL", help="a .urdf, .xml (MJCF), .toml or .json file, or the name of a mechanism of the zoo")
    loading.add_argument("--base", choices=("fixed", "free"), help="hold a robot's root on the world, or let it float")
    loading.add_argument("--merge-fixed", action="store_true", help="make links that are fixed to another part of it")
    loading.add_argument("--strict", action="store_true", help="refuse files that ask for what is not supported")
    loading.add_argument("--root", type=Path, help="folder that meshes and included files may come from")
    starting = argparse.ArgumentParser(add_help=False)
    starting.add_argument("--set", dest="joints", metavar="JOINT=VALUE", action="append", default=[], help="where a joint starts, m or rad; numbers separated by commas for several coordinates")

    parser = argparse.ArgumentParser(prog="dalembert", description="Exact multibody dynamics.", parents=[common])
    parser.add_argument("--version", action="version", version=f"dalembert {dalembert.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser("run", parents=[common, loading, starting], help="simulate a model")
    run.add_argument("--formulation", default="variational", help=f"one of: {', '.join(formulations())} (default: variational)")
    run.add_argument("--dt", type=float, default=0.002, help="step in s (default: %(default)s)")
    run.add_argument("--duration", type=float, default=5.0, help="length in s (default: %(default)s)")
    run.add_argument("--out", type=Path, help="write the trajectory: .h5, .csv or .npz")
    run.add_argument("--html", type=Path, help="write a page that shows the run")
    run.add_argument("--plot", type=Path, help="write a plot of the energy")
    run.add_argument("--video", type=Path, help="write a film: .mp4 or .gif")
    run.set_defaults(action=_run)

    view = commands.add_parser("view", parents=[common], help="show a trajectory or a model in the browser")
    view.add_argument("file", metavar="FILE", help="a trajectory (.h5), or a model to simulate while looking at it")
    view.add_argument("--port", type=int, default=8080)
    view.add_argument("--dt", type=float, default=0.005, help="step in s, for a model (default: %(default)s)")
    view.add_argument("--base", choices=("fixed", "free"))
    view.set_defaults(action=_view)

    info = commands.add_parser("info", parents=[common, loading], help="what a model consists of")
    info.set_defaults(action=_info)

    compare = commands.add_parser("compare", parents=[common, loading, starting], help="formulations side by side as dt shrinks")
    compare.add_argument("--dt", type=float, default=0.004, help="the largest step in s (default: %(default)s)")
    compare.add_argument("--duration", type=float, default=0.5, help="length in s (default: %(default)s)")
    compare.add_argument("--halvings", type=int, default=3, help="how often dt is halved (default: %(default)s)")
    compare.add_argument("--plot", type=Path, help="write a plot of the differences")
    compare.set_defaults(action=_compare)

    convert = commands.add_parser("convert", parents=[common, loading], help="a model to .toml, .json or .urdf; a trajectory (.h5) to .csv, .npz or .html")
    convert.add_argument("target", metavar="OUT", type=Path)
    convert.add_argument("--lossy", action="store_true", help="leave out what a URDF file cannot hold")
    convert.set_defaults(action=_convert)

    zoo = commands.add_parser("zoo", parents=[common], help="list the ready mechanisms, or describe one")
    zoo.add_argument("name", nargs="?", help="a mechanism of the zoo")
    zoo.set_defaults(action=_zoo)
    return parser


# ---- what several commands need


def formulations() -> dict[str, Any]:
    """The formulations that this version has, by lower-case name."""
    import dalembert as da

    names = ("Variational", "Implicit", "Reduced")
    return {name.lower(): getattr(da, name) for name in names if hasattr(da, name)}


def mechanisms() -> dict[str, Callable[..., Any]]:
    """The mechanisms of the zoo by name."""
    import dalembert as da

    functions = {name: getattr(da.zoo, name) for name in da.zoo.__all__ if inspect.isfunction(getattr(da.zoo, name))}
    return {n: f for n, f in functions.items() if inspect.signature(f).return_annotation in ("Mechanism", da.Mechanism)}


def _load(options: argparse.Namespace) -> Any:
    import dalembert as da

    if not Path(options.model).suffix and options.model in mechanisms():
        return mechanisms()[options.model]()
    if not Path(options.model).suffix and not Path(options.model).exists():
        raise ModelError(f"there is no file {options.model!r}, and no mechanism of that name in the zoo (see: dalembert zoo)")
    mechanism = da.load(options.model, strict=options.strict, merge_fixed=options.merge_fixed, base=options.base, root=options.root)
    if mechanism.report and options.command != "info":
        print(f"{len(mechanism.report)} things of the file are not simulated; dalembert info {options.model} lists them", file=sys.stderr)
    return mechanism


def _start(simulation: Any, joints: list[str]) -> None:
    for wish in joints:
        name, equals, value = wish.rpartition("=")
        try:
            numbers = [float(v) for v in value.split(",")]
        except ValueError:
            numbers = []
        if not equals or not numbers:
            raise ModelError(f"--set takes JOINT=VALUE with numbers, got {wish!r}")
        simulation.set_joint(name, numbers if len(numbers) > 1 else numbers[0])


def _check_targets(*paths: Path | None) -> None:
    """Say before a long run that its results would have no place."""
    for path in paths:
        if path is not None and not path.resolve().parent.is_dir():
            raise FileNotFoundError(f"cannot write {path}: there is no folder {path.resolve().parent}")


# ---- the commands


def _run(options: argparse.Namespace) -> int:
    import dalembert as da

    chosen = formulations().get(options.formulation.lower())
    if chosen is None:
        raise ModelError(f"there is no formulation {options.formulation!r}; choose from: {', '.join(formulations())}")
    _check_targets(options.out, options.html, options.plot, options.video)
    mechanism = _load(options)
    tick = perf_counter()
    simulation = da.Simulation(mechanism, chosen(dt=options.dt))
    _start(simulation, options.joints)
    trajectory = simulation.run(options.duration)
    spent = perf_counter() - tick
    energy = trajectory.energy().total
    print(f"{mechanism.name}: {len(trajectory) - 1} steps to t = {trajectory.time[-1]:.6g} s in {spent:.2f} s")
    print(f"largest constraint violation  {trajectory.constraint_violation().max():.2e} m or rad")
    print(f"energy                        {energy[0]:.6g} J at the start, {energy[-1]:.6g} J at the end")
    for path, write in (
        (options.out, trajectory.save), (options.html, trajectory.to_html),
        (options.plot, lambda p: trajectory.plot("energy", path=p)), (options.video, trajectory.to_video),
    ):
        if path is not None:
            write(path)
            print(f"wrote {path}")
    stopped = trajectory.time[-1] < options.duration - 0.5 * options.dt
    return INTERRUPTED if stopped else DONE


def _view(options: argparse.Namespace) -> int:
    import dalembert as da

    if Path(options.file).suffix.lower() in (".h5", ".hdf5"):
        da.Trajectory.load(options.file).view(port=options.port)
        return DONE
    known = mechanisms()
    mechanism = known[options.file]() if options.file in known else da.load(options.file, base=options.base)
    da.Simulation(mechanism, da.Variational(dt=options.dt)).view(port=options.port)
    return DONE


def _info(options: argparse.Namespace) -> int:
    from dalembert.mechanism.topology import loop_count

    mechanism = _load(options)
    rows, rank = _rows(mechanism)
    coordinates = 6 * len(mechanism.bodies)
    driven = [j.name for j in mechanism.joints if any(d is not None for d in j.type.drive)]
    print(f"{mechanism.name}")
    for name, value in (
        ("bodies", len(mechanism.bodies)), ("joints", len(mechanism.joints)), ("gears", len(mechanism.couplings)),
        ("mass", f"{mechanism.mass:.6g} kg"), ("degrees of freedom", coordinates - rank), ("loops", loop_count(mechanism)),
        ("constraint rows", rows), ("redundant rows", rows - rank), ("driven joints", len(driven)), ("actuators", len(mechanism.actuators)),
    ):
        print(f"  {name:20}{value}")
    print("bodies")
    for body in mechanism.bodies:
        print(f"  {body.name:28} {body.mass:10.6g} kg   at {np.round(body.position, 4).tolist()}")
    print("joints")
    for joint in mechanism.joints:
        print(f"  {joint.name:28} {type(joint.type).__name__:12} {joint.parent.name} -> {joint.child.name}")
    if mechanism.report:
        print(f"not simulated ({len(mechanism.report)})")
        for line in mechanism.report:
            print(f"  {line}")
    return DONE


def _rows(mechanism: Any) -> tuple[int, int]:
    """Number and rank of the constraint rows at the reference pose (the start, where loops are closed)."""
    import dalembert as da

    engine = da.Simulation(mechanism, da.Variational(dt=0.01))._engine
    engine.refresh()
    count = len(mechanism.bodies)
    rows = []
    for joint in engine.records.joints:
        for k in range(int(joint["locks"])):
            row = np.zeros((count + 1, 6))
            row[joint["parent"]] += joint["Gp"][k]
            row[joint["child"]] += joint["Gc"][k]
            rows.append(row[:count].ravel())
    for coupling in engine.records.couplings:
        row = np.zeros((count, 6))
        for slot in range(int(coupling["bodies"])):
            row[coupling["body"][slot]] += coupling["G"][slot]
        rows.append(row.ravel())
    if not rows:
        return 0, 0
    matrix = np.array(rows)
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-300)
    return len(rows), int(np.linalg.matrix_rank(matrix, tol=1e-7))


def _compare(options: argparse.Namespace) -> int:
    import dalembert as da

    if not 1 <= options.halvings <= 10:
        raise ModelError(f"--halvings must be between 1 and 10, got {options.halvings}")
    _check_targets(options.plot)
    steps = [options.dt / 2**k for k in range(options.halvings + 1)]
    ends: dict[str, list[np.ndarray]] = {}
    for name, formulation in formulations().items():
        try:
            ends[name] = []
            for dt in steps:
                simulation = da.Simulation(_load(options), formulation(dt=dt))
                _start(simulation, options.joints)
                ends[name].append(simulation.run(options.duration).position[-1])
        except DalembertError as error:
            print(f"{name}: cannot take this model: {_line(error)}", file=sys.stderr)
            del ends[name]
    if not ends:
        return FAILED
    reference_name = "variational" if "variational" in ends else next(iter(ends))
    finest = ends[reference_name]
    reference = finest[-1] + (finest[-1] - finest[-2]) / 3.0  # second order: what remains at dt = 0
    print(f"largest difference of a position (m) at t = {options.duration:g} s from {reference_name} extrapolated to dt = 0")
    print("dt / s".ljust(12) + "".join(name.rjust(16) for name in ends))
    errors = {name: [float(np.abs(x - reference).max()) for x in values] for name, values in ends.items()}
    for k, dt in enumerate(steps):
        print(f"{dt:<12.3g}" + "".join(f"{errors[name][k]:16.3e}" for name in ends))
    print("order".ljust(12) + "".join(f"{np.log2(errors[n][0] / max(errors[n][-2], 1e-300)) / max(len(steps) - 2, 1):16.2f}" for n in ends))
    if options.plot is not None:
        _plot_differences(steps, errors, options.plot)
        print(f"wrote {options.plot}")
    return DONE


def _plot_differences(steps: list[float], errors: dict[str, list[float]], path: Path) -> None:
    from dalembert.view.plots import COLOURS, RESOLUTION, _check_ending, _figure, _finish, _legend

    figure = _figure()
    _check_ending(figure, path)
    axis = figure.subplots()
    for (name, values), colour in zip(errors.items(), COLOURS):
        axis.loglog(steps, values, "o-", color=colour, label=name)
    axis.set_xlabel("dt / s")
    _finish(axis, "largest difference / m")
    _legend(axis)
    figure.savefig(path, dpi=RESOLUTION)


def _convert(options: argparse.Namespace) -> int:
    import dalembert as da

    ending = options.target.suffix.lower()
    if Path(options.model).suffix.lower() in (".h5", ".hdf5"):
        trajectory = da.Trajectory.load(options.model)
        if ending not in (".csv", ".npz", ".html", ".mp4", ".gif", ".png"):
            raise ModelError(f"a trajectory cannot become {options.target}; choose from .csv, .npz, .html, .mp4, .gif, .png")
        write = {".html": trajectory.to_html, ".mp4": trajectory.to_video, ".gif": trajectory.to_video, ".png": trajectory.snapshot}.get(ending, trajectory.save)
        write(options.target)
    elif ending == ".urdf":
        from dalembert.io.urdf_export import save_urdf

        for line in save_urdf(_load(options), options.target, lossy=options.lossy):
            print(f"left out: {line}", file=sys.stderr)
    else:
        _load(options).save(options.target)
    print(f"wrote {options.target}")
    return DONE


def _zoo(options: argparse.Namespace) -> int:
    known = mechanisms()
    if options.name is None:
        for name, make in known.items():
            print(f"{name:20} {(inspect.getdoc(make) or '').splitlines()[0]}")
        return DONE
    if options.name not in known:
        raise ModelError(f"the zoo has no {options.name!r}; it has: {', '.join(known)}")
    make = known[options.name]
    print(f"{options.name}{inspect.signature(make)}\n\n{inspect.getdoc(make)}")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
