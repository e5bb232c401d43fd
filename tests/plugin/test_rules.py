"""Rules for primitives that another pack owns: for whose primitive they are, and which of them count."""

from __future__ import annotations

import textwrap

import pytest

#: A rule for each hook that the owner may lack or have. "mark" is printed when it runs, "imported" when it is imported.
RULES = """
    import functools
    import numpy as np
    import corejax as cj
    from corejax import lax
    from corejax.plugin import define, find, hookimpl, linear, partials
    print("imported")

    def wave(x, scale):
        return lax.wave(x, scale=scale)

    def jvp(primals, tangents, *, scale):
        print("mark")
        return wave(primals[0], scale), lax.cos(primals[0] * scale) * scale * tangents[0]

    partial = partials(lambda x_dot, out, x, *, scale: lax.cos(x * scale) * scale * x_dot)

    of_one, of_two = partials(None), partials(None, None)

    def vmap(axis, args, dims, **params):
        print("mark")
        return find("wave").bind(args[0], **params), dims[0]

    def transpose(cotangents, args, *, scale):
        return [cotangents * scale]

    def decompose(args, *, scale):
        return lax.sin(args[0] * scale)

    def lowering(ctx, args, *, scale):
        print("mark")
        return ctx.call(cj.make_jaxpr(lambda x: lax.sin(x * scale))(*ctx.avals_in).jaxpr, args)[0]

    def cosine(ctx, args, *, scale):
        return ctx.call(cj.make_jaxpr(lambda x: lax.cos(x * scale))(*ctx.avals_in).jaxpr, args)[0]

    def seven(args, *, scale):
        return args[0] * 0.0 + 7.0

    def declines(args, *, scale):
        return None if args[0].ndim else np.float64(7.0)

    def never(ctx, args):
        return None

    @hookimpl(wrapper=True)
    def doubles(args):
        return 2.0 * (yield)

    @hookimpl(wrapper=True)
    def adds_one(args, *, scale):
        return 1.0 + (yield)

    @hookimpl(wrapper=True)
    def ignores(args):
        yield
        return args[0] * 0.0

    @hookimpl(wrapper=True)
    def wraps_lowering(ctx, args):
        print("wrapped on", ctx.platform)
        return (yield)

    @hookimpl(wrapper=True)
    def wraps_nothing(eqn, used_out):
        return (yield)

    def dce(eqn, used_out):
        return [True], eqn

    def pretty(*, scale):
        return {"half": True}

    def strange_param(primals, tangents, *, frequency):
        return None

    class Methods:
        def vmap(self, axis, args, dims, *, scale):
            print("mark")
            return find("wave").bind(args[0], scale=scale), dims[0]

    methods = Methods()
    bound = functools.partial(vmap)
    table = {"wave": vmap}
    empty = {}
    handle = define(type("Handle", (), {"name": "handle", "decompose": hookimpl(lambda self, args: args[0])})())
    three = 3
"""

WAVE = """
    import numpy as np
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

LOWERED = """
        @hookimpl
        def xla_translation(self, ctx, args, *, scale):
            scaled = ctx.op("stablehlo.multiply", [args[0], ctx.constant(scale, ctx.avals_in[0])])
            return ctx.op("stablehlo.sine", [scaled])
