"""`jet` and `derivatives`: Taylor series of functions of pytrees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import ml_dtypes
import numpy as np

from corejax import lax
from corejax.core import (
    ShapedArray,
    as_value,
    call_user,
    check_callable,
    dtypes,
    flatten,
    here,
    instantiate,
    namer,
    values,
)
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import Zero, families, public, roles, shaping
from corejax_taylor._arguments import checked_primals, checked_series
from corejax_taylor._interpreter import jet_flat
from corejax_taylor._transformation import JET

__all__ = ["derivatives", "jet"]


@public
def jet(fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], factorial_scaled: bool = True
        ) -> tuple[Any, Any]:
    """The Taylor series of `fun` along a curve: its value, and its derivatives by the curve's parameter.

    The curve begins at `primals`, a tuple of arguments. `series` has a list for each argument: its first derivative,
    its second, and so on, equally many for all, each like the argument. The result is a pair of `fun(*primals)`, and of
    the same with a list of derivatives for each array. With `factorial_scaled=False`, coefficients of the powers of the
    parameter stand in the place of derivatives, here and there: the k-th derivative over k!.

    >>> from corejax import lax
    >>> y, (dy, ddy) = jet(lambda x: x * x * x, (2.0,), ([1.0, 0.0],))
    >>> y.item(), dy.item(), ddy.item()
    (8.0, 12.0, 12.0)
    >>> jet(lax.exp, (np.zeros(2),), ([np.ones(2), np.zeros(2)],))
    (Array([1., 1.], dtype=float64), [Array([1., 1.], dtype=float64), Array([1., 1.], dtype=float64)])
    """
    check_callable(fun, "jet")
    tree, xs = checked_primals(primals)
    order, terms = checked_series(primals, series, xs)
    if factorial_scaled:
        _check_factorials("jet", order, xs)
        terms = [[_over(c, factorial(k)) for k, c in enumerate(of_one, 1)] for of_one in terms]
    out_tree, outs, coefficients = _run(fun, "jet", tree, order, xs, terms, factorial_scaled)
    if factorial_scaled:
        coefficients = [_derivatives(of_one) for of_one in coefficients]
    found = [[_finished(c, x.aval) for c in of_one] for x, of_one in zip(outs, coefficients, strict=True)]
    return out_tree.unflatten(outs), out_tree.unflatten(found)


@public
def derivatives(fun: Callable[[Any], Any], x: Any, order: int, along: Any = None) -> list[Any]:
    """`fun(x)` and its derivatives up to this order, as a list: `[f(x), f'(x), f''(x), ...]`.

    `fun` takes one array. If that isn't a number, the derivatives are those along a direction, an array like x: of
    `fun(x + t * along)` by a number t. By default that is all ones: for an elementwise function, these are the
    derivatives at each element.

    >>> from corejax import lax
    >>> [d.item() for d in derivatives(lambda x: x ** 3, 2.0, 4)]
    [8.0, 12.0, 12.0, 6.0, 0.0]
    """
    check_callable(fun, "derivatives")
    n = shaping.as_int("derivatives", "order", order)
    if n < 0:
        raise CorejaxValueError("derivatives: an order can't be negative", got=n, wanted="0 or more", where=here(),
                                todo="write 0 for the value alone")
    (x,) = values([x], "derivatives", lambda _: "x")
    aval = x.aval
    if not dtypes.is_inexact(aval.dtype):
        raise CorejaxTypeError("derivatives: integers have no derivatives", got=str(aval), where=here(),
                               wanted="a float or complex number, or an array of these", todo="write x.astype(float)")
    direction = lax.full(aval.shape, 1, aval.dtype) if along is None else _direction(along, aval)
    zero = Zero(aval.tangent)
    _, tree = flatten((x,))
    out_tree, outs, coefficients = _run(fun, "derivatives", tree, n, [x], [[direction, *[zero] * (n - 1)][:n]])
    found = [[y, *[_finished(c, y.aval) for c in _derivatives(of_one)]]
             for y, of_one in zip(outs, coefficients, strict=True)]
    return [out_tree.unflatten(of_order) for of_order in zip(*found, strict=True)] if outs else (
        [out_tree.unflatten([])] * (n + 1))


def _direction(along: Any, aval: ShapedArray) -> Any:
    """A direction of derivatives, checked."""
    (v,) = values([along], "derivatives", lambda _: "along")
    if not v.aval.matches(aval.tangent):
        raise CorejaxTypeError("derivatives: the direction isn't like x", got=str(v.aval), wanted=str(aval.tangent),
                               where=here(), todo="pass an array of x's shape and dtype")
    return roles.convert(v, aval.dtype) if v.aval.weak_type else v


def _run(fun: Callable[..., Any], what: str, tree: Any, order: int, xs: Sequence[Any], terms: Sequence[Sequence[Any]],
         scaled: bool = True) -> tuple[Any, list[Any], list[list[Any]]]:
    """The structure of what `fun` returns, the leaves, and their normalised coefficients."""
    out_tree: Any = None

    def flat(*leaves: Any) -> list[Any]:
        nonlocal out_tree
        out = call_user(fun, tree.unflatten(leaves), what)
        found, out_tree = flatten(out, None, "result")
        return values(found, what, namer("result", out))

    outs, coefficients = jet_flat(JET, flat, order, xs, terms)
    if scaled:
        _check_factorials(what, order, [*xs, *outs])
    return out_tree, outs, coefficients


def _check_factorials(what: str, order: int, values: Sequence[Any]) -> None:
    """Raise if coefficients, which are derivatives over factorials, are smaller than the normal numbers of a dtype."""
    for dtype in {x.aval.dtype: None for x in values if dtypes.is_inexact(x.aval.dtype)}:
        least = 1.0 / float(ml_dtypes.finfo(dtype).tiny)  # type: ignore[no-untyped-call]
        most = next(n for n in range(1, 200) if factorial(n + 1) > least)
        if order > most:
            raise CorejaxValueError(
                f"{what}: derivatives of order {order} are too many for {dtype}", got=f"order {order}", where=here(),
                wanted=f"at most {most}: coefficients are derivatives over {most}!, and smaller numbers are lost",
                todo="use a wider dtype; or coefficients themselves: jet(..., factorial_scaled=False)")


def _over(c: Any, divisor: int) -> Any:
    if type(c) is Zero or divisor == 1:
        return c
    return lax.div(c, families.weak_scalar(float(divisor), c.aval.dtype))


def _derivatives(coefficients: Sequence[Any]) -> list[Any]:
    return [_multiplied(c, factorial(k)) for k, c in enumerate(coefficients, 1)]


def _multiplied(c: Any, factor: int) -> Any:
    if type(c) is Zero or factor == 1:
        return c
    return roles.multiply(c, families.weak_scalar(float(factor), c.aval.dtype))


def _finished(c: Any, aval: ShapedArray) -> Any:
    """A coefficient as the user gets it: zeros for a `Zero`, float0 for integers, weak where the result is."""
    if type(c) is Zero and c.aval.dtype == dtypes.float0:
        return as_value(np.zeros(aval.shape, dtypes.float0))
    c = instantiate(c)
    return roles.convert(c, aval.dtype, weak_type=True) if aval.weak_type else c
