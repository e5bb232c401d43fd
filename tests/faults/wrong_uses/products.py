"""Precisions of products, products of groups and with scales; accuracies of functions; functions at indices."""

from __future__ import annotations

from .case import Group

precisions = Group("Precisions of products")
precisions.add("a precision that doesn't exist", "lax.dot(np.ones(3), np.ones(3), precision='exact')", TypeError,
               "'exact'", "lax.DotAlgorithmPreset")
precisions.add("a number as a precision", "lax.dot(np.ones(3), np.ones(3), precision=2)", TypeError, "2", "'highest'")
precisions.add("three precisions", "lax.dot(np.ones(3), np.ones(3), precision=('high', 'high', 'high'))", TypeError,
               "('high', 'high', 'high')")
precisions.add("a pair of an algorithm and a precision", """
    lax.dot(np.ones(3), np.ones(3), precision=(lax.DotAlgorithmPreset.F32_F32_F32, 'high'))
    """, TypeError, "F32_F32_F32")
precisions.add("an algorithm that the CPU doesn't have",
               "lax.dot(np.ones(3), np.ones(3), precision='TF32_TF32_F32')", ValueError, "TF32_TF32_F32", "CPU",
               "F32_F32_F32", jax="jax.lax.dot(np.ones(3), np.ones(3), precision='TF32_TF32_F32')")
precisions.add("a compiled algorithm that the CPU doesn't have", """
    def product(x, y):
        return lax.dot(x, y, precision=lax.DotAlgorithmPreset.F16_F16_F32)  # <-
    cj.jit(product)(np.ones(3), np.ones(3))
    """, ValueError, "F16_F16_F32", "CPU", "F16_F16_F16")
precisions.add("an algorithm of parts that the CPU doesn't have", """
    algorithm = lax.DotAlgorithm(np.float16, np.float16, np.float32)
    lax.dot(np.ones(3), np.ones(3), precision=algorithm)
    """, ValueError, "DotAlgorithm(float16, float16, float32", "CPU")
precisions.add("an algorithm that no device has", """
    algorithm = lax.DotAlgorithm(np.float32, np.float64, np.float64)
    lax.dot(np.ones(3), np.ones(3), precision=algorithm)
    """, TypeError, "DotAlgorithm(float32, float64, float64", "F32_F32_F32")
precisions.add("an algorithm of integers", """
    algorithm = lax.DotAlgorithm(np.int8, np.int8, np.int32)
    lax.dot(np.ones(3), np.ones(3), precision=algorithm)
    """, TypeError, "int8", "DotAlgorithmPreset")
precisions.add("an algorithm without operations", """
    algorithm = lax.DotAlgorithm(np.float32, np.float32, np.float32, num_primitive_operations=0)
    lax.dot(np.ones(3), np.ones(3), precision=algorithm)
    """, TypeError, "float32, 1, 1, 0", "F32_F32_F32")
precisions.add("an algorithm for complex numbers",
               "lax.dot(np.ones(3) * 1j, np.ones(3) * 1j, precision='F32_F32_F32')", TypeError, "c128[3]",
               "F32_F32_F32")
precisions.add("an algorithm for integers", "lax.dot(np.arange(3), np.arange(3), precision='F32_F32_F32')", TypeError,
               "i64[3]", "floats")
precisions.add("an algorithm for narrower floats",
               "lax.dot(np.ones(3), np.ones(3), precision='ANY_F8_ANY_F8_F32')", TypeError, "f64[3]", "8-bit")
precisions.add("a level that doesn't exist", "lax.Precision('exact')", ValueError, "exact")

ragged = Group("Products of groups")
ragged.add("sizes of groups that aren't integers",
           "lax.ragged_dot(np.ones((3, 2)), np.ones((2, 2, 4)), np.ones(2))",
           TypeError, "f64[2]", "integers")
ragged.add("one size for all groups", "lax.ragged_dot(np.ones((3, 2)), np.ones((2, 2, 4)), 3)", TypeError,
           "group_sizes", "integers, with groups along the last axis",
           jax="jax.lax.ragged_dot(np.ones((3, 2)), np.ones((2, 2, 4)), 3)")
ragged.add("more groups than matrices",
           "lax.ragged_dot(np.ones((3, 2)), np.ones((2, 2, 4)), np.array([1, 1, 1]))", TypeError,
           "2 groups", "3")
ragged.add("matrices that don't fit", "lax.ragged_dot(np.ones((3, 2)), np.ones((2, 5, 4)), np.array([1, 2]))",
           TypeError, "f64[3,2]", "f64[2,5,4]")
ragged.add("a single matrix", "lax.ragged_dot(np.ones((3, 2)), np.ones((2, 4)), np.array([1, 2]))", TypeError,
           "f64[2,4]")
ragged.add("sizes by rows", "lax.ragged_dot(np.ones((3, 2)), np.ones((2, 2, 4)), np.ones((3, 2), int))", TypeError,
           "i64[3,2]", "(groups,)")
ragged.add("groups of two dtypes", "lax.ragged_dot(np.ones((3, 2)), np.ones((2, 2, 4), np.float32), np.array([1, 2]))",
           TypeError, "f64[3,2]", "f32[2,2,4]", jax=None)
ragged.add("a later first group", """
    lax.ragged_dot(np.ones((3, 2)), np.ones((2, 2, 4)), np.array([1, 2]), group_offset=np.array([1]))
    """, NotImplementedError, "group_offset", "part of rhs")
ragged.add("dimension numbers as a tuple", """
    numbers = (((1,), (1,)), ((), ()))
    lax.ragged_dot_general(np.ones((3, 2)), np.ones((2, 2, 4)), np.array([1, 2]), numbers)
    """, TypeError, "(((1,), (1,)), ((), ()))", "lax.RaggedDotDimensionNumbers")
