"""docs/benchmarks.md and its pictures, from the numbers of a run alone."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.comparison.pictures import draw_speed, draw_work_precision
from benchmarks.comparison.work_precision import ERROR, LONGEST, ranking
from dalembert.io.whole import write_whole

#: pictures beside the page
PICTURES = "benchmarks"
#: methods of the table of steps, and what its columns are called
COLUMNS = {
    ("dalembert", "Variational"): "Variational", ("dalembert", "Implicit bdf2"): "Implicit BDF2", ("dalembert", "Reduced bdf2"): "Reduced BDF2",
    ("dalembert", "Reduced semi_implicit"): "Reduced semi-implicit", ("MuJoCo", "Euler"): "MuJoCo", ("Pinocchio", "semi-implicit Euler"): "Pinocchio",
    ("Drake", "SAP"): "Drake", ("Exudyn", "generalized alpha"): "Exudyn", ("PyBullet", "semi-implicit Euler"): "PyBullet",
}


def write_page(result: dict[str, Any], folder: Path) -> list[Path]:
    """Write the page and its pictures; their paths."""
    pictures = folder / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    draw_speed(result["speed"], pictures / "speed.png")
    draw_work_precision(result["work_precision"], pictures / "work_precision.png")
    texts = {folder / "benchmarks.md": page(result), pictures / "results.json": json.dumps(result, indent=1)}
    for file, text in texts.items():
        with write_whole(file) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [*texts, pictures / "speed.png", pictures / "work_precision.png"]


def page(result: dict[str, Any]) -> str:
    parts = [_head(result), _precision(result["work_precision"]), _speed(result["speed"]), _worth(result["speed"]), _starts(result["speed"]), _how(result)]
    return "\n".join(parts)


def _head(result: dict[str, Any]) -> str:
    others = ", ".join(f"{name} {number}" for name, number in result["simulators"].items() if name != "dalembert")
    about = result["machine"]
    return f"""# Against other simulators

<!-- written by `python -m benchmarks.run`; change benchmarks/comparison/page.py instead -->

The same problems in dalembert {result['simulators']['dalembert']} and in {others}, in one run of `make bench` on one core of
{_article(about['processor'])} ({about['system']}, Python {about['Python']}, NumPy {about['numpy']}, Numba {about['numba']}), {result['made'][:10]},
{_minutes(result)}. Every figure and picture of this page is from that run ([all its numbers](benchmarks/results.json)).

A step that is soft and fast and one that is exact and slow are not the same thing. So the first question is what a given error
costs; time per step comes after it.
"""


def _minutes(result: dict[str, Any]) -> str:
    spent = result["processor_seconds"]
    return f"{result['seconds'] / 60:.0f} minutes" + ("" if spent is None else f", {spent / 60:.0f} of them of the processor: other programs ran beside it" if result["seconds"] > 1.2 * spent else "")


def _article(processor: str) -> str:
    return f"{'an' if processor[:1].upper() in 'AEIO' else 'a'} {processor}"


def _name(row: dict[str, Any]) -> str:
    return f"{row['simulator']} {row['method']}"


def _ms(value: float) -> str:
    return f"{value:.3g}"


# ---- error by cost


def _precision(results: list[dict[str, Any]]) -> str:
    text = f"""## What an error of {1e3 * ERROR:g} mm costs

![Error by processor time on six problems](benchmarks/work_precision.png)

A line per method, a point per step size; the best method of each simulator at the dotted line is drawn strong. The error is that of the worst
body at the end of the motion: of its centre, or of a point of it one radius of gyration away. The truth is a closed form (double four-bar,
box), or a solution converged to 1e-12.

