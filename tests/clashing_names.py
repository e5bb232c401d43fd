"""Programs over all primitives and all functions of corejax.numpy, as a module of a pack that requires their packs.

`tests/test_clashing_names.py` runs them with and without packs that have the same names: each line is to be the same.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import corejax as cj
from corejax import lax, numpy as jnp
from corejax.core import aval_of
from corejax.installed import registry
from corejax.plugin import find

#: What isn't the same in both: owners in front of primitives, and addresses.
LEFT_OUT = re.compile(r"\bcorejax-[a-z-]+/(?=\w)|0x[0-9a-f]+")


def said(what: str, program: Callable[[], object]) -> str:
    """A line about a program: its text, or the error that it raises."""
    try:
        found = program()
    except Exception as error:
        found = f"raises {type(error).__name__}: {error}".partition("\n")[0]
    return f"{what}: " + "".join(LEFT_OUT.sub("", str(found)).split())  # lines break elsewhere, as owners are long


def of_primitives(every: int) -> Iterator[str]:
    """The programs of rules: what samples stage, differentiated, transposed, mapped and lowered."""
    for pack in registry.installed().packs.values():
        names = [entry.name for entry in pack.entries if entry.group == "corejax.primitives"]
        for name in sorted(names)[::every] if pack.name.startswith("corejax-") else ():
            primitive, rng = find(f"{pack.name}/{name}"), np.random.default_rng(0)
            samples = [] if primitive.samples is None else [*primitive.samples(rng)]
            for sample in [each for each in samples if not each.error and not each.axes][:2]:
                yield from of_sample(f"{pack.name}/{name}", primitive, sample)


def of_sample(what: str, primitive, sample) -> Iterator[str]:
    args = [*sample.args]
    floats = [i for i, x in enumerate(args) if aval_of(x).dtype.kind in "fc"]

    def program(*given):
        full = dict(zip(floats, given, strict=True))
        found = primitive.bind(*[full.get(i, x) for i, x in enumerate(args)], **sample.params)
        return [*found] if primitive.multiple_results else [found]

    chosen = [np.asarray(args[i]) for i in floats]
    stacked = [np.stack([x, x]) for x in chosen]

    def gradient(*given):
        outs, pull = cj.vjp(program, *given)
        return pull([np.ones(out.shape, out.dtype if out.dtype.kind in "fc" else cj.float0) for out in outs])

    yield said(f"{what}", lambda: cj.make_jaxpr(program)(*chosen))
    yield said(f"{what} jvp", lambda: cj.make_jaxpr(lambda *xs: cj.jvp(program, xs, xs))(*chosen))
    yield said(f"{what} vjp", lambda: cj.make_jaxpr(gradient)(*chosen))
    yield said(f"{what} vmap", lambda: cj.make_jaxpr(cj.vmap(program))(*stacked))
    yield said(f"{what} lowered", lambda: cj.jit(program).lower(*chosen).as_text())
    yield said(f"{what} eager", lambda: program(*chosen))


def of_numpy(every: int) -> Iterator[str]:
    """The functions of corejax.numpy, of one and of two arrays; eagerly, staged and differentiated."""
    x, y = np.linspace(0.1, 0.9, 6).reshape(2, 3), np.linspace(0.3, 0.8, 6).reshape(2, 3)
    square = np.eye(3) + 0.1
    for module in (jnp, jnp.linalg, jnp.fft):
        for name in sorted(module.__all__)[::every]:
            function = getattr(module, name)
            if not callable(function) or isinstance(function, type):
                continue
            for operands in ((x,), (x, y), (square,), ([x, y],)):
                what = f"{module.__name__}.{name} of {len(operands)}"
                yield said(what, lambda: function(*operands))  # noqa: B023
                yield said(what, lambda: cj.make_jaxpr(lambda *xs: function(*xs))(*operands))  # noqa: B023
                yield said(what, lambda: cj.make_jaxpr(cj.grad(lambda *xs: jnp.sum(function(*xs))))(*operands))  # noqa: B023


def lines(every: int) -> list[str]:
    """All of it; of every so many names, one."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = [*of_primitives(every), *of_numpy(every)]
        found += [said(f"lax.{name}", lambda: getattr(lax, name).__module__) for name in sorted(dir(lax))  # noqa: B023
                  if any(entry.pack.name.startswith("corejax-") for entry in registry.installed().in_lax(name))]
        return found
