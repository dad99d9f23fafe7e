"""Warnings about the schemas of a request, which its answer returns: what asserts nothing, such as a misspelt keyword.

Python's `warnings` would print them on the server, with names of the schema, and tell the client nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from ..forms.source_readers import schema_receiver
from .request_record import current_record

__all__ = ["begin_schema_notes", "list_schema_notes", "note_schema_warnings"]


def begin_schema_notes(pointer: str) -> None:
    """Note warnings about schemas as those of this place of the request, in this task and in what it starts.

    Unlike `note_schema_warnings` for use in async generators, which may be resumed and closed in other tasks.
    """
    schema_receiver.set(partial(add_notes, pointer))


@contextmanager
def note_schema_warnings(pointer: str) -> Iterator[None]:
    """Note warnings about schemas that are read inside as those of this place of the request."""
    token = schema_receiver.set(partial(add_notes, pointer))
    try:
        yield
    finally:
        schema_receiver.reset(token)


def add_notes(pointer: str, messages: tuple[str, ...]) -> None:
    """Add warnings to the record of this task's request.

    Schemas are read more than once, later as parts of larger constraints: a warning that was noted at a place within
    this one is not noted again.
    """
    record = current_record()
    if record is None:
        return
    for message in messages:
        if not any(known == message and place.startswith(pointer) for place, known in record.schema_notes):
            record.schema_notes.append((pointer, message))


def list_schema_notes() -> list[dict[str, str]]:
    """Return the warnings about the schemas of this task's request, in the shape of errors."""
    record = current_record()
    return [{"message": message, "param": pointer} for pointer, message in record.schema_notes] if record else []
