"""Rows and suffix tries of leaf states (kernels).

From a leaf state, one walk of the main trie (`vocabulary_trie`) finds

- the *row*: the tokens that end inside the leaf, as a mask; and
- the *exits*: the trie nodes at which the leaf may end inside a token. The subtrees of the exits are merged into one
  small trie, the *suffix trie*: 1,312 tokens of a 128k vocabulary close a JSON string, but at few distinct nodes and
  with few distinct suffixes. A mask then walks the suffix trie once, from the set that follows the leaf.

Only the owner of the table (`vocabulary.mask_table`, under a lock) calls these kernels.
"""

from __future__ import annotations

from typing import Any

from .byte_rows import count_word_scratch, find_words, holds_words_only, read_groups, write_words
from .context_views import size, store_release, view
from .jit.compilation import entry, inlined

from .context_layout import (  # isort: skip
    BELOW, BY_LENGTH, CONTENTS, DFAS, FREE_ROW, LEAF_NEXT, LEAVES, MACHINES, MADE_ROW, N_BY_LENGTH, N_ROWS, N_TRIE,
    N_TRIE_EDGES, N_TRIE_TOKENS, QUOTED, ROWS, TABLE, TRIE, TRIE_EDGES, TRIE_END, TRIE_TEMP, TRIE_TOKENS, T_WORDS,
)  # fmt: skip
from .table_layout import (  # isort: skip
    ALL_LENGTHS, BELOW_BYTES, BELOW_HEIGHT, BELOW_W, CONTENTS_GROUPS, DESCENT_CHARACTERS, DESCENT_NODE, DESCENT_STATE,
    DESCENT_W, DONE, ENTRY_CHARACTERS, ENTRY_TOKEN, ENTRY_W, ESCAPE, ESCAPED, HEIGHT, IN_ROW, IN_WORDS, JSON_INSIDE,
    KIND, LEAF_ALLOWED, LEAF_BOUNDARY, LEAF_BY_LENGTH, LEAF_CLOSES, LEAF_DECODER, LEAF_EXITS, LEAF_EXPANDED,
    LEAF_FLAGS, LEAF_LONGEST, LEAF_MACHINE, LEAF_NEED, LEAF_ROW, LEAF_SAFE, LEAF_SHORT, LEAF_STAYING_DEPTH,
    LEAF_STAYING_NEED, LEAF_SUFFIXES, LEAF_SUFFIXES_END, LEAF_W, LENGTH_CLASSES, LISTED_FROM, LISTED_OFFSETS,
    LISTED_TO, LISTED_TOKENS, MACHINE_DFA, MACHINE_MODE, MACHINE_W, MERGED_CHARACTERS, MERGED_FIRST, MERGED_NODE,
    MERGED_W, MULTIBYTE_GROUPS, QUOTED_CLOSING, QUOTE_BELOW, TRIE_FIRST_EDGE, TRIE_FIRST_TOKEN, TRIE_W, VISIT_END,
    VISIT_W, WORD_ENDS, WORD_GROUPS, WORD_NEED,
)  # fmt: skip
from .leaves import expand_leaf
from .quoted_subtrees import list_closings
from .subtree_summaries import count_scratch, find_staying_bytes, stays_inside
from .vocabulary_trie import TABLE_IS_FULL

LONG = 4
"""Characters that must not be refused for a row to begin as that of any JSON string: many tokens are no longer."""
LONGER = 24
"""Characters that must not be refused for the walk of the longer tokens to be shorter than that beside word groups."""
MOST_REFUSED = 4
"""Divisor of the number of tokens: the part whose first byte may be refused in a row that begins so all the same."""


