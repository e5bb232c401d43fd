"""Entry points: what is installed is known, loaded late, and conflicts and choices are reported by name."""

from __future__ import annotations

import pytest


def test_a_pack_is_found_used_and_imported_only_when_used(site):
    site.toy("toy-pack")
    out = site.run("""
        print("toy" in dir(lax), "toy_pack" in sys.modules)
        print(lax.toy(np.array([1.0, 2.0])), lax.toy.primitive is find("toy"), find("toy").origin)
        import toy_pack
        print(toy_pack.toy is lax.toy)
        import pickle, copy
        print(pickle.loads(pickle.dumps(lax.toy)) is lax.toy, pickle.loads(pickle.dumps(find("toy"))) is find("toy"),
              copy.deepcopy(find("toy")) is find("toy"))
    """)
    assert out.splitlines() == ["True False", "[2. 4.] True toy-pack 1.0", "True", "True True True"]


def test_importing_corejax_and_its_plugin_package_loads_neither_pluggy_nor_metadata(site):
    out = site.run("""
        import subprocess
        code = ("import corejax.kernel.primitive, corejax.lax, sys; "
                "print([m for m in ('pluggy', 'importlib_metadata', 'jaxlib') if m in sys.modules])")
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
    """)
    assert out.strip() == "[]"


def test_an_entry_point_may_name_the_plugin_object_or_the_handle(site):
    site.pack("both", {"primitives": {"one": "both:ONE", "two": "both:two"}, "functions": {"two": "both:two"}},
              {"both": site.TOY + "ONE = Toy('one', 3.0)\none = define(ONE)\ntwo = define(Toy('two', 2.0))\n"})
    out = site.run("""
        import both
        print(lax.one is both.one, lax.two is both.two, find("one") is both.one.primitive)
        print(lax.one.__name__, lax.one.__doc__, lax.one.__module__)
    """)
    assert out.splitlines() == ["True True True", "one A toy. both"]


def test_an_entry_point_under_another_name_is_an_error(site):
    site.pack("odd", {"primitives": {"one": "odd:two"}}, {"odd": site.TOY + "two = define(Toy('two', 3.0))\n"})
    out = site.run("print(error(lambda: lax.one))")
    assert "PluginError: the entry point 'one' leads to the primitive 'two'" in out


def test_duplicate_primitive_names_both_packs(site):
    site.toy("pack-a", factor=2.0, version="1.5")
    site.toy("pack-b", factor=3.0, version="2.5")
    code = "print(error(lambda: lax.toy(1.0))); print(dir(lax))"
    out = site.run(code)
    assert "CorejaxAttributeError: the primitive 'toy' is provided more than once" in out
    assert "pack-a 1.5 (pack_a:toy)" in out and "pack-b 2.5 (pack_b:toy)" in out and "COREJAX_PREFER=" in out
    assert site.run("print(float(lax.toy(1.0)))", COREJAX_PREFER="pack-b").strip() == "3.0"
    assert site.run("print(float(lax.toy(1.0)))", COREJAX_PREFER="Pack_A, pack-b").strip() == "2.0"
    assert "not used: pack-b 2.5" in site.run(
        "from corejax.inspect.cli import main; main(['explain', 'toy'])", COREJAX_PREFER="pack-a")


@pytest.mark.parametrize(("group", "use"), [("functions", "lax.thing"), ("roles", "roles.thing")])
def test_duplicate_functions_and_roles_name_both_packs(site, group, use):
    for name in ("pack-a", "pack-b"):
        site.pack(name, {group: {"thing": "os:getcwd"}})
    out = site.run(f"print(error(lambda: {use}))")
    assert f"the {group[:-1]} 'thing' is provided more than once" in out
    assert "pack-a 1.0" in out and "pack-b 1.0" in out


def test_a_duplicate_does_not_disturb_other_names(site):
    site.toy("pack-a")
    site.toy("pack-b")
    site.toy("pack-c", "other", 5.0)
    assert site.run("print(float(lax.other(1.0)))").strip() == "5.0"


