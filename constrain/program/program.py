"""Program: the rules of a Grammar as byte-code in one growing int32 array, each linked when it is first reached.

The instructions are documented in `kernels.program_layout`. Rules are linked separately; a call names a *rule cell*,
whose first word is the entry address of the rule, or 0 while it is not linked. The code refers by number to a table
of leaves (a Dfa and its encoding each), for which a vocabulary has rows.

A Program is independent of tokens and shared by all threads. Linking writes to `words` under a lock and then copies new
words to the array that kernels read, the cell last. Users of the code have tables of `leaf_capacity` leaves and
`parser_capacity` parsers; when these grow, the code continues in a copy, so that no user reaches a leaf for which its
tables have no space.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from itertools import count

import numpy as np

from ..base.errors import LimitError, SchemaError, UnsatisfiableError, UnsupportedError, VocabularyError
from ..base.work import WorkBudget, active_budget, confine_budgets, spend_work, work_budget
from ..grammar.nodes import Grammar, Node, Object, Rule, Sequence
from ..kernels.entry_points import address_of, list_near_calls, publish_word
from .byte_code import Bind, ByteCode
from .least_costs import LeastCosts
from .linker import RuleLinker
from .object_code import append_object
from .shared_code import link_shared

__all__ = ["Program"]

WORDS = 8
"""Words of byte-code per unit of work."""
LINK = 100
"""Units of work per rule, in addition to those for its words."""
STEP_SHARE = 6
"""Divisor of Limits.work: the part that linking one rule during generation may take."""
AHEAD_SHARE = 50
"""Divisor of Limits.work: the part that one call may take to link rules ahead of time."""
LINK_SHARE = 4
"""Divisor of Limits.work: the part up to which the rules of a large source are linked at compile time."""
MOST_NEAR = 16
"""Most rules that are linked together with one that begins with them."""
ERRORS = (SchemaError, UnsatisfiableError, UnsupportedError, VocabularyError)
"""Errors of a rule that is linked ahead, besides LimitError: they are raised again where the rule is needed."""


class Program(ByteCode):
    """The byte-code of a Grammar, linked rule by rule; see `ByteCode` for the attributes.

    `bind` expands nodes that name tokens for a vocabulary (`vocabulary.special_tokens`). `lock` is that of the Program
    whose place this one takes, if there is one.
    """

    def __init__(self, grammar: Grammar, bind: Bind | None = None, lock: threading.RLock | None = None) -> None:
        self._refused: dict[int, LimitError] = {}
        self._near = np.empty(2 * MOST_NEAR, np.int32)  # scratch
        self._costs: LeastCosts | LimitError | None = None
        super().__init__(grammar, bind, lock)

    @confine_budgets
    def link(self, cell: int) -> None:
        """Generate the code of the rule of a cell, once.

        Raise LimitError if that takes too much work; repeated calls raise it again, although results may be cached by
        then.
        """
        with self.lock:
            self._link_or_refuse(cell)

    def _link_or_refuse(self, cell: int) -> None:
        """Do what `link` does. The caller holds the lock, and confines the budget that begins here."""
        if cell in self._refused:
            raise self._refused[cell].restate()
        if active_budget() is not None:
            # An enclosing construction may have spent it: a refusal says nothing about the rule.
            self._link(cell)
            return
        try:
            with work_budget(self.work // STEP_SHARE, self.work, self.paid):
                self._link(cell)
        except LimitError as error:
            self._refused[cell] = error.restate()
            raise

    def _link(self, cell: int) -> None:
        """Link a rule within the active budget. The caller holds the lock."""
        if self.words[cell]:
            # Repeated, since an interrupt may have separated the two writes below.
            publish_word(address_of(self.code), cell, self.words[cell])
            return
        entry = self._generate(cell)
        self._publish()
        if len(self.leaves) > self.leaf_capacity or len(self.parsers) > self.parser_capacity:
            self.leaf_capacity = max(self.leaf_capacity, 2 * len(self.leaves))
            self.parser_capacity = max(self.parser_capacity, 2 * len(self.parsers))
            self.code = self.code.copy()
        self.links.append(cell)
        self.words[cell] = entry  # marks the rule as linked: it must not get a second copy of its code
        publish_word(address_of(self.code), cell, entry)
        if self.on_link is not None:
            self.on_link()

    def link_start(self) -> None:
        """Link the rule of the start, and the only rule in it, if it is a sequence: a value within white space."""
        self.ensure_grammar()
        with self.lock:
            if not self.words[self.entry]:
                self.link(self.entry)
            if type(self.grammar.start) is Sequence:
                referenced = [cell for cell in self._targets if not self.words[cell]]
                if len(referenced) == 1:
                    with suppress(LimitError, *ERRORS):
                        self.link(referenced[0])
            self.is_started = True

    @confine_budgets
    def link_following(self, cells: Iterable[int], ahead: int) -> None:
        """Link rules, with those that they begin with, and breadth first up to `ahead` more among those first
        referenced by them.

        All but the rules themselves share a small part of the work budget; the remainder is linked on demand.
        """
        with self.lock:
            known = len(self._targets)
            for cell in cells:
                self._link_or_refuse(cell)
            self._link_near(cells)
            if not ahead:
                return
            following = deque(self._cells_since(known))
            with suppress(LimitError), work_budget(self.work // AHEAD_SHARE, self.work, self.paid):
                for _ in range(ahead):
                    if not following:
                        return
                    known = len(self._targets)
                    with suppress(*ERRORS):
                        self._link(following.popleft())
                    following += self._cells_since(known)

    def _link_near(self, cells: Iterable[int]) -> None:
        """Link the rules that linked rules begin with, since the mask that needs these needs them, too.

        Errors are left to `link`, which raises them when the rule is needed.
        """
        pending, left, found = list(cells), MOST_NEAR, self._near
        for cell in pending:
            count = list_near_calls(self.code, self.words[cell], found)
            for near in found[: min(count, left)].tolist() if count else ():
                left -= 1
                with suppress(LimitError, *ERRORS), work_budget(self.work // AHEAD_SHARE, self.work, self.paid):
                    self._link(near)
                    pending.append(near)

    @confine_budgets
    def try_link(self, cell: int, units: int) -> int:
        """Link the rule of a cell ahead of its use, if that takes at most `units` of work. Return the units spent.

        Errors are left to `link`, which raises them when the rule is needed. Nothing is done while another thread
        links.
        """
        if not self.lock.acquire(blocking=False):
            return 0
        try:
            with work_budget(units, self.work, self.paid) as budget:
                before = budget.spent
                with suppress(LimitError, SchemaError, UnsatisfiableError, UnsupportedError, VocabularyError):
                    self._link(cell)
                return budget.spent - before
        finally:
            self.lock.release()

    def _generate(self, cell: int) -> int:
        """Generate the code of a rule and return its entry address."""
        node, rules = self._targets[cell], self.grammar.rules
        entry: int | None = None
        if type(node) is Rule:
            append_code = getattr(rules, "append_code", None)  # of CodedRules: `isinstance` takes longer
            if append_code is not None and cell not in self._within:
                entry = append_code(node.name, self)
            if entry is None:
                node = rules[node.name]
        if entry is None:
            entry = self._link_node(node, cell)
        spend_work(LINK + (len(self.words) - self.used) // WORDS, "the byte-code of a rule")
        return entry

    def _link_node(self, node: Node, cell: int) -> int:
        """Generate the code of the node of a rule and return its entry address."""
        if isinstance(node, Object):
            return append_object(node, self)
        shared = None if cell in self._within else link_shared(node, self)
        return RuleLinker(self, cell in self._within).link(node) if shared is None else shared

    def ensure_grammar(self) -> None:
        """Do nothing, since a Program has its Grammar. `RestoredProgram` overrides this."""

    def link_ahead(self, most: int) -> None:
        """Link the start and, breadth first, the rules it references, up to `most` rules."""
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
        """Link all rules, breadth first, within a share of the work, so that decoding steps need not link them.

        Remaining rules are linked on demand. `budget` is that of the compile; its limit is raised by twice the share.
        """
        with self.lock:
            self.paid = budget.paid
            most = budget.spent + self.work // LINK_SHARE
            budget.limit += 2 * self.work // LINK_SHARE
            todo = list(self._targets)
            for position in count():
                if position == len(todo):
                    todo += self._cells_since(position)
                if position == len(todo) or budget.spent >= most:
                    return
                self.link(todo[position])

    def costs(self) -> LeastCosts:
        """Return the least lengths of rules, computed on first use.

        Raise LimitError if that takes too much work, on every call.
        """
        with self.lock:
            if isinstance(self._costs, LimitError):
                raise self._costs.restate()
            if self._costs is None:
                try:
                    self._costs = LeastCosts(self)
                except LimitError as error:
                    self._costs = error.restate()
                    raise
            return self._costs

    def forget_derived(self) -> None:
        """Discard results derived from the code, which may be incomplete after an interrupt."""
        self._costs, self._endings = None, {}
