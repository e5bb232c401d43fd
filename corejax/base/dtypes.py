"""Dtypes: their names, the kinds that the kernel distinguishes, and the only promotion function.

Dtypes are NumPy's, with bfloat16, the float8s and some narrower ones of ml_dtypes; packs may declare more (`elements`).
Nothing is silently narrowed. A Python scalar is *weak*: only its kind takes part in promotion, and it never widens
other operands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import cache, lru_cache
from typing import Any, Protocol, TypeAlias

import ml_dtypes
import numpy as np

from corejax.base.config import config
from corejax.base.errors import CorejaxOverflowError, CorejaxTypeError
from corejax.base.source import here


class HasDType(Protocol):
    """Something with a dtype, such as an element type of a pack."""

    @property
    def dtype(self) -> np.dtype: ...


#: What names a dtype: itself, a scalar type, one of Python's, an element type, or a name.
DTypeLike: TypeAlias = "np.dtype | type[Any] | HasDType | str"

#: The type of tangents of integers and booleans: no bits, no information.
float0 = np.dtype([("float0", np.void, 0)])

bool_ = np.dtype(np.bool_)
int32, int64 = np.dtype(np.int32), np.dtype(np.int64)
float32, float64 = np.dtype(np.float32), np.dtype(np.float64)
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
bfloat16 = np.dtype(ml_dtypes.bfloat16)

_FLOAT8 = tuple(np.dtype(getattr(ml_dtypes, name)) for name in (
    "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu") if hasattr(ml_dtypes, name))
_FLOAT4 = np.dtype(ml_dtypes.float4_e2m1fn)
_FLOATS = frozenset((_FLOAT4, *_FLOAT8, bfloat16, np.dtype(np.float16), float32, float64))
_COMPLEXES = frozenset((complex64, complex128))
_BITS = {np.dtype(getattr(ml_dtypes, name, name)): int(name.lstrip("uint"))
         for name in [f"{sign}int{n}" for sign in ("", "u") for n in (2, 4, 8, 16, 32, 64)]}
_SIGNED = frozenset(dtype for dtype in _BITS if not dtype.name.startswith("u"))
_UNSIGNED = frozenset(_BITS) - _SIGNED

#: Integers of less than a byte, each with the dtype of the bytes as which programs store them. NumPy computes with them
#: in its own way or not at all, so only programs do.
PACKED = {dtype: np.dtype(np.int8 if dtype in _SIGNED else np.uint8) for dtype, bits in _BITS.items() if bits < 8}

_SHORT: dict[np.dtype, str] = {
    bool_: "bool", bfloat16: "bf16", float0: "float0",
    **{dtype: dtype.name.replace("uint", "u").replace("int", "i") for dtype in _BITS},
    **{np.dtype(f"float{n}"): f"f{n}" for n in (16, 32, 64)},
    complex64: "c64", complex128: "c128",
    **{dtype: dtype.name.replace("float", "f") for dtype in (*_FLOAT8, _FLOAT4)},
}
_LONG = {short: dtype for dtype, short in _SHORT.items()}

#: Types whose values are weak, with the kind of each.
PYTHON_SCALARS: dict[type, str] = {bool: "b", int: "i", float: "f", complex: "c"}


def plain_scalar(x: object) -> Any:
    """The plain Python number for one of a derived class, such as an IntEnum; None for anything else.

    NumPy's scalars, some of which also derive from Python's, have dtypes, so they aren't converted.
    """
    if isinstance(x, np.generic):
        return None
    kinds: tuple[Any, ...] = (int, float, complex)
    return next((kind(x) for kind in kinds if isinstance(x, kind)), None)


def short_name(dtype: np.dtype) -> str:
    """`f64` for float64, `bf16` for bfloat16: the names that jaxprs are printed with."""
    return _SHORT.get(dtype) or dtype.name


def long_name(dtype: np.dtype) -> str:
    """`float64`, `bfloat16`, or the name that a pack declared: the names that arrays are printed with."""
    return dtype.name if dtype.type is not np.void else _SHORT[dtype]


def from_short_name(name: str) -> np.dtype:
    """The inverse of `short_name`."""
    if not is_declared(name):
        raise CorejaxTypeError(f"{name!r} is not a dtype", wanted=", ".join(sorted(_LONG)))
    return _LONG[name]


#: Every dtype of numbers and booleans, and float0.
ALL = tuple(_SHORT)

_CANONICAL: dict[Any, np.dtype] = {dtype: dtype for dtype in _SHORT}
_CANONICAL.update({dtype.type: dtype for dtype in _SHORT if dtype is not float0})


# Dtypes that packs declare

_load: Callable[[str], object]


def load_by(load: Callable[[str], object]) -> None:
    """Use this function to load what declares the dtype of a name, if a pack that is installed brings it."""
    global _load
    _load = load


def is_declared(name: str) -> bool:
    """Whether this is the name of a dtype, perhaps after loading the pack that brings it."""
    if name not in _LONG:
        _load(name)
    return name in _LONG


def unknown_elements(name: str) -> CorejaxTypeError:
    """The error for an element type that nothing in this process declares."""
    return CorejaxTypeError(f"no pack in use brings the element type {name!r}", got=name, where=here(),
                            wanted="an element type that a pack brings, or that was declared by ElementType",
                            todo="install the pack that brings it, or import the module that declares it")


def declare(dtype: np.dtype, name: str) -> None:
    """Let arrays have this dtype, which jaxprs show by this name."""
    _SHORT[dtype], _LONG[name], _CANONICAL[dtype] = name, dtype, dtype


def stands_for(other: Hashable, dtype: np.dtype) -> None:
    """Let `other` be accepted wherever a dtype is."""
    _CANONICAL[other] = dtype


def names() -> Iterable[str]:
    """The names of all dtypes known so far."""
    return _LONG.keys()


def canonical(dtype: Any) -> np.dtype:
    """The dtype that `dtype` (a dtype, a scalar type, a name or a Python type) stands for; raises if there is none.

    Equal dtypes give the same object, so `is` compares them: `canonical(d) is float0`.
    """
    try:
        found = _CANONICAL.get(dtype)
        if found is not None:
            return found
    except TypeError:  # unhashable, so none of those
        pass
    if isinstance(dtype, type) and dtype in PYTHON_SCALARS:
        return default_dtype(PYTHON_SCALARS[dtype])
    try:
        named = np.dtype(dtype)
    except Exception as error:  # NumPy refuses nonsense in many ways
        if isinstance(dtype, str) and is_declared(dtype) and _LONG[dtype].type is np.void:
            return _LONG[dtype]
        raise CorejaxTypeError(f"{dtype!r:.80} is not a dtype", got=f"{dtype!r:.80}", where=here(),
                               wanted="a NumPy dtype, or one of ml_dtypes",
                               todo="write it as NumPy does: 'float32'") from error
    found = _CANONICAL.get(named.newbyteorder("=") if named.byteorder == ">" else named)
    if found is None and named.names is not None and len(named.names) == 1:
        if not is_declared(named.names[0]):
            raise unknown_elements(named.names[0])
        found = _CANONICAL.get(named)
        if found is None:
            own = _LONG[named.names[0]]
            raise CorejaxTypeError(f"elements of type {named.names[0]} are stored in another way", got=str(named),
                                   wanted=str(own), where=here(), todo="make them by the functions of their pack")
    if found is None:
        raise CorejaxTypeError(f"arrays of dtype {named} can't be computed with", got=str(named), where=here(),
                               wanted="booleans, integers, floats or complex numbers",
                               todo="convert it with NumPy first")
    return found


def kind(dtype: np.dtype) -> str:
    """`b`, `i`, `u`, `f` or `c`; `V` for float0, and `E` for elements of packs' own types."""
    if dtype.kind != "V" or dtype is float0:
        return dtype.kind
    return "f" if dtype in _FLOATS else "E" if dtype not in _BITS else "i" if dtype in _SIGNED else "u"


