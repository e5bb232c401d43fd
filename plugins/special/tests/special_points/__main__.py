"""`python -m special_points --write`, in plugins/special/tests, computes tables.json; `--check` compares. Takes mpmath.

A row has the operands, the value as the sum of two doubles, and the condition of the value.
"""

from __future__ import annotations

import json
import sys

import mpmath as mp
import numpy as np

from special_points import TABLES
from special_points.references import DIGITS, FUNCTIONS, condition


def rows(name: str, dtype: type[np.floating]) -> list[list[float]]:
    """The table of a function."""
    function, found = FUNCTIONS[name], []
    for point in zip(*function.points(dtype), strict=True):
        operands = [float(dtype(x)) for x in point]
        args = tuple(map(mp.mpf, operands))
        value = function.value(*args)
        high = float(value)
        found.append([*operands, high, float(value - high), float(mp.nstr(condition(function, args, value), 4))])
    return found


def text() -> str:
    """The file, a row to a line."""
    with mp.workdps(DIGITS):
        tables = {f"{name} {dtype.__name__}": rows(name, dtype)
                  for name in FUNCTIONS for dtype in (np.float32, np.float64)}
    return "{\n" + ",\n".join(
        f'"{name}": [\n' + ",\n".join(map(json.dumps, table)) + "]" for name, table in tables.items()) + "}\n"


match sys.argv[1:]:
    case ["--write"]:
        TABLES.write_text(text(), encoding="utf-8")
    case ["--check"]:
        raise SystemExit(TABLES.read_text(encoding="utf-8") != text())
    case _:
        print(__doc__)
