"""Fourier transforms."""

from __future__ import annotations

from .case import Group

transforms = Group("Fourier transforms")
transforms.add("a name of no transform", "lax.fft(np.ones(4), 'Fft', (4,))", ValueError, "'Fft'", "'rfft'")
transforms.add("a number for a transform", "lax.fft(np.ones(4), 0, (4,))", TypeError, "fft_type=0", "FftType")
transforms.add("no name at all", "lax.fft(np.ones(4), None, (4,))", TypeError, "fft_type=None", "'ifft'")
transforms.add("lengths beside the sizes", "lax.fft(np.ones((2, 4)), 'fft', (8,))", ValueError, "c128[2,4]",
               "fft_lengths=(8,)", "lax.pad")
transforms.add("more points than a real operand has", "lax.fft(np.ones(4), 'rfft', (8,))", ValueError, "f64[4]",
               "fft_lengths=(8,)", "neither pads nor cuts off")
transforms.add("a whole spectrum for half of one", "lax.fft(np.ones(4, complex), 'irfft', (4,))", ValueError,
               "c128[4]", "sizes (3,)", "fft_lengths=(4,)")
transforms.add("more lengths than axes", "lax.fft(np.ones(4), 'fft', (4, 4))", ValueError, "(4, 4)", "c128[4]",
               "at most 1")
transforms.add("lengths for a scalar", "lax.fft(2.0, 'fft', (1,))", ValueError, "c128[]", "at most 0")
transforms.add("four axes at once", "lax.fft(np.ones((2, 2, 2, 2)), 'fft', (2, 2, 2, 2))", ValueError,
               "up to three axes", "(2, 2, 2, 2)")
transforms.add("a negative length", "lax.fft(np.ones(3, complex), 'irfft', (-3,))", ValueError, "(-3,)",
               "one to three sizes")
transforms.add("a length that isn't an integer", "lax.fft(np.ones(4), 'fft', (4.0,))", TypeError, "fft_lengths", "4.0",
               "integer")
transforms.add("a length that is traced", "cj.jit(lambda n: lax.fft(np.ones(4), 'fft', (n,)))(4)", TypeError,
               "i64[]", "static")
transforms.add("no lengths", "lax.fft(np.ones(4), 'fft', None)", TypeError, "fft_lengths", "None")
transforms.add("complex numbers for real ones", "lax.fft(np.ones(4, complex), 'rfft', (4,))", ValueError, "c128[4]",
               "RFFT is of real numbers", "lax.real")
transforms.add("half precision for real numbers", "lax.fft(np.ones(4, np.float16), 'rfft', (4,))", ValueError,
               "f16[4]", "float32 or float64", "astype")
transforms.add("a list for an array", "lax.fft([1.0, 2.0], 'fft', (2,))", TypeError, "list")
transforms.add("text for an array", "lax.fft('ab', 'fft', (2,))", TypeError, "'ab'")
transforms.add("a gradient of a spectrum",
               "cj.grad(lambda x: lax.fft(x, 'rfft', (1,))[0])(np.ones(1))", TypeError, "c128[]", "real",
               jax="import jax; jax.grad(lambda x: jax.lax.fft(x, 'rfft', (1,))[0])(np.ones(1))")

GROUPS: tuple[Group, ...] = (transforms,)
