"""Posteriors over answers: the summed weight of all draws that give the same answer.

Samplers draw token sequences. Several token sequences spell the same text, and several texts the same JSON value; the
probability of an answer, given the constraint, is the sum over all of them. With w the normalised weights of draws x,

    P(answer = s | L)  ~  sum of w(x) over the draws x with answer s

which is the self-normalised estimate with f = [x has answer s]. The answer with the largest sum need not be that of the
likeliest token sequence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from ...engine.text_enumeration import hashable_json

__all__ = ["sum_by_text", "sum_by_value"]


Weighted = Iterable[tuple[str, float]]
"""Pairs of the text of a draw and its normalised weight."""


def sum_by_text(draws: Weighted) -> dict[str, float]:
    """Return the share of the weight that each text has, the largest first; texts of weight 0 are left out.

    Bytes that are not UTF-8 appear as U+FFFD in a text: texts that differ only there count as one.
    """
    return dict(sum_by_key(draws, lambda text: text).values())


def sum_by_value(draws: Weighted) -> list[tuple[Any, float]]:
    """Return (JSON value, share of the weight) pairs, the largest share first.

    Values are as `json.loads` returns them; a text that is not JSON is its own value. Two values are equal if JSON
    Schema says so (2020-12, core, section 4.2.2): 1 and 1.0 are the same value, 1 and true are not.
    """
    sums = sum_by_key(draws, lambda text: hashable_json(text.encode()))
    return [(json_or_text(text), mass) for text, mass in sums.values()]


def sum_by_key(draws: Weighted, key: Callable[[str], Hashable]) -> dict[Hashable, tuple[str, float]]:
    """Map each key to (its first text, the sum of the weights), by falling weight, ties in order of arrival."""
    sums: dict[Hashable, tuple[str, float]] = {}
    for text_drawn, weight in draws:
        if weight > 0:
            answer = key(text_drawn)
            text, mass = sums.get(answer, (text_drawn, 0.0))
            sums[answer] = text, mass + weight
    return dict(sorted(sums.items(), key=lambda item: -item[1][1]))


def json_or_text(text: str) -> Any:
    """Parse a text as JSON; return the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text
