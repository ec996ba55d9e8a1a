"""Weights of the equations of steps in which something touches: those of ``weights`` with the rows of contacts, limits and dry friction."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dalembert.formulations.maximal.pull_contacts import add_node_weights, clear_node_weights, load_nodes
from dalembert.formulations.maximal.weights import add_weights, clear_weights, refinement
from dalembert.kernels import specialise


class Touched(NamedTuple):
    """Bars of a step in which something touches: with the nodes and their bars."""

    bars: Any
    scene: Any
    touch: Any


def build_touched_refinement(name: str, file: str, *, width: int, passes: int, load: Callable, pull: Callable) -> Callable:
    """As ``build_refinement``; the kernel takes (step, ``Touched``), and so does ``pull``."""
    def load_all(step, held):
        return max(load(step, held.bars), load_nodes(held.scene, step.work, held.touch))

    def clear(step, held):
        clear_weights(step.model, held.bars, width)
        clear_node_weights(held.touch)

    def add(step, held):
        add_weights(step.model, step.work, held.bars, width)
        add_node_weights(held.scene, step.work, held.touch)

    return refinement(name, file, width, passes, specialise(load_all, f"{name}_load", file), clear, add, pull)
