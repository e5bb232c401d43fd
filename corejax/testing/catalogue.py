"""All checks, in the order in which they run: cheap ones, on which others build, first."""

from __future__ import annotations

from corejax.testing import batching, declared, derivatives, orderings, programs, transposes, values
from corejax.testing.check import Check

_MODULES = (declared, values, programs, derivatives, transposes, batching, orderings)

#: Every check by its name.
CHECKS: dict[str, Check] = {
    found.name: found for module in _MODULES for found in vars(module).values() if isinstance(found, Check)}
