"""Transformations that packs bring: hooks for everybody's primitives, added without a line of the kernel."""

from __future__ import annotations

import textwrap

import pytest

#: A transformation from values to ranges of values, as a pack brings it.
RANGES = """
    from typing import Any, NamedTuple
    from corejax import lax
    from corejax.plugin import transforming
    print("imported", __name__)

    class Range(NamedTuple):
        low: Any
        high: Any

    class Monotone(transforming.Declared):
        hook = "ranged"
        def __init__(self, sign=1):
            self.sign = sign
        def rule(self, transformation, primitive):
            def ranged(args, **params):
                ends = [primitive.bind(x, **params) for x in args[0]]
                return Range(*ends[::self.sign])
            return ranged

    def ranged(args):
        '''`ranged(args, *, ...)`: a Range for the result.'''

    class Ranges(transforming.Lifting):
        boxes = Range
        def raised(self, x, form):
            return Range(x, x)

    def is_a_range(transformation, case):
        '''The values of the operands are in the range of the results.'''
        return "nothing to try"

    RANGED = Ranges(ranged, declarations=[Monotone], laws={"values are in their ranges": is_a_range})

    def of(f, low, high):
        (out,) = RANGED.run(lambda x: [f(x)], [Range(low, high)])
        return out

    def both(f):
        def rule(args):
            x, y = [x if isinstance(x, Range) else Range(x, x) for x in args]
            return Range(f(x.low, y.low), f(x.high, y.high))
        return rule

    def times(args, *, scale):
        return Range(args[0].low * scale, args[0].high * scale)

    BASIC = {"exp": Monotone(), "neg": Monotone(-1), "add": both(lax.add), "mul": both(lax.mul), "scaled": times}
"""

OWNER = """
    from corejax.base.avals import ShapedArray
    from corejax import lax
    from corejax.plugin import define, hookimpl, linear, transforming

    class Scaled:
        name = "scaled"
        @hookimpl
        def decompose(self, args, *, scale):
            return lax.mul(args[0], scale)
        BODY

    scaled = define(Scaled())
"""


def _owner(site, body="", name="owner", requires=()):
    site.pack(name, {"primitives": {"scaled": "owner:scaled"}}, {"owner": OWNER.replace("BODY", body)},
              requires=["corejax", *requires])
    site.names += ["corejax-lax-basic", "corejax-reductions", "corejax-control-flow"]


def _ranges(site, entries=None, text=RANGES, name="ranges"):
    site.pack(name, {"transforms": {"ranged": "ranges:RANGED"},
                     "rules": {"corejax-lax-basic/*:ranged": "ranges:BASIC"} if entries is None else entries},
              {"ranges": text}, requires=["corejax", "corejax-lax-basic"])


def test_a_distribution_adds_a_hook_to_the_primitives_of_others(site):
    _owner(site)
    _ranges(site)
    out = site.run("""
        import corejax as cj
        from ranges import of, RANGED
        print(of(lambda x: -lax.exp(x) + 1.0, 0.0, 1.0).low.item().__round__(3))
        print(of(cj.jit(lambda x: lax.exp(x)), 0.0, 1.0).high.item().__round__(3))
        print(RANGED.answer(lax.exp.primitive).how, RANGED.answer(lax.xla_call.primitive).what)
        print(error(lambda: of(lax.sin, 0.0, 1.0)).splitlines()[0])
    """)
    assert out == ("imported ranges\n-1.718\n2.718\ndeclared through its programs, by carry\n"
                   "MissingRuleError: sin (corejax-lax-basic 0.1.0) has no ranged rule, and none can be derived\n")


def test_nobody_imports_a_transformation_that_isn_t_used(site):
    _owner(site, "@hookimpl\n        def ranged(self, args, *, scale):\n            return None")
    _ranges(site)
    assert site.run("""
        import corejax as cj
        print(cj.jit(cj.grad(lambda x: lax.scaled(x, scale=2.0) + lax.exp(x)))(0.0).item())
        print("ranges" in sys.modules)
        cj.plugins.packs()
    """).startswith("3.0\nFalse\nranges 1.0: 1 rule, 1 transformation\n")


