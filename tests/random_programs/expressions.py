"""What single statements compute: a table from slots to expressions of them.

An expression has the type of its slot for whatever it is given, Python numbers included, so it uses functions of `lax`
where a scalar may have no methods. Those of SINGULAR are infinite or have no derivative at zero; they are finite at
the ordinary inputs.
"""

from __future__ import annotations

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


def needed(template: str) -> set[str]:
    """The slots that a template mentions."""
    return {field for _, field, _, _ in Formatter().parse(template) if field}


def rows(keys: tuple[str, ...], *tables: dict[str, list[str]]) -> list[tuple[str, str]]:
    """The slots with their expressions that can be written with these slots alone."""
    return [(key, template) for table in tables for key, templates in table.items() if key in keys
            for template in templates if needed(template) <= set(keys)]
