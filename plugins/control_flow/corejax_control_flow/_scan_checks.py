"""What primitives like scan check of their operands."""

from __future__ import annotations

from collections.abc import Sequence

from corejax.core import ShapedArray, here
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax_control_flow._scan_body import Body
from corejax_control_flow._types import all_fit, text_of


def check_scan(primitive: str, body: Body, avals: Sequence[ShapedArray], wanted: Sequence[ShapedArray], **counts: int
               ) -> None:
    """Raise if the operands don't have the wanted types, the body returns another carry than it takes, or a count is
    less than 1."""
    for name, count in counts.items():
        if count < 1:
            raise CorejaxValueError(f"{primitive}: {name} is too small", primitive=primitive, where=here(), got=count,
                                    wanted="at least 1", todo=f"check how {name} is computed")
    if min(body.num_consts, body.num_carry) < 0 or body.first_input > len(body.jaxpr.invars) or (
            body.num_carry > len(body.jaxpr.outvars)):
        raise CorejaxValueError(f"{primitive}: the numbers of operands don't fit the body", primitive=primitive,
                                where=here(), got=(body.num_consts, body.num_carry),
                                wanted=f"numbers of constants and of carries among {len(body.jaxpr.invars)} inputs",
                                todo="count the first operands, and those after them")
    if not all_fit(avals, wanted):
        raise CorejaxTypeError(f"{primitive}: the operands don't fit the body", primitive=primitive, where=here(),
                               got=text_of(avals, "no operands"), wanted=text_of(wanted, "no operands"),
                               todo="pass constants, carry, and inputs with one slice for each step")
    _, carry, _ = body.operands(body.jaxpr.in_avals)
    out, _ = body.results(body.jaxpr.out_avals)
    if not all_fit(out, carry):
        raise CorejaxTypeError(f"{primitive}: the body returns a different carry than it takes", primitive=primitive,
                               where=here(), got=text_of(out), wanted=text_of(carry))
