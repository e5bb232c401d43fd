"""jit, grad, jvp, vjp, linearize, vmap: what they are given."""

from __future__ import annotations

from .case import Group

jit = Group("jit")
jit.add("no function", "cj.jit(3.0)", TypeError, "float")
jit.add("a result instead of a function", "cj.jit(lax.sin(1.0))", TypeError, "Array")
jit.add("too many arguments", "cj.jit(lambda x: x * 2.0)(1.0, 2.0)", TypeError, "jit", "2", "(x)")
jit.add("an argument by an unknown name", "cj.jit(lambda x: x * 2.0)(1.0, rate=2.0)", TypeError, "jit", "rate", "(x)")
jit.add("an integer that no dtype holds", "cj.jit(lambda n: n * 2)(2 ** 70)", OverflowError,
        "1180591620717411303424")
jit.add("an argument that isn't an array", "cj.jit(lambda name, x: x)('sgd', 1.0)", TypeError, "args[0]", "str",
        "static_argnums")
jit.add("a leaf that isn't an array", "cj.jit(lambda state: state['x'])({'x': 1.0, 'name': 'sgd'})", TypeError,
        "args[0]['name']", "str")
jit.add("a result that isn't an array", "cj.jit(lambda x: {'y': x, 'name': 'sgd'})(1.0)", TypeError, "result['name']",
        "str")
jit.add("a static argument without hash", """
    f = cj.jit(lambda sizes, x: x, static_argnums=0)
    f([1, 2], 1.0)
    """, ValueError, "args[0]", "list")
jit.add("a static argument that is an array", """
    f = cj.jit(lambda n, x: x, static_argnums=0)
    f(np.arange(3), 1.0)
    """, ValueError, "args[0]", "ndarray")
jit.add("a static argument by name without hash", """
    f = cj.jit(lambda x, *, sizes: x, static_argnames="sizes")
    f(1.0, sizes={"a": 1})
    """, ValueError, "sizes", "dict")
jit.add("a static argument that can't be compared", """
    class Options:
        def __hash__(self):
            return 1
        def __eq__(self, other):
            raise NotImplementedError("no")
    f = cj.jit(lambda options, x: x, static_argnums=0)
    f(Options(), 1.0)
    f(Options(), 1.0)
    """, TypeError, "static argument", "NotImplementedError: no", "==")
jit.add("a static argument that is traced", """
    f = cj.jit(lambda n, x: x * n, static_argnums=0)
    cj.jit(lambda n, x: f(n, x))(2, 1.0)
    """, ValueError, "args[0]", "i64[]")
jit.add("a static position that doesn't exist", "cj.jit(lambda x: x, static_argnums=1)", ValueError, "1")
jit.add("a static name that doesn't exist", "cj.jit(lambda rate, x: x, static_argnames='rat')", ValueError, "rat",
        "rate")
jit.add("static positions that are names", "cj.jit(lambda x: x, static_argnums='x')", TypeError, "'x'",
        "static_argnames")
jit.add("a donated position that doesn't exist", "cj.jit(lambda x: x, donate_argnums=3)", ValueError, "3")
jit.add("an argument both static and donated", "cj.jit(lambda x: x, static_argnums=0, donate_argnums=0)", ValueError,
        "0")
jit.add("a donated array used again", """
    f = cj.jit(lambda x: x * 2.0, donate_argnums=0)
    x = cj.device_put(np.ones(3))
    f(x)
    x + 1.0
    """, RuntimeError, "donated")
jit.add("a donated array passed again", """
    f = cj.jit(lambda x: x * 2.0, donate_argnums=0)
    x = cj.device_put(np.ones(3))
    f(x)
    f(x)
    """, RuntimeError, "donated")
jit.add("a donated array read", """
    f = cj.jit(lambda x: x * 2.0, donate_argnums=0)
    x = cj.device_put(np.ones(3))
    f(x)
    np.asarray(x)
    """, RuntimeError, "donated")
