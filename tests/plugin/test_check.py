"""`python -m corejax check`: everything that is wrong with what is installed, before somebody uses it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

STANDARD = "corejax-lax-basic,corejax-reductions,corejax-control-flow,corejax-sorting"

RULES = """
def vmap(axis, args, dims):
    return args[0], dims[0]

def wrong(axis, arguments, dims):
    return None

table = {"toy": vmap, "tow": vmap}
"""


def command(site, *arguments, **environment):
    env = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
    env |= {"PYTHONPATH": os.pathsep.join((str(site.folder), os.getcwd())), "COREJAX_PACKS": ",".join(site.names)}
    return subprocess.run([sys.executable, "-m", "corejax", *arguments], env=env | environment, capture_output=True,
                          text=True, check=False)


def test_all_that_is_wrong_with_rules_is_told_with_what_to_do(site):
    site.toy("toy-pack")
    site.toy("pack-a", "twofold")
    site.toy("pack-b", "twofold")
    site.pack("rules-pack", {"rules": {
        "toy-pack/toy:vmpa": "rules_pack:vmap", "toy-pack/tow:vmap": "rules_pack:vmap", "toy": "rules_pack:vmap",
        "toy-pack/*:vmap": "rules_pack:table", "toy-pack/toy:jvp": "rules_pack:wrong",
        "lost-pack/toy:vmap": "rules_pack:vmap"}}, {"rules_pack": RULES}, requires=["lost-pack", "toy-pack<1"])
    for name in ("one", "two"):
        site.pack(f"{name}-pack", {"rules": {"toy-pack/toy:dce": f"{name}_pack:dce"}},
                  {f"{name}_pack": "def dce(eqn, used_out):\n    return [True], eqn\n"})
    found = command(site, "check", "--json")
    assert 1 == found.returncode, found.stderr
    problems = json.loads(found.stdout)
    text = "\n".join(f"{each['pack']}: {each['problem']}; {each['todo']}" for each in problems)
    for said in ("rules-pack: the rule 'toy' of rules-pack 1.0 is left out", "toy-pack/toy:",
                 "'vmpa' is not a hook; did you mean 'vmap'?",
                 "its rule for toy-pack/tow:vmap does nothing: toy-pack 1.0 has no such primitive; did you mean 'toy'",
                 "its rule for lost-pack/toy:vmap does nothing: lost-pack isn't installed, which rules-pack requires",
                 "it is for another version of toy-pack",
                 "its table for toy-pack/*:vmap has a rule for 'tow', which toy-pack doesn't provide; did you mean",
                 "the primitive 'twofold' is provided more than once; choose with COREJAX_PREFER=pack-a",
                 "toy.dce is provided by ", "cj.plugins.prefer("):
        assert said in text, (said, text)
    assert len(problems) == len({json.dumps(each) for each in problems})
    said = command(site, "check")
    assert 1 == said.returncode and "" == said.stdout and "did you mean 'vmap'?" in said.stderr


ROWS = """
import numpy as np
from corejax import lax
from corejax.plugin import define, factors, families, not_differentiable, partials

def cosine(out, x):
    return lax.cos(x)

def row(name, impl=np.sin, hlo="sine", dtypes="fc", jvp=factors(cosine), **options):
    return define(families.unary(name, impl, hlo=hlo, dtypes=dtypes, jvp=jvp, doc="A row.", **options))

