"""Faulty rules of batching."""

from __future__ import annotations

from .case import MAPPED, Fault, faults
from .ways import BOX, LEAKED, PLACEHOLDERS, RAISED, VALUES, WEAK

ONE, SEVERAL = "v = twice(*args)", "y, v = twice(*args)"


def _way(way: str, one: str | None, several: str | None) -> tuple[str, str | None, str | None]:
    return way, f"{ONE}\nreturn {one}" if one else None, f"{SEVERAL}\nreturn {several}" if several else None


whole = faults(
    "vmap",
    [
        _way("None", "None", "None"),
        _way("the output alone", "v", "[y, v]"),
        _way("three things", "v, 0, 0", "[y, v], [0, 0], 0"),
        _way("a generator", "(z for z in (v, 0))", "(z for z in ([y, v], [0, 0]))"),
        _way("a dictionary", "{'out': v, 'dim': 0}", "{'out': [y, v], 'dim': [0, 0]}"),
        _way("dim and output swapped", "0, v", "[0, 0], [y, v]"),
        _way("too few outputs", None, "[y], [0, 0]"),
        _way("too many outputs", None, "[y, v, v], [0, 0]"),
        _way("too few dims", None, "[y, v], [0]"),
        _way("too many dims", None, "[y, v], [0, 0, 0]"),
        _way("one dim for several outputs", None, "[y, v], 0"),
        _way("one output for several", None, "y, [0, 0]"),
        _way("outputs by a generator", None, "(z for z in [y, v]), [0, 0]"),
        _way("dims by a generator", None, "[y, v], (z for z in [0, 0])"),
    ],
    MAPPED,
)
DIMS = {
    "another axis": "1",
    "an axis beyond the last": "2",
    "an axis far beyond": "7",
    "a negative axis": "-1",
    "True": "True",
    "False": "False",
    "a float": "0.0",
    "a string": "'0'",
    "a list": "[0]",
    "a tuple": "(0,)",
    "a NumPy integer": "np.int64(0)",
    "an array": "np.array(0)",
    "None for a batched output": "None",
    "the axis itself": "axis",
    "the operand": "args[0]",
}
dims = [
    Fault("vmap", f"dim: {way}", f"{ONE}\nreturn v, {text}", f"{SEVERAL}\nreturn [y, v], [0, {text}]", MAPPED)
    for way, text in DIMS.items()
]
BATCHED = VALUES | {
    "another batch size": "np.ones((v.shape[0] + 1, *v.shape[1:]))",
    "the slice alone": "np.ones(v.shape[1:])",
}
values = [
    Fault(
        "vmap",
        f"output: {way}",
        f"{ONE}\nreturn {text}, 0",
        f"{SEVERAL}\nreturn [y, {text}], [0, 0]",
        MAPPED,
        before=BOX if "Box" in text else "",
    )
    for way, text in (BATCHED | PLACEHOLDERS | WEAK | LEAKED).items()
]
values.append(
    Fault(
        "vmap",
        "output: a tracer of the transformation itself",
        f"{ONE}\nreturn seen[-1], None",
        f"{SEVERAL}\nreturn [y, seen[-1]], [0, None]",
        ("vmap", "jit of vmap"),
    )
)
SQUARE = "xs = np.stack([x, x + 1.0, x * x])\n"
dims.append(
    Fault(
        "vmap",
        "dim: another axis of the same size",
        f"{ONE}\nreturn v, 1",
        f"{SEVERAL}\nreturn [y, v], [0, 1]",
        ("vmap", "jit of vmap"),
        before=SQUARE,
        unseen=("vmap", "jit of vmap"),
        check="a map is a loop",
    )
)
raised = [
    Fault(
        "vmap",
        f"raises {way}",
        body,
        body,
        ("vmap", "jit of vmap", "vmap of grad", "vmap of scan"),
        caught="note",
        raises=kind,
    )
    for way, (body, kind) in RAISED.items()
]
mutations = faults(
    "vmap",
    [
        _way(
            "appends to the dims and operands",
            "dims.append(1) or args.append(v) or v, 0",
            "dims.append(1) or args.append(v) or [y, v], [0, 0]",
        ),
        ("sets a dim", "dims[0] = 1\nreturn twice(*args), 0", "dims[0] = 1\nreturn twice(*args), [0, 0]"),
        (
            "sets an operand",
            "v = args[0]\nargs[0] = None\nreturn twice(v), 0",
            "v = args[0]\nargs[0] = None\nreturn twice(v), [0, 0]",
        ),
    ],
    MAPPED,
    caught="harmless",
)

FAULTS: tuple[Fault, ...] = (*whole, *dims, *values, *raised, *mutations)
