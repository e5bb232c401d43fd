"""Axes and shapes in the rules of a primitive that has them as params. Public as `corejax.plugin.shaping`.

What a user passes becomes a canonical param in the public function; `abstract_eval` checks that param, since `bind`
takes anything; `vmap` moves it out of the way of the batch axis.

>>> import numpy as np, corejax as cj
>>> from corejax import lax
>>> from corejax.core import ShapedArray, aval_of
>>> from corejax.plugin import define, hookimpl, shaping
>>> class Total:
...     name = "demo_total"
...     linear = (0,)
...     def function(self, bind):
...         return lambda x, axes: bind(x, axes=shaping.canonical_axes("total", axes, aval_of(x).ndim))
...     @hookimpl
...     def abstract_eval(self, avals, *, axes):
...         (x,) = avals
...         shaping.check_axes(self.name, "axes", axes, x.ndim)
...         return ShapedArray(shaping.without(x.shape, axes), x.dtype, x.weak_type)
...     @hookimpl
...     def impl(self, args, *, axes):
...         return args[0].sum(axes)
...     @hookimpl
...     def transpose(self, cotangents, args, *, axes):
...         shape = args[0].aval.shape
...         return [lax.broadcast_in_dim(cotangents, shape, [d for d in range(len(shape)) if d not in axes])]
...     @hookimpl
...     def vmap(self, axis, args, dims, *, axes):
...         moved = shaping.shifted(axes, dims[0])
...         return total(args[0], moved), shaping.dim_without(dims[0], moved)
>>> total = define(Total())
>>> x = np.arange(6.0).reshape(2, 3)
>>> total(x, -1).tolist(), cj.vmap(lambda row: total(row, 0), in_axes=1)(x).tolist()
([3.0, 12.0], [3.0, 5.0, 7.0])
>>> total(x, (0, 2))
Traceback (most recent call last):
  ...
corejax.errors.CorejaxAxisError: total: axis 2 is out of bounds for 2 dimensions
  ...

A batch axis of a value is moved by `corejax.core.to_dim(x, dim, wanted, size)`, which adds it where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any, TypeVar

import numpy as np

from corejax.base.errors import CorejaxAxisError, CorejaxError, CorejaxTypeError
from corejax.base.source import here

__all__ = ["as_flag", "as_int", "as_ints", "canonical_axes", "canonical_axis", "check_axes", "dim_without", "insert",
           "shifted", "without"]

Ints = tuple[int, ...]

_INTEGERS = frozenset((int,))
T = TypeVar("T")


def refused(primitive: str, problem: str, *, got: object, wanted: object, todo: str,
            kind: type[CorejaxError] = CorejaxTypeError) -> CorejaxError:
    """The error for operands or params that a primitive doesn't take, to be raised.

    It says where in the user's code that was. `kind` is its class; `got` may be a list of types.

    >>> print(refused("flip", "a scalar has no axis", got="f64[]", wanted="an array", todo="pass an array"))
    flip: a scalar has no axis
      got:    f64[]
      wanted: an array
      ...
    """
    shown = ", ".join(map(str, got)) if type(got) is list else got
    return kind(f"{primitive}: {problem}", primitive=primitive, got=shown, wanted=wanted, where=here(), todo=todo)


# What users pass

def as_int(primitive: str, what: str, value: Any) -> int:
    """A static integer; `what` names it in errors.

    >>> import numpy as np
    >>> as_int("roll", "shift", np.int32(2))
    2
    """
    if type(value) is int:
        return value
    try:
        return int(index(value))
    except TypeError as error:
        if isinstance(error, CorejaxError):
            raise
        raise refused(primitive, f"{what} must be an integer", got=repr(value), wanted="a static integer",
                      todo="pass a Python integer; shapes and axes can't depend on traced values") from error


def as_ints(primitive: str, what: str, values: Any) -> Ints:
    """A sequence of static integers, or a single one, as a tuple.

    >>> as_ints("reshape", "shape", [2, 3]), as_ints("reshape", "shape", 6)
    ((2, 3), (6,))
    """
    if type(values) is tuple and _INTEGERS.issuperset(map(type, values)):
        return values
    if (isinstance(values, Sequence) and not isinstance(values, str)) or getattr(values, "ndim", 0) == 1:
        entry = what if what.startswith("a") else f"an entry of {what}"
        return tuple([as_int(primitive, entry, v) for v in values])
    return (as_int(primitive, what, values),)


def as_flag(primitive: str, what: str, value: Any) -> bool:
    """A static flag; `what` names it in errors. 0 and 1 are taken, too.

    >>> as_flag("sort", "is_stable", True), as_flag("sort", "is_stable", 0)
    (True, False)
    """
    if type(value) is bool:
        return value
    if isinstance(value, (int, np.bool_, np.integer)) and value in (0, 1):
        return bool(value)
    raise refused(primitive, f"{what} must be a flag", got=repr(value)[:80], wanted="True or False",
                  todo=f"pass {what}=True or {what}=False: a flag is static, so it can't be a traced value")


def canonical_axis(primitive: str, axis: Any, ndim: int) -> int:
    """An axis from 0 to ndim - 1; a negative one counts from the end.

    >>> canonical_axis("flip", -1, 3)
    2
    """
    number = axis if type(axis) is int else as_int(primitive, "an axis", axis)
    if -ndim <= number < ndim:
        return number + ndim if number < 0 else number
    raise refused(primitive, f"axis {number} is out of bounds for {ndim} dimensions", got=number,
                  wanted=f"an axis from {-ndim} to {ndim - 1}" if ndim else "no axis: the operand is a scalar",
                  todo="pass an axis that the operand has", kind=CorejaxAxisError)


def canonical_axes(primitive: str, axes: Any, ndim: int) -> Ints:
    """Distinct axes from 0 to ndim - 1, in the order given; a single integer is one axis.

    >>> canonical_axes("flip", (-1, 0), 3), canonical_axes("flip", 1, 3)
    ((2, 0), (1,))
    """
    if type(axes) is int:
        return (canonical_axis(primitive, axes, ndim),)
    found = tuple([canonical_axis(primitive, axis, ndim) for axis in as_ints(primitive, "an axis", axes)])
    if len(set(found)) != len(found):
        raise refused(primitive, "an axis appears twice", got=axes, wanted="distinct axes", todo="name each axis once",
                      kind=CorejaxAxisError)
    return found


# What a primitive gets

def check_axes(primitive: str, what: str, axes: Any, ndim: int) -> None:
    """Raise unless a param, which errors call `what`, is a tuple of distinct axes from 0 to ndim - 1.

    >>> check_axes("flip", "axes", (2, 0), 3)
    """
    if type(axes) is not tuple or len({*axes}) != len(axes) or any(
            [type(axis) is not int or not 0 <= axis < ndim for axis in axes]):
        raise refused(primitive, f"{what}={axes!r} are not distinct axes of an operand of {ndim} dimensions", got=axes,
                      wanted=f"a tuple of distinct integers from 0 to {ndim - 1}" if ndim else "(): it is a scalar",
                      todo="name each axis once, within the operand's dimensions", kind=CorejaxAxisError)


def shifted(axes: Sequence[int], batch_dim: int) -> Ints:
    """The same axes in an operand that has a batch axis at `batch_dim`.

    >>> shifted((0, 2), 1)
    (0, 3)
    """
    return tuple([axis + (axis >= batch_dim) for axis in axes])


def dim_without(batch_dim: int, axes: Sequence[int]) -> int:
    """Where the batch axis is after removing `axes` of the batched operand.

    >>> dim_without(1, (0, 3))
    0
    """
    return batch_dim - sum([axis < batch_dim for axis in axes])


def without(shape: Sequence[T], axes: Sequence[int]) -> tuple[T, ...]:
    """The shape, or one entry for each axis of something else, without these axes.

    >>> without((2, 3, 5), (0, 2))
    (3,)
    """
    return tuple([size for axis, size in enumerate(shape) if axis not in axes])


def insert(values: Sequence[T], position: int, value: T) -> tuple[T, ...]:
    """The tuple with one more entry before `position`: a shape, starts or strides with the batch axis.

    >>> insert((2, 3), 1, 7)
    (2, 7, 3)
    """
    return (*values[:position], value, *values[position:])
