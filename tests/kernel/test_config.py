"""Settings: from the environment, for the process, for a block in a thread."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from corejax.avals import aval_of
from corejax.config import SETTINGS, Config, config, values_from
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
    assert " or ".join(map(repr, SETTINGS[name].allowed)) == caught.value.wanted
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
