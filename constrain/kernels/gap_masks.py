"""Masks of configurations inside a gap: a leaf that allows white space only, some bytes of it in a row (kernels).

Tokens of white space are long, and gaps are bounded by a counter: stepping a set through them would make a set of
configurations for each length, in each state of an object. So the main trie is walked with the states of the leaf
alone; where the gap may end inside a token, the walk goes on with the set that follows, which is the same everywhere.
"""

from __future__ import annotations

from typing import Any

from .context_views import load_acquire, size, view
from .interned_names import request
from .jit.compilation import kernel
from .program_layout import ARG_HIGH
from .sets import continue_config
from .trie_tokens import NO_LIMIT, take_tokens
from .trie_walks import walk_trie

from .context_layout import (  # isort: skip
    CODE, CONFIGS, FULL, HEAD, LEAF_NEXT, LEAVES, NEED_LEAF, SETS, SPARE, STEPS, TRIE, TRIE_EDGES,
)  # fmt: skip
from .record_layout import CONFIG_EXTRA, CONFIG_PC, CONFIG_STATE, CONFIG_W, DEAD, SET_ALLOWED, SET_W

from .table_layout import (  # isort: skip
    LEAF_ALLOWED, LEAF_EXITS, LEAF_EXPANDED, LEAF_FLAGS, LEAF_NEED, LEAF_W, TRIE_FIRST_EDGE, TRIE_W,
)  # fmt: skip

# SPARE, while a gap is walked: a queue of trie nodes inside it
INSIDE_W = 3
INSIDE_NODE, INSIDE_STATE, INSIDE_CHARACTERS = 0, 1, 2


@kernel("int64(int64, int64, int64, int64)")
def add_gap(c: Any, s: Any, k: Any, out: Any) -> Any:
    """Set the bits of the tokens that configuration k of set s, in a gap, allows. Return 0 or -1."""
    head, sets, configs, code = view(c, HEAD), view(c, SETS), view(c, CONFIGS), view(c, CODE)
    leaves, transitions, trie, edges = view(c, LEAVES), view(c, LEAF_NEXT), view(c, TRIE), view(c, TRIE_EDGES)
    queue = view(c, SPARE)
    pc = configs[CONFIG_W * k + CONFIG_PC]
    high = code[pc + ARG_HIGH] if code[pc + ARG_HIGH] >= 0 else NO_LIMIT
    queue[INSIDE_NODE], queue[INSIDE_STATE] = 0, configs[CONFIG_W * k + CONFIG_STATE]
    queue[INSIDE_CHARACTERS] = configs[CONFIG_W * k + CONFIG_EXTRA]
    follow = continue_config(c, s, k, pc + 4)
    if follow < 0:
        return -1
    done, known = 0, 1
    while done < known:
        node, q = queue[INSIDE_W * done + INSIDE_NODE] + 0, queue[INSIDE_W * done + INSIDE_STATE] + 0
        characters = queue[INSIDE_W * done + INSIDE_CHARACTERS] + 1
        done += 1
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            child, after = edges[e] >> 8, transitions[256 * q + (edges[e] & 255)] + 0
            if after < 0:
                continue
            r = after * LEAF_W
            if load_acquire(leaves, r + LEAF_FLAGS) & LEAF_EXPANDED == 0:
                return request(c, NEED_LEAF, after)
            if characters + leaves[r + LEAF_NEED] > high:
                continue
            head[STEPS] += 1
            may_end = leaves[r + LEAF_FLAGS] & LEAF_EXITS and follow != DEAD
            goes_on = leaves[r + LEAF_ALLOWED] > 0 and characters < high
            if may_end or goes_on:
                take_tokens(c, child, out, 0, NO_LIMIT)
            if trie[TRIE_W * child + TRIE_FIRST_EDGE] == trie[TRIE_W * child + TRIE_W + TRIE_FIRST_EDGE]:
                continue
            if goes_on:
                if INSIDE_W * (known + 1) > size(c, SPARE):
                    return request(c, FULL, SPARE)
                queue[INSIDE_W * known + INSIDE_NODE], queue[INSIDE_W * known + INSIDE_STATE] = child, after
                queue[INSIDE_W * known + INSIDE_CHARACTERS] = characters
                known += 1
            if may_end and sets[follow * SET_W + SET_ALLOWED] > 0:
                if walk_trie(c, child, follow, 1, s, out, 0, NO_LIMIT) < 0:
                    return -1
    return 0
