"""What custom_linear_solve and custom_root share: programs of one system of equations, over the same unknowns.

Such a primitive carries several programs. Each takes the same constants, and then one or more pytrees like that of the
unknowns; it returns one of those, and maybe more. What it returns first has the types of the unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.core import (
    Jaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    Staged,
    Zero,
    aval_of,
    dtypes,
    flatten,
    here,
    instantiate,
    jvp_jaxpr,
    namer,
    stage_function,
    to_dim,
    values,
    vmap_jaxpr,
)
from corejax.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.ir.surgery import dce, select_outputs
from corejax.plugin import carrying, hookimpl, roles, structures
from corejax_control_flow._types import all_fit, all_match, text_of

Flags = carrying.Flags
Dims = tuple[int | None, ...]
Programs = tuple[Jaxpr | None, ...]


class Unknowns:
    """The unknowns of a system: their structure and types, and the values that the user gave for them.

    `what` is the primitive's name in errors, `root` that of the argument that holds the values.
    """

    def __init__(self, what: str, root: str, given: Any) -> None:
        self.what, self.root = what, root
        leaves, self.tree = flatten(given)
        self.leaves = values(leaves, what, namer(root, given))
        self.in_tree = flatten((given,))[1]
        self.two = flatten((given, given))[1]

    @property
    def avals(self) -> list[ShapedArray]:
        """Their types."""
        return [aval_of(x) for x in self.leaves]

    def settle(self, *functions: tuple[str, Callable[..., Any], bool]) -> list[Staged]:
        """The functions of the unknowns, staged. Numbers among them are converted to what the functions make of them.

        A function is given as its name, itself, and whether it returns a pair, whose second part may be anything.
        """
        def step(avals: list[ShapedArray]) -> tuple[list[Staged], Sequence[ShapedArray]]:
            staged = [self.stage(name, function, has_aux, avals) for name, function, has_aux in functions]
            outs = zip(*[one.closed.out_avals[:len(avals)] for one in staged], strict=True)
            return staged, [_widest(column) for column in outs]

        self.leaves, staged = carrying.settle(self.leaves, step)
        for (name, _, _), one in zip(functions, staged, strict=True):
            self.check_types(name, one)
        return staged

    def stage(self, name: str, function: Callable[..., Any], has_aux: bool = False,
              avals: Sequence[ShapedArray] | None = None, copies: int = 1) -> Staged:
        """A function of one or two copies of the unknowns, which returns another one; its structure is checked."""
        avals = self.avals if avals is None else avals
        tree = self.in_tree if copies == 1 else self.two
        staged = stage_function(function, [*avals] * copies, tree, f"{self.what}: {name}")
        found = staged.out_tree
        if has_aux:
            children = found.children()
            example = found.unflatten(range(found.num_leaves))
            if not isinstance(example, (tuple, list)) or len(children) != 2:
                raise CorejaxTypeError(
                    f"{self.what}: with has_aux, {name} must return a pair", where=here(),
                    got=f"a {type(example).__name__} of {len(children)}" if children else "one array",
                    wanted="(solution, aux), where aux may be anything", todo="return both, the solution first")
            found = children[0]
        other = structures.tree_difference(found, self.tree)
        if other is not None:
            raise CorejaxTypeError(
                f"{self.what}: {name} returns a different structure than {self.root}, at result{other.path}",
                got=f"{other.got}, in {structures.shown(found)}", where=here(),
                wanted=f"{other.wanted}, in {structures.shown(self.tree)}",
                todo="return the containers of the unknowns" + (
                    "; if it returns more, pass has_aux=True" if name.endswith("solve") and not has_aux else ""))
        self._check_shapes(name, staged)
        return staged

    def check_types(self, name: str, staged: Staged) -> None:
        """Raise unless what a function returns has the types of the unknowns."""
        wrong = structures.type_differences(self.tree, staged.closed.out_avals[:len(self.leaves)], self.avals)
        if wrong:
            raise CorejaxTypeError(
                f"{self.what}: {name} returns another dtype than that of {self.root}", where=here(),
                got="; ".join([f"{leaf.got} at result{leaf.path}" for leaf in wrong]),
                wanted="; ".join([f"{leaf.wanted}, as {self.root}{leaf.path}" for leaf in wrong]),
                todo=f"convert one of them: x.astype(...); the solution has the types of {self.root}")

    def _check_shapes(self, name: str, staged: Staged) -> None:
        found = staged.closed.out_avals[:len(self.leaves)]
        if [a.shape for a in found] == [a.shape for a in self.avals]:
            return
        i, got, wanted = next((i, a, b) for i, (a, b) in enumerate(zip(found, self.avals, strict=True))
                              if a.shape != b.shape)
        path = structures.leaf_paths(self.tree)[i]
        raise CorejaxValueError(
            f"{self.what}: {name} returns another shape than that of {self.root}", where=here(),
            got=f"{got} at result{path}", wanted=f"{wanted}, as {self.root}{path}",
            todo="there are as many equations as unknowns, and a solution has the shapes of the unknowns")

    def fit(self, name: str, given: Any) -> list[Any]:
        """The leaves of what a function of the unknowns is called with, in their types; numbers are converted."""
        leaves, tree = flatten(given)
        other = structures.tree_difference(tree, self.tree)
        if other is not None:
            raise CorejaxTypeError(
                f"{self.what}: {name} is called with a different structure than {self.root}, at x{other.path}",
                got=f"{other.got}, in {structures.shown(tree)}", where=here(),
                wanted=f"{other.wanted}, in {structures.shown(self.tree)}", todo="pass the containers of the unknowns")
        found = values(leaves, self.what, namer("x", given))
        for i, (x, aval) in enumerate(zip(found, self.avals, strict=True)):
            own = aval_of(x)
            if own.shape != aval.shape or (own.dtype != aval.dtype and (
                    not own.weak_type or dtypes.promote((own.dtype, True), (aval.dtype, False))[0] != aval.dtype)):
                raise CorejaxTypeError(
                    f"{self.what}: {name} is called with another type than that of {self.root}", got=str(own),
                    wanted=f"{aval}, as {self.root}{structures.leaf_paths(self.tree)[i]}", where=here(),
                    todo="pass arrays of the shapes and dtypes of the unknowns")
        return [x if (own := aval_of(x)) is aval else roles.convert(x, aval.dtype, aval.weak_type)
                for x, aval in zip(found, self.avals, strict=True)]


def check_function(what: str, name: str, function: Any, meaning: str) -> None:
    """Raise unless an argument is a function; `meaning` says what its own arguments are."""
    if not callable(function):
        raise CorejaxTypeError(f"{what}: {name} must be a function", got=f"{kind_of(function)}: {function!r:.80}",
                               wanted=f"a function {name}({meaning})", where=here(),
                               todo=f"{name}=lambda {meaning}: ...")


def check_programs(what: str, programs: Sequence[tuple[str, Jaxpr | None, int, bool]], consts: int,
                   avals: Sequence[ShapedArray]) -> None:
    """Raise unless each program takes the constants and copies of the unknowns, and returns one of these.

    A program is given as its name, itself, the number of copies, and whether it may return more.
    """
    if not 0 <= consts <= len(avals):
        raise CorejaxValueError(f"{what}: there can't be {consts} constants", primitive=what, where=here(), got=consts,
                                wanted=f"how many of the {len(avals)} operands are constants: the first ones",
                                todo="count the operands that all programs take before the unknowns")
    unknowns = avals[consts:]
    for name, jaxpr, copies, has_aux in programs:
        if jaxpr is None:
            continue
        wanted = [*avals[:consts], *[*unknowns] * copies]
        outs = jaxpr.out_avals[:len(unknowns)] if has_aux else jaxpr.out_avals
        if not all_fit(wanted, jaxpr.in_avals) or not all_match(outs, unknowns):
            raise CorejaxTypeError(
                f"{what}: the operands don't fit the program {name}", primitive=what, where=here(),
                got=f"({text_of(jaxpr.in_avals)}) -> ({text_of(jaxpr.out_avals)})",
                wanted=f"({text_of(wanted)}) -> ({text_of(unknowns)}{', ...' * has_aux})",
                todo="pass the constants, which all programs take, and then the unknowns")


def _widest(avals: Sequence[ShapedArray]) -> ShapedArray:
    """The type that results of several functions are promoted to, in the shape of the first."""
    first = avals[0]
    for aval in avals[1:]:
        dtype, weak = dtypes.promote((first.dtype, first.weak_type), (aval.dtype, aval.weak_type))
        first = ShapedArray(first.shape, dtype, weak, first.varying | aval.varying)
    return first


# Rules

class Solved:
    """Hooks of a primitive whose params are the fields of a named tuple: programs, the second of which is the solver,
    and then the number of constants.

    A subclass has `_kind`, the class of that tuple, and `_copies`, how many copies of the unknowns each program takes.
    """

    name: str
    tracks_varying = True
    multiple_results = True
    symbolic_zeros = True

    _kind: Any
    _copies: tuple[int, ...]

    def attached(self, primitive: Primitive) -> None:
        """Called with the primitive that was made from this plugin."""
        self._primitive = primitive

    def _bind(self, system: Any, operands: Sequence[Any]) -> list[Any]:
        return self._primitive.bind(*operands, **self._settled(system, operands)._asdict())  # type: ignore[no-any-return]

    @hookimpl
    def evaluate(self, args: Any, *, solve: Jaxpr) -> list[Any]:
        carrying.check_operands(self.name, solve, [aval_of(x) for x in args])
        return carrying.run(solve, args)

    def widened(self, axes: Sequence[Any], **params: Any) -> dict[str, Any]:
        """The programs for operands that vary along these axes of a mesh. All take and return the same unknowns."""
        *programs, n = self._kind(**params)
        if not any(axes):
            return {}
        size = len(programs[0].outvars)
        consts, unknowns = list(axes[:n]), list(axes[n:])
        while True:
            made = [None if one is None else carrying.retyped(one, [*consts, *unknowns * copies])
                    for one, copies in zip(programs, self._copies, strict=True)]
            rows = [[v.aval.varying for v in (*one.invars[n:n + size], *one.outvars[:size])] for one in made if one]
            grown = [frozenset().union(*[row[i] | row[size + i] for row in rows]) for i in range(size)]
            if grown == unknowns:
                made = [one and carrying.retyped(one, (), [*unknowns, *[()] * (len(one.outvars) - size)])
                        for one in made]
                return dict(self._kind(*made, n)._asdict())
            unknowns = grown

    def _settled(self, system: Any, operands: Sequence[Any]) -> Any:
        return system._replace(**self.widened([aval_of(x).varying for x in operands], **system._asdict()))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, **params: Any) -> Any:
        *programs, n = self._kind(**params)
        made, mapped, places = batched(tuple(programs), self._copies, n, axis, tuple(dims))
        unknowns = [to_dim(x, d, 0, axis.size) if flag else x
                    for x, d, flag in zip(args[n:], dims[n:], mapped, strict=True)]
        return self._bind(self._kind(*made, n), [*args[:n], *unknowns]), places[1]

    @hookimpl
    def carry(self, lift: Any, args: Any, *, solve: Jaxpr, **params: Any) -> Any:
        """What the solver computes, transformed: boxes solve no equation that this primitive knows."""
        return lift.through(solve, args)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, solve: Jaxpr) -> Any:
        return ctx.call(solve, args, solve.name or self.name)

    @hookimpl
    def dce(self, eqn: JaxprEqn, used_out: Any) -> Any:
        def remade(system: Any, invars: Any, outvars: Any) -> JaxprEqn:
            return eqn.replace(invars=invars, outvars=outvars, params=system._asdict(), effects=system.solve.effects)
        return carrying.shorten(eqn, used_out, _shorter(self._kind(**eqn.params), tuple(used_out)), remade)

    @hookimpl
    def effects(self, avals: Any, *, solve: Jaxpr) -> frozenset[Any]:
        return solve.effects


@carrying.remembered
def _shorter(system: Any, used_out: Flags) -> carrying.Shorter[Any] | None:
    """The system without what its solver returns beside the solution, and without unused constants, where possible.

    The solution is kept whole: its parts are those of one point.
    """
    *programs, n = system
    size = len(programs[0].outvars)
    kept = (*[True] * size, *used_out[size:])
    smaller, needed = without_results(tuple(programs), n, kept)
    if all(kept) and all(needed):
        return None
    return carrying.Shorter(type(system)(*smaller, sum(needed)), (*needed, *[True] * size), kept)


def fitted(x: Any, aval: ShapedArray) -> Any:
    """A tangent or cotangent as weak as it has to be."""
    if type(x) is Zero or aval_of(x).weak_type is aval.weak_type:
        return x
    return roles.convert(x, aval.dtype, aval.weak_type)


def change_of(jaxpr: Jaxpr, consts: Sequence[Any], dots: Sequence[Any], unknowns: Sequence[Any]) -> list[Any]:
    """The tangents of what a program returns, if the constants have the tangents `dots`, and the unknowns none."""
    flags = carrying.nonzero(dots)
    avals = [aval.tangent for aval in jaxpr.out_avals]
    if True not in flags:
        return [Zero(aval) for aval in avals]
    program, used, found = _change(jaxpr, flags)
    operands = carrying.marked([*consts, *unknowns, *carrying.without_zeros(dots)], used)
    return carrying.with_zeros(carrying.run(program, operands), found, avals)


@carrying.remembered
def _change(jaxpr: Jaxpr, flags: Flags) -> tuple[Jaxpr, Flags, Flags]:
    """The program of the tangents alone, the operands that it takes, and which results have a tangent."""
    n = len(jaxpr.outvars)
    both, found = jvp_jaxpr(jaxpr, [*flags, *[False] * (len(jaxpr.invars) - len(flags))])
    program, used = dce(both, [*[False] * n, *[True] * sum(found)])
    return program, used, found


def right_hand_side(dots: Sequence[Any], unknowns: Sequence[Any]) -> list[Any]:
    """Tangents as operands of the types of the unknowns; those of integers are zeros."""
    return [instantiate(Zero(aval_of(x))) if type(t) is Zero else t for t, x in zip(dots, unknowns, strict=True)]


def batched(programs: Programs, copies: Sequence[int], consts: int, axis: Any, dims: Dims
            ) -> tuple[Programs, Flags, list[list[int | None]]]:
    """Mapped programs, which unknowns are mapped, and where the results of each program have the axis.

    An unknown is mapped if any program makes it so. All have the axis in front.
    """
    const_dims = dims[:consts]

    def step(mapped: Flags) -> tuple[tuple[list[Jaxpr | None], list[list[int | None]]], Flags]:
        front = [0 if flag else None for flag in mapped]
        made: list[Jaxpr | None] = []
        places: list[list[int | None]] = []
        for jaxpr, count in zip(programs, copies, strict=True):
            if jaxpr is None:
                made.append(None)
                places.append([])
                continue
            rest = [None] * (len(jaxpr.outvars) - len(front))
            program, found = vmap_jaxpr(jaxpr, axis.size, axis.name, [*const_dims, *front * count], [*front, *rest])
            made.append(program)
            places.append([*found])
        rows = [[d is not None for d in found[:len(front)]] for found in places if found]
        return (made, places), carrying.either(*rows)

    mapped, (made, places) = carrying.fixed_point([d is not None for d in dims[consts:]], step)
    return tuple(made), mapped, places


def without_results(programs: Programs, consts: int, used: Sequence[bool]) -> tuple[Programs, Flags]:
    """The programs, the solver reduced to these results, and which constants any of them still needs."""
    first, solver, *others = programs
    assert solver is not None
    selected = [first, select_outputs(solver, [i for i, flag in enumerate(used) if flag]), *others]

    def kept(jaxpr: Jaxpr, constants: Sequence[bool]) -> tuple[Jaxpr, Flags]:
        return dce(jaxpr, [True] * len(jaxpr.outvars), [*constants, *[True] * (len(jaxpr.invars) - consts)])

    rows = [kept(one, [False] * consts)[1][:consts] for one in selected if one is not None]
    needed = carrying.either(*rows)
    # copies, since caches must not hold the programs themselves
    return tuple([None if one is None else kept(one, needed)[0].replace() for one in selected]), needed
