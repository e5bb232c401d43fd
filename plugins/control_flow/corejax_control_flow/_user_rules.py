"""Calls of functions that have rules for their derivatives: the user's functions, with checks of what they return."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from corejax.core import Jaxpr, ShapedArray, Zero, aval_of, flatten, here, namer, values
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import carrying, roles, structures
from corejax_control_flow._closing import Closing, key_of
from corejax_control_flow._closures import Reached, reached, reached_at_once
from corejax_control_flow._rule_results import array_of_tangent, described, fitted, pair, up_to
from corejax_control_flow.symbolic_zeros import CustomVJPPrimal

Rule = Callable[..., Any]


class Rules:
    """A function, with its author's rules for its derivatives."""

    def __init__(self, fun: Callable[..., Any], name: str) -> None:
        self.fun, self.name = fun, name
        self.jvp: Rule | None = None
        self.fwd: Rule | None = None
        self.bwd: Rule | None = None
        self.jvp_sees_zeros = self.vjp_sees_zeros = self.optimize_remat = False
        self.identity = object()  # represents it in keys, which outlive it

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A decorated function isn't what its name stands for, so it can't be pickled; but that has these rules.
        place = getattr(self.fun, "__module__", None), getattr(self.fun, "__qualname__", None)
        try:
            known = _rules_at(*place)
        except (AttributeError, ImportError, TypeError, ValueError):
            known = None
        return (_rules_at, place) if known is self else super().__reduce_ex__(protocol)


def _rules_at(module: Any, path: Any) -> Rules:
    """The rules of the function with custom derivatives of this name. It may be wrapped, by `jit` for instance."""
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    while not isinstance(rules := getattr(getattr(found, "implementation", None), "rules", None), Rules):
        if not hasattr(found, "__wrapped__"):
            raise CorejaxValueError(f"{path} in {module} has no custom derivatives, but had some when it was pickled",
                                    got=kind_of(found), wanted="a function made by custom_jvp or custom_vjp",
                                    where=here(), todo="load it with the version of the module that wrote it")
        found = found.__wrapped__
    return rules


class UserCall(Closing):
    """A call of the user's function with arguments of a given structure; `fixed` are the arguments that aren't data."""

    def __init__(self, rules: Rules, in_tree: Any, n_args: int, fixed: Mapping[int, Any]) -> None:
        super().__init__()
        self.rules, self.name = rules, rules.name
        self.in_tree, self.n_args, self.fixed = in_tree, n_args, fixed
        self.has_jvp, self.has_vjp = rules.jvp is not None, rules.fwd is not None
        self.optimize_remat = rules.optimize_remat
        self.out_tree: Any = None
        self.out_avals: Sequence[ShapedArray] | None = None
        self._is_traced = False

    def as_program(self, jaxpr: Jaxpr, found: Reached | None = None) -> UserCall:
        """The same call with a program; its rules have to return outputs of the program's types.

        `found` is what its Python functions read.
        """
        call = self.twin()
        call.out_avals, call._is_traced = jaxpr.out_avals, True
        if found is not None and found.key is None:
            call.is_unlike = True
        elif found is not None:
            call.key = key_of((self.rules.identity, self.in_tree, found.key), self.fixed.items())
        return call

    # Calls

    def function(self) -> Callable[..., Any]:
        """The user's function as a function of just the arguments that are data."""
        fun = self.rules.fun
        return fun if not self.fixed else lambda *args: fun(*self._with_fixed(args))

    def primal(self, args: Sequence[Any]) -> list[Any]:
        n = self.n_consts
        out = self.run(args[:n], self.rules.fun, self._with_fixed(self.in_tree.unflatten(args[n:])), self.name)
        return self._outputs(out, self.name)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        what, n = f"the jvp rule of {self.name}", self.n_consts
        dots = tangents[n:] if self.rules.jvp_sees_zeros else [array_of_tangent(t) for t in tangents[n:]]
        args = (*self.fixed.values(), self.in_tree.unflatten(primals[n:]), self.in_tree.unflatten(dots))
        out, out_dot = pair(self.run(primals[:n], self.rules.jvp, args, what), what,
                             "(output, tangent of the output)")
        outs = self._outputs(out, what)
        leaves, tree = flatten(out_dot)
        other = structures.tree_difference(tree, self.out_tree)
        if other is not None:
            raise CorejaxTypeError(f"{what} returns a tangent of a different structure than the output, at {other.path}"
                                   .removesuffix(", at "), where=here(),
                                   got=f"{other.got}, in {structures.shown(tree)}",
                                   wanted=f"{other.wanted}, in {structures.shown(self.out_tree)}",
                                   todo="return the tangent in the containers of the output")
        paths = [f"the output{path}" for path in structures.leaf_paths(tree)]
        return outs, fitted(leaves, [x.aval.tangent for x in outs], paths, f"{what} returns a tangent", "its output")

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], UserPullback]:
        what, n = f"the fwd rule of {self.name}", self.n_consts
        leaves = primals[n:]
        if self.rules.vjp_sees_zeros:
            leaves = [CustomVJPPrimal(x, bool(nz)) for x, nz in zip(leaves, nonzero[n:], strict=True)]
        result = self.run(primals[:n], self.rules.fwd, self._with_fixed(self.in_tree.unflatten(leaves)), what)
        out, kept = pair(result, what, "(output, residuals)")
        outs = self._outputs(out, what)
        pullback = UserPullback(self, kept, [aval_of(x).tangent for x in primals], [x.aval for x in outs])
        closed = carrying.marked(primals[:n], self.is_traced_at)  # for bwd, which may run when they are gone
        return outs, [*pullback.residuals_of(kept), *closed], pullback

    # Arguments and results

    def _with_fixed(self, args: Sequence[Any]) -> tuple[Any, ...]:
        rest = iter(args)
        return tuple([self.fixed[i] if i in self.fixed else next(rest) for i in range(self.n_args)])

    def _outputs(self, out: Any, what: str) -> list[Any]:
        """The leaves of an output as arrays, checked against the program's types if there is a program."""
        leaves, tree = flatten(out)
        outs = values(leaves, what, namer("the output", out))
        if not self._is_traced:
            self.out_tree, self.out_avals = tree, [x.aval for x in outs]
            return outs
        other = structures.tree_difference(tree, self.out_tree)
        if other is not None:
            problem = f"{what} returns an output structured differently from {self.name}'s, at {other.path}"
            raise CorejaxTypeError(problem.removesuffix(", at "), where=here(),
                                   got=f"{other.got}, in {structures.shown(tree)}",
                                   wanted=f"{other.wanted}, in {structures.shown(self.out_tree)}",
                                   todo=f"return the output in the same containers as {self.name}")
        wanted = self.out_avals or ()
        wrong = [i for i, (x, aval) in enumerate(zip(outs, wanted, strict=True)) if not x.aval.matches(aval)]
        if wrong:
            paths = structures.leaf_paths(tree)
            raise CorejaxTypeError(
                f"{what} returns an output of a different type than {self.name}", where=here(),
                got="; ".join([f"{outs[i].aval} for the output{paths[i]}" for i in wrong]),
                wanted="; ".join([f"{wanted[i]} for the output{paths[i]}" for i in wrong]),
                todo=f"return what {self.name} returns for the same arguments")
        return [x if x.aval is aval else roles.convert(x, aval.dtype, aval.weak_type)
                for x, aval in zip(outs, wanted, strict=True)]


