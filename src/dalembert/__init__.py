"""Exact multibody dynamics in Python. One mechanism, its formulations, one answer."""
from dalembert import zoo
from dalembert.algebra import Algebra
from dalembert.ensemble.batch import Batch
from dalembert.ensemble.ensemble import Ensemble
from dalembert.ensemble.many import run_many
from dalembert.errors import (
    AssemblyError,
    BudgetError,
    ControlError,
    DalembertError,
    EnergyWarning,
    EquilibriumError,
    GradientError,
    GradientWarning,
    LimitError,
    LinearisationError,
    MissingExtraError,
    ModelError,
    OverlapError,
    SaveError,
    SingularBlockError,
    StepFailure,
    Terminated,
    TurnWarning,
)
from dalembert.formulations.implicit import Implicit
from dalembert.formulations.reduced import Moment, Reduced
from dalembert.formulations.variational import Variational
from dalembert.gradients.objective import residuals_and_jacobian, value_and_gradient
from dalembert.gradients.validate import GradientCheck, validate_gradients
from dalembert.io.budget import Budget
from dalembert.io.load import load
from dalembert.learning import jax as jax
from dalembert.learning import torch as torch
from dalembert.mechanism import joints, moving_joints, sensors
from dalembert.mechanism.bearings import Bearing
from dalembert.mechanism.convex import Convex
from dalembert.mechanism.convex_parts import convex_parts
from dalembert.mechanism.forces import Servo
from dalembert.mechanism.joints import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]
from dalembert.mechanism.mechanism import Mechanism
from dalembert.mechanism.moving_joints import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]
from dalembert.mechanism.sensors import *  # noqa: F403  # pyright: ignore[reportWildcardImportFromLibrary]
from dalembert.mechanism.shapes import Box, Capsule, Composite, Cone, Cylinder, Ellipsoid, Placed, Rod, Sphere
from dalembert.mechanism.visuals import Mesh
from dalembert.simulation.aims import Aim
from dalembert.simulation.simulation import Simulation
from dalembert.simulation.state import State
from dalembert.simulation.trajectory import Trajectory

__version__ = "0.1.0"

__all__ = [
    "Aim",
    "Algebra",
    "AssemblyError",
    "Batch",
    "Bearing",
    "Box",
    "Budget",
    "BudgetError",
    "Capsule",
    "Composite",
    "Cone",
    "ControlError",
    "Convex",
    "Cylinder",
    "DalembertError",
    "Ellipsoid",
    "EnergyWarning",
    "Ensemble",
    "EquilibriumError",
    "GradientCheck",
    "GradientError",
    "GradientWarning",
    "Implicit",
    "LimitError",
    "LinearisationError",
    "Mechanism",
    "Mesh",
    "MissingExtraError",
    "ModelError",
    "Moment",
    "OverlapError",
    "Placed",
    "Reduced",
    "Rod",
    "SaveError",
    "Servo",
    "Simulation",
    "SingularBlockError",
    "Sphere",
    "State",
    "StepFailure",
    "Terminated",
    "Trajectory",
    "TurnWarning",
    "Variational",
    "convex_parts",
    "load",
    "residuals_and_jacobian",
    "run_many",
    "validate_gradients",
    "value_and_gradient",
    "zoo",
]
__all__ += joints.__all__
__all__ += moving_joints.__all__
__all__ += sensors.__all__
