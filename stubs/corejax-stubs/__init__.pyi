# Written by `python -m corejax stubs`: don't edit it.

"""corejax: composable transformations of numerical functions. All primitives come from packs.

>>> import corejax as cj
>>> cj.grad(lambda x: x * x)(3.0)
Array(6., dtype=float64, weak_type=True)
"""

from corejax.arrays.array import Array as Array
from corejax.arrays.shardings import NamedSharding as NamedSharding
from corejax.arrays.partitions import P as P
from corejax.api import ShapeDtypeStruct as ShapeDtypeStruct
from corejax.arrays.shards import Shard as Shard
from corejax.base.dtypes import bfloat16 as bfloat16
from corejax.api import block_until_ready as block_until_ready
from corejax.api import checkpoint as checkpoint
from corejax.api import clear_caches as clear_caches
from corejax.config import config as config
from corejax import core as core
from corejax.api import custom_jvp as custom_jvp
from corejax.api import custom_vjp as custom_vjp
from corejax.api import default_backend as default_backend
from corejax.api import device_count as device_count
from corejax.api import device_get as device_get
from corejax.api import device_put as device_put
from corejax.api import devices as devices
from corejax.api import disable_jit as disable_jit
from corejax import dtypes as dtypes
from corejax.api import ensure_compile_time_eval as ensure_compile_time_eval
from corejax import errors as errors
from corejax.api import eval_shape as eval_shape
from corejax import experimental as experimental
from corejax import export as export
from corejax.base.dtypes import float0 as float0
from corejax.api import from_dlpack as from_dlpack
from corejax.api import fwd_and_bwd as fwd_and_bwd
from corejax.api import grad as grad
from corejax.api import hessian as hessian
from corejax.api import jacfwd as jacfwd
from corejax.api import jacobian as jacobian
from corejax.api import jacrev as jacrev
from corejax.api import jit as jit
from corejax.api import jvp as jvp
from corejax import lax as lax
from corejax.api import linear_transpose as linear_transpose
from corejax.api import linearize as linearize
from corejax.api import local_device_count as local_device_count
from corejax.api import local_devices as local_devices
from corejax.arrays.assembling import make_array_from_callback as make_array_from_callback
from corejax.arrays.assembling import make_array_from_process_local_data as make_array_from_process_local_data
from corejax.arrays.assembling import make_array_from_single_device_arrays as make_array_from_single_device_arrays
from corejax.api import make_jaxpr as make_jaxpr
from corejax.arrays.meshes import make_mesh as make_mesh
from corejax.api import named_call as named_call
from corejax.kernel.context import named_scope as named_scope
from corejax import plugins as plugins
from corejax.api import process_count as process_count
from corejax.api import process_index as process_index
from corejax.api import remat as remat
from corejax import sharding as sharding
from corejax import stages as stages
from corejax import tree as tree
from corejax import tree_util as tree_util
from corejax.api import typeof as typeof
from corejax import typing as typing
from corejax.api import value_and_grad as value_and_grad
from corejax.api import vjp as vjp
from corejax.api import vmap as vmap
import corejax.api as _api
api = _api
import corejax.distributions as _distributions
distributions = _distributions
import corejax.ir as _ir
ir = _ir
import corejax.plugin as _plugin
plugin = _plugin
import corejax.rules as _rules
rules = _rules
from corejax import ad_checkpoint as ad_checkpoint
from corejax import callbacks as callbacks
from corejax import checkify as checkify
from corejax import checkpoint_policies as checkpoint_policies
from corejax import custom_batching as custom_batching
from corejax import custom_derivatives as custom_derivatives
from corejax import debug as debug
from corejax import distributed as distributed
from corejax import flatten_util as flatten_util
from corejax import image as image
from corejax import multihost_utils as multihost_utils
from corejax import nn as nn
from corejax import numpy as numpy
from corejax import ops as ops
from corejax import random as random
from corejax import ref as ref
from corejax import taylor as taylor
from corejax import testing as testing
from collections.abc import Callable, Hashable, Sequence
from corejax.core import AnyMesh, Array as _Array, Sharding
from corejax_control_flow.saved import Residuals
from corejax_references.references import Ref as _Ref
from typing import Any

