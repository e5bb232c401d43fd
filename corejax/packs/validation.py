"""What a plugin object may contain: every public attribute is a hook, a declaration, or an error with a suggestion.

pluggy itself wouldn't notice an undecorated or misspelled hook.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pluggy

from corejax.base.errors import suggestion
from corejax.installed import manifest
from corejax.installed.groups import TRANSFORMS
from corejax.kernel import hookspecs
from corejax.kernel.declarations import Declaration, Partials
from corejax.kernel.hookspecs import API_VERSION, FOR_SEVERAL, HOOKS, WITHOUT_PARAMS
from corejax.kernel.transformations import Absent, Declared, Transformation
from corejax.packs.consistency import check_declaration, check_together, is_declaration
from corejax.packs.foreign import known_hooks
from corejax.packs.hook_signatures import Signature
from corejax.packs.source import Source

#: pluggy's options of a transformation's specification.
_FIRST: Any = {"firstresult": True, "historic": False, "warn_on_impl": None, "warn_on_impl_args": None}

#: pluggy's options of an implementation that isn't marked.
_UNMARKED: Any = {"wrapper": False, "hookwrapper": False, "optionalhook": False, "tryfirst": False, "trylast": False,
                  "specname": None}


class Manager(pluggy.PluginManager):
    """pluggy's manager for one primitive, which rejects plugins with unknown attributes.

    It knows the kernel's hooks, or that of one transformation: those of the others are left for when they are needed.
    """

    def __init__(self, transformation: Transformation | None = None) -> None:
        super().__init__("corejax")
        self.transformation = transformation
        self.hooks = HOOKS if transformation is None else {transformation.name: transformation.arguments}
        self.add_hookspecs(hookspecs if transformation is None else
                           type("spec", (), {transformation.name: staticmethod(transformation.spec)}))
        self.sources: dict[int, Source] = {}

    def add(self, source: Source) -> None:
        """Validate and register a plugin. An invalid one leaves no trace."""
        check_object(source)
        if id(source.plugin) in self.sources:
            raise source.error("the same object provides rules twice", got=repr(source.plugin),
                               wanted="one entry point for each plugin object", todo="remove one of the entry points")
        self.sources[id(source.plugin)] = source
        try:
            self.register(source.plugin, f"{source.origin} #{id(source)}")
            check_together(source)
        except (pluggy.PluginValidationError, ValueError) as error:
            raise source.error("pluggy rejects it", got=" ".join(str(error).split()),
                               todo="see pluggy's documentation of hook implementations") from None

    def remove(self, source: Source) -> None:
        """Remove a plugin, as if it had never been added."""
        if self.sources.get(id(source.plugin)) is source:
            del self.sources[id(source.plugin)]
            if self.is_registered(source.plugin):
                self.unregister(source.plugin)

    def parse_hookspec_opts(self, module_or_class: Any, name: str) -> Any:
        """pluggy's options of a hook spec. Overridden because pluggy would inspect the whole module, which is slow."""
        if name not in self.hooks:
            return None
        return super().parse_hookspec_opts(module_or_class, name) if self.transformation is None else _FIRST

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        """pluggy's options of a hook implementation; None for a declaration; an error for anything else."""
        if name.startswith("_"):
            return None
        source = self.sources[id(plugin)]
        options = super().parse_hookimpl_opts(plugin, name)
        if options is None and name == source.single and not isinstance(getattr(plugin, name), Declaration):
            options = _UNMARKED
        hook = options.get("specname") or name if options is not None else name
        if self._is_for_others(source, hook, options):
            source.others.append(hook)
            return None
        if options is None:
            check_declaration(source, name, self.transformation)
            return None
        if hook not in self.hooks:
            hooks = known_hooks()
            raise source.error(f"{hook!r} is not a hook", name, got=hook, wanted=f"one of: {', '.join(hooks)}",
                               todo=suggestion(hook, hooks) or "start the names of helpers with an underscore; for a "
                               "transformation that may not be installed, write @hookimpl(optionalhook=True)")
        if source.single not in (None, hook):
            raise source.error(f"its entry point is for {source.single}, and its mark for {hook}", name, got=hook,
                               wanted=source.single, todo="leave the mark out, or name the hook in the entry point")
        if options.get("hookwrapper"):
            raise source.error("old-style wrappers are not supported", name, got="hookwrapper=True",
                               wanted="hookimpl(wrapper=True)", todo="yield once and return the result")
        method = getattr(plugin, name)
        signature = source.signatures[method] = check_signature(source, hook, name, method, self.hooks[hook])
        source.found.append((hook, bool(options.get("wrapper")), signature))
        return options

    def _is_for_others(self, source: Source, hook: str, options: Any) -> bool:
        """Is it for a hook that isn't resolved now: the kernel's, a transformation's, or one that isn't installed?"""
        if hook in self.hooks:
            return False
        if self.transformation is not None and (hook in HOOKS or options is None and not is_declaration(source, hook)):
            return True
        if hook in HOOKS:
            return False
        declared = getattr(source.plugin, hook, None)
        if options is not None:
            optional = bool(options.get("optionalhook"))
        else:
            optional = (isinstance(declared, Declared) and declared.hook == hook) or (
                isinstance(declared, Absent) and declared.optional)
        return optional or hook in manifest.read().names(TRANSFORMS)


