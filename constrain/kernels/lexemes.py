"""The lexeme trie: the results of scanning every token of the vocabulary, independent of the parser (kernels).

Scanned from a scanner state, a token ends inside a lexeme (its *class*: the terminals that the lexeme can still
become), or completes a lexeme (its *exit*: the terminal, and the remainder of the token), or is refused. A *reader* is
the result for all tokens from one state, computed once and stored in the vocabulary's MaskTable. The remainders of an
exit are scanned from the scanner's next start state when a parser first gets there, and so on: the readers form a trie
of lexemes. `lexeme_masks` walks it with the parser's stack.

By maximal munch an unfinished lexeme may still fail, so that an earlier end counts. Such a token is *doubtful*: where
its class does not decide, it is stepped byte by byte.
"""

from __future__ import annotations

from typing import Any

from .context_views import load_acquire, size, store_release, view
from .interned_names import request
from .jit.compilation import inlined, kernel
from .program_layout import P_ACCEPT, P_ACCEPT_TABLE, P_CLASS, P_CLASSES, P_DELTA, P_NEWLINE, P_TAB, P_TERMINALS
from .vocabulary_trie import read_byte

from .context_layout import (  # isort: skip
    ARGUMENT, BUILDING, CODE, HEAD, LEX_CACHE, LEX_CACHED, LEX_CLASSES, LEX_EXITS, LEX_READERS, LEX_ROOTS, LEX_WORDS,
    NEED_READERS, NEED_ROOT, N_LEX_CLASSES, N_LEX_EXITS, N_LEX_READERS, N_LEX_WORDS, OFFSETS, REQUESTED, REQUEST_BLOCK,
    TABLE, TABLE_FULL, TRIE_TEMP, T_WORDS,
)  # fmt: skip
from .table_layout import (  # isort: skip
    CACHED_DOUBT, CACHED_END, CACHED_ITEM, CACHED_STATE, CACHED_W, CLASS_COUNT, CLASS_FIRST, CLASS_KIND, CLASS_W,
    DOUBTFUL, EXIT_COLUMN, EXIT_COUNT, EXIT_FIRST, EXIT_READER, EXIT_TERMINAL, EXIT_W, LEX_CHAINS, MOST_COLUMNS,
    MOST_LISTED, OPEN_END, READER_BOUNDS, READER_CLASSES, READER_DOUBTS, READER_EXITS, READER_NEXT, READER_N_CLASSES,
    READER_N_DOUBTS, READER_N_EXITS, READER_SCANNER, READER_STATE, READER_W, READ_DOUBT, READ_END, READ_ITEM, READ_W,
    UNREAD,
)  # fmt: skip


@inlined("int64(int64, int64, int64, int64)")
def find_reader(c: Any, scanner: Any, state: Any, first: Any) -> Any:
    """Return the reader of a scanner state in the hash chain that begins with reader `first`, or -1."""
    readers = view(c, LEX_READERS)
    while first >= 0:
        r = READER_W * first
        if readers[r + READER_SCANNER] == scanner and readers[r + READER_STATE] == state:
            return first
        first = readers[r + READER_NEXT]
    return -1


@kernel("int64(int64, int64, int64, int64, int64, int64)")
def read_token(c: Any, block: Any, state: Any, item: Any, out: Any, exits: Any) -> Any:
    """Scan the remainder of a token and write the result (fields READ_...) to TRIE_TEMP from `out` on.

    Nothing is written if the token is refused.

    item: token << 8 | number of bytes read before. state: scanner state after the first byte of the remainder. exits:
    the number of terminals; keys of exits from there on are columns of lexemes that end a line.
    """
    code, offsets, temp = view(c, CODE), view(c, OFFSETS), view(c, TRIE_TEMP)
    delta, accept, accept_table = (
        code[block + P_DELTA] + 0,
        code[block + P_ACCEPT] + 0,
        code[block + P_ACCEPT_TABLE] + 0,
    )
    newline, tab = code[block + P_NEWLINE] + 0, code[block + P_TAB] + 0
    token, bytes_read = item >> 8, item & 255
    i, last = offsets[token] + bytes_read, offsets[token + 1] + 0
    terminal, end, column_end = -1, 0, 0
    column, has_line_end = 0, 0  # since the last line break in the lexeme, if any
    first = i
    while i < last:
        b = read_byte(c, i)
        if i > first:
            row = code[accept + state] >> 1
            if row and code[accept_table + 257 * row + b] >= 0:
                terminal, end, column_end = code[accept_table + 257 * row + b] + 0, i, column * 2 + has_line_end
            state = code[delta + 256 * state + b] + 0
            if state < 0:
                break
        if newline >= 0:
            if b == 10:
                column, has_line_end = 0, 1
            elif b == 32:
                column += 1
            elif b == 9:
                column += tab
        i += 1
    if state >= 0:
        temp[out + READ_END] = code[code[block + P_CLASS] + state]
        if code[accept + state] & 1 == 0:
            temp[out + READ_DOUBT] = DOUBTFUL if terminal >= 0 else OPEN_END
        return 0
    if terminal >= 0:
        key = terminal
        if terminal == newline:
            if column_end >= MOST_COLUMNS:
                temp[out + READ_END] = code[code[block + P_CLASS]]
                temp[out + READ_DOUBT] = UNREAD  # too wide to get a key
                return 0
            key = exits + column_end
        temp[out + READ_END] = -2 - key
        temp[out + READ_ITEM] = token << 8 | (end - offsets[token])
    return 0


