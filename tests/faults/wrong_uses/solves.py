"""custom_linear_solve, custom_root; platform_dependent, composite; dce_sink, stage and tokens."""

from __future__ import annotations

from .case import Group

solve = Group("custom_linear_solve")
solve.add("a matrix instead of a function", "lax.custom_linear_solve(np.eye(2), np.ones(2), lambda f, b: b)", TypeError,
          "matvec", "ndarray")
solve.add("a solver that isn't a function", "lax.custom_linear_solve(lambda x: x, np.ones(2), None)", TypeError,
          "solve", "None")
solve.add("a product of another shape", """
    a = np.ones((3, 2))
    lax.custom_linear_solve(lambda x: lax.dot(a, x), np.ones(2), lambda f, b: b)
    """, ValueError, "matvec", "f64[3]", "f64[2]")
solve.add("a product of another structure", "lax.custom_linear_solve(lambda x: (x, x), np.ones(2), lambda f, b: b)",
          TypeError, "matvec", "tuple")
solve.add("a solution of another shape", "lax.custom_linear_solve(lambda x: x, np.ones(2), lambda f, b: b[0])",
          ValueError, "solve", "f64[]", "f64[2]")
solve.add("a solution of another dtype", """
    def solve(matvec, b):
        return b.astype('float32')
    lax.custom_linear_solve(lambda x: x, np.ones(2), solve)
    """, TypeError, "solve", "f32[2]", "f64[2]")
solve.add("a solution of another structure", """
    def solve(matvec, b):
        return [b['x']]
    lax.custom_linear_solve(lambda x: x, {'x': np.ones(2)}, solve)
    """, TypeError, "solve", "list", "'x'")
solve.add("a pair without has_aux", "lax.custom_linear_solve(lambda x: x, np.ones(2), lambda f, b: (b, 3))", TypeError,
          "has_aux", "tuple")
solve.add("has_aux without a pair", """
    lax.custom_linear_solve(lambda x: x, np.ones(2), lambda f, b: b, has_aux=True)
    """, TypeError, "pair")
solve.add("reverse mode without transpose_solve", """
    def f(b):
        return lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda f, b: b / 2.0)
    cj.grad(f)(1.0)  # <-
    """, NotImplementedError, "transpose_solve", "symmetric=True")
solve.add("a matvec that isn't linear", """
    def half(f, b):
        return b / 2.0
    lax.custom_linear_solve(lambda x: x * x, 1.0, half, half)
    """, TypeError, "matvec", "linear")
solve.add("a right-hand side that isn't an array", "lax.custom_linear_solve(lambda x: x, 'b', lambda f, b: b)",
          TypeError, "b is a str")
solve.add("a function of the matrix called with another shape", """
    lax.custom_linear_solve(lambda x: 2.0 * x, np.ones(2), lambda f, b: b / 2.0, lambda g, b: b / g(1.0))
    """, TypeError, "vecmat", "f64[]", "f64[2]")

root = Group("custom_root")
root.add("a function that isn't one", "lax.custom_root(3.0, 1.0, lambda f, x: x, lambda g, y: y)", TypeError, "f must",
         "float")
root.add("a tangent_solve that isn't a function", "lax.custom_root(lambda x: x, 1.0, lambda f, x: x, None)", TypeError,
         "tangent_solve", "None")
root.add("fewer equations than unknowns", """
    lax.custom_root(lambda x: x.sum(), np.ones(2), lambda f, x: x, lambda g, y: y)
    """, ValueError, "f returns", "f64[]", "f64[2]")
root.add("equations of another structure", "lax.custom_root(lambda x: {'r': x}, 1.0, lambda f, x: x, lambda g, y: y)",
         TypeError, "dict")
root.add("a root of another shape", "lax.custom_root(lambda x: x, np.ones(2), lambda f, x: x[0], lambda g, y: y)",
         ValueError, "solve", "f64[]", "f64[2]")
root.add("a guess of integers", "lax.custom_root(lambda x: x - 3, np.arange(2), lambda f, x: x, lambda g, y: y)",
         TypeError, "i64[2]", "float")
