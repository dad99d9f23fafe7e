"""Program: the rules of a Grammar as byte-code in one growing int32 array, each linked when it is first reached.

The instructions are in `kernels.layout`. A rule is linked on its own; a call names a *rule cell*, whose first word
is the entry of the rule's code or 0 while it is not linked. Two more tables stand beside the code: the leaves (a Dfa
and how its text is spelled), which a vocabulary knows by number, and the names of the rules.

A Program knows no tokens and is shared by all threads: linking writes under a lock, into `words`, and copies what is
new to where kernels read, the cell last. Who runs the code keeps tables of leaves and parsers as long as `leaf_room`
and `parser_room`; where these grow, the code goes on in a copy, so that nobody comes to a leaf he has no room for.
"""

from __future__ import annotations

import threading
from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Set
from contextlib import suppress
from itertools import accumulate, count, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..base.errors import LimitError, SchemaError, UnsatisfiableError, UnsupportedError, VocabularyError
from ..base.fork_safety import fork_handlers
from ..base.options import Limits
from ..base.work import WorkBudget, has_budget, spend, work_budget
from ..grammar.nodes import (  # fmt: skip
    Chars,
    Choice,
    Free,
    Grammar,
    JsonString,
    Literal,
    Mark,
    Member,
    Node,
    Object,
    Parsed,
    Repeat,
    Rule,
    Sequence,
    Strings,
    Token,
    Unique,
)
from ..kernels import layout as at
from .linker import Writer

if TYPE_CHECKING:
    from ..automata.dfa import Dfa
    from ..lalr.parser_code import Parser
    from ..lalr.shortest_suffix import Endings
    from .least_costs import Costs

__all__ = ["Leaf", "Program"]

Leaf = tuple["Dfa", int]
"""A leaf: the Dfa over characters and the mode (`layout.UTF8`, `JSON_STRING`, ...) that spells them."""
Bind = Callable[["Token | Mark | Free"], Node]

CODE_LIMIT = 1 << 27
FIRST_CAPACITY = 1 << 12
WORDS = 8
"""Words of byte-code that are written for one unit of work."""
LINK = 100
"""Units of work for a rule, beside its words."""
STEP_SHARE = 6
"""Part of Limits.work that linking one rule may take while a text is written."""
AHEAD_SHARE = 50
"""Part of Limits.work that linking rules ahead of their need may take at once."""
LINK_SHARE = 4
"""Part of Limits.work up to which the rules of a large source are linked when it is compiled."""
LONG = 1 << 12
"""Bytes of a string block from which numpy spreads them sooner."""


