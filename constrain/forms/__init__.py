"""Forms: composable descriptions of a language, independent of any vocabulary.

`form` defines Form and its operators, `form_json` reads a Form from JSON, `sources` has the forms that are read from
text (patterns, schemas, grammars) and free text, `free_text_forms` those that begin within unconstrained text,
`lexical_constraints` phrases that must or must not occur, `embedded_grammars` Lark grammars that contain other
grammars, and `source_grammar` the dispatch of `constrain.compile` to the frontends. The operations on Grammars that
forms are built from (merging, intersection, JSON quoting) are in `constrain.grammar`.
"""

from typing import TYPE_CHECKING

from ..base.lazy_names import import_lazily

if TYPE_CHECKING:
    from .form import Form, count_characters, literal
    from .form_json import read_form
    from .free_text_forms import mark, thinking, triggered
    from .lexical_constraints import all_of, contains, excludes
    from .sources import LarkText, free_text, gbnf, grammar, json_schema, lark, regex

__all__ = [
    "Form",
    "LarkText",
    "all_of",
    "contains",
    "count_characters",
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

__getattr__ = import_lazily(
    __name__,
    {
        "form": "Form count_characters literal",
        "form_json": "read_form",
        "free_text_forms": "mark thinking triggered",
        "lexical_constraints": "all_of contains excludes",
        "sources": "LarkText free_text gbnf grammar json_schema lark regex",
    },
)
