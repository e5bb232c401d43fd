"""Element types, and questions about them.

>>> import corejax.numpy as jnp
>>> x = jnp.float32(3)
>>> x, x.dtype == jnp.float32, x.astype(jnp.int8).dtype.name
(Array(3., dtype=float32), True, 'int8')
>>> jnp.promote_types("int64", "float32"), jnp.issubdtype(jnp.bfloat16, jnp.floating)
(dtype('float32'), True)
"""

from __future__ import annotations

from builtins import bool as _bool
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy import (
    character,
    complexfloating,
    dtype,
    flexible,
    floating,
    generic,
    inexact,
    integer,
    number,
    object_,
    signedinteger,
    unsignedinteger,
)
from numpy.exceptions import ComplexWarning

from corejax.core import Array as ndarray, DTypeLike, dtypes
from corejax.dtypes import finfo, iinfo, issubdtype, promote_types, result_type
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import operators, public, refused
from corejax_numpy import _asked
from corejax_numpy._arrays import array
from corejax_numpy._scalar_types import DefaultType, scalar_type

__all__ = [
    "ComplexWarning", "astype", "bfloat16", "bool", "bool_", "can_cast", "cdouble", "character", "complex128",
    "complex64", "complex_", "complexfloating", "csingle", "double", "dtype", "finfo", "flexible", "float16",
    "float32", "float4_e2m1fn", "float64", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float_", "floating", "generic", "iinfo",
    "inexact", "int16", "int2", "int32", "int4", "int64", "int8", "int_", "integer", "iscomplexobj", "isdtype",
    "isrealobj", "isscalar", "issubdtype", "iterable", "ndarray", "number", "object_", "promote_types", "result_type",
    "signedinteger", "single", "uint", "uint16", "uint2", "uint32", "uint4", "uint64", "uint8", "unsignedinteger",
]


# Scalar types

bool_ = scalar_type("bool_", "bool")
int2, int4, int8, int16, int32, int64 = [scalar_type(f"int{n}", f"int{n}") for n in (2, 4, 8, 16, 32, 64)]
uint2, uint4, uint8, uint16, uint32, uint64 = [scalar_type(f"uint{n}", f"uint{n}") for n in (2, 4, 8, 16, 32, 64)]
float16, float32, float64 = [scalar_type(f"float{n}", f"float{n}") for n in (16, 32, 64)]
complex64, complex128 = [scalar_type(f"complex{n}", f"complex{n}") for n in (64, 128)]
bfloat16, float4_e2m1fn = [scalar_type(name, name) for name in ("bfloat16", "float4_e2m1fn")]
(float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz,
 float8_e8m0fnu) = [scalar_type(f"float8_{name}", f"float8_{name}") for name in (
     "e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")]
int_, uint, float_, complex_ = [scalar_type(name, kind, DefaultType) for name, kind in (
    ("int_", "i"), ("uint", "u"), ("float_", "f"), ("complex_", "c"))]
bool, single, double, csingle, cdouble = bool_, float32, float64, complex64, complex128


# What a type is

#: The kinds of dtypes by the array API's names.
_KINDS = {"bool": "b", "signed integer": "i", "unsigned integer": "u", "integral": "iu", "real floating": "f",
          "complex floating": "c", "numeric": "iufc"}


@public
def isdtype(dtype: DTypeLike, kind: Any) -> _bool:
    """Whether a dtype is of a kind: another dtype, a name of the array API's, or a tuple of these.

    >>> isdtype(jnp.float32, "real floating"), isdtype(jnp.float32, ("integral", jnp.float64))
    (True, False)
    """
    one, kinds = dtypes.canonical(dtype), kind if isinstance(kind, tuple) else (kind,)
    return any([dtypes.kind(one) in _KINDS[k] if isinstance(k, str) and k in _KINDS else one is _known("isdtype", k)
                for k in kinds])


def _known(name: str, kind: Any) -> np.dtype:
    try:
        return dtypes.canonical(kind)
    except CorejaxTypeError as error:
        raise refused(name, "there is no such kind of dtypes", got=repr(kind)[:80], kind=CorejaxTypeError,
                      wanted=f"a dtype, or one of: {', '.join(_KINDS)}", todo="check the spelling") from error


# What types become

@public
def can_cast(from_: Any, to: Any, casting: str = "safe") -> _bool:
    """Whether NumPy casts one dtype to another by this rule.

    >>> can_cast(jnp.int32, jnp.float64), can_cast(jnp.int64, jnp.float32)
    (True, False)
    """
    if type(from_) in dtypes.PYTHON_SCALARS:
        raise refused("can_cast", "a Python number has no dtype of its own", got=repr(from_),
                      wanted="a dtype or an array",
                      todo="give it a dtype first")
    if casting not in ("no", "equiv", "safe", "same_kind", "unsafe"):
        raise refused("can_cast", "there is no such rule", got=f"casting={casting!r}", kind=CorejaxValueError,
                      wanted="'no', 'equiv', 'safe', 'same_kind' or 'unsafe'", todo="leave it out: it is 'safe'")
    return np.can_cast(_asked.dtype_of(from_), dtypes.canonical(to), casting)  # type: ignore[arg-type]


@public
def astype(x: Any, dtype: DTypeLike | None, /, *, copy: _bool = False, device: Any = None) -> ndarray:
    """The array in another dtype.

    >>> astype(jnp.array([1.7, -1.7]), int)
    Array([ 1, -1], dtype=int64)
    """
    wanted = dtypes.default_dtype("f") if dtype is None else dtype
    found: ndarray = _asked.placed("astype", operators.astype(array(x), wanted, copy=copy), device)
    return found


# What a value is

def _is_complex(x: Any) -> _bool:
    try:
        return dtypes.is_complex(_asked.dtype_of(x, allow_types=False))
    except CorejaxTypeError:
        return False


@public
def iscomplexobj(x: Any) -> _bool:
    """Whether it has a complex dtype, whatever its elements are.

    >>> iscomplexobj(jnp.array([1.0, 0j])), iscomplexobj([1, 2])
    (True, False)
    """
    return _is_complex(x)


@public
def isrealobj(x: Any) -> _bool:
    """Whether it doesn't have a complex dtype.

    >>> isrealobj(jnp.array([1.0, 0j])), isrealobj([1, 2])
    (False, True)
    """
    return not _is_complex(x)


@public
def isscalar(element: Any) -> _bool:
    """Whether it is a number, a text, or an array without axes.

    >>> isscalar(3.0), isscalar(jnp.float32(3)), isscalar([3])
    (True, True, False)
    """
    return np.isscalar(element) or getattr(element, "ndim", None) == 0


@public
def iterable(y: Any) -> _bool:
    """Whether it can be iterated over; an array without axes can't.

    >>> iterable(jnp.ones(3)), iterable(jnp.ones(()))
    (True, False)
    """
    if isinstance(y, ndarray):
        return y.ndim > 0
    return isinstance(y, Iterable) or np.iterable(y)