@inlined("int64(int64, int64)")
def find_most_needed(t: Any, q: Any) -> Any:
    """Return the most characters that any state of the DFA of leaf state q needs."""
    dfas, at = (
        view(t, DFAS),
        view(t, MACHINES)[MACHINE_W * view(t, LEAVES)[q * LEAF_W + LEAF_MACHINE] + MACHINE_DFA] + 0,
    )
    most_needed = 0
    for k in range(dfas[at]):
        most_needed = max(most_needed, dfas[at + 3 + 2 * dfas[at + 2] + 128 + dfas[at] + k])
    return most_needed


@inlined("int64(int64, int64)")
def begins_as_copy(t: Any, q: Any) -> Any:
    """Return whether the row of leaf state q, expanded, is nearly that of any JSON string, judged by first bytes."""
    leaves, transitions, trie = view(t, LEAVES), view(t, LEAF_NEXT), view(t, TRIE)
    edges, end = view(t, TRIE_EDGES), view(t, TRIE_END)
    if leaves[q * LEAF_W + LEAF_FLAGS] >> LEAF_SAFE >= LONG:
        return 1
    refused = 0
    for e in range(trie[TRIE_FIRST_EDGE], trie[TRIE_W + TRIE_FIRST_EDGE]):
        child = edges[e] >> 8
        if transitions[256 * q + (edges[e] & 255)] < 0:
            refused += trie[TRIE_W * end[child] + TRIE_FIRST_TOKEN] - trie[TRIE_W * child + TRIE_FIRST_TOKEN]
    return 1 if MOST_REFUSED * refused <= trie[TRIE_W * end[0] + TRIE_FIRST_TOKEN] else 0


@inlined("int64(int64, int64)")
def is_between_characters(t: Any, q: Any) -> Any:
    """Return whether leaf state q is between two characters inside a JSON string that the leaf does not close."""
    leaves = view(t, LEAVES)
    mode = view(t, MACHINES)[MACHINE_W * leaves[q * LEAF_W + LEAF_MACHINE] + MACHINE_MODE]
    return mode == JSON_INSIDE and leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_BOUNDARY != 0


@inlined("int64(int64, int64, int64)")
def has_many_exits(t: Any, q: Any, budget: Any) -> Any:
    """Return whether leaf state q, expanded, is inside a JSON string and its suffix trie is known to exceed the budget.

    Counted are the tokens below its exits after one byte: all of them, where the leaf may end after any character.
    """
    leaves, transitions, trie = view(t, LEAVES), view(t, LEAF_NEXT), view(t, TRIE)
    edges, end, total = view(t, TRIE_EDGES), view(t, TRIE_END), 0
    if not is_between_characters(t, q):
        return False
    for e in range(trie[TRIE_FIRST_EDGE], trie[TRIE_W + TRIE_FIRST_EDGE]):
        child, after = edges[e] >> 8, transitions[256 * q + (edges[e] & 255)]
        if after >= 0 and leaves[after * LEAF_W + LEAF_FLAGS] & LEAF_EXITS:
            total += trie[TRIE_W * end[child] + TRIE_FIRST_TOKEN] - trie[TRIE_W * child + TRIE_FIRST_TOKEN]
    return total > budget


