"""Force laws of one length or angle: force, its derivatives K by the length and D by the rate, and the energy stored.

What pushes, what is differentiated, what is stored and what is reported all come from these functions. A force is along the
length: positive makes it longer.
"""
from __future__ import annotations

from dalembert.kernels import inline, kernel
from dalembert.kernels.calls import call
from dalembert.model.records import CABLE, SPRING


@inline
def spring_damper(stiffness, damping, stretch, rate):
    """A linear spring and damper: force (N or N m), K, D, energy (J)."""
    return -stiffness * stretch - damping * rate, -stiffness, -damping, 0.5 * stiffness * stretch * stretch


@inline
def cable(stiffness, damping, stretch, rate):
    """A spring and damper that only pulls: nothing while it is slack, and its damper never makes it push (RedMax 1.9.10)."""
    force, K, D, energy = spring_damper(stiffness, damping, stretch, rate)
    if stretch <= 0.0:
        return 0.0, 0.0, 0.0, 0.0
    if force > 0.0:
        return 0.0, 0.0, 0.0, energy
    return force, K, D, energy


@inline
def servo(joint, i, target, coordinate, rate):
    """A motor with gains along a direction, within its bound: stiffness times (target - coordinate) less damping times the rate, or, where
    the target is a rate, damping times (target - rate). Returns force, K, D and its change with the target.
    """
    stiffness, damping, bound = joint.servo_stiffness[i], joint.servo_damping[i], joint.servo_bound[i]
    if joint.servo_rate[i]:
        force, K, D, by_target = damping * (target - rate), 0.0, -damping, damping
    else:
        force, K, D, by_target = stiffness * (target - coordinate) - damping * rate, -stiffness, -damping, stiffness
    if force > bound:
        return bound, 0.0, 0.0, 0.0
    if force < -bound:
        return -bound, 0.0, 0.0, 0.0
    return force, K, D, by_target


@kernel
def coupling_law(work, coupling, tie, length, rate):
    """The law of a path with the tension that a controller adds."""
    if coupling.law == SPRING:
        force, K, D, energy = spring_damper(coupling.stiffness, coupling.damping, length - coupling.rest, rate)
    elif coupling.law == CABLE:
        force, K, D, energy = cable(coupling.stiffness, coupling.damping, length - coupling.rest, rate)
    else:
        work.given[0] = length
        work.given[1] = rate
        call(coupling.law_function, work.given[:2], work.found[:4])
        force, K, D, energy = -work.found[0], -work.found[1], -work.found[2], work.found[3]
    return force - tie.input, K, D, energy
