"""Faults in the rules of the contraction of two arrays, and in how operations get their attributes."""

from __future__ import annotations

from .mutant import mutants_of

LINEAR, LOWERING = "corejax_lax_basic.linear_algebra", "corejax_lax_basic._lowering"

MUTANTS = (
    *mutants_of("dot_general", LINEAR, "_plan", (
        ("impl", "order", "(*rb, *rc, *free_axes(rhs_ndim, rc, rb))",
         "(*rb, *free_axes(rhs_ndim, rc, rb), *rc)"),
        ("impl", "order", "(*lb, *free_axes(lhs_ndim, lc, lb), *lc)",
         "(*lb, *free_axes(lhs_ndim, lc, lb), *sorted(lc))"),
        ("impl", "axis", "(*lb, *free_axes(lhs_ndim, lc, lb), *lc)", "(*free_axes(lhs_ndim, lc, lb), *lb, *lc)"),
    )),
    *mutants_of("dot_general", LINEAR, "DotGeneral.impl", (
        ("impl", "dtype", "out.astype(sums, copy=False).astype(dtype, copy=False)", "out"),
        ("impl", "missing case", "dtype = preferred_element_type or lhs.dtype", "dtype = lhs.dtype"),
    )),
    *mutants_of("dot_general", LINEAR, "DotGeneral.abstract_eval", (
        ("abstract_eval", "dtype", "ShapedArray(axes, dtype,", "ShapedArray(axes, lhs.dtype,"),
        ("abstract_eval", "weak type", "ShapedArray(axes, dtype, all_weak(avals))", "ShapedArray(axes, dtype)"),
        ("abstract_eval", "shape",
         "axes = (*[lhs.shape[d] for d in lb], *[lhs.shape[d] for d in free_axes(lhs.ndim, lc, lb)],",
         "axes = (*[lhs.shape[d] for d in free_axes(lhs.ndim, lc, lb)], *[lhs.shape[d] for d in lb],"),
    )),
    *mutants_of("dot_general", LINEAR, "DotGeneral", (
        ("jvp", "dropped term", "partials(itself, itself)", "partials(itself, None)"),
        ("jvp", "swapped operands", "partials(itself, itself)",
         "partials(itself, lambda y_dot, out, x, y, **params: dot_general.primitive.bind(y_dot, x, **params))"),
        ("xla_translation", "swapped operands", '"lhs_batching_dimensions": lb, "rhs_batching_dimensions": rb',
         '"lhs_batching_dimensions": rb, "rhs_batching_dimensions": lb'),
        ("xla_translation", "swapped operands", '"lhs_contracting_dimensions": lc, "rhs_contracting_dimensions": rc',
         '"lhs_contracting_dimensions": rc, "rhs_contracting_dimensions": lc'),
        ("xla_translation", "param", "args, attributes, precision)", "args, attributes, None)",
         "the CPU computes with all bits whatever the precision asked for"),
    )),
    *mutants_of("dot_general", LINEAR, "DotGeneral.transpose", (
        ("transpose", "swapped operands", "_swapped(dimension_numbers), precision, True)",
         "dimension_numbers, precision, True)"),
    )),
    *mutants_of("dot_general", LINEAR, "_swapped", (
        ("transpose", "swapped operands", "return (rc, lc), (rb, lb)", "return (rc, lc), (lb, rb)"),
    )),
    *mutants_of("dot_general", LINEAR, "DotGeneral.vmap", (
        ("vmap", "order", "(l_dim, *lb), (r_dim, *rb)", "(*lb, l_dim), (*rb, r_dim)"),
        ("vmap", "off by one", "out_dim = len(lb) + free_axes(len(shape_of(args[0])), lc, lb).index(l_dim)",
         "out_dim = free_axes(len(shape_of(args[0])), lc, lb).index(l_dim)"),
        ("vmap", "missing case", "out_dim = len(rb) + free + free_axes(len(shape_of(args[1])), rc, rb).index(r_dim)",
         "out_dim = len(rb) + free"),
        ("vmap", "axis", "rc, rb = shaping.shifted(rc, r_dim), shaping.shifted(rb, r_dim)",
         "rc = shaping.shifted(rc, r_dim)"),
        ("vmap", "param", "preferred_element_type=preferred_element_type), out_dim",
         "preferred_element_type=None), out_dim"),
    )),
    *mutants_of("dot_general", LINEAR, "_cotangent_numbers", (
        ("transpose", "missing case",
         "[own_contract[i] for i in sorted(range(len(contract)), key=contract.__getitem__)]",
         "list(own_contract)"),
        ("transpose", "permutation", "order = inverse(axes)", "order = tuple(axes)"),
        ("transpose", "off by one", "start = n_batch if other_first else n_batch + len(own_free)", "start = n_batch"),
    )),
    *mutants_of("dot_general", LINEAR, "_operand_cotangent", (
        ("transpose", "order", "pair = (other, ct) if", "pair = (ct, other) if"),
        ("transpose", "dtype",
         "return lax.convert_element_type(product, wanted.dtype) if ct_aval.dtype != wanted.dtype else product",
         "return product"),
        ("transpose", "conj", "ct_aval, other_aval = aval_of(ct), aval_of(other)",
         "ct_aval, other_aval = aval_of(ct), aval_of(other)\n"
         "    other = lax.conj(other) if other_aval.dtype.kind == 'c' else other"),
    )),
    *mutants_of("dot_general", LINEAR, "_contract", (
        ("impl", "missing case", "if n_contract == 1 and not n_batch and rhs.ndim <= 2:",
         "if n_contract == 1 and not n_batch:"),
        ("impl", "shape", "r_free, shared = rhs.shape[n_batch + n_contract:],",
         "r_free, shared = rhs.shape[n_batch + 1:],"),
    )),
    *mutants_of("dot_general", LINEAR, "check_dot_numbers", (
        ("abstract_eval", "refusal", "or [lhs.shape[d] for d in left] != [rhs.shape[d] for d in right]", ""),
    )),
    *mutants_of("transpose", LOWERING, "i64s", (
        ("xla_translation", "order", "get(values)", "get(sorted(values))"),
    )),
    *mutants_of("dot_general gather", LOWERING, "axis_numbers", (
        ("xla_translation", "order", "list(value)}", "sorted(value)}"),
    )),
)
