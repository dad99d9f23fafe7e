"""Explain what may come next, where and why a text or a token is rejected, and where a keyword is enforced.

    describe_expected(matcher)    -> ("a digit", '","', '"]"')          what may come next
    first_refusal(constraint, b)  -> ByteRefusal or None                 the first illegal byte of a text
    refusal_of(matcher, b)        -> ByteRefusal or None                 the same for a piece of text after a position
    find_keyword_rows("minItems") -> [Whereabouts(...)]                  rows of the keyword table, with file and line

All functions query a Matcher and leave its position unchanged.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import TokenRefused, locate_position
from ..frontends.json_schema.reading.keywords import KEYWORDS

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher

__all__ = [
    "ByteRefusal",
    "Whereabouts",
    "describe_expected",
    "first_refusal",
    "join_words",
    "refusal_of",
    "find_keyword_rows",
]

MOST_SPELLINGS = 12
"""Maximum number of keys, enum values and the like that are listed one by one; of more, only the common beginnings are
shown."""
FEW = 8
"""Maximum number of characters that are listed one by one; more are given as ranges."""
MANY = 80
"""If so many of the 95 printable ASCII characters are allowed, the expectation is described as any text."""
LONGEST = 60
"""Maximum number of characters of forced text that are shown."""

END = "the end of the text"
QUOTE = "'\"'"
WHITE = frozenset(b" \t\n\r")
PRINTABLE = frozenset(range(0x20, 0x7F))
LEADS = frozenset(range(0xC2, 0xF5))
REST = frozenset(range(0x80, 0xC0))
CONTROLS = frozenset(range(0x20)) | {0x7F}
GROUPS: tuple[tuple[str, frozenset[int]], ...] = (
    ("a letter", frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    ("a small letter", frozenset(b"abcdefghijklmnopqrstuvwxyz")),
    ("a capital letter", frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    ("a hexadecimal digit", frozenset(b"0123456789abcdefABCDEF")),
    ("a hexadecimal digit", frozenset(b"0123456789abcdef")),
    ("a digit", frozenset(b"0123456789")),
    ("a digit from 1 to 9", frozenset(b"123456789")),
)


@dataclass(frozen=True, slots=True)
class ByteRefusal:
    """Where a text is rejected, and what was expected there.

    Attributes
    ----------
    offset : int
        Number of bytes before the rejected one.
    line, column : int
        Position, 1-based, in characters.
    excerpt, caret : str
        That line, and a line that marks the position in it.
    found : str
        Description of what was found.
    expected : tuple of str
        Descriptions of what is allowed.
    """

    offset: int
    line: int
    column: int
    excerpt: str
    caret: int
    found: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """A row of the keyword table, with the functions that parse and enforce the keyword ("file:line name")."""

    keyword: str
    how: str
    since: str
    until: str
    parsed_by: str
    enforced_by: str
    note: str


# ---- what may come -----------------------------------------------------------------------------------------------


def describe_expected(matcher: Matcher) -> tuple[str, ...]:
    """Return descriptions of what may come next; empty if nothing may follow an end token."""
    ending = [END] if matcher.is_complete else []
    forced = matcher.forced()
    if forced:
        return (*forced_words(matcher, forced), *ending)
    left = matcher.next_bytes()
    if left & REST and not left & PRINTABLE:
        return ("the rest of a UTF-8 character", *ending)
    white = left & WHITE
    if len(left & PRINTABLE) >= MANY and left & LEADS:
        words = ["any character", *(describe_strings(matcher) if 0x22 in left else ())]
        words = [word for word in words if word != "a string"]  # outside JSON a quote is an ordinary character
        return (*words, *ending)
    words = [word for word in describe_strings(matcher) if word != QUOTE] if 0x22 in left else []
    left -= white | ({0x22} if words else set())
    for word in match_keywords(matcher, left):
        words.append(word)
        left -= {ord(word[0])}
    words += group_bytes(matcher, left)
    if words == ['","']:
        words = [f'"," (then {join_words(expect_after(matcher, b","))})']
    if white:
        words.append("white space" if len(white) > 1 else quote_character(chr(*white)))
    return (*words, *ending)


def forced_words(matcher: Matcher, forced: bytes) -> list[str]:
    """Return a description of forced text.

    If the text ends with the quote that begins a string, the strings that are allowed there are listed.
    """
    other = matcher.fork()
    if forced.endswith(b'"'):
        if forced[:-1]:
            other.advance_bytes(forced[:-1])
        options = [word for word in describe_strings(other) if word != QUOTE]
        if options:
            return [f"{show_forced(forced[:-1])} (then {join_words(options)})"] if forced[:-1] else options
    return [show_forced(forced)]


def group_bytes(matcher: Matcher, left: set[int]) -> list[str]:
    """Return descriptions of bytes by kind: letters, digits, then the others.

    The others are listed one by one, or as ranges if they are many.
    """
    words = []
    for name, group in GROUPS:
        if left >= group:
            words.append(name)
            left = left - group
    escape = 0x5C in left and after_backslash(matcher)
    singles = sorted((left & PRINTABLE) - ({0x5C} if escape else set()))
    if len(singles) > FEW:
        words.append("one of " + format_ranges(singles))
    else:
        words += [quote_character(chr(byte)) for byte in singles]
    if left & CONTROLS:
        words.append("a control character")
    if left >= LEADS:
        words.append("any character beyond ASCII")
    elif left & LEADS:
        words.append("some characters beyond ASCII")
    return [*words, "an escape"] if escape else words


def match_keywords(matcher: Matcher, left: set[int]) -> list[str]:
    """Return those of true, false and null that may begin here."""
    matches = []
    for word in (b"false", b"null", b"true"):
        if word[0] in left:
            other = matcher.fork()
            other.advance_bytes(word[:1])
            if other.forced().startswith(word[1:]):
                matches.append(word.decode())
    return matches


def describe_strings(matcher: Matcher) -> list[str]:
    """Return descriptions of a quote: the strings that it may begin here, or that it ends one."""
    inside = matcher.fork()
    inside.advance_bytes(b'"')
    follow = inside.next_bytes()
    if len(follow & PRINTABLE) >= MANY:
        return ["a string"]
    if follow <= WHITE | frozenset(b",:]}") and not inside.forced().strip().startswith(b'"'):
        return ["'\"'"]
    descriptions: list[str] = []
    for word in list_spellings(matcher, b'"'):
        descriptions.append(word)
        if len(descriptions) > MOST_SPELLINGS:
            return ["a string of some"]
    return descriptions


def list_spellings(matcher: Matcher, begun: bytes, depth: int = 0) -> Iterator[str]:
    """Yield the strings with this beginning.

    Each ends at its closing quote, or where it has too many continuations.
    """
    position = matcher.fork()
    position.advance_bytes(begun if depth == 0 else begun[-1:])
    forced = position.forced()
    spelling = begun + forced
    end = re.match(rb'"(?:[^"\\]|\\.)*"', spelling)
    if end:
        yield end[0].decode("utf-8", "replace")
        return
    if forced:
        position.advance_bytes(forced)
    choices = sorted(position.next_bytes() - {0x5C})
    if len(choices) > MOST_SPELLINGS or depth > 40 or position.is_complete:
        yield spelling.decode("utf-8", "replace") + "…"
        return
    for byte in choices:
        yield from list_spellings(position, spelling + bytes((byte,)), depth + 1)


def expect_after(matcher: Matcher, text: bytes) -> tuple[str, ...]:
    """Return what is expected after more text; white space is left out."""
    other = matcher.fork()
    other.advance_bytes(text)
    return tuple(word for word in describe_expected(other) if word != "white space") or ("white space",)


def after_backslash(matcher: Matcher) -> bool:
    """Return whether a backslash would begin a JSON escape here."""
    other = matcher.fork()
    other.advance_bytes(b"\\")
    follow = other.next_bytes()
    return 0x75 in follow and follow <= frozenset(b'"\\/bfnrtu')


# ---- why not -----------------------------------------------------------------------------------------------------


def first_refusal(constraint: Constraint, text: bytes) -> ByteRefusal | None:
    """Return the ByteRefusal of a whole text, None if it is valid.

    The text is rejected at its first illegal byte, or at its end if it is incomplete.
    """
    matcher = constraint.matcher()
    refusal = refusal_of(matcher, text)
    if refusal is not None:
        return refusal
    done = matcher.fork()
    done.advance_bytes(text)
    return None if done.is_complete else locate_refusal(matcher, text, len(text))


def refusal_of(matcher: Matcher, text: bytes) -> ByteRefusal | None:
    """Return the ByteRefusal of a piece of text after the matcher's position, None if all of it is allowed."""
    try:
        matcher.fork().advance_bytes(text)
    except TokenRefused as error:
        return locate_refusal(matcher, text, error.position or 0)
    return None


