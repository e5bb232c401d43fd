"""Random calls of `corejax.numpy` beside jax.numpy: values, dtypes, compiled, mapped, and derivatives.

`JAX_ENABLE_X64=1 python -m tests.numpy_search --count 2000 --seed 0 [NAME ...]` prints what differs, shortest first,
and fails if anything does but for what `KNOWN` says.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Draw = Callable[[np.random.Generator], "Call"]

REAL, COMPLEX, INTS = ("f4", "f8", "f2"), ("c8", "c16"), ("i4", "i8", "u1", "i2", "u4")
ALL = (*REAL, *COMPLEX, *INTS, "?")
SHAPES = ((), (1,), (3,), (0,), (2, 3), (3, 3), (1, 3), (2, 0), (2, 1, 3), (2, 3, 4))


class Call(NamedTuple):
    """The operands, which are arrays, and what is static."""

    operands: tuple[Any, ...]
    static: tuple[Any, ...] = ()
    named: dict[str, Any] = {}
    listed: bool = False  # the operands are one argument

    def apply(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        first = (list(operands),) if self.listed else operands
        return function(*first, *self.static, **self.named)


# Drawing operands

def values(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], special: bool = True) -> np.ndarray:
    """Mostly small numbers; sometimes zeros, ties, infinities and NaN."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if kind in "iu":
        low = 0 if kind == "u" else -5
        return rng.integers(low, 6, shape).astype(dtype)
    x = rng.normal(size=shape)
    if rng.random() < 0.3:
        x = np.round(x)
    if kind == "c":
        x = x + 1j * rng.normal(size=shape)
    x = np.asarray(x).astype(dtype)
    if special and kind == "f" and rng.random() < 0.15 and x.size:
        x.flat[rng.integers(x.size)] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0])
    return x


def pick(rng: np.random.Generator, items: Any) -> Any:
    return items[int(rng.integers(len(items)))]


def one(dtypes: tuple[str, ...] = ALL, shapes: Any = SHAPES) -> Draw:
    return lambda rng: Call((values(rng, pick(rng, dtypes), pick(rng, shapes)),))


