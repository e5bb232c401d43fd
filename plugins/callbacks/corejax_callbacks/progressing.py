"""A line in the terminal that says how far a loop is, at which rate, and how long it will take.

A loop is divided into parts of some steps, and between two parts Python is called if the line is due: the steps
themselves stay as they are. When it is due next is for Python to say each time, as so many steps, since a program has
no clock. Where there is no terminal, the loop is left as it is altogether.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import ShapedArray, aval_of, dtypes, flatten, here, is_concrete, is_holder
from corejax.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import public, roles
from corejax_callbacks._lines import Line, is_terminal
from corejax_callbacks.effectful import io_callback_p

__all__ = ["progress"]

#: How many steps a part has at most, and how many parts a loop of few steps has. To see after a part whether the line
#: is due takes 0.2 µs, as long as 50 of the cheapest steps: 0.2 ms in all, or half a percent of 10^6 steps or more.
_STEPS, _PARTS = 10_000, 1000

#: What a loop carries for its line.
_LOOP = ShapedArray((5,), "int64")


@public
class progress:
    """`lax.scan`, `fori_loop` and `while_loop` with a line in the terminal that says how far they are.

    `every` is how many steps lie between two pictures of the line; by default, about what takes a tenth of a second.
    `label` is what the line begins with. On anything but a terminal nothing is shown, and nothing is added to the loop.

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
        leaves, tree = flatten(xs)
        count = _length(leaves, length)
        if not (is_terminal() and count and callable(f)) or any(map(is_holder, leaves)):  # which have no parts
            return lax.scan(f, init, xs, length, reverse, unroll)  # which says what is wrong with its arguments
        every = self._size(count, unroll)
        parts, rest = divmod(count, every)

        def step(state: Any, x: Any) -> Any:
            done, carry = state
            found = f(carry, x)
            if not isinstance(found, (tuple, list)) or len(found) != 2:
                return found  # which lax.scan refuses
            return (_one_more(done), found[0]), found[1]

        def part(state: Any, leaves: list[Any], size: int = every) -> Any:
            loop, done, carry = state
            (done, carry), ys = lax.scan(step, (done, carry), tree.unflatten(leaves), size, reverse, unroll)
            return (self._shown(loop, done), done, carry), ys

        # those that don't fill a part come last: where the loop ends
        whole = slice(rest, None) if reverse else slice(0, count - rest)
        others = slice(0, rest) if reverse else slice(count - rest, None)
        blocks = [_blocks(x[whole], parts, every) for x in leaves]
        state, ys = lax.scan(part, (*self._begun(count), init), blocks, parts, reverse)
        found, out_tree = flatten(ys)
        found = [_joined(y, parts, every) for y in found]
        if rest:
            state, ys = part(state, [x[others] for x in leaves], rest)
            more = flatten(ys)[0]
            found = [_together(y, other, reverse) for y, other in zip(found, more, strict=True)]
        return state[2], out_tree.unflatten(found)

    @public
    def fori_loop(self, lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any) -> Any:
        """`lax.fori_loop` with the same arguments."""
        if not (is_terminal() and callable(body_fun) and all(map(_is_bound, (lower, upper)))):
            return lax.fori_loop(lower, upper, body_fun, init_val)
        first, end = _whole_number(lower), _whole_number(upper)
        if first is None or end is None:
            return self._counted(lower, upper, body_fun, init_val)
        count = end - first
        if count < 1:
            return lax.fori_loop(lower, upper, body_fun, init_val)
        every = self._size(count)
        parts, rest = divmod(count, every)

        def steps(state: Any, begin: Any, size: int) -> Any:
            def step(i: Any, state: Any) -> Any:
                done, x = state
                return _one_more(done), body_fun(first + begin + i, x)

            loop, done, x = state
            done, x = lax.fori_loop(0, size, step, (done, x))
            return self._shown(loop, done), done, x

        state = lax.fori_loop(0, parts, lambda k, state: steps(state, k * every, every),
                              (*self._begun(count), init_val))
        return (steps(state, parts * every, rest) if rest else state)[2]

    @public
    def while_loop(self, cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any) -> Any:
        """`lax.while_loop` with the same arguments. How much is left isn't known, so only the rate is shown."""
        going = cond_fun(init_val) if is_terminal() and callable(cond_fun) and callable(body_fun) else None
        if not _is_flag(going):
            return lax.while_loop(cond_fun, body_fun, init_val)
        return self._while(cond_fun, body_fun, init_val, going, np.int64(-1))

    def _counted(self, lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any) -> Any:
        """A loop whose bounds aren't known before it runs. Their difference may be no number of their type."""
        first = lower + 0 * (upper - lower)  # of the index's type
        first_float, end_float = [lax.convert_element_type(x, np.float64) for x in (lower, upper)]
        total = lax.convert_element_type(lax.ceil(lax.max(end_float - first_float, 0.0)), np.int64)
        return self._while(lambda state: state[0] < upper, lambda state: (state[0] + 1, body_fun(*state)),
                           (first, init_val), first < upper, total)[1]

    def _while(self, cond_fun: Callable[..., Any], body_fun: Callable[..., Any], init_val: Any, going: Any, total: Any
               ) -> Any:
        def part(state: Any) -> Any:
            loop, done, going, x = state
            due = _due(loop)

            def step(state: Any) -> Any:
                done, _, x = state
                x = body_fun(x)
                return _one_more(done), _flag(cond_fun(x)), x

            done, going, x = lax.while_loop(lambda state: lax.bitwise_and(state[1], lax.lt(state[0], due)), step,
                                            (done, going, x))
            return _call(self._line.show, loop, done, going), done, going, x

        going = _flag(going)
        start = _call(self._line.begin, total, going), np.int64(0), going, init_val
        return lax.while_loop(lambda state: state[2], part, start)[3]

    def _size(self, count: int, unroll: int | bool = 1) -> int:
        """How many steps a part has: if possible, so many that the parts are alike, and steps are compiled once."""
        if self._every is not None:
            return min(self._every, count)
        most = min(max(count // _PARTS, (count // _STEPS) ** 2, 1, unroll if type(unroll) is int else 1), _STEPS, count)
        return next((size for size in range(most, most // 2, -1) if count % size == 0), most)

    def _begun(self, count: int) -> tuple[Any, Any]:
        """What a loop carries for its line, and zero steps, once the line knows that it begins: it can't before."""
        loop = _call(self._line.begin, np.int64(count), np.True_)
        return loop, lax.index_in_dim(loop, 1, keepdims=False)

    def _shown(self, loop: Any, done: Any) -> Any:
        """What a loop carries for its line, which has been drawn if that was due."""
        return lax.cond(lax.ge(done, _due(loop)), lambda: _call(self._line.show, loop, done), lambda: loop)


def _length(leaves: Sequence[Any], length: Any) -> int | None:
    """How many steps a scan has, if its arguments agree about that."""
    sizes = {aval_of(x).shape[:1] for x in leaves}
    if length is not None:
        sizes.add((int(length),) if isinstance(length, (int, np.integer)) else ())
    return sizes.pop()[0] if len(sizes) == 1 and () not in sizes else None


def _is_bound(bound: Any) -> bool:
    """Whether this is a number that a loop may count from or to."""
    aval = aval_of(bound)
    return not aval.shape and dtypes.kind(aval.dtype) in "iuf"


def _is_flag(going: Any) -> bool:
    """Whether a condition may return this."""
    leaves = flatten(going)[0]
    return leaves == [going] and aval_of(going).dtype == np.bool_ and not aval_of(going).shape


def _whole_number(bound: Any) -> int | None:
    """The value of a bound, if it is known and a whole number."""
    if not is_concrete(bound) or aval_of(bound).shape or not float(bound).is_integer():
        return None
    return int(bound)


def _flag(going: Any) -> Any:
    return lax.convert_element_type(going, np.bool_)


class _Method:
    """A method of a line as what a program calls with arrays of the host, without more ado: in 8 µs instead of 20."""

    __slots__ = ("_method",)

    def __init__(self, method: Callable[..., np.ndarray]) -> None:
        self._method = method

    def __corejax_key__(self) -> tuple[object, ...]:
        return (self._method,)

    def __repr__(self) -> str:
        return f"progress: {self._method.__name__}"

    def __call__(self, operands: Sequence[np.ndarray], avals: Sequence[ShapedArray], results: Sequence[ShapedArray],
                 where: str | None) -> list[np.ndarray]:
        return [self._method(*operands)]


def _call(method: Callable[..., np.ndarray], *operands: Any) -> Any:
    """What a loop carries for its line, from the line."""
    return io_callback_p.primitive.bind(*operands, call=_Method(method), results=(_LOOP,), ordered=False)[0]


def _due(loop: Any) -> Any:
    """After how many steps the line is due."""
    return lax.index_in_dim(loop, 0, keepdims=False)


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
