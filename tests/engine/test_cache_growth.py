"""Kernels write within their arrays and nowhere else, however small these are at first.

Compiled code does not check an index: it compares what it is about to write with the length of the slot and asks for
room. Here every slot of a state cache begins as small as one record and stands between marks, which must stay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.typing import NDArray

from constrain import Constraint, Style, Vocabulary, compile, lark, regex
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.engine import bound_program, memory_block, state_cache
from constrain.kernels import layout as at
from constrain.vocabulary import mask_table
from tests.grammar.test_left_linear import VOCABULARY, LeftLinear, left_linear

GAP, MARK = 4096, 0x5A5A5A5A
HASHED = {at.SEEN, at.SET_HASH, at.NODE_HASH, at.CURSOR_HASH, at.OBJECT_HASH, at.NAME_HASH, at.GUARD_HASH, at.PAIR_HASH,
          at.LIST_HASH}  # fmt: skip
WIDTHS = {at.SETS: at.SET_W, at.CONFIGS: 5, at.WIDE: 256, at.NODES: 4, at.EDGES: 3, at.CURSORS: 5, at.NAMES: 3,
          at.ITEMS: 5, at.CALLS: 4, at.PENDING_EDGES: 5, at.GUARDS: at.GUARD_W, at.WORKLIST: 5, at.PAIRS: at.PAIR_W,
          at.UNIONS: at.UNION_W, at.LISTING: at.MOST_LEXEMES * at.LEXEME_W}  # fmt: skip
"""int32s of a record."""

COUNTED = (at.N_SETS, at.N_NODES, at.N_OBJECTS, at.N_CURSORS, at.N_NAMES, at.N_GUARDS, at.N_PAIRS, at.N_LISTS)
"""Fields of HEAD: how many of each are interned."""
TABLE = {"LEAF_STATES": 1024, "ROW_BYTES": 0, "TRIE_WORDS": 1 << 16, "LEX_READERS": 256, "LEX_WORDS": 1 << 16}
"""Room of a table of masks, which does not grow: so little that its hash table is crowded, and that one may be full.

Then another table takes its place, and the state cache begins anew.
"""


def find_least_length(slot: int, records: int) -> int:
    """A length to begin with."""
    if slot == at.LISTING:
        return WIDTHS[slot]
    if slot in HASHED:
        return 16
    return max(records, at.ROOTS if slot == at.NAMES else 2) * WIDTHS.get(slot, 8)


class Marked:
    """Arrays between marks."""

    def __init__(self) -> None:
        self.memories: dict[int, NDArray[np.int32]] = {}

    def between(self, slot: int, array: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return a copy of an array between guard words."""
        memory = np.full(len(array) + 2 * GAP, MARK, np.int32)
        memory[GAP:-GAP] = array
        self.memories[slot] = memory
        return memory[GAP:-GAP]

    def check(self) -> None:
        """Assert that no guard word has changed."""
        for slot, memory in self.memories.items():
            for gap in (memory[:GAP], memory[-GAP:]):
                assert (gap == MARK).all(), f"written beyond slot {slot}: {np.flatnonzero(gap != MARK)[:4]}"


class MarkedStateCache(state_cache.StateCache):
    """A state cache with guard words around all slots."""

    marked: Marked

    def _clear(self) -> None:
        """As ever, in memory between marks."""
        self.marked = Marked()
        super()._clear()

    def run(self, kernel: Callable[..., int], *arguments: Any, length: int = 0) -> int:
        """Before the first kernel runs, the block's slots are moved between marks."""
        for slot in range(at.TABLE):
            if slot not in self.marked.memories and slot not in (at.HEAD, at.CODE):  # which has fields, and no length
                self._put(slot, self.arrays[slot])
        result = super().run(kernel, *arguments, length=length)
        self.marked.check()
        return result

    def _put(self, slot: int, array: NDArray[np.int32]) -> None:
        super()._put(slot, array if slot == at.CODE else self.marked.between(slot, array))