""".strip()

BASIC = "corejax-lax-basic,corejax-control-flow,corejax-reductions,corejax-sorting"


def wave(site, more="", declared="", pack="wave-pack", version="2.0"):
    module = pack.replace("-", "_")
    site.pack(pack, {"primitives": {"wave": f"{module}:wave"}},
              {module: WAVE.format(more=more, declared=declared)}, version)


def rules(site, entries=None, pack="hooks-pack", requires=(), **named):
    """A pack with rules for `wave` of wave-pack: by hook, or by the whole name of the entry."""
    module = pack.replace("-", "_")
    entries = {**(entries or {}), **{f"wave-pack/wave:{hook}": rule for hook, rule in named.items()}}
    site.pack(pack, {"rules": {name: f"{module}:{rule}" for name, rule in entries.items()}}, {module: RULES}, "0.3",
              requires)


def run(site, code, **environment):
    return site.run("import corejax as cj\nX = np.arange(3.0)\n" + textwrap.dedent(code),
                    **{"COREJAX_PACKS": ",".join([*site.names, BASIC]), **environment})


def warned(site, code, **environment):
    """What is printed, and each warning as a line."""
    return run(site, "warnings.simplefilter('always')\nwith warnings.catch_warnings(record=True) as caught:\n" +
               textwrap.indent(textwrap.dedent(code), "    ") + "\nprint(*[w.message for w in caught], sep='\\n')",
               **environment)


# What is missing is added

USES = {
    "jvp": ("jvp", "cj.jvp(lambda x: lax.wave(x, scale=2.0), (X,), (X,))[1], np.cos(X * 2.0) * 2.0 * X"),
    "partial": ("jvp", "cj.jvp(lambda x: lax.wave(x, scale=2.0), (X,), (X,))[1], np.cos(X * 2.0) * 2.0 * X"),
    "vmap": ("vmap", "cj.vmap(lambda x: lax.wave(x, scale=2.0))(X), np.sin(X * 2.0)"),
    "methods.vmap": ("vmap", "cj.vmap(lambda x: lax.wave(x, scale=2.0))(X), np.sin(X * 2.0)"),
    "decompose": ("decompose", "cj.grad(lambda x: cj.jit(cj.vmap(lambda x: lax.wave(x, scale=2.)))(x).sum())(X),"
                  " np.cos(X * 2.) * 2."),
    "lowering": ("xla_translation", "cj.jit(lambda x: lax.wave(x, scale=2.0))(X), np.sin(X * 2.0)"),
    "lowering on cpu": ("xla_translation@cpu", "cj.jit(lambda x: lax.wave(x, scale=2.0))(X), np.sin(X * 2.0)"),
}


@pytest.mark.parametrize("which", USES)
def test_a_hook_that_the_owner_lacks_is_added_by_being_installed(site, which):
    hook, use = USES[which]
    wave(site)
    rules(site, {f"wave-pack/wave:{hook}": which.partition(" ")[0]})
    out = warned(site, f"""
        for _ in range(2):  # the first use imports it
            with cj.config(fallbacks="error"):
                got, expected = {use}
            np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-12)
    """)
    marked = [] if which in ("partial", "decompose") else ["mark"]
    assert ["", "imported", *marked] == sorted(set(out.splitlines()))


def test_a_rule_is_imported_when_its_hook_is_used_and_not_before(site):
    wave(site)
    rules(site, jvp="jvp")
    out = run(site, """
        print(float(lax.wave(0.0, scale=1.0)), cj.make_jaxpr(cj.jit(lax.wave))(0.0).jaxpr.eqns[0].primitive)
        print(cj.vmap(lambda x: x * lax.wave(1.0))(X).shape, find("wave").providers["jvp"])
        print("now")
        print(cj.grad(lax.wave)(0.0))
    """, COREJAX_FALLBACKS="silent").splitlines()
    assert "hooks-pack 0.3" in out[1] and ["now", "imported", "mark", "1.0"] == out[2:]


def test_sixteen_threads_that_need_a_rule_import_it_once(site):
    wave(site)
    rules(site, jvp="jvp")
    out = run(site, """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(16) as pool:
            print(set(pool.map(lambda _: float(cj.grad(lax.wave)(0.0)), range(64))))
    """)
    assert 1 == out.count("imported") and out.endswith("{1.0}\n")


def test_a_transpose_is_added_to_a_linear_primitive(site):
    wave(site, declared="linear = (0,)")
    rules(site, transpose="transpose")
    out = run(site, "print(cj.vjp(lambda x: lax.wave(x, scale=3.0), np.ones(2))[1](np.ones(2))[0])")
    assert ["[3. 3.]"] == out_of(out)


def out_of(text):
    return [line for line in text.splitlines() if line != "imported"]


@pytest.mark.parametrize("declared", ["jvp = not_differentiable('nobody has worked it out')", ""])
def test_a_refusal_is_no_answer_so_a_derivative_is_added(site, declared):
    site.pack("wave-pack", {"primitives": {"wave": "wave_pack:wave"}}, {"wave_pack": WAVE.format(
        more="", declared=declared).replace("hookimpl\n", "hookimpl, not_differentiable\n", 1)}, "2.0")
    rules(site, jvp="jvp")
    assert ["mark", "1.0"] == out_of(run(site, "print(cj.grad(lax.wave)(0.0))"))


def test_two_packs_that_add_the_same_hook_conflict_where_it_is_used_and_nowhere_else(site):
    wave(site)
    rules(site, jvp="jvp", dce="dce")
    rules(site, pack="other-pack", jvp="partial", dce="dce")
    out = run(site, """
        print(float(lax.wave(0.0)), float(cj.jit(lambda x: lax.abs(x))(1.0)))
        print(error(lambda: cj.grad(lax.wave)(0.0)))
        print(cj.plugins.explain("wave").hooks["jvp"].how)
    """, COREJAX_FALLBACKS="silent")
    assert "0.0 1.0" in out and "PackError: wave.jvp is provided by " in out and "hooks-pack 0.3" in out
    assert "other-pack 0.3" in out and "cj.plugins.prefer(" in out and "conflict" == out.splitlines()[-1]
    chosen = run(site, "print(cj.grad(lax.wave)(0.0))", COREJAX_PREFER="other-pack")
    assert ["1.0"] == out_of(chosen)


def test_a_table_has_rules_for_many_primitives_of_one_distribution(site):
    wave(site)
    site.toy("toy-pack")
    rules(site, {"wave-pack/*:vmap": "table", "toy-pack/*:vmap": "empty"})
    out = warned(site, """
        print(cj.vmap(lax.wave)(np.zeros(2)))
        print(cj.vmap(lax.toy)(np.ones(2)))
    """)
    assert ["mark", "[0. 0.]", "[2. 2.]"] == out_of(out)[:3]
    assert "toy (toy-pack 1.0) has no vmap rule: it is mapped one slice at a time" in out


# What there is, is not changed unasked

ERF = """
    from corejax.plugin import define, hookimpl
    import numpy as np
    class Erf:
        name = "wave"
        @hookimpl
        def abstract_eval(self, avals, *, scale=1.0):
            return avals[0]
        @hookimpl
        def impl(self, args, *, scale):
            return args[0] * 0.0 + {value}
        @hookimpl
        def xla_translation(self, ctx, args, *, scale):
            return ctx.constant({value}, ctx.avals_out[0])
    wave = define(Erf())
