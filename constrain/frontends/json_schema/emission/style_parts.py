"""What the rules of all plain documents of a style have in common (`document_rules`), made once."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, NamedTuple

from ....automata.dfa import Dfa
from ....base.options import Limits, Style
from ....base.work import UNLIMITED, WorkBudget, use_budget
from ....grammar.nodes import Grammar, Layout, Literal, Node, Rule, Strings
from ....kernels import layout as at
from ....program.byte_code import FirstCode
from ....program.object_code import add_first_layout, find_leaf
from ....program.program import Program
from ....program.shared_code import share
from ..core.json_values import ARRAY, OBJECT
from ..core.schema_sets import ANY
from ..core.static_types import TYPE_BITS
from ..core.whitespace import Spacing, spacing_at, surround_root
from .plain_rules import emit_any_value, emit_scalars

__all__ = ["ANY_VALUE", "BRACKETS", "ROOT", "ROOT_NUMBER", "ScalarNodes", "StyleParts", "find_style_parts"]

BRACKETS = ARRAY | OBJECT
ROOT_NUMBER = 1
"""In place of the id of the root, so that the start is the same in all documents of a style."""
ANY_VALUE, ROOT = Rule((ANY, 0)), Rule(ROOT_NUMBER)
MOST_STYLES = 64


class ScalarNodes(dict[Any, Node]):
    """The nodes of scalar types, by their bits and names: the same in all documents of a style."""

    def __init__(self, draft: int, style: Style, limits: Limits) -> None:
        self._options = draft, style, limits
        for name, types in TYPE_BITS.items():
            if not types & BRACKETS:
                self[name] = self[types]

    def __missing__(self, types: int) -> Node:
        with use_budget(WorkBudget(UNLIMITED)):  # a constant amount of work
            node = self[types] = emit_scalars(types, *self._options)
        return node


class StyleParts(NamedTuple):
    """What the documents of a style have in common.

    leaf_codes: how a Program with this first code writes a value of a scalar type in place, by the id of its node
    (`object_code.find_leaf`).
    """

    scalars: ScalarNodes
    spacing: Spacing
    layout: Layout
    any_text: Dfa
    start: Node
    first_code: FirstCode
    leaf_codes: dict[int, int]


def find_style_parts(draft: int, style: Style, limits: Limits) -> StyleParts:
    """Return the parts of a style, which are known by the ids of the options: hashing and comparing these is slow."""
    known = _known_parts.get((draft, id(style), id(limits)))
    if known is None:
        if len(_known_parts) >= MOST_STYLES:
            _known_parts.clear()
        known = _known_parts[draft, id(style), id(limits)] = (_make_style_parts(draft, style, limits), style, limits)
    return known[0]


_known_parts: dict[tuple[int, int, int], tuple[StyleParts, Style, Limits]] = {}
"""By the draft and the ids of the options, which are kept, so that no others get these ids."""


@lru_cache(MOST_STYLES)
def _make_style_parts(draft: int, style: Style, limits: Limits) -> StyleParts:
    with use_budget(WorkBudget(UNLIMITED)):
        spacing, root, text = spacing_at(style, 0), surround_root(ROOT, style), Dfa.any_text()
        scalars = ScalarNodes(draft, style, limits)
        start = root if root is ROOT else share(root)
        first = FirstCode()
        first.leaf(text, at.JSON_STRING)
        add_first_layout(spacing.layout, first)
        # A list of strings has a block in each Program, and a literal a rule.
        leaves = [node for node in [*scalars.values()] if not isinstance(node, (Strings, Literal))]
        codes = {id(node): find_leaf(node, first) for node in leaves}  # type: ignore[arg-type]
        leaf_codes = {number: code for number, code in codes.items() if code is not None}
        first = _link_first(start, first, emit_any_value(style, limits))
        return StyleParts(scalars, spacing, spacing.layout, text, start, first, leaf_codes)


def _link_first(start: Node, leaves: FirstCode, any_value: Node) -> FirstCode:
    """Return the code of a start and of any value, which most documents refer to."""
    program = Program(Grammar(start, _FirstRules(leaves, any_value)))
    program.place_rule(ANY_VALUE)
    root = program.place_rule(ROOT)
    while pending := [cell for cell in program.cells() if cell != root and not program.words[cell]]:
        program.link(pending[0])
    return program.extract_first_code()


class _FirstRules(dict[Hashable, Node]):
    """The rules of which the code is the same in all documents of a style."""

    def __init__(self, first_code: FirstCode, any_value: Node) -> None:
        super().__init__({ANY_VALUE.name: any_value})
        self.first_code = first_code
