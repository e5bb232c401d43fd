"""What a program does with keys, found by following each of them through its equations.

Every element of an array of keys has a number, which follows it through whatever moves elements about; so do the words
of raw keys. Indices and what they are computed from are followed by their values, where these are known. Loops are
gone through turn by turn, as often as `_TURNS` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from corejax.core import (
    Again,
    Alternative,
    Array,
    Atom,
    EachTurn,
    Jaxpr,
    JaxprEqn,
    Literal,
    ShapedArray,
    is_concrete,
    param_key,
    subjaxprs,
    to_numpy,
)
from corejax_random._numbers import COPIES, WORDS, Codes, Known, Numbers, Opaque, Value, is_keys, may_be_raw
from corejax_random._uses import Use, is_untaken
from corejax_random.generators import generator_of

__all__ = ["Summary", "summary_of"]

#: How many turns of a loop are followed, and how many where nothing says when it ends.
_TURNS, _TURNS_OF_UNKNOWN = 64, 3
#: How many equations are followed in a program before all loops are followed for a few turns only.
_MANY = 50_000
#: The largest array of numbers whose values are followed, and of keys that are remembered each.
_SMALL, _REMEMBERED = 4096, 65_536

#: These use up the keys that they get.
_USING = frozenset(["random_bits", "random_gamma", "random_split"])
#: These make keys that are like no others.
_MAKING = frozenset(["random_clone", "random_seed", "random_split"])
#: These only look.
_LOOKING = frozenset(["eq", "ne", "random_unwrap"])


@dataclass
class Summary:
    """What a program does with the keys among its inputs, each by input and position.

    `made`: for each output that holds keys, whether each of them is `MADE` in it, or 0.
    """

    used: list[tuple[int, Any, Use]] = field(default_factory=list)
    constants: list[tuple[Any, Use]] = field(default_factory=list)
    made: dict[int, Any] = field(default_factory=dict)


def summary_of(jaxpr: Jaxpr, known: Sequence[Any] = ()) -> Summary:
    """What a program does with keys, with these values as inputs if they aren't None. Raises `Reused` if it uses one
    twice.
    """
    found = Summary()
    if not _touches(jaxpr):
        return found
    walk = Walk()
    ins: list[Value] = []
    homes: list[tuple[int, int, int]] = []
    for i, var in enumerate(jaxpr.invars):
        if is_keys(var.aval) or may_be_raw(var.aval):
            start = walk.numbers
            value = walk.new(var.aval)
            homes.append((i, start, walk.numbers))
            ins.append(value)
        else:
            ins.append(Known(np.asarray(known[i])) if known and known[i] is not None else Opaque(walk.token()))
    of_inputs = walk.numbers
    outs = walk.run(jaxpr, ins, (), ())
    for i, start, stop in homes:
        for number in np.flatnonzero(walk.first[start:stop]).tolist():
            found.used.append((i, number, walk.uses[walk.first[start + number]]))
    for number, words in walk.constants.items():
        if walk.first[number]:
            found.constants.append((words, walk.uses[walk.first[number]]))
    for i, (value, atom) in enumerate(zip(outs, jaxpr.outvars, strict=True)):
        if isinstance(value, Codes) and value.codes.size and (is_keys(atom.aval) or may_be_raw(atom.aval)):
            numbers = (value.codes[..., 0] // WORDS if value.of_words else value.codes) // COPIES
            found.made[i] = np.vectorize(lambda number: walk.is_made(number, of_inputs), otypes=[np.int8])(numbers)
    return found


def _touches(jaxpr: Jaxpr) -> bool:
    """Whether any equation has to do with keys."""
    found = jaxpr._memo.get("corejax_random")
    if found is None:
        found = jaxpr._memo["corejax_random"] = any([
            any([is_keys(x.aval) for x in (*eqn.invars, *eqn.outvars)]) or any(map(_touches, subjaxprs(eqn.params)))
            for eqn in jaxpr.eqns])
    return bool(found)


def _part(whole: Any, shape: tuple[int, ...]) -> Any:
    """The first part of this shape: a block of an array, or a row of it; None if there is none."""
    if whole.ndim == len(shape):
        return whole[tuple(map(slice, shape))]
    return whole[0] if whole.shape[1:] == shape and whole.shape[0] else None


class Walk(Numbers):
    """A walk through a program."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    # Equations

    def run(self, jaxpr: Jaxpr, ins: Sequence[Value], places: tuple[Any, ...], scopes: tuple[str, ...]
            ) -> list[Value]:
        """The outputs of a program for these inputs."""
        env: dict[Atom, Value] = dict(zip(jaxpr.invars, ins, strict=True))
        for eqn in jaxpr.eqns:
            self.steps += 1
            for name in eqn.scope:
                if type(name) is EachTurn:
                    self.starts.setdefault(name.of, self.numbers)
            args = [self.literal(x) if type(x) is Literal else env[x] for x in eqn.invars]
            outs = self.apply(eqn, args, (*places, eqn.source), (*scopes, *eqn.scope))
            env.update(zip(eqn.outvars, outs, strict=True))
        return [self.literal(x) if type(x) is Literal else env[x] for x in jaxpr.outvars]

    def literal(self, x: Literal) -> Value:
        if not is_keys(x.aval):
            value = to_numpy(x.val) if isinstance(x.val, Array) and is_concrete(x.val) else x.val
            if isinstance(value, (np.ndarray, np.generic)) and value.size <= _SMALL:
                return Known(np.asarray(value))
            return Opaque(("literal", id(x.val)))
        made: Value = self.once(("literal", id(x.val)), lambda: self.new(x.aval))
        assert isinstance(made, Codes)
        rows = generator_of(x.aval.dtype).stored(to_numpy(x.val)).reshape(made.codes.size, -1)
        self.constants.update(zip((made.codes.reshape(-1) // COPIES).tolist(), map(bytes, rows), strict=True))
        return made

    def apply(self, eqn: JaxprEqn, args: list[Value], places: tuple[Any, ...], scopes: tuple[str, ...]
              ) -> list[Value]:
        """The results of an equation."""
        name, params = eqn.primitive.name, eqn.params
        special = _SPECIAL.get(name)
        if special is not None:
            return special(self, eqn, args, places, scopes)
        programs = list(subjaxprs(params))
        if programs:
            return self._carrying(eqn, args, programs, places, scopes)
        if any([is_keys(x.aval) for x in (*eqn.invars, *eqn.outvars)]) and not eqn.primitive.structural:
            return self._of_keys(eqn, args, Use(places, scopes, ""))
        if any([type(x) is Codes for x in args]) and eqn.primitive.structural:
            return self._moved(eqn, args)
        return self._computed(eqn, args)

    def _of_keys(self, eqn: JaxprEqn, args: list[Value], use: Use) -> list[Value]:
        """A primitive that does something to keys."""
        name, first = eqn.primitive.name, args[0]
        using = name in _USING or not (name in _LOOKING or name in _MAKING or name in ("random_wrap", "random_fold_in"))
        for x, atom in zip(args, eqn.invars, strict=True):
            if using and is_keys(atom.aval) and isinstance(x, Codes):
                self.use(x.codes, use._replace(dtype=generator_of(atom.aval.dtype).name))
        if name == "random_wrap":
            return [self._wrapped(eqn, first)]
        if name == "random_unwrap" and isinstance(first, Codes):
            return [self.words(first.codes, eqn.outvars[0].aval.shape[first.codes.ndim:])]
        if name == "random_fold_in" and isinstance(first, Codes):
            return [Codes(self._folded(first.codes, args[1]))]
        if name == "random_split" and isinstance(first, Codes):
            shape = eqn.outvars[0].aval.shape
            copies = (first.codes % COPIES).reshape(first.codes.shape + (1,) * (len(shape) - first.codes.ndim))
            return [Codes(self.fresh(prod(shape)).reshape(shape) * COPIES + copies)]
        if name in _MAKING:
            return [self.new(var.aval) for var in eqn.outvars]
        return self._like_no_other(eqn, args)

    def _wrapped(self, eqn: JaxprEqn, words: Value) -> Value:
        aval = eqn.outvars[0].aval
        if isinstance(words, Codes) and words.of_words:
            rows = words.codes.reshape(*aval.shape, -1)
            codes = rows[..., 0] // WORDS
            if rows.shape[-1] and (rows == codes[..., None] * WORDS + np.arange(rows.shape[-1])).all():
                return Codes(codes)
        made: Value = self.once(("wrap", words.token), lambda: self.new(aval))
        return made

    def _folded(self, codes: Any, data: Value) -> Any:
        """New keys, the same for the same keys and numbers."""
        if codes.size > _REMEMBERED:
            return self.fresh(codes.size).reshape(codes.shape) * COPIES
        numbers: Any = None
        if isinstance(data, Known):
            numbers = np.broadcast_to(data.value, codes.shape).reshape(-1).tolist()
        made = np.empty(codes.size, np.int64)
        for i, code in enumerate(codes.reshape(-1).tolist()):
            what = (data.token, i) if numbers is None else numbers[i]
            number = self.once(("fold in", code // COPIES, what), lambda: int(self.fresh(1)[0]))
            self.parents[number] = code // COPIES
            made[i] = number * COPIES + code % COPIES
        return made.reshape(codes.shape)

    def _moved(self, eqn: JaxprEqn, args: list[Value]) -> list[Value]:
        """A primitive that moves elements about: it moves their codes in the same way."""
        of_words = [x.of_words for x in args if isinstance(x, Codes)]
        data = [x.codes if isinstance(x, Codes) else x.value if isinstance(x, Known) else None for x in args]
        if eqn.primitive.impl is not None and len({*of_words}) == 1 and not any([x is None for x in data]):
            try:
                out = eqn.primitive.impl(data, **eqn.params)
            except Exception:  # it does something that only elements of its own types have
                out = None
            outs = list(out) if eqn.primitive.multiple_results and out is not None else [out]
            if all([isinstance(x, (np.ndarray, np.generic)) and x.dtype == np.int64 and x.shape == var.aval.shape
                    for x, var in zip(outs, eqn.outvars, strict=True)]):
                if eqn.primitive.name == "broadcast_in_dim":
                    outs = [self._spread(np.asarray(outs[0]), of_words[0], eqn.params["broadcast_dimensions"])]
                return [Codes(np.asarray(x), of_words[0]) for x in outs]
        if len(args) == 1 and eqn.outvars[0].aval.shape == eqn.invars[0].aval.shape:
            return [args[0]]
        return self._like_no_other(eqn, args)

    def _spread(self, codes: Any, of_words: bool, kept: Sequence[int]) -> Any:
        """Codes that were broadcast: the elements along the new axes are copies."""
        shape = [1 if i in kept else n for i, n in enumerate(codes.shape)]
        along = np.arange(prod(shape)).reshape(shape)
        unit = WORDS if of_words else 1
        copies = codes // unit % COPIES
        return codes + ((copies * prod(shape) + along) % COPIES - copies) * unit

    def _select_n(self, eqn: JaxprEqn, args: list[Value], places: Any, scopes: Any) -> list[Value]:
        which, *cases = args
        if not all([isinstance(case, Codes) for case in cases]):
            return self._computed(eqn, args)
        if isinstance(which, Known):
            picked = self._moved(eqn, args)
            if isinstance(picked[0], Codes) and not picked[0].of_words:
                self._forget_untaken(which.value, picked[0].codes, scopes)
            return picked
        of_words = cases[0].of_words  # type: ignore[union-attr]
        codes = [case.codes for case in cases]  # type: ignore[union-attr]
        return [Codes(self.one_of(codes, which.token), of_words)]

    def _forget_untaken(self, which: Any, codes: Any, scopes: tuple[str, ...]) -> None:
        """Forget uses in a branch that isn't taken: these keys come out of others, so they weren't used."""
        cases = np.broadcast_to(which, codes.shape).astype(int).reshape(-1).tolist()
        for number, case in zip((codes.reshape(-1) // COPIES).tolist(), cases, strict=True):
            if is_untaken(self.uses[self.first[number]], case, scopes):
                self.first[number] = 0

    def _computed(self, eqn: JaxprEqn, args: list[Value]) -> list[Value]:
        """A primitive that has nothing to do with keys: its results, if they are known."""
        primitive = eqn.primitive
        if primitive.impl is not None and not eqn.effects and all([isinstance(x, Known) for x in args]) and (
                sum([prod(var.aval.shape) for var in eqn.outvars]) <= _SMALL):
            try:
                with np.errstate(all="ignore"):
                    out = primitive.impl([x.value for x in args], **eqn.params)  # type: ignore[union-attr]
                outs = list(out) if primitive.multiple_results else [out]
                return [Known(np.asarray(x)) for x in outs]
            except Exception:  # what it computes is told when the program runs
                pass
        return self._like_no_other(eqn, args)

    def _like_no_other(self, eqn: JaxprEqn, args: Sequence[Value]) -> list[Value]:
        """Results of which nothing is known, but that they are the same for the same operands."""
        if eqn.effects:
            return [self.new(var.aval) for var in eqn.outvars]
        key = eqn.primitive, param_key(eqn.params), *[x.token for x in args]
        made: list[Value] = self.once(key, lambda: [self.new(var.aval) for var in eqn.outvars])
        return made

    # Primitives that carry programs

    def _carrying(self, eqn: JaxprEqn, args: list[Value], programs: list[Jaxpr], places: tuple[Any, ...],
                  scopes: tuple[str, ...]) -> list[Value]:
        if not any(map(_touches, programs)):
            return self._like_no_other(eqn, args)
        fits = [len(jaxpr.invars) == len(args) and len(jaxpr.outvars) == len(eqn.outvars) for jaxpr in programs]
        if len(programs) == 1 and fits[0]:
            if eqn.params.get("differentiated"):  # a checkpointed program
                scopes = *scopes, Again("again")
            return self._called(eqn, programs[0], args, places, scopes)
        if all(fits):
            return self._one_of_programs(eqn, programs, args, places, scopes, self.token())
        for jaxpr in programs:
            self.run(jaxpr, [self.new(var.aval) for var in jaxpr.invars], places, scopes)
        return self._like_no_other(eqn, args)

    def _called(self, eqn: JaxprEqn, jaxpr: Jaxpr, args: list[Value], places: tuple[Any, ...],
                scopes: tuple[str, ...]) -> list[Value]:
        """A call. Of arrays that are divided among devices, the program gets a part: what it does, it does to each."""
        ins = []
        for x, var in zip(args, jaxpr.invars, strict=True):
            if isinstance(x, (Codes, Known)) and (x.codes if isinstance(x, Codes) else x.value).shape != (
                    var.aval.shape):
                x = x._replace(codes=_part(x.codes, var.aval.shape)) if isinstance(x, Codes) else self.new(var.aval)
                x = self.new(var.aval) if isinstance(x, Codes) and x.codes is None else x
            ins.append(x)
        outs = self.run(jaxpr, ins, places, scopes)
        for x, part in zip(args, ins, strict=True):
            if x is not part and isinstance(x, Codes) and isinstance(part, Codes) and not x.of_words:
                self._use_other_parts(x.codes, part.codes)
        return [out if not isinstance(out, Codes) or out.codes.shape == var.aval.shape else self.new(var.aval)
                for out, var in zip(outs, eqn.outvars, strict=True)]

    def _use_other_parts(self, whole: Any, part: Any) -> None:
        """What was done to one part of an array is done to all the others."""
        if not part.size or part.ndim not in (whole.ndim, whole.ndim - 1):
            return
        part = part.reshape((1,) * (whole.ndim - part.ndim) + part.shape)
        firsts = self.first[part // COPIES]
        rest = np.ones(whole.shape, bool)
        rest[tuple(map(slice, part.shape))] = False
        for i in np.unique(firsts[firsts > 0]).tolist():
            mask = np.tile(firsts == i, [n // k for n, k in zip(whole.shape, part.shape, strict=True)])
            self.use(whole[mask & rest], self.uses[i])

    def _one_of_programs(self, eqn: JaxprEqn, programs: Sequence[Jaxpr], args: Sequence[Value],
                         places: tuple[Any, ...], scopes: tuple[str, ...], which: Any) -> list[Value]:
        """One of several programs runs, as `which` says: a key that any of them uses is used."""
        of = Alternative("branch").of
        results = [self.run(jaxpr, args, places, (*scopes, Alternative(f"branch_{k}", of)))
                   for k, jaxpr in enumerate(programs)]
        return [self._merged(cases, var.aval, which)
                for cases, var in zip(zip(*results, strict=True), eqn.outvars, strict=True)]

    def _merged(self, cases: Sequence[Value], aval: ShapedArray, which: Any) -> Value:
        if all([case.token == cases[0].token for case in cases]):
            return cases[0]
        kinds = {case.of_words if isinstance(case, Codes) else None for case in cases}
        if len(kinds) == 1 and None not in kinds:
            return Codes(self.one_of([case.codes for case in cases], which), kinds.pop())  # type: ignore
        return self.new(aval)

    def _cond(self, eqn: JaxprEqn, args: list[Value], places: Any, scopes: Any) -> list[Value]:
        index, *operands = args
        branches = eqn.params["branches"]
        if isinstance(index, Known):
            return self.run(branches[min(max(int(index.value), 0), len(branches) - 1)], operands, places, scopes)
        return self._one_of_programs(eqn, branches, operands, places, scopes, index.token)

    def _turns(self, length: int | None) -> int:
        if length is None or self.steps > _MANY:
            return _TURNS_OF_UNKNOWN if length is None else min(length, _TURNS_OF_UNKNOWN)
        return min(length, _TURNS)

    def _scan(self, eqn: JaxprEqn, args: list[Value], places: Any, scopes: Any) -> list[Value]:
        jaxpr, length = eqn.params["jaxpr"], eqn.params["length"]
        if not _touches(jaxpr):
            return self._like_no_other(eqn, args)
        consts = args[:eqn.params["num_consts"]]
        carry = args[len(consts):len(consts) + eqn.params["num_carry"]]
        xs = args[len(consts) + len(carry):]
        avals = [var.aval for var in eqn.outvars]
        rows: dict[int, list[Value]] = {}
        turns = self._turns(length)
        order = range(length - 1, -1, -1) if eqn.params["reverse"] else range(length)
        for i in order[:turns]:
            outs = self.run(jaxpr, [*consts, *carry, *[self._row(x, i) for x in xs]], places, scopes)
            carry, rows[i] = outs[:len(carry)], outs[len(carry):]
        if turns < length:
            carry = [self.new(aval) for aval in avals[:len(carry)]]
        stacked = [self._stacked([rows[i][k] if i in rows else None for i in range(length)], aval)
                   for k, aval in enumerate(avals[len(carry):])]
        return [*carry, *stacked]

    def _row(self, x: Value, i: int) -> Value:
        if isinstance(x, Codes):
            return Opaque(("row", x.token, i)) if x.of_words and x.codes.ndim == 1 else x._replace(codes=x.codes[i])
        return Known(np.asarray(x.value[i])) if isinstance(x, Known) else Opaque(("row", x.token, i))

    def _stacked(self, rows: Sequence[Value | None], aval: ShapedArray) -> Value:
        first = next((row for row in rows if row is not None), None)
        if not isinstance(first, Codes) or not all([row is None or isinstance(row, Codes) for row in rows]):
            return self.new(aval)
        made = self.new(aval)
        if not isinstance(made, Codes) or made.of_words != first.of_words:
            return made
        for i, row in enumerate(rows):
            if isinstance(row, Codes):
                made.codes[i] = row.codes
        return made

    def _while_loop(self, eqn: JaxprEqn, args: list[Value], places: Any, scopes: Any) -> list[Value]:
        params = eqn.params
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        if not (_touches(cond) or _touches(body)):
            return self._like_no_other(eqn, args)
        n, m = params["cond_nconsts"], params["body_nconsts"]
        of_cond, of_body, carry = args[:n], args[n:n + m], args[n + m:]
        ends: list[list[Value]] = []
        turn = 0
        while True:
            (goes_on,) = self.run(cond, [*of_cond, *carry], places, scopes)
            known = isinstance(goes_on, Known)
            if known and not goes_on.value.any():  # type: ignore[union-attr]
                ends.append(carry)
                break
            if not known:
                ends.append(carry)
            if turn >= self._turns(_TURNS if known else None):
                ends.append([self.new(var.aval) for var in eqn.outvars])
                break
            carry = self.run(body, [*of_body, *carry], places, scopes)
            turn += 1
        which = self.token()
        return [self._merged(cases, var.aval, which)
                for cases, var in zip(zip(*ends, strict=True), eqn.outvars, strict=True)]

_SPECIAL: dict[str, Callable[..., list[Value]]] = {
    "cond": Walk._cond, "scan": Walk._scan, "select_n": Walk._select_n, "while_loop": Walk._while_loop}
