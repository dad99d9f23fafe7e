"""The kernel that measures a JSON text: its levels, and whether a number in it may be long."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import example, given, settings, strategies as st

from constrain.kernels.entry_points import measure_text

MOST_DIGITS = 3
LEAVES = st.integers() | st.text('a0"\\[{é', max_size=30) | st.floats(allow_nan=False, allow_infinity=False)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\', max_size=12), inner, max_size=3)
)


def measure_slowly(text: str) -> int:
    """Return what the kernel does of a JSON text."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    level = most = 0
    for character in bare:
        level += (character in "[{") - (character in "]}")
        most = max(most, level)
    return -1 - most if re.search(rf"\d{{{MOST_DIGITS + 1}}}", bare) else most


@settings(deadline=None)
@given(DOCUMENTS, st.integers(0, 9))
@example(json.loads('{"a": "' + "x" * 40 + '", "b": [[1234]]}'), 0)
def test_levels_and_long_numbers(document: Any, spaces: int) -> None:
    for text in (json.dumps(document), " " * spaces + json.dumps(document, ensure_ascii=False)):
        assert measure_text(text.encode(), MOST_DIGITS) == measure_slowly(text)


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes(text: bytes) -> None:
    assert -50 < measure_text(b"[" + text, MOST_DIGITS) < 50
