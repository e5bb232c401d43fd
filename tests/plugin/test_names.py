"""Names that several packs have: in a pack's modules they mean what it requires, in users' modules they are errors."""

from __future__ import annotations

import pytest

#: Names that rules and functions of the standard packs use.
USED = ("log", "reduce_sum", "while_loop", "scan", "sort", "dot_general", "where", "mul", "neg", "convert_element_type",
        "broadcast_in_dim", "cumsum", "exp", "full", "cond")

WRONG = "\n".join(f"def {name}(*args, **options):\n    raise AssertionError('the other pack')\n" for name in USED)

#: A module with a function that uses a name.
USES = "from corejax import lax\ndef use(x): return lax.thing(x)\n"

PROGRAMS = """
    import corejax as cj
    from corejax import numpy as jnp
    x = np.linspace(0.1, 0.9, 6)
    print(lax.log1p(x).sum(), lax.atanh(x).sum(), lax.lgamma(x).sum(), jnp.log10(x).sum(), jnp.logaddexp(x, x).sum())
    print(cj.grad(lambda x: jnp.log2(x).sum())(x), cj.jit(cj.grad(lambda x: lax.pow(x, x).sum()))(x))
    print(cj.vmap(lambda x: jnp.cumsum(x * x))(x.reshape(2, 3)), cj.grad(lambda x: jnp.std(jnp.sort(x)))(x))
    print(jnp.linalg.slogdet(np.eye(3) + 0.1)[1], cj.grad(lambda a: jnp.linalg.det(a))(np.eye(2) + 0.1), x.dot(x))
    print(cj.jit(cj.vmap(cj.grad(lambda x: jnp.where(x > 0.5, jnp.log(x), jnp.tanh(x)))))(x), jnp.einsum("i,j->", x, x))
    print(cj.grad(lambda x: jnp.pad(jnp.tile(x, 2), 1).sum())(x), cj.grad(lambda y: jnp.broadcast_to(y, 3).sum())(2.0))
    print(cj.jit(lambda x: cj.lax.fori_loop(0, 3, lambda i, y: y * x, x))(x), jnp.median(x), jnp.interp(0.3, x, x))
"""


def toy(name: str, factor: float) -> str:
    return f"{name} = define(Toy({name!r}, {factor}))\n"


def test_a_pack_with_names_of_lax_changes_nothing_for_other_packs(site):
    everything = {"COREJAX_PACKS": ""}
    before = site.run(PROGRAMS, **everything)
    site.pack("other-pack", {"functions": {name: f"other_pack:{name}" for name in USED}}, {"other_pack": WRONG})
    assert before == site.run(PROGRAMS, **everything)
    assert "CorejaxAttributeError: the function 'log' is provided more than once" == site.run(
        "print(error(lambda: lax.log(1.0)).splitlines()[0])", **everything).strip()


def test_the_users_own_name_is_an_error_that_names_both_until_one_is_preferred(site):
    site.pack("other-pack", {"functions": {"log": "other_pack:log"}}, {"other_pack": "def log(x): return 'the other'"})
    out = site.run("""
        import corejax as cj
        said = error(lambda: lax.log(1.0))
        print("corejax-lax-basic 0.1.0 (corejax_lax_basic.exponential:log); other-pack 1.0 (other_pack:log)" in said,
              "COREJAX_PREFER=corejax-lax-basic" in said)
        again = error(lambda: getattr(lax, "log"))
        print(again.splitlines()[:2] == said.splitlines()[:2], "log" in dir(lax), lax.log_p.origin)
        def imports():
            from corejax.lax import log
        print(error(imports).splitlines()[0])
        for pack in ("other-pack", "corejax-lax-basic"):
            with cj.plugins.prefer(pack):
                from corejax.lax import log
                print(lax.log(1.0), log is lax.log, lax.log1p(0.0), cj.numpy.log(1.0))
        print(error(lambda: lax.log).splitlines()[0])
    """, COREJAX_PACKS="")
    assert ["True True", "True True corejax-lax-basic 0.1.0",
            "PackError: the function 'log' is provided more than once",
            "the other True 0.0 0.0", "0.0 True 0.0 0.0",
            "CorejaxAttributeError: the function 'log' is provided more than once"] == out.splitlines()
    assert "the other 0.0" == site.run("from corejax import numpy as jnp; print(lax.log(1.0), jnp.log(1.0))",
                                       COREJAX_PACKS="", COREJAX_PREFER="other-pack").strip()


