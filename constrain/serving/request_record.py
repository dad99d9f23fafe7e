"""What is known of one request while it runs: the line of the log, and the values of the metrics.

    record = current_record()        # of the request whose task this is; None outside of one

Endpoints add the facts (`constraint`, `prompt_tokens`, ...), the operations layer adds the rest. A record holds no
prompt, no schema and no text, but for the warnings about schemas, which are not logged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

__all__ = ["RequestRecord", "current_record", "enter_record", "note_refusal"]


@dataclass(slots=True)
class RequestRecord:
    """One request.

    Attributes
    ----------
    id : str
        The request id, also in the header `x-request-id` of the response.
    endpoint : str
        The path of the route, such as /v1/chat/completions; "other" if there is none.
    status : int
        Of the response; 499 if the client hung up first.
    reason : str
        Why it was refused or interrupted: a code such as "queue_full"; "" if it was not.
    started : float
        `time.monotonic()` when the request arrived.
    first_token_seconds : float or None
        From then until the first token.
    compile_seconds, mask_seconds : float
        Compiling the constraint, and all masks of all texts.
    prompt_tokens, generated_tokens, texts : int
        Tokens of the prompt, tokens of all texts, and texts that ended.
    constraint : str
        Kind and digest of the constraint, such as schema:5f2b…; "" for none.
    schema_notes : list of (str, str)
        Warnings about the schemas: the place in the request, and the message.
    describe_interruption : callable
        Returns the event by which the operations layer ends a stream, given the body of an error; by default that body.
    """

    id: str
    method: str = ""
    endpoint: str = "other"
    status: int = 0
    reason: str = ""
    started: float = field(default_factory=monotonic)
    first_token_seconds: float | None = None
    compile_seconds: float = 0.0
    mask_seconds: float = 0.0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    texts: int = 0
    constraint: str = ""
    schema_notes: list[tuple[str, str]] = field(default_factory=list)
    describe_interruption: Callable[[dict[str, Any]], dict[str, Any]] = dict

    @property
    def elapsed(self) -> float:
        """Seconds since the request arrived."""
        return monotonic() - self.started

    def describe(self) -> dict[str, Any]:
        """Return the fields of the log line."""
        return {
            "id": self.id, "method": self.method, "endpoint": self.endpoint, "status": self.status,
            "reason": self.reason or None, "seconds": round(self.elapsed, 6),
            "first_token_seconds": None if self.first_token_seconds is None else round(self.first_token_seconds, 6),
            "compile_seconds": round(self.compile_seconds, 6), "mask_seconds": round(self.mask_seconds, 6),
            "prompt_tokens": self.prompt_tokens, "generated_tokens": self.generated_tokens, "texts": self.texts,
            "constraint": self.constraint or None,
        }  # fmt: skip


_current: ContextVar[RequestRecord | None] = ContextVar("constrain_request_record", default=None)


def current_record() -> RequestRecord | None:
    """Return the record of the request that this task or thread works for, if any."""
    return _current.get()


def enter_record(record: RequestRecord) -> None:
    """Make a record that of this task, and of the tasks and threads that it starts from now on."""
    _current.set(record)


def note_refusal(code: str) -> None:
    """Set the reason in the record of this task's request, if there is one."""
    record = _current.get()
    if record is not None:
        record.reason = code