def bits_of(dtype: np.dtype) -> int:
    """How many bits a number has.

    >>> bits_of(np.dtype("int16")), bits_of(np.dtype(ml_dtypes.int4))
    (16, 4)
    """
    return _BITS.get(dtype) or (4 if dtype is _FLOAT4 else 8 * dtype.itemsize)


def integer_limits(dtype: np.dtype) -> Any:
    """The `min` and `max` of an integer dtype, as `np.iinfo` has them, which knows NumPy's own only."""
    return np.iinfo(dtype) if dtype not in PACKED else ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]


def is_float(dtype: np.dtype) -> bool:
    """Whether it is a real floating-point dtype."""
    return dtype in _FLOATS


def is_complex(dtype: np.dtype) -> bool:
    """Whether it is a complex dtype."""
    return dtype in _COMPLEXES


def is_inexact(dtype: np.dtype) -> bool:
    """Whether it is floating-point or complex: these dtypes have derivatives of their own type."""
    return dtype in _FLOATS or dtype in _COMPLEXES


def is_integer(dtype: np.dtype) -> bool:
    """Whether it is a signed or unsigned integer dtype; not for bool."""
    return dtype in _SIGNED or dtype in _UNSIGNED


def default_dtype(kind_: str) -> np.dtype:
    """The dtype of Python scalars of this kind, by `config.default_bits`."""
    bits = config.default_bits
    return bool_ if kind_ == "b" else canonical(f"{kind_}{bits // 4 if kind_ == 'c' else bits // 8}")


