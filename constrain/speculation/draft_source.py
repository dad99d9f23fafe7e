"""Drafts: guesses of the next tokens, which the model verifies in one forward pass (Leviathan et al. 2023, section 2).

A draft is a tree (SpecInfer, Miao et al. 2024, section 4): a node is a token, and the path from the root to it is a
guess of how the text goes on. A chain is a tree in which every node has one child. The model computes its rows after
all nodes in one pass with a tree mask; the decoding loop then samples along the tree, so that drafts change how many
passes a text takes, and never what is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..base.cached_property import cached_property
from ..base.errors import ArgumentError

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = [
    "NO_DRAFT",
    "ROOT",
    "DraftSource",
    "DraftTree",
    "EmptyDrafts",
    "list_paths",
    "observe_batch",
    "observe_draft_rows",
    "observe_rows",
]

ROOT = -1
"""The parent of the first tokens of a draft: the text so far."""


@dataclass(frozen=True)
class DraftTree:
    """A tree of guessed tokens in topological order.

    Attributes
    ----------
    tokens : tuple of int, length n
        The tokens of the nodes. Siblings have different tokens.
    parents : tuple of int, length n
        The parent of each node, smaller than its own index, or -1 (`ROOT`) for a first token.
    probabilities : mapping of int to ndarray of float64, shape (V,)
        For a node whose children were sampled (or for `ROOT`): the distribution that they were drawn from, one after
        the other, without replacement. Nodes with deterministic children are absent. See `verification`.

    Raises
    ------
    ArgumentError
        If the lengths differ or a parent is not an earlier node.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    probabilities: Mapping[int, NDArray[np.float64]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.tokens) != len(self.parents):
            raise ArgumentError(f"a draft has {len(self.tokens)} tokens and {len(self.parents)} parents")
        wrong = next((node for node, parent in enumerate(self.parents) if not ROOT <= parent < node), None)
        if wrong is not None:
            raise ArgumentError(
                f"node {wrong} of a draft has parent {self.parents[wrong]}: give an earlier node or {ROOT}"
            )

    @classmethod
    def chain(cls, tokens: Sequence[int]) -> DraftTree:
        """Return the draft of one continuation."""
        return cls(tuple(tokens), tuple(range(-1, len(tokens) - 1)))

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def children(self) -> dict[int, dict[int, int]]:
        """The children of each node that has any, `ROOT` included: a dict from token to node."""
        found: dict[int, dict[int, int]] = {}
        for node, (token, parent) in enumerate(zip(self.tokens, self.parents)):
            found.setdefault(parent, {})[token] = node
        return found

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """The number of ancestors of each node; 0 for a first token."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(0 if parent == ROOT else depths[parent] + 1)
        return tuple(depths)

    @property
    def is_chain(self) -> bool:
        """Whether the draft is one continuation."""
        return all(parent == node - 1 for node, parent in enumerate(self.parents))

    def path(self, node: int) -> list[int]:
        """Return the nodes from a first token to `node`."""
        found: list[int] = []
        while node != ROOT:
            found.append(node)
            node = self.parents[node]
        return found[::-1]


NO_DRAFT = DraftTree()
"""The draft without tokens."""


def list_paths(prefix: Sequence[int], tree: DraftTree) -> list[list[int]]:
    """Return the texts that a draft stands for: the prefix, and the prefix with the path to each node."""
    texts = [list(prefix)]
    for token, parent in zip(tree.tokens, tree.parents):
        texts.append([*texts[parent + 1], token])
    return texts


@runtime_checkable
class DraftSource(Protocol):
    """What guesses the next tokens of one text. A source belongs to one text and is used by one thread at a time."""

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return a draft of at most `limit` tokens.

        Parameters
        ----------
        context : sequence of int
            The token ids of the prompt and of the text so far.
        matcher : Matcher or None
            The state of the constraint after the text so far; None without a constraint. It must be left as it is:
            fork it to look ahead. Tokens that it refuses are useless but do no harm.
        limit : int
            Most tokens, at least 1.

        Returns
        -------
        DraftTree
            `NO_DRAFT` if the source has no guess.
        """
        ...

    def observe(self, tokens: Sequence[int]) -> None:
        """Take note of tokens that were added to the text since the last call, in order."""
        ...


class EmptyDrafts:
    """The `DraftSource` without guesses."""

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return `NO_DRAFT`."""
        return NO_DRAFT

    def observe(self, tokens: Sequence[int]) -> None:
        """Ignore the tokens: there is nothing to learn."""


def observe_rows(source: DraftSource, tokens: Sequence[int], rows: NDArray[np.floating[Any]]) -> None:
    """Show a source the model's rows (float [n, V]) after tokens (n), if it has a method `observe_rows`."""
    learn = getattr(source, "observe_rows", None)
    if learn is not None:
        learn(tokens, rows)


def observe_batch(source: DraftSource, texts: int) -> None:
    """Tell a source how many texts the batch has, if it has a method `observe_batch` (`adaptive_drafts`)."""
    note = getattr(source, "observe_batch", None)
    if note is not None:
        note(texts)


def observe_draft_rows(
    source: DraftSource, context: Sequence[int], draft: DraftTree, rows: NDArray[np.floating[Any]]
) -> None:
    """Show a source that learns from the model's rows (`token_recycling`) those of a step.

    Parameters
    ----------
    source : DraftSource
        The source. One without a method `observe_rows` learns nothing.
    context : sequence of int
        The tokens before the draft.
    draft : DraftTree
        n nodes.
    rows : ndarray of float, shape (1 + n, V)
        Scores of the next token after the context and after each node, whose order is that of the probabilities.
    """
    before = list(context[-1:])
    observe_rows(source, [*before, *draft.tokens], rows[1 - len(before) :])
