"""Program: the rules of a Grammar as byte-code in one growing int32 array, each linked when it is first reached.

The instructions are in `kernels.layout`. A rule is linked on its own; a call names a *rule cell*, whose first word
is the entry of the rule's code or 0 while it is not linked. Two more tables stand beside the code: the leaves (a Dfa
and how its text is spelled), which a vocabulary knows by number, and the names of the rules.

A Program knows no tokens and is shared by all threads: linking appends under a lock and fills the cell last.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from json.encoder import encode_basestring
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import LimitError
from ..grammar.nodes import (
    Chars,
    Choice,
    Grammar,
    JsonString,
    Literal,
    Node,
    Object,
    Repeat,
    Rule,
    Sequence,
    Strings,
)  # fmt: skip
from ..kernels import layout as at

if TYPE_CHECKING:
    from .costs import Costs
    from .dfa import Dfa

__all__ = ["Leaf", "Program"]

Leaf = tuple["Dfa", int]
"""A leaf: the Dfa over characters and the mode (`layout.UTF8`, `JSON_STRING`, `JSON_INSIDE`) that spells them."""

CODE_LIMIT = 1 << 27
FIRST_CAPACITY = 1 << 12


class Program:
    """The byte-code of a Grammar, linked rule by rule.

    code: int32[capacity], of which `used` are written; replaced by a longer copy when it is full.
    entry: rule cell where the text starts. leaves: what the operand of LEAF and OTHER counts.
    """

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.code: NDArray[np.int32] = np.zeros(FIRST_CAPACITY, np.int32)
        self.used = 1
        self.leaves: list[Leaf] = []
        self.lock = threading.RLock()
        self._leaf_numbers: dict[tuple[bytes, int], int] = {}
        self._cells: dict[object, int] = {}
        self._targets: dict[int, Node] = {}
        self._nullable: dict[Hashable, bool] = {}
        self._costs: Costs | None = None
        self.entry = self.cell(grammar.start)

    def cell(self, node: Node) -> int:
        """The rule cell of a node: that of the rule it names, or one of its own."""
        key: object = ("rule", node.name) if isinstance(node, Rule) else ("node", id(node))
        found = self._cells.get(key)
        if found is None:
            found = self._cells[key] = self.append([0, len(self._cells)])
            self._targets[found] = node
        return found

    def cells(self) -> list[int]:
        """All rule cells that were named so far."""
        return list(self._targets)

    def link(self, cell: int) -> None:
        """Writes the code of a rule cell's rule, once."""
        with self.lock:
            if self.code[cell]:
                return
            node = self._targets[cell]
            if isinstance(node, Rule):
                node = self.grammar.rules[node.name]
            self.code[cell] = _Writer(self).rule(node)

    def link_ahead(self, most: int) -> None:
        """Links the start and then, breadth first, what it names, up to `most` rules."""
        with self.lock:
            done = 0
            while done < most:
                pending = [cell for cell in self._targets if not self.code[cell]]
                if not pending:
                    return
                for cell in pending[: most - done]:
                    self.link(cell)
                    done += 1

    def costs(self) -> Costs:
        """Least lengths of all rules, worked out when first asked for."""
        from .costs import Costs

        with self.lock:
            if self._costs is None:
                self._costs = Costs(self)
            return self._costs

    def append(self, values: list[int] | NDArray[np.int32]) -> int:
        """Puts words at the end of the code: where they begin."""
        first, n = self.used, len(values)
        if first + n > len(self.code):
            if first + n > CODE_LIMIT:
                raise LimitError("the constraint's byte-code is too large", hint="Split the grammar or schema.")
            longer = np.zeros(max(2 * len(self.code), first + n), np.int32)
            longer[:first] = self.code[:first]
            self.code = longer
        self.code[first : first + n] = values
        self.used = first + n
        return first

    def leaf(self, dfa: Dfa, mode: int) -> int:
        """The number of a leaf."""
        key = (dfa.key, mode)
        number = self._leaf_numbers.get(key)
        if number is None:
            number = self._leaf_numbers[key] = len(self.leaves)
            self.leaves.append((dfa, mode))
        return number

    def strings(self, options: Iterable[bytes], escapes: int) -> int:
        """A string block of sorted byte strings: where it begins."""
        options = list(options)
        base = self.used + at.STR_OFFSETS + len(options) + 1
        lengths = np.fromiter((len(option) for option in options), np.int32, len(options))
        offsets = np.concatenate([[0], np.cumsum(lengths)]) + base
        text = np.frombuffer(b"".join(options), np.uint8).astype(np.int32)
        return self.append(np.concatenate([[len(options), escapes], offsets, text]).astype(np.int32))

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
    if isinstance(node, (JsonString, Object)):
        return False
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
    todo = list(_rules_at_left(node))
    while todo:
        name = todo.pop()
        if name not in reached and name not in known:
            reached[name] = grammar.rules[name]
            todo.extend(_rules_at_left(reached[name]))
    values = dict.fromkeys(reached, False)
    changed = True
    while changed:
        changed = False
        for name, target in reached.items():
            if not values[name] and _nullable(target, lambda n: known.get(n, values.get(n, False))):
                values[name] = changed = True
    known.update(values)


