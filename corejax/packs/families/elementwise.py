"""The plugin of an elementwise primitive, and the functions that make one from a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import wraps
from inspect import Parameter, Signature as PythonSignature
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.arrays.array import Array
from corejax.arrays.datamodel import ArrayLike
from corejax.base import dtypes as types
from corejax.base.avals import Linear, ShapedArray, aval_of
from corejax.base.errors import CorejaxTypeError, MissingRuleError
from corejax.base.source import here
from corejax.base.standins import replaced
from corejax.base.tracebacks import as_entry, trim
from corejax.kernel.declarations import Declaration, Partials, Sample, hookimpl, not_linear, per_operand
from corejax.kernel.primitive import Function, Primitive
from corejax.packs.families.scalars import matching, matching_any, matching_into
from corejax.packs.families.settling import settle
from corejax.packs.families.spreading import align, common_shape, refused, spread, spread_operands, unspread
from corejax.packs.hook_signatures import Signature, adapt_partial

if TYPE_CHECKING:
    from corejax.interpreters.batching import Axis
    from corejax.xla.lowering.programs import Lowering

_NAMES = {"b": "booleans", "i": "signed integers", "u": "unsigned integers", "f": "floats", "c": "complex numbers"}
_SAMPLE_DTYPES = {"b": "bool", "i": "int32", "u": "uint8", "f": "float64", "c": "complex128"}


class Elementwise:
    """The plugin of an elementwise primitive. Build one with `unary`, `binary`, `nary` or `comparison`.

    A subclass may have its own hooks, which take precedence over those from its row.

    `_typed_from` is the position of the first operand that has the common dtype. A subclass checks the dtypes of the
    operands before it in its `abstract_eval`.
    """

    _typed_from = 0

    structural = False

    def __init__(self, name: str, impl: Function | None, *, arity: int | None, hlo: str | Function, dtypes: str,
                 jvp: Any, doc: str, linear: tuple[int, ...] = (),
                 transpose: Declaration | Sequence[Function | None] = (),
                 result: Function | None = None, domain: tuple[float, float] = (-2.0, 2.0),
                 singular: Sequence[float] = (), ulps: float | None = None,
                 exempt: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
                 compiled_at: Function | None = None, cheap: bool = False, example: str = "",
                 params: Mapping[str, Sequence[Any]] = MappingProxyType({}),
                 results: Mapping[Any, Any] = MappingProxyType({}), accurately: Function | None = None,
                 into: Function | None = None, rules: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.name = name
        self.__doc__ = _documented(doc, example)
        self.cheap = cheap
        self._arity, self._kinds, self._result, self._domain = arity, dtypes, result, domain
        self._singular, self._ulps, self._exempt = tuple(singular), ulps, exempt
        self._params, self._results = _values_of(name, params), dict(results)
        self._accurately, self._into = accurately, into
        given = Signature((), tuple(params), False, False)
        self._backward = () if isinstance(transpose, Declaration) else tuple(
            [adapt_partial(f, given) for f in transpose])
        self.not_linear_in = tuple([i for i, f in enumerate(self._backward) if f is None])
        self._bind: Function = _not_defined
        self._primitive: Any = None
        backward: Any = transpose or not_linear(f"{name} is not linear in any operand")
        hooks = {
            "impl": None if impl is None else per_operand(impl, arity, **self._settling(compiled_at)).__func__,
            "xla_translation": hookimpl(_lowering(hlo, arity)),
            "jvp": _spreading(jvp) if isinstance(jvp, Partials) and arity != 1 else jvp, "linear": linear or None,
            "transpose": backward if isinstance(backward, Declaration) else self._transpose}
        for hook, value in hooks.items():
            if value is not None and not hasattr(type(self), hook):
                setattr(self, hook, value)
        for hook, value in rules.items():
            setattr(self, hook, value if isinstance(value, Declaration) else hookimpl(value, optionalhook=True))
        if params:
            self._take_params(impl, compiled_at)
        letters = [letter for letter in "xyzuvw" if letter not in params]
        if arity is not None and arity <= len(letters) and not isinstance(jvp, Partials):
            self.operands = tuple(letters[:arity])  # nothing else may tell how many there are

    def _take_params(self, impl: Function | None, compiled_at: Function | None) -> None:
        """Replace the hooks that a row makes for operands alone by some that also take its params."""
        named = Signature(("args",), tuple(self._params), False, False)
        if type(self).abstract_eval is Elementwise.abstract_eval:
            self.abstract_eval = _with_params(  # type: ignore[method-assign]
                lambda avals, **params: self._type(avals), "avals", self._params)
        if impl is None or hasattr(type(self), "impl"):
            return
        compute = adapt_partial(impl, named)
        assert compute is not None

        def rule(args: Sequence[Any], **params: Any) -> Any:
            out = compute(*args, **params)
            if compiled_at is not None and args[0].dtype.kind == "c":
                return settle(self._primitive, out, args, compiled_at, params)
            return out
        self.impl = _with_params(rule, "args", self._params)

    def attached(self, primitive: Primitive) -> None:
        """Called with the primitive that was made from this plugin."""
        self._primitive, self._bind = primitive, primitive.bind

    def function(self, bind: Function) -> Function:
        """The public function."""
        if self._params:
            return matching_any(bind)
        if self._arity == 1 and self._accurately is not None:
            return _of_one_accurately(self._primitive.bind_one, self._accurately, self.name)
        if self._arity == 1:
            return _of_one(self._primitive.bind_one)
        if self._arity == 2 and self._into is not None:
            return matching_into(self._primitive.bind_two, self._into)
        if self._arity == 2:
            return matching(self._primitive.bind_two)
        return matching_any(bind)

    def _settling(self, compiled_at: Function | None) -> dict[str, Any]:
        """Options of `per_operand` that, for complex operands, ask the compiled program where `impl` is unreliable."""
        if compiled_at is None:
            return {}
        return {"beside": "c", "more": lambda out, args: settle(self._primitive, out, args, compiled_at)}

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        return self._type(avals)

    def _type(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        """The result's type, after checking the operands."""
        if self._arity is not None and len(avals) != self._arity:
            raise refused(self.name, f"it takes {self._arity} operand{'s' * (self._arity != 1)}", avals,
                          f"{self._arity} array{'s' * (self._arity != 1)}", "pass one array for each operand")
        typed = avals[self._typed_from:]
        dtype = typed[0].dtype
        for aval in typed:
            if aval.dtype is not dtype and aval.dtype != dtype:
                raise refused(self.name, "operands differ in dtype", typed, "one dtype",
                              "convert with x.astype(...); Python's operators promote by themselves")
        kind = types.kind(dtype)
        if kind not in self._kinds and not (self.structural and kind == "E"):
            raise refused(self.name, f"dtype {types.short_name(dtype)} is not supported", typed,
                          " or ".join([_NAMES[kind] for kind in self._kinds]), "convert with x.astype(...)")
        weak = all([aval.weak_type for aval in typed])
        return ShapedArray(common_shape(self.name, avals), self._result(dtype) if self._result else dtype, weak)

    @hookimpl
    def _transpose(self, cotangents: object, args: Sequence[object], **params: Any) -> list[Any]:
        if self._arity == 1:
            return [self._backward[0](cotangents, args[0], **params)]  # type: ignore[misc]
        found: list[Any] = []
        for i, x in enumerate(args):
            if type(x) is not Linear:
                found.append(None)
                continue
            backward = self._backward[i]
            if backward is None:
                raise MissingRuleError(f"{self.name} is not linear in operand {i}", primitive=self.name,
                                       hook="transpose", where=here(), todo="differentiate before transposing")
            found.append(unspread(backward(cotangents, *args, **params), x))
        return found

    @hookimpl
    def vmap(self, axis: Axis, args: Sequence[object], dims: Sequence[int | None], **params: Any) -> tuple[Any, int]:
        if len(args) == 1:
            return self._bind(args[0], **params), dims[0]  # type: ignore[return-value]
        args, dim = align(axis.size, args, dims)
        return self._bind(*args, **params), dim

    vmap.binds_itself = True  # type: ignore[attr-defined]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        count = self._arity or 3
        patterns = [[shape] * count for shape in ((), (3,), (2, 3), (0,))]
        if count > 1:
            patterns += [[(2, 3) if i == k else () for i in range(count)] for k in range(count)]
            patterns.append([(0,), *[()] * (count - 1)])
        first, *others = [dict(zip(self._params, values, strict=True)) for values in product(*self._params.values())]
        for kind in self._kinds:
            dtype = np.dtype(_SAMPLE_DTYPES[kind])
            for shapes in patterns if kind in "fc" else patterns[1:2]:
                yield self._sample([draw(rng, shape, dtype, self._domain) for shape in shapes], first)
            for params in others:
                yield self._sample([draw(rng, shape, dtype, self._domain) for shape in patterns[1]], params)
        for operands, result in self._results.items():
            known = self._sample([*map(np.asarray, operands if isinstance(operands, tuple) else (operands,))], first)
            known.domain, known.results = None, np.asarray(result)
            yield known
        refused_kind = next((kind for kind in "bifc" if kind not in self._kinds), None)
        if refused_kind:
            yield Sample([np.ones(2, _SAMPLE_DTYPES[refused_kind])] * count, first, error=TypeError)
        if count > 1:
            dtype = np.dtype(_SAMPLE_DTYPES[self._kinds[0]])
            yield Sample([np.ones(2 + i, dtype) for i in range(count)], first, error=TypeError)

    def _sample(self, args: Sequence[object], params: Mapping[str, Any] | None = None) -> Sample:
        """A sample with the row's domain and singular points, and its exemptions for this kind of dtype."""
        kind = types.kind(aval_of(args[self._typed_from]).dtype)
        return Sample(args, params, domain=self._domain, singular=self._singular, ulps=self._ulps,
                      exempt=self._exempt.get(kind))


