"""What users had written down before the kernel's modules moved: pickles, exported functions, entries of the cache.

The files beside this one were written by `python -m tests.written_before DIRECTORY` at the revision named in
`revision.txt`, and are never written anew for the same names: what can be read must go on being read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import corejax as cj
from corejax import lax
from corejax.core import Linear, ShapedArray, Zero
from corejax.errors import CorejaxTypeError
from corejax.plugin import find

HERE = Path(__file__).parent
X = np.array([0.1, 0.2, 0.3])


def branching(x: Any) -> Any:
    """Every kind of program that carries programs."""
    y = cj.jit(lambda x: lax.sin(x) * 2.0)(x)
    last, steps = lax.scan(lambda c, v: (lax.cond(v > 0.0, lax.cos, lax.sin, c), c * v), y.sum(), X)
    return last, steps, lax.while_loop(lambda c: c.sum() < 3.0, lambda c: c + 1.0, x), x[0]


def gradient(x: Any) -> Any:
    """One that was made by transforming."""
    return cj.grad(lambda x: cj.checkpoint(lax.sin)(x).sum())(x)


def refused() -> CorejaxTypeError:
    """An error as it is raised, with its parts."""
    return CorejaxTypeError("a test", got="one thing", wanted="another", where="here", todo="nothing")


#: What was pickled, by name.
PICKLED: dict[str, Callable[[], Any]] = {
    "array": lambda: lax.sin(X),
    "array_on_a_device": lambda: cj.device_put(np.arange(3)),
    "weak_scalar": lambda: lax.sin(0.5),
    "bfloat16": lambda: lax.full((2,), 1.5, "bfloat16"),
    "type": lambda: ShapedArray((2,), "int8"),
    "struct": lambda: cj.ShapeDtypeStruct((3,), "bfloat16"),
    "zero": lambda: Zero(ShapedArray((2,), "float32")),
    "linear": lambda: Linear(ShapedArray((2,), "float32")),
    "program": lambda: cj.make_jaxpr(branching)(X),
    "program_of_a_gradient": lambda: cj.make_jaxpr(gradient)(X),
    "equation": lambda: cj.make_jaxpr(branching)(X).eqns[0],
    "primitives": lambda: [find(name) for name in ("sin", "add", "cond", "scan", "reduce_sum")],
    "tree_definition": lambda: cj.tree.structure({"a": [1, (2, None)], "b": 3}),
    "partial": lambda: cj.tree.Partial(lax.pow, X, 2.0),
    "pullback": lambda: cj.vjp(lambda x: lax.sin(x) / (1.0 + x), X)[1],
    "tangents": lambda: cj.linearize(branching, X)[1],
    "error": refused,
}

#: What was exported: the function, and how.
EXPORTED: dict[str, Callable[[], Any]] = {
    "branching": lambda: cj.export.export(cj.jit(branching))(X),
    "with_a_derivative": lambda: cj.export.export(cj.jit(lambda x: {"y": lax.sin(x)}), vjp_order=1)(X),
}
