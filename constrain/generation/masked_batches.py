"""Masked sampling of texts for several prompts as one batch: requests to the scheduler, and texts drawn again.

`BatchDrawing` and `PromptDrawing` plan requests and take what has ended, so that the same code serves callers that step
the scheduler themselves, wait for another thread, await it, or take text after text as they end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..base.errors import Refusal
from ..captures.capture_program import CaptureProgram
from ..checking.checked_sampling import TokenCheck
from ..decoding.outcomes import Outcome, Piece
from ..decoding.request_run import RequestRun
from ..decoding.requests import GenerationRequest, PieceListener
from ..decoding.token_choice import TokenChoice
from ..engine.constraint import Constraint
from ..engine.length_limits import TokenLimit
from ..speculation.draft_source import DraftSource
from ..vocabulary.vocabulary import Vocabulary
from .answer_source import AnswerSource
from .draft_plan import FORCED_TEXT, DraftPlan
from .drawn_texts import DrawnTexts, WantedText, take_outcome
from .generation_arguments import Check, ConstraintRequest
from .refused_texts import accept_text

__all__ = [
    "ATTEMPTS",
    "BatchDrawing",
    "BatchPart",
    "BatchPrompt",
    "EncodedPrompt",
    "PromptDrawing",
    "TextListener",
    "spawn_generators",
]

ATTEMPTS = 64
"""Maximum number of unfinished texts per requested text before `generate` gives up."""

UNFINISHED = {
    "length": "the text did not end within {limit}",
    "dead_end": "no further token of the text passed the check",
}
"""Why a text under a constraint did not end, by its finish_reason."""

TextListener = Callable[[Piece], None]
"""Called with each Piece of the texts, in the thread that steps the scheduler."""


class EncodedPrompt(NamedTuple):
    """A prompt as token ids. max_tokens: most tokens of a text after it. positions_left: as that of
    `GenerationRequest`.
    """

    ids: Sequence[int]
    max_tokens: int
    positions_left: int | None


@dataclass(frozen=True)
class BatchPrompt:
    """One prompt of a batch: its token ids, its constraint (None: unconstrained), and the source of its seeds.

    request, check, retries: what makes a value of a text, what else it must satisfy, and how often it is drawn again if
    it does not. token_check: what its tokens must pass while it is drawn. prompt_after: the prompt after refusals, if
    it is to contain them. prefix: as that of `GenerationRequest`. captures: finds the captures of a text. drafts: how
    its texts are drafted. source: where its texts come from, for `Generation.explain`. positions_left: as that of
    `GenerationRequest`.
    """

    prompt: Sequence[int]
    constraint: Constraint | None
    max_tokens: int
    seed: np.random.SeedSequence
    request: ConstraintRequest | None = field(default=None, kw_only=True)
    check: Check | None = field(default=None, kw_only=True)
    token_check: TokenCheck | None = field(default=None, kw_only=True)
    retries: int = field(default=0, kw_only=True)
    prompt_after: Callable[[tuple[Refusal, ...]], EncodedPrompt] | None = field(default=None, kw_only=True)
    prefix: bytes = field(default=b"", kw_only=True)
    captures: CaptureProgram | None = field(default=None, kw_only=True)
    drafts: DraftPlan = field(default=FORCED_TEXT, kw_only=True)
    source: AnswerSource | None = field(default=None, kw_only=True)
    positions_left: int | None = field(default=None, kw_only=True)

    def avoid_prefixes(self, dead: set[tuple[int, ...]]) -> TokenCheck | None:
        """Return the check of its tokens, which also rejects those that lead to dead prefixes."""
        return None if self.token_check is None else replace(self.token_check, dead=frozenset(dead))

    def start_drafts(self, ids: Sequence[int], choice: TokenChoice) -> Callable[[], DraftSource]:
        """Return a function that makes the draft source of a text after the prompt `ids`."""
        return self.drafts.start_request(ids, choice.proposal, self.seed)


@dataclass(frozen=True)
class BatchPart:
    """Texts of one prompt that are drawn by one request.

    texts: their numbers. request: what is asked of the scheduler.
    """

    texts: Sequence[int]
    request: GenerationRequest


class PromptDrawing:
    """Draws texts of one prompt in rounds: first all of them, then those again that were refused or did not end.

    A text that is refused is drawn again, see `drawn_texts`. So is a text under a constraint that did not end (because
    the vocabulary cannot spell a completion, or a check accepts none or no token). The listener is told of the new text
    by the `attempt` of its Pieces.

    Attributes
    ----------
    number : int
        That of the prompt.
    texts : DrawnTexts
        The texts so far.
    """

    def __init__(
        self, vocabulary: Vocabulary, number: int, prompt: BatchPrompt, count: int, choice: TokenChoice,
        listener: TextListener | None = None,
    ) -> None:  # fmt: skip
        self.vocabulary, self.number, self.prompt, self.choice = vocabulary, number, prompt, choice
        self.listener, self.limit = listener, TokenLimit(prompt.max_tokens, prompt.positions_left)
        self.generators = spawn_generators(prompt.seed)
        self.texts = DrawnTexts([WantedText() for _ in range(count)])

    def plan_round(self) -> list[BatchPart]:
        """Return the requests that draw the missing texts: one, and one for each text with another prompt. None if all
        are drawn, or too many did not end, which is then their error.
        """
        self.give_up_unfinished()
        missing, prompt = self.texts.list_missing(), self.prompt
        alone = [one for one in missing if prompt.prompt_after is not None and self.texts.wanted[one].refusals]
        together = [one for one in missing if one not in alone]
        known = EncodedPrompt(prompt.prompt, prompt.max_tokens, prompt.positions_left)
        parts = [self.make_part(together, known)] if together else []
        for one in alone:
            assert prompt.prompt_after is not None
            parts.append(self.make_part([one], prompt.prompt_after(self.texts.wanted[one].refusals)))
        return parts

    def make_part(self, texts: Sequence[int], encoded: EncodedPrompt) -> BatchPart:
        """Return the request that draws texts after a prompt."""
        prompt, (ids, max_tokens, positions_left) = self.prompt, encoded
        request = GenerationRequest(
            self.vocabulary, [next(self.generators) for _ in texts], ids, prompt.constraint, max_tokens, self.choice,
            None if self.listener is None else self.bind_listener(self.listener, texts),
            draft_source=prompt.start_drafts(ids, self.choice), prefix=prompt.prefix,
            check=prompt.avoid_prefixes(self.texts.dead), positions_left=positions_left,
        )  # fmt: skip
        return BatchPart(texts, request)

    def bind_listener(self, listener: TextListener, texts: Sequence[int]) -> PieceListener:
        """Return the listener to one request, which completes its Pieces by what is known here only."""
        attempts = [self.texts.wanted[text].attempt for text in texts]

        def listen(sample: int, piece: Piece) -> None:
            listener(replace(piece, prompt=self.number, sample=texts[sample], attempt=attempts[sample]))

        return listen

    def take_run(self, part: BatchPart, run: RequestRun) -> None:
        """Take the texts of a run; after an error no further ones, which then need not be checked."""
        for sample, error in enumerate(run.errors):
            if error is not None:
                self.take_end(part.texts[sample], None, error)
        for sample, outcome in enumerate(run.outcomes):
            if outcome is not None and self.texts.error is None:
                self.take_end(part.texts[sample], outcome)

    def take_end(self, text: int, outcome: Outcome | None, error: BaseException | None = None) -> str:
        """Accept or refuse the text of this number, which has ended, or note its error.

        Returns why it is to be drawn again; "" if it is not. Calls the checks of the user.
        """
        wanted, prompt = self.texts.wanted[text], self.prompt
        if outcome is None:
            wanted.error = error
        elif outcome.finish_reason in UNFINISHED and prompt.constraint is not None:
            wanted.unfinished += 1
            self.texts.unfinished += 1
            if outcome.finish_reason == "dead_end":
                self.texts.dead.add(tuple(outcome.tokens))
            return UNFINISHED[outcome.finish_reason].format(limit=self.limit.name)
        else:
            take_outcome(
                self.texts, text, outcome,
                lambda one: accept_text(
                    one, prompt.request, prompt.check, self.vocabulary, prompt.captures, prompt.source
                ),
                prompt.retries,
            )  # fmt: skip
        return wanted.refusals[-1].reason if wanted.is_missing else ""

    def give_up_unfinished(self) -> None:
        """Note an error of the missing texts if too many texts did not end."""
        texts, count = self.texts, len(self.texts.wanted)
        missing, ended = texts.list_missing(), len(texts.outcomes)
        if missing and texts.unfinished >= ATTEMPTS * count:
            error = self.limit.make_error(
                f"{ended} of {ended + texts.unfinished} texts ended within {self.limit.name}; {count} were requested",
                explain_unfinished(texts, self.limit),
            )
            for number in missing:
                texts.wanted[number].error = error


class BatchDrawing:
    """Draws texts of several prompts, in rounds of all together.

    Parameters
    ----------
    vocabulary, prompts, count, choice
        What is drawn: `count` texts for each prompt.
    listener : callable, optional
        Receives the Pieces of all texts as they are generated.
    """

    def __init__(
        self, vocabulary: Vocabulary, prompts: Sequence[BatchPrompt], count: int, choice: TokenChoice,
        listener: TextListener | None = None,
    ) -> None:  # fmt: skip
        self.drawings = [
            PromptDrawing(vocabulary, number, prompt, count, choice, listener) for number, prompt in enumerate(prompts)
        ]
        self.parts: list[tuple[PromptDrawing, BatchPart]] = []

    def plan_round(self) -> list[GenerationRequest]:
        """Return the requests of the next round; none for a prompt that has an error."""
        going_on = [drawing for drawing in self.drawings if drawing.texts.error is None]
        self.parts = [(drawing, part) for drawing in going_on for part in drawing.plan_round()]
        return [part.request for _, part in self.parts]

    def take_runs(self, runs: Sequence[RequestRun]) -> None:
        """Take the finished runs of a round."""
        for (drawing, part), run in zip(self.parts, runs):
            drawing.take_run(part, run)

    @property
    def texts(self) -> list[DrawnTexts]:
        """The texts of each prompt."""
        return [drawing.texts for drawing in self.drawings]


def explain_unfinished(drawn: DrawnTexts, limit: TokenLimit) -> str:
    """Return why texts did not end."""
    if drawn.dead:
        longest = max(map(len, drawn.dead))
        return f"After {len(drawn.dead)} different beginnings of up to {longest} tokens, the check passed no token."
    return f"No completion within it is known that the check accepts and the vocabulary can spell: {limit.cure}."


def spawn_generators(seed: int | np.random.SeedSequence | None) -> Iterator[np.random.Generator]:
    """Yield independent random generators without end; the first is the one that n = 1 uses."""
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    yield np.random.default_rng(root)
    while True:
        yield np.random.default_rng(root.spawn(1)[0])
