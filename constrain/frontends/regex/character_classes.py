"""Parser of backslash escapes and bracketed classes, which denote one character of a set."""

from __future__ import annotations

import unicodedata

from ...automata.dfa import LAST
from ...base.errors import RegexError, UnsupportedError
from .charset import CharSet, charset_of, charset_range, complement_charset, unite_charsets
from .unicode_properties import Dialect, Folding, class_escape, close_over_case, is_uncovered, property_set

__all__ = ["EscapeParser"]

CONTROLS = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
HEX = frozenset("0123456789abcdefABCDEF")
OCTAL = frozenset("01234567")
ECMA_HINTS = {
    "A": "ECMA-262 has no \\A: use ^.", "Z": "ECMA-262 has no \\Z: use $.", "z": "ECMA-262 has no \\z: use $.",
    "h": "ECMA-262 has no \\h: use [ \\t].", "Q": "ECMA-262 has no \\Q: escape each character.",
}  # fmt: skip

KNOWN_PROPERTIES = (
    "Known are general categories (\\p{Lu}), common scripts (\\p{Script=Greek}), Alphabetic, Lowercase, Uppercase, "
    "White_Space, ASCII, Hex_Digit, ID_Start, ID_Continue and those of emoji."
)


class EscapeParser:
    """Parser of the escapes and classes of one pattern.

    Methods take a position and return the position after the construct.
    """

    def __init__(self, source: str, dialect: Dialect) -> None:
        self.source = source
        self.dialect = dialect

    def wrong(self, cause: str, position: int, hint: str = "") -> RegexError:
        return RegexError(cause, source=self.source, position=position, hint=hint)

    def reference(self, position: int) -> tuple[int, int]:
        """Return the group number of a backreference after a backslash, or 0 if there is none."""
        text = self.source
        digit = text[position : position + 1]
        if digit not in tuple("123456789"):
            return 0, position
        end = position + 1
        if self.dialect == "ecma":
            while text[end : end + 1] in tuple("0123456789"):
                end += 1
        elif text[end : end + 1] in tuple("0123456789"):
            if len(text) > end + 1 and OCTAL.issuperset(text[position : end + 2]):
                return 0, position  # Three octal digits are a character escape.
            end += 1
        # Ten digits exceed the number of groups of any pattern; `int` refuses more than 4,300 digits.
        return int(text[position : min(end, position + 10)]), end

    def escape(self, position: int, ascii_only: bool, folding: Folding) -> tuple[CharSet, int, bool]:
        """Parse an escape after its backslash.

        Return its set, the position after it, and whether it is a literal character.
        """
        char = self.source[position : position + 1]
        if not char:
            raise self.wrong("a backslash at the end", position - 1, "Write \\\\ for the character.")
        if char in "dDsSwW":
            charset = class_escape(char.lower(), self.dialect, "a" if ascii_only else "")
            if self.dialect == "ecma":  # Its \w with flag i is closed under case folding.
                charset = close_over_case(charset, folding)
            return (complement_charset(charset) if char.isupper() else charset), position + 1, False
        if char in "pP":
            charset, end = self.property(position)
            return (close_over_case(charset, folding) if self.dialect == "ecma" else charset), end, False
        point, end = self.point(position, char)
        return charset_of(point), end, True

    def point(self, position: int, char: str) -> tuple[int, int]:
        """Return the code point of a literal escape, and the position after it."""
        if char in CONTROLS:
            return CONTROLS[char], position + 1
        if char == "x":
            return self.hexadecimal(position, 2)
        if char == "u":
            if self.dialect == "ecma":
                return self.ecma_unicode(position)
            return self.hexadecimal(position, 4)
        if char in "0123456789":
            return self.octal(position, char)
        if self.dialect == "ecma":
            letter = self.source[position + 1 : position + 2]
            if char == "c" and letter.isascii() and letter.isalpha():
                return ord(letter) % 32, position + 2
        elif char == "a":
            return 0x07, position + 1
        elif char == "U":
            return self.hexadecimal(position, 8)
        elif char == "N":
            return self.named(position)
        if char.isascii() and char.isalpha():
            hint = ECMA_HINTS.get(char, "") if self.dialect == "ecma" else ""
            raise self.wrong(f"the escape \\{char} is unknown", position - 1, hint)
        return ord(char), position + 1

    def hexadecimal(self, position: int, count: int) -> tuple[int, int]:
        digits = self.source[position + 1 : position + 1 + count]
        if len(digits) < count or not HEX.issuperset(digits):
            raise self.wrong(f"\\{self.source[position]} needs {count} hexadecimal digits", position - 1)
        if int(digits, 16) >= LAST:
            raise self.wrong("there is no such code point", position - 1)
        return int(digits, 16), position + 1 + count

    def ecma_unicode(self, position: int) -> tuple[int, int]:
        """Parse `\\uHHHH`, a surrogate pair of these for a supplementary character, or `\\u{H...}`."""
        text = self.source
        if text[position + 1 : position + 2] == "{":
            end = text.find("}", position)
            digits = text[position + 2 : max(end, position + 2)]
            if not digits or not HEX.issuperset(digits) or int(digits, 16) >= LAST:
                raise self.wrong("\\u{...} needs the hexadecimal digits of a code point", position - 1)
            return int(digits, 16), end + 1
        point, end = self.hexadecimal(position, 4)
        if 0xD800 <= point < 0xDC00 and text.startswith("\\u", end) and HEX.issuperset(text[end + 2 : end + 6]):
            low = int(text[end + 2 : end + 6] or "0", 16)
            if 0xDC00 <= low < 0xE000:
                return 0x10000 + (point - 0xD800) * 0x400 + low - 0xDC00, end + 6
        return point, end

    def octal(self, position: int, char: str) -> tuple[int, int]:
        """Parse `\\0`, or octal digits in Python. Backreferences have been handled before."""
        end = position + 1
        if self.dialect == "ecma":
            if char != "0" or self.source[end : end + 1] in tuple("0123456789"):
                raise self.wrong(
                    "digits after a backslash are not a character", position - 1, "Write \\xHH for a character."
                )
            return 0, end
        while end < position + 3 and self.source[end : end + 1] in tuple(OCTAL):
            end += 1
        digits = self.source[position:end]
        if not OCTAL.issuperset(digits) or int(digits, 8) > 0o377:
            raise self.wrong(f"\\{digits} is not an octal escape", position - 1)
        return int(digits, 8), end

    def named(self, position: int) -> tuple[int, int]:
        """Parse `\\N{NAME}` of Python."""
        end = self.source.find("}", position)
        name = self.source[position + 2 : max(end, position + 2)]
        try:
            if self.source[position + 1 : position + 2] == "{" and name:
                return ord(unicodedata.lookup(name)), end + 1
        except (KeyError, TypeError):
            pass
        raise self.wrong("\\N{...} needs the name of a character", position - 1)

    def property(self, position: int) -> tuple[CharSet, int]:
        """Parse `\\p{name}` or `\\P{name}`."""
        end = self.source.find("}", position)
        if self.source[position + 1 : position + 2] != "{" or end < 0:
            raise self.wrong("\\p needs a property in braces, as in \\p{L}", position - 1)
        name = self.source[position + 2 : end]
        charset = property_set(name)
        if charset is None and is_uncovered(name):
            raise UnsupportedError(
                f"\\p{{{name}}} is not supported", source=self.source, position=position - 1, hint=KNOWN_PROPERTIES
            )
        if charset is None:
            raise self.wrong(f"there is no character property {name!r}", position - 1, KNOWN_PROPERTIES)
        return (complement_charset(charset) if self.source[position] == "P" else charset), end + 1

    # ---- brackets -----------------------------------------------------------------------------------------------

    def bracket(self, position: int, ascii_only: bool, folding: Folding) -> tuple[CharSet, int]:
        """Parse the class whose `[` is just before the position."""
        source, start = self.source, position - 1
        negated = source.startswith("^", position)
        position += negated
        first = position
        literals: list[CharSet] = []
        classes: list[CharSet] = []
        while True:
            if position >= len(source):
                raise self.wrong("this class is not closed", start, "Add ], or write \\[ for the character.")
            if source[position] == "]" and (position > first or self.dialect == "ecma"):
                break
            here = position
            charset, position, literal = self.member(position, ascii_only, folding)
            if source.startswith("-", position) and position + 1 < len(source) and source[position + 1] != "]":
                other, end, other_literal = self.member(position + 1, ascii_only, folding)
                if literal and other_literal:
                    if other[0] < charset[0]:
                        raise self.wrong("this range ends before it starts", here)
                    charset, position = charset_range(charset[0], other[0]), end
                elif self.dialect == "python":
                    raise self.wrong("a range goes from one character to another", here, "Write \\- for the character.")
                else:  # The dash is a character (ECMA-262, section B.1.2.8.1, CharacterRangeOrUnion).
                    literals.append(charset_of(ord("-")))
                    (literals if other_literal else classes).append(other)
                    position = end
            (literals if literal else classes).append(charset)
        # Python folds characters and ranges only; ECMA-262 folds all, but its \w and \p are closed already.
        charset = unite_charsets((close_over_case(unite_charsets(literals), folding), *classes))
        return (complement_charset(charset) if negated else charset), position + 1

    def member(self, position: int, ascii_only: bool, folding: Folding) -> tuple[CharSet, int, bool]:
        """Parse one character or escape within brackets; return values as of `escape`."""
        if self.source[position] != "\\":
            return charset_of(ord(self.source[position])), position + 1, True
        if self.source.startswith("b", position + 1):
            return charset_of(0x08), position + 2, True
        return self.escape(position + 1, ascii_only, folding)
