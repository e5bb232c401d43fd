"""Settings: from the environment, for the process, or for a `with` block in one thread.

>>> from corejax.config import config
>>> with config(default_bits=32):
...     config.default_bits
32
>>> config.default_bits
64
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from typing import Any

from corejax.base.errors import CorejaxAttributeError, CorejaxError, CorejaxValueError
from corejax.base.settings import Name, OneOf, PathName, Refused, Values, Whole
from corejax.base.source import here

#: The name that stands for the best backend that works.
AUTO = "auto"


def variable(name: str) -> str:
    """The environment variable for a setting of this name."""
    return f"COREJAX_{name.upper()}"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting: its default, the values it takes, and what it means.

    A pack's is found by an entry point in the group `corejax.settings`. From then on it is an attribute of `config`.

    While one with `watch` is on, `watch(primitive, args, params, apply)` is called in the place of whatever the thread
    evaluates: `apply()` evaluates it and returns the list of results, which `watch` has to return. `primitive` is None
    for a compiled program: `params` are its `jaxpr` and its `name`. Arguments are as they were given: arrays, numbers,
    ndarrays, or whatever will be refused. Not told are steps within a program, and functions that NumPy computes at
    once.
    """

    name: str
    default: Any
    values: Values
    doc: str
    watch: Callable[..., Any] | None = None

    @property
    def env_var(self) -> str:
        """The environment variable for its initial value."""
        return variable(self.name)

    def check(self, value: object) -> Any:
        """The value in the form that is stored; raises if it isn't valid."""
        try:
            return self.values.check(value)
        except Refused as refused:
            raise self._error(value, f"config.{self.name}", refused.hint) from None

    def parse(self, text: str) -> Any:
        """The value for the environment variable's text; raises if it isn't valid."""
        try:
            return self.values.parse(text)
        except Refused as refused:
            raise self._error(text, f"the environment variable {self.env_var}", refused.hint) from None

    def _error(self, value: object, what: str, hint: str) -> CorejaxValueError:
        return CorejaxValueError(f"{what} can't be {value!r:.200}", got=f"{value!r:.200}", where=here(),
                                 wanted=self.values.wanted, todo=hint or f"it says: {self.doc}")


def _as_usual(primitive: object, args: object, params: object, apply: Callable[[], Any]) -> Any:
    """Watches nothing; that it could keeps calls of compiled functions from short ways, so that they ask each time."""
    return apply()


SETTINGS: dict[str, Setting] = {setting.name: setting for setting in (
    Setting("default_bits", 64, OneOf(64, 32), "the width of Python scalars, and of what is created without a dtype"),
    Setting("traceback_filtering", True, OneOf(True, False), "show only the user's frames in tracebacks"),
    Setting("fallbacks", "warn", OneOf("warn", "error", "silent"),
            "what to do when a primitive lacks a rule and a slow substitute is used"),
    Setting("numerical_failures", "nan", OneOf("nan", "error"),
            "what an eager call gives where it finds no result, as for the Cholesky factor of an indefinite matrix"),
    Setting("debug_typecheck", False, OneOf(False, True), "typecheck every jaxpr as it is staged"),
    Setting("disable_jit", False, OneOf(False, True),
            "call Python's functions, step by step and with values, in place of compiled programs", _as_usual),
    Setting("explain_retraces", False, OneOf(False, True), "warn when jit traces a function again, and say why"),
    Setting("compilation_cache_dir", None, PathName(optional=True),
            "a directory that keeps compiled programs for other processes; None keeps none"),
    Setting("compilation_cache_max_size", 2**30, Whole(0),
            "how many bytes that directory may take; the least recently used programs are removed first"),
    Setting("backend", AUTO, Name(),
            "the backend that programs run on, such as 'cpu' or 'cuda'; 'auto' is the best one that works"),
    Setting("progress", True, OneOf(True, False),
            "on a terminal, say what takes long: compiling for more than two seconds"),
    Setting("num_cpu_devices", None, Whole(1, optional=True),
            "how many devices the CPU is divided into; None leaves it to the runtime: one"),
)}


def _entry(method: Callable[..., Any]) -> Any:
    """Like `tracebacks.public`, which imports this module: no frame of it shows in a traceback."""
    @wraps(method)
    def call(self: Config, *args: Any, **values: Any) -> Any:
        try:
            return method(self, *args, **values)
        except Exception as error:
            if self.traceback_filtering:
                error.__traceback__ = None
            raise
    return call


