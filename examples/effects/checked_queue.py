"""A queue of fixed size in a compiled loop, with checks that are values: of indices, and of what must hold."""


import corejax as cj
from corejax import lax, numpy as jnp
from corejax.experimental import checkify


def push(queue, value):
    """The queue with one more value; it must have room."""
    values, size = queue
    checkify.check(size < values.shape[0], "no room for {value} behind {size} values", value=value, size=size)
    return values.at[size].set(value), size + 1


def pop(queue):
    """The last value, and the queue without it; there must be one."""
    values, size = queue
    checkify.check(size > 0, "nothing is left")
    return values[size - 1], (values, size - 1)


def work(numbers):
    """Each positive number is pushed, each negative one pops; the sum of what was popped."""
    def step(state, number):
        queue, total = state

        def popped(queue):
            value, queue = pop(queue)
            return queue, value

        queue, value = lax.cond(number > 0.0, lambda queue: (push(queue, number), 0.0 * number), popped, queue)
        return (queue, total + value), None

    empty = (jnp.zeros(3), 0)
    return lax.scan(step, (empty, jnp.asarray(0.0)), numbers)[0][1]


def experiment():
    """What comes of three lists: the sum, and the message if a check failed."""
    checked = cj.jit(checkify.checkify(work, errors=checkify.user_checks | checkify.index_checks))
    found = []
    for numbers in ([1.0, 2.0, -1.0, 5.0, -1.0], [1.0, -1.0, -1.0, 3.0], [1.0, 2.0, 3.0, 4.0, -1.0]):
        error, total = checked(jnp.array(numbers))
        found.append((float(total), (error.get() or "").splitlines()[:1]))
    return found


if __name__ == "__main__":
    for total, message in experiment():
        print(total, *(message or ["fine"]))
