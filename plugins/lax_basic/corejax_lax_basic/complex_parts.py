"""Complex numbers and their parts. These are linear over the reals, and their transposes follow that convention.

With <a, b> = Re(a b), without conjugation, the transpose of the imaginary part has a minus sign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, dtypes
from corejax.plugin import define, families

__all__ = ["complex", "conj", "imag", "real"]


def _part(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"float{4 * dtype.itemsize}")


def _whole(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"complex{16 * dtype.itemsize}")


def _join(x: Any, y: Any) -> Any:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), _whole(x.dtype))
    out.real, out.imag = x, y
    return out


def _zero_beside(x: Any) -> Any:
    return families.weak_scalar(0.0, x.dtype)


class _Complex(families.Elementwise):
    def _type(self, avals: Any) -> Any:
        if dtypes.is_float(avals[0].dtype) and avals[0].dtype.itemsize < 4:
            raise families.refused(self.name, "no complex dtype is that narrow", avals,
                                   "float32 or float64", "convert with x.astype(...)")
        return super()._type(avals)


class _Conj(families.Elementwise):
    def function(self, bind: Callable[..., Array]) -> Callable[..., Any]:
        def conj(x: ArrayLike) -> Array:
            dtype = aval_of(x).dtype
            return complex(x, families.weak_scalar(0.0, dtype)) if dtypes.is_float(dtype) else bind(x)
        return conj


real = define(families.unary(
    "real", lambda x: x.real.copy(), hlo="real", dtypes="c", result=_part, jvp=None, linear=(0,),
    transpose=(lambda ct, x: complex(ct, _zero_beside(ct)),), doc="The real part of a complex array.",
    example="real(np.array([1 + 2j])).tolist() -> [1.0]"))
imag = define(families.unary(
    "imag", lambda x: x.imag.copy(), hlo="imag", dtypes="c", result=_part, jvp=None, linear=(0,),
    transpose=(lambda ct, x: complex(_zero_beside(ct), lax.neg(ct)),), doc="The imaginary part of a complex array.",
    example="imag(np.array([1 + 2j])).tolist() -> [2.0]"))
complex: Any = define(_Complex(
    "complex", _join, arity=2, hlo="complex", dtypes="f", result=_whole, jvp=None, linear=(0, 1),
    transpose=(lambda ct, x, y: real(ct), lambda ct, x, y: lax.neg(imag(ct))),
    doc="The complex numbers x + iy, from two float32 or float64 arrays.",
    example="complex(1.0, 2.0).item() -> (1+2j)"))
conj: Any = define(_Conj(
    "conj", np.conjugate, arity=1, hlo="chlo.conj", dtypes="c", jvp=None, linear=(0,),
    transpose=(lambda ct, x: conj(ct),), doc="The complex conjugate; complex even for real operands.",
    example="conj(np.array([1 + 2j])).tolist() -> [(1-2j)]"))
