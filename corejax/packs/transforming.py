"""What a pack needs to add a transformation: public as `corejax.plugin.transforming`.

A `Transformation` is a hook for every primitive. A `Lifting` is one under which a value becomes a box of arrays: it has
an interpreter, and goes through programs by itself. The rest is for interpreters and declarations of one's own.
"""

from __future__ import annotations

from corejax.interpreters.composing import composition
from corejax.interpreters.lifting import (
    WAYS,
    Lifting,
    LiftTrace,
    LiftTracer,
    apply_rule,
    blamed,
    check_effects,
    checked_sequence,
    checked_values,
    from_decompose,
    from_programs,
    run_lifted,
)
from corejax.interpreters.lifts import Form, Forms, Lift, checked_box
from corejax.kernel.primitive import Primitive, Rule
from corejax.kernel.trace import check_belongs
from corejax.kernel.transformations import Absent, Answer, Declared, Law, Transformation, Way, absent, is_reserved
from corejax.packs.answering import all_installed as installed
from corejax.packs.hook_signatures import Signature, adapt_partial

__all__ = [
    "Absent", "Answer", "Declared", "Form", "Forms", "Law", "Lift", "LiftTrace", "LiftTracer", "Lifting",
    "Transformation", "WAYS", "Way", "absent", "apply_rule", "blamed", "check_belongs", "check_effects",
    "checked_box", "checked_sequence", "checked_values", "composition", "from_decompose", "from_programs",
    "installed", "is_reserved", "reading", "run_lifted",
]


def reading(function: Rule, primitive: Primitive) -> Rule:
    """A function of a declaration, made to accept all params of a primitive: it gets those that it names.

    >>> from corejax import lax
    >>> reading(lambda out, x, *, y: y, lax.integer_pow.primitive)(8.0, 2.0, y=3)
    3
    """
    adapted = adapt_partial(function, Signature((), tuple(primitive.params), False, primitive.open_params))
    assert adapted is not None
    return adapted