@entry("int64(int64, int64, int64)")
def make_row(t: Any, q: Any, budget: Any) -> Any:
    """Write the row of leaf state q, and the exits of its tokens to TRIE_TEMP. Return the number of exits.

    budget: of `make_suffix_trie`. If it is known not to suffice, a number greater than it is returned, and exits are
    not written.

    The caller publishes the row: MADE_ROW is a new one after the last, or that of any JSON string.

    A row of a JSON string begins as that of the tokens of word groups, if there are such (`byte_rows`). Of subtrees
    that begin with these (IN_WORDS), only those are walked in which a byte occurs that may come besides.

    An exit is (main trie node, characters so far | ESCAPED). A subtree that stays inside by the summaries
    (`subtree_summaries`) is added without a walk: most of the vocabulary, if most characters may come. If few tokens
    are refused, the row begins as a copy of that of any JSON string (IN_ROW), from which they are cleared; where no
    character is refused for LEAF_SAFE characters, only longer tokens are walked. The exits of a JSON string between two
    characters are found along the closing paths (`quoted_subtrees`), those of other states in the same walk. An
    existing row is not changed. TABLE_IS_FULL if the table or the scratch is full.
    """
    counts, leaves, transitions, rows = view(t, TABLE), view(t, LEAVES), view(t, LEAF_NEXT), view(t, ROWS)
    trie, edges, tokens, temp = view(t, TRIE), view(t, TRIE_EDGES), view(t, TRIE_TOKENS), view(t, TRIE_TEMP)
    below, end, contents = view(t, BELOW), view(t, TRIE_END), view(t, CONTENTS)
    words, row = counts[T_WORDS] + 0, counts[N_ROWS] + 0
    if words * (row + 1) > size(t, ROWS) or expand_leaf(t, q) < 0:
        return TABLE_IS_FULL
    base = words * row
    # A leaf that does not close its JSON string is left where it may end: the walk finds these exits.
    is_open = is_between_characters(t, q)
    has_no_trie = is_open and has_many_exits(t, q, budget)
    finds_ends = is_open and not has_no_trie
    # The row of any JSON string, and word groups, hold for states between two characters only.
    quoted = LEAF_BOUNDARY if is_open else LEAF_BOUNDARY | LEAF_CLOSES
    free_base = (counts[FREE_ROW] - 1) * words if leaves[q * LEAF_W + LEAF_FLAGS] & quoted == quoted else -1
    copies_free = free_base >= 0 and begins_as_copy(t, q) != 0
    safe_characters = 0 if finds_ends else leaves[q * LEAF_W + LEAF_FLAGS] >> LEAF_SAFE
    is_free_row = copies_free and safe_characters >= below[BELOW_HEIGHT] & HEIGHT
    # The stack of the walk grows down from the end of the scratch: (node, leaf state, characters, end).
    n_exits, top, end_of_temp, longest = 0, 1, size(t, TRIE_TEMP), 0
    dfa = view(t, MACHINES)[MACHINE_W * leaves[q * LEAF_W + LEAF_MACHINE] + MACHINE_DFA] + 0
    if count_scratch(t, dfa) > end_of_temp // 8 or count_word_scratch(t, dfa) > end_of_temp // 8:
        return TABLE_IS_FULL
    most_needed = find_most_needed(t, q)  # a bound for tokens that are not walked
    exits_are_listed = has_no_trie or (not is_open and free_base >= 0 and view(t, QUOTED)[QUOTED_CLOSING] != 0)
    if exits_are_listed:
        n_exits = budget + 1 if has_no_trie else list_closings(t, q)
        if n_exits < 0:
            return TABLE_IS_FULL
        if leaves[q * LEAF_W + LEAF_ROW] >= 0:
            return n_exits
        if is_free_row:
            leaves[q * LEAF_W + LEAF_LONGEST] = (below[BELOW_HEIGHT] & HEIGHT) + most_needed
            counts[MADE_ROW] = counts[FREE_ROW] - 1
            return n_exits
    # Word groups, and the bytes for which they are read; before the stack.
    found, spelled = end_of_temp // 8 * 5, 0
    has_few_longer = copies_free and (is_free_row or safe_characters >= LONGER)
    if leaves[q * LEAF_W + LEAF_FLAGS] & quoted == quoted and not has_few_longer:
        spelled = find_words(t, q, found)
        if finds_ends and temp[found + WORD_ENDS]:
            spelled = 0  # Within words the leaf may end.
    groups = read_groups(t, found + WORD_GROUPS) if spelled > 0 else 0
    beyond = groups & MULTIBYTE_GROUPS
    copies_free = copies_free and spelled == 0
    if leaves[q * LEAF_W + LEAF_ROW] >= 0 or is_free_row:
        pass
    elif spelled > 0:
        longest = write_words(t, groups, spelled, base) + temp[found + WORD_NEED]
    else:
        for w in range(words):
            rows[base + w] = rows[free_base + w] if copies_free else 0
    at = end_of_temp - VISIT_W
    temp[at + DESCENT_NODE], temp[at + DESCENT_STATE], temp[at + VISIT_END] = 0, q, end[0]
    temp[at + DESCENT_CHARACTERS] = IN_ROW if copies_free else IN_WORDS if spelled > 0 else 0
    # Fields of the latest leaf state: the next one is usually the same.
    last, flags, need, is_done, is_escape = -1, 0, 0, False, False
    while top > 0:
        at = end_of_temp - VISIT_W * top
        node, state, end_node = temp[at + DESCENT_NODE] + 0, temp[at + DESCENT_STATE] + 0, temp[at + VISIT_END] + 0
        in_words = temp[at + DESCENT_CHARACTERS] & IN_WORDS
        characters_before = temp[at + DESCENT_CHARACTERS] & ~IN_WORDS
        top -= 1
        # Of words of limited length, which are ASCII until they are walked, each byte so far is a character.
        room = HEIGHT if spelled == HEIGHT else spelled - (characters_before & (ESCAPED - 1)) - 1
        characters = characters_before + (1 if leaves[state * LEAF_W + LEAF_FLAGS] & LEAF_BOUNDARY else 0)
        in_row, safe = characters_before & IN_ROW, leaves[state * LEAF_W + LEAF_FLAGS] >> LEAF_SAFE
        last_edge = trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE] - 1
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], last_edge + 1):
            edge, summary = edges[e], BELOW_W * (1 + e)
            child = edge >> 8
            # The subtree ends where that of the next edge begins. Most have one node: no summary is read for these.
            next_node = edges[e + 1] >> 8 if e < last_edge else end_node
            is_tip = next_node == child + 1
            still_in_words = 0
            if in_words and room >= 0:
                b = edge & 255
                # Within a character, whose first byte was of a word group, the byte does not matter.
                if (groups >> contents[CONTENTS_GROUPS + b] & 1 or 128 <= b < 192) and (b < 128 or room == HEIGHT):
                    if is_tip or holds_words_only(t, e, found, room, beyond):
                        continue
                    still_in_words = IN_WORDS
            if in_row and safe > 0 and not finds_ends and (exits_are_listed or edge & 255 != 34):
                if is_tip:
                    continue
                has_exits = not exits_are_listed and below[summary + BELOW_BYTES] & QUOTE_BELOW != 0
                if not has_exits and below[summary + BELOW_HEIGHT] & HEIGHT < safe:
                    continue
            after = transitions[256 * state + (edge & 255)]
            if after < 0:
                if in_row and not is_free_row:
                    stop = trie[TRIE_W * next_node + TRIE_FIRST_TOKEN]
                    for i in range(trie[TRIE_W * child + TRIE_FIRST_TOKEN], stop):
                        token = tokens[ENTRY_W * i + ENTRY_TOKEN]
                        rows[base + (token >> 5)] &= ~(1 << (token & 31))
                continue
            if after != last:
                r = after * LEAF_W
                if leaves[r + LEAF_STAYING_DEPTH] == 0:
                    find_staying_bytes(t, after)
                last, flags, need = after, leaves[r + LEAF_FLAGS] + 0, leaves[r + LEAF_NEED] + 0
                is_done, is_escape = (
                    leaves[r + LEAF_DECODER] >> KIND == DONE,
                    leaves[r + LEAF_DECODER] >> KIND == ESCAPE,
                )
            count = characters_before if is_done else characters
            if is_escape:
                count |= ESCAPED
            if flags & LEAF_EXITS and not has_no_trie:
                if exits_are_listed:
                    continue
                if MERGED_FIRST + MERGED_W * (n_exits + 1) > end_of_temp // 2:  # `find_staying_bytes` uses the middle
                    return TABLE_IS_FULL
                k = MERGED_FIRST + MERGED_W * n_exits
                temp[k + MERGED_NODE], temp[k + MERGED_CHARACTERS] = child, count & ~IN_ROW
                n_exits += 1
            elif in_row:
                if is_tip or stays_inside(t, after, e):
                    continue
            elif is_tip:
                pass
            elif stays_inside(t, after, e):
                stop = trie[TRIE_W * next_node + TRIE_FIRST_TOKEN]
                for i in range(trie[TRIE_W * child + TRIE_FIRST_TOKEN], stop):
                    token = tokens[ENTRY_W * i + ENTRY_TOKEN]
                    rows[base + (token >> 5)] |= 1 << (token & 31)
                height = below[summary + BELOW_HEIGHT] & HEIGHT
                longest = max(longest, (count & (ESCAPED - 1)) + height + leaves[after * LEAF_W + LEAF_STAYING_NEED])
                continue
            elif free_base >= 0 and not still_in_words and flags & quoted == quoted and flags >> LEAF_SAFE >= LONG:
                for i in range(trie[TRIE_W * child + TRIE_FIRST_TOKEN], trie[TRIE_W * next_node + TRIE_FIRST_TOKEN]):
                    token = tokens[ENTRY_W * i + ENTRY_TOKEN]
                    rows[base + (token >> 5)] |= rows[free_base + (token >> 5)] & 1 << (token & 31)
                height = below[summary + BELOW_HEIGHT] & HEIGHT
                longest = max(longest, (count & (ESCAPED - 1)) + height + most_needed)
                count |= IN_ROW
            if not is_done and count & IN_ROW == 0 and not still_in_words:
                first, stop = trie[TRIE_W * child + TRIE_FIRST_TOKEN], trie[TRIE_W * child + TRIE_W + TRIE_FIRST_TOKEN]
                for i in range(first, stop):
                    token = tokens[ENTRY_W * i + ENTRY_TOKEN]
                    rows[base + (token >> 5)] |= 1 << (token & 31)
                if first < stop:
                    longest = max(longest, (count & (ESCAPED - 1)) + need)
            if not is_tip:
                if leaves[after * LEAF_W + LEAF_FLAGS] & LEAF_EXPANDED == 0 and expand_leaf(t, after) < 0:
                    return TABLE_IS_FULL
                if leaves[after * LEAF_W + LEAF_ALLOWED] == 0 and count & IN_ROW == 0:
                    continue
                if VISIT_W * (top + 2) > end_of_temp // 4:
                    return TABLE_IS_FULL
                top += 1
                at = end_of_temp - VISIT_W * top
                temp[at + DESCENT_NODE], temp[at + DESCENT_STATE] = child, after
                temp[at + DESCENT_CHARACTERS], temp[at + VISIT_END] = count | still_in_words, next_node
    if leaves[q * LEAF_W + LEAF_ROW] >= 0:  # only the exits were requested
        return n_exits
    if is_free_row:
        row = counts[FREE_ROW] - 1
    if is_free_row or copies_free:
        longest = (below[BELOW_HEIGHT] & HEIGHT) + most_needed
    leaves[q * LEAF_W + LEAF_LONGEST] = longest
    counts[MADE_ROW] = row
    return n_exits


