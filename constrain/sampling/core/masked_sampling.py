"""Masked sampling: at every step, draw from the model's distribution renormalised over the allowed tokens.

Fast, always valid, and biased: the mass that a prefix loses later is invisible when it is chosen. The proposal is
q(a | u) = p(a | u) / z(u) for allowed tokens a, where z(u) is the mass that the mask leaves; so a text has the weight

    p(x) / q(x) = product over its steps of z(u)

and the logs of z are summed up while it is drawn. Temperature, top-k, top-p and min-p change q only: the weight is
p / q in all cases, which keeps estimates right under any of them that leaves every token possible. See `Draws` for what
a weight means. Renormalised masking is the distribution over the allowed tokens that is closest to the model's in
KL(q || p).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError, check_type
from .language_model import LanguageModel, check_mass, rows_after
from .mass_bounds import MassBounds, bound_by_proposal, sum_found
from .results import Draw, Draws, log_sum
from .sampler_arguments import check_common_arguments, check_counts, check_masks
from .token_masses import Masses, allowed_tokens, enumerate_tokens, mask_of
from .weight_statistics import weight_stats

if TYPE_CHECKING:
    from ...engine.constraint import Constraint

__all__ = ["PLAIN", "Pick", "Proposal", "allowed_tokens", "apply_proposal", "draw_masked", "pick_token", "pick_under"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """How a token is chosen among the allowed ones; the defaults leave the model's distribution as it is.

    Attributes
    ----------
    temperature : float
        Divides the log-probabilities; 0 selects the likeliest token.
    top_k : int, optional
        Only the k likeliest tokens are possible.
    top_p : float, optional
        Only the likeliest tokens that together hold this share of the allowed mass are possible.
    min_p : float, optional
        Only tokens of at least this share of the probability of the likeliest allowed token are possible (Nguyen et
        al. 2024, "Turning Up the Heat: Min-p Sampling").

    defensive : float
        Share of the choices that are made uniformly among the allowed tokens, from 0 to 1: defensive importance
        sampling (Hesterberg 1995). It reaches what the model finds unlikely, and divides no weight by less than 1 -
        defensive per step.

    The five are applied in this order.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    defensive: float = 0.0

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p", "min_p", "defensive"):
            value = getattr(self, name)
            if value is not None:
                check_type(name, value, SupportsFloat, "give a number")
        if not (self.temperature >= 0 and np.isfinite(self.temperature)):
            raise ArgumentError(f"temperature must be a number of 0 or more, not {self.temperature!r}")
        if self.top_k is not None:
            check_counts(1, top_k=self.top_k)
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ArgumentError(f"top_p must be above 0 and at most 1, not {self.top_p!r}")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise ArgumentError(f"min_p must be from 0 to 1, not {self.min_p!r}")
        if not 0 <= self.defensive <= 1:
            raise ArgumentError(f"defensive must be from 0 to 1, not {self.defensive!r}")

    @property
    def is_uncut(self) -> bool:
        """Whether only the temperature changes the model's distribution (none of the other options is set)."""
        return self.top_k is None and self.top_p is None and not self.min_p and not self.defensive

    @property
    def covers_all(self) -> bool:
        """Whether every allowed token that the model gives some probability stays possible."""
        cut = self.temperature == 0 or self.top_k is not None or (self.top_p or 1) < 1 or bool(self.min_p)
        return self.defensive > 0 or not cut


PLAIN = Proposal()
FEW = 64
"""A row is first drawn from without the mask if at most one token in this many is not allowed. That is typical of
free text before a trigger, where only the tokens that would complete the trigger are excluded. Inside a JSON
string, for example, more are excluded."""


@dataclass(frozen=True, slots=True)
class Pick:
    """One chosen token, with logarithms in nats.

    logprob: under the model. logproposal: under the distribution that it was drawn from. logmass: of the tokens that
    the mask allows. For an end token the first two are those of all end tokens together: any of them ends the text.
    """

    token: int
    logprob: float
    logproposal: float
    logmass: float


def pick_token(
    logprobs: NDArray[np.floating[Any]],
    allowed: NDArray[np.int64],
    rng: np.random.Generator,
    proposal: Proposal = PLAIN,
    ends: tuple[int, ...] = (),
) -> Pick:
    """Choose one of `allowed` (int64 [k], ascending, k > 0) with one uniform number of `rng`, or two.

    Where nearly all tokens are allowed, a token is drawn from the whole row first, and again only if it is not allowed.
    The distribution is the same, and in free text the tokens are those that the model writes without a mask (see
    `forms.free_text_forms`).

    logprobs: float [V], the model's row. ends: the end tokens. Raises ValueError for NaN, and for a row that sums to
    more than 1. Where the model gives no allowed token any probability, all are equally likely, with logprob -inf: the
    draw is valid and has weight 0.
    """
    logs = logprobs[allowed].astype(np.float64)
    if np.isnan(logs).any():
        raise ArgumentError("the model's log-probabilities are not numbers (NaN)")
    logmass = log_sum(logs)
    check_mass(logmass)
    probs = apply_proposal(logs if logmass > -np.inf else np.zeros_like(logs), proposal)
    index = -1
    if 0 < len(logprobs) - len(allowed) <= len(logprobs) // FEW and proposal.is_uncut and logmass > -np.inf:
        if np.isnan(logprobs).any():
            raise ArgumentError("the model's log-probabilities are not numbers (NaN)")
        anything = choose_index(apply_proposal(logprobs.astype(np.float64), proposal), rng)
        index_allowed = int(np.searchsorted(allowed, anything))
        if index_allowed < len(allowed) and allowed[index_allowed] == anything:
            index = index_allowed
    if index < 0:
        index = choose_index(probs, rng)
    token = int(allowed[index])
    chosen = np.isin(allowed, ends) if token in ends else slice(index, index + 1)
    return Pick(token, log_sum(logs[chosen]), float(np.log(probs[chosen].sum())), logmass)


