"""Freezing: a primitive gets its rules at its first use, and the user is told what was left out of them.

`extend` adds rules before that. `choose_anew` has every primitive frozen anew, `without` one without some rules.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from corejax.base import caches
from corejax.base.errors import CorejaxError, CorejaxRuntimeError, PackError
from corejax.base.source import here
from corejax.installed import groups, manifest, registry, reloads
from corejax.installed.distributions import Pack
from corejax.kernel.primitive import Primitive, thaw
from corejax.packs import foreign
from corejax.packs.foreign import Foreign, orphans
from corejax.packs.ranking import Offer, conflict, general
from corejax.packs.resolution import Extension, Resolution, extensions
from corejax.packs.slots import draft

_lock = threading.Lock()

#: Primitives whose rules are fixed, or are being fixed: it is too late to `extend` them.
_fixed: weakref.WeakSet[Primitive] = weakref.WeakSet()

#: The manifest whose rules for unknown primitives have been reported to the user.
_reported: list[Any] = [None]


def freeze(primitive: Primitive) -> dict[str, Any]:
    """The final value of every slot of a primitive."""
    with _lock:
        _fixed.add(primitive)
    try:
        resolution = Resolution(primitive)
        slots = vars(draft(primitive, resolution))
    except BaseException:
        with _lock:
            _fixed.discard(primitive)
        raise
    tell(primitive, resolution)
    _tell_of_orphans()
    return slots


def choose_anew() -> None:
    """Take other rules from now on: everything is looked up, frozen, traced and compiled anew at its next use."""
    registry.forget()
    with _lock:
        used = list(_fixed)
    thaw(used)
    caches.clear_all()


@contextmanager
def without(primitive: Primitive, rules: Iterable[Foreign]) -> Iterator[None]:
    """Without some rules of other packs for a primitive, as if these weren't installed."""
    foreign.ignored[primitive] = frozenset(rules)
    try:
        choose_anew()
        yield
    finally:
        del foreign.ignored[primitive]
        choose_anew()


@reloads.when_reloaded
def _import_anew() -> None:
    """Take the rules that a module has now."""
    foreign.forget()
    choose_anew()


def extend(primitive: Primitive, plugin: object, whose: str, replace: bool, pack: Pack | None) -> None:
    """Add a plugin to a primitive whose rules aren't fixed yet. If this raises, it isn't added.

    `pack` is the one that does so while it is imported, if any.
    """
    entry = Extension(plugin, whose, replace, pack)
    with _lock:
        if primitive in _fixed:
            raise CorejaxRuntimeError(
                f"{primitive.name} ({primitive.origin}) can't be extended any more: it has been used", where=here(),
                primitive=primitive.name, pack=primitive.origin, got="a primitive whose rules are fixed",
                wanted="one that nobody has used", todo="call extend before the first use; in a notebook, restart it")
        extensions.setdefault(primitive, []).append(entry)
    try:
        resolution = Resolution(primitive)
        draft(primitive, resolution)
        for slot, of_pack, _, offer in resolution.unchosen:
            if of_pack is None and isinstance(offer, Offer) and offer.source.plugin is plugin:
                raise _needs_consent(primitive, slot, resolution, offer)
    except BaseException:
        extensions[primitive].remove(entry)
        raise


def _needs_consent(primitive: Primitive, slot: str, resolution: Resolution, offer: Offer) -> CorejaxError:
    theirs = general(slot, resolution.offers.get(slot.partition("@")[0], ()))
    if theirs and not offer.wraps:
        return conflict(primitive.name, slot, [*theirs, offer])
    return PackError(
        f"{primitive.name}.{slot} would be changed by {offer.source.origin}", primitive=primitive.name, hook=slot,
        got="a rule for what is derived from the rules of " + primitive.origin, where=here(),
        wanted="rules for what the primitive lacks, or consent", todo="pass replace=True to extend")


# What the user is told

def tell(primitive: Primitive, resolution: Resolution) -> None:
    """Tell the user which rules aren't used, and why."""
    _tell_of_unchosen(primitive, resolution)
    for whose, error in resolution.left_out:
        # a pack that is broken is reported once, however many primitives it has rules for
        key = whose if whose.partition(" ")[0] in registry.broken() else (whose, primitive.name, str(error))
        groups.report(key, f"rules of {whose} for {primitive.name} are left out. {error}")


def _tell_of_unchosen(primitive: Primitive, resolution: Resolution) -> None:
    """Once for each pack, unless the user prefers the owner."""
    preferred = resolution.preferences.of
    for slot, pack, origin, what in resolution.unchosen:
        hook, _, platform = slot.partition("@")
        unknown = isinstance(what, Foreign) and what.in_table  # it may have no rule for this primitive
        if unknown or pack is None or preferred(primitive.pack, primitive.name, hook, platform).degree:
            continue
        there_is = f"wraps {primitive.name}.{slot}, and so may change it" if isinstance(what, Offer) and what.wraps \
            else f"has a rule for {primitive.name}.{slot}, which {primitive.origin} answers itself"
        groups.report(
            ("unchosen", pack), f"{origin} {there_is}: "
            f"it isn't used, as nobody chose it. COREJAX_PREFER={pack} or cj.plugins.prefer({pack!r}) takes "
            f"the pack's rules ('{pack}/{primitive.name}:{slot}' only this one); COREJAX_PREFER={primitive.pack} takes "
            f"none, without this warning. `python -m corejax explain {primitive.name}` shows what is used")


def _tell_of_orphans() -> None:
    if _reported[0] is manifest.read():
        return
    _reported[0] = manifest.read()
    for target, pack, why in orphans():
        groups.report(f"orphans of {pack} for {target}", f"{pack} has a rule for {target}, which does nothing: {why}")