__version__: str

Ref: Any

def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The function with more arguments: the values that it closes over and that may have derivatives, and these values.

    A function with custom derivatives has them by its arguments alone. If it takes another function, it takes what that
    closes over as further arguments: `converted, consts = closure_convert(fun, x)`, and then `converted(x, *consts)` is
    `fun(x)`. It is for arguments of the types of these examples, which may be types
    alone: `ShapeDtypeStruct`s.

    >>> from functools import partial
    >>> import corejax as cj
    >>> from corejax import lax
    >>> def solve(f, x):
    ...     converted, consts = cj.closure_convert(f, x)
    ...     return newton(converted, x, *consts)
    >>> @partial(cj.custom_vjp, nondiff_argnums=0)
    ... def newton(f, x, *consts):
    ...     return lax.fori_loop(0, 20, lambda _, x: x - f(x, *consts) / cj.grad(f)(x, *consts), x)
    >>> def fwd(f, x, *consts):
    ...     root = newton(f, x, *consts)
    ...     return root, (root, consts)
    >>> def bwd(f, kept, ct):
    ...     root, consts = kept
    ...     _, vjp = cj.vjp(f, root, *consts)
    ...     return None, *vjp(-ct / cj.grad(f)(root, *consts))[1:]
    >>> newton.defvjp(fwd, bwd)
    >>> cj.grad(lambda a: solve(lambda x: x * x - a, 1.0))(4.0)
    Array(0.25, dtype=float64, weak_type=True)
    """

def custom_gradient(fun: Callable[..., Any]) -> Any:
    """A function with its own derivative for reverse mode: `fun(*args)` returns the output and the rule for it.

    The rule takes the cotangent of the output, and returns a tuple of cotangents of the arguments; of a single argument
    just its cotangent, if that is an array. It may close over what `fun` has computed, which is kept for it.

    >>> import corejax as cj
    >>> from corejax import lax
    >>> @cj.custom_gradient
    ... def clipped(x):
    ...     return x, lambda ct: (lax.clamp(-1.0, ct, 1.0),)
    >>> clipped(2.0), cj.grad(lambda x: 5.0 * clipped(x))(2.0)
    (Array(2., dtype=float64, weak_type=True), Array(1., dtype=float64, weak_type=True))
    """

def effects_barrier() -> None:
    """Wait until all calls of users' functions have been made that programs of this thread make.

    A call of a program with such functions returns when they have been called, so this returns at once. It is there for
    programs that are written for JAX.

    >>> effects_barrier()
    """

def freeze(ref: _Ref) -> _Array:
    """What a reference holds. It can't be used afterwards. It must have been made in the function that freezes it.

    >>> ref = new_ref(np.zeros(2))
    >>> ref[0] = 1.0
    >>> freeze(ref), ref
    (Array([1., 0.], dtype=float64), Ref(f64[2], frozen))
    """

def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> _Ref:
    """A reference that holds this array. `memory_space` and `kind` are there for JAX's sake: they must be None.

    >>> ref = new_ref(np.zeros(2))
    >>> ref[0] = 1.0
    >>> ref[...]
    Array([1., 0.], dtype=float64)
    """

def pmap(fun: Callable[..., Any], axis_name: Hashable = None, *, in_axes: Any = 0, out_axes: Any = 0, static_broadcasted_argnums: int | Sequence[int] = (), devices: Sequence[Any] | None = None, backend: str | None = None, axis_size: int | None = None, donate_argnums: int | Sequence[int] = ()) -> Any:
    """Map `fun` along an axis of its arguments, each element on a device of its own.

    `in_axes` and `out_axes` say which axis of each argument and result is mapped, as for `vmap`: an int, None for what
    all devices have alike, or a pytree of these. Functions such as `lax.psum` exchange data along `axis_name`.
    `devices`: those to use, as many as there are elements; by default the first of the default backend's, or of
    `backend`. `static_broadcasted_argnums`: arguments that aren't data. `donate_argnums`: arguments whose memory may be
    overwritten. Where every device already has a part of its own, in another `pmap` or in `shard_map`, it maps these.
    Over the devices of several processes, each passes the elements of its own devices, as many as it has, and gets
    theirs back.

    >>> import numpy as np, corejax as cj
    >>> cj.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(np.array([[2.0]])).tolist()
    [[1.0]]
    """

def pure_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Sharding | None = None, vmap_method: str | None = None, timeout: float | None = None, **kwargs: Any) -> Any:
    """The result of a Python function, also in compiled programs: `callback(*args, **kwargs)`.

    The function gets arrays in memory of the host, and returns arrays of the types that `result_shape_dtypes` says: a
    pytree of objects with `shape` and `dtype`. It must be pure: a program may call it more than once, or not at all if
    nobody uses its results. It has no derivative; `cj.custom_jvp` gives one to the function around it.

    - `vmap_method` says how it takes a batch. `"sequential"` calls it for each element, as does
      `"sequential_unrolled"`; `"broadcast_all"` calls it once, with a new first axis for all arguments;
      `"expand_dims"` too, but those that aren't mapped have it of size 1, and with `"legacy_vectorized"` they don't
      have it. Without it, `cj.vmap` is an error.
    - `timeout`: after so many seconds the call is abandoned, with an error.
    - `sharding`: a sharding with one device, from which JAX would make the call. Here it makes no difference.

    >>> import corejax as cj
    >>> def log_gamma(x):
    ...     return np.vectorize(math.lgamma)(x)
    >>> import math
    >>> f = cj.jit(lambda x: cj.pure_callback(log_gamma, x, x, vmap_method="broadcast_all") + 1.0)
    >>> f(np.array([1.0, 5.0]))
    Array([1.        , 4.17805383], dtype=float64)
    """

def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Residuals:
    """What reverse mode keeps until cotangents arrive, of the forward pass of `f(*args, **kwargs)`.

    A list of rows `(aval, nbytes, what, where)`, with `nbytes` in all, which prints as a table. Nothing is computed:
    arguments may be `ShapeDtypeStruct`s.

    >>> import numpy as np, corejax as cj
    >>> from corejax import lax
    >>> rows = cj.saved_residuals(lambda x: lax.sin(lax.sin(x)), np.ones(3))
    >>> rows.nbytes, [row.what for row in rows]
    (48, ['cos', 'cos'])
    >>> print(cj.saved_residuals(cj.checkpoint(lambda x: lax.sin(lax.sin(x))), np.ones(3)))
    f64[3]  24 B  the argument x
    """

def shard_map(f: Callable[..., Any] | None = None, /, *, out_specs: Any, in_specs: Any = None, mesh: AnyMesh | None = None, axis_names: Any = ..., check_vma: bool = True) -> Any:
    """Map a function over the parts of its arguments that the devices of a mesh hold: each applies it to its own.

    `in_specs` says how each argument is divided, `out_specs` how results are put together: a `PartitionSpec` for each
    argument or result, or for each leaf of it. An array that isn't divided along an axis is the same on all devices
    there. In `f`, functions such as `lax.psum` exchange data along the mesh's axes, by name. `axis_names`: only these
    axes (default: all); the compiler divides along the others. `mesh` may be left out within `with mesh:`.

    With `check_vma`, types say along which axes values vary: a result that varies along an axis of which its spec says
    nothing is an error, and gradients are summed over devices where all of them use a value.

    >>> import numpy as np, corejax as cj
    >>> mesh = cj.make_mesh((1,), ("x",))
    >>> @cj.shard_map(mesh=mesh, in_specs=cj.P("x"), out_specs=cj.P())
    ... def total(part):
    ...     return lax.psum(part.sum(), "x")
    >>> total(np.arange(4.0)).item()
    6.0
    """
