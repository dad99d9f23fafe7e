"""Partial values of texts that are being generated: `Piece.partial`, `TextEvent.partial` and `stream_values`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.errors import check_type
from ..decoding.outcomes import Piece
from ..decoding.partial_json import NOTHING, PartialJson
from ..integrations.partial_types import to_partial

if TYPE_CHECKING:
    from .generation_arguments import ConstraintRequest

__all__ = ["PartialPieces", "PartialReader", "stream_values"]


class PartialReader:
    """The partial value of one text.

    For a JSON Schema it is what the text shows so far as plain JSON, for a Python type an instance of its partial type
    (`integrations.partial_types`), for all other constraints the text itself. None if no value has begun.

    Parameters
    ----------
    request : ConstraintRequest or None
        The constraint.
    """

    def __init__(self, request: ConstraintRequest | None) -> None:
        self.tp = None if request is None else request.find_type()
        is_json = request is not None and (self.tp is not None or request.schema is not None)
        self.parser = None if not is_json else PartialJson() if self.tp is None else PartialJson(Decimal)
        self.texts: list[str] = []

    def feed(self, text: str) -> None:
        """Append a piece of the text. It is parsed when the value is read."""
        if text:
            self.texts.append(text)

    def read(self) -> Any:
        """Return the value of the text so far; it does not change when the text goes on."""
        text = "".join(self.texts)
        if self.parser is None:
            self.texts = [text]
            return text
        self.texts = []
        self.parser.feed(text)
        if self.parser.value is NOTHING:
            return None
        if self.tp is None:
            return self.parser.snapshot()
        try:
            return to_partial(self.tp, self.parser.value, self.parser.open_path())
        except RecursionError:  # nested too deeply to be of a type
            return self.parser.snapshot()

    @property
    def changes(self) -> int:
        """A number that changes when the value does, and for a type sometimes when it does not; parses what was fed."""
        if self.parser is None:
            return sum(map(len, self.texts))
        self.parser.feed("".join(self.texts))
        self.texts = []
        # Of a type other than str, a string is a value once it is complete.
        return self.parser.changes + (0 if self.tp is None else self.parser.completed)


class PartialPieces:
    """Gives the Pieces of the texts of a call their partial values (`Piece.partial`).

    Parameters
    ----------
    requests : sequence of ConstraintRequest or None
        The constraint of each prompt.
    stream : callable
        Called with each Piece.
    """

    def __init__(self, requests: Sequence[ConstraintRequest | None], stream: Callable[[Piece], None]) -> None:
        self.requests, self.stream = requests, stream
        self.readers: dict[tuple[int, int], tuple[int, PartialReader]] = {}

    def __call__(self, piece: Piece) -> None:
        """Pass on a Piece."""
        place = piece.prompt, piece.sample
        attempt, reader = self.readers.get(place, (-1, None))
        if reader is None or attempt != piece.attempt:
            reader = PartialReader(self.requests[piece.prompt])
            self.readers[place] = piece.attempt, reader
        reader.feed(piece.text)
        self.stream(replace(piece, reader=reader))


def stream_values(receive: Callable[[Any], Any]) -> Callable[[Piece], None]:
    """Return a function for `generate(stream=...)` that passes on partial values.

    Parameters
    ----------
    receive : callable
        Called with the value of the text so far, whenever it has changed: plain JSON for a schema, an instance of
        `partial_model` of the type for a type, the text itself for other constraints. The values of several texts come
        in turn; `Piece.prompt` and `Piece.sample` tell them apart. An answer that is a number and nothing else is
        complete only when it ends, and is not passed on.

    Returns
    -------
    callable
        A function of a `Piece`.

    Raises
    ------
    TypeError
        If `receive` is not callable.
    """
    check_type("receive", receive, Callable, "give a function of a value")  # type: ignore[arg-type]
    seen: dict[tuple[int, int], SeenValue] = {}

    def pass_on(piece: Piece) -> None:
        place = piece.prompt, piece.sample
        last = seen.get(place)
        changes = 0 if piece.reader is None else piece.reader.changes
        if last is None or last.reader is not piece.reader:
            last = SeenValue(piece.reader, 0, NOTHING)
        if changes != last.changes:
            value = piece.partial
            if not is_same(value, last.value):
                receive(value)
            last = SeenValue(piece.reader, changes, value)
        seen[place] = last

    return pass_on


class SeenValue(NamedTuple):
    """The value of a text that was passed on last, its reader, and the number of changes until then."""

    reader: Any
    changes: int
    value: Any


def is_same(value: Any, other: Any) -> bool:
    """Return whether two values of a text are equal; False where they are nested too deeply to compare them."""
    try:
        return bool(value == other)
    except RecursionError:
        return False
