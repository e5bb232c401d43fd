"""Rules for primitives that another pack owns."""

from __future__ import annotations

import textwrap

import pytest

RULES = """
from corejax.plugin import hookimpl

class Adds:
    @hookimpl
    def dce(self, eqn, used_out):
        return [True], eqn

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
        print(find("toy").providers["dce"], find("toy").providers["impl"])
        import toy_pack
        print(toy_pack.toy.primitive.dce is not None)
    """)
    assert ["rules-pack 0.3 toy-pack 1.0", "True"] == out.splitlines()


def test_replacing_a_hook_needs_the_users_choice(site):
    site.toy("toy-pack")
    add_rules(site, "replaces")
    out = site.run("print(error(lambda: lax.toy(1.0)))")
    assert "PackError: toy.impl is provided by toy-pack 1.0 and by rules-pack 0.3" in out
    assert "choose with COREJAX_PREFER=rules-pack (or toy-pack)" in out
    assert site.run("print(float(lax.toy(1.0)))", COREJAX_PREFER="rules-pack").strip() == "100.0"
    assert site.run("print(float(lax.toy(1.0)))", COREJAX_PREFER="toy-pack").strip() == "2.0"
    explained = site.run("from corejax.inspect.cli import main; main(['explain', 'toy'])", COREJAX_PREFER="rules-pack")
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


# What a rule may be for

WAVE = """
    import numpy as np
    from corejax.base.avals import ShapedArray
    from corejax.plugin import define, hookimpl

    class Wave:
        name = "wave"
        {declared}

        @hookimpl
        def abstract_eval(self, avals, *, scale=1.0):
            return avals[0]

        @hookimpl
        def impl(self, args, *, scale):
            return np.sin(args[0] * scale)

        {more}

    wave = define(Wave())
"""

#: A plugin for each hook that the owner may lack. `MARK` is printed when the rule runs.
HOOKS = """
    import numpy as np
    import corejax as cj
    from corejax import lax
    from corejax.plugin import define, find, hookimpl, linear, partials

    def wave(x, scale):
        return lax.wave(x, scale=scale)

    class Jvp:
        @hookimpl
        def jvp(self, primals, tangents, *, scale):
            print("mark")
            return wave(primals[0], scale), lax.cos(primals[0] * scale) * scale * tangents[0]

    class Partials:
        jvp = partials(lambda x_dot, out, x, *, scale: lax.cos(x * scale) * scale * x_dot)

    class Vmap:
        @hookimpl
        def vmap(self, axis, args, dims, **params):
            print("mark")
            return find("wave").bind(args[0], **params), dims[0]

    class Decompose:
        @hookimpl
        def decompose(self, args, *, scale):
            return lax.sin(args[0] * scale)

    class Lowering:
        @hookimpl
        def xla_translation(self, ctx, args, *, scale):
            print("mark")
            return ctx.call(cj.make_jaxpr(lambda x: lax.sin(x * scale))(*ctx.avals_in).jaxpr, args)[0]

    class CpuLowering(Lowering):
        platform = "cpu"

    class GpuLowering(Lowering):
        platform = "gpu"

    class CudaLowering(Lowering):
        platform = "cuda"

    class Last:
        @hookimpl(trylast=True)
        def impl(self, args, *, scale):
            return args[0] * 0.0 + 7.0

        @hookimpl(trylast=True)
        def vmap(self, axis, args, dims, *, scale):
            print("mark")
            return wave(args[0], scale), dims[0]

    class First:
        @hookimpl(tryfirst=True)
        def impl(self, args, *, scale):
            return args[0] * 0.0 + 7.0

    class Declines:
        @hookimpl
        def impl(self, args, *, scale):
            return None if args[0].ndim else np.float64(7.0)

    class Doubles:
        @hookimpl(wrapper=True)
        def impl(self, args):
            return 2.0 * (yield)

    class AddsOne:
        @hookimpl(wrapper=True)
        def impl(self, args, *, scale):
            return 1.0 + (yield)

    class WrapsLowering:
        @hookimpl(wrapper=True)
        def xla_translation(self, ctx, args):
            print("wrapped on", ctx.platform)
            return (yield)

    class WrapsOnGpu(WrapsLowering):
        platform = "gpu"

    class WrapsNothing:
        @hookimpl(wrapper=True)
        def dce(self, eqn, used_out):
            return (yield)

        @hookimpl
        def pretty(self, *, scale):
            return {"half": True}

    class StrangeParam:
        @hookimpl
        def jvp(self, primals, tangents, *, frequency):
            return None

        @hookimpl
        def pretty(self, *, scale):
            return {"half": True}

    class Named(Vmap):
        name = "wave"

    class Misnamed(Vmap):
        name = "wive"

    class Property:
        @property
        def vmap(self):
            raise RuntimeError("odd")

    class Platforms(Lowering):
        platform = "cdua"

    class NoLowering(Jvp):
        platform = "cpu"

    class Typed:
        @hookimpl
        def abstract_eval(self, avals, *, other):
            return avals[0]

    for kind in [value for value in vars().copy().values() if isinstance(value, type)]:
        vars()[kind.__name__.lower()] = kind()
    handle = define(type("Handle", (Decompose,), {"name": "handle"})())
    kind = Jvp
"""


