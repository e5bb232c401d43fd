"""Programs whose types say along which axes of a mesh values vary, run on imagined devices.

A program is staged with tracked axes, and then mapped over them: each position of a map is a device. What is the same
on all devices, as the types say, has to come out so. The same program, mapped before it is differentiated, knows
nothing of devices and says what the derivatives are.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

import corejax as cj
from corejax import lax
from corejax.core import Jaxpr, Literal, NamedAxis, ShapedArray, Var, aval_of, binding, eval_jaxpr, stage
from corejax.ir.typecheck import typecheck

SIZES = {"x": 3, "y": 2}


def varied(x: Any, *axes: str) -> Any:
    """The value, of a type that varies along these axes too."""
    missing = tuple([name for name in axes if name not in aval_of(x).varying])
    return lax.pcast(x, missing, to="varying") if missing else x


def typed(shape, *axes, dtype="float64"):
    return ShapedArray(shape, dtype, varying=axes)


def staged(fun, types, axes=("x",)):
    """The program, which is well typed."""
    with binding(tuple([NamedAxis(name, SIZES[name], None, True) for name in axes])):
        closed = stage(lambda *xs: [*fun(*xs)], types)
        typecheck(closed.jaxpr)
    return closed


def erased(x: Any) -> Any:
    """A program, or an object that holds types, without the axes along which values vary."""
    if isinstance(x, ShapedArray):
        return x.invariant
    if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
        return type(x)([erased(y) for y in x])
    if isinstance(x, Jaxpr):
        env: dict[Any, Any] = {}

        def atom(v: Any) -> Any:
            if v not in env:
                env[v] = Literal(v.val, v.aval.invariant) if isinstance(v, Literal) else Var(v.aval.invariant)
            return env[v]
        return Jaxpr(tuple(map(atom, x.constvars)), tuple(map(atom, x.invars)), tuple(map(atom, x.outvars)), [
            eqn.replace(invars=tuple(map(atom, eqn.invars)), outvars=tuple(map(atom, eqn.outvars)),
                        params={name: erased(value) for name, value in eqn.params.items()}) for eqn in x.eqns],
            x.effects, x.name)
    if hasattr(x, "__corejax_key__") and hasattr(x, "__dict__"):
        made = copy(x)
        for name in ("in_avals", "out_avals", "call", "pullback"):
            if hasattr(x, name):
                setattr(made, name, erased(getattr(x, name)))
        return made
    return x


def on_devices(closed, axes=("x",)):
    """The program as a function of global arrays: the axes along which one varies lead, in order.

    A result that is said to be the same along an axis is asserted to be so.
    """
    program = erased(closed.jaxpr)

    def run(*args):
        fun = lambda *xs: eval_jaxpr(program, closed.consts, *xs)
        for name in reversed(axes):
            dims = tuple([0 if name in aval.varying else None for aval in closed.in_avals])
            fun = cj.vmap(fun, in_axes=dims, axis_name=name, axis_size=SIZES[name])
        outs = []
        for out, aval in zip(fun(*args), closed.out_avals, strict=True):
            where = 0
            for name in axes:
                if name in aval.varying:
                    where += 1
                    continue
                first = out[(slice(None),) * where + (0,)]
                if type(out) is cj.Array:
                    for i in range(SIZES[name]):
                        np.testing.assert_allclose(out[(slice(None),) * where + (i,)], first, rtol=1e-9, atol=1e-9,
                                                   err_msg=f"not the same along {name}: {aval}")
                out = first
            outs.append(out)
        return outs
    return run


def example(rng, aval, axes=("x",)):
    """A global array for a value of this type."""
    shape = (*[SIZES[name] for name in axes if name in aval.varying], *aval.shape)
    return rng.uniform(0.3, 1.2, shape)


def close(got, wanted, what):
    for i, (x, y) in enumerate(zip(got, wanted, strict=True)):
        size = max(1.0, float(np.max(np.abs(y), initial=0.0)))
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-8 * size, err_msg=f"{what} {i}")


def pulled_back(fun):
    """(args, cotangents) -> (cotangents of args)."""
    def back(*args):
        n = back.n
        outs, pull = cj.vjp(lambda *xs: tuple(fun(*xs)), *args[:n])
        return pull(tuple(args[n:]))
    return back


def check(fun, types, axes=("x",), seed=0, order=1):
    """Check the program, its jvp and its vjp by what the mapped program's are; then those of the vjp, and so on."""
    rng = np.random.default_rng(seed)
    primal = staged(fun, types, axes)
    args = [example(rng, aval, axes) for aval in types]
    run = on_devices(primal, axes)
    outs = run(*args)
    if order == 0:
        return primal
    if not getattr(fun, "backward_only", False):
        _check_forward(fun, types, axes, rng, primal, args, outs)
    if getattr(fun, "forward_only", False):
        return primal
    back = pulled_back(fun)
    back.n, back.backward_only = len(types), getattr(fun, "backward_only", False)
    ct_types = [aval.update(weak_type=False) for aval in primal.out_avals]
    program = staged(back, [*types, *ct_types], axes)
    assert [aval.varying for aval in program.out_avals] == [aval.varying for aval in types]
    cts = [example(rng, aval, axes) for aval in ct_types]
    _, pull = cj.vjp(lambda *xs: tuple(run(*xs)), *args)
    close(on_devices(program, axes)(*args, *cts), pull(tuple(cts)), "cotangent")
    if order > 1:
        check(back, [*types, *ct_types], axes, seed, order - 1)
    return primal


def _check_forward(fun, types, axes, rng, primal, args, outs):
    run = on_devices(primal, axes)
    forward = staged(lambda *xs: [y for part in cj.jvp(lambda *a: tuple(fun(*a)), xs[:len(types)], xs[len(types):])
                                  for y in part], [*types, *types], axes)
    dots = [example(rng, aval, axes) for aval in types]
    wanted, wanted_dots = cj.jvp(lambda *xs: tuple(run(*xs)), tuple(args), tuple(dots))
    close(on_devices(forward, axes)(*args, *dots), [*outs, *wanted_dots], "tangent")
    assert forward.out_avals[:len(outs)] == primal.out_avals

    line = staged(lambda *xs: cj.linearize(lambda *a: tuple(fun(*a)), *xs[:len(types)])[1](*xs[len(types):]),
                  [*types, *types], axes)
    close(on_devices(line, axes)(*args, *dots), wanted_dots, "linearized tangent")
