"""`count_thought_tokens`: how many tokens of an answer are those of its thoughts, which usage reports."""

from __future__ import annotations

from typing import Any

from ..generation.generation_result import Generation
from ..vocabulary.vocabulary import Vocabulary
from .answer_call import AnswerCall
from .answer_reader import ThoughtReader

__all__ = ["count_thought_tokens"]


def count_thought_tokens(call: AnswerCall, made: Generation[Any], vocabulary: Vocabulary) -> int:
    """Return the number of tokens of the thoughts of a text and of their marks.

    A token that belongs to the thoughts and to what follows counts as one of the thoughts. Thoughts without marks,
    those in the channels of harmony, are not counted.
    """
    if call.marks is None:
        return 0
    reader = ThoughtReader(call.marks.open, call.marks.close)
    answer = reader.feed(made.text)[1] + reader.finish()[1]
    left, count = len(made.text.encode()) - len(answer.encode()), 0
    for token in made.tokens:
        if left <= 0:
            break
        left -= len(vocabulary.transcript((token,)))
        count += 1
    return count
