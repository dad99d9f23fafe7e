"""Draft trees under a constraint: refused branches are cut before the model sees them.

A fork of the Matcher follows each branch. A token that the constraint refuses has probability 0 under the mask, so the
draft could never be accepted there; cutting it costs microseconds, and a row of the model costs far more. The forks are
the positions whose masks the decoding loop needs while it walks the tree: all of them can be filled in one parallel
call while the forward pass runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import TokenRefused
from .draft_source import ROOT, DraftSource, DraftTree, observe_rows

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["FilteredDrafts", "advance_fork", "filter_tree"]


def advance_fork(matcher: Matcher, token: int) -> Matcher | None:
    """Return a fork of `matcher` after one more token; None if it refuses the token or if this is an end token."""
    if token in matcher.constraint.vocabulary.eos_ids:
        return None
    fork = matcher.fork()
    try:
        fork.advance(token)
    except TokenRefused:
        return None
    return fork


def filter_tree(tree: DraftTree, matcher: Matcher, limit: int | None = None) -> tuple[DraftTree, list[Matcher]]:
    """Cut the branches of a draft that the constraint refuses.

    Parameters
    ----------
    tree : DraftTree
        The draft.
    matcher : Matcher
        The constraint after the text so far; it is not changed.
    limit : int, optional
        Most nodes that remain; later ones are cut.

    Returns
    -------
    tree : DraftTree
        Without refused tokens, end tokens and what follows them. The probabilities of sampled nodes stay as they are:
        verification restricts them to the allowed tokens.
    matchers : list of Matcher
        The position after each remaining node.
    """
    tokens: list[int] = []
    parents: list[int] = []
    matchers: list[Matcher] = []
    renamed: dict[int, int] = {ROOT: ROOT}
    for node, (token, parent) in enumerate(zip(tree.tokens, tree.parents)):
        if parent not in renamed or len(tokens) == limit:
            continue
        fork = advance_fork(matcher if parent == ROOT else matchers[renamed[parent]], token)
        if fork is not None:
            renamed[node] = len(tokens)
            tokens.append(token)
            parents.append(renamed[parent])
            matchers.append(fork)
    if len(tokens) == len(tree):
        return tree, matchers
    kept = {renamed[node]: row for node, row in tree.probabilities.items() if node in renamed}
    return DraftTree(tuple(tokens), tuple(parents), kept), matchers


class FilteredDrafts:
    """A `DraftSource` that cuts what the constraint refuses from the drafts of another.

    Parameters
    ----------
    source : DraftSource
        The source.
    """

    def __init__(self, source: DraftSource) -> None:
        self.source = source

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return the allowed part of the draft, at most `limit` nodes."""
        tree = self.source.propose(context, matcher, limit)
        return tree if matcher is None else filter_tree(tree, matcher, limit)[0]

    def observe(self, tokens: Sequence[int]) -> None:
        """Pass the tokens on."""
        self.source.observe(tokens)

    def observe_rows(self, tokens: Sequence[int], rows: NDArray[np.floating[Any]]) -> None:
        """Pass the model's rows on."""
        observe_rows(self.source, tokens, rows)
