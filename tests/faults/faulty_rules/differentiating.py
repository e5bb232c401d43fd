"""Faulty rules of derivatives: jvp as a function, as partials and as factors; linearize; transpose."""

from __future__ import annotations

from .case import FORWARD, REVERSE, Fault, faults
from .ways import BOX, LEAKED, PLACEHOLDERS, RAISED, VALUES, WEAK

DERIVED = (*FORWARD, *REVERSE)
PAIR = "y, t = twice(*primals), twice(*tangents)"
PAIRS = "(y, z), (s, t) = twice(*primals), twice(*tangents)"


def _jvp(way: str, one: str | None, several: str | None) -> tuple[str, str | None, str | None]:
    return (way, f"{PAIR}\nreturn {one}" if one else None, f"{PAIRS}\nreturn {several}" if several else None)


whole = faults(
    "jvp",
    [
        _jvp("None", "None", "None"),
        _jvp("the output alone", "y", "[y, z]"),
        _jvp("three things", "y, t, t", "[y, z], [s, t], None"),
        _jvp("a generator", "(v for v in (y, t))", "(v for v in ([y, z], [s, t]))"),
        _jvp("a dictionary", "{'out': y, 'dot': t}", "{'out': [y, z], 'dot': [s, t]}"),
        _jvp("a string of two letters", "'yt'", "'yt'"),
        _jvp("an array of both", "np.ones((2, 3))", "np.ones((2, 2, 3))"),
        _jvp("too few outputs", None, "[y], [s, t]"),
        _jvp("too many outputs", None, "[y, z, z], [s, t]"),
        _jvp("too few tangents", None, "[y, z], [s]"),
        _jvp("too many tangents", None, "[y, z], [s, t, t]"),
        _jvp("one output for several", None, "y, [s, t]"),
        _jvp("one tangent for several", None, "[y, z], s"),
        _jvp("outputs by a generator", None, "(v for v in [y, z]), [s, t]"),
        _jvp("tangents by a generator", None, "[y, z], (v for v in [s, t])"),
        _jvp("output and tangent swapped in pairs", None, "(y, s, z), (z, t, s)"),
    ],
    DERIVED,
)

values = [
    Fault(
        "jvp",
        f"output: {way}",
        f"{PAIR}\nv = y\nreturn {text}, t",
        f"{PAIRS}\nv = z\nreturn [y, {text}], [s, t]",
        DERIVED,
        before=BOX if "Box" in text else "",
    )
    for way, text in (VALUES | PLACEHOLDERS | WEAK | LEAKED).items()
]
values += [
    Fault(
        "jvp",
        f"tangent: {way}",
        f"{PAIR}\nv = t\nreturn y, {text}",
        f"{PAIRS}\nv = t\nreturn [y, z], [s, {text}]",
        DERIVED,
        before=BOX if "Box" in text else "",
    )
    for way, text in (VALUES | PLACEHOLDERS | WEAK | LEAKED).items()
    if way != "a symbolic zero"
]
values += [
    Fault(
        "jvp",
        "tangent: a symbolic zero of another type",
        f"{PAIR}\nreturn y, Zero(ShapedArray((4,), float))",
        f"{PAIRS}\nreturn [y, z], [s, Zero(ShapedArray((4,), float))]",
        DERIVED,
    ),
    Fault(
        "jvp",
        "output: a tracer of the transformation itself",
        f"{PAIR}\nreturn seen[-1], t",
        f"{PAIRS}\nreturn [y, seen[-1]], [s, t]",
        ("jvp", "jit of jvp", "grad", "jit of grad", "vmap of grad"),
    ),
    Fault(
        "jvp",
        "tangent: a tracer of the transformation itself",
        f"{PAIR}\nreturn y, seen[-1]",
        f"{PAIRS}\nreturn [y, z], [s, seen[-1]]",
        ("jvp", "jit of jvp", "grad", "jit of grad", "vmap of grad"),
    ),
    Fault(
        "jvp",
        "output: a tangent",
        f"{PAIR}\nreturn t, t",
        f"{PAIRS}\nreturn [y, t], [s, t]",
        ("grad", "jit of grad", "vmap of grad"),
    ),
]

