"""The functions that users call. They only handle arguments; the work is done elsewhere."""

from corejax.api.arrays import block_until_ready, clear_caches, device_get, device_put, from_dlpack
from corejax.api.autodiff import fwd_and_bwd, jvp, linear_transpose, linearize, vjp
from corejax.api.batching import vmap
from corejax.api.gradients import grad, value_and_grad
from corejax.api.jacobians import hessian, jacfwd, jacobian, jacrev
from corejax.api.jit import jit
from corejax.api.modes import disable_jit, ensure_compile_time_eval
from corejax.api.staging import ShapeDtypeStruct, eval_shape, make_jaxpr, named_call, typeof
from corejax.api.topology import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from corejax.api.wrappers import checkpoint, custom_jvp, custom_vjp, remat

__all__ = [
    "ShapeDtypeStruct", "block_until_ready", "checkpoint", "clear_caches", "custom_jvp", "custom_vjp",
    "default_backend", "device_count", "device_get", "device_put", "devices", "disable_jit",
    "ensure_compile_time_eval", "eval_shape", "from_dlpack", "fwd_and_bwd", "grad", "hessian", "jacfwd", "jacobian",
    "jacrev", "jit", "jvp", "linear_transpose", "linearize", "local_device_count", "local_devices", "make_jaxpr",
    "named_call", "process_count", "process_index", "remat", "typeof", "value_and_grad", "vjp", "vmap",
]
