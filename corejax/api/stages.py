"""The stages of a compiled function on pytrees: traced, lowered, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corejax import trees
from corejax.api.programs import Program, without_unused
from corejax.api.signatures import avals_of
from corejax.api.staging import struct_of
from corejax.api.statics import Statics
from corejax.avals import ShapedArray
from corejax.errors import CorejaxTypeError
from corejax.ir.jaxpr import ClosedJaxpr
from corejax.leaves import argument_namer
from corejax.prefixes import check_same_structure
from corejax.source import here
from corejax.tracebacks import public
from corejax.xla import stages


@public
class Traced:
    """A function traced for arguments of certain types."""

    def __init__(self, program: Program, in_tree: Any, statics: Statics) -> None:
        self._program, self._in_tree, self._statics = program, in_tree, statics

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program."""
        return self._program.closed

    @property
    def fun_name(self) -> str:
        return self._program.name

    @property
    def in_avals(self) -> list[ShapedArray]:
        return list(self.jaxpr.in_avals)

    @property
    def out_info(self) -> Any:
        """The result, with a `ShapeDtypeStruct` for each array."""
        return self._program.unflatten(list(map(struct_of, self.jaxpr.out_avals)))

    def lower(self, platform: str | None = None) -> Lowered:
        """Lower it for a platform; the default device's by default."""
        closed, kept = self.jaxpr, list(range(len(self.jaxpr.in_avals)))
        if not self._program.keep_unused:
            closed, kept = without_unused(closed)
        donated = [k for k, i in enumerate(kept) if self._program.donated[i]]
        return Lowered(self, stages.lower_jaxpr(closed, donated, self._program.name, platform), kept)


@public
class Lowered:
    """A function lowered to a StableHLO module."""

    def __init__(self, traced: Traced, flat: stages.Lowered, kept: list[int]) -> None:
        self.traced, self._flat, self._kept = traced, flat, kept

    @property
    def module(self) -> Any:
        """The MLIR module itself."""
        return self._flat.module

    def as_text(self) -> str:
        """The module's text."""
        return self._flat.as_text()

    def compile(self, options: Mapping[str, Any] | None = None, device: Any = None) -> Compiled:
        """Compile it, with options for the compiler."""
        return Compiled(self.traced, self._flat.compile(options, device), self._kept)


@public
class Compiled:
    """A function compiled for arguments of certain types: called with such, it runs; it never traces."""

    def __init__(self, traced: Traced, flat: stages.Compiled, kept: list[int]) -> None:
        self.traced, self._flat, self._kept = traced, flat, kept

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced = self.traced
        _, dynamic = traced._statics.split(args, kwargs)
        leaves, in_tree = trees.flatten(dynamic)
        name = argument_namer(*dynamic)
        if in_tree != traced._in_tree:
            check_same_structure(traced._in_tree.unflatten(traced.in_avals), dynamic,
                                 ("the arguments it was compiled for", "(args, kwargs)"), traced.fun_name)
        for i, (got, wanted) in enumerate(zip(avals_of(leaves, traced.fun_name, name), traced.in_avals, strict=True)):
            if not got.matches(wanted):
                raise CorejaxTypeError(f"{traced.fun_name}: {name(i)} has another type than it was compiled for",
                                       got=str(got), wanted=str(wanted), where=here(),
                                       todo="convert it, or call the jitted function itself, which compiles anew")
        return traced._program.unflatten(self._flat(*[leaves[i] for i in self._kept]))

    def as_text(self) -> str:
        """The optimised program, in HLO."""
        return self._flat.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates of work: `flops`, `bytes accessed` and others."""
        return self._flat.cost_analysis()

    def memory_analysis(self) -> Any:
        """What memory it takes: arguments, outputs, temporaries, code."""
        return self._flat.memory_analysis()
