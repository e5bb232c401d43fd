"""Programs with rules that are shown which tangents and cotangents are zero."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

A = np.arange(1.0, 4.0)

#: Programs by name: functions of a library, corejax or jax, and its lax.
PROGRAMS: dict[str, Any] = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def zeros_jvp(cj, lax):
    cd = cj.custom_derivatives
    seen = []
    f = cj.custom_jvp(lambda x, y, n: x * y)
    @functools.partial(f.defjvp, symbolic_zeros=True)
    def rule(primals, tangents):
        x, y, n = primals
        x_dot, y_dot, n_dot = tangents
        seen.extend([isinstance(t, cd.SymbolicZero) or type(t) is cd.SymbolicZero for t in tangents])
        out = cd.SymbolicZero.from_primal_value(x * y)
        for t, z in ((x_dot, y), (y_dot, x)):
            if type(t) is not cd.SymbolicZero:
                out = t * z if type(out) is cd.SymbolicZero else out + t * z
            else:
                seen.extend([t.shape == (), t.ndim, t.size, t.dtype == z.dtype, t.aval.shape == ()])
        return x * y, out
    x, y = np.float64(2.0), np.float64(3.0)
    return (cj.grad(f)(x, y, 1), cj.grad(f, 1)(x, y, 1), cj.jvp(lambda x: f(x, y, 1), (x,), (y,)),
            cj.jit(cj.grad(f))(x, y, 1), cj.vmap(cj.grad(f), (0, None, None))(A, y, 1), [bool(s) for s in seen[:16]])


@program
def zeros_vjp(cj, lax):
    cd = cj.custom_derivatives
    seen = []
    f = cj.custom_vjp(lambda x, y: (x * y, x))
    def fwd(x, y):
        seen.extend([x.perturbed, y.perturbed, type(x) is cd.CustomVJPPrimal])
        x, y = cd.custom_vjp_primal_tree_values((x, y))
        return (x * y, x), (x, y)
    def bwd(res, cts):
        one, two = cts
        seen.extend([isinstance(two, cd.SymbolicZero), isinstance(one, cd.SymbolicZero)])
        return (one * res[1], None if isinstance(one, cd.SymbolicZero) else one * res[0])
    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return (cj.grad(lambda x, y: f(x, y)[0])(2.0, 3.0), cj.grad(lambda x, y: f(x, y)[0], 1)(2.0, 3.0), seen)


@program
def zeros_returned(cj, lax):
    cd = cj.custom_derivatives
    f = cj.custom_jvp(lambda x: (x, 2.0 * x))
    f.defjvp(lambda p, t: (f(*p), (t[0], cd.zero_from_primal(2.0 * p[0], symbolic_zeros=True))), symbolic_zeros=True)
    g = cj.custom_vjp(lambda x, y: x * y)
    g.defvjp(lambda x, y: (x.value * y.value, None),
             lambda r, ct: (ct, cd.zero_from_primal(1.0, symbolic_zeros=True)), symbolic_zeros=True)
    return cj.jvp(f, (2.0,), (1.0,)), cj.grad(g, (0, 1))(2.0, 3.0)


@program
def zeros_of_primal(cj, lax):
    cd = cj.custom_derivatives
    z = cd.zero_from_primal(A, symbolic_zeros=True)
    return (cd.zero_from_primal(2.0), cd.zero_from_primal(A), z.shape, z.size, z.ndim, str(z.dtype),
            str(cd.zero_from_primal(3, symbolic_zeros=True).dtype)[:6],
            cd.CustomVJPPrimal(1.0, True) == cd.CustomVJPPrimal(1.0, True))


@program
def zeros_defjvp_dict(cj, lax):
    cd = cj.custom_derivatives
    f = cj.custom_jvp(lambda d: d["a"] * d["b"])
    def rule(primals, tangents):
        (d,), (t,) = primals, tangents
        def is_zero(z):
            return isinstance(z, cd.SymbolicZero)
        dot = cj.tree_util.tree_map(lambda z: lax.full(z.shape, 0.0, z.dtype) if is_zero(z) else z, t, is_leaf=is_zero)
        return f(d), dot["a"] * d["b"] + dot["b"] * d["a"]
    f.defjvp(rule, symbolic_zeros=True)
    return cj.grad(lambda a, b: f({"a": a, "b": b}))(2.0, 3.0)
