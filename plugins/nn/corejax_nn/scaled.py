"""Products of numbers in narrow formats, in which each block of numbers has a scale of its own.

Data and scales have float8 dtypes. float4_e2m1fn isn't a dtype that arrays can have here, so its numbers are held in
float32, which has all of them; they are the same numbers whether a program is compiled or not. Products are computed in
float32, on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Literal, NamedTuple

import ml_dtypes
import numpy as np

import corejax_numpy as jnp
from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes, warn
from corejax.dtypes import result_type
from corejax.errors import CorejaxValueError, kind_of
from corejax.plugin import custom_vjp, public, refused, shaping
from corejax_nn._operands import floating

__all__ = ["BlockScaleConfig", "get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"]

_FLOAT4, _E4M3, _E8M0 = [np.dtype(each) for each in (
    ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu)]

#: What numbers may be rounded to.
_NARROW = tuple([dtype for dtype in dtypes.ALL if dtypes.is_float(dtype) and dtype.itemsize == 1 and dtype != _E8M0])

Axes = tuple[int, ...]


# Numbers that have scales

@public
def scaled_matmul(lhs: ArrayLike, rhs: ArrayLike, lhs_scales: ArrayLike, rhs_scales: ArrayLike,
                  preferred_element_type: DTypeLike = np.float32) -> Array:
    """The products of rows, `[B, M, K]` with `[B, N, K]` to `[B, M, N]`, after multiplying blocks of rows by scales.

    Scales are `[B, M, number of blocks]` and `[B, N, number of blocks]`: a row has blocks of the same size, and each
    operand may have its own number of them. All is computed in float32, then converted to `preferred_element_type`.

    >>> lhs, rhs = np.array([[[1.0, 2.0, 3.0, 4.0]]]), np.ones((1, 1, 4))
    >>> nn.scaled_matmul(lhs, rhs, np.array([[[1.0, 10.0]]]), np.array([[[0.5]]])).item()
    36.5
    """
    name = "scaled_matmul"
    wanted = _preferred(name, preferred_element_type, [dtype for dtype in dtypes.ALL if dtypes.is_float(dtype)])
    operands = [_single(name, x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    (left, right, left_scales, right_scales) = shapes = [aval_of(x).shape for x in operands]
    if any([len(shape) != 3 for shape in shapes]):
        raise refused(name, "the operands and scales must have 3 axes", got=f"shapes {_text(shapes)}",
                      wanted="[batch, rows, numbers to sum over]", kind=CorejaxValueError,
                      todo="reshape them, or map the function over further axes by vmap")
    if (left[0], left[2]) != (right[0], right[2]):
        raise refused(name, "the operands don't fit together", got=f"shapes {_text((left, right))}",
                      wanted="[B, M, K] and [B, N, K]", kind=CorejaxValueError,
                      todo="transpose rhs if its numbers to sum over aren't along the last axis")
    for side, shape, scales in (("lhs", left, left_scales), ("rhs", right, right_scales)):
        if shape[:2] != scales[:2]:
            raise refused(name, f"{side}_scales don't fit {side}", got=f"shapes {_text((scales, shape))}",
                          wanted=f"a row of scales for each row: {(*shape[:2], 'number of blocks')}",
                          todo=f"check the axes of {side}_scales", kind=CorejaxValueError)
        if shape[2] % scales[2] if scales[2] else shape[2]:
            raise refused(name, f"the rows of {side} can't be cut into so many blocks of the same size",
                          got=f"{scales[2]} scales for {shape[2]} numbers", kind=CorejaxValueError,
                          wanted=f"a number of scales that divides {shape[2]}", todo=f"pad {side} with zeros")
    return lax.convert_element_type(_multiplied(*operands), wanted)  # type: ignore[no-any-return]


def _single(name: str, x: Any) -> Any:
    """An operand in float32."""
    return lax.convert_element_type(floating(name, x), np.float32)


def _preferred(name: str, dtype: Any, taken: Sequence[np.dtype]) -> np.dtype:
    found = dtypes.canonical(dtype)
    if found not in taken:
        raise refused(name, "the result can't have this dtype", got=f"preferred_element_type={found}",
                      wanted=_text(taken), todo="convert the result with .astype(...)")
    return found


def _text(several: Sequence[object]) -> str:
    return ", ".join(map(str, several))


def _multiplied(lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any) -> Any:
    operands = [_whole(lhs, lhs_scales), _whole(rhs, rhs_scales)]
    return lax.dot_general(*operands, (((2,), (2,)), ((0,), (0,))), precision=lax.Precision.HIGHEST)


def _whole(data: Any, scales: Any) -> Any:
    """The numbers that data and scales stand for, in float32."""
    data, scales = [lax.convert_element_type(x, np.float32) for x in (data, scales)]
    shape, count = aval_of(data).shape, aval_of(scales).shape[-1]
    blocks = jnp.reshape(data, (*shape[:2], count, shape[2] // max(count, 1)))
    return jnp.reshape(blocks * scales[..., None], shape)


# How numbers get scales

@dataclass(frozen=True, slots=True)
class BlockScaleConfig:
    """How an operand, or the gradient, of `scaled_dot_general` is rounded.

    Blocks of `block_size` numbers are divided by a scale of `scale_type`, by the rule of the `mode`, and rounded to
    `data_type`. By the mode "nvfp4" all numbers are divided by `global_scale` before that. `infer_only` says that no
    gradient is wanted; it changes nothing.
    """

    mode: str
    block_size: int
    data_type: DTypeLike
    scale_type: DTypeLike
    global_scale: ArrayLike | None
    infer_only: bool


def _power_of_two(most: Any, limit: float) -> Any:
    """The least power of two by which `most` can be divided to be at most `limit`; NaN if `most` isn't finite.

    It is at least 2**-126, since compilers may take smaller numbers for 0.
    """
    one, mantissa = 127, 23  # how the exponent 0 is written, and the number of bits after the exponent
    # Of two numbers' bits, taken for integers, the difference counts the powers of two between them. Rounded up:
    steps = lax.bitcast_convert_type(most, np.int32) - np.float32(limit).view(np.int32) + ((1 << mantissa) - 1)
    exponent = jnp.maximum((steps >> mantissa) + one, 1)
    return jnp.where(most < np.inf, lax.bitcast_convert_type(exponent << mantissa, np.float32), np.nan)


def _quotient(most: Any, limit: float) -> Any:
    """The number by which `most` is divided to be `limit`, as far as a scale of float8_e4m3fn can be that large."""
    return jnp.clip(_divided(most, np.float32(limit)), 0, _largest(_E4M3))


class _Mode(NamedTuple):
    block_size: int
    data_type: np.dtype
    scale_type: np.dtype
    scale: Callable[[Any, float], Any]
    has_global_scale: bool
    rounds_gradients: bool


_MODES = {
    "mxfp8": _Mode(32, _E4M3, _E8M0, _power_of_two, has_global_scale=False, rounds_gradients=True),
    "nvfp4": _Mode(16, _FLOAT4, _E4M3, _quotient, has_global_scale=True, rounds_gradients=False),
}


@public
def get_scaled_dot_general_config(mode: Literal["nvfp4", "mxfp8"], global_scale: ArrayLike | None = None
                                  ) -> BlockScaleConfig:
    """How `scaled_dot_general` rounds by a mode.

    By "mxfp8", 32 numbers of float8_e4m3fn have a scale, a power of two. By "nvfp4", 16 numbers of float4_e2m1fn have
    a scale of float8_e4m3fn, and all have `global_scale`, which is 1 unless given. It should be the largest absolute
    value, divided by 2688, the largest number that data and scales stand for. By "mxfp8" there is none.

    >>> config = nn.get_scaled_dot_general_config("mxfp8")
    >>> config.block_size, config.scale_type
    (32, dtype(float8_e8m0fnu))
    """
    rule = _rule("get_scaled_dot_general_config", mode)
    if rule.has_global_scale and global_scale is None:
        global_scale = jnp.ones(1, np.float32)
    return BlockScaleConfig(mode, rule.block_size, rule.data_type, rule.scale_type,
                            global_scale if rule.has_global_scale else None, False)


def _rule(name: str, mode: Any) -> _Mode:
    found = _MODES.get(mode) if isinstance(mode, str) else None
    if found is None:
        raise refused(name, "there is no such mode", got=repr(mode)[:80], wanted=" or ".join(map(repr, _MODES)),
                      todo="check the spelling", kind=CorejaxValueError)
    return found


class _Format(NamedTuple):
    """What is static about a configuration."""

    mode: str
    block_size: int
    data_type: np.dtype

    @property
    def rule(self) -> _Mode:
        return _MODES[self.mode]


def _format(config: Any) -> tuple[_Format, Any]:
    """A configuration, checked: what is static about it, and its global scale as a scalar, if there is one."""
    name = "scaled_dot_general"
    if not isinstance(config, BlockScaleConfig):
        raise refused(name, "this isn't a configuration", got=kind_of(config), wanted="a BlockScaleConfig",
                      todo="make it by nn.get_scaled_dot_general_config")
    rule, size = _rule(name, config.mode), shaping.as_int(name, "block_size", config.block_size)
    if size < 1:
        raise refused(name, "blocks can't be empty", got=f"block_size={size}", wanted="1 or more",
                      todo=f"by the mode {config.mode!r} it is usually {rule.block_size}", kind=CorejaxValueError)
    data_type = _among(name, "data_type", config.data_type, _NARROW)
    _among(name, "scale_type", config.scale_type, (rule.scale_type,))
    return _Format(config.mode, size, data_type), _global_scale(name, config)


def _global_scale(name: str, config: BlockScaleConfig) -> Any:
    scale: Any = config.global_scale
    if _MODES[config.mode].has_global_scale == (scale is None):
        wanted = "a number" if scale is None else "None"
        raise refused(name, f"by the mode {config.mode!r}, the global scale is {wanted}", got=kind_of(scale),
                      wanted=wanted, todo="make the configuration by nn.get_scaled_dot_general_config",
                      kind=CorejaxValueError)
    if scale is None:
        return None
    scale = lax.convert_element_type(floating(name, scale), np.float32)
    if prod(aval_of(scale).shape) != 1:
        raise refused(name, "the global scale must be one number", got=aval_of(scale), wanted="the shape () or (1,)",
                      todo="map the function over several by vmap", kind=CorejaxValueError)
    return jnp.reshape(scale, ())


def _among(name: str, what: str, dtype: Any, taken: Sequence[np.dtype]) -> np.dtype:
    try:
        found: Any = np.dtype(dtype)  # `dtypes.canonical` doesn't know float4
    except Exception:  # NumPy refuses nonsense in many ways
        found = None
    if found not in taken:
        raise refused(name, f"{what} can't be this", got=repr(dtype)[:80], wanted=_text(taken),
                      todo="make the configuration by nn.get_scaled_dot_general_config")
    return found  # type: ignore[no-any-return]


# Rounding

def _largest(dtype: np.dtype) -> float:
    return float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]


def _divided(x: Any, divisor: Any) -> Any:
    """Quotients, the same whether compiled or not. 0 over 0 is 0, since scales of zeros may be 0."""
    divisor = jnp.broadcast_to(divisor, aval_of(x).shape)  # compilers may multiply by a reciprocal, but for the barrier
    return jnp.where(x == 0, x, x / lax.optimization_barrier(divisor))


def _rounded(x: Any, dtype: np.dtype) -> Any:
    """Numbers of float32, none of them too large, rounded to a dtype: of this dtype, or, for float4, still float32."""
    if dtype != _FLOAT4:
        return lax.convert_element_type(x, dtype)
    size = jnp.abs(x)
    step = jnp.where(size < 2, np.float32(0.5), jnp.where(size < 4, np.float32(1), np.float32(2)))
    return jnp.round(x / step) * step  # which takes the even one of two, as the format does


def _quantized(x: Any, how: _Format, global_scale: Any) -> tuple[Any, Any]:
    """Rows `[B, M, K]` as data and scales of blocks; K is filled up with zeros."""
    limit = _largest(how.data_type)
    x = lax.convert_element_type(x, np.float32)  # small scales would be 0 in float16
    x = x if global_scale is None else _divided(x, global_scale)
    x = lax.pad(x, np.float32(0), [(0, 0, 0), (0, 0, 0), (0, -aval_of(x).shape[2] % how.block_size, 0)])
    *rows, size = aval_of(x).shape
    blocks = jnp.reshape(x, (*rows, size // how.block_size, how.block_size))
    scales = how.rule.scale(jnp.max(jnp.abs(blocks), axis=-1), limit)
    scales = lax.convert_element_type(scales, how.rule.scale_type)
    data = jnp.clip(_divided(blocks, lax.convert_element_type(scales, np.float32)[..., None]), -limit, limit)
    return jnp.reshape(_rounded(data, how.data_type), aval_of(x).shape), scales


# Numbers that get scales

@public
def scaled_dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: Any,
                       preferred_element_type: DTypeLike = np.float32,
                       configs: Sequence[BlockScaleConfig] | None = None,
                       implementation: Literal["cudnn"] | None = None) -> Array:
    """`lax.dot_general` of operands rounded to narrow formats, in which blocks along what is summed have scales.

    `configs` are those of lhs, of rhs and of gradients; without them, this is `lax.dot_general`. The result is float32,
    bfloat16 or float16. Blocks at the end may be shorter. Several summed axes are taken in the order of those of lhs.

    The derivative, for reverse mode only, is the one without rounding; but if the third mode is "mxfp8", gradients are
    rounded as well, and the operands along other axes. If it is "nvfp4", they aren't, and elements too large for the
    format get 0. Global scales have derivatives of 0. `implementation` isn't used any more.

    >>> x, y = np.array([[1.0, 2.03]]), np.array([[1.0], [1.0]])
    >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> nn.scaled_dot_general(x, y, (((1,), (0,)), ((), ())), configs=configs).item()
    3.0
    """
    name = "scaled_dot_general"
    if implementation is not None:
        warn("scaled_dot_general: implementation isn't used any more; leave it out", DeprecationWarning)
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers,  # type: ignore[no-any-return]
                               preferred_element_type=preferred_element_type)
    wanted = _preferred(name, preferred_element_type, [np.dtype(np.float32), dtypes.bfloat16, np.dtype(np.float16)])
    if not isinstance(configs, Sequence) or len(configs) != 3:
        raise refused(name, "this takes three configurations", wanted="one each for lhs, rhs and gradients",
                      got=f"{len(configs)} of them" if isinstance(configs, Sequence) else kind_of(configs),
                      todo='configs=[nn.get_scaled_dot_general_config("mxfp8")] * 3')
    formats, scales = zip(*[_format(config) for config in configs], strict=True)
    lhs, rhs = floating(name, lhs), floating(name, rhs)
    left, right = aval_of(lhs).shape, aval_of(rhs).shape
    (l_summed, r_summed), (l_batch, r_batch) = _numbers(name, dimension_numbers, left, right)
    stacks = _stacked(lhs, l_batch, l_summed), _stacked(rhs, r_batch, r_summed)
    out = _scaled_dot_general(*stacks, scales, formats, wanted)
    kept = shaping.without(left, (*l_batch, *l_summed)), shaping.without(right, (*r_batch, *r_summed))
    return jnp.reshape(out, (*[left[d] for d in l_batch], *kept[0], *kept[1]))  # type: ignore[no-any-return]


def _numbers(name: str, numbers: Any, left: Axes, right: Axes) -> tuple[tuple[Axes, Axes], tuple[Axes, Axes]]:
    """Dimension numbers, checked: pairs of axes to sum over, by the order of those of lhs, and of the batch."""
    try:
        (l_summed, r_summed), (l_batch, r_batch) = [[tuple(axes) for axes in pair] for pair in numbers]
    except (TypeError, ValueError) as error:
        raise refused(name, "dimension_numbers has the wrong form", got=repr(numbers)[:80],
                      wanted="((lhs summed, rhs summed), (lhs batch, rhs batch))",
                      todo="for a matrix product: (((1,), (0,)), ((), ()))") from error
    l_axes, r_axes = [shaping.canonical_axes(name, axes, len(shape)) for axes, shape in (
        ((*l_summed, *l_batch), left), ((*r_summed, *r_batch), right))]
    count = len(l_summed)
    sizes = [left[d] for d in l_axes], [right[d] for d in r_axes]
    if (count, len(l_batch)) != (len(r_summed), len(r_batch)) or sizes[0] != sizes[1]:
        raise refused(name, "axes to sum over, or of the batch, differ in number or size", kind=CorejaxValueError,
                      got=f"shapes {_text((left, right))}, dimension_numbers={numbers}", wanted="pairs of equal sizes",
                      todo="check dimension_numbers against the shapes")
    pairs = sorted(zip(l_axes[:count], r_axes[:count], strict=True))
    l_summed, r_summed = [tuple([pair[i] for pair in pairs]) for i in (0, 1)]
    return (l_summed, r_summed), (l_axes[count:], r_axes[count:])


def _stacked(x: Any, batch: Axes, summed: Axes) -> Any:
    """The operand as `[B, M, K]`: its axes of the batch, those that are kept, and those to sum over."""
    shape = aval_of(x).shape
    kept = tuple([d for d in range(len(shape)) if d not in (*batch, *summed)])
    groups = batch, kept, summed
    return jnp.reshape(jnp.transpose(x, sum(groups, ())), [prod([shape[d] for d in axes]) for axes in groups])


@partial(custom_vjp, nondiff_argnums=(3, 4))
def _scaled_dot_general(lhs: Any, rhs: Any, scales: Any, formats: tuple[_Format, ...], dtype: np.dtype) -> Any:
    (left, l_scales), (right, r_scales) = [
        _quantized(x, how, scale) for x, how, scale in zip((lhs, rhs), formats[:2], scales[:2], strict=True)]
    out = _multiplied(left, right, l_scales, r_scales)
    known = [scale for scale in scales[:2] if scale is not None]
    return lax.convert_element_type(out * prod(known) if known else out, dtype)


def _forward(lhs: Any, rhs: Any, scales: Any, formats: tuple[_Format, ...], dtype: np.dtype) -> tuple[Any, Any]:
    return _scaled_dot_general(lhs, rhs, scales, formats, dtype), (lhs, rhs, scales)


def _backward(formats: tuple[_Format, ...], dtype: np.dtype, residuals: Any, out_bar: Any) -> Any:
    lhs, rhs, scales = residuals
    bars = [_slope(out_bar, rhs, formats[1:], scales[1:], dtype),
            _slope(jnp.matrix_transpose(out_bar), lhs, formats[::2], scales[::2], dtype)]
    if not formats[2].rule.rounds_gradients:
        bars = [_where_fits(x, x_bar, how, scale) for x, x_bar, how, scale in zip(
            (lhs, rhs), bars, formats[:2], scales[:2], strict=True)]
    return *[lax.convert_element_type(x_bar, aval_of(x).dtype) for x, x_bar in zip((lhs, rhs), bars, strict=True)], None


def _slope(out_bar: Any, other: Any, formats: tuple[_Format, ...], scales: tuple[Any, ...], dtype: np.dtype) -> Any:
    """The cotangent of one operand, from the other one; formats and scales are those of `other` and of gradients."""
    other = jnp.matrix_transpose(other)
    if formats[1].rule.rounds_gradients:
        return _scaled_dot_general(out_bar, other, (scales[1], *scales), (formats[1], *formats), dtype)
    both = result_type(out_bar, other)
    operands = [lax.convert_element_type(x, both) for x in (out_bar, other)]
    return lax.dot_general(*operands, (((2,), (2,)), ((0,), (0,))), preferred_element_type=dtype)


def _where_fits(x: Any, x_bar: Any, how: _Format, scale: Any) -> Any:
    """The cotangent, but 0 for elements that the format cuts off."""
    if scale is None:
        return x_bar
    most = scale * np.float32(_largest(how.data_type)) * np.float32(_largest(how.rule.scale_type))
    return jnp.where(jnp.abs(x) <= most, x_bar, 0)


_scaled_dot_general.defvjp(_forward, _backward)