@entry("int64(int64, int64)")
def find_unexpanded(t: Any, q: Any) -> Any:
    """Write to TRIE_TEMP, from MERGED_FIRST on, the states without transitions that `make_row` would need for q.

    These are the states in the middle of a token of the vocabulary. A state may be written several times. Return their
    number, or TABLE_IS_FULL.
    """
    leaves, transitions, trie = view(t, LEAVES), view(t, LEAF_NEXT), view(t, TRIE)
    edges, temp = view(t, TRIE_EDGES), view(t, TRIE_TEMP)
    end_of_temp = size(t, TRIE_TEMP)
    n, top = 0, 1
    temp[end_of_temp - DESCENT_W + DESCENT_NODE], temp[end_of_temp - DESCENT_W + DESCENT_STATE] = 0, q
    while top > 0:
        at = end_of_temp - DESCENT_W * top
        node, state = temp[at + DESCENT_NODE] + 0, temp[at + DESCENT_STATE] + 0
        top -= 1
        if leaves[state * LEAF_W + LEAF_FLAGS] & LEAF_EXPANDED == 0:
            temp[MERGED_FIRST + n] = state
            n += 1
            continue
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            child, after = edges[e] >> 8, transitions[256 * state + (edges[e] & 255)]
            if after >= 0 and trie[TRIE_W * child + TRIE_FIRST_EDGE] < trie[TRIE_W * child + TRIE_W + TRIE_FIRST_EDGE]:
                top += 1
                at = end_of_temp - DESCENT_W * top
                if MERGED_FIRST + n >= at:
                    return TABLE_IS_FULL
                temp[at + DESCENT_NODE], temp[at + DESCENT_STATE] = child, after
    return n


