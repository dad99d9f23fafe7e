"""`Operations`: what all requests of a server share: keys, places in the queue, metrics, the log, and the drain.

with operations.admit(call) as (options, meter):    429 if more texts wait than the server allows
    ...
operations.begin_drain()                 new requests are refused; running ones go on
operations.cut_tasks()                   running ones are cancelled
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..base.options import Limits
from ..decoding.scheduler import Scheduler
from .answer_call import AnswerCall
from .answer_meter import AnswerMeter
from .api_keys import ApiKeys
from .compile_pool import CompilePool
from .refused_work import RefusedWork
from .request_errors import RequestError
from .request_limits import digest_constraint
from .request_log import RequestLog
from .request_record import RequestRecord, current_record
from .server_metrics import ServerMetrics
from .server_settings import ServerSettings

__all__ = ["Operations"]

MOST_DRAFTING = 4
"""Most texts at a time whose forced text is drafted. Drafts change no text, see `constrain.speculation`."""


class Operations:
    """The operations of one server. Used by the thread of its event loop.

    Parameters
    ----------
    scheduler : Scheduler
        Of the Engine.
    settings : ServerSettings
    log : RequestLog
        Where the lines of requests go.
    """

    def __init__(self, scheduler: Scheduler, settings: ServerSettings, log: RequestLog) -> None:
        self.scheduler, self.settings, self.log = scheduler, settings, log
        self.keys = ApiKeys(settings.api_keys)
        self.metrics = ServerMetrics(scheduler, lambda: self.queued_texts)
        self.limits = Limits(work=settings.compile_work, state_cache_bytes=settings.state_cache_bytes)
        self.refused = RefusedWork()
        self.admitted = self.reading = 0
        self.active = 0
        self.is_draining = False
        self.tasks: set[asyncio.Task[None]] = set()
        most_texts = scheduler.slots + settings.max_queue  # each may have a job that waits; requests that are read, too
        self.pool = CompilePool(settings.compile_threads, settings.compile_threads + most_texts)

    @property
    def free_slots(self) -> int:
        """How many slots no text occupies."""
        return self.scheduler.slots - self.scheduler.used

    @property
    def queued_texts(self) -> int:
        """How many texts wait: for a slot, or while their request is read or their constraint compiled."""
        return max(0, self.admitted + self.reading - self.scheduler.used)

    @contextmanager
    def admit(self, call: AnswerCall) -> Iterator[tuple[dict[str, Any], AnswerMeter]]:
        """Occupy places for the texts of a call; yield its options with the limits of the server, and its meter.

        Raises
        ------
        RequestError
            With status 400 if the prompt or the constraint is too long, and with 429 if the texts would wait behind
            more texts than the server allows.
        """
        record = current_record() or RequestRecord("")
        record.constraint = digest_constraint(call.options, self.settings, call.pointer)
        most = self.settings.max_prompt_tokens
        if len(call.prompt) > most:
            raise RequestError(
                f"the prompt has {len(call.prompt):,} tokens, and this server allows at most {most:,}",
                hint="Its operator can raise the limit max_prompt_tokens.", code="limit_exceeded",
            )  # fmt: skip
        self.check_queue(call.count)
        self.admitted += call.count
        meter = AnswerMeter(self.metrics, record, len(call.prompt))
        try:
            yield {**call.options, "limits": self.limits, **self.choose_draft()}, meter
        finally:
            self.admitted -= call.count
            meter.close()

    def choose_draft(self) -> dict[str, str]:
        """Return options that turn drafts off where a batch is large: they save passes, but each takes longer."""
        return {"draft": "none"} if self.admitted > MOST_DRAFTING else {}

    @contextmanager
    def count_reading(self) -> Iterator[None]:
        """Count a request whose body is read in a thread as one text that waits, since it may construct something.

        Raises
        ------
        RequestError
            With status 429 if it would wait behind more texts than the server allows.
        """
        self.check_queue(1)
        self.reading += 1
        try:
            yield
        finally:
            self.reading -= 1

    def check_queue(self, texts: int) -> None:
        """Raise RequestError with status 429 if so many texts more cannot wait."""
        others = self.admitted + self.reading
        waiting, most = others + texts - self.scheduler.slots, self.settings.max_queue
        if others and waiting > most:
            raise RequestError(
                f"{others:,} texts are running or waiting, and this server lets at most {most:,} wait",
                status=429, code="queue_full", hint="Try again in a second.",
            )  # fmt: skip

    @contextmanager
    def count_request(self) -> Iterator[None]:
        """Count a request as active while it runs."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    def finish_request(self, record: RequestRecord) -> None:
        """Count a request that has ended, and write its line."""
        self.metrics.count_request(record)
        self.log.write_request(record)

    def begin_drain(self) -> None:
        """Refuse further requests with 503; running ones go on."""
        if not self.is_draining:
            self.is_draining = True
            self.log.write_event("draining", {"active": self.active, "seconds": self.settings.drain_seconds})

    def cut_tasks(self) -> None:
        """Cancel the requests that are still running."""
        for task in list(self.tasks):
            task.cancel()
