"""Faulty rules of primitives that carry programs: how an equation is divided and shortened, its effects and text."""

from __future__ import annotations

from .case import Fault, faults
from .ways import RAISED

# partial_eval: of a linear primitive, all waits as soon as the operand is unknown

WHOLE = "return None, eqn, (True,) * len(eqn.outvars), ()"
DIVIDED = ("linear_transpose", "grad", "jit of grad")


def _divided(way: str, text: str) -> tuple[str, None, str]:
    return way, None, text


divided = faults(
    "partial_eval",
    [
        _divided("None", "return None"),
        _divided("the equation alone", "return eqn"),
        _divided("three things", "return None, eqn, (True,) * len(eqn.outvars)"),
        _divided("a generator", "return (x for x in (None, eqn, (True,) * len(eqn.outvars), ()))"),
        _divided("no staged equation", "return None, None, (True,) * len(eqn.outvars), ()"),
        _divided("flags as an integer", "return None, eqn, 1, ()"),
        _divided("flags as None", "return None, eqn, None, ()"),
        _divided("too few flags", "return None, eqn, (), ()"),
        _divided("too many flags", "return None, eqn, (True,) * 7, ()"),
        _divided("flags that are no booleans", "return None, eqn, (1,) * len(eqn.outvars), ()"),
        _divided("outputs that are said to be known", "return None, eqn, (False,) * len(eqn.outvars), ()"),
        _divided(
            "a jaxpr for an equation", "return None, cj.make_jaxpr(lambda x: x)(1.0), (True,) * len(eqn.outvars), ()"
        ),
        _divided("a string for an equation", "return None, 'eqn', (True,) * len(eqn.outvars), ()"),
        _divided("a known equation that reads what is unknown", "return eqn, None, (False,) * len(eqn.outvars), ()"),
        _divided(
            "a staged equation that reads what nobody computes",
            "return None, eqn.replace(invars=[Var(eqn.invars[0].aval)]), (True,) * len(eqn.outvars), ()",
        ),
        _divided(
            "other output variables",
            "return None, eqn.replace(outvars=[Var(v.aval) for v in eqn.outvars]), (True,) * len(eqn.outvars), ()",
        ),
        _divided("outputs of another type", "for v in eqn.outvars:\n    v.aval = ShapedArray((4,), float)\n" + WHOLE),
        _divided(
            "an operand too many",
            "return None, eqn.replace(invars=[*eqn.invars, *eqn.invars], params={'no': 1}), "
            "(True,) * len(eqn.outvars), ()",
        ),
        _divided(
            "residuals that nobody computes", "return None, eqn, (True,) * len(eqn.outvars), (Var(eqn.invars[0].aval),)"
        ),
        _divided("residuals as None", "return None, eqn, (True,) * len(eqn.outvars), None"),
        _divided("changes the params", "eqn.params['by'] = 3\n" + WHOLE),
        _divided("changes the operands", "eqn.invars.append(eqn.invars[0])\n" + WHOLE),
        _divided("changes the outputs", "eqn.outvars.reverse() or eqn.outvars.append(eqn.outvars[0])\n" + WHOLE),
    ],
    DIVIDED,
)
divided += [
    Fault("partial_eval", f"raises {way}", None, body, DIVIDED, caught="note", raises=kind)
    for way, (body, kind) in RAISED.items()
]

# dce: asked of equations of which some outputs are used; the derivative of a call leaves out dead code

SHORTENED = ("grad of jit", "vmap of grad of jit")


def _short(way: str, text: str) -> tuple[str, str, str]:
    return way, text, text


