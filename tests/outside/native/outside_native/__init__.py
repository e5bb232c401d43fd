"""Tridiagonal systems for corejax, solved in C++."""

import numpy as np

from corejax import lax
from corejax.core import to_dim
from corejax.plugin import Sample, define, hookimpl, partials, refused

__all__ = ["tridiagonal_solve"]


def _shifted(x, by):
    """x[i + by] at i, and 0 where there is none, along the last axis."""
    return lax.pad(x, 0.0, [(0, 0, 0)] * (x.ndim - 1) + [(-by, by, 0)])


def _of(term):
    """The derivative by a diagonal: its tangent times the solution, `term`, on the other side."""
    return lambda tangent, out, below, middle, above, b: tridiagonal_solve(below, middle, above, -tangent * term(out))


class TridiagonalSolve:
    """x with below[i] x[i - 1] + middle[i] x[i] + above[i] x[i + 1] = b[i], along the last axis, without pivoting."""

    name = "tridiagonal_solve"
    operands = ("below", "middle", "above", "b")
    not_linear_in = (0, 1, 2)
    jvp = partials(_of(lambda x: _shifted(x, -1)), _of(lambda x: x), _of(lambda x: _shifted(x, 1)),
                   lambda b_dot, out, below, middle, above, b: tridiagonal_solve(below, middle, above, b_dot))

    @hookimpl
    def abstract_eval(self, avals):
        below, middle, above, b = avals
        if b.dtype not in (np.float32, np.float64) or not b.shape or any(
                (x.shape, x.dtype) != (b.shape, b.dtype) for x in (below, middle, above)):
            raise refused(self.name, "wrong operands", got=", ".join(map(str, avals)),
                          wanted="four arrays of one shape, of float32 or float64",
                          todo="give the diagonals the length of b: below[0] and above[-1] are not read")
        return b.update(weak_type=all(x.weak_type for x in avals))

    @hookimpl
    def transpose(self, cotangents, args):
        below, middle, above, _ = args
        return [None, None, None, tridiagonal_solve(_shifted(above, -1), middle, _shifted(below, 1), cotangents)]

    @hookimpl
    def vmap(self, axis, args, dims):
        return tridiagonal_solve(*[to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]), 0

    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.custom_call("outside-native.tridiagonal_solve", args, aliases={3: 0})[0]

    @hookimpl
    def samples(self, rng):
        x = rng.uniform(1.0, 2.0, (4, 2, 5))
        middle = x[1] + 5.0
        full = np.eye(5) * middle[:, None] + np.eye(5, k=-1) * x[0][:, :, None] + np.eye(5, k=1) * x[2][:, :, None]
        solved = np.linalg.solve(full, x[3][:, :, None])[:, :, 0]
        yield Sample([x[0], middle, x[2], x[3]], results=solved)
        yield Sample([np.ones(1), np.array([2.0]), np.ones(1), np.array([4.0])], results=np.array([2.0]))
        yield Sample([np.ones(3), np.ones(3), np.ones(2), np.ones(3)], error=TypeError)


tridiagonal_solve = define(TridiagonalSolve())
