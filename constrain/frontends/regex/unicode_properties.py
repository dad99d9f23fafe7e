"""Named character sets: \\d \\w \\s, Unicode general categories and properties; and case folding.

They are derived from the `unicodedata` of the running Python, so `\\w` is the same set as in `re`. They are computed
on first use (a few ms) and cached.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from typing import Literal

import numpy as np

from ...base.work import memoize_work
from .charset import (
    ALL,
    CharSet,
    charset_of,
    charset_range,
    complement_charset,
    contains_point,
    intersect_charsets,
    list_ranges,
    unite_charsets,
)
from .unicode_scripts import PROPERTIES, SCRIPT_NAMES, SCRIPTS

__all__ = ["ASCII_WORD", "Dialect", "Folding", "class_escape", "close_over_case", "is_uncovered", "property_set"]

Dialect = Literal["python", "ecma"]
Folding = Literal["none", "ascii", "python", "ecma"]
"""Which characters flag i makes equal: none; A-Z with a-z; as `re` does; or by Unicode simple case folding."""

ASCII_DIGIT = charset_range(0x30, 0x39)
ASCII_WORD = unite_charsets((ASCII_DIGIT, charset_range(0x41, 0x5A), charset_of(0x5F), charset_range(0x61, 0x7A)))
ASCII_SPACE = unite_charsets((charset_range(0x09, 0x0D), charset_of(0x20)))

ECMA_SPACE = unite_charsets(
    (
        ASCII_SPACE,
        *map(charset_of, (0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF)),
        charset_range(0x2000, 0x200A),
    )
)
"""WhiteSpace and LineTerminator, ECMA-262 sections 12.2 and 12.3: Zs, tab, VT, FF, BOM, LF, CR, LS, PS."""

HEX_DIGIT = unite_charsets((ASCII_DIGIT, charset_range(0x41, 0x46), charset_range(0x61, 0x66)))
WHITE_SPACE = unite_charsets(
    (
        ASCII_SPACE,
        *map(charset_of, (0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)),
        charset_range(0x2000, 0x200A),
    )
)
BINARY = {
    "Any": ALL,
    "ASCII": charset_range(0, 0x7F),
    "ASCII_Hex_Digit": HEX_DIGIT,
    "AHex": HEX_DIGIT,
    "White_Space": WHITE_SPACE,
    "space": WHITE_SPACE,
    "Hex_Digit": unite_charsets(
        (HEX_DIGIT, charset_range(0xFF10, 0xFF19), charset_range(0xFF21, 0xFF26), charset_range(0xFF41, 0xFF46))
    ),
    "Join_Control": charset_range(0x200C, 0x200D),
    "Regional_Indicator": charset_range(0x1F1E6, 0x1F1FF),
    "Variation_Selector": unite_charsets(
        (
            charset_range(0x180B, 0x180D),
            charset_of(0x180F),
            charset_range(0xFE00, 0xFE0F),
            charset_range(0xE0100, 0xE01EF),
        )
    ),
    "Emoji_Modifier": charset_range(0x1F3FB, 0x1F3FF),
    "Emoji_Component": unite_charsets(
        (
            charset_of(0x23),
            charset_of(0x2A),
            ASCII_DIGIT,
            charset_of(0x200D),
            charset_of(0x20E3),
            charset_of(0xFE0F),
            charset_range(0x1F1E6, 0x1F1FF),
            charset_range(0x1F3FB, 0x1F3FF),
            charset_range(0x1F9B0, 0x1F9B3),
            charset_range(0xE0020, 0xE007F),
        )
    ),
}
NAMES = {
    "Hex": "Hex_Digit", "Join_C": "Join_Control", "RI": "Regional_Indicator", "VS": "Variation_Selector",
    "EPres": "Emoji_Presentation", "EMod": "Emoji_Modifier", "EBase": "Emoji_Modifier_Base",
    "EComp": "Emoji_Component", "ExtPict": "Extended_Pictographic", "IDS": "ID_Start", "IDC": "ID_Continue",
    "XIDS": "XID_Start", "XIDC": "XID_Continue",
}  # fmt: skip
"""Short names of properties (PropertyAliases.txt)."""

UNCOVERED = frozenset(
    """
    Bidi_Control Bidi_C Bidi_Mirrored Bidi_M Case_Ignorable CI Cased Changes_When_Casefolded CWCF
    Changes_When_Casemapped CWCM Changes_When_Lowercased CWL Changes_When_NFKC_Casefolded CWKCF
    Changes_When_Titlecased CWT Changes_When_Uppercased CWU Dash Default_Ignorable_Code_Point DI Deprecated Dep
    Diacritic Dia Extender Ext Grapheme_Base Gr_Base Grapheme_Extend Gr_Ext IDS_Binary_Operator IDSB
    IDS_Trinary_Operator IDST Ideographic Ideo Logical_Order_Exception LOE Math Noncharacter_Code_Point NChar
    Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical Sentence_Terminal STerm
    Soft_Dotted SD Terminal_Punctuation Term Unified_Ideograph UIdeo
    """.split()
)
"""Properties of ECMA-262 (section 22.2.1, binary Unicode properties) of which no set is known here."""

NOT_XID_START = "37A E33 EB3 309B-309C FC5E-FC63 FDFA-FDFB FE70 FE72 FE74 FE76 FE78 FE7A FE7C FE7E FF9E-FF9F"
NOT_XID_CONTINUE = "37A 309B-309C FC5E-FC63 FDFA-FDFB FE70 FE72 FE74 FE76 FE78 FE7A FE7C FE7E"
"""Characters that XID_Start and XID_Continue exclude from ID_Start and ID_Continue for closure under NFKC (UAX 31).

