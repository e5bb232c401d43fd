"""The setting `config.compare_programs`."""

from __future__ import annotations

from corejax.plugin import Setting, settings

__all__ = ["compare_programs"]

compare_programs = Setting("compare_programs", True, settings.OneOf(True, False),
                           "compare what several processes are about to run together, so that none waits for good "
                           "where another one computes something else; read by distributed.initialize")
