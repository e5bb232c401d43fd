"""Derivatives: `jvp`, `linearize`, `vjp`, `linear_transpose`, `grad`, `value_and_grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import trees
from corejax.api.arguments import (
    FlatFun,
    check_argnums,
    check_callable,
    finish_cotangent,
    is_single_leaf,
    leaf_name,
    name_of,
    positions,
    tangent_like,
    values,
    wraps,
)
from corejax.api.staging import abstract
from corejax.avals import ShapedArray
from corejax.dtypes import is_complex, is_float, is_inexact
from corejax.errors import CorejaxTypeError
from corejax.interpreters import forward, linearize as linearizing, reverse
from corejax.prefixes import check_same_structure
from corejax.source import here
from corejax.xla.array import Array


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and its derivative there along `tangents`; aux follows if there is one.

    >>> import corejax as cj
    >>> cj.jvp(lambda x: x * x, (3.0,), (1.0,))
    (Array(9.0, dtype=float64, weak_type=True), Array(6.0, dtype=float64))
    """
    check_callable(fun, "jvp")
    for name, xs in (("primals", primals), ("tangents", tangents)):
        if not isinstance(xs, (tuple, list)):
            raise CorejaxTypeError(f"jvp: {name} is a sequence, with one entry for each argument",
                                   got=f"a {type(xs).__name__}", wanted="a tuple or a list", where=here(),
                                   todo=f"write {name}=({'x' if name == 'primals' else 'x_dot'},)")
    primals, tangents = tuple(primals), tuple(tangents)
    leaves, in_tree = trees.flatten(primals)
    xs = values(leaves, "jvp", "primals", primals)
    dots = _tangents("jvp", tangents, primals, in_tree, [x.aval.tangent for x in xs])
    flat = FlatFun(fun, in_tree, "jvp", has_aux)
    outs, out_dots = forward.jvp(flat, xs, dots)
    out_dots = [finish_cotangent(t, x.aval) for t, x in zip(out_dots[: flat.n_outs], outs[: flat.n_outs], strict=True)]
    pair = flat.unflatten(outs), flat.unflatten(out_dots)
    return (*pair, flat.aux(outs)) if has_aux else pair


def _tangents(what: str, tangents: Any, primals: Any, in_tree: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    leaves, tree = trees.flatten(tangents)
    if tree != in_tree:
        check_same_structure(primals, tangents, ("primals", "tangents"), what)
    return [tangent_like(t, aval, what, leaf_name("tangents", tangents, i) if t is not None else "", "its primal")
            if getattr(t, "aval", None) is not aval else t for i, (t, aval) in enumerate(zip(leaves, avals, strict=True))]


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and its derivative there as a function of tangents; aux if there is one.

    >>> import corejax as cj
    >>> y, f_lin = cj.linearize(lambda x: x * x, 3.0)
    >>> f_lin(1.0), f_lin(10.0)
    (Array(6.0, dtype=float64), Array(60.0, dtype=float64))
    """
    check_callable(fun, "linearize")
    leaves, in_tree = trees.flatten(primals)
    xs = values(leaves, "linearize", "primals", primals)
    flat = FlatFun(fun, in_tree, "linearize", has_aux)
    outs, linear_map = linearizing.linearize(flat, xs)
    linear_map.outs = linear_map.outs[: flat.n_outs]
    in_avals, out_avals = [x.aval for x in xs], [x.aval for x in outs[: flat.n_outs]]

    def f_lin(*tangents: Any) -> Any:
        dots = _tangents("linearize", tangents, in_tree.unflatten(in_avals), in_tree, [a.tangent for a in in_avals])
        results = linear_map(*dots)
        return flat.unflatten([finish_cotangent(t, aval) for t, aval in zip(results, out_avals, strict=True)])

    pair = flat.unflatten(outs), f_lin
    return (*pair, flat.aux(outs)) if has_aux else pair


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun` at `primals`, and its pullback: cotangent of the value to a tuple of cotangents, one for
    each of `primals`; aux follows if there is one.

    >>> import corejax as cj
    >>> y, pullback = cj.vjp(lambda x, y: x * y, 3.0, 4.0)
    >>> pullback(1.0)
    (Array(4.0, dtype=float64), Array(3.0, dtype=float64))
    """
    check_callable(fun, "vjp")
    leaves, in_tree = trees.flatten(primals)
    xs = values(leaves, "vjp", "primals", primals)
    flat = FlatFun(fun, in_tree, "vjp", has_aux)
    outs, pull = reverse.vjp(flat, xs)
    pullback = _pullback(flat, pull, in_tree, [x.aval for x in xs], [x.aval for x in outs[: flat.n_outs]],
                         len(outs) - flat.n_outs, "vjp")
    pair = flat.unflatten(outs), pullback
    return (*pair, flat.aux(outs)) if has_aux else pair


def _pullback(flat: FlatFun, pull: Callable[[Sequence[Any]], list[Any]], in_tree: Any, in_avals: Sequence[ShapedArray],
              out_avals: Sequence[ShapedArray], n_aux: int, what: str) -> Callable[[Any], Any]:
    """`pull` on pytrees, with its argument checked."""
    def pullback(ct: Any) -> Any:
        leaves, tree = trees.flatten(ct) if flat.out_tree is not None or not is_single_leaf(ct) else ([ct], None)
        if tree != flat.out_tree:
            check_same_structure(flat.unflatten(out_avals), ct, ("the output", "the cotangent"), what)
        cts = [tangent_like(x, aval.tangent, what, leaf_name("the cotangent", ct, i), "the output")
               if getattr(x, "aval", None) is not aval.tangent else x
               for i, (x, aval) in enumerate(zip(leaves, out_avals, strict=True))]
        cts += [forward.Zero(aval) for aval in _aux_avals[:n_aux]] if n_aux else []
        back = pull(cts)
        return in_tree.unflatten([finish_cotangent(x, aval) for x, aval in zip(back, in_avals, strict=True)])
    return pullback
