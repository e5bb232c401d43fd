"""Numbers to text and back, exactly: including the sign of a zero and the payload of a NaN."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from corejax.base import dtypes
from corejax.base.errors import CorejaxValueError

_REAL = r"-?(?:inf|nan(?:\(0x[0-9a-f]+\))?|\d+(?:\.\d*)?(?:e[+-]?\d+)?)"
_COMPLEX = re.compile(rf"\(({_REAL})\+?({_REAL})j\)")

#: Matches a number in a text.
NUMBER = re.compile(rf"(?:True|False)\b|\({_REAL}[+-]{_REAL.removeprefix('-?')}j\)|{_REAL}(?![a-z_])")


def number_text(number: Any) -> str:
    """A NumPy scalar, exactly: `read_number` reads it back to the last bit."""
    kind = dtypes.kind(number.dtype)
    if kind == "f":
        return _real_text(number)
    if kind == "c":
        imaginary = _real_text(number.imag)
        return f"({_real_text(number.real)}{'' if imaginary[0] == '-' else '+'}{imaginary}j)"
    return str(number.item())


def _real_text(number: Any) -> str:
    dtype = number.dtype
    if np.isnan(number):
        bits = number.tobytes()
        return "nan" if bits == np.array(np.nan, dtype).tobytes() else f"nan(0x{bits[::-1].hex()})"
    text = str(number)  # the fewest digits that distinguish it from its neighbours
    if dtype.type(float(text)) != number:
        text = repr(float(number))
    return text if not text.lstrip("-").isdigit() else text + ".0"


def read_number(text: str, dtype: np.dtype) -> np.ndarray:
    """The 0-dimensional array that a number's text stands for."""
    kind = dtypes.kind(dtype)
    if text in ("True", "False"):
        if kind != "b":
            raise CorejaxValueError(f"{text} is not a valid {dtypes.short_name(dtype)}")
        return np.array(text == "True", dtype)
    if kind in "iu":
        return np.array(int(text), dtype)
    if kind == "c":
        parts = _COMPLEX.fullmatch(text)
        out: Any = np.zeros((), dtype)
        if parts is not None:
            out.real, out.imag = read_number(parts[1], out.real.dtype), read_number(parts[2], out.real.dtype)
            return np.asarray(out)
    if kind != "f":
        raise CorejaxValueError(f"{text} is not a valid {dtypes.short_name(dtype)}")
    if text.startswith("nan("):
        return np.frombuffer(bytes.fromhex(text[6:-1])[::-1], dtype).reshape(())
    return np.array(float(text), np.float64).astype(dtype)


def read_python_number(text: str) -> bool | int | float | complex:
    """The Python scalar that a number's text stands for."""
    if text in ("True", "False"):
        return text == "True"
    if text.startswith("("):
        return read_number(text, dtypes.complex128).item()  # type: ignore[no-any-return]
    if text.lstrip("-").isdigit():
        return int(text)
    return read_number(text, dtypes.float64).item()  # type: ignore[no-any-return]
