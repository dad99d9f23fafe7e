"""Masks of a text that is being parsed: walks of the lexeme trie with the parser's stack (kernels).

A class of tokens (`lexemes`) is allowed if the parser accepts what its lexeme can still become. An exit that the parser
does not accept is cut off with all that is below it. Doubtful tokens are taken byte by byte.
"""

from __future__ import annotations

from typing import Any

from .context_views import address, at, view
from .interned_names import request
from .jit.compilation import inlined, kernel
from .lexemes import find_next_reader, find_root_reader
from .parsing import commit_lexeme, find_accepted_terminals, intern_list, truncate_pairs
from .token_steps import try_token
from .trie_tokens import NO_LIMIT
from .trie_walks import select_configs, walk_trie

from .context_layout import (  # isort: skip
    CODE, CONFIGS, HEAD, LEX_CLASSES, LEX_EXITS, LEX_READERS, LEX_WORDS, LISTING, LISTS, MAY_SHIFT, NEED_SCANNER,
    N_LISTS, N_MAY_SHIFT, N_PAIRS, N_UNIONS, PAIRS, SCANNERS, SETS, SPARE, TABLE, T_WORDS,
)  # fmt: skip
from .program_layout import (  # isort: skip
    BY_LETTERS, END, P_DEAD_ENDS, P_IGNORED, P_INDEX, P_KINDS_OF_CLASS, P_NEWLINE, P_ROWS, P_SCAN,
    P_SHIFTS, P_WORDS,
)  # fmt: skip
from .record_layout import (  # isort: skip
    CONFIG_NODE, CONFIG_PC, CONFIG_STATE, CONFIG_W, LEXEME_BRACKETS, LEXEME_COLUMN, LEXEME_COLUMNS, LEXEME_STACK,
    LEXEME_STATE, LEXEME_W, LIST_BLOCK, LIST_FIRST, PAIR_VALUE, PAIR_W, SET_COUNT, SET_W,
)  # fmt: skip
from .table_layout import (  # isort: skip
    CLASS_COUNT, CLASS_FIRST, CLASS_KIND, CLASS_W, EXIT_COLUMN, EXIT_COUNT, EXIT_FIRST, EXIT_TERMINAL, EXIT_W,
    READER_BOUNDS, READER_CLASSES, READER_DOUBTS, READER_EXITS, READER_N_CLASSES, READER_N_DOUBTS, READER_N_EXITS,
    READER_SCANNER, READER_W,
)  # fmt: skip


MOST_DEPTH = 48
"""Recursion depth of `visit_reader`: lexemes in one token. The remainder of a longer token is stepped byte by byte."""


@kernel("int64(int64, int64, int64, int64)")
def try_exit(c: Any, s: Any, exit_: Any, out: Any) -> Any:
    """Set the bits of the tokens of an exit that set s accepts, stepping each byte by byte. Return 0 or -1."""
    exits, lex_words, mask = view(c, LEX_EXITS), view(c, LEX_WORDS), at(out)
    first = exits[EXIT_W * exit_ + EXIT_FIRST] + 0
    for k in range(first, first + exits[EXIT_W * exit_ + EXIT_COUNT]):
        token = lex_words[k] >> 8
        if mask[token >> 5] >> (token & 31) & 1 == 0 and try_token(c, s, token, out) < 0:
            return -1
    return 0


