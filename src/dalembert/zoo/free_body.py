"""Bodies that nothing holds: torque-free rotation."""
from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Composite, Cylinder
from dalembert.zoo.links import sized, turn_about


@sized
def free_body(
    inertia: ArrayLike = (1.0, 2.0, 3.0), *, angular_velocity: ArrayLike = (0.3, 0.0, 1.0), velocity: ArrayLike = (0.0, 0.0, 0.0), mass: float = 1.0
) -> Mechanism:
    """A body in free space, solved in closed form by Jacobi's elliptic functions.

    ``inertia``: principal moments (3,) or matrix (3, 3) in kg m^2; ``angular_velocity`` in rad/s, body axes;
    ``velocity`` in m/s; ``mass`` in kg. Body "body", no joints, no gravity.
    """
    moments = np.asarray(inertia, dtype=float)
    mechanism = Mechanism("free body", gravity=(0.0, 0.0, 0.0))
    mechanism.body("body", mass=mass, inertia=np.diag(moments) if moments.ndim == 1 else moments)
    mechanism.start("body", linear=velocity, angular=angular_velocity)
    return mechanism


@sized
def t_handle(*, spin: float = 15.0, disturbance: float = 0.01) -> Mechanism:
    """A steel T in free space that flips over in regular intervals (Dzhanibekov; Quaternion, Fig. 4).

    A bar of 0.10 m along x with a stem of 0.06 m along z from its centre, both of 10 mm radius and 7800 kg/m^3. It
    starts with ``spin`` (rad/s) about z, the intermediate axis, and ``disturbance`` (rad/s) about x, the smallest.
    Body "handle", its frame at the centre of mass, 11.25 mm above the bar's axis.
    """
    radius, bar, stem, density = 0.01, 0.10, 0.06, 7800.0
    shape = Composite(parts=[
        (Cylinder(radius=radius, length=bar, density=density), (0.0, 0.0, 0.0), turn_about("y", 0.5 * np.pi)),
        (Cylinder(radius=radius, length=stem, density=density), (0.0, 0.0, 0.5 * stem)),
    ])
    mechanism = Mechanism("T-handle", gravity=(0.0, 0.0, 0.0))
    mechanism.body("handle", shape, position=shape.center_of_mass)
    mechanism.start("handle", angular=(disturbance, 0.0, spin))
    return mechanism
