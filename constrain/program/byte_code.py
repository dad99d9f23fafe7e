"""The byte-code that rules are linked into: one growing int32 array, and the tables beside it.

The instructions are in `kernels.layout`. Every rule is named by a *rule cell*, whose first word is the entry of the
rule's code, or 0 while the rule is not linked, so that a call needs no address in advance. Beside the code stand the
leaves (a Dfa and how its text is encoded), which a vocabulary knows by number, and the parsers.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Set
from itertools import accumulate, islice

import numpy as np
from numpy.typing import NDArray

from ..automata.dfa import Dfa
from ..base.errors import LimitError, UnsupportedError
from ..base.fork_safety import fork_handlers
from ..base.options import Limits
from ..grammar.nodes import Free, Grammar, Mark, Node, Rule, Token
from ..grammar.nullable_nodes import NullableNodes
from ..kernels import layout as at
from ..lalr.parser_code import Parser
from ..lalr.shortest_suffix import ShortestSuffixes

__all__ = ["Bind", "ByteCode", "Leaf"]

Leaf = tuple[Dfa, int]
"""A leaf: the Dfa over characters and the mode (`layout.UTF8`, `JSON_STRING`, ...) that encodes them."""
Bind = Callable[["Token | Mark | Free"], Node]
"""What a vocabulary makes of a node that names tokens (`vocabulary.special_tokens`)."""

CODE_LIMIT = 1 << 27
FIRST_CAPACITY = 1 << 12
LONG = 1 << 12
"""Bytes of a string block from which numpy spreads them sooner."""


class ByteCode(ABC):
    """The code of the rules of a Grammar that were linked so far, and what the instructions refer to by number.

    code: int32 [capacity], of which `used` are written; replaced by a longer copy when it is full, since a kernel may
    still read the old one. words: the same, with what is being linked. entry: rule cell where the text starts.
    leaves: what the operand of LEAF and OTHER counts. links: rule cells in the order in which they were linked.
    on_link: called after each. work: units (see `constrain.base.work`) of which linking one rule may take a share,
    whatever came before, unless the budget of a compile holds. paid: cached results that the compile of a large source
    has paid for. generation: raised where all of it came to be numbered anew (`restored_program`).
    """

    work = Limits().work

    def __init__(self, grammar: Grammar, bind: Bind | None = None) -> None:
        self.grammar = grammar
        self._bind = bind
        self.leaf_room, self.parser_room = 64, 16
        self.code: NDArray[np.int32] = np.empty(FIRST_CAPACITY, np.int32)
        self.used = 0
        self.words = array("i", (at.END,))  # at `layout.RETURN`
        self.leaves: list[Leaf] = []
        self.links: list[int] = []
        self.on_link: Callable[[], None] | None = None
        self.generation = 0
        self.lock = threading.RLock()
        self.parsers: dict[int, Parser] = {}  # by the place of their block
        self._endings: dict[int, ShortestSuffixes] = {}
        self._leaf_numbers: dict[tuple[bytes, int], int] = {}
        self._cells: dict[object, int] = {}
        self._targets: dict[int, Node] = {}
        self._within: set[int] = set()
        self.paid: Set[tuple[object, ...]] = frozenset()
        self._nullable = NullableNodes(grammar)
        self.entry = self.cell(grammar.start)
        self._publish()
        fork_handlers.add(self)

    def cell(self, node: Node, within: bool = False) -> int:
        """Return the rule cell of a node: that of the rule it names, or one of its own.

        within: it goes on with the members of a Unique. What names the cell is written last, so that an interrupt
        leaves nothing that names less than a whole cell.
        """
        if isinstance(node, Rule):
            key: object = ("rule", node.name, within)
        else:
            key = ("token", node) if isinstance(node, (Token, Mark, Free)) else ("node", id(node))
        found = self._cells.get(key)
        if found is None:
            found = self.append([0, len(self._cells)])
            self._targets[found] = node
            if within:
                self._within.add(found)
            self._cells[key] = found
        return found

    def cells(self) -> list[int]:
        """All rule cells that were named so far."""
        return list(self._targets)

    def bound(self, node: Token | Mark | Free) -> Node:
        """A node that names tokens, by the bytes that stand for them in the vocabulary at hand."""
        if self._bind is None:
            raise UnsupportedError(
                f"{node} names special tokens, and which these are only a vocabulary says",
                hint="Compile it for a vocabulary.",
            )
        return self._bind(node)

    def append(self, values: list[int] | tuple[int, ...] | bytes) -> int:
        """Puts words at the end: where they begin."""
        first = len(self.words)
        if first + len(values) > CODE_LIMIT:
            raise LimitError("the constraint's byte-code is too large", hint="Split the grammar or schema.")
        self.words.extend(values)
        return first

    def leaf(self, dfa: Dfa, mode: int) -> int:
        """The number of a leaf."""
        key = (dfa.key, mode)
        number = self._leaf_numbers.get(key)
        if number is None:
            number = len(self.leaves)
            self.leaves.append((dfa, mode))
            self._leaf_numbers[key] = number
        return number

    def parser(self, parser: Parser) -> int:
        """Where the block of a parser begins."""
        for block, known in self.parsers.items():
            if known is parser:
                return block
        block = self.append(parser.block(len(self.words), len(self.parsers)).tolist())
        self.parsers[block] = parser
        return block

    def strings(self, options: Iterable[bytes], escapes: int) -> int:
        """A string block of sorted byte strings: where it begins."""
        options = list(options)
        base = len(self.words) + at.STR_OFFSETS + len(options) + 1
        self.append((len(options), escapes, *accumulate(map(len, options), initial=base)))
        text = b"".join(options)
        if len(text) < LONG:
            self.append(text)
        else:
            self.words.frombytes(np.frombuffer(text, np.uint8).astype(np.int32).tobytes())
        return base - at.STR_OFFSETS - len(options) - 1

    def is_nullable(self, node: Node) -> bool:
        """Return whether the language of a node contains the empty text."""
        return self._nullable.is_nullable(node)

    def _named_since(self, known: int) -> list[int]:
        """The cells of rules that were named after the first `known`, in order."""
        return list(islice(reversed(self._targets), len(self._targets) - known))[::-1]

    def after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold. Its half-linked rule is linked anew (see `link`)."""
        self.lock = threading.RLock()

    def _publish(self) -> None:
        """Copies what was written to where kernels read. A longer array is another one: some may still read the old."""
        used, size = self.used, len(self.words)
        if size > len(self.code):
            longer = np.empty(max(2 * len(self.code), size), np.int32)
            longer[:used] = self.code[:used]
            self.code = longer
        self.code[used:size] = memoryview(self.words)[used:]
        self.used = size

    def endings(self, block: int) -> ShortestSuffixes:
        """What texts of the parser at that block need to end."""
        found = self._endings.get(block)
        if found is None:
            found = self._endings[block] = ShortestSuffixes(self.parsers[block])
        return found

    @abstractmethod
    def link(self, cell: int) -> None:
        """Write the code of a rule cell's rule, once. Raise LimitError if that takes too much work."""
