"""Events of a stream: text as it is generated, texts that are drawn again, and the end of each text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

from .outcomes import ValueReader

__all__ = ["AnswerEvent", "FinishEvent", "RetryEvent", "StreamEvent", "TextEvent"]


@dataclass(frozen=True, slots=True)
class TextEvent:
    """Text that was added since the last event of the same sample.

    Attributes
    ----------
    prompt, sample : int
        The number of the prompt in its list, and of the sample of this prompt.
    text : str
        Complete characters; the bytes of an incomplete one come with a later event.
    tokens : tuple of int
        The added tokens; none if the text was delayed to the end, as an incomplete character may be.
    reader : ValueReader, optional
        Reads the partial value of the text.
    """

    prompt: int
    sample: int
    text: str
    tokens: tuple[int, ...]
    reader: ValueReader | None = field(default=None, repr=False, compare=False)

    @property
    def partial(self) -> Any:
        """The value of the text so far, as `Piece.partial`, computed when it is read."""
        return None if self.reader is None else self.reader.read()


@dataclass(frozen=True, slots=True)
class RetryEvent:
    """A text was refused or did not end, and is drawn again: what was seen of it is void.

    The following TextEvents of the sample are those of the new text.

    Attributes
    ----------
    prompt, sample : int
        As in `TextEvent`.
    attempt : int
        How many texts were drawn for the sample until now.
    reason : str
        Why the last one was refused: what the validator of the type or the check says, or why it did not end.
    """

    prompt: int
    sample: int
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True)
class FinishEvent:
    """The end of one text, at once when it has ended.

    The statistics that concern all texts of a prompt are complete after the last of them.

    Attributes
    ----------
    prompt, sample : int
        As in `TextEvent`.
    generation : Generation or None
        The finished text; None if it ended with an error.
    error : Exception or None
        The error that the text ended with. Other texts of the stream go on.
    """

    prompt: int
    sample: int
    generation: Any = None
    error: BaseException | None = None


AnswerEvent = Union[TextEvent, FinishEvent]
"""An event of a stream whose texts are not drawn again."""
StreamEvent = Union[AnswerEvent, RetryEvent]
