"""One call of a function with derivatives of its own, as a function of flat arrays with derivatives of those.

Here the user's functions are called, and what they return is checked. All calls have this form:

    primal(args) -> outs
    jvp(primals, tangents) -> outs, out_tangents          tangents may be `Zero`
    fwd(primals, nonzero) -> outs, residuals, pullback    `nonzero`: which primals have a tangent
    pullback.bwd(residuals, cotangents) -> cotangents of the primals, `Zero` among them

and know the types of their results, `out_avals`, when they have run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from corejax.core import (
    Array,
    Jaxpr,
    ShapedArray,
    Tracer,
    Zero,
    aval_of,
    call_user,
    dtypes,
    flatten,
    here,
    instantiate,
    namer,
    values,
)
from corejax.errors import CorejaxError, CorejaxTypeError, LeakedTracerError, kind_of
from corejax.ir import atom
from corejax.plugin import roles
from corejax_control_flow._mismatch import leaf_paths, shown, tree_difference

Rule = Callable[..., Any]


class Rules:
    """A function with what its author says of its derivatives."""

    def __init__(self, fun: Callable[..., Any], name: str) -> None:
        self.fun, self.name = fun, name
        self.jvp: Rule | None = None
        self.fwd: Rule | None = None
        self.bwd: Rule | None = None
        self.jvp_sees_zeros = self.vjp_sees_zeros = False
        self.identity = object()  # stands for it in keys, which outlive it


class PerturbedPrimal:
    """What a `fwd` rule with `symbolic_zeros=True` gets for each array: `.value`, and whether it is `.perturbed`."""

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"PerturbedPrimal(value={self.value!r}, perturbed={self.perturbed})"


class UserCall:
    """A call of the user's function with arguments of a given structure; `fixed` are those that are no data."""

    n_consts = 0

    def __init__(self, rules: Rules, in_tree: Any, n_args: int, fixed: Mapping[int, Any]) -> None:
        self.rules, self.name = rules, rules.name
        self.in_tree, self.n_args, self.fixed = in_tree, n_args, fixed
        self.has_jvp, self.has_vjp = rules.jvp is not None, rules.fwd is not None
        self.out_tree: Any = None
        self.out_avals: Sequence[ShapedArray] | None = None
        self._is_traced = False
        self._key: Any = object()

    def __corejax_key__(self) -> Any:
        return self._key

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {hook} rule of {self.name}"

    def as_program(self, jaxpr: Jaxpr, n_consts: int) -> UserCall:
        """The same call, which has a program: its rules have to return outputs of the same types."""
        call = copy(self)
        call.out_avals, call.n_consts, call._is_traced = jaxpr.out_avals, n_consts, True
        call._key = _key_of((self.rules.identity, self.in_tree), self.fixed.items())
        return call

    # Calls

    def function(self) -> Callable[..., Any]:
        """The function of those arguments that are data."""
        fun = self.rules.fun
        return fun if not self.fixed else lambda *args: fun(*self._with_fixed(args))

    def primal(self, args: Sequence[Any]) -> list[Any]:
        out = _call(self.rules.fun, self._with_fixed(self.in_tree.unflatten(args)), self.name)
        return self._outputs(out, self.name)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        what = f"the jvp rule of {self.name}"
        dots = tangents if self.rules.jvp_sees_zeros else [_array(t) for t in tangents]
        args = (*self.fixed.values(), self.in_tree.unflatten(primals), self.in_tree.unflatten(dots))
        out, out_dot = _pair(_call(self.rules.jvp, args, what), what, "(output, tangent of the output)")
        outs = self._outputs(out, what)
        leaves, tree = flatten(out_dot)
        other = tree_difference(tree, self.out_tree)
        if other is not None:
            raise CorejaxTypeError(f"{what} returns a tangent of another structure than the output, at {other.path}"
                                   .removesuffix(", at "), got=f"{other.got}, in {shown(tree)}", where=here(),
                                   wanted=f"{other.wanted}, in {shown(self.out_tree)}",
                                   todo="return the tangent in the containers of the output")
        return outs, _fitted(leaves, [x.aval.tangent for x in outs], [f"the output{p}" for p in leaf_paths(tree)],
                             f"{what} returns a tangent", "its output")

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], UserPullback]:
        what = f"the fwd rule of {self.name}"
        leaves: Sequence[Any] = primals
        if self.rules.vjp_sees_zeros:
            leaves = [PerturbedPrimal(x, bool(nz)) for x, nz in zip(primals, nonzero, strict=True)]
        result = _call(self.rules.fwd, self._with_fixed(self.in_tree.unflatten(leaves)), what)
        out, kept = _pair(result, what, "(output, residuals)")
        outs = self._outputs(out, what)
        pullback = UserPullback(self, kept, [x.aval.tangent for x in primals])
        return outs, pullback.residuals_of(kept), pullback

    # Arguments and results

    def _with_fixed(self, args: Sequence[Any]) -> tuple[Any, ...]:
        rest = iter(args)
        return tuple([self.fixed[i] if i in self.fixed else next(rest) for i in range(self.n_args)])

    def _outputs(self, out: Any, what: str) -> list[Any]:
        """The leaves of an output as arrays; of the types that the program has, if there is one."""
        leaves, tree = flatten(out)
        outs = values(leaves, what, namer("the output", out))
        if not self._is_traced:
            self.out_tree, self.out_avals = tree, [x.aval for x in outs]
            return outs
        other = tree_difference(tree, self.out_tree)
        if other is not None:
            raise CorejaxTypeError(f"{what} returns an output of another structure than {self.name}, at {other.path}"
                                   .removesuffix(", at "), got=f"{other.got}, in {shown(tree)}", where=here(),
                                   wanted=f"{other.wanted}, in {shown(self.out_tree)}",
                                   todo=f"return the output in the containers in which {self.name} returns it")
        wanted = self.out_avals or ()
        wrong = [i for i, (x, aval) in enumerate(zip(outs, wanted, strict=True)) if not x.aval.matches(aval)]
        if wrong:
            paths = leaf_paths(tree)
            raise CorejaxTypeError(
                f"{what} returns an output of another type than {self.name}", where=here(),
                got="; ".join([f"{outs[i].aval} for the output{paths[i]}" for i in wrong]),
                wanted="; ".join([f"{wanted[i]} for the output{paths[i]}" for i in wrong]),
                todo=f"return what {self.name} returns for the same arguments")
        return [x if x.aval is aval else roles.convert(x, aval.dtype, aval.weak_type)
                for x, aval in zip(outs, wanted, strict=True)]


