"""ASAp: masked sampling that learns from its draws, so that later ones come closer to p given L (Park et al. 2024).

A walk through the trie of success masses (`success_trie`) takes the next token with probability p(a | u) theta(ua) / m.
Each walk lowers theta; once all relevant prefixes were visited, the distribution is p given L. Before that it can be
*further* from it than masking: visited prefixes have lost mass, while others still count in full and are chosen too
often. `trie_rejection` avoids this with the same trie. Source: Park et al. 2024, Grammar-Aligned Decoding, section 4.
The weight of a draw, m(root) times the product of m(u) / theta(u), makes it properly weighted at any time (see
`success_walks`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .core.language_model import LanguageModel
from .core.results import Draws
from .core.sampler_arguments import check_common_arguments, check_masks, check_validators
from .success_trie import SuccessTrie
from .success_walks import DistributionSource, Validator, Walk

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["draw_asap"]


def draw_asap(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    trie: SuccessTrie | None = None,
    accepts: Validator | None = None,
    viable: Validator | None = None,
) -> Draws:
    """Draw n texts one after the other, each of which learns from those before.

    A walk that does not end (out of tokens, or refused by a validator) is a draw of weight 0.

    Parameters
    ----------
    lm, constraint, n, rng, max_tokens
        As in `sampling.draw`.
    trie : SuccessTrie, optional
        Success masses learnt so far, updated in place; a new trie by default.
    accepts : callable, optional
        Validator of complete texts, called with their bytes; see `success_walks.Validator`.
    viable : callable, optional
        Validator of prefixes, called with their bytes. It may refuse only prefixes that no accepted text continues.

    Returns
    -------
    Draws

    Raises
    ------
    LimitError
        If max_tokens is less than 1, or no text of the constraint has any probability.
    ValueError
        If the model returns no distribution.
    """
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "asap")
    check_validators(accepts=accepts, viable=viable)
    source = DistributionSource(lm, constraint, trie, max_tokens, accepts, viable)
    draws = []
    for _ in range(n):
        if source.trie.full:
            source.trie.evict_nodes()
        walk, success = Walk(source), None
        while success is None:
            (distribution,) = source.distributions_at([(walk.node, walk.matcher)])
            success = walk.choose(distribution, rng) if walk.visit(distribution) > 0 else False
        draws.append(walk.draw(walk.logratio if success else -np.inf))
        if source.trie.bound <= 0:
            raise source.no_text_error()
    return Draws.of(draws, attempts=len(draws), **source.stats)
