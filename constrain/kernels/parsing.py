"""Incremental scanning and LALR(1) parsing, byte by byte (kernels).

The scanner takes the longest match (maximal munch), which is known only when no further byte continues it. Until then
the state is a list of unfinished lexemes: the longest first, then those that begin where an earlier match ended, in
case the ones before them fail. Each has the parser's stack before it and a scanner state. A lexeme that is a match
whatever follows discards the entries after it. Usually the list has one entry. Stacks are cons cells, hash-consed;
lists are interned too.

With indentation, a lexeme that contains a line break also carries its column, and each entry the columns of the open
blocks and the number of open brackets, inside which line breaks are ignored (as in `lark.indenter.Indenter`).
"""

from __future__ import annotations

from typing import Any

from .context_views import size, view
from .interned_names import mix_hash, probe_slot, request
from .jit.compilation import inlined, kernel

from .context_layout import (  # isort: skip
    CODE, FULL, HEAD, LISTING, LISTS, LIST_HASH, MAY_SHIFT, NEED_COREACHABLE, NEED_UNION, N_LISTS, N_MAY_SHIFT, N_PAIRS,
    N_UNIONS, PAIRS, PAIR_HASH, PATH, REQUEST_BLOCK, REQUEST_LIST, UNIONS,
)  # fmt: skip
from .program_layout import (  # isort: skip
    CLOSING, IGNORED, NEWLINE, OPENING, P_ACCEPT, P_ACTION, P_DEAD_ENDS, P_DEDENT, P_DELTA, P_GOTO, P_IGNORED, P_INDENT,
    P_KINDS, P_LEFT, P_LENGTH, P_NEWLINE, P_NONTERMINALS, P_POSSIBLE, P_REDUCES, P_RULES, P_SCAN, P_SHIFTS, P_START,
    P_STATES, P_TAB, P_TERMINALS, P_ACCEPT_TABLE, P_WORDS,
)  # fmt: skip
from .record_layout import (  # isort: skip
    COLUMNS, LEXEME_BRACKETS, LEXEME_COLUMN, LEXEME_COLUMNS, LEXEME_STACK, LEXEME_STATE, LEXEME_W, LIST_BLOCK,
    LIST_COMPLETE, LIST_COUNT, LIST_FIRST, LIST_SLOT, MOST_LEXEMES, PAIR_BELOW, PAIR_SHIFTS, PAIR_SLOT, PAIR_VALUE,
    PAIR_W, SHIFTS_FIRST, SHIFTS_STACK, SHIFTS_WORDS, STATES, UNION_BLOCK, UNION_COUNT, UNION_SHIFTS, UNION_STATES,
    UNION_W, WAIT_AFTER, WAIT_RULE, WAIT_SHIFTS, WAIT_STACK, WAIT_W,
)  # fmt: skip


@kernel("int64(int64, int64, int64)")
def intern_pair(c: Any, value: Any, below: Any) -> Any:
    """Push `value` on stack `below`. Return the id of the stack, or -1."""
    head, pairs, table = view(c, HEAD), view(c, PAIRS), view(c, PAIR_HASH)
    last = size(c, PAIR_HASH) - 1
    h = mix_hash(mix_hash(0, value), below) & last
    while True:
        k = probe_slot(c, PAIR_HASH, h, 1, head[N_PAIRS], PAIRS, PAIR_W, PAIR_SLOT)
        if k < 0:
            break
        if pairs[PAIR_W * k + PAIR_VALUE] == value and pairs[PAIR_W * k + PAIR_BELOW] == below:
            return k
        h = (h + 1) & last
    k = head[N_PAIRS]
    if PAIR_W * (k + 1) > size(c, PAIRS) or 2 * k > last:
        return request(c, FULL, PAIRS)
    pairs[PAIR_W * k + PAIR_VALUE] = value
    pairs[PAIR_W * k + PAIR_BELOW] = below
    pairs[PAIR_W * k + PAIR_SLOT] = h
    pairs[PAIR_W * k + PAIR_SHIFTS] = -1
    table[h] = k
    head[N_PAIRS] = k + 1
    return k


