"""Exact multibody dynamics in Python. One mechanism, its formulations, one answer."""
from dalembert.errors import (
    AssemblyError,
    ControlError,
    DalembertError,
    MissingExtraError,
    ModelError,
    OverlapError,
    SingularBlockError,
    StepFailure,
)
from dalembert.formulations.variational import Variational
from dalembert.mechanism.convex import Convex
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
from dalembert.simulation import Simulation
from dalembert.trajectory import Trajectory

__version__ = "0.1.0"
