"""The steps of a scan in segments of equally many, and loops over these.

What remains makes a shorter segment, which is the last one in time: at the end, or with `reverse` at the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corejax import lax
from corejax.core import Jaxpr, ShapedArray, aval_of, stage_closed
from corejax.plugin import carrying
from corejax_control_flow._scan_body import Body
from corejax_control_flow._scan_primitive import run_scan
from corejax_control_flow._scan_rules import stacked
from corejax_control_flow.checkpointing import bind_checkpoint


class Segments(NamedTuple):
    """How many segments of how many steps there are, and how many steps remain."""

    number: int
    size: int
    rest: int
    reverse: bool

    @classmethod
    def of(cls, length: int, size: int, reverse: bool) -> Segments:
        """The segments of a loop."""
        number, rest = divmod(length, size)
        return cls(number, size, rest, reverse)

    @property
    def length(self) -> int:
        """How many slices there are."""
        return self.number * self.size + self.rest

    @property
    def starts(self) -> Segments:
        """The same for arrays of one slice per segment."""
        return Segments(self.number, 1, min(self.rest, 1), self.reverse)

    def cut(self, x: Any) -> tuple[Any, Any]:
        """The slices of full segments, with an axis for these, and those that remain."""
        middle = self.rest if self.reverse else self.length - self.rest
        parts = lax.slice_in_dim(x, 0, middle), lax.slice_in_dim(x, middle, self.length)
        full, last = reversed(parts) if self.reverse else parts
        return lax.reshape(full, (self.number, self.size, *aval_of(x).shape[1:])), last

    def join(self, full: Any, rest: Any) -> Any:
        """The inverse of `cut`. Of two parts, one may not be there: then it is None."""
        if full is not None:
            shape = aval_of(full).shape
            full = lax.reshape(full, (shape[0] * shape[1], *shape[2:]))
        parts = [x for x in ((rest, full) if self.reverse else (full, rest)) if x is not None]
        return lax.concatenate(parts, 0) if len(parts) > 1 else parts[0]


def avals_of(body: Body, size: int) -> list[ShapedArray]:
    """The types of the operands of a scan of so many steps."""
    consts, carry, xs = body.operands(body.jaxpr.in_avals)
    return [*consts, *carry, *[stacked(aval, size) for aval in xs]]


def run_segments(segments: Segments, program: Callable[[int], Body], consts: Sequence[Any], carry: Sequence[Any],
                 starts: Sequence[Any], xs: Sequence[Any], backward: bool = False, keeps: bool = False
                 ) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """The carry after all segments, and what they write out: of the full ones, and of the one that remains.

    They run in the order of the scan's steps, or `backward`.

    `program(size)` is that of a segment of so many steps. It takes constants, the carry, a slice of each of `starts`,
    and `size` slices of each of `xs`. Unless it `keeps` residuals, reverse mode computes it again.
    """
    rows = [segments.starts.cut(x) for x in starts]
    pairs = [segments.cut(x) for x in xs]
    outs: dict[bool, list[Any]] = {}
    carry = [*carry]
    for is_full in (True, False) if not backward else (False, True):
        if not (segments.number if is_full else segments.rest):
            continue
        body = program(segments.size if is_full else segments.rest)
        if not keeps:
            body = body._replace(jaxpr=_checkpointed(body.jaxpr))
        if is_full:
            slices = [*[lax.squeeze(full, (1,)) for full, _ in rows], *[full for full, _ in pairs]]
            found = run_scan(body, [*consts, *carry, *slices], length=segments.number,
                             reverse=segments.reverse is not backward, unroll=1)
        else:
            slices = [*[lax.squeeze(rest, (0,)) for _, rest in rows], *[rest for _, rest in pairs]]
            found = carrying.run(body.jaxpr, [*consts, *carry, *slices])
        carry, outs[is_full] = body.results(found)
    nothing = [None] * len(next(iter(outs.values())))
    return carry, [*zip(outs.get(True, nothing), outs.get(False, nothing), strict=True)]


@carrying.remembered
def _checkpointed(jaxpr: Jaxpr) -> Jaxpr:
    """A program that calls this one, checkpointed."""
    program = jaxpr.replace()

    def call(*operands: Any) -> list[Any]:
        return bind_checkpoint(program, operands, prevent_cse=False)
    return stage_closed(call, jaxpr.in_avals, "segments")