# The rows

def unary(name: str, impl: Function | None, *, hlo: str | Function, dtypes: str, jvp: object, doc: str,
          **options: Any) -> Elementwise:
    """A function of one operand.

    impl: the NumPy function, or None to compile each call; then give some `results`, since nothing else says what it
    is. hlo: the operation's name, or a lowering `(ctx, args) -> value`. dtypes: the kinds it takes, of `b i u f c`.
    jvp: `factors`, `partials`, `not_differentiable`, or None beside `linear`. Options:

    - `params`: the names of its params, each with the values that samples take: `{"slope": (0.1, 2.0)}`. The functions
      of the row get those that they name, by keyword;
    - `result`: a function from the operands' dtype to the result's;
    - `results`: results known from elsewhere, by operands (a tuple if there are several), for samples: `{0.5: 0.5205}`.
      For the first value of each param;
    - `transpose`: for each operand a function `(cotangent, *args) -> cotangent`, or None where it isn't linear;
    - `linear`: the operands in which it is linear jointly;
    - `domain`: the interval that samples are drawn from;
    - `singular`: the points of the domain without a derivative;
    - `ulps`: how many units in the last place `impl` and the compiled program may be apart;
    - `exempt`: for a kind of dtypes, the names of checks that don't hold, with the reasons;
    - `compiled_at`: a function `(out, *args) -> mask` that says where, for complex operands, the compiled program
      decides instead of `impl`: for example `at_special_points`, where the two disagree about signs of zeros, branches
      and infinities;
    - `cheap`: it takes about as long as reading its operands, as `neg` and `add` do;
    - `accurately`: a function `(name, x, accuracy)` that is called if the public function, which then has an option
      `accuracy`, is called with one that isn't None;
    - `into`: a function `(x, out_dtype)` that converts each of two operands if the public function, which then has an
      option `out_dtype`, is called with one that isn't None;
    - `rules`: rules or declarations for hooks that transformations of packs add, by hook: `{"inverse": undo(f)}`;
    - `example`: for the documentation, a call and what it prints: `"sqrt(4.0).item() -> 2.0"`.

    >>> from corejax import lax
    >>> from corejax.plugin import define, factors
    >>> leaky = define(unary(
    ...     "demo_leaky", lambda x, *, slope: np.where(x < 0, slope * x, x).astype(x.dtype), dtypes="f",
    ...     hlo=lambda ctx, args, *, slope: ctx.lower(lambda x: lax.select(x < 0, x * slope, x), *args),
    ...     jvp=factors(lambda out, x, *, slope: lax.select(x < 0, x * 0.0 + slope, x * 0.0 + 1.0)),
    ...     params={"slope": (0.1, 0.0)}, singular=(0.0,), doc="x, times `slope` where it is negative."))
    >>> leaky(np.array([-2.0, 3.0]), slope=0.1)
    Array([-0.2,  3. ], dtype=float64)
    """
    return Elementwise(name, impl, arity=1, hlo=hlo, dtypes=dtypes, jvp=jvp, doc=doc, **options)


