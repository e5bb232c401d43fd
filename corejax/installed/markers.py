"""Environment markers: for which Pythons and platforms a requirement is (PEP 508).

>>> holds("python_version >= '3.8' and sys_platform != 'amiga'"), holds("extra == 'test'"), holds("os_name = 'x'")
(True, False, None)
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable

from corejax.installed.requirements import canonical, is_range, satisfies

_TOKEN = re.compile(r"""\s*(?:(?P<paren>[()])|(?P<text>'[^']*'|"[^"]*")|(?P<how>===|~=|==|!=|<=|>=|<|>)|"""
                    r"""(?P<word>[A-Za-z_][\w.]*))""")
_ALIASES = {"os.name": "os_name", "sys.platform": "sys_platform", "platform.version": "platform_version",
            "platform.machine": "platform_machine", "platform.python_implementation": "platform_python_implementation"}


class _Unreadable(Exception):
    """It isn't a marker."""


def holds(marker: str, extra: str = "") -> bool | None:
    """Whether a marker holds here, for an extra or for none; None if it can't be read."""
    tokens = _tokens(marker)
    try:
        found = _either(tokens, extra)
        return None if tokens else found
    except (_Unreadable, IndexError):
        return None


def _tokens(marker: str) -> list[str]:
    found, at = [], 0
    while match := _TOKEN.match(marker, at):
        found.append(match[0].strip())
        at = match.end()
    return ["?"] if marker[at:].strip() else found


# Each takes its tokens from the front

def _either(tokens: list[str], extra: str) -> bool:
    found = _both(tokens, extra)
    while tokens and tokens[0] == "or":
        del tokens[0]
        found = _both(tokens, extra) or found
    return found


def _both(tokens: list[str], extra: str) -> bool:
    found = _one(tokens, extra)
    while tokens and tokens[0] == "and":
        del tokens[0]
        found = _one(tokens, extra) and found
    return found


def _one(tokens: list[str], extra: str) -> bool:
    if tokens[0] == "(":
        del tokens[0]
        found = _either(tokens, extra)
        if tokens.pop(0) != ")":
            raise _Unreadable
        return found
    left = tokens.pop(0)
    how = " ".join([tokens.pop(0) for _ in range(2 if tokens[0] == "not" else 1)])
    right = tokens.pop(0)
    (one, is_name), (other, is_other_name) = _value(left, extra), _value(right, extra)
    if is_name == is_other_name:
        raise _Unreadable
    if "extra" in (left, right):
        one, other = canonical(one), canonical(other)
    return _compared(one, how, other)


def _value(token: str, extra: str) -> tuple[str, bool]:
    """What a token stands for, and whether it is a name."""
    if token[0] in "'\"":
        return token[1:-1], False
    name = _ALIASES.get(token, token)
    facts: dict[str, Callable[[], str]] = {
        "extra": lambda: extra, "os_name": lambda: os.name, "sys_platform": lambda: sys.platform,
        "platform_machine": platform.machine, "platform_system": platform.system,
        "platform_release": platform.release, "platform_version": platform.version,
        "platform_python_implementation": platform.python_implementation,
        "implementation_name": lambda: sys.implementation.name,
        "implementation_version": platform.python_version, "python_full_version": platform.python_version,
        "python_version": lambda: "{}.{}".format(*sys.version_info)}
    if name not in facts:
        raise _Unreadable
    return facts[name](), True


def _compared(one: str, how: str, other: str) -> bool:
    if how in ("in", "not in"):
        return (one in other) is (how == "in")
    if is_range(f"=={one}") and is_range(how + other):
        return satisfies(one, how + other)
    results = {"==": one == other, "===": one == other, "!=": one != other, "<": one < other, "<=": one <= other,
               ">": one > other, ">=": one >= other}
    if how not in results:
        raise _Unreadable
    return results[how]
