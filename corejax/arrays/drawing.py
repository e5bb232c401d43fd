"""Which devices hold which part of an array, drawn as text or SVG."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from html import escape
from typing import Any

from corejax.arrays.shardings import NamedSharding, Sharding, canonical_shape
from corejax.base.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import public

#: Light colors on which black text can be read, by their numbers in the 6 x 6 x 6 cube of terminals.
_COLORS = (117, 222, 151, 217, 183, 159, 216, 187, 147, 229, 120, 218)
_LEVELS = (0, 95, 135, 175, 215, 255)
_LABEL = 14  # characters of a line in a box, unless one number is longer
_UNIT = 7  # the width of a character in an SVG


@public
class Drawing:
    """A picture of an array of at most two dimensions: each part is a box, in which are the devices that hold it.

    >>> from corejax.arrays.meshes import make_mesh
    >>> from corejax.arrays.partitions import P
    >>> print(Drawing((4, 8), NamedSharding(make_mesh((1, 1), ("x", "y")), P("x"))))
    shape (4, 8), P('x') on Mesh('x': 1, 'y': 1)
           0:8
        ┌───────┐
    0:4 │ cpu 0 │
        └───────┘

    `str(drawing)` is text; a notebook shows it as SVG.
    """

    def __init__(self, shape: Sequence[int], sharding: Sharding, *, max_width: int = 80) -> None:
        if not isinstance(sharding, Sharding):
            raise CorejaxTypeError("only shardings can be drawn", got=kind_of(sharding), wanted="a Sharding",
                                   where=here(), todo="pass x.sharding, or cj.NamedSharding(mesh, cj.P('x'))")
        self.shape = canonical_shape(shape)
        self.sharding = sharding
        self.max_width = max_width
        if len(self.shape) > 2:
            raise CorejaxValueError("an array of more than two dimensions can't be drawn", got=f"shape {self.shape}",
                                    wanted="one or two dimensions", where=here(),
                                    todo="draw a slice of it, such as x[0], or the two dimensions that are divided")
        parts = sharding.shard_shape(self.shape)
        counts, positions, _ = sharding.tiling(len(self.shape))
        self._rows = _ranges(counts[0], parts[0]) if len(self.shape) == 2 else [""]
        self._columns = _ranges(counts[-1], parts[-1]) if self.shape else [""]
        numbers: dict[tuple[int, int], list[int]] = {}
        for device, position in zip(sharding.flat_devices, positions, strict=True):
            numbers.setdefault((0, 0, *position)[-2:], []).append(device.id)  # type: ignore[arg-type]
        platform = sharding.flat_devices[0].platform
        self._labels = {place: f"{platform} {_listed(sorted(of_place))}" for place, of_place in numbers.items()}

    @property
    def title(self) -> str:
        """What is drawn."""
        said = f"{self.sharding.spec} on {self.sharding.mesh}" if isinstance(self.sharding, NamedSharding) else (
            "on one device")
        return f"shape {self.shape}, {said}"

    # As text

    def text(self, *, color: bool = False) -> str:
        """The drawing in characters, with codes for colors if wanted."""
        labels = {place: textwrap.wrap(label, max(_LABEL, *map(len, label.split()))) or [""]
                  for place, label in self._labels.items()}
        width = max([len(line) for lines in labels.values() for line in lines] + [len(name) for name in self._columns])
        margin = max(map(len, self._rows))
        columns = _shown(len(self._columns), (self.max_width - margin - 2) // (width + 3))
        rows = _shown(len(self._rows), 16)
        above = " ".join([(self._columns[c] if c >= 0 else "…").center(width + 2) for c in columns])
        lines = [self.title, f"{'':{margin}}  {above}".rstrip()] if self.shape else [self.title]
        lead = f"{'':{margin}} " if margin else ""
        if not margin:
            lines[1:] = [line[1:] for line in lines[1:]]
        rule = ["─" * (width + 2)] * len(columns)
        lines.append(f"{lead}┌{'┬'.join(rule)}┐")
        for place, r in enumerate(rows):
            if place:
                lines.append(f"{lead}├{'┼'.join(rule)}┤")
            height = max([len(labels[r, c]) for c in columns if r >= 0 <= c] or [1])
            for i in range(height):
                name = (self._rows[r] if r >= 0 else "…") if i == (height - 1) // 2 else ""
                boxes = [self._line(labels, r, c, i, width, color) for c in columns]
                lines.append((f"{name:>{margin}} " if margin else "") + f"│{'│'.join(boxes)}│")
        return "\n".join([*lines, f"{lead}└{'┴'.join(rule)}┘"])

    def _line(self, labels: dict[tuple[int, int], list[str]], r: int, c: int, i: int, width: int, color: bool) -> str:
        """One line of a box; a negative position stands for what is left out."""
        if r < 0 or c < 0:
            return "…".center(width + 2)
        lines = labels[r, c]
        text = (lines[i] if i < len(lines) else "").center(width + 2)
        return f"\x1b[48;5;{_color(r, c)};30m{text}\x1b[0m" if color else text

    def __repr__(self) -> str:
        return self.text()

    # As SVG

    def svg(self) -> str:
        """The drawing as SVG, in which boxes have about the proportions of the array's parts."""
        rows, columns = len(self._rows), len(self._columns)
        widest = max(map(len, self._labels.values()))
        left, top = 16 + _UNIT * max(map(len, self._rows)), 44
        tall = self.shape[0] / max(self.shape[1], 1) if len(self.shape) == 2 else 0.0
        wide = min(max(columns * min(_UNIT * (widest + 2), 160), 240), 720)
        high = min(max(wide * tall, rows * 28, 40), max(360, rows * 16))
        w, h = wide / columns, high / rows
        parts = [f'<text x="{left}" y="16" font-weight="bold">{escape(self.title)}</text>']
        for c, name in enumerate(self._columns if w >= _UNIT * max(map(len, self._columns)) else []):
            parts.append(f'<text x="{left + (c + .5) * w:.1f}" y="{top - 8}" text-anchor="middle">{name}</text>')
        for r, name in enumerate(self._rows if h >= 14 else []):
            parts.append(f'<text x="{left - 8}" y="{top + (r + .5) * h + 4:.1f}" text-anchor="end">{name}</text>')
        for (r, c), label in self._labels.items():
            x, y, where = left + c * w, top + r * h, f"[{', '.join(filter(None, [self._rows[r], self._columns[c]]))}]"
            parts.append(f'<g><title>{where}: {escape(label)}</title><rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" '
                         f'height="{h:.1f}" fill="{_hexadecimal(_color(r, c))}" stroke="#444"/>')
            if w >= _UNIT * len(label) and h >= 14:
                parts.append(f'<text x="{x + w / 2:.1f}" y="{y + h / 2 + 4:.1f}" text-anchor="middle" '
                             f'style="fill:#000">{escape(label)}</text>')
            parts.append("</g>")
        width, height = max(left + wide + 8, left + _UNIT * len(self.title) + 8), top + high + 8
        return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
                f'font-family="sans-serif" font-size="12" fill="currentColor">{"".join(parts)}</svg>')

    def _repr_svg_(self) -> str:
        return self.svg()


