"""Everything needed to write an interpreter, or a primitive that carries jaxprs.

>>> from corejax.core import eval_jaxpr, stage, ShapedArray
>>> closed = stage(lambda x: [x], [ShapedArray((), "float64")])
>>> eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
[3.0]
"""

from typing import TYPE_CHECKING

from corejax.base.facades import facade

if TYPE_CHECKING:
    from corejax.arrays.array import Array as Array, from_dlpack as from_dlpack, is_concrete as is_concrete
    from corejax.arrays.datamodel import ArrayLike as ArrayLike
    from corejax.arrays.meshes import AnyMesh as AnyMesh, Mesh as Mesh, current_mesh as current_mesh
    from corejax.arrays.partitions import PartitionSpec as PartitionSpec
    from corejax.arrays.shardings import NamedSharding as NamedSharding, Sharding as Sharding
    from corejax.arrays.storage import is_on_device as is_on_device, to_numpy as to_numpy
    from corejax.base import dtypes as dtypes
    from corejax.base.avals import (
        Linear as Linear,
        ShapedArray as ShapedArray,
        Zero as Zero,
        aval_of as aval_of,
        is_foreign as is_foreign,
    )
    from corejax.base.caches import WeakCache as WeakCache
    from corejax.base.dtypes import DTypeLike as DTypeLike
    from corejax.base.holders import is_holder as is_holder
    from corejax.base.keypaths import keystr as keystr
    from corejax.base.source import (
        describe as describe,
        expression as expression,
        here as here,
        place_here as place_here,
        warn as warn,
    )
    from corejax.base.trees import flatten as flatten, paths_of as paths_of
    from corejax.eager.evaluate import EvalTrace as EvalTrace
    from corejax.interpreters import batching, forward
    from corejax.interpreters.batching import (
        Axis as Axis,
        BatchTrace as BatchTrace,
        to_dim as to_dim,
        vmap_jaxpr as vmap_jaxpr,
        with_axis as with_axis,
    )
    from corejax.interpreters.forward import (
        JVPTrace as JVPTrace,
        PrimalTracer as PrimalTracer,
        jvp_jaxpr as jvp_jaxpr,
    )
    from corejax.interpreters.functions import Staged as Staged, stage_function as stage_function
    from corejax.interpreters.leaves import (
        call_user as call_user,
        check_callable as check_callable,
        name_of as name_of,
        namer as namer,
        not_an_array as not_an_array,
        values as values,
    )
    from corejax.interpreters.partial_eval import TapeTrace as TapeTrace, partial_eval_jaxpr as partial_eval_jaxpr
    from corejax.interpreters.rebinding import rebound as rebound
    from corejax.interpreters.reverse import transpose_jaxpr as transpose_jaxpr
    from corejax.interpreters.splitting import Split as Split, split_jaxpr as split_jaxpr
    from corejax.interpreters.staging import (
        StagingTrace as StagingTrace,
        is_staging as is_staging,
        stage as stage,
        stage_closed as stage_closed,
    )
    from corejax.ir.interpret import eval_jaxpr as eval_jaxpr, jaxpr_as_fun as jaxpr_as_fun
    from corejax.kernel.axes import NamedAxis as NamedAxis
    from corejax.kernel.context import (
        binding as binding,
        bound_axis as bound_axis,
        context as context,
        named_scope as named_scope,
        tracing as tracing,
    )
    from corejax.kernel.factors import instantiate as instantiate
    from corejax.kernel.jaxpr import (
        Atom as Atom,
        ClosedJaxpr as ClosedJaxpr,
        Jaxpr as Jaxpr,
        JaxprEqn as JaxprEqn,
        Literal as Literal,
        Var as Var,
        subjaxprs as subjaxprs,
    )
    from corejax.kernel.keys import param_key as param_key
    from corejax.kernel.numpy_calls import from_array_like as from_array_like
    from corejax.kernel.primitive import Primitive as Primitive
    from corejax.kernel.scopes import Again as Again, Alternative as Alternative, EachTurn as EachTurn
    from corejax.kernel.trace import (
        Trace as Trace,
        Tracer as Tracer,
        as_value as as_value,
        belongs as belongs,
        forget_when_done as forget_when_done,
        leak_error as leak_error,
    )
    from corejax.xla.lowering.programs import lower_module as lower_module
    from corejax.xla.runtime.client import default_platform as default_platform
    from corejax.xla.runtime.placement import array_at as array_at, in_memory as in_memory, platform_of as platform_of

    jvp_flat, vmap_flat = forward.jvp, batching.vmap
else:  # so that type checkers refuse names that aren't there
    __all__, __getattr__, __dir__ = facade(__name__, {
        "corejax.arrays.array": "Array from_dlpack is_concrete",
        "corejax.arrays.datamodel": "ArrayLike",
        "corejax.arrays.meshes": "AnyMesh Mesh current_mesh",
        "corejax.arrays.partitions": "PartitionSpec",
        "corejax.arrays.shardings": "NamedSharding Sharding",
        "corejax.arrays.storage": "is_on_device to_numpy",
        "corejax.base": "dtypes",
        "corejax.base.avals": "Linear ShapedArray Zero aval_of is_foreign",
        "corejax.base.caches": "WeakCache",
        "corejax.base.dtypes": "DTypeLike",
        "corejax.base.holders": "is_holder",
        "corejax.base.keypaths": "keystr",
        "corejax.base.source": "describe expression here place_here warn",
        "corejax.base.trees": "flatten paths_of",
        "corejax.eager.evaluate": "EvalTrace",
        "corejax.interpreters.batching": "Axis BatchTrace to_dim vmap=vmap_flat vmap_jaxpr with_axis",
        "corejax.interpreters.forward": "JVPTrace PrimalTracer jvp=jvp_flat jvp_jaxpr",
        "corejax.interpreters.functions": "Staged stage_function",
        "corejax.interpreters.leaves": "call_user check_callable name_of namer not_an_array values",
        "corejax.interpreters.partial_eval": "TapeTrace partial_eval_jaxpr",
        "corejax.interpreters.rebinding": "rebound",
        "corejax.interpreters.reverse": "transpose_jaxpr",
        "corejax.interpreters.splitting": "Split split_jaxpr",
        "corejax.interpreters.staging": "StagingTrace is_staging stage stage_closed",
        "corejax.ir.interpret": "eval_jaxpr jaxpr_as_fun",
        "corejax.kernel.axes": "NamedAxis",
        "corejax.kernel.context": "binding bound_axis context named_scope tracing",
        "corejax.kernel.factors": "instantiate",
        "corejax.kernel.jaxpr": "Atom ClosedJaxpr Jaxpr JaxprEqn Literal Var subjaxprs",
        "corejax.kernel.keys": "param_key",
        "corejax.kernel.numpy_calls": "from_array_like",
        "corejax.kernel.primitive": "Primitive",
        "corejax.kernel.scopes": "Again Alternative EachTurn",
        "corejax.kernel.trace": "Trace Tracer as_value belongs forget_when_done leak_error",
        "corejax.xla.lowering.programs": "lower_module",
        "corejax.xla.runtime.client": "default_platform",
        "corejax.xla.runtime.placement": "array_at in_memory platform_of",
    })
