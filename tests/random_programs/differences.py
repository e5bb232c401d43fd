"""Where a program may give something else than jax gives, on purpose, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .comparing import Failure


@dataclass(frozen=True)
class Known:
    """Failures of this kind beside this oracle that a test of their text recognizes are no failures."""

    reason: str
    oracle: str
    kinds: tuple[str, ...]
    recognized: Callable[[Failure], bool]
    #: Does corejax, run element by element and step by step, have to confirm what it gave?
    confirmed: bool = False


def nan_of_a_zero_tangent(failure: Failure) -> bool:
    """Only jax has a nan, and there is a rule of a user's."""
    got, wanted = failure.what.split("\n  wanted ")
    return "custom_jvp" in failure.program.text and "nan" in wanted and wanted.count("nan") > got.count("nan")


KNOWN: list[Known] = [
    Known("A tangent that is zero because nothing depends on it takes no part in a custom_jvp's rule. jax makes an"
          " array of zeros of it, and that times an infinity is a nan.", "jax", ("value",), nan_of_a_zero_tangent),
    Known("A result of a custom_vjp that vmap doesn't map: jax counts its cotangent once for each element.", "jax",
          ("value",), lambda failure: "custom_vjp" in failure.program.text and failure.maps, confirmed=True),
    Known("A rule of a custom_jvp returns a tangent that isn't mapped for a result that is: jax fails.", "jax",
          ("accepted", "shape"), lambda failure: "custom_jvp" in failure.program.text and failure.maps, confirmed=True),
    Known("A result of vmap that no operand is mapped in keeps its weak type, as under jit; jax loses it.", "jax",
          ("weak",), lambda failure: failure.maps and "got ~" in failure.what),
]


#: What is wrong and is not mended yet. To be empty.
OPEN: list[Known] = [
    Known("derivatives by weak arguments are strong", "jax", ("weak",), lambda failure: True),
    Known("weak values that custom rules return are refused", "jax", ("error",),
          lambda failure: "RuleError" in failure.what and "~f64" in failure.what),
]


def known(failure: Failure, oracle: str) -> list[Known]:
    """The rows that may explain it."""
    rows = [row for row in (*KNOWN, *OPEN) if row.oracle == oracle and failure.kind in row.kinds]
    return [row for row in rows if row.recognized(failure)]
