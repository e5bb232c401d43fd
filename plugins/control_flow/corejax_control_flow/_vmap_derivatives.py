"""What becomes of calls with a rule for vmap: their tangents, transposes, boxes, and linear ones mapped once.

Each is a call like the one that it comes from: `map` says how it is mapped, by transforming how that one is mapped. So
the user's rule is found by any order of transformations, and its result is differentiated like any other.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from corejax.core import (
    Axis,
    ShapedArray,
    Zero,
    aval_of,
    instantiate,
    jvp_flat,
    stage,
    to_dim,
    transpose_jaxpr,
    vmap_flat,
    with_axis,
)
from corejax.ir.surgery import consts_to_operands
from corejax.plugin import carrying
from corejax_control_flow._vmap_rules import Dims, Mapped

Flags = carrying.Flags


class Derived:
    """A call made from another one.

    Each has a method `map(axis, args, dims)`: the results for operands that are mapped along the axis, and their dims.
    """

    linear: Flags

    def __init__(self, call: Any, *key: Hashable) -> None:
        self.call, self.name = call, call.name
        self._key = key

    def __corejax_key__(self) -> Any:
        return type(self).__name__, self.call.__corejax_key__(), *self._key

    @property
    def __corejax_unique__(self) -> bool:
        return self.call.__corejax_unique__  # type: ignore[no-any-return]

    def __corejax_rule__(self, hook: str) -> str:
        return self.call.__corejax_rule__(hook)  # type: ignore[no-any-return]


class TangentCall(Derived):
    """The tangents of a call's results, from its operands and their `nonzero` tangents.

    Results that are `inexact` have tangents, even if they are zero: the rule knows more than the function.
    """

    def __init__(self, call: Any, nonzero: Flags, inexact: Flags) -> None:
        super().__init__(call, nonzero, inexact)
        self.nonzero, self.inexact = nonzero, inexact
        self.linear = (*[False] * len(nonzero), *[True] * sum(nonzero))

    def map(self, axis: Axis, args: Sequence[Any], dims: Dims) -> Mapped:
        n = len(self.nonzero)
        primals, at = [*args[:n]], [*dims[:n]]
        tangents: list[Any] = [Zero(aval_of(x).tangent) for x in primals]
        perturbed = [i for i, nz in enumerate(self.nonzero) if nz]
        for i, t, d in zip(perturbed, args[n:], dims[n:], strict=True):
            tangents[i] = t
            if at[i] is not None or d is not None:  # each element of a value has its own tangent
                primals[i], tangents[i] = to_dim(primals[i], at[i], 0, axis.size), to_dim(t, d, 0, axis.size)
                at[i] = 0
        out_dims: list[int | None] = []

        def mapped(*xs: Any) -> list[Any]:
            outs, out_dims[:] = self.call.map(axis, xs, at)
            return outs  # type: ignore[no-any-return]

        _, dots = jvp_flat(mapped, primals, tangents)
        return [instantiate(t) for t in carrying.marked(dots, self.inexact)], carrying.marked(out_dims, self.inexact)


class TransposedCall(Derived):
    """The cotangents of the operands in which a call is linear, from its other operands and `nonzero` cotangents.

    The linear operands are of the types `avals`.
    """

    def __init__(self, call: Any, transposed: Flags, nonzero: Flags, avals: Sequence[ShapedArray]) -> None:
        super().__init__(call, transposed, nonzero, *avals)
        self.transposed, self.nonzero, self.avals = transposed, nonzero, avals
        self.linear = (*[False] * transposed.count(False), *[True] * sum(nonzero))

    def map(self, axis: Axis, args: Sequence[Any], dims: Dims) -> Mapped:
        n, size = self.transposed.count(False), axis.size

        def mapped(*xs: Any) -> list[Any]:
            linear, known = iter(xs), iter(zip(args, dims, strict=True))
            operands = [(next(linear), 0) if is_linear else next(known) for is_linear in self.transposed]
            outs, at = self.call.map(axis, *zip(*operands, strict=True))
            return [to_dim(x, d, 0, size) for x, d in
                    zip(carrying.marked(outs, self.nonzero), carrying.marked(at, self.nonzero), strict=True)]

        avals = [with_axis(aval, 0, size) for aval in self.avals]  # each element has its own cotangent
        jaxpr, consts = consts_to_operands(stage(mapped, avals, self.name))
        back, _ = transpose_jaxpr(jaxpr, [*[False] * len(consts), *[True] * len(avals)], [True] * sum(self.nonzero),
                                  True)
        cts = [to_dim(ct, d, 0, size) for ct, d in zip(args[n:], dims[n:], strict=True)]
        return carrying.run(back, [*consts, *cts]), [0] * len(avals)


class LiftedCall(Derived):
    """The arrays in the boxes of a call's results, from those in the boxes of its operands: of these forms.

    It is mapped by transforming how the call is mapped. All arrays of a box have the axis at the same place.
    """

    linear = ()

    def __init__(self, call: Any, lift: Any, forms: Sequence[Any], out_forms: Sequence[Any]) -> None:
        super().__init__(call, lift, tuple(forms), tuple(out_forms))
        self.lift, self.forms, self.out_forms = lift, forms, out_forms

    def map(self, axis: Axis, args: Sequence[Any], dims: Dims) -> Mapped:
        lift, rest = self.lift, iter(zip(args, dims, strict=True))
        lift.check_pointwise("a rule for vmap", (*self.forms, *self.out_forms))
        parts: list[Any] = []
        at: list[int | None] = []
        for form in self.forms:
            own = [next(rest) for _ in range(lift.count(form))]
            dim = None if all([d is None for _, d in own]) else 0
            parts += [x if dim is None else to_dim(x, d, dim, axis.size) for x, d in own]
            at.append(dim)
        out_dims: list[int | None] = []

        def mapped(*xs: Any) -> list[Any]:
            outs, out_dims[:] = self.call.map(axis, xs, at)
            return outs  # type: ignore[no-any-return]

        outs = lift.raised(lift.lifting.run(mapped, lift.results(parts, self.forms)), self.out_forms)
        return lift.parts(outs), lift.each(out_dims, self.out_forms)


class LinearMap(Derived):
    """A call mapped along an axis that only operands have in which it is linear: then it has one linearization.

    That is mapped by what it consists of; the user's rule is for when other operands are mapped. Results have the axis
    in front.
    """

    def __init__(self, call: Any, axis: Axis, dims: Dims) -> None:
        name = axis.name
        super().__init__(call, axis.size, None if name is None else (type(name), name), tuple(dims))
        self.axis, self.dims, self.linear = axis, dims, call.linear

    def map(self, axis: Axis, args: Sequence[Any], dims: Dims) -> Mapped:
        xs = [x if d is None else to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)]
        front = [None if d is None else 0 for d in dims]
        inner = [own if own is None or d is None else own + 1 for own, d in zip(self.dims, dims, strict=True)]
        found: list[int | None] = []

        def mapped(*parts: Any) -> list[Any]:
            outs, at = self.call.map(axis, parts, front)
            found[:] = [None if d is None else 0 for d in at]
            return [x if d is None else to_dim(x, d, 0, axis.size) for x, d in zip(outs, at, strict=True)]

        outs, at = vmap_flat(mapped, self.axis.size, self.axis.name, xs, inner)
        return ([to_dim(x, d, 0, self.axis.size) for x, d in zip(outs, at, strict=True)],
                [None if d is None else 1 for d in found])