@pytest.mark.parametrize("rule, expected", [
    ("", "derived from decompose"),
    ("@hookimpl\n        def ranged(self, args, *, scale):\n            return args[0]",
     "written written in owner 1.0"),
    ("@hookimpl(optionalhook=True)\n        def ranged(self, args):\n            return args[0]",
     "written written in owner 1.0")])
def test_the_owner_s_rule_counts_and_else_what_is_derived(site, rule, expected):
    _owner(site, rule)
    _ranges(site)
    assert site.run("""
        from ranges import RANGED
        answer = RANGED.answer(lax.scaled.primitive)
        print(answer.how, answer.what)
    """) == f"imported ranges\n{expected}\n"


def test_a_rule_that_isn_t_optional_needs_its_transformation(site):
    _owner(site, "@hookimpl\n        def ranged(self, args, *, scale):\n            return None")
    out = site.run("print(error(lambda: lax.scaled(1.0, scale=2.0)))")
    assert "scaled.ranged (owner 1.0): 'ranged' is not a hook" in out
    assert "@hookimpl(optionalhook=True)" in out


def test_one_box_for_several_results_is_told_from_a_sequence(site):
    _owner(site)
    _ranges(site)
    out = site.run("""
        from ranges import of
        class Both:
            name = "both"
            multiple_results = True
            @hookimpl
            def decompose(self, args):
                return [args[0], args[0]]
            @hookimpl
            def ranged(self, args):
                return args[0]
        print(error(lambda: of(lambda x: define(Both())(x)[0], 0.0, 1.0)))
    """)
    assert "both.ranged (defined in __main__): returned one box for all outputs" in out
    assert "wanted: a sequence of 2 outputs" in out


def test_an_optional_rule_does_nothing_without_its_transformation(site):
    _owner(site, "@hookimpl(optionalhook=True)\n        def ranged(self, args, *, scale):\n            return None")
    assert site.run("print(lax.scaled(1.0, scale=2.0).item())") == "2.0\n"


@pytest.mark.parametrize("mark, told", [("", True), ("?", False)])
def test_a_rule_of_a_pack_is_optional_if_its_entry_says_so(site, mark, told):
    _owner(site)
    site.pack("more", {"rules": {f"owner/scaled:ranged{mark}": "more:rule"}}, {"more": "raise SystemExit('imported')"},
              requires=["corejax", "owner"])
    out = site.run("""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lax.scaled(1.0, scale=2.0)
        print(*[each.message for each in caught])
    """)
    assert told == ("'ranged' is not a hook" in out)
    assert told == ("write ranged? for a transformation that may not be installed" in out)


def test_a_third_pack_adds_what_is_missing(site):
    _owner(site)
    _ranges(site)
    site.pack("more", {"rules": {"corejax-lax-basic/sin:ranged": "more:rule"}},
              {"more": "from ranges import Range\ndef rule(args):\n    return Range(-1.0 + 0 * args[0].low, 1.0)"},
              requires=["corejax", "corejax-lax-basic", "ranges"])
    assert site.run("""
        from ranges import of, RANGED
        print(RANGED.answer(lax.sin.primitive).what)
    """) == "imported ranges\nwritten in more 1.0\n"


def test_a_third_pack_changes_an_answer_only_if_it_is_chosen(site):
    _owner(site)
    _ranges(site)
    site.pack("more", {"rules": {"owner/scaled:ranged": "more:rule", "corejax-lax-basic/exp:ranged": "more:rule"}},
              {"more": "def rule(args):\n    return args[0]"},
              requires=["corejax", "corejax-lax-basic", "owner", "ranges"])
    code = """
        warnings.simplefilter("error")
        from ranges import RANGED
        def asked(name):
            return RANGED.answer(find(name)).what
        print(asked("scaled"), ";", asked("exp")) if "more" in "CHOSEN" else print(error(lambda: asked("exp")))
    """
    out = site.run(code)
    assert "more 1.0 has a rule for exp.ranged, which corejax-lax-basic" in out
    assert "COREJAX_PREFER=more" in out
    chosen = site.run(code.replace("CHOSEN", "more"), COREJAX_PREFER="more")
    assert chosen == "imported ranges\nwritten in more 1.0 ; written in more 1.0\n"