healthy = row("healthy", compiled_at=families.at_special_points)
compiled = row("compiled", None, jvp=None)
two_operands = row("two_operands", np.arctan2)
wrong_kind = row("wrong_kind", np.invert, "not", "if", not_differentiable("whole numbers"))
other_result = row("other_result", np.isfinite, "abs", "f", None)
special = row("special", lambda x: np.sin(x).real, compiled_at=families.at_special_points)
no_operation = row("no_operation", hlo="sinus")
no_kernel = row("no_kernel", None, lambda ctx, args: ctx.custom_call("rows-pack.absent", args)[0])
half_a_type = row("half_a_type", dtypes="f", result=lambda dtype: {"float64": dtype}[dtype.name])
no_derivative = row("no_derivative", jvp=factors(lambda out, x: lax.coss(x)))
wide_derivative = row("wide_derivative", dtypes="f", jvp=factors(lambda out, x: lax.concatenate([x, x], 0)))
no_way_back = row("no_way_back", np.negative, "negate", jvp=None, linear=(0,), transpose=[lambda ct, x: ct[0]])
no_kind = row("no_kind", dtypes="float")
no_dtypes = row("no_dtypes", dtypes="")
one_derivative = define(families.binary("one_derivative", np.arctan2, hlo="atan2", dtypes="f", doc="A row.",
    jvp=factors(not_differentiable("a test"), lambda out, x, y: out)))
one_wrong = define(families.binary("one_wrong", np.arctan2, hlo="atan2", dtypes="f", doc="A row.",
    jvp=factors(not_differentiable("a test"), lambda out, x, y: lax.coss(y))))
less = define(families.comparison("less", np.less, direction="LESS", dtypes="f", jvp=partials(None, None), doc="Less."))
"""


def test_rows_that_cannot_work_are_found_before_their_first_use(site):
    names = re.findall(r"^(\w+) = ", ROWS, re.MULTILINE)
    site.pack("rows-pack", {"primitives": {name: f"rows_pack:{name}" for name in names}}, {"rows_pack": ROWS})
    found = json.loads(site.run("from corejax.inspect import cli\ncli.main(['check', '--json'])",
                                COREJAX_PACKS=f"{STANDARD},rows-pack"))
    problems = {}
    for each in found:
        assert "rows-pack" == each["pack"] and each["todo"], each
        name, place, what = re.fullmatch(r"the primitive '(\w+)', a row at .*rows_pack.py:(\d+), (.*)",
                                         each["problem"]).groups()
        assert ROWS.splitlines()[int(place) - 1].startswith(f"{name} = ") or "define(families" in (
            ROWS.splitlines()[int(place) - 1]), (name, place)
        problems.setdefault(name, []).append(f"{what}; {each['todo']}")
    expected = {
        "two_operands": "can't be evaluated for f64[3]: TypeError: arctan2() takes from 2 to 3 positional arguments",
        "wrong_kind": "can't be evaluated for f64[3]: TypeError: ufunc 'invert' not supported",
        "other_result": "can't be evaluated for f64[3]: other_result.impl (rows-pack 1.0): returned bool[3], ",
        "special": "can't be evaluated for c128[3]: special.impl (rows-pack 1.0): returned f64[3], wanted c128[3]",
        "no_operation": "can't be compiled for f64[3]: unregistered operation 'stablehlo.sinus'",
        "no_kernel": "can't be compiled for f64[3]: no_kernel (rows-pack 1.0) needs the kernel 'rows-pack.absent'",
        "half_a_type": "has no type for f64[3]: KeyError",
        "no_derivative": "can't be differentiated for f64[3]: no installed pack provides lax.coss; did you mean 'cos'",
        "wide_derivative": "can't be differentiated for f64[3]: wide_derivative.jvp",
        "no_way_back": "can't be differentiated for f64[3]: no_way_back.transpose",
        "one_wrong": "can't be differentiated for f64[3], f64[3]: no installed pack provides lax.coss",
        "no_kind": "has no samples: KeyError: 'l'; name the kinds of dtypes that it takes, of b i u f c",
        "no_dtypes": "takes no operands; name the kinds of dtypes",
        "less": "can't be compiled for f64[3], f64[3]: ",
    }
    assert expected.keys() == problems.keys()
    for name, said in expected.items():
        assert problems[name][0].startswith(said), (said, problems[name])
    assert problems["wrong_kind"][1].startswith("can't be compiled for f64[3]: 'stablehlo.not' op operand #0 must be")
    assert "EQ, NE, GE, GT, LE, LT" in problems["less"][0]


CHECKED = """
from corejax.inspect.checkup import checkup
print(*checkup(), sep="\\n")
"""


def test_namespaces_are_imported_with_what_is_below_them(site):
    site.pack("wide-pack", {
        "namespaces": {"wide": "wide_pack", "lax.slim": "wide_pack", "wide.deep": "wide_pack.deep", "_own": "wide_pack",
                       "lax.sum.deep": "wide_pack.deep", "lax.both": "wide_pack", "twice": "wide_pack",
                       "shared": "wide_pack", "import": "wide_pack", "experimental.a.b": "wide_pack",
                       "experimental.also": "wide_pack"},
        "functions": {"with-hyphen": "wide_pack.deep:f", "cj/lambda": "wide_pack.deep:f", "both": "wide_pack.deep:f",
                      "cj/twice": "wide_pack.deep:f", "cj/a.b": "wide_pack.deep:f",
                      "experimental/also": "wide_pack.deep:f", "experimental/with-hyphen": "wide_pack.deep:f"}},
        {"wide_pack.__init__": "", "wide_pack.deep": "def f(x):\n    return x\n", "wide_pack._hidden": "1 / 0",
         "wide_pack.optional": "import not_installed_anywhere", "wide_pack.torn": "import sys\n1 / 0"})
    site.pack("other-pack", {"namespaces": {"shared": "wide_pack"}})
    out = site.run(CHECKED)
    for said in ("corejax.wide.torn, the module wide_pack.torn, can't be imported: ZeroDivisionError",
                 "the namespace 'wide.deep' can't be imported by this name; choose a name without dots",
                 "the namespace 'lax.sum.deep' can't be imported by this name",
                 "the function 'cj/a.b' can't be imported by this name",
                 "the namespace 'import' can't be imported by this name; choose a name that can be written in Python",
                 "the function 'with-hyphen' can't be imported by this name; choose a name that can be written",
                 "the function 'cj/lambda' can't be imported by this name; choose a name that can be written",
                 "the namespace 'experimental.a.b' can't be imported by this name",
                 "the function 'experimental/with-hyphen' can't be imported by this name",
                 "the namespace 'experimental.also' has the name of a function of wide-pack 1.0, experimental.also",
                 "the namespace '_own' is a name of corejax's own",
                 "the namespace 'lax.both' has the name of a function of wide-pack 1.0, lax.both, so one of them",
                 "the namespace 'twice' has the name of a function of wide-pack 1.0, cj.twice, so one of them",
                 "the namespace 'shared' is provided more than once; choose with COREJAX_PREFER="):
        assert said in out, (said, out)
    assert 16 == len(out.splitlines()), out  # `shared` and `torn` twice


BACKEND = """
class {name}:
    name = platform = "{name}"
    priority = 1

    def why_not(self):
        {answer}

    def make_client(self):
        raise AssertionError("started")
