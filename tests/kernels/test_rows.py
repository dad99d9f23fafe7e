"""Rows and suffix tries of leaf states, against advancing every token byte by byte.

A row is made by a walk that skips whole subtrees where nothing is refused, and begins as the row of any string where
hardly anything is, or as that of the tokens of some groups of bytes; here each token goes through the leaf's
transitions alone.
"""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings, strategies as st

from constrain import ConstrainError, Vocabulary
from constrain.automata.dfa import Dfa
from constrain.frontends.regex import to_dfa
from constrain.kernels import layout as at
from constrain.vocabulary import mask_table
from constrain.vocabulary.mask_table import MaskTable

PIECES = [
    b"a", b"b", b"f", b"0", b"7", b" ", b"-", b"/", b"@", b".", b'"', b"\\", b"\\n", b"\\u", b"00e9", b"\xc3", b"\xa9",
    "é".encode(), "漢".encode(), b"\xe6\xbc", b"\xa2", b"ab", b"deadbeef", b"0123456789abcdef", b"x" * 9, b" " * 40,
    b'a"', b'",', b'":', b'ab": "', b'\\"', b'\\""', b"x@y.z", b'x@y.z",', b"/api/", b'/api/x"', b'0123456789abcdef"',
    b"\x01", b"\xff", b'xxxxxxxxx"', b"x" * 9 + b"@" + b"x" * 9, b"\\u00e9", b'\\u0022"', "éé漢".encode(),
    b"\xc2\xa0", "\u00a0a".encode(), b"x" * 30,
]  # fmt: skip
PATTERNS = [
    ".*", ".*@.*", ".*[0-9a-f]{16}.*", "(?!.*[0-9a-f]{16}).*", "/api/.*", "[a-z]+", "(?!.*x{12}).*", ".{0,20}", "[^/]*",
    "(?!.*[@/]).*", "(?s:.)*é(?s:.)*", "a|b.*", "(?!.* {30}).*", "x*", "[a-f0-9]{8}-[a-f0-9]{4}", "[a-zé漢]{2,9}@x?",
    "[^a]{3}", ".{2}x.*", "[ab]{4}([b-x]|é)*", "[^\\s]+", "([a-z]+/)*", "[b-y]{17}.*", "[^\\u2028]*",
    "[\\u0100-\\uffff]*", "[^\\u3042é]*", "(?s:.){0,20}", "b(?s:.){5,9}",
]  # fmt: skip


def followed(table: MaskTable, state: int, token: bytes) -> tuple[bool, int | None]:
    """Whether a token stays inside the leaf from a state, and how many of its bytes close it."""
    following, leaves = table.arrays[at.LEAF_NEXT], table.arrays[at.LEAVES]
    for place, byte in enumerate(token):
        table.expand(state)
        state = int(following[256 * state + byte])
        if state < 0:
            return False, None
        if leaves[state * at.LEAF_W + at.LEAF_DECODER] >> at.KIND == at.DONE:
            return False, place + 1
    return True, None


def may_end_inside(table: MaskTable, state: int, token: bytes) -> bool:
    """Whether the leaf may end between two bytes of a token."""
    following, leaves = table.arrays[at.LEAF_NEXT], table.arrays[at.LEAVES]
    for byte in token[:-1]:
        table.expand(state)
        state = int(following[256 * state + byte])
        if state < 0 or leaves[state * at.LEAF_W + at.LEAF_FLAGS] & at.LEAF_EXITS:
            return state >= 0
    return False


@pytest.mark.parametrize("mode", [at.JSON_STRING, at.JSON_INSIDE, at.UTF8])
@pytest.mark.parametrize("budget", [mask_table.SUFFIX_BUDGET, -1])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_row_holds_the_tokens_that_stay_inside(
    pattern: str, budget: int, mode: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mask_table, "SUFFIX_BUDGET", budget)
    vocabulary = Vocabulary.from_tokens([*PIECES, None], (len(PIECES),))
    table = MaskTable(vocabulary)
    if mode == at.JSON_INSIDE:  # from which its rows may begin
        table.row(table.start(Dfa.any_text(), at.JSON_STRING))
    todo, seen = [table.start(to_dfa(pattern), mode)], set[int]()
    while todo and len(seen) < 60:
        state = todo.pop(0)
        if state in seen:
            continue
        seen.add(state)
        table.expand(state)
        following = table.arrays[at.LEAF_NEXT][256 * state : 256 * state + 256]
        todo += sorted(set(following[following >= 0].tolist()) - seen)
        record = table.arrays[at.LEAVES][state * at.LEAF_W : (state + 1) * at.LEAF_W]
        if record[at.LEAF_ROW] == -2:
            continue
        table.row(state)
        row = table.arrays[at.ROWS][record[at.LEAF_ROW] * table.words :][: table.words]
        stored = [bool(row[t >> 5] >> (t & 31) & 1) for t in range(len(PIECES))]
        taken = [followed(table, state, piece) for piece in PIECES]
        assert stored == [inside for inside, _ in taken], (pattern, state)
        if record[at.LEAF_SUFFIXES] >= 0:
            first, last = record[at.LEAF_SUFFIXES], record[at.LEAF_SUFFIXES_END]
            trie, tokens = table.arrays[at.TRIE], table.arrays[at.TRIE_TOKENS]
            leaving = set(tokens[2 * trie[2 * first + 1] : 2 * trie[2 * last + 1] : 2].tolist())
            if mode == at.JSON_STRING:
                assert leaving == {t for t, (_, closed) in enumerate(taken) if closed is not None}, (pattern, state)
            else:
                assert leaving == {t for t, one in enumerate(PIECES) if may_end_inside(table, state, one)}, state


