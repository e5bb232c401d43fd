"""Checks of declarations: the kernel knows each one, and none contradicts another or a rule."""

from __future__ import annotations

from keyword import iskeyword

from corejax.base.errors import kind_of, suggestion
from corejax.installed import manifest, requirements
from corejax.kernel.declarations import (
    OWNER_DECLARATIONS,
    Declaration,
    Factors,
    Linearity,
    NotDifferentiable,
    NotLinear,
    Partials,
    factors,
    itself,
    linear,
    not_differentiable,
    not_linear,
    partials,
    per_operand,
)
from corejax.kernel.hookspecs import HOOKS
from corejax.kernel.transformations import Absent, Transformation
from corejax.packs.hook_signatures import place_of, takes
from corejax.packs.source import Source

RULES_DECLARATIONS = frozenset(("name", "linear", "platform", "symbolic_zeros", "api_version"))
_FLAGS = ("multiple_results", "symbolic_zeros", "cheap", "structural", "tracks_varying")
#: How programs among params run, if not exactly once.
HOLDS = ("branch", "loop", "recomputed", "rule")
PLATFORMS = ("cpu", "cuda", "gpu", "rocm", "tpu")
_MAKERS = (factors, linear, not_differentiable, not_linear, partials, per_operand)
_DECLARABLE: dict[str, tuple[type, ...]] = {"jvp": (Partials, Linearity, NotDifferentiable), "transpose": (NotLinear,)}


def is_declaration(source: Source, name: str) -> bool:
    """Whether a public attribute has the name of a declaration, other than in the place of a hook."""
    return name in (OWNER_DECLARATIONS if source.is_owner else RULES_DECLARATIONS)


def check_declaration(source: Source, name: str, transformation: Transformation | None = None) -> None:
    """Check that a public attribute that isn't a hook implementation is a valid declaration in the right place."""
    value = getattr(source.plugin, name)
    known = OWNER_DECLARATIONS if source.is_owner else RULES_DECLARATIONS
    if transformation is not None and name == transformation.name:
        _check_for(transformation, source, value)
        return
    if name in HOOKS:
        _check_in_place_of_hook(source, name, value)
        return
    if name not in known:
        raise source.error(f"{name!r} is neither a hook nor a declaration", name, got=name,
                           wanted=f"a hook ({', '.join(HOOKS)}) or a declaration ({', '.join(sorted(known))})",
                           todo=suggestion(name, (*HOOKS, *known)) or "start the names of helpers with an underscore")
    if name in _FLAGS and not isinstance(value, bool):
        raise source.error(f"{name} must be True or False", got=repr(value), wanted="a bool",
                           todo="declare True or False")
    if name == "linear":
        source.linear = _checked_linear(source, value)
    if name == "not_linear_in" and not (isinstance(value, tuple) and all([type(i) is int and i >= 0 for i in value])):
        raise source.error("not_linear_in must name operands", got=repr(value),
                           wanted="a tuple of operand numbers, such as (1,)", todo="write not_linear_in = (1,)")
    if name == "element_types" and not (isinstance(value, tuple) and all([isinstance(type_, str) for type_ in value])):
        raise source.error("element_types must name element types", got=repr(value),
                           wanted="a tuple of their names, such as ('rational',)",
                           todo="write element_types = ('rational',), with a comma")
    if name == "substitutes" and not _is_requirement(value):
        raise source.error("substitutes must be a requirement", got=repr(value),
                           wanted="a distribution and its versions, such as 'corejax-lax-basic>=1,<2'",
                           todo="name the distribution whose primitive this one stands for")
    if name == "operands":
        _check_operands(source, value)
    if name in ("widened", "axes_within") and not callable(value):
        raise source.error(f"{name} must be a method", got=kind_of(value),
                           wanted=f"def {name}(self, {'axes, ' * (name == 'widened')}**params)",
                           todo="write the method, or give the attribute another name")
    if name == "attached" and not callable(value):
        raise source.error("attached must be a method", got=kind_of(value), wanted="def attached(self, primitive)",
                           todo="write the method, or give the attribute another name")
    if name == "holds" and value not in HOLDS:
        raise source.error("holds must say how its programs run", got=repr(value),
                           wanted=f"one of {', '.join(map(repr, HOLDS))}",
                           todo="leave it out if they run once, whatever the operands are")
    if name == "platform":
        _check_platform(source, value)


