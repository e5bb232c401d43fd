"""Statistics of samples: covariances, correlations, counts and histograms."""

# mypy: no-warn-return-any
# What roles return has no type that a checker knows.

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, dtypes
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import directly, operators, public, refused, shaping
from corejax_lax_basic import of_one_dtype
from corejax_numpy._arrays import array
from corejax_numpy._binning import bin_of, counted, edges_of
from corejax_numpy._choices import as_inexact, flat, is_computed, known
from corejax_numpy._in_memory import order as in_memory_order, sets as in_memory_sets
from corejax_numpy._picking import operand, pick
from corejax_numpy._searching import places_among

__all__ = ["bincount", "corrcoef", "cov", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


# Covariances

@directly(in_memory_order.cov)
def cov(m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
        fweights: ArrayLike | None = None, aweights: ArrayLike | None = None, dtype: DTypeLike | None = None) -> Array:
    """The covariances of variables, each a row of observations, or a column unless `rowvar`.

    `y` has more variables. The divisor is N - `ddof`: by default N - 1, or N if `bias` is set. `fweights` say how
    often each observation is there, `aweights` how much it counts.

    >>> jnp.cov(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float64)
    """
    x = _variables(m, y, shaping.as_flag("cov", "rowvar", rowvar), dtype)
    if ddof is None:
        ddof = 0 if shaping.as_flag("cov", "bias", bias) else 1
    missing, count = shaping.as_int("cov", "ddof", ddof), aval_of(x).shape[1]
    if not aval_of(x).shape[0]:
        return lax.full((0, 0), 0, aval_of(x).dtype)
    weights = _weights(x, fweights, aweights)
    if weights is None:
        centre, divisor = operators.mean(x, 1, keepdims=True), float(max(count - missing, 0))
        offset = x - centre
        weighted = offset
    else:
        total = operators.sum(weights)
        offset = x - operators.sum(x * weights, 1, keepdims=True) / total
        if aweights is None:
            divisor = total - missing
        elif missing == 0:
            divisor = total
        else:
            divisor = total - missing * operators.sum(weights * operators.astype(array(aweights), aval_of(
                weights).dtype)) / total
        weighted, divisor = offset * weights, operators.clip(divisor, 0, None)
    found = operators.matmul(offset, operators.conj(operators.T(weighted))) / divisor
    return operators.squeeze(found)


def _variables(m: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    """The variables as rows of observations, in floats."""
    parts = [array(part) for part in (m, y) if part is not None]
    for part in parts:
        if aval_of(part).ndim > 2:
            raise refused("cov", "variables are rows of a matrix", got=str(aval_of(part)), wanted="at most two axes",
                          todo="map over other axes with cj.vmap", kind=CorejaxValueError)
    parts = ([as_inexact(part) for part in of_one_dtype(parts, "f")] if dtype is None
             else [operators.astype(part, dtype) for part in parts])
    rows = [operators.reshape(part, (1, aval_of(part).size)) if aval_of(part).ndim < 2 else part for part in parts]
    rows = [operators.T(row) if not rowvar and aval_of(row).shape[0] != 1 or (
        not rowvar and aval_of(part).ndim == 2) else row for row, part in zip(rows, parts, strict=True)]
    if len(rows) > 1 and aval_of(rows[0]).shape[1] != aval_of(rows[1]).shape[1]:
        raise refused("cov", "the variables have different numbers of observations", wanted="equally many",
                      got=f"{aval_of(parts[0])} and {aval_of(parts[1])}", todo="pass equally many observations",
                      kind=CorejaxValueError)
    return rows[0] if len(rows) == 1 else lax.concatenate(rows, 0)


def _weights(x: Any, fweights: Any, aweights: Any) -> Any:
    """The product of both kinds of weights; None if there is neither."""
    found: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        weights = array(given)
        if aval_of(weights).shape != aval_of(x).shape[1:]:
            raise refused("cov", f"{name} must have a number for each observation", got=str(aval_of(weights)),
                          wanted=f"shape {aval_of(x).shape[1:]}", todo="pass a vector of them", kind=CorejaxValueError)
        if name == "fweights" and not dtypes.is_integer(aval_of(weights).dtype):
            raise refused("cov", "fweights are counts", got=str(aval_of(weights)), wanted="integers",
                          todo="pass aweights for weights that aren't", kind=CorejaxTypeError)
        dtype = operators.real(x).dtype
        weights = operators.astype(weights, dtype)
        found = weights if found is None else found * weights
    return found


@directly(in_memory_order.corrcoef)
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """The correlations of variables, each a row of observations, or a column unless `rowvar`.

    >>> jnp.corrcoef(jnp.array([1.0, 2.0, 3.0]), jnp.array([3.0, 2.0, 1.0]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float64)
    """
    found = cov(x, y, rowvar, dtype=dtype)
    if not aval_of(found).ndim:
        return found / found
    size = aval_of(found).shape[0]
    places = np.arange(size)
    spread = lax.sqrt(operators.real(operators.getitem(found, (places, places))))
    found = found / lax.reshape(spread, (size, 1)) / lax.reshape(spread, (1, size))
    if dtypes.is_complex(aval_of(found).dtype):
        return lax.complex(operators.clip(operators.real(found), -1, 1), operators.clip(operators.imag(found), -1, 1))
    return operators.clip(found, -1, 1)


# Counts

@directly(in_memory_order.digitize, arrays=2)
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The bin of each element: how many of the rising bounds it reaches, or exceeds if `right`; bounds may also fall.

    >>> jnp.digitize(jnp.array([0.5, 1.0, 2.5]), jnp.array([1.0, 2.0]))
    Array([0, 1, 2], dtype=int64)
    """
    values, bounds = [array(part) for part in of_one_dtype([operand(x), array(bins)])]
    if aval_of(bounds).ndim != 1:
        raise refused("digitize", "bins must be a vector", got=str(aval_of(bounds)), wanted="one axis",
                      todo="map over other axes with cj.vmap", kind=CorejaxValueError)
    if dtypes.is_complex(aval_of(values).dtype):
        raise refused("digitize", "complex numbers have no bins", got=str(aval_of(values)), wanted="real numbers",
                      todo="take those of the real and imaginary parts")
    closed, default = shaping.as_flag("digitize", "right", right), dtypes.default_dtype("i")
    size, method = aval_of(bounds).size, "scan" if method is None else method
    if not size:
        return lax.full(aval_of(values).shape, 0, default)
    up = places_among(bounds, values, closed, method, "digitize")
    if size == 1:
        return operators.astype(up, default)
    down = size - places_among(lax.rev(bounds, (0,)), values, closed, method, "digitize")
    rises = lax.le(operators.getitem(bounds, 0), operators.getitem(bounds, size - 1))
    return operators.astype(pick(rises, up, down), default)


@directly(in_memory_sets.bincount, arrays=2, sizes_vary=True)
def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None,
             out_sharding: None = None) -> Array:
    """How often each of 0, 1, 2, ... is there, or the sum of its weights, in their dtype.

    With `length`, there are that many counts, larger numbers are left out, and negative ones count as 0: then the
    numbers may be traced.

    >>> jnp.bincount(jnp.array([1, 2, 1]))
    Array([0, 2, 1], dtype=int64)
    """
    numbers = array(x)
    dtype = aval_of(numbers).dtype
    if not (dtypes.is_integer(dtype) or dtype == dtypes.bool_ or not aval_of(numbers).size):
        raise refused("bincount", "numbers to count must be integers", got=str(aval_of(numbers)), wanted="integers",
                      todo="convert them with .astype(int)")
    if aval_of(numbers).ndim != 1:
        raise refused("bincount", "numbers to count must be in a vector", got=str(aval_of(numbers)), wanted="one axis",
                      todo="flatten them first: x.ravel()", kind=CorejaxValueError)
    if out_sharding is not None:
        raise refused("bincount", "the sharding of the result can't be chosen here", got="out_sharding=...",
                      wanted="out_sharding=None", todo="put the result where you want it")
    by = None if weights is None else array(weights)
    if by is not None and aval_of(by).shape != aval_of(numbers).shape:
        raise refused("bincount", "each number needs a weight", got=f"{aval_of(numbers)} and {aval_of(by)}",
                      wanted="equal shapes", todo="broadcast the weights", kind=CorejaxValueError)
    least = shaping.as_int("bincount", "minlength", minlength)
    if least < 0:
        raise refused("bincount", "a length can't be negative", got=f"minlength={least}", wanted="0 or more",
                      todo="leave it out", kind=CorejaxValueError)
    if length is not None:
        return _counted(numbers, by, shaping.as_int("bincount", "length", length))
    values = known("bincount", numbers, "pass length=..., the static number of counts")
    if values.size and values.min() < 0:
        raise refused("bincount", "negative numbers have no place to be counted", got=int(values.min()),
                      wanted="0 or more", todo="shift them first", kind=CorejaxValueError)
    size = max(least, int(values.max()) + 1 if values.size else 0)
    if by is None:
        return array(np.bincount(values.astype(np.int64), minlength=size).astype(dtypes.default_dtype("i")))
    return _counted(numbers, by, size)


def _counted(numbers: Any, weights: Any, size: int) -> Any:
    if dtypes.kind(aval_of(numbers).dtype) != "i":
        numbers = operators.astype(numbers, np.int64)
    return counted(operators.clip(numbers, 0, None), weights, size)


# Histograms

@directly(in_memory_order.histogram_bin_edges)
def histogram_bin_edges(a: ArrayLike, bins: ArrayLike | str = 10, range: Sequence[ArrayLike] | None = None,
                        weights: ArrayLike | None = None) -> Array:
    """The bounds of the bins of a histogram: `bins` equal ones from the least element to the largest, or in a range.

    >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), 2)
    Array([0., 2., 4.], dtype=float64)
    """
    return edges_of("histogram_bin_edges", flat(array(a)), bins, range, weights)


@directly(in_memory_order.histogram)
def histogram(a: ArrayLike, bins: ArrayLike | str = 10, range: Sequence[ArrayLike] | None = None,
              weights: ArrayLike | None = None, density: bool | None = None) -> tuple[Array, Array]:
    """How many elements are in each bin, or the sum of their weights, and the bounds; the last bin has both of its own.

    `bins` is their number, or the rising bounds, or, for elements that aren't traced, one of NumPy's rules by name.
    With `density`, the integral is 1.

    >>> jnp.histogram(jnp.array([0.0, 1.0, 1.5, 4.0]), 2)
    (Array([3, 1], dtype=int64), Array([0., 2., 4.], dtype=float64))
    """
    x, normal = flat(array(a)), _density("histogram", density)
    edges = edges_of("histogram", x, bins, range, weights)
    by = _weights_of("histogram", x, weights)
    x, bounds = of_one_dtype([x, edges], "f")
    equal = shaping.as_int("histogram", "bins", bins) if not np.ndim(_plain(bins)) and not isinstance(bins, str) else 0
    found = counted(bin_of(x, bounds, equal), by, aval_of(edges).size - 1)
    if not normal:
        return found, edges
    found = operators.astype(found, dtypes.promote(*[(aval_of(v).dtype, False) for v in (found, edges)])[0])
    found = as_inexact(found)
    return found / (edges[1:] - edges[:-1]) / operators.sum(found), edges


def _plain(bins: Any) -> Any:
    return np.empty(aval_of(bins).shape, bool) if is_computed(bins) else bins


def _density(name: str, density: Any) -> bool:
    return density is not None and shaping.as_flag(name, "density", density)


def _weights_of(name: str, x: Any, weights: Any) -> Any:
    """The weights as a vector; NumPy has density and weights in the other order, so flags are refused."""
    if weights is None:
        return None
    if type(weights) is bool or np.ndim(_plain(weights)) == 0:
        raise refused(name, "weights must be an array", got=f"weights={weights!r:.40}",
                      wanted="a weight for each element",
                      todo="pass density=... and weights=... by name", kind=CorejaxTypeError)
    found = flat(array(weights))
    if aval_of(found).size != aval_of(x).shape[0]:
        raise refused(name, "each element needs a weight", got=f"{aval_of(x)} and {aval_of(found)}",
                      wanted="weights of the shape of the elements", todo="broadcast the weights",
                      kind=CorejaxValueError)
    return found


@directly(in_memory_order.histogram2d, arrays=2)
def histogram2d(x: ArrayLike, y: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None,
                density: bool | None = None) -> tuple[Array, Array, Array]:
    """A histogram of points in the plane, and the bounds along both axes.

    >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 2.0]), 2)[0]
    Array([[1., 0.],
           [0., 1.]], dtype=float64)
    """
    one, other = array(x), array(y)
    if aval_of(one).ndim != 1 or aval_of(one).shape != aval_of(other).shape:
        raise refused("histogram2d", "the points need as many of both coordinates",
                      got=f"{aval_of(one)} and {aval_of(other)}", wanted="two vectors of one size",
                      todo="flatten them first", kind=CorejaxValueError)
    if not (isinstance(bins, (list, tuple)) and len(bins) in (1, 2)) and np.ndim(_plain(bins)):
        if aval_of(array(bins)).shape != (2,) or not dtypes.is_integer(aval_of(array(bins)).dtype):
            bins = [bins, bins]
    found, edges = histogramdd(lax.stack(of_one_dtype([one, other]), 1), bins, range, weights, density)
    return found, edges[0], edges[1]


@public
def histogramdd(sample: ArrayLike | Sequence[ArrayLike], bins: Any = 10, range: Any = None,
                weights: ArrayLike | None = None, density: bool | None = None) -> tuple[Array, tuple[Array, ...]]:
    """A histogram of points in any number of dimensions, the rows of `sample`, and the bounds along each.

    `bins` is the number along each axis, or one number or vector of bounds for each.

    >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 2.0]]), 2)[0]
    Array([[1., 0.],
           [0., 1.]], dtype=float64)
    """
    points = array(sample)
    if aval_of(points).ndim == 1:
        points = lax.expand_dims(points, (1,))
    if aval_of(points).ndim != 2:
        raise refused("histogramdd", "points are the rows of a matrix", got=str(aval_of(points)), wanted="two axes",
                      todo="stack the coordinates along the last axis", kind=CorejaxValueError)
    count, dims = aval_of(points).shape
    normal, by = _density("histogramdd", density), _weights_of("histogramdd", points, weights)
    each = [bins] * dims if not np.ndim(_plain(bins)) and not isinstance(bins, (list, tuple)) else list(bins)
    ranges = [None] * dims if range is None else list(range)
    if len(each) != dims or len(ranges) != dims:
        raise refused("histogramdd", "each dimension needs bins", got=f"{len(each)} bins, {len(ranges)} ranges",
                      wanted=f"{dims} of them, or one number", todo="pass one for each", kind=CorejaxValueError)
    place: Any = lax.full((count,), 0, np.int64)
    inside: Any = lax.full((count,), True)
    edges = []
    for d, (own, between) in enumerate(zip(each, ranges, strict=True)):
        column = lax.index_in_dim(points, d, axis=1, keepdims=False)
        bounds = edges_of("histogramdd", column, int(own) if isinstance(own, np.integer) or type(own) is Array and not (
            own.aval.ndim) else own, between, None)
        column, wide = of_one_dtype([column, bounds], "f")
        size = aval_of(bounds).size - 1
        at = operators.astype(bin_of(column, wide, 0), np.int64)
        inside = inside & (at < size)
        place = place * size + at
        edges.append(bounds)
    sizes = tuple([aval_of(bounds).size - 1 for bounds in edges])
    total = int(np.prod(sizes))
    found = counted(lax.select(inside, place, lax.full_like(place, total)), by, total)
    found = as_inexact(operators.reshape(found, sizes))
    if normal:
        found = found / operators.sum(found)
        for d, bounds in enumerate(edges):
            widths = bounds[1:] - bounds[:-1]
            found = found / lax.reshape(widths, tuple([sizes[d] if k == d else 1 for k in builtins.range(dims)]))
    return found, tuple(edges)


