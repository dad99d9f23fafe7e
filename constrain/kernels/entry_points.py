"""The compiled functions that Python calls, and nothing else: importing this file loads the library of kernels.

Each is documented where it is written, in the file of its name (`help(entry_points.mask_at)` tells the parameters). All
but those of the first group release the GIL during the call. Arguments are checked by the generated code
(`jit.entry_code`): TypeError for another number or type, OverflowError beyond 64 bits. An address is an int; an array
is one-dimensional, contiguous and of the type in the comment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .native.native_library import find_function

Array = Any

# ---- short calls, with the GIL
address_of: Callable[[Array], int] = find_function("matcher_calls.address_of")  # int32
note_array: Callable[[int, int], int] = find_function("matcher_calls.note_array")
count_positions: Callable[[int, int, int, int], int] = find_function("matcher_calls.count_positions")
count_new: Callable[[int, int, int, int], int] = find_function("matcher_calls.count_new")
publish_word: Callable[[int, int, int], int] = find_function("shared_words.publish_word")
measure_text: Callable[[Array, int], int] = find_function("json_texts.measure_text")  # uint8
scan_document: Callable[[Array, Array, Array, Array], int] = find_function(
    "document_scan.scan_document"
)  # uint8, uint8, int64, int64
list_near_calls: Callable[[Array, int, Array], int] = find_function("near_calls.list_near_calls")  # int32, int32
write_object: Callable[[Array, Array, Array], int] = find_function("object_writer.write_object")  # int32, uint8, int32
append_number_leaf: Callable[[int, int, int, int], int] = find_function("number_leaves.append_number_leaf")
write_number_transitions: Callable[[int, int, Array], int] = find_function(
    "number_leaves.write_number_transitions"
)  # int32

# ---- a position of a Matcher, or many
mask_at: Callable[[int, int, int], int] = find_function("matcher_calls.mask_at")
repeat_mask: Callable[[int, int], int] = find_function("matcher_calls.repeat_mask")
advance_at: Callable[[int, int, int], int] = find_function("matcher_calls.advance_at")
advance_all: Callable[[int, int, int, int, int], int] = find_function("matcher_calls.advance_all")
fill_array: Callable[[int, int, int, int, int], int] = find_function("matcher_calls.fill_array")
fill_masks: Callable[[int, int, int, int, int, int, int, int, int, int], int] = find_function(
    "matcher_calls.fill_masks"
)

# ---- a context: sets of configurations
start_set: Callable[[int], int] = find_function("sets.start_set")
step_set: Callable[[int, int, int], int] = find_function("sets.step_set")
compute_step: Callable[[int, int, int], int] = find_function("sets.compute_step")
make_keyless: Callable[[int, int], int] = find_function("sets.make_keyless")
advance_token: Callable[[int, int, int], int] = find_function("token_steps.advance_token")
advance_by_each: Callable[[int, int, Array, Array], int] = find_function("token_steps.advance_by_each")  # int64, int64
advance_bytes: Callable[[int, int, Array], int] = find_function("token_steps.advance_bytes")  # uint8
fill_mask: Callable[[int, int, int], int] = find_function("masks.fill_mask")
write_mask: Callable[[int, int, Array], int] = find_function("masks.write_mask")  # int32
list_likely: Callable[[int, int, int], int] = find_function("next_masks.list_likely")
fill_next_masks: Callable[[int, int, int, int, int], int] = find_function("next_masks.fill_next_masks")
find_forced_bytes: Callable[[int, int, Array], int] = find_function("masks.find_forced_bytes")  # uint8
list_next_bytes: Callable[[int, int, Array], int] = find_function("masks.list_next_bytes")  # uint8
rehash_table: Callable[[int, int], int] = find_function("growth.rehash_table")
extend_chain: Callable[[int, int, int], int] = find_function("interned_names.extend_chain")
add_guard: Callable[[int, int, int, int, int], int] = find_function("member_guards.add_guard")
write_text_to_buffer: Callable[[int, int, int], int] = find_function("unique_members.write_text_to_buffer")

# ---- a table of a vocabulary
intern_leaf: Callable[[int, int, int, int], int] = find_function("leaves.intern_leaf")
expand_leaf: Callable[[int, int], int] = find_function("leaves.expand_leaf")
expand_leaves: Callable[[int, int, int], int] = find_function("leaves.expand_leaves")
write_dfa_block: Callable[[Array, Array, Array], int] = find_function("dfa_blocks.write_dfa_block")  # int32
build_trie: Callable[[int, Array], int] = find_function("vocabulary_trie.build_trie")  # int32
fill_contents: Callable[[int], int] = find_function("byte_rows.fill_contents")
write_quoted_subtrees: Callable[[int, int], int] = find_function("quoted_subtrees.write_quoted_subtrees")
find_unexpanded: Callable[[int, int], int] = find_function("trie.find_unexpanded")
make_row: Callable[[int, int, int], int] = find_function("trie.make_row")
write_run_tokens: Callable[[int, Array, Array, Array, Array, Array], int] = find_function(
    "number_rows.write_run_tokens"
)  # uint8, int32, int32, int32, int32
hash_row: Callable[[int, int], int] = find_function("row_hashes.hash_row")
make_suffix_trie: Callable[[int, int, int, int], int] = find_function("trie.make_suffix_trie")
order_by_length: Callable[[int, int, int, int], int] = find_function("trie.order_by_length")

# ---- logits: a row is float32 or float64, a mask int32, sums float64, tokens int64
apply_masks: Callable[[int, int, int, int, int, int, int, int, int, int, int], int] = find_function(
    "logits.apply_masks"
)
sum_masses: Callable[[Array, Array, Array], float] = find_function("draws.sum_masses")
find_token: Callable[[Array, Array, Array, float], int] = find_function("draws.find_token")
remove_tokens: Callable[[Array, Array, Array, Array], float] = find_function("draws.remove_tokens")
list_likeliest: Callable[[Array, Array, Array, Array, Array], int] = find_function("draws.list_likeliest")
list_tokens: Callable[[Array, Array], int] = find_function("draws.list_tokens")
list_above: Callable[[Array, Any, Array, Array, Array], int] = find_function("draws.list_above")
split_mask: Callable[[Array, Array, Array, Array, Array, Array], int] = find_function(
    "draws.split_mask"
)  # int32, int64, float64, int32, int64, float64

# ---- automata: a record, and what is written, are int32
minimise_automaton: Callable[[Array, Array], int] = find_function("minimal_automata.minimise_automaton")
product_automaton: Callable[[Array, Array, Array, int, int], int] = find_function(
    "automaton_products.product_automaton"
)
have_common_text: Callable[[Array, Array, Array], int] = find_function("automaton_products.have_common_text")
bound_lengths: Callable[[Array, Array, Array, int, int, int], int] = find_function("automaton_products.bound_lengths")
concatenate_automata: Callable[[Array, Array, Array, Array, int], int] = find_function(
    "automaton_subsets.concatenate_automata"
)
repeat_automaton: Callable[[Array, Array, Array, int, int, int], int] = find_function(
    "automaton_subsets.repeat_automaton"
)
determinise_pattern: Callable[[Array, Array, Array, int, int], int] = find_function(
    "pattern_automata.determinise_pattern"
)
explore_digits: Callable[[Array, Array, Array, int], int] = find_function(
    "digit_tables.explore_digits"
)  # int32, int32, int64
mark_runs: Callable[[Array, Array, Array], int] = find_function("digit_runs.mark_runs")  # int64, int64, uint8
measure_lengths: Callable[[Array, Array, Array], int] = find_function("automaton_lengths.measure_lengths")
