"""Twists: guesses of log h(u), how likely a text that begins with u ends well, by which `smc` weighs particles early.

A twist is called with a position, its tokens and the tokens left; what it says is divided out again, so any finite
values are right, and the better they are the fewer particles do. -inf is a verdict: no text goes on from there.

    Shortest     a price on each byte of the shortest completion: steers to texts that can still end
    Future       exact backward values of an n-gram model crossed with the constraint (`markov`)
    Learnt       (`learnt_twist`) for each state of the constraint, the mean of what masked texts lost behind it
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError
from .research.markov_exact import MOST_STATES, Markov, Product

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher

__all__ = ["Future", "Shortest", "Twist"]

FAR = 60.0
"""Nats below the whole by which `Future` floors its values: it may not rule out what only its own model does."""


class Twist(Protocol):
    """matcher: the position; tokens: its text; left: tokens that still fit, end token included. Returns log psi."""

    def __call__(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float: ...


class Shortest:
    """-price nats for each byte of a shortest completion."""

    def __init__(self, price: float = 0.5) -> None:
        if not (price >= 0 and np.isfinite(price)):
            raise ArgumentError(f"price must be a number of 0 or more, not {price!r}")
        self.price = price
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        state = matcher.state
        found = self._known.get(state)
        if found is None:
            completion = matcher.shortest_completion()
            found = self._known[state] = -FAR if completion is None else -self.price * len(completion)
        return found


class Future:
    """log h under an n-gram model: exact for that model, a guess for any other."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.floor = max(product.log_z, -FAR) - FAR

    @classmethod
    def of(cls, model: Markov, constraint: Constraint, *, max_tokens: int, most_states: int = MOST_STATES) -> Future:
        """Crosses them. model: `NGram.of_texts`, or `NGram.distil` of the model that is to be sampled from."""
        return cls(Product.of(model, constraint, max_tokens=max_tokens, most_states=most_states))

    def __call__(self, matcher: Matcher, tokens: Sequence[int], left: int) -> float:
        return max(self.product.future(matcher, tokens, left), self.floor)

    def after(
        self, matcher: Matcher, tokens: Sequence[int], left: int, following: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """log psi of the text with each of `following` (int64 [k]) behind it; an end token has all of it, 0."""
        out = np.full(len(following), self.floor)
        known, values = self.product.futures(matcher, tokens, left)
        if len(known):
            place = np.minimum(np.searchsorted(known, following), len(known) - 1)
            out = np.where(known[place] == following, np.maximum(values[place], self.floor), self.floor)
        out[np.isin(following, self.product.automaton.constraint.vocabulary.eos_ids)] = 0.0
        return out