`str.isidentifier` tests for the XID properties.
"""


CATEGORIES = {
    "L": "Letter", "Lu": "Uppercase_Letter", "Ll": "Lowercase_Letter", "Lt": "Titlecase_Letter",
    "LC": "Cased_Letter", "Lm": "Modifier_Letter", "Lo": "Other_Letter", "M": "Mark", "Mn": "Nonspacing_Mark",
    "Mc": "Spacing_Mark", "Me": "Enclosing_Mark", "N": "Number", "Nd": "Decimal_Number", "Nl": "Letter_Number",
    "No": "Other_Number", "P": "Punctuation", "Pc": "Connector_Punctuation", "Pd": "Dash_Punctuation",
    "Ps": "Open_Punctuation", "Pe": "Close_Punctuation", "Pi": "Initial_Punctuation", "Pf": "Final_Punctuation",
    "Po": "Other_Punctuation", "S": "Symbol", "Sm": "Math_Symbol", "Sc": "Currency_Symbol",
    "Sk": "Modifier_Symbol", "So": "Other_Symbol", "Z": "Separator", "Zs": "Space_Separator",
    "Zl": "Line_Separator", "Zp": "Paragraph_Separator", "C": "Other", "Cc": "Control", "Cf": "Format",
    "Cs": "Surrogate", "Co": "Private_Use", "Cn": "Unassigned",
}  # fmt: skip
PLANES = {0: range(0x40000), 0xE0000: range(0xE0000, 0xF0000)}
"""Code points that may have properties: planes 4 to 13 are unassigned, 15 and 16 are for private use."""

ALIASES = {"punct": "P", "digit": "Nd", "cntrl": "Cc", "Combining_Mark": "M"}
"""Further names of general categories in PropertyValueAliases.txt."""


def class_escape(letter: str, dialect: Dialect, ascii_only: str) -> CharSet:
    """Return the set of \\d \\D \\s \\S \\w \\W. ascii_only: "a" if Python's flag a is set, else ""."""
    lower = letter.lower()
    if dialect == "ecma":
        result = {"d": ASCII_DIGIT, "s": ECMA_SPACE, "w": ASCII_WORD}[lower]
    elif ascii_only:
        result = {"d": ASCII_DIGIT, "s": ASCII_SPACE, "w": ASCII_WORD}[lower]
    else:
        result = _python_set(lower)
    return result if letter == lower else complement_charset(result)


