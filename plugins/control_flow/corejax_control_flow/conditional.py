"""`cond`: one of several programs, chosen by an index. All take the same operands and return values of the same types.

Each rule transforms all branches, makes their results agree and applies the conditional to the new branches. On values,
outside of any program that is being traced, only the branch taken is evaluated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from corejax import lax
from corejax.core import (
    Alternative,
    Array,
    ArrayLike,
    Atom,
    Jaxpr,
    JaxprEqn,
    Literal,
    ShapedArray,
    Var,
    aval_of,
    context,
    dtypes,
    eval_jaxpr,
    flatten,
    here,
    is_concrete,
    is_holder,
    named_scope,
    namer,
    stage,
    stage_function,
    to_dim,
    values,
    vmap_jaxpr,
)
from corejax.errors import ConcretizationError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.ir.surgery import forwarded_outputs, select_outputs
from corejax.plugin import Sample, carrying, define, hookimpl, public, roles
from corejax_control_flow._branch_saving import saving
from corejax_control_flow._branches import (
    Branches,
    backward,
    batched,
    check_agreement,
    evaluated,
    forward,
    joined,
    lifted,
    out_avals_of,
    own_copies,
    settled,
    shorter,
    split,
    without_dead_code,
)
from corejax_control_flow._types import all_fit, all_match, text_of
from corejax_control_flow.untaken import untaken

__all__ = ["cond", "switch"]

Flags = carrying.Flags
Place = tuple[str, Any]

Result = TypeVar("Result")  # of the branches: a pytree

_FLAG = ShapedArray((), dtypes.bool_)


class Cond:
    """`cond(pred, true_fun, false_fun, *operands)`: `true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`.

    The predicate is a boolean, or a number that counts as one. Both functions return pytrees of the same structure,
    with arrays of the same types; both are traced, one is run. They may close over arrays. Under `vmap` with a
    batched predicate, both are run and the results are selected.

    >>> lax.cond(True, lambda x: x + 1.0, lambda x: x - 1.0, 5.0).item()
    6.0
    """

    name = "cond"
    holds = "branch"
    structural = True
    tracks_varying = True
    multiple_results = True
    symbolic_zeros = True

    def function(self, bind: Any) -> Any:
        def cond(pred: ArrayLike, true_fun: Callable[..., Result], false_fun: Callable[..., Result], *operands: Any,
                 operand: Any = ...) -> Result:
            operands = _with_operand("cond", operands, operand)
            if not callable(true_fun) and callable(false_fun) and len(operands) == 2 and callable(operands[1]):
                # as older programs have it: cond(pred, x, f, y, g) is f(x) or g(y)
                of_true, of_false = false_fun, operands[1]
                operands = (true_fun, operands[0])
                true_fun, false_fun = (lambda x, y: of_true(x)), (lambda x, y: of_false(y))
            index = _index_of_predicate(pred)
            return _conditional("cond", index, (true_fun, false_fun), ("true_fun", "false_fun"), operands,  # type: ignore[no-any-return]
                                backwards=True)
        return cond

    @hookimpl
    def evaluate(self, args: Any, *, branches: Branches) -> list[Any]:
        if len(args) != 1 + len(branches[0].invars):
            _check([aval_of(x) for x in args], branches)
        return evaluated(branches, _nearest(int(args[0]), len(branches)), args[1:])

    @hookimpl
    def abstract_eval(self, avals: Any, *, branches: Branches) -> list[ShapedArray]:
        _check(avals, branches)
        return [carrying.along(aval, avals[0].varying) for aval in out_avals_of(branches)]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, branches: Branches) -> Any:
        return carrying.jvp(primals[1:], tangents[1:], partial(forward, branches), partial(_cond, primals[0]))

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, branches: Branches) -> Any:
        index, *operands = args
        return [None, *carrying.transpose(cotangents, operands, partial(backward, branches), partial(_cond, index))]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, branches: Branches) -> Any:
        index, *operands = args
        if dims[0] is not None and carrying.effects_of(branches):
            return carrying.one_by_one(cond.primitive, axis, args, dims, {"branches": branches})
        if dims[0] is not None:
            return _Selection(axis, index, branches).run(operands, dims[1:])
        mapped, out_dims = batched(branches, axis.size, axis.name, tuple(dims[1:]))
        return _cond(index, mapped, operands), out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, branches: Branches) -> Any:
        index, *operands = args
        if not _is_predicate(ctx, index):  # one below 0 would choose the last branch, as one too large does
            index = ctx.op("stablehlo.maximum", [index, ctx.constant(np.int32(0))], None, [index.type])
        kinds = list(ctx.out_types)

        def case(tokens: list[Any], token_types: list[Any]) -> Any:
            made = ctx.ir.Operation.create("stablehlo.case", results=[*token_types, *kinds], operands=[index],
                                           regions=len(branches))
            for region, branch in zip(made.regions, branches, strict=True):
                with ctx.inside(region.blocks.append(), tokens):
                    outs = ctx.call(branch, operands, branch.name or "branch")
                    ctx.op("stablehlo.return", [*ctx.tokens, *outs], None, [])
            return made.results

        return ctx.in_order(case)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        if unknown_in[0]:
            return None, eqn, (True,) * len(eqn.outvars), []
        found = _split(eqn.params["branches"], tuple(unknown_in[1:]), eqn.invars[0].aval.varying)
        return carrying.divide(eqn, found, partial(_remade, eqn))

    @hookimpl
    def recompute(self, eqn: Any, unknown_in: Any, saved_by: carrying.Policy) -> Any:
        if unknown_in[0]:
            return None, eqn, (True,) * len(eqn.outvars), []
        found = saving(eqn.params["branches"], tuple(unknown_in[1:]), saved_by, eqn.invars[0].aval.varying)
        n = len(found.saved)

        def remake(branches: Branches, invars: Sequence[Atom], outvars: Sequence[Var]) -> JaxprEqn:
            if branches is found.staged:  # the index comes first, before what was saved
                invars = [invars[n], *invars[:n], *invars[n + 1:]]
            return _remade(eqn, branches, invars, outvars)

        return carrying.recompute(eqn, found, unknown_in, remake)

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        return carrying.shorten(eqn, used_out, _shorter(eqn.params["branches"], tuple(used_out)), partial(_remade, eqn))

    @hookimpl
    def effects(self, avals: Any, *, branches: Branches) -> frozenset[Any]:
        return carrying.effects_of(branches)

    @hookimpl
    def carry(self, lift: Any, args: Any, *, branches: Branches) -> Any:
        index, *operands = args
        index = lift.plain(index, "the index of a branch")
        new, out_forms = lifted(branches, lift, lift.forms(operands))
        return lift.results(_cond(index, new, lift.parts(operands)), out_forms)

    def widened(self, axes: Sequence[Any], *, branches: Branches) -> dict[str, Any]:
        """The branches for an index and operands that vary along these axes of a mesh."""
        return {"branches": settled(branches, axes[1:], axes[0])}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def sample(index: int, args: list[Any], *funs: Any, fixed: bool = False, **more: Any) -> Sample:
            avals = [aval_of(x) for x in args]
            branches = tuple([stage(fun, avals, f"branch_{i}").jaxpr for i, fun in enumerate(funs)])
            return Sample([np.int32(index), *args], {"branches": branches},
                          domain=[None if fixed else (0, len(funs) - 1), *[(-3, 3)] * len(args)], **more)

        x, y, n = rng.standard_normal(3), rng.standard_normal(3), np.arange(3, dtype=np.int32)
        two = (lambda x, y: [lax.mul(x, y), x], lambda x, y: [lax.sin(y), lax.cos(lax.mul(x, y))])
        yield sample(0, [x, y], *two)
        yield sample(1, [x, y], *two, results=[np.sin(y), np.cos(x * y)])
        yield sample(2, [x, n], lambda x, n: [x, n], lambda x, n: [lax.mul(2.0, x), lax.add(n, n)],
                     lambda x, n: [lax.exp(x), n])
        yield sample(0, [n, x], lambda n, x: [n, lax.mul(x, x)], lambda n, x: [lax.add(n, n), lax.sin(x)])
        # the branches keep one and two values of a type for their derivatives
        yield sample(1, [x], lambda x: [lax.sin(x)], lambda x: [lax.sin(lax.sin(x))])
        # the derivative of the branch that isn't taken is NaN
        yield sample(0, [x], lambda x: [lax.mul(2.0, x)], lambda x: [lax.sqrt(lax.sub(x, 4.0))], fixed=True)
        half = np.float64(0.5)
        number = sample(1, [half], lambda x: [1.0], lambda x: [lax.sin(x)], results=[float(np.sin(half))])
        yield number
        yield Sample([np.int32(0), 0.5], number.params, domain=number.domain)  # weaker than the branches' input
        yield sample(1, [np.int32(0), x, y], lambda i, x, y: [lax.mul(x, x), x[0]],
                     lambda i, x, y: [switch(i, [lambda: lax.mul(lax.tanh(x), y), lambda: y]), lax.cos(y[0])])
        yield sample(0, [x, y], *two, lambda x, y: [x, lax.mul(y[0], 2.0)], error=TypeError)


cond: Any = define(Cond())


@public
def switch(index: ArrayLike, branches: Sequence[Callable[..., Result]], *operands: Any, operand: Any = ...
           ) -> Result:
    """`branches[index](*operands)`, with the index clamped to the valid range.

    The index is an integer, traced or not. All branches return pytrees of the same structure, with arrays of the same
    types; all are traced, one is run. A single branch is called as it is.

    >>> switch(1, [lambda x: x + 1.0, lambda x: x - 2.0, lambda x: x + 3.0], 5.0).item()
    3.0
    """
    operands = _with_operand("switch", operands, operand)
    try:
        functions = tuple(branches)
    except TypeError as error:
        raise CorejaxTypeError("switch: the branches must be a sequence", got=kind_of(branches), where=here(),
                               wanted="a list of functions", todo="switch(index, [f, g, h], *operands)") from error
    if not functions:
        raise CorejaxValueError("switch: there are no branches", got="an empty sequence", where=here(),
                                wanted="at least one function", todo="give a function for each value of the index")
    place = _index_of_branch(index, len(functions))
    return _conditional("switch", place, functions, [f"branches[{i}]" for i in range(len(functions))], operands)  # type: ignore[no-any-return]


# Binding

def _with_operand(what: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    """The operands, which may be one by keyword; `...` stands for none."""
    if operand is ...:
        return operands
    if operands:
        raise CorejaxTypeError(
            f"{what}: operand= is for a single operand, and there are others", wanted="one of the two", where=here(),
            got=f"operand=..., and {len(operands)} more", todo="pass all operands by position")
    return (operand,)


def _conditional(what: str, index: Any, functions: Sequence[Any], names: Sequence[str], operands: tuple[Any, ...],
                 backwards: bool = False) -> Any:
    """The result of the function that the index selects, counting from the last if `backwards`.

    All functions are traced, and their results compared.
    """
    for name, function in zip(names, functions, strict=True):
        if not callable(function):
            raise CorejaxTypeError(f"{what}: {name} must be a function", got=f"{kind_of(function)}: {function!r:.80}",
                                   wanted="a callable", where=here(),
                                   todo=f"wrap the value: {name}=lambda: ...")
    if len(functions) == 1:
        return functions[0](*operands)
    taken = _known(index) if carrying.runs_python() else None
    if taken is not None:
        i = _nearest(taken, len(functions))
        i = len(functions) - 1 - i if backwards else i
        return carrying.call_python(functions[i], operands, f"{what}: {names[i]}", namer("operands", operands))
    leaves, in_tree = flatten(operands)
    axes = aval_of(index).varying  # a branch that some devices take may sum nothing over all of them
    leaves = [carrying.varied(x, axes) for x in values(leaves, what, namer("operands", operands))]
    avals = [aval_of(x) for x in leaves]
    staged = [stage_function(function, avals, in_tree, f"{what}: {name}")
              for name, function in zip(names, functions, strict=True)]
    check_agreement(what, names, staged)
    branches, consts = joined([s.closed for s in (reversed(staged) if backwards else staged)])
    return staged[0].out_tree.unflatten(_cond(index, branches, [*consts, *leaves]))


def _cond(index: Any, branches: Branches, operands: Sequence[Any]) -> list[Any]:
    """The results of the branch that the index selects: evaluated if the index is known, otherwise bound.

    What is given objects that hold arrays is bound, so that these can say what becomes of their branches.
    """
    taken = None if any(map(is_holder, operands)) else _known(index)
    if taken is not None:
        return evaluated(branches, _nearest(taken, len(branches)), operands)
    branches = settled(branches, [aval_of(x).varying for x in operands], aval_of(index).varying)
    simpler = _simpler(branches)
    if simpler is None:
        return _bind(index, branches, operands)
    found = _bind(index, simpler.branches, [operands[i] for i in simpler.operands])
    return [found[i] if where == "result" else operands[i] if where == "operand" else i
            for where, i in simpler.results]


def _bind(index: Any, branches: Branches, operands: Sequence[Any]) -> list[Any]:
    if not branches[0].outvars and not carrying.effects_of(branches):
        return []
    return cond.primitive.bind(index, *operands, branches=branches)  # type: ignore[no-any-return]


def _is_predicate(ctx: Any, index: Any) -> bool:
    """Whether an index in a compiled program was a bool; the compiler knows then that it chooses between two values."""
    made_by = index.owner
    return getattr(made_by, "name", "") == "stablehlo.convert" and made_by.operands[0].type == ctx.type_of(_FLAG)


def _known(index: Any) -> int | None:
    """The value of an index; None if it is being traced, or may differ between the elements of a batch."""
    if context.trace.is_staging:
        return None
    try:
        return int(index if is_concrete(index) else index.concrete("the index of a branch"))
    except ConcretizationError:
        return None


def _nearest(index: int, count: int) -> int:
    return min(max(index, 0), count - 1)


def _remade(eqn: JaxprEqn, branches: Branches, invars: Sequence[Atom], outvars: Sequence[Var]) -> JaxprEqn:
    """The same equation with other branches."""
    return eqn.replace(invars=invars, outvars=outvars, params={"branches": branches},
                       effects=carrying.effects_of(branches))


# Programs of an index and operands

def _split(branches: Branches, unknown_in: Flags, axes: frozenset[Any] = frozenset()) -> carrying.Split[Branches]:
    """The branches split in two. Both halves choose by the index, operand 0, which varies along `axes` of a mesh."""
    found = split(branches, unknown_in, axes)
    places = [(where, i + 1 if where == "operand" else i) for where, i in found.residuals]
    return found._replace(known_operands=[0, *[i + 1 for i in found.known_operands]],
                          residuals=[("operand", 0), *places])


def _shorter(branches: Branches, used_out: Flags) -> carrying.Shorter[Branches] | None:
    """The branches reduced to the outputs that are used. The index is always needed."""
    found = shorter(branches, used_out)
    return None if found is None else found._replace(used_in=(True, *found.used_in))


class _Simpler(NamedTuple):
    """Smaller branches that do the same: which operands they take, and where each original result is found.

    ("result", i) is their i-th result, ("operand", i) the i-th original operand, ("value", x) is always x.
    """

    branches: Branches
    operands: list[int]
    results: list[Place]


@carrying.remembered
def _simpler(branches: Branches) -> _Simpler | None:
    """Remove outputs that are the same in all branches, duplicate outputs, and dead code; None if there are none."""
    forwarded = [forwarded_outputs(branch) for branch in branches]
    results: list[Place] = []
    seen: dict[Any, Place] = {}
    kept: list[int] = []
    for i, atoms in enumerate(zip(*[branch.outvars for branch in branches], strict=True)):
        sources = {row[i] for row in forwarded}
        key = tuple([_identity(x) for x in atoms])
        if len(sources) == 1 and None not in sources:
            results.append(("operand", sources.pop()))
        elif type(atoms[0]) is Literal and len({*key}) == 1:
            results.append(("value", atoms[0].val))
        else:
            if key not in seen:
                seen[key] = "result", len(kept)
                kept.append(i)
            results.append(seen[key])
    selected = [branch if len(kept) == len(branch.outvars) else select_outputs(branch, kept) for branch in branches]
    smaller, used = without_dead_code(selected, (True,) * len(kept))
    if all(used) and all([new is old for new, old in zip(smaller, branches, strict=True)]):
        return None
    return _Simpler(own_copies(smaller, branches), [i for i, flag in enumerate(used) if flag], results)


def _identity(x: Atom) -> Any:
    """A key that is equal for atoms of one branch, or literals of several, that are certainly the same value."""
    if type(x) is not Literal:
        return x
    return (x.aval, np.asarray(x.val).tobytes()) if not x.aval.shape else (x.aval, id(x.val))


# A batch of indices

class _Selection:
    """A conditional whose index differs between the elements of a batch: all branches run, and results are selected."""

    def __init__(self, axis: Any, index: Any, branches: Branches) -> None:
        self.axis, self.index, self.branches = axis, index, branches
        self.number = Alternative("branch").of
        self._values: dict[Any, Any] = {}

    def run(self, operands: Sequence[Any], dims: Sequence[int | None]) -> tuple[list[Any], list[int | None]]:
        """The selected results, and where the batch axis of each is."""
        size = self.axis.size
        guarded = context.trace.may_differentiate
        results, places = [], []
        out_dims: list[int | None] = []
        for k, branch in enumerate(self.branches):
            mapped, found = vmap_jaxpr(branch, size, self.axis.name, dims)
            args = self._guarded(k, branch, operands, dims) if guarded else operands
            with named_scope(Alternative(f"branch_{k}", self.number)):
                results.append(eval_jaxpr(mapped, (), *args))
            places.append(found)
        outs = []
        for i, aval in enumerate(out_avals_of(self.branches)):
            found_dims = [found[i] for found in places]
            wanted = next((d for d in found_dims if d is not None), 0)
            cases = [x if d is None and not aval.shape else to_dim(x, d, wanted, size)
                     for x, d in zip([row[i] for row in results], found_dims, strict=True)]
            shape = (*aval.shape[:wanted], size, *aval.shape[wanted:])
            out = lax.select_n(self._over(self.index, shape, wanted), *cases)
            outs.append(out if aval_of(out).weak_type == aval.weak_type else
                        roles.convert(out, aval.dtype, aval.weak_type))
            out_dims.append(wanted)
        return outs, out_dims

    def _guarded(self, k: int, branch: Jaxpr, operands: Sequence[Any], dims: Sequence[int | None]) -> list[Any]:
        """The operands, without derivatives where branch `k` isn't taken.

        The derivative of a branch may be infinite or NaN where the branch isn't taken, and zero times that isn't zero.
        So the operands have to be selected at the beginning, like the results at the end.
        """
        computed = {x for eqn in branch.eqns for x in eqn.invars}
        args = []
        for x, d, var in zip(operands, dims, branch.invars, strict=True):
            if not is_concrete(x) and var in computed and dtypes.is_inexact(var.aval.dtype):
                stopped = self._made(("stopped", id(x)), partial(untaken, x))
                x = lax.select_n(*self._where(k, x.aval, d, [stopped, x]))
            args.append(x)
        return args

    def _where(self, k: int, aval: ShapedArray, dim: int | None, cases: list[Any]) -> list[Any]:
        """Operands of a select: `cases[1]` where branch `k` is taken or, if unbatched, if it is taken anywhere.

        The index of two branches is 0 or 1 here, as `cond` and `switch` make it: so it is counted as it is.
        """
        two = len(self.branches) == 2
        taken = self.index if two else self._made((k, "taken"), partial(self._takes, k))
        if dim is not None:
            return [self._over(taken, aval.shape, dim), *(cases[::-1] if two and k == 0 else cases)]
        count = self._made((two or k, "count"), lambda: roles.sum_axes(roles.convert(taken, dtypes.int32), (0,)))
        if two and k == 0:
            count = self._made("first", lambda: lax.lt(count, np.int32(self.axis.size)))
        return [count, *cases]  # any number above 0 names the second case

    def _takes(self, k: int) -> Any:
        """Whether branch `k` is taken, also by an index beyond the branches."""
        compare = lax.le if not k else lax.ge if k == len(self.branches) - 1 else lax.eq
        return compare(self.index, np.int32(k))

    def _over(self, which: Any, shape: tuple[int, ...], dim: int) -> Any:
        """The batch of scalars `which`, broadcast to this shape with the batch axis at `dim`."""
        if len(shape) == 1:
            return which
        return self._made((id(which), shape, dim), lambda: roles.broadcast(which, shape, (dim,)))

    def _made(self, key: Any, make: Callable[[], Any]) -> Any:
        """The result of `make()`, cached."""
        if key not in self._values:
            self._values[key] = make()
        return self._values[key]


# Checks

def _index_of_predicate(pred: Any) -> Any:
    """0 or 1, as an int32."""
    x = _scalar("cond", "the predicate", pred, "a boolean, of rank 0",
                "to choose by element use lax.select or vmap; to choose once, reduce it with x.all() or x.any()")
    dtype = aval_of(x).dtype
    if dtypes.kind(dtype) not in "biuf":
        raise CorejaxTypeError("cond: the predicate must be a boolean", got=f"{pred!r:.60} of type {aval_of(x)}",
                               wanted="a boolean, of rank 0", where=here(), todo="compare it: x != 0")
    if _is_readable_now(x):
        return np.int32(bool(x))
    return lax.convert_element_type(x if dtype == dtypes.bool_ else lax.ne(x, 0), np.int32)


def _index_of_branch(index: Any, count: int) -> Any:
    """The index of one of `count` branches, as an int32."""
    x = _scalar("switch", "the index", index, "an integer, of rank 0",
                "to choose a branch for each element, vmap a function of one index")
    dtype = aval_of(x).dtype
    if dtypes.kind(dtype) not in "iu":
        is_bool = dtype == dtypes.bool_
        raise CorejaxTypeError("switch: the index must be an integer", got=f"{index!r:.60} of type {aval_of(x)}",
                               wanted="an integer, of rank 0", where=here(),
                               todo="use lax.cond for a boolean" if is_bool else "convert it: x.astype('int32')")
    if count == 1:
        return np.int32(0)
    if _is_readable_now(x):
        return np.int32(_nearest(operator.index(x), count))
    if np.can_cast(dtype, np.int32):
        return lax.clamp(0, roles.convert(x, dtypes.int32), count - 1)
    return lax.convert_element_type(lax.clamp(0, x, count - 1), np.int32)  # clamped first: int32 may not hold it


def _scalar(what: str, name: str, x: Any, wanted: str, todo: str) -> Any:
    """A scalar argument as a value."""
    try:
        aval = aval_of(x)
    except CorejaxTypeError as error:
        raise CorejaxTypeError(f"{what}: {name} is {kind_of(x)}", got=repr(x)[:80], wanted=wanted, where=here(),
                               todo=f"pass {wanted.partition(',')[0]} first, then the functions") from error
    if aval.shape:
        raise CorejaxTypeError(f"{what}: {name} must be a scalar", got=str(aval), wanted=wanted, where=here(),
                               todo=todo)
    return values([x], what, lambda _: name)[0]


def _is_readable_now(x: Any) -> bool:
    """Whether it is a value that can be read now, rather than one in a program that is being traced."""
    return type(x) is Array and (hasattr(x, "_host") or not context.trace.is_staging)


def _check(avals: Sequence[ShapedArray], branches: Branches) -> None:
    """Raise if these aren't valid operands and branches of a conditional."""
    if type(branches) is not tuple or not branches or not all([isinstance(b, Jaxpr) for b in branches]):
        raise _refused("the branches must be jaxprs", repr(branches)[:80], "a tuple of at least one jaxpr")
    if not avals or not avals[0].matches(ShapedArray((), dtypes.int32)):
        raise _refused("the first operand must be an index", text_of(avals[:1]), "i32[]")
    first = branches[0]
    for branch in branches:
        if not all_fit(avals[1:], branch.in_avals):
            raise _refused("the operands don't fit a branch", text_of(avals[1:]), text_of(branch.in_avals))
        if not all_match(branch.out_avals, first.out_avals):
            raise _refused("the branches return different types", text_of(branch.out_avals), text_of(first.out_avals))


def _refused(problem: str, got: str, wanted: str) -> CorejaxTypeError:
    return CorejaxTypeError(f"cond: {problem}", primitive="cond", got=got, wanted=wanted, where=here(),
                            todo="pass an index and then the operands of the branches, which all have the same types")
