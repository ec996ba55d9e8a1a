"""Andrews' squeezing mechanism: seven bodies, milliseconds, published digits."""
from __future__ import annotations

import numpy as np

from dalembert.mechanism.joints import Revolute
from dalembert.mechanism.mechanism import Mechanism
from dalembert.zoo.links import sized, turn_about

#: name: mass (kg), inertia about z (kg m^2), centre of mass (m), angle (rad)
BODIES = {
    "OF": (0.04325, 2.194e-06, (0.0009182485980307614, -5.674074562905483e-05), -0.06171389001427645),
    "FE": (0.00365, 4.41e-07, (-0.0044914333599330725, 0.0002775362557942899), -0.06171389001427645),
    "BDE": (0.02373, 5.255e-06, (-0.018742186670315457, 0.020485106789073934), 0.45527981916307037),
    "EG": (0.00706, 5.667e-07, (-0.03022293983015888, 0.012071182356663938), 0.7100333697097284),
    "AG": (0.0705, 1.169e-05, (-0.05323682815570414, 0.016631847966616306), 0.48736497954384256),
    "EH": (0.00706, 5.667e-07, (-0.028543268536783597, -0.010722254707252288), 1.0078790543839353),
    "AH": (0.05498, 1.912e-05, (-0.059262402801791715, -0.010600698332712844), 1.2305474445498212),
}

#: points of the bodies, from the centre of mass in body axes (m)
POINTS = {
    ("OF", "O"): (-0.00092, 0.0), ("OF", "F"): (0.00608, 0.0), ("FE", "F"): (0.0115, 0.0), ("FE", "E"): (-0.0165, 0.0),
    ("BDE", "B"): (-0.01043, 0.01874), ("BDE", "E"): (-0.01043, -0.01626), ("BDE", "D"): (0.00957, 0.00074),
    ("EG", "G"): (0.0, 0.00579), ("EG", "E"): (0.0, -0.01421), ("AG", "A"): (-0.02308, -0.00916),
    ("AG", "G"): (0.01692, -0.00916), ("EH", "H"): (-0.00579, 0.0), ("EH", "E"): (0.01421, 0.0),
    ("AH", "A"): (0.00449, 0.01228), ("AH", "H"): (0.00449, -0.02772),
}

GROUND = {"O": (0.0, 0.0), "A": (-0.06934, -0.00227), "B": (-0.03635, 0.03273), "C": (0.014, 0.072)}

PINS = (
    ("world", "OF", "O"), ("OF", "FE", "F"), ("FE", "BDE", "E"), ("FE", "EG", "E"), ("FE", "EH", "E"),
    ("world", "BDE", "B"), ("world", "AG", "A"), ("world", "AH", "A"), ("EG", "AG", "G"), ("EH", "AH", "H"),
)


@sized
def andrews_squeezer(*, torque: float = 0.033, stiffness: float = 4530.0, spring_length: float = 0.07785) -> Mechanism:
    """The squeezer of Hairer and Wanner II and of the IVP test set (IFToMM benchmark A03), in the x-y plane.

    A constant ``torque`` (N m) turns the crank OF; a spring of ``stiffness`` (N/m), slack at ``spring_length`` (m),
    pulls the point D of the body BDE to the ground point C. No gravity; the start is at rest. The plane motion does
    not feel the inertias about x and y, which are set to those about z. Bodies "OF", "FE", "BDE", "EG", "AG", "EH",
    "AH"; ten hinges named by bodies and point, such as "FE-EG at E"; spring "spring". The digits of the starting pose
    close the loops to 1e-16 m.
    """
    mechanism = Mechanism("Andrews' squeezer", gravity=(0.0, 0.0, 0.0))
    for name, (mass, inertia, position, angle) in BODIES.items():
        mechanism.body(name, mass=mass, inertia=inertia * np.eye(3), position=(*position, 0.0), orientation=turn_about("z", angle))
    for parent, child, point in PINS:
        at = (_where(parent, point), _where(child, point))
        mechanism.joint(f"{parent}-{child} at {point}", Revolute(axis="z"), parent, child, at=at)
    mechanism.spring("spring", "world", "BDE", at=(_where("world", "C"), _where("BDE", "D")), stiffness=stiffness, length=spring_length)
    mechanism.wrench("OF", torque=(0.0, 0.0, torque))
    return mechanism


def _where(body: str, point: str) -> np.ndarray:
    """World position (3,) of a named point at the start."""
    if body == "world":
        return np.array([*GROUND[point], 0.0])
    _, _, position, angle = BODIES[body]
    x, y = POINTS[body, point]
    c, s = np.cos(angle), np.sin(angle)
    return np.array([position[0] + c * x - s * y, position[1] + s * x + c * y, 0.0])
