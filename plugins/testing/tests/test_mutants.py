"""The conformance kit, tested by rules with a fault in them: it finds nearly all, and lets the true rules pass."""

from __future__ import annotations

import sys

import pytest

import corejax as cj
from corejax.errors import CorejaxError
from corejax.installed import registry
from corejax.plugin import find
from corejax.testing import check_primitive
from exhaustive import exhaustive_unless
from mutants import MUTANTS
from mutants.loading import load, load_from, standing_in
from mutants.mutant import HOOKS, KINDS, Mutant, source_of
from mutants.results import frozen, known_law
from mutants.running import run

every_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=str)

def spread() -> list[Mutant]:
    """Of each kind of fault in each hook, and of each module, the one that took least time when all ran."""
    least: dict[tuple[str, ...], Mutant] = {}
    for m in sorted(MUTANTS, key=lambda m: frozen()[m.name].seconds if m.name in frozen() else 0.0):
        if not m.survives:
            for place in ((m.kind, m.hook), (m.module,)):
                least.setdefault(place, m)
    return list(dict.fromkeys(least.values()))


#: For each module with faults a primitive whose true rules are loaded in the same way.
CONTROLS = list({m.module: m for m in MUTANTS}.values())


def test_there_are_many_and_each_has_a_known_kind_and_hook() -> None:
    assert len(MUTANTS) >= 200
    assert len({(m.primitive, m.module, m.source()) for m in MUTANTS}) == len(MUTANTS)
    assert [] == [m.name for m in MUTANTS if m.kind not in KINDS or m.hook not in HOOKS]


def test_every_kind_of_fault_and_the_main_hooks_occur() -> None:
    assert set(KINDS) == {m.kind for m in MUTANTS}
    assert {"impl", "abstract_eval", "jvp", "transpose", "vmap", "xla_translation"} <= {m.hook for m in MUTANTS}


@every_mutant
def test_fault_still_fits_the_source_and_compiles(mutant: Mutant) -> None:
    changed = mutant.source()  # asserts that the piece occurs exactly once
    compile(changed, mutant.module, "exec", dont_inherit=True)
    assert changed != source_of(mutant.module)


@pytest.mark.parametrize("mutant", CONTROLS, ids=lambda mutant: mutant.module)
def test_mutant_is_another_object_and_the_process_keeps_the_true_one(mutant: Mutant) -> None:
    true = find(mutant.primitive)
    modules, objects = dict(sys.modules), dict(registry._objects)
    faulty = load(mutant)
    assert mutant.primitive == faulty.name
    assert faulty is not true and faulty.plugin is not true.plugin
    assert find(mutant.primitive) is true
    assert objects.items() <= registry._objects.items()
    assert modules.items() <= sys.modules.items()


def test_mutant_has_the_fault() -> None:
    (mutant,) = [m for m in MUTANTS if m.name == "sub-jvp-sign"]
    (x_dot,) = [cj.jvp(p.bind, (3.0, 1.0), (0.0, 1.0))[1] for p in [load(mutant)]]
    assert (1.0, -1.0) == (float(x_dot), float(cj.jvp(cj.lax.sub, (3.0, 1.0), (0.0, 1.0))[1]))


def test_results_are_of_these_mutants_and_the_survivors_are_those_with_a_reason() -> None:
    assert [m.name for m in MUTANTS] == list(frozen())
    assert [m.name for m in MUTANTS if m.survives] == [name for name, outcome in frozen().items() if not outcome.killed]


def test_at_least_95_percent_are_killed() -> None:
    killed = sum([outcome.killed for outcome in frozen().values()])
    assert killed >= 0.95 * len(MUTANTS)


@pytest.mark.sample(50)
@pytest.mark.parametrize("mutant", exhaustive_unless(spread().__contains__, MUTANTS), ids=str)
def test_mutant_is_killed_unless_a_reason_is_given(mutant: Mutant) -> None:
    # Whether it is killed doesn't depend on the law that comes first; how long it takes does.
    outcome = run(mutant, known_law(mutant.name))
    assert outcome.killed is not bool(mutant.survives), outcome


@pytest.mark.slow
@pytest.mark.parametrize("mutant", exhaustive_unless(lambda mutant: mutant.primitive in ("tanh", "logistic"), CONTROLS),
                         ids=lambda mutant: mutant.module)
def test_true_rules_loaded_in_the_same_way_conform(mutant: Mutant) -> None:
    true = load_from(mutant.primitive, mutant.module, source_of(mutant.module))
    with standing_in(true):
        assert not check_primitive(true).failures


def test_fault_that_breaks_the_harness_is_not_counted_as_killed() -> None:
    broken = Mutant("broken", "sin", "corejax_lax_basic.trigonometric", "", "impl", "constant", "import numpy as np",
                    "import numpy_of_no_such_name as np")
    with pytest.raises(ModuleNotFoundError) as raised:
        run(broken)
    assert not isinstance(raised.value, CorejaxError)
