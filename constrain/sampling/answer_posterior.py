"""Posteriors over answers: the weights of all draws that say the same, added up.

What is drawn is token sequences. Several of them spell one text, and several texts one JSON value; the probability of
an answer, given the constraint, is the sum over all its spellings. So with w the normalised weights of draws x

    P(answer = s | L)  ~  sum of w(x) over the draws x that say s

which is the self-normalised estimate with f = [x says s]. The answer with the largest sum need not be the one that the
likeliest token sequence spells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from ..authoring.samples.distinct_instances import value_of

if TYPE_CHECKING:
    from .results import Draws

__all__ = ["by_text", "by_value"]


def by_text(draws: Draws) -> dict[str, float]:
    """text -> its part of all weight, the largest first; what weighs nothing is left out.

    Bytes that are no UTF-8 show as U+FFFD in a text: texts that differ only there count as one.
    """
    return dict(merged(draws, lambda text: text).values())


def by_value(draws: Draws) -> list[tuple[Any, float]]:
    """(value, its part of all weight), the largest first: JSON values as `json.loads` gives them; a text that is no
    JSON is its own value. Equal means what JSON Schema means by it: 1 and 1.0 are one value, 1 and true are not."""
    found = merged(draws, lambda text: value_of(text.encode()))
    return [(meaning(text), mass) for text, mass in found.values()]


def merged(draws: Draws, key: Callable[[str], Hashable]) -> dict[Hashable, tuple[str, float]]:
    """key -> (the first text with it, the weight of all), by falling weight, ties in order of arrival."""
    sums: dict[Hashable, tuple[str, float]] = {}
    for draw, weight in zip(draws, draws.weights.tolist()):
        if weight > 0:
            name = key(draw.text)
            text, mass = sums.get(name, (draw.text, 0.0))
            sums[name] = text, mass + weight
    return dict(sorted(sums.items(), key=lambda item: -item[1][1]))


def meaning(text: str) -> Any:
    """The JSON value of a text, or the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