def check_object(source: Source) -> None:
    """Check that the plugin is an instance, has the right name, and is for a contract that this kernel knows."""
    plugin = source.plugin
    if isinstance(plugin, (type, ModuleType)):
        what = "class" if isinstance(plugin, type) else "module"
        raise source.error(f"a plugin must be an instance, not a {what}", got=repr(plugin),
                           wanted="an object with hooks", todo="make an instance of a class: define(MyPrimitive())")
    if hasattr(plugin, "primitive") and callable(plugin):
        raise source.error("a primitive's function provides no rules", got=repr(plugin), wanted="an object with hooks",
                           todo="name the plugin object itself, without define")
    version = getattr(plugin, "api_version", API_VERSION)
    if version != API_VERSION:
        raise source.error("it is written for another version of the plugin contract", got=f"api_version = {version!r}",
                           wanted=f"api_version = {API_VERSION}",
                           todo="install versions of the pack and of corejax that match")
    if not source.is_owner and getattr(plugin, "name", source.primitive) != source.primitive:
        raise source.error("the rules and their entry point name different primitives", got=plugin.name,
                           wanted=source.primitive, todo="make both the primitive's name, or leave `name` out")


def check_signature(source: Source, hook: str, name: str, method: Any, arguments: Sequence[str]) -> Signature:
    """Check that a hook takes these positional arguments, or fewer, and params by keyword only."""
    signature = Signature.of(method)
    wanted = f"def {name}({', '.join(('self', *arguments, *(() if hook in WITHOUT_PARAMS else ('*', '...'))))})"
    got = f"def {name}{signature}"
    strangers = [arg for arg in signature.positional if arg not in arguments]
    if strangers:
        near = suggestion(strangers[0], arguments)
        raise source.error(f"it takes an argument {strangers[0]!r} that this hook isn't given", name, got=got,
                           wanted=wanted,
                           todo=near or "name the arguments as in the hook; params are keyword-only, after a `*`")
    if signature.spread:
        raise source.error("operands come as one sequence", name, got=got, wanted=wanted,
                           todo="take `args`, not `*args`")
    if hook in WITHOUT_PARAMS and (signature.keywords or signature.open):
        raise source.error("this hook is given no params", name, got=got, wanted=wanted, todo="read eqn.params instead")
    return signature


def check_fit(source: Source, params: Signature, several: bool, count: int | None) -> None:
    """Check that hooks only read the primitive's params, none with an argument's name, and suit its results.

    There are as many derivatives as operands, if `count` says how many it has.
    """
    jvp = source.declared.get("jvp")
    if count is not None and isinstance(jvp, Partials) and len(jvp.functions) != count:
        raise source.error("declares derivatives for a different number of operands", "jvp",
                           got=f"{len(jvp.functions)} in its partials or factors",
                           wanted=f"{count}, one for each operand",
                           todo="declare one function for each operand, None where the derivative is zero")
    for hook, _, signature in source.found:
        if hook in FOR_SEVERAL and not several:
            raise source.error("this hook is for primitives with several results", hook, got="multiple_results = False",
                               wanted="multiple_results = True", todo="return a sequence of one, and declare "
                               "multiple_results = True; or write impl and xla_translation instead")
        unknown = [name for name in signature.keywords if name not in params.keywords]
        if unknown and not params.open:
            raise source.error(
                f"it reads a param {unknown[0]!r} that the primitive doesn't have", hook, got=f"def {hook}{signature}",
                wanted=f"params among: {', '.join(params.keywords) or 'none'}",
                todo=suggestion(unknown[0], params.keywords) or
                "a primitive's params are the keyword-only arguments of abstract_eval (else of decompose): add it there"
                if source.is_owner else "name params of the primitive, or read `**params`")
        clash = sorted(set(signature.positional) & set(params.keywords))
        if clash:
            raise source.error(
                f"its argument {clash[0]!r} has the name of a param", hook, got=f"def {hook}{signature}",
                wanted=f"a param with another name, or a hook without the argument {clash[0]!r}",
                todo="rename the param; or leave the argument out of the hook and read what it needs from the operands")