@kernel("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def visit_reader(
    c: Any, s: Any, block: Any, reader: Any, stack: Any, columns: Any, brackets: Any, column: Any, depth: Any, out: Any
) -> Any:
    """Set the bits of the tokens that the parser accepts as a reader scans them. Return 0 or -1.

    s: the set of the mask. stack, columns, brackets: state of the parser before the lexeme. column: column of the
    unfinished lexeme, -1 if it contains no line break. depth: depth of the recursion.
    """
    code, pairs, shifts = view(c, CODE), view(c, PAIRS), view(c, MAY_SHIFT)
    readers, classes, exits, lex_words = (
        view(c, LEX_READERS),
        view(c, LEX_CLASSES),
        view(c, LEX_EXITS),
        view(c, LEX_WORDS),
    )
    mask = at(out)
    words, ignored, newline = code[block + P_WORDS] + 0, code[block + P_IGNORED] + 0, code[block + P_NEWLINE] + 0
    # A terminal that the top state shifts is accepted, one without an entry is not. Only for a terminal that is
    # reduced before does the answer depend on the states below.
    top = pairs[PAIR_W * stack + PAIR_VALUE] * words
    shifted, acceptable = code[block + P_SHIFTS] + top, code[block + P_ROWS] + top
    accepted_at = -1
    if code[block + P_DEAD_ENDS]:
        accepted_at = find_accepted_terminals(c, block, stack)
        if accepted_at < 0:
            return -1
        is_coreachable = False
        for w in range(words):
            is_coreachable = is_coreachable or shifts[accepted_at + w] != 0
        if not is_coreachable:
            return 0
    r = READER_W * reader
    scanner = readers[r + READER_SCANNER] + 0
    ignored_newline = newline if brackets > 0 else -1  # inside brackets line breaks are ignored
    no_line_end = (reader & 0) - 1  # -1, not as a literal: numba would compile a second specialisation
    for k in range(readers[r + READER_CLASSES], readers[r + READER_CLASSES] + readers[r + READER_N_CLASSES]):
        p = CLASS_W * k
        kind = code[block + P_KINDS_OF_CLASS] + classes[p + CLASS_KIND] * words
        accepts, may_accept = 0, 0
        for w in range(words):
            accepts |= code[kind + w] & ((code[shifted + w] if accepted_at < 0 else 0) | code[ignored + w])
            may_accept |= code[kind + w] & code[acceptable + w]
        if ignored_newline >= 0:
            accepts |= code[kind + (ignored_newline >> 5)] & 1 << (ignored_newline & 31)
        if accepts == 0 and may_accept != 0:
            if accepted_at < 0:
                accepted_at = find_accepted_terminals(c, block, stack)
                if accepted_at < 0:
                    return -1
            for w in range(words):
                accepts |= code[kind + w] & shifts[accepted_at + w]
        if accepts == 0:
            continue
        first, n = classes[p + CLASS_FIRST] + 0, classes[p + CLASS_COUNT] + 0
        if n < 0:
            for w in range(view(c, TABLE)[T_WORDS]):
                mask[w] |= lex_words[first + w]
        for i in range(first, first + n):
            token = lex_words[i]
            mask[token >> 5] |= 1 << (token & 31)
    for i in range(readers[r + READER_DOUBTS], readers[r + READER_DOUBTS] + readers[r + READER_N_DOUBTS]):
        token = lex_words[i] + 0
        if mask[token >> 5] >> (token & 31) & 1 == 0 and try_token(c, s, token, out) < 0:
            return -1
    for e in range(readers[r + READER_EXITS], readers[r + READER_EXITS] + readers[r + READER_N_EXITS]):
        t = exits[EXIT_W * e + EXIT_TERMINAL] + 0
        by_row = (
            accepted_at < 0 or code[block + P_DEAD_ENDS] == BY_LETTERS
        )  # a terminal is a set of letters here, so its bit is not conclusive
        accepted = (code[acceptable + (t >> 5)] if by_row else shifts[accepted_at + (t >> 5)]) | code[
            ignored + (t >> 5)
        ]
        if accepted >> (t & 31) & 1 == 0 and t != ignored_newline:
            continue
        line_end = exits[EXIT_W * e + EXIT_COLUMN]
        ends_at = (line_end >> 1) + (0 if line_end & 1 else column) if line_end & 1 or column >= 0 else -1
        stack_2, columns_2, brackets_2 = commit_lexeme(c, block, stack, t, columns, brackets, ends_at)
        if stack_2 < 0:
            return -1
        if stack_2 == 0:
            continue
        if depth >= MOST_DEPTH:
            if try_exit(c, s, e, out) < 0:
                return -1
            continue
        child = find_next_reader(
            c, block, scanner, e, code[code[block + P_SCAN] + pairs[PAIR_W * stack_2 + PAIR_VALUE]]
        )
        if (
            child < 0
            or visit_reader(c, s, block, child, stack_2, columns_2, brackets_2, no_line_end, depth + 1, out) < 0
        ):
            return -1
    return 0


