"""The run of a call of `generate`: select a sampler and draw texts until the requested number has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..base.errors import LimitError
from ..checking.checked_sampling import Dead, MaskOrder, draw_checked
from ..decoding.generation_loop import Outcome, Piece, Stats, generate_text
from ..decoding.token_choice import TokenChoice
from ..engine.constraint import Constraint
from ..sampling import SAMPLERS, Checker, Draws, LanguageModel, add_post_filter, draw
from ..sampling.core.masked_sampling import Proposal
from ..sampling.post_filtering import as_checker
from ..sampling.sampler_choice import SamplerChoice, choose_sampler
from .model_preparation import limit_tokens

__all__ = ["ATTEMPTS", "DrawOutcomes", "make_checked_draw", "make_masked_draw", "make_sampler_draw", "select_sampler"]

DrawOutcomes = Callable[[LanguageModel, int], tuple[list[Outcome], int]]
"""Draws a number of texts from a model; returns those that ended and the number of unfinished ones."""
OpenStream = Callable[[], Callable[[Piece], None] | None]
"""Returns the function that receives the Pieces of the next text, or None."""

ATTEMPTS = 64
"""Maximum number of unfinished texts per requested text before `generate` gives up."""
PARTICLES = 16
"""Default number of particles. The median of our fixtures is then near p given L; use more where a twist is missing
(see the how-to)."""


def select_sampler(
    lm: LanguageModel,
    constraint: Constraint,
    sampler: str,
    *,
    particles: int | None,
    checker: Checker | Callable[[bytes], bool] | None,
    seed: int | None,
    max_tokens: int,
    masked_options: str,
) -> SamplerChoice:
    """Return the requested sampler with its options; for "auto", the one that `sampling.sampler_choice` selects.

    masked_options: names of requested options that only "masked" supports.
    """
    if sampler == "auto":
        rng = np.random.default_rng(None if seed is None else [seed, 1])
        filtered = add_post_filter(constraint, sampler, checker)
        return choose_sampler(lm, filtered, rng=rng, max_tokens=max_tokens, wants=masked_options)
    options = {"particles": particles or PARTICLES} if SAMPLERS[sampler].takes_particles else {}
    return SamplerChoice(sampler, "", options)


def make_masked_draw(
    constraint: Constraint, *, seed: int | None, max_tokens: int, choice: TokenChoice, open_stream: OpenStream
) -> DrawOutcomes:
    """Return a function that generates texts with the generation loop; all of its texts are independent.

    Unfinished texts are drawn again (see `repeat_until_ended`).
    """
    generators = spawn_generators(seed)

    def attempt(lm: LanguageModel, most: int, count: int) -> tuple[list[Outcome], int]:
        streams = [open_stream() for _ in range(count)]
        texts = [
            generate_text(
                lm, constraint, rng=next(generators), max_tokens=most, proposal=choice.proposal, stop=choice.stop,
                stream=stream,
            )
            for stream in streams
        ]  # fmt: skip
        ended = [text for text in texts if text.finish_reason != "length"]
        if len(ended) < len(texts) and any(streams):
            raise LimitError(
                f"a text that was streamed did not end within max_tokens = {most}", hint="Raise max_tokens."
            )
        return ended, len(texts) - len(ended)

    return lambda lm, n: repeat_until_ended(attempt, lm, n, limit_tokens(lm, max_tokens))


def make_sampler_draw(
    constraint: Constraint, sampler: str, seed: int | None, max_tokens: int, options: dict[str, Any]
) -> DrawOutcomes:
    """Return a function that draws texts with a sampler of `sampling` and converts them to Outcomes.

    Unfinished texts are drawn again (see `repeat_until_ended`).
    """
    rng = np.random.default_rng(seed)

    def attempt(lm: LanguageModel, most: int, count: int) -> tuple[list[Outcome], int]:
        start = perf_counter_ns()
        draws = draw(lm, constraint, sampler=sampler, n=count, rng=rng, max_tokens=most, **options)
        return convert_draws(draws, constraint, (perf_counter_ns() - start) / 1e3), draws.unfinished

    return lambda lm, n: repeat_until_ended(attempt, lm, n, limit_tokens(lm, max_tokens))


def make_checked_draw(
    constraint: Constraint,
    checker: Checker | Callable[[bytes], bool],
    *,
    seed: int | None,
    max_tokens: int,
    proposal: Proposal,
    masks: MaskOrder,
) -> DrawOutcomes:
    """Return a function that draws texts by masked sampling, with a checker of single tokens.

    Unfinished texts are drawn again (see `repeat_until_ended`); prefixes that were found to be dead are avoided.
    """
    rng, dead, checked = np.random.default_rng(seed), Dead(), as_checker(checker, constraint.vocabulary)

    def attempt(lm: LanguageModel, most: int, count: int) -> tuple[list[Outcome], int]:
        start = perf_counter_ns()
        draws = draw_checked(
            lm, constraint, checked, n=count, rng=rng, max_tokens=most, proposal=proposal, masks=masks, dead=dead
        ).without_unfinished()
        return convert_draws(draws, constraint, (perf_counter_ns() - start) / 1e3), draws.unfinished

    return lambda lm, n: repeat_until_ended(attempt, lm, n, limit_tokens(lm, max_tokens))


def convert_draws(draws: Draws, constraint: Constraint, total_us: float) -> list[Outcome]:
    """Return draws, which took `total_us` microseconds together, as Outcomes."""
    finished = []
    for drawn in draws:
        stats = Stats(tokens=len(drawn.tokens) + 1, total_us=total_us / len(draws), counts=draws.stats)
        stats.model_calls = round(draws.stats.get("model_calls", 0) / len(draws))
        data = constraint.vocabulary.transcript(drawn.tokens)
        finished.append(Outcome(list(drawn.tokens), data, drawn.logprob, drawn.log_weight, "complete", stats))
    return finished


def repeat_until_ended(
    attempt: Callable[[LanguageModel, int, int], tuple[list[Outcome], int]], lm: LanguageModel, n: int, max_tokens: int
) -> tuple[list[Outcome], int]:
    """Return n finished texts and the number of unfinished ones. Raise LimitError after ATTEMPTS unfinished texts per
    text.

    attempt: draws, from a model and within a number of tokens, a number of texts; returns those that ended and the
    number that did not. If it returns neither, fewer than n texts are returned.
    """
    finished, unfinished = attempt(lm, max_tokens, n)
    while unfinished and len(finished) < n:
        if unfinished >= ATTEMPTS * n:
            raise LimitError(
                f"{len(finished)} of {len(finished) + unfinished} texts ended within max_tokens = {max_tokens}; "
                f"{n} were requested",
                hint='Raise max_tokens, or use sampler="masked", which closes a text before the limit.',
            )
        more, failed = attempt(lm, max_tokens, n - len(finished))
        if not more and not failed:
            break
        finished, unfinished = finished + more, unfinished + failed
    return finished, unfinished


def spawn_generators(seed: int | None) -> Iterator[np.random.Generator]:
    """Yield independent random generators without end; the first is the one that n = 1 uses."""
    root = np.random.SeedSequence(seed)
    yield np.random.default_rng(root)
    while True:
        yield np.random.default_rng(root.spawn(1)[0])
