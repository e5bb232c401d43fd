"""Compiled programs kept in a directory: what a program is known by, and every fault of an entry or a directory."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.base import _jaxlib
from corejax.config import config
from corejax.errors import CorejaxError, CorejaxWarning
from corejax.plugin import define, hookimpl
from corejax.xla.cache import persistent_files, persistent_programs
from corejax.xla.cache.persistent_files import Directory, Fault

pytestmark = pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="the cache needs a POSIX system")

X = np.linspace(-1.0, 1.0, 6)
MAGIC = persistent_files._MAGIC
AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def sample(x):
    return lax.sin(x) * 2.0 + x


@pytest.fixture
def compiled(monkeypatch):
    """One item for each module that the compiler has compiled."""
    made = []
    compile_module = _jaxlib.compile_module

    def counting(*args):
        made.append(args)
        return compile_module(*args)

    monkeypatch.setattr(_jaxlib, "compile_module", counting)
    return made


@pytest.fixture
def place(tmp_path):
    return tmp_path / "programs"


def run(place, function=sample, *args, **options):
    """The result, in a process that has forgotten what it compiled."""
    cj.clear_caches()
    with config(compilation_cache_dir=place):
        return np.asarray(cj.jit(lambda *xs: function(*xs), **options)(*(args or (X,))))


def told(place, function=sample):
    """The result as bytes, and what was told meanwhile."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = run(place, function).tobytes()
    return out, [str(warning.message) for warning in caught]


def entries(place):
    return sorted(place.glob("*.xla"))


