"""Rows of tokens by the bytes that they have, from which the row of a leaf begins without a walk of the trie (kernels).

CONTENTS has a row of the tokens with some byte of a *group* (digits, letters in four parts, other characters of ASCII,
some first bytes of others), of the tokens with some of several groups, and of those that are long. Most leaves
have *word groups*, which they read for as long as one likes, or for a number of bytes: the tokens of these groups alone
are a few operations on whole rows, where a walk would visit each. It remains for the subtrees in which a byte occurs
that the leaf may read besides.

Only the owner of the table (`vocabulary.mask_table`, under a lock) calls these kernels.
"""

from __future__ import annotations

from typing import Any

from .context_views import lowest_bit, view
from .jit.compilation import entry, inlined, kernel
from .subtree_summaries import BOUNDARY, bit_of, first_bytes, step_utf8

from .context_layout import (  # isort: skip
    BELOW, BLOB, CONTENTS, DFAS, LEAVES, MACHINES, OFFSETS, QUOTED, ROWS, TABLE, TRIE, TRIE_END, TRIE_TEMP, TRIE_TOKENS,
    T_WORDS,
)  # fmt: skip
from .table_layout import (  # isort: skip
    ALL_GROUPS, BELOW_HEIGHT, BELOW_W, BLOCK, CONTENTS_COUNTS, CONTENTS_GROUPS, CONTENTS_ROWS, ENTRY_TOKEN, ENTRY_W,
    FIRST_BLOCK, FIRST_LENGTH, FIRST_SPAN, GROUPS, HEIGHT, ILL_FORMED, LEAF_MACHINE, LEAF_STATE, LEAF_W, LENGTH_ROWS,
    MACHINE_DFA, MACHINE_W, QUOTED_CLOSING, SHORT_LENGTHS, SYNTAX_GROUPS, TRIE_FIRST_TOKEN, TRIE_W, WORD_DIES,
    WORD_ENDS, WORD_GROUPS, WORD_LEADING, WORD_NEED, WORD_OTHERS, WORD_REFUSED, WORD_W,
)  # fmt: skip

MOST_FOLLOWED = 256
"""Most states of a DFA that are followed."""
PLACES = 2 * MOST_FOLLOWED
"""Slots of the hash table of the states that are followed."""
LEAST_SHARE = 8
"""Divisor of the number of tokens: the part whose first bytes must be of word groups. A walk visits fewer faster."""
LONG_ENOUGH = 4
"""Bytes for which word groups must be read, unless none can follow: many tokens are no longer."""


@inlined("int64(int64)")
def length_at(k: Any) -> Any:
    """Return the length beyond which the tokens of row k of those of long tokens are: 1 .. 16, 20, 24, 32, 48, 64."""
    if k < SHORT_LENGTHS:
        return k + 1
    k -= SHORT_LENGTHS
    return 20 + 4 * k if k < 2 else 16 * k


