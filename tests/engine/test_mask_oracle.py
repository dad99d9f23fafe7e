"""The engine against the slow oracle: a token is in the mask if and only if some completion exists.

Random grammars, random vocabularies, random walks along allowed tokens. At each place every token is compared, and
`is_complete`, `allows`, `next_bytes` and `forced` with what the oracle says of the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from hypothesis import assume, given, note, settings, strategies as st

from constrain.automata.dfa import Dfa
from constrain.automata.listed_words import ListedWords
from constrain.base.errors import LimitError, TokenRefused, VocabularyError
from constrain.base.options import Limits
from constrain.compilation.constraint_compiler import compile, compile_grammar
from constrain.engine.matcher import Matcher
from constrain.frontends.regex import to_dfa, to_grammar
from constrain.grammar.nodes import (
    EMPTY,
    Chars,
    Choice,
    Grammar,
    JsonString,
    Layout,
    Literal,
    Node,
    Object,
    Property,
    Repeat,
    Sequence,
    Strings,
)
from constrain.kernels import layout as at
from constrain.vocabulary.vocabulary import Vocabulary
from tests import grammar_factory as make
from tests.grammar_oracle import Reference
from tests.token_mask_oracle import list_tokens

STEPS = 6


def describe_tokens(tokens: Iterable[int], vocabulary: Vocabulary) -> list[str]:
    return [f"{token}={vocabulary.tokens[token]!r}" for token in sorted(tokens)]


def compare_masks(matcher: Matcher, oracle: Reference, vocabulary: Vocabulary, text: bytes) -> set[int]:
    """Check all results of the matcher at one position. Return the allowed tokens that match text."""
    complete = oracle.accepts(text)
    wanted = oracle.mask(text, vocabulary.tokens)
    found = list_tokens(matcher.mask())
    ends = set(vocabulary.eos_ids)
    assert matcher.is_complete == complete, text
    assert found & ends == (ends if complete else set()), text
    found -= ends
    assert found == wanted, (
        f"after {text!r}: missing {describe_tokens(wanted - found, vocabulary)}, "
        f"too many {describe_tokens(found - wanted, vocabulary)}"
    )
    assert matcher.next_bytes() == oracle.next_bytes(text), text
    assert matcher.is_finished == (complete and not wanted), text
    forced = matcher.forced()
    for end in range(len(forced)):
        here = text + forced[:end]
        assert not oracle.accepts(here), (here, forced)
        assert oracle.next_bytes(here) == {forced[end]}, (here, forced)
    here = text + forced
    assert oracle.accepts(here) or len(oracle.next_bytes(here)) != 1 or len(forced) > 4000, ("more is forced", here)
    return found


def walk(grammar: Grammar, vocabulary: Vocabulary, data: st.DataObject) -> None:
    """Compares at the start and along a random path of allowed tokens."""
    oracle = Reference(grammar)
    assume(make.sound(grammar))
    matcher = compile_grammar(grammar, vocabulary).matcher()
    text = b""
    for _ in range(STEPS):
        allowed = compare_masks(matcher, oracle, vocabulary, text)
        refused = set(range(vocabulary.size)) - allowed - (set(vocabulary.eos_ids) if oracle.accepts(text) else set())
        for token in data.draw(st.lists(st.sampled_from(sorted(refused)), max_size=3), label="refused"):
            assert not matcher.allows(token)
            with pytest.raises(TokenRefused):
                matcher.advance(token)
        if not allowed:
            return
        longest = sorted(allowed, key=lambda token: (-len(vocabulary.tokens[token] or b""), token))
        token = data.draw(st.one_of(st.sampled_from(longest[:6]), st.sampled_from(longest)), label="token")
        assert matcher.allows(token)
        note(f"{text!r} + {vocabulary.tokens[token]!r}")
        matcher.advance(token)
        text += vocabulary.tokens[token] or b""


@given(make.rules, make.vocabularies("rules"), st.data())
def test_rules(grammar: Grammar, vocabulary: Vocabulary, data: st.DataObject) -> None:
    walk(grammar, vocabulary, data)


@given(make.mixed, make.vocabularies("rules"), st.data())
def test_rules_with_leaves_that_count(grammar: Grammar, vocabulary: Vocabulary, data: st.DataObject) -> None:
    walk(grammar, vocabulary, data)


@given(make.characters, make.vocabularies("characters"), st.data())
def test_characters(grammar: Grammar, vocabulary: Vocabulary, data: st.DataObject) -> None:
    walk(grammar, vocabulary, data)


@given(make.numbers, make.vocabularies("numbers"), st.data())
def test_numbers(grammar: Grammar, vocabulary: Vocabulary, data: st.DataObject) -> None:
    walk(grammar, vocabulary, data)


@settings(max_examples=settings.default.max_examples // 3)  # the oracle takes its time over keys
@given(make.objects, make.vocabularies("objects"), st.data())
def test_objects(grammar: Grammar, vocabulary: Vocabulary, data: st.DataObject) -> None:
    walk(grammar, vocabulary, data)


PARTS = st.sampled_from(
    r"a b [ab] [^a] . \d \w \s \x41 é [à-ü] 😀 (?:ab|a) (a|b)* a+? b{2,3} (?:é|a){2} [ab]{0,3} (?i:b) x? "
    r"(?:a|ab)(?:bc|c) (?:) [a-c]{3,} (?:ab){1,2} (?:a{2}|b){2,}".split()
)


@given(st.lists(PARTS, min_size=1, max_size=4), make.vocabularies("characters"), st.data())
def test_regexes(parts: list[str], vocabulary: Vocabulary, data: st.DataObject) -> None:
    """Also against `re`: texts that the matcher accepts along the path match, prefixes that it refuses do not."""
    pattern = "".join(parts)
    grammar = to_grammar(pattern)
    walk(grammar, vocabulary, data)
    oracle = Reference(grammar)
    for text in data.draw(st.lists(st.text("abcxéà😀A1 \n", max_size=6), max_size=8)):
        assert oracle.accepts(text.encode()) == bool(re.fullmatch(pattern, text)), (pattern, text)


@given(make.regular, make.poor_vocabularies("rules"), st.data())
def test_a_vocabulary_that_cannot_spell_everything(
    grammar: Grammar, vocabulary: Vocabulary, data: st.DataObject
) -> None:
    """Only tokens from which other tokens reach the end are allowed."""
    oracle = Reference(grammar)
    assume(make.sound(grammar))
    matcher, text = compile_grammar(grammar, vocabulary).matcher(), b""
    for _ in range(4):
        wanted = oracle.spelled_mask(text, vocabulary.tokens)
        if not wanted and not matcher.is_complete:
            with pytest.raises(VocabularyError):
                matcher.mask()
            return
        found = list_tokens(matcher.mask()) - set(vocabulary.eos_ids)
        assert found == wanted, (text, describe_tokens(wanted, vocabulary), describe_tokens(found, vocabulary))
        assert {token for token in range(len(vocabulary) - 1) if matcher.allows(token)} == wanted
        if not wanted:
            return
        token = data.draw(st.sampled_from(sorted(wanted)), label="token")
        matcher.advance(token)
        text += vocabulary.tokens[token] or b""


def test_a_search_for_tokens_that_end_the_text_is_bounded_by_work() -> None:
    """No token closes the object, and names grow without end, so each token leads to another set."""
    vocabulary = Vocabulary.from_tokens([b'{"', b"a", b'": 1, "', None], eos_ids=[3])
    counts = []
    for work in (100_000, 400_000):
        schema = {"type": "object", "additionalProperties": {"type": "integer"}}
        matcher = compile(vocabulary, schema=schema, limits=Limits(work=work)).matcher()
        with pytest.raises(LimitError, match=f"{work // 2:,} units, which is the part of Limits.work"):
            matcher.mask()
        counts.append(int(matcher._valid_state_cache().arrays[at.HEAD][at.N_SETS]))
    assert 1_000 < counts[0] < 2 * counts[0] < counts[1] < 50_000


BOUNDS = st.tuples(st.sampled_from([0, 1, 3, 127, 130]), st.sampled_from([0, 1, 2, 5, None])).map(
    lambda pair: (pair[0], None if pair[1] is None else pair[0] + pair[1])
)
EXTENSIBLE = [language for language in make.LANGUAGES if not language.is_empty and language.extensible()]


@settings(max_examples=settings.default.max_examples // 4)
@given(st.sampled_from(EXTENSIBLE), BOUNDS, st.sampled_from(["utf8", "json", "string", "rounds"]), st.data())
def test_long_counts(dfa: Dfa, bounds: tuple[int, int | None], kind: str, data: st.DataObject) -> None:
    """Far from a bound and close to it: characters of texts, rounds of repetitions."""
    low, high = bounds
    assume(not dfa.with_length(low, high).is_empty)
    node: Node
    if kind == "rounds":
        node = Repeat(Chars(dfa.with_length(1, 1), "utf8"), low, high)
        assume(not dfa.with_length(1, 1).is_empty)
    elif kind == "string":
        node = JsonString(dfa, low, high)
    else:
        node = Chars(dfa, "utf8" if kind == "utf8" else "json", low, high)
    grammar = Grammar(Sequence((node, Literal(b"a"))), {})
    vocabulary = data.draw(make.vocabularies("characters"), label="vocabulary")
    oracle, matcher, text = Reference(grammar), compile_grammar(grammar, vocabulary).matcher(), b""
    far = data.draw(st.sampled_from([0, 1, 60, 125, 126, 127, 128, 129, 130, 131]), label="far")
    favourite = data.draw(st.sampled_from([97, 92, 0xC3, 0xF0]), label="favourite")
    for _ in range(far * 2):
        may = oracle.next_bytes(text) - {34}
        if not may or len(text) >= 2 * far:
            break
        byte = bytes([favourite if favourite in may else min(may, key=lambda b: (b not in b"abn", b))])
        matcher.advance_bytes(byte)
        text += byte
    for _ in range(3):
        allowed = sorted(compare_masks(matcher, oracle, vocabulary, text))
        if not allowed:
            return
        token = data.draw(st.sampled_from(allowed), label="token")
        matcher.advance(token)
        text += vocabulary.tokens[token] or b""


# ---- what the machines above have found


TIGHT = Layout(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)


def assert_oracle_agrees(node: Node, *texts: bytes) -> None:
    """Compares after every byte of these texts, all of which the oracle calls viable."""
    oracle, vocabulary = Reference(Grammar(node, {})), Vocabulary.bytes()
    for text in texts:
        matcher = compile_grammar(oracle.grammar, vocabulary).matcher()
        compare_masks(matcher, oracle, vocabulary, b"")
        for end in range(len(text)):
            assert oracle.viable(text[: end + 1])
            matcher.advance_bytes(text[end : end + 1])
            compare_masks(matcher, oracle, vocabulary, text[: end + 1])


def test_no_escape_inside_a_character_of_a_declared_key() -> None:
    """Spelled with any escapes: after the first byte of `é` only its second may come."""
    node = Object((Property('é"', Literal(b"1")),), (), TIGHT, 1, None, "schema", "any")
    assert_oracle_agrees(node, '{"é\\"":1}'.encode(), rb'{"\u00e9\u0022":1}')


def test_listed_words_are_spelled_with_any_escapes() -> None:
    """One of them begins like another, one is empty, one needs escapes: among others, and counted in a repetition."""
    words = JsonString(ListedWords(["", "é", "éa", "b\n", "😀", "a", "\\"]))
    texts = (rb'"\u00e9\u0061"', rb'"b\n"', rb'"b\u000A"', rb'"\ud83d\uDE00"', rb'"\\"', '"éa"'.encode(), b'""')
    assert_oracle_agrees(words, *texts)
    others = Choice((words, JsonString(Dfa.from_strings(["a", "c"]).star()), Literal(b'"d"')))
    assert_oracle_agrees(Repeat(Sequence((others, Literal(b","))), 2, 3), rb'"\u0061","cac","d",', rb'"\u00E9","",')


def test_only_forced_bytes_are_allowed_after_a_full_string() -> None:
    """A string that has all its characters: the quote, and what follows it."""
    assert_oracle_agrees(Sequence((JsonString(Dfa.any_text(), 3, 4), Literal(b"}"))), '"# é'.encode() + b'b"}')


def test_a_token_that_leads_nowhere_is_not_allowed() -> None:
    poor = Vocabulary.from_tokens([b"a", b"b", b"aa", None], (3,))
    matcher = compile_grammar(Grammar(Strings((b"ac", b"ba")), {}), poor).matcher()
    assert list_tokens(matcher.mask()) == {1} and not matcher.allows(0) and matcher.allows(1)


def test_tokens_with_a_common_continuation_are_allowed() -> None:
    """Two spellings of the same text: the search for a completion reaches one state by both."""
    poor = Vocabulary.from_tokens([b"abxa", b")", b"a", b"b", b"ba", b"aa", None], (6,))
    node = Sequence((Literal(b")aba)"), Strings((b"a", b"ba"))))
    matcher = compile_grammar(Grammar(node, {}), poor).matcher()
    assert list_tokens(matcher.mask()) == {1}
    matcher.advance_bytes(b")a")
    assert list_tokens(matcher.mask()) == {3, 4}


def test_a_state_cache_too_small_for_a_text_makes_progress_or_raises() -> None:
    """A text with more sets than fit into `Limits.state_cache_bytes`: accepted anyway, or LimitError."""
    text = bytes(index * 7919 % 251 for index in range(5_000))
    matcher = compile_grammar(Grammar(Literal(text), {}), Vocabulary.bytes(), Limits(state_cache_bytes=1)).matcher()
    try:
        matcher.advance_bytes(text)
    except LimitError as error:
        assert "state_cache_bytes" in str(error)
    else:
        assert matcher.is_complete


def test_a_character_that_no_byte_can_begin_is_not_allowed() -> None:
    """E0 and F0 begin no character of one or two bytes: where only those would fit, they may not come."""
    node = JsonString(to_dfa("[aA][12].*[zZ]", match="search"), 0, 8)
    matcher = compile_grammar(Grammar(node, {}), Vocabulary.bytes()).matcher()
    matcher.advance_bytes(b'"xxxxA')
    reachable = set()
    for byte in matcher.next_bytes():
        fork = matcher.fork()
        fork.advance_bytes(bytes([byte]))
        reachable |= {byte} if fork.next_bytes() else set()
    assert reachable == matcher.next_bytes() and not reachable & {0xE0, 0xF0}
