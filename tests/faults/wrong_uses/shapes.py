"""Shapes, dtypes, axes and sizes of the operands of functions."""

from __future__ import annotations

from .case import Group

elementwise = Group("Operands of elementwise functions")
elementwise.add("different shapes", "lax.add(np.ones(3), np.ones(4))", TypeError, "f64[3]", "f64[4]")
elementwise.add("different dtypes", "lax.mul(np.ones(3), np.ones(3, np.float32))", TypeError, "f64[3]", "f32[3]")
elementwise.add("shapes that don't broadcast", """
    x, y = cj.device_put(np.ones(3)), cj.device_put(np.ones(4))
    x + y
    """, TypeError, "f64[3]", "f64[4]")
elementwise.add("a vector and a matrix without operators", "lax.add(np.ones(3), np.ones((2, 3)))", TypeError, "f64[3]",
                "f64[2,3]")
elementwise.add("a function of floats on integers", "lax.sin(np.arange(3))", TypeError, "i64[3]", "float")
elementwise.add("rounding integers", "lax.floor(np.arange(3))", TypeError, "i64[3]", "float")
elementwise.add("negating booleans", "lax.neg(np.array([True]))", TypeError, "bool[1]")
elementwise.add("bits of floats", "lax.bitwise_and(np.ones(2), np.ones(2))", TypeError, "f64[2]", "integer")
elementwise.add("remainder of complex numbers", "lax.rem(1j, 2j)", TypeError, "c128[]")
elementwise.add("order of complex numbers", "lax.lt(np.array(1j), np.array(2j))", TypeError, "c128[]")
elementwise.add("real part of a real number", "lax.real(np.ones(3))", TypeError, "f64[3]", "complex")
elementwise.add("a complex number of integers", "lax.complex(np.arange(2), np.arange(2))", TypeError, "i64[2]",
                "float")
elementwise.add("an exponent that isn't an integer", "lax.integer_pow(2.0, 0.5)", TypeError, "0.5", "integer")
elementwise.add("powers of integers by floats", "lax.pow(np.arange(3), np.ones(3, np.float32))", TypeError, "i64[3]",
                "f32[3]")
elementwise.add("an operand that isn't an array", "lax.sin('0.5')", TypeError, "operand 0", "str")
elementwise.add("an operand of a traced function that isn't an array", "cj.jit(lambda x: lax.atan2(x, 'y'))(1.0)",
                TypeError, "operand 1", "str")
elementwise.add("a list for an array", "lax.sin([0.5, 1.0])", TypeError, "list")
elementwise.add("None for an array", "lax.sin(None)", TypeError, "None")
elementwise.add("an operand of strings", "lax.add(np.array(['a', 'b']), 1.0)", TypeError, "<U1")
elementwise.add("an operand of Python objects", "lax.sin(np.array([1.0, None], dtype=object))", TypeError, "object")
elementwise.add("dates", "cj.device_put(np.array(['2026-01-01'], dtype='datetime64[D]'))", TypeError,
                "datetime64")
elementwise.add("a masked array", "lax.sin(np.ma.masked_array([1.0, 2.0], [True, False]))", TypeError, "mask")
elementwise.add("a Python integer that no dtype holds", "lax.add(np.arange(3), 2 ** 70)", OverflowError,
                "1180591620717411303424")
elementwise.add("a Python integer beyond the array's dtype", """
    x = cj.device_put(np.array([1, 2], np.uint8))
    x + 300
    """, OverflowError, "300", "uint8")
elementwise.add("a negative number beside unsigned ones", """
    x = cj.device_put(np.array([1, 2], np.uint32))
    x - -1
    """, OverflowError, "-1", "uint32")
elementwise.add("an unknown dtype", "lax.convert_element_type(np.ones(3), 'float65')", TypeError, "float65")
elementwise.add("complex numbers as reals by operator", """
    x = cj.device_put(np.array([1j]))
    x % 2.0
    """, TypeError, "c128[1]")

selection = Group("Selection")
selection.add("a predicate that isn't a boolean", "lax.select(np.ones(3), np.ones(3), np.zeros(3))", TypeError,
              "f64[3]", "bool")
selection.add("cases that differ", "lax.select(np.array([True, False]), np.ones(2), np.zeros(3))", TypeError,
              "f64[2]", "f64[3]")
selection.add("a predicate of another shape", "lax.select(np.array([True, False]), np.ones(3), np.zeros(3))",
              TypeError, "bool[2]", "f64[3]")
