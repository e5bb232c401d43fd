"""The modes: what programs are made of, and what they are compared with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import corejax as cj

from .asking import Asked, Consistent
from .clashing import Clashing
from .closures import CLOSURES, MASKS_AND_INTEGERS
from .expressions import NUMPY, hashes
from .making import USUAL, Flavour
from .oracles import Itself, Jax, Oracle, Staged
from .programs import Program, program as made
from .saving import NAMED, SAVING


@dataclass(frozen=True)
class Mode:
    """Programs with something special; `oracles` make what they are compared with, by its name."""

    doc: str
    oracles: dict[str, Callable[[], Oracle]]
    flavour: Flavour = USUAL
    depth: int = 2

    def program(self, seed: int) -> Program:
        """The program of a seed."""
        return made(seed, self.depth, self.flavour)

    def against(self, name: str) -> str:
        """That oracle, or the only one that there is."""
        return name if name in self.oracles else next(iter(self.oracles))

    def oracle(self, name: str) -> Oracle:
        """Numbers of this process are as wide from now on as those of the programs."""
        cj.config.default_bits = self.flavour.bits
        return self.oracles[self.against(name)]()


MODES = {
    "usual": Mode("control flow, custom rules and transformations over mixed types", {"jax": Jax, "itself": Itself}),
    "closures": Mode("custom rules that close over values of the levels around them, with staged functions between",
                     {"jax": Staged, "itself": Itself}, Flavour(MASKS_AND_INTEGERS, kinds=CLOSURES, transformations=2)),
    "memory": Mode("checkpoints with policies, around and within whatever else there is, and bounded loops",
                   {"jax": Staged, "itself": Itself}, Flavour(tables=(NAMED, NAMED), kinds=SAVING)),
    "bits32": Mode("numbers of 32 bits by default, hashes of words as wide, and functions of jnp",
                   {"jax": lambda: Staged(32), "itself": Itself},
                   Flavour(("d",), (*[hashes(32)] * 4, NUMPY), bits=32, transformations=1), depth=1),
    "bits64": Mode("hashes of words of 64 bits, and functions of jnp", {"jax": Staged, "itself": Itself},
                   Flavour(("d",), (*[hashes(64)] * 4, NUMPY), transformations=1), depth=1),
    "types": Mode("what types results have, asked with ShapeDtypeStructs", {"jax": Asked, "itself": Consistent},
                  Flavour(tables=(NUMPY, NUMPY), transformations=1)),
    "clashes": Mode("the same where installed packs bring all names of the standard packs again, bit for bit",
                    {"itself": Clashing}, Flavour(tables=(NUMPY, NUMPY), transformations=2)),
}
