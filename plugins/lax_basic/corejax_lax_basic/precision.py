"""How precisely products of arrays are computed: by a level, or by an algorithm.

A level is a wish: it says how imprecise a device may be with 32-bit floats, in order to be fast. An algorithm is
binding: it says which types operands are rounded to, and in which type products are added up. It is an error to ask a
device for one that it does not have. XLA's CPU backend ignores algorithms instead, so here it only gets those of which
it has the types, or wider ones: those in `ON_CPU`.

In programs, a precision is None, a pair of names of levels, the name of a preset, or the tuple of an algorithm's parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, EnumMeta, auto
from typing import Any, NamedTuple, TypeAlias, Union

import numpy as np

from corejax.core import DTypeLike, ShapedArray, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import public, refused, shaping
from corejax_lax_basic._axes import canonical_dtype, dtype_kind

__all__ = ["DotAlgorithm", "DotAlgorithmPreset", "Precision", "PrecisionLike"]

_LEVELS = {None: "DEFAULT", "default": "DEFAULT", "fastest": "DEFAULT", "bfloat16": "DEFAULT", "high": "HIGH",
           "tensorfloat32": "HIGH", "bfloat16_3x": "HIGH", "highest": "HIGHEST", "float32": "HIGHEST"}


class _Lookup(EnumMeta):
    """Finds a level by its number or any of its names, and refuses others at the line of the call."""

    @public
    def __call__(cls, level: object) -> Precision:  # type: ignore[override]
        """The level of a number or a name."""
        if isinstance(level, Precision):
            return level
        if level is None or isinstance(level, str):
            if level in _LEVELS:
                return Precision.__members__[_LEVELS[level]]
        elif isinstance(level, int) and 0 <= level < len(Precision):
            return [*Precision.__members__.values()][level]
        raise refused("Precision", "there is no such level", got=repr(level),
                      wanted=f"0, 1, 2 or one of {', '.join(map(repr, _LEVELS))}", todo='use "highest", or None',
                      kind=CorejaxValueError)


class Precision(Enum, metaclass=_Lookup):
    """How precisely a device multiplies 32-bit floats.

    On GPUs, `DEFAULT` and `HIGH` allow TensorFloat-32. On TPUs, `DEFAULT` multiplies as bfloat16; `HIGH` and `HIGHEST`
    split each float into several of these. On the CPU all three are the same. Functions that take a precision also
    take names: "default", "fastest" and "bfloat16"; "high", "tensorfloat32" and "bfloat16_3x"; "highest" and "float32".

    >>> Precision("tensorfloat32"), str(Precision.HIGHEST)
    (Precision.HIGH, 'HIGHEST')
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """An algorithm for products: the types that operands are rounded to, and the type in which products are added up.

    An algorithm that emulates a wider type splits each operand into several components, and multiplies these several
    times; for others the counts are 1. Only algorithms of which `DotAlgorithmPreset` has a name exist, and those of two
    types of 8-bit floats.

    >>> from corejax import lax
    >>> algorithm = DotAlgorithm(np.float32, np.float32, np.float32)
    >>> lax.dot(np.ones(3), np.full(3, 0.1), precision=algorithm).item()
    0.30000001192092896
    """

    lhs_precision_type: DTypeLike
    rhs_precision_type: DTypeLike
    accumulation_type: DTypeLike
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(Enum):
    """Algorithms for products that some devices have, named after the types of operands and of sums.

    `F16_F16_F32` rounds operands to 16-bit floats and adds up their products as 32-bit floats. Those that end in `_X3`,
    `_X6` or `_X9` emulate a wider type by so many products. `ANY_F8_ANY_F8_ANY` takes the type of sums from the result.
    The result has the same type as without an algorithm.

    The CPU has `DEFAULT`, `F16_F16_F16`, `BF16_BF16_F32` (also with `_X3` and `_X6`), `F32_F32_F32` and `F64_F64_F64`.

    >>> from corejax import lax
    >>> lax.dot(np.ones(3), np.full(3, 0.1), precision=DotAlgorithmPreset.F32_F32_F32).item()
    0.30000001192092896
    """

    DEFAULT = auto()
    ANY_F8_ANY_F8_F32 = auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = auto()
    ANY_F8_ANY_F8_ANY = auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = auto()
    F16_F16_F16 = auto()
    F16_F16_F32 = auto()
    BF16_BF16_BF16 = auto()
    BF16_BF16_F32 = auto()
    BF16_BF16_F32_X3 = auto()
    BF16_BF16_F32_X6 = auto()
    BF16_BF16_F32_X9 = auto()
    TF32_TF32_F32 = auto()
    TF32_TF32_F32_X3 = auto()
    F32_F32_F32 = auto()
    F64_F64_F64 = auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name


#: What a precision may be: None, a level, an algorithm, names of these, or a pair of levels, one for each operand.
PrecisionLike: TypeAlias = Union[  # noqa: UP007, a type made with `|` isn't callable, as entry points must be
    None, str, Precision, tuple[str, str], tuple[Precision, Precision], DotAlgorithm, DotAlgorithmPreset]

