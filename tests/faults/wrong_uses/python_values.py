"""Arrays where Python wants its own values, and traced values where it wants known ones."""

from __future__ import annotations

from .case import Group

arrays = Group("Arrays in Python's eyes")
arrays.add("the truth of several elements", """
    x = cj.device_put(np.ones(3))
    if x > 0:  # <-
        pass
    """, ValueError, "bool[3]", "any()")
arrays.add("several elements as a float", """
    x = cj.device_put(np.ones(3))
    float(x)
    """, TypeError, "f64[3]")
arrays.add("a complex number as a float", """
    x = cj.device_put(np.array(1j))
    float(x)
    """, TypeError, "c128[]", "real")
arrays.add("a float as an index", """
    n = cj.device_put(np.array(3.0))
    range(n)
    """, TypeError, "f64[]", "integer")
arrays.add("iterating over a scalar", """
    x = cj.device_put(np.array(3.0))
    for part in x:  # <-
        pass
    """, TypeError, "f64[]")
arrays.add("the length of a scalar", """
    x = cj.device_put(np.array(3.0))
    len(x)
    """, TypeError, "f64[]")
arrays.add("an array as a key", """
    x = cj.device_put(np.array(3.0))
    {x: "three"}
    """, TypeError, "f64[]", "id(x)")
arrays.add("assigning to an element", """
    x = cj.device_put(np.zeros(3))
    x[0] = 1.0
    """, TypeError, ".at[0].set")
arrays.add("adding to an element in place", """
    x = cj.device_put(np.zeros(3))
    x[1:] += 1.0
    """, TypeError, ".at[1:].set", "immutable")
arrays.add("deleting an element", """
    x = cj.device_put(np.zeros(3))
    del x[0]
    """, TypeError, "immutable")
arrays.add("an unknown method", """
    x = cj.device_put(np.zeros(3))
    x.summ()
    """, AttributeError, "summ", "sum")
arrays.add("making an array from its class", "cj.Array([1.0, 2.0])", TypeError, "device_put")
arrays.add("several elements as one", """
    x = cj.device_put(np.zeros(3))
    x.item()
    """, ValueError, "f64[3]")
arrays.add("a deleted array", """
    x = cj.device_put(np.zeros(3))
    x.delete()
    x + 1.0
    """, RuntimeError, "deleted")
arrays.add("an unknown device", "cj.device_put(1.0, 'gpu:7')", ValueError, "gpu:7", local=True)
arrays.add("a platform's name for a device", "cj.device_put(1.0, 'cpu')", ValueError, "'cpu'", "cj.devices", local=True)
arrays.add("a platform that doesn't exist", "cj.devices('abacus')", ValueError, "abacus", local=True)

traced = Group("Traced values where Python needs known ones")
traced.add("if on a traced value", """
    def f(x):
        if x > 0:  # <-
            return x
        return -x
    cj.jit(f)(1.0)
    """, TypeError, "bool[]", "lax.cond")
traced.add("while on a traced value", """
    @cj.jit
    def f(x):
        while x < 10.0:  # <-
            x = x * 2.0
        return x
    f(1.0)
    """, TypeError, "bool[]", "lax.while_loop")
traced.add("and of traced values", """
    @cj.jit
    def f(x):
        return (x > 0) and (x < 1)  # <-
    f(0.5)
    """, TypeError, "bool[]")
traced.add("assert on a traced value", """
    @cj.jit
    def f(x):
        assert x > 0  # <-
        return x
    f(0.5)
    """, TypeError, "bool[]")
traced.add("float() of a traced value", """
    cj.jit(lambda x: float(x))(1.0)
    """, TypeError, "float(x)", "f64[]")
traced.add("int() of a traced value", """
    cj.jit(lambda x: int(x))(1)
    """, TypeError, "int(x)", "i64[]")
traced.add("range of a traced value", """
    @cj.jit
    def f(n):
        return sum(range(n))  # <-
    f(3)
    """, TypeError, "i64[]")
traced.add("an element of a list by a traced value", """
    rates = [0.1, 0.2]
    cj.jit(lambda i: rates[i])(1)
    """, TypeError, "i64[]")
traced.add("np.asarray of a traced value", """
    @cj.jit
    def f(x):
        return np.asarray(x).mean()  # <-
    f(np.ones(3))
    """, TypeError, "NumPy", "f64[3]")
traced.add("NumPy's functions on a traced value", """
    @cj.jit
    def f(x):
        return np.unique(x)  # <-
    f(np.ones(3))
    """, TypeError, "np.unique", "f64[3]")
traced.add("a traced value as text", """
    @cj.jit
    def f(x):
        return f"{x:.2f}"  # <-
    f(1.0)
    """, TypeError, "f64[]")
traced.add("item() of a traced value", """
    cj.jit(lambda x: x.item())(1.0)
    """, TypeError, "item()")
