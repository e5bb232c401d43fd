"""Keys that are used twice: found while `config.debug_key_reuse` is on.

A key is known by its words, so it is the same key wherever it comes from: out of an array, a file, another device. Each
compiled program is looked through once, by `_following`; at a call, the keys that it uses up are compared with those
used before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from corejax.core import (
    Again,
    Array,
    Jaxpr,
    JaxprEqn,
    Primitive,
    ShapedArray,
    Var,
    aval_of,
    context,
    describe,
    dtypes,
    expression,
    is_concrete,
    is_on_device,
    param_key,
    place_here,
    subjaxprs,
    to_numpy,
)
from corejax.errors import CorejaxError
from corejax.plugin import Setting, settings
from corejax_random._following import Summary, summary_of
from corejax_random._numbers import MADE, is_keys
from corejax_random._remembered import Key, Keys
from corejax_random._uses import Reused, Use, is_again, is_each_turn, is_untaken
from corejax_random.generators import generator_of

__all__ = ["KeyReuseError", "debug_key_reuse"]


class KeyReuseError(CorejaxError, RuntimeError):
    """A key of random numbers is used a second time."""


#: A million keys, which take 300 to 700 MB.
_keys = Keys(1 << 20)


# What is evaluated

def _watch(primitive: Primitive | None, args: Sequence[Any], params: Mapping[str, Any],
           apply: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    """Evaluate something, and note what it does with keys."""
    if is_again(context.names) or (primitive is not None and primitive.evaluate is not None):
        return apply()  # the latter's steps are told one by one
    try:
        avals = [aval_of(x) for x in args]
    except CorejaxError:  # which `apply` says more about
        return apply()
    if primitive is not None and not _has_to_do_with_keys(primitive, avals, params):
        return apply()
    where = place_here()
    try:
        summary = _summary(primitive, args, avals, params)
    except Reused as found:
        raise _error(*[_seen_from(use, where, ()) for use in (found.first, found.again)]) from None
    try:
        _use(summary, args, where, primitive is None)
    except Reused as found:
        raise _error(found.first, found.again) from None
    outs = apply()
    _note_made(primitive, summary, args, outs)
    if primitive is not None and primitive.name == "select_n":
        _note_picked(args[0], outs[0])
    return outs


def _has_to_do_with_keys(primitive: Primitive, avals: Sequence[ShapedArray], params: Mapping[str, Any]) -> bool:
    return primitive.name in ("random_seed", "random_wrap") or any(map(is_keys, avals)) or any(
        True for _ in subjaxprs(params))


_of_programs: WeakKeyDictionary[Jaxpr, Summary] = WeakKeyDictionary()
_of_primitives: dict[Any, Summary] = {}


def _summary(primitive: Primitive | None, args: Sequence[Any], avals: Sequence[ShapedArray],
             params: Mapping[str, Any]) -> Summary:
    if primitive is None:
        jaxpr = params["jaxpr"]
        if jaxpr not in _of_programs:
            _of_programs[jaxpr] = summary_of(jaxpr)
        return _of_programs[jaxpr]
    known = [_counter(x) for x in args]
    key = primitive, tuple(avals), param_key(params), *known
    if key not in _of_primitives:
        if len(_of_primitives) >= 1024:
            _of_primitives.clear()
        invars = [Var(aval) for aval in avals]
        found = primitive.infer(tuple(avals), params)
        outvars = [Var(aval) for aval in (found if primitive.multiple_results else [found])]
        _of_primitives[key] = summary_of(Jaxpr((), invars, outvars, [JaxprEqn(primitive, invars, outvars, params)]),
                                          known)
    return _of_primitives[key]


def _counter(x: Any) -> Any:
    """The value of an integer in host memory, such as that of a counter."""
    if isinstance(x, Array) and (is_on_device(x) or not is_concrete(x)):
        return None
    if aval_of(x).shape or not dtypes.is_integer(aval_of(x).dtype):
        return None
    return to_numpy(x)[()] if isinstance(x, Array) else x


def _use(summary: Summary, args: Sequence[Any], where: Any, is_whole: bool) -> None:
    """Note the uses of keys among the arguments, and of those that the program holds.

    A whole program may only repeat what it needn't have done at first; anything else repeats what was noted before.
    """
    rows: dict[int, Sequence[bytes]] = {}
    met: dict[tuple[int, Key], Use] = {}
    with _keys.lock:
        for i, number, use in summary.used:
            if is_again(use.scopes) and not is_whole:
                continue
            if i not in rows:
                rows[i] = _rows(args[i])
            if rows[i]:
                key = use.dtype, rows[i][number]
                if _keys.is_spread(key) and met.get((i, key)) is use:
                    continue
                met[i, key] = use
                _keys.use(key, _seen_from(use, where, context.names))
        for words, use in summary.constants:
            _keys.use((use.dtype, words), _seen_from(use, where, context.names))


def _seen_from(use: Use, where: Any, scopes: tuple[str, ...]) -> Use:
    """A use in a program, with the call of that program. What that repeats, it does."""
    inner = [name for name in use.scopes if type(name) is not Again]
    return use._replace(places=(where, *use.places), scopes=(*scopes, *inner))


def _note_made(primitive: Primitive | None, summary: Summary, args: Sequence[Any], outs: Sequence[Any]) -> None:
    """Note the keys among results: which were made, and of what."""
    name = None if primitive is None else primitive.name
    given = [row for x in args if is_keys(aval_of(x)) for row in _rows(x)] if summary.made else []
    operands = {*given}
    for k, mask in summary.made.items():
        rows, dtype = _rows(outs[k]), aval_of(outs[k]).dtype
        with _keys.lock:
            names = dtype.names or sorted(_keys.tags)  # raw words don't say whose they are
            spread = [tag for tag in names if name == "broadcast_in_dim" or (
                len(operands) < len(given) and any([_keys.is_spread((tag, row)) for row in operands]))]
            for key in [(tag, row) for tag in spread for row in rows]:
                _keys.spread(key)
            for i, (row, is_made) in enumerate(zip(rows, mask.reshape(-1).tolist() if rows else (), strict=True)):
                for key in [(tag, row) for tag in names]:
                    if row in operands:
                        if is_made == MADE:  # a clone
                            _keys.mean(key, _keys.meant(key) + 1)
                    elif is_made:
                        _note_one(name, key, outs[k], given[i] if name == "random_fold_in" else b"")


def _note_one(name: str | None, key: Key, array: Any, parent: bytes) -> None:
    """Note that a primitive of this name made a key, in this array, perhaps of another one."""
    if name == "random_wrap":  # which is the key that has these words
        return
    if name == "random_seed":
        _keys.make(key, array)
    elif name == "random_fold_in":
        _keys.fold(key, (key[0], parent))
    else:
        _keys.forget(key)
    if is_each_turn(context.names) and (name != "random_fold_in" or _keys.meant((key[0], parent))):
        _keys.mean(key, 1)


def _note_picked(which: Any, out: Any) -> None:
    """Forget uses in a branch that isn't taken: the key comes out of another one, so it wasn't used."""
    rows, which = _rows(out), to_numpy(which) if isinstance(which, Array) else which
    which = np.broadcast_to(which, aval_of(out).shape).reshape(-1).astype(int).tolist()
    dtype = generator_of(aval_of(out).dtype).name
    with _keys.lock:
        for row, case in zip(rows, which, strict=True):
            use = _keys.used((dtype, row))
            if use is not None and is_untaken(use, case, context.names):
                _keys.unuse((dtype, row))


def _rows(x: Any) -> Sequence[bytes]:
    """What is stored of each key of an array; nothing if that isn't known."""
    if not is_concrete(x) and not isinstance(x, np.ndarray):
        return ()
    try:
        array = to_numpy(x) if isinstance(x, Array) else x
    except CorejaxError:  # it was deleted, or is elsewhere
        return ()
    if is_keys(aval_of(x)):
        stored = generator_of(array.dtype).stored(array).reshape(array.size, -1)
    else:
        stored = array.reshape(-1, array.shape[-1])
    data, size = stored.tobytes(), stored.shape[-1] * stored.itemsize
    return [data[i:i + size] for i in range(0, len(data), size)]


# What is told

def _error(first: Use, again: Use) -> KeyReuseError:
    here, there = [[place for place in use.places if place is not None] for use in (first, again)]
    differs = next((i for i, (x, y) in enumerate(zip(here, there, strict=False)) if x != y), None)
    if differs is None:
        place = there[-1] if there else None
        through = f", called from {describe(there[0])}" if there and there[0] != place else ""
        got = f"used at {describe(place)}{through}, and then there once more"
    else:
        place = there[differs]
        texts = [describe(here[differs]), describe(place)]
        if texts[0] == texts[1]:
            texts = [f"{text}, `{expression(x)}`" for text, x in zip(texts, (here[differs], place), strict=True)]
        got = f"used at {texts[0]}, and then at {texts[1]}"
    return KeyReuseError(
        "a random key is used twice, so numbers that should have nothing to do with each other are the same", got=got,
        wanted="a key of its own for each use, and for each turn of a loop", where=describe(place),
        todo="split the key first: key, subkey = random.split(key). If it is meant, use random.clone(key)")


debug_key_reuse = Setting("debug_key_reuse", False, settings.OneOf(False, True),
                          "raise an error where a random key is used twice", _watch)
