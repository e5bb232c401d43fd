"""Calls of cuSOLVER and hipSOLVER, as jaxlib names them: on GPUs, functions serve every type, and batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corejax.core import ShapedArray
from corejax_linear_algebra._lapack import call_target

#: What jaxlib's names of functions begin with.
_PREFIXES = {"cuda": "cu", "rocm": "hip"}

#: The platforms for which jaxlib has functions of GPUs.
GPUS = tuple(_PREFIXES)


def prefix(ctx: Any) -> str:
    """What the names of functions for the platform begin with."""
    return _PREFIXES[ctx.platform]


def call(ctx: Any, function: str, args: Sequence[Any], avals: Sequence[ShapedArray], outs: Sequence[ShapedArray],
         aliases: Mapping[int, int] | None = None, **config: Any) -> list[Any]:
    """A function of cuSOLVER or hipSOLVER, such as "potrf", `cusolver_potrf_ffi`; arguments as for LAPACK's."""
    return call_target(ctx, f"{prefix(ctx)}solver_{function}_ffi", args, avals, outs, aliases, **config)


def call_other(ctx: Any, function: str, args: Sequence[Any], avals: Sequence[ShapedArray],
               outs: Sequence[ShapedArray], aliases: Mapping[int, int] | None = None, **config: Any) -> list[Any]:
    """Another of jaxlib's functions of GPUs, by what follows the prefix in its name: "sparse_gtsv2_ffi"."""
    return call_target(ctx, prefix(ctx) + function, args, avals, outs, aliases, **config)


def rules(distribution: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """The table `RULES` of a module: the lowerings for GPUs, by primitive."""
    return {f"{distribution}/{name}:xla_translation@{platform}": rule
            for name, rule in found.items() for platform in GPUS}
