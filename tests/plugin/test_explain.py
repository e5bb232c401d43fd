"""`cj.plugins`: who provides what, and why it won."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxKeyError, CorejaxTypeError
from corejax.installed import groups, manifest
from corejax.plugin import HOOKS, define, factors, find, hookimpl, not_differentiable, not_linear


class Halved:
    name = "halved"

    @hookimpl
    def decompose(self, args, *, times=1):
        return args[0] / 2.0**times

    @hookimpl
    def impl(self, args, *, times):
        return args[0] * 0.5**times

    @hookimpl
    def dce(self, eqn, used_out):
        return [True], eqn


halved = define(Halved())


def line_of(method):
    return f"{__file__}:{method.__code__.co_firstlineno}"


def test_each_of_two_primitives_of_one_name_is_explained(site):
    site.toy("pack-a", factor=2.0)
    site.toy("pack-b", factor=3.0)
    out = site.run("""
        import corejax as cj, pack_a, pack_b
        for what in (pack_b.toy, pack_a.toy.primitive, "pack-a/toy", "Pack_B/toy"):
            cj.plugins.explain(what)
        with cj.plugins.prefer("pack-a"):
            for what in (pack_b.toy, pack_a.toy, "pack-b/toy"):
                cj.plugins.explain(what)
        print(error(lambda: cj.plugins.explain("pack-c/toy")))
    """)
    heads = [line for line in out.splitlines() if line.startswith("toy ")]
    assert ["b", "a", "a", "b", "b", "a", "b"] == [line[len("toy (pack-")] for line in heads]
    assert heads[5].endswith("chosen by cj.plugins.prefer") and "the primitive 'toy' of pack-c isn't installed" in out


def test_a_function_is_explained_beside_what_is_called_the_same_in_other_groups(site):
    site.toy("pack-a", "sine", factor=2.0)
    site.pack("pack-b", {"functions": {"sine": "pack_b:sine", "cj/top": "pack_b:sine"}},
              {"pack_b": "def sine(x): return x\n"})
    site.pack("pack-c", {"namespaces": {"top": "pack_c"}}, {"pack_c": ""})
    out = site.run("""
        import corejax as cj
        cj.plugins.explain("sine")
        cj.plugins.explain("cj/top")
        with cj.plugins.prefer("pack-a"):
            cj.plugins.explain("sine")
    """)
    heads = [line for line in out.splitlines() if line[0] != " " or "CAN'T BE USED" in line]
    assert ["sine (pack-a 1.0): a primitive, its only provider", "sine (pack-b 1.0 or pack-a 1.0): a function",
            "  CAN'T BE USED: the function 'sine' is provided more than once",
            "cj/top (pack-c 1.0 or pack-b 1.0): a function",
            "  CAN'T BE USED: the function 'cj/top' is provided more than once",
            "sine (pack-a 1.0): a primitive, its only provider",
            "sine (pack-a 1.0): a function, chosen by cj.plugins.prefer"] == heads
    assert "not used: pack-b 1.0, by cj.plugins.prefer" in out


def test_explain_prints_and_returns_an_object_with_a_short_repr(capsys):
    explained = cj.plugins.explain(halved)
    assert f"{explained}\n" == capsys.readouterr().out
    assert f"<explanation of halved: primitive of defined in {__name__}>" == repr(explained)
    assert str(explained).startswith(f"halved (defined in {__name__}): a primitive\n  at {__file__}:")
    assert "  params: times=1\n" in str(explained)


def test_each_hook_is_written_derived_or_absent_with_its_place():
    hooks = cj.plugins.explain(halved).hooks
    impl, jvp, dce, effects = [hooks[name] for name in ("impl", "jvp", "dce", "effects")]
    assert ("written", f"defined in {__name__}", line_of(Halved.impl)) == (impl.how, impl.provider, impl.where)
    assert ("derived", "from decompose", line_of(Halved.decompose)) == (jvp.how, jvp.what, jvp.where)
    assert ("written", "absent", "none") == (dce.how, effects.how, effects.what)
    assert all(hooks[name].how == "derived" for name in ("abstract_eval", "transpose", "vmap", "xla_translation"))


def test_looking_fixes_nothing():
    late = define(type("Late", (Halved,), {"name": "late"})())
    cj.plugins.explain(late)
    with pytest.raises(AttributeError):
        object.__getattribute__(late.primitive, "params")


def test_fallbacks_missing_rules_and_declarations_say_what_they_are():
    class Typed:
        name = "typed"
        jvp = not_differentiable("it counts")
        transpose = not_linear()

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            return args[0]

    class Growing(Typed):
        name = "growing"
        jvp = factors(lambda out, x: out)

    typed = define(Typed())
    hooks = cj.plugins.explain(typed).hooks
    assert ("declared", "not_differentiable('it counts')") == (hooks["jvp"].how, hooks["jvp"].what)
    assert ("declared", "factors(...)") == tuple(
        getattr(cj.plugins.explain(define(Growing())).hooks["jvp"], part) for part in ("how", "what"))
    assert ("fallback", "fallback") == (hooks["vmap"].how, hooks["xla_translation"].how)
    assert "one call for each slice" in hooks["vmap"].cost
    text = str(cj.plugins.explain(typed))
    assert "  vmap: fallback: it is mapped one slice at a time\n    costs: one call for each" in text
    assert "writing xla_translation, or decompose, removes it" in text
    del Typed.jvp, Typed.transpose
    hooks = cj.plugins.explain(define(Typed())).hooks
    assert ("missing", "missing") == (hooks["jvp"].how, hooks["transpose"].how)


def test_a_primitive_that_breaks_its_contract_is_explained_with_the_problem():
    broken = define(type("Broken", (), {"name": "broken", "abstract_eval": hookimpl(lambda self, avals: avals[0])})())
    with pytest.raises(TypeError, match="nothing says how to compute it"):
        broken(1.0)
    found = cj.plugins.explain(broken).found[0]
    assert "nothing says how to compute it" in found.problem and "CAN'T BE USED" in str(cj.plugins.explain(broken))


def test_what_is_installed_can_be_explained():
    for group in (groups.PRIMITIVES, groups.FUNCTIONS, groups.ROLES):
        for name in manifest.read().names(group)[::1 if group == groups.PRIMITIVES else 4]:
            explained = cj.plugins.explain(name)
            found, *more = [one for one in explained.found if one.kind == groups.noun(group) and one.name == name]
            assert not more or name in groups.TABLES
            assert found.problem is None, name
            assert ".py:" in found.where or group != groups.PRIMITIVES, name
    assert all(find(name).providers for name in manifest.read().names(groups.PRIMITIVES))


def test_what_is_explained_agrees_with_what_is_frozen():
    for name in manifest.read().names(groups.PRIMITIVES):
        providers, hooks = find(name).providers, cj.plugins.explain(name).hooks
        for hook in [each for each in hooks.values() if each.name.partition("@")[0] in HOOKS]:
            who = providers.get(hook.name)
            assert (hook.provider or ("derived" if hook.how in ("derived", "fallback", "missing") else None)) == who, (
                name, hook)


def test_a_name_stands_for_all_that_bears_it():
    explained = cj.plugins.explain("add")
    assert ["primitive", "function", "role"] == [one.kind for one in explained.found]
    assert "operators.add" == explained.found[2].name
    assert "arithmetic.py:" in explained.found[0].where  # the row of the table, not the family's class
    assert [explained.found[0].where] == [one.where for one in cj.plugins.explain(lax.add).found if one.hooks]
    assert ["operators.add"] == [one.name for one in cj.plugins.explain("operators.add").found]


@pytest.mark.parametrize(("name", "near"), [("sni", "'sin'"), ("acumulate", "'accumulate'"),
                                            ("whle_loop", "'while_loop'")])
def test_an_unknown_name_gets_a_suggestion_from_every_group(name, near):
    with pytest.raises(CorejaxKeyError, match=f"did you mean .*{near}"):
        cj.plugins.explain(name)


@pytest.mark.parametrize("what", [3, None, abs, Halved])
def test_what_has_no_name_is_refused(what):
    with pytest.raises(CorejaxTypeError, match="it is not something to explain"):
        cj.plugins.explain(what)


def test_listings_print_and_return_rows(capsys):
    packs = cj.plugins.packs()
    assert f"{packs}\n" == capsys.readouterr().out
    basic = next(row for pack, row in packs.rows.items() if pack.startswith("corejax-lax-basic"))
    assert basic["primitives"] > 50
    primitives = cj.plugins.primitives()
    assert "sin" in next(names for pack, names in primitives.rows.items() if pack.startswith("corejax-lax-basic"))
    assert f"<{sum(map(len, primitives.rows.values()))} primitives>" == repr(primitives)


def test_the_command_line_prints_the_same():
    command = [sys.executable, "-m", "corejax", "explain", "sin"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"{cj.plugins.explain('sin')}\n" == done.stdout


def test_asking_for_plugins_loads_neither_pluggy_nor_metadata_nor_a_pack():
    code = """
        import corejax as cj, sys
        cj.plugins.explain
        print(*sorted({name.partition(".")[0] for name in sys.modules} & {"pluggy", "importlib_metadata"}))
        cj.plugins.primitives()
        assert not [name for name in sys.modules if name.startswith("corejax_")]
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert "" == done.stdout.splitlines()[0]


