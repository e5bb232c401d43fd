"""Faults in rules that cut arrays and put parts back, planted by someone who had not seen the kit.

Many are modelled on bugs that were reported to array libraries and their compilers.
"""

from __future__ import annotations

from .mutant import mutants_of

SLICING, GATHERING, SCATTERING, PLACING = (
    f"corejax_lax_basic.{name}" for name in ("slicing", "gathering", "scattering", "_placing"))

MUTANTS = (
    *mutants_of("slice", SLICING, "Slice", (
        ("abstract_eval", "refusal", "or step < 1:", "or step == 0:"),
    )),
    *mutants_of("dynamic_slice", SLICING, "DynamicSlice", (
        ("vmap", "dtype", "aval_of(starts[0]).dtype if starts else np.dtype(np.int32)", "np.dtype(np.int32)"),
    )),
    *mutants_of("dynamic_slice", SLICING, "_gather_windows", (
        ("vmap", "param", 'numbers, sizes, mode="clip")', 'numbers, sizes, mode="promise_in_bounds")'),
        ("vmap", "missing case", "shaping.insert(sizes, dim, min(1, axis.size))", "shaping.insert(sizes, dim, 1)"),
    )),
    *mutants_of("dynamic_update_slice", SLICING, "_check_starts", (
        ("abstract_eval", "refusal", 'dtype_kind(s.dtype) not in "iu"', 'dtype_kind(s.dtype) not in "biu"'),
        ("abstract_eval", "refusal", "any([s.ndim or dtype_kind", "any([s.ndim > 1 or dtype_kind"),
    )),
    *mutants_of("dynamic_update_slice", SLICING, "DynamicUpdateSlice", (
        ("vmap", "dtype", "aval_of(starts[0]).dtype if starts else np.dtype(np.int32)", "np.dtype(np.int64)"),
    )),

    *mutants_of("gather", GATHERING, "Gather", (
        ("jvp", "param", '{**params, "fill_value": 0 if params["mode"] == "fill" else None}',
         '{**params, "mode": "clip", "fill_value": None}'),
        ("impl", "missing case", 'clamp=mode != "fill")', "clamp=True)"),
        ("abstract_eval", "refusal", "or any([slice_sizes[d] != 1 for d in collapsed])", ""),
        ("vmap", "missing case", "(min(1, axis.size), *slice_sizes)", "(1, *slice_sizes)"),
        ("vmap", "off by one", "(0, *shaping.shifted(x_batch, 0)), (0, *index_batch)",
         "(0, *x_batch), (0, *index_batch)"),
        ("vmap", "permutation", "offset = shaping.insert(shaping.shifted(offset, out_dim), rank, out_dim)",
         "offset = (out_dim, *shaping.shifted(offset, out_dim))"),
    )),
    *mutants_of("scatter", PLACING, "rows_of", (
        ("impl", "comparison", "if inside != start and not clamp:", "if inside > start and not clamp:"),
    )),
    *mutants_of("scatter_add", PLACING, "places_of", (
        ("impl", "missing case", "valid &= (start >= 0) & (start <= last)", "valid &= start <= last"),
        ("impl", "order", "along = index_batch[x_batch.index(d)]", "along = 0"),
    )),
    *mutants_of("scatter_add", PLACING, "window_sizes", (
        ("vmap", "missing case", "min(1, n) if d in x_batch", "1 if d in x_batch"),
    )),
    *mutants_of("scatter_max", PLACING, "check_numbers", (
        ("abstract_eval", "refusal", 'dtype_kind(indices.dtype) not in "iu"', 'dtype_kind(indices.dtype) not in "iuf"'),
    )),
    *mutants_of("scatter", SCATTERING, "check_scatter", (
        ("abstract_eval", "refusal", "any([s > n for s, n in", "any([s > n + 1 for s, n in"),
        ("abstract_eval", "refusal", "fits = windows == indices.shape[:-1] and",
         "fits = len(windows) == indices.ndim - 1 and"),
    )),
    *mutants_of("scatter_add", SCATTERING, "_Scatter", (
        ("vmap", "off by one", "window_dims, index_batch = (0, *window_dims), dimension_numbers[4]",
         "window_dims = (0, *window_dims)"),
        ("vmap", "missing case", "to_dim(updates, updates_dim, 0, axis.size)",
         "to_dim(updates, updates_dim or 0, 0, axis.size)"),
    )),
    *mutants_of("scatter", SCATTERING, "Scatter", (
        ("transpose", "param", "scatter.primitive.bind(ct, indices, full(sizes, 0, aval_of(ct).dtype), **fixed)",
         'scatter.primitive.bind(ct, indices, full(sizes, 0, aval_of(ct).dtype), **{**fixed, "mode": "clip"})'),
        ("transpose", "lost cotangent", "if type(updates) is Linear:", "if type(updates) is Linear and x_bar is None:"),
    )),
    *mutants_of("scatter_mul", SCATTERING, "ScatterMul", (
        ("transpose", "param", "dimension_numbers=dimension_numbers, mode=mode,",
         'dimension_numbers=dimension_numbers, mode="clip",'),
    )),
    *mutants_of("scatter_mul", SCATTERING, "_product_tangent", (
        ("jvp", "dropped term", "tangent = scatter_mul.primitive.bind(tangent, i, factor, **alone)",
         "tangent = tangent"),
        ("jvp", "swapped operands", "lax.mul(factor_t, before), **alone)", "lax.mul(factor, before), **alone)"),
    )),
    *mutants_of("scatter_mul", SCATTERING, "one_by_one", (
        ("jvp", "permutation", "(*[scattered[d] for d in order], *window_dims)", "(*scattered, *window_dims)"),
    )),
    *mutants_of("scatter_add", SCATTERING, "ScatterAdd", (
        ("jvp", "declaration", "linear = (0, 2)", "linear = (2,)"),
    )),
    *mutants_of("scatter_add", SCATTERING, "read_back", (
        ("transpose", "constant", "fill_value=0", "fill_value=None"),
    )),
    *mutants_of("scatter_max", SCATTERING, "_winners", (
        ("jvp", "param", 'params["dimension_numbers"], params["mode"]), y)',
         'params["dimension_numbers"], "drop"), y)'),
    )),
    *mutants_of("scatter_min", SCATTERING, "_of_operand", (
        ("jvp", "dropped term", "_shared(_where(lax.eq(x, out), t), out", "_shared(t, out"),
    )),
    *mutants_of("scatter_max", SCATTERING, "_of_updates", (
        ("jvp", "dropped term", "_where(_winners(out, indices, y, params), t)", "t"),
    )),
)