@kernel("int64(int64, int64, int64, int64)")
def reduce_stack(c: Any, block: Any, stack: Any, rule: Any) -> Any:
    """Reduce by `rule`: pop its right side and push the goto state. Return the stack, or -1."""
    code, pairs = view(c, CODE), view(c, PAIRS)
    for _ in range(code[code[block + P_LENGTH] + rule]):
        stack = pairs[PAIR_W * stack + PAIR_BELOW] + 0
    left = code[code[block + P_LEFT] + rule]
    row = pairs[PAIR_W * stack + PAIR_VALUE] * code[block + P_NONTERMINALS]
    return intern_pair(c, code[code[block + P_GOTO] + row + left], stack)


@kernel("int64(int64, int64, int64, int64)")
def feed_terminal(c: Any, block: Any, stack: Any, terminal: Any) -> Any:
    """Reduce and shift a terminal. Return the stack, 0 if the terminal is refused, or -1.

    In a cyclic grammar (a symbol derives itself) reductions may not terminate: then the terminal is refused.
    """
    code, pairs = view(c, CODE), view(c, PAIRS)
    action, width = code[block + P_ACTION] + terminal, code[block + P_TERMINALS] + 0
    idle = 0  # consecutive reductions that do not shorten the stack
    while idle <= code[block + P_STATES]:
        table_entry = code[action + pairs[PAIR_W * stack + PAIR_VALUE] * width]
        if table_entry == 0:
            return 0
        if table_entry > 0:
            return intern_pair(c, table_entry - 1, stack)
        idle = idle + 1 if code[code[block + P_LENGTH] - table_entry - 1] < 2 else 0
        stack = reduce_stack(c, block, stack, -table_entry - 1)
        if stack < 0:
            return -1
    return 0


@kernel("int64(int64, int64, int64, int64)")
def push_waiting_stack(c: Any, block: Any, stack: Any, top: Any) -> Any:
    """Push a stack on the worklist of `find_accepted_terminals`. Return the new length of the worklist, or -1."""
    head, code, pairs, shifts, path = view(c, HEAD), view(c, CODE), view(c, PAIRS), view(c, MAY_SHIFT), view(c, PATH)
    words = code[block + P_WORDS] + 0
    accepted, state = head[N_MAY_SHIFT] + SHIFTS_FIRST, pairs[PAIR_W * stack + PAIR_VALUE] + 0
    if accepted + words > size(c, MAY_SHIFT):
        return request(c, FULL, MAY_SHIFT)
    if WAIT_W * (top + 1) > size(c, PATH):
        return request(c, FULL, PATH)
    head[N_MAY_SHIFT] = accepted + words
    shifts[accepted - SHIFTS_FIRST + SHIFTS_STACK] = stack
    shifts[accepted - SHIFTS_FIRST + SHIFTS_WORDS] = words
    for w in range(words):
        shifts[accepted + w] = code[code[block + P_SHIFTS] + state * words + w]
    if top > head[N_PAIRS]:  # a stack waits for itself: a cyclic grammar, see `feed_terminal`
        pairs[PAIR_W * stack + PAIR_SHIFTS] = accepted
        return top
    path[WAIT_W * top + WAIT_STACK], path[WAIT_W * top + WAIT_SHIFTS] = stack, accepted
    path[WAIT_W * top + WAIT_RULE] = code[code[block + P_REDUCES] + state]
    path[WAIT_W * top + WAIT_AFTER] = -1
    return top + 1


