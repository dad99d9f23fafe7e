"""The samplers, each as a stream of texts from a fixture: what the table tests and the curves follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from constrain.sampling import Draws, asap, awrs, pimh, smc, trie_rejection
from constrain.sampling.core import masked_sampling
from constrain.sampling.particles import Awrs, Twisted
from constrain.sampling.research.ngram import NGram
from constrain.sampling.success_trie import SuccessTrie
from constrain.sampling.twists import Future
from tests.markov_factory import Tokens

from .fixtures import Fixture

__all__ = ["CONTROL", "SAMPLERS", "Sampler", "Stream", "distil_twist"]

Rng = np.random.Generator
Stream = Callable[[int], list[Tokens]]
"""The next n texts; what a sampler has learnt stays with it."""


@dataclass(frozen=True)
class Sampler:
    """open: a fresh stream. exact: whether a G-test must find its draws to be from p given L (those of a chain only
    where they are nearly independent). curve: whether its divergence is plotted. most: draws that a curve follows."""

    name: str
    open: Callable[[Fixture, Rng], Stream]
    exact: bool
    curve: bool = True
    most: int = 300


def list_alive(draws: Draws) -> list[Tokens]:
    return [draw.tokens for draw in draws if draw.log_weight > -np.inf]


def gather_draws(once: Callable[[int], list[Tokens]]) -> Stream:
    """Draw again for those that died, as one would; give up after 50 rounds."""

    def stream(n: int) -> list[Tokens]:
        out: list[Tokens] = []
        for _ in range(50):
            if len(out) >= n:
                break
            out += once(n - len(out))
        return out

    return stream


def open_masked(f: Fixture, rng: Rng) -> Stream:
    return gather_draws(
        lambda n: list_alive(masked_sampling.draw_masked(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens))
    )


def open_awrs(f: Fixture, rng: Rng) -> Stream:
    return gather_draws(lambda n: list_alive(awrs.draw_awrs(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens)))


def open_asap(f: Fixture, rng: Rng) -> Stream:
    trie = SuccessTrie(f.max_tokens)
    return gather_draws(
        lambda n: list_alive(asap.draw_asap(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, trie=trie))
    )


def open_exact(f: Fixture, rng: Rng) -> Stream:
    trie = SuccessTrie(f.max_tokens)
    return lambda n: list_alive(
        trie_rejection.draw_exact(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, trie=trie)
    )


def open_pimh(f: Fixture, rng: Rng) -> Stream:
    return lambda n: list_alive(
        pimh.draw_pimh(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=8, burn=20, thin=3)
    )


def open_twisted_pimh(f: Fixture, rng: Rng) -> Stream:
    """With the distilled twist hardly a population is refused, so neighbours in the chain are nearly independent."""
    twist = distil_twist(f, rng)
    return lambda n: list_alive(
        pimh.draw_pimh(
            f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=8, burn=20, thin=3,
            move=Twisted(twist), twist=twist,
        )
    )  # fmt: skip


def build_smc(particles: int) -> Callable[[Fixture, Rng], Stream]:
    """AWRS as the move."""

    def open_smc(f: Fixture, rng: Rng) -> Stream:
        return gather_draws(
            lambda n: list_alive(
                smc.draw_smc(
                    f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=particles, move=Awrs()
                )
            )
        )

    return open_smc


def build_masked_smc(particles: int) -> Callable[[Fixture, Rng], Stream]:
    """Masks as the move, no twist."""

    def open_smc(f: Fixture, rng: Rng) -> Stream:
        return gather_draws(
            lambda n: list_alive(
                smc.draw_smc(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=particles)
            )
        )

    return open_smc


def distil_twist(f: Fixture, rng: Rng) -> Future:
    """The twist: a bigram model distilled from 30 masked texts of the model itself, crossed with the constraint."""
    ngram = NGram.distil(f.lm, f.constraint, n=30, rng=rng, max_tokens=f.max_tokens, order=1, contexts=64)
    return Future.of(ngram, f.constraint, max_tokens=f.max_tokens)


def build_twisted_smc(particles: int) -> Callable[[Fixture, Rng], Stream]:
    """Mask and distilled twist together choose tokens; weights keep it right."""

    def open_twisted(f: Fixture, rng: Rng) -> Stream:
        twist = distil_twist(f, rng)
        return gather_draws(
            lambda n: list_alive(
                smc.draw_smc(
                    f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=particles,
                    move=Twisted(twist), twist=twist,
                )
            )
        )  # fmt: skip

    return open_twisted


def open_rejection(f: Fixture, rng: Rng) -> Stream:
    """Texts of the model alone, until one is in L and in time: what a validator and patience give."""
    ends = f.constraint.vocabulary.eos_ids

    def one() -> Tokens | None:
        matcher, tokens = f.constraint.matcher(), list[int]()
        for _ in range(f.max_tokens):
            law = np.cumsum(np.exp(f.lm.next_logprobs([tokens])[0]))
            token = int(np.searchsorted(law, rng.random() * law[-1], side="right"))
            if not matcher.allows(token):
                return None  # its remaining tokens would change nothing, so they are not paid for
            if token in ends:
                return tuple(tokens)
            matcher.advance(token)
            tokens.append(token)
        return None

    def stream(n: int) -> list[Tokens]:
        out, tries = list[Tokens](), 0
        while len(out) < n and tries < 40 * n + 400:
            tries += 1
            text = one()
            if text is not None:
                out.append(text)
        return out

    return stream


CONTROL = Sampler("masked", open_masked, False)
SAMPLERS = [
    CONTROL,
    Sampler("awrs", open_awrs, False),
    Sampler("asap", open_asap, False),
    Sampler("exact", open_exact, True),
    Sampler("smc awrs 4", build_smc(4), False),
    Sampler("smc awrs 16", build_smc(16), False),
    Sampler("smc awrs 64", build_smc(64), False, most=100),
    Sampler("pimh 8", open_pimh, False),
    Sampler("pimh 8, twist", open_twisted_pimh, True, curve=False),
    Sampler("smc twisted 8", build_twisted_smc(8), False),
    Sampler("rejection", open_rejection, True),
]
