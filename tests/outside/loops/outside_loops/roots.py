"""Roots by Newton's method, whose derivatives are those of the root, not of the steps."""

import numpy as np

from corejax import lax
from corejax.core import Zero, aval_of, jvp_jaxpr, to_dim, vmap_jaxpr
from corejax.plugin import Sample, carrying, define, hookimpl, not_linear, refused

__all__ = ["newton"]


class Newton:
    """newton(f, start): where f is zero, for each element of its argument by itself; found in at most 50 steps."""

    name = "newton"
    symbolic_zeros = True
    transpose = not_linear("the root is found, not computed linearly; its derivative is by other primitives")

    def function(self, bind):
        def newton(f, start, tolerance=1e-10):
            step = carrying.stage_step(f, start, "newton: the function", root="start")
            if len(step.carry) != 1:
                raise refused(self.name, "start must be one array", got=start, wanted="an array", todo="stack them")
            return bind(*step.consts, *step.carry, jaxpr=step.jaxpr, tolerance=tolerance)
        return newton

    @hookimpl
    def decompose(self, args, *, jaxpr, tolerance):
        *fixed, start = args
        carrying.check_operands(self.name, jaxpr, list(map(aval_of, args)))

        def step(state):
            i, x, _ = state
            change = carrying.run(jaxpr, [*fixed, x])[0] / self._slope(jaxpr, fixed, x)
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
        a, x = np.array([1.0, 2.0, -3.0]), np.zeros(3)
        cube = carrying.stage_call(lambda a, x: x * x * x + x - a, (a, x), "the sample")
        yield Sample([a, x], {"jaxpr": cube.jaxpr, "tolerance": 1e-12}, domain=((-2.0, 2.0), None),
                     results=np.array([0.6823278038280193, 1.0, -1.2134116627622296]))
        yield Sample([a, x], {"jaxpr": cube.jaxpr, "tolerance": 1e-13}, domain=((-2.0, 2.0), None), atol=1e-14)

    def _slope(self, jaxpr, fixed, x):
        return self._tangent(jaxpr, [*fixed, x], [*map(Zero, jaxpr.in_avals[:-1]), lax.full_like(x, 1.0)])

    def _tangent(self, jaxpr, operands, tangents):
        """The tangent of the function's value, or None if there is none."""
        program, (moves,) = jvp_jaxpr(jaxpr, carrying.nonzero(tangents))
        outs = carrying.run(program, [*operands, *carrying.without_zeros(tangents)])
        return outs[1] if moves else None

    def _bind(self, operands, jaxpr, tolerance):
        return newton.primitive.bind(*operands, jaxpr=jaxpr, tolerance=tolerance)


newton = define(Newton())
