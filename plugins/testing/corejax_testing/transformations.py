"""The laws of the transformations that packs bring, as checks of every primitive.

A law is a function of the transformation and a `Case`. It returns if the law holds, or why it doesn't apply, as a text;
else it raises what `case.fail` returns. Rules that are derived are held to it in the full mode, or if it is named: who
installs a transformation doesn't make everybody's checks longer.
"""

from __future__ import annotations

from corejax.errors import CorejaxNotImplementedError, MissingRuleError
from corejax.plugin import transforming
from corejax.rules import transformations
from corejax_testing.case import Case
from corejax_testing.check import Check, Run
from corejax_testing.report import NotApplicable


def laws(derived: bool) -> dict[str, Check]:
    """The laws of all installed transformations, by `TRANSFORMATION: LAW`; of `derived` rules in the quick mode too."""
    return {check.name: check for transformation in transformations() for check in laws_of(transformation, derived)}


def laws_of(transformation: transforming.Transformation, derived: bool) -> list[Check]:
    """The laws of one."""
    return [Check(f"{transformation.name}: {words}", transformation.name, (law.__doc__ or words).strip(),
                  _applied(transformation, law, derived), full=False, errors=False, costly=True, departure="")
            for words, law in transformation.laws.items()]


def _applied(transformation: transforming.Transformation, law: transforming.Law, derived: bool) -> Run:
    def run(case: Case) -> None:
        answer = transformation.answer(case.primitive)
        if answer.how == "derived" and not (derived or case.full):
            raise NotApplicable("its rule is derived: the full mode tries it")
        if answer.how in ("absent", "missing"):
            raise NotApplicable(f"it has no {transformation.name}: {answer.what}")
        try:
            why_not = law(transformation, case)
        except (MissingRuleError, CorejaxNotImplementedError) as error:
            if answer.how != "derived" or error.hook != transformation.name:
                raise
            raise NotApplicable(f"refused: {error.message}") from None  # what it is made of has no rule
        if why_not is not None:
            raise NotApplicable(why_not)
    return run