class UserPullback:
    """What waits for cotangents: the `bwd` rule, and whatever isn't an array among the residuals of `fwd`."""

    def __init__(self, call: UserCall, kept: Any, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]
                 ) -> None:
        self.call, self.name = call, call.name
        self.in_avals, self.out_avals, self.out_tree = in_avals, tuple(out_avals), call.out_tree
        leaves, self._tree = flatten(kept)
        self._statics = [None if _is_array(x) else (x,) for x in leaves]
        self._closed = call.is_traced_at
        self.n_residuals = self._statics.count(None) + self._closed.count(True)
        self._key: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_key": None}

    def __corejax_key__(self) -> Any:
        if self._key is None:
            call = self.call
            rules = [f for f in (call.rules.fun, call.rules.fwd, call.rules.bwd, call.rules.jvp) if f is not None]
            found = reached_at_once(rules, None, with_key=True) or reached(*rules)
            key = object() if found.key is None else found.key
            self._key = key_of((call.rules.identity, call.in_tree, call._is_traced, key, self.out_tree, self._tree,
                                *self.in_avals, *self.out_avals), [*call.fixed.items(), *self._statics])
        return self._key

    @property
    def __corejax_unique__(self) -> bool:
        return self.call.__corejax_unique__

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {'bwd' if hook == 'transpose' else hook} rule of {self.name}"

    def residuals_of(self, kept: Any) -> list[Any]:
        """The arrays among the residuals of `fwd`."""
        arrays = [x for x in flatten(kept)[0] if _is_array(x)]
        return values(arrays, f"the fwd rule of {self.name}", lambda i: f"residual {i}")

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        call, what = self.call, f"the bwd rule of {self.name}"
        arrays = iter(residuals)
        kept = self._tree.unflatten([next(arrays) if s is None else s[0] for s in self._statics])
        consts = [next(arrays) if traced else None for traced in self._closed]
        cts = cotangents if call.rules.vjp_sees_zeros else [array_of_tangent(ct) for ct in cotangents]
        args = (*call.fixed.values(), kept, self.out_tree.unflatten(cts))
        back = call.run(consts, call.rules.bwd, args, what)
        trees = call.in_tree.children()
        if not isinstance(back, (tuple, list)) or len(back) != len(trees):
            got = f" of {len(back)}" if isinstance(back, (tuple, list)) else ""
            raise CorejaxTypeError(
                f"{what} must return a tuple with one cotangent for each argument", got=described(back) + got,
                wanted=f"a tuple of {len(trees)}", where=here(),
                todo="return (ct,)" if len(trees) == 1 else "return None for an argument whose cotangent is zero")
        leaves = [x for i, (ct, tree) in enumerate(zip(back, trees, strict=True)) for x in up_to(tree, ct, i, what)]
        n = call.n_consts
        return [*map(Zero, self.in_avals[:n]), *fitted(
            leaves, self.in_avals[n:], [f"args{path}" for path in structures.leaf_paths(call.in_tree)],
            f"{what} returns a cotangent", "its argument", dropped=True)]

    def backward_only(self) -> CorejaxError:
        """The error for computing it forward."""
        return CorejaxTypeError(
            f"{self.name} has no rule for forward mode", primitive="custom_pullback", where=here(),
            got="jvp, jacfwd, hessian or the result of linearize, of a function with a fwd and a bwd rule",
            wanted="reverse mode: grad, vjp, jacrev", todo=f"use these; or give it a rule: {self.name}.defjvp(...)")


def _is_array(x: Any) -> bool:
    return hasattr(x, "aval") or isinstance(x, (np.ndarray, np.generic))
