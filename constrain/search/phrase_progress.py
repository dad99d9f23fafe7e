"""How many phrases a text contains, byte by byte: the progress of a hypothesis towards its lexical constraints.

The constraints are a conjunction of clauses, and a clause is a disjunction of phrases (inflections of a word, for
example). One Aho-Corasick automaton (Aho and Corasick 1975) of all phrases reads the text; the state of a hypothesis is
its node and the set of clauses met. Because it reads bytes, a phrase may begin and end inside tokens.

The *bank* of a state counts how much of the constraints is covered, as Grid Beam Search and Dynamic Beam Allocation do
(Hokamp and Liu 2017, section 3.2; Post and Vilar 2018, section 3.1): a clause of m tokens contributes m when it is met,
and q < m when the text ends with the first q tokens of one of its phrases, however these bytes are tokenised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..base.cached_property import cached_property
from ..base.errors import VocabularyError
from .search_options import Clause, read_clauses

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["PhraseProgress", "PhraseState", "TokenMoves"]

PhraseState = tuple[int, int]
"""Node of the automaton, and the clauses met as bits."""
KEPT = 64
"""Nodes whose moves are cached, at 8 bytes per token of the vocabulary."""


@dataclass(frozen=True, slots=True)
class TokenMoves:
    """Where each token leads from a node. classes: int64 [V], the class of each token; moves: for each class the node
    after it, and the clauses met on the way as bits.
    """

    classes: NDArray[np.int64]
    moves: list[tuple[int, int]]

    def states_after(self, met: int) -> list[PhraseState]:
        """Return the state after the tokens of each class, given the clauses met before."""
        return [(node, gained | met) for node, gained in self.moves]


@dataclass(frozen=True, slots=True)
class PartialMatch:
    """A text that ends with the first `depth` bytes of `phrase`, one of the phrases of `clause`."""

    clause: int
    phrase: bytes
    depth: int


class PhraseProgress:
    """An automaton that counts the clauses that a text meets.

    Parameters
    ----------
    clauses : sequence of str, bytes or sequences of these
        At most 63; see `PhraseBanks`.
    vocabulary : Vocabulary, optional
        Counts phrases in its tokens for `bank`; bytes by default.
    """

    start: PhraseState = (0, 0)

    def __init__(self, clauses: Sequence[Clause], vocabulary: Vocabulary | None = None) -> None:
        self.clauses, self.vocabulary = read_clauses(clauses), vocabulary
        self.full = (1 << len(self.clauses)) - 1
        self.ends = {phrase: token_ends(phrase, vocabulary) for clause in self.clauses for phrase in clause}
        self.weights = [max(len(self.ends[phrase]) for phrase in clause) for clause in self.clauses]
        self.build()
        self.moves_from = lru_cache(KEPT)(self.compute_moves)

    def build(self) -> None:
        """Build the trie of all phrases, then its transitions and outputs in order of depth."""
        goto: list[dict[int, int]] = [{}]
        met, partial = [0], list[list[PartialMatch]]([[]])
        for number, clause in enumerate(self.clauses):
            for phrase in clause:
                node = 0
                for depth, byte in enumerate(phrase, 1):
                    if byte not in goto[node]:
                        goto[node][byte] = len(goto)
                        goto.append({})
                        met.append(0)
                        partial.append([])
                    node = goto[node][byte]
                    partial[node].append(PartialMatch(number, phrase, depth))
                met[node] |= 1 << number
        delta = np.zeros((len(goto), 256), np.int64)
        failure, queue = [0] * len(goto), deque([0])
        while queue:
            node = queue.popleft()
            if node:
                delta[node] = delta[failure[node]]
                met[node] |= met[failure[node]]
                partial[node] += partial[failure[node]]
            for byte, child in goto[node].items():
                failure[child] = int(delta[failure[node], byte]) if node else 0
                delta[node, byte] = child
                queue.append(child)
        self.delta, self.met, self.partial = delta, np.array(met, np.int64), partial

    def advance(self, state: PhraseState, data: bytes) -> PhraseState:
        """Return the state after more bytes."""
        node, met = state
        for byte in data:
            node = int(self.delta[node, byte])
            met |= int(self.met[node])
        return node, met

    def count(self, text: bytes) -> int:
        """Return the number of clauses that a text meets."""
        return self.advance(self.start, text)[1].bit_count()

    def is_met(self, state: PhraseState) -> bool:
        """Return whether all clauses are met."""
        return state[1] == self.full

    def bank(self, state: PhraseState) -> int:
        """Return how many tokens of the clauses are covered, see the module."""
        node, met = state
        covered = {number: weight for number, weight in enumerate(self.weights) if met >> number & 1}
        for match in self.partial[node]:
            if not met >> match.clause & 1:
                tokens = sum(end <= match.depth for end in self.ends[match.phrase])
                tokens = min(tokens, self.weights[match.clause] - 1)
                covered[match.clause] = max(covered.get(match.clause, 0), tokens)
        return sum(covered.values())

    @property
    def banks(self) -> int:
        """Number of banks: the largest value of `bank` plus 1."""
        return sum(self.weights) + 1

    def measure(self, state: PhraseState) -> float:
        """Return the number of clauses met, plus the largest fraction of a phrase of another clause that the text ends
        with.
        """
        node, met = state
        open_matches = [match for match in self.partial[node] if not met >> match.clause & 1]
        return met.bit_count() + max((match.depth / len(match.phrase) for match in open_matches), default=0.0)

    def rest_of_phrase(self, state: PhraseState) -> bytes:
        """Return the bytes that complete a phrase of an unmet clause with which the text ends in part, the fewest if
        there are several; b"" if there is none.
        """
        node, met = state
        begun = [match for match in self.partial[node] if not met >> match.clause & 1]
        if not begun:
            return b""
        closest = min(begun, key=lambda match: len(match.phrase) - match.depth)
        return closest.phrase[closest.depth :]

    def missing_phrases(self, state: PhraseState) -> list[bytes]:
        """Return a shortest phrase of each unmet clause."""
        return [min(clause, key=len) for number, clause in enumerate(self.clauses) if not state[1] >> number & 1]

    def compute_moves(self, node: int) -> TokenMoves:
        """Return where each token of the vocabulary leads from a node. Special tokens have no bytes."""
        assert self.vocabulary is not None
        blob, starts, lengths = self.token_arrays
        after = np.full(len(lengths), node, np.int64)
        gained = np.zeros(len(lengths), np.int64)
        for position in range(int(lengths.max(initial=0))):
            active = np.flatnonzero(lengths > position)
            after[active] = self.delta[after[active], blob[starts[active] + position]]
            gained[active] |= self.met[after[active]]
        pairs, classes = np.unique(np.stack([after, gained]), axis=1, return_inverse=True)
        return TokenMoves(classes.reshape(-1), list(zip(*pairs.tolist())))

    @cached_property
    def token_arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """The bytes of all tokens, and where each begins and how long it is."""
        vocabulary = self.vocabulary
        assert vocabulary is not None
        lengths = np.diff(np.asarray(vocabulary.offsets, np.int64))
        lengths[list(vocabulary.names)] = 0
        return np.frombuffer(vocabulary.blob, np.uint8), np.asarray(vocabulary.offsets[:-1], np.int64), lengths


def token_ends(phrase: bytes, vocabulary: Vocabulary | None) -> list[int]:
    """Return the offsets in a phrase at which its tokens end; of every byte if no tokens spell it."""
    if vocabulary is not None:
        try:
            pieces = [vocabulary.spelled(token) for token in vocabulary.tokenize(phrase)]
        except VocabularyError:
            pieces = []
        if b"".join(pieces) == phrase:
            return list(accumulate(len(piece) for piece in pieces))
    return list(range(1, len(phrase) + 1))
