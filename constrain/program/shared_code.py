"""Shared code: the code of nodes that many grammars have, generated once for all Programs.

Any JSON value, or a list of strings, is written by the same node in all schemas of a style (`share`), and so are lists
of values that have a rule, but for that rule (ANY_RULE). Their code differs between Programs only in addresses and
numbers. So it is generated with placeholders for these, which each Program replaces: the result is the same as if the
node were linked there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..grammar.nodes import Node, Rule
from .byte_code import ByteCode
from .linker import RuleLinker

__all__ = ["ANY_RULE", "link_shared", "share"]

MOST_SHARED = 1_024
"""Most nodes that are known at once. A node that is not known is linked as any other."""
PLACEHOLDER = -(1 << 30)
"""The first placeholder; the next ones are smaller. No operand of an instruction is as small."""


ANY_RULE = Rule(("any rule",))
"""Stands for the rule of a value, which is never empty, in a shared node."""


class Reference(NamedTuple):
    """A word of the code that a method of a Program returns."""

    place: int
    method: str
    arguments: tuple[Any, ...]


class CodeTemplate(NamedTuple):
    """The code of a rule: references in the order in which they are made, and the words with addresses in it."""

    words: list[int]
    references: list[Reference]
    relocations: list[int]


class _Placeholders:
    """Stands for a Program while code is generated, and returns a placeholder for each reference."""

    def __init__(self, is_nullable: Callable[[Node], bool]) -> None:
        self.is_nullable = is_nullable
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def _note(self, method: str, *arguments: Any) -> int:
        self.calls.append((method, arguments))
        return PLACEHOLDER - len(self.calls) + 1

    def cell(self, node: Node, within: bool = False) -> int:
        return self._note("cell", node, within)

    def leaf(self, language: Any, mode: int) -> int:
        return self._note("leaf", language, mode)

    def strings(self, options: Any, escapes: int) -> int:
        return self._note("strings", options, escapes)

    def texts(self, options: list[str], escapes: int) -> int:
        return self._note("texts", options, escapes)


_shared: dict[int, tuple[Node, list[CodeTemplate]]] = {}
"""Nodes by their id, with the template of each once it is linked."""


def share(node: Node) -> Node:
    """Return a node that is the same object in many grammars, after noting that its code is to be kept."""
    if len(_shared) >= MOST_SHARED:
        _shared.clear()
    _shared[id(node)] = node, []
    return node


def link_shared(node: Node, program: ByteCode, rule: Rule | None = None) -> int | None:
    """Append the code of a shared node to a program and return its entry address; None for any other node.

    rule: takes the place of ANY_RULE.
    """
    found = _shared.get(id(node))
    if found is None:
        return None
    templates = found[1]
    if not templates:
        templates.append(_make_template(node, program if rule is None else None))
    words, references, relocations = templates[0]
    words = words.copy()
    for place, method, arguments in references:
        words[place] = program.cell(rule) if rule and arguments[0] is ANY_RULE else getattr(program, method)(*arguments)
    base = len(program.words)
    for place in relocations:
        words[place] += base
    return program.append(words)


def _make_template(node: Node, program: ByteCode | None) -> CodeTemplate:
    """Return the code of a node with placeholders. Without a program, what is counted in it is never empty."""
    placeholders = _Placeholders(_is_not_empty if program is None else program.is_nullable)
    linker = RuleLinker(placeholders)  # type: ignore[arg-type]
    linker.generate(node)
    words = linker.words
    places = {word: place for place, word in enumerate(words) if word <= PLACEHOLDER}
    references = [
        Reference(places[PLACEHOLDER - number], method, arguments)
        for number, (method, arguments) in enumerate(placeholders.calls)
    ]
    return CodeTemplate(words, references, linker.relocations)


def _is_not_empty(node: Node) -> bool:
    """Return whether a node is nullable: no value is, nor a comma and a value."""
    return False