"""


def test_a_backend_is_asked_whether_it_can_be_used(site):
    site.pack("chips-pack", {"backends": {"torn": "chips_pack:torn_", "absent": "chips_pack:absent_"}}, {
        "chips_pack": BACKEND.format(name="torn", answer="1 / 0") + BACKEND.format(
            name="absent", answer="return 'no such chip'") + "\ntorn_, absent_ = torn(), absent()\n"})
    assert ["chips-pack: the backend 'torn' of chips-pack 1.0 raises when it is asked whether it can be used; fix it, "
            "or choose a backend other than 'torn' with config.backend or COREJAX_BACKEND"
            ] == site.run(CHECKED).splitlines()


def test_a_method_that_an_attribute_of_arrays_hides_is_found(site):
    site.pack("bold-pack", {"roles": {"operators.shape": "bold_pack:f", "operators.outline": "bold_pack:f"}},
              {"bold_pack": "def f(x):\n    return x\n"})
    assert ("bold-pack: the role 'operators.shape' is hidden by an attribute that arrays have, x.shape; choose another "
            "name") == site.run(CHECKED).strip()


def test_without_jaxlib_that_is_the_only_problem(site):
    site.pack("rows-pack", {"primitives": {"healthy": "rows_pack:healthy"}}, {"rows_pack": ROWS})
    (site.folder / "jaxlib.py").write_text("")
    assert "jaxlib: jaxlib.mlir.ir can't be imported; pip install jaxlib" == site.run(
        f"import sys\nassert 'jaxlib' not in sys.modules\n{CHECKED}").strip()


TYPED = """
from corejax.core import Array, ArrayLike

