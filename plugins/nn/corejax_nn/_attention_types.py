"""What types operands of attention have, and its results and derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corejax.core import ShapedArray, dtypes
from corejax.errors import CorejaxError, CorejaxValueError
from corejax.plugin import refused
from corejax_nn._blocks import score_dtype

__all__ = ["ALWAYS", "EXTRAS", "RESULTS", "Names", "Window", "by_name", "check_alike", "results_of"]

#: The operands of each attention, those that may follow, and its results, which follow where it is differentiated.
ALWAYS, EXTRAS = ("query", "key", "value"), ("bias", "mask", "query_lengths", "key_lengths")
RESULTS = ("out", "log")

Names = tuple[str, ...]
Window = tuple[int, int] | None

_SHAPES = "the shapes [B, T, N, H], [B, S, K, H] and [B, S, K, H]"


def results_of(name: str, avals: Sequence[ShapedArray], extras: Names, window: Window) -> list[ShapedArray]:
    """The types of the results for operands of these types, if they fit; `name` is what was called."""
    if [extra for extra in EXTRAS if extra in extras] != list(extras) or len(avals) != 3 + len(extras):
        raise refused(name, "extras must name the operands after query, key and value", kind=CorejaxValueError,
                      got=f"{extras!r:.80} for {len(avals)} operands", wanted=f"some of {', '.join(EXTRAS)}, in this "
                      "order", todo="call nn.dot_product_attention")
    if window is not None and len(window) != 2:
        raise refused(name, "window must have two numbers", got=window, wanted="how many keys count before and after",
                      todo="pass (before, after)", kind=CorejaxValueError)
    query, key, value, *others = avals
    if [x.ndim for x in (query, key, value)] != [4, 4, 4]:
        raise _unfit(name, "query, key and value must have axes for batches, positions, heads and sizes", avals[:3],
                     _SHAPES, "reshape them; the axis of batches may be left out of all")
    if not query.dtype == key.dtype == value.dtype or not dtypes.is_float(query.dtype):
        raise refused(name, "query, key and value must have one dtype, of floats", got=list(avals[:3]),
                      wanted="the same floating-point dtype", todo="convert them with x.astype(...)")
    batch, queries, heads, size = query.shape
    _, keys, key_heads, _ = key.shape
    if value.shape != key.shape or (batch, size) != (key.shape[0], key.shape[3]):
        raise _unfit(name, "query, key and value don't fit each other", avals[:3], _SHAPES, "check their axes")
    if heads % key_heads if key_heads else heads:
        raise _unfit(name, "heads of queries can't be divided among those of keys", avals[:2],
                     f"a multiple of {key_heads} heads of queries", "repeat keys and values, or check the axes")
    for extra, aval in zip(extras, others, strict=True):
        _check_extra(name, extra, aval, (batch, heads, queries, keys))
    return [ShapedArray(query.shape, query.dtype), ShapedArray((batch, queries, heads), score_dtype(query.dtype))]


def _check_extra(name: str, extra: str, aval: ShapedArray, shape: tuple[int, ...]) -> None:
    if extra in ("query_lengths", "key_lengths"):
        if aval.shape != shape[:1] or not dtypes.is_integer(aval.dtype):
            said = "query_seq_lengths" if extra == "query_lengths" else "key_value_seq_lengths"
            raise _unfit(name, f"{said} must have an integer for each batch", [aval], f"integers of shape {shape[:1]}",
                         "pass how many positions count")
        return
    if not (aval.dtype == dtypes.bool_ if extra == "mask" else dtypes.is_float(aval.dtype)):
        raise refused(name, f"{extra} has another dtype than it should", got=aval,
                      wanted="booleans" if extra == "mask" else "floating-point numbers",
                      todo="a mask says which scores count, a bias is added to them")
    if aval.ndim != 4 or any([n not in (1, full) for n, full in zip(aval.shape, shape, strict=True)]):
        raise _unfit(name, f"{extra} doesn't fit the scores", [aval], f"a shape that broadcasts to {shape}",
                     f"check the axes of {extra}: those of batches, heads, queries and keys")


def _unfit(name: str, problem: str, got: Sequence[ShapedArray], wanted: str, todo: str) -> CorejaxError:
    return refused(name, problem, got=list(got), wanted=wanted, todo=todo, kind=CorejaxValueError)


# Derivatives

def by_name(name: str, names: Names, avals: Sequence[ShapedArray], extras: Names, wrt: Names) -> dict[str, ShapedArray]:
    """The types of operands by their names, for derivatives with respect to some."""
    possible = [*ALWAYS, *(["bias"] if "bias" in extras else [])]
    if not wrt or [each for each in possible if each in wrt] != list(wrt) or len(names) != len(avals):
        raise refused(name, "wrt must name operands that have derivatives", kind=CorejaxValueError,
                      got=f"{wrt!r:.80} for {len(avals)} operands", todo="differentiate nn.dot_product_attention",
                      wanted=f"some of {', '.join(possible)}, in this order; the operands {', '.join(names)}")
    return dict(zip(names, avals, strict=True))


def check_alike(name: str, avals: Mapping[str, ShapedArray], wanted: Mapping[str, ShapedArray]) -> None:
    """Raise unless these have the wanted shapes and dtypes."""
    for each, aval in wanted.items():
        if (avals[each].shape, avals[each].dtype) != (aval.shape, aval.dtype):
            raise refused(name, f"{each} has another type than what it belongs to", got=avals[each], wanted=aval,
                          todo="pass the results of nn_attention, and tangents of its operands")
