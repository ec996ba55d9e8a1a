"""Weights of a step's equations by refinement: what the adjoints of all methods in maximal coordinates share.

The weights b solve F_u^T b = -(bars of the unknowns u). A solve with Newton's matrix gives most of them; the pull of the equations is the
exact product F^T b, so that what it leaves in the bars of u is what the matrix left out, and the next pass solves for that. A pull is
linear in b: every pass only adds.
"""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dalembert.formulations.maximal.proximal import soften
from dalembert.kernels import inline, kernel, specialise
from dalembert.linalg import solve_transposed

#: most solves for the part that the compliance of redundant rows leaves
SOLVES = 8
#: a pass that leaves this part of what the first one met is the last one
SMALL = 1e-12


@kernel
def load_forces(model, work, bars, size):
    """Bars of the impulses of joints and couplings into the solver's vector. Returns the largest of them and of ``size``."""
    for i in range(model.joints.shape[0]):
        if model.joints[i].rows > 0:
            vector = work.vector[work.joints[i].node].v
            for k in range(model.joints[i].rows):
                vector[k] = bars.joints[i].mu[k]
                size = max(size, abs(vector[k]))
    for i in range(model.couplings.shape[0]):
        work.vector[work.couplings[i].node].v[0] = bars.couplings[i].mu
        size = max(size, abs(bars.couplings[i].mu))
    return size


@inline
def clear_weights(model, bars, width):
    """No weights; a body has ``width`` equations."""
    for i in range(model.bodies.shape[0] - 1):
        for c in range(width):
            bars.bodies[i].b[c] = 0.0
    for i in range(model.joints.shape[0]):
        for k in range(6):
            bars.joints[i].b[k] = 0.0
    for i in range(model.couplings.shape[0]):
        bars.couplings[i].b = 0.0


@inline
def add_weights(model, work, bars, width):
    """Subtract the solver's vector from the weights."""
    for i in range(model.bodies.shape[0] - 1):
        vector, bar = work.vector[work.bodies[i].node].v, bars.bodies[i]
        for c in range(width):
            bar.b[c] -= vector[c]
    for i in range(model.joints.shape[0]):
        if model.joints[i].rows > 0:
            vector = work.vector[work.joints[i].node].v
            for k in range(model.joints[i].rows):
                bars.joints[i].b[k] -= vector[k]
    for i in range(model.couplings.shape[0]):
        bars.couplings[i].b -= work.vector[work.couplings[i].node].v[0]


def build_refinement(name: str, file: str, *, width: int, passes: int, load: Callable, pull: Callable) -> Callable:
    """The adjoint of a method's equations, for steps in which nothing touches.

    ``load(step, bars)`` writes the bars of the unknowns into the solver's vector and returns the largest, ``pull(step, bars)`` adds F^T b;
    a body has ``width`` equations. The kernel takes (step, bars) with bars of the unknowns, and returns what is left of them, relative.
    """
    def clear(step, bars):
        clear_weights(step.model, bars, width)

    def add(step, bars):
        add_weights(step.model, step.work, bars, width)

    return refinement(name, file, width, passes, load, clear, add, pull)


def refinement(name: str, file: str, width: int, passes: int, load: Callable, clear: Callable, add: Callable, pull: Callable) -> Callable:
    """The kernel (step, held), with ``clear(step, held)`` and ``add(step, held)`` of the weights in what is ``held``."""
    clear, add = specialise(clear, f"{name}_clear", file), specialise(add, f"{name}_add", file)

    def store(step, held, largest):
        """Minus the solver's vector as the weights of the equations, and what the compliance of the rows leaves of them."""
        work = step.work
        clear(step, held)
        add(step, held)
        if step.compliance == 0.0:
            return
        before = np.inf
        for _ in range(SOLVES):
            size = soften(step.model, work, step.compliance, width)
            if not size > 1e-14 * largest or not size < 0.5 * before:
                break
            before = size
            solve_transposed(work.blocks, work.schedule, work.vector)
            add(step, held)

    store = specialise(store, f"{name}_store", file)

    def refine(step, held):
        work = step.work
        first = load(step, held)
        size = first
        for attempt in range(passes):
            if not size > SMALL * first:
                break
            before = size
            solve_transposed(work.blocks, work.schedule, work.vector)
            store(step, held, size)
            pull(step, held)
            size = load(step, held)
            if attempt == 0:  # bars of impulses have another unit than those that the first pass met
                first = max(first, size)
            elif not size < 0.5 * before:
                break
        return size / first if first > 0.0 else 0.0

    return specialise(refine, f"{name}_refine", file)
