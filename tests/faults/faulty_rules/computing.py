"""Faulty rules of what a primitive computes: abstract_eval, impl, xla_translation, decompose, evaluate."""

from __future__ import annotations

from .case import COMPUTED, Fault, faults
from .ways import BOX, LEAKED, PLACEHOLDERS, RAISED, VALUES, WEAK

# abstract_eval

TYPES = {
    "None": "None",
    "a dtype": "np.dtype(float)",
    "a shape": "avals[0].shape",
    "a class": "ShapedArray",
    "an array": "np.ones(3)",
    "a string": "'f64[3]'",
    "a pair of shape and dtype": "(avals[0].shape, avals[0].dtype)",
    "a symbolic zero": "Zero(avals[0])",
    "a generator": "(a for a in avals)",
    "a dictionary": "{0: avals[0]}",
    "a tracer": "leaked(avals[0])",
}
types = [
    Fault(
        "abstract_eval",
        way,
        f"return {text}",
        f"return [avals[0], {text}]",
        ("eager", "jit", "vmap", "grad", "scan", "jit of cond"),
    )
    for way, text in TYPES.items()
]
types += faults(
    "abstract_eval",
    [
        ("a list of one type", "return [avals[0]]", None),
        ("a tuple of types", "return avals", None),
        ("one type for several", None, "return avals[0]"),
        ("None for several", None, "return None"),
        ("a generator for several", None, "return (a for a in (avals[0], avals[0]))"),
    ],
    ("eager", "jit", "vmap", "grad", "scan", "jit of cond"),
)
SAID = {
    "another shape": "ShapedArray((4,), float)",
    "another rank": "ShapedArray((3, 1), float)",
    "another dtype": "avals[0].update(dtype=np.float32)",
    "an integer dtype": "avals[0].update(dtype=np.int64)",
}
types += [
    Fault(
        "abstract_eval",
        f"{way} than impl returns",
        f"return {text}",
        f"return [avals[0], {text}]",
        ("eager", "jit", "grad", "jit of cond"),
        named=("impl",),
        without=("xla_translation",),
        second=True,
    )
    for way, text in SAID.items()
]
types += [
    Fault(
        "abstract_eval",
        f"{way} than xla_translation returns",
        f"return {text}",
        f"return [avals[0], {text}]",
        ("eager", "jit"),
        named=("xla_translation",),
        without=("impl",),
        second=True,
    )
    for way, text in SAID.items()
]
types += [
    Fault(
        "abstract_eval",
        f"{way} than decompose returns",
        f"return {text}",
        None,
        ("eager", "jit", "vmap"),
        named=("decompose", "vmap"),
        without=("impl", "xla_translation", "jvp", "transpose", "vmap"),
        decomposes=True,
    )
    for way, text in {**SAID, "a weak type": "avals[0].update(weak_type=True)"}.items()
]
types += [
    Fault("abstract_eval", f"raises {way}", body, body, ("eager", "jit", "vmap", "grad"), caught="note", raises=kind)
    for way, (body, kind) in RAISED.items()
    if way not in ("IndexError",)
]
types += faults(
    "abstract_eval",
    [
        (
            "changes a type",
            "avals[0].shape = (4,)\nreturn avals[0]",
            "avals[0].shape = (4,)\nreturn [avals[0], avals[0]]",
        ),
    ],
    ("eager", "jit", "vmap"),
    caught="note",
    raises="AttributeError",
)
types += faults(
    "abstract_eval",
    [
        (
            "appends to the types",
            "avals.append(avals[0])\nreturn avals[0]",
            "avals.append(1)\nreturn [avals[0], avals[0]]",
        ),
    ],
    ("eager", "jit"),
    caught="note",
    raises="AttributeError",
)

# impl

