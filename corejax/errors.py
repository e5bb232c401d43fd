"""All errors that corejax raises. Each is a `CorejaxError`, and also the built-in class that one would expect.

>>> issubclass(CorejaxTypeError, CorejaxError), issubclass(CorejaxTypeError, TypeError)
(True, True)
"""

from corejax.base.errors import *  # noqa: F403
from corejax.base.errors import __all__ as __all__, kind_of as kind_of, suggestion as suggestion
from corejax.base.facades import facade

_, __getattr__, __dir__ = facade(__name__, {}, __all__)
