"""Functions with user-defined derivatives or memory use: `custom_jvp`, `custom_vjp`, `checkpoint`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, update_wrapper
from types import GenericAlias, MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from corejax.api.arguments import wraps
from corejax.api.statics import Statics, choose, static_names, static_positions
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.installed.roles import roles
from corejax.interpreters.leaves import check_callable, name_of, with_kwargs

if TYPE_CHECKING:
    from corejax.api.protocols import Wrapped

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
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


@public
class _Custom(Generic[P, R]):
    """A function whose author defines its derivatives; the pack that fills the role `custom_jvp` applies them."""

    _kind: ClassVar[str]
    fun: Callable[P, R]
    """The function itself, which is differentiated as any other."""
    nondiff_argnums: tuple[int, ...]
    implementation: Any
    """What the role made of the function: this is called."""

    def __new__(cls, fun: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Any:
        return partial(cls, *args, **kwargs) if fun is None and not args else super().__new__(cls)

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Positions = (), nondiff_argnames: Names = ()) -> None:
        kind = self._kind
        check_callable(fun, kind)
        self.nondiff_argnums = _nondiff(fun, nondiff_argnums, nondiff_argnames, kind)
        self.implementation = getattr(roles, kind)(fun, self.nondiff_argnums)
        update_wrapper(self, fun, updated=())
        self.fun = fun

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.implementation(*args, **kwargs)  # type: ignore[no-any-return]

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self: _Custom[Concatenate[S, Q], T], instance: S, owner: Any = None) -> Callable[Q, T]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __class_getitem__(cls, types: Any) -> GenericAlias:
        return GenericAlias(cls, types)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.fun,)

    def __repr__(self) -> str:
        return f"<{self._kind} {name_of(self.fun)}>"

    def __corejax_reads__(self) -> Iterable[Any]:
        return (self.implementation,) if type(self) in (custom_jvp, custom_vjp) else vars(self).values()

    def defjvp(self, jvp: S, symbolic_zeros: bool = False) -> S:
        """Set the rule `jvp(*nondiff_args, primals, tangents) -> (output, its tangent)`; usable as a decorator.

        Primals and tangents are tuples of arguments. With `symbolic_zeros`, a tangent that is known to be zero is a
        `cj.core.Zero`, which only has a shape and a dtype.
        """
        return self.implementation.defjvp(jvp, symbolic_zeros)  # type: ignore[no-any-return]

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule for each argument: `jvp(tangent, output, *primals)` is what it adds to the output's tangent.

        None for an argument that adds nothing.
        """
        self.implementation.defjvps(*jvps)

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False,
               optimize_remat: bool = False) -> None:
        """Set the rules `fwd(*args) -> (output, residuals)`, `bwd(*nondiff_args, residuals, ct) -> cotangents`.

        `bwd` returns a tuple with a cotangent for each differentiated argument; None stands for zeros. With
        `symbolic_zeros`, `fwd` gets an object with a `.value` and a flag `.perturbed` for each array, and `ct` may
        contain `cj.core.Zero`s. `optimize_remat` is taken since JAX does, and changes nothing.
        """
        self.implementation.defvjp(fwd, bwd, symbolic_zeros)


class custom_jvp(_Custom[P, R]):
    """A function whose author defines its forward derivative: `rule(primals, tangents) -> (output, its tangent)`.

    Set the rule with `fun.defjvp(rule)`, or one for each argument with `fun.defjvps(...)`. Reverse mode transposes it,
    unless `fun.defvjp(fwd, bwd)` sets separate rules for that. Arguments are pytrees of arrays; `nondiff_*` are those
    that aren't data, such as functions: the rule gets them first. The function and its rules may close over values that
    are traced outside, which then have no derivative here.

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

    _kind = "custom_jvp"

    if TYPE_CHECKING:
        @overload
        def __new__(cls, fun: Callable[P, R], nondiff_argnums: Positions = ..., nondiff_argnames: Names = ...
                    ) -> custom_jvp[P, R]: ...
        @overload
        def __new__(cls, fun: None = None, *, nondiff_argnums: Positions = ..., nondiff_argnames: Names = ...
                    ) -> _JvpDecorator: ...
        def __new__(cls, *args: Any, **kwargs: Any) -> Any: ...


class custom_vjp(_Custom[P, R]):
    """A function whose author defines its reverse derivative, with `fun.defvjp(fwd, bwd)`.

    `fwd(*args)` returns the output and residuals; `bwd(residuals, ct)` gets the cotangent of the output and returns a
    tuple with a cotangent for each argument, None for zeros. Arguments are pytrees of arrays; `nondiff_*` are those
    that aren't data, such as functions: `bwd` gets them first. There is no forward mode, unless `fun.defjvp(rule)` sets
    a rule for it. The function and its rules may close over values that are traced outside, which then have no
    derivative here.

    >>> import corejax as cj
    >>> from corejax import lax
    >>> @cj.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (lax.clamp(-1.0, ct, 1.0),))
    >>> cj.grad(lambda x: 5.0 * clip_gradient(x))(2.0)
    Array(1., dtype=float64, weak_type=True)
    """

    _kind = "custom_vjp"

    if TYPE_CHECKING:
        @overload
        def __new__(cls, fun: Callable[P, R], nondiff_argnums: Positions = ..., nondiff_argnames: Names = ...
                    ) -> custom_vjp[P, R]: ...
        @overload
        def __new__(cls, fun: None = None, *, nondiff_argnums: Positions = ..., nondiff_argnames: Names = ...
                    ) -> _VjpDecorator: ...
        def __new__(cls, *args: Any, **kwargs: Any) -> Any: ...


if TYPE_CHECKING:
    class _JvpDecorator(custom_jvp[Any, Any]):
        """What `custom_jvp` returns without a function. Type checkers want it to be such a function itself."""

        def __call__(self, fun: Callable[P, R]) -> custom_jvp[P, R]: ...

    class _VjpDecorator(custom_vjp[Any, Any]):
        def __call__(self, fun: Callable[P, R]) -> custom_vjp[P, R]: ...


def _nondiff(fun: Callable[..., Any], argnums: object, argnames: object, what: str) -> tuple[int, ...]:
    """The positions of arguments that aren't differentiated."""
    nums = static_positions(argnums, what, "nondiff_argnums")
    names = static_names(argnames, what, "nondiff_argnames")
    by_number, _ = choose(fun, nums, (), what, "nondiff_arg")
    by_name, _ = choose(fun, (), names, what, "nondiff_arg")
    return tuple(sorted(by_number | by_name))