def test_packs_can_be_restricted_and_disabled(site):
    site.toy("pack-a", "one")
    site.toy("pack-b", "two")
    names = "print([n for n in dir(lax) if n in ('one', 'two')])"
    assert site.run(names).strip() == "['one', 'two']"
    assert site.run(names, COREJAX_PACKS="none").strip() == "[]"
    assert site.run(names, COREJAX_PACKS="pack_a").strip() == "['one']"
    assert site.run(names, COREJAX_DISABLE_PACKS="pack-a").strip() == "['two']"
    out = site.run("print(error(lambda: lax.one))", COREJAX_DISABLE_PACKS="pack-a")
    assert "CorejaxAttributeError: no installed pack provides lax.one" in out
    assert "pack-a 1.0 provides it, and COREJAX_PACKS or COREJAX_DISABLE_PACKS excludes that pack" in out


@pytest.mark.parametrize("variable", ["COREJAX_PACKS", "COREJAX_DISABLE_PACKS", "COREJAX_PREFER"])
def test_an_unknown_pack_in_the_environment_is_an_error(site, variable):
    site.toy("pack-a")
    out = site.run("print(error(lambda: lax.toy))", **{variable: "pack-aa"})
    assert f"CorejaxValueError: {variable} names a pack that is not installed" in out
    assert "did you mean 'pack-a'?" in out


def test_a_star_imports_what_packs_provide(site):
    site.toy("toy-pack")
    site.pack("more-pack", {"functions": {"more": "more_pack:more"}}, {"more_pack": "def more(x):\n    return x\n"})
    assert ["more toy"] == site.run("""
        names = {}
        exec("from corejax.lax import *", names)
        print(*sorted(names.keys() - {"__builtins__"}))
    """).splitlines()


def test_unknown_names_come_with_a_suggestion_or_what_to_install(site):
    site.toy("pack-a", "softplus")
    out = site.run("""
        print(error(lambda: lax.softplsu))
        print(error(lambda: lax.entirely_else))
        print(error(lambda: find("softplsu")))
        print(error(lambda: roles.accumulate))
        print(error(lambda: operators.add))
    """)
    assert "no installed pack provides lax.softplsu" in out and "did you mean 'softplus'?" in out
    assert "CorejaxKeyError: no installed pack provides the primitive 'softplsu'" in out
    assert "CorejaxNotImplementedError: no installed pack fills the role 'accumulate'" in out
    assert "no installed pack fills the role 'operators.add'" in out
    assert "corejax-lax-basic 0.1.0 provides it, and COREJAX_PACKS or COREJAX_DISABLE_PACKS excludes that pack" in out
    assert "did you mean 'softplus'? otherwise install the pack that provides it" in out and "pip install" not in out
    assert "packs in use: pack-a" in out and "<string>" in out


def test_roles_and_operators_load_late_and_stay_as_attributes(site):
    site.pack("pack-a", {"roles": {"accumulate": "role_pack:add", "operators.add": "role_pack:add"}},
              {"role_pack": "def add(x, y):\n    return x + y\n"})
    out = site.run("""
        print("role_pack" in sys.modules, "accumulate" in vars(roles))
        print(roles.accumulate(1, 2), operators.add(3, 4))
        print("accumulate" in vars(roles), "add" in vars(operators))
    """)
    assert out.splitlines() == ["False False", "3 7", "True True"]


def test_of_two_versions_on_the_path_the_first_counts(site, tmp_path):
    site.toy("pack-a", "one")
    other = type(site)(tmp_path / "elsewhere")
    other.toy("pack-a", "two", version="0.1")
    out = site.run(f"""
        sys.path.append({str(other.folder)!r})
        print([n for n in dir(lax) if n in ("one", "two")], manifest.read().packs["pack-a"])
    """)
    assert out.strip() == "['one'] pack-a 1.0"


def test_three_hundred_packs_are_listed_without_importing_one(site):
    for i in range(300):
        site.pack(f"pack-{i}", {"primitives": {f"p{i}": f"package_{i}:p"}, "functions": {f"f{i}": f"package_{i}:f"}},
                  {f"package_{i}": "raise AssertionError('imported')"})
    out = site.run("""
        assert len(manifest.read().packs) == 300
        assert len([n for n in dir(lax) if n[0] in "pf" and n[1:].isdigit()]) == 600
        from corejax.inspect.cli import main
        assert main(["plugins"]) == 0 and main(["primitives"]) == 0
        print([m for m in sys.modules if m.startswith("package_")])
    """)
    assert "[]" == out.splitlines()[-1]


