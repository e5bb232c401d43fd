"""What packs may declare in the place of a rule `jet`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.core import Primitive, here, instantiate
from corejax.errors import CorejaxIndexError, CorejaxTypeError, RuleError, kind_of
from corejax.plugin import Zero, transforming
from corejax_taylor._derived import composed, recurrent
from corejax_taylor._local import LocalTrace, Rule
from corejax_taylor._nodes import Node, Params, Series

__all__ = ["composition", "recurrence"]


class OnNodes(transforming.Declared):
    """A rule that makes nodes, as those that are derived do."""

    __slots__ = ("make",)
    hook = "jet"

    def __init__(self, make: Rule) -> None:
        self.make = make

    def rule(self, transformation: Any, primitive: Primitive) -> Rule:
        return self.make

    def __repr__(self) -> str:
        return "coefficient by coefficient"


class Filled(Series):
    """A series as users' recurrences see it: of arrays, up to the order that is known."""

    __slots__ = ("known",)

    def __init__(self, node: Node, known: int) -> None:
        super().__init__(node)
        self.known = known

    def __getitem__(self, j: int) -> Any:
        if not 0 <= j <= self.known:
            raise CorejaxIndexError(
                f"recurrence: the coefficient of t^{j} isn't known", got=j, wanted=f"a number from 0 to {self.known}",
                hook="jet", where=here(), todo="compute the coefficient of t^k of the result from those of the "
                "operands up to k, and its own before k")
        return instantiate(super().__getitem__(j))


class Recurrence(transforming.Declared):
    """What `recurrence` returns."""

    __slots__ = ("step",)
    hook = "jet"

    def __init__(self, step: Callable[..., Any]) -> None:
        self.step = step

    def rule(self, transformation: Any, primitive: Primitive) -> Rule:
        step = transforming.reading(self.step, primitive)

        def filled(k: int, out: Series, *operands: Series, **params: Any) -> Any:
            try:
                found = step(k, Filled(out.node, k - 1), *[Filled(x.node, k) for x in operands], **params)
            except Exception as error:
                raise transforming.blamed(transformation, primitive, error)  # noqa: B904
            if type(found) is Zero:
                return found
            (checked,) = transforming.checked_values(transformation, primitive, [found], [out.aval.tangent])
            return checked
        return recurrent(filled)


class Composition(transforming.Declared):
    """What `composition` returns."""

    __slots__ = ("function",)
    hook = "jet"

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def rule(self, transformation: Any, primitive: Primitive) -> Rule:
        make = composed(transforming.reading(self.function, primitive))

        def rule(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
            types = primitive.infer(tuple([x.aval for x in operands]), params)
            several = primitive.multiple_results
            found = make(local, primitive, operands, params)
            for node, aval in zip(found if several else [found], types if several else [types], strict=True):
                if not node.aval.matches(aval):
                    raise RuleError(f"{primitive.name}.jet ({primitive.origin}): its composition returns {node.aval}, "
                                    f"wanted {aval}", primitive=primitive.name, hook="jet", pack=primitive.origin,
                                    got=node.aval, wanted=aval, where=here(), todo="return what the primitive returns")
            return found
        return rule


def recurrence(step: Callable[..., Any]) -> Recurrence:
    """`jet = recurrence(f)`: the coefficient of t^k of the result is `f(k, out, *operands, **params)`.

    `out[j]` are its own coefficients, for j < k, and `x[j]` those of operands, for j <= k; `x[0]` is a value.
    Coefficients are normalised: derivatives over k!, so that those of products are sums of products. The value of the
    result is what the primitive gives.

    >>> import numpy as np
    >>> from corejax import lax, taylor
    >>> from corejax.plugin import define, factors, families
    >>> square = define(families.unary(
    ...     "doc_square", np.square, dtypes="f", doc="x times x.", jvp=factors(lambda out, x: x + x),
    ...     hlo=lambda ctx, args: ctx.lower(lambda x: x * x, *args),
    ...     rules={"jet": recurrence(lambda k, out, x: sum([x[j] * x[k - j] for j in range(k + 1)]))}))
    >>> [d.item() for d in taylor.derivatives(square, 3.0, 3)]
    [9.0, 6.0, 2.0, 0.0]
    """
    return Recurrence(_checked("recurrence", step))


def composition(function: Callable[..., Any]) -> Composition:
    """`jet = composition(f)`: the series of the result is that of `f(args, **params)`, of functions of arrays.

    For a primitive whose own derivative rule leads to more operations, or divides by what may be zero.
    """
    return Composition(_checked("composition", function))


def _checked(what: str, function: Any) -> Callable[..., Any]:
    if not callable(function):
        raise CorejaxTypeError(f"{what}: it must be a function", got=kind_of(function), wanted="a callable",
                               where=here(), todo=f"write jet = {what}(lambda ...: ...)")
    return function  # type: ignore[no-any-return]
