"""Primitives from plugin objects: `define`, `find`, and what the kernel asks about them.

>>> from corejax.plugin import define, hookimpl
>>> class Scale:
...     name = "scale"
...     @hookimpl
...     def impl(self, args, *, by):
...         return args[0] * by
...     @hookimpl
...     def abstract_eval(self, avals, *, by):
...         return avals[0]
>>> scale = define(Scale())
>>> sorted(scale.primitive.params)
['by']
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

from corejax.base.errors import (
    CorejaxAttributeError,
    CorejaxError,
    CorejaxTypeError,
    PackError,
    PluginError,
    kind_of,
)
from corejax.base.late import late
from corejax.base.source import add_library_package, here
from corejax.base.tracebacks import public, trim
from corejax.installed import groups, registry
from corejax.installed.distributions import Entry
from corejax.installed.requirements import canonical
from corejax.installed.scopes import module_of, variables_of
from corejax.kernel.primitive import Function, Primitive, Unfrozen
from corejax.packs.foreign import substituted
from corejax.packs.freeze import freeze as freeze
from corejax.packs.public_functions import public_function as public_function

if TYPE_CHECKING:
    from corejax.kernel.transformations import Answer, Transformation
    from corejax.packs import answering
else:
    answering = late("corejax.packs.answering")  # few programs need it

_lock = threading.RLock()  # reentrant: a signal handler or a plugin's property may get back here

#: The primitive of each plugin object, by id. A primitive holds its plugin, so the id can't be reused.
_of_plugin: weakref.WeakValueDictionary[int, Primitive] = weakref.WeakValueDictionary()

#: The primitive that was defined last under each name by the code of each module, which goes by its globals.
_last: weakref.WeakValueDictionary[tuple[int, str], Primitive] = weakref.WeakValueDictionary()


# What the kernel asks about a primitive's plugin, along with `freeze` and `public_function`

def place(primitive: Primitive) -> tuple[str | None, str]:
    """The pack of a primitive made by `define`: the one with an entry point that leads to its module."""
    module, pack = primitive.module or "", None
    package = module.partition(".")[0]
    packs = [entry.pack for entry in registry.installed().providers(groups.PRIMITIVES, primitive.name)
             if entry.module.partition(".")[0] == package]
    if packs:
        owner = registry.installed().scopes.pack_of(module) if len(packs) > 1 else None
        pack = owner if owner in packs else packs[0]
        add_library_package(package, pack)
    return (pack.name, str(pack)) if pack is not None else (None, f"defined in {module}")


def answer(primitive: Primitive, transformation: Transformation) -> Answer:
    """What a transformation of a pack has for a primitive."""
    return answering.answer(primitive, transformation)


def pickled(primitive: Primitive) -> tuple[object, ...]:
    """Pickle a pack's primitive by its pack and name, any other by its place."""
    if primitive.pack is not None:
        return _of_pack_or_fork, (primitive.pack, primitive.name)
    return _primitive_at, (primitive.module, _place_of(primitive))


def define(plugin: object, *, name: str | None = None, module: str | None = None) -> Function:
    """Make a primitive from a plugin object, and return its public function; `.primitive` is the primitive.

    Nothing is validated before its first use. `name` and `module` say where the function will be found, which pickling
    needs: by default it has the primitive's name, in the module that calls `define`.
    """
    caller = sys._getframe(1).f_globals
    try:
        primitive = _primitive_of(plugin, module or caller.get("__name__", "__main__"))
    except PluginError as error:
        trim(error)
        raise
    if _last.setdefault((id(caller), primitive.name), primitive) is not primitive:  # the module is being reloaded
        _last[id(caller), primitive.name] = primitive
        registry.forget_function(primitive.name)
    function: Function = primitive.function
    if name is not None:
        function.__name__ = function.__qualname__ = name
    return function


@public
def find(name: str) -> Primitive:
    """The primitive that an installed pack provides under this name.

    `distribution/name` is the one of that distribution, whatever the user prefers, and `module/name` is the one that a
    module defined last: printed programs name them like this where two have the same name.
    """
    owner, _, bare = name.rpartition("/")
    if owner:
        return _defined_in(owner, bare) or _of_pack(owner, bare)
    installed = registry.installed()
    entries = installed.providers(groups.PRIMITIVES, name)
    user = installed.scopes.pack_of(module_of(variables_of(sys._getframe(1)))) if len(entries) > 1 else None
    try:
        entry = installed.one_of(groups.PRIMITIVES, name, entries, user)
    except PackError as error:
        error.todo = f"{error.todo}; or name its owner: {entries[0].pack.name}/{name}"
        raise
    if entry is None:
        raise registry.unknown(groups.PRIMITIVES, name)
    return of_entry(entry)


