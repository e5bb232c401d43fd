"""The kit checks primitives that communicate along named axes under maps that name them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corejax import lax
from corejax.core import bound_axis
from corejax.plugin import Sample, define, hookimpl
from corejax.testing import ConformanceError, check_primitive


class Total:
    """The sum over a named axis."""

    name = "demo_total"
    linear = (0,)

    def __init__(self, factor: float = 1.0) -> None:
        self._factor = factor
        self._bind = define(self)

    @hookimpl
    def abstract_eval(self, avals: Any, *, axis_name: str) -> Any:
        (x,) = avals
        bound_axis(axis_name, self.name)
        return x

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axis_name: str) -> Any:
        return [self._bind(cotangents, axis_name=axis_name)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axis_name: str) -> Any:
        (x,), (dim,) = args, dims
        if axis.name != axis_name:
            return self._bind(x, axis_name=axis_name), dim
        if dim is None:
            return lax.mul(x, lax.full_like(x, axis.size)), None
        return lax.mul(lax.reduce_sum(x, (dim,)), lax.full_like(lax.index_in_dim(x, 0, dim, False), self._factor)), None

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axis_name: str) -> Any:
        raise NotImplementedError("demo_total is evaluated by its rule for the named axis, never compiled")


def samples(rng: Any) -> list[Sample]:
    x = rng.standard_normal((3, 2, 2))
    return [Sample([x], {"axis_name": "i"}, axes={"i": 3}, results=np.stack([x.sum(0)] * 3)),
            Sample([x], {"axis_name": "j"}, axes={"i": 3, "j": 2}),
            Sample([x], {"axis_name": "k"}, axes={"i": 3}, error=NameError)]


def test_a_collective_keeps_the_laws_at_each_position() -> None:
    report = check_primitive(Total()._bind, samples(np.random.default_rng(0)))
    held = {outcome.check for outcome in report.outcomes if outcome.held}
    assert {"a map is a loop", "transpose is the adjoint", "results are those that the sample knows"} <= held


def test_a_wrong_rule_for_the_named_axis_is_found() -> None:
    with pytest.raises(ConformanceError, match=r"(?s)demo_total.*result 0 is not what the sample states"):
        check_primitive(Total(2.0)._bind, samples(np.random.default_rng(0)))
    with pytest.raises(ConformanceError, match=r"demo_total.*each must raise an error"):
        check_primitive(Total()._bind, samples(np.random.default_rng(0))[2:])


def test_a_sample_shows_its_axes() -> None:
    assert "Sample(args=(1.0,), axes={'i': 3})" == repr(Sample([1.0], axes={"i": 3}))
