"""What the transformations of packs have for a primitive: their rules, written, declared or derived.

The rules for such a hook come from where all rules come from, and are ranked as all are. In addition, the pack that
brings the transformation may have rules for anybody's primitive, if its owner has none: without the pack, nobody would
ask. Nothing of this is looked up before a transformation asks for a primitive's rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from corejax.base.errors import CorejaxError, MissingRuleError, PackError, PluginError, kind_of
from corejax.base.source import here
from corejax.installed import groups, manifest, registry
from corejax.installed.distributions import Entry
from corejax.kernel.declarations import Declaration
from corejax.kernel.primitive import Primitive, Rule, is_frozen
from corejax.kernel.transformations import Absent, Answer, Declared, Transformation
from corejax.packs import freeze
from corejax.packs.hook_signatures import Signature, adapt, chain, wrapped
from corejax.packs.ranking import Offer, rank
from corejax.packs.resolution import Resolution, extensions


def of_entry(entry: Entry) -> Transformation:
    """The transformation that an entry point leads to."""
    found = registry.load_once(entry)
    if not isinstance(found, Transformation):
        raise _wrong(entry, "it must lead to a transformation", kind_of(found), "a transforming.Transformation",
                     "name the object, not its class or its module")
    if found.name != entry.name:
        raise _wrong(entry, f"the entry point {entry.name!r} leads to the transformation {found.name!r}",
                     repr(found.name), repr(entry.name), "name the entry point as the hook")
    return found


def all_installed() -> Iterator[Transformation]:
    """The transformations that packs bring, by name; those that can't be loaded are left out, with a warning."""
    for name in manifest.read().names(groups.TRANSFORMS):
        try:
            entry = manifest.read().choose(groups.TRANSFORMS, name)
            if entry is not None:
                yield of_entry(entry)
        except (PackError, PluginError) as error:
            groups.report(f"the transformation {name}", f"the transformation {name} is left out. {error}")


def pack_of(transformation: Transformation) -> str | None:
    """The distribution that brings it; None if it isn't installed.

    Raises if another one has its name that the user prefers, or if several have it and none is preferred.
    """
    entry = manifest.read().choose(groups.TRANSFORMS, transformation.name)
    if entry is None or registry.load_once(entry) is transformation:
        return None if entry is None else entry.pack.name
    raise PluginError(
        f"{transformation.name}: there is another transformation of this name, of {entry.pack}",
        hook=transformation.name, pack=str(entry.pack), where=here(), got="two transformations of one name",
        wanted="a name of its own", todo="choose another name for the hook, or the pack with COREJAX_PREFER: rules are "
        "for one of them only. If its module was reloaded, reload what uses it as well")


def at_first_sight(primitive: Primitive) -> Primitive:
    """The primitive if it has been used, else another one like it: so that looking at it doesn't fix its rules."""
    if is_frozen(primitive):
        return primitive
    twin = primitive.variant(primitive.plugin)
    if primitive in extensions:
        extensions[twin] = extensions[primitive]
    return twin


def answer(primitive: Primitive, transformation: Transformation) -> Answer:
    """What a transformation has for a primitive; the user is told which rules were left out."""
    resolution, found = resolved(primitive, transformation)
    freeze.tell(primitive, resolution)
    return found


def resolved(primitive: Primitive, transformation: Transformation) -> tuple[Resolution, Answer]:
    """What a transformation has for a primitive, and from which offers it was chosen."""
    hook = transformation.name
    resolution = Resolution(primitive, transformation=transformation, brought_by=pack_of(transformation))
    derived = _derived(primitive, transformation)
    resolution.add(lambda _: bool(resolution.offers[hook]) or derived.how == "derived", (hook,))
    offers = resolution.offers[hook]
    found = derived
    if offers:
        found = _chosen(primitive, transformation, rank(primitive.name, hook, offers, resolution.preferences).offers,
                        derived, resolution.params)
    rule, mark = found.rule, ""
    for offer in resolution.wrappers[hook]:
        rule = wrapped(_adapted(offer, transformation, resolution.params), rule)
        mark += f", wrapped by {offer.source.origin}"
    if transformation.check is not None and found.how not in ("absent", "missing"):
        rule = _checked(primitive, transformation, rule)
    return resolution, found._replace(rule=rule, what=found.what + mark)


def left_out(primitive: Primitive) -> list[tuple[str, Exception]]:
    """Other packs' rules for a primitive that can't be used, as pairs of the pack and the reason."""
    found = Resolution(primitive).left_out
    for each in all_installed():
        found += Resolution(primitive, transformation=each, brought_by=pack_of(each)).left_out
    return found


