"""Exudyn: rigid bodies in redundant coordinates with joints as constraints, its implicit second-order solvers."""
from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from benchmarks.comparison.scene import WORLD, Hinge, Poses, Scene

SOLVERS = {"generalized alpha": "GeneralizedAlpha", "trapezoidal": "TrapezoidalIndex2"}
#: bodies from which on a sparse solver pays
MANY = 8


class ExudynModel:
    def __init__(self, scene: Scene, method: str, dt: float) -> None:
        self.exu: Any = importlib.import_module("exudyn")
        self.utilities: Any = importlib.import_module("exudyn.utilities")
        self.scene, self.dt = scene, dt
        self.container = self.exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.add_bodies()
        for hinge in scene.tree:
            self.add_joint(hinge)
        for hinge in scene.loops:
            self.close_loop(hinge)
        self.mbs.Assemble()
        self.settings = self.exu.SimulationSettings()
        integration = self.settings.timeIntegration
        integration.verboseMode = 0
        self.settings.solutionSettings.writeSolutionToFile = False
        self.settings.solutionSettings.sensorsWritePeriod = 1e9
        if len(scene.links) >= MANY:
            self.settings.linearSolverType = self.exu.LinearSolverType.EigenSparse
        self.solver = getattr(self.exu.DynamicSolverType, SOLVERS[method])
        initial, data = self.exu.ConfigurationType.Initial, self.mbs.systemData
        self.start = [data.GetODE2Coordinates(initial), data.GetODE2Coordinates_t(initial)]
        self.reset()

    def add_bodies(self) -> None:
        scene, mbs = self.scene, self.mbs
        self.bodies: dict[int, Any] = {WORLD: mbs.CreateGround()}
        for index, link in enumerate(scene.links):
            inertia = self.utilities.RigidBodyInertia(mass=link.mass, inertiaTensor=link.inertia, com=np.zeros(3))
            self.bodies[index] = mbs.CreateRigidBody(
                referencePosition=link.position, referenceRotationMatrix=link.rotation, initialVelocity=link.velocity, initialAngularVelocity=link.angular,
                inertia=inertia, gravity=scene.gravity)

    def add_joint(self, hinge: Hinge) -> None:
        items = dict(itemNumbers=[self.bodies[hinge.parent], self.bodies[hinge.child]], position=hinge.point, show=False)
        if hinge.kind == "spherical":
            self.mbs.CreateSphericalJoint(**items)
        elif hinge.kind == "fixed":
            self.mbs.CreateGenericJoint(**items)
        elif hinge.kind == "prismatic":
            self.mbs.CreatePrismaticJoint(axis=hinge.axis, **items)
        else:
            self.mbs.CreateRevoluteJoint(axis=hinge.axis, **items)
            if hinge.damping or hinge.stiffness:
                self.mbs.CreateTorsionalSpringDamper(axis=hinge.axis, stiffness=hinge.stiffness, damping=hinge.damping, offset=hinge.target, **items)

    def close_loop(self, hinge: Hinge) -> None:
        """In a plane, two rows close a loop; more would be redundant, which its solvers do not take."""
        helper = np.eye(3)[np.argmin(np.abs(hinge.axis))]
        first = np.cross(hinge.axis, helper) / np.linalg.norm(np.cross(hinge.axis, helper))
        axes = np.column_stack([first, np.cross(hinge.axis, first), hinge.axis])
        self.mbs.CreateGenericJoint(
            itemNumbers=[self.bodies[hinge.parent], self.bodies[hinge.child]], position=hinge.point, rotationMatrixAxes=axes,
            constrainedAxes=[1, 1, 0, 0, 0, 0], show=False)

    def reset(self) -> None:
        data, kinds = self.mbs.systemData, self.exu.ConfigurationType
        for kind in (kinds.Initial, kinds.Current):
            data.SetODE2Coordinates(self.start[0], kind)
            data.SetODE2Coordinates_t(self.start[1], kind)
        self.settings.timeIntegration.startTime = 0.0

    def run(self, steps: int) -> None:
        integration = self.settings.timeIntegration
        integration.numberOfSteps, integration.endTime = steps, integration.startTime + steps * self.dt
        if not self.mbs.SolveDynamic(self.settings, solverType=self.solver, updateInitialValues=True):
            raise RuntimeError("Exudyn's solver failed")
        integration.startTime = integration.endTime

    def poses(self) -> Poses:
        kinds, mbs = self.exu.OutputVariableType, self.mbs
        count = range(len(self.scene.links))
        position = [mbs.GetObjectOutputBody(self.bodies[i], kinds.Position, [0, 0, 0]) for i in count]
        rotation = [np.reshape(mbs.GetObjectOutputBody(self.bodies[i], kinds.RotationMatrix, [0, 0, 0]), (3, 3)) for i in count]
        return Poses(np.array(position), np.array(rotation))


class Exudyn:
    name = "Exudyn"
    methods = tuple(SOLVERS)

    def version(self) -> str:
        return importlib.import_module("exudyn").__version__

    def refuses(self, scene: Scene, method: str) -> str | None:
        if scene.ground is not None:
            return "its contact is not set up here"
        if any(h.armature for h in scene.tree):
            return "has no armature"
        return None

    def build(self, scene: Scene, method: str, dt: float) -> ExudynModel:
        return ExudynModel(scene, method, dt)
