"""What single statements compute: a table from slots to expressions of them.

An expression has the type of its slot for whatever it is given, Python numbers included, so it uses functions of `lax`
where a scalar may have no methods. Those of SINGULAR are infinite or have no derivative at zero; they are finite at
the ordinary inputs.
"""

from __future__ import annotations

import re
from string import Formatter

ORDINARY = {
    "u": ["lax.sin({u}) * {v} + {s}", "lax.select({u} > {v}, {u}, {v} * 0.5)", "lax.stop_gradient({v})",
          "lax.tanh({u} * lax.convert_element_type({n}, np.float64) + U)", "({u} + lax.rev({v}, (0,))) * 0.5",
          "(MATRIX * {u}).sum(axis=0) * 0.02", "lax.tanh({u}) * lax.exp(-{v} * {v})", "lax.cumsum({u}) * 0.5",
          "lax.neg({u}).at[1].set({s})", "lax.neg({u}).at[np.array([0, 2])].add({v}[:2])",
          "lax.dynamic_update_slice({u}, {v}[1:], (lax.rem({n}, np.int64(2)),))", "{u} @ (MATRIX[:3] * {v})",
          "lax.broadcast_in_dim({s}, (3,), ())", "lax.square({v}) - {u} * 0.5"],
    "v": ["lax.tanh({u} * U + {v})", "{v} * lax.stop_gradient({s}) - 1.0", "{u}", "lax.max({u}, {v})",
          "lax.clamp(-1.0, {v}, 1.0) * {s}", "lax.concatenate([{u}[1:], {v}[:1]], 0)",
          "lax.convert_element_type({m}, np.float64) * {v} + 0.5", "lax.logistic({v}) * {u}",
          "lax.convert_element_type({i}, np.float64) * 0.125 + {v}", "lax.real({z}) * {v}",
          "lax.convert_element_type({w}, np.float64) + lax.sin({v})", "{v} + {o}.sum()",
          "lax.convert_element_type({a}, np.float64) * 0.25 + {u}"],
    "s": ["({u} * {v}).sum() * 0.5", "lax.cos({s}) * {u}[1]", "lax.sin({s})", "{s} * {s}",
          "lax.tanh(lax.dynamic_index_in_dim({u}, {n} % 3, keepdims=False))", "{u}.max()", "{v}.prod()",
          "{s} * lax.convert_element_type({b}, np.float64) + 0.25", "lax.select({b}, {u}[0], {v}[2])",
          "lax.tanh(lax.log(lax.abs({s}) + 1.5)) * {v}.max()", "{s} * {n}", "0.5", "lax.full((), 0.25)",
          "np.float64(1.5)",
          "lax.real({z}[0] * {z}[1])", "lax.convert_element_type({w}.sum(), np.float64)", "lax.dot({u}, {v})",
          "lax.convert_element_type({h}[0], np.float64) + {s}"],
    "n": ["({n} * 2 + 1) % 5", "lax.convert_element_type({s} * 3.0, np.int64)", "2", "{n} // 2", "-{n}",
          "lax.argmax({u}, 0, np.int64)", "lax.convert_element_type({i}.sum(), np.int64) % 4",
          "lax.convert_element_type({q}[1], np.int64)", "lax.convert_element_type({m}.sum(), np.int64)"],
    "b": ["{s} > 0.1", "({u} < {v}).any()", "lax.bitwise_not({b})", "{m}.all()", "{n} % 2 == 0", "True",
          "({i} >= 0).any() & {b}"],
    "w": ["lax.sin({w}) * 0.5", "{w} * 2 - 1", "lax.convert_element_type({u}, np.float32)", "lax.square({w}) + {w}",
          "{w} * lax.convert_element_type({s}, np.float32)",
          "lax.tanh({w} + lax.convert_element_type({i}, np.float32))",
          "lax.neg({w}).at[0].add(0.5)", "lax.broadcast_in_dim({w}.mean(), (3,), ())"],
    "z": ["{z} * lax.complex({u}, {v})", "lax.conj({z}) * 0.5", "lax.sin({z})", "{z} + {s}", "lax.exp({z}) * 0.25",
          "{z} * {z}", "lax.complex({v}, lax.imag({z}))", "lax.sqrt({z})", "lax.tanh({z})"],
    "i": ["{i} * 2 + 1", "lax.convert_element_type({n}, np.int32) + {i}", "{i} // 2", "{i} % 3", "lax.neg({i})",
          "lax.convert_element_type({u} * 4.0, np.int32)", "lax.neg({i}).at[1].set(5)",
          "lax.bitwise_and({i}, np.full(3, 6, np.int32))",
          "lax.cumsum({i})"],
    "q": ["{q} + 1", "{q} * {q}", "lax.bitwise_not({q})", "lax.convert_element_type({i}, np.uint8)", "{q} // 3"],
    "h": ["{h} * 2 + 1", "lax.convert_element_type({u}, bfloat16)", "{h} * {h}", "lax.neg({h})", "lax.max({h}, H)"],
    "m": ["{u} > {v}", "lax.bitwise_not({m})", "{m} & ({i} > 0)", "{m} | {b}", "lax.is_finite({u})", "{q} > 5"],
    "o": ["lax.sin({o}) + {s}", "{u}[3:]", "{o} * {o}", "lax.cumsum({o})"],
    "a": ["{w} * {s}", "{w} + {i}", "{i} * 0.5", "{q} + {i}", "{b} * {u}", "{a} * {n}", "{h} * {w}", "{i} / 2",
          "{q} - 1",
          "{z} * {w}", "{m} + {q}", "{a} + {s}", "{m} * 2", "{i} ** 2", "{w} ** 2", "{u} * 1j", "{n} * {w}",
          "{h} + {i}",
          "{h} * 0.5", "{m} * 1.5", "lax.full((3,), 2) * {w}", "{i} + np.int8(1)", "{a}"],
}

