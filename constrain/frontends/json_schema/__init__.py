"""JSON Schema, drafts 4 to 2020-12: `to_grammar` returns the Grammar of all instances of a schema, spelled as a Style
says.

The packages, from the lowest to the highest:

    core        sets of subschemas, JSON values, dialects, white space, the interface of keyword parsers
    strings     minLength, maxLength, pattern, format: languages of texts
    numbers     minimum, maximum, multipleOf: automata of the spellings of numbers
    shapes      what a schema allows for each JSON type, and the interface of the algebra
    objects     properties and its relatives, required, dependencies; tries of long enums
    arrays      items and its relatives, contains, uniqueItems
    algebra     AND, OR, NOT, oneOf, unevaluated keywords, satisfiability
    reading     the keyword table, references, the parser
    emission    from a document to its Grammar
    reports     what is said about a schema: keywords, faults, misspellings, unsatisfiable parts

Each group of keywords parses, combines and emits its own keywords.
"""

from __future__ import annotations

from .emission.schema_pipeline import to_grammar
from .reading.keywords import KEYWORDS, Keyword
from .reports.keyword_report import KeywordRow, describe_keywords

__all__ = ["KEYWORDS", "Keyword", "KeywordRow", "describe_keywords", "to_grammar"]
