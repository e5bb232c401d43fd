"""What the first part of a split loop keeps for the second: as few bytes as cheap arithmetic allows.

A loop writes out each residual in each step and reads it back. A value that only repeats a smaller one, or takes just a
few additions and multiplications of values that are kept anyway, is recomputed in the second part instead.
"""

from __future__ import annotations

from collections.abc import Iterable

from corejax.base.avals import ShapedArray
from corejax.interpreters.splitting import Place, Split
from corejax.ir.surgery import dce, substitute
from corejax.kernel.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var

#: A residual is replaced by at most this many equations, and only if it has this many bytes.
_MOST = 4
_LEAST = 128


def keep_small(split: Split[Jaxpr], free_operands: Iterable[int], first_output: int) -> Split[Jaxpr]:
    """The same split with smaller residuals.

    The second part gets the operands at `free_operands`, and the results from `first_output` on, at no cost.
    """
    shrinking = _Shrinking(split, set(free_operands), first_output)
    return shrinking.split() if shrinking.kept != shrinking.fresh else split


class _Shrinking:
    """A split that is being rewritten. Variables are those of its known part."""

    def __init__(self, split: Split[Jaxpr], free_operands: set[int], first_output: int) -> None:
        self.old, known = split, split.known
        n_results = len(known.outvars) - len(split.fresh_avals)
        self.results, self.fresh = known.outvars[:n_results], [*known.outvars[n_results:]]
        self.producer: dict[Atom, JaxprEqn] = {v: eqn for eqn in known.eqns if eqn.primitive.cheap for v in eqn.outvars}
        self.order: dict[Atom, int] = {v: k for k, eqn in enumerate(known.eqns) for v in eqn.outvars}
        at = [i for i, unknown in enumerate(split.unknown_out) if not unknown]
        results = [(v, i) for v, i in zip(self.results, at, strict=True) if type(v) is Var]
        operands = zip(known.invars, split.known_operands, strict=True)
        self.place: dict[Atom, Place] = {v: ("result", i) for v, i in reversed(results)}
        self.place.update({v: ("operand", i) for v, i in operands})
        taken = {*split.residuals}
        self.free = {v for v, (where, i) in self.place.items() if (where, i) in taken or (
            i in free_operands if where == "operand" else i >= first_output)}
        self.kept = [v for v in dict.fromkeys(map(self.origin, self.fresh)) if v not in self.free]
        self.drop()

    def origin(self, value: Atom) -> Atom:
        """The smallest value that this one only repeats."""
        while (eqn := self.producer.get(value)) is not None:
            sources = {x for x in eqn.invars if type(x) is Var}
            if len(sources) != 1 or _bytes((source := sources.pop()).aval) >= _bytes(value.aval):
                break
            value = source
        return value

    def drop(self) -> None:
        """Drop large residuals that can be recomputed from the rest, the latest first."""
        given = self.free.union(self.kept)
        for value in sorted(self.kept, key=lambda v: -self.order.get(v, -1)):
            given.discard(value)
            if _bytes(value.aval) < _LEAST or self.cost(value, given, _MOST) > _MOST:
                given.add(value)
        self.kept = [v for v in self.kept if v in given]

    def cost(self, value: Atom, given: set[Atom], most: int) -> int:
        """How many cheap equations it takes to compute a value from the given ones; any number over `most` if more."""
        if type(value) is Literal or value in given:
            return 0
        eqn = self.producer.get(value)
        if eqn is None or most < 1:
            return most + 1
        total = 1
        for x in eqn.invars:
            total += self.cost(x, given, most - total)
            if total > most:
                break
        return total

    def split(self) -> Split[Jaxpr]:
        """The new split."""
        old, known, n_results = self.old, self.old.known, len(self.results)
        for i, value in enumerate(self.kept):
            self.place.setdefault(value, ("fresh", i))
        kept = {*self.kept}
        taken: dict[Place, Var] = {}
        wanted: list[tuple[Atom, Var]] = []
        for (where, i), var in zip(old.residuals, old.staged.invars, strict=False):
            if where != "fresh":
                taken[where, i] = var
            elif self.fresh[i] in kept:
                taken[self.place[self.fresh[i]]] = var
            else:
                wanted.append((self.fresh[i], var))
        env: dict[Atom, Atom] = {}
        eqns: list[JaxprEqn] = []
        made: dict[Var, Atom] = {}
        given = self.free | kept
        for value, var in sorted(wanted, key=lambda pair: self.order.get(pair[0], -1)):
            made[var] = self.make(value, given, env, taken, eqns)
        staged = substitute(old.staged, made)
        rest = old.staged.invars[len(old.residuals):]
        known, used = dce(known.replace(outvars=[*self.results, *self.kept]), (True,) * (n_results + len(kept)))
        return old._replace(
            known=known, staged=staged.replace(invars=[*taken.values(), *rest], eqns=[*eqns, *staged.eqns]),
            known_operands=tuple([i for i, keep in zip(old.known_operands, used, strict=True) if keep]),
            residuals=tuple(taken), fresh_avals=tuple([v.aval for v in self.kept]))

    def make(self, value: Atom, given: set[Atom], env: dict[Atom, Atom], taken: dict[Place, Var], eqns: list[JaxprEqn]
             ) -> Atom:
        """The variable of the staged part that holds a value; the equations that compute it are added to `eqns`."""
        if type(value) is Literal or value in env:
            return env.get(value, value)
        if value in given:
            found = env[value] = taken.setdefault(self.place[value], Var(value.aval))
            return found
        eqn = self.producer[value]
        invars = [self.make(x, given, env, taken, eqns) for x in eqn.invars]
        out = env[value] = Var(value.aval)
        eqns.append(eqn.replace(invars=invars, outvars=[out]))
        return out


def _bytes(aval: ShapedArray) -> int:
    return aval.size * aval.dtype.itemsize
