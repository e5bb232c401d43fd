"""Faults in the rules that cut arrays and put parts back: slices, gathers and scatters."""

from __future__ import annotations

from .mutant import mutants_of

SLICING, GATHERING = "corejax_lax_basic.slicing", "corejax_lax_basic.gathering"
SCATTERING, PLACING = "corejax_lax_basic.scattering", "corejax_lax_basic._placing"

MUTANTS = (
    *mutants_of("slice", SLICING, "Slice", (
        ("impl", "param", "strides or (1,) * len(start_indices)))]", "(1,) * len(start_indices)))]"),
        ("abstract_eval", "weak type", "limit_indices, steps), x.dtype, x.weak_type)",
         "limit_indices, steps), x.dtype)"),
        ("abstract_eval", "refusal", "start <= limit <= size or", "start <= limit or"),
        ("transpose", "missing case", "start + (1 + (n - 1) * step if n else 0)", "start + 1 + (n - 1) * step"),
        ("transpose", "off by one", "(start, size - covered, step - 1)", "(size - covered, start, step - 1)"),
        ("transpose", "dropped term", "(start, size - covered, step - 1)", "(start, size - start - n, 0)"),
        ("vmap", "off by one", "insert(strides, dim, 1)", "insert(strides, 0, 1)"),
        ("vmap", "axis", "return slice(x, starts, limits, steps), dim", "return slice(x, starts, limits, steps), 0"),
        ("xla_translation", "param", '"strides": i64s(ctx, strides or (1,)', '"strides": i64s(ctx, (1,)'),
    )),
    *mutants_of("slice", SLICING, "sliced_shape", (
        ("abstract_eval", "off by one", "-((start - limit) // step)", "(limit - start) // step"),
    )),
    *mutants_of("dynamic_slice", SLICING, "DynamicSlice", (
        ("transpose", "swapped operands", "zeros, cotangents, *starts", "cotangents, zeros, *starts"),
        ("vmap", "axis", "starts = shaping.insert(starts, dim, as_dtype",
         "starts = shaping.insert(starts, 0, as_dtype"),
        ("vmap", "missing case", "if any([d is not None for d in start_dims]):",
         "if start_dims and start_dims[0] is not None:"),
        ("abstract_eval", "weak type", "ShapedArray(slice_sizes, x.dtype, x.weak_type)",
         "ShapedArray(slice_sizes, x.dtype)"),
        ("abstract_eval", "refusal", "any([not 0 <= n <= m for n, m", "any([not 0 <= n for n, m"),
    )),
    *mutants_of("dynamic_slice", SLICING, "_window", (
        ("impl", "missing case", "min(max(int(start), 0), total - size)", "min(int(start), total - size)"),
        ("impl", "off by one", "total - size)", "total - 1)"),
    )),
    *mutants_of("dynamic_slice", SLICING, "_gather_windows", (
        ("vmap", "axis", "tuple([a + (a >= dim) for a in axes])", "axes"),
        ("vmap", "missing case", 'numbers, sizes, mode="clip")', 'numbers, sizes, mode="fill")'),
        ("vmap", "missing case", 'axis.size)), mode="clip")', 'axis.size)), mode="promise_in_bounds")'),
    )),
    *mutants_of("dynamic_slice", SLICING, "_check_starts", (
        ("abstract_eval", "refusal", "or s.dtype != starts[0].dtype", ""),
    )),
    *mutants_of("dynamic_update_slice", SLICING, "DynamicUpdateSlice", (
        ("impl", "side effect", "out = np.array(x)", "out = x"),
        ("abstract_eval", "weak type", "x.weak_type and update.weak_type", "x.weak_type or update.weak_type"),
        ("abstract_eval", "refusal", "any([n > m for n, m", "any([n > m + 2 for n, m"),
        ("transpose", "dropped term", "x_bar = dynamic_update_slice.primitive.bind(ct, hole, *starts)", "x_bar = ct"),
        ("transpose", "lost cotangent", "if type(update) is Linear:", "if type(update) is Linear and x_bar is None:"),
        ("vmap", "missing case", "to_dim(update, update_dim, 0, axis.size)",
         "update if update_dim is None else to_dim(update, update_dim, 0, axis.size)"),
        ("vmap", "off by one", "update, first, *starts), 0", "update, *starts, first), 0"),
        ("jvp", "declaration", "linear = (0, 1)", "linear = (0,)"),
    )),
    *mutants_of("dynamic_update_slice", SLICING, "_scatter_windows", (
        ("vmap", "missing case", 'mode="clip"', 'mode="drop"'),
    )),

    *mutants_of("gather", GATHERING, "Gather", (
        ("jvp", "param", '"fill_value": 0 if params["mode"] == "fill" else None', '"fill_value": params["fill_value"]'),
        ("impl", "missing case", 'check=mode == "fill"', "check=False"),
        ("impl", "permutation", "np.moveaxis(out, range(out.ndim), (*windows, *offset_dims))",
         "np.moveaxis(out, (*windows, *offset_dims), range(out.ndim))"),
        ("impl", "axis", "if d not in (*collapsed, *x_batch)]))", "if s != 1]))"),
        ("abstract_eval", "weak type", "for d in range(ndim)], x.dtype,\n                           x.weak_type)",
         "for d in range(ndim)], x.dtype)"),
        ("transpose", "param", "mode=mode,\n                                unique",
         'mode="drop",\n                                unique'),
        ("vmap", "axis", "(0, *shaping.shifted(x_batch, 0)), (0, *index_batch)",
         "(*shaping.shifted(x_batch, 0), 0), (0, *index_batch)"),
        ("vmap", "off by one", "out_dim = offset[rank - 1] + 1 if rank else 0",
         "out_dim = offset[rank - 1] if rank else 0"),
        ("vmap", "axis",
         "index_map, x_batch = [shaping.shifted(axes, dim) for axes in (collapsed, index_map, x_batch)]",
         "x_batch = [shaping.shifted(axes, dim) for axes in (collapsed, x_batch)]"),
        ("vmap", "missing case", "offset, index_batch = shaping.shifted(offset, 0), shaping.shifted(index_batch, 0)",
         "offset = shaping.shifted(offset, 0)"),
        ("xla_translation", "param", '"fill_value": None,', '"fill_value": fill_value,',
         "in a gather that clips, nobody reads the fill value"),
        ("xla_translation", "missing case", 'if mode == "fill":', 'if mode == "fill" and fill_value is None:'),
    )),
    *mutants_of("gather scatter", PLACING, "places_of", (
        ("impl", "off by one", "last = shape[d] - sizes[d]", "last = shape[d] - 1"),
        ("impl", "axis", "indices[..., index_map.index(d)]", "indices[..., 0]"),
    )),
    *mutants_of("gather scatter", PLACING, "rows_of", (
        ("impl", "off by one", "max(start, 0), shape[d] - sizes[d])", "max(start, 0), shape[d] - 1)"),
        ("impl", "missing case", "start = np.clip(start, 0, last)", "start = start % (last + 1)"),
        ("impl", "axis", "start, last = indices[..., k], shape[d] - 1", "start, last = indices[..., 0], shape[d] - 1"),
    )),
    *mutants_of("gather", GATHERING, "_filled", (
        ("xla_translation", "comparison", "lax.le(indices, uppers", "lax.lt(indices, uppers"),
        ("xla_translation", "swapped operands", "full(shape, fill_number(dtype, fill_value), dtype), out)",
         "out, full(shape, fill_number(dtype, fill_value), dtype))"),
        ("xla_translation", "missing case", "lax.bitwise_and(lax.ge(indices, as_dtype(0, aval_of(indices).dtype)),\n"
         "                             lax.le(indices, uppers(indices, upper, numbers[2])))",
         "lax.le(indices, uppers(indices, upper, numbers[2]))"),
    )),
    *mutants_of("gather", PLACING, "check_numbers", (
        ("abstract_eval", "refusal", "or indices.shape[-1] != len(index_map)", ""),
    )),
    *mutants_of("scatter", SCATTERING, "_clamped", (
        ("xla_translation", "missing case", "lax.max(lax.min(indices, uppers(indices, upper, numbers[2])), zero)",
         "lax.min(indices, uppers(indices, upper, numbers[2]))"),
    )),
    *mutants_of("scatter_add", SCATTERING, "_Scatter", (
        ("impl", "missing case", "self._ufunc.at(out, tuple(places), new)",
         "out[tuple(places)] = self._ufunc(out[tuple(places)], new)"),
        ("impl", "side effect", "out = np.array(x)", "out = np.asarray(x)"),
        ("impl", "missing case", "self._ufunc.at(part, where, new)", "part[where] = self._ufunc(part[where], new)"),
        ("impl", "dropped term", "part[where] = self._ufunc(part[where], new)", "part[where] = new"),
        ("vmap", "missing case", "if index_dim is None:  #", "if False:  #"),
        ("vmap", "axis", "(0, *x_batch), (0, *index_batch)", "x_batch, index_batch"),
        ("vmap", "param", "indices_are_sorted=indices_are_sorted and index_dim is None",
         "indices_are_sorted=indices_are_sorted",
         "a promise about indices that the CPU's compiler makes no use of"),
        ("abstract_eval", "weak type", "x.weak_type and updates.weak_type", "x.weak_type"),
    )),
    *mutants_of("scatter", SCATTERING, "_Scatter", (
        ("impl", "swapped operands", 'clamp = mode == "clip"', 'clamp = mode != "clip"'),
        ("xla_translation", "swapped operands", "else body.arguments[1]", "else body.arguments[0]"),
    )),
    *mutants_of("scatter", SCATTERING, "Scatter", (
        ("transpose", "dropped term", "if not unique_indices:  #", "if False:  #"),
        ("transpose", "dropped term",
         "x_bar = scatter.primitive.bind(ct, indices, full(sizes, 0, aval_of(ct).dtype), **fixed)",
         "x_bar = ct"),
        ("transpose", "swapped operands", "lax.select_n(won, full(sizes, 0, aval_of(ct).dtype), updates_bar)",
         "lax.select_n(won, updates_bar, full(sizes, 0, aval_of(ct).dtype))"),
        ("jvp", "declaration", "linear = (0, 2)", "linear = (0,)"),
    )),
    *mutants_of("scatter_add", SCATTERING, "ScatterAdd", (
        ("transpose", "lost cotangent", "return [cotangents if type(x) is Linear else None, None, updates_bar]",
         "return [None, None, updates_bar]"),
        ("transpose", "param", "dimension_numbers, mode)", 'dimension_numbers, "clip")'),
        ("impl", "wrong function", "np.add", "np.maximum"),
    )),
    *mutants_of("scatter_min", SCATTERING, "ScatterMin", (
        ("xla_translation", "wrong function", "stablehlo.minimum", "stablehlo.maximum"),
        ("impl", "missing case", "np.minimum", "np.fmin"),
    )),
    *mutants_of("scatter_mul", SCATTERING, "ScatterMul", (
        ("jvp", "swapped operands", "partials(itself, None,",
         "partials(lambda t, out, x, indices, y, **params: scatter_mul.primitive.bind(t, indices, x, **params), None,"),
        ("transpose", "dropped term", "scatter_mul.primitive.bind(cotangents, indices, updates,",
         "scatter_add.primitive.bind(cotangents, indices, updates,"),
    )),
    *mutants_of("scatter_mul", SCATTERING, "_product_tangent", (
        ("jvp", "missing case", 'if params["unique_indices"]:', "if True:"),
        ("jvp", "swapped operands", "before = read_back(product, i,", "before = read_back(tangent, i,"),
    )),
    *mutants_of("scatter_mul", SCATTERING, "one_by_one", (
        ("jvp", "axis", "for d in index_batch]))", "for d in batches]))"),
    )),
    *mutants_of("scatter_max", SCATTERING, "_shared", (
        ("jvp", "dropped term", "lax.convert_element_type(lax.max(ties, np.int32(1)), aval_of(t).dtype)",
         "full(shape_of(t), 1, aval_of(t).dtype)"),
    )),
    *mutants_of("scatter", SCATTERING, "read_back", (
        ("transpose", "param", 'mode="fill" if mode == "drop" else mode', 'mode="clip"'),
    )),
    *mutants_of("scatter", PLACING, "window_sizes", (
        ("impl", "axis", "for d in window_dims]", "for d in window_dims[::-1]]"),
    )),
)
