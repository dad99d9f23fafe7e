"""A lattice of answers: a directed acyclic graph in which prefixes with the same future are one node.

Two prefixes of answers are merged if they have the same number of bytes and lead to the same state of the constraint
(recombination, as in the lattices of Xu et al. 2022). Equal states have equal futures, so every path from the start to
the end is a text of the constraint: the answers, and recombinations of their parts. An edge carries the log-probability
of its token in the likeliest answer that has it; the model may give it another one after another prefix.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..base.errors import check_count, check_type
from ..sampling.core.sampler_arguments import check_constraint
from .hypotheses import END, Searchable
from .search_results import FoundAnswer, FoundTokens

if TYPE_CHECKING:
    from ..sampling.checkers import CheckerPosition

__all__ = ["Lattice", "LatticeEdge", "build_lattice"]


@dataclass(frozen=True, slots=True)
class LatticeEdge:
    """A token from one node to another. token: -1 for the end of the text; logprob: nats, see the module."""

    source: int
    target: int
    token: int
    logprob: float


@dataclass(frozen=True, slots=True)
class Lattice:
    """A lattice of texts.

    Attributes
    ----------
    nodes : tuple of bytes
        For each node the text of the prefix with which it was found. Node 0 is the start, the last one the end.
    edges : tuple of LatticeEdge
    """

    nodes: tuple[bytes, ...]
    edges: tuple[LatticeEdge, ...]

    def list_paths(self, most: int = 1000) -> list[tuple[int, ...]]:
        """Return the token sequences of at most `most` paths from the start to the end, without the end token."""
        return list(islice(self.iterate_paths(), check_count("most", most)))

    def iterate_paths(self) -> Iterator[tuple[int, ...]]:
        """Yield the token sequences of all paths, in the order of the edges."""
        leaving: dict[int, list[LatticeEdge]] = {}
        for edge in self.edges:
            leaving.setdefault(edge.source, []).append(edge)
        waiting: list[tuple[int, tuple[int, ...]]] = [(0, ())]
        while waiting:
            node, tokens = waiting.pop()
            for edge in reversed(leaving.get(node, ())):
                if edge.token == END:
                    yield tokens
                else:
                    waiting.append((edge.target, (*tokens, edge.token)))


def build_lattice(constraint: Searchable, answers: Iterable[FoundAnswer]) -> Lattice:
    """Build the lattice of some answers and all their spellings.

    Parameters
    ----------
    constraint : Constraint or Checker
        The constraint of the answers. The states of a Checker are unknown: only prefixes with equal texts are merged.
    answers : iterable of FoundAnswer

    Returns
    -------
    Lattice
    """
    check_constraint(constraint)
    check_type("answers", answers, Iterable, "give the answers of a search")
    found: list[FoundTokens] = []
    for answer in answers:
        check_type("an answer", answer, FoundAnswer, "give the answers of a search")
        found += answer.spellings
    builder = HypothesisMerger(constraint)
    for one in sorted(found, key=lambda spelling: -spelling.logprob):
        builder.add(one)
    return builder.finish()


class HypothesisMerger:
    """Numbers the nodes, likeliest answers first."""

    def __init__(self, constraint: Searchable) -> None:
        self.constraint, self.vocabulary = constraint, constraint.vocabulary
        self.numbers: dict[Hashable, int] = {}
        self.texts: list[bytes] = []
        self.edges: dict[tuple[int, int, int], float] = {}
        self.start = self.node(constraint.matcher(), b"")

    def node(self, position: CheckerPosition, text: bytes) -> int:
        """Return the number of the node of a prefix."""
        state: Any = getattr(position, "state", None) if hasattr(position, "mask") else None
        key = len(text), text if state is None else state
        if key not in self.numbers:
            self.numbers[key] = len(self.texts)
            self.texts.append(text)
        return self.numbers[key]

    def add(self, found: FoundTokens) -> None:
        """Add a token sequence."""
        position, text, node = self.constraint.matcher(), b"", self.start
        for token, step in zip(found.tokens, found.steps):
            position.advance(token)
            text += self.vocabulary.transcript((token,))
            after = self.node(position, text)
            self.edges.setdefault((node, after, token), step)
            node = after
        self.edges.setdefault((node, END, END), found.steps[-1])

    def finish(self) -> Lattice:
        """Return the lattice, with the end as its last node."""
        end = len(self.texts)
        edges = [
            LatticeEdge(source, end if token == END else target, token, logprob)
            for (source, target, token), logprob in self.edges.items()
        ]
        return Lattice((*self.texts, b""), tuple(edges))