@entry("int64(int64)")
def fill_contents(t: Any) -> Any:
    """Write the counts and rows of CONTENTS. Its table of groups is there, and the rest is 0. Return 0."""
    contents, trie, tokens, offsets = view(t, CONTENTS), view(t, TRIE), view(t, TRIE_TOKENS), view(t, OFFSETS)
    blob, words = view(t, BLOB), view(t, TABLE)[T_WORDS] + 0
    # What is no token at all counts as ill-formed.
    ill_formed = CONTENTS_ROWS + ILL_FORMED * words
    for w in range(words):
        contents[ill_formed + w] = -1
    for entry_ in range(trie[TRIE_W * view(t, TRIE_END)[0] + TRIE_FIRST_TOKEN]):
        token = tokens[ENTRY_W * entry_ + ENTRY_TOKEN] + 0
        start, stop = offsets[token] + 0, offsets[token + 1] + 0
        state, groups = BOUNDARY, 0
        for i in range(start, stop):
            b = (blob[i >> 2] >> (8 * (i & 3))) & 255
            if b < 0x80 or b >= 0xC0:  # further bytes of a character are of no group
                groups |= 1 << contents[CONTENTS_GROUPS + b]
                if i == start:
                    contents[CONTENTS_COUNTS + contents[CONTENTS_GROUPS + b]] += 1
            state = step_utf8(state, b) if state >= 0 else -1
        w, bit = token >> 5, 1 << (token & 31)
        if state >= 0:
            contents[ill_formed + w] &= ~bit
        while groups != 0:
            contents[CONTENTS_ROWS + lowest_bit(groups) * words + w] |= bit
            groups &= groups - 1
        k = 0
        while k < LENGTH_ROWS and stop - start > length_at(k):
            contents[CONTENTS_ROWS + (FIRST_LENGTH + k) * words + w] |= bit
            k += 1
    for row in range(GROUPS):
        block = CONTENTS_ROWS + (FIRST_BLOCK + row // BLOCK) * words
        span = CONTENTS_ROWS + (FIRST_SPAN + row // (BLOCK * BLOCK)) * words
        for w in range(words):
            one = contents[CONTENTS_ROWS + row * words + w] + 0
            contents[block + w] |= one
            contents[span + w] |= one
    return 0


@inlined("int64(int64, int64)")
def groups_of(t: Any, firsts: Any) -> Any:
    """Return the groups of first bytes of characters, given as bits from 0xC0 on."""
    contents, groups = view(t, CONTENTS), 0
    while firsts != 0:
        groups |= 1 << contents[CONTENTS_GROUPS + 0xC0 + lowest_bit(firsts)]
        firsts &= firsts - 1
    return groups


@kernel("int64(int64, int64, int64, int64)")
def find_groups(t: Any, at: Any, state: Any, loop: Any) -> Any:
    """Return the groups of which a state of the DFA at `at` reads all, but not the syntax of JSON strings.

    loop: only those that lead from this state to itself, if it is one.
    """
    dfas, groups = view(t, DFAS), view(t, CONTENTS)
    n, classes, ranges = dfas[at] + 0, dfas[at + 1] + 0, dfas[at + 2] + 0
    bounds, ascii_class = at + 3, at + 3 + 2 * ranges
    delta = ascii_class + 128 + 2 * n
    found = ALL_GROUPS & ~SYNTAX_GROUPS
    for b in range(32, 128):
        c = dfas[ascii_class + b] + 0
        if dfas[delta + state * classes + c] < 0 or (loop >= 0 and dfas[delta + loop * classes + c] != loop):
            found &= ~(1 << groups[CONTENTS_GROUPS + b])
    for k in range(ranges):
        c = dfas[bounds + ranges + k] + 0
        if dfas[delta + state * classes + c] < 0 or (loop >= 0 and dfas[delta + loop * classes + c] != loop):
            found &= ~groups_of(t, first_bytes(t, at, k))
    return found


@kernel("int64(int64, int64, int64, int64, int64)")
def keep_direct_groups(t: Any, at: Any, state: Any, target: Any, groups: Any) -> Any:
    """Return those of some groups of which all characters lead from a state of the DFA at `at` to `target` at once."""
    dfas, contents = view(t, DFAS), view(t, CONTENTS)
    n, classes, ranges = dfas[at] + 0, dfas[at + 1] + 0, dfas[at + 2] + 0
    ascii_class = at + 3 + 2 * ranges
    row = ascii_class + 128 + 2 * n + state * classes
    for b in range(32, 128):
        if dfas[row + dfas[ascii_class + b]] != target:
            groups &= ~(1 << contents[CONTENTS_GROUPS + b])
    for k in range(ranges):
        if dfas[row + dfas[at + 3 + ranges + k]] != target:
            groups &= ~groups_of(t, first_bytes(t, at, k))
    return groups


@kernel("int64(int64, int64, int64)")
def find_usual_target(t: Any, at: Any, state: Any) -> Any:
    """Return the state to which most characters of ASCII that a state of the DFA at `at` reads lead, if there is one.

    Otherwise any state, or -1 (the majority vote of Boyer and Moore).
    """
    dfas = view(t, DFAS)
    n, classes, ascii_class = dfas[at] + 0, dfas[at + 1] + 0, at + 3 + 2 * dfas[at + 2]
    row = ascii_class + 128 + 2 * n + state * classes
    found, votes = -1, 0
    for b in range(32, 128):
        after = dfas[row + dfas[ascii_class + b]] + 0
        if after < 0:
            continue
        if votes == 0:
            found = after
        votes += 1 if after == found else -1
    return found


@kernel("int64(int64, int64)")
def count_begun(t: Any, groups: Any) -> Any:
    """Return the number of tokens whose first byte is of some of the groups."""
    contents, total = view(t, CONTENTS), 0
    while groups != 0:
        total += contents[CONTENTS_COUNTS + lowest_bit(groups)]
        groups &= groups - 1
    return total


@kernel("int64(int64, int64, int64, int64)")
def list_group_classes(t: Any, at: Any, groups: Any, symbols: Any) -> Any:
    """Write the classes of the DFA at `at` that have characters of the groups, each once, to TRIE_TEMP at `symbols`.

    Return their number.
    """
    dfas, contents, temp = view(t, DFAS), view(t, CONTENTS), view(t, TRIE_TEMP)
    ranges = dfas[at + 2] + 0
    bounds, ascii_class, count = at + 3, at + 3 + 2 * ranges, 0
    for x in range(32, 128 + ranges):
        if x < 128:
            if groups >> contents[CONTENTS_GROUPS + x] & 1 == 0:
                continue
            c = dfas[ascii_class + x] + 0
        else:
            if groups & groups_of(t, first_bytes(t, at, x - 128)) == 0:
                continue
            c = dfas[bounds + ranges + x - 128] + 0
        i = 0
        while i < count and temp[symbols + i] != c:
            i += 1
        if i == count:
            temp[symbols + count] = c
            count += 1
    return count


@inlined("int64(int64, int64)")
def read_groups(t: Any, k: Any) -> Any:
    """Return the groups in the two words of TRIE_TEMP at k."""
    temp = view(t, TRIE_TEMP)
    return temp[k] & 0xFFFFFFFF | temp[k + 1] << 32


@inlined("int64(int64, int64, int64, int64)")
def groups_of_class(t: Any, at: Any, groups: Any, c: Any) -> Any:
    """Return those of some groups that have characters of class c of the DFA at `at`."""
    dfas, contents, found = view(t, DFAS), view(t, CONTENTS), 0
    ranges = dfas[at + 2] + 0
    for b in range(32, 128):
        if dfas[at + 3 + 2 * ranges + b] == c:
            found |= 1 << contents[CONTENTS_GROUPS + b]
    for k in range(ranges):
        if dfas[at + 3 + ranges + k] == c:
            found |= groups_of(t, first_bytes(t, at, k))
    return found & groups


@inlined("int64(int64, int64, int64)")
def find_place(t: Any, queue: Any, state: Any) -> Any:
    """Return the slot of TRIE_TEMP with the place + 1 of a state among those from `queue` on, or 0 for a new one."""
    temp, places = view(t, TRIE_TEMP), queue + MOST_FOLLOWED
    h = state & (PLACES - 1)
    while temp[places + h] > 0 and temp[queue + temp[places + h] - 1] != state:
        h = (h + 1) & (PLACES - 1)
    return places + h


@kernel("int64(int64, int64, int64, int64, int64)")
def follow_groups(t: Any, at: Any, state: Any, groups: Any, out: Any) -> Any:
    """Return for how many characters of these groups none is refused from a state of the DFA at `at`; HEIGHT: always.

    Written to TRIE_TEMP at `out`: what may be read besides by states on the way (WORD_OTHERS), whether all such
    characters are refused after that number (WORD_DIES), the most characters that must follow (WORD_NEED), whether the
    leaf may end after some (WORD_ENDS), and if that number is less than LONG_ENOUGH, which groups have a character that
    is refused then (WORD_REFUSED), and which have one that leads to where it is (WORD_LEADING). The scratch follows
    `out`.
    """
    dfas, temp, contents = view(t, DFAS), view(t, TRIE_TEMP), view(t, CONTENTS)
    n, classes, ranges = dfas[at] + 0, dfas[at + 1] + 0, dfas[at + 2] + 0
    bounds, ascii_class = at + 3, at + 3 + 2 * ranges
    accepting = ascii_class + 128
    distance, delta = accepting + n, accepting + 2 * n
    queue = out + WORD_W
    symbols = queue + MOST_FOLLOWED + PLACES
    count = list_group_classes(t, at, groups, symbols)
    for k in range(PLACES):
        temp[queue + MOST_FOLLOWED + k] = 0
    temp[queue], temp[find_place(t, queue, state)], refused_groups, leading_groups = state, 1, 0, 0
    known, done, depth, is_chain, dies, is_full = 1, 0, 0, True, False, False
    while True:
        layer = known
        refused, read = False, False
        for i in range(done, layer):
            for j in range(count):
                if dfas[delta + temp[queue + i] * classes + temp[symbols + j]] < 0:
                    refused = True
                else:
                    read = True
        if refused:
            dies = is_chain and not read
            for i in range(done, layer if depth < LONG_ENOUGH else done):
                refuses, one = False, temp[queue + i] + 0
                for j in range(count):
                    if dfas[delta + one * classes + temp[symbols + j]] < 0:
                        refuses = True
                        refused_groups |= groups_of_class(t, at, groups, temp[symbols + j])
                for k in range(done if refuses else 0):
                    for j in range(count):
                        if dfas[delta + temp[queue + k] * classes + temp[symbols + j]] == one:
                            leading_groups |= groups_of_class(t, at, groups, temp[symbols + j])
            break
        for i in range(done, layer):
            for j in range(count):
                after = dfas[delta + temp[queue + i] * classes + temp[symbols + j]] + 0
                place = find_place(t, queue, after)
                if temp[place] == 0 and known == MOST_FOLLOWED:
                    is_full = True
                elif temp[place] == 0:
                    temp[queue + known] = after
                    known += 1
                    temp[place] = known
                elif temp[place] <= layer:
                    is_chain = False
        depth += 1
        if is_full:
            break
        if known == layer:
            depth = HEIGHT
            break
        done = layer
    # What these states read, by class: in place of the classes of the groups.
    for c in range(classes):
        temp[symbols + c] = 0
    for w in range(BELOW_HEIGHT):
        temp[out + WORD_OTHERS + w] = 0
    finds_exits = view(t, QUOTED)[QUOTED_CLOSING] == 0
    need, may_end = 0, False
    for i in range(known):
        one = temp[queue + i] + 0
        need, may_end = max(need, dfas[distance + one]), may_end or dfas[accepting + one] != 0
        for c in range(classes):
            if dfas[delta + one * classes + c] >= 0:
                temp[symbols + c] = 1
    if is_full:  # a token may end in a state that is not among these, though none is left from there
        for one in range(n):
            need = max(need, dfas[distance + one])
    for b in range(32, 128):
        group = contents[CONTENTS_GROUPS + b]
        is_read = temp[symbols + dfas[ascii_class + b]] != 0 and groups >> group & 1 == 0
        if b == 92 or (finds_exits and may_end if b == 34 else is_read):
            temp[out + WORD_OTHERS + (b - 32 >> 5)] |= 1 << (b - 32 & 31)
    firsts = 0
    for k in range(ranges):
        if temp[symbols + dfas[bounds + ranges + k]]:
            firsts |= first_bytes(t, at, k)
    while firsts != 0:
        b = 0xC0 + lowest_bit(firsts)
        if groups >> contents[CONTENTS_GROUPS + b] & 1 == 0:
            temp[out + WORD_OTHERS + (bit_of(b) >> 5)] |= 1 << (bit_of(b) & 31)
        firsts &= firsts - 1
    temp[out + WORD_DIES], temp[out + WORD_NEED] = 1 if dies else 0, need
    temp[out + WORD_ENDS] = 1 if may_end or is_full else 0
    temp[out + WORD_REFUSED], temp[out + WORD_REFUSED + 1] = refused_groups, refused_groups >> 32
    temp[out + WORD_LEADING], temp[out + WORD_LEADING + 1] = leading_groups, leading_groups >> 32
    return depth


@inlined("int64(int64, int64)")
def count_word_scratch(t: Any, at: Any) -> Any:
    """Return the words of TRIE_TEMP that `find_words` needs for the DFA at `at`."""
    dfas = view(t, DFAS)
    return WORD_W + MOST_FOLLOWED + PLACES + max(dfas[at + 1], 96 + dfas[at + 2])


@kernel("int64(int64, int64, int64)")
def find_words(t: Any, q: Any, out: Any) -> Any:
    """Find word groups of leaf state q, which is between two characters of a JSON string.

    Return the number of bytes for which none is refused (HEIGHT: always), 0 if a row is not to begin with them. The
    groups are written to TRIE_TEMP at `out`, with what `follow_groups` writes.
    """
    leaves, temp, tokens = view(t, LEAVES), view(t, TRIE_TEMP), view(t, TRIE)
    state = leaves[q * LEAF_W + LEAF_STATE] + 0
    at = view(t, MACHINES)[MACHINE_W * leaves[q * LEAF_W + LEAF_MACHINE] + MACHINE_DFA] + 0
    least = max(1, tokens[TRIE_W * view(t, TRIE_END)[0] + TRIE_FIRST_TOKEN] // LEAST_SHARE)
    groups = find_groups(t, at, state, -1)
    if count_begun(t, groups) < least:
        return 0
    depth = follow_groups(t, at, state, groups, out)
    if depth < HEIGHT and temp[out + WORD_DIES] == 0:
        # Some are refused at some time. Perhaps most of them never are.
        target = find_usual_target(t, at, state)
        lasting = find_groups(t, at, state, target) if target >= 0 else 0
        if count_begun(t, lasting) >= least:
            groups = lasting
            depth = follow_groups(t, at, state, groups, out)
            # Or those that lead there at once: others may count (the digits of a quantifier, between braces).
            direct = keep_direct_groups(t, at, state, target, groups)
            if depth < LONG_ENOUGH and temp[out + WORD_DIES] == 0 and count_begun(t, direct) >= least:
                groups = direct
                depth = follow_groups(t, at, state, groups, out)
        # Or all are read but those that are refused after others (a hyphen after a hyphen), or those after which some
        # are refused (what separates two words).
        else:
            while depth < LONG_ENOUGH and temp[out + WORD_DIES] == 0:
                kept = groups & ~read_groups(t, out + WORD_REFUSED)
                other = groups & ~read_groups(t, out + WORD_LEADING)
                if count_begun(t, other) > count_begun(t, kept) and other != groups:
                    kept = other
                if kept == groups or count_begun(t, kept) < least:
                    return 0
                groups = kept
                depth = follow_groups(t, at, state, groups, out)
    temp[out + WORD_GROUPS], temp[out + WORD_GROUPS + 1] = groups, groups >> 32
    if SHORT_LENGTHS < depth < HEIGHT:  # there is no row of just the longer ones
        k = SHORT_LENGTHS
        while k + 1 < LENGTH_ROWS and length_at(k + 1) <= depth:
            k += 1
        shorter = length_at(k) if length_at(k) <= depth else SHORT_LENGTHS
        temp[out + WORD_DIES] = temp[out + WORD_DIES] if shorter == depth else 0
        depth = shorter
    return depth


@kernel("int64(int64, int64, int64)")
def join_row(t: Any, base: Any, row: Any) -> Any:
    """OR a row of CONTENTS into the row that begins at word `base` of ROWS. Return 0."""
    rows, contents, words = view(t, ROWS), view(t, CONTENTS), view(t, TABLE)[T_WORDS] + 0
    first = CONTENTS_ROWS + row * words
    for w in range(words):
        rows[base + w] |= contents[first + w]
    return 0


@inlined("int64(int64)")
def length_row(depth: Any) -> Any:
    """Return the row of CONTENTS of the tokens of more than `depth` bytes, one of the lengths that have a row."""
    k = 0
    while length_at(k) < depth:
        k += 1
    return FIRST_LENGTH + k


@kernel("int64(int64, int64, int64, int64)")
def write_words(t: Any, groups: Any, depth: Any, base: Any) -> Any:
    """Write the row of all well-formed tokens of these groups alone, and of at most `depth` bytes, to ROWS at `base`.

    Such a token may end within a character. Return a bound of the bytes of the longest one.
    """
    rows, contents, words = view(t, ROWS), view(t, CONTENTS), view(t, TABLE)[T_WORDS] + 0
    for w in range(words):
        rows[base + w] = 0
    others = ALL_GROUPS & ~groups
    span, block = (1 << BLOCK * BLOCK) - 1, (1 << BLOCK) - 1
    group = 0
    while group < GROUPS:
        here = others >> group
        if group % (BLOCK * BLOCK) == 0 and (here & span) == (ALL_GROUPS >> group & span):
            join_row(t, base, FIRST_SPAN + group // (BLOCK * BLOCK))
            group += BLOCK * BLOCK
        elif group % BLOCK == 0 and (here & block) == (ALL_GROUPS >> group & block):
            join_row(t, base, FIRST_BLOCK + group // BLOCK)
            group += BLOCK
        else:
            if here & 1:
                join_row(t, base, group)
            group += 1
    if depth < HEIGHT:
        join_row(t, base, length_row(depth))
    for w in range(words):
        rows[base + w] = ~rows[base + w]
    if depth < HEIGHT:
        return depth
    # The least length beyond which there is none.
    low, high = 0, LENGTH_ROWS
    while low < high:
        middle = (low + high) >> 1
        first = CONTENTS_ROWS + (FIRST_LENGTH + middle) * words
        w = 0
        while w < words and rows[base + w] & contents[first + w] == 0:
            w += 1
        if w == words:
            high = middle
        else:
            low = middle + 1
    return length_at(low) if low < LENGTH_ROWS else view(t, BELOW)[BELOW_HEIGHT] & HEIGHT


@inlined("int64(int64, int64, int64, int64, int64)")
def holds_words_only(t: Any, e: Any, out: Any, room: Any, beyond: Any) -> Any:
    """Return whether all tokens below edge e of the main trie are as the row of words has them.

    out: where `find_words` has written. room: bytes that may still come, HEIGHT: any number. beyond: word groups of
    bytes beyond ASCII.
    """
    below, temp = view(t, BELOW), view(t, TRIE_TEMP)
    k, others = BELOW_W * (1 + e), out + WORD_OTHERS
    foreign = below[k] & temp[others] | below[k + 1] & temp[others + 1] | below[k + 2] & temp[others + 2]
    foreign |= below[k + 3] & temp[others + 3] | below[k + 4] & temp[others + 4]
    if foreign:
        return 0
    if room == HEIGHT or below[k + BELOW_HEIGHT] & HEIGHT <= room:
        return 1
    return 1 if temp[out + WORD_DIES] and (beyond == 0 or below[k + 3] | below[k + 4] == 0) else 0
