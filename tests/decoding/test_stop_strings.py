"""Stop strings cut a text where the slow definition cuts it, whatever its tokens are, and stream nothing beyond."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain import ArgumentError, Vocabulary, compile
from constrain.decoding.generation_loop import Piece, generate_text
from constrain.decoding.stop_strings import StopFinder, StopTracker, as_stop_strings
from tests.model_factory import TableModel

PIECES = [
    b"a",
    b"b",
    b"ab",
    b"aba",
    b"\xc3",
    b"\xa9",
    b"\xc3\xa9",
    b"a\xc3",
    b"\xa9b",
    b"bb\xc3\xa9a",
    b'"',
    b'"a',
    b'",',
]
VOCABULARY = Vocabulary.from_tokens([*PIECES, b",", None], eos_ids=[len(PIECES) + 1])
PATTERNS = ["[abé]{0,30}", "([ab]{2}|é)*", "(a|b|é)*b", '("[abé]*",)*"[abé]*"']
STOPS = st.lists(
    st.sampled_from(["a", "ab", "ba", "bab", "é", "éa", "aé", '"', '",', "bb", "zz"]), min_size=1, max_size=3
)


def first_stop(text: bytes, stops: list[str], accepts: Any) -> tuple[int, int, str] | None:
    """The definition: (end, start, string) of the first occurrence whose preceding text is accepted."""
    for end in range(1, len(text) + 1):
        for stop in sorted(stops, key=len, reverse=True):
            start = end - len(stop.encode())
            if text[:end].endswith(stop.encode()) and accepts(text[:start]):
                return end, start, stop
    return None


@given(st.integers(0, 10_000), st.sampled_from(PATTERNS), STOPS, st.integers(4, 40))
@settings(max_examples=150, deadline=None)
def test_texts_are_cut_as_defined(seed: int, pattern: str, stops: list[str], most: int) -> None:
    constraint, lm = compile(VOCABULARY, regex=pattern), TableModel(VOCABULARY.size, seed)
    lm.table[:, VOCABULARY.eos_ids[0]] -= 2.0
    lm.table -= np.logaddexp.reduce(lm.table, axis=1, keepdims=True)
    accepts = re.compile(pattern).fullmatch

    def accepted(data: bytes) -> bool:
        return accepts(data.decode()) is not None

    whole = generate_text(lm, constraint, rng=np.random.default_rng(seed), max_tokens=most)
    pieces: list[Piece] = []
    out = generate_text(
        lm, constraint, rng=np.random.default_rng(seed), max_tokens=most, stop=as_stop_strings(stops),
        stream=pieces.append,
    )  # fmt: skip
    expected = first_stop(whole.data, stops, accepted)
    assert "".join(piece.text for piece in pieces).encode() == out.data
    assert accepted(out.data)
    if expected is None:
        assert (out.data, out.tokens, out.stop) == (whole.data, whole.tokens, None)
        assert out.finish_reason == whole.finish_reason
        return
    end, start, stop = expected
    assert out.data == whole.data[:start]
    assert out.stop == stop
    assert out.finish_reason in ("stop", "budget")
    assert out.tokens == whole.tokens[: len(out.tokens)]
    assert len(VOCABULARY.text(out.tokens[:-1])) < end <= len(VOCABULARY.text(out.tokens))
    assert out.stats.tokens == len(out.tokens)
    assert out.logprob == pytest.approx(lm.logprob(out.tokens))


@given(st.binary(max_size=40).map(lambda data: bytes(byte % 3 + 97 for byte in data)), st.data())
@settings(max_examples=200, deadline=None)
def test_the_finder_is_the_definition_however_the_text_is_fed(text: bytes, data: Any) -> None:
    stops = data.draw(st.lists(st.sampled_from(["a", "ab", "abc", "bca", "cc", "aaa"]), min_size=1, unique=True))
    refused = data.draw(st.sets(st.integers(0, 40), max_size=20))
    cuts = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text))))})
    finder, found, released = StopFinder(stops), None, 0
    for start, end in zip(cuts, cuts[1:]):
        found = finder.feed(text[start:end], lambda position: position not in refused)
        if found is not None:
            break
        pending = finder.count_pending(lambda position: position not in refused)
        released = end - pending
        assert released >= 0
    expected = first_stop(text, stops, lambda before: len(before) not in refused)
    assert (found and (found.start, found.stop)) == (expected and expected[1:])
    assert found is None or released <= found.start, "nothing of a stop string was released"


def test_an_occurrence_within_json_is_ordinary_text() -> None:
    vocabulary = Vocabulary.bytes()
    constraint = compile(vocabulary, regex=r'"[^"]*"( and so on)?')
    tracker, matcher = StopTracker((" and",), vocabulary), constraint.matcher()
    for byte in b'"you and I" and':
        matcher.advance(byte)
        assert tracker.advance(byte, matcher) == (matcher.tokens == list(b'"you and I" and'))
    assert tracker.cut(b'"you and I" and') == b'"you and I"'


def test_names_of_special_tokens_are_text() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", None, None], [3], special={"<turn>": 2, "<end>": 3})
    tracker = StopTracker(("<turn>",), vocabulary)
    assert not tracker.advance(0, None)
    assert tracker.advance(2, None)
    assert tracker.match is not None and tracker.match.start == 1
    within = StopTracker(("urn",), vocabulary)
    assert within.advance(2, None), "without a constraint every text is accepted"


@pytest.mark.parametrize(
    ("stop", "error", "message"),
    [
        (5, TypeError, "stop is 5"),
        (["a", 5], TypeError, "stop is"),
        ("", ArgumentError, "empty"),
        (["a", ""], ArgumentError, "empty"),
        (["\ud800"], ArgumentError, "surrogate"),
        ([str(i) for i in range(2000)], ArgumentError, "2000 strings"),
    ],
)
def test_wrong_stops_are_named(stop: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        as_stop_strings(stop)


def test_stops_are_one_string_or_several() -> None:
    assert as_stop_strings(None) == ()
    assert as_stop_strings("ab") == ("ab",)
    assert as_stop_strings(["a", "b", "a"]) == ("a", "b")
