"""Newton's method with a line search, on any step problem.

What a problem consists of are kernels of it:

    residual(problem)           -> (size in m/s, False when the iterate is of no use)
    restart(problem)            -> puts a safer guess in place of the first one; False when there is none
    factorise(problem, size)    -> (size, as the new factor measures it; False when the matrix is singular)
    direction(problem, second)  solves for the direction; ``second``: this is the second iteration
    draws(problem)              -> whether the second iteration draws back what the first one put into redundant rows
    move(problem, step)         iterate minus ``step`` times the direction
    floor(problem)              -> the residual that rounding alone can cause

On a graph (``on_graph``) a problem is a NamedTuple with ``work`` (blocks, schedule, vector) and ``compliance``, and has instead of
``factorise``, ``direction`` and ``draws``:

    jacobian(problem)           writes the blocks
    load_vector(problem, pull)  the residuals into the solver's vector; ``pull`` draws redundant impulses towards zero
    turn(problem)               from the solver's unknowns to directions of the iterate, in place
    schedule(problem)           -> of the blocks that the last Jacobian has written; the work's where it writes all
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dalembert.kernels import inline, specialise
from dalembert.linalg import clear, factor, solve
from dalembert.solvers.outcomes import NOT_CONVERGED, SINGULAR, SOLVED

#: an iteration that leaves more than this part of the residual looks whether rounding alone is left
SLOW = 0.1
#: shortest step of the line search
SHORTEST = 1e-4
#: so many iterations with factors of their own that together leave more than this part of the residual will not find a solution
PATIENCE, STUCK = 4, 0.5


@inline
def never(problem):
    """Without redundant rows, nothing is drawn back."""
    return False


class Linear(NamedTuple):
    """How a problem's linear systems are solved: the kernels ``factorise``, ``direction`` and ``draws``."""

    factorise: Any
    direction: Any
    draws: Any = never


@inline
def whole_schedule(problem):
    return problem.work.schedule


def on_graph(name: str, file: str, *, jacobian: Callable, load_vector: Callable, turn: Callable, schedule: Callable = whole_schedule) -> Linear:
    """Linear systems by the blocks of a graph."""

    def factorise(problem, size):
        jacobian(problem)
        clear(problem.work.blocks, schedule(problem))
        return size, factor(problem.work.blocks, schedule(problem)) < 0

    def direction(problem, second):
        # What the first iteration puts into redundant rows comes from linearisation alone: the second takes it back.
        load_vector(problem, problem.compliance if second else 0.0)
        solve(problem.work.blocks, schedule(problem), problem.work.vector)
        turn(problem)

    def draws(problem):
        return problem.compliance > 0.0

    return Linear(
        specialise(factorise, f"{name}_factorise", file), specialise(direction, f"{name}_direction", file), specialise(draws, f"{name}_draws", file),
    )


def build_newton(
    name: str, file: str, *, linear: Linear, residual: Callable, restart: Callable, move: Callable, floor: Callable, ends_at_rounding: bool = False,
    patience: int = PATIENCE,
) -> Any:
    """The kernel ``newton(problem, tolerance, max_iterations) -> (outcome, iterations, residual)`` of a kind of problem.

    A factor is used again as long as two more iterations that shrink the residual like the last one would do. There is always one iteration: with
    small steps the guess alone is within the tolerance, and accepting it would extrapolate for ever. ``ends_at_rounding``: the
    floor is close to what rounding makes, so that an iteration which gains little below it ends the search. ``patience``: how many iterations may gain little.
    A second iteration that draws back leaves the error of the compliance, which may be more than it began with and which the third
    removes with the same factor: so it is judged by where the first began.
    """

    factorise, direction, draws = linear

    def newton(problem, tolerance, max_iterations):
        size, fine = residual(problem)
        if not fine:
            if not restart(problem):
                return NOT_CONVERGED, 0, size
            size, fine = residual(problem)
            if not fine:
                return NOT_CONVERGED, 0, size
        iterations = 0
        fresh = False
        first = mark = size
        slow = 0
        while size > tolerance or iterations == 0:
            if iterations == max_iterations:
                return NOT_CONVERGED, iterations, size
            iterations += 1
            if not fresh:
                size, regular = factorise(problem, size)
                if not regular:
                    return SINGULAR, iterations, size
            direction(problem, iterations == 2)
            before = first if iterations == 2 and draws(problem) else size
            step = 1.0
            done = 0.0
            new = size
            while True:
                move(problem, step - done)
                done = step
                new, fine = residual(problem)
                if fine and (new < before or new <= tolerance):
                    break
                if ends_at_rounding and step == 1.0 and fine and size < floor(problem):
                    move(problem, -done)
                    return SOLVED, iterations, residual(problem)[0]
                step *= 0.5
                if step < SHORTEST:
                    break
            if step < SHORTEST:
                move(problem, -done)
                residual(problem)
                if size < max(floor(problem), tolerance):
                    return SOLVED, iterations, size
                if not fresh:
                    return NOT_CONVERGED, iterations, size
                fresh = False
                continue
            if ends_at_rounding and new > SLOW * before and new > tolerance and new < floor(problem):
                return SOLVED, iterations, new
            fresh = new * (new / before) ** 2 <= tolerance
            size = new
            slow += 1
            if size < STUCK * mark:
                slow, mark = 0, size
            elif slow == patience and size > max(floor(problem), tolerance):
                return NOT_CONVERGED, iterations, size
        return SOLVED, iterations, size

    return specialise(newton, name, file)
