"""Functions made for one structure of trees: they take apart and put together much faster than what works for any.

A function is written as lines of Python that have the structure's classes, keys and static parts as constants, so that
it neither looks at a registry nor compares structures:

>>> code = Code()
>>> leaves = take_apart(code, trees.flatten({"b": (1, 2), "a": 3})[1], "tree")
>>> code.add(f"return [{', '.join(leaves)}]")
>>> leaves_of = code.function("tree")
>>> leaves_of({"a": 3, "b": (1, 2)}), leaves_of({"a": 3}), leaves_of({"a": 3, "b": [1, 2]})
([3, 1, 2], None, None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType
from typing import Any

from corejax.base import trees
from corejax.base.trees import TreeDef

#: What such a function may return for what it isn't made for.
OTHER: Any = object()


class Code:
    """The lines of a function, and the constants that they name."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._constants: dict[str, Any] = {"__name__": __name__, "__builtins__": {"len": len, "type": type}}
        self._names: dict[int, str] = {}
        self._count = 0
        self._margin = "  "

    def add(self, line: str) -> None:
        """Add a line."""
        self._lines.append(self._margin + line)

    @contextmanager
    def block(self, first: str) -> Iterator[None]:
        """Lines that are added within belong to this one, such as `try:`."""
        self.add(first)
        before, self._margin = self._margin, self._margin + "  "
        yield
        self._margin = before

    def new(self) -> str:
        """A name for a variable."""
        self._count += 1
        return f"v{self._count}"

    def constant(self, value: object) -> str:
        """The name of a value; the same object has one."""
        name = self._names.setdefault(id(value), f"c{len(self._names)}")
        self._constants[name] = value  # which keeps it alive, and so its id
        return name

    def function(self, parameters: str) -> Callable[..., Any]:
        """The function with these lines."""
        text = "\n".join([f"def made({parameters}):", *self._lines])
        exec(_compiled(text), self._constants)  # no text of others is in it
        made: Callable[..., Any] = self._constants.pop("made")
        return made


@lru_cache(128)
def _compiled(text: str) -> CodeType:
    return compile(text, f"<{__name__}>", "exec")  # functions for trees alike have the same text


def take_apart(code: Code, treedef: TreeDef, tree: str, other: str = "None") -> list[str]:
    """Add lines that take apart the variable `tree`: the names of its leaves.

    For a tree of another structure, the function returns `other`, or raises whatever exception. A leaf may still be a
    container: that is for the caller to see. ValueError if no code can be written for a class.
    """
    data = treedef.node_data()
    if data is None:
        return [tree]
    kind, static = data
    inner = treedef.children()
    names = [code.new() for _ in inner]
    node = trees.node_of(kind)
    children = tree
    if kind is type(None):
        code.add(f"if {tree} is not None: return {other}")
    else:
        code.add(f"if type({tree}) is not {code.constant(kind)}: return {other}")
    if kind is dict:
        code.add(f"if len({tree}) != {len(inner)}: return {other}")
        for name, key in zip(names, static, strict=True):
            code.add(f"{name} = {tree}[{code.constant(key)}]")
    elif type(node) is trees.Fields:
        if not all([field.isascii() and field.isidentifier() for field in (*node.data, *node.meta)]):
            raise ValueError(f"fields of {kind} that aren't names")
        for field, value in zip(node.meta, static, strict=True):
            _add_comparison(code, f"{tree}.{field}", value, other)
        for name, field in zip(names, node.data, strict=True):
            code.add(f"{name} = {tree}.{field}")
    else:
        if type(node) is trees.Functions:
            children, found = code.new(), code.new()
            code.add(f"{children}, {found} = {code.constant(node.flatten)}({tree})")
            _add_comparison(code, found, static, other)
        elif kind not in (list, tuple, type(None)):  # a namedtuple
            children = f"{code.constant(tuple.__iter__)}({tree})"
        if kind is not type(None):
            code.add(f"[{', '.join(names)}] = {children}")
    return [leaf for name, child in zip(names, inner, strict=True) for leaf in take_apart(code, child, name, other)]


def _add_comparison(code: Code, found: str, wanted: object, other: str) -> None:
    known = code.constant(wanted)
    code.add(f"if {found} is not {known} and {found} != {known}: return {other}")


def put_together(code: Code, treedef: TreeDef, leaves: Iterator[str]) -> str:
    """Add lines that make a tree of variables, its leaves: the name of the tree."""
    data = treedef.node_data()
    if data is None:
        return next(leaves)
    kind, static = data
    parts = [put_together(code, child, leaves) for child in treedef.children()]
    code.add(f"{(name := code.new())} = {_made(code, kind, static, parts)}")
    return name


def _made(code: Code, kind: type, static: Any, parts: Sequence[str]) -> str:
    listed = ", ".join(parts)
    if kind is type(None):
        return "None"
    if kind is list:
        return f"[{listed}]"
    if kind is dict:
        return f"{{{', '.join([f'{code.constant(key)}: {part}' for key, part in zip(static, parts, strict=True)])}}}"
    together = f"({listed},)" if parts else "()"
    if kind is tuple:
        return together
    node = trees.node_of(kind)
    if type(node) is trees.Functions:
        return f"{code.constant(node.unflatten)}({code.constant(static)}, {together})"
    if type(node) is trees.Fields:
        fields = [*zip(node.data, parts, strict=True),
                  *zip(node.meta, map(code.constant, static), strict=True)]
        listed = ", ".join([f"{field}={value}" for field, value in fields])
    return f"{code.constant(kind)}({listed})"