@kernel("int64(int64, int64, int64)")
def find_accepted_terminals(c: Any, block: Any, stack: Any) -> Any:
    """Return the terminals that the parser accepts with a stack: an offset in MAY_SHIFT, or -1.

    These are the terminals that the top state shifts and, for each rule that may be reduced, those of its lookaheads
    that the stack after the reduction accepts. If the table has dead ends, the caller computes the terminals that lead
    into none (NEED_COREACHABLE). The recursion over reductions is as deep as the text is long, so PATH is its stack
    (fields WAIT_...).
    """
    head, code, pairs, shifts, path = view(c, HEAD), view(c, CODE), view(c, PAIRS), view(c, MAY_SHIFT), view(c, PATH)
    memoised = pairs[PAIR_W * stack + PAIR_SHIFTS]
    if memoised >= 0:
        return memoised
    if code[block + P_DEAD_ENDS]:
        head[REQUEST_BLOCK] = block
        return request(c, NEED_COREACHABLE, stack)
    words = code[block + P_WORDS] + 0
    top = push_waiting_stack(c, block, stack, 0)
    while top > 0:
        e = WAIT_W * (top - 1)
        waiting, accepted = path[e + WAIT_STACK] + 0, path[e + WAIT_SHIFTS] + 0
        k, after = path[e + WAIT_RULE] + 0, path[e + WAIT_AFTER] + 0
        if after >= 0:
            rule, accepted_after = (
                code[block + P_RULES] + (k - 1) * (1 + words),
                pairs[PAIR_W * after + PAIR_SHIFTS] + 0,
            )
            for w in range(words):
                shifts[accepted + w] |= code[rule + 1 + w] & shifts[accepted_after + w]
            path[e + WAIT_AFTER] = -1
        first = code[block + P_REDUCES] + pairs[PAIR_W * waiting + PAIR_VALUE]
        if k == code[first + 1]:
            pairs[PAIR_W * waiting + PAIR_SHIFTS] = accepted
            top -= 1
            if top == 0:
                return accepted
            continue
        after = reduce_stack(c, block, waiting, code[code[block + P_RULES] + k * (1 + words)])
        if after <= 0:
            return -1
        pairs = view(c, PAIRS)
        path[e + WAIT_RULE], path[e + WAIT_AFTER] = k + 1, after
        if pairs[PAIR_W * after + PAIR_SHIFTS] < 0:
            top = push_waiting_stack(c, block, after, top)
    return -1


@kernel("int64(int64, int64, int64)")
def truncate_pairs(c: Any, pairs_before: Any, shifts_before: Any) -> Any:
    """Truncate PAIRS and MAY_SHIFT to earlier lengths, and discard the memos that pointed beyond them. Return 0."""
    head, pairs, shifts = view(c, HEAD), view(c, PAIRS), view(c, MAY_SHIFT)
    k = shifts_before
    while k < head[N_MAY_SHIFT]:
        if shifts[k + SHIFTS_STACK] < pairs_before:
            pairs[PAIR_W * shifts[k + SHIFTS_STACK] + PAIR_SHIFTS] = -1
        k += SHIFTS_FIRST + shifts[k + SHIFTS_WORDS]
    head[N_PAIRS], head[N_MAY_SHIFT] = pairs_before, shifts_before
    return 0


@inlined("UniTuple(int64, 3)(int64, int64, int64, int64, int64, int64, int64)")
def commit_lexeme(c: Any, block: Any, stack: Any, terminal: Any, columns: Any, brackets: Any, column: Any) -> Any:
    """Feed a completed lexeme to the parser. Return the stack (0: refused, -1: see HEAD), columns and open brackets."""
    code, pairs = view(c, CODE), view(c, PAIRS)
    kind = code[code[block + P_KINDS] + terminal]
    if kind == IGNORED or (kind == NEWLINE and brackets > 0):
        return stack, columns, brackets
    stack = feed_terminal(c, block, stack, terminal)
    if stack <= 0 or kind == 0:
        return stack, columns, brackets
    if kind == OPENING:
        return stack, columns, brackets + 1
    if kind == CLOSING:
        return stack if brackets > 0 else 0, columns, brackets - 1
    if column < 0:  # no line break in it: the Indenter fails
        return 0, columns, brackets
    if column > pairs[PAIR_W * columns + PAIR_VALUE]:
        stack = feed_terminal(c, block, stack, code[block + P_INDENT])
        columns = intern_pair(c, column, columns)
        return (-1 if columns < 0 else stack), columns, brackets
    while column < pairs[PAIR_W * columns + PAIR_VALUE]:
        stack = feed_terminal(c, block, stack, code[block + P_DEDENT])
        if stack <= 0:
            return stack, columns, brackets
        columns = pairs[PAIR_W * columns + PAIR_BELOW] + 0
    return (stack if column == pairs[PAIR_W * columns + PAIR_VALUE] else 0), columns, brackets