SINGULAR = {
    "u": ["lax.sqrt({u} * {u}) * {v}", "{v} / {u}", "lax.log(lax.abs({u})) + {s}", "lax.pow(lax.abs({u}), {s})",
          "lax.select({u} > 0.0, lax.sqrt(lax.abs({u})), {v})", "{u} / {s}", "lax.atan2({u}, {v})"],
    "v": ["lax.rsqrt({v} * {v})", "{u} * lax.log({v} * {v})", "{v} ** -1", "lax.exp({u} * 800.0) * {v}"],
    "s": ["lax.sqrt(lax.abs({s}))", "lax.log(lax.abs({s})) * {s}", "{s} + lax.sqrt({u}[0] * {u}[0])",
          "1.0 / lax.sin({s})",
          "lax.pow(lax.abs({s}), 0.5)", "({u} / {v}).max()"],
    "n": ["lax.convert_element_type(lax.max({u}[0] * 1e300, {s}) * 1e300, np.int64)"],
    "w": ["{w} / (lax.abs({w}))", "lax.sqrt(lax.abs({w}))"],
    "z": ["lax.log({z})", "lax.conj({z}) / {z}"],
    "h": ["lax.sqrt(lax.abs({h}))"],
}

#: Integer division whose divisor is known to be zero, to a compiler that looks. With these jax isn't compiled: it dies.
DIVISION = {
    "n": ["{n} // ({n} - {n})", "{n} % ({n} * 0)", "lax.div({n}, np.int64(0))", "lax.rem({n}, np.int64(0))"],
    "i": ["({i} - {i}) // ({i} - {i})", "lax.div({i} * 0, {i} * 0)", "({i} * 0 + 7) // ({i} * 0)",
          "{i} // np.array([2, 0, 1], np.int32)", "{i} % ({i} * 0)", "{i} // 0",
          "lax.select(I == 0, {i}, lax.full_like({i}, 6) // I)", "lax.rem({i}, I)",
          "lax.full_like({i}, 7) % I"],
    "q": ["{q} // ({q} - {q})", "lax.full_like({q}, 9) % Q"],
}


