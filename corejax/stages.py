"""What becomes of a jitted function on the way to running: traced, lowered, compiled. Types for annotations and tests.

>>> import corejax as cj
>>> from corejax.stages import Compiled
>>> isinstance(cj.jit(lambda x: x * x).lower(3.0).compile(), Compiled)
True
"""

from typing import TYPE_CHECKING

from corejax.base.facades import facade

if TYPE_CHECKING:
    from corejax.api.stages import Compiled as Compiled, Lowered as Lowered, Traced as Traced
else:  # so that type checkers refuse names that aren't there
    __all__, __getattr__, __dir__ = facade(__name__, {"corejax.api.stages": "Compiled Lowered Traced"})
