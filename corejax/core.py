"""What somebody needs to write an interpreter, or a primitive that carries jaxprs.

>>> from corejax.core import eval_jaxpr, stage, ShapedArray
>>> closed = stage(lambda x: [x], [ShapedArray((), "float64")])
>>> eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
[3.0]
"""

from corejax import dtypes
from corejax.avals import Linear, ShapedArray, Zero, aval_of
from corejax.caches import WeakCache
from corejax.interpreters.batching import Axis, BatchTrace, to_dim, vmap_jaxpr
from corejax.interpreters.context import context, named_scope, tracing
from corejax.interpreters.evaluate import EvalTrace
from corejax.interpreters.forward import JVPTrace, instantiate, jvp_jaxpr
from corejax.interpreters.partial_eval import TapeTrace, partial_eval_jaxpr
from corejax.interpreters.reverse import transpose_jaxpr
from corejax.interpreters.staging import StagingTrace, stage
from corejax.interpreters.trace import Trace, Tracer
from corejax.ir.interpret import eval_jaxpr, jaxpr_as_fun
from corejax.ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from corejax.plugin.primitive import Primitive
from corejax.source import here
from corejax.xla.array import Array

__all__ = [
    "Array", "Atom", "Axis", "BatchTrace", "ClosedJaxpr", "EvalTrace", "JVPTrace", "Jaxpr", "JaxprEqn", "Linear",
    "Literal", "Primitive", "ShapedArray", "StagingTrace", "TapeTrace", "Trace", "Tracer", "Var", "WeakCache",
    "Zero", "aval_of", "context", "dtypes", "eval_jaxpr", "here", "instantiate", "jaxpr_as_fun", "jvp_jaxpr",
    "named_scope", "partial_eval_jaxpr", "stage", "subjaxprs", "to_dim", "tracing", "transpose_jaxpr",
    "vmap_jaxpr",
]
