"""Programs with custom_vmap, linear_call, closure_convert and custom_gradient."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

ONES = np.ones(3)
A = np.arange(1.0, 4.0)

#: Programs by name: functions of a library, corejax or jax, and its lax.
PROGRAMS: dict[str, Any] = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def mapped(cj, lax, seen=None):
    @cj.custom_batching.custom_vmap
    def f(x, y):
        return {"a": lax.sin(x) * y, "b": (x + y, None)}
    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        if seen is not None:
            seen.append((axis_size, in_batched))
        x, y = [z if b else lax.broadcast(z, (axis_size,)) for z, b in zip((x, y), in_batched)]
        return {"a": lax.sin(x) * y, "b": (x + y, None)}, {"a": True, "b": (True, None)}
    return f

VM = {
    "both": lambda cj, lax, f:
        cj.vmap(f)(ONES, A),
    "one": lambda cj, lax, f:
        cj.vmap(f, (0, None))(A, np.float64(2.0)),
    "none": lambda cj, lax, f:
        cj.vmap(lambda _: f(1., 2.))(ONES),
    "axes": lambda cj, lax, f:
        cj.vmap(cj.vmap(f, (1, 0), out_axes=1), (0, 0))(np.ones((2, 3, 3)), np.ones((2, 3, 3))),
    "nested": lambda cj, lax, f:
        cj.vmap(cj.vmap(f))(np.ones((2, 3)), np.ones((2, 3))),
    "halves": lambda cj, lax, f:
        cj.vmap(cj.vmap(f, (0, None)), (None, 0))(A, ONES),
    "jit_vmap": lambda cj, lax, f:
        cj.jit(cj.vmap(f))(A, ONES),
    "vmap_jit": lambda cj, lax, f:
        cj.vmap(cj.jit(f))(A, ONES),
    "jvp": lambda cj, lax, f:
        cj.jvp(f, (1., 2.), (1., 1.)),
    "vmap_jvp": lambda cj, lax, f:
        cj.vmap(lambda x, y: cj.jvp(f, (x, y), (y, x)))(A, ONES),
    "jvp_vmap": lambda cj, lax, f:
        cj.jvp(cj.vmap(f), (A, ONES), (ONES, A)),
    "grad_vmap": lambda cj, lax, f:
        cj.grad(lambda x: cj.vmap(f)(x, x)["a"].sum())(A),
    "jacfwd": lambda cj, lax, f:
        cj.jacfwd(lambda x: cj.vmap(f)(x, x)["a"])(A),
    "vmap_jacfwd": lambda cj, lax, f:
        cj.vmap(cj.jacfwd(lambda x: f(x, x)["a"]))(A),
    "vmap_scan": lambda cj, lax, f:
        cj.vmap(lambda x: lax.scan(lambda c, z: (f(c, z)["a"], c), x, ONES))(A),
    "vmap_cond": lambda cj, lax, f:
        cj.vmap(lambda x: lax.cond(x > 2, lambda x: f(x, x)["a"], lambda x: x, x))(A),
    "vmap_while": lambda cj, lax, f:
        cj.vmap(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c + 2 + abs(f(c, c)["a"]), x))(A),
    "scan_vmap": lambda cj, lax, f:
        lax.scan(lambda c, z: (cj.vmap(f)(c, z)["a"], None), A, np.ones((2, 3))),
    "checkpoint": lambda cj, lax, f:
        cj.grad(lambda x: cj.checkpoint(cj.vmap(f))(x, x)["a"].sum())(A),
    "keyword": lambda cj, lax, f:
        f(x=1., y=2.),
    "second": lambda cj, lax, f:
        cj.vmap(cj.jacfwd(cj.jacfwd(lambda x: f(x, x)["a"])))(A),
    "empty": lambda cj, lax, f:
        cj.vmap(f)(ONES[:0], ONES[:0]),
    "axis_name": lambda cj, lax, f:
        cj.vmap(f, axis_name="i")(A, ONES),
    "hessian_of_vmap": lambda cj, lax, f:
        cj.hessian(lambda x: cj.vmap(f)(x, x)["a"].sum())(A),
}
for _name, _run in VM.items():
    PROGRAMS[f"vmap_{_name}"] = lambda cj, lax, run=_run: run(cj, lax, mapped(cj, lax))


@program
def vmap_flags(cj, lax):
    seen = []
    f = mapped(cj, lax, seen)
    cj.vmap(f)(ONES, A)
    cj.vmap(f, (0, None))(ONES, np.float64(1.0))
    cj.vmap(cj.vmap(f), (None, 0))(np.ones(3), np.ones((2, 3)))
    return [[s, *b] for s, b in seen]


@program
def vmap_vjp_outside(cj, lax):
    @cj.custom_vjp
    @cj.custom_batching.custom_vmap
    def f(x, y):
        return lax.sin(x) * y
    @f.def_vmap
    def rule(axis_size, in_batched, xs, ys):
        return lax.cos(xs) * ys, True
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda r, ct: (10.0 * ct * r[1], ct))
    return (cj.vmap(f)(np.zeros(3), ONES), cj.grad(f)(0.0, 1.0), cj.vmap(cj.grad(f))(A, A),
            cj.grad(lambda x: cj.vmap(f)(x, x).sum())(A), cj.jit(cj.vmap(f))(A, A))


@program
def vmap_jvp_outside(cj, lax):
    @cj.custom_jvp
    @cj.custom_batching.custom_vmap
    def f(x):
        return lax.sin(x)
    @f.def_vmap
    def rule(axis_size, in_batched, xs):
        return lax.cos(xs), True
    f.defjvp(lambda p, t: (f(*p), 10.0 * t[0]))
    return cj.vmap(f)(np.zeros(3)), cj.grad(f)(0.0), cj.vmap(cj.grad(f))(A), cj.jvp(cj.vmap(f), (A,), (A,))


@program
def vmap_closes_over_outer(cj, lax):
    def make(c):
        f = cj.custom_batching.custom_vmap(lambda x: c * x)
        f.def_vmap(lambda n, b, x: (100.0 * c * x, True))
        return f
    return (cj.vmap(lambda c: cj.vmap(make(c))(ONES))(A), cj.jit(lambda c: cj.vmap(make(c))(ONES))(2.0),
            cj.jvp(lambda c: cj.vmap(make(c))(ONES), (2.0,), (1.0,)),
            cj.grad(lambda c: cj.vmap(make(c))(ONES).sum())(2.0),
            cj.jvp(lambda c: make(c)(3.0), (2.0,), (1.0,)))


@program
def sequential(cj, lax):
    @cj.custom_batching.sequential_vmap
    def f(x, y):
        return lax.cond(x > 1.5, lambda: x * y, lambda: y), x
    two = np.ones((2, 3))
    return (cj.vmap(f)(A, ONES), cj.vmap(f, (0, None))(A, np.float64(2.0)), cj.vmap(cj.vmap(f))(two, two),
            cj.jit(cj.vmap(f))(A, ONES), cj.vmap(f)(ONES[:0], ONES[:0]), f(1.0, 2.0))


@program
def vmap_attributes(cj, lax):
    def f(x):
        """Doc."""
        return x
    f.own = 7
    g = cj.custom_batching.custom_vmap(f)
    rule = lambda n, b, x: (x, b[0])
    return g.__name__, g.__doc__, g.own, g.__wrapped__ is f, g.fun is f, g.def_vmap(rule) is rule, g.vmap_rule is rule


@program
def vmap_int_and_bool(cj, lax):
    @cj.custom_batching.custom_vmap
    def f(n, x, b):
        return n + 1, lax.select(b, x, -x), b
    @f.def_vmap
    def rule(size, batched, n, x, b):
        return (n + 1, lax.select(b, x, -x), b), (True, True, True)
    args = np.arange(3), A, np.array([True, False, True])
    return cj.vmap(f)(*args), cj.jvp(lambda x: cj.vmap(f)(args[0], x, args[2])[1], (A,), (A,))

def linear(cj, lax):
    return lambda r, x: cj.custom_derivatives.linear_call(lambda r, x: x / r, lambda r, ct: 10.0 * ct / r, r, x)

LC = {
    "call": lambda cj, lax, f:
        f(2.0, 3.0),
    "jvp": lambda cj, lax, f:
        cj.jvp(lambda x: f(2.0, x), (3.0,), (1.0,)),
    "grad": lambda cj, lax, f:
        cj.grad(f, 1)(2.0, 3.0),
    "jit": lambda cj, lax, f:
        cj.jit(cj.grad(f, 1))(2.0, 3.0),
    "transpose": lambda cj, lax, f:
        cj.linear_transpose(lambda x: f(2.0, x), 3.0)(1.0),
    "twice": lambda cj, lax, f:
        cj.linear_transpose(lambda t: cj.linear_transpose(lambda x: f(2.0, x), 3.0)(t)[0], 3.0)(1.0),
    "scan": lambda cj, lax, f:
        cj.grad(lambda x: lax.scan(lambda c, _: (f(2.0, c), None), x, None, length=3)[0])(3.0),
    "closed_jit": lambda cj, lax, f:
        cj.jit(lambda r, x: cj.grad(lambda x: cj.custom_derivatives.linear_call(
            lambda _, x: x / r, lambda _, t: 10.0 * t / r, (), x))(x))(2., 3.),
    "trees": lambda cj, lax, f:
        cj.linear_transpose(lambda x: cj.custom_derivatives.linear_call(
            lambda r, x: [x["a"] * r["r"], x["b"][0]], lambda r, ct: {"a": ct[0], "b": (5.0 * ct[1],)}, {"r": 2.0}, x),
            {"a": 1.0, "b": (1.0,)})([1.0, 1.0]),
    "one_ct": lambda cj, lax, f:
        cj.grad(lambda x: cj.custom_derivatives.linear_call(
            lambda r, x: (x, 2.0 * x), lambda r, t: 3.0 * t[0] + 7.0 * t[1], (), x)[0])(3.0),
    "none": lambda cj, lax, f:
        cj.custom_derivatives.linear_call(
            lambda r, x: (x[0], None), lambda r, t: (t[0], None), None, (2.0, None)),
    "untransposed": lambda cj, lax, f:
        cj.custom_derivatives.linear_call(lambda r, x: x, None.__class__, (), 2.0),
    "grad_of_array": lambda cj, lax, f:
        cj.grad(lambda x: f(np.float64(2.0), x).sum())(A),
    "cond": lambda cj, lax, f:
        cj.grad(lambda x: lax.cond(x > 0.0, lambda x: f(2.0, x), lambda x: x, x))(3.0),
    "linearize": lambda cj, lax, f:
        cj.linearize(lambda x: f(2.0, x), 3.0)[1](1.0),
}
for _name, _run in LC.items():
    PROGRAMS[f"linear_{_name}"] = lambda cj, lax, run=_run: run(cj, lax, linear(cj, lax))


@program
def linear_recursive(cj, lax):
    lc = cj.custom_derivatives.linear_call
    def f(r, x):
        return lc(lambda r, x: x * r, back, r, x)
    def back(r, t):
        return lc(lambda r, t: 10.0 * r * t, f, r, t)
    return (cj.grad(f, 1)(2.0, 3.0), cj.jit(cj.grad(f, 1))(2.0, 3.0),
            cj.linear_transpose(lambda t: cj.linear_transpose(lambda x: f(2.0, x), 3.0)(t)[0], 3.0)(1.0))

# closure_convert
def converting(cj, f, x):
    converted, consts = cj.closure_convert(f, x)
    return converted(x, *consts)

CC = {
    "plain": lambda cj, lax:
        converting(cj, lambda x: x * 2.0, 3.0),
    "array": lambda cj, lax:
        converting(cj, lambda x: x * ONES, 3.0),
    "grad": lambda cj, lax:
        cj.grad(lambda c: converting(cj, lambda x: x * c, 3.0))(2.0),
    "jit": lambda cj, lax:
        cj.jit(lambda c: converting(cj, lambda x: x * c, 3.0))(2.0),
    "vmap": lambda cj, lax:
        cj.vmap(lambda c: converting(cj, lambda x: x * c, 3.0))(ONES),
    "vmap_grad": lambda cj, lax:
        cj.vmap(cj.grad(lambda c: converting(cj, lambda x: x * c * c, 3.0)))(A),
    "grad_vmap": lambda cj, lax:
        cj.grad(lambda c: cj.vmap(lambda z: converting(cj, lambda x: x * c * z, 3.0))(ONES).sum())(2.0),
    "tree": lambda cj, lax:
        cj.grad(lambda c: converting(cj, lambda x: x["a"] * lax.sin(c) * c, {"a": 3.0}))(2.0),
    "counts": lambda cj, lax:
        [len(cj.closure_convert(lambda x: x * 2.0, 3.0)[1]),
         cj.grad(lambda c: c * len(cj.closure_convert(lambda x: x * c, 3.0)[1]))(1.0),
         cj.jit(lambda c, n: len(cj.closure_convert(lambda x: x * c + n, 3.0)[1]))(2.0, 1),
         cj.vmap(lambda c: c * len(cj.closure_convert(lambda x: x * c, 3.0)[1]))(ONES)],
    "nojac": lambda cj, lax:
        cj.closure_convert(lambda: 3.0)[0](),
    "types": lambda cj, lax:
        cj.grad(lambda c: cj.closure_convert(lambda x: x * c, cj.ShapeDtypeStruct((3,), float))[0](ONES, c).sum())(2.0),
    "jacfwd": lambda cj, lax:
        cj.jacfwd(lambda c: converting(cj, lambda x: x * c, 3.0))(A),
}
for _name, _run in CC.items():
    PROGRAMS[f"convert_{_name}"] = _run


@program
def convert_with_custom_vjp(cj, lax):
    def minimize(f, x0):
        converted, consts = cj.closure_convert(f, x0)
        return inner(converted, x0, *consts)
    @functools.partial(cj.custom_vjp, nondiff_argnums=(0,))
    def inner(f, x0, *consts):
        return f(x0, *consts)
    inner.defvjp(lambda f, x0, *consts: (inner(f, x0, *consts), (x0, consts)),
                 lambda f, res, ct: (2.0 * ct, *[10.0 * ct * k for k in res[1]]))
    slope = cj.grad(lambda c: minimize(lambda x: x * c, 3.0))
    return slope(2.0), cj.jit(slope)(2.0), cj.vmap(slope)(A), cj.grad(lambda x: minimize(lambda x: x * 2.0, x))(3.0)

# custom_gradient
CG = {
    "tuple": lambda cj, lax, c:
        cj.grad(c(lambda x: (x**2, lambda g: (g * 7.0,))))(3.0),
    "leaf": lambda cj, lax, c:
        cj.grad(c(lambda x: (x**2, lambda g: g * x)))(3.0),
    "two": lambda cj, lax, c:
        cj.grad(c(lambda x, y: (x * y, lambda g: (g * y, 5.0 * g * x))), (0, 1))(3.0, 4.0),
    "trees": lambda cj, lax, c:
        cj.grad(lambda x: c(lambda d: ((d["a"], 2.0 * d["a"]), lambda g: ({"a": g[0] * 7.0 + g[1] * 5.0},)))(
            {"a": x})[1])(3.0),
    "jit": lambda cj, lax, c:
        cj.jit(cj.grad(c(lambda x: (x**2, lambda g: g * lax.sin(x)))))(3.0),
    "vmap": lambda cj, lax, c:
        cj.vmap(cj.grad(c(lambda x: (x**2, lambda g: g * lax.sin(x)))))(A),
    "grad_vmap": lambda cj, lax, c:
        cj.grad(lambda x: cj.vmap(c(lambda x: (x**2, lambda g: g * lax.sin(x))))(x).sum())(A),
    "second": lambda cj, lax, c:
        cj.grad(cj.grad(c(lambda x: (x**2, lambda g: g * x**3))))(3.0),
    "none": lambda cj, lax, c:
        cj.grad(c(lambda x, y: (x * y, lambda g: (g * x, None))), (0, 1))(3.0, 4.0),
    "python": lambda cj, lax, c:
        cj.grad(c(lambda x: (x**2, (lambda g: g) if x > 0 else (lambda g: -g))))(3.0),
    "int": lambda cj, lax, c:
        cj.grad(c(lambda x, n: (x * n, lambda g: (g * 7.0, None))))(3.0, 2),
    "default": lambda cj, lax, c:
        cj.grad(lambda x: c(lambda x, y=2.0: (x * y, lambda g: g * x * 7.0))(x))(3.0),
    "closed": lambda cj, lax, c:
        cj.jit(lambda k: cj.grad(c(lambda x: (k * x, lambda g: g * k * 10.0)))(3.0))(2.0),
    "scan": lambda cj, lax, c:
        cj.grad(lambda x: lax.scan(
            lambda s, _: (c(lambda x: (x * 2.0, lambda g: g * x))(s), None), x, None, length=2)[0])(3.0),
    "value": lambda cj, lax, c:
        c(lambda x: (x**2, lambda g: (g,)))(3.0),
    "intout": lambda cj, lax, c:
        cj.grad(lambda x: c(lambda x: ((x, 3), lambda g: (7.0 * g[0],)))(x)[0])(3.0),
    "checkpoint": lambda cj, lax, c:
        cj.grad(cj.checkpoint(c(lambda x: (x**2, lambda g: g * lax.sin(x)))))(3.0),
}
for _name, _run in CG.items():
    PROGRAMS[f"gradient_{_name}"] = lambda cj, lax, run=_run: run(cj, lax, cj.custom_gradient)