@entry("int64(int64, int64, int64, int64)")
def make_suffix_trie(t: Any, q: Any, n_exits: Any, budget: Any) -> Any:
    """Build the suffix trie of leaf state q from the exits of `make_row`.

    Breadth first: a node of the merged trie is a list of (main trie node, characters).

    budget: most tokens below the exits. Return the root, -2 if there are more, or TABLE_IS_FULL.
    """
    counts, leaves, trie, edges = view(t, TABLE), view(t, LEAVES), view(t, TRIE), view(t, TRIE_EDGES)
    tokens, temp, end = view(t, TRIE_TOKENS), view(t, TRIE_TEMP), view(t, TRIE_END)
    total = 0
    for p in range(n_exits):
        node = temp[MERGED_FIRST + MERGED_W * p + MERGED_NODE]
        total += trie[TRIE_W * end[node] + TRIE_FIRST_TOKEN] - trie[TRIE_W * node + TRIE_FIRST_TOKEN]
    if total > budget:
        store_release(leaves, q * LEAF_W + LEAF_SUFFIXES, -2)
        return -2
    end_of_temp = size(t, TRIE_TEMP)
    root, node, queued = counts[N_TRIE] + 0, counts[N_TRIE] + 0, counts[N_TRIE] + 1
    n_edges, n_tokens = counts[N_TRIE_EDGES] + 0, counts[N_TRIE_TOKENS] + 0
    # TRIE_TEMP: a queue of lists of (node, characters), each ended by -1, from `read` to `write`.
    write = MERGED_FIRST + MERGED_W * n_exits
    temp[write] = -1
    read, write = MERGED_FIRST, write + 1
    while node < queued:
        if TRIE_W * (queued + 258) > size(t, TRIE) or n_edges + 256 > size(t, TRIE_EDGES):
            return TABLE_IS_FULL
        trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_FIRST_TOKEN] = n_edges, n_tokens
        at = read
        low, high = 255, 0
        while temp[at] >= 0:
            m = temp[at] + 0
            # A token that ends at an exit itself is in the row, unless the exit is a closing quote.
            if node > root or leaves[q * LEAF_W + LEAF_FLAGS] & LEAF_CLOSES:
                for k in range(trie[TRIE_W * m + TRIE_FIRST_TOKEN], trie[TRIE_W * m + TRIE_W + TRIE_FIRST_TOKEN]):
                    if ENTRY_W * (n_tokens + 1) > size(t, TRIE_TOKENS):
                        return TABLE_IS_FULL
                    tokens[ENTRY_W * n_tokens + ENTRY_TOKEN] = tokens[ENTRY_W * k + ENTRY_TOKEN]
                    tokens[ENTRY_W * n_tokens + ENTRY_CHARACTERS] = temp[at + MERGED_CHARACTERS]
                    n_tokens += 1
            first, stop = trie[TRIE_W * m + TRIE_FIRST_EDGE], trie[TRIE_W * m + TRIE_W + TRIE_FIRST_EDGE]
            if first < stop:
                low, high = min(low, edges[first] & 255), max(high, edges[stop - 1] & 255)
            at += MERGED_W
        # The children by byte, those of one byte in the order of the list: a counting sort, at the end of the scratch.
        counted = end_of_temp - 256
        if write + 1 > counted:
            return TABLE_IS_FULL
        for b in range(low, high + 1):
            temp[counted + b] = 0
        k, total = read, 0
        while temp[k] >= 0:
            for e in range(trie[TRIE_W * temp[k] + TRIE_FIRST_EDGE], trie[TRIE_W * (temp[k] + 1) + TRIE_FIRST_EDGE]):
                temp[counted + (edges[e] & 255)] += 1
                total += 1
            k += MERGED_W
        if write + MERGED_W * total + 256 > counted:
            return TABLE_IS_FULL
        for b in range(low, high + 1):
            count = temp[counted + b] + 0
            if count > 0:
                temp[counted + b] = write
                write += MERGED_W * count
                temp[write] = -1
                write += 1
                edges[n_edges] = queued << 8 | b
                n_edges += 1
                queued += 1
        k = read
        while temp[k] >= 0:
            for e in range(trie[TRIE_W * temp[k] + TRIE_FIRST_EDGE], trie[TRIE_W * (temp[k] + 1) + TRIE_FIRST_EDGE]):
                place = temp[counted + (edges[e] & 255)] + 0
                temp[place + MERGED_NODE], temp[place + MERGED_CHARACTERS] = edges[e] >> 8, temp[k + MERGED_CHARACTERS]
                temp[counted + (edges[e] & 255)] = place + MERGED_W
            k += MERGED_W
        read = at + 1
        node += 1
    trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_FIRST_TOKEN] = n_edges, n_tokens
    counts[N_TRIE], counts[N_TRIE_EDGES], counts[N_TRIE_TOKENS] = node + 1, n_edges, n_tokens
    leaves[q * LEAF_W + LEAF_SUFFIXES_END] = node
    store_release(leaves, q * LEAF_W + LEAF_SUFFIXES, root)
    return root


