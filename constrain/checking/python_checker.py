"""PythonChecker: Python source of which every prefix can be continued, and which parses at its end.

CPython's parser reads tokens on demand. If it fails before it has asked for the token after the last one, no
continuation can help: the text is dead. If it asks for more, the error is "incomplete input" (the flag
PyCF_ALLOW_INCOMPLETE_INPUT, which `codeop` uses). So that it asks in the middle of a line, too, a backslash and a line
break are appended, which join the next line.

The last token may still grow: `i` into `if`, `<` into `<<=`, a string up to its quote. It is replaced by each token
that it may become, see `python_tokens`.
"""

from __future__ import annotations

import ast
import keyword
import re
import warnings

from .python_tokens import OPERATORS, PREFIXES, LexicalEnd, find_lexical_end
from .verdicts import Verdict, is_encodable

__all__ = ["PythonChecker"]

ALLOW_INCOMPLETE = 0x4000
"""PyCF_ALLOW_INCOMPLETE_INPUT of CPython 3.11 and later."""
UNFINISHED = re.compile(r"incomplete input|unexpected EOF|was never closed")
"""Messages of parsers without this flag. With it, the last two come from the search for a helpful message."""
KEYWORDS = (*keyword.kwlist, *keyword.softkwlist, "match", "case", "type")
NUMBER = re.compile(
    r"(0[xX][0-9a-fA-F_]*|0[oO][0-7_]*|0[bB][01_]*|([0-9][0-9_]*)?\.?([0-9][0-9_]*)?([eE][+-]?[0-9_]*)?[jJ]?)"
    r"(and?|or?|in?|is|if?|el?s?e?|for?|no?t?)?"
)
"""The beginning of a number, and of a keyword that follows it without a space."""


def allowed_flags() -> int:
    """Return the compiler flags for the beginning of a module."""
    try:
        compile("", "<text>", "exec", ast.PyCF_ONLY_AST | ALLOW_INCOMPLETE)
    except ValueError:  # an older Python, whose messages say the same
        return ast.PyCF_ONLY_AST
    return ast.PyCF_ONLY_AST | ALLOW_INCOMPLETE


class PythonChecker:
    """A TextChecker of Python source.

    A text is complete if `ast.parse` accepts it, the empty text included. The grammar is that of the running Python.
    Nothing is executed.
    """

    def __init__(self) -> None:
        self.flags = allowed_flags()

    def check(self, text: str) -> Verdict:
        """Return the verdict on the beginning of a module."""
        if "\0" in text or not is_encodable(text):
            return Verdict.DEAD
        if self.parse(text, ast.PyCF_ONLY_AST) == "":
            return Verdict.COMPLETE
        return Verdict.OK if self.is_viable(text) else Verdict.DEAD

    def parse(self, text: str, flags: int) -> str:
        """Return the message of the parser, "" if it accepts a text."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                compile(text, "<text>", "exec", flags, dont_inherit=True)
            except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError) as error:
                return str(error) or type(error).__name__
        return ""

    def may_begin(self, text: str) -> bool:
        """Return whether a module may begin with a text of finished tokens."""
        message = self.parse(text, self.flags)
        if self.flags & ALLOW_INCOMPLETE:
            return not message or message.startswith("incomplete input")
        return not message or UNFINISHED.search(message) is not None

    def goes_on(self, text: str) -> bool:
        """Return whether a line may go on after finished tokens."""
        return self.may_begin(f"{text} \\\n")

    def is_viable(self, text: str) -> bool:
        """Return whether a module may begin with a text that is not one itself."""
        end = find_lexical_end(text)
        head = text[: end.start]
        if end.kind == "broken":
            return False
        if end.kind == "line":
            return self.may_begin(head)
        if end.kind == "comment":
            return self.may_begin(f"{head}\n")
        if end.kind == "string":
            return self.goes_on(head + ("b''" if "b" in text[end.start : end.start + 2].lower() else "''"))
        if end.kind == "other" and text[-1] == "\\":
            return self.goes_on(head)
        return any(self.goes_on(head + one) for one in self.candidates(text, end))

    def candidates(self, text: str, end: LexicalEnd) -> list[str]:
        """Return tokens that stand for all that the last token of a text may become."""
        last = text[end.start :]
        if end.kind == "word":
            words = [f"{last}_zz", *(word for word in KEYWORDS if word.startswith(last))]
            if last.lower() in PREFIXES:
                words.append("b''" if "b" in last.lower() else "''")
            return words
        if end.kind == "number":
            return ["1", "1j"] if NUMBER.fullmatch(last) else []
        if end.kind == "operator":
            dots = re.search(r"\.{0,2}$", text)
            if last == "." and dots is not None:
                return [".", "..", ".5"] if len(dots[0]) < 3 else ["."]
            return [one for one in OPERATORS if one.startswith(last)]
        return ["!="] if last == "!" else [last]