def wave(site, more="", declared=""):
    site.pack("wave-pack", {"primitives": {"wave": "wave_pack:wave"}},
              {"wave_pack": WAVE.format(more=more, declared=declared)}, "2.0")


def hooks(site, *which, pack="hooks-pack", name="wave"):
    module = pack.replace("-", "_")
    site.pack(pack, {"rules": {f"{name}:{one}": f"{module}:{one}" for one in which}}, {module: HOOKS}, "0.3")


BASIC = "corejax-lax-basic,corejax-control-flow,corejax-reductions"


def run(site, code, **environment):
    return site.run("import corejax as cj\n" + textwrap.dedent(code),
                    **{"COREJAX_PACKS": ",".join([*site.names, BASIC]), **environment})


USES = {
    "jvp": "cj.jvp(lambda x: lax.wave(x, scale=2.0), (X,), (X,))[1], np.cos(X * 2.0) * 2.0 * X",
    "partials": "cj.jvp(lambda x: lax.wave(x, scale=2.0), (X,), (X,))[1], np.cos(X * 2.0) * 2.0 * X",
    "vmap": "cj.vmap(lambda x: lax.wave(x, scale=2.0))(X), np.sin(X * 2.0)",
    "decompose": "cj.grad(lambda x: cj.jit(cj.vmap(lambda x: lax.wave(x, scale=2.)))(x).sum())(X), np.cos(X * 2.) * 2.",
    "lowering": "cj.jit(lambda x: lax.wave(x, scale=2.0))(X), np.sin(X * 2.0)",
    "cpulowering": "cj.jit(lambda x: lax.wave(x, scale=2.0))(X), np.sin(X * 2.0)",
}


@pytest.mark.parametrize("which", USES)
def test_a_pack_adds_any_hook_that_the_owner_lacks(site, which):
    wave(site)
    hooks(site, which)
    out = run(site, f"""
        X = np.arange(3.0)
        with cj.config(fallbacks="error"):
            got, expected = {USES[which]}
        np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12)
    """)
    assert ([] if which in ("partials", "decompose") else ["mark"]) == sorted(set(out.splitlines()))


def test_a_transpose_is_added_to_a_linear_primitive(site):
    wave(site, declared="linear = (0,)")
    site.pack("back-pack", {"rules": {"wave": "back_pack:back"}}, {"back_pack": """
        from corejax.plugin import hookimpl
        class Back:
            @hookimpl
            def transpose(self, cotangents, args, *, scale):
                return [cotangents * scale]
        back = Back()
    """})
    out = run(site, "print(cj.vjp(lambda x: lax.wave(x, scale=3.0), np.ones(2))[1](np.ones(2))[0])")
    assert "[3. 3.]" == out.strip()


def test_added_rules_may_not_change_what_params_there_are(site):
    site.toy("toy-pack")
    wave(site)
    hooks(site, "strangeparam", "typed")
    out = run(site, """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(sorted(find("wave").params), float(lax.wave(0.0)), str(cj.make_jaxpr(lax.wave)(0.0)))
        print(*[w.message for w in caught])
    """)
    assert out.startswith("['scale'] 0.0") and "half" not in out  # all of the plugin is left out, not a part of it
    assert "wave.jvp (hooks-pack 0.3): it reads a param 'frequency' that the primitive doesn't have" in out
    assert "wave.abstract_eval (hooks-pack 0.3): it reads a param 'other'" in out and "params among: scale" in out


@pytest.mark.parametrize(("which", "problem"), [
    ("wrapsnothing", "wave.dce (hooks-pack 0.3): it wraps a rule that doesn't exist"),
    ("misnamed", "the rules and their entry point name different primitives"),
    ("property", "odd"), ("platforms", "there is no platform 'cdua'"), ("nolowering", "no lowering for it"),
    ("handle", "a primitive's function provides no rules"), ("kind", "a plugin must be an instance, not a class")])
def test_wrong_rules_are_left_out_whole_with_one_warning(site, which, problem):
    wave(site)
    hooks(site, which)
    out = run(site, """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(float(lax.wave(0.0)), float(lax.wave(0.0)), "half" in str(cj.make_jaxpr(lax.wave)(0.0)))
        print(len(caught), caught[0].message, caught[0].filename, caught[0].lineno)
        print(cj.plugins.explain("wave"))
    """)
    assert out.startswith("0.0 0.0 False\n1 rules of hooks-pack 0.3 for wave are left out.") and problem in out
    assert "left out: the rules of hooks-pack 0.3" in out


