"""Least lengths of texts within a JSON string, of which an escape may have begun (RFC 8259, section 7)."""

from __future__ import annotations

from ..kernels import layout as at

__all__ = ["count_spelled_bytes"]

SHORT_ESCAPES = frozenset('"\\/\b\f\n\r\t')
MORE_BYTES = dict.fromkeys(range(32), 5) | dict.fromkeys(b'"\\\b\f\n\r\t', 1)
"""Bytes that a character takes beyond its own one, for those that must be escaped."""
UNIT = 6
"""Bytes of an escape of one unit of UTF-16: a backslash, u and four digits."""


def count_spelled_bytes(text: bytes, pending: int) -> int | None:
    """Return the least bytes by which a text in UTF-8 and its closing quote continue.

    pending: the escape that has begun, as in `kernels.string_keys`. Return None if the text does not continue it.
    """
    kind, left, value = pending >> at.KIND, (pending >> at.LEFT) & 7, pending & at.VALUE
    begun = 0
    if kind != at.PLAIN:
        if not text:
            return None
        length = 1 if text[0] < 0x80 else 2 if text[0] < 0xE0 else 3 if text[0] < 0xF0 else 4
        character, text = text[:length].decode(), text[length:]
        units = character.encode("utf-16-be")
        high, low = int.from_bytes(units[:2], "big"), int.from_bytes(units[2:], "big")
        if kind == at.ESCAPE:
            begun = 1 if character in SHORT_ESCAPES else UNIT * (len(units) // 2) - 1
        elif kind == at.HEX:
            if high >> 4 * left != value:
                return None
            begun = left + (UNIT if low else 0)
        else:
            is_begun = low and high == 0xD800 + (value >> 12 if kind == at.LOW else value)
            if not is_begun or (kind == at.LOW and low >> 4 * left != value & 0xFFF):
                return None
            begun = {at.HIGH: UNIT, at.HIGH_ESCAPE: UNIT - 1}.get(kind, left)
    return begun + len(text) + sum(MORE_BYTES.get(byte, 0) for byte in text) + 1