jit.add("a compiled program called with other types", """
    compiled = cj.jit(lambda x: x * 2.0).lower(np.ones(3)).compile()
    compiled(np.ones(4))
    """, TypeError, "args[0]", "f64[3]", "f64[4]")
jit.add("a compiled program called with other arguments", """
    compiled = cj.jit(lambda x: x * 2.0).lower(np.ones(3)).compile()
    compiled(np.ones(3), 1.0)
    """, TypeError, "args")

grad = Group("grad")
grad.add("a value that isn't a scalar", "cj.grad(lambda x: x * 2.0)(np.ones(3))", TypeError, "f64[3]", "()")
grad.add("by an integer", "cj.grad(lambda x: x * x)(3)", TypeError, "args[0]", "i64[]")
grad.add("by a leaf that is an integer", "cj.grad(lambda p: p['w'] * 2.0)({'w': 1.0, 'step': 3})", TypeError,
         "args[0]['step']", "i64[]")
grad.add("an integer value", "cj.grad(lambda x: lax.round(x).astype(int))(1.5)", TypeError, "i64[]")
grad.add("a complex value without holomorphic", "cj.grad(lambda z: z * z)(1j)", TypeError, "c128[]", "holomorphic")
grad.add("holomorphic by a real number", "cj.grad(lambda z: z * z, holomorphic=True)(1.0)", TypeError, "f64[]",
         "args[0]")
grad.add("several values", "cj.grad(lambda x: (x, x))(1.0)", TypeError, "tuple")
grad.add("no value", """
    def loss(x):
        x * x
    cj.grad(loss)(1.0)
    """, TypeError, "None")
grad.add("a value that isn't a number", "cj.grad(lambda x: 'loss')(1.0)", TypeError, "str")
grad.add("an argument that doesn't exist", "cj.grad(lambda x: x, argnums=1)(1.0)", IndexError, "1", jax="""
    cj.grad(lambda x: x, argnums=1)(1.0)
    """)
grad.add("an argument twice", "cj.grad(lambda x, y: x * y, argnums=(0, -2))(1.0, 2.0)", ValueError, "(0, -2)")
grad.add("an argument by name", "cj.grad(lambda x: x, argnums='x')", TypeError, "'x'")
grad.add("too few arguments", "cj.grad(lambda w, x: w * x)(1.0)", TypeError, "grad", "'x'", "(w, x)")
grad.add("no function", "cj.grad(3.0)", TypeError, "float")
grad.add("an argument that isn't an array", "cj.grad(lambda x: 1.0)('weights')", TypeError, "args[0]", "str")
grad.add("has_aux without aux", "cj.grad(lambda x: x * x, has_aux=True)(1.0)", TypeError, "has_aux", "pair")
grad.add("a Jacobian by an integer", "cj.jacrev(lambda x: x * 2.0)(3)", TypeError, "args[0]", "i64[]")
grad.add("a forward Jacobian by an integer", "cj.jacfwd(lambda x: x * 2.0)(3)", TypeError, "args[0]", "i64[]")

tangents = Group("jvp, linearize, vjp")
tangents.add("primals that aren't a tuple", "cj.jvp(lax.sin, 1.0, 1.0)", TypeError, "primals", "float")
tangents.add("a tangent of another shape", "cj.jvp(lax.sin, (np.ones(3),), (np.ones(4),))", TypeError, "tangents[0]",
             "f64[3]", "f64[4]")
tangents.add("a tangent of another dtype", "cj.jvp(lax.sin, (np.ones(3),), (np.ones(3, np.float32),))", TypeError,
             "tangents[0]", "f32[3]", "f64[3]")
tangents.add("too few tangents", "cj.jvp(lax.mul, (1.0, 2.0), (1.0,))", TypeError, "tangents", "2", "1")
tangents.add("tangents of another structure", """
    def f(p):
        return p["w"] * p["b"]
    cj.jvp(f, ({"w": 1.0, "b": 2.0},), ({"w": 1.0},))
    """, TypeError, "tangents[0]", "'w'")