def nary(name: str, impl: Function | None, arity: int | None, *, hlo: str | Function, dtypes: str, jvp: object,
         doc: str, **options: Any) -> Elementwise:
    """A function of several operands, of any number if `arity` is None; the rest is as for `unary`."""
    return Elementwise(name, impl, arity=arity, hlo=hlo, dtypes=dtypes, jvp=jvp, doc=doc, **options)


def binary(name: str, impl: Function | None, *, hlo: str | Function, dtypes: str, jvp: object, doc: str,
           **options: Any) -> Elementwise:
    """A function of two operands; the rest is as for `unary`."""
    return Elementwise(name, impl, arity=2, hlo=hlo, dtypes=dtypes, jvp=jvp, doc=doc, **options)


def comparison(name: str, impl: Function, *, direction: str, dtypes: str, jvp: object, doc: str,
               example: str = "") -> Elementwise:
    """A function of two operands with a boolean result; `direction` is StableHLO's name for it, such as "LT"."""
    attribute = f"#stablehlo<comparison_direction {direction}>"

    def lower(ctx: Lowering, args: Sequence[object]) -> Any:
        return ctx.op("stablehlo.compare", args, {"comparison_direction": ctx.ir.Attribute.parse(attribute)})

    return Elementwise(name, impl, arity=2, hlo=lower, dtypes=dtypes, jvp=jvp, doc=doc, result=lambda _: types.bool_,
                       cheap=True, example=example)


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, domain: tuple[float, float]) -> np.ndarray:
    """A random array whose elements (or their real and imaginary parts) are in an interval."""
    low, high = domain
    kind = types.kind(dtype)
    if kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if kind in "iu":
        return rng.integers(max(0, int(low)) if kind == "u" else int(low), int(high) + 2, shape).astype(dtype)
    drawn = rng.uniform(low, high, shape)
    return np.asarray(drawn + 1j * rng.uniform(low, high, shape) if kind == "c" else drawn).astype(dtype)


