"""Which values of an answer are right, and whether an answer without a mask satisfies the constraint."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from .questions import Question

__all__ = ["Tally", "Verdict", "judge_answer", "list_values"]


class Verdict(NamedTuple):
    """values, right_values: numbers of values of the answer with a mask. is_right: whether all are right. free_valid,
    free_right: whether the answer without a mask is valid, and right.
    """

    values: int
    right_values: int
    is_right: bool
    free_valid: bool
    free_right: bool


def judge_answer(question: Question, masked: str, free: str) -> Verdict:
    """Return the verdict about the answers to a question, with a mask and without one."""
    right = list_values(question.right)
    said = list_values(parse_answer(question, masked))
    count = sum(is_equal(said.get(place, MISSING), value) for place, value in right.items())
    free_valid = is_valid(question, free)
    free_right = free_valid and is_equal(parse_answer(question, free), question.right)
    return Verdict(len(right), count, count == len(right) == len(said), free_valid, free_right)


MISSING = object()
"""Equal to no value of an answer."""


def parse_answer(question: Question, text: str) -> Any:
    """Return the value of an answer: the text itself if it is one of several choices; MISSING if it is not JSON."""
    if question.choices is not None:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return MISSING


def is_valid(question: Question, text: str) -> bool:
    """Return whether an answer satisfies the constraint of its question."""
    import jsonschema

    if question.choices is not None:
        return text in question.choices
    value = parse_answer(question, text)
    return value is not MISSING and jsonschema.Draft202012Validator(question.schema).is_valid(value)


def is_equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def list_values(value: Any) -> dict[tuple[str, ...], Any]:
    """Return the values that are not objects, by their paths of names."""
    return dict(walk_values(value, ()))


def walk_values(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (names, value) of each value that is not an object."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from walk_values(inner, (*place, name))
    else:
        yield place, value


@dataclass
class Tally:
    """Sums of verdicts."""

    questions: int = 0
    values: int = 0
    right_values: int = 0
    right: int = 0
    free_valid: int = 0
    free_right: int = 0
    chance: float = 0.0

    def add(self, question: Question, verdict: Verdict) -> None:
        """Count a verdict."""
        self.questions += 1
        self.values += verdict.values
        self.right_values += verdict.right_values
        self.right += verdict.is_right
        self.free_valid += verdict.free_valid
        self.free_right += verdict.free_right
        self.chance += question.chance

    def as_row(self) -> dict[str, float]:
        """Return the shares in per cent, named as the columns of the table are."""
        whole, values = max(1, self.questions) / 100, max(1, self.values) / 100
        return {
            "values right": self.right_values / values, "answers right": self.right / whole,
            "by chance": self.chance / whole, "valid without mask": self.free_valid / whole,
            "right without mask": self.free_right / whole,
        }  # fmt: skip
