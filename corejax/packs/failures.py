"""What a function of a pack does where it finds no result, though its operands have the right types."""

from __future__ import annotations

from corejax.base.config import config


def failures_are_errors() -> bool:
    """Whether an eager call that finds no result is to raise an error, rather than to give NaNs.

    >>> from corejax.config import config
    >>> with config(numerical_failures="error"):
    ...     failures_are_errors()
    True
    """
    return config.numerical_failures == "error"
