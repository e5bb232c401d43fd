"""All errors that corejax raises. Each is a `CorejaxError`, and also the built-in class that one would expect.

>>> issubclass(CorejaxTypeError, CorejaxError), issubclass(CorejaxTypeError, TypeError)
(True, True)
"""

from corejax.base.errors import *  # noqa: F403
from corejax.base.errors import __all__ as __all__
from corejax.base.errors import kind_of as kind_of
from corejax.base.errors import suggestion as suggestion


def __dir__() -> list[str]:
    return sorted(__all__)
