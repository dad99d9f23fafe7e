"""Hypothesis strategies that draw documents of a JSON Schema, a regular expression or a grammar.

    @given(from_schema(ORDER))
    def test_every_order_is_accepted(order): assert client.post("/orders", json=order).status_code == 201

    from_schema     instances of a JSON Schema, as Python values or as JSON text in any Style
    nearly_valid    documents that violate one keyword, with that keyword and its location
    from_regex      texts that match a pattern
    from_grammar    texts of a Grammar or Constraint

Requires Hypothesis: pip install "constrain-lm[testing]". `docs/how-to/fuzz-an-api.md` fuzzes a small API.
"""

from __future__ import annotations

try:
    import hypothesis as _hypothesis  # noqa: F401
except ImportError as error:
    raise ImportError('constrain.testing needs Hypothesis: pip install "constrain-lm[testing]"') from error

from .invalid_documents import NearlyValid, nearly_valid
from .strategies import from_grammar, from_regex, from_schema

__all__ = ["NearlyValid", "from_grammar", "from_regex", "from_schema", "nearly_valid"]
