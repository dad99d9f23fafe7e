"""A model that records what was asked of it, so that what a sampler has not seen is known exactly; and scouts.

Any sampler asks the model for the rows of the prefixes that it visits. `ExploredModel` stands between the two and keeps
a SuccessTrie of these prefixes, with the masses that the mask allows. `bounds` are then those of `core.mass_bounds`, by
the texts that may end at a visited prefix and by all prefixes never visited. `explore` sends scouts: it visits the
unvisited prefixes of the largest mass, one after the other, so that a mode behind tokens that the model finds unlikely
is found where little else is unknown. Scouts only teach the bounds; they are no draws, so estimates stay unbiased.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .core.language_model import LanguageModel, rows_after
from .core.mass_bounds import UNKNOWN, MassBounds
from .core.token_masses import allowed_tokens
from .success_trie import END, SuccessTrie, TrieNode
from .success_walks import build_prefix_distribution

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher

__all__ = ["ExploredModel"]

TOGETHER = 32
"""Prefixes that scouts visit in one call of the model."""
WIDEST = 256
"""Number of the likeliest next tokens of a prefix that scouts consider."""
ENOUGH = 1e-3
"""Unseen share of Z below which scouts stop."""

ROUNDING = 1e-12
"""Relative error of sums of products of double precision, by which the bounds are widened."""
SMALLEST = float(np.finfo(np.float64).tiny)
"""Products below it lose their precision, and at last become 0: bounds do not go below it."""

Tokens = tuple[int, ...]


class ExploredModel:
    """A LanguageModel that passes the rows of another one on and records them.

    Parameters
    ----------
    lm, constraint, max_tokens
        As in `sampling.draw`; the constraint must compute masks.
    checked : bool
        Whether a text that the mask lets end may still be refused, by a validator that is an option of the sampler.
        Then only texts given to `add_text` are found.
    max_bytes : int
        Memory budget of the trie.
    """

    def __init__(
        self, lm: LanguageModel, constraint: Constraint, max_tokens: int, *, checked: bool, max_bytes: int = 256 << 20
    ) -> None:
        self.lm, self.constraint, self.max_tokens, self.checked = lm, constraint, max_tokens, checked
        self.trie = SuccessTrie(max_tokens, max_bytes=max_bytes)
        self.matchers: dict[TrieNode, Matcher] = {self.trie.root: constraint.matcher()}
        self.rows = 0

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the model itself, such as `reorder`."""
        return getattr(self.lm, name)

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.floating[Any]]:
        """As every LanguageModel."""
        rows = rows_after(self.lm, prefixes, self.constraint.vocabulary.size)
        self.rows += len(prefixes)
        for prefix, row in zip(prefixes, rows):
            self.record_row(prefix, row)
        return rows

    # ---- recording ---------------------------------------------------------------------------------------------------

    def record_row(self, prefix: Sequence[int], row: NDArray[np.floating[Any]]) -> TrieNode | None:
        """Record the row after a prefix. Return its node; None if it was recorded before, the prefix before it was not,
        or the trie is full.
        """
        node = self.find_node(prefix)
        if node is None or node.visited or self.trie.full:
            return None
        allowed = allowed_tokens(self.matchers[node].mask(None))
        ends = self.constraint.vocabulary.eos_ids
        if node.depth + 1 >= self.max_tokens:
            allowed = allowed[np.isin(allowed, ends)]
        distribution = build_prefix_distribution(row, allowed, ends)
        self.trie.cache_distribution(node, distribution)
        node.rest = float(distribution.probs.sum())
        if not self.checked and len(distribution.tokens) and distribution.tokens[0] == END:
            self.trie.child(node, distribution, 0).rest = 1.0
        return node

    def record_dead_end(self, prefix: Sequence[int]) -> bool:
        """Record a prefix at the last position, if the text may not end there, as one that nothing follows. Return
        whether it is one. No row of the model is needed for it.
        """
        node = self.find_node(prefix) if len(prefix) + 1 >= self.max_tokens else None
        if node is None or node.visited or self.matchers[node].is_complete:
            return False
        node.rest = 0.0
        self.rows += 1  # of what a sampler visits, which scouts are relative to
        return True

    def find_node(self, prefix: Sequence[int]) -> TrieNode | None:
        """Return the node of a prefix, which is made if only its last token is new; None if there is none."""
        node = self.trie.root
        for depth, token in enumerate(prefix):
            child = node.children.get(token)
            if child is None:
                child = self.add_child(node, token) if depth == len(prefix) - 1 else None
            if child is None:
                return None
            node = child
        return node

    def add_child(self, node: TrieNode, token: int) -> TrieNode | None:
        """Return a new child of a visited node; None if the token is not allowed, or the distribution was evicted."""
        distribution = self.trie.cached_distribution(node)
        if distribution is None:
            return None
        index = int(np.searchsorted(distribution.tokens, token))
        if index == len(distribution.tokens) or distribution.tokens[index] != token:
            return None
        child = self.trie.child(node, distribution, index)
        if token != END:
            matcher = self.matchers[node].fork()
            matcher.advance(token)
            self.matchers[child] = matcher
        return child

    def add_text(self, tokens: Sequence[int]) -> None:
        """Record that a text, given without its end token, is in L."""
        end = self.find_node((*tokens, END))
        if end is not None:
            end.rest = 1.0

    # ---- what is known -----------------------------------------------------------------------------------------------

    def bounds(self) -> MassBounds:
        """Return the bounds of Z by everything recorded so far."""
        if not self.trie.root.visited:
            return UNKNOWN
        values = dict[TrieNode, tuple[float, float]]()
        for node in reversed(list(self.trie.nodes())):
            children = [(child.prob, values[child]) for child in node.children.values()]
            if not node.visited or (node.token == END and node.parent is not None):
                values[node] = (node.rest, node.rest) if node.visited else (0.0, 1.0)
                continue
            known = math.fsum(prob * one for prob, (_, one) in children)
            values[node] = math.fsum(prob * zero for prob, (zero, _) in children), node.rest + known
        found, bound = values[self.trie.root]
        found = found * (1 - ROUNDING) if found >= SMALLEST else 0.0
        return MassBounds(found, max(bound * (1 + ROUNDING), SMALLEST))

    def list_texts(self) -> dict[Tokens, float]:
        """Return the texts found, as tokens without an end token, with their probabilities p(x)."""
        texts, stack = dict[Tokens, float](), [(self.trie.root, Tokens(), 1.0)]
        while stack:
            node, tokens, prob = stack.pop()
            for child in node.children.values():
                if child.token != END:
                    stack.append((child, (*tokens, child.token), prob * child.prob))
                elif child.visited:
                    texts[tokens] = prob * child.prob
        return texts

    def sum_by_text(self, most: int) -> dict[str, float]:
        """Return the likeliest texts found, at most `most` token sequences, with the sum of their probabilities."""
        texts = self.list_texts()
        likeliest = sorted(texts, key=texts.__getitem__, reverse=True)[:most]
        masses = dict[str, float]()
        for tokens in likeliest:
            text = self.constraint.vocabulary.decode(tokens)
            masses[text] = masses.get(text, 0.0) + texts[tokens]
        return masses

    # ---- scouts ------------------------------------------------------------------------------------------------------

    def explore(self, rows: int) -> int:
        """Visit at most `rows` unvisited prefixes, those of the largest mass first. Return how many were visited.

        Stop early when what is unvisited is at most ENOUGH of the mass found. A model with a cache that has to be
        reordered is not asked: it expects prefixes that extend those of the call before.
        """
        if not self.trie.root.visited or hasattr(self.lm, "reorder"):
            return 0
        queue, visited, bounds = ScoutQueue(self), 0, self.bounds()
        found, unknown = bounds.found, bounds.bound - bounds.found
        while visited < rows and not self.trie.full and unknown > ENOUGH * found:
            prefixes = queue.take(min(TOGETHER, rows - visited))
            if not prefixes:
                break
            dead = {prefix for prefix in prefixes if self.record_dead_end(prefix)}
            unknown -= math.fsum(queue.reach[prefix] for prefix in dead)
            prefixes = [prefix for prefix in prefixes if prefix not in dead]
            if not prefixes:
                continue
            answered = rows_after(self.lm, [list(prefix) for prefix in prefixes], self.constraint.vocabulary.size)
            visited += len(prefixes)
            for prefix, row in zip(prefixes, answered):
                node, reach = self.record_row(prefix, row), queue.reach[prefix]
                if node is None:
                    continue
                queue.add(node, prefix)
                ending = math.fsum(child.prob for child in node.children.values() if child.visited)
                found, unknown = found + reach * ending, unknown - reach * (1 - node.rest)
        return visited