selection.add("a boolean among three cases", "lax.select_n(True, 1.0, 2.0, 3.0)", TypeError, "bool[]", "3")
selection.add("bounds of another shape", "lax.clamp(np.zeros(2), np.ones(3), np.ones(3))", TypeError, "f64[2]",
              "f64[3]")

products = Group("Products of arrays")
products.add("inner sizes that differ", """
    x, y = cj.device_put(np.ones((2, 3))), cj.device_put(np.ones((4, 5)))
    x @ y
    """, TypeError, "f64[2,3]", "f64[4,5]", "3", "4")
products.add("a matrix times a number", """
    x = cj.device_put(np.ones((2, 2)))
    x @ 2.0
    """, TypeError, "f64[2,2]", "f64[]")
products.add("contracted axes that differ in size",
             "lax.dot_general(np.ones((2, 3)), np.ones((2, 3)), (((1,), (0,)), ((), ())))", TypeError, "f64[2,3]",
             "3", "2")
products.add("batch axes that differ in size",
             "lax.dot_general(np.ones((2, 3)), np.ones((4, 3)), (((1,), (1,)), ((0,), (0,))))", TypeError,
             "f64[2,3]", "f64[4,3]")
products.add("a contracted axis that doesn't exist",
             "lax.dot_general(np.ones(3), np.ones(3), (((1,), (0,)), ((), ())))", TypeError, "1", "f64[3]")
products.add("dimension numbers of the wrong form", "lax.dot_general(np.ones(3), np.ones(3), (0, 0))", TypeError,
             "(0, 0)")
products.add("a product of two dtypes", "lax.dot(np.ones(3), np.ones(3, np.int32))", TypeError, "f64[3]",
             "i32[3]")

structure = Group("Shapes and axes")
structure.add("a reshape to another size", "lax.reshape(np.ones(6), (4, 2))", TypeError, "f64[6]", "(4, 2)", "8")
structure.add("a reshape with two unknown sizes", """
    x = cj.device_put(np.ones(6))
    x.reshape(-1, -1)
    """, TypeError, "(-1, -1)", "one -1")
structure.add("a size that doesn't divide", """
    x = cj.device_put(np.ones(6))
    x.reshape(4, -1)
    """, TypeError, "(4, -1)", "f64[6]")
structure.add("a negative size", "lax.full((2, -1), 0.0)", TypeError, "(2, -1)")
structure.add("a size that isn't an integer", "lax.full((2, 1.5), 0.0)", TypeError, "1.5")
structure.add("an array of no numbers", "lax.full((2,), 'zero')", TypeError, "str")
structure.add("counting in booleans", "lax.iota(bool, 3)", TypeError, "bool")
structure.add("an axis out of bounds", "lax.expand_dims(np.ones(3), (3,))", IndexError, "3", "-2")
structure.add("the same new axis twice", "lax.expand_dims(np.ones(3), (0, 0))", ValueError, "(0, 0)")
structure.add("squeezing an axis that is not 1", "lax.squeeze(np.ones((2, 1)), (0,))", TypeError, "f64[2,1]", "0")
structure.add("no permutation", "lax.transpose(np.ones((2, 3)), (0, 0))", TypeError, "(0, 0)")
structure.add("a permutation of too few axes", "lax.transpose(np.ones((2, 3)), (0,))", TypeError, "(0,)", "2")
structure.add("reversing an axis that doesn't exist", "lax.rev(np.ones(3), (1,))", IndexError, "1")
structure.add("broadcasting to a smaller shape", "lax.broadcast_in_dim(np.ones(3), (2,), (0,))", TypeError, "f64[3]",
              "(2,)")
structure.add("broadcasting to axes out of order", "lax.broadcast_in_dim(np.ones((2, 3)), (3, 2), (1, 0))", TypeError,
              "(1, 0)")
structure.add("an axis given as a float", "lax.expand_dims(np.ones(3), (0.0,))", TypeError, "0.0", "integer")
structure.add("concatenating different sizes", "lax.concatenate([np.ones((2, 3)), np.ones((2, 4))], 0)", TypeError,
              "f64[2,3]", "f64[2,4]")
structure.add("concatenating along no axis", "lax.concatenate([np.ones(2), np.ones(2)], 1)", IndexError, "1")
structure.add("concatenating nothing", "lax.concatenate([], 0)", ValueError, "operand")
structure.add("concatenating two dtypes", "lax.concatenate([np.ones(2), np.arange(2)], 0)", TypeError, "f64[2]",
              "i64[2]")
