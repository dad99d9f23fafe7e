"""Names of special tokens: byte strings that never occur in UTF-8 text.

A name is 0xFF followed by the index of the token among the special tokens, in four digits of other bytes that UTF-8
never uses. A `Vocabulary` spells special tokens by these names in its `blob`, so the trie, the mask table and the
kernels treat them as ordinary bytes. A UTF-8 leaf never accepts such a byte, and no text contains a name.
"""

from __future__ import annotations

from ..base.errors import LimitError

__all__ = ["DIGITS", "FIRST", "NAME", "token_name"]

FIRST = 0xFF
DIGITS = (0xC0, 0xC1, *range(0xF5, 0xFF))
"""The other bytes that never occur in UTF-8 (RFC 3629, section 3).

C0 and C1 would start overlong forms, F5 and above code points beyond U+10FFFF.
"""
NAME = 5
"""Bytes of a name.

12 ** 4 = 20,736 special tokens can be named; Gemma 3, the known vocabulary with the most, has 6,415.
"""


def token_name(number: int) -> bytes:
    """Return the name of the special token with this index. Raise LimitError if the index is too large."""
    digits = []
    for _ in range(NAME - 1):
        number, digit = divmod(number, len(DIGITS))
        digits.append(DIGITS[digit])
    if number:
        raise LimitError(
            "a vocabulary has more special tokens than can be named",
            hint="Leave some out of `special`.",
        )
    return bytes((FIRST, *reversed(digits)))