CLASSES = st.sampled_from([
    "[a-z]", "[a-f0-9]", "[^/]", "[^\\s]", "x", "é", "[ab@]", ".", "[-_.]", "[é-漢]", "[A-Za-z]", "[^\\u2028]", "[1-5]",
    "(?s:.)",
])  # fmt: skip
COUNTS = st.sampled_from(["", "*", "+", "?", "{2}", "{1,3}", "{0,18}"])
PARTS = st.lists(st.tuples(CLASSES, COUNTS).map("".join), min_size=1, max_size=3).map("".join)
TOKENS = st.lists(
    st.lists(st.sampled_from([*'abfxyzAZ059@/-_. "\\\n', "é", "漢", "\u2028", "\u00a0"]), max_size=7).map(
        lambda characters: "".join(characters).encode()
    )
    | st.binary(max_size=3)
    | st.tuples(st.sampled_from("ax é"), st.integers(5, 30), st.sampled_from(["", '"', "/"])).map(
        lambda parts: (parts[0] * parts[1] + parts[2]).encode()
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=90)
@given(st.lists(PARTS, min_size=1, max_size=2).map("|".join), TOKENS, st.data())
def test_rows_of_any_patterns_and_vocabularies(pattern: str, pieces: list[bytes], data: st.DataObject) -> None:
    """The same of drawn patterns and tokens, some of which begin or end within a character, in states on the way."""
    pieces = sorted({*pieces, *(bytes([byte]) for byte in b'abx0@/"'), "漢".encode()} - {b""})
    table = MaskTable(Vocabulary.from_tokens([*pieces, None], (len(pieces),)))
    try:
        state = table.start(to_dfa(pattern), at.JSON_STRING)
    except ConstrainError:
        return
    for _ in range(4):
        table.expand(state)
        record = table.arrays[at.LEAVES][state * at.LEAF_W : (state + 1) * at.LEAF_W]
        if record[at.LEAF_ROW] != -2:
            table.row(state)
            row = table.arrays[at.ROWS][record[at.LEAF_ROW] * table.words :][: table.words]
            taken = [followed(table, state, piece) for piece in pieces]
            assert [bool(row[t >> 5] >> (t & 31) & 1) for t in range(len(pieces))] == [inside for inside, _ in taken]
            needs = [needed(table, state, piece) for piece in pieces]
            assert record[at.LEAF_LONGEST] >= max([need for need in needs if need < float("inf")], default=0)
        following = table.arrays[at.LEAF_NEXT][256 * state : 256 * state + 256]
        live = sorted(set(following[following >= 0].tolist()))
        if not live:
            return
        state = data.draw(st.sampled_from(live))


def test_the_longest_token_of_a_row_ends_in_any_state() -> None:
    """More states are reached than are followed: what the others need is not known to be less."""
    digits_and_letters = string.digits + string.ascii_uppercase + string.ascii_lowercase
    alternatives = "|".join(f"{one}x{{{number}}}" for number, one in enumerate(digits_and_letters))
    pieces = [*(bytes([byte]) for byte in b'ab1z"'), b"ab1a", b"ab1z", b"abc"]
    table = MaskTable(Vocabulary.from_tokens([*pieces, None], (len(pieces),)))
    state = table.start(to_dfa(f"[a-zA-Z0-9]{{3}}({alternatives})"), at.JSON_STRING)
    table.expand(state)
    table.row(state)
    longest = max(need for piece in pieces if (need := needed(table, state, piece)) < float("inf"))
    assert table.arrays[at.LEAVES][state * at.LEAF_W + at.LEAF_LONGEST] >= longest == 4 + 61


@pytest.mark.parametrize("pattern", PATTERNS)
def test_rows_are_ordered_by_the_length_of_tokens(pattern: str) -> None:
    """Characters that are read, and at least as many as must still follow; by the transitions alone."""
    vocabulary = Vocabulary.from_tokens([*PIECES, None], (len(PIECES),))
    table = MaskTable(vocabulary)
    state = table.start(to_dfa(pattern), at.JSON_STRING)
    table.expand(state)
    leaves, orders = table.arrays[at.LEAVES], table.arrays[at.BY_LENGTH]
    record = leaves[state * at.LEAF_W : (state + 1) * at.LEAF_W]
    if record[at.LEAF_ROW] == -2:
        return
    table.row(state)
    lengths = {t: needed(table, state, piece) - record[at.LEAF_NEED] for t, piece in enumerate(PIECES)}
    for level in range(at.LEVELS):
        table.order(state << at.LEVEL_BITS | level)
        first = int(record[at.LEAF_SHORT if level < at.LONG_LEVEL else at.LEAF_BY_LENGTH])
        tokens = orders[first + at.LISTED_TOKENS :]
        for room in range(orders[first + at.LISTED_FROM], min(orders[first + at.LISTED_TO], 30) + 1):
            places = orders[first + at.LISTED_OFFSETS + room : first + at.LISTED_OFFSETS + room + 2]
            ordered = set(tokens[slice(*places)].tolist())
            assert ordered == {t for t, length in lengths.items() if length == room}, (pattern, room)


def needed(table: MaskTable, state: int, token: bytes) -> float:
    """Characters that a token takes and that must follow it; infinite if it does not stay inside."""
    characters = 0
    for byte in token:
        table.expand(state)
        flags = int(table.arrays[at.LEAVES][state * at.LEAF_W + at.LEAF_FLAGS])
        characters += bool(flags & at.LEAF_BOUNDARY)
        state = int(table.arrays[at.LEAF_NEXT][256 * state + byte])
        if state < 0 or table.arrays[at.LEAVES][state * at.LEAF_W + at.LEAF_DECODER] >> at.KIND == at.DONE:
            return float("inf")
    return characters + int(table.arrays[at.LEAVES][state * at.LEAF_W + at.LEAF_NEED])
