"""Python functions that programs call: what they are given and return, and where they can't be called."""

from __future__ import annotations

from .case import Group

F64 = "cj.ShapeDtypeStruct((), 'float64')"
THREE = "cj.ShapeDtypeStruct((3,), 'float64')"

results = Group("Results of callbacks")
results.add("another shape", f"cj.jit(lambda x: cj.pure_callback(lambda x: x[:2], {THREE}, x))(np.ones(3))", TypeError,
            "another shape", "f64[2]", "f64[3]", jax=None)
results.add("another dtype", "cj.jit(lambda x: cj.pure_callback(lambda x: np.float32(x), x, x))(np.float64(1))",
            TypeError, "another dtype", "f32[]", "f64[]", "astype('float64')", jax=None)
results.add("nothing", f"cj.pure_callback(lambda x: None, {F64}, 1.0)", TypeError, "another structure", "None",
            jax=None)
results.add("two for one", f"cj.pure_callback(lambda x: (x, x), {F64}, 1.0)", TypeError, "a tuple of 2", jax=None)
results.add("another key", f"cj.pure_callback(lambda x: {{'b': x}}, {{'a': {F64}}}, 1.0)", TypeError,
            "another structure", "'b'", "'a'", jax=None)
results.add("something, where nothing was said",
            "from corejax.experimental import io_callback\nio_callback(lambda x: x, None, 1.0)", TypeError,
            "another structure", "None", jax=None)
results.add("text", f"cj.pure_callback(lambda x: 'one', {F64}, 1.0)", TypeError, "isn't an array", "'one'", jax=None)
results.add("a float for an integer", "cj.pure_callback(lambda: 2.5, cj.ShapeDtypeStruct((), 'int32'))", TypeError,
            "a number of another kind", "2.5", "i32[]", jax=None)
results.add("an integer that doesn't fit", "cj.pure_callback(lambda: 300, cj.ShapeDtypeStruct((), 'int8'))", TypeError,
            "doesn't hold", "300", "i8[]", jax=None)
results.add("types that are numbers", "cj.pure_callback(lambda x: x, (3,), 1.0)", TypeError, "result_shape_dtypes",
            "3", "ShapeDtypeStruct", jax=None)
results.add("no types", "cj.pure_callback(lambda x: x)", TypeError, "result_shape_dtypes")

arguments = Group("Arguments of callbacks")
arguments.add("no function", f"cj.pure_callback(3.0, {F64}, 1.0)", TypeError, "expected a function", "3.0", jax=None)
arguments.add("text as data", f"cj.pure_callback(lambda x: x, {F64}, 'one')", TypeError, "args[0]", "not an array",
              jax=None)
arguments.add("a function that takes fewer", f"cj.pure_callback(lambda x: x, {F64}, 1.0, 2.0)", TypeError,
              "doesn't take these arguments", "2", jax=None)
arguments.add("a traced value that is closed over", f"cj.jit(lambda x: cj.pure_callback(lambda: x + 1, {F64}))(1.0)",
              TypeError, "closes over a traced value", "x: ", "as an argument", jax=None)
arguments.add("a traced value that is bound",
              "from functools import partial\ncj.jit(lambda x: cj.debug.callback(partial(print, x)))(1.0)", TypeError,
              "closes over a traced value", "argument 0", jax=None)
arguments.add("a traced value that is returned",
              f"kept = []\ncj.jit(lambda x: (kept.append(x), cj.pure_callback(lambda: kept[0], {F64}))[1])(1.0)",
              TypeError, "returned a traced value", jax=None)
arguments.add("a vmap_method that doesn't exist", f"cj.pure_callback(abs, {F64}, 1.0, vmap_method='parallel')",
              ValueError, "vmap_method", "'parallel'", "'sequential'", jax=None)
arguments.add("a negative timeout", f"cj.pure_callback(abs, {F64}, 1.0, timeout=-1)", ValueError, "timeout", "-1",
              jax=None)
arguments.add("text for ordered", "cj.debug.callback(print, 1.0, ordered='yes')", TypeError, "ordered", "'yes'",
              jax=None)
arguments.add("a device for a sharding", f"cj.pure_callback(abs, {F64}, 1.0, sharding=cj.devices()[0])", TypeError,
              "one device", jax=None)

transformed = Group("Callbacks that are transformed")
transformed.add("a map, not said how", f"cj.vmap(lambda x: cj.pure_callback(abs, {F64}, x))(np.ones(3))",
                NotImplementedError, "takes a batch", "vmap_method='sequential'", jax=None)
transformed.add("a derivative", f"cj.grad(lambda x: cj.pure_callback(abs, {F64}, x))(1.0)", NotImplementedError,
                "pure_callback", "not differentiable", "cj.custom_jvp", jax=None)
transformed.add("a derivative of what does something",
                f"from corejax.experimental import io_callback\ncj.grad(lambda x: io_callback(abs, {F64}, x))(1.0)",
                NotImplementedError, "io_callback", "not differentiable", "stop_gradient", jax=None)
transformed.add("an ordered callback in a map",
                "from corejax.experimental import io_callback\n"
                "cj.vmap(lambda x: io_callback(print, None, x, ordered=True))(np.ones(3))", NotImplementedError,
                "which element of a batch", "lax.map", jax=None)
transformed.add("an export", f"cj.export.export(cj.jit(lambda x: cj.pure_callback(abs, {F64}, x)))({F64})",
                TypeError, "pure_callback", "can't be exported", jax=None)

formats = Group("Formats of debug.print")
formats.add("a value too few", "cj.debug.print('{} of {}', 1)", ValueError, "no argument 1", "1 positional", jax=None)
formats.add("a value too many", "cj.debug.print('x', 1)", ValueError, "no place for argument 0", jax=None)
formats.add("a name that isn't given", "cj.jit(lambda x: cj.debug.print('{y}', x=x))(1.0)", ValueError,
            "no argument 'y'", "x", jax=None)
formats.add("a format of a number for an array", "cj.jit(lambda x: cj.debug.print('{:.2f}', x))(np.ones(3))",
            ValueError, "'.2f'", "f64[3]", jax=None)
formats.add("a format of text for a number", "cj.debug.print('{:d}', 1.5)", ValueError, "'d'", jax=None)
formats.add("a brace that isn't closed", "cj.debug.print('{x', x=1)", ValueError, "can't be used", jax=None)
formats.add("a value for the format", "cj.jit(lambda x: cj.debug.print(x))(1.0)", TypeError, "must be text", jax=None)
formats.add("a breakpoint without a terminal", "import io, sys\nsys.stdin, kept = io.StringIO(), sys.stdin\n"
            "try:\n    cj.debug.breakpoint()  # <-\nfinally:\n    sys.stdin = kept", RuntimeError, "no terminal",
            "cj.debug.print", jax=None)

GROUPS = (results, arguments, transformed, formats)
