"""Joining arrays, and padding around and between their elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, Linear, ShapedArray, Zero, aval_of, dtypes, instantiate, to_dim
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, refused, roles, shaping
from corejax_lax_basic._axes import Shape, all_weak, as_list, same_dtype, shape_of
from corejax_lax_basic._lowering import i64, i64s
from corejax_lax_basic.creation import as_dtype, full
from corejax_lax_basic.shapes import broadcast_in_dim, reshape

__all__ = ["concatenate", "pad"]

Config = tuple[tuple[int, int, int], ...]


class Concatenate:
    """`concatenate(operands, dimension)`: arrays one after the other along an axis.

    >>> lax.concatenate([np.zeros(2), np.ones(1)], 0).tolist()
    [0.0, 0.0, 1.0]
    """

    name = "concatenate"
    structural = True
    symbolic_zeros = True

    def function(self, bind: Callable[..., Array]) -> Any:
        def concatenate(operands: Sequence[ArrayLike] | ArrayLike, dimension: int) -> Array:
            operands = as_list("concatenate", "the operands", operands)
            if not operands:
                raise refused("concatenate", "there is nothing to concatenate", got="no operands",
                              wanted="at least one array", todo="pass a non-empty sequence", kind=CorejaxValueError)
            axis = shaping.canonical_axis("concatenate", dimension, len(shape_of(operands[0])))
            return bind(*operands, dimension=axis)
        return concatenate

    @hookimpl
    def impl(self, args: Any, *, dimension: int) -> Any:
        return np.concatenate(args, dimension)

    @hookimpl
    def abstract_eval(self, avals: Any, *, dimension: int) -> ShapedArray:
        first = avals[0]
        same_dtype(self.name, avals)
        if not 0 <= dimension < first.ndim:
            raise refused(self.name, f"dimension must be an axis of {first}", got=dimension,
                          wanted=f"an axis from 0 to {first.ndim - 1}", todo="join scalars with lax.stack")
        rest = [(*a.shape[:dimension], *a.shape[dimension + 1:]) for a in avals]
        if any([a.ndim != first.ndim for a in avals]) or any([sizes != rest[0] for sizes in rest]):
            raise refused(self.name, f"operands differ in an axis other than {dimension}",
                          got=", ".join(map(str, avals)), wanted=f"equal sizes along all axes but {dimension}",
                          todo="broadcast or slice the operands to a common shape")
        total = sum([a.shape[dimension] for a in avals])
        shape = (*first.shape[:dimension], total, *first.shape[dimension + 1:])
        return ShapedArray(shape, first.dtype, all_weak(avals))

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, dimension: int) -> Any:
        out = concatenate(primals, dimension)
        if all([type(t) is Zero for t in tangents]):
            return out, Zero(out.aval.tangent)
        return out, concatenate([instantiate(t) for t in tangents], dimension)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, dimension: int) -> Any:
        found: list[Any] = []
        start, full_shape = 0, shape_of(cotangents)
        for x in args:
            stop = start + shape_of(x)[dimension]
            found.append(lax.slice_in_dim(cotangents, start, stop, axis=dimension) if type(x) is Linear else None)
            start = stop
        assert start == full_shape[dimension]
        return found

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, dimension: int) -> Any:
        dim = dims[0]
        if dim is None or any([d != dim for d in dims]):
            args, dim = [to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)], 0
        return concatenate(args, dimension + (dim <= dimension)), dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, dimension: int) -> Any:
        # Of what is joined with empty parts, XLA can't take empty slices: it ends the process.
        parts = [x for x, aval in zip(args, ctx.avals_in, strict=True) if aval.shape[dimension]] or args[:1]
        return ctx.op("stablehlo.concatenate", parts, {"dimension": i64(ctx, dimension)})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        cases: list[tuple[list[Shape], int]] = [([(2,)], 0), ([(2,), (3,)], 0), ([(2, 1), (2, 3), (2, 0)], 1),
                                                ([(1, 2), (4, 2)], 0), ([(0,), (0,)], 0)]
        for shapes, dimension in cases:
            yield Sample([rng.standard_normal(shape) for shape in shapes], {"dimension": dimension})
        yield Sample([np.ones((2, 3)), np.ones((3, 2))], {"dimension": 0}, error=TypeError)


class Pad:
    """`pad(operand, padding_value, padding_config)`: (low, high, interior) padding for each axis.

    `interior` elements are inserted between neighbours; negative low or high padding removes elements.

    >>> lax.pad(np.arange(1.0, 3.0), 0.0, [(1, 0, 1)]).tolist()
    [0.0, 1.0, 0.0, 2.0]
    """

    name = "pad"
    structural = True
    linear = (0, 1)

    def function(self, bind: Callable[..., Array]) -> Any:
        def pad(operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]) -> Array:
            config = tuple([shaping.as_ints("pad", "padding_config", entry)
                            for entry in as_list("pad", "the entries of padding_config", padding_config)])
            aval = aval_of(operand)
            if type(padding_value) in (bool, int, float, complex) and not aval.weak_type:
                padding_value = as_dtype(padding_value, aval.dtype)
            return bind(operand, padding_value, padding_config=config)
        return pad

    @hookimpl
    def impl(self, args: Any, *, padding_config: Config) -> Any:
        x, value = args
        shape = padded_shape(x.shape, padding_config)
        out = np.empty(shape, x.dtype)
        out[...] = value
        src, dst = [], []
        for size, total, (lo, _, interior) in zip(x.shape, shape, padding_config, strict=True):
            step = interior + 1  # element i lands at lo + i * step
            first, last = max(0, -(lo // step)), min(size, -((lo - total) // step))
            if last <= first:
                return out
            src.append(slice(first, last))
            dst.append(slice(lo + first * step, lo + (last - 1) * step + 1, step))
        out[tuple(dst)] = x[tuple(src)]
        return out

    @hookimpl
    def abstract_eval(self, avals: Any, *, padding_config: Config) -> ShapedArray:
        x, value = avals
        same_dtype(self.name, avals)
        if value.ndim:
            raise refused(self.name, "the padding value must be a scalar", got=str(value), wanted=f"{x.dtype} scalar",
                          todo="pass one value; pad several times for several values")
        if len(padding_config) != x.ndim or any([len(c) != 3 or c[2] < 0 for c in padding_config]):
            raise refused(self.name, f"padding_config does not fit {x}", got=padding_config,
                          wanted=f"{x.ndim} triples (low, high, interior) with interior >= 0",
                          todo="give one triple for each axis of the operand")
        shape = padded_shape(x.shape, padding_config)
        if any([size < 0 for size in shape]):
            raise refused(self.name, f"negative padding cuts off more than {x} has", got=padding_config,
                          wanted="sizes of at least 0 after padding", todo=f"this gives {shape}; cut off less")
        return ShapedArray(shape, x.dtype, all_weak(avals))

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, padding_config: Config) -> Any:
        x, value = args
        ct, zero = cotangents, as_dtype(0, aval_of(cotangents).dtype)
        cut = pad(ct, zero, [(-lo, -hi, 0) for lo, hi, _ in padding_config]) if any(
            [lo or hi for lo, hi, _ in padding_config]) else ct
        steps = tuple([interior + 1 for *_, interior in padding_config])
        sizes = shape_of(x)
        kept = cut if shape_of(cut) == sizes else lax.slice(cut, (0,) * len(sizes), shape_of(cut), steps)
        if type(value) is not Linear:
            return [kept, None]
        every = range(len(sizes))
        rest = lax.sub(roles.sum_axes(ct, every), roles.sum_axes(kept, every))
        return [kept if type(x) is Linear else None, rest]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, padding_config: Config) -> Any:
        (x, value), (x_dim, value_dim) = args, dims
        if value_dim is None:
            return pad(x, value, shaping.insert(padding_config, x_dim, (0, 0, 0))), x_dim
        x = to_dim(x, x_dim, 0, axis.size)
        config = ((0, 0, 0), *padding_config)
        if not axis.size:
            return reshape(x, padded_shape(shape_of(x), config)), 0
        numbers = dtypes.kind(aval_of(x).dtype) != "E"
        padded = pad(x, as_dtype(0, aval_of(x).dtype) if numbers else value[0], config)  # replaced below
        shape = shape_of(padded)
        inside = pad(full(shape_of(x)[1:], np.bool_(True)), np.bool_(False), padding_config)
        inside = broadcast_in_dim(inside, shape, tuple(range(1, len(shape))))
        return lax.select_n(inside, broadcast_in_dim(value, shape, (0,)), padded), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, padding_config: Config) -> Any:
        lows, highs, interiors = zip(*padding_config, strict=True) if padding_config else ((), (), ())
        return ctx.op("stablehlo.pad", args, {
            "edge_padding_low": i64s(ctx, lows), "edge_padding_high": i64s(ctx, highs),
            "interior_padding": i64s(ctx, interiors)})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for sizes, config in [((3,), ((1, 2, 0),)), ((3,), ((0, 0, 2),)), ((4,), ((-1, -2, 0),)), ((), ()),
                              ((2, 3), ((1, 0, 1), (-1, 2, 2))), ((0,), ((1, 1, 3),)), ((5,), ((-3, 1, 1),)),
                              ((3,), ((-2, -2, 1),)), ((3,), ((0, 0, 0),)), ((2,), ((-1, 3, 2),))]:
            yield Sample([rng.standard_normal(sizes), rng.standard_normal()], {"padding_config": config})
        yield Sample([np.ones(3), 1.0], {"padding_config": ((-4, 0, 0),)}, error=TypeError)
        yield Sample([np.ones(3), np.ones(1)], {"padding_config": ((1, 0, 0),)}, error=TypeError)


def padded_shape(shape: Shape, padding_config: Config) -> Shape:
    """The sizes after padding: low + high + the elements, with `interior` between each two."""
    return tuple([lo + hi + size + max(size - 1, 0) * interior
                  for size, (lo, hi, interior) in zip(shape, padding_config, strict=True)])


concatenate: Any = define(Concatenate())
pad: Any = define(Pad())
