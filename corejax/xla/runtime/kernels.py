"""Native kernels: the functions behind the custom calls of programs, from packs.

The name of an entry point in the group `corejax.kernels` is a custom-call target, `distribution.name`, which begins
with the distribution that brings it; for platforms other than the CPU it ends with `@platform`. The value is a `Kernel`
or a capsule. Nothing is imported before a program needs a target: then its function is registered with the runtime,
which keeps it for good. The runtime takes functions from anybody, so its own table is looked at first.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from corejax.base import _jaxlib
from corejax.base.errors import CorejaxTypeError, PackError, kind_of, suggestion
from corejax.base.late import late
from corejax.base.source import describe, here
from corejax.base.tracebacks import public
from corejax.installed import groups, registry

if TYPE_CHECKING:
    from corejax.installed import manifest
    from corejax.installed.distributions import Entry
    from corejax.kernel.jaxpr import JaxprEqn
    from corejax.xla.runtime.places import Group, Place
else:
    manifest = late("corejax.installed.manifest")

#: The platform of targets whose entry points name none.
DEFAULT = "cpu"

_NAME = re.compile(r"(?P<owner>[a-z0-9]+(-[a-z0-9]+)*)\.(?P<function>\w[\w.]*)(@(?P<platform>[a-z]\w*))?")

#: The first parts of names that compilers know by themselves.
_COMPILERS = frozenset(("chlo", "mhlo", "stablehlo", "xla"))

_lock = threading.Lock()


@public
class Kernel:
    """A native function for `corejax.kernels`: a symbol of a shared library, which is loaded when a program needs it.

    The function is a handler of XLA's FFI, which the macro `XLA_FFI_DEFINE_HANDLER_SYMBOL` of jaxlib's headers defines.

    >>> Kernel("libkernels.so", "Rotate")
    Kernel('libkernels.so', 'Rotate')
    """

    __slots__ = ("library", "symbol")

    def __init__(self, library: str | os.PathLike[str], symbol: str) -> None:
        if not isinstance(library, (str, os.PathLike)) or not isinstance(symbol, str) or not symbol:
            raise CorejaxTypeError("Kernel takes the path of a library and the name of a function", where=here(),
                                   got=f"{kind_of(library)} and {kind_of(symbol)}", wanted="a path and a str",
                                   todo="write Kernel(pathlib.Path(__file__).with_name('libkernels.so'), 'Rotate')")
        self.library, self.symbol = os.fspath(library), symbol

    def __repr__(self) -> str:
        return f"Kernel({self.library!r}, {self.symbol!r})"


# Registering

def register(targets: Iterable[str], place: Place | Group) -> None:
    """Register with the runtime what packs, or jaxlib, provide of these targets, for programs at a place.

    Targets that nobody provides are left to the compiler, which knows some itself; see `missing`.
    """
    platform = _jaxlib.function_platform(place.compiler, place.platform)
    own: dict[str, tuple[Any, bool]] = {}
    of_packs: dict[str, tuple[Any, str]] = {}
    for target in targets:
        entry = _entry(target, place.compiler)
        if entry is not None:
            of_packs[target] = _capsule(entry), str(entry.pack)
        elif (found := _jaxlib.own_function(target, platform)) is not None:
            own[target] = found
    if not own and not of_packs:
        return
    if own:
        _jaxlib.prepare_own_functions(platform)
    if not _jaxlib.takes_functions(platform):
        raise _unregistrable(place, *next((target, pack) for target, (_, pack) in of_packs.items()))
    with _lock:
        registered = _jaxlib.registered_functions(platform)
        for target, (capsule, pack) in of_packs.items():
            if target not in registered:
                _jaxlib.register_function(target, capsule, platform)
            elif registered[target] != _jaxlib.function_address(capsule):
                raise _taken(target, pack, registered[target])
        for target, (capsule, typed) in own.items():
            if target not in registered:  # another library that uses jaxlib may have been first
                _jaxlib.register_function(target, capsule, platform, typed)


def _unregistrable(place: Place | Group, target: str, pack: str) -> PackError:
    """The error for a kernel of a platform whose runtime takes no functions."""
    return PackError(f"the kernel {target!r} of {pack} can't be used on {place.compiler}", pack=pack, where=here(),
                     got=f"the backend {place.backend!r}, whose runtime doesn't take functions from outside",
                     wanted="a backend that has registered a handler for them with jaxlib's xla_client",
                     todo=f"run the program on another device than {place.device}, or install the distribution that "
                          "brings this handler")


def _taken(target: str, pack: str, other: int | None) -> PackError:
    """The error for a target under which somebody has registered another function with the runtime."""
    return PackError(
        f"the kernel {target!r} of {pack} can't be registered: the runtime already has another function of that name",
        pack=pack, got=f"a function {_home(other)}, registered without corejax", where=here(),
        wanted="one function for a name: the runtime would mix them up",
        todo="find who registers it directly with jaxlib; a pack names its functions in the entry points "
             f"{groups.KERNELS}, after its own distribution")


class _Place(ctypes.Structure):
    """Where an address is, as the dynamic linker says."""

    _fields_ = [("path", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p),
                ("address", ctypes.c_void_p)]


def _home(address: int | None) -> str:
    """Which library a function is in, in words, if that can be known."""
    place = _Place()
    try:
        found = ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(place))
    except (AttributeError, OSError, TypeError):  # another system
        found = 0
    return f"in {os.fsdecode(place.path)}" if found and place.path else "of an unknown library"


# What packs provide

def provides(target: str, platform: str | None = None) -> bool:
    """Whether a pack in use provides a target, for a platform or for any. Imports nothing."""
    if platform is not None:
        return _entry(target, platform) is not None
    return bool(_platforms(target))


def is_own(target: str, platform: str) -> bool:
    """Whether it is a function that jaxlib itself brings, wherever it is installed."""
    return _jaxlib.own_function(target, _jaxlib.function_platform(platform, platform)) is not None


def is_named_after_a_pack(target: str) -> bool:
    """Whether the name of a target says which distribution should provide it."""
    found = _NAME.fullmatch(target)
    return found is not None and found["owner"] not in _COMPILERS


def check(entry: Entry) -> None:
    """Load the function of an entry point; raises if anything about it is wrong."""
    problem = _misnamed(entry)
    if problem is not None:
        raise problem
    _capsule(entry)


def _key(target: str, platform: str) -> str:
    return target if platform == DEFAULT else f"{target}@{platform}"


def _entry(target: str, platform: str) -> Entry | None:
    """The entry point of the pack that a target is named after."""
    key, owner = _key(target, platform), target.partition(".")[0]
    entries = registry.installed().providers(groups.KERNELS, key)
    if not entries:
        return None
    own = [entry for entry in entries if entry.pack.name == owner]
    others = [entry for entry in entries if entry.pack.name != owner]
    for other in others:
        if not own:
            raise _misnamed(other)  # type: ignore[misc]  # it is
        groups.report((key, other.pack.name), f"the kernel {key!r} of {other.pack} is not used: it is named after "
                                              f"{own[0].pack}, which provides it")
    return registry.installed().one_of(groups.KERNELS, key, own)


def _platforms(target: str) -> list[str]:
    """The platforms for which packs provide a target."""
    names = registry.installed().names(groups.KERNELS)
    return [name.partition("@")[2] or DEFAULT for name in names if name.partition("@")[0] == target]


def _misnamed(entry: Entry) -> PackError | None:
    """What is wrong with the name of an entry point."""
    found = _NAME.fullmatch(entry.name)
    if found is None or found["platform"] in (DEFAULT, "gpu"):
        return registry.entry_error(entry, "is not named as kernels are", repr(entry.name),
                                    f"{entry.pack.name}.NAME for the CPU, {entry.pack.name}.NAME@cuda (or rocm, "
                                    "tpu, ...) for another platform")
    owner = found["owner"]
    if owner == entry.pack.name:
        return None
    return registry.entry_error(entry, "is named after another distribution, "
                                       f"{registry.installed().packs.get(owner, owner)}",
                                repr(entry.name), f"a name that begins with {entry.pack.name}, which brings it")


_capsules: dict[tuple[str, str, str], Any] = {}


def _capsule(entry: Entry) -> Any:
    """The function of an entry point, as a capsule."""
    key = entry.pack.name, entry.name, str(entry)
    found = _capsules.get(key)
    if found is not None:
        return found
    value = registry.load_entry(entry)
    if isinstance(value, Kernel):
        value = _from_library(entry, value)
    elif _jaxlib.function_address(value) is None:
        got = f"{value!r:.80}" if type(value).__name__ == "PyCapsule" else \
            f"the class {value.__name__}" if isinstance(value, type) else kind_of(value)
        raise registry.entry_error(entry, "is not a native function", f"{got}, by `{entry}`",
                                   "a corejax.plugin.Kernel(library, symbol), or a capsule of the function whose name "
                                   "is 'xla._CUSTOM_CALL_TARGET' or none")
    return _capsules.setdefault(key, value)


def _from_library(entry: Entry, kernel: Kernel) -> Any:
    if not os.path.isfile(kernel.library):
        raise _broken_library(entry, "is not there", f"no file {kernel.library}")
    try:
        library = ctypes.CDLL(kernel.library)
    except OSError as error:
        raise _broken_library(entry, "can't be loaded", str(error)) from error
    try:
        function = library[kernel.symbol]
    except AttributeError as error:
        raise registry.entry_error(
            entry, f"has no function: its library doesn't export {kernel.symbol!r}", f"{kernel!r}",
            "a function that XLA_FFI_DEFINE_HANDLER_SYMBOL defines, visible from outside") from error
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return _jaxlib.function_capsule(address)  # the library stays loaded: nothing ever unloads it


def _broken_library(entry: Entry, problem: str, got: str) -> PackError:
    return PackError(f"{entry.pack}: the library of the kernel {entry.name!r} {problem}", pack=str(entry.pack), got=got,
                     wanted="the shared library that the distribution was built with", where=here(),
                     todo=f"build it for this machine: pip install --force-reinstall --no-deps {entry.pack.name}")


# What nobody provides

def missing(target: str, platform: str, eqn: JaxprEqn | None = None, program: str = "the program") -> PackError:
    """The error for a program that calls a target that isn't there; `eqn` is the equation that does, if it is known."""
    by = program if eqn is None else f"{eqn.primitive.name} ({eqn.primitive.origin})"
    where = (describe(eqn.source) if eqn is not None and eqn.source else None) or here()
    problem, got, todo, pack = _why_missing(target, platform)
    return PackError(f"{by} needs the kernel {target!r}, which {problem}", got=got, where=where, pack=pack,
                     wanted=f"a function of that name for {platform}", todo=todo,
                     primitive=None if eqn is None else eqn.primitive.name)


