"""`scan` and `map`: loops of known length in which each step reads a slice of each input and writes one of each output.

The primitive and its rules are in `_scan_primitive`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax import lax
from corejax.core import (
    Jaxpr,
    ShapedArray,
    Staged,
    aval_of,
    eval_jaxpr,
    flatten,
    here,
    is_holder,
    namer,
    paths_of,
    stage_function,
    values,
    vmap_jaxpr,
)
from corejax.errors import ConcretizationError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import carrying, public, shaping, structures
from corejax_control_flow._python_loops import Carried, mapped, scanned
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_primitive import run_scan, scan_p
from corejax_control_flow._scan_rules import (
    row_of,
)
from corejax_control_flow.checkpointed_scanning import run_checkpointed

__all__ = ["map", "scan"]

# As a step returns them: what a loop starts with may be a number or an ndarray where the step returns an array.
Carry = TypeVar("Carry")
Stacked = TypeVar("Stacked")

Flags = carrying.Flags
Dims = tuple[int | None, ...]


@public
def scan(f: Callable[[Any, Any], tuple[Carry, Stacked]], init: Any, xs: Any = None, length: int | None = None,
         reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False, *,
         checkpoint_every: int | None = None) -> tuple[Carry, Stacked]:
    """Call `f` with each slice of `xs`, one after the other, and with what it carries from one call to the next.

    `f(carry, x)` returns `(carry, y)`; `carry` starts as `init` and keeps its type, `x` is one slice of `xs` along the
    leading axis. Returns the last carry and the `y`s, stacked. All of them are pytrees of arrays. Without inputs, `xs`
    is None and `length` says how many steps there are; `reverse` starts at the end; `unroll` steps are compiled into
    each round of the loop (True: all of them). With `checkpoint_every`, reverse mode keeps the carry of every so many
    steps only, and computes the steps between them again: the gradient is the same. `_split_transpose` is there for
    JAX's sake, without effect.

    >>> total, sums = lax.scan(lambda total, x: (total + x, total), 0, lax.iota("int64", 5))
    >>> int(total), sums.tolist()
    (10, [0, 0, 1, 3, 6])
    """
    backward = shaping.as_flag("scan", "reverse", reverse)
    every = None if checkpoint_every is None else _integer("scan", "checkpoint_every", checkpoint_every, 1)
    init_leaves, carry_tree = flatten(init)
    x_leaves, x_tree = flatten(xs)
    init_leaves = values(init_leaves, "scan", namer("init", init))
    x_leaves = values(x_leaves, "scan", namer("xs", xs))
    steps = _length("scan", [aval_of(x) for x in x_leaves], xs, length)
    step = _Step(f, carry_tree, flatten((init, xs))[1], [aval_of(x) for x in x_leaves])
    if steps and carrying.runs_python() and not any([is_holder(x) for x in x_leaves]):
        return scanned(f, Carried("scan: the body", init, "init"), x_tree.unflatten(x_leaves), steps, backward)
    init_leaves, staged = carrying.settle(init_leaves, step)
    step.check(staged, init_leaves)
    body = Body(staged.jaxpr, len(staged.consts), len(init_leaves))
    operands = [*staged.consts, *init_leaves, *x_leaves]
    loop: dict[str, Any] = {"length": steps, "reverse": backward, "unroll": _unroll(unroll, steps)}
    outs = (run_scan(body, operands, **loop) if every is None else
            run_checkpointed(body, operands, **loop, every=every))
    pair = staged.out_tree.unflatten(outs)
    return pair[0], pair[1]


#: As of functions that `define` makes.
scan.primitive = scan_p.primitive  # type: ignore[attr-defined]


@public
def map(f: Callable[[Any], Stacked], xs: Any, *, batch_size: int | None = None) -> Stacked:
    """Apply `f` to each slice of `xs` along its leading axes, one after the other, and stack the results.

    With `batch_size`, it is mapped over that many slices at a time; 0 is as None.

    >>> lax.map(lambda x: x * x, lax.iota("int64", 4)).tolist()
    [0, 1, 4, 9]
    """
    if not callable(f):
        raise _not_callable("map", f)
    leaves, tree = flatten(xs)
    leaves = values(leaves, "map", namer("xs", xs))
    avals = [aval_of(x) for x in leaves]
    length = _length("map", avals, xs, None)
    if length and carrying.runs_python() and not any([is_holder(x) for x in leaves]):
        return mapped("map: the function", f, tree.unflatten(leaves), length)  # type: ignore[no-any-return]
    staged = stage_function(f, [row_of(aval) for aval in avals], flatten((xs,))[1], "map: the function")
    size = 0 if batch_size is None else _integer("map", "batch_size", batch_size, 0)
    batched = size and not staged.jaxpr.effects  # what happens for each slice happens in their order
    outs = _map_batches(staged, leaves, length, size) if batched else _map_slices(staged, leaves, length)
    return staged.out_tree.unflatten(outs)  # type: ignore[no-any-return]


def _map_slices(staged: Staged, xs: Sequence[Any], length: int) -> list[Any]:
    return run_scan(Body(staged.jaxpr, len(staged.consts), 0), [*staged.consts, *xs], length=length, reverse=False,
                    unroll=1)


def _map_batches(staged: Staged, xs: Sequence[Any], length: int, size: int) -> list[Any]:
    """The same, `size` slices at a time; the remaining ones go last, together."""
    jaxpr, n_consts = staged.jaxpr, len(staged.consts)

    def at_once(size: int) -> Jaxpr:
        dims = (None,) * n_consts + (0,) * len(xs)
        return vmap_jaxpr(jaxpr, size, None, dims, (0,) * len(jaxpr.outvars))[0]

    count, rest = divmod(length, size)
    outs: list[Any] = []
    if count:
        full = [lax.reshape(lax.slice_in_dim(x, 0, count * size), (count, size, *aval_of(x).shape[1:])) for x in xs]
        rows = run_scan(Body(at_once(size), n_consts, 0), [*staged.consts, *full], length=count, reverse=False,
                           unroll=1)
        outs = [lax.reshape(y, (count * size, *aval.shape)) for y, aval in zip(rows, jaxpr.out_avals, strict=True)]
    if rest or not count:
        last = eval_jaxpr(at_once(rest), (), *staged.consts, *[lax.slice_in_dim(x, count * size, length) for x in xs])
        outs = [lax.concatenate(pair, 0) for pair in zip(outs, last, strict=True)] if outs else last
    return outs


# Checks

class _Step:
    """Stages the user's body for a carry of given types, and checks it."""

    def __init__(self, f: Any, carry_tree: Any, in_tree: Any, x_avals: Sequence[ShapedArray]) -> None:
        if not callable(f):
            raise _not_callable("scan", f)
        self.f, self.carry_tree, self.in_tree = f, carry_tree, in_tree
        self.row_avals = [row_of(aval) for aval in x_avals]

    def __call__(self, carry_avals: Sequence[ShapedArray]) -> tuple[Staged, Sequence[ShapedArray]]:
        staged = stage_function(self.f, [*carry_avals, *self.row_avals], self.in_tree, "scan: the body")
        return staged, staged.closed.out_avals[: self._carry_of(staged).num_leaves]

    def _carry_of(self, staged: Staged) -> Any:
        """The structure of the carry that the body returns."""
        children = staged.out_tree.children()
        example = staged.out_tree.unflatten(range(staged.out_tree.num_leaves))
        if not isinstance(example, (tuple, list)) or len(children) != 2:
            raise CorejaxTypeError(
                "scan: the body must return a pair", where=here(), wanted="(carry, y), where y may be None",
                got=f"a {type(example).__name__} of {len(children)}" if children else "one array",
                todo="return the next carry and what to stack: `return carry, y`")
        return children[0]

    def check(self, staged: Staged, init: Sequence[Any]) -> None:
        """Raise if the body changes the carry's structure or a type."""
        tree = self._carry_of(staged)
        structures.check_carry("scan: the body", self.carry_tree, [aval_of(x) for x in init], tree,
                               staged.closed.out_avals[: tree.num_leaves])


