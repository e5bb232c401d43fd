"""Faults in the rules of comparisons, logic, rounding, selection, conversion and the parts of complex numbers."""

from __future__ import annotations

from .mutant import mutants_of

COMPARISON, LOGIC = "corejax_lax_basic.comparison", "corejax_lax_basic.logic"
ROUNDING, SELECTION = "corejax_lax_basic.rounding", "corejax_lax_basic.selection"
CONVERSION, PARTS = "corejax_lax_basic.conversion", "corejax_lax_basic.complex_parts"

MUTANTS = (
    *mutants_of("lt", COMPARISON, "lt", (
        ("impl", "comparison", "np.less", "np.less_equal"),
    )),
    *mutants_of("ge", COMPARISON, "ge", (
        ("xla_translation", "comparison", '"GE"', '"GT"'),
    )),
    *mutants_of("ne", COMPARISON, "ne", (
        ("impl", "missing case", "np.not_equal", "lambda x, y: (x < y) | (x > y)"),
    )),
    *mutants_of("eq", COMPARISON, "_CONSTANT", (
        ("jvp", "declaration", "partials(None, None)", "partials(None)"),
    )),
    *mutants_of("gt", COMPARISON, "gt", (
        ("impl", "swapped operands", "np.greater", "np.less"),
    )),

    *mutants_of("and", LOGIC, "bitwise_and", (
        ("impl", "dtype", "np.bitwise_and", "np.logical_and"),
    )),
    *mutants_of("not", LOGIC, "bitwise_not", (
        ("impl", "missing case", "np.invert", "lambda x: x ^ x.dtype.type(1)"),
    )),
    *mutants_of("xor", LOGIC, "bitwise_xor", (
        ("xla_translation", "wrong function", 'hlo="xor"', 'hlo="or"'),
    )),
    *mutants_of("shift_right_logical", LOGIC, "_logical_right", (
        ("impl", "wrong function", 'f"u{x.dtype.itemsize}"', 'f"i{x.dtype.itemsize}"'),
    )),
    *mutants_of("shift_right_arithmetic", LOGIC, "_arithmetic_right", (
        ("impl", "wrong function", 'f"i{x.dtype.itemsize}"', 'f"u{x.dtype.itemsize}"'),
    )),
    *mutants_of("shift_right_arithmetic", LOGIC, "shift_right_arithmetic", (
        ("impl", "missing case", 'arithmetic", _arithmetic_right', 'arithmetic", np.right_shift'),
    )),

    *mutants_of("floor", ROUNDING, "floor", (
        ("impl", "missing case", "np.floor", "np.trunc"),
        ("jvp", "declaration", "partials(None)", "partials(lambda t, out, x: t)"),
    )),
    *mutants_of("is_finite", ROUNDING, "is_finite", (
        ("impl", "missing case", "np.isfinite", "lambda x: ~np.isinf(x)"),
        ("abstract_eval", "dtype", "np.dtype(bool)", "dtype"),
    )),
    *mutants_of("round", ROUNDING, "_half_away", (
        ("impl", "comparison", ">= 0.5", "> 0.5"),
        ("impl", "missing case", "np.copysign(np.abs(x - whole) >= 0.5, x)", "(np.abs(x - whole) >= 0.5)"),
    )),
    *mutants_of("round", ROUNDING, "Round", (
        ("impl", "swapped operands", "np.rint(args[0]) if rounding_method else _half_away(args[0])",
         "_half_away(args[0]) if rounding_method else np.rint(args[0])"),
        ("xla_translation", "param",
         '"stablehlo.round_nearest_even" if rounding_method else "stablehlo.round_nearest_afz"',
         '"stablehlo.round_nearest_even"'),
        ("abstract_eval", "refusal", "not in (0, 1)", "not in (0, 1, 2)"),
    )),

    *mutants_of("select_n", SELECTION, "_choose", (
        ("impl", "swapped operands", "cases[1], cases[0])", "cases[0], cases[1])"),
        ("impl", "missing case", "which >= i if i == len(cases) - 1 else which == i", "which == i"),
        ("impl", "comparison", "which > 0", "which == 1"),
    )),
    *mutants_of("select_n", SELECTION, "SelectN", (
        ("jvp", "broadcast sum",
         "families.spread(self._bind(which, *[zero if type(t) is Zero else t for t in dots]), out)",
         "self._bind(which, *[zero if type(t) is Zero else t for t in dots])"),
        ("jvp", "dropped term", "out, Zero(out.aval.tangent)", "out, dots[0]",
         "the kernel doesn't call a rule whose tangents are all zero, so this line is for direct calls only"),
        ("transpose", "swapped operands", "cotangents if k == i else zero", "zero if k == i else cotangents"),
        ("transpose", "broadcast sum", "families.unspread(part, case)", "part"),
        ("transpose", "dropped term", "self._bind(which, *[cotangents if k == i else zero for k in range(len(cases))])",
         "cotangents"),
        ("abstract_eval", "refusal", "cases > 2)", "cases > 3)"),
        ("abstract_eval", "off by one", "_typed_from = 1", "_typed_from = 0"),
    )),
    *mutants_of("select_n", SELECTION, "_lower_select", (
        ("xla_translation", "swapped operands", "[which, cases[1], cases[0]]", "[which, cases[0], cases[1]]"),
        ("xla_translation", "off by one", "choose(first + middle,", "choose(middle - 1,"),
        ("xla_translation", "comparison", "comparison_direction LT", "comparison_direction LE"),
    )),
    *mutants_of("clamp", SELECTION, "Clamp", (
        ("impl", "order", "limited(low, x, high)", "np.maximum(np.minimum(x, high), low)"),
        ("jvp", "dropped term", "bitwise_or(lt(high, x), lt(high, low))", "lt(high, x)"),
        ("jvp", "comparison", "bitwise_and(gt(x, low), lt(x, high))", "bitwise_or(gt(x, low), lt(x, high))"),
        ("jvp", "dropped term", "bitwise_and(gt(low, x), lt(low, high))", "gt(low, x)"),
    )),
    *mutants_of("clamp", SELECTION, "_where", (
        ("jvp", "swapped operands", "families.weak_scalar(0, aval_of(x).dtype), x",
         "x, families.weak_scalar(0, aval_of(x).dtype)"),
    )),

    *mutants_of("convert_element_type", CONVERSION, "_cast", (
        ("impl", "missing case", "x != 0", "x > 0"),
        ("impl", "wrong function", "_cast(x.real, new_dtype)", "_cast(abs(x), new_dtype)"),
        ("impl", "missing case", 'if have == "f" and want in "iu":', 'if have == "f" and want in "i":'),
    )),
    *mutants_of("convert_element_type", CONVERSION, "_to_integer", (
        ("impl", "missing case", "inside | np.isnan(wide)", "inside"),
        ("impl", "swapped operands", "wide < 0, info.min, info.max", "wide < 0, info.max, info.min"),
    )),
    *mutants_of("convert_element_type", CONVERSION, "_tangent", (
        ("jvp", "dtype", "_to(tangent, new_dtype) if", "tangent if"),
    )),
    *mutants_of("convert_element_type", CONVERSION, "ConvertElementType", (
        ("abstract_eval", "weak type", "ShapedArray(x.shape, new_dtype, weak_type)",
         "ShapedArray(x.shape, new_dtype, x.weak_type)"),
        ("transpose", "dtype", "_bind(cotangents, new_dtype=wanted.dtype, weak_type=False)", "cotangents"),
        ("vmap", "weak type", "new_dtype=new_dtype, weak_type=weak_type), dims[0]",
         "new_dtype=new_dtype, weak_type=False), dims[0]"),
        ("vmap", "axis", "weak_type=weak_type), dims[0]", "weak_type=weak_type), 0"),
        ("xla_translation", "comparison", "comparison_direction NE", "comparison_direction GT"),
        ("xla_translation", "wrong function", '"stablehlo.real"', '"stablehlo.imag"'),
    )),

    *mutants_of("real", PARTS, "real", (
        ("transpose", "constant", "complex(ct, _zero_beside(ct))", "complex(ct, ct)"),
    )),
    *mutants_of("imag", PARTS, "imag", (
        ("transpose", "conj", "lax.neg(ct)", "ct"),
        ("impl", "wrong function", "x.imag.copy()", "np.angle(x)"),
    )),
    *mutants_of("real", PARTS, "_part", (
        ("abstract_eval", "dtype", 'np.dtype(f"float{4 * dtype.itemsize}")', "np.dtype(np.float64)"),
    )),
    *mutants_of("complex", PARTS, "complex", (
        ("transpose", "conj", "lax.neg(imag(ct))", "imag(ct)"),
        ("transpose", "swapped operands", "lambda ct, x, y: real(ct), lambda ct, x, y: lax.neg(imag(ct))",
         "lambda ct, x, y: lax.neg(imag(ct)), lambda ct, x, y: real(ct)"),
        ("jvp", "declaration", "linear=(0, 1)", "linear=(0,)"),
    )),
    *mutants_of("complex", PARTS, "_join", (
        ("impl", "swapped operands", "= x, y", "= y, x"),
    )),
    *mutants_of("conj", PARTS, "conj", (
        ("transpose", "conj", "lambda ct, x: conj(ct)", "lambda ct, x: ct"),
        ("xla_translation", "conj", 'hlo="chlo.conj"', "hlo=lambda ctx, args: args[0]"),
    )),
)
