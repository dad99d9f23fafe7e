"""Forms: what a text has to be, before any vocabulary, so that schemas, patterns and grammars combine.

`form` has the Form and its operators, `plain` reads one from JSON, `sources` what forms are read from, `triggered`
those that begin in the midst of what a model writes by itself. `merge`, `meet`, `quoted` and `larks` make one Grammar
of several, or of another, on what `expand` (objects as rules), `spelled` (a Dfa inside a JSON string), `first` and
`whole` (a Grammar as a Dfa) provide.
"""

from .form import Form, literal
from .form_json import read_form
from .free_text_forms import mark, thinking, triggered
from .sources import free_text, gbnf, grammar, json_schema, lark, regex

__all__ = [
    "Form",
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
