"""Parser of XGrammar's EBNF: GBNF in which lines may end anywhere, with other escapes and with macros.

    TagDispatch(("<call>", rule), ..., loop_after_dispatch=true, excludes=("</x>",))   free text, rules after triggers
    TokenTagDispatch((5, rule), ..., loop_after_dispatch=true, excludes=(7,))          the same with tokens
    Token(1, 2)    ExcludeToken(1, 2)    Regex("a+")

A rule begins at the beginning of a line. A lookahead assertion `(= ...)` at the end of a rule is a hint for XGrammar's
masks and asserts nothing, so it is skipped.
"""

from __future__ import annotations

import re
import string
from typing import Any

from ...base.errors import ConstrainError, UnsupportedError
from ...grammar.nodes import Chars, Choice, Free, Node, Repeat, Rule, Sequence, Token
from ..gbnf.gbnf_parser import GbnfParser
from ..regex import to_dfa

__all__ = ["EbnfParser"]

RULE = re.compile(r"[A-Za-z_][\w.-]*\s*(?:\[[^\]\n]*\]\s*)?::=")
NAME = re.compile(r"[A-Za-z_][\w.-]*")
PIECE = re.compile(r'"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|[()]|[^"\[()]+', re.S)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a", "v": "\v", "0": "\0", "e": "\x1b"}
IN_CLASS = "^$\\.*+?()[]{}|/-"
MACROS = ("TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken", "Regex", "Substring")


