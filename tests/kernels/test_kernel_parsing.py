"""Stacks of parsers (kernels): against lists of states, and indented texts against lark.

A stack of the cache is a chain of pairs; here it is a list, and every terminal is tried on it one by one.
"""

from __future__ import annotations

from functools import lru_cache

import lark
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from lark.indenter import Indenter

from constrain import Vocabulary
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.engine.state_cache import StateCache
from constrain.frontends.lark import Indentation, to_grammar
from constrain.kernels import layout as at
from constrain.kernels.parsing import (
    accepts_end,
    compute_column,
    feed_terminal,
    find_accepted_terminals,
    intern_list,
    intern_pair,
    start_parse,
    step_parse,
    truncate_pairs,
)
from constrain.lalr.lalr_tables import Lalr
from constrain.lalr.parser_code import Parser
from tests.kernel_context_factory import Context
from tests.text_acceptance import accepts_text

BYTES = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [None], eos_ids=[256])
GRAMMARS = {
    "sums": 'start: s\ns: s "+" p | s "-" p | p\np: p "*" a | a\na: "n" | "(" s ")" | "f" "(" [s ("," s)*] ")"',
    "to the right": 'start: "n" start | "n" "," start | "n"',
    "with empty rules": 'start: a b c "n" | "(" start ")"\na: | "+"\nb: | "-"\nc: | "*" c',
    "many terminals": "start: x+\nx: " + " | ".join(f'"{chr(97 + k % 26)}{k}" "n"?' for k in range(40)),
}
Stack = tuple[int, ...]


@lru_cache(maxsize=10)
def made(name: str) -> tuple[StateCache, int, Parser]:
    """A state cache, and the block and tables of the one parser in it."""
    constraint = compile_grammar(to_grammar(GRAMMARS[name]), BYTES)
    constraint.matcher().mask()
    ((block, parser),) = constraint.program.parsers.items()
    return constraint.state_cache(), block, parser


def fed(table: Lalr, stack: Stack, terminal: int) -> Stack | None:
    """The stack after a terminal, as in any book on parsers; None if it is refused."""
    while True:
        action = int(table.action[stack[-1], terminal])
        if action == 0:
            return None
        if action > 0:
            return (*stack, action - 1)
        rule = -action - 1
        stack = stack[: len(stack) - int(table.length[rule])]
        stack = (*stack, int(table.goto[stack[-1], table.left[rule]]))


def read(cache: StateCache, stack: int) -> Stack:
    """The states of a stack, the first at the bottom."""
    pairs, states = cache.arrays[at.PAIRS], list[int]()
    while pairs[at.PAIR_W * stack + at.PAIR_BELOW] >= 0:
        states.append(int(pairs[at.PAIR_W * stack]))
        stack = int(pairs[at.PAIR_W * stack + at.PAIR_BELOW])
    return tuple(states[::-1])


def chained(cache: StateCache, block: int, states: Stack) -> int:
    """The stack of these states."""
    stack = cache.run(intern_pair, block, at.STATES)
    for state in states:
        stack = cache.run(intern_pair, state, stack)
    return stack


def bits(cache: StateCache, place: int, words: int) -> set[int]:
    """A bit set of MAY_SHIFT."""
    row = cache.arrays[at.MAY_SHIFT][place : place + words].tolist()
    return {32 * w + k for w, word in enumerate(row) for k in range(32) if word >> k & 1}


