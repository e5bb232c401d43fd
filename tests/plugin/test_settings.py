"""Settings of packs as entry points: attributes of `config` that are known by name and loaded when they are used."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

PACE = """
    from corejax.plugin import Setting, settings
    print("imported")
    pace = Setting("pace", 3, settings.Whole(1, 9), "how fast it goes")
"""


def pack(site: Any, name: str = "pace-pack", setting: str = "pace", value: str | None = None, code: str = PACE) -> None:
    module = name.replace("-", "_")
    site.pack(name, {"settings": {setting: value or f"{module}:pace"}}, {module: code})


def run(site: Any, code: str, **environment: str) -> list[str]:
    return str(site.run("import corejax as cj\n" + textwrap.dedent(code), **environment)).splitlines()


def test_it_is_loaded_when_it_is_read(site: Any) -> None:
    pack(site)
    assert ["imported", "3 3"] == run(site, "print(cj.config.pace, cj.config.pace)")


def test_it_is_listed_before(site: Any) -> None:
    pack(site)
    assert ["True True", "imported", "3 True"] == run(site, """
    print("pace" in dir(cj.config), "pace" in dir(cj.config))
    print(cj.config.pace, "pace" in dir(cj.config))""")


def test_it_can_be_set_for_the_process_and_for_a_block(site: Any) -> None:
    pack(site)
    assert ["imported", "5", "4", "5"] == run(site, """
    cj.config.pace = 5
    print(cj.config.pace)
    with cj.config(pace=4):
        print(cj.config.pace)
    print(cj.config.pace)""")


def test_a_block_may_be_the_first_to_use_it(site: Any) -> None:
    pack(site)
    assert ["imported", "4 3"] == run(site, """
    with cj.config(pace=4):
        inside = cj.config.pace
    print(inside, cj.config.pace)""")


def test_the_environment_gives_its_first_value(site: Any) -> None:
    pack(site)
    assert ["imported", "7"] == run(site, "print(cj.config.pace)", COREJAX_PACE="7")
    said = run(site, "print(error(lambda: cj.config.pace))", COREJAX_PACE="70")
    assert "the environment variable COREJAX_PACE can't be '70'" in "".join(said)
    assert "an int from 1 to 9" in "".join(said)


def test_doctor_knows_its_variable(site: Any) -> None:
    pack(site)
    said = "\n".join(run(site, """
    from corejax.inspect import doctor, watching
    watching.run = lambda *arguments: watching.Ended([])
    print(*doctor.examine().lines(), sep="\\n")""", COREJAX_PACE="7", COREJAX_PACES="7"))
    assert "COREJAX_PACE: '7'\n" in said and "COREJAX_PACES: '7', which isn't a variable of corejax" in said
    assert "did you mean COREJAX_PACE?" in said and "imported" not in said


def test_wrong_values_and_names_are_refused(site: Any) -> None:
    pack(site)
    said = "\n".join(run(site, """
    def assign(name, value):
        setattr(cj.config, name, value)
    print(error(lambda: assign("pace", 10)))
    print(error(lambda: assign("pce", 1)))"""))
    assert "config.pace can't be 10" in said and "it says: how fast it goes" in said
    assert "there is no setting called 'pce'" in said and "did you mean 'pace'?" in said


def test_an_unknown_attribute_is_none(site: Any) -> None:
    pack(site)
    assert ["False", "False"] == run(site, "print(hasattr(cj.config, 'space'), hasattr(cj.config, '_pace'), sep='\\n')")


def test_threads_have_blocks_of_their_own(site: Any) -> None:
    pack(site)
    assert ["imported", "4 3"] == run(site, """
    import threading
    seen = []
    with cj.config(pace=4):
        thread = threading.Thread(target=lambda: seen.append(cj.config.pace))
        thread.start(); thread.join()
        print(cj.config.pace, *seen)""")


@pytest.mark.parametrize(("setting", "value", "said"), [
    ("tempo", "pace_pack:pace", "is not a setting of that name"), ("pace", "pace_pack:settings", "leads to a module"),
    ("pace", "pace_pack:print", "leads nowhere"), ("pace", "pace_pack:__doc__", "is not a setting of that name")])
def test_what_is_no_setting_is_told(site: Any, setting: str, value: str, said: str) -> None:
    pack(site, setting=setting, value=value)
    assert said in "\n".join(run(site, f"print(error(lambda: cj.config.{setting}))"))


@pytest.mark.parametrize(("setting", "code", "said"), [
    ("Pace", PACE.replace('"pace"', '"Pace"'), "the setting 'Pace' can't be written as config.NAME"),
    ("pace", PACE.replace("3", "30"), "the default of the setting 'pace' is none of its values: 30")])
def test_check_says_more(site: Any, setting: str, code: str, said: str) -> None:
    pack(site, setting=setting, code=code)
    assert said in "\n".join(run(site, "from corejax.inspect.checkup import checkup\nprint(*checkup())"))


def test_corejax_keeps_its_own(site: Any) -> None:
    pack(site, setting="backend", code=PACE.replace('"pace"', '"backend"'))
    assert ["auto"] == run(site, "registry.installed()\nprint(cj.config.backend)")
    said = "\n".join(run(site, "from corejax.inspect.checkup import checkup\nprint(*checkup())"))
    assert "is one of corejax's own" in said


def test_two_packs_with_one_name_are_told(site: Any) -> None:
    pack(site)
    pack(site, "race-pack")
    said = "".join(run(site, "print(error(lambda: cj.config.pace))"))
    assert "pace-pack 1.0" in said and "race-pack 1.0" in said and "COREJAX_PREFER" in said
    assert ["imported", "3"] == run(site, "print(cj.config.pace)", COREJAX_PREFER="race-pack")


def test_an_excluded_pack_brings_none(site: Any) -> None:
    pack(site)
    assert ["False"] == run(site, "print(hasattr(cj.config, 'pace'))", COREJAX_DISABLE_PACKS="pace-pack")


def test_reading_settings_is_as_fast_as_before_once_packs_are_known(site: Any) -> None:
    pack(site)
    assert ["True False"] == run(site, """
    before = hasattr(type(cj.config), "__getattr__")
    registry.installed()
    print(before, hasattr(type(cj.config), "__getattr__"))""")
