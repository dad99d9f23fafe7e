"""Twists: estimates of log h(u), the log-probability that a text that begins with u can be completed, for use by `smc`.

A twist is called with a position, its tokens and the number of remaining tokens. SMC divides its values out again, so
any finite values are correct; better ones need fewer particles. -inf asserts that no text continues the prefix.
The twist that `smc` uses by default is learned, and is not a function of this kind: see `learned_twist`.

    Shortest     a price per byte of the shortest completion: favours texts that can end soon
    Future       exact values of an n-gram or hidden Markov model crossed with the constraint (`research.markov_exact`,
                 `research.hmm_product`)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from .research.hidden_markov import Hmm
from .research.hmm_product import HiddenProduct
from .research.markov_exact import MOST_STATES, Product
from .research.product_exploration import Markov

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher

__all__ = ["Future", "Shortest", "Twist"]

FAR = 60.0
"""Floor of `Future`, in nats below log Z: values must not be -inf where only the n-gram model gives no probability."""


class Twist(Protocol):
    """A function that returns log psi of a text.

    matcher: its position; tokens: its tokens; left: number of remaining tokens, end token included.
    """

    def __call__(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float: ...


class Shortest:
    """A twist of -price nats per byte of a shortest completion."""

    def __init__(self, price: float = 0.5) -> None:
        if not (price >= 0 and np.isfinite(price)):
            raise ArgumentError(f"price must be a number of 0 or more, not {price!r}")
        self.price = price
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        state = matcher.state
        value = self._known.get(state)
        if value is None:
            completion = matcher.shortest_completion()
            value = self._known[state] = -FAR if completion is None else -self.price * len(completion)
        return value


class Future:
    """A twist equal to log h under an n-gram or hidden Markov model: exact for that model, an estimate for others.

    What a truncated product left out has the mean value of what is like it. What it finds impossible may only have been
    left out, too: it has `threshold` times the mean value of all states.
    """

    def __init__(self, product: Product | HiddenProduct) -> None:
        self.product = product
        self.floor = max(product.log_z, -FAR) - FAR

    @classmethod
    def of(
        cls,
        model: Markov | Hmm,
        constraint: Constraint,
        *,
        max_tokens: int,
        most_states: int = MOST_STATES,
        threshold: float = 0.0,
    ) -> Future:
        """Make the twist from the product of a model and a constraint.

        model: for example `NGram.of_texts`, or `NGram.distil` or `Hmm.distil` of the model that is sampled from.
        threshold: of the product, see `Product.of`; 1e-4, say, where a complete one is too large.
        """
        given = {"max_tokens": max_tokens, "most_states": most_states}
        if isinstance(model, Hmm):
            return cls(HiddenProduct(model, constraint, threshold=threshold, **given))
        return cls(Product.of(model, constraint, threshold=threshold, **given))

    def __call__(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        value = self.product.future(matcher, tokens, left)
        return max(value, self.floor) if value > -np.inf else self._unknown(left)

    def _unknown(self, left: int) -> float:
        """Return the value of what the product finds impossible, with `left` tokens remaining."""
        if self.product.threshold == 0:
            return self.floor
        return max(self.product.mean_future(None, left) + float(np.log(self.product.threshold)), self.floor)

    def after(
        self, matcher: Matcher, tokens: Sequence[int], left: int, following: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return log psi of the text extended by each of `following` (int64 [k]): float64 [k], 0 for an end token.

        A token that a truncated product does not follow has the mean value of the state of the constraint that it
        leaves, with one token less.
        """
        mean, unknown = self.product.mean_future(matcher, left - 1), self._unknown(left - 1)
        out = np.full(len(following), max(mean, self.floor) if mean > -np.inf else unknown)
        known, values = self.product.futures(matcher, tokens, left)
        if len(known):
            values = np.where(values > -np.inf, np.maximum(values, self.floor), unknown)
            index = np.minimum(np.searchsorted(known, following), len(known) - 1)
            out = np.where(known[index] == following, values[index], out)
        out[np.isin(following, self.product.automaton.constraint.vocabulary.eos_ids)] = 0.0
        return out
