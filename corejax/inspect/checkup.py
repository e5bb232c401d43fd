"""Loads everything that the installed packs provide, to report what is broken before somebody uses it."""

from __future__ import annotations

import pkgutil
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.storage import Stored
from corejax.base import _jaxlib, dtypes
from corejax.base.elements import is_kind
from corejax.base.errors import CorejaxError, CorejaxImportError, suggestion
from corejax.inspect import commands, hooks, needs, rows
from corejax.inspect.answers import Problem
from corejax.installed import groups, manifest, namespaces, registry
from corejax.installed.isolation import Modules
from corejax.installed.targets import EVERY
from corejax.packs import answering, foreign, slots
from corejax.packs.define import find
from corejax.packs.resolution import Resolution
from corejax.xla.runtime import backends, kernels

if TYPE_CHECKING:
    from corejax.installed.distributions import Entry
    from corejax.installed.manifest import Manifest


#: Steps, beside those of packs, which have their names.
_BEFORE, _RULES_FOR, _CHECK = "what is installed", "rules for", "the check"


def checkup(begin: Callable[[str], object] = str, without: Collection[str] = ()) -> Iterator[Problem]:
    """Everything that is wrong with packs in use, in order; a broken pack counts once.

    `begin` is called with the name of each step, a pack's for what comes of its own code; those in `without` are left
    out.
    """
    def begins(step: str) -> bool:
        if step not in without:
            begin(step)
        return step not in without

    installed = manifest.read()
    if begins(_BEFORE):
        yield from _before(installed)
    for pack in installed.all().values():
        if begins(pack.name):
            threads = set(threading.enumerate())
            yield from dict.fromkeys([problem for entry in pack.entries for problem in _problems(installed, entry)])
            yield from _of_threads(pack.name, threads)
    yield from [Problem(whose.partition(" ")[0], f"its rule for {target} does nothing: {why}")
                for target, whose, why in (foreign.orphans() if begins(f"{_RULES_FOR} nobody") else ())]
    for owner in installed.rule_owners():
        if begins(f"{_RULES_FOR} {owner}"):
            yield from _of_rules(installed, owner)
    for name in installed.names(groups.CHECKS):
        if begins(f"{_CHECK} {name}"):
            yield from _of_check(installed, name)


def _before(installed: Manifest) -> Iterator[Problem]:
    """What is wrong without looking at a pack's code."""
    try:
        assert _jaxlib.ir is not None
    except CorejaxImportError as error:
        yield Problem("jaxlib", error.message, error.todo or "")
    for name, why in installed.broken.items():
        yield Problem(name, f"left out: its metadata is broken: {why}")
    yield from [Problem(*fault) for fault in (*installed.several_versions(), *installed.misspelled_rules())]
    for name, pack in installed.all().items():
        yield from needs.unmet(name, pack.distribution)


def _of_threads(name: str, before: Collection[threading.Thread]) -> Iterator[Problem]:
    for thread in threading.enumerate():
        if thread not in before and not thread.daemon and thread.is_alive():
            yield Problem(name, f"its import starts a thread that keeps the process from ending: {thread.name}",
                          "make it a daemon, or start it at the first use")


def _of_check(installed: Manifest, name: str) -> Iterator[Problem]:
    """What a check finds that a pack brings, or why it finds nothing."""
    try:
        entry = installed.choose(groups.CHECKS, name)
        assert entry is not None
        found = list(registry.load(groups.CHECKS, name)())
    except (Exception, SystemExit) as error:  # the other checks go on
        packs = {entry.pack.name for entry in installed.providers(groups.CHECKS, name)}
        if not packs & registry.broken().keys():  # which is told already
            yield Problem(min(packs), f"its check {name!r} fails: {registry.words(error)}",
                          getattr(error, "todo", None) or "")
        return
    for each in found:
        yield each if isinstance(each, Problem) else Problem(
            entry.pack.name, f"its check {name!r} yields what isn't a Problem: {each!r}", "correct the check")


