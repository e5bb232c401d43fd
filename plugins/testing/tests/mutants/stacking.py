"""Faults in the rules that stack, cut and tile arrays, that subtract windows, and that compare in the total order."""

from __future__ import annotations

from .mutant import mutants_of

STACKING, TILING, SCATTERING = (f"corejax_lax_basic.{name}" for name in ("stacking", "tiling", "scattering"))
COMPARISON, APPROXIMATING = "corejax_lax_basic.comparison", "corejax_sorting.approximating"

MUTANTS = (
    *mutants_of("stack", STACKING, "Stack", (
        ("vmap", "off by one", "dimension=dimension + (not before)), dim + before",
         "dimension=dimension + (not before)), dim"),
        ("vmap", "missing case", "if dim is None or any([d != dim for d in dims]):", "if dim is None:"),
        ("jvp", "missing case", "if all([type(t) is Zero for t in tangents]):",
         "if any([type(t) is Zero for t in tangents]):"),
        ("xla_translation", "axis", '{"dimension": i64(ctx, dimension)}', '{"dimension": i64(ctx, 0)}'),
    )),
    *mutants_of("unstack", STACKING, "Unstack", (
        ("transpose", "axis", "*map(instantiate, cotangents), dimension=dimension)",
         "*map(instantiate, cotangents), dimension=0)"),
        ("xla_translation", "off by one", "place + 1 if d == dimension else n",
         "place + 1 if d == dimension else n - (d > dimension)"),
        ("impl", "axis", "np.moveaxis(args[0], dimension, 0)", "args[0]"),
    )),
    *mutants_of("tile", TILING, "Tile", (
        ("transpose", "broadcast sum", "range(0, 2 * len(shape), 2)", "range(1, 2 * len(shape), 2)"),
        ("vmap", "off by one", "shaping.insert(reps, dims[0], 1)", "shaping.insert(reps, 0, 1)"),
        ("xla_translation", "order", "range(1, 2 * aval.ndim, 2)", "range(0, 2 * aval.ndim, 2)"),
    )),
    *mutants_of("split", TILING, "Split", (
        ("abstract_eval", "refusal", "if sum(sizes) != x.shape[dimension]:", "if not sizes:"),
        ("vmap", "axis", "sizes=sizes, dimension=at)", "sizes=sizes, dimension=dimension)"),
        ("xla_translation", "off by one", "start += size", "start += 1"),
    )),
    *mutants_of("scatter_sub", SCATTERING, "ScatterSub", (
        ("transpose", "sign", "lax.neg(read_back(cotangents, indices, shape_of(updates), dimension_numbers, mode))",
         "read_back(cotangents, indices, shape_of(updates), dimension_numbers, mode)"),
        ("xla_translation", "wrong function", '"stablehlo.subtract"', '"stablehlo.add"'),
    )),
    *mutants_of("lt_to", COMPARISON, "_place", (
        ("impl", "missing case", "np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)", "bits"),
    )),
    *mutants_of("lt_to", COMPARISON, "_in_total_order", (
        ("xla_translation", "wrong function", "comparison_type TOTALORDER", "comparison_type FLOAT"),
    )),
    *mutants_of("approx_top_k", APPROXIMATING, "_found", (
        ("decompose", "sign", "top_k(_negated(x), count, axis=dimension)", "top_k(x, count, axis=dimension)"),
    )),
    *mutants_of("approx_top_k", APPROXIMATING, "ApproxTopK", (
        ("vmap", "param", "is_max_k=is_max_k, aggregate_to_topk=True", "is_max_k=True, aggregate_to_topk=True"),
    )),
)
