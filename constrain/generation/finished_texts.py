"""The run of a call of `generate`: select a sampler and draw texts until the requested number has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..base.errors import LimitError
from ..decoding.generation_loop import finish_runs
from ..decoding.model_runner import ModelRunner
from ..decoding.outcomes import Outcome, Piece, Stats
from ..decoding.scheduler import Scheduler
from ..engine.constraint import Constraint
from ..engine.length_limits import TokenLimit, explain_short_limit, name_full_context
from ..sampling import SAMPLERS, Checker, Draws, LanguageModel, add_post_filter, draw
from ..sampling.core.weight_statistics import WEIGHT_STATISTICS
from ..sampling.sampler_choice import SamplerChoice, choose_sampler
from ..sampling.sampling_target import MODEL_TARGET
from ..sampling.success_walks import make_no_text_error
from .drawn_texts import DrawnTexts
from .engine_call import EngineCall
from .masked_batches import ATTEMPTS, BatchDrawing
from .model_preparation import limit_tokens
from .partial_values import PartialPieces
from .refusal_counts import count_exclusions, count_refusals

__all__ = [
    "ATTEMPTS",
    "DrawOutcomes",
    "convert_draws",
    "draw_here",
    "make_sampler_draw",
    "repeat_until_ended",
    "select_sampler",
]

FIRST_ATTEMPTS = 8
"""Unfinished texts per text after which max_tokens is held to be too small if it seems to be and none has ended."""
PARTICLES = 16
"""Default number of particles. The median of our fixtures is then near p given L; use more where a twist is missing
(see the how-to)."""
DrawOutcomes = Callable[[LanguageModel, int], tuple[list[Outcome], int]]
"""Draws a number of texts from a model; returns those that ended and the number of unfinished ones."""


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
    critic: object = None,
) -> SamplerChoice:
    """Return the requested sampler with its options; for "auto", the one that `sampling.sampler_choice` selects.

    masked_options: names of requested options that only "masked" supports.
    """
    if sampler == "auto" and critic is not None:
        return SamplerChoice("smc", "populations are weighted by the critic", {"particles": particles or PARTICLES})
    if sampler == "auto":
        rng = np.random.default_rng(None if seed is None else [seed, 1])
        filtered = add_post_filter(constraint, sampler, checker)
        choice = choose_sampler(lm, filtered, rng=rng, max_tokens=max_tokens, wants=masked_options)
        if SAMPLERS[choice.sampler].takes_particles:
            choice = replace(choice, options={**choice.options, "twist": choose_twist(seed)})
        return choice
    if not SAMPLERS[sampler].takes_particles:
        return SamplerChoice(sampler, "")
    return SamplerChoice(sampler, "", {"particles": particles or PARTICLES, "twist": choose_twist(seed)})


def choose_twist(seed: int | None) -> str:
    """Return the twist of populations: what the constraint has learned in earlier calls, but nothing of that with a
    seed, which promises the same texts every time.
    """
    return "learned" if seed is None else "fresh"


def draw_here(runner: ModelRunner, call: EngineCall, stream: Callable[[Piece], None] | None) -> list[DrawnTexts]:
    """Draw the texts of a call on a scheduler that is stepped in this thread, and close the runner. Raise the first
    error of a text at once.

    stream: receives the Pieces of all texts as they are generated.
    """
    constraints = [one.request for one in call.prompts]
    listener = None if stream is None else PartialPieces(constraints, stream)
    drawing = BatchDrawing(call.vocabulary, call.prompts, call.count, call.choice, listener)
    scheduler = Scheduler(runner)
    try:
        while requests := drawing.plan_round():
            runs = [scheduler.submit(request) for request in requests]
            finish_runs(scheduler, runs)
            drawing.take_runs(runs)
    finally:
        runner.close()
    for one in drawing.texts:
        if one.error is not None:
            raise one.error
    return drawing.texts


def make_sampler_draw(
    constraint: Constraint, sampler: str, seed: int | None, max_tokens: int, options: dict[str, Any]
) -> DrawOutcomes:
    """Return a function that draws texts with a sampler of `sampling` and converts them to Outcomes.

    Unfinished texts are drawn again (see `repeat_until_ended`).
    """
    rng = np.random.default_rng(seed)
    target, explain_exclusions = count_exclusions(options.get("target", MODEL_TARGET), sampler)
    options = {**options, "checker": count_refusals(options.get("checker"), sampler), "target": target}
    refuser = "check" if options["checker"] is not None else "critic" if target.critic is not None else ""

    def attempt(lm: LanguageModel, most: int, count: int) -> tuple[list[Outcome], int]:
        start = perf_counter_ns()
        draws = draw(lm, constraint, sampler=sampler, n=count, rng=rng, max_tokens=most, **options)
        if not len(draws) and draws.stats.get("bound") == 0:
            raise explain_exclusions() or make_no_text_error(constraint, most)
        return convert_draws(draws, constraint, (perf_counter_ns() - start) / 1e3), draws.unfinished

    def draw_texts(lm: LanguageModel, n: int) -> tuple[list[Outcome], int]:
        most = limit_tokens(lm, max_tokens)
        too_few = partial(explain_short_limit, constraint, most)
        with name_full_context(getattr(lm, "max_new_tokens", None)):
            return repeat_until_ended(attempt, lm, n, most, refuser, too_few, explain_exclusions)

    return draw_texts


def convert_draws(draws: Draws, constraint: Constraint, total_us: float) -> list[Outcome]:
    """Return draws, which took `total_us` microseconds together, as Outcomes."""
    finished = []
    counts = {name: value for name, value in draws.stats.items() if name not in WEIGHT_STATISTICS}
    groups = [-1] * len(draws) if draws.groups is None else draws.groups
    for drawn, group in zip(draws, groups):
        stats = Stats(tokens=len(drawn.tokens) + 1, total_us=total_us / len(draws), counts=counts, group=group)
        stats.model_calls = round(draws.stats.get("model_calls", 0) / len(draws))
        data = constraint.vocabulary.transcript(drawn.tokens)
        finished.append(Outcome(list(drawn.tokens), data, drawn.logprob, drawn.log_weight, "complete", stats))
    return finished


def repeat_until_ended(
    attempt: Callable[[LanguageModel, int, int], tuple[list[Outcome], int]],
    lm: LanguageModel,
    n: int,
    max_tokens: int,
    refuser: str = "",
    explain_limit: Callable[[], LimitError | None] = lambda: None,
    explain_refusals: Callable[[], LimitError | None] = lambda: None,
) -> tuple[list[Outcome], int]:
    """Return n finished texts and the number of unfinished ones. Raise LimitError after ATTEMPTS unfinished texts per
    text.

    attempt: draws, from a model and within a number of tokens, a number of texts; returns those that ended and the
    number that did not. If it returns neither, fewer than n texts are returned. refuser: "check" or "critic", whose
    refused texts are counted as unfinished, or "". explain_limit: returns an error if max_tokens is less than the text
    of the fewest bytes takes. It is raised after FIRST_ATTEMPTS per text of which none ended: a longer text may take
    fewer tokens. explain_refusals: returns an error if texts ended and all were refused.
    """
    finished, unfinished = attempt(lm, max_tokens, n)
    while unfinished and len(finished) < n:
        if unfinished >= FIRST_ATTEMPTS * n and not finished and (error := explain_limit()) is not None:
            raise error
        if unfinished >= ATTEMPTS * n:
            limit = TokenLimit(max_tokens, getattr(lm, "max_new_tokens", None))
            raise explain_refusals() or limit.make_error(
                f"{len(finished)} of {len(finished) + unfinished} texts ended within {limit.name}"
                f"{f' and passed the {refuser}' if refuser else ''}; {n} were requested",
                f"See which texts the {refuser} refuses, or {limit.cure}."
                if refuser
                else f'{limit.cure.capitalize()}, or use sampler="masked", which closes a text before the limit.',
            )
        more, failed = attempt(lm, max_tokens, n - len(finished))
        if not more and not failed:
            break
        finished, unfinished = finished + more, unfinished + failed
    return finished, unfinished
