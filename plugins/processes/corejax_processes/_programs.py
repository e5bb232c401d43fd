"""What processes agree on before they run a program together for the first time."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256
from itertools import zip_longest

from corejax.core import here
from corejax.plugin import peers
from corejax_processes._errors import PeerError


def fingerprint(program: peers.Program) -> str:
    """Equal for programs that do the same, compiled in the same way."""
    hashed = sha256(len(program.content).to_bytes(8, "little"))
    hashed.update(program.content)
    hashed.update(program.options)
    return hashed.hexdigest()


def packed(program: peers.Program) -> str:
    """A program for others to compare with."""
    return b64encode(zlib.compress(program.content)).decode()


def different(mine: peers.Program, me: int, names: Mapping[int, str], contents: Mapping[int, str]) -> PeerError:
    """The error for processes whose programs differ; `names` are names and fingerprints."""
    other = next(i for i, name in names.items() if name.split()[-1] != names[me].split()[-1])
    theirs = mine._replace(content=zlib.decompress(b64decode(contents[other])))
    return PeerError("the processes are about to run different programs together", (other,), where=here(),
                     got=f"process {other} runs {names[other]}; this one, process {me}, runs {names[me]}. "
                         + _first_difference(peers.text_of(theirs), peers.text_of(mine), other, me),
                     wanted="the same program in every process",
                     todo="look for what depends on the process: shapes, constants, options, the order of calls")


def _first_difference(theirs: str, mine: str, other: int, me: int) -> str:
    for number, (one, two) in enumerate(zip_longest(theirs.splitlines(), mine.splitlines(), fillvalue=""), 1):
        if one != two:
            return (f"The first difference is in line {number}: process {other} has `{_around(one, two)}`, "
                    f"process {me} has `{_around(two, one)}`")
    return "They do the same, but are compiled in different ways: with other options, or for other devices"


def _around(line: str, other: str) -> str:
    """The part of a line where it differs from the other."""
    same = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
    start = max(0, same - 60)
    return ("... " if start else "") + line[start:same + 60].strip() + (" ..." if len(line) > same + 60 else "")
