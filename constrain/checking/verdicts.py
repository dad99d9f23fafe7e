"""Verdicts on the text so far, and checkers made of functions that return them.

    "ok"         the text is not valid, but a continuation may be
    "complete"   the text is valid, and may be continued as well
    "dead"       no continuation of the text is valid

A checker is *sound* if it never calls a text dead that a valid text begins with. It may say "ok" of a text that no
valid text begins with: samplers then find out later. An output always ends where the verdict was "complete".
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from enum import Enum
from threading import Thread
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..base.errors import ConstrainError, LimitError, describe_value
from ..sampling.checkers import Stepwise
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["PrefixChecker", "TextChecker", "Verdict", "VerdictChecker", "is_encodable"]


class Verdict(str, Enum):
    """What a checker says of the text so far, see the module."""

    OK = "ok"
    DEAD = "dead"
    COMPLETE = "complete"


@runtime_checkable
class TextChecker(Protocol):
    """An object that judges the text so far. It must always give the same verdict on the same text."""

    def check(self, text: str, /) -> Verdict | str:
        """Return the verdict, or its value: "ok", "dead" or "complete"."""
        ...


class PrefixChecker:
    """A TextChecker made of a function.

    Parameters
    ----------
    function : callable
        Returns the Verdict on the text so far, or its value: "ok", "dead" or "complete".
    seconds : float, optional
        Time limit of one call. The call is then made in a thread, which is abandoned if it takes longer.

    Raises
    ------
    TypeError
        If `function` is not callable, or `seconds` not a positive number.
    """

    def __init__(self, function: Callable[[str], Verdict | str], *, seconds: float | None = None) -> None:
        if not callable(function):
            raise TypeError(f"function is {describe_value(function)}: give a function of the text so far")
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds <= 0):
            raise TypeError(f"seconds is {describe_value(seconds)}: it is a positive number, or None for no limit")
        self.function, self.seconds = function, seconds

    def check(self, text: str) -> Verdict:
        """Return the verdict on the text so far.

        Raises
        ------
        LimitError
            If the function takes longer than `seconds`.
        ConstrainError
            If it returns something else.
        """
        if self.seconds is None:
            return read_verdict(self.function(text))
        return read_verdict(call_within(self.seconds, self.function, text))


def read_verdict(answer: object) -> Verdict:
    """Return the Verdict that a function answered; raise ConstrainError for anything else."""
    try:
        return Verdict(answer)
    except ValueError:
        raise ConstrainError(
            f"the checker returned {describe_value(answer)}",
            hint='A function of the text so far returns "ok", "dead" or "complete".',
        ) from None


def call_within(seconds: float, function: Callable[[str], Any], text: str) -> Any:
    """Call a function in a thread. Raise what it raises, and LimitError if it takes longer than `seconds`."""
    outcome: list[tuple[bool, Any]] = []

    def call() -> None:
        try:
            outcome.append((True, function(text)))
        except BaseException as error:
            outcome.append((False, error))

    thread = Thread(target=call, daemon=True, name="constrain-checker")
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise LimitError(f"the checker took longer than {seconds} seconds", hint="Raise seconds, or make it faster.")
    succeeded, value = outcome[0]
    if not succeeded:
        raise value
    return value


class CheckedText(NamedTuple):
    """The bytes so far and the verdict on their complete characters; None before the first verdict."""

    data: bytes
    verdict: Verdict | None


class VerdictChecker(Stepwise[CheckedText]):
    """A `sampling.Checker` made of a TextChecker, for any sampler.

    Each text is judged once. Bytes of an incomplete character are held back: the text may not end there. Bytes that are
    not UTF-8 are dead. If the TextChecker raises an exception or answers anything else, sampling stops with a
    ConstrainError: no output exists whose last verdict was not "complete".

    Parameters
    ----------
    vocabulary : Vocabulary
        The tokens of the model.
    checker : TextChecker
        What judges the text so far.
    skipped : int
        Number of bytes at the start that are not part of the text: the end of a prompt that was healed.
    """

    def __init__(self, vocabulary: Vocabulary, checker: TextChecker, *, skipped: int = 0) -> None:
        if not isinstance(checker, TextChecker):
            raise TypeError(f"checker is {describe_value(checker)}: it needs a method check(text), see PrefixChecker")
        super().__init__(vocabulary, CheckedText(b"", None), self.judge_next, self.may_end)
        self.checker, self.skipped = checker, skipped
        self.verdicts = 0

    def judge(self, text: str) -> Verdict:
        """Return the verdict of the TextChecker, and count it in `verdicts`."""
        self.verdicts += 1
        return read_verdict(self.checker.check(text))

    def judge_next(self, before: CheckedText, data: bytes) -> CheckedText | None:
        """Return the text after some bytes, or None if it is dead."""
        after = before.data + data
        text, pending = split_text(after[self.skipped :])
        if text is None:
            return None
        if len(after) < self.skipped or (pending and split_text(before.data[self.skipped :])[0] == text):
            return CheckedText(after, before.verdict)  # no character was completed
        verdict = self.judge(text)
        return None if verdict is Verdict.DEAD else CheckedText(after, verdict)

    def may_end(self, text: CheckedText) -> bool:
        """Return whether the text may end."""
        characters, pending = split_text(text.data[self.skipped :])
        if len(text.data) < self.skipped or pending or characters is None:
            return False
        return (text.verdict or self.judge(characters)) is Verdict.COMPLETE


def is_encodable(text: str) -> bool:
    """Return whether a text has no halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def split_text(data: bytes) -> tuple[str | None, bytes]:
    """Return the complete characters of UTF-8 bytes and the bytes of an incomplete one; None for other bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data)
    except UnicodeDecodeError:
        return None, b""
    return text, decoder.getstate()[0]
