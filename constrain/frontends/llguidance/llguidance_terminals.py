"""Terminals of llguidance grammars as Dfas: strings, regular expressions, `&`, `~`, counts, `%regex` and imports."""

from __future__ import annotations

import re
from typing import Any

from ...automata.dfa import Dfa
from ...base.errors import ConstrainError, LimitError, UnsupportedError
from ...base.options import Limits
from ..regex import to_dfa
from .llguidance_lexer import fail_at
from .llguidance_parser import GrammarItems, Step

__all__ = ["COMMON", "TerminalReader"]

COMMON = {
    "DIGIT": "[0-9]", "HEXDIGIT": "[0-9a-fA-F]", "INT": "[0-9]+", "SIGNED_INT": "[+-]?[0-9]+",
    "DECIMAL": r"[0-9]+\.[0-9]*|\.[0-9]+", "_EXP": "[eE][+-]?[0-9]+",
    "FLOAT": r"[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    "SIGNED_FLOAT": r"[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
    "NUMBER": r"[0-9]+|[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    "SIGNED_NUMBER": r"[+-]?(?:[0-9]+|[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
    "ESCAPED_STRING": r'"(?:[^\\"\n]|\\[^\n])*"', "LCASE_LETTER": "[a-z]", "UCASE_LETTER": "[A-Z]",
    "LETTER": "[A-Za-z]", "WORD": "[A-Za-z]+", "CNAME": "[_A-Za-z][_A-Za-z0-9]*", "WS_INLINE": r"[ \t]+",
    "WS": r"[ \t\f\r\n]+", "CR": r"\r", "LF": r"\n", "NEWLINE": r"(?:\r?\n)+", "SH_COMMENT": r"#[^\n]*",
    "CPP_COMMENT": r"//[^\n]*", "C_COMMENT": r"/\*(?:[^*]|\*+[^*/])*\*+/", "SQL_COMMENT": r"--[^\n]*",
}  # fmt: skip
"""The terminals of `%import common`, as patterns."""
MOST_NESTED = 50
POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7F", "blank": r"\t ", "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\x0B\x0C\r ", "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
"""The named classes of ASCII characters of Rust's regex crate, such as `[[:digit:]]`."""
PIECE = re.compile(r"\\(?:u\{([0-9A-Fa-f]+)\}|x\{([0-9A-Fa-f]+)\}|.)|\[:(\w+):\]|\[|\]|&&|--|~~|.", re.S)
WORDS = re.compile(r"\w+|\W", re.S)


class TerminalReader:
    """Reads the Dfas of terminals; each is kept by name."""

    def __init__(self, items: GrammarItems, limits: Limits) -> None:
        self.items, self.limits = items, limits
        self.named: dict[str, Dfa] = {}
        self.pending: list[str] = []

    def name(self, name: str, at: int) -> Dfa:
        """Return the Dfa of a terminal."""
        source = self.items.source
        if name in self.named:
            return self.named[name]
        if name in self.pending:
            fail_at(source, at, f"the terminal {name} is defined by itself", "Make it a rule: rules may be recursive.")
        if name in self.items.definitions and (name.lstrip("_")[:1].isupper()):
            if len(self.pending) >= min(self.limits.nesting, MOST_NESTED):
                raise LimitError(
                    f"Terminals refer to each other more than {MOST_NESTED} deep.", source=source, position=at,
                    hint="Write the inner ones out.",
                )  # fmt: skip
            self.pending.append(name)
            dfa = self.read(self.items.definitions[name].body)
            self.pending.pop()
        elif name in self.items.imports:
            imported, position = self.items.imports[name]
            if imported not in COMMON:
                fail_at(source, position, f"common has no {imported}", f"It has {', '.join(COMMON)}.")
            dfa = to_dfa(COMMON[imported], max_states=self.limits.dfa_states)
        elif name in self.items.definitions:
            fail_at(source, at, f"the rule {name} cannot stand in a terminal", "Write it in upper case.")
        else:
            fail_at(source, at, f"{name} is not defined", f"Write `{name}: ...`.")
        self.named[name] = dfa
        return dfa

    def read(self, step: Step) -> Dfa:
        """Return the Dfa of a step in a terminal."""
        most, parts = self.limits.dfa_states, step.parts
        if step.kind == "options":
            return Dfa.union_of([self.read(part) for part in parts], max_states=most)
        if step.kind == "sequence":
            made = Dfa.from_strings([""])
            for part in parts:
                made = made.concatenate(self.read(part), max_states=most)
            return made
        if step.kind == "both":
            made = self.read(parts[0])
            for part in parts[1:]:
                made = made.intersect(self.read(part), max_states=most)
            return made
        if step.kind == "not":
            return self.read(parts[0]).complement()
        if step.kind == "repeat":
            return self.read(parts[0]).repeat(*step.value, max_states=most)
        return self.leaf(step)

    def leaf(self, step: Step) -> Dfa:
        source = self.items.source
        if step.kind == "name":
            return self.name(step.value, step.at)
        if step.kind == "string":
            text, ignores_case = step.value
            return self.pattern(f"(?i:{re.escape(text)})", step.at) if ignores_case else Dfa.from_strings([text])
        if step.kind == "range":
            low, high = step.value
            if len(low) != 1 or len(high) != 1 or low > high:
                fail_at(source, step.at, "a range has two characters, the smaller one first")
            return Dfa.from_ranges([(ord(low), ord(high))])
        if step.kind == "regexp":
            body, flags = step.value
            if set(flags) - set("imsux"):
                fail_at(source, step.at, f"the flags {flags} of a regular expression", "The flags are i, m, s, u, x.")
            flags = flags.replace("u", "")
            body = self.translate(body, step.at)
            return self.pattern(f"(?{flags}:{body})" if flags else body, step.at)
        if step.kind == "%regex":
            return self.structured(step)
        fail_at(source, step.at, f"{step.kind} cannot stand in a terminal", "Use it in a rule, in lower case.")
        return None

    def pattern(self, pattern: str, at: int) -> Dfa:
        try:
            return to_dfa(pattern, max_states=self.limits.dfa_states)
        except ConstrainError as error:
            error.cause, error.source, error.position = f"{error.cause}, in {pattern!r}", self.items.source, at
            error.args = (error.render(),)
            raise

    def translate(self, pattern: str, at: int) -> str:
        """Return a pattern of Rust's regex crate as one of Python's `re`; refuse what `re` does not have."""
        out, in_class, position = list[str](), False, 0
        for match in PIECE.finditer(pattern):
            piece = match[0]
            if match[1] or match[2]:
                piece = f"\\U{int(match[1] or match[2], 16):08x}"
            elif match[3] in POSIX and in_class:
                piece = POSIX[match[3]]
            elif piece == "\\z":
                piece = "\\Z"
            elif piece == "\\/":
                piece = "/"
            elif (piece[0] == "[" and in_class) or (piece in ("&&", "--", "~~") and in_class):
                raise UnsupportedError(
                    f"{piece} within a character class is not supported",
                    source=self.items.source, position=at + 1 + match.start(), hint="Write the characters out.",
                )  # fmt: skip
            elif piece == "[":
                in_class, position = True, match.end()
            elif piece == "]" and in_class:
                in_class = match.start() in (position, position + (pattern[position : position + 1] == "^"))
            out.append(piece)
        return "".join(out)

    def structured(self, step: Step) -> Dfa:
        """Return the Dfa of `%regex {"substring_...": ...}`: runs of consecutive chunks of a text."""
        body: Any = step.value
        key = next(iter(body), None) if isinstance(body, dict) and len(body) == 1 else None
        value = body[key] if key else None
        if key in ("substring_words", "substring_chars") and isinstance(value, str):
            chunks = WORDS.findall(value) if key == "substring_words" else list(value)
        elif key == "substring_chunks" and isinstance(value, list) and all(isinstance(one, str) for one in value):
            chunks = value
        else:
            fail_at(
                self.items.source, step.at, "%regex has one of substring_chunks (a list of texts), substring_words "
                "and substring_chars (a text)",
            )  # fmt: skip
        runs = Dfa.from_strings([""])
        found = [runs]
        for chunk in reversed(chunks):  # runs that begin here: nothing, or the chunk and a run that follows it
            runs = Dfa.from_strings([chunk]).concatenate(runs).union(found[0])
            found.append(runs)
        return Dfa.union_of(found, max_states=self.limits.dfa_states)
