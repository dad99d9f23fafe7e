"""The trie of a vocabulary, and what leaf states make of it, against prefixes and tokens in plain Python.

What is followed byte by byte are the transitions of leaf states, which `test_kernel_leaves` is about.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from constrain import Vocabulary
from constrain.automata.dfa import Dfa
from constrain.frontends.regex import to_dfa
from constrain.kernels import byte_rows, layout as at, trie as kernels, vocabulary_trie
from constrain.vocabulary import mask_table
from constrain.vocabulary.byte_groups import BYTE_GROUPS
from constrain.vocabulary.mask_table import SUFFIX_BUDGET, MaskTable
from constrain.vocabulary.token_order import order_tokens

PIECES = [
    b"a", b"b", b"x", b"0", b" ", b"~", b"\x7f", b"/", b"@", b'"', b"\\", b"\\n", b"\\u00", b"e9", b"\xc3", b"\xa9",
    b"",     "é".encode(), "漢".encode(), b"\xe6\xbc", b"ab", b"deadbeef", b'ab": "', b'\\"', b"\x01", b"\xf0\x9f",
    b"\\ud83d\\ude00", "\u2028".encode(), b"\xe2\x80", "\xa0é".encode(), b"`", b"?", b"@@@@", b"____",
    b"ab" * 14, b" a" * 13, "é".encode() * 13, b'a"' + b"b" * 25,
]  # fmt: skip
tokens_lists = st.lists(st.lists(st.sampled_from(PIECES), max_size=3).map(b"".join), min_size=1, max_size=40)


@pytest.fixture(autouse=True, scope="module")
def small_tables() -> Iterator[None]:
    """Tables of masks that reserve little memory."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("LEAF_STATES", 1 << 12), ("ROW_BYTES", 1 << 16), ("TRIE_WORDS", 1 << 16),
                            ("LEX_READERS", 256), ("LEX_WORDS", 1 << 16)):  # fmt: skip
            patch.setattr(mask_table, name, value)
        yield


def table_of(tokens: Sequence[bytes]) -> MaskTable:
    return MaskTable(Vocabulary.from_tokens([*tokens, None], (len(tokens),)))


def entries(table: MaskTable, node: int) -> list[int]:
    """The tokens that end at a node."""
    trie, tokens = table.arrays[at.TRIE], table.arrays[at.TRIE_TOKENS]
    return [int(tokens[2 * k]) for k in range(trie[2 * node + 1], trie[2 * node + 3])]


def children(table: MaskTable, node: int) -> dict[int, int]:
    """The child by each byte; they are in order of bytes."""
    trie, edges = table.arrays[at.TRIE], table.arrays[at.TRIE_EDGES]
    found = edges[trie[2 * node] : trie[2 * node + 2]].tolist()
    assert [edge & 255 for edge in found] == sorted({edge & 255 for edge in found})
    return {edge & 255: edge >> 8 for edge in found}


@given(tokens_lists)
def test_the_nodes_of_the_trie_are_the_prefixes_of_tokens_in_order(tokens: list[bytes]) -> None:
    table = table_of(tokens)
    counts = table.arrays[at.TABLE]
    prefixes = sorted({token[:end] for token in tokens for end in range(len(token) + 1)} | {b""})
    assert counts[at.N_TRIE] == len(prefixes) + 1 and counts[at.N_TRIE_EDGES] == len(prefixes) - 1
    assert counts[at.N_TRIE_TOKENS] == sum(map(bool, tokens))
    assert counts[at.LONGEST] == max(map(len, tokens))
    for node, prefix in enumerate(prefixes):
        below = [one for one in prefixes if one.startswith(prefix) and one != prefix]
        wanted = {one[-1]: prefixes.index(one) for one in below if len(one) == len(prefix) + 1}
        assert children(table, node) == wanted
        assert entries(table, node) == [t for t, token in enumerate(tokens) if token == prefix != b""]
        assert table.arrays[at.TRIE_END][node] == node + 1 + len(below)
        read = {byte for one in below for byte in one[len(prefix) :]}
        places = table.arrays[at.TRIE_EDGES][: counts[at.N_TRIE_EDGES]] >> 8
        place = 1 + places.tolist().index(node) if node else 0
        record = table.arrays[at.BELOW][at.BELOW_W * place :][: at.BELOW_W]
        assert named_bytes(record[: at.BELOW_HEIGHT]) == {b for b in read if 32 <= b < 128 or b >= 0xC0}
        assert record[at.BELOW_HEIGHT] & at.HEIGHT == max((len(one) - len(prefix) for one in below), default=0)
        is_well_formed = all(may_begin_text(one[len(prefix) :]) for one in below)
        assert bool(record[at.BELOW_HEIGHT] & at.WELL_FORMED) == is_well_formed
    assert not table.arrays[at.TRIE_TOKENS][1 : 2 * int(counts[at.N_TRIE_TOKENS]) : 2].any()


