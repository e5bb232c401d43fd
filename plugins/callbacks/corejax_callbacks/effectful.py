"""`io_callback`: a Python function that does something, called once for each time that the program comes by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import ShapedArray, Sharding, flatten, here
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import (
    Effect,
    Sample,
    calls_users,
    define,
    hookimpl,
    not_differentiable,
    not_linear,
    public,
    shaping,
)
from corejax_callbacks._calling import Call, Callback, check_sharding, make_call, result_types
from corejax_callbacks._primitives import (
    CALLED,
    CALLED_IN_ORDER,
    Calls,
    one_by_one,
    see,
    see_only,
    seen,
    three,
    with_axis,
)

__all__ = ["CALLED", "CALLED_IN_ORDER", "effects_barrier", "io_callback", "io_callback_p"]

AT_TOP = ("effects_barrier",)
EXPERIMENTAL = ("io_callback",)

_NAME = "io_callback"


class IoCallback(Calls):
    """`io_callback(*operands, call, results, ordered)`: what `cj.experimental.io_callback` applies.

    >>> sample = next(io_callback_p.primitive.samples(np.random.default_rng(0)))
    >>> io_callback_p(*sample.args, **sample.params)
    [Array([0., 1., 2.], dtype=float64)]
    """

    name = _NAME

    jvp = not_differentiable("a Python function that does something has no derivative; pass it lax.stop_gradient(x), "
                             "or give the function around it a rule of its own with cj.custom_jvp")
    transpose = not_linear("a Python function that does something isn't linear")

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, call: Callback, results: tuple[ShapedArray, ...],
                      ordered: bool) -> list[ShapedArray]:
        return list(results)

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, call: Callback,
             results: tuple[ShapedArray, ...], ordered: bool) -> Any:
        if ordered:
            raise CorejaxNotImplementedError(
                "io_callback: nobody could tell for which element of a batch an ordered call comes first",
                primitive=_NAME, hook="effects", where=here(), got=f"a batch of {axis.size}",
                wanted="calls without an order, or one element after the other",
                todo="pass ordered=False; or loop over the elements with lax.map or lax.scan")
        args, each = one_by_one(axis, args, dims, call)
        outs = io_callback_p.primitive.bind(*args, call=each, results=with_axis(axis, results), ordered=ordered)
        return outs, [0] * len(results)

    @hookimpl
    def effects(self, avals: Sequence[ShapedArray], *, ordered: bool) -> frozenset[Effect]:
        return effects_of(ordered)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        tree, one = flatten(((0,), {}))[1], flatten(0)[1]
        for ordered in (False, True):
            x = np.arange(3.0)
            yield Sample([x], {"call": Call(_NAME, _three, tree, one, None),
                               "results": (ShapedArray((3,), "float64"),), "ordered": ordered}, results=[x],
                         happened=seen)
            yield Sample([x], {"call": Call(_NAME, see_only, tree, flatten(None)[1], 30.0), "results": (),
                               "ordered": ordered}, results=[], happened=seen)


def effects_of(ordered: bool) -> frozenset[Effect]:
    """The effects of a call that keeps its order, or doesn't."""
    return frozenset((CALLED_IN_ORDER if ordered else CALLED,))


def _three(x: Any) -> Any:
    return three(see(x))


io_callback_p: Any = define(IoCallback())


@public
@calls_users
def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Sharding | None = None,
                ordered: bool = False, timeout: float | None = None, **kwargs: Any) -> Any:
    """The result of a Python function that does something, also in compiled programs: `callback(*args, **kwargs)`.

    It is called once for each time that the program comes by, whether or not anybody uses its results: in branches
    that are taken, and in each step of a loop. What it gets and returns is as for `cj.pure_callback`; `None` for
    `result_shape_dtypes` says that it returns nothing. It has no derivative.

    - `ordered`: the calls come in the order of the program, also after and before those of other programs. `cj.vmap`
      of one is an error, and so is a program for several devices. Under `cj.vmap`, one that isn't ordered is called
      for each element.
    - `timeout`: after so many seconds the call is abandoned, with an error.
    - `sharding`: a sharding with one device, from which JAX would make the call. Here it makes no difference.

    >>> import corejax as cj
    >>> seen = []
    >>> f = cj.jit(lambda x: (cj.experimental.io_callback(seen.append, None, x, ordered=True), x * 2)[1])
    >>> float(f(1.0)), float(f(3.0)), seen
    (2.0, 6.0, [Array(1., dtype=float64), Array(3., dtype=float64)])
    """
    ordered = shaping.as_flag(_NAME, "ordered", ordered)
    check_sharding(_NAME, sharding)
    results, tree = result_types(_NAME, result_shape_dtypes)
    call, data = make_call(_NAME, callback, args, kwargs, tree, timeout)
    return tree.unflatten(io_callback_p.primitive.bind(*data, call=call, results=results, ordered=ordered))


@public
def effects_barrier() -> None:
    """Wait until all calls of users' functions have been made that programs of this thread make.

    A call of a program with such functions returns when they have been called, so this returns at once. It is there for
    programs that are written for JAX.

    >>> effects_barrier()
    """
