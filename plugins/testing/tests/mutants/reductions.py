"""Faults in the rules that reduce along axes."""

from __future__ import annotations

from .mutant import mutants_of

SUMS, PRODUCTS = "corejax_reductions.sums", "corejax_reductions.products"
EXTREMA, POSITIONS, LOGIC = "corejax_reductions.extrema", "corejax_reductions.positions", "corejax_reductions.logic"
SHARED, LOWERING = "corejax_reductions._reduction", "corejax_reductions._lowering"
CUMULATIVE, REDUCING = "corejax_reductions.cumulative", "corejax_reductions.reducing"
SHAPING = "corejax.packs.shaping"

MUTANTS = (
    *mutants_of("reduce_sum", SUMS, "_other_axes", (
        ("transpose", "axis", "if d not in axes", "if d < ndim - len(axes)"),
    )),
    *mutants_of("reduce_sum", SUMS, "ReduceSum", (
        ("transpose", "lost cotangent", "return [spread(cotangents, shape, axes)]", "return [None]"),
        ("transpose", "sign", "return [spread(cotangents, shape, axes)]",
         "return [lax.neg(spread(cotangents, shape, axes))]"),
        ("impl", "constant", "return 0", "return 1"),
        ("impl", "dtype", "_wide = True", "_wide = False"),
        ("xla_translation", "wrong function", '_operation = "add"', '_operation = "maximum"'),
        ("impl", "wrong function", "_ufunc = np.add", "_ufunc = np.logaddexp"),
    )),
    *mutants_of("reduce_sum", SHARED, "Reduction", (
        ("vmap", "off by one", "shaping.dim_without(dims[0], moved)", "dims[0]"),
        ("vmap", "axis", "moved = shaping.shifted(axes, dims[0])", "moved = axes"),
        ("abstract_eval", "weak type", "ShapedArray(shaping.without(x.shape, axes), x.dtype, x.weak_type)",
         "ShapedArray(shaping.without(x.shape, axes), x.dtype)"),
        ("abstract_eval", "refusal", 'shaping.check_axes(self.name, "axes", axes, x.ndim)', "pass"),
        ("impl", "axis", "self._ufunc.reduce(x, axes, wide)", "self._ufunc.reduce(x, axes[:1], wide)"),
        ("impl", "dtype", "np.asarray(out).astype(dtype)", "np.asarray(out)"),
        ("xla_translation", "dtype", "_lowering.convert(ctx, out, out_aval.shape, dtype)", "out"),
        ("xla_translation", "axis", "_lowering.reduce(ctx, x, out_aval, axes,", "_lowering.reduce(ctx, x, out_aval, "
         "tuple([len(ctx.avals_in[0].shape) - 1 - a for a in axes]),"),
    )),
    *mutants_of("reduce_max", SHARED, "Reduction", (
        ("impl", "missing case", "if not x.size:", "if x.size == 0 and not x.ndim:"),
    )),
    *mutants_of("reduce_sum", SHAPING, "shifted", (
        ("vmap", "comparison", "axis >= batch_dim", "axis > batch_dim"),
    )),
    *mutants_of("reduce_max argmax", SHAPING, "dim_without", (
        ("vmap", "sign", "batch_dim - sum", "batch_dim + sum"),
    )),
    *mutants_of("cumsum", CUMULATIVE, "_Along", (
        ("vmap", "comparison", "axis >= dim", "axis > dim"),
        ("vmap", "param", "reverse=reverse), dim", "reverse=False), dim"),
        ("vmap", "off by one", "reverse=reverse), dim", "reverse=reverse), 0"),
    )),
    *mutants_of("cumsum", CUMULATIVE, "_Cumulative", (
        ("impl", "order", "if not reverse:", "if reverse:"),
        ("impl", "axis", "np.ascontiguousarray(np.flip(out, axis))", "np.ascontiguousarray(np.flip(out))"),
        ("impl", "order", "np.ascontiguousarray(np.flip(out, axis))", "np.ascontiguousarray(out)"),
        ("xla_translation", "order", "_lowering.running(ctx, xs, aval, axis, reverse,",
         "_lowering.running(ctx, xs, aval, axis, False,"),
        ("xla_translation", "axis", "_lowering.running(ctx, xs, aval, axis, reverse,",
         "_lowering.running(ctx, xs, aval, aval.ndim - 1, reverse,"),
        ("abstract_eval", "refusal", 'shaping.check_axes(self.name, "axis", (axis,), x.ndim)', "pass"),
    )),
    *mutants_of("cumsum", CUMULATIVE, "Cumsum", (
        ("transpose", "order", "reverse=not reverse", "reverse=reverse"),
        ("transpose", "axis", "cotangents, axis=axis", "cotangents, axis=0"),
        ("xla_translation", "constant", "-0.0 if", "1.0 if"),
    )),
    *mutants_of("cumsum", LOWERING, "running", (
        ("xla_translation", "off by one", "_counter(ctx, count - 1)", "_counter(ctx, count - 2)"),
        ("xla_translation", "off by one", "_counted(ctx, 1, count,", "_counted(ctx, 1, count - 1,"),
    )),
    *mutants_of("cumprod", CUMULATIVE, "_product_tangent", (
        ("jvp", "constant", "reverse, 1)", "reverse, 0)"),
        ("jvp", "order", "_before(out, axis, reverse, 1)", "_before(out, axis, not reverse, 1)"),
        ("jvp", "dropped term", "lax.mul(x_dot, _before(out, axis, reverse, 1))", "x_dot"),
    )),
    *mutants_of("cummax", CUMULATIVE, "_share", (
        ("jvp", "constant", "0.5", "1.0"),
        ("jvp", "comparison", "lax.eq(x, out)", "lax.le(x, out)"),
    )),
    *mutants_of("cummax", CUMULATIVE, "Cummax", (
        ("impl", "wrong function", "_ufunc = np.maximum", "_ufunc = np.fmax"),
        ("xla_translation", "sign", "return least(dtype)", "return greatest(dtype)"),
    )),
    *mutants_of("cumlogsumexp", CUMULATIVE, "_difference", (
        ("jvp", "missing case", "lax.select(lax.eq(x, y), lax.full_like(x, 0), lax.sub(x, y))", "lax.sub(x, y)"),
    )),
    *mutants_of("cumlogsumexp", CUMULATIVE, "_log_tangent", (
        ("jvp", "dropped term", "lax.mul(x_dot, part)", "x_dot"),
        ("jvp", "swapped operands", "_difference(x, out)", "_difference(out, x)"),
    )),
    *mutants_of("cumlogsumexp", CUMULATIVE, "_complex_sum", (
        ("xla_translation", "dropped term", "lax.exp(lax.sub(y, top))", "lax.exp(y)"),
    )),
    *mutants_of("linear_recurrence", CUMULATIVE, "_Along", (
        ("vmap", "missing case", "if d is not None][-1]", "][-1]"),
    )),
    *mutants_of("linear_recurrence", CUMULATIVE, "LinearRecurrence", (
        ("transpose", "order", "_before(args[0], axis, not reverse, 0)", "_before(args[0], axis, reverse, 0)"),
        ("transpose", "dropped term", "after = _before(args[0], axis, not reverse, 0)", "after = args[0]"),
        ("jvp", "order", "_before(out, axis, reverse, 0)", "_before(out, axis, not reverse, 0)"),
        ("xla_translation", "swapped operands", "add(mul(a, y), x)", "add(mul(a, x), y)"),
    )),
    *mutants_of("reduce", REDUCING, "Reduce", (
        ("vmap", "axis", "d + 1 for d in dimensions", "d for d in dimensions"),
        ("vmap", "missing case", "if all([dim is None for dim in init_dims]):", "if init_dims:"),
        ("xla_translation", "missing case", "for d in dimensions]) == 1:", "for d in dimensions]) == -1:"),
    )),
    *mutants_of("reduce", "corejax_reductions.combining", "", (
        ("jvp", "lost cotangent", "carrying.nonzero(x_dots), carrying.nonzero(init_dots)", "carrying.nonzero(x_dots), "
         "carrying.nonzero(x_dots)"),
        ("dce", "lost cotangent", "used = [*flags, *flags]", "used = [*flags, *[True] * len(flags)]"),
    )),
    *mutants_of("reduce", REDUCING, "_combined", (
        ("jvp", "off by one", "if odd:", "if not odd:"),
        ("jvp", "dropped term", "program(starts, [lax.reshape(x, out_shape) for x in xs])",
         "[lax.reshape(x, out_shape) for x in xs]"),
        ("jvp", "permutation", "(*axes, *rest)", "(*rest, *axes)"),
    )),
    *mutants_of("reduce", REDUCING, "_from_nothing", (
        ("vmap", "swapped operands", "lax.select(y_is, out, x), y)", "lax.select(y_is, out, y), x)"),
    )),
    *mutants_of("reduce_prod", PRODUCTS, "_sum_of_products", (
        ("jvp", "dropped term", "reduce_sum(lax.mul(x_dot, _product_of_others(x)), axes)",
         "reduce_sum(x_dot, axes)"),
        ("jvp", "permutation", "lax.reshape(_product_of_others(flat), moved), back)",
         "lax.reshape(_product_of_others(flat), moved), order)"),
        ("jvp", "dropped term", "reduce_sum(lax.mul(x_dot, others), axes)",
         "reduce_sum(lax.mul(x_dot, out if not out.shape else others), axes)"),
    )),
    *mutants_of("reduce_prod", PRODUCTS, "_product_of_others", (
        ("jvp", "constant", "return lax.full_like(x, 1)", "return lax.full_like(x, 0)"),
        ("jvp", "constant", "1, x.dtype)], 0)", "0, x.dtype)], 0)"),
        ("jvp", "swapped operands", "lax.concatenate([second, first], 0)", "lax.concatenate([first, second], 0)"),
        ("jvp", "dropped term", "[lax.mul(beyond, second), lax.mul(beyond, first)]", "[second, first]"),
    )),
    *mutants_of("reduce_prod", PRODUCTS, "ReduceProd", (
        ("impl", "constant", "return 1", "return 0"),
        ("impl", "wrong function", "_ufunc = np.multiply", "_ufunc = np.add"),
        ("jvp", "declaration", "jvp = partials(_sum_of_products)", "jvp = partials(None)"),
    )),
    *mutants_of("reduce_max", EXTREMA, "_shared_by_ties", (
        ("jvp", "dropped term", "lax.div(total, reduce_sum(chosen, axes))", "total"),
        ("jvp", "comparison", "lax.eq(x, beside)", "lax.le(x, beside)"),
        ("jvp", "dropped term", "lax.mul(x_dot, chosen)", "x_dot"),
    )),
    *mutants_of("reduce_max", EXTREMA, "ReduceMax", (
        ("impl", "wrong function", "_ufunc = np.maximum", "_ufunc = np.fmax"),
        ("xla_translation", "wrong function", '_operation = "maximum"', '_operation = "minimum"'),
        ("impl", "sign", "return least(dtype)", "return greatest(dtype)"),
    )),
    *mutants_of("reduce_min", EXTREMA, "ReduceMin", (
        ("impl", "wrong function", "_ufunc = np.minimum", "_ufunc = np.maximum"),
        ("impl", "sign", "return greatest(dtype)", "return least(dtype)"),
    )),
    *mutants_of("reduce_max", EXTREMA, "_infinity_or_bound", (
        ("impl", "constant", "sign * np.inf", "sign * 1e30"),
    )),
    *mutants_of("argmax", POSITIONS, "_Position", (
        ("impl", "axis", "self._find(args[0], axes[0])", "self._find(args[0], -1)"),
        ("impl", "dtype", ".astype(index_dtype)", ".astype(np.int16)"),
        ("abstract_eval", "shape", "ShapedArray(shaping.without(x.shape, axes), index_dtype)",
         "ShapedArray(x.shape, index_dtype)"),
        ("abstract_eval", "dtype", "ShapedArray(shaping.without(x.shape, axes), index_dtype)",
         "ShapedArray(shaping.without(x.shape, axes), np.int32)"),
        ("abstract_eval", "refusal", "if size == 0:", "if size < 0:"),
        ("vmap", "axis", "moved = shaping.shifted(axes, dims[0])", "moved = axes"),
        ("vmap", "off by one", "shaping.dim_without(dims[0], moved)", "dims[0]"),
        ("xla_translation", "swapped operands", '(least if self._direction == "GT" else greatest)',
         '(greatest if self._direction == "GT" else least)'),
        ("jvp", "declaration", "jvp = partials(None)", "jvp = partials(lambda t, out, x, **params: t)"),
    )),
    *mutants_of("argmin", POSITIONS, "Argmin", (
        ("xla_translation", "comparison", '_direction = "LT"', '_direction = "GT"'),
        ("impl", "wrong function", "staticmethod(np.argmin)", "staticmethod(np.argmax)"),
    )),
    *mutants_of("argmax", LOWERING, "position", (
        ("xla_translation", "comparison", 'compare(ctx, a_index, b_index, "LT")',
         'compare(ctx, a_index, b_index, "GT")'),
        ("xla_translation", "missing case", "if dtypes.is_float(aval.dtype):", "if False:"),
        ("xla_translation", "swapped operands", "select(ctx, a_first, a_index, b_index)",
         "select(ctx, a_first, b_index, a_index)"),
        ("xla_translation", "axis", "_integer(ctx, axis)", "_integer(ctx, 0)"),
    )),
    *mutants_of("reduce_and", LOGIC, "ReduceAnd", (
        ("impl", "constant", "dtype == dtypes.bool_ or ~np.zeros((), dtype)[()]", "dtype == dtypes.bool_"),
        ("impl", "wrong function", "_ufunc = np.bitwise_and", "_ufunc = np.bitwise_or"),
        ("xla_translation", "wrong function", '_operation = "and"', '_operation = "or"'),
    )),
    *mutants_of("reduce_or", LOGIC, "ReduceOr", (
        ("impl", "wrong function", "_ufunc = np.bitwise_or", "_ufunc = np.bitwise_xor"),
        ("impl", "constant", "return 0", "return 1"),
    )),
    *mutants_of("reduce_xor", LOGIC, "ReduceXor", (
        ("impl", "wrong function", "_ufunc = np.bitwise_xor", "_ufunc = np.bitwise_or"),
        ("xla_translation", "wrong function", '_operation = "xor"', '_operation = "or"'),
    )),
)
