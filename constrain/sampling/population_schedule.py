"""Which twist each population of a call uses, and what is learned from it.

    counted populations     the learned twist, or the flat one by `fallback_rule`; all of them are used. The first COLD
                            ones of a table go on learning while they grow
    a probe                 a population under the twist that `fallback_rule` wants to compare; it is not used
    a scout                 before every third counted population from the fourth on: SCOUT_PARTICLES particles, with
                            states of which no text was seen valued at 1. It only teaches, and its estimate is dropped

Every twist is fixed before its population starts, by what earlier ones have shown, and which populations count is
fixed before they start: so each counted one is unbiased given the past.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.errors import LimitError
from ..engine.abstract_states import abstract_state
from ..engine.constraint import Constraint
from .learned_twist.constraint_tables import keep_table, new_table, take_table
from .learned_twist.fallback_rule import Kind, Outcome, choose_kind, choose_probe, has_fallen_back
from .learned_twist.value_backups import back_up, measure_gap
from .learned_twist.value_table import COLD, Values, ValueTable
from .particles import Masked, Prefixes
from .populations import Population, Settings
from .post_filtering import PostFilter
from .twisted_populations import Flat, LearningTrie, grow_twisted_population

__all__ = ["PopulationSchedule", "can_learn", "open_schedule"]

SCOUT_EVERY = 3
"""Counted populations between two scouts."""
SCOUT_PARTICLES = 4
SHORT = 128
"""Most tokens of texts of which backups are cheap: growing populations learn whenever they may."""
GROWTH = 1.25
"""Ratio of visited texts from which on a population of longer texts learns again: all of its backups then take some
five times as long as the last of them, and not as many times as it has tokens."""
MOST_VISITED = 20_000
"""Texts of a call that are learned from: up to 4 KB each."""


def can_learn(constraint: Any, settings: Settings) -> bool:
    """Return whether populations can have the learned twist.

    They can if tokens are proposed by the model's own probabilities under a mask, and the abstract states of the
    constraint are known.
    """
    if not isinstance(settings.move, Masked) or not settings.move.is_plain:
        return False
    own = constraint.first if isinstance(constraint, PostFilter) else constraint
    if not isinstance(own, Constraint):
        return False
    try:
        abstract_state(own.matcher())
    except LimitError:  # least lengths of this grammar take too much work
        return False
    return True


def open_schedule(
    prefixes: Prefixes, particles: int, settings: Settings, table: ValueTable | bool
) -> PopulationSchedule:
    """Return the schedule of a call.

    table: the table to start with, of which nothing is kept; True for the one that the constraint has kept, False for
    an empty one, both of which are kept with the constraint in the end (`finish`). With a checker, whose requirements
    are not part of the constraint, a call starts with an empty table, and nothing is kept.
    """
    constraint: Any = prefixes.constraint
    if isinstance(table, ValueTable):
        return PopulationSchedule(prefixes, particles, settings, table.copy(), None)
    if isinstance(constraint, PostFilter):
        return PopulationSchedule(prefixes, particles, settings, new_table(constraint.first), None)
    start = take_table(constraint) if table else new_table(constraint)
    return PopulationSchedule(prefixes, particles, settings, start, constraint)


class PopulationSchedule:
    """The populations of one call.

    Attributes
    ----------
    table : ValueTable
        What has been learned so far.
    history : list of Outcome
        The counted populations.
    """

    def __init__(
        self, prefixes: Prefixes, particles: int, settings: Settings, table: ValueTable, own: Constraint | None
    ) -> None:
        self.particles, self.settings = particles, settings
        self.table, self.prior, self.own = table, table, own
        self.history: list[Outcome] = []
        self.trie = LearningTrie(prefixes, table.numbers, MOST_VISITED)
        self.kind: Kind = "flat" if table.has_fallen_back else "learned"
        self._is_frozen = False
        self._learned_texts = 0

    def grow(self, rng: np.random.Generator) -> Population:
        """Grow the next counted population, and learn from it."""
        if self._is_frozen:
            return self._grow(self.kind, rng)
        count = sum(one.counts for one in self.history)
        probe = choose_probe(self.history, self.table.has_fallen_back)
        if probe is not None:
            self._grow(probe, rng, counts=False)
        self.kind = choose_kind(self.history, self.table.has_fallen_back)
        if count and count % SCOUT_EVERY == 0 and self.kind == "learned":
            grow_twisted_population(self.trie, SCOUT_PARTICLES, self.settings, Values(self.table, unseen=0.0), rng)
            self._learn()
        return self._grow(self.kind, rng)

    def _grow(self, kind: Kind, rng: np.random.Generator, counts: bool = True) -> Population:
        """Grow a population with a twist, and learn from it unless the twist is to stay as it is."""
        populations, relearn = self.table.populations, None
        if kind == "learned" and populations < COLD and not self._is_frozen:
            relearn = self._relearn
        values = Flat() if kind == "flat" else Values(self.table)
        population = grow_twisted_population(self.trie, self.particles, self.settings, values, rng, relearn=relearn)
        if not self._is_frozen:
            self.history.append(Outcome(kind, population.log_z, populations, counts))
            self._learn()
        return population

    def _relearn(self) -> Values:
        """Return the values that the texts visited so far give, while a population is growing.

        Where texts may be long, they are learned again once enough of them are new: a backup takes time in proportion
        to all texts and their length.
        """
        is_short = self.settings.max_tokens <= SHORT
        if is_short or len(self.trie.visited) >= GROWTH * self._learned_texts:
            self.table = replace(self._learned(), populations=self.table.populations)
        return Values(self.table)

    def freeze(self) -> None:
        """Keep the twist of all further populations as it is: a Markov chain needs them to have one law."""
        self._is_frozen = True

    def finish(self) -> float:
        """Keep the table with the constraint, and return the gap: log of V_one / V_zero, see `measure_gap`; NaN if no
        population was grown.
        """
        if self._is_frozen:
            self._learn()
        fallen = has_fallen_back(self.history, self.table.has_fallen_back)
        self.table = replace(self.table, has_fallen_back=fallen)
        if self.own is not None and self.history:
            keep_table(self.own, self.table)
        if not len(self.trie.visited):
            return math.nan
        low, high = measure_gap(self.trie.visited, self.table)
        return high - low

    def _learned(self) -> ValueTable:
        self._learned_texts = len(self.trie.visited)
        return back_up(self.trie.visited, self.prior, self.table)

    def _learn(self) -> None:
        self.table = self._learned()
