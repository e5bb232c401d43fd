"""Examples that run on jax as they are, but for their imports."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

from imports import ROOT

EXAMPLES = ROOT / "examples"


def text_for(library: str, name: str) -> str:
    """The text of `examples/NAME.py` with the imports of this library."""
    text = (EXAMPLES / f"{name}.py").read_text()
    return re.sub(r"^(import|from) corejax\b", rf"\1 {library}", text, flags=re.MULTILINE)


def program_for(library: str, name: str) -> ModuleType:
    """A program as a module, which isn't run."""
    module = ModuleType(f"{Path(name).name}_for_{library}")
    exec(compile(text_for(library, name), str(EXAMPLES / f"{name}.py"), "exec"), module.__dict__)
    return module


def changed_lines(name: str) -> list[str]:
    """The lines that are others for jax."""
    ours, theirs = (text_for(library, name).splitlines() for library in ("corejax", "jax"))
    return [line for line, other in zip(ours, theirs, strict=True) if line != other]