class EbnfParser(GbnfParser):
    """Parser of one EBNF text; the attributes are those of GbnfParser."""

    def space(self, lines: bool) -> None:
        """Skip blanks, line ends, comments and lookahead assertions."""
        super().space(lines=True)
        if self.text.startswith("(=", self.at):
            self.skip_lookahead()
            self.space(lines)

    def skip_lookahead(self) -> None:
        position, depth = self.at, 0
        while self.at < len(self.text):
            match = PIECE.match(self.text, self.at)
            if match is None:
                break
            self.at = match.end()
            depth += {"(": 1, ")": -1}.get(match[0], 0)
            if not depth:
                return
        self.fail("this parenthesis is never closed", position, "Put ) after the assertion.")

    def begins_rule(self) -> bool:
        """Return whether a rule begins here, which it only does at the beginning of a line."""
        line = self.text.rfind("\n", 0, self.at) + 1
        return not self.text[line : self.at].strip() and RULE.match(self.text, self.at) is not None

    def rule(self) -> None:
        position = self.at
        name = self.word("a rule begins with its name")
        self.space(lines=True)
        if self.char == "[":
            self.refuse(self.at, "an option of a rule", "Give temperature= to generate.")
        if not self.text.startswith("::=", self.at):
            self.fail(f"`::=` must follow the name {name}", hint="A rule is `name ::= ...`; `root` is the start.")
        if name in self.rules:
            self.fail(f"rule {name} is defined twice", position, "Combine both definitions, with `|` between them.")
        self.at += 3
        self.space(lines=True)
        self.definitions[name] = position
        self.rules[name] = self.body()
        self.space(lines=True)
        if self.char and not self.begins_rule():
            self.fail(*self.unexpected())

    def refuse(self, position: int, feature: str, cure: str) -> None:
        raise UnsupportedError(f"{feature} is not supported", source=self.text, position=position, hint=cure)

    def word(self, cause: str) -> str:
        match = NAME.match(self.text, self.at)
        if match is None:
            self.fail(cause, hint="Names are made of letters, digits, `-`, `_` and `.`, and begin with no digit.")
        self.at = match.end()
        return match[0]

    def step(self) -> Node | None:
        if self.char in ("<", "!", ".") or self.begins_rule():
            return None
        match = NAME.match(self.text, self.at)
        if match is None:
            return super().step() if self.char and self.char in '"[' else None
        if match[0] not in MACROS or not self.text[match.end() :].lstrip().startswith("("):
            self.uses.setdefault(match[0], self.at)
            self.at = match.end()
            return Rule(match[0])
        return self.macro(match[0])

    def character(self) -> str:
        """Parse one character or escape sequence."""
        position = self.at
        if self.char == "\n":
            self.fail("a text ends in its line", position, "Write \\n.")
        kind = self.text[position + 1 : position + 2]
        if self.char != "\\" or kind in ("u", "U"):
            return super().character()
        in_class = self.text.rfind("[", 0, position) > self.text.rfind('"', 0, position)
        self.at += 2
        if kind == "x":
            digits = re.match(r"[0-9A-Fa-f]{0,8}", self.text[self.at :])
            assert digits is not None
            self.at += digits.end()
            if digits[0] and int(digits[0], 16) < 0x110000 and not 0xD800 <= int(digits[0], 16) < 0xE000:
                return chr(int(digits[0], 16))
            self.fail("\\x needs the hexadecimal digits of a character", position)
        if kind in ESCAPES:
            return ESCAPES[kind]
        if not kind or not (kind in "\"\\/'?" or (kind in IN_CLASS and in_class)):
            self.fail(f"\\{kind} is not an escape sequence", position, "Write the character, or \\uHHHH.")
        return kind

    def characters(self) -> Node:
        if self.text.startswith("[^]", self.at):
            self.at += 3
            return Chars(to_dfa("(?s:.)"))
        return super().characters()

    def count(self) -> tuple[int, int | None]:
        if re.match(r"\{\s*,", self.text[self.at :]):
            self.fail("a count needs its lower bound", hint="Write {0,n}.")
        return super().count()

    # ---- macros

    def macro(self, name: str) -> Node:
        position = self.at
        self.at += len(name)
        given, named = self.arguments()
        if name == "Regex":
            if len(given) != 1 or not isinstance(given[0], str) or named:
                self.fail("Regex has one argument, a pattern in quotes", position)
            try:
                return Chars(to_dfa(given[0]))
            except ConstrainError as error:
                error.source, error.position = self.text, position
                error.args = (error.render(),)
                raise
        if name in ("Token", "ExcludeToken"):
            if named or not given or not all(isinstance(one, int) for one in given):
                self.fail(f"{name} has ids of tokens as arguments", position)
            return Token(tuple(dict.fromkeys(given)), name == "ExcludeToken")
        if name == "Substring":
            self.refuse(position, name, 'Write %regex { "substring_chars": ... } in a grammar for llguidance.')
        return self.dispatch(name, position, given, named)

    def dispatch(self, name: str, position: int, given: list[Any], named: dict[str, Any]) -> Node:
        """Return the node of TagDispatch or TokenTagDispatch."""
        trigger_type = str if name == "TagDispatch" else int
        loop, excluded = named.pop("loop_after_dispatch", True), named.pop("excludes", ())
        excluded = excluded if isinstance(excluded, tuple) else (excluded,)
        pairs = [one for one in given if isinstance(one, tuple) and len(one) == 2 and isinstance(one[1], Rule)]
        if (
            named or not pairs or len(pairs) < len(given) or not isinstance(loop, bool)
            or not all(isinstance(trigger, trigger_type) and trigger != "" for trigger, _ in pairs)
            or not all(isinstance(one, trigger_type) and one != "" for one in excluded)
        ):  # fmt: skip
            self.fail(
                f"the arguments of {name} are wrong", position,
                f"Write {name}((trigger, rule), ..., loop_after_dispatch=true, excludes=(trigger,)).",
            )  # fmt: skip
        marks = tuple(dict.fromkeys((*(trigger for trigger, _ in pairs), *excluded)))
        for trigger, _ in pairs:
            inner = [one for one in marks if one != trigger and isinstance(one, str) and one in str(trigger)]
            if inner and trigger_type is str:
                self.fail(f"the trigger {trigger!r} contains {inner[0]!r}, which is complete earlier", position)
        if trigger_type is int:
            free: Node = Repeat(Token(marks, True))
            begun = [Sequence((free, Token((trigger,)), rule)) for trigger, rule in pairs]
        else:
            free = Free(marks)
            begun = [Sequence((Free(marks, trigger, None, excluded), rule)) for trigger, rule in pairs]
        one: Node = begun[0] if len(begun) == 1 else Choice(tuple(begun))
        return Sequence((Repeat(one), free)) if loop else Choice((one, free))

    def arguments(self, depth: int = 0) -> tuple[list[Any], dict[str, Any]]:
        """Parse the arguments of a macro in parentheses: texts, numbers, booleans, tuples and names of rules."""
        given: list[Any] = []
        named: dict[str, Any] = {}
        self.space(lines=True)
        self.expect("(")
        while self.char != ")":
            match = re.match(r"([a-z_]+)\s*=\s*", self.text[self.at :])
            if match:
                self.at += match.end()
                named[match[1]] = self.argument(depth)
            else:
                given.append(self.argument(depth))
            self.space(lines=True)
            if self.char != ")":
                self.expect(",")
        self.at += 1
        return given, named

    def argument(self, depth: int) -> Any:
        self.space(lines=True)
        if self.char == '"':
            node = self.literal()
            return getattr(node, "data", b"").decode()
        if self.char == "(":
            if depth > 2:
                self.fail("the arguments of a macro are nested too deeply", hint="Write (trigger, rule).")
            return tuple(self.arguments(depth + 1)[0])
        if self.char and self.char in string.digits:
            digits = re.match(r"[0-9]{1,9}", self.text[self.at :])
            assert digits is not None
            self.at += digits.end()
            return int(digits[0])
        position, name = self.at, self.word("an argument is a text, a number, a tuple or the name of a rule")
        if name in ("true", "false"):
            return name == "true"
        self.uses.setdefault(name, position)
        return Rule(name)

    def expect(self, sign: str) -> None:
        self.space(lines=True)
        if self.char != sign:
            self.fail(f"{sign} is expected here")
        self.at += 1
        self.space(lines=True)