HOST = (
    VALUES
    | PLACEHOLDERS
    | LEAKED
    | {
        "another byte order": "np.ones(3, '>f8')",
        "a subclass of float": "type('Own', (float,), {})(2.0)",
    }
)
impls = [
    Fault(
        "impl",
        f"result: {way}",
        f"v = args[0] * 2.0\nreturn {text}",
        f"v = args[0] * 3.0\nreturn [args[0], {text}]",
        COMPUTED,
        without=("xla_translation",),
        before=BOX if "Box" in text else "",
    )
    for way, text in HOST.items()
]
impls += faults(
    "impl",
    [
        ("one result for several", None, "return args[0]"),
        ("too few results", None, "return [args[0]]"),
        ("too many results", None, "return [args[0], args[0], args[0]]"),
        ("None for several", None, "return None"),
        ("results by a generator", None, "return (v for v in [args[0], args[0]])"),
        ("results as a dictionary", None, "return {0: args[0], 1: args[0]}"),
        ("results as a string", None, "return 'yz'"),
        ("results as an array of rows", None, "return np.ones((2, 3))"),
    ],
    COMPUTED,
    without=("xla_translation",),
)
WRITES = {
    "by assignment": "args[0][0] = 7.0",
    "in place": "v = args[0]\nv *= 3.0",
    "by out=": "np.multiply(args[0], 2.0, out=args[0])",
    "by sorting": "args[0].sort()",
    "through a view": "args[0][:2][...] = 7.0",
    "by fill": "args[0].fill(7.0)",
}
RIGHT = {False: "return args[0] * 2.0", True: "return [args[0] * 2.0, args[0] * 3.0]"}
impls += [
    Fault(
        "impl",
        f"writes to its operand {way}",
        f"{text}\n{RIGHT[False]}",
        f"{text}\n{RIGHT[True]}",
        COMPUTED,
        without=("xla_translation",),
    )
    for way, text in WRITES.items()
]
impls += faults(
    "impl",
    [
        ("appends to the operands", f"args.append(1)\n{RIGHT[False]}", f"args.append(1)\n{RIGHT[True]}"),
    ],
    COMPUTED,
    caught="note",
    raises="AttributeError",
    without=("xla_translation",),
)
impls += faults(
    "impl",
    [
        ("sets an operand", f"args[0] = np.ones(3)\n{RIGHT[False]}", f"args[0] = np.ones(3)\n{RIGHT[True]}"),
    ],
    COMPUTED,
    caught="note",
    raises="TypeError",
    without=("xla_translation",),
)
impls += [
    Fault(
        "impl",
        f"raises {way}",
        body,
        body,
        ("eager", "jit", "grad"),
        caught="note",
        raises=kind,
        without=("xla_translation",),
    )
    for way, (body, kind) in RAISED.items()
]

# xla_translation