def _is_requirement(value: object) -> bool:
    found = requirements.parse([value]) if isinstance(value, str) else []
    return bool(found) and (not found[0].range or requirements.is_range(found[0].range))


def _check_in_place_of_hook(source: Source, name: str, value: object) -> None:
    if name == "jvp" and isinstance(value, Linearity):
        source.linear = _checked_linear(source, value)
        return
    allowed = _DECLARABLE.get(name, ())
    if isinstance(value, Declaration) and isinstance(value, allowed):
        if isinstance(value, Partials):
            _check_partials(source, value)
        elif isinstance(value, (NotDifferentiable, NotLinear)) and not (
                isinstance(value.reason, str) and value.reason.strip()):
            raise source.error("it gives no reason", name, got=repr(value), wanted="the reason, in words",
                               todo="give the reason: it is shown to anyone who needs the rule")
        source.declared[name] = value
        return
    maker = next((known for known in _MAKERS if getattr(value, "__func__", value) is known), None)
    if maker is not None:
        raise source.error("the declaration isn't called", name, got=f"{name} = {maker.__name__}",
                           wanted=f"{name} = {maker.__name__}(...)", todo="call it: its arguments say what is declared")
    if hasattr(value, "corejax_impl"):
        raise source.error("it is marked as a hook, but isn't a method", name, got=f"{name} = {kind_of(value)}",
                           wanted=f"@hookimpl def {name}(...)",
                           todo="write a method that calls it: @hookimpl must be the outermost decorator of a function")
    if callable(value):
        raise source.error("it is not marked as a hook", name, got=f"def {name}(...)",
                           wanted=f"@hookimpl def {name}(...)", todo="decorate it with corejax.plugin.hookimpl")
    jvps = "partials(...), factors(...), linear(...) or not_differentiable(reason)"
    names = jvps if name == "jvp" else "not_linear(reason)"
    raise source.error("it is neither a rule nor a declaration", name, got=repr(value),
                       wanted="a method marked with @hookimpl" + (f", or {names}" if allowed else ""),
                       todo="leave the attribute out if there is no such rule")


def _check_for(transformation: Transformation, source: Source, value: object) -> None:
    """Check what stands in the place of a rule for a transformation."""
    name, kinds = transformation.name, (*transformation.declarations, Absent)
    if isinstance(value, Declaration) and isinstance(value, kinds):
        source.declared[name] = value
        return
    if callable(value) and not isinstance(value, (type, Declaration)):
        raise source.error("it is not marked as a hook", name, got=f"def {name}(...)",
                           wanted=f"@hookimpl def {name}(...)", todo="decorate it with corejax.plugin.hookimpl")
    raise source.error("it is neither a rule nor a declaration", name, got=repr(value),
                       wanted=f"a method marked with @hookimpl, or one of {', '.join([k.__name__ for k in kinds])}",
                       todo="leave the attribute out if there is no such rule")


def _checked_linear(source: Source, value: object) -> tuple[int, ...]:
    operands = value.operands if isinstance(value, Linearity) else value
    if not isinstance(operands, tuple) or not all(type(i) is int and i >= 0 for i in operands):
        raise source.error("linear must name operands", got=repr(value),
                           wanted="a tuple of operand numbers, such as (0,)", todo="write linear = (0,)")
    if not operands or len(set(operands)) < len(operands):
        raise source.error(f"linear names {'an operand twice' if operands else 'no operand'}", got=repr(value),
                           wanted="each operand in which it is linear, once",
                           todo="leave the declaration out, or write jvp = partials(None) for a derivative of zero"
                           if not operands else "name each once")
    if source.linear not in (None, operands):
        raise source.error("linearity is declared twice, differently", got=f"{source.linear} and {operands}",
                           wanted="one declaration", todo="keep either `linear = ...` or `jvp = linear(...)`")
    return operands


def names_operands(value: object) -> bool:
    """Whether this is a tuple of distinct names, the last one perhaps with a star."""
    if not isinstance(value, tuple) or not value or not all([isinstance(name, str) for name in value]):
        return False
    plain = [*value[:-1], value[-1].removeprefix("*")]
    return len(set(plain)) == len(plain) and all(map(str.isidentifier, plain)) and not any(map(iskeyword, plain))


def _check_operands(source: Source, value: object) -> None:
    if not names_operands(value):
        raise source.error("operands must name the operands", got=repr(value),
                           wanted="a tuple of distinct names, the last one perhaps with a star",
                           todo='write operands = ("x", "y"), or ("x", "*others") if there may be any number')


