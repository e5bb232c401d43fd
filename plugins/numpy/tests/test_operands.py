"""Functions of elements of operands in any form: broadcast, without axes or elements, Python's numbers, lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax.core import from_array_like
from corejax.errors import CorejaxError
from elementwise_points import BINARY, PLAIN, UNARY, many, off

Forms = dict[str, tuple[Any, ...]]

DTYPES = ["int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]


def _forms(dtype: str) -> Forms:
    a, b = np.array([3, 1, 2]).astype(dtype), np.array([1, 2]).astype(dtype)
    floats = {} if a.dtype.kind in "iu" else {"a float on the right": (a, 2.5), "a float on the left": (0.5, a)}
    return {"axes": (a[:, None], b), "a leading axis": (a, np.stack([a, a])), "no axes": (a[0], b[1]),
            "no axes beside some": (a[0], b), "no elements": (a[:0], b[:1]), "an empty axis": (a[:, None, None], b[:0]),
            "a number on the right": (a, 2), "a number on the left": (3, a), "a boolean": (a, True),
            "a number beside no axes": (a[0], 2), "numbers": (3, 2), **floats}


def _result(f: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    try:
        return many(f(*operands))
    except (CorejaxError, TypeError):
        return None


def _spread(name: str, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    """The operands in their common shape and dtype."""
    dtype, shape = jnp.result_type(*operands), np.broadcast_shapes(*map(np.shape, operands))
    arrays = [np.broadcast_to(np.asarray(x), shape) for x in operands]
    if name == "ldexp":
        return arrays[0].astype(jnp.result_type(operands[0])), arrays[1].astype(jnp.result_type(operands[1]))
    return tuple([x.astype(dtype) for x in arrays])


@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_are_brought_together(dtype: str) -> None:
    forms, wrong = _forms(dtype), []
    programs: dict[str, Any] = {}
    for name in BINARY:
        f = getattr(jnp, name)
        for what, operands in forms.items():
            arrays = tuple([from_array_like(x) if isinstance(x, (np.ndarray, np.generic)) else x for x in operands])
            wanted, found = _result(f, _spread(name, operands)), _result(f, arrays)
            if wanted is None or found is None:
                wrong += [f"{name} of {what} is refused"] if (wanted is None) != (found is None) else []
                continue
            programs[f"{name} of {what}"] = lambda f=f, arrays=arrays: f(*arrays), found
            for out, again, expected in zip(found, many(f(*arrays)), wanted, strict=True):
                if off(out, expected).any() or off(out, again, 4.0).any() or out.aval != again.aval:
                    wrong.append(f"{name} of {what}: {out}, {again}, not {expected}")
    wrong += _compiled_otherwise(programs, dtype)
    assert [] == wrong


def _compiled_otherwise(programs: dict[str, Any], dtype: str) -> list[str]:
    """Which calls have other types in a program; values are compared for one dtype, since compiling takes long."""
    calls = {what: call for what, (call, _) in programs.items()}
    if dtype == "float32":
        outs = cj.jit(lambda: {what: call() for what, call in calls.items()})()
        return [what for what, (_, found) in programs.items()
                for out, eager in zip(many(outs[what]), found, strict=True)
                if off(out, eager, 64.0).any() or out.aval.weak_type != eager.aval.weak_type]
    types = cj.eval_shape(lambda: {what: call() for what, call in calls.items()})
    return [what for what, (_, found) in programs.items() for out, eager in zip(many(types[what]), found, strict=True)
            if (out.shape, out.dtype, out.weak_type) != (eager.shape, eager.dtype, eager.aval.weak_type)]


@pytest.mark.parametrize("name", UNARY)
def test_one_operand_may_have_any_form(name: str) -> None:
    f, numbers = getattr(jnp, name), [1, 0.5, True, 1 + 2j]
    for number in numbers:
        wanted = _result(f, (np.asarray(number),))
        for operand in (number, [number], [[number], [number]], np.asarray(number)[()], np.full((0, 2), number)):
            whole = np.asarray(operand, jnp.result_type(number))
            assert (wanted is None) == (_result(f, (operand,)) is None)
            for out, one in zip(_result(f, (operand,)) or (), wanted or (), strict=True):
                assert whole.shape == out.shape
                if number is not True:  # Python's booleans are weak here
                    assert one.dtype == out.dtype
                    assert not off(out, np.broadcast_to(np.asarray(one), whole.shape)).any()


@pytest.mark.parametrize("name", BINARY)
def test_lists_are_arrays(name: str) -> None:
    f = getattr(jnp, name)
    for lists in (([3, 1], [2, 2]), ([3.0, 1.0], [2.0, 2.0]), ([[3], [1]], 2), (3, [2, 1, 0])):
        arrays = [np.asarray(x) if isinstance(x, list) else x for x in lists]
        wanted = _result(f, tuple(arrays))
        for _ in range(2):
            found = _result(f, lists)
            assert (wanted is None) == (found is None)
            for out, expected in zip(found or (), wanted or (), strict=True):
                assert not off(out, expected).any()


@pytest.mark.parametrize("name", BINARY)
def test_a_list_or_tuple_on_either_side_of_an_array_is_one(name: str) -> None:
    f = getattr(jnp, name)
    x, y = jnp.array([3, 1]), jnp.array([2, 2])
    wanted = f(x, y)
    for found in (f(x, [2, 2]), f(x, (2, 2)), f([3, 1], y), cj.jit(lambda x: f(x, [2, 2]))(x)):
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-14)  # the compiler rounds differently


def test_bfloat16_stays_beside_numbers() -> None:
    x = from_array_like(np.array([1.0, 2.0]).astype(ml_dtypes.bfloat16))
    for name in BINARY:
        outs = _result(getattr(jnp, name), (x, 2.0)) or ()
        assert {out.dtype.name for out in outs} <= {"bfloat16", "bool", "float64" if name == "float_power" else "bool"}


def test_other_names_are_the_same_functions() -> None:
    for name in ("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh"):
        assert getattr(jnp, name) is getattr(jnp, "arc" + name[1:])
    for name, other in {"abs": "absolute", "conj": "conjugate", "bitwise_invert": "invert", "bitwise_not": "invert",
                        "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "mod": "remainder",
                        "pow": "power", "true_divide": "divide", "around": "round"}.items():
        assert getattr(jnp, name) is getattr(jnp, other)


@pytest.mark.parametrize("name", [*BINARY, *[name for name in UNARY if name not in PLAIN]])
def test_a_ufunc_tells_what_it_is(name: str) -> None:
    f = getattr(jnp, name)
    theirs = getattr(np, name)
    assert (theirs.nin, theirs.nout, theirs.identity) == (f.nin, f.nout, f.identity)
    assert isinstance(f, jnp.ufunc)
    with pytest.raises(CorejaxError, match="immutable"):
        f(*[1] * f.nin, out=np.zeros(()))
    assert f"<ufunc '{f.__name__}'>" == repr(f)