structure.add("concatenating numbers", "lax.concatenate([1.0, 2.0], 0)", IndexError, "axis 0", "scalar")
structure.add("padding of too few axes", "lax.pad(np.ones((2, 3)), 0.0, [(1, 1, 0)])", TypeError, "f64[2,3]", "1")
structure.add("a padding value of another dtype", "lax.pad(np.ones(3), np.int32(0), [(1, 1, 0)])", TypeError,
              "f64[3]", "i32[]")
structure.add("negative padding between elements", "lax.pad(np.ones(3), 0.0, [(0, 0, -1)])", TypeError, "-1")
structure.add("stacking different shapes", "lax.stack([np.ones(2), np.ones(3)])", TypeError, "f64[2]", "f64[3]",
              jax="jnp.stack([np.ones(2), np.ones(3)])")
structure.add("parts that don't add up", "lax.split(np.ones(5), (2, 2))", TypeError, "(2, 2)", "5")

slices = Group("Slices")
slices.add("a slice past the end", "lax.slice(np.ones(5), (2,), (7,))", TypeError, "(7,)", "5")
slices.add("a slice that begins after its end", "lax.slice(np.ones(5), (3,), (2,))", TypeError, "(3,)", "(2,)")
slices.add("a slice with a step of zero", "lax.slice(np.ones(5), (0,), (5,), (0,))", TypeError, "0")
slices.add("a slice of too few axes", "lax.slice(np.ones((2, 3)), (0,), (1,))", TypeError, "f64[2,3]")
slices.add("a window larger than the array", "lax.dynamic_slice(np.ones(3), (0,), (4,))", TypeError, "4", "f64[3]")
slices.add("too few start indices", "lax.dynamic_slice(np.ones((2, 3)), (0,), (1, 1))", TypeError, "1", "2")
slices.add("a start index that isn't an integer", "lax.dynamic_slice(np.ones(3), (0.5,), (2,))", TypeError, "f64[]",
           "integer")
slices.add("an update that doesn't fit", "lax.dynamic_update_slice(np.ones(3), np.ones(4), (0,))", TypeError, "f64[4]",
           "f64[3]")
slices.add("an update of another dtype", "lax.dynamic_update_slice(np.ones(3), np.arange(2), (0,))", TypeError,
           "i64[2]", "f64[3]")
slices.add("a static index out of bounds", "lax.index_in_dim(np.ones(3), 3)", IndexError, "3", "-3")

reductions = Group("Reductions")
reductions.add("a reduced axis that doesn't exist", "lax.reduce_sum(np.ones((2, 3)), (2,))", IndexError, "2", "-2")
reductions.add("an axis reduced twice", "lax.reduce_max(np.ones((2, 3)), (0, -2))", ValueError, "(0, -2)")
reductions.add("a sum of booleans", "lax.reduce_sum(np.array([True, False]), (0,))", TypeError, "bool[2]")
reductions.add("a method's axis out of bounds", """
    x = cj.device_put(np.ones(3))
    x.sum(axis=1)
    """, IndexError, "1")
reductions.add("logic on floats", "lax.reduce_and(np.ones(3), (0,))", TypeError, "f64[3]", "bool")
reductions.add("the position in nothing", "lax.argmax(np.ones((0,)), 0, np.int32)", ValueError, "f64[0]")
reductions.add("a position in floats", "lax.argmax(np.ones(3), 0, np.float32)", TypeError, "float32")
reductions.add("the largest of nothing", """
    x = cj.device_put(np.ones((0, 3)))
    x.max(axis=0)
    """, ValueError, "f64[0,3]")
reductions.add("a running sum along no axis", "lax.cumsum(np.ones(3), 1)", IndexError, "1")
reductions.add("reduced axes given as a float", "lax.reduce_sum(np.ones(3), (0.0,))", TypeError, "0.0")

running = Group("Running results")
running.add("an axis of a scalar", "lax.cumprod(2.0)", IndexError, "0")
running.add("a running product of booleans", "lax.cumprod(np.array([True, False]))", TypeError, "bool[2]")
running.add("a running maximum of booleans", "lax.cummax(np.array([True, False]))", TypeError, "bool[2]")
running.add("a running minimum along an axis that doesn't exist", "lax.cummin(np.ones((2, 3)), axis=2)", IndexError,
            "2", "-2")
running.add("a running logarithm of integers", "lax.cumlogsumexp(np.arange(3))", TypeError, "i64[3]", "float")
running.add("several axes to run along", "lax.cumsum(np.ones((2, 3)), (0, 1))", TypeError, "(0, 1)")
running.add("an axis given as a float", "lax.cummax(np.ones(3), 0.0)", TypeError, "0.0")
running.add("a direction that isn't a flag", "lax.cumprod(np.ones(3), 0, 'backward')", TypeError, "'backward'")
running.add("a sum that keeps its axes by text", "cj.device_put(np.ones(3)).sum(keepdims='yes')", TypeError, "keepdims",
            "'yes'", "True or False")
