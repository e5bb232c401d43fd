"""Faults in the rules of arithmetic."""

from __future__ import annotations

from .mutant import mutants_of

MODULE = "corejax_lax_basic.arithmetic"

MUTANTS = (
    *mutants_of("add", MODULE, "add", (
        ("jvp", "dropped term", "factors(1, 1)", "factors(1, None)"),
        ("transpose", "lost cotangent", "lambda ct, x, y: ct)", "None)"),
    )),
    *mutants_of("sub", MODULE, "sub", (
        ("impl", "swapped operands", "operator.sub", "lambda x, y: y - x"),
        ("jvp", "sign", "factors(1, -1)", "factors(1, 1)"),
        ("jvp", "swapped operands", "factors(1, -1)", "factors(-1, 1)"),
        ("transpose", "sign", "lambda ct, x, y: neg(ct)", "lambda ct, x, y: ct"),
    )),
    *mutants_of("neg", MODULE, "neg", (
        ("transpose", "sign", "lambda ct, x: neg(ct)", "lambda ct, x: ct"),
        ("impl", "wrong function", "operator.neg", "operator.invert"),
    )),
    *mutants_of("mul", MODULE, "mul", (
        ("jvp", "swapped operands", "lambda out, x, y: y, lambda out, x, y: x",
         "lambda out, x, y: x, lambda out, x, y: y"),
        ("jvp", "conj", "lambda out, x, y: y,",
         "lambda out, x, y: conj(y) if dtypes.is_complex(y.dtype) else y,"),
        ("transpose", "conj", "mul(ct, y)", "mul(ct, conj(y) if dtypes.is_complex(y.dtype) else y)"),
        ("transpose", "dropped term", "mul(ct, x)", "ct"),
    )),
    *mutants_of("square", MODULE, "square", (
        ("jvp", "dropped term", "mul(x, 2)", "x"),
        ("jvp", "wrong function", "mul(x, 2)", "mul(out, 2)"),
    )),
    *mutants_of("div", MODULE, "_divide", (
        ("impl", "constant", "~x.dtype.type(0)", "x.dtype.type(0)"),
        ("impl", "missing case", "(x - np.fmod(x, y)) // y", "x // y"),
    )),
    *mutants_of("div", MODULE, "div", (
        ("jvp", "sign", "neg(div(out, y))", "div(out, y)"),
        ("jvp", "wrong function", "neg(div(out, y))", "neg(div(x, y))"),
        ("jvp", "wrong function", "over(lambda out, x, y: y)", "lambda out, x, y: y"),
        ("transpose", "wrong function", "div(ct, y)", "mul(ct, y)"),
        ("transpose", "conj", "div(ct, y)", "div(ct, conj(y) if dtypes.is_complex(y.dtype) else y)"),
    )),
    *mutants_of("rem", MODULE, "_remainder", (
        ("impl", "missing case", "np.where(y == 0, x, np.fmod(x, y))", "np.fmod(x, y)"),
        ("impl", "wrong function", "return np.fmod(x, y)", "return np.remainder(x, y)"),
    )),
    *mutants_of("rem", MODULE, "rem", (
        ("jvp", "sign", "mul(neg(t), ", "mul(t, "),
        ("jvp", "dropped term", "partials(lambda t, out, x, y: t, ", "partials(None, "),
    )),
    *mutants_of("rem", MODULE, "_truncated_quotient", (
        ("jvp", "missing case", "mul(sign(from_zero), floor(abs(from_zero)))", "floor(from_zero)"),
    )),
    *mutants_of("integer_pow", MODULE, "IntegerPow", (
        ("impl", "missing case", "out = np.true_divide(x.dtype.type(1), power)", "out = power"),
        ("impl", "constant", "np.ones_like(x)", "np.zeros_like(x)"),
        ("abstract_eval", "refusal", "if y < 0 and not", "if y < -1 and not"),
        ("abstract_eval", "comparison", "if y < 0 and not", "if y <= 0 and not"),
        ("xla_translation", "constant", "return families.constant_like(ctx, 1)",
         "return families.constant_like(ctx, 0)"),
        ("xla_translation", "swapped operands", "[families.constant_like(ctx, 1), power]",
         "[power, families.constant_like(ctx, 1)]"),
    )),
    *mutants_of("integer_pow", MODULE, "_power_slope", (
        ("jvp", "off by one", "integer_pow(x, y - 1)", "integer_pow(x, y)"),
        ("jvp", "dropped term", "return mul(y, x if y == 2 else integer_pow(x, y - 1))",
         "return x if y == 2 else integer_pow(x, y - 1)"),
        ("jvp", "missing case", "if y in (0, 1):", "if y == 1:"),
    )),
    *mutants_of("integer_pow", MODULE, "_repeated", (
        ("impl", "comparison", "if not y:", "if y <= 1:"),
    )),
    *mutants_of("max min", MODULE, "_share", (
        ("jvp", "constant", "one, half)", "one, one)"),
        ("jvp", "swapped operands", "_select(eq(y, out), one, half)", "_select(eq(y, out), half, one)"),
    )),
    *mutants_of("max", MODULE, "max", (
        ("jvp", "swapped operands", "_share(x, y, out), lambda out, x, y: _share(y, x, out)",
         "_share(y, x, out), lambda out, x, y: _share(x, y, out)"),
        ("impl", "missing case", "np.maximum", "np.fmax"),
    )),
    *mutants_of("min", MODULE, "min", (
        ("impl", "missing case", "np.minimum", "np.fmin"),
        ("xla_translation", "wrong function", '_extreme("minimum", "LT")', '_extreme("maximum", "LT")'),
    )),
    *mutants_of("sign", MODULE, "_sign", (
        ("impl", "missing case", "np.copysign(np.sign(x), x)", "np.sign(x)"),
    )),
    *mutants_of("sign", MODULE, "_lower_sign", (
        ("xla_translation", "constant", "constant_like(ctx, 1)", "constant_like(ctx, 2)"),
        ("xla_translation", "comparison", '!= "u"', '== "f"'),
    )),
    *mutants_of("sign", MODULE, "_sign_tangent", (
        ("jvp", "sign", "across = sub(", "across = add("),
        ("jvp", "conj", "mul(conj(out), t)", "mul(out, t)"),
        ("jvp", "missing case", "complex(select_n(at_zero, size, families.weak_scalar(1.0, size.aval.dtype)), zero)",
         "complex(size, zero)"),
        ("jvp", "dropped term", "div(across, complex(", "mul(across, complex("),
    )),
    *mutants_of("abs", MODULE, "_abs_tangent", (
        ("jvp", "conj", "mul(t, conj(sign(x)))", "mul(t, sign(x))"),
        ("jvp", "swapped operands", "minus_one, one))", "one, minus_one))"),
        ("jvp", "missing case", "if dtypes.is_complex(x.aval.dtype):", "if x.aval.dtype == np.complex64:"),
    )),
    *mutants_of("abs", MODULE, "_magnitude", (
        ("abstract_eval", "dtype", 'np.dtype(f"float{4 * dtype.itemsize}")', "np.dtype(float)"),
    )),
)
