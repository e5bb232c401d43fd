"""Primitives that move elements about, applied to what is stored of elements of a pack's own type.

What is stored has axes of its own, after those of the array. Moving elements is doing the same to each of their parts:
so it is the primitive mapped over these axes, by its own vmap rule.
"""

from __future__ import annotations

from typing import Any

from corejax.base import elements
from corejax.base.avals import ShapedArray
from corejax.base.caches import BoundedCache, generation
from corejax.base.elements import ElementType
from corejax.base.errors import CorejaxTypeError
from corejax.base.source import here
from corejax.interpreters.batching import vmap_jaxpr
from corejax.kernel.jaxpr import Jaxpr, JaxprEqn, Var, subjaxprs
from corejax.kernel.keys import param_key


def moved(eqn: JaxprEqn) -> ElementType | None:
    """The type of the elements that an equation moves; None if it is about numbers, or has rules for these elements.

    A primitive that carries programs has its own rules too: whatever these apply moves the elements.
    """
    if not eqn.primitive.structural or next(subjaxprs(eqn.params), None) is not None:
        return None
    found = {elements.find(x.aval.dtype) for x in (*eqn.invars, *eqn.outvars)} - {None}
    if len(found) > 1:
        primitive, names = eqn.primitive, " and ".join(sorted([element.name for element in found if element]))
        raise CorejaxTypeError(f"{primitive.name} ({primitive.origin}) can't move elements of different types at once",
                               primitive=primitive.name, pack=primitive.origin, got=names, where=here(),
                               wanted="one type of elements", todo="apply it to each by itself")
    return found.pop() if found else None


#: Programs by primitive, types and params: mapping one takes longer than lowering it.
_programs: BoundedCache[Any, Jaxpr] = BoundedCache(1024)


def on_stored(eqn: JaxprEqn, element: ElementType) -> Jaxpr:
    """The program of an equation that moves elements, for what is stored of its operands and results."""
    since, key = generation(), (eqn.primitive, *[x.aval for x in (*eqn.invars, *eqn.outvars)], param_key(eqn.params))
    return _programs.get(key) or _programs.put(key, _mapped(eqn, element), since)


def _mapped(eqn: JaxprEqn, element: ElementType) -> Jaxpr:
    def part(aval: ShapedArray) -> ShapedArray:
        return aval.update(dtype=element.physical, weak_type=False) if aval.dtype is element.dtype else aval

    operands, results = [Var(part(x.aval)) for x in eqn.invars], [Var(part(v.aval)) for v in eqn.outvars]
    of_one = JaxprEqn(eqn.primitive, operands, results, eqn.params, eqn.effects, eqn.source, eqn.scope)
    program = Jaxpr((), operands, results, (of_one,), eqn.effects, eqn.primitive.name)
    for i, size in enumerate(element.trailing):
        dims_in, dims_out = [[aval.ndim + i if aval.dtype is element.dtype else None for aval in avals]
                             for avals in ([x.aval for x in eqn.invars], [v.aval for v in eqn.outvars])]
        program, _ = vmap_jaxpr(program, size, None, dims_in, dims_out)
    for i, (result, out) in enumerate(zip(eqn.outvars, program.out_avals, strict=True)):
        if not out.matches(result.aval.stored):
            raise _not_moved(eqn, i, out)
    return program


def _not_moved(eqn: JaxprEqn, i: int, found: ShapedArray) -> CorejaxTypeError:
    primitive, wanted = eqn.primitive, eqn.outvars[i].aval
    if elements.find(wanted.dtype) is None:
        why = "its vmap rule maps a result that holds no elements, over what is stored of them"
        todo = "return the dim None for such a result: where elements go can't depend on what is stored of them"
    else:
        why = "a param says which elements it makes"
        todo = "declare element_types = ('*',), and lower it to what is stored"
    return CorejaxTypeError(f"{primitive.name} ({primitive.origin}) isn't structural: {why}", primitive=primitive.name,
                            pack=primitive.origin, got=f"{found} as result {i} for what is stored", where=here(),
                            wanted=str(wanted.stored), todo=todo)
