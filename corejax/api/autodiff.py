"""Derivatives: `jvp`, `linearize`, `vjp`, `fwd_and_bwd`, `linear_transpose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from corejax.api.arguments import check_argnums, finish_cotangent, positions
from corejax.api.jit import jit
from corejax.api.linear_functions import Ends, Pullback, Tangents, Transpose, fitting_tangents
from corejax.api.staging import abstract_leaves
from corejax.base import trees
from corejax.base.avals import ShapedArray
from corejax.base.dtypes import is_inexact, is_integer
from corejax.base.errors import CorejaxTypeError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import public, stands_for
from corejax.base.trees import TreeDef
from corejax.interpreters import forward, linearize as linearizing, reverse
from corejax.interpreters.leaves import FlatFun, Namer, check_callable, namer, values
from corejax.interpreters.linearize import LinearMap

R = TypeVar("R")
Aux = TypeVar("Aux")


@overload
def jvp(fun: Callable[..., R], primals: Sequence[object], tangents: Sequence[object], has_aux: Literal[False] = ...
        ) -> tuple[R, R]: ...
@overload
def jvp(fun: Callable[..., tuple[R, Aux]], primals: Sequence[object], tangents: Sequence[object],
        has_aux: Literal[True]) -> tuple[R, R, Aux]: ...
@public
def jvp(fun: Callable[..., Any], primals: Sequence[object], tangents: Sequence[object], has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and its derivative there along `tangents`; with `has_aux`, followed by aux.

    >>> import corejax as cj
    >>> cj.jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9., dtype=float64, weak_type=True), Array(6., dtype=float64, weak_type=True))
    """
    check_callable(fun, "jvp")
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise CorejaxTypeError(f"jvp: {name} must be a sequence with one entry for each argument",
                                   got=kind_of(given), wanted="a tuple or a list", where=here(),
                                   todo=f"write ({'x' if name == 'primals' else 'x_dot'},) for one argument")
    primals = tuple(primals)
    leaves, in_tree = trees.flatten(primals, None, "primals")
    xs = values(leaves, "jvp", namer("primals", primals))
    dots = fitting_tangents("jvp", tuple(tangents), in_tree, [x.aval for x in xs])
    flat = FlatFun(fun, in_tree, "jvp", has_aux)
    outs, out_dots = forward.jvp(flat, xs, dots)
    n = flat.n_outs
    found = [finish_cotangent(t, x.aval) for t, x in zip(out_dots[:n], outs[:n], strict=True)]
    pair = flat.unflatten(outs), flat.unflatten(found)
    return (*pair, flat.aux(outs)) if has_aux else pair


@overload
def linearize(fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = ...) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]
              ) -> tuple[R, Callable[..., R], Aux]: ...
@public
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and its derivative there as a function of tangents; with `has_aux`, then aux.

    >>> import corejax as cj
    >>> y, f_lin = cj.linearize(lambda x: x * x, 3.0)
    >>> f_lin(1.0), f_lin(10.0)
    (Array(6., dtype=float64, weak_type=True), Array(60., dtype=float64, weak_type=True))
    """
    check_callable(fun, "linearize")
    leaves, in_tree = trees.flatten(primals, None, "primals")
    xs = values(leaves, "linearize", namer("primals", primals))
    flat = FlatFun(fun, in_tree, "linearize", has_aux)
    outs, linear_map = linearizing.linearize(flat, xs)
    f_lin = Tangents(linear_map, _ends(flat, linear_map, in_tree, xs, outs, "linearize"))
    pair = flat.unflatten(outs), f_lin
    return (*pair, flat.aux(outs)) if has_aux else pair


def _ends(flat: FlatFun, linear_map: LinearMap, in_tree: TreeDef, ins: Sequence[Any], outs: Sequence[Any], what: str
          ) -> Ends:
    """The ends of the linear map of `flat`, whose aux outputs are removed."""
    n = flat.n_outs
    linear_map.outs = linear_map.outs[:n]
    return Ends(in_tree, tuple([x.aval for x in ins]), flat.out_tree, tuple([x.aval for x in outs[:n]]), what)


@overload
def vjp(fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = ...
        ) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]
        ) -> tuple[R, Callable[[Any], tuple[Any, ...]], Aux]: ...
@public
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and its pullback; with `has_aux`, followed by aux.

    The pullback maps a cotangent of the value to a tuple of cotangents, one for each of `primals`.

    >>> import corejax as cj
    >>> y, pullback = cj.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> pullback(1.0)
    (Array(4., dtype=float64, weak_type=True), Array(3., dtype=float64, weak_type=True))
    """
    check_callable(fun, "vjp")
    leaves, in_tree = trees.flatten(primals, None, "primals")
    xs = values(leaves, "vjp", namer("primals", primals))
    flat = FlatFun(fun, in_tree, "vjp", has_aux)
    outs, linear_map = linearizing.linearize(flat, xs)
    pullback = Pullback(linear_map, _ends(flat, linear_map, in_tree, xs, outs, "vjp"))
    pair = flat.unflatten(outs), pullback
    return (*pair, flat.aux(outs)) if has_aux else pair


