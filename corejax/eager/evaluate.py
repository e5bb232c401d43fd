"""Evaluation: the interpreter at the bottom, which computes with arrays.

Values stay where they live. Host operands go through the primitive's `impl` on NumPy; one operand on a device, or no
`impl`, selects a compiled program.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.arrays.array import Array, new_array
from corejax.arrays.storage import as_scalar, is_in_order, is_on_device, read_only
from corejax.base import dtypes
from corejax.base.avals import ShapedArray, is_masked
from corejax.base.known_trees import OTHER
from corejax.base.late import late
from corejax.kernel import checks
from corejax.kernel.jaxpr import Params
from corejax.kernel.primitive import Primitive
from corejax.kernel.trace import Trace, Tracer, as_operand, leak_error

if TYPE_CHECKING:
    from corejax.eager import dispatch
else:
    dispatch = late("corejax.eager.dispatch", keep=True)  # the compiler, which host arrays don't need


ndarray = np.ndarray
_PACKED = dtypes.PACKED  #: NumPy doesn't compute numbers of these dtypes: programs do

#: A host array may hold an ndarray, or for a 0-d value one of these NumPy scalars, as returned by a ufunc. Scalars are
#: immutable, and a ufunc of scalars takes half the time.
_SCALARS = frozenset([dtype.type for dtype in dtypes.ALL])


def _quiet_runner() -> Callable[..., Any]:
    """A function that calls another in a context where NumPy doesn't warn about floating-point events.

    Entering a prepared context costs a tenth of `np.errstate`. It belongs to one thread, and can't be entered twice.
    """
    prepared = contextvars.copy_context()
    prepared.run(np.seterr, all="ignore")
    return prepared.run


def _run_again(error: Exception, primitive: Primitive, data: Sequence[object], avals: tuple[ShapedArray, ...],
               params: Params) -> tuple[Any, Any]:
    """Call `impl` when the runner's context was entered already, because another `impl` evaluates primitives.

    Any other error is passed on, with a note if the impl raised it.
    """
    expected = primitive.infer(avals, params)
    if type(error) is RuntimeError and error.__traceback__ is not None and error.__traceback__.tb_next is None and (
            str(error).startswith("cannot enter context")):
        assert primitive.impl is not None
        try:
            return primitive.impl(data, **params), expected
        except Exception as inner:
            error = inner
    raise checks.failed(primitive, "impl", error)


class EvalTrace(Trace):
    """Applies primitives to arrays. Each thread has its own.

    Its three ways to process box usual results in place, which is faster (decision 0047), and leave unusual ones to
    `_boxed`.
    """

    __slots__ = ("run",)

    def __init__(self) -> None:
        super().__init__(None)
        self.knows_values = True
        self.run = _quiet_runner()  #: calls a function of NumPy without its warnings

    def process_one(self, primitive: Primitive, x: Any) -> Any:
        function = primitive.of_one
        if function is None:
            return self.process(primitive, (x,), {})
        try:
            expected, data = primitive.evaluated[x.aval], x._host
        except KeyError:
            is_new = True
        except AttributeError:  # not an array in host memory
            is_new = False
        else:
            try:
                out = self.run(function, data)
            except Exception as error:
                out = _run_again(error, primitive, (data,), (x.aval,), {})[0]
            if type(out) is ndarray:
                if out.shape != expected.shape or out.dtype is not expected.dtype:
                    return _boxed(primitive, out, expected)
                if expected.shape:
                    out.setflags(0)  # type: ignore[call-arg,arg-type]  # `read_only`, without the call
                else:
                    out = out[()]
            elif type(out) is not expected.dtype.type or expected.shape:
                return _boxed(primitive, out, expected)
            array = new_array()
            array.aval = expected
            array._host = out
            return array
        # Out of the handlers: a rule's own error shall not be told as one that happened while these were handled.
        if is_new:
            return self._process_new(primitive, (x,))
        for enter in primitive.entries.get(getattr(x, "aval", None), ()):
            out = enter((x,))
            if out is not OTHER:
                return out
        return self._process_mixed(primitive, (x,), {})

    def process_two(self, primitive: Primitive, x: Any, y: Any, alike: ShapedArray | None = None) -> Any:
        function = primitive.of_two
        if function is None:
            return self.process(primitive, (x, y), {})
        try:
            if alike is None:
                alike = x.aval
                expected = primitive.evaluated[alike if y.aval is alike else (alike, y.aval)]
            else:
                expected = primitive.evaluated[alike]
            data, other = x._host, y._host
        except KeyError:
            is_new = True
        except AttributeError:
            is_new = False
        else:
            try:
                out = self.run(function, data, other)
            except Exception as error:
                out = _run_again(error, primitive, (data, other), (x.aval, y.aval), {})[0]
            if type(out) is ndarray:
                if out.shape != expected.shape or out.dtype is not expected.dtype:
                    return _boxed(primitive, out, expected)
                if expected.shape:
                    out.setflags(0)  # type: ignore[call-arg,arg-type]
                else:
                    out = out[()]
            elif type(out) is not expected.dtype.type or expected.shape:
                return _boxed(primitive, out, expected)
            array = new_array()
            array.aval = expected
            array._host = out
            return array
        if is_new:
            return self._process_new(primitive, (x, y))
        for enter in primitive.entries.get((getattr(x, "aval", None), getattr(y, "aval", None)), ()):
            out = enter((x, y))
            if out is not OTHER:
                return out
        return self._process_mixed(primitive, (x, y), {})

    def _process_new(self, primitive: Primitive, args: Sequence[Any]) -> Any:
        """For arrays of types that are new to the primitive, or for which its rule does more."""
        out = self.process(primitive, args, {})
        dtype = out.aval.dtype
        if dtype.type is not np.void and dtype not in _PACKED and (
                dtypes.kind(args[0].aval.dtype) not in primitive.beside):
            avals = tuple([x.aval for x in args])
            primitive.remember(avals[0] if avals[0] is avals[-1] else avals, out.aval)
        return out

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        impl = primitive.impl
        if impl is None:
            return self._process_compiled(primitive, args, params)
        try:
            if len(args) == 2:
                x, y = args
                data: tuple[Any, ...] | None = (x._host, y._host)
                avals: tuple[ShapedArray, ...] = (x.aval, y.aval)
            elif len(args) == 1:
                x, = args
                data, avals = (x._host,), (x.aval,)
            else:
                data, avals = tuple([x._host for x in args]), tuple([x.aval for x in args])
        except AttributeError:
            data = None
        if data is None:
            return self._process_mixed(primitive, args, params)
        try:
            if params:
                expected = primitive.infer(avals, params)
            else:
                expected = primitive.inferred(avals) or primitive.infer(avals, params)
            by_program = type(expected) is ShapedArray and expected.dtype in _PACKED
            if not by_program:
                out = self.run(impl, data, **params) if params else self.run(impl, data)
        except Exception as error:
            (out, expected), by_program = _run_again(error, primitive, data, avals, params), False
        if by_program:
            return self._process_compiled(primitive, args, params)
        if type(expected) is tuple:
            return _box_all(primitive, out, expected)
        if type(out) is ndarray:
            out.setflags(0)  # type: ignore[call-arg,arg-type]
        elif type(out) not in _SCALARS:
            out = _as_ndarray(primitive, out, expected)
        if out.shape == expected.shape and out.dtype is expected.dtype:
            array = new_array()
            array.aval = expected
            if type(out) is not ndarray:
                array._host = out
            elif not expected.shape:
                array._host = as_scalar(out)
            elif out.flags.c_contiguous and (out.base is None or is_in_order(out)):
                array._host = out
            else:
                array._view = out
            return array
        return _boxed(primitive, out, expected)

    def _process_compiled(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        for x in args:
            if isinstance(x, Tracer):
                raise leak_error(x, primitive.name)
        if primitive.evaluate is not None:  # its results may be its operands, which the user mustn't be able to change
            args = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
        arrays = [x if type(x) is Array else as_operand(primitive, i, x) for i, x in enumerate(args)]
        if primitive.evaluate is not None:
            return _run_program(self, primitive, arrays, params)
        primitive.infer(tuple([x.aval for x in arrays]), params)
        return dispatch.apply_primitive(primitive, arrays, params)

    def _process_mixed(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        """The same for operands that aren't all host `Array`s."""
        arrays, raw, on_device = [], [], False
        for i, x in enumerate(args):
            if type(x) is not Array:
                if isinstance(x, ndarray):
                    raw.append(x)
                elif isinstance(x, Tracer):
                    raise leak_error(x, primitive.name)
                x = as_operand(primitive, i, x)
            elif is_on_device(x):
                on_device = True
            on_device |= x.aval.dtype in _PACKED
            arrays.append(x)
        if on_device:
            return dispatch.apply_primitive(primitive, arrays, params)
        if len(arrays) == 2 and not params:
            out = self.process_two(primitive, arrays[0], arrays[1])
        else:
            out = self.process(primitive, arrays, params)
        if raw:
            return [_unshare(o, raw) for o in out] if primitive.multiple_results else _unshare(out, raw)
        return out


