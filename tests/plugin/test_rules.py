"""Rules for primitives that another pack owns."""

from __future__ import annotations

import pytest

RULES = """
from corejax.plugin import hookimpl

class Adds:
    @hookimpl
    def dce(self, eqn, used_out):
        return "dce of adds"

class Replaces:
    @hookimpl
    def impl(self, args):
        return args[0] * 100.0

class Lowers:
    platform = "cuda"

    @hookimpl
    def xla_translation(self, ctx, args):
        return "cuda"

class Wraps:
    @hookimpl(wrapper=True)
    def impl(self, args):
        out = yield
        return out + 1.0

class Misspelled:
    @hookimpl
    def vmpa(self, axis, args, dims):
        return None

adds, replaces, lowers, wraps, misspelled = Adds(), Replaces(), Lowers(), Wraps(), Misspelled()
"""


def add_rules(site, which, pack="rules-pack", name="toy:more"):
    module = pack.replace("-", "_")
    site.pack(pack, {"rules": {name: f"{module}:{which}"}}, {module: RULES}, "0.3")


def test_a_missing_hook_is_added_without_asking(site):
    site.toy("toy-pack")
    add_rules(site, "adds")
    out = site.run("""
        print(find("toy").dce(None, None), find("toy").providers["dce"], find("toy").providers["impl"])
        import toy_pack
        print(toy_pack.toy.primitive.dce is not None)
    """)
    assert out.splitlines() == ["dce of adds rules-pack 0.3 toy-pack 1.0", "True"]


def test_replacing_a_hook_needs_the_users_choice(site):
    site.toy("toy-pack")
    add_rules(site, "replaces")
    out = site.run("print(error(lambda: lax.toy(1.0)))")
    assert "PackError: toy.impl is provided by toy-pack 1.0 and by rules-pack 0.3" in out
    assert "choose with COREJAX_PREFER=rules-pack (or toy-pack)" in out
    assert site.run("print(float(lax.toy(1.0)))", COREJAX_PREFER="rules-pack").strip() == "100.0"
    assert site.run("print(float(lax.toy(1.0)))", COREJAX_PREFER="toy-pack").strip() == "2.0"
    explained = site.run("from corejax.cli import main; main(['explain', 'toy'])", COREJAX_PREFER="rules-pack")
    assert "impl: rules-pack 0.3" in explained and "abstract_eval: toy-pack 1.0" in explained


def test_two_packs_that_add_the_same_hook_conflict(site):
    site.toy("toy-pack")
    add_rules(site, "adds", "rules-a", "toy")
    add_rules(site, "adds", "rules-b", "toy")
    out = site.run("print(error(lambda: lax.toy(1.0)))")
    assert "toy.dce is provided by rules-" in out and "rules-a 0.3" in out and "rules-b 0.3" in out


def test_a_lowering_for_one_platform_is_added_beside_the_general_one(site):
    site.toy("toy-pack")
    add_rules(site, "lowers")
    out = site.run("""
        toy = find("toy")
        print(toy.lowering("cuda")(None, []), toy.providers["xla_translation on cuda"])
        general = toy.lowering("cpu")
        print(callable(general), general is toy.lowering("tpu"), toy.providers["xla_translation"])
    """)
    assert out.splitlines() == ["cuda rules-pack 0.3", "True True derived"]


def test_a_wrapper_runs_around_the_rule_with_no_pluggy_in_the_call(site):
    site.toy("toy-pack")
    add_rules(site, "wraps")
    out = site.run("""
        import traceback
        print(float(lax.toy(3.0)), find("toy").providers["impl"])
    """)
    assert out.strip() == "7.0 toy-pack 1.0, wrapped by rules-pack 0.3"


@pytest.mark.parametrize(("which", "message"), [
    ("misspelled", "'vmpa' is not a hook"), ("not_there", "leads nowhere")])
def test_broken_rules_are_left_out_with_one_warning_and_the_primitive_works(site, which, message):
    site.toy("toy-pack")
    add_rules(site, which)
    out = site.run("""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(float(lax.toy(1.0)), float(lax.toy(2.0)))
        print(len(caught), caught[0].category.__name__, caught[0].message)
    """)
    assert out.startswith("2.0 4.0\n1 CorejaxWarning") and message in out and "rules-pack 0.3" in out


def test_rules_do_not_reach_a_local_primitive_of_the_same_name(site):
    site.toy("toy-pack")
    add_rules(site, "replaces")
    out = site.run(site.TOY + "toy = define(Toy('toy', 5.0))\nprint(float(toy(1.0)), toy.primitive.origin)")
    assert out.strip() == "5.0 defined in __main__"
