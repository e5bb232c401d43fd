"""Whole programs in the style of jax.numpy, run by corejax and by jax: values, types, derivatives, mapped, compiled."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import corejax as cj

jax = pytest.importorskip("jax")
RNG = np.random.default_rng(18)


def hamiltonian(x, start, momenta, thresholds):
    """Samples by Hamiltonian dynamics: derivatives of an energy within loops within loops."""
    jnp, lax = x.jnp, x.lax

    def energy(q):
        return 0.5 * q @ jnp.array([[2.0, 0.5], [0.5, 1.0]]) @ q + jnp.sum(q ** 4)

    def leap(_, state):
        q, p = state
        p = p - 0.05 * x.grad(energy)(q)
        q = q + 0.1 * p
        return q, p - 0.05 * x.grad(energy)(q)

    def step(q, drawn):
        p, threshold = drawn
        new, p_new = lax.fori_loop(0, 4, leap, (q, p))
        loss = energy(new) + 0.5 * p_new @ p_new - energy(q) - 0.5 * p @ p
        taken = jnp.log(threshold) < -loss
        q = lax.cond(taken, lambda: new, lambda: q)
        return q, (q, taken)
    return lax.scan(step, start, (momenta, thresholds))


def particles(x, cloud, seen, offsets):
    """A particle filter: weights, and resampling by places in their cumulative sum."""
    jnp, lax = x.jnp, x.lax
    count = cloud.shape[0]

    def step(cloud, observed):
        y, offset = observed
        cloud = 0.9 * cloud + jnp.sin(cloud)
        weights = jnp.exp(-0.5 * (y - cloud) ** 2)
        weights /= weights.sum()
        places = jnp.searchsorted(jnp.cumsum(weights), (offset + jnp.arange(count)) / count)
        return cloud[jnp.clip(places, 0, count - 1)], (weights @ cloud, 1.0 / jnp.sum(weights ** 2))
    return lax.scan(step, cloud, (seen, offsets))


def neighbours(x, points, images):
    """The divergence that t-SNE makes small, and its gradient: places of the diagonal, guarded logarithms."""
    jnp = x.jnp

    def squares(a):
        return jnp.sum((a[:, None] - a[None]) ** 2, axis=-1)
    near = jnp.exp(-squares(points)) * (1 - jnp.eye(len(points)))
    near /= near.sum()

    def divergence(images):
        far = 1 / (1 + squares(images))
        far = far.at[jnp.diag_indices(len(points))].set(0.0)
        ratio = jnp.log(jnp.maximum(near, 1e-12)) - jnp.log(jnp.maximum(far / far.sum(), 1e-12))
        return jnp.sum(jnp.where(near > 0, near * ratio, 0))
    return x.value_and_grad(divergence)(images)


def mixture(x, points, means):
    """Two rounds of fitting a mixture of Gaussians: batches of inverses and determinants, by einsum."""
    jnp = x.jnp
    share, spread = jnp.ones(3) / 3, jnp.stack([jnp.eye(2)] * 3)
    for _ in range(2):
        gap = points[:, None] - means
        far = jnp.einsum("nki,kij,nkj->nk", gap, jnp.linalg.inv(spread), gap)
        score = jnp.log(share) - 0.5 * (far + jnp.linalg.slogdet(spread).logabsdet)
        owner = jnp.exp(score - score.max(1, keepdims=True))
        owner /= owner.sum(1, keepdims=True)
        size = owner.sum(0)
        means = (owner.T @ points) / size[:, None]
        gap = points[:, None] - means
        spread = jnp.einsum("nk,nki,nkj->kij", owner, gap, gap) / size[:, None, None] + 1e-3 * jnp.identity(2)
        share = size / size.sum()
    return means, spread, share


def picture(x, image):
    """Filters of bytes: types that narrow numbers get, paddings, halves, masks and bits."""
    jnp = x.jnp
    rows, columns = image.shape
    framed = jnp.pad(image.astype(jnp.float32), 1, mode="reflect")
    blurred = sum(framed[i:i + rows, j:j + columns] for i in range(3) for j in range(3)) / 9
    edges = jnp.hypot(framed[1:-1, 2:] - framed[1:-1, :-2], framed[2:, 1:-1] - framed[:-2, 1:-1])
    bright = jnp.minimum(image.astype(jnp.uint16) + 100, 255).astype(jnp.uint8)
    return (jnp.clip(jnp.round(blurred), 0, 255).astype(jnp.uint8), edges, image[::2, ::2] // 2, 255 - image, bright,
            image + 100, image > 128, image.mean(), image.sum(), ~image, jnp.bitwise_and(image, 15) << 2,
            jnp.where(image > 128, image, 0), image / 255, image * 0.5, image[..., None].repeat(3, axis=-1),
            image.astype(jnp.bfloat16) / 255, jnp.median(image), jnp.bincount(image.ravel() // 32, length=8))


PROGRAMS = {
    hamiltonian: (RNG.normal(size=2), RNG.normal(size=(5, 2)), RNG.uniform(0.1, 1.0, 5)),
    particles: (RNG.normal(size=12), RNG.normal(size=4), RNG.uniform(0.1, 0.9, 4)),
    neighbours: (RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2))),
    mixture: (RNG.normal(size=(9, 2)), RNG.normal(size=(3, 2))),
    picture: (RNG.integers(0, 256, (6, 7)).astype(np.uint8),),
}


def library(module, jnp):
    return SimpleNamespace(jnp=jnp, lax=module.lax, grad=module.grad, value_and_grad=module.value_and_grad)


def agree(ours, theirs):
    for got, wanted in zip(cj.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert str(wanted.dtype) == str(got.dtype)
        wanted, got = [np.asarray(x).astype("f8") if str(x.dtype) == "bfloat16" else np.asarray(x)
                       for x in (wanted, got)]
        np.testing.assert_allclose(got, wanted, rtol=3e-6 if got.dtype == np.float32 else 1e-8, atol=1e-10)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_give_what_jax_gives(program):
    args, ours, theirs = PROGRAMS[program], library(cj, cj.numpy), library(jax, jax.numpy)
    wanted = jax.jit(lambda *args: program(theirs, *args))(*args)
    arrays = [cj.numpy.asarray(x) for x in args]
    for call in (lambda *args: program(ours, *args), cj.jit(lambda *args: program(ours, *args))):
        agree(call(*arrays), wanted)
    twice = [cj.numpy.stack([x, x[::-1]]) for x in arrays]
    mapped = cj.vmap(lambda *args: program(ours, *args))(*twice)
    agree(cj.tree.map(lambda x: x[0], mapped), wanted)


@pytest.mark.parametrize("program", [hamiltonian, neighbours, mixture], ids=lambda program: program.__name__)
def test_gradients_of_programs_are_those_of_jax(program):
    args = PROGRAMS[program]
    nums = tuple(range(len(args)))

    def total(x, tree):
        def of(*args):
            leaves = [leaf for leaf in tree.leaves(program(x, *args)) if leaf.dtype == np.float64]
            return sum(x.jnp.sum(x.jnp.sin(leaf)) for leaf in leaves)
        return of
    wanted = jax.jit(jax.grad(total(library(jax, jax.numpy), jax.tree), nums))(*args)
    agree(cj.grad(total(library(cj, cj.numpy), cj.tree), nums)(*args), wanted)
