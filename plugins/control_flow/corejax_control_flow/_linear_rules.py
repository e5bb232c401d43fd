"""A call of a linear function whose author gives its transpose: both functions, with checks of what they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.core import Axis, ShapedArray, dtypes, flatten, here, instantiate, to_dim, vmap_flat
from corejax.errors import CorejaxTypeError
from corejax.plugin import structures
from corejax_control_flow._closing import Closing, key_of
from corejax_control_flow._closures import Reached
from corejax_control_flow._rule_results import fitted

Dims = Sequence[int | None]


class UserLinear(Closing):
    """A call of `fun(residuals, x)`, linear in x, whose transpose is `back(residuals, ct)`.

    Its operands are values that the functions close over, the residuals, then x. Of the structures and types, `x` are
    those of the linear argument, `out` those of the result. `found` is what the functions read.
    """

    def __init__(self, fun: Callable[..., Any], back: Callable[..., Any], names: tuple[str, str], residual_tree: Any,
                 x: tuple[Any, Sequence[ShapedArray]], out: tuple[Any, Sequence[ShapedArray]], found: Reached) -> None:
        super().__init__()
        self.fun, self.back, self.names = fun, back, names
        self.name = names[0]
        self.residual_tree, self.x, self.out = residual_tree, x, out
        self.is_unlike = found.key is None
        if found.key is not None:
            self.key = key_of((residual_tree, x[0], found.key), ())

    @property
    def n_fixed(self) -> int:
        """The number of operands in which it needn't be linear."""
        return self.n_consts + self.residual_tree.num_leaves  # type: ignore[no-any-return]

    def transposed(self) -> UserLinear:
        """The call of the transpose, whose transpose is this function."""
        call = self.twin()
        call.fun, call.back, call.names, call.name = self.back, self.fun, self.names[::-1], self.names[1]
        call.x, call.out = self.out, self.x
        call.key = "transposed", self.key
        return call

    def pull_back(self, fixed: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Cotangents of the linear argument from those of the result."""
        n, what, (tree, avals) = self.n_consts, self.names[1], self.x
        residuals = self.residual_tree.unflatten(fixed[n:])
        found = self.run(fixed[:n], self.back, (residuals, self.out[0].unflatten(cts)), f"linear_call: {what}")
        leaves, own = flatten(found)
        other = structures.tree_difference(own, tree)
        if other is not None:
            problem = (f"linear_call: {what} returns something structured differently than what {self.names[0]} is "
                       f"linear in, at {other.path}")
            raise CorejaxTypeError(problem.removesuffix(", at "), got=f"{other.got}, in {structures.shown(own)}",
                                   wanted=f"{other.wanted}, in {structures.shown(tree)}", where=here(),
                                   todo=f"return the containers of the argument of {self.names[0]}")
        paths = [f"the result{path}" for path in structures.leaf_paths(tree)]
        return [instantiate(ct) for ct in fitted(leaves, avals, paths, f"linear_call: {what} returns a result",
                                                 f"what {self.names[0]} is linear in")]


class MappedLinear:
    """A linear call mapped along an axis, which is in front of what it is linear in and of its results."""

    def __init__(self, call: Any, axis: Axis, fixed_dims: Dims) -> None:
        self.call, self.axis, self.fixed_dims = call, axis, tuple(fixed_dims)
        self.name, self.n_fixed = call.name, call.n_fixed

    def __corejax_key__(self) -> Any:
        name = self.axis.name
        return (self.call.__corejax_key__(), self.axis.size, None if name is None else (type(name), name),
                *self.fixed_dims)

    @property
    def __corejax_unique__(self) -> bool:
        return self.call.__corejax_unique__  # type: ignore[no-any-return]

    def __corejax_rule__(self, hook: str) -> str:
        return self.call.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def closing_over(self, values: Sequence[Any]) -> MappedLinear:
        """The same call with more operands before the others, which aren't mapped."""
        return MappedLinear(self.call.closing_over(values), self.axis, (*[None] * len(values), *self.fixed_dims))

    def transposed(self) -> MappedLinear:
        """The call of the transpose, whose transpose is this function."""
        return MappedLinear(self.call.transposed(), self.axis, self.fixed_dims)

    def pull_back(self, fixed: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Cotangents of the linear argument from those of the result."""
        n, axis = self.n_fixed, self.axis
        found, dims = vmap_flat(lambda *xs: self.call.pull_back(xs[:n], xs[n:]), axis.size, axis.name,
                                [*fixed, *cts], [*self.fixed_dims, *[0] * len(cts)])
        return [to_dim(x, d, 0, axis.size) for x, d in zip(found, dims, strict=True)]


def check_inexact(avals: Sequence[ShapedArray], what: str) -> None:
    """Raise if a linear function takes or returns something other than floats and complex numbers."""
    wrong = [str(aval) for aval in avals if not dtypes.is_inexact(aval.dtype)]
    if wrong:
        raise CorejaxTypeError(f"linear_call: {what} must be floats or complex numbers", got=", ".join(wrong),
                               wanted="what has a transpose", where=here(),
                               todo="pass integers as residual_args; write 3.0 for 3")
