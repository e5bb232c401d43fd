"""Whose rules count for a primitive, and where they are. For tools that examine rules.

>>> from corejax.plugin import find
>>> from corejax.rules import left_out, whose
>>> whose(find("sin"), "jvp")
'corejax-lax-basic ...'
>>> left_out(find("sin"))
[]
"""

from typing import TYPE_CHECKING

from corejax.base.facades import facade

if TYPE_CHECKING:
    from corejax.inspect.hooks import place_of_rule as place_of_rule
    from corejax.installed.targets import EVERY as EVERY, Target as Target
    from corejax.kernel.checks import whose as whose
    from corejax.packs.answering import all_installed, left_out as left_out
    from corejax.packs.foreign import Foreign as Foreign, is_met as is_met, orphans as orphans, rules_for as rules_for
    from corejax.packs.freeze import without as without

    transformations = all_installed
else:  # so that type checkers refuse names that aren't there
    __all__, __getattr__, __dir__ = facade(__name__, {
        "corejax.inspect.hooks": "place_of_rule",
        "corejax.installed.targets": "EVERY Target",
        "corejax.kernel.checks": "whose",
        "corejax.packs.foreign": "Foreign is_met orphans rules_for",
        "corejax.packs.freeze": "without",
        "corejax.packs.answering": "all_installed=transformations left_out",
    })