def _chosen(primitive: Primitive, transformation: Transformation, ranked: list[Offer], derived: Answer,
            params: Signature) -> Answer:
    """The first rule or declaration; where a rule returns None, the next one is asked, at last what is derived."""
    first, origin = ranked[0], ranked[0].source.origin
    if isinstance(first.rule, Absent):
        return _absent(primitive, transformation, first.rule, origin)
    if isinstance(first.rule, Declaration):
        assert isinstance(first.rule, Declared)
        made = first.rule.rule(transformation, primitive)
        if isinstance(made, Absent):
            return _absent(primitive, transformation, made, origin)
        return Answer(made, "declared", repr(first.rule), origin)
    rules = [transformation.written(primitive, _adapted(offer, transformation, params))
             for offer in ranked if not isinstance(offer.rule, Declaration)]
    return Answer(chain([*rules, derived.rule]), "written", f"written in {origin}", origin)


def _adapted(offer: Offer, transformation: Transformation, params: Signature) -> Rule:
    signature = offer.source.signatures.get(offer.rule) or Signature.of(offer.rule)
    return adapt(offer.rule, signature, transformation.arguments, params)


def _derived(primitive: Primitive, transformation: Transformation) -> Answer:
    """The rule that the first way gives which applies, or one that raises why there is none."""
    for words, way in transformation.ways.items():
        try:
            found = way(transformation, primitive)
        except CorejaxError:
            raise
        except Exception as error:
            raise _wrong_way(primitive, transformation, words, f"raises {type(error).__name__}: {error}") from error
        if isinstance(found, Absent):
            return _absent(primitive, transformation, found, None)
        if found is not None and not callable(found):
            raise _wrong_way(primitive, transformation, words, f"returned {kind_of(found)}")
        if found is not None:
            return Answer(found, "derived", words)
    return Answer(_missing(primitive, transformation), "missing", "nothing says what it is, and using it is an error")


def _checked(primitive: Primitive, transformation: Transformation, rule: Rule) -> Rule:
    check = transformation.check
    assert check is not None

    def call(*args: Any, **params: Any) -> Any:
        result = rule(*args, **params)
        found = check(primitive, result, *args, **params)
        if found is None and result is not None:
            raise PluginError(f"{transformation.name}: its check returns nothing", hook=transformation.name, got="None",
                              wanted="the result in its final form", where=here(), todo="return the result")
        return found
    return call


def _wrong_way(primitive: Primitive, transformation: Transformation, words: str, problem: str) -> PluginError:
    return PluginError(f"{transformation.name}: the way {words!r} {problem}, for {primitive.name}", got=problem,
                       hook=transformation.name, primitive=primitive.name, where=here(),
                       wanted="a function (transformation, primitive) -> a rule, absent(reason), or None",
                       todo="return None where the way doesn't apply")


def _absent(primitive: Primitive, transformation: Transformation, why: Absent, origin: str | None) -> Answer:
    hook = transformation.name

    def rule(*_: Any, **__: Any) -> Any:
        raise MissingRuleError(
            f"{primitive.name} ({primitive.origin}) has no {hook}: {why.reason}", primitive=primitive.name, hook=hook,
            pack=primitive.origin, where=here(), got=f"{hook} of {primitive.name}", wanted="other operations there",
            todo="compute it by others, or take it out of the transformed function")
    return Answer(rule, "absent", f"declared absent: {why.reason}", origin)


def _missing(primitive: Primitive, transformation: Transformation) -> Rule:
    hook = transformation.name

    def rule(*_: Any, **__: Any) -> Any:
        owner = primitive.pack or "DISTRIBUTION"
        ways = "; ".join(transformation.ways)
        raise MissingRuleError(
            f"{primitive.name} ({primitive.origin}) has no {hook} rule, and none can be derived",
            primitive=primitive.name, hook=hook, pack=primitive.origin, where=here(),
            got=f"a primitive for which none of these ways applies: {ways}" if ways else "no rule",
            wanted=f"a rule {hook}({', '.join(transformation.arguments)}, *, ...)",
            todo=f"write it in the plugin, or in a pack, as the entry `{owner}/{primitive.name}:{hook}` of "
                 "corejax.rules" + "; or the hook carry, since it carries programs" * (primitive.dce is not None))
    return rule


def _wrong(entry: Entry, problem: str, got: str, wanted: str, todo: str) -> PluginError:
    return PluginError(f"{entry.name} ({entry.pack}): {problem}", hook=entry.name, pack=str(entry.pack), got=got,
                       wanted=wanted, where=f"the entry point `{entry}` of {entry.pack.name}", todo=todo)