def test_rules_may_name_their_primitive(site):
    wave(site)
    hooks(site, "named")
    assert "mark" == run(site, "cj.vmap(lax.wave)(np.ones(2))").strip()


def test_one_object_twice_is_reported_and_counts_once(site):
    wave(site)
    site.pack("twice-pack", {"rules": {"wave:a": "twice_pack:vmap", "wave:b": "twice_pack:vmap"}},
              {"twice_pack": HOOKS})
    out = run(site, """
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cj.vmap(lax.wave)(np.ones(2))
        print(*[w.message for w in caught])
    """)
    assert out.startswith("mark\nrules of twice-pack 1.0 for wave are left out.")
    assert "the same object provides rules twice" in out


# Order

def test_a_lowering_for_one_device_family_comes_after_one_for_the_device_itself(site):
    wave(site)
    hooks(site, "gpulowering", "lowering")
    hooks(site, "cudalowering", pack="cuda-pack")
    out = run(site, """
        wave = find("wave")
        for platform in ("cpu", "gpu", "cuda", "rocm", "tpu"):
            print(platform, wave.providers.get(f"xla_translation on {platform}", wave.providers["xla_translation"]))
        print(wave.lowering("rocm") is wave.lowering("gpu"), wave.lowering("cuda") is wave.lowering("gpu"),
              wave.lowering("tpu") is wave.lowering("cpu"))
        hooks = cj.plugins.explain(wave).hooks
        print(hooks["xla_translation on rocm"].why, hooks["xla_translation on cuda"].provider)
    """).splitlines()
    assert ["cpu hooks-pack 0.3", "gpu hooks-pack 0.3", "cuda cuda-pack 0.3", "rocm hooks-pack 0.3",
            "tpu hooks-pack 0.3", "True False True"] == out[:6]
    assert "as it is for gpu cuda-pack 0.3" == out[-1]


def test_packs_compete_for_a_platform_too(site):
    wave(site)
    hooks(site, "cpulowering")
    hooks(site, "cpulowering", pack="other-pack")
    code = "print(error(lambda: lax.wave(1.0)))"
    assert "wave.xla_translation on cpu is provided by" in run(site, code)
    assert "mark" in run(site, "cj.jit(lax.wave)(1.0)", COREJAX_PREFER="other-pack")


def test_trylast_never_replaces_and_fills_in(site):
    wave(site)
    hooks(site, "last")
    out = run(site, """
        print(float(lax.wave(0.0)), cj.vmap(lax.wave)(np.zeros(2)))
        hooks = cj.plugins.explain("wave").hooks
        print(hooks["impl"].provider, hooks["impl"].why, hooks["impl"].lost[0].split(" at ")[0])
        print(hooks["vmap"].provider, hooks["vmap"].why)
    """).splitlines()
    assert "0.0 [0. 0.]" == out[1] and "mark" == out[0]
    assert "wave-pack 2.0 the others are marked trylast asked only where that returns None: hooks-pack 0.3" in out
    assert "hooks-pack 0.3 added where there was none" in out


def test_an_owners_rule_that_is_marked_trylast_may_be_replaced_by_anyone(site):
    wave(site, more="""
        @hookimpl(trylast=True)
        def vmap(self, axis, args, dims, *, scale):
            return "never"
    """.strip())
    hooks(site, "vmap")
    assert "mark" == run(site, "cj.vmap(lax.wave)(np.zeros(2))").strip()


def test_tryfirst_does_not_decide_between_packs(site):
    wave(site)
    hooks(site, "first")
    assert "wave.impl is provided by wave-pack 2.0 and by hooks-pack 0.3" in run(
        site, "print(error(lambda: lax.wave(1.0)))")


def test_plugins_of_one_pack_come_in_pluggys_order(site):
    wave(site)
    hooks(site, "first", "declines")
    assert "7.0" == run(site, "print(float(lax.wave(1.0)))", COREJAX_PREFER="hooks-pack").strip()


def test_a_preferred_rule_that_returns_none_leaves_it_to_the_next(site):
    wave(site)
    hooks(site, "declines")
    out = run(site, "print(float(lax.wave(0.0)), lax.wave(np.zeros(2)))", COREJAX_PREFER="hooks-pack")
    assert "7.0 [0. 0.]" == out.strip()