def _problems(installed: Manifest, entry: Entry) -> Iterator[Problem]:
    """What is wrong with an entry, or with its whole pack if that is broken."""
    if entry.group in (groups.FUNCTIONS, groups.NAMESPACES):
        what = f"the {groups.noun(entry.group)} {entry.name!r}"
        where, last = groups.place(entry.group, entry.name)
        if not last.isidentifier() or iskeyword(last):
            yield Problem(entry.pack.name, f"{what} can't be imported by this name",
                          "choose a name without dots, or one below lax or experimental: lax.NAME" if "." in last else
                          "choose a name that can be written in Python, and is not a keyword")
            return
        if where == "cj" and (namespaces.is_reserved(last) or last.startswith("_")):
            yield Problem(entry.pack.name, f"{what} is a name of corejax's own", "choose another name")
            return
    try:
        if entry.group == groups.RULES or (entry.group == groups.ROLES and entry.name in groups.TABLES):
            registry.load_entry(entry)
        elif entry.group == groups.KERNELS:
            kernels.check(entry)
        elif installed.choose(entry.group, entry.name) is entry:
            registry.load(entry.group, entry.name)
            yield from _MORE.get(entry.group, _nothing_more)(entry)
    except (Exception, SystemExit) as error:  # whatever went wrong, the other entries are checked too
        yield _of_error(entry.pack.name, error)


# What there is to check of what was loaded, by group

def _nothing_more(entry: Entry) -> Iterator[Problem]:
    return iter(())


def _of_primitive(entry: Entry) -> Iterator[Problem]:
    """Validate the plugin; of a row of a family, also what it says about NumPy, StableHLO and the derivative."""
    primitive = find(entry.name)
    assert primitive.params is not None  # reading it validates the plugin
    for name in primitive.element_types:
        if name != "*" and not dtypes.is_declared(name):
            known = registry.installed().names(groups.DTYPES)
            yield Problem(entry.pack.name, f"the primitive {entry.name!r} is for elements of type {name!r}, which no "
                                           "pack in use provides", suggestion(name, known) or "")
    for fault in rows.faults(primitive):
        yield Problem(entry.pack.name, f"the primitive {entry.name!r}, a row at {hooks.home(primitive)}, "
                                       f"{fault.problem}", fault.todo)


def _of_backend(entry: Entry) -> Iterator[Problem]:
    """Look at the backend's parts, and ask whether it can be used; that it can't is no problem."""
    backends.offer(entry.name).why_not()
    return iter(())


def _of_namespace(entry: Entry) -> Iterator[Problem]:
    """Import the module and what is below it by the names that users have for them."""
    where, last = groups.place(groups.NAMESPACES, entry.name)
    installed = registry.installed()
    function = installed.choose_function(last) if where == "lax" else \
        installed.choose(groups.FUNCTIONS, f"{where}/{last}")
    if function is not None:
        yield Problem(entry.pack.name, f"the namespace {entry.name!r} has the name of a function of {function.pack}, "
                                       f"{where}.{last}, so one of them is hidden",
                      "choose another name")
        return
    module = namespaces.load(entry.name)
    for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not found.name.startswith("_"):
            yield from _of_submodule(entry, f"{entry.name}.{found.name}", f"{module.__name__}.{found.name}")


def _of_submodule(entry: Entry, name: str, real: str) -> Iterator[Problem]:
    package, before = real.partition(".")[0], Modules()
    try:
        namespaces.load(name)
    except (Exception, SystemExit) as error:
        before.forget(package)
        if not isinstance(error, ModuleNotFoundError) or (error.name or "").partition(".")[0] == package:
            yield Problem(entry.pack.name, f"corejax.{name}, the module {real}, can't be imported: "
                                           f"{registry.words(error)}", "correct the module")
    finally:
        before.restore(package)


def _of_role(entry: Entry) -> Iterator[Problem]:
    """Look whether arrays have an attribute of their own in place of a method."""
    name = entry.name.removeprefix("operators.")
    if name != entry.name and any([name in vars(kind) for kind in (Array, Stored)]):
        yield Problem(entry.pack.name, f"the role {entry.name!r} is hidden by an attribute that arrays have, x.{name}",
                      "choose another name")


def _of_dtype(entry: Entry) -> Iterator[Problem]:
    """Show an element, and look for what the type says of primitives."""
    element = registry.load(entry.group, entry.name)
    if is_kind(element):
        return
    try:
        if element.show is not None:
            element.show(np.zeros(element.trailing, element.physical))
    except Exception as error:
        yield Problem(entry.pack.name, f"elements of type {entry.name!r} can't be shown: {registry.words(error)}",
                      "correct the function show: it gets what is stored of one element, which may be zeros")
    known = registry.installed().names(groups.PRIMITIVES)
    for name in element.refuses:
        if name not in known:
            yield Problem(entry.pack.name, f"the element type {entry.name!r} refuses {name!r}, which no pack in use "
                          "provides", suggestion(name, known) or "")