@inlined("int64(int64, int64)")
def drop_first_lexeme(c: Any, q: Any) -> Any:
    """Return the list q without its first lexeme, which has failed: its id, 0 if nothing is left, or -1."""
    lists, new = view(c, LISTS), view(c, LISTING)
    n = lists[q] - 1
    for i in range(LEXEME_W * n):
        new[i] = lists[q + LIST_FIRST + LEXEME_W + i]
    return intern_list(c, lists[q + LIST_BLOCK], n)


@kernel("int64(int64, int64, int64, int64)")
def add_lexemes(c: Any, s: Any, q: Any, out: Any) -> Any:
    """OR in the tokens by which the first unfinished lexeme of list q may continue or end. Return 0 or -1."""
    head, code, lists, pairs = view(c, HEAD), view(c, CODE), view(c, LISTS), view(c, PAIRS)
    readers, lex_words, spare, mask = view(c, LEX_READERS), view(c, LEX_WORDS), view(c, SPARE), at(out)
    block = lists[q + LIST_BLOCK] + 0
    scanner = view(c, SCANNERS)[code[block + P_INDEX]] + 0
    if scanner < 0:
        return request(c, NEED_SCANNER, block)
    e = q + LIST_FIRST
    stack, state, columns, brackets, column = (
        lists[e + LEXEME_STACK] + 0, lists[e + LEXEME_STATE] + 0, lists[e + LEXEME_COLUMNS] + 0,
        lists[e + LEXEME_BRACKETS] + 0, lists[e + LEXEME_COLUMN] + 0,
    )  # fmt: skip
    counts_before = head[N_PAIRS] + 0, head[N_MAY_SHIFT] + 0, head[N_LISTS] + 0, head[N_UNIONS] + 0
    reader = find_root_reader(c, block, scanner, state)
    if reader < 0 or visit_reader(c, s, block, reader, stack, columns, brackets, column, column - column, out) < 0:
        return -1
    bounds = readers[READER_W * reader + READER_BOUNDS] + 0
    words = view(c, TABLE)[T_WORDS] + 0
    for k in range(lex_words[bounds] if bounds >= 0 else 0):
        bound = bounds + 1 + k * (1 + words)
        stack_2, columns_2, brackets_2 = commit_lexeme(c, block, stack, lex_words[bound], columns, brackets, column)
        if stack_2 < 0:
            return -1
        if stack_2 == 0:
            continue
        start = find_root_reader(
            c, block, scanner, -1 - code[code[block + P_SCAN] + pairs[PAIR_W * stack_2 + PAIR_VALUE]]
        )
        if start < 0:
            return -1
        for w in range(words):
            spare[w] = 0
        if visit_reader(c, s, block, start, stack_2, columns_2, brackets_2, -1, column - column, address(c, SPARE)) < 0:
            return -1
        for w in range(words):
            mask[w] |= spare[w] & lex_words[bound + 1 + w]
    # Discard the stacks that were only explored, unless byte-wise steps have memoised them.
    if head[N_LISTS] == counts_before[2] and head[N_UNIONS] == counts_before[3]:
        truncate_pairs(c, counts_before[0], counts_before[1])
    return 0


@kernel("int64(int64, int64, int64)")
def clear_scanned(c: Any, reader: Any, out: Any) -> Any:
    """Clear the tokens within which the unfinished lexeme of a root reader does not fail. Return 0."""
    readers, classes, exits = view(c, LEX_READERS), view(c, LEX_CLASSES), view(c, LEX_EXITS)
    lex_words, mask, words = view(c, LEX_WORDS), at(out), view(c, TABLE)[T_WORDS] + 0
    r = READER_W * reader
    for k in range(readers[r + READER_CLASSES], readers[r + READER_CLASSES] + readers[r + READER_N_CLASSES]):
        first, n = classes[CLASS_W * k + CLASS_FIRST] + 0, classes[CLASS_W * k + CLASS_COUNT] + 0
        for w in range(words if n < 0 else 0):
            mask[w] &= ~lex_words[first + w]
        for i in range(first, first + n):
            mask[lex_words[i] >> 5] &= ~(1 << (lex_words[i] & 31))
    for e in range(readers[r + READER_EXITS], readers[r + READER_EXITS] + readers[r + READER_N_EXITS]):
        first = exits[EXIT_W * e + EXIT_FIRST] + 0
        for i in range(first, first + exits[EXIT_W * e + EXIT_COUNT]):
            token = lex_words[i] >> 8
            mask[token >> 5] &= ~(1 << (token & 31))
    for i in range(readers[r + READER_DOUBTS], readers[r + READER_DOUBTS] + readers[r + READER_N_DOUBTS]):
        mask[lex_words[i] >> 5] &= ~(1 << (lex_words[i] & 31))
    bounds = readers[r + READER_BOUNDS] + 0
    for k in range(lex_words[bounds] if bounds >= 0 else 0):
        first = bounds + 2 + k * (1 + words)
        for w in range(words):
            mask[w] &= ~lex_words[first + w]
    return 0


