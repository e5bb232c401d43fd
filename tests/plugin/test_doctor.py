"""`python -m corejax doctor`: all about an installation, whatever the packs and backends in it do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from corejax.base.config import SETTINGS
from corejax.inspect import doctor

STANDARD = "corejax-lax-basic,corejax-reductions,corejax-control-flow,corejax-sorting"

DOCTOR = """
from corejax.inspect import cli
print("exit code", cli.main(["doctor", *{}]))
"""

#: Nothing that others wrote is run.
ALONE = """
import os
from corejax.inspect import doctor, watching
watching.run = lambda *arguments: watching.Ended([])
def examined():
    found = doctor.examine()
    return [*found.lines()]
"""


def run(site, *arguments, **environment):
    """What the doctor prints, and its exit code."""
    text, _, code = site.run(DOCTOR.format(list(arguments)), **environment).rpartition("exit code ")
    return text, int(code)


def test_a_healthy_installation_on_one_page(site):
    text, code = run(site, COREJAX_PACKS=STANDARD)
    assert 0 == code, text
    patterns = (
        "versions", r"  corejax: .*, at .*corejax", r"  Python: 3\..*", "  importlib-metadata: .*",
        r"  jaxlib: .* \(corejax needs .*\)", r"  numpy: .* \(corejax needs >=2\)", "  pluggy: .*", "  ml-dtypes: .*",
        "packs", "(  .*\n)*" r"  corejax-reductions .*: \d+ functions, \d+ primitives, \d+ roles" "(\n  .*)*",
        "backends", r"  cpu: works: 1 cpu \(a program in \d+\.\d\d s\)", "  cuda: .*",
        "settings", f"  COREJAX_PACKS: '{STANDARD}'", "caches", "  compiled programs: not kept: .*",
        "duplicates", "  .*(\n  .*)*", "problems", "  none\n")
    assert re.fullmatch("\n".join(patterns), text), text


def test_without_a_primitive_it_works_too_and_prints_json_with_what_check_finds(site):
    site.pack("torn-pack", {"functions": {"torn": "torn_pack:torn"}}, {"torn_pack": "1 / 0"})
    text, code = run(site, "--json")
    found = json.loads(text)
    assert ["versions", "packs", "backends", "settings", "caches", "duplicates", "problems"] == [*found]
    assert found["backends"]["cpu"].startswith("works: 1 cpu")
    assert "1 function" == found["packs"]["torn-pack 1.0"]
    assert "excluded by COREJAX_PACKS or COREJAX_DISABLE_PACKS" == found["packs"]["corejax-lax-basic 0.1.0"]
    (problem,) = found["problems"]
    assert "torn-pack" == problem["pack"]
    assert problem["problem"].startswith("can't be imported: ZeroDivisionError: division by zero, at ")
    assert 1 == code


HOSTILE = """
import ctypes, os, subprocess, sys, time

class Backend:
    platform = "cpu"
    priority = 1

    def __init__(self, name):
        self.name = name

    def why_not(self):
        return None

    def make_client(self):
        if self.name == "crashes":
            ctypes.string_at(0)
        if self.name == "exits":
            os._exit(0)
        if self.name == "fails":
            raise ValueError("no such chip")
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])  # it has the same outputs
        time.sleep(100)

