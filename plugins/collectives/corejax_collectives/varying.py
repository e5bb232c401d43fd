"""Values that differ between devices, and values that don't: casts between their types.

In a function that is mapped over tracked axes of a mesh, types say along which of them a value varies. Making a value
vary costs nothing, since every device has it; its transpose is a sum over devices, whose transpose is the cast.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from corejax import lax, tree
from corejax.core import aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, refused
from corejax_collectives import _lowering
from corejax_collectives._axes import Names, as_names, bound, is_among, others, same_along, tracked

__all__ = ["pcast", "psum_invariant"]

#: A pytree of arrays.
Tree = TypeVar("Tree")


class PCast:
    """`pcast(x, axis_name, *, to)`: the same values, with a type that says that they vary along these axes.

    `x` may be a pytree; `to` must be "varying". Only axes of `cj.shard_map(..., check_vma=True)` appear in types, so
    along others nothing is to be done. Its transpose is `psum`: where all devices use a value, its cotangent is the sum
    of theirs.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.pcast(x, "rows", to="varying"), axis_name="rows")(np.arange(3.0)).tolist()
    [0.0, 1.0, 2.0]
    """

    name = "pcast"
    linear = (0,)
    structural = True
    tracks_varying = True

    def function(self, bind: Any) -> Any:
        def pcast(x: Tree, axis_name: Any, *, to: str) -> Tree:
            if to != "varying":
                raise refused("pcast", f"nothing can be cast to {to!r}", got=f"to={to!r}"[:80], wanted="to='varying'",
                              todo="to make a value the same on all devices, use psum, pmax or all_gather",
                              kind=CorejaxValueError)
            names = as_names("pcast", axis_name)
            if not names:
                return x
            bound("pcast", names)
            return tree.map(lambda leaf: cast(leaf, names), x)  # type: ignore[no-any-return]
        return pcast

    @hookimpl
    def abstract_eval(self, avals: Any, *, axes: Names, to: str) -> Any:
        (x,) = avals
        bound(self.name, axes)
        if to != "varying":
            raise refused(self.name, f"nothing can be cast to {to!r}", got=repr(to)[:80], wanted="'varying'",
                          todo="use psum, pmax or all_gather for the reverse", kind=CorejaxValueError)
        return x.update(varying=x.varying.union(tracked(self.name, axes)))

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axes: Names, to: str) -> Any:
        # a program may get an operand that varies along some of these axes already, and each device has its own then
        cast = tuple([name for name in axes if name not in args[0].aval.varying])
        return [psum_invariant.primitive.bind(cotangents, axes=cast) if cast else cotangents]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axes: Names, to: str) -> Any:
        rest = others(axes, axis.name) if is_among(axes, axis.name) else axes
        return (pcast.primitive.bind(args[0], axes=rest, to=to) if rest else args[0]), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axes: Names, to: str) -> Any:
        return args[0]

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        only = {"each param has two values": "a value can be cast in one direction only"}
        yield Sample([x := rng.standard_normal((3, 2))], {"axes": ("i",), "to": "varying"}, axes={"i": 3}, results=x,
                     exempt=only)
        yield Sample([rng.standard_normal((3, 2, 2))], {"axes": ("i", "j"), "to": "varying"}, axes={"i": 3, "j": 2},
                     exempt=only)
        yield Sample([np.ones(3)], {"axes": ("i",), "to": "invarying"}, axes={"i": 3}, error=ValueError)


class PSumInvariant:
    """The sum over tracked axes of a mesh, along which the result doesn't vary. `psum` applies it.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: lax.psum_invariant(x, axes=("i",)), axis_name="i")(np.arange(3.0)).tolist()
    [3.0, 3.0, 3.0]
    """

    name = "psum_invariant"
    operands = ("x",)
    linear = (0,)
    tracks_varying = True

    @hookimpl
    def abstract_eval(self, avals: Any, *, axes: Names) -> Any:
        (x,) = avals
        bound(self.name, axes)
        check_number(self.name, x)
        return same_along(x, axes)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axes: Names) -> Any:
        return [pcast.primitive.bind(cotangents, axes=axes, to="varying")]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axes: Names) -> Any:
        (x,), (dim,) = args, dims
        if not is_among(axes, axis.name):
            return psum_invariant.primitive.bind(x, axes=axes), dim
        total = times(x, axis.size) if dim is None else lax.reduce_sum(x, (dim,))
        rest = others(axes, axis.name)
        return (psum_invariant.primitive.bind(total, axes=rest) if rest else total), None

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axes: Names) -> Any:
        return _lowering.all_reduce(ctx, args[0], axes, None, lax.add)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        x = rng.standard_normal((3, 2, 4))
        yield Sample([x], {"axes": ("i",)}, axes={"i": 3, "j": 2}, results=np.stack([x.sum(0)] * 3))
        yield Sample([x], {"axes": ("j", "i")}, axes={"i": 3, "j": 2}, results=np.broadcast_to(x.sum((0, 1)), x.shape))
        yield Sample([x], {"axes": ("i",)}, axes={"i": 3}, results=np.stack([x.sum(0)] * 3))
        yield Sample([np.ones((3, 2), bool)], {"axes": ("i",)}, axes={"i": 3}, error=TypeError)


pcast: Any = define(PCast())
psum_invariant: Any = define(PSumInvariant())


def cast(x: Any, names: Names) -> Any:
    """`x`, varying along those of these axes that are tracked."""
    has = aval_of(x).varying
    axes = tuple([name for name in tracked("pcast", names) if name not in has])
    return pcast.primitive.bind(x, axes=axes, to="varying") if axes else x


def check_number(primitive: str, aval: Any) -> None:
    """Raise unless values of this type can be added."""
    if dtypes.kind(aval.dtype) not in "iufc":
        raise refused(primitive, f"values of type {dtypes.short_name(aval.dtype)} can't be added", got=str(aval),
                      wanted="numbers", todo="convert them first, with lax.convert_element_type")


def times(x: Any, size: int) -> Any:
    """The sum of `size` copies of a value."""
    return lax.mul(x, lax.full_like(x, np.asarray(size).astype(aval_of(x).dtype).item()))
