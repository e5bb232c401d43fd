"""Bits of numbers, inverse functions, and functions of sizes."""

from __future__ import annotations

from .case import Group

bits = Group("Bits, and more elementwise functions")
for name in ("acosh", "asinh", "atanh", "cbrt", "exp2"):
    bits.add(f"{name} of integers", f"lax.{name}(np.arange(3))", TypeError, "i64[3]", "float")
bits.add("asinh of a list", "lax.asinh([0.5, 1.0])", TypeError, "list")
bits.add("cbrt of complex numbers", "lax.cbrt(np.array([1j]))", TypeError, "c128[1]", "float")
bits.add("acosh of a string", "lax.acosh('1.5')", TypeError, "str")
bits.add("exp2 of booleans", "lax.exp2(np.array([True]))", TypeError, "bool[1]")
bits.add("the reciprocal of integers", "lax.reciprocal(np.arange(1, 3))", TypeError, "reciprocal", "i64[2]")
bits.add("the reciprocal of a list", "lax.reciprocal([1.0, 2.0])", TypeError, "list")
bits.add("bits of floats that are 1", "lax.population_count(np.ones(3))", TypeError, "f64[3]", "integer")
bits.add("bits of booleans that are 1", "lax.population_count(np.array([True]))", TypeError, "bool[1]")
bits.add("leading zeros of a float", "lax.clz(1.0)", TypeError, "f64[]", "integer")
bits.add("leading zeros of nothing", "lax.clz(None)", TypeError, "None")
bits.add("a product of booleans in another dtype", "lax.mul(np.ones(2, bool), np.ones(2), out_dtype='int8')", TypeError,
         "mul", "bool", jax=None)
bits.add("a product in a dtype that doesn't exist", "lax.mul(np.ones(2), np.ones(2), out_dtype='int5')", TypeError,
         "int5", jax=None)
bits.add("high bits of floats", "lax.mulhi(np.ones(2), np.ones(2))", TypeError, "f64[2]", "integer")
bits.add("high bits of two dtypes", "lax.mulhi(np.ones(2, np.int8), np.ones(2, np.int16))", TypeError, "i8[2]",
         "i16[2]")
bits.add("high bits of two shapes", "lax.mulhi(np.arange(2), np.arange(3))", TypeError, "i64[2]", "i64[3]")
bits.add("the number after an integer", "lax.nextafter(np.arange(2), np.arange(2))", TypeError, "i64[2]", "float")
bits.add("the number after one of another dtype", "lax.nextafter(np.ones(2), np.ones(2, np.float32))", TypeError,
         "f64[2]", "f32[2]")
bits.add("the derivative of the next number", "cj.grad(lambda x: lax.nextafter(x, 2.0))(1.0)", NotImplementedError,
         "nextafter", "not differentiable", jax="jax.grad(lambda x: lax.nextafter(x, 2.0))(1.0)")
bits.add("bits of complex numbers", "lax.bitcast_convert_type(np.ones(2, np.complex64), np.float32)", TypeError,
         "c64[2]", "lax.real")
bits.add("bits of booleans", "lax.bitcast_convert_type(np.array([True]), np.int8)", TypeError, "bool[1]")
bits.add("too few parts for a wider number", "lax.bitcast_convert_type(np.ones(3, np.uint8), np.uint16)", ValueError,
         "u8[3]", "size 2")
bits.add("a scalar as a wider number", "lax.bitcast_convert_type(np.uint8(1), np.uint16)", ValueError, "u8[]", "size 2")
bits.add("bits of no dtype", "lax.bitcast_convert_type(np.ones(3), 'float65')", TypeError, "float65")
bits.add("the derivative of bits", """
    def halves(x):
        return lax.bitcast_convert_type(x, np.float32).sum()  # <-
    cj.grad(halves)(1.0)
    """, NotImplementedError, "bitcast_convert_type", "stop_gradient", jax=None)
bits.add("fewer bits of integers", "lax.reduce_precision(np.arange(3), 5, 10)", TypeError, "i64[3]", "float")
bits.add("fewer bits of complex numbers", "lax.reduce_precision(np.array([1j]), 5, 10)", TypeError, "c128[1]")
bits.add("no bits of exponent", "lax.reduce_precision(1.0, 0, 10)", ValueError, "exponent_bits", "0")
bits.add("negative bits of mantissa", "lax.reduce_precision(1.0, 5, -1)", ValueError, "mantissa_bits", "-1")
bits.add("half a bit", "lax.reduce_precision(1.0, 5, 2.5)", TypeError, "mantissa_bits", "2.5")
bits.add("bits that aren't known yet", "cj.jit(lambda n: lax.reduce_precision(1.0, n, 10))(5)", TypeError,
         "traced", "static", jax="jax.jit(lambda n: lax.reduce_precision(1.0, n, 10))(5)")

