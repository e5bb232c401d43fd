"""What the conformance kit checks of a pack: its primitives, its rules for those of others, and never nothing."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest

OWNER = """
    import numpy as np
    from corejax import lax
    from corejax.plugin import Sample, define, factors, hookimpl, not_linear

    class Wave:
        name = "wave"
        transpose = not_linear()

        @hookimpl
        def decompose(self, args):
            (x,) = args
            return lax.sin(x)

        @hookimpl
        def samples(self, rng):
            yield Sample([rng.normal(size=(2, 3))], domain=(-2.0, 2.0))
            yield Sample([np.array(0.5)], results=np.array(0.479425538604203))

    class Flat(Wave):
        name = "flat"

    class Bad(Wave):
        name = "bad"
        jvp = factors(lambda out, x: -lax.cos(x))

    wave, flat, bad = define(Wave()), define(Flat()), define(Bad())
"""

RULES = """
    import numpy as np
    from corejax import lax
    from corejax.plugin import factors, hookimpl

    slope = factors(lambda out, x: lax.cos(x))
    wrong_slope = factors(lambda out, x: -lax.cos(x))

    def evaluated(args):
        return np.sin(args[0], dtype=args[0].dtype)

    def wrongly(args):
        return np.cos(args[0])

    def on_cpu(ctx, args):
        return ctx.lower(lax.sin, args[0])

    def wrongly_on_cpu(ctx, args):
        return ctx.lower(lax.tanh, args[0])

    @hookimpl(wrapper=True)
    def around(args):
        return (yield)

    @hookimpl(wrapper=True)
    def wrongly_around(args):
        return 2.0 * (yield)

    @hookimpl
    def unmoved(axis, args, dims):
        return lax.sin(args[0]), 0

    table, wrong_table, misspelled_table = {"wave": evaluated}, {"flat": wrongly}, {"wavee": evaluated}
"""

CHECK = """
    from corejax.testing import check_pack

    def check(name, checks=None):
        try:
            print(check_pack(name, checks=checks))
        except AssertionError as error:
            print(error)
"""

FAILURES = """
    from corejax.testing import check_pack

    try:
        check_pack("rules")
    except AssertionError as error:
        for each in error.failures:
            print((each.hook, each.origin, each.where))