"""


def erf(site, pack, value):
    module = pack.replace("-", "_")
    site.pack(pack, {"primitives": {"wave": f"{module}:wave"}}, {module: ERF.format(value=value)})


def test_a_rule_for_one_distributions_primitive_says_nothing_of_anothers(site):
    erf(site, "their-pack", 0.52034)
    rules(site, {"wave-pack/wave:xla_translation@cpu": "cosine", "wave-pack/wave:vmap": "vmap"})
    out = warned(site, "print(float(cj.jit(lax.wave)(0.0)), 'hooks-pack' in str(cj.plugins.explain('wave')))",
                 COREJAX_FALLBACKS="silent")
    assert ["0.52034 False", ""] == out.splitlines()[-2:]


UNASKED = {
    "impl": ("impl", "seven", "float(lax.wave(0.0))", "0.0", "7.0"),
    "wrapper": ("impl", "ignores", "float(lax.wave(1.0) + 1.0)", "1.8414709848078965", "1.0"),
    "lowering": ("xla_translation@cpu", "cosine", "float(cj.jit(lax.wave)(0.0))", "0.0", "1.0"),
}


@pytest.mark.parametrize("which", UNASKED)
def test_what_would_change_an_answer_is_left_until_the_user_chooses_it(site, which):
    hook, rule, use, owners, theirs = UNASKED[which]
    wave(site, more=LOWERED)
    rules(site, {f"wave-pack/wave:{hook}": rule})
    out = warned(site, f"print({use}); print({use})")
    assert [owners, owners] == out.splitlines()[:2] and "imported" not in out
    assert 1 == out.count(f"hooks-pack 0.3 has a rule for wave.{hook}, which wave-pack 2.0 answers itself"), out
    assert "COREJAX_PREFER=hooks-pack or cj.plugins.prefer('hooks-pack') takes the pack's rules" in out
    taking = ("hooks-pack", "hooks-pack/wave", f"hooks-pack/wave:{hook}", "wave-pack, hooks-pack/wave")
    leaving = ("wave-pack", "wave-pack,hooks-pack", f"hooks-pack, wave-pack/wave:{hook.partition('@')[0]}")
    out = run(site, f"""
        import os
        for choices in {(*taking, *leaving)!r}:
            os.environ["COREJAX_PREFER"] = choices
            manifest._kept.clear()  # as in a new process
            cj.plugins.prefer()
            print({use})
    """)
    assert [theirs] * len(taking) + [owners] * len(leaving) == out_of(out)


@pytest.mark.parametrize("more", [LOWERED, "@hookimpl\n        def decompose(self, args, *, scale):\n"
                                           "            from corejax import lax; return lax.sin(args[0] * scale)"])
def test_a_lowering_for_a_platform_that_returns_none_leaves_it_to_the_others(site, more):
    wave(site, more=more)
    rules(site, {"wave-pack/wave:xla_translation@cpu": "never", "wave-pack/wave:xla_translation@cuda": "never",
                 "wave-pack/wave:xla_translation@gpu": "cosine"})
    out = run(site, """
        from types import SimpleNamespace
        ctx = SimpleNamespace(call=lambda jaxpr, args: ["of the family"], avals_in=[cj.core.aval_of(1.0)])
        print(float(cj.jit(lax.wave)(0.5)) == float(np.sin(0.5)))
        print(find("wave").lowering("cuda")(ctx, (), scale=1.0))
    """, COREJAX_PREFER="hooks-pack")
    assert ["True", "of the family"] == out_of(out)


def test_what_is_derived_is_an_answer_and_a_slow_substitute_is_none(site):
    site.pack("wave-pack", {"primitives": {"wave": "wave_pack:wave"}}, {"wave_pack": """
        from corejax import lax
        from corejax.plugin import define, hookimpl
        class Wave:
            name = "wave"
            @hookimpl
            def decompose(self, args, *, scale=1.0):
                return lax.sin(args[0] * scale)
        wave = define(Wave())
    """}, "2.0")
    rules(site, vmap="vmap", jvp="jvp", dce="dce")
    out = warned(site, "print(cj.vmap(lax.wave)(np.zeros(2)), cj.grad(lax.wave)(0.0), find('wave').dce is None)")
    assert "mark" not in out and "[0. 0.] 1.0 False" in out and "nobody chose it" in out


def test_explain_shows_what_was_not_taken_and_how_to_take_it(site):
    wave(site, more=LOWERED)
    rules(site, {"wave-pack/wave:impl": "seven", "wave-pack/wave:xla_translation@cpu": "cosine"})
    out = run(site, "cj.plugins.explain('wave')")
    assert "    not taken, as nobody chose it: hooks-pack 0.3 at " in out
    assert "hooks_pack.py" in out and "COREJAX_PREFER=hooks-pack takes it" in out
    out = run(site, "cj.plugins.explain('wave')", COREJAX_PREFER="hooks-pack/wave:impl")
    assert "impl: hooks-pack 0.3, written at" in out and "chosen by COREJAX_PREFER" in out


def test_explain_shows_where_lowerings_go_on_and_declarations_and_rows_are(site):
    site.pack("wave-pack", {"primitives": {"wave": "wave_pack:wave"}}, {"wave_pack": """
        import numpy as np
        from corejax.plugin import define, factors, families
        slope = factors(lambda out, x: 1.0 - x)
        wave = define(families.unary("wave", np.sin, hlo="sine", dtypes="f", jvp=slope, doc="A wave."))
    """}, "2.0")
    rules(site, {"wave-pack/wave:xla_translation@cpu": "never", "wave-pack/wave:jvp": "of_one"})
    out = run(site, "cj.plugins.explain('wave')", COREJAX_PREFER="hooks-pack")
    assert "jvp: hooks-pack 0.3, declared: partials(...) at hooks_pack:of_one; chosen by COREJAX_PREFER" in out, out
    assert 1 == out.count("    not used: wave-pack 2.0 at ") and "wave_pack.py:5" in out
    assert 1 == out.count("    asked only where that returns None: wave-pack 2.0 at ")
    assert "families" not in out


# prefer

def test_prefer_holds_from_the_call_on_also_for_what_was_used_and_compiled_before(site):
    wave(site, more=LOWERED)
    rules(site, {"wave-pack/wave:impl": "seven", "wave-pack/wave:xla_translation@cpu": "cosine"})
    out = out_of(run(site, """
        warnings.simplefilter("ignore")
        f = cj.jit(lax.wave)
        print(float(lax.wave(0.0)), float(f(0.0)))
        with cj.plugins.prefer("hooks-pack") as chosen:
            print(chosen, float(lax.wave(0.0)), float(f(0.0)), cj.plugins.explain("wave").hooks["impl"].why)
        print(float(lax.wave(0.0)), float(f(0.0)))
        cj.plugins.prefer("hooks-pack/wave:impl")
        print(float(lax.wave(0.0)), float(f(0.0)))
        cj.plugins.prefer("wave-pack/wave:impl")
        print(float(lax.wave(0.0)), float(f(0.0)))
    """))
    shown = [line for line in out if line[:1] in "07<"]
    assert ["0.0 0.0", "<prefer('hooks-pack')> 7.0 1.0 chosen by cj.plugins.prefer", "0.0 0.0", "7.0 0.0",
            "0.0 0.0"] == shown


def test_a_preference_is_taken_back_once_and_not_used_again(site):
    wave(site)
    rules(site, impl="seven")
    out = out_of(run(site, """
        warnings.simplefilter("ignore")
        first, second = cj.plugins.prefer("hooks-pack"), cj.plugins.prefer("hooks-pack/wave")
        with first:
            pass
        first.__exit__(None, None, None)
        print(float(lax.wave(0.0)))
        with second:
            pass
        print(float(lax.wave(0.0)), error(first.__enter__).splitlines()[0])
    """))
    assert ["7.0", "0.0 CorejaxRuntimeError: this preference has ended"] == out[:2]


def test_prefer_chooses_between_two_packs_with_one_primitive_before_and_after_its_use(site):
    site.toy("pack-a", factor=2.0)
    site.toy("pack-b", factor=3.0)
    out = run(site, """
        print(error(lambda: lax.toy).splitlines()[0])
        with cj.plugins.prefer("pack-a"):
            print(float(lax.toy(1.0)))
            with cj.plugins.prefer("pack-b/toy"):
                print(float(lax.toy(1.0)))
            print(float(lax.toy(1.0)))
        print(error(lambda: lax.toy).splitlines()[0])
    """).splitlines()
    assert ["2.0", "3.0", "2.0"] == out[1:4] and out[0] == out[4] and "provided more than once" in out[0]


@pytest.mark.parametrize(("choice", "said"), [
    ("'hoks-pack'", "prefer() names a pack that is not installed"), ("'hooks-pack/wive'", "did you mean 'wave'?"),
    ("'hooks-pack/wave:jvp'", "hooks-pack has no such rule for 'wave'"), ("'a b'", "prefer() can't be read"),
    ("3", "prefer takes names")])
def test_a_choice_of_what_is_not_there_is_an_error(site, choice, said):
    wave(site)
    rules(site, impl="seven")
    assert said in run(site, f"print(error(lambda: cj.plugins.prefer({choice})))")
    if choice != "3":
        assert said.replace("prefer()", "COREJAX_PREFER") in run(site, "print(error(lambda: lax.wave))",
                                                                 COREJAX_PREFER=choice.strip("'"))


ROUNDS = 5


def test_threads_go_on_while_another_prefers(site):
    wave(site, more=LOWERED)
    rules(site, impl="seven")
    out = run(site, """
        import threading
        warnings.simplefilter("ignore")
        seen, over = set(), threading.Event()
        def work():
            while not over.is_set():
                seen.add(float(lax.wave(0.0)))
        threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
        [thread.start() for thread in threads]
        for _ in range(ROUNDS):
            with cj.plugins.prefer("hooks-pack"):
                assert float(lax.wave(0.0)) == 7.0
            assert float(lax.wave(0.0)) == 0.0
        over.set()
        [thread.join() for thread in threads]
        print(sorted(seen))
    """.replace("ROUNDS", str(ROUNDS)))
    assert out_of(out)[0] in ("[0.0]", "[7.0]", "[0.0, 7.0]")  # by who had his turn when


def test_what_was_being_traced_or_compiled_while_a_user_came_to_prefer_another_rule_is_not_kept(site):
    more = """
        @hookimpl
        def xla_translation(self, ctx, args, *, scale):
            wait()
            return ctx.op("stablehlo.sine", args)

        @hookimpl
        def vmap(self, axis, args, dims, *, scale):
            wait()
            return wave(args[0], scale=scale), dims[0]
    """
    wave(site, more=more)
    with (site.folder / "wave_pack.py").open("a") as module:
        module.write("from threading import Event\nentered, gate = Event(), Event()\n"
                     "def wait():\n    entered.set()\n    gate.wait(9)\n")
    site.pack("hooks-pack", {"rules": {"wave-pack/wave:xla_translation": "hooks_pack:lower",
                                       "wave-pack/wave:vmap": "hooks_pack:vmap"}}, {"hooks_pack": """
        from corejax import lax
        def lower(ctx, args, *, scale):
            return ctx.op("stablehlo.cosine", args)
        def vmap(axis, args, dims, *, scale):
            return lax.wave(args[0] + 1.0, scale=scale), dims[0]
    """})
    out = run(site, """
        import threading, wave_pack
        warnings.simplefilter("ignore")
        @cj.jit
        def f(x):
            return lax.wave(x)
        @cj.jit
        def g(x):
            return cj.vmap(lax.wave)(x)
        on_device = cj.device_put(0.0)
        zeros = np.zeros(1)
        uses = {"compiled": lambda: f(0.0), "dispatched": lambda: lax.wave(on_device), "mapped": lambda: g(zeros)[0]}
        for name, use in uses.items():
            cj.clear_caches()
            wave_pack.entered.clear(), wave_pack.gate.clear()
            seen = []
            thread = threading.Thread(target=lambda: seen.append(float(use())))
            thread.start()
            assert wave_pack.entered.wait(9)
            with cj.plugins.prefer("hooks-pack"):
                wave_pack.gate.set()
                thread.join()
                print(name, seen, round(float(use()), 2), round(float(use()), 2))
            print(round(float(use()), 2))
    """)
    assert ["compiled [0.0] 1.0 1.0", "0.0", "dispatched [0.0] 1.0 1.0", "0.0"] == out_of(out)[:4]
    assert "0.54 0.54" in out and out.endswith("0.0\n")  # mapped by one rule, lowered by the other


def test_a_preferred_lowering_may_read_params_by_which_programs_were_not_told_apart_before(site):
    wave(site, more="""
        @hookimpl
        def xla_translation(self, ctx, args):
            return ctx.op("stablehlo.sine", args)
    """)
    rules(site, xla_translation="reads_scale")
    with (site.folder / "hooks_pack.py").open("a") as module:
        module.write("def reads_scale(ctx, args, *, scale):\n    return ctx.constant(scale, ctx.avals_in[0])\n")
    out = out_of(run(site, """
        from corejax.ir import jaxpr_as_fun
        warnings.simplefilter("ignore")
        programs = [cj.make_jaxpr(cj.jit(lambda x: lax.wave(x, scale=scale)))(0.0) for scale in (3.0, 4.0)]
        one, two = (cj.jit(jaxpr_as_fun(closed)) for closed in programs)
        print(float(one(0.0)[0]), float(two(0.0)[0]))
        with cj.plugins.prefer("hooks-pack"):
            print(float(one(0.0)[0]), float(two(0.0)[0]))
    """))
    assert ["0.0 0.0", "3.0 4.0"] == out[:2]


def test_a_pack_of_rules_that_is_reloaded_brings_its_new_ones(site):
    wave(site)
    site.pack("hooks-pack", {"rules": {"wave-pack/wave:jvp": "hooks_pack:jvp",
                                       "wave-pack/*:vmap": "hooks_pack.maps:table"},
                             "functions": {"half": "hooks_pack:half"}}, {"hooks_pack.__init__": """
        from corejax import lax
        def jvp(primals, tangents, *, scale):
            return lax.wave(primals[0], scale=scale), 2.0 * tangents[0]
        def half(x):
            return x * 2.0
    """, "hooks_pack.maps": """
        from corejax import lax
        def vmap(axis, args, dims, *, scale):
            return lax.wave(args[0], scale=scale) + 2.0, dims[0]
        table = {"wave": vmap}
    """})
    out = out_of(warned(site, """
        import importlib, pathlib, sys
        slope, mapped = cj.jit(lambda x: cj.jvp(lax.wave, (x,), (1.0,))[1]), cj.jit(cj.vmap(lax.wave))
        zero = np.zeros(1)
        def show():
            print(*map(float, [slope(0.0), mapped(zero)[0], cj.vmap(lax.wave)(zero)[0], lax.half(1.0)]))
        def rewrite(name, old, new):
            path = pathlib.Path(sys.modules[name].__file__)
            path.write_text(path.read_text().replace(old, new))
            importlib.reload(sys.modules[name])
        show()
        rewrite("hooks_pack", "2.0", "3.25")
        show()
        rewrite("hooks_pack.maps", "2.0", "4.125")
        show()
        loader = sys.modules["hooks_pack"].__loader__
        print(loader is sys.modules["hooks_pack"].__spec__.loader, vars(loader).keys() <= {"name", "path"})
        print(error(lambda: rewrite("hooks_pack", "3.25", "5.5\\n        1 +")).splitlines()[0])
    """))
    assert ["2.0 2.0 2.0 2.0", "3.25 2.0 2.0 3.25", "3.25 4.125 4.125 3.25", "True True"] == out[:4]
    assert out[4].startswith("IndentationError")
    assert 1 == sum("wave (wave-pack 2.0) has no xla_translation rule" in line for line in out)


# Wrappers, order, and what is chosen

def test_chosen_wrappers_of_several_packs_nest(site):
    wave(site)
    rules(site, impl="doubles")
    rules(site, pack="plus-pack", impl="adds_one")
    out = run(site, """
        print(float(lax.wave(0.0)), find("wave").providers["impl"])
        print(cj.plugins.explain("wave").hooks["impl"].wrappers)
    """, COREJAX_PREFER="hooks-pack,plus-pack")
    assert "1.0 " in out or "2.0 " in out  # by whether the sum or the product comes first
    assert "wrapped by plus-pack 0.3" in out and "wrapped by hooks-pack 0.3" in out


def test_a_chosen_wrapper_goes_around_the_lowerings_of_its_platform(site):
    wave(site)
    rules(site, {"wave-pack/wave:xla_translation@cpu": "lowering", "wave-pack/wave:xla_translation": "wraps_lowering",
                 "wave-pack/wave:xla_translation@gpu": "wraps_lowering"})
    out = out_of(run(site, """
        cj.jit(lax.wave)(1.0)
        providers = find("wave").providers
        for platform in ("cpu", "gpu", "rocm"):
            print(providers[f"xla_translation@{platform}"])
        print(providers["xla_translation"])
    """, COREJAX_PREFER="hooks-pack"))
    assert ["wrapped on cpu", "mark", "hooks-pack 0.3, wrapped by hooks-pack 0.3"] == out[:3]
    twice = "derived, wrapped by hooks-pack 0.3, wrapped by hooks-pack 0.3"
    assert [twice, twice, "derived, wrapped by hooks-pack 0.3"] == out[3:]


def test_a_lowering_for_one_device_family_comes_after_one_for_the_device_itself(site):
    wave(site)
    rules(site, {"wave-pack/wave:xla_translation@gpu": "lowering", "wave-pack/wave:xla_translation": "lowering"})
    rules(site, {"wave-pack/wave:xla_translation@cuda": "cosine"}, pack="cuda-pack")
    out = out_of(run(site, """
        wave = find("wave")
        for platform in ("cpu", "gpu", "cuda", "rocm", "tpu"):
            print(platform, wave.providers.get(f"xla_translation@{platform}", wave.providers["xla_translation"]))
        hooks = cj.plugins.explain(wave).hooks
        print(hooks["xla_translation@rocm"].why, hooks["xla_translation@cuda"].provider)
    """))
    assert ["cpu hooks-pack 0.3", "gpu hooks-pack 0.3", "cuda cuda-pack 0.3", "rocm hooks-pack 0.3",
            "tpu hooks-pack 0.3"] == out[:5]
    assert "as it is for gpu cuda-pack 0.3" == out[-1]


def test_a_preferred_rule_that_returns_none_leaves_it_to_the_owner(site):
    wave(site)
    rules(site, impl="declines")
    out = run(site, "print(float(lax.wave(0.0)), lax.wave(np.zeros(2)))", COREJAX_PREFER="hooks-pack")
    assert ["7.0 [0. 0.]"] == out_of(out)


def test_an_owners_rule_that_is_marked_trylast_may_be_replaced_by_anyone(site):
    wave(site, more="""
        @hookimpl(trylast=True)
        def vmap(self, axis, args, dims, *, scale):
            return "never"
    """.strip())
    rules(site, vmap="vmap")
    assert ["mark"] == out_of(run(site, "cj.vmap(lax.wave)(np.zeros(2))"))


# What is wrong with rules

WRONG = {
    "wave-pack/wave:vmpa = vmap": "'vmpa' is not a hook",
    "wave-pack/wave:vmap = not_there": "leads nowhere",
    "wave-pack/wave:vmap = handle": "it is not a rule",
    "wave-pack/wave:vmap = Methods": "it is not a rule",
    "wave-pack/wave:vmap = three": "it is not a rule",
    "wave-pack/wave:vmap = bound": "it is not a rule",
    "wave-pack/wave:vmap = jvp": "it takes an argument 'primals' that this hook isn't given",
    "wave-pack/wave:jvp = strange_param": "it reads a param 'frequency' that the primitive doesn't have",
    "wave-pack/wave:jvp = of_two": "declares derivatives for a different number of operands",
    "wave-pack/wave:vmap@cpu = vmap": "vmap is for every platform",
    "wave-pack/wave:xla_translation@cdua = lowering": "there is no platform 'cdua'",
    "wave-pack/*:vmap = vmap": "must lead to a table of rules",
}


@pytest.mark.parametrize("entry", WRONG)
def test_a_wrong_rule_is_left_out_with_one_warning_and_the_primitive_works(site, entry):
    wave(site, declared='operands = ("x",)')
    name, _, rule = entry.partition(" = ")
    rules(site, {name: rule})
    hook = "jvp" if "jvp" in name else "vmap"
    out = warned(site, f"""
        print(float(lax.wave(0.0)))
        for _ in range(2):
            try:
                {'cj.grad(lax.wave)(0.0)' if hook == 'jvp' else 'cj.vmap(lax.wave)(X)'}
            except CorejaxError as e:
                print(e)
        print("left out: the rules of hooks-pack 0.3" in str(cj.plugins.explain("wave")))
    """, COREJAX_FALLBACKS="silent")
    assert 1 == out.count("rules of hooks-pack 0.3 for wave are left out") and WRONG[entry] in out, out
    assert "True" in out


def test_of_a_wrapper_that_nobody_chose_it_is_not_said_that_there_is_an_answer(site):
    wave(site)
    rules(site, {"wave-pack/wave:vmap": "doubles"})
    with (site.folder / "hooks_pack.py").open("a") as module:
        module.write("@hookimpl(wrapper=True)\ndef doubles(axis, args, dims):\n    return (yield)\n")
    out = warned(site, "cj.vmap(lax.wave)(X)", COREJAX_FALLBACKS="silent")
    assert "hooks-pack 0.3 wraps wave.vmap, and so may change it: it isn't used" in out and "answers itself" not in out


def test_a_chosen_wrapper_of_what_does_not_exist_is_left_out(site):
    wave(site)
    rules(site, dce="wraps_nothing", pretty="pretty")
    out = warned(site, "print(float(lax.wave(0.0)), 'half' in str(cj.make_jaxpr(lax.wave)(0.0)))",
                 COREJAX_PREFER="hooks-pack")
    assert "0.0 True" in out and "wave.dce (hooks-pack 0.3): it wraps a rule that doesn't exist" in out


@pytest.mark.parametrize("odd", ['"wave-pack/wave:vmap"', "wave-pack/wave : vmap", "wave-pack / wave:vmap"])
def test_quotes_and_spaces_in_the_name_of_a_rule_are_no_part_of_it(site, odd):
    wave(site)
    rules(site, {odd: "vmap"})
    out = warned(site, "lax.wave(0.0)")
    assert f"the rule {odd!r} of hooks-pack 0.3 is left out" in out and ": wave-pack/wave:vmap (for one platform" in out


@pytest.mark.parametrize(("odd", "said"), [("VMAP", "did you mean 'vmap'?"),
                                           ("xla_translation@CPU", "there is no platform 'CPU'")])
def test_hooks_and_platforms_are_written_in_small_letters(site, odd, said):
    wave(site, more=LOWERED)
    rules(site, {f"wave-pack/wave:{odd}": "vmap"})
    assert said in warned(site, "lax.wave(0.0)", COREJAX_PREFER="hooks-pack")


@pytest.mark.parametrize("old", ["wave", "wave:cpu", "wave:jvp", "wave-pack:wave"])
def test_the_old_spelling_is_left_out_with_the_new_one_said(site, old):
    wave(site)
    rules(site, {old: "jvp"})
    out = warned(site, "print(float(lax.wave(0.0)))")
    assert out.startswith("0.0\n") and f"the rule {old!r} of hooks-pack 0.3 is left out" in out
    assert "wave-pack/wave:" + ("jvp" if ":jvp" in old else "") in out or old == "wave-pack:wave"
    assert 1 == out.count("left out")


# Versions, and who isn't there

@pytest.mark.parametrize(("requirement", "fits"), [
    ("wave-pack>=2,<3", True), ("Wave_Pack (>=2)", True), ("wave-pack~=2.0", True), ("wave-pack", True),
    ("wave-pack<2", False), ("wave-pack>=2.1; extra == 'fast'", False), ("other>=7", True)])
def test_a_packs_own_requirement_says_for_which_versions_its_rules_are(site, requirement, fits):
    wave(site)
    rules(site, requires=[requirement], jvp="jvp")
    out = warned(site, """
        try:
            print(cj.grad(lax.wave)(0.0))
        except CorejaxError as e:
            print(e)
    """)
    assert fits is ("mark\n1.0" in out)
    assert fits is not ("it is for another version of wave-pack" in out), out


def test_rules_for_what_is_not_installed_sleep_unless_it_is_required(site):
    site.toy("toy-pack")
    rules(site, {"sleepy-pack/wave:jvp": "jvp"}, requires=["sleepy-pack>=1; extra == 'sleepy'"])
    assert ["2.0", ""] == warned(site, "print(float(lax.toy(1.0)))").splitlines()
    rules(site, {"lost-pack/wave:jvp": "jvp", "toy-pack/tow:jvp": "jvp"}, pack="orphan-pack", requires=["lost-pack>=1"])
    out = warned(site, "print(float(lax.toy(1.0)))\ncj.plugins.packs()\ncj.plugins.explain('tow')")
    assert "orphan-pack 0.3 has a rule for lost-pack/wave:jvp, which does nothing: lost-pack isn't installed" in out
    assert "has a rule for toy-pack/tow:jvp, which does nothing: toy-pack 1.0 has no such primitive" in out
    assert "orphan-pack 0.3: its rule for toy-pack/tow:jvp does nothing" in out and "did you mean 'toy'?" in out
    assert "tow (nobody): a primitive, which no installed pack provides" in out and "sleepy" not in out


def test_rules_for_primitives_of_excluded_packs_are_no_news(site):
    site.toy("toy-pack")
    wave(site)
    rules(site, requires=["wave-pack"], jvp="jvp")
    assert ["2.0", ""] == warned(site, "print(float(lax.toy(1.0)))", COREJAX_DISABLE_PACKS="wave-pack").splitlines()


@pytest.mark.parametrize(("substitutes", "inherits"), [
    ("wave-pack>=2,<3", True), ("Wave_Pack", True), ("wave-pack>=1,<2", False), ("other-pack>=2", None)])
def test_a_fork_inherits_the_rules_for_what_it_substitutes(site, substitutes, inherits):
    wave(site, pack="fork-pack", declared=f"substitutes = {substitutes!r}")
    rules(site, requires=["wave-pack>=2; extra == 'waves'"], jvp="jvp")
    out = warned(site, """
        try:
            print(cj.grad(lax.wave)(0.0))
        except CorejaxError as e:
            print(e)
    """)
    assert bool(inherits) is ("mark\n1.0" in out)
    assert (inherits is False) is ("it is for another version of wave-pack" in out), out


@pytest.mark.parametrize("value", ["3", "'wave-pack =1'", "'>=2'", "'wave-pack>=x'"])
def test_what_a_fork_substitutes_must_be_a_requirement(site, value):
    wave(site, declared=f"substitutes = {value}")
    assert "substitutes must be a requirement" in run(site, "print(error(lambda: lax.wave(0.0)))")


def test_rules_do_not_reach_a_local_primitive_of_the_same_name(site):
    site.toy("toy-pack")
    rules(site, {"toy-pack/toy:impl": "seven"})
    out = run(site, site.TOY + "toy = define(Toy('toy', 5.0))\nprint(float(toy(1.0)), toy.primitive.origin)",
              COREJAX_PREFER="hooks-pack")
    assert ["5.0 defined in __main__"] == out.splitlines()


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


EXTEND = """
        from corejax.plugin import extend
        class Seven:
            @hookimpl
            def impl(self, args, *, scale):
                return args[0] * 0.0 + 7.0
        class Wrong:
            @hookimpl
            def vmpa(self, axis, args, dims):
                return None
        class Wraps:
            @hookimpl(wrapper=True)
            def impl(self, args):
                return 1.0 + (yield)
