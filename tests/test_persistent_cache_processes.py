"""Compiled programs kept from process to process: hits, four writers at once, limits of the system, sudden death."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from corejax.xla.cache.persistent_files import Directory

pytestmark = pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="the cache needs a POSIX system")

#: Runs some programs, and prints how many were compiled, the bytes of the results, and what was told.
PROGRAMS = """
    import json, sys, warnings
    import numpy as np
    import corejax as cj
    from corejax import lax
    from corejax.base import _jaxlib

    compiled = []
    compile_module = _jaxlib.compile_module
    _jaxlib.compile_module = lambda *args: compiled.append(1) or compile_module(*args)

    x = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
    table = np.arange(100.0)  # too large to be part of the program: an argument
    small = np.array([3.0, 1.0, 2.0, 0.5])

    def steps(x):
        return lax.scan(lambda total, row: (total + row, lax.sin(total)), small, x)

    def chosen(x):
        return lax.cond(x.sum() > 100.0, lambda: x * 2.0, lambda: lax.exp(x))

    def loop(x):
        return lax.while_loop(lambda x: x.sum() < 50.0, lambda x: x * x + 1.0, x)

    def loss(w):
        return (lax.tanh(x @ w) ** 2).sum()

    PROGRAMS = [
        (steps, x), (chosen, x), (loop, x), (cj.grad(loss), small), (cj.hessian(loss), small),
        (cj.vmap(lambda row: row.max() + table[3:7]), x),
        (lambda x: {"a": x.astype(np.float32), "b": (x > 0, x * 1j)}, x),
        (lambda x: lax.exp(x.astype(cj.bfloat16)).astype(np.float32), x)]

    def everything():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            leaves = [y for f, *args in PROGRAMS for y in cj.tree.leaves(cj.jit(f)(*args))]
            return [np.asarray(y).tobytes().hex() for y in leaves], [str(warning.message) for warning in told]
"""

#: As far as the kinds of programs don't matter.
FEW = """
    del PROGRAMS[3:]
"""

REPORT = """
    results, told = everything()
    print(json.dumps([len(compiled), results, told]))
"""


def environment(place, **more):
    return {**os.environ, "COREJAX_COMPILATION_CACHE_DIR": str(place), **more}


def script(*parts):
    return "".join(map(textwrap.dedent, parts))


def python(code, place, **more):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
                          env=environment(place, **more))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_another_process_compiles_nothing_and_computes_the_same_bits(tmp_path):
    place = tmp_path / "programs"
    code = script(PROGRAMS, REPORT)
    count, results, told = python(code, place, PYTHONHASHSEED="1")
    assert (8, []) == (count, told)
    assert 8 == len(list(place.iterdir()))
    assert [0, results, []] == python(code, place, PYTHONHASHSEED="2")
    assert [8, results, []] == python(code, "none")


def test_without_a_directory_nothing_of_it_is_loaded():
    code = """
        import sys
        import corejax as cj
        cj.jit(lambda x: x * 2.0)(1.0)
        loaded = [name for name in sys.modules if name.startswith("corejax.xla.cache.persistent_")]
        print(len(loaded))
    """
    assert 0 == python(textwrap.dedent(code), "")


AT_ONCE = """
    import os, pathlib, time
    from corejax.xla.cache.persistent_files import Directory

    here = pathlib.Path(sys.argv[1])
    (here / f"ready-{os.getpid()}").touch()
    while len(list(here.glob("ready-*"))) < 4:
        time.sleep(0.01)

    results, told = everything()

    # Four that write and drop the same few entries of a directory that is too small for them.
    wrong = 0
    with Directory(str(here / "small")) as directory:
        for i in range(60):
            key = bytes([(i * 7 + os.getpid()) % 23]) * 32
            program = key * (20 + key[0])
            found = directory.read(key)
            wrong += found not in (None, program)
            directory.write(key, program, 8_000)
    print(json.dumps([len(compiled), results, told, wrong]))
