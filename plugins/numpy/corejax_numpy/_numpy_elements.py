"""NumPy functions that make, choose, compare and round elements, for traced values."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes, from_array_like
from corejax.plugin import operators, refused, shaping
from corejax_lax_basic import broadcast_together, of_one_dtype, promoted
from corejax_numpy._numpy_products import diagonal
from corejax_numpy._numpy_shapes import broadcast_to
from corejax_numpy._numpy_ufuncs import is_finite, is_infinite, truncated

# Creation

def full_like(a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
              device: Any = None) -> Any:
    """`np.full_like`."""
    aval = aval_of(a)
    sizes = aval.shape if shape is None else tuple(np.empty(shape, np.bool_).shape)
    value = operators.astype(from_array_like(fill_value), aval.dtype if dtype is None else dtype)
    return broadcast_to(value, sizes)


def zeros_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
               device: Any = None) -> Any:
    """`np.zeros_like`; `np.empty_like` too."""
    return full_like(a, 0, dtype, order, subok, shape, device=device)


def ones_like(a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *,
              device: Any = None) -> Any:
    """`np.ones_like`."""
    return full_like(a, 1, dtype, order, subok, shape, device=device)


def array(object: Any, dtype: Any = None, *, copy: bool | None = None, order: str | None = None, subok: bool = False,
          ndmin: int = 0, device: Any = None) -> Any:
    """`np.array(values, like=x)`, `np.asarray(values, like=x)`: traced values are unchanged, lists of them joined."""
    found = from_array_like(object)
    found = found if dtype is None else operators.astype(found, dtype)
    missing = ndmin - found.ndim
    return operators.reshape(found, (*[1] * missing, *found.shape)) if missing > 0 else found


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
             axis: int = 0) -> Any:
    """`np.linspace`, along the first axis."""
    count = shaping.as_int("linspace", "a count", num)
    if axis != 0 or retstep:
        raise refused("linspace", "with traced bounds, the numbers go along the first axis", got=f"axis={axis}",
                      wanted="axis=0, retstep=False", todo="move the axis afterwards")
    start, stop = promoted((from_array_like(start), from_array_like(stop)), "f")
    divisor = count - 1 if endpoint else count
    places = np.arange(count).reshape(count, *[1] * max(aval_of(start).ndim, aval_of(stop).ndim))
    step = operators.truediv(operators.sub(stop, start), float(max(divisor, 1)))
    line = operators.add(operators.mul(step, places.astype(aval_of(step).dtype)), start)
    if endpoint and count > 1:
        line = where(places == count - 1, stop, line)
    if dtype is None:
        return line
    return operators.astype(lax.floor(line) if np.dtype(dtype).kind in "iu" else line, dtype)


def diag(v: Any, k: int = 0) -> Any:
    """`np.diag`: a matrix with this diagonal, or the diagonal of a matrix."""
    v = from_array_like(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise refused("diag", "the operand must be a vector or a matrix", got=str(v.aval), wanted="one axis or two",
                      todo="np.diagonal takes more axes")
    size = v.size + abs(k)
    at = np.arange(v.size)
    return operators.at(lax.full((size, size), 0, v.dtype))[at + max(-k, 0), at + max(k, 0)].set(v)


def tril(m: Any, k: int = 0) -> Any:
    """`np.tril`: the elements above the k-th diagonal are zero."""
    m = from_array_like(m)
    return where(_triangle("tril", m, k), m, _zero(m))


def _triangle(name: str, m: Any, k: int) -> Any:
    if not m.ndim:
        raise refused(name, "a scalar has no triangle", got=str(m.aval), wanted="at least one axis",
                      todo="pass a matrix")
    return np.tri(m.shape[-min(m.ndim, 2)], m.shape[-1], k, bool)  # a vector is every row of a square


def _zero(m: Any) -> Any:
    return np.zeros((), m.dtype)


def triu(m: Any, k: int = 0) -> Any:
    """`np.triu`: the elements below the k-th diagonal are zero."""
    m = from_array_like(m)
    return where(_triangle("triu", m, k - 1), _zero(m), m)

# Choosing

def where(condition: Any, /, *cases: Any) -> Any:
    """`np.where` with three arguments; with one, its shape depends on values."""
    if len(cases) != 2:
        raise refused("where", "the shape of np.where(condition) depends on its values",
                      got=f"{len(cases) + 1} argument", wanted="np.where(condition, x, y)",
                      todo="use a mask, or call it outside of the transformed function")
    condition = from_array_like(condition)
    if condition.dtype != dtypes.bool_:
        condition = operators.ne(condition, 0)
    x, y = [case if type(case) in dtypes.PYTHON_SCALARS else from_array_like(case) for case in cases]
    x, y = [from_array_like(case) for case in of_one_dtype((x, y))]
    mask, x, y = broadcast_together([condition, x, y])
    shape = np.broadcast_shapes(*[aval_of(part).shape for part in (mask, x, y)])
    return lax.select_n(*[broadcast_to(part, shape) for part in (mask, y, x)])


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """`np.select`: each element comes from the first choice whose condition holds."""
    if len(condlist) != len(choicelist):
        raise refused("select", "each condition needs a choice", wanted="lists of one length",
                      got=f"{len(condlist)} conditions, {len(choicelist)} choices", todo="pass a choice for each")
    out = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        out = where(condition, choice, out)
    return out


def clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """`np.clip`."""
    return operators.clip(from_array_like(a), a_min if min is None else min, a_max if max is None else max)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """`np.nan_to_num`."""
    x = from_array_like(x)
    if dtypes.is_complex(x.dtype):
        raise refused("nan_to_num", "the operand must be real", got=str(x.aval), wanted="a real dtype",
                      todo="apply it to x.real and x.imag")
    if not dtypes.is_inexact(x.dtype):
        return x
    info: Any = ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]
    largest = float(info.max)
    out = where(operators.ne(x, x), nan, x)
    out = where(operators.eq(x, np.inf), largest if posinf is None else posinf, out)
    return where(operators.eq(x, -np.inf), -largest if neginf is None else neginf, out)

# Rounding and parts

def around(a: Any, decimals: int = 0) -> Any:
    """`np.around`."""
    return operators.round(from_array_like(a), decimals)


def fix(x: Any) -> Any:
    """`np.fix`: rounded towards zero."""
    return truncated(from_array_like(x))


def angle(z: Any, deg: bool = False) -> Any:
    """`np.angle`."""
    z = from_array_like(z)
    if not dtypes.is_inexact(z.dtype):
        z = operators.astype(z, dtypes.default_dtype("f"))
    found = lax.atan2(operators.imag(z), operators.real(z))
    return operators.mul(found, 180 / np.pi) if deg else found


def sinc(x: Any) -> Any:
    """`np.sinc`: sin(pi x) / (pi x), 1 at 0; a series near 0, which keeps derivatives that the quotient loses."""
    (x,) = promoted((from_array_like(x),), "f")
    scaled = operators.mul(x, np.pi)
    near = operators.lt(operators.abs(x), 0.15)
    series, square = 1.0, operators.mul(scaled, scaled)
    for n in range(10, 0, -1):
        series = operators.add(operators.mul(operators.mul(square, -1.0 / (2 * n * (2 * n + 1))), series), 1.0)
    divisor = where(near, 1.0, scaled)
    return where(near, series, operators.truediv(lax.sin(divisor), divisor))


def polyval(p: Any, x: Any) -> Any:
    """`np.polyval`, by Horner's rule."""
    x, out = from_array_like(x), None
    for coefficient in from_array_like(p):
        out = operators.add(operators.mul(x, 0), coefficient) if out is None else operators.add(
            operators.mul(out, x), coefficient)
    return operators.mul(x, 0) if out is None else out

