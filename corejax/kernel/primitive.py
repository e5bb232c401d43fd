"""Primitives: what the kernel applies. One is made from a plugin object, and gets its rules when one is first needed.

The `Freezer` that turns plugins into rules is handed in from above.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from corejax.base.avals import ShapedArray
from corejax.base.caches import BoundedCache, generation
from corejax.base.errors import CorejaxAttributeError, CorejaxError, CorejaxTypeError, suggestion
from corejax.base.holders import HeldError
from corejax.base.source import here
from corejax.base.standins import StandIn, replaced
from corejax.kernel import checks
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Jaxpr, are_unique
from corejax.kernel.keys import atom, param_key, plain_tuples
from corejax.kernel.varying import along, joint, says_itself

if TYPE_CHECKING:
    from corejax.kernel.transformations import Answer, Transformation

Function = Callable[..., Any]
Rule = Callable[..., Any]
Avals = tuple[ShapedArray, ...]

_SIGNATURES_PER_PRIMITIVE = 4096

# Types whose values are only equal if they are the same, so they can be used as keys directly.
_PLAIN = frozenset((int, str, type(None), Jaxpr))

#: Python's messages when a rule unpacks a different number of operands than it gets.
_UNPACKED = re.compile("values to unpack|index out of range")

_lock = threading.RLock()  # reentrant: a signal handler or a plugin's property may get back here


class Freezer(Protocol):
    """Knows what a primitive's plugin says, and what other packs add to it."""

    def freeze(self, primitive: Primitive) -> Mapping[str, Any]:
        """The final value of every slot that holds a rule or declaration."""

    def public_function(self, primitive: Primitive) -> Function:
        """The function that users call."""

    def place(self, primitive: Primitive) -> tuple[str | None, str]:
        """The primitive's pack, if it has one, and its origin in words."""

    def answer(self, primitive: Primitive, transformation: Transformation) -> Answer:
        """What a transformation of a pack has for the primitive."""

    def pickled(self, primitive: Primitive) -> tuple[object, ...]:
        """What the primitive's `__reduce__` returns, to find it again."""


_freezer: Freezer


def freeze_by(freezer: Freezer) -> None:
    """Use this freezer to fill the slots of all primitives."""
    global _freezer
    _freezer = freezer