class Program:
    """The byte-code of a Grammar, linked rule by rule.

    code: int32[capacity], of which `used` are written; replaced by a longer copy when it is full. words: the same with
    what is being linked.
    entry: rule cell where the text starts. leaves: what the operand of LEAF and OTHER counts. bind: what a vocabulary
    makes of nodes that name tokens (`vocabulary.special_tokens`). links: rule cells in the order in which they were linked.
    on_link: called after each. work: units (see `constrain.base.work`) of which linking one rule may take a share, whatever
    came before, unless the budget of a compile holds. paid: cached results that the compile of a large
    source has paid for. generation: raised where all of it came to be numbered anew (`restored`).
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
        self._endings: dict[int, Endings] = {}
        self._leaf_numbers: dict[tuple[bytes, int], int] = {}
        self._cells: dict[object, int] = {}
        self._targets: dict[int, Node] = {}
        self._within: set[int] = set()
        self._refused: dict[int, LimitError] = {}
        self.paid: Set[tuple[object, ...]] = frozenset()
        self._nullable: dict[Hashable, bool] = {}
        self._costs: Costs | LimitError | None = None
        self.entry = self.cell(grammar.start)
        self._publish()
        fork_handlers.add(self)

    def after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold. Its half-linked rule is linked anew (see `link`)."""
        self.lock = threading.RLock()

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

    def link(self, cell: int) -> None:
        """Write the code of a rule cell's rule, once.

        Raise LimitError if that takes too much work, each time: what a first attempt has cached does not help a second.
        """
        with self.lock:
            if cell in self._refused:
                refused = self._refused[cell]
                raise LimitError(refused.cause, pointer=refused.pointer, hint=refused.hint)
            is_part = has_budget()  # of something larger, whose budget it may be that is spent
            try:
                with work_budget(self.work // STEP_SHARE, self.work, self.paid):
                    self._link(cell)
            except LimitError as error:
                if not is_part:
                    self._refused[cell] = error
                raise

    def _link(self, cell: int) -> None:
        """The same, within the budget that holds."""
        with self.lock:
            if self.words[cell]:
                self.code[cell] = self.words[cell]  # once more: an interrupt may have come between the two
                return
            entry = self._write(cell)
            self._publish()
            if len(self.leaves) > self.leaf_room or len(self.parsers) > self.parser_room:
                self.leaf_room = max(self.leaf_room, 2 * len(self.leaves))
                self.parser_room = max(self.parser_room, 2 * len(self.parsers))
                self.code = self.code.copy()
            self.links.append(cell)
            self.words[cell] = entry  # From here on it is linked: a second copy of its code would be another rule.
            self.code[cell] = entry
        if self.on_link is not None:
            self.on_link()

    def link_following(self, cells: Iterable[int], ahead: int) -> None:
        """Link rules, and up to `ahead` more, breadth first, of those that they name and that were not named before.

        The latter may take a small share of the work together; those beyond it are linked when they are needed.
        """
        with self.lock:
            known = len(self._targets)
            for cell in cells:
                self.link(cell)
            following = deque(self._named_since(known))
            with suppress(LimitError), work_budget(self.work // AHEAD_SHARE, self.work, self.paid):
                for _ in range(ahead):
                    if not following:
                        return
                    known = len(self._targets)
                    with suppress(SchemaError, UnsatisfiableError, UnsupportedError, VocabularyError):
                        self._link(following.popleft())
                    following += self._named_since(known)

    def _named_since(self, known: int) -> list[int]:
        """The cells of rules that were named after the first `known`, in order."""
        return list(islice(reversed(self._targets), len(self._targets) - known))[::-1]

    def _write(self, cell: int) -> int:
        """Write the code of a rule, and return its entry."""
        node = self._targets[cell]
        if isinstance(node, Rule):
            node = self.grammar.rules[node.name]
        entry = Writer(self, cell in self._within).rule(node)
        spend(LINK + (len(self.words) - self.used) // WORDS, "the byte-code of a rule")
        return entry

    def whole(self) -> None:
        """Nothing: it was made from its Grammar and has all of it at hand (see `restored`)."""

    def _publish(self) -> None:
        """Copies what was written to where kernels read. A longer array is another one: some may still read the old."""
        used, size = self.used, len(self.words)
        if size > len(self.code):
            longer = np.empty(max(2 * len(self.code), size), np.int32)
            longer[:used] = self.code[:used]
            self.code = longer
        self.code[used:size] = memoryview(self.words)[used:]
        self.used = size

    def bound(self, node: Token | Mark | Free) -> Node:
        """A node that names tokens, by the bytes that stand for them in the vocabulary at hand."""
        if self._bind is None:
            raise UnsupportedError(
                f"{node} names special tokens, and which these are only a vocabulary says",
                hint="Compile it for a vocabulary.",
            )
        return self._bind(node)

    def link_ahead(self, most: int) -> None:
        """Links the start and then, breadth first, what it names, up to `most` rules."""
        with self.lock:
            done = 0
            while done < most:
                pending = [cell for cell in self._targets if not self.words[cell]]
                if not pending:
                    return
                for cell in pending[: most - done]:
                    self.link(cell)
                    done += 1

    def link_at_once(self, budget: WorkBudget) -> None:
        """Link all rules, breadth first, as far as a share of the work goes, so that no step has to link them.

        What is left then is linked when a text comes to it. budget: that of the compile, to which twice the share is
        added.
        """
        with self.lock:
            self.paid = budget.paid
            most = budget.spent + self.work // LINK_SHARE
            budget.limit += 2 * self.work // LINK_SHARE
            todo = list(self._targets)
            for place in count():
                if place == len(todo):
                    todo += self._named_since(place)
                if place == len(todo) or budget.spent >= most:
                    return
                self.link(todo[place])

    def costs(self) -> Costs:
        """Least lengths of rules, worked out when first asked for.

        Raise LimitError, each time, if that takes too much work.
        """
        from .least_costs import Costs

        with self.lock:
            if isinstance(self._costs, LimitError):
                raise LimitError(self._costs.cause, pointer=self._costs.pointer, hint=self._costs.hint)
            if self._costs is None:
                try:
                    self._costs = Costs(self)
                except LimitError as error:
                    self._costs = error
                    raise
            return self._costs

    def forget_derived(self) -> None:
        """Forget what was worked out from the code: after an interrupt it may be there by half."""
        self._costs, self._endings = None, {}

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

    def endings(self, block: int) -> Endings:
        """What texts of the parser at that block need to end."""
        from ..lalr.shortest_suffix import Endings

        found = self._endings.get(block)
        if found is None:
            found = self._endings[block] = Endings(self.parsers[block])
        return found

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

    def nullable(self, node: Node) -> bool:
        """Whether a node's language holds the empty text: least fixpoint over the rules that the answer depends on."""
        verdict = _nullable(node, self._nullable.get)
        if verdict is None:
            _solve_nullable(node, self.grammar, self._nullable)
            verdict = _nullable(node, self._nullable.get)
        return bool(verdict)


def _nullable(node: Node, known: Callable[[Hashable], bool | None]) -> bool | None:
    """The same, given what is known of rules; None where that is not enough. A look at the literals decides most."""
    if isinstance(node, Literal):
        return not node.data
    if isinstance(node, Strings):
        return b"" in node.options
    if isinstance(node, Chars):
        return node.low <= 0 and len(node.dfa.delta) > 0 and bool(node.dfa.accepting[0])
    if isinstance(node, (JsonString, Object, Member, Token, Mark)):
        return False
    if isinstance(node, Free):
        return node.until is None
    if isinstance(node, Parsed):
        return node.parser.is_nullable
    if isinstance(node, Unique):
        return _nullable(node.body, known)
    if isinstance(node, Rule):
        return known(node.name)
    if isinstance(node, Repeat):
        return True if node.low == 0 else _nullable(node.node, known)
    parts = node.parts if isinstance(node, Sequence) else node.options
    decisive = isinstance(node, Choice)
    verdict: bool | None = not decisive
    for part in parts:
        one = _nullable(part, known)
        if one is decisive:
            return decisive
        if one is None:
            verdict = None
    return verdict


def _solve_nullable(node: Node, grammar: Grammar, known: dict[Hashable, bool]) -> None:
    """Extends `known` by the rules that `node` reaches: none nullable at first, then raised until nothing changes."""
    reached: dict[Hashable, Node] = {}
    users: dict[Hashable, list[Hashable]] = {}
    todo = list(_rules_at_left(node))
    while todo:
        name = todo.pop()
        if name not in reached and name not in known:
            reached[name] = grammar.rules[name]
            for other in _rules_at_left(reached[name]):
                users.setdefault(other, []).append(name)
                todo.append(other)
    values = dict.fromkeys(reached, False)
    todo = list(reached)  # rules to look at, then those that name one that was found to be nullable
    while todo:
        name = todo.pop()
        if not values[name] and _nullable(reached[name], lambda n: known.get(n, values.get(n, False))):
            values[name] = True
            todo.extend(users.get(name, ()))
    known.update(values)


def _rules_at_left(node: Node) -> list[Hashable]:
    """The rules on which a node's being nullable may depend: none beyond a part that is surely not nullable."""
    if isinstance(node, Rule):
        return [node.name]
    if isinstance(node, (Repeat, Unique)):
        return _rules_at_left(node.node if isinstance(node, Repeat) else node.body)
    if isinstance(node, Sequence):
        if any(_nullable(part, lambda name: None) is False for part in node.parts):
            return []
        return [name for part in node.parts for name in _rules_at_left(part)]
    if isinstance(node, Choice):
        return [name for part in node.options for name in _rules_at_left(part)]
    return []
