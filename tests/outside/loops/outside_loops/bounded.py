"""A while loop that takes at most so many steps, and so has a derivative in reverse mode."""

import numpy as np

from corejax import lax
from corejax.core import ShapedArray, eval_jaxpr, flatten, namer, stage_function, values
from corejax.plugin import Sample, carrying, define, hookimpl, refused

__all__ = ["bounded_while"]


def _match(some, others):
    """Whether these are the same types, other than in being weak."""
    return len(some) == len(others) and all(x.matches(y) for x, y in zip(some, others))


class BoundedWhile:
    """bounded_while(goes_on, step, init, limit): lax.while_loop, of at most `limit` steps."""

    name = "bounded_while"
    multiple_results = True

    def function(self, bind):
        def bounded_while(goes_on, step, init, limit):
            leaves, tree = flatten((init,))

            def stage(avals):
                staged = stage_function(step, avals, tree, "bounded_while: the step")
                return staged, staged.jaxpr.out_avals

            state, body = carrying.settle(values(leaves, "bounded_while", namer("init", init)), stage)
            test = stage_function(goes_on, [x.aval for x in state], tree, "bounded_while: the condition")
            self._check(test.jaxpr.out_avals, body.jaxpr.out_avals, [x.aval for x in state])
            outs = bind(*test.consts, *body.consts, *state, goes_on=test.jaxpr, step=body.jaxpr,
                        consts=(len(test.consts), len(body.consts)), limit=limit)
            return body.out_tree.unflatten(outs)
        return bounded_while

    @hookimpl
    def decompose(self, args, *, goes_on, step, consts, limit):
        of_test, of_step, state = self._split(args, consts)

        def once(state, _):
            more = eval_jaxpr(goes_on, (), *of_test, *state)[0]
            return lax.cond(more, lambda xs: eval_jaxpr(step, (), *of_step, *xs), lambda xs: xs, state), ()

        return lax.scan(once, list(state), None, length=limit)[0]

    @hookimpl
    def effects(self, avals, *, goes_on, step, consts, limit):
        return goes_on.effects | step.effects

    @hookimpl
    def samples(self, rng):
        state, tree = [ShapedArray((), "float64")], flatten((0.0,))[1]
        test = stage_function(lambda x: x < 2.0, state, tree, "the sample").jaxpr
        step = stage_function(lambda x: x * x + 1.0, state, tree, "the sample").jaxpr
        yield Sample([np.array(0.3)], {"goes_on": test, "step": step, "consts": (0, 0), "limit": 5},
                     domain=(0.2, 0.4), results=[np.array((0.3 ** 2 + 1.0) ** 2 + 1.0)])

    def _check(self, tests, steps, state):
        if not _match(steps, state) or not _match(tests, [ShapedArray((), "bool")]):
            tests, steps, state = [", ".join(map(str, avals)) for avals in (tests, steps, state)]
            raise refused(self.name, "its functions return other types", wanted=f"bool[] and {state}",
                          got=f"{tests} from the condition, {steps} from the step",
                          todo="return one boolean, and a state as it came in")

    def _split(self, operands, consts):
        first, second = consts[0], sum(consts)
        return list(operands[:first]), list(operands[first:second]), list(operands[second:])


bounded_while = define(BoundedWhile())
