"""Faults in the rules of Fourier transforms."""

from __future__ import annotations

from .mutant import mutants_of

FFT, HOST, LOWERING = "corejax_fft.transforming", "corejax_fft._host", "corejax_fft._lowering"

MUTANTS = (
    *mutants_of("fft", FFT, "Fft.transpose", (
        ("transpose", "conj", "_times(lax.conj(ct), fft_lengths, scale, 0.5 * scale)",
         "_times(ct, fft_lengths, scale, 0.5 * scale)"),
        ("transpose", "conj", "lax.conj(_times(fft(ct, FftType.RFFT, fft_lengths), fft_lengths, scale, 2.0 * scale))",
         "_times(fft(ct, FftType.RFFT, fft_lengths), fft_lengths, scale, 2.0 * scale)"),
        ("transpose", "dropped term", "fft_lengths, scale, 0.5 * scale)", "fft_lengths, scale, scale)"),
        ("transpose", "constant", "scale = float(prod(fft_lengths))", "scale = float(fft_lengths[-1])"),
        ("transpose", "wrong function", "return [fft(ct, FftType(fft_type), fft_lengths)]",
         "return [fft(ct, FftType(1 - fft_type), fft_lengths)]"),
    )),
    *mutants_of("fft", FFT, "_times", (
        ("transpose", "missing case", "(place == 0) | (place == lengths[-1] - place)", "place == 0"),
        ("transpose", "off by one", "(place == 0) | (place == lengths[-1] - place)",
         "(place == 0) | (place == aval.shape[-1] - 1)"),
    )),
    *mutants_of("fft", FFT, "Fft.vmap", (
        ("vmap", "comparison", "dim >= aval_of(x).ndim - len(fft_lengths)",
         "dim > aval_of(x).ndim - len(fft_lengths)"),
        ("vmap", "axis", "to_dim(x, dim, 0, axis.size), 0", "to_dim(x, dim, 0, axis.size), dim"),
    )),
    *mutants_of("fft", FFT, "_check_lengths", (
        ("abstract_eval", "refusal", "if x.shape[x.ndim - len(lengths):] != sizes:", "if len(sizes) == 0:"),
    )),
    *mutants_of("fft", HOST, "transformed", (
        ("impl", "axis", "range(-count, -1)", "range(1 - count, -1)"),
        ("impl", "side effect", "x if new is None else new, axis=axis, out=new)",
         "x if new is None else new, axis=axis, out=x if new is None else new)"),
    )),
    *mutants_of("fft", LOWERING, "lower", (
        ("xla_translation", "missing case", "if not aval.size or not out.size:", "if not out.size:"),
    )),
)
