"""Linking: code generation for nodes, one rule at a time.

A counted repetition uses the register of its rule, so a nested one becomes a separate rule; the register of an object
holds its state. Addresses within a rule are generated relative to its start and relocated when it is appended.
"""

from __future__ import annotations

from typing import Any

from ..automata.dfa import Dfa
from ..automata.listed_words import ListedWords
from ..base.errors import UnsupportedError
from ..grammar.nodes import (
    Chars,
    Choice,
    Free,
    JsonString,
    Literal,
    Mark,
    Member,
    Node,
    Number,
    Object,
    Parsed,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Token,
    Unique,
)
from ..grammar.visitor import NodeVisitor
from ..kernels import layout as at
from .byte_code import ByteCode
from .object_code import MODES, check_count

__all__ = ["RuleLinker"]

MOST_DEPTH = 64
"""Most nesting of sequences and choices in the code of one rule; deeper nodes become separate rules."""
NEVER_TEXT = 0xFF
"""A byte that does not occur in UTF-8; in a vocabulary it starts the name of a special token."""


class RuleLinker(NodeVisitor[None]):
    """Generates the code of one rule that is not an Object (see `object_code`).

    Addresses are relative, and relocated when it is appended.

    `visit(node, last)` generates a node within the rule. With `last`, it is the tail of a rule of a Unique: a rule that
    it references continues with the members.
    """

    def __init__(self, program: ByteCode, within: bool = False) -> None:
        self.program = program
        self.is_within_unique = within  # the register holds the members of a Unique
        self.words: list[int] = []
        self.relocations: list[int] = []  # words that hold an address within the rule
        self.depth = 0  # nesting depth of sequences and choices
        self.appended_calls: list[tuple[int, Rule]] = []  # (word to patch, rule called after the end)
        self.names_tokens = False  # within the expansion of a node that names special tokens
        self.uses_register = within  # the rule's register is in use: a counted repetition becomes a separate rule

    def link(self, node: Node) -> int:
        """Append the code of a rule with this body, which is not an Object, and return its entry address."""
        self.generate(node)
        base = len(self.program.words)
        for operand in self.relocations:
            self.words[operand] += base
        return self.program.append(self.words)

    def generate(self, node: Node) -> None:
        """Generate the code of a rule with this body."""
        _RuleBodies(self).visit(node)
        self.words.append(at.END)
        for operand, rule in self.appended_calls:
            self.set_target(operand)
            self.words += (at.CALL, self.program.cell(rule), at.END)

    def visit_literal(self, node: Literal, last: bool = False) -> None:
        if NEVER_TEXT in node.data and not self.names_tokens:
            raise UnsupportedError(
                f"the literal {node.data!r} contains a byte 0xFF, which does not occur in UTF-8",
                hint="Bytes 0xFF name special tokens here; text is UTF-8.",
            )
        self.words.extend(node.data)

    def visit_strings(self, node: Strings, last: bool = False) -> None:
        self.words += (at.SET, self.program.strings(node.options, 0))

    def visit_chars(self, node: Chars, last: bool = False) -> None:
        self.emit_leaf(node.dfa, MODES[node.encoding], node.low, node.high)

    def visit_json_string(self, node: JsonString, last: bool = False) -> None:
        self.words.append(34)
        if isinstance(node.dfa, ListedWords) and not node.low and node.high is None:
            self.words += (at.SET, self.program.texts(node.dfa.words, 1))
        else:
            self.emit_leaf(node.dfa, at.JSON_STRING, node.low, node.high)

    def visit_number(self, node: Number, last: bool = False) -> None:
        self.words += (at.LEAF, self.program.leaf(node.language, at.NUMBER), 0, -1)

    def visit_parsed(self, node: Parsed, last: bool = False) -> None:
        self.words += (at.PARSE, self.program.parser(node.parser))

    def visit_rule(self, node: Rule, last: bool = False) -> None:
        self.words += (at.PASS if last else at.CALL, self.program.cell(node, within=last))

    def visit_object(self, node: Object | Unique | Token | Mark | Free, last: bool = False) -> None:
        """Generate a call of a node that is linked as a separate rule."""
        self.words += (at.CALL, self.program.cell(node))

    visit_unique = visit_token = visit_mark = visit_free = visit_object

    def visit_sequence(self, node: Sequence, last: bool = False) -> None:
        if self.is_too_deep():
            self.words += (at.CALL, self.program.cell(node))
            return
        self.depth += 1
        parts, methods = node.parts, self.methods  # looked up here, which saves a call per part
        for part in parts[:-1]:
            methods[type(part)](self, part)
        for part in parts[-1:]:
            methods[type(part)](self, part, last)
        self.depth -= 1

    def visit_choice(self, node: Choice, last: bool = False) -> None:
        if self.is_too_deep():
            self.words += (at.CALL, self.program.cell(node))
            return
        self.depth += 1
        self.emit_choice(node.options, last)
        self.depth -= 1

    def is_too_deep(self) -> bool:
        """Return whether a sequence or choice at this depth becomes a separate rule."""
        return self.depth >= MOST_DEPTH and not (self.is_within_unique or self.names_tokens)

    def visit_member(self, node: Member, last: bool = False) -> None:
        """Generate a Member and the address at which an equal value continues: after the end of the rule, or 0 for
        none.

        If it may equal an earlier one, tokens that extend beyond the value are tested individually, since some of them
        may be rejected.
        """
        assert self.is_within_unique, (
            "A Member must be within a Unique, or in a rule that one of its rules references last."
        )
        endless = node.again is None and _is_endless(node.node)
        self.words += (at.MEMBER, int(endless), at.CALL, self.program.cell(node.node), at.MEMBER_END, 0)
        if node.again is not None:
            self.relocations.append(len(self.words) - 1)
            self.appended_calls.append((len(self.words) - 1, node.again))

    def emit_leaf(self, dfa: Dfa, mode: int, low: int, high: int | None) -> None:
        """Generate a leaf of `low` to `high` characters."""
        if low or high is not None:
            check_count(low, high)
        self.words += (at.LEAF, self.program.leaf(dfa, mode), low, -1 if high is None else high)

    def emit_jump(self, op: int) -> int:
        """Generate an instruction whose operand is an unknown address; return the position of the operand."""
        self.words += (op, 0)
        self.relocations.append(len(self.words) - 1)
        return len(self.words) - 1

    def emit_split(self, n: int) -> int:
        """Generate a SPLIT with n unknown targets; return the position of the first."""
        self.words += (at.SPLIT, n)
        first = len(self.words)
        self.words += [0] * n
        self.relocations.extend(range(first, first + n))
        return first

    def set_target(self, operand: int) -> None:
        """Store the current address in the operand at a position."""
        self.words[operand] = len(self.words)

    def emit_choice(self, options: tuple[Node, ...], last: bool = False) -> None:
        """Generate a choice of nodes."""
        if len(options) == 1:
            self.visit(options[0], last)
            return
        first = self.emit_split(len(options))
        ends = []
        for k, option in enumerate(options):
            self.set_target(first + k)
            self.methods[type(option)](self, option, last)
            if k < len(options) - 1:
                ends.append(self.emit_jump(at.JUMP))
        for operand in ends:
            self.set_target(operand)

    def visit_repeat(self, node: Repeat, last: bool = False) -> None:
        low, high = node.low, node.high
        if high == 0:
            return
        if (low, high) == (1, 1):
            self.visit(node.node)
        elif (low, high) == (0, 1):
            first = self.emit_split(2)
            self.set_target(first)
            self.visit(node.node)
            self.set_target(first + 1)
        elif high is None and low <= 1:
            self.emit_loop(node.node, low)
        elif self.uses_register:
            self.words += (at.CALL, self.program.cell(node))
        else:
            self.emit_counted(node.node, low, high)

    def emit_loop(self, body: Node, low: int) -> None:
        """Generate an unbounded repetition of at least `low` (0 or 1) times, which needs no counter."""
        start = len(self.words)
        first = self.emit_split(2) if low == 0 else -1
        if low == 0:
            self.set_target(first)
        self.visit(body)
        if low == 0:
            self.words[self.emit_jump(at.JUMP)] = start
        else:
            first = self.emit_split(2)
            self.words[first] = start
        self.set_target(first + 1)

    def emit_counted(self, body: Node, low: int, high: int | None) -> None:
        """Generate a repetition counted in the register. Empty iterations add nothing: a nullable body has no
        minimum.
        """
        check_count(low, high)
        if self.program.is_nullable(body):
            low = 0
        self.uses_register = True
        self.words.append(at.ENTER)
        start = len(self.words)
        self.words += (at.TEST, low, -1 if high is None else high, 0)
        exit_operand = len(self.words) - 1
        self.relocations.append(exit_operand)
        self.visit(body)
        self.words += (at.COUNT, low if high is None else high)
        self.words[self.emit_jump(at.JUMP)] = start
        self.set_target(exit_operand)
        self.uses_register = False


class _RuleBodies(NodeVisitor[None]):
    """Generates a node as the body of a rule, of which it may use the register."""

    def __init__(self, linker: RuleLinker) -> None:
        self.linker = linker

    def visit_token(self, node: Token | Mark | Free) -> None:
        self.linker.names_tokens = True
        self.visit(self.linker.program.bound(node))

    visit_mark = visit_free = visit_token

    def visit_unique(self, node: Unique) -> None:
        self.linker.words.append(at.UNIQUE)
        self.linker.is_within_unique = self.linker.uses_register = True
        self.linker.visit(node.body, True)

    def generic_visit(self, node: Node, *context: Any) -> None:
        self.linker.visit(node, self.linker.is_within_unique)


def _is_endless(node: Node) -> bool:
    """Return whether every prefix of a text has infinitely many completions (conservative: plain strings only)."""
    return isinstance(node, JsonString) and node.high is None and node.dfa.is_endless
