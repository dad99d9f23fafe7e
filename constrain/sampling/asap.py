"""ASAp: masked sampling that learns, so that repeated draws come closer to p given L. As published, with weights.

A walk through the trie of success mass (`success_trie`) takes the next token with probability p(a | u) theta(ua) / m;
each walk lowers theta, and once all prefixes that matter were visited the law is p given L. Early it can be *further*
from it than masking: what was visited is known to lose mass, what was not still counts in full, so it is sought too
much. `exact` removes that, over the same trie. Source: Park et al. 2024, Grammar-Aligned Decoding, section 4.

The weight of a draw, m(root) times the product of m(u) / theta(u), makes it proper at any time (see `walks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .language_model import LanguageModel
from .results import Draws
from .sampler_arguments import check, check_judges, check_masks
from .success_trie import SuccessTrie
from .success_walks import Judge, Laws, Walk

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["draw"]


def draw(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    trie: SuccessTrie | None = None,
    accepts: Judge | None = None,
    viable: Judge | None = None,
) -> Draws:
    """n draws, one after the other, each learning from those before; `trie` goes on learning, new if None.

    A walk that ends nowhere (out of tokens, or refused by a validator, see `walks.Judge`) is a draw of weight 0.
    Raises LimitError if max_tokens < 1 or nothing in L has any probability; ValueError for rows that are no law.
    """
    check(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "asap")
    check_judges(accepts=accepts, viable=viable)
    laws = Laws(lm, constraint, trie, max_tokens, accepts, viable)
    draws = []
    for _ in range(n):
        if laws.trie.full:
            laws.trie.forget()
        walk, success = Walk(laws), None
        while success is None:
            (law,) = laws.at([(walk.node, walk.matcher)])
            success = walk.choose(law, rng) if walk.visit(law) > 0 else False
        draws.append(walk.draw(walk.logratio if success else -np.inf))
        if laws.trie.bound <= 0:
            raise laws.nothing()
    return Draws.of(draws, attempts=len(draws), **laws.stats)