def _of_setting(entry: Entry) -> Iterator[Problem]:
    """Look whether its name can be written, and whether its default is one of its values."""
    setting = registry.load(entry.group, entry.name)
    if not (entry.name.isidentifier() and entry.name.islower()):
        yield Problem(entry.pack.name, f"the setting {entry.name!r} can't be written as config.NAME",
                      "choose an identifier in lower case")
    try:
        setting.check(setting.default)
    except CorejaxError as error:
        yield Problem(entry.pack.name, f"the default of the setting {entry.name!r} is none of its values: {error.got}",
                      f"choose {error.wanted}")


def _of_command(entry: Entry) -> Iterator[Problem]:
    """Look whether it is one: whether it can be called, and has a name of its own."""
    if entry.name in commands.OWN:
        yield Problem(entry.pack.name, f"the command {entry.name!r} is one of corejax's own", "choose another name")
    elif not callable(registry.load(entry.group, entry.name)):
        yield Problem(entry.pack.name, f"the command {entry.name!r} is not a function",
                      "let the entry lead to a function of the arguments, that yields the lines to print")


def _of_transformation(entry: Entry) -> Iterator[Problem]:
    """Look whether it is one, and whether the kernel has a hook of its name."""
    answering.of_entry(entry)
    yield from ()


_MORE: dict[str, Callable[[Entry], Iterator[Problem]]] = {
    groups.PRIMITIVES: _of_primitive, groups.NAMESPACES: _of_namespace, groups.DTYPES: _of_dtype,
    groups.SETTINGS: _of_setting,
    groups.ROLES: _of_role, groups.COMMANDS: _of_command, groups.TRANSFORMS: _of_transformation,
    backends.GROUP: _of_backend}


def _of_error(pack: str, error: BaseException) -> Problem:
    broken = registry.broken().get(pack)
    if broken:
        return Problem(pack, broken)
    return Problem(pack, getattr(error, "message", None) or registry.words(error), getattr(error, "todo", None) or "")


def _of_rules(installed: Manifest, owner: str) -> Iterator[Problem]:
    """What is wrong with rules for a distribution's primitives, as it would be found when those are used."""
    pack = installed.packs.get(owner)
    provided = [entry.name for entry in pack.entries if entry.group == groups.PRIMITIVES] if pack else []
    concerned = {target.primitive for target, _ in installed.rules(owner)}
    chosen = provided if EVERY in concerned else [name for name in provided if name in concerned]
    yield from dict.fromkeys([problem for name in chosen for problem in _of_rules_for(name)])
    yield from _of_tables(installed, owner, provided)


def _of_rules_for(name: str) -> Iterator[Problem]:
    try:
        primitive = find(name)
        resolution = Resolution(primitive, everything=True)
        slots.draft(primitive, resolution)
    except (Exception, SystemExit):  # what is wrong with the primitive itself is found elsewhere
        return
    for transformation in answering.all_installed():
        try:
            resolution.left_out += answering.resolved(primitive, transformation)[0].left_out
        except CorejaxError as problem:
            yield _of_error(primitive.pack or "", problem)
    for whose, error in resolution.left_out:
        if whose.partition(" ")[0] not in registry.broken():  # which is told once
            yield _of_error(whose.partition(" ")[0], error)
    for offers in resolution.offers.values():
        for offer in offers:
            if hasattr(offer.rule, "error"):
                error = offer.rule.error()
                yield Problem(offer.source.pack or "", error.message, error.todo or "")


def _of_tables(installed: Manifest, owner: str, provided: Sequence[str]) -> Iterator[Problem]:
    """Rules in tables for primitives that their distribution doesn't have."""
    for target, entry in installed.rules(owner) if provided else ():
        if target.primitive != EVERY or entry.pack.name in registry.broken():
            continue
        try:
            table = registry.load_entry(entry)
        except (Exception, SystemExit):  # told already
            continue
        for name in table if isinstance(table, Mapping) else ():
            if name not in provided:
                yield Problem(entry.pack.name, f"its table for {entry.name} has a rule for {name!r}, which {owner} "
                              "doesn't provide", suggestion(str(name), provided) or "")
