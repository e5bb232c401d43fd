"""Faults in rules on shapes, products and reductions, planted by someone who had not seen the kit.

Many are modelled on bugs that were reported to array libraries and their compilers.
"""

from __future__ import annotations

from .mutant import mutants_of

SHAPES, JOINING, CREATION, CONVERSION, SELECTION, LINEAR = (
    f"corejax_lax_basic.{name}" for name in ("shapes", "joining", "creation", "conversion", "selection",
                                             "linear_algebra"))
SUMS, PRODUCTS, EXTREMA, POSITIONS, SHARED, LOWERING = (
    f"corejax_reductions.{name}" for name in ("sums", "products", "extrema", "positions", "_reduction", "_lowering"))

MUTANTS = (
    *mutants_of("broadcast_in_dim", SHAPES, "BroadcastInDim", (
        ("transpose", "shape", "return [ct if len(shape) - len(summed) == len(sizes) else reshape(ct, sizes)]",
         "return [ct]"),
        ("vmap", "axis", "shaping.insert(shape, at, axis.size)", "shaping.insert(shape, dim, axis.size)"),
        ("xla_translation", "missing case", "placed[dim] = size", "placed[dim] = shape[dim]"),
    )),
    *mutants_of("reshape", SHAPES, "Reshape", (
        ("abstract_eval", "refusal", "if prod(new_sizes) != x.size:", "if prod(new_sizes) > x.size:"),
    )),
    *mutants_of("squeeze", SHAPES, "Squeeze", (
        ("impl", "param", "args[0].squeeze(dimensions)", "args[0].squeeze()"),
    )),
    *mutants_of("transpose", SHAPES, "Transpose", (
        ("abstract_eval", "refusal", "sorted(permutation) != list(range(x.ndim))",
         "sorted([d % max(1, x.ndim) for d in permutation]) != list(range(x.ndim))"),
    )),

    *mutants_of("concatenate", JOINING, "Concatenate", (
        ("abstract_eval", "refusal", "if not 0 <= dimension < first.ndim:", "if not dimension < first.ndim:"),
        ("jvp", "missing case", "if all([type(t) is Zero for t in tangents]):",
         "if any([type(t) is Zero for t in tangents]):"),
        ("transpose", "missing case", "            start = stop\n        assert start == full_shape[dimension]\n",
         "            start = stop if type(x) is Linear else start\n"),
    )),
    *mutants_of("pad", JOINING, "Pad", (
        ("impl", "off by one", "min(size, -((lo - total) // step))", "min(size, (total - lo) // step)"),
        ("abstract_eval", "refusal", "len(c) != 3 or c[2] < 0", "len(c) != 3"),
        ("abstract_eval", "refusal", "if value.ndim:", "if value.ndim > 1:"),
    )),
    *mutants_of("iota", CREATION, "Iota", (
        ("abstract_eval", "weak type", "ShapedArray(shape, dtype)", "ShapedArray(shape, dtype, True)"),
        ("abstract_eval", "refusal", "if not 0 <= dimension < len(shape):", "if not dimension < len(shape):"),
    )),
    *mutants_of("convert_element_type", CONVERSION, "_to_integer", (
        ("impl", "comparison", "(wide < high)", "(wide <= high)"),
    )),
    *mutants_of("convert_element_type", CONVERSION, "_tangent", (
        ("jvp", "missing case", "dtypes.is_inexact(new_dtype)", "dtypes.is_float(new_dtype)"),
    )),
    *mutants_of("select_n", SELECTION, "SelectN", (
        ("jvp", "missing case", "if all([type(t) is Zero for t in dots]):", "if any([type(t) is Zero for t in dots]):"),
    )),
    *mutants_of("clamp", SELECTION, "Clamp", (
        ("impl", "missing case", "limited(low, x, high)", "np.fmin(np.fmax(low, x), high)"),
    )),

    *mutants_of("dot_general", LINEAR, "to_multiply", (
        ("impl", "dtype", 'np.dtype(np.float32) if sums.itemsize < 4 and dtype_kind(sums) == "f" else sums',
         "sums", "NumPy adds up products of narrow floats in float32 by itself, only more slowly"),
    )),
    *mutants_of("dot_general", LINEAR, "_contract", (
        ("impl", "missing case", "prod(lhs.shape[lhs.ndim - n_contract:])", "prod(lhs.shape[-n_contract:])"),
    )),
    *mutants_of("dot_general", LINEAR, "DotGeneral.vmap", (
        ("vmap", "swapped operands", "(lc, rc), (lb, rb), precision = (rc, lc), (rb, lb)",
         "(lc, rc), (lb, rb), precision = (rc, lc), (lb, rb)"),
        ("vmap", "off by one", "args, out_dim = (args[1], args[0]), len(rb)", "args, out_dim = (args[1], args[0]), 0"),
    )),
    *mutants_of("dot_general", LINEAR, "_operand_cotangent", (
        ("transpose", "dtype", "if other_aval.dtype != ct_aval.dtype:", "if False:"),
    )),
    *mutants_of("dot_general", LINEAR, "_check_preferred", (
        ("abstract_eval", "refusal", 'fits = have == want or (have in "iu" and want in "iuf")', "fits = True"),
    )),

    *mutants_of("reduce_sum", SHARED, "Reduction", (
        ("abstract_eval", "refusal", '_kinds = "iufc"', '_kinds = "biufc"'),
    )),
    *mutants_of("reduce_prod", PRODUCTS, "_sum_of_products", (
        ("jvp", "missing case", "reduce_sum(lax.mul(x_dot, _product_of_others(x)), axes)",
         "lax.mul(out, reduce_sum(lax.div(x_dot, x), axes))"),
    )),
    *mutants_of("reduce_max", EXTREMA, "chooser", (
        ("xla_translation", "missing case",
         "either(compare(x_re, y_re, direction),\n"
         '                      both(compare(x_re, y_re, "EQ"), compare(x_im, y_im, direction)))',
         "compare(x_re, y_re, direction)"),
    )),
    *mutants_of("reduce_min", EXTREMA, "chooser", (
        ("xla_translation", "missing case", 'either(compare(x, x, "NE"), both(compare(y, y, "EQ"), wins))', "wins"),
    )),
    *mutants_of("reduce_max", EXTREMA, "least", (
        ("xla_translation", "off by one", "return dtypes.integer_limits(dtype).min",
         "return dtypes.integer_limits(dtype).min + 1"),
    )),
    *mutants_of("argmax", POSITIONS, "_Position", (
        ("abstract_eval", "refusal", "if size - 1 > np.iinfo(index_dtype).max:", "if size > 2 ** 63:"),
    )),
)
