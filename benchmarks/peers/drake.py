"""Drake: MultibodyPlant, in discrete time with its solver of convex contact (SAP), or in continuous time by an integrator."""
from __future__ import annotations

import importlib
from itertools import product
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import dalembert as da
from benchmarks.comparison.scene import WORLD, Hinge, Poses, Scene, Touching

SAP = "SAP"
INTEGRATORS = {"RK3": "runge_kutta3", "RK5": "runge_kutta5", "Radau3": "radau3"}
#: radius of a corner, m
CORNER = 1e-6
#: x of their ball joints' frames along y of the world: their angles are singular where a ball turns its x axis up
UPRIGHT = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


class DrakeModel:
    def __init__(self, scene: Scene, method: str, dt: float, accuracy: float | None = None) -> None:
        self.scene, self.dt, self.discrete = scene, dt, method == SAP
        self.tree, self.plants, self.math, self.geometry = (importlib.import_module(f"pydrake.{m}") for m in ("multibody.tree", "multibody.plant", "math", "geometry"))
        framework, analysis = (importlib.import_module(f"pydrake.systems.{m}") for m in ("framework", "analysis"))
        builder = framework.DiagramBuilder()
        self.plant: Any
        self.plant, self.world_shapes = self.plants.AddMultibodyPlantSceneGraph(builder, dt if method == SAP else 0.0)
        self.build_plant(method)
        self.diagram = builder.Build()
        self.simulator: Any = analysis.Simulator(self.diagram)
        self.whole = self.simulator.get_mutable_context()
        self.context = self.plant.GetMyMutableContextFromRoot(self.whole)
        if method != SAP:
            integrator: Any = analysis.ResetIntegratorFromFlags(self.simulator, INTEGRATORS[method], dt if accuracy is None else 0.1)
            if accuracy is None:
                integrator.set_fixed_step_mode(True)
            else:
                integrator.set_target_accuracy(accuracy)
        self.set_start()
        self.start = self.context.get_discrete_state_vector().CopyToVector() if method == SAP else self.context.get_continuous_state_vector().CopyToVector()
        self.reset()

    def build_plant(self, method: str) -> None:
        plant, tree, scene = self.plant, self.tree, self.scene
        if method == SAP:
            plant.set_discrete_contact_approximation(self.plants.DiscreteContactApproximation.kSap)
        plant.mutable_gravity_field().set_gravity_vector(scene.gravity)
        self.bodies: dict[int, Any] = {WORLD: plant.world_body()}
        for index, link in enumerate(scene.links):
            J = link.inertia
            central = tree.RotationalInertia(J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2])
            self.bodies[index] = plant.AddRigidBody(f"body {index}", tree.SpatialInertia.MakeFromCentralInertia(link.mass, np.zeros(3), central))
        self.joints = {hinge.child: self.add_joint(hinge) for hinge in scene.tree}
        for hinge in scene.loops:
            ends = [self.local(body, hinge.point) for body in (hinge.parent, hinge.child)]
            plant.AddBallConstraint(self.bodies[hinge.parent], ends[0], self.bodies[hinge.child], ends[1])
        if scene.ground is not None:
            self.add_contact()
        plant.Finalize()

    def frame_of(self, body: int) -> tuple[np.ndarray, np.ndarray]:
        return (np.zeros(3), np.eye(3)) if body == WORLD else (self.scene.links[body].position, self.scene.links[body].rotation)

    def local(self, body: int, point: np.ndarray) -> np.ndarray:
        place, turn = self.frame_of(body)
        return turn.T @ (point - place)

    def add_joint(self, hinge: Hinge) -> Any:
        """The joint's frames have the world's axes at the start."""
        tree, plant, axes = self.tree, self.plant, UPRIGHT if hinge.kind == "spherical" else np.eye(3)
        frames = []
        for body in (hinge.parent, hinge.child):
            turn = self.frame_of(body)[1].T @ axes
            place = self.math.RigidTransform(self.math.RotationMatrix(turn), self.local(body, hinge.point))
            frames.append(plant.AddFrame(tree.FixedOffsetFrame(f"{hinge.name} {len(frames)}", self.bodies[body].body_frame(), place)))
        if hinge.kind == "fixed":
            return plant.AddJoint(tree.WeldJoint(hinge.name, *frames, self.math.RigidTransform()))
        if hinge.kind == "spherical":
            return plant.AddJoint(tree.BallRpyJoint(hinge.name, *frames))
        kind = tree.RevoluteJoint if hinge.kind == "revolute" else tree.PrismaticJoint
        joint = plant.AddJoint(kind(hinge.name, *frames, hinge.axis, damping=hinge.damping))
        if hinge.stiffness:
            plant.AddForceElement(tree.RevoluteSpring(joint, hinge.target, hinge.stiffness))
        if hinge.armature:
            rotor = plant.AddJointActuator(f"{hinge.name} rotor", joint)
            rotor.set_default_gear_ratio(1.0)
            rotor.set_default_rotor_inertia(hinge.armature)
        return joint

    def add_contact(self) -> None:
        scene, geometry = self.scene, self.geometry
        assert scene.ground is not None
        law = self.plants.CoulombFriction(scene.ground.friction, scene.ground.friction)
        floor = self.math.RigidTransform([0.0, 0.0, scene.ground.height])
        self.plant.RegisterCollisionGeometry(self.plant.world_body(), floor, geometry.HalfSpace(), "ground", law)
        mine = []
        for index, link in enumerate(scene.links):
            for part in link.touching:
                for shape, turn, position in self.shapes(part):
                    place = self.math.RigidTransform(self.math.RotationMatrix(turn), position)
                    mine.append(self.plant.RegisterCollisionGeometry(self.bodies[index], place, shape, f"shape {index} {len(mine)}", law))
        if not scene.together:
            apart = geometry.CollisionFilterDeclaration().ExcludeWithin(geometry.GeometrySet(mine))
            self.world_shapes.collision_filter_manager().Apply(apart)

    def shapes(self, part: Touching) -> list[tuple[Any, np.ndarray, np.ndarray]]:
        """Shapes with their places. A pair of shapes touches in one point there, so that a box on the ground is given as its corners."""
        shape, turn, place = part.shape, part.rotation, part.position
        if isinstance(shape, da.Sphere):
            return [(self.geometry.Sphere(shape.radius), turn, place)]
        if isinstance(shape, da.Box):
            corners = 0.5 * np.array(list(product((-1.0, 1.0), repeat=3))) * np.asarray(shape.size)
            return [(self.geometry.Sphere(CORNER), turn, place + turn @ corner) for corner in corners]
        if isinstance(shape, da.Capsule):
            return [(self.geometry.Capsule(shape.radius, shape.length), turn @ Rotation.align_vectors([shape.axis], [[0.0, 0.0, 1.0]])[0].as_matrix(), place)]
        raise TypeError(f"no {type(shape).__name__} in Drake")

    def set_start(self) -> None:
        for index in self.scene.roots:
            link, body = self.scene.links[index], self.bodies[index]
            self.plant.SetFreeBodyPose(self.context, body, self.math.RigidTransform(self.math.RotationMatrix(link.rotation), link.position))
            self.plant.SetFreeBodySpatialVelocity(self.context, body, self.math_velocity(link.angular, link.velocity))
        for hinge in self.scene.tree:
            joint = self.joints[hinge.child]
            if hinge.kind == "spherical":
                joint.set_angular_velocity(self.context, UPRIGHT.T @ hinge.rate)
            elif hinge.kind == "revolute":
                joint.set_angular_rate(self.context, hinge.rate[0])
            elif hinge.kind == "prismatic":
                joint.set_translation_rate(self.context, hinge.rate[0])

    @staticmethod
    def math_velocity(angular: np.ndarray, linear: np.ndarray) -> Any:
        return importlib.import_module("pydrake.multibody.math").SpatialVelocity(angular, linear)

    def reset(self) -> None:
        self.whole.SetTime(0.0)
        if self.discrete:
            self.context.SetDiscreteState(self.start)
        else:
            self.context.SetContinuousState(self.start)
        self.simulator.Initialize()
        self.steps = 0

    def run(self, steps: int) -> None:
        self.steps += steps
        self.simulator.AdvanceTo(self.steps * self.dt)

    def poses(self) -> Poses:
        places = [self.plant.EvalBodyPoseInWorld(self.context, self.bodies[i]) for i in range(len(self.scene.links))]
        return Poses(np.array([p.translation() for p in places]), np.array([p.rotation().matrix() for p in places]))


class Drake:
    name = "Drake"
    methods = (SAP, *INTEGRATORS)

    def version(self) -> str:
        from importlib.metadata import version

        return version("drake")

    def refuses(self, scene: Scene, method: str) -> str | None:
        if method != SAP and scene.loops:
            return "loops in discrete time alone"
        if method != SAP and scene.ground is not None:
            return "contact is measured in discrete time alone"
        return None

    def build(self, scene: Scene, method: str, dt: float, accuracy: float | None = None) -> DrakeModel:
        importlib.import_module("pydrake")
        return DrakeModel(scene, method, dt, accuracy)
