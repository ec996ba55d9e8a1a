"""Exact multibody dynamics in Python. One mechanism, its formulations, one answer."""
from dalembert import zoo
from dalembert.errors import (
    AssemblyError,
    ControlError,
    DalembertError,
    EnergyWarning,
    MissingExtraError,
    ModelError,
    OverlapError,
    SingularBlockError,
    StepFailure,
)
from dalembert.formulations.implicit import Implicit
from dalembert.formulations.variational import Variational
from dalembert.io.load import load
from dalembert.mechanism.convex import Convex
from dalembert.mechanism.forces import Servo
from dalembert.mechanism.joints import (
    JOINTS,
    Cartesian,
    Cylindrical,
    CylindricalFreeOrientation,
    Distance,
    Fixed,
    FixedOrientation,
    Floating,
    Free,
    Helical,
    Joint,
    PinInSlot,
    Planar,
    PlanarFixedOrientation,
    PlanarFreeOrientation,
    Prismatic,
    Rectangular,
    Revolute,
    RotationAlongAxis,
    Slot,
    Spherical,
    Universal,
)
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.shapes import Box, Capsule, Composite, Cylinder, Ellipsoid, Rod, Sphere
from dalembert.mechanism.visuals import Mesh
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.state import State
from dalembert.simulation.trajectory import Trajectory

__version__ = "0.1.0"

__all__ = [
    "JOINTS",
    "AssemblyError",
    "Box",
    "Capsule",
    "Cartesian",
    "Composite",
    "ControlError",
    "Convex",
    "Cylinder",
    "Cylindrical",
    "CylindricalFreeOrientation",
    "DalembertError",
    "Distance",
    "Ellipsoid",
    "EnergyWarning",
    "Fixed",
    "FixedOrientation",
    "Floating",
    "Free",
    "Helical",
    "Implicit",
    "Joint",
    "Mechanism",
    "Mesh",
    "MissingExtraError",
    "ModelError",
    "OverlapError",
    "PinInSlot",
    "Planar",
    "PlanarFixedOrientation",
    "PlanarFreeOrientation",
    "Prismatic",
    "Rectangular",
    "Revolute",
    "Rod",
    "RotationAlongAxis",
    "Servo",
    "Simulation",
    "SingularBlockError",
    "Slot",
    "Sphere",
    "Spherical",
    "State",
    "StepFailure",
    "Trajectory",
    "Universal",
    "Variational",
    "load",
    "zoo",
]
