"""All checks of what rules return to the kernel.

Each `check_*` returns the result in the kernel's form, or raises a `RuleError` that names the primitive, the hook, the
pack, what was returned and what was wanted. The other functions make such errors.
"""

from corejax.kernel.checks.blame import (
    Blamed,
    describe,
    failed,
    of_user,
    rule_error,
    whose,
)
from corejax.kernel.checks.equations import (
    WHOLE_RESULTS,
    check_effects_allowed,
    checked,
    refuse,
)
from corejax.kernel.checks.forms import (
    check_avals,
    check_elements,
    check_jvp_pair,
    check_linearized,
    check_list,
    check_made,
    check_sequence,
    check_types,
    no_array,
    no_host_array,
    wrong_count,
    wrong_count_of_partials,
    wrong_host_array,
)
from corejax.kernel.checks.lowerings import (
    check_called_back,
    check_open,
    failed_lowering,
    failed_rule,
    foreign_value,
    tokens_left_behind,
    undeclared_effects,
    wrong_lowering,
)
from corejax.kernel.checks.values import (
    check_array,
    check_batched,
    check_cotangent,
    check_factor,
    check_home,
    check_no_cotangent,
    check_outputs,
    check_tangent,
    check_value,
)

__all__ = [
    "Blamed",
    "WHOLE_RESULTS",
    "check_array",
    "check_avals",
    "check_effects_allowed",
    "check_elements",
    "check_made",
    "check_batched",
    "check_called_back",
    "check_cotangent",
    "check_factor",
    "check_home",
    "check_jvp_pair",
    "check_linearized",
    "check_list",
    "check_no_cotangent",
    "check_open",
    "check_outputs",
    "check_sequence",
    "check_tangent",
    "check_types",
    "check_value",
    "checked",
    "describe",
    "failed",
    "failed_lowering",
    "failed_rule",
    "foreign_value",
    "no_array",
    "no_host_array",
    "of_user",
    "refuse",
    "rule_error",
    "tokens_left_behind",
    "undeclared_effects",
    "whose",
    "wrong_count",
    "wrong_count_of_partials",
    "wrong_host_array",
    "wrong_lowering",
]
