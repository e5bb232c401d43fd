"""Settings: from the environment, for the process, for a block in a thread."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from corejax.base.avals import aval_of
from corejax.base.config import SETTINGS, Config, Setting, config, values_from
from corejax.base.settings import PathName, Whole
from corejax.errors import CorejaxAttributeError, CorejaxError, CorejaxValueError


@pytest.fixture(autouse=True)
def restore():
    before = {name: getattr(config, name) for name in SETTINGS}
    yield
    for name, value in before.items():
        setattr(config, name, value)


def in_another_thread(function):
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_defaults():
    assert {name: setting.default for name, setting in SETTINGS.items()} == values_from({})
    assert 64 == SETTINGS["default_bits"].default


def test_assignment_holds_for_all_threads():
    config.default_bits = 32
    assert (32, 32) == (config.default_bits, in_another_thread(lambda: config.default_bits))


def test_a_block_holds_for_its_thread_and_ends():
    with config(default_bits=32, fallbacks="error"):
        assert (32, "error") == (config.default_bits, config.fallbacks)
        assert (64, "warn") == in_another_thread(lambda: (config.default_bits, config.fallbacks))
        with config(default_bits=64):
            assert 64 == config.default_bits
        assert 32 == config.default_bits
    assert (64, "warn") == (config.default_bits, config.fallbacks)


def test_a_block_is_left_after_an_exception():
    with pytest.raises(ZeroDivisionError), config(default_bits=32):
        1 / 0  # noqa: B018
    assert 64 == config.default_bits


def test_assignment_inside_a_block_shows_inside():
    with config(default_bits=32):
        config.default_bits = 64
        assert 64 == config.default_bits


def test_default_bits_decide_the_type_of_python_scalars():
    assert ("~f64[]", "~i64[]") == (str(aval_of(1.0)), str(aval_of(1)))
    with config(default_bits=32):
        assert ("~f32[]", "~i32[]", "~c64[]") == (str(aval_of(1.0)), str(aval_of(1)), str(aval_of(1j)))


@pytest.mark.parametrize(("name", "value"), [("default_bits", 16), ("default_bits", "32"), ("default_bits", 32.0),
                                             ("traceback_filtering", 1), ("fallbacks", "loud")])
def test_values_that_are_not_allowed_are_refused_with_those_that_are(name, value):
    with pytest.raises(CorejaxValueError, match=f"config.{name} can't be") as caught:
        setattr(config, name, value)
    assert SETTINGS[name].values.wanted == caught.value.wanted
    with pytest.raises(CorejaxValueError), config(**{name: value}):
        pass


def test_a_misspelled_value_gets_a_suggestion():
    with pytest.raises(CorejaxValueError, match="did you mean 'silent'"):
        config.fallbacks = "silence"


def test_a_misspelled_name_gets_a_suggestion():
    with pytest.raises(CorejaxAttributeError, match="did you mean 'default_bits'"):
        config.defaultbits = 32
    with pytest.raises(CorejaxError, match="no setting called 'x64'"), config(x64=True):
        pass
    with pytest.raises(AttributeError):
        config.defaultbits  # noqa: B018
    with pytest.raises(CorejaxAttributeError, match="can't be deleted"):
        del config.default_bits


def test_a_refused_block_sets_nothing():
    with pytest.raises(CorejaxValueError), config(default_bits=32, fallbacks="loud"):
        pass
    assert 64 == config.default_bits


@pytest.mark.parametrize(("text", "value"), [("1", True), ("true", True), ("0", False), ("off", False), ("No", False)])
def test_booleans_from_the_environment(text, value):
    assert value is values_from({"COREJAX_TRACEBACK_FILTERING": text})["traceback_filtering"]


def test_other_values_from_the_environment():
    found = values_from({"COREJAX_DEFAULT_BITS": "32", "COREJAX_FALLBACKS": "error"})
    assert (32, "error") == (found["default_bits"], found["fallbacks"])
    with pytest.raises(CorejaxValueError, match="the environment variable COREJAX_DEFAULT_BITS can't be '48'"):
        values_from({"COREJAX_DEFAULT_BITS": "48"})


def test_the_environment_is_read_at_import():
    code = "from corejax.config import config; print(config.default_bits, config.fallbacks)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                         env={"COREJAX_DEFAULT_BITS": "32", "PYTHONPATH": ":".join(p for p in sys.path if p)})
    assert "32 warn" == out.stdout.strip()


def test_all_settings_are_annotated_and_listed():
    assert set(SETTINGS) == set(Config.__annotations__) == set(dir(config))
    assert "default_bits=64" in repr(config)


@pytest.mark.parametrize(("values", "taken"), [
    (Whole(1), {1: 1, 7: 7, np.int64(3): 3}), (Whole(0, 9, optional=True), {0: 0, 9: 9, None: None})])
def test_a_setting_may_be_a_whole_number_in_a_range(values, taken):
    found = {given: values.check(given) for given in taken}
    assert taken == found
    assert {int, type(None)} >= {type(value) for value in found.values()}


@pytest.mark.parametrize(("value", "todo"), [
    (0, "it says: how many"), (10, "it says: how many"), (True, "it says: how many"), (None, "it says: how many"),
    (3.0, "write 3"), ("3", "write 3"), ("three", "it says: how many"), (float("nan"), "it says: how many"),
    (1.5, "it says: how many")])
def test_a_number_out_of_range_or_no_number_is_refused(value, todo):
    setting = Setting("workers", 1, Whole(1, 9), "how many")
    with pytest.raises(CorejaxValueError, match="config.workers can't be") as caught:
        setting.check(value)
    assert ("an int from 1 to 9", todo) == (caught.value.wanted, caught.value.todo)


@pytest.mark.parametrize("text", ["0", "10", "3.0", "three", "", "none"])
def test_a_number_from_the_environment_is_refused_likewise(text):
    setting = Setting("workers", 1, Whole(1, 9), "how many")
    with pytest.raises(CorejaxValueError, match="the environment variable COREJAX_WORKERS can't be"):
        setting.parse(text)


def test_numbers_from_the_environment():
    setting = Setting("workers", None, Whole(1, optional=True), "how many")
    assert [4, 2000, None, None] == [setting.parse(text) for text in ("4", " 2_000 ", "", "None")]
    assert "an int >= 1 or None" == setting.values.wanted


def test_a_path_is_kept_as_an_absolute_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for given, kept in [("here", tmp_path / "here"), (tmp_path, tmp_path), ("~/x", tmp_path / "home" / "x")]:
        config.compilation_cache_dir = given
        assert str(kept) == config.compilation_cache_dir
    config.compilation_cache_dir = None
    assert config.compilation_cache_dir is None


@pytest.mark.parametrize(("value", "todo"), [(3, "it says"), (b"x", "it says"), (True, "it says"), ("", "None turns"),
                                             (" ", "None turns"), ("a\0b", "it says"), (["x"], "it says")])
def test_what_is_no_path_is_refused(value, todo):
    with pytest.raises(CorejaxValueError, match="config.compilation_cache_dir can't be") as caught:
        config.compilation_cache_dir = value
    assert "a path or None" == caught.value.wanted
    assert todo in caught.value.todo


def test_a_path_of_bytes_gets_the_next_step():
    class Bytes(os.PathLike):
        def __fspath__(self):
            return b"x"

    with pytest.raises(CorejaxValueError, match=r"give it as a str or a pathlib.Path"):
        config.compilation_cache_dir = Bytes()


def test_paths_from_the_environment(tmp_path):
    name = "COREJAX_COMPILATION_CACHE_DIR"
    found = [values_from({name: text})["compilation_cache_dir"] for text in (str(tmp_path), "", "none", " ")]
    assert [str(tmp_path), None, None, None] == found


def test_a_required_path_has_no_none():
    setting = Setting("place", "/", PathName(), "where")
    for refuse, value in ((setting.check, None), (setting.parse, "")):
        with pytest.raises(CorejaxValueError) as caught:
            refuse(value)
        assert ("a path", "it says: where") == (caught.value.wanted, caught.value.todo)


def test_a_long_value_is_quoted_in_part():
    with pytest.raises(CorejaxValueError) as caught:
        config.fallbacks = "x" * 10_000
    assert 1000 > len(str(caught.value))
