"""What pack authors import.

>>> from corejax.plugin import define, hookimpl
>>> class Twice:
...     name = "twice"
...     @hookimpl
...     def decompose(self, args):
...         return args[0] + args[0]
>>> twice = define(Twice())
>>> twice.primitive
twice

Names are resolved on first use, so importing corejax loads neither pluggy nor the metadata of installed distributions.
"""

from typing import TYPE_CHECKING

from corejax.base.facades import facade

if TYPE_CHECKING:
    from corejax.api.autodiff import vjp as vjp
    from corejax.api.jit import jit as jit
    from corejax.api.staging import abstract_leaves as abstract_leaves, make_jaxpr as make_jaxpr
    from corejax.api.topology import devices as devices
    from corejax.api.wrappers import checkpoint as checkpoint, custom_jvp as custom_jvp, custom_vjp as custom_vjp
    from corejax.arrays.datamodel import PYTHON_OPERATORS as PYTHON_OPERATORS
    from corejax.base import settings as settings, structures as structures
    from corejax.base.avals import Linear as Linear, Zero as Zero
    from corejax.base.config import Setting as Setting
    from corejax.base.effects import Effect as Effect
    from corejax.base.elements import ElementType as ElementType, extended as extended
    from corejax.base.facades import namespace as namespace
    from corejax.base.holders import (
        HeldError as HeldError,
        Holder as Holder,
        HolderType as HolderType,
        as_users_see as as_users_see,
    )
    from corejax.base.source import add_library_package as add_library_package
    from corejax.base.tracebacks import calls_users as calls_users, public as public
    from corejax.eager.direct import NotDirectly as NotDirectly, directly as directly
    from corejax.installed.registry import load, names_in
    from corejax.installed.roles import operators as operators, provide as provide, roles as roles
    from corejax.interpreters import carrying as carrying
    from corejax.kernel.declarations import (
        NotDifferentiable as NotDifferentiable,
        NotLinear as NotLinear,
        Partials as Partials,
        Sample as Sample,
        factors as factors,
        hookimpl as hookimpl,
        itself as itself,
        linear as linear,
        not_differentiable as not_differentiable,
        not_linear as not_linear,
        over as over,
        partials as partials,
        per_operand as per_operand,
    )
    from corejax.kernel.hookspecs import API_VERSION as API_VERSION, HOOKS as HOOKS
    from corejax.kernel.primitive import Function as Function, Primitive as Primitive
    from corejax.packs import (
        elements as elements,
        families as families,
        shaping as shaping,
        transforming as transforming,
    )
    from corejax.packs.define import define as define, find as find
    from corejax.packs.extending import extend as extend
    from corejax.packs.failures import failures_are_errors as failures_are_errors
    from corejax.packs.shaping import refused as refused
    from corejax.xla.runtime import peers as peers
    from corejax.xla.runtime.builtin import pjrt_client as pjrt_client
    from corejax.xla.runtime.kernels import Kernel as Kernel

    load_entry_point, entry_point_names = load, names_in
else:  # so that type checkers refuse names that aren't there
    __all__, __getattr__, __dir__ = facade(__name__, {
        "corejax.api.topology": "devices",
        "corejax.api.jit": "jit",
        "corejax.api.autodiff": "vjp",
        "corejax.api.staging": "abstract_leaves make_jaxpr",
        "corejax.api.wrappers": "checkpoint custom_jvp custom_vjp",
        "corejax.arrays.datamodel": "PYTHON_OPERATORS",
        "corejax.base.avals": "Linear Zero",
        "corejax.base.config": "Setting",
        "corejax.base.effects": "Effect",
        "corejax.base.holders": "HeldError Holder HolderType as_users_see",
        "corejax.base.elements": "ElementType extended",
        "corejax.base.facades": "namespace",
        "corejax.base.settings": "=settings",
        "corejax.base.source": "add_library_package",
        "corejax.base.structures": "=structures",
        "corejax.base.tracebacks": "calls_users public",
        "corejax.eager.direct": "NotDirectly directly",
        "corejax.installed.registry": "load=load_entry_point names_in=entry_point_names",
        "corejax.installed.roles": "operators provide roles",
        "corejax.interpreters.carrying": "=carrying",
        "corejax.kernel.declarations":
            "NotDifferentiable NotLinear Partials Sample factors hookimpl itself linear not_differentiable "
            "not_linear over partials per_operand",
        "corejax.kernel.hookspecs": "API_VERSION HOOKS",
        "corejax.kernel.primitive": "Function Primitive",
        "corejax.packs.define": "define find",
        "corejax.packs.elements": "=elements",
        "corejax.packs.extending": "extend",
        "corejax.packs.failures": "failures_are_errors",
        "corejax.packs.families": "=families",
        "corejax.packs.shaping": "refused =shaping",
        "corejax.packs.transforming": "=transforming",
        "corejax.xla.runtime.builtin": "pjrt_client",
        "corejax.xla.runtime.kernels": "Kernel",
        "corejax.xla.runtime.peers": "=peers",
    })