@kernel("int64(int64, int64, int64, int64)")
def accepts_end(c: Any, block: Any, stack: Any, columns: Any) -> Any:
    """Return whether the text may end with this stack after all blocks are closed: 1, 0 or -1."""
    code, pairs = view(c, CODE), view(c, PAIRS)
    while pairs[PAIR_W * columns + PAIR_VALUE] > 0:
        stack = feed_terminal(c, block, stack, code[block + P_DEDENT])
        if stack <= 0:
            return stack
        columns = pairs[PAIR_W * columns + PAIR_BELOW] + 0
    accepted = find_accepted_terminals(c, block, stack)
    end = code[block + P_TERMINALS] - 1
    return accepted if accepted < 0 else view(c, MAY_SHIFT)[accepted + (end >> 5)] >> (end & 31) & 1


@kernel("int64(int64, int64, int64, int64, int64)")
def compute_column(c: Any, block: Any, state: Any, column: Any, b: Any) -> Any:
    """Return the column in a lexeme after byte b, in scanner state `state`; -1: it contains no line break.

    0 for a lexeme that cannot be a line break. The caller handles brackets.
    """
    code = view(c, CODE)
    newline = code[block + P_NEWLINE]
    if newline < 0:
        return 0
    words = code[block + P_WORDS]
    if code[code[block + P_POSSIBLE] + state * words + (newline >> 5)] >> (newline & 31) & 1 == 0:
        return 0
    if b == 10:
        return 0
    if column < 0:
        return -1
    return column + (1 if b == 32 else code[block + P_TAB] if b == 9 else 0)


@kernel("int64(int64, int64, int64, int64)")
def find_union(c: Any, block: Any, m: Any, list_: Any) -> Any:
    """Return the terminals that lexeme m of the list at `list_` of LISTING can become if those before it fail.

    An offset in MAY_SHIFT, or -1. Rarely needed, so the caller computes it (NEED_UNION); UNIONS caches the result.
    """
    head, unions, new = view(c, HEAD), view(c, UNIONS), view(c, LISTING)
    for k in range(head[N_UNIONS]):
        is_equal = unions[UNION_W * k + UNION_BLOCK] == block and unions[UNION_W * k + UNION_COUNT] == m + 1
        i = 0
        while is_equal and i <= m:
            is_equal = unions[UNION_W * k + UNION_STATES + i] == new[list_ + LEXEME_W * i + LEXEME_STATE]
            i += 1
        if is_equal:
            return unions[UNION_W * k + UNION_SHIFTS]
    head[REQUEST_BLOCK] = block
    head[REQUEST_LIST] = list_
    return request(c, NEED_UNION, m + 1)