def named_bytes(record: NDArray[np.int32]) -> set[int]:
    """The bytes of a bit set as BELOW and LEAF_STAYING have it: 32 .. 127 and 0xC0 .. 0xFF."""
    bits = np.flatnonzero(np.unpackbits(record.copy().view(np.uint8), bitorder="little")).tolist()
    return {32 + k if k < 96 else 0xC0 + k - 96 for k in bits}


def may_begin_text(data: bytes) -> bool:
    """Whether bytes are UTF-8 without control characters, up to an incomplete character at the end."""
    try:
        getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return not any(byte < 32 for byte in data)


# ---- leaf states ----------------------------------------------------------------------------------------------------

PATTERNS = [
    ".*", ".*@.*", "(?!.*[0-9a-f]{8}).*", "/.*", "[a-z]+", "(?!.*x{12}).*", ".{0,20}", "[^/]*", "(?s:.)*é(?s:.)*",
    "a|b.*", "x*", "[ -~]*", "[^@`]*", "(?s:.)*", "(.{5})*", "(?s:.){3,9}", "[ab@/]{2,}", "(?!.*(@|ab|/)).*",
    "\\S+", "[^ ].*[^ ]", "[a-z0-9é]{1,12}", "(?s:[^漢])*x", ".{2}[a-z]{6}.*", "[a-z0-9@_é]{1,100}:[0-9a-f]{4}",
    "[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\\.[a-z0-9]+)*", "([a-z]{1,9}[@/]?[a-zé]){1,9}", "([^ @]{9}[^ ]@)*",
    ".{0,27}", "|([^ ]+ +){0,14}[^ ]+", "(?s:.){25,40}", ".{0,26}x*",
]  # fmt: skip
MODES = [at.JSON_STRING, at.JSON_INSIDE, at.UTF8]


def field(table: MaskTable, leaf: int, which: int) -> int:
    return int(table.arrays[at.LEAVES][leaf * at.LEAF_W + which])


def kind_of(table: MaskTable, leaf: int) -> int:
    return field(table, leaf, at.LEAF_DECODER) >> at.KIND


def path(table: MaskTable, leaf: int, token: bytes) -> Iterator[tuple[int, int, int]]:
    """The leaf state after each byte of a token as far as it goes, the characters begun until then, and ESCAPED.

    The quote that ends a string is no character.
    """
    characters, escaped = 0, 0
    for byte in token:
        table.expand(leaf)
        begun = bool(field(table, leaf, at.LEAF_FLAGS) & at.LEAF_BOUNDARY)
        leaf = int(table.arrays[at.LEAF_NEXT][256 * leaf + byte])
        if leaf < 0:
            return
        kind = kind_of(table, leaf)
        characters += begun and kind != at.DONE
        escaped |= at.ESCAPED * (kind == at.ESCAPE)
        yield leaf, characters, escaped


