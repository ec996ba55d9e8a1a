"""The ``dalembert`` command: run, view, info, compare, convert, sweep, zoo, study, doctor.

Exit codes: 0 done, 1 the simulation failed, 2 wrong usage, 3 a file or model was refused, 4 an extra is missing,
130 interrupted, 143 ended by SIGTERM. A run that ends early writes what was computed. Errors are one line on stderr; ``--debug`` shows the traceback.
"""
from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NoReturn

import numpy as np

from dalembert.checks import choices, counted
from dalembert.errors import DalembertError, EnergyWarning, MissingExtraError, ModelError, TurnWarning

DONE, FAILED, USAGE, REFUSED, MISSING, INTERRUPTED = 0, 1, 2, 3, 4, 130
#: endings of what can be written, and the module that each needs
TRAJECTORIES = {".h5": "h5py", ".hdf5": "h5py", ".csv": None, ".npz": None}
FILMS = {".mp4": "imageio", ".gif": "imageio"}
PAGES = {".html": None, ".htm": None}
MODELS_3D = {".glb": None}
PICTURES = {".png": None}
MODELS = {".toml": "tomli_w", ".json": "msgspec", ".urdf": None}
EXTRAS = {"h5py": "files", "imageio": "video", "tomli_w": "model", "msgspec": "model", "matplotlib": "plot"}


class UsageError(DalembertError):
    """The words of the command do not go together."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if rest:
        meant = parser.command(options.command)
        alike = choices(rest[0].partition("=")[0], [word for action in meant._actions for word in action.option_strings])
        meant.error(f"unknown argument {rest[0]!r}" + (f", {alike}" if "mean" in alike else ""))
    try:
        with warnings.catch_warnings():
            if not options.debug:
                warnings.simplefilter("ignore")  # of libraries, to people who did not call them
                for kind in (EnergyWarning, TurnWarning):
                    warnings.simplefilter("always", kind)
                warnings.showwarning = _warn
            return options.action(options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # of a reader that has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:
        if options.debug:
            raise
        if not isinstance(error, DalembertError | OSError):
            print(f"dalembert: {type(error).__name__}: {_line(error)} (--debug shows where)", file=sys.stderr)
            return FAILED
        print(f"dalembert: {_line(error)}", file=sys.stderr)
        codes = ((UsageError, USAGE), (MissingExtraError, MISSING), (ModelError, REFUSED), (OSError, REFUSED))
        return next((code for kind, code in codes if isinstance(error, kind)), FAILED)


def _warn(message: Warning | str, *_: Any) -> None:
    print(f"dalembert: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _line(error: BaseException) -> str:
    """What an error says, in one line."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return " ".join(str(error).split())


