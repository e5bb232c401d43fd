"""The public names of jax.lax and jax.lax.linalg that ours lack. `python -m tests.jax_names` prints them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

#: Names that stay missing, each with the reason.
EXCEPTIONS = {
    "device_put_p": "no program moves arrays: under jit, cj.device_put is the identity",
}


def public_names(module: Any) -> list[str]:
    """The names of a module without an underscore, but for modules that it has only imported."""
    return [name for name in dir(module) if not name.startswith("_") and (
        not isinstance(getattr(module, name), ModuleType) or name == "linalg")]


def missing(theirs: Any, ours: Any) -> list[str]:
    """The public names of one module that another lacks. A primitive, NAME_p, need not be in `dir(ours)`."""
    return [name for name in public_names(theirs) if not hasattr(ours, name)]


if __name__ == "__main__":
    from jax import lax as theirs

    from corejax import lax as ours

    found = missing(theirs, ours)
    print(f"{len(found)} of {len(public_names(theirs))} names of jax.lax are missing:", *found)
    lacking = missing(theirs.linalg, ours.linalg)
    print(f"{len(lacking)} of {len(public_names(theirs.linalg))} of jax.lax.linalg:", *lacking)