LOWERED = ("jit", "jit of cond", "scan", "jit of vmap", "jit of value_and_grad", "vmap of jit", "eager")
DOUBLE = 'v = ctx.op("stablehlo.add", [args[0], args[0]], None, ctx.out_types[:1])'
MLIR = {
    "None": "None",
    "a list": "[v]",
    "a string": "'v'",
    "a number": "2.0",
    "an array": "np.ones(3)",
    "an operation": "v.owner",
    "a type": "ctx.out_types[0]",
    "a generator": "(y for y in [v])",
    "another shape": "ctx.constant(np.ones(4))",
    "another dtype": "ctx.constant(np.ones(3, np.float32))",
    "an integer dtype": "ctx.constant(np.ones(3, np.int64))",
}
lowerings = [
    Fault(
        "xla_translation",
        f"result: {way}",
        f"{DOUBLE}\nreturn {text}",
        f"{DOUBLE}\nreturn [v, {text}]",
        LOWERED,
        without=("impl",),
        before="kept = {}",
    )
    for way, text in MLIR.items()
]
lowerings += faults(
    "xla_translation",
    [
        ("one value for several", None, f"{DOUBLE}\nreturn v"),
        ("too few values", None, f"{DOUBLE}\nreturn [v]"),
        ("too many values", None, f"{DOUBLE}\nreturn [v, v, v]"),
        ("None for several", None, "return None"),
        ("values by a generator", None, f"{DOUBLE}\nreturn (y for y in [v, v])"),
        ("two letters for values", None, "return 'yz'"),
    ],
    LOWERED,
    without=("impl",),
)
lowerings += faults(
    "xla_translation",
    [
        (
            "an operation that there is not",
            'return ctx.op("stablehlo.no", [args[0]])',
            'v = ctx.op("stablehlo.no", [args[0]], None, ctx.out_types[:1])\nreturn [v, v]',
        ),
        (
            "an operation with too few operands",
            'return ctx.op("stablehlo.add", [args[0]])',
            'v = ctx.op("stablehlo.add", [args[0]], None, ctx.out_types[:1])\nreturn [v, v]',
        ),
        (
            "an operation on None",
            'return ctx.op("stablehlo.add", [args[0], None])',
            'v = ctx.op("stablehlo.add", [args[0], None], None, ctx.out_types[:1])\nreturn [v, v]',
        ),
        (
            "an operation with operands that don't fit",
            'return ctx.op("stablehlo.add", [args[0], ctx.constant(np.ones(4))])',
            'v = ctx.op("stablehlo.add", [args[0], ctx.constant(np.ones(4))], None, ctx.out_types[:1])\nreturn [v, v]',
        ),
        (
            "a region without a block",
            'return ctx.op("stablehlo.reduce", [args[0], ctx.constant(np.float64(0))], None, None, 1)',
            None,
        ),
        (
            "a block without a terminator",
            "zero = ctx.constant(np.int32(0))\n"
            'op = ctx.ir.Operation.create("stablehlo.case", ctx.out_types, [zero], None, None, 1)\n'
            "op.regions[0].blocks.append()\nreturn op.result",
            None,
        ),
        (
            "an attribute that can't be read",
            'return ctx.op("stablehlo.add", args * 2, {"a": ctx.attribute("#no<")})',
            None,
        ),
    ],
    LOWERED,
    without=("impl",),
)
AGAIN = "cj.jit(lambda x: f(x) + 1.0)"
KEPT = "kept = {}\n"
lowerings += faults(
    "xla_translation",
    [
        ("a terminator amid the function", 'ctx.op("func.return", [args[0]], None, [])\nreturn args[0]', None),
    ],
    ("jit", "jit of cond", "scan", "jit of vmap", "eager"),
    without=("impl",),
)
lowerings += [
    Fault(
        "xla_translation",
        f"keeps {way} for the next program",
        text,
        None,
        ("jit", "jit of cond", "scan", "eager"),
        without=("impl",),
        before=KEPT,
        first=True,
    )
    for way, text in {
        "its result": f"{DOUBLE}\nreturn kept.setdefault(0, v)",
        "an operand": 'return ctx.op("stablehlo.add", [kept.setdefault(0, args[0]), args[0]])',
        "a constant": 'v = kept.setdefault(0, ctx.constant(np.ones(3)))\nreturn ctx.op("stablehlo.add", [args[0], v])',
        "a constant, and passes it to a jaxpr": "v = kept.setdefault(0, args[0])\n"
        "return ctx.call(cj.make_jaxpr(lambda x: x + x)(np.ones(3)).jaxpr, [v])[0]",
        "a type": 'return ctx.op("stablehlo.add", args * 2, None, kept.setdefault(0, ctx.out_types[:1]))',
    }.items()
]
lowerings += faults(
    "xla_translation",
    [
        (
            "changes the types that are wanted",
            'ctx.out_types[0] = None\nreturn ctx.op("stablehlo.add", [args[0], args[0]])',
            None,
        ),
    ],
    LOWERED,
    without=("impl",),
    caught="note",
    raises="TypeError",
)
lowerings += faults(
    "xla_translation",
    [
        ("changes its operands", 'v = args.pop()\nreturn ctx.op("stablehlo.add", [v, v])', None),
    ],
    LOWERED,
    without=("impl",),
    caught="harmless",
)
lowerings += [
    Fault(
        "xla_translation",
        f"raises {way}",
        body,
        body,
        ("jit", "jit of cond", "eager"),
        without=("impl",),
        caught="note",
        raises=kind,
    )
    for way, (body, kind) in RAISED.items()
]

# callbacks

CALLED = {
    "a value for a sequence": "v",
    "None": "None",
    "too few": "[]",
    "too many": "[v, v]",
    **{f"result: {way}": f"[{text}]" for way, text in (VALUES | PLACEHOLDERS | LEAKED).items()},
}
callbacks = [
    Fault(
        "xla_translation",
        f"a callback that returns {way}",
        f"return ctx.callback(lambda a: (lambda v: {text})(a * 2.0), args, ctx.avals_out)[0]",
        None,
        ("jit", "scan", "jit of vmap", "jit of cond"),
        without=("impl",),
        before=BOX if "Box" in text else "",
    )
    for way, text in CALLED.items()
]
callbacks += [
    Fault(
        "xla_translation",
        f"a callback that raises {way}",
        f"def call(a):\n    {body.splitlines()[0]}\n"
        + "".join(f"    {line}\n" for line in body.splitlines()[1:])
        + "return ctx.callback(call, args, ctx.avals_out)[0]",
        None,
        ("jit", "scan"),
        without=("impl",),
        caught="note",
        raises=kind,
    )
    for way, (body, kind) in RAISED.items()
]