# Promotion is the least upper bound in this graph. Bare kinds ('i*', 'f*', 'c*') are the weak types.
_ABOVE: dict[Any, tuple[Any, ...]] = {
    bool_: ("i*",),
    "i*": (np.dtype("uint8"), np.dtype("int8"), *PACKED),
    **{np.dtype(f"uint{n}"): (np.dtype(f"uint{2 * n}"), np.dtype(f"int{2 * n}")) for n in (8, 16, 32)},
    **{np.dtype(f"int{n}"): (np.dtype(f"int{2 * n}"),) for n in (8, 16, 32)},
    np.dtype("uint64"): ("f*",), int64: ("f*",),
    "f*": (_FLOAT4, *_FLOAT8, bfloat16, np.dtype(np.float16), "c*"),
    **dict.fromkeys((*PACKED, _FLOAT4, *_FLOAT8), ()),
    bfloat16: (float32,), np.dtype(np.float16): (float32,),
    float32: (float64, complex64), float64: (complex128,),
    "c*": (complex64,), complex64: (complex128,), complex128: (),
}


@cache
def _upper_bounds(node: object) -> frozenset[Any]:
    return frozenset((node,)).union(*(_upper_bounds(above) for above in _ABOVE.get(node, ())))


@lru_cache(maxsize=4096)
def promote(*types: tuple[np.dtype, bool]) -> tuple[np.dtype, bool]:
    """The (dtype, weak) type that operands of these (dtype, weak) types are promoted to.

    >>> promote((float32, False), (float64, True))[0].name, promote((int32, False), (float64, True))[0].name
    ('float32', 'float64')
    """
    if len(set(types)) == 1:
        return types[0]
    nodes = {dtype if not weak or dtype == bool_ else f"{kind(dtype).replace('u', 'i')}*" for dtype, weak in types}
    common = frozenset.intersection(*map(_upper_bounds, nodes))
    least = [node for node in common if common <= _upper_bounds(node)]
    if not least:
        names = " and ".join(short_name(dtype) for dtype, _ in types)
        declared = [short_name(dtype) for dtype, _ in types if kind(dtype) == "E"]
        if declared:
            raise CorejaxTypeError(f"{names} have no common dtype: elements of type {declared[0]} aren't numbers",
                                   where=here(), got=names, wanted="numbers or booleans",
                                   todo=f"use a function of the pack that brings {declared[0]}")
        raise CorejaxTypeError(f"{names} have no common dtype", where=here(), got=names,
                               wanted="dtypes of which one holds the numbers of both",
                               todo="convert one of them with .astype(...)")
    if isinstance(least[0], str):
        weak_dtypes = [dtype for dtype, weak in types if weak and f"{kind(dtype)}*" == least[0]]
        widest = max(weak_dtypes, key=lambda dtype: dtype.itemsize, default=default_dtype(least[0][0]))
        return (default_dtype(least[0][0]) if any(not weak for _, weak in types) else widest), True
    return least[0], all(weak for _, weak in types)