def _why_missing(target: str, platform: str) -> tuple[str, str, str, str | None]:
    """Why there is no function for a target: the problem, what there is, what to do, and the pack that it is about."""
    installed = registry.installed()
    named = _NAME.fullmatch(target)
    owner = named["owner"] if named else ""
    platforms = _platforms(target)
    if platforms and platform not in platforms:
        pack = str(installed.packs[owner]) if owner in installed.packs else owner
        return (f"is not available for {platform}", f"{pack}, which provides it for {' and '.join(platforms)}",
                f"run the program there: cj.device_put(x, {platforms[0]!r}); or install a build of {owner} for "
                f"{platform}", pack)
    if owner in installed.hidden:
        return ("is missing", f"{installed.hidden[owner]}, which COREJAX_PACKS or COREJAX_DISABLE_PACKS excludes",
                f"allow {owner} there", owner)
    if owner in installed.broken:
        return ("is missing", f"{owner}, whose metadata is broken: {installed.broken[owner]}", f"reinstall {owner}",
                owner)
    if owner in installed.packs:
        pack = str(installed.packs[owner])
        near = suggestion(target, installed.names(groups.KERNELS))
        return (f"is not one of {pack}", f"{pack}, which has no such kernel",
                f"{near + ' Or install' if near else 'install'} a release of {owner} that has it", pack)
    problem = "is missing: no installed pack provides it"
    if owner and owner not in _COMPILERS:
        there = manifest.distribution(owner) is not None
        todo = f"install another release of {owner}: the one that is there brings no kernels" if there else \
            f"pip install {owner}"
        return problem, registry.packs_in_use(), todo, owner
    return (problem, registry.packs_in_use(), "install the pack that provides it, or register the function with jaxlib "
            "before the program is compiled", None)