def mode(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


# What is kept

def test_a_kept_program_is_not_compiled_again_and_gives_the_same_bits(place, compiled):
    first = run(place)
    assert 1 == len(compiled)
    second = run(place)
    assert 1 == len(compiled)
    assert first.tobytes() == second.tobytes()
    np.testing.assert_allclose(np.sin(X) * 2.0 + X, second, rtol=1e-14)


def test_the_directory_and_its_entries_are_the_owners_only(place):
    before = os.umask(0)
    try:
        run(place / "below")
    finally:
        os.umask(before)
    assert 0o700 == mode(place / "below")
    assert [0o600] == [mode(path) for path in entries(place / "below")]
    assert entries(place / "below") == sorted((place / "below").iterdir())


def test_without_a_directory_nothing_is_kept(place, compiled):
    run(None)
    run(None)
    assert 2 == len(compiled)
    assert not place.exists()


def test_every_way_to_compile_goes_through_the_directory(place, compiled):
    for _ in range(2):
        cj.clear_caches()
        with config(compilation_cache_dir=place):
            lowered = cj.jit(lambda x: lax.cos(x)).lower(X).compile()
            eager = lax.exp(cj.device_put(X))
    assert 2 == len(compiled) == len(entries(place))
    np.testing.assert_allclose(np.cos(X), lowered(X), rtol=1e-14)
    np.testing.assert_allclose(np.exp(X), eager, rtol=1e-14)
    assert "cosine" in lowered.as_text()
    assert 0 < lowered.cost_analysis()["transcendentals"]


def test_donation_survives(place):
    for _ in range(2):
        x = cj.device_put(X)
        out = run(place, lambda x: x + 1.0, x, donate_argnums=0)
        np.testing.assert_array_equal(X + 1.0, out)
        assert x.is_deleted()


# What a program is known by

def test_neither_names_nor_lines_count(place, compiled):
    def one(x):
        return lax.tanh(x) * x

    def another_name_for_it(y):
        shifted = lax.tanh(y)
        return shifted * y

    def named(function):
        with config(compilation_cache_dir=place):
            return np.asarray(cj.jit(function)(X))

    first = named(one)
    cj.clear_caches()
    assert first.tobytes() == named(another_name_for_it).tobytes()
    assert 1 == len(compiled) == len(entries(place))


def test_locations_in_a_module_do_not_count():
    text = "module @{} {{ func.func @main(%x: tensor<f64>) -> tensor<f64> {{ return %x : tensor<f64> loc({}) }} }}"
    made = set()
    for name, place in (("one", '"a.py":1:2'), ("two", '"b.py":30:4'), ("three", "unknown")):
        with _jaxlib.mlir_context():
            made.add(_jaxlib.program_bytes(_jaxlib.ir.Module.parse(text.format(name, place))))
    assert 1 == len(made)
    assert b"a.py" not in made.pop()


def test_taking_a_modules_bytes_leaves_it_as_it_was():
    text = 'module @kept { func.func public @main(%x: tensor<f64>) -> tensor<f64> { return %x : tensor<f64> } }'
    with _jaxlib.mlir_context():
        module = _jaxlib.ir.Module.parse(text)
        before = str(module)
        _jaxlib.program_bytes(module)
        assert before == str(module)


@pytest.mark.parametrize(("function", "arg", "options"), [
    (lambda x: lax.sin(x) * 3.0 + x, X, {}), (lambda x: lax.cos(x) * 2.0 + x, X, {}),
    (sample, X[:5], {}), (sample, X.astype(np.float32), {}), (sample, X.reshape(2, 3), {}),
    (sample, X, {"donate_argnums": 0})], ids=["constant", "operation", "length", "dtype", "rank", "donation"])
def test_another_program_is_another_entry(place, compiled, function, arg, options):
    run(place)
    run(place, function, arg, **options)
    assert 2 == len(compiled) == len(entries(place))


def test_other_options_are_another_entry(place, compiled):
    for value in (True, False, True, False):
        cj.clear_caches()
        with config(compilation_cache_dir=place):
            cj.jit(sample).lower(X).compile({"xla_cpu_enable_fast_math": value})
    assert 2 == len(compiled) == len(entries(place))


@pytest.mark.parametrize("position", range(7))
def test_another_compiler_platform_or_device_is_another_entry(place, compiled, monkeypatch, position):
    run(place)
    facts = _jaxlib.compiler_facts

    def other(client, device):
        found = list(facts(client, device))
        found[position] += "?"
        return tuple(found)

    monkeypatch.setattr(_jaxlib, "compiler_facts", other)
    run(place)
    assert 2 == len(compiled) == len(entries(place))


def test_the_compilers_version_and_the_devices_number_are_among_the_facts():
    device = cj.devices()[0]
    facts = _jaxlib.compiler_facts(device.client, [device])
    assert {_jaxlib.version, "cpu", str(device.id)} <= set(facts)


def test_another_processor_is_another_entry(place, compiled, monkeypatch):
    run(place)
    facts = persistent_programs.processor_facts()
    monkeypatch.setattr(persistent_programs, "processor_facts", lambda: (*facts[:-1], facts[-1] + " avx99"))
    run(place)
    assert 2 == len(compiled) == len(entries(place))


def test_the_processors_instructions_are_read_from_the_system(tmp_path):
    lines = ["processor\t: 0\n", "flags\t\t: sse avx\n", "cpu MHz\t: 2400.1\n", "model\t: 7\n", "\n", "flags\t: none\n"]
    assert ("flags:avx sse", "model:7") == tuple(persistent_programs._first_processor(iter(lines)))
    if os.path.exists("/proc/cpuinfo"):
        assert any("flags" in fact or "Features" in fact or "isa" in fact
                   for fact in persistent_programs.processor_facts())


def test_parts_of_a_key_do_not_run_into_each_other(monkeypatch):
    device = cj.devices()[0]
    monkeypatch.setattr(_jaxlib, "options_bytes", lambda options: options)
    place = type("Place", (), {"client": device.client, "devices": [device]})
    keys = {persistent_programs.key_of(program, place, options)
            for program, options in ((b"ab", b"c"), (b"a", b"bc"), (b"abc", b""), (b"", b"abc"))}
    assert 4 == len(keys)


# What is never kept

def callback_primitive():
    class TwiceOnTheHost:
        name = "twice_on_the_host"

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def xla_translation(self, ctx, args):
            return ctx.callback(lambda x: (np.asarray(x) * 2.0,), args, ctx.avals_out)[0]

    return define(TwiceOnTheHost())


def test_a_program_that_calls_back_is_never_kept(place, compiled):
    function = callback_primitive()
    for _ in range(2):
        np.testing.assert_array_equal(X * 2.0, run(place, lambda x: function(x)))
    assert 2 == len(compiled)
    assert [] == entries(place)


def test_nor_is_one_that_holds_such_a_call_unannounced(place):
    with _jaxlib.mlir_context():
        module = _jaxlib.ir.Module.parse("""module { func.func public @main(%x: tensor<f64>) -> tensor<f64> {
            %y = stablehlo.custom_call @xla_ffi_python_cpu_callback(%x) {api_version = 4 : i32,
                backend_config = {index = 0 : ui64}} : (tensor<f64>) -> tensor<f64>
            return %y : tensor<f64> } }""")
        assert persistent_programs._CALLS_PYTHON.search(_jaxlib.program_bytes(module))


def test_a_program_that_cannot_be_compiled_says_the_same_and_leaves_nothing(place):
    class OneOperandMissing:
        name = "one_operand_missing"

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def xla_translation(self, ctx, args):
            return ctx.op("stablehlo.add", args)

    function = define(OneOperandMissing())
    said = []
    for directory in (None, place):
        with pytest.raises(CorejaxError) as caught:
            run(directory, lambda x: function(x))
        said.append((type(caught.value), caught.value.message))
    assert said[0] == said[1]
    assert [] == entries(place)


# Faults of an entry

def flipped(position):
    def damage(path, _):
        content = bytearray(path.read_bytes())
        content[position] ^= 0x10
        path.write_bytes(content)
    return damage


def cut(length):
    def damage(path, _):
        content = path.read_bytes()
        path.write_bytes(content[:length])
    return damage


def swapped(path, other):
    shutil.copyfile(other, path)


def longer(path, _):
    path.write_bytes(path.read_bytes() + b"\0")


def foreign(path, _):
    path.write_bytes(b"\x7fELF" + bytes(5000))


def of_another_release(path, _):
    path.write_bytes(path.read_bytes().replace(b"program 1\n", b"program 9\n", 1))


def linked(path, other):
    path.unlink()
    path.symlink_to(other)


def linked_to_nothing(path, _):
    path.unlink()
    path.symlink_to(path.parent / "nothing")


def linked_to_itself_moved(path, _):
    moved = path.parent.parent / "moved"
    path.rename(moved)
    path.symlink_to(moved)


def a_pipe(path, _):
    path.unlink()
    os.mkfifo(path, 0o600)


def writable_by(bits):
    def damage(path, _):
        path.chmod(0o600 | bits)
    return damage


def valid_yet_no_program(path, _):
    """What the runtime can't load, under the right key and with the right checksum."""
    key = bytes.fromhex(path.stem)
    path.write_bytes(MAGIC + key + persistent_files._digest(key, b"no program") + b"no program")


FAULTS = {
    "empty": (cut(0), "isn't a compiled program"), "cut in the magic line": (cut(9), "isn't a compiled program"),
    "cut in the key": (cut(len(MAGIC) + 5), "damaged"), "cut in the checksum": (cut(len(MAGIC) + 40), "damaged"),
    "no program left": (cut(len(MAGIC) + 64), "damaged"), "half": (cut(2000), "damaged"),
    "last byte missing": (cut(-1), "damaged"), "a byte too many": (longer, "damaged"),
    "a bit of the magic line": (flipped(3), "isn't a compiled program"),
    "a bit of the key": (flipped(len(MAGIC)), "damaged"),
    "a bit of the checksum": (flipped(len(MAGIC) + 32), "damaged"),
    "a bit of the program": (flipped(len(MAGIC) + 64), "damaged"), "the last bit": (flipped(-1), "damaged"),
    "another program's entry": (swapped, "of another program"), "foreign": (foreign, "isn't a compiled program"),
    "another release": (of_another_release, "another release"), "a link to another entry": (linked, ""),
    "a link to nothing": (linked_to_nothing, ""), "a link to itself": (linked_to_itself_moved, ""),
    "a pipe": (a_pipe, "isn't a regular file"), "group may write": (writable_by(0o020), "others can write to it"),
    "all may write": (writable_by(0o002), "others can write to it"),
    "refused by the runtime": (valid_yet_no_program, "can't be loaded by the runtime"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_entry_is_told_once_compiled_anew_and_replaced(place, compiled, fault):
    damage, reason = FAULTS[fault]
    wanted = run(place).tobytes()
    (path,) = entries(place)
    run(place, lambda x: lax.cos(x))
    (other,) = set(entries(place)) - {path}
    kept = other.read_bytes()
    damage(path, other)

    compiled.clear()
    out, messages = told(place)
    assert (wanted, 1, 1) == (out, len(messages), len(compiled))
    assert "an entry of the compilation cache" in messages[0]
    assert reason in messages[0]
    assert str(path) in messages[0]

    assert (wanted, []) == told(place)
    assert 1 == len(compiled)
    assert not path.is_symlink()
    assert 0o600 == mode(path)
    assert kept == other.read_bytes()


def test_an_entry_of_another_user_is_told_and_replaced(place, compiled):
    if not AS_ROOT:
        pytest.skip("only root can give a file away")
    wanted = run(place).tobytes()
    (path,) = entries(place)
    os.chown(path, 65534, -1)
    out, messages = told(place)
    assert (wanted, 1, 2) == (out, len(messages), len(compiled))
    assert "it belongs to another user (65534)" in messages[0]
    assert 0 == path.stat().st_uid
    assert (wanted, []) == told(place)


def test_a_directory_in_the_place_of_an_entry_stops_nothing(place, compiled):
    wanted = run(place).tobytes()
    (path,) = entries(place)
    path.unlink()
    path.mkdir()
    (path / "kept").write_text("mine")
    out, messages = told(place)
    assert (wanted, 2) == (out, len(messages))  # it can't be read, nor written over
    assert "mine" == (path / "kept").read_text()
    assert (wanted, []) == told(place)


def test_an_entry_that_cannot_be_read_is_told_and_replaced(place, monkeypatch):
    wanted = run(place).tobytes()
    opened = os.open

    def failing(path, flags, *args, **kwargs):
        if str(path).endswith(".xla"):
            raise OSError(errno.EIO, "Input/output error")
        return opened(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", failing)
    out, messages = told(place)
    assert (wanted, 1) == (out, len(messages))
    assert "Input/output error" in messages[0]
    assert (wanted, []) == told(place)


def test_a_warning_made_an_error_leaves_a_repaired_entry(place, compiled):
    wanted = run(place).tobytes()
    (path,) = entries(place)
    path.write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CorejaxWarning, match="isn't a compiled program"):
            run(place)
        assert wanted == run(place).tobytes()
    assert 2 == len(compiled)


def test_the_warning_points_at_the_users_line(place):
    run(place)
    (path,) = entries(place)
    path.write_bytes(b"")
    with pytest.warns(CorejaxWarning) as caught:
        run(place)
    assert [__file__] == [warning.filename for warning in caught]


# Faults of a directory

def world_writable(place):
    place.chmod(0o777)


def group_writable(place):
    place.chmod(0o770)


def sticky(place):
    place.chmod(0o1777)


def a_link(place):
    place.rename(place.parent / "elsewhere")
    place.symlink_to(place.parent / "elsewhere")


def a_file(place):
    shutil.rmtree(place)
    place.write_text("a file")


def below_a_file(place):
    a_file(place.parent)


def a_pipe_instead(place):
    shutil.rmtree(place)
    os.mkfifo(place)


DIRECTORIES = {world_writable: "others can write to it (mode 777)", group_writable: "others can write to it (mode 770)",
               sticky: "others can write to it (mode 1777)", a_link: "it is a symbolic link", a_file: "Not a directory",
               below_a_file: "Not a directory", a_pipe_instead: "Not a directory"}


@pytest.mark.parametrize("fault", DIRECTORIES, ids=lambda fault: fault.__name__)
def test_a_directory_that_is_not_safe_is_told_once_and_left_alone(tmp_path, compiled, fault):
    place = tmp_path / "above" / "programs"
    place.parent.mkdir()
    wanted = run(place).tobytes()
    fault(place)
    before = sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*"))
    out, messages = told(place)
    assert (wanted, 1) == (out, len(messages))
    assert f"the compilation cache is off: {DIRECTORIES[fault]}" in messages[0]
    assert str(place) in messages[0]
    assert (wanted, []) == told(place)
    assert [] == told(place, lambda x: lax.cos(x))[1]
    assert 4 == len(compiled)  # nothing was read
    assert before == sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*"))


def test_a_directory_made_safe_again_is_used_again(place, compiled):
    run(place)
    place.chmod(0o777)
    told(place)
    place.chmod(0o700)
    compiled.clear()
    assert [] == told(place)[1]
    assert [] == compiled


def test_a_directory_of_another_user_is_refused(place, compiled, monkeypatch):
    run(place)
    if AS_ROOT:
        os.chown(place, 65534, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 65534)
    _, messages = told(place)
    assert 1 == len(messages)
    assert "it belongs to another user" in messages[0]
    assert 2 == len(compiled)


def test_a_directory_that_others_may_read_is_used(place, compiled):
    run(place)
    place.chmod(0o755)
    assert [] == told(place)[1]
    assert 1 == len(compiled)


def test_a_directory_swapped_for_another_while_it_is_open_changes_nothing(place):
    key = bytes(32)
    with Directory(str(place)) as directory:
        place.rename(place.parent / "moved")
        place.mkdir(0o777)
        directory.write(key, b"program", 2**20)
        assert b"program" == directory.read(key)
    assert [] == entries(place)
    assert 1 == len(entries(place.parent / "moved"))


# Faults of writing

@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_is_told_once_and_leaves_nothing(place, compiled, monkeypatch, number):
    def full(_):
        raise OSError(number, os.strerror(number))

    run(place)
    monkeypatch.setattr(os, "fsync", full)
    out, messages = told(place, lambda x: lax.cos(x))
    assert (np.cos(X).size * 8, 1) == (len(out), len(messages))
    assert f"the compilation cache can't be written to: {os.strerror(number)}" in messages[0]
    assert [] == told(place, lambda x: lax.tan(x))[1]
    assert 1 == len(entries(place)) == len(list(place.iterdir()))
    compiled.clear()
    assert [] == told(place)[1]  # what is there is read
    assert [] == compiled
    monkeypatch.undo()
    run(place, lambda x: lax.cos(x))
    assert 2 == len(entries(place))  # there is room again


def test_a_read_only_file_system_is_told_once_and_read(place, compiled, monkeypatch):
    run(place)
    opened = os.open

    def read_only(path, flags, *args, **kwargs):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *args, **kwargs)

    def no_times(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr(os, "utime", no_times)
    assert [] == told(place)[1]
    _, messages = told(place, lambda x: lax.cos(x))
    assert 1 == len(messages)
    assert "Read-only file system" in messages[0]
    assert [] == told(place, lambda x: lax.tan(x))[1]
    assert 3 == len(compiled)


def test_a_missing_directory_that_cannot_be_made_is_told_once(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "makedirs", refuse)
    _, messages = told(tmp_path / "new")
    assert 1 == len(messages)
    assert "the compilation cache is off: Permission denied" in messages[0]
    assert [] == told(tmp_path / "new")[1]


def test_an_interrupted_write_leaves_nothing(place, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(place)
    assert [] == list(place.iterdir())


def test_a_backend_that_cannot_write_programs_down_is_told_once(place, monkeypatch):
    def unable(*_):
        raise RuntimeError("UNIMPLEMENTED: serialization")

    monkeypatch.setattr(_jaxlib, "executable_bytes", unable)
    _, messages = told(place)
    assert 1 == len(messages)
    assert "programs for cpu can't be kept" in messages[0]
    assert [] == told(place, lambda x: lax.cos(x))[1]


def test_without_the_calls_of_a_posix_system_the_cache_is_off(place, monkeypatch):
    monkeypatch.setattr(persistent_files, "_POSIX", False)
    _, messages = told(place)
    assert 1 == len(messages)
    assert "POSIX" in messages[0]
    assert not place.exists()


# The bound

def write(directory, number, size=1000, limit=10_000):
    directory.write(number.to_bytes(32, "big"), bytes(size), limit)


def numbers(place):
    return {int(path.stem, 16) for path in entries(place)}


def total(place):
    return sum(path.stat().st_size for path in place.iterdir())


def test_the_oldest_entries_go_and_the_directory_stays_within_its_bound(place):
    with Directory(str(place)) as directory:
        for number in range(40):
            write(directory, number)
            os.utime(directory.where(number.to_bytes(32, "big")), (number, number))
            assert total(place) <= 10_000
    assert numbers(place) == set(range(40 - len(numbers(place)), 40))
    assert 7 <= len(numbers(place)) <= 9


def test_an_entry_that_was_used_stays(place):
    with Directory(str(place)) as directory:
        for number in range(8):
            write(directory, number)
            os.utime(directory.where(number.to_bytes(32, "big")), (number, number))
        assert bytes(1000) == directory.read(bytes(32))
        for number in range(8, 12):
            write(directory, number)
    assert 0 in numbers(place)
    assert 1 not in numbers(place)


def test_what_is_larger_than_the_bound_is_not_kept(place):
    with Directory(str(place)) as directory:
        write(directory, 1)
        write(directory, 2, size=20_000)
        write(directory, 3, limit=0)
        assert {1} == numbers(place)
        write(directory, 4, size=9_800)
        assert {4} == numbers(place)


def test_the_setting_is_the_bound(place):
    with config(compilation_cache_max_size=0):
        run(place)
    assert [] == entries(place)
    run(place)
    (path,) = entries(place)
    with config(compilation_cache_max_size=path.stat().st_size * 3 // 2):
        run(place, lambda x: lax.cos(x) + x)
    assert [path] != entries(place)
    assert 1 == len(entries(place))


def test_a_large_directory_is_not_looked_through_at_each_write(place, monkeypatch):
    looked = []
    files = Directory._files
    monkeypatch.setattr(Directory, "_files", lambda self: looked.append(1) or files(self))
    with Directory(str(place)) as directory:
        for number in range(200):
            write(directory, number, limit=10**6)
    assert 2 <= len(looked) <= 200 * 1100 * 64 // 10**6 + 1


def test_what_a_killed_process_left_is_removed_and_what_is_being_written_is_not(place):
    run(place)
    fresh, abandoned = (place / f"{'0' * 64}.{digit * 16}.new" for digit in "12")
    others = [place / "notes.txt", place / "x.new", place / f"{'0' * 63}.xla"]
    for path in (fresh, abandoned, *others):
        path.write_text("something")
    hour_ago = time.time() - 3700
    for path in (abandoned, *others):
        os.utime(path, (hour_ago, hour_ago))
    with Directory(str(place)) as directory:
        write(directory, 1, limit=2_000)
    assert fresh.exists()
    assert not abandoned.exists()
    assert [True] * 3 == [path.exists() for path in others]
    assert {1} == numbers(place) - {0}


def test_an_entry_dropped_by_another_process_meanwhile_is_no_fault(place, monkeypatch):
    with Directory(str(place)) as directory:
        for number in range(9):
            write(directory, number)
        unlink = os.unlink

        def too_late(path, *args, **kwargs):
            unlink(path, *args, **kwargs)
            unlink(path, *args, **kwargs)

        monkeypatch.setattr(os, "unlink", too_late)
        write(directory, 9)
    assert total(place) <= 10_000


def test_reading_says_whether_there_is_an_entry(place):
    with Directory(str(place)) as directory:
        assert directory.read(bytes(32)) is None
        write(directory, 0)
        assert bytes(1000) == directory.read(bytes(32))
        Path(directory.where(bytes(32))).write_bytes(b"")
        with pytest.raises(Fault, match="isn't a compiled program"):
            directory.read(bytes(32))


def test_no_file_stays_open(place):
    def opened():
        return len(os.listdir("/dev/fd"))

    run(place)
    before = opened()
    for _ in range(5):
        run(place)
    place.chmod(0o777)
    told(place)
    place.chmod(0o700)
    for path in entries(place):
        path.write_bytes(b"")
    told(place)
    assert before == opened()
