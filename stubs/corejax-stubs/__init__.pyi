# Written by `python -m corejax stubs`: don't edit it.

"""corejax: composable transformations of numerical functions. All primitives come from packs.

>>> import corejax as cj
>>> cj.grad(lambda x: x * x)(3.0)
Array(6., dtype=float64, weak_type=True)
"""

from corejax.arrays.array import Array as Array
from corejax.api import ShapeDtypeStruct as ShapeDtypeStruct
from corejax.base.dtypes import bfloat16 as bfloat16
from corejax.api import block_until_ready as block_until_ready
from corejax.api import checkpoint as checkpoint
from corejax.api import clear_caches as clear_caches
from corejax.config import config as config
from corejax import core as core
from corejax.api import custom_jvp as custom_jvp
from corejax.api import custom_vjp as custom_vjp
from corejax.api import device_get as device_get
from corejax.api import device_put as device_put
from corejax.api import devices as devices
from corejax import errors as errors
from corejax.api import eval_shape as eval_shape
from corejax import export as export
from corejax.base.dtypes import float0 as float0
from corejax.api import from_dlpack as from_dlpack
from corejax.api import grad as grad
from corejax.api import hessian as hessian
from corejax.api import jacfwd as jacfwd
from corejax.api import jacrev as jacrev
from corejax.api import jit as jit
from corejax.api import jvp as jvp
from corejax import lax as lax
from corejax.api import linear_transpose as linear_transpose
from corejax.api import linearize as linearize
from corejax.api import make_jaxpr as make_jaxpr
from corejax.kernel.context import named_scope as named_scope
from corejax import plugins as plugins
from corejax.api import remat as remat
from corejax import tree as tree
from corejax.api import value_and_grad as value_and_grad
from corejax.api import vjp as vjp
from corejax.api import vmap as vmap
import corejax.api as _api
api = _api
import corejax.ir as _ir
ir = _ir
import corejax.plugin as _plugin
plugin = _plugin
import corejax.testing as _testing
testing = _testing

__version__: str
