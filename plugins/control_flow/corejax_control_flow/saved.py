"""What reverse mode keeps of a function's forward pass, as a table: `saved_residuals`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from corejax.core import Jaxpr, JaxprEqn, ShapedArray, Var, check_callable, describe, paths_of
from corejax.plugin import make_jaxpr, public, vjp
from corejax_control_flow.call import xla_call
from corejax_control_flow.memories import to_memory

__all__ = ["print_saved_residuals", "saved_residuals"]

AT_TOP = ("saved_residuals",)


class Residual(NamedTuple):
    """A value that is kept, how many bytes it has, what it is, and where in the user's code it was computed."""

    aval: ShapedArray
    nbytes: int
    what: str
    where: str


class Residuals(list[Residual]):
    """Residuals, printed as a table."""

    @property
    def nbytes(self) -> int:
        """The bytes of all of them."""
        return sum([row.nbytes for row in self])

    def __str__(self) -> str:
        cells = [(str(row.aval), f"{row.nbytes:,} B", ", ".join([row.what, *[row.where] * bool(row.where)]))
                 for row in self]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join([f"{aval:<{widths[0]}}  {size:>{widths[1]}}  {text}" for aval, size, text in cells])


@public
def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Residuals:
    """What reverse mode keeps until cotangents arrive, of the forward pass of `f(*args, **kwargs)`.

    A list of rows `(aval, nbytes, what, where)`, with `nbytes` in all, which prints as a table. Nothing is computed:
    arguments may be `ShapeDtypeStruct`s.

    >>> import numpy as np, corejax as cj
    >>> from corejax import lax
    >>> rows = cj.saved_residuals(lambda x: lax.sin(lax.sin(x)), np.ones(3))
    >>> rows.nbytes, [row.what for row in rows]
    (48, ['cos', 'cos'])
    >>> print(cj.saved_residuals(cj.checkpoint(lambda x: lax.sin(lax.sin(x))), np.ones(3)))
    f64[3]  24 B  the argument x
    """
    check_callable(f, "saved_residuals")

    def pullback(args: Any, kwargs: Any) -> Any:
        return (vjp(lambda args, kwargs: f(*args, **kwargs), args, kwargs) if kwargs else vjp(f, *args))[1]

    jaxpr, places = make_jaxpr(pullback)(args, kwargs).jaxpr, _arguments(f, args, kwargs)
    names: dict[Any, str] = {v: f"the argument {place}" for v, place in zip(jaxpr.invars, places, strict=True)}
    names.update(dict.fromkeys(jaxpr.constvars, "a constant"))
    order: dict[Any, int] = {v: i for i, v in enumerate([*names, *[v for eqn in jaxpr.eqns for v in eqn.outvars]])}
    rows = Residuals()
    for atom in sorted({x for x in jaxpr.outvars if type(x) is Var}, key=lambda v: order[v]):
        what, where = (names[atom], "") if atom in names else _made(jaxpr, atom)
        rows.append(Residual(atom.aval, atom.aval.size * atom.aval.dtype.itemsize, what, where))
    return rows


@public
def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print what reverse mode keeps of the forward pass of `f(*args, **kwargs)`: the table `cj.saved_residuals`.

    >>> import corejax as cj
    >>> cj.ad_checkpoint.print_saved_residuals(lambda x, y: x * y, 2.0, 3.0)
    ~f64[]  8 B  the argument x
    ~f64[]  8 B  the argument y
    """
    print(saved_residuals(f, *args, **kwargs))


def _arguments(f: Callable[..., Any], args: Any, kwargs: Any) -> list[str]:
    """What each leaf of the arguments is called in the function's code."""
    names: list[str] = []
    try:
        bound = inspect.signature(f).bind(*args, **kwargs)
        for name, parameter in inspect.signature(f).parameters.items():
            positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
            if positional and name in bound.arguments:
                names.append(name)
    except (TypeError, ValueError):  # it has no signature
        names = []
    found = [f"{names[i] if i < len(names) else f'number {i}'}{path}" for i, arg in enumerate(args)
             for path in paths_of(arg)]
    return [*found, *[f"{name}{path}" for name in sorted(kwargs) for path in paths_of(kwargs[name])]]


def _made(jaxpr: Jaxpr, var: Any) -> tuple[str, str]:
    """What computes a variable, and where: within calls of `jit`, too."""
    eqn: JaxprEqn = next(eqn for eqn in jaxpr.eqns if var in eqn.outvars)
    if eqn.primitive is xla_call.primitive:
        inner = eqn.params["jaxpr"]
        atom = inner.outvars[eqn.outvars.index(var)]
        if type(atom) is Var and atom not in inner.invars:
            return _made(inner, atom)
    if eqn.primitive is to_memory.primitive:
        what, where = _made(jaxpr, eqn.invars[0])
        return f"{what}, in {eqn.params['kind']}", where
    name = eqn.params.get("name")
    return f"{eqn.primitive.name} {name!r}" if isinstance(name, str) else eqn.primitive.name, describe(eqn.source) or ""
