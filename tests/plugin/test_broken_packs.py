"""Packs that fail, beside what the table of faults has: what else of a pack is refused, who is told, and how often."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

RECORD = """
def warned(action):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [str(w.message).partition("\\n")[0] for w in caught]
"""


def bad_pack(site, code: str) -> None:
    """A pack that is broken in one of its modules."""
    site.pack("bad-pack", {"primitives": {"bad": "bad_pack.main:bad", "worse": "bad_pack.other:worse"},
                           "roles": {"zeros": "bad_pack.main:zeros"}},
              {"bad_pack.__init__": "", "bad_pack.helper": "",
               "bad_pack.other": site.TOY + "worse = define(Toy('worse', 3.0))\n",
               "bad_pack.main": f"import bad_pack.helper\n{code}\n"})


def command(site, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m corejax ...` in a process that sees the packs of a site."""
    root = Path(__file__).resolve().parents[2]
    env = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
    env |= {"PYTHONPATH": os.pathsep.join((str(site.folder), str(root))), "COREJAX_PACKS": ",".join(site.names)}
    return subprocess.run([sys.executable, "-m", "corejax", *arguments], env=env, capture_output=True, text=True,
                          timeout=60, check=False)


def test_a_pack_that_fails_is_broken_as_a_whole_and_its_names_are_still_listed(site):
    site.toy("good-pack", "good")
    bad_pack(site, "raise ZeroDivisionError('by design')")
    out = site.run("""
        print(error(lambda: lax.bad))
        print("left:", [m for m in sys.modules if m.startswith("bad_pack")])
        print(error(lambda: lax.worse))
        print(error(lambda: roles.zeros))
        try:
            lax.bad
        except PackError as caught:
            print("cause:", type(caught.__cause__).__name__, isinstance(caught, ImportError))
        print("good:", float(lax.good(1.0)), [n for n in dir(lax) if n in ("bad", "good", "worse")])
        print("kept:", [key for key in registry._objects if key[1] in ("bad", "worse", "zeros")])
    """)
    assert 3 == out.count("PackError: the pack bad-pack 1.0 can't be imported") and "by design" in out
    assert "so its primitive 'bad' can't be used" in out and "so its primitive 'worse' can't be used" in out
    assert "so its role 'zeros' can't be used" in out
    assert "left: []" in out and "cause: ZeroDivisionError True" in out and "kept: []" in out
    assert "good: 2.0 ['bad', 'good', 'worse']" in out


def test_what_was_in_use_before_its_pack_broke_goes_on_working(site):
    bad_pack(site, "import no_such_module")
    out = site.run("""
        print(float(lax.worse(1.0)))
        print(error(lambda: lax.bad).partition(",")[0])
        print(float(lax.worse(1.0)), float(find("worse").bind(2.0)), sys.modules["bad_pack.other"].worse is lax.worse)
    """)
    assert ["3.0", "PackError: the pack bad-pack 1.0 can't be imported", "3.0 6.0 True"] == out.splitlines()


def test_a_keyboard_interrupt_passes_and_the_import_can_be_repeated(site):
    site.pack("slow-pack", {"primitives": {"toy": "slow_pack.main:toy"}},
              {"slow_pack.__init__": "", "slow_pack.helper": "",
               "slow_pack.main": "import builtins, slow_pack.helper\nif not hasattr(builtins, 'second'):\n"
                                 "    builtins.second = True\n    raise KeyboardInterrupt\nfrom toys import toy\n"})
    site.toy("toys")
    out = site.run("""
        print(error(lambda: lax.toy), [m for m in sys.modules if m.startswith("slow_pack")])
        print(float(registry.load("corejax.primitives", "toy")(1.0)))
    """, COREJAX_PACKS="slow-pack")
    assert ["KeyboardInterrupt:  []", "2.0"] == out.splitlines()


def test_an_entry_point_to_nowhere_leaves_the_rest_of_its_pack_usable(site):
    site.toy("toy-pack")
    entries = site.folder / "toy_pack-1.0.dist-info" / "entry_points.txt"
    entries.write_text(entries.read_text() + "gone = toy_pack:gone\n")
    out = site.run("print(error(lambda: lax.gone)); print(float(lax.toy(1.0)))")
    assert "toy-pack 1.0: the primitive 'gone' leads nowhere" in out and "gone = toy_pack:gone" in out
    assert "2.0" == out.splitlines()[-1]