def double(x: ArrayLike) -> Array:
    "Twice as much."
    return x + x

def method(x: ArrayLike, times: int = 2) -> Array:
    return x * times

def top(x: ArrayLike) -> Array:
    return x
"""


def test_stubs_of_a_project_that_do_not_describe_what_is_installed_are_found(site):
    entries = {"functions": {"double": "typed_pack:double", "old": "typed_pack:double", "cj/top": "typed_pack:top"},
               "roles": {"operators.times": "typed_pack:method"}, "namespaces": {"linear": "linear_pack"}}
    site.pack("typed-pack", entries, {"typed_pack": TYPED, "linear_pack": "def solve(x):\n    return x\n"})
    site.pack("plain-pack", {"functions": {"plain": "typed_pack:double"}})
    project = site.folder / "project"
    project.mkdir()
    here = f"import os\nos.chdir({str(project)!r})\n"
    assert "\n" == site.run(here + CHECKED)
    assert "typings/corejax: " in site.run(f"{here}from corejax.inspect import cli\ncli.main(['stubs'])")
    assert "\n" == site.run(here + CHECKED)
    assert "\n" == site.run(here + CHECKED, COREJAX_DISABLE_PACKS="plain-pack")  # for this process only

    (site.folder / "typed_pack.py").write_text(TYPED.replace("Twice as much", "Two times as much"))
    assert "\n" == site.run(here + CHECKED)
    (site.folder / "typed_pack.py").write_text(TYPED.replace("times: int = 2", "times: float = 2"))
    shutil.rmtree(site.folder / "typed_pack-1.0.dist-info")
    site.pack("typed-pack", {**entries, "functions": {"double": "typed_pack:double", "new": "typed_pack:double"}})
    assert ("typings: the stubs in typings/corejax are out of date: without lax.new, with other types for x.times, "
            "still with cj.top, lax.old; python -m corejax stubs writes them anew") == site.run(here + CHECKED).strip()


def test_installed_stubs_are_compared_with_the_packs_that_they_are_for(site):
    site.pack("typed-pack", {"functions": {"double": "typed_pack:double"}}, {"typed_pack": TYPED})
    write = f"from corejax_authoring.stubs import write\nprint(*write({str(site.folder)!r}, partial=True))"
    assert "corejax-stubs: " in site.run(write)
    site.pack("corejax-stubs", {}, requires=["corejax", "typed-pack"])
    site.names.remove("corejax-stubs")
    site.pack("plain-pack", {"functions": {"plain": "typed_pack:double"}})
    assert "\n" == site.run(CHECKED)  # they aren't for that pack

    (site.folder / "typed_pack.py").write_text(TYPED.replace("x: ArrayLike", "value: ArrayLike"))
    assert ("corejax-stubs: the stubs of corejax-stubs 1.0 are out of date: with other types for lax.double; pip "
            "install --upgrade corejax-stubs; or python -m corejax stubs writes your own") == site.run(CHECKED).strip()
    assert "\n" == site.run(CHECKED, COREJAX_DISABLE_PACKS="typed-pack")


def test_nothing_is_broken_in_what_comes_with_corejax(site):
    found = command(site, "check", COREJAX_PACKS=STANDARD)
    assert (0, "nothing is broken\n", "") == (found.returncode, found.stdout, found.stderr)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="pipes of a shell")
def test_a_reader_that_has_seen_enough_is_no_error(site):
    done = subprocess.run(f"{sys.executable} -m corejax primitives | head -n 1", shell=True, capture_output=True,
                          text=True, check=False)
    assert "" == done.stderr and 1 == len(done.stdout.splitlines())


# What packs need

def problems(found):
    return {f"{each['pack']}: {each['problem']}; {each['todo']}" for each in json.loads(found.stdout)}


def test_requirements_that_are_not_met_are_found(site):
    requires = {
        "corejax>=9": "it requires corejax>=9, and 0.1.0 is installed; pip install 'corejax>=9'; or install another "
                      "version of needy-pack",
        "lost-pack (>=1.2,<2)": "it requires lost-pack>=1.2,<2, which isn't installed; pip install 'lost-pack>=1.2,<2'",
        "Lost_Other": "it requires lost-other, which isn't installed; pip install 'lost-other'",
        "lost-tree @ https://example.org/tree.zip ; python_version >= '3'":
            "it requires lost-tree from https://example.org/tree.zip, which isn't installed; "
            "pip install 'lost-tree @ https://example.org/tree.zip'",
        "early-pack>=2": "it requires early-pack>=2, and 2.0rc1 is installed; pip install 'early-pack>=2'; or install "
                         "another version of needy-pack",
        "extra-pack[Fast,slow]": "it requires extra-pack[Fast], and that requires lost-speed>=3, which isn't "
                                 "installed; pip install 'lost-speed>=3'",
        "lost-here; sys_platform in 'linux darwin win32' and not_a_name == 'x'":
            "its metadata has a line that can't be read: Requires-Dist: lost-here; sys_platform in 'linux darwin "
            "win32' and not_a_name == 'x'; correct the requirement in the metadata of needy-pack, or install another "
            "version",
        "numpy>=two": "its metadata has a line that can't be read: Requires-Dist: numpy>=two; correct the requirement "
                      "in the metadata of needy-pack, or install another version",
        # Met, or for something else
        "numpy>=1.21": "", "early-pack>=2.0rc1,!=3.*": "", "corejax": "", "lost-test; extra == 'test'": "",
        "lost-windows; sys_platform == 'amiga' or (os_name == 'nt' and python_version < '3')": "",
        "lost-python; python_version < '3.9'": "", "numpy @ file:///somewhere": "",
    }
    site.toy("early-pack", "early", version="2.0rc1")
    site.pack("extra-pack", {}, requires=["lost-speed>=3; extra == 'fast'", "lost-rest; extra == 'rest'"])
    site.pack("needy-pack", {"functions": {"f": "needy_pack:f"}}, {"needy_pack": "def f(x):\n    return x\n"},
              requires=list(requires), python=">=3.99")
    site.names.remove("extra-pack")  # which isn't a pack
    found = command(site, "check", "--json")
    python = ".".join(map(str, sys.version_info[:3]))
    expected = {f"needy-pack: {said}" for said in requires.values() if said} | {
        f"needy-pack: it requires Python >=3.99, and this is {python}; use another Python, or install a version of "
        "needy-pack that is for this one"}
    assert (expected, 1) == (problems(found), found.returncode), found.stderr


# What packs do to whoever checks them

HOSTILE = {
    "aborting": ("import os\nos.abort()", r"checking it is ended by SIGABRT: .*aborting.py:2 \(<module>\)"),
    "computing": ("while True: pass", r"checking it takes more than 4 s: .*computing.py:1 \(<module>\)"),
    "crashing": ("import ctypes\nctypes.string_at(0)", r"checking it is ended by SIGSEGV: .*crashing.py:2"),
    "exiting": ("import os\nos._exit(0)", "checking it ends with exit code 0"),
    "forking": ("import os\nos.fork()\ndef f(x):\n    return x\n", None),
    "interrupting": ("raise KeyboardInterrupt", "checking it ends with exit code 1: KeyboardInterrupt"),
    "closing": ("import os, sys\nsys.stdout.close()\nos.close(1)\nos.close(2)\ndef f(x):\n    return x\n", None),
    "leaving": ("raise SystemExit(0)", "exits the process when it is imported: SystemExit: 0"),
    "printing": ("import sys\nsys.stdout.buffer.write(bytes(range(256)) * 99)\ndef f(x):\n    return x\n", None),
    "sleeping": ("import time\ntime.sleep(99)", r"checking it takes more than 4 s: .*sleeping.py:2 \(<module>\)"),
    "threading_on": ("import threading, time\nthreading.Thread(target=time.sleep, args=(99,), name='on').start()\n"
                     "def f(x):\n    return x\n", "its import starts a thread that keeps the process from ending: on"),
    "using": ("import crashing\ndef f(x):\n    return x\n", r"checking it is ended by SIGSEGV: .*crashing.py:2"),
}


def test_whatever_packs_do_each_that_is_wrong_is_named_and_the_others_are_checked(site):
    for name, (code, _) in HOSTILE.items():
        site.pack(f"{name.replace('_', '-')}-pack", {"functions": {name: f"{name}:f"}}, {name: code})
    site.pack("zealous-pack", {"functions": {"z": "zealous_pack:z"}}, {"zealous_pack": "1 / 0"})
    found = command(site, "check", "--json", "--seconds", "4")
    assert 1 == found.returncode, found.stderr
    said = sorted(problems(found))
    for name, (_, expected) in HOSTILE.items():
        own = [each for each in said if each.startswith(f"{name.replace('_', '-')}-pack: ")]
        if expected is None:
            assert [] == own
        else:
            assert 1 == len(own) and re.search(expected, own[0]), (expected, own)
    assert any("zealous-pack: can't be imported: ZeroDivisionError" in each for each in said)
    done = command(site, "check", "--seconds", "4", COREJAX_PACKS="exiting-pack,zealous-pack")
    assert 1 == done.returncode and "" == done.stdout
    assert "exiting-pack: checking it ends with exit code 0" in done.stderr and "zealous-pack: " in done.stderr


#: What a pack does when it is imported, what one does that comes after it, and all that is told of them.
FOLLOWED = {
    "a thread that crashes while the other one is imported": (
        "import ctypes, sys, threading, time\n"
        "def crash():\n    while 'second' not in sys.modules: time.sleep(0.01)\n    ctypes.string_at(0)\n"
        "threading.Thread(target=crash, daemon=True).start()", "import time\ntime.sleep(1)",
        [r"first-pack: checking second-pack is ended by SIGSEGV: .*first.py:4 \(crash\); COREJAX_DISABLE_PACKS=first"]),
    "nothing left to report by": (
        "import json, os, sys\nos.write(2, b'a line\\n')\nsys.stdout.write('another line\\n')\n"
        "json.dumps = lambda *_, **__: 'x'\nsys.stdout = sys.stderr = sys.excepthook = None\nos.closerange(0, 20)",
        "import time\ntime.sleep(99)", [r"second-pack: checking it takes more than 4 s: .*second.py:2 \(<module>\); "]),
    "a line that has nothing to do with the end": (
        "import os\nprint('one line')\nos.write(2, b'another line\\n')", "import os\nos._exit(0)",
        ["second-pack: checking it ends with exit code 0; "]),
    "a thread that the process would wait for": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), name='on').start()",
        "class Odd(BaseException): pass\nraise Odd('x')",
        ["first-pack: its import starts a thread that keeps the process from ending: on; ",
         "second-pack: checking it ends with exit code 1: Odd: x; "]),
}


@pytest.mark.parametrize(("first", "second", "told"), FOLLOWED.values(), ids=FOLLOWED)
def test_no_pack_is_blamed_for_what_the_one_before_it_did(site, tmp_path, first, second, told):
    site.pack("first-pack", {"functions": {"f": "first:f"}}, {"first": f"{first}\ndef f(x): ...\n"})
    after = type(site)(tmp_path / "after")
    after.pack("second-pack", {"functions": {"g": "second:g"}}, {"second": f"{second}\ndef g(x): ...\n"})
    path = os.pathsep.join((str(site.folder), str(after.folder), os.getcwd()))
    found = sorted(problems(command(site, "check", "--json", "--seconds", "4", PYTHONPATH=path,
                                    COREJAX_PACKS="first-pack,second-pack")))
    assert len(told) == len(found) and all(map(re.match, told, found)), found


def test_a_pack_that_uses_one_that_ends_the_process_is_told_apart_from_it(site):
    site.pack("deadly-pack", {"functions": {"deadly": "deadly_pack:f"}}, {"deadly_pack": "import os\nos._exit(0)\n"})
    site.pack("able-pack", {"functions": {"able": "able_pack:f"}},
              {"able_pack": "from corejax import lax\nlax.deadly\ndef f(x):\n    return x\n"})
    said = problems(command(site, "check", "--json"))
    assert {"deadly-pack: checking it ends with exit code 0; COREJAX_DISABLE_PACKS=deadly-pack leaves it out",
            "able-pack: can't be checked, since it uses deadly-pack: that ends with exit code 0; "} == said


def test_an_environment_that_names_what_is_not_there_is_told_as_ever(site):
    site.toy("toy-pack")
    done = command(site, "check", COREJAX_PACKS="tyo-pack")
    assert 1 == done.returncode and "COREJAX_PACKS" in done.stderr and "'toy-pack'" in done.stderr


# What packs export

EXPORTING = """
from corejax.plugin import ElementType, transforming
import numpy as np

