"""A case: one primitive with one input, and what checks need to know about it and do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from corejax.core import Array, Primitive, ShapedArray, aval_of, default_platform, dtypes, is_on_device
from corejax.errors import CorejaxError
from corejax.plugin import NotDifferentiable, Partials, Sample
from corejax_testing.comparing import contents, host
from corejax_testing.report import Mismatch, NotApplicable, clipped

#: The dtypes that a double-precision sample is also tried with, if `abstract_eval` accepts them.
_NARROWER = {np.dtype(np.float64): (dtypes.float32, dtypes.bfloat16), np.dtype(np.complex128): (dtypes.complex64,)}

#: What a sample may be exempt from in one word. A derivative departs that isn't the value's, such as a straight-through
#: estimator's: it is compared with no differences of the value, and keeps all other laws.
DERIVATIVE = "derivative"
DEPARTURES = (DERIVATIVE,)

#: From this many different params on, samples of the same dtypes take turns with narrower dtypes.
_MANY = 5


class Case:
    """One primitive with one input.

    `args` are the sample's operands (NumPy arrays, Python scalars), `avals` their types, `rng` a random generator for
    just this primitive, sample and check, so that failures are reproducible.
    """

    def __init__(self, primitive: Primitive, sample: Sample, number: int, check: str = "", full: bool = False,
                 samples: Sequence[Sample] = (), waiting: list[Any] | None = None) -> None:
        self.primitive, self.sample, self.number, self.full = primitive, sample, number, full
        self.samples = samples or (sample,)
        self.waiting = waiting
        self.check = check
        self.args = sample.args
        self.params = sample.params
        self.alone: bool | None = None  # whether it is elementwise, once that is known
        self.rng = np.random.default_rng(crc32(f"{primitive.name} {number} {check}".encode()))

    def __repr__(self) -> str:
        shown = ", ".join([_shown(x) for x in self.args])
        params = ", ".join([f"{name}={clipped(value)}" for name, value in self.params.items()])
        return f"sample {self.number}: {self.primitive.name}({', '.join(filter(None, (shown, params)))})"

    # What it is

    @property
    def avals(self) -> tuple[ShapedArray, ...]:
        """The types of the operands."""
        return tuple([aval_of(x) for x in self.args])

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the results, from `abstract_eval`."""
        outs = self.primitive.infer(self.avals, self.params)
        return list(outs) if self.primitive.multiple_results else [outs]

    @property
    def inexact(self) -> list[int]:
        """The operands that can have tangents: the floating and complex ones, but those that are refused."""
        refused = self.refused
        return [i for i, aval in enumerate(self.avals) if dtypes.is_inexact(aval.dtype) and i not in refused]

    @property
    def refused(self) -> dict[int, str]:
        """The operands that are declared to have no derivative, each with the reason."""
        jvp = self.declared("jvp")
        functions = jvp.functions if isinstance(jvp, Partials) else ()
        return {i: f.reason for i, f in enumerate(functions) if isinstance(f, NotDifferentiable)}

    @property
    def doubles(self) -> list[int]:
        """The operands whose derivatives can be compared with differences: float64 and complex128, not empty."""
        return [i for i in self.inexact if self.avals[i].dtype in _NARROWER and self.avals[i].size]

    @property
    def differentiable(self) -> list[int]:
        """`doubles`, the operands for checks of derivatives. Not applicable if there are none or no floating result."""
        if not any([dtypes.is_inexact(aval.dtype) for aval in self.out_avals]):
            raise NotApplicable("no result has a derivative")
        if not self.doubles:
            raise NotApplicable("no operand is float64 or complex128")
        return self.doubles

    @property
    def atol(self) -> float:
        """How far results may be apart whatever their size, as the sample says."""
        return self.sample.atol or 0.0

    @property
    def domains(self) -> list[Any]:
        """For each operand the interval to draw it from, or None."""
        domain = self.sample.domain
        return list(domain) if self._has_domain_for_each() else [domain] * len(self.args)

    @property
    def representative(self) -> bool:
        """Whether slow checks run on this case: in the quick mode, only if it is the `largest`."""
        return self.full or self.largest

    @property
    def largest(self) -> bool:
        """Whether this is the (first) largest of the samples with its dtypes and params."""
        alike = [each for each in self.alike() if each.params == self.params]
        return not alike or max(alike, key=_elements) is self.sample

    def declared(self, hook: str) -> Any:
        """What the plugin declares in place of a hook, unless another pack's rule takes precedence."""
        owner, found = self.primitive.origin, self.primitive.providers
        return getattr(self.primitive.plugin, hook, None) if found.get(hook, owner) == owner else None

    def blamed(self, *slots: str) -> str:
        """Which of these rules is to blame if they contradict each other: another pack's, else the first one."""
        found = [each for each in slots if self.primitive.providers.get(each, "derived") not in (
            "derived", self.primitive.origin)]
        return (found or slots)[0]

    @property
    def lowering(self) -> str:
        """The slot of the rule that compiles it here: for this platform, if there is one."""
        slot = f"xla_translation@{default_platform()}"
        return slot if slot in self.primitive.providers else "xla_translation"

    # What it does

    def apply(self, *args: Any) -> list[Any]:
        """The results of binding the primitive to these operands, always as a list. Fails if it writes to one."""
        before = [contents(x) for x in args]
        out = self.primitive.bind(*args, **self.params)
        outs = list(out) if self.primitive.multiple_results else [out]
        self.check_unchanged(args, before, outs)
        return outs

    def check_unchanged(self, args: Sequence[Any], before: Sequence[Any], outs: Sequence[Any], hook: str = "",
                        how: str = "") -> None:
        """Fail if operands don't hold what they held before. `hook` is blamed, or else what evaluates them."""
        if not any(before):  # it is traced
            return
        for out in outs:
            if type(out) is Array:
                out.block_until_ready()
        changed = [i for i, (x, content) in enumerate(zip(args, before, strict=True)) if contents(x) != content]
        if not changed:
            return
        got = clipped(host(args[changed[0]]).tolist())
        for i in changed:
            if isinstance(args[i], np.ndarray) and args[i].flags.writeable:  # other checks need the sample as it was
                shape, dtype, held = before[i]
                args[i][...] = np.frombuffer(held, dtype).reshape(shape)
        compiled = self.primitive.impl is None or any([is_on_device(x) for x in args if type(x) is Array])
        raise self.fail(
            hook or (self.lowering if compiled else "impl"), f"it writes to operand {changed[0]}{how}", got=got,
            wanted="the values as they were", todo="let a native function write to its results alone, or to operands "
            "that results share their memory with (aliases=)" if compiled else
            "compute into a new array: no out=, no augmented assignment")

    def function_of(self, positions: Sequence[int], args: Sequence[Any] | None = None) -> Callable[..., list[Any]]:
        """The primitive as a function of some operands, returning a list of results; the others are fixed."""
        return of_some(self.apply, positions, self.args if args is None else args)

    def drawn(self) -> list[Any]:
        """New operands in the sample's domain. Without one, they are kept; so are integers without their own domain."""
        domains = self.domains
        kinds = "fciu" if self._has_domain_for_each() else "fc"
        return [x if domain is None or dtypes.kind(aval.dtype) not in kinds else _like(x, self._draw(aval, domain))
                for x, aval, domain in zip(self.args, self.avals, domains, strict=True)]

    def filled(self, value: float, positions: Sequence[int], at_singular: bool = False) -> list[Any] | None:
        """Drawn operands, some of them filled with `value`; None if that is outside the domain of one of these.

        Also None if it is a singular point, unless these count as well.
        """
        domains = self.domains
        if value in self.sample.singular and not at_singular:
            return None
        if any([domains[i] is None or not domains[i][0] <= value <= domains[i][1] for i in positions]):
            return None
        return [_like(x, np.full(aval.shape, value, aval.dtype)) if i in positions else x
                for i, (x, aval) in enumerate(zip(self.drawn(), self.avals, strict=True))]

    def direction(self, x: object) -> Any:
        """A random tangent for an operand or result, of its type."""
        aval = aval_of(x)
        return self._fill(aval, self.rng.standard_normal(aval.shape), self.rng.standard_normal(aval.shape))

    def keeps(self, i: int) -> bool:
        """Whether the sample says that this operand must not be replaced by other values."""
        return self.sample.domain is not None and self.domains[i] is None

    def domain_of(self, i: int) -> tuple[float, float] | None:
        """The interval from which this operand may be drawn; None if the sample gives none."""
        domain: tuple[float, float] | None = self.domains[i]
        return domain

    def variants(self) -> Iterator[Case]:
        """This case, and the same with narrower floats if `abstract_eval` accepts them.

        In the quick mode, if many samples differ only in their params, they take turns: each gets one narrower dtype.
        """
        yield self
        double = {aval.dtype for aval in self.avals if aval.dtype in _NARROWER and not aval.weak_type}
        for dtype in double:
            for narrow in self._in_turn(_NARROWER[dtype]):
                args = [host(x).astype(narrow) if aval.dtype == dtype and not aval.weak_type else x
                        for x, aval in zip(self.args, self.avals, strict=True)]
                variant = self.with_args(args)
                if variant.is_accepted():
                    yield variant

    def _in_turn(self, narrower: Sequence[np.dtype]) -> Sequence[np.dtype]:
        params: list[Mapping[str, Any]] = []
        for each in self.alike():
            params += [each.params] * (each.params not in params)
        place = params.index(self.params) if self.params in params else 0
        return narrower if self.full or len(params) < _MANY else [narrower[place % len(narrower)]]

    def alike(self) -> list[Sample]:
        """The samples of its dtypes that must not raise an error."""
        mine = _dtypes(self.sample.args)
        return [each for each in self.samples if each.error is None and _dtypes(each.args) == mine]

    def with_args(self, args: Sequence[object]) -> Case:
        """The same case with other operands."""
        sample = Sample(args, self.params, self.sample.domain, self.sample.error, self.sample.exempt,
                        self.sample.singular, self.sample.ulps, atol=self.sample.atol)
        return Case(self.primitive, sample, self.number, self.check, self.full, self.samples, self.waiting)

    def sharing(self, waiting: list[Any]) -> Case:
        """The same case, fresh, with `waiting` for comparisons that one program may make for several samples."""
        return Case(self.primitive, self.sample, self.number, self.check, self.full, self.samples, waiting)

    def is_accepted(self) -> bool:
        """Whether `abstract_eval` accepts these operands."""
        try:
            self.primitive.infer(self.avals, self.params)
        except (CorejaxError, TypeError, ValueError):
            return False
        return True

    # Verdicts

    def fail(self, hook: str, problem: str, *, got: object = None, wanted: object = None, todo: str = "") -> Mismatch:
        """The exception to raise if the primitive breaks a law."""
        return Mismatch(hook, problem, got=got, wanted=wanted, todo=todo)

    def _has_domain_for_each(self) -> bool:
        """Whether the sample gives a domain for each operand, rather than one (low, high) for all."""
        domain = self.sample.domain
        return domain is not None and (len(domain) != 2 or isinstance(domain[0], (tuple, list, type(None))))

    def _draw(self, aval: ShapedArray, domain: tuple[float, float]) -> np.ndarray:
        low, high = domain
        if not dtypes.is_inexact(aval.dtype):
            return np.asarray(self.rng.integers(int(low), int(high) + 1, aval.shape)).astype(aval.dtype)
        parts = [self.rng.uniform(low, high, aval.shape) for _ in range(2)]
        for point in self.sample.singular:
            gap = 0.05 * (high - low)
            parts = [np.where(np.abs(x - point) < gap, np.where(x < point, x - gap, x + gap), x) for x in parts]
        return self._fill(aval, *[np.clip(x, low, high) for x in parts])

    def _fill(self, aval: ShapedArray, real: Any, imag: Any) -> np.ndarray:
        values = real + 1j * imag if dtypes.is_complex(aval.dtype) else real
        return np.asarray(values).astype(aval.dtype)


def of_some(function: Callable[..., list[Any]], positions: Sequence[int], args: Sequence[Any]
            ) -> Callable[..., list[Any]]:
    """A function of some of its operands; the others are fixed."""
    def function_of_some(*chosen: Any) -> list[Any]:
        operands = list(args)
        for i, x in zip(positions, chosen, strict=True):
            operands[i] = x
        return function(*operands)
    return function_of_some


def _like(x: Any, drawn: np.ndarray) -> Any:
    """A drawn operand, as a Python number if it replaces one."""
    return type(x)(drawn[()]) if type(x) in dtypes.PYTHON_SCALARS else drawn


def _dtypes(args: Sequence[object]) -> list[np.dtype]:
    return [aval_of(x).dtype for x in args]


def _elements(sample: Sample) -> int:
    return sum([aval_of(x).size for x in sample.args])


def _shown(x: object) -> str:
    try:
        aval = aval_of(x)
    except CorejaxError:  # an input that must be refused doesn't have to be an array
        return clipped(repr(x))
    return f"{aval} {clipped(host(x).tolist())}" if aval.size <= 6 else str(aval)