@public
def fwd_and_bwd(fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
                ) -> tuple[Callable[..., Any], Callable[[Any, Any], Any]]:
    """The two halves of reverse mode, as functions that can be called apart: compiled, unless `jitted` is False.

    `fwd(*args)` is the pair of the value of `fun` and residuals, a pytree; with `has_aux`, followed by aux.
    `bwd(residuals, cotangent)` is the cotangent of the argument `argnums`, or a tuple of one for each of them.

    >>> import corejax as cj
    >>> fwd, bwd = cj.fwd_and_bwd(lambda x, y: x * y, (0, 1))
    >>> product, residuals = fwd(3.0, 4.0)
    >>> bwd(residuals, 1.0)
    (Array(4., dtype=float64, weak_type=True), Array(3., dtype=float64, weak_type=True))
    """
    check_callable(fun, "fwd_and_bwd")
    chosen = check_argnums(argnums, "fwd_and_bwd")

    def fwd(*args: Any, **kwargs: Any) -> Any:
        at = positions(chosen if isinstance(chosen, tuple) else (chosen,), len(args), "fwd_and_bwd")

        def of_chosen(*picked: Any) -> Any:
            full = list(args)
            for i, x in zip(at, picked, strict=True):
                full[i] = x
            return fun(*full, **kwargs)

        picked = stands_for(fun, of_chosen), *[args[i] for i in at]
        return vjp(*picked, has_aux=True) if has_aux else vjp(*picked)

    def bwd(residuals: Any, cotangent: Any) -> Any:
        if not isinstance(residuals, Pullback):
            raise CorejaxTypeError("fwd_and_bwd: bwd takes the residuals that fwd returned", got=kind_of(residuals),
                                   wanted="residuals, and then a cotangent", where=here(),
                                   todo="write out, residuals = fwd(*args), and then bwd(residuals, cotangent)")
        back = residuals(cotangent)
        return back if isinstance(chosen, tuple) else back[0]

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)


@public
def linear_transpose(fun: Callable[..., Any], *primals: Any) -> Callable[[Any], tuple[Any, ...]]:
    """The transpose of a linear `fun`, which maps a cotangent of its output to a tuple of one for each argument.

    Only the types of `primals` matter: they may be `ShapeDtypeStruct`s. Arguments and results are floats or complex
    numbers; or all are integers, and so are the cotangents then. To round is to send nothing back.

    >>> import corejax as cj
    >>> cj.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)
    (Array(6., dtype=float64, weak_type=True),)
    >>> cj.linear_transpose(lambda n: (n, 3 * n), 1)((10, 100))
    (Array(310, dtype=int64, weak_type=True),)
    """
    check_callable(fun, "linear_transpose")
    leaves, in_tree = trees.flatten(primals, None, "primals")
    avals = abstract_leaves(leaves, "linear_transpose", namer("primals", primals))
    flat = FlatFun(fun, in_tree, "linear_transpose")
    out_avals, linear_map = reverse.linear_map_of(flat, avals)
    _check_kinds(avals, out_avals, namer("primals", primals))
    return Transpose(linear_map, Ends(in_tree, tuple(avals), flat.out_tree, tuple(out_avals), "linear_transpose"))


def _check_kinds(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], name: Namer) -> None:
    """Raise unless all of what a linear function takes and returns is inexact, or all of it integers."""
    avals = [*in_avals, *out_avals]
    inexact = [is_inexact(aval.dtype) for aval in avals]
    wrong = [i for i, aval in enumerate(avals) if not (inexact[i] or is_integer(aval.dtype))]
    if not wrong and True in inexact and False in inexact:
        wrong = sorted([inexact.index(True), inexact.index(False)])
    if wrong:
        places = [name(i) if i < len(in_avals) else "the result" for i in wrong]
        raise CorejaxTypeError(
            "linear_transpose: only functions of floats and complex numbers, or of integers alone, are transposed",
            got=" and ".join([f"{avals[i]} at {place}" for i, place in zip(wrong, places, strict=True)]), where=here(),
            wanted="arguments and results that are all floats or complex numbers, or all integers",
            todo="close over an argument in which it isn't linear, and leave out such results")
