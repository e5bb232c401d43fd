"""Functions that are called, and text that is printed, while a program runs: to see what it computes."""

from __future__ import annotations

import builtins
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import ShapedArray, flatten, here
from corejax.errors import CorejaxTypeError
from corejax.plugin import Effect, Sample, calls_users, define, hookimpl, public, shaping
from corejax_callbacks import _formats
from corejax_callbacks._calling import Call, Callback, make_call
from corejax_callbacks._lines import aside
from corejax_callbacks._primitives import evaluated, lowered, one_by_one, see_only, seen
from corejax_callbacks.effectful import effects_of

__all__ = ["callback", "debug_callback_p", "log", "print"]

_NAME = "debug_callback"


class DebugCallback:
    """`debug_callback(*operands, call, ordered)`: what `cj.debug.callback` and `cj.debug.print` apply. No results.

    >>> sample = next(debug_callback_p.primitive.samples(np.random.default_rng(0)))
    >>> debug_callback_p(*sample.args, **sample.params)
    []
    """

    name = _NAME
    multiple_results = True
    element_types = ("*",)
    operands = ("*operands",)

    @hookimpl
    def evaluate(self, args: Sequence[Any], *, call: Callback) -> list[Any]:
        return evaluated(args, call, ())

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, call: Callback, ordered: bool) -> list[ShapedArray]:
        return []

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, call: Callback, ordered: bool) -> Any:
        return debug_callback_p.primitive.bind(*primals, call=call, ordered=ordered), []

    @hookimpl
    def transpose(self, cotangents: Any, args: Sequence[Any]) -> Any:
        # What depends on tangents has no value in the transposed program, so there is nothing to call it with.
        return [None] * len(args)

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, call: Callback, ordered: bool) -> Any:
        args, each = one_by_one(axis, args, dims, call)
        return debug_callback_p.primitive.bind(*args, call=each, ordered=ordered), []

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any], *, call: Callback) -> list[Any]:
        return lowered(ctx, args, call, ())

    @hookimpl
    def effects(self, avals: Sequence[ShapedArray], *, ordered: bool) -> frozenset[Effect]:
        return effects_of(ordered)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        tree = flatten(((0,), {}))[1]
        for ordered in (False, True):
            for timeout, x in ((None, rng.standard_normal(3)), (30.0, np.arange(2))):
                yield Sample([x], {"call": Call(_NAME, see_only, tree, None, timeout), "ordered": ordered}, results=[],
                             happened=seen)


debug_callback_p: Any = define(DebugCallback())


@public
@calls_users
def callback(callback: Callable[..., Any] | None = None, *args: Any, ordered: bool = False, partitioned: bool = False,
             timeout: float | None = None, **kwargs: Any) -> Any:
    """Call a Python function whenever a program comes by: `callback(*args, **kwargs)`. What it returns is ignored.

    Arrays among the arguments come with their values, in memory of the host; anything else comes as it is. The call is
    made once, under derivatives too, where it gets the values and no tangents; under `cj.vmap` for each element, in
    `cj.shard_map` for each device.

    - `ordered`: the calls come in the order of the program, and can't be made under `cj.vmap` nor by several devices.
    - `partitioned`: in a program for several devices, JAX calls the function for each of an array's parts. Here it is
      always called with whole arrays, except in `cj.shard_map`.
    - `timeout`: after so many seconds the call is abandoned, with an error.

    Without a function, this returns `callback` with these options: `callback(ordered=True)(print, x)`.

    >>> import corejax as cj
    >>> seen = []
    >>> cj.jit(cj.grad(lambda x: (cj.debug.callback(seen.append, x * 2), x ** 2)[1]))(3.0)
    Array(6., dtype=float64, weak_type=True)
    >>> seen
    [Array(6., dtype=float64)]
    """
    options: Any = {"ordered": ordered, "partitioned": partitioned, "timeout": timeout}
    if callback is None:
        _check_second("debug.callback", args, kwargs)
        return lambda callback, *args, **kwargs: _call("debug.callback", callback, args, kwargs, **options)
    _call("debug.callback", callback, args, kwargs, **options)
    return None