def test_two_packs_with_one_primitive_work_by_their_own_handles(site):
    body = site.TOY + "def twice(x):\n    return lax.toy(lax.toy(x))\n\nfrom corejax import lax\n"
    for name, factor in (("pack-a", 2.0), ("pack-b", 3.0)):
        module = name.replace("-", "_")
        site.pack(name, {"primitives": {"toy": f"{module}:toy"}, "functions": {f"twice_{module}": f"{module}:twice"}},
                  {module: body + toy("toy", factor)})
    site.pack("needs-b", {"functions": {"thrice": "needs_b:thrice"}},
              {"needs_b": "from corejax import lax\ndef thrice(x): return lax.toy(lax.twice_pack_b(x))\n"},
              requires=["Pack_B>=1"])
    site.pack("needs-more", {"functions": {"fourfold": "needs_more:fourfold"}},
              {"needs_more": "from corejax import lax\ndef fourfold(x): return lax.toy(lax.thrice(x))\n"},
              requires=["needs-b"])
    out = site.run("""
        import pack_a, pack_b, pickle
        print(float(pack_a.toy(1.0)), float(pack_b.toy(1.0)), lax.twice_pack_a(1.0), lax.twice_pack_b(1.0))
        print(lax.thrice(1.0), lax.fourfold(1.0))
        print(pack_a.toy.primitive.origin, pack_b.toy.primitive.origin, error(lambda: find("toy")).splitlines()[0])
        print([find(f"{name}/toy").origin for name in ("pack-a", "pack_b")],
              pickle.loads(pickle.dumps(pack_b.toy.primitive)) is pack_b.toy.primitive)
        print("name its owner: pack-a/toy" in error(lambda: find("toy")))
    """)
    assert ["2.0 3.0 4.0 9.0", "27.0 81.0",
            "pack-a 1.0 pack-b 1.0 PackError: the primitive 'toy' is provided more than once",
            "['pack-a 1.0', 'pack-b 1.0'] True", "True"] == out.splitlines()


def two_packs(site) -> None:
    for name, factor in (("pack-a", 2.0), ("pack-b", 3.0)):
        module = name.replace("-", "_")
        site.pack(name, {"functions": {"thing": f"{module}:thing"}},
                  {module: f"def thing(x): return x * {factor}\n" + USES})


def test_two_required_packs_that_clash_break_that_pack_only(site):
    two_packs(site)
    text = "from corejax import lax\ndef {0}(x): return lax.thing(x)\n"
    site.pack("needs-both", {"functions": {"both": "needs_both:both"}}, {"needs_both": text.format("both")},
              requires=["pack-a", "pack-b"])
    site.pack("needs-one", {"functions": {"one": "needs_one:one"}}, {"needs_one": text.format("one")},
              requires=["pack-b"])
    code = """
        said = error(lambda: lax.both(1.0))
        print(said.splitlines()[0], "a 1.0 (pack_a:thing); pack-b 1.0 (pack_b:thing)" in said, "import it from" in said)
        import pack_a
        print(lax.one(1.0), pack_a.use(1.0))
        import corejax as cj
        with cj.plugins.prefer("pack-a"):
            print(lax.both(1.0), lax.one(1.0), lax.thing(1.0))
    """
    assert ["CorejaxAttributeError: needs-both 1.0 uses the function 'thing', which more than one of the packs that it "
            "requires provides True True", "3.0 2.0", "2.0 3.0 2.0"] == site.run(code).splitlines()


