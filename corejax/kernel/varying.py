"""Values that vary along axes of a mesh: made to vary along more of them, and cotangents made to fit.

A type says along which axes a value differs from device to device. A value that is the same along an axis may stand
wherever one that varies is expected, so programs hold no casts. Reverse mode is where this matters. The cotangent of a
variable that is the same on all devices is the sum of what the uses of it contribute, on all devices; that of one that
varies is each device's own. So a cotangent is given to a variable in exactly the variable's type: summed along the axes
along which only the cotangent varies, and made to vary along those along which only the variable does, since further up
it may be summed along these.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from corejax.base.avals import ShapedArray, aval_of
from corejax.installed.roles import roles
from corejax.kernel.jaxpr import subjaxprs

Names = Collection[Hashable]


def in_order(axes: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """The axes in the order in which types list them."""
    return tuple(sorted(axes, key=str))


def varied(x: Any, axes: Names) -> Any:
    """The same value, of a type that varies along these axes too."""
    if not axes:
        return x
    missing = frozenset(axes) - aval_of(x).varying
    return roles.vary(x, in_order(missing)) if missing else x


def fitted(ct: Any, aval: ShapedArray) -> Any:
    """A cotangent for a variable of this type: it varies along the same axes, if need be after a sum along others."""
    own = aval_of(ct).varying
    if own == aval.varying:
        return ct
    extra = own - aval.varying
    return varied(roles.sum_varying(ct, in_order(extra)) if extra else ct, aval.varying)


def joint(avals: Iterable[ShapedArray]) -> frozenset[Hashable]:
    """The axes along which any of these types vary."""
    return frozenset().union(*[aval.varying for aval in avals])


def along(aval: ShapedArray, axes: Names) -> ShapedArray:
    """The type of a value that varies along these axes too."""
    return aval.update(varying=aval.varying.union(axes)) if axes and not aval.varying.issuperset(axes) else aval


def are_types_of(declared: Sequence[ShapedArray], inferred: Sequence[ShapedArray]) -> bool:
    """Whether results of the inferred types may be held by variables of the declared ones.

    These may vary along more axes: an operand may have been replaced by one that varies along fewer.
    """
    return len(declared) == len(inferred) and all([
        own is found or (found.fits(own) and found.weak_type is own.weak_type)
        for own, found in zip(declared, inferred, strict=True)])


def says_itself(params: Mapping[str, object]) -> bool:
    """Whether programs among the params say along which axes results vary.

    They do if they take or return what varies. The program that a reduction combines elements with does neither.
    """
    return any([v.aval.varying for jaxpr in subjaxprs(params) for v in (*jaxpr.invars, *jaxpr.outvars)])