def inexact(dtype: np.dtype, weak: bool = False) -> np.dtype:
    """The dtype of quotients and means: the same for inexact operands, a float for integers.

    >>> inexact(np.dtype("int16")).name, inexact(np.dtype("uint64")).name, inexact(np.dtype("int32"), weak=True).name
    ('float32', 'float64', 'float64')
    """
    if is_inexact(dtype):
        return dtype
    return default_dtype("f") if weak and dtype != bool_ or dtype.itemsize == 8 else float32


# Python's numbers in a dtype

@cache
def maker(dtype: np.dtype) -> Callable[[Any], Any]:
    """The function that makes scalars of a dtype of Python numbers, of no higher kind than the dtype's.

    It raises an OverflowError for integers that the dtype can't hold. Floats become infinite, without a warning.
    """
    make: Callable[[Any], Any] = dtype.type
    if dtype.isbuiltin != 1 and is_float(dtype):  # which take no integers of more than 64 bits
        return lambda value: make(float(value))
    if dtype in PACKED:  # which wrap around
        return lambda value: make(_in_range(value, dtype))
    if dtype.char not in "efF":
        return make
    quietly = np.errstate(over="ignore")(make)
    if dtype.char == "F":
        return quietly
    largest = float(np.finfo(dtype).max)
    return lambda value: make(value) if -largest <= value <= largest else quietly(value)


def number(value: complex, dtype: np.dtype) -> Any:
    """A Python number as a scalar of a dtype that holds its kind; an integer out of its range is an error.

    >>> number(2 ** 63, np.dtype("uint64")), number(2 ** 63, np.dtype("float32"))
    (np.uint64(9223372036854775808), np.float32(9.223372e+18))
    """
    try:
        return maker(dtype)(value)
    except OverflowError as error:
        raise _misfit(value, dtype) from error


def check_python_int(value: int, dtype: np.dtype) -> None:
    """Raise if `dtype` can't hold a Python integer."""
    if not is_integer(dtype):
        return
    info = integer_limits(dtype)
    if not info.min <= value <= info.max:
        raise _misfit(value, dtype)


def _in_range(value: int, dtype: np.dtype) -> int:
    check_python_int(value, dtype)
    return value


def shown(value: object) -> str:
    """A Python number in a message: of a huge integer, which Python may refuse to print, about how much it is."""
    if not isinstance(value, int) or value.bit_length() <= 256:
        return str(value)
    return f"{'-' if value < 0 else ''}2**{value.bit_length() - 1}..."


def _misfit(value: complex, dtype: np.dtype) -> CorejaxOverflowError:
    if is_integer(dtype):
        info = integer_limits(dtype)
        wanted, todo = f"{info.min} to {info.max}", "use a wider dtype or a float"
    else:
        wanted, todo = "a number in the range of float64", "compute with it in Python"
    return CorejaxOverflowError(f"the Python integer {shown(value)} doesn't fit {short_name(dtype)}", got=shown(value),
                                wanted=wanted, todo=todo, where=here())
