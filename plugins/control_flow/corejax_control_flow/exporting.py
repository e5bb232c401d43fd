"""`exported_call`: a call of a program that only has types and a lowering."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Jaxpr, ShapedArray, here, stage
from corejax.errors import CorejaxTypeError, kind_of
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, roles
from corejax_control_flow._types import all_match, text_of

__all__ = ["exported_call"]


class ExportedCall:
    """`exported_call(*args, program=...)`: call a program that was made elsewhere.

    `program` has a `name`, `in_avals`, `out_avals`, a `__corejax_key__`, and `lower(ctx, args)`, which adds the call to
    a module and returns its results.

    >>> from corejax import export, jit
    >>> program = export.export(jit(lambda x: x + 1.0))(2.0)
    >>> program.call(2.0)
    Array(3., dtype=float64, weak_type=True)
    """

    name = "exported_call"
    element_types = ("*",)
    operands = ("*operands",)
    multiple_results = True

    jvp = not_differentiable("an exported program has only the derivatives that were exported with it, for reverse "
                             "mode: export it with vjp_order=1 or more")
    transpose = not_linear("an exported program is not known to be linear")

    @hookimpl
    def abstract_eval(self, avals: Any, *, program: Any) -> Sequence[ShapedArray]:
        wanted = getattr(program, "in_avals", None)
        if wanted is None:
            raise CorejaxTypeError("exported_call: the param program must be an exported program",
                                   primitive="exported_call",
                                   got=f"{kind_of(program)}: {program!r:.60}", wanted="one made by cj.export",
                                   where=here(), todo="call the method `call` of what cj.export.deserialize returns")
        if not all_match(avals, wanted):
            raise CorejaxTypeError("exported_call: the operands don't fit the program", primitive="exported_call",
                                   got=text_of(avals, "no operands"), where=here(),
                                   wanted=text_of(wanted, "no operands"),
                                   todo="pass arrays of the types that it was exported for")
        return program.out_avals  # type: ignore[no-any-return]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, program: Any) -> Any:
        # The program takes one slice at a time, and nothing more is known about it.
        mapped = [roles.move_axis(x, d, 0) if d else x for x, d in zip(args, dims, strict=True) if d is not None]

        def one(slices: Sequence[Any]) -> Any:
            rest = iter(slices)
            return exported_call.primitive.bind(
                *[x if d is None else next(rest) for x, d in zip(args, dims, strict=True)], program=program)

        outs = roles.sequential_map(one, mapped)
        return outs, [0] * len(outs)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, program: Any) -> Any:
        return program.lower(ctx, args)

    @hookimpl
    def pretty(self, *, program: Any) -> Mapping[str, Any]:
        return {"name": program.name, "program": program}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        x, y, count = rng.standard_normal(3), rng.standard_normal(3), np.arange(3, dtype=np.int32)
        one = {"program": _Program(stage(lambda x, y: [lax.mul(x, y), lax.sin(x)], [ShapedArray((3,), "float64")] * 2,
                                         "f").jaxpr)}
        yield Sample([x, y], one, results=[x * y, np.sin(x)])
        yield Sample([count], {"program": _Program(stage(
            lambda n: [lax.add(n, n)], [ShapedArray((3,), "int32")], "double").jaxpr)}, results=[count + count])
        yield Sample([x], one, error=TypeError)


class _Program:
    """A jaxpr as a program that only has types and a lowering, for samples."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.jaxpr, self.name = jaxpr, jaxpr.name
        self.in_avals, self.out_avals = jaxpr.in_avals, jaxpr.out_avals

    def __corejax_key__(self) -> Any:
        return self.jaxpr

    def lower(self, ctx: Any, args: Any) -> Any:
        return ctx.call(self.jaxpr, args, self.name)


exported_call: Any = define(ExportedCall())
