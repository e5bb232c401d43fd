"""Faults in the rules of convolutions: padding of transposes, groups, maps, and what groups are computed by on CPUs."""

from __future__ import annotations

from .mutant import mutants_of

CONV, SHAPES, MAPS = "corejax_windows.convolution", "corejax_windows.conv_shapes", "corejax_windows._conv_maps"
HOST, GROUPED = "corejax_windows._conv_host", "corejax_windows._conv_grouped"
LOWERING = "corejax_windows._conv_lowering"

MUTANTS = (
    *mutants_of("conv_general_dilated", CONV, "ConvGeneralDilated", (
        ("jvp", "dropped term", "partials(itself, itself)", "partials(itself, None)"),
    )),
    *mutants_of("conv_general_dilated", CONV, "_by_lhs", (
        ("transpose", "missing case", "lax.rev(rhs, window)", "rhs"),
        ("transpose", "missing case", "rhs = merged(split(rhs, outs, groups), outs, ins)",
         "rhs = lax.reshape(rhs, [n * groups if d == ins else n // groups if d == outs else n "
         "for d, n in enumerate(aval_of(rhs).shape)])"),
        ("transpose", "swapped operands", "lhs_dilation=conv.strides", "lhs_dilation=conv.lhs_dilation"),
    )),
    *mutants_of("conv_general_dilated", CONV, "_by_rhs", (
        ("transpose", "swapped operands", "window_strides=conv.rhs_dilation", "window_strides=conv.strides"),
        ("transpose", "param", "batch_group_count=conv.feature_groups", "batch_group_count=1"),
    )),
    *mutants_of("conv_general_dilated", SHAPES, "Geometry.lhs_pads", (
        ("transpose", "off by one", "n - m + low", "n - m - low"),
    )),
    *mutants_of("conv_general_dilated", SHAPES, "Geometry.rhs_pads", (
        ("transpose", "off by one", "m - n + k - low - 1", "k - low - 1"),
    )),
    *mutants_of("conv_general_dilated", CONV, "_check_groups", (
        ("abstract_eval", "refusal", "if outs % feature_groups:", "if False:"),
    )),
    *mutants_of("conv_general_dilated", MAPS, "mapped", (
        ("vmap", "missing case", "_behind_groups(rhs, r_dim, outs, groups)", "_behind_groups(rhs, r_dim, outs, 1)"),
        ("vmap", "order", "merged(apart, out_features, out_features + 1), out_features",
         "merged(apart, out_features + 1, out_features + 1), out_features + 1"),
        ("vmap", "param", "params[key] * size", "size"),
    )),
    *mutants_of("conv_general_dilated", HOST, "convolution", (
        ("impl", "missing case", "x = x.reshape(batch, feature_groups, ins, *x.shape[2:]).swapaxes(0, 1)",
         "x = x.reshape(feature_groups, batch, ins, *x.shape[2:])"),
    )),
    *mutants_of("conv_general_dilated", HOST, "_windows", (
        ("impl", "swapped operands", "own * step for own, step in zip(x.strides[3:], apart, strict=True)",
         "own * step for own, step in zip(x.strides[3:], strides, strict=True)"),
    )),
    *mutants_of("conv_general_dilated", GROUPED, "_by_window", (
        ("xla_translation", "param", "starts[d], steps[d], one[of] = i * apart, step, i",
         "starts[d], steps[d], one[of] = i, step, i"),
    )),
    *mutants_of("conv_general_dilated", LOWERING, "by_real_parts", (
        ("xla_translation", "sign", "shared - convolve(im, re_y + im_y)", "shared + convolve(im, re_y + im_y)"),
    )),
)
