"""`corejax.custom_batching`: functions whose author says how they are mapped.

>>> import numpy as np, corejax as cj
>>> from corejax import lax
>>> from corejax.custom_batching import custom_vmap
>>> @custom_vmap
... def total(x):
...     return x.sum()
>>> @total.def_vmap
... def rule(axis_size, in_batched, x):
...     return lax.reduce(x, 0.0, lax.add, (1,)), True
>>> cj.vmap(total)(np.ones((2, 3)))
Array([3., 3.], dtype=float64)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, Generic, ParamSpec, TypeVar

from corejax import tree
from corejax.core import call_user, check_callable, context, flatten, here, name_of, namer, values
from corejax.errors import CorejaxAttributeError, CorejaxTypeError, kind_of
from corejax.plugin import public
from corejax_control_flow._closures import Reached
from corejax_control_flow._outer_values import opened, outer_values
from corejax_control_flow._positional import Positional
from corejax_control_flow._vmap_rules import UserMap, VmapRule
from corejax_control_flow.roles import sequential_map
from corejax_control_flow.vmapping import custom_vmap_call

__all__ = ["custom_vmap", "sequential_vmap"]

NAMESPACE = "custom_batching"

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


@public
class custom_vmap(Generic[P, R]):
    """A function whose author says how it is mapped: `rule(axis_size, in_batched, *args) -> (output, out_batched)`.

    Set the rule with `fun.def_vmap(rule)`. Arguments are pytrees of arrays; `in_batched` is a list of the same trees of
    booleans: where True, the array has the mapped axis, in front. The rule returns the output for all elements, and a
    tree like it of booleans: where False, that part is the same for all.

    Derivatives are those of the function, and where it is mapped those of what the rule computes, by both modes.
    Reverse mode computes the function a second time.

    >>> import numpy as np, corejax as cj
    >>> from corejax import lax
    >>> from corejax.custom_batching import custom_vmap
    >>> @custom_vmap
    ... def dot(x, y):
    ...     return lax.dot(x, y)
    >>> @dot.def_vmap
    ... def rule(axis_size, in_batched, x, y):
    ...     if in_batched == [True, False]:
    ...         return lax.dot(x, y), True
    ...     x, y = [z if b else lax.broadcast(z, (axis_size,)) for z, b in zip((x, y), in_batched)]
    ...     return (x * y).sum(1), True
    >>> x, y = np.ones((2, 3)), np.arange(3.0)
    >>> cj.vmap(dot, (0, None))(x, y), cj.vmap(cj.grad(dot), (0, None))(x, y)
    (Array([3., 3.], dtype=float64), Array([[0., 1., 2.],
           [0., 1., 2.]], dtype=float64))
    """

    fun: Callable[P, R]
    """The function itself."""
    vmap_rule: Callable[..., Any] | None
    """What `def_vmap` set."""

    def __init__(self, fun: Callable[P, R]) -> None:
        check_callable(fun, "custom_vmap")
        update_wrapper(self, fun)
        self.__dict__.pop("implementation", None)  # of a function with custom derivatives: this isn't that function
        self.fun, self.vmap_rule = fun, None
        self._rules = VmapRule(fun, name_of(fun))
        self._by_position = Positional(fun, "custom_vmap")

    def def_vmap(self, vmap_rule: S) -> S:
        """Set the rule `vmap_rule(axis_size, in_batched, *args) -> (output, out_batched)`; usable as a decorator."""
        if not callable(vmap_rule):
            raise CorejaxTypeError("def_vmap: a rule must be a function", where=here(), wanted="a callable",
                                   got=f"{kind_of(vmap_rule)}: {vmap_rule!r:.80}",
                                   todo="pass the function itself: def_vmap(rule)")
        self.vmap_rule = self._rules.rule = vmap_rule
        self._rules.identity = object()  # programs made before have the old one
        return vmap_rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        rules = self._rules
        if rules.rule is None:
            raise CorejaxAttributeError(f"custom_vmap: {rules.name} is called before it has a rule", where=here(),
                                        got="no rule for vmap", todo="define the rule next to the function",
                                        wanted=f"{rules.name}.def_vmap(rule) before the first call")
        by_position = self._by_position(args, kwargs)
        leaves, in_tree = flatten(by_position)
        xs = values(leaves, rules.name, namer("args", by_position))
        if context.trace.knows_values:  # nothing maps it
            out = call_user(self.fun, in_tree.unflatten(xs), rules.name)
            outs, out_tree = flatten(out)
            return out_tree.unflatten(values(outs, rules.name, namer("the output", out)))  # type: ignore[no-any-return]
        jaxpr, consts, names, out_tree, found = opened(
            self.fun, [x.aval for x in xs], in_tree, rules.name, self._reached)
        call = UserMap(rules, in_tree, out_tree, jaxpr, found).closing_over(consts, names)
        outs = custom_vmap_call.primitive.bind(*consts, *xs, call=call, jaxpr=jaxpr)
        return out_tree.unflatten(outs)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        fun = self.__dict__.get("fun")
        if not name.startswith("_") and hasattr(type(fun), "__corejax_reads__"):
            return getattr(fun, name)  # such as `defvjp`
        raise AttributeError(f"'custom_vmap' object has no attribute {name!r}", name=name, obj=self)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<custom_vmap {self._rules.name}>"

    def __corejax_reads__(self) -> list[Any]:
        return [self.fun, self.vmap_rule]

    def _reached(self) -> Reached:
        return outer_values(self.__corejax_reads__(), self)


@public
def sequential_vmap(fun: Callable[P, R]) -> custom_vmap[P, R]:
    """A function that is mapped by a loop: for one that has no efficient map, or that needs too much memory for one.

    >>> import numpy as np, corejax as cj
    >>> from corejax import lax
    >>> from corejax.custom_batching import sequential_vmap
    >>> @sequential_vmap
    ... def f(x):
    ...     return lax.cond(x > 1.0, lambda: 10.0 * x, lambda: x)
    >>> cj.vmap(f)(np.array([1.0, 2.0]))
    Array([ 1., 20.], dtype=float64)
    """
    mapped_one_by_one = custom_vmap(fun)

    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> Any:
        leaves, in_tree = flatten(args)
        flags = flatten(in_batched)[0]
        trees: list[Any] = []
        again: Any = mapped_one_by_one  # there may be another map around this one

        def one(slices: Any) -> list[Any]:
            rest = iter(slices)
            xs = [next(rest) if flag else x for x, flag in zip(leaves, flags, strict=True)]
            outs, out_tree = flatten(again(*in_tree.unflatten(xs)))
            trees[:] = [out_tree]
            return outs

        outs = sequential_map(one, [x for x, flag in zip(leaves, flags, strict=True) if flag])
        out = trees[0].unflatten(outs)
        return out, tree.map(lambda _: True, out)

    mapped_one_by_one.def_vmap(rule)
    return mapped_one_by_one