# ---- the words of the command line


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and what may have been meant."""

    def error(self, message: str) -> NoReturn:
        wrong = re.fullmatch(r"(.*invalid choice: '(.*)') \(choose from (.*)\)", message)
        if wrong is not None:
            alike = choices(wrong.group(2), [word.strip("' ") for word in wrong.group(3).split(",")])
            message = f"{wrong.group(1)}; {alike}" if "mean" in alike else message
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")

    def command(self, name: str) -> Parser:
        """The parser of a command."""
        return next(action.choices[name] for action in self._actions if isinstance(action, argparse._SubParsersAction))


def _number(text: str, words: str = "a number", above: float = -np.inf) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not (np.isfinite(number) and number > above):
        raise argparse.ArgumentTypeError(f"must be {words}, got {text!r}")
    return number


def _positive(text: str) -> float:
    return _number(text, "a positive number", 0.0)


def _place(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {text!r}")
    return Path(text)


def _target(kinds: Iterable[str]) -> Callable[[str], Path]:
    """A file that can be written: its ending, its folder."""
    def read(text: str) -> Path:
        path = Path(text)
        if path.suffix.lower() not in kinds:
            raise argparse.ArgumentTypeError(f"cannot write {text!r}: choose an ending from {', '.join(kinds)}")
        if not path.resolve().parent.is_dir():
            raise argparse.ArgumentTypeError(f"cannot write {text!r}: there is no folder {path.resolve().parent}")
        if path.is_dir():
            raise argparse.ArgumentTypeError(f"cannot write {text!r}: it is a folder")
        return path
    return read


def _whole(text: str, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number from {least}, got {text!r}")
    return int(text)


def _some(text: str) -> int:
    return _whole(text, 1)


def _varied(text: str) -> tuple[str, Any]:
    """NAME=VALUES."""
    from dalembert.sweeps import read_values

    name, equals, values = text.rpartition("=")
    try:
        if equals and name:
            return name, read_values(values)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"takes NAME=LOW:HIGH:COUNT, NAME=V,V,... or NAME=LOW:HIGH with numbers, got {text!r}")


def _plot(text: str) -> tuple[str, Path]:
    """[KIND=]FILE."""
    kind, equals, name = text.partition("=")
    return (kind, Path(name)) if equals else ("energy", Path(text))


def _setting(text: str) -> tuple[str, list[float]]:
    """JOINT=VALUE[,VALUE...]."""
    name, equals, value = text.rpartition("=")
    try:
        numbers = [float(v) for v in value.split(",")]
    except ValueError:
        numbers = []
    if not equals or not name or not numbers or not np.isfinite(numbers).all():
        raise argparse.ArgumentTypeError(f"takes JOINT=VALUE with numbers (m or rad, several separated by commas), got {text!r}")
    return name, numbers


def _parser() -> Parser:
    import dalembert
    from dalembert.comparison import METHODS

    common = Parser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show the traceback of errors")
    loading, perhaps = Parser(add_help=False), Parser(add_help=False)
    for one in (loading, perhaps):
        one.add_argument("model", metavar="MODEL", nargs=None if one is loading else "?", help="a .urdf, .sdf, .usd, .xml (MJCF), .toml or .json file, or a mechanism of the zoo: NAME or NAME:PARAMETER=VALUE,...")
        one.add_argument("--base", choices=("fixed", "free"), help="hold a robot's root on the world, or let it float")
        one.add_argument("--free", dest="base", action="store_const", const="free", help="the same as --base free")
        one.add_argument("--fixed", dest="base", action="store_const", const="fixed", help="the same as --base fixed")
        one.add_argument("--no-contacts", dest="contacts", action="store_false", help="leave out everything that touches")
        one.add_argument("--no-limits", dest="limits", action="store_false", help="leave out limits and dry friction of joints")
        one.add_argument("--merge-fixed", action="store_true", help="make links that are fixed to another part of it")
        one.add_argument("--strict", action="store_true", help="refuse files that ask for what is not supported")
        one.add_argument("--budget", type=_positive, default=1.0, metavar="TIMES", help="read a file that takes so many times more than usual: only if you trust it (default: %(default)g)")
        one.add_argument("--root", type=_place, metavar="FOLDER", help="folder that meshes and included files may come from")
        one.add_argument("--srdf", type=_place, metavar="FILE", help="the SRDF file of a URDF robot: links that it does not keep apart collide")
        one.add_argument("--keyframe", metavar="NAME", help="a keyframe of an MJCF file, or a pose of the SRDF file, to start from")
    starting = Parser(add_help=False)
    starting.add_argument("--set", dest="joints", metavar="JOINT=VALUE", type=_setting, action="append", default=[], help="where a joint starts, m or rad; numbers separated by commas for several coordinates")
    starting.add_argument("--ground", metavar="HEIGHT", nargs="?", type=_number, const=0.0, help="add a level ground at this height in m (default: 0)")
    starting.add_argument("--resolve-overlaps", action="store_true", help="move bodies that overlap at the start apart")
    stepping = Parser(add_help=False)
    stepping.add_argument("--formulation", choices=METHODS, default="variational", help="(default: %(default)s)")
    methods = list(dict.fromkeys(method for names in METHODS.values() for method in names))
    stepping.add_argument("--method", choices=methods, help="of the implicit and the reduced formulation (default: bdf2)")

    parser = Parser(prog="dalembert", description="Exact multibody dynamics.", parents=[common])
    parser.add_argument("--version", action="version", version=f"dalembert {dalembert.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    def command(name: str, action: Callable[[argparse.Namespace], int], parents: list[Parser], text: str) -> Parser:
        added = commands.add_parser(name, parents=[common, *parents], help=text, description=f"{text[0].upper()}{text[1:]}.")
        added.set_defaults(action=action, words=None)
        return added

    run = command("run", _run, [loading, starting, stepping], "simulate a model")
    run.add_argument("--dt", type=_positive, help="step in s (default: 0.002, or what suits the mechanism's own motion)")
    run.add_argument("--duration", type=_positive, help="length in s (default: 5, or what suits the mechanism's own motion)")
    run.add_argument("--out", type=_target(TRAJECTORIES), metavar="FILE", help="write the trajectory: .h5, .csv or .npz")
    run.add_argument("--html", type=_target(PAGES), metavar="FILE", help="write a page that shows the run")
    run.add_argument("--gltf", type=_target(MODELS_3D), metavar="FILE", help="write bodies with their animation: .glb, for Blender and the web")
    run.add_argument("--plot", type=_plot, action="append", default=[], metavar="[KIND=]FILE", help="write a plot, of the energy or another kind: coordinates, velocities, forces, violation, phase, gaps")
    run.add_argument("--video", type=_target(FILMS), metavar="FILE", help="write a film: .mp4 or .gif")

    view = command("view", _view, [loading, starting, stepping], "show a trajectory or a model in the browser")
    view.add_argument("--dt", type=_positive, help="step in s, for a model (default: 0.005, or what suits its own motion)")
    view.add_argument("--hold", action="store_true", help="let sliders place the joints that take a force")
    view.add_argument("--port", type=int, default=8080, help="(default: %(default)s)")
    view.add_argument("--no-browser", action="store_true", help="only say where the page is")

    for one in (run, view):
        one.add_argument("--passive", action="store_true", help="leave out the motion or the controller that a mechanism of the zoo has of its own")

    command("info", _info, [loading], "what a model consists of")

    compare = command("compare", _compare, [loading, starting], "formulations side by side as dt shrinks")
    compare.add_argument("--dt", type=_positive, default=0.004, help="the largest step in s (default: %(default)s)")
    compare.add_argument("--duration", type=_positive, default=0.5, help="length in s (default: %(default)s)")
    compare.add_argument("--halvings", type=int, choices=range(1, 11), default=3, metavar="1-10", help="how often dt is halved (default: %(default)s)")
    compare.add_argument("--plot", type=Path, metavar="FILE", help="write a plot of the differences")

    sweep = command("sweep", _sweep, [loading, starting, stepping], "run a model many times with other numbers")
    sweep.add_argument("--vary", type=_varied, action="append", default=[], metavar="NAME=VALUES", help="a parameter, such as elbow.damping, or where a joint starts: LOW:HIGH:COUNT or V,V,... for values, LOW:HIGH for random ones; several make a grid")
    sweep.add_argument("--measure", action="append", default=[], metavar="WHAT", help="of each run: JOINT (its coordinate at the end), JOINT.rate, JOINT.travel, JOINT.force, JOINT.torque, JOINT.actuation, energy or violation (default: all joints)")
    sweep.add_argument("--samples", type=_some, metavar="N", help="how often all that is random is drawn, at each point of the grid")
    sweep.add_argument("--seed", type=_whole, default=0, help="what random numbers come from (default: %(default)s)")
    sweep.add_argument("--dt", type=_positive, default=0.002, help="step in s (default: %(default)s)")
    sweep.add_argument("--duration", type=_positive, default=5.0, help="length of each run in s (default: %(default)s)")
    sweep.add_argument("--workers", type=_some, metavar="N", help="how many runs go at once (default: one for each processor)")
    sweep.add_argument("--backend", choices=("threads", "processes", "dask", "ray"), default="threads", help="who runs (default: %(default)s)")
    sweep.add_argument("--out", type=_target({".h5": "h5py", ".hdf5": "h5py", ".csv": None}), metavar="FILE", help="write all runs: .h5, to which the same command goes on where it was ended, or .csv")
    sweep.add_argument("--plot", type=Path, metavar="FILE", help="write a plot of what was measured over what was varied")

    convert = command("convert", _convert, [loading], "a model to .toml, .json or .urdf; a trajectory (.h5) to .csv, .npz, .html, .glb, .mp4, .gif or .png")
    convert.add_argument("target", metavar="OUT", type=_target([*MODELS, *TRAJECTORIES, *PAGES, *MODELS_3D, *FILMS, *PICTURES]))
    convert.add_argument("--lossy", action="store_true", help="leave out what a URDF file cannot hold")

    doctor = command("doctor", _doctor, [perhaps, starting, stepping], "versions, cache, processor, a small run, and the self-test of a model: for bug reports")
    doctor.add_argument("--dt", type=_positive, default=0.002, help="step of the self-test in s (default: %(default)s)")
    doctor.add_argument("--steps", type=int, default=40, help="length of the self-test in steps (default: %(default)s)")

    zoo = command("zoo", _zoo, [], "list the ready mechanisms, or describe one")
    zoo.add_argument("name", nargs="?", help="a mechanism of the zoo")

    study = command("study", _study, [], "list the experiments of the papers, or run some")
    study.add_argument("names", nargs="*", metavar="NAME", help="experiments to run")
    study.add_argument("--all", action="store_true", help="run all of them")
    study.add_argument("--quick", action="store_true", help="small versions, in seconds")
    study.add_argument("--out", type=Path, default=Path("out"), metavar="FOLDER", help="where tables, figures and pages go (default: %(default)s)")
    return parser


# ---- what several commands need


def _load(options: argparse.Namespace) -> Any:
    mechanism = _read(options)
    if getattr(options, "ground", None) is not None:
        _add_ground(mechanism, options.ground)
    return mechanism


def _read(options: argparse.Namespace) -> Any:
    import dalembert as da
    from dalembert.zoo.words import SHORT, mechanisms, names_mechanism, read_words

    path = Path(options.model)
    if names_mechanism(options.model) and not path.exists():
        options.words = read_words(options.model, driven=not getattr(options, "passive", True))
        mechanism = options.words.make()
        mechanism = mechanism if options.contacts else mechanism.without_contacts()
        return mechanism if options.limits else mechanism.without_limits()
    if not path.exists() and (not path.suffix or ":" in options.model):
        near = choices(options.model.partition(":")[0], [*mechanisms(), *SHORT])
        raise ModelError(f"there is no file {options.model!r}, and no mechanism of that name in the zoo; {near if 'mean' in near else 'dalembert zoo lists them'}")
    if path.is_dir():
        raise ModelError(f"{options.model!r} is a folder; name the model file in it")
    if is_trajectory(path):
        raise ModelError(f"{options.model!r} is a trajectory, not a model; dalembert view and dalembert convert take it")
    mechanism = da.load(
        path, strict=options.strict, merge_fixed=options.merge_fixed, base=options.base, root=options.root, contacts=options.contacts,
        srdf=options.srdf, keyframe=options.keyframe, limits=options.limits, budget=da.Budget().times(options.budget),
    )
    if mechanism.report and options.command != "info":
        left = f"{counted(len(mechanism.report), 'thing')} of the file {'is' if len(mechanism.report) == 1 else 'are'} not simulated"
        print(f"{left}; dalembert info {options.model} lists {'it' if len(mechanism.report) == 1 else 'them'}", file=sys.stderr)
    return mechanism


def _add_ground(mechanism: Any, height: float) -> None:
    """A level ground; where nothing could touch it, bodies do by their shapes."""
    if not (mechanism.colliders or mechanism.contact_points or any(body.collide for body in mechanism.bodies)):
        formed = [body.name for body in mechanism.bodies if body.shape is not None]
        if not formed:
            raise ModelError(f"--ground: no body of {mechanism.name!r} has a shape that could touch it")
        for name in formed:
            mechanism.change(name, collide=True)
    mechanism.ground(offset=height, name=next(name for name in ("ground", "level ground", "ground below") if name not in mechanism))


def is_trajectory(path: Path) -> bool:
    """True for files that ``Trajectory.load`` reads."""
    return path.suffix.lower() in (".h5", ".hdf5")


def _start(mechanism: Any, formulation: Any, options: argparse.Namespace) -> Any:
    """A simulation with joints where they were asked to be."""
    import dalembert as da

    simulation = da.Simulation(mechanism, formulation)
    for name, numbers in options.joints:
        simulation.set_joint(name, numbers if len(numbers) > 1 else numbers[0])
    if options.resolve_overlaps:
        simulation.resolve_overlaps()
    return simulation


def _own_times(options: argparse.Namespace, **usual: float) -> None:
    """Step and duration that were not asked for: those that show the mechanism's own motion, or the usual ones."""
    driven = getattr(options.words, "driven", None)
    for name, value in usual.items():
        if getattr(options, name) is None:
            setattr(options, name, getattr(driven, name, value))


