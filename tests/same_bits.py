"""The law that a call gives the same bits whenever, wherever and in whichever form its operands are passed.

Eagerly, of host operands: what a function gives depends on the values and types of its operands alone. It is the same
on the first call and on later ones, after other calls, with empty caches, in any thread; and equal values give equal
bits as an `Array` or ndarray of any memory layout, a list, a NumPy scalar, a Python number, by position or by keyword.

`python -m tests.same_bits --count 200 [NAME ...]` tries that many calls of each function and prints those that differ.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, plugin
from corejax.base import caches
from corejax.core import Array
from corejax.eager import direct
from corejax.plugin import operators
from corejax_testing.packs import primitives_of
from corejax_testing.specification import samples_of
from tests import numpy_search
from tests.numpy_search import ALL, REAL, Call, Draw, along, among, find, joined, of, one, pick, square, two, values

#: Of a result: its type and its bytes, all NaN being one; of several, those of each. Of an error, its class.
Bits = tuple[Any, ...]

INTEGERS = ("i4", "i8", "u1")


def static(*arguments: tuple[Any, ...]) -> Draw:
    return lambda rng: Call((), pick(rng, arguments))


def counts(size: int) -> Draw:
    return lambda rng: Call((rng.integers(0, 4, size),))


#: What `numpy_search` doesn't call, since jax.numpy has other types or results there.
MORE: dict[str, Draw] = {
    **{name: two(REAL) for name in ("allclose", "array_equal", "array_equiv", "broadcast_arrays", "pow")},
    **{name: of((7,), (4,), dtypes=("f8", "i8")) for name in ("intersect1d", "isin", "setdiff1d", "setxor1d",
                                                             "union1d")},
    **{name: one((*REAL, "i8"), ((7,), (2, 3))) for name in (
        "argwhere", "flatnonzero", "nonzero", "unique", "unique_all", "unique_counts", "unique_inverse",
        "unique_values", "sort_complex", "fix", "around", "asarray", "array", "copy", "empty_like",
        "permute_dims", "unstack")},
    "argpartition": lambda rng: Call((values(rng, "f8", (9,), False),), (4,)),
    "bincount": among(counts(8), lambda rng: Call((rng.integers(0, 4, 8), values(rng, "f8", (8,), False)))),
    "bitwise_right_shift": of((3,), (3,), dtypes=("i8", "u1")),
    "choose": lambda rng: Call((rng.integers(0, 2, 3), values(rng, "f8", (2, 3)))),
    **{name: lambda rng: Call((values(rng, "?", (4,)), values(rng, "f8", (4,)))) for name in ("compress", "extract")},
    "concat": joined(((3,), (2,))),
    **{name: of((4, 4, 2), static=((2,),), dtypes=("f8",)) for name in ("dsplit", "hsplit", "vsplit")},
    "einsum": lambda rng: pick(rng, EINSUMS)(rng),
    "histogram2d": lambda rng: Call((values(rng, "f8", (20,), False), values(rng, "f8", (20,), False)), (4,)),
    "histogram_bin_edges": lambda rng: Call((values(rng, "f8", (20,), False),), (4,)),
    "histogramdd": lambda rng: Call((values(rng, "f8", (20, 2), False),), (4,)),
    "ix_": lambda rng: Call((rng.integers(0, 4, 3), rng.integers(0, 4, 2))), "meshgrid": of((3,), (2,)),
    "packbits": one(("?", "u1"), ((9,), (2, 3))), "unpackbits": one(("u1",), ((3,), (2, 3))),
    "polydiv": of((5,), (3,), dtypes=("f8",)), "roots": lambda rng: Call((values(rng, "f8", (4,), False),)),
    "select": lambda rng: Call((values(rng, "?", (2, 3)), values(rng, "f8", (2, 3)))),
    "trim_zeros": one(("f8", "i8"), ((7,),)),
    "ravel_multi_index": lambda rng: Call((rng.integers(0, 3, 5), rng.integers(0, 4, 5)), ((3, 4),), {}, True),
    "unravel_index": lambda rng: Call((rng.integers(0, 12, 5),), ((3, 4),)),
    "arange": static((5,), (0.0, 2.0, 0.3), (2, 9, 3)), "eye": static((3,), (3, 4, 1)), "identity": static((3,)),
    "tri": static((3,), (3, 4, 1)), "full": static(((2, 3), 0.1), ([3], 2)), "indices": static(((2, 3),), ([2, 3],)),
    **{name: static(((2, 3),), (3,), ([2],)) for name in ("zeros", "ones")},
    **{name: static((3,), (4,)) for name in ("diag_indices", "tril_indices", "triu_indices")},
    **{f"fft.{name}": static((6, 0.3), (7, 0.1)) for name in ("fftfreq", "rfftfreq")},
    "linalg.diagonal": of((2, 3, 3)), "linalg.trace": of((2, 3, 3)), "linalg.matrix_transpose": of((2, 3)),
    **{f"linalg.{name}": square(5) for name in ("eig", "svd")}, "linalg.eigh": square(5, positive=True),
    "linalg.matmul": of((7, 9), (9, 5)), "linalg.vecdot": of((7, 9), (9,)),
    "linalg.tensordot": of((2, 9, 4), (9, 4, 2)),
    "linalg.tensorsolve": lambda rng: Call((values(rng, "f8", (6, 2, 3), False), values(rng, "f8", (6,), False))),
}


def _subscripts(text: str, *shapes: tuple[int, ...]) -> Draw:
    def draw(rng: np.random.Generator) -> Call:
        call = of(*shapes, dtypes=("f4", "f8", "c16"))(rng)
        return Call((text, *call.operands))
    return draw


EINSUMS = (_subscripts("ij,jk->ik", (7, 9), (9, 5)), _subscripts("ij,ij->", (7, 9), (7, 9)),
           _subscripts("ij->j", (7, 9)), _subscripts("bij,bjk->bik", (2, 7, 9), (2, 9, 5)),
           _subscripts("ii->i", (5, 5)), _subscripts("i,ij,j->", (7,), (7, 9), (9,)))

#: Public functions that compute nothing from arrays, or whose results aren't arrays.
NOTHING_TO_COMPUTE = frozenset("""apply_along_axis apply_over_axes array_repr array_str astype broadcast_shapes can_cast
    diag_indices_from einsum_path empty fill_diagonal finfo from_dlpack frombuffer fromfile fromfunction fromiter
    frompyfunc fromstring get_printoptions iinfo iscomplexobj isdtype isrealobj isscalar issubdtype iterable load
    mask_indices ndim piecewise place printoptions promote_types put put_along_axis result_type save savez
    set_printoptions shape size tril_indices_from triu_indices_from vectorize""".split())

OPERATORS: dict[str, Draw] = {
    **{name: two() for name in ("add", "sub", "mul", "truediv", "eq", "ne", "lt", "le", "gt", "ge", "pow")},
    **{name: two((*REAL, "i4", "i8")) for name in ("floordiv", "mod", "divmod")},
    **{name: two(INTEGERS) for name in ("and", "or", "xor", "lshift", "rshift")},
    "matmul": among(of((7, 9), (9, 5)), of((9,), (9,)), of((2, 7, 9), (9,))),
    **{name: one(ALL) for name in ("neg", "abs")},
}
METHODS: dict[str, Draw] = {
    **{name: along() for name in ("sum", "prod", "all", "any")},
    **{name: along(("f4", "f8", "i4", "c16")) for name in ("mean", "std", "var")},
    **{name: along(REAL) for name in ("max", "min")},
    **{name: along(REAL, keep=False, several=False) for name in ("argmax", "argmin", "cumsum", "cumprod")},
    "dot": of((7, 9), (9, 5)), "clip": lambda rng: Call((values(rng, "f8", (5,)), 0.1, 0.5)),
    "round": lambda rng: Call((values(rng, "f8", (5,)), 1)),
}

#: Shapes that NumPy's loops treat otherwise than small ones: by vectors of the processor, in blocks, in pairs.
LARGE = ((40,), (200,), (17, 33), (5, 64), (3, 9, 16))
#: One element is in any order, even backward.
SINGLE = ((1,), (1, 1))


def public_functions() -> list[str]:
    """The names of functions of `corejax.numpy` and its modules that compute something from arrays."""
    found = []
    for prefix, module in (("", jnp), ("linalg.", jnp.linalg), ("fft.", jnp.fft)):
        for name in dir(module):
            value = getattr(module, name)
            if not name.startswith("_") and callable(value) and not isinstance(value, (ModuleType, type)):
                found.append(prefix + name)
    return [name for name in found if name not in NOTHING_TO_COMPUTE]


DRAWS: dict[str, Draw] = {
    **{f"numpy.{name}": draw for name, draw in (numpy_search.DRAWS | MORE).items()},
    **{f"operators.{name}": draw for name, draw in OPERATORS.items()},
    **{f"methods.{name}": draw for name, draw in METHODS.items()}}

#: Primitives without an `impl` are compiled, wherever their operands are.
PACKS = ("corejax-lax-basic", "corejax-reductions", "corejax-special", "corejax-sorting", "corejax-windows",
         "corejax-linear-algebra", "corejax-fft")
NAMES = [*DRAWS, *[f"lax.{name}" for pack in PACKS for name in primitives_of(pack)
                   if plugin.find(name).impl is not None]]

#: Lists are not arrays there.
NOT_OF_LISTS = frozenset(["numpy.block", "numpy.select", "numpy.choose", *[f"numpy.{name}" for name in (
    "array_repr", "full_like", "empty_like")]])


class Function(NamedTuple):
    """What is called."""

    name: str
    call: Callable[..., Any]
    takes_all: bool = True  # an ndarray, list or number as its first operand


def function(name: str) -> Function:
    kind, _, rest = name.partition(".")
    if kind == "numpy":
        return Function(name, find(jnp, rest))
    if kind == "operators":
        return Function(name, getattr(operators, rest), takes_all=False)
    if kind == "methods":
        return Function(name, lambda x, *args, **named: getattr(x, rest)(*args, **named), takes_all=False)
    return Function(name, plugin.find(rest).bind)


def drawn(name: str, count: int, seed: int = 0) -> Iterator[Call]:
    """Calls of a function: of small operands, and of larger ones and single elements where any shape will do."""
    kind, _, rest = name.partition(".")
    if kind == "lax":
        for sample in samples_of(plugin.find(rest))[:count]:
            yield Call(tuple([np.array(x) if isinstance(x, (Array, np.ndarray)) else x for x in sample.args]),
                       named=dict(sample.params))
        return
    for i in range(count):
        rng = np.random.default_rng([seed, i, *name.encode()])
        with mock.patch.object(numpy_search, "SHAPES", (numpy_search.SHAPES, LARGE, SINGLE)[i % 3]):
            yield DRAWS[name](rng)


# Forms of operands

def _array(x: Any) -> Any:
    return lax.copy(x) if isinstance(x, np.ndarray) else x


def _list(x: Any) -> Any:
    if not isinstance(x, np.ndarray) or not x.size or x.dtype.char not in "dl?D":
        return _array(x)
    return x.tolist() if x.ndim else _array(x)


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, np.ndarray) and not x.ndim and x.dtype.char in "dlD" else _array(x)


def _spread(x: Any) -> Any:
    """An ndarray whose elements aren't beside each other, nor in order."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return x
    return np.repeat(x[..., ::-1], 2, axis=-1)[..., ::-2]


