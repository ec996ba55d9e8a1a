"""A mechanism with every kind of force, for derivative tests."""
import numpy as np

import dalembert as da


def everything() -> da.Mechanism:
    """Five bodies on hinges, a universal joint, a ball and a slide, geared to one another, with all kinds of forces."""
    mechanism, rng = da.Mechanism("everything", gravity=(0.3, -0.2, -9.81)), np.random.default_rng(3)

    def body(name, position):
        A = rng.normal(size=(3, 3))
        inertia = 0.02 * (np.trace(A @ A.T) * np.eye(3) - A @ A.T)
        return mechanism.body(name, mass=float(rng.uniform(0.5, 2.0)), inertia=inertia, position=position, orientation=rng.normal(size=4))

    a, b, c = body("a", (0, 0.2, -0.5)), body("b", (0.3, 0.1, -1)), body("c", (-0.5, 0.2, -0.4))
    d, e = body("d", (1, 0.3, -0.2)), body("e", (1.3, 0.5, -0.7))
    world = mechanism.world
    mechanism.joint("hinge", da.Revolute(axis="x", drive="force", armature=0.1, damping=0.3), world, a, at=(0, 0, 0))
    servo = da.Servo(stiffness=5.0, damping=0.5, target=0.2)
    mechanism.joint("cross", da.Universal(stiffness=2.0, damping=(0.1, 0.2), armature=0.05, servo=(servo, None)), a, b, at=(0, 0.1, -0.8))
    mechanism.joint("geared", da.Revolute(axis="y"), world, c, at=(-0.5, 0, 0))
    ball = da.Spherical(stiffness=(1.0, 2.0, 3.0), rest=(0.2, 0.1, -0.3), damping=0.1, drive="force")
    mechanism.joint("ball", ball, world, d, at=(1, 0, 0))
    mechanism.joint("slide", da.Prismatic(axis=(1, 1, 0), stiffness=20.0, damping=0.2), d, e, at=(1.2, 0.4, -0.5))
    mechanism.gear("gear", "hinge", "geared", ratio=1.5)
    points = [(a, (0, 0.1, -0.6)), (c, (-0.4, 0.1, -0.5)), (b, (0.2, 0.3, -1.1))]
    mechanism.path("path", points, stiffness=30.0, damping=1.0, length=0.8, drive="force")
    mechanism.cable("cable", [(world, (1, 1, 0)), (d, (1, 0.4, -0.4)), (e, (1.3, 0.5, -0.8))], stiffness=50.0, damping=1.0, length=0.5)
    mechanism.path("law", [(world, (0, 0, 0.5)), (b, (0.3, 0, -1))], law=lambda l, r: (3 * l**3 + 0.5 * r, 9 * l * l, 0.5, 0.75 * l**4))
    mechanism.spring("spring", b, d, at=((0.3, 0.1, -1.1), (1.0, 0.2, -0.3)), stiffness=10.0, damping=0.4, length=0.3)
    mechanism.force("world force", a, (1, 2, 3), at=(0, 0.3, -0.6))
    mechanism.force("body force", b, (1, -2, 1), at=(0.4, 0.1, -1), follows=True)
    mechanism.drag("drag", c, linear=0.3, angular=0.2)
    mechanism.penalty("penalty", e, point=(0.1, 0, 0), normal=(0, 0.6, 0.8), offset=1.5, stiffness=5.0, damping=0.4, friction=0.3, tangential=1.0)

    def law(x, q, v):
        pull = 0.5 * (x[1] - x[0]) + 0.1 * (v[1, :3] - v[0, :3])
        return np.stack([np.concatenate([pull, 0.1 * np.sin(x[0]) - 0.05 * v[0, 3:]]), np.concatenate([-pull, np.zeros(3)])])

    mechanism.force_law("force law", [a, d], law)
    mechanism.potential("potential", c, lambda x, q: 2 * np.sin(x[0]) * x[2] + q[1] * q[2])
    mechanism.wrench(e, force=(0.1, 0.2, 0.3), torque=(0.3, 0.2, 0.1))
    return mechanism
