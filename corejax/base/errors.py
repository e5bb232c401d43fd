"""All errors that corejax raises. Each is a `CorejaxError`, and also the built-in class that one would expect.

An error says what it got, what it wanted, where in the user's code that was, and what to do about it:

>>> from corejax.errors import CorejaxTypeError
>>> print(CorejaxTypeError("add: operands differ in dtype", got="f32[3] and f64[3]",
...                        wanted="one dtype", todo="convert one of them", where="model.py:7"))
add: operands differ in dtype
  got:    f32[3] and f64[3]
  wanted: one dtype
  where:  model.py:7
  to do:  convert one of them
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "ConcretizationError", "CorejaxAttributeError", "CorejaxAxisError", "CorejaxError", "CorejaxImportError",
    "CorejaxIndexError", "CorejaxKeyError", "CorejaxModuleNotFoundError", "CorejaxNameError",
    "CorejaxNotImplementedError", "CorejaxOverflowError", "CorejaxRecursionError", "CorejaxRuntimeError",
    "CorejaxTypeError", "CorejaxValueError", "CorejaxWarning", "LeakedTracerError", "LostDerivativeError",
    "MissingRuleError", "NotLinearError", "PackError", "PluginError", "RuleError",
]


class CorejaxError(Exception):
    """The base class of all errors of corejax, with its parts as attributes."""

    def __init__(self, message: str, *, got: object = None, wanted: object = None, where: str | None = None,
                 todo: str | None = None, primitive: str | None = None, hook: str | None = None,
                 pack: str | None = None) -> None:
        self.message = message
        self.got, self.wanted, self.where, self.todo = got, wanted, where, todo
        self.primitive, self.hook, self.pack = primitive, hook, pack
        super().__init__(message)

    def rephrase(self, message: str) -> None:
        """Replace the message, where somebody knows more about what the error is about."""
        self.message = message
        self.args = (message,)

    def __str__(self) -> str:
        parts = (("got", self.got), ("wanted", self.wanted), ("where", self.where), ("to do", self.todo))
        return self.message + "".join(f"\n  {label + ':':<7} {text}" for label, text in parts if text is not None)


class CorejaxTypeError(CorejaxError, TypeError):
    """A value of the wrong type, dtype or shape."""


class CorejaxValueError(CorejaxError, ValueError):
    """A value of the right type that can't be used."""


class CorejaxIndexError(CorejaxError, IndexError):
    """An index outside its range."""


class CorejaxAxisError(CorejaxIndexError, CorejaxValueError):
    """An axis that an array doesn't have; both an IndexError and a ValueError, as NumPy's AxisError is."""


class CorejaxKeyError(CorejaxError, KeyError):
    """A name that isn't there."""

    __str__ = CorejaxError.__str__  # KeyError would print the repr of its first argument


class CorejaxAttributeError(CorejaxError, AttributeError):
    """An attribute that isn't there."""


class CorejaxNameError(CorejaxError, NameError):
    """An axis that nothing around the call has named."""


class CorejaxImportError(CorejaxError, ImportError):
    """A pack that can't be imported."""


class CorejaxModuleNotFoundError(CorejaxImportError, ModuleNotFoundError):
    """A module of a pack that isn't installed."""


class CorejaxNotImplementedError(CorejaxError, NotImplementedError):
    """A rule that doesn't exist."""


class CorejaxRuntimeError(CorejaxError, RuntimeError):
    """A state in which the call can't go on."""


class CorejaxOverflowError(CorejaxError, OverflowError):
    """A number that doesn't fit its dtype."""


class CorejaxRecursionError(CorejaxError, RecursionError):
    """Calls that are nested more deeply than Python's stack allows."""


class ConcretizationError(CorejaxTypeError):
    """A value was needed, but only its type is known."""


class LostDerivativeError(ConcretizationError):
    """The value of a differentiated array would have gone where its derivative can't follow."""


class LeakedTracerError(CorejaxRuntimeError):
    """A tracer was used after its transformation had ended, or outside it."""


class RuleError(CorejaxTypeError):
    """A primitive's rule returned something that it must not return."""


class NotLinearError(RuleError):
    """A rule isn't linear in the tangents, or adds something that doesn't depend on any."""


class MissingRuleError(CorejaxNotImplementedError):
    """A primitive has no such rule, and none can be derived."""


class PluginError(CorejaxTypeError):
    """A plugin object that breaks the contract for plugins."""


class PackError(CorejaxImportError):
    """A pack that can't be used: it failed to import, to load or to validate."""


class CorejaxWarning(UserWarning):
    """Something works, but not as well as it could."""


def suggestion(name: str, names: Iterable[str]) -> str | None:
    """`did you mean 'sin'?`, if there is a similar name, in capitals or not."""
    known: dict[str, list[str]] = {}
    for each in names:
        known.setdefault(each.lower(), []).append(each)
    close = [each for match in get_close_matches(name.lower(), list(known), 3, 0.6) for each in known[match]]
    return f"did you mean {' or '.join(map(repr, close))}?" if close else None


def kind_of(value: object) -> str:
    """The type of a value in words: `a list`, `an int`, `None`."""
    name = type(value).__name__
    article = "an" if name.lower().startswith(("a", "e", "i", "o", "nd")) else "a"
    return "None" if value is None else getattr(type(value), "_in_words", f"{article} {name}")


for _name in __all__:
    globals()[_name].__module__ = "corejax.errors"  # where users find them: used in tracebacks and pickles