def test_a_name_that_no_required_pack_has_is_looked_up_among_all(site):
    two_packs(site)
    text = "from corejax import lax\ndef use(x): return lax.thing(x)\ndef other(x): return lax.alone(x)\n"
    site.pack("needs-none", {"functions": {"use": "needs_none:use", "other": "needs_none:other"}}, {"needs_none": text})
    site.pack("pack-c", {"functions": {"alone": "pack_c:alone"}}, {"pack_c": "def alone(x): return -x\n"})
    code = """
        said = error(lambda: lax.use(1.0))
        print(said.splitlines()[0], "add 'pack-a' or 'pack-b' to the requirements of needs-none" in said)
        print(lax.other(1.0))
    """
    assert ["CorejaxAttributeError: needs-none 1.0 uses the function 'thing', which is provided more than once, and "
            "requires none of the providers True", "-1.0"] == site.run(code).splitlines()
    assert "3.0" == site.run("print(lax.use(1.0))", COREJAX_PREFER="pack-b").strip()


@pytest.mark.parametrize(("lines", "means"), [
    (["pack-b"], "3.0"), (["pack-b>=1,<2"], "3.0"), (["Pack.B [fast] (>=1)"], "3.0"), (["pack-b; os_name > ''"], "3.0"),
    (["pack-b @ file:///somewhere"], "3.0"), (["through"], "3.0"), (["extras[b]"], "3.0"), (["extras"], "error"),
    (["pack-b; extra == 'b'"], "3.0"), (["pack-a", "pack-b; extra == 'b'"], "2.0"), (["gone"], "error"),
    (["circle"], "3.0"), (["pack-b", "pack-a; python_version < '3'"], "3.0"),
    (["pack-a; extra == 'b' and python_version < '3'", "pack-b; extra == 'b' and python_version > '3'"], "3.0"),
    ([], "error"),
], ids=str)
def test_requirements_are_transitive_and_in_any_spelling(site, lines, means):
    two_packs(site)
    site.pack("through", "", requires=["pack-b"])  # no pack
    site.pack("extras", "", requires=["pack-b; extra == 'b'", "pack-a; extra == 'a'"])
    site.pack("circle", "", requires=["user", "pack-b"])
    site.names = ["pack-a", "pack-b", "user"]
    site.pack("user", {"functions": {"use": "user:use"}},
              {"user": USES}, requires=lines)
    assert means == site.run("""
        try:
            print(lax.use(1.0))
        except CorejaxAttributeError:
            print("error")
    """).strip()


def test_a_required_pack_comes_before_the_packs_own_names(site):
    text = """
        from corejax import lax
        def log(x): return lax.log(x) + 1
        def one(x): return lax.own(x)
        def own(x): return x
    """
    site.pack("shifted", {"functions": {"log": "shifted:log", "one": "shifted:one", "own": "shifted:own"}},
              {"shifted": text}, requires=["corejax-lax-basic"])
    site.pack("else", {"functions": {"own": "elsewhere:own"}}, {"elsewhere": "def own(x): return -x\n"})
    assert "1.0 5.0" == site.run("import shifted; print(shifted.log(1.0), lax.one(5.0))", COREJAX_PACKS="").strip()


