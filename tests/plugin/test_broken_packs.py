"""Packs that fail: the others work, nothing is half registered, and the original cause reaches who uses them."""

from __future__ import annotations

import pytest

FAULTS = {
    "import error": ("import no_such_module_of_mine", "ModuleNotFoundError: No module named 'no_such_module_of_mine'"),
    "raises": ("raise ZeroDivisionError('by design')", "ZeroDivisionError: by design"),
    "exits": ("import sys; sys.exit(3)", "SystemExit: 3"),
    "does not parse": ("def (", "SyntaxError"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_pack_that_fails_to_import_is_reported_with_its_cause(site, fault):
    code, cause = FAULTS[fault]
    site.toy("good-pack", "good")
    site.pack("bad-pack", {"primitives": {"bad": "bad_pack.main:bad", "worse": "bad_pack.other:worse"},
                           "roles": {"zeros": "bad_pack.main:zeros"}},
              {"bad_pack.__init__": "", "bad_pack.helper": "", "bad_pack.other": "worse = 1",
               "bad_pack.main": f"import bad_pack.helper\n{code}\n"})
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
    """)
    assert "PackError: the pack bad-pack 1.0 " in out and cause in out
    assert "so its primitive 'bad' can't be used" in out and "so its primitive 'worse' can't be used" in out
    assert "so its role 'zeros' can't be used" in out
    assert "left: []" in out and f"cause: {cause.partition(':')[0]} True" in out
    assert "COREJAX_DISABLE_PACKS=bad-pack leaves it out" in out
    assert "good: 2.0 ['bad', 'good', 'worse']" in out


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
    assert out.splitlines() == ["KeyboardInterrupt:  []", "2.0"]


def test_an_entry_point_to_nowhere_leaves_the_rest_of_its_pack_usable(site):
    site.toy("toy-pack")
    entries = site.folder / "toy_pack-1.0.dist-info" / "entry_points.txt"
    entries.write_text(entries.read_text() + "gone = toy_pack:gone\n")
    out = site.run("print(error(lambda: lax.gone)); print(float(lax.toy(1.0)))")
    assert "toy-pack 1.0: the primitive 'gone' leads nowhere" in out and "gone = toy_pack:gone" in out
    assert out.splitlines()[-1] == "2.0"


@pytest.mark.parametrize("text", ["[corejax.primitives]\nno equals sign here\n", "[corejax.primitives]\n = x:y\n"])
def test_broken_metadata_leaves_out_that_distribution_with_a_warning(site, text):
    site.toy("good-pack", "good")
    site.pack("bad-pack", text)
    out = site.run("""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(float(lax.good(1.0)))
        print(*[f"{w.category.__name__}: {w.message}" for w in caught])
    """, COREJAX_PACKS="good-pack")
    assert out.splitlines()[0] == "2.0"
    assert "CorejaxWarning: the distribution bad-pack is left out: its metadata is broken: line 2" in out


def test_a_pack_that_uses_itself_while_it_is_imported_is_not_remembered_as_broken(site):
    site.pack("self-pack", {"primitives": {"toy": "self_pack:toy"}},
              {"self_pack": "from corejax import lax\nfrom corejax.errors import PackError\ntry:\n    lax.toy\n"
                            "except PackError as error:\n    seen = str(error)\nfrom toys import toy\n"})
    site.toy("toys")
    out = site.run("import self_pack; print(self_pack.seen); print(float(lax.toy(1.0)))", COREJAX_PACKS="self-pack")
    assert "leads nowhere" in out and out.splitlines()[-1] == "2.0"


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
    assert out.strip() == "1 1 1"