def test_two_packs_that_add_the_same_are_told_to_the_user(site):
    _owner(site)
    _ranges(site)
    for name in ("one", "two"):
        site.pack(name, {"rules": {"corejax-lax-basic/sin:ranged": f"{name}:rule"}},
                  {name: "def rule(args):\n    return args[0]"}, requires=["corejax", "corejax-lax-basic", "ranges"])
    out = site.run("""
        from ranges import of
        print(error(lambda: of(lax.sin, 0.0, 1.0)))
    """)
    assert "sin.ranged is provided by one 1.0 and by two 1.0" in out


def test_a_wrapper_wraps_what_is_derived(site):
    _owner(site)
    _ranges(site)
    site.pack("more", {"rules": {"owner/scaled:ranged": "more:rule"}}, {"more": textwrap.dedent("""
        from corejax.plugin import hookimpl
        @hookimpl(wrapper=True)
        def rule(args, *, scale):
            out = yield
            print("wrapped", scale)
            return out
        """)}, requires=["corejax", "owner", "ranges"])
    assert "wrapped 2.0\n" in site.run("""
        from ranges import of
        of(lambda x: lax.scaled(lax.exp(x), scale=2.0), 0.0, 1.0)
    """, COREJAX_PREFER="more").replace("Range", "")


def test_it_is_explained_and_checked_and_listed(site):
    _owner(site)
    _ranges(site)
    out = site.run("""
        import corejax as cj
        explained = cj.plugins.explain("exp")
        print("\\n".join(explained.hooks["ranged"].lines()))
        print(*["\\n".join(cj.plugins.explain(name).hooks["ranged"].lines()) for name in ("scaled", "sin")], sep="\\n")
        print(str(cj.plugins.explain("ranged")))
    """)
    assert "ranged: ranges 1.0, declared: monotone(...) at ranges:BASIC; added where there was none" in out
    assert "ranged: derived from decompose\n" in out
    assert "ranged: missing: nothing says what it is, and using it is an error" in out
    assert "ranged (ranges 1.0): a transformation, its only provider" in out


@pytest.mark.parametrize("text, expected", [
    ("RANGED = 3", "it must lead to a transformation"),
    (RANGES.replace("def ranged(args):", "def other(args):").replace("Ranges(ranged,", "Ranges(other, "),
     "each declaration must be a subclass of Declared for this hook"),
    ("from corejax.plugin import transforming\ndef other(args):\n    'What.'\n"
     "RANGED = transforming.Transformation(other)", "leads to the transformation 'other'"),
    ("from corejax.plugin import transforming\ndef jvp(args):\n    'What.'\n"
     "RANGED = transforming.Transformation(jvp)",
     "the kernel has a hook of this name"),
    ("from corejax.plugin import transforming\ndef linear(args):\n    'What.'\n"
     "RANGED = transforming.Transformation(linear)", "plugins can't have such a rule"),
    ("from corejax.plugin import transforming\ndef _ranged(args):\n    'What.'\n"
     "RANGED = transforming.Transformation(_ranged)", "plugins can't have such a rule"),
    ("from corejax.plugin import transforming\ndef ranged(args):\n    pass\n"
     "RANGED = transforming.Transformation(ranged)",
     "its specification says nothing"),
    ("from corejax.plugin import transforming\ndef ranged(args, *, axis):\n    'What.'\n"
     "RANGED = transforming.Transformation(ranged)", "positional arguments only"),
    ("from corejax.plugin import transforming\ndef ranged(args):\n    'What.'\n"
     "RANGED = transforming.Transformation(ranged, situation='abroad')", "there is no such situation"),
    ("from corejax.plugin import transforming\ndef ranged(args):\n    'What.'\n"
     "RANGED = transforming.Transformation(ranged, ways={'w': 3})", "a way needs words and a function"),
    ("from corejax.plugin import transforming\ndef ranged(args):\n    'What.'\n"
     "RANGED = transforming.Transformation(ranged, check=3)", "check must be a function"),
    (RANGES.replace("boxes = Range", "boxes = tuple"), "its class must say what a box is"),
    ("from corejax.plugin import transforming\nRANGED = transforming.Transformation(print)",
     "its specification must be a function"),
])
def test_what_is_wrong_with_a_transformation_is_found_by_check(site, text, expected):
    _ranges(site, entries={}, text=text)
    out = site.run("""
        from corejax.inspect import checkup
        print(*checkup.checkup())
    """)
    assert expected in out


