"""What transformations make of the step of a scan: of its program, and of which operands and results it has.

Other loops whose steps are like those of a scan are transformed by the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from corejax.core import (
    Atom,
    Jaxpr,
    JaxprEqn,
    Linear,
    Literal,
    ShapedArray,
    Var,
    aval_of,
    instantiate,
    jvp_jaxpr,
    stage,
    to_dim,
    transpose_jaxpr,
    vmap_jaxpr,
)
from corejax.ir.surgery import dce, inline
from corejax.plugin import carrying, roles
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_splitting import split_scan

Flags = carrying.Flags
Dims = tuple[int | None, ...]
Run = Callable[[Body, list[Any]], Sequence[Any]]
"""`run(body, operands)`: bind a loop with this body."""


def body_of(eqn: JaxprEqn) -> Body:
    return Body(eqn.params["jaxpr"], eqn.params["num_consts"], eqn.params["num_carry"])


def with_body(eqn: JaxprEqn, body: Body, invars: Sequence[Atom], outvars: Sequence[Var]) -> JaxprEqn:
    """The same loop with another body."""
    return carrying.with_jaxpr(eqn, body.jaxpr, invars, outvars, num_consts=body.num_consts, num_carry=body.num_carry)


def row_of(aval: ShapedArray) -> ShapedArray:
    """The type of a slice along the first axis."""
    return aval.update(shape=aval.shape[1:])


def stacked(aval: ShapedArray, length: int) -> ShapedArray:
    """The type of `length` values, stacked."""
    return aval.update(shape=(length, *aval.shape))


def settled(body: Body, given: Sequence[Any], ends: frozenset[Any] = frozenset()) -> Body:
    """The body with carries that vary along the same axes of a mesh before and after each step.

    `given` are the axes along which the operands vary. Devices along `ends` take steps of their own number, so the
    carry varies along these.
    """
    if not any(given) and not ends and not carrying.varies(body.jaxpr):
        return body
    while True:
        jaxpr = carrying.retyped(body.jaxpr, given)
        consts, carry, xs = body.operands([v.aval.varying for v in jaxpr.invars])
        out, ys = body.results([v.aval.varying for v in jaxpr.outvars])
        given = [*consts, *[old | new | ends for old, new in zip(carry, out, strict=True)], *xs]
        if given == [v.aval.varying for v in jaxpr.invars]:
            return body._replace(jaxpr=carrying.retyped(jaxpr, (), [*body.operands(given)[1], *ys]))


def varying_of(values: Iterable[Any]) -> list[frozenset[Any]]:
    """The axes of a mesh along which each of these varies."""
    return [aval_of(x).varying for x in values]


# Simplification

class Simplified(NamedTuple):
    """A smaller scan that does the same: which operands it takes, and where each original result is found.

    ("result", i) is its i-th result, ("operand", i) the i-th original operand, ("repeat", i) that, once per step.
    """

    body: Body
    operands: list[int]
    results: list[carrying.Place]


@carrying.remembered
def simplified(body: Body) -> Simplified | None:
    """Remove carries that no step changes, outputs that are inputs or constants, duplicate outputs, and dead code.

    None if there are none of these.
    """
    jaxpr, num_consts, num_carry = body
    consts, carry, xs = body.operands(jaxpr.invars)
    fixed = [v is out for v, out in zip(carry, jaxpr.outvars[:num_carry], strict=True)]
    found: dict[Any, carrying.Place] = {v: ("repeat", i) for i, v in enumerate(consts)}
    found.update({v: ("repeat", num_consts + i) for i, v in enumerate(carry) if fixed[i]})
    found.update({v: ("operand", num_consts + num_carry + i) for i, v in enumerate(xs)})
    order = [*range(num_consts), *[num_consts + i for i in range(num_carry) if fixed[i]],
             *[num_consts + i for i in range(num_carry) if not fixed[i]], *range(num_consts + num_carry,
                                                                                 len(jaxpr.invars))]
    results: list[carrying.Place] = []
    outs: list[Atom] = []
    for i, out in enumerate(jaxpr.outvars):
        if i < num_carry and fixed[i]:
            results.append(("operand", num_consts + i))
            continue
        if i < num_carry or type(out) is Literal or out not in found:
            results.append(("result", len(outs)))
            outs.append(out)
            if i >= num_carry and type(out) is Var:
                found[out] = results[-1]
        else:
            results.append(found[out])
    n_consts, n_carry = num_consts + sum(fixed), num_carry - sum(fixed)
    invars = [jaxpr.invars[i] for i in order]
    keep = [n_consts <= k < n_consts + n_carry for k in range(len(order))]
    smaller, used = dce(Jaxpr((), invars, outs, jaxpr.eqns, jaxpr.effects, jaxpr.name), (True,) * len(outs), keep)
    if all(used) and len(outs) == len(jaxpr.outvars) and len(smaller.eqns) == len(jaxpr.eqns):
        return None
    return Simplified(Body(smaller, sum(used[:n_consts]), n_carry), carrying.marked(order, used), results)


# Forward mode

class Forward(NamedTuple):
    """The scan of values and tangents: each group of operands and results is followed by its nonzero tangents."""

    body: Body
    carry_nonzero: Sequence[bool]
    ys_nonzero: Sequence[bool]


@carrying.remembered
def forward(body: Body, nonzero: Flags) -> Forward:
    """The body with these tangents. A carry that gets a tangent in one step has one in all steps."""
    consts, carry_in, xs = body.operands(nonzero)
    constant_ys = [False] * (len(body.jaxpr.outvars) - body.num_carry)

    def step(carry: Flags) -> tuple[tuple[Jaxpr, Flags], Flags]:
        dual, found = jvp_jaxpr(body.jaxpr, [*consts, *carry, *xs], [*carry, *constant_ys])
        return (dual, found), found[:body.num_carry]

    carry, (dual, found) = carrying.fixed_point(carry_in, step)
    of_carry, of_ys = body.results(found)
    dual = carrying.in_groups(dual, (consts, carry, xs), (of_carry, of_ys))
    return Forward(Body(dual, len(consts) + sum(consts), len(carry) + sum(carry)), of_carry, of_ys)


# Transformations of packs

class Lifted(NamedTuple):
    """The scan of boxes, and the forms of each carry, in all steps, and of each output of a step."""

    body: Body
    carry: Sequence[Any]
    ys: Sequence[Any]


def lifted(body: Body, lift: Any, forms: Sequence[Any]) -> Lifted:
    """The body transformed by a `Lift`, for operands of one step of these forms. Its carry may take larger ones."""
    of_consts, start, of_xs = body.operands(forms)

    def step(carry: Any) -> Any:
        _, found = lift.program(body.jaxpr, (*of_consts, *carry, *of_xs))
        of_carry, of_ys = body.results(found)
        return of_ys, of_carry

    of_carry, of_ys = lift.settled(start, step)
    lift.check_pointwise("a loop over slices", (*of_xs, *of_ys))
    program, _ = lift.program(body.jaxpr, (*of_consts, *of_carry, *of_xs), (*of_carry, *of_ys))
    return Lifted(Body(program, lift.count(*of_consts), lift.count(*of_carry)), of_carry, of_ys)


def carry(body: Body, lift: Any, args: Sequence[Any], run: Run) -> list[Any]:
    """The results of a loop whose body is transformed by a `Lift`."""
    found = lifted(body, lift, lift.forms(args))
    consts, carried, xs = body.operands(args)
    parts = lift.parts([*consts, *lift.raised(carried, found.carry), *xs])
    return lift.results(run(found.body, parts), (*found.carry, *found.ys))  # type: ignore[no-any-return]


# Batching

class Batched(NamedTuple):
    """The scan of batches, and where the batch axis is in each carry and in each output of a step."""

    body: Body
    carry: list[int | None]
    ys: list[int | None]


@carrying.remembered
def batched(body: Body, size: int, name: Any, dims: Dims) -> Batched:
    """The body for operands of one step batched along `dims`. For the carry, these only say whether it is batched."""
    consts, carry_in, xs = body.operands(dims)
    carry = [None if d is None else 0 for d in carry_in]
    settled = False
    while True:
        mapped, found = vmap_jaxpr(body.jaxpr, size, name, (*consts, *carry, *xs))
        out, ys = body.results(found)
        grown = [new if old is None else old for old, new in zip(carry, out, strict=True)]
        if grown == carry == out:
            break
        if grown == carry and settled:
            mapped, _ = vmap_jaxpr(body.jaxpr, size, name, (*consts, *carry, *xs), (*carry, *[None] * len(ys)))
            break
        if grown == carry:  # the axis has to be moved in each step, unless it is in the same place at both ends
            settled = True
            grown = [old if new is None else new for old, new in zip(carry, out, strict=True)]
        carry = grown
    return Batched(body._replace(jaxpr=mapped), carry, ys)


# Reverse mode

class Backward(NamedTuple):
    """The scan that runs backward: what it takes and returns, and which cotangents are nonzero.

    Its operands are the constants that are values; sums of cotangents of the linear ones, and cotangents of the carry;
    cotangents of the outputs, and the inputs that are values. Its results are those sums, the cotangents of the carry,
    and cotangents of the linear inputs.
    """

    body: Body
    consts_nonzero: Flags
    carry_nonzero: Flags
    xs_nonzero: Flags


@carrying.remembered
def backward(body: Body, linear: Flags, ct_nonzero: Flags) -> Backward:
    """The transposed body, given which operands are linear (every carry is) and which results have cotangents."""
    jaxpr, num_consts, num_carry = body
    consts, _, xs = body.operands(linear)
    n_consts, n_xs = sum(consts), sum(xs)
    carry_out, ys = body.results(ct_nonzero)

    def step(carry: Flags) -> tuple[tuple[Jaxpr, Flags], Flags]:
        back, nonzero = transpose_jaxpr(jaxpr, [*consts, *[True] * num_carry, *xs], [*carry, *ys],
                                        [*[False] * n_consts, *carry, *[False] * n_xs])
        return (back, nonzero), nonzero[n_consts:n_consts + num_carry]

    carry, (back, nonzero) = carrying.fixed_point(carry_out, step)
    consts_nonzero = nonzero[:n_consts]
    summed = _summing(back, sum(consts_nonzero), num_consts - n_consts, (len(xs) - n_xs, sum(carry)))
    return Backward(summed, consts_nonzero, carry, nonzero[n_consts + num_carry:])


def _summing(back: Jaxpr, n_sums: int, n_consts: int, sizes: tuple[int, int]) -> Body:
    """A transposed body as a step of a scan that adds up the cotangents of constants.

    `back` takes (constants, inputs, cotangents of the carry, cotangents of outputs); `sizes` are those of the middle.
    """
    n_xs, n_carry = sizes
    consts, xs = back.invars[:n_consts], back.invars[n_consts:n_consts + n_xs]
    rest = back.invars[n_consts + n_xs:]
    sums = [Var(x.aval.tangent) for x in back.outvars[:n_sums]]
    eqns, outs = [*back.eqns], []
    for total, ct in zip(sums, back.outvars, strict=False):
        add = stage(lambda x, y: [roles.accumulate(x, y)], [total.aval, ct.aval]).jaxpr
        new, (out,) = inline(add, [total, ct])
        eqns += new
        outs.append(out)
    invars = [*consts, *sums, *rest[:n_carry], *rest[n_carry:], *xs]
    step = back.replace(invars=invars, eqns=eqns, outvars=[*outs, *back.outvars[n_sums:]])
    return Body(step, n_consts, n_sums + n_carry)


# Dead code

@carrying.remembered
def shorter(body: Body, used_out: Flags) -> carrying.Shorter[Body] | None:
    """The body without unused parts; None if all are used. A carry is used if another carry or an output needs it."""
    jaxpr, num_consts, num_carry = body
    carry_out, ys = body.results(used_out)

    def step(carry: Flags) -> tuple[tuple[Jaxpr, Flags], Sequence[bool]]:
        keep = [*[False] * num_consts, *carry, *[False] * (len(jaxpr.invars) - num_consts - num_carry)]
        smaller, used = dce(jaxpr, [*carry, *ys], keep)
        return (smaller, used), body.operands(used)[1]

    carry, (smaller, used) = carrying.fixed_point(carry_out, step)
    if smaller is jaxpr:
        return None
    return carrying.Shorter(Body(smaller, sum(used[:num_consts]), sum(carry)), used, (*carry, *ys))


# Partial evaluation

@carrying.remembered
def split_body(body: Body, unknown_in: Flags) -> carrying.Split[Body]:
    """Split a scan by which operands are unknown: one part runs now, the other waits.

    The types of fresh residuals are those of one step: the first scan stacks them.
    """
    consts, carry_in, xs = body.operands(unknown_in)
    known_ys = [False] * (len(body.jaxpr.outvars) - body.num_carry)

    def step(carry: Flags) -> tuple[carrying.Split[Jaxpr], Flags]:
        split = carrying.split_jaxpr(body.jaxpr, [*consts, *carry, *xs], [*carry, *known_ys])
        return split, split.unknown_out[:body.num_carry]

    carry, split = carrying.fixed_point(carry_in, step)
    free = [*range(body.num_consts), *range(body.first_input, len(unknown_in))]
    return split_scan(body, carrying.keep_small(split, free, body.num_carry), (*consts, *carry, *xs))


# Whole rules of a loop, given how it is bound to a body and operands

def jvp(body: Body, primals: Sequence[Any], tangents: Sequence[Any], run: Run) -> tuple[list[Any], list[Any]]:
    found = forward(body, carrying.nonzero(tangents))
    const_dots, carry_dots, x_dots = body.operands(tangents)
    carry_dots = [instantiate(t) if nz else t for t, nz in zip(carry_dots, found.carry_nonzero, strict=True)]
    outs = run(found.body, carrying.with_tangents(body.operands(primals), (const_dots, carry_dots, x_dots)))
    return carrying.part_tangents(outs, (found.carry_nonzero, found.ys_nonzero))


def transpose(body: Body, cotangents: Sequence[Any], args: Sequence[Any], run: Run) -> list[Any]:
    """`run` binds the loop that goes the other way."""
    consts, carry, xs = body.operands(args)
    linear = (*[type(x) is Linear for x in consts], *[True] * len(carry), *[type(x) is Linear for x in xs])
    found = backward(body, linear, carrying.nonzero(cotangents))
    ct_carry, ct_ys = body.results(cotangents)
    lin_consts = [x for x in consts if type(x) is Linear]
    outs = iter(run(found.body, [
        *[x for x in consts if type(x) is not Linear],
        *[roles.zeros(x.aval.tangent) for x, nz in zip(lin_consts, found.consts_nonzero, strict=True) if nz],
        *[instantiate(ct) for ct, nz in zip(ct_carry, found.carry_nonzero, strict=True) if nz],
        *carrying.without_zeros(ct_ys), *[x for x in xs if type(x) is not Linear]]))
    ct_consts = iter([next(outs) if nz else None for nz in found.consts_nonzero])
    ct_init = [next(outs) if nz else None for nz in found.carry_nonzero]
    ct_xs = iter([next(outs) if nz else None for nz in found.xs_nonzero])
    return [*[next(ct_consts) if type(x) is Linear else None for x in consts],
            *[ct if type(x) is Linear else None for x, ct in zip(carry, ct_init, strict=True)],
            *[next(ct_xs) if type(x) is Linear else None for x in xs]]


def vmap(body: Body, axis: Any, args: Sequence[Any], dims: Sequence[int | None], run: Run) -> tuple[Any, list[Any]]:
    consts, carry, xs = body.operands(args)
    const_dims, carry_dims, x_dims = body.operands(dims)
    xs, slice_dims = rows_first(xs, x_dims, axis.size)
    found = batched(body, axis.size, axis.name, (*const_dims, *carry_dims, *slice_dims))
    carry = [x if wanted is None else to_dim(x, d, wanted, axis.size)
             for x, d, wanted in zip(carry, carry_dims, found.carry, strict=True)]
    return run(found.body, [*consts, *carry, *xs]), [*found.carry, *[None if d is None else d + 1 for d in found.ys]]


def rows_first(xs: Sequence[Any], dims: Sequence[int | None], size: int) -> tuple[list[Any], list[int | None]]:
    """Mapped inputs whose first axis is still the one that is scanned over, and where the batch axis of a slice is."""
    xs = [to_dim(x, d, 1, size) if d == 0 else x for x, d in zip(xs, dims, strict=True)]
    return xs, [None if d is None else d - 1 if d else 0 for d in dims]
