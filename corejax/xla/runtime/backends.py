"""Backends: which ones there are, which can be used here, and which is the default.

A pack provides one as a plugin object in the group `corejax.backends`; `cpu` and `cuda` are built in. An error in a
pack's backend names both, and the other backends keep working.

>>> "cpu" in known()
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from corejax.base import _jaxlib
from corejax.base.config import AUTO
from corejax.base.errors import CorejaxError, CorejaxRuntimeError, CorejaxValueError, PackError, kind_of, suggestion
from corejax.base.source import here
from corejax.installed import groups, registry
from corejax.xla.runtime import peers
from corejax.xla.runtime.builtin import BACKENDS
from corejax.xla.runtime.peers import PeerFailure

GROUP = "corejax.backends"
#: This one works everywhere.
ALWAYS = BACKENDS["cpu"]
_OWN = "corejax"


class Backend(Protocol):
    """What a pack provides in the group `corejax.backends`: an object with these attributes.

    It may also have `compiler_options`, a dict of options that the compiler needs for all of its programs.
    """

    name: str
    platform: str
    priority: int

    def why_not(self) -> str | None:
        """Why it can't be used here, in a few words, or None if it can. This must be cheap: a look at the machine."""

    def make_client(self) -> Any:
        """A client of the runtime, with at least one device. Called once in a process."""


class Offer(NamedTuple):
    """A backend that has been checked, with its provider."""

    name: str
    platform: str
    priority: int
    origin: str
    options: tuple[tuple[str, Any], ...]
    backend: Backend

    def why_not(self) -> str | None:
        """Why it can't be used here; None if it can."""
        reason = _call(self.name, self.origin, "is asked whether it can be used", self.backend.why_not)
        if reason is not None and not isinstance(reason, str):
            raise _fault(self.name, self.origin, "says whether it can be used, but not in words",
                         f"why_not() returned {reason!r:.80}", "the reason as a str, or None if there is none")
        return reason

    def make_client(self) -> Any:
        """A new client for it."""
        client = _call(self.name, self.origin, "makes its client", self.backend.make_client)
        if not isinstance(client, _jaxlib.Client):
            raise _fault(self.name, self.origin, "makes something other than a client",
                         f"make_client() returned {kind_of(client)}", "a client of the runtime of jaxlib")
        if not client.local_devices():
            raise _fault(self.name, self.origin, "makes a client without devices", repr(client)[:80],
                         "at least one device; or a reason from why_not()")
        return client


def known() -> list[str]:
    """The names of all backends, built in or from packs in use. Imports no pack."""
    return sorted({*BACKENDS, *registry.installed().names(GROUP)})


# Checking one

def _is_name(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[a-z]\w*", value) is not None


#: What a backend must have: a check for each attribute, and what errors say is wanted.
_PARTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (_is_name, "the name of its entry point"),
    "platform": (_is_name, "the name of the platform for which programs are lowered"),
    "priority": (lambda value: type(value) is int, "an int; corejax's cpu has 0, its cuda has 100"),
    "why_not": (callable, "a method that returns why it can't be used here, or None"),
    "make_client": (callable, "a method that returns a client of the runtime"),
    "compiler_options": (lambda value: isinstance(value, Mapping), "a dict from names to values, if it is there"),
}


def offer(name: str) -> Offer:
    """The backend of this name; raises if there is none, if several packs provide it, or if it is faulty."""
    installed = registry.installed()
    entries = installed.providers(GROUP, name)
    if name in BACKENDS:
        preferred = [entry for entry in entries if installed.preferences.of(entry.pack.name, name).degree]
        for other in [] if preferred else entries:
            groups.report((name, other.pack.name), f"the backend {name!r} of {other.pack} is not used, as {_OWN} has "
                            f"one of that name; COREJAX_PREFER={other.pack.name} chooses it")
        if not preferred:
            return _checked(BACKENDS[name], name, _OWN)
    entry = installed.choose(GROUP, name)
    if entry is None:
        near = suggestion(name, [AUTO, *known()])
        raise CorejaxValueError(f"there is no backend called {name!r}", got=repr(name), wanted=f"one of: {overview()}",
                                where=here(), todo=near or registry.install_hint(name, (GROUP,)))
    return _checked(registry.load(GROUP, name), name, str(entry.pack))


