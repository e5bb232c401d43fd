"""`platform_dependent`: one of several programs, chosen by the platform that it is lowered for.

Each rule transforms all branches, as those of a conditional; only the lowering chooses. So one traced program serves
every platform, and a branch that can't be lowered for some platform does no harm there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Atom,
    JaxprEqn,
    ShapedArray,
    Var,
    aval_of,
    context,
    flatten,
    here,
    namer,
    platform_of,
    stage,
    stage_function,
    values,
)
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import Sample, carrying, define, hookimpl
from corejax_control_flow._branch_saving import saving
from corejax_control_flow._branches import (
    Branches,
    backward,
    batched,
    check_agreement,
    evaluated,
    forward,
    joined,
    lifted,
    out_avals_of,
    settled,
    shorter,
    split,
)
from corejax_control_flow._types import all_fit, all_match, text_of
from corejax_control_flow.conditional import Result

__all__ = ["platform_dependent"]

Platforms = tuple[tuple[str, ...] | None, ...]  # of each branch: the names of platforms, or None for all others


class PlatformDependent:
    """`platform_dependent(*operands, default=None, cpu=..., ...)`: the function for the platform, of these arguments.

    A keyword is the name of a platform, such as `cpu`, `cuda`, `rocm` or `tpu`; `default` is for all others. In a
    program that is traced, all functions are, and must return the same types; it is lowered with one of them, or, if
    it is exported, with one for each platform. Otherwise the function for the platform of the arguments is called.

    >>> lax.platform_dependent(2.0, cpu=lambda x: x + 1.0, default=lambda x: x - 1.0)
    Array(3., dtype=float64, weak_type=True)
    """

    name = "platform_dependent"
    structural = True
    tracks_varying = True
    multiple_results = True
    symbolic_zeros = True

    def function(self, bind: Any) -> Any:
        def platform_dependent(*operands: Any, default: Callable[..., Result] | None = None,
                               **per_platform: Callable[..., Result]) -> Result:
            functions, platforms = _by_platform(default, per_platform)
            leaves, in_tree = flatten(operands)
            leaves = values(leaves, self.name, namer("operands", operands))
            if not context.trace.is_staging:
                function = functions[_chosen(platform_of(leaves), platforms)]
                return function(*in_tree.unflatten(leaves))  # type: ignore[no-any-return]
            names = ["default" if row is None else row[0] for row in platforms]
            avals = [aval_of(x) for x in leaves]
            staged = [stage_function(function, avals, in_tree, f"{self.name}: {name}")
                      for name, function in zip(names, functions, strict=True)]
            check_agreement(self.name, names, staged)
            branches, consts = joined([one.closed for one in staged])
            return staged[0].out_tree.unflatten(_bind(branches, [*consts, *leaves], platforms))  # type: ignore[no-any-return]
        return platform_dependent

    @hookimpl
    def evaluate(self, args: Any, *, branches: Branches, platforms: Platforms) -> list[Any]:
        _check([aval_of(x) for x in args], branches, platforms)
        return evaluated(branches, _chosen(platform_of(args), platforms), args)

    @hookimpl
    def abstract_eval(self, avals: Any, *, branches: Branches, platforms: Platforms) -> list[ShapedArray]:
        _check(avals, branches, platforms)
        return out_avals_of(branches)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, branches: Branches, platforms: Platforms) -> Any:
        return carrying.jvp(primals, tangents, partial(forward, branches), partial(_bind, platforms=platforms))

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, branches: Branches, platforms: Platforms) -> Any:
        return carrying.transpose(cotangents, args, partial(backward, branches), partial(_bind, platforms=platforms))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, branches: Branches, platforms: Platforms) -> Any:
        mapped, out_dims = batched(branches, axis.size, axis.name, tuple(dims))
        return _bind(mapped, args, platforms), out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, branches: Branches, platforms: Platforms) -> Any:
        taken = branches[_chosen(ctx.platform, platforms)]
        return ctx.call(taken, args, taken.name or self.name)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        return carrying.divide(eqn, split(eqn.params["branches"], tuple(unknown_in)), partial(_remade, eqn))

    @hookimpl
    def recompute(self, eqn: Any, unknown_in: Any, saved_by: carrying.Policy) -> Any:
        found = saving(eqn.params["branches"], tuple(unknown_in), saved_by)
        return carrying.recompute(eqn, found, unknown_in, partial(_remade, eqn))

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        return carrying.shorten(eqn, used_out, shorter(eqn.params["branches"], tuple(used_out)), partial(_remade, eqn))

    @hookimpl
    def effects(self, avals: Any, *, branches: Branches) -> frozenset[Any]:
        return carrying.effects_of(branches)

    @hookimpl
    def carry(self, lift: Any, args: Any, *, branches: Branches, platforms: Platforms) -> Any:
        new, out_forms = lifted(branches, lift, lift.forms(args))
        return lift.results(_bind(new, lift.parts(args), platforms), out_forms)

    def widened(self, axes: Sequence[Any], *, branches: Branches, platforms: Platforms) -> dict[str, Any]:
        """The branches for operands that vary along these axes of a mesh."""
        return {"branches": settled(branches, axes)}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(platforms: Platforms, args: list[Any], *funs: Any, **more: Any) -> Sample:
            avals = [aval_of(x) for x in args]
            branches = tuple([stage(fun, avals, f"branch_{i}").jaxpr for i, fun in enumerate(funs)])
            return Sample(args, {"branches": branches, "platforms": platforms}, **more)

        x, y, n = rng.standard_normal(3), rng.standard_normal(3), np.arange(3, dtype=np.int32)
        # the same function twice, so that a test on any platform knows the results
        yield sample((("cpu",), None), [x, y], *[lambda x, y: [lax.mul(x, lax.sin(y)), lax.cos(x)]] * 2,
                     results=[x * np.sin(y), np.cos(x)])
        yield sample((("cpu", "cuda"), None), [x, n], lambda x, n: [lax.mul(2.0, x), lax.add(n, n)],
                     lambda x, n: [lax.add(x, x), lax.mul(n, np.int32(2))], results=[2.0 * x, 2 * n])
        yield sample((None,), [x], lambda x: [lax.exp(x)], results=[np.exp(x)])
        yield sample((("cpu",), None), [x], lambda x: [x], lambda x: [x[0]], error=TypeError)


platform_dependent: Any = define(PlatformDependent())


def _bind(branches: Branches, operands: Sequence[Any], platforms: Platforms) -> list[Any]:
    branches = settled(branches, [aval_of(x).varying for x in operands])
    return platform_dependent.primitive.bind(*operands, branches=branches, platforms=platforms)  # type: ignore[no-any-return]


def _remade(eqn: JaxprEqn, branches: Branches, invars: Sequence[Atom], outvars: Sequence[Var]) -> JaxprEqn:
    return eqn.replace(invars=invars, outvars=outvars, params={**eqn.params, "branches": branches},
                       effects=carrying.effects_of(branches))


def _chosen(platform: str, platforms: Platforms) -> int:
    """Which branch is for this platform."""
    for i, names in enumerate(platforms):
        if names is not None and platform in names:
            return i
    if None in platforms:
        return platforms.index(None)
    given = ", ".join([name for names in platforms for name in names or ()])
    raise CorejaxNotImplementedError(
        f"platform_dependent: there is no function for the platform {platform}", primitive="platform_dependent",
        got=f"functions for {given}" if given else "no functions", wanted=f"{platform}=, or default=", where=here(),
        todo="pass default=, a function for all platforms that aren't named")


def _by_platform(default: Any, per_platform: Mapping[str, Any]) -> tuple[list[Any], Platforms]:
    """The functions, each once, and the platforms that each is for."""
    functions: list[Any] = []
    names: list[tuple[str, ...]] = []
    for name, function in (*per_platform.items(), *([] if default is None else [("default", default)])):
        if name == "gpu":
            raise CorejaxValueError("platform_dependent: gpu is not the name of a platform", got="gpu=", where=here(),
                                    wanted="'cuda' or 'rocm'", todo="say which; or give one function as both")
        if not callable(function):
            raise CorejaxTypeError(f"platform_dependent: {name} must be a function", wanted="a callable", where=here(),
                                   got=f"{kind_of(function)}: {function!r:.80}",
                                   todo=f"wrap it: {name}=lambda *args: ...")
        if name != "default" and function in functions:
            at = functions.index(function)
            names[at] = (*names[at], name)
            continue
        functions.append(function)
        names.append((name,))
    if not functions:
        raise CorejaxValueError("platform_dependent: there are no functions", got="no keywords", where=here(),
                                wanted="a function for each platform, or default=",
                                todo="platform_dependent(x, cpu=f, default=g)")
    if default is None:
        return functions, tuple(names)
    return functions, (*names[:-1], None)


def _check(avals: Sequence[ShapedArray], branches: Branches, platforms: Platforms) -> None:
    """Raise if these aren't operands and branches that fit together."""
    if len(platforms) != len(branches) or not branches:
        raise _refused("each branch needs the names of its platforms", f"{len(branches)} and {len(platforms)}",
                       "as many of one as of the other, at least one")
    for branch in branches:
        if not all_fit(avals, branch.in_avals):
            raise _refused("the operands don't fit a branch", text_of(avals), text_of(branch.in_avals))
        if not all_match(branch.out_avals, branches[0].out_avals):
            raise _refused("the branches return different types", text_of(branch.out_avals),
                           text_of(branches[0].out_avals))


def _refused(problem: str, got: str, wanted: str) -> CorejaxTypeError:
    return CorejaxTypeError(f"platform_dependent: {problem}", primitive="platform_dependent", got=got, wanted=wanted,
                            where=here(), todo="pass the operands of the branches, which all have the same types")
