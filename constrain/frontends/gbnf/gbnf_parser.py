"""Parser of GBNF: from characters to one grammar node per rule, in a single pass.

    rule   name "::=" options, up to the end of the line; lines may end inside parentheses, after "::=" and after "|"
    step   "text"  [a-z]  [^a-z]  .  name  ( options )  <token>  <[id]>  !<token>    then * + ? {m} {m,} {m,n} {,n}

A repetition applies to all of the preceding step, also if that is a literal of several characters. Open groups are on a
stack, and deeply nested groups become separate rules, so that no recursion is as deep as `Limits.nesting`.
"""

from __future__ import annotations

import string
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NoReturn

from ...automata.dfa import LAST, SURROGATES, Dfa
from ...base.errors import GrammarError, LimitError
from ...base.options import Limits
from ...base.work import spend_work
from ...grammar.nodes import EMPTY, Chars, Literal, Node, Repeat, Rule, Token
from ...grammar.smart_constructors import make_choice, make_sequence

__all__ = ["GbnfParser"]

WORD = frozenset(string.ascii_letters + string.digits + "-_")
HEX = {"x": 2, "u": 4, "U": 8}
PLAIN = {"n": "\n", "r": "\r", "t": "\t"} | {char: char for char in '\\"[]-'}
DIGITS = 10
"""Most digits of a repetition count: counters are 32-bit and end at 2^31 - 1."""
CHARACTER_WORK = 2
"""Units of work of a character (`constrain.base.work`)."""
MOST_NESTED_NODES = 12
"""Nesting depth from which on a group becomes a separate rule, because functions on nodes recurse into groups."""


@dataclass(slots=True)
class OpenGroup:
    """A group being parsed: an open parenthesis, or the body of a rule. position: its offset in the text."""

    position: int
    options: list[Node] = field(default_factory=list)
    steps: list[Node] = field(default_factory=list)

    def node(self) -> Node:
        return make_choice([*self.options, make_sequence(self.steps)])


