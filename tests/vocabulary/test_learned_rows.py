"""Learned rows: what is read from disk is what would be made; files are replaced, bounded and not trusted blindly."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain import Style, Vocabulary, compile
from constrain.automata.dfa import Dfa, Table
from constrain.automata.numerals.number_interval import NumberInterval
from constrain.automata.numerals.number_language import NumberLanguage
from constrain.compilation.compile_caches import flush_caches
from constrain.kernels import layout as at
from constrain.vocabulary import learned_row_cache
from constrain.vocabulary.learned_row_cache import SUFFIX
from constrain.vocabulary.learned_rows import LearnedRow, LearnedRows, expand_row, pack_rows, shorten_row, unpack_rows
from constrain.vocabulary.mask_table import MaskTable
from constrain.vocabulary.mask_table_cache import LEAST_TOKENS
from constrain.vocabulary.suffix_tries import SuffixTrie, append_trie, copy_trie

PIECES = [b"a", b"b", b"ab", b"ba", b'"', b'",', b'": ', b"\\", b"\\u00", b"61", b"1", b"12", b".5", b"e", b"-", b"0",
          b"00", "é".encode(), "é".encode()[:1], "é".encode()[1:], b" ", b"]", b"}"]  # fmt: skip
SCHEMAS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "patterns": (
        {"type": "array", "items": {"type": "string", "pattern": "^(ab|b1*)+$|é"}},
        ['["ab","b11", "\\u0061b"', '["é1"]'],
    ),
    "formats": ({"type": "array", "items": {"type": "string", "format": "date"}}, ['["2024-01-31","1']),
    "numbers": (
        {"type": "array", "items": {"type": "number", "minimum": 0.5, "maximum": 120, "multipleOf": 0.25}},
        ["[1.25,12e0,0.5", "[1200e-1]"],
    ),
}


def make_vocabulary() -> Vocabulary:
    """Return a new vocabulary object, large enough for the cache."""
    rng = random.Random(3)
    tokens = {bytes([byte]): None for byte in range(256)}
    while len(tokens) < LEAST_TOKENS + 10:
        tokens[b"".join(rng.choices(PIECES, k=rng.randint(1, 5)))] = None
    return Vocabulary.from_tokens([*tokens, b""], eos_ids=[len(tokens)])


def list_masks(name: str) -> list[bytes]:
    """Return the masks along the texts of a schema, with a new vocabulary and everything on disk afterwards."""
    schema, texts = SCHEMAS[name]
    vocabulary, masks = make_vocabulary(), []
    for style in (Style(), Style.any()):
        for text in texts:
            matcher = compile(vocabulary, schema=schema, style=style).matcher()
            masks.append(matcher.mask().tobytes())
            for byte in text.encode():
                if not matcher.allows(byte):
                    break
                matcher.advance(byte)
                masks.append(matcher.mask().tobytes())
    flush_caches()
    return masks


def read_file(store: Path) -> LearnedRows:
    """Return the content of the only file in a store."""
    (path,) = store.glob(f"*{SUFFIX}")
    found = unpack_rows(memoryview(path.read_bytes())[40:])
    assert found is not None
    return found


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONSTRAIN_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture(scope="module")
def expected() -> dict[str, list[bytes]]:
    """The masks of each schema without any cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONSTRAIN_STORE", "off")
        return {name: list_masks(name) for name in SCHEMAS}