def _control(simulation: Any, options: argparse.Namespace) -> Any:
    """Have a mechanism of the zoo do what it does of itself, but for joints that were set; returns its controller."""
    driven = getattr(options.words, "driven", None)
    return driven and driven.set_up(simulation, options.words.arguments, [name for name, _ in options.joints])


def _formulation(options: argparse.Namespace) -> Any:
    import dalembert as da
    from dalembert.comparison import METHODS

    known = METHODS[options.formulation]
    if options.method is not None and options.method not in known:
        owners = " or ".join(name for name, methods in METHODS.items() if options.method in methods)
        raise UsageError(f"--method {options.method} belongs to --formulation {owners}")
    if options.formulation == "variational":
        return da.Variational(dt=options.dt)
    make = da.Implicit if options.formulation == "implicit" else da.Reduced
    return make(dt=options.dt, method=options.method or "bdf2")


def _check_extras(*paths: Path | None) -> None:
    """Say before a long run that its results cannot be written."""
    from importlib.util import find_spec

    endings = {**TRAJECTORIES, **FILMS, **MODELS}
    for path in paths:
        module = None if path is None else endings.get(path.suffix.lower())
        if module is not None and find_spec(module) is None:
            raise MissingExtraError(f"writing {path} needs {module}: pip install dalembert[{EXTRAS[module]}]")


