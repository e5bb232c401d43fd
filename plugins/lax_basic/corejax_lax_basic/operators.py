"""Python's operators and methods on arrays and tracers: NumPy's broadcasting, the kernel's promotion of dtypes.

The first operand is always an array or a tracer; `radd` and the like also get it first, and use it as the second.
For an operand that isn't an array, they return NotImplemented, so that Python tries the other type; lists, tuples and
dictionaries are errors.
"""

# mypy: no-warn-return-any
# A primitive may have several results, so what `define` returns gives Any; those of array methods are arrays.

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

import numpy as np

from corejax.core import Array, ArrayLike, DTypeLike, Primitive, Tracer, aval_of, context, dtypes, is_foreign, values
from corejax.errors import CorejaxOverflowError, kind_of
from corejax.plugin import directly, elements, families, refused, shaping
from corejax_lax_basic import (
    _in_memory_operators,
    arithmetic,
    comparison,
    complex_parts,
    creation,
    exponential,
    identity,
    indexing,
    linear_algebra,
    logic,
    rounding,
    shapes,
)
from corejax_lax_basic._dividing import floor_divide, modulo
from corejax_lax_basic.conversion import convert_element_type
from corejax_lax_basic.promoting import of_one_dtype, promoted

__all__ = [
    "abs", "add", "astype", "at", "clip", "conj", "conjugate", "copy", "divmod", "dot", "eq", "flatten", "floordiv",
    "ge", "getitem", "gt", "imag", "invert", "le", "lshift", "lt", "matmul", "mod", "mT", "mul", "ne", "neg", "pos",
    "pow", "radd", "rand", "ravel", "rdivmod", "real", "reshape", "rfloordiv", "rlshift", "rmatmul", "rmod", "rmul",
    "ror", "round", "rpow", "rrshift", "rshift", "rsub", "rtruediv", "rxor", "squeeze", "sub", "swapaxes", "T",
    "transpose", "truediv", "xor",
    "and_", "or_",
]

Function = Callable[..., Any]

_SCALARS = dtypes.PYTHON_SCALARS
_weak_scalar = families.weak_scalar
_bool = dtypes.bool_


# Bringing operands together

def _is_operand(y: Any) -> bool:
    return type(y) is Array or isinstance(y, (Tracer, np.ndarray, np.generic)) or type(y) in _SCALARS


_CONTAINERS = (list, tuple, dict)
_SWAPPED = {"eq": "__eq__", "ne": "__ne__", "lt": "__gt__", "le": "__ge__", "gt": "__lt__", "ge": "__le__"}


def _not_an_operand(operate: Function, name: str, x: Any, y: Any, other: str | None) -> Any:
    """NotImplemented, so that Python calls the method `other` of the other type, if it hasn't yet.

    A number of a class derived from Python's counts as a Python number; arrays of other libraries are taken. Containers
    are rejected, unless they have such a method; they compare unequal to any array.
    """
    number = dtypes.plain_scalar(y)
    if number is not None:
        return operate(x, number)
    if is_foreign(y):
        return operate(x, *values([y], name, lambda _: "the other operand"))
    base: Any = next((kind for kind in _CONTAINERS if isinstance(y, kind)), None)
    definer = next((kind for kind in type(y).__mro__ if other in vars(kind)), None)
    if base is None or definer not in (None, base, object):
        return NotImplemented
    repeats = not x.aval.shape and dtypes.is_integer(x.aval.dtype) and base is not dict
    raise refused(name, f"an array can't be combined with {kind_of(y)}", got=f"{x.aval} and {y!r:.60}",
                  wanted="an array, or a number", todo="use the arrays in it" if base is dict else
                  "convert it with np.asarray" + ("; to repeat its items use int(n)" if repeats else ""))


# Binary operators

def _pair(name: str, apply: Function, fast: Any = None, kinds: str = "", at_least: str = "b",
          prepare: Function = promoted) -> tuple[Function, Function]:
    """An operator and its reflection.

    `apply(x, y)` gets promoted operands. `fast` is the function that is called directly in most cases: for an array
    with a dtype of one of these `kinds`, and another array of exactly its type or a Python scalar of its kind.
    """
    primitive = cast(Primitive, getattr(fast, "primitive", None))  # only used for `kinds`, which go with `fast`
    direct = _dtypes_of(kinds)
    together = _together(name, apply, at_least, prepare)

    def reflected(x: Any, y: Any) -> Any:
        aval = x.aval
        if aval.dtype in direct and type(y) in _SCALARS:
            scalar = _weak_scalar(y, aval.dtype)
            if scalar is not None:
                return context.trace.process_two(primitive, scalar, x)
        if not _is_operand(y):
            return _not_an_operand(reflected, name, x, y, None)
        return together(y, x)

    return _forward(name, together, primitive, direct), _named(reflected, f"r{name}")


