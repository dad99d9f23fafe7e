"""Masked sampling of texts for several prompts as one batch: requests to the scheduler, and texts drawn again.

`draw_texts` is a generator that yields requests and is sent their finished runs, so that the same code serves callers
that step the scheduler themselves, wait for another thread, or await it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..base.errors import LimitError, Refusal
from ..captures.capture_program import CaptureProgram
from ..checking.checked_sampling import TokenCheck
from ..decoding.outcomes import Piece
from ..decoding.request_run import RequestRun
from ..decoding.requests import GenerationRequest
from ..decoding.token_choice import TokenChoice
from ..engine.constraint import Constraint
from ..speculation.draft_source import DraftSource
from ..vocabulary.vocabulary import Vocabulary
from .draft_plan import FORCED_TEXT, DraftPlan
from .drawn_texts import DrawnTexts, WantedText, take_outcome
from .generation_arguments import Check, ConstraintRequest
from .refused_texts import accept_text

__all__ = ["ATTEMPTS", "BatchPrompt", "TextListener", "draw_texts", "spawn_generators"]

ATTEMPTS = 64
"""Maximum number of unfinished texts per requested text before `generate` gives up."""

UNFINISHED = ("length", "dead_end")
"""Why a text under a constraint did not end."""

TextListener = Callable[[int, int, Piece], None]
"""Called with the number of a prompt, of its sample, and a Piece."""


@dataclass(frozen=True)
class BatchPrompt:
    """One prompt of a batch: its token ids, its constraint (None: unconstrained), and the source of its seeds.

    request, check, retries: what makes a value of a text, what else it must satisfy, and how often it is drawn again if
    it does not. token_check: what its tokens must pass while it is drawn. prompt_after: the prompt after refusals, if
    it is to contain them. prefix: as that of `GenerationRequest`. captures: finds the captures of a text. drafts: how
    its texts are drafted.
    """

    prompt: Sequence[int]
    constraint: Constraint | None
    max_tokens: int
    seed: np.random.SeedSequence
    request: ConstraintRequest | None = field(default=None, kw_only=True)
    check: Check | None = field(default=None, kw_only=True)
    token_check: TokenCheck | None = field(default=None, kw_only=True)
    retries: int = field(default=0, kw_only=True)
    prompt_after: Callable[[tuple[Refusal, ...]], tuple[Sequence[int], int]] | None = field(default=None, kw_only=True)
    prefix: bytes = field(default=b"", kw_only=True)
    captures: CaptureProgram | None = field(default=None, kw_only=True)
    drafts: DraftPlan = field(default=FORCED_TEXT, kw_only=True)

    def avoid_prefixes(self, dead: set[tuple[int, ...]]) -> TokenCheck | None:
        """Return the check of its tokens, which also rejects those that lead to dead prefixes."""
        return None if self.token_check is None else replace(self.token_check, dead=frozenset(dead))

    def start_drafts(self, ids: Sequence[int], choice: TokenChoice) -> Callable[[], DraftSource]:
        """Return a function that makes the draft source of a text after the prompt `ids`."""
        return self.drafts.start_request(ids, choice.proposal, self.seed)


@dataclass(frozen=True)
class BatchPart:
    """Texts of one prompt that are drawn by one request. texts: their numbers. ids, max_tokens: of the request."""

    number: int
    texts: Sequence[int]
    ids: Sequence[int]
    max_tokens: int


def draw_texts(
    vocabulary: Vocabulary,
    prompts: Sequence[BatchPrompt],
    count: int,
    choice: TokenChoice,
    listener: TextListener | None = None,
) -> Generator[list[GenerationRequest], list[RequestRun], list[DrawnTexts]]:
    """Draw `count` texts for each prompt. Yields requests, and is sent their runs; returns the texts of each prompt.

    A text that is refused is drawn again, see `drawn_texts`. So is a text under a constraint that did not end (because
    the vocabulary cannot spell a completion, or a check accepts none or no token). The listener is told of the new text
    by the `attempt` of its Pieces.
    """
    generators = [spawn_generators(one.seed) for one in prompts]
    drawn = [DrawnTexts([WantedText() for _ in range(count)]) for _ in prompts]
    while True:
        parts = [part for number, texts in enumerate(drawn) for part in divide_missing(number, prompts[number], texts)]
        if not parts:
            return drawn
        requests = [
            GenerationRequest(
                vocabulary, [next(generators[part.number]) for _ in part.texts], part.ids,
                prompts[part.number].constraint, part.max_tokens, choice,
                None if listener is None else bind_listener(listener, part, drawn[part.number]),
                draft_source=prompts[part.number].start_drafts(part.ids, choice), prefix=prompts[part.number].prefix,
                check=prompts[part.number].avoid_prefixes(drawn[part.number].dead),
            )
            for part in parts
        ]  # fmt: skip
        for part, run in zip(parts, (yield requests)):
            take_run(drawn[part.number], run, part, prompts[part.number], vocabulary)


def divide_missing(number: int, prompt: BatchPrompt, texts: DrawnTexts) -> list[BatchPart]:
    """Return the requests that draw the missing texts of a prompt: one, and one for each text with another prompt."""
    missing = texts.list_missing()
    alone = [one for one in missing if prompt.prompt_after is not None and texts.wanted[one].refusals]
    together = [one for one in missing if one not in alone]
    parts = [BatchPart(number, together, prompt.prompt, prompt.max_tokens)] if together else []
    for one in alone:
        assert prompt.prompt_after is not None
        parts.append(BatchPart(number, [one], *prompt.prompt_after(texts.wanted[one].refusals)))
    return parts


def bind_listener(listener: TextListener, part: BatchPart, drawn: DrawnTexts) -> Callable[[int, Piece], None]:
    """Return a listener to one request of a batch."""
    attempts = [drawn.wanted[text].attempt for text in part.texts]

    def listen(sample: int, piece: Piece) -> None:
        attempt = attempts[sample]
        listener(part.number, part.texts[sample], replace(piece, attempt=attempt) if attempt else piece)

    return listen


def take_run(drawn: DrawnTexts, run: RequestRun, part: BatchPart, prompt: BatchPrompt, vocabulary: Vocabulary) -> None:
    """Accept or refuse the texts of a run that have ended; note an error."""
    drawn.error, cut = run.error or drawn.error, 0
    for text, outcome in zip(part.texts, run.outcomes):
        if outcome is not None and outcome.finish_reason in UNFINISHED and prompt.constraint is not None:
            cut += 1
            drawn.wanted[text].unfinished += 1
            if outcome.finish_reason == "dead_end":
                drawn.dead.add(tuple(outcome.tokens))
        elif outcome is not None and drawn.error is None:
            take_outcome(
                drawn, text, outcome,
                lambda one: accept_text(one, prompt.request, prompt.check, vocabulary, prompt.captures),
                prompt.retries,
            )  # fmt: skip
    drawn.unfinished += cut
    count, ended = len(drawn.wanted), len(drawn.outcomes)
    if drawn.error is None and ended < count and drawn.unfinished >= ATTEMPTS * count:
        drawn.error = LimitError(
            f"{ended} of {ended + drawn.unfinished} texts ended within max_tokens = "
            f"{part.max_tokens}; {count} were requested",
            hint=explain_unfinished(drawn, part.max_tokens),
        )


def explain_unfinished(drawn: DrawnTexts, max_tokens: int) -> str:
    """Return why texts did not end."""
    if drawn.dead:
        longest = max(map(len, drawn.dead))
        return f"After {len(drawn.dead)} different beginnings of up to {longest} tokens, the check passed no token."
    return "No completion within it is known that the check accepts and the vocabulary can spell: raise max_tokens."


def spawn_generators(seed: int | np.random.SeedSequence | None) -> Iterator[np.random.Generator]:
    """Yield independent random generators without end; the first is the one that n = 1 uses."""
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    yield np.random.default_rng(root)
    while True:
        yield np.random.default_rng(root.spawn(1)[0])
