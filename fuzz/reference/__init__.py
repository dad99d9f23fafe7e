"""A slow JSON Schema validator with exact numbers, which decides where engines disagree.

    Validator(schema, dialect=None, registry={}).is_valid(parse(text))

It is written from the specifications, one function per keyword, and shares no code with constrain. Numbers are
`fractions.Fraction`, so nothing is rounded. Drafts 4 to 2020-12; `format` and `content*` are annotations. It recurses
on the instance and the schema, so documents must be small. `python -m fuzz.reference SUITE` runs the official test
suite.
"""

from __future__ import annotations

from .json_text import NotJson, Real, parse
from .validator import DIALECTS, Undecided, Validator

__all__ = ["DIALECTS", "NotJson", "Real", "Undecided", "Validator", "parse"]