@pytest.mark.parametrize("body, expected", [
    ("@hookimpl\n        def ranged(self, primals, *, scale):\n            pass",
     "it takes an argument 'primals' that this hook isn't given"),
    ("@hookimpl\n        def ranged(self, args, *, size):\n            pass",
     "it reads a param 'size' that the primitive doesn't have"),
    ("@hookimpl\n        def ranged(self, *args):\n            pass", "operands come as one sequence"),
    ("def ranged(self, args):\n            pass", "it is not marked as a hook"),
    ("ranged = 3", "it is neither a rule nor a declaration"),
    ("ranged = linear(0)", "it is neither a rule nor a declaration"),
    ("ranged = transforming.absent('')", "it gives no reason"),
    ("@hookimpl\n        def rangd(self, args):\n            pass", "did you mean 'ranged'?"),
])
def test_wrong_rules_are_told_by_name(site, body, expected):
    _owner(site, body)
    _ranges(site)
    assert expected in site.run("""
        import ranges
        print(error(lambda: ranges.RANGED.rule(lax.scaled.primitive)))
    """)


@pytest.mark.parametrize("body, expected", [
    ("return args", "scaled.ranged (owner 1.0): returned"),
    ("return None", "Range"),
    ("return args[0].low > 0.0", "scaled.ranged (owner 1.0): returned bool[]"),
    ("import ranges\n            return ranges.Range(args[0].low, 1)", "scaled.ranged (owner 1.0): returned"),
    ("import ranges\n            return ranges.Range(args[0].low, 'high')", "scaled.ranged (owner 1.0)"),
    ("raise ValueError('no')", "raised by scaled.ranged (owner 1.0)"),
    ("return args[0].middle", "raised by scaled.ranged (owner 1.0)"),
])
def test_what_a_rule_returns_is_checked(site, body, expected):
    _owner(site, f"@hookimpl\n        def ranged(self, args, *, scale):\n            {body}")
    _ranges(site)
    out = site.run("""
        from ranges import of, Range
        try:
            of(lambda x: lax.scaled(x, scale=2.0), np.float64(0.0), np.float64(1.0))
        except Exception as error:
            print(error, *getattr(error, "__notes__", ()))
    """) if "None" not in body else site.run("""
        from ranges import of, Range
        print(of(lambda x: lax.scaled(x, scale=2.0), np.float64(0.0), np.float64(1.0)))
    """)
    assert expected in out


@pytest.mark.parametrize("body, expected", [
    ("return Range(args[0].low, 1)", "sin.ranged (ranges 1.0): returned"),
    ("x, y = args", "raised by sin.ranged (ranges 1.0)"),
])
def test_the_pack_that_brings_a_wrong_rule_is_blamed(site, body, expected):
    _owner(site)
    _ranges(site, text=f"{textwrap.dedent(RANGES)}\ndef wrong(args):\n    {body}\nBASIC['sin'] = wrong\n")
    out = site.run("""
        from ranges import of
        try:
            of(lax.sin, np.float64(0.0), np.float64(1.0))
        except Exception as error:
            print(error, *getattr(error, "__notes__", ()))
    """)
    assert expected in out


def test_a_law_that_is_broken_names_the_pack_of_the_rule_and_where_it_is(site):
    _owner(site)
    text = textwrap.dedent(RANGES).replace('return "nothing to try"', 'raise case.fail("ranged", "it is broken")')
    _ranges(site, text=text.replace("BASIC = ", "BASIC: dict = "))
    site.names.append("corejax-testing")
    out = site.run("""
        from corejax.testing import check_primitive
        print(error(lambda: check_primitive("exp", checks=["ranged: values are in their ranges"])))
    """)
    assert "exp.ranged (ranges 1.0), check 'ranged: values are in their ranges': it is broken" in out
    line = 1 + [line.startswith("BASIC") for line in text.splitlines()].index(True)
    assert f"ranges.py:{line} (BASIC)" in out