tangents.add("a float tangent of an integer", "cj.jvp(lambda n: n * 2, (3,), (1.0,))", TypeError, "tangents[0]",
             "float0")
tangents.add("no function to differentiate", "cj.jvp(1.0, (1.0,), (1.0,))", TypeError, "float")
tangents.add("a tangent that isn't an array", "cj.jvp(lax.sin, (1.0,), ('up',))", TypeError, "tangents[0]", "str")
tangents.add("a tangent that a linearized function doesn't take", """
    y, f_lin = cj.linearize(lax.sin, np.ones(3))
    f_lin(np.ones(2))
    """, TypeError, "tangents[0]", "f64[3]", "f64[2]")
tangents.add("too many tangents for a linearized function", """
    y, f_lin = cj.linearize(lax.sin, 1.0)
    f_lin(1.0, 2.0)
    """, TypeError, "tangents", "1", "2")
tangents.add("a cotangent of another shape", """
    y, pullback = cj.vjp(lax.sin, np.ones(3))
    pullback(np.ones(2))
    """, TypeError, "the cotangent", "f64[3]", "f64[2]")
tangents.add("a cotangent of another dtype", """
    y, pullback = cj.vjp(lax.sin, np.ones(3))
    pullback(np.ones(3, np.int32))
    """, TypeError, "the cotangent", "f64[3]", "i32[3]")
tangents.add("a cotangent of another structure", """
    y, pullback = cj.vjp(lambda x: {"sin": lax.sin(x), "cos": lax.cos(x)}, 1.0)
    pullback({"sin": 1.0})
    """, TypeError, "the cotangent", "'cos'")
tangents.add("a tuple for the cotangent", """
    y, pullback = cj.vjp(lax.sin, 1.0)
    pullback((1.0,))
    """, TypeError, "the cotangent", "tuple")
tangents.add("transposing what is not linear", "cj.linear_transpose(lambda x: x * x, 1.0)(1.0)", TypeError, "linear",
             "f64[]")
tangents.add("transposing a sine", "cj.linear_transpose(lambda x: lax.sin(x), 1.0)(1.0)", NotImplementedError, "sin",
             "linear")
tangents.add("transposing a function of integers with floats", "cj.linear_transpose(lambda n: n * 2.0, 3)(1.0)",
             TypeError, "primals[0]", "i64[]")

tangents.add("the output in place of the residuals", """
    fwd, bwd = cj.fwd_and_bwd(lax.sin, 0)
    bwd(fwd(1.0)[0], 1.0)
    """, TypeError, "residuals", "traced array")

vmap = Group("vmap")
vmap.add("sizes that differ", "cj.vmap(lambda x, y: x + y)(np.ones(3), np.ones(4))", ValueError, "args[0]", "args[1]",
         "f64[3]", "f64[4]")
vmap.add("leaves whose sizes differ", "cj.vmap(lambda p: p['w'])({'w': np.ones(3), 'b': np.ones(2)})", ValueError,
         "args[0]['w']", "args[0]['b']", "f64[3]", "f64[2]")
vmap.add("too many arguments", "cj.vmap(lambda x: x)(np.ones(3), np.ones(3))", TypeError, "vmap", "2", "(x)")
vmap.add("a scalar", "cj.vmap(lambda x, y: x * y)(np.ones(3), 2.0)", ValueError, "args[1]", "f64[]", "None")
vmap.add("an argument that isn't an array", "cj.vmap(lambda x, how: x)(np.ones(3), 'fast')", TypeError, "args[1]",
         "str")
vmap.add("a list of numbers", "cj.vmap(lambda x: x * 2.0)([1.0, 2.0, 3.0])", ValueError, "args[0][0]", "f64[]")
vmap.add("an axis that doesn't exist", "cj.vmap(lambda x: x, in_axes=1)(np.ones(3))", IndexError, "args[0]", "f64[3]",
         "1")
