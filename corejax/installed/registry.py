"""Loading what packs provide, by group and name, on first use.

This module doesn't know what the groups mean, except which of them contain functions. A pack that can't be imported is
remembered as broken: each use of its names raises a `PackError` with the original cause, and all other packs work.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from time import sleep
from traceback import walk_tb
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from corejax.base.caches import generation, new_generation
from corejax.base.config import Setting, declare, is_own
from corejax.base.effects import Effect
from corejax.base.elements import ElementType, is_kind
from corejax.base.errors import (
    CorejaxError,
    CorejaxKeyError,
    CorejaxNotImplementedError,
    PackError,
    kind_of,
    suggestion,
)
from corejax.base.late import late
from corejax.base.source import add_library_package, here, package_of
from corejax.installed import reloads
from corejax.installed.groups import (
    DTYPES,
    EFFECTS,
    FUNCTIONS,
    NAMESPACES,
    PRIMITIVES,
    ROLES,
    SETTINGS,
    TABLES,
    noun,
    report,
)
from corejax.installed.isolation import Modules, Watch

if TYPE_CHECKING:
    from corejax.installed import manifest
    from corejax.installed.distributions import Entry, Failure, Pack
    from corejax.installed.manifest import Manifest
else:
    manifest = late("corejax.installed.manifest")  # it needs a library that is slow to import


_objects: dict[tuple[str, str], Any] = {}
_of_entries: dict[Entry, Any] = {}
_MISSING = object()
_to_forget: list[Callable[[str | None], None]] = []


_thread = threading.local()

#: Called with the name of a pack that begins to be imported, and with that of the one outside, or None, after it.
_told_of_imports: list[Callable[[str | None], None]] = []


# Loading

def importing(module: str = "") -> Pack | None:
    """The pack that this thread is importing now; or the one whose this module is, if that is being imported."""
    found: Pack | None = getattr(_thread, "importing", None)
    if found is None and _is_importing(sys.modules.get(module)):
        found = installed().scopes.pack_of(module)
    return found


@reloads.when_reloaded
def forget() -> None:
    """Choose anew at the next use of each name: the user prefers something else now, or a module was reloaded."""
    new_generation()
    _objects.clear()
    _of_entries.clear()
    for pack in installed().all().values():
        if pack.failure is not None and isinstance(pack.failure.cause, CorejaxError):  # perhaps it works now
            pack.failure = None
    for drop in _to_forget:
        drop(None)


def forget_function(name: str) -> None:
    """Look a primitive and its function up anew at their next use: their module was reloaded."""
    new_generation()
    for group in (PRIMITIVES, FUNCTIONS):
        _objects.pop((group, name), None)
        for entry in installed().providers(group, name):
            _of_entries.pop(entry, None)
    for drop in _to_forget:
        drop(name)


def tell_of_imports(tell: Callable[[str | None], None]) -> None:
    """Call this with the name of each pack that begins to be imported; and after it with the one outside, or None."""
    _told_of_imports.append(tell)


def also_forget(drop: Callable[[str | None], None]) -> None:
    """Call this when what was loaded under a name, or under any if that is None, is to be dropped."""
    _to_forget.append(drop)


def keep(found: Any, names: dict[Any, Any], name: Any, since: int) -> Any:
    """Let a name stand for what was found, unless all was forgotten since that generation."""
    found = names.setdefault(name, found)  # another thread may have been faster
    if since != generation():
        names.pop(name, None)
    return found


def installed() -> Manifest:
    """The manifest: what is installed and not excluded."""
    return manifest.read()


def load(group: str, name: str) -> Any:
    """The object that an installed pack provides under this name."""
    found = _objects.get((group, name), _MISSING)
    if found is not _MISSING:
        return found
    since = generation()
    if group == ROLES and name in TABLES:
        return keep(_joined(name), _objects, (group, name), since)
    entry = installed().choose(group, name)
    if entry is None:
        raise unknown(group, name)
    return keep(load_once(entry), _objects, (group, name), since)


def names_in(group: str) -> list[str]:
    """The names that installed packs bring in a group, which may be one of a pack's own: `corejax.mypack.colours`."""
    return sorted(installed().names(group))


