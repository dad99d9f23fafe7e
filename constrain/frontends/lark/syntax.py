"""What is wrong where a grammar's text does not follow lark's grammar language, in the words of that language."""

from __future__ import annotations

import difflib
import re
from typing import Any

__all__ = ["wrong_syntax"]

WORDS = {
    "_LPAR": '"("', "_RPAR": '")"', "_LBRA": '"["', "_RBRA": '"]"', "_LBRACE": '"{"', "_RBRACE": '"}"',
    "OP": '"?", "*" or "+"', "TILDE": '"~"', "_COLON": '":"', "_COMMA": '","', "_OR": '"|"', "_DOT": '"."',
    "_DOTDOT": '".."', "_TO": '"->"', "RULE_MODIFIERS": '"?" or "!" before the name of a rule',
    "RULE": "the name of a rule", "TERMINAL": "the name of a terminal", "STRING": 'a "string"', "REGEXP": "a /pattern/",
    "NUMBER": "a number", "_NL": "the end of the line", "_NL_OR": 'a line that begins with "|"',
    "_IGNORE": "%ignore", "_IMPORT": "%import", "_DECLARE": "%declare", "_EXTEND": "%extend", "_OVERRIDE": "%override",
    "$END": "the end of the grammar",
}  # fmt: skip
"""The tokens of lark's grammar language."""

VALUE = ("RULE", "TERMINAL", "STRING", "REGEXP", "_LPAR", "_LBRA")
ITEM = ("RULE", "TERMINAL", "RULE_MODIFIERS", "_IGNORE", "_IMPORT", "_DECLARE", "_EXTEND", "_OVERRIDE", "_NL")
DIRECTIVES = ("%ignore", "%import", "%declare", "%extend", "%override")

HABITS: tuple[tuple[str, str, str], ...] = (
    (r"'", "a string stands between double quotes", "Write \"...\" instead of '...'."),
    (
        r'"',
        "a string is not closed in its line",
        'Put `"` behind it; inside, write `\\"` for a double quote and `\\n` for a newline.',
    ),
    (r"/", "a pattern is not closed", "Put `/` behind it, and write `\\/` for a slash inside."),
    (r"(?:::)?=", "a rule is written `name: options`", "Write `:` instead."),
    (r"::", "a rule is written `name: options`", "One colon is enough."),
    (r";", "a rule ends with its line", "Leave out the semicolon."),
    (r"<", "names stand without angle brackets", "Write `name` instead of `<name>`."),
    (
        r"\^|\\|&|@|\$|`|>|=|'",
        "this character has no meaning here",
        "If it is part of the text, put it in double quotes.",
    ),
    (
        r"[^\x00-\x7f]",
        "names are made of ASCII letters, digits and underscores",
        "If it is part of the text, put it in double quotes.",
    ),
    (r"-", "names have no hyphens", 'Write an underscore; a minus in the text is "-".'),
    (r"[0-9]", "a name does not begin with a digit", "If it is part of the text, put it in double quotes."),
)
"""What people write who know another notation: how it begins, what is wrong, what to do."""


def wrong_syntax(text: str, error: Any) -> tuple[int, str, str]:
    """Place, cause and cure of a syntax error, as lark raised it: UnexpectedToken or UnexpectedCharacters."""
    position = error.pos_in_stream
    token = getattr(error, "token", None)
    if (token is not None and token.type == "$END") or position is None or position >= len(text.rstrip()):
        return len(text.rstrip()), f"the grammar ends too early; {_expected(_accepted(error))} could follow", ""
    rest = text[position:]
    known = token is not None
    if not known:
        return _character(text, position, _accepted(error))
    assert token is not None
    accepted = _accepted(error)
    before = text[:position]
    if split := re.search(r"[A-Za-z_0-9]+$", before):
        if re.match(r"[A-Za-z_0-9]", rest) and not split[0].isdigit():
            whole = split[0] + re.match(r"[A-Za-z_0-9]*", rest)[0]  # type: ignore[index]
            return (
                split.start(),
                f"the name `{whole}` mixes upper and lower case",
                "A rule's name is all in lower case, a terminal's all in upper case.",
            )
    if token.type == "_NL":
        position = len(before.rstrip())
    what = "the line ends" if token.type in ("_NL", "_NL_OR") else f"`{_short(str(token))}` cannot stand here"
    cause = f"{what}; expected {_expected(accepted)}"
    return position, cause, _cure(text, position, token, accepted)


def _cure(text: str, position: int, token: Any, accepted: set[str]) -> str:
    if token.type == "_LBRACE" or (token.type == "_COMMA" and re.search(r"\{\s*\d+\s*$", text[:position])):
        return "A repetition is written `x~2` or `x~2..5`; braces hold the arguments of a template."
    if token.type == "OP":
        return "An operator stands behind what it repeats, and only one: put parentheses around `(x+)?`."
    if "_COLON" in accepted and token.type in ("_NL", "RULE", "TERMINAL", "STRING", "REGEXP"):
        return "A definition is `name: options`. An option that goes on in a new line begins there with `|`."
    if token.type == "_COLON":
        return "Each definition begins on a line of its own, and a name is one word."
    if token.type in ("_RPAR", "_RBRA"):
        return "Nothing is open here that it closes."
    if token.type == "_NL" and accepted & {"_RPAR", "_RBRA"}:
        return "Close what is open. In parentheses, a new line begins with `|`."
    if token.type == "_DOT" and "_COLON" in accepted:
        return "A priority is a whole number behind the name: `name.2: ...`."
    if token.type == "TERMINAL" and "RULE" in accepted:
        return "This name is in lower case."
    return ""


def _character(text: str, position: int, accepted: set[str]) -> tuple[int, str, str]:
    """A character with which no token begins."""
    rest = text[position:]
    if rest.startswith("%"):
        word = re.match(r"%\w*", rest)[0]  # type: ignore[index]
        near = difflib.get_close_matches(word, DIRECTIVES, 1, 0.5)
        return (
            position,
            f"`{word}` is no directive",
            f"Did you mean {near[0]}?" if near else f"There are {', '.join(DIRECTIVES)}.",
        )
    for pattern, cause, cure in HABITS:
        if re.match(pattern, rest):
            return position, cause, cure
    expected = f"; expected {_expected(accepted)}" if accepted else ""
    return position, f"`{_short(rest[:1])}` begins no token of a grammar{expected}", ""


def _accepted(error: Any) -> set[str]:
    """Names of tokens that could stand where the error is."""
    try:
        names = error.accepts
    except AttributeError:
        names = None
    return set(names or getattr(error, "expected", None) or ())


def _expected(accepted: set[str]) -> str:
    """A list in words: `":" or "."`."""
    rest = set(accepted)
    words: list[str] = []
    if rest >= set(ITEM):
        words.append("a definition or a directive")
        rest -= set(ITEM)
    if rest >= set(VALUE):
        words.append('something to match (a name, a "string", a /pattern/, "(" or "[")')
        rest -= set(VALUE)
    words += [word for name, word in WORDS.items() if name in rest]
    if not words:
        return "something else"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _short(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= 30 else line[:27] + "..."