def test_names_of_every_kind_mean_what_is_required(site):
    site.pack("other-pack", {
        "functions": {"linalg": "other_pack:linalg", "while_p": "other_pack:linalg", "cj/pmap": "other_pack:linalg"},
        "namespaces": {"lax.linalg": "other_pack", "numpy": "other_pack"},
        "primitives": {"lu": "other_pack:lu"}},
        {"other_pack": site.TOY + "def linalg(): return 'the other'\n" + toy("lu", 2.0)})
    site.toy("third-pack", "sin")
    site.pack("user", {"functions": {"use": "user:use"}}, {"user": """
        from corejax import lax
        from corejax.lax import linalg
        from corejax import numpy as jnp
        import corejax as cj

        def use():
            return [lax.linalg.__name__, linalg is lax.linalg, lax.while_p.origin, lax.sin_p.origin,
                    lax.linalg.lu_p.origin, jnp.__name__, cj.pmap.__module__]
    """}, requires=["corejax-numpy", "corejax-collectives"])
    out = site.run("""
        import corejax as cj
        print(lax.use())
        print(lax.use() == lax.use())
        for look in (lambda: lax.linalg, lambda: lax.sin, lambda: lax.sin_p, lambda: lax.while_p, lambda: cj.numpy,
                     lambda: cj.pmap):
            print(error(look).splitlines()[0])
        with cj.plugins.prefer("other-pack", "third-pack"):
            print(cj.numpy.__name__, lax.sin_p.origin, cj.pmap())
    """, COREJAX_PACKS="")
    assert [str(["corejax_linear_algebra.linalg", True, "corejax-control-flow 0.1.0", "corejax-lax-basic 0.1.0",
                 "corejax-linear-algebra 0.1.0", "corejax_numpy", "corejax_collectives.parallel_mapping"]), "True",
            "CorejaxAttributeError: the function 'linalg' is provided more than once",
            "CorejaxAttributeError: the function 'sin' is provided more than once",
            "CorejaxAttributeError: the primitive 'sin' is provided more than once",
            "CorejaxAttributeError: the function 'while_p' is provided more than once",
            "CorejaxAttributeError: the namespace 'numpy' is provided more than once",
            "CorejaxAttributeError: the function 'cj/pmap' is provided more than once",
            "other_pack third-pack 1.0 the other"] == out.splitlines()


def test_whose_module_uses_a_name_is_told_by_its_package(site):
    two_packs(site)
    for pack in ("a", "b"):  # two packs that share a namespace package
        site.pack(f"acme-{pack}", {"functions": {f"use_{pack}": f"acme.{pack}.ops:use"}}, {
            f"acme.{pack}.__init__": "", f"acme.{pack}.ops": f"from acme.{pack}._inner import use\n",
            f"acme.{pack}._inner": USES}, requires=[f"pack-{pack}"])
    site.pack("thief", {"functions": {"stolen": "acme.a._inner:use"}})  # leads into another's module
    site.pack("runs", {"functions": {"runs": "runs.__main__:use"}}, {
        "runs.__init__": "", "runs.__main__": USES + "print(use(1.0))\n"}, requires=["pack-b"])
    out = site.run("""
        import runpy
        print(lax.use_a(1.0), lax.use_b(1.0), lax.stolen(1.0))
        runpy.run_module("runs", run_name="__main__")
        print(error(lambda: lax.thing).splitlines()[0])
        print(error(lambda: exec("lax.thing", {"lax": lax})).splitlines()[0])
        print(eval("lax.thing(1.0)", {"lax": lax, "__name__": "acme.b.made"}))
    """)
    clash = "CorejaxAttributeError: the function 'thing' is provided more than once"
    assert ["2.0 3.0 2.0", "3.0", clash, clash, "3.0"] == out.splitlines()


def test_packages_of_packs_are_told_by_their_files_and_only_else_by_entry_points(site):
    two_packs(site)
    site.pack("one-of-two", {"functions": {"through": "first_of_two:through"}}, {
        "first_of_two": "from second_of_two import use\ndef through(x): return use(x)\n", "second_of_two": USES,
        "tests.__init__": USES}, requires=["pack-b"], listed=True)
    site.pack("victim", {"functions": {"victim": "robbed:use"}}, {"robbed": USES}, requires=["pack-b"], listed=True)
    site.pack("not-listed", {"functions": {"not_listed": "counted:use"}}, {"counted": USES}, requires=["pack-b"])
    site.pack("thief", {"functions": {f"{name}_{number}": f"{name}:use" for name in ("robbed", "counted")
                                      for number in range(5)}}, {"thief": ""}, requires=["pack-a"], listed=True)
    out = site.run("""
        import pack_a, tests
        print(lax.through(1.0), lax.victim(1.0), lax.not_listed(1.0), error(lambda: tests.use(1.0)).partition(":")[0])
    """)
    assert "3.0 3.0 2.0 CorejaxAttributeError" == out.strip()


