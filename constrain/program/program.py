"""Program: the rules of a Grammar as byte-code in one growing int32 array, each linked when it is first reached.

The instructions are in `kernels.layout`. A rule is linked on its own; a call names a *rule cell*, whose first word
is the entry of the rule's code or 0 while it is not linked. Two more tables stand beside the code: the leaves (a Dfa
and how its text is spelled), which a vocabulary knows by number, and the names of the rules.

A Program knows no tokens and is shared by all threads: linking writes under a lock, into `words`, and copies what is
new to where kernels read, the cell last. Who runs the code keeps tables of leaves and parsers as long as `leaf_room`
and `parser_room`; where these grow, the code goes on in a copy, so that nobody comes to a leaf he has no room for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from itertools import count

from ..base.errors import LimitError, SchemaError, UnsatisfiableError, UnsupportedError, VocabularyError
from ..base.work import WorkBudget, has_budget, spend_work, work_budget
from ..grammar.nodes import (  # fmt: skip
    Grammar,
    Rule,
)
from .byte_code import Bind, ByteCode
from .least_costs import LeastCosts
from .linker import RuleLinker

__all__ = ["Program"]

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


class Program(ByteCode):
    """The byte-code of a Grammar, linked rule by rule.

    code: int32[capacity], of which `used` are written; replaced by a longer copy when it is full. words: the same with
    what is being linked. entry: rule cell where the text starts. leaves: what the operand of LEAF and OTHER counts.
    bind: what a vocabulary makes of nodes that name tokens (`vocabulary.special_tokens`). links: rule cells in the
    order in which they were linked. on_link: called after each. work: units (see `constrain.base.work`) of which
    linking one rule may take a share, whatever came before, unless the budget of a compile holds. paid: cached results
    that the compile of a large source has paid for. generation: raised where all of it came to be numbered anew
    (`restored`).
    """

    def __init__(self, grammar: Grammar, bind: Bind | None = None) -> None:
        self._refused: dict[int, LimitError] = {}
        self._costs: LeastCosts | LimitError | None = None
        super().__init__(grammar, bind)

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

    def _write(self, cell: int) -> int:
        """Write the code of a rule, and return its entry."""
        node = self._targets[cell]
        if isinstance(node, Rule):
            node = self.grammar.rules[node.name]
        entry = RuleLinker(self, cell in self._within).rule(node)
        spend_work(LINK + (len(self.words) - self.used) // WORDS, "the byte-code of a rule")
        return entry

    def whole(self) -> None:
        """Nothing: it was made from its Grammar and has all of it at hand (see `restored`)."""

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

    def costs(self) -> LeastCosts:
        """Least lengths of rules, worked out when first asked for.

        Raise LimitError, each time, if that takes too much work.
        """
        with self.lock:
            if isinstance(self._costs, LimitError):
                raise LimitError(self._costs.cause, pointer=self._costs.pointer, hint=self._costs.hint)
            if self._costs is None:
                try:
                    self._costs = LeastCosts(self)
                except LimitError as error:
                    self._costs = error
                    raise
            return self._costs

    def forget_derived(self) -> None:
        """Forget what was worked out from the code: after an interrupt it may be there by half."""
        self._costs, self._endings = None, {}
