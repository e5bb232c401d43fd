"""The discrete Fourier transform."""

import numpy as np

from corejax.core import to_dim
from corejax.plugin import Sample, define, hookimpl, refused

__all__ = ["fft"]


class FFT:
    """The discrete Fourier transform along the last axis, or its inverse."""

    name = "fft"
    operands = ("x",)
    linear = (0,)

    @hookimpl
    def abstract_eval(self, avals, *, inverse=False):
        (x,) = avals
        if x.dtype.kind != "c" or not x.shape or not x.shape[-1]:
            raise refused(self.name, "wrong operand", got=x, wanted="complex numbers along an axis",
                          todo="convert it: lax.complex(x, 0.0 * x)")
        return x

    @hookimpl
    def impl(self, args, *, inverse):
        return (np.fft.ifft if inverse else np.fft.fft)(args[0])

    @hookimpl
    def transpose(self, cotangents, args, *, inverse):
        return [fft(cotangents, inverse=inverse)]  # the matrix is symmetric

    @hookimpl
    def vmap(self, axis, args, dims, *, inverse):
        return fft(to_dim(args[0], dims[0], 0, axis.size), inverse=inverse), 0

    @hookimpl
    def xla_translation(self, ctx, args, *, inverse):
        return ctx.op("stablehlo.fft", args, {
            "fft_type": ctx.attribute(f"#stablehlo<fft_type {'IFFT' if inverse else 'FFT'}>"),
            "fft_length": ctx.attribute(f"array<i64: {ctx.avals_in[0].shape[-1]}>")})

    @hookimpl
    def samples(self, rng):
        x = rng.normal(size=(2, 5)) + 1j * rng.normal(size=(2, 5))
        for inverse in (False, True):
            yield Sample([x], {"inverse": inverse}, results=(np.fft.ifft if inverse else np.fft.fft)(x))
        yield Sample([np.ones(3)], {"inverse": False}, error=TypeError)


fft = define(FFT())
