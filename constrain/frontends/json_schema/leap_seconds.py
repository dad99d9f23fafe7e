"""Times with all leap seconds: `hh:mm:60` with the offset that makes it 23:59:60 UTC (RFC 3339, section 5.7).

The offset comes last and is settled by the time: 15:59:60-08:00, 00:29:60+00:30. So an automaton has to remember one
of 1,440 minutes from the minute to the offset, in each of the seven places between: some 11,000 states.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from ...automata.dfa import Dfa, Table

__all__ = ["times_with_leap_seconds"]

DAY = 24 * 60
ALPHABET = "+-.0123456789:TZtz"

State = tuple[str, Union[str, int]]
"""("prefix", state of that Dfa), ("local", time so far), and then either ("rest", state of that Dfa), or
(what is still to come of `:60`, time), ("second", time), (".", time), ("digit", time) in the fraction,
("owed", the text that must follow)."""


def clock(minute: int) -> str:
    """hh:mm of a minute of the day."""
    return f"{minute // 60 % 24:02}:{minute % 60:02}"


MINUTES = {clock(minute): minute for minute in range(DAY)}
BEGUN = {text[:end] for text in MINUTES for end in range(5)}


def times_with_leap_seconds(prefix: Dfa, rest: Dfa) -> Dfa:
    """prefix, and then a leap second with its offset or hh:mm: and rest, which begins with 0 to 5.

    No text of prefix may begin another one of it.
    """
    codes = list(map(ord, ALPHABET))
    starts = dict.fromkeys([0, *codes, *(code + 1 for code in codes)], len(ALPHABET))
    starts.update({code: index for index, code in enumerate(codes)})
    first: State = ("local", "") if prefix.accepting[0] else ("prefix", 0)
    numbers: dict[State, int] = {first: 0}
    order, rows, accepting = [first], [], []
    for state in order:
        stage, at = state
        row = [-1] * (len(ALPHABET) + 1)
        if isinstance(at, str):
            following = _after_text(stage, at, rest)
            accepting.append(state == ("owed", ""))
        else:
            following = _after_state(stage, at, prefix, rest)
            accepting.append(stage == "rest" and bool(rest.accepting[at]))
        for char, target in following:
            if target not in numbers:
                numbers[target] = len(order)
                order.append(target)
            row[ALPHABET.index(char)] = numbers[target]
        rows.append(row)
    bounds = sorted(starts)
    return Dfa.from_table(Table(bounds, [starts[bound] for bound in bounds], rows, accepting))


def _after_state(stage: str, state: int, prefix: Dfa, rest: Dfa) -> Iterator[tuple[str, State]]:
    """The characters that may follow, each with its state, before and after the parts that are spelled out."""
    dfa = prefix if stage == "prefix" else rest
    for char in ALPHABET:
        target = dfa.step(state, char)
        if target >= 0:
            yield char, ("local", "") if stage == "prefix" and prefix.accepting[target] else (stage, target)


def _after_text(stage: str, text: str, rest: Dfa) -> Iterator[tuple[str, State]]:
    """The same where a text is remembered."""
    if stage == "local":
        for char in "0123456789:":
            if text + char in MINUTES:
                yield char, (":60", text + char)
            elif text + char in BEGUN:
                yield char, (stage, text + char)
    elif stage in (":60", "60", "0"):
        yield stage[0], (stage[1:] or "second", text)
        if stage == "60":
            yield from ((digit, ("rest", rest.step(0, digit))) for digit in "012345")
    elif stage == "owed":
        if text:
            yield text[0], (stage, text[1:])
    else:
        if stage == "second":
            yield ".", (".", text)
        else:
            yield from ((digit, ("digit", text)) for digit in "0123456789")
        if stage != ".":
            yield "+", ("owed", clock(MINUTES[text] + 1))
            yield "-", ("owed", clock(DAY - 1 - MINUTES[text]))
            if text == "23:59":
                yield from (("z", ("owed", "")), ("Z", ("owed", "")))
