"""The stages of a compiled function, for inspection: lowered, compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corejax.base import _jaxlib
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxError, CorejaxValueError
from corejax.base.source import here
from corejax.kernel.jaxpr import ClosedJaxpr
from corejax.xla.cache.compile import Executable, compile_lowered, hoisted_consts, wanted_by, with_consts
from corejax.xla.lowering.programs import Lowering, bake, lower_module
from corejax.xla.runtime import client
from corejax.xla.runtime.failures import refused_program
from corejax.xla.runtime.options import settings_of
from corejax.xla.runtime.places import Request

if TYPE_CHECKING:
    from corejax.arrays.array import Array
    from corejax.base._jaxlib import Module


class Compiled:
    """A compiled program, which takes flat arguments."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return self.executable.in_avals

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return self.executable.out_avals

    def __call__(self, *args: Any) -> list[Array]:
        return self.executable(args)

    def as_text(self) -> str:
        """The optimized program, in HLO."""
        return self.executable.as_text()

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates of work: `flops`, `bytes accessed` and others."""
        return self.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """What memory it takes: arguments, outputs, temporaries, code."""
        return self.executable.memory_analysis()


class Lowered:
    """A StableHLO module that hasn't been compiled yet."""

    def __init__(self, lowering: Lowering, closed: ClosedJaxpr, baked: Sequence[Any], donated: Sequence[int],
                 name: str = "fn", request: Request | None = None) -> None:
        self._request = request  # with several devices
        self._lowering, self._closed, self._baked, self._donated = lowering, closed, baked, tuple(donated)
        self._name = name

    @property
    def in_avals(self) -> list[ShapedArray]:
        return self._closed.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        return self._closed.jaxpr.out_avals

    @property
    def platform(self) -> str:
        """The platform for which it was lowered."""
        return self._lowering.platform

    @property
    def module(self) -> Any:
        """The MLIR module itself."""
        return self._lowering.module

    def as_text(self, dialect: str = "stablehlo", *, debug_info: bool = False) -> str:
        """The module's text, before any optimization by XLA.

        `dialect` is "stablehlo", or "hlo" for what the compiler translates that to first. With `debug_info`, each
        operation says which equation it comes from, and where that is in the source.
        """
        if dialect not in ("stablehlo", "hlo"):
            raise CorejaxValueError("as_text: unknown dialect", got=f"{dialect!r:.80}", where=here(),
                                    wanted="'stablehlo' or 'hlo'", todo="for the optimized program, compile it first")
        module = self._located() if debug_info else self.module
        if dialect == "stablehlo":
            return str(module.operation.get_asm(enable_debug_info=True)) if debug_info else str(module)
        return str(self._hlo(module).to_string())

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates of work for the unoptimized program."""
        return dict(_jaxlib.runtime.hlo_module_cost_analysis(client.places()[0].client, self._hlo(self.module)))

    def compile(self, compiler_options: Mapping[str, Any] | None = None, device: object = None) -> Compiled:
        """Compile it for a device, with compiler options."""
        settings = settings_of(compiler_options)
        request = self._request
        if request is not None and device is None:
            executable = compile_lowered(self._lowering, self._closed, request, self._donated, settings)
            return Compiled(executable.instead(executable.at, hoisted_consts(self._closed, self._baked, executable.at)))
        place = client.place_of(device)
        if place.compiler != self.platform:
            raise CorejaxValueError(f"a program lowered for {self.platform} can't be compiled for {place.compiler}",
                                    got=f"the device {place.device}", wanted=f"a device of {self.platform}",
                                    where=here(), todo=f"lower it for that one: .lower(platform={place.compiler!r})")
        consts = hoisted_consts(self._closed, self._baked, place)
        return Compiled(compile_lowered(self._lowering, self._closed, place, self._donated, settings, consts))

    def _located(self) -> Any:
        return lower_module(self._closed.jaxpr, self._baked, self._name, self.platform, self._donated,
                            located=True).module

    def _hlo(self, module: Module) -> Any:
        try:
            return _jaxlib.runtime.mlir.mlir_module_to_xla_computation(
                str(module.operation.get_asm(enable_debug_info=True))).get_hlo_module()
        except CorejaxError:
            raise
        except Exception as error:  # the bindings raise several classes without a common base
            raise refused_program(error) from error


def lower_jaxpr(closed: ClosedJaxpr, donated: Sequence[int] = (), name: str = "fn",
                platform: str | None = None, request: Request | None = None) -> Lowered:
    """Lower a closed jaxpr; `donated` are the indices of arguments that the program may overwrite."""
    baked = bake(closed.consts)
    wanted = None
    if request is not None:
        request = with_consts(request, closed, baked)
        wanted = wanted_by(request)
    lowering = lower_module(closed.jaxpr, baked, name, platform or client.default_platform(), donated, wanted=wanted)
    return Lowered(lowering, closed, baked, donated, name, request)
