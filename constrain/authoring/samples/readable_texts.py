"""Draw readable texts of a regular language: words where the Dfa accepts words, else a random walk through the Dfa.

    draw_readable_text(dfa, low, high, rng)   a text that the Dfa accepts, of low to high characters

First, a few candidates of each kind (words, dates, addresses, numbers) are tested against the Dfa. If it accepts none
of them, its states are walked with a preference for letters and digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from ...automata.dfa import Dfa
from ...base.errors import LimitError

__all__ = ["draw_phrase", "draw_readable_text"]

WORDS = (
    "amber apple arrow basil beacon birch bread bridge candle canyon cedar cherry cloud clover copper coral cotton "
    "delta ember falcon fern forest garden ginger harbor hazel honey island ivory jasmine kettle ladder lantern lemon "
    "linen maple marble meadow mellow mint morning moss nectar north olive orchard paper pebble pepper pine planet "
    "plum quartz rabbit raven ribbon river rose saffron sailor silver sparrow spruce stone summer thistle timber "
    "tulip valley velvet violet walnut water willow winter yellow"
).split()

MORE_MEAN = 5
"""Mean number of characters beyond the minimum in a walk: longer than the minimum, short enough to read."""

LIKING: tuple[tuple[float, int, int], ...] = (
    (10.0, 0x61, 0x7B), (2.0, 0x41, 0x5B), (6.0, 0x30, 0x3A), (0.3, 0x20, 0x7F), (0.02, 0xC0, 0x250),
    (0.002, 0xA0, 0x2028), (0.002, 0x202A, 0x110000), (0.0001, 0x2028, 0x202A), (0.0001, 0, 0x20), (0.0001, 0x7F, 0xA0),
)  # fmt: skip
"""Weights of the characters from .. to (exclusive): small letters, capitals, digits, ASCII, Latin, others."""

Rng = np.random.Generator


def draw_readable_text(dfa: Dfa, low: int, high: int | None, rng: Rng) -> str:
    """Return a text of the language with low <= characters <= high (None: no bound).

    Raise LimitError if counting takes too many states.
    """
    if dfa.is_universal:
        return draw_phrase(low, high, rng)
    for kind in KINDS:
        offered = [text for make in kind for text in make(rng) if low <= len(text)]
        liked = [text for text in offered if (high is None or len(text) <= high) and dfa.accepts(text)]
        if liked:
            return liked[int(rng.integers(len(liked)))]
    return walk_to_length(dfa, low, high, rng)


# ---- what people write -------------------------------------------------------------------------------------------


def draw_phrase(low: int, high: int | None, rng: Rng) -> str:
    """Return one to three words, or other numbers of words where the bounds require it."""
    phrase = " ".join(draw_word(rng) for _ in range(int(rng.integers(1, 4))))
    while len(phrase) < low:
        phrase += " " + (draw_word(rng) if low - len(phrase) < 1000 else " ".join(WORDS))
    phrase = phrase if high is None else phrase[:high]
    if phrase.endswith(" "):
        phrase = phrase[:-1] + "s"
    return phrase.capitalize() if rng.random() < 0.5 else phrase


def draw_word(rng: Rng) -> str:
    """Return a word."""
    return WORDS[int(rng.integers(len(WORDS)))]


def draw_words(rng: Rng) -> Iterator[str]:
    yield from (
        draw_word(rng),
        draw_word(rng).capitalize(),
        f"{draw_word(rng)} {draw_word(rng)}",
        f"{draw_word(rng)}-{draw_word(rng)}",
    )


def draw_identifier(rng: Rng) -> Iterator[str]:
    yield from (f"{draw_word(rng)}_{draw_word(rng)}", draw_word(rng).upper(), f"{draw_word(rng)}{rng.integers(100)}")


def draw_time(rng: Rng) -> Iterator[str]:
    date = f"{rng.integers(1960, 2040)}-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}"
    time = f"{rng.integers(24):02}:{rng.integers(60):02}:{rng.integers(60):02}"
    yield from (date, f"{date}T{time}Z", f"{time}Z", time, f"PT{rng.integers(1, 60)}M", f"P{rng.integers(1, 30)}D")


def draw_address(rng: Rng) -> Iterator[str]:
    yield from (
        f"{draw_word(rng)}.{draw_word(rng)}@example.org",
        f"{draw_word(rng)}.example.org",
        f"/{draw_word(rng)}/{rng.integers(10)}",
    )
    yield f"https://{draw_word(rng)}.example.org/{draw_word(rng)}"
    yield ".".join(str(part) for part in rng.integers(1, 255, 4))
    digits = rng.bytes(16).hex()
    yield f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
    yield f"2001:db8::{digits[:4].lstrip('0') or '1'}"


def draw_number(rng: Rng) -> Iterator[str]:
    for least, most in ((0, 10), (1, 100), (10, 1000), (100, 10_000), (1960, 2040), (-100, 0)):
        yield str(rng.integers(least, most))
    for step in (0.01, 0.25, 0.1, 0.5):
        for most in (1, 100):
            yield f"{round(rng.random() * most / step) * step:.2f}".rstrip("0").rstrip(".")
    for step in (5, 10, 25, 100, 1000):
        yield str(step * rng.integers(1, 20))


Maker = Callable[[Rng], Iterator[str]]
KINDS: tuple[tuple[Maker, ...], ...] = ((draw_words,), (draw_identifier,), (draw_time, draw_address), (draw_number,))
"""Kinds of text, the likelier ones first; a text is taken from the first kind with a candidate that the Dfa accepts."""


# ---- what the Dfa says -------------------------------------------------------------------------------------------


def walk_to_length(dfa: Dfa, low: int, high: int | None, rng: Rng) -> str:
    """Return a text of the language by walking its states towards a length that is drawn in advance."""
    least, most = dfa.lengths()
    if low > least or (high is not None and (most is None or high < most)):
        if not dfa.extensible():
            return walk_to_length(dfa.with_length(low, high), 0, None, rng)
        most = high
    target = max(low, least) + int(rng.geometric(1 / (1 + MORE_MEAN))) - 1
    return walk_towards(dfa, target if most is None else min(target, most), rng)


def walk_towards(dfa: Dfa, target: int, rng: Rng) -> str:
    """Return a text of about `target` characters; of exactly so many if the Dfa is extensible (then every length
    occurs)."""
    rows, distance, exact = dfa.table.rows, dfa.distances(), dfa.extensible()
    state, characters = 0, list[str]()
    while True:
        left = target - len(characters)
        if dfa.accepting[state] and left <= 0:
            break
        if exact:
            nearer = left - 1
        else:
            nearer = len(rows) if left > 0 else int(distance[state]) - 1
        steps = [(kind, after) for kind, after in enumerate(rows[state]) if after >= 0 and distance[after] <= nearer]
        if not steps:
            if dfa.accepting[state]:
                break
            raise LimitError(f"no text of {target} characters was found")
        liking = np.array([build_palette(dfa)[kind][0] for kind, _ in steps])
        kind, state = steps[int(rng.choice(len(steps), p=liking / liking.sum()))]
        characters.append(draw_character(build_palette(dfa)[kind][1], rng))
    return "".join(characters)


Palette = tuple[tuple[float, tuple[tuple[float, int, int], ...]], ...]


@lru_cache(maxsize=64)
def build_palette(dfa: Dfa) -> Palette:
    """Return, for each class of characters, its weight and its ranges (weight, start, exclusive end)."""
    table = dfa.table
    ranges_by_class: list[list[tuple[float, int, int]]] = [[] for _ in range(max(table.classes) + 1)]
    for start, end, kind in zip(table.bounds, [*table.bounds[1:], 0x110000], table.classes):
        for liking, first, last in LIKING:
            if max(start, first) < min(end, last):
                ranges_by_class[kind].append((liking, max(start, first), min(end, last)))
    return tuple((max((r[0] for r in ranges), default=1e-6), tuple(ranges)) for ranges in ranges_by_class)


def draw_character(ranges: tuple[tuple[float, int, int], ...], rng: Rng) -> str:
    """Return one character of a class; surrogates, which occur in no text, are never drawn."""
    liking = np.array([weight for weight, _, _ in ranges])
    while True:
        _, first, last = ranges[int(rng.choice(len(ranges), p=liking / liking.sum()))]
        code = int(rng.integers(first, last))
        if not 0xD800 <= code < 0xE000:
            return chr(code)
