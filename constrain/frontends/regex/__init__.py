"""Regex front end: from a pattern to a Dfa or to nodes of a Grammar.

    text --parse_pattern--> tree --split_pattern--> body, conditions, lengths --compile_program--> instructions
                             |                                                                       |
                             |           regex_positions: sets of items ------ (no lookaround) ------+
                             |                  |                                                    |
                             |                  |     lookaround_threads: threads with lookaheads ---+
                             |                  |                  |
                             +--to_node-->      +-----> Dfa <------+
                                Chars, Repeat, ...

What `regex_positions` says is done by a kernel where the only anchors are those of the text (`compiled_patterns`).

Dialects: "python" is `re` on str; "ecma" is ECMA-262 in Unicode mode, the dialect of JSON Schema's `pattern`. `match`
is "full" if the whole text must match, or "search" if some part of it must, as in JSON Schema.
"""

from __future__ import annotations

from .regex_dfa import Match, to_counted_dfa, to_dfa
from .regex_nodes import Encoding, to_grammar, to_node
from .regex_parser import parse_pattern
from .unicode_properties import Dialect

__all__ = ["Dialect", "Encoding", "Match", "parse_pattern", "to_counted_dfa", "to_dfa", "to_grammar", "to_node"]
