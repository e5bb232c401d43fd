"""Which modules an installed distribution has, as its own metadata says.

>>> class Installed:
...     def read_text(self, name):
...         return {"RECORD": "one/__init__.py,,\\none/deep/fast.abi3.so,,\\none-1.dist-info/WHEEL,,"}.get(name)
>>> sorted(modules_of(Installed()))
['one', 'one.deep', 'one.deep.fast']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from corejax.installed.distributions import Distribution

#: Folders of a repository that may be packages, and aren't what is distributed, unless by mistake.
NOT_DISTRIBUTED: Final = ("tests", "test", "docs", "examples", "benchmarks")

_SUFFIXES = (".py", ".so", ".pyd")


def modules_of(distribution: Distribution) -> frozenset[str]:
    """The modules and packages in a distribution's list of files, and its top-level packages, if they are recorded.

    Of an editable install the list has no modules.
    """
    try:
        files, top = distribution.read_text("RECORD") or "", distribution.read_text("top_level.txt") or ""
    except Exception:  # broken metadata must not hide what is being described
        return frozenset()
    found = set(top.split())
    for line in files.splitlines():
        path = line.partition(",")[0]
        if path.endswith(_SUFFIXES):
            *folders, file = path.split("/")
            parts = [*folders, file.partition(".")[0]]
            if all(map(str.isidentifier, parts)):
                found |= {".".join(parts[:count]) for count in range(1, len(parts) + (file != "__init__.py"))}
    return frozenset(name for name in found if name.partition(".")[0] not in NOT_DISTRIBUTED)
