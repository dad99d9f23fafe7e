"""Walks of the trie (kernels): against taking every token byte by byte from the same set."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from constrain import Style, compile
from constrain.engine.state_cache import StateCache
from constrain.kernels import layout as at
from constrain.kernels.leaf_masks import add_row
from constrain.kernels.sets import make_keyless, step_set
from constrain.kernels.token_steps import (
    advance_by_each,
    advance_bytes,
    advance_token,
    queue_question,
    step_along_route,
    try_subtree,
    try_subtree_from,
    try_token,
)
from constrain.kernels.trie_tokens import NO_LIMIT
from constrain.kernels.trie_walks import add_to_worklist, is_new_name, walk_trie
from constrain.vocabulary.mask_table import data_address
from tests.kernel_context_factory import Context
from tests.kernels.test_kernel_sets import CASES, VOCABULARY, Sets, filled

TOKENS = [token for token in VOCABULARY.tokens if token]
WORDS = (VOCABULARY.size + 31) // 32
NEVER = b"\xff"
"""No text has this byte: its token stands in no trie."""
SURE = [name for name in CASES if not name.startswith("unique")]
"""Cases in which a walk has no need to look at anything closely."""


def after(cache: StateCache, s: int, text: bytes) -> int:
    """The set after a text, or 0."""
    for byte in text:
        s = cache.run(step_set, s, byte) if s > 0 else 0
    return s


def list_mask_tokens(mask: NDArray[np.int32]) -> set[int]:
    """The tokens of a mask."""
    return {t for t in range(VOCABULARY.size) if int(mask[t >> 5]) >> (t & 31) & 1}


def taken(cache: StateCache, s: int, tokens: list[bytes] = TOKENS) -> set[int]:
    """The tokens that a set takes."""
    return {t for t, token in enumerate(tokens) if after(cache, s, token) > 0}


def some_sets(cache: StateCache, most: int) -> list[int]:
    """Sets of a state cache, spread over all that it has."""
    count = int(cache.arrays[at.HEAD][at.N_SETS])
    return list(range(1, count, 1 + count // most))


@pytest.mark.parametrize("name", CASES)
def test_tokens_are_taken_byte_by_byte(name: str) -> None:
    cache = filled(name)
    for s in some_sets(cache, 12):
        for t, token in enumerate(TOKENS):
            places = [after(cache, s, token[: k + 1]) for k in range(len(token))]
            assert cache.run(advance_token, s, t) == places[-1]
            wanted = places[-1] or -2 - places.index(0)
            assert cache.run(advance_bytes, s, np.array([*token], np.uint8), length=len(token)) == wanted
            cache.arrays[at.ROUTE][: len(token)] = list(token)
            assert cache.run(step_along_route, s, len(token)) == places[-1]
        assert cache.run(advance_token, s, len(TOKENS)) == at.DEAD  # the end token has no bytes
        tokens, sets = np.arange(len(TOKENS) + 1), np.full(len(TOKENS) + 1, -7)
        assert cache.run(advance_by_each, s, tokens, sets) == 0
        assert sets.tolist() == [cache.run(advance_token, s, token) for token in tokens.tolist()]
        assert cache.run(advance_bytes, s, np.zeros(0, np.uint8)) == s == cache.run(step_along_route, s, 0)


def node_of(cache: StateCache, prefix: bytes) -> int:
    """The node of the trie where a prefix ends."""
    trie, edges, node = cache.table.arrays[at.TRIE], cache.table.arrays[at.TRIE_EDGES], 0
    for byte in prefix:
        (node,) = [edge >> 8 for edge in edges[trie[2 * node] : trie[2 * node + 2]].tolist() if edge & 255 == byte]
    return node


@pytest.mark.parametrize("small", [True, False], ids=["small", "roomy"])
@pytest.mark.parametrize("name", CASES)
def test_tokens_are_tried(name: str, small: bool) -> None:
    """One, or all below a node: their bits are set or cleared, and those of others are left alone."""
    cache = filled(name)
    cache.arrays[at.HEAD][at.N_QUESTIONS] = 0
    for s in some_sets(cache, 6):
        good = taken(cache, s)
        cache.arrays[at.HEAD][at.STEPS] = 0
        for before in (0, -1):
            for t in range(0, len(TOKENS), 5):
                mask = np.full(WORDS, before, np.int32)
                all_bits = list_mask_tokens(mask)
                assert cache.run(try_token, s, t, data_address(mask)) == 0
                assert list_mask_tokens(mask) == (all_bits | {t} if t in good else all_bits - {t})
            for prefix in (b"", b'"', b"1", b"]", b"a", b'{"', b"], ["):
                below = {t for t, token in enumerate(TOKENS) if token.startswith(prefix) and token != NEVER}
                wanted = all_bits - below | good & below
                node = node_of(cache, prefix)
                for kernel, start in ((try_subtree, s), (try_subtree_from, after(cache, s, prefix))):
                    if small:
                        cache._put(at.STACK, np.full(2, -7, np.int32))
                    mask, stack = np.full(WORDS, before, np.int32), cache.arrays[at.STACK]
                    stack[: len(stack) // 2] = -7
                    assert cache.run(kernel, node, start, data_address(mask)) == 0
                    assert list_mask_tokens(mask) == wanted, (prefix, kernel)
                    assert (stack[: len(stack) // 2] == -7).all()  # of the walk that came here


@pytest.mark.parametrize("name", SURE)
def test_a_walk_finds_the_tokens_that_a_set_takes(name: str) -> None:
    """Also with small arrays at first; the walk ends at its bound of steps."""
    cache = filled(name)
    sets = Sets(cache)
    for s in some_sets(cache, 25):
        if sets.field(s, at.SET_FLAGS) & at.IS_NAMING:
            continue
        good = taken(cache, s)
        if s % 2:
            cache._put(at.STACK, np.full(8, -7, np.int32))
            cache._put(at.ROUTE, np.full(1, -7, np.int32))
        spent, head = [], cache.arrays[at.HEAD]
        for _ in range(2):
            mask = np.zeros(WORDS, np.int32)
            head[at.STEPS], visited = 0, int(head[at.VISITED])
            assert cache.run(walk_trie, 0, s, 1, s, data_address(mask), 0, NO_LIMIT) == 0
            assert list_mask_tokens(mask) == good
            assert head[at.VISITED] > visited
            spent.append(int(head[at.STEPS]))
        most = int(head[at.MOST_STEPS])
        for allowed in (spent[1], spent[1] - 1):
            head[at.STEPS], head[at.MOST_STEPS] = 0, allowed
            result = walk_trie(cache.address, 0, s, 1, s, data_address(mask), 0, NO_LIMIT)
            assert result == (0 if allowed == spent[1] else -1)
            assert result == 0 or head[at.STATUS] == at.SPENT
        head[at.MOST_STEPS], head[at.STEPS] = most, 0
        for kernel, arguments in ((try_token, (s, 0)), (try_subtree, (0, s)), (try_subtree_from, (0, s))):
            assert ends_when_spent(cache, kernel, *arguments)


def ends_when_spent(cache: StateCache, kernel: Callable[..., int], *arguments: int) -> bool:
    """Whether it does all with the steps that it takes, and gives up with one less."""
    head, mask = cache.arrays[at.HEAD], np.zeros(WORDS, np.int32)
    most = int(head[at.MOST_STEPS])
    for _ in range(2):  # The first call restarts, and counts again, after each of its requests.
        head[at.STEPS] = 0
        assert cache.run(kernel, *arguments, data_address(mask)) == 0
    spent = int(head[at.STEPS])
    results = []
    for allowed in (spent, spent - 1):
        head[at.STEPS], head[at.MOST_STEPS] = 0, allowed
        results.append(kernel(cache.address, *arguments, data_address(mask)))
    head[at.STEPS], head[at.MOST_STEPS] = 0, most
    return results == [0, -1] and head[at.STATUS] == at.SPENT


@pytest.mark.parametrize("name", ["object", "any style", "strings", "few names"])
def test_rows_by_token_length(name: str) -> None:
    """A row's tokens that need no more characters than fit, including those that must still follow."""
    cache = filled(name)
    leaves, following = cache.table.arrays[at.LEAVES], cache.table.arrays[at.LEAF_NEXT]
    made = [q for q in range(cache.table.arrays[at.TABLE][at.N_LEAVES]) if leaves[q * at.LEAF_W + at.LEAF_ROW] >= 0]
    for q in made[:8]:
        needed = dict[int, int]()
        for t, token in enumerate(TOKENS):
            state, characters = q, 0
            for byte in token:
                cache.table.expand(state)
                characters += bool(leaves[state * at.LEAF_W + at.LEAF_FLAGS] & at.LEAF_BOUNDARY)
                state = int(following[256 * state + byte])
                if state < 0 or leaves[state * at.LEAF_W + at.LEAF_DECODER] >> at.KIND == at.DONE:
                    break
            else:
                cache.table.expand(state)
                needed[t] = characters + int(leaves[state * at.LEAF_W + at.LEAF_NEED])
        for room in (-1, 0, 1, 2, 3, 4, 5, 6, 40, NO_LIMIT):
            mask = np.full(WORDS, 0, np.int32)
            mask[-1] = 1 << 30
            kept = list_mask_tokens(mask)
            assert cache.run(add_row, q, room, data_address(mask)) == 0
            assert list_mask_tokens(mask) == {t for t, need in needed.items() if need <= room} | kept