def _rules_at_left(node: Node) -> list[Hashable]:
    """The rules on which a node's being nullable may depend: none beyond a part that is surely not nullable."""
    if isinstance(node, Rule):
        return [node.name]
    if isinstance(node, Repeat):
        return _rules_at_left(node.node)
    if isinstance(node, Sequence):
        if any(_nullable(part, lambda name: None) is False for part in node.parts):
            return []
        return [name for part in node.parts for name in _rules_at_left(part)]
    if isinstance(node, Choice):
        return [name for part in node.options for name in _rules_at_left(part)]
    return []


class _Writer:
    """Writes one rule. Jumps inside the rule are written relative to its start and moved when it is appended."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.words: list[int] = []
        self.places: list[int] = []  # words that hold a place inside the rule
        self.counting = False  # the rule's register is in use: a counted repetition inside one has a rule of its own

    def rule(self, node: Node) -> int:
        """The code of a whole rule: its entry."""
        if isinstance(node, Object):
            self.object(node)
        else:
            self.node(node)
        self.words.append(at.END)
        base = self.program.used
        for place in self.places:
            self.words[place] += base
        return self.program.append(self.words)

    def node(self, node: Node) -> None:
        if isinstance(node, Literal):
            self.words.extend(node.data)
        elif isinstance(node, Rule):
            self.words += (at.CALL, self.program.cell(node))
        elif isinstance(node, Sequence):
            for part in node.parts:
                self.node(part)
        elif isinstance(node, Choice):
            self.choice(node.options)
        elif isinstance(node, Repeat):
            self.repeat(node)
        elif isinstance(node, Chars):
            self.leaf(node.dfa, at.UTF8 if node.encoding == "utf8" else at.JSON_INSIDE, node.low, node.high)
        elif isinstance(node, JsonString):
            self.words.append(34)
            self.leaf(node.dfa, at.JSON_STRING, node.low, node.high)
        elif isinstance(node, Strings):
            self.words += (at.SET, self.program.strings(node.options, 0))
        else:
            self.words += (at.CALL, self.program.cell(node))

    def leaf(self, dfa: Dfa, mode: int, low: int, high: int | None) -> None:
        self.words += (at.LEAF, self.program.leaf(dfa, mode), low, -1 if high is None else high)

    def jump(self, op: int) -> int:
        """An instruction whose one operand is a place that is not known yet: where that operand stands."""
        self.words += (op, 0)
        self.places.append(len(self.words) - 1)
        return len(self.words) - 1

    def split(self, n: int) -> int:
        """A SPLIT of n targets that are not known yet: where the first stands."""
        self.words += (at.SPLIT, n)
        first = len(self.words)
        self.words += [0] * n
        self.places.extend(range(first, first + n))
        return first

    def here(self, place: int) -> None:
        self.words[place] = len(self.words)

    def choice(self, options: tuple[Node, ...]) -> None:
        if len(options) == 1:
            self.node(options[0])
            return
        first = self.split(len(options))
        ends = []
        for k, option in enumerate(options):
            self.here(first + k)
            self.node(option)
            if k < len(options) - 1:
                ends.append(self.jump(at.JUMP))
        for place in ends:
            self.here(place)

    def repeat(self, node: Repeat) -> None:
        low, high = node.low, node.high
        if high == 0:
            return
        if (low, high) == (1, 1):
            self.node(node.node)
        elif (low, high) == (0, 1):
            first = self.split(2)
            self.here(first)
            self.node(node.node)
            self.here(first + 1)
        elif high is None and low <= 1:
            self.loop(node.node, low)
        elif self.counting:
            self.words += (at.CALL, self.program.cell(node))
        else:
            self.counted(node.node, low, high)

    def loop(self, body: Node, low: int) -> None:
        start = len(self.words)
        first = self.split(2) if low == 0 else -1
        if low == 0:
            self.here(first)
        self.node(body)
        if low == 0:
            self.words[self.jump(at.JUMP)] = start
        else:
            first = self.split(2)
            self.words[first] = start
        self.here(first + 1)

    def counted(self, body: Node, low: int, high: int | None) -> None:
        """A repetition counted in the rule's register. Empty rounds add nothing: a nullable body has no least count."""
        if self.program.nullable(body):
            low = 0
        self.counting = True
        self.words.append(at.ENTER)
        start = len(self.words)
        self.words += (at.TEST, low, -1 if high is None else high, 0)
        exit_place = len(self.words) - 1
        self.places.append(exit_place)
        self.node(body)
        self.words += (at.COUNT, low if high is None else high)
        self.words[self.jump(at.JUMP)] = start
        self.here(exit_place)
        self.counting = False

    def object(self, node: Object) -> None:
        """`{`, then nothing or members, then `}`: which keys may come is asked of the object's state."""
        block, leaves = _object_block(self.program, node)
        lay, words = node.layout, self.words
        self.counting = True  # the register holds the object's state
        words += (at.INIT, block, 123)
        first = self.split(2)
        self.here(first)
        words += (at.CLOSE, block)
        self.node(lay.empty)
        words += (125, at.END)
        self.here(first + 1)
        words += (at.MORE, block)
        self.node(lay.open)
        keys = len(words)
        words.append(34)
        choice = self.split(1 + len(node.others))
        self.here(choice)
        words += (at.KEYS, block)
        names = []
        for k, leaf in enumerate(leaves):
            self.here(choice + 1 + k)
            words += (at.OTHER, block, leaf, 0)
            names.append(len(words) - 1)
            self.places.append(len(words) - 1)
        after = []
        targets = self.program.code[block + at.OBJ_TARGETS]
        offsets = []
        for k, value in enumerate([p.value for p in node.properties] + [c.value for c in node.others]):
            offsets.append(len(words))
            if k >= len(node.properties):
                self.here(names[k - len(node.properties)])
            self.node(lay.colon)
            self.words += (at.CALL, self.program.cell(value))
            after.append(self.jump(at.JUMP))
        for place in after:
            self.here(place)
        first = self.split(2)
        self.here(first)
        words += (at.MORE, block)
        self.node(lay.comma)
        self.words[self.jump(at.JUMP)] = keys
        self.here(first + 1)
        words += (at.CLOSE, block)
        self.node(lay.close)
        words.append(125)
        base = self.program.used
        for k in range(len(node.properties)):
            self.program.code[targets + k] = base + offsets[k]