"""

PACKS = "owner, rules, corejax-lax-basic, corejax-reductions, corejax-control-flow, corejax-sorting"

QUICK = ["impl and the compiled program agree", "jvp agrees with differences"]


@pytest.fixture
def checked(site):
    """What the kit says to a pack `rules` of these entry points, beside the pack `owner`."""
    def run(entries, name="rules", checks=QUICK, requires=("owner",), also=()):
        primitives = {name: f"owner:{name}" for name in ("wave", "flat", *also)}
        site.pack("owner", {"primitives": primitives}, {"owner": OWNER})
        site.pack("rules", entries if isinstance(entries, str) else {"rules": entries}, {"ruling": RULES},
                  requires=requires)
        return site.run(textwrap.dedent(CHECK) + f"check({name!r}, {checks!r})", COREJAX_PACKS=PACKS)
    return run


def test_the_primitives_that_a_pack_only_has_rules_for_are_checked_with_them(checked):
    said = checked({"owner/wave:impl": "ruling:evaluated", "owner/flat:jvp": "ruling:slope"})
    assert "Report(2 primitives: " in said and ", 0 failed" in said
    assert "by rules 1.0: impl" in said and "by owner 1.0: " in said and "by rules 1.0: jvp" in said


@pytest.mark.parametrize("target, rule", [
    ("owner/wave:impl", "wrongly"), ("owner/wave:jvp", "wrong_slope"),
    ("corejax-lax-basic/sin:xla_translation", "wrongly_on_cpu"),
    ("corejax-lax-basic/sin:xla_translation@cpu", "wrongly_on_cpu"),
    ("corejax-lax-basic/sin:impl", "wrongly_around")])
def test_a_wrong_rule_is_found_though_it_counts_only_by_consent(checked, target, rule):
    said = checked({target: f"ruling:{rule}"})
    (line,) = [number for number, text in enumerate(textwrap.dedent(RULES).splitlines(), 1)
               if re.search(rf"(def )?\b{rule}\b", text) and "table" not in text]
    assert "failed check" in said and "rules 1.0), check '" in said
    assert re.search(rf"(where: +|wrapped at )\S+ruling.py:{line - ('around' in rule)} \({rule}\)", said), said


@pytest.mark.sample(2)
@pytest.mark.parametrize("target, rule", [
    ("owner/wave:impl", "wrongly"), ("owner/wave:jvp", "wrong_slope"), ("owner/wave:vmap", "unmoved"),
    ("owner/wave:xla_translation", "wrongly_on_cpu"), ("corejax-lax-basic/sin:xla_translation@cpu", "wrongly_on_cpu"),
    ("corejax-lax-basic/sin:impl", "wrongly_around"), ("owner/*:impl", "wrong_table")])
def test_every_failure_blames_the_wrong_rule_and_its_file(checked, site, target, rule):
    checked({target: f"ruling:{rule}"}, name="owner", checks=[])
    said = site.run(FAILURES, COREJAX_PACKS=PACKS)
    slot = target.rpartition(":")[2]
    assert {(slot, "rules 1.0", True)} == {
        (hook, origin.rpartition(" by ")[2], "ruling.py" in where)
        for hook, origin, where in map(ast.literal_eval, said.splitlines())}, said


def test_a_fault_of_the_owner_is_blamed_on_the_owner_though_others_have_rules(checked, site):
    checked({"owner/bad:impl": "ruling:evaluated"}, name="owner", checks=[], also=("bad",))
    said = site.run(FAILURES, COREJAX_PACKS=PACKS)
    assert {("jvp", "owner 1.0", False)} == {
        (hook, origin, "ruling.py" in where) for hook, origin, where in map(ast.literal_eval, said.splitlines())}, said


def test_right_rules_pass(checked):
    said = checked({"owner/wave:impl": "ruling:evaluated", "owner/wave:xla_translation@cpu": "ruling:on_cpu",
                    "owner/wave:jvp": "ruling:slope"})
    assert "Report(1 primitive: 3 checks held, 0 failed" in said
    assert "by rules 1.0: xla_translation@cpu, impl, jvp" in said


def test_tables_are_checked_for_each_primitive_that_they_have(checked):
    assert "Report(1 primitive: 3 checks held, 0 failed" in checked({"owner/*:impl": "ruling:table"})


def test_a_wrong_rule_in_a_table_is_found(checked):
    said = checked({"owner/*:impl": "ruling:wrong_table"})
    assert "flat.impl (rules 1.0), check 'impl and the compiled program agree'" in said
    assert re.search(r"where: .*ruling.py:\d+ \(wrongly\)", said)


def test_a_table_with_a_misspelled_name_fails(checked):
    said = checked({"owner/*:impl": "ruling:misspelled_table"})
    assert "check 'rules are used': owner 1.0 has no primitive 'wavee'" in said and "did you mean 'wave'?" in said


def test_rules_that_cannot_be_used_fail_rather_than_being_left_out(checked):
    said = checked({"owner/wave:jvp": "ruling:slope"}, requires=("owner>=2",))
    assert "wave.jvp (rules 1.0), check 'rules are used': its rules are left out" in said and "owner>=2" in said


@pytest.mark.parametrize("name, words", [
    ("owner/wavee:impl", "owner 1.0 has no such primitive; did you mean 'wave'?"),
    ("wave:impl", "is left out"), ("absent/wave:impl", "absent isn't installed, which rules requires")])
def test_rules_for_nothing_fail(checked, name, words):
    said = checked({name: "ruling:evaluated"}, requires=("owner", "absent"))
    assert "1 failed check" in said and "check 'rules are used'" in said and words in " ".join(said.split())


def test_rules_for_a_pack_that_is_not_there_and_need_not_be_are_named(checked):
    said = checked({"owner/wave:impl": "ruling:evaluated", "absent/wave:impl": "ruling:evaluated"})
    assert "0 failed" in said and "not checked: absent/wave:impl, as absent isn't installed" in said


def test_a_pack_of_which_nothing_can_be_checked_fails(checked):
    said = checked({"absent/wave:impl": "ruling:evaluated"})
    assert "there is nothing to check" in said and "absent isn't installed" in said


def test_a_pack_of_no_known_group_fails(checked):
    assert "there is nothing to check" in checked("[corejax.of_no_kind]\nwave = ruling:evaluated\n")


def test_a_pack_without_primitives_and_rules_says_what_it_has_instead(checked):
    said = checked("[corejax.functions]\nf = ruling:evaluated\n[corejax.kernels]\na = ruling:a\nb = ruling:b\n")
    assert "Report(0 primitives: 0 checks held, 0 failed" in said
    assert "rules 1.0 has neither primitives nor rules, so there is nothing to check: it provides 1 function, " \
        "2 kernels" in said


def test_the_owners_primitives_are_checked_without_rules_that_nobody_chose(checked):
    said = checked({"owner/wave:jvp": "ruling:wrong_slope"}, name="owner")
    assert "Report(2 primitives: 4 checks held, 0 failed" in said


def test_the_preference_ends_with_the_check(site, checked):
    checked({"owner/wave:jvp": "ruling:wrong_slope"})
    assert "1.0\n" == site.run("""
        import corejax as cj
        from corejax.testing import check_pack
        warnings.simplefilter("ignore")
        try:
            check_pack("rules", checks=["jvp agrees with differences"])
        except AssertionError:
            print(float(cj.grad(lax.wave)(0.0)))""", COREJAX_PACKS=PACKS)
