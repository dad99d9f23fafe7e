"""The regex front end: from a pattern to a Dfa or to nodes of a Grammar.

    text --parse--> tree --whole--> body, conditions, lengths --program--> instructions
                      |                                                      |
                      |                  positions: sets of items -----------+----------- threads with lookaheads
                      |                       |           (plain)                     (looking around)   |
                      +--nodes--> Chars, ..   +------------------------> Dfa <---------------------------+

Dialects: "python" is `re` on str; "ecma" is ECMA-262 in Unicode mode, which JSON Schema's `pattern` means. `match`
says whether all of a text must match ("full") or some part of it ("search", as JSON Schema means it).
"""

from __future__ import annotations

from .regex_dfa import Match, to_counted_dfa, to_dfa
from .regex_nodes import Encoding, to_grammar, to_node
from .regex_parser import parse_pattern
from .unicode_properties import Dialect

__all__ = ["Dialect", "Encoding", "Match", "parse_pattern", "to_counted_dfa", "to_dfa", "to_grammar", "to_node"]
