"""A while loop that takes at most so many steps, and so has a derivative in reverse mode."""

import numpy as np

from corejax import lax
from corejax.plugin import Sample, carrying, define, hookimpl, refused

__all__ = ["bounded_while"]


class BoundedWhile:
    """bounded_while(goes_on, step, init, limit): lax.while_loop, of at most `limit` steps."""

    name = "bounded_while"
    multiple_results = True

    def function(self, bind):
        def bounded_while(goes_on, step, init, limit):
            body = carrying.stage_step(step, init, "bounded_while: the step")
            test = carrying.stage_call(goes_on, (body.unflatten(body.carry),), "bounded_while: the condition")
            if [(aval.shape, aval.dtype) for aval in test.jaxpr.out_avals] != [((), np.dtype(bool))]:
                raise refused(self.name, "the condition must return one boolean", wanted="bool[]",
                              got=", ".join(map(str, test.jaxpr.out_avals)), todo="reduce it: (x > 0).all()")
            consts = len(test.operands) - len(body.carry), len(body.consts)
            return body.unflatten(bind(*test.operands[:consts[0]], *body.consts, *body.carry, goes_on=test.jaxpr,
                                       step=body.jaxpr, consts=consts, limit=limit))
        return bounded_while

    @hookimpl
    def decompose(self, args, *, goes_on, step, consts, limit):
        of_test, of_step, state = args[:consts[0]], args[consts[0]:sum(consts)], list(args[sum(consts):])

        def once(state, _):
            (more,) = carrying.run(goes_on, [*of_test, *state])
            return lax.cond(more, lambda xs: carrying.run(step, [*of_step, *xs]), lambda xs: xs, state), ()

        return lax.scan(once, state, None, length=limit)[0]

    @hookimpl
    def effects(self, avals, *, goes_on, step, consts, limit):
        return goes_on.effects | step.effects

    @hookimpl
    def samples(self, rng):
        step = carrying.stage_step(lambda x: x * x + 1.0, np.array(0.3), "the sample")
        test = carrying.stage_call(lambda x: x < 2.0, (np.array(0.3),), "the sample")
        yield Sample([np.array(0.3)], {"goes_on": test.jaxpr, "step": step.jaxpr, "consts": (0, 0), "limit": 5},
                     domain=(0.2, 0.4), results=[np.array((0.3 ** 2 + 1.0) ** 2 + 1.0)])
        above = carrying.stage_call(lambda a, x: x * x + a, (np.array(0.9), np.array(0.3)), "the sample")
        yield Sample([np.array(0.9), np.array(0.3)], {"goes_on": test.jaxpr, "step": above.jaxpr, "consts": (0, 1),
                                                      "limit": 2}, domain=((0.8, 1.0), (0.2, 0.4)))


bounded_while = define(BoundedWhile())
