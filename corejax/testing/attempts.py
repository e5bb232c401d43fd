"""One attempt to break a law: what a check raises for a case, and the failure that this becomes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from corejax.base.errors import CorejaxError, CorejaxWarning
from corejax.inspect.explain import place_of_rule
from corejax.kernel.checks import whose
from corejax.testing.case import Case
from corejax.testing.check import Check
from corejax.testing.report import Failure, Mismatch


def attempt(each: Check, case: Case) -> BaseException | None:
    """What a check raises for a sample; None if the law holds."""
    try:
        with quiet():
            each.run(case)
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


def failed(each: Check, case: Case, error: BaseException) -> Failure:
    """The failure of a case for which a check raised this."""
    if isinstance(error, Mismatch):
        return failure(each, case, error)
    hook = error.hook if isinstance(error, CorejaxError) and error.hook else each.hook
    raised = Mismatch(hook, f"it raised {type(error).__name__}", got=str(error).replace("\n", "\n          "),
                      wanted="the law to hold: " + each.doc.partition("\n")[0],
                      todo="fix the rule; or exempt the sample from this check, with the reason")
    return failure(each, case, raised, error)


def failure(each: Check, case: Case, mismatch: Mismatch, cause: BaseException | None = None) -> Failure:
    """The failure of a case that breaks a law."""
    return Failure(case.primitive.name, whose(case.primitive, mismatch.hook), each.name, mismatch.hook, repr(case),
                   mismatch.problem, mismatch.got, mismatch.wanted, mismatch.todo, cause,
                   place_of_rule(case.primitive, mismatch.hook))
