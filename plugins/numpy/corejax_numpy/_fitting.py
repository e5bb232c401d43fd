"""Fits of polynomials by least squares."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

from corejax import lax
from corejax.core import aval_of
from corejax.errors import CorejaxValueError
from corejax.plugin import operators, refused, shaping
from corejax_numpy._arrays import array
from corejax_numpy._matrices import epsilon, floats, product, swapped
from corejax_numpy._solving import inv, lstsq

__all__ = ["fitted"]


def fitted(x: Any, y: Any, deg: int, rcond: Any, full: Any, w: Any, cov: Any) -> Any:
    """What `polyfit` returns."""
    x, y, *weights = floats(x, y, *([] if w is None else [w]))
    order = deg + 1
    fits = x.ndim == 1 and x.size and y.ndim in (1, 2) and y.shape[0] == x.size
    if deg < 0 or not fits or any([weight.shape != x.shape for weight in weights]):
        raise refused("polyfit", "the operands don't fit together", kind=CorejaxValueError,
                      got=f"{x.aval} and {y.aval}, degree {deg}" + (f", weights {weights[0].aval}" if weights else ""),
                      wanted="a vector x, as many rows of y and weights, and a degree of at least 0",
                      todo="apply cj.vmap for a batch")
    if rcond is None:
        rcond = x.size * epsilon(x.dtype)
    matrix, right = _powers(x, order), y if y.ndim == 2 else array(lax.expand_dims(y, (1,)))
    for weight in weights:
        column = array(lax.expand_dims(weight, (1,)))
        matrix, right = matrix * column, right * column
    squares = matrix * matrix if matrix.dtype.kind != "c" else matrix * lax.conj(matrix)
    scale = array(lax.sqrt(operators.sum(squares, 0)))
    matrix = matrix / scale
    found, rest, rank, s = lstsq(matrix, right, rcond)
    found = array(found) / array(lax.expand_dims(scale, (1,)))
    out = found if y.ndim == 2 else lax.squeeze(found, (1,))
    if shaping.as_flag("polyfit", "full", full):
        return out, rest, rank, s, array(rcond)
    if not isinstance(cov, str) and not shaping.as_flag("polyfit", "cov", cov):
        return out
    base = array(inv(product(swapped(matrix), matrix)))
    base = base / array(lax.expand_dims(scale, (1,))) / scale
    if cov == "unscaled":
        return out, base if y.ndim == 1 else lax.expand_dims(base, (2,))
    if x.size <= order:
        raise refused("polyfit", "there are too few points to estimate errors from", kind=CorejaxValueError,
                      got=f"{x.size} points, degree {deg}", wanted=f"more than {order} points",
                      todo="pass cov='unscaled' if the weights are the errors")
    factor = array(rest) / (x.size - order)
    return out, (base * factor if y.ndim == 1 else array(lax.expand_dims(base, (2,))) * factor)


def _powers(x: Any, count: int) -> Any:
    """A column for each power, the highest first; by products, whose derivatives at 0 are those of powers."""
    columns = [lax.full_like(x, 1)]
    for _ in range(count - 1):
        columns.append(array(columns[-1]) * x)
    axis = aval_of(x).ndim
    return array(lax.concatenate([lax.expand_dims(column, (axis,)) for column in columns[::-1]], axis))