def test_a_pack_that_uses_itself_while_it_is_imported_is_not_remembered_as_broken(site):
    site.pack("self-pack", {"primitives": {"toy": "self_pack:toy"}},
              {"self_pack": "from corejax import lax\nfrom corejax.errors import PackError\ntry:\n    lax.toy\n"
                            "except PackError as error:\n    seen = str(error)\nfrom toys import toy\n"})
    site.toy("toys")
    out = site.run("import self_pack; print(self_pack.seen); print(float(lax.toy(1.0)))", COREJAX_PACKS="self-pack")
    assert "is used while its module is being imported" in out and "2.0" == out.splitlines()[-1]


def test_many_threads_load_one_pack_once(site):
    site.pack("slow-pack", {"primitives": {"toy": "slow_pack:toy"}},
              {"slow_pack": "import time, builtins\nbuiltins.count = getattr(builtins, 'count', 0) + 1\n"
                            "time.sleep(0.2)\nfrom toys import toy\n"})
    site.toy("toys")
    out = site.run("""
        import builtins
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda _: (find("toy"), find("toy").impl), range(16)))
        print(len({id(p) for p, _ in found}), len({id(i.__func__) for _, i in found}), builtins.count)
    """, COREJAX_PACKS="slow-pack")
    assert "1 1 1" == out.strip()


# Who is told, and how often

def test_a_broken_pack_with_rules_for_many_primitives_is_reported_once(site):
    for name in ("one", "two", "three"):
        site.toy(f"pack-{name}", name)
    site.pack("bad-rules", {"rules": {f"pack-{name}/{name}:dce": "bad_rules:dce" for name in ("one", "two", "three")}},
              {"bad_rules": "raise OSError('no tables')"})
    out = site.run(RECORD + dedent("""
        found = warned(lambda: [float(getattr(lax, name)(1.0)) for name in ("one", "two", "three")])
        print(len(found), found[0])
    """))
    assert out.startswith("1 rules of bad-rules 1.0 for one are left out")


def test_who_excludes_a_broken_distribution_is_not_told_of_it(site):
    site.toy("good-pack", "good")
    site.pack("bad-pack", "[corejax.primitives]\nno equals sign here\n")
    code = RECORD + "print(warned(lambda: lax.good(1.0)))"
    assert "the distribution bad-pack is left out: its metadata is broken: line 2" in site.run(code)
    assert "[]" == site.run(code, COREJAX_PACKS="good-pack").strip()
    assert "[]" == site.run(code, COREJAX_DISABLE_PACKS="bad-pack").strip()


def test_where_warnings_are_errors_the_first_use_raises_and_the_second_works(site):
    site.toy("good-pack", "good")
    site.pack("bad-pack", "[corejax.primitives]\nno equals sign here\n")
    out = site.run("""
        warnings.simplefilter("error")
        print(error(lambda: lax.good).partition(":")[0])
        print(float(lax.good(1.0)))
    """)
    assert ["CorejaxWarning", "2.0"] == out.splitlines()


def test_the_command_line_says_what_is_broken(site):
    site.toy("good-pack", "good")
    bad_pack(site, "import no_such_module")
    site.pack("torn-pack", "[corejax.primitives]\nno equals sign here\n")
    site.toy("pack-a", "twofold")
    site.toy("pack-b", "twofold")
    listed = command(site, "plugins")
    assert (0, 1) == (listed.returncode, listed.stdout.count("torn-pack: broken: its metadata is broken: line 2"))
    assert "bad-pack 1.0: 2 primitives, 1 role" in listed.stdout
    checked = command(site, "check")
    assert 1 == checked.returncode
    assert 1 == checked.stderr.count("bad-pack: can't be imported: ModuleNotFoundError: No module named 'no_such_mod")
    assert "torn-pack: left out: its metadata is broken: line 2" in checked.stderr
    assert "pack-a: the primitive 'twofold' is provided more than once" in checked.stderr
    assert "good-pack" not in checked.stderr.partition("Warning")[0]
    assert "nothing is broken" == command(type(site)(site.folder / "empty"), "check").stdout.strip()


# Slow imports

def test_only_a_slow_import_is_reported_and_no_watch_stays_behind(site):
    site.toy("quick-pack", "quick")
    site.pack("slow-pack", {"primitives": {"slow": "slow_pack:slow"}},
              {"slow_pack": "import time\ntime.sleep(0.4)\nfrom toys import toy\nslow = toy\n"})
    site.toy("toys", "slow")
    (site.folder / "toys.py").write_text((site.folder / "toys.py").read_text() + "toy = slow\n")
    code = RECORD + dedent("""
        import _thread, time
        print(warned(lambda: (lax.quick(1.0), lax.slow(1.0))))
        time.sleep(0.05)
        print(_thread._count())
    """)
    told, count = site.run(code, COREJAX_SLOW_IMPORT="0.15", COREJAX_PACKS="quick-pack,slow-pack").splitlines()
    assert 1 == told.count("takes more than 0.15 s") == told.count("importing slow_pack of the pack slow-pack 1.0")
    assert "0" == count
    assert ["[]", "0"] == site.run(code, COREJAX_SLOW_IMPORT="0", COREJAX_PACKS="quick-pack,slow-pack").splitlines()


