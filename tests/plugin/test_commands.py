"""Commands and checks of packs, and tools, which are there whatever packs are in use."""

from __future__ import annotations

import json

import pytest

from corejax.inspect import cli, commands
from tests.plugin.test_check import command

COMMANDS = '''
    from corejax.distributions import Problem

    def roots(arguments):
        """Print what was asked for.

        More about it.
        """
        yield " ".join(arguments) or "nothing"
        if "fail" in arguments:
            raise SystemExit("it failed")

    number = 3

    def silent(arguments):
        print("it prints by itself")

    def text(arguments):
        return "one line"

    def broken(arguments):
        yield "half"
        yield {}["the other half"]

    def tables():
        yield Problem("tool-pack", "its tables are old", "make them anew")

    def failing():
        yield 1 / 0

    def vague():
        yield "something is wrong"
'''


def test_a_pack_brings_a_command_with_its_arguments_and_a_line_of_help(site):
    site.pack("tool-pack", {"commands": {"roots": "tool_pack:roots"}}, {"tool_pack": COMMANDS})
    done = command(site, "roots", "-x", "one", "two")
    assert (0, "-x one two\n") == (done.returncode, done.stdout)
    failed = command(site, "roots", "fail")
    assert (1, "fail\n", "it failed\n") == (failed.returncode, failed.stdout, failed.stderr)
    said = " ".join(command(site, "--help").stdout.split())
    assert "roots Print what was asked for. (tool-pack)" in said and "More about it" not in said


def test_what_is_no_command_is_told_with_what_there_is(site):
    brought = {"roots": "roots", "number": "number", "lost": "lost", "check": "roots"}
    site.pack("tool-pack", {"commands": {name: f"tool_pack:{there}" for name, there in brought.items()}},
              {"tool_pack": COMMANDS})
    done = command(site, "rots")
    assert 1 == done.returncode
    assert "there is no command 'rots'" in done.stderr and "did you mean 'roots'" in done.stderr
    assert "the command 'number' is not a function" in command(site, "number").stderr
    assert "the command 'lost' leads nowhere" in command(site, "lost").stderr
    assert "lost can't be used" in " ".join(command(site, "--help").stdout.split())
    problems = command(site, "check").stderr
    for said in ("the command 'number' is not a function", "the command 'check' is one of corejax's own", "'lost'"):
        assert said in problems, problems


def test_a_command_that_fails_or_yields_no_lines_is_told_by_name(site):
    site.pack("tool-pack", {"commands": {name: f"tool_pack:{name}" for name in ("silent", "text", "broken")}},
              {"tool_pack": COMMANDS})
    for name, got in (("silent", "None"), ("text", "a str")):
        done = command(site, name)
        assert 1 == done.returncode and f"tool-pack 1.0: the command '{name}' doesn't yield lines" in done.stderr
        assert f"got:    {got}" in done.stderr and "wanted: an iterable of the lines to print" in done.stderr
    done = command(site, "broken")
    assert (1, "half\n") == (done.returncode, done.stdout)
    assert "KeyError: 'the other half'" in done.stderr and "tool_pack.py" in done.stderr
    assert done.stderr.rstrip().endswith("raised by the command 'broken' of tool-pack 1.0")


def test_two_packs_with_one_command_are_an_error_that_names_both(site):
    for name in ("one", "two"):
        site.pack(f"{name}-pack", {"commands": {"roots": f"{name}_pack:roots"}}, {f"{name}_pack": COMMANDS})
    said = command(site, "roots").stderr
    assert "one-pack 1.0" in said and "two-pack 1.0" in said
    assert "nothing\n" == command(site, "roots", COREJAX_PREFER="two-pack").stdout


@pytest.mark.parametrize("name, extra", [("new", "authoring"), ("stubs", "authoring"), ("entry-points", "authoring"),
                                         ("conformance", "testing")])
def test_a_command_that_is_not_installed_says_what_brings_it(name, extra, monkeypatch, capsys):
    monkeypatch.setattr(commands, "names", lambda: [])
    assert 1 == cli.main([name])
    assert f"corejax-{extra} brings it: pip install 'corejax[{extra}]'" in capsys.readouterr().err


def test_the_kernels_own_commands_are_those_whose_names_are_taken():
    assert set(commands.OWN) == {*cli._parser(False)._subparsers._group_actions[0].choices}


def test_checks_of_packs_are_asked_and_one_that_fails_is_a_problem(site):
    site.pack("tool-pack", {"checks": {name: f"tool_pack:{name}" for name in ("tables", "failing", "vague")}},
              {"tool_pack": COMMANDS})
    found = json.loads(command(site, "check", "--json").stdout)
    assert {"pack": "tool-pack", "problem": "its tables are old", "todo": "make them anew"} in found
    problems = [each["problem"] for each in found]
    assert "its check 'failing' fails: ZeroDivisionError: division by zero" in problems
    assert "its check 'vague' yields what isn't a Problem: 'something is wrong'" in problems


def test_tools_are_there_whichever_packs_are_in_use(site):
    site.pack("tool-pack", {"commands": {"roots": "tool_pack:roots"}, "namespaces": {"rooted": "tool_pack"}},
              {"tool_pack": COMMANDS})
    site.pack("mixed-pack", {"commands": {"mixed": "tool_pack:roots"}, "functions": {"some": "tool_pack:roots"}})
    assert "nothing\n" == command(site, "roots", COREJAX_PACKS="none").stdout
    assert "there is no command 'mixed'" in command(site, "mixed", COREJAX_PACKS="none").stderr
    name = "import corejax.rooted; print(corejax.rooted.__name__)"
    assert "tool_pack" == site.run(name, COREJAX_PACKS="none").strip()
    listed = command(site, "plugins", COREJAX_PACKS="none").stdout
    assert "tool-pack 1.0: 1 command, 1 namespace" in listed and "mixed-pack 1.0: excluded" in listed
    excluded = command(site, "roots", COREJAX_DISABLE_PACKS="tool-pack", COREJAX_PACKS="none")
    assert "tool-pack 1.0 provides it, and COREJAX_PACKS or COREJAX_DISABLE_PACKS excludes that pack" in excluded.stderr
    assert "check_pack" in site.run("import corejax.testing; print(dir(corejax.testing))", COREJAX_PACKS="none")


def test_a_submodule_of_a_namespace_does_not_take_the_place_of_a_function_of_its_name(site):
    site.pack("deep-pack", {"namespaces": {"deep": "deep_pack"}}, {
        "deep_pack.__init__": "from deep_pack.check import check\n", "deep_pack.check": "def check():\n    return 5\n"})
    assert "5 5" == site.run("""
        import corejax as cj, corejax.deep.check
        from corejax.deep.check import check
        print(cj.deep.check(), check())""").strip()