def of_entry(entry: Entry) -> Primitive:
    """The primitive that an entry point leads to, as a handle or as a plugin."""
    found = registry.load_once(entry)
    if not isinstance(found, Primitive):
        primitive = getattr(found, "primitive", None)
        found = primitive if isinstance(primitive, Primitive) else _primitive_of(found, None, entry)
    if found.name != entry.name:
        raise PluginError(f"the entry point {entry.name!r} leads to the primitive {found.name!r}", primitive=entry.name,
                          pack=found.origin, got=f"{found.name!r} of {entry.pack}, by `{entry}`",
                          wanted=repr(entry.name), where=here(), todo="give both the same name")
    return found


def _defined_in(module: str, name: str) -> Primitive | None:
    """The primitive that a module defined under this name, if it is of no pack."""
    found = _last.get((id(vars(sys.modules[module])), name)) if module in sys.modules else None
    return found if found is not None and found.pack is None else None


def _of_pack(pack: str, name: str) -> Primitive:
    """The primitive of this pack, whatever the user prefers."""
    for entry in registry.installed().providers(groups.PRIMITIVES, name):
        if entry.pack.name == canonical(pack):
            return of_entry(entry)
    raise PackError(f"the primitive {name!r} of {pack} isn't installed", primitive=name, pack=pack, where=here(),
                    got=registry.packs_in_use(), wanted=pack,
                    todo=f"install {pack}, or import the module that defines it")


def _of_pack_or_fork(pack: str, name: str) -> Primitive:
    """For unpickling: the primitive of this pack, or where it isn't installed, the one that substitutes it."""
    installed = registry.installed()
    entries = installed.providers(groups.PRIMITIVES, name)
    if not any([entry.pack.name == pack for entry in entries]):
        forks = [entry for entry in entries if _substitutes(entry, pack)]
        fork = installed.one_of(groups.PRIMITIVES, name, forks)
        if fork is not None:
            return of_entry(fork)
    return _of_pack(pack, name)


def _substitutes(entry: Entry, pack: str) -> bool:
    try:
        return substituted(of_entry(entry))[0] == pack
    except CorejaxError:  # nobody can tell what a broken pack would be
        return False


def _primitive_of(plugin: Any, module: str | None, entry: Entry | None = None) -> Primitive:
    """The unique primitive of a plugin object; `entry` is the entry point that led to it, if any."""
    name = getattr(plugin, "name", None)
    if isinstance(plugin, type) or not isinstance(name, str) or not name.isidentifier():
        is_class = isinstance(plugin, type)
        got = f"the class {plugin.__name__}" if is_class else f"an object of {type(plugin).__name__}, named {name!r}"
        raise PluginError("a plugin must be an object whose name is an identifier", where=here(),
                          primitive=entry.name if entry else None,
                          got=f"{got}, of {entry.pack}, by `{entry}`" if entry else got,
                          wanted='an instance of a class with `name = "..."`',
                          todo="make an instance: define(MyPrimitive())" if is_class else "give it a name")
    with _lock:
        found = _of_plugin.get(id(plugin))
        if found is None:
            found = Unfrozen(plugin, module or type(plugin).__module__)
            attached = getattr(plugin, "attached", None)
            if callable(attached):
                attached(found)
            _of_plugin[id(plugin)] = found
        return found


def _place_of(primitive: Primitive) -> str:
    """The name in its module under which a primitive can be imported: that of its function, or else of a variable."""
    function, module = primitive.function, primitive.module or "__main__"
    try:
        found = _primitive_at(module, function.__qualname__)
    except (ImportError, CorejaxError):
        found = None
    if found is primitive:
        return function.__qualname__
    for value in (function, primitive.plugin, primitive):
        for name, other in list(vars(sys.modules.get(module, sys)).items()):
            if other is value:
                return name
    raise CorejaxTypeError(
        f"{primitive.name} ({primitive.origin}) can't be pickled: it has no place from which it can be imported",
        primitive=primitive.name, where=here(), wanted=f"a variable of {module} that holds it, or its function",
        got="nothing there" if found is None else f"there is another primitive, {found!r} ({found.origin})",
        todo="define it at the top of a module; or say where it is: define(..., name='Class.attribute', module='...')")


def _primitive_at(module: str, qualname: str) -> Primitive:
    """For unpickling: the primitive at this place, where its function is, or its plugin."""
    value: Any = sys.modules.get(module) or __import__(module, fromlist=["_"])
    for attr in qualname.split("."):
        value = getattr(value, attr, None)
    found = value if isinstance(value, Primitive) else getattr(value, "primitive", None) or _of_plugin.get(id(value))
    if not isinstance(found, Primitive):
        raise CorejaxAttributeError(f"there is no primitive at {module}.{qualname}", got=kind_of(value), where=here(),
                                    wanted="the primitive that was pickled, or its function",
                                    todo="unpickle it with the version of that module with which it was pickled")
    return found
