"""Look-ahead at one text: the probabilities of all next tokens, and the slots that the likely ones lead to.

Only the `FOLLOWED` likeliest allowed tokens are followed to their states. All others together are the *rest*: they
share the value of the slot that the text itself would have with one token less, and one of them is drawn by its
probability under the model. So the sum over all allowed tokens stays exact however few are followed.

The *exit rate* of a text says how readily the model leaves its abstract state: the share of the allowed probability
that leads to other states or ends the text, averaged over the texts before it in the same state, the last one counting
half, the one before it a quarter, and so on. It is NaN for a text whose last token led to another state. A text
*repeats* itself as often as its last tokens are equal to as many before them (`count_repeats`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..engine.abstract_states import AbstractState, abstract_state, abstract_states_after
from .core.language_model import check_mass
from .core.results import log_sum
from .core.token_masses import Masses, draw_index, enumerate_tokens, sum_ends
from .learned_twist.state_numbers import StateNumbers
from .learned_twist.value_table import MOST_REPEATS, PACES, SPEEDS, find_pace
from .particles import ParticleNode, Prefixes, list_logprobs_under

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["FOLLOWED", "ListedRest", "Lookahead", "Rest", "SummedRest", "build_lookahead", "find_slot"]

FOLLOWED = 128
"""Number of next tokens that are followed."""
LONGEST_REPEAT = 3
"""Tokens of a repeated part of a text, at most."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Rest(Protocol):
    """The allowed tokens that were not followed. log_mass: of them together."""

    @property
    def log_mass(self) -> float: ...
    def draw(self, rng: np.random.Generator) -> tuple[int, float]:
        """Draw one by its probability: the token, and its log-probability."""
        ...


@dataclass(frozen=True)
class ListedRest:
    """Few tokens: ids (int64 [k]) and log-probabilities (float64 [k])."""

    tokens: Ints
    logs: Floats
    log_mass: float

    def draw(self, rng: np.random.Generator) -> tuple[int, float]:
        index = draw_index(np.exp(self.logs - self.logs.max()), rng)
        return int(self.tokens[index]), float(self.logs[index])


@dataclass(frozen=True)
class SummedRest:
    """Many tokens, as sums over a row of the model under a mask."""

    masses: Masses

    @property
    def log_mass(self) -> float:
        return self.masses.logmass

    def draw(self, rng: np.random.Generator) -> tuple[int, float]:
        token = self.masses.token_at(rng.random())
        return token, float(self.masses.row[token])


@dataclass(frozen=True)
class Lookahead:
    """What may follow a text.

    tokens, slots: int64 [k], the tokens that were followed, ascending, and the slot after each. logs: float64 [k],
    their log-probabilities. rest: the other allowed tokens, None if there are none. own_slot: slot of the text with one
    token less, which stands for what follows the rest. end_log: log-probability of the end, -inf if the text may not
    end. log_mass: of all that is allowed.
    exit_rate: of the texts with one token more in the same state. nbytes: size in memory.
    """

    tokens: Ints
    logs: Floats
    slots: Ints
    rest: Rest | None
    own_slot: int
    end_log: float
    log_mass: float
    exit_rate: float
    nbytes: int

    def exit_rate_after(self, slot: int) -> float:
        """Return the exit rate of the text after a token that leads to a slot."""
        return self.exit_rate if slot // PACES == self.own_slot // PACES else math.nan

    @property
    def rest_log(self) -> float:
        """Log-probability of the rest."""
        return -np.inf if self.rest is None else self.rest.log_mass


def build_lookahead(
    prefixes: Prefixes, node: ParticleNode, left: int, numbers: StateNumbers, known: tuple[Ints, Ints] | None = None
) -> Lookahead:
    """Build the look-ahead at a node that has a row, with `left` tokens left, end token included.

    known: tokens that an earlier look-ahead at the same text followed, and their slots.
    """
    assert node.row is not None
    tokens, mask, ends = None, None, prefixes.ends
    if left > 1:
        mask = node.matcher.mask()
        tokens = enumerate_tokens(mask)
        if tokens is None:
            for end in ends:
                mask[end >> 5] &= ~_bit(end)
            if not node.matcher.is_complete:
                end_log = -np.inf
            else:
                end_log = sum_ends(node.row, ends)
            masses = Masses(node.row, mask)
            check_mass(masses.logmass)
            if masses.logmass > -np.inf:
                tokens, logs = masses.list_likeliest(FOLLOWED)
                log_mass = masses.logmass if end_log == -np.inf else float(np.logaddexp(masses.logmass, end_log))
                rest: Rest | None = SummedRest(masses.without(tokens))
                return _finish(prefixes.newlines, node, numbers, tokens, logs, rest, end_log, log_mass, known)
            tokens = np.empty(0, np.int64)
    tokens, logs = list_logprobs_under(prefixes, node, mask, tokens)
    log_mass, end_log, rest = log_sum(logs), -np.inf, None
    if len(tokens) and tokens[-1] == ends[0]:
        tokens, logs, end_log = tokens[:-1], logs[:-1], float(logs[-1])
    if len(tokens) > FOLLOWED:
        chosen = np.zeros(len(tokens), np.bool_)
        chosen[np.argpartition(-logs, FOLLOWED)[:FOLLOWED]] = True
        rest = ListedRest(tokens[~chosen], logs[~chosen], log_sum(logs[~chosen]))
        tokens, logs = tokens[chosen], logs[chosen]
    return _finish(prefixes.newlines, node, numbers, tokens, logs, rest, end_log, log_mass, known)


