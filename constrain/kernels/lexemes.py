"""Lexemes: what a scanner makes of all tokens, and from it the mask of a text that is being parsed (kernels).

Read from a scanner state, a token ends inside a lexeme (its *class*: what that lexeme can still become), or it takes
a lexeme to its end (its *exit*: the terminal, and what of the token remains), or it is refused. That is independent of
the parser, so it is worked out once per state, for all tokens, and kept in the vocabulary's table; the remainders of
an exit are read from the scanner's next start state in the same way, when a parser comes by, and so on: a trie of
lexemes. A mask walks this trie with the parser's stack: classes that the parser accepts are in, exits that it does
not accept are cut off with all that is below.

A token whose last lexeme in the making may come to nothing, so that an earlier end counts, is *doubtful*: where its
class does not settle it, it is taken byte by byte.
"""

from __future__ import annotations

from typing import Any

from .compiled import inlined, kernel, recursive
from .layout import *  # noqa: F403  (constants only)
from .names import ask
from .parse import commit, forget_pairs, list_of, may_shift
from .trie import byte_of
from .views import address, at, size, view
from .walk import try_token

STAMP = "823f01de"


@inlined("int64(int64, int64, int64, int64)")
def reader_of(c: Any, scanner: Any, state: Any, first: Any) -> Any:
    """The reader (see LEX_READERS) in a chain that begins with reader `first`, or -1."""
    readers = view(c, LEX_READERS)
    while first >= 0:
        r = READER_W * first
        if readers[r + READER_SCANNER] == scanner and readers[r + READER_STATE] == state:
            return first
        first = readers[r + READER_NEXT]
    return -1


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def read(c: Any, block: Any, d: Any, item: Any, place: Any, exits: Any) -> Any:
    """Reads what remains of a token, item = token << 8 | bytes of it that were read: writes to TRIE_TEMP[place ..].

    Written: class, or -2 - key of the exit; the remainder of an exit; flags. Nothing if it is refused.
    d: state of the scanner after the first byte of the remainder. exits: the number of terminals.
    """
    code, offsets, temp = view(c, CODE), view(c, OFFSETS), view(c, TRIE_TEMP)
    delta, accept, verdicts = code[block + P_DELTA] + 0, code[block + P_ACCEPT] + 0, code[block + P_VERDICTS] + 0
    newline, tab = code[block + P_NEWLINE] + 0, code[block + P_TAB] + 0
    token, done = item >> 8, item & 255
    i, last = offsets[token] + done, offsets[token + 1] + 0
    terminal, end, column_end = -1, 0, 0
    column, broken = 0, 0  # since the last end of a line in the lexeme, if there was one
    first = i
    while i < last:
        b = byte_of(c, i)
        if i > first:
            row = code[accept + d] >> 1
            if row and code[verdicts + 257 * row + b] >= 0:
                terminal, end, column_end = code[verdicts + 257 * row + b] + 0, i, column * 2 + broken
            d = code[delta + 256 * d + b] + 0
            if d < 0:
                break
        if newline >= 0:
            if b == 10:
                column, broken = 0, 1
            elif b == 32:
                column += 1
            elif b == 9:
                column += tab
        i += 1
    if d >= 0:
        temp[place] = code[code[block + P_CLASS] + d]
        if code[accept + d] & 1 == 0:
            temp[place + 2] = DOUBTFUL if terminal >= 0 else OPEN_END
        return 0
    if terminal >= 0:
        key = terminal
        if terminal == newline:
            if column_end >= MOST_COLUMNS:
                temp[place] = code[code[block + P_CLASS]]
                temp[place + 2] = UNREAD  # not worth a key of its own
                return 0
            key = exits + column_end
        temp[place] = -2 - key
        temp[place + 1] = token << 8 | (end - offsets[token])
    return 0


