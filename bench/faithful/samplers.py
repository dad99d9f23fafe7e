"""The samplers that are tested and plotted, each as a stream of texts from a fixture."""

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

__all__ = ["CONTROL", "SAMPLERS", "Sampler", "Stream", "distil_twist", "list_ended_texts"]

Rng = np.random.Generator
Stream = Callable[[int], list[Tokens]]
"""Function that returns the next n texts; the sampler retains what it has learnt."""


@dataclass(frozen=True)
class Sampler:
    """A sampler of the table.

    open: returns a new stream. exact: whether its draws must pass a G-test against p given L (a chain only if they are
    nearly independent). curve: whether its divergence is plotted. most: maximum number of draws of a curve.
    """

    name: str
    open: Callable[[Fixture, Rng], Stream]
    exact: bool
    curve: bool = True
    most: int = 300


def list_ended_texts(draws: Draws) -> list[Tokens]:
    """Return the tokens of the draws with a positive weight."""
    return [draw.tokens for draw in draws if draw.log_weight > -np.inf]


def gather_draws(once: Callable[[int], list[Tokens]]) -> Stream:
    """Return a stream that repeats a draw until it has n texts that ended, at most 50 times."""

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
        lambda n: list_ended_texts(
            masked_sampling.draw_masked(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens)
        )
    )


def open_awrs(f: Fixture, rng: Rng) -> Stream:
    return gather_draws(
        lambda n: list_ended_texts(awrs.draw_awrs(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens))
    )


def open_asap(f: Fixture, rng: Rng) -> Stream:
    trie = SuccessTrie(f.max_tokens)
    return gather_draws(
        lambda n: list_ended_texts(asap.draw_asap(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, trie=trie))
    )


def open_exact(f: Fixture, rng: Rng) -> Stream:
    trie = SuccessTrie(f.max_tokens)
    return lambda n: list_ended_texts(
        trie_rejection.draw_exact(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, trie=trie)
    )


def open_pimh(f: Fixture, rng: Rng) -> Stream:
    return lambda n: list_ended_texts(
        pimh.draw_pimh(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=8, burn=20, thin=3)
    )


def open_twisted_pimh(f: Fixture, rng: Rng) -> Stream:
    """Open a chain with the distilled twist: few proposals are rejected, so that successive draws are nearly
    independent.
    """
    twist = distil_twist(f, rng)
    return lambda n: list_ended_texts(
        pimh.draw_pimh(
            f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=8, burn=20, thin=3,
            move=Twisted(twist), twist=twist,
        )
    )  # fmt: skip


def build_smc(particles: int) -> Callable[[Fixture, Rng], Stream]:
    """Return the `open` of SMC with AWRS as the move."""

    def open_smc(f: Fixture, rng: Rng) -> Stream:
        return gather_draws(
            lambda n: list_ended_texts(
                smc.draw_smc(
                    f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=particles, move=Awrs()
                )
            )
        )

    return open_smc


def build_masked_smc(particles: int) -> Callable[[Fixture, Rng], Stream]:
    """Return the `open` of SMC with masks as the move and no twist."""

    def open_smc(f: Fixture, rng: Rng) -> Stream:
        return gather_draws(
            lambda n: list_ended_texts(
                smc.draw_smc(f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=particles)
            )
        )

    return open_smc


def distil_twist(f: Fixture, rng: Rng) -> Future:
    """Return the twist of a bigram model, distilled from 30 masked texts of the model, under the constraint."""
    ngram = NGram.distil(f.lm, f.constraint, n=30, rng=rng, max_tokens=f.max_tokens, order=1, contexts=64)
    return Future.of(ngram, f.constraint, max_tokens=f.max_tokens)


def build_twisted_smc(particles: int) -> Callable[[Fixture, Rng], Stream]:
    """Return the `open` of SMC whose moves and twist are the distilled one."""

    def open_twisted(f: Fixture, rng: Rng) -> Stream:
        twist = distil_twist(f, rng)
        return gather_draws(
            lambda n: list_ended_texts(
                smc.draw_smc(
                    f.lm, f.constraint, n=n, rng=rng, max_tokens=f.max_tokens, particles=particles,
                    move=Twisted(twist), twist=twist,
                )
            )
        )  # fmt: skip

    return open_twisted


def open_rejection(f: Fixture, rng: Rng) -> Stream:
    """Open rejection sampling: texts of the unconstrained model until one is in L and ends in time."""
    ends = f.constraint.vocabulary.eos_ids

    def one() -> Tokens | None:
        matcher, tokens = f.constraint.matcher(), list[int]()
        for _ in range(f.max_tokens):
            law = np.cumsum(np.exp(f.lm.next_logprobs([tokens])[0]))
            token = int(np.searchsorted(law, rng.random() * law[-1], side="right"))
            if not matcher.allows(token):
                return None  # rejected already: its remaining tokens are not drawn
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
