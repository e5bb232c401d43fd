"""corejax: composable transformations of numerical functions. The kernel knows no primitive; packs bring them.

>>> import corejax as cj
>>> cj.grad(lambda x: x * x)(3.0)
Array(6., dtype=float64)
"""

from corejax import core, errors, lax, tree
from corejax.api import (
    ShapeDtypeStruct,
    block_until_ready,
    clear_caches,
    device_get,
    device_put,
    devices,
    eval_shape,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linear_transpose,
    linearize,
    make_jaxpr,
    value_and_grad,
    vjp,
    vmap,
)
from corejax.config import config
from corejax.dtypes import bfloat16, float0
from corejax.interpreters.context import named_scope
from corejax.xla.array import Array

__version__ = "0.1.0"

__all__ = [
    "Array", "ShapeDtypeStruct", "bfloat16", "block_until_ready", "clear_caches", "config", "core", "device_get",
    "device_put", "devices", "errors", "eval_shape", "float0", "grad", "hessian", "jacfwd", "jacrev", "jit", "jvp",
    "lax", "linear_transpose", "linearize", "make_jaxpr", "named_scope", "tree", "value_and_grad", "vjp", "vmap",
]
