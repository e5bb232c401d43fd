"""Every example in the documentation runs, what it prints is what the page says, and links lead somewhere."""

from __future__ import annotations

import doctest
import importlib
import inspect
import io
import os
import pkgutil
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax as cj
import forked
from corejax.installed import groups, manifest
from corejax.kernel import hookspecs
from imports import PACKS, ROOT
from tests import manual

SKIPPED = ("node_modules", "build", "dist", ".git", "shared")
PAGES = sorted(path for path in ROOT.rglob("*.md") if not [
    part for part in path.relative_to(ROOT).parts if part in SKIPPED or part.startswith(".venv")])
PACKAGES = ("corejax", *PACKS, "corejax_softplus")
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def code_blocks(text: str) -> Iterator[tuple[int, str]]:
    """(line, code) of each fenced block of Python."""
    for found in FENCE.finditer(text):
        if found[1] in ("python", "pycon"):
            yield text.count("\n", 0, found.start(2)), found[2]


def run_page(path: Path) -> str:
    """Run a page from top to bottom as one session; the report of what differs."""
    text = path.read_text()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report = io.StringIO()
    for line, code in code_blocks(text):
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, namespace, path.name, str(path), line)
            test.globs = namespace
            runner.run(test, out=report.write, clear_globs=False)
        else:
            # Silent blocks: definitions that a reader pastes as they are.
            with redirect_stdout(report):
                exec(compile("\n" * line + code, str(path), "exec"), namespace)
    return report.getvalue()


def run_page_apart(path: Path) -> str:
    """The same in a process of its own, for a page that sets what can't be changed later."""
    code = f"import sys; sys.path[:0] = {sys.path!r}\nfrom pathlib import Path\nimport test_docs\n"
    done = forked.run(f"{code}print(test_docs.run_page(Path({str(path)!r})))", os.environ)
    return done.stderr or done.stdout.strip()


@pytest.mark.parametrize("path", [path for path in PAGES if any(code_blocks(path.read_text()))], ids=name_of)
def test_page_does_what_it_says(path: Path) -> None:
    apart = any("config.num_cpu_devices =" in code for _, code in code_blocks(path.read_text()))
    assert "" == (run_page_apart if apart else run_page)(path)


def test_readme_and_guides_have_examples() -> None:
    for page in ("README.md", "docs/guide.md", "docs/writing-a-pack.md", "docs/hooks.md"):
        assert len(list(code_blocks((ROOT / page).read_text()))) > 3, page


MANUAL = sorted((ROOT / "docs").glob("*.md"))


@pytest.mark.parametrize("path", MANUAL, ids=name_of)
def test_page_quotes_what_tests_record(path: Path) -> None:
    page = path.read_text()
    assert manual.made(page) == page, "run: python -m tests.manual --write"


def test_every_total_is_quoted() -> None:
    quoted = {title for path in MANUAL for kind, title in manual.parts(path.read_text()) if kind == "total"}
    assert set(manual.TOTALS) == quoted


def test_index_has_every_page() -> None:
    listed = {path for path in LINK.findall((ROOT / "docs/README.md").read_text()) if "/" not in path}
    assert {path.name for path in MANUAL} - {"README.md"} == listed


@pytest.mark.parametrize("path", MANUAL, ids=name_of)
def test_page_can_be_read_from_top_to_bottom(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 450


def module_names() -> list[str]:
    names = []
    for package in PACKAGES:
        module = importlib.import_module(package)
        names += [package, *(info.name for info in pkgutil.walk_packages(module.__path__, package + "."))]
    return [name for name in names if not name.endswith("__main__")]


@pytest.mark.parametrize("name", module_names())
def test_docstring_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in examples_of(module):
        runner.run(test, out=report.write)
    assert "" == report.getvalue()


def examples_of(module: Any) -> Iterator[doctest.DocTest]:
    """The examples in a module's docstrings; those of plugins are in their classes."""
    names = {"cj": cj, "lax": cj.lax, "np": np, "jnp": cj.numpy, "nn": cj.nn, "random": cj.random,
             **vars(module)}
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, module.__name__, globs=names):
        if test.examples:
            yield test


# The hook reference

HOOKS_PAGE = ROOT / "docs/hooks.md"


def documented_hooks() -> dict[str, str]:
    """Each hook of the reference with the text below its heading."""
    parts = re.split(r"^### `(\w+)`$", HOOKS_PAGE.read_text(), flags=re.MULTILINE)
    return {name: re.split(r"^## ", text, flags=re.MULTILINE)[0] for name, text in zip(parts[1::2], parts[2::2])}


def test_every_hook_is_documented_and_no_other() -> None:
    assert set(hookspecs.HOOKS) == set(documented_hooks())


@pytest.mark.parametrize("hook", hookspecs.HOOKS)
def test_reference_says_what_the_spec_says(hook: str) -> None:
    spec = getattr(hookspecs, hook)
    parameters = list(inspect.signature(spec).parameters)
    params = () if hook in hookspecs.WITHOUT_PARAMS else ("*", "...")
    doc = inspect.getdoc(spec)
    assert doc is not None and doc.startswith(f"`{hook}({', '.join((*parameters, *params))})`")
    assert doc in documented_hooks()[hook]


# Roles

def test_architecture_lists_every_role() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    _, _, section = text.partition("## Roles")
    listed = re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.MULTILINE)
    provided = [role for role in manifest.read().names(groups.ROLES) if not role.startswith("operators.")]
    assert provided == sorted(listed)


# Links

def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_resolve(path: Path) -> None:
    for target in LINK.findall(CODE.sub("``", FENCE.sub("", path.read_text()))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        place = (path.parent / file).resolve() if file else path
        assert place.exists(), f"{target} in {name_of(path)}"
        if anchor and place.suffix == ".md":
            assert anchor in anchors(place), f"{target} in {name_of(path)}"
