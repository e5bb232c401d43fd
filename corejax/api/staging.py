"""Functions as programs: `make_jaxpr`, `eval_shape`, `ShapeDtypeStruct`, and the names of their equations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from corejax.api.arguments import wraps
from corejax.api.statics import Statics, static_positions
from corejax.arrays.shardings import NamedSharding
from corejax.base import dtypes, trees
from corejax.base.avals import ShapedArray, aval_of
from corejax.base.config import config
from corejax.base.errors import CorejaxTypeError, CorejaxValueError
from corejax.base.source import here
from corejax.base.standins import StandIn
from corejax.base.tracebacks import public
from corejax.interpreters.leaves import (
    FlatFun,
    Namer,
    argument_namer,
    call_root,
    check_callable,
    name_of,
    not_an_array,
    with_kwargs,
)
from corejax.interpreters.staging import StagingTrace, stage
from corejax.ir.typecheck import typecheck
from corejax.kernel.axes import NamedAxis
from corejax.kernel.context import binding, context, named_scope
from corejax.kernel.jaxpr import ClosedJaxpr

P = ParamSpec("P")
R = TypeVar("R")
AxisSizes = Iterable[tuple[Hashable, int]]


@public
class ShapeDtypeStruct:
    """The type of an array, in place of one: what `eval_shape` returns, and `make_jaxpr` and `lower` accept.

    `sharding` says how the array will be divided among devices, for a program that is compiled before there is one.
    What `make_jaxpr` and `eval_shape` call may use it as a value.
    """

    __slots__ = ("shape", "dtype", "weak_type", "sharding")

    def __init__(self, shape: Sequence[int], dtype: Any, *, weak_type: bool = False,
                 sharding: NamedSharding | None = None) -> None:
        if dtype is None:
            raise CorejaxValueError("ShapeDtypeStruct: there is no dtype", got="None", wanted="a dtype", where=here(),
                                   todo="say which, such as float")
        aval = ShapedArray(shape, dtype, weak_type)
        self.shape, self.dtype, self.weak_type = aval.shape, aval.dtype, aval.weak_type
        self.sharding = sharding

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The type of an array, a traced value or a number, and how it is divided among devices."""
        sharding = getattr(x, "sharding", None)
        return struct_of(typeof(x), sharding if isinstance(sharding, NamedSharding) else None)

    def update(self, **fields: Any) -> ShapeDtypeStruct:
        """The same type with these fields replaced.

        >>> import corejax as cj
        >>> cj.ShapeDtypeStruct((2, 3), "float32").update(shape=(3,))
        ShapeDtypeStruct(shape=(3,), dtype=float32)
        """
        return ShapeDtypeStruct(**{"shape": self.shape, "dtype": self.dtype, "weak_type": self.weak_type,
                                   "sharding": self.sharding, **fields})

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape, dtype=object)))

    @property
    def __jax_array__(self) -> Callable[[], Any]:
        trace = _asked.trace
        if trace is None:  # so that the object has no such method
            raise AttributeError("__jax_array__")
        return lambda: trace.of_type(self, ShapedArray(self.shape, self.dtype, self.weak_type))

    def __len__(self) -> int:
        return len(np.empty(self.shape, np.bool_)) if not self.shape else self.shape[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and _fields(self) == _fields(other)

    def __hash__(self) -> int:
        return hash(_fields(self))

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, _fields(self)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        divided = "" if self.sharding is None else f", sharding={self.sharding}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={dtypes.long_name(self.dtype)}{weak}{divided})"


class _Asked(threading.local):
    """The trace of the function whose types are asked for, in which a `ShapeDtypeStruct` stands for an array."""

    trace: StagingTrace | None = None


_asked = _Asked()


def _only_types(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function to be staged, in which `ShapeDtypeStruct`s stand for arrays."""
    def call(*args: Any) -> Any:
        previous, trace = _asked.trace, context.trace
        assert isinstance(trace, StagingTrace)
        _asked.trace = trace
        try:
            return fun(*args)
        finally:
            _asked.trace = previous
    return call


def _fields(struct: ShapeDtypeStruct) -> tuple[Any, ...]:
    return struct.shape, struct.dtype, struct.weak_type, struct.sharding


def _restored(shape: Sequence[int], dtype: Any, weak_type: bool, sharding: NamedSharding | None) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype, weak_type=weak_type, sharding=sharding)


def struct_of(aval: ShapedArray, sharding: NamedSharding | None = None) -> ShapeDtypeStruct:
    """An aval in the form that users see."""
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=sharding)


@public
def typeof(x: Any) -> ShapedArray:
    """The type of an array, a traced value, a number or a `ShapeDtypeStruct`.

    >>> import corejax as cj
    >>> cj.typeof(1.5), cj.typeof(cj.ShapeDtypeStruct((3,), "float32"))
    (~f64[], f32[3])
    """
    return _abstract(0, x, "typeof", lambda _: "x")


def abstract_leaves(leaves: Sequence[object], what: str, name: Namer) -> list[ShapedArray]:
    """The types of leaves, which may be types themselves."""
    return [_abstract(i, x, what, name) for i, x in enumerate(leaves)]


def _abstract(i: int, x: object, what: str, name: Namer) -> ShapedArray:
    if type(x) is ShapedArray:
        return x
    try:
        if not hasattr(x, "aval") and hasattr(x, "shape") and hasattr(x, "dtype"):
            return ShapedArray(x.shape, x.dtype, getattr(x, "weak_type", False))
        return aval_of(x)
    except StandIn:
        raise
    except CorejaxTypeError as error:
        raise not_an_array(x, what, name(i), error) from error


def trace_program(flat: Callable[..., Sequence[Any]], in_avals: Sequence[ShapedArray], name: str) -> ClosedJaxpr:
    """Stage a flat function, leaving the caller's named scopes out of its equations."""
    scopes, context.names = context.names, ()
    try:
        closed = stage(flat, in_avals, name)
    finally:
        context.names = scopes
    if config.debug_typecheck:
        typecheck(closed.jaxpr)
    return closed


@overload
def make_jaxpr(fun: Callable[..., Any], static_argnums: int | Sequence[int] = ..., axis_env: AxisSizes | None = ...,
               return_shape: Literal[False] = ...
               ) -> Callable[..., ClosedJaxpr]: ...
@overload
def make_jaxpr(fun: Callable[..., Any], static_argnums: int | Sequence[int] = ..., axis_env: AxisSizes | None = ...,
               *, return_shape: Literal[True]
               ) -> Callable[..., tuple[ClosedJaxpr, Any]]: ...
@public
def make_jaxpr(fun: Callable[..., Any], static_argnums: int | Sequence[int] = (), axis_env: AxisSizes | None = None,
               return_shape: bool = False) -> Callable[..., Any]:
    """A function of the same arguments that returns the program of `fun` as a `ClosedJaxpr`.

    Arguments may be `ShapeDtypeStruct`s. `axis_env`, pairs of a name and a size, are axes that `fun` may use as if it
    were mapped over them. With `return_shape`, it returns the pair of the program and a pytree of
    `ShapeDtypeStruct`s for the result.

    >>> import corejax as cj
    >>> cj.make_jaxpr(lambda x, y: (x * y, x))(2.0, 3.0)
    { lambda ; a:~f64[] b:~f64[]. let c:~f64[] = mul a b in (c, a) }
    """
    check_callable(fun, "make_jaxpr")
    statics = Statics(fun, static_positions(static_argnums, "make_jaxpr"), (), "make_jaxpr")
    axes = _named_axes(axis_env)

    def make_jaxpr_f(*args: Any, **kwargs: Any) -> Any:
        function, dynamic = statics.split(args, kwargs)
        with binding(axes):
            closed, flat = _trace(function, dynamic, "make_jaxpr", name_of(fun))
        return (closed, flat.unflatten(list(map(struct_of, closed.out_avals)))) if return_shape else closed

    return wraps(fun, make_jaxpr_f)


def _named_axes(pairs: AxisSizes | None) -> tuple[NamedAxis, ...]:
    """The axes that pairs of a name and a size describe."""
    try:
        axes = tuple([NamedAxis(name, len(range(size))) for name, size in pairs or ()])
        hash(axes)
    except (TypeError, ValueError) as error:
        raise CorejaxTypeError("make_jaxpr: axis_env must be pairs of a name and a size", got=f"{pairs!r:.80}",
                               wanted="such as [('i', 4)]", where=here(),
                               todo="leave it out if fun uses no named axes") from error
    return axes


@public
def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """The same function, whose equations are in the scope `name`, by default that of `fun`: see `named_scope`.

    >>> import corejax as cj
    >>> closed = cj.make_jaxpr(cj.named_call(lambda x: x * x, name="square"))(3.0)
    >>> closed.eqns[0].scope
    ('square',)
    """
    check_callable(fun, "named_call")
    scope = name_of(fun) if name is None else name
    named_scope(scope)  # raises if that is no name

    def named(*args: P.args, **kwargs: P.kwargs) -> R:
        with named_scope(scope):
            return fun(*args, **kwargs)

    return wraps(fun, named)


def _trace(fun: Callable[..., Any], dynamic: tuple[Any, Any], what: str, name: str) -> tuple[ClosedJaxpr, FlatFun]:
    """The program of `fun` for these arguments: a tuple of positional ones, a dict of keyword ones."""
    args, kwargs = dynamic
    if kwargs:
        flat, tree = with_kwargs(fun), (args, kwargs)
    else:
        flat, tree = fun, args
    leaves, in_tree = trees.flatten(tree, None, call_root if kwargs else "args")
    avals = abstract_leaves(leaves, what, argument_namer(args, kwargs))
    function = FlatFun(flat, in_tree, what)
    return trace_program(_only_types(function), avals, name), function


@public
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The types of the result of `fun(*args, **kwargs)`, without computing it; arguments may be types themselves.

    >>> import corejax as cj
    >>> cj.eval_shape(lambda x: {"y": x * 2.0}, cj.ShapeDtypeStruct((3,), "float32"))
    {'y': ShapeDtypeStruct(shape=(3,), dtype=float32)}
    """
    check_callable(fun, "eval_shape")
    closed, flat = _trace(fun, (args, kwargs), "eval_shape", name_of(fun))
    return flat.unflatten(list(map(struct_of, closed.out_avals)))