#: Functions of `jnp`, which is the library's namespace of that name.
NUMPY = {
    "u": ["jnp.log1p(jnp.abs({u})) * {v}", "jnp.where({u} > {v}, {u}, jnp.sin({v}))", "jnp.logaddexp({u}, {v}) * 0.5",
          "jnp.hypot({u}, {v})", "jnp.sort({u})", "jnp.arctanh(jnp.tanh({u}) * 0.5) + {v}", "jnp.roll({u}, 1) * {s}",
          "jnp.linalg.solve(jnp.eye(3) * 4.0 + jnp.outer({u}, {u}), {v})", "jnp.convolve({u}, {v}, 'same') * 0.25",
          "jnp.einsum('i,ij->j', {u}, jnp.outer({u}, {v})) * 0.1", "jnp.sinc({u}) + {v}", "jnp.clip({u}, -1, 1)",
          "jnp.take({u}, jnp.argsort({v}))", "jnp.nan_to_num({u})", "jnp.tanh(jnp.cumsum({v}))", "jnp.flip({u})",
          "jnp.concatenate([{v}[1:], {u}[:1]])", "jnp.stack([{u}, {v}]).mean(axis=0)", "jnp.maximum({u}, {v})",
          "jnp.fft.irfft(jnp.fft.rfft({u}), 3)", "jnp.interp({u}, jnp.sort({v}), {u})", "jnp.heaviside({u}, 0.5)",
          "jnp.linalg.cholesky(jnp.eye(3) + jnp.outer({u}, {u}))[2]", "jnp.expm1(-jnp.square({u})) * {v}"],
    "v": ["jnp.broadcast_to({s}, 3) * {v}", "jnp.zeros_like({v}) + {u}", "jnp.full_like({v}, 0.5) * {v}",
          "jnp.diff(jnp.concatenate([{v}, {u}[:1]]))", "jnp.dot(jnp.tile({u}, (3, 1)), {v}) * 0.2",
          "jnp.logaddexp2({u}, {v})",
          "jnp.linspace(0.0, 1.0, 3) * {s}", "lax.erf({u}) + {v}", "lax.lgamma(lax.abs({v}) + 1.0)",
          "jnp.arctan2({u}, {v})",
          "lax.digamma(lax.abs({u}) + 1.0) * {v}", "lax.sort({v})", "lax.cumlogsumexp({v})", "lax.top_k({v}, 3)[0]"],
    "s": ["jnp.linalg.norm({u} + 1.5)", "jnp.mean({u})", "jnp.var({v})",
          "jnp.linalg.det(jnp.eye(3) + jnp.outer({u}, {v}))",
          "jnp.median({u})", "jnp.quantile({v}, 0.25)", "jnp.vdot({u}, {v})",
          "jnp.log({s} * {s} + 1.0)", "jnp.where({b}, {s}, 0.25)", "jnp.prod({v})", "jnp.max({u}) - jnp.min({v})",
          "jnp.polyval({u}, {s})", "jnp.trace(jnp.outer({u}, {v}))", "jnp.std({u}) + {s}"],
    "n": ["jnp.argmax({u}).astype(np.int64)", "jnp.count_nonzero({u} > 0).astype(np.int64)",
          "jnp.remainder({n} + 1, 3)",
          "jnp.searchsorted(jnp.sort({v}), 0.0).astype(np.int64)", "jnp.bitwise_xor({n}, 3) % 5", "jnp.abs({n})"],
    "b": ["jnp.any({u} > 0.5)", "jnp.logical_and({b}, {n} > 0)", "jnp.allclose({u}, {v})", "jnp.isfinite({s})"],
    "w": ["jnp.log2(jnp.abs({w}) + 1) * 0.5", "jnp.float32({s}) + {w}", "{w} * jnp.arange(3, dtype=np.float32)"],
    "m": ["jnp.isclose({u}, {v})", "jnp.logical_xor({m}, {u} > 0)", "jnp.signbit({u})", "jnp.isin({u}, {v})"],
    "i": ["jnp.cumsum({i}, dtype=np.int32) % 7", "jnp.where({i} > 0, {i}, 1)", "jnp.floor_divide({i}, 2)"],
    "z": ["jnp.conj({z}) * 0.5", "jnp.exp(1j * {u})", "{z} * jnp.angle({z})"],
}