def leaves_from(table: MaskTable, start: int, most: int) -> Iterator[int]:
    """Some leaf states, breadth first."""
    todo, seen = [start], {start}
    while todo and most:
        leaf = todo.pop(0)
        table.expand(leaf)
        following = table.arrays[at.LEAF_NEXT][256 * leaf : 256 * leaf + 256]
        fresh = sorted(set(following[following >= 0].tolist()) - seen)
        todo, seen, most = todo + fresh, seen | set(fresh), most - 1
        yield leaf


def row_of(table: MaskTable, leaf: int, tokens: Sequence[bytes]) -> set[int]:
    row = table.arrays[at.ROWS][field(table, leaf, at.LEAF_ROW) * table.words :][: table.words]
    return {t for t in range(32 * table.words) if row[t >> 5] >> (t & 31) & 1}


def staying(table: MaskTable, leaf: int, tokens: Sequence[bytes]) -> dict[int, int]:
    """Return the tokens that end inside the leaf, each with the length that it needs: characters, and what must
    follow.
    """
    found = {}
    for number, token in enumerate(tokens):
        steps = list(path(table, leaf, token))
        if token and len(steps) == len(token) and kind_of(table, steps[-1][0]) != at.DONE:
            found[number] = steps[-1][1] + field(table, steps[-1][0], at.LEAF_NEED)
    return found


def leaving(table: MaskTable, leaf: int, tokens: Sequence[bytes]) -> Counter[tuple[bytes, int, int]]:
    """(the suffix of a token after a position where the leaf may end, the token, characters before it | ESCAPED).

    A token that ends where the leaf may also go on is not among them: it stays inside.
    """
    found = Counter[tuple[bytes, int, int]]()
    for number, token in enumerate(tokens):
        for size, (after, characters, escaped) in enumerate(path(table, leaf, token), 1):
            if field(table, after, at.LEAF_FLAGS) & at.LEAF_EXITS:
                if size < len(token) or field(table, leaf, at.LEAF_FLAGS) & at.LEAF_CLOSES:
                    found[token[size:], number, characters | escaped] += 1
    return found


def remainders(table: MaskTable, leaf: int) -> Counter[tuple[bytes, int, int]]:
    """The same, read from the merged trie of a leaf state."""
    trie, tokens = table.arrays[at.TRIE], table.arrays[at.TRIE_TOKENS]
    found, todo = Counter[tuple[bytes, int, int]](), [(field(table, leaf, at.LEAF_SUFFIXES), b"")]
    nodes = 0
    while todo:
        node, rest = todo.pop()
        nodes += 1
        for k in range(trie[2 * node + 1], trie[2 * node + 3]):
            found[rest, int(tokens[2 * k]), int(tokens[2 * k + 1])] += 1
        todo += [(child, rest + bytes([byte])) for byte, child in children(table, node).items()]
    assert nodes == field(table, leaf, at.LEAF_SUFFIXES_END) - field(table, leaf, at.LEAF_SUFFIXES)
    return found


FEW_CHARACTERS = [
    *map(chr, range(32, 128)),
    *"\x80\xa0é\u07ff\u0800\u2028漢\ud7ff\ue000\ufeff\uffff😀\U00010000\U0010ffff",
]
LAYERS = 4


def assert_staying_bytes(table: MaskTable) -> None:
    """Assert of all leaf states: none of the characters that stay is refused, for as many bytes as it says or LAYERS.

    Nor may the leaf end after one of them, nor need more characters than it says.
    """
    following = table.arrays[at.LEAF_NEXT]
    for leaf in range(int(table.arrays[at.TABLE][at.N_LEAVES])):
        depth = field(table, leaf, at.LEAF_STAYING_DEPTH)
        staying = named_bytes(table.arrays[at.LEAVES][leaf * at.LEAF_W + at.LEAF_STAYING :][: at.BELOW_HEIGHT])
        characters = [one.encode() for one in FEW_CHARACTERS if one.encode()[0] in staying]
        layer = {leaf}
        for _ in range(min(depth, LAYERS)):
            reached = set()
            for state in layer:
                for character in characters:
                    after = state
                    for byte in character:
                        table.expand(after)
                        after = int(following[256 * after + byte])
                        assert after >= 0 and not field(table, after, at.LEAF_FLAGS) & at.LEAF_EXITS
                        assert field(table, after, at.LEAF_NEED) <= field(table, leaf, at.LEAF_STAYING_NEED)
                    reached.add(after)
            layer = reached


