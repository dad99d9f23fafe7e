"""Forms: what a text has to be, before any vocabulary, so that schemas, patterns and grammars combine.

`form` has the Form and its operators; `merge`, `meet`, `quoted` make one Grammar of several or of another, on what
`expand` (objects as rules), `spelled` (a Dfa inside a JSON string) and `whole` (a Grammar as a Dfa) provide.
"""

from .form import Form, free_text, from_plain, gbnf, json_schema, literal, regex

__all__ = ["Form", "free_text", "from_plain", "gbnf", "json_schema", "literal", "regex"]