# Several packs

RULES = """
from corejax.plugin import hookimpl

def impl(args):
    return args[0] * 100.0

@hookimpl(wrapper=True)
def around(args):
    return (yield)

def cpu(ctx, args):
    return args[0]

def bad(axis, args, dims):
    return None
"""

HOOK_OF = {"impl": "impl", "around": "impl", "cpu": "xla_translation@cpu", "bad": "vmpa"}


def rules(site, which, pack):
    module = pack.replace("-", "_")
    site.pack(pack, {"rules": {f"toy-pack/toy:{HOOK_OF[which]}": f"{module}:{which}"}}, {module: RULES}, "0.3")


EXPLAIN = "import corejax as cj; cj.plugins.explain('toy')"


def test_winners_and_losers_are_named_with_the_reason(site):
    site.toy("toy-pack")
    rules(site, "impl", "fast-pack")
    rules(site, "around", "log-pack")
    rules(site, "cpu", "cpu-pack")
    rules(site, "bad", "bad-pack")
    rules(site, "impl", "unwanted-pack")
    out = site.run(EXPLAIN, COREJAX_PREFER="fast-pack,log-pack", COREJAX_DISABLE_PACKS="unwanted-pack")
    assert "toy (toy-pack 1.0): a primitive, its only provider" in out
    assert "  impl: fast-pack 0.3, written at " in out and "fast_pack.py:4; chosen by COREJAX_PREFER\n" in out
    assert "    wrapped by: log-pack 0.3 at " in out
    assert "    asked only where that returns None: toy-pack 1.0 at " in out
    assert "  xla_translation@cpu: cpu-pack 0.3, written at " in out and "; added where there was none" in out
    assert "  left out: the rules of bad-pack 0.3: toy.vmpa (bad-pack 0.3): 'vmpa' is not a hook" in out
    assert "  not used: rules of unwanted-pack 0.3, excluded by COREJAX_PACKS or COREJAX_DISABLE_PACKS" in out


