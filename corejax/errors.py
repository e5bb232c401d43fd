"""All errors that corejax raises. Each is a `CorejaxError`, and also the built-in class that one would expect.

>>> issubclass(CorejaxTypeError, CorejaxError), issubclass(CorejaxTypeError, TypeError)
(True, True)
"""

from typing import TYPE_CHECKING, Any

from corejax.base.errors import *  # noqa: F403
from corejax.base.errors import __all__ as __all__
from corejax.base.errors import kind_of as kind_of
from corejax.base.errors import suggestion as suggestion
from corejax.base.late import find_in
from corejax.base.tracebacks import trim

if not TYPE_CHECKING:  # so that type checkers refuse names that aren't there
    def __getattr__(name: str) -> Any:
        try:
            return find_in({}, __name__, name)
        except Exception as error:
            trim(error)
            raise


def __dir__() -> list[str]:
    return sorted(__all__)