@kernel("int64(int64, int64, int64, int64)")
def may_become(c: Any, block: Any, m: Any, list_: Any) -> Any:
    """Return whether lexeme m of the list at `list_` of LISTING can become one that the parser accepts: 1, 0 or -1."""
    code, new, shifts = view(c, CODE), view(c, LISTING), view(c, MAY_SHIFT)
    e = list_ + LEXEME_W * m
    stack, state, brackets = new[e + LEXEME_STACK] + 0, new[e + LEXEME_STATE] + 0, new[e + LEXEME_BRACKETS] + 0
    words, ignored, newline = code[block + P_WORDS] + 0, code[block + P_IGNORED] + 0, code[block + P_NEWLINE] + 0
    accepted_at = find_accepted_terminals(c, block, stack)
    if accepted_at < 0:
        return -1
    leads_on = code[block + P_DEAD_ENDS] == 0
    for w in range(words):
        leads_on = leads_on or shifts[accepted_at + w] != 0
    if not leads_on:
        return 0
    if state < 0:  # nothing was read yet: every terminal is possible
        return 1
    union = 0
    if m > 0:
        union = find_union(c, block, m, list_)
        if union < 0:
            return -1
    possible = code[block + P_POSSIBLE] + state * words
    for w in range(words):
        possible_kinds = shifts[union + w] if m > 0 else code[possible + w]
        accepted = shifts[accepted_at + w] | code[ignored + w]
        if brackets > 0 and newline >> 5 == w and newline >= 0:
            accepted |= 1 << (newline & 31)
        if possible_kinds & accepted:
            return 1
    return 0


@kernel("int64(int64, int64, int64)")
def is_new_state(c: Any, m: Any, state: Any) -> Any:
    """Return whether lexeme m of LISTING, in scanner state `state`, is new; an earlier one in that state wins."""
    new = view(c, LISTING)
    for j in range(m):
        if new[LEXEME_W * j + LEXEME_STATE] == state:
            return 0
    return 1


@kernel("int64(int64, int64, int64)")
def intern_list(c: Any, block: Any, m: Any) -> Any:
    """Intern the first m lexemes of LISTING as a list. Return its id, 0 if all of them are dead ends, or -1."""
    head, lists, new, table = view(c, HEAD), view(c, LISTS), view(c, LISTING), view(c, LIST_HASH)
    code = view(c, CODE)
    while m > 0:
        useful = may_become(c, block, m - 1, 0)
        if useful < 0:
            return -1
        if useful:
            break
        m -= 1
    if m == 0:
        return 0
    last = size(c, LIST_HASH) - 1
    h = mix_hash(block, m)
    for i in range(LEXEME_W * m):
        h = mix_hash(h, new[i])
    h &= last
    while True:
        q = probe_slot(c, LIST_HASH, h, 1, head[N_LISTS], LISTS, 1, LIST_SLOT)
        if q < 0:
            break
        is_equal = lists[q] == m and lists[q + LIST_BLOCK] == block
        i = 0
        while is_equal and i < LEXEME_W * m:
            is_equal = lists[q + LIST_FIRST + i] == new[i]
            i += 1
        if is_equal:
            return q
        h = (h + 1) & last
    # The text may end here if the parser accepts the end after the first lexeme that is complete.
    complete = 0
    for i in range(m):
        e = LEXEME_W * i
        stack, state, columns, brackets, column = (
            new[e + LEXEME_STACK] + 0, new[e + LEXEME_STATE] + 0, new[e + LEXEME_COLUMNS] + 0,
            new[e + LEXEME_BRACKETS] + 0, new[e + LEXEME_COLUMN] + 0,
        )  # fmt: skip
        if state >= 0:
            terminal = code[code[block + P_ACCEPT_TABLE] + 257 * (code[code[block + P_ACCEPT] + state] >> 1) + 256]
            if terminal < 0:
                continue
            stack, columns, brackets = commit_lexeme(c, block, stack, terminal, columns, brackets, column)
            if stack < 0:
                return -1
        if stack > 0:
            complete = accepts_end(c, block, stack, columns)
            if complete < 0:
                return -1
        break
    q = head[N_LISTS]
    if q + LIST_FIRST + LEXEME_W * m > size(c, LISTS) or 2 * q > last * (LIST_FIRST + LEXEME_W):
        return request(c, FULL, LISTS)
    lists[q + LIST_COUNT] = m
    lists[q + LIST_BLOCK] = block
    lists[q + LIST_COMPLETE] = complete
    lists[q + LIST_SLOT] = h
    for i in range(LEXEME_W * m):
        lists[q + LIST_FIRST + i] = new[i]
    table[h] = q
    head[N_LISTS] = q + LIST_FIRST + LEXEME_W * m
    return q


