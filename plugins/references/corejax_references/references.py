"""References: objects that hold an array, which is read and replaced in place. What they do is in `_cells`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from corejax.core import Array, ShapedArray, Trace, aval_of, context, dtypes, here, values
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import PYTHON_OPERATORS, HolderType, abstract_leaves, public, roles
from corejax_references._carriers import apply
from corejax_references._cells import Cell, read, replace, twice
from corejax_references._places import Place
from corejax_references._primitives import get_p, get_trail_p, set_p, set_trail_p, trail_type

__all__ = ["AbstractRef", "Ref", "empty_ref", "free_ref", "freeze", "new_ref"]

AT_TOP = ("Ref", "freeze", "new_ref")


@public
class AbstractRef(HolderType):
    """The type of a reference to an array of type `inner_aval`.

    >>> AbstractRef(ShapedArray((3,), "float32"))
    Ref{f32[3]}
    """

    __slots__ = ()

    def __new__(cls, shape: Iterable[int] | ShapedArray, dtype: object = None, weak_type: bool = False,
                varying: Iterable[Hashable] = (), *, memory_space: Any = None, kind: Any = None) -> AbstractRef:
        _check_unchosen("AbstractRef", memory_space, kind)
        if isinstance(shape, ShapedArray):
            inner = shape
            return super().__new__(cls, inner.shape, inner.dtype, inner.weak_type, inner.varying)  # type: ignore[return-value]
        if dtype is None:
            raise CorejaxTypeError("AbstractRef needs the type of the array that is referred to", got=kind_of(shape),
                                   wanted="a type such as cj.typeof(x)", todo="write AbstractRef(cj.typeof(x))")
        return super().__new__(cls, shape, dtype, weak_type, varying)  # type: ignore[return-value]

    def _fill(self, shape: tuple[int, ...], dtype: Any, weak_type: bool, varying: frozenset[Hashable] = frozenset()
              ) -> None:
        super()._fill(shape, dtype, weak_type, varying)
        tangent_dtype = dtype if dtypes.is_inexact(dtype) else dtypes.float0
        if tangent_dtype is not dtype or weak_type:
            object.__setattr__(self, "tangent", AbstractRef(shape, tangent_dtype, False, varying))

    @property
    def inner_aval(self) -> ShapedArray:
        """The type of the array that is referred to."""
        return ShapedArray(self.shape, self.dtype, self.weak_type, self.varying)

    def shown(self, tracer: Any) -> Any:
        return _argument(tracer)

    def holding(self, value: Any) -> Ref:
        """A reference that is made here, and only exists here: while a rule runs."""
        return _made(self, context.trace, value)

    def __repr__(self) -> str:
        return f"Ref{{{self.inner_aval}}}"


def _check_unchosen(what: str, memory_space: Any, kind: Any) -> None:
    if memory_space is not None or kind is not None:
        given = "memory_space" if memory_space is not None else "kind"
        raise CorejaxValueError(f"{what}: {given} can't be chosen", got=f"{given}={memory_space or kind!r}",
                                wanted="None", where=here(), todo=f"leave out {given}")


class _NoArray:
    """What isn't an array, and tells whoever takes it for one what to do."""

    __slots__ = ()

    def _refuse(self, problem: str) -> CorejaxTypeError:
        return CorejaxTypeError(problem, got=repr(self), wanted="an array", where=here(),
                                todo="read what it holds: ref[...]")

    def __iter__(self) -> Iterator[Any]:
        raise self._refuse("a reference can't be iterated over")

    def __bool__(self) -> bool:
        raise self._refuse("a reference is neither true nor false")

    def __array__(self, *_: object, **__: object) -> Any:
        raise self._refuse("a reference isn't an array")

    def __copy__(self) -> Any:
        raise self._refuse("a reference can't be copied")

    def __deepcopy__(self, memo: object) -> Any:
        raise self._refuse("a reference can't be copied")

    def __reduce__(self) -> Any:
        raise self._refuse("a reference can't be pickled")

    def _operator(self, *_: object) -> Any:
        raise self._refuse("a reference has no operators")


for _name in PYTHON_OPERATORS - {"eq", "ne", "getitem"}:
    setattr(_NoArray, f"__{_name.strip('_')}__", public(_NoArray._operator))
public(_NoArray)


