"""What primitives have in common that combine elements by a function: operands first, then an initial value for each.

The function is a jaxpr of scalars: first those of the elements so far, then those of the next. It has no consts, and
returns as many scalars as there are operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from corejax import lax
from corejax.core import (
    Jaxpr,
    JaxprEqn,
    ShapedArray,
    Staged,
    Zero,
    aval_of,
    dtypes,
    flatten,
    instantiate,
    jvp_jaxpr,
    namer,
    stage,
    stage_function,
    values,
    vmap_jaxpr,
)
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
from corejax.ir.surgery import dce
from corejax.plugin import carrying, families, hookimpl, refused, roles, structures


class Combining:
    """A plugin that combines elements by the function in its param `jaxpr`."""

    name = ""
    multiple_results = True
    symbolic_zeros = True

    #: What a user calls the operands and the initial values.
    _called = ("operands", "init_values")

    #: What shapes that don't fit are.
    _misshapen: type[CorejaxError] = CorejaxValueError

    # What users pass

    def _operands(self, operands: Any, inits: Any) -> tuple[list[Any], list[Any], Any]:
        """The leaves of both, which must have one structure, and that structure."""
        (leaves, tree), (init_leaves, init_tree) = flatten(operands), flatten(inits)
        own, of_inits = self._called
        if structures.tree_difference(init_tree, tree) is not None or not leaves:
            raise refused(self.name, "there must be an initial value for each operand", wanted=structures.shown(tree),
                          got=structures.shown(init_tree), kind=CorejaxValueError,
                          todo=f"pass {of_inits} in the structure of the {own}")
        xs = values(leaves, self.name, namer(own, operands))
        fitting = [families.match_scalars((x, init))[1] for x, init in zip(xs, init_leaves, strict=True)]
        return xs, values(fitting, self.name, namer(of_inits, inits)), tree

    def _staged(self, computation: Callable[[Any, Any], Any], tree: Any, scalars: Sequence[ShapedArray]) -> Staged:
        """The program of a computation, which must return what it gets."""
        what = f"{self.name}: the computation"
        example = tree.unflatten(range(len(scalars)))
        staged = stage_function(computation, [*scalars, *scalars], flatten((example, example))[1], what)
        structures.check_carry(what, tree, scalars, staged.out_tree, staged.closed.out_avals, self._called[0])
        return staged

    # Checks

    def _check_types(self, avals: Sequence[ShapedArray]) -> None:
        """Raise unless these are operands of one shape, and a scalar of the same dtype for each."""
        xs, inits = halves(avals)
        if not xs or len(avals) % 2:
            raise refused(self.name, "there must be an initial value for each operand", got=f"{len(avals)} operands",
                          wanted="operands, and as many initial values", todo="pass one scalar for each array",
                          kind=CorejaxTypeError)
        if len({x.shape for x in xs}) > 1:
            raise refused(self.name, "the operands differ in shape", got=", ".join(map(str, xs)),
                          wanted="one shape for all", todo="broadcast them first", kind=self._misshapen)
        if any([init.shape for init in inits]):
            raise refused(self.name, "initial values must be scalars", got=", ".join(map(str, inits)),
                          wanted="rank 0", todo="combine the result with an array afterwards", kind=self._misshapen)
        if [x.dtype for x in xs] != [init.dtype for init in inits]:
            raise refused(self.name, "initial values must have the dtypes of the operands",
                          got=", ".join(map(str, inits)), wanted=", ".join([dtypes.long_name(x.dtype) for x in xs]),
                          todo="convert them: np.asarray(init, x.dtype)", kind=CorejaxTypeError)

    def _check_program(self, jaxpr: Jaxpr, xs: Sequence[ShapedArray]) -> None:
        """Raise unless the program makes one scalar for each operand of two."""
        scalars = [ShapedArray((), x.dtype) for x in xs]
        carrying.check_operands(self.name, jaxpr, [*scalars, *scalars])
        outs = jaxpr.out_avals
        if len(outs) != len(xs) or not all([out.matches(x) for out, x in zip(outs, scalars, strict=True)]):
            raise refused(self.name, "the jaxpr returns something else than it takes", got=list(outs), wanted=scalars,
                          todo="return one scalar for each operand, of its dtype", kind=CorejaxTypeError)
        if jaxpr.effects:
            raise refused(self.name, "what is combined in any order can't have effects", wanted="no effects",
                          got=sorted(map(str, jaxpr.effects)), todo="move the effect out of the reduction")

    # Rules

    _bind: Callable[..., Any]

    @hookimpl
    def carry(self, lift: Any, args: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        """Boxes, combined by the transformed function, which must be associative too."""
        xs, inits = halves(args)
        forms, program = lift.settled(lift.joined(lift.forms(xs), lift.forms(inits)),
                                      lambda forms: lift.program(jaxpr, (*forms, *forms)))
        lift.check_pointwise("a reduction", forms)
        program, _ = lift.program(jaxpr, (*forms, *forms), forms)
        parts = [x for group in (xs, inits) for x in lift.parts(lift.raised(group, forms))]
        return lift.results(self._bind(*parts, jaxpr=program, **params), forms)

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        if True not in used_out:
            return [False] * len(eqn.invars), None
        flags, smaller = _shorter(eqn.params["jaxpr"], tuple(used_out))
        if all(flags):
            return [True] * len(eqn.invars), eqn
        used = [*flags, *flags]
        return used, eqn.replace(invars=carrying.marked(eqn.invars, used), outvars=carrying.marked(eqn.outvars, flags),
                                 params={**eqn.params, "jaxpr": smaller})


class Program:
    """A jaxpr of scalars, with constants first, as a function of arrays of one shape, elementwise."""

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        self.jaxpr, self.consts = jaxpr, consts

    def __call__(self, xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        shape = aval_of(xs[0]).shape
        size = prod(shape)
        dims = [*[None] * len(self.consts), *[0] * 2 * len(xs)]
        mapped, _ = vmap_jaxpr(self.jaxpr, size, None, dims, [0] * len(xs))
        flat = [lax.reshape(x, (size,)) for x in (*xs, *ys)]
        return [lax.reshape(out, shape) for out in carrying.run(mapped, [*self.consts, *flat])]


def halves(items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The operands, and the initial values."""
    half = len(items) // 2
    return [*items[:half]], [*items[half:]]


