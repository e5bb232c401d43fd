"""Functions with rules of their own for derivatives that read or write references, or keep them as residuals.

Their rules are Python functions, which run while what is around them is traced. Where derivatives are taken at once,
they get the references themselves, so whatever they do to these happens where they run: a bwd rule writes on the way
back. In a program that is only differentiated later there is nothing to write to by then, which is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corejax.core import ShapedArray, context, eval_jaxpr, here, tracing
from corejax.errors import CorejaxError, CorejaxNotImplementedError
from corejax.plugin import Zero, carrying
from corejax_references._cells import Cell, read, replace
from corejax_references._programs import pure, written

__all__ = ["call_with_rules", "pullback_with_references"]


def call_with_rules(primitive: Any, args: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """A call of a function with rules, which gets references."""
    call, jaxpr, trace = params["call"], params["jaxpr"], context.trace
    if trace.knows_values:
        return call.primal(args) if jaxpr is None else eval_jaxpr(jaxpr, (), *args)
    if jaxpr is not None and (trace.stages or trace.is_mapping):
        flags = written(jaxpr)
        values = [read(x) if isinstance(x, Cell) else x for x in args]
        outs = primitive.bind(*values, call=_Traced(call), jaxpr=pure(jaxpr, flags))
        targets = carrying.marked(args, flags)
        for ref, x in zip(targets, outs, strict=False):
            replace(ref, x)
        return [*outs[len(targets):]]
    if trace.is_transparent or not any([getattr(x, "_trace", None) is trace for x in args]):
        args = [trace.stand_ins.get(id(x), x) for x in args]
        assert trace.parent is not None  # as it doesn't know values
        with tracing(trace.parent):
            return primitive.bind(*args, **params)  # type: ignore[no-any-return]
    refs = {i: x for i, x in enumerate(args) if isinstance(x, Cell)}
    return primitive.bind(  # type: ignore[no-any-return]
        *[x for x in args if not isinstance(x, Cell)], call=_AtOnce(call, refs), jaxpr=None)


def pullback_with_references(primitive: Any, args: Sequence[Any], params: Mapping[str, Any]) -> list[Any]:
    """What waits for cotangents, with references among the residuals of a fwd rule: they are kept beside them."""
    pullback = params["pullback"]
    refs = {i: x for i, x in enumerate(args) if isinstance(x, Cell)}
    if max(refs) >= pullback.n_residuals:
        raise _unsupported(pullback.name, "that has rules for both modes")
    rest = [x for x in args if not isinstance(x, Cell)]
    return primitive.bind(*rest, **{**params, "pullback": _Pullback(pullback, refs, {})})  # type: ignore[no-any-return]


class _Wrapped:
    """What both kinds of calls have."""

    optimize_remat = False
    is_unlike = True
    __corejax_unique__ = True

    def __init__(self, call: Any) -> None:
        self.call, self.name, self.n_consts = call, call.name, call.n_consts
        self.has_jvp, self.has_vjp = call.has_jvp, call.has_vjp
        self.key = object()

    def __corejax_key__(self) -> Any:
        return self.key

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {hook} rule of {self.name}"

    @property
    def out_avals(self) -> Sequence[ShapedArray] | None:
        return self.call.out_avals  # type: ignore[no-any-return]

    def twin(self) -> Any:
        return self

    def names_of(self, flags: Sequence[bool]) -> list[str]:
        return []


class _AtOnce(_Wrapped):
    """A call whose arguments at some places are references, which aren't operands."""

    def __init__(self, call: Any, refs: Mapping[int, Cell]) -> None:
        super().__init__(call)
        self.refs = refs
        self.n_consts = call.n_consts - sum([i < call.n_consts for i in refs])

    def _all(self, items: Sequence[Any], at: Mapping[int, Any]) -> list[Any]:
        rest = iter(items)
        return [at[i] if i in at else next(rest) for i in range(len(items) + len(at))]

    def primal(self, args: Sequence[Any]) -> Any:
        return self.call.primal(self._all(args, self.refs))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        zeros = {i: Zero(ref.aval.inner_aval.tangent) for i, ref in self.refs.items()}
        return self.call.jvp(self._all(primals, self.refs), self._all(tangents, zeros))

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> Any:
        outs, residuals, pullback = self.call.fwd(self._all(primals, self.refs),
                                                  self._all(nonzero, dict.fromkeys(self.refs, False)))
        kept = {i: x for i, x in enumerate(residuals) if isinstance(x, Cell)}
        return outs, [x for x in residuals if not isinstance(x, Cell)], _Pullback(pullback, kept, self.refs)


class _Pullback:
    """A pullback that gets references among its residuals, and has no cotangents for those that were arguments."""

    __corejax_unique__ = True

    def __init__(self, pullback: Any, refs: Mapping[int, Cell], dropped: Mapping[int, Cell]) -> None:
        self.pullback, self.refs, self.dropped = pullback, refs, dropped
        self.call, self.name = pullback.call, pullback.name
        self.in_avals = self._kept(pullback.in_avals)
        self.out_avals = pullback.out_avals
        self.n_residuals = pullback.n_residuals - len(refs)
        self.key = object()

    def _kept(self, items: Sequence[Any]) -> list[Any]:
        return [x for i, x in enumerate(items) if i not in self.dropped]

    def __corejax_key__(self) -> Any:
        return self.key

    def __corejax_rule__(self, hook: str) -> str:
        return self.pullback.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        rest = iter(residuals)
        every = [self.refs[i] if i in self.refs else next(rest) for i in range(len(residuals) + len(self.refs))]
        return self._kept(self.pullback.bwd(every, cotangents))

    def backward_only(self) -> CorejaxError:
        return self.pullback.backward_only()  # type: ignore[no-any-return]


class _Traced(_Wrapped):
    """A call in a program, of what references hold. Its rules have no references to read or write."""

    def primal(self, args: Sequence[Any]) -> Any:
        raise _unsupported(self.name, "in a program that was traced before")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        raise _unsupported(self.name, "in a program that was traced before")

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> Any:
        raise _unsupported(self.name, "in a program that was traced before")


def _unsupported(name: str, where: str) -> CorejaxNotImplementedError:
    return CorejaxNotImplementedError(
        f"{name}: a function with rules of its own that uses references isn't differentiated {where}",
        got="a derivative of a jitted function, or of a loop or a branch in one, in which it is called", where=here(),
        wanted="a derivative that is taken where the function is called",
        todo=f"write jit(grad(f)) instead of grad(jit(f)), with {name} called by f itself; or let {name} take and "
             "return arrays")