# ---- the commands


def _run(options: argparse.Namespace) -> int:
    from dalembert.simulation.room import check_room, series_bytes
    from dalembert.view.plots import PLOTS, new_figure

    _check_extras(options.out, options.video)
    for kind, path in options.plot:
        if kind not in PLOTS:
            raise UsageError(f"--plot cannot draw {kind!r}; {choices(kind, PLOTS)}")
        _folder(path)
        new_figure(path)
    mechanism = _load(options)
    _own_times(options, dt=0.002, duration=5.0)
    if any(kind == "gaps" for kind, _ in options.plot) and not mechanism.touches:
        raise ModelError(f"nothing in {mechanism.name!r} can touch: there are no gaps to plot")
    if options.out is not None:
        check_room(mechanism, max(1, round(options.duration / options.dt)), series_bytes(mechanism))
    simulation = _start(mechanism, _formulation(options), options)
    control = _control(simulation, options)
    tick = perf_counter()
    try:
        trajectory = simulation.run(options.duration, control=control)
    except BaseException as error:
        computed = getattr(error, "trajectory", None)
        if computed is not None and len(computed) > 1:
            print(f"the run ended at t = {computed.time[-1]:.6g} s; what was asked for is written up to there", file=sys.stderr)
            _write(options, computed)
        raise
    _summary(trajectory, perf_counter() - tick)
    _write(options, trajectory)
    return INTERRUPTED if trajectory.interrupted else DONE