"""


def test_extend_changes_answers_only_on_demand_and_leaves_nothing_behind_when_it_fails(site):
    wave(site)
    out = run(site, EXTEND + """
        print(error(lambda: extend("wave", Wrong())))
        print(error(lambda: extend("wave", Seven())))
        print(error(lambda: extend("wave", Wraps())))
        print(float(lax.wave(0.0)))
    """)
    assert "did you mean 'vmap'?" in out and "wave.impl is provided by wave-pack 2.0 and by extended in __main__" in out
    assert "wave.impl would be changed by extended in __main__" in out
    assert 2 == out.count("pass replace=True to extend") and "0.0" == out.splitlines()[-1]
    out = run(site, EXTEND + """
        for _ in range(2):  # a cell that is run again
            extend("wave", Seven(), replace=True)
        extend("wave", Wraps(), replace=True)
        print(float(lax.wave(0.0)), cj.plugins.explain("wave").hooks["impl"].why)
    """)
    assert "8.0 chosen by extend(..., replace=True)" == out.splitlines()[-1]


def test_extend_may_not_change_what_is_derived_without_consent_either(site):
    out = run(site, """
        from corejax.plugin import extend
        class Half:
            name = "half"
            @hookimpl
            def decompose(self, args):
                return args[0] / 2.0
        class Vmap:
            @hookimpl
            def vmap(self, axis, args, dims):
                return half(args[0]), dims[0]
        half = define(Half())
        print(error(lambda: extend(half, Vmap())))
        extend(half, Vmap(), replace=True)
        print(cj.vmap(half)(X), half.primitive.providers["vmap"])
    """)
    assert "half.vmap would be changed by extended in __main__" in out and "pass replace=True to extend" in out
    assert "[0.  0.5 1. ] extended in __main__" == out.splitlines()[-1]


def test_a_pack_cannot_consent_for_the_user_while_it_is_imported(site):
    wave(site)
    site.pack("sly-pack", {"functions": {"sly": "sly_pack:sly"}}, {"sly_pack": """
        from corejax.plugin import extend, hookimpl
        class Seven:
            @hookimpl
            def impl(self, args, *, scale):
                return args[0] * 0.0 + 7.0
            @hookimpl
            def dce(self, eqn, used_out):
                return [True], eqn
        extend("wave", Seven(), replace=True)
        def sly(x):
            return x
    """}, "0.1")
    for load in ("lax.sly(1.0)", "import sly_pack"):
        out = warned(site, f"{load}\nprint(float(lax.wave(0.0)), find('wave').dce is not None)")
        assert "0.0 True" in out and "sly-pack 0.1 has a rule for wave.impl, which wave-pack 2.0 answers itself" in out
        assert "7.0" in warned(site, f"{load}\nprint(float(lax.wave(0.0)))", COREJAX_PREFER="sly-pack")
