"""cond, switch, scan, while, fori_loop; checkpoint, custom_jvp, custom_vjp."""

from __future__ import annotations

from .case import Group

cond = Group("cond and switch")
cond.add("a predicate that isn't a boolean", "lax.cond(1j, lax.sin, lax.cos, 1.0)", TypeError, "c128[]", "boolean")
cond.add("a predicate with axes", "lax.cond(np.array([True]), lax.sin, lax.cos, 1.0)", TypeError, "bool[1]", "rank 0")
cond.add("a predicate that isn't an array", "lax.cond('yes', lax.sin, lax.cos, 1.0)", TypeError, "str")
cond.add("branches that differ in shape", "lax.cond(True, lambda x: x, lambda x: x[None], np.ones(2))", TypeError,
         "f64[2]", "f64[1,2]")
cond.add("branches that differ in dtype", """
    x = cj.device_put(np.ones(2))
    lax.cond(True, lambda x: x, lambda x: x.astype('float32'), x)
    """, TypeError, "f64[2]", "f32[2]")
cond.add("a leaf in which branches differ", """
    def grow(state):
        return {"w": state["w"] * 2.0, "step": state["step"] + 1.0}
    def keep(state):
        return state
    lax.cond(True, grow, keep, {"w": 1.0, "step": np.arange(2)})
    """, TypeError, "['step']", "f64[2]", "i64[2]")
cond.add("branches that differ in structure", "lax.cond(True, lambda x: (x, x), lambda x: [x, x], 1.0)", TypeError,
         "tuple", "list")
cond.add("branches with other keys", "lax.cond(True, lambda x: {'a': x}, lambda x: {'b': x}, 1.0)", TypeError, "'a'",
         "'b'")
cond.add("a branch that returns nothing", "lax.cond(True, lambda x: x, lambda x: None, 1.0)", TypeError, "None")
cond.add("a branch that returns no array", "lax.cond(True, lambda x: x, lambda x: 'off', 1.0)", TypeError, "str")
cond.add("a branch that isn't a function", "lax.cond(True, 1.0, 2.0)", TypeError, "float")
cond.add("too many operands", "lax.cond(True, lambda x: x, lambda x: x, 1.0, 2.0)", TypeError, "2", "1")
cond.add("an operand that isn't an array", "lax.cond(True, lambda x: 1.0, lambda x: 2.0, 'left')", TypeError, "str")
cond.add("an if within a branch", """
    def clipped(x):
        return 1.0 if x > 1.0 else x  # <-
    lax.cond(True, clipped, lambda x: x, 2.0)
    """, TypeError, "bool[]")
cond.add("switch without branches", "lax.switch(0, [], 1.0)", ValueError, "branch")
cond.add("an operand by keyword beside another", "lax.switch(0, [lax.add, lax.mul], 1.0, operand=2.0)", TypeError,
         "operand=", "by position", jax=None)
cond.add("a branch that returns no array, while jit is disabled", """
    with cj.disable_jit():
        lax.cond(True, lambda x: 'on', lambda x: x, 1.0)
    """, TypeError, "true_fun", "str", jax=None)
cond.add("an index that isn't an integer", "lax.switch(0.5, [lax.sin, lax.cos], 1.0)", TypeError, "f64[]", "integer")
cond.add("an index with axes", "lax.switch(np.array([0, 1]), [lax.sin, lax.cos], 1.0)", TypeError, "i64[2]", "rank 0")
cond.add("branches of switch that differ", "lax.switch(1, [lax.sin, lambda x: (x, x)], 1.0)", TypeError, "tuple")

scan = Group("scan and map")
scan.add("xs of different lengths", "lax.scan(lambda c, x: (c, x[0]), 0.0, (np.ones(3), np.ones(4)))", ValueError,
         "3", "4", "xs[1]")
scan.add("a length that differs from xs", "lax.scan(lambda c, x: (c, x), 0.0, np.ones(3), length=4)", ValueError, "3",
         "4")
scan.add("no xs and no length", "lax.scan(lambda c, x: (c, x), 0.0, None)", ValueError, "length")
scan.add("a carry of another dtype, while jit is disabled", """
    def halved(c, x):
        return c.astype("float32"), x
    with cj.disable_jit():
        lax.scan(halved, np.float64(1.0), np.ones(3))
    """, TypeError, "f32[]", "f64[]", jax=None)