@kernel("int64(int64, int64, int64, int64, int64)")
def make_reader(c: Any, block: Any, scanner: Any, state: Any, exit_: Any) -> Any:
    """Reads the remainders of an exit (-1: all tokens) from a scanner state: the new reader, or -1: the table is full.

    The caller holds the table's lock and puts the reader where it is found. What a token makes depends on the state
    after its first byte alone, and most starts agree in it: it is remembered for the scanner that was read last.
    """
    table, code, temp = view(c, TABLE), view(c, CODE), view(c, TRIE_TEMP)
    readers, classes, exits = view(c, LEX_READERS), view(c, LEX_CLASSES), view(c, LEX_EXITS)
    words_, offsets = view(c, LEX_WORDS), view(c, OFFSETS)
    words, terminals, kinds = table[T_WORDS] + 0, code[block + P_TERMINALS] + 0, code[block + P_CLASSES] + 0
    first = exits[EXIT_W * exit_ + EXIT_FIRST] + 0 if exit_ >= 0 else 0
    count = exits[EXIT_W * exit_ + EXIT_COUNT] + 0 if exit_ >= 0 else size(c, OFFSETS) - 1
    keys = terminals + MOST_COLUMNS
    by_key, by_class = 3 * count, 3 * count + keys
    if by_class + kinds > size(c, TRIE_TEMP):
        return -1
    for k in range(by_key, by_class + kinds):
        temp[k] = 0
    doubtful = 0
    d = -1 - state if state < 0 else state
    delta, cache = code[block + P_DELTA] + 256 * d, view(c, LEX_CACHE)
    if table[LEX_CACHED] != scanner + 1:
        table[LEX_CACHED] = scanner + 1
        for i in range(size(c, OFFSETS) - 1):
            cache[4 * i] = -1
    row = code[code[block + P_ACCEPT] + d] >> 1 if state >= 0 else 0
    for i in range(count):
        item = words_[first + i] + 0 if exit_ >= 0 else i << 8
        token, p = item >> 8, 3 * i
        begin = offsets[token] + (item & 255)
        temp[p] = -1
        temp[p + 2] = 0
        if begin == offsets[token + 1]:
            continue
        b = byte_of(c, begin)
        after = code[delta + b] + 0
        if after < 0:
            continue
        if offsets[token + 1] - offsets[token] > 255:
            temp[p] = 0
            temp[p + 2] = UNREAD
        elif exit_ >= 0:
            read(c, block, after, item, p, terminals)
        elif cache[4 * token] == after:
            temp[p], temp[p + 1], temp[p + 2] = cache[4 * token + 1], cache[4 * token + 2], cache[4 * token + 3]
        else:
            read(c, block, after, item, p, terminals)
            cache[4 * token] = after
            cache[4 * token + 1], cache[4 * token + 2], cache[4 * token + 3] = temp[p], temp[p + 1], temp[p + 2]
        if row and code[code[block + P_VERDICTS] + 257 * row + b] >= 0:  # it might have ended before the token
            if temp[p] == -1:
                t = code[code[block + P_VERDICTS] + 257 * row + b]
                temp[p] = -2 - (t if t != code[block + P_NEWLINE] else terminals)
                temp[p + 1] = item
            elif temp[p + 2] == OPEN_END:
                temp[p + 2] = DOUBTFUL
        if temp[p + 2] == OPEN_END:
            temp[p + 2] = 0
        if temp[p + 2]:
            doubtful += 1
        if temp[p + 2] == UNREAD:
            continue
        if temp[3 * i] >= 0:
            temp[by_class + temp[3 * i]] += 1
        elif temp[3 * i] <= -2:
            temp[by_key - 2 - temp[3 * i]] += 1
    # Room for all that was found.
    r, n_classes, n_exits = table[N_LEX_READERS] + 0, table[N_LEX_CLASSES] + 0, table[N_LEX_EXITS] + 0
    at_word = table[N_LEX_WORDS] + 0
    if READER_W * (r + 1) > size(c, LEX_READERS):
        return -1
    if CLASS_W * (n_classes + kinds) > size(c, LEX_CLASSES) or EXIT_W * (n_exits + keys) > size(c, LEX_EXITS):
        return -1
    if at_word + count + doubtful + words * (count // FEW + 1) > size(c, LEX_WORDS):
        return -1
    first_class, first_exit = n_classes, n_exits
    for k in range(kinds):
        n = temp[by_class + k] + 0
        if n == 0:
            continue
        p = CLASS_W * n_classes
        classes[p + CLASS_KIND] = k
        classes[p + CLASS_COUNT] = n if n <= FEW else -1
        classes[p + CLASS_FIRST] = at_word
        temp[by_class + k] = at_word  # where the next one goes
        if n > FEW:
            for w in range(words):
                words_[at_word + w] = 0
        at_word += n if n <= FEW else words
        temp[by_class + k] = temp[by_class + k] << 1 | (0 if n <= FEW else 1)
        n_classes += 1
    for k in range(keys):
        n = temp[by_key + k] + 0
        if n == 0:
            continue
        p = EXIT_W * n_exits
        exits[p + EXIT_TERMINAL] = k if k < terminals else code[block + P_NEWLINE]
        exits[p + EXIT_COLUMN] = k - terminals if k >= terminals else 0
        exits[p + EXIT_FIRST] = at_word
        exits[p + EXIT_COUNT] = n
        exits[p + EXIT_READER] = -1
        temp[by_key + k] = at_word
        at_word += n
        n_exits += 1
    doubts = at_word
    for i in range(count):
        token = words_[first + i] >> 8 if exit_ >= 0 else i
        if temp[3 * i + 2]:
            words_[at_word] = token
            at_word += 1
        if temp[3 * i + 2] == UNREAD:
            continue
        if temp[3 * i] >= 0:
            k = by_class + temp[3 * i]
            if temp[k] & 1:
                words_[(temp[k] >> 1) + (token >> 5)] |= 1 << (token & 31)
            else:
                words_[temp[k] >> 1] = token
                temp[k] += 2
        elif temp[3 * i] <= -2:
            k = by_key - 2 - temp[3 * i]
            words_[temp[k]] = temp[3 * i + 1]
            temp[k] += 1
    p = READER_W * r
    readers[p + READER_SCANNER] = scanner
    readers[p + READER_STATE] = state
    readers[p + READER_CLASSES] = first_class
    readers[p + READER_N_CLASSES] = n_classes - first_class
    readers[p + READER_EXITS] = first_exit
    readers[p + READER_N_EXITS] = n_exits - first_exit
    readers[p + READER_DOUBTS] = doubts
    readers[p + READER_N_DOUBTS] = at_word - doubts
    readers[p + READER_BOUNDS] = -1
    table[N_LEX_READERS], table[N_LEX_CLASSES], table[N_LEX_EXITS] = r + 1, n_classes, n_exits
    table[N_LEX_WORDS] = at_word
    return r


@kernel("int64(int64, int64, int64, int64)")
def make_bounds(c: Any, block: Any, reader: Any, state: Any) -> Any:
    """For a lexeme in the making that may end where a token begins: by which terminal, and before which tokens.

    In LEX_WORDS: how many, then [terminal, the tokens whose first byte says so as bits]. 0 or -1: the table is full.
    """
    table, code, out = view(c, TABLE), view(c, CODE), view(c, LEX_WORDS)
    offsets, temp = view(c, OFFSETS), view(c, TRIE_TEMP)
    words, terminals = table[T_WORDS] + 0, code[block + P_TERMINALS] + 0
    row = code[code[block + P_ACCEPT] + state] >> 1
    for t in range(terminals):
        temp[t] = -1
    first, n = table[N_LEX_WORDS] + 0, 0
    for b in range(256):
        t = code[code[block + P_VERDICTS] + 257 * row + b]
        if row and t >= 0 and code[code[block + P_DELTA] + 256 * state + b] < 0 and temp[t] < 0:
            here = first + 1 + n * (1 + words)
            if here + 1 + words > size(c, LEX_WORDS):
                return -1
            temp[t] = here + 1
            out[here] = t
            for w in range(words):
                out[here + 1 + w] = 0
            n += 1
    out[first] = n
    if n:
        for token in range(size(c, OFFSETS) - 1):
            if offsets[token] < offsets[token + 1]:
                b = byte_of(c, offsets[token])
                t = code[code[block + P_VERDICTS] + 257 * row + b]
                if t >= 0 and code[code[block + P_DELTA] + 256 * state + b] < 0:
                    out[temp[t] + (token >> 5)] |= 1 << (token & 31)
    table[N_LEX_WORDS] = first + 1 + n * (1 + words)
    view(c, LEX_READERS)[READER_W * reader + READER_BOUNDS] = first
    return 0


@kernel("int64(int64, int64, int64, int64)")
def root(c: Any, block: Any, scanner: Any, state: Any) -> Any:
    """The reader of all tokens from a scanner state (-1 - start, or that of a lexeme in the making), or -1."""
    roots, readers = view(c, LEX_ROOTS), view(c, LEX_READERS)
    slot = (state * 31 + scanner * 1009) & (LEX_CHAINS - 1)
    found = reader_of(c, scanner, state, roots[slot])
    if found >= 0:
        return found
    if view(c, HEAD)[BUILDING] == 0:
        return ask(c, NEED_READERS, 0)
    made = make_reader(c, block, scanner, state, -1)
    if made < 0 or (state >= 0 and make_bounds(c, block, made, state) < 0):
        return ask(c, TABLE_FULL, 0)
    readers[READER_W * made + READER_NEXT] = roots[slot]
    roots[slot] = made
    return made


@kernel("int64(int64, int64, int64, int64, int64)")
def further(c: Any, block: Any, scanner: Any, exit_: Any, state: Any) -> Any:
    """The reader of what remains at an exit, from the scanner's start `state`, or -1."""
    exits, readers = view(c, LEX_EXITS), view(c, LEX_READERS)
    found = reader_of(c, scanner, -1 - state, exits[EXIT_W * exit_ + EXIT_READER])
    if found >= 0:
        return found
    if view(c, HEAD)[BUILDING] == 0:
        return ask(c, NEED_READERS, 0)
    made = make_reader(c, block, scanner, -1 - state, exit_)
    if made < 0:
        return ask(c, TABLE_FULL, 0)
    readers[READER_W * made + READER_NEXT] = exits[EXIT_W * exit_ + EXIT_READER]
    exits[EXIT_W * exit_ + EXIT_READER] = made
    return made


MOST_DEPTH = 48
"""Lexemes of one token that are followed by calls of `visit` inside each other. What remains is taken byte by byte."""


@kernel("int64(int64, int64, int64, int64)")
def try_exit(c: Any, s: Any, exit_: Any, out: Any) -> Any:
    """Sets the bits of the tokens of an exit that set s takes, byte by byte: 0 or -1."""
    exits, words_, mask = view(c, LEX_EXITS), view(c, LEX_WORDS), at(out)
    first = exits[EXIT_W * exit_ + EXIT_FIRST] + 0
    for k in range(first, first + exits[EXIT_W * exit_ + EXIT_COUNT]):
        token = words_[k] >> 8
        if mask[token >> 5] >> (token & 31) & 1 == 0 and try_token(c, s, token, out) < 0:
            return -1
    return 0


@recursive("int64(int64, int64, int64, int64, int64, int64, int64, int64, int64, int64)")
def visit(
    c: Any, s: Any, block: Any, reader: Any, stack: Any, columns: Any, brackets: Any, column: Any, depth: Any, out: Any
) -> Any:
    """Sets the bits of the tokens that the parser takes as a reader reads them: 0 or -1. s: the set the mask is for.

    column: of the lexeme in the making, -1 if no line has ended in it. depth: calls of this kernel around this one.
    """
    code, pairs, shifts = view(c, CODE), view(c, PAIRS), view(c, MAY_SHIFT)
    readers, classes, exits, words_ = view(c, LEX_READERS), view(c, LEX_CLASSES), view(c, LEX_EXITS), view(c, LEX_WORDS)
    mask = at(out)
    words, ignored, newline = code[block + P_WORDS] + 0, code[block + P_IGNORED] + 0, code[block + P_NEWLINE] + 0
    # What the top state shifts is accepted, what it has no entry for is not; only in between is the stack asked.
    top = pairs[PAIR_W * stack] * words
    surely, perhaps = code[block + P_SHIFTS] + top, code[block + P_ROWS] + top
    there = -1
    if code[block + P_DEAD_ENDS]:
        there = may_shift(c, block, stack)
        if there < 0:
            return -1
        leads_on = False
        for w in range(words):
            leads_on = leads_on or shifts[there + w] != 0
        if not leads_on:
            return 0
    r = READER_W * reader
    scanner = readers[r + READER_SCANNER] + 0
    inside = newline if brackets > 0 else -1  # where lines do not end
    unbroken = (reader & 0) - 1  # no literal: numba would look for another version of this kernel for it
    for k in range(readers[r + READER_CLASSES], readers[r + READER_CLASSES] + readers[r + READER_N_CLASSES]):
        p = CLASS_W * k
        kind = code[block + P_KINDS_OF_CLASS] + classes[p + CLASS_KIND] * words
        meets, may_meet = 0, 0
        for w in range(words):
            meets |= code[kind + w] & ((code[surely + w] if there < 0 else 0) | code[ignored + w])
            may_meet |= code[kind + w] & code[perhaps + w]
        if inside >= 0:
            meets |= code[kind + (inside >> 5)] & 1 << (inside & 31)
        if meets == 0 and may_meet != 0:
            if there < 0:
                there = may_shift(c, block, stack)
                if there < 0:
                    return -1
            for w in range(words):
                meets |= code[kind + w] & shifts[there + w]
        if meets == 0:
            continue
        first, n = classes[p + CLASS_FIRST] + 0, classes[p + CLASS_COUNT] + 0
        if n < 0:
            for w in range(view(c, TABLE)[T_WORDS]):
                mask[w] |= words_[first + w]
        for i in range(first, first + n):
            token = words_[i]
            mask[token >> 5] |= 1 << (token & 31)
    for i in range(readers[r + READER_DOUBTS], readers[r + READER_DOUBTS] + readers[r + READER_N_DOUBTS]):
        token = words_[i] + 0
        if mask[token >> 5] >> (token & 31) & 1 == 0 and try_token(c, s, token, out) < 0:
            return -1
    for e in range(readers[r + READER_EXITS], readers[r + READER_EXITS] + readers[r + READER_N_EXITS]):
        t = exits[EXIT_W * e + EXIT_TERMINAL] + 0
        by_row = there < 0 or code[block + P_DEAD_ENDS] == BY_LETTERS  # no bit there says it of all letters of t
        accepted = (code[perhaps + (t >> 5)] if by_row else shifts[there + (t >> 5)]) | code[ignored + (t >> 5)]
        if accepted >> (t & 31) & 1 == 0 and t != inside:
            continue
        written = exits[EXIT_W * e + EXIT_COLUMN]
        ends_at = (written >> 1) + (0 if written & 1 else column) if written & 1 or column >= 0 else -1
        stack_2, columns_2, brackets_2 = commit(c, block, stack, t, columns, brackets, ends_at)
        if stack_2 < 0:
            return -1
        if stack_2 == 0:
            continue
        if depth >= MOST_DEPTH:
            if try_exit(c, s, e, out) < 0:
                return -1
            continue
        child = further(c, block, scanner, e, code[code[block + P_SCAN] + pairs[PAIR_W * stack_2]])
        if child < 0 or visit(c, s, block, child, stack_2, columns_2, brackets_2, unbroken, depth + 1, out) < 0:
            return -1
    return 0


@inlined("int64(int64, int64)")
def tail_of(c: Any, q: Any) -> Any:
    """List q without its first lexeme: what it is once that comes to nothing. Its id, 0 if it leads nowhere, or -1."""
    lists, new = view(c, LISTS), view(c, LISTING)
    n = lists[q] - 1
    for i in range(LEXEME_W * n):
        new[i] = lists[q + LIST_FIRST + LEXEME_W + i]
    return list_of(c, lists[q + LIST_BLOCK], n)


@kernel("int64(int64, int64, int64, int64)")
def add_lexemes(c: Any, s: Any, q: Any, out: Any) -> Any:
    """ORs into the mask the tokens by which the one lexeme in the making of list q may go on, or end. 0 or -1."""
    head, code, lists, pairs = view(c, HEAD), view(c, CODE), view(c, LISTS), view(c, PAIRS)
    readers, words_, spare, mask = view(c, LEX_READERS), view(c, LEX_WORDS), view(c, SPARE), at(out)
    block = lists[q + LIST_BLOCK] + 0
    scanner = view(c, SCANNERS)[code[block + P_INDEX]] + 0
    if scanner < 0:
        return ask(c, NEED_SCANNER, block)
    e = q + LIST_FIRST
    stack, state, columns, brackets, column = (
        lists[e] + 0, lists[e + 1] + 0, lists[e + 2] + 0, lists[e + 3] + 0, lists[e + 4] + 0,
    )  # fmt: skip
    before = head[N_PAIRS] + 0, head[N_MAY_SHIFT] + 0, head[N_LISTS] + 0, head[N_JOINTS] + 0
    reader = root(c, block, scanner, state)
    if reader < 0 or visit(c, s, block, reader, stack, columns, brackets, column, column - column, out) < 0:
        return -1
    bounds = readers[READER_W * reader + READER_BOUNDS] + 0
    words = view(c, TABLE)[T_WORDS] + 0
    for k in range(words_[bounds] if bounds >= 0 else 0):
        place = bounds + 1 + k * (1 + words)
        stack_2, columns_2, brackets_2 = commit(c, block, stack, words_[place], columns, brackets, column)
        if stack_2 < 0:
            return -1
        if stack_2 == 0:
            continue
        start = root(c, block, scanner, -1 - code[code[block + P_SCAN] + pairs[PAIR_W * stack_2]])
        if start < 0:
            return -1
        for w in range(words):
            spare[w] = 0
        if visit(c, s, block, start, stack_2, columns_2, brackets_2, -1, column - column, address(c, SPARE)) < 0:
            return -1
        for w in range(words):
            mask[w] |= spare[w] & words_[place + 1 + w]
    # Stacks that were only looked at are forgotten, unless what was taken byte by byte has been remembered.
    if head[N_LISTS] == before[2] and head[N_JOINTS] == before[3]:
        forget_pairs(c, before[0], before[1])
    return 0
