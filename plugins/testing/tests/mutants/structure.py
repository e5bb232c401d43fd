"""Faults in the rules that make, rearrange, join and pad arrays, and in the helpers that they share."""

from __future__ import annotations

from .mutant import mutants_of

CREATION, IDENTITY = "corejax_lax_basic.creation", "corejax_lax_basic.identity"
SHAPES, JOINING, AXES = "corejax_lax_basic.shapes", "corejax_lax_basic.joining", "corejax_lax_basic._axes"
SHAPING, IDENTITIES = "corejax.packs.shaping", "corejax.packs.families.identities"

MUTANTS = (
    *mutants_of("iota", CREATION, "Iota", (
        ("impl", "off by one", "np.arange(shape[dimension])", "np.arange(1, shape[dimension] + 1)"),
        ("impl", "axis", "-1 if d == dimension else 1", "-1 if d == len(shape) - 1 else 1"),
        ("xla_translation", "param", "i64(ctx, dimension)", "i64(ctx, 0)"),
        ("abstract_eval", "dtype", "ShapedArray(shape, dtype)", "ShapedArray(shape, np.int32)"),
        ("abstract_eval", "refusal", 'not in "iufc"', 'not in "biufc"'),
    )),

    *mutants_of("copy", IDENTITY, "Copy", (
        ("transpose", "lost cotangent", "return [cotangents]", "return [None]"),
    )),
    *mutants_of("copy", IDENTITIES, "Identity", (
        ("vmap", "off by one", "self._bind(*args), dims[0]", "self._bind(*args), 0"),
    )),
    *mutants_of("optimization_barrier", IDENTITY, "OptimizationBarrier", (
        ("impl", "order", "for x in args]", "for x in args[::-1]]"),
        ("transpose", "order", "zip(_behind_barrier(cotangents), args", "zip(_behind_barrier(cotangents)[::-1], args"),
        ("vmap", "off by one", "_barrier(*args), dims", "_barrier(*args), [0 for _ in dims]"),
        ("dce", "missing case", "invars=[x for x, used in zip(eqn.invars, used_out, strict=True) if used]",
         "invars=eqn.invars"),
    )),
    *mutants_of("stop_gradient", IDENTITY, "StopGradient", (
        ("jvp", "declaration", "partials(None)", "partials(lambda t, out, x: t)"),
    )),

    *mutants_of("broadcast_in_dim", SHAPES, "BroadcastInDim", (
        ("impl", "permutation", "x.reshape(spread)", "x.reshape(spread[::-1])"),
        ("abstract_eval", "weak type", "ShapedArray(shape, x.dtype, x.weak_type)", "ShapedArray(shape, x.dtype)"),
        ("abstract_eval", "refusal", "if any([size not in (1, shape[dim])", "if any([size > shape[dim]"),
    )),
    *mutants_of("broadcast_in_dim", SHAPES, "_repeated_axes", (
        ("transpose", "broadcast sum", "if size == shape[d]]", "if size]"),
        ("transpose", "broadcast sum", "if d not in kept])", "if d not in dims])"),
    )),
    *mutants_of("broadcast_in_dim", SHAPES, "BroadcastInDim", (
        ("vmap", "off by one", "broadcast_dimensions[dim - 1] + 1 if dim else 0",
         "broadcast_dimensions[dim - 1] if dim else 0"),
        ("vmap", "axis", "shaping.insert(shaping.shifted(broadcast_dimensions, at), dim, at)",
         "shaping.insert(shaping.shifted(broadcast_dimensions, at), 0, at)"),
        ("vmap", "off by one", "placed), at", "placed), dim"),
        ("xla_translation", "order", "i64s(ctx, broadcast_dimensions)", "i64s(ctx, broadcast_dimensions[::-1])"),
    )),
    *mutants_of("reshape", SHAPES, "Reshape", (
        ("impl", "order", "args[0].reshape(new_sizes)", 'args[0].reshape(new_sizes, order="F")'),
        ("abstract_eval", "weak type", "ShapedArray(new_sizes, x.dtype, x.weak_type)",
         "ShapedArray(new_sizes, x.dtype)"),
        ("transpose", "order", "reshape(cotangents, args[0].aval.shape)",
         "transpose(reshape(cotangents, args[0].aval.shape[::-1]), tuple(range(args[0].aval.ndim))[::-1])"),
        ("vmap", "axis", "move_axis(args[0], dims[0], 0)", "args[0]"),
    )),
    *mutants_of("squeeze", SHAPES, "Squeeze", (
        ("vmap", "off by one", "dim - sum([d < dim for d in moved])", "dim"),
        ("vmap", "axis", "moved = shaping.shifted(dimensions, dim)", "moved = dimensions"),
        ("abstract_eval", "refusal", "if any([x.shape[d] != 1 for", "if any([x.shape[d] > 3 for"),
        ("abstract_eval", "weak type", "if d not in dimensions], x.dtype, x.weak_type)",
         "if d not in dimensions], x.dtype)"),
    )),
    *mutants_of("transpose", SHAPES, "Transpose", (
        ("impl", "permutation", "args[0].transpose(permutation)", "args[0].transpose(inverse(permutation))"),
        ("abstract_eval", "permutation", "for d in permutation], x.dtype", "for d in inverse(permutation)], x.dtype"),
        ("transpose", "permutation", "inverse(permutation))]", "permutation)]"),
        ("vmap", "off by one", "*shaping.shifted(permutation, dims[0])", "*[d + 1 for d in permutation]"),
        ("vmap", "axis", "dims[0]))), 0", "dims[0]))), dims[0]"),
        ("xla_translation", "permutation", "i64s(ctx, permutation)", "i64s(ctx, inverse(permutation))"),
    )),
    *mutants_of("rev", SHAPES, "Rev", (
        ("impl", "missing case", "np.flip(args[0], dimensions)", "np.flip(args[0], dimensions[:1])"),
        ("transpose", "dropped term", "[rev(cotangents, dimensions)]", "[cotangents]"),
        ("vmap", "axis", "shaping.shifted(dimensions, dims[0])", "dimensions"),
        ("vmap", "off by one", "dims[0])), dims[0]", "dims[0])), 0"),
    )),
    *mutants_of("dynamic_update_slice", "corejax_lax_basic.slicing", "DynamicUpdateSlice", (
        ("vmap", "axis", "to_dim(x, dim, 0, axis.size)", "to_dim(x, dim, dim or 0, axis.size)"),
    )),
    *mutants_of("concatenate", JOINING, "Concatenate", (
        ("vmap", "axis", "to_dim(x, d, 0, axis.size)", "to_dim(x, d, d or 0, axis.size)"),
    )),
    *mutants_of("scatter_add", "corejax_lax_basic.scattering", "_Scatter.vmap", (
        ("vmap", "axis", "to_dim(x, dim, 0, axis.size)", "to_dim(x, dim, 0 if dim == 0 else 1, axis.size)"),
    )),
    *mutants_of("reshape", SHAPES, "move_axis", (
        ("vmap", "permutation", "order.insert(dst, src)", "order.insert(src, dst)"),
    )),

    *mutants_of("squeeze rev", SHAPING, "shifted", (
        ("vmap", "comparison", "axis >= batch_dim", "axis > batch_dim"),
    )),
    *mutants_of("transpose", AXES, "inverse", (
        ("transpose", "permutation", "undone[axis] = position", "undone[position] = axis"),
    )),
    *mutants_of("slice pad", SHAPING, "insert", (
        ("vmap", "off by one", "(*values[:position], value, *values[position:])", "(value, *values)"),
    )),
    *mutants_of("concatenate dot_general", AXES, "all_weak", (
        ("abstract_eval", "weak type", "all([", "any(["),
    )),
    *mutants_of("concatenate pad", AXES, "same_dtype", (
        ("abstract_eval", "refusal", "avals[0].dtype for aval in avals", "avals[0].dtype for aval in avals[:1]"),
    )),

    *mutants_of("concatenate", JOINING, "Concatenate", (
        ("impl", "order", "np.concatenate(args, dimension)", "np.concatenate(args[::-1], dimension)"),
        ("abstract_eval", "refusal", "any([sizes != rest[0] for sizes in rest])", "False"),
        ("abstract_eval", "axis",
         "avals])\n        shape = (*first.shape[:dimension], total, *first.shape[dimension + 1:])",
         "avals])\n        shape = (total, *first.shape[:dimension], *first.shape[dimension + 1:])"),
        ("jvp", "order", "[instantiate(t) for t in tangents]", "[instantiate(t) for t in tangents[::-1]]"),
        ("transpose", "off by one", "cotangents, start, stop, axis=dimension",
         "cotangents, stop - shape_of(args[0])[dimension], stop, axis=dimension"),
        ("transpose", "lost cotangent", "if type(x) is Linear else None)",
         "if type(x) is Linear and not start else None)"),
        ("vmap", "off by one", "dimension + (dim <= dimension)", "dimension + 1"),
        ("vmap", "missing case", "if dim is None or any([d != dim for d in dims]):", "if dim is None:"),
        ("xla_translation", "axis", "i64(ctx, dimension)", "i64(ctx, 0)"),
    )),
    *mutants_of("pad", JOINING, "Pad", (
        ("impl", "constant", "out[...] = value", "out[...] = 0"),
        ("impl", "off by one", "step = interior + 1", "step = interior or 1"),
        ("impl", "missing case", "max(0, -(lo // step))", "max(0, -lo)"),
        ("transpose", "swapped operands", "(-lo, -hi, 0)", "(-hi, -lo, 0)"),
        ("transpose", "dropped term", "lax.sub(roles.sum_axes(ct, every), roles.sum_axes(kept, every))",
         "roles.sum_axes(ct, every)"),
        ("transpose", "lost cotangent", "return [kept if type(x) is Linear else None, rest]", "return [None, rest]"),
        ("transpose", "missing case", "if any(\n            [lo or hi for lo, hi, _ in padding_config])",
         "if any(\n            [lo > 0 or hi > 0 for lo, hi, _ in padding_config])"),
        ("vmap", "axis", "insert(padding_config, x_dim, (0, 0, 0))), x_dim",
         "insert(padding_config, x_dim, (0, 0, 0))), 0"),
        ("vmap", "swapped operands", "broadcast_in_dim(value, shape, (0,)), padded)",
         "padded, broadcast_in_dim(value, shape, (0,)))"),
        ("vmap", "constant", "pad(x, as_dtype(0, aval_of(x).dtype) if numbers else value[0], config)",
         "pad(x, as_dtype(1, aval_of(x).dtype), config)",
         "the select after it takes the value wherever this constant stands"),
        ("xla_translation", "swapped operands", "lows, highs, interiors = zip", "highs, lows, interiors = zip"),
        ("jvp", "declaration", "linear = (0, 1)", "linear = (0,)"),
    )),
    *mutants_of("pad", JOINING, "padded_shape", (
        ("abstract_eval", "off by one", "max(size - 1, 0)", "size"),
        ("abstract_eval", "missing case", "max(size - 1, 0)", "(size - 1)"),
    )),
)
