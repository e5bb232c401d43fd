"""Ways to evaluate differently for a while: `disable_jit`, `ensure_compile_time_eval`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from corejax.base.config import Config, config
from corejax.base.tracebacks import public
from corejax.interpreters.knowing import knowing

if TYPE_CHECKING:
    from contextlib import _GeneratorContextManager


@public
def disable_jit(disable: bool = True) -> _GeneratorContextManager[Config]:
    """Within a `with` block, call functions as Python does instead of compiling them. Also a decorator.

    Whatever would become part of a program is called step by step, with values: functions given to `jit` and
    `checkpoint`, the branch that a conditional takes, and the steps of loops. So `print` shows values, and a debugger
    stops where they are computed. A value that `vmap` or another transformation hides from Python can't decide what
    is called: then a conditional or a loop is what it usually is. So are functions given to `shard_map` and `pmap`, and
    to solvers, and whatever `make_jaxpr` or `lower` makes a program of. `disable_jit(False)` compiles again, within
    another block. It holds for this thread; `config.disable_jit = True` and the environment variable
    COREJAX_DISABLE_JIT for all.

    >>> import corejax as cj
    >>> @cj.jit
    ... def f(x):
    ...     print("x is", x)
    ...     return x + 1
    >>> with cj.disable_jit():
    ...     f(2)
    x is 2
    Array(3, dtype=int64, weak_type=True)
    """
    block: Any = config(disable_jit=disable)
    return block  # type: ignore[no-any-return]


@public
@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Within a `with` block, evaluate at once whatever is known, even while a program is traced. Also a decorator.

    The results are arrays with values, so Python can use them for decisions and shapes. What depends on traced values
    remains part of the program.

    >>> import corejax as cj
    >>> from corejax import lax
    >>> @cj.jit
    ... def f(x):
    ...     with cj.ensure_compile_time_eval():
    ...         rising = lax.cos(3.0) > 0.0
    ...     return lax.sin(x) if rising else -lax.sin(x)
    >>> f(0.5)
    Array(-0.47942554, dtype=float64, weak_type=True)
    """
    with knowing():
        yield
