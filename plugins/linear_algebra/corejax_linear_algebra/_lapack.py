"""Calls of LAPACK, which jaxlib brings for the CPU: matrices by columns, the axes before them as a batch.

LAPACK isn't asked about arrays without elements: it would say that their sizes are wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corejax.core import ShapedArray
from corejax.errors import CorejaxNotImplementedError
from corejax.plugin import refused
from corejax_linear_algebra._matrices import INT32, nan_unless, typed

#: The letter with which LAPACK names functions of a type.
_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d", np.dtype(np.complex64): "c",
            np.dtype(np.complex128): "z"}


def target_of(function: str, dtype: np.dtype) -> str:
    """What jaxlib calls one of LAPACK's functions: `lapack_dpotrf_ffi` for potrf of float64."""
    return f"lapack_{_LETTERS[dtype]}{function}_ffi"


def letter(value: str) -> np.uint8:
    """A character that LAPACK reads, such as "L"."""
    return np.uint8(ord(value))


def call(ctx: Any, function: str, args: Sequence[Any], avals: Sequence[ShapedArray], outs: Sequence[ShapedArray],
         aliases: Mapping[int, int] | None = None, **config: Any) -> list[Any]:
    """LAPACK's `function` for the type of the first operand: its results, of types `outs`.

    `aliases` says which result has the memory of which operand, `{operand: result}`; `config` is what the function
    reads by name. Where no operand or result has elements, results are those operands, and zeros.
    """
    return call_target(ctx, target_of(function, avals[0].dtype), args, avals, outs, aliases, **config)


def call_target(ctx: Any, target: str, args: Sequence[Any], avals: Sequence[ShapedArray], outs: Sequence[ShapedArray],
                aliases: Mapping[int, int] | None = None, *, columns: bool = True, core: int = 2,
                **config: Any) -> list[Any]:
    """A native function of batches, whose operands with the most axes are matrices, by columns unless told otherwise.

    `core` is how many axes a matrix has; those before are the batch, along which the compiler may divide the call.
    """
    if not all([aval.size for aval in (*avals, outs[0])]):
        kept = {result: args[operand] for operand, result in (aliases or {}).items()}
        return [kept[i] if i in kept else ctx.constant(np.zeros(out.shape, out.dtype)) for i, out in enumerate(outs)]
    rank = max([aval.ndim for aval in avals])

    def layouts(types: Sequence[ShapedArray]) -> list[str | None]:
        return ["column" if columns and aval.ndim == rank and rank > 1 else None for aval in types]
    return list(ctx.custom_call(
        target, args, out_types=[ctx.type_of(out) for out in outs], aliases=aliases, backend_config=config,
        operand_layouts=layouts(avals), result_layouts=layouts(outs),
        attributes={"mhlo.frontend_attributes": ctx.attribute(f'{{num_batch_dims = "{rank - core}"}}')}))


def call_compiler(ctx: Any, target: str, args: Sequence[Any], api_version: int = 1) -> list[Any]:
    """A function that the compiler of a platform knows itself, by the older interface, which takes no config."""
    return list(ctx.custom_call(target, args, api_version=api_version,
                                attributes={"backend_config": ctx.attribute('""')}))


def status_of(aval: ShapedArray, core: int = 2) -> ShapedArray:
    """The type of what a function says about success: an integer for each matrix, 0 if all is well."""
    return typed(aval, aval.shape[:aval.ndim - core], INT32)


def where_ok(ctx: Any, status: Any, *results: Any, negative: bool = False) -> list[Any]:
    """The results, with NaN for each matrix of a batch whose status isn't 0; with `negative`, whose status is < 0."""
    def select(status: Any, *outs: Any) -> list[Any]:
        ok = status >= 0 if negative else status == 0
        return [nan_unless(ok, out) for out in outs]
    return list(ctx.lower(select, status, *results))


def no_lowering(ctx: Any, instead: str) -> Exception:
    """The error for a platform on which nobody computes a primitive."""
    name = ctx.eqn.primitive.name
    return refused(name, f"can't be compiled for {ctx.platform}", got=f"platform {ctx.platform!r}",
                   wanted="one of the platforms 'cpu', 'cuda' and 'rocm'", todo=instead,
                   kind=CorejaxNotImplementedError)
