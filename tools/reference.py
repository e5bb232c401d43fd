"""Write the reference pages, one a pack, from the docstrings of its functions.

    COREJAX_PACKS=... python tools/reference.py [--check]

`--check` writes nothing and fails if a page is out of date.
`COREJAX_PACKS` names the packs, so that no other one is in `corejax.lax`: `make reference` does.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import doctest
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoints, distribution
from operator import attrgetter
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import corejax as cj
from corejax import core, lax, plugin

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/reference"
PACKS = ("lax_basic", "reductions", "control_flow", "special", "sorting", "collectives", "windows",
         "linear_algebra", "fft")

_HEAD = """# {title}

{summary}

Made from docstrings by `make reference`. Examples run after these lines:

```python
import corejax as cj
import numpy as np
from corejax import lax
```
"""

_MODULES = re.compile(r"\b(?:\w+\.)+(?=\w)")


def functions(pack: str) -> dict[str, list[str]]:
    """The public names of a pack, by the first line of the module that has them."""
    found: dict[str, list[str]] = {}
    for module, _, name in sorted([*_in_lax(pack), *_in_namespaces(pack)]):
        about = (inspect.getdoc(importlib.import_module(module)) or "").split("\n\n")[0]
        found.setdefault(" ".join(about.split()), []).append(name)
    return found


def _in_lax(pack: str) -> Iterator[tuple[str, str, str]]:
    """The module, the name there, and the name here, of what is in `lax` and at the top."""
    for entry in _entries(pack, "corejax.functions"):
        if entry.name.endswith("_p"):  # another name of a primitive
            continue
        yield entry.module, entry.attr.lower(), entry.name.replace("/", ".")


def _in_namespaces(pack: str) -> Iterator[tuple[str, str, str]]:
    for entry in _entries(pack, "corejax.namespaces"):
        module = importlib.import_module(entry.module)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value) or not (callable(value) or get_origin(value)):
                continue  # another page has it, or it is a constant
            yield home(f"{entry.name}.{name}"), name.lower(), f"{entry.name}.{name}"


def _entries(pack: str, group: str) -> EntryPoints:
    return distribution(f"corejax-{pack.replace('_', '-')}").entry_points.select(group=group)


def home(name: str) -> str:
    """The module that a function or class is written in."""
    value = value_of(name)
    primitive = getattr(value, "primitive", None)
    return (value if primitive is None else type(primitive.plugin)).__module__


def value_of(name: str) -> Any:
    """What a name stands for: `sin` is in `lax`, `cj.pmap` at the top, `lax.linalg.qr` in a namespace."""
    return attrgetter(shown(name).removeprefix("cj."))(cj)


def shown(name: str) -> str:
    """The name as programs have it."""
    return name if "." in name else f"lax.{name}"


def signature(name: str) -> str:
    """The call of a function, over several lines if it is long."""
    value, written = value_of(name), shown(name)
    if get_origin(value) is not None:  # a type made of others
        return f"{written} = {described(value)}"
    shape = inspect.signature(value)
    parameters = [*marked(shape, [declared(p) for p in shape.parameters.values()])]
    result = "" if inspect.isclass(value) else f" -> {str(shape.return_annotation).replace(chr(39), '')}"
    text = f"{written}({', '.join(parameters)}){result}"
    if len(text) <= 110:
        return text
    lines = [f"{written}("]
    for parameter in parameters:
        if len(lines) == 1 or len(lines[-1]) + len(parameter) > 100:
            lines.append(f"    {parameter},")
        else:
            lines[-1] += f" {parameter},"
    return "\n".join([*lines, f"){result}"])


def described(kind: Any) -> str:
    """A type as it is written, without the modules of its parts."""
    parts = " | ".join(map(described, get_args(kind))) if get_origin(kind) is Union else inspect.formatannotation(kind)
    return _MODULES.sub("", parts).replace("NoneType", "None")


def declared(parameter: inspect.Parameter) -> str:
    """A parameter as it is written in a definition."""
    kind, annotation, default = parameter.kind, parameter.annotation, parameter.default
    text = {kind.VAR_POSITIONAL: "*", kind.VAR_KEYWORD: "**"}.get(kind, "") + parameter.name
    if annotation is not parameter.empty:
        text += f": {annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)}"
    shown = "..." if default is ... else repr(default)
    return text if default is parameter.empty else f"{text} = {shown}"


def marked(shape: inspect.Signature, parameters: list[str]) -> Iterator[str]:
    """Parameters as they are written in a call, with the star before those that are given by name only."""
    kinds = [p.kind for p in shape.parameters.values()]
    for i, (kind, text) in enumerate(zip(kinds, parameters, strict=True)):
        if kind is inspect.Parameter.KEYWORD_ONLY and inspect.Parameter.VAR_POSITIONAL not in kinds[:i] \
                and inspect.Parameter.KEYWORD_ONLY not in kinds[:i]:
            yield "*"
        yield text
        if kind is inspect.Parameter.POSITIONAL_ONLY and kinds[i + 1:i + 2] != [kind]:
            yield "/"


def body(name: str, doc: str) -> str:
    """A docstring with its examples in fences, which import what they find in the module of the function."""
    parts: list[str] = []
    for part in doctest.DocTestParser().parse(doc):
        if isinstance(part, str):
            if part.strip():
                parts.append(part.strip() + "\n")
        else:
            source = part.source.rstrip("\n").split("\n")
            lines = [f">>> {source[0]}", *[f"... {line}" for line in source[1:]]]
            example = "\n".join([*lines, *part.want.rstrip("\n").split("\n")] if part.want else lines)
            if parts and parts[-1].startswith("```python"):
                parts[-1] = parts[-1].removesuffix("```\n") + example + "\n```\n"
            else:
                needed = "" if any([p.startswith("```") for p in parts]) else "".join(
                    [f"{line}\n" for line in imports(name, doc)])
                parts.append(f"```python\n{needed}{example}\n```\n")
    return "\n".join(parts)


def free_names(doc: str) -> list[str]:
    """Names that the examples of a docstring read and never assign."""
    assigned = {"cj", "lax", "np"}
    found: dict[str, None] = {}
    for part in doctest.DocTestParser().parse(doc):
        if not isinstance(part, str):
            nodes = [*ast.walk(ast.parse(part.source))]
            names = [node for node in nodes if isinstance(node, ast.Name)]
            assigned |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
            assigned |= {node.arg for node in nodes if isinstance(node, ast.arg)}
            assigned |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
            assigned |= {node.name for node in nodes
                         if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler)) and node.name}
            found |= dict.fromkeys([node.id for node in names])
    return [name for name in sorted(found) if name not in assigned]


def imports(name: str, doc: str) -> list[str]:
    """The lines that make names known which the examples of a function find in its module."""
    value = value_of(name)
    known = {**vars(sys.modules[value.__module__]), **vars(sys.modules[home(name)])}
    found: dict[str, list[str]] = {}
    for free in free_names(doc):
        if free not in known and hasattr(builtins, free):
            continue
        where = next(module.__name__ for module in (lax, core, plugin, cj)
                     if hasattr(module, free) and getattr(module, free) is known[free])
        found.setdefault(where, []).append(free)
    return [f">>> from {where} import {', '.join(names)}" for where, names in found.items()]


def page(pack: str) -> str:
    """The reference page of a pack."""
    groups = functions(pack)
    title = f"corejax-{pack.replace('_', '-')}"
    text = _HEAD.format(title=title, summary=distribution(title).metadata["Summary"])
    for about, group in groups.items():
        links = [f"[{name}](#{name.lower().replace('.', '')})" for name in group]
        text += f"\n## {about.rstrip('.')}\n\n{', '.join(links)}\n"
        for name in group:
            doc = "" if get_origin(value_of(name)) is not None else inspect.getdoc(value_of(name)) or ""
            text += f"\n### `{name}`\n\n```\n{signature(name)}\n```\n\n{body(name, doc)}"
    return text


def index() -> str:
    """The page that lists the others."""
    rows = [f"| [corejax-{pack.replace('_', '-')}]({pack}.md) | "
            + ", ".join([f"`{name}`" for group in functions(pack).values() for name in group]) + " |" for pack in PACKS]
    return "\n".join(["# Reference of the functions in `corejax.lax`", "",
                      "Made from docstrings by `make reference`; `help(lax.sin)` shows the same.", "",
                      "| pack | functions |", "| --- | --- |", *rows,
                      "| [corejax-numpy](numpy-names.md) | `numpy`, with `numpy.linalg` and `numpy.fft` |"]) + "\n"


def main() -> int:
    """Write the pages, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    old = []
    for name, text in [("README", index()), *[(pack, page(pack)) for pack in PACKS]]:
        path = PAGES / f"{name}.md"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        old.append(path.name)
        if not options.check:
            PAGES.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if old and options.check:
        print(f"out of date: {', '.join(old)}; run make reference", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
