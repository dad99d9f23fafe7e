"""Drafts from a smaller model of the same vocabulary (Leviathan et al. 2023; Chen et al. 2023), under the constraint.

The draft model's rows are masked by forks of the Matcher, and changed by the same sampling options as the target's, so
that q is as close to p as the models are. Children are drawn without replacement by the Gumbel-top-k trick (Jeon et al.
2024, RSD-C: a constant number of children at each depth); with one child this is the chain of Leviathan et al. Forced
text costs the draft model nothing (`combined_drafts.ForcedFirst`).

End tokens are never drafted: the row after one is worthless. A branch whose draft distribution prefers to end is not
continued; this depends only on tokens before it, so that the distribution of the drawn ones is as stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from ..sampling.core.language_model import LanguageModel, rows_after
from ..sampling.core.masked_sampling import PLAIN, Proposal, allowed_tokens, apply_proposal
from ..sampling.core.token_masses import draw_index
from .draft_filter import advance_fork
from .draft_source import ROOT, DraftTree

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["ModelDrafts", "draw_without_replacement"]

Row = NDArray[np.floating[Any]]


class ModelDrafts:
    """A `DraftSource` for one text, from a LanguageModel of the same vocabulary.

    Parameters
    ----------
    lm : LanguageModel
        The draft model, after the same prompt.
    prompt_length : int
        The number of tokens of the prompt, which precede the text in each context.
    size : int
        The number of tokens of the vocabulary, V.
    ends : tuple of int
        Its end tokens.
    rng : numpy.random.Generator
        Draws the draft; independent of the one that verifies it.
    proposal : Proposal
        The sampling options of the text. At temperature 0 drafts are deterministic: the likeliest tokens.
    branching : sequence of int
        The number of children of each node by depth; the last number holds for all further depths.

    Raises
    ------
    ArgumentError
        If `branching` is empty or has numbers below 1.
    """

    def __init__(
        self,
        lm: LanguageModel,
        *,
        prompt_length: int,
        size: int,
        ends: tuple[int, ...],
        rng: np.random.Generator,
        proposal: Proposal = PLAIN,
        branching: Sequence[int] = (1,),
    ) -> None:
        if not branching or min(branching) < 1:
            raise ArgumentError(f"branching is {list(branching)}: give numbers of children of 1 or more")
        self.lm, self.prompt_length, self.size, self.ends = lm, prompt_length, size, ends
        self.rng, self.proposal, self.branching = rng, proposal, tuple(branching)

    def propose(self, context: Sequence[int], matcher: Matcher | None, limit: int) -> DraftTree:
        """Return a tree of `limit` tokens at most, drawn depth by depth with one call of the draft model for each."""
        tokens: list[int] = []
        parents: list[int] = []
        probabilities: dict[int, NDArray[np.float64]] = {}
        level = [Branch(ROOT, [int(token) for token in context[self.prompt_length :]], matcher)]
        for depth in range(limit):
            if not level or len(tokens) == limit:
                break
            rows = rows_after(self.lm, [branch.text for branch in level], 1)
            width = self.branching[min(depth, len(self.branching) - 1)]
            following: list[Branch] = []
            for row, branch in zip(rows, level):
                share = self.draft_distribution(row[: self.size], branch.matcher)
                count = min(width, limit - len(tokens))
                if share is None or not count:
                    continue
                if self.proposal.temperature > 0:
                    probabilities[branch.node] = share
                for token in self.choose_children(share, count):
                    following += branch.extend(len(tokens), token)
                    tokens.append(token)
                    parents.append(branch.node)
            level = following
        return DraftTree(tuple(tokens), tuple(parents), probabilities)

    def draft_distribution(self, row: Row, matcher: Matcher | None) -> NDArray[np.float64] | None:
        """Return the probabilities (float64 [V]) of the draft's next token after a row (float [V]); None if the draft
        ends here. At temperature 0, those of temperature 1, whose order decides.
        """
        allowed = np.arange(self.size) if matcher is None else allowed_tokens(matcher.mask(None))
        allowed = allowed[allowed < len(row)]  # models with one tokenizer may have differently padded vocabularies
        logs = row[allowed].astype(np.float64)
        if logs.max(initial=-np.inf) == -np.inf:
            return None
        share = np.zeros(self.size)
        share[allowed] = apply_proposal(logs, PLAIN if self.proposal.temperature == 0 else self.proposal)
        ending = float(share[list(self.ends)].sum())
        share[list(self.ends)] = 0.0
        total = float(share.sum())
        return None if ending > 0.5 or total <= 0 else share / total

    def choose_children(self, share: NDArray[np.float64], count: int) -> list[int]:
        """Return at most `count` tokens: the likeliest at temperature 0, otherwise drawn without replacement."""
        if self.proposal.temperature > 0:
            return draw_without_replacement(share, count, self.rng)
        best = np.argsort(-share, kind="stable")[:count]
        return [int(token) for token in best if share[token] > 0]

    def observe(self, tokens: Sequence[int]) -> None:
        """Do nothing: each context has all tokens, and the draft model's own cache finds them."""


@dataclass(frozen=True)
class Branch:
    """A path of the draft. node: its last node. text: the text with the path. matcher: the position after it."""

    node: int
    text: list[int]
    matcher: Matcher | None

    def extend(self, node: int, token: int) -> list[Branch]:
        """Return the branch with one more token; none if the constraint refuses it."""
        after = None if self.matcher is None else advance_fork(self.matcher, token)
        if self.matcher is not None and after is None:
            return []
        return [Branch(node, [*self.text, token], after)]


def draw_without_replacement(weights: NDArray[np.float64], count: int, rng: np.random.Generator) -> list[int]:
    """Draw at most `count` different indices, one after the other, each in proportion to the weights that are left.

    One exponential random number per positive weight, divided by it, is an arrival time; the first arrivals are such
    draws, in this order (the Gumbel-top-k trick: Vieira 2014; Kool et al. 2019).

    Parameters
    ----------
    weights : ndarray of float64, shape (k,)
        Not negative, not all 0.
    count : int
        Number of indices; fewer are returned if fewer weights are positive.
    rng : numpy.random.Generator

    Returns
    -------
    list of int
    """
    if count == 1:
        return [draw_index(weights, rng)]
    possible = np.flatnonzero(weights)
    arrivals = rng.standard_exponential(len(possible)) / weights[possible]
    return [int(index) for index in possible[np.argsort(arrivals)[:count]]]