#: Arithmetic of words, as generators of pseudorandom numbers have it: constants are greater than the greatest signed
#: integer, as Python's integers and as the words' own. By the width of words.
_HASHES = {
    "d": ["{d} + WORD({GOLDEN})", "{d} * WORD({FIRST})", "({d} ^ ({d} >> {HALF})) * WORD({SECOND})",
          "{d} ^ ({d} << 13)",
          "{d} * jnp.{word}({FIRST}) + jnp.{word}(1)", "jnp.full(3, {GOLDEN}, '{word}') ^ {d}",
          "jnp.asarray({BIG}, '{word}') + {d}", "jnp.array([{GOLDEN}, {BIG}, 1], dtype=WORD) * {d}",
          "{d} * 1664525 + 1013904223",
          "{d} + {GOLDEN}", "{d} ^ 0x7FFFFFFF", "lax.convert_element_type({BIG}, WORD) + {d}",
          "lax.full((3,), {MOST}, WORD) - {d}",
          "lax.full_like({d}, {MOST}) ^ {d}", "jnp.full_like({d}, {GOLDEN}) * {d}",
          "jnp.where({d} > 9, {d}, jnp.{word}({BIG}))",
          "jnp.where({b}, {d}, {BIG})", "jnp.cumsum({d}, dtype=WORD)", "lax.population_count({d}) + {d}",
          "jnp.sum({d}, dtype='{word}') * {d}", "lax.rem({d}, WORD(7)) * {d}", "jnp.arange(3, dtype='{word}') * {d}",
          "jnp.arange({BIG}, {BIG} + 3, dtype=WORD) ^ {d}", "jnp.zeros_like({d}) + WORD({GOLDEN})",
          "jnp.clip({d}, 5, {BIG})",
          "jnp.maximum({d}, {BIG})", "{d} % {BIG}", "({d} << 3) | ({d} >> 29)", "{d}.at[0].set({MOST})",
          "{d}.at[1].add(WORD({GOLDEN}))",
          "{d} // 3", "-{d}", "lax.convert_element_type({n}, WORD) + {d}",
          "lax.shift_right_logical({d}, WORD(5)) ^ {d}",
          "lax.bitwise_not({d})", "jnp.{word}(-1) - {d}", "jnp.array({BIG}) .astype(WORD) + {d}",
          "jnp.bitwise_xor({d}, WORD({FIRST}))",
          "lax.select({u} > 0.0, {d}, ~{d})", "jnp.multiply({d}, {FIRST})", "jnp.array({d}, WORD)",
          "lax.clamp(WORD(1), {d}, WORD({BIG}))",
          "lax.fori_loop(0, 3, lambda _, x: (x ^ (x >> {HALF})) * WORD({FIRST}), {d})", "jnp.left_shift({d}, 5) + {d}",
          "lax.scan(lambda c, x: (c * WORD({FIRST}) + x, c), {d}[0], {d})[1]",
          "api.vmap(lambda x: x * WORD({SECOND}))({d})",
          "jnp.concatenate([{d}[1:], jnp.array([{GOLDEN}], WORD)])", "lax.add({d}, WORD({GOLDEN}))",
          "jnp.asarray({MOST}, WORD) & {d}"],
    "n": ["lax.convert_element_type({d}[0] >> {SHIFT}, np.int64) % 5", "jnp.int64({d}[1] % 3)",
          "jnp.sum({i} * 2).astype(np.int64)",
          "jnp.argmin({d}).astype(np.int64)", "jnp.asarray(2, dtype=np.int64)", "jnp.array(3) * {n} % 5"],
    "u": ["lax.convert_element_type({d} >> {SHIFT}, np.float64) * {TINY} + {u}", "jnp.float64({d} >> {SHIFT}) * {TINY}",
          "jnp.asarray([0.5, 1, 2]) * {u}", "jnp.arange(3.0) + {v}", "jnp.linspace(0, 1, 3) * {u}",
          "jnp.zeros(3) + {u}",
          "jnp.array({u}, dtype=np.float64)", "jnp.mean({u}, dtype=np.float64) * {v}", "jnp.ones(3) * {s}"],
    "s": ["jnp.asarray(0.5) * {s}", "jnp.sum({w}, dtype=np.float64)", "jnp.float64({n}) * 0.125",
          "jnp.array(2) * {s} * 0.25"],
    "b": ["{d}[0] > 0x7FFFFFFF", "({d} == {GOLDEN}).any()", "{d}[1] < {BIG}", "({d} >= WORD({BIG})).all()"],
    "m": ["{d} > {BIG}", "{d} % 2 == 0", "({d} & 1).astype(bool)"],
    "i": ["lax.convert_element_type({d} % 100, np.int32)", "jnp.arange(3, dtype=np.int32) * {i}",
          "jnp.int32({d} & 255)"],
    "q": ["lax.convert_element_type({d}, np.uint8)", "jnp.asarray(200, 'uint8') + {q}",
          "({d} >> {SHIFT}).astype(np.uint8)"],
    "a": ["{d} + {i}", "{d} * {s}", "{d} - 1", "{d} * {n}", "jnp.sum({d}) + {q}", "jnp.prod({d}) * {m}",
          "jnp.mean({d}) + {w}",
          "jnp.cumsum({i})", "{q} * {d}", "{m} + {d}", "{d} ** 2", "{d} / 3", "jnp.sum({i}, dtype='int32') + {w}",
          "jnp.var({w}, dtype='float32') * {u}", "jnp.asarray([1, 2, 3])", "jnp.asarray([0.5, 1, 2])",
          "jnp.arange(3.0)", "jnp.arange(3)",
          "jnp.linspace(0, 1, 3)", "jnp.zeros(3)", "jnp.array([1, 2, 3]) * {q}", "jnp.array(1j) * {w}",
          "jnp.full(3, 7)", "jnp.full(3, {n})",
          "jnp.array([True, 2, 3.5])", "jnp.eye(3)[0] * {h}", "jnp.cumsum({m})", "jnp.sum({q}) + {i}",
          "jnp.prod({m}) * {u}",
          "jnp.bincount({i} % 3, length=3)", "jnp.argsort({u})", "jnp.searchsorted(jnp.sort({u}), {v})",
          "jnp.round({w}, 1)",
          "jnp.where({m}, 1, 2.5)", "jnp.where({m}, 1, 2)", "jnp.where({m}, {w}, 1.0)", "jnp.floor_divide({i}, 2.0)",
          "lax.full((3,), 1.5)", "lax.iota(np.int32, 3) * {n}", "lax.convert_element_type({i}, float)",
          "lax.convert_element_type({w}, int)",
          "{u}.astype(int)", "{i}.astype(float)", "{w}.astype(complex)", "{w} * 1j", "jnp.real(jnp.array([1j, 2, 3]))",
          "jnp.array({i}, dtype=float)", "jnp.ones(3, dtype=int) * {n}", "jnp.zeros(3, complex)",
          "jnp.stack([{n}, {n}, {n}])"],
}

