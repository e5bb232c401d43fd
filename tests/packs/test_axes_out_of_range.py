"""An axis that an array doesn't have is an error of three kinds: of corejax, an IndexError, and a ValueError."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
import corejax.numpy.fft
import corejax.numpy.linalg
from corejax import lax
from corejax.errors import CorejaxAxisError, CorejaxError

X, M, PLACES, KEYS = jnp.ones((2, 3)), jnp.ones((2, 2)), jnp.zeros((2, 3), int), [jnp.ones((2, 3))] * 2

AXES = frozenset(("axis", "axes", "axis1", "axis2", "axisa", "axisb", "axisc", "dimension", "source", "destination"))

#: Arguments by name; anything else gets a matrix.
GIVEN: dict[str, Any] = {
    "indices": PLACES, "q": 0.5, "obj": 0, "values": 1.0, "repeats": 2, "shift": 1, "indices_or_sections": 1,
    "arrays": KEYS,
    "condition": np.array([True, False]), "kth": 1, "num": 3, "func1d": jnp.sum, "func": jnp.sum, "start": 1.0,
    "stop": 2.0,
    "keys": KEYS, "index": 0, "slice_size": 1, "start_index": 0, "limit_index": 1, "operands": KEYS, "fn": jnp.add,
    "index_dtype": "int32", "shape": (2, 3), "dtype": "int32", "sizes": (1, 2), "k": 1,
}

#: These take axes in another form, or names of axes, or other operands: see the uses below.
OTHERWISE = frozenset((
    "jnp.tensordot", "linalg.tensordot", "linalg.tensorsolve", "fft.fft2", "fft.ifft2", "fft.rfft2", "fft.irfft2",
    "jnp.put_along_axis", "jnp.packbits", "jnp.unpackbits", "lax.all_gather", "lax.all_to_all", "lax.pbroadcast",
    "lax.psum_invariant", "lax.pswapaxes", "lax.select_and_scatter", "lax.select_and_scatter_add", "lax.shard_map",
    "lax.sort_key_val"))


def _functions() -> Iterator[tuple[str, str]]:
    """Every public function with an argument that is an axis, and the name of that argument."""
    for label, module in (("jnp", jnp), ("linalg", jnp.linalg), ("fft", jnp.fft), ("lax", lax)):
        for name in dir(module):
            function = getattr(module, name)
            if not callable(function) or isinstance(function, type) or f"{label}.{name}" in OTHERWISE:
                continue
            try:
                names = inspect.signature(function).parameters
            except (TypeError, ValueError):
                continue
            yield from [(f"{label}.{name}", axis) for axis in names if axis in AXES]


def _call(title: str, axis: str, value: int) -> Any:
    label, name = title.split(".")
    function = getattr({"jnp": jnp, "linalg": jnp.linalg, "fft": jnp.fft, "lax": lax}[label], name)
    positional, named = [], {axis: value}
    for p in inspect.signature(function).parameters.values():
        if p.default is p.empty and p.name != axis and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            given = 0 if p.name in AXES else GIVEN.get(p.name, X)
            if p.kind is p.POSITIONAL_ONLY:
                positional.append(given)
            else:
                named[p.name] = given
    return function(*positional, **named)


@pytest.mark.parametrize(("title", "axis"), list(_functions()), ids=str)
def test_every_function_refuses_an_axis_out_of_range_as_numpy_does(title: str, axis: str) -> None:
    for value in (7, -8):
        with pytest.raises(CorejaxError, match=rf"axis {value} is out of bounds for \d dimensions") as caught:
            _call(title, axis, value)
        assert isinstance(caught.value, ValueError)
        assert isinstance(caught.value, IndexError)


def test_the_law_is_about_many_functions() -> None:
    assert 130 < len(list(_functions()))


def _mapped(use: Callable[[Any], Any]) -> Any:
    return cj.vmap(use, axis_name="i")(M)


USES: dict[str, Callable[[int], Any]] = {
    "tensordot": lambda b: jnp.tensordot(X, X, ((b,), (1,))), "fft2": lambda b: jnp.fft.fft2(X, axes=(0, b)),
    "fftn of an integer": lambda b: jnp.fft.fftn(X, axes=b), "irfftn": lambda b: jnp.fft.irfftn(X, axes=(b,)),
    "tensorsolve": lambda b: jnp.linalg.tensorsolve(jnp.eye(4).reshape(2, 2, 4), M, axes=(b,)),
    "put_along_axis": lambda b: jnp.put_along_axis(X, PLACES, 1.0, b, inplace=False),
    "packbits": lambda b: jnp.packbits(X > 0, axis=b),
    "unpackbits": lambda b: jnp.unpackbits(X.astype("uint8"), axis=b),
    "two axes": lambda b: jnp.sum(X, (0, b)), "rot90": lambda b: jnp.rot90(X, 1, (0, b)),
    "moveaxis": lambda b: jnp.moveaxis(X, (0, 1), (0, b)), "permutation": lambda b: jnp.transpose(X, (0, b)),
    "x.transpose": lambda b: X.transpose(0, b), "x.squeeze": lambda b: X.squeeze(b), "x.sum": lambda b: X.sum(b),
    "x.sort": lambda b: X.sort(b), "x.take": lambda b: X.take(0, b), "x.cumsum": lambda b: X.cumsum(b),
    "several new axes": lambda b: jnp.expand_dims(X, (0, b)), "rolls": lambda b: jnp.roll(X, (1, 1), (0, b)),
    "ufunc.reduce": lambda b: jnp.add.reduce(X, axis=b), "ufunc.accumulate": lambda b: jnp.add.accumulate(X, axis=b),
    "lax.reduce_sum": lambda b: lax.reduce_sum(X, (b,)), "lax.sort": lambda b: lax.sort((X, X), dimension=b),
    "lax.sort_key_val": lambda b: lax.sort_key_val(X, X, b), "lax.rev": lambda b: lax.rev(X, (b,)),
    "all_gather": lambda b: _mapped(lambda x: lax.all_gather(x, "i", axis=b)),
    "all_to_all": lambda b: _mapped(lambda x: lax.all_to_all(x, "i", b, 0)),
    "of a scalar": lambda b: jnp.sum(jnp.ones(()), b), "NumPy's": lambda b: cj.jit(lambda x: np.sum(x, axis=b))(X),
    "compiled": lambda b: cj.jit(lambda x: jnp.sum(x, b))(X),
}


@pytest.mark.parametrize("name", USES)
def test_other_uses_do_so_too(name: str) -> None:
    for value in (7, -8):
        with pytest.raises(CorejaxAxisError, match=f"axis {value} is out of bounds"):
            USES[name](value)


@pytest.mark.parametrize("use", [
    lambda: jnp.sum(X, (0, 0)), lambda: jnp.expand_dims(X, (0, 0)), lambda: jnp.transpose(X, (0, 0)),
    lambda: jnp.moveaxis(X, (0, 0), (0, 1)), lambda: X.squeeze((0, 0))])
def test_an_axis_named_twice_is_a_value_error(use: Callable[[], Any]) -> None:
    with pytest.raises(CorejaxAxisError, match="twice"):
        use()


def test_mapped_axes_are_axes() -> None:
    for wrong in ({"in_axes": 2}, {"in_axes": -3}, {"out_axes": 2}):
        with pytest.raises(CorejaxAxisError, match="vmap"):
            cj.vmap(lambda x: x, **wrong)(X)  # type: ignore[arg-type]


def test_the_error_is_public() -> None:
    assert issubclass(CorejaxAxisError, (ValueError,))
    assert issubclass(CorejaxAxisError, (IndexError,))
    assert cj.errors.CorejaxAxisError is CorejaxAxisError
