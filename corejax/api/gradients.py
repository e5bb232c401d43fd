"""`grad` and `value_and_grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np

from corejax.api.arguments import check_argnums, finish_cotangent, positions, wraps
from corejax.arrays.array import Array
from corejax.base import dtypes, trees
from corejax.base.avals import ShapedArray, Zero
from corejax.base.errors import CorejaxTypeError, kind_of
from corejax.base.keypaths import keystr
from corejax.base.source import here
from corejax.base.tracebacks import calls_users, public, stands_for
from corejax.interpreters import reverse
from corejax.interpreters.leaves import FlatFun, check_callable, is_single_leaf, values

P = ParamSpec("P")
R = TypeVar("R")
Aux = TypeVar("Aux")

Argnums: TypeAlias = int | Sequence[int]


@overload
def grad(fun: Callable[P, Any], argnums: Argnums = ..., has_aux: Literal[False] = ..., holomorphic: bool = ...,
         allow_int: bool = ...) -> Callable[P, Any]: ...
@overload
def grad(fun: Callable[P, tuple[Any, Aux]], argnums: Argnums = ..., *, has_aux: Literal[True], holomorphic: bool = ...,
         allow_int: bool = ...) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def grad(fun: Callable[P, Any], argnums: Argnums = ..., has_aux: bool = ..., holomorphic: bool = ...,
         allow_int: bool = ...) -> Callable[P, Any]: ...
@public
def grad(fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
         allow_int: bool = False) -> Callable[..., Any]:
    """The gradient of a function whose value is a scalar, as a function of the same arguments.

    `argnums` are the positions of the arguments to differentiate with respect to: for an int, the gradient has the
    structure of that argument; for a sequence, it is a tuple of gradients. With `has_aux`, `fun` returns `(value, aux)`
    and the result is `(gradient, aux)`.

    >>> import corejax as cj
    >>> cj.grad(lambda x: x * x * x)(2.0)
    Array(12., dtype=float64, weak_type=True)
    """
    both = _differentiate(fun, "grad", argnums, has_aux, holomorphic, allow_int)
    if has_aux:
        def grad_f(*args: Any, **kwargs: Any) -> Any:
            (_, aux), gradient = both(*args, **kwargs)
            return gradient, aux
    else:
        def grad_f(*args: Any, **kwargs: Any) -> Any:
            return both(*args, **kwargs)[1]
    return wraps(fun, grad_f)


@public
def value_and_grad(fun: Callable[P, R], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
                   allow_int: bool = False) -> Callable[P, tuple[R, Any]]:
    """Like `grad`, but the result is a pair: the value of `fun`, and its gradient.

    >>> import corejax as cj
    >>> cj.value_and_grad(lambda x: x * x * x)(2.0)
    (Array(8., dtype=float64, weak_type=True), Array(12., dtype=float64, weak_type=True))
    """
    both = _differentiate(fun, "value_and_grad", argnums, has_aux, holomorphic, allow_int)
    return wraps(fun, both)


def _differentiate(fun: Callable[..., Any], what: str, argnums: Argnums, has_aux: bool, holomorphic: bool,
                   allow_int: bool) -> Callable[..., Any]:
    """`value_and_grad`, called `what` in errors."""
    check_callable(fun, what)
    argnums = check_argnums(argnums, what)

    def value_and_grad_f(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen(fun, argnums, args, kwargs, what, has_aux)
        for i, x in enumerate(chosen.values):
            if not dtypes.is_float(x.aval.dtype) or holomorphic:
                check_input(x.aval, holomorphic, allow_int, chosen, i)
        outs, pull = reverse.vjp(chosen.flat, chosen.values)
        flat = chosen.flat
        if flat.out_tree is not None and flat.out_tree != _leaf_tree():
            raise _not_a_scalar(flat.unflatten(outs), what)
        aval = outs[0].aval
        if aval.shape or not dtypes.is_float(aval.dtype) or holomorphic:
            _check_output(aval, holomorphic, what)
        cts: list[Any] = [_one(aval.tangent)]
        if has_aux:
            cts += [Zero(x.aval.tangent) for x in outs[1:]]
        gradient = chosen.unflatten([finish_cotangent(ct, x.aval)
                                     for ct, x in zip(pull(cts), chosen.values, strict=True)])
        return ((outs[0], flat.aux(outs)), gradient) if has_aux else (outs[0], gradient)

    return value_and_grad_f


class Chosen:
    """A call's arguments at `argnums` as flat values, and the user's function of these alone.

    The other arguments are passed on unchanged. An argument that is a single leaf isn't flattened.
    """

    __slots__ = ("flat", "values", "what", "_in_tree", "_single", "_at", "_args")

    @calls_users
    def __init__(self, fun: Callable[..., Any], argnums: int | tuple[int, ...], args: tuple[Any, ...],
                 kwargs: dict[str, Any], what: str, has_aux: bool) -> None:
        self.what, self._args = what, args
        self._single = type(argnums) is int
        at = (argnums,) if type(argnums) is int else argnums
        if at != (0,) or not args:
            at = positions(at, len(args), what)  # type: ignore[arg-type]
        self._at: tuple[int, ...] = at
        picked = tuple([args[i] for i in at])
        in_tree = None
        leaves: Sequence[Any] = picked
        for x in picked:
            if not is_single_leaf(x):
                leaves, in_tree = trees.flatten(
                    picked, None, lambda path: f"args[{at[path[0].idx]}]" + keystr(path[1:]))
                break
        self._in_tree = in_tree

        def of_picked(*xs: Any) -> Any:
            full = list(args)
            for i, x in zip(at, xs, strict=True):
                full[i] = x
            return fun(*full, **kwargs)

        self.values = values(leaves, what, self.name)
        self.flat = FlatFun(stands_for(fun, of_picked), in_tree, what, has_aux)

    def unflatten(self, leaves: Sequence[object]) -> Any:
        """These leaves in the structure of the arguments: one tree if `argnums` is an int, else a tuple of trees."""
        trees_ = tuple(leaves) if self._in_tree is None else self._in_tree.unflatten(leaves)
        return trees_[0] if self._single else trees_

    def name(self, i: int) -> str:
        """The name of the i-th leaf in errors."""
        (first, *rest), _ = trees.flatten_with_path(tuple([self._args[i] for i in self._at]))[0][i]
        return f"args[{self._at[first.idx]}]{keystr(tuple(rest))}"


def _leaf_tree() -> Any:
    return trees.flatten(0)[1]


_ones: dict[ShapedArray, Array] = {}


def _one(aval: ShapedArray) -> Array:
    one = _ones.get(aval)
    if one is None:
        one = _ones[aval] = Array.from_host(np.ones((), aval.dtype), aval)
    return one


def check_input(aval: ShapedArray, holomorphic: bool, allow_int: bool, chosen: Chosen, i: int) -> None:
    """Raise for an input that can't be differentiated with respect to."""
    what = chosen.what
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise CorejaxTypeError(f"{what}: with holomorphic=True the inputs must be complex",
                               got=f"{aval} at {chosen.name(i)}", wanted="c64 or c128", where=here(),
                               todo="convert it, or leave out holomorphic=True")
    if not dtypes.is_inexact(aval.dtype) and not allow_int:
        kind = "an integer or boolean type" if dtypes.kind(aval.dtype) != "E" else "elements that aren't numbers"
        raise CorejaxTypeError(f"{what}: {chosen.name(i)} has {kind}, and so no derivative",
                               got=str(aval), wanted="a float or complex type", where=here(),
                               todo="pass a float (2.0, x.astype(float)), change argnums, or set allow_int=True "
                                    "to get zeros of float0 for it")