def _column_major(x: Any) -> Any:
    return lax.copy(x.T.copy()).T if isinstance(x, np.ndarray) and x.ndim else _array(x)


def _imported(x: Any) -> Any:
    """An array of memory in column-major order that another library shares."""
    if not isinstance(x, np.ndarray) or x.dtype.isbuiltin != 1:
        return _array(x)
    return cj.from_dlpack(x.copy(order="F"))


def _unpickled(x: Any) -> Any:
    """What another process sent: its dtype isn't the object that NumPy's own arrays have."""
    return pickle.loads(pickle.dumps(x)) if isinstance(x, (np.ndarray, Array)) else x


def _strided(x: Any) -> Any:
    return lax.copy(np.repeat(x, 2, axis=-1))[..., ::2] if isinstance(x, np.ndarray) and x.ndim else _array(x)


def _reversed(x: Any) -> Any:
    return lax.rev(lax.copy(x[..., ::-1].copy()), (x.ndim - 1,)) if isinstance(x, np.ndarray) and x.ndim else _array(x)


FORMS: dict[str, Callable[[Any], Any]] = {
    "Array": _array, "ndarray": lambda x: x, "list": _list, "Python number": _number,
    "NumPy scalar": lambda x: x[()] if isinstance(x, np.ndarray) else x, "spread ndarray": _spread,
    "column-major ndarray": lambda x: x.copy(order="F") if isinstance(x, np.ndarray) else x,
    "imported Array": _imported, "transposed Array": _column_major, "part of an Array": _strided,
    "reversed Array": _reversed, "unpickled ndarray": _unpickled, "unpickled Array": lambda x: _unpickled(_array(x)),
}