@public
class Ref(_NoArray, Cell):
    """A reference to an array. `ref[...]` reads it, `ref[...] = x` writes it; `new_ref` makes one.

    >>> ref = new_ref(np.arange(6.0).reshape(2, 3))
    >>> ref[0, :] = 5.0
    >>> ref[1, 1] += 10.0
    >>> ref
    Ref([[ 5.,  5.,  5.],
         [ 3., 14.,  5.]], dtype=float64)
    >>> ref[:, 1], ref.at[1][2], ref.shape
    (Array([ 5., 14.], dtype=float64), Array(5., dtype=float64), (2, 3))

    What is written is converted to the reference's dtype if it is a Python number; else it must have that dtype.
    """

    __slots__ = ()

    def __init__(self, *_: object, **__: object) -> None:
        raise CorejaxTypeError("a reference is made by new_ref", got="Ref(...)", wanted="cj.new_ref(x)", where=here(),
                               todo="call cj.new_ref with the array that it is to hold first")

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)
    ndim = property(lambda self: self._aval.ndim)
    size = property(lambda self: self._aval.size)

    @property
    def sharding(self) -> Any:
        """How the array is divided among devices."""
        return self[...].sharding

    # Parts

    @property
    def at(self) -> Parts:
        """`ref.at[index]` refers to a part, which is read and written as the whole is."""
        return Parts(self, ())

    def __getitem__(self, index: Any) -> Array:
        return Place((index,)).of(read(self))  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, x: Any) -> None:
        _write(self, (index,), x)

    def addupdate(self, x: Any, index: Any = ...) -> None:
        """Add to a part; to a place that the index names twice, twice."""
        _add(self, (index,), x)

    def __len__(self) -> int:
        if not self.shape:
            raise self._refuse("a reference to a scalar has no length")
        return self.shape[0]  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        if self._ended:
            return f"Ref({self._aval.inner_aval}, {self._ended})"
        value = self._value if self._home is None else None
        if type(value) is not Array:
            return f"Ref<{self._aval.inner_aval}>"
        return f"Ref{str(repr(value)).removeprefix('Array').replace(chr(10) + '   ', chr(10) + ' ')}"

    # As an operand

    def apply(self, primitive: Any, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Apply a primitive that has references among its operands."""
        if primitive is get_p:
            return read(args[0])
        if primitive is set_p and isinstance(args[0], Ref):
            replace(args[0], args[1])
            return []
        if primitive is get_trail_p:  # it leads nowhere: only programs have trails
            return roles.zeros(trail_type(self.aval.inner_aval))
        if primitive is set_trail_p:
            return []
        return apply(primitive, args, params)

    def returned(self, what: str, name: str) -> CorejaxError:
        return CorejaxTypeError(f"{what}: the function returns a reference, at {name}", where=here(),
                                got=f"a reference, {self._aval}",
                                wanted="arrays: a reference ends with the function that it was made in, and one from "
                                       "outside needn't be returned",
                                todo="return what it holds, ref[...], or cj.freeze(ref) if it was made here")


@public
class Parts:
    """Where `ref.at` is indexed, and the parts that this gives."""

    __slots__ = ("_ref", "_indices")

    def __init__(self, ref: Ref, indices: tuple[Any, ...]) -> None:
        self._ref, self._indices = ref, indices

    def __corejax_reads__(self) -> list[Any]:
        return [self._ref]

    def __getitem__(self, index: Any) -> Part:
        return Part(self._ref, (*self._indices, index))

    def __setitem__(self, index: Any, x: Any) -> None:
        raise CorejaxTypeError("ref.at[...] names a part, and can't be assigned to", got="ref.at[i] = x", where=here(),
                               wanted="ref[i] = x, or ref.at[i][...] = x", todo="write ref[i] = x")

    def __repr__(self) -> str:
        return f"<at of {self._ref.aval}: index it, as in ref.at[i][...]>"


@public
class Part(_NoArray):
    """A part of what a reference holds. It is read and written as the reference is."""

    __slots__ = ("_ref", "_indices")

    def __init__(self, ref: Ref, indices: tuple[Any, ...]) -> None:
        self._ref, self._indices = ref, indices
        _ = self.shape  # raises if there is no such part

    def __corejax_reads__(self) -> list[Any]:
        return [self._ref]

    @property
    def shape(self) -> tuple[int, ...]:
        return Place(self._indices).shape_in(self._ref.aval.inner_aval)

    dtype = property(lambda self: self._ref.dtype)
    ndim = property(lambda self: len(self.shape))

    @property
    def at(self) -> Parts:
        """A part of this part."""
        return Parts(self._ref, self._indices)

    def __getitem__(self, index: Any) -> Array:
        return Place((*self._indices, index)).of(read(self._ref))  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, x: Any) -> None:
        _write(self._ref, (*self._indices, index), x)

    def addupdate(self, x: Any, index: Any = ...) -> None:
        """Add to a part of it."""
        _add(self._ref, (*self._indices, index), x)

    def __repr__(self) -> str:
        return f"<a part of {self._ref.aval}, of shape {self.shape}>"


# Making and ending

@public
def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference that holds this array. `memory_space` and `kind` are there for JAX's sake: they must be None.

    >>> ref = new_ref(np.zeros(2))
    >>> ref[0] = 1.0
    >>> ref[...]
    Array([1., 0.], dtype=float64)
    """
    _check_unchosen("new_ref", memory_space, kind)
    if isinstance(init_val, (Ref, Part)):
        raise CorejaxTypeError("new_ref: a reference can't hold a reference", got=f"a reference, {init_val!r:.80}",
                               wanted="an array", where=here(), todo="write cj.new_ref(ref[...]), which copies it")
    value = values([init_val], "new_ref", lambda _: "init_val")[0]
    trace = context.trace
    return _made(AbstractRef(value.aval), None if trace.parent is None else trace, value)


@public
def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to an array of this type, which is to be written before it is read: until then, it is zero.

    >>> import corejax as cj
    >>> empty_ref(cj.ShapeDtypeStruct((2,), "float32"))
    Ref([0., 0.], dtype=float32)
    """
    aval = ty if isinstance(ty, ShapedArray) else abstract_leaves([ty], "empty_ref", lambda _: "ty")[0]
    return new_ref(roles.zeros(aval.inner_aval if isinstance(aval, AbstractRef) else aval), memory_space=memory_space)


@public
def freeze(ref: Ref) -> Array:
    """What a reference holds. It can't be used afterwards. It must have been made in the function that freezes it.

    >>> ref = new_ref(np.zeros(2))
    >>> ref[0] = 1.0
    >>> freeze(ref), ref
    (Array([1., 0.], dtype=float64), Ref(f64[2], frozen))
    """
    value = _end(ref, "freeze", "frozen")
    return value  # type: ignore[no-any-return]


@public
def free_ref(ref: Ref) -> None:
    """End a reference: it can't be used afterwards. It must have been made in the function that frees it.

    >>> ref = new_ref(np.zeros(2))
    >>> free_ref(ref)
    >>> ref
    Ref(f64[2], freed)
    """
    _end(ref, "free_ref", "freed")


def _end(ref: Ref, what: str, ended: str) -> Any:
    if not isinstance(ref, Ref):
        raise CorejaxTypeError(f"{what} needs a reference", got=f"{kind_of(ref)}: {ref!r:.80}", where=here(),
                               wanted="what cj.new_ref returned", todo="index an array to read it; it is never written")
    value = read(ref)
    home = context.trace if context.trace.parent is not None else None
    if ref._home is not home or ref._variable is not None:
        raise CorejaxValueError(
            f"{what}: this reference wasn't made in the function that ends it", got=f"a reference, {ref.aval}, "
            "which is an argument of the function or from outside of it", where=here(),
            wanted="a reference that was made by new_ref in the same function",
            todo=f"read it by ref[...], and call {what} where it was made")
    ref._ended, ref._value = ended, None
    return value


def _made(aval: AbstractRef, home: Trace | None, value: Any = None, variable: Any = None) -> Ref:
    ref = object.__new__(Ref)
    Cell.__init__(ref, aval, home, value, variable)
    return ref


def _argument(tracer: Any) -> Ref:
    """The reference that a user's function gets as an argument, where this tracer stands for it."""
    trace = tracer._trace
    ref = _made(tracer.aval, trace, variable=tracer)
    for name in ("val", "primal", "tangent"):  # under vmap and jvp
        outer = getattr(tracer, name, None)
        if isinstance(outer, Ref):
            if trace in outer._shown:
                raise twice(outer, "passed to a function twice")
            outer._shown.add(trace)
    return ref


def _write(ref: Ref, indices: tuple[Any, ...], x: Any) -> None:
    place = Place(indices)
    x = fitting(ref, x)
    replace(ref, x if place.is_whole(ref.aval.inner_aval, x) else place.put(read(ref), x))


def _add(ref: Ref, indices: tuple[Any, ...], x: Any) -> None:
    replace(ref, Place(indices).plus(read(ref), fitting(ref, x)))


def fitting(ref: Any, x: Any) -> Any:
    """What is to be written as an array of the reference's dtype: Python's numbers are converted."""
    if isinstance(x, (Ref, Part)):
        raise CorejaxTypeError("a reference can't be written to a reference", got=f"{x!r:.80}", wanted="an array",
                               where=here(), todo="write what it holds: ref[...]")
    x = values([x], "a reference", lambda _: "what is written")[0]
    aval, dtype = aval_of(x), ref.dtype
    if aval.dtype == dtype:
        return x
    if aval.weak_type and dtypes.promote((aval.dtype, True), (dtype, False))[0] == dtype:
        return roles.convert(x, dtype, True)
    raise CorejaxTypeError("what is written to a reference must have its dtype", got=str(aval), where=here(),
                           wanted=f"{dtypes.short_name(dtype)}, as {ref!r:.60} has", todo=f"x.astype({dtype.name!r})")