__all__ = ["told", "untold", "half", "thrice", "double", "COSTS"]

def told(x):
    return x

def untold(x):
    return x

def double(x):
    return x

double_twice = double
def toy_costs(args):
    "`toy_costs(args, *, ...)`: how many operations it takes."

COSTS = transforming.Transformation(toy_costs)
half = define(Toy("half", 0.5))
thrice = define(Toy("thrice", 3.0))
RULES = {"toy-pack/toy:vmap": double, "toy-pack/toy:dce": double, "toy-pack/toy:toy_costs?": double}
"""


def test_what_modules_export_and_no_entry_point_leads_to_is_found(site):
    site.toy("toy-pack")
    site.pack("stale-pack", {"functions": {"told": "stale_pack:told"}, "primitives": {"half": "stale_pack:half"},
                             "rules": {"toy-pack/toy:vmap": "stale_pack:double"}},
              {"stale_pack": site.TOY + EXPORTING})
    found = command(site, "check", "--json")
    text = "\n".join(sorted(problems(found)))
    for said in ("stale-pack: its modules export what has no entry point, so that nobody finds it: 1 primitive, "
                 "thrice; install it again if its pyproject.toml has them; else python -m corejax entry-points "
                 "--write adds them",
                 "so that nobody finds it: 2 functions, thrice, untold;",
                 "so that nobody finds it: 1 transformation, toy_costs;",
                 "so that nobody finds it: 2 rules, toy-pack/toy:dce, toy-pack/toy:toy_costs?;"):
        assert said in text, (said, text)


@pytest.mark.parametrize("own", ["RULES = ['a', 'b']", "RULES = {'one': 1, 2: 'two'}",
                                 "RULES = {'term': print, 'a factor': print}", "RULES = None",
                                 "NAMESPACE = 3", "AT_TOP = True", "NAMESPACE = 'a b'"])
def test_a_modules_own_names_are_no_matter_of_entry_points(tmp_path, own):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'own-pack'\n")
    (tmp_path / "own_pack").mkdir()
    (tmp_path / "own_pack/__init__.py").write_text(f"__all__ = ['f']\n{own}\ndef f(x):\n    return x\n")
    done = subprocess.run([sys.executable, "-m", "corejax", "entry-points", "--write", str(tmp_path)], text=True,
                          capture_output=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    assert 'f = "own_pack:f"' in (tmp_path / "pyproject.toml").read_text()
