"""Versions of what corejax needs, and modules that are found in place of those that are installed."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse
from urllib.request import url2pathname

from corejax.inspect.answers import Problem
from corejax.installed import manifest, requirements
from corejax.installed.requirements import Requirement, satisfies

if TYPE_CHECKING:
    from corejax.installed.distributions import Distribution

KERNEL = "corejax"

#: What isn't required by name, but comes with what is.
_BESIDE = "ml-dtypes"


def versions() -> dict[str, str]:
    """The versions of corejax, of Python, and of what corejax needs, with the ranges that it works with."""
    kernel = manifest.distribution(KERNEL)
    home = os.path.dirname(os.path.dirname(__file__))
    found = {KERNEL: f"{kernel.version if kernel else 'not installed as a distribution'}, at {home}",
             "Python": f"{platform.python_version()}, at {sys.executable}; {platform.system()}, {platform.machine()}"}
    for each in required():
        there = manifest.distribution(each.name)
        found[each.name] = f"{there.version if there else 'not installed'}" + (
            f" (corejax needs {each.range})" if each.range else "")
    return found


def required() -> list[Requirement]:
    """What corejax can't do without."""
    kernel = manifest.distribution(KERNEL)
    found = [each for each in requirements.parse(kernel.requires or () if kernel else ()) if not each.optional]
    return [*found, Requirement(_BESIDE, "", False)]


def needed() -> list[str]:
    """corejax, and the names of what it can't do without."""
    return [KERNEL, *[each.name for each in required()]]


def unsupported() -> Iterator[Problem]:
    """Versions that corejax isn't made for."""
    for each in required():
        there = manifest.distribution(each.name)
        if there is not None and not satisfies(there.version, each.range):
            yield Problem(each.name, f"{there.version} is installed, and corejax needs {each.range}",
                          f"pip install '{each.name}{each.range}'")


# Hidden

def hidden(name: str, modules: list[str]) -> Iterator[Problem]:
    """Modules of a distribution in whose place others would be imported, or are."""
    distribution = manifest.distribution(name)
    for module in modules if distribution is not None else ():
        assert distribution is not None
        imported, own = _imported_from(module), _own(distribution, module)
        if imported and own and not any([_is_within(imported, place) for place in own]):
            yield Problem(name, f"its module {module}, in {own[0]}, is hidden by {imported}",
                          f"rename or remove that one, start in another folder, or uninstall {name}")


def _imported_from(module: str) -> str:
    """The file that an import would load. Imports nothing."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return ""
    return spec.origin or "" if spec else ""


def _own(distribution: Distribution, module: str) -> list[str]:
    """Where a distribution has a module, as far as that can be known."""
    home = Path(str(distribution.locate_file("")))
    there = [home / module, *home.glob(f"{module}.*")]
    if any([path.exists() for path in there]):
        return [str(path) for path in there if path.exists()]
    try:
        source = json.loads(distribution.read_text("direct_url.json") or "{}")
    except ValueError:
        return []
    url = urlparse(str(source.get("url")))
    editable = url.scheme == "file" and source.get("dir_info", {}).get("editable")
    return [url2pathname(url.path)] if editable else []


def _is_within(path: str, folder: str) -> bool:
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return path == folder or path.startswith(folder + os.sep)