@pytest.mark.parametrize("name", GRAMMARS)
@settings(max_examples=15)
@given(st.data())
def test_stacks_take_terminals_as_lists_of_states_do(name: str, data: st.DataObject) -> None:
    """And accept those that some reductions lead on with; also after the memos are cleared."""
    cache, block, parser = made(name)
    table, head = parser.table, cache.arrays[at.HEAD]
    wanted: Stack = (table.start,)
    stack = chained(cache, block, wanted)
    end = parser.terminals - 1
    for _ in range(data.draw(st.sampled_from([3, 8, 60]))):
        accepted = {t for t in range(parser.terminals) if fed(table, wanted, t) is not None}
        before = head[[at.N_PAIRS, at.N_MAY_SHIFT]].tolist()
        for _ in range(2):
            place = cache.run(find_accepted_terminals, block, stack)
            assert bits(cache, place, parser.words) == accepted
            assert cache.run(find_accepted_terminals, block, stack) == place
            assert place >= before[1] or head[at.N_MAY_SHIFT] == before[1]
            truncate_pairs(cache.address, *before)
            assert head[[at.N_PAIRS, at.N_MAY_SHIFT]].tolist() == before
        columns = cache.run(intern_pair, 0, cache.run(intern_pair, block, at.COLUMNS))
        assert cache.run(accepts_end, block, stack, columns) == (end in accepted)
        for terminal in range(parser.terminals):
            after, there = fed(table, wanted, terminal), cache.run(feed_terminal, block, stack, terminal)
            assert read(cache, there) == after if after else there == 0
        chosen = data.draw(st.sampled_from(sorted(accepted - {end}))) if accepted - {end} else end
        if chosen == end:
            return
        wanted = fed(table, wanted, chosen) or ()
        stack = cache.run(feed_terminal, block, stack, chosen)
        assert chained(cache, block, read(cache, stack)) == stack


@pytest.mark.parametrize("name", GRAMMARS)
def test_a_text_may_end_in_more_reductions_than_there_are_states(name: str) -> None:
    cache, block, parser = made(name)
    wanted: Stack = (parser.table.start,)
    for _ in range(3 * len(parser.table.action)):
        accepted = [t for t in range(parser.terminals - 1) if fed(parser.table, wanted, t) is not None]
        if not accepted:
            return
        # Opening and separating go on for ever; the first terminal that does not complete the text is taken.
        after = [fed(parser.table, wanted, t) or () for t in accepted]
        wanted = max(after, key=len)
        for end in range(parser.terminals):
            there, then = (
                cache.run(feed_terminal, block, chained(cache, block, wanted), end),
                fed(parser.table, wanted, end),
            )
            assert read(cache, there) == then if then else there == 0


@pytest.mark.parametrize("tab", [1, 8])
@given(st.lists(st.tuples(st.sampled_from(b"\n \tx\r#"), st.booleans()), max_size=12))
@settings(max_examples=40)
def test_columns_are_counted_from_the_last_end_of_a_line(tab: int, read: list[tuple[int, bool]]) -> None:
    """In what may still become a lexeme that ends a line; elsewhere there is no column."""
    newline = 33
    context = Context({})
    block, words = 1, 2
    code = [0] * (block + at.P_W)
    code[block + at.P_NEWLINE], code[block + at.P_TAB], code[block + at.P_WORDS] = newline, tab, words
    code[block + at.P_POSSIBLE] = len(code)
    code += [-1, ~(1 << (newline & 31)), 0, 1 << (newline & 31)]  # state 0 may become all other terminals, 1 this one
    context.put(at.CODE, code)
    column, text = -1, b""
    for byte, may_end_lines in read:
        text += bytes([byte])
        found = context.call(compute_column, block, int(may_end_lines), column, byte)
        line = text.rpartition(b"\n")[2]
        assert found == (0 if not may_end_lines else -1 if b"\n" not in text and column < 0 else
                         (column if byte != 10 else 0) + (tab if byte == 9 else byte == 32))  # fmt: skip
        if all(may for _, may in read) and b"\n" in text:
            assert found == line.count(b" ") + tab * line.count(b"\t")
        column = found
    context[at.CODE][block + at.P_NEWLINE] = -1
    assert context.call(compute_column, block, 1, -1, 10) == 0


TREES = r"""
start: (_NL | item)*
item: NAME _NL | NAME ":" _NL _INDENT item+ _DEDENT | NAME "(" [NAME (_COMMA NAME)*] ")" _NL
NAME: /[a-z]/
_COMMA: ","
LPAR: "("
RPAR: ")"
_NL: /(\r?\n[\t ]*)+/
%ignore " "
%declare _INDENT _DEDENT
"""


class TreeIndenter(Indenter):  # type: ignore[misc]
    """Lark's own."""

    NL_type, INDENT_type, DEDENT_type, tab_len = "_NL", "_INDENT", "_DEDENT", 4
    OPEN_PAREN_types, CLOSE_PAREN_types = ["LPAR"], ["RPAR"]


THEIRS = lark.Lark(TREES, parser="lalr", postlex=TreeIndenter())
OURS = compile_grammar(
    to_grammar(TREES, indentation=Indentation("_NL", "_INDENT", "_DEDENT", ("LPAR",), ("RPAR",), tab=4)), BYTES
)