def test_the_command_line_lists_explains_and_fails_by_message(site):
    site.toy("toy-pack")
    out = site.run("""
        from corejax.inspect.cli import main
        assert main(["plugins"]) == 0 and main(["primitives"]) == 0 and main(["version"]) == 0
        assert "toy_pack" not in sys.modules
        assert main(["explain", "toy"]) == 0
        sys.stderr = sys.stdout
        assert main(["explain", "toi"]) == 1
    """)
    assert "toy-pack 1.0: 1 primitive\n" in out and "  toy\n" in out
    assert "impl: toy-pack 1.0" in out and "vmap: fallback" in out and "dce: absent" in out
    assert "no installed pack provides a primitive, function or role called 'toi'" in out


def test_pickles_of_primitives_of_one_name_are_of_their_packs(site):
    site.toy("pack-a", factor=2.0)
    site.toy("pack-b", factor=3.0)
    out = site.run("""
        import pickle
        import pack_a, pack_b
        texts = [pickle.dumps(each.toy.primitive) for each in (pack_a, pack_b)]
        print([pickle.loads(text) is each.toy.primitive for text, each in zip(texts, (pack_a, pack_b))])
        print(error(lambda: lax.toy).splitlines()[0])
    """).splitlines()
    assert "[True, True]" == out[0] and "provided more than once" in out[1]


def test_printed_programs_name_the_packs_of_primitives_of_one_name_and_are_read_back(site):
    site.toy("pack-a", factor=2.0)
    site.toy("pack-b", factor=3.0)
    (site.folder / "a_module.py").write_text("from pack_a import Toy, define\ntoy = define(Toy('toy', 5.0))")
    out = site.run("""
        import corejax as cj
        import a_module, pack_a, pack_b
        from corejax.ir import ClosedJaxpr, jaxpr_as_fun, parse_jaxpr, structural_key
        alone = cj.make_jaxpr(pack_b.toy)(1.0)
        closed = cj.make_jaxpr(lambda x: a_module.toy(pack_b.toy(pack_a.toy(x))))(1.0)
        print(alone)
        print(*[line.split(" = ")[1] for line in str(closed).splitlines()[1:-1]])
        back = parse_jaxpr(str(closed), find)
        print(structural_key(back) is structural_key(closed.jaxpr), jaxpr_as_fun(ClosedJaxpr(back, ()))(1.0))
        print([float(cj.jit(each.toy)(1.0)) for each in (pack_a, pack_b)])
        print(error(lambda: find("pack-c/toy")).splitlines()[0])
        print(error(lambda: find("elsewhere/toy")).splitlines()[0])
        print(error(lambda: find("a_module/nothing")).splitlines()[0])
        with cj.plugins.prefer("pack-b"):
            print(find("toy") is find("pack-b/toy") is find("Pack_B/toy") is not find("pack-a/toy"))
    """).splitlines()
    assert "{ lambda ; a:~f64[]. let b:~f64[] = pack-b/toy a in (b,) }" == out[0]
    assert "pack-a/toy a pack-b/toy b a_module/toy c" == out[1]
    assert out[2].startswith("True [") and "30." in out[2] and "[2.0, 3.0]" == out[3]
    assert "PackError: the primitive 'toy' of pack-c isn't installed" == out[4]
    assert "of elsewhere isn't installed" in out[5] and "True" == out[7]


def test_frames_of_a_pack_without_primitives_are_not_the_users(site):
    site.toy("toy-pack")
    site.pack("helpers-pack", {"functions": {"helped": "helpers_pack:helped"}}, {"helpers_pack": """
        from corejax import lax
        def helped(x):
            return lax.toy(x)
        def also(x):
            return lax.toy("no")
    """})
    out = site.run("""
        import helpers_pack
        lax.toy(1.0)
        print(error(lambda: helpers_pack.also(1.0)))
    """)
    assert "where:  <string>:" in out and "helpers_pack.py" not in out


def test_a_pack_that_is_reloaded_is_used_from_then_on(site):
    site.toy("toy-pack")
    out = site.run("""
        import importlib, pathlib, toy_pack
        print(float(lax.toy(1.0)), float(find("toy").bind(np.float64(1.0))))
        path = pathlib.Path(toy_pack.__file__)
        path.write_text(path.read_text().replace("2.0", "5.25"))
        importlib.reload(toy_pack)
        print(float(lax.toy(1.0)), float(find("toy").bind(np.float64(1.0))), lax.toy is toy_pack.toy)
    """)
    assert ["2.0 2.0", "5.25 5.25 True"] == out.splitlines()
