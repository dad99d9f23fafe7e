"""The trie of the bytes of some texts, with the tokens that lead from node to node.

    root --y--> 1 --e--> 2 --s--> 3 (text 0)        tokens "y", "ye", "yes", "e", "es", "s" are arcs

A tokenisation of a text is a path of tokens from the root to its node. Two tokenisations of the same bytes end at the
same node, but a model gives them different continuations: `spelling_search` therefore keeps token sequences, and uses
this trie to know which tokens may follow.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ..base.cached_property import cached_property

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["OptionArcs", "Ends", "OptionTrie"]

Ends = Literal["token", "prefix"]
"""Whether a text is scored with an end token after it, or as the beginning of a longer text."""


@dataclass(frozen=True, slots=True)
class OptionArcs:
    """The tokens that may follow at a node.

    tokens, targets: int64 [k], the tokens that stay inside the trie, and the nodes that they lead to. covering: for
    each text that some tokens complete or exceed, its number and these tokens (int64); only if ends = "prefix".
    """

    tokens: NDArray[np.int64]
    targets: NDArray[np.int64]
    covering: tuple[tuple[int, NDArray[np.int64]], ...] = ()


class OptionTrie:
    """A byte trie of different texts.

    Parameters
    ----------
    texts : sequence of bytes
        Different texts. If `ends` is "prefix", none may be a prefix of another.
    vocabulary : Vocabulary
        The tokens.
    ends : {"token", "prefix"}
        With "prefix", tokens that complete a text lead to no node: they are `OptionArcs.covering`.

    Attributes
    ----------
    text_at : list of int
        The text that ends at each node, or -1.
    depth : list of int
        The number of bytes before each node.
    """

    def __init__(self, texts: Sequence[bytes], vocabulary: Vocabulary, ends: Ends = "token") -> None:
        self.texts, self.vocabulary, self.ends = list(texts), vocabulary, ends
        self.children: list[dict[int, int]] = [{}]
        self.depth, self.text_at = [0], [-1]
        self.paths = [self._insert(number, text) for number, text in enumerate(self.texts)]
        self.below: list[list[int]] = [[] for _ in self.children]
        for number, path in enumerate(self.paths):
            for node in path:
                self.below[node].append(number)
        self._arcs: dict[int, OptionArcs] = {}

    def _insert(self, number: int, text: bytes) -> list[int]:
        """Add a text; return the nodes along it, the root first."""
        path = [0]
        for byte in text:
            node = self.children[path[-1]].setdefault(byte, len(self.children))
            if node == len(self.children):
                self.children.append({})
                self.depth.append(self.depth[path[-1]] + 1)
                self.text_at.append(-1)
            path.append(node)
        self.text_at[path[-1]] = number
        return path

    @cached_property
    def tokens_by_bytes(self) -> dict[bytes, list[int]]:
        """All ids of each token text: several ids may have the same bytes."""
        found: dict[bytes, list[int]] = {}
        for index, token in enumerate(self.vocabulary.tokens):
            if token:
                found.setdefault(token, []).append(index)
        return found

    @cached_property
    def sorted_tokens(self) -> list[tuple[bytes, int]]:
        """All token texts with their ids, sorted, so that those with a common prefix are adjacent."""
        return sorted((token, index) for index, token in enumerate(self.vocabulary.tokens) if token)

    @cached_property
    def longest(self) -> int:
        """The length of the longest token, in bytes."""
        return max(map(len, self.tokens_by_bytes), default=0)

    def arcs(self, node: int) -> OptionArcs:
        """Return the tokens that may follow at a node; computed once per node."""
        if node not in self._arcs:
            self._arcs[node] = self._find_arcs(node)
        return self._arcs[node]

    def _find_arcs(self, node: int) -> OptionArcs:
        tokens, targets = list[int](), list[int]()
        pending = [(node, b"")]
        while pending:
            at, spelled = pending.pop()
            if spelled and not (self.ends == "prefix" and self.text_at[at] >= 0):
                ids = self.tokens_by_bytes.get(spelled, [])
                tokens += ids
                targets += [at] * len(ids)
            if len(spelled) < self.longest:
                pending += [(child, spelled + bytes((byte,))) for byte, child in self.children[at].items()]
        covering = self._find_covering(node) if self.ends == "prefix" else ()
        return OptionArcs(np.array(tokens, np.int64), np.array(targets, np.int64), covering)

    def _find_covering(self, node: int) -> tuple[tuple[int, NDArray[np.int64]], ...]:
        """Return the tokens that begin with all that is left of a text, for each text below a node."""
        found = []
        for number in self.below[node]:
            left = self.texts[number][self.depth[node] :]
            if left and len(left) <= self.longest:
                ids = self._tokens_from(left)
                if ids:
                    found.append((number, np.array(ids, np.int64)))
        return tuple(found)

    def _tokens_from(self, prefix: bytes) -> list[int]:
        """Return the tokens whose bytes begin with a prefix."""
        ids, at = [], bisect_left(self.sorted_tokens, (prefix, -1))
        while at < len(self.sorted_tokens) and self.sorted_tokens[at][0].startswith(prefix):
            ids.append(self.sorted_tokens[at][1])
            at += 1
        return ids
