"""Precisions of products, and products of groups."""

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

GROUPS = (precisions,)
