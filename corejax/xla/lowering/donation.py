"""Which results reuse the memory of donated arguments."""

from __future__ import annotations

from typing import Any

from corejax.kernel.jaxpr import Jaxpr


def donation(ir: Any, offset: int, jaxpr: Jaxpr, donated: frozenset[int]) -> list[Any]:
    """Argument attributes that let an output of the same type reuse a donated argument's memory."""
    free_outs = dict(enumerate(jaxpr.out_avals))
    attributes = [ir.DictAttr.get({})] * offset
    for index, aval in enumerate(jaxpr.in_avals):
        entry = {}
        if index in donated:
            out = next((i for i, other in free_outs.items() if other.matches(aval)), None)
            if out is None:
                entry = {"jax.buffer_donor": ir.BoolAttr.get(True)}
            else:
                del free_outs[out]
                entry = {"tf.aliasing_output": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), out)}
        attributes.append(ir.DictAttr.get(entry))
    return attributes
