"""The plots, as SVG that follows the reader's light or dark mode: how many times faster corejax is, how cost grows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from benchmarks.growth import Series
from benchmarks.measure import Timing
from benchmarks.report import Report, met, ratio, rivals_of
from benchmarks.rows import Row

_STYLE = """\
<style>
  .page { fill: #ffffff } text { font: 12px system-ui, sans-serif; fill: #24292f } .title { font-weight: 600 }
  .quiet { fill: #6e7781 } .grid { stroke: #d8dee4 } .even { stroke: #57606a; stroke-width: 1.5 }
  .target { stroke: #24292f; stroke-width: 2.5 } .miss { stroke: #cf222e; stroke-width: 2 }
  .jax { fill: #bc6c00; stroke: #bc6c00 } .autograd { fill: #1a7f37; stroke: #1a7f37 }
  .torch { fill: #8250df; stroke: #8250df } .corejax { fill: #0969da; stroke: #0969da }
  .line { fill: none; stroke-width: 2 } .spread { stroke-width: 1.5; opacity: 0.6 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #e6edf3 } .quiet { fill: #8b949e } .grid { stroke: #30363d }
    .even { stroke: #8b949e } .target { stroke: #e6edf3 } .miss { stroke: #ff7b72 }
    .jax { fill: #f0a04b; stroke: #f0a04b } .autograd { fill: #3fb950; stroke: #3fb950 }
    .torch { fill: #bc8cff; stroke: #bc8cff } .corejax { fill: #58a6ff; stroke: #58a6ff }
    .line { fill: none }
  }
</style>"""
_CLASSES = {"jax": "jax", "autograd": "autograd", "torch.func": "torch", "torch": "torch", "torch tape": "torch"}

_WIDTH, _LEFT, _RIGHT, _STEP = 900, 410, 40, 19
_PANEL, _TALL, _ACROSS = 290, 210, 3


def _document(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(label)}">',
        _STYLE, f'<rect class="page" width="{width:g}" height="{height:g}"/>', *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, style: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


class _Scale:
    """A logarithmic axis between two pixels."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high = low, high
        self._start, self._by = start, (end - start) / (math.log(high / low) or 1.0)

    def __call__(self, value: float) -> float:
        return self._start + self._by * math.log(min(max(value, self.low), self.high) / self.low)

    def ticks(self) -> Iterator[float]:
        """1, 2 and 5 times powers of ten; only powers of ten if there are many."""
        steps = (1, 2, 5) if self.high / self.low < 2000 else (1,)
        for power in range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1):
            yield from [step * 10.0 ** power for step in steps if self.low <= step * 10.0 ** power <= self.high]


def _mark(rival: str, x: float, y: float) -> str:
    style = _CLASSES[rival]
    match rival:
        case "autograd":
            return f'<path d="M{x:.1f} {y - 5:.1f}l5 9h-10z" class="{style}"/>'
        case "torch.func" | "torch":
            return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" class="{style}"/>'
        case "torch tape":
            return f'<path d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z" class="{style}"/>'
        case _:
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" class="{style}"/>'


def ratios(report: Report) -> str:
    """A line for each row: a mark for each rival, a stroke at its target, a ring around marks that miss it."""
    drawn = {title: [row for rows in named.values() for row in rows if _drawn(row)]
             for title, named in report.sections.items()}
    all_rows = [row for rows in drawn.values() for row in rows]
    found = [ratio(row, rival) for row in all_rows for rival in _drawn(row)] or [1.0]
    wanted = [row.targets[rival] for row in all_rows for rival in _drawn(row) if rival in row.targets]
    scale = _Scale(min(0.5, *found, *wanted) / 1.1, max(2.0, *found, *wanted) * 1.1, _LEFT, _WIDTH - _RIGHT)
    y, parts = 74.0, _legend()
    body: list[str] = []
    for title, rows in drawn.items():
        if not rows:
            continue
        body.append(_text(12, y + 4, title, "title"))
        y += _STEP
        for row in rows:
            body += _row(row, scale, y)
            y += _STEP
        y += 6
    for tick in scale.ticks():
        parts.append(_line(scale(tick), 58, scale(tick), y - 8, "even" if tick == 1 else "grid"))
        parts += [_text(scale(tick), at, _number(tick), "quiet", "middle") for at in (52, y + 6)]
    return _document(_WIDTH, y + 18, "how many times faster than its rivals corejax is", [*parts, *body])


#: The parts of a call, by class of the style, in their order.
PARTS = {"torch": "the runtime", "autograd": "taking apart, checking, results",
         "corejax": "finding the code for it"}


def one_call(found: Mapping[str, Sequence[float]], rival: Mapping[str, float]) -> str:
    """A bar for each kind of call, of the microseconds of its parts; and a stroke at JAX's time."""
    width, left, top = 760.0, 230.0, 52.0
    longest = max([*[sum(parts) for parts in found.values()], *rival.values()])
    parts = [_text(12, 20, "Microseconds of a call", "title")]
    for i, (style, what) in enumerate(PARTS.items()):
        parts += [f'<rect x="{12 + 190 * i}" y="30" width="10" height="10" class="{style}"/>',
                  _text(27 + 190 * i, 39, what, "quiet")]
    parts += [_line(12 + 190 * 3 + 45, 28, 12 + 190 * 3 + 45, 42, "target"), _text(640, 39, "JAX", "quiet")]
    for i, (what, segments) in enumerate(found.items()):
        y, x = top + 26 * i, left
        parts.append(_text(12, y + 13, what))
        for style, value in zip(PARTS, segments, strict=True):
            size = value / longest * (width - left - 70)
            parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="18" class="{style}"/>')
            x += size
        parts.append(_text(x + 6, y + 13, f"{sum(segments):.1f}", "quiet"))
        at = left + rival[what] / longest * (width - left - 70)
        parts.append(_line(at, y - 2, at, y + 20, "target"))
    return _document(width, top + 26 * len(found) + 8, "the microseconds of a call", parts)


def _drawn(row: Row) -> list[str]:
    return [rival for rival in rivals_of(row) if rival in _CLASSES]


def _legend() -> list[str]:
    parts, x = [_text(12, 24, "How many times faster, or smaller, than", "title")], 300.0
    for rival in ("jax", "autograd", "torch.func", "torch tape"):
        parts += [_mark(rival, x, 20), _text(x + 10, 24, rival)]
        x += 32 + 7 * len(rival)
    parts += [_line(x, 13, x, 27, "target"), _text(x + 8, 24, "target")]
    parts += [f'<circle cx="{x + 66:.1f}" cy="20" r="8" fill="none" class="miss"/>', _text(x + 79, 24, "missed")]
    return [*parts, _text(12, 44, "right of 1: corejax is faster", "quiet")]


def _row(row: Row, scale: _Scale, y: float) -> Iterator[str]:
    yield _text(_LEFT - 14, y + 4, row.what.replace("`", ""), "", "end")
    mine = row.timings["corejax"]
    for rival in _drawn(row):
        theirs = row.timings[rival]
        yield _line(scale(_over(theirs.low, mine.high)), y, scale(_over(theirs.high, mine.low)), y,
                    f"{_CLASSES[rival]} spread")
        yield _mark(rival, scale(ratio(row, rival)), y)
        if rival in row.targets:
            at = scale(row.targets[rival])
            yield _line(at, y - 7, at, y + 7, "target")
            if not met(row, rival):
                yield f'<circle cx="{scale(ratio(row, rival)):.1f}" cy="{y:.1f}" r="8" fill="none" class="miss"/>'


def _over(x: float, y: float) -> float:
    return x / y if y > 0 else 1.0


def growth(report: Report) -> str:
    """A small plot for each quantity, with a line for each library."""
    all_series = [each for found in report.growth.values() for each in found]
    rows = -(-len(all_series) // _ACROSS)
    parts = [_text(12, 24, "Seconds, by size:", "title")]
    for i, name in enumerate(("corejax", "jax")):
        x = 140.0 + 100 * i
        parts += [_line(x, 20, x + 24, 20, f"line {name}"), _text(x + 30, 24, name)]
    for i, each in enumerate(all_series):
        parts += _panel(each, 12.0 + _PANEL * (i % _ACROSS), 44.0 + _TALL * (i // _ACROSS))
    return _document(24 + _PANEL * _ACROSS, 56 + _TALL * rows, "how cost grows", parts)


def _panel(series: Series, left: float, top: float) -> Iterator[str]:
    lines = {name: line for name, line in series.lines.items() if line}
    sizes = sorted({size for line in lines.values() for size in line})
    medians = [timing.median for line in lines.values() for timing in line.values()]
    yield _text(left, top + 12, f"{series.what}, by {series.over}", "title")
    if not sizes:
        return
    logarithmic = sizes[-1] >= 100
    x0, x1, y0, y1 = left + 48, left + _PANEL - 24, top + _TALL - 38, top + 24
    # between integer powers of ten
    low, high = 10.0 ** math.floor(math.log10(min(medians))), 10.0 ** math.ceil(math.log10(max(medians)))
    down = _Scale(low, max(high, low * 10), y0, y1)
    log = _Scale(sizes[0], sizes[-1], x0, x1)
    by = (x1 - x0) / max(1, sizes[-1] - sizes[0])
    places = {size: log(size) if logarithmic else x0 + by * (size - sizes[0]) for size in sizes}
    for tick in [10.0 ** p for p in range(round(math.log10(down.low)), round(math.log10(down.high)) + 1)]:
        yield _line(x0, down(tick), x1, down(tick), "grid")
        yield _text(x0 - 6, down(tick) + 4, _seconds(tick), "quiet", "end")
    for size in [size for size in sizes if not logarithmic or math.log10(size).is_integer()]:
        yield _text(places[size], y0 + 16, _thousands(size), "quiet", "middle")
    for name, line in lines.items():
        yield from _curve(name, line, places, down)


def _curve(name: str, line: Mapping[int, Timing], places: Mapping[int, float], down: _Scale) -> Iterator[str]:
    points = [(places[size], down(timing.median)) for size, timing in sorted(line.items())]
    yield f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" class="line {name}"/>'
    for x, y in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="{name}"/>'


def _seconds(value: float) -> str:
    scale, unit = next((s, u) for s, u in ((1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")) if value * s >= 0.999)
    return f"{value * scale:,.0f} {unit}"


def _thousands(size: int) -> str:
    return f"{size // 1000}k" if size >= 1000 else str(size)
