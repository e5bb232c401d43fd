"""A call of a function whose author says how it is mapped: the rule, with checks of what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax.core import Axis, Jaxpr, ShapedArray, aval_of, flatten, here, namer, to_dim, values, with_axis
from corejax.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import carrying, roles, structures
from corejax_control_flow._closing import Closing, key_of
from corejax_control_flow._closures import Reached
from corejax_control_flow._rule_results import pair

Dims = Sequence[int | None]
Mapped = tuple[list[Any], list[int | None]]
"""Results of a mapped call, and where the axis is in each."""


class VmapRule:
    """A function, with its author's rule for mapping it."""

    def __init__(self, fun: Callable[..., Any], name: str) -> None:
        self.fun, self.name = fun, name
        self.rule: Callable[..., Any] | None = None
        self.identity = object()  # represents it in keys, which outlive it


class UserMap(Closing):
    """A call of the user's function, which is mapped by the user's rule."""

    linear: tuple[bool, ...] = ()
    """In which operands it is linear: in none, as far as anybody knows."""

    def __init__(self, rules: VmapRule, in_tree: Any, out_tree: Any, jaxpr: Jaxpr, found: Reached) -> None:
        """`found` is what the function and its rule read."""
        super().__init__()
        self.rules, self.name = rules, rules.name
        self.in_tree, self.out_tree, self.out_avals = in_tree, out_tree, jaxpr.out_avals
        self.is_unlike = found.key is None
        if found.key is not None:
            self.key = key_of((rules.identity, in_tree, found.key), ())

    def __corejax_rule__(self, hook: str) -> str:
        return f"the {'def_vmap' if hook == 'vmap' else hook} rule of {self.name}"

    def map(self, axis: Axis, args: Sequence[Any], dims: Dims) -> Mapped:
        """The results for operands that are mapped along the axis, by the rule."""
        n, what = self.n_consts, f"the def_vmap rule of {self.name}"
        mapped = [d is not None for d in dims]
        if True in mapped[:n]:
            raise self._closes_over_mapped(mapped[:n], args)
        xs = [x if d is None else to_dim(x, d, 0, axis.size) for x, d in zip(args[n:], dims[n:], strict=True)]
        given = (axis.size, [*self.in_tree.unflatten(mapped[n:])], *self.in_tree.unflatten(xs))
        rule: Any = self.rules.rule
        out, batched = pair(self.run(args[:n], rule, given, what), what, "(output, what of it is batched)")
        leaves, tree = flatten(out)
        flags = self._flags(batched, tree, what)
        other = structures.tree_difference(tree, self.out_tree)
        if other is not None:
            problem = f"{what} returns an output structured differently from {self.name}'s, at {other.path}"
            raise CorejaxTypeError(problem.removesuffix(", at "), where=here(),
                                   got=f"{other.got}, in {structures.shown(tree)}",
                                   wanted=f"{other.wanted}, in {structures.shown(self.out_tree)}",
                                   todo=f"return the output in the same containers as {self.name}")
        outs = values(leaves, what, namer("the output", out))
        at = [0 if flag else None for flag in flags]
        return self._typed(outs, [with_axis(a, d, axis.size) for a, d in zip(self.out_avals, at, strict=True)], tree,
                           flags, what), at

    def _flags(self, batched: Any, tree: Any, what: str) -> list[bool]:
        """Which parts of an output of this structure are batched, as the rule says."""
        flags, own = flatten(batched)
        other = structures.tree_difference(own, tree)
        if other is not None:
            raise CorejaxTypeError(
                f"{what} doesn't say what is batched in the structure of its output, at {other.path}"
                .removesuffix(", at "), got=f"{other.got}, in {structures.shown(own)}", where=here(),
                wanted=f"{other.wanted}, in {structures.shown(tree)}",
                todo="return True or False for each part of the output: out, tree.map(lambda _: True, out)")
        wrong = [i for i, flag in enumerate(flags) if not isinstance(flag, (bool, np.bool_))]
        if wrong:
            flag, path = flags[wrong[0]], structures.leaf_paths(own)[wrong[0]]
            raise CorejaxTypeError(f"{what} must say True or False for each part of its output", where=here(),
                                   got=f"{kind_of(flag)}: {flag!r:.60} for the output{path}", wanted="True or False",
                                   todo="True where it has the batch axis, which is axis 0; False where it has none")
        return [bool(flag) for flag in flags]

    def _typed(self, outs: Sequence[Any], wanted: Sequence[ShapedArray], tree: Any, flags: Sequence[bool], what: str
               ) -> list[Any]:
        wrong = [i for i, (x, aval) in enumerate(zip(outs, wanted, strict=True)) if not x.aval.matches(aval)]
        if wrong:
            paths = structures.leaf_paths(tree)
            raise CorejaxTypeError(
                f"{what} returns an output of a different type than {self.name}, mapped", where=here(),
                got="; ".join([f"{outs[i].aval} for the output{paths[i]}" for i in wrong]),
                wanted="; ".join([f"{wanted[i]}, as it is said to be {'' if flags[i] else 'not '}batched"
                                  for i in wrong]),
                todo=f"return what {self.name} returns for each element, stacked along axis 0; or once, with False, "
                     "if it is the same for all")
        return [x if x.aval.weak_type is aval.weak_type else roles.convert(x, aval.dtype, aval.weak_type)
                for x, aval in zip(outs, wanted, strict=True)]

    def _closes_over_mapped(self, mapped: Sequence[bool], args: Sequence[Any]) -> CorejaxValueError:
        names = ", ".join(self.names_of(mapped))
        types = ", ".join([str(aval_of(x)) for x in carrying.marked(args[:len(mapped)], mapped)])
        return CorejaxValueError(
            f"{self.name} is mapped along an axis of a value that it closes over", primitive="custom_vmap_call",
            hook="vmap", got=f"{names} ({types})" if names else f"a closed-over {types}", where=here(),
            wanted="mapped arguments only: its rule isn't told what else is mapped",
            todo=f"make the value an argument of {self.name}, and of its rule")
