"""Faults in the rules of windowed reductions, and in what their derivatives select."""

from __future__ import annotations

from .mutant import mutants_of

WINDOWING, POOLING = "corejax_windows._windowing", "corejax_windows.pooling"
SELECTING, REDUCING = "corejax_windows.selecting", "corejax_windows.window_reducing"
DOUBLING = "corejax_windows._doubling"

MUTANTS = (
    *mutants_of("reduce_window_sum", POOLING, "ReduceWindowSum.transpose", (
        ("transpose", "off by one", "[reach - 1 - low for", "[reach - low for"),
        ("transpose", "param", "window._replace(window_strides=window.base_dilation,", "window._replace("),
        ("transpose", "dropped term", "base_dilation=window.window_strides,", "base_dilation=(1,) * len(shape),"),
    )),
    *mutants_of("reduce_window_sum", POOLING, "_reached", (
        ("impl", "missing case", "step = base // gcd(stride, base)", "step = base"),
    )),
    *mutants_of("reduce_window_max", POOLING, "ReduceWindowMax", (
        ("jvp", "wrong function", "select_prim=lax.ge_p", "select_prim=lax.le_p"),
        ("abstract_eval", "constant", "return bound(dtype, -1)", "return np.zeros((), dtype)"),
    )),
    *mutants_of("reduce_window_sum", WINDOWING, "Window.with_axis", (
        ("vmap", "axis", "shaping.insert(entries, at,", "shaping.insert(entries, 0,"),
    )),
    *mutants_of("select_and_scatter_add", SELECTING, "_summed", (
        ("impl", "off by one", "ways = [(start, n - start", "ways = [(start + 1, n - 1 - start"),
    )),
    *mutants_of("select_and_gather_add", SELECTING, "SelectAndGatherAdd.transpose", (
        ("transpose", "missing case", "if any([d != 1 for d in wide]):\n            out", "if False:\n            out"),
    )),
    *mutants_of("select_and_gather_add", SELECTING, "SelectAndGatherAdd.vmap", (
        ("vmap", "off by one", "window = Window(**params).with_axis(at)", "window = Window(**params).with_axis(0)"),
    )),
    *mutants_of("reduce_window", DOUBLING, "_along", (
        ("jvp", "off by one", "reach = power // 2 * dilation", "reach = power * dilation"),
        ("jvp", "missing case", "_where(y_is, axis, _where(x_is, axis, both, ys), xs)", "both"),
    )),
    *mutants_of("reduce_window", REDUCING, "ReduceWindow.vmap", (
        ("vmap", "missing case", "if all([dim is None for dim in init_dims]):", "if True:"),
    )),
)
