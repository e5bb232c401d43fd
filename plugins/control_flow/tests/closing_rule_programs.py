"""Programs whose rules close over traced values, and those whose jvp rules contain a conditional."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Programs by name: functions of a library, corejax or jax, and its lax.
PROGRAMS: dict[str, Any] = {}


# Closures

def closing(cj, lax, c, *where, vjp=False):
    """f(x) = c x, its derivative 10 c; what is in `where` reads c from the closure, the others a constant."""
    k = lambda place, c=c: c if place in where else 3.0
    if vjp:
        f = cj.custom_vjp(lambda x: k("fun") * x)
        f.defvjp(lambda x: (k("fwd") * x, x), lambda r, ct: (10.0 * k("bwd") * ct,))
    else:
        f = cj.custom_jvp(lambda x: k("fun") * x)
        f.defjvp(lambda p, t: (k("fun") * p[0], 10.0 * k("rule") * t[0]))
    return f


def _closures():
    levels = {
        "jit": lambda cj, lax, make:
            cj.jit(lambda c, x: (make(c)(x), cj.grad(make(c))(x)))(3.0, 2.0),
        "jit_outside_grad": lambda cj, lax, make:
            cj.grad(cj.jit(lambda x, c: make(c)(x)))(2.0, 3.0),
        "jit_inside_grad": lambda cj, lax, make:
            cj.jit(lambda c: cj.grad(cj.jit(lambda x: make(c)(x)))(2.0))(3.0),
        "vmap": lambda cj, lax, make:
            cj.vmap(lambda c, x: (make(c)(x), cj.grad(make(c))(x)))(np.arange(3.0), np.ones(3)),
        "vmap_outside": lambda cj, lax, make:
            cj.vmap(lambda c: cj.vmap(cj.grad(make(c)))(np.ones(2)))(np.arange(3.0)),
        "vmap_inside_jit": lambda cj, lax, make:
            cj.jit(lambda c: cj.vmap(cj.grad(make(c)))(np.ones(2)))(3.0),
        "vmap_of_jit": lambda cj, lax, make:
            cj.vmap(cj.jit(lambda c, x: cj.grad(make(c))(x)))(np.arange(3.0), np.ones(3)),
        "grad_of_vmap": lambda cj, lax, make:
            cj.grad(lambda x, c: cj.vmap(lambda x, c: make(c)(x))(x, c).sum())(np.ones(3), np.arange(3.0)),
        "outer_jvp": lambda cj, lax, make:
            cj.jvp(lambda c: cj.grad(make(c))(2.0), (3.0,), (1.0,)),
        "outer_grad": lambda cj, lax, make:
            cj.grad(lambda c: cj.grad(make(c))(2.0))(3.0),
        "outer_grad_primal": lambda cj, lax, make:
            cj.grad(lambda c: make(c)(2.0))(3.0),
        "outer_grad_both": lambda cj, lax, make:
            cj.grad(lambda c: make(c)(2.0 * c))(3.0),
        "outer_stopped": lambda cj, lax, make:
            cj.grad(lambda c: make(lax.stop_gradient(c))(2.0 * c))(3.0),
        "scan": lambda cj, lax, make:
            lax.scan(lambda c, x: (c + 1.0, (make(c)(x), cj.grad(make(c))(x))), 1.0, np.ones(2)),
        "grad_of_scan": lambda cj, lax, make:
            cj.grad(lambda x: lax.scan(lambda c, x: (c + 1.0, make(c)(x)), 1.0, x)[1].sum())(np.ones(2)),
        "cond": lambda cj, lax, make:
            cj.jit(cj.grad(lambda x, c: lax.cond(x > 0.0, lambda x: make(c)(x), lambda x: x, x)))(2.0, 3.0),
        "grad_of_checkpoint": lambda cj, lax, make:
            cj.grad(cj.checkpoint(lambda x, c: make(c)(x)))(2.0, 3.0),
        "linearize": lambda cj, lax, make:
            cj.jit(lambda c: cj.linearize(make(c), 2.0)[1](1.0))(3.0),
        "hessian": lambda cj, lax, make:
            cj.jit(lambda c: cj.hessian(make(c))(2.0))(3.0),
        "while": lambda cj, lax, make:
            lax.while_loop(lambda s: s[0] < 3.0, lambda s: (s[0] + 1.0, cj.grad(make(s[0]))(s[1])), (1.0, 2.0)),
    }
    for level, run in levels.items():
        for where in (("fun", "rule"), ("rule",), ("fun",)):
            def case(cj, lax, run=run, where=where):
                return run(cj, lax, lambda c: closing(cj, lax, c, *where))
            PROGRAMS[f"closure_jvp_{level}_in_{'_'.join(where)}"] = case
        for where in (("fun", "fwd", "bwd"), ("fun", "fwd"), ("bwd",)):
            def case(cj, lax, run=run, where=where):
                return run(cj, lax, lambda c: closing(cj, lax, c, *where, vjp=True))
            PROGRAMS[f"closure_vjp_{level}_in_{'_'.join(where)}"] = case


_closures()


# Rules with cond

def _conds():
    branches = {
        "linear": (lambda lax, x, t: 2.0 * t, lambda lax, x, t: 3.0 * t),
        "ignores": (lambda lax, x, t: 2.0 * t, lambda lax, x, t: np.zeros(())),
        "zeros_like": (lambda lax, x, t: 2.0 * t, lambda lax, x, t: lax.full_like(t, 0.0)),
        "both_ignore": (lambda lax, x, t: np.zeros(()), lambda lax, x, t: np.zeros(())),
        "residual": (lambda lax, x, t: x * t, lambda lax, x, t: lax.sin(x) * t),
        "other_residual": (lambda lax, x, t: x * t, lambda lax, x, t: lax.full_like(t, 0.0)),
        "constant": (lambda lax, x, t: x * t, lambda lax, x, t: t * np.float64(4.0)),
        "identity": (lambda lax, x, t: t, lambda lax, x, t: x * t),
        "zero_times": (lambda lax, x, t: t * 0.0, lambda lax, x, t: x * t),
    }
    calls = {
        "grad": lambda cj, f: cj.grad(f),
        "jit_grad": lambda cj, f: cj.jit(cj.grad(f)),
        "grad_jit": lambda cj, f: cj.grad(cj.jit(f)),
        "vmap_grad": lambda cj, f: lambda x: cj.vmap(cj.grad(f))(np.array([-1.0, 2.0])),
        "grad_vmap": lambda cj, f: lambda x: cj.grad(lambda x: cj.vmap(f)(x).sum())(np.array([-1.0, 2.0])),
        "hessian": lambda cj, f: cj.hessian(f),
        "linearize": lambda cj, f: lambda x: cj.linearize(f, x)[1](1.0),
        "scan": lambda cj, f: cj.grad(lambda x: cj.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]),
        "linear_transpose": lambda cj, f: lambda x:
            cj.linear_transpose(lambda t: cj.jvp(f, (x,), (t,))[1], 1.0)(1.0),
    }
    for name, (one, two) in branches.items():
        for how in ("args", "closed", "residual_closed"):
            for call, run in calls.items():
                def case(cj, lax, one=one, two=two, how=how, run=run):
                    f = cj.custom_jvp(lambda x: 5.0 * x)
                    @f.defjvp
                    def rule(p, t):
                        (x,), (x_dot,) = p, t
                        if how == "args":
                            dot = lax.cond(x > 0.0, lambda x, t: one(lax, x, t), lambda x, t: two(lax, x, t), x, x_dot)
                        elif how == "closed":
                            dot = lax.cond(x > 0.0, lambda: one(lax, x, x_dot), lambda: two(lax, x, x_dot))
                        else:
                            dot = lax.cond(x > 0.0, lambda t: one(lax, x, t), lambda t: two(lax, x, t), x_dot)
                        return f(x), dot
                    return run(cj, f)(np.float64(2.0)), run(cj, f)(np.float64(-2.0))
                PROGRAMS[f"cond_{name}_{how}_{call}"] = case


_conds()