def test_conflicts_are_explained_instead_of_raised(site):
    site.toy("toy-pack")
    rules(site, "cpu", "one-pack")
    rules(site, "cpu", "two-pack")
    rules(site, "impl", "fast-pack")
    out = site.run(EXPLAIN)
    assert "CAN'T BE USED" not in out
    assert "  xla_translation@cpu: conflict: toy.xla_translation@cpu is provided by " in out and "; choose with" in out
    assert "  impl: toy-pack 1.0, written at" in out
    assert "    not taken, as nobody chose it: fast-pack 0.3 at " in out and "COREJAX_PREFER=fast-pack takes it" in out


def test_two_providers_of_a_primitive_are_explained(site):
    site.toy("pack-a", factor=2.0)
    site.toy("pack-b", factor=3.0)
    assert "toy (pack-a 1.0 or pack-b 1.0): a primitive\n  CAN'T BE USED: the primitive 'toy' is provided" in site.run(
        EXPLAIN)
    out = site.run(EXPLAIN, COREJAX_PREFER="pack-b")
    assert "toy (pack-b 1.0): a primitive, chosen by COREJAX_PREFER" in out
    assert "  not used: pack-a 1.0, by COREJAX_PREFER" in out
    out = site.run(EXPLAIN, COREJAX_DISABLE_PACKS="pack-b")
    assert "  not used: pack-b 1.0, excluded by COREJAX_PACKS" in out


def test_a_pack_that_can_not_be_imported_is_explained(site):
    site.pack("sad-pack", {"primitives": {"toy": "sad_pack:toy"}, "roles": {"zeros": "sad_pack:zeros"}},
              {"sad_pack": "raise ZeroDivisionError('by design')"})
    out = site.run(EXPLAIN + "; cj.plugins.explain('zeros')")
    assert "toy (sad-pack 1.0): a primitive\n  CAN'T BE USED: the pack sad-pack 1.0 can't be imported" in out
    assert "zeros (sad-pack 1.0): a role\n  CAN'T BE USED" in out and "ZeroDivisionError: by design" in out
