"""The rules derived from `decompose`, by transforming the composition of other primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from corejax.base.avals import Linear, ShapedArray, Zero, aval_of
from corejax.base.caches import BoundedCache
from corejax.base.errors import CorejaxNotImplementedError
from corejax.interpreters import batching, forward
from corejax.interpreters.composing import composition, once
from corejax.interpreters.partial_eval import mark_parts
from corejax.interpreters.reverse import say_whose, transpose_function
from corejax.interpreters.staging import stage, stage_closed
from corejax.kernel import checks
from corejax.kernel.context import context
from corejax.kernel.declarations import hookimpl
from corejax.kernel.factors import instantiate
from corejax.kernel.primitive import Avals, Primitive, Rule
from corejax.packs.fallbacks import Note

if TYPE_CHECKING:
    from corejax.interpreters.batching import Axis
    from corejax.xla.lowering.programs import Lowering

_DERIVED = Note("derived", "from decompose")
_MAPPED = Note("derived", "from decompose and jvp, both mapped")


def rules(primitive: Primitive, own_jvp: bool) -> dict[str, tuple[Rule, Note]]:
    """The rule for each hook that a primitive with `decompose` may leave out, with a note for `explain`."""
    return {
        "abstract_eval": (_abstract_eval(primitive), _DERIVED),
        "jvp": (_jvp(primitive), _DERIVED),
        "transpose": (_transpose(primitive), _DERIVED),
        "vmap": (_vmap_keeping_jvp(primitive), _MAPPED) if own_jvp else (_vmap(primitive), _DERIVED),
        "xla_translation": (_lowering(primitive), _DERIVED),
    }


def _avals(args: Sequence[object]) -> Avals:
    return tuple([x.aval if isinstance(x, Linear) else aval_of(x) for x in args])


def _whose(primitive: Primitive) -> str:
    return f"{primitive.name} ({primitive.origin})"


def _results(primitive: Primitive | _Mapped, outs: Sequence[object]) -> Any:
    return outs if primitive.multiple_results else outs[0]


def _abstract_eval(primitive: Primitive) -> Rule:
    def abstract_eval(avals: Sequence[ShapedArray], /, **params: Any) -> Any:
        staged = once(primitive, params, ("abstract_eval", *avals),
                      lambda: stage(composition(primitive, params), avals, primitive.name))
        return _results(primitive, staged.out_avals)
    return abstract_eval


def _jvp(primitive: Primitive) -> Rule:
    def jvp(primals: Sequence[object], tangents: Sequence[object], /, **params: Any) -> tuple[Any, Any]:
        trace = context.trace
        start = len(getattr(trace, "eqns", ()))
        outs, dots = once(primitive, params, ("jvp", trace, *_avals(primals)),
                          lambda: forward.jvp(composition(primitive, params), primals, tangents))
        mark_parts(trace, start, _whose(primitive))
        return _results(primitive, outs), _results(primitive, dots)
    return jvp


def _transpose(primitive: Primitive) -> Rule:
    def transpose(cts: Any, args: Sequence[Any], /, **params: Any) -> list[Any]:
        cts = cts if primitive.multiple_results else [cts]
        try:
            return once(primitive, params, ("transpose", *_avals(args)),  # type: ignore[no-any-return]
                        lambda: transpose_function(composition(primitive, params), args, cts))
        except CorejaxNotImplementedError as error:
            say_whose(error, _whose(primitive))
            raise
    return transpose


def _vmap(primitive: Primitive) -> Rule:
    def vmap(axis: Axis, args: Sequence[object], dims: Sequence[int | None], /, **params: Any) -> tuple[Any, Any]:
        trace = context.trace
        start = len(getattr(trace, "eqns", ()))
        outs, out_dims = once(
            primitive, params, ("vmap", trace, *_avals(args), *dims),
            lambda: batching.vmap(composition(primitive, params), axis.size, axis.name, args, dims))
        mark_parts(trace, start, _whose(primitive))
        return _results(primitive, outs), _results(primitive, out_dims)
    return vmap


class _Mapped:
    """A primitive with `decompose` and its own jvp, mapped along an axis: both are mapped, so the jvp isn't lost."""

    def __init__(self, primitive: Primitive, axis: Axis, dims: tuple[int | None, ...]) -> None:
        self.name = f"mapped_{primitive.name}"
        self.multiple_results = primitive.multiple_results
        self.structural, self.element_types = primitive.structural, primitive.element_types
        self.tracks_varying = primitive.tracks_varying
        self.symbolic_zeros = True
        self._primitive, self._axis, self._dims = primitive, axis, dims

    @hookimpl
    def decompose(self, args: Sequence[object], **params: Any) -> Any:
        return _results(self, self._map(composition(self._primitive, params), args, self._dims))

    @hookimpl
    def jvp(self, primals: Sequence[object], tangents: Sequence[object], **params: Any) -> tuple[Any, Any]:
        rule, count, zero_dots = self._primitive, len(primals), [False]
        outs_of: list[int] = []

        def fun(*slices: Any) -> list[Any]:
            given = iter(slices[count:])
            dots = [Zero(aval_of(x).tangent) if type(t) is Zero else next(given)
                    for x, t in zip(slices[:count], tangents, strict=True)]
            if not rule.symbolic_zeros:
                dots = [instantiate(t) for t in dots]
            out, out_dot = rule.jvp(slices[:count], dots, **params)
            outs, out_dots = (out, out_dot) if rule.multiple_results else ([out], [out_dot])
            out_dots = [instantiate(t) for t in out_dots]
            zero_dots[:] = [type(t) is Zero for t in out_dots]
            outs_of[:] = [len(outs)]
            return [*outs, *[t for t in out_dots if type(t) is not Zero]]

        nonzero = [(t, d) for t, d in zip(tangents, self._dims, strict=True) if type(t) is not Zero]
        mapped = self._map(fun, [*primals, *[t for t, _ in nonzero]], [*self._dims, *[d for _, d in nonzero]])
        outs, found = mapped[: outs_of[0]], iter(mapped[outs_of[0]:])
        dots = [Zero(aval_of(x).tangent) if zero else next(found) for x, zero in zip(outs, zero_dots, strict=True)]
        return _results(self, outs), _results(self, dots)

    def _map(self, fun: Rule, args: Sequence[object], dims: Sequence[int | None]) -> list[Any]:
        outs, out_dims = batching.vmap(fun, self._axis.size, self._axis.name, args, dims)
        return [batching.to_dim(x, d, 0, self._axis.size) for x, d in zip(outs, out_dims, strict=True)]


def _vmap_keeping_jvp(primitive: Primitive) -> Rule:
    variants: BoundedCache[Any, Any] = BoundedCache(64)

    def vmap(axis: Axis, args: Sequence[object], dims: Sequence[int | None], /, **params: Any) -> tuple[Any, Any]:
        key = axis, tuple(dims)
        mapped = variants.get(key) or variants.put(key, primitive.variant(_Mapped(primitive, *key)))
        outs = mapped.bind(*args, **params)
        return outs, ([0] * len(outs) if primitive.multiple_results else 0)
    return vmap


def _lowering(primitive: Primitive) -> Rule:
    def lowering(ctx: Lowering, args: Sequence[object], /, **params: Any) -> Any:
        def lowered() -> Any:
            jaxpr = stage_closed(composition(primitive, params), ctx.avals_in, primitive.name)
            checks.check_types(primitive, "decompose", jaxpr.out_avals, ctx.avals_out)
            return ctx.call(jaxpr, args)
        return _results(primitive, once(primitive, params, ("xla_translation", *ctx.avals_in), lowered))
    return lowering
