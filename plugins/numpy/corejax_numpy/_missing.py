"""What to write for a name that isn't there: one that is similar, or what replaced one of NumPy's."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

__all__ = ["instead_of"]

#: Names that programs for NumPy have, most of them for older versions, and what does the same.
_INSTEAD = {
    "alltrue": "all", "asanyarray": "asarray", "asarray_chkfinite": "asarray", "ascontiguousarray": "asarray",
    "asfarray": "asarray", "asfortranarray": "asarray", "asmatrix": "asarray", "mat": "asarray", "matrix": "asarray",
    "cumproduct": "cumprod", "float": "float_", "int": "int_", "intp": "int_", "long": "int_", "longlong": "int64",
    "complex": "complex_", "half": "float16", "byte": "int8", "ubyte": "uint8", "short": "int16", "ushort": "uint16",
    "bool8": "bool_", "in1d": "isin", "Infinity": "inf", "infty": "inf", "PINF": "inf", "product": "prod",
    "round_": "round", "row_stack": "vstack", "sometrue": "any", "trapz": "trapezoid", "msort": "sort",
}


def instead_of(name: str, names: Collection[str]) -> str:
    """What to do about a name that a module of the namespace doesn't have."""
    near = _INSTEAD.get(name) or _near(name, names)
    if near in names:
        return f"did you mean {near}?"
    if name in ("random", "testing", "polynomial"):
        return f"NumPy's own is for arrays in host memory: np.{name}"
    return "write it with what is there; docs/numpy.md says what is left out"


def _near(name: str, names: Collection[str]) -> str | None:
    """The name that this is in other capitals or with a few other letters."""
    known = {each.lower(): each for each in names}
    near = get_close_matches(name.lower(), known, 1, 0.65)
    return known[near[0]] if near else None
