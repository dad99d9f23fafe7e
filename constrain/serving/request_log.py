"""The log of a server: one line for each request, as JSON or as text. Prompts, schemas and texts are never in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from ..base.errors import check_choice, check_type
from .request_record import RequestRecord

__all__ = ["LOG_FORMATS", "RequestLog"]

LOG_FORMATS = ("json", "text", "none")
ID_DIGITS = 8
"""Number of characters of the request id in a line of text."""


class RequestLog:
    """Writes a line for each request and each event of the server.

    Parameters
    ----------
    format : {"json", "text", "none"}
        "json": one object a line. "text": a short line for people. "none": no line.
    write : callable
        Takes a line with its line feed; by default it is written to stderr.

    Raises
    ------
    ArgumentError
        If the format is none of these.
    """

    def __init__(self, format: str = "json", write: Callable[[str], object] | None = None) -> None:
        check_choice("format of the log", format, LOG_FORMATS)
        if write is not None:
            check_type("write", write, Callable, "give a function of a line")  # type: ignore[arg-type]
        self.format = format
        self.write = write_stderr if write is None else write

    def write_request(self, record: RequestRecord) -> None:
        """Write the line of a request."""
        if self.format == "text":
            self.write(f"{datetime.now(timezone.utc):%H:%M:%S} {describe_request(record)}\n")
        else:
            self.write_event("request", record.describe())

    def write_event(self, event: str, facts: dict[str, Any]) -> None:
        """Write a line."""
        if self.format == "none":
            return
        time = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        if self.format == "json":
            self.write(json.dumps({"time": time, "event": event, **facts}) + "\n")
        else:
            known = (f"{name}={value}" for name, value in facts.items() if value not in (None, 0, ""))
            self.write(f"{time[11:23]} {event} {' '.join(known)}\n")


def describe_request(record: RequestRecord) -> str:
    """Return the text of the line of a request, which most of the time has less than 80 characters."""
    facts = [f"{record.status} {record.method or '-'} {record.endpoint}", record.reason, f"{record.elapsed:.2f} s"]
    if record.prompt_tokens or record.generated_tokens:
        facts.append(f"{record.prompt_tokens} + {record.generated_tokens} tokens")
    return ", ".join(fact for fact in (*facts, record.id[:ID_DIGITS]) if fact)


def write_stderr(line: str) -> None:
    """Write a line to stderr at once."""
    sys.stderr.write(line)
    sys.stderr.flush()
