"""A picture of what a program shows in a terminal.

    python tools/terminal_picture.py OUT.svg program.py [argument ...]

The program runs in a terminal of its own, and its last screen is drawn: carriage returns write over a line.
"""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

COLUMNS, FONT, LINE = 100, 13, 19


def shown(command: Sequence[str]) -> list[str]:
    """The lines that a terminal has at the end of a command."""
    pieces: list[bytes] = []

    def read(terminal: int) -> bytes:
        pieces.append(os.read(terminal, 1024))
        return pieces[-1]

    os.environ.update(COLUMNS=str(COLUMNS), LINES="40")
    pty.spawn(list(command), read)
    return screen(b"".join(pieces).decode())


def screen(text: str) -> list[str]:
    """The lines of a text in which carriage returns go back to the beginning of a line."""
    lines = []
    for written in text.replace("\r\n", "\n").split("\n"):
        line = ""
        for part in written.split("\r"):
            line = part + line[len(part):]
        lines.append(line.rstrip())
    while lines and not lines[-1]:
        lines.pop()
    return lines


def picture(lines: Sequence[str], command: str) -> str:
    """The lines as an SVG, below the command that made them."""
    rows = [f"$ {command}", *lines]
    width, height = int(COLUMNS * FONT * 0.61) + 40, len(rows) * LINE + 36
    texts = "\n".join(
        f'<text x="20" y="{26 + i * LINE}" fill="{"#7fd1b9" if i == 0 else "#e6e6e6"}">{escape(row)}</text>'
        for i, row in enumerate(rows))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">\n'
            f"<title>{escape(command)}</title>\n"
            f'<rect width="100%" height="100%" rx="8" fill="#1e2127"/>\n'
            f'<g font-family="DejaVu Sans Mono, Menlo, monospace" font-size="{FONT}" xml:space="preserve">\n'
            f"{texts}\n</g>\n</svg>\n")


def main(out: str, *command: str) -> None:
    """Run the program, and draw what it shows."""
    lines = shown([sys.executable, *command])
    Path(out).write_text(picture(lines, f"python {' '.join(command)}"))


if __name__ == "__main__":
    main(*sys.argv[1:])