def test_a_slow_import_is_reported_where_warnings_are_errors_and_goes_on(site):
    site.pack("slow-pack", {"primitives": {"slow": "slow_pack:slow"}},
              {"slow_pack": "import time\ntime.sleep(0.3)\n" + site.TOY + "slow = define(Toy('slow', 2.0))\n"})
    out = site.run("""
        warnings.simplefilter("error")
        sys.stderr = sys.stdout
        print(float(lax.slow(1.0)))
    """, COREJAX_SLOW_IMPORT="0.1")
    assert out.startswith("CorejaxWarning: importing slow_pack of the pack slow-pack 1.0 takes more than 0.1 s")
    assert "2.0" == out.splitlines()[-1]


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "1e9"])
def test_a_patience_that_is_no_number_of_seconds_is_refused_and_breaks_no_pack(site, text):
    site.toy("toy-pack")
    out = site.run("""
        import os
        print(error(lambda: lax.toy))
        del os.environ["COREJAX_SLOW_IMPORT"]
        print(float(lax.toy(1.0)))
    """, COREJAX_SLOW_IMPORT=text)
    assert f"CorejaxValueError: COREJAX_SLOW_IMPORT must be a number of seconds\n  got:    {text!r}" in out
    assert "2.0" == out.splitlines()[-1]


# The host

def test_a_module_that_an_import_makes_anew_stays(site):
    site.pack("pack-a", {"primitives": {"toy": "pack_a:toy"}},
              {"pack_a": "import sys\ndel sys.modules['json']\nimport json\n" + site.TOY
                         + "toy = define(Toy('toy', 2.0))\n"})
    out = site.run(RECORD + dedent("""
        import json
        told, now = warned(lambda: lax.toy(1.0)), sys.modules["json"]
        print(told, now is json, sys.modules["pack_a"].json is now)
    """))
    assert "[] False True" == out.strip()


def test_a_module_replaced_by_a_fake_is_put_back_with_a_warning(site):
    site.pack("pack-a", {"primitives": {"toy": "pack_a:toy"}},
              {"pack_a": "import sys, types\nsys.modules['json'] = types.ModuleType('json')\n" + site.TOY
                         + "toy = define(Toy('toy', 2.0))\n"})
    out = site.run(RECORD + dedent("""
        import json
        print(warned(lambda: lax.toy(1.0)), sys.modules["json"] is json)
    """))
    assert "They were restored: json" in out and out.strip().endswith("True")


def test_an_exit_of_the_users_own_code_passes(site):
    site.toy("toy-pack")
    out = site.run("""
        import corejax as cj
        class Leaves:
            name = "leaves"
            @hookimpl
            def abstract_eval(self, avals):
                return avals[0]
            @hookimpl
            def impl(self, args):
                sys.exit("mine")
        leaves = define(Leaves())
        print(error(lambda: cj.make_jaxpr(lambda x: sys.exit(4))(1.0)))
        print(error(lambda: cj.vmap(lambda x: lax.toy(x) if x is None else sys.exit(5))(np.ones(2))))
        print(error(lambda: leaves(1.0)))
    """)
    assert ["SystemExit: 4", "SystemExit: 5", "SystemExit: mine"] == out.splitlines()


def test_a_finder_that_fails_costs_the_distributions_after_it_only(site):
    site.toy("good-pack", "good")
    out = site.run(RECORD + dedent("""
        class Finder:
            @staticmethod
            def find_spec(*_):
                return None
            @staticmethod
            def find_distributions(*_):
                raise OSError("the share is offline")
        sys.meta_path.append(Finder)
        print(warned(lambda: print(float(lax.good(1.0)))))
    """))
    assert "2.0" == out.splitlines()[0]
    assert "OSError: the share is offline" in out


def test_a_finder_may_use_corejax_itself(site):
    site.toy("good-pack", "good")
    out = site.run("""
        class Finder:
            used = False
            @staticmethod
            def find_spec(*_):
                return None
            @classmethod
            def find_distributions(cls, *_):
                if not cls.used:
                    cls.used = True
                    print(float(lax.good(1.0)))
                return ()
        sys.meta_path.append(Finder)
        print(float(lax.good(2.0)), find("good") is lax.good.primitive)
    """)
    assert ["2.0", "4.0 True"] == out.splitlines()
