"""The byte-code that rules are linked into: one growing int32 array, with tables of leaves and parsers.

The instructions are documented in `kernels.program_layout`. Every rule has a *rule cell*, whose first word is the entry
address of its code, or 0 while the rule is not linked; a call names the cell, so no address is needed in advance.
Leaves (a Dfa and the encoding of its text) are known to a vocabulary by number.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Collection, Set
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..automata.dfa import Dfa
from ..automata.numerals.number_language import NumberLanguage
from ..base.errors import LimitError, UnsupportedError
from ..base.fork_safety import fork_handlers
from ..base.options import Limits
from ..grammar.nodes import Free, Grammar, Layout, Mark, Node, Rule, Token
from ..grammar.nullable_nodes import NullableNodes
from ..grammar.visitor import NodeVisitor
from ..kernels import layout as at

if TYPE_CHECKING:
    from ..lalr.parser_code import Parser
    from ..lalr.shortest_suffix import ShortestSuffixes

__all__ = ["Bind", "ByteCode", "FirstCode", "LayoutCode", "Leaf", "LeafKey", "NO_CODE"]

Leaf = tuple[Dfa | NumberLanguage, int]
"""A leaf: the Dfa over characters and the mode (`layout.UTF8`, `JSON_STRING`, ...) that encodes them."""
LeafKey = tuple[bytes, int]
"""The key of the language of a leaf, and its mode."""
LayoutCode: TypeAlias = "array[int]"
"""int32: the length of the code of each part of a layout, then the code of all (`object_code`)."""
Bind = Callable[["Token | Mark | Free"], Node]
"""Maps a node that names tokens to its expansion for a vocabulary (`vocabulary.special_tokens`)."""

CODE_LIMIT = 1 << 27
FIRST_CAPACITY = 1 << 10
LONG = 1 << 5
"""Length in bytes from which a string block is widened to words with numpy."""


class FirstCode:
    """What Programs of many Grammars begin with, since they have the same start and will most likely need these leaves.

    Until a Program begins with it, leaves can be added as to a Program: by `leaf`, or with the code of a layout
    (`object_code.add_first_layout`). `ByteCode.extract_first_code` adds code.

    Attributes
    ----------
    leaves : list of Leaf
        The leaves.
    numbers : dict of LeafKey to int
        Their numbers.
    layouts : dict
        The code of layouts with no other leaves, by their id, with them.
    words : array of int32
        The code of the rules of `links`, with the cells of `targets`.
    cells, targets, links
        As in a ByteCode.
    """

    def __init__(self) -> None:
        self.leaves: list[Leaf] = []
        self.numbers: dict[LeafKey, int] = {}
        self.layouts: dict[int, tuple[Layout, LayoutCode]] = {}
        self.words = array("i", (at.END,))  # at address `layout.RETURN`
        self.cells: dict[object, int] = {}
        self.targets: dict[int, Node] = {}
        self.links: list[int] = []

    def leaf(self, language: Dfa | NumberLanguage, mode: int) -> int:
        """Return the number of a leaf."""
        number = self.numbers.setdefault((language.key, mode), len(self.leaves))
        if number == len(self.leaves):
            self.leaves.append((language, mode))
        return number


NO_CODE = FirstCode()


class _CellKeys(NodeVisitor[tuple[object, ...]]):
    """The key of the rule cell of a node: nodes with equal keys share a cell."""

    def visit_rule(self, node: Rule, within: bool) -> tuple[object, ...]:
        return ("rule", node.name, within)

    def visit_token(self, node: Token | Mark | Free, within: bool) -> tuple[object, ...]:
        return ("token", node)

    visit_mark = visit_free = visit_token

    def generic_visit(self, node: Node, *context: Any) -> tuple[object, ...]:
        return ("node", id(node))


_CELL_KEYS = _CellKeys()
_CELL_METHODS = _CellKeys.methods


class ByteCode(ABC):
    """The code of the linked rules of a Grammar, and the tables that its instructions refer to by number.

    Attributes
    ----------
    code : int32[capacity]
        The published code, of which `used` words are valid; replaced by a longer copy when full, since kernels may
        still read the old array.
    words : array of int32
        The same code, including the rule that is being linked.
    entry : int
        Rule cell of the start.
    leaves : list of Leaf
        Leaves by the operand of LEAF and OTHER.
    links : list of int
        Rule cells in the order in which they were linked.
    on_link : callable or None
        Called after a rule is linked.
    work : int
        Work budget (see `constrain.base.work`); linking one rule may take a share of it regardless of earlier work,
        unless the budget of a compile is active.
    is_started : bool
        Whether `Program.link_start` has been called, or need not be.
    paid : set
        Cached results that the compile of a large source has already paid for.
    generation : int
        Incremented when the code was renumbered (`restored_program`).
    """

    work = Limits().work
    is_started = True

    def __init__(self, grammar: Grammar, bind: Bind | None = None, lock: threading.RLock | None = None) -> None:
        self.grammar = grammar
        self._bind = bind
        self.leaf_capacity, self.parser_capacity = 64, 16
        self.code: NDArray[np.int32] = np.empty(FIRST_CAPACITY, np.int32)
        self._viewed, self._code_view = self.code, self.code.data  # the array that `_publish` wrote to last
        self.used = 0
        first: FirstCode = getattr(grammar.rules, "first_code", NO_CODE)
        self.words = first.words[:]
        self.leaves: list[Leaf] = [*first.leaves]
        self.links: list[int] = [*first.links]
        self.is_started = False
        self.on_link: Callable[[], None] | None = None
        self.generation = 0
        self.lock = threading.RLock() if lock is None else lock
        self.parsers: dict[int, Parser] = {}  # by the address of their block
        self.layouts = first.layouts.copy()  # the code of layouts by their id, with them
        self._endings: dict[int, ShortestSuffixes] = {}
        self._leaf_numbers = first.numbers.copy()
        self._cells = first.cells.copy()
        self._targets = first.targets.copy()
        self._within: set[int] = set()
        self.paid: Set[tuple[object, ...]] = frozenset()
        self._nullable: NullableNodes | None = None
        start = grammar.start
        self.entry = self.place_rule(start) if isinstance(start, Rule) else self.cell(start)
        self._publish()
        self.register_for_forks()

    def cell(self, node: Node, within: bool = False) -> int:
        """Return the rule cell of a node: that of the rule it references, or one of its own.

        With `within`, the rule continues with the members of a Unique. The entry in the table of cells is written last,
        so that an interrupt never leaves a reference to an incomplete cell.
        """
        key = (
            ("rule", node.name, within)
            if isinstance(node, Rule)  # most nodes: save a call
            else _CELL_METHODS[type(node)](_CELL_KEYS, node, within)
        )
        found = self._cells.get(key)
        if found is None:
            found = self.append([0, len(self._cells)])
            self._targets[found] = node
            if within:
                self._within.add(found)
            self._cells[key] = found
        return found

    def place_rule(self, rule: Rule) -> int:
        """Return what `cell` does for a rule."""
        known = self._cells
        key = ("rule", rule.name, False)
        place = known.get(key)
        if place is None:
            place = len(self.words)
            self.words.extend((0, len(known)))
            self._targets[place] = rule
            known[key] = place
        return place

    def place_values(
        self, nodes: list[Node], find_leaf: Callable[[Node, ByteCode], int | None]
    ) -> tuple[list[int], list[int]]:
        """Return the rule cell of each node, or -1 - k for one that is the k-th leaf, and the leaves.

        `find_leaf` returns how a node that is no Rule is written in place, or None if it has a cell.
        """
        cells, leaves, places = list[int](), list[int](), dict[int, int]()
        for node in nodes:
            if isinstance(node, Rule):
                cells.append(self.place_rule(node))
            else:
                cells.append(self.place_node(node, leaves, places, find_leaf))
        return cells, leaves

    def place_node(
        self, node: Node, leaves: list[int], places: dict[int, int], find_leaf: Callable[[Node, ByteCode], int | None]
    ) -> int:
        """Return the place of a node that is no Rule, as `place_values` does; `places` are those by ids of nodes."""
        place = places.get(id(node))
        if place is None:
            leaf = find_leaf(node, self)
            if leaf is None:
                place = self.cell(node)
            else:
                leaves.append(leaf)
                place = -len(leaves)
            places[id(node)] = place
        return place

    def extract_first_code(self) -> FirstCode:
        """Return all code and leaves, for Programs of Grammars with the same start."""
        first = FirstCode()
        first.leaves, first.numbers, first.layouts = self.leaves, self._leaf_numbers, self.layouts
        first.words, first.cells, first.targets, first.links = self.words, self._cells, self._targets, self.links
        return first

    def cells(self) -> list[int]:
        """Return all rule cells referenced so far."""
        return list(self._targets)

    def bound(self, node: Token | Mark | Free) -> Node:
        """Return the expansion of a node that names tokens for the current vocabulary.

        Raise UnsupportedError if the code was not compiled for a vocabulary.
        """
        if self._bind is None:
            raise UnsupportedError(
                f"{node} names special tokens, which only a vocabulary defines",
                hint="Compile it for a vocabulary.",
            )
        return self._bind(node)

    def append(self, values: list[int] | tuple[int, ...] | bytes | array[int] | NDArray[np.int32]) -> int:
        """Append words to the code and return their address. Raise LimitError if the code becomes too large."""
        first = len(self.words)
        if first + len(values) > CODE_LIMIT:
            raise LimitError("the constraint's byte-code is too large", hint="Split the grammar or schema.")
        if isinstance(values, list):
            self.words.fromlist(values)  # takes half the time
        elif isinstance(values, array):
            self.words += values
        elif isinstance(values, np.ndarray):
            self.words.frombytes(values.data.cast("B"))
        else:
            self.words.extend(values)
        return first

    def leaf(self, language: Dfa | NumberLanguage, mode: int) -> int:
        """Return the number of a leaf."""
        key = (language.key, mode)
        number = self._leaf_numbers.get(key)
        if number is None:
            number = len(self.leaves)
            self.leaves.append((language, mode))
            self._leaf_numbers[key] = number
        return number

    def leaf_keys(self, first: int) -> list[LeafKey]:
        """Return the keys of the leaves from number `first` on, in order."""
        return list(self._leaf_numbers)[first:]  # a copy made at once: another thread may be adding leaves

    def parser(self, parser: Parser) -> int:
        """Return the address of the block of a parser, which is appended on first use."""
        for block, known in self.parsers.items():
            if known is parser:
                return block
        block = self.append(parser.block(len(self.words), len(self.parsers)))
        self.parsers[block] = parser
        return block

    def strings(self, options: Collection[bytes], escapes: int) -> int:
        """Append a string block of sorted byte strings and return its address."""
        return self._append_strings(list(map(len, options)), b"".join(options), escapes)

    def texts(self, options: list[str], escapes: int) -> int:
        """Append a string block of sorted texts in UTF-8 and return its address."""
        text = "".join(options)
        if not text.isascii():
            return self.strings([one.encode() for one in options], escapes)
        return self._append_strings(list(map(len, options)), text.encode(), escapes)

    def _append_strings(self, lengths: list[int], text: bytes, escapes: int) -> int:
        """Append a string block, of which the byte strings are given as their lengths and their concatenation."""
        base = len(self.words) + at.STR_OFFSETS + len(lengths) + 1
        head = [len(lengths), escapes, *accumulate(lengths, initial=base)]
        if len(text) < LONG:
            return self.append([*head, *text])
        first = self.append(head)
        self.words.frombytes(np.frombuffer(text, np.uint8).astype(np.int32).tobytes())
        return first

    def is_nullable(self, node: Node) -> bool:
        """Return whether the language of a node contains the empty text."""
        if self._nullable is None:
            self._nullable = NullableNodes(self.grammar)
        return self._nullable.is_nullable(node)

    def _cells_since(self, known: int) -> list[int]:
        """Return the cells referenced after the first `known` ones, in order."""
        return list(islice(reversed(self._targets), len(self._targets) - known))[::-1]

    def register_for_forks(self) -> None:
        """Let no fork happen while another thread links: a front end marks what it is unfolding, and the child would
        take these marks for a circular schema.
        """
        fork_handlers.add_locked(self)

    def after_fork(self) -> None:
        """Replace the lock, which the thread that forked holds."""
        self.lock = threading.RLock()

    def _publish(self) -> None:
        """Copy new words to `code`. A longer array is a new one, since kernels may still read the old one."""
        used, size = self.used, len(self.words)
        if size > len(self.code):
            longer = np.empty(max(2 * len(self.code), size), np.int32)
            longer[:used] = self.code[:used]
            self.code = longer
        if self._viewed is not self.code:
            self._viewed, self._code_view = self.code, self.code.data
        self._code_view[used:size] = memoryview(self.words)[used:]
        self.used = size

    def endings(self, block: int) -> ShortestSuffixes:
        """Return the least costs of the parser whose block is at this address."""
        found = self._endings.get(block)
        if found is None:
            from ..lalr.shortest_suffix import ShortestSuffixes

            found = self._endings[block] = ShortestSuffixes(self.parsers[block])
        return found

    @abstractmethod
    def link(self, cell: int) -> None:
        """Generate the code of the rule of a cell, once. Raise LimitError if that takes too much work."""