@kernel("int64(int64, int64, int64)")
def allows_classes(c: Any, reader: Any, out: Any) -> Any:
    """Return whether a mask allows all tokens that end inside the lexeme of a root reader: 1 or 0."""
    readers, classes = view(c, LEX_READERS), view(c, LEX_CLASSES)
    lex_words, mask, words = view(c, LEX_WORDS), at(out), view(c, TABLE)[T_WORDS] + 0
    r = READER_W * reader
    for k in range(readers[r + READER_CLASSES], readers[r + READER_CLASSES] + readers[r + READER_N_CLASSES]):
        first, n = classes[CLASS_W * k + CLASS_FIRST] + 0, classes[CLASS_W * k + CLASS_COUNT] + 0
        for w in range(words if n < 0 else 0):
            if lex_words[first + w] & ~mask[w]:
                return 0
        for i in range(first, first + n):
            if mask[lex_words[i] >> 5] >> (lex_words[i] & 31) & 1 == 0:
                return 0
    return 1


@kernel("int64(int64, int64, int64, int64)")
def add_two_lexemes(c: Any, s: Any, q: Any, out: Any) -> Any:
    """OR in the tokens of a list of two unfinished lexemes, the only configuration of set s.

    Return 1, 0 if some of its tokens may be missing, or -1.

    Within most tokens the longer lexeme does not fail, and they are allowed as if it were the only one. Within the
    others it fails, and they are allowed as if the second one were. What is left are tokens that end inside the longer
    one where the parser does not accept what it can become: the second may still be accepted if the longer one fails.
    """
    lists, code = view(c, LISTS), view(c, CODE)
    block, state = lists[q + LIST_BLOCK] + 0, lists[q + LIST_FIRST + LEXEME_STATE] + 0
    scanner = view(c, SCANNERS)[code[block + P_INDEX]] + 0
    if scanner < 0:
        return request(c, NEED_SCANNER, block)
    reader = find_root_reader(c, block, scanner, state)
    if reader < 0:
        return -1
    second = drop_first_lexeme(c, q)
    if second < 0 or (second > 0 and add_lexemes(c, s, second, out) < 0):
        return -1
    clear_scanned(c, reader, out)
    if add_lexemes(c, s, q, out) < 0:
        return -1
    return allows_classes(c, reader, out)


@kernel("int64(int64, int64, int64, int64)")
def add_parsed(c: Any, s: Any, k: Any, out: Any) -> Any:
    """OR in the tokens that configuration k, a text that is being parsed, allows. Return 0 or -1.

    By readers if nothing follows the parsed text and at most two lexemes are unfinished; else by a walk of the trie.
    """
    configs, code = view(c, CONFIGS), view(c, CODE)
    q = configs[CONFIG_W * k + CONFIG_STATE] + 0
    if configs[CONFIG_W * k + CONFIG_NODE] == 0 and code[configs[CONFIG_W * k + CONFIG_PC] + 2] == END:
        if view(c, LISTS)[q] == 1:
            return add_lexemes(c, s, q, out)
        if view(c, LISTS)[q] == 2 and view(c, SETS)[s * SET_W + SET_COUNT] == 1:
            found = add_two_lexemes(c, s, q, out)
            if found != 0:
                return min(found, 0)
    alone = select_configs(c, s, k)
    return -1 if alone < 0 else walk_trie(c, 0, alone, 1, s, out, 0, NO_LIMIT)
