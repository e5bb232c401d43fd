"""The conformance kit: checks that the rules of a primitive agree with each other and with mathematics.

>>> from corejax.testing import check_primitive
>>> check_primitive("neg")
Report(1 primitive: ... checks held, 0 failed, ... s)

A primitive's hook `samples` gives the inputs. `check_primitive` and `check_pack` raise a `ConformanceError` that lists
each broken law with the primitive, the hook, the input and what to do; `pytest --corejax-pack NAME` makes a test of
each primitive and check. `search=True` also looks for the smallest other input that breaks a law.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from corejax.plugin import Sample
from corejax_testing.case import Case
from corejax_testing.catalogue import CHECKS
from corejax_testing.check import Check, check
from corejax_testing.effort import Search
from corejax_testing.report import ConformanceError, Failure, Outcome, Report
from corejax_testing.running import check_pack, check_primitive

if TYPE_CHECKING:
    from corejax_testing.pytest_plugin import pack_tests

__all__ = ["CHECKS", "Case", "Check", "ConformanceError", "Failure", "Outcome", "Report", "Sample", "Search", "check",
           "check_pack", "check_primitive", "pack_tests"]


def __getattr__(name: str) -> Any:
    # Loaded on use: the kit can be used without pytest, which may not be installed.
    if name == "pack_tests":
        return import_module("corejax_testing.pytest_plugin").pack_tests
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
