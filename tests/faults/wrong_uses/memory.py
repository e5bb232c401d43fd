"""What derivatives keep: checkpoint and its policies, loops with a reverse mode; and integers of less than a byte."""

from __future__ import annotations

from .case import Group

policies = Group("Policies of checkpoint")
policies.add("a name instead of a function", "cj.checkpoint(lax.sin, policy='dots_saveable')(1.0)", TypeError,
             "policy", "'dots_saveable'", jax=None)
policies.add("a policy that isn't made yet", """
    cj.grad(cj.checkpoint(lax.sin, policy=cj.checkpoint_policies.save_only_these_names))(1.0)
    """, TypeError, "names_which_can_be_saved", jax=None)
policies.add("a policy that says yes", """
    cj.grad(cj.checkpoint(lambda x: lax.sin(lax.sin(x)), policy=lambda *avals, **params: "yes"))(1.0)
    """, TypeError, "'yes'", "True or False", jax=None)
policies.add("a policy that takes no types", """
    cj.grad(cj.checkpoint(lambda x: lax.sin(lax.sin(x)), policy=lambda: True))(1.0)
    """, TypeError, "policy", "*avals, **params", jax=None)
policies.add("a name that is a number", "cj.checkpoint_policies.save_any_names_but_these('a', 3)", TypeError,
             "names_not_to_save", "3", jax=None)
policies.add("a name that is both saved and offloaded", """
    names = {"names_which_can_be_saved": "ab", "names_which_can_be_offloaded": ["ab"]}
    cj.checkpoint_policies.save_and_offload_only_these_names(**names, offload_src="device", offload_dst="host")
    """, TypeError, "['ab']", jax=None)
policies.add("a memory that is a number", "cj.checkpoint_policies.offload_dot_with_no_batch_dims('device', 3)",
             TypeError, "offload_dst", "pinned_host", jax=None)
policies.add("half of two policies", """
    policies = cj.checkpoint_policies
    policies.save_from_both_policies(policies.dots_saveable, None)
    """, TypeError, "policy_2", jax=None)
policies.add("a name for a value that is no string", "cj.ad_checkpoint.checkpoint_name(1.0, 3)", TypeError,
             "name must be a string", jax=None)
policies.add("a name for what is no array", "cj.ad_checkpoint.checkpoint_name('x', 'name')", TypeError, "'x'", jax=None)
policies.add("concrete=", "cj.checkpoint(lax.sin, concrete=True)(1.0)", NotImplementedError, "static_argnums")
policies.add("prevent_cse as a word", "cj.checkpoint(lax.sin, prevent_cse='no')(1.0)", TypeError, "prevent_cse", "'no'",
             jax=None)
policies.add("flags for more arguments than there are", """
    cj.checkpoint(lambda x, y: x * y, prevent_cse=(True, False, True))(1.0, 2.0)
    """, ValueError, "3 flags", "2")
policies.add("a static argument that isn't there", "cj.checkpoint(lambda x, y: x * y, static_argnums=5)(1.0, 2.0)",
             ValueError, "5", "0 to 1")
policies.add("a static argument by a name that isn't there", """
    cj.checkpoint(lambda x, *, n: x * n, static_argnames="m")(1.0, n=2)
    """, ValueError, "'m'", jax=None)
policies.add("a static argument without a hash", """
    cj.checkpoint(lambda x, n: x * 2, static_argnums=1)(1.0, [2])
    """, ValueError, "hashed", "[2]")
policies.add("residuals of no function", "cj.saved_residuals(3, 1.0)", TypeError, "expected a function", jax=None)
policies.add("residuals without arguments", "cj.ad_checkpoint.print_saved_residuals(lax.sin)", TypeError,
             "missing 1 required positional argument", jax=None)

loops = Group("Loops with a reverse mode")
loops.add("steps that aren't whole", """
    lax.bounded_while_loop(lambda c: c < 3, lambda c: c + 1, 0, max_steps=2.5)
    """, TypeError, "max_steps", "2.5", jax=None)
loops.add("a condition that is a number", """
    lax.bounded_while_loop(lambda c: c, lambda c: c + 1.0, 0.0, max_steps=3)
    """, TypeError, "condition", "boolean", jax=None)
loops.add("a body of another structure", """
    lax.bounded_while_loop(lambda c: c < 3, lambda c: (c, c), 0, max_steps=3)
    """, TypeError, "structure", "tuple of 2", jax=None)
loops.add("a condition that is no function", "lax.bounded_while_loop(3, lambda c: c, 0, max_steps=3)", TypeError,
          "condition must be a function", jax=None)
loops.add("checkpoints by a word", """
    lax.bounded_while_loop(lambda c: c < 3, lambda c: c + 1, 0, max_steps=3, checkpoints="all")
    """, TypeError, "checkpoints", "'all'", jax=None)
loops.add("a checkpoint every zero steps", """
    lax.scan(lambda c, x: (c + x, c), 0.0, np.ones(4), checkpoint_every=0)
    """, ValueError, "checkpoint_every", "at least 1", jax=None)
loops.add("a checkpoint every step and a half", """
    lax.scan(lambda c, x: (c + x, c), 0.0, np.ones(4), checkpoint_every=1.5)
    """, TypeError, "checkpoint_every", "1.5", jax=None)
loops.add("batches of negative size", "lax.map(lax.sin, np.ones(4), batch_size=-2)", ValueError, "batch_size", "-2")
loops.add("batches of a size that isn't whole", "lax.map(lax.sin, np.ones(4), batch_size=1.5)", TypeError, "batch_size",
          "1.5", jax=None)
loops.add("unrolling by a word", "lax.fori_loop(0, 3, lambda i, x: x, 0.0, unroll='yes')", TypeError, "unroll", "'yes'",
          jax=None)

packed = Group("Integers of less than a byte")
packed.add("a number that doesn't fit", "jnp.ones(3, jnp.int4) + 8", OverflowError, "8", "int4")
packed.add("one beside bytes", "jnp.ones(3, jnp.int4) + jnp.ones(3, jnp.int8)", TypeError, "i4 and i8", "astype",
           jax=None)
packed.add("one beside an unsigned one", "jnp.zeros(3, jnp.int4) + jnp.zeros(3, jnp.uint4)", TypeError, "i4 and u4",
           jax=None)
packed.add("memory that is shared", "np.from_dlpack(jnp.ones(3, jnp.int4))", BufferError, "4 bits each", local=True)
packed.add("elements that don't fill a byte", "lax.bitcast_convert_type(jnp.ones(3, jnp.int4), np.int8)", ValueError,
           "2 elements of i4")
packed.add("a view of half a byte", "jnp.ones(3, jnp.int4).view(jnp.int8)", ValueError, "8 bits", "12")
packed.add("a function of floats", "lax.exp(jnp.ones(3, jnp.int4))", TypeError, "exp", "i4")
packed.add("an array of numbers that don't fit", "jnp.array([1, 9], dtype=jnp.int4)", OverflowError, "int4")
packed.add("a negative number without a sign", "jnp.uint4(-1)", OverflowError, "-1", "0 to 15")
packed.add("a product that is too narrow", """
    x = jnp.ones(3, jnp.int8)
    lax.dot(x, x, preferred_element_type=jnp.int4)
    """, TypeError, "at least as wide as int8")

GROUPS = (policies, loops, packed)