@kernel("int64(int64, int64, int64, int64, int64)")
def make_reader(c: Any, block: Any, scanner: Any, state: Any, exit_: Any) -> Any:
    """Build the reader of the remainders of an exit (-1: of all tokens) from a scanner state.

    Return it, or -1 if the table is full. The caller holds the lock of the table and links the reader.

    The result for a token depends only on the state after its first byte, which is the same for most start states:
    LEX_CACHE holds it for the latest scanner.
    """
    table, code, temp = view(c, TABLE), view(c, CODE), view(c, TRIE_TEMP)
    readers, classes, exits = view(c, LEX_READERS), view(c, LEX_CLASSES), view(c, LEX_EXITS)
    lex_words, offsets = view(c, LEX_WORDS), view(c, OFFSETS)
    words, terminals, kinds = table[T_WORDS] + 0, code[block + P_TERMINALS] + 0, code[block + P_CLASSES] + 0
    first = exits[EXIT_W * exit_ + EXIT_FIRST] + 0 if exit_ >= 0 else 0
    count = exits[EXIT_W * exit_ + EXIT_COUNT] + 0 if exit_ >= 0 else size(c, OFFSETS) - 1
    keys = terminals + MOST_COLUMNS
    by_key, by_class = READ_W * count, READ_W * count + keys
    if by_class + kinds > size(c, TRIE_TEMP):
        return -1
    for k in range(by_key, by_class + kinds):
        temp[k] = 0
    n_doubtful = 0
    d = -1 - state if state < 0 else state
    delta, cache = code[block + P_DELTA] + 256 * d, view(c, LEX_CACHE)
    if table[LEX_CACHED] != scanner + 1:
        table[LEX_CACHED] = scanner + 1
        for i in range(size(c, OFFSETS) - 1):
            cache[CACHED_W * i + CACHED_STATE] = -1
    accept_row = code[code[block + P_ACCEPT] + d] >> 1 if state >= 0 else 0
    for i in range(count):
        item = lex_words[first + i] + 0 if exit_ >= 0 else i << 8
        token, p = item >> 8, READ_W * i
        begin = offsets[token] + (item & 255)
        temp[p + READ_END] = -1
        temp[p + READ_DOUBT] = 0
        if begin == offsets[token + 1]:
            continue
        b = read_byte(c, begin)
        after = code[delta + b] + 0
        if after < 0:
            continue
        if offsets[token + 1] - offsets[token] > 255:
            temp[p + READ_END] = 0
            temp[p + READ_DOUBT] = UNREAD
        elif exit_ >= 0:
            read_token(c, block, after, item, p, terminals)
        elif cache[CACHED_W * token + CACHED_STATE] == after:
            k = CACHED_W * token
            kind, item_left, doubt = cache[k + CACHED_END], cache[k + CACHED_ITEM], cache[k + CACHED_DOUBT]
            temp[p + READ_END], temp[p + READ_ITEM], temp[p + READ_DOUBT] = kind, item_left, doubt
        else:
            read_token(c, block, after, item, p, terminals)
            cache[CACHED_W * token + CACHED_STATE] = after
            k = CACHED_W * token
            kind, item_left, doubt = temp[p + READ_END], temp[p + READ_ITEM], temp[p + READ_DOUBT]
            cache[k + CACHED_END], cache[k + CACHED_ITEM], cache[k + CACHED_DOUBT] = kind, item_left, doubt
        if (
            accept_row and code[code[block + P_ACCEPT_TABLE] + 257 * accept_row + b] >= 0
        ):  # the lexeme may end before the token
            if temp[p + READ_END] == -1:
                t = code[code[block + P_ACCEPT_TABLE] + 257 * accept_row + b]
                temp[p + READ_END] = -2 - (t if t != code[block + P_NEWLINE] else terminals)
                temp[p + READ_ITEM] = item
            elif temp[p + READ_DOUBT] == OPEN_END:
                temp[p + READ_DOUBT] = DOUBTFUL
        if temp[p + READ_DOUBT] == OPEN_END:
            temp[p + READ_DOUBT] = 0
        if temp[p + READ_DOUBT]:
            n_doubtful += 1
        if temp[p + READ_DOUBT] == UNREAD:
            continue
        if temp[READ_W * i + READ_END] >= 0:
            temp[by_class + temp[READ_W * i + READ_END]] += 1
        elif temp[READ_W * i + READ_END] <= -2:
            temp[by_key - 2 - temp[READ_W * i + READ_END]] += 1
    # Check that everything fits before anything is written.
    r, n_classes, n_exits = table[N_LEX_READERS] + 0, table[N_LEX_CLASSES] + 0, table[N_LEX_EXITS] + 0
    next_word = table[N_LEX_WORDS] + 0
    if READER_W * (r + 1) > size(c, LEX_READERS):
        return -1
    if CLASS_W * (n_classes + kinds) > size(c, LEX_CLASSES) or EXIT_W * (n_exits + keys) > size(c, LEX_EXITS):
        return -1
    if next_word + count + n_doubtful + words * (count // MOST_LISTED + 1) > size(c, LEX_WORDS):
        return -1
    first_class, first_exit = n_classes, n_exits
    for k in range(kinds):
        n = temp[by_class + k] + 0
        if n == 0:
            continue
        p = CLASS_W * n_classes
        classes[p + CLASS_KIND] = k
        classes[p + CLASS_COUNT] = n if n <= MOST_LISTED else -1
        classes[p + CLASS_FIRST] = next_word
        temp[by_class + k] = next_word  # the next free word
        if n > MOST_LISTED:
            for w in range(words):
                lex_words[next_word + w] = 0
        next_word += n if n <= MOST_LISTED else words
        temp[by_class + k] = temp[by_class + k] << 1 | (0 if n <= MOST_LISTED else 1)
        n_classes += 1
    for k in range(keys):
        n = temp[by_key + k] + 0
        if n == 0:
            continue
        p = EXIT_W * n_exits
        exits[p + EXIT_TERMINAL] = k if k < terminals else code[block + P_NEWLINE]
        exits[p + EXIT_COLUMN] = k - terminals if k >= terminals else 0
        exits[p + EXIT_FIRST] = next_word
        exits[p + EXIT_COUNT] = n
        exits[p + EXIT_READER] = -1
        temp[by_key + k] = next_word
        next_word += n
        n_exits += 1
    first_doubt = next_word
    for i in range(count):
        token = lex_words[first + i] >> 8 if exit_ >= 0 else i
        if temp[READ_W * i + READ_DOUBT]:
            lex_words[next_word] = token
            next_word += 1
        if temp[READ_W * i + READ_DOUBT] == UNREAD:
            continue
        if temp[READ_W * i + READ_END] >= 0:
            k = by_class + temp[READ_W * i + READ_END]
            if temp[k] & 1:
                lex_words[(temp[k] >> 1) + (token >> 5)] |= 1 << (token & 31)
            else:
                lex_words[temp[k] >> 1] = token
                temp[k] += 2
        elif temp[READ_W * i + READ_END] <= -2:
            k = by_key - 2 - temp[READ_W * i + READ_END]
            lex_words[temp[k]] = temp[READ_W * i + READ_ITEM]
            temp[k] += 1
    p = READER_W * r
    readers[p + READER_SCANNER] = scanner
    readers[p + READER_STATE] = state
    readers[p + READER_CLASSES] = first_class
    readers[p + READER_N_CLASSES] = n_classes - first_class
    readers[p + READER_EXITS] = first_exit
    readers[p + READER_N_EXITS] = n_exits - first_exit
    readers[p + READER_DOUBTS] = first_doubt
    readers[p + READER_N_DOUBTS] = next_word - first_doubt
    readers[p + READER_BOUNDS] = -1
    table[N_LEX_READERS], table[N_LEX_CLASSES], table[N_LEX_EXITS] = r + 1, n_classes, n_exits
    table[N_LEX_WORDS] = next_word
    return r


@kernel("int64(int64, int64, int64, int64)")
def make_bounds(c: Any, block: Any, reader: Any, state: Any) -> Any:
    """Write the terminals by which an unfinished lexeme may end where a token begins, and before which tokens.

    In LEX_WORDS: their number, then for each the terminal and a row of bits of the tokens whose first byte ends the
    lexeme so. Return 0, or -1 if the table is full.
    """
    table, code, out = view(c, TABLE), view(c, CODE), view(c, LEX_WORDS)
    offsets, temp = view(c, OFFSETS), view(c, TRIE_TEMP)
    words, terminals = table[T_WORDS] + 0, code[block + P_TERMINALS] + 0
    row = code[code[block + P_ACCEPT] + state] >> 1
    for t in range(terminals):
        temp[t] = -1
    first, n = table[N_LEX_WORDS] + 0, 0
    for b in range(256):
        t = code[code[block + P_ACCEPT_TABLE] + 257 * row + b]
        if row and t >= 0 and code[code[block + P_DELTA] + 256 * state + b] < 0 and temp[t] < 0:
            bound = first + 1 + n * (1 + words)
            if bound + 1 + words > size(c, LEX_WORDS):
                return -1
            temp[t] = bound + 1
            out[bound] = t
            for w in range(words):
                out[bound + 1 + w] = 0
            n += 1
    out[first] = n
    if n:
        for token in range(size(c, OFFSETS) - 1):
            if offsets[token] < offsets[token + 1]:
                b = read_byte(c, offsets[token])
                t = code[code[block + P_ACCEPT_TABLE] + 257 * row + b]
                if t >= 0 and code[code[block + P_DELTA] + 256 * state + b] < 0:
                    out[temp[t] + (token >> 5)] |= 1 << (token & 31)
    table[N_LEX_WORDS] = first + 1 + n * (1 + words)
    view(c, LEX_READERS)[READER_W * reader + READER_BOUNDS] = first
    return 0


@kernel("int64(int64, int64, int64, int64)")
def find_root_reader(c: Any, block: Any, scanner: Any, state: Any) -> Any:
    """Return the reader of all tokens from a scanner state (-1 - start, or that of an unfinished lexeme), or -1."""
    roots, readers = view(c, LEX_ROOTS), view(c, LEX_READERS)
    slot = (state * 31 + scanner * 1009) & (LEX_CHAINS - 1)
    reader = find_reader(c, scanner, state, load_acquire(roots, slot))
    if reader >= 0:
        return reader
    head = view(c, HEAD)
    if head[BUILDING] != REQUESTED or head[REQUEST_BLOCK] != block or head[ARGUMENT] != state:
        head[REQUEST_BLOCK] = block
        return request(c, NEED_ROOT, state)
    new_reader = make_reader(c, block, scanner, state, -1)
    if new_reader < 0 or (state >= 0 and make_bounds(c, block, new_reader, state) < 0):
        return request(c, TABLE_FULL, 0)
    readers[READER_W * new_reader + READER_NEXT] = roots[slot]
    store_release(roots, slot, new_reader)
    return new_reader


@kernel("int64(int64, int64, int64, int64, int64)")
def find_next_reader(c: Any, block: Any, scanner: Any, exit_: Any, state: Any) -> Any:
    """Return the reader of the remainders of an exit from the scanner's start state `state`, or -1."""
    exits, readers = view(c, LEX_EXITS), view(c, LEX_READERS)
    reader = find_reader(c, scanner, -1 - state, load_acquire(exits, EXIT_W * exit_ + EXIT_READER))
    if reader >= 0:
        return reader
    if view(c, HEAD)[BUILDING] == 0:
        view(c, HEAD)[REQUEST_BLOCK] = block
        return request(c, NEED_READERS, 0)
    new_reader = make_reader(c, block, scanner, -1 - state, exit_)
    if new_reader < 0:
        return request(c, TABLE_FULL, 0)
    readers[READER_W * new_reader + READER_NEXT] = exits[EXIT_W * exit_ + EXIT_READER]
    store_release(exits, EXIT_W * exit_ + EXIT_READER, new_reader)
    return new_reader
