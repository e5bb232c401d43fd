"""Loops as Python runs them, with values: while `config.disable_jit` is on.

What a compiled loop checks once, and what it converts once, is checked and converted in each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from corejax.core import ShapedArray, aval_of, call_user, dtypes, flatten, here, name_of, namer, values
from corejax.errors import ConcretizationError, CorejaxTypeError
from corejax.plugin import carrying, roles, structures


class Carried:
    """What a loop carries: `value`, as the next step takes it, and `result`, as the last one returned it."""

    def __init__(self, what: str, init: Any, root: str) -> None:
        self.what, self.root = what, root
        leaves, self.tree = flatten(init)
        self.leaves = values(leaves, what.partition(":")[0], namer(root, init))
        self.results = self.leaves

    @property
    def value(self) -> Any:
        return self.tree.unflatten(self.leaves)

    @property
    def result(self) -> Any:
        return self.tree.unflatten(self.results)

    def step(self, f: Callable[..., Any], *args: Any, carry_of: Callable[[Any], Any] = lambda result: result) -> Any:
        """Take a step: call `f(*args, value)`, which returns the next value, or what `carry_of` takes that from.

        If it promotes Python numbers, it is taken again from promoted ones, as in a program.
        """
        while True:
            result = call_user(f, (*args, self.value), self.what)
            new = carry_of(result)
            leaves, tree = flatten(new)
            leaves = values(leaves, self.what, namer("result", new))
            given = self._promoted([aval_of(x) for x in leaves])
            structures.check_carry(self.what, self.tree, [aval_of(x) for x in given], tree,
                                   [aval_of(x) for x in leaves], self.root)
            if all([x is old for x, old in zip(given, self.leaves, strict=True)]):
                break
            self.leaves = given
        self.results = leaves
        self.leaves = [x if (aval := aval_of(x)).weak_type is (weak := aval_of(old).weak_type) else
                       roles.convert(x, aval.dtype, weak) for x, old in zip(leaves, given, strict=True)]
        return result

    def _promoted(self, avals: Sequence[ShapedArray]) -> list[Any]:
        """The leaves, Python numbers promoted to these types."""
        return carrying.settle(self.leaves, lambda _: (None, avals))[0]

    def ends(self, cond: Callable[[Any], Any], body: Callable[[Any], Any], check: Callable[..., None],
             most: float = inf) -> bool:
        """Run a while loop to its end, or, False, until a transformation hides what the condition says.

        `check` raises for types of the condition's results that aren't those of a boolean. At most so many steps are
        taken.
        """
        what, steps = f"{self.what.partition(':')[0]}: the condition", 0
        while True:
            leaves, tree = flatten(call_user(cond, (self.value,), what))
            leaves = values(leaves, what, lambda _: "result")
            check([aval_of(x) for x in leaves], tree, name_of(cond))
            try:
                going = bool(leaves[0])
            except ConcretizationError:
                return False
            if not going or steps == most:
                return True
            self.step(body)
            steps += 1


def mapped(what: str, f: Callable[[Any], Any], xs: Any, length: int) -> Any:
    """The results of `f` for each slice of the arrays in `xs`, stacked."""
    leaves, tree = flatten(xs)
    return _stacked(what, [call_user(f, (tree.unflatten([roles.index(x, i) for x in leaves]),), what)
                           for i in range(length)])


def scanned(f: Callable[[Any, Any], Any], carry: Carried, xs: Any, length: int, reverse: bool) -> tuple[Any, Any]:
    """The last carry, and what the steps return beside it, stacked."""
    leaves, tree = flatten(xs)
    ys = []
    for i in range(length)[::-1 if reverse else 1]:
        x = tree.unflatten([roles.index(x, i) for x in leaves])
        ys.append(carry.step(lambda x, c: call_user(f, (c, x), carry.what), x, carry_of=_carry_of)[1])
    return carry.result, _stacked("scan: the body", ys[::-1] if reverse else ys)


def _stacked(what: str, results: Sequence[Any]) -> Any:
    """The results of steps, at least one, stacked; numbers are promoted to what others are."""
    first, tree = flatten(results[0])
    rows = []
    for result in results:
        leaves, found = flatten(result)
        difference = structures.tree_difference(found, tree)
        if difference is not None:
            raise _differ(what, difference.path, difference.got, difference.wanted)
        rows.append(values(leaves, what, namer("result", result)))
    return tree.unflatten([roles.stack(_joined(what, structures.leaf_paths(tree)[i], [row[i] for row in rows]))
                           for i in range(len(first))])


def _carry_of(result: Any) -> Any:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise CorejaxTypeError("scan: the body must return a pair", got=f"{result!r:.60}", where=here(),
                               wanted="(carry, y), where y may be None",
                               todo="return the next carry and what to stack: `return carry, y`")
    return result[0]


def _joined(what: str, path: str, xs: Sequence[Any]) -> list[Any]:
    """Values of one type: that to which their types are promoted."""
    avals: list[ShapedArray] = [aval_of(x) for x in xs]
    dtype, weak = avals[0].dtype, avals[0].weak_type
    for aval in avals[1:]:
        if aval.shape != avals[0].shape:
            raise _differ(what, path, str(aval), str(avals[0]))
        if (aval.dtype, aval.weak_type) != (dtype, weak):
            dtype, weak = dtypes.promote((dtype, weak), (aval.dtype, aval.weak_type))
    return [x if (aval.dtype, aval.weak_type) == (dtype, weak) else roles.convert(x, dtype, weak)
            for x, aval in zip(xs, avals, strict=True)]


def _differ(what: str, path: str, got: str, wanted: str) -> CorejaxTypeError:
    return CorejaxTypeError(f"{what} returns something else than in the first step, at result{path}", got=got,
                            wanted=wanted, where=here(), todo="return the same structure and shapes in each step")