@settings(max_examples=40)
@given(
    st.lists(st.text("ab", min_size=1, max_size=3).filter(lambda name: name != "ab"), max_size=3, unique=True),
    st.lists(st.text('abc\\"', max_size=4), min_size=1, max_size=6),
    st.sampled_from(["", "x", '{"q": ']),
)
def test_a_partial_name_is_free_unless_it_is_taken(there: list[str], asked: list[str], before: str) -> None:
    """Between the last two quotes that a walk has read, of which the first is not escaped; only without an escape."""
    matcher = OBJECT.matcher()
    matcher.advance_bytes(b"{" + "".join(f'"{name}":1,' for name in there).encode())
    cache = OBJECT.state_cache()
    s = matcher._set
    taken_names = {*there, "ab", "c"}
    for name in asked:
        inside = cache.run(make_keyless, after(cache, s, b'"'))
        for route, is_begun in (
            (f'{before}"{name}"'.encode(), True),
            (f'{name.replace(chr(34), "")}"'.encode(), False),
        ):
            cache.arrays[at.ROUTE][: len(route)] = list(route)
            end = route[:-1]
            opening = end.rfind(b'"')
            spelled = end[opening + 1 :].decode()
            is_opening = opening >= 0 and end[opening - 1 : opening] != b"\\"
            wanted = is_opening and "\\" not in spelled and spelled not in taken_names
            assert is_new_name(cache.address, s, inside, len(route)) == wanted
            assert is_begun or not wanted


