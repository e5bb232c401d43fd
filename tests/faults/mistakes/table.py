"""The mistakes, each a change of one place in the pack, and how its author comes to know of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    """`old` becomes `new` in the pack; `use` is what its author runs, by default the kit on `primitive`."""

    title: str
    old: str
    new: str
    story: str
    mend: str
    words: tuple[str, ...]
    primitive: str = "smooth"
    use: str = ""

    @property
    def run(self) -> str:
        """The program that shows it."""
        return self.use or (f'from corejax.testing import check_primitive\n'
                            f'check_primitive("{self.primitive}", stop_at_first=True)')


MISTAKES = [
    Mistake(
        "A misspelled hook", "def transpose(", "def transpos(",
        "Plugin systems tend to ignore a method that they don't know, and the rule is then simply not there. Here "
        "every public attribute of a plugin is a hook, a declaration, or an error.",
        "Spell it `transpose`.", ("smooth", "'transpos'", "did you mean"),
        use="import numpy as np\nfrom corejax_signals import smooth\nsmooth(np.ones(3))"),
    Mistake(
        "A cotangent that stands alone", "return [lax.rev(smooth(backward, along=along, decay=decay), (along,))]",
        "return lax.rev(smooth(backward, along=along, decay=decay), (along,))",
        "`transpose` returns one cotangent for each operand, also if there is one operand. An array is a sequence, "
        "too: taken for one, it would be torn into its rows.",
        "Return a list.", ("smooth.transpose", "sequence of 1"),
        use="import numpy as np\nimport corejax as cj\nfrom corejax_signals import smooth\n"
            "cj.grad(lambda x: smooth(x).sum())(np.ones(3))"),
    Mistake(
        "An entry point that leads nowhere", "huber = corejax_signals:huber", "huber = corejax_signals:hubert",
        "This one is in the pack's metadata. The other primitive goes on working; the broken one says what is wrong.",
        "Correct the entry point, and install the pack anew.", ("corejax-signals", "huber", "hubert"),
        primitive="huber", use="from corejax import lax\nlax.huber(2.0)"),
    Mistake(
        "A result of another dtype", "y = args[0].copy()", "y = args[0].astype(float)",
        "All is well until somebody passes float32. Then evaluation and the compiled program would differ.",
        "Keep the operand's dtype: `args[0].copy()`.", ("smooth.impl", "f64[3]", "f32[3]"),
        use="import numpy as np\nfrom corejax_signals import smooth\nsmooth(np.ones(3, np.float32))"),
    Mistake(
        "Writing to an operand", "y = args[0].copy()", "y = args[0]",
        "NumPy code likes to work in place. An operand may be the user's own array, or one that other results share.",
        "Copy first.", ("smooth.impl",),
        use="import numpy as np\nfrom corejax_signals import smooth\nx = np.ones(3)\nsmooth(x)\nprint(x)"),
    Mistake(
        "Two hooks that compute different things", "return decay * y + x, decay * y + x", "return decay * y + x, y",
        "`impl` is used for arrays on the host, `decompose` where programs are compiled: results would depend on "
        "`jit`. Nothing is wrong with the types, so only comparing values can tell: that is the kit's work.",
        "Return the new state as the step's output.", ("smooth",)),
    Mistake(
        "A derivative without its tangent", "lax.clamp(-1.0, x, 1.0) * x_dot", "lax.clamp(-1.0, x, 1.0)",
        "The rule returns the derivative instead of the derivative times the tangent. For `grad` of the function "
        "alone, whose tangent is 1, that is the same number.",
        "Multiply by `x_dot`: a rule is linear in the tangents.", ("huber.jvp",), primitive="huber"),
    Mistake(
        "A transpose that isn't one", "backward = lax.rev(cotangents, (along,))", "backward = cotangents",
        "The types are right, and the numbers are wrong: gradients flow from early to late instead of from late to "
        "early. The dot-product identity <ct, f(x)> = <transpose(ct), x> tells.",
        "Reverse the cotangent first.", ("smooth.transpose",)),
    Mistake(
        "An axis that isn't shifted", "along=along + (dims[0] <= along)", "along=along",
        "With a batch axis in front, the axis to smooth along is one further back.",
        "Add one where the batch axis is at or before it.", ("smooth.vmap",)),
    Mistake(
        "A batch axis in the wrong place", "decay=decay), dims[0]", "decay=decay), 0",
        "The result has its batch axis where the operand has it, which need not be in front.",
        "Return `dims[0]`.", ("smooth.vmap", "batch axis"),
        use="import numpy as np\nimport corejax as cj\nfrom corejax_signals import smooth\n"
            "cj.vmap(smooth, in_axes=1)(np.ones((3, 2)))"),
]
