"""A plugin object, its provider, and where it is defined."""

from __future__ import annotations

import inspect
from typing import Any

from corejax.base.caches import WeakCache
from corejax.base.errors import PluginError
from corejax.kernel.declarations import Declaration
from corejax.packs.hook_signatures import Signature, place_of


class Source:
    """A plugin object and its provider: the pack that owns the primitive, or others by an entry point or `extend`.

    One that is not `consented` only adds what the primitive lacks. `single` is the hook of a plugin that was made of
    one rule, which needs no mark; `at` is where that is, if it is a declaration, which knows no place of its own.
    """

    __slots__ = ("at", "consented", "declared", "extends", "found", "is_owner", "linear", "origin", "others", "pack",
                 "plugin", "primitive", "replaces", "signatures", "single")

    def __init__(self, plugin: Any, primitive: str, pack: str | None, origin: str, *, is_owner: bool = False,
                 extends: bool = False, replaces: bool = False, consented: bool = True,
                 single: str | None = None, at: str | None = None) -> None:
        self.plugin = plugin
        self.primitive = primitive
        self.pack = pack
        self.origin = origin
        self.is_owner, self.extends, self.replaces = is_owner, extends, replaces
        self.consented, self.single, self.at = consented, single, at
        self.declared: dict[str, Declaration] = {}
        self.linear: tuple[int, ...] | None = None
        self.found: list[tuple[str, bool, Signature]] = []  # (hook, is a wrapper, signature) of each implementation
        self.signatures: dict[Any, Signature] = {}
        self.others: list[str] = []  # what it provides for hooks that aren't resolved now

    @property
    def rules(self) -> dict[str, Signature]:
        """The hooks that it implements, not counting wrappers."""
        return {hook: signature for hook, is_wrapper, signature in self.found if not is_wrapper}

    @property
    def platform(self) -> str | None:
        return None if self.is_owner else getattr(self.plugin, "platform", None)

    def error(self, problem: str, hook: str | None = None, **parts: Any) -> PluginError:
        """The error for this plugin; it says where its class, or the hook, is defined."""
        dotted = f"{self.primitive}.{hook}" if hook else self.primitive
        return PluginError(f"{dotted} ({self.origin}): {problem}", primitive=self.primitive, hook=hook,
                           pack=self.origin, where=self.place(hook), **parts)

    def place(self, hook: str | None = None) -> str:
        """`file:line` of the hook's rule, or of the plugin's class."""
        rule = getattr(self.plugin, hook, None) if hook else None
        return place_of(rule) or self.at or _place_of_class(type(self.plugin))


@WeakCache
def _place_of_class(kind: type) -> str:
    try:
        return f"{inspect.getsourcefile(kind)}:{inspect.getsourcelines(kind)[1]}"
    except (OSError, TypeError):  # defined without a file
        return f"{kind.__module__}.{kind.__qualname__}"
