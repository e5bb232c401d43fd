"""What equations hold and programs call: a user's function with the structure of its arguments and results.

Programs that hold equal ones are equal: a function is the same as itself only, so that a lambda made anew is compiled
anew.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import isfinite
from typing import Any, Protocol

import numpy as np

from corejax.core import ShapedArray, Sharding, Tracer, call_user, check_callable, flatten, here, name_of, namer, values
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import abstract_leaves, calls_users
from corejax_callbacks import _values


class CallbackTimeout(CorejaxError, TimeoutError):
    """A callback took longer than its `timeout`. It was abandoned."""


class Callback(Protocol):
    """From values of operands to those of results, of exactly the types that are asked for."""

    def __call__(self, operands: Sequence[np.ndarray], avals: Sequence[ShapedArray], results: Sequence[ShapedArray],
                 where: str | None) -> list[np.ndarray]: ...


class Call:
    """A user's function, which gets a tree of arrays, and arguments that aren't data."""

    __slots__ = ("_fixed", "_function", "_in_tree", "_out_tree", "_timeout", "name")

    def __init__(self, name: str, function: Callable[..., Any], in_tree: Any, out_tree: Any,
                 timeout: float | None, fixed: tuple[tuple[int, Any], ...] = ()) -> None:
        self.name, self._function, self._timeout = name, function, timeout
        self._in_tree, self._out_tree, self._fixed = in_tree, out_tree, fixed

    def __corejax_key__(self) -> tuple[object, ...]:
        fixed = [(i, _Held(x)) for i, x in self._fixed]
        return self._function, self._in_tree, self._out_tree, self._timeout, self.name, tuple(fixed)

    def __repr__(self) -> str:
        return name_of(self._function)

    @calls_users
    def __call__(self, operands: Sequence[np.ndarray], avals: Sequence[ShapedArray], results: Sequence[ShapedArray],
                 where: str | None = None) -> list[np.ndarray]:
        leaves: list[Any] = [_values.array(x, aval) for x, aval in zip(operands, avals, strict=True)]
        for i, x in self._fixed:  # in order, so that each finds its place
            leaves.insert(i, x)
        args, kwargs = self._in_tree.unflatten(leaves)
        function = partial(self._function, **kwargs) if kwargs else self._function
        if self._timeout is None:
            out = call_user(function, args, self.name)
        else:
            out = _within(self._timeout, lambda: call_user(function, args, self.name), self._who(), where)
        if self._out_tree is None:  # nobody asks for results
            return []
        return _values.check_results(out, self._out_tree, results, self._who(), where)

    def _who(self) -> str:
        return f"{self.name}: the callback {name_of(self._function)}"


class Each:
    """The same for each element of a batch, one after the other. `mapped` says which operands have a batch axis, 0."""

    __slots__ = ("_call", "_mapped", "_size")

    def __init__(self, call: Callback, mapped: Sequence[bool], size: int) -> None:
        self._call, self._mapped, self._size = call, tuple(mapped), size

    def __corejax_key__(self) -> tuple[object, ...]:
        return self._call, self._mapped, self._size

    def __repr__(self) -> str:
        return f"{self._call!r} for each of {self._size}"

    def __call__(self, operands: Sequence[np.ndarray], avals: Sequence[ShapedArray], results: Sequence[ShapedArray],
                 where: str | None = None) -> list[np.ndarray]:
        inner = [_one_of(aval) if mapped else aval for aval, mapped in zip(avals, self._mapped, strict=True)]
        wanted = [_one_of(aval) for aval in results]
        rows = [self._call([x[i, ...] if mapped else x for x, mapped in zip(operands, self._mapped, strict=True)],
                           inner, wanted, where) for i in range(self._size)]
        if not rows:
            return [np.empty(aval.shape, aval.dtype) for aval in results]
        return [np.stack(column) for column in zip(*rows, strict=True)]


def _one_of(aval: ShapedArray) -> ShapedArray:
    return aval.update(shape=aval.shape[1:])


class _Held:
    """An argument that isn't data, as part of a key: by its value if that can be hashed, else by what it is."""

    __slots__ = ("_hash", "_value")

    def __init__(self, value: Any) -> None:
        self._value = value
        try:
            self._hash: int | None = hash((type(value), value))
        except TypeError:
            self._hash = None

    def __hash__(self) -> int:
        return id(self._value) if self._hash is None else self._hash

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Held or type(self._value) is not type(other._value):
            return False
        return self._value is other._value or (self._hash is not None and self._hash == other._hash
                                               and bool(self._value == other._value))


