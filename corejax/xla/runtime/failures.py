"""Errors for failures to compile or run, in our own words rather than those of the layers below."""

from __future__ import annotations

from corejax.base.errors import CorejaxRuntimeError
from corejax.base.source import here
from corejax.base.tracebacks import SEE_MORE, plain
from corejax.xla.runtime import peers

#: How the runtime says that what is passed to a kernel isn't what it decodes.
_UNREADABLE = "Failed to decode all FFI handler operands"


def refused_program(error: BaseException) -> CorejaxRuntimeError:
    """The error for a program that the compiler refused."""
    return CorejaxRuntimeError("the compiler rejected the program", got=plain(error), where=here(),
                               wanted="a program that it can compile for this platform",
                               todo=f"look at the text of jit(f).lower(...); {SEE_MORE}")


def runtime_error(error: BaseException) -> CorejaxRuntimeError:
    """The error for a compiled program that failed when it ran."""
    because_of_others = peers.reason(error)
    if because_of_others is not None:
        return because_of_others
    if _UNREADABLE in str(error):
        return CorejaxRuntimeError("a native kernel can't read the call that a lowering rule makes", got=plain(error),
                                   wanted="operands, results and backend_config of exactly the types that it reads",
                                   where=here(), todo="compare the rule's ctx.custom_call with the kernel's binding "
                                                      "(.Arg, .Ret, .Attr); a Python int is an int64_t")
    return CorejaxRuntimeError("the runtime failed to run a compiled program", got=plain(error), where=here(),
                               wanted="enough memory and valid arguments", todo=SEE_MORE)


def no_such_analysis(error: BaseException) -> CorejaxRuntimeError:
    """The error for a backend whose runtime can't tell what a program costs."""
    return CorejaxRuntimeError("the runtime of this backend can't tell that about a program", got=plain(error),
                               wanted="a backend whose runtime can", where=here(),
                               todo="ask on the processor: cj.config.backend = 'cpu' before first use")
