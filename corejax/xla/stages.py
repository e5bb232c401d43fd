"""The stages of a compiled function, each to be looked at: traced, lowered, compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corejax.avals import ShapedArray
from corejax.ir.jaxpr import ClosedJaxpr
from corejax.xla import client
from corejax.xla.compile import Executable, compile_lowered, hoisted_consts, settings_of
from corejax.xla.lowering import Lowering, bake, lower_module


class Compiled:
    """A program ready to run, on flat arguments."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return self.executable.in_avals

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return self.executable.out_avals

    def __call__(self, *args: Any) -> list[Any]:
        return self.executable(args)

    def as_text(self) -> str:
        """The optimised program, in HLO."""
        return self.executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates of work: `flops`, `bytes accessed` and others."""
        return self.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """What memory it takes: arguments, outputs, temporaries, code."""
        return self.executable.memory_analysis()


class Lowered:
    """A StableHLO module that is not compiled yet."""

    def __init__(self, lowering: Lowering, closed: ClosedJaxpr, baked: Sequence[Any], donated: Sequence[int]) -> None:
        self._lowering, self._closed, self._baked, self._donated = lowering, closed, baked, tuple(donated)

    @property
    def in_avals(self) -> list[ShapedArray]:
        return self._closed.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self._closed.jaxpr.out_avals

    @property
    def module(self) -> Any:
        """The MLIR module itself."""
        return self._lowering.module

    def as_text(self) -> str:
        """The module's text; it says nothing of what XLA will make of it."""
        return str(self._lowering.module)

    def compile(self, options: Mapping[str, Any] | None = None, device: Any = None) -> Compiled:
        """Compile it for a device, with options for the compiler."""
        place = client.place_of(device)
        consts = hoisted_consts(self._closed, self._baked, place)
        settings = settings_of(options)
        return Compiled(compile_lowered(self._lowering, self._closed, place, self._donated, settings, consts))


class Traced:
    """A jaxpr that is not lowered yet."""

    def __init__(self, jaxpr: ClosedJaxpr, name: str = "fn", donated: Sequence[int] = ()) -> None:
        self.jaxpr, self.name, self._donated = jaxpr, name, tuple(donated)

    @property
    def in_avals(self) -> list[ShapedArray]:
        return self.jaxpr.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self.jaxpr.jaxpr.out_avals

    def lower(self, platform: str | None = None) -> Lowered:
        """Lower it for a platform."""
        return lower_jaxpr(self.jaxpr, self._donated, self.name, platform)


def lower_jaxpr(closed: ClosedJaxpr, donated: Sequence[int] = (), name: str = "fn",
                platform: str | None = None) -> Lowered:
    """Lower a closed jaxpr; `donated` are the indices of arguments that the program may overwrite."""
    baked = bake(closed.consts)
    lowering = lower_module(closed.jaxpr, baked, name, platform or client.default_platform(), donated)
    return Lowered(lowering, closed, baked, donated)
