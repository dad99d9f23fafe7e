"""Members that must differ: masks against the enumeration of all texts of small arrays.

The items are texts from a short list, so that every array of up to three of them can be listed, the ones with equal
values dropped by a plain comparison, and "some completion exists" is "some listed text begins so".
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings, strategies as st

from constrain import Limits, Style, compile, json_schema
from constrain.automata.dfa import Dfa
from constrain.base.errors import LimitError, TokenRefused
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.decoding.generation_loop import generate_text
from constrain.engine.uniqueness.json_equality import parse_value
from constrain.engine.uniqueness.value_continuations import find_continuations
from constrain.engine.uniqueness.value_index import ValueIndex
from constrain.grammar.nodes import (
    EMPTY,
    Choice,
    Grammar,
    JsonString,
    Literal,
    Member,
    Node,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Unique,
)
from constrain.vocabulary.vocabulary import Vocabulary
from tests.engine.test_mask_oracle import list_tokens
from tests.text_acceptance import accepts_text

SPELLINGS = [
    rb'"a"', rb'"\u0061"', rb'"ab"', rb'"\n"', '"é"'.encode(), rb'"\u00e9"', rb'"\ud83d\ude00"', '"😀"'.encode(), b'""',
    b"1", b"1.0", b"10e-1", b"10", b"1e1", b"-1", b"0", b"-0.0", b"12", b"true", b"false", b"null",
    b"[]", b"[1]", b"[1.0]", b"[ 1]", b"[1,2]", b"{}", b'{"a":1}', b'{"a":1,"b":2}', b'{"b":2, "a":1.00}', b'{"b":2}',
]  # fmt: skip


def make_comparable(value: Any) -> Any:
    """A JSON value in which equal ones are equal, by Python's own arithmetic."""
    if isinstance(value, bool) or value is None:
        return str(value), ()
    if isinstance(value, (int, Fraction)):
        return "number", Fraction(value)
    if isinstance(value, str):
        return "string", value
    if isinstance(value, list):
        return "array", tuple(map(make_comparable, value))
    return "object", tuple(sorted((name, make_comparable(item)) for name, item in value.items()))


def value(text: bytes) -> Any:
    return make_comparable(json.loads(text, parse_float=Fraction, parse_int=Fraction))


def make_chain(items: Node, low: int, high: int) -> tuple[Node, dict[Any, Node]]:
    """low to high members with commas, one rule for each number of them."""
    rules: dict[Any, Node] = {}
    for done in range(high, 0, -1):
        rest = Sequence((Literal(b","), Member(items), Rule(("more", done + 1))))
        options: list[Node] = ([EMPTY] if done >= low else []) + ([rest] if done < high else [])
        rules["more", done] = options[0] if len(options) == 1 else Choice(tuple(options))
    return Sequence((Member(items), Rule(("more", 1)))), rules


def list_array_texts(items: list[bytes], low: int, high: int, unique: bool) -> set[bytes]:
    """All arrays of low to high of these items (low > 0)."""
    out = set()
    for size in range(low, high + 1):
        for chosen in itertools.product(items, repeat=size):
            if not unique or len({value(text) for text in chosen}) == size:
                out.add(b"[" + b",".join(chosen) + b"]")
    return out


def check_masks(
    node: Node, rules: dict[Any, Node], texts: set[bytes], vocabulary: Vocabulary, data: st.DataObject
) -> None:
    """Walks along listed texts and compares every mask."""
    viable = {text[:end] for text in texts for end in range(len(text) + 1)}
    constraint = compile_grammar(Grammar(node, rules), vocabulary)
    matcher, text = constraint.matcher(), b""
    for _ in range(12):
        wanted = {k for k, token in enumerate(vocabulary.tokens) if token and text + token in viable}
        found = list_tokens(matcher.mask()) - set(vocabulary.eos_ids)
        note(f"{text!r}")
        assert found == wanted, (
            text,
            [vocabulary.tokens[k] for k in wanted - found],
            [vocabulary.tokens[k] for k in found - wanted],
        )
        assert matcher.is_complete == (text in texts)
        assert all(matcher.allows(token) == (token in wanted) for token in range(1, vocabulary.size, 7))
        if not wanted:
            return
        longest = sorted(wanted, key=lambda token: (-len(vocabulary.tokens[token] or b""), token))
        token = data.draw(st.one_of(st.sampled_from(longest[:4]), st.sampled_from(longest)), label="token")
        matcher.advance(token)
        text += vocabulary.tokens[token] or b""


