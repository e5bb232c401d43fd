"""What packs provide that may change: functions, and modules such as `corejax.experimental.NAME`.

Several packs fill it, as they do `corejax.lax`: a name is looked up, and its pack imported, when it is first used, and
one that several packs have means in a pack's modules what the packs have that it requires.

>>> from corejax import experimental
>>> experimental.nothing_of_this_name
Traceback (most recent call last):
  ...
corejax.errors.CorejaxAttributeError: no installed pack provides experimental.nothing_of_this_name
  ...
"""

from __future__ import annotations

from sys import _getframe
from types import FrameType
from typing import TYPE_CHECKING, Any

from corejax.base.caches import generation
from corejax.base.errors import CorejaxError, suggestion
from corejax.base.source import error_without, here
from corejax.base.tracebacks import trim
from corejax.installed import groups, namespaces, registry
from corejax.installed.meanings import Meanings

if TYPE_CHECKING:
    from corejax.installed.distributions import Entry

__path__: list[str] = []  # a package to Python, so that packs may bring `corejax.experimental.NAME`
_kept: set[str] = set()


def _load(entry: Entry, name: str) -> Any:
    """The object that an entry gives to a name that several packs have."""
    return registry.load_once(entry)


_meanings = Meanings(__name__, _load)


def __getattr__(name: str) -> Any:
    try:
        return _find(name, _getframe(1))
    except Exception as error:
        trim(error)
        raise


def _find(name: str, frame: FrameType) -> Any:
    if name == "__all__":  # for `from corejax.experimental import *`, which leaves out what is ambiguous
        return [each for each in __dir__() if len(registry.installed().in_experimental(each)) == 1]
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    since, entries = generation(), registry.installed().in_experimental(name)
    if not entries:
        raise _unknown(name)
    if len(entries) > 1:
        return _meanings.find(name, entries, frame)
    if entries[0].group == groups.NAMESPACES:
        return namespaces.load(f"experimental.{name}")
    _kept.add(name)
    return registry.keep(registry.load_once(entries[0]), globals(), name, since)


def _unknown(name: str) -> CorejaxError:
    found = registry.installed()
    _, there = found.called(groups.FUNCTIONS, name)
    hint = f"write cj.lax.{name}" if there else \
        f"write cj.{name}" if found.at_top(name) or namespaces.is_reserved(name) else suggestion(name, __dir__())
    for group, prefix in ((groups.FUNCTIONS, groups.EXPERIMENTAL), (groups.NAMESPACES, groups.BELOW_EXPERIMENTAL)):
        if found.hidden_provider((group,), prefix + name) is not None:
            hint = registry.install_hint(prefix + name, (group,))
    return error_without(__name__, name, 3)(
        f"no installed pack provides experimental.{name}", got=registry.packs_in_use(), where=here(),
        wanted="a name that dir(cj.experimental) lists", todo=hint or registry.install_hint(name, (groups.FUNCTIONS,)))


def _forget(function: str | None) -> None:
    while function is None and _kept:  # else it is a function of `lax`
        globals().pop(_kept.pop(), None)


registry.also_forget(_forget)


def __dir__() -> list[str]:
    return registry.installed().names_at("experimental")
