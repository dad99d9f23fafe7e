"""Readable texts: what is offered is well formed whatever the dice say, palettes are what they are defined to be."""

from __future__ import annotations

import datetime
import ipaddress
import re
import uuid
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain.authoring.samples import readable_texts
from constrain.authoring.samples.readable_texts import (
    LIKING,
    MORE_MEAN,
    WORDS,
    build_palette,
    draw_character,
    walk_to_length,
    walk_towards,
)
from constrain.automata.dfa import Dfa
from constrain.base.errors import LimitError
from constrain.frontends.regex import to_dfa


class Dice:
    """What numpy's generator promises, of which hypothesis chooses."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def integers(self, low: int, high: int | None = None, size: int | None = None) -> int | list[int]:
        least, most = (0, low - 1) if high is None else (low, high - 1)
        numbers = st.sampled_from([least, most]) | st.integers(least, most)
        return self.data.draw(numbers if size is None else st.lists(numbers, min_size=size, max_size=size))

    def random(self) -> float:
        return self.data.draw(st.floats(0, 1, exclude_max=True))

    def bytes(self, length: int) -> bytes:
        return self.data.draw(st.binary(min_size=length, max_size=length))


def is_date(text: str) -> bool:
    return bool(datetime.date.fromisoformat(text)) and len(text) == 10


def is_time(text: str) -> bool:
    return bool(datetime.time.fromisoformat(text)) and len(text) == 8


def is_instant(text: str) -> bool:
    return text[10] == "T" and text[-1] == "Z" and is_date(text[:10]) and is_time(text[11:-1])


def matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text) is not None


def is_uuid(text: str) -> bool:
    return str(uuid.UUID(text)) == text and uuid.UUID(text).version == 4 and uuid.UUID(text).variant == uuid.RFC_4122


def is_number(text: str) -> bool:
    """Spelled as JSON, without trailing zeros."""
    return re.fullmatch(r"-?(0|[1-9]\d*)(\.\d*[1-9])?", text) is not None and text != "-0"


WORD = f"({'|'.join(WORDS)})"
NAMES = {
    "words": "draw_words",
    "identifiers": "draw_identifier",
    "times": "draw_time",
    "addresses": "draw_address",
    "numbers": "draw_number",
}
FORMS: dict[str, list[Callable[[str], bool]]] = {
    "words": [
        matches(WORD), lambda text: text == text.capitalize() and text.lower() in WORDS, matches(f"{WORD} {WORD}"),
        matches(f"{WORD}-{WORD}"),
    ],
    "identifiers": [matches(f"{WORD}_{WORD}"), lambda text: text.isupper() and text.lower() in WORDS,
                    matches(rf"{WORD}\d{{1,2}}")],
    "times": [is_date, is_instant, lambda text: text[-1] == "Z" and is_time(text[:-1]), is_time,
              matches(r"PT([1-9]|[1-5]\d)M"), matches(r"P([1-9]|[12]\d)D")],
    "addresses": [
        matches(rf"{WORD}\.{WORD}@example\.org"), matches(rf"{WORD}\.example\.org"), matches(rf"/{WORD}/\d"),
        matches(rf"https://{WORD}\.example\.org/{WORD}"), lambda text: bool(ipaddress.IPv4Address(text)), is_uuid,
        lambda text: str(ipaddress.IPv6Address(text)) == text and text.startswith("2001:db8::"),
    ],
    "numbers": [is_number] * (6 + 8 + 5),
}  # fmt: skip


@pytest.mark.parametrize("kind", FORMS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_readable_texts_are_well_formed(kind: str, data: st.DataObject) -> None:
    made = list(getattr(readable_texts, NAMES[kind])(Dice(data)))
    assert len(made) == len(FORMS[kind])
    for text, form in zip(made, FORMS[kind]):
        assert form(text), text


class Extreme:
    """The dice at one end."""

    def __init__(self, most: bool) -> None:
        self.most = most

    def integers(self, low: int, high: int) -> int:
        return high - 1 if self.most else low

    def random(self) -> float:
        return 1 - 2.0**-53 if self.most else 0.0


@pytest.mark.parametrize(("most", "whole", "multiple"), [
    (False, [0, 1, 10, 100, 1960, -100], 1), (True, [9, 99, 999, 9999, 2039, -1], 19),
])  # fmt: skip
def test_numbers_of_all_sizes_are_offered(most: bool, whole: list[int], multiple: int) -> None:
    """Digits, counts, years, less than 0; parts of 1 and of 100; round ones."""
    made = list(readable_texts.draw_number(Extreme(most)))  # type: ignore[arg-type]
    assert made[:6] == [str(number) for number in whole]
    assert made[6:14] == (["1", "100"] * 4 if most else ["0"] * 8)
    assert made[14:] == [str(step * multiple) for step in (5, 10, 25, 100, 1000)]


def test_the_first_kind_that_fits_is_taken() -> None:
    rng = np.random.default_rng(0)
    assert [kind for kinds in readable_texts.KINDS for kind in kinds] == [
        getattr(readable_texts, NAMES[name]) for name in FORMS
    ]
    for pattern, form in (
        ("[a-z]+|[0-9]+", matches(WORD)), ("[a-z_]*[_][a-z]*|[0-9]+", matches(f"{WORD}_{WORD}")),
        (r"\d\d\d\d-\d\d-\d\d|\d+", is_date), (r"(\d+\.){3}\d+|[1-9]\d", matches(r"(\d+\.){3}\d+")),
        (r"-?[1-9]\d{0,3}", is_number),
    ):  # fmt: skip
        for _ in range(20):
            assert form(readable_texts.draw_readable_text(to_dfa(pattern), 0, None, rng))


@settings(max_examples=40, deadline=None)
@given(low=st.integers(0, 40), more=st.none() | st.integers(0, 12), data=st.data())
def test_phrases_are_words(low: int, more: int | None, data: st.DataObject) -> None:
    high = None if more is None else low + more
    made = readable_texts.draw_phrase(low, high, Dice(data))  # type: ignore[arg-type]
    assert low <= len(made) and (high is None or len(made) <= high)
    assert made == made.strip()
    *whole, last = made.lower().split(" ")
    assert set(whole) <= set(WORDS)
    assert any(word.startswith(last[:-1]) for word in WORDS)
    if high is None:
        assert last in WORDS


PATTERNS = ["[a-c]x|[0-9é]{2}", "[^a]", ".", "[\\u0000-\\u001f\\u0100]", "[A-Za-z]*", "\\ud7ff|\\ue000|\\U0010ffff"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_palettes_are_the_likings_of_characters(pattern: str) -> None:
    """Of each class: all of its characters and no others, each with every liking that there is for it."""
    dfa = to_dfa(pattern)
    table, found = dfa.table, build_palette(dfa)
    edges = sorted({*table.bounds, 0x110000, *(edge for _, *pair in LIKING for edge in pair)})
    for code in sorted({edge + step for edge in edges for step in (-1, 0) if 0 <= edge + step < 0x110000}):
        kind = table.classes[int(np.searchsorted(table.bounds, code, side="right")) - 1]
        wanted = sorted(liking for liking, first, last in LIKING if first <= code < last)
        for other, (_, ranges) in enumerate(found):
            here = sorted(liking for liking, first, last in ranges if first <= code < last)
            assert here == (wanted if other == kind else [])
    for liking, ranges in found:
        assert liking == max((one for one, _, _ in ranges), default=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_surrogates_are_no_characters(seed: int) -> None:
    made = draw_character(((1.0, 0xD700, 0xE100), (1e-3, 0x61, 0x62)), np.random.default_rng(seed))
    assert made == "a" or 0xD700 <= ord(made) < 0xD800 or 0xE000 <= ord(made) < 0xE100


def test_the_liked_characters_come_more_often() -> None:
    rng, ranges = np.random.default_rng(0), ((9.0, 0x61, 0x62), (1.0, 0x41, 0x42))
    made = [draw_character(ranges, rng) for _ in range(2000)]
    assert set(made) == {"a", "A"}
    assert 1700 < made.count("a") < 1900
    classes = [walk_towards(to_dfa("[a-z]|[A-Z]"), 1, rng) for _ in range(2000)]
    assert 1560 < sum(map(str.islower, classes)) < 1780  # 10 to 2


@pytest.mark.parametrize(("pattern", "target", "length"), [
    ("(ab)*", 7, 8), ("(ab)*", 6, 6), ("a{0,4}", 9, 4), ("a{0,4}", 2, 2), ("[ab]*", 5, 5), ("x(yy)+", 1, 3),
    ("a|bbb", 2, 3),
])  # fmt: skip
def test_random_walks_have_about_the_requested_length(pattern: str, target: int, length: int) -> None:
    """Walk up to the target length, then follow the shortest completion."""
    dfa = to_dfa(pattern)
    for seed in range(20):
        made = walk_towards(dfa, target, np.random.default_rng(seed))
        assert dfa.accepts(made)
        assert len(made) == length or (pattern == "a|bbb" and made == "a")


def test_no_text_of_exactly_so_many_is_a_limit() -> None:
    with pytest.raises(LimitError, match="-1 characters"):
        walk_towards(Dfa.from_strings(["a"]).repeat(1), -1, np.random.default_rng(0))


def test_walks_are_longer_than_the_least_by_some() -> None:
    """Geometric beyond the least, MORE_MEAN on average, 2,000 walks; bounds cut it off."""
    rng, dfa = np.random.default_rng(0), to_dfa("[#%]*")
    lengths = [len(walk_to_length(dfa, 3, None, rng)) for _ in range(2000)]
    assert min(lengths) == 3
    assert abs(np.mean(lengths) - 3 - MORE_MEAN) < 0.7
    assert {len(walk_to_length(dfa, 3, 5, rng)) for _ in range(100)} == {3, 4, 5}
    assert {len(walk_to_length(to_dfa("([#%]{2})*"), 3, 6, rng)) for _ in range(100)} == {4, 6}