| problem | fastest at {ERROR:g} m | best of ours | best of the others | ours / theirs |
| --- | --- | --- | --- | --- |
"""
    won, lost = [], []
    for result in results:
        order = ranking(result)
        ours, theirs = ([row for row in order if (row["simulator"] == "dalembert") is mine] for mine in (True, False))
        ratio = ours[0]["ms"] / theirs[0]["ms"] if ours and theirs else None
        (won if ours and (ratio is None or ratio < 1.0) else lost).append(result["problem"])
        cells = [f"{_name(rows[0])}: {_ms(rows[0]['ms'])} ms" if rows else "none gets there" for rows in (order, ours, theirs)]
        text += f"| {result['problem']}, {result['duration']:g} s | {' | '.join(cells)} | {'' if ratio is None else f'{ratio:.2g}'} |\n"
    text += f"\nWe are the fastest on {_list(won)}; we lose on {_list(lost)}.\n\n"
    text += "Milliseconds of processor time that each simulator's best method takes, with its step or accuracy:\n\n"
    names = list(dict.fromkeys(curve["simulator"] for result in results for curve in result["curves"]))
    text += f"| problem | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}\n"
    for result in results:
        order, cells = ranking(result), []
        for name in names:
            best = next((row for row in order if row["simulator"] == name), None)
            tried = any(c["simulator"] == name and c.get("points") for c in result["curves"])
            cells.append(_reached(best) if best else "does not get there" if tried else "")
        text += f"| {result['problem']} | {' | '.join(cells)} |\n"
    text += f"\nOf ours, all methods, in milliseconds; a dash where a run of {LONGEST:g} s does not reach an error that small:\n\n"
    methods = list(dict.fromkeys(c["method"] for result in results for c in result["curves"] if c["simulator"] == "dalembert"))
    text += f"| method | {' | '.join(result['problem'] for result in results)} |\n| --- |{' --- |' * len(results)}\n"
    for method in methods:
        cells = []
        for result in results:
            curve = next(c for c in result["curves"] if c["simulator"] == "dalembert" and c["method"] == method)
            cells.append("no contact" if "refuses" in curve else _ms(curve["at_error"]["ms"]) if curve["at_error"] else "-")
        text += f"| {method} | {' | '.join(cells)} |\n"
    return text


def _reached(row: dict[str, Any]) -> str:
    step = f"step {1e3 * row['dt']:.2g} ms" if "dt" in row else f"accuracy {row['accuracy']:.0e}"
    return f"{_ms(row['ms'])} ({row['method']}, {step})"


def _list(words: list[str]) -> str:
    return "none of them" if not words else words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# ---- time per step


def _row(result: dict[str, Any], simulator: str, method: str) -> dict[str, Any] | None:
    return next((row for row in result["rows"] if (row["simulator"], row["method"]) == (simulator, method)), None)


def _speed(results: list[dict[str, Any]]) -> str:
    there = {row["simulator"] for result in results for row in result["rows"]}
    columns = {key: title for key, title in COLUMNS.items() if key[0] in there}
    text = f"""
## Time per step

![Microseconds per step](benchmarks/speed.png)

Microseconds per step, the median of {results[0]['rounds']} runs, with the quartiles where they are more than 5 % off. All simulators take the same step; with
it, they do not reach the same error: see the next table.

| problem | step / ms | {' | '.join(columns.values())} |
| --- | --- |{' --- |' * len(columns)}
"""
    for result in results:
        cells = [_timed(_row(result, *key)) for key in columns]
        text += f"| {result['problem']}: {result['about']} | {1e3 * result['dt']:g} | {' | '.join(cells)} |\n"
    return text + _verdicts(results)


def _timed(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if "us" not in row:
        return "diverges" if row.get("diverged") else "fails" if "failed" in row else "-"
    wide = row["us_high"] - row["us_low"] > 0.1 * row["us"]
    return f"{row['us']:.3g}" + (f" ({row['us_low']:.3g} to {row['us_high']:.3g})" if wide else "")


def _verdicts(results: list[dict[str, Any]]) -> str:
    """Where a step of ours is slower than MuJoCo's, and where it is faster, worst first."""
    ratios = []
    for result in results:
        ours = [row for row in result["rows"] if row["simulator"] == "dalembert" and "us" in row]
        theirs = _row(result, "MuJoCo", "Euler")
        if ours and theirs is not None and "us" in theirs:
            best = min(ours, key=lambda row: row["us"])
            ratios.append((best["us"] / theirs["us"], result["problem"], best["method"]))
    slower = sorted((r for r in ratios if r[0] >= 1.0), reverse=True)
    faster = sorted(r for r in ratios if r[0] < 1.0)
    lines = ["", "Our fastest step is slower than MuJoCo's by a factor of " + ", ".join(f"{r:.2g} ({problem}, {method})" for r, problem, method in slower) + "." if slower
             else "None of MuJoCo's steps is faster than ours."]
    if faster:
        lines.append("It is faster, in parts of MuJoCo's time: " + ", ".join(f"{r:.2g} ({problem}, {method})" for r, problem, method in faster) + ".")
    undone = [result["problem"] for result in results if (row := _row(result, "MuJoCo", "Euler")) is not None and "us" not in row]
    if undone:
        lines.append(f"At these steps MuJoCo diverges on {_list(undone)}.")
    return "\n".join(lines) + "\n"