for name, axes, words in (("two ragged axes", "[0, 1], [0]", ("one ragged axis", "(0, 1)")),
                          ("no ragged axis", "[], [0]", ("one ragged axis", "()")),
                          ("a ragged axis that doesn't exist", "[2], [0]", ("one ragged axis", "(2,)")),
                          ("no axis for groups", "[0], []", ("axis for groups",)),
                          ("a contracted axis for groups", "[0], [1]", ("axis for groups", "(1,)")),
                          ("an axis for groups beside a contracted one", "[1], [0]", ("axis for groups", "leave it"))):
    ragged.add(name, f"""
    numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), {axes})
    lax.ragged_dot_general(np.ones((3, 2)), np.ones((2, 2, 4)), np.array([1, 2]), numbers)
    """, TypeError, *words)
ragged.add("an axis of groups that isn't an integer", """
    lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0.5], [0])
    """, TypeError, "0.5", "lhs_ragged_dimensions")
ragged.add("the derivative by sizes of groups", """
    def total(sizes):
        return lax.ragged_dot(np.ones((3, 2)), np.ones((2, 2, 4)), sizes).sum()  # <-
    cj.grad(total)(np.ones(2))
    """, TypeError, "f64[2]", "integers")

scaled = Group("Products with scales")
scaled.add("vectors with scales", "lax.scaled_dot(np.ones(3), np.ones(3))", TypeError, "f64[3]", "dimension_numbers")
scaled.add("scaled operands of two ranks", "lax.scaled_dot(np.ones((2, 3)), np.ones((1, 3, 4)))", TypeError, "f64[2,3]",
           "f64[1,3,4]")
scaled.add("scaled operands that don't fit", "lax.scaled_dot(np.ones((2, 3)), np.ones((2, 4)))", TypeError, "f64[2,3]",
           "f64[2,4]")
scaled.add("a scale for blocks that don't fit", """
    lax.scaled_dot(np.ones((2, 6)), np.ones((6, 4)), lhs_scale=np.ones((2, 4)))
    """, TypeError, "lhs_scale", "f64[2,4] for f64[2,6]")
scaled.add("a scale for blocks of rows", """
    lax.scaled_dot(np.ones((2, 6)), np.ones((6, 4)), lhs_scale=np.ones((1, 6)))
    """, TypeError, "lhs_scale", "f64[1,6]", "contracted")
scaled.add("a number as a scale", "lax.scaled_dot(np.ones((2, 6)), np.ones((6, 4)), rhs_scale=2.0)", TypeError,
           "rhs_scale", "f64[6,4]")
scaled.add("integers with scales", "lax.scaled_dot(np.ones((2, 6), int), np.ones((6, 4)))", TypeError, "i64[2,6]",
           "floats", jax=None)

accuracies = Group("Accuracies of elementwise functions")
accuracies.add("an accuracy as a word", "lax.sin(0.5, accuracy='highest')", TypeError, "'highest'", "lax.AccuracyMode")
accuracies.add("a number as an accuracy", "lax.exp(0.5, accuracy=1e-6)", TypeError, "1e-06", "lax.Tolerance")
accuracies.add("an accuracy of integers", "lax.tanh(np.arange(3), accuracy=lax.AccuracyMode.HIGHEST)", TypeError,
               "tanh", "i64[3]")
accuracies.add("an accuracy of a complex cubic root", "lax.cbrt(np.array([1j]), accuracy=lax.Tolerance(ulps=1))",
               TypeError, "cbrt", "c128[1]")
accuracies.add("no tolerance", "lax.Tolerance()", ValueError, "atol, rtol and ulps", "lax.AccuracyMode.HIGHEST")
accuracies.add("a negative tolerance", "lax.Tolerance(atol=-1e-6)", ValueError, "atol=-1e-06")
accuracies.add("half an ulp", "lax.Tolerance(ulps=0.5)", ValueError, "ulps=0.5")
accuracies.add("a tolerance that is a string", "lax.Tolerance(rtol='1e-6')", ValueError, "rtol='1e-6'")

applied = Group("Functions applied at indices")
for name, code, kind, words in (
        ("a function that compares", "np.array([[1]]), lambda x: x > 0, numbers, update_shape=(1,)", TypeError,
         ("bool[]", "f64[]")),
        ("a function of two elements", "np.array([[1]]), lambda x, y: x, numbers, update_shape=(1,)", TypeError,
         ("scatter_apply",)),
        ("a function that makes a vector", "np.array([[1]]), lambda x: lax.broadcast(x, (2,)), numbers, "
         "update_shape=(1,)", TypeError, ("f64[2]", "f64[]")),
        ("a number instead of a function", "np.array([[1]]), 2.0, numbers, update_shape=(1,)", TypeError, ("2.0",)),
        ("no update_shape for several indices", "np.array([[1], [2]]), lambda x: x, numbers", TypeError,
         ("f64[] into f64[3]", "scatter_apply")),
        ("indices that aren't integers", "np.array([[1.0]]), lambda x: x, numbers, update_shape=(1,)", TypeError,
         ("f64[1,1]",)),
        ("a mode that doesn't exist", "np.array([[1]]), lambda x: x, numbers, update_shape=(1,), mode='wrap'",
         ValueError, ("'wrap'", "scatter_apply"))):
    applied.add(name, f"""
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    lax.scatter_apply(np.ones(3), {code})
    """, kind, *words)

GROUPS = (precisions, ragged, scaled, accuracies, applied)
