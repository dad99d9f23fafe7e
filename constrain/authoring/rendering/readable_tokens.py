"""Tokens as people read them: no control, bidirectional or invisible character and no incomplete character is left.

Text of models is foreign: it may hold characters that reorder what stands around them, in a terminal as on a page. They
are written as escapes here, once for all tables, pages and notebooks.
"""

from __future__ import annotations

import unicodedata
from html import escape

__all__ = ["LONGEST_TOKEN", "escape_html", "show_bytes", "show_characters"]

LONGEST_TOKEN = 60
"""Maximum number of characters of a token that are shown; the others are counted."""
NAMES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
"""General categories of characters that are shown as escapes."""


def show_characters(text: str) -> str:
    """Return a text with escapes in place of characters that are invisible or reorder others, and of surrogates."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\u00a0" else escape_character(char) for char in text)


def escape_character(char: str) -> str:
    """Return a character as an escape if it is not visible."""
    if unicodedata.category(char) not in HIDDEN:
        return char
    return NAMES.get(char) or (f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{{{ord(char):x}}}")


def show_bytes(data: bytes, most: int = LONGEST_TOKEN) -> str:
    """Return the text of a token in quotes, as one line; bytes of incomplete characters as \\xNN.

    Of a text longer than `most` characters, the others are counted.
    """
    text = show_characters(data[: 4 * most + 4].decode("utf-8", "backslashreplace"))
    if len(text) <= most and len(data) <= 4 * most:
        return f"'{text}'"
    return f"'{text[:most]}…' ({len(data):,} bytes)"


def escape_html(text: str) -> str:
    """Return a text for HTML, attributes included, with invisible characters as escapes."""
    return escape(show_characters(text), quote=True)
