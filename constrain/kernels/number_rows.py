"""The row of a number, from what was found out about the runs of digits with which tokens begin (kernels)."""

from __future__ import annotations

from typing import Any

from numba import types

from .automata_records import READ, READ_BYTES
from .context_layout import N_ROWS, ROWS, T_WORDS, TABLE, TRIE_TEMP
from .context_views import view
from .digit_run_layout import ALIVE, ENDS
from .jit.compilation import entry
from .table_layout import MERGED_CHARACTERS, MERGED_FIRST, MERGED_NODE, MERGED_W


@entry([types.int64(types.int64, READ_BYTES, READ, READ, READ, READ)])
def write_run_tokens(t: Any, marks: Any, nodes: Any, sizes: Any, owners: Any, tokens: Any) -> Any:
    """Write the row after the last one: the tokens that are runs of digits and alive. Return the number of exits.

    The exits are the nodes after whose run the number may end, with the bytes of the run, in TRIE_TEMP.

    Parameters
    ----------
    t : int
        Address of the context of the table, which has room for the row, and in TRIE_TEMP for the exits of all runs.
    marks : uint8[runs]
        Bits: ALIVE if the text can be completed after the run, ENDS if it may end there.
    nodes : int32[runs]
        The node of each run in the trie, or -1 for one without edges, which is no exit.
    sizes : int32[runs]
        The digits of each run.
    owners, tokens : int32[...]
        Tokens that are runs, and the run of each.
    """
    counts, rows, temp = view(t, TABLE), view(t, ROWS), view(t, TRIE_TEMP)
    words, exits = counts[T_WORDS] + 0, 0
    base = words * counts[N_ROWS]
    for w in range(words):
        rows[base + w] = 0
    for i in range(len(tokens)):
        if marks[owners[i]] & ALIVE:
            rows[base + (tokens[i] >> 5)] |= 1 << (tokens[i] & 31)
    for run in range(len(nodes)):
        if marks[run] & ENDS and nodes[run] >= 0:
            k = MERGED_FIRST + MERGED_W * exits
            temp[k + MERGED_NODE], temp[k + MERGED_CHARACTERS] = nodes[run], sizes[run]
            exits += 1
    return exits
