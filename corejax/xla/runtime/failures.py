"""Errors for failures to compile or run, in our own words rather than those of the layers below."""

from __future__ import annotations

from corejax.base.errors import CorejaxRuntimeError
from corejax.base.source import here
from corejax.base.tracebacks import SEE_MORE, plain


def refused_program(error: BaseException) -> CorejaxRuntimeError:
    """The error for a program that the compiler refused."""
    return CorejaxRuntimeError("the compiler rejected the program", got=plain(error), where=here(),
                               wanted="a program that it can compile for this platform",
                               todo=f"look at the text of jit(f).lower(...); {SEE_MORE}")


def runtime_error(error: BaseException) -> CorejaxRuntimeError:
    """The error for a compiled program that failed when it ran."""
    return CorejaxRuntimeError("the runtime failed to run a compiled program", got=plain(error), where=here(),
                               wanted="enough memory and valid arguments", todo=SEE_MORE)


def no_such_analysis(error: BaseException) -> CorejaxRuntimeError:
    """The error for a backend whose runtime can't tell what a program costs."""
    return CorejaxRuntimeError("the runtime of this backend can't tell that about a program", got=plain(error),
                               wanted="a backend whose runtime can", where=here(),
                               todo="ask on the processor: cj.config.backend = 'cpu' before first use")
