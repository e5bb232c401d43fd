"""One attempt to break a law: what a check raises for a case, and the failure that this becomes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import numpy as np

from corejax.errors import CorejaxError, CorejaxNotImplementedError, CorejaxWarning
from corejax.rules import Foreign, is_met, place_of_rule, rules_for, whose, without
from corejax_testing.case import Case
from corejax_testing.catalogue import CHECKS
from corejax_testing.check import Check
from corejax_testing.report import Failure, Mismatch, NotApplicable

#: For a hook that a check names, with the problem, the hook to blame: what was found out by experiment.
Culprits: TypeAlias = dict[tuple[str, str], str]

#: Laws that nearly each wrong rule breaks.
_BASIC = ("the decomposition agrees", "impl and the compiled program agree", "jvp agrees with differences",
          "a map is a loop")


def attempt(each: Check, case: Case) -> BaseException | None:
    """What a check raises for a sample; None if the law holds. Where an effect refuses to happen, there is no law."""
    try:
        with quiet():
            each.run(case)
    except CorejaxNotImplementedError as error:
        return NotApplicable(f"refused: {error.message}") if error.hook == "effects" else error
    except (Exception, SystemExit) as error:  # a rule that raises when it should work fails the check
        return error
    return None


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings that checks provoke."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", CorejaxWarning)  # fallbacks have their own check
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of the mean of nothing, say
        yield


def exemption(each: Check, case: Case) -> str:
    """Why a sample is exempt from a check, by its name or in one word for several; empty if it isn't."""
    exempt = case.sample.exempt
    return exempt.get(each.name) or (exempt.get(each.departure, "") if each.departure else "")


def failed(each: Check, case: Case, error: BaseException, culprits: Culprits | None = None) -> Failure:
    """The failure of a case for which a check raised this."""
    if isinstance(error, Mismatch):
        mismatch, cause = error, None
    else:
        hook, cause = error.hook if isinstance(error, CorejaxError) and error.hook else each.hook, error
        mismatch = Mismatch(hook, f"it raised {type(error).__name__}", got=str(error).replace("\n", "\n          "),
                            wanted="the law to hold: " + each.doc.partition("\n")[0],
                            todo="fix the rule; or exempt the sample from this check, with the reason")
    culprits = {} if culprits is None else culprits
    key = mismatch.hook, mismatch.problem
    if key not in culprits:
        culprits[key] = _culprit(each, case, mismatch.hook)
    mismatch.hook = culprits[key]
    return failure(each, case, mismatch, cause)


def _culprit(each: Check, case: Case, hook: str) -> str:
    """The rule to blame where rules of several packs broke a law: one of others' without which the owner's keep it.

    The owner's rules contradict such a rule, and which of them a check names is an accident.
    """
    rules = [rule for rule in rules_for(case.primitive) if is_met(case.primitive, rule)]
    slots = [rule.slot for rule in rules]
    if not rules or hook == "samples" or slots == [hook]:
        return hook
    guilty = [rule.slot for rule in rules if _is_guilty(each, case, [rule])]
    if not guilty and len(rules) > 1 and _is_guilty(each, case, rules):
        guilty = slots
    return hook if hook in guilty or not guilty else guilty[0]


def _is_guilty(each: Check, case: Case, rules: Sequence[Foreign]) -> bool:
    """Whether the law that is broken with the rules isn't without them."""
    found = _holds_without(rules, each, case)
    if found is not None:
        return found
    others = [CHECKS[name] for name in _BASIC]
    return any([broken(law, case) and _holds_without(rules, law, case) is True for law in others])


def _holds_without(rules: Sequence[Foreign], each: Check, case: Case) -> bool | None:
    """Whether a case keeps a law without some rules; None if it can't be checked, though not for want of these."""
    with without(case.primitive, rules):
        error = attempt(each, _for(each, case))
        missing = each.hook not in case.primitive.providers
    if isinstance(error, NotApplicable):
        return True if missing else None
    return error is None


def broken(each: Check, case: Case) -> bool:
    """Whether a case breaks a law."""
    error = attempt(each, _for(each, case))
    return error is not None and not isinstance(error, NotApplicable)


def _for(each: Check, case: Case) -> Case:
    """The case, fresh, for another check."""
    return type(case)(case.primitive, case.sample, case.number, each.name, case.full, case.samples)


def failure(each: Check, case: Case, mismatch: Mismatch, cause: BaseException | None = None) -> Failure:
    """The failure of a case that breaks a law."""
    return Failure(case.primitive.name, whose(case.primitive, mismatch.hook), each.name, mismatch.hook, repr(case),
                   mismatch.problem, mismatch.got, mismatch.wanted, mismatch.todo, cause,
                   place_of_rule(case.primitive, mismatch.hook))