# From rows to hooks

def _documented(doc: str, example: str) -> str:
    """The documentation with its example, as doctest reads it."""
    call, _, shown = example.partition(" -> ")
    return f"{doc}\n\n>>> {call}\n{shown}" if example else doc


def _of_one(bind: Callable[[object], Array]) -> Callable[[ArrayLike], Array]:
    @as_entry
    def function(x: ArrayLike) -> Array:
        try:
            return bind(x)
        except (Exception, SystemExit) as error:
            again = replaced(error, (x,))
            if again is None:
                trim(error)
                raise
        return function(*again)
    return function


def _of_one_accurately(bind: Callable[[object], Array], accurately: Function, name: str) -> Callable[..., Array]:
    @as_entry
    def function(x: ArrayLike, *, accuracy: Any = None) -> Array:
        try:
            return bind(x) if accuracy is None else accurately(name, x, accuracy)
        except (Exception, SystemExit) as error:
            again = replaced(error, (x,))
            if again is None:
                trim(error)
                raise
        return function(*again, accuracy=accuracy)
    function.__annotations__["accuracy"] = accurately.__annotations__.get("accuracy", Any)
    return function


def _lowering(hlo: str | Function, arity: int | None) -> Function:
    if isinstance(hlo, str):
        name = hlo if "." in hlo else f"stablehlo.{hlo}"
        if arity == 1:
            return lambda ctx, args: ctx.op(name, args)
        return lambda ctx, args: ctx.op(name, spread_operands(ctx, args))
    if arity == 1:
        return hlo

    @wraps(hlo)
    def lowering(ctx: Lowering, args: Sequence[Any], **params: Any) -> Any:
        return hlo(ctx, spread_operands(ctx, args), **params)
    return lowering


def _values_of(name: str, params: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """The values of each param that samples take."""
    for param, values in params.items():
        if not isinstance(values, (list, tuple)) or not values:
            raise CorejaxTypeError(f"{name}: the row has no values of the param {param!r} for samples", primitive=name,
                                   got=f"{param}: {values!r:.60}", wanted="a list of values", where=here(),
                                   todo=f'write params={{"{param}": (value, another)}}')
    return {param: tuple(values) for param, values in params.items()}


def _with_params(rule: Function, positional: str, params: Iterable[str]) -> Function:
    """A rule with a signature that names the params."""
    kind = Parameter
    rule.__signature__ = PythonSignature([  # type: ignore[attr-defined]
        kind(positional, kind.POSITIONAL_OR_KEYWORD), *[kind(name, kind.KEYWORD_ONLY) for name in params]])
    return hookimpl(rule)


def _spreading(declared: Partials) -> Partials:
    """The same derivatives, with contributions in the result's shape even for an operand that spreads."""
    def spreading(partial: Function) -> Function:
        @wraps(partial)  # so that it gets the params that the function names
        def spread_out(tangent: object, out: object, *args: object, **params: object) -> Any:
            return spread(partial(tangent, out, *args, **params), out)
        return spread_out

    spread_out = copy(declared)
    spread_out.functions = tuple([spreading(f) if callable(f) else f for f in declared.functions])
    return spread_out


def _not_defined(*_: Any, **__: Any) -> Any:
    raise CorejaxTypeError("a family's plugin is used before define() was called on it", where=here(),
                           todo="write f = define(plugin)")
