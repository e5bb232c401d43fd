"""Roles: jobs that the kernel needs done, without knowing by which primitive.

`roles.accumulate(x, y)` adds two values with whatever fills the entry point `accumulate` of the group `corejax.roles`;
`operators.add` is the role `operators.add`. The function that fills a role is looked up at first use and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from corejax.base.caches import generation
from corejax.installed import groups, registry


class Roles:
    """The roles under one prefix, as attributes."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # Only called the first time: from then on, it is an ordinary attribute.
        if name.startswith("_"):
            raise AttributeError(name)
        since = generation()
        function: Callable[..., Any] = registry.load(groups.ROLES, self._prefix + name)
        return registry.keep(function, self.__dict__, name, since)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"roles({self._prefix}*)" if self._prefix else "roles"


roles = Roles()
operators = Roles("operators.")


def _forget(function: str | None) -> None:
    if function is None:
        for group in (roles, operators):
            for name in [name for name in group.__dict__ if not name.startswith("_")]:
                group.__dict__.pop(name, None)


registry.also_forget(_forget)


@contextmanager
def provide(functions: Mapping[str, Callable[..., Any]] | None = None, **named: Callable[..., Any]) -> Iterator[None]:
    """Fill roles within the block, for the whole process, whatever is installed. Meant for tests of interpreters.

    >>> with provide({"operators.add": lambda x, y: "sum"}, accumulate=lambda x, y: "total"):
    ...     roles.accumulate(1, 2), operators.add(1, 2)
    ('total', 'sum')
    """
    previous: list[tuple[Roles, str, bool, Any]] = []
    try:
        for role, function in {**(functions or {}), **named}.items():
            group, name = (operators, role[10:]) if role.startswith("operators.") else (roles, role)
            previous.append((group, name, name in group.__dict__, group.__dict__.get(name)))
            group.__dict__[name] = function
        yield
    finally:
        for group, name, was_there, value in reversed(previous):
            if was_there:
                group.__dict__[name] = value
            else:
                group.__dict__.pop(name, None)
