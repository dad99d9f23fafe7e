"""Everything that is compiled: flat int32 arrays in, ints out.

    jit/               how: each kernel alone, on all cores, cached in one file; all use of numba's internals
    layout             the slots of a context, the fields of every record, the instructions (constants only)
    context_views      slots of a context as pointers
    interned_names string_cursors object_states stacks unique_members
                       what a configuration is made of, interned: equal things have equal ids
    closure string_keys sets
                       lazy subset construction: a set of configurations and a byte give a set
    leaves             characters as bytes: UTF-8 or JSON decoder x DFA
    parsing            scanner and LALR table: a list of lexemes and a byte give a list
    trie               the vocabulary as a trie; rows and suffix tries of leaf states
    trie_walks lexemes masks mask_deltas
                       the tokens that a set accepts; masks, and how they are stored
    matcher_calls      what a Matcher does at every token, for one text or many
    growth             hash tables of a state cache that have grown
    logits             masks applied to the logits of a model
    draws              one row of logits under a mask: sums, and random tokens
    cuda/              what runs on an NVIDIA card

A kernel that lacks something (room, a rule, a row) returns -1 and writes a request to HEAD[STATUS] (`layout`); the
caller provides it and calls again. Nothing is undone: what was appended stays valid.

Machine code is cached in a folder named by a digest of all these files (`jit.object_cache`): after an edit of one
file all kernels are compiled anew.
"""