def test_a_namespace_package_is_the_packs_that_is_alone_in_it(site):
    two_packs(site)
    for name, listed in (("bare", False), ("listed", True)):
        site.pack(f"{name}-pack", {"functions": {f"use_{name}": f"{name}.main:use"}}, {
            f"{name}.main": f"from {name}.help import use\n", f"{name}.help": USES}, requires=["pack-b"], listed=listed)
        (site.folder / name / "users.py").write_text(USES)
    out = site.run("""
        import bare.users, listed.users
        print(lax.use_bare(1.0), lax.use_listed(1.0), bare.users.use(1.0))
        print(error(lambda: listed.users.use(1.0)).splitlines()[0])
    """)
    assert ["3.0 3.0 3.0", "CorejaxAttributeError: the function 'thing' is provided more than once"] == out.splitlines()


def test_code_without_a_module_asks_for_its_caller_unless_that_is_the_kernel(site):
    two_packs(site)
    site.pack("makes-code", {"functions": {"made": "makes_code:made", "calls": "makes_code:calls"}}, {"makes_code": """
        import corejax as cj
        from corejax import lax
        def made(x):
            space = {"lax": lax}
            exec("def f(x): return lax.thing(x)", space)
            return eval("lax.thing(1.0)", {"lax": lax, "__name__": "builtins"}), space["f"](x)
        def calls(f):
            return cj.make_jaxpr(f)(1.0)
    """}, requires=["pack-b"])
    out = site.run("""
        print(lax.made(1.0))
        print(error(lambda: lax.calls(eval("lambda x: lax.thing(x)", {"lax": lax}))).splitlines()[0])
    """, COREJAX_PACKS="")
    assert ["(3.0, 3.0)", "CorejaxAttributeError: the function 'thing' is provided more than once"] == out.splitlines()


def test_a_pack_that_could_not_be_imported_for_its_names_works_once_they_mean_something(site):
    two_packs(site)
    site.pack("needs-both", {"functions": {"both": "needs_both:thing_of_both"}}, {
        "needs_both": "from corejax.lax import thing\ndef thing_of_both(x): return thing(x)\n"},
        requires=["pack-a", "pack-b"])
    out = site.run("""
        import corejax as cj
        said = error(lambda: lax.both(1.0))
        print(said.splitlines()[0])
        print(said.splitlines()[-1])
        with cj.plugins.prefer("pack-b"):
            print(lax.both(1.0))
    """)
    first, advice, value = out.splitlines()
    assert "PackError: the pack needs-both 1.0 can't be imported, so its function 'both' can't be used" == first
    assert advice == (
        "  to do:  in needs-both, import it from the package of the one that is meant; until then, choose with COREJAX_"
        "PREFER=pack-a; otherwise fix or uninstall needs-both; COREJAX_DISABLE_PACKS=needs-both leaves it out")
    assert "3.0" == value


def test_the_advice_prefers_a_pack_that_works(site):
    site.toy("pack-b", "sine")
    site.pack("pack-a", {"primitives": {"sine": "pack_a:sine"}, "functions": {"alone": "pack_a:alone"}},
              {"pack_a": "import no_such_module"})
    out = site.run("""
        print("COREJAX_PREFER=pack-a" in error(lambda: lax.sine(1.0)))
        error(lambda: lax.alone)
        print("COREJAX_PREFER=pack-b" in error(lambda: lax.sine(1.0)))
    """)
    assert ["True", "True"] == out.splitlines()


def test_to_python_an_ambiguous_name_is_not_there(site):
    two_packs(site)
    out = site.run("""
        import inspect
        for _ in range(2):
            print(hasattr(lax, "thing"), getattr(lax, "thing", 5), "thing" in dict(inspect.getmembers(lax)))
        def delete(): del lax.thing
        def assign(): lax.thing = 5
        def imports():
            from corejax.lax import thing
        print(*[error(do).splitlines()[0] for do in (delete, assign, imports)], sep="\\n")
    """)
    assert ["False 5 False"] * 2 + [
        "CorejaxAttributeError: corejax.lax.thing can't be deleted: it means something else in each pack",
        "CorejaxAttributeError: corejax.lax.thing can't be assigned to: it means something else in each pack",
        "PackError: the function 'thing' is provided more than once"] == out.splitlines()