def _worth(results: list[dict[str, Any]]) -> str:
    """What came out at these steps."""
    there = {row["simulator"] for result in results for row in result["rows"]}
    columns = {key: title for key, title in COLUMNS.items() if key[0] in there}
    text = f"""
## What these steps are worth

At the same steps: the error at the end; below it, where loops open or bodies sink into the ground by more than a micrometre, by how much (in m).

| problem | {' | '.join(columns.values())} |
| --- |{' --- |' * len(columns)}
"""
    for result in results:
        text += f"| {result['problem']} | {' | '.join(_came_out(_row(result, *key)) for key in columns)} |\n"
    return text


def _came_out(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if "opening" not in row:
        return "-"
    if row["diverged"]:
        return "diverges"
    parts = [f"{row['error']:.0e}"] if "error" in row else []
    parts += [f"opens {row['opening']:.0e}"] if row["opening"] > 1e-6 else []
    parts += [f"sinks {row['depth']:.0e}"] if row["depth"] > 1e-6 else []
    return "<br>".join(parts) or "exact"


def _starts(results: list[dict[str, Any]]) -> str:
    """Compile time apart."""
    rows = [row for result in results for row in result["rows"] if "first_step" in row]
    text = "\n## Before the first step\n\nSeconds of processor time to build a model, and for its first step, over all problems: median and largest. Ours loads its kernels from their cache in the first\nstep, or compiles them, once; none of this is in the times above.\n\n| | build | first step |\n| --- | --- | --- |\n"
    for name in dict.fromkeys(row["simulator"] for row in rows):
        mine = [row for row in rows if row["simulator"] == name]
        cells = []
        for what in ("build", "first_step"):
            values = sorted(row[what] for row in mine)
            cells.append(f"{values[len(values) // 2]:.2g}, {values[-1]:.2g}")
        text += f"| {name} | {' | '.join(cells)} |\n"
    return text


def _how(result: dict[str, Any]) -> str:
    refusals = dict.fromkeys((row["simulator"], row["refuses"]) for r in result["speed"] for row in r["rows"] if "refuses" in row and row["simulator"] != "dalembert")
    lines = "\n".join(f"- {name}: {why}" for name, why in refusals)
    return f"""
## How it is measured

- One description per problem (`benchmarks/comparison/problems.py`), a `Mechanism`; from its start, in world axes, every simulator's model is built by the same rules
  (`benchmarks/comparison/scene.py`, a file per simulator in `benchmarks/peers/`). Tests let all of them move for a moment and compare.
- Every simulator is in a process of its own on the same core; they run in turns, each timing its own processor time. What is timed of ours is `Simulation.run` as users
  call it, recording and checks included: about half a millisecond a call on top of the steps.
- Each has the settings that it brings along. MuJoCo's contacts and loops are springs by design; Drake's contact is compliant; stiffer settings trade speed for depth.
- Pinocchio has algorithms and no simulator: its steps are a loop in Python around them, with loops pulled together as Baumgarte does.
- Drake runs in discrete time (SAP) above, and by its integrators with error control in the diagrams, where there are neither loops nor contact.
- Exudyn has redundant coordinates and joints as constraints, as `Variational` and `Implicit` do; its loops get the two rows that a plane needs. Its recursive
  kinematic trees are not measured.
- A box in Drake is given by its corners, since a pair of shapes touches in one point there.
- PyBullet gets dampers and servos as torques from a loop in Python.

Not in the tables, and why:

{lines}
"""