class Primitive:
    """A name with rules. The slots of the rules are filled, all at once, when one of them is first read.

    `bind` applies it: arrays are positional, params keywords. Each rule is a plain callable, see the hook reference.
    """

    _IDENTITY = ("name", "plugin", "module", "function", "pack", "origin", "_cache", "inferred", "evaluated",
                 "remember", "entries", "keep_entries")
    _FROZEN = ("abstract_eval", "impl", "jvp", "transpose", "vmap", "xla_translation", "decompose", "samples",
               "evaluate", "partial_eval", "recompute", "dce", "effects", "typecheck", "pretty", "linearize",
               "linear", "factors", "symbolic_zeros", "jvp_binds_itself", "vmap_binds_itself", "multiple_results",
               "cheap", "linear_in", "not_linear_in", "lowerings", "lowered_params", "providers", "open_params",
               "structural", "tracks_varying", "holds", "element_types", "of_one", "of_two", "beside", "carry",
               "answers", "params")
    __slots__ = (*_IDENTITY, *_FROZEN, "__weakref__")

    name: str
    plugin: Any
    module: str | None
    function: Function
    pack: str | None
    """The distribution that provides it; None if a module made it by `define`."""
    origin: str

    # Rules, as docs/hooks.md describes them; None where there is none and none can be derived
    abstract_eval: Rule
    impl: Rule | None
    jvp: Rule
    transpose: Rule
    vmap: Rule
    xla_translation: Rule
    decompose: Rule | None
    samples: Rule | None
    evaluate: Rule | None
    partial_eval: Rule | None
    recompute: Rule | None
    dce: Rule | None
    effects: Rule | None
    typecheck: Rule | None
    pretty: Rule | None
    linearize: Rule | None
    carry: Rule | None
    answers: dict[Transformation, Answer]
    """What the transformations of packs have for it, as far as they were asked."""

    # Declarations, and what is derived from them
    linear: tuple[int, ...] | None
    factors: tuple[Any, ...] | None
    linear_in: frozenset[int]
    """The operands in each of which it is linear while the others are fixed: those whose partial is `itself`."""
    not_linear_in: frozenset[int]
    symbolic_zeros: bool
    jvp_binds_itself: bool
    vmap_binds_itself: bool
    """Whether it has no params, and its vmap rule only applies it where operands of one shape are mapped along one
    axis, and others, of rank 0, not at all."""
    multiple_results: bool
    cheap: bool
    """Whether it takes about as long as reading its operands."""
    structural: bool
    """Whether it moves elements about, whatever they are, and looks into none."""
    tracks_varying: bool
    """Whether its abstract_eval says itself along which axes of a mesh results vary."""
    holds: str | None
    """How it runs the programs among its params, if not once: for effects that refuse that."""
    element_types: tuple[str, ...]
    """The names of packs' own element types that its rules compute with; "*" for all."""
    lowerings: Mapping[str, Rule]
    """The lowerings for single platforms; `lowering` looks there first."""
    lowered_params: frozenset[str] | None
    """The params that lowerings read; None if that can't be told."""
    providers: Mapping[str, str]
    """Who wrote each rule."""
    params: frozenset[str]
    open_params: bool

    # Shortcuts for evaluation
    of_one: Rule | None
    of_two: Rule | None
    beside: frozenset[str]
    inferred: Callable[[Any], Any]
    evaluated: Mapping[Any, ShapedArray]
    remember: Callable[[Any, ShapedArray], ShapedArray]
    entries: Mapping[Any, tuple[Callable[[Sequence[Any]], Any], ...]]
    keep_entries: Callable[[Any, Any, int], None]

    def __init__(self, plugin: Any, module: str | None = None) -> None:
        self.name = plugin.name
        self.plugin = plugin
        self.module = module
        self._cache: BoundedCache[Any, Any] = BoundedCache(_SIGNATURES_PER_PRIMITIVE)
        self.inferred = self._cache._entries.get  # results of `infer` without params, by avals
        met: BoundedCache[Any, ShapedArray] = BoundedCache(_SIGNATURES_PER_PRIMITIVE)
        self.evaluated, self.remember = met._entries, met.put  # for `EvalTrace`: result types by operand types
        entered: BoundedCache[Any, Any] = BoundedCache(_SIGNATURES_PER_PRIMITIVE)
        self.entries, self.keep_entries = entered._entries, entered.replace  # of programs, for operands on a device

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive under the current trace. Returns the result, or the list of results."""
        if params:
            if params.keys() != self.params:
                self.check_params(params)
        elif self.params:
            self.check_params(params)
        try:
            return context.trace.process(self, args, params)
        except StandIn as error:
            given = replaced(error, args)
            if given is None:
                raise
        except HeldError as error:
            if not any([x is error.holder for x in args]):
                raise
            return error.holder.apply(self, args, params)
        return self.bind(*given, **params)

    def bind_one(self, x: object) -> Any:
        """`bind` with one operand and no params."""
        return context.trace.process_one(self, x)

    def bind_two(self, x: object, y: object, alike: ShapedArray | None = None) -> Any:
        """`bind` with two operands and no params; `alike` is their common type, if the caller knows it."""
        return context.trace.process_two(self, x, y, alike)

    def infer(self, avals: Avals, params: Mapping[str, object]) -> Any:
        """The type of the result, or a tuple of types, from abstract_eval (cached).

        The results vary along the axes along which any operand does, unless the primitive or a program among its params
        says otherwise.

        Not annotated as a union: callers know which by `multiple_results`, and a test would cost more than the look-up.
        """
        if not params:
            return self.inferred(avals) or self._infer(avals, params, avals)
        key: tuple[Any, ...] = ()
        try:
            if len(params) == 1:
                for value in params.values():
                    known = type(value) in _PLAIN or plain_tuples.get(id(value)) is value
                    key = (avals, context.axes, value if known else atom(value))
            else:
                atoms: list[Any] = [avals, context.axes, *params]
                for value in params.values():
                    known = type(value) in _PLAIN or plain_tuples.get(id(value)) is value
                    atoms.append(value if known else atom(value))
                key = tuple(atoms)
        except CorejaxTypeError:
            param_key(params, f"{self.name} ({self.origin})")  # raises the same error with the param's name
            raise
        return self.inferred(key) or self._infer(avals, params, key)

    def answer(self, transformation: Transformation) -> Answer:
        """The rule for a transformation of a pack, and where it comes from."""
        answers = self.answers
        found = answers.get(transformation)
        if found is None:
            found = answers[transformation] = _freezer.answer(self, transformation)
        return found

    def variant(self, plugin: object) -> Primitive:
        """A separate primitive, for a plugin made by a rule of this one."""
        return Unfrozen(plugin, self.module)

    @property
    def defaults(self) -> dict[str, Any]:
        """The declared defaults of params: those of abstract_eval's keyword arguments, or else of decompose's."""
        typed = getattr(self.plugin, "abstract_eval", None) or getattr(self.plugin, "decompose", None)
        return dict(getattr(typed, "__kwdefaults__", None) or {})

    def lowering(self, platform: str) -> Function:
        """The rule that lowers it for a platform."""
        return self.lowerings.get(platform) or self.xla_translation

    def _infer(self, avals: Avals, params: Mapping[str, object], key: object) -> Any:
        self.check_params(params)
        since = generation()
        if any([aval.stored is not aval for aval in avals]):
            checks.check_elements(self, avals)
        axes = joint(avals)
        as_they_are = not axes or self.tracks_varying or says_itself(params)
        try:
            result = self.abstract_eval(avals if as_they_are else tuple([aval.invariant for aval in avals]), **params)
        except CorejaxError as error:
            raise checks.failed(self, "abstract_eval", error)  # noqa: B904
        except Exception as error:
            if isinstance(error, (ValueError, IndexError)) and _UNPACKED.search(str(error)):
                raise CorejaxTypeError(
                    f"{self.name} ({self.origin}): it has the wrong number of operands", primitive=self.name,
                    pack=self.origin, got=", ".join(map(str, avals)) or "no operands", where=here(),
                    wanted=f"operands for which its abstract_eval works, which says: {error}",
                    todo="check the call; params go by keyword") from None
            if not hasattr(error, "_hook"):
                error._hook = "abstract_eval"  # type: ignore[attr-defined]
                error.add_note(f"raised by {self.name}.abstract_eval ({self.origin}), called with {list(avals)} "
                               f"and {dict(params)}, for {here()}")
            raise
        found = checks.check_avals(self, result)
        checks.check_made(self, found)
        if self.effects is not None:  # perhaps they refuse to happen here
            self.effects(avals, **params)
        if not as_they_are:
            found = tuple([along(aval, axes) for aval in found]) if isinstance(found, tuple) else along(found, axes)
        return found if params and are_unique(params) else self._cache.put(key, found, since)

    def check_params(self, params: Mapping[str, object]) -> None:
        wanted = self.params
        if params.keys() == wanted or (self.open_params and params.keys() >= wanted):
            return
        unknown, missing = sorted(params.keys() - wanted), sorted(wanted - params.keys())
        stranger = unknown and not self.open_params
        problem = f"has no param {unknown[0]!r}" if stranger else f"needs the param {missing[0]!r}"
        raise CorejaxTypeError(
            f"{self.name} ({self.origin}) {problem}", primitive=self.name, pack=self.origin,
            got=", ".join(sorted(params)) or "no params", wanted=", ".join(sorted(wanted)) or "no params", where=here(),
            todo=suggestion(unknown[0], wanted) or "leave it out" if stranger else "pass it by keyword")

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, ...]:
        return _freezer.pickled(self)

    def __copy__(self) -> Primitive:
        return self

    def __deepcopy__(self, memo: object) -> Primitive:
        return self


class Unfrozen(Primitive):
    """A primitive before its first use: it becomes a plain `Primitive` when its rules are filled in.

    Two classes, because on CPython 3.11 every attribute of a class with `__getattr__` costs five times as much.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        # Reached only while the slot is unset.
        if name in Primitive._FROZEN:
            _fill(self)
        elif name in ("pack", "origin"):
            self.pack, self.origin = _freezer.place(self)
        elif name == "function":
            self.function = _freezer.public_function(self)
        else:
            raise CorejaxAttributeError(f"a primitive has no {name!r}", got=self.name,
                                        todo=suggestion(name, Primitive._FROZEN))
        return object.__getattribute__(self, name)


