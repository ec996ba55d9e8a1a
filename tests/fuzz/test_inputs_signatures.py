"""Bad values in the place of every argument of every public function: a named error at the call, and nothing changed; none in silence."""
from __future__ import annotations

from functools import cache

import pytest
from arm import arm
from signatures import HEAVY, Call, algebra_calls, calls, known, public, try_bad, zoo_calls

import dalembert as da


@cache
def simulation() -> da.Simulation:
    return da.Simulation(arm(), da.Variational(dt=0.01))


@cache
def trajectory() -> da.Trajectory:
    return da.Simulation(arm(), da.Variational(dt=0.01)).run(0.03)


@cache
def algebra() -> da.Algebra:
    return da.Algebra(arm())


ALL = [*calls(simulation, trajectory), *algebra_calls(algebra)]
ZOO = zoo_calls()


def test_every_signature_is_known() -> None:
    assert not public() - known()


#: mechanisms that take long to build
LARGE = ("zoo.hoberman_sphere", "zoo.spline_shoulder", "zoo.walker_legs", "zoo.character", "zoo.animatronic_figure")
#: of the algebra, whose kernels take long to compile
FEW = ("mass_matrix", "integrate", "slot", "random", "forward_kinematics", "body_jacobian")


def marks(call: Call) -> list[pytest.MarkDecorator]:
    slow = call.title in LARGE or (call.title.startswith("Algebra.") and call.title.removeprefix("Algebra.") not in FEW)
    return [pytest.mark.slow] if slow else []


@pytest.mark.parametrize("call", [pytest.param(call, id=call.title, marks=marks(call)) for call in ALL])
def test_bad_values(call: Call, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    heavy = call.title.rpartition(".")[2] in HEAVY or call.title.startswith("Algebra.")
    wrong = [try_bad(call, name, value) for name, value in call.bad() if not (heavy and value in FINE)]
    assert not "\n".join(line for line in wrong if line)


#: values that heavy functions may take, and then do what they do
FINE = ("None", "two", "half", "list", "dict", "text", "class", "-1", "-1.5", "texts")


@pytest.mark.parametrize("call", [pytest.param(call, id=call.title, marks=marks(call)) for call in ZOO])
def test_bad_values_in_the_zoo(call: Call) -> None:
    wrong = [try_bad(call, name, value) for name, value in call.bad()]
    assert not "\n".join(line for line in wrong if line)
