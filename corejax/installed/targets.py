"""What the rules of `corejax.rules` are for, and what a user prefers: names such as `distribution/primitive:hook`."""

from __future__ import annotations

import re
from typing import NamedTuple

from corejax.installed.requirements import canonical

_TARGET = re.compile(r"(?P<owner>[a-zA-Z0-9][\w.-]*)/(?P<primitive>[^\s/:@]+):(?P<hook>[^\s/:@?]+)"
                     r"(?P<optional>\?)?(@(?P<platform>[^\s/:@]+))?", re.ASCII)
_CHOICE = re.compile(r"(?P<pack>[^\s/:@]+)(/(?P<name>[^\s/:@]+)(:(?P<hook>[^\s/:@]+)(@(?P<platform>[^\s/:@]+))?)?)?")

#: In the place of a primitive's name: the entry leads to a table of rules for primitives of that distribution.
EVERY = "*"


class Target(NamedTuple):
    """For which hook of which primitive of which distribution a rule is; a lowering may be for one platform.

    A question mark after the hook makes it optional: it does nothing where no transformation of that name is installed.

    >>> Target.parse("corejax-lax-basic/sin:xla_translation@cpu")
    Target(owner='corejax-lax-basic', primitive='sin', hook='xla_translation', platform='cpu', optional=False)
    """

    owner: str
    primitive: str
    hook: str
    platform: str | None
    optional: bool = False

    @classmethod
    def parse(cls, name: str) -> Target | None:
        """What an entry point's name says; None if it isn't of this form."""
        match = _TARGET.fullmatch(name)
        if match is None:
            return None
        return cls(canonical(match["owner"]), match["primitive"], match["hook"], match["platform"],
                   match["optional"] is not None)

    @property
    def slot(self) -> str:
        """The hook, and the platform of a lowering for one."""
        return f"{self.hook}@{self.platform}" if self.platform else self.hook


class Choice(NamedTuple):
    """What a user prefers: a pack for all that it provides, for one name, or for one hook of a primitive.

    >>> Choice.parse("My_Pack/sin:vmap")
    Choice(pack='my-pack', name='sin', hook='vmap', platform=None)
    """

    pack: str
    name: str | None = None
    hook: str | None = None
    platform: str | None = None

    @classmethod
    def parse(cls, text: str) -> Choice | None:
        """`pack`, `pack/name`, `pack/name:hook` or `pack/name:hook@platform`; None if it isn't of this form."""
        match = _CHOICE.fullmatch(text.strip())
        return match and cls(canonical(match["pack"]), match["name"], match["hook"], match["platform"])

    def covers(self, name: str, hook: str | None = None, platform: str | None = None) -> bool:
        """Is it for that name, and that hook of it?"""
        return (self.name in (None, name) and self.hook in (None, hook) and
                (self.platform is None or self.platform == platform))

    @property
    def parts(self) -> int:
        """How many parts are named: the more, the more special it is."""
        return sum([part is not None for part in self])

    def __str__(self) -> str:
        rest = f"/{self.name}" if self.name else ""
        rest += f":{self.hook}" if self.hook else ""
        return self.pack + rest + (f"@{self.platform}" if self.platform else "")
