"""`closure_convert`: a function with what it closes over as arguments, so that these can have derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax.core import Tracer, aval_of, check_callable, dtypes, flatten, here, name_of, namer, stage_function, values
from corejax.errors import CorejaxTypeError
from corejax.plugin import abstract_leaves, carrying, public, structures

__all__ = ["closure_convert"]

#: `cj.closure_convert`.
AT_TOP = ("closure_convert",)


@public
def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The function with more arguments: the values that it closes over and that may have derivatives, and these values.

    A function with custom derivatives has them by its arguments alone. If it takes another function, it takes what that
    closes over as further arguments: `converted, consts = closure_convert(fun, x)`, and then `converted(x, *consts)` is
    `fun(x)`. It is for arguments of the types of these examples, which may be types
    alone: `ShapeDtypeStruct`s.

    >>> from functools import partial
    >>> import corejax as cj
    >>> from corejax import lax
    >>> def solve(f, x):
    ...     converted, consts = cj.closure_convert(f, x)
    ...     return newton(converted, x, *consts)
    >>> @partial(cj.custom_vjp, nondiff_argnums=0)
    ... def newton(f, x, *consts):
    ...     return lax.fori_loop(0, 20, lambda _, x: x - f(x, *consts) / cj.grad(f)(x, *consts), x)
    >>> def fwd(f, x, *consts):
    ...     root = newton(f, x, *consts)
    ...     return root, (root, consts)
    >>> def bwd(f, kept, ct):
    ...     root, consts = kept
    ...     _, vjp = cj.vjp(f, root, *consts)
    ...     return None, *vjp(-ct / cj.grad(f)(root, *consts))[1:]
    >>> newton.defvjp(fwd, bwd)
    >>> cj.grad(lambda a: solve(lambda x: x * x - a, 1.0))(4.0)
    Array(0.25, dtype=float64, weak_type=True)
    """
    check_callable(fun, "closure_convert")
    leaves, in_tree = flatten(example_args)
    avals = abstract_leaves(leaves, "closure_convert", namer("example_args", example_args))
    staged = stage_function(fun, avals, in_tree, f"closure_convert: {name_of(fun)}")
    moved = [_may_have_tangent(x) for x in staged.consts]
    hoisted = carrying.marked(staged.consts, moved)
    kept = [None if move else x for x, move in zip(staged.consts, moved, strict=True)]

    @public
    def converted(*args: Any) -> Any:
        split = len(args) - len(hoisted)
        leaves, tree = flatten(args[:max(split, 0)])
        other = structures.tree_difference(tree, in_tree)
        if other is not None or split < 0:
            raise CorejaxTypeError(
                f"closure_convert: {name_of(fun)} is called with other arguments than it was converted for",
                got=f"{len(args)} arguments: {structures.shown(flatten(args)[1])}", where=here(),
                wanted=f"{structures.shown(in_tree)}, and then {len(hoisted)} hoisted values",
                todo="pass arguments structured like the examples, and all the values that closure_convert returned")
        xs = values(leaves, "closure_convert", namer("args", args[:split]))
        wrong = structures.type_differences(in_tree, [aval_of(x) for x in xs], avals)
        if wrong:
            raise CorejaxTypeError(
                f"closure_convert: {name_of(fun)} is called with arguments of other types than it was converted for",
                got="; ".join([f"{each.got} for args{each.path}" for each in wrong]), where=here(),
                wanted="; ".join([f"{each.wanted} for args{each.path}" for each in wrong]),
                todo="pass examples of these types to closure_convert")
        rest = iter(args[split:])
        consts = [next(rest) if move else x for x, move in zip(kept, moved, strict=True)]
        return staged.out_tree.unflatten(carrying.run(staged.jaxpr, [*consts, *xs]))

    return converted, hoisted


def _may_have_tangent(x: Any) -> bool:
    """Whether this value depends on what is differentiated, now or maybe later."""
    while isinstance(x, Tracer) and x._trace.is_mapping:
        x = x.val  # type: ignore[attr-defined]
    return isinstance(x, Tracer) and dtypes.is_inexact(x.dtype) and x._trace.may_differentiate
