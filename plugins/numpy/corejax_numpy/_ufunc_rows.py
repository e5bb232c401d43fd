"""Rows of the table of NumPy's ufuncs: what each means in `lax`, and the ways that avoid all that can be avoided.

Calling one with arrays of a dtype that its primitive takes applies the primitive; anything else is brought together
first, as NumPy's operators do. What is computed by several primitives is left to NumPy's ufunc for arrays in host
memory, where nothing is transformed.
"""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from corejax.core import Array, ArrayLike, Primitive, Tracer, context, dtypes
from corejax.plugin import NotDirectly, directly, families, public
from corejax_lax_basic import promoted
from corejax_numpy._arrays import array
from corejax_numpy._picking import operand
from corejax_numpy.ufuncs import check_options, ufunc

__all__ = ["binary", "unary"]

Function = Callable[..., Any]

_SCALARS = dtypes.PYTHON_SCALARS
_LISTS = frozenset([list, tuple])  # which functions take as arrays, but operators don't


class _Row(ufunc):
    """A ufunc of NumPy's."""

    def __init__(self, numpy: np.ufunc, call: Function, doc: str, example: str, **ways: Any) -> None:
        super().__init__(numpy, numpy.nin, numpy.nout, name=numpy.__name__, identity=numpy.identity, call=call, **ways)
        self.__module__, self._is_public = "corejax.numpy", True
        called, _, result = example.partition(" -> ")
        self.__doc__ = f"{doc}\n\n>>> jnp.{called}\n{result}"


class _Unary(_Row):
    _call: Function

    def __init__(self, *args: Any, fast: Primitive, direct: frozenset[np.dtype]) -> None:
        super().__init__(*args)
        self._fast, self._direct = fast, direct

    @public
    def __call__(self, x: ArrayLike, /,  # type: ignore[override]
                 out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            check_options(self.__name__, out, where)
        if (type(x) is Array or isinstance(x, Tracer)) and x.aval.dtype in self._direct:
            return context.trace.process_one(self._fast, x)
        return self._call(x)


class _Binary(_Row):
    _call: Function

    def __init__(self, *args: Any, fast: Function | None, **ways: Any) -> None:
        super().__init__(*args, **ways)
        self._fast = fast

    @public
    def __call__(self, x1: ArrayLike, x2: ArrayLike, /,  # type: ignore[override]
                 out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            check_options(self.__name__, out, where)
        fast = self._fast
        if fast is not None and (type(x1) is Array or isinstance(x1, Tracer)) and type(x2) not in _LISTS:
            found = fast(x1, x2)
            if found is not NotImplemented:
                return found
        return self._call(x1, x2)


_Unary.__name__ = _Binary.__name__ = "ufunc"  # as help() calls them, and errors about attributes


def unary(numpy: np.ufunc, meaning: Any, doc: str, example: str, at_least: str = "b", kinds: str = "", *,
          fast: Any = None, takes_numpy: bool | Function = True) -> ufunc:
    """A row for one operand.

    `meaning` is a primitive's function, or any function of an array, which is promoted to `at_least` this kind.
    `kinds`: those that the primitive, which `fast` gives if `meaning` doesn't, takes as they are. `takes_numpy`:
    whether NumPy's function may compute `meaning` for others, or another function that may.
    """
    primitive = cast(Primitive, (fast or meaning).primitive if kinds else None)
    direct = frozenset([dtype for dtype in dtypes.ALL if dtypes.kind(dtype) in kinds])

    def compose(x: Any) -> Any:
        return meaning(array(promoted((operand(x),), at_least)[0]))
    at_once: Any = takes_numpy if callable(takes_numpy) else _of_reals(numpy) if kinds else numpy
    way = directly(at_once, 1, whole=True)(compose) if takes_numpy else compose
    return _Unary(numpy, way, doc, example, fast=primitive, direct=direct)


def _of_reals(numpy: np.ufunc) -> Function:
    """NumPy's function, but not of complex numbers: branches and infinities are chosen by the primitive."""
    def call(x: Any) -> Any:
        kind = type(x)
        if kind is complex or kind not in _SCALARS and x.dtype.kind == "c":
            raise NotDirectly
        return numpy(x)
    return call


def binary(numpy: np.ufunc, meaning: Any, doc: str, example: str, at_least: str = "b", *, fast: Any = None,
           kinds: str = "", takes_numpy: bool | Function = True, promoting: bool = True,
           **ways: Function | None) -> ufunc:
    """A row for two operands.

    `meaning` takes two arrays, promoted to `at_least` this kind; or any operands if not `promoting`. `fast` is an
    operator for a first operand that is an array, or a primitive's function that takes `kinds` as they are.
    """
    if kinds:
        fast = _applying(fast.primitive, kinds)

    def call(x1: Any, x2: Any) -> Any:
        operands = operand(x1), operand(x2)
        return meaning(*map(array, promoted(operands, at_least))) if promoting else meaning(*operands)
    at_once: Any = takes_numpy if callable(takes_numpy) else numpy
    whole = numpy not in (np.power, np.float_power)  # particular powers have ways of their own
    way = directly(at_once, 2, whole=whole)(call) if takes_numpy and (fast is None or kinds) else call
    return _Binary(numpy, way, doc, example, fast=fast, **ways)


def _applying(primitive: Primitive, kinds: str) -> Function:
    """Applies a primitive to arrays of one type, or to one and a number; NotImplemented for anything else."""
    direct = frozenset([dtype for dtype in dtypes.ALL if dtypes.kind(dtype) in kinds])

    def fast(x1: Any, x2: Any) -> Any:
        aval = x1.aval
        if aval.dtype in direct:
            if type(x2) in _SCALARS:
                scalar = families.weak_scalar(x2, aval.dtype)
                if scalar is not None:
                    return context.trace.process_two(primitive, x1, scalar)
            elif (type(x2) is Array or isinstance(x2, Tracer)) and x2.aval is aval:
                return context.trace.process_two(primitive, x1, x2, aval)
        return NotImplemented
    return fast


def by_operator(role: Function, reflected: Function) -> Function:
    """The meaning of a row that is an operator."""
    def call(x1: Any, x2: Any) -> Any:
        if isinstance(x2, Array) and not isinstance(x1, Array):
            return reflected(x2, x1)
        return role(array(x1), x2)
    return call