"""


def test_four_processes_write_at_once(tmp_path):
    place = tmp_path / "programs"
    command = [sys.executable, "-c", script(PROGRAMS, FEW, AT_ONCE), str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=environment(place)) for _ in range(4)]
    outcomes = []
    for process in running:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        outcomes.append(json.loads(out.strip().splitlines()[-1]))
    _, results, told, wrong = outcomes[0]
    assert ([], 0) == (told, wrong)
    assert [[results, [], 0]] * 4 == [outcome[1:] for outcome in outcomes]

    paths = list(place.iterdir())
    assert 3 == len(paths)
    with Directory(str(place)) as directory:
        assert all(directory.read(bytes.fromhex(path.stem)) for path in paths)
    assert [0, results, []] == python(script(PROGRAMS, FEW, REPORT), place)
    assert 8_000 >= sum(path.stat().st_size for path in (tmp_path / "small").iterdir())


def test_files_of_limited_size_are_told_once(tmp_path):
    limited = """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    """
    place = tmp_path / "programs"
    count, _, told = python(script(PROGRAMS, FEW, limited, REPORT), place)
    assert (3, 1) == (count, len(told))
    assert "the compilation cache can't be written to: File too large" in told[0]
    assert [] == list(place.iterdir())


def test_a_full_disk_is_told_once(tmp_path):
    place = tmp_path / "programs"
    place.mkdir(0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k,mode=700", "none", str(place)],
                      capture_output=True).returncode:
        pytest.skip("a file system can't be mounted here")
    try:
        count, results, told = python(script(PROGRAMS, FEW, REPORT), place)
        assert (3, 1) == (count, len(told))
        assert "No space left on device" in told[0]
        assert [] == list(place.glob("*.new"))
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        kept = len(list(place.iterdir()))
        count, again, told = python(script(PROGRAMS, FEW, REPORT), place)
        assert (3 - kept, 1, results) == (count, len(told), again)
        assert "Read-only file system" in told[0]
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_directory_in_which_this_user_may_not_write_is_read(tmp_path):
    """As another user than root, who may write everywhere."""
    place = tmp_path / "programs"
    _, results, _ = python(script(PROGRAMS, FEW, REPORT), place)
    gone = next(place.iterdir())
    gone.unlink()
    as_another = ""
    if os.geteuid() == 0:
        as_another = f"""
            import os
            import corejax.xla.cache.persistent_programs  # now: libraries are not readable for everybody everywhere
            everything()
            compiled.clear()
            cj.clear_caches()
            cj.config.compilation_cache_dir = {str(place)!r}
            os.seteuid(65534)
        """
        for path in (place, *place.iterdir()):
            os.chown(path, 65534, -1)
        path = place
        while path != path.parent:
            if not path.stat().st_mode & 0o001 and path != place:
                path.chmod(path.stat().st_mode | 0o011)
            path = path.parent
    place.chmod(0o500)
    count, again, told = python(script(PROGRAMS, FEW, as_another, REPORT), "" if as_another else place)
    place.chmod(0o700)
    assert (1, results, 1) == (count, again, len(told))
    assert "Permission denied" in told[0]


def test_a_process_killed_while_it_writes_leaves_no_entry(tmp_path):
    place = tmp_path / "programs"
    killed = """
        import os, signal
        os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)
        everything()
    """
    done = subprocess.run([sys.executable, "-c", script(PROGRAMS, FEW, killed)], env=environment(place), timeout=120)
    assert -signal.SIGKILL == done.returncode
    assert {".new", ".lock"} == {path.suffix for path in place.iterdir()}
    count, _, told = python(script(PROGRAMS, FEW, REPORT), place)
    assert (3, []) == (count, told)
    assert 3 == len(list(place.glob("*.xla")))
    assert [] == list(place.glob("*.lock"))  # who died has lost it


def test_what_one_damaged_entry_costs_is_one_compilation(tmp_path):
    place = tmp_path / "programs"
    code = script(PROGRAMS, FEW, REPORT)
    _, results, _ = python(code, place)
    damaged = min(place.iterdir())
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-100] + b"\0" * 100)
    count, again, told = python(code, place)
    assert (1, results, 1) == (count, again, len(told))
    assert damaged.name in told[0]
    assert [0, results, []] == python(code, place)