def load_once(entry: Entry) -> Any:
    """The entry's object, as it was when it was first asked for."""
    found, since = _of_entries.get(entry, _MISSING), generation()
    return found if found is not _MISSING else keep(load_entry(entry), _of_entries, entry, since)


def load_dtype(name: str) -> object:
    """The element type of this name, which declares its dtype; None if no pack brings it."""
    found = installed()
    if found.providers(DTYPES, name) or found.hidden_provider((DTYPES,), name) is not None:
        return load(DTYPES, name)
    return None


def load_setting(name: str) -> object:
    """The setting of this name, which becomes an attribute of `config`."""
    return load(SETTINGS, name)


def load_entry(entry: Entry) -> Any:
    """Import the entry's module and return its object."""
    if (failure := entry.pack.failure) is not None:
        raise _broken_error(entry, failure)
    module = sys.modules.get(entry.module)
    if module is None or _is_importing(module):
        module = _import(entry)
    value: Any = module
    for attr in filter(None, entry.attr.split(".")):
        value = _attribute(entry, value, attr)
    if entry.group == NAMESPACES:
        if not isinstance(value, ModuleType):
            raise entry_error(entry, "does not lead to a module", f"{kind_of(value)}, by `{entry}`", "a module's name")
    elif isinstance(value, ModuleType):
        raise entry_error(entry, "leads to a module", f"the module {value.__name__}", "an object in a module")
    if entry.group == ROLES and entry.name in TABLES:
        if not isinstance(value, Mapping) or not all([callable(f) for pair in value.items() for f in pair]):
            raise entry_error(entry, "is not a table of functions", f"{kind_of(value)}, by `{entry}`",
                              "a mapping of NumPy's functions to functions of the same arguments")
    elif entry.group == DTYPES:
        found = value.name if isinstance(value, ElementType) else value.__name__ if is_kind(value) else None
        if found != entry.name:
            raise entry_error(entry, "is not an element type of that name", f"{value!r:.80}, by `{entry}`",
                              f"ElementType({entry.name!r}, ...), or a class {entry.name} of elements")
    elif entry.group == EFFECTS:
        if not isinstance(value, Effect) or value.name != entry.name:
            raise entry_error(entry, "is not an effect of that name", f"{value!r:.80}, by `{entry}`",
                              f"Effect({entry.name!r}, ...)")
    elif entry.group == SETTINGS:
        if not isinstance(value, Setting) or value.name != entry.name:
            raise entry_error(entry, "is not a setting of that name", f"{value!r:.80}, by `{entry}`",
                              f"Setting({entry.name!r}, ...)")
        if is_own(value.name):
            raise entry_error(entry, "is one of corejax's own", str(entry), "a name of its own")
        declare(value)
    elif entry.group in (FUNCTIONS, ROLES) and not callable(value):
        raise entry_error(entry, "is not a function", f"{kind_of(value)}, by `{entry}`", "something that can be called")
    reloads.watch(entry.module)
    add_library_package(entry.module.partition(".")[0], entry.pack)
    return value


def _joined(name: str) -> dict[Any, Any]:
    """The tables of all packs for a role, joined; broken packs are left out. A clash is an error when it is used."""
    offers: dict[Any, list[Entry]] = {}
    functions: dict[Any, Any] = {}
    for entry in installed().providers(ROLES, name):
        try:
            table = load_entry(entry)
        except PackError as error:
            report((entry.pack.name, name), f"{error.message}: {error.got}")
            continue
        for key, function in table.items():
            offers.setdefault(key, []).append(entry)
            functions[key, entry] = function
    return {key: functions[key, entries[0]] if len(entries) == 1 else _chosen(name, key, entries, functions)
            for key, entries in offers.items()}