root.add("a tangent of another shape", "lax.custom_root(lambda x: x, np.ones(2), lambda f, x: x, lambda g, y: y[0])",
         ValueError, "tangent_solve", "f64[]", "f64[2]")
root.add("the linearized function of another shape", """
    lax.custom_root(lambda x: 2.0 * x, np.ones(2), lambda f, x: x, lambda g, y: y / g(1.0))
    """, TypeError, "linearized", "f64[]", "f64[2]")
root.add("arguments in another order", "lax.custom_root(1.0, lambda x: x, lambda f, x: x, lambda g, y: y)", TypeError,
         "f must", "float")

platforms = Group("platform_dependent")
platforms.add("no function for this platform", "lax.platform_dependent(1.0, cuda=lax.sin, tpu=lax.cos)",
              NotImplementedError, "cpu", "cuda, tpu")
platforms.add("no function for this platform in a program", """
    cj.jit(lambda x: lax.platform_dependent(x, cuda=lax.sin))(1.0)
    """,
              NotImplementedError, "cpu", "cuda")
platforms.add("no function at all", "lax.platform_dependent(1.0)", ValueError, "no functions")
platforms.add("a value instead of a function", "lax.platform_dependent(1.0, cpu=2.0)", TypeError, "cpu", "float")
platforms.add("gpu", "lax.platform_dependent(1.0, gpu=lax.sin, default=lax.cos)", ValueError, "'cuda' or 'rocm'")
platforms.add("functions that differ", """
    cj.jit(lambda x: lax.platform_dependent(x, cpu=lax.sin, default=lambda x: (x, x)))(1.0)
    """, TypeError, "default", "tuple")
platforms.add("a platform passed by position", "lax.platform_dependent('cpu', 1.0, default=lax.cos)", TypeError,
              "operands[0]", "str")

composite = Group("composite")
composite.add("a name without a namespace", "lax.composite(lax.sin, 'sin')(1.0)", ValueError, "'sin'", "namespace")
composite.add("a name that isn't text", "lax.composite(lax.sin, 3)(1.0)", ValueError, "3", "namespace")
composite.add("a decomposition that isn't a function", "lax.composite(1.0, 'my.f')(1.0)", TypeError, "decomposition",
              "float")
composite.add("a version that isn't an integer", "lax.composite(lax.sin, 'my.sin', version='b')(1.0)", TypeError,
              "version", "'b'")
composite.add("a traced attribute", """
    f = lax.composite(lambda x, *, k: x * k, 'my.f')
    cj.jit(lambda x, k: f(x, k=k))(1.0, 2.0)
    """, TypeError, "attribute k", "f64[]")
composite.add("an attribute that can't be one", """
    f = lax.composite(lambda x, *, k: x, 'my.f')
    cj.jit(lambda x: f(x, k={1}))(1.0)
    """, TypeError, "k", "set")
composite.add("an argument that isn't an array", "lax.composite(lambda x, how: x, 'my.f')(1.0, 'fast')", TypeError,
              "args[1]", "str")

marks = Group("dce_sink, stage and tokens")
marks.add("a sink of no array", "lax.dce_sink({'a': 'text'})", TypeError, "val['a']", "str")
marks.add("a flag that isn't one", "lax.dce_sink(1.0, prevent_mlir_dce='yes')", TypeError, "prevent_mlir_dce", "'yes'")
marks.add("stage of a list", "lax.stage([1.0, 2.0])", TypeError, "stage", "list")
marks.add("stage of text", "lax.stage('one')", TypeError, "stage", "str")
marks.add("tokens that are numbers", "lax.after_all(1.0)", TypeError, "token", "f64[]")
marks.add("a list of tokens", "lax.after_all([lax.create_token()])", TypeError, "after_all", "list")
marks.add("arithmetic with a token", "lax.create_token() + 1", TypeError, "token", "numbers")
marks.add("the value of a token", "lax.create_token().item()", TypeError, "token")
marks.add("a derivative by a token", "cj.grad(lambda t: 1.0)(lax.create_token())", TypeError, "token")

GROUPS = (solve, root, platforms, composite, marks)