def _write(options: argparse.Namespace, trajectory: Any) -> None:
    """The files that were asked for."""
    for path, write in (
        (options.out, trajectory.save), (options.html, trajectory.to_html), (options.gltf, trajectory.to_gltf), (options.video, trajectory.to_video),
        *((path, lambda p, kind=kind: trajectory.plot(kind, path=p)) for kind, path in options.plot),
    ):
        if path is not None:
            write(path)
            print(f"wrote {path}")


def _summary(trajectory: Any, seconds: float) -> None:
    energy, split = trajectory.energy().total, int((trajectory.substeps > 1).sum())
    length, steps = trajectory.time[-1] - trajectory.time[0], len(trajectory) - 1
    lines = {
        "steps": f"{steps} to t = {trajectory.time[-1]:.6g} s, in {seconds:.2f} s ({length / seconds:.3g} times real time, compiling included)",
        "largest violation": f"{trajectory.constraint_violation().max():.2e} m or rad",
        "energy": f"{energy[0]:.6g} J at the start, {energy[-1]:.6g} J at the end",
    }
    if split:
        lines["split steps"] = f"{split}: a smaller --dt would be more exact"
    if trajectory.touching:
        lines["least gap"] = f"{trajectory.contacts().least_gap().min():.2e} m"
    print(f"{trajectory.mechanism}, {trajectory.formulation}")
    for name, text in lines.items():
        print(f"  {name:20}{text}")


