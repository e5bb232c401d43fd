"""Roots by Newton's method, whose derivatives are those of the root, not of the steps."""

import numpy as np

from corejax import lax
from corejax.core import (
    ShapedArray,
    Zero,
    eval_jaxpr,
    flatten,
    jvp_jaxpr,
    namer,
    stage_function,
    to_dim,
    values,
    vmap_jaxpr,
)
from corejax.plugin import Sample, carrying, define, hookimpl, not_linear, refused

__all__ = ["newton"]


class Newton:
    """newton(f, start): where f is zero, for each element of its argument by itself; found in at most 50 steps."""

    name = "newton"
    symbolic_zeros = True
    transpose = not_linear("the root is found, not computed linearly; its derivative is by other primitives")

    def function(self, bind):
        def newton(f, start, tolerance=1e-10):
            leaves, in_tree = flatten((start,))

            def stage(avals):
                staged = stage_function(f, avals, in_tree, "newton: the function")
                return staged, staged.jaxpr.out_avals

            xs, staged = carrying.settle(values(leaves, "newton", namer("start", start)), stage)
            return bind(*staged.consts, *xs, jaxpr=staged.jaxpr, tolerance=tolerance)
        return newton

    @hookimpl
    def abstract_eval(self, avals, *, jaxpr, tolerance):
        carrying.check_operands(self.name, jaxpr, avals)
        start, values = avals[-1], jaxpr.out_avals
        if len(values) != 1 or not values[0].matches(start):
            raise refused(self.name, "the function returns another type than it takes", got=", ".join(map(str, values)),
                          wanted=str(start), todo="return one array like the argument")
        return start.update(weak_type=start.weak_type and values[0].weak_type)

    @hookimpl
    def decompose(self, args, *, jaxpr, tolerance):
        *fixed, start = args

        def step(state):
            i, x, _ = state
            change = self._value(jaxpr, fixed, x) / self._slope(jaxpr, fixed, x)
            return i + 1, x - change, abs(change)

        def goes_on(state):
            i, x, change = state
            return (i < 50) & (change > tolerance * (1.0 + abs(x))).any()

        return lax.while_loop(goes_on, step, (0, start, lax.full_like(start, np.inf)))[1]

    @hookimpl
    def jvp(self, primals, tangents, *, jaxpr, tolerance):
        *fixed, _ = primals
        root = self._bind(primals, jaxpr, tolerance)
        moved = self._tangent(jaxpr, [*fixed, root], [*tangents[:-1], Zero(root.aval)])
        return root, Zero(root.aval) if moved is None else -moved / self._slope(jaxpr, fixed, root)

    @hookimpl
    def vmap(self, axis, args, dims, *, jaxpr, tolerance):
        start = to_dim(args[-1], dims[-1], 0, axis.size)
        program, _ = vmap_jaxpr(jaxpr, axis.size, axis.name, [*dims[:-1], 0], [0])
        return self._bind([*args[:-1], start], program, tolerance), 0

    @hookimpl
    def effects(self, avals, *, jaxpr, tolerance):
        return jaxpr.effects

    @hookimpl
    def samples(self, rng):
        avals, tree = [ShapedArray((3,), "float64")] * 2, flatten((0.0, 0.0))[1]
        cube = stage_function(lambda a, x: x * x * x + x - a, avals, tree, "the sample").jaxpr
        yield Sample([np.array([1.0, 2.0, -3.0]), np.zeros(3)], {"jaxpr": cube, "tolerance": 1e-12},
                     domain=((-2.0, 2.0), None))

    def _value(self, jaxpr, fixed, x):
        return eval_jaxpr(jaxpr, (), *fixed, x)[0]

    def _slope(self, jaxpr, fixed, x):
        return self._tangent(jaxpr, [*fixed, x], [*map(Zero, jaxpr.in_avals[:-1]), lax.full_like(x, 1.0)])

    def _tangent(self, jaxpr, operands, tangents):
        """The tangent of the function's value, or None if there is none."""
        nonzero = [type(t) is not Zero for t in tangents]
        program, (moves,) = jvp_jaxpr(jaxpr, nonzero)
        outs = eval_jaxpr(program, (), *operands, *[t for t in tangents if type(t) is not Zero])
        return outs[1] if moves else None

    def _bind(self, operands, jaxpr, tolerance):
        return newton.primitive.bind(*operands, jaxpr=jaxpr, tolerance=tolerance)


newton = define(Newton())
