"""`name`: a value with a name, by which policies of `checkpoint` choose what is saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, ShapedArray
from corejax.plugin import Sample, define, hookimpl

__all__ = ["name"]


class Name:
    """`name(x, name=...)`: x itself, which a policy of `checkpoint` may save by its name.

    >>> name(np.arange(3), name="steps").tolist()
    [0, 1, 2]
    """

    name = "name"
    structural = True
    cheap = True

    def function(self, bind: Callable[..., Any]) -> Any:
        def name(x: ArrayLike, *, name: str) -> Array:
            return bind(x, name=name)  # type: ignore[no-any-return]
        return name

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0]

    @hookimpl
    def abstract_eval(self, avals: Any, *, name: str) -> ShapedArray:
        (x,) = avals
        return x  # type: ignore[no-any-return]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, name: str) -> Any:
        return _named(*primals, name=name), tangents[0]  # the name is that of the value alone

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [cotangents]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, name: str) -> Any:
        return _named(*args, name=name), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any) -> Any:
        return args[0]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for i, x in enumerate([rng.standard_normal((2, 3)), rng.standard_normal(()), np.arange(3), np.ones((2, 0))]):
            yield Sample([x], {"name": f"value {i}"}, results=x)


name: Any = define(Name())
_named = name.primitive.bind