def test_wrappers_of_several_packs_nest_and_need_no_choice(site):
    wave(site)
    hooks(site, "doubles")
    hooks(site, "addsone", pack="plus-pack")
    out = run(site, """
        print(float(lax.wave(0.0)), find("wave").providers["impl"])
        print(cj.plugins.explain("wave").hooks["impl"].wrappers)
    """)
    assert out.startswith(("1.0 ", "2.0 "))  # by whether the sum or the product comes first
    assert "wrapped by plus-pack 0.3" in out and "wrapped by hooks-pack 0.3" in out


def test_a_wrapper_goes_around_the_lowerings_of_its_platform(site):
    wave(site)
    hooks(site, "cpulowering", "wrapslowering", "wrapsongpu")
    out = run(site, """
        cj.jit(lax.wave)(1.0)
        providers = find("wave").providers
        for platform in ("cpu", "gpu", "rocm"):
            print(providers[f"xla_translation on {platform}"])
        print(providers["xla_translation"])
    """)
    assert ["wrapped on cpu", "mark", "hooks-pack 0.3, wrapped by hooks-pack 0.3"] == out.splitlines()[:3]
    twice = "derived, wrapped by hooks-pack 0.3, wrapped by hooks-pack 0.3"
    assert [twice, twice, "derived, wrapped by hooks-pack 0.3"] == out.splitlines()[3:]


# Nobody's primitives

def test_rules_for_a_primitive_that_nobody_provides_are_told_once_and_listed(site):
    site.toy("toy-pack")
    add_rules(site, "adds", name="tow:more")
    out = site.run("""
        import corejax as cj
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lax.toy(1.0), lax.toy(1.0)
        print([str(w.message) for w in caught])
        cj.plugins.packs()
        cj.plugins.explain("tow")
    """)
    told = "rules-pack 0.3 has rules for the primitive 'tow', which no installed pack provides: they do nothing."
    assert 1 == out.count(told)
    assert "rules-pack 0.3: its rules for tow do nothing, as no installed pack provides that primitive; did you" in out
    assert "tow (nobody): a primitive, which no installed pack provides" in out and "mean 'toy'?" in out


def test_rules_for_primitives_of_excluded_packs_are_no_news(site):
    site.toy("toy-pack")
    site.toy("other-pack", "other")
    add_rules(site, "adds")
    out = site.run("""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lax.other(1.0)
        print(len(caught))
    """, COREJAX_DISABLE_PACKS="toy-pack")
    assert "0" == out.strip()


# Without an entry point

def test_extend_adds_rules_before_the_first_use_and_refuses_afterwards(site):
    wave(site)
    out = run(site, """
        from types import SimpleNamespace as Namespace
        from corejax.plugin import extend
        class Vmap:
            @hookimpl
            def vmap(self, axis, args, dims, *, scale):
                print("mark")
                return lax.wave(args[0], scale=scale), dims[0]
        extend("wave", Vmap())
        cj.plugins.explain("wave").hooks  # looking fixes nothing
        extend(lax.wave, Namespace(impl=hookimpl(lambda args, *, scale: np.sin(args[0] * scale))), replace=True)
        print(cj.vmap(lax.wave)(np.zeros(2)), find("wave").providers["vmap"])
        print(error(lambda: extend("wave", Vmap())))
        print(error(lambda: extend(3, Vmap())))
        print(error(lambda: extend("wive", Vmap())))
    """)
    lines = out.splitlines()
    assert "mark" in lines and "[0. 0.] extended in __main__" in lines
    assert "CorejaxRuntimeError: wave (wave-pack 2.0) can't be extended any more: it has been used" in lines
    assert "there is no primitive to extend" in out and "did you mean 'wave'?" in out


def test_extend_replaces_only_on_demand_and_leaves_nothing_behind_when_it_fails(site):
    wave(site)
    out = run(site, """
        from corejax.plugin import extend
        class Seven:
            @hookimpl
            def impl(self, args, *, scale):
                return args[0] * 0.0 + 7.0
        class Wrong:
            @hookimpl
            def vmpa(self, axis, args, dims):
                return None
        print(error(lambda: extend("wave", Wrong())))
        print(error(lambda: extend("wave", Seven())))
        print(float(lax.wave(0.0)))
    """)
    assert "did you mean 'vmap'?" in out and "wave.impl is provided by wave-pack 2.0 and by extended in __main__" in out
    assert "pass replace=True to extend" in out and "0.0" == out.splitlines()[-1]
    out = run(site, """
        from corejax.plugin import extend
        class Seven:
            @hookimpl
            def impl(self, args, *, scale):
                return args[0] * 0.0 + 7.0
        for _ in range(2):  # a cell that is run again
            extend("wave", Seven(), replace=True)
        print(float(lax.wave(0.0)), cj.plugins.explain("wave").hooks["impl"].why)
    """)
    assert "7.0 chosen by extend(..., replace=True)" == out.splitlines()[-1]
