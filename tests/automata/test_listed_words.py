"""Listed words are the Dfa of these words, whose arrays are built only if something asks for them."""

from __future__ import annotations

from hypothesis import given, strategies as st

from constrain import Style, Vocabulary, compile
from constrain.automata.dfa import Dfa
from constrain.automata.listed_words import ListedWords

words = st.lists(st.text("abé😀", max_size=3), min_size=1, max_size=5)


@given(words, words)
def test_they_are_an_automaton(one: list[str], other: list[str]) -> None:
    listed, plain = ListedWords(one), Dfa.from_strings(one)
    assert listed == plain and listed.key == plain.key and hash(listed) == hash(plain)
    assert not listed.is_endless
    assert listed.union(ListedWords(other)) == Dfa.from_strings([*one, *other])


def test_masks_do_not_need_the_arrays() -> None:
    made = list[ListedWords]()
    original = ListedWords.__init__

    def record(self: ListedWords, words: list[str]) -> None:
        original(self, words)
        made.append(self)

    ListedWords.__init__ = record  # type: ignore[assignment, method-assign]
    try:
        schema = {"properties": {"a": {"enum": ["x", "xy"]}}, "items": {"enum": ["x", "z", 1]}}
        for text in (rb'{"a":"\u0078y"}', b'["z", 1]'):
            matcher = compile(Vocabulary.bytes(), schema=schema, style=Style.any()).matcher()
            for byte in text:
                matcher.mask()
                matcher.advance_bytes(bytes([byte]))
            assert matcher.is_complete
    finally:
        ListedWords.__init__ = original  # type: ignore[method-assign]
    assert made and not any("record" in one.__dict__ for one in made)
