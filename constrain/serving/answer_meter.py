"""`AnswerMeter`: measures one answer while its events are read, for the metrics and the log."""

from __future__ import annotations

from time import monotonic
from typing import Any

from ..decoding.events import AnswerEvent, TextEvent
from ..generation.generation_result import Generation
from .request_record import RequestRecord
from .server_metrics import ServerMetrics

__all__ = ["AnswerMeter"]


class AnswerMeter:
    """The measurements of one answer.

    Parameters
    ----------
    metrics : ServerMetrics
    record : RequestRecord
        Of the request; receives the sums.
    prompt_tokens : int
        Tokens of its prompt.
    """

    def __init__(self, metrics: ServerMetrics, record: RequestRecord, prompt_tokens: int) -> None:
        self.metrics, self.record = metrics, record
        self.latest: dict[int, float] = {}
        self.unfinished: dict[int, int] = {}
        self.texts: list[Generation[Any]] = []
        record.prompt_tokens += prompt_tokens
        metrics.prompted.inc(prompt_tokens)

    def count_event(self, event: AnswerEvent) -> None:
        """Take an event of a stream."""
        if not isinstance(event, TextEvent):
            self.unfinished.pop(event.sample, None)
            if event.generation is not None:
                self.texts.append(event.generation)
        elif event.tokens:
            now, count = monotonic(), len(event.tokens)
            self.unfinished[event.sample] = self.unfinished.get(event.sample, 0) + count
            before = self.latest.get(event.sample)
            self.latest[event.sample] = now
            if before is not None:
                self.metrics.observe_intervals((now - before) / count, count)
            elif self.record.first_token_seconds is None:
                self.record.first_token_seconds = self.record.elapsed
                self.metrics.first_token.observe(self.record.elapsed)

    def count_texts(self, texts: list[Generation[Any]]) -> None:
        """Take the texts of an answer that was not streamed."""
        self.texts += texts

    def close(self) -> None:
        """Add everything to the metrics and the record, also after an error or a hang-up.

        Tokens of an answer that was abandoned count as far as its events were read.
        """
        metrics, record = self.metrics, self.record
        tokens = sum(text.stats.tokens for text in self.texts) + sum(self.unfinished.values())
        metrics.generated.inc(tokens)
        record.generated_tokens += tokens
        record.texts += len(self.texts)
        for text in self.texts if record.constraint else ():
            metrics.masking.observe(text.stats.mask_us / 1e6)
            record.mask_seconds += text.stats.mask_us * text.stats.tokens / 1e6
        if self.texts and record.constraint:
            record.compile_seconds = self.texts[0].stats.compile_us / 1e6
            metrics.compiling.observe(record.compile_seconds)