@kernel("int64(int64, int64)")
def start_parse(c: Any, block: Any) -> Any:
    """Return the list at the start of the text: its id, or -1."""
    code, new = view(c, CODE), view(c, LISTING)
    bottom, columns = intern_pair(c, block, STATES), intern_pair(c, block, COLUMNS)
    if bottom < 0 or columns < 0:
        return -1
    start = code[block + P_START]
    stack, columns = intern_pair(c, start, bottom), intern_pair(c, 0, columns)
    if stack < 0 or columns < 0:
        return -1
    new[LEXEME_STACK], new[LEXEME_STATE] = stack, -1 - code[code[block + P_SCAN] + start]
    new[LEXEME_COLUMNS], new[LEXEME_BRACKETS], new[LEXEME_COLUMN] = columns, 0, -1
    return intern_list(c, block, 1)


@kernel("int64(int64, int64, int64)")
def extend_lexemes(c: Any, q: Any, b: Any) -> Any:
    """Write the unfinished lexemes after list q and byte b to LISTING. Return their number, or -1."""
    code, lists, new, pairs = view(c, CODE), view(c, LISTS), view(c, LISTING), view(c, PAIRS)
    block = lists[q + LIST_BLOCK] + 0
    delta, accept, accept_table = (
        code[block + P_DELTA] + 0,
        code[block + P_ACCEPT] + 0,
        code[block + P_ACCEPT_TABLE] + 0,
    )
    m = 0
    for i in range(lists[q]):
        e = q + LIST_FIRST + LEXEME_W * i
        stack, state, columns, brackets, column = (
            lists[e + LEXEME_STACK] + 0, lists[e + LEXEME_STATE] + 0, lists[e + LEXEME_COLUMNS] + 0,
            lists[e + LEXEME_BRACKETS] + 0, lists[e + LEXEME_COLUMN] + 0,
        )  # fmt: skip
        is_unread = state < 0
        if is_unread:
            state = -1 - state
        if m + 2 > MOST_LEXEMES:
            return request(c, FULL, LISTING)
        after = code[delta + 256 * state + b]
        if after >= 0 and is_new_state(c, m, after):
            at = LEXEME_W * m
            new[at + LEXEME_STACK], new[at + LEXEME_STATE] = stack, after
            new[at + LEXEME_COLUMNS], new[at + LEXEME_BRACKETS] = columns, brackets
            new[at + LEXEME_COLUMN] = 0 if brackets > 0 else compute_column(c, block, after, column, b)
            m += 1
            if code[accept + after] & 1:  # a match whatever follows: the entries after it assume a shorter one
                return m
        if is_unread:
            return m
        terminal = code[accept_table + 257 * (code[accept + state] >> 1) + b]
        if terminal >= 0:
            stack, columns, brackets = commit_lexeme(c, block, stack, terminal, columns, brackets, column)
            if stack < 0:
                return -1
            if stack > 0:
                after = code[delta + 256 * code[code[block + P_SCAN] + pairs[PAIR_W * stack + PAIR_VALUE]] + b]
                if after >= 0 and is_new_state(c, m, after):
                    at = LEXEME_W * m
                    new[at + LEXEME_STACK], new[at + LEXEME_STATE] = stack, after
                    new[at + LEXEME_COLUMNS], new[at + LEXEME_BRACKETS] = columns, brackets
                    new[at + LEXEME_COLUMN] = 0 if brackets > 0 else compute_column(c, block, after, -1, b)
                    m += 1
            return m
    return m


@kernel("int64(int64, int64, int64)")
def step_parse(c: Any, q: Any, b: Any) -> Any:
    """Return the list after list q and byte b: its id, 0 if the byte is refused, or -1."""
    m = extend_lexemes(c, q, b)
    return -1 if m < 0 else intern_list(c, view(c, LISTS)[q + LIST_BLOCK], m)