def _together(name: str, apply: Function, at_least: str, prepare: Function) -> Function:
    """An operator for operands of any types, which NumPy brings together where it can compute with them at once."""
    def together(x: Any, y: Any) -> Any:
        return apply(*prepare((x, y), at_least))

    numpy_function = _in_memory_operators.FUNCTIONS.get(name)
    if numpy_function is None:
        return together
    at_once = directly(numpy_function, 2, whole=name != "pow")(together)  # particular powers have ways of their own
    return lambda x, y: (at_once if context.trace.knows_values else together)(x, y)


def _forward(name: str, together: Function, primitive: Primitive, direct: frozenset[np.dtype],
             beyond: Callable[[int], bool] | None = None) -> Function:
    """An operator; `beyond(side)` is its result for a Python integer that is out of the dtype's range on that side."""
    other = _SWAPPED.get(name, f"__r{name}__")

    def forward(x: Any, y: Any) -> Any:
        aval = x.aval
        try:
            if aval.dtype in direct:
                if type(y) is type(x):
                    if y.aval is aval:
                        return context.trace.process_two(primitive, x, y, aval)
                elif type(y) in _SCALARS:
                    scalar = _weak_scalar(y, aval.dtype)
                    if scalar is not None:
                        return context.trace.process_two(primitive, x, scalar)
                elif getattr(y, "aval", None) is aval:
                    return context.trace.process_two(primitive, x, y, aval)
            if not _is_operand(y):
                return _not_an_operand(forward, name, x, y, other)
            return together(x, y)
        except CorejaxOverflowError:
            if beyond is None or not dtypes.is_integer(aval.dtype) or type(y) is not int:
                raise
            return creation.full(aval.shape, beyond(y))

    return _named(forward, name)


def _comparison(name: str, function: Any, kinds: str, beyond: Callable[[int], bool]) -> Function:
    apply = _of_elements(function) if "c" in kinds else _by_parts(function)
    together = _together(name, apply, "b", promoted)
    return _forward(name, together, _primitive(function), _dtypes_of(kinds), beyond)


def _of_elements(function: Any) -> Function:
    """Whether operands are equal, or differ: also elements of a pack's own type that says when they are equal.

    Those of float0 are all equal, as NumPy says.
    """
    bind = _bind(function)

    def apply(x: Any, y: Any) -> Any:
        if aval_of(x).dtype is dtypes.float0:
            return creation.full(x.shape or y.shape, function is comparison.eq)
        element = elements.find(aval_of(x).dtype)
        if element is None or element.equal is None:
            return bind(x, y)
        same = element.equal(x, y)
        return same if function is comparison.eq else logic.bitwise_not(same)
    return apply


def _by_parts(function: Any) -> Function:
    """A comparison that compares complex numbers by the real parts and then by the imaginary ones, as NumPy does."""
    bind = _bind(function)
    strict = {comparison.le: comparison.lt, comparison.ge: comparison.gt}.get(function, function)

    def apply(x: Any, y: Any) -> Any:
        if not dtypes.is_complex(aval_of(x).dtype):
            return bind(x, y)
        (a, b), (c, d) = [(complex_parts.real(z), complex_parts.imag(z)) for z in (x, y)]
        same = logic.bitwise_and(comparison.eq(a, c), function(b, d))
        return logic.bitwise_or(strict(a, c), same)
    return apply


def _dtypes_of(kinds: str) -> frozenset[np.dtype]:
    return frozenset([dtype for dtype in dtypes.ALL if dtypes.kind(dtype) in kinds])