@memoize_work(1024)
def _python_set(letter: str) -> CharSet:
    """Return the set of \\d, \\s or \\w of `re` on str, computed with `re` itself."""
    wanted = re.compile(rf"\{letter}+")
    result: list[CharSet] = []
    for first, points in PLANES.items():
        numbers = np.arange(points.start, points.stop, dtype="<u4")  # `chr` of each point would take 30 ms
        text = numbers.tobytes().decode("utf-32-le", "surrogatepass")
        result += [(first + found.start(), first + found.end()) for found in wanted.finditer(text)]
    return unite_charsets(result)


@memoize_work(1024)
def property_set(name: str) -> CharSet | None:
    """Return the set of \\p{name}, or None if the property is unknown.

    Known are the general categories (also `gc=`), common scripts (also `sc=`) and the properties of this module.
    """
    key, equals, value = name.partition("=")
    if equals:
        known = {"gc": _category, "General_Category": _category, "sc": _script, "Script": _script}
        return known[key](value) if key in known else None
    name = NAMES.get(name, name)
    if name in BINARY:
        return BINARY[name]
    if name in ("ID_Start", "ID_Continue", "XID_Start", "XID_Continue"):
        return _identifiers(name)
    if name in ("Lowercase", "Lower", "Uppercase", "Upper"):  # As defined in DerivedCoreProperties.txt.
        test = str.islower if name.startswith("L") else str.isupper
        return unite_charsets(charset_of(point) for plane in PLANES.values() for point in plane if test(chr(point)))
    if name in ("Alphabetic", "Alpha"):
        parts = [property_set(part) or () for part in ("L", "Nl", "Lowercase", "Uppercase")]
        return unite_charsets((*parts, _ranges(PROPERTIES["Other_Alphabetic"])))
    if name in PROPERTIES and name != "Other_Alphabetic":
        return _ranges(PROPERTIES[name])
    if name == "Assigned":
        return complement_charset(_category("Cn") or ())
    return _category(name) or _script(name)


def is_uncovered(name: str) -> bool:
    """Return whether \\p{name} may be valid in ECMA-262 though `property_set` does not know it.

    Names of scripts are not told from others, since only the common ones are known.
    """
    key, equals, value = name.partition("=")
    if equals:
        return key in ("sc", "Script", "scx", "Script_Extensions") and value.isidentifier()
    return name in UNCOVERED


@memoize_work(1024)
def _identifiers(name: str) -> CharSet:
    """Return the set of ID_Start, ID_Continue, XID_Start or XID_Continue."""
    prefix = "a" if name.endswith("Continue") else ""
    found = unite_charsets(
        charset_of(point) for plane in PLANES.values() for point in plane if (prefix + chr(point)).isidentifier()
    )
    if name.startswith("XID"):
        return (
            found if prefix else intersect_charsets(found, complement_charset(charset_of(0x5F)))
        )  # Python lets a name begin with _.
    lost = _ranges(NOT_XID_CONTINUE if prefix else NOT_XID_START)
    return unite_charsets((found if prefix else intersect_charsets(found, complement_charset(charset_of(0x5F))), lost))


def _script(name: str) -> CharSet | None:
    """Return the characters of a script, by its long or short name; None if it is unknown."""
    text = SCRIPTS.get(SCRIPT_NAMES.get(name, name))
    return None if text is None else _ranges(text)


def _ranges(text: str) -> CharSet:
    """Parse ranges as written in `unicode_scripts`."""
    pairs = [item.partition("-") for item in text.split()]
    return unite_charsets(charset_range(int(first, 16), int(last or first, 16)) for first, _, last in pairs)