def _length(what: str, avals: Sequence[ShapedArray], xs: Any, length: Any) -> int:
    """The number of steps, on which the inputs and `length` must agree."""
    for i, aval in enumerate(avals):
        if not aval.shape:
            raise CorejaxValueError(f"{what}: xs{paths_of(xs)[i]} has no leading axis to scan over", got=str(aval),
                                    wanted="arrays of at least one axis", where=here(),
                                    todo="close over values that are the same in each step, or carry them")
    sizes = [aval.shape[0] for aval in avals]
    if len(set(sizes)) > 1:
        paths = paths_of(xs)
        raise CorejaxValueError(
            f"{what}: the leading axes of xs differ in size", where=here(), wanted="one size for all of them",
            got="; ".join([f"{aval} for xs{path}" for aval, path in zip(avals, paths, strict=True)]),
            todo="slice or pad them to one length")
    if length is None:
        if not sizes:
            raise CorejaxValueError(f"{what}: the number of steps isn't given", where=here(),
                                    got="no arrays in xs and no length", wanted="one of them",
                                    todo="give xs, or length=n")
        return sizes[0]
    given = _integer(what, "length", length, 0)
    if sizes and given != sizes[0]:
        raise CorejaxValueError(f"{what}: length must be the size of the leading axes of xs", where=here(),
                                got=f"length={given}", wanted=f"{sizes[0]}, as xs{paths_of(xs)[0]} is {avals[0]}",
                                todo="leave out length, or slice the inputs: x[:n]")
    return given


def _integer(what: str, name: str, value: Any, least: int) -> int:
    """An argument that is a count, known when the program is traced."""
    try:
        found = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)
    except ConcretizationError as error:
        raise ConcretizationError(
            f"{what}: {name} must be known when the program is traced", got=f"a traced {aval_of(value)}",
            wanted="a Python integer", where=here(),
            todo="use lax.fori_loop or lax.while_loop for a computed number of steps, or mark the argument as "
                 "static (static_argnums)") from error
    except TypeError as error:
        raise CorejaxTypeError(f"{what}: {name} must be an integer", got=repr(value), wanted="a Python integer",
                               where=here(), todo=f"pass {name}=int(...)") from error
    if found < least:
        raise CorejaxValueError(f"{what}: {name} is too small", got=found, wanted=f"at least {least}", where=here(),
                                todo=f"check how {name} is computed")
    return found


def _unroll(unroll: int | bool, length: int) -> int:
    """The number of steps in one round of the loop, between 1 and the length of the loop."""
    if isinstance(unroll, (bool, np.bool_)):
        return max(1, length) if unroll else 1
    return max(1, min(_integer("scan", "unroll", unroll, 0), length))


def _not_callable(what: str, f: Any) -> CorejaxTypeError:
    return CorejaxTypeError(f"{what}: the body must be a function", got=f"{kind_of(f)}: {f!r:.80}",
                            wanted="a callable", where=here(), todo=f"pass the function first: lax.{what}(f, ...)")
