"""What is installed: packs, their entry points, and who provides what. For tools that look at packs as a whole.

>>> from corejax.distributions import PRIMITIVES, installed
>>> [entry.pack.name for entry in installed().providers(PRIMITIVES, "sin")]
['corejax-lax-basic']
"""

from typing import TYPE_CHECKING

from corejax.base.facades import facade

if TYPE_CHECKING:
    from corejax.inspect.answers import Problem as Problem
    from corejax.installed import requirements
    from corejax.installed.contents import NOT_DISTRIBUTED as NOT_DISTRIBUTED
    from corejax.installed.distributions import Entry as Entry, Pack as Pack
    from corejax.installed.groups import (
        AT_TOP as AT_TOP,
        CHECKS as CHECKS,
        COMMANDS as COMMANDS,
        DTYPES as DTYPES,
        EFFECTS as EFFECTS,
        EXPERIMENTAL as EXPERIMENTAL,
        FUNCTIONS as FUNCTIONS,
        GROUPS as GROUPS,
        ITSELF as ITSELF,
        KERNELS as KERNELS,
        NAMESPACES as NAMESPACES,
        PRIMITIVES as PRIMITIVES,
        ROLES as ROLES,
        RULES as RULES,
        SETTINGS as SETTINGS,
        TABLES as TABLES,
        TRANSFORMS as TRANSFORMS,
        counted as counted,
        noun as noun,
        place as place,
    )
    from corejax.installed.manifest import (
        Manifest as Manifest,
        bringing as bringing,
        distribution as distribution,
        standard as standard,
    )
    from corejax.installed.namespaces import is_reserved as is_reserved
    from corejax.installed.registry import (
        broken as broken,
        installed as installed,
        load as load,
        load_entry as load_entry,
        words as words,
    )
    from corejax.installed.requirements import Requirement as Requirement, canonical as canonical

    parse_requirements = requirements.parse
else:  # so that type checkers refuse names that aren't there
    __all__, __getattr__, __dir__ = facade(__name__, {
        "corejax.inspect.answers": "Problem",
        "corejax.installed.contents": "NOT_DISTRIBUTED",
        "corejax.installed.distributions": "Entry Pack",
        "corejax.installed.groups":
            "AT_TOP CHECKS COMMANDS DTYPES EFFECTS EXPERIMENTAL FUNCTIONS GROUPS ITSELF KERNELS NAMESPACES "
            "PRIMITIVES ROLES RULES SETTINGS TABLES TRANSFORMS counted noun place",
        "corejax.installed.manifest": "Manifest bringing distribution standard",
        "corejax.installed.namespaces": "is_reserved",
        "corejax.installed.registry": "broken installed load load_entry words",
        "corejax.installed.requirements": "Requirement canonical parse=parse_requirements",
    })