def locate_refusal(matcher: Matcher, text: bytes, offset: int) -> ByteRefusal:
    """Return the ByteRefusal of the byte at an offset of a text that begins at the matcher's position."""
    here = matcher.fork()
    here.advance_bytes(text[:offset])
    rejected, words = describe_found(text, offset), describe_expected(here)
    value = string_at(text, offset)
    if value is not None:
        start = matcher.fork()
        start.advance_bytes(text[: value.start()])
        options = [word for word in describe_expected(start) if len(word) > 3 and word[0] == word[-1] == '"']
        if options:
            rejected, words = show_forced(value[0]), tuple(options)
    # The text before it was accepted, so it is UTF-8 except for a character that may be cut off at its end.
    position = len(text[:offset].decode("utf-8", "ignore"))
    line, column, excerpt, caret = locate_position(text.decode("utf-8", "replace"), position)
    return ByteRefusal(offset, line, column, excerpt, caret, rejected, words)


STRING = re.compile(rb'"(?:[^"\\]|\\.)*("|$)', re.DOTALL)


def string_at(text: bytes, offset: int) -> re.Match[bytes] | None:
    """Return the JSON string, quotes included, that contains an offset; None outside of strings."""
    if offset >= len(text):
        return None
    return next((match for match in STRING.finditer(text) if match.start() < offset < match.end()), None)


