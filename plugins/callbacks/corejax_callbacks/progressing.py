"""A line in the terminal that says how far a loop is, at which rate, and how long it will take.

A loop is divided into parts of some steps, and Python is called between two parts: the steps themselves stay as they
are. Where there is no terminal, the loop is left as it is altogether.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, flatten, here, is_concrete
from corejax.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import public, roles
from corejax_callbacks._lines import Line, is_terminal
from corejax_callbacks.debugging import callback
from corejax_callbacks.effectful import io_callback

__all__ = ["progress"]

#: About how often a line is redrawn in a loop of known length, if `every` doesn't say.
_TIMES = 50


@public
class progress:
    """`lax.scan`, `fori_loop` and `while_loop` with a line in the terminal that says how far they are.

    `every` is how many steps lie between two pictures of the line; by default, a fiftieth of them, or what takes a
    tenth of a second. `label` is what the line begins with. On anything but a terminal nothing is shown, and nothing is
    added to the loop.

    >>> from corejax import lax
    >>> steps = progress(label="summing")
    >>> steps.scan(lambda total, x: (total + x, None), 0.0, np.arange(4.0))[0]
    Array(6., dtype=float64)
    >>> steps.fori_loop(0, 3, lambda i, x: 2.0 * x, 1.0)
    Array(8., dtype=float64, weak_type=True)
    """

    def __init__(self, *, every: int | None = None, label: str = "") -> None:
        if every is not None and (type(every) is not int or every < 1):
            raise CorejaxValueError("progress: every must be a number of steps", got=repr(every), where=here(),
                                    wanted="an int from 1 on, or None", todo="leave it out, or write every=100")
        if not isinstance(label, str):
            raise CorejaxTypeError("progress: label must be text", got=kind_of(label), wanted="a str", where=here(),
                                   todo="write label='training'")
        self._every = every
        self._line = Line(label, every)  # one for all loops, so that a loop that comes again is compiled once

    @public
    def scan(self, f: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False,
             unroll: int | bool = 1) -> Any:
        """`lax.scan` with the same arguments."""
        leaves = flatten(xs)[0]
        count = length if length is not None else next((aval_of(x).shape[0] for x in leaves if aval_of(x).shape), None)
        if not is_terminal() or not isinstance(count, int) or count < 1:
            return lax.scan(f, init, xs, length, reverse, unroll)  # which says what is wrong with them
        every = min(self._every or max(1, count // _TIMES), count)
        parts, rest = divmod(count, every)
        line, tree = self._line, flatten(xs)[1]

        def step(state: Any, x: Any) -> Any:
            done, carry = state
            carry, y = f(carry, x)
            return (_one_more(done), carry), y

        def part(state: Any, leaves: list[Any], size: int = every) -> Any:
            (done, carry), ys = lax.scan(step, state, tree.unflatten(leaves), size, reverse, unroll)
            callback(line.show, done, np.int64(count))
            return (done, carry), ys

        # those that don't fill a part come last: where the loop ends
        whole = slice(rest, None) if reverse else slice(0, count - rest)
        others = slice(0, rest) if reverse else slice(count - rest, None)
        blocks = [_blocks(x[whole], parts, every) for x in leaves]
        state, ys = lax.scan(part, (_begun(line, count), init), blocks, parts, reverse)
        found, out_tree = flatten(ys)
        found = [_joined(y, parts, every) for y in found]
        if rest:
            state, ys = part(state, [x[others] for x in leaves], rest)
            more = flatten(ys)[0]
            found = [_together(y, other, reverse) for y, other in zip(found, more, strict=True)]
        return state[1], out_tree.unflatten(found)

    @public
    def fori_loop(self, lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any) -> Any:
        """`lax.fori_loop` with the same arguments."""
        if not is_terminal():
            return lax.fori_loop(lower, upper, body_fun, init_val)
        if not (_is_known(lower) and _is_known(upper)):
            count = upper - lower
            nothing = 0 * count  # a zero of the index's type
            total = lax.convert_element_type(lax.max(count, nothing), np.int64)
            return self._while(lambda state: state[0] < count,
                               lambda state: (state[0] + 1, body_fun(lower + state[0], state[1])),
                               (nothing, init_val), total)[1]
        count = int(upper) - int(lower)
        if count < 1:
            return lax.fori_loop(lower, upper, body_fun, init_val)
        every = min(self._every or max(1, count // _TIMES), count)
        parts, rest = divmod(count, every)
        line = self._line

        def steps(state: Any, begin: Any, size: int) -> Any:
            def step(i: Any, state: Any) -> Any:
                done, x = state
                return _one_more(done), body_fun(lower + begin + i, x)

            done, x = lax.fori_loop(0, size, step, state)
            callback(line.show, done, np.int64(count))
            return done, x

        state = lax.fori_loop(0, parts, lambda k, state: steps(state, k * every, every),
                              (_begun(line, count), init_val))
        return (steps(state, parts * every, rest) if rest else state)[1]

    @public
    def while_loop(self, cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any) -> Any:
        """`lax.while_loop` with the same arguments. How much is left isn't known, so only the rate is shown."""
        if not is_terminal():
            return lax.while_loop(cond_fun, body_fun, init_val)
        return self._while(cond_fun, body_fun, init_val, np.int64(-1))

    def _while(self, cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any, total: Any) -> Any:
        line, kind = self._line, aval_of(np.int64(0))

        def size_after(done: Any, going: Any) -> Any:
            """How many steps the next part has."""
            return io_callback(line.next_part, kind, done, total, going)

        def part(state: Any) -> Any:
            done, size, going, x = state

            def step(state: Any) -> Any:
                i, _, x = state
                x = body_fun(x)
                return i + 1, _flag(cond_fun(x)), x

            taken, going, x = lax.while_loop(lambda s: lax.bitwise_and(s[1], lax.lt(s[0], size)), step,
                                             (np.int64(0), going, x))
            done = lax.add(done, taken)
            return done, size_after(done, going), going, x

        going = _flag(cond_fun(init_val))
        start = np.int64(0), size_after(np.int64(0), going), going, init_val
        return lax.while_loop(lambda state: state[2], part, start)[3]


def _is_known(bound: Any) -> bool:
    return isinstance(bound, (int, np.integer)) or (is_concrete(bound) and not aval_of(bound).shape)


def _flag(going: Any) -> Any:
    return lax.convert_element_type(going, np.bool_)


def _begun(line: Line, total: int) -> Any:
    """Zero steps, once the line knows that the loop begins: the loop can't begin before."""
    return io_callback(line.begin, aval_of(np.int64(0)), np.int64(total))


def _one_more(done: Any) -> Any:
    """The count of steps, which the loop computes itself: so that it isn't known before the loop has ended."""
    return lax.add(done, np.int64(1))


def _together(y: Any, other: Any, reverse: bool) -> Any:
    """Both parts of an output, typed as the first one, which knows what the loop began with."""
    whole = lax.concatenate([other, y] if reverse else [y, other], 0)
    return roles.convert(whole, aval_of(y).dtype, aval_of(y).weak_type)


def _blocks(x: Any, parts: int, every: int) -> Any:
    return lax.reshape(x, (parts, every, *aval_of(x).shape[1:]))


def _joined(y: Any, parts: int, every: int) -> Any:
    return lax.reshape(y, (parts * every, *aval_of(y).shape[2:]))