def _check_platform(source: Source, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise source.error("platform must be the name of a platform", got=repr(value),
                           wanted=f"one of {', '.join(PLATFORMS)}",
                           todo="write platform = \"cpu\"; for several, one plugin each")
    known = (*PLATFORMS, *manifest.read().names("corejax.backends"))
    near = None if value in known else suggestion(value, known)
    if near:
        raise source.error(f"there is no platform {value!r}", got=repr(value), wanted=f"one of {', '.join(known)}",
                           todo=near)


def _check_partials(source: Source, declared: Partials) -> None:
    """Check that there is an entry for each operand: None, or a function that accepts its arguments."""
    count = len(declared.functions)
    if not count:
        raise source.error("no operand's derivative is declared", "jvp", got=repr(declared),
                           wanted="one function for each operand, None where the derivative is zero",
                           todo="declare them; or not_differentiable(reason) if there is no derivative")
    of_factors = isinstance(declared, Factors)
    given = ("out",) if of_factors else ("tangent", "out")
    for i, function in enumerate(declared.factors if isinstance(declared, Factors) else declared.functions):
        if function is None or isinstance(function, NotDifferentiable) or (
                type(function) is int if of_factors else function is itself):
            continue
        if not callable(function) or not takes(function, len(given) + count):
            what = "factor" if of_factors else "partial"
            operands = ", ".join(f"x{k}" for k in range(count))
            raise source.error(
                f"the {what} of operand {i} can't be called with its arguments", "jvp", got=place_of(function)
                and f"the function at {place_of(function)}" or repr(function),
                wanted=f"a function ({', '.join(given)}, {operands}, **params), as {what}s of {count} operands are",
                todo="declare one function for each operand; each takes all the operands")


def check_together(source: Source) -> None:
    """Check that a plugin's declarations contradict neither each other nor its rules."""
    declared, rules = source.declared, source.rules
    if source.linear is not None:
        operands = f"linear = {source.linear}"
        if "jvp" in rules or "jvp" in declared:
            other = repr(declared["jvp"]) if "jvp" in declared else "a jvp rule"
            raise source.error("linear is the whole derivative, but there is another one", "jvp",
                               got=f"{operands}, and {other}", wanted="one of the two", todo="leave one of them out")
        if isinstance(declared.get("transpose"), NotLinear):
            raise source.error("it is declared both linear and not linear", "transpose",
                               got=f"{operands}, and transpose = {declared['transpose']!r}",
                               wanted="a transpose rule, or no linearity",
                               todo="write transpose; reverse mode needs it for what is linear")
    jvp = declared.get("jvp")
    if isinstance(jvp, Partials) and itself in jvp.functions and isinstance(declared.get("transpose"), NotLinear):
        raise source.error("it is declared both linear and not linear", "transpose",
                           got=f"itself in partials(...), and transpose = {declared['transpose']!r}",
                           wanted="a transpose rule, or other partials",
                           todo="write transpose; reverse mode needs it for what is linear")
    if "effects" in rules and (source.linear is not None or isinstance(jvp, Partials) and itself in jvp.functions):
        raise source.error("its tangent would be computed by itself, so its effects would happen twice", "effects",
                           got=f"linear = {source.linear}" if source.linear is not None else "itself in partials(...)",
                           wanted="a jvp rule that binds it once", todo="write jvp: return what it gives for the "
                           "primals, and tangents computed by other primitives")
    if isinstance(jvp, NotDifferentiable) and "linearize" in rules:
        raise source.error("it is declared not differentiable, but has a linearize rule", "linearize",
                           got=f"jvp = {jvp!r}, and a linearize rule", wanted="one of the two",
                           todo="leave one of them out")
    if not source.is_owner and not source.found and not declared and source.linear is None and not source.others:
        raise source.error("it provides no rules", got=f"{kind_of(source.plugin)}, without a hook or a declaration",
                           wanted="an object with a method that is marked @hookimpl",
                           todo="name hooks without a leading underscore; or remove the object")
    if source.platform is not None and not any(hook == "xla_translation" for hook, _, _ in source.found):
        raise source.error("it has a platform, but no lowering for it", got=f"platform = {source.platform!r}",
                           wanted="a hook xla_translation, the only one that `platform` applies to",
                           todo="remove `platform`: other hooks are for every platform")
