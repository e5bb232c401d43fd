"""Choosing elements by conditions, bounds and indices; rounding to decimals; bits of integers."""

# mypy: no-warn-return-any

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, call_user, dtypes, is_concrete
from corejax.errors import ConcretizationError, CorejaxIndexError, CorejaxValueError
from corejax.plugin import NotDirectly, directly, operators, public, refused, shaping
from corejax_lax_basic import broadcast_together, of_one_dtype
from corejax_numpy import _real_functions as reals
from corejax_numpy._arrays import array, no_out
from corejax_numpy._in_memory import elements as in_memory
from corejax_numpy._mapping import following
from corejax_numpy._picking import operand, pick
from corejax_numpy._values import constant

__all__ = [
    "around", "choose", "clip", "fix", "nan_to_num", "packbits", "piecewise", "round", "select", "unpackbits", "where",
]


# By conditions

@directly(np.where, arrays=3, sizes_vary=True, whole=True)
def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *, size: int | None = None,
          fill_value: Any = None) -> Array | tuple[Array, ...]:
    """The elements of x where the condition holds, those of y elsewhere; with a condition alone, where it holds.

    The latter is `jnp.nonzero(condition, size=size, fill_value=fill_value)`. A derivative of the case that isn't chosen
    doesn't matter, even if it is NaN in that case.

    >>> jnp.where(jnp.array([True, False]), jnp.array([1.0, 2.0]), 0.0).tolist()
    [1.0, 0.0]
    """
    if x is None and y is None:
        from corejax_numpy.indexing import nonzero  # type: ignore[import-not-found,unused-ignore]
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise refused("where", "it takes a condition, or a condition and two cases", got="two arguments",
                      wanted="one or three", todo="pass both cases", kind=CorejaxValueError)
    if size is not None or fill_value is not None:
        raise refused("where", "size and fill_value are for a condition alone", got=f"size={size!r}",
                      wanted="where(condition, size=...)", todo="leave them out", kind=CorejaxValueError)
    return pick(reals.truth(array(condition)), x, y)


def _selected_by_numpy(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if type(condlist) is not list or type(choicelist) is not list:
        raise NotDirectly
    return np.select(condlist, choicelist, default)


@directly(_selected_by_numpy, arrays=3, sequences=1)
def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """Each element from the first choice whose condition holds there; else the default.

    >>> x = jnp.arange(4)
    >>> jnp.select([x < 1, x > 2], [x - 10, x * 10], 5).tolist()
    [-10, 5, 5, 30]
    """
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices) or not conditions:
        raise refused("select", "each condition needs a choice", kind=CorejaxValueError, wanted="lists of one length",
                      got=f"{len(conditions)} conditions, {len(choices)} choices", todo="pass a choice for each")
    for condition in conditions:
        _check_truth("select", array(condition))
    *cases, found = of_one_dtype([*[operand(choice) for choice in choices], operand(default)])
    for condition, case in zip(conditions[::-1], cases[::-1], strict=True):
        found = pick(array(condition), case, found)
    return array(found)


def _check_truth(name: str, condition: Any) -> None:
    if condition.aval.dtype != dtypes.bool_:
        raise refused(name, "conditions are booleans", got=str(condition.aval), wanted="bool",
                      todo="compare, for example x != 0")


