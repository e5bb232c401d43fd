"""LAPACK's functions under names of this pack, so that a program without them says which pack it needs."""

import numpy as np
from jaxlib import lapack


def _kernel(function, dtype):
    name = lapack.prepare_lapack_call(function, np.dtype(dtype))
    return next(capsule for target, capsule, _ in lapack.registrations()["cpu"] if target == name)


potrf_f32 = _kernel("potrf_ffi", np.float32)
potrf_f64 = _kernel("potrf_ffi", np.float64)
