"""Draft trees from sources that know likely successors: best-first growth, union, and concatenation.

Best-first growth adds the node whose path has the highest estimated probability until the tree has as many nodes as
requested: the tree with the greatest expected number of accepted tokens among those of its size, if the estimates are
right (Oliaro et al. 2024, SuffixDecoding, section 4; Wang et al. 2024, OPT-Tree). Nodes that the constraint refuses are
skipped while the tree grows, so that none of its size is wasted on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from .draft_filter import advance_fork
from .draft_source import NO_DRAFT, ROOT, DraftTree

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["append_tree", "grow_tree", "merge_trees"]

S = TypeVar("S")


def grow_tree(
    start: S,
    successors: Callable[[S], Iterable[tuple[int, S, float]]],
    matcher: Matcher | None,
    limit: int,
    least: float = 0.0,
) -> DraftTree:
    """Grow a tree of likely continuations, best first.

    Parameters
    ----------
    start : S
        The state after the text so far.
    successors : callable
        Returns (token, state after it, estimated probability of the token) of the likely tokens after a state, all
        tokens different.
    matcher : Matcher or None
        The constraint after the text so far. Tokens that it refuses, and end tokens, are left out.
    limit : int
        Most nodes.
    least : float
        Least estimated probability of a path, from 0 to 1.

    Returns
    -------
    DraftTree
    """
    tokens: list[int] = []
    parents: list[int] = []
    queue: list[tuple[float, int, int, int, S, Matcher | None]] = []
    serial = count()

    def push(node: int, state: S, path: float, position: Matcher | None) -> None:
        for token, after, share in successors(state):
            if path * share >= least:
                heappush(queue, (-path * share, next(serial), node, token, after, position))

    push(ROOT, start, 1.0, matcher)
    while queue and len(tokens) < limit:
        negative, _, parent, token, state, position = heappop(queue)
        if position is not None:
            position = advance_fork(position, token)
            if position is None:
                continue
        tokens.append(token)
        parents.append(parent)
        if len(tokens) < limit:
            push(len(tokens) - 1, state, -negative, position)
    return DraftTree(tuple(tokens), tuple(parents))


def merge_trees(trees: Sequence[DraftTree], limit: int) -> DraftTree:
    """Return the union of deterministic drafts: their common paths once, earlier drafts first, at most `limit` nodes.

    A sampled draft cannot share a node with another draft, whose tokens were not drawn from its distribution: it is
    used if nothing precedes it, and then alone.
    """
    found: dict[tuple[int, int], int] = {}
    for tree in trees:
        if tree.probabilities:
            if not found:
                return tree
            continue
        places = {ROOT: ROOT}
        for node, (token, parent) in enumerate(zip(tree.tokens, tree.parents)):
            if parent not in places:
                continue
            key = places[parent], token
            if key not in found and len(found) == limit:
                continue
            places[node] = found.setdefault(key, len(found))
    return DraftTree(tuple(token for _, token in found), tuple(parent for parent, _ in found)) if found else NO_DRAFT


def append_tree(chain: Sequence[int], tree: DraftTree) -> DraftTree:
    """Return the draft of a chain of tokens after which `tree` follows."""
    shift = len(chain)
    return DraftTree(
        (*chain, *tree.tokens),
        (*range(-1, shift - 1), *(parent + shift for parent in tree.parents)),
        {parent + shift: row for parent, row in tree.probabilities.items()},
    )
