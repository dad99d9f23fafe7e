"""Suffix look-up: drafts from everything that was written before, by the longest suffix of the text that occurs there.

A `SuffixHistory` holds prompts and outputs in one suffix automaton with counts (`suffix_automaton`). The draft after a
text is the tree of the likeliest continuations of its longest suffix that has any, grown best first with the counts as
probabilities. Published methods are settings of it:

    SuffixDecoding (Oliaro et al. 2024)   earlier outputs and the text itself, trees by count: the default
    REST (He et al. 2024)                 a fixed collection of texts: `add` them, and text="ignored"
    CopySpec (Dumitru et al. 2025)        one history per text, with a longer least match (its gamma)

Memory is bounded: a history that reaches its greatest number of states is emptied, and texts in progress begin anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..base.errors import check_choice, check_count
from .draft_source import NO_DRAFT, DraftTree
from .suffix_automaton import START, SuffixAutomaton
from .tree_growth import grow_tree

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["SuffixDrafts", "SuffixHistory"]

MOST_STATES = 200_000
"""Default greatest number of states, of some 400 bytes each."""
PROMPT_TOKENS = 8192
"""Most tokens of a prompt that are added to the history, from its end."""
LEAST_SHARE = 0.05
"""Least estimated probability of a path of the draft."""


class SuffixHistory:
    """The texts that drafts are looked up in. It is shared by the texts of one thread.

    Parameters
    ----------
    text : {"added", "ignored"}
        Whether new texts and their prompts become part of the history.
    least : int
        Least number of tokens that must match.
    most_states : int
        The bound on memory.
    """

    def __init__(
        self, text: Literal["added", "ignored"] = "added", least: int = 1, most_states: int = MOST_STATES
    ) -> None:
        check_choice("text", text, ("added", "ignored"))
        self.text, self.least = text, check_count("least", least)
        self.most_states = check_count("most_states", most_states)
        self.automaton = SuffixAutomaton()
        self.epoch = 0

    def add(self, tokens: Sequence[int]) -> None:
        """Add a complete text."""
        last = START
        for token in tokens:
            last = self.append(last, token)

    def append(self, last: int, token: int) -> int:
        """Append a token to the text with the state `last`; return its new state. Empty the history if it is full."""
        if len(self.automaton) + 2 > self.most_states:
            self.automaton, last = SuffixAutomaton(), START
            self.epoch += 1
        return self.automaton.append(last, token)

    def start_text(self, prompt: Sequence[int], rng: np.random.Generator | None = None) -> SuffixDrafts:
        """Return the `DraftSource` of a new text after `prompt`."""
        return SuffixDrafts(self, prompt)


class SuffixDrafts:
    """A `DraftSource` for one text, from a SuffixHistory.

    state, length: where the text is added: its own state; otherwise, its longest suffix that the history holds.
    """

    def __init__(self, history: SuffixHistory, prompt: Sequence[int]) -> None:
        self.history = history
        self.epoch, self.state, self.length, self.seen = history.epoch, START, 0, 0
        self.observe(prompt[-PROMPT_TOKENS:])
        self.seen = len(prompt)

    def observe(self, tokens: Sequence[int]) -> None:
        """Add tokens to the history, or follow them in it."""
        history = self.history
        self.seen += len(tokens)
        if self.epoch != history.epoch:
            self.epoch, self.state, self.length = history.epoch, START, 0
        if history.text == "ignored":
            self.state, self.length = history.automaton.follow(self.state, self.length, tokens)
            return
        for token in tokens:
            self.state = history.append(self.state, token)
        self.epoch, self.length = history.epoch, history.automaton.lengths[self.state]

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return the likeliest continuations of the longest suffix that has any that the constraint allows."""
        automaton = self.history.automaton
        state, length = (self.state, self.length) if self.epoch == self.history.epoch else (START, 0)
        ahead = context[self.seen :]
        for found, matched in automaton.suffixes(*automaton.follow(state, length, ahead)):
            if matched < self.history.least:
                break
            tree = grow_tree(found, self.successors, matcher, limit, LEAST_SHARE)
            if len(tree):
                return tree
        return NO_DRAFT

    def successors(self, state: int) -> Iterator[tuple[int, int, float]]:
        """Yield the tokens after a state, the states after them, and how often they follow."""
        counts = self.history.automaton.counts
        total = max(counts[state], 1)
        for token, after in self.history.automaton.transitions[state].items():
            yield token, after, min(1.0, counts[after] / total)
