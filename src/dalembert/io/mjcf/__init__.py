"""MJCF files, through MuJoCo's own compiler: structure and numbers are those that MuJoCo itself simulates.

Coordinates count from the reference pose (``qpos0``): where a joint has ``ref``, ours is MuJoCo's minus that.
"""
from __future__ import annotations

from pathlib import Path

from dalembert.io.budget import Meter
from dalembert.io.build import build
from dalembert.io.mjcf.actuators import add_actuators, pulled_joints, pulled_tendons, servos
from dalembert.io.mjcf.contacts import add_environment, add_pairs, count_pairs, read_touches
from dalembert.io.mjcf.couplings import add_equalities
from dalembert.io.mjcf.files import check_files
from dalembert.io.mjcf.geoms import read_drawings
from dalembert.io.mjcf.keyframes import close_keyframe
from dalembert.io.mjcf.links import add_gravity_compensation, read_links
from dalembert.io.mjcf.sensors import add_sensors
from dalembert.io.mjcf.source import Source, compiled
from dalembert.io.mjcf.tendons import add_tendons
from dalembert.io.options import Options
from dalembert.mechanism.mechanism import Mechanism


def load_mjcf(path: Path, options: Options, meter: Meter) -> Mechanism:
    """A mechanism from an MJCF file."""
    options.refuse("MJCF", "srdf", "mesh_density", "position", "orientation")
    check_files(path, path.parent if options.root is None else options.root, meter)
    source = Source(*compiled(path), path.stem, options, meter)
    count_pairs(source)
    read_links(source, pulled_joints(source), servos(source))
    read_drawings(source)
    read_touches(source)
    source.mechanism = build(source.robot, merge_fixed=options.merge_fixed)
    add_gravity_compensation(source)
    add_equalities(source)
    add_tendons(source, pulled_tendons(source))
    add_actuators(source)
    add_environment(source)
    add_pairs(source)
    add_sensors(source)
    close_keyframe(source)
    for kind, count in (("flex", source.model.nflex), ("skin", source.model.nskin)):
        source.report += [f"{kind} {source.name(kind, k)!r} is left out" for k in range(count)]
    source.mechanism.report[:] = source.report
    return source.mechanism