def assert_leaf(table: MaskTable, leaf: int, tokens: Sequence[bytes]) -> None:
    """Assert that the row, the suffix trie and the tokens by length of a leaf state are those of its single tokens."""
    stays = staying(table, leaf, tokens)
    assert row_of(table, leaf, tokens) == set(stays)
    room, most = field(table, leaf, at.LEAF_LONGEST), max(stays.values(), default=0)
    assert room >= most  # it may be too much, since it is not worked out for each token of a subtree
    assert remainders(table, leaf) == leaving(table, leaf, tokens)
    assert_staying_bytes(table)
    for first in (field(table, leaf, at.LEAF_SHORT), field(table, leaf, at.LEAF_BY_LENGTH)):
        if first >= 0:
            assert_by_length(
                table, first, {t: needed - field(table, leaf, at.LEAF_NEED) for t, needed in stays.items()}
            )


def assert_by_length(table: MaskTable, first: int, lengths: dict[int, int]) -> None:
    """Assert that the list of tokens at this place has those of each length between its least and its most one."""
    orders, last = table.arrays[at.BY_LENGTH], at.LENGTH_CLASSES - 1
    least, most = int(orders[first + at.LISTED_FROM]), int(orders[first + at.LISTED_TO])
    offsets = orders[first + at.LISTED_OFFSETS : first + at.LISTED_TOKENS].tolist()
    tokens = orders[first + at.LISTED_TOKENS :]
    for room in range(at.LENGTH_CLASSES):
        ordered = tokens[offsets[room] : offsets[room + 1]].tolist()
        expected = [t for t, length in lengths.items() if min(length, last) == room]
        assert sorted(ordered) == expected if least <= room <= most else set(ordered) <= set(expected)
    beyond = tokens[offsets[last] : offsets[last + 1]].tolist()
    assert tokens[offsets[last + 1] :][: len(beyond)].tolist() == [lengths[token] for token in beyond]


@settings(max_examples=25)
@given(tokens_lists, st.sampled_from(PATTERNS), st.sampled_from(MODES))
def test_rows_suffix_tries_and_tokens_by_length(tokens: list[bytes], pattern: str, mode: int) -> None:
    tokens = [*tokens, *(b"%c" % byte for byte in range(32, 127))]
    table = table_of(tokens)
    for leaf in list(leaves_from(table, table.start(to_dfa(pattern), mode), 8)):
        if field(table, leaf, at.LEAF_ROW) != -2:
            table.row(leaf)
            table.build_suffixes(leaf)
            for level in range(at.LEVELS - 1, -1, -1):
                table.order(leaf << at.LEVEL_BITS | level)
                assert_leaf(table, leaf, tokens)


@pytest.mark.parametrize(("pattern", "read", "kept", "dropped"), [
    ("[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\\.[a-z0-9]+)*", "a", "az0", "-."),  # refused after each other
    ("[a-z0-9@_]{1,100}:[0-9a-f]{4}", "a", "az0@_", ":"),  # after which most are refused
    ("[a-z]+", "a", "az", "-0"), ("[-@]+", "@", "", "a-"),
])  # fmt: skip
def test_words_are_found_between_separators(pattern: str, read: str, kept: str, dropped: str) -> None:
    table = table_of([bytes([byte]) for byte in range(32, 127)])
    leaf = table.start(to_dfa(pattern), at.JSON_STRING)
    for byte in read.encode():
        leaf = int(table.arrays[at.LEAF_NEXT][256 * leaf + byte])
        table.expand(leaf)
    temp = table.arrays[at.TRIE_TEMP]
    out = len(temp) // 2
    depth = byte_rows.find_words(table.address, leaf, out)
    groups = int(temp[out + at.WORD_GROUPS :][:2].view(np.int64)[0]) if depth else 0
    found = {chr(byte) for byte in range(32, 127) if groups >> int(BYTE_GROUPS[byte]) & 1}
    assert found.issuperset(kept) and not found.intersection(dropped)
    assert depth >= byte_rows.LONG_ENOUGH if kept else not depth