def _finish(
    newlines: NDArray[np.bool_], node: ParticleNode, numbers: StateNumbers, tokens: Ints, logs: Floats,
    rest: Rest | None, end_log: float, log_mass: float, known: tuple[Ints, Ints] | None,
) -> Lookahead:  # fmt: skip
    """Follow the tokens, unless their slots are known."""
    check_mass(log_mass)
    own = find_slot(node, numbers)
    own_state = own // PACES
    if known is not None and np.array_equal(known[0], tokens):
        states = known[1] // PACES
    else:
        states = _follow(node, tokens, numbers, own_state)
    leaves, share = states != own_state, 1.0
    if log_mass > -np.inf:
        exits = float(np.exp(logs - log_mass)[leaves].sum()) + math.exp(end_log - log_mass)
        share = min(1.0, exits)
    rate = share if math.isnan(node.exit_rate) else (node.exit_rate + share) / 2
    slots = PACES * states + np.where(leaves, 0, find_pace(rate, False, 0))
    slots += SPEEDS * (node.has_newline | newlines[tokens])
    for token, repeats in count_repeats(node).items():
        slots[tokens == token] += 2 * SPEEDS * repeats
    own += find_pace(rate, node.has_newline, 0) - own % PACES
    size = 24 * len(tokens) + (rest.masses.nbytes if isinstance(rest, SummedRest) else 0)
    return Lookahead(tokens, logs, slots, rest, own, end_log, log_mass, rate, size)


def find_slot(node: ParticleNode, numbers: StateNumbers) -> int:
    """Return the slot of a text that has not ended."""
    position = _inner(node.matcher)
    state = abstract_state(position)
    number = numbers.find(state)
    if number < 0:
        number = numbers.add(state, tuple(position.tokens))
    repeats = 0 if node.parent is None else count_repeats(node.parent).get(node.token, 0)
    return PACES * number + find_pace(node.exit_rate, node.has_newline, repeats)


def count_repeats(node: ParticleNode) -> dict[int, int]:
    """Return the tokens that would repeat the end of a text, and how often: after one of them, its last k tokens, k up
    to LONGEST_REPEAT, are equal to the k before them, and so on, up to MOST_REPEATS times.
    """
    last, at = list[int](), node
    while at.parent is not None and len(last) < (MOST_REPEATS + 1) * LONGEST_REPEAT - 1:
        last.append(at.token)
        at = at.parent
    found = dict[int, int]()
    for k in range(1, LONGEST_REPEAT + 1):
        same = 1  # the token itself, which is equal to the one k before it
        while same - 1 + k < len(last) and last[same - 1] == last[same - 1 + k]:
            same += 1
        if k <= len(last) and same >= k:
            found[last[k - 1]] = max(found.get(last[k - 1], 0), min(same // k, MOST_REPEATS))
    return found


def _follow(node: ParticleNode, tokens: Ints, numbers: StateNumbers, own: int) -> Ints:
    """Return the number of the state after each of some tokens; `own` after a token without a state."""
    position = _inner(node.matcher)
    states = abstract_states_after(position, tokens)
    found = dict[AbstractState | None, int]()
    for state, token in dict(zip(states, tokens.tolist())).items():  # one token for each state
        number = own if state is None else numbers.find(state)
        if state is not None and number < 0:
            number = numbers.add(state, (*position.tokens, token))
        found[state] = number
    return np.array([found[state] for state in states], np.int64)


def _inner(position: Any) -> Matcher:
    """Return the Matcher of a position, which a checker may have been added to (`post_filtering`)."""
    matcher: Matcher = getattr(position, "matcher", position)
    return matcher


def _bit(token: int) -> np.int32:
    """Return the bit of a token in its word of a mask."""
    return np.array([1 << token % 32], np.uint32).view(np.int32)[0]  # type: ignore[no-any-return]