@public
def piecewise(x: ArrayLike, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """Each element by the function, or the constant, of the last condition that holds there; else by the default, or 0.

    There may be one more function than conditions: the default. All functions are called with all elements, and with
    the further arguments.

    >>> jnp.piecewise(jnp.array([-2.0, 3.0]), [jnp.array([True, False])], [lambda x: -x, 7.0]).tolist()
    [2.0, 7.0]
    """
    values: Any = array(x)
    conditions = _conditions(condlist, values)
    functions = list(funclist)
    if len(functions) == len(conditions):
        functions.append(0)
    if len(functions) != len(conditions) + 1:
        raise refused("piecewise", "each condition needs a function", kind=CorejaxValueError, wanted="as many, or one "
                      "more for the default", got=f"{len(conditions)} conditions, {len(functions)} functions",
                      todo="pass a function or a constant for each")
    *cases, found = [constant("piecewise", _case(function, values, args, kw), values.aval.dtype)
                     for function in functions]
    for condition, case in zip(conditions, cases, strict=True):
        found = pick(reals.truth(condition), case, found)
    return found if found.aval.shape == values.aval.shape else pick(lax.full(values.aval.shape, True), found, values)


def _conditions(condlist: Any, x: Any) -> list[Any]:
    """A single condition stands for a list of one."""
    if isinstance(condlist, (list, tuple)):
        is_single = bool(condlist) and not np.ndim(condlist[0]) if x.aval.ndim else False
        return [array(condlist)] if is_single else [array(condition) for condition in condlist]
    conditions = array(condlist)
    if conditions.aval.shape == x.aval.shape:
        return [conditions]
    return [conditions[i] for i in range(conditions.aval.shape[0])] if conditions.aval.ndim else [conditions]


def _case(function: Any, x: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    if not callable(function):
        return function
    return call_user(following(function, args, kw), (x,), "piecewise: a function")


# By indices

def _chosen_by_numpy(a: Any, choices: Any) -> Any:
    return np.choose(a, choices)


@directly(_chosen_by_numpy, arrays=2, sequences=1)
def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """Each element from the choice whose number is at its place in `a`.

    Numbers out of range: `mode="wrap"` counts on from the start, `"clip"` takes the nearest, and `"raise"` refuses
    them, where values are known.

    >>> jnp.choose(jnp.array([1, 0, 1]), [jnp.array([1, 2, 3]), 10]).tolist()
    [10, 2, 10]
    """
    no_out("choose", out)
    numbers: Any = array(a)
    if not dtypes.is_integer(numbers.aval.dtype):
        raise refused("choose", "the numbers of choices are integers", got=str(numbers.aval), wanted="an integer dtype",
                      todo="convert with x.astype(int)")
    if hasattr(choices, "aval") or isinstance(choices, np.ndarray):
        choices = list(array(choices))
    count = len(choices)
    if mode not in ("raise", "wrap", "clip") or not count:
        raise refused("choose", "no such mode" if count else "there is nothing to choose from", got=f"mode={mode!r}",
                      wanted="'raise', 'wrap' or 'clip', and choices", todo="pass one of these", kind=CorejaxValueError)
    which = _in_range(numbers, count, mode)
    cases = broadcast_together(of_one_dtype([operand(choice) for choice in choices]))
    found = cases[-1]
    for k, case in reversed(list(enumerate(cases[:-1]))):
        found = pick(which == k, case, found)
    shape = np.broadcast_shapes(numbers.aval.shape, *[aval_of(case).shape for case in cases])
    return array(found) if aval_of(found).shape == shape else pick(lax.full(shape, True), found, found)


def _in_range(a: Any, count: int, mode: str) -> Any:
    if mode == "wrap":
        return a % count
    if mode == "clip":
        return operators.clip(a, 0, count - 1)
    if not is_concrete(a):
        raise ConcretizationError("choose: whether all numbers are in range depends on traced values",
                                  got="mode='raise'", wanted="mode='wrap' or mode='clip'", primitive="choose",
                                  todo="pass mode=\"clip\" or mode=\"wrap\"")
    values = np.asarray(a)
    if values.size and not 0 <= values.min() <= values.max() < count:
        raise refused("choose", "a number is out of range", got=f"{values.min()} to {values.max()}",
                      wanted=f"0 to {count - 1}", todo="pass mode='wrap' or mode='clip'", kind=CorejaxIndexError)
    return a


# By bounds

@directly(in_memory.clip, arrays=3)
def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None, *,
         a: ArrayLike | None = None, a_min: ArrayLike | None = None, a_max: ArrayLike | None = None,
         out: None = None) -> Array:
    """The elements, or the bounds that they are beyond; `max` wins if the bounds cross.

    `a`, `a_min` and `a_max` are the names that NumPy had before.

    >>> jnp.clip(jnp.array([-1.0, 0.5, 2.0]), 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    """
    no_out("clip", out)
    x, low, high = _given("arr", arr, a), _given("min", min, a_min), _given("max", max, a_max)
    if x is None:
        raise refused("clip", "there is nothing to clip", got="no array", wanted="an array", todo="pass one")
    x = array(x)
    bounds = [bound if bound is None else operand(bound) for bound in (low, high)]
    reals.real_only("clip", x, *[bound for bound in bounds if bound is not None])
    return operators.clip(x, *bounds)


def _given(name: str, new: Any, old: Any) -> Any:
    if new is not None and old is not None:
        raise refused("clip", f"{name} is given twice", got="both names", wanted="one", todo=f"pass {name} only")
    return old if new is None else new


@directly(lambda x, copy=True, nan=0.0, posinf=None, neginf=None: np.nan_to_num(x, True, nan, posinf, neginf),
          whole=True)
def nan_to_num(x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0, posinf: ArrayLike | None = None,
               neginf: ArrayLike | None = None) -> Array:
    """The array with NaN replaced by a number, and infinities by the largest ones, or by those that are given.

    >>> jnp.nan_to_num(jnp.array([jnp.nan, 1.0]), nan=-1.0).tolist()
    [-1.0, 1.0]
    """
    out: Any = array(x)
    dtype = out.aval.dtype
    if dtypes.is_complex(dtype):
        return lax.complex(nan_to_num(operators.real(out), copy, nan, posinf, neginf),
                           nan_to_num(operators.imag(out), copy, nan, posinf, neginf))
    if not dtypes.is_inexact(dtype):
        return out
    most, least = reals.largest(dtype)
    for mask, value in ((reals.is_nan(out), nan), (out == np.inf, most if posinf is None else posinf),
                        (out == -np.inf, least if neginf is None else neginf)):
        out = pick(mask, constant("nan_to_num", value, dtype), out)
    return out


# Rounding

@directly(in_memory.rounded, whole=True)
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Rounded to this many decimals, halves to the even digit.

    >>> jnp.round(jnp.array([0.25, 1.5, -2.5]), 0).tolist(), jnp.round(1.2345, 2).item()
    ([0.0, 2.0, -2.0], 1.23)
    """
    no_out("round", out)
    return operators.round(array(a), decimals)


around = round


@directly(lambda x, out=None: np.trunc(x), whole=True)
def fix(x: ArrayLike, out: None = None) -> Array:
    """Rounded towards zero.

    >>> jnp.fix(jnp.array([-1.5, 1.5])).tolist()
    [-1.0, 1.0]
    """
    no_out("fix", out)
    return reals.unless_exact(reals.truncate)(array(x))


# Bits

@directly(np.packbits)
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight elements along an axis as the bits of one byte: 1 where they aren't 0. The last byte is filled with 0.

    >>> jnp.packbits(jnp.array([1, 0, 1])).tolist(), jnp.packbits(jnp.array([1, 0, 1]), bitorder="little").tolist()
    ([160], [5])
    """
    whole: Any = array(a)
    if dtypes.kind(whole.aval.dtype) not in "biu":
        raise refused("packbits", "bits are integers or booleans", got=str(whole.aval), wanted="integers or booleans",
                      todo="compare, for example x != 0")
    _check_order("packbits", bitorder)
    bits, at = _along(whole, axis, "packbits")
    short = -bits.aval.shape[-1] % 8
    bits = operators.astype(reals.truth(bits), "uint8")
    bits = lax.pad(bits, np.uint8(0), [(0, 0, 0)] * (bits.aval.ndim - 1) + [(0, short, 0)])
    bytes_ = operators.reshape(bits, (*bits.aval.shape[:-1], bits.aval.shape[-1] // 8, 8))
    return _back(operators.sum(bytes_ << _places(bitorder), -1, "uint8"), at)


@directly(np.unpackbits)
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes, eight elements for each, along an axis; the first `count`, or all but the last `-count`.

    >>> jnp.unpackbits(jnp.array([160], "uint8"), count=3).tolist()
    [1, 0, 1]
    """
    whole: Any = array(a)
    if whole.aval.dtype != np.uint8:
        raise refused("unpackbits", "only bytes are supported", got=str(whole.aval), wanted="uint8",
                      todo="convert with x.astype('uint8')")
    _check_order("unpackbits", bitorder)
    bytes_, at = _along(whole, axis, "unpackbits")
    masks = np.uint8(1) << _places(bitorder)
    bits = operators.astype(operators.ne(bytes_[..., None] & masks, np.uint8(0)), np.uint8)
    size = 8 * bytes_.aval.shape[-1]
    bits = operators.reshape(bits, (*bytes_.aval.shape[:-1], size))
    if count is not None:
        wanted = shaping.as_int("unpackbits", "count", count)
        wanted = wanted if wanted >= 0 else builtins.max(size + wanted, 0)
        missing = builtins.max(wanted - size, 0)
        bits = lax.pad(bits[..., :wanted], np.uint8(0), [(0, 0, 0)] * (bits.aval.ndim - 1) + [(0, missing, 0)])
    return _back(bits, at)


def _check_order(name: str, order: str) -> None:
    if order not in ("big", "little"):
        raise refused(name, "no such order of bits", got=f"bitorder={order!r}", wanted="'big' or 'little'",
                      todo="pass one of these", kind=CorejaxValueError)


def _places(order: str) -> Any:
    return np.arange(8, dtype=np.uint8)[::-1 if order == "big" else 1]


def _along(a: Any, axis: int | None, name: str) -> tuple[Any, int | None]:
    """The array with this axis as the last, or flattened; and where the axis was."""
    if axis is None:
        return operators.ravel(a), None
    at = shaping.canonical_axis(name, axis, a.aval.ndim)
    return operators.swapaxes(a, at, -1), at


def _back(out: Any, axis: int | None) -> Any:
    return out if axis is None else operators.swapaxes(out, axis, -1)