def _check_output(aval: ShapedArray, holomorphic: bool, what: str) -> None:
    if aval.shape:
        raise CorejaxTypeError(f"{what}: the function's value is not a scalar", got=str(aval), wanted="shape ()",
                               where=here(), todo="reduce it (y.sum()), or use jacrev, jacfwd or vjp")
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise CorejaxTypeError(f"{what}: with holomorphic=True the value must be complex", got=str(aval), where=here(),
                               wanted="c64[] or c128[]", todo="leave out holomorphic=True")
    if not holomorphic and dtypes.is_complex(aval.dtype):
        raise CorejaxTypeError(f"{what}: the function's value is complex", got=str(aval), wanted="a real float",
                               where=here(), todo="take its real part or absolute value, or set holomorphic=True if "
                                                  "the function is holomorphic")
    if not dtypes.is_inexact(aval.dtype):
        raise CorejaxTypeError(f"{what}: the function's value has an integer or boolean type, and so no derivative",
                               got=str(aval), wanted="a float", where=here(), todo="return a float")


def _not_a_scalar(out: object, what: str) -> CorejaxTypeError:
    got = "None" if out is None else f"{kind_of(out)}: {out!r:.80}"
    return CorejaxTypeError(f"{what}: the function's value is not a scalar", got=got,
                            wanted="one array of shape ()", where=here(),
                            todo="return the value alone; for (value, aux) set has_aux=True")
