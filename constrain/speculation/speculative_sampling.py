"""Masked sampling with drafts: one text of a constraint, with the distribution and the weight of masked sampling.

    until an end token:  draft  ->  rows after all its nodes in one call  ->  walk down the tree

At each node of the walk the token is drawn from that node's own row under the mask (`verification.pick_drafted`); if
the node has a child with this token, the walk goes on there, otherwise the rest of the draft is discarded. A walk thus
yields one token more than it accepts, and no token is drawn from anything but the target's distribution.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..sampling.core.language_model import LanguageModel
from ..sampling.core.masked_sampling import PLAIN, Pick, Proposal, allowed_tokens
from ..sampling.core.results import Draw
from .draft_filter import filter_tree
from .draft_source import NO_DRAFT, ROOT, DraftSource, DraftTree, observe_rows
from .tree_evaluation import rows_after_tree
from .verification import pick_drafted

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher

__all__ = ["SpeculativeDraw", "draw_speculatively"]

LONGEST_DRAFT = 64
"""Most nodes of a draft."""


@dataclass(slots=True)
class SpeculativeDraw:
    """A text in progress, and what it cost.

    tokens: without the end token. logprob, log_weight: in nats, -inf for a text that did not end. model_calls: calls of
    the target. drafted, accepted: tokens of drafts, and those of them that became part of the text.
    """

    tokens: list[int] = field(default_factory=list)
    logprob: float = 0.0
    log_weight: float = 0.0
    model_calls: int = 0
    drafted: int = 0
    accepted: int = 0
    ended: bool = False

    def count(self, choice: Pick) -> None:
        """Add a chosen token to the sums."""
        self.logprob += choice.logprob
        self.log_weight += choice.logprob - choice.logproposal

    def as_draw(self, text: str) -> Draw:
        """Return the finished text."""
        return Draw(tuple(self.tokens), text, self.logprob, self.log_weight)


def draw_speculatively(
    lm: LanguageModel,
    constraint: Constraint,
    source: DraftSource,
    *,
    rng: np.random.Generator,
    max_tokens: int,
    proposal: Proposal = PLAIN,
    prompt: tuple[int, ...] = (),
) -> SpeculativeDraw:
    """Draw one text by masked sampling with drafts.

    As in `sampling.core.masked_sampling.draw_masked`, a text that has not ended before its last token gets an end token
    there if the mask allows one, and weight 0 otherwise.

    Parameters
    ----------
    lm : LanguageModel
        The target, after its prompt.
    constraint : Constraint
        What the text must satisfy.
    source : DraftSource
        What guesses the next tokens. Deterministic drafts do not change the text for a given `rng`; sampled drafts do
        not change its distribution.
    rng : numpy.random.Generator
        Draws the text; the source must have another one.
    max_tokens : int
        Most tokens, end token included.
    proposal : Proposal
        How a token is chosen among the allowed ones.
    prompt : tuple of int
        The tokens of the prompt, for sources that read it.

    Returns
    -------
    SpeculativeDraw
    """
    matcher = constraint.matcher()
    out = SpeculativeDraw()
    while not out.ended:
        left = max_tokens - len(out.tokens)
        tree = NO_DRAFT
        if left > 1:
            tree = source.propose([*prompt, *out.tokens], matcher, min(LONGEST_DRAFT, left - 1))
            tree, _ = filter_tree(tree, matcher, left - 1)
        rows = rows_after_tree(lm, out.tokens, tree, constraint.vocabulary.size)
        out.model_calls += 1
        out.drafted += len(tree)
        start = len(out.tokens)
        before = [*prompt, *out.tokens][-1:]
        observe_rows(source, [*before, *tree.tokens], rows[0 if before else 1 :])
        walk_tree(tree, rows, matcher, out, rng, proposal, max_tokens)
        source.observe(out.tokens[start:])
    return out


def walk_tree(
    tree: DraftTree,
    rows: NDArray[np.floating[Any]],
    matcher: Matcher,
    out: SpeculativeDraw,
    rng: np.random.Generator,
    proposal: Proposal,
    max_tokens: int,
) -> None:
    """Draw tokens along a draft until one is not in it; add them to `out` and advance the matcher with them.

    rows: float [1 + n, V], as `rows_after_tree` returns them.
    """
    ends = matcher.constraint.vocabulary.eos_ids
    node = ROOT
    while True:
        allowed = allowed_tokens(matcher.mask(None))
        if len(out.tokens) == max_tokens - 1:
            allowed = allowed[np.isin(allowed, ends)]
        if not len(allowed):
            out.logprob = out.log_weight = -np.inf
            out.ended = True
            return
        children = tree.children.get(node, {})
        choice = pick_drafted(
            rows[node + 1], allowed, rng, proposal, ends, list(children), tree.probabilities.get(node)
        )
        out.count(choice)
        if choice.token in ends:
            out.ended = True
            return
        matcher.advance(choice.token)
        out.tokens.append(choice.token)
        if choice.token not in children:
            return
        node, out.accepted = children[choice.token], out.accepted + 1