class UserPullback:
    """What waits for cotangents: the `bwd` rule, and what `fwd` keeps for it that is no array."""

    def __init__(self, call: UserCall, kept: Any, in_avals: Sequence[ShapedArray]) -> None:
        self.call, self.name = call, call.name
        self.in_avals, self.out_avals, self.out_tree = in_avals, tuple(call.out_avals or ()), call.out_tree
        leaves, self._tree = flatten(kept)
        self._statics = [None if _is_array(x) else (x,) for x in leaves]
        self.n_residuals = self._statics.count(None)
        self._key: Any = None

    def __corejax_key__(self) -> Any:
        if self._key is None:
            call = self.call
            self._key = _key_of((call.rules.identity, call.in_tree, call._is_traced, self.out_tree, self._tree,
                                 *self.in_avals, *self.out_avals), [*call.fixed.items(), *self._statics])
        return self._key

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {'bwd' if hook == 'transpose' else hook} rule of {self.name}"

    def residuals_of(self, kept: Any) -> list[Any]:
        """The arrays among what `fwd` keeps."""
        arrays = [x for x in flatten(kept)[0] if _is_array(x)]
        return values(arrays, f"the fwd rule of {self.name}", lambda i: f"residual {i}")

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        call, what = self.call, f"the bwd rule of {self.name}"
        arrays = iter(residuals)
        kept = self._tree.unflatten([next(arrays) if s is None else s[0] for s in self._statics])
        cts = cotangents if call.rules.vjp_sees_zeros else [_array(ct) for ct in cotangents]
        args = (*call.fixed.values(), kept, self.out_tree.unflatten(cts))
        back = _call(call.rules.bwd, args, what)
        trees = call.in_tree.children()
        if not isinstance(back, (tuple, list)) or len(back) != len(trees):
            got = f" of {len(back)}" if isinstance(back, (tuple, list)) else ""
            raise CorejaxTypeError(
                f"{what} returns a tuple with one cotangent for each argument", got=_described(back) + got,
                wanted=f"a tuple of {len(trees)}", where=here(),
                todo="return (ct,)" if len(trees) == 1 else "return None for an argument whose cotangent is zero")
        leaves = [x for i, (ct, tree) in enumerate(zip(back, trees, strict=True)) for x in _up_to(tree, ct, i, what)]
        return _fitted(leaves, self.in_avals, [f"args{path}" for path in leaf_paths(call.in_tree)],
                       f"{what} returns a cotangent", "its argument")


def _key_of(known: tuple[Any, ...], values: Iterable[Any]) -> Any:
    """A key of these parts and of values that users gave; one of its own, if these can't be compared."""
    try:
        return *known, *[atom(x) for x in values]
    except CorejaxTypeError:
        return object()