def test_only_the_laws_are_checked_of_a_pack_that_has_such_rules_alone(site):
    _owner(site)
    text = textwrap.dedent(RANGES).replace('"nothing to try"', "None") + "\nBASIC['sin'] = 3\nBASIC['expp'] = 3\n"
    _ranges(site, text=text)
    site.names.append("corejax-testing")
    out = site.run("""
        from corejax.testing import check_pack
        from ranges import BASIC
        said = error(lambda: check_pack("ranges"))
        print(said)
        del BASIC["sin"], BASIC["expp"], BASIC["scaled"]
        report = check_pack("ranges")
        print(sorted({outcome.check for outcome in report.outcomes}), report.hooks["exp"]["ranged"])
    """)
    assert "sin.ranged (ranges 1.0), check 'rules are used': its rules are left out" in out
    assert "corejax-lax-basic 0.1.0 has no primitive 'expp'" in out
    assert out.endswith("['ranged: values are in their ranges', 'rules are used'] ranges 1.0\n")


def test_a_law_does_not_apply_where_what_a_primitive_is_made_of_has_no_rule(site):
    _owner(site, """@hookimpl
        def samples(self, rng):
            from corejax.plugin import Sample
            yield Sample([1.0], {"scale": 2.0})""")
    site.folder.joinpath("owner.py").write_text(site.folder.joinpath("owner.py").read_text().replace(
        "lax.mul(args[0], scale)", "lax.sin(args[0])"))
    _ranges(site, text=textwrap.dedent(RANGES).replace(
        'return "nothing to try"', "RANGED.run(case.apply, [Range(x, x) for x in case.args])"))
    site.names.append("corejax-testing")
    out = site.run("""
        from corejax.testing import check_primitive
        report = check_primitive("scaled", checks=["ranged: values are in their ranges"])
        print(report.outcomes[0].not_applicable)
    """)
    assert "refused: sin (corejax-lax-basic 0.1.0) has no ranged rule, and none can be derived" in out


def test_optional_rules_without_their_transformation_are_not_checked(site):
    _owner(site)
    rules = {"corejax-lax-basic/sign:ranged?": "more:rule", "corejax-lax-basic/not:vmap": "more:rule"}
    site.pack("more", {"rules": rules}, {"more": "def rule(axis, args, dims): ..."},
              requires=["corejax", "corejax-lax-basic"])
    site.names.append("corejax-testing")
    out = site.run("""
        from corejax_testing.packs import contents_of
        found = contents_of("more")
        print([subject.name for subject in found.subjects], *found.notes)
    """)
    assert out == ("['corejax-lax-basic/not'] not checked: corejax-lax-basic/sign:ranged?, "
                   "as no transformation ranged is installed\n")


@pytest.mark.parametrize("low, high, got", [
    ("0.0", "np.ones(3)", "~f64[], f64[3]"), ("np.float32(0)", "np.float64(0)", "f32[], f64[]")])
def test_an_operand_whose_arrays_differ_in_type_is_refused(site, low, high, got):
    _owner(site)
    _ranges(site)
    out = site.run(f"""
        from ranges import of
        print(error(lambda: of(lambda x: x, {low}, {high})))
    """)
    assert "ranged: the arrays in a box don't fit each other" in out
    assert f"got:    {got}" in out


def test_a_declared_absence_is_told_with_its_reason(site):
    _owner(site, "ranged = transforming.absent('it jumps about')")
    _ranges(site)
    assert "scaled (owner 1.0) has no ranged: it jumps about" in site.run("""
        from ranges import of
        print(error(lambda: of(lambda x: lax.scaled(x, scale=2.0), 0.0, 1.0)))
    """)


def test_two_transformations_of_one_name_clash(site):
    _owner(site)
    _ranges(site)
    out = site.run("""
        from ranges import Ranges, ranged
        print(error(lambda: Ranges(ranged).rule(find("exp"))))
    """)
    assert "ranged: there is another transformation of this name, of ranges 1.0" in out


def test_a_transformation_that_isn_t_installed_has_only_what_is_derived(site):
    _owner(site)
    site.pack("ranges", "", {"ranges": RANGES}, requires=["corejax"])
    site.names.remove("ranges")
    out = site.run("""
        from ranges import RANGED
        print(RANGED.answer(find("scaled")).what, RANGED.answer(find("exp")).how)
    """)
    assert out == "imported ranges\nfrom decompose missing\n"