scan.add("steps that return other shapes, while jit is disabled", """
    def kept(n, x):
        return n + 1, np.zeros(2) if n == 1 else x
    with cj.disable_jit():
        lax.scan(kept, 0, np.ones(3))
    """, TypeError, "first step", "f64[2]", jax=None)
scan.add("a body that returns no pair, while jit is disabled", """
    with cj.disable_jit():
        lax.scan(lambda c, x: c + x, 0.0, np.ones(3))
    """, TypeError, "(carry, y)", jax=None)
scan.add("a negative length", "lax.scan(lambda c, x: (c, c), 0.0, None, length=-1)", ValueError, "-1")
scan.add("a length that isn't an integer", "lax.scan(lambda c, x: (c, c), 0.0, None, length=2.5)", TypeError, "2.5")
scan.add("a traced length", "cj.jit(lambda n: lax.scan(lambda c, x: (c, c), 0.0, None, length=n))(3)", TypeError,
         "i64[]")
scan.add("xs that are scalars", "lax.scan(lambda c, x: (c, x), 0.0, 1.0)", ValueError, "xs", "f64[]")
scan.add("xs that aren't arrays", "lax.scan(lambda c, x: (c, x), 0.0, 'abc')", TypeError, "xs", "str")
scan.add("a body that returns no pair", "lax.scan(lambda c, x: c + x, 0.0, np.ones(3))", TypeError, "pair", "one array")
scan.add("a body that returns three", "lax.scan(lambda c, x: (c, x, x), 0.0, np.ones(3))", TypeError, "pair", "3")
scan.add("a carry that changes its shape", "lax.scan(lambda c, x: (c + x, c), np.ones(()), np.ones((3, 2)))",
         TypeError, "f64[]", "f64[2]")
scan.add("a carry that changes its dtype", "lax.scan(lambda c, x: (c + x, c), np.zeros((), np.int32), np.ones(3))",
         TypeError, "i32[]", "f64[]")
scan.add("a leaf of the carry that changes its type", """
    def step(carry, x):
        return {"sum": carry["sum"] + x, "count": carry["count"] + 1.0}, None
    lax.scan(step, {"sum": 0.0, "count": np.int32(0)}, np.ones(3))
    """, TypeError, "['count']", "i32[]", "f64[]")
scan.add("a carry that changes its structure", "lax.scan(lambda c, x: ((c, x), x), 0.0, np.ones(3))", TypeError,
         "tuple")
scan.add("a carry that loses a key", "lax.scan(lambda c, x: ({'a': x}, x), {'a': 0.0, 'b': 0.0}, np.ones(3))",
         TypeError, "'b'")
scan.add("a body that isn't a function", "lax.scan(1.0, 0.0, np.ones(3))", TypeError, "float")
scan.add("a body with another signature", "lax.scan(lambda c: (c, c), 0.0, np.ones(3))", TypeError, "2", "1")
scan.add("a result that isn't an array", "lax.scan(lambda c, x: (c, 'x'), 0.0, np.ones(3))", TypeError, "str")
scan.add("an if on the carry", """
    def step(total, x):
        if total > 1.0:  # <-
            total = 0.0
        return total + x, total
    lax.scan(step, 0.0, np.ones(3))
    """, TypeError, "bool[]")
scan.add("a list that collects values of the body", """
    seen = []
    def step(total, x):
        seen.append(total)
        return total + x, None
    lax.scan(step, 0.0, np.ones(3))
    seen[0] + 1.0
    """, RuntimeError, "f64[]", "model.py:5")
scan.add("an unroll that is negative", "lax.scan(lambda c, x: (c, x), 0.0, np.ones(3), unroll=-1)", ValueError, "-1")
scan.add("map over different lengths", "lax.map(lambda x: x[0], (np.ones(3), np.ones(4)))", ValueError, "3", "4")
scan.add("map of no function", "lax.map(np.ones(3), np.ones(3))", TypeError, "ndarray")

loops = Group("while_loop and fori_loop")
loops.add("a condition that isn't a boolean", "lax.while_loop(lambda x: x, lambda x: x + 1.0, 0.0)", TypeError, "f64[]",
          "bool")
loops.add("a condition with axes", "lax.while_loop(lambda x: x < 3, lambda x: x + 1.0, np.zeros(2))", TypeError,
          "bool[2]")
loops.add("a condition that returns several", "lax.while_loop(lambda x: (x < 3, x), lambda x: x + 1.0, 0.0)",
          TypeError, "tuple")
