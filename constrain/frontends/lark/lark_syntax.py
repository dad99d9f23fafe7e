"""Explanations of syntax errors in Lark grammars, in terms of lark's grammar language."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any

__all__ = ["explain_syntax_error"]

WORDS = {
    "_LPAR": '"("', "_RPAR": '")"', "_LBRA": '"["', "_RBRA": '"]"', "_LBRACE": '"{"', "_RBRACE": '"}"',
    "OP": '"?", "*" or "+"', "TILDE": '"~"', "_COLON": '":"', "_COMMA": '","', "_OR": '"|"', "_DOT": '"."',
    "_DOTDOT": '".."', "_TO": '"->"', "RULE_MODIFIERS": '"?" or "!" before the name of a rule',
    "RULE": "the name of a rule", "TERMINAL": "the name of a terminal", "STRING": 'a "string"', "REGEXP": "a /pattern/",
    "NUMBER": "a number", "_NL": "the end of the line", "_NL_OR": 'a line that begins with "|"',
    "_IGNORE": "%ignore", "_IMPORT": "%import", "_DECLARE": "%declare", "_EXTEND": "%extend", "_OVERRIDE": "%override",
    "$END": "the end of the grammar",
}  # fmt: skip
"""Names of the tokens of lark's grammar language in messages."""

VALUE = ("RULE", "TERMINAL", "STRING", "REGEXP", "_LPAR", "_LBRA")
ITEM = ("RULE", "TERMINAL", "RULE_MODIFIERS", "_IGNORE", "_IMPORT", "_DECLARE", "_EXTEND", "_OVERRIDE", "_NL")
DIRECTIVES = ("%ignore", "%import", "%declare", "%extend", "%override")

QUOTED = "If it is part of the text, put it in double quotes."

HABITS: tuple[tuple[str, str, str], ...] = (
    (r"'", "a string is enclosed in double quotes", "Write \"...\" instead of '...'."),
    (
        r'"',
        "a string is not closed in its line",
        'Put `"` after it; inside, write `\\"` for a double quote and `\\n` for a newline.',
    ),
    (r"/", "a pattern is not closed", "Put `/` after it, and write `\\/` for a slash inside."),
    (r"=", "a rule is written `name: options`", "Write `:` instead."),
    (r";", "a rule ends with its line", "Leave out the semicolon."),
    (r"<", "names are written without angle brackets", "Write `name` instead of `<name>`."),
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
    (
        r"!",
        "`!` precedes the name of a rule in its definition",
        "Write `!name: ...` there; it shapes trees only.",
    ),
    (r"__", "names that begin with two underscores are reserved by lark", "One underscore is allowed."),
    (r"-", "names have no hyphens", 'Write an underscore; a minus in the text is "-".'),
    (r"[0-9]", "a name does not begin with a digit", QUOTED),
)
"""Mistakes of users of other notations: regular expression for how it begins, cause, hint."""


NAME_SO_FAR = re.compile(r"[A-Za-z_][A-Za-z_0-9]*$")
NAME_GOES_ON = re.compile(r"[A-Za-z_0-9]+")

MISTAKES: tuple[tuple[tuple[str, ...], Callable[[str, int, set[str]], bool], str, str], ...] = (
    (
        ("_COLON",),
        lambda text, position, accepted: text[:position].rstrip().endswith(":"),
        "a rule is written `name: options`, with one colon",
        "Remove the second colon.",
    ),
    (
        ("_COLON",),
        lambda text, position, accepted: True,
        "a definition begins here, in the middle of another",
        "Begin each definition on a new line.",
    ),
    (
        ("_LBRACE",),
        lambda text, position, accepted: "_LPAR" in accepted,
        "braces hold the arguments of a template, and there is no template before them",
        "A repetition is written `x~2` or `x~2..5`.",
    ),
    (
        ("NUMBER",),
        lambda text, position, accepted: text[:position].rstrip().endswith("{"),
        "braces hold the arguments of a template",
        "A repetition is written `x~2` or `x~2..5`.",
    ),
    (
        ("OP",),
        lambda text, position, accepted: True,
        "`{token}` has nothing before it that it could repeat",
        "An operator follows a value, and only one: write `(x+)?` for two.",
    ),
)
"""Misplaced tokens: token kinds, condition, cause, hint."""

