"""Forms: composable descriptions of a language, independent of any vocabulary.

`form` defines Form and its operators, `form_json` reads a Form from JSON, `sources` has the forms that are read from
text (patterns, schemas, grammars) and free text, `free_text_forms` those that begin within unconstrained text,
`lexical_constraints` phrases that must or must not occur, `embedded_grammars` Lark grammars that contain other
grammars, and `source_grammar` the dispatch of `constrain.compile` to the frontends. The operations on Grammars that
forms are built from (merging, intersection, JSON quoting) are in `constrain.grammar`.
"""

from .form import Form, literal
from .form_json import read_form
from .free_text_forms import mark, thinking, triggered
from .lexical_constraints import all_of, contains, excludes
from .sources import free_text, gbnf, grammar, json_schema, lark, regex

__all__ = [
    "Form",
    "all_of",
    "contains",
    "excludes",
    "free_text",
    "read_form",
    "gbnf",
    "grammar",
    "json_schema",
    "lark",
    "literal",
    "mark",
    "regex",
    "thinking",
    "triggered",
]
