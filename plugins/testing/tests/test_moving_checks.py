"""What the kit says of primitives that are declared structural, rightly and wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from corejax import lax
from corejax.plugin import Sample, define, hookimpl
from corejax.testing import ConformanceError, check_primitive

MOVED = "elements are moved whole"
SAMPLES = [Sample([np.array([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])])]


class Moves:
    name = "moves"
    structural = True

    @hookimpl
    def abstract_eval(self, avals: Any) -> Any:
        (x,) = avals
        return x

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0][:, ::-1]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return lax.rev(args[0], [1 + (dims[0] <= 1)]), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        return ctx.lower(lambda x: lax.rev(x, (1,)), *args)


class ChangesInPrograms(Moves):
    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return args[0] + args[0], dims[0]


class TakesApart(Moves):
    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any) -> Any:
        return lax.rev(args[0], [dims[0]]), dims[0]


class ChangesInNumPy(Moves):
    @hookimpl
    def impl(self, args: Any) -> Any:
        out = args[0].copy()
        out.view(np.float64)[...] += 1.0
        return out


class Computes(Moves):
    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0] + args[0]


def test_what_moves_elements_holds() -> None:
    assert check_primitive(define(Moves()), SAMPLES, checks=[MOVED])


@pytest.mark.parametrize("plugin, hook, problem", [
    (ChangesInPrograms, "xla_translation", "holds an element that no operand has"),
    (TakesApart, "xla_translation", "holds an element that no operand has"),
    (ChangesInNumPy, "impl", "holds an element that no operand has"),
    (Computes, "impl", "ufunc 'add'"),
], ids=lambda x: x.__name__ if isinstance(x, type) else None)
def test_what_is_structural_in_name_only_is_a_finding(plugin: Any, hook: str, problem: str) -> None:
    with pytest.raises(ConformanceError, match=rf"moves.{hook} (.|\n)*{problem}"):
        check_primitive(define(plugin()), SAMPLES, checks=[MOVED])


def test_others_are_left_alone() -> None:
    plain = type("Plain", (Moves,), {"structural": False})
    assert "not applicable" in str(check_primitive(define(plain()), SAMPLES, checks=[MOVED]))
