"""The same faults in JAX's own registries, where they have a counterpart: one result, eagerly and under jit."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from . import FAULTS
from .case import CONTEXTS, ONE, Fault
from .run import result_of

RECORD = Path(__file__).with_name("jax.json")
VERSION = "0.10.2"

#: In which contexts each hook is compared: at once, and under jit where that is something else.
COMPARED = {
    "abstract_eval": ("jit", "vmap of jit"),
    "impl": ("eager",),
    "jvp": ("jvp", "jit of jvp", "grad"),
    "transpose": ("grad", "jit of grad"),
    "vmap": ("vmap", "jit of vmap"),
    "xla_translation": ("jit",),
}

HEADS = {
    "abstract_eval": "abstract_eval(x):\n    avals = [x]",
    "impl": "impl(x):\n    args = [x]",
    "jvp": "jvp(primals, tangents):",
    "transpose": "transpose(cotangents, *args):",
    "vmap": "vmap(args, dims):\n    axis = None",
    "xla_translation": "xla_translation(ctx, *args):",
}
REGISTERED = """\
twice_p.def_abstract_eval(abstract_eval)
twice_p.def_impl(impl)
ad.primitive_jvps[twice_p] = jvp
ad.primitive_transposes[twice_p] = transpose
batching.primitive_batchers[twice_p] = vmap
mlir.register_lowering(twice_p, xla_translation)
"""
LOWERING = "return mlir.lower_fun(lambda x: x * 2.0, multiple_results=False)(ctx, *args)"

#: Lowerings are written in MLIR, which is spelled otherwise.
MLIR = {
    "result: None": "None",
    "result: a string": "['v']",
    "result: a number": "[2.0]",
    "result: an array": "[np.ones(3)]",
    "result: another shape": "[mlir.ir_constant(np.ones(4))]",
    "result: another dtype": "[mlir.ir_constant(np.ones(3, np.float32))]",
    "result: an integer dtype": "[mlir.ir_constant(np.ones(3, np.int64))]",
}


def program(fault: Fault, context: str, faulty: bool = True) -> str | None:
    """The program for jax; None if there is no counterpart."""
    if fault.hook not in COMPARED or fault.one is None or fault.declared or fault.caught == "note":
        return None
    body = fault.one
    if fault.hook == "xla_translation":
        if fault.way not in MLIR:
            return None
        body = f"return {MLIR[fault.way]}"
    if (
        any(word in body for word in ("seen", "ctx.", "axis"))
        or fault.rules
        or fault.decomposes
        or "abstract" in fault.way
    ):
        return None
    rules = {**ONE, "xla_translation": LOWERING, **({fault.hook: body} if faulty else {})}
    text = [
        "x = np.arange(1.0, 4.0)",
        "xs = np.stack([x, x + 1.0])",
        fault.before,
        "def leaked(v):\n    kept = []\n    cj.make_jaxpr(lambda y: kept.append(y) or y)(np.zeros(v.shape, v.dtype))\n"
        "    return kept[0]",
        "twice_p = Primitive('twice')",
        "def twice(x):\n    return twice_p.bind(x)",
    ]
    text += [f"def {head}\n" + textwrap.indent(rules[hook], "    ") for hook, head in HEADS.items()]
    return "\n".join([*text, REGISTERED, "def f(x):\n    return twice(x)", f"result = {CONTEXTS[context]}", ""])


def compared() -> Iterator[tuple[Fault, str]]:
    """What has a counterpart, with the contexts."""
    for fault in FAULTS:
        for context in COMPARED.get(fault.hook, ()):
            if program(fault, context) is not None:
                yield fault, context


def names() -> dict[str, Any]:
    """What programs find."""
    import jax
    from jax._src.lax.lax import _convert_element_type
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    roles = SimpleNamespace(convert=lambda v, dtype, weak: _convert_element_type(v, dtype, weak_type=weak))
    return {
        "cj": jax,
        "lax": jax.lax,
        "np": np,
        "jnp": jax.numpy,
        "Primitive": Primitive,
        "ad": ad,
        "batching": batching,
        "mlir": mlir,
        "ShapedArray": jax.core.ShapedArray,
        "Zero": ad.Zero,
        "Linear": ad.UndefinedPrimal,
        "dtypes": SimpleNamespace(float0=jax.dtypes.float0),
        "roles": roles,
    }


def answer(fault: Fault, context: str) -> dict[str, Any]:
    """What jax says: the class of its error and whether it names the primitive; or what comes of saying nothing."""
    import jax

    with jax.enable_x64(True):
        given = names()
        found = result_of(program(fault, context) or "", given)
        if isinstance(found, Exception):
            text = f"{found} {' '.join(getattr(found, '__notes__', ()))}"
            return {"class": type(found).__name__, "named": re.search(r"\btwice\b", text) is not None}
        right = result_of(program(fault, context, faulty=False) or "", given)
        if isinstance(right, Exception):
            raise AssertionError("the right rules fail") from right
        return {"result": "right" if _same(found, right) else "wrong"}


def _same(found: Any, right: Any) -> bool:
    try:
        plain = np.asarray(found)
    except Exception:  # a leaked tracer, or what is no array
        return False
    right_type = np.dtype(right.dtype), getattr(right, "weak_type", False)
    return (np.dtype(getattr(found, "dtype", object)), getattr(found, "weak_type", False)) == right_type and bool(
        np.array_equal(plain, right)
    )


def record() -> None:
    """Ask the installed jax."""
    answers: dict[str, dict[str, Any]] = {}
    for fault, context in compared():
        answers.setdefault(fault.title, {})[context] = answer(fault, context)
    lines = [f" {json.dumps(title)}: {json.dumps(found)}" for title, found in answers.items()]
    RECORD.write_text(f'{{"jax": "{VERSION}", "answers": {{\n' + ",\n".join(lines) + "\n}}\n")


def recorded() -> dict[str, dict[str, Any]]:
    """What jax said, by fault and context."""
    return json.loads(RECORD.read_text())["answers"]  # type: ignore[no-any-return]
