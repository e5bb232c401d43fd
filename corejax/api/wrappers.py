"""Functions with user-defined derivatives or memory use: `custom_jvp`, `custom_vjp`, `checkpoint`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial, update_wrapper
from types import GenericAlias, MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from corejax.api.arguments import wraps
from corejax.api.statics import Statics, choose, static_names, static_positions
from corejax.base import trees
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.prefixes import flatten_up_to
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
Policy = Callable[..., Any]

_left_out: Any = object()


@overload
def checkpoint(fun: Callable[P, R], *, prevent_cse: bool | Sequence[bool] = ..., policy: Policy | None = ...,
               static_argnums: Positions = ..., static_argnames: Names = ...) -> Wrapped[P, R]: ...
@overload
def checkpoint(fun: None = None, *, prevent_cse: bool | Sequence[bool] = ..., policy: Policy | None = ...,
               static_argnums: Positions = ..., static_argnames: Names = ...
               ) -> Callable[[Callable[P, R]], Wrapped[P, R]]: ...
@public
def checkpoint(fun: Callable[..., Any] | None = None, *, prevent_cse: bool | Sequence[bool] = True,
               policy: Policy | None = None, static_argnums: Positions = (), static_argnames: Names = (),
               concrete: object = _left_out) -> Any:
    """The same function, but reverse mode only keeps its arguments, and recomputes the rest.

    The gradient then takes less memory and more time. A `policy` says what is saved besides: one of
    `cj.checkpoint_policies`, or a function of each operation's primitive, types of operands, and params. `prevent_cse`
    keeps the compiler from undoing that, for all arguments or for each; it can't inside the body of a loop, so False
    costs nothing there and compiles to faster code. `static_argnums`, `static_argnames`: arguments that aren't data.
    Also called `remat`.

    >>> import corejax as cj
    >>> from corejax import lax
    >>> cj.grad(cj.checkpoint(lambda x: lax.exp(lax.sin(x))))(0.0)
    Array(1., dtype=float64, weak_type=True)
    """
    options: Any = {"prevent_cse": prevent_cse, "policy": policy, "static_argnums": static_argnums,
                    "static_argnames": static_argnames}
    if concrete is not _left_out:
        raise CorejaxNotImplementedError(
            "checkpoint: there is no concrete=", got=f"concrete={concrete!r:.60}", where=here(),
            wanted="static_argnums, for arguments whose values the function's Python code looks at",
            todo="name these arguments in static_argnums, or close over the values")
    if fun is None:
        return partial(checkpoint, **options)
    check_callable(fun, "checkpoint")
    if policy is not None:
        _check_policy(policy)
    flags = prevent_cse if isinstance(prevent_cse, bool) else _flags(prevent_cse)
    statics = Statics(fun, static_positions(static_argnums, "checkpoint"),
                      static_names(static_argnames, "checkpoint"), "checkpoint")

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        function, (dynamic, named) = statics.split(args, kwargs)
        barred = _barred(flags, dynamic, named) if type(flags) is tuple else flags
        fixed = statics.values(args, kwargs)
        origin = fun, fixed, (statics.key(args, kwargs) if fixed else (), bool(named))
        if named:
            return roles.checkpoint(with_kwargs(function), (dynamic, named), barred, policy, origin)
        return roles.checkpoint(function, dynamic, barred, policy, origin)

    return wraps(fun, checkpointed)


def _barred(flags: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bool, ...]:
    """A flag of prevent_cse for each leaf, given one for each positional argument or part. Keywords have True."""
    if len(flags) != len(args):
        raise CorejaxValueError("checkpoint: prevent_cse must have a flag for each argument that is data", where=here(),
                                got=f"{len(flags)} flags", wanted=f"{len(args)}, one for each positional argument",
                                todo="pass True or False for all of them, or count those that aren't static")
    leaves, treedef = trees.flatten(flags)
    parts = flatten_up_to(treedef, flags, args, names=("prevent_cse", "the arguments"))
    found = [flag for flag, part in zip(leaves, parts, strict=True) for _ in trees.flatten(part)[0]]
    return (*found, *[True] * len(trees.flatten(kwargs)[0]))


def _check_policy(policy: object) -> None:
    if not callable(policy):
        raise CorejaxTypeError("checkpoint: a policy must be a function", got=f"{kind_of(policy)}: {policy!r:.60}",
                               wanted="one of cj.checkpoint_policies, or policy(primitive, *avals, **params) -> bool",
                               where=here(), todo="pass the function itself: cj.checkpoint_policies.dots_saveable")
    try:
        hash(policy)
    except TypeError as error:
        raise CorejaxTypeError("checkpoint: a policy must be hashable", got=f"{kind_of(policy)}: {policy!r:.60}",
                               wanted="a function: programs are found again by their policies", where=here(),
                               todo="give its class __hash__ with __eq__, or pass a function") from error


def _flags(prevent_cse: object) -> tuple[Any, ...]:
    leaves = trees.flatten(prevent_cse)[0]
    if not isinstance(prevent_cse, (tuple, list)) or not all([isinstance(flag, bool) for flag in leaves]):
        raise CorejaxTypeError("checkpoint: prevent_cse must be True or False, or one of them for each argument",
                               got=f"{kind_of(prevent_cse)}: {prevent_cse!r:.60}", where=here(),
                               wanted="a bool, or a tuple of bools", todo="leave it out, or pass (True, False)")
    return tuple(prevent_cse)


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
    jvp: Callable[..., Any] | None
    fwd: Callable[..., Any] | None
    bwd: Callable[..., Any] | None
    """The rules that were set."""

    def __new__(cls, fun: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Any:
        return partial(cls, *args, **kwargs) if fun is None and not args else super().__new__(cls)

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Positions = (), nondiff_argnames: Names = ()) -> None:
        kind = self._kind
        check_callable(fun, kind)
        update_wrapper(self, fun)
        self.nondiff_argnums = _nondiff(fun, nondiff_argnums, nondiff_argnames, kind)
        self.implementation = getattr(roles, kind)(fun, self.nondiff_argnums)
        self.fun, self.jvp, self.fwd, self.bwd = fun, None, None, None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.implementation(*args, **kwargs)  # type: ignore[no-any-return]

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self: _Custom[Concatenate[S, Q], T], instance: S, owner: Any = None) -> Callable[Q, T]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        fun = self.__dict__.get("fun")
        if not name.startswith("_") and hasattr(type(fun), "__corejax_reads__"):
            return getattr(fun, name)  # such as the `def_vmap` of a function that has other rules, too
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

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
        self.implementation.defjvp(jvp, symbolic_zeros)
        self.jvp = jvp  # type: ignore[assignment]
        return jvp

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
        contain `cj.core.Zero`s. With `optimize_remat`, the way forward through a checkpoint computes the function
        itself, and not `fwd`, whose residuals it doesn't keep.
        """
        self.implementation.defvjp(fwd, bwd, symbolic_zeros, optimize_remat)
        self.fwd, self.bwd = fwd, bwd


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