# Comparing

def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """`np.isclose`."""
    a, b = map(from_array_like, promoted((from_array_like(a), from_array_like(b)), "f"))
    bound = operators.add(operators.mul(operators.abs(b), rtol), atol)
    near = lax.bitwise_and(operators.le(operators.abs(operators.sub(a, b)), bound), is_finite(b))
    near = lax.bitwise_or(near, operators.eq(a, b))
    return lax.bitwise_or(near, lax.bitwise_and(operators.ne(a, a), operators.ne(b, b))) if equal_nan else near


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """`np.allclose`, as a boolean array."""
    return isclose(a, b, rtol, atol, equal_nan).all()


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """`np.array_equal`, as a boolean array unless the shapes decide."""
    a1, a2 = from_array_like(a1), from_array_like(a2)
    if a1.shape != a2.shape:
        return False
    same = operators.eq(a1, a2)
    if equal_nan:
        same = lax.bitwise_or(same, lax.bitwise_and(operators.ne(a1, a1), operators.ne(a2, a2)))
    return same.all()


def isposinf(x: Any) -> Any:
    """`np.isposinf`."""
    return lax.bitwise_and(is_infinite(from_array_like(x)), operators.gt(from_array_like(x), 0))


def isneginf(x: Any) -> Any:
    """`np.isneginf`."""
    return lax.bitwise_and(is_infinite(from_array_like(x)), operators.lt(from_array_like(x), 0))
