"""Names of special tokens: byte strings that no UTF-8 text holds.

A name is 0xFF and the number of the token among the special tokens, in four digits of other bytes that no UTF-8 has. A
`Vocabulary` spells special tokens so in its `blob`, so that the trie, the mask table and the kernels treat them as any
other bytes. A leaf of UTF-8 never accepts such a byte, and no text has a name inside.
"""

from __future__ import annotations

from ..base.errors import LimitError

__all__ = ["DIGITS", "FIRST", "NAME", "token_name"]

FIRST = 0xFF
DIGITS = (0xC0, 0xC1, *range(0xF5, 0xFF))
"""The other bytes that no UTF-8 has (RFC 3629, section 3: C0 and C1 would begin overlong forms, F5 and above what lies
beyond U+10FFFF)."""
NAME = 5
"""Bytes of a name: 12 ** 4 = 20,736 special tokens can be told apart; Gemma 3, with the most we know of, has 6,415."""


def token_name(number: int) -> bytes:
    """Return the name of the special token of that number. Raise LimitError beyond the numbers that have names."""
    digits = []
    for _ in range(NAME - 1):
        number, digit = divmod(number, len(DIGITS))
        digits.append(DIGITS[digit])
    if number:
        raise LimitError("a vocabulary has more special tokens than names are for", hint="Leave some out of `special`.")
    return bytes((FIRST, *reversed(digits)))