def _chosen(name: str, key: Any, entries: list[Entry], functions: dict[Any, Any]) -> Any:
    """The function for a key that several packs provide: that of the pack that the user prefers."""
    def choose() -> Any:
        entry = installed().one_of(ROLES, f"{name} of {key.__name__}", entries)
        return functions[key, entry]

    def clash(*_: Any, **__: Any) -> Any:
        return choose()  # which raises

    try:
        return choose()
    except PackError:
        return clash


def _is_importing(module: object) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def is_under_way(entry: Entry) -> bool:
    """Whether this thread is importing an entry's module, which doesn't have its object yet."""
    module = sys.modules.get(entry.module)
    frame: FrameType | None = sys._getframe(1)
    if not _is_importing(module) or not entry.attr or entry.attr.partition(".")[0] in vars(module):
        return False
    while frame is not None and frame.f_globals is not vars(module):
        frame = frame.f_back
    return frame is not None


def _import(entry: Entry) -> Any:
    package, before, watch = entry.module.partition(".")[0], Modules(), Watch(entry.pack, entry.module)
    outer, _thread.importing = getattr(_thread, "importing", None), entry.pack
    for tell in _told_of_imports:
        tell(entry.pack.name)
    try:
        # Without our own lock: a module that is being imported by another thread may be waiting for us. If two wait for
        # each other, Python's `import` continues with one half done, while `import_module` raises.
        with watch:
            _import_patiently(entry.module)
            module = sys.modules[entry.module]
    except BaseException as error:
        before.forget(package)
        before.restore(package)
        if not isinstance(error, (Exception, SystemExit)):
            raise
        what = "exits the process when it is imported" if isinstance(error, SystemExit) else "can't be imported"
        failed = _break(entry, what, error)
        raise failed from failed.__cause__  # perhaps found by another thread first
    finally:
        _thread.importing = outer
        for tell in _told_of_imports:
            tell(outer.name if outer else None)
    if (failure := entry.pack.failure) is not None:  # found by another thread, meanwhile
        before.forget(package)
        raise _broken_error(entry, failure)
    changed = before.restore(package)
    if changed:
        report(entry.pack.name, f"the pack {entry.pack} removes or replaces modules of others in sys.modules "
                                f"when it is imported. They were restored: {', '.join(changed)}")
    return module


def _import_patiently(module: str) -> None:
    """Import a module, once more if a thread with half of the package waits for this one, which has the other half.

    Python makes one of the two fail, by an error that it doesn't show, so that the other one can go on.
    """
    for seconds in (0.0, 0.01, 0.1, 1.0):
        try:
            __import__(module)
            return
        except RuntimeError as error:
            if type(error).__name__ != "_DeadlockError":
                raise
        sleep(seconds)
    __import__(module)


def _attribute(entry: Entry, value: Any, attr: str) -> Any:
    computed = isinstance(value, ModuleType) and "__getattr__" in vars(value)
    before = Modules() if computed else None  # looking it up may import modules
    try:
        return getattr(value, attr)
    except AttributeError as error:
        cause = error if computed else None
        if isinstance(value, ModuleType) and _is_importing(value):
            raise PackError(
                f"{entry.pack}: the {noun(entry.group)} {entry.name!r} is used while its module is being imported",
                pack=str(entry.pack), got=f"the module {value.__name__}, which has no {attr!r} yet", where=here(),
                wanted="a use after the import",
                todo="use it within a function, not while modules are imported; if two packs need each other like "
                     "this, they must become one") from cause
        raise entry_error(entry, "leads nowhere", str(entry),
                          f"an object {entry.attr!r} in the module {entry.module}") from cause
    except (Exception, SystemExit) as error:
        if before is not None:
            before.forget(entry.module.partition(".")[0])
        failed = _break(entry, f"raises when its {attr!r} is looked up", error)
        raise failed from failed.__cause__


# Errors and reports

def _break(entry: Entry, problem: str, cause: BaseException) -> PackError:
    """Remember a pack as broken, for the first reason found."""
    place, package = None, entry.module.partition(".")[0]
    for frame, line in walk_tb(cause.__traceback__):
        if package_of(frame) == package:
            place = f"{frame.f_code.co_filename}:{line} ({frame.f_code.co_qualname})"
    return _broken_error(entry, entry.pack.fail(problem, words(cause) + (f", at {place}" if place else ""), cause))


