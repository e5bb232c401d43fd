"""`custom_linear_solve`: the solution of a linear system, found in any way, differentiated as a solution.

At the solution A x = b. Differentiate both sides, and the tangent solves another system with the same A:

    A x_dot = b_dot - A_dot x

so the rule for the derivative binds the primitive again, and derivatives of every order follow. It is linear in b. Its
transpose solves the system with A transposed: the same primitive, with its two pairs of programs exchanged. How a
solution was found is never differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    Jaxpr,
    Linear,
    ShapedArray,
    Zero,
    aval_of,
    dtypes,
    here,
    instantiate,
    stage,
    transpose_jaxpr,
)
from corejax.errors import CorejaxError, CorejaxNotImplementedError, CorejaxTypeError
from corejax.plugin import Sample, carrying, define, hookimpl, shaping
from corejax_control_flow._branches import joined
from corejax_control_flow._equations import (
    Solved,
    Unknowns,
    change_of,
    check_function,
    check_programs,
    fitted,
    right_hand_side,
)

__all__ = ["custom_linear_solve", "linear_solve_p"]

Flags = carrying.Flags


class System(NamedTuple):
    """A linear system: programs of `consts` constants, which they share, and then one vector.

    `matvec` applies the matrix, `solve` its inverse; `vecmat` and `transpose_solve` do so with the matrix transposed,
    if that is known.
    """

    matvec: Jaxpr
    solve: Jaxpr
    vecmat: Jaxpr | None
    transpose_solve: Jaxpr | None
    consts: int

    @property
    def size(self) -> int:
        """The number of arrays in a vector."""
        return len(self.matvec.outvars)


class CustomLinearSolve(Solved):
    """`custom_linear_solve(matvec, b, solve, transpose_solve=None, symmetric=False, has_aux=False)`: A x = b.

    `matvec(x)` is A x, and is differentiable. `solve(matvec, b)` finds the solution, by whatever means; it isn't
    differentiated. `b` and the solution are pytrees of the same structure and types. Reverse mode needs
    `transpose_solve(vecmat, b)` too, which solves with the transpose of A, or `symmetric=True`. With `has_aux`, solvers
    return a pair, the solution and something else, which has no derivative. All functions may close over arrays, also
    over traced ones; derivatives are with respect to b and to what `matvec` closes over.

    >>> matrix = np.array([[2.0, 0.0], [0.0, 4.0]])
    >>> def solve(matvec, b):
    ...     return b / matvec(np.ones(2))
    >>> lax.custom_linear_solve(lambda x: lax.dot(matrix, x), np.array([1.0, 2.0]), solve, symmetric=True).tolist()
    [0.5, 0.5]
    """

    name = "custom_linear_solve"

    _kind = System
    _copies = (1, 1, 1, 1)

    def function(self, bind: Any) -> Any:
        def custom_linear_solve(matvec: Callable[[Any], Any], b: Any, solve: Callable[..., Any],
                                transpose_solve: Callable[..., Any] | None = None, symmetric: bool = False,
                                has_aux: bool = False) -> Array | Any:
            what = "custom_linear_solve"
            symmetric = shaping.as_flag(what, "symmetric", symmetric)
            has_aux = shaping.as_flag(what, "has_aux", has_aux)
            check_function(what, "matvec", matvec, "x")
            check_function(what, "solve", solve, "matvec, b")
            unknowns = Unknowns(what, "b", b)
            staged = unknowns.settle(("matvec", matvec, False), ("solve", partial(solve, matvec), has_aux))
            programs = [s.closed for s in staged]
            if transpose_solve is not None:
                check_function(what, "transpose_solve", transpose_solve, "vecmat, b")
                vecmat = matvec if symmetric else _transposed(unknowns, staged[0])
                back = unknowns.stage("transpose_solve", partial(transpose_solve, vecmat), has_aux)
                unknowns.check_types("transpose_solve", back)
                programs += [programs[0] if symmetric else unknowns.stage("vecmat", vecmat).closed, back.closed]
            jaxprs, consts = joined(programs)
            if symmetric and transpose_solve is None:  # the system is its own transpose
                jaxprs *= 2
            rest = (None,) * (4 - len(jaxprs))
            outs = self._bind(System._make((*jaxprs, *rest, len(consts))), [*consts, *unknowns.leaves])
            return staged[1].out_tree.unflatten(outs)
        return custom_linear_solve

    @hookimpl
    def abstract_eval(self, avals: Any, *, matvec: Jaxpr, solve: Jaxpr, vecmat: Jaxpr | None,
                      transpose_solve: Jaxpr | None, consts: int) -> list[ShapedArray]:
        check_programs(self.name, [("matvec", matvec, 1, False), ("solve", solve, 1, True),
                                   ("vecmat", vecmat, 1, False), ("transpose_solve", transpose_solve, 1, True)],
                       consts, avals)
        return solve.out_avals

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        # matvec(x) = b, differentiated: matvec(x_dot) = b_dot - the change of matvec at x by what it closes over
        system = System(**params)
        n = system.consts
        outs = self._bind(system, primals)
        x, aux = outs[:system.size], outs[system.size:]
        moved = change_of(system.matvec, primals[:n], tangents[:n], x)
        dots = [_difference(b_dot, change) for b_dot, change in zip(tangents[n:], moved, strict=True)]
        flat = [Zero(aval_of(y).tangent) for y in aux]
        if True not in carrying.nonzero(dots):
            return outs, [*[Zero(aval_of(y).tangent) for y in x], *flat]
        found = self._bind(system, [*primals[:n], *right_hand_side(dots, x)])
        return outs, [*[fitted(t, aval_of(y).tangent) if dtypes.is_inexact(aval_of(y).dtype) else
                        Zero(aval_of(y).tangent) for t, y in zip(found, x, strict=False)], *flat]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, **params: Any) -> Any:
        system = System(**params)
        n = system.consts
        cts, others = cotangents[:system.size], cotangents[system.size:]
        if Linear in map(type, args[:n]) or True in carrying.nonzero(others):
            raise CorejaxNotImplementedError(
                "custom_linear_solve: it is linear in b alone", primitive=self.name, hook="transpose", where=here(),
                got="a transposition by what matvec closes over" if Linear in map(type, args[:n]) else
                    "a cotangent of what a solver returns beside the solution",
                wanted="b, and the solution", todo="differentiate first: cj.vjp transposes the derivative")
        if system.transpose_solve is None or system.vecmat is None:
            raise CorejaxNotImplementedError(
                "custom_linear_solve: reverse mode needs a solver for the transposed system", primitive=self.name,
                hook="transpose", where=here(), got="transpose_solve=None and symmetric=False",
                wanted="transpose_solve=, or symmetric=True",
                todo="pass transpose_solve(vecmat, b), which solves with the transpose of the matrix; or "
                     "symmetric=True if the matrix is symmetric")
        other = System(system.vecmat, system.transpose_solve, system.matvec, system.solve, n)
        if True not in carrying.nonzero(cts):
            back = cts
        else:
            back = self._bind(other, [*args[:n], *[instantiate(ct) for ct in cts]])
        return [*[None] * n, *[fitted(ct, x.aval) if type(x) is Linear else None
                               for ct, x in zip(back, args[n:], strict=False)]]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        # a diagonal matrix; one of two rows, solved by Cramer's rule; one whose solver returns more than the solution
        d, b, c = rng.uniform(1.0, 2.0, 3), rng.standard_normal(3), rng.standard_normal(3)
        diagonal = _system([d], [b], lambda d, x: [lax.mul(d, x)], lambda d, b: [lax.div(b, d)], symmetric=True)
        yield Sample([d, b], diagonal, domain=[(1.0, 2.0), (-3, 3)], results=[b / d])
        yield Sample([d, b], {**diagonal, "vecmat": None, "transpose_solve": None}, domain=[(1.0, 2.0), (-3, 3)],
                     results=[b / d], exempt=dict.fromkeys((
                         "hessians are symmetric", "pullback is the adjoint of jvp", "pullback is linear",
                         "pullback under jit equals eager", "pullbacks of maps are loops of pullbacks",
                         "pullbacks at special points are adjoint"),
                         "without transpose_solve it has no reverse mode"))
        p, q = rng.uniform(2.0, 3.0, 2), rng.uniform(-1.0, 1.0, 2)
        x, y = rng.standard_normal(2), rng.standard_normal(2)
        yield Sample([p, q, x, y], _system(
            [p, q], [x, y], lambda p, q, x, y: [lax.add(lax.mul(p, x), lax.mul(q, y)), lax.mul(p, y)],
            lambda p, q, x, y: [lax.div(lax.sub(x, lax.div(lax.mul(q, y), p)), p), lax.div(y, p)],
            lambda p, q, x, y: [lax.div(x, p), lax.div(lax.sub(y, lax.div(lax.mul(q, x), p)), p)]),
            domain=[(2.0, 3.0), (-1, 1), (-3, 3), (-3, 3)], results=[(x - q * y / p) / p, y / p])
        yield Sample([d, b], _system([d], [b], lambda d, x: [lax.mul(d, x)],
                                     lambda d, b: [lax.div(b, d), np.int32(7)], lambda d, b: [lax.div(b, d)],
                                     symmetric=True),
                     domain=[(1.0, 2.0), (-3, 3)], results=[b / d, np.int32(7)])
        yield Sample([c], _system([], [c], lambda x: [lax.neg(x)], lambda b: [lax.neg(b)], symmetric=True),
                     results=[-c])
        yield Sample([d[:2], b], diagonal, error=TypeError)


custom_linear_solve: Any = define(CustomLinearSolve())

#: What jax.lax calls the primitive.
linear_solve_p = custom_linear_solve


def _transposed(unknowns: Unknowns, staged: Any) -> Callable[[Any], Any]:
    """The transpose of a linear function of the unknowns, as a function of pytrees."""
    for x in unknowns.avals:
        if not dtypes.is_inexact(x.dtype):
            raise CorejaxTypeError("custom_linear_solve: a matrix of integers isn't transposed", got=str(x),
                                   wanted="a float or complex b", where=here(),
                                   todo="convert b to floats, or leave out transpose_solve")
    n = len(staged.consts)
    size = len(unknowns.leaves)
    try:
        program, _ = transpose_jaxpr(staged.jaxpr, [*[False] * n, *[True] * size], [True] * size, True)
    except CorejaxError as error:
        raise CorejaxTypeError("custom_linear_solve: matvec can't be transposed", got=error.message, where=here(),
                               wanted="a linear function with a reverse mode",
                               todo="let matvec be linear, or leave out transpose_solve") from error

    def vecmat(y: Any) -> Any:
        leaves = unknowns.fit("vecmat", y)
        return unknowns.tree.unflatten(carrying.run(program, [*staged.consts, *leaves]))
    return vecmat


def _difference(x: Any, y: Any) -> Any:
    """x - y, where either may be a `Zero`."""
    if type(y) is Zero:
        return x
    return lax.neg(y) if type(x) is Zero else lax.sub(x, y)


def _system(consts: Sequence[Any], b: Sequence[Any], matvec: Any, solve: Any, back: Any = None, symmetric: bool = False
            ) -> dict[str, Any]:
    """The params for these programs, for samples."""
    avals = [aval_of(x) for x in (*consts, *b)]
    forward, solver = stage(matvec, avals, "matvec").jaxpr, stage(solve, avals, "solve").jaxpr
    transposed = solver if back is None else stage(back, avals, "transpose_solve").jaxpr
    vecmat = forward if symmetric else transpose_jaxpr(
        forward, [*[False] * len(consts), *[True] * len(b)], [True] * len(b), True)[0]
    return System(forward, solver, vecmat, transposed, len(consts))._asdict()
