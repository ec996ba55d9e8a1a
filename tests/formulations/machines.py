"""Small driven machines that several tests run."""
import dalembert as da


def two_motors() -> da.Mechanism:
    """A parallelogram with both cranks driven: one drive too many."""
    mechanism = da.Mechanism("two motors")
    for name, x in (("left", 0.0), ("right", 1.0)):
        mechanism.body(name, da.Rod(length=0.5, mass=1.0, radius=0.02, axis="z"), position=(x, 0, 0.25))
        mechanism.joint(f"{name} motor", da.Revolute(axis="y", drive="motion"), mechanism.world, name, at=(x, 0, 0))
    mechanism.body("bar", da.Rod(length=1.0, mass=1.0, radius=0.02, axis="x"), position=(0.5, 0, 0.5))
    for name, x in (("left", 0.0), ("right", 1.0)):
        mechanism.joint(f"{name} pin", da.Revolute(axis="y"), name, "bar", at=(x, 0, 0.5))
    return mechanism