vmap.add("in_axes of another length", "cj.vmap(lambda x, y: x, in_axes=(0,))(np.ones(3), np.ones(3))", ValueError,
         "in_axes", "1", "2")
vmap.add("in_axes that isn't an axis", "cj.vmap(lambda x: x, in_axes=(0.5,))", TypeError, "in_axes[0]", "0.5")
vmap.add("in_axes that is text", "cj.vmap(lambda x: x, in_axes='batch')", TypeError, "in_axes", "'batch'")
vmap.add("in_axes of another structure", """
    f = cj.vmap(lambda p: p["w"] + p["b"], in_axes=({"w": 0},))
    f({"w": np.ones(3), "b": np.ones(3)})
    """, ValueError, "in_axes", "'b'", "args[0]")
vmap.add("nothing mapped", "cj.vmap(lambda x: x, in_axes=None)(np.ones(3))", ValueError, "axis_size")
vmap.add("an axis_size that differs", "cj.vmap(lambda x: x, axis_size=4)(np.ones(3))", ValueError, "4", "f64[3]",
         "args[0]")
vmap.add("an axis_size that isn't a size", "cj.vmap(lambda: 1.0, axis_size=2.5)()", TypeError, "2.5")
vmap.add("out_axes None for a mapped result", "cj.vmap(lambda x: x, out_axes=None)(np.ones(3))", ValueError,
         "out_axes", "result")
vmap.add("out_axes past the end", "cj.vmap(lambda x: x, out_axes=2)(np.ones(3))", IndexError, "2", "out_axes")
vmap.add("out_axes of another structure", "cj.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(np.ones(3))", ValueError,
         "out_axes", "3", "2")
vmap.add("out_axes that isn't an axis", "cj.vmap(lambda x: x, out_axes='last')", TypeError, "out_axes", "'last'")
vmap.add("no function", "cj.vmap(np.ones(3))", TypeError, "ndarray")
vmap.add("a result that isn't an array", "cj.vmap(lambda x: {'y': x, 'name': 'sgd'})(np.ones(3))", TypeError,
         "result['name']", "str")
vmap.add("an argument by keyword that can't be mapped", "cj.vmap(lambda x, scale: x * scale)(np.ones(3), scale=2.0)",
         ValueError, "kwargs['scale']", "f64[]")

programs = Group("Programs")
programs.add("named axes without sizes", "cj.make_jaxpr(lax.sin, axis_env=['i'])(1.0)", TypeError, "axis_env", "'i'")
programs.add("a type without a dtype", "cj.ShapeDtypeStruct((3,), None)", ValueError, "no dtype")
programs.add("a type in place of a value", "cj.jit(lambda: lax.sin(cj.ShapeDtypeStruct((3,), float)))()", TypeError,
             "ShapeDtypeStruct", "sin")
programs.add("two platforms for one program", """
    cj.jit(lax.sin).trace(1.0).lower(lowering_platforms=("cpu", "tpu"))
    """, ValueError, "one platform", "('cpu', 'tpu')")
programs.add("a program of no function", "cj.make_jaxpr(1.0)", TypeError, "float")
programs.add("a program with an argument that isn't an array", "cj.make_jaxpr(lambda x: x)('one')", TypeError,
             "args[0]", "str")
programs.add("types of an argument that isn't an array", "cj.eval_shape(lambda x: x, 'one')", TypeError, "args[0]",
             "str")
programs.add("a program run with too few arguments", """
    closed = cj.make_jaxpr(lambda x, y: x + y)(1.0, 2.0)
    cj.core.jaxpr_as_fun(closed)(1.0)
    """, TypeError, "1", "2", jax="""
    from jax.extend.core import jaxpr_as_fun
    closed = cj.make_jaxpr(lambda x, y: x + y)(1.0, 2.0)
    jaxpr_as_fun(closed)(1.0)
    """)

GROUPS = (jit, grad, tangents, vmap, programs)