def _folder(path: Path) -> None:
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.resolve().parent}")


def _view(options: argparse.Namespace) -> int:
    import dalembert as da

    if not 0 <= options.port <= 65535:
        raise UsageError(f"--port must lie between 0 and 65535, got {options.port}")
    where = dict(port=options.port, browser=False if options.no_browser else None)
    if is_trajectory(Path(options.model)):
        da.Trajectory.load(options.model, budget=da.Budget().times(options.budget)).view(**where)
        return INTERRUPTED
    options.passive |= options.hold
    mechanism = _load(options)
    _own_times(options, dt=0.005)
    ranges = hold(mechanism) if options.hold else {}
    simulation = _start(mechanism, _formulation(options), options)
    simulation.view(**where, ranges=ranges, control=_control(simulation, options))
    return INTERRUPTED  # a view ends by Ctrl-C


def hold(mechanism: Any) -> dict[str, tuple[float, float]]:
    """Let joints that take a force follow a target instead; returns the ranges of those with limits (m or rad)."""
    geared = {coupling.first.name for coupling in mechanism.couplings} | {joint.name for tied in mechanism.maps for joint in tied.joints}
    ranges = {}
    for joint in list(mechanism.joints):
        if joint.type.freedom == 1 and joint.type.drive == ("force",) and joint.name not in geared:
            mechanism.change(joint.name, drive="motion", limits=None, friction=0.0, bearing=None)
            if np.isfinite(joint.type.limits[0]).all():
                ranges[joint.name] = joint.type.limits[0]
    return ranges