OBJECT = compile(VOCABULARY, schema={"type": "object", "properties": {"ab": True, "c": True}},
                 style=Style(whitespace="compact"))  # fmt: skip


def test_questions_are_deferred_until_the_queue_is_full() -> None:
    """Each once in a row; and nothing but questions about members and names."""
    context = Context({at.QUESTIONS: 3 * at.QUESTION_W + 2})
    head, questions = context.head, context[at.QUESTIONS]
    fields = (at.STATUS, at.ARGUMENT, at.TEXT, at.SPELLING, at.NAMED_IN)
    for status in range(1, at.NEED_ANSWERS + 1):
        is_question = status in (at.NEED_CANDIDATES, at.NEED_IS_UNIQUE, at.NEED_NAME_FREE, at.NEED_CAN_DIFFER)
        head[at.N_QUESTIONS] = 0
        head[list(fields)] = status, 3, 4, 5, 6
        assert context.call(queue_question) == (0 if is_question else -1)
        assert head[at.N_QUESTIONS] == is_question and head[at.STATUS] == status
    head[at.N_QUESTIONS] = 0
    asked = [(at.NEED_CANDIDATES, 3, 4, 5, 6), (at.NEED_IS_UNIQUE, 3, 4, 5, 6), (at.NEED_IS_UNIQUE, 9, 4, 5, 6)]
    for count, one in enumerate(asked):
        for _ in range(2):
            head[list(fields)] = one
            assert context.call(queue_question) == 0
        assert head[at.N_QUESTIONS] == count + 1
        assert tuple(questions[at.QUESTION_W * count :][: at.QUESTION_W].tolist()) == one
    for other in ((at.NEED_IS_UNIQUE, 9, 0, 5, 6), (at.NEED_IS_UNIQUE, 9, 4, 0, 6), (at.NEED_CANDIDATES, 9, 4, 5, 6)):
        head[list(fields)] = other
        assert context.call(queue_question) == -1 and context.request == (at.NEED_ANSWERS, 0)
    assert head[at.N_QUESTIONS] == 3


@pytest.mark.parametrize("length", range(4, 16))
def test_sets_are_queued_while_the_worklist_has_space(length: int) -> None:
    context, wanted = Context({at.WORKLIST: length}), list[int]()
    for k in range(length // 5):
        record = [10 * k + field for field in range(5)]
        assert context.call(add_to_worklist, *record) == 0
        wanted += record
    assert context.call(add_to_worklist, 1, 2, 3, 4, 5) == -1 and context.request == (at.FULL, at.WORKLIST)
    assert context[at.WORKLIST][: len(wanted)].tolist() == wanted and context.head[at.N_WORKLIST] == length // 5