linearity = faults(
    "jvp",
    [
        _jvp("a tangent that is constant", "y, np.ones(y.shape)", "[y, z], [s, np.ones(y.shape)]"),
        _jvp("a tangent with a constant part", "y, t + 1.0", "[y, z], [s, t + 1.0]"),
        _jvp("a tangent less a constant", "y, 1.0 - t", "[y, z], [s, 1.0 - t]"),
        _jvp("a product of tangents", "y, t * t", "[y, z], [s, s * t]"),
        _jvp("a sine of the tangent", "y, lax.sin(t)", "[y, z], [s, lax.sin(t)]"),
        _jvp("a quotient by the tangent", "y, 1.0 / t", "[y, z], [s, 1.0 / t]"),
    ],
    DERIVED,
    check="jvp is linear",
    unseen=("jvp",),
)

raised = [
    Fault(
        "jvp",
        f"raises {way}",
        body,
        body,
        ("jvp", "grad", "jit of grad", "vmap of grad", "grad of cond"),
        caught="note",
        raises=kind,
    )
    for way, (body, kind) in RAISED.items()
]

mutations = faults(
    "jvp",
    [
        (
            "writes to an operand",
            "np.asarray(primals[0])[0] = 7.0\nreturn twice(*primals), twice(*tangents)",
            "np.asarray(primals[0])[0] = 7.0\nreturn twice(*primals), twice(*tangents)",
        ),
    ],
    ("jvp",),
    caught="note",
    raises="ValueError",
)
mutations += faults(
    "jvp",
    [
        (
            "appends to the operands",
            "primals.append(primals[0])\nreturn twice(primals[0]), twice(*tangents)",
            "primals.append(primals[0])\nreturn twice(primals[0]), twice(*tangents)",
        ),
    ],
    DERIVED,
    caught="note",
    raises="AttributeError",
)
mutations += faults(
    "jvp",
    [
        (
            "sets a tangent",
            "tangents[0] = primals[0]\nreturn twice(*primals), twice(*tangents)",
            "tangents[0] = primals[0]\nreturn twice(*primals), twice(*tangents)",
        ),
    ],
    DERIVED,
    caught="note",
    raises="TypeError",
)

# Declared derivatives: the primitive x * 2 with another operand, so that terms are added.


def _declared(kind: str, text: str) -> str:
    return f"jvp = {kind}({text})"


SUM = {
    "impl": "return args[0] + args[1]",
    "vmap": "return twice(*args), dims[0]",
    "xla_translation": 'return ctx.op("stablehlo.add", args)',
}
partial_ways = {
    way: f"(lambda v: {text})(2.0 * t)"
    for way, text in (VALUES | PLACEHOLDERS | WEAK | LEAKED).items()
    if way != "a symbolic zero"
}
partial_faults = [
    Fault(
        "jvp",
        f"partials: {way}",
        "",
        None,
        (*FORWARD, *REVERSE[:6]),
        without=("jvp",),
        before=BOX,
        declared=_declared("partials", f"lambda t, out, x: {text}"),
    )
    for way, text in partial_ways.items()
]
partial_faults += [
    Fault(
        "jvp",
        f"partials of two operands: {way}",
        "",
        None,
        (*FORWARD, *REVERSE[:6]),
        without=("jvp",),
        before=BOX,
        declared=_declared("partials", f"lambda t, out, x, y: t, lambda t, out, x, y: {text}"),
        rules=SUM,
        applied="def f(x):\n    return twice(x, x)\n",
    )
    for way, text in partial_ways.items()
]
factor_faults = [
    Fault(
        "jvp",
        f"{kind}: {way}",
        "",
        None,
        (*FORWARD, *REVERSE[:6]),
        without=("jvp",),
        before=BOX,
        declared=_declared(
            kind,
            f"{'over(' * (kind == 'factors over')}lambda out, x: (lambda v: {text})(x){')' * (kind == 'factors over')}",
        ).replace("factors over", "factors"),
    )
    for kind in ("factors", "factors over")
    for way, text in (VALUES | PLACEHOLDERS | LEAKED).items()
    if way != "a Python number"
]