def forms(function: Function, call: Call) -> Iterator[str]:
    """The forms in which a call can be made."""
    has_scalar = any([isinstance(x, np.ndarray) and not x.ndim for x in call.operands])
    for form in FORMS:
        if not function.takes_all and "Array" not in form:
            continue
        if form == "list" and (function.name.startswith("lax.") or function.name in NOT_OF_LISTS):
            continue
        if form == "Python number" and not (has_scalar and len(call.operands) == 1 and function.name[:4] != "lax."):
            continue
        yield form


# Comparing

def bits(out: Any) -> Bits:
    if isinstance(out, (tuple, list)):
        return tuple([bits(part) for part in out])
    host = np.array(out)
    if host.dtype.kind not in "fc" and host.dtype.num < 256:
        return str(host.dtype), host.shape, host.tobytes()
    parts = [host.real, host.imag] if host.dtype.kind == "c" else [host]
    shown = []
    for part in parts:
        part = np.array(part)
        with np.errstate(all="ignore"):
            if part.dtype.kind == "f" or part.dtype.num >= 256 and part.dtype.kind == "V" and part.dtype.names is None:
                part[part != part] = np.nan
        shown.append(part.tobytes())
    return str(host.dtype), host.shape, *shown


def result(function: Function, call: Call, form: str = "Array") -> Bits:
    """What a call gives, in one form of its operands; for an error its class."""
    convert = FORMS[form]
    try:
        return bits(call.apply(function.call, tuple([convert(x) for x in call.operands])))
    except Exception as error:
        return ("raised", type(error).__name__)


def forget() -> None:
    """Empty the caches of types, but leave compiled programs."""
    for cache in caches._all_caches:
        if isinstance(cache, direct._Results):
            cache.clear()


def differing(name: str, calls: list[Call]) -> list[str]:
    """What gives other bits: the form, and which time it was called."""
    found = []
    called = function(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            forget()
            first = result(called, call)
            if first[:1] == ("raised",):
                continue
            for form in forms(called, call):
                for time in ("first", "second"):
                    if result(called, call, form) != first:
                        found.append(f"{name}: {form}, {time} time: {call}")
            forget()
            if result(called, call, form) != first:
                found.append(f"{name}: {form}, with empty caches: {call}")
    return found


def by_general_function(name: str, call: Call) -> Bits:
    """What the decorated function gives, where NumPy's may compute the same."""
    with mock.patch.object(direct, "EvalTrace", type(None)):
        return result(function(name), call)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    total = 0
    for name in options.names or NAMES:
        found = differing(name, [*drawn(name, options.count, options.seed)])
        total += bool(found)
        if found:
            print(f"== {name}: {len(found)}", *[one[:400] for one in sorted(found, key=len)[:2]], sep="\n", flush=True)
    print(f"{total} functions of {len(options.names or NAMES)} change their bits")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
