"""Compiled kernels: functions over flat int32 arrays that take and return ints.

    entry_points       what Python calls; the only file here that the package imports besides layouts
    native/            the library of compiled kernels: found, loaded, kept
    jit/               how it is built: numba, LLVM and a linker
    context_layout program_layout record_layout table_layout call_layout
                       the slots of a context, the instructions, the fields of every record (constants only)
    context_views      slots of a context as pointers
    interned_names string_cursors object_states stacks unique_members unique_values value_texts member_guards
                       the parts of a configuration, interned: equal ones have equal ids
    closure string_keys sets interned_sets
                       lazy subset construction: a set of configurations and a byte give a set
    leaves             characters as bytes: a UTF-8 or JSON decoder in front of a DFA
    dfa_blocks         a DFA in the table of a vocabulary
    number_leaves      states of numbers, which Python computes
    parsing            scanner and LALR table: a list of lexemes and a byte give a list
    vocabulary_trie trie subtree_summaries byte_rows quoted_subtrees lexemes
                       the vocabulary as a trie; rows, suffix tries, subtrees below a quote and lexeme tries
    token_steps trie_walks key_walks exit_walks trie_tokens
                       the tokens that a set accepts, one at a time or by a walk of a trie
    masks leaf_masks gap_masks lexeme_masks mask_deltas
                       masks, by the kind of configuration; and how they are stored
    matcher_calls      the calls of a Matcher at every token, for one position or many
    object_request_layout object_writer
                       the code of an object, written at once
    near_calls         the rules that a rule begins with
    json_texts document_scan_layout document_scan
                       the text of a schema document, measured, and judged at once
    growth             rehashing of the tables of a state cache
    automata_layout automata_records minimal_automata automaton_products automaton_subsets automaton_lengths
                       automata over classes of characters: minimised, combined, repeated, measured
    digit_request_layout digit_tables
                       the automaton of numbers between bounds
    logits             masks applied to the logits of a model
    draws              one row of logits under a mask: sums, and random tokens
    cuda/              kernels for NVIDIA cards

A kernel that lacks something (space, a rule, a row) writes a request to HEAD[STATUS] (`context_layout`) and returns -1;
the caller provides it and calls again. Nothing is undone: records that were appended stay valid.

The library is used only if it was compiled from these files (`native.native_library`): after an edit of one file all
kernels are compiled again.
"""