# transpose

RIGHT_ONE, RIGHT_SEVERAL = "v = twice(cotangents)", "v = cotangents[0] * 2.0 + cotangents[1] * 3.0"


def _transpose(way: str, text: str) -> tuple[str, str, str]:
    return way, f"{RIGHT_ONE}\nreturn {text}", f"{RIGHT_SEVERAL}\nreturn {text}"


BACK = (
    "grad", "linear_transpose", "grad of jit", "vmap of grad", "grad of vmap", "jvp of grad", "grad of cond",
    "grad of scan", "jit of grad",
)
transposes = faults(
    "transpose",
    [
        _transpose("None", "None"),
        _transpose("the cotangent alone", "v"),
        _transpose("too many cotangents", "[v, v]"),
        _transpose("too few cotangents", "[]"),
        _transpose("a generator", "(y for y in [v])"),
        _transpose("a dictionary", "{0: v}"),
        _transpose("an array of one row", "np.ones((1, 3))"),
        _transpose("a string of one letter", "'v'"),
        _transpose("its Linear operand", "args"),
        _transpose("a symbolic zero of another type", "[Zero(ShapedArray((4,), float))]"),
    ],
    BACK,
)
transposes += [
    Fault(
        "transpose",
        f"cotangent: {way}",
        f"{RIGHT_ONE}\nreturn [{text}]",
        f"{RIGHT_SEVERAL}\nreturn [{text}]",
        BACK,
        before=BOX if "Box" in text else "",
    )
    for way, text in (VALUES | PLACEHOLDERS | WEAK | LEAKED).items()
    if way not in ("None", "a symbolic zero")
]
transposes += [
    Fault(
        "transpose",
        f"raises {way}",
        body,
        body,
        ("grad", "jit of grad", "vmap of grad", "grad of cond"),
        caught="note",
        raises=kind,
    )
    for way, (body, kind) in RAISED.items()
]
transposes += faults(
    "transpose",
    [
        (
            "writes to the cotangent",
            "np.asarray(cotangents)[0] = 7.0\nreturn [twice(cotangents)]",
            "np.asarray(cotangents[0])[0] = 7.0\nreturn [twice(cotangents[0])[0]]",
        ),
    ],
    ("grad", "linear_transpose"),
    caught="note",
    raises="ValueError",
)
transposes += faults(
    "transpose",
    [
        (
            "sets an operand",
            "args[0] = cotangents\nreturn [twice(cotangents)]",
            "args[0] = cotangents[0]\nreturn [args[0]]",
        ),
    ],
    BACK,
    caught="note",
    raises="TypeError",
)

linearized = [
    Fault("linearize", way, f"{text}", None, ("grad", "jit of grad", "vmap of grad", "grad of vmap"), before=BOX)
    for way, text in {
        "None": "return None",
        "the output alone": "return twice(*primals)",
        "a pair": "return twice(*primals), (lambda r, t: twice(*t))",
        "no function": "return twice(*primals), (), None",
        "a generator": "return (y for y in (twice(*primals), (), lambda r, t: twice(*t)))",
        **{
            f"output: {name}": f"v = twice(*primals)\nreturn {value}, (), lambda r, t: twice(*t)"
            for name, value in (VALUES | PLACEHOLDERS | WEAK | LEAKED).items()
        },
        **{
            f"tangent: {name}": f"def lin(r, t):\n    v = twice(*t)\n    return {value}\nreturn twice(*primals), 0, lin"
            for name, value in (VALUES | PLACEHOLDERS | WEAK | LEAKED).items()
            if name != "a symbolic zero"
        },
        "a constant tangent": "return twice(*primals), (), lambda r, t: np.ones(3)",
    }.items()
]
linearized += [
    Fault("linearize", f"raises {way}", body, None, ("grad", "jit of grad"), caught="note", raises=kind)
    for way, (body, kind) in RAISED.items()
]

FAULTS: tuple[Fault, ...] = (
    *whole,
    *values,
    *linearity,
    *raised,
    *mutations,
    *partial_faults,
    *factor_faults,
    *linearized,
    *transposes,
)
