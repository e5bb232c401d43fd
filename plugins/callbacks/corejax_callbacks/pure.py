"""`pure_callback`: a Python function as part of a program, which may be called more than once or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import ShapedArray, Sharding, flatten, here
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError
from corejax.plugin import Sample, calls_users, define, hookimpl, not_differentiable, not_linear, public, roles
from corejax_callbacks._calling import Call, Callback, check_sharding, make_call, result_types
from corejax_callbacks._primitives import Calls, batches_first, one_by_one, three, with_axis

__all__ = ["pure_callback", "pure_callback_p"]

AT_TOP = ("pure_callback",)

_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None)
_NAME = "pure_callback"

#: The laws that don't hold for a function of several arrays, where not each of them has the axes of a map.
_MAPS = {method: dict.fromkeys(("nested maps are nested loops", "maps of many rows and of more axes are loops"),
                               "the sample's function takes arrays of one axis, and others in front")
         for method in ("broadcast_all", "expand_dims", "legacy_vectorized")}


class PureCallback(Calls):
    """`pure_callback(*operands, call, results, vmap_method)`: what `cj.pure_callback` applies.

    >>> sample = next(pure_callback_p.primitive.samples(np.random.default_rng(0)))
    >>> len(pure_callback_p(*sample.args, **sample.params))
    1
    """

    name = _NAME

    jvp = not_differentiable("nobody knows the derivative of a Python function; give the function around it a rule of "
                             "its own with cj.custom_jvp or cj.custom_vjp, which may call other callbacks")
    transpose = not_linear("nobody knows whether a Python function is linear")

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, call: Callback, results: tuple[ShapedArray, ...],
                      vmap_method: str | None) -> list[ShapedArray]:
        return list(results)

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None], *, call: Callback,
             results: tuple[ShapedArray, ...], vmap_method: str | None) -> Any:
        if vmap_method is None:
            raise CorejaxNotImplementedError(
                f"{_NAME}: how {call!r} takes a batch isn't said", got="vmap_method=None", primitive=_NAME,
                wanted=f"one of {', '.join([repr(each) for each in _METHODS[:4]])}", where=here(),
                todo="pass vmap_method='sequential' to call it for each element, or 'broadcast_all' if it takes arrays "
                     "with further axes in front")
        if vmap_method.startswith("sequential"):
            args, call = one_by_one(axis, args, dims, call)
        else:
            args = batches_first(axis, args, dims)
        if vmap_method in ("expand_dims", "broadcast_all"):
            size = axis.size if vmap_method == "broadcast_all" else 1
            args = [x if dim is not None else roles.expand(x, size, 0) for x, dim in zip(args, dims, strict=True)]
        outs = pure_callback_p.primitive.bind(*args, call=call, results=with_axis(axis, results),
                                              vmap_method=vmap_method)
        return outs, [0] * len(results)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        x, y = rng.standard_normal(3), rng.standard_normal(3)
        aval, pair = ShapedArray((3,), "float64"), flatten((0, 0))[1]
        one, several = flatten(((0,), {}))[1], flatten(((0, 0), {}))[1]
        tree = flatten(0)[1]
        double = Call(_NAME, _double, one, tree, None)
        for method in _METHODS[:2]:
            yield Sample([x], {"call": double, "results": (aval,), "vmap_method": method}, results=[x + x])
        for method in _METHODS[2:5]:
            yield Sample([x, y], {"call": Call(_NAME, _sum_and_product, several, pair, 30.0), "results": (aval, aval),
                                  "vmap_method": method}, results=[x + y, x * y], exempt=_MAPS.get(method))


def _double(x: Any) -> Any:
    return three(x) * 2


def _sum_and_product(x: Any, y: Any) -> Any:
    return three(x, True) + three(y, True), three(x, True) * three(y, True)


pure_callback_p: Any = define(PureCallback())


@public
@calls_users
def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Sharding | None = None,
                  vmap_method: str | None = None, timeout: float | None = None, **kwargs: Any) -> Any:
    """The result of a Python function, also in compiled programs: `callback(*args, **kwargs)`.

    The function gets arrays in memory of the host, and returns arrays of the types that `result_shape_dtypes` says: a
    pytree of objects with `shape` and `dtype`. It must be pure: a program may call it more than once, or not at all if
    nobody uses its results. It has no derivative; `cj.custom_jvp` gives one to the function around it.

    - `vmap_method` says how it takes a batch. `"sequential"` calls it for each element, as does
      `"sequential_unrolled"`; `"broadcast_all"` calls it once, with a new first axis for all arguments;
      `"expand_dims"` too, but those that aren't mapped have it of size 1, and with `"legacy_vectorized"` they don't
      have it. Without it, `cj.vmap` is an error.
    - `timeout`: after so many seconds the call is abandoned, with an error.
    - `sharding`: a sharding with one device, from which JAX would make the call. Here it makes no difference.

    >>> import corejax as cj
    >>> def log_gamma(x):
    ...     return np.vectorize(math.lgamma)(x)
    >>> import math
    >>> f = cj.jit(lambda x: cj.pure_callback(log_gamma, x, x, vmap_method="broadcast_all") + 1.0)
    >>> f(np.array([1.0, 5.0]))
    Array([1.        , 4.17805383], dtype=float64)
    """
    if vmap_method not in _METHODS:
        raise CorejaxValueError(f"{_NAME}: there is no such vmap_method", got=repr(vmap_method), where=here(),
                                wanted=", ".join(map(repr, _METHODS)), todo="choose one of these")
    check_sharding(_NAME, sharding)
    results, tree = result_types(_NAME, result_shape_dtypes)
    call, data = make_call(_NAME, callback, args, kwargs, tree, timeout)
    return tree.unflatten(pure_callback_p.primitive.bind(*data, call=call, results=results, vmap_method=vmap_method))
