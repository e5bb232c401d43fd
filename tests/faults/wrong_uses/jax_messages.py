"""What jax said to wrong uses when it was asked, in `jax.json`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from ..programs import Outcome
from . import CASES
from .case import WrongUse
from .run import ran

JAX_MESSAGES = Path(__file__).with_name("jax.json")
JAX_VERSION = "0.10.2"


def messages() -> Any:
    """What jax said: for each wrong use its class and first line, or None if it said nothing."""
    return json.loads(JAX_MESSAGES.read_text())["messages"]


def jax_says(case: WrongUse) -> dict[str, str] | None:
    """What the installed jax says, in the form in which it is recorded."""
    found = run_jax(case)
    assert found is not None
    if found.kind == "nothing":
        return None
    return {"class": found.kind, "message": _stable(found.first_line)}


def write_jax_messages() -> None:
    """Ask the installed jax."""
    said = {case.title: jax_says(case) for case in CASES if case.jax is not None}
    JAX_MESSAGES.write_text(json.dumps({"jax": JAX_VERSION, "messages": said}, indent=1) + "\n")


def _stable(text: str) -> str:
    """A message without addresses."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", text)[:300]


def run_jax(case: WrongUse) -> Outcome | None:
    """What jax says of it; None if there is no counterpart."""
    import jax
    from jax import lax
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    if case.jax is None:
        return None
    names = {"cj": jax, "lax": lax, "np": np, "jnp": jax.numpy, "Primitive": Primitive, "ad": ad,
             "batching": batching, "mlir": mlir, "ShapedArray": jax.core.ShapedArray}
    jax.clear_caches()  # params that only compare equal, such as (0,) and (0.0,), would find each other's entry
    with jax.enable_x64(True):
        return ran(case.jax, names)
