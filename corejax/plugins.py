"""What is installed, who provides it, and why it won.

>>> import corejax as cj
>>> from corejax.plugin import define, hookimpl
>>> class Halved:
...     name = "halved"
...     @hookimpl
...     def decompose(self, args):
...         return args[0] / 2.0
>>> halved = define(Halved())
>>> explained = cj.plugins.explain(halved)
halved (defined in corejax.plugins): a primitive
  at ...
  params: none
  abstract_eval: derived from decompose at ...
  impl: absent (without it: compiled for each call signature)
  jvp: derived from decompose at ...
  ...
>>> explained.hooks["vmap"].how
'derived'

The same is printed by `python -m corejax explain NAME`, `... plugins`, `... primitives` and `... backends`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from corejax.base.facades import facade
from corejax.base.late import late
from corejax.base.tracebacks import public

if TYPE_CHECKING:
    from corejax.api.preferring import prefer as prefer
    from corejax.inspect import explain as _explain
    from corejax.inspect.answers import Explanation, Listing
else:
    _explain = late("corejax.inspect.explain")
    __all__, __getattr__, __dir__ = facade(__name__, {"corejax.api.preferring": "prefer"},
                                           ["backends", "explain", "packs", "primitives"])


@public
def backends() -> Listing:
    """Print each backend, and whether it can be used here or why not. Starts none.

    >>> backends().rows["cpu"]
    cpu: can be used
    ...
    'can be used'
    """
    found: Listing = _explain.backends()
    print(found)
    return found


@public
def explain(what: object) -> Explanation:
    """Print who provides a name (for a primitive, each of its hooks) and why it won; also returned as an object.

    `what` is the name of a primitive, function, role or operator, or a primitive or its function. Looking doesn't fix
    anything: a primitive can still be extended. For each hook, it says whether it is

    - `written` or `declared`, by which pack and where; if there are several, why that one counts, and what became of
      the others: other packs' rules, wrappers around it, lowerings for one platform;
    - `derived`, and from what;
    - a `fallback`, with what it costs and which hook removes it;
    - `absent`, with what is done without it, or `missing`: an error as soon as it is needed.

    >>> _ = explain("operators.add")
    operators.add (corejax-lax-basic ...): a role, its only provider
      at ...
    """
    found: Explanation = _explain.explain(what)
    print(found)
    return found


@public
def packs() -> Listing:
    """Print each pack with its version and how much it provides, and what the environment excludes.

    >>> print(sorted(packs().rows["corejax-reductions 0.1.0"]))
    corejax-...
    ['functions', 'primitives', 'roles']
    """
    found: Listing = _explain.packs()
    print(found)
    return found


@public
def primitives() -> Listing:
    """Print the primitives of each pack. Imports no pack.

    >>> "sin" in primitives().rows["corejax-lax-basic 0.1.0"]
    corejax-...
    True
    """
    found: Listing = _explain.primitives()
    print(found)
    return found