def _run_program(trace: Trace, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply a primitive that carries a program and runs it itself, and check its results."""
    assert primitive.evaluate is not None
    try:
        outs = primitive.evaluate(tuple(args), **params)
    except Exception as error:
        raise checks.failed(primitive, "evaluate", error)  # noqa: B904
    expected = primitive.infer(tuple([x.aval for x in args]), params)
    return checks.check_outputs(primitive, "evaluate", outs, expected, trace)


def _unshare(out: Array, raw: list[Any]) -> Array:
    """Copy a result that would change when the user writes to an ndarray that was an operand."""
    host = getattr(out, "_host", None)
    if type(host) is not ndarray:
        return out
    if host.base is None:
        for x in raw:
            if host is x:
                break
        else:
            return out
    shares = any([np.may_share_memory(host, x) for x in raw])
    return Array.from_host(read_only(host.copy()), out.aval) if shares else out


def _as_ndarray(primitive: Primitive, out: object, expected: ShapedArray) -> Any:
    if type(out) is Array and hasattr(out, "_host"):
        return out._host
    if isinstance(out, np.ndarray) and not is_masked(out):
        return read_only(np.asarray(out))
    if isinstance(out, np.generic):
        return out  # a dtype that no array can have: the caller reports it
    raise checks.no_host_array(primitive, out, expected)


def _boxed(primitive: Primitive, out: Any, expected: ShapedArray) -> Array:
    """What an impl returned, as an `Array` of the expected type."""
    if type(out) is ndarray:
        read_only(out)
    elif type(out) not in _SCALARS:
        out = _as_ndarray(primitive, out, expected)
    if out.shape != expected.shape or out.dtype != expected.dtype:
        raise checks.wrong_host_array(primitive, out, expected)
    if type(out) is ndarray and expected.shape:
        return Array.from_view(out if out.dtype is expected.dtype else out.view(expected.dtype), expected)
    return Array.from_host(as_scalar(out) if type(out) is ndarray else out, expected)


def _box_all(primitive: Primitive, outs: object, expected: tuple[ShapedArray, ...]) -> list[Array]:
    if not isinstance(outs, (list, tuple)) or len(outs) != len(expected):
        raise checks.wrong_count(primitive, outs, len(expected))
    return [_boxed(primitive, out, aval) for out, aval in zip(outs, expected, strict=True)]
