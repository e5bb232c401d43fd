"""Runs programs that use broken packs, in a Python of their own, and prints what came of each as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import os
import re
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import corejax as cj
from corejax import lax
from corejax.errors import PackError
from corejax.inspect import cli
from corejax.installed import groups, registry
from corejax.plugin import Primitive, roles

FILE = "model.py"
NAMES = {"cj": cj, "lax": lax, "np": np, "roles": roles, "time": time, "PackError": PackError,
         "ThreadPoolExecutor": ThreadPoolExecutor}


def run(code: str) -> dict[str, Any]:
    """What a program prints, warns of and raises."""
    *before, last = code.splitlines(keepends=True)
    if not last.startswith(" "):  # the value of the last line is what the program gives
        last = f"_value = {last}"
    linecache.cache[FILE] = (len(code), None, code.splitlines(True), FILE)
    printed, names, error = io.StringIO(), {"__name__": "model", **NAMES}, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile("".join([*before, last]), FILE, "exec", dont_inherit=True), names)
            except BaseException as raised:
                error = raised
    value = "" if "_value" not in names else str(names["_value"])
    cause = error.__cause__ if error is not None else None
    return {"error": None if error is None else type(error).__name__,
            "host": error is None or isinstance(error, (Exception, KeyboardInterrupt)),
            "printed": printed.getvalue(), "message": value if error is None else text_of(error),
            "cause": None if cause is None else type(cause).__name__, "identity": id(cause),
            "warned": [str(w.message) for w in caught if w.category.__name__ == "CorejaxWarning"]}


def text_of(error: BaseException) -> str:
    """The text of an error with its notes."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return "\n".join([text, *getattr(error, "__notes__", ())]).strip()


def command(*arguments: str) -> tuple[int, str]:
    """Exit status and output of `python -m corejax`."""
    printed = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        warnings.simplefilter("ignore")
        status = cli.main(arguments)
    return status, printed.getvalue()


def probe(fault: dict[str, Any], number: int, site: str) -> dict[str, Any]:
    """Use a broken pack twice, and look at everything else after that."""
    before = dict(sys.modules)
    found = {"first": run(fault["code"]), "second": run(fault["code"])}
    own = {name for name in sys.modules if name.partition(".")[0] in fault["packages"]}
    found["left"] = sorted({name.partition(".")[0] for name in own})
    found["changed"] = sorted(name for name, module in before.items() if sys.modules.get(name) is not module)
    found["strangers"] = sorted(
        name for name, module in list(sys.modules.items()) if name not in before and name not in own
        and str(getattr(module, "__file__", "")).startswith(site))
    kept = registry._objects | {entry[:2]: value for entry, value in registry._of_entries.items()}
    found["kept"] = sorted(f"{group} {name}" for group, name in kept
                           if any(entry.split(" = ")[0] == name for entry in fault["entries"]))
    found["frozen"] = sorted(
        name for (group, name), value in kept.items() if group == groups.PRIMITIVES
        and f"corejax.primitives {name}" in found["kept"] and type(getattr(value, "primitive", None)) is Primitive)
    found["beside"] = float(getattr(lax, f"beside_{number}")(1.0))
    found["good"] = float(lax.good(1.0)), float(cj.grad(cj.jit(lax.best))(1.0))
    found["plugins"] = command("plugins")
    found["explained"] = command("explain", fault["explain"]) if fault["explain"] else None
    found["explained_good"] = command("explain", "good")[0]
    return found


def main() -> None:
    """Faults come as JSON from standard input."""
    task = json.load(sys.stdin)
    site = task["site"]
    early = run("lax.good(1.0)\n")
    found = {fault["title"]: probe(fault, fault["number"], site) for fault in task["faults"]}
    for outcome in found.values():
        for name in ("first", "second"):
            outcome[name]["warned"] = list(outcome[name]["warned"])
    text = json.dumps({"early": early, "faults": found, "broken": registry.broken()})
    sys.__stdout__.write(re.sub(r"0x[0-9a-f]{6,}", "0x...", text.replace(json.dumps(site)[1:-1], "site-packages")))
    sys.__stdout__.flush()
    os._exit(0)  # a thread may hang, by design


if __name__ == "__main__":
    main()
