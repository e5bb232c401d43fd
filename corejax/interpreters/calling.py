"""From a user's function of pytrees to the program and the operands of a primitive that carries programs, and back.

Public in `corejax.plugin.carrying`: `stage_call` for a call, `stage_step` for the step of a loop, `settle`; and, for
when `config.disable_jit` is on, `runs_python` and `call_python`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from corejax.base import dtypes
from corejax.base.avals import ShapedArray, aval_of
from corejax.base.config import config
from corejax.base.structures import check_carry
from corejax.base.trees import TreeDef, flatten
from corejax.installed.roles import roles
from corejax.interpreters.functions import Staged, stage_function
from corejax.interpreters.leaves import FlatFun, Namer, namer, values
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Jaxpr
from corejax.kernel.varying import varied

T = TypeVar("T")


class StagedCall(NamedTuple):
    """A function and its arguments as a program and its operands: the values it closes over, then the arguments."""

    jaxpr: Jaxpr
    operands: list[Any]
    out_tree: TreeDef

    def unflatten(self, results: Sequence[object]) -> Any:
        """The result of the function, with these leaves."""
        return self.out_tree.unflatten(results)


class StagedStep(NamedTuple):
    """A loop's step and its initial carry: the program takes `consts`, which the step closes over, then a carry."""

    jaxpr: Jaxpr
    consts: tuple[Any, ...]
    carry: list[Any]
    tree: TreeDef

    def unflatten(self, carry: Sequence[object]) -> Any:
        """A carry as the user sees it, with these leaves."""
        return self.tree.unflatten(carry)


def runs_python() -> bool:
    """Whether a function that carries others is to call them, as Python would, instead of making programs of them.

    It is while `config.disable_jit` is on. What becomes part of a program anyway, as under `make_jaxpr`, does so then.
    """
    return config.disable_jit and not context.trace.is_staging


def call_python(fun: Callable[..., Any], args: tuple[Any, ...], what: str, name: Namer | None = None) -> Any:
    """The call `fun(*args)`, of pytrees, with arrays for all leaves of arguments and result, as in a program.

    `what` is its name in errors, `name` names the leaves of the arguments there.

    >>> call_python(lambda x: print(x) or x + 1, (2,), "my_call")
    2
    Array(3, dtype=int64, weak_type=True)
    """
    leaves, in_tree = flatten(args)
    flat = FlatFun(fun, in_tree, what)
    return flat.unflatten(flat(*values(leaves, what, name or namer("args", args))))


def stage_call(fun: Callable[..., Any], args: tuple[Any, ...], what: str) -> StagedCall:
    """The call `fun(*args)`, of pytrees, as a program and its operands; `what` is its name in errors.

    >>> import numpy as np
    >>> scale = np.array([1.0, 2.0])
    >>> call = stage_call(lambda d: {"y": d["x"] * scale}, ({"x": np.ones(2)},), "my_call")
    >>> call.jaxpr
    { lambda ; a:f64[2] b:f64[2]. let c:f64[2] = mul b a in (c,) }
    >>> call.unflatten(["the result"])
    {'y': 'the result'}
    """
    leaves, in_tree = flatten(args)
    xs = values(leaves, what, namer("args", args))
    staged = stage_function(fun, [x.aval for x in xs], in_tree, what)
    return StagedCall(staged.jaxpr, [*staged.consts, *xs], staged.out_tree)


def stage_step(step: Callable[..., Any], init: Any, what: str, first: Sequence[ShapedArray] = (), *,
               root: str = "init") -> StagedStep:
    """The step of a loop that starts from the pytree `init`, as a program: `step(*first, carry)` returns a carry.

    Python numbers in `init` are converted to what the step makes of them. A step that changes the structure or the
    types of what it carries is an error; there, `what` is the name of the step, and `root` that of `init`.

    >>> step = stage_step(lambda xy: (xy[1], xy[0] * 0.5), (1, 2), "my_loop: the step")
    >>> step.jaxpr, step.carry
    ({ lambda ; a:f64[] b:f64[]. let c:f64[] = mul a 0.5:~f64[] in (b, c) }, [...1., ...2., ...])
    >>> stage_step(lambda x: (x, x), 1.0, "my_loop: the step")
    Traceback (most recent call last):
      ...
    corejax.errors.CorejaxTypeError: my_loop: the step returns a carry of a different structure than it was given...
      ...
    """
    leaves, tree = flatten(init)
    leaves = values(leaves, what.partition(":")[0], namer(root, init))
    _, in_tree = flatten((*first, init))

    def stage(avals: list[ShapedArray]) -> tuple[Staged, Sequence[ShapedArray]]:
        staged = stage_function(step, [*first, *avals], in_tree, what)
        return staged, staged.closed.out_avals

    leaves, staged = settle(leaves, stage)
    check_carry(what, tree, [aval_of(x) for x in leaves], staged.out_tree, staged.closed.out_avals, root)
    return StagedStep(staged.jaxpr, staged.consts, leaves, tree)


def settle(leaves: Sequence[object], step: Callable[[list[ShapedArray]], tuple[T, Sequence[ShapedArray]]]
           ) -> tuple[list[Any], T]:
    """Convert a carry's initial values to types that a step preserves; also return what `step` made for those types.

    A Python scalar is weakly typed: if a step turns it into another dtype, it is converted to that dtype and the body
    is staged again. A value that is the same on all devices of a mesh is made to vary if a step's result does.
    `step(avals)` stages the body for a carry of these types, and returns whatever the caller needs from that and the
    types of the new carry. Nothing else is converted: it is up to the caller to reject a carry that still changes type.
    """
    leaves = list(leaves)
    while True:
        made, avals_out = step([aval_of(x) for x in leaves])
        promoted = [_promoted(x, aval) for x, aval in zip(leaves, avals_out, strict=False)]
        if len(avals_out) != len(leaves) or all([x is old for x, old in zip(promoted, leaves, strict=True)]):
            return leaves, made
        leaves = promoted


def _promoted(x: object, out: ShapedArray) -> Any:
    """An initial value in a type that fits what a step returns: promoted if it is weak, varying along as many axes.

    It isn't weak afterwards. A bool stays a bool: True isn't meant as a number to count from.
    """
    x, aval = varied(x, out.varying), aval_of(x)
    if not aval.weak_type or aval.dtype in (out.dtype, dtypes.bool_) or out.dtype == dtypes.float0:
        return x
    dtype, _ = dtypes.promote((aval.dtype, True), (out.dtype, out.weak_type))
    return roles.convert(x, dtype, False)