class GbnfParser:
    """Parser of one GBNF text.

    Attributes
    ----------
    rules : dict
        The node of each rule by name.
    definitions : dict
        Offset of the definition of each rule.
    uses : dict
        Offset of the first reference to each name.
    """

    def __init__(self, text: str, nesting: int = Limits().nesting) -> None:
        self.text = text
        self.nesting = nesting
        self.at = 0
        self.rules: dict[Hashable, Node] = {}
        self.definitions: dict[str, int] = {}
        self.uses: dict[str, int] = {}

    def fail(self, cause: str, position: int | None = None, hint: str = "") -> NoReturn:
        raise GrammarError(cause, source=self.text, position=self.at if position is None else position, hint=hint)

    @property
    def char(self) -> str:
        """The next character; "" at the end of the text."""
        return self.text[self.at : self.at + 1]

    def space(self, lines: bool) -> None:
        """Skip blanks and comments, and also line ends if `lines`."""
        while self.char and self.char in (" \t#\r\n" if lines else " \t#"):
            if self.char == "#":
                while self.char and self.char not in "\r\n":
                    self.at += 1
            else:
                self.at += 1

    def read(self) -> None:
        """Parse all rules."""
        spend_work(CHARACTER_WORK * len(self.text), "the text of a grammar")
        self.space(lines=True)
        while self.char:
            self.rule()

    def rule(self) -> None:
        position = self.at
        if self.char in "|*+?{":
            self.fail(
                "the rule above ended with its line and cannot continue here",
                hint="End the previous line with `|`, or put the options in parentheses, in which lines may end.",
            )
        name = self.word("a rule begins with its name")
        self.space(lines=False)
        if not self.text.startswith("::=", self.at):
            self.fail(f"`::=` must follow the name {name}", hint="A rule is `name ::= ...`; `root` is the start.")
        if name in self.rules:
            self.fail(f"rule {name} is defined twice", position, "Combine both definitions, with `|` between them.")
        self.at += 3
        self.space(lines=True)
        self.definitions[name] = position
        self.rules[name] = self.body()
        if self.char and self.char not in "\r\n":
            self.fail(*self.unexpected())
        self.space(lines=True)

    def unexpected(self) -> tuple[str, None, str]:
        if self.char == ")":
            return "this parenthesis was never opened", None, "Remove it, or put ( before."
        if self.text.startswith("::=", self.at):
            return "a rule begins in the middle of a line", None, "Begin every rule on a new line."
        return f"{self.char!r} begins no step", None, 'Write literal text in quotes, "...", and characters in [...].'

    def word(self, cause: str) -> str:
        first = self.at
        while self.char and self.char in WORD:
            self.at += 1
        if self.at == first:
            self.fail(cause, hint="Names are made of letters, digits, `-` and `_`.")
        return self.text[first : self.at]

    def body(self) -> Node:
        """Parse alternatives up to the first character that cannot continue them."""
        stack = [OpenGroup(self.at)]
        while True:
            group, is_nested = stack[-1], len(stack) > 1
            position = self.at
            if self.char == "(":
                if len(stack) > self.nesting:
                    raise LimitError(
                        f"Parentheses are nested deeper than Limits.nesting = {self.nesting}.",
                        source=self.text,
                        position=self.at,
                        hint="Give the inner ones rules of their own, or raise Limits(nesting=...).",
                    )
                self.at += 1
                self.space(lines=True)
                stack.append(OpenGroup(position))
                continue
            if self.char == "|":
                self.at += 1
                self.space(lines=True)
                group.options.append(make_sequence(group.steps))
                group.steps = []
                continue
            if self.char == ")" and is_nested:
                self.at += 1
                stack.pop()
                stack[-1].steps.append(self.grouped(group.node(), len(stack)))
            elif self.char and self.char in "*+?{":
                if not group.steps:
                    self.fail(
                        f"there is nothing here that {self.char} could repeat",
                        hint=f'For the character itself write "{self.char}".',
                    )
                low, high = self.count()
                group.steps[-1] = Repeat(self.repeated(group.steps[-1]), low, high)
            elif (step := self.step()) is not None:
                group.steps.append(step)
            elif is_nested and self.char:
                self.fail(*self.unexpected())
            elif is_nested:
                self.fail("this parenthesis is never closed", group.position, "Put ) after the last option.")
            else:
                return group.node()
            self.space(lines=len(stack) > 1)

    def grouped(self, node: Node, depth: int) -> Node:
        if depth < MOST_NESTED_NODES:
            return node
        name = ("group", len(self.rules), self.at)
        self.rules[name] = node
        return Rule(name)

    def repeated(self, node: Node) -> Node:
        """Return a node that can be repeated once more: a separate rule if it has many nested repetitions already."""
        inner, depth = node, 0
        while isinstance(inner, Repeat) and depth < MOST_NESTED_NODES:
            inner, depth = inner.node, depth + 1
        return self.grouped(node, depth)

    def step(self) -> Node | None:
        """Parse a literal, a class, a token or a name; return None for anything else."""
        position, char = self.at, self.char
        if char == '"':
            return self.literal()
        if char == "[":
            return self.characters()
        if char == ".":
            self.at += 1
            return Chars(Dfa.from_ranges([(0, LAST - 1)]))
        if char in ("<", "!"):
            return self.token()
        if char and char in WORD:
            name = self.word("")
            self.uses.setdefault(name, position)
            return Rule(name)
        return None

    def literal(self) -> Node:
        position = self.at
        out: list[str] = []
        self.at += 1
        while self.char != '"':
            if not self.char:
                self.fail("this quote is never closed", position, 'Put " after the text; inside it write \\".')
            out.append(self.character())
        self.at += 1
        return Literal("".join(out).encode()) if out else EMPTY

    def character(self) -> str:
        """Parse one character or escape sequence."""
        position, char = self.at, self.char
        self.at += 1
        if char == "\\":
            kind = self.char
            self.at += 1
            if kind in PLAIN and kind:
                return PLAIN[kind]
            if kind not in HEX or not kind:
                escapes = '\\n \\r \\t \\xHH \\uHHHH \\UHHHHHHHH \\\\ \\" \\[ \\] \\-'
                self.fail(f"\\{kind} is not an escape sequence", position, f"The escape sequences are {escapes}.")
            digits = self.text[self.at : self.at + HEX[kind]]
            if len(digits) < HEX[kind] or not all(digit in string.hexdigits for digit in digits):
                self.fail(f"\\{kind} needs {HEX[kind]} hexadecimal digits", position, "Fill up with zeros at the left.")
            self.at += HEX[kind]
            point = int(digits, 16)
        else:
            point = ord(char)
        if SURROGATES[0] <= point < SURROGATES[1] or point >= LAST:
            self.fail(
                f"U+{point:04X} is not a character", position, "Write a character beyond U+FFFF as \\U and 8 digits."
            )
        return chr(point)

    def characters(self) -> Node:
        """Parse a class, [...] or [^...]."""
        position = self.at
        self.at += 1
        negated = self.char == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        while self.char != "]":
            start = self.at
            if not self.char:
                self.fail("this bracket is never closed", position, "Put ] after the characters; inside it write \\].")
            low = high = ord(self.character())
            if self.char == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = ord(self.character())
            if high < low:
                self.fail("this range is backwards", start, "Put the smaller character first; for - itself write \\-.")
            ranges.append((low, high))
        self.at += 1
        if not ranges:
            self.fail("this character class is empty", position, "Write . for any character.")
        if negated:
            ranges.sort()
            edges = [(-1, -1), *ranges, (LAST, LAST)]
            covered, gaps = -1, []
            for low, high in edges[1:]:
                if low > covered + 1:
                    gaps.append((covered + 1, low - 1))
                covered = max(covered, high)
            ranges = gaps
        return Chars(Dfa.from_ranges(ranges))

    def token(self) -> Node:
        """Parse <token> or <[id]>, either optionally negated with !."""
        position = self.at
        negated = self.char == "!"
        self.at += negated
        end = self.text.find(">", self.at)
        if self.char != "<":
            self.fail("a token must follow !", hint='Write !<name> or !<[id]>, or "!" for the character.')
        if end < 0:
            self.fail("this token is never closed", position, 'Write <name> or <[id]>, or "<" for the character.')
        name = self.text[self.at : end + 1]
        self.at = end + 1
        if not name.startswith("<["):
            return Token((name,), negated)
        number = name[2:-2]
        if not name.endswith("]>") or not (number.isascii() and number.isdigit() and len(number) <= DIGITS):
            self.fail("<[ ]> must contain the number of a token", position, "Write, for example, <[1000]>.")
        return Token((int(number),), negated)

    def count(self) -> tuple[int, int | None]:
        """Parse a quantifier, * + ? or {...}; return its bounds, None for no upper bound."""
        position, char = self.at, self.char
        self.at += 1
        if char != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        end = self.text.find("}", self.at)
        content = self.text[self.at : end] if end >= 0 else ""
        low, comma, high = (part.strip() for part in content.partition(","))
        numbers = [number for number in (low, high) if number]
        if not numbers or not all(number.isascii() and number.isdigit() for number in numbers):
            self.fail("not a repetition count", position, 'Write {m}, {m,}, {m,n} or {,n}; "{" for the character.')
        if max(map(len, numbers)) > DIGITS:
            raise LimitError(f"A count has more than {DIGITS} digits.", source=self.text, position=position)
        self.at = end + 1
        least = int(low) if low else 0
        most = (int(high) if high else None) if comma else least
        if most is not None and most < least:
            self.fail(f"no count is at least {least} and at most {most}", position, "Put the smaller number first.")
        return least, most
