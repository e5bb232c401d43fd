"""`impl` rules of primitives that compute with elements of a pack's own type: they get, and return, what is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from corejax.base import elements
from corejax.base.avals import ShapedArray, aval_of
from corejax.kernel import checks
from corejax.kernel.primitive import Primitive


def on_stored(primitive: Primitive, impl: Callable[..., Any]) -> Callable[..., Any]:
    """The rule as the kernel calls it: for elements."""
    @wraps(impl)
    def of_elements(args: Sequence[Any], **params: Any) -> Any:
        expected = primitive.infer(tuple(map(aval_of, args)), params)
        outs = impl([np.asarray(elements.of_stored(x)) for x in args], **params)
        if type(expected) is not tuple:
            return _elements(primitive, outs, expected)
        if not isinstance(outs, (list, tuple)) or len(outs) != len(expected):
            raise checks.wrong_count(primitive, outs, len(expected))
        return [_elements(primitive, out, aval) for out, aval in zip(outs, expected, strict=True)]

    of_elements.of_stored = impl  # type: ignore[attr-defined]  # which a program that calls it back has
    return of_elements


def _elements(primitive: Primitive, out: Any, expected: ShapedArray) -> Any:
    element, stored = elements.find(expected.dtype), expected.stored
    if element is None:
        return out
    if not isinstance(out, (np.ndarray, np.generic)) or out.shape != stored.shape or out.dtype != stored.dtype:
        raise checks.wrong_host_array(primitive, out, stored)
    return element.of(np.asarray(out))
