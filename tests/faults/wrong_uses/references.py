"""References: where they end, who may write to them, and that each has one name in a program."""

from __future__ import annotations

from .case import Group

scopes = Group("references and where they end")
scopes.add("returned from jit, as an argument", """
    ref = cj.new_ref(np.ones(3))
    cj.jit(lambda ref: ref)(ref)
    """, TypeError, "jit", "returns a reference", "ref[...]")
scopes.add("returned from jit, made there", "cj.jit(lambda x: {'a': cj.new_ref(x)})(np.ones(3))", TypeError,
           "returns a reference", "result['a']", "cj.freeze(ref)")
scopes.add("returned from a branch", """
    ref = cj.new_ref(np.ones(3))
    lax.cond(True, lambda ref: ref, lambda ref: ref, ref)
    """, TypeError, "true_fun", "returns a reference")
scopes.add("returned from a step", "lax.scan(lambda c, x: (c, cj.new_ref(c)), 0.0, np.ones(3))", TypeError,
           "scan: the body", "result[1]")
scopes.add("returned from a mapped function", "cj.vmap(lambda x: cj.new_ref(x))(np.ones(3))", TypeError, "vmap",
           "returns a reference")
scopes.add("carried by a loop", """
    ref = cj.new_ref(np.ones(3))
    lax.fori_loop(0, 3, lambda i, ref: ref, ref)
    """, TypeError, "fori_loop: the body", "returns a reference")
scopes.add("carried by a scan that returns an array", """
    ref = cj.new_ref(np.ones(3))
    lax.scan(lambda c, x: (c[...], None), ref, np.ones(3))
    """, TypeError, "scan", "reference", "carry", "close over it")
scopes.add("used after the function it was made in", """
    kept = []
    cj.jit(lambda x: kept.append(cj.new_ref(x)))(np.ones(3))
    kept[0][...]
    """, ValueError, "outside of the function", "ref[...]")
scopes.add("used after the step it was made in", """
    kept = []
    lax.scan(lambda c, x: (kept.append(cj.new_ref(c)), (c, None))[1], 0.0, np.ones(3))
    kept[0][...] = 1.0
    """, ValueError, "outside of the function", "Ref{")
scopes.add("an argument that was kept", """
    kept = []
    cj.vmap(lambda ref: kept.append(ref))(cj.new_ref(np.ones(3)))
    kept[0][...]
    """, ValueError, "outside of the function", "mapped")
scopes.add("used by the rule of a function in the differentiated one", """
    def f(x):
        ref = cj.new_ref(x)
        @cj.custom_jvp
        def g(y):
            return ref[...] * y  # <-
        g.defjvp(lambda xs, dots: (g(*xs), dots[0]))
        return g(x)
    cj.grad(f)(2.0)
    """, ValueError, "outside of the function")
scopes.add("used after it was frozen", """
    ref = cj.new_ref(np.ones(3))
    cj.freeze(ref)
    ref[0] = 1.0
    """, ValueError, "was frozen", "freeze returned")
scopes.add("used after it was freed", """
    ref = cj.new_ref(np.ones(3))
    cj.ref.free_ref(ref)
    cj.jit(lambda ref: ref[0])(ref)
    """, ValueError, "was freed")
scopes.add("frozen where it wasn't made", """
    ref = cj.new_ref(np.ones(3))
    cj.jit(lambda: cj.freeze(ref))()
    """, ValueError, "freeze", "wasn't made in the function", "ref[...]", jax=None)  # there, it is a KeyError of an id
scopes.add("an argument that is frozen", """
    ref = cj.new_ref(np.ones(3))
    cj.jit(lambda ref: cj.freeze(ref))(ref)
    """, ValueError, "freeze", "argument")

aliases = Group("references with two names")
aliases.add("passed twice to jit", """
    ref = cj.new_ref(np.ones(3))
    cj.jit(lambda a, b: a[0] + b[0])(ref, ref)
    """, ValueError, "same reference", "twice")
aliases.add("passed and closed over", """
    ref = cj.new_ref(np.ones(3))
    cj.jit(lambda a: a[0] + ref[0])(ref)
    """, ValueError, "same reference", "closed over")
aliases.add("passed twice to a branch", """
    ref = cj.new_ref(np.ones(3))
    lax.cond(True, lambda a, b: a[0], lambda a, b: b[0], ref, ref)
    """, ValueError, "same reference", "twice")
aliases.add("mapped twice", """
    ref = cj.new_ref(np.ones((2, 3)))
    cj.vmap(lambda a, b: a[0])(ref, ref)
    """, ValueError, "same reference", "twice")
aliases.add("mapped and closed over", """
    ref = cj.new_ref(np.ones((2, 3)))
    cj.vmap(lambda a: a[0] + ref[0, 0])(ref)
    """, ValueError, "same reference", "closed over")

