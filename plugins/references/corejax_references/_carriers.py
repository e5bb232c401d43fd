"""Primitives that carry programs, applied to references: their programs are made pure, for what the references hold.

What is written comes back as a result, and is then what the reference holds. So transformations only ever see pure
programs, and a reference in a loop is a part of its carry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corejax.core import Jaxpr, Primitive, Var, aval_of, here, stage, subjaxprs
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError
from corejax.plugin import carrying
from corejax_control_flow import (
    checkpoint_call,
    checkpointed_scan,
    composite_call,
    cond,
    custom_call,
    custom_pullback,
    platform_dependent,
    scan,
    while_loop,
    xla_call,
)
from corejax_references._cells import Cell, read, replace, twice
from corejax_references._custom_calls import call_with_rules, pullback_with_references
from corejax_references._programs import any_of, ordered, pure, written
from corejax_references._trails import apply_with_trails

__all__ = ["apply"]

Params = Mapping[str, Any]
Rule = Callable[[Any, Sequence[Any], Params], list[Any]]


def apply(primitive: Primitive, args: Sequence[Any], params: Params) -> Any:
    """Apply a primitive that has references among its operands."""
    rule = _RULES.get(primitive)
    if rule is None:
        raise _refused(primitive, args, params)
    if primitive is not while_loop.primitive:
        _check_distinct(args)
    if primitive in _WITHOUT_TRAILS:
        return rule(primitive, args, params)
    return apply_with_trails(rule, primitive, args, params)


def _check_distinct(args: Sequence[Any]) -> None:
    seen: set[int] = set()
    for x in args:
        if isinstance(x, Cell):
            if id(x) in seen:
                raise twice(x, "passed twice to a function, or passed and closed over by it")
            seen.add(id(x))


def _refused(primitive: Primitive, args: Sequence[Any], params: Params) -> Exception:
    at, ref = next((i, x) for i, x in enumerate(args) if isinstance(x, Cell))
    if next(subjaxprs(dict(params)), None) is None:
        return CorejaxTypeError(f"{primitive.name}: operand {at} is a reference", primitive=primitive.name,
                                got=f"a reference, {ref.aval}", wanted="an array", where=here(),
                                todo="read what it holds: ref[...]")
    return CorejaxNotImplementedError(
        f"{primitive.name}: its program can't read or write references from outside of it", primitive=primitive.name,
        pack=primitive.origin, got=f"a reference, {ref.aval}, that it closes over or gets as an argument", where=here(),
        wanted="references in jit, scan, fori_loop, while_loop, cond, switch, checkpoint, custom_jvp and custom_vjp",
        todo="read it outside, pass the array, and write what comes out; within the function, make a reference by "
             "cj.new_ref")


def _values(args: Sequence[Any]) -> list[Any]:
    """The operands, with what references hold."""
    return [read(x) if isinstance(x, Cell) else x for x in args]


def _keep(refs: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
    """Write the first results to these references; the others."""
    for ref, x in zip(refs, outs, strict=False):
        replace(ref, x)
    return [*outs[len(refs):]]


# Rules

def _call(primitive: Any, args: Sequence[Any], params: Params) -> list[Any]:
    """For a call of a program, of all operands."""
    flags = written(params["jaxpr"])
    more: dict[str, Any] = {"jaxpr": pure(params["jaxpr"], flags)}
    if params.get("donated"):
        more["donated"] = tuple([d and not isinstance(x, Cell) for d, x in zip(params["donated"], args, strict=True)])
        more["donated"] = more["donated"] if True in more["donated"] else ()
    return _keep(carrying.marked(args, flags), primitive.bind(*_values(args), **{**params, **more}))


def _cond(primitive: Any, args: Sequence[Any], params: Params) -> list[Any]:
    index, *operands = args
    if isinstance(index, Cell):
        raise index.not_an_array()
    flags = any_of([written(branch) for branch in params["branches"]])
    branches = tuple([pure(branch, flags) for branch in params["branches"]])
    return _keep(carrying.marked(operands, flags), primitive.bind(index, *_values(operands), branches=branches))


def _alternatives(primitive: Any, args: Sequence[Any], params: Params) -> list[Any]:
    """For programs of all operands, of which the platform chooses one."""
    flags = any_of([written(branch) for branch in params["branches"]])
    branches = tuple([pure(branch, flags) for branch in params["branches"]])
    return _keep(carrying.marked(args, flags), primitive.bind(*_values(args), **{**params, "branches": branches}))


def _scan(primitive: Any, args: Sequence[Any], params: Params) -> list[Any]:
    """What steps write becomes a part of the carry; of a reference that is an input, each step writes its slice."""
    n_consts, n_carry, flags = params["num_consts"], params["num_carry"], written(params["jaxpr"])
    first_input = n_consts + n_carry
    for ref in args[n_consts:first_input]:
        if isinstance(ref, Cell):
            raise _carried(primitive, ref)
    moved = [i for i in range(n_consts) if flags[i]]
    rows = [i for i in range(first_input, len(args)) if flags[i]]
    program = pure(params["jaxpr"], flags)
    order = [*[i for i in range(n_consts) if not flags[i]], *moved, *range(n_consts, len(args))]
    n, total = len(moved) + len(rows), len(program.outvars)
    outs = [*range(len(moved)), *range(n, n + n_carry), *range(len(moved), n), *range(n + n_carry, total)]
    found = primitive.bind(*_values([args[i] for i in order]), **{
        **params, "jaxpr": ordered(program, order, outs), "num_consts": n_consts - len(moved),
        "num_carry": n_carry + len(moved)})
    carry_end = len(moved) + n_carry
    results = [*found[:len(moved)], *found[carry_end:carry_end + len(rows)], *found[len(moved):carry_end],
               *found[carry_end + len(rows):]]
    return _keep([args[i] for i in (*moved, *rows)], results)


def _while(primitive: Any, args: Sequence[Any], params: Params) -> list[Any]:
    """What condition and step write becomes a part of the carry."""
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    of_cond, of_body, carry = args[:n_cond], args[n_cond:n_cond + n_body], args[n_cond + n_body:]
    for ref in carry:
        if isinstance(ref, Cell):
            raise _carried(primitive, ref)
    _check_distinct(of_cond)
    _check_distinct(of_body)
    refs: list[Cell] = []
    for x, flag in zip((*of_cond, *of_body), (*written(cond)[:n_cond], *written(body)[:n_body]), strict=True):
        if flag and not any([x is ref for ref in refs]):
            refs.append(x)
    avals = [ref.aval.inner_aval for ref in refs]

    def part(jaxpr: Jaxpr, consts: Sequence[Any], returns: Sequence[Any]) -> tuple[Jaxpr, list[Any]]:
        """The program, with all of `refs` before the carry, and values for its other constants."""
        at = {id(x): i for i, x in enumerate(consts)}
        flags = [any([x is ref for ref in returns]) for x in consts]
        program = pure(jaxpr, (*flags, *[False] * len(carry)))
        kept = [i for i, x in enumerate(consts) if not any([x is ref for ref in refs])]
        held = [program.invars[at[id(ref)]] if id(ref) in at else Var(aval)
                for ref, aval in zip(refs, avals, strict=True)]
        invars = [*[program.invars[i] for i in kept], *held, *program.invars[len(consts):]]
        marked = [x for x, flag in zip(consts, flags, strict=True) if flag]
        outs = program.outvars
        finals = [outs[[x is ref for x in marked].index(True)] if any([x is ref for x in marked]) else var
                  for ref, var in zip(refs, held, strict=True)]
        outvars = [*(finals if returns else ()), *outs[len(marked):]]
        return program.replace(invars=invars, outvars=outvars), _values([consts[i] for i in kept])

    if not any(written(cond)):
        test, test_consts = part(cond, of_cond, ())
        step, step_consts = part(body, of_body, refs)
        outs = primitive.bind(*test_consts, *step_consts, *_values(refs), *carry, cond_jaxpr=test, body_jaxpr=step,
                              cond_nconsts=len(test_consts), body_nconsts=len(step_consts))
        return _keep(refs, outs)
    test, test_consts = part(cond, of_cond, refs)
    step, step_consts = part(body, of_body, refs)
    n = len(refs)

    def turn(*xs: Any) -> list[Any]:
        """The step, and the condition after it: what it finds is a part of the carry, too."""
        consts, (_, *state) = xs[:len(test_consts) + len(step_consts)], xs[len(test_consts) + len(step_consts):]
        state = carrying.run(step, [*consts[len(test_consts):], *state])
        *held, goes_on = carrying.run(test, [*consts[:len(test_consts)], *state])
        return [goes_on, *held, *state[n:]]

    *held, goes_on = carrying.run(test, [*test_consts, *_values(refs), *carry])
    state = [goes_on, *held, *carry]
    consts = [*test_consts, *step_consts]
    turns = stage(turn, [aval_of(x) for x in (*consts, *state)], body.name).jaxpr
    asks = stage(lambda goes_on, *_: [goes_on], [aval_of(x) for x in state], cond.name).jaxpr
    outs = primitive.bind(*consts, *state, cond_jaxpr=asks, body_jaxpr=turns, cond_nconsts=0, body_nconsts=len(consts))
    return _keep(refs, outs[1:])


def _carried(primitive: Any, ref: Cell) -> CorejaxTypeError:
    return CorejaxTypeError(
        f"{primitive.name}: a reference can't be part of the carry", primitive=primitive.name,
        got=f"a reference, {ref.aval}", wanted="arrays that each step returns", where=here(),
        todo="close over it: what a step writes is what the next one reads")


_RULES: Mapping[Any, Rule] = {
    xla_call.primitive: _call, checkpoint_call.primitive: _call, composite_call.primitive: _call,
    cond.primitive: _cond, platform_dependent.primitive: _alternatives,
    scan.primitive: _scan,  # type: ignore[attr-defined]
    checkpointed_scan.primitive: _scan, while_loop.primitive: _while,
    custom_call.primitive: call_with_rules, custom_pullback.primitive: pullback_with_references,
}

#: Those that have no derivative in reverse mode, and calls with rules.
_WITHOUT_TRAILS = frozenset((while_loop.primitive, custom_call.primitive, custom_pullback.primitive))
