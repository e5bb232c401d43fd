"""With `decompose` every other hook is optional, and each can be overridden alone: nothing changes but who does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray, Zero, instantiate, to_dim
from corejax.ir.surgery import dce
from corejax.plugin import define, factors, hookimpl, linear, not_differentiable, not_linear, partials

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 4, 3))
SCALE = 1.5
USED: list[str] = []


# One result and several, each as a plain function and as a primitive that decomposes into it

def plain(x, y, *, scale):
    return lax.sin(x * scale) * y


def plain_pair(x, y, *, scale):
    return [lax.sin(x * scale) * y, x + y * scale]


class Single:
    name = "single"

    @hookimpl
    def decompose(self, args, *, scale):
        return plain(*args, scale=scale)


class Pair:
    name = "pair"
    multiple_results = True

    @hookimpl
    def decompose(self, args, *, scale):
        return plain_pair(*args, scale=scale)


def rules(several: bool, bind: Any) -> dict[str, Any]:
    """A correct rule for each hook, which marks that it was used."""
    function = plain_pair if several else plain

    def packed(found):
        return list(found) if several else found[0]

    def listed(found):
        return list(found) if several else [found]

    def impl(self, args, *, scale):
        x, y = args
        return packed([np.sin(x * scale) * y, x + y * scale])

    def abstract_eval(self, avals, *, scale):
        return packed([ShapedArray(avals[0].shape, avals[0].dtype)] * 2)

    def jvp(self, primals, tangents, *, scale):
        (x, y), (x_dot, y_dot) = primals, tangents
        dots = [lax.cos(x * scale) * scale * y * x_dot + lax.sin(x * scale) * y_dot, x_dot + y_dot * scale]
        return bind(x, y, scale=scale), packed(dots)

    def vmap(self, axis, args, dims, *, scale):
        out = bind(*[to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)], scale=scale)
        return out, packed([0, 0])

    def xla_translation(self, ctx, args, *, scale):
        program = cj.make_jaxpr(lambda *xs: function(*xs, scale=scale))(*ctx.avals_in)
        return packed(ctx.call(program.jaxpr, args))

    def evaluate(self, args, *, scale):
        return listed(function(*args, scale=scale))

    def partial_eval(self, eqn, unknown_in):
        return None, eqn, [True] * len(eqn.outvars), []

    def dce(self, eqn, used_out):
        return [True] * len(eqn.invars), eqn

    def effects(self, avals, *, scale):
        return frozenset()

    def check(self, avals, *, scale):
        return packed([avals[0]] * 2)

    def pretty(self, *, scale):
        return {"times": scale}

    def linearize(self, primals, nonzero, *, scale):
        x, y = primals
        residuals = [lax.cos(x * scale) * scale * y, lax.sin(x * scale)]

        def lin(residuals, tangents):
            x_dot, y_dot = [instantiate(t) for t in tangents]
            return packed([residuals[0] * x_dot + residuals[1] * y_dot, x_dot + y_dot * scale])
        return bind(x, y, scale=scale), residuals, lin

    def samples(self, rng):
        return []

    return {"impl": impl, "abstract_eval": abstract_eval, "jvp": jvp, "vmap": vmap,
            "xla_translation": xla_translation, "evaluate": evaluate, "partial_eval": partial_eval, "dce": dce,
            "effects": effects, "typecheck": check, "pretty": pretty, "linearize": linearize, "samples": samples}


def marked(hook: str, rule: Any) -> Any:
    """The rule with its signature, which leaves a mark when it is used."""
    names = rule.__code__.co_varnames[: rule.__code__.co_argcount]
    params = ["*", "scale"] if rule.__kwdefaults__ or rule.__code__.co_kwonlyargcount else []
    given = [*names, *["scale=scale"] * bool(params)]
    scope = {"rule": rule, "USED": USED, "hook": hook}
    exec(f"def {hook}({', '.join([*names, *params])}):\n"
         f"    USED.append(hook)\n    return rule({', '.join(given)})", scope)
    return hookimpl(scope[hook])


def overriding(base: type, hook: str | None) -> Any:
    """The public function of a primitive that decomposes, with a rule of its own for one hook."""
    function: Any = None

    def bind(*args, **params):
        return function(*args, **params)

    found = rules(base is Pair, bind)
    body = {hook: marked(hook, found[hook])} if hook else {}
    function = define(type(base)(base.__name__, (base,), {**body, "name": f"{base.name}_{hook or 'derived'}"})())
    return function


def programs(f: Any) -> dict[str, Any]:
    """f(x, y) -> array, under transformations and nestings of them."""
    def total(x, y):
        return f(x, y).sum()

    def directions(g):
        return lambda x, y: cj.jvp(g, (x, y), (y, x))

    one = {
        "eval": f, "jvp": directions(f), "grad": cj.grad(total), "grads": cj.grad(total, argnums=(0, 1)),
        "linearize": lambda x, y: cj.linearize(f, x, y)[1](y, x), "vjp": lambda x, y: cj.vjp(f, x, y)[1](x * y),
        "vmap": cj.vmap(f), "vmap x": lambda x, y: cj.vmap(f, (0, None))(x, y[0]),
        "vmap y": lambda x, y: cj.vmap(f, (None, 1), 1)(x[:, 0], y),
        "vmap of vmap": cj.vmap(cj.vmap(f), 1, 1), "vmap of grad": cj.vmap(cj.grad(total, argnums=(0, 1))),
        "grad of vmap": cj.grad(lambda x, y: cj.vmap(total)(x, y).sum(), argnums=(0, 1)),
        "grad of vmap y": cj.grad(lambda x, y: cj.vmap(f, (None, 0))(x[0], y).sum(), argnums=(0, 1)),
        "jvp of vmap": directions(cj.vmap(f)), "vmap of jvp": cj.vmap(directions(f)),
        "jvp of grad": directions(cj.grad(total)),
        "grad of grad": cj.grad(lambda x, y: (cj.grad(total)(x, y) * y).sum()),
        "hessian": lambda x, y: cj.hessian(total)(x[0], y[0]),
        "grad of jit": cj.grad(lambda x, y: cj.jit(total)(x, y)), "vmap of jit": cj.vmap(cj.jit(f)),
        "grad of jit of vmap": cj.grad(lambda x, y: cj.jit(cj.vmap(f))(x, y).sum()),
        "jaxpr": lambda x, y: cj.core.jaxpr_as_fun(cj.make_jaxpr(f)(x, y))(x, y),
    }
    return one | {f"jit of {name}": cj.jit(one[name]) for name in (
        "eval", "jvp", "grads", "vmap y", "vmap of grad", "grad of vmap", "grad of grad", "hessian")}


_results: dict[Any, dict[str, Any]] = {}


def compare(key: Any, wanted: Any, f: Any, compiled: bool = True) -> None:
    """Every program of `f` gives what it gives of `wanted`, whose results are kept under a key."""
    if key not in _results:
        _results[key] = {name: program(X, Y) for name, program in programs(wanted).items()}
    for name, program in programs(f).items():
        if compiled or not name.startswith("jit of "):
            agree(_results[key][name], program(X, Y), name)


def agree(expected: Any, got: Any, name: str) -> None:
    expected, got = cj.tree.leaves(expected), cj.tree.leaves(got)
    assert len(expected) == len(got), name
    for x, y in zip(expected, got, strict=True):
        assert cj.core.aval_of(x).matches(cj.core.aval_of(y)), name
        np.testing.assert_allclose(np.asarray(y), np.asarray(x), rtol=1e-12, atol=1e-14, err_msg=name)


def compare_with_plain(function: Any, base: type, weights: Any = ((1, 1),), compiled: bool = True) -> None:
    if base is Single:
        compare(Single, lambda x, y: plain(x, y, scale=SCALE), lambda x, y: function(x, y, scale=SCALE), compiled)
        return
    for w in weights:
        compare((Pair, w), lambda x, y, w=w: sum_of(plain_pair(x, y, scale=SCALE), w),
                lambda x, y, w=w: sum_of(function(x, y, scale=SCALE), w), compiled)


def sum_of(results, which):
    """The sum of some of several results: the cotangents of the others are zero."""
    return sum([x for x, use in zip(results, which, strict=True) if use], 0.0 * results[1])


SINGLE = [hook for hook in rules(False, None) if hook not in ("evaluate", "partial_eval", "samples")]
CASES = [*[(Single, hook) for hook in SINGLE], *[(Pair, hook) for hook in [*SINGLE, "evaluate", "partial_eval"]]]


@pytest.mark.parametrize("base", [Single, Pair])
def test_decompose_alone_is_enough_under_every_nesting(base):
    compare_with_plain(overriding(base, None), base, ((1, 1), (1, 0), (0, 1)))


@pytest.mark.parametrize(("base", "hook"), CASES)
def test_each_hook_can_be_overridden_alone(base, hook):
    USED.clear()
    function = overriding(base, hook)
    with cj.config(debug_typecheck=True):
        # one and several results are lowered alike, but by a rule of their own
        compare_with_plain(function, base, compiled=base is Pair or hook == "xla_translation")
    text = str(cj.make_jaxpr(lambda x, y: function(x, y, scale=SCALE))(X, Y))
    assert ("times=1.5" if hook == "pretty" else "scale=1.5") in text
    if hook == "dce":
        program = cj.make_jaxpr(lambda x, y: function(x, y, scale=SCALE))(X, Y).jaxpr
        assert (True, True) == dce(program, (True,) * len(program.outvars))[1]
    if hook == "partial_eval":  # asked where an equation itself waits, which a derived jvp never makes it do
        program = cj.make_jaxpr(lambda x, y: function(x, y, scale=SCALE))(X, Y).jaxpr
        assert "pair" in str(cj.core.partial_eval_jaxpr(program, (False, True))[1])
    assert hook in USED
    assert f"defined in {__name__}" == function.primitive.providers[hook]


# A primitive that is linear, and has a transpose rule of its own

class Linears:
    multiple_results = True
    linear = (0,)

    @hookimpl
    def decompose(self, args, *, scale):
        return [args[0] * scale, args[0] * -3.0]


class Transposed(Linears):
    name = "transposed"

    @hookimpl
    def transpose(self, cotangents, args, *, scale):
        USED.append("transpose")
        assert not any(type(ct) is Zero for ct in cotangents)
        return [cotangents[0] * scale - cotangents[1] * 3.0]


@pytest.mark.parametrize("which", [(1, 1), (1, 0), (0, 1)])
def test_a_transpose_of_its_own_gets_arrays_also_for_results_that_nobody_uses(which):
    USED.clear()
    transposed = define(Transposed())

    def wanted(x, y):
        return sum_of([x * SCALE, x * -3.0], which) * y

    def f(x, y):
        return sum_of(transposed(x, scale=SCALE), which) * y

    compare((Transposed, which), wanted, f)
    agree(cj.linear_transpose(lambda x: wanted(x, Y), X)(X), cj.linear_transpose(lambda x: f(x, Y), X)(X), "transpose")
    assert "transpose" in USED


def test_a_transpose_that_is_declared_to_know_zeros_gets_them():
    class Knowing(Linears):
        name = "knowing"
        symbolic_zeros = True

        @hookimpl
        def transpose(self, cotangents, args, *, scale):
            USED.append([type(ct) is Zero for ct in cotangents])
            return [cotangents[0] * scale]

    USED.clear()
    knowing = define(Knowing())
    agree(Y * SCALE, cj.vjp(lambda x: knowing(x, scale=SCALE)[0], X)[1](Y)[0], "vjp")
    assert [[False, True]] == USED


# Combinations

class Sine:
    @hookimpl
    def decompose(self, args):
        return lax.sin(args[0]) + 0.0


class OwnVmap(Sine):
    """A vmap of its own, and a derived jvp."""

    name = "own_vmap"

    @hookimpl
    def vmap(self, axis, args, dims):
        USED.append("vmap")
        return OWN["own_vmap"](args[0]), dims[0]


class OwnLinearize(Sine):
    """A linearize of its own, without a jvp."""

    name = "own_linearize"

    @hookimpl
    def linearize(self, primals, nonzero):
        USED.append("linearize")
        return OWN["own_linearize"](primals[0]), [lax.cos(primals[0])], lambda residuals, dots: residuals[0] * dots[0]


class OwnPartials(Sine):
    name = "own_partials"
    jvp = partials(lambda x_dot, out, x: USED.append("partials") or lax.cos(x) * x_dot)


class OwnFactors(Sine):
    name = "own_factors"
    jvp = factors(lambda out, x: USED.append("factors") or lax.cos(x))


class OwnJvpAndVmap(OwnVmap):
    name = "own_vmap"

    @hookimpl
    def jvp(self, primals, tangents):
        USED.append("jvp")
        return OWN["own_vmap"](primals[0]), lax.cos(primals[0]) * tangents[0]


OWN: dict[str, Any] = {}


@pytest.mark.parametrize(("plugin", "used"), [
    (OwnVmap, {"vmap"}), (OwnLinearize, {"linearize"}), (OwnPartials, {"partials"}), (OwnFactors, {"factors"}),
    (OwnJvpAndVmap, {"vmap", "jvp"})])
def test_rules_of_its_own_and_derived_ones_mix(plugin, used):
    USED.clear()
    f = OWN[plugin.name] = define(plugin())
    compare(Sine, lambda x, y: lax.sin(x) * y, lambda x, y: f(x) * y)
    assert used == set(USED)


def test_a_declaration_that_there_is_no_derivative_holds_below_vmap_too():
    class Refuses(Sine):
        name = "refuses"
        jvp = not_differentiable("for a test")
        transpose = not_linear("for a test")

    refuses = define(Refuses())
    agree(np.sin(X), cj.vmap(refuses)(X), "vmap")
    for f in (refuses, lambda x: cj.vmap(refuses)(x), cj.jit(refuses)):
        with pytest.raises(NotImplementedError, match="refuses .* is not differentiable: for a test"):
            cj.jvp(f, (X,), (X,))


def test_linearity_in_one_operand_holds_for_that_one():
    class InTheFirst:
        name = "linear_in_one"
        jvp = linear(0)

        @hookimpl
        def decompose(self, args):
            return args[0] * args[1]

    product = define(InTheFirst())
    agree(Y, cj.grad(lambda x: product(x, Y).sum())(X), "linear in the first")
    with pytest.raises(NotImplementedError, match="operand 1 has a tangent"):
        cj.grad(lambda y: product(X, y).sum())(Y)

