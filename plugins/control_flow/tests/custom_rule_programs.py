"""Programs with custom_jvp and custom_vjp: what rules take and return, and what they are in."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

import numpy as np

A = np.arange(1.0, 4.0)

#: Programs by name: functions of a library, corejax or jax, and its lax.
PROGRAMS: dict[str, Any] = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def int_arguments(cj, lax):
    f = cj.custom_vjp(lambda x, n: x * n)
    f.defvjp(lambda x, n: (x * n, n), lambda n, ct: (10.0 * ct * n, None))
    g = cj.custom_vjp(lambda x, n: x * n)
    float0 = cj.dtypes.float0
    g.defvjp(lambda x, n: (x * n, n), lambda n, ct: (10.0 * ct * n, np.zeros(np.shape(n), float0)))
    return cj.grad(f)(2.0, 3), cj.grad(g)(2.0, 3), cj.jit(cj.grad(g))(2.0, 3), cj.vmap(cj.grad(g), (0, None))(A, 3)


@program
def no_arguments(cj, lax):
    f = cj.custom_jvp(lambda: 3.0)
    f.defjvp(lambda p, t: (3.0, 0.0))
    g = cj.custom_vjp(lambda: 3.0)
    g.defvjp(lambda: (3.0, None), lambda r, ct: ())
    return f(), g(), cj.grad(lambda x: x * f() * g())(1.0)


@program
def none_in_trees(cj, lax):
    f = cj.custom_vjp(lambda d: (d["a"], None))
    f.defvjp(lambda d: ((d["a"], None), None), lambda r, ct: ({"a": 10.0 * ct[0], "b": None},))
    g = cj.custom_jvp(lambda d: (d["a"], None))
    g.defjvp(lambda p, t: ((p[0]["a"], None), (10.0 * t[0]["a"], None)))
    return (cj.grad(lambda x: f({"a": x, "b": None})[0])(2.0), cj.grad(lambda x: g({"a": x, "b": None})[0])(2.0))


@program
def none_for_trees(cj, lax):
    f = cj.custom_vjp(lambda x, d: x * d["a"])
    f.defvjp(lambda x, d: (x * d["a"], d), lambda d, ct: (10.0 * ct, None))
    return cj.grad(f, (0, 1))(2.0, {"a": 3.0, "b": (1.0,)})


@program
def identity_output(cj, lax):
    f = cj.custom_vjp(lambda x, y: (x, y, x))
    f.defvjp(lambda x, y: ((x, y, x), None), lambda r, ct: (2.0 * ct[0] + 3.0 * ct[2], 5.0 * ct[1]))
    return cj.grad(lambda x, y: sum(f(x, y)), (0, 1))(1.0, 2.0)


@program
def list_output(cj, lax):
    f = cj.custom_jvp(lambda x: [x, 2.0 * x])
    f.defjvp(lambda p, t: ([p[0], 2.0 * p[0]], [t[0], 7.0 * t[0]]))
    return cj.grad(lambda x: f(x)[1])(1.0)


@program
def list_cotangents(cj, lax):
    f = cj.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: [ct * r[1], ct * r[0]])
    return cj.grad(f, (0, 1))(2.0, 3.0)


@program
def list_pair(cj, lax):
    f = cj.custom_vjp(lambda x: x)
    f.defvjp(lambda x: [x, None], lambda r, ct: (3.0 * ct,))
    g = cj.custom_jvp(lambda x: x)
    g.defjvp(lambda p, t: [p[0], 3.0 * t[0]])
    return cj.grad(f)(2.0), cj.grad(g)(2.0)


@program
def rule_is_jitted(cj, lax):
    f = cj.custom_vjp(lambda x: x)
    f.defvjp(cj.jit(lambda x: (x, 2.0 * x)), cj.jit(lambda r, ct: (r * ct,)))
    g = cj.custom_jvp(lambda x: x)
    g.defjvp(cj.jit(lambda p, t: (p[0], 3.0 * t[0])))
    return cj.grad(f)(2.0), cj.grad(g)(2.0), cj.vmap(cj.grad(f))(A)


@program
def jit_inside(cj, lax):
    f = cj.custom_vjp(cj.jit(lambda x, y=2.0: x * y))
    f.defvjp(lambda x, y: (x * y, y), lambda y, ct: (10.0 * y * ct, None))
    g = cj.custom_jvp(cj.jit(lambda x: x))
    g.defjvp(lambda p, t: (p[0], 3.0 * t[0]))
    return cj.grad(f)(2.0), cj.grad(g)(2.0), f(x=3.0)


@program
def nested_customs(cj, lax):
    f = cj.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], 3.0 * t[0]))
    g = cj.custom_vjp(f)
    g.defvjp(lambda x: (f(x), None), lambda r, ct: (cj.grad(f)(1.0) * ct,))
    h = cj.custom_jvp(g)
    h.defjvp(lambda p, t: (g(*p), 5.0 * t[0]))
    return cj.grad(g)(2.0), cj.grad(h)(2.0), cj.jvp(h, (2.0,), (1.0,))


@program
def residuals_of_all_kinds(cj, lax):
    f = cj.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, {"x": x, "n": 3, "none": None, "t": (np.float32(2.0), np.arange(2), True)}),
             lambda r, ct: (ct * r["x"] * r["n"],))
    return cj.grad(f)(2.0), cj.jit(cj.grad(f))(2.0), cj.vmap(cj.grad(f))(A)


@program
def higher_orders(cj, lax):
    f = cj.custom_jvp(lambda x: x**3)
    f.defjvp(lambda p, t: (f(*p), 2.0 * p[0] ** 2 * t[0]))
    g = cj.custom_vjp(lambda x: x**3)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (2.0 * x**2 * ct,))
    return (cj.grad(cj.grad(f))(2.0), cj.hessian(f)(2.0), cj.jacfwd(cj.grad(f))(2.0), cj.grad(cj.grad(g))(2.0),
            cj.grad(cj.grad(cj.grad(f)))(2.0), cj.jit(cj.grad(cj.jit(cj.grad(g))))(2.0))


@program
def weak_types(cj, lax):
    f = cj.custom_vjp(lambda x: 2 * x)
    f.defvjp(lambda x: (2 * x, None), lambda r, ct: (1.0 * ct,))
    g = cj.custom_jvp(lambda x: 2 * x)
    g.defjvp(lambda p, t: (2 * p[0], 1.0 * t[0]))
    x = np.float32(3.0)
    return f(x), g(x), cj.grad(f)(x), cj.grad(g)(x), cj.grad(f)(3.0)


@program
def constant_cotangents(cj, lax):
    f = cj.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda r, ct: (1.0,))
    g = cj.custom_jvp(lambda x: x)
    g.defjvp(lambda p, t: (p[0], 7.0))
    return cj.grad(f)(2.0), cj.jvp(g, (2.0,), (1.0,))


@program
def in_while_and_fori(cj, lax):
    f = cj.custom_jvp(lambda x: lax.sin(x))
    f.defjvp(lambda p, t: (f(*p), 10.0 * t[0]))
    return (cj.jvp(lambda x: lax.fori_loop(0, 3, lambda i, x: f(x), x), (1.0,), (1.0,)),
            cj.jvp(lambda x: lax.while_loop(lambda x: x < 5.0, lambda x: f(x) + x + 2.0, x), (1.0,), (1.0,)),
            cj.grad(lambda x: lax.fori_loop(0, 3, lambda i, x: f(x), x))(1.0))


@program
def complex_numbers(cj, lax):
    f = cj.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), lambda r, ct: (ct * 1j,))
    g = cj.custom_jvp(lambda x: x * 2.0)
    g.defjvp(lambda p, t: (p[0] * 2.0, t[0] * 3j))
    z = np.complex128(1 + 2j)
    return cj.vjp(f, z)[1](1 + 0j), cj.jvp(g, (z,), (1 + 1j,)), cj.vjp(g, z)[1](1 + 0j)


@program
def named_tuples(cj, lax):
    P = namedtuple("P", "x y")
    f = cj.custom_vjp(lambda p: P(p.x * p.y, p.x))
    f.defvjp(lambda p: (P(p.x * p.y, p.x), p), lambda p, ct: (P(10.0 * ct.x * p.y, ct.x * p.x),))
    return cj.grad(lambda p: f(p).x)(P(2.0, 3.0))


@program
def type_checks(cj, lax):
    f = cj.custom_jvp(lambda x: x)
    g = cj.custom_vjp(lambda x: x)
    return (isinstance(f, cj.custom_jvp), isinstance(g, cj.custom_vjp), f.fun(3.0), f.nondiff_argnums == (),
            f.jvp is None, g.fwd is None, g.bwd is None, cj.custom_derivatives.custom_vjp is cj.custom_vjp)


@program
def rules_read_back(cj, lax):
    f = cj.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], 3.0 * t[0]))
    g = cj.custom_vjp(lambda x: x)
    g.defvjp(lambda x: (x, 2.0), lambda r, ct: (r * ct,))
    return f.jvp((1.0,), (2.0,)), g.fwd(1.0), g.bwd(2.0, 3.0)


@program
def rematerialized(cj, lax):
    f = cj.custom_vjp(lambda x: lax.sin(x))
    f.defvjp(lambda x: (lax.sin(x), x), lambda x, ct: (10.0 * ct * x,), optimize_remat=True)
    return (cj.grad(cj.checkpoint(f))(2.0), cj.grad(lambda x: cj.checkpoint(lambda x: f(f(x)))(x))(2.0),
            cj.jit(cj.grad(cj.checkpoint(f)))(2.0))


@program
def value_and_grad_with_aux(cj, lax):
    f = cj.custom_vjp(lambda x: (x * 2.0, {"aux": x}))
    f.defvjp(lambda x: ((x * 2.0, {"aux": x}), None), lambda r, ct: (10.0 * ct[0],))
    return cj.value_and_grad(f, has_aux=True)(3.0)


@program
def jacobians(cj, lax):
    f = cj.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (p[0] * p[0], 3.0 * p[0] * t[0]))
    g = cj.custom_vjp(lambda x: x * x)
    g.defvjp(lambda x: (x * x, x), lambda x, ct: (3.0 * x * ct,))
    return (cj.jacfwd(f)(A), cj.jacrev(f)(A), cj.jacrev(g)(A), cj.hessian(lambda x: f(x).sum())(A),
            cj.jacrev(cj.jacrev(g))(A))


@program
def partial_without_default(cj, lax):
    def base(k, x, y=2.0):
        return k * x * y
    f = cj.custom_jvp(functools.partial(base, 3.0))
    @f.defjvp
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return 6.0 * x, 10.0 * x_dot
    g = cj.custom_vjp(functools.partial(base, 3.0))
    g.defvjp(lambda x: (6.0 * x, None), lambda r, ct: (7.0 * ct,))
    return f(2.0), cj.grad(f)(2.0), cj.grad(g)(2.0), cj.jit(cj.grad(g))(2.0)


@program
def tree_partial_as_argument(cj, lax):
    f = cj.custom_vjp(lambda fun, x: fun(x))
    f.defvjp(lambda fun, x: (fun(x), (fun, x)), lambda r, ct: (None, 10.0 * ct))
    return cj.grad(lambda w, x: f(cj.tree_util.Partial(lambda w, x: w * x, w), x), (0, 1))(2.0, 3.0)


@program
def bool_output(cj, lax):
    f = cj.custom_jvp(lambda x: (x, x > 0.0))
    f.defjvp(lambda p, t: ((p[0], p[0] > 0.0), (3.0 * t[0], np.zeros((), cj.dtypes.float0))))
    return cj.grad(lambda x: f(x)[0])(2.0), cj.jvp(lambda x: f(x)[0], (2.0,), (1.0,))


@program
def switch_in_rule(cj, lax):
    f = cj.custom_jvp(lambda i, x: x)
    @f.defjvp
    def rule(primals, tangents):
        (i, x), (_, x_dot) = primals, tangents
        branches = lambda t: t, lambda t: 2.0 * t, lambda t: lax.full_like(t, 0.0), lambda t: x * t
        return x, lax.switch(i, branches, x_dot)
    return [cj.grad(f, 1)(i, 3.0) for i in range(4)], [cj.jit(cj.grad(f, 1))(i, 3.0) for i in range(4)]


@program
def scan_in_rule(cj, lax):
    f = cj.custom_jvp(lambda x: x)
    @f.defjvp
    def rule(primals, tangents):
        return primals[0], lax.scan(lambda c, _: (2.0 * c, None), tangents[0], None, length=3)[0]
    return cj.grad(f)(3.0), cj.jit(cj.grad(f))(3.0), cj.vmap(cj.grad(f))(A)


@program
def rule_with_where(cj, lax):
    f = cj.custom_jvp(lambda x: lax.max(x, np.float64(0.0)))
    f.defjvp(lambda p, t: (f(*p), lax.select(p[0] > 0.0, t[0], lax.full_like(t[0], 0.0))))
    return cj.vmap(cj.grad(f))(np.array([-1.0, 0.0, 2.0])), cj.jit(cj.grad(f))(1.0)


@program
def stacked_axes(cj, lax):
    f = cj.custom_vjp(lambda x, w: (x * w).sum())
    f.defvjp(lambda x, w: ((x * w).sum(), (x, w)), lambda r, ct: (ct * r[1], 10.0 * ct * r[0]))
    x = np.ones((2, 3))
    return (cj.grad(lambda w: cj.vmap(f, (0, None))(x, w).sum())(A), cj.vmap(cj.grad(f, (0, 1)), (0, None))(x, A),
            cj.vmap(cj.vmap(cj.grad(f), (None, 0)), (0, None))(x, x))


@program
def subclass_of_a_wrapper(cj, lax):
    class Own(cj.custom_jvp):
        pass
    f = Own(lambda x: x)
    f.defjvp(lambda p, t: (p[0], 3.0 * t[0]))
    return cj.grad(f)(1.0), isinstance(f, cj.custom_jvp)


@program
def rule_ignores_tangent(cj, lax):
    f = cj.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], np.zeros(())))
    return cj.grad(f)(1.0), cj.jit(cj.grad(f))(1.0), cj.vmap(cj.grad(f))(A)


@program
def cond_of_two_tangents(cj, lax):
    f = cj.custom_jvp(lambda x, y: x * y)
    @f.defjvp
    def rule(primals, tangents):
        (x, y), dots = primals, tangents
        return x * y, lax.cond(x > 0.0, lambda a, b: a * y + b * x, lambda a, b: b, *dots)
    return ([cj.grad(f, (0, 1))(s, 3.0) for s in (2.0, -2.0)], [cj.jit(cj.grad(f))(s, 3.0) for s in (2.0, -2.0)],
            cj.grad(f, 1)(-2.0, 3.0), cj.vmap(cj.grad(f, 1), (0, None))(np.array([2.0, -2.0]), 3.0))


@program
def conds_in_conds(cj, lax):
    f = cj.custom_jvp(lambda x: x)
    @f.defjvp
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        def above(t):
            return lax.cond(x > 1.0, lambda t: 2.0 * t, lambda t: lax.full_like(t, 0.0), t)
        def below(t):
            return lax.switch(1, [lambda t: t, lambda t: 5.0 * t], t)
        return x, lax.cond(x > 0.0, above, below, x_dot)
    return ([cj.grad(f)(s) for s in (2.0, 0.5, -2.0)], cj.vmap(cj.grad(f))(np.array([2.0, 0.5, -2.0])),
            cj.grad(cj.grad(lambda x: f(x) * f(x)))(2.0))


@program
def static_by_number_and_name(cj, lax):
    @functools.partial(cj.custom_vjp, nondiff_argnums=(0,), nondiff_argnames=("k",))
    def f(g, x, k):
        return g(x) * k
    f.defvjp(lambda g, x, k: (g(x) * k, x), lambda g, k, x, ct: (3.0 * k * ct,))
    return cj.grad(lambda x: f(lax.sin, x, 2))(1.0), cj.jit(cj.grad(lambda x: f(g=lax.sin, x=x, k=2)))(1.0)