def accepted_by_lark(text: str) -> bool:
    try:
        THEIRS.parse(text)
    except (lark.exceptions.LarkError, AssertionError, IndexError):
        return False
    return True


def accepted_by_us(text: str) -> bool:
    return accepts_text(OURS, text)


spaces = st.sampled_from(["", "", " ", "  ", "    ", "\t", "\t ", "        "])
lines = st.tuples(spaces, st.sampled_from(["a", "b:", "b:", "c(a,b)", "c(\n a,\n\tb\n)", "c(", "", ")"]),
                  st.sampled_from(["\n", "\n", "\n", "\r\n", ""])).map("".join)  # fmt: skip


@settings(max_examples=100)
@given(st.lists(lines, max_size=7).map("".join))
def test_indented_texts(text: str) -> None:
    assert accepted_by_us(text) == accepted_by_lark(text)
    lists, k = OURS.state_cache().arrays[at.LISTS], 1
    while k < OURS.state_cache().arrays[at.HEAD][at.N_LISTS]:
        assert lists[k + at.LIST_COMPLETE] in (0, 1)
        k += at.LIST_FIRST + at.LEXEME_W * int(lists[k + at.LIST_COUNT])


@settings(max_examples=40)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.booleans())
def test_blocks_are_as_deep_as_their_columns(depths: list[int], has_brackets: bool) -> None:
    """Each line is at most one block deeper than the one before, which then opens one."""
    levels = [0]
    for depth in depths:
        levels.append(min(depth, levels[-1] + 1))
    text, line = "", "c(a,\n  b)" if has_brackets else "a"
    for depth, following in zip(levels, [*levels[1:], 0]):
        text += " " * (2 * depth) + ("b:" if following > depth else line) + "\n"
    assert accepted_by_us(text) and accepted_by_lark(text)
    lines = text.splitlines(keepends=True)
    for k, one in enumerate(lines):  # and with one line moved
        moved = "".join([*lines[:k], " " + one, *lines[k + 1 :]])
        assert accepted_by_us(moved) == accepted_by_lark(moved)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), max_size=30), st.sampled_from(sorted(GRAMMARS)))
def test_equal_lists_of_lexemes_have_one_number(choices: list[int], name: str) -> None:
    """Independent of the path; a list is that of the lexemes of which the last leads on."""
    cache, block, _ = made(name)
    q = cache.run(start_parse, block)
    assert cache.run(start_parse, block) == q
    seen: dict[tuple[int, ...], int] = {}
    for choice in choices:
        lists = cache.arrays[at.LISTS]
        count = int(lists[q + at.LIST_COUNT])
        key = tuple(lists[q + at.LIST_FIRST : q + at.LIST_FIRST + at.LEXEME_W * count].tolist())
        assert seen.setdefault(key, q) == q and lists[q + at.LIST_BLOCK] == block
        cache.arrays[at.LISTING][: len(key)] = key
        assert cache.run(intern_list, block, count) == q
        following = [b for b in range(256) if cache.run(step_parse, q, b) > 0]
        if not following:
            return
        q = cache.run(step_parse, q, following[choice % len(following)])


@pytest.mark.parametrize("name", GRAMMARS)
@pytest.mark.parametrize("records", range(1, 7))
def test_a_text_begins_with_the_first_stack_at_any_capacity(name: str, records: int) -> None:
    """And with one column: both are made again where only a part of them fits."""
    cache, block, parser = made.__wrapped__(name)
    head = cache.arrays[at.HEAD]
    head[at.N_PAIRS], head[at.N_LISTS], head[at.N_MAY_SHIFT] = 1, 1, 0
    cache._put(at.PAIRS, np.full(records * at.PAIR_W, -1, np.int32))
    cache._put(at.PAIR_HASH, np.full(16, -1, np.int32))
    cache.arrays[at.LIST_HASH][:] = 0
    q = cache.run(start_parse, block)
    stack, state, columns, brackets, column = cache.arrays[at.LISTS][q + at.LIST_FIRST :][: at.LEXEME_W].tolist()
    assert read(cache, stack) == (parser.table.start,) and read(cache, columns) == (0,)
    assert state == -1 - parser.scan[parser.table.start] and brackets == 0 and column < 0
