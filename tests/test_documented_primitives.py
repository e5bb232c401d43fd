"""Every primitive that a page of the documentation defines keeps the laws of the conformance kit, in the quick mode.

Pages show one thing at a time, so most examples have no hook `samples`, and many lack rules on purpose: the samples are
here, with the laws that an example needn't keep.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.plugin import Primitive, Sample
from corejax.testing import ConformanceError, check_primitive
from corejax_testing.running import chosen_checks
from test_docs import PAGES, code_blocks, name_of, run_page

RNG = np.random.default_rng(7)
FLOATS = RNG.normal(size=(2, 3))
DRAWN = Sample([FLOATS], domain=(-3.0, 3.0))

COMPLEX = "to be short, the example doesn't say that it is for real numbers"

#: Laws that examples of one rule for real numbers break for complex ones, which nothing refuses.
REAL = {check: COMPLEX for check in ("jvp agrees with differences", "derivatives agree at special points",
                                     "jvp agrees with complex steps", "pullback is the adjoint of jvp",
                                     "pullbacks at special points are adjoint")}

#: Examples whose abstract_eval is one line that refuses nothing, not even what they have no rule for.
UNREFUSING = ("my_softplus", "demo_softplus", "demo_better", "demo_scaled", "length", "demo_spread", "demo_difference",
              "demo_hypotenuse", "demo_ramp", "demo_cosh", "demo_largest", "demo_sorted")
ACCEPTED = {"every dtype that is accepted works": "to be short, the example refuses nothing"}

#: Why the kit isn't run on an example.
LEFT_OUT = {
    "wrong": "its gradient is wrong, to show the error",
    "demo_gauss": "its gradient is wrong, to show how the kit says so",
    "demo_halved": "it has a fault, to show what a search finds",
    "demo_misspelled": "it has a misspelled hook, to show the error",
    "demo_rotated": "its kernel is missing, to show the error",
    "demo_cholesky": "LAPACK's function is that for doubles, and nothing refuses others",
    "demo_scaled_too": "its impl is only there to be preferred, and doesn't care for narrow floats",
    "demo_repeated": "its params come from a function's program, which is only made in the function",
    "demo_twice": "its param is a program, which the page makes",
    "demo_fixed_point": "its params come from a function's program, which is only made in the function",
}


def softplus(beta: float | None = None) -> Sample:
    params, beta = {} if beta is None else {"beta": beta}, beta or 1.0
    return Sample([FLOATS], params, domain=(-3.0, 3.0), singular=(0.0,), exempt=REAL,
                  results=np.log1p(np.exp(beta * FLOATS)) / beta)


staged = cj.make_jaxpr(lambda x, y: (lax.sin(x) * y).sum())(FLOATS, FLOATS)

#: For examples without a hook `samples`, theirs.
SAMPLES: dict[str, list[Sample]] = {
    "my_softplus": [softplus()], "demo_softplus": [softplus()], "demo_better": [softplus()],
    "demo_scaled": [softplus(beta) for beta in (2.0, 0.5)],
    "smooth_relu": [DRAWN, Sample([np.array(0.0)], results=np.log(2.0))],
    "steps": [Sample([FLOATS + 0.1], {"step": step}, results=np.floor((FLOATS + 0.1) / step)) for step in (0.5, 0.25)],
    "length": [Sample([FLOATS], domain=(0.5, 3.0)), Sample([np.array([3.0, 4.0])], results=np.array(5.0))],
    "reversed_last": [Sample([FLOATS]), Sample([RNG.normal(size=(2, 1, 3))])],
    "demo_spread": [Sample([FLOATS], {"along": axis}, results=np.ptp(FLOATS, axis)) for axis in (1, 0)],
    "demo_difference": [Sample([FLOATS], {"along": 0}), Sample([FLOATS], {"along": 1}),
                        Sample([FLOATS], {"along": 2}, error=IndexError)],
    "demo_alternate": [Sample([FLOATS, FLOATS + 1.0], results=np.stack([FLOATS, FLOATS + 1.0], 1).reshape(4, 3))],
    "demo_hypotenuse": [Sample([FLOATS, FLOATS[::-1] + 2.0])], "demo_ramp": [Sample([np.array(0.5)], {"size": 4})],
    "demo_outlined": [Sample([FLOATS, FLOATS + 1.0], {"jaxpr": staged.jaxpr},
                             results=[(np.sin(FLOATS) * (FLOATS + 1.0)).sum()])],
    "demo_cosh": [DRAWN], "demo_largest": [DRAWN], "demo_sorted": [Sample([RNG.normal(size=4)])],
    "demo_bessel": [Sample([np.abs(FLOATS)])],
}

#: For the pages whose examples have one kind of rules: the hooks whose laws they keep, beside those of weak types.
HOOKS = {"docs/lowering.md": ("impl", "xla_translation", "effects", "dce", "partial_eval")}


def defined_by(page: Path) -> dict[str, Primitive]:
    """The primitives that a page defines, by name, the last one of each."""
    define = importlib.import_module("corejax.packs.define")
    found: dict[str, Primitive] = {}

    def recording(*args: Any) -> Primitive:
        primitive = make(*args)
        found[primitive.name] = primitive
        return primitive

    with pytest.MonkeyPatch.context() as patch:
        make = define._primitive_of
        patch.setattr(define, "_primitive_of", recording)
        assert "" == run_page(page)
    return {name: primitive for name, primitive in found.items() if primitive.pack is None}


@pytest.mark.sample(1)
@pytest.mark.parametrize("page", [page for page in PAGES if "define(" in page.read_text() and any(
    code_blocks(page.read_text()))], ids=name_of)
def test_primitives_of_a_page_keep_the_laws(page: Path) -> None:
    found = defined_by(page)
    hooks = HOOKS.get(name_of(page))
    checks = None if hooks is None else [each.name for each in chosen_checks(False) if each.hook in hooks]
    wrong = {}
    for name, primitive in found.items():
        if name in LEFT_OUT:
            continue
        samples = SAMPLES.get(name)
        if name in UNREFUSING:
            samples = [Sample(x.args, x.params, x.domain, x.error, x.exempt | ACCEPTED, x.singular, x.ulps, x.results)
                       for x in SAMPLES[name]]
        if name == "demo_later":  # of elements that another primitive of the page makes
            samples = [Sample([found["demo_time_of"].bind(np.array([[8, 5], [12, 30]], "uint8"))])]
        try:
            check_primitive(primitive, samples, checks=checks)
        except ConformanceError as error:
            wrong[name] = str(error)
    assert {} == wrong


def test_each_reason_and_sample_is_for_an_example() -> None:
    text = "".join([page.read_text() for page in PAGES])
    assert [] == [name for name in (*LEFT_OUT, *SAMPLES) if f'"{name}"' not in text]
