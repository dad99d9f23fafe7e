"""The generation loop: generate one text, token by token, under a Constraint and within a token budget.

    until an end token:  log-probabilities  ->  mask  ->  sample  ->  advance  ->  check that a completion still fits

*Forced tokens*: where the constraint forces the text, the tokens that spell it are sent to the model ahead of time, as
a draft, in one call. Each position is still sampled from the model's own row, and the rest of the draft is discarded at
the first token that differs. The distribution is therefore exactly that of one call per token, whichever tokenisation
of the forced text the model prefers.

*The budget*: a token after which no completion fits in the remaining tokens is rejected (see `token_budget`). After a
few rejections the known completion is written out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..sampling.core.language_model import LanguageModel, rows_after
from ..sampling.core.masked_sampling import PLAIN, Pick, Proposal, allowed_tokens, pick_token
from .stop_strings import StopTracker
from .token_budget import Closing

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["Outcome", "Piece", "Stats", "generate_text"]

DRAFT = 64
"""Maximum draft length; a row of a 128k vocabulary takes 1 MB. After a draft was discarded, the next one is at most
twice as long as its accepted part, since the rest is wasted work; each draft that is not discarded doubles this
limit."""
TRIES = 8
"""Maximum number of tokens tried at one step when the budget is tight, before the known completion is written out."""

FinishReason = Literal["complete", "budget", "length", "stop"]


@dataclass(frozen=True, slots=True)
class Piece:
    """One streamed token.

    Attributes
    ----------
    token : int
    text : str
        The complete characters that the token adds; an incomplete one is delayed until a later token completes it, and
        so is what may be the beginning of a stop string.
    logprob, logmass : float
        As in `Pick`, in nats.
    origin : {"drawn", "forced", "closing"}
        Sampled by itself, sampled as predicted by a draft of forced text, or written to close the text.
    """

    token: int
    text: str
    logprob: float
    logmass: float
    origin: Literal["drawn", "forced", "closing"]


@dataclass(slots=True)
class Stats:
    """The cost of a text. Times are in microseconds: means per token, or totals where the name says so.

    tokens: number of tokens, end token included. model_calls: calls of `next_logprobs`. forced_tokens: tokens accepted
    from drafts, which need no separate call. closing_tokens: tokens written to close the text in time.
    refused_for_budget: sampled tokens that were rejected because no completion would have fitted. log_mass: sum over
    steps of the log of the allowed probability mass (nats), a measure of how much the constraint changed the model's
    choices.

    For all texts of a call together: sampler, and the reason if "auto" chose it; counts: counters of samplers other
    than "masked", by their own names; weights: statistics of the log-weights, see
    `sampling.core.weight_statistics.weight_stats` (log_z, both divergences from p given the constraint, ess, trusted
    ...).
    """

    tokens: int = 0
    model_calls: int = 0
    forced_tokens: int = 0
    closing_tokens: int = 0
    refused_for_budget: int = 0
    log_mass: float = 0.0
    mask_us: float = 0.0
    advance_us: float = 0.0
    model_us_total: float = 0.0
    compile_us: float = 0.0
    total_us: float = 0.0
    counts: dict[str, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    sampler: str = "masked"
    reason: str = ""


@dataclass(slots=True)
class Outcome:
    """A finished text.

    tokens: without the end token; data: the bytes of the text, special tokens by name. logprob, log_weight: end token
    included, in nats. stop: the stop string that ended the text; its tokens are among `tokens`, it is not in `data`.

    finish_reason: "complete": the model ended the text. "budget": the budget changed the text, so it is valid but not a
    sample from the model's distribution, and log_weight covers only the tokens that were chosen. "length": the text was
    cut off and is incomplete; this happens only if the vocabulary lacks tokens for some bytes, so that no completion
    could be spelled. "stop": a stop string ended the text (see `stop_strings`).
    """

    tokens: list[int] = field(default_factory=list)
    data: bytes = b""
    logprob: float = 0.0
    log_weight: float = 0.0
    finish_reason: FinishReason = "complete"
    stats: Stats = field(default_factory=Stats)
    stop: str | None = None


def generate_text(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    rng: np.random.Generator,
    max_tokens: int,
    proposal: Proposal = PLAIN,
    stop: tuple[str, ...] = (),
    stream: Callable[[Piece], None] | None = None,
) -> Outcome:
    """Generate one text of `constraint` by masked sampling from `lm`.

    Parameters
    ----------
    lm : LanguageModel
        The model, after its prompt.
    constraint : Constraint
        What the text must satisfy.
    rng : numpy.random.Generator
        The only source of randomness.
    max_tokens : int
        Maximum number of tokens, end token included.
    proposal : Proposal
        How a token is chosen among the allowed ones.
    stop : tuple of str
        Strings that end the text where the constraint accepts what is before them, see `stop_strings`.
    stream : callable, optional
        Called with each `Piece` as it is generated.

    Returns
    -------
    Outcome
        A complete text, unless its finish_reason is "length".

    Raises
    ------
    LimitError
        Before anything is sampled, if the shortest text does not fit in max_tokens.
    """
    return GenerationLoop(lm, constraint, rng, max_tokens, proposal, stop, stream).run()


class GenerationLoop:
    """The state of one run: the Matcher, a completion, the draft with its rows, and the Outcome so far."""

    def __init__(
        self,
        lm: LanguageModel,
        constraint: Constraint,
        rng: np.random.Generator,
        max_tokens: int,
        proposal: Proposal,
        stop: tuple[str, ...],
        stream: Callable[[Piece], None] | None,
    ) -> None:
        self.lm, self.rng, self.proposal = lm, rng, proposal
        self.vocabulary = constraint.vocabulary
        self.ends = self.vocabulary.eos_ids
        self.matcher: Matcher = constraint.matcher()
        self.max_tokens = max_tokens
        self.closing = Closing(self.vocabulary, self.matcher, max_tokens)
        self.out = Outcome()
        self.stops = StopTracker(stop, self.vocabulary) if stop else None
        self.emit = Emitter(self.out, self.vocabulary, stream, self.stops, self.matcher)
        self.draft: list[int] = []
        self.draft_limit, self.accepted = DRAFT, 0
        self.rows: list[NDArray[np.floating[Any]]] = []
        self.mask_ns = self.advance_ns = self.model_ns = self.masks = 0

    def run(self) -> Outcome:
        """Sample tokens until an end token, or until the text has to be closed. Return the Outcome."""
        start = perf_counter_ns()
        while True:
            row, drafted = self.next_row()
            choice = self.choose(row)
            if choice is None:
                self.close()
                break
            self.count(choice)
            if choice.token in self.ends:
                break
            origin: Literal["drawn", "forced"] = "drawn"
            if choice.token == drafted:
                origin, self.accepted = "forced", self.accepted + 1
                self.out.stats.forced_tokens += 1
            elif drafted is not None:
                self.draft, self.rows, self.draft_limit = [], [], max(1, 2 * self.accepted)
            self.out.tokens.append(choice.token)
            stopped = self.is_stopped(choice.token)
            self.emit(choice.token, choice.logprob, choice.logmass, origin)
            if stopped:
                break
        self.finish(perf_counter_ns() - start)
        return self.out

    def next_row(self) -> tuple[NDArray[np.floating[Any]], int | None]:
        """Return the model's row for the next token and the draft's token there, or None. Make a new draft if the last
        is used up.
        """
        if not self.rows:
            remaining = self.max_tokens - len(self.out.tokens)
            self.draft = self.matcher.forced_tokens()[: min(self.draft_limit, remaining - 1)]
            self.rows, self.accepted, self.draft_limit = self.ask(self.draft), 0, min(DRAFT, 2 * self.draft_limit)
        row = self.rows.pop(0)
        return row, self.draft.pop(0) if self.draft else None

    def ask(self, ahead: list[int]) -> list[NDArray[np.floating[Any]]]:
        """Return the rows after the text so far and after each token of `ahead`, with one call of the model."""
        start = perf_counter_ns()
        prefixes = [self.out.tokens + ahead[:k] for k in range(len(ahead) + 1)]
        rows = list(rows_after(self.lm, prefixes, self.vocabulary.size))
        self.model_ns += perf_counter_ns() - start
        self.out.stats.model_calls += 1
        return rows

    def choose(self, row: NDArray[np.floating[Any]]) -> Pick | None:
        """Sample a token and advance the Matcher with it. Return None if the text has to be closed now."""
        start = perf_counter_ns()
        mask = self.matcher.mask(None)
        self.mask_ns, self.masks = self.mask_ns + perf_counter_ns() - start, self.masks + 1
        allowed = allowed_tokens(mask)
        remaining = self.max_tokens - len(self.out.tokens)
        if remaining == 1 and not np.isin(allowed, self.ends).all():
            allowed = allowed[np.isin(allowed, self.ends)]
            self.out.finish_reason = "budget"
        for _ in range(TRIES):
            if not len(allowed):
                break
            choice = pick_token(row, allowed, self.rng, self.proposal, self.ends)
            if choice.token in self.ends:
                return choice
            start = perf_counter_ns()
            self.matcher.advance(choice.token)
            self.advance_ns += perf_counter_ns() - start
            if self.closing.follow(self.matcher, choice.token, remaining - 1):
                return choice
            self.matcher.rollback(1)
            allowed = allowed[allowed != choice.token]
            if not self.closing.lost:  # else no completion exists at all: the mask was too permissive
                self.out.stats.refused_for_budget += 1
                self.out.finish_reason = "budget"
        return None

    def count(self, choice: Pick) -> None:
        """Add the log-probabilities of a chosen token to the sums."""
        self.out.logprob += choice.logprob
        self.out.log_weight += choice.logprob - choice.logproposal
        self.out.stats.log_mass += choice.logmass

    def is_stopped(self, token: int) -> bool:
        """Return whether a stop string ends the text in this token, which the Matcher has taken."""
        if self.stops is None or not self.stops.advance(token, self.matcher):
            return False
        assert self.stops.match is not None
        self.out.stop = self.stops.match.stop
        if self.out.finish_reason == "complete":
            self.out.finish_reason = "stop"
        return True

    def close(self) -> None:
        """Write out the known completion and an end token, whatever their probability; without a completion, stop."""
        if self.closing.data is None:
            self.out.finish_reason = "length"
            return
        self.out.finish_reason = "budget"
        left: list[int | None] = [*self.closing.tokens(), None]
        while left:
            now, left = left[:DRAFT], left[DRAFT:]
            for row, token in zip(self.ask([one for one in now[: DRAFT - 1] if one is not None]), now):
                if self.write(row, token):
                    return

    def write(self, row: NDArray[np.floating[Any]], token: int | None) -> bool:
        """Append a token that was not sampled; None means the end token. Return whether a stop string ends the text."""
        logprob = float(np.logaddexp.reduce(row[list(self.ends) if token is None else [token]]))
        self.count(Pick(-1, logprob, 0.0, 0.0))
        if token is None:
            return False
        self.matcher.advance(token)
        self.out.tokens.append(token)
        self.out.stats.closing_tokens += 1
        stopped = self.is_stopped(token)
        self.emit(token, logprob, 0.0, "closing")
        return stopped

    def finish(self, total_ns: int) -> None:
        """Set the bytes of the text and the statistics."""
        out, stats = self.out, self.out.stats
        out.data = self.vocabulary.transcript(out.tokens)
        if self.stops is not None:
            out.data = self.stops.cut(out.data)
        self.emit.flush()
        stats.tokens = len(out.tokens) + (out.finish_reason != "length" and out.stop is None)
        stats.mask_us = self.mask_ns / max(self.masks, 1) / 1e3
        stats.advance_us = self.advance_ns / max(self.masks, 1) / 1e3
        stats.model_us_total, stats.total_us = self.model_ns / 1e3, total_ns / 1e3


class Emitter:
    """Streams tokens as text, delaying the bytes of incomplete characters and those that may begin a stop string."""

    def __init__(
        self,
        out: Outcome,
        vocabulary: Vocabulary,
        stream: Callable[[Piece], None] | None,
        stops: StopTracker | None,
        matcher: Matcher,
    ) -> None:
        from codecs import getincrementaldecoder

        self.vocabulary, self.stream, self.out, self.stops, self.matcher = vocabulary, stream, out, stops, matcher
        self.decoder = getincrementaldecoder("utf-8")("replace")

    def __call__(
        self, token: int, logprob: float, logmass: float, origin: Literal["drawn", "forced", "closing"]
    ) -> None:
        if self.stream is not None:
            stops = self.stops
            data = self.vocabulary.transcript((token,)) if stops is None else stops.release(self.matcher)
            text = self.decoder.decode(data)
            self.stream(Piece(token, text, logprob, logmass, origin))

    def flush(self) -> None:
        """Emit the delayed bytes at the end of the text: of what did not become a stop string, or of incomplete
        characters, which only a constraint on bytes rather than characters can leave.
        """
        rest = b"" if self.stops is None else self.stops.release_rest()
        if self.stream is not None and (delayed := self.decoder.decode(rest, True)):
            last = self.out.tokens[-1]
            self.stream(Piece(last, delayed, 0.0, 0.0, "closing"))