def _category(name: str) -> CharSet | None:
    """Return the characters of a general category, by its short or long name; None if it is unknown."""
    short = ALIASES.get(name, name)
    short = next((key for key, long in CATEGORIES.items() if long == short), short)
    if short not in CATEGORIES:
        return None
    runs = _categories()
    if short == "LC":
        return unite_charsets((runs["Lu"], runs["Ll"], runs["Lt"]))
    return unite_charsets(charset for key, charset in runs.items() if key.startswith(short))


@memoize_work(1024)
def _categories() -> dict[str, CharSet]:
    """Return the code points of each two-letter general category."""
    points = [*PLANES[0], *PLANES[0xE0000], 0xF0000]
    toggles: defaultdict[str, list[int]] = defaultdict(list)
    previous = ""
    following = 0
    for point, category in zip(points, map(unicodedata.category, map(chr, points))):
        if point != following:  # The gap before plane 14.
            toggles[previous].append(following)
            toggles["Cn"] += (following, point)
            previous = ""
        if category != previous:
            if previous:
                toggles[previous].append(point)
            toggles[category].append(point)
            previous = category
        following = point + 1
    del toggles["Co"][-1]
    result = {name: unite_charsets(zip(ends[::2], ends[1::2])) for name, ends in toggles.items()}
    # The private use planes without the last two code points of each, which are noncharacters.
    result["Co"] = unite_charsets((result["Co"], charset_range(0xF0000, 0xFFFFD), charset_range(0x100000, 0x10FFFD)))
    result["Cn"] = unite_charsets((result["Cn"], charset_range(0xFFFFE, 0xFFFFF), charset_range(0x10FFFE, 0x10FFFF)))
    return result


def close_over_case(charset: CharSet, folding: Folding) -> CharSet:
    """Return the set with all characters that flag i makes equal to one of its characters."""
    if folding == "none" or charset == ALL:
        return charset
    if folding == "ascii":
        extra = []
        for shift, low, high in ((32, 0x41, 0x5A), (-32, 0x61, 0x7A)):
            for i in range(0, len(charset), 2):
                start, end = max(charset[i], low), min(charset[i + 1] - 1, high)
                if start <= end:
                    extra.append(charset_range(start + shift, end + shift))
        return unite_charsets((charset, *extra))
    partners = _case_partners(folding)
    if sum(charset[1::2]) - sum(charset[::2]) < len(partners):
        touched = (partners.get(point, ()) for low, high in list_ranges(charset) for point in range(low, high + 1))
    else:
        touched = (group for point, group in partners.items() if contains_point(charset, point))
    return unite_charsets((charset, *(charset_of(point) for group in touched for point in group)))


@memoize_work(1024)
def _case_partners(folding: Literal["python", "ecma"]) -> dict[int, tuple[int, ...]]:
    """Return for each character that flag i makes equal to others the tuple of all of them, itself included."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    fold = _fold_as_re if folding == "python" else _fold_simply
    for start in range(0, 0x20000, 256):  # No character beyond plane 1 has case.
        block = "".join(map(chr, range(start, start + 256)))
        if not block.lower() == block.upper() == block.casefold() == block:
            for char in block:
                groups[fold(char)].append(ord(char))
    if folding == "python":
        # `re` compares lower case, and treats lower-case characters with the same upper case as equal.
        merged: defaultdict[str, list[int]] = defaultdict(list)
        for name, points in groups.items():
            merged[name.upper()] += points
        groups = merged
    return {point: tuple(points) for points in groups.values() if len(points) > 1 for point in points}


def _fold_as_re(char: str) -> str:
    """Return the simple lower case.

    U+0130 is the only character whose full lower case is longer; its simple one is i.
    """
    lower = char.lower()
    return lower if len(lower) == 1 else lower[0]


def _fold_simply(char: str) -> str:
    """Return the simple case folding: statuses C and S of CaseFolding.txt.

    `casefold` gives these except where status F is longer.
    """
    folded, lower = char.casefold(), char.lower()
    if len(folded) == 1:
        return folded
    return lower if len(lower) == 1 else char