def _call(name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Any, *, ordered: bool,
          partitioned: bool, timeout: float | None) -> None:
    shaping.as_flag(name, "partitioned", partitioned)
    call, data = make_call(name, function, tuple(args), kwargs, None, timeout, fixed=True)
    debug_callback_p.primitive.bind(*data, call=call, ordered=shaping.as_flag(name, "ordered", ordered))


class _Prints:
    """What prints, as a function of the arguments of a format; two of the same text are the same."""

    def __init__(self, fmt: str, logger: logging.Logger | None) -> None:
        self._fmt, self._logger, self._options = fmt, logger, np.get_printoptions()

    def __corejax_key__(self) -> tuple[object, ...]:
        return self._fmt, self._logger, tuple([(name, str(value)) for name, value in self._options.items()])

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        with np.printoptions(**self._options):
            text = self._fmt.format(*args, **kwargs)
        if self._logger is None:
            with aside():
                builtins.print(text)
        else:
            self._logger.info(text)


@public
def print(fmt: str | None = None, *args: Any, ordered: bool = False, partitioned: bool = False,
          skip_format_check: bool = False, timeout: float | None = None, **kwargs: Any) -> Any:
    """Print values whenever a program comes by: `fmt.format(*args, **kwargs)`, by Python's `print`.

    The format is checked at once: there must be an argument for each place, and a place for each argument. Options are
    those of `cj.debug.callback`; `skip_format_check` leaves the check out. Arrays print as NumPy's options say when
    this is called. Without a format, it returns `print` with these options.

    >>> import corejax as cj
    >>> @cj.jit
    ... def f(x):
    ...     cj.debug.print("x = {:.2f}, {what} = {y}", x, what="its square", y=x * x)
    ...     return x + 1
    >>> f(3.0)
    x = 3.00, its square = 9.0
    Array(4., dtype=float64, weak_type=True)
    >>> cj.debug.print("{} of {}", 3)
    Traceback (most recent call last):
      ...
    corejax.errors.CorejaxValueError: debug.print: there is no argument 1 for the format
      got:    1 positional
      wanted: arguments for '{} of {}'
      where:  ...
      to do:  pass an argument for each place: cj.debug.print('x = {}, y = {y:.3f}', x, y=y)
    """
    return _print("debug.print", None, fmt, args, kwargs, skip_format_check, ordered=ordered, partitioned=partitioned,
                  timeout=timeout)


@public
def log(fmt: str | None = None, *args: Any, ordered: bool = False, partitioned: bool = False,
        skip_format_check: bool = False, timeout: float | None = None, **kwargs: Any) -> Any:
    """The same as `cj.debug.print`, to Python's logger `corejax.debug` at level INFO.

    >>> log("x = {}", 3)
    """
    return _print("debug.log", logging.getLogger("corejax.debug"), fmt, args, kwargs, skip_format_check,
                  ordered=ordered, partitioned=partitioned, timeout=timeout)


def _print(name: str, logger: logging.Logger | None, fmt: str | None, args: Sequence[Any], kwargs: Any,
           unchecked: bool, **options: Any) -> Any:
    if fmt is None:
        _check_second(name, args, kwargs)
        return lambda fmt, *args, **kwargs: _print(name, logger, fmt, args, kwargs, unchecked, **options)
    if not shaping.as_flag(name, "skip_format_check", unchecked):
        _formats.check(name, fmt, args, kwargs)
    _call(name, _Prints(fmt, logger), args, kwargs, **options)
    return None


def _check_second(name: str, args: Sequence[Any], kwargs: Any) -> None:
    """Raise if there are arguments without what gets them."""
    if args or kwargs:
        raise CorejaxTypeError(f"{name}: there are arguments, and nothing that gets them", wanted="none yet",
                               got=f"{len(args)} positional, {len(kwargs)} by keyword", where=here(),
                               todo=f"pass them to what this returns: {name}(ordered=True)(..., x)")