def test_in_a_script_a_name_is_found_once(site):
    two_packs(site)
    out = site.run("""
        import corejax as cj
        from corejax.installed.meanings import Meanings
        assert vars(sys.modules["__main__"]) is globals()
        found, find = [], Meanings.find
        Meanings.find = lambda *args: found.append(args[1]) or find(*args)
        for pack in ("pack-a", "pack-b"):
            with cj.plugins.prefer(pack):
                print(lax.thing(1.0), lax.thing(1.0), lax.thing(1.0), found)
    """)
    assert ["2.0 2.0 2.0 ['thing']", "3.0 3.0 3.0 ['thing', 'thing']"] == out.splitlines()


def test_importing_everything_leaves_out_what_the_module_defines_below(site):
    two_packs(site)
    site.pack("stars", {"functions": {"starred": "stars:starred", "thing": "stars:thing"}}, {"stars": """
        from corejax.lax import *
        def starred(x): return thing(use_b(x))
        def thing(x): return -x
    """})
    site.pack("uses-b", {"functions": {"use_b": "uses_b:use"}}, {"uses_b": USES}, requires=["pack-b"])
    assert "-3.0" == site.run("warnings.simplefilter('error'); print(lax.starred(1.0))").strip()


def test_importing_everything_leaves_out_what_is_ambiguous(site):
    two_packs(site)
    site.pack("user", {"functions": {"use": "user:use"}}, {
        "user.__init__": "def use(x):\n    from user import everything\n    return everything.thing(x)\n",
        "user.everything": "from corejax.lax import *\n"}, requires=["pack-b"])
    out = site.run("""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            space = {"__name__": "here"}
            exec("from corejax.lax import *", space)
        print(space["use"](1.0), "thing" in space, [str(each.message).partition(":")[0] for each in caught])
    """)
    assert """3.0 False ["`from corejax.lax import *` leaves out 'thing'"]""" == out.strip()


def test_a_module_that_is_reloaded_gives_its_new_functions_to_packs(site):
    two_packs(site)
    site.pack("user", {"functions": {"use": "user:use"}},
              {"user": USES}, requires=["pack-b"])
    out = site.run("""
        import importlib, pathlib, pack_b
        print(lax.use(1.0))
        path = pathlib.Path(pack_b.__file__)
        path.write_text("def thing(x): return x * 1000.0\\n")
        importlib.invalidate_caches()
        importlib.reload(pack_b)
        print(lax.use(1.0))
    """, PYTHONDONTWRITEBYTECODE="1")
    assert ["3.0", "1000.0"] == out.splitlines()


def test_rules_are_for_the_primitive_of_the_owner_that_they_name(site):
    site.toy("pack-a", factor=2.0)
    site.toy("pack-b", factor=3.0)
    site.pack("rules", {"rules": {"pack-b/toy:jvp": "rules:jvp"}}, {"rules": """
        def jvp(primals, tangents):
            return primals[0] * 3.0, tangents[0] * 3.0
    """}, requires=["pack-b"])
    out = site.run("""
        import pack_a, pack_b, corejax as cj
        print(cj.jvp(pack_b.toy, (1.0,), (1.0,)), pack_b.toy.primitive.providers["jvp"])
        print(error(lambda: cj.jvp(pack_a.toy, (1.0,), (1.0,))).splitlines()[0])
    """, COREJAX_PACKS="")
    assert "rules 1.0" in out.splitlines()[0] and "pack-a 1.0" in out.splitlines()[1]


