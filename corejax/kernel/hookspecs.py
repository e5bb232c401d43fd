"""The hooks of a primitive: what each gets, what it returns, the law it keeps, and what happens without it.

Operands come as one sequence. Params are keyword-only: a primitive's params are the keyword-only arguments of its
`abstract_eval` (of `decompose` if it has none), and each other hook names those that it reads. A primitive with one
result returns the value itself; with `multiple_results = True`, a sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import numpy as np

    from corejax.base.avals import ShapedArray
    from corejax.kernel.jaxpr import JaxprEqn

#: The version of the contract between kernel and packs. A plugin may state the one that it was written for.
API_VERSION = 1

hookspec = pluggy.HookspecMarker("corejax")


@hookspec(firstresult=True)
def abstract_eval(avals: Sequence[ShapedArray]) -> Any:
    """`abstract_eval(avals, *, ...)`: the types of the results, from the types of the operands.

    Gets `ShapedArray`s, returns one (or a sequence of them). The result must depend only on the arguments, since it is
    cached. Raise an error for operands that don't fit. Required, unless there is `decompose`: then that is traced.
    """


@hookspec(firstresult=True)
def impl(args: Sequence[Any]) -> Any:
    """`impl(args, *, ...)`: the results, computed by NumPy from NumPy arrays.

    The results have exactly the types that `abstract_eval` returns, and the values that the compiled program gives. It
    must not write to its operands. Without it: the primitive is compiled for each call signature.
    """


@hookspec(firstresult=True)
def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """`jvp(primals, tangents, *, ...)`: the pair (results, tangents of the results).

    It must be linear in the tangents, and written with differentiable functions. Tangents are arrays, unless the plugin
    declares `symbolic_zeros = True`: then those known to be zero are `Zero`s. Tangents of integers are always `Zero`s.
    It isn't called if all tangents are zero. Declarations in its place: `partials`, `factors`, `linear`,
    `not_differentiable`. Without it: derived from `decompose`, else differentiating is an error.
    """


@hookspec(firstresult=True)
def transpose(cotangents: Any, args: Sequence[Any]) -> Any:
    """`transpose(cotangents, args, *, ...)`: for each operand its cotangent, or None.

    The operands to transpose with respect to arrive as `Linear(aval)`, the others as values. A cotangent has the type
    of its operand. The law: <ct, f(x)> = <transpose(ct), x>, without conjugation. Declaration in its place:
    `not_linear`. Without it: derived from `decompose`, else reverse mode is an error.
    """


@hookspec(firstresult=True)
def vmap(axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """`vmap(axis, args, dims, *, ...)`: the pair (results, where their batch axes are).

    `axis` has a `size` and a `name`; a dim is the position of an operand's batch axis, or None. The law: the slices of
    the result are the results of the slices. Without it: derived from `decompose`, else one slice at a time, with a
    warning.
    """


@hookspec(firstresult=True)
def xla_translation(ctx: Any, args: Sequence[Any]) -> Any:
    """`xla_translation(ctx, args, *, ...)`: StableHLO values, from StableHLO values.

    The results have the types `ctx.avals_out`. Programs that differ only in params that no lowering names are compiled
    once. A rule of `corejax.rules` whose name ends in `@PLATFORM` is the lowering for that platform only. Without it:
    derived from `decompose`, else compiled programs call back into `impl`, with a warning.
    """


@hookspec(firstresult=True)
def decompose(args: Sequence[Any]) -> Any:
    """`decompose(args, *, ...)`: the same results, computed with other primitives.

    Every missing hook is derived from it.
    """


@hookspec(firstresult=True)
def samples(rng: np.random.Generator) -> Any:
    """`samples(rng)`: an iterable of `Sample`s for the conformance kit; `rng` is a NumPy generator."""


@hookspec(firstresult=True)
def evaluate(args: Sequence[Any]) -> Any:
    """`evaluate(args, *, ...)`: the results for concrete arrays, computed by binding other primitives.

    For primitives that carry programs and don't have to compile them: a branch is taken, a call is made. Gets
    `Array`s, wherever they live, and returns a sequence: `multiple_results` must be declared. Without it: `impl`, else
    compiled for each call signature.
    """


@hookspec(firstresult=True)
def partial_eval(eqn: JaxprEqn, unknown_in: Sequence[bool]) -> Any:
    """`partial_eval(eqn, unknown_in)`: split an equation into what is known now and what isn't.

    Returns (known_eqn or None, staged_eqn or None, unknown_out, residual_vars). Only with `multiple_results`. Without
    it: everything is unknown if any operand is.
    """


@hookspec(firstresult=True)
def recompute(eqn: JaxprEqn, unknown_in: Sequence[bool], saved_by: Any) -> Any:
    """`recompute(eqn, unknown_in, saved_by)`: split an equation; what waits is computed again, but for saved values.

    Returns (known_eqn or None, staged_eqn, unknown_out, saved_vars): the first computes the known results, and those
    values within it for which `saved_by(primitive, *avals, **params)` is true; the second computes all results, from
    these and the operands. Only with `multiple_results`. Without it, or if it returns None, `saved_by` is asked about
    the whole equation.
    """


@hookspec(firstresult=True)
def dce(eqn: JaxprEqn, used_out: Sequence[bool]) -> Any:
    """`dce(eqn, used_out)`: the pair (used_in, smaller equation or None). Without it: uses all operands or none."""


@hookspec(firstresult=True)
def effects(avals: Sequence[ShapedArray]) -> Any:
    """`effects(avals, *, ...)`: the frozenset of the equation's `Effect`s. Without it: none."""


@hookspec(firstresult=True)
def typecheck(avals: Sequence[ShapedArray]) -> Any:
    """`typecheck(avals, *, ...)`: the types of the results, after checking the params. Without it: `abstract_eval`."""


@hookspec(firstresult=True)
def pretty() -> Any:
    """`pretty(*, ...)`: a mapping of the params to print. Without it: all of them."""


@hookspec(firstresult=True)
def linearize(primals: Sequence[Any], nonzero: Sequence[bool]) -> Any:
    """`linearize(primals, nonzero, *, ...)`: (results, residuals, lin) with `lin(residuals, tangents)` the derivative.

    `nonzero` says which operands have tangents. Without it: derived from `jvp`.
    """


@hookspec(firstresult=True)
def carry(lift: Any, args: Sequence[Any]) -> Any:
    """`carry(lift, args, *, ...)`: the results, with the programs among the params transformed by `lift`.

    For primitives that carry programs: how every transformation goes through them under which a value becomes several
    arrays. `args` are boxes of such arrays and plain values; `lift.program(jaxpr, forms)` is a transformed program,
    `lift.parts(args)` are its operands, `lift.results(parts, forms)` what to return; see
    `corejax.plugin.transforming.Lift`. Without it: such a transformation needs a rule of its own, or `decompose`.
    """


#: Each hook with the names of its positional arguments.
HOOKS: dict[str, tuple[str, ...]] = {
    name: tuple(function.__code__.co_varnames) for name, function in list(globals().items())
    if hasattr(function, "corejax_spec")}

#: Hooks that get an equation or a generator, and no params.
WITHOUT_PARAMS = frozenset(("samples", "partial_eval", "recompute", "dce"))

#: Hooks that always take results as a sequence: for primitives with `multiple_results`.
FOR_SEVERAL = frozenset(("evaluate", "partial_eval", "recompute"))
