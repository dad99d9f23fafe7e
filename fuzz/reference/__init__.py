"""A slow JSON Schema validator with exact numbers: the judge where engines disagree.

    Validator(schema, dialect=None, registry={}).is_valid(parse(text))

It is written from the specifications, one function per keyword, and shares no code with constrain. Numbers are
`fractions.Fraction`, so nothing is rounded. Drafts 4 to 2020-12; `format` and `content*` are annotations. It recurses
on the instance and the schema, so it is for small documents. `python -m fuzz.reference SUITE` runs the official test
suite through it.
"""

from __future__ import annotations

from .json_text import NotJson, Real, parse
from .validator import DIALECTS, Undecided, Validator

__all__ = ["DIALECTS", "NotJson", "Real", "Undecided", "Validator", "parse"]
