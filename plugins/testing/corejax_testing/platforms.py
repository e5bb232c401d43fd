"""The check of lowerings for platforms of which there may be no device: lowering takes none."""

from __future__ import annotations

from corejax.core import default_platform, lower_module, stage_closed
from corejax.errors import CorejaxError, CorejaxNotImplementedError, PackError
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.report import NotApplicable

#: Those that programs can be exported for.
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


@check("xla_translation")
def it_lowers_for_every_platform(case: Case) -> None:
    """Its lowering gives a valid program for the CPU, CUDA, ROCm and TPUs, or an error that says why it has none."""
    if not case.largest:
        raise NotApplicable("another sample represents this one")
    jaxpr = stage_closed(case.apply, list(case.avals))
    lowered = []
    for platform in PLATFORMS:
        if platform == default_platform():  # other checks compile for it
            continue
        try:
            module = lower_module(jaxpr, (), case.primitive.name, platform)
            with module.context:
                module.module.operation.verify()
        except (PackError, CorejaxNotImplementedError):  # a kernel, or what it does, is for some platforms only
            continue
        except Exception as error:
            slot = f"xla_translation@{platform}"
            cause = error.__cause__ or error
            got = error.message if isinstance(error, CorejaxError) else f"{type(cause).__name__}: {cause}"
            raise case.fail(slot if slot in case.primitive.providers else "xla_translation",
                            f"it can't be lowered for {platform}",
                            got=got, wanted="StableHLO, or a CorejaxNotImplementedError that says what it is for",
                            todo="fix the lowering for this platform: exporting for it finds the same") from error
        lowered.append(platform)
    if not lowered:
        raise NotApplicable("it is for one platform only")
