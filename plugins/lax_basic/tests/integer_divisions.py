"""Programs that divide integers by what a compiler can find to be zero, compared: as they run eagerly and compiled.

Run as a script, it names each program before it runs it, so one that ends the process is the last that was named.
"""

from __future__ import annotations

import numpy as np

import corejax as cj
from corejax import lax

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
X = np.array([3, 4, 5], np.int32)
C = np.array([2, 0, 1], np.int32)
LOW, ONES = np.array([-2 ** 31, 5, -2 ** 31], np.int32), np.array([-1, 0, 1], np.int32)


def _looped(x):
    return lax.fori_loop(0, 3, lambda i, c: c + (x - x) % (i - i) // (c - c), x)


def _while(x):
    zero = x[0] * 0
    return lax.while_loop(lambda c: c[0] < 5 // (c[0] - c[0] + 1), lambda c: (c[0] + 1, c[1] // zero), (zero, x))


def _scanned(x):
    return lax.scan(lambda c, y: (c + (y - y) // (y - y), c % (c - c)), x[0], x)


def _conditional(x):
    return lax.cond(x[0] > 0, lambda y: lax.div(y - y, y - y), lambda y: lax.rem(y - y, y - y), x)


def _inner(x):
    half = cj.jit(lambda y, z: (y // z, y % z))
    return half(x - x, x - x), half(C * 0 + 6, C)


FORMS = {
    "x - x over x - x": lambda x: (x - x) // (x - x),
    "x - x modulo x - x": lambda x: (x - x) % (x - x),
    "divmod": lambda x: divmod(x - x, x - x),
    "reflected": lambda x: (6 // (x - x), 6 % (x - x), divmod(6, x * 0)),
    "0 by 0": lambda x: x + lax.full_like(x, 0) // 0,
    "0 modulo 0": lambda x: x + lax.full_like(x, 0) % 0,
    "constant by constant": lambda x: x + lax.div(np.full(3, 6, np.int32), C),
    "remainder of constants": lambda x: x + lax.rem(np.full(3, 6, np.int32), C),
    "selected": lambda x: lax.select(C == 0, x, lax.full_like(x, 6) // C),
    "filled": lambda x: x * lax.div(lax.full((3,), 7, np.int32), lax.full((3,), 0, np.int32)),
    "converted": lambda x: lax.div(
        np.int32(9), lax.convert_element_type(np.array([256, 1, 0]), np.uint8).astype("int32")),
    "counted": lambda x: lax.div(lax.iota(np.int32, 3), lax.iota(np.int32, 3)) + x,
    "counted, modulo": lambda x: lax.iota(np.int32, 3) % lax.iota(np.int32, 3) + x,
    "reduced": lambda x: lax.div(np.int32(7), lax.reduce_sum(C * 0, (0,))) + x,
    "lowest by -1": lambda x: (lax.div(LOW, ONES), lax.rem(LOW, ONES), LOW // ONES, LOW % ONES, x),
    "lowest by -1, late": lambda x: (lax.div(x * 0 + LOW, x * 0 + ONES), lax.rem(x * 0 + LOW, x * 0 + ONES)),
    "shifted by": lambda x: x // (x >> 31),
    "of sizes": lambda x: x // np.int32(x.size - 3),
    "scattered": lambda x: x // lax.full_like(x, 0).at[1].set(2),
    "sliced": lambda x: lax.full_like(x, 4)[:2] // C[1:],
    "mapped": cj.vmap(lambda y: (y - y) // (y - y)),
    "mapped over constants": lambda x: cj.vmap(lambda y, z: lax.rem(y, z))(C + 6, C) + x,
    "in a loop": _looped, "in a while": _while, "in a scan": _scanned, "in a branch": _conditional,
    "in functions": _inner,
    "computed again": cj.checkpoint(lambda x: (x - x) // (x - x)),
    "beside derivatives": lambda x: cj.grad(lambda w: w * (x[0] // (x - x)[1]).astype(float))(2.0),
    "no elements": lambda x: (x[:0] - x[:0]) // (x[:0] - x[:0]),
    "a power": lambda x: lax.pow(x - x, lax.full_like(x, -3)),
    **{f"{name} of {dtype}": lambda x, divide=divide, dtype=dtype: divide(x.astype(dtype) * 0, x.astype(dtype) * 0)
       for dtype in INTEGERS for name, divide in (("quotient", lax.div), ("remainder", lax.rem))},
    **{f"lowest of {dtype}": lambda x, dtype=dtype: [
        divide(np.full(3, np.iinfo(dtype).min, dtype), np.array([-1, 0, 2], dtype)) for divide in (lax.div, lax.rem)]
       for dtype in INTEGERS[:4]},
}


def exported(x):
    """A program from elsewhere, whose module says what it likes."""
    from corejax.base import _jaxlib
    from corejax.core import ShapedArray
    from corejax.export.artifact import Artifact, portable

    context, kind = _jaxlib.mlir_context(), "tensor<3xi32>"
    text = f"""func.func public @main(%x: {kind}) -> ({kind}, {kind}) {{
      %zero = stablehlo.subtract %x, %x : {kind}
      %quotient = stablehlo.divide %zero, %zero : {kind}
      %remainder = stablehlo.remainder %zero, %zero : {kind}
      return %quotient, %remainder : {kind}, {kind} }}"""
    with context, _jaxlib.ir.Location.unknown(context):
        code = portable(_jaxlib.ir.Module.parse(text))
    aval = ShapedArray((3,), "int32")
    return lax.exported_call(x, program=Artifact("f", (aval,), (aval,) * 2, [(("cpu",), code)]))


def main():
    """Run all of them."""
    for name, form in FORMS.items():
        print(name, flush=True)
        wanted, got = form(lax.mul(X, 1)), cj.jit(form)(X)
        cj.tree.map(lambda x, y, name=name: np.testing.assert_array_equal(x, y, name), wanted, got)
        assert [x.dtype for x in cj.tree.leaves(wanted)] == [x.dtype for x in cj.tree.leaves(got)], name
    print("exported", flush=True)
    np.testing.assert_array_equal([[-1] * 3, [0] * 3], list(map(np.asarray, exported(X))))
    portable_form = cj.export.export(FORMS["constant by constant"])(X)
    np.testing.assert_array_equal(X + [3, -1, 6], cj.export.deserialize(portable_form.serialize()).call(X))
    compiled = cj.jit(FORMS["x - x over x - x"], donate_argnums=0).lower(X).compile()
    np.testing.assert_array_equal([-1] * 3, compiled(cj.device_put(X)))
    print("done")


if __name__ == "__main__":
    main()
