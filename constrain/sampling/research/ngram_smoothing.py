"""Estimates of n-gram models from counts of tokens, interpolated with the next shorter context.

    witten_bell   P(a | c) = (n(c a) + T(c) P(a | c')) / (n(c) + T(c))          T(c): different tokens seen after c
    kneser_ney    P(a | c) = (max(n(c a) - D, 0) + D T(c) P(a | c')) / n(c)     D = n1 / (n1 + 2 n2)

where c' is c without its first token, and the empty context backs off to the uniform distribution. In Kneser-Ney,
n(c a) counts occurrences in the longest contexts only; in all others it is the number of different tokens that occur
before c a; only contexts at the beginning of a text, before which nothing can be, keep their occurrences. n1 and n2 are
the numbers of counts of 1 and 2 of contexts of the same length.

Sources: Witten & Bell 1991; Kneser & Ney 1995, interpolated as in Chen & Goodman 1999, An empirical study of smoothing
techniques for language modeling, sections 2.5 and 2.7.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError

__all__ = [
    "BEGIN",
    "SMALLEST",
    "SMOOTHINGS",
    "Context",
    "choose_contexts",
    "smooth_kneser_ney",
    "smooth_witten_bell",
]

SMALLEST = 1e-9
"""Weight of the uniform distribution that is mixed into every estimated row, so that no probability is 0."""

BEGIN = -1
"""Stands before the first token of a text, as the first part of a context."""

Context = tuple[int, ...]
Floats = NDArray[np.float64]


def choose_contexts(frequencies: Mapping[Context, int], most: int) -> list[Context]:
    """Return the empty context and at least `most` of the most frequent longer ones (fewer if there are not so many),
    with all their suffixes, shorter ones first.
    """
    retained: dict[Context, None] = {(): None}
    for context in sorted((c for c in frequencies if c), key=lambda c: (-frequencies[c], len(c), c)):
        if len(retained) > most:
            break
        for length in range(1, len(context) + 1):
            retained.setdefault(context[len(context) - length :])
    return sorted(retained, key=len)


def smooth_witten_bell(texts: Sequence[Sequence[int]], size: int, order: int, contexts: int) -> dict[Context, Floats]:
    """Return the distribution after each context: float64 [size]. texts: with end tokens."""
    counts = count_tokens(texts, order)
    even, out = np.full(size, 1 / size), dict[Context, Floats]()
    for context in choose_contexts({c: sum(after.values()) for c, after in counts.items()}, contexts):
        lower, after = out[context[1:]] if context else even, counts[context]
        row = len(after) * lower
        for token, count in after.items():
            row[token] += count
        out[context] = finish_row(row / (sum(after.values()) + len(after)))
    return out


def smooth_kneser_ney(texts: Sequence[Sequence[int]], size: int, order: int, contexts: int) -> dict[Context, Floats]:
    """Return the distribution after each context: float64 [size]. texts: with end tokens."""
    occurrences = count_tokens(texts, order)
    counts = count_continuations(occurrences, order)
    discounts = [estimate_discount(counts, length) for length in range(order + 1)]
    even, out = np.full(size, 1 / size), dict[Context, Floats]()
    for context in choose_contexts({c: sum(after.values()) for c, after in occurrences.items()}, contexts):
        lower, after = out[context[1:]] if context else even, counts[context]
        row = discounts[len(context)] * len(after) * lower
        for token, count in after.items():
            row[token] += count - discounts[len(context)]
        out[context] = finish_row(row / sum(after.values()))
    return out


SMOOTHINGS: dict[str, Callable[[Sequence[Sequence[int]], int, int, int], dict[Context, Floats]]] = {
    "witten_bell": smooth_witten_bell,
    "kneser_ney": smooth_kneser_ney,
}


def count_tokens(texts: Sequence[Sequence[int]], order: int) -> dict[Context, Counter[int]]:
    """Return how often each token occurs after each context of at most `order` tokens, BEGIN included."""
    counts: dict[Context, Counter[int]] = defaultdict(Counter)
    for text in texts:
        marked = (BEGIN, *text)
        for i in range(1, len(marked)):
            for length in range(min(order, i) + 1):
                counts[marked[i - length : i]][marked[i]] += 1
    if not counts:
        raise ArgumentError("there is no text to learn from")
    return dict(counts)


def count_continuations(occurrences: Mapping[Context, Counter[int]], order: int) -> dict[Context, Counter[int]]:
    """Return the counts that Kneser-Ney smoothing has for each context: occurrences in the longest contexts and in
    those at the beginning of a text, else the number of different tokens before the context and the token.
    """
    kept = {c: after for c, after in occurrences.items() if len(c) == order or c[:1] == (BEGIN,)}
    shorter: dict[Context, Counter[int]] = defaultdict(Counter)
    for context, after in occurrences.items():
        if context and context[1:] not in kept:
            shorter[context[1:]].update(after.keys())
    return {**shorter, **kept}


def estimate_discount(counts: Mapping[Context, Counter[int]], length: int) -> float:
    """Return the absolute discount of contexts of one length: n1 / (n1 + 2 n2), and 1/2 where nothing occurs once."""
    sizes = Counter(count for context, after in counts.items() if len(context) == length for count in after.values())
    return sizes[1] / (sizes[1] + 2 * sizes[2]) if sizes[1] else 0.5


def finish_row(row: Floats) -> Floats:
    """Mix the uniform distribution into a row with weight SMALLEST, and normalise it."""
    mixed = row + SMALLEST / len(row)
    finished: Floats = mixed / mixed.sum()
    return finished
