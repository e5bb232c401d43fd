"""The rules for the primitives of each pack."""

from corejax_inverse import elementwise, moving

BASIC = {**elementwise.BASIC, **moving.BASIC}
SPECIAL, REDUCTIONS, CONTROL_FLOW = elementwise.SPECIAL, moving.REDUCTIONS, moving.CONTROL_FLOW

RULES = {
    "corejax-lax-basic/*:inverse": BASIC,
    "corejax-special/*:inverse": SPECIAL,
    "corejax-reductions/*:inverse": REDUCTIONS,
    "corejax-control-flow/*:inverse": CONTROL_FLOW,
}
