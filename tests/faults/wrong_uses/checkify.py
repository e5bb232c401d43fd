"""Checks that programs make, and asking whether they failed."""

from __future__ import annotations

from .case import Group

_IMPORT = "from {}.experimental import checkify\n"


def _add(group: Group, name: str, code: str, error: type[Exception], *words: str, jax: bool = True) -> None:
    """A use of `checkify`."""
    group.add(name, _IMPORT.format("corejax") + code, error, *words, jax=_IMPORT.format("jax") + code if jax else None)


making = Group("Checks")
_add(making, "a predicate of several elements", "checkify.check(np.array([True, False]), 'all of them')", TypeError,
     "bool[2]", ".all()")
_add(making, "a number for a predicate", "checkify.check(3, 'three')", TypeError, "an int", "compare")
_add(making, "an array of numbers for a predicate", "checkify.check(np.ones(2), 'ones')", TypeError, "f64[2]",
     "compare")
_add(making, "None for a predicate", "checkify.debug_check(None, 'nothing')", TypeError, "debug_check", "None")
_add(making, "a message that isn't text", "checkify.check(True, ValueError('x'))", TypeError, "a str", "ValueError")
_add(making, "a string among the values", "checkify.check(True, 'in {}', 'f')", TypeError, "'f'", "itself")
_add(making, "a set among the values", "checkify.check(True, 'in {x}', x={1, 2})", TypeError, "{1, 2}", "['x']")
_add(making, "a random key among the values", "checkify.check(True, '{}', cj.random.key(0))", TypeError, "key",
     "arrays of numbers", jax=False)
_add(making, "a value that is missing", "checkify.check(True, 'x is {}')", ValueError, "IndexError", "{}")
_add(making, "a keyword that is missing", "checkify.check(True, 'x is {x}', y=np.ones(1))", ValueError, "KeyError",
     "'x'")
_add(making, "a format that fits no array", "checkify.check(True, 'x is {:.2f}', np.ones(2))", ValueError, ":.2f",
     "can't be formatted")
_add(making, "text for debug", "checkify.check(True, 'x', debug='yes')", TypeError, "debug", "'yes'", jax=False)

staging = Group("Checks in compiled programs")
_add(staging, "a check that is compiled", """
def f(x):
    checkify.check(x > 0, 'positive')  # <-
    return x
cj.jit(f)(1.0)""", ValueError, "functionalized", "checkify.checkify(f)", "debug_check")
_add(staging, "a check in a loop", """
def step(total, x):
    checkify.check(total < 9, 'small')  # <-
    return total + x, None
lax.scan(step, 0.0, np.arange(3.0))""", ValueError, "functionalized", "checkify.checkify(f)")
_add(staging, "a check among the operands of a reduction", """
def add(x, y):
    checkify.check(x >= 0, 'positive')
    return x + y
checkify.checkify(lambda x: lax.reduce(x, 0.0, add, (0,)))(np.ones(3))""", TypeError, "any order", "check", jax=False)
_add(staging, "a loop that elements of a batch leave at different steps", """
def root(x):
    return lax.while_loop(lambda x: x > 1.0, lambda x: lax.sqrt(x), x)  # <-
checkify.checkify(cj.vmap(root), errors=checkify.nan_checks)(np.array([2.0, 9.0]))""", NotImplementedError,
     "while_loop", "cj.vmap(checkify.checkify(f))")

asking = Group("Asking whether checks failed")
_add(asking, "kinds of checks as text", "checkify.checkify(lax.sin, errors='nan')", TypeError, "'nan'", "nan_checks")
_add(asking, "kinds that aren't there", "checkify.checkify(lax.sin, errors={ValueError})", TypeError, "ValueError",
     "user_checks")
_add(asking, "one kind that isn't in a set", "checkify.checkify(lax.sin, errors=True)", TypeError, "True", "nan_checks")
_add(asking, "what isn't a function", "checkify.checkify(3.0)", TypeError, "3.0", "callable")
_add(asking, "an error that is traced", """
def f(x):
    err, y = checkify.checkify(lax.sin, errors=checkify.nan_checks)(x)
    err.throw()  # <-
    return y
cj.jit(f)(1.0)""", TypeError, "traced", "check_error")
_add(asking, "an error that is mapped", """
def f(x):
    err, y = checkify.checkify(lax.sin, errors=checkify.nan_checks)(x)
    return y if err.get() is None else x  # <-
cj.vmap(f)(np.ones(3))""", TypeError, "traced", "return it")
_add(asking, "what isn't an error", "checkify.check_error(ValueError('x'))", TypeError, "ValueError", "first result")
_add(asking, "the function for its error", "checkify.check_error(checkify.checkify(lax.sin)(1.0))", TypeError, "tuple",
     "err, out")
_add(asking, "a result that isn't an array", "checkify.checkify(lambda x: 'text')(1.0)", TypeError, "'text'")

GROUPS = (making, staging, asking)