def _broken_error(entry: Entry, failure: Failure) -> PackError:
    todo = f"fix or uninstall {entry.pack.name}; COREJAX_DISABLE_PACKS={entry.pack.name} leaves it out"
    advice = failure.cause.todo if isinstance(failure.cause, CorejaxError) else None
    error = PackError(
        f"the pack {entry.pack} {failure.problem}, so its {noun(entry.group)} {entry.name!r} can't be used",
        pack=str(entry.pack), got=failure.words, wanted=f"what `{entry}` leads to", where=here(),
        todo=f"{advice}; otherwise {todo}" if advice else todo)
    error.__cause__ = failure.cause
    return error


def words(error: BaseException) -> str:
    """An exception on one line: its type and text."""
    try:
        text = error.message if isinstance(error, CorejaxError) else str(error)
    except Exception:  # an exception must be reported even if its text can't be made
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def entry_error(entry: Entry, problem: str, got: str, wanted: str) -> PackError:
    """The error for an entry point that doesn't lead to what its group requires; the rest of its pack works."""
    return PackError(
        f"{entry.pack}: the {noun(entry.group)} {entry.name!r} {problem}", pack=str(entry.pack), got=got,
        wanted=wanted, where=here(), todo="correct the pack's entry points, or reinstall it if they are stale")


def broken() -> dict[str, str]:
    """The packs that failed in this process, and those left out for broken metadata, with reasons."""
    found = {name: f"its metadata is broken: {why}" for name, why in installed().broken.items()}
    return found | {pack.name: str(pack.failure) for pack in installed().all().values() if pack.failure is not None}


def unknown(group: str, name: str) -> CorejaxError:
    """The error for a name that no pack in use provides."""
    near = suggestion(name, installed().names(group))
    hint = install_hint(name, (group,))
    if group == ROLES:
        return CorejaxNotImplementedError(f"no installed pack fills the role {name!r}", got=packs_in_use(),
                                          wanted="a pack in use that fills this role", where=here(),
                                          todo=f"{near} {hint}" if near else hint)
    kind = noun(group)
    return CorejaxKeyError(f"no installed pack provides the {kind} {name!r}", got=packs_in_use(), where=here(),
                           wanted=f"the name of {'an' if kind[0] in 'aeiou' else 'a'} {kind} of one of these",
                           todo=near or hint)


def install_hint(name: str, groups: Iterable[str]) -> str:
    """A hint on which pack might provide a name."""
    found = installed()
    pack = found.hidden_provider(groups, name)
    if pack is not None:
        return f"{pack} provides it, and COREJAX_PACKS or COREJAX_DISABLE_PACKS excludes that pack"
    known = brought_by(name) if NAMESPACES in groups else None
    if known is not None:
        return known
    if not found.packs:
        return "no pack is in use: pip install 'corejax[std]' brings the standard ones"
    missing = [pack for pack in manifest.standard() if pack not in found.packs.keys() | found.hidden]
    if missing:
        return f"pip install 'corejax[std]' brings {', '.join(missing)}; or install the pack that provides it"
    return "install the pack that provides it, if there is one"


def brought_by(namespace: str) -> str | None:
    """How to install the distribution that is known to bring a namespace; None if that is unknown, or is installed."""
    pack, found = manifest.bringing(namespace), installed()
    if pack is None or pack in found.packs or pack in found.hidden or pack in found.broken:
        return None
    return f"{pack} brings it: pip install 'corejax[{namespace}]'"


def packs_in_use() -> str:
    """The packs that are installed and not excluded, for an error."""
    left_out = broken()
    packs = sorted(installed().packs.keys() - left_out.keys())
    return f"packs in use: {', '.join(packs) or 'none'}" + \
        "".join([f"; broken: {name} ({why})" for name, why in left_out.items()])
