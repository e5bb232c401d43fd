"""`checkpoint_name`: a name for a value, by which policies of `checkpoint` choose what is saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from corejax.core import ShapedArray, flatten, here, namer, values
from corejax.errors import CorejaxTypeError, kind_of
from corejax.plugin import Sample, define, hookimpl

__all__ = ["checkpoint_name"]

Tree = TypeVar("Tree")


class CheckpointName:
    """`checkpoint_name(x, name)`: x, an array or a pytree of arrays, with a name for policies of `checkpoint`.

    Those of `corejax.checkpoint_policies` go by names.

    >>> import corejax as cj
    >>> cj.ad_checkpoint.checkpoint_name({"a": 1.0}, "start")
    {'a': Array(1., dtype=float64, weak_type=True)}
    """

    name = "checkpoint_name"
    structural = True
    cheap = True

    def function(self, bind: Callable[..., Any]) -> Any:
        def checkpoint_name(x: Tree, name: str) -> Tree:
            if not isinstance(name, str):
                raise CorejaxTypeError("checkpoint_name: the name must be a string", where=here(), wanted="a string",
                                       got=f"{kind_of(name)}: {name!r:.60}", todo="checkpoint_name(x, 'attention')")
            leaves, tree = flatten(x)
            named: Tree = tree.unflatten(
                [bind(leaf, name=name) for leaf in values(leaves, "checkpoint_name", namer("x", x))])
            return named
        return checkpoint_name

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


checkpoint_name: Any = define(CheckpointName())
_named = checkpoint_name.primitive.bind