@pytest.mark.parametrize(("pattern", "read", "is_shared"), [
    (r"[\s\S]*b[\s\S]*", "ab", True), (r"[\s\S]*b[\s\S]*", "a", False), ("[^c]*", "b", False), ("b.*", "b", False),
    (r"b[\s\S]*", "bé", True), (r"b[\s\S]*|c", "c", False), (r"b([\s\S]{2,})?", "b", False),
])  # fmt: skip
def test_leaves_that_read_any_text_share_their_lists(pattern: str, read: str, is_shared: bool) -> None:
    tokens = [*PIECES, *(b"%c" % byte for byte in range(32, 127))]
    table = table_of(tokens)
    free = table.start(Dfa.any_text(), at.JSON_STRING)
    leaf = table.start(to_dfa(pattern), at.JSON_STRING)
    for byte in read.encode():
        table.expand(leaf)
        leaf = int(table.arrays[at.LEAF_NEXT][256 * leaf + byte])
    table.row(leaf)
    table.build_suffixes(leaf)
    for level in range(at.LEVELS):
        table.order(leaf << at.LEVEL_BITS | level)
    assert_leaf(table, leaf, tokens)
    for kind in (at.LEAF_SHORT, at.LEAF_BY_LENGTH):
        assert (field(table, leaf, kind) == field(table, free, kind)) == is_shared


@pytest.mark.parametrize("mode", MODES)
def test_suffixes_beyond_the_budget_are_not_merged(mode: int) -> None:
    """It counts the tokens at all positions and below, each of which is a step of work."""
    tokens = [*PIECES, b'"a', b'"ab', b"ab", b"abc"]
    for budget_more in (-1, 0):
        table = table_of(tokens)
        leaf = table.start(to_dfa("[a-z]*"), mode)
        table.expand(leaf)
        work = 0
        for token in tokens:
            work += sum(
                bool(field(table, after, at.LEAF_FLAGS) & at.LEAF_EXITS) for after, *_ in path(table, leaf, token)
            )
        places = kernels.make_row(table.address, leaf, SUFFIX_BUDGET)
        made = kernels.make_suffix_trie(table.address, leaf, places, work + budget_more)
        assert made == field(table, leaf, at.LEAF_SUFFIXES) and (made >= 0) == (budget_more == 0)
        assert made >= 0 or made == -2


# ---- room -----------------------------------------------------------------------------------------------------------


@contextmanager
def lengths(table: MaskTable, **shorter: int) -> Iterator[None]:
    """While the kernels are given shorter slots, the memory beyond them must stay as it is."""
    marks = {}
    for name, length in shorter.items():
        slot = getattr(at, name)
        array = table.arrays[slot]
        marks[slot] = array[length : length + 4096].copy()
        table.context[2 * slot + 1] = length
    yield
    for slot, before in marks.items():
        length = int(table.context[2 * slot + 1])
        assert (table.arrays[slot][length : length + 4096] == before).all(), slot
        table.context[2 * slot + 1] = table.arrays[slot].size


def grown(table: MaskTable, name: str, call: Callable[[], int], least: int = 8) -> None:
    """Call a kernel with growing space in a slot until it suffices: from no free space, or from `least`.

    Until then it says so, and has written nothing that counts.
    """
    counted = {"TRIE": (at.N_TRIE, 2), "TRIE_EDGES": (at.N_TRIE_EDGES, 1), "TRIE_TOKENS": (at.N_TRIE_TOKENS, 2),
               "BY_LENGTH": (at.N_BY_LENGTH, 1), "ROWS": (at.N_ROWS, table.words), "LEAVES": (at.N_LEAVES, at.LEAF_W),
               "LEAF_NEXT": (at.N_LEAVES, 256)}  # fmt: skip
    counts = table.arrays[at.TABLE]
    count, width = counted.get(name, (None, 1))
    first = least if count is None else int(counts[count]) * width
    kept = [field for field, _ in counted.values() if field != at.N_LEAVES]
    before = counts[kept].copy()
    for length in range(first, first + 10_000):
        with lengths(table, **{name: length}):
            result = call()
        if result >= 0:
            return
        assert result == vocabulary_trie.TABLE_IS_FULL and (counts[kept] == before).all()
    raise AssertionError(f"never enough room in {name}")