def _call(fun: Any, args: Sequence[Any], what: str) -> Any:
    """What a function of the user's returns; if it uses a traced value that it isn't given, the error says so."""
    try:
        return call_user(fun, args, what)
    except LeakedTracerError as error:
        if not closes_over_tracers(fun):
            raise
        raise LeakedTracerError(
            f"{what} closes over a value that is being transformed", got=error.got, where=error.where,
            wanted="values that it is given", todo="make it an argument of the function: rules then get it as a "
                                                   "primal, or may keep it as a residual") from error


def closes_over_tracers(fun: Any) -> bool:
    """Does a function read traced values from the scopes around it, or as defaults?"""
    seen = [*(getattr(fun, "__defaults__", None) or ())]
    for cell in getattr(fun, "__closure__", None) or ():
        try:
            seen.append(cell.cell_contents)
        except ValueError:  # a variable that isn't set yet
            continue
    return any([holds_tracers(value) for value in seen])


def holds_tracers(value: Any) -> bool:
    """Is it a traced value, or a tuple or list with one in it?"""
    leaves = flatten(value)[0] if isinstance(value, (tuple, list)) else [value]
    return any([isinstance(x, Tracer) for x in leaves])


def _up_to(tree: Any, ct: Any, i: int, what: str) -> list[Any]:
    """The cotangents of the leaves of an argument; None stands for zeros, for a leaf or for all of it."""
    if ct is None:
        return [None] * tree.num_leaves
    try:
        return tree.flatten_up_to(ct)  # type: ignore[no-any-return]
    except ValueError as error:
        found = flatten(ct, lambda x: x is None)[1]
        other = tree_difference(found, tree)
        path, got, wanted = ("", shown(found), shown(tree)) if other is None else other
        raise CorejaxTypeError(f"{what} returns a cotangent of another structure than args[{i}], at args[{i}]{path}",
                               got=got, wanted=f"{wanted}, or None for zeros", where=here(),
                               todo="return each cotangent in the containers of its argument") from error


def _fitted(leaves: Sequence[Any], avals: Sequence[ShapedArray], paths: Sequence[str], what: str, of: str) -> list[Any]:
    """Tangents or cotangents in the types wanted, zeros as `Zero`; an error that names those that don't fit."""
    fitted = [_fit(x, aval) for x, aval in zip(leaves, avals, strict=True)]
    wrong = [i for i, x in enumerate(fitted) if x is None]
    if not wrong:
        return fitted
    integers = any([avals[i].dtype is dtypes.float0 for i in wrong])
    raise CorejaxTypeError(
        f"{what} of another type than {of}", where=here(),
        got="; ".join([f"{_described(leaves[i])} for {paths[i]}" for i in wrong]),
        wanted="; ".join([f"{avals[i]} for {paths[i]}" for i in wrong]),
        todo="for integers return np.zeros(shape, cj.float0)" if integers else
             "return an array of the shape and dtype of what it belongs to: reshape, sum or convert it")


def _fit(x: Any, wanted: ShapedArray) -> Any:
    """A tangent or cotangent as a value of the type wanted, or `Zero`; None if it doesn't fit."""
    if x is None:
        return Zero(wanted)
    if type(x) is Zero:
        return Zero(wanted) if x.aval.shape == wanted.shape else None
    try:
        aval = aval_of(x)
    except CorejaxError:
        return None
    if aval.matches(wanted) and not aval.weak_type:
        return Zero(wanted) if wanted.dtype is dtypes.float0 else values([x], "", str)[0]
    if not aval.weak_type or aval.shape != wanted.shape or wanted.dtype is dtypes.float0 or (
            dtypes.promote((aval.dtype, True), (wanted.dtype, False))[0] != wanted.dtype):
        return None
    return roles.convert(values([x], "", str)[0], wanted.dtype)


def _array(t: Any) -> Any:
    """An array for a `Zero`, also for one of float0."""
    if type(t) is Zero and t.aval.dtype is dtypes.float0:
        return Array.from_host(np.zeros(t.aval.shape, dtypes.float0), t.aval)
    return instantiate(t)


def _is_array(x: Any) -> bool:
    return hasattr(x, "aval") or isinstance(x, (np.ndarray, np.generic))


def _pair(result: Any, what: str, wanted: str) -> tuple[Any, Any]:
    if isinstance(result, (tuple, list)) and len(result) == 2:
        return result[0], result[1]
    got = f" of {len(result)}" if isinstance(result, (tuple, list)) else ""
    raise CorejaxTypeError(f"{what} returns a pair", got=_described(result) + got, wanted=wanted, where=here(),
                           todo="return both, the output first")


def _described(x: Any) -> str:
    try:
        return str(aval_of(x))
    except CorejaxError:
        return kind_of(x)
