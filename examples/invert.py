"""Writing an interpreter: run a program backward.

A jaxpr is data, so a function that walks it is an interpreter. This one inverts a chain of one-to-one functions: each
equation is undone with the inverse of its primitive, from the last to the first. Inverses can be added to the table,
since the interpreter itself doesn't know any primitives.

>>> import numpy as np
>>> f = lambda x: lax.exp(lax.tanh(x) * 2.0 + 1.0)
>>> round(float(inverse(f)(f(0.25))), 12)
0.25

The result is a function like any other: it can be compiled, mapped and differentiated.

>>> y = f(np.array([-0.5, 0.0, 0.5]))
>>> np.asarray(cj.jit(cj.vmap(inverse(f)))(y)).round(12)
array([-0.5,  0. ,  0.5])
>>> slope = cj.grad(f)(0.25)
>>> round(float(cj.grad(inverse(f))(f(0.25)) * slope), 12)
1.0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import corejax as cj
from corejax import lax
from corejax.core import Jaxpr, JaxprEqn, Literal, Primitive, Var
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError

Undo = Callable[[Any, Sequence[Any], int], Any]

INVERSES: dict[Primitive, Undo] = {}


def invert_by(function: Any, undo: Undo) -> None:
    """Register `undo(y, operands, i)`: the operand i for which `function(*operands) == y`; `operands[i]` is unknown."""
    INVERSES[function.primitive] = undo


def _other(operands: Sequence[Any], i: int) -> Any:
    return operands[1 - i]


invert_by(lax.exp, lambda y, operands, i: lax.log(y))
invert_by(lax.log, lambda y, operands, i: lax.exp(y))
invert_by(lax.tanh, lambda y, operands, i: (lax.log1p(y) - lax.log1p(-y)) / 2.0)
invert_by(lax.neg, lambda y, operands, i: -y)
invert_by(lax.add, lambda y, operands, i: y - _other(operands, i))
invert_by(lax.sub, lambda y, operands, i: y + operands[1] if i == 0 else operands[0] - y)
invert_by(lax.mul, lambda y, operands, i: y / _other(operands, i))
invert_by(lax.div, lambda y, operands, i: y * operands[1] if i == 0 else operands[0] / y)


def inverse(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The inverse of a function of one argument, which each equation of its program may use at most once."""
    def inverted(y: Any) -> Any:
        closed = cj.make_jaxpr(function)(y)
        return run_backward(closed.jaxpr, closed.consts, y)
    return inverted


def run_backward(jaxpr: Jaxpr, consts: Sequence[Any], y: Any) -> Any:
    """The input for which the program's output is y: runs constants forward, and the rest backward."""
    (x,), (out,) = jaxpr.invars, jaxpr.outvars
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    chain: list[tuple[JaxprEqn, int]] = []
    reached: Any = x  # the current end of the chain of variables that depend on x
    for eqn in jaxpr.eqns:
        positions = [i for i, atom in enumerate(eqn.invars) if atom is reached]
        if len(positions) > 1:
            raise CorejaxValueError("the program uses its argument twice", got=str(eqn), wanted="a chain of equations")
        if positions:
            chain.append((eqn, positions[0]))
            (reached,) = eqn.outvars
        else:
            outs = eqn.primitive.bind(*[read(known, atom) for atom in eqn.invars], **eqn.params)
            known.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
    if reached is not out:
        raise CorejaxValueError("the result does not come from one chain of equations", got=str(jaxpr))
    for eqn, i in reversed(chain):
        if eqn.primitive not in INVERSES:
            raise CorejaxNotImplementedError(f"no inverse of {eqn.primitive} is known", got=str(eqn),
                                             todo="add it with invert_by")
        operands = [None if j == i else read(known, atom) for j, atom in enumerate(eqn.invars)]
        y = INVERSES[eqn.primitive](y, operands, i)
    return y


def read(known: dict[Var, Any], atom: Any) -> Any:
    """The value of a variable or literal that doesn't depend on the argument."""
    if isinstance(atom, Literal):
        return atom.val
    if atom not in known:
        raise CorejaxValueError("the program uses its argument twice", wanted="a chain of equations")
    return known[atom]


def main() -> None:
    """Show a program, and its inverse."""
    def f(x: Any) -> Any:
        return lax.exp(lax.tanh(x) * 2.0 + 1.0)

    x = np.array([-0.5, 0.0, 0.5])
    print("f is", cj.make_jaxpr(f)(0.0), sep="\n")
    print("its inverse is", cj.make_jaxpr(inverse(f))(0.0), sep="\n")
    print("inverse(f)(f(x)) - x =", np.abs(inverse(f)(f(x)) - x).max())


if __name__ == "__main__":
    main()
