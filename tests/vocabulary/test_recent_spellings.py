"""What `Vocabulary.tokenize` remembers: bounded, and never shared with a caller."""

from __future__ import annotations

from constrain.vocabulary.text_tokenisation import LONGEST_SPELLING, MOST_SPELLINGS, RecentSpellings
from constrain.vocabulary.vocabulary import Vocabulary


def test_a_second_call_returns_the_same_tokens_in_a_list_of_its_own() -> None:
    calls: list[str] = []

    def encode(text: str) -> list[int]:
        calls.append(text)
        return [0 if letter == "a" else 1 for letter in text]

    vocabulary = Vocabulary.from_tokens([b"a", b"b", None], [2], encode=encode)
    first = vocabulary.tokenize(b"abba")
    count = len(calls)
    first.append(7)
    assert vocabulary.tokenize(b"abba") == [0, 1, 1, 0]
    assert len(calls) == count


def test_recent_spellings_are_bounded() -> None:
    known = RecentSpellings()
    known.keep(b"a" * (LONGEST_SPELLING + 1), [1])
    assert not known
    for number in range(3 * MOST_SPELLINGS):
        known.keep(b"%d" % number, [number])
        assert len(known) <= MOST_SPELLINGS
    assert known[b"%d" % number] == (number,)