def test_a_rule_may_be_added_at_run_time(site):
    _owner(site)
    _ranges(site)
    assert site.run("""
        from corejax.plugin import extend
        from ranges import RANGED, Range
        class More:
            @hookimpl
            def ranged(self, args):
                return args[0]
        extend("sin", More())
        print(RANGED.answer(find("sin")).how)
    """) == "imported ranges\nwritten\n"


def test_laws_are_checked_by_the_kit(site):
    _owner(site)
    _ranges(site)
    site.names.append("corejax-testing")
    out = site.run("""
        from corejax.testing import check_primitive
        name = "ranged: values are in their ranges"
        print(check_primitive("exp", checks=[name]).outcomes[0].not_applicable)
        print(check_primitive("sin", checks=[name]).outcomes[0].not_applicable)
    """)
    assert out.splitlines()[1:] == [
        "('nothing to try',)", "('it has no ranged: nothing says what it is, and using it is an error',)"]


@pytest.mark.parametrize("prefer, works", [("", ""), ("ranges", "one"), ("others", "two")])
def test_of_two_packs_with_one_name_the_preferred_one_counts(site, prefer, works):
    _owner(site)
    _ranges(site)
    site.pack("others", {"transforms": {"ranged": "others:RANGED"}}, {"others": RANGES}, requires=["corejax"])
    out = site.run("""
        import corejax as cj
        import ranges, others
        for name, module in (("one", ranges), ("two", others)):
            try:
                module.RANGED.answer(find("scaled"))
                print(name)
            except CorejaxError as error:
                print(str(error).splitlines()[0])
        print(str(cj.plugins.explain("exp").found[0].problem))
    """, **({"COREJAX_PREFER": prefer} if prefer else {}))
    lines = out.splitlines()
    assert (works in lines) == bool(works)
    assert "None" == lines[-1]
    if not works:
        assert out.count("the transformation 'ranged' is provided more than once") == 2


@pytest.mark.parametrize("options, message", [
    ("ways={'w': lambda t, p: 'x'}", "ranged: the way 'w' returned a str, for exp"),
    ("ways={'w': lambda t, p: 1 / 0}", "ranged: the way 'w' raises ZeroDivisionError: division by zero, for exp"),
    ("ways=['w']", "ranged: ways must be a mapping"), ("laws=['w']", "ranged: laws must be a mapping"),
    ("declarations=3", "ranged: declarations must be a sequence"),
    ("check=lambda *args: None, ways={'w': lambda t, p: lambda args: args[0]}", "ranged: its check returns nothing")])
def test_what_a_transformation_says_wrong_is_told(site, options, message):
    _owner(site)
    out = site.run(f"""
        from corejax.plugin import transforming
        def ranged(args):
            'What.'
        print(error(lambda: transforming.Transformation(ranged, {options}).rule(lax.exp)([1.0])))
    """)
    assert message in out


def test_forms_that_are_equal_but_of_other_types_are_other_forms(site):
    _owner(site)
    out = site.run("""
        import corejax as cj
        from typing import Any, NamedTuple
        from corejax.core import aval_of
        from corejax.plugin import transforming
        class Tagged(NamedTuple):
            x: Any
            tag: Any
        def tagged(args):
            'What.'
        class Tags(transforming.Lifting):
            boxes = Tagged
            def form(self, x): return x.tag if isinstance(x, Tagged) else None
            def parts(self, box): return [box.x]
            def box(self, form, parts): return Tagged(parts[0], form)
            def avals(self, aval, form): return [aval]
        TAGS = Tags(tagged, ways={"through programs": transforming.from_programs, "by type": lambda t, p: (
            lambda args, **params: Tagged(args[0].x * (2.0 if type(args[0].tag) is int else 3.0), args[0].tag))})
        f = cj.jit(lambda x: lax.exp(x))
        print(*[TAGS.run(lambda x: [f(x)], [Tagged(1.0, tag)])[0].x.item() for tag in (1, True, 1)])
        print(error(lambda: TAGS.run(lambda x: [f(x)], [Tagged(1.0, [1])])))
    """)
    assert out.startswith("2.0 3.0 2.0\nRuleError: xla_call.tagged")
    assert "has a form that can't be hashed, among ([1],)" in out