_NUMBERS = {
    32: {"GOLDEN": "0x9E3779B9", "FIRST": "0x85EBCA6B", "SECOND": "0xC2B2AE35", "BIG": "3000000000",
    "MOST": "0xFFFFFFFF",
         "HALF": "16", "SHIFT": "8", "TINY": "2.0**-24", "word": "uint32"},
    64: {"GOLDEN": "0x9E3779B97F4A7C15", "FIRST": "0xBF58476D1CE4E5B9", "SECOND": "0x94D049BB133111EB",
    "BIG": "0x8000000000003039",
         "MOST": "2**64 - 1", "HALF": "30", "SHIFT": "11", "TINY": "2.0**-53", "word": "uint64"},
}


def hashes(bits: int) -> dict[str, list[str]]:
    """Expressions of words so wide."""
    numbers = _NUMBERS[bits]
    # "WORD" is written at full width, and made narrow with the rest of the program's text.
    return {key: [NAME.sub(lambda found: numbers[found[1]], row).replace("WORD", "np.uint64") for row in rows]
            for key, rows in _HASHES.items()}


NAME = re.compile(r"\{([A-Z]+|word)\}")


def needed(template: str) -> set[str]:
    """The slots that a template mentions."""
    return {field for _, field, _, _ in Formatter().parse(template) if field}


def rows(keys: tuple[str, ...], *tables: dict[str, list[str]]) -> list[tuple[str, str]]:
    """The slots with their expressions that can be written with these slots alone."""
    return [(key, template) for table in tables for key, templates in table.items() if key in keys
            for template in templates if needed(template) <= set(keys)]