loops.add("a condition that returns nothing", "lax.while_loop(lambda x: None, lambda x: x + 1.0, 0.0)", TypeError,
          "None")
loops.add("a loop value that changes its dtype", """
    lax.while_loop(lambda x: x < 3, lambda x: x + 0.5, np.zeros((), np.int32))
    """, TypeError, "i32[]", "f64[]")
loops.add("a leaf of the loop's value that changes its shape", """
    def body(state):
        return {"i": state["i"] + 1, "x": state["x"][None]}
    lax.while_loop(lambda state: state["i"] < 3, body, {"i": 0, "x": np.ones(2)})
    """, TypeError, "['x']", "f64[2]", "f64[1,2]")
loops.add("a loop value that changes its structure", """
    lax.while_loop(lambda state: state[0] < 3, lambda state: [state[0] + 1, state[1]], (0, 1.0))
    """, TypeError, "tuple", "list")
loops.add("a body that returns nothing", "lax.while_loop(lambda x: x < 3, lambda x: None, 0.0)", TypeError, "None")
loops.add("a condition that isn't a function", "lax.while_loop(True, lambda x: x, 0.0)", TypeError, "bool")
loops.add("an initial value that isn't an array", "lax.while_loop(lambda x: True, lambda x: x, 'start')", TypeError,
          "str")
loops.add("reverse mode through while", """
    def halved(x):
        return lax.while_loop(lambda x: x > 1.0, lambda x: x / 2.0, x)
    cj.grad(halved)(10.0)
    """, NotImplementedError, "while_loop", "scan")
loops.add("reverse mode through fori_loop with a computed bound", """
    def power(x, n):
        return lax.fori_loop(0, n, lambda i, y: y * x, 1.0)
    cj.jit(cj.grad(power))(2.0, 3)
    """, NotImplementedError, "scan")
loops.add("a bounded loop of a traced number of steps", """
    cj.jit(lambda n: lax.bounded_while_loop(lambda x: x < 3.0, lambda x: x + 1.0, 0.0, max_steps=n))(5)
    """, TypeError, "max_steps", "static_argnums", jax=None)
loops.add("a bounded loop of no steps", """
    lax.bounded_while_loop(lambda x: x < 3.0, lambda x: x + 1.0, 0.0, max_steps=0)
    """, ValueError, "max_steps", "at least 1", jax=None)
loops.add("a bounded loop with too few checkpoints", """
    lax.bounded_while_loop(lambda x: x < 3.0, lambda x: x + 1.0, 0.0, max_steps=1000, checkpoints=5)
    """, ValueError, "checkpoints=5", "at least 20", jax=None)
loops.add("bounds that aren't integers", "lax.fori_loop(0, 2.5, lambda i, x: x, 0.0)", TypeError, "2.5")
loops.add("bounds of two dtypes", "lax.fori_loop(np.int32(0), np.int64(3), lambda i, x: x, 0.0)", TypeError, "i32[]",
          "i64[]")
loops.add("bounds with axes", "lax.fori_loop(0, np.array([3]), lambda i, x: x, 0.0)", TypeError, "i64[1]")
loops.add("a body of fori_loop that forgets the index", "lax.fori_loop(0, 3, lambda x: x, 0.0)", TypeError, "2", "1")
loops.add("a value of fori_loop that changes its type", "lax.fori_loop(0, 3, lambda i, x: x[None], np.ones(2))",
          TypeError, "f64[2]", "f64[1,2]")

loops.add("a condition that isn't a boolean, while jit is disabled", """
    with cj.disable_jit():
        lax.while_loop(lambda x: x, lambda x: x - 1.0, 3.0)
    """, TypeError, "boolean", "f64[]", jax=None)
loops.add("a body of another structure, while jit is disabled", """
    with cj.disable_jit():
        lax.fori_loop(0, 3, lambda i, x: (x, i), 1.0)
    """, TypeError, "structure", "init_val", jax=None)

checkpoint = Group("checkpoint")
checkpoint.add("no function", "cj.checkpoint(1.0)", TypeError, "float")
checkpoint.add("an argument that isn't an array", "cj.checkpoint(lambda x, how: x)(1.0, 'fast')", TypeError,
           "args[1]", "str")
checkpoint.add("a result that isn't an array", "cj.checkpoint(lambda x: 'y')(1.0)", TypeError, "str")
checkpoint.add("an if within it", """
    @cj.checkpoint
    def f(x):
        return x if x > 0 else -x  # <-
    cj.jit(f)(1.0)
    """, TypeError, "bool[]")