@public
def visualize_sharding(shape: Sequence[int], sharding: Sharding, *, use_color: bool = True,
                       max_width: int = 80) -> None:
    """Show which devices hold which part of an array of this shape: in a notebook as SVG, else as text.

    In a terminal, each part has a color of its own, unless `use_color` is False or the environment has NO_COLOR.
    """
    _show(Drawing(shape, sharding, max_width=max_width), use_color)


@public
def visualize_array_sharding(array: Any, *, use_color: bool = True, max_width: int = 80) -> None:
    """Show which devices hold which part of an array, as `visualize_sharding` does."""
    sharding = getattr(array, "sharding", None)
    if not isinstance(sharding, Sharding):
        raise CorejaxTypeError("only an array that has its elements is on devices", got=kind_of(array), where=here(),
                               wanted="an Array", todo="call it outside of transformed functions, on their results")
    _show(Drawing(array.shape, sharding, max_width=max_width), use_color)


def _show(drawing: Drawing, use_color: bool) -> None:
    notebook = sys.modules.get("IPython")
    shell = notebook and notebook.get_ipython()
    if hasattr(shell, "kernel"):
        notebook.display.display(drawing)  # type: ignore[union-attr]
    else:
        print(drawing.text(color=use_color and sys.stdout.isatty() and not os.environ.get("NO_COLOR")))


def _ranges(count: int, part: int) -> list[str]:
    """The ranges of a dimension that is divided into as many parts of this size."""
    return [f"{i * part}:{(i + 1) * part}" for i in range(count)]


def _listed(numbers: list[int]) -> str:
    """Sorted numbers as text, in which three or more in a row are a range.

    >>> _listed([0, 1, 4, 5, 6, 7])
    '0, 1, 4-7'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join([f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs])


def _shown(count: int, most: int) -> list[int]:
    """The positions of what is shown out of this many; -1 stands for those left out."""
    most = max(most, 3)
    if count <= most:
        return list(range(count))
    first = most // 2
    return [*range(first), -1, *range(count - (most - 1 - first), count)]


def _color(r: int, c: int) -> int:
    """A color that boxes beside, above and below don't have."""
    return _COLORS[(5 * r + c) % len(_COLORS)]


def _hexadecimal(color: int) -> str:
    red, rest = divmod(color - 16, 36)
    return "#" + "".join([f"{_LEVELS[level]:02x}" for level in (red, *divmod(rest, 6))])
