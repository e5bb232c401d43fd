"""Which primitives are elementwise, by experiment: what of the operands does an element of the results depend on?

Operands are changed at some places and not at others, or their elements change places. A normalisation, a cumulative
sum from either end, a sort, a matrix product: none of their results depends on what stands at its place alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import aval_of, dtypes
from corejax_testing.case import Case
from corejax_testing.comparing import eps_of, host, numbers, ulps_apart

#: Elements count as at most this large: elementwise functions of larger ones, such as tanh, needn't have large results.
LARGEST = 100.0

#: How many units in the last place an element may be off if others change: code for vectors may round otherwise.
_ULPS = 8.0


def is_elementwise(case: Case) -> bool:
    """Whether each element of the results depends on the operands' elements at its place alone; it may know its place.

    Of any two places, one keeps its elements while the other one gets new ones, and the other way round.
    """
    if case.alone is None:
        case.alone = _have_one_shape(case) and _stand_alone(case)
    return case.alone


def is_alike_everywhere(case: Case) -> bool:
    """Whether an elementwise function is the same one at each place: moved elements have the results that they had."""
    size = max([aval.size for aval in case.out_avals], default=0)
    rng = _probe(case).rng
    try:
        for args in (list(case.args), _others(case)):
            plain = _flat(case, args)
            for places in (np.arange(size)[::-1], rng.permutation(size)):
                moved = _flat(case, _taken(case, args, places))
                wanted = [out[places] for out in plain]
                if _differ(case, args, wanted, moved, places).any():
                    return False
    except Exception:  # these operands can't be moved about
        return False
    return True


def sizes_of(args: Sequence[object]) -> np.ndarray:
    """The size of what goes in at each place: the largest absolute value, but at most `LARGEST`."""
    return np.asarray(np.minimum(np.max(np.broadcast_arrays(*map(size_of, args)), axis=0), LARGEST))


def size_of(x: object) -> np.ndarray:
    """The absolute values of floating numbers that are finite; 0 for others."""
    aval = aval_of(x)
    if not dtypes.is_inexact(aval.dtype):
        return np.zeros(aval.shape)
    sizes = np.abs(numbers(x).astype(np.complex128 if dtypes.is_complex(aval.dtype) else np.float64))
    return np.where(np.isfinite(sizes), sizes, 0.0)


# The experiments

def _have_one_shape(case: Case) -> bool:
    """Whether all operands and results have the same shape, or none where an operand is a scalar for all places."""
    if not case.args or not case.out_avals:
        return False
    shapes = {aval.shape for aval in (*case.avals, *case.out_avals)} - {()}
    return len(shapes) <= 1 and not (shapes and any([not aval.shape for aval in case.out_avals]))


def _stand_alone(case: Case) -> bool:
    try:
        plain = _flat(case, case.args)
    except Exception:  # other checks say what is wrong with it
        return True
    size = max([aval.size for aval in case.out_avals])
    try:
        others = _others(case)
        for kept in _halves(size):
            found = _flat(case, _mixed(case, case.args, others, kept))
            if (_differ(case, case.args, plain, found, np.arange(size)) & kept).any():
                return False
    except Exception:  # it looks at elements together, and refuses some
        return False
    return True


def _halves(size: int) -> Iterator[np.ndarray]:
    """Half of the places, again and again, so that any two are apart in both ways."""
    places = np.arange(size)
    for bit in range(max(size - 1, 0).bit_length()):
        yield places >> bit & 1 == 0
        yield places >> bit & 1 == 1


def _others(case: Case) -> list[Any]:
    """Operands with other elements: from the domain, else those of the neighbor at all places, and closer to zero.

    An operand that must not get other values keeps its own; if none may, all take their neighbors' together.
    """
    probe = _probe(case)
    drawn, fixed = probe.drawn(), [case.keeps(i) for i in range(len(case.args))]
    factors = probe.rng.uniform(0.5, 0.9, max([aval.size for aval in case.avals]))
    found = list[Any]()
    for i, (x, aval) in enumerate(zip(case.args, case.avals, strict=True)):
        if not aval.shape or fixed[i] and not all(fixed):
            found.append(x)
        elif case.domain_of(i) is not None and dtypes.is_inexact(aval.dtype):
            found.append(drawn[i])
        else:
            flat = host(x).reshape(-1)
            new = np.roll(flat, 1)
            found.append((new if fixed[i] else _altered(new, factors)).reshape(aval.shape))
    return found


def _altered(x: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Numbers like these: floats a bit smaller, or positive for 0; integers that are all the same with another bit."""
    if dtypes.is_inexact(x.dtype):
        wide = x.astype(np.complex128 if dtypes.is_complex(x.dtype) else np.float64)
        return np.where((wide == 0) | ~np.isfinite(wide), factors, wide * factors).astype(x.dtype)
    if x.dtype == np.bool_ and (x == x[:1]).all():
        return ~x
    return x ^ x.dtype.type(1) if dtypes.is_integer(x.dtype) and x.dtype.itemsize and (x == x[:1]).all() else x


def _probe(case: Case) -> Case:
    """The case, with random numbers of its own: what a check draws doesn't depend on experiments."""
    return Case(case.primitive, case.sample, case.number, "elementwise", case.full, case.samples)


def _mixed(case: Case, args: Sequence[Any], others: Sequence[Any], kept: np.ndarray) -> list[Any]:
    return [np.where(kept.reshape(aval.shape), host(x), host(y)) if aval.shape and dtypes.kind(aval.dtype) != "E" else x
            for x, y, aval in zip(args, others, case.avals, strict=True)]


def _taken(case: Case, args: Sequence[Any], places: np.ndarray) -> list[Any]:
    return [host(x).reshape(-1)[places].reshape(aval.shape) if aval.shape else x
            for x, aval in zip(args, case.avals, strict=True)]


def _flat(case: Case, args: Sequence[Any]) -> list[np.ndarray]:
    """The results for these operands, each with all its places on one axis."""
    return [host(out).reshape(-1) for out in case.apply(*args)]


def _differ(case: Case, args: Sequence[Any], wanted: Sequence[np.ndarray], got: Sequence[np.ndarray],
            places: np.ndarray) -> np.ndarray:
    """At which places results differ by more than rounding explains, for `args` at these places."""
    size = np.broadcast_to(sizes_of(args).reshape(-1), places.shape)[places] if places.size else np.zeros(0)
    found = np.zeros(places.shape, bool)
    for x, y in zip(wanted, got, strict=True):
        apart = ulps_apart(x, y).reshape(places.size, -1).max(1, initial=0.0) > max(_ULPS, case.sample.ulps or 0.0)
        if dtypes.is_inexact(x.dtype):
            wide = np.complex128 if dtypes.is_complex(x.dtype) else np.float64
            with np.errstate(all="ignore"):
                near = np.abs(x.astype(wide) - y.astype(wide)) <= case.atol + _ULPS * eps_of(x.dtype) * size
            apart &= ~near
        found |= apart
    return found