custom = Group("custom_jvp and custom_vjp")
custom.add("custom_jvp of no function", "cj.custom_jvp(1.0)", TypeError, "float")
custom.add("custom_jvp without a rule", """
    @cj.custom_jvp
    def f(x):
        return lax.sin(x)
    cj.grad(f)(1.0)
    """, AttributeError, "f", "defjvp")
custom.add("a jvp rule that isn't a function", """
    @cj.custom_jvp
    def f(x):
        return lax.sin(x)
    f.defjvp(2.0)  # <-
    cj.jvp(f, (1.0,), (1.0,))
    """, TypeError, "float")
JVP = """
@cj.custom_jvp
def f(x):
    return lax.sin(x)
@f.defjvp
def f_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return {}
cj.jvp(f, (np.ones(2),), (np.ones(2),))
"""
for _name, _result, _words in (
        ("no pair", "f(x)", ("pair",)),
        ("a tangent of another shape", "f(x), np.ones(3)", ("f64[3]", "f64[2]")),
        ("a tangent of another dtype", "f(x), np.ones(2, np.float32)", ("f32[2]", "f64[2]")),
        ("a tangent of another structure", "f(x), (x_dot,)", ("tuple",)),
        ("an output of another shape", "np.ones(3), x_dot", ("f64[3]", "f64[2]")),
        ("None for the tangent", "f(x), None", ("None",))):
    custom.add(f"a jvp rule that returns {_name}", JVP.format(_result), TypeError, "the jvp rule of f", *_words)
custom.add("custom_vjp of no function", "cj.custom_vjp(1.0)", TypeError, "float")
custom.add("custom_vjp without rules", """
    @cj.custom_vjp
    def f(x):
        return lax.sin(x)
    cj.grad(f)(1.0)
    """, AttributeError, "f", "defvjp")
custom.add("forward mode through custom_vjp", """
    @cj.custom_vjp
    def f(x):
        return lax.sin(x)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * lax.cos(x),))
    cj.jvp(f, (1.0,), (1.0,))
    """, TypeError, "forward mode", "defjvp")
VJP = """
@cj.custom_vjp
def f(x, y):
    return lax.sin(x) * y
def f_fwd(x, y):
    return {}
def f_bwd(residuals, ct):
    x, y = residuals
    return {}
f.defvjp(f_fwd, f_bwd)
cj.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))(np.ones(2), np.ones(2))
"""
FORWARD, BACKWARD = "f(x, y), (x, y)", "ct * lax.cos(x) * y, ct * lax.sin(x)"
for _name, _result, _words in (
        ("no pair", "f(x, y)", ("pair",)),
        ("an output of another shape", "np.ones(3), (x, y)", ("f64[3]", "f64[2]")),
        ("an output of another structure", "(f(x, y),), (x, y)", ("tuple",))):
    _code = VJP.format(_result, BACKWARD).replace("f(x, y).", "cj.jit(f)(x, y).")
    custom.add(f"a forward rule that returns {_name}", _code, TypeError, "the fwd rule of f", *_words)
for _name, _result, _words in (
        ("one cotangent for two arguments", "ct * y", ("2",)),
        ("too few cotangents", "(ct * y,)", ("1", "2")),
        ("a cotangent of another shape", "np.ones(3), ct", ("f64[3]", "f64[2]", "args[0]")),
        ("a cotangent of another dtype", "ct.astype('float32'), ct", ("f32[2]", "f64[2]", "args[0]")),
        ("a cotangent of another structure", "(ct, ct), ct", ("tuple", "args[0]"))):
    custom.add(f"a backward rule that returns {_name}", VJP.format(FORWARD, _result), TypeError, "the bwd rule of f",
               *_words)
custom.add("an argument of custom_jvp that isn't an array", """
    @cj.custom_jvp
    def f(x, how):
        return lax.sin(x)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    f(1.0, 'fast')
    """, TypeError, "args[1]", "str")
custom.add("a position that doesn't exist", """
    def f(n, x):
        return x * n
    g = cj.custom_jvp(f, nondiff_argnums=(3,))  # <-
    g.defjvp(lambda n, primals, tangents: (f(n, *primals), tangents[0]))
    cj.jvp(lambda x: g(2, x), (1.0,), (1.0,))
    """, ValueError, "nondiff_argnums", "3")

GROUPS = (cond, scan, loops, checkpoint, custom)