#: How many times primitives were thawed, since each time may change what freezing gives.
_thawed = 0


def _fill(primitive: Primitive) -> None:
    """Freeze a primitive. If several threads do so at once, their results are the same; the first one is kept."""
    while True:
        count = _thawed
        slots = _freezer.freeze(primitive)
        _ = primitive.function, primitive.origin  # filled now, so nothing is looked up later
        with _lock:
            if count == _thawed:
                if not is_frozen(primitive):
                    _set(primitive, slots)
                return


def refill(primitive: Primitive) -> None:
    """Freeze a primitive anew while it is in use: more is known of its rules."""
    count = _thawed
    slots = _freezer.freeze(primitive)
    with _lock:
        if count == _thawed and is_frozen(primitive):  # else its next use freezes it anyway
            _set(primitive, slots)


def thaw(primitives: Iterable[Primitive]) -> None:
    """Forget the rules of primitives. Each is frozen anew at its next use, even if it is in use now."""
    global _thawed
    with _lock:
        _thawed += 1
        for primitive in primitives:
            if is_frozen(primitive):
                primitive.__class__ = Unfrozen
                for name in Primitive._FROZEN:
                    delattr(primitive, name)


def is_frozen(primitive: Primitive) -> bool:
    """Whether its rules are filled in."""
    try:
        object.__getattribute__(primitive, "params")
    except AttributeError:
        return False
    return True


def _set(primitive: Primitive, slots: Mapping[str, Any]) -> None:
    for name in Primitive._FROZEN:  # rules come before their declarations, and `params` last: then all are there
        setattr(primitive, name, slots[name])
    primitive.__class__ = Primitive