# decompose

PARTS = ("impl", "xla_translation", "jvp", "transpose", "vmap", "abstract_eval")
#: Arrays, but for which only abstract_eval says that they are wrong.
OTHER_TYPES = ("another shape", "another rank", "another dtype", "an integer dtype", "a complex dtype",
               "a Python number", "an array of float0")
ANYWHERE = ("eager", "jit", "vmap", "grad", "jit of grad", "scan", "jvp")
decomposed = [
    Fault(
        "decompose",
        f"result: {way}",
        f"v = args[0] * 2.0\nreturn {text}",
        f"v = args[0] * 3.0\nreturn [args[0], {text}]",
        ANYWHERE,
        without=PARTS,
        before=BOX if "Box" in text else "",
    )
    for way, text in (VALUES | PLACEHOLDERS | LEAKED).items()
    if way not in OTHER_TYPES
]
decomposed += [
    Fault(
        "decompose",
        f"{way}, unlike abstract_eval",
        f"v = args[0] * 2.0\nreturn {text}",
        f"v = args[0] * 3.0\nreturn [args[0], {text}]",
        ANYWHERE,
        without=PARTS[:-1],
        named=("vmap", "jvp"),
    )
    for way, text in (VALUES | WEAK).items()
    if way in (*OTHER_TYPES, "a weak type")
]
decomposed += faults(
    "decompose",
    [
        ("one result for several", None, "return args[0]"),
        ("None for several", None, "return None"),
        ("results by a generator", None, "return (v for v in [args[0], args[0]])"),
    ],
    ANYWHERE,
    without=PARTS,
)
decomposed += faults(
    "decompose",
    [
        ("too few results", None, "return [args[0]]"),
        ("too many results", None, "return [args[0], args[0], args[0]]"),
    ],
    ANYWHERE,
    without=PARTS[:-1],
    named=("vmap", "jvp", "transpose"),
)
decomposed += [
    Fault(
        "decompose",
        f"raises {way}",
        body,
        body,
        ("eager", "jit", "grad", "vmap"),
        without=PARTS,
        caught="note",
        raises=kind,
        named=("abstract_eval",),
    )
    for way, (body, kind) in RAISED.items()
    if way != "IndexError"
]
decomposed += faults(
    "decompose",
    [("applies itself", "return twice(args[0])", "return twice(args[0])")],
    (*ANYWHERE, "linear_transpose"),
    without=PARTS,
)
decomposed += faults(
    "decompose",
    [("applies itself, beside abstract_eval", "return twice(args[0])", "return twice(args[0])")],
    (*ANYWHERE, "linear_transpose"),
    without=PARTS[:-1],
)

# evaluate

evaluated = [
    Fault(
        "evaluate",
        f"result: {way}",
        None,
        f"v = args[0] * 3.0\nreturn [args[0], {text}]",
        ("eager", "cond", "vmap", "grad"),
        without=("impl",),
        before=BOX if "Box" in text else "",
    )
    for way, text in (VALUES | PLACEHOLDERS | WEAK | LEAKED).items()
]
evaluated += faults(
    "evaluate",
    [
        ("None", None, "return None"),
        ("one result for several", None, "return args[0]"),
        ("too few results", None, "return [args[0]]"),
        ("too many results", None, "return [args[0]] * 3"),
        ("results by a generator", None, "return (v for v in [args[0], args[0]])"),
    ],
    ("eager", "cond", "vmap", "grad"),
    without=("impl",),
)
evaluated += [
    Fault(
        "evaluate",
        f"raises {way}",
        None,
        body,
        ("eager", "cond", "vmap", "grad"),
        without=("impl",),
        caught="note",
        raises=kind,
    )
    for way, (body, kind) in RAISED.items()
]
evaluated += faults(
    "evaluate",
    [
        ("sets an operand", None, "args[0] = None\nreturn [args[0], args[0]]"),
    ],
    ("eager", "grad"),
    without=("impl",),
    caught="note",
    raises="TypeError",
)

FAULTS: tuple[Fault, ...] = (*types, *impls, *lowerings, *callbacks, *decomposed, *evaluated)
