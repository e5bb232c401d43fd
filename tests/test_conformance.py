"""The shipped packs keep the laws of the conformance kit: the quick mode for all primitives, the full one for a spread.

`pytest --corejax-full -m corejax --corejax-pack NAME` runs the full mode for all of a pack, and takes long.
"""

from __future__ import annotations

import pytest

from corejax.testing import check_primitive
from corejax.testing.running import primitives_of
from exhaustive import exhaustive_unless

PACKS = ("corejax-lax-basic", "corejax-reductions", "corejax-control-flow", "corejax-softplus")
PRIMITIVES = [name for pack in PACKS for name in primitives_of(pack)]

#: Of each way to write a primitive one; `make test` has two of them in the full mode.
SPREAD = ("exp", "mul", "eq", "select_n", "convert_element_type", "dot_general", "gather", "dynamic_slice",
          "concatenate", "broadcast_in_dim", "reduce_max", "argmax", "cond", "checkpoint_call", "custom_call",
          "softplus")


# One test for each primitive and not for each check: the checks of a primitive share what they compile.
@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_rules_keep_the_laws(primitive: str) -> None:
    check_primitive(primitive)


@pytest.mark.slow
@pytest.mark.parametrize("primitive", exhaustive_unless(lambda name: name in ("exp", "argmax"), SPREAD))
def test_rules_keep_the_laws_of_the_full_mode(primitive: str) -> None:
    check_primitive(primitive, full=True)