DEFINITION = "A definition is `name: options`. Options on a new line begin with `|`."
CLOSE = "Close what is open. Inside, a new line begins with `|`."
CURES: tuple[tuple[tuple[str, ...], set[str], str], ...] = (
    (("_NL", "$END"), {"_RPAR"}, CLOSE),
    (("_NL", "$END"), {"_RBRA"}, CLOSE),
    (("_DOT",), {"_COLON"}, "A priority is an integer after the name: `name.2: ...`."),
    ((), {"_COLON"}, DEFINITION),
    ((*VALUE, "_OR"), {"_IGNORE"}, DEFINITION),
    (("_RPAR", "_RBRA", "_RBRACE"), set(), "Remove it: there is no opening bracket."),
    (("_IMPORT", "_IGNORE", "_DECLARE", "_EXTEND", "_OVERRIDE"), set(), "Begin each directive on a new line."),
    (("TILDE",), set(), "A repetition follows the repeated item, and only one: `x~2..5`."),
    (("TERMINAL",), {"RULE"}, "Write the name in lower case here."),
    ((), set(VALUE), QUOTED),
    ((), {"NUMBER"}, "A number consists of digits only."),
    ((), {"_IGNORE"}, DEFINITION),
    (
        (),
        {"RULE", "TERMINAL"},
        "Names consist of letters, digits and underscores: rules in lower case, terminals in upper case.",
    ),
    ((), set(), "Write what is expected, or leave this out."),
)
"""Hints for an unexpected token: token kinds (empty: any), tokens that must be acceptable instead, hint."""


def explain_syntax_error(text: str, error: Any) -> tuple[int, str, str]:
    """Return the offset, cause and hint of a syntax error raised by lark: UnexpectedToken or UnexpectedCharacters."""
    token, accepted = getattr(error, "token", None), _accepted(error)
    position = len(text.rstrip()) if error.pos_in_stream is None else min(error.pos_in_stream, len(text.rstrip()))
    if token is None and position < len(text.rstrip()):
        return _character(text, position, accepted)
    kind = "$END" if token is None or position == len(text.rstrip()) else token.type
    before = text[:position].rstrip() if kind == "_NL" else text[:position]
    position = len(before)
    if (name := NAME_SO_FAR.search(before)) and (more := NAME_GOES_ON.match(text, position)):
        whole = name[0] + more[0]
        cure = "A rule's name is all in lower case, a terminal's all in upper case."
        return name.start(), f"the name `{whole}` mixes upper and lower case", cure
    for follows, when, cause, cure in MISTAKES:
        if kind in follows and when(text, position, accepted):
            return position, cause.format(token=_short(str(token))), cure
    what = {"$END": "the grammar ends", "_NL": "the line ends"}.get(kind) or f"`{_short(str(token))}` cannot stand here"
    fitting = (cure for kinds, needed, cure in CURES if (not kinds or kind in kinds) and needed <= accepted)
    return position, f"{what}; expected {_expected(accepted)}", next(fitting)


def _character(text: str, position: int, accepted: set[str]) -> tuple[int, str, str]:
    """Explain a character that begins no token."""
    rest = text[position:]
    if rest.startswith("%"):
        word = re.match(r"%\w*", rest)[0]  # type: ignore[index]
        near = difflib.get_close_matches(word, DIRECTIVES, 1, 0.5)
        return (
            position,
            f"`{word}` is not a directive",
            f"Did you mean {near[0]}?" if near else f"There are {', '.join(DIRECTIVES)}.",
        )
    for pattern, cause, cure in HABITS:
        if re.match(pattern, rest):
            return position, cause, cure
    expected = f"; expected {_expected(accepted)}" if accepted else ""
    return position, f"`{_short(rest[:1])}` begins no token of a grammar{expected}", QUOTED


def _accepted(error: Any) -> set[str]:
    """Return the names of the tokens that are acceptable at the error."""
    parser = getattr(error, "interactive_parser", None)
    return set(parser.accepts()) if parser is not None else set(getattr(error, "expected", None) or ())


def _expected(accepted: set[str]) -> str:
    """Return the acceptable tokens as a list in words, such as `":" or "."`."""
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