@st.composite
def vocabularies(draw: st.DrawFn, items: list[bytes]) -> Vocabulary:
    """Single bytes, and tokens cut out of arrays of these items."""
    random_state = random.Random(draw(st.integers(0, 2**16)))
    extra: list[bytes | None] = []
    for _ in range(40):
        text = b"[" + b",".join(random_state.choices(items, k=3)) + b"]"
        start = random_state.randrange(len(text))
        extra.append(text[start : start + random_state.randint(2, 9)])
    single = [bytes([byte]) for byte in range(256)]
    return Vocabulary.from_tokens([None, *dict.fromkeys(extra), *single], (0,))


chosen = st.lists(st.sampled_from(SPELLINGS), min_size=1, max_size=6, unique=True)


def are_distinct(items: list[bytes]) -> int:
    return len({value(text) for text in items})


@given(chosen, st.integers(1, 3), st.integers(0, 2), st.data())
def test_small_enumerations(items: list[bytes], low: int, more: int, data: st.DataObject) -> None:
    """Also where members run out: the front end promises only that as many as must come can."""
    low = min(low, are_distinct(items))
    high = min(low + more, are_distinct(items), 3)
    body, rules = make_chain(Strings(tuple(sorted(items))), low, high)
    node = Sequence((Literal(b"["), Unique(body), Literal(b"]")))
    check_masks(node, rules, list_array_texts(items, low, high, True), data.draw(vocabularies(items)), data)


@given(chosen, chosen, st.data())
def test_beside_an_array_that_may_repeat(unique: list[bytes], free: list[bytes], data: st.DataObject) -> None:
    """A union: what the one refuses the other may still allow."""
    high = min(3, are_distinct(unique))
    body, rules = make_chain(Strings(tuple(sorted(unique))), 1, high)
    again = Strings(tuple(sorted(free)))
    loose = Sequence((again, Repeat(Sequence((Literal(b","), again)), 1, 1)))
    node = Sequence((Literal(b"["), Choice((Unique(body), loose)), Literal(b"]")))
    texts = list_array_texts(unique, 1, high, True) | list_array_texts(free, 2, 2, False)
    check_masks(node, rules, texts, data.draw(vocabularies(unique + free)), data)


