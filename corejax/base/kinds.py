"""Questions about dtypes: of which kind they are, what their limits are, what several of them become.

>>> issubdtype("bfloat16", np.floating), issubdtype(np.int8, np.inexact)
(True, False)
>>> promote_types("int64", "float32").name, result_type(np.int8(1), 2).name
('float32', 'int8')
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from corejax.base import dtypes, elements
from corejax.base.avals import aval_of
from corejax.base.elements import extended
from corejax.base.errors import CorejaxTypeError, CorejaxValueError
from corejax.base.source import here
from corejax.base.tracebacks import public

#: The kinds of dtypes that NumPy's abstract classes stand for.
_ABSTRACT = {np.generic: "biufcE", np.number: "iufc", np.integer: "iu", np.signedinteger: "i",
             np.unsignedinteger: "u", np.inexact: "fc", np.floating: "f", np.complexfloating: "c"}


@public
def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether a dtype is the other, or belongs to an abstract class: NumPy's, or `extended` and those below it.

    >>> issubdtype("int8", np.integer), issubdtype(float, "float32"), issubdtype("float64", extended)
    (True, False, False)
    """
    one, other = _named("issubdtype", _scalar_class, arg1), _named("issubdtype", _scalar_class, arg2)
    if isinstance(one, np.dtype):
        element = elements.find(one)
        if isinstance(other, np.dtype) or element is None:
            return one is other
        return issubclass(element.kind, other)
    if isinstance(other, np.dtype):
        return False
    if other in _ABSTRACT and one not in _ABSTRACT and not issubclass(one, (np.flexible, np.object_, extended)):
        return dtypes.kind(dtypes.canonical(one)) in _ABSTRACT[other]
    return issubclass(one, other)


def _scalar_class(one: Any) -> Any:
    """NumPy's class of scalars for what names a dtype; the dtype of elements; abstract classes as they are."""
    if isinstance(one, type) and issubclass(one, np.generic):
        return one
    try:
        dtype = dtypes.canonical(one)
    except CorejaxTypeError:
        return np.dtype(one).type  # of no numbers, such as "S3"
    return dtype if dtype.type is np.void else dtype.type


@public
def finfo(dtype: Any) -> np.finfo[Any]:
    """The limits of a floating-point dtype, or of that of an array.

    >>> finfo("bfloat16").eps
    0.0078125
    """
    found = dtype_of(dtype)
    if not dtypes.is_inexact(found):
        raise CorejaxValueError(f"finfo: {dtypes.long_name(found)} is not a floating-point dtype", where=here(),
                                got=dtypes.long_name(found), wanted="a floating-point or complex dtype",
                                todo="use iinfo for integers")
    return ml_dtypes.finfo(found)  # type: ignore[no-untyped-call]


@public
def iinfo(int_type: Any) -> np.iinfo[Any]:
    """The limits of an integer dtype, or of that of an array.

    >>> iinfo("int8").max
    127
    """
    found = dtype_of(int_type)
    if not dtypes.is_integer(found):
        raise CorejaxValueError(f"iinfo: {dtypes.long_name(found)} is not an integer dtype", where=here(),
                                got=dtypes.long_name(found), wanted="an integer dtype",
                                todo="use finfo for floating-point dtypes")
    limits: np.iinfo[Any] = dtypes.integer_limits(found)
    return limits


@public
def promote_types(a: Any, b: Any) -> np.dtype:
    """The dtype of a sum of two arrays of these dtypes; Python's own types are weak.

    >>> promote_types("int8", "uint8"), promote_types(float, "bfloat16")
    (dtype('int16'), dtype(bfloat16))
    """
    return dtypes.promote(promotable(a), promotable(b))[0]


@public
def result_type(*args: Any) -> np.dtype:
    """The dtype of a sum of all these, each an array, a number or a dtype.

    >>> result_type(np.int8(1), 2.0), result_type(np.float32, np.zeros(3, int))
    (dtype('float64'), dtype('float32'))
    """
    if not args:
        raise CorejaxValueError("result_type: there is nothing to promote", got="no arguments", where=here(),
                                wanted="at least one array or dtype", todo="pass the operands")
    return dtypes.promote(*[promotable(one) for one in args])[0]


@public
def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> np.dtype:
    """The dtype that arrays have which are asked for with this one: itself, since nothing is narrowed.

    >>> canonicalize_dtype("float64"), canonicalize_dtype(int)
    (dtype('float64'), dtype('int64'))
    """
    found = _named("canonicalize_dtype", dtypes.canonical, dtype)
    if dtypes.kind(found) == "E" and not allow_extended_dtype:
        raise elements.refused(found, "canonicalize_dtype", "allow it: allow_extended_dtype=True")
    return found  # type: ignore[no-any-return]


@public
def scalar_type_of(x: Any) -> type:
    """Python's type of a value's elements: bool, int, float or complex.

    >>> scalar_type_of(np.float32(1)), scalar_type_of(True)
    (<class 'float'>, <class 'bool'>)
    """
    dtype = aval_of(x).dtype
    found = {"b": bool, "i": int, "u": int, "f": float, "c": complex}.get(dtypes.kind(dtype))
    if found is None:
        raise elements.refused(dtype, "scalar_type_of")
    return found


# What values and types have

def is_type(x: Any) -> bool:
    """Whether it names a dtype, rather than being a value that has one."""
    return isinstance(x, (type, str, np.dtype, elements.ElementType))


def is_struct(x: Any) -> bool:
    """Whether it is the type of an array in place of one."""
    return hasattr(x, "weak_type") and not hasattr(x, "aval") and not hasattr(x, "__dlpack__")


def dtype_of(x: Any) -> np.dtype:
    """The dtype of a value, or the one that a type or a name stands for."""
    if is_type(x):
        return dtypes.canonical(x)
    found: np.dtype = x.dtype if is_struct(x) else aval_of(x).dtype
    return found


def promotable(x: Any) -> tuple[np.dtype, bool]:
    """The dtype of a value or a type, and whether it is weak, as Python's types are."""
    if isinstance(x, type) and x in dtypes.PYTHON_SCALARS:
        return dtypes.default_dtype(dtypes.PYTHON_SCALARS[x]), x is not bool
    if is_type(x):
        return dtypes.canonical(x), False
    found = x if is_struct(x) else aval_of(x)
    return found.dtype, found.weak_type


def _named(name: str, find: Callable[[Any], Any], value: Any) -> Any:
    try:
        return find(value)
    except (TypeError, ValueError, AttributeError) as error:
        raise CorejaxTypeError(f"{name}: {value!r:.80} is not a dtype", got=f"{value!r:.80}", wanted="a dtype",
                               where=here(), todo="write it as NumPy does: 'float32'") from error
