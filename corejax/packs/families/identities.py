"""The plugin of a primitive whose value is its operand: what there is to say about it is how it is differentiated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.base.avals import ShapedArray
from corejax.kernel.declarations import hookimpl
from corejax.kernel.primitive import Primitive


class Identity:
    """A subclass has a name, `jvp` and `transpose`, and samples.

    >>> from corejax.plugin import Sample, define, families, linear
    >>> class Marked(families.Identity):
    ...     name = "marked"
    ...     jvp = linear(0)
    ...     @hookimpl
    ...     def transpose(self, cotangents, args):
    ...         return [cotangents]
    >>> define(Marked())(2.0)
    Array(2., dtype=float64, weak_type=True)
    """

    structural = True
    operands = ("x",)

    def attached(self, primitive: Primitive) -> None:
        """Called with the primitive that was made from this plugin."""
        self._bind = primitive.bind

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return args[0]

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        (x,) = avals
        return x

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int]) -> Any:
        return self._bind(*args), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return args[0]
