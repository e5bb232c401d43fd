"""Programs that repeat a failure: an input as text that a reader can paste and run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from corejax.core import Primitive, aval_of, dtypes
from corejax.plugin import Sample, elements
from corejax_testing.comparing import host


class _NoText(Exception):
    """A value has no literal."""


def program_for(primitive: Primitive, sample: Sample, source: Sample, number: int, check: str, full: bool = False,
                rules: Iterable[str] = ()) -> str:
    """A program that checks one law on one input.

    What has no literal, such as a program among the params, is taken from `source`, the sample that the input was made
    of and the one with this `number`. `rules` are the choices that put rules into effect.
    """
    lines, shown = list(_found(primitive)), _expression(primitive)
    args, params = _texts(list(sample.args), list(source.args)), _params(sample, source)
    if params is None or None in args:
        lines.append(f"given = list(samples_of({_handle(primitive)}))[{number}]")
    args = [f"given.args[{i}]" if text is None else text for i, text in enumerate(args)]
    fields = ["[" + ", ".join([str(text) for text in args]) + "]"]
    if sample.params:
        fields.append(params or _params_beside(sample, source))
    for name in ("domain", "singular", "ulps", "atol"):
        value = getattr(sample, name)
        if value is not None and value != ():
            fields.append(f"{name}={value!r}")
    lines.append(f"sample = Sample({', '.join(fields)})")
    call = f"check_primitive({shown}, [sample], checks=[{check!r}]{', full=True' * full})"
    chosen = ", ".join([repr(rule) for rule in rules])
    lines += [f"with plugins.prefer({chosen}):", f"    {call}"] if chosen else [call]
    return "\n".join([*_imports("\n".join(lines), primitive), "", *lines])


def _imports(text: str, primitive: Primitive) -> Iterator[str]:
    """The imports of what a text mentions."""
    if "ml_dtypes." in text:
        yield "import ml_dtypes"
    if "np." in text:
        yield "import numpy as np"
    if "plugins." in text:
        yield "from corejax import plugins"
    if "find(" in text:
        yield "from corejax.plugin import find"
    yield "from corejax.testing import Sample, check_primitive"
    if "samples_of(" in text:
        yield "from corejax_testing.specification import samples_of"


def _found(primitive: Primitive) -> Iterator[str]:
    """How a primitive that no pack provides gets there."""
    if primitive.pack is None and primitive.module not in (None, "__main__"):
        yield f"import {primitive.module}  # it defines {primitive.name}\n"


def _handle(primitive: Primitive) -> str:
    name = primitive.name if primitive.pack is not None else f"{primitive.module}/{primitive.name}"
    return f"find({name!r})"


def _expression(primitive: Primitive) -> str:
    return repr(primitive.name) if primitive.pack is not None else _handle(primitive)


def _texts(values: list[Any], given: list[Any]) -> list[str | None]:
    """The text of each operand; None for one that has no literal and is that of the sample."""
    found: list[str | None] = []
    for value in values:
        try:
            found.append(literal(value))
        except _NoText:
            found.append(None)
    return found


def _params(sample: Sample, source: Sample) -> str | None:
    """The params as a literal; None if there is none."""
    try:
        return _dict({name: literal(value) for name, value in sample.params.items()})
    except _NoText:
        return None


def _params_beside(sample: Sample, source: Sample) -> str:
    """The params as those of the sample, with the differences."""
    changed = {}
    for name, value in sample.params.items():
        if value is not source.params.get(name):
            try:
                changed[name] = literal(value)
            except _NoText:
                continue
    return "{**given.params, " + _dict(changed)[1:] if changed else "given.params"


def _dict(texts: dict[str, str]) -> str:
    return "{" + ", ".join([f"{name!r}: {text}" for name, text in texts.items()]) + "}"


def literal(value: Any) -> str:
    """A value as an expression.

    >>> literal(np.array([[1.0, np.nan]])), literal(np.zeros((2, 3), np.int8)), literal((1, np.dtype(bool)))
    ('np.array([[1.0, np.nan]])', 'np.zeros((2, 3), np.int8)', "(1, np.dtype('bool'))")
    """
    if isinstance(value, tuple):
        return "(" + ", ".join([literal(part) for part in value]) + "," * (len(value) == 1) + ")"
    if isinstance(value, np.dtype):
        return f"np.dtype({_dtype(value)})" if "." in _dtype(value) and value == dtypes.bfloat16 else (
            f"np.dtype({value.name!r})")
    if isinstance(value, (float, complex)) and not isinstance(value, np.generic):
        return _number(value)
    if value is None or isinstance(value, (bool, int, str)):
        return repr(value)
    if isinstance(value, (np.ndarray, np.generic)) and elements.find(aval_of(value).dtype) is None:
        return _array(host(value))
    raise _NoText


def _array(x: np.ndarray) -> str:
    of = "" if x.dtype in (np.float64, np.complex128) and not (
        x.dtype == np.complex128 and not x.size) else f", {_dtype(x.dtype)}"
    if x.ndim and (x.size == 0 or not (x != 0).any() and not np.signbit(x.real).any()):
        return f"np.zeros({x.shape}{of})"
    if x.size > 4 and (x == x.flat[0]).all() and not (x == 0).any():
        return f"np.full({x.shape}, {_number(x.flat[0].item())}{of})"
    return f"np.array({_nested(x.tolist())}{of})"


def _dtype(dtype: np.dtype) -> str:
    return f"ml_dtypes.{dtype.name}" if not hasattr(np, dtype.name) else f"np.{dtype.name}"


def _nested(value: Any) -> str:
    return "[" + ", ".join([_nested(part) for part in value]) + "]" if isinstance(value, list) else _number(value)


def _number(x: Any) -> str:
    if isinstance(x, complex):
        return f"complex({_number(x.real)}, {_number(x.imag)})"
    if isinstance(x, float) and not np.isfinite(x):
        return "np.nan" if np.isnan(x) else "-np.inf" if x < 0 else "np.inf"
    return repr(x)
