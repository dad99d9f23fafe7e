"""Diagnosis of literals of lark's grammar language that are not a valid string or not a valid pattern for `re`."""

from __future__ import annotations

import ast
import re

from ...base.errors import ConstrainError, RegexError
from ...base.options import Limits
from ..regex import parse_pattern

__all__ = ["explain_literal"]

ESCAPE = re.compile(r"\\(?:U[0-9A-Fa-f]{8}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)|.", re.S)
"""One character of a literal in its source form."""
RESOLVED = "Uuxnftr"
"""Escapes that lark itself resolves, in strings and in patterns."""
DIGITS = {"U": 8, "u": 4, "x": 2}


def explain_literal(kind: str, written: str) -> tuple[int, str, str] | None:
    """Return the offset, cause and hint of an error in a "string" or /pattern/; None if it is valid by itself."""
    delimiter = '"' if kind == "string" else "/"
    inner, _, flags = written[1:].rpartition(delimiter)
    text, offsets = "", []  # The characters after lark's unescaping, and the offset of each.
    for match in ESCAPE.finditer(inner):
        escape, position = match[0], match.start() + 1
        if escape == "\\":
            return position, "a literal ends with a backslash", "Write `\\\\` for a backslash."
        made = escape
        if escape[0] == "\\" and escape[1] in RESOLVED:
            if escape[1] in DIGITS and len(escape) == 2:
                return position, f"`{escape}` needs {DIGITS[escape[1]]} hexadecimal digits", "Fill up with zeros."
            try:
                made = ast.literal_eval(f"'{escape}'")
            except (SyntaxError, ValueError):
                return position, f"`{escape}` is not a Unicode character", "The last character is \\U0010FFFF."
        text += made
        offsets += [position] * len(made)
    offsets.append(len(inner) + 1)
    if not text:
        return 0, "the empty string cannot be a token", "Leave it out: an option without symbols is the empty text."
    if kind == "string":
        return None
    try:
        re.compile(text, sum(getattr(re, flag.upper()) for flag in set(flags)))
    except (re.error, ValueError, OverflowError, RecursionError) as error:
        index = min(getattr(error, "pos", None) or 0, len(text))
        cause, cure = f"not a pattern for `re`: {getattr(error, 'msg', error)}", "See Python's `re` for its syntax."
        try:
            parse_pattern(text, dialect="python", flags="".join(sorted(set(flags) - {"l"})), nesting=Limits().nesting)
        except RegexError as parsed:
            cause, cure = parsed.cause, parsed.hint or cure
            index = min(parsed.position or index, len(text))
        except ConstrainError:
            return offsets[index], cause, cure
        return offsets[index], cause, cure
    return None