def assert_same_masks(make: Callable[[], Constraint], text: bytes, records: int) -> None:
    """Return the results of a matcher before each byte of a text, until one is refused, with small and large arrays.

    Nothing is there twice: what was interned before its hash table grew is found again.
    """
    wide = make().matcher()
    patch = pytest.MonkeyPatch()
    with patch.context() as patched:
        patched.setattr(
            memory_block,
            "INITIAL_LENGTHS",
            {slot: find_least_length(slot, records) for slot in memory_block.INITIAL_LENGTHS},
        )
        patched.setattr(bound_program, "StateCache", MarkedStateCache)
        for constant, value in TABLE.items():
            patched.setattr(mask_table, constant, value)
        tight = make().matcher()
        assert isinstance(tight._state_cache, MarkedStateCache)
        table = tight._state_cache.table
        for end in range(len(text) + 1):
            assert tight.mask().tobytes() == wide.mask().tobytes(), text[:end]
            assert tight.is_complete == wide.is_complete and tight.next_bytes() == wide.next_bytes()
            if end % 8 == 0:
                assert tight.forced() == wide.forced() and tight.shortest_completion() == wide.shortest_completion()
            for field in COUNTED if tight._state_cache.table is table else ():
                found, most = (
                    int(tight._state_cache.arrays[at.HEAD][field]),
                    int(wide._state_cache.arrays[at.HEAD][field]),
                )
                # A mask that was begun anew with more room may have made a set that the whole one did not need, with
                # its names and the queries about it.
                is_loose = field in (at.N_SETS, at.N_NAMES, at.N_GUARDS)
                assert most <= found <= most + most // 50 * is_loose, (field, text[:end])
            if end == len(text) or text[end] not in wide.next_bytes():
                return
            tight.advance_bytes(text[end : end + 1])
            wide.advance_bytes(text[end : end + 1])


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 40}},
    "required": ["name"],
}
SUMS = """
start: sum
sum: sum "+" product | sum "-" product | product
product: product "*" atom | atom
atom: NUMBER | "(" sum ")" | NAME "(" [sum ("," sum)*] ")"
NAME: /[a-z_]\\w*/
NUMBER: /\\d+(\\.\\d+)?/
%ignore " "
"""
CASES: list[tuple[str, Any, bytes]] = [
    ("open object", PERSON, b'{"name": "Ann \\u00e9\xc3\xa9", "more": {"x": [1, 2.5, null]}, "x": {"y": "z", "n": 3}}'),
    ("any", {}, b'[{"a": [[], {}, {"b": {"c": [true, false, null, "x"]}}]}, -1.5e10, "\xf0\x9f\x98\x80\\u00e9"]'),
    ("enum", {"enum": [f"key {k * k:x}" for k in range(300)]}, b'"key 1' + b'fa4"'),
    ("unique", {"type": "array", "items": {"enum": [*range(12)]}, "uniqueItems": True}, b"[1, 2, 11, 10, 3, 9]"),
    ("unique objects", {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}},
                        "uniqueItems": True}, b'[{"a": 1}, {"a": 2}, {"b": 1, "a": 1}, {"a": 1, "b": 2}]'),
    ("keys", {"type": "object", "properties": {f"k{k}": {"type": "integer"} for k in range(40)},
              "required": [f"k{k}" for k in range(0, 40, 7)], "additionalProperties": False},
     b'{"k0": 1, "k7": 2, "k14": 3, "k21": 4, "k28": 5, "k35": 6, "k39": 0}'),
    ("names", {"type": "object", "patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 3}},
               "propertyNames": {"maxLength": 4}, "maxProperties": 5}, b'{"a": 1, "ab": 5, "xb": 7.5, "yyyy": {}}'),
    ("few names", {"type": "object", "patternProperties": {"^(a|é|ab|😀)$": {"type": "null"}},
                   "additionalProperties": False, "minProperties": 3},
     b'{"a": null, "\\u00e9": null, "\\ud83d\\ude00": null, "ab": null}'),
    ("texts", {"type": "array", "prefixItems": [{"pattern": "^[à-ü]{2,4}x?$"}, {"minLength": 2, "maxLength": 5},
                                          {"pattern": "(ab|é)+$", "maxLength": 9}], "minItems": 3},
     b'["\xc3\xa9\\u00e9\xc3\xa0x", "\\n\\ud83d\\ude00x", "--abab\xc3\xa9"]'),
    ("union", {"anyOf": [{"type": "array", "items": {"enum": [f"{k}" for k in range(n)]}, "maxItems": n}
                         for n in range(1, 25)]}, b'["0", "0", "0", "0", "0"]'),
]  # fmt: skip


@pytest.mark.parametrize("records", [1, 3])
@pytest.mark.parametrize(("name", "schema", "text"), CASES, ids=[name for name, *_ in CASES])
@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["default", "any"])
def test_schemas(name: str, schema: Any, text: bytes, style: Style, records: int) -> None:
    assert_same_masks(lambda: compile(Vocabulary.bytes(), schema=schema, style=style), text, records)


@pytest.mark.parametrize("records", [1, 3])
@pytest.mark.parametrize("parser", ["lalr", "earley"])
def test_lark(parser: str, records: int) -> None:
    assert_same_masks(
        lambda: compile(Vocabulary.bytes(), lark(SUMS, parser=parser)), b"f(1, 2.5) + (3 * g(4)) - h()", records
    )


PATTERNS = [
    ("(ab{2,5}c?){3,9}", b"abbabbbcabbbbbabbc"),
    (r"\w+(\s\w+){0,3}", "é b\u3000ç".encode()),
    (".*x.{2}", b"axbxc"),
]


@pytest.mark.parametrize(("pattern", "text"), PATTERNS)
def test_regexes(pattern: str, text: bytes) -> None:
    assert_same_masks(lambda: compile(Vocabulary.bytes(), regex(pattern)), text, 1)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left_linear(), st.integers(1, 4), st.text("abc", max_size=8))
def test_many_rules(made: LeftLinear, records: int, letters: str) -> None:
    items, text = made.start(), b""
    for letter in letters.encode():
        if made.step(items, bytes([letter])):
            items, text = made.step(items, bytes([letter])), text + bytes([letter])
    assert_same_masks(lambda: compile_grammar(made.grammar(), VOCABULARY), text, records)
