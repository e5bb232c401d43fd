"""What a namespace computes, beside what array-api-strict computes from the same arrays.

A call that array-api-strict refuses isn't compared: the standard leaves open what comes of it.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import array_api_strict as strict
import numpy as np

from . import calls
from .calls import Call

VERSION = "2024.12"
#: The standard's dtypes.
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *FLOATS, *COMPLEX)
SCALARS = (True, 2, 2.5, 1 + 2j)

#: Functions whose second operand has no defined result for all values.
_SMALL = {"pow", "bitwise_left_shift", "bitwise_right_shift"}
_NOT_ZERO = {"floor_divide", "remainder"}

#: Complex numbers have no order, though array-api-strict compares an array with one.
_ORDER = {"lt", "le", "gt", "ge"}

OPERATORS = {name: [lambda _, *xs, name=name: getattr(operator, name)(*xs)] for name in (
    "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift eq ne lt le gt ge "
    "iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift").split()}
SIGNS = {name: [lambda _, x, name=name: getattr(operator, name)(x)] for name in ("neg", "pos", "abs", "invert")}
_TWIN = {"floordiv": "floor_divide", "mod": "remainder", "pow": "pow", "lshift": "bitwise_left_shift",
         "rshift": "bitwise_right_shift"}


def edges(dtype: str) -> np.ndarray:
    """The values at which functions of this dtype are special."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        return np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1], dtype)
    if dtype in COMPLEX:
        return np.array([0.5 + 1j, -1.5 + 0.25j, 2 - 3j, 1, 0.3 - 2j, 0.1 + 0.7j], dtype)
    info = np.finfo(dtype)
    return np.array([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, np.inf, -np.inf, np.nan, info.max, info.tiny,
                     info.eps, 100.0, -1e-5], dtype)


def _values(name: str, dtypes: tuple[str, str], position: int) -> np.ndarray:
    """The values of one of two operands for which the standard defines the result, with all values of the other."""
    values = edges(dtypes[position])
    if values.dtype.kind == "f" and (name in _NOT_ZERO or not {*dtypes}.isdisjoint(COMPLEX)):
        values = values[np.isfinite(values) & (abs(values) < 1000) & (abs(values) > 1e-6)]
    if position == 0 or values.dtype.kind not in "iu":
        return values
    if name in _SMALL:
        return values[(values >= 0) & (values < 8)]
    return values[values != 0] if name in _NOT_ZERO else values


def operands(table: str, name: str) -> Iterator[tuple[Any, ...]]:
    """NumPy arrays, and Python scalars, that a function of a table is called with."""
    name = _TWIN.get(name.removeprefix("i"), name)
    if table == "alone":
        yield ()
    for dtype in DTYPES if table != "matrices" else (*FLOATS, *COMPLEX):
        if table == "unary":
            yield from ((edges(dtype),), (edges(dtype)[:1].reshape(()),), (edges(dtype)[:0].reshape(0, 2),))
        elif table == "general":
            yield ((np.arange(12) * 7 % 12 - (0 if dtype.startswith("u") else 3)).astype(dtype).reshape(3, 4),)
        elif table == "matrices":
            half = np.arange(18).reshape(2, 3, 3) * 5 % 7 - 3 + (1j if dtype in COMPLEX else 0)
            yield ((half @ half.conj().mT + np.eye(3)).astype(dtype),)
        elif table == "binary":
            for other in DTYPES:
                yield _values(name, (dtype, other), 0)[:, None], _values(name, (dtype, other), 1)
            for scalar in SCALARS[:3] if name in _ORDER else SCALARS:
                with_it = COMPLEX[0] if type(scalar) is complex else dtype
                yield _values(name, (dtype, with_it), 0), scalar
                yield scalar, _values(name, (with_it, dtype), 1)


TABLES: dict[str, dict[str, list[Call]]] = {
    "unary": calls.UNARY | SIGNS, "binary": calls.BINARY | OPERATORS, "general": calls.GENERAL,
    "matrices": calls.MATRICES, "alone": calls.ALONE}


def compared(xp: Any, table: str, name: str) -> tuple[int, list[str]]:
    """How many calls of a function were compared, and what was different."""
    count, wrong = 0, []
    for call, arrays in itertools.product(TABLES[table][name], operands(table, name)):
        try:
            expected = call(strict, *_arrays(strict, arrays))
        except Exception:  # not in the standard, for these operands
            continue
        count += 1
        try:
            found = call(xp, *_arrays(xp, arrays))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        else:
            why = difference(expected, found)
        if why:
            called = ", ".join(f"{x.dtype}{[*x.shape]}" if isinstance(x, np.ndarray) else repr(x) for x in arrays)
            wrong.append(f"{name}({called}), call {TABLES[table][name].index(call)}: {why}"[:500])
    return count, wrong


def _arrays(xp: Any, arrays: Iterable[Any]) -> list[Any]:
    return [xp.asarray(x, copy=True) if isinstance(x, np.ndarray) else x for x in arrays]


def difference(expected: Any, found: Any) -> str:
    """In what a result differs from the expected one; empty if in nothing that matters."""
    if hasattr(expected, "__array_namespace__"):
        expected = np.asarray(expected)
        if np.dtype(found.dtype) != expected.dtype or found.shape != expected.shape:
            return f"got {found.dtype}{[*found.shape]}, expected {expected.dtype}{[*expected.shape]}"
        return _of_values(expected, np.asarray(found))
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        if len(found) != len(expected):
            return f"got {len(found)} results, expected {len(expected)}"
        return "; ".join(filter(None, map(difference, expected, found)))
    if not isinstance(found, type(expected) | np.floating):  # of float32, finfo has float32s, as NumPy's
        return f"got {found!r}, a {type(found).__name__}, expected {expected!r}"
    same = found == expected or (found != found and expected != expected)
    return "" if same else f"got {found!r}, expected {expected!r}"


def _of_values(expected: np.ndarray, found: np.ndarray) -> str:
    rtol = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}.get(expected.dtype.name, 0)
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0) if expected.dtype.kind in "fc" else 0
    atol = rtol * min(float(scale), 100.0)
    near = np.isclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)
    if near.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~near)[0])
    return f"{(~near).sum()} of {near.size} values differ, at {list(at)} got {found[at]}, expected {expected[at]}"
