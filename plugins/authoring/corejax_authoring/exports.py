"""What the modules of a pack export, as the entry points that lead to it.

- A name in a module's `__all__` is public. A function with a `.primitive` is that primitive's entry point, and every
  public function is in `corejax.functions`. An `ElementType` is an element type, wherever it is; a `Setting` a
  setting; an `Effect` an effect; a `Transformation` a transformation, named as its hook.
- The public names of `roles.py` are roles, those of `operators.py` operators and array methods (`and_` fills the role
  `operators.and`), those of `numpy_tables.py` tables of NumPy functions, which are roles too, and those of `kernels.py`
  native kernels, named after the distribution.
- `RULES = {"corejax-special/erf:vmap": map_erf}` in a module says which of its rules are for primitives of other packs.
  A hook may be that of a transformation, and optional: `"corejax-special/erf:bounds?"`.
- `AT_TOP = ("pmap",)` in a module says which of its functions are `cj.NAME` rather than `cj.lax.NAME`, even if they
  are in a namespace too; `EXPERIMENTAL = ("io_callback",)` says which are `cj.experimental.NAME`. A primitive that is
  exported as `NAME_p` is no function: another one applies it. If NAME isn't its own, that is another name of the
  primitive: `while_p = while_loop` makes `lax.while_p` the primitive that `lax.while_loop_p` is.
- `NAMESPACE = "special"` makes a module `cj.special`; its functions are there, and not in `cj.lax`. If that module is
  the package, this goes for the functions of all of its modules. A tuple of names makes it several modules in one.

Modules whose names start with an underscore are private; a name that the package re-exports belongs to the module that
it comes from.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from corejax.distributions import (
    AT_TOP,
    DTYPES,
    EFFECTS,
    EXPERIMENTAL,
    FUNCTIONS,
    ITSELF,
    KERNELS,
    NAMESPACES,
    PRIMITIVES,
    ROLES,
    RULES,
    SETTINGS,
    TRANSFORMS,
    installed,
)
from corejax.errors import PackError, PluginError
from corejax.plugin import HOOKS, Effect, ElementType, Setting, extended, transforming
from corejax.rules import Target

if TYPE_CHECKING:
    from corejax.distributions import Pack

#: The modules whose public names are members of one group, with what each is called there.
MODULES: Final = {
    "roles": (ROLES, "{name}"),
    "numpy_tables": (ROLES, "{name}"),
    "operators": (ROLES, "operators.{bare}"),
    "kernels": (KERNELS, "{distribution}.{name}"),
}

#: For each group, the names with what they lead to, `module:attribute`.
Tables = dict[str, dict[str, str]]


def tables(modules: Sequence[ModuleType], distribution: str) -> Tables:
    """The tables of a pack, from its modules, of which the package itself comes last."""
    found: Tables = {group: {} for group in (
        PRIMITIVES, FUNCTIONS, NAMESPACES, ROLES, RULES, KERNELS, DTYPES, SETTINGS, EFFECTS, TRANSFORMS)}
    elsewhere: set[int] = set()  # what is no function of cj.lax, though it is public
    elsewhere_too: dict[int, str] = {}  # what functions have before their names
    all_elsewhere = bool(_namespaces(modules[-1]))
    hooks = _hooks(modules)
    for module in modules:
        for target, rule in _rules(module, hooks).items():
            found[RULES][target] = f"{module.__name__}:{_name_of_rule(module, target, rule)}"
            elsewhere.add(id(rule))
        for namespace in _namespaces(module):
            found[NAMESPACES][namespace] = module.__name__
            elsewhere |= {id(value) for _, value in _exports(module)}
        for variable, prefix in (("AT_TOP", AT_TOP), ("EXPERIMENTAL", EXPERIMENTAL)):
            elsewhere_too |= {id(value): prefix for value in _listed(module, variable)}
    for module in sorted(modules, key=lambda module: bool(_namespaces(module))):  # what is elsewhere belongs there
        for name, value in _exports(module):
            for group, member in _members(module, name, value, distribution):
                prefix = elsewhere_too.get(id(value), "") if group == FUNCTIONS else ""
                member = f"{prefix}{member}"
                if group != FUNCTIONS or prefix or not (all_elsewhere or id(value) in elsewhere):
                    found[group].setdefault(member, f"{module.__name__}:{name}")
    return {group: dict(sorted(table.items())) for group, table in found.items() if table}


def _members(module: ModuleType, name: str, value: Any, distribution: str) -> Iterator[tuple[str, str]]:
    """The groups that a public name belongs to, with its name there."""
    kind = module.__name__.rpartition(".")[2]
    if kind in MODULES:
        group, form = MODULES[kind]
        yield group, form.format(name=name, bare=name.rstrip("_"), distribution=distribution)
    elif isinstance(value, ElementType):
        yield DTYPES, value.name
    elif isinstance(value, type) and issubclass(value, extended):
        yield DTYPES, value.__name__
    elif isinstance(value, Effect):
        yield EFFECTS, value.name
    elif isinstance(value, Setting):
        yield SETTINGS, value.name
    elif isinstance(value, transforming.Transformation):
        yield TRANSFORMS, value.name
    elif callable(value):
        primitive = None if isinstance(value, type) else getattr(value, "primitive", None)
        means_itself = primitive is not None and name.endswith(ITSELF)
        if primitive is not None and (not means_itself or name == f"{primitive.name}{ITSELF}"):
            yield PRIMITIVES, primitive.name
        if primitive is None or name != f"{primitive.name}{ITSELF}":
            yield FUNCTIONS, name


def _exports(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in getattr(module, "__all__", ()):
        try:
            yield name, getattr(module, name)
        except AttributeError:
            raise PackError(f"{module.__name__}: __all__ names what isn't there", got=repr(name), where=module.__file__,
                            wanted="names of the module", todo="correct __all__") from None


def _name_of_rule(module: ModuleType, target: object, rule: object) -> str:
    """What the module calls a rule, so that an entry point can lead to it."""
    if not isinstance(target, str) or Target.parse(target) is None:
        raise PluginError(f"{module.__name__}: RULES has a key that isn't the name of a rule", got=repr(target),
                          where=module.__file__, wanted="distribution/primitive:hook, or distribution/*:hook",
                          todo="say whose primitive the rule is for, and which hook it is")
    for name, value in vars(module).items():
        if value is rule:
            return name
    raise PluginError(f"{module.__name__}: RULES has a rule without a name", got=repr(target), where=module.__file__,
                      wanted="a function or an object that the module has a name for",
                      todo="assign it to a name first: an entry point leads to a name")


def _hooks(modules: Sequence[ModuleType]) -> list[str]:
    """All hooks: the kernel's, and those of transformations that are installed or that these modules export."""
    own = [value.name for module in modules for _, value in _exports(module)
           if isinstance(value, transforming.Transformation)]
    return [*HOOKS, *installed().names(TRANSFORMS), *own]