class ScoutQueue:
    """The unvisited prefixes of an ExploredModel whose distribution is cached, by mass: a heap with one entry per
    visited prefix, the likeliest of its next tokens that is left.
    """

    def __init__(self, model: ExploredModel) -> None:
        self.trie, self.order = model.trie, count()
        self.heap: list[tuple[float, int, Tokens, float, list[tuple[int, float]]]] = []
        self.reach: dict[Tokens, float] = {}
        stack = [(self.trie.root, Tokens(), 1.0)]
        while stack:
            node, tokens, reach = stack.pop()
            self.reach[tokens] = reach
            self.add(node, tokens)
            stack += [
                (child, (*tokens, child.token), reach * child.prob)
                for child in node.children.values()
                if child.token != END and child.visited
            ]

    def add(self, node: TrieNode, tokens: Tokens) -> None:
        """Add the next tokens of a node that was just visited."""
        distribution = self.trie.cached_distribution(node)
        if distribution is None:
            return
        probs = distribution.probs.copy()
        for child in node.children.values():
            if child.visited or child.token == END:
                probs[np.searchsorted(distribution.tokens, child.token)] = 0.0
        if distribution.tokens[:1].tolist() == [END]:
            probs[0] = 0.0
        index = np.argsort(-probs, kind="stable")[:WIDEST]
        listed = [(int(distribution.tokens[i]), float(probs[i])) for i in index if probs[i] > 0]
        self.push(tokens, self.reach[tokens], listed[::-1])

    def push(self, tokens: Tokens, reach: float, left: list[tuple[int, float]]) -> None:
        """Queue the likeliest of the next tokens that are left of a prefix."""
        if left:
            heapq.heappush(self.heap, (-reach * left[-1][1], next(self.order), tokens, reach, left))

    def take(self, most: int) -> list[Tokens]:
        """Return the next prefixes, at most `most`."""
        taken: list[Tokens] = []
        while self.heap and len(taken) < most:
            _, _, tokens, reach, left = heapq.heappop(self.heap)
            token, prob = left.pop()
            taken.append((*tokens, token))
            self.reach[taken[-1]] = reach * prob
            self.push(tokens, reach, left)
        return taken