def _info(options: argparse.Namespace) -> int:
    mechanism = _load(options)
    notes = list(mechanism.report)
    counts = {"bodies": len(mechanism.bodies), "joints": len(mechanism.joints), "gears": len(mechanism.couplings), "mass": f"{mechanism.mass:.6g} kg", **_rows(mechanism, notes)}
    counts |= {"actuators": len(mechanism.actuators)} if mechanism.actuators else {}
    touching = sum(b.collide for b in mechanism.bodies), len(mechanism.contact_points), len(mechanism.grounds) + len(mechanism.obstacles) + len(mechanism.terrains)
    counts |= {"contact": "{} and {} may touch, {} around".format(counted(touching[0], "body", "bodies"), counted(touching[1], "point"), counted(touching[2], "thing"))} if mechanism.touches else {}
    print(mechanism.name)
    for name, value in counts.items():
        print(f"  {name:20}{value}")
    width = max([len(e.name) for e in (*mechanism.bodies, *mechanism.joints)], default=0)
    print("bodies")
    for body in mechanism.bodies:
        print(f"  {body.name:{width}}  {body.mass:10.6g} kg   at {np.round(body.position, 4).tolist()}")
    if mechanism.joints:
        print("joints")
    for joint in mechanism.joints:
        drive = ", ".join(sorted({d for d in joint.type.drive if d}))
        print(f"  {joint.name:{width}}  {type(joint.type).__name__:12} {joint.parent.name} -> {joint.child.name}" + (f" ({drive})" if drive else ""))
    if notes:
        print(f"warnings ({len(notes)})")
        for line in notes:
            print(f"  {line}")
    return DONE


def _rows(mechanism: Any, notes: list[str]) -> dict[str, Any]:
    """Freedom, loops and rows at the start, where loops are closed; adds to the notes what a user should know."""
    import dalembert as da
    from dalembert.model.topology import loop_count

    masses = [body.mass for body in mechanism.bodies]
    if masses and max(masses) > 1e6 * min(masses):
        notes.append(f"masses reach from {min(masses):.3g} to {max(masses):.3g} kg: the lightest bodies may need small steps")
    tied = {body for joint in mechanism.joints for body in (joint.parent, joint.child)}
    notes.extend(f"body {body.name!r} is joined to nothing" for body in mechanism.bodies if body not in tied and len(mechanism.bodies) > 1 and not mechanism.touches)
    loops = loop_count(mechanism)
    try:
        found = da.Simulation(mechanism, da.Variational(dt=0.01)).redundancy()
    except DalembertError as error:
        notes.append(f"the start cannot be simulated: {_line(error)}")
        return {"loops": loops}
    free = 6 * len(mechanism.bodies) - found.rank
    if found.driven_rows > found.driven_rank:
        notes.append(f"overactuated: of {found.driven_rows} driven coordinates {found.driven_rank} are independent, so their targets must agree")
    return {
        "degrees of freedom": free, **({"  left by drives": found.freedom} if found.driven_rows else {}), "loops": loops,
        "constraint rows": found.rows, "redundant rows": found.rows - found.rank,
    }


def _compare(options: argparse.Namespace) -> int:
    from dalembert.comparison import compare
    from dalembert.view.plots import new_figure

    if options.plot is not None:
        _folder(options.plot)
        new_figure(options.plot)
    mechanism = _load(options)
    found = compare(lambda formulation: _start(mechanism, formulation, options), options.dt, options.halvings, options.duration)
    for reason, names in found.refusals.items():
        print(f"{', '.join(names)}: {reason}", file=sys.stderr)
    if not found.columns:
        return FAILED
    for line in found.lines():
        print(line)
    if options.plot is not None:
        found.plot(mechanism.name, options.plot)
        print(f"wrote {options.plot}")
    return DONE


def _sweep(options: argparse.Namespace) -> int:
    from dalembert import sweeps
    from dalembert.view.plots import new_figure

    _check_extras(options.out)
    if not options.vary:
        raise UsageError("sweep needs something to --vary, such as --vary elbow.damping=0:1:20")
    if options.plot is not None:
        _folder(options.plot)
        new_figure(options.plot)
    mechanism, samples = _load(options), options.samples
    for name, numbers in options.joints:
        mechanism.start(name, numbers if len(numbers) > 1 else numbers[0])
    if samples is not None and not any(isinstance(values, tuple) for _, values in options.vary):
        print("--samples has nothing to draw: no --vary NAME=LOW:HIGH, so that each point of the grid is run once", file=sys.stderr)
        samples = None
    table = options.out if options.out is not None and options.out.suffix.lower() == ".csv" else None
    ensemble = sweeps.sweep(
        mechanism, _formulation(options), options.duration, dict(options.vary), sweeps.read_measures(mechanism, options.measure), resolve=options.resolve_overlaps,
        samples=samples, seed=options.seed, workers=options.workers, backend=options.backend, out=options.out if table is None else None,
    )
    for line in sweeps.lines(ensemble):
        print(line)
    if table is not None:
        ensemble.to_csv(table)
    if options.plot is not None and ensemble.successful.any():
        sweeps.plot(ensemble, options.plot)
    for path in (options.out, options.plot):
        if path is not None:
            print(f"wrote {path}")
    return INTERRUPTED if ensemble.interrupted else DONE if ensemble.successful.any() else FAILED


