"""Bits of the tokens at the nodes of a trie, set and cleared in a mask (kernels)."""

from __future__ import annotations

from typing import Any

from .context_layout import FULL, STACK, TRIE, TRIE_EDGES, TRIE_END, TRIE_TOKENS
from .context_views import at, size, view
from .interned_names import request
from .jit.compilation import inlined, kernel

from .table_layout import (  # isort: skip
    ENTRY_CHARACTERS, ENTRY_TOKEN, ENTRY_W, ESCAPED, TRIE_FIRST_EDGE, TRIE_FIRST_TOKEN, TRIE_W,
)  # fmt: skip


NO_LIMIT = 1 << 30
"""The most characters, where their number does not matter."""


@inlined("int64(int64, int64, int64, int64, int64)")
def take_tokens(c: Any, node: Any, out: Any, least: Any, most: Any) -> Any:
    """Set the bits of the tokens at a trie node that left their leaf after least .. most characters."""
    trie, tokens, mask = view(c, TRIE), view(c, TRIE_TOKENS), at(out)
    for k in range(trie[TRIE_W * node + TRIE_FIRST_TOKEN], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_TOKEN]):
        chars = tokens[ENTRY_W * k + ENTRY_CHARACTERS] & (ESCAPED - 1)
        if least <= chars <= most:
            token = tokens[ENTRY_W * k + ENTRY_TOKEN]
            mask[token >> 5] |= 1 << (token & 31)
    return 0


@kernel("int64(int64, int64, int64, int64, int64)")
def clear_subtree(c: Any, root: Any, out: Any, least: Any, most: Any) -> Any:
    """Clear the tokens of a subtree that left their leaf after least .. most characters. Return 0 or -1."""
    trie, edges, tokens, stack, mask = view(c, TRIE), view(c, TRIE_EDGES), view(c, TRIE_TOKENS), view(c, STACK), at(out)
    if root < size(c, TRIE_END):
        end = view(c, TRIE_END)[root]
        for k in range(trie[TRIE_W * root + TRIE_FIRST_TOKEN], trie[TRIE_W * end + TRIE_FIRST_TOKEN]):
            token = tokens[ENTRY_W * k + ENTRY_TOKEN]
            mask[token >> 5] &= ~(1 << (token & 31))
        return 0
    top = 0
    stack[0] = root
    while top >= 0:
        node = stack[top] + 0
        top -= 1
        for k in range(trie[TRIE_W * node + TRIE_FIRST_TOKEN], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_TOKEN]):
            if least <= tokens[ENTRY_W * k + ENTRY_CHARACTERS] & (ESCAPED - 1) <= most:
                token = tokens[ENTRY_W * k + ENTRY_TOKEN]
                mask[token >> 5] &= ~(1 << (token & 31))
        for e in range(trie[TRIE_W * node + TRIE_FIRST_EDGE], trie[TRIE_W * node + TRIE_W + TRIE_FIRST_EDGE]):
            top += 1
            if top >= size(c, STACK):
                return request(c, FULL, STACK)
            stack[top] = edges[e] >> 8
    return 0