def _object_block(program: Program, node: Object) -> tuple[int, list[int]]:
    """Writes an object block (see `layout`): where it begins, and the leaves of its classes of undeclared names."""
    names = [p.name for p in node.properties]
    n = len(names)
    if node.escapes == "canonical":
        spelled = [encode_basestring(name)[1:].encode() for name in names]
    else:
        spelled = [name.encode() for name in names]
    order = sorted(range(n), key=spelled.__getitem__)
    ranks = [0] * n
    for rank, key in enumerate(order):
        ranks[key] = rank
    width = (n + 31) // 32 or 1
    index = {name: k for k, name in enumerate(names)}
    keys = program.strings([spelled[key] for key in order], int(node.escapes == "any"))
    required = program.append(_bits(width, [k for k, p in enumerate(node.properties) if p.required]))
    needs = 0
    if any(p.needs for p in node.properties):
        sets = [_bits(width, [index[name] for name in p.needs]) for p in node.properties]
        needs = program.append([word for one in sets for word in one])
    targets = program.append([0] * n)
    counted = int(node.low > 0 or node.high is not None)
    block = [0] * at.OBJ_W
    block[at.OBJ_COUNT], block[at.OBJ_ORDER] = n, int(node.order == "any")
    block[at.OBJ_LOW], block[at.OBJ_HIGH] = node.low, -1 if node.high is None else node.high
    block[at.OBJ_OTHERS], block[at.OBJ_KEYS], block[at.OBJ_WORDS] = len(node.others), keys, width
    block[at.OBJ_REQUIRED], block[at.OBJ_NEEDS], block[at.OBJ_TARGETS] = required, needs, targets
    block[at.OBJ_RANKS], block[at.OBJ_COUNTED] = program.append(ranks), counted
    excluded = sorted({name.encode() for name in [*names, *node.excluded]}) if node.others else []
    block[at.OBJ_EXCLUDED] = program.strings(excluded, 1)
    leaves = [program.leaf(c.names, at.JSON_STRING) for c in node.others]
    return program.append(block), leaves


def _bits(width: int, members: Iterable[int]) -> list[int]:
    """A bit set as int32 words."""
    words = [0] * width
    for k in members:
        words[k >> 5] |= 1 << (k & 31)
    return [word - (1 << 32) if word >= 1 << 31 else word for word in words]
