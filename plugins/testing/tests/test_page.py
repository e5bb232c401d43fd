"""The guide to the kit has today's checks, each check says what it is, and each failure what to do."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from corejax.kernel.hookspecs import HOOKS
from corejax.testing import CHECKS, Check
from imports import ROOT, tree


def test_table_of_checks_is_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "tools/check_table.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert 0 == done.returncode, done.stderr


@pytest.mark.parametrize("each", CHECKS.values(), ids=str)
def test_check_has_a_law_and_a_hook(each: Check) -> None:
    assert each.hook in (*HOOKS, "evaluate")
    law = each.doc.partition("\n\n")[0]
    assert law.endswith(".") and "|" not in law and len(law) <= 160
    assert each.name == each.run.__name__.replace("_", " ")


def verdicts() -> list[ast.Call]:
    """Every call `case.fail(...)` of the kit."""
    kit = ROOT / "plugins/testing/corejax_testing"
    nodes = [node for path in sorted(kit.glob("*.py")) for node in ast.walk(tree(path))]
    return [node for node in nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "fail"
            and "pytest" not in ast.unparse(node.func)]


def test_every_failure_says_what_was_got_wanted_and_what_to_do() -> None:
    assert len(verdicts()) > 30
    silent = [ast.unparse(node) for node in verdicts()
              if not {"got", "wanted", "todo"} <= {keyword.arg for keyword in node.keywords}]
    assert [] == silent