traced.add("tolist() of a traced value", """
    cj.jit(lambda x: x.tolist())(np.ones(2))
    """, TypeError, "tolist()")
traced.add("a traced value as a shape", """
    @cj.jit
    def f(n):
        return lax.full((n,), 0.0)  # <-
    f(3)
    """, TypeError, "i64[]", "shape")
traced.add("a traced value as an axis", """
    @cj.jit
    def f(x, axis):
        return lax.reduce_sum(x, (axis,))  # <-
    f(np.ones(3), 0)
    """, TypeError, "i64[]")
traced.add("a traced value for a reshape", """
    @cj.jit
    def f(x, n):
        return x.reshape(n, -1)  # <-
    f(np.ones(4), 2)
    """, TypeError, "i64[]")
traced.add("a traced mask", """
    @cj.jit
    def f(x):
        return x[x > 0]  # <-
    f(np.ones(3))
    """, TypeError, "bool[3]", "lax.select")
traced.add("traced bounds of a slice", """
    @cj.jit
    def f(x, n):
        return x[:n]  # <-
    f(np.ones(3), 2)
    """, TypeError, "dynamic_slice")
traced.add("a traced value as a key", """
    @cj.jit
    def f(x):
        return {x: 1.0}  # <-
    f(1.0)
    """, TypeError, "f64[]")
traced.add("if inside vmap", """
    def f(x):
        if x > 0:  # <-
            return x
        return -x
    cj.vmap(f)(np.ones(3))
    """, TypeError, "bool[]")
traced.add("float() inside vmap", """
    cj.vmap(lambda x: x * float(x))(np.ones(3))
    """, TypeError, "float(x)")
traced.add("assigning to an element of a traced array", """
    @cj.jit
    def f(x):
        x[0] = 1.0  # <-
        return x
    f(np.ones(3))
    """, TypeError, ".at[0].set")
traced.add("if on a gradient's input under jit", """
    @cj.jit
    @cj.grad
    def f(x):
        return x if x > 0 else -x  # <-
    f(1.0)
    """, TypeError, "bool[]")

leaks = Group("Traced values that leak")
leaks.add("from jit through a list", """
    seen = []
    def f(x):
        seen.append(x)
        return x * 2.0
    cj.jit(f)(1.0)
    seen[0] + 1.0
    """, RuntimeError, "f64[]", "model.py:5")
leaks.add("from jit into another call", """
    class Model:
        def __call__(self, x):
            self.last = x * 2.0
            return x
    model = Model()
    cj.jit(model.__call__)(1.0)
    cj.jit(lambda x: x + model.last)(1.0)
    """, RuntimeError, "f64[]", "model.py:6")
leaks.add("from vmap through a list", """
    seen = []
    def f(x):
        seen.append(x * x)
        return x
    cj.vmap(f)(np.ones(3))
    lax.sin(seen[0])
    """, RuntimeError, "f64[]", "model.py:5")
leaks.add("from grad through a global", """
    state = {}
    def loss(w):
        state["w"] = w * 2.0
        return w * w
    cj.grad(loss)(1.0)
    lax.add(state["w"], 1.0)
    """, RuntimeError, "f64[]", "model.py:5")
leaks.add("from jvp through a list", """
    seen = []
    def f(x):
        seen.append(x)
        return x * x
    cj.jvp(f, (1.0,), (1.0,))
    seen[0] * 2.0
    """, RuntimeError, "f64[]", "model.py:5")
leaks.add("the place where it was made", """
    seen = []
    @cj.jit
    def f(x):
        y = lax.sin(x)
        seen.append(y)
        return y * 2.0
    f(1.0)
    lax.exp(seen[0])
    """, RuntimeError, "made at model.py:4 (f)", "called at model.py:7")
leaks.add("a leaked value looked at", """
    seen = []
    cj.jit(lambda x: seen.append(x) or x)(1.0)
    float(seen[0])
    """, RuntimeError, "f64[]", "model.py:2")
leaks.add("a leaked value as an argument of jit", """
    seen = []
    cj.jit(lambda x: seen.append(x) or x)(1.0)
    cj.jit(lambda x: x + 1.0)(seen[0])
    """, RuntimeError, "f64[]", "model.py:2")
leaks.add("a leaked value as an argument of grad", """
    seen = []
    cj.jit(lambda x: seen.append(x) or x)(1.0)
    cj.grad(lambda x: x * x)(seen[0])
    """, RuntimeError, "f64[]", "model.py:2")
leaks.add("a leaked value returned", """
    seen = []
    cj.vmap(lambda x: seen.append(x) or x)(np.ones(3))
    cj.jit(lambda y: seen[0])(1.0)
    """, RuntimeError, "f64[]", "model.py:2")

GROUPS = (arrays, traced, leaks)