def with_tangents(outs: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any], jaxpr: Jaxpr,
                  combined: Callable[[Program, list[Any], list[Any]], Sequence[Any]]) -> Any:
    """The results and their tangents, given how a program is applied to operands and initial values."""
    (xs, inits), (x_dots, init_dots) = halves(primals), halves(tangents)
    dual, flags = _dual(jaxpr, carrying.either(carrying.nonzero(x_dots), carrying.nonzero(init_dots)))
    operands, starts = [[*group, *[instantiate(dot) for dot in carrying.marked(dots, flags)]]
                        for group, dots in ((xs, x_dots), (inits, init_dots))]
    found = iter(combined(Program(dual), operands, starts)[len(xs):])
    avals = [aval_of(out).tangent for out in outs]
    return outs, [roles.convert(next(found), aval.dtype, aval.weak_type) if nonzero else Zero(aval)
                  for nonzero, aval in zip(flags, avals, strict=True)]


def is_compiled(reduction: Any) -> bool:
    """Whether the compiler takes what is in the region of an operation; removes the operation if it doesn't.

    Over a condition, a loop or a call of such in a reduction's region, XLA aborts the process.
    """
    fits = not any([op.operation.name == "func.call" or len(op.regions) for op in reduction.regions[0].blocks[0]])
    if not fits:
        reduction.erase()
    return fits


def converted(init: Any, x: Any) -> Any:
    """The initial value, in the dtype of the operand if it is weak and that dtype can hold its kind of numbers."""
    own, wanted = aval_of(init), aval_of(x).dtype
    order = "biufc"
    fits = own.weak_type and order.find(dtypes.kind(own.dtype)) <= order.find(dtypes.kind(wanted))
    return roles.convert(init, wanted, True) if fits and own.dtype != wanted else init


@carrying.remembered
def _dual(jaxpr: Jaxpr, nonzero: carrying.Flags) -> tuple[Jaxpr, carrying.Flags]:
    """The program of elements and tangents, and which results have one: then both operands have, too."""
    def step(flags: carrying.Flags) -> tuple[Jaxpr, Sequence[bool]]:
        return jvp_jaxpr(jaxpr, [*flags, *flags], flags)

    flags, dual = carrying.fixed_point(nonzero, step)
    return carrying.in_groups(dual, (flags, flags), (flags,)), flags


@carrying.remembered
def _shorter(jaxpr: Jaxpr, used_out: carrying.Flags) -> tuple[carrying.Flags, Jaxpr]:
    """Which elements are used, given which results are; and the program of those."""
    def step(flags: carrying.Flags) -> tuple[Jaxpr, Sequence[bool]]:
        smaller, used = dce(jaxpr, flags, [*flags, *flags])
        return smaller, carrying.either(*halves(used))

    flags, smaller = carrying.fixed_point(used_out, step)
    return flags, smaller.replace()


# What can be told of a function, and functions for samples

def only_equation(jaxpr: Jaxpr) -> JaxprEqn | None:
    """The equation of a program that does nothing but one operation, of its two elements; None if it does more."""
    if len(jaxpr.eqns) != 1:
        return None
    (eqn,), (out, *others) = jaxpr.eqns, jaxpr.outvars
    of_both = {*map(id, eqn.invars)} == {*map(id, jaxpr.invars)}
    return eqn if not others and out is eqn.outvars[0] and of_both else None


def program_of(computation: Callable[..., Any], *dtypes_: Any) -> Jaxpr:
    """The program of a function of elements of these dtypes, and of others of the same."""
    scalars = [ShapedArray((), dtype) for dtype in dtypes_]
    return stage(computation, [*scalars, *scalars]).jaxpr


def norm(x: Any, y: Any) -> list[Any]:
    """The length of a vector with two components."""
    return [lax.sqrt(lax.add(lax.mul(x, x), lax.mul(y, y)))]


def product_of_complex(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
    """The parts of (a + ib)(c + id)."""
    return [lax.sub(lax.mul(a, c), lax.mul(b, d)), lax.add(lax.mul(a, d), lax.mul(b, c))]
