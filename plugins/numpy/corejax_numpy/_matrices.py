"""Matrices in the last two axes: operands of `linalg` in their types, and what is done with them again and again."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from typing import Any

import ml_dtypes
import numpy as np

from corejax import lax
from corejax.core import DTypeLike, ShapedArray, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import NotDirectly, refused, roles
from corejax_lax_basic import of_one_dtype
from corejax_numpy._arrays import array
from corejax_numpy._picking import operand
from corejax_numpy._values import spread_to

__all__ = ["adjoint", "by_lapack", "conjugate", "epsilon", "eye", "floats", "matrices", "mismatch", "product", "real",
           "spread", "square_matrices", "swapped", "with_slope"]


def epsilon(dtype: np.dtype) -> float:
    """The relative distance of numbers of a dtype."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


_LAPACK = getattr(np.linalg, "_umath_linalg", None)


def by_lapack(name: str, may_overflow: bool = False) -> Callable[..., Any]:
    """What `np.linalg` calls itself, which computes in single precision, too, and gives NaNs where there is no result.

    These are left to the general functions, and everything, if NumPy has nothing of this name. Results of finite
    operands that are infinite are right if they `may_overflow`.
    """
    function = getattr(_LAPACK, name, None)

    def call(*operands: Any) -> Any:
        if function is None or any([x.dtype.char not in "fdFD" for x in operands]):
            raise NotDirectly
        out = function(*operands)
        for part in out if type(out) is tuple else (out,):
            if not np.isfinite(part).all() and (
                    not may_overflow or np.isnan(part).any() or not all([np.isfinite(x).all() for x in operands])):
                raise NotDirectly
        return out
    return call


def floats(*operands: Any) -> list[Any]:
    """The operands as arrays of one inexact dtype."""
    return [array(x) for x in of_one_dtype([operand(x) for x in operands], "f")]


def matrices(name: str, a: Any) -> Any:
    """The operand as an array with an inexact dtype, and two axes at least."""
    (x,) = floats(a)
    if x.ndim < 2:
        raise mismatch(name, "a matrix has two axes", x, "at least two axes", "add the missing ones with x[None]")
    return x


def square_matrices(name: str, a: Any) -> Any:
    """The same, with as many rows as columns."""
    x = matrices(name, a)
    if x.shape[-2] != x.shape[-1]:
        raise mismatch(name, "a matrix must be square", x, "as many rows as columns",
                       "look at the last two axes: those before are a batch")
    return x


def mismatch(name: str, problem: str, got: Any, wanted: str, todo: str) -> Exception:
    """The error for shapes that don't fit."""
    shown = got if isinstance(got, str) else str(aval_of(got))
    return refused(name, problem, got=shown, wanted=wanted, todo=todo, kind=CorejaxValueError)


def swapped(x: Any) -> Any:
    """The transposed matrices."""
    ndim = aval_of(x).ndim
    return lax.transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def conjugate(x: Any) -> Any:
    """The complex conjugate; real arrays as they are."""
    return lax.conj(x) if dtypes.is_complex(aval_of(x).dtype) else x


def adjoint(x: Any) -> Any:
    """The conjugate transposes."""
    return conjugate(swapped(x))


def real(x: Any) -> Any:
    """The real part; real arrays as they are."""
    return lax.real(x) if dtypes.is_complex(aval_of(x).dtype) else x


def product(x: Any, y: Any) -> Any:
    """The products of matrices in batches of one shape, in full precision."""
    ndim = aval_of(x).ndim
    batch = tuple(range(ndim - 2))
    return lax.dot_general(x, y, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision="highest")


def eye(dtype: DTypeLike, size: int, batch: tuple[int, ...] = ()) -> Any:
    """Identity matrices."""
    rows, columns = [lax.broadcasted_iota(np.int32, (size, size), axis) for axis in (0, 1)]
    return spread(lax.convert_element_type(lax.eq(rows, columns), dtype), batch)


def spread(x: Any, batch: tuple[int, ...], core: int = 2) -> Any:
    """The array with these axes before its last ones; axes that it has there are repeated to those sizes."""
    aval: ShapedArray = aval_of(x)
    return spread_to(x, (*batch, *aval.shape[aval.ndim - core:]))


def with_slope(rule: Callable[..., Any], nondiff: Sequence[int] = ()) -> Callable[[Callable[..., Any]], Any]:
    """A decorator: the function, with this rule for its derivative; the arguments at `nondiff` have none."""
    def decorate(function: Callable[..., Any]) -> Any:
        @cache
        def made() -> Any:  # when it is first called: imports have no effects
            custom = roles.custom_jvp(function, nondiff)
            custom.defjvp(rule)
            return custom
        return wraps(function)(lambda *args: made()(*args))
    return decorate
