"""Masked sampling of texts for several prompts as one batch: requests to the scheduler, and texts drawn again.

`draw_texts` is a generator that yields requests and is sent their finished runs, so that the same code serves callers
that step the scheduler themselves, wait for another thread, or await it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..base.errors import LimitError
from ..decoding.outcomes import Outcome, Piece
from ..decoding.request_run import RequestRun
from ..decoding.requests import GenerationRequest
from ..decoding.token_choice import TokenChoice
from ..engine.constraint import Constraint
from ..vocabulary.vocabulary import Vocabulary
from .draft_plan import FORCED_TEXT, DraftPlan

__all__ = ["ATTEMPTS", "BatchPrompt", "DrawnTexts", "TextListener", "draw_texts", "spawn_generators"]

ATTEMPTS = 64
"""Maximum number of unfinished texts per requested text before `generate` gives up."""

TextListener = Callable[[int, int, Piece], None]
"""Called with the number of a prompt, of its sample, and a Piece."""


@dataclass(frozen=True)
class BatchPrompt:
    """One prompt of a batch: its token ids, its constraint (None: unconstrained), the source of its seeds, and how its
    texts are drafted.
    """

    prompt: Sequence[int]
    constraint: Constraint | None
    max_tokens: int
    seed: np.random.SeedSequence
    drafts: DraftPlan = FORCED_TEXT


@dataclass
class DrawnTexts:
    """The texts of one prompt.

    outcomes: those that have ended, in the order of their samples. unfinished: how many did not end, and were drawn
    again. error: the first error of a text.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    unfinished: int = 0
    error: BaseException | None = None


def draw_texts(
    vocabulary: Vocabulary,
    prompts: Sequence[BatchPrompt],
    count: int,
    choice: TokenChoice,
    listener: TextListener | None = None,
) -> Generator[list[GenerationRequest], list[RequestRun], list[DrawnTexts]]:
    """Draw `count` texts for each prompt. Yields requests, and is sent their runs; returns the texts of each prompt.

    A text under a constraint that did not end (because the vocabulary cannot spell a completion) is drawn again, unless
    there is a listener, which has seen it already.
    """
    generators = [spawn_generators(one.seed) for one in prompts]
    drawn = [DrawnTexts() for _ in prompts]
    missing = [number for number in range(len(prompts)) if count]
    while missing:
        requests = [
            GenerationRequest(
                vocabulary, [next(generators[number]) for _ in range(count - len(drawn[number].outcomes))],
                prompts[number].prompt, prompts[number].constraint, prompts[number].max_tokens, choice,
                None if listener is None else bind_listener(listener, number),
                prompts[number].drafts.start_request(prompts[number].prompt, choice.proposal, prompts[number].seed),
            )
            for number in missing
        ]  # fmt: skip
        for number, run in zip(missing, (yield requests)):
            take_run(drawn[number], run, prompts[number], listener is not None, count)
        missing = [number for number in missing if drawn[number].error is None and len(drawn[number].outcomes) < count]
    return drawn


def bind_listener(listener: TextListener, number: int) -> Callable[[int, Piece], None]:
    """Return a listener to one prompt of a batch."""
    return lambda sample, piece: listener(number, sample, piece)


def take_run(drawn: DrawnTexts, run: RequestRun, prompt: BatchPrompt, was_heard: bool, count: int) -> None:
    """Add the texts of a run that have ended; note an error."""
    outcomes = [outcome for outcome in run.outcomes if outcome is not None]
    cut = [one for one in outcomes if one.finish_reason == "length" and prompt.constraint is not None]
    drawn.outcomes += [one for one in outcomes if one.finish_reason != "length" or prompt.constraint is None]
    drawn.unfinished += len(cut)
    drawn.error = run.error
    if drawn.error is None and cut and was_heard:
        drawn.error = LimitError(
            f"a text that was streamed did not end within max_tokens = {prompt.max_tokens}", hint="Raise max_tokens."
        )
    if drawn.error is None and len(drawn.outcomes) < count and drawn.unfinished >= ATTEMPTS * count:
        drawn.error = LimitError(
            f"{len(drawn.outcomes)} of {len(drawn.outcomes) + drawn.unfinished} texts ended within max_tokens = "
            f"{prompt.max_tokens}; {count} were requested",
            hint='Raise max_tokens, or use sampler="masked", which closes a text before the limit.',
        )


def spawn_generators(seed: int | np.random.SeedSequence | None) -> Iterator[np.random.Generator]:
    """Yield independent random generators without end; the first is the one that n = 1 uses."""
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    yield np.random.default_rng(root)
    while True:
        yield np.random.default_rng(root.spawn(1)[0])
