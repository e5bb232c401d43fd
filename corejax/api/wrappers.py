"""Functions with user-defined derivatives or memory use: `custom_jvp`, `custom_vjp`, `checkpoint`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from corejax.api.arguments import wraps
from corejax.api.statics import Statics, choose, static_names, static_positions
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.installed.roles import roles
from corejax.interpreters.leaves import check_callable, with_kwargs

if TYPE_CHECKING:
    from corejax.api.protocols import Custom, Wrapped

P = ParamSpec("P")
R = TypeVar("R")
Positions = int | Sequence[int]
Names = str | Iterable[str]


@overload
def checkpoint(fun: Callable[P, R], *, prevent_cse: bool = ..., policy: object = ..., static_argnums: Positions = ...
               ) -> Wrapped[P, R]: ...
@overload
def checkpoint(fun: None = None, *, prevent_cse: bool = ..., policy: object = ..., static_argnums: Positions = ...
               ) -> Callable[[Callable[P, R]], Wrapped[P, R]]: ...
@public
def checkpoint(fun: Callable[..., Any] | None = None, *, prevent_cse: bool = True, policy: object = None,
               static_argnums: Positions = ()) -> Any:
    """The same function, but reverse mode only keeps its arguments, and recomputes the rest.

    The gradient then takes less memory and more time. `prevent_cse` keeps the compiler from undoing that; it can't
    inside the body of a loop, so False costs nothing there and compiles to faster code. `static_argnums`: arguments
    that aren't data. Also called `remat`.

    >>> import corejax as cj
    >>> from corejax import lax
    >>> cj.grad(cj.checkpoint(lambda x: lax.exp(lax.sin(x))))(0.0)
    Array(1., dtype=float64, weak_type=True)
    """
    if fun is None:
        return partial(checkpoint, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums)
    check_callable(fun, "checkpoint")
    if policy is not None:
        raise CorejaxNotImplementedError("checkpoint: policies are not supported yet", got=f"policy={policy!r:.60}",
                                         wanted="policy=None: everything is recomputed", where=here(),
                                         todo="leave it out, and checkpoint the parts to recompute")
    if not isinstance(prevent_cse, bool):
        raise CorejaxTypeError("checkpoint: prevent_cse must be True or False",
                               got=f"{kind_of(prevent_cse)}: {prevent_cse!r:.60}", wanted="True or False", where=here())
    statics = Statics(fun, static_positions(static_argnums, "checkpoint"), (), "checkpoint")

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        function, (dynamic, named) = statics.split(args, kwargs)
        if named:
            return roles.checkpoint(with_kwargs(function), (dynamic, named), prevent_cse)
        return roles.checkpoint(function, dynamic, prevent_cse)

    return wraps(fun, checkpointed)


remat = checkpoint


@overload
def custom_jvp(fun: Callable[P, R], nondiff_argnums: Positions = ..., nondiff_argnames: Names = ...
               ) -> Custom[P, R]: ...
@overload
def custom_jvp(fun: None = None, nondiff_argnums: Positions = ..., nondiff_argnames: Names = ...
               ) -> Callable[[Callable[P, R]], Custom[P, R]]: ...
@public
def custom_jvp(fun: Callable[..., Any] | None = None, nondiff_argnums: Positions = (), nondiff_argnames: Names = ()
               ) -> Any:
    """A function whose author defines its forward derivative: `rule(primals, tangents) -> (output, its tangent)`.

    Set the rule with `fun.defjvp(rule)`, or one for each argument with `fun.defjvps(...)`. Reverse mode transposes it,
    unless `fun.defvjp(fwd, bwd)` sets separate rules for that. Arguments are pytrees of arrays; `nondiff_*` are those
    that aren't data, such as functions: the rule gets them first.

    >>> import corejax as cj
    >>> from corejax import lax
    >>> @cj.custom_jvp
    ... def log1pexp(x):
    ...     return lax.log(1.0 + lax.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (x_dot,) = primals, tangents
    ...     return log1pexp(x), (1.0 - 1.0 / (1.0 + lax.exp(x))) * x_dot
    >>> cj.grad(log1pexp)(1000.0)
    Array(1., dtype=float64, weak_type=True)
    """
    if fun is None:
        return partial(custom_jvp, nondiff_argnums=nondiff_argnums, nondiff_argnames=nondiff_argnames)
    check_callable(fun, "custom_jvp")
    return roles.custom_jvp(fun, _nondiff(fun, nondiff_argnums, nondiff_argnames, "custom_jvp"))


@overload
def custom_vjp(fun: Callable[P, R], nondiff_argnums: Positions = ..., nondiff_argnames: Names = ...
               ) -> Custom[P, R]: ...
@overload
def custom_vjp(fun: None = None, nondiff_argnums: Positions = ..., nondiff_argnames: Names = ...
               ) -> Callable[[Callable[P, R]], Custom[P, R]]: ...
@public
def custom_vjp(fun: Callable[..., Any] | None = None, nondiff_argnums: Positions = (), nondiff_argnames: Names = ()
               ) -> Any:
    """A function whose author defines its reverse derivative, with `fun.defvjp(fwd, bwd)`.

    `fwd(*args)` returns the output and residuals; `bwd(residuals, ct)` gets the cotangent of the output and returns a
    tuple with a cotangent for each argument, None for zeros. Arguments are pytrees of arrays; `nondiff_*` are those
    that aren't data, such as functions: `bwd` gets them first. There is no forward mode, unless `fun.defjvp(rule)` sets
    a rule for it.

    >>> import corejax as cj
    >>> from corejax import lax
    >>> @cj.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (lax.clamp(-1.0, ct, 1.0),))
    >>> cj.grad(lambda x: 5.0 * clip_gradient(x))(2.0)
    Array(1., dtype=float64, weak_type=True)
    """
    if fun is None:
        return partial(custom_vjp, nondiff_argnums=nondiff_argnums, nondiff_argnames=nondiff_argnames)
    check_callable(fun, "custom_vjp")
    return roles.custom_vjp(fun, _nondiff(fun, nondiff_argnums, nondiff_argnames, "custom_vjp"))


def _nondiff(fun: Callable[..., Any], argnums: object, argnames: object, what: str) -> tuple[int, ...]:
    """The positions of arguments that aren't differentiated."""
    nums = static_positions(argnums, what, "nondiff_argnums")
    names = static_names(argnames, what, "nondiff_argnames")
    by_number, _ = choose(fun, nums, (), what, "nondiff_arg")
    by_name, _ = choose(fun, (), names, what, "nondiff_arg")
    return tuple(sorted(by_number | by_name))