# Arguments of the public functions

def make_call(name: str, function: Callable[..., Any], args: Any, kwargs: Any, out_tree: Any, timeout: object,
              fixed: bool = False) -> tuple[Call, list[Any]]:
    """What calls a user's function with such arguments, and those that are data; with `fixed`, others may be, too."""
    check_callable(function, name)
    _check_closure(function, name)
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))
                                or not (isfinite(timeout) and timeout > 0)):
        raise CorejaxValueError(f"{name}: timeout must be a number of seconds", got=repr(timeout), where=here(),
                                wanted="a number above 0, or None", todo="leave it out to wait as long as it takes")
    leaves, in_tree = flatten((args, kwargs))
    others = [(i, x) for i, x in enumerate(leaves) if fixed and not _values.is_data(x)]
    places = {i for i, _ in others}
    paths = namer("", (args, kwargs))

    def place(i: int) -> str:
        path = paths([j for j in range(len(leaves)) if j not in places][i])
        return ("args" if path.startswith("[0]") else "kwargs") + path[3:]

    data = values([x for i, x in enumerate(leaves) if i not in places], name, place)
    return Call(name, function, in_tree, out_tree, None if timeout is None else float(timeout), tuple(others)), data


def _check_closure(function: Any, name: str) -> None:
    """Raise if a user's function closes over traced values: there are none when the program runs."""
    for variable, value in _closed_over(function):
        if isinstance(value, Tracer):
            raise CorejaxTypeError(
                f"{name}: the callback {name_of(function)} closes over a traced value", got=f"{variable}: {value!r}",
                wanted="a function of its arguments", where=here(),
                todo=f"pass it as an argument: {name}(..., {variable})")


def result_types(name: str, tree: Any) -> tuple[tuple[ShapedArray, ...], Any]:
    """The types that `result_shape_dtypes` describes, with the structure."""
    leaves, structure = flatten(tree)
    for x in leaves:
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise CorejaxTypeError(
                f"{name}: result_shape_dtypes doesn't say a shape and a dtype", got=f"{kind_of(x)}: {x!r:.60}",
                wanted="a pytree of objects with shape and dtype, such as cj.ShapeDtypeStruct", where=here(),
                todo="write cj.ShapeDtypeStruct((3,), 'float64'); or None if it returns nothing")
    avals = abstract_leaves(leaves, name, namer("result_shape_dtypes", tree))
    return tuple([aval.update(weak_type=False) for aval in avals]), structure


def check_sharding(name: str, sharding: object) -> None:
    """Raise unless it is a sharding with a single device, or None."""
    if sharding is not None and (not isinstance(sharding, Sharding) or len(sharding.device_set) != 1):
        raise CorejaxTypeError(f"{name}: the call is made once, so its sharding has one device", where=here(),
                               got=f"{sharding!r:.80}", wanted="a SingleDeviceSharding, or None",
                               todo="leave it out; to call it for each shard, use it in a function for cj.shard_map")


def _closed_over(function: Any) -> Iterator[tuple[str, object]]:
    """What a function has of the functions around it, and what was bound to it, by name."""
    if isinstance(function, partial):
        yield from ((f"argument {i}", x) for i, x in enumerate(function.args))
        yield from function.keywords.items()
        yield from _closed_over(function.func)
        return
    code = getattr(function, "__code__", None)
    for variable, cell in zip(getattr(code, "co_freevars", ()), getattr(function, "__closure__", None) or ()):
        try:
            yield variable, cell.cell_contents
        except ValueError:  # it isn't assigned yet
            continue


# Time

def _within(seconds: float, call: Callable[[], Any], who: str, where: str | None) -> Any:
    """The result of a call that may take so long, in a thread that doesn't keep the process from ending."""
    outcome: list[tuple[bool, Any]] = []
    done = threading.Event()

    @calls_users
    def work() -> None:
        try:
            outcome.append((True, call()))
        except BaseException as error:
            outcome.append((False, error))
        finally:
            done.set()

    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(work), name=f"corejax: {who}", daemon=True).start()
    if not done.wait(seconds):
        raise CallbackTimeout(f"{who} took longer than its timeout, and was abandoned", got=f"no result in {seconds} s",
                              wanted="a call that returns in time", where=where or here(),
                              todo="find what it waits for; or pass a longer timeout")
    succeeded, result = outcome[0]
    if succeeded:
        return result
    raise result
