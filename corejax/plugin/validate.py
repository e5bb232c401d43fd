"""What a plugin object may hold: every public attribute is a hook, a declaration, or an error with a suggestion.

pluggy by itself lets an undecorated or misspelled hook pass.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import pluggy

from corejax.errors import PluginError
from corejax.plugin import API_VERSION, hookspecs, registry
from corejax.plugin.adapters import Signature
from corejax.plugin.declarations import Declaration, Linearity, NotDifferentiable, NotLinear, Partials
from corejax.plugin.hookspecs import HOOKS, WITHOUT_PARAMS

OWNER_DECLARATIONS = frozenset(("name", "multiple_results", "symbolic_zeros", "linear", "function", "api_version"))
RULES_DECLARATIONS = frozenset(("name", "linear", "platform", "symbolic_zeros", "api_version"))
_DECLARABLE: dict[str, tuple[type, ...]] = {"jvp": (Partials, Linearity, NotDifferentiable), "transpose": (NotLinear,)}


class Source:
    """A plugin object, and who provides it."""

    __slots__ = ("declared", "is_owner", "linear", "origin", "pack", "plugin", "primitive")

    def __init__(self, plugin: Any, primitive: str, pack: str | None, origin: str, is_owner: bool) -> None:
        self.plugin = plugin
        self.primitive = primitive
        self.pack = pack
        self.origin = origin
        self.is_owner = is_owner
        self.declared: dict[str, Declaration] = {}
        self.linear: tuple[int, ...] | None = None

    @property
    def platform(self) -> str | None:
        return None if self.is_owner else getattr(self.plugin, "platform", None)

    def error(self, problem: str, hook: str | None = None, **parts: Any) -> PluginError:
        """The error for this plugin; it says where its class, or the hook, is defined."""
        at = getattr(getattr(self.plugin, hook, None), "__code__", None) if hook else None
        where = f"{at.co_filename}:{at.co_firstlineno}" if at else _place_of(type(self.plugin))
        dotted = f"{self.primitive}.{hook}" if hook else self.primitive
        return PluginError(f"{dotted} ({self.origin}): {problem}", primitive=self.primitive, hook=hook,
                           pack=self.origin, where=where, **parts)


def _place_of(kind: type) -> str:
    try:
        return f"{inspect.getsourcefile(kind)}:{inspect.getsourcelines(kind)[1]}"
    except (OSError, TypeError):  # made where there is no file
        return f"{kind.__module__}.{kind.__qualname__}"


class Manager(pluggy.PluginManager):
    """pluggy's manager for one primitive, which lets no attribute of a plugin pass that it doesn't know."""

    def __init__(self) -> None:
        super().__init__("corejax")
        self.add_hookspecs(hookspecs)
        self.sources: dict[int, Source] = {}

    def add(self, source: Source) -> None:
        """Validate and register a plugin; an invalid one leaves no trace."""
        check_object(source)
        self.sources[id(source.plugin)] = source
        self.register(source.plugin, f"{source.origin} #{len(self.sources)}")

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        """pluggy's options of a hook spec; it would inspect everything else in the module too, which takes longer."""
        return super().parse_hookspec_opts(module_or_class, name) if name in HOOKS else None

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> Any:
        """pluggy's options of a hook implementation; None for a declaration; an error for anything else."""
        if name.startswith("_"):
            return None
        source = self.sources[id(plugin)]
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None:
            check_declaration(source, name)
            return None
        hook = options.get("specname") or name
        if hook not in HOOKS:
            raise source.error(f"{hook!r} is not a hook", name, got=hook, wanted=f"one of: {', '.join(HOOKS)}",
                               todo=registry.suggestion(hook, HOOKS) or "begin helpers with an underscore")
        if options.get("hookwrapper"):
            raise source.error("old-style wrappers are not supported", name, got="hookwrapper=True",
                               wanted="hookimpl(wrapper=True)", todo="yield once and return the result")
        check_signature(source, hook, name)
        return options