sizes = Group("Functions of sizes, and short ways to index")
sizes.add("shapes that don't broadcast with each other", "lax.broadcast_shapes((3,), (4,))", ValueError, "(3,), (4,)")
sizes.add("a negative size to broadcast", "lax.broadcast_shapes((3,), (-3,))", TypeError, "(-3,)")
sizes.add("a size to broadcast that isn't an integer", "lax.broadcast_shapes((3.0,), (1,))", TypeError, "3.0")
sizes.add("like something smaller", "lax.broadcast_like(np.ones((2, 3)), np.ones(3))", ValueError, "f64[2,3]", "(3,)")
sizes.add("like something of other sizes", "lax.broadcast_like(np.ones(2), np.ones(3))", ValueError, "f64[2]", "(3,)")
sizes.add("fewer axes than there are", "lax.broadcast_to_rank(np.ones((2, 3)), 1)", ValueError, "f64[2,3]", "1")
sizes.add("a rank that isn't an integer", "lax.broadcast_to_rank(np.ones(3), 2.0)", TypeError, "rank", "2.0")
sizes.add("too few repetitions", "lax.tile(np.ones((2, 3)), (2,))", ValueError, "(2,)", "f64[2,3]")
sizes.add("a negative number of repetitions", "lax.tile(np.ones(3), (-1,))", ValueError, "(-1,)")
sizes.add("repetitions that aren't integers", "lax.tile(np.ones(3), (1.5,))", TypeError, "reps", "1.5")
sizes.add("parts of a scalar", "lax.unstack(1.0)", IndexError, "axis 0")
sizes.add("parts along an axis that isn't there", "lax.unstack(np.ones(3), 1)", IndexError, "axis 1")
sizes.add("a negative size of an empty array", "lax.empty((-1,), np.float32)", TypeError, "(-1,)")
sizes.add("an empty array of no dtype", "lax.empty((1,), 'float65')", TypeError, "float65")
sizes.add("a shape as a value that isn't one", "lax.shape_as_value((2.5,))", TypeError, "2.5", jax=None)
sizes.add("the dtype of a list", "lax.dtype([1.0])", TypeError, "list", jax=None)
sizes.add("an unknown padding", "lax.padtype_to_pads((5,), (2,), (1,), 'EQUAL')", ValueError, "EQUAL", "SAME_LOWER")
sizes.add("a stride of zero", "lax.padtype_to_pads((5,), (2,), (0,), 'SAME')", ValueError, "strides")
sizes.add("windows of fewer axes", "lax.padtype_to_pads((5, 5), (2,), (1,), 'SAME')", ValueError, "(2,)")
sizes.add("one vector of indices for two axes", "lax.index_take(np.ones((2, 3)), [np.array([0])], (0, 1))", TypeError,
          "there are 2", jax=None)
sizes.add("vectors of indices of two sizes", """
    lax.index_take(np.ones((2, 3)), [np.array([0]), np.array([0, 1])], (0, 1))
    """, TypeError, "i64[1]", "i64[2]")
sizes.add("floats to take", "lax.index_take(np.ones(3), [np.array([0.0])], (0,))", TypeError, "f64[1]", "integers")
sizes.add("taking along an axis that isn't there", "lax.index_take(np.ones(3), [np.array([0])], (1,))", IndexError,
          "axis 1", jax=None)
sizes.add("subtracting updates of another shape", """
    lax.scatter_sub(np.ones(3), np.array([[0]]), np.ones(2), lax.ScatterDimensionNumbers((), (0,), (0,)))
    """, TypeError, "scatter_sub", "f64[2]")
sizes.add("an unknown mode by name", "lax.GatherScatterMode.from_any('wrap')", ValueError, "wrap", "clip")

random = Group("Random bits")
random.add("a seed as a key", "lax.rng_bit_generator(0, (2,))", TypeError, "u64[2]")
random.add("a key of signed integers", "lax.rng_bit_generator(np.zeros(2, np.int64), (2,))", TypeError, "i64[2]",
           "u64[2]")
random.add("a key of three words", "lax.rng_bit_generator(np.zeros(3, np.uint32), (2,))", TypeError, "u32[3]", "u32[4]")
random.add("keys without a map", "lax.rng_bit_generator(np.zeros((3, 2), np.uint64), (2,))", TypeError, "u64[3,2]")
random.add("random floats", "lax.rng_bit_generator(np.zeros(2, np.uint64), (2,), np.float32)", TypeError, "float32",
           "uint32")
random.add("an algorithm by name", "lax.rng_bit_generator(np.zeros(2, np.uint64), (2,), algorithm='philox')",
           ValueError, "philox", "RandomAlgorithm")
random.add("a negative number of bits", "lax.rng_bit_generator(np.zeros(2, np.uint64), (-1,))", TypeError, "(-1,)")
random.add("a shape that isn't known", "cj.jit(lambda n: lax.rng_bit_generator(np.zeros(2, np.uint64), (n,)))(3)",
           TypeError, "shape", jax=None)
random.add("a bound for each number", "lax.rng_uniform(np.zeros(2), np.ones(2), (2,))", TypeError, "f64[2]", "()")
random.add("bounds of two types", "lax.rng_uniform(0, 1.0, (2,))", TypeError, "i64[]", "f64[]")
random.add("a truth value drawn without a key", "lax.rng_uniform(False, True, (2,))", TypeError, "bool",
           "int32", jax=None)  # XLA ends jax's process
random.add("a complex number drawn without a key", "lax.rng_uniform(0j, 1j, (2,))", TypeError, "complex128")
random.add("a size that isn't whole", "lax.rng_uniform(0.0, 1.0, (2.5,))", TypeError, "2.5")
random.add("gradients by a bound of random numbers", "cj.grad(lambda a: lax.rng_uniform(a, 1.0, ()))(0.5)",
           NotImplementedError, "stop_gradient")

GROUPS = (bits, sizes, random)
