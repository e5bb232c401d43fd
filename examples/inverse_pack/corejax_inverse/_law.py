"""The law that all inverses keep, for the conformance kit."""

from __future__ import annotations

from typing import Any

import numpy as np

from corejax.core import aval_of, dtypes
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError
from corejax.plugin import transforming
from corejax_inverse._rules import Unknown


def undoes(transformation: transforming.Transformation, case: Any) -> str | None:
    """The operand that a rule finds is the one that was applied, to some digits."""
    args = [np.asarray(x) for x in case.drawn()]
    outs = case.apply(*args)
    rule = transformation.rule(case.primitive)
    tried = False
    for i, x in enumerate(args):
        given = [Unknown(aval_of(y)) if i == j else y for j, y in enumerate(args)]
        try:
            (found,) = rule(outs if case.primitive.multiple_results else outs[0], given, **case.params)
        except (CorejaxNotImplementedError, CorejaxValueError):  # it isn't one-to-one in this operand
            continue
        if not np.isfinite(np.asarray(found)).all():  # it isn't one-to-one there, as a product with 0 isn't
            continue
        tried = True
        wanted = case.apply(*[found if i == j else y for j, y in enumerate(args)])
        if not all([_close(a, b) for a, b in zip(wanted, outs, strict=True)]) or not _close(found, x, loose=True):
            raise case.fail(transformation.name, f"what it finds for operand {i} isn't what was applied",
                            got=np.asarray(found).tolist(), wanted=x.tolist(),
                            todo="correct the rule, or declare None for the operand")
    return None if tried else "it is one-to-one in no operand"


def _close(a: Any, b: Any, loose: bool = False) -> bool:
    x, y = np.asarray(a), np.asarray(b)
    if not dtypes.is_inexact(y.dtype):
        return bool((x == y).all())
    digits = float(np.finfo(y.dtype).eps) ** (0.4 if loose else 0.7)
    return np.allclose(x, y, rtol=digits, atol=digits, equal_nan=True)
