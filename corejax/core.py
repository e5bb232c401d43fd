"""Everything needed to write an interpreter, or a primitive that carries jaxprs.

>>> from corejax.core import eval_jaxpr, stage, ShapedArray
>>> closed = stage(lambda x: [x], [ShapedArray((), "float64")])
>>> eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
[3.0]
"""

from typing import TYPE_CHECKING, Any

from corejax.base.late import find_in, homes
from corejax.base.tracebacks import trim

if TYPE_CHECKING:
    from corejax.arrays.array import Array, from_dlpack, is_concrete
    from corejax.arrays.datamodel import ArrayLike
    from corejax.arrays.meshes import AnyMesh, Mesh, current_mesh
    from corejax.arrays.partitions import PartitionSpec
    from corejax.arrays.shardings import NamedSharding, Sharding
    from corejax.base import dtypes
    from corejax.base.avals import Linear, ShapedArray, Zero, aval_of, is_foreign
    from corejax.base.caches import WeakCache
    from corejax.base.dtypes import DTypeLike
    from corejax.base.keypaths import keystr
    from corejax.base.source import here, warn
    from corejax.base.trees import flatten, paths_of
    from corejax.eager.evaluate import EvalTrace
    from corejax.interpreters.batching import Axis, BatchTrace, to_dim, vmap_jaxpr
    from corejax.interpreters.batching import vmap as vmap_flat
    from corejax.interpreters.forward import JVPTrace, jvp_jaxpr
    from corejax.interpreters.functions import Staged, stage_function
    from corejax.interpreters.leaves import call_user, check_callable, name_of, namer, not_an_array, values
    from corejax.interpreters.partial_eval import TapeTrace, partial_eval_jaxpr
    from corejax.interpreters.rebinding import rebound
    from corejax.interpreters.reverse import transpose_jaxpr
    from corejax.interpreters.splitting import Split, split_jaxpr
    from corejax.interpreters.staging import StagingTrace, is_staging, stage
    from corejax.ir.interpret import eval_jaxpr, jaxpr_as_fun
    from corejax.kernel.axes import NamedAxis
    from corejax.kernel.context import binding, bound_axis, context, named_scope, tracing
    from corejax.kernel.factors import instantiate
    from corejax.kernel.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
    from corejax.kernel.numpy_calls import from_array_like
    from corejax.kernel.primitive import Primitive
    from corejax.kernel.trace import Trace, Tracer, belongs, forget_when_done, leak_error
    from corejax.xla.runtime.placement import array_at, in_memory, platform_of

_HOME = homes({
    "corejax.arrays.array": "Array from_dlpack is_concrete",
    "corejax.arrays.datamodel": "ArrayLike",
    "corejax.arrays.meshes": "AnyMesh Mesh current_mesh",
    "corejax.arrays.partitions": "PartitionSpec",
    "corejax.arrays.shardings": "NamedSharding Sharding",
    "corejax.base": "dtypes",
    "corejax.base.avals": "Linear ShapedArray Zero aval_of is_foreign",
    "corejax.base.caches": "WeakCache",
    "corejax.base.dtypes": "DTypeLike",
    "corejax.base.keypaths": "keystr",
    "corejax.base.source": "here warn",
    "corejax.base.trees": "flatten paths_of",
    "corejax.eager.evaluate": "EvalTrace",
    "corejax.interpreters.batching": "Axis BatchTrace to_dim vmap_jaxpr vmap=vmap_flat",
    "corejax.interpreters.forward": "JVPTrace jvp_jaxpr",
    "corejax.kernel.factors": "instantiate",
    "corejax.interpreters.functions": "Staged stage_function",
    "corejax.interpreters.leaves": "call_user check_callable name_of namer not_an_array values",
    "corejax.interpreters.partial_eval": "TapeTrace partial_eval_jaxpr",
    "corejax.interpreters.rebinding": "rebound",
    "corejax.interpreters.reverse": "transpose_jaxpr",
    "corejax.interpreters.splitting": "Split split_jaxpr",
    "corejax.interpreters.staging": "StagingTrace is_staging stage",
    "corejax.ir.interpret": "eval_jaxpr jaxpr_as_fun",
    "corejax.kernel.axes": "NamedAxis",
    "corejax.kernel.context": "binding bound_axis context named_scope tracing",
    "corejax.kernel.jaxpr": "Atom ClosedJaxpr Jaxpr JaxprEqn Literal Var subjaxprs",
    "corejax.kernel.numpy_calls": "from_array_like",
    "corejax.kernel.primitive": "Primitive",
    "corejax.kernel.trace": "Trace Tracer belongs forget_when_done leak_error",
    "corejax.xla.runtime.placement": "array_at in_memory platform_of",
})

__all__ = [
    "AnyMesh", "Array", "ArrayLike", "Atom", "Axis", "BatchTrace", "ClosedJaxpr", "DTypeLike", "EvalTrace",
    "JVPTrace", "Jaxpr", "JaxprEqn", "Linear", "Literal", "Mesh", "NamedAxis", "NamedSharding", "PartitionSpec",
    "Primitive", "ShapedArray", "Sharding", "Split", "Staged", "StagingTrace", "TapeTrace", "Trace", "Tracer",
    "Var", "WeakCache", "Zero", "array_at", "aval_of", "belongs", "binding", "bound_axis", "call_user",
    "check_callable", "context", "current_mesh", "dtypes", "eval_jaxpr", "flatten", "forget_when_done",
    "from_array_like", "from_dlpack", "here", "in_memory", "instantiate", "is_concrete", "is_foreign", "is_staging",
    "jaxpr_as_fun", "jvp_jaxpr", "keystr", "leak_error", "name_of", "named_scope", "namer", "not_an_array",
    "partial_eval_jaxpr", "paths_of", "platform_of", "rebound", "split_jaxpr", "stage", "stage_function",
    "subjaxprs", "to_dim", "tracing", "transpose_jaxpr", "values", "vmap_flat", "vmap_jaxpr", "warn",
]


if not TYPE_CHECKING:  # so that type checkers refuse names that aren't there
    def __getattr__(name: str) -> Any:
        try:
            return find_in(_HOME, __name__, name)
        except Exception as error:
            trim(error)
            raise


def __dir__() -> list[str]:
    return sorted(__all__)