def check_object(source: Source) -> None:
    """It is an instance that declares a name and a contract that this kernel knows."""
    plugin = source.plugin
    if isinstance(plugin, (type, ModuleType)):
        what = "class" if isinstance(plugin, type) else "module"
        raise source.error(f"a plugin is an instance, not a {what}", got=repr(plugin),
                           wanted="an object with hooks", todo="make an instance of a class: define(MyPrimitive())")
    version = getattr(plugin, "api_version", API_VERSION)
    if version != API_VERSION:
        raise source.error("it is written for another version of the plugin contract", got=f"api_version = {version!r}",
                           wanted=f"api_version = {API_VERSION}", todo="install a pack and a corejax that agree")
    if not source.is_owner and getattr(plugin, "name", source.primitive) != source.primitive:
        raise source.error("the rules name another primitive than their entry point", got=plugin.name,
                           wanted=source.primitive, todo="make both the primitive's name")


def check_declaration(source: Source, name: str) -> None:
    """A public attribute that is no hook implementation is a declaration in its place, of the right type."""
    value = getattr(source.plugin, name)
    known = OWNER_DECLARATIONS if source.is_owner else RULES_DECLARATIONS
    if name in HOOKS:
        allowed = _DECLARABLE.get(name, ())
        if name == "jvp" and isinstance(value, Linearity):
            source.linear = value.operands
            return
        if isinstance(value, Declaration) and isinstance(value, allowed):
            source.declared[name] = value
            return
        if callable(value):
            raise source.error("it is not marked as a hook", name, got=f"def {name}(...)",
                               wanted=f"@hookimpl def {name}(...)", todo="decorate it with corejax.plugin.hookimpl")
        jvps = "partials(...), factors(...), linear(...) or not_differentiable(reason)"
        names = jvps if name == "jvp" else "not_linear(reason)"
        raise source.error("it is neither a rule nor a declaration", name, got=repr(value),
                           wanted="a method marked with @hookimpl" + (f", or {names}" if allowed else ""),
                           todo="leave the attribute out if there is no such rule")
    if name not in known:
        raise source.error(f"{name!r} is neither a hook nor a declaration", name, got=name,
                           wanted=f"a hook ({', '.join(HOOKS)}) or a declaration ({', '.join(sorted(known))})",
                           todo=registry.suggestion(name, (*HOOKS, *known)) or "begin helpers with an underscore")
    if name in ("multiple_results", "symbolic_zeros") and not isinstance(value, bool):
        raise source.error(f"{name} is True or False", got=repr(value), wanted="a bool", todo="declare True or False")
    if name == "linear":
        operands = value.operands if isinstance(value, Linearity) else value
        if not isinstance(operands, tuple) or not all(type(i) is int and i >= 0 for i in operands):
            raise source.error("linear names operands", got=repr(value), wanted="a tuple of operand numbers, as (0,)",
                               todo="write linear = (0,)")
        source.linear = operands


def check_signature(source: Source, hook: str, name: str) -> Signature:
    """A hook takes the positional arguments of its spec, or fewer, and params by keyword only."""
    signature = Signature.of(getattr(source.plugin, name))
    wanted = f"def {name}({', '.join(('self', *HOOKS[hook], *(() if hook in WITHOUT_PARAMS else ('*', '...'))))})"
    got = f"def {name}{signature}"
    strangers = [arg for arg in signature.positional if arg not in HOOKS[hook]]
    if strangers:
        near = registry.suggestion(strangers[0], HOOKS[hook])
        raise source.error(f"it takes an argument {strangers[0]!r} that this hook isn't given", name, got=got,
                           wanted=wanted,
                           todo=near or "name the arguments as in the hook; params are keyword-only, after a `*`")
    if signature.spread:
        raise source.error("operands come as one sequence", name, got=got, wanted=wanted,
                           todo="take `args`, not `*args`")
    if hook in WITHOUT_PARAMS and (signature.keywords or signature.open):
        raise source.error("this hook is given no params", name, got=got, wanted=wanted, todo="read eqn.params instead")
    return signature
