"""`cj.config`: settings, from the environment, for the process, or for a `with` block."""

from __future__ import annotations

from corejax.base.config import config

__all__ = ["config"]


def __dir__() -> list[str]:
    return sorted(__all__)
