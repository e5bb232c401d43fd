"""The parts of a custom call, as MLIR attributes: what a kernel reads by name, layouts, and aliases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corejax.base.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here
from corejax.xla.lowering.types import describe_type

#: The layouts of a call's operands or results: one for all, or one for each.
Layouts = str | Sequence["str | Sequence[int] | None"] | None

_ROW, _COLUMN = "row", "column"

#: The array attributes that kernels can read, by element type.
_ARRAYS = {"int8": "DenseI8ArrayAttr", "int16": "DenseI16ArrayAttr", "int32": "DenseI32ArrayAttr",
           "int64": "DenseI64ArrayAttr", "float32": "DenseF32ArrayAttr", "float64": "DenseF64ArrayAttr"}


# What a kernel reads by name

def config(ir: Any, target: str, values: Mapping[str, object]) -> Any:
    """Python values as the attributes of a call, typed: an int is an i64, `np.int32(1)` an i32, a list an array."""
    return ir.DictAttr.get({name: _attribute(ir, target, name, value) for name, value in values.items()})


def _attribute(ir: Any, target: str, name: str, value: Any) -> Any:
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, Mapping):
        return config(ir, target, value)
    if isinstance(value, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(value))
    if isinstance(value, (int, float, np.integer, np.floating)):
        return _number(ir, target, name, value)
    if isinstance(value, (list, tuple, np.ndarray)):
        return _array(ir, target, name, value)
    raise _unreadable(target, name, f"{kind_of(value)}: {value!r:.60}")


def _number(ir: Any, target: str, name: str, value: Any) -> Any:
    dtype: np.dtype[Any]
    if isinstance(value, (np.integer, np.floating)):
        dtype = value.dtype
    elif isinstance(value, int) and not -2**63 <= value < 2**63:
        raise _unreadable(target, name, f"{value}, which is no 64-bit integer")
    else:
        dtype = np.dtype(np.int64 if isinstance(value, int) else np.float64)
    bits = 8 * dtype.itemsize
    if dtype.kind == "f" and bits in (32, 64):
        return ir.FloatAttr.get((ir.F32Type if bits == 32 else ir.F64Type).get(), float(value))
    if dtype.kind in "iu":
        make = ir.IntegerType.get_unsigned if dtype.kind == "u" else ir.IntegerType.get_signless
        return ir.IntegerAttr.get(make(bits), int(value))
    raise _unreadable(target, name, f"a number of dtype {dtype}")


def _array(ir: Any, target: str, name: str, value: Any) -> Any:
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.asarray(None)
    kind = _ARRAYS.get(array.dtype.name)
    if array.ndim != 1 or kind is None or (not len(array) and not isinstance(value, np.ndarray)):
        raise _unreadable(target, name, f"{kind_of(value)}: {value!r:.60}")
    return getattr(ir, kind).get(array.tolist())


def _unreadable(target: str, name: str, got: str) -> CorejaxTypeError:
    return CorejaxTypeError(
        f"custom_call {target}: the value of {name!r} in backend_config can't be passed to a kernel", got=got,
        wanted="a bool, an int, a float, a NumPy scalar of up to 64 bits, a str; a list or an array of one axis, of "
               "signed integers, float32 or float64; a dict of these; or an MLIR attribute", where=here(),
        todo="flatten an array of several axes, and pass its shape beside it; pass booleans as np.int8, an empty list "
             "as np.array([], np.int64)")


# Layouts

def layouts(ctx: Any, target: str, what: str, wanted: Layouts, types: Sequence[Any]) -> Any:
    """Where each array's elements are in memory: the axes from the one that varies fastest to the slowest."""
    ranks = [getattr(kind, "rank", 0) for kind in types]  # tokens have none
    each = [wanted] * len(ranks) if wanted is None or isinstance(wanted, str) else list(wanted)
    if len(each) != len(ranks):
        raise _wrong_layout(target, what, f"{len(each)} of them", f"{len(ranks)}, one for each, or one name for all")
    orders = [_order(target, what, one, rank) for one, rank in zip(each, ranks, strict=True)]
    texts = [f"dense<{order or ''}> : tensor<{len(order)}xindex>" for order in orders]
    return ctx.attribute(f"[{', '.join(texts)}]")


def _order(target: str, what: str, layout: object, rank: int) -> list[int]:
    rows = list(range(rank))[::-1]
    if layout is None or layout == _ROW:
        return rows
    if layout == _COLUMN:
        return [*rows[:2][::-1], *rows[2:]]
    if not isinstance(layout, (tuple, list)) or sorted(layout) != rows[::-1]:
        raise _wrong_layout(target, what, repr(layout)[:80], f"'row', 'column', None for 'row', or the axes 0 to "
                                                            f"{rank - 1}, fastest first" if rank else "'row' or ()")
    return list(layout)


def _wrong_layout(target: str, what: str, got: str, wanted: str) -> CorejaxValueError:
    return CorejaxValueError(f"custom_call {target}: wrong {what}", got=got, wanted=wanted, where=here(),
                             todo="'row' is NumPy's order, 'column' that of Fortran and LAPACK, for the last two axes")


# Aliases

def aliases(ctx: Any, target: str, wanted: Mapping[int, int], operands: Sequence[Any], results: Sequence[Any]) -> Any:
    """Which result is in the memory of which operand, `{operand: result}`."""
    one = "" if len(results) == 1 else "{}"
    taken: set[int] = set()
    texts = []
    for operand, result in wanted.items():
        known = type(operand) is int and type(result) is int and \
            0 <= operand < len(operands) and 0 <= result < len(results)
        if not known or result in taken:
            raise _wrong_alias(target, f"{{{operand!r:.20}: {result!r:.20}}}",
                               f"an operand (0 to {len(operands) - 1}) for a result (0 to {len(results) - 1}), once")
        if operands[operand] != results[result]:
            raise _wrong_alias(target, f"operand {operand}, {describe_type(operands[operand])}, for result {result}, "
                                       f"{describe_type(results[result])}", "an operand and a result of one type")
        taken.add(result)
        texts.append(f"#stablehlo.output_operand_alias<output_tuple_indices = [{one.format(result)}], "
                     f"operand_index = {operand}, operand_tuple_indices = []>")
    return ctx.attribute(f"[{', '.join(texts)}]")


def _wrong_alias(target: str, got: str, wanted: str) -> CorejaxValueError:
    return CorejaxValueError(f"custom_call {target}: wrong aliases", got=got, wanted=wanted, where=here(),
                             todo="write {index of the operand: index of the result whose memory it is}")