#: The parts of an algorithm, as they are in programs: three dtypes, three counts and a flag
Parts: TypeAlias = tuple[np.dtype, np.dtype, np.dtype, int, int, int, bool]

#: What a precision is in programs
Canonical: TypeAlias = None | tuple[str, str] | str | Parts

#: What names stand for.
_OF_WORD: dict[str, Canonical] = {
    **{name: (level, level) for name, level in _LEVELS.items() if name is not None},
    **{name: name for name in DotAlgorithmPreset.__members__}, "DEFAULT": None}

#: The presets that XLA's CPU backend computes with.
ON_CPU = ("BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "F16_F16_F16", "F32_F32_F32", "F64_F64_F64")


_F16, _BF16, _F32, _F64 = [np.dtype(d) for d in (np.float16, dtypes.bfloat16, np.float32, np.float64)]

#: By the names of operands in presets: the types that operands may have. Others are converted to the first.
_STORED = {"F16": (_F16,), "BF16": (_BF16, _F32), "TF32": (_F32,), "F32": (_F32,), "F64": (_F64,)}
_OF_NAME = {"F16": _F16, "BF16": _BF16, "F32": _F32, "F64": _F64}

#: The presets of which the parts can be written down, as the types are NumPy's.
_WITH_PARTS = ("F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6",
               "BF16_BF16_F32_X9", "F32_F32_F32", "F64_F64_F64")


# Canonical forms

def canonical_precision(primitive: str, precision: Any) -> Canonical:
    """What a precision is in programs."""
    if precision is None:
        return None
    if type(precision) is str and precision in _OF_WORD:
        return _OF_WORD[precision]
    if isinstance(precision, DotAlgorithmPreset):
        return _OF_WORD[precision.name]
    pair = tuple(precision) if isinstance(precision, (tuple, list)) else (precision, precision)
    if isinstance(precision, DotAlgorithm) or len(pair) == len(DotAlgorithm._fields):
        return _canonical_parts(primitive, pair)
    names = [p.name.lower() if isinstance(p, Precision) else p.lower() if isinstance(p, str) else p for p in pair]
    if len(names) != 2 or any([not (p is None or isinstance(p, str)) or p not in _LEVELS for p in names]):
        raise refused(primitive, "unknown precision", got=repr(precision),
                      wanted="None, 'default', 'high', 'highest', or a pair of them; a lax.DotAlgorithm, a "
                             "lax.DotAlgorithmPreset or its name", todo="leave it out for the default")
    return None if names == [None, None] else (_LEVELS[names[0]], _LEVELS[names[1]])


def _canonical_parts(primitive: str, parts: Sequence[Any]) -> Parts:
    lhs, rhs, total, *counts, imprecise = parts
    types = [canonical_dtype(dtype) for dtype in (lhs, rhs, total)]
    counts = [shaping.as_int(primitive, field, count)
              for field, count in zip(DotAlgorithm._fields[3:6], counts, strict=True)]
    found = types[0], types[1], types[2], counts[0], counts[1], counts[2], bool(imprecise)
    narrow = found[2:6] == (_F32, 1, 1, 1) and all([dtype_kind(d) == "f" and d.itemsize == 1 for d in found[:2]])
    if not narrow and found not in map(_parts_of, _WITH_PARTS):
        raise refused(primitive, "there is no such algorithm", got=_name(found),
                      wanted=f"the parts of one of {', '.join(_WITH_PARTS)}; or 8-bit floats, added up as float32",
                      todo="use a lax.DotAlgorithmPreset; for the precision of other types, use preferred_element_type")
    return found


def exchanged(precision: Canonical) -> Canonical:
    """The same for the operands in the other order."""
    if precision is None or isinstance(precision, str):
        return precision
    if len(precision) == 2:
        return precision[1], precision[0]
    lhs, rhs, total, lhs_count, rhs_count, products, imprecise = precision
    return rhs, lhs, total, rhs_count, lhs_count, products, imprecise


def is_algorithm(precision: Canonical) -> bool:
    """Whether it prescribes types, rather than being a level or None."""
    return precision is not None and (isinstance(precision, str) or len(precision) != 2)


def check_algorithm(primitive: str, precision: Canonical, avals: Sequence[ShapedArray]) -> None:
    """Raise if these operands have no products by this algorithm."""
    for aval in avals:
        if dtype_kind(aval.dtype) != "f":
            raise refused(primitive, "algorithms are for products of floats",
                          got=f"{', '.join(map(str, avals))} by {_name(precision)}", wanted="floats",
                          todo="leave precision out, or convert the operands with x.astype(...)")
        if isinstance(precision, str) and precision.startswith("ANY_F8") and aval.dtype.itemsize != 1:
            raise refused(primitive, f"{precision} is for products of 8-bit floats",
                          got=", ".join(map(str, avals)), wanted="8-bit floats",
                          todo="convert the operands with x.astype(...)")


# What algorithms mean

def computed_in(precision: Any, lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> tuple[np.dtype, np.dtype, np.dtype]:
    """The types that an algorithm converts the operands to, and that it has the sums of products in.

    `out` is the type of the result, to which the sums are then converted.
    """
    if not isinstance(precision, str):
        return precision[:3]  # type: ignore[no-any-return]
    operand, total = _named_parts(precision)
    if operand == "F8":
        return lhs, rhs, out if total == "ANY" or out.itemsize < 4 else _F32
    stored = _STORED[operand] if _products(precision) == 1 else (_F32,)
    lhs, rhs = lhs if lhs in stored else stored[0], rhs if rhs in stored else stored[0]
    # a narrow result of narrow operands may come straight from the sums
    return lhs, rhs, out if out == lhs == rhs == _OF_NAME.get(operand) else _OF_NAME[total]


def _named_parts(preset: str) -> tuple[str, str]:
    """The names of the types of operands and of sums."""
    if preset.startswith("ANY_F8"):
        return "F8", preset.split("_")[4]
    return preset.split("_")[0], preset.split("_")[2]


def _products(preset: str) -> int:
    """How many products of narrow operands emulate one of wide operands."""
    return int(preset[-1]) if preset[-2:] in ("X3", "X6", "X9") else 1


def refuse_on_cpu(primitive: str, precision: Any) -> None:
    """Raise if this is an algorithm that the CPU backend would ignore."""
    if not is_algorithm(precision) or precision in ON_CPU or precision in map(_parts_of, ON_CPU):
        return
    raise refused(primitive, f"there is no algorithm {_name(precision)} on the CPU", got=_name(precision),
                  wanted=f"one of {', '.join(ON_CPU)}, or the same as a lax.DotAlgorithm",
                  todo="leave precision out, or put the operands on a device that has it", kind=CorejaxValueError)


def _parts_of(preset: str) -> Parts:
    operand, total = _named_parts(preset)
    return _OF_NAME[operand], _OF_NAME[operand], _OF_NAME[total], 1, 1, _products(preset), False


def _name(precision: Any) -> str:
    if isinstance(precision, str):
        return precision
    lhs, rhs, total, *rest = precision
    return f"DotAlgorithm({lhs.name}, {rhs.name}, {total.name}, {', '.join(map(str, rest))})"


# Lowering

def lower_product(ctx: Any, operation: str, args: Sequence[Any], attributes: dict[str, Any], precision: Any) -> Any:
    """An operation whose first two operands are multiplied in this precision."""
    if precision is None:
        return ctx.op(operation, args, attributes)
    if not is_algorithm(precision):
        levels = [ctx.attribute(f"#stablehlo<precision {level}>") for level in precision]
        return ctx.op(operation, args, {**attributes, "precision_config": ctx.ir.ArrayAttr.get(levels)})
    if ctx.platform == "cpu":
        refuse_on_cpu(operation.rpartition(".")[2], precision)
    (lhs, rhs, *_), (out,) = ctx.avals_in, ctx.avals_out
    left, right, sums = computed_in(precision, lhs.dtype, rhs.dtype, out.dtype)
    operands = [_converted(ctx, args[0], lhs, left), _converted(ctx, args[1], rhs, right), *args[2:]]
    total = ctx.op(operation, operands, {**attributes, "algorithm": _attribute(ctx, precision, left, right)},
                   [ctx.type_of(ShapedArray(out.shape, sums))])
    return _converted(ctx, total, ShapedArray(out.shape, sums), out.dtype)


def _converted(ctx: Any, x: Any, aval: ShapedArray, dtype: np.dtype) -> Any:
    if aval.dtype == dtype:
        return x
    return ctx.op("stablehlo.convert", [x], None, [ctx.type_of(ShapedArray(aval.shape, dtype))])


def _attribute(ctx: Any, precision: Any, lhs: np.dtype, rhs: np.dtype) -> Any:
    """The algorithm, as an attribute of a product of operands that have these types already."""
    products, counts, imprecise = 1, (1, 1), False
    if isinstance(precision, str):
        operand, total = _named_parts(precision)
        types = [_spelled(ctx, lhs), _spelled(ctx, rhs)] if operand == "F8" else [operand.lower()] * 2
        types.append("f32" if total == "ANY" else total.lower())
        products = _products(precision)
        imprecise = precision.endswith("_FAST_ACCUM")
    else:
        types = [_spelled(ctx, dtype) for dtype in precision[:3]]
        counts, products, imprecise = precision[3:5], precision[5], precision[6]
    return ctx.attribute(
        f"#stablehlo.dot_algorithm<lhs_precision_type = {types[0]}, rhs_precision_type = {types[1]}, "
        f"accumulation_type = {types[2]}, lhs_component_count = {counts[0]}, rhs_component_count = {counts[1]}, "
        f"num_primitive_operations = {products}, allow_imprecise_accumulation = {str(imprecise).lower()}>")


def _spelled(ctx: Any, dtype: np.dtype) -> str:
    return str(ctx.type_of(ShapedArray((), dtype)).element_type)