def describe_found(text: bytes, offset: int) -> str:
    """Return a description of the text at an offset."""
    if offset >= len(text):
        return END if text else "nothing at all"
    if text.startswith(b"\xef\xbb\xbf") and offset < 3:
        return "a byte order mark"
    for length in (1, 2, 3, 4):
        try:
            return quote_character(text[offset : offset + length].decode())
        except UnicodeDecodeError:
            continue
    return f"the byte 0x{text[offset]:02x}"


# ---- words -------------------------------------------------------------------------------------------------------


def join_words(words: Iterable[str]) -> str:
    """Join words as "a, b or c"."""
    listed = list(words) or ["nothing"]
    return listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " or " + listed[-1]


def quote_character(char: str) -> str:
    """Return a character in quotes, or its name if it is not visible."""
    names = {" ": "a space", "\n": "the end of the line", "\t": "a tab", "\r": "a carriage return", '"': "'\"'"}
    return names.get(char) or (f'"{char}"' if char.isprintable() else f"the character U+{ord(char):04X}")


def show_forced(forced: bytes) -> str:
    """Return forced text for a sentence: unchanged, but cut if it is long."""
    text = forced.decode("utf-8", "ignore")
    if not text:
        return "the rest of a UTF-8 character"
    if len(text) == 1:
        return quote_character(text)
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    if len(text) <= LONGEST and re.fullmatch(r'"(?:[^"\\]|\\.)*"', text):
        return text  # a JSON string has its own quotes
    return f"`{text}`" if len(text) <= LONGEST else f"`{text[: LONGEST - 1]}…`"


def format_ranges(codes: list[int]) -> str:
    """Return characters as ranges, such as !-/ :-@."""
    parts: list[list[int]] = []
    for code in codes:
        if parts and parts[-1][1] == code - 1:
            parts[-1][1] = code
        else:
            parts.append([code, code])
    return " ".join(chr(a) if a == b else f"{chr(a)}{chr(b)}" if b == a + 1 else f"{chr(a)}-{chr(b)}" for a, b in parts)


# ---- the table of keywords ---------------------------------------------------------------------------------------

DRAFTS = {4: "draft 4", 6: "draft 6", 7: "draft 7", 2019: "2019-09", 2020: "2020-12"}


def find_keyword_rows(keyword: str) -> list[Whereabouts]:
    """Return the rows of the keyword table with this name; empty if there is none."""

    return [
        Whereabouts(
            row.name,
            row.how,
            DRAFTS[row.since],
            DRAFTS[row.until],
            locate_function(row.parse),
            locate_function(row.enforced_by),
            row.note,
        )
        for row in KEYWORDS
        if row.name == keyword
    ]


def locate_function(function: Any) -> str:
    """Return "file:line name" of a function, with the file relative to the folder that contains the package."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return "-"
    file = Path(code.co_filename)
    folder = Path(__file__).parents[2]
    shown_file = file.relative_to(folder) if file.is_relative_to(folder) else file
    return f"{shown_file}:{code.co_firstlineno} {code.co_name}"
