"""`custom_root`: a root of a function, found in any way, differentiated as a root.

At a root f(x) = 0, whatever f closes over. Differentiate both sides, and the tangent solves a linear system:

    f' x_dot = -(the change of f(x), if x stayed the same)

which the user's `tangent_solve` solves. How the root was found is never differentiated, and the guess has no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    Jaxpr,
    ShapedArray,
    Staged,
    Zero,
    aval_of,
    dtypes,
    here,
    jvp_jaxpr,
    stage,
)
from corejax.errors import CorejaxTypeError
from corejax.ir.surgery import select_outputs
from corejax.plugin import Sample, carrying, define, hookimpl, not_linear, shaping
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

__all__ = ["custom_root"]

Flags = carrying.Flags


class Equation(NamedTuple):
    """An equation f(x) = 0: programs of `consts` constants, which they share, and then one or two copies of x.

    `solve` finds a root from a guess; `tangent_solve(x, y)` solves the system linearized at x, f' z = y.
    """

    f: Jaxpr
    solve: Jaxpr
    tangent_solve: Jaxpr
    consts: int

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return len(self.f.outvars)


class CustomRoot(Solved):
    """`custom_root(f, initial_guess, solve, tangent_solve, has_aux=False)`: an x for which f(x) = 0.

    `solve(f, initial_guess)` finds it, by whatever means; it isn't differentiated. The derivative is that of a root:
    with respect to what `f` closes over, by `tangent_solve(g, y)`, which finds the z for which g(z) = y, where g is f
    linearized at the root. For a single number that is `lambda g, y: y / g(1.0)`; in general a linear solver, such as
    `custom_linear_solve`, which reverse mode can transpose. Arguments and results of all functions are pytrees like
    the guess. With `has_aux`, `solve` returns a pair, the root and something else, which has no derivative.

    >>> def newton(f, x):
    ...     return lax.fori_loop(0, 6, lambda _, x: x - f(x) / (2.0 * x), x)
    >>> def square_root(a):
    ...     return lax.custom_root(lambda x: x * x - a, 1.0, newton, lambda g, y: y / g(1.0))
    >>> square_root(9.0).item(), lax.custom_root.primitive.name
    (3.0, 'custom_root')
    """

    name = "custom_root"

    _kind = Equation
    _copies = (1, 1, 2)

    transpose = not_linear("a root is not linear in what it depends on")

    def function(self, bind: Any) -> Any:
        def custom_root(f: Callable[[Any], Any], initial_guess: Any, solve: Callable[..., Any],
                        tangent_solve: Callable[..., Any], has_aux: bool = False) -> Array | Any:
            what = "custom_root"
            has_aux = shaping.as_flag(what, "has_aux", has_aux)
            check_function(what, "f", f, "x")
            check_function(what, "solve", solve, "f, initial_guess")
            check_function(what, "tangent_solve", tangent_solve, "g, y")
            unknowns = Unknowns(what, "initial_guess", initial_guess)
            staged = unknowns.settle(("f", f, False), ("solve", partial(solve, f), has_aux))
            for aval in unknowns.avals:
                if not dtypes.is_inexact(aval.dtype):
                    raise CorejaxTypeError("custom_root: the unknowns must be floats or complex numbers", got=str(aval),
                                           wanted="an inexact dtype, in which an equation can be solved", where=here(),
                                           todo="start from floats: 1.0 instead of 1")
            tangent = unknowns.stage("tangent_solve", _Linearized(unknowns, staged[0], tangent_solve), copies=2)
            unknowns.check_types("tangent_solve", tangent)
            jaxprs, consts = joined([staged[0].closed, staged[1].closed, tangent.closed])
            outs = self._bind(Equation._make((*jaxprs, len(consts))), [*consts, *unknowns.leaves])
            return staged[1].out_tree.unflatten(outs)
        return custom_root

    @hookimpl
    def abstract_eval(self, avals: Any, *, f: Jaxpr, solve: Jaxpr, tangent_solve: Jaxpr, consts: int
                      ) -> list[ShapedArray]:
        check_programs(self.name, [("f", f, 1, False), ("solve", solve, 1, True),
                                   ("tangent_solve", tangent_solve, 2, False)], consts, avals)
        return solve.out_avals

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        equation = Equation(**params)
        n = equation.consts
        outs = self._bind(equation, primals)
        x = outs[:equation.size]
        moved = change_of(equation.f, primals[:n], tangents[:n], x)
        zeros = [Zero(aval_of(y).tangent) for y in outs]
        if True not in carrying.nonzero(moved):
            return outs, zeros
        found = carrying.run(equation.tangent_solve, [*primals[:n], *x, *right_hand_side(moved, x)])
        return outs, [*[fitted(lax.neg(t), zero.aval) for t, zero in zip(found, zeros, strict=False)],
                      *zeros[equation.size:]]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(consts: list[Any], guess: list[Any], f: Any, solve: Any, tangent_solve: Any) -> dict[str, Any]:
            avals, more = [aval_of(x) for x in (*consts, *guess)], [aval_of(x) for x in guess]
            return Equation(stage(f, avals, "f").jaxpr, stage(solve, avals, "solve").jaxpr,
                            stage(tangent_solve, [*avals, *more], "tangent_solve").jaxpr, len(consts))._asdict()

        # a square root; two unknowns, of which one depends on the other, and a solver that returns more; an exponential
        a, c, x, y = [rng.uniform(1.0, 2.0, 3) for _ in range(4)]
        roots = params([a], [x], lambda a, x: [lax.sub(lax.mul(x, x), a)], lambda a, x: [lax.sqrt(a)],
                       lambda a, x, y: [lax.div(y, lax.mul(2.0, x))])
        yield Sample([a, x], roots, domain=(1.0, 2.0), results=[np.sqrt(a)])
        yield Sample([a, c, x, y], params(
            [a, c], [x, y],
            lambda a, c, x, y: [lax.sub(lax.mul(a, x), c), lax.sub(y, lax.mul(x, a))],
            lambda a, c, x, y: [lax.div(c, a), c, np.int32(3)],
            lambda a, c, x, y, u, v: [lax.div(u, a), lax.add(v, u)]), domain=(1.0, 2.0),
            results=[c / a, c, np.int32(3)])
        yield Sample([x], params([], [x], lambda x: [lax.sub(lax.exp(x), 1.0)], lambda x: [lax.mul(x, 0.0)],
                                 lambda x, y: [lax.div(y, lax.exp(x))]), results=[0.0 * x])
        yield Sample([a[:2], x], roots, error=TypeError)


custom_root: Any = define(CustomRoot())


class _Linearized:
    """`tangent_solve` as a function of the root and a right-hand side: it gets f, linearized at the root."""

    def __init__(self, unknowns: Unknowns, f: Staged, tangent_solve: Callable[..., Any]) -> None:
        self.unknowns, self.f, self.tangent_solve = unknowns, f, tangent_solve
        self.__name__ = getattr(tangent_solve, "__name__", "tangent_solve")

    def __call__(self, x: Any, y: Any) -> Any:
        split = _linear_part(self.f.jaxpr, len(self.f.consts))
        operands = [*self.f.consts, *self.unknowns.fit("f", x)]
        kept = carrying.run(split.known, [operands[i] for i in split.known_operands])
        residuals = [operands[i] if where == "operand" else kept[i] for where, i in split.residuals]

        def g(z: Any) -> Any:
            dots = self.unknowns.fit("the linearized f", z)
            tangents = [dots[i - len(operands)] for i in split.staged_operands]
            return self.unknowns.tree.unflatten(carrying.run(split.staged, [*residuals, *tangents]))
        return self.tangent_solve(g, y)


@carrying.remembered
def _linear_part(f: Jaxpr, consts: int) -> carrying.Split[Jaxpr]:
    """The derivative of f in two parts: what depends on the point, and what is linear."""
    n = len(f.outvars)
    dual, _ = jvp_jaxpr(f, [*[False] * consts, *[True] * n], True)
    dots = select_outputs(dual, range(n, 2 * n))
    return carrying.split_jaxpr(dots, [*[False] * len(f.invars), *[True] * n], True)
