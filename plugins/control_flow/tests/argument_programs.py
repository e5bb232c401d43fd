"""Programs with custom_jvp and custom_vjp: methods, and arguments of all kinds, static ones among them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

#: Programs by name: functions of a library, corejax or jax, and its lax.
PROGRAMS: dict[str, Any] = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


# Methods


@program
def jvp_method(cj, lax):
    class Layer:
        w = 3.0
        @functools.partial(cj.custom_jvp, nondiff_argnums=(0,))
        def f(self, x):
            return self.w * x
        @f.defjvp
        def rule(self, primals, tangents):
            return self.w * primals[0], 10.0 * tangents[0]
    layer = Layer()
    return layer.f(2.0), cj.grad(layer.f)(2.0), cj.jit(cj.grad(layer.f))(2.0), cj.grad(Layer.f, argnums=1)(layer, 2.0)


@program
def jvp_method_called_on_class(cj, lax):
    class Layer:
        w = 3.0
        @functools.partial(cj.custom_jvp, nondiff_argnums=(0,))
        def f(self, x):
            return self.w * x
        @f.defjvp
        def rule(self, primals, tangents):
            return self.w * primals[0], 10.0 * tangents[0]
    layer = Layer()
    return Layer.f(layer, 2.0), cj.grad(Layer.f, argnums=1)(layer, 2.0), cj.grad(lambda x: Layer.f(layer, x))(2.0)


@program
def vjp_method(cj, lax):
    class Layer:
        w = 3.0
        @functools.partial(cj.custom_vjp, nondiff_argnums=(0,))
        def f(self, x):
            return self.w * x
        def fwd(self, x):
            return self.w * x, x
        def bwd(self, res, ct):
            return (self.w * 10.0 * ct,)
        f.defvjp(fwd, bwd)
    layer = Layer()
    return layer.f(2.0), cj.grad(layer.f)(2.0), cj.jit(cj.grad(layer.f))(2.0), cj.vmap(cj.grad(layer.f))(np.ones(2))


@program
def vjp_staticmethod(cj, lax):
    class Layer:
        @staticmethod
        @cj.custom_vjp
        def f(x):
            return 3.0 * x
        f.defvjp(lambda x: (3.0 * x, None), lambda res, ct: (10.0 * ct,))
    return Layer.f(2.0), cj.grad(Layer.f)(2.0), cj.grad(Layer().f)(2.0)


@program
def jvp_staticmethod(cj, lax):
    class Layer:
        @staticmethod
        @cj.custom_jvp
        def f(x):
            return 3.0 * x
        f.defjvp(lambda p, t: (3.0 * p[0], 10.0 * t[0]))
    return Layer.f(2.0), cj.grad(Layer.f)(2.0), cj.grad(Layer().f)(2.0)


@program
def jvp_over_staticmethod(cj, lax):
    class Layer:
        @cj.custom_jvp
        @staticmethod
        def f(x):
            return 3.0 * x
        f.defjvp(lambda p, t: (3.0 * p[0], 10.0 * t[0]))
    return Layer.f(2.0), cj.grad(Layer.f)(2.0)


@program
def jvp_classmethod(cj, lax):
    class Layer:
        w = 3.0
        @classmethod
        @functools.partial(cj.custom_jvp, nondiff_argnums=(0,))
        def f(cls, x):
            return cls.w * x
    Layer.__dict__["f"].__func__.defjvp(lambda cls, p, t: (cls.w * p[0], 10.0 * t[0]))
    return Layer.f(2.0), cj.grad(Layer.f)(2.0), cj.grad(Layer().f)(2.0)


@program
def vjp_classmethod(cj, lax):
    class Layer:
        w = 3.0
        @classmethod
        @functools.partial(cj.custom_vjp, nondiff_argnums=(0,))
        def f(cls, x):
            return cls.w * x
    Layer.__dict__["f"].__func__.defvjp(lambda cls, x: (cls.w * x, None), lambda cls, r, ct: (10.0 * ct,))
    return Layer.f(2.0), cj.grad(Layer.f)(2.0), cj.grad(Layer().f)(2.0)


@program
def bound_method_decorated(cj, lax):
    class Layer:
        w = 3.0
        def f(self, x):
            return self.w * x
    layer = Layer()
    f = cj.custom_jvp(layer.f)
    f.defjvp(lambda p, t: (layer.f(*p), 10.0 * t[0]))
    g = cj.custom_vjp(layer.f)
    g.defvjp(lambda x: (layer.f(x), None), lambda r, ct: (7.0 * ct,))
    return f(2.0), cj.grad(f)(2.0), g(2.0), cj.grad(g)(2.0)


@program
def callable_object_decorated(cj, lax):
    class Layer:
        w = 3.0
        def __call__(self, x, y=2.0):
            return self.w * x * y
    f = cj.custom_jvp(Layer())
    f.defjvp(lambda p, t: (3.0 * p[0] * p[1], 10.0 * t[0] + t[1]))
    return f(2.0), f(2.0, y=5.0), cj.grad(f)(2.0), cj.grad(f, argnums=1)(2.0, 3.0)


@program
def self_as_pytree(cj, lax):
    @cj.tree_util.register_pytree_node_class
    class Layer:
        def __init__(self, w):
            self.w = w
        def tree_flatten(self):
            return (self.w,), None
        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)
        @cj.custom_jvp
        def f(self, x):
            return self.w * x
        @f.defjvp
        def rule(primals, tangents):
            (self, x), (d, x_dot) = primals, tangents
            return self.w * x, 10.0 * d.w * x + 100.0 * self.w * x_dot
    return Layer.f(Layer(3.0), 2.0), cj.grad(lambda w, x: Layer.f(Layer(w), x), argnums=(0, 1))(3.0, 2.0)


# Arguments that are not data

def with_mode(cj, lax, **options):
    @functools.partial(cj.custom_jvp, **options)
    def f(mode, x):
        return lax.sin(x) if mode == "sin" else lax.cos(x)
    @f.defjvp
    def rule(mode, primals, tangents):
        return f(mode, *primals), {"sin": 2.0, "cos": 3.0}[mode] * tangents[0]
    return f


@program
def nondiff_string(cj, lax):
    f = with_mode(cj, lax, nondiff_argnums=(0,))
    return (f("sin", 1.0), cj.grad(f, argnums=1)("cos", 1.0), cj.jit(f, static_argnums=0)("cos", 1.0),
            cj.jit(cj.grad(f, argnums=1), static_argnums=0)("cos", 1.0), cj.vmap(lambda x: f("sin", x))(np.ones(2)))


@program
def nondiff_names(cj, lax):
    f = with_mode(cj, lax, nondiff_argnames=("mode",))
    return f("sin", 1.0), cj.grad(f, argnums=1)("cos", 1.0), cj.grad(lambda x: f(mode="cos", x=x))(1.0)


@program
def nondiff_names_string(cj, lax):
    f = with_mode(cj, lax, nondiff_argnames="mode")
    return f("sin", 1.0), cj.grad(f, argnums=1)("cos", 1.0)


@program
def nondiff_int(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnums=0)
    def f(n, x):
        return x * n
    f.defjvp(lambda n, p, t: (p[0] * n, t[0] * n * 10))
    return f(3, 2.0), cj.grad(f, argnums=1)(3, 2.0)


@program
def nondiff_in_the_middle(cj, lax):
    @functools.partial(cj.custom_vjp, nondiff_argnums=(1, 3))
    def f(x, mode, y, scale):
        return x * y * scale
    def fwd(x, mode, y, scale):
        return x * y * scale, (x, y)
    def bwd(mode, scale, res, ct):
        return (ct * res[1] * len(mode), ct * res[0] * scale)
    f.defvjp(fwd, bwd)
    return f(2.0, "ab", 3.0, 4), cj.grad(f, argnums=(0, 2))(2.0, "ab", 3.0, 4)


@program
def nondiff_function(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnums=(0,))
    def app(fun, x):
        return fun(x)
    @app.defjvp
    def rule(fun, primals, tangents):
        return app(fun, *primals), 10.0 * tangents[0]
    return app(lax.sin, 1.0), cj.grad(app, argnums=1)(lax.sin, 1.0), cj.jit(cj.grad(lambda x: app(lax.cos, x)))(1.0)


@program
def nondiff_negative(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnums=(-1,))
    def f(x, n):
        return x * n
    f.defjvp(lambda n, p, t: (p[0] * n, t[0] * n * 10))
    return f(2.0, 3), cj.grad(f)(2.0, 3)


@program
def nondiff_unhashable(cj, lax):
    @functools.partial(cj.custom_vjp, nondiff_argnums=(1,))
    def f(x, settings):
        return x * settings["k"]
    f.defvjp(lambda x, s: (x * s["k"], None), lambda s, r, ct: (ct * s["k"] * 10.0,))
    return f(2.0, {"k": 3}), cj.grad(f)(2.0, {"k": 3}), cj.jit(lambda x: cj.grad(f)(x, {"k": 3}))(2.0)


@program
def nondiff_array(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defjvp(lambda a, p, t: (p[0] * a, t[0] * a * 10.0))
    return cj.jvp(lambda x: f(x, np.array([1.0, 2.0])), (2.0,), (1.0,))


@program
def nondiff_jit_tracer_jvp(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defjvp(lambda a, p, t: (p[0] * a, t[0] * a * 10.0))
    return cj.jit(lambda x, a: cj.grad(lambda x: f(x, a))(x))(2.0, 3.0)


@program
def nondiff_jit_tracer_outer_grad_jvp(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defjvp(lambda a, p, t: (p[0] * a, t[0] * a * 10.0))
    return cj.grad(cj.jit(lambda x, a: f(x, a)))(2.0, 3.0)


@program
def nondiff_vmap_tracer_jvp(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defjvp(lambda a, p, t: (p[0] * a, t[0] * a * 10.0))
    return cj.vmap(lambda x, a: cj.grad(f)(x, a))(np.arange(3.0), np.arange(3.0))


@program
def nondiff_outer_vmap_tracer_jvp(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defjvp(lambda a, p, t: (p[0] * a, t[0] * a * 10.0))
    return cj.grad(lambda x, a: cj.vmap(f)(x, a).sum())(np.arange(3.0), np.arange(3.0))


@program
def nondiff_jvp_tracer_jvp(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defjvp(lambda a, p, t: (p[0] * a, t[0] * a * 10.0))
    return cj.grad(lambda x, a: f(x, a), argnums=1)(2.0, 3.0)


@program
def nondiff_outer_jvp_tracer_jvp(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defjvp(lambda a, p, t: (p[0] * a, t[0] * a * 10.0))
    return cj.grad(lambda a: cj.grad(f)(2.0, a))(3.0)


@program
def nondiff_jit_tracer_vjp(cj, lax):
    @functools.partial(cj.custom_vjp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defvjp(lambda x, a: (x * a, None), lambda a, r, ct: (10.0 * a * ct,))
    return cj.jit(lambda x, a: cj.grad(lambda x: f(x, a))(x))(2.0, 3.0)


@program
def nondiff_jit_tracer_outer_grad_vjp(cj, lax):
    @functools.partial(cj.custom_vjp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defvjp(lambda x, a: (x * a, None), lambda a, r, ct: (10.0 * ct,))
    return cj.grad(cj.jit(lambda x, a: f(x, a)))(2.0, 3.0)


@program
def nondiff_vmap_tracer_vjp(cj, lax):
    @functools.partial(cj.custom_vjp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defvjp(lambda x, a: (x * a, None), lambda a, r, ct: (10.0 * a * ct,))
    return cj.vmap(lambda x, a: cj.grad(f)(x, a))(np.arange(3.0), np.arange(3.0))


@program
def nondiff_outer_jvp_tracer_vjp(cj, lax):
    @functools.partial(cj.custom_vjp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defvjp(lambda x, a: (x * a, None), lambda a, r, ct: (10.0 * a * ct,))
    return cj.grad(lambda a: cj.grad(f)(2.0, a))(3.0)


@program
def nondiff_jvp_tracer_vjp(cj, lax):
    @functools.partial(cj.custom_vjp, nondiff_argnums=(1,))
    def f(x, a):
        return x * a
    f.defvjp(lambda x, a: (x * a, None), lambda a, r, ct: (10.0 * a * ct,))
    return cj.grad(lambda x, a: f(x, a), argnums=1)(2.0, 3.0)


# Keywords and defaults


@program
def keywords_jvp(cj, lax):
    @cj.custom_jvp
    def f(x, y=3.0):
        return x * y
    f.defjvp(lambda p, t: (p[0] * p[1], 10.0 * t[0] + t[1]))
    return (f(x=2.0, y=4.0), f(2.0, y=4.0), cj.grad(f)(2.0), cj.grad(lambda x: f(x=x, y=4.0))(2.0),
            cj.grad(lambda y: f(2.0, y=y))(2.0))


@program
def keywords_vjp(cj, lax):
    @cj.custom_vjp
    def f(x, y=3.0):
        return x * y
    f.defvjp(lambda x, y: (x * y, (x, y)), lambda r, ct: (10.0 * ct, ct))
    return (f(x=2.0, y=4.0), f(2.0, y=4.0), cj.grad(f)(2.0), cj.grad(lambda x: f(x=x, y=4.0))(2.0),
            cj.grad(lambda y: f(2.0, y=y))(2.0))


@program
def keyword_only(cj, lax):
    @cj.custom_jvp
    def f(x, *, y=3.0):
        return x * y
    f.defjvp(lambda p, t: (p[0], 10.0 * t[0]))
    return f(2.0), cj.grad(f)(2.0)


@program
def keyword_only_given(cj, lax):
    @cj.custom_jvp
    def f(x, *, y=3.0):
        return x * y
    f.defjvp(lambda p, t: (p[0], 10.0 * t[0]))
    return f(2.0, y=4.0)


@program
def keyword_only_nondiff(cj, lax):
    @functools.partial(cj.custom_jvp, nondiff_argnames=("y",))
    def f(x, *, y=3.0):
        return x * y
    f.defjvp(lambda y, p, t: (p[0], 10.0 * y * t[0]))
    return f(2.0, y=4.0), cj.grad(f)(2.0, y=4.0)


@program
def varargs(cj, lax):
    @cj.custom_jvp
    def f(*xs):
        return xs[0] * xs[1]
    f.defjvp(lambda p, t: (p[0] * p[1], 10.0 * t[0] + t[1]))
    return f(2.0, 3.0), cj.grad(f, argnums=(0, 1))(2.0, 3.0)


@program
def default_nondiff(cj, lax):
    @functools.partial(cj.custom_vjp, nondiff_argnums=(1,))
    def f(x, mode="a"):
        return x * len(mode)
    f.defvjp(lambda x, mode: (x * len(mode), None), lambda mode, r, ct: (10.0 * len(mode) * ct,))
    return f(2.0), f(2.0, mode="abc"), cj.grad(f)(2.0), cj.grad(lambda x: f(x, mode="abc"))(2.0)


@program
def default_none(cj, lax):
    @cj.custom_vjp
    def f(x, y=None):
        return x if y is None else x * y
    f.defvjp(lambda x, y: (f(x, y), None), lambda r, ct: (10.0 * ct, None))
    return f(2.0), cj.grad(f)(2.0), f(2.0, 3.0), cj.grad(f)(2.0, 3.0)


@program
def functools_partial(cj, lax):
    def base(k, x, y=2.0):
        return k * x * y
    f = cj.custom_jvp(functools.partial(base, 3.0))
    f.defjvp(lambda p, t: (3.0 * p[0] * 2.0, 10.0 * t[0]))
    g = cj.custom_jvp(functools.partial(base, y=5.0))
    g.defjvp(lambda p, t: (p[0] * p[1], 10.0 * t[0] + t[1]))
    return f(2.0), cj.grad(f)(2.0), cj.grad(g, argnums=(0, 1))(1.0, 2.0)


@program
def partial_of_custom(cj, lax):
    @cj.custom_jvp
    def f(x, y):
        return x * y
    f.defjvp(lambda p, t: (p[0] * p[1], 10.0 * t[0] + t[1]))
    return cj.grad(functools.partial(f, 2.0))(3.0), cj.grad(functools.partial(f, y=2.0))(3.0)


@program
def partial_rules(cj, lax):
    def fwd(k, x):
        return k * x, x
    def bwd(k, res, ct):
        return (10.0 * k * ct,)
    f = cj.custom_vjp(lambda x: 3.0 * x)
    f.defvjp(functools.partial(fwd, 3.0), functools.partial(bwd, 3.0))
    return cj.grad(f)(2.0), cj.jit(cj.grad(f))(2.0)


@program
def fwd_and_bwd_by_keyword(cj, lax):
    f = cj.custom_vjp(lambda x: 3.0 * x)
    f.defvjp(fwd=lambda x: (3.0 * x, x), bwd=lambda r, ct: (10.0 * ct,), symbolic_zeros=False, optimize_remat=True)
    g = cj.custom_jvp(lambda x: 3.0 * x)
    g.defjvp(jvp=lambda p, t: (p[0], 5.0 * t[0]), symbolic_zeros=False)
    return cj.grad(f)(2.0), cj.grad(g)(2.0)


@program
def custom_as_keyword(cj, lax):
    f = cj.custom_vjp(fun=lambda x: 3.0 * x, nondiff_argnums=())
    f.defvjp(lambda x: (3.0 * x, x), lambda r, ct: (10.0 * ct,))
    return cj.grad(f)(2.0)


@program
def decorator_with_options_only(cj, lax):
    @functools.partial(cj.custom_vjp, nondiff_argnums=(0,))
    def f(k, x):
        return k * x
    f.defvjp(lambda k, x: (k * x, x), lambda k, r, ct: (10.0 * ct,))
    return cj.grad(f, 1)(2, 2.0)


@program
def attributes(cj, lax):
    def f(x):
        """Doc."""
        return x
    f.own = 7
    out = []
    for kind in (cj.custom_jvp, cj.custom_vjp):
        g = kind(f)
        out.append((g.__name__, g.__doc__, g.__qualname__.split(".")[-1], g.__wrapped__ is f, g.own,
                    g.__module__ == __name__))
    return out


@program
def defjvp_returns_rule(cj, lax):
    f = cj.custom_jvp(lambda x: x)
    def rule(p, t):
        return p[0], t[0]
    g = cj.custom_vjp(lambda x: x)
    return f.defjvp(rule) is rule, g.defvjp(lambda x: (x, None), lambda r, ct: (ct,))


@program
def redefined_rule(cj, lax):
    f = cj.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], 2.0 * t[0]))
    a = cj.grad(f)(1.0)
    f.defjvp(lambda p, t: (p[0], 3.0 * t[0]))
    return a, cj.grad(f)(1.0)


@program
def defjvps_partial(cj, lax):
    f = cj.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, ans, x, y: 10.0 * y * t, None)
    return cj.grad(f, (0, 1))(2.0, 3.0)


@program
def defjvps_nondiff(cj, lax):
    f = cj.custom_jvp(lambda n, x: x * n, nondiff_argnums=(0,))
    f.defjvps(lambda t, ans, n, x: 10.0 * n * t)
    return cj.grad(f, 1)(2.0, 3.0)
