"""Objects that hold arrays: where the kernel leaves a call to them, what functions get, and where they are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from calculus import add, calculus, mul, sin

import corejax as cj
from corejax.core import aval_of, flatten, stage, stage_function
from corejax.errors import CorejaxError, CorejaxTypeError
from corejax.plugin import HeldError, Holder, HolderType


@pytest.fixture(autouse=True)
def roles():
    with calculus():
        yield


class BoxType(HolderType):
    __slots__ = ()

    def shown(self, tracer: Any) -> Any:
        return "shown", tracer


class Box(Holder):
    """Holds an array; what it is added to gets ten times that."""

    is_traced = False

    def __init__(self, value: float) -> None:
        self.value = np.float64(value)
        self.aval = BoxType((), np.float64)

    def apply(self, primitive: Any, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        return primitive.bind(*[10.0 * x.value if isinstance(x, Box) else x for x in args], **params)

    def not_an_array(self) -> HeldError:
        error = HeldError("a box isn't an array")
        error.holder = self
        return error

    def returned(self, what: str, name: str) -> CorejaxError:
        return CorejaxTypeError(f"{what} returns a box at {name}")

    def given_twice(self) -> CorejaxError:
        return CorejaxTypeError("a box is given twice")


def test_a_primitive_with_a_holder_among_its_operands_is_applied_by_it():
    box = Box(2.0)
    assert 21.0 == add.primitive.bind(box, np.float64(1.0)).item()
    assert 21.0 == add.primitive.bind(np.float64(1.0), box).item()
    assert np.isclose(3.0 * np.cos(20.0 * 0.5) * 20.0, cj.grad(
        lambda x: mul(sin(mul.primitive.bind(box, x)), np.float64(3.0)))(np.float64(0.5)).item())
    assert [40.0, 60.0] == cj.vmap(lambda x: mul.primitive.bind(box, x))(np.array([2.0, 3.0])).tolist()
    closed = stage(lambda x: [mul.primitive.bind(x, box)], [aval_of(np.float64(1.0))])
    assert "mul a 20.0:f64[]" in str(closed)


def test_elsewhere_it_is_refused_in_its_own_words():
    with pytest.raises(TypeError, match="a box isn't an array"):
        stage(lambda: [Box(1.0)], [])
    with pytest.raises(TypeError, match="returns a box at result"):
        cj.vmap(lambda x: Box(1.0))(np.ones(3))
    with pytest.raises(TypeError, match=r"returns a box at result\[1\]"):
        cj.grad(lambda x: (x, Box(1.0)), has_aux=True)(1.0)
    box = Box(1.0)
    with pytest.raises(TypeError, match="given twice"):
        cj.jvp(lambda x, y: x, (box, box), (box, box))


def test_a_function_gets_what_the_type_shows():
    seen = []
    avals = [BoxType((), np.float64), aval_of(np.float64(1.0))]
    staged = stage_function(lambda box, x: (seen.append(box), x)[1], avals, flatten((1.0, 1.0))[1], "f")
    (shown, tracer), = seen
    assert ("shown", avals[0]) == (shown, tracer.aval)
    assert avals == staged.jaxpr.in_avals


def test_types_are_of_their_class():
    aval = BoxType((3,), np.float64)
    assert aval is BoxType((3,), np.float64) and aval is not aval_of(np.ones(3))
    assert type(aval.update(shape=())) is BoxType
