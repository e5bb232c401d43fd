"""Windowed reductions."""

from __future__ import annotations

from .case import Group

windows = Group("Windows")
X = "np.ones((4, 4))"
windows.add("too few sizes", f"lax.reduce_window({X}, 0.0, lax.add, (2,))", TypeError, "window_dimensions",
            "a tuple of 2")
windows.add("a window without elements", f"lax.reduce_window({X}, 0.0, lax.add, (2, 0))", ValueError,
            "window_dimensions", "positive")
windows.add("a stride of 0", f"lax.reduce_window({X}, 0.0, lax.add, (2, 2), (1, 0))", ValueError, "window_strides",
            "positive")
windows.add("too few strides", f"lax.reduce_window({X}, 0.0, lax.add, (2, 2), (1,))", TypeError, "window_strides",
            "a tuple of 2")
windows.add("a dilation of 0", f"lax.reduce_window({X}, 0.0, lax.add, (2, 2), window_dilation=(0, 1))", ValueError,
            "window_dilation", "positive")
windows.add("an integer for a shape", f"lax.reduce_window({X}, 0.0, lax.add, 2)", TypeError, "window_dimensions",
            "a sequence")
windows.add("a size that isn't an integer", f"lax.reduce_window({X}, 0.0, lax.add, (2, 1.5))", TypeError,
            "window_dimensions", "1.5")
windows.add("a size that is traced", f"cj.jit(lambda n: lax.reduce_window({X}, 0.0, lax.add, (2, n)))(2)", TypeError,
            "i64[]", "static")
windows.add("a padding of that name doesn't exist", f"lax.reduce_window({X}, 0.0, lax.add, (2, 2), (1, 1), 'FULL')",
            ValueError, "'FULL'", "SAME")
windows.add("padding that isn't in pairs", f"lax.reduce_window({X}, 0.0, lax.add, (2, 2), (1, 1), (1, 1))", TypeError,
            "padding", "a pair of integers")
windows.add("too few pairs of padding", f"lax.reduce_window({X}, 0.0, lax.add, (2, 2), (1, 1), ((0, 0),))", TypeError,
            "padding", "a tuple of 2")
windows.add("an initial value of another dtype", f"lax.reduce_window({X}, np.float32(1), lax.mul, (2, 2))", TypeError,
            "f32[]", "float64")
windows.add("an initial value that isn't a scalar", f"lax.reduce_window({X}, np.ones(4), lax.mul, (2, 2))", TypeError,
            "f64[4]", "rank 0")
windows.add("initial values in another structure", f"lax.reduce_window(({X}, {X}), 0.0, lax.add, (2, 2))", ValueError,
            "an initial value for each operand")
windows.add("no operand", "lax.reduce_window((), (), lax.add, (2, 2))", ValueError, "an initial value for each operand")
windows.add("operands of different shapes",
            f"lax.reduce_window(({X}, np.ones(4)), (1.0, 1.0), lambda a, b: (a[0] * b[0], a[1]), (2, 2))", TypeError,
            "f64[4,4]", "f64[4]")
windows.add("a computation that returns another dtype", f"lax.reduce_window({X}, 1.0, lax.ge, (2, 2))", TypeError,
            "computation", "bool[]")
windows.add("a computation that returns a pair", f"lax.reduce_window({X}, 1.0, lambda a, b: (a, b), (2, 2))", TypeError,
            "computation", "a tuple of 2")
windows.add("a computation that isn't a function", f"lax.reduce_window({X}, 1.0, 'max', (2, 2))", TypeError,
            "must be a function", "'max'")
windows.add("a sum of booleans", "lax.reduce_window(np.ones(4, bool), False, lax.add, (2,))", TypeError, "bool")
windows.add("a list for an array", "lax.reduce_window_sum([1.0, 2.0], (2,))", TypeError, "list")
windows.add("padding beyond 64 bits", f"lax.reduce_window({X}, 0.0, lax.add, (2, 2), (1, 1), ((0, 2**70), (0, 0)))",
            TypeError, "padding")

selected = Group("What windows select")
selected.add("neither the largest nor the smallest",
             "lax.select_and_gather_add(np.ones(4), np.ones(4), lax.add_p, (2,))", ValueError, "lax.ge_p or lax.le_p")
selected.add("tangents of another shape", "lax.select_and_gather_add(np.ones(3), np.ones(4), lax.ge_p, (2,))",
             TypeError, "f64[3]", "f64[4]")
selected.add("a source that isn't one of windows",
             "lax.select_and_scatter_add(np.ones(4), np.ones(4), lax.ge_p, (2,))", TypeError, "(3,)")
selected.add("a source of another dtype",
             "lax.select_and_scatter_add(np.ones(3, np.float32), np.ones(4), lax.ge_p, (2,))", TypeError, "f32[3]")
SCATTER = "lax.select_and_scatter(np.ones(4), {}, (2,), (1,), 'VALID', np.ones(3), 0.0, {})"
selected.add("a selection that returns no truth value", SCATTER.format("lax.add", "lax.add"), TypeError, "selection",
             "bool[]")
selected.add("a scatter that returns a truth value", SCATTER.format("lax.ge", "lax.ge"), TypeError, "scatter", "f64[]")
selected.add("a selection that closes over a traced value",
             "cj.jit(lambda a: " + SCATTER.format("lambda x, y: x * a >= y", "lax.add") + ")(1.0)", TypeError,
             "closes over", "select_and_scatter_add")
selected.add("a gradient of select_and_scatter",
             "cj.grad(lambda x: lax.select_and_scatter(x, lax.ge, (2,), (1,), 'VALID', np.ones(3), 0.0, lax.add).sum())"
             "(np.ones(4))", NotImplementedError, "select_and_scatter_add")

GROUPS: tuple[Group, ...] = (windows, selected)