shortened = faults(
    "dce",
    [
        _short("None", "return None"),
        _short("the equation alone", "return eqn"),
        _short("flags alone", "return [True]"),
        _short("three things", "return [True], eqn, None"),
        _short("a generator", "return (x for x in ([True], eqn))"),
        _short("flags as None", "return None, eqn"),
        _short("flags as an integer", "return 1, eqn"),
        _short("too few flags", "return [], eqn"),
        _short("too many flags", "return [True, True], eqn"),
        _short("flags that are no booleans", "return [1], eqn"),
        _short("a string for an equation", "return [True], 'eqn'"),
        _short("a jaxpr for an equation", "return [True], cj.make_jaxpr(lambda x: x)(1.0)"),
        _short("no equation though it is needed", "return [False], None"),
        _short("says that an operand is unused", "return [False], eqn"),
        _short("other output variables", "return [True], eqn.replace(outvars=[Var(v.aval) for v in eqn.outvars])"),
        _short("no outputs", "return [True], eqn.replace(outvars=[])"),
        _short(
            "outputs of another type",
            "for v in eqn.outvars:\n    v.aval = ShapedArray((4,), float)\nreturn [True], eqn",
        ),
        _short("changes the params", "eqn.params['by'] = 3\nreturn [True], eqn"),
    ],
    SHORTENED,
)
shortened += [
    Fault("dce", f"raises {way}", body, body, SHORTENED, caught="note", raises=kind)
    for way, (body, kind) in RAISED.items()
]

# effects, typecheck, pretty

EFFECTS = {
    "None": "None",
    "a list": "['print']",
    "a set": "{'print'}",
    "a string": "'print'",
    "a dictionary": "{}",
    "True": "True",
    "a generator": "(e for e in [])",
    "a list for none": "[]",
}
effects = [
    Fault(
        "effects", way, f"return {text}", f"return {text}", ("jit", "jit of cond", "scan", "grad of jit", "make_jaxpr")
    )
    for way, text in EFFECTS.items()
]
effects += [
    Fault("effects", f"raises {way}", body, body, ("jit", "make_jaxpr", "grad of jit"), caught="note", raises=kind)
    for way, (body, kind) in RAISED.items()
]

TYPES = {
    "None": "None",
    "a shape": "(3,)",
    "a string": "'f64[3]'",
    "a generator": "(a for a in avals)",
    "a class": "ShapedArray",
    "an array": "np.ones(3)",
}
typed = [Fault("typecheck", way, f"return {text}", f"return {text}", ("typecheck",)) for way, text in TYPES.items()]
typed += faults(
    "typecheck",
    [
        ("a list for one type", "return [avals[0]]", None),
        ("one type for several", None, "return avals[0]"),
        ("a list with None", None, "return [avals[0], None]"),
    ],
    ("typecheck",),
)
typed += faults(
    "typecheck",
    [
        ("another shape", "return ShapedArray((4,), float)", "return [avals[0], ShapedArray((4,), float)]"),
        ("a weak type", "return avals[0].update(weak_type=True)", "return [avals[0], avals[0].update(weak_type=True)]"),
        ("too few types", None, "return [avals[0]]"),
    ],
    ("typecheck",),
)
typed += [
    Fault("typecheck", f"raises {way}", body, body, ("typecheck",), caught="note", raises=kind)
    for way, (body, kind) in RAISED.items()
    if kind != "CorejaxTypeError"
]

PRINTED = {
    "None": "None",
    "a string": "'by=2'",
    "a list": "[('by', 2)]",
    "a list of names": "['by']",
    "a number": "2",
    "names that are no strings": "{1: 2, 'by': 2}",
    "a generator": "(x for x in ())",
}
BY = {hook: text for hook, text in {"abstract_eval": "return avals[0]", "impl": "return args[0] * 2.0"}.items()}
printed = [
    Fault("pretty", way, f"return {text}", None, ("print",), rules=BY, params=True) for way, text in PRINTED.items()
]
printed += [
    Fault("pretty", f"raises {way}", body, None, ("print",), rules=BY, params=True, caught="note", raises=kind)
    for way, (body, kind) in RAISED.items()
]

FAULTS: tuple[Fault, ...] = (*divided, *shortened, *effects, *typed, *printed)