def _rules(module: ModuleType, hooks: Collection[str]) -> Mapping[Any, object]:
    """A module's `RULES`, unless they are something of its own: no name among them looks like a rule's."""
    given = vars(module).get("RULES")
    return given if isinstance(given, Mapping) and any([_looks_like_a_rule(key, hooks) for key in given]) else {}


def _looks_like_a_rule(key: object, hooks: Collection[str]) -> bool:
    words = re.findall(r"\w+", key) if isinstance(key, str) else []
    return len(words) > 1 and ("/" in str(key) or words[-1] in hooks)


def _namespaces(module: ModuleType) -> list[str]:
    """A module's `NAMESPACE`, or several, unless that is something of its own."""
    given = vars(module).get("NAMESPACE")
    names = list(given) if isinstance(given, tuple) else [given]
    return [name for name in names if isinstance(name, str) and all(map(str.isidentifier, name.split(".")))]


def _listed(module: ModuleType, variable: str) -> Iterator[object]:
    """What a module's `AT_TOP` or `EXPERIMENTAL` names, unless that is something of its own."""
    names = vars(module).get(variable)
    for name in names if isinstance(names, (list, tuple)) else ():
        if not isinstance(name, str):
            continue
        if not hasattr(module, name):
            raise PackError(f"{module.__name__}: {variable} names what isn't there", got=repr(name),
                            where=module.__file__, wanted="names of the module", todo=f"correct {variable}")
        yield getattr(module, name)


# What an installed pack exports

def missing(pack: Pack) -> list[tuple[str, str]]:
    """The group and name of what the imported modules of a pack export and its installed entry points don't have.

    A function is only missed beside others of its module that are there, as modules may be for Python programs only,
    and not if another entry point leads to it: that of its primitive, or a role.
    """
    packages = {entry.module.partition(".")[0] for entry in pack.entries}
    declared = {(entry.group, entry.name) for entry in pack.entries}
    leading = {(entry.group, entry.module) for entry in pack.entries}
    known = {f"{entry.module}:{entry.attr}" for entry in pack.entries}
    found = []
    for package in sorted(packages):
        below = sorted([name for name in sys.modules if name.startswith(f"{package}.") and "._" not in name])
        modules = [sys.modules[name] for name in (*below, package) if isinstance(sys.modules.get(name), ModuleType)]
        for group, table in tables(modules, pack.name).items() if modules else ():
            for name, target in table.items():
                if (group, name) in declared:
                    continue
                beside = target not in known and (group, target.partition(":")[0]) in leading
                if beside or group not in (FUNCTIONS, ROLES):
                    found.append((group, name))
    return found
