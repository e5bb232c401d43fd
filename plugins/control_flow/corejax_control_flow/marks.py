"""`stage` and `dce_sink`: they compute nothing, and say something about a program that is being traced."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, ShapedArray, flatten, namer, values
from corejax.plugin import Effect, Sample, define, families, hookimpl, linear, public, shaping

__all__ = ["KEPT", "dce_sink", "stage", "stage_p", "stage_value"]


class StageValue(families.Identity):
    """`stage_value(x)`: x. Under `jit`, it is a value of the program.

    >>> stage_value(2.0)
    Array(2., dtype=float64, weak_type=True)
    """

    name = "stage_value"

    jvp = linear(0)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [cotangents]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape in ((3,), (), (2, 0)):
            yield Sample([rng.standard_normal(shape)])
        yield Sample([np.arange(3)])


stage_value: Any = define(StageValue())

#: What jax.lax calls the primitive.
stage_p = stage_value


@public
def stage(x: ArrayLike, /) -> Array:
    """x, as a value of the program that is being traced; if there is none, as an array.

    >>> stage(2.0)
    Array(2., dtype=float64, weak_type=True)
    """
    return stage_value.primitive.bind(*values([x], "stage", lambda _: "x"))  # type: ignore[no-any-return]


#: The effect of `dce_sink`: the equation is kept, and nothing happens when the program runs.
KEPT = Effect("kept")


class DceSink:
    """`dce_sink(val, *, prevent_mlir_dce=False)`: keep what computes the arrays in a pytree, though nothing uses them.

    It keeps the equations of the traced program, which is where unused ones are removed. The compiler may still remove
    the operations, unless `prevent_mlir_dce` says that it mustn't. A program with a sink has an effect.

    >>> dce_sink({"x": 1.0})
    """

    name = "dce_sink"
    structural = True
    operands = ("val",)
    multiple_results = True
    symbolic_zeros = True

    def function(self, bind: Any) -> Any:
        def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
            prevented = shaping.as_flag("dce_sink", "prevent_mlir_dce", prevent_mlir_dce)
            for x in values(flatten(val)[0], "dce_sink", namer("val", val)):
                bind(x, prevent_mlir_dce=prevented)
        return dce_sink

    @hookimpl
    def evaluate(self, args: Any, *, prevent_mlir_dce: bool) -> list[Any]:
        return []

    @hookimpl
    def abstract_eval(self, avals: Any, *, prevent_mlir_dce: bool) -> list[ShapedArray]:
        (_,) = avals
        return []

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, prevent_mlir_dce: bool) -> Any:
        return dce_sink.primitive.bind(*primals, prevent_mlir_dce=prevent_mlir_dce), []

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        return [None]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, prevent_mlir_dce: bool) -> Any:
        return dce_sink.primitive.bind(*args, prevent_mlir_dce=prevent_mlir_dce), []

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, prevent_mlir_dce: bool) -> Any:
        if prevent_mlir_dce:
            ctx.custom_call("dce_sink", args, out_types=[], has_side_effect=True)
        return []

    @hookimpl
    def effects(self, avals: Any) -> frozenset[Effect]:
        return frozenset((KEPT,))

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        exempt = {"effects are declared": "nothing happens that could be seen"}
        yield Sample([rng.standard_normal(3)], {"prevent_mlir_dce": False}, results=[], exempt=exempt)
        yield Sample([np.arange(2)], {"prevent_mlir_dce": True}, results=[], exempt=exempt)


dce_sink: Any = define(DceSink())
