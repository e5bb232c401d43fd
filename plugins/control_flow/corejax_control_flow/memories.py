"""`to_memory`: a value moved to memory of another kind, in programs for devices that have several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from corejax.core import Array, ArrayLike, ShapedArray
from corejax.plugin import Sample, define, hookimpl

__all__ = ["to_memory"]


class ToMemory:
    """`to_memory(x, kind=...)`: x, in memory of that kind where a compiled program's device has several.

    On a CPU, and outside of programs, it is x where it is. The kinds are XLA's: "device", "pinned_host".

    >>> to_memory(2.0, kind="pinned_host").item()
    2.0
    """

    name = "to_memory"
    structural = True

    def function(self, bind: Callable[..., Any]) -> Any:
        def to_memory(x: ArrayLike, *, kind: str) -> Array:
            return bind(x, kind=kind)  # type: ignore[no-any-return]
        return to_memory

    @hookimpl
    def impl(self, args: Any) -> Any:
        return args[0]

    @hookimpl
    def abstract_eval(self, avals: Any, *, kind: str) -> ShapedArray:
        (x,) = avals
        return x  # type: ignore[no-any-return]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, kind: str) -> Any:
        return _moved(*primals, kind=kind), _moved(*tangents, kind=kind)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [cotangents]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, kind: str) -> Any:
        return _moved(*args, kind=kind), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, kind: str) -> Any:
        if ctx.platform == "cpu":
            return args[0]
        placed = {"has_side_effect": ctx.ir.BoolAttr.get(True),
                  "mhlo.frontend_attributes": ctx.attribute(f'{{_xla_buffer_placement = "{kind}"}}')}
        return ctx.op("stablehlo.custom_call", args,
                      {"call_target_name": ctx.ir.StringAttr.get("annotate_device_placement"), **placed},
                      [args[0].type])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for kind, x in (("pinned_host", rng.standard_normal((2, 3))), ("device", rng.standard_normal(()))):
            yield Sample([x], {"kind": kind}, results=x)


to_memory: Any = define(ToMemory())
_moved = to_memory.primitive.bind
