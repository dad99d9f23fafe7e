"""The words of a grammar in llguidance's variant of Lark. `%json` and its kind take the JSON value that follows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn

from ...base.errors import GrammarError
from ...base.json_documents import parse_json_at
from ...base.work import spend_work

__all__ = ["Word", "fail_at", "split_words"]

WORDS = re.compile(
    r"""(?P<space>(?:\#|//)[^\n]*|[ \t\f\r]+)
    |(?P<line>\n\s*)
    |(?P<string>"(?:\\.|[^"\\\n])*"i?)
    |(?P<regexp>/(?:\\.|[^/\\\n])+/[a-z]*)
    |(?P<rule>!?[_?]?[a-z][_a-z0-9-]*)
    |(?P<terminal>_?[A-Z][_A-Z0-9-]*)
    |(?P<number>[+-]?[0-9]+(?:\.(?!\.)[0-9]*)?)
    |(?P<special><\[[^\]\n]*\]>|<[^<>\s]+>)
    |(?P<reference>@[a-zA-Z0-9_-]+)
    |(?P<keyword>%[a-z]+)
    |(?P<sign>->|\.\.|::|_|[:,.(){}\[\]~|&=?*+])""",
    re.X,
)
WITH_JSON = ("%json", "%regex", "%llguidance")


@dataclass(frozen=True, slots=True)
class Word:
    """A word: its kind, which is the text itself for signs and keywords, its text and offset, and the JSON value."""

    kind: str
    text: str
    at: int
    value: Any = None


def fail_at(source: str, at: int, cause: str, hint: str = "") -> NoReturn:
    """Raise GrammarError for the offset `at`."""
    raise GrammarError(cause, source=source, position=at, hint=hint)


def split_words(source: str) -> list[Word]:
    """Return the words of a grammar; the last one is of kind "end". Raise GrammarError for what is none."""
    spend_work(len(source), "the text of a grammar")
    words, at = list[Word](), 0
    while at < len(source):
        match = WORDS.match(source, at)
        if match is None:
            fail_at(source, at, f"{source[at]!r} begins no word of a grammar", 'Strings are written "...".')
        kind, text, start = str(match.lastgroup), match[0], at
        at = match.end()
        if kind == "space":
            continue
        if kind in ("sign", "keyword"):
            kind = text
        value = None
        if kind in WITH_JSON:
            value, at = _read_json(source, at, text)
        elif kind == "%lark":
            value, at = _read_nested(source, at)
        words.append(Word(kind, text, start, value))
    return [*words, Word("line", "\n", at), Word("end", "", at)]


def _read_json(source: str, at: int, keyword: str) -> tuple[Any, int]:
    """Return the JSON value after a keyword, and where it ends."""
    begin = at + len(source[at:]) - len(source[at:].lstrip())
    try:
        return parse_json_at(source, begin)
    except ValueError as error:
        fail_at(source, getattr(error, "pos", begin), f"{keyword} is not followed by a JSON value", "Give an object.")


def _read_nested(source: str, at: int) -> tuple[tuple[int, int], int]:
    """Return the span of the grammar within the braces after `%lark`, and where the closing brace ends."""
    begin = source.find("{", at)
    if begin < 0 or source[at:begin].strip():
        fail_at(source, at, "%lark is not followed by a grammar in braces", "Write %lark { start: ... }.")
    depth, k = 1, begin + 1
    while k < len(source):
        match = WORDS.match(source, k)
        if match is None:
            fail_at(source, k, f"{source[k]!r} begins no word of a grammar")
        k = match.end()
        if match.lastgroup == "keyword" and match[0] in WITH_JSON:
            _, k = _read_json(source, k, match[0])
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth:
            return (begin + 1, match.start()), k
    fail_at(source, begin, "this brace is never closed", "Put } after the nested grammar.")
