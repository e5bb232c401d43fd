"""Modules that packs provide under `corejax`, and public functions beside `cj.grad`."""

from __future__ import annotations

import os

import pytest

import forked
from imports import ROOT

MODULES = {
    "wide_pack.__init__": "print('loaded')\nfrom wide_pack import deep\nclass Thing:\n    pass\ndef double(x):\n"
                          "    return x + x\n",
    "wide_pack.deep.__init__": "from wide_pack.deep import deeper\nWHERE = 'deep'\n",
    "wide_pack.deep.deeper": "WHERE = 'deeper'\n",
    "wide_linalg": "def norm(x):\n    return abs(x)\n",
}
ENTRIES = {"namespaces": {"wide": "wide_pack", "lax.linear": "wide_linalg"}}


@pytest.fixture
def wide(site):
    site.pack("wide-pack", ENTRIES, MODULES)
    return site


WAYS = {
    "attribute": "import corejax as cj; m = cj.wide",
    "from": "from corejax import wide as m",
    "import": "import corejax.wide as m",
    "submodule first": "import corejax.wide.deep.deeper as d; import corejax.wide as m; assert d is m.deep.deeper",
    "real name first": "import wide_pack.deep; import corejax.wide as m",
    "from submodule": "from corejax.wide.deep import deeper as d; import corejax.wide as m; assert d is m.deep.deeper",
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_importing_gives_the_packs_own_modules_once(wide, way):
    out = wide.run(WAYS[way] + """
import sys, wide_pack, wide_pack.deep.deeper, corejax.wide.deep.deeper, corejax
assert m is wide_pack is corejax.wide is sys.modules["corejax.wide"]
assert corejax.wide.deep is wide_pack.deep and corejax.wide.deep.deeper is wide_pack.deep.deeper
assert sys.modules["corejax.wide.deep.deeper"] is wide_pack.deep.deeper
print(m.__name__, m.__spec__.name, m.deep.deeper.__spec__.name, m.deep.deeper.__package__)
""")
    assert ["loaded", "wide_pack wide_pack wide_pack.deep.deeper wide_pack.deep"] == out.splitlines()


def test_classes_and_functions_are_pickled_and_reloaded_by_their_own_names(wide):
    assert ["loaded", "True True", "loaded", "True wide_pack"] == wide.run("""
        import importlib, pickle, corejax as cj
        thing = cj.wide.Thing
        print(pickle.loads(pickle.dumps(thing)) is thing, pickle.loads(pickle.dumps(cj.wide.double)) is cj.wide.double)
        module = importlib.reload(cj.wide)
        print(module is cj.wide, cj.wide.Thing.__module__)
    """).splitlines()


@pytest.mark.parametrize("first", ["from corejax import self as m", "import corejax.self as m",
                                   "import self_pack as m"])
def test_a_module_that_imports_itself_by_its_name_in_corejax_is_executed_once(site, first):
    site.pack("self-pack", {"namespaces": {"self": "self_pack"}}, {
        "self_pack.__init__": """
            print("loaded")
            import corejax.self as me
            from corejax import self as also_me
            import corejax.self.sub
            assert me is also_me and me.sub.me is me
        """,
        "self_pack.sub": "import corejax.self as me\nimport corejax.self.sub as own\nWHERE = 'sub'\n"})
    out = site.run(first + """
import sys, self_pack, corejax.self.sub
print(m is self_pack is sys.modules["corejax.self"] is m.me, m.sub is sys.modules["self_pack.sub"] is m.sub.own)
""")
    assert ["loaded", "True True"] == out.splitlines()


LAZY = {
    "lazy_pack.__init__": """
        from corejax.plugin import namespace
        NAMESPACE = "lazy"
        def local():
            return "own"
        __all__, __getattr__, __dir__ = namespace(__name__, {
            "ops": "double triple=thrice _inner", "deep": "=deep", "broken": "gone", "leaving": "leave"}, ["local"])
    """,
    "lazy_pack.ops": "print('ops')\ndouble, triple, _inner = lambda x: 2 * x, lambda x: 3 * x, 'in'\n",
    "lazy_pack.deep": """
        from corejax.plugin import namespace
        print("deep")
        def twice(): ...
        __all__ = ["twice"]
        _, __getattr__, __dir__ = namespace(__name__, {}, __all__, lambda wanted, names: f"not {wanted}: {names}")
    """,
    "lazy_pack.broken": "", "lazy_pack.leaving": "raise SystemExit(3)",
}


@pytest.fixture
def lazy(site):
    site.pack("lazy-pack", {"namespaces": {"lazy": "lazy_pack"}}, LAZY)
    return site


def test_a_lazy_namespace_imports_a_module_when_one_of_its_names_is_first_used(lazy):
    assert ["['deep', 'double', 'gone', 'leave', 'local', 'thrice'] True", "ops", "6 True in", "deep", "True own"
            ] == lazy.run("""
        import corejax.lazy as m
        print(m.__all__, m.__all__ == dir(m))
        print(m.thrice(2), "thrice" in vars(m), m._inner)
        from corejax.lazy import deep
        print(deep is m.deep, m.local())
    """).splitlines()


def test_the_public_names_of_a_lazy_namespace_can_all_be_imported(lazy):
    (lazy.folder / "lazy_pack/broken.py").write_text("gone = leave = 0")
    (lazy.folder / "lazy_pack/leaving.py").write_text("leave = 0")
    assert "[True, True, False, False]" in lazy.run("""
        from corejax.lazy import *
        print([name in globals() for name in ("double", "deep", "_inner", "triple")])
    """)


def test_a_name_that_a_lazy_namespace_does_not_have_is_an_error_with_a_hint(lazy):
    out = lazy.run("""
        import corejax as cj
        print(error(lambda: cj.lazy.doubel))
        print(hasattr(cj.lazy, "doubel"), hasattr(cj.lazy, "__wrapped__"))
        print(error(lambda: cj.lazy.something))
        print(error(lambda: cj.lazy.deep.once))
        def imports():
            from corejax.lazy import doubel
        print(error(imports))
    """)
    for said in ("CorejaxAttributeError: module 'corejax.lazy' has no attribute 'doubel'\n  got:    lazy.doubel\n"
                 "  wanted: a name that dir(corejax.lazy) lists\n  where:  <string>:", "to do:  did you mean double?",
                 "False False", "to do:  write it with what is there",
                 "module 'corejax.lazy.deep' has no attribute 'once'\n  got:    lazy.deep.once\n",
                 "to do:  not once: ['twice']", "CorejaxImportError: module 'corejax.lazy' has no attribute 'doubel'"):
        assert said in out, said


def test_a_lazy_namespace_with_a_module_that_is_wrong_blames_the_pack(lazy):
    out = lazy.run("""
        import corejax as cj, lazy_pack
        print(error(lambda: cj.lazy.gone))
        print(error(lambda: cj.lazy.leave))
    """)
    assert "module 'lazy_pack.broken' has no attribute 'gone'" in out
    assert "CorejaxRuntimeError: the code of lazy-pack 1.0 exits the process\n  got:    SystemExit: 3" in out


def test_names_below_lax_are_namespaces_too(wide):
    assert ["2 True True"] == wide.run("""
        import corejax.lax.linear, wide_linalg
        from corejax.lax.linear import norm
        print(norm(-2), lax.linear is wide_linalg, "linear" in dir(lax))
    """).splitlines()
    assert ["2"] == wide.run("print(lax.linear.norm(-2))").splitlines()


def test_several_packs_fill_the_experimental_namespace(site):
    site.pack("first-pack", {"functions": {"experimental/io": "first_pack:io"}, "namespaces": {
        "experimental.rings": "first_pack.rings"}}, {"first_pack.__init__": "def io(x):\n    return x + 1\n",
                                                      "first_pack.rings": "SIZE = 3\n"})
    site.pack("second-pack", {"functions": {"experimental/out": "second_pack:out"}, "namespaces": {
        "experimental.flat": "second_pack.flat"}}, {"second_pack.__init__": "def out(x):\n    return x + 2\n",
                                                     "second_pack.flat.__init__": "", "second_pack.flat.low": ""})
    out = site.run("""
        import corejax as cj
        print({"io", "out", "rings", "flat"} <= {*dir(cj.experimental)}, "first_pack" in sys.modules)
        from corejax.experimental import io, rings, flat as level
        from corejax import experimental
        import corejax.experimental.rings as same, corejax.experimental.flat.low, first_pack.rings, second_pack.flat
        print(io(1), cj.experimental.out(1), io is experimental.io, rings is same is first_pack.rings,
              level is second_pack.flat)
        print("io" in dir(lax), "experimental/io" in dir(lax), "rings" in dir(cj), hasattr(cj, "io"),
              "experimental" in dir(cj))
        print("io" in vars(experimental), cj.plugins.prefer("first-pack") and "io" in vars(experimental),
              experimental.io(2))
        names = {}
        exec("from corejax.experimental import *", names)
        print({"io", "out", "rings", "flat"} <= names.keys())
        cj.plugins.explain("experimental/io")
    """).splitlines()
    assert ["True False", "2 3 True True True", "False False False False True", "True False 3", "True",
            "experimental/io (first-pack 1.0): a function, its only provider"] == out[:6]
    said = site.run("""
        import corejax as cj
        for name in ("ring", "jit", "nothing_like_it"):
            try:
                getattr(cj.experimental, name)
            except AttributeError as caught:
                print(caught.message, "|", caught.todo)
        print(error(lambda: __import__("corejax.experimental.rngs")).splitlines()[0])
        try:
            from corejax.experimental import oi
        except ImportError as caught:
            print(caught.message)
    """)
    for each in ("provides experimental.ring | did you mean 'rings'?", "experimental.jit | write cj.jit",
                 "no installed pack provides the namespace corejax.experimental.rngs",
                 "\nno installed pack provides experimental.oi"):
        assert each in said, (each, said)
    hidden = site.run("import corejax as cj\nprint(error(lambda: cj.experimental.io))", COREJAX_PACKS="none")
    assert "first-pack 1.0 provides it, and COREJAX_PACKS or COREJAX_DISABLE_PACKS excludes that pack" in hidden


def test_an_experimental_name_of_two_packs_is_an_error_until_the_user_chooses(site):
    for name in ("first", "second"):
        site.pack(f"{name}-pack", {"functions": {"experimental/io": f"{name}_pack:io"}},
                  {f"{name}_pack": f"from corejax import experimental\ndef io():\n    return '{name}'\n"
                                   "def own():\n    return experimental.io()\n"})
    assert ["CorejaxAttributeError: the function 'experimental/io' is provided more than once", "first second",
            "second"] == site.run("""
        import corejax as cj, first_pack, second_pack
        print(error(lambda: cj.experimental.io).splitlines()[0])
        print(first_pack.own(), second_pack.own())
        with cj.plugins.prefer("second-pack"):
            print(cj.experimental.io())
    """).splitlines()


def test_nothing_is_imported_before_its_use_and_dir_lists_it(wide):
    assert ["True False"] == wide.run("""
        import corejax as cj
        print("wide" in dir(cj), "wide_pack" in sys.modules)
    """).splitlines()


def test_without_packs_an_import_says_which_pack_would_bring_it(wide):
    out = wide.run("""
        import importlib.util
        def load():
            import corejax.wide
        print(error(load))
        print(importlib.util.find_spec("corejax.wide"), importlib.util.find_spec("corejax.nothing"))
        print(error(lambda: __import__("corejax.wild")).splitlines()[0])
        print(error(lambda: __import__("corejax.lax.nothing")).splitlines()[0])
    """, COREJAX_PACKS="none")
    assert out.startswith("CorejaxModuleNotFoundError: no installed pack provides the namespace corejax.wide")
    assert "wide-pack" in out and "where:  <string>:" in out and "\nNone None\n" in out
    assert "corejax.wild" in out and "corejax.lax.nothing" in out


def test_an_unknown_name_is_suggested(wide):
    assert "did you mean 'wide'?" in wide.run("print(error(lambda: __import__('corejax.wode')))")


def test_two_packs_with_one_namespace_are_an_error_until_the_user_chooses(wide):
    wide.pack("other-pack", {"namespaces": {"wide": "other_wide"}}, {"other_wide": "print('other')\n"})
    code = "import corejax as cj\nprint(error(lambda: cj.wide).splitlines()[0])"
    assert "CorejaxAttributeError: the namespace 'wide' is provided more than once" == wide.run(code).strip()
    assert "other" == wide.run("import corejax.wide", COREJAX_PREFER="other-pack").strip()
    assert ["other", "other_wide", "loaded", "wide_pack"] == wide.run("""
        import corejax as cj
        for pack in ("other-pack", "wide-pack"):
            with cj.plugins.prefer(pack):
                print(cj.wide.__name__)
    """).splitlines()


@pytest.mark.parametrize(("value", "text", "said"), [
    ("sad_pack", "raise ValueError('by design')", "the pack sad-pack 1.0 can't be imported"),
    ("sad_pack:thing", "thing = 3", "the namespace 'sad' does not lead to a module"),
    ("sad_pak", "", "the pack sad-pack 1.0 can't be imported")])
def test_a_namespace_that_can_not_be_used_is_an_error_that_names_its_pack(site, value, text, said):
    site.pack("sad-pack", {"namespaces": {"sad": value}}, {"sad_pack": text})
    for use in ("cj.sad", "__import__('corejax.sad')", "__import__('corejax.sad.deep')"):
        out = site.run(f"import corejax as cj\nprint(error(lambda: {use}))")
        assert said in out and "where:  <string>:" in out, use


def test_the_kernels_names_are_reserved(site):
    site.pack("bold-pack", {"namespaces": {"stages": "bold_pack", "grad": "bold_pack"},
                            "functions": {"cj/jit": "bold_pack:jit"}}, {"bold_pack": "def jit(f):\n    return 3\n"})
    out = site.run("""
        import corejax as cj, corejax.stages
        from corejax.inspect.checkup import checkup
        print(cj.stages.__name__, cj.grad.__name__, callable(cj.jit(lambda x: x)))
        print(*checkup(), sep="\\n")
    """)
    assert "corejax.stages grad True" == out.splitlines()[0]
    for name in ("namespace 'stages'", "namespace 'grad'", "function 'cj/jit'"):
        assert f"bold-pack: the {name} is a name of corejax's own" in out, out


def test_a_function_may_be_at_the_top(site):
    site.pack("top-pack", {"functions": {"cj/topmost": "top_pack:topmost"}},
              {"top_pack": "def topmost(x):\n    return x + 1\n"})
    out = site.run("""
        import corejax as cj
        from corejax import topmost
        print(cj.topmost(1), topmost is cj.topmost, "topmost" in dir(cj), "cj/topmost" in dir(lax))
        print("topmost" in vars(cj), cj.plugins.prefer("top-pack") and "topmost" in vars(cj), cj.topmost(2))
        print(error(lambda: lax.topmost).splitlines()[0])
    """).splitlines()
    assert ["2 True True False", "True False 3", "CorejaxAttributeError: no installed pack provides lax.topmost"] == out
    assert "did you mean 'topmost'?" in site.run("import corejax as cj; print(error(lambda: cj.topmos))")
    excluded = site.run("import corejax as cj; print(error(lambda: cj.topmost))", COREJAX_PACKS="none")
    assert "top-pack 1.0 provides it, and COREJAX_PACKS or COREJAX_DISABLE_PACKS excludes that pack" in excluded


def test_sixteen_threads_import_a_namespace_once(wide):
    out = wide.run("""
        from concurrent.futures import ThreadPoolExecutor
        import importlib
        names = ["corejax.wide", "corejax.wide.deep", "corejax.wide.deep.deeper", "wide_pack.deep"] * 8
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(importlib.import_module, names))
        print(len({id(module) for module in found}))
    """)
    assert ["loaded", "3"] == out.splitlines()


def test_nothing_is_imported_while_python_holds_the_lock_of_all_imports(wide):
    # Python calls finders with this lock. One that imports may wait for another thread's import, which waits for the
    # lock: half of the processes whose threads imported a namespace first of all hung.
    code = """
import _imp, builtins
import corejax
plain, while_held = __import__, []
def watched(name, *args, **options):
    if _imp.lock_held():
        while_held.append(name)
    return plain(name, *args, **options)
builtins.__import__ = watched
from importlib import _bootstrap
gcd = _bootstrap._gcd_import
def watched_too(name, *args, **options):
    if _imp.lock_held():
        while_held.append(name)
    return gcd(name, *args, **options)
_bootstrap._gcd_import = watched_too
import corejax.wide.deep.deeper
try:
    import corejax.widd
except ModuleNotFoundError as error:
    print(error.name, "corejax.widd" in __import__("sys").modules)
print(while_held)
"""
    env = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
    env |= {"PYTHONPATH": os.pathsep.join((str(wide.folder), str(ROOT))), "COREJAX_PACKS": "wide-pack"}
    done = forked.run(code, env)
    assert ["loaded", "corejax.widd False", "[]"] == done.stdout.splitlines(), done.stderr