writes = Group("what is written to references")
writes.add("by each element of a batch", """
    ref = cj.new_ref(np.zeros(3))
    cj.vmap(lambda x: ref.__setitem__(0, x))(np.ones(2))
    """, TypeError, "mapped function", "share", "vmap")
writes.add("the same by each element of a batch", """
    ref = cj.new_ref(0)
    def f(x):
        ref[...] += 1  # <-
        return x
    cj.vmap(f)(np.ones(2))
    """, TypeError, "mapped function", "share")
writes.add("added by each element of a batch", """
    ref = cj.new_ref(np.zeros(3))
    cj.vmap(lambda x: cj.ref.addupdate(ref, 0, x))(np.ones(2))
    """, TypeError, "mapped function", "argument that is mapped")
writes.add("by a loop of a batch", """
    ref = cj.new_ref(np.zeros(3))
    cj.vmap(lambda x: lax.fori_loop(0, 3, lambda i, c: ref.__setitem__(i, x), None))(np.ones(2))
    """, TypeError, "mapped function", "share")
writes.add("a value that is differentiated", """
    ref = cj.new_ref(np.zeros(3))
    def f(x):
        ref[0] = x  # <-
        return x * x
    cj.grad(f)(3.0)
    """, TypeError, "differentiated", "lax.stop_gradient")
writes.add("a value that is differentiated, in jit", """
    ref = cj.new_ref(np.zeros(3))
    @cj.jit
    def f(x):
        ref[0] = x
        return x * x
    cj.grad(f)(3.0)  # <-
    """, TypeError, "differentiated", "within the function")
writes.add("a gradient by a reference", "cj.grad(lambda ref: ref[0] * ref[1])(cj.new_ref(np.ones(3)))",
           NotImplementedError, "derivative", "reverse mode", "cj.new_ref(x)")
writes.add("another dtype", """
    ref = cj.new_ref(np.zeros(3))
    ref[0] = np.int32(1)
    """, TypeError, "must have its dtype", "i32", "f64", "astype")
writes.add("a fraction into integers", """
    ref = cj.new_ref(np.arange(3))
    ref[0] += 0.5
    """, TypeError, "must have its dtype", "i64")
writes.add("another shape", """
    ref = cj.new_ref(np.zeros(3))
    ref[:2] = np.ones(3)
    """, TypeError, "shape (2,)")
writes.add("out of bounds", """
    ref = cj.new_ref(np.zeros(3))
    ref[3] = 1.0
    """, IndexError, "out of bounds", "3")
writes.add("a reference", """
    ref = cj.new_ref(np.zeros(3))
    ref[...] = cj.new_ref(np.ones(3))
    """, TypeError, "ref[...]")
writes.add("to what ref.at names", """
    ref = cj.new_ref(np.zeros(3))
    ref.at[0] = 1.0
    """, TypeError, "ref[i] = x", jax=None)

objects = Group("references as arrays")
objects.add("a function of arrays", "lax.sin(cj.new_ref(np.zeros(3)))", TypeError, "reference", "ref[...]")
objects.add("an operator", "cj.new_ref(np.zeros(3)) + np.ones(3)", TypeError, "no operators", "ref[...]")
objects.add("a NumPy function", "np.sin(cj.new_ref(np.zeros(3)))", TypeError, "isn't an array", "ref[...]")
objects.add("a truth value", """
    ref = cj.new_ref(True)
    if ref:  # <-
        pass
    """, TypeError, "neither true nor false", "ref[...]")
objects.add("a loop over a reference", "[x for x in cj.new_ref(np.zeros(3))]", TypeError, "iterated", "ref[...]")
objects.add("made of a list", "cj.new_ref([1.0, 2.0])", TypeError, "new_ref", "list")
objects.add("made of a reference", "cj.new_ref(cj.new_ref(np.zeros(3)))", TypeError, "new_ref", "cj.new_ref(ref[...])")
objects.add("get of an array", "cj.ref.get(np.zeros(3), 0)", TypeError, "get", "needs a reference", "cj.new_ref")
objects.add("freeze of an array", "cj.freeze(np.zeros(3))", TypeError, "freeze", "needs a reference")
objects.add("in a loop that has no rule for them", """
    ref = cj.new_ref(np.zeros(3))
    lax.bounded_while_loop(lambda x: x < 3.0, lambda x: x + ref[0], 1.0, max_steps=5)
    """, NotImplementedError, "bounded_while_loop", "references", jax=None)
objects.add("lowered before it is called", "cj.jit(lambda ref: ref[0]).lower(cj.new_ref(np.zeros(3)))",
            NotImplementedError, "lower", "hold arrays", jax=None)

GROUPS = scopes, aliases, writes, objects