def forbid_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a row is made."""
    monkeypatch.setattr(MaskTable, "_find_exits", lambda *_: pytest.fail("a row was made"))


@pytest.mark.parametrize("name", SCHEMAS)
def test_another_process_makes_no_row(
    name: str, store: Path, expected: dict[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list_masks(name) == expected[name]
    assert read_file(store).states
    forbid_rows(monkeypatch)
    assert list_masks(name) == expected[name]


def test_another_schema_with_the_same_pattern_makes_no_row(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list_masks("patterns")
    forbid_rows(monkeypatch)
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(?:b1*|ab)+$|é"}}}
    matcher = compile(make_vocabulary(), schema=schema).matcher()
    matcher.advance_bytes(b'{"x":"')
    for byte in b"ab":
        matcher.mask()
        matcher.advance(byte)


def test_states_of_numbers_of_any_length_have_names() -> None:
    """Python refuses to write integers of more than 4,300 digits as text."""
    table, names = MaskTable(VOCABULARY), set[bytes | None]()
    for multiple in (1, 10**4_000 + 1, 10**4_000 + 3):
        one = NumberInterval.of(None, None, False, False, [Fraction(multiple)], [])
        start = table.start(NumberLanguage.of([one]), at.NUMBER)
        digit = int(table.arrays[at.LEAF_NEXT][256 * start + ord("7")])
        zeros = int(table.arrays[at.LEAF_NEXT][256 * start + ord("0")])
        names |= {table.name_state(start), table.name_state(digit), table.name_state(zeros)}
    assert len(names) == 9 and None not in names


@pytest.mark.parametrize("damage", ["cut", "changed", "foreign", "empty", "folder"])
def test_a_damaged_file_is_ignored_and_replaced(
    damage: str, store: Path, expected: dict[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    list_masks("patterns")
    (path,) = store.glob(f"*{SUFFIX}")
    good = path.read_bytes()
    changed = good[:100] + bytes([good[100] ^ 1]) + good[101:]
    path.write_bytes({"cut": good[:-4], "changed": changed, "empty": b""}.get(damage, good))
    if damage == "foreign":
        path.chmod(0o666)
    if damage == "folder":
        path.unlink()
        path.mkdir()
    assert list_masks("patterns") == expected["patterns"]
    if damage == "folder":
        return  # it cannot be replaced, and is not used
    assert path.read_bytes() == good and path.stat().st_mode & 0o777 == 0o600
    forbid_rows(monkeypatch)
    list_masks("patterns")


def test_without_a_writable_store_masks_are_the_same(store: Path, expected: dict[str, list[bytes]]) -> None:
    store.write_bytes(b"a file where the folder should be")
    assert list_masks("numbers") == expected["numbers"]


def test_rows_of_other_processes_are_kept_after_the_latest_ones(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_masks("patterns")
    patterns = list(read_file(store).states)
    list_masks("numbers")
    both = list(read_file(store).states)
    monkeypatch.setenv("CONSTRAIN_STORE", str(tmp_path / "other"))
    list_masks("numbers")
    numbers = set(read_file(tmp_path / "other").states)
    assert set(both) == {*patterns, *numbers} and set(both[: len(numbers)]) == numbers
    assert both[len(numbers) :] == [name for name in patterns if name not in numbers] != []


def test_the_least_recently_used_rows_are_left_out(
    store: Path, expected: dict[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    list_masks("patterns")
    patterns = set(read_file(store).states)
    list_masks("formats")
    formats = set(read_file(store).states) - patterns
    (path,) = store.glob(f"*{SUFFIX}")
    bound = path.stat().st_size - 1
    monkeypatch.setattr(learned_row_cache, "MOST_BYTES", bound)
    list_masks("numbers")
    assert path.stat().st_size <= bound + 40  # and the seal
    left = set(read_file(store).states)
    assert patterns - left and left - patterns - formats
    monkeypatch.setattr(learned_row_cache, "MOST_BYTES", 0)
    assert list_masks("patterns") == expected["patterns"]
    assert not path.exists()


def test_files_of_many_vocabularies_are_bounded(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_row_cache, "MOST_FILES", 2)
    for number in range(4):
        vocabulary = Vocabulary.from_tokens([*make_vocabulary().tokens, b"%d" % number], eos_ids=[LEAST_TOKENS + 10])
        compile(vocabulary, schema={"type": "string", "pattern": "^a+$"}).matcher().mask()
        matcher = compile(vocabulary, schema={"type": "string", "pattern": "^a+1*$"}).matcher()
        matcher.advance_bytes(b'"a')
        matcher.mask()
        flush_caches()
        assert len(list(store.glob(f"*{SUFFIX}"))) == min(2, number + 1)


# ---- random automata ----------------------------------------------------------------------------------------------

BOUNDS = [0, ord("1"), ord("2"), ord("a"), ord("b"), ord("c"), 0xE9, 0xEA, 0xD800, 0xE000]


@st.composite
def dfas(draw: st.DrawFn) -> Dfa:
    """Draw the minimal Dfa of a random automaton over 1, a, b, é and all other characters."""
    n = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(st.integers(-1, n - 1), min_size=5, max_size=5), min_size=n, max_size=n))
    rows = [[*row, -1] for row in rows]  # surrogates are no characters
    accepting = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return Dfa.from_table(Table(BOUNDS, [0, 1, 0, 2, 3, 0, 4, 0, 5, 0], rows, accepting))


def describe_leaves(table: MaskTable, dfa: Dfa, mode: int) -> dict[bytes | None, tuple[Any, ...]]:
    """Return by name the row and the suffix trie of each leaf state of a Dfa that has them, after making both."""
    table.learned.is_used = True
    leaves, found = table.arrays[at.LEAVES], dict[bytes | None, tuple[Any, ...]]()
    todo = [table.start(dfa, mode)]
    seen = set(todo)
    while todo:
        state = todo.pop()
        table.expand(state)
        record = leaves[state * at.LEAF_W : (state + 1) * at.LEAF_W]
        if record[at.LEAF_ROW] == -1:
            table.row(state)
            table.build_suffixes(state)
        if record[at.LEAF_ROW] >= 0:
            first = table.words * int(record[at.LEAF_ROW])
            row = table.arrays[at.ROWS][first : first + table.words].tobytes()
            root, end = int(record[at.LEAF_SUFFIXES]), int(record[at.LEAF_SUFFIXES_END])
            trie = tuple(part.tobytes() for part in copy_trie(table.arrays, root, end)) if root >= 0 else (root,)
            found[table.name_state(state)] = row, int(record[at.LEAF_LONGEST]), trie
        following = table.arrays[at.LEAF_NEXT][256 * state : 256 * state + 256]
        fresh = set(following[following >= 0].tolist()) - seen
        seen |= fresh
        todo += sorted(fresh)
    return found


VOCABULARY = make_vocabulary()


@settings(max_examples=35, deadline=None)
@given(dfas(), st.sampled_from([at.UTF8, at.JSON_STRING, at.JSON_INSIDE]))
def test_rows_from_disk_are_those_that_are_made(tmp_path_factory: pytest.TempPathFactory, dfa: Dfa, mode: int) -> None:
    if dfa.is_empty:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONSTRAIN_STORE", "off")
        made = describe_leaves(MaskTable(VOCABULARY), dfa, mode)
        patch.setenv("CONSTRAIN_STORE", str(tmp_path_factory.mktemp("store") / "store"))
        assert describe_leaves(MaskTable(VOCABULARY), dfa, mode) == made
        flush_caches()
        table = MaskTable(VOCABULARY)
        table._find_exits = lambda state: pytest.fail("a row was made")  # type: ignore[method-assign]
        assert describe_leaves(table, dfa, mode) == made


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 40 * 32 - 1), max_size=60, unique=True))
def test_a_shortened_row_is_the_same_row(tokens: list[int]) -> None:
    bits = np.zeros(40 * 32, np.uint8)
    bits[tokens] = 1
    row = np.packbits(bits, bitorder="little").view(np.int32)
    stored = shorten_row(row)
    assert len(stored) == min(len(tokens), 40)
    assert np.array_equal(expand_row(stored, 40), row)


def make_trie(seed: int) -> SuffixTrie:
    """Return arrays in the form of a trie."""
    rng = np.random.default_rng(seed)
    nodes = np.cumsum(rng.integers(0, 3, (seed + 2, at.TRIE_W)), axis=0, dtype=np.int32)
    nodes -= nodes[0]
    edges, tokens = (rng.integers(0, 99, shape, np.int32) for shape in (nodes[-1, 0], (nodes[-1, 1], at.ENTRY_W)))
    return SuffixTrie(nodes, edges, tokens)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.binary(min_size=16, max_size=16), st.integers(0, 5), st.integers(0, 9), st.integers(-2, 3)),
        max_size=12, unique_by=lambda one: one[0],
    ),
    st.integers(0, 4000),
)  # fmt: skip
def test_unpack_rows_inverts_pack_rows_up_to_the_size_limit(
    drawn: list[tuple[bytes, int, int, int]], most: int
) -> None:
    tries = {bytes([k]) * 16: make_trie(k) for k in range(4)}
    states = {
        name: LearnedRow(np.arange(7 * row, dtype=np.int32), longest, trie if trie < 0 else bytes([trie]) * 16)
        for name, row, longest, trie in drawn
    }
    content = b"".join(part.tobytes() for part in pack_rows(LearnedRows(states, tries), most))
    assert len(content) <= max(most, 4 * 7)
    found = unpack_rows(memoryview(content))
    assert found is not None
    assert list(found.states) == list(states)[: len(found.states)]
    for name, state in found.states.items():
        assert np.array_equal(state.row, states[name].row)
        assert (state.longest, state.trie) == (states[name].longest, states[name].trie)
        if isinstance(state.trie, bytes):
            assert all(map(np.array_equal, found.tries[state.trie], tries[state.trie]))
    everything = pack_rows(LearnedRows(states, tries), 1 << 30)
    assert len(found.states) == len(states) or sum(part.nbytes for part in everything) > most
    assert unpack_rows(memoryview(content + b"\0\0\0\0")) is None and unpack_rows(memoryview(b"\0" * 27)) is None


def test_a_trie_is_not_appended_where_it_does_not_fit() -> None:
    table = MaskTable(VOCABULARY)
    trie = make_trie(3)
    before = table.arrays[at.TABLE].copy()
    for slot, count, width in ((at.TRIE, at.N_TRIE, at.TRIE_W), (at.TRIE_EDGES, at.N_TRIE_EDGES, 1)):
        needed = {at.TRIE: len(trie.nodes), at.TRIE_EDGES: len(trie.edges)}[slot]
        arrays = {**table.arrays, slot: table.arrays[slot][: width * (int(before[count]) + needed) - 1]}
        assert append_trie(arrays, trie) is None
    assert np.array_equal(table.arrays[at.TABLE], before)
    place = append_trie(table.arrays, trie)
    assert place is not None
    assert all(map(np.array_equal, copy_trie(table.arrays, *place), trie))
