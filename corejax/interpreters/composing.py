"""Primitives as compositions of others: `decompose` as a function that interpreters can run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from corejax.kernel import checks
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Params
from corejax.kernel.keys import param_key
from corejax.kernel.primitive import Primitive


def composition(primitive: Primitive, params: Params) -> Callable[..., list[Any]]:
    """`decompose` as a function from positional operands to a list of outputs."""
    def fun(*args: Any) -> list[Any]:
        assert primitive.decompose is not None
        try:
            out = primitive.decompose(args, **params)
        except Exception as error:
            raise checks.failed(primitive, "decompose", error)  # noqa: B904
        outs = checks.check_list(primitive, "decompose", out) if primitive.multiple_results else [out]
        return [checks.check_array(primitive, "decompose", x, "an array", context.trace) for x in outs]
    return fun


class _Underway(threading.local):
    """The rules being derived from decompositions in this thread, outermost first."""

    keys: tuple[Any, ...] = ()


_underway = _Underway()


def once(primitive: Primitive, params: Params, what: tuple[object, ...], derive: Callable[[], Any]) -> Any:
    """Call `derive`. Raises if that gets back to deriving the very same thing, since it would never end."""
    outer, key = _underway.keys, (primitive, context.axes, param_key(params), what)
    if key in outer:
        raise checks.rule_error(
            primitive, "decompose", f"applies {primitive.name} itself to operands of the same types",
            f"{primitive.name} within {primitive.name}", "other primitives, or smaller operands, so that it ends",
            f"compute {primitive.name} by other primitives")
    try:
        _underway.keys = (*outer, key)
        return derive()
    finally:
        _underway.keys = outer