def _named(function: Function, name: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}`, as Python's operator."
    return function


def _primitive(function: Any) -> Primitive:
    return function.primitive


def _bind(function: Any) -> Function:
    return _primitive(function).bind_two


def _unless_bool(function: Any, on_bool: Any) -> Function:
    bind, bind_bool = _bind(function), _bind(on_bool)
    return lambda x, y: (bind_bool if aval_of(x).dtype == _bool else bind)(x, y)


def _shift_right(x: Any, y: Any) -> Any:
    unsigned = dtypes.kind(aval_of(x).dtype) == "u"
    return (logic.shift_right_logical if unsigned else logic.shift_right_arithmetic)(x, y)


add, radd = _pair("add", _unless_bool(arithmetic.add, logic.bitwise_or), arithmetic.add, "iufc")
sub, rsub = _pair("sub", _bind(arithmetic.sub), arithmetic.sub, "iufc")
mul, rmul = _pair("mul", _unless_bool(arithmetic.mul, logic.bitwise_and), arithmetic.mul, "iufc")
truediv, rtruediv = _pair("truediv", _bind(arithmetic.div), arithmetic.div, "fc", at_least="f")
floordiv, rfloordiv = _pair("floordiv", floor_divide, at_least="i")
mod, rmod = _pair("mod", modulo, at_least="i")
matmul, rmatmul = _pair("matmul", linear_algebra.matmul, prepare=of_one_dtype)
lshift, rlshift = _pair("lshift", _bind(logic.shift_left), logic.shift_left, "iu", at_least="i")
rshift, rrshift = _pair("rshift", _shift_right, at_least="i")
and_, rand = _pair("and", _bind(logic.bitwise_and), logic.bitwise_and, "biu")
or_, ror = _pair("or", _bind(logic.bitwise_or), logic.bitwise_or, "biu")
xor, rxor = _pair("xor", _bind(logic.bitwise_xor), logic.bitwise_xor, "biu")
eq = _comparison("eq", comparison.eq, "biufc", lambda side: False)
ne = _comparison("ne", comparison.ne, "biufc", lambda side: True)
lt = _comparison("lt", comparison.lt, "biuf", lambda side: side > 0)
le = _comparison("le", comparison.le, "biuf", lambda side: side > 0)
gt = _comparison("gt", comparison.gt, "biuf", lambda side: side < 0)
ge = _comparison("ge", comparison.ge, "biuf", lambda side: side < 0)
_power, rpow = _pair("pow", _bind(exponential.pow), exponential.pow, "fc", at_least="i")


def pow(x: Any, y: Any) -> Any:
    """`x ** y`. A Python integer exponent is part of the program, not data."""
    return integer_power(x, y=y) if type(y) is int and x.aval.dtype != _bool else _power(x, y)


integer_power = _primitive(arithmetic.integer_pow).bind


divmod, rdivmod = _pair("divmod", lambda x, y: (floor_divide(x, y), modulo(x, y)), at_least="i")


# Unary operators

neg = _primitive(arithmetic.neg).bind_one
invert = _primitive(logic.bitwise_not).bind_one
getitem, at = indexing.getitem, indexing.at


def pos(x: Array) -> Array:
    """`+x`."""
    return x


def abs(x: Array) -> Array:
    """`abs(x)`."""
    return x if dtypes.kind(x.aval.dtype) in "bu" else arithmetic.abs(x)


def round(x: Array, decimals: int = 0) -> Array:
    """Round to this many decimals, halves to even."""
    dtype, digits = x.aval.dtype, shaping.as_int("round", "decimals", decimals)
    if builtins.abs(digits) > 300:
        raise refused("round", "no float has that many decimals", got=digits, wanted="-300 to 300", todo="use fewer")
    if dtypes.is_complex(dtype):
        return complex_parts.complex(round(real(x), digits), round(imag(x), digits))
    if not dtypes.is_float(dtype):
        _check_numbers("round", x)
        return x if digits >= 0 else astype(round(astype(x, dtypes.float64), digits), dtype)
    to_even = rounding.RoundingMethod.TO_NEAREST_EVEN
    if digits == 0:
        return rounding.round(x, to_even)
    scale, (there, back) = 10.0 ** builtins.abs(digits), (mul, truediv) if digits > 0 else (truediv, mul)
    return back(rounding.round(there(x, scale), to_even), scale)


def _check_numbers(name: str, x: Array) -> None:
    if dtypes.kind(x.aval.dtype) == "E":
        raise refused(name, f"elements of type {dtypes.short_name(x.aval.dtype)} aren't numbers", got=str(x.aval),
                      wanted="numbers", todo="use a function of the pack that brings them")


# Properties

def _property(function: Function) -> Function:
    function.is_property = True  # type: ignore[attr-defined]
    return function


@_property
def T(x: Array) -> Array:
    """The array with its axes in reverse order."""
    return x if x.aval.ndim < 2 else shapes.transpose(x, tuple(range(x.aval.ndim))[::-1])


@_property
def mT(x: Array) -> Array:
    """The matrices along the last two axes, transposed."""
    if x.aval.ndim < 2:
        raise refused("mT", "only matrices can be transposed", got=str(x.aval), wanted="at least two axes",
                      todo="use x.T, or add an axis with x[None]")
    return swapaxes(x, -1, -2)


@_property
def real(x: Array) -> Array:
    """The real part."""
    _check_numbers("real", x)
    return complex_parts.real(x) if dtypes.is_complex(x.aval.dtype) else x


@_property
def imag(x: Array) -> Array:
    """The imaginary part; zeros for real x."""
    return complex_parts.imag(x) if dtypes.is_complex(x.aval.dtype) else creation.full_like(x, 0)


# Methods

def conj(x: Array) -> Array:
    """The complex conjugate; x itself if it is real."""
    _check_numbers("conj", x)
    return complex_parts.conj(x) if dtypes.is_complex(x.aval.dtype) else x


conjugate = conj


def astype(x: Array, dtype: DTypeLike, copy: bool = True) -> Array:
    """The array in another dtype, not weakly typed. Arrays are immutable, so `copy` makes no difference."""
    wanted = dtypes.canonical(dtype)
    return convert_element_type(x, wanted) if x.aval.dtype != wanted or x.aval.weak_type else x


def copy(x: Array) -> Array:
    """The same values in new memory."""
    return identity.copy(x)


def reshape(x: Array, *shape: int | Sequence[int], order: str | None = "C", copy: bool | None = None) -> Array:
    """The same elements in another shape, given as integers or one tuple; one size may be -1.

    With `order="F"`, elements are taken and placed in column-major order.
    """
    if _is_column_major("reshape", order):
        sizes = shaping.as_ints("reshape", "a size", shape[0] if len(shape) == 1 else shape)
        return T(reshape(T(x), sizes[::-1]))
    sizes = shaping.as_ints("reshape", "a size", shape[0] if len(shape) == 1 else shape)
    if -1 not in sizes:
        return shapes.reshape(x, sizes)
    rest = prod([size for size in sizes if size != -1])
    if sizes.count(-1) > 1 or not rest or x.aval.size % rest:
        raise refused("reshape", f"{x.aval} has {x.aval.size} elements, so -1 can't stand for any size", got=sizes,
                      wanted=f"one -1, and other sizes whose product divides {x.aval.size}",
                      todo="write out all sizes but one")
    missing = x.aval.size // rest
    return shapes.reshape(x, tuple([missing if size == -1 else size for size in sizes]))


def _is_column_major(name: str, order: str | None) -> bool:
    """Whether it is "F"; "A" and "K" mean what arrays have, which is row-major."""
    if order not in ("C", "F", "A", "K", None):
        raise refused(name, "there is no such order", got=f"order={order!r}", wanted="'C', 'F', 'A' or 'K'",
                      todo="leave it out: it is 'C', row-major")
    return order == "F"


def ravel(x: Array, order: str | None = "C") -> Array:
    """All elements along one axis, in row-major order or, with `order="F"`, in column-major order."""
    return reshape(x, (x.aval.size,), order=order)


flatten = ravel


def squeeze(x: Array, axis: int | Sequence[int] | None = None) -> Array:
    """Drop axes of size 1: all of them, or the given ones."""
    if axis is None:
        axis = [d for d, size in enumerate(x.aval.shape) if size == 1]
    return shapes.squeeze(x, shaping.canonical_axes("squeeze", axis, x.aval.ndim))


def transpose(x: Array, *axes: int | Sequence[int] | None) -> Array:
    """The axes in another order, given as integers or one tuple; reversed by default."""
    if not axes or axes == (None,):
        return T(x)
    return shapes.transpose(x, shaping.canonical_axes("transpose", axes[0] if len(axes) == 1 else axes, x.aval.ndim))


def swapaxes(x: Array, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged."""
    order = list(range(x.aval.ndim))
    i, j = [shaping.canonical_axis("swapaxes", axis, len(order)) for axis in (axis1, axis2)]
    order[i], order[j] = j, i
    return shapes.transpose(x, tuple(order))


def clip(x: Array, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """x, or the bound that it is beyond; `max` wins if the bounds cross."""
    if dtypes.is_integer(x.aval.dtype):  # a bound outside the dtype's range changes nothing
        info = dtypes.integer_limits(x.aval.dtype)
        min = None if type(min) is int and min < info.min else min
        max = None if type(max) is int and max > info.max else max
    if min is not None:
        x = arithmetic.max(*promoted((x, min)))
    return x if max is None else arithmetic.min(*promoted((x, max)))


def dot(x: Array, y: ArrayLike) -> Array:
    """NumPy's `x.dot(y)`: sums of products over the last axis of x and the second-to-last of y."""
    x, y = of_one_dtype((x, y))
    x_ndim, y_ndim = aval_of(x).ndim, aval_of(y).ndim
    if not x_ndim or not y_ndim:
        return arithmetic.mul(x, y)
    contracted = (x_ndim - 1,), (y_ndim - 2 if y_ndim > 1 else 0,)
    return linear_algebra.dot_general(x, y, (contracted, ((), ())))