@pytest.mark.parametrize("pattern", ["(.{2})*", "[ab]+", ".*@"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "slot", ["TRIE_TEMP", "ROWS", "TRIE", "TRIE_EDGES", "TRIE_TOKENS", "BY_LENGTH", "LEAVES", "LEAF_NEXT"]
)
def test_without_space_nothing_is_written_and_the_call_can_be_repeated(pattern: str, mode: int, slot: str) -> None:
    tokens = [piece for piece in PIECES if len(piece) < 5] + [b'"', b'a"', b'a",', b'ab"a', b'b"', b"aab", b"a@"]
    table = table_of(tokens)
    leaf = table.start(to_dfa(pattern), mode)
    places = -1

    def row() -> int:
        nonlocal places
        places = int(kernels.make_row(table.address, leaf, SUFFIX_BUDGET))
        return places

    slots_of_rows = ("TRIE_TEMP", "ROWS", "LEAVES", "LEAF_NEXT")
    if slot in slots_of_rows:
        grown(table, slot, row)
    assert places >= 0 or row() >= 0
    scratch = table.arrays[at.TRIE_TEMP][: 4 + 2 * places].copy()
    table.publish_row(leaf)
    if slot in ("TRIE_TEMP", "TRIE", "TRIE_EDGES", "TRIE_TOKENS"):
        # The places stand in the scratch, so that there is room for them.
        def rest() -> int:
            table.arrays[at.TRIE_TEMP][: len(scratch)] = scratch
            return int(kernels.make_suffix_trie(table.address, leaf, places, 1000))

        grown(table, slot, rest, len(scratch) + 1)
    else:
        table.build_suffixes(leaf)
    if slot in ("TRIE_TEMP", "BY_LENGTH", "LEAVES", "LEAF_NEXT"):
        grown(table, slot, lambda: int(kernels.order_by_length(table.address, leaf, 0, at.ALL_LENGTHS)))
    else:
        table.order(leaf << at.LEVEL_BITS | at.LONG_LEVEL)
    assert_leaf(table, leaf, tokens)


@pytest.mark.parametrize("slot", ["TRIE", "TRIE_EDGES", "TRIE_TOKENS"])
def test_a_trie_is_built_where_there_is_space(slot: str) -> None:
    tokens = [b"abc", b"abd", b"b", b"", b"bcde"]
    vocabulary = Vocabulary.from_tokens([*tokens, None], (len(tokens),))
    wanted, table = MaskTable(vocabulary), MaskTable(vocabulary)
    order = order_tokens(vocabulary.blob, vocabulary.offsets)
    grown(table, slot, lambda: int(vocabulary_trie.build_trie(table.address, order)))
    nodes = int(wanted.arrays[at.TABLE][at.N_TRIE])
    for part, length in ((at.TRIE, 2 * nodes), (at.TRIE_EDGES, nodes - 2)):
        assert (table.arrays[part][:length] == wanted.arrays[part][:length]).all()


@pytest.mark.parametrize("length", [1, 30, 200])
def test_the_bounds_suffice_for_the_trie_of_any_vocabulary(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node for each byte, and the root: this number is reserved, and hardly more is used here."""
    monkeypatch.setattr(mask_table, "TRIE_WORDS", 64 * (length + 1))
    tokens = [b"%c" % byte * length for byte in range(255)]
    assert table_of(tokens).arrays[at.TABLE][at.N_TRIE] == 255 * length + 2