running.add("a running product of a list", "lax.cumprod([1.0, 2.0])", TypeError, "list")
running.add("factors and terms of different shapes", "lax.linear_recurrence(np.ones(3), np.ones(4))", TypeError,
            "f64[3]", "f64[4]", jax=None)
running.add("factors and terms of different dtypes", "lax.linear_recurrence(np.ones(3, np.float32), np.ones(3))",
            TypeError, "f32[3]", "f64[3]", jax=None)
running.add("a recurrence of booleans", "lax.linear_recurrence(np.array([True]), np.array([True]))", TypeError,
            "bool[1]", jax=None)
running.add("a recurrence along an axis that doesn't exist", "lax.linear_recurrence(np.ones(3), np.ones(3), axis=1)",
            IndexError, "1", jax=None)
running.add("a running product by a method that writes", """
    x = cj.device_put(np.ones(3))
    x.cumprod(out=np.ones(3))
    """, TypeError, "out")

scans = Group("Associative scans")
scans.add("a scan without a function", "lax.associative_scan(np.ones(3), np.ones(3))", TypeError, "callable")
scans.add("a scan of no arrays", "lax.associative_scan(lax.add, ())", ValueError, "()")
scans.add("a scan along an axis that doesn't exist", "lax.associative_scan(lax.add, np.ones(3), axis=1)", IndexError,
          "1")
scans.add("a scan of arrays of different sizes", "lax.associative_scan(lambda a, b: a, (np.ones(3), np.ones(4)))",
          ValueError, "elems[0]", "elems[1]")
scans.add("a function that returns another structure",
          "lax.associative_scan(lambda a, b: (a[0],), (np.ones(3), np.ones(3)))", TypeError, "tuple of 1",
          "tuple of 2")
scans.add("a function that changes the shape", "lax.associative_scan(lambda a, b: lax.reduce_sum(a, (0,)), np.ones(4))",
          TypeError, "f64[]", "f64[2]")
scans.add("a function that changes the dtype", "lax.associative_scan(lambda a, b: a < b, np.ones(4))", TypeError,
          "bool[2]", "f64[2]")
scans.add("a function of one argument", "lax.associative_scan(lambda a: a, np.ones(4))", TypeError, "2")
scans.add("a scan of words", "lax.associative_scan(lax.add, {'word': 'hello'})", TypeError, "elems['word']", "str")

reducing = Group("Reductions by a function")
reducing.add("no initial value for an operand", "lax.reduce((np.ones(3), np.ones(3)), (0.0,), lambda x, y: x, (0,))",
             ValueError, "(*, *)", "(*,)")
reducing.add("an initial value that isn't a scalar", "lax.reduce(np.ones(3), np.zeros(3), lambda x, y: x * y, (0,))",
             ValueError, "f64[3]", "scalar")
reducing.add("an initial value of another dtype",
             "lax.reduce(np.ones(3, np.float32), np.float64(0), lambda x, y: x * y + x, (0,))", TypeError, "f64[]",
             "float32")
reducing.add("operands of different shapes",
             "lax.reduce((np.ones(3), np.ones(4)), (0.0, 0.0), lambda x, y: x, (0,))", ValueError, "f64[3]", "f64[4]")
reducing.add("a dimension that doesn't exist", "lax.reduce(np.ones(3), 0.0, lambda x, y: x * y + x, (1,))", IndexError,
             "1")
reducing.add("a computation that isn't a function", "lax.reduce(np.ones(3), 0.0, np.ones(3), (0,))", TypeError,
             "computation", "callable")
reducing.add("a computation that returns too much", "lax.reduce(np.ones(3), 0.0, lambda x, y: (x, y), (0,))", TypeError,
             "tuple of 2")
reducing.add("a computation that returns another dtype", "lax.reduce(np.ones(3), 0.0, lambda x, y: x < y, (0,))",
             TypeError, "bool[]", "f64[]")
reducing.add("a computation of one argument", "lax.reduce(np.ones(3), 0.0, lambda x: x, (0,))", TypeError, "2")
reducing.add("exclusive or of floats", "lax.reduce_xor(np.ones(3), (0,))", TypeError, "f64[3]", "bool")
reducing.add("positions too large for the dtype", "lax.argmax(np.ones(300), 0, np.int8)", ValueError, "299", jax=None)

GROUPS = (elementwise, selection, products, structure, slices, reductions, running, scans, reducing)