def _convert(options: argparse.Namespace) -> int:
    import dalembert as da

    ending = options.target.suffix.lower()
    _check_extras(options.target)
    if is_trajectory(Path(options.model)):
        if ending in MODELS:
            raise ModelError(f"a trajectory cannot become {options.target}; choose from {', '.join([*TRAJECTORIES, *PAGES, *FILMS, *PICTURES])}")
        trajectory = da.Trajectory.load(options.model, budget=da.Budget().times(options.budget))
        write = next((w for kinds, w in ((PAGES, trajectory.to_html), (MODELS_3D, trajectory.to_gltf), (FILMS, trajectory.to_video), (PICTURES, trajectory.snapshot)) if ending in kinds), trajectory.save)
        write(options.target)
    elif ending not in MODELS:
        raise ModelError(f"a model cannot become {options.target}; choose from {', '.join(MODELS)} (dalembert run makes trajectories)")
    elif ending == ".urdf":
        from dalembert.io.urdf_export import save_urdf

        for line in save_urdf(_load(options), options.target, lossy=options.lossy):
            print(f"left out: {line}", file=sys.stderr)
    else:
        _load(options).save(options.target)
    print(f"wrote {options.target}")
    return DONE


def _doctor(options: argparse.Namespace) -> int:
    from dalembert.doctor import report

    wrong = []
    for what, how, well in report():
        print(f"{what:20}{how}" + ("" if well else "  <- not well"), flush=True)
        wrong += [] if well else [what]
    if options.model:
        mechanism = _load(options)
        found = _start(mechanism, _formulation(options), options).check(steps=options.steps)
        print(found)
        wrong += [] if found.ok else [mechanism.name]
    print(f"not well: {', '.join(wrong)}" if wrong else "all is well")
    return FAILED if wrong else DONE


def _zoo(options: argparse.Namespace) -> int:
    from dalembert.zoo.words import describe, find_mechanism, mechanisms

    known = mechanisms()
    if options.name is None:
        for name, make in known.items():
            print(f"{name:22} {(inspect.getdoc(make) or '').splitlines()[0]}")
        return DONE
    name = find_mechanism(options.name)
    signature = str(inspect.signature(known[name])).replace("'", "")
    print(f"{name}{signature}", inspect.getdoc(known[name]), "\n".join(describe(name)), sep="\n\n")
    return DONE


def _study(options: argparse.Namespace) -> int:
    """0 if every claim held."""
    from dalembert.studies import find_study, list_studies

    if options.all and options.names:
        raise UsageError("--all runs every study: leave out the names")
    chosen = list(list_studies().values()) if options.all else [find_study(name) for name in options.names]
    if not chosen:
        for item in list_studies().values():
            print(f"{item.name:26} {item.paper}, {item.where}: {item.claim}")
        return DONE
    outcomes = []
    for item in chosen:
        print(f"{item.name} ({item.paper}, {item.where})")
        outcomes.append(item.run(options.out, quick=options.quick))
    if len(outcomes) > 1:
        print("", *outcomes, sep="\n")
    return DONE if all(outcome.held for outcome in outcomes) else FAILED


if __name__ == "__main__":
    sys.exit(main())
