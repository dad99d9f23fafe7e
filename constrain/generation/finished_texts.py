"""The run of a call of `generate`: select a sampler and draw texts until the requested number has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..base.errors import LimitError
from ..decoding.generation_loop import finish_runs
from ..decoding.model_runner import ModelRunner
from ..decoding.outcomes import Outcome, Piece, Stats
from ..decoding.scheduler import Scheduler
from ..decoding.token_choice import TokenChoice
from ..engine.constraint import Constraint
from ..sampling import SAMPLERS, Checker, LanguageModel, add_post_filter, draw
from ..sampling.core.masked_sampling import Proposal
from ..sampling.sampler_choice import SamplerChoice, choose_sampler
from ..vocabulary.vocabulary import Vocabulary
from .draft_plan import FORCED_TEXT, DraftPlan
from .masked_batches import ATTEMPTS, BatchPrompt, DrawnTexts, draw_texts
from .model_preparation import find_prompted_runner

__all__ = ["ATTEMPTS", "draw_here", "draw_outcomes", "generate_masked", "select_sampler"]

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


def generate_masked(
    lm: LanguageModel,
    constraint: Constraint,
    n: int,
    *,
    seed: int | None,
    max_tokens: int,
    proposal: Proposal,
    stream: Callable[[Piece], None] | None,
    drafts: DraftPlan = FORCED_TEXT,
) -> tuple[list[Outcome], int]:
    """Generate n texts as one batch. Return them and the number of unfinished ones, which were drawn again.

    stream: receives the Pieces text after text. drafts: how the texts are drafted.
    """
    runner, prompt = find_prompted_runner(lm, constraint.vocabulary.size)
    texts = [BatchPrompt(prompt, constraint, max_tokens, np.random.SeedSequence(seed), drafts)]
    (drawn,) = draw_here(runner, constraint.vocabulary, texts, n, TokenChoice(proposal), stream)
    return drawn.outcomes, drawn.unfinished


def draw_here(
    runner: ModelRunner,
    vocabulary: Vocabulary,
    prompts: Sequence[BatchPrompt],
    count: int,
    choice: TokenChoice,
    stream: Callable[[Piece], None] | None,
) -> list[DrawnTexts]:
    """Run `draw_texts` on a scheduler that is stepped in this thread, and close the runner. Raise the first error of a
    text at once.
    """
    listener = None if stream is None else OrderedStream(stream)
    texts, scheduler = draw_texts(vocabulary, prompts, count, choice, listener), Scheduler(runner)
    found: list[DrawnTexts] = []
    try:
        requests = next(texts)
        while True:
            runs = [scheduler.submit(request) for request in requests]
            finish_runs(scheduler, runs)
            requests = texts.send(runs)
    except StopIteration as stop:
        found = stop.value
    finally:
        runner.close()
    for one in found:
        if one.error is not None:
            raise one.error
    if listener is not None:
        listener.flush()
    return found


class OrderedStream:
    """Passes the Pieces of several texts on text after text; those of later texts wait until the earlier have ended."""

    def __init__(self, stream: Callable[[Piece], None]) -> None:
        self.stream, self.current = stream, (0, 0)
        self.waiting: dict[tuple[int, int], list[Piece]] = {}

    def __call__(self, prompt: int, sample: int, piece: Piece) -> None:
        """Pass a Piece on, or keep it."""
        if (prompt, sample) == self.current:
            self.stream(piece)
        else:
            self.waiting.setdefault((prompt, sample), []).append(piece)

    def flush(self) -> None:
        """Pass on all Pieces that were kept."""
        for _, pieces in sorted(self.waiting.items()):
            for piece in pieces:
                self.stream(piece)
        self.waiting.clear()


def draw_outcomes(
    lm: LanguageModel,
    constraint: Constraint,
    sampler: str,
    n: int,
    seed: int | None,
    max_tokens: int,
    options: dict[str, Any],
) -> tuple[list[Outcome], int]:
    """Draw n texts with a sampler of `sampling` and convert them to Outcomes. Unfinished texts are drawn again (see
    `repeat_until_ended`).
    """
    rng = np.random.default_rng(seed)

    def attempt(count: int) -> tuple[list[Outcome], int]:
        start = perf_counter_ns()
        draws = draw(lm, constraint, sampler=sampler, n=count, rng=rng, max_tokens=max_tokens, **options)
        total_us = (perf_counter_ns() - start) / 1e3
        finished = []
        for drawn in draws:
            stats = Stats(tokens=len(drawn.tokens) + 1, total_us=total_us / len(draws), counts=draws.stats)
            stats.model_calls = round(draws.stats.get("model_calls", 0) / len(draws))
            data = constraint.vocabulary.transcript(drawn.tokens)
            finished.append(Outcome(list(drawn.tokens), data, drawn.logprob, drawn.log_weight, "complete", stats))
        return finished, draws.unfinished

    return repeat_until_ended(attempt, n, max_tokens)


def repeat_until_ended(
    attempt: Callable[[int], tuple[list[Outcome], int]], n: int, max_tokens: int
) -> tuple[list[Outcome], int]:
    """Return n finished texts and the number of unfinished ones. Raise LimitError after ATTEMPTS unfinished texts per
    text.

    attempt: draws the given number of texts; returns those that ended and the number that did not. If it returns
    neither, fewer than n texts are returned.
    """
    finished, unfinished = attempt(n)
    while unfinished and len(finished) < n:
        if unfinished >= ATTEMPTS * n:
            raise LimitError(
                f"{len(finished)} of {len(finished) + unfinished} texts ended within max_tokens = {max_tokens}; "
                f"{n} were requested",
                hint='Raise max_tokens, or use sampler="masked", which closes a text before the limit.',
            )
        more, failed = attempt(n - len(finished))
        if not more and not failed:
            break
        finished, unfinished = finished + more, unfinished + failed
    return finished, unfinished
