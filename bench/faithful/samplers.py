"""The samplers, each as a stream of texts from a fixture: what the table tests and the curves follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from constrain.sampling import Draws, asap, awrs, masked_sampling, pimh, smc, trie_rejection
from constrain.sampling.particles import Awrs, Twisted
from constrain.sampling.research.ngram import NGram
from constrain.sampling.success_trie import SuccessTrie
from constrain.sampling.twists import Future
from tests.markov_made import Tokens

from .fixtures import Fixture

__all__ = ["CONTROL", "SAMPLERS", "Sampler", "Stream", "distilled"]

Rng = np.random.Generator
Stream = Callable[[int], list[Tokens]]
"""The next n texts; what a sampler has learnt stays with it."""


@dataclass(frozen=True)
class Sampler:
    """open: a fresh stream. exact: whether a G-test must find its draws to be from p given L (those of a chain only
    where they are nearly independent). line: colour in plots, "" for none. most: draws that a curve follows."""

    name: str
    open: Callable[[Fixture, Rng], Stream]
    exact: bool
    line: str
    most: int = 300


def alive(draws: Draws) -> list[Tokens]:
    return [draw.tokens for draw in draws if draw.logweight > -np.inf]


def gathered(once: Callable[[int], list[Tokens]]) -> Stream:
    """Draws again for those that died, as one would; gives up after 50 rounds."""

    def stream(n: int) -> list[Tokens]:
        out: list[Tokens] = []
        for _ in range(50):
            if len(out) >= n:
                break
            out += once(n - len(out))
        return out

    return stream


def open_masked(f: Fixture, rng: Rng) -> Stream:
    return gathered(lambda n: alive(masked_sampling.draw(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens)))


def open_awrs(f: Fixture, rng: Rng) -> Stream:
    return gathered(lambda n: alive(awrs.draw(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens)))


def open_asap(f: Fixture, rng: Rng) -> Stream:
    trie = SuccessTrie(f.max_tokens)
    return gathered(lambda n: alive(asap.draw(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, trie=trie)))


def open_exact(f: Fixture, rng: Rng) -> Stream:
    trie = SuccessTrie(f.max_tokens)
    return lambda n: alive(trie_rejection.draw(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, trie=trie))


def open_pimh(f: Fixture, rng: Rng) -> Stream:
    return lambda n: alive(
        pimh.draw(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=8, burn=20, thin=3)
    )


def open_twisted_pimh(f: Fixture, rng: Rng) -> Stream:
    """With the distilled twist hardly a population is refused, so neighbours in the chain are nearly independent."""
    twist = distilled(f, rng)
    return lambda n: alive(
        pimh.draw(
            f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=8, burn=20, thin=3,
            move=Twisted(twist), twist=twist,
        )
    )  # fmt: skip


def smc_of(particles: int) -> Callable[[Fixture, Rng], Stream]:
    """AWRS as the move."""

    def open_smc(f: Fixture, rng: Rng) -> Stream:
        return gathered(
            lambda n: alive(
                smc.draw(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=particles, move=Awrs())
            )
        )

    return open_smc


def masked_smc(particles: int) -> Callable[[Fixture, Rng], Stream]:
    """Masks as the move, no twist."""

    def open_smc(f: Fixture, rng: Rng) -> Stream:
        return gathered(
            lambda n: alive(smc.draw(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=particles))
        )

    return open_smc


def distilled(f: Fixture, rng: Rng) -> Future:
    """The twist: a bigram model distilled from 30 masked texts of the model itself, crossed with the constraint."""
    ngram = NGram.distil(f.lm, f.constraint, n=30, rng=rng, max_tokens=f.max_tokens, order=1, contexts=64)
    return Future.of(ngram, f.constraint, max_tokens=f.max_tokens)


def twisted(particles: int) -> Callable[[Fixture, Rng], Stream]:
    """Mask and distilled twist together choose tokens; weights keep it right."""

    def open_twisted(f: Fixture, rng: Rng) -> Stream:
        twist = distilled(f, rng)
        return gathered(
            lambda n: alive(
                smc.draw(
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


CONTROL = Sampler("masked", open_masked, False, "#888888")
SAMPLERS = [
    CONTROL,
    Sampler("awrs", open_awrs, False, "#bbbb44"),
    Sampler("asap", open_asap, False, "#cc8800"),
    Sampler("exact", open_exact, True, "#000000"),
    Sampler("smc awrs 4", smc_of(4), False, "#99bbff"),
    Sampler("smc awrs 16", smc_of(16), False, "#4477dd"),
    Sampler("smc awrs 64", smc_of(64), False, "#113388", most=100),
    Sampler("pimh 8", open_pimh, False, "#aa3377"),
    Sampler("pimh 8, twist", open_twisted_pimh, True, ""),
    Sampler("smc twisted 8", twisted(8), False, "#228833"),
    Sampler("rejection", open_rejection, True, "#ee6677"),
]