class Config(threading.local):
    """The settings, as attributes.

    `config.name = value` sets one for the process; `with config(name=value):` for the block, in this thread only.
    """

    # The process's values are class attributes, which a `with` block hides with the thread's own instance attributes.
    # So reading is a single attribute access, with and without an overlay. (A `__getattr__` would triple its cost.)
    default_bits: int
    traceback_filtering: bool
    fallbacks: str
    numerical_failures: str
    debug_typecheck: bool
    disable_jit: bool
    explain_retraces: bool
    compilation_cache_dir: str | None
    compilation_cache_max_size: int
    backend: str
    progress: bool
    num_cpu_devices: int | None

    @_entry
    def __setattr__(self, name: str, value: object) -> None:
        setting = _setting(name)
        value = setting.check(value)
        if setting.watch is not None:
            _count_watching(bool(value) - bool(getattr(Config, name)))
        setattr(Config, name, value)
        if name in self.__dict__:
            self.__dict__[name] = value

    @_entry
    def __delattr__(self, name: str) -> None:
        setting = _setting(name)
        raise CorejaxAttributeError(f"config.{name} can't be deleted", where=here(), got=f"del config.{name}",
                                    wanted=setting.values.wanted,
                                    todo=f"assign its default, config.{name} = {setting.default!r}; or set it for a "
                                         f"while only, as tests should: with config({name}=...)")

    @_entry
    def __call__(self, **values: Any) -> AbstractContextManager[Config]:
        """Set values for a `with` block, in this thread."""
        return self._overlaid({name: _setting(name).check(value) for name, value in values.items()})

    @contextmanager
    def _overlaid(self, checked: Mapping[str, object]) -> Iterator[Config]:
        overlay = self.__dict__
        before = {name: overlay[name] for name in checked if name in overlay}
        watching = sum([bool(value) for name, value in checked.items() if SETTINGS[name].watch is not None])
        overlay.update(checked)
        try:
            if watching:
                _count_watching(watching)
            yield self
        finally:
            if watching:
                _count_watching(-watching)
            for name in checked:
                del overlay[name]
            overlay.update(before)

    def __dir__(self) -> list[str]:
        return sorted({*SETTINGS, *_later})

    def __repr__(self) -> str:
        return f"config({', '.join(f'{name}={getattr(self, name)!r}' for name in SETTINGS)})"


class _BeforePacks(Config):
    """`config`, until it is known which settings packs bring: then it becomes a `Config`.

    An attribute that isn't there may be one of theirs. A class with `__getattr__` is read at half the speed.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        _look()
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        with suppress(CorejaxError):  # what is wrong with what is installed is said when it is used
            _look()
        return Config.__dir__(self)  # which it is by now


# Settings of packs

class _Later:
    """In the place of a setting that some pack brings: reading it loads that."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, owner: type) -> Any:
        _load(self.name)
        return getattr(config, self.name)


#: The names of settings that packs bring and nothing has used yet.
_later: set[str] = set()

_look: Callable[[], object]
_load: Callable[[str], object]
_count_watching: Callable[[int], object]


def bring_by(look: Callable[[], object], load: Callable[[str], object]) -> None:
    """Use these to find out which settings packs bring, which is told by `expect`, and to load one: by `declare`."""
    global _look, _load
    _look, _load = look, load


def watch_by(count: Callable[[int], object]) -> None:
    """Call this with the number of settings that watch and are now on, or with a negative one of those that were."""
    global _count_watching
    _count_watching = count
    count(sum([bool(getattr(Config, name)) for name, setting in SETTINGS.items() if setting.watch is not None]))


def expect(names: Iterable[str]) -> None:
    """Packs bring settings of these names, and no others that haven't been used."""
    wanted = {name for name in names if name not in SETTINGS}
    for name in _later - wanted:
        _later.discard(name)
        delattr(Config, name)
    for name in wanted - _later:
        _later.add(name)
        setattr(Config, name, _Later(name))
    threading.local.__setattr__(config, "__class__", Config)


def is_own(name: str) -> bool:
    """Whether it is a setting of corejax's own."""
    return name in Config.__annotations__


def declare(setting: Setting) -> None:
    """Let a pack's setting be an attribute, with the value that the environment or its default gives it."""
    if setting.name not in SETTINGS:
        text = os.environ.get(setting.env_var)
        value = setting.default if text is None else setting.parse(text)
        SETTINGS[setting.name] = setting
        _later.discard(setting.name)
        setattr(Config, setting.name, value)
        if setting.watch is not None and value:
            _count_watching(1)


def _setting(name: str) -> Setting:
    if name not in SETTINGS:
        _look()
        if name in _later:
            _load(name)
    setting = SETTINGS.get(name)
    if setting is None:
        raise _unknown(name)
    return setting


def _unknown(name: str) -> CorejaxAttributeError:
    known = dir(config)
    close = get_close_matches(name, known, n=1)
    return CorejaxAttributeError(f"there is no setting called {name!r}", got=name, where=here(),
                                 wanted=f"one of: {', '.join(known)}",
                                 todo=f"did you mean {close[0]!r}?" if close else "use one of these")


def values_from(environment: Mapping[str, str]) -> dict[str, Any]:
    """The values of all settings: from an environment, with defaults for the rest."""
    return {name: setting.parse(environment[setting.env_var]) if setting.env_var in environment else setting.default
            for name, setting in SETTINGS.items()}


for _name, _value in values_from(os.environ).items():
    setattr(Config, _name, _value)

#: The only instance.
config: Config = _BeforePacks()