def _checked(backend: Any, name: str, origin: str) -> Offer:
    """Check a backend. Each of its attributes is read only once."""
    parts: dict[str, Any] = {}
    for part, (good, wanted) in _PARTS.items():
        default: Any = {} if part == "compiler_options" else None
        ask = partial(getattr, backend, part, default)
        parts[part] = value = _call(name, origin, f"is asked for its {part}", ask)
        if not good(value) or (part == "name" and value != name):
            got = f"{part} = {value!r:.80}" if value is not None else f"no {part}"
            raise PackError(f"{origin}: the backend {name!r} isn't a backend", pack=origin, where=here(),
                            got=f"{kind_of(backend)} with {got}", wanted=f"{part}: {wanted}",
                            todo=f"let the entry point lead to {backend.__name__}(), not to the class"
                            if isinstance(backend, type) else _other(name))
    return Offer(name, parts["platform"], parts["priority"], origin, tuple(parts["compiler_options"].items()), backend)


def _call(name: str, origin: str, what: str, ask: Callable[[], Any]) -> Any:
    """Call a backend's own code; an error that names the backend if it raises anything."""
    try:
        return ask()
    except PeerFailure:
        raise
    except (Exception, SystemExit) as error:
        raise _fault(name, origin, f"raises when it {what}", registry.words(error), "an answer") from error


def _fault(name: str, origin: str, what: str, got: str, wanted: str) -> CorejaxRuntimeError:
    return CorejaxRuntimeError(f"the backend {name!r} of {origin} {what}", pack=origin, got=got, wanted=wanted,
                               where=here(), todo=_other(name))


def _other(name: str) -> str:
    return f"fix it, or choose a backend other than {name!r} with config.backend or COREJAX_BACKEND"


# Choosing one

def candidates(wanted: str) -> list[Offer]:
    """The backends to try in turn: the one that is wanted, or, for `auto`, all that aren't faulty, best first."""
    if wanted != AUTO:
        return [offer(wanted)]
    found = []
    for name in known():
        try:
            found.append(offer(name))
        except CorejaxError as error:
            _skip(name, error)
    return sorted(found, key=lambda one: (-one.priority, one.name))


def usable(found: Sequence[Offer], wanted: str) -> Iterator[Offer]:
    """The candidates that can be used here. Raises if a backend was asked for by name and can't be used."""
    for one in found:
        try:
            reason = one.why_not()
        except CorejaxError as error:
            if wanted != AUTO:
                raise
            _skip(one.name, error)
            continue
        if reason is None:
            yield one
        elif wanted != AUTO:
            raise CorejaxRuntimeError(f"the backend {one.name!r} can't be used here: {reason}", got=repr(wanted),
                                      wanted=f"one that can be used: {overview()}", where=here(), pack=one.origin,
                                      todo="choose another one with config.backend or COREJAX_BACKEND, or 'auto'")


def start(found: Sequence[Offer], wanted: str) -> tuple[Offer, Any]:
    """The first candidate that works, with its client."""
    for one in usable(found, wanted):
        try:
            return one, one.make_client()
        except PeerFailure:
            raise
        except CorejaxError as error:
            peers.check()  # the runtime may only say that something was cancelled
            if wanted != AUTO:
                raise
            _skip(one.name, error)
    raise CorejaxRuntimeError("no backend can be used", got=overview(), wanted="one that works", where=here(),
                              todo="fix one of them")


def _skip(name: str, error: CorejaxError) -> None:
    """Report once that a backend is installed but can't be the default."""
    groups.report((name, GROUP), f"{error.message}: {error.got}. It is skipped. COREJAX_BACKEND names the one to "
                                   f"use; {overview()}")


def overview() -> str:
    """Every backend, and whether it can be used here, in one line."""
    return "; ".join(f"{name} ({state})" for name, state in states())


def states() -> Iterator[tuple[str, str]]:
    """Every backend, and whether it can be used here."""
    for name in known():
        try:
            reason = offer(name).why_not()
            yield name, "can be used" if reason is None else reason
        except CorejaxError as error:
            yield name, f"faulty: {error.message}"