def choose_index(probs: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Draw an index in proportion to `probs` (float64 [k]) with one uniform number."""
    cumulative = np.cumsum(probs)
    index = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
    return min(index, int(np.flatnonzero(probs)[-1]))  # rounding can exceed the last possible token


def pick_under(
    logprobs: NDArray[np.floating[Any]],
    mask: NDArray[np.int32],
    rng: np.random.Generator,
    proposal: Proposal = PLAIN,
    ends: tuple[int, ...] = (),
) -> Pick | None:
    """Choose a token that a Mask (int32 [words]) allows, as `pick_token`; None if it allows none.

    Where many tokens are allowed, no array of them is made.
    """
    allowed = enumerate_tokens(mask)
    if allowed is None and proposal == PLAIN:
        masses = Masses(logprobs, mask)
        check_mass(masses.logmass)
        if masses.logmass > -np.inf:
            token = masses.token_at(rng.random())
            logprob = masses.log_of(ends) if token in ends else float(masses.row[token])
            return Pick(token, logprob, logprob - masses.logmass, masses.logmass)
    allowed = allowed_tokens(mask) if allowed is None else allowed
    return pick_token(logprobs, allowed, rng, proposal, ends) if len(allowed) else None


def apply_proposal(logs: NDArray[np.float64], proposal: Proposal) -> NDArray[np.float64]:
    """Return the probabilities (float64 [k], summing to 1) that `proposal` makes of log-masses (float64 [k])."""
    probs: NDArray[np.float64]
    if proposal.defensive:
        probs = apply_proposal(logs, replace(proposal, defensive=0.0))
        return (1 - proposal.defensive) * probs + proposal.defensive / len(probs)
    if proposal.temperature == 0:
        certain = np.zeros_like(logs)
        certain[int(np.argmax(logs))] = 1.0
        return certain
    probs = np.exp((logs - logs.max()) / proposal.temperature)
    if proposal.top_k is not None and proposal.top_k < len(probs):
        probs[np.argsort(-probs, kind="stable")[proposal.top_k :]] = 0.0
    if proposal.top_p is not None and proposal.top_p < 1:
        order = np.argsort(-probs, kind="stable")
        before = np.cumsum(probs[order]) - probs[order]
        probs[order[before >= proposal.top_p * probs.sum()]] = 0.0
    if proposal.min_p is not None:
        probs[probs < proposal.min_p * probs.max()] = 0.0
    probs /= probs.sum()
    return probs


def draw_masked(
    lm: LanguageModel,
    constraint: Constraint,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    proposal: Proposal = PLAIN,
) -> Draws:
    """Draw n independent texts by masked sampling, with one call of the model for all of them at every step.

    A text that has not ended before its last token gets an end token there, if the mask allows one (with the weight of
    that), and weight 0 otherwise: the target is p given L and at most max_tokens tokens. To write one text that is
    closed in time, use `decoding.generation_loop.generate_text`.

    Parameters
    ----------
    lm, constraint, n, rng, max_tokens
        As in `sampling.draw`.
    proposal : Proposal
        How tokens are chosen among the allowed ones.

    Returns
    -------
    Draws
        With the stats model_calls, those of `weight_stats`, and bound, an upper bound of p(L) (`mass_bounds`).

    Raises
    ------
    LimitError
        If max_tokens is less than 1.
    ValueError
        If the model returns rows of another shape, or with NaN.
    """
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "masked")
    check_type("proposal", proposal, Proposal, "give a sampling.Proposal")
    ends = constraint.vocabulary.eos_ids
    last = mask_of(ends, constraint.vocabulary.size)
    matchers = [constraint.matcher() for _ in range(n)]
    logprob, logproposal, log_weight = np.zeros(n), np.zeros(n), np.zeros(n)
    live, calls = list(range(n)), 0
    for left in range(max_tokens, 0, -1):
        if not live:
            break
        rows = rows_after(lm, [matchers[i].tokens for i in live], constraint.vocabulary.size)
        calls += 1
        still = []
        for i, row in zip(live, rows):
            mask = matchers[i].mask(None)
            choice = pick_under(row, mask & last if left == 1 else mask, rng, proposal, ends)
            if choice is None:  # the token limit was reached where the text may not end
                logprob[i] = log_weight[i] = -np.inf
                continue
            logprob[i] += choice.logprob
            logproposal[i] += choice.logproposal
            log_weight[i] += choice.logprob - choice.logproposal
            if choice.token not in ends:
                matchers[i].advance(choice.token)
                still.append(i)
        live = still
    texts = [tuple(matcher.tokens) for matcher in matchers]
    draws = [
        Draw(tokens, constraint.vocabulary.decode(tokens), p, w)
        for tokens, p, w in zip(texts, logprob.tolist(), log_weight.tolist())
    ]
    if proposal == PLAIN and getattr(constraint, "dead", None) is None:
        bounds = bound_by_proposal(zip(texts, logprob.tolist(), logproposal.tolist()))
    else:
        bounds = MassBounds(sum_found(zip(texts, logprob.tolist())), 1.0)
    return Draws.of(draws, model_calls=calls, bound=bounds.bound, **weight_stats(log_weight, gap=bounds.gap))
