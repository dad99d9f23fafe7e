"""Which tokens of an answer are those of its thoughts: usage counts them, and log-probabilities leave them out.

Thoughts without marks, those in the channels of harmony, are not told apart here.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from typing import Any

from ..generation.generation_result import Generation
from ..vocabulary.vocabulary import Vocabulary
from .answer_call import AnswerCall
from .token_logprobs import TokenLogprob

__all__ = ["ContentLogprobs", "count_thought_tokens"]


def count_thought_tokens(call: AnswerCall, made: Generation[Any], vocabulary: Vocabulary) -> int:
    """Return the number of tokens of the thoughts of a text and of their marks.

    A token that belongs to the thoughts and to what follows counts as one of the thoughts.
    """
    reader = call.open_reader()
    reader.feed(made.text)
    reader.finish()
    return count_covering([vocabulary.transcript((token,)) for token in made.tokens], reader.thought_size or 0)


def count_covering(pieces: Sequence[bytes], size: int) -> int:
    """Return the number of first pieces that have a number of characters together, or more; of all if they have less.

    Bytes that are no UTF-8 are replaced, as they are in texts.
    """
    decoder, count = getincrementaldecoder("utf-8")("replace"), 0
    for piece in pieces:
        if size <= 0:
            break
        size -= len(decoder.decode(piece))
        count += 1
    return count


class ContentLogprobs:
    """Passes on the log-probabilities of the tokens of an answer that come after its thoughts."""

    def __init__(self) -> None:
        self.held: list[TokenLogprob] = []
        self.has_begun = False

    def feed(self, found: Sequence[TokenLogprob], thought_size: int | None) -> list[TokenLogprob]:
        """Return those of further tokens. thought_size: that of the AnswerReader which has read their text."""
        self.held += found
        if thought_size is None:
            return []
        skipped = 0 if self.has_begun else count_covering([one.data for one in self.held], thought_size)
        passed, self.held, self.has_begun = self.held[skipped:], [], True
        return passed
