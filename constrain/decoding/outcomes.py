"""What the decoding loop reports of a text: streamed tokens, the finished text, and its cost."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .stop_strings import StopTracker

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["FinishReason", "Outcome", "Piece", "PieceEmitter", "Stats", "TokenOrigin", "ValueReader"]

FinishReason = Literal["complete", "budget", "length", "dead_end", "stop"]
TokenOrigin = Literal["drawn", "forced", "closing"]


class ValueReader(Protocol):
    """Reads the partial value of a text that is being generated. changes: a number that changes when the value does."""

    @property
    def changes(self) -> int: ...
    def read(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Piece:
    """One streamed token.

    Attributes
    ----------
    token : int
        Its id; -1 for delayed text that is emitted at the end, which adds no token.
    text : str
        The complete characters that the token adds; an incomplete one is delayed until a later token completes it, and
        so is what may be the beginning of a stop string.
    logprob, logmass : float
        As in `Pick`, in nats.
    origin : {"drawn", "forced", "closing"}
        Sampled by itself, sampled as predicted by a draft, or written to close the text.
    attempt : int
        How many texts were drawn for the same result before this one, and refused or not finished.
    prompt, sample : int
        The number of the prompt in its list, and of the sample of this prompt.
    reader : ValueReader, optional
        Reads the partial value of the text.
    """

    token: int
    text: str
    logprob: float
    logmass: float
    origin: TokenOrigin
    attempt: int = 0
    prompt: int = 0
    sample: int = 0
    reader: ValueReader | None = field(default=None, repr=False, compare=False)

    @property
    def partial(self) -> Any:
        """The value of the text so far: plain JSON for a schema, an instance of `partial_model` of a type, the text
        itself for other constraints; None if no value has begun.

        It is computed when it is read, from the text up to the latest Piece, and does not change afterwards.
        """
        return None if self.reader is None else self.reader.read()


@dataclass(slots=True)
class Stats:
    """The cost of a text. Times are in microseconds: means per token, or totals where the name says so.

    tokens: number of tokens, end token included. reused_tokens: number of tokens of the prompt that the model was not
    fed, because their keys and values were in the cache. model_calls: number of forward passes that the text took part
    in.
    forced_tokens: tokens accepted from drafts, or appended by forced runs, which need no separate pass. forced_logprob:
    log of the probability with which sampling would have chosen the tokens that forced runs appended, nan if they were
    not scored, see `forced_runs`. closing_tokens: tokens written to close the
    text in time. refused_for_budget: sampled tokens that were rejected because no completion would have fitted.
    log_mass: sum over steps of the log of the allowed probability mass (nats), a measure of how much the constraint
    changed the model's choices. model_us_total: duration of the passes that the text took part in, with other texts or
    alone.

    For all texts of a call together: sampler, and the reason if "auto" chose it; counts: counters of samplers other
    than "masked", by their own names; weights: statistics of the log-weights, see
    `sampling.core.weight_statistics.weight_stats` (log_z, both divergences from p given the constraint, ess, gap,
    trusted ...). group: texts of the same group depend on each other (`sampling.core.results.Draws.groups`); -1: on no
    other.
    """

    tokens: int = 0
    reused_tokens: int = 0
    model_calls: int = 0
    forced_tokens: int = 0
    forced_logprob: float = 0.0
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
    group: int = -1


@dataclass(slots=True)
class Outcome:
    """A finished text.

    tokens: without the end token; data: the bytes of the text, special tokens by name. logprob, log_weight: end token
    included, in nats. stop: the stop string that ended the text; its tokens are among `tokens`, it is not in `data`.
    skipped: number of bytes at the start of the tokens that are not in `data` (see `prompt_healing`).

    finish_reason: "complete": the model ended the text. "budget": the budget changed the text, so it is valid but not a
    sample from the model's distribution, and log_weight covers only the tokens that were chosen. "length": the text was
    cut off and is incomplete; this happens only without a constraint, or if the vocabulary lacks tokens for some bytes,
    so that no completion could be spelled, or with a checker that accepts none that is known. "dead_end": no token
    passed the checker; the text is incomplete. "stop": a stop string ended the text (see `stop_strings`).
    """

    tokens: list[int] = field(default_factory=list)
    data: bytes = b""
    logprob: float = 0.0
    log_weight: float = 0.0
    finish_reason: FinishReason = "complete"
    stats: Stats = field(default_factory=Stats)
    stop: str | None = None
    skipped: int = 0


class PieceEmitter:
    """Passes tokens to a listener as Pieces, delaying incomplete characters and what may begin a stop string.

    skipped: number of bytes at the start that are not part of the text.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        listener: Callable[[Piece], None] | None,
        stops: StopTracker | None,
        skipped: int = 0,
    ) -> None:
        self.vocabulary, self.listener, self.stops, self.skipped = vocabulary, listener, stops, skipped
        self.decoder = getincrementaldecoder("utf-8")("replace")

    def emit(self, token: int, logprob: float, logmass: float, origin: TokenOrigin, matcher: Matcher | None) -> None:
        """Emit one token, which `matcher` has taken."""
        if self.listener is not None:
            data = self.take_bytes(token) if self.stops is None else self.stops.release(matcher)
            self.listener(Piece(token, self.decoder.decode(data), logprob, logmass, origin))

    def take_bytes(self, token: int) -> bytes:
        """Return the bytes of a token that are part of the text."""
        data = self.vocabulary.transcript((token,))
        part = data[self.skipped :]
        self.skipped -= len(data) - len(part)
        return part

    def flush(self) -> None:
        """Emit the delayed bytes at the end of the text: of what did not become a stop string, or of incomplete
        characters, which only a constraint on bytes rather than characters, or a text that was cut off, can leave.
        """
        rest = b"" if self.stops is None else self.stops.release_rest()
        if self.listener is not None and (delayed := self.decoder.decode(rest, True)):
            self.listener(Piece(-1, delayed, 0.0, 0.0, "closing"))
