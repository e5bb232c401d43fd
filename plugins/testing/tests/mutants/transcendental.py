"""Faults in the rules of exponential and trigonometric functions."""

from __future__ import annotations

from .mutant import mutants_of

EXP, TRIG = "corejax_lax_basic.exponential", "corejax_lax_basic.trigonometric"

MUTANTS = (
    *mutants_of("exp", EXP, "exp", (
        ("jvp", "wrong function", "lambda out, x: out", "lambda out, x: x"),
        ("jvp", "declaration", "factors(lambda out, x: out)", "factors(1)"),
    )),
    *mutants_of("expm1", EXP, "expm1", (
        ("jvp", "dropped term", "add(out, 1)", "out"),
        ("impl", "wrong function", "np.expm1", "lambda x: np.exp(x) - x.dtype.type(1)"),
    )),
    *mutants_of("log", EXP, "log", (
        ("jvp", "wrong function", "over(lambda out, x: x)", "lambda out, x: x"),
        ("xla_translation", "wrong function", '"stablehlo.log"', '"stablehlo.log_plus_one"'),
    )),
    *mutants_of("log1p", EXP, "log1p", (
        ("jvp", "dropped term", "add(x, 1)", "x"),
        ("impl", "wrong function", "np.log1p", "lambda x: np.log(x.dtype.type(1) + x)"),
    )),
    *mutants_of("logistic", EXP, "logistic", (
        ("jvp", "sign", "sub(1, out)", "sub(out, 1)"),
        ("jvp", "wrong function", "mul(out, sub(1, out))", "mul(x, sub(1, out))"),
        ("impl", "sign", "np.exp(-x)", "np.exp(x)"),
    )),
    *mutants_of("sqrt", EXP, "sqrt", (
        ("jvp", "wrong function", "div(0.5, out)", "div(0.5, x)"),
        ("jvp", "constant", "div(0.5, out)", "div(2, out)"),
    )),
    *mutants_of("rsqrt", EXP, "rsqrt", (
        ("jvp", "sign", "-0.5", "0.5"),
        ("jvp", "wrong function", "div(out, x)", "mul(out, x)"),
    )),
    *mutants_of("rsqrt", EXP, "_reciprocal_root", (
        ("impl", "dropped term", "np.reciprocal(np.sqrt(x))", "np.sqrt(x)"),
    )),
    *mutants_of("pow", EXP, "_base_slope", (
        ("jvp", "off by one", "pow(x, y - 1)", "pow(x, y)"),
        ("jvp", "dropped term", "mul(y, pow(x, y - 1))", "pow(x, y - 1)"),
    )),
    *mutants_of("pow", EXP, "_exponent_slope", (
        ("jvp", "wrong function", ", out)", ", x)"),
        ("jvp", "missing case", "log(select_n(eq(x, zero), x, one))", "log(x)"),
    )),
    *mutants_of("pow", EXP, "_power", (
        ("impl", "missing case", "np.abs(x) == 1", "x == 1"),
        ("impl", "missing case", "np.where(y & 1, x, 1)", "1"),
    )),
    *mutants_of("pow", EXP, "pow", (
        ("jvp", "swapped operands", "factors(_base_slope, _exponent_slope)", "factors(_exponent_slope, _base_slope)"),
    )),
    *mutants_of("sin", TRIG, "sin", (
        ("jvp", "sign", "cos(x)", "neg(cos(x))"),
        ("xla_translation", "wrong function", '"stablehlo.sine"', '"stablehlo.cosine"'),
    )),
    *mutants_of("cos", TRIG, "cos", (
        ("jvp", "sign", "neg(sin(x))", "sin(x)"),
    )),
    *mutants_of("tan", TRIG, "tan", (
        ("jvp", "wrong function", "square(out)", "square(x)"),
    )),
    *mutants_of("asin", TRIG, "asin", (
        ("jvp", "sign", "sub(1, square(x))", "add(1, square(x))"),
    )),
    *mutants_of("acos", TRIG, "acos", (
        ("jvp", "sign", "neg(rsqrt(sub(1, square(x))))", "rsqrt(sub(1, square(x)))"),
        ("xla_translation", "wrong function", '"chlo.acos"', '"chlo.asin"'),
    )),
    *mutants_of("atan", TRIG, "atan", (
        ("jvp", "wrong function", "over(lambda out, x: add(square(x), 1))", "lambda out, x: add(square(x), 1)"),
    )),
    *mutants_of("atan2", TRIG, "atan2", (
        ("impl", "swapped operands", "np.arctan2", "lambda x, y: np.arctan2(y, x)"),
        ("jvp", "sign", "neg(div(x, _radius2(x, y)))", "div(x, _radius2(x, y))"),
        ("jvp", "swapped operands", "lambda out, x, y: div(y, _radius2(x, y))",
         "lambda out, x, y: div(x, _radius2(x, y))"),
    )),
    *mutants_of("atan2", TRIG, "_radius2", (
        ("jvp", "sign", "add(square(x), square(y))", "sub(square(x), square(y))"),
    )),
    *mutants_of("cosh", TRIG, "cosh", (
        ("jvp", "sign", "sinh(x)", "neg(sinh(x))"),
    )),
    *mutants_of("tanh", TRIG, "tanh", (
        ("jvp", "dropped term", "square(out)", "out"),
    )),
)