def _fitting(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = pick(rng, SHAPES)
    other = tuple([n if rng.random() < 0.7 else 1 for n in shape])[int(rng.integers(len(shape) + 1)):]
    return (shape, other) if rng.random() < 0.5 else (other, shape)


def two(dtypes: tuple[str, ...] = ALL) -> Draw:
    def draw(rng: np.random.Generator) -> Call:
        a, b = _fitting(rng)
        x, y = values(rng, pick(rng, dtypes), a), values(rng, pick(rng, dtypes), b)
        if rng.random() < 0.3:
            return Call((x, pick(rng, (2, 1.5, True, -1)))) if np.dtype(x.dtype).kind != "b" else Call((x, y))
        return Call((x, y))
    return draw


def along(dtypes: tuple[str, ...] = ALL, keep: bool = True, several: bool = True, none: bool = True,
          **choices: Any) -> Draw:
    """One operand, an axis or several, keepdims, and other keywords by choice."""
    def draw(rng: np.random.Generator) -> Call:
        shape = pick(rng, SHAPES if none else [s for s in SHAPES if s])
        named: dict[str, Any] = {}
        axes: list[Any] = [*range(-len(shape), len(shape))]
        if several and len(shape) > 1:
            axes += [(0, 1), (-1, 0)]
        if axes and (not none or rng.random() < 0.7):
            named["axis"] = pick(rng, axes)
        if keep and rng.random() < 0.3:
            named["keepdims"] = True
        for name, among in choices.items():
            if rng.random() < 0.4:
                named[name] = pick(rng, among)
        return Call((values(rng, pick(rng, dtypes), shape),), named=named)
    return draw


def of(*shapes: tuple[int, ...], dtypes: tuple[str, ...] = ("f4", "f8", "c16", "i4"), static: Any = ((),),
       **choices: Any
       ) -> Draw:
    """Operands of these shapes, in one dtype or in several."""
    def draw(rng: np.random.Generator) -> Call:
        same = pick(rng, dtypes)
        each = [same if rng.random() < 0.7 else pick(rng, dtypes) for _ in shapes]
        named = {name: pick(rng, among) for name, among in choices.items() if rng.random() < 0.5}
        return Call(tuple([values(rng, d, s) for d, s in zip(each, shapes, strict=True)]), pick(rng, static), named)
    return draw


def among(*draws: Draw) -> Draw:
    return lambda rng: pick(rng, draws)(rng)


def joined(*lists: Any, dtypes: tuple[str, ...] = ALL, **choices: Any) -> Draw:
    def draw(rng: np.random.Generator) -> Call:
        shapes = pick(rng, lists)
        named = {name: pick(rng, among) for name, among in choices.items() if rng.random() < 0.5}
        return Call(tuple([values(rng, pick(rng, dtypes), s) for s in shapes]), named=named, listed=True)
    return draw


def square(n: int = 3, batch: tuple[int, ...] = (), positive: bool = False,
           dtypes: tuple[str, ...] = ("f4", "f8", "c16"),
           beside: Any = None, **choices: Any) -> Draw:
    """A matrix that isn't near a singular one, and perhaps another operand."""
    def draw(rng: np.random.Generator) -> Call:
        dtype = pick(rng, dtypes)
        x = values(rng, dtype, (*batch, n, n), special=False)
        x = x @ np.conj(np.swapaxes(x, -1, -2)) + n * np.eye(n) if positive else x + 3 * np.eye(n)
        named = {name: pick(rng, among) for name, among in choices.items() if rng.random() < 0.5}
        more = () if beside is None else (values(rng, dtype, beside, special=False),)
        return Call((x.astype(dtype), *more), named=named)
    return draw


# What is called

FLOATS = (*REAL, "i4", "i8", "?", *COMPLEX)
UNARY = """abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh
    conj conjugate cos cosh exp exp2 expm1 imag isfinite isinf isnan iscomplex isreal log log10 log1p log2 logical_not
    negative positive real reciprocal sign sin sinc sinh sqrt square tan tanh""".split()
UNARY_REAL = """cbrt ceil deg2rad degrees fabs floor i0 isneginf isposinf rad2deg radians rint signbit spacing trunc
    frexp modf nan_to_num""".split()
UNARY_INT = "bitwise_count bitwise_invert bitwise_not invert".split()
BINARY = """add subtract multiply divide true_divide power equal not_equal less less_equal greater greater_equal
    logical_and logical_or logical_xor maximum minimum float_power isclose""".split()
BINARY_REAL = """arctan2 atan2 copysign floor_divide fmax fmin fmod heaviside hypot logaddexp mod nextafter remainder
    divmod""".split()
COMPLEX_TOO = "logaddexp2".split()
BINARY_INT = "bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift bitwise_left_shift".split()
MATRIX = ((3, 3), (2, 3, 3))
VECTORS = tuple([s for s in SHAPES if s and 0 not in s])

DRAWS: dict[str, Draw] = {
    **{name: one() for name in UNARY}, **{name: one((*REAL, *INTS, "?")) for name in UNARY_REAL},
    **{name: one((*INTS, "?")) for name in UNARY_INT},
    **{name: two() for name in BINARY}, **{name: two((*REAL, *INTS, "?")) for name in BINARY_REAL},
    **{name: two(REAL) for name in COMPLEX_TOO}, **{name: two(INTS) for name in BINARY_INT},
    "ldexp": lambda rng: Call((values(rng, pick(rng, REAL), (3,)), values(rng, "i4", (3,)))),
    "where": lambda rng: Call((values(rng, "?", (2, 3)), *two()(rng).operands)) if rng.random() < 0.3 else Call(
        (values(rng, "?", (2, 1)), values(rng, pick(rng, ALL), (2, 3)), values(rng, pick(rng, ALL), (3,)))),
    "clip": lambda rng: Call((values(rng, pick(rng, (*REAL, *INTS)), (2, 3)), pick(rng, (-1, 0, 0.5, None)),
                              pick(rng, (1, 2.0, None)))),
    "round": lambda rng: Call((values(rng, pick(rng, (*REAL, *INTS, "c16")), (4,)),), (int(rng.integers(-1, 3)),)),
    # totals
    **{name: along() for name in ("sum", "prod", "all", "any", "count_nonzero")},
    **{name: along((*REAL, *INTS, "?")) for name in ("max", "min", "amax", "amin", "ptp")},
    **{name: along(FLOATS) for name in ("mean",)}, **{name: along(FLOATS, ddof=(0, 1)) for name in ("std", "var")},
    **{name: along((*REAL, *INTS), several=False) for name in ("argmax", "argmin", "nanargmax", "nanargmin")},
    **{name: along(keep=False, several=False) for name in ("cumsum", "cumprod", "nancumsum", "nancumprod")},
    **{name: along(keep=False, several=False, include_initial=(True,)) for name in ("cumulative_sum",
                                                                                    "cumulative_prod")},
    **{name: along(FLOATS) for name in ("nansum", "nanprod", "nanmean")},
    **{name: along((*REAL, "i4")) for name in ("nanmax", "nanmin", "nanvar", "nanstd", "median", "nanmedian")},
    **{name: (lambda rng, name=name: along((*REAL, "i4"), method=("linear", "lower", "higher", "midpoint",
                                                                  "nearest"))(rng)
              ._replace(static=(pick(rng, (0.5, 0.3, [0.0, 1.0])) if "ile" not in name or "quan" in name else
                                pick(rng, (50, 30.0)),)))
       for name in ("quantile", "percentile", "nanquantile", "nanpercentile")},
    "average": among(along(FLOATS), of((2, 3), (2, 3), dtypes=FLOATS)),
    # order
    **{name: along((*REAL, *INTS, "c16", "?"), keep=False, several=False) for name in ("sort", "argsort")},
    **{name: (lambda rng: along((*REAL, *INTS), keep=False, several=False, none=False)(rng)._replace(static=(0,)))
       for name in ("partition",)},
    "lexsort": joined(((3,), (3,)), dtypes=("i4", "u1")),
    "searchsorted": lambda rng: Call((np.sort(values(rng, "f8", (5,), False)), values(rng, "f8", pick(rng, SHAPES))),
                                     named={
        "side": pick(rng, ("left", "right")), "method": pick(rng, ("scan", "sort", "compare_all", "scan_unrolled"))}),
    "digitize": lambda rng: Call((values(rng, "f8", (4,)), np.sort(values(rng, "f8", (5,), False))), named={
        "right": pick(rng, (True, False))}),
    "diff": along(keep=False, several=False, none=False, n=(1, 2)),
    "ediff1d": one(REAL, ((3,), (2, 3))), "trapezoid": along(FLOATS, keep=False, several=False, none=False, dx=(0.5,)),
    "gradient": along(REAL, keep=False, several=False, none=False), "unwrap": along(REAL, False, False, False),
    "interp": lambda rng: Call((values(rng, "f8", (4,)), np.sort(values(rng, "f8", (5,), False)),
                                values(rng, "f8", (5,)))),
    "take": lambda rng: Call((values(rng, pick(rng, ALL), (3, 4)), rng.integers(-3, 3, pick(rng, SHAPES))), named={
        "axis": pick(rng, (0, 1, -1)), **({"mode": pick(rng, ("wrap", "clip",
                                                              "fill"))} if rng.random() < 0.5 else {})}),
    "take_along_axis": lambda rng: Call((values(rng, pick(rng, ALL), (3, 4)), rng.integers(-3, 3, (3, 2))),
                                        named={"axis": 1}),
    "histogram": lambda rng: Call((values(rng, "f8", (20,), False),), named={"bins": pick(rng, (3, 10))}),
    "cov": of((3, 4), dtypes=("f4", "f8", "c16"), rowvar=(True, False), ddof=(0, 1)),
    "corrcoef": of((3, 4), dtypes=("f4", "f8"), rowvar=(True, False)),
    # shapes
    **{name: one() for name in ("ravel", "atleast_1d", "atleast_2d", "atleast_3d", "squeeze", "transpose", "flip")},
    "reshape": lambda rng: Call((values(rng, pick(rng, ALL), (2, 6)),), (pick(rng, ((3, 4), (-1,), (12, 1), 12)),), {
        "order": pick(rng, ("C", "F"))}),
    "expand_dims": lambda rng: Call((values(rng, pick(rng, ALL), (2, 3)),), (pick(rng, (0, -1, (0, 2), (1, -1))),)),
    "swapaxes": of((2, 3, 4), static=((0, 1), (-1, 0))), "moveaxis": of((2, 3, 4), static=((0, -1), ((0, 1), (1, 2)))),
    "rollaxis": of((2, 3, 4), static=((2,), (1, 3))), "rot90": of((2, 3, 4), k=(1, 2, 3, -1), axes=((0, 1), (1, 2))),
    "roll": of((2, 3), dtypes=ALL, static=((1,), (-2, 1), ((1, 2), (0, 1)))),
    "resize": of((2, 3), static=(((4, 2),), (5,))),
    "broadcast_to": of((1, 3), static=(((2, 3),), ((4, 2, 3),))), "fliplr": of((2, 3)), "flipud": of((3,)),
    "matrix_transpose": of((2, 3, 4)),
    **{name: joined(((3,), (2,)), ((0,), (3,))) for name in ("concatenate", "hstack")},
    **{name: joined(((2, 3), (2, 3)), ((3,), (3,))) for name in ("vstack", "dstack", "column_stack", "block")},
    "stack": joined(((2, 3), (2, 3)), ((), ()), axis=(0, -1)), "append": of((2, 3), (1, 3), axis=(0,)),
    "array_split": of((7, 2), static=((3,), ([2, 5],))), "split": of((6, 2), static=((3,), ([2, 5],))),
    "repeat": of((2, 3), static=((2,), (2, 1), (0,))), "tile": of((2, 3), static=((2,), ((2, 1, 2),), ((),))),
    "pad": of((2, 3), static=((1,), (((1, 0), (2, 1)),)), mode=("constant", "edge", "reflect", "wrap", "symmetric",
                                                                "mean",
                                                               "maximum", "linear_ramp", "empty")),
    "insert": of((4,), (2,), dtypes=("f8",)), "delete": of((5,), static=((1,), ([0, 3],), (slice(1, 3),))),
    "tril": of((3, 4), k=(0, 1, -1)), "triu": of((2, 3, 3), k=(0, 1, -2)),
    "diag": among(of((3,), k=(0, 1, -1)), of((3, 4))),
    "diagflat": of((2, 2), k=(0, 1)), "diagonal": of((2, 3, 4), axis1=(1,), axis2=(2,), offset=(0, 1, -1)),
    "trace": of((2, 3, 4), offset=(0, 1), dtypes=ALL), "vander": of((3,), N=(2, 4), increasing=(True, False)),
    "linspace": lambda rng: Call((*two(REAL)(rng).operands,), (int(rng.integers(0, 6)),),
                                 {"endpoint": bool(rng.integers(2))}),
    "logspace": lambda rng: Call((0.5, 2.0), (4,)), "geomspace": lambda rng: Call((1.0, 1000.0), (4,)),
    "zeros_like": one(), "ones_like": one(), "full_like": lambda rng: Call((values(rng, pick(rng, ALL), (2,)), 1)),
    # products
    **{name: among(of((3,), (3,), dtypes=ALL), of((2, 3), (3,), dtypes=ALL), of((2, 3), (3, 2), dtypes=ALL),
                   of((2, 2, 3), (3, 2))) for name in ("dot", "matmul")},
    "vdot": of((2, 3), (3, 2), dtypes=ALL), "inner": of((2, 3), (4, 3), dtypes=ALL),
    "outer": of((2,), (3,), dtypes=ALL),
    "kron": among(of((2,), (3,)), of((2, 2), (1, 3))), "vecdot": of((2, 3), (3,)), "matvec": of((2, 2, 3), (3,)),
    "vecmat": of((2,), (2, 3)), "cross": among(of((4, 3), (3,)), of((3,), (3,))),
    "tensordot": of((2, 3, 4), (3, 4, 2), axes=(((1, 2), (0, 1)), (([0], [2])))),
    **{name: of((4,), (3,), dtypes=ALL, mode=("full", "same", "valid")) for name in ("convolve", "correlate")},
    # polynomials
    "polyval": among(of((3,), (4,)), of((0,), (2,))), "polyadd": of((3,), (2,)), "polysub": of((2,), (3,)),
    "polymul": of((3,), (2,)), "polyder": of((4,), m=(1, 2)), "polyint": of((3,), m=(1, 2)), "poly": of((3,)),
    "polyfit": lambda rng: Call((np.linspace(0.0, 1.0, 6), values(rng, "f8", (6,), False)), (2,)),
    # linear algebra
    **{f"linalg.{name}": square() for name in ("inv", "det", "slogdet", "eigvals", "pinv", "cond", "svdvals")},
    "linalg.cholesky": square(positive=True, upper=(True, False)),
    "linalg.eigvalsh": square(positive=True), "linalg.solve": square(beside=(3, 2)), "linalg.matrix_rank": square(),
    "linalg.matrix_power": lambda rng: square()(rng)._replace(static=(int(rng.integers(-2, 4)),)),
    "linalg.norm": among(of((3,), ord=(None, 1, 2, 3, np.inf, -np.inf, 0)),
                         of((2, 3), ord=("fro", 1, 2, np.inf, "nuc", -2)),
                         of((2, 3, 2), axis=((0, 2), 1))),
    "linalg.vector_norm": of((2, 3), ord=(1, 2, 3, np.inf), axis=(0, 1, None)), "linalg.matrix_norm": of((2, 3, 3)),
    "linalg.lstsq": square(beside=(3, 2)), "linalg.multi_dot": joined(((2, 3), (3, 4), (4,)), dtypes=("f8", "c16")),
    "linalg.tensorinv": lambda rng: Call((values(rng, "f8", (4, 2, 2), False),), named={"ind": 1}),
    "linalg.qr": square(mode=("r",)), "linalg.outer": of((2,), (3,)), "linalg.cross": of((2, 3), (2, 3)),
    # Fourier
    **{f"fft.{name}": of((4, 6), dtypes=("c8", "c16", "f8", "f4"), n=(4, 8), axis=(0, 1, -1), norm=("ortho", "forward"))
       for name in ("fft", "ifft", "hfft", "irfft")},
    **{f"fft.{name}": of((4, 6), dtypes=("f8", "f4", "i4"), n=(4, 7), axis=(0, 1),
                         norm=("ortho",)) for name in ("rfft", "ihfft")},
    **{f"fft.{name}": of((4, 6, 2), dtypes=("c16", "f8"), axes=((0, 1), (1, 2)), norm=("ortho", "backward"))
       for name in ("fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn")},
    **{f"fft.{name}": of((4, 6, 2), dtypes=("f8",), axes=((0, 1),)) for name in ("rfft2", "rfftn")},
    **{f"fft.{name}": of((4, 5), axes=(0, 1, (0, 1))) for name in ("fftshift", "ifftshift")},
    # windows
    **{name: lambda rng: Call((), (int(rng.integers(0, 7)),)) for name in ("bartlett", "blackman", "hamming",
                                                                           "hanning")},
    "kaiser": lambda rng: Call((), (5, 3.0)),
}


#: Functions whose results jax and we may choose differently, or that aren't differentiable in jax.
NO_GRADIENT = {"linalg.matrix_rank", "linalg.cond", "spacing", "nextafter", "linalg.eigvals"}


#: Differences from jax that are meant: a pattern of how they are reported, and the reason.
KNOWN: dict[str, tuple[tuple[str, str], ...]] = {
    "any function": (("Python number -1 doesn't fit ~u", "beside unsigned integers it is refused, as in NumPy"),),
    **dict.fromkeys(("searchsorted", "digitize"), (("dtype int64, int32", "places are int64, as in NumPy"),)),
    "histogram": (("dtype int64, float", "numbers of elements are integers, as in NumPy"),),
    **dict.fromkeys(("correlate", "convolve", "polymul", "polyder"), (
        ("dtype u?int.*, float", "of integers integers, as in NumPy"),
        ("vmap: values.*theirs.*nan", "where jax multiplies infinities by the zeros around a vector"))),
    "partition": (("values", "elements on either side are in any order: here, sorted"),),
    **dict.fromkeys(("cumulative_sum", "cumulative_prod"), (
        ("dtype u?int64, ", "sums of narrow integers are 64-bit, as the array API says"),)),
    **dict.fromkeys(("divmod", "mod", "remainder"), (
        (r"(False|\b0\b|\b0\.0\b).*(gradient|order 2): values", "at a divisor of 0, where the remainder is NaN"),)),
    "float_power": (("dtype (float64|complex128), ", "always in 64 bits, as in NumPy"),),
    "linalg.vector_norm": (("dtype float32, (float64|int)", "of integers, as linalg.norm: floats of their size"),),
    **{name: ((r"^[^\n]*\b(inf|nan)\b[^\n]*values", "which sums have an infinity depends on the algorithm"),)
       for name in DRAWS if name.startswith("fft.")},
    "polyfit": (("theirs .*nan", "jax's derivative is NaN where a point is 0"),),
}


# Comparing

class Difference(NamedTuple):
    name: str
    what: str
    call: Call
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        shown = ", ".join([repr(x) if not isinstance(x, np.ndarray) else f"{x.dtype}{list(x.shape)}:{x.tolist()}"
                           for x in self.call.operands])
        return (f"{self.name}({shown}; {self.call.static} {self.call.named}): {self.what}\n"
                f"    ours   {self.ours!s:.300}\n    theirs {self.theirs!s:.300}")


def find(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module


def close(ours: Any, theirs: Any, loose: float = 1.0) -> str:
    """What differs between two results; nothing if they agree."""
    if isinstance(theirs, (tuple, list)):
        if not isinstance(ours, (tuple, list)) or len(ours) != len(theirs):
            return "the number of results"
        return next((found for found in map(close, ours, theirs) if found), "")
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape:
        return f"shape {a.shape}, {b.shape}"
    if a.dtype != b.dtype:
        return f"dtype {a.dtype}, {b.dtype}"
    if a.dtype.kind not in "fcV":
        return "" if np.array_equal(a, b) else "values"
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    eps = float(np.finfo(a.dtype).eps) if a.dtype.kind in "fc" else 1e-2
    a, b = a.astype(wide), b.astype(wide)
    scale = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
    return "" if np.allclose(a, b, rtol=2e3 * eps * loose, atol=(50 * eps * scale + 10 * eps) * loose, equal_nan=True
                             ) else "values"


def differences(name: str, call: Call) -> Iterator[Difference]:
    """What differs from jax, for one call."""
    import jax
    import jax.numpy as jnp

    import corejax as cj
    import corejax.numpy as cnp

    ours, theirs = find(cnp, name), find(jnp, name)
    as_jax = tuple([jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in call.operands])
    as_own = tuple([cj.lax.copy(x) if isinstance(x, np.ndarray) else x for x in call.operands])
    try:
        wanted = call.apply(theirs, as_jax)
    except Exception:
        return  # what jax refuses is tested elsewhere
    for way, run in (("eager", lambda: call.apply(ours, as_own)), ("eager again", lambda: call.apply(ours, as_own)),
                     ("ndarrays", lambda: call.apply(ours, call.operands)),
                     ("jit", lambda: cj.jit(lambda *xs: call.apply(ours, xs))(*as_own))):
        try:
            found = run()
        except Exception as error:
            try:
                if way == "jit":
                    jax.jit(lambda *xs: call.apply(theirs, xs))(*as_jax)
            except Exception:
                continue
            yield Difference(name, f"{way} raises", call, f"{type(error).__name__}: {error}", wanted)
            continue
        what = close(found, wanted)
        if what:
            yield Difference(name, f"{way}: {what}", call, found, wanted)
    arrays = [i for i, x in enumerate(call.operands) if isinstance(x, np.ndarray)]
    if arrays and len(arrays) == len(call.operands):
        yield from _mapped(name, call, ours, theirs)
    floats = [i for i in arrays if call.operands[i].dtype.kind in "f" and call.operands[i].dtype.itemsize > 2]
    if floats and name not in NO_GRADIENT and np.all([np.all(np.isfinite(call.operands[i])) for i in arrays]):
        yield from _derived(name, call, ours, theirs, floats)


def _mapped(name: str, call: Call, ours: Any, theirs: Any) -> Iterator[Difference]:
    import jax

    import corejax as cj

    batch = [np.stack([x, x[::-1] if x.ndim and name != "searchsorted" else x]) for x in call.operands]
    try:
        wanted = jax.vmap(lambda *xs: call.apply(theirs, xs))(*batch)
    except Exception:
        return
    try:
        found = cj.vmap(lambda *xs: call.apply(ours, xs))(*batch)
    except Exception as error:
        yield Difference(name, "vmap raises", call, f"{type(error).__name__}: {error}", wanted)
        return
    what = close(found, wanted)
    if what:
        yield Difference(name, f"vmap: {what}", call, found, wanted)


def _derived(name: str, call: Call, ours: Any, theirs: Any, floats: list[int]) -> Iterator[Difference]:
    import jax
    import jax.numpy as jnp

    import corejax as cj
    import corejax.numpy as cnp

    def total(function: Any, np_: Any, tree: Any) -> Any:
        def of(*xs: Any) -> Any:
            out = call.apply(function, xs)
            parts = [p for p in tree.leaves(out) if p.dtype.kind in "fc"]
            return sum([np_.sum(np_.real(p) * np_.cos(np_.arange(p.size, dtype=np_.float64).reshape(p.shape)).astype(
                np_.real(p).dtype)) for p in parts])
        return of

    theirs_total, ours_total = total(theirs, jnp, jax.tree), total(ours, cnp, cj.tree)
    for order, (jax_d, our_d) in (("gradient", (jax.grad(theirs_total, floats), cj.grad(ours_total, floats))),
                                  ("order 2", (jax.jacfwd(jax.grad(theirs_total, floats), floats[0]),
                                               cj.jacfwd(cj.grad(ours_total, floats), floats[0])))):
        try:
            wanted = jax_d(*call.operands)
        except Exception:
            return
        try:
            found = our_d(*call.operands)
        except Exception as error:
            yield Difference(name, f"{order} raises", call, f"{type(error).__name__}: {error}", wanted)
            return
        what = close(found, wanted, 100.0)
        if what:
            yield Difference(name, f"{order}: {what}", call, found, wanted)


def is_known(found: Difference) -> bool:
    """Whether a difference is one of those that `KNOWN` has reasons for."""
    known = *KNOWN["any function"], *KNOWN.get(found.name, ())
    return any([re.search(pattern, str(found), re.DOTALL) for pattern, _ in known])


def search(name: str, count: int, seed: int) -> list[Difference]:
    """What differs in `count` calls of a function, but for what is known."""
    found: list[Difference] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(count):
            rng = np.random.default_rng([seed, i, sum(map(ord, name))])
            found += [one for one in differences(name, DRAWS[name](rng)) if not is_known(one)]
    return found


def forget() -> None:
    """Drop all compiled programs, of which thousands would fill the memory."""
    import jax

    import corejax as cj

    jax.clear_caches()
    cj.clear_caches()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=2, help="how many differences of one function are shown")
    options = parser.parse_args()
    total = 0
    for name in options.names or DRAWS:
        of_name = sorted(search(name, options.count, options.seed), key=lambda d: len(str(d)))
        total += len(of_name)
        if of_name:
            print(f"== {name}: {len(of_name)}", *of_name[: options.each], sep="\n", flush=True)
        forget()
    print(f"{total} differences")
    sys.exit(total > 0)