@settings(max_examples=settings.default.max_examples // 3)
@given(chosen.map(lambda items: items[:3]), st.data())
def test_one_inside_the_other(items: list[bytes], data: st.DataObject) -> None:
    """Arrays of different arrays of different items."""
    high = min(2, are_distinct(items))
    body, rules = make_chain(Strings(tuple(sorted(items))), 1, high)
    inner: Node = Sequence((Literal(b"["), Unique(body), Literal(b"]")))
    rules["inner"] = inner
    texts = sorted(list_array_texts(items, 1, high, True))
    outer = Sequence((Member(Rule("inner")), Repeat(Sequence((Literal(b","), Member(Rule("inner")))), 0, None)))
    matching = list_array_texts(texts, 1, 2, True)
    limit = max(map(len, matching))
    # The outer array has no bound: viable are the beginnings of those with two items, and what begins a third.
    constraint = compile_grammar(
        Grammar(Sequence((Literal(b"["), Unique(outer), Literal(b"]"))), rules), data.draw(vocabularies(texts))
    )
    matcher = constraint.matcher()
    for text in data.draw(st.lists(st.sampled_from(sorted(matching)), max_size=3)):
        matcher = constraint.matcher()
        matcher.advance_bytes(text)
        assert matcher.is_complete and len(text) <= limit
    for pair in data.draw(st.lists(st.tuples(st.sampled_from(texts), st.sampled_from(texts)), max_size=4)):
        text = b"[" + b",".join(pair) + b"]"
        assert accepts_text(constraint, text) == (value(pair[0]) != value(pair[1])), text


def test_a_member_that_could_only_end_as_one_that_was_there_is_not_begun() -> None:
    """After [0, no number may begin with 0; after ["ab", the second letter may not be b where only two are allowed."""
    number = Choice((Literal(b"0"), Sequence((Strings((b"1", b"2")), Repeat(Strings((b"0", b"1", b"2")), 0, None)))))
    word = JsonString(Dfa.from_ranges([(ord("a"), ord("c"))]).repeat(2, 2))
    for items, text, wanted in ((number, b"[0,", b"12"), (word, b'["ab","a', b"ac"), (word, b'["aa","ab","a', b"c")):
        body = Sequence((Member(items), Repeat(Sequence((Literal(b","), Member(items))), 0, None)))
        node = Sequence((Literal(b"["), Unique(body), Literal(b"]")))
        matcher = compile_grammar(Grammar(node, {}), Vocabulary.bytes()).matcher()
        matcher.advance_bytes(text)
        found = matcher.next_bytes()
        assert found - {0x5C} == set(wanted), (text, found)


@given(st.sampled_from(SPELLINGS), st.sampled_from(SPELLINGS))
def test_expected_leaves_out_no_byte(text: bytes, other: bytes) -> None:
    """Every beginning of a spelling goes on as `find_continuations` says; one that has become another value differs."""
    for end in range(len(text)):
        following = find_continuations(text[:end], parse_value(text))
        assert following is not None and text[end] in following, (text[:end], following)
    assert (parse_value(text) == parse_value(other)) == (value(text) == value(other))


@pytest.mark.parametrize(
    "pair", [(b"1", b"true"), (b'"1"', b"1"), (b"[]", b"{}"), (b"null", b"false"), (b"0", b"false")]
)
def test_values_of_different_types_differ(pair: tuple[bytes, bytes]) -> None:
    assert parse_value(pair[0]) != parse_value(pair[1])


def test_a_matcher_repeats_the_error_of_an_exhausted_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a text that is generated backs out of it."""
    monkeypatch.setattr("constrain.engine.uniqueness.uniqueness_queries.MOST_TRIED", 0)
    item = Choice((Literal(b'"ab"'), Literal(b'"ca"'), Literal(b'"cb"')))
    body = Sequence((Member(item), Literal(b","), Member(item)))
    constraint = compile_grammar(
        Grammar(Sequence((Literal(b"["), Unique(body), Literal(b"]"))), {}), Vocabulary.bytes()
    )
    matcher = constraint.matcher()
    matcher.advance_bytes(b'["ab","a')
    assert not matcher.is_stuck and not matcher.is_complete
    matcher.advance_bytes(b"b")
    assert matcher.is_stuck
    for _ in range(2):
        with pytest.raises(LimitError, match="gave up"):
            matcher.mask()

    class Insists:
        """A model that would write ["ab","ab"]."""

        def next_logprobs(self, prefixes: list[list[int]]) -> np.ndarray:
            rows = np.full((len(prefixes), constraint.vocabulary.size), -9.0)
            for row, prefix in zip(rows, prefixes):
                wanted = b'["ab","ab"]'[len(prefix) : len(prefix) + 1]
                row[wanted[0] if wanted else constraint.vocabulary.eos_ids[0]] = 0.0
            return rows - np.log(np.exp(rows).sum(1, keepdims=True))

    out = generate_text(Insists(), constraint, rng=np.random.default_rng(0), max_tokens=20)
    assert out.finish_reason == "complete" and len(set(json.loads(out.data))) == 2


def test_an_exponent_of_any_length_is_a_number() -> None:
    zeros = b"0" * 9_000
    assert parse_value(b"1e1" + zeros) == parse_value(b"10e" + b"9" * 9_000) != parse_value(b"1e-1" + zeros)
    assert parse_value(b"5e0") == parse_value(b"5") and parse_value(b"5e" + zeros) == parse_value(b"50e-1")


plain_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-200, 200),
    st.sampled_from([0.0, -0.5, 0.05, 1e20, 100, 1e-3, 10.0]),
    st.text('aé\\"😀', max_size=3),
    st.lists(st.integers(0, 1), max_size=2),
    st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 1), max_size=2),
)


@given(st.lists(plain_values, max_size=12), st.data())
def test_an_index_finds_what_a_linear_search_finds(some: list[Any], data: st.DataObject) -> None:
    """For every beginning of a spelling of one of the values, or of another value."""
    index, values = ValueIndex(), {parse_value(json.dumps(value).encode()) for value in some}
    for value in values:
        index = index.copy_with(value)
    drawn = data.draw(st.one_of(st.sampled_from(some), plain_values) if some else plain_values)
    text = json.dumps(drawn, ensure_ascii=data.draw(st.booleans())).encode()
    for end in range(len(text) + 1):
        ways = [way for value in values if (way := find_continuations(text[:end], value)) is not None]
        found = index.candidates(text[:end], None, lambda units: None)
        assert found.following == (frozenset().union(*ways) if ways else None)
    assert index.values == values


@pytest.mark.parametrize("make", [lambda k: f"item {k:06}", lambda k: 10**9 + k, lambda k: -k / 7])
def test_strings_and_numbers_cost_no_more_where_there_are_more(make: Callable[[int], Any]) -> None:
    """Many values with a common prefix: the work of finding the possible values of a text does not grow with their
    number.
    """
    spent = []
    for n in (100, 10_000):
        index, units = ValueIndex(), list[int]()
        for k in range(1, n + 1):
            index.add(parse_value(json.dumps(make(k)).encode()))
        text = json.dumps(make(n // 2)).encode()
        for end in range(len(text)):
            index.candidates(text[:end], None, units.append)
        spent.append(sum(units))
    assert spent[1] <= 2 * spent[0] + 100


@pytest.mark.slow
def test_a_step_that_compares_too_much_is_refused_and_the_matcher_stays() -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "object"}}
    constraint = compile(Vocabulary.bytes(), json_schema(schema), style=Style.any(), limits=Limits(work=160_000))
    matcher = constraint.matcher()
    taken = b""
    with pytest.raises(LimitError, match="members that must differ"):
        for byte in b"[" + b",".join(b'{"a":%d}' % k for k in range(5_000)):
            matcher.advance_bytes(bytes([byte]))
            taken += bytes([byte])
    assert len(taken) > 500
    matcher.rollback(400)
    assert matcher.mask().any()


def spell_number(value: Fraction, rng: random.Random) -> str:
    """Return one of the texts of a decimal: with zeros behind it, with an exponent, or as it is."""
    exponent = rng.choice([None, None, *range(-2, 3)])
    size, places = abs(value) / Fraction(10) ** (exponent or 0), 0
    while (size * 10**places).denominator != 1:
        places += 1
    places += rng.randrange(3)
    digits = str(int(size * 10**places)).rjust(places + 1, "0")
    text = digits[: len(digits) - places] + ("." + digits[len(digits) - places :] if places else "")
    return ("-" if value < 0 else "") + text + ("" if exponent is None else f"e{exponent}")


@pytest.mark.parametrize("seed", range(16))
def test_numbers_of_few_values_that_must_differ(seed: int) -> None:
    """In any spelling: each array is judged as its values say, byte by byte, and no walk ends where nothing follows.

    A number of few values has infinitely many states, so that the search for another value knows it by less.
    """
    rng = random.Random(seed)
    step = rng.choice([Fraction(one) for one in ("0.15", "0.3", "0.5", "1.5", "0.25", "3", "0.05")])
    low, high = rng.choice([None, Fraction(0), -2 * step]), step * rng.randint(1, 18)
    items: dict[str, Any] = {"type": "number", "multipleOf": float(step), "maximum": float(high)}
    if low is not None:
        items["minimum"] = float(low)
    nested = seed % 3 == 0
    inner = {"type": "array", "items": items, "minItems": 1, "maxItems": 1} if nested else items
    constraint = compile(
        Vocabulary.bytes(), schema={"type": "array", "uniqueItems": True, "items": inner}, style=Style.any()
    )
    values = [step * k for k in range(-3, 19) if step * k <= high and (low is None or step * k >= low)]
    for _ in range(40):
        chosen = [rng.choice([*values[:4], *values]) for _ in range(rng.randint(0, 4))]
        spelled = [spell_number(value, rng) for value in chosen]
        text = "[" + ",".join(f"[{one}]" if nested else one for one in spelled) + "]"
        matcher = constraint.matcher()
        taken = all(matcher.allows(byte) and not matcher.advance(byte) for byte in text.encode())
        assert (taken and matcher.is_complete) == (len(set(chosen)) == len(chosen)), text
    matcher = constraint.matcher()
    for _ in range(40):
        allowed = [byte for byte in range(33, 127) if matcher.allows(byte)]
        if not allowed:
            assert matcher.is_complete
            break
        matcher.advance(rng.choice([byte for byte in allowed if byte in b",[1235e.-"] or allowed))


# ---- tokens that hold several members


JOINED = [
    b"".join(parts)
    for count in (2, 3)
    for items in itertools.product((b'"a"', b'"b"', b'""'), repeat=count)
    for parts in [[b",".join(items), end] for end in (b"", b",", b"]")]
]
"""Two or three whole strings, which one token of a real vocabulary may hold, and how such a token ends."""


@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["default", "any"])
@pytest.mark.parametrize("begun", [b"", b'"', b'"a', b'"c",', b'"a",', b'"a","b'])
def test_a_token_of_several_members_is_allowed_if_all_differ(style: Style, begun: bytes) -> None:
    inside = begun[-1:] not in (b"", b",")
    rests = [b'",' + one if inside else one for one in JOINED]
    tokens = [*(bytes([b]) for b in range(256)), *rests, *(b"[" + one for one in JOINED)]
    vocabulary = Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    matcher = compile(vocabulary, schema=schema, style=style).matcher()
    matcher.advance_bytes(b"[" + begun)
    allowed = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
    for number, token in enumerate(tokens):
        other = matcher.fork()
        try:
            other.advance_bytes(token)
            right = True
        except TokenRefused:
            right = False
        assert bool(allowed[number]) == right, (begun, token)


NESTED = {
    "type": "array", "uniqueItems": True,
    "items": {"anyOf": [
        {"enum": [1, "b"]}, {"$ref": "#"},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False},
    ]},
}  # fmt: skip
nested_values: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([1, "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.fixed_dictionaries({}, optional={"a": st.lists(inner, max_size=2)}),
    max_leaves=6,
)


def all_differ(value: Any) -> bool:
    """Whether the members of each list of a value differ, as a list of values that are compared pair by pair."""
    if isinstance(value, dict):
        return all(map(all_differ, value.values()))
    if not isinstance(value, list):
        return True
    return all(one != other for one, other in itertools.combinations(value, 2)) and all(map(all_differ, value))


@given(st.lists(nested_values, max_size=4), st.data())
def test_lists_within_lists_with_white_space_anywhere(value: list[Any], data: st.DataObject) -> None:
    """Each list within a member has separate members, and the space before them is not part of any value."""
    parts = re.findall(r'"\w*"|\d+|[^\s\w"]', json.dumps(value))
    space = st.sampled_from(["", "", " ", "\t", "\n "])
    text = "".join(part + data.draw(space) for part in parts).encode()
    note(text.decode())
    matcher = compile(Vocabulary.bytes(), schema=NESTED, style=Style.any()).matcher()
    try:
        matcher.advance_bytes(text)
    except TokenRefused:
        accepted = False
    else:
        accepted = matcher.is_complete
    assert accepted == all_differ(value)
