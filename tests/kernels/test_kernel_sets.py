"""Sets of configurations (kernels): the stored fields of a set are those computed from its configurations.

Texts are taken and masks made, which fills a state cache with sets and memos. Each is then compared with plain loops:
the bytes that a set names, the steps that it remembers, its keyless variant, and that no set is there twice.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from constrain import Constraint, Style, Vocabulary, compile, gbnf, lark, regex
from constrain.automata.dfa import Dfa
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.engine.state_cache import StateCache
from constrain.grammar.nodes import (
    EMPTY,
    Chars,
    Choice,
    Grammar,
    JsonString,
    Layout,
    Literal,
    NameClass,
    Object,
    Property,
    Repeat,
    Rule,
    Sequence,
    Strings,
)
from constrain.kernels import layout as at
from constrain.kernels.sets import compute_step, continue_config, make_keyless, may_allow, step_set, store_step
from constrain.kernels.trie_walks import select_configs

PIECES = [
    b'"', b'{"', b'": ', b'"a', b'ab"', b'", "', b"12", b"1,", b"], [", b"}, {", b"true", b"\\u00", b"xyz", b"  ",
    b'"xyz": ', b'"a": n', b'"b":', b'{"bab": null, ', b'"ab": "x', b'"p":1', b'"a": {"a', b'"c":1,"c":',
    b'"\\u0061": ',
]  # fmt: skip
VOCABULARY = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + PIECES + [None], (256 + len(PIECES),))
SUMS = r"""
start: sum
sum: sum "+" product | product
product: product "*" atom | atom
atom: NUMBER | "(" sum ")" | NAME
NAME: /[a-z_]\w*/
NUMBER: /\d+(\.\d+)?(e\d+)?/
%ignore " "
"""
AB = {"type": "object", "properties": {"a": {"type": "integer"}, "ab": {"enum": ["x", "xy", "é"]}}}
CLOSE = Layout(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)
MARKED = Object(
    (Property("a", Literal(b"1")), Property("b", Literal(b"1"))),
    (NameClass(Dfa.from_ranges([(0x70, 0x7A)]).repeat(1), Literal(b"1"), required=True),
     NameClass(Dfa.from_ranges([(0x70, 0x7A)]).repeat(1), Literal(b"2"), required=True)),
    CLOSE, order="any",
)  # fmt: skip
CASES: dict[str, tuple[Callable[[], Constraint], bytes]] = {
    "object": (lambda: compile(VOCABULARY, schema=AB), b'{"a": -15, "ab": "xy", "b": {"c": ["d\\u00e9"]}}'),
    "any style": (lambda: compile(VOCABULARY, schema=AB, style=Style.any()), b'{ "\\u0061b" : "x", "c\\n": [1 , 2]}'),
    "keys": (
        lambda: compile(VOCABULARY, schema={**AB, "required": ["ab"], "additionalProperties": False}),
        b'{"ab": "\xc3\xa9"}',
    ),
    "few names": (
        lambda: compile(VOCABULARY, schema={"type": "object", "patternProperties": {"^(a|b|ab)$": {"type": "null"}},
                                            "additionalProperties": False, "minProperties": 2}),
        b'{"a": null, "ab": null}',
    ),
    "few names or many": (
        lambda: compile(VOCABULARY, schema={"type": "object", "patternProperties": {"^(a|b[a-z]*)$": {"type": "null"}},
                                            "additionalProperties": False, "minProperties": 2}),
        b'{"a": null, "bab": null}',
    ),
    "marks": (
        lambda: compile_grammar(Grammar(MARKED, {}), VOCABULARY), b'{"p":1,"a":1,"q":2}',
    ),
    "unique": (
        lambda: compile(VOCABULARY, schema={"type": "array", "uniqueItems": True,
                                            "items": {"enum": [1, 12, "a", "ab", [1]]}}),
        b'[12, "ab", 1, [1]]',
    ),
    "unique objects": (
        lambda: compile(VOCABULARY, schema={"type": "array", "uniqueItems": True, "items": {"type": "object"}}),
        b'[{"a": 1}, {"a": 2}, {"b": 1, "a": 1}]',
    ),
    "strings": (
        lambda: compile(VOCABULARY, schema={"anyOf": [{"pattern": "^[a-f]{2,4}x?$"}, {"minLength": 2, "maxLength": 5},
                                                      {"enum": ["abx", "zz", 3]}]}),
        b'"abcx"',
    ),
    "counts": (lambda: compile(VOCABULARY, regex("(ab{2,5}[x-z]?){2,4}|a.{3}")), b"abbabbbxabb"),
    "choices": (lambda: compile(VOCABULARY, choices=[chr(c) + chr(97 + c % 5) for c in range(32, 128, 4)]), b"`b"),
    "characters": (lambda: compile(VOCABULARY, choices=["é", "漢", "😀x", "\x01"]), "😀x".encode()),
    "a lexeme begun again": (lambda: compile(VOCABULARY, lark('start: X+\nX: /(ab)*c/')), b"ababcc"),
    "unique texts": (
        lambda: compile(VOCABULARY, schema={"type": "array", "uniqueItems": True, "items": {"type": "string"}},
                        style=Style.any()),
        b'["ab", "a b" ,"a  b", "ab ","a\\u0062c" ]',
    ),
    "lexemes": (lambda: compile(VOCABULARY, lark(SUMS)), b"(1.5e3+ab)*12 +c"),
    "ambiguous": (lambda: compile(VOCABULARY, gbnf('root ::= root root | "a" | "ab" root? | [b-y]+')), b"aabbca"),
}  # fmt: skip


def filled(name: str) -> StateCache:
    """An cache in which masks were made all along a text."""
    make, text = CASES[name]
    constraint = make()
    matcher = constraint.matcher()
    for byte in text:
        matcher.mask()
        matcher.advance(byte)
    assert matcher.is_complete
    return constraint.state_cache()


class Sets:
    """The records of a state cache, read with plain loops."""

    def __init__(self, cache: StateCache) -> None:
        self.cache, self.arrays, self.table = cache, cache.arrays, cache.table.arrays
        self.count = int(cache.arrays[at.HEAD][at.N_SETS])
        self.code = cache.arrays[at.CODE]

    def field(self, s: int, field: int) -> int:
        return int(self.arrays[at.SETS][s * at.SET_W + field])

    def record(self, s: int) -> list[int]:
        record: list[int] = self.arrays[at.SETS][s * at.SET_W : (s + 1) * at.SET_W].tolist()
        return record

    def configs(self, s: int) -> list[list[int]]:
        first, count = self.field(s, at.SET_FIRST), self.field(s, at.SET_COUNT)
        records: list[list[int]] = self.arrays[at.CONFIGS][5 * first : 5 * (first + count)].reshape(-1, 5).tolist()
        return records

    def text(self, s: int) -> list[int]:
        """Return the continuations of the configurations of a set inside a member."""
        end = 5 * (self.field(s, at.SET_FIRST) + self.field(s, at.SET_COUNT))
        is_member = self.field(s, at.SET_FLAGS) & at.IS_MEMBER
        return self.arrays[at.CONFIGS][end : end + 5].tolist() if is_member else []

    def key(self, s: int) -> tuple[object, ...]:
        """What makes a set another than the others."""
        return (self.field(s, at.SET_FLAGS) & ~at.DIFFER_KNOWN, tuple(map(tuple, self.configs(s))), tuple(self.text(s)))

    def allowed(self, s: int) -> set[int]:
        """The bytes that a set names."""
        count, record = self.field(s, at.SET_ALLOWED), self.arrays[at.SETS][s * at.SET_W : (s + 1) * at.SET_W]
        if count > at.NARROW:
            return {b for b in range(256) if int(record[at.SET_NEXT + (b >> 5)]) >> (b & 31) & 1}
        listed = [int(record[at.SET_BYTES + (k >> 2)]) >> 8 * (k & 3) & 255 for k in range(count)]
        assert listed == sorted(set(listed))
        return set(listed)

    def wanted(self, config: list[int]) -> set[int] | None:
        """The bytes that one configuration may go on with; None in a text that may be spelled with escapes."""
        pc, q, _, reg, _ = config
        op = int(self.code[pc])
        if op < 256:
            return {op}
        if op in (at.LEAF, at.OTHER):
            return {b for b in range(256) if self.table[at.LEAF_NEXT][256 * q + b] >= 0}
        if op == at.PARSE:
            return self.lexemes(q)
        block, low, high, depth, _ = self.arrays[at.CURSORS][5 * q : 5 * q + 5].tolist()
        offsets = self.code[block + at.STR_OFFSETS :]
        if self.code[block + at.STR_ESCAPES]:
            return None
        ranks = [k for k in range(low, high) if op == at.SET or self.may_come(reg, k)]
        return {int(self.code[offsets[k] + depth]) for k in ranks if offsets[k] + depth < offsets[k + 1]}

    def may_come(self, state: int, rank: int) -> bool:
        """Whether the declared key of that rank may come in an object state."""
        words = int(self.code[self.arrays[at.OBJECTS][state + at.O_BLOCK] + at.OBJ_WORDS])
        return bool(int(self.arrays[at.OBJECTS][state + at.O_BITS + words + (rank >> 5)]) >> (rank & 31) & 1)

    def lexemes(self, q: int) -> set[int]:
        """Return the bytes by which some lexeme of a list may continue, and, if it may be complete, those that begin
        another.
        """
        lists, code, found = self.arrays[at.LISTS], self.code, set[int]()
        block = int(lists[q + at.LIST_BLOCK])

        def live(state: int) -> set[int]:
            return {b for b in range(256) if code[code[block + at.P_DELTA] + 256 * state + b] >= 0}

        for i in range(lists[q]):
            state = int(lists[q + at.LIST_FIRST + at.LEXEME_W * i + 1])
            found |= live(state if state >= 0 else -1 - state)
            if state >= 0:
                row = int(code[code[block + at.P_ACCEPT] + state]) >> 1
                accepted = code[code[block + at.P_ACCEPT_TABLE] + 257 * row :][:257]
                if (accepted >= 0).any():
                    for start in code[code[block + at.P_SCAN] :][: code[block + at.P_STATES]].tolist():
                        found |= live(start)
        return found


@pytest.mark.parametrize("name", CASES)
def test_a_set_names_the_bytes_of_its_configurations(name: str) -> None:
    """Including those that are refused later (too few characters, a name that is taken), and no others."""
    sets = Sets(filled(name))
    for s in range(1, sets.count):
        by_config = [sets.wanted(config) for config in sets.configs(s)]
        named = set[int]().union(*[one or set() for one in by_config])
        found = sets.allowed(s)
        assert found == named if None not in by_config else found >= named
        assert [sets.cache.run(may_allow, s, b) == 1 for b in range(256)] == [b in found for b in range(256)]
        if len(found) > at.NARROW:
            flags = sets.field(s, at.SET_FLAGS)
            assert (sets.field(s, at.SET_BYTES) == -1) == bool(flags & (at.IS_NAMING | at.IS_MEMBER))
    assert len({sets.key(s) for s in range(1, sets.count)}) == sets.count - 1


def distinguished_bytes(sets: Sets, s: int) -> set[int]:
    """Return the bytes that configurations other than leaves (and those whose classes have few names) accept."""
    ops = [(config, int(sets.code[config[0]])) for config in sets.configs(s)]
    others = [c for c, op in ops if op != at.LEAF and not (op == at.OTHER and sets.code[c[0] + 5] == 0)]
    return set[int]().union(*[sets.wanted(config) or set() for config in others])


@pytest.mark.parametrize("name", CASES)
def test_a_step_that_is_remembered_is_that_of_each_configuration(name: str) -> None:
    """Before and after all steps of a set were taken."""
    cache = filled(name)
    sets = Sets(cache)
    for s in range(1, min(sets.count, 120)):
        fresh = [cache.run(compute_step, s, b) for b in range(256)]
        allowed = sets.allowed(s)
        assert {b for b in range(256) if fresh[b] > 0} <= allowed
        memos = remembered(sets, s, allowed)
        after = [cache.run(step_set, s, b) for b in range(256)]
        later = remembered(sets, s, allowed)
        for b in range(256):
            is_dead = fresh[b] > 0 and sets.field(fresh[b], at.SET_FLAGS) & at.CANNOT_DIFFER
            assert after[b] == (at.DEAD if is_dead else fresh[b])
            assert memos.get(b, -1) < 0 or memos[b] == after[b]
            assert b not in later or later[b] == after[b]


def remembered(sets: Sets, s: int, allowed: set[int]) -> dict[int, int]:
    """Return the memo of a set for each byte that it names."""
    if len(allowed) <= at.NARROW:
        return {b: sets.field(s, at.SET_NEXT + k) for k, b in enumerate(sorted(allowed))}
    row = sets.field(s, at.SET_BYTES)
    return {b: int(sets.arrays[at.WIDE][256 * row + b]) for b in allowed} if row >= 0 else {}


@pytest.mark.parametrize("name", CASES)
def test_a_step_is_stored_for_all_bytes_with_equal_leaf_transitions(name: str) -> None:
    """A string has one step for all letters; a byte that another configuration accepts is computed separately."""
    cache = filled(name)
    sets = Sets(cache)
    for s in range(1, sets.count):
        row, configs = sets.field(s, at.SET_BYTES), sets.configs(s)
        leaves = [config[1] for config in configs if sets.code[config[0]] in (at.LEAF, at.OTHER)]
        has_few_names = any(sets.code[c[0]] == at.OTHER and sets.code[c[0] + 5] for c in configs)
        if sets.field(s, at.SET_ALLOWED) <= at.NARROW or row < 0 or not leaves or has_few_names:
            continue
        if any(sets.wanted(config) is None for config in configs):
            continue
        wide, apart = cache.arrays[at.WIDE], distinguished_bytes(sets, s)
        for b in sorted(sets.allowed(s))[::7]:
            for x in range(256):
                wide[256 * row + x] = -1 if x in apart else -2
            assert store_step(cache.address, s, b, 12345) == 0
            written = {x for x in range(256) if wide[256 * row + x] == 12345}
            transitions = [sets.table[at.LEAF_NEXT][256 * q : 256 * q + 256] for q in leaves]
            equivalent = {
                x
                for x in range(256)
                if x not in apart and all(row_of_leaf[x] == row_of_leaf[b] for row_of_leaf in transitions)
            }
            is_open = sets.field(s, at.SET_FLAGS) & (at.IS_MEMBER | at.IS_OPEN)
            assert written == ({b} if b in apart or is_open else equivalent)
            others = {x: int(wide[256 * row + x]) for x in range(256) if x not in written}
            assert others == {x: -1 if x in apart else -2 for x in others}


def test_a_parsed_text_has_a_row_of_steps_from_the_second_step_on() -> None:
    """Most of its sets are stepped once: their only step is in the record of the set."""
    cache = filled("lexemes")
    sets = Sets(cache)
    fresh = [s for s in range(1, sets.count) if sets.field(s, at.SET_ALLOWED) > at.NARROW]
    fresh = [s for s in fresh if sets.field(s, at.SET_BYTES) <= at.NO_STEP]
    assert fresh
    for s in fresh[:3]:
        taken = at.NO_STEP - sets.field(s, at.SET_BYTES)
        steps = {b: cache.run(step_set, s, b) for b in sorted(sets.allowed(s))}
        assert taken == 0 or steps[taken & 255] == taken >> 8
        row = sets.field(s, at.SET_BYTES)
        assert row >= 0
        assert [int(cache.arrays[at.WIDE][256 * row + b]) for b in steps] == list(steps.values())
        assert {b: cache.run(step_set, s, b) for b in steps} == steps
        assert all(cache.run(compute_step, s, b) == after for b, after in steps.items())


@pytest.mark.parametrize("name", CASES)
def test_the_keyless_variant_of_a_set_leaves_names_and_texts_open(name: str) -> None:
    """All else is equal, and the keyless variant of a keyless variant is itself."""
    cache = filled(name)
    sets = Sets(cache)
    kept = at.IS_ACCEPTING | at.IS_UNSURE | at.IS_NAMED
    for s in range(1, sets.count):
        before = sets.record(s)
        other = cache.run(make_keyless, s)
        assert [
            now for k, now in enumerate(sets.record(s)) if k != at.SET_KEYLESS or len(sets.allowed(s)) <= at.NARROW
        ] == [was for k, was in enumerate(before) if k != at.SET_KEYLESS or len(sets.allowed(s)) <= at.NARROW]
        flags = sets.field(s, at.SET_FLAGS)
        wanted = [[*config[:4], at.OPEN_NAME if sets.code[config[0]] == at.OTHER else config[4]]
                  for config in sets.configs(s)]  # fmt: skip
        assert sets.configs(other) == [one for k, one in enumerate(wanted) if one not in wanted[:k]]
        assert sets.field(other, at.SET_FLAGS) & kept == flags & kept
        assert bool(sets.field(other, at.SET_FLAGS) & at.IS_OPEN) == bool(flags & (at.IS_MEMBER | at.IS_OPEN))
        assert not sets.field(other, at.SET_FLAGS) & (at.IS_MEMBER | at.IS_NAMING)
        if sets.field(s, at.SET_ALLOWED) > at.NARROW and (not flags & at.HAS_KEYS or flags & at.IS_NAMING):
            assert sets.field(s, at.SET_KEYLESS) == other
        assert cache.run(make_keyless, s) == other == cache.run(make_keyless, other)


@pytest.mark.parametrize("name", CASES)
def test_parts_of_a_set(name: str) -> None:
    """One configuration alone, all of them, those without a row and outside gaps; with texts left open."""
    cache = filled(name)
    sets = Sets(cache)
    for s in range(1, sets.count):
        configs, is_open = sets.configs(s), sets.field(s, at.SET_FLAGS) & (at.IS_MEMBER | at.IS_OPEN)
        few = [config for config in configs if not has_row(sets, config) and not is_gap(sets, config)]
        parts = [(k, [config]) for k, config in enumerate(configs)] + [(-2, configs), (-1, few)]
        for which, wanted in parts:
            first = sets.field(s, at.SET_FIRST)
            part = cache.run(select_configs, s, first + which if which >= 0 else which)
            assert sets.configs(part) == wanted
            inside = any(int(sets.arrays[at.NODES][4 * node + 2]) & at.IN_MEMBER for _, _, node, _, _ in wanted)
            assert bool(sets.field(part, at.SET_FLAGS) & at.IS_OPEN) == (bool(is_open) and inside)
        for k, (pc, *_) in enumerate(configs):
            if sets.code[pc] == at.LEAF:
                there = cache.run(continue_config, s, sets.field(s, at.SET_FIRST) + k, pc)
                assert there > 0 and any(config[0] == pc for config in sets.configs(there))
            if sets.code[pc] == at.OTHER:
                there = cache.run(continue_config, s, -sets.field(s, at.SET_FIRST) - k - 1, sets.code[pc + 3])
                for *_, state, _ in sets.configs(there):
                    check_names_forgotten(sets, state, configs[k][3], int(sets.code[pc + 4]))


def check_names_forgotten(sets: Sets, state: int, before: int, mark: int) -> None:
    """The object state after an unknown name: its mark is set, and names are unknown from then on."""
    objects = sets.arrays[at.OBJECTS]
    assert objects[state + at.O_NAMES] == at.UNKNOWN_NAMES
    was, now = int(objects[before + at.O_BITS]), int(objects[state + at.O_BITS])
    if sets.code[objects[state + at.O_BLOCK] + at.OBJ_ORDER]:
        assert now == (was | 1 << mark if mark >= 0 else was)


LETTER = Literal(b"a")
PARTS = {
    "literal": LETTER,
    "characters": Chars(Dfa.from_strings(["a"])),
    "strings": Strings((b"a", b"ab")),
    "text": JsonString(Dfa.from_strings(["a"])),
    "object": Object((Property("a", Literal(b"1"), True),), (), CLOSE),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("low", [2, 3])
def test_a_round_is_not_empty_once_something_was_taken(name: str, low: int) -> None:
    """Though a rule follows that ends without a byte."""
    one = {"literal": b"a", "characters": b"a", "strings": b"a", "text": b'"a"', "object": b'{"a":1}'}[name]
    body = Sequence((PARTS[name], Rule("S")))
    grammar = Grammar(Repeat(body, low, 4), {"S": Choice((EMPTY, Literal(b"!")))})
    constraint = compile_grammar(grammar, VOCABULARY)
    for rounds in range(1, 5):
        for tail in (b"", b"!"):
            matcher = constraint.matcher()
            matcher.advance_bytes((one + tail) * rounds)
            assert matcher.is_complete == (rounds >= low), (rounds, tail)


def has_row(sets: Sets, config: list[int]) -> bool:
    """Whether many bytes are allowed there."""
    op = int(sets.code[config[0]])
    row = sets.table[at.LEAVES][config[1] * at.LEAF_W + at.LEAF_ROW] if op in (at.LEAF, at.OTHER) else 0
    return op == at.PARSE or (op in (at.LEAF, at.OTHER) and row != -2)


def is_gap(sets: Sets, config: list[int]) -> bool:
    """Whether white space of any length from 0 on goes on there."""
    if sets.code[config[0]] != at.LEAF or sets.code[config[0] + at.ARG_LOW] > 0:
        return False
    return bool(sets.table[at.LEAVES][config[1] * at.LEAF_W + at.LEAF_FLAGS] & at.LEAF_GAP)