crashes, exits, fails, hangs = map(Backend, ("crashes", "exits", "fails", "hangs"))
"""


def test_whatever_packs_and_backends_do_there_is_an_answer(site):
    names = ("crashes", "exits", "fails", "hangs")
    site.pack("chips-pack", {"backends": {name: f"chips_pack:{name}" for name in names}}, {"chips_pack": HOSTILE})
    site.pack("null-pack", {"functions": {"f": "null_pack:f"}}, {"null_pack": "import ctypes\nctypes.string_at(0)\n"})
    start = time.monotonic()
    text, code = run(site, "--seconds", "3", "--json")
    assert time.monotonic() - start < 60
    found = json.loads(text)
    assert 1 == code
    assert {"crashes": "is ended by SIGSEGV while it is started", "exits": "ends with exit code 0 while it is started",
            "fails": "faulty", "hangs": "takes more than 3 s while it is started"
            } == {name: found["backends"][name] for name in names}
    said = "\n".join(f"{each['pack']}: {each['problem']}; {each['todo']}" for each in found["problems"])
    for pattern in (
            r"null-pack: checking it is ended by SIGSEGV: .*null_pack.py:2 \(<module>\); COREJAX_DISABLE_PACKS=null",
            r"chips-pack: the backend 'crashes' is ended by SIGSEGV while it is started: .*\(make_client\); choose",
            r"chips-pack: the backend 'hangs' takes more than 3 s while it is started: .*chips_pack.py:\d+ "
            r"\(make_client\); choose another one with COREJAX_BACKEND; --seconds gives it more time",
            "chips-pack: the backend 'exits' ends with exit code 0 while it is started; choose another one with",
            "chips-pack: the backend 'fails' of chips-pack 1.0 raises when it makes its client: ValueError: no such c"):
        assert re.search(pattern, said), (pattern, said)


def test_a_backend_that_computes_something_wrong_is_named(site):
    out = site.run("""
        from corejax.inspect import child, cli, watching
        child.to_numpy = lambda array: np.zeros(4, np.float32)
        def run(arguments, seconds):
            found = []
            if arguments[0] == "backend":
                child.backend(lambda **each: found.append(each), arguments[1])
            return watching.Ended([each for each in found if "at" not in each])
        watching.run = run
        cli.main(["doctor"])
    """)
    assert "  cpu: computes something wrong\n" in out
    assert ("corejax: the backend 'cpu' computes [0.0, 0.0, 0.0, 0.0] instead of [0.0, 2.0, 4.0, 6.0] on its cpu; "
            "install another release") in out


def test_modules_that_hide_others_are_named(site):
    site.toy("toy-pack")
    first = site.folder / "first"
    first.mkdir()
    (first / "toy_pack.py").write_text("")
    out = site.run(ALONE + f"sys.path.insert(0, {str(first)!r})\nprint(*examined(), sep='\\n')")
    assert (f"toy-pack: its module toy_pack, in {site.folder}/toy_pack.py, is hidden by {first}/toy_pack.py; rename or "
            "remove that one, start in another folder, or uninstall toy-pack") in out
    other = site.folder / "other"
    (other / "corejax-0.0.1.dist-info").mkdir(parents=True)
    (other / "corejax-0.0.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: corejax\nVersion: 0.0.1\n")
    (other / "corejax").mkdir()
    out = site.run(ALONE + f"sys.path.insert(0, {str(other)!r})\nprint(*examined(), sep='\\n')")
    assert f"corejax: its module corejax, in {other}/corejax, is hidden by " in out


def test_a_module_that_hides_one_that_corejax_needs_does_not_silence_the_doctor(site):
    first = site.folder / "first"
    first.mkdir()
    (first / "pluggy.py").write_text("")
    (first / "jaxlib.py").write_text("")
    path = os.pathsep.join(map(str, (first, Path(__file__).parents[2])))
    env = {**os.environ, "COREJAX_PACKS": "none", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-m", "corejax", "doctor"], env=env, cwd=site.folder, capture_output=True,
                          text=True, check=False)
    assert (1, "") == (done.returncode, done.stderr)
    for name in ("pluggy", "jaxlib"):
        assert re.search(rf"{name}: its module {name}, in .*{name}, is hidden by {first}/{name}.py; ren", done.stdout)
    assert re.search(r"corejax: checking packs ends with exit code 1: AttributeError: .*'pluggy' has no attribute",
                     done.stdout)


def test_what_is_there_twice_is_listed_and_different_versions_are_a_problem(site):
    site.toy("pack-a", "shared")
    site.toy("pack-b", "shared")
    again = site.folder / "again"
    for name, version in (("pluggy", "0.1"), ("pack-a", "1.0")):
        info = again / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text("[corejax.primitives]\nshared = pack_a:shared\n" * (name == "pack-a"))
    out = site.run(ALONE + f"sys.path.append({str(again)!r})\nprint(*examined(), sep='\\n')", COREJAX_PREFER="pack-b")
    duplicates, _, problems = out.partition("duplicates\n")[2].partition("problems\n")
    assert "  the primitive 'shared': pack-b 1.0, preferred to pack-a 1.0\n" in duplicates
    assert f"  pack-a: 1.0 in {site.folder}; 1.0 in {again}\n" in duplicates
    assert re.search(rf"  pluggy: several versions are installed, of which the first counts: .*; 0.1 in {again}; unin",
                     problems)
    assert "pack-a" not in problems
    out = site.run(ALONE + f"sys.path.insert(0, {str(again)!r})\nprint(*examined(), sep='\\n')")
    assert "  pluggy: 0.1 is installed, and corejax needs >=1.5; pip install 'pluggy>=1.5'\n" in out


def test_settings_that_differ_and_misspelled_variables(site):
    out = site.run(ALONE + "print(*examined(), sep='\\n')", COREJAX_FALLBACKS="silent", COREJAX_PREFR="toy-pack",
                   COREJAX_OF_A_PACK="1", COREJAX_PACKS="none")
    settings, _, problems = out.partition("settings\n")[2].partition("problems\n")
    assert "  fallbacks: 'silent', by COREJAX_FALLBACKS; the default is 'warn'\n" in settings
    assert "  COREJAX_OF_A_PACK: '1', which isn't a variable of corejax\n" in settings
    assert ["  the environment: corejax doesn't know the variable COREJAX_PREFR; did you mean COREJAX_PREFER?"
            ] == problems.splitlines()


def test_a_variable_that_names_what_is_not_installed_is_one_problem_among_others(site):
    out = site.run(ALONE + "print(*examined(), sep='\\n')", COREJAX_PACKS="no-such-pack", COREJAX_PREFR="x")
    problems = out.partition("problems\n")[2]
    assert "the environment: corejax doesn't know the variable COREJAX_PREFR" in problems
    assert "the environment: COREJAX_PACKS names" in problems
    assert 2 == len(problems.splitlines())


def test_every_variable_that_corejax_reads_is_known():
    sources = Path(doctor.__file__).parent.parent.rglob("*.py")
    read = {name for path in sources for name in re.findall(r"COREJAX_[A-Z_]*[A-Z]\b", path.read_text())}
    known = {*doctor.VARIABLES, *[setting.env_var for setting in SETTINGS.values()]}
    assert set() == read - known and set() == {*doctor.VARIABLES} - read


def test_the_compilation_cache_is_looked_through(site):
    folder = site.folder / "programs"
    show = ALONE + "print(*[line for line in examined() if 'cach' in line or 'programs' in line], sep='\\n')"
    environment = {"COREJAX_PACKS": "none", "COREJAX_COMPILATION_CACHE_DIR": str(folder)}
    assert f"  compiled programs: to be kept in {folder}, which isn't there yet\n" in site.run(show, **environment)
    assert not folder.exists()
    site.run("""
        import corejax as cj
        for size in (2, 3, 4):
            cj.jit(lambda x: x)(np.ones(size, np.float32))
    """, **environment)
    entries = sorted(folder.glob("*.xla"))
    assert 3 == len(entries)
    entries[0].write_bytes(entries[0].read_bytes()[:-1])
    entries[1].write_text("another release")
    used = [path.stat().st_mtime_ns for path in entries]
    out = site.run(show, **environment)
    assert f"  compiled programs: 3 in {folder}, 0.0 MB of 1024.0 MB\n" in out
    assert (f"  corejax: an entry of the compilation cache can't be used: its content is damaged or truncated: "
            f"{entries[0]}; remove what can't be used: programs are compiled again when they are needed\n") in out
    assert f"it isn't a compiled program, or it is one of another release: {entries[1]}" in out
    assert used == [path.stat().st_mtime_ns for path in entries]

    folder.chmod(0o777)
    out = site.run(show, **environment)
    assert f"  corejax: the compilation cache is off: others can write to it (mode 777) ({folder}); chmod 700" in out


def test_packs_have_sections_of_their_own_whose_names_may_be_variables(site):
    site.pack("swarm-pack", {"facts": {"swarm": "swarm_pack:facts", "torn": "swarm_pack:torn",
                                       "odd": "swarm_pack:odd"}}, {"swarm_pack": """
        import os
        def facts():
            return {"bees": "seven", "COREJAX_BEES": os.environ["COREJAX_BEES"]}
        def torn():
            raise OSError("no honey")
        def odd():
            return {"bees": 7}
        """})
    text, code = run(site, COREJAX_BEES="7", COREJAX_WASPS="1")
    assert 1 == code
    assert "swarm\n  bees: seven\n  COREJAX_BEES: 7\n" in text
    assert "COREJAX_WASPS: '1', which isn't a variable of corejax" in text and "COREJAX_BEES: '7'" not in text
    problems = text.rpartition("problems")[2]
    assert "the section of doctor 'odd' doesn't return facts" in problems and "no honey" in problems
