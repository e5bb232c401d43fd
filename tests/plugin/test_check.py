"""`python -m corejax check`: everything that is wrong with what is installed, before somebody uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

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


def test_nothing_is_broken_in_what_comes_with_corejax(site):
    packs = "corejax-lax-basic,corejax-reductions,corejax-control-flow"
    found = command(site, "check", COREJAX_PACKS=packs)
    assert (0, "nothing is broken\n", "") == (found.returncode, found.stdout, found.stderr)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="pipes of a shell")
def test_a_reader_that_has_seen_enough_is_no_error(site):
    done = subprocess.run(f"{sys.executable} -m corejax primitives | head -n 1", shell=True, capture_output=True,
                          text=True, check=False)
    assert "" == done.stderr and 1 == len(done.stdout.splitlines())
