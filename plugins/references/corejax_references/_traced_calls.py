"""Calls in programs of functions with rules that use references: of what these hold, and of their trails."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

from corejax.core import Jaxpr, ShapedArray, Var, aval_of, eval_jaxpr, here, rebound
from corejax.errors import CorejaxError, CorejaxNotImplementedError
from corejax.plugin import Zero, carrying
from corejax_references._cells import Cell, read
from corejax_references._primitives import trail_type
from corejax_references._programs import pure, written
from corejax_references._trails import NOWHERE, from_trail, to_trail

__all__ = ["CallWithReferences", "TracedCall", "unsupported"]


class CallWithReferences:
    """A call of a function with rules, some of whose arguments are references."""

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


class TracedCall(CallWithReferences):
    """A call in a program, of what references hold and, after all arguments, of their trails.

    Its results are first what the references hold then, then the trails, then the function's results. The rules get
    references of their own, which take the place of those that they close over while they run.
    """

    only_tangents = False
    """Whether the results of the jvp rule are known, so that what it writes would be lost."""

    def __init__(self, call: Any, args: Sequence[Any], jaxpr: Jaxpr) -> None:
        super().__init__(call)
        self.avals = {i: x.aval for i, x in enumerate(args) if isinstance(x, Cell)}
        self.closed_over = [weakref.ref(x) for x in args[:call.n_consts] if isinstance(x, Cell)]
        flags = tuple([i in self.avals for i in range(len(args))])
        self.writes = carrying.marked(written(jaxpr), flags)
        program = pure(jaxpr, flags)
        trails = [Var(trail_type(aval.inner_aval) or NOWHERE) for aval in self.avals.values()]
        n = len(trails)
        self.program = program.replace(invars=[*program.invars, *trails],
                                       outvars=[*program.outvars[:n], *trails, *program.outvars[n:]])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        if not self._matters(carrying.nonzero(tangents)):
            outs = eval_jaxpr(self.program, (), *primals)
            return outs, self.with_trails([Zero(x.aval.tangent) for x in outs], tangents[-len(self.avals):])
        args, refs = self.with_references(primals)
        dots = [Zero(self.avals[i].inner_aval.tangent) if i in self.avals else t
                for i, t in enumerate(tangents[:len(args)])]
        outs, out_dots = self.running(lambda: self.call.jvp(args, dots), refs)
        held = [read(ref) for ref in refs]
        if self.only_tangents and any([x is not primals[i] for i, x in zip(self.avals, held, strict=True)]):
            raise CorejaxNotImplementedError(
                f"the jvp rule of {self.name} writes to a reference", where=here(),
                got="a function with rules for both modes, in a program that is differentiated in forward mode",
                wanted="a jvp rule that only reads references",
                todo=f"take the derivative at once, as in jit(lambda x, t: jvp(f, (x,), (t,))); or give {self.name} "
                     "rules for one mode")
        return ([*held, *primals[len(args):], *outs],
                [*[Zero(x.aval.tangent) for x in held], *tangents[len(args):], *out_dots])

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> Any:
        if not self._matters(nonzero):
            outs = eval_jaxpr(self.program, (), *primals)
            return outs, [], TracedPullback(self, None, [], {}, primals, outs)
        args, refs = self.with_references(primals)
        outs, residuals, pullback = self.running(lambda: self.call.fwd(args, nonzero[:len(args)]), refs)
        number = {id(ref): k for k, ref in enumerate(refs)}
        places = {i: number.get(id(x), -1) for i, x in enumerate(residuals) if isinstance(x, Cell)}
        if -1 in places.values():
            raise unsupported(self.name, "its fwd rule made it, and keeps it")
        outs = [*[read(ref) for ref in refs], *primals[len(args):], *outs]
        rest = [x for x in residuals if not isinstance(x, Cell)]
        return outs, rest, TracedPullback(self, pullback, refs, places, primals, outs)

    def _matters(self, nonzero: Sequence[bool]) -> bool:
        """Whether any argument has a tangent, and not just trails. Then references mustn't, and all trails must."""
        n = len(nonzero) - len(self.avals)
        if True not in nonzero[:n]:
            return False
        if True in [nonzero[i] for i in self.avals]:
            raise unsupported(self.name, "what it holds has a derivative")
        if False in nonzero[n:]:
            raise self.without_trail()
        return True

    def without_trail(self) -> CorejaxError:
        return unsupported(self.name, "it is gone by then, is shared by a batch, or holds no numbers")

    def with_references(self, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The arguments, with references to these values, and these references."""
        args = [self.avals[i].holding(x) if i in self.avals else x
                for i, x in enumerate(values[:len(values) - len(self.avals)])]
        return args, [args[i] for i in self.avals]

    def running(self, rule: Callable[[], Any], refs: Sequence[Any], earlier: Sequence[Any] = ()) -> Any:
        """What a rule returns that uses these references, also in the place of those that an earlier rule got."""
        originals = [ref() for ref in self.closed_over]
        return rebound(rule, [*originals, *earlier], [*refs[:len(originals)], *refs[:len(earlier)]])

    def with_trails(self, outs: Sequence[Any], trails: Sequence[Any]) -> list[Any]:
        """The results, or what belongs to them, with these in the place of the trails."""
        n = len(self.avals)
        return [*outs[:n], *trails, *outs[2 * n:]]


class TracedPullback:
    """The pullback of a call in a program: what references hold comes and goes as cotangents of their trails.

    `refs` are those that the fwd rule got: parts of them may be among what isn't an array of its residuals. `places`
    says which residuals are references, and which ones. Without a pullback of the function's, there is nothing on the
    way back but the trails; so it is where no other result has a cotangent.
    """

    __corejax_unique__ = True

    def __init__(self, call: TracedCall, pullback: Any, refs: Sequence[Any], places: Mapping[int, int],
                 primals: Sequence[Any], outs: Sequence[Any]) -> None:
        self.call, self.pullback, self.refs, self.places, self.name = copy(call), pullback, refs, places, call.name
        self.call.only_tangents = True
        self.in_avals = [aval_of(x).tangent for x in primals]
        self.out_avals = tuple([aval_of(x) for x in outs])
        self.n_residuals = 0 if pullback is None else pullback.n_residuals - len(places)
        self.key = object()

    def __corejax_key__(self) -> Any:
        return self.key

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {'bwd' if hook == 'transpose' else hook} rule of {self.name}"

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        call, n = self.call, len(self.call.avals)
        n_args = len(self.in_avals) - n
        back: list[Any] = [*map(Zero, self.in_avals)]
        trails = cotangents[n:2 * n]
        if self.pullback is None or True not in carrying.nonzero(cotangents[2 * n:]):  # the result isn't used
            return [*back[:n_args], *trails]
        if False in carrying.nonzero(trails):
            raise call.without_trail()
        refs = [aval.holding(from_trail(ct, aval.inner_aval))
                for aval, ct in zip(call.avals.values(), trails, strict=True)]
        rest = iter(residuals)
        every = [refs[self.places[i]] if i in self.places else next(rest) for i in range(self.pullback.n_residuals)]
        found = call.running(lambda: self.pullback.bwd(every, cotangents[2 * n:]), refs, self.refs)
        for i, ct in enumerate(found):
            if i not in call.avals:
                back[i] = ct
        return [*back[:n_args], *[to_trail(read(ref)) for ref in refs]]

    def backward_only(self) -> CorejaxError:
        return self.pullback.backward_only()  # type: ignore[no-any-return]


def unsupported(name: str, why: str) -> CorejaxNotImplementedError:
    return CorejaxNotImplementedError(
        f"the rules of {name} can't use this reference: {why}", where=here(),
        got=f"a derivative of a program that calls {name}, taken after it was traced",
        wanted="references to numbers from outside of the program, one for each element where it is mapped",
        todo="make the reference outside, and pass it or close over it; under vmap, pass one with an axis for the "
             f"batch; or let {name} take and return arrays")
