"""Undeclared keys of a class with few names: no prefix is allowed that can only become a key that is already
present.
"""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import Phase, given, settings, strategies as st

from constrain.automata.dfa import Dfa
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.grammar.nodes import EMPTY, Grammar, Layout, Literal, NameClass, Object
from constrain.vocabulary.vocabulary import Vocabulary
from tests.engine.test_mask_oracle import list_tokens

WORDS = ["", "a", "ab", "abc", "b", "é", "è", "éa", "ß", "😀", "😁", '"', "\\", "\n", "a\nb", "\u20ac", "\u20ad"]
TIGHT = Layout(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)


def spelled(name: str, choice: random.Random) -> bytes:
    """A key in some spelling: characters as they are, or by escapes of either kind and in either case."""
    out = []
    for char in name:
        units = char.encode("utf-16-be").hex()
        escape = "".join("\\u" + units[k : k + 4] for k in range(0, len(units), 4))
        forms = [escape, escape.upper().replace("\\U", "\\u"), json.dumps(char, ensure_ascii=False)[1:-1]]
        out.append(choice.choice([*forms, forms[-1], forms[-1]]))
    return ('"' + "".join(out) + '":1').encode()


def vocabulary_of(texts: list[bytes], choice: random.Random) -> Vocabulary:
    """Single bytes and pieces of the texts."""
    extra: list[bytes | None] = []
    for text in texts:
        start = choice.randrange(len(text))
        extra += [text[start : start + size] for size in (2, 3, 4, 6) if start + size <= len(text)]
    return Vocabulary.from_tokens([None, *dict.fromkeys(extra), *(bytes([byte]) for byte in range(256))], (0,))


languages = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=7, unique=True).map(Dfa.from_strings),
    st.just(Dfa.from_strings(["q"]).union(Dfa.from_strings(["b"]).concatenate(Dfa.any_text()))),
    st.just(Dfa.from_strings(["", "ab", "é"]).union(Dfa.from_strings(["aé"]).concatenate(Dfa.any_text()))),
    st.just(Dfa.from_ranges([(0x61, 0x63)]).repeat(2, 2)),
)


@pytest.mark.slow
@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])  # what fails is short enough, and shrinking is slow
@given(languages, st.lists(st.sampled_from(WORDS), max_size=2, unique=True), st.booleans(), st.randoms())
def test_no_key_is_begun_that_cannot_be_new(
    language: Dfa, excluded: list[str], demanded: bool, choice: random.Random
) -> None:
    free = [name for name in language.enumerate(12) if name not in excluded]
    if len(free) < 3:
        return
    high = len(free) - 1
    node = Object((), (NameClass(language, Literal(b"1"), demanded),), TIGHT, 0, high, excluded=tuple(excluded))
    texts = [
        b"{" + b",".join(spelled(name, choice) for name in choice.sample(free, choice.randint(1, min(high, 3)))) + b"}"
        for _ in range(6)
    ]
    vocabulary = vocabulary_of(texts, choice)
    constraint = compile_grammar(Grammar(node, {}), vocabulary)
    for text in texts:  # nothing that may come is masked
        matcher, place = constraint.matcher(), 0
        while place < len(text):
            found = list_tokens(matcher.mask())
            fitting = [k for k, token in enumerate(vocabulary.tokens) if token and text.startswith(token, place)]
            assert set(fitting) <= found, (text[:place], [vocabulary.tokens[k] for k in set(fitting) - found])
            token = choice.choice(fitting)
            assert matcher.allows(token)
            matcher.advance(token)
            place += len(vocabulary.tokens[token] or b"")
        assert matcher.is_complete
    for _ in range(3):  # nothing that is not masked leads nowhere
        matcher, text = constraint.matcher(), b""
        while not matcher.is_complete or (len(text) < 120 and choice.random() < 0.5):
            found = list_tokens(matcher.mask()) - {0}
            assert found or matcher.is_complete, text
            if not found:
                break
            assert {
                token for token in choice.sample(sorted(found), min(3, len(found))) if not matcher.allows(token)
            } == set()
            likely = [k for k in found if b'"' in (vocabulary.tokens[k] or b"")] if len(text) > 60 else []
            token = choice.choice(likely or sorted(found))
            matcher.advance(token)
            text += vocabulary.tokens[token] or b""
            if len(text) > 400:  # a language without an end: it need not come to one by chance
                break
        if matcher.is_complete:
            names = [name for name, _ in json.loads(text, object_pairs_hook=list)]
            assert len(set(names)) == len(names) and not set(names) & set(excluded), text
            assert all(map(language.accepts, names)) and (names or not demanded), text


@pytest.mark.parametrize("names", [["ab", "ax"], ["b", "ab", "ac", "a"], ["ac", "ab", "ad"]])
@pytest.mark.parametrize("few_first", [True, False])
def test_prefixes_are_judged_for_each_class_apart(names: list[str], few_first: bool) -> None:
    """The keys that begin with a prefix may all be taken in one class, and not in another one."""
    few = Dfa.from_strings(["ab", "b"])
    many = Dfa.from_ranges([(0x61, 0x7A)]).repeat(1, 2).subtract(few)
    classes = [NameClass(few, Literal(b"1")), NameClass(many, Literal(b"2"))]
    node = Object((), tuple(classes if few_first else classes[::-1]), TIGHT, 0, 9)
    vocabulary = Vocabulary.from_tokens([None, *(bytes([byte]) for byte in range(256)), b"ab", b"ax"], (0,))
    matcher = compile_grammar(Grammar(node, {}), vocabulary).matcher()
    members = [f'"{name}":{1 if few.accepts(name) else 2}' for name in names]
    matcher.advance_bytes(("{" + ",".join(members) + ',"').encode())
    found = list_tokens(matcher.mask())
    assert found == {token for token in range(1, len(vocabulary.tokens)) if matcher.allows(token)}
    assert vocabulary.tokens.index(b"a") in found
