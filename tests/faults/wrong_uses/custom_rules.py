"""custom_vmap, linear_call, closure_convert, custom_gradient."""

from __future__ import annotations

from .case import Group

vmap = Group("custom_vmap")
vmap.add("a call before there is a rule", """
    f = cj.custom_batching.custom_vmap(lambda x: x)
    cj.vmap(f)(np.ones(3))
    """, AttributeError, "def_vmap", "before")
vmap.add("a rule that returns no pair", """
    f = cj.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(lambda size, batched, x: x)
    cj.vmap(f)(np.ones(3))
    """, TypeError, "def_vmap rule", "pair")
vmap.add("a rule that doesn't say what is batched", """
    f = cj.custom_batching.custom_vmap(lambda x: (x, x))
    f.def_vmap(lambda size, batched, x: ((x, x), True))
    cj.vmap(f)(np.ones(3))
    """, TypeError, "def_vmap rule", "what is batched", "tuple of 2")
vmap.add("an axis instead of a flag", """
    f = cj.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(lambda size, batched, x: (x, 0))
    cj.vmap(f)(np.ones(3))
    """, TypeError, "True or False", "0")
vmap.add("a rule that returns too few elements", """
    f = cj.custom_batching.custom_vmap(lambda x: x)
    f.def_vmap(lambda size, batched, x: (x[:2], True))
    cj.vmap(f)(np.ones(3))
    """, TypeError, "f64[2]", "f64[3]")
vmap.add("a closed-over value that is mapped", """
    def f(weight, x):
        g = cj.custom_batching.custom_vmap(lambda x: weight * x)
        g.def_vmap(lambda size, batched, x: (weight * x, True))
        return g(x)  # <-
    cj.vmap(f)(np.ones(3), np.ones(3))
    """, ValueError, "closes over", "weight")

linear = Group("linear_call")
linear.add("integers", "cj.custom_derivatives.linear_call(lambda r, x: x, lambda r, ct: ct, 1.0, 3)", TypeError,
           "linear_args", "i64")
linear.add("a transpose of another structure", """
    def f(x):
        return cj.custom_derivatives.linear_call(lambda r, x: (x, x), lambda r, ct: ct, (), x)[0]
    cj.grad(f)(3.0)  # <-
    """, TypeError, "structured", "tuple of 2")
linear.add("a transpose of another shape", """
    def f(x):
        return cj.custom_derivatives.linear_call(lambda r, x: x, lambda r, ct: np.ones(3), (), x)
    cj.grad(f)(3.0)  # <-
    """, TypeError, "f64[3]", "f64[]")
linear.add("a transposition by the residuals", """
    def f(r):
        return cj.custom_derivatives.linear_call(lambda r, x: r * x, lambda r, ct: r * ct, r, 3.0)
    cj.linear_transpose(f, 2.0)(1.0)  # <-
    """, NotImplementedError, "linear_args")

closures = Group("closure_convert and custom_gradient")
closures.add("other arguments than the examples", """
    converted, consts = cj.closure_convert(lambda x: 2.0 * x, 1.0)
    converted(1.0, 2.0)
    """, TypeError, "2 arguments", "converted for")
closures.add("an argument of another type", """
    converted, consts = cj.closure_convert(lambda x: 2.0 * x, 1.0)
    converted(np.ones(3))
    """, TypeError, "f64[3]", "f64[]")
closures.add("a function that returns no rule", "cj.custom_gradient(lambda x: (x, x))(1.0)", TypeError,
             "a function after its output")
closures.add("a rule with too few cotangents", """
    f = cj.custom_gradient(lambda x, y: (x * y, lambda ct: ct))
    cj.grad(f)(1.0, 2.0)
    """, TypeError, "one cotangent for each argument", "a tuple of 2")

GROUPS = (vmap, linear, closures)