@entry("int64(int64, int64, int64, int64)")
def order_by_length(t: Any, q: Any, least: Any, most: Any) -> Any:
    """Sort the tokens of the row of q by length: the characters that each needs, including those that must follow it,
    less those that q needs.

    least, most: tokens that are shorter or longer may be left out. Subtrees that have no others are not walked: nearly
    all for a `least` of 8 or more, or a `most` of a few.

    A counting sort: writes `least`, `most`, LENGTH_CLASSES + 1 offsets, the tokens and the lengths of those of the last
    class, which is open-ended, to BY_LENGTH, and the offset in it to LEAF_SHORT if `most` is a limit, else to
    LEAF_BY_LENGTH. Return it, or TABLE_IS_FULL.
    """
    counts, leaves, transitions = view(t, TABLE), view(t, LEAVES), view(t, LEAF_NEXT)
    trie, edges, tokens, below = view(t, TRIE), view(t, TRIE_EDGES), view(t, TRIE_TOKENS), view(t, BELOW)
    temp, by_length, end = view(t, TRIE_TEMP), view(t, BY_LENGTH), view(t, TRIE_END)
    base, end_of_temp = counts[N_BY_LENGTH] + 0, size(t, TRIE_TEMP)
    needed = leaves[q * LEAF_W + LEAF_NEED] + 0
    least_below = least + needed - find_most_needed(t, q)
    n, top, at = 0, 1, end_of_temp - VISIT_W
    temp[at + DESCENT_NODE], temp[at + DESCENT_STATE], temp[at + DESCENT_CHARACTERS] = 0, q, 0
    temp[at + VISIT_END] = end[0]
    last, need, is_done = -1, 0, False  # of the latest leaf state: the next one is usually the same
    while top > 0:
        at = end_of_temp - VISIT_W * top
        node, state, end_node = temp[at + DESCENT_NODE] + 0, temp[at + DESCENT_STATE] + 0, temp[at + VISIT_END] + 0
        chars = temp[at + DESCENT_CHARACTERS] + 0
        top -= 1
        if leaves[state * LEAF_W + LEAF_FLAGS] & LEAF_BOUNDARY:
            chars += 1
        last_edge = trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE] - 1
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], last_edge + 1):
            child, after = edges[e] >> 8, transitions[256 * state + (edges[e] & 255)]
            next_node = edges[e + 1] >> 8 if e < last_edge else end_node
            is_tip = next_node == child + 1
            if after < 0:
                continue
            if chars < least_below and (
                is_tip or chars + (below[BELOW_W * (1 + e) + BELOW_HEIGHT] & HEIGHT) < least_below
            ):
                continue
            if after != last:
                last, need = after, leaves[after * LEAF_W + LEAF_NEED] + 0
                is_done = leaves[after * LEAF_W + LEAF_DECODER] >> KIND == DONE
            if is_done or chars + need - needed > most:  # none below is shorter
                continue
            # A row that began as a copy was made without expanding most states.
            if not is_tip and leaves[after * LEAF_W + LEAF_FLAGS] & LEAF_EXPANDED == 0 and expand_leaf(t, after) < 0:
                return TABLE_IS_FULL
            first, stop = trie[TRIE_W * child + TRIE_FIRST_TOKEN], trie[TRIE_W * child + TRIE_W + TRIE_FIRST_TOKEN]
            if MERGED_FIRST + MERGED_W * (n + stop - first) + VISIT_W * (top + 2) > end_of_temp:
                return TABLE_IS_FULL
            for k in range(first, stop):
                temp[MERGED_FIRST + MERGED_W * n + MERGED_NODE] = tokens[ENTRY_W * k + ENTRY_TOKEN]
                temp[MERGED_FIRST + MERGED_W * n + MERGED_CHARACTERS] = max(chars + need - needed, 0)
                n += 1
            if not is_tip:
                top += 1
                at = end_of_temp - VISIT_W * top
                temp[at + DESCENT_NODE], temp[at + DESCENT_STATE] = child, after
                temp[at + DESCENT_CHARACTERS], temp[at + VISIT_END] = chars, next_node
    if base + LISTED_TOKENS + 2 * n > size(t, BY_LENGTH):
        return TABLE_IS_FULL
    by_length[base + LISTED_FROM], by_length[base + LISTED_TO] = least, most
    first, last = base + LISTED_OFFSETS, LENGTH_CLASSES - 1
    for length in range(LENGTH_CLASSES + 1):
        by_length[first + length] = 0
    for k in range(n):
        by_length[first + min(temp[MERGED_FIRST + MERGED_W * k + MERGED_CHARACTERS], last) + 1] += 1
    for length in range(LENGTH_CLASSES):
        by_length[first + length + 1] += by_length[first + length]
    beyond = base + LISTED_TOKENS + n - by_length[first + last]  # where lengths of the last class are, less its place
    for k in range(n):
        found = MERGED_FIRST + MERGED_W * k
        token, length = temp[found + MERGED_NODE] + 0, temp[found + MERGED_CHARACTERS] + 0
        place = by_length[first + min(length, last)] + 0
        by_length[base + LISTED_TOKENS + place] = token
        if length >= last:
            by_length[beyond + place] = length
        by_length[first + min(length, last)] = place + 1
    for length in range(LENGTH_CLASSES, 0, -1):
        by_length[first + length] = by_length[first + length - 1]
    by_length[first] = 0
    counts[N_BY_LENGTH] = base + LISTED_TOKENS + 2 * n - by_length[first + last]
    store_release(leaves, q * LEAF_W + (LEAF_SHORT if most < ALL_LENGTHS else LEAF_BY_LENGTH), base)
    return base