def test_a_program_with_an_ambiguous_primitive_is_printed_with_its_owner_and_read_back(site):
    site.toy("pack-a", "sin", factor=2.0)
    (site.folder / "notebook.py").write_text(site.TOY + toy("cos", 2.0))  # of no pack
    out = site.run("""
        import pack_a, corejax as cj
        from corejax import numpy as jnp
        from corejax.ir import parse_jaxpr
        for f in (lambda x: jnp.cos(jnp.sin(x)), lambda x: pack_a.sin(jnp.sin(x)), pack_a.sin):
            text = str(cj.make_jaxpr(f)(1.0))
            print(text.replace("\\n", " "))
            print(str(parse_jaxpr(text, find)) == text)
        print(error(lambda: parse_jaxpr("{ lambda ; a:f64[]. let b:f64[] = sin a in (b,) }", find)).splitlines()[0])
        from notebook import cos
        text = str(cj.make_jaxpr(cos)(1.0))
        print("notebook/cos a" in text, parse_jaxpr(text, find).eqns[0].primitive is cos.primitive)
    """, COREJAX_PACKS="")
    lines = out.splitlines()
    assert ["True"] * 3 == lines[1:6:2]
    assert "corejax-lax-basic/sin a" in lines[0] and "= cos b" in lines[0]
    assert "corejax-lax-basic/sin a" in lines[2] and "pack-a/sin b" in lines[2] and "pack-a/sin a" in lines[4]
    assert ["PackError: the primitive 'sin' is provided more than once", "True True"] == lines[6:]


def test_what_is_pickled_is_the_packs_or_that_of_a_declared_fork(site):
    site.toy("pack-a", "sin")
    site.pack("fork-of-a", {"primitives": {"sin": "fork_of_a:sin"}}, {"fork_of_a": site.TOY.replace(
        "    @hookimpl\n    def impl", "    substitutes = 'pack-a'\n    @hookimpl\n    def impl") + toy("sin", 5.0)})
    site.pack("pack-c", {"primitives": {"sin": "no_such_module:sin"}})
    out = site.run("import pack_a, pickle, corejax as cj; print(pickle.dumps(cj.make_jaxpr(pack_a.sin)(1.0)).hex())")
    code = f"""
        import pickle
        try:
            print(pickle.loads(bytes.fromhex("{out.strip()}")).eqns[0].primitive.origin)
        except PackError as caught:
            print(caught.message)
    """
    assert "pack-a 1.0" == site.run(code, COREJAX_PACKS="").strip()
    assert "fork-of-a 1.0" == site.run(code, COREJAX_PACKS="", COREJAX_DISABLE_PACKS="pack-a").strip()
    assert "the primitive 'sin' of pack-a isn't installed" == site.run(
        code, COREJAX_PACKS="", COREJAX_DISABLE_PACKS="pack-a,fork-of-a").strip()


def test_programs_are_exported_and_loaded_beside_a_clash(site):
    site.toy("pack-a", "sin", factor=2.0)
    out = site.run("""
        import corejax as cj
        from corejax import numpy as jnp
        data = cj.export.export(cj.jit(lambda x: jnp.sin(x) + jnp.log(x)), vjp_order=1)(np.ones(2)).serialize()
        again = cj.export.deserialize(data)
        print(again.call(np.ones(2)), cj.grad(lambda x: again.call(x).sum())(np.ones(2)))
    """, COREJAX_PACKS="")
    assert "[0.84147098 0.84147098] [1.54030231 1.54030231]" == out.strip()


def test_threads_that_use_an_ambiguous_name_at_once_get_one_function_each(site):
    two_packs(site)
    for pack in ("a", "b"):
        site.pack(f"user-{pack}", {"functions": {f"use_{pack}": f"user_{pack}:use"}},
                  {f"user_{pack}": USES}, requires=[f"pack-{pack}"])
    out = site.run("""
        import threading
        import corejax as cj
        found, barrier = [], threading.Barrier(8)
        def work(k):
            barrier.wait()
            for i in range(200):
                found.append((k % 2, (lax.use_b if k % 2 else lax.use_a)(1.0)))
                if k == 0 and i % 20 == 0:
                    with cj.plugins.prefer("pack-a"):
                        pass
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(sorted(set(found)), len(found))
    """)
    assert "[(0, 2.0), (1, 3.0)] 1600" == out.strip()
