"""AWRS for a batch of rows on any device: keys and the first few tokens of each race there, checks of those here.

    logits [B, V]  ->  clocks Exp(1) / p  ->  the k that go off first, by row  ->  check(row, token) on the host
                            ^                                                          |
                            +---- rows that need more: fresh clocks on what is left ---+

The order of arrival is a draw without replacement, and clocks have no memory: to wind those anew that have not gone off
is the same race (see `sampling.race`). So k tokens of each row, not V, cross to the host, most often once. Weights are
those of `sampling.rejection.DesRaj` without slack: the mean of `terms` terms after the first valid token, of mean Z
given the token, hence E[exp(logweight) 1{token = a}] = p(a) [a valid] for every row, whatever the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from ..sampling.awrs import Step

__all__ = ["step_batch"]

FEW = 32
"""Tokens of each row that are fetched at a time: beyond the median of checks, and one small copy."""


@dataclass(slots=True)
class Search:
    """The race of one row, as far as it was seen. used, valid: mass of the tokens checked, and of the valid ones."""

    token: int | None = None
    terms: list[float] = field(default_factory=list)
    used: float = 0.0
    valid: float = 0.0
    checks: int = 0
    last: float = 0.0

    def see(self, token: int, mass: float, left: float, ok: bool) -> None:
        """One more arrival; left: mass of all that had not arrived before it."""
        term = self.valid + left * ok
        if self.token is not None:
            self.terms.append(term)
        elif ok:
            self.token, self.last = token, term
        self.valid += mass * ok
        self.used += mass
        self.checks += 1


def step_batch(
    logits: torch.Tensor,
    check: Callable[[int, int], bool],
    *,
    generator: torch.Generator | None = None,
    terms: int = 4,
    budget: int | None = None,
    allowed: torch.Tensor | None = None,
    few: int = FEW,
) -> list[Step]:
    """A token that passes `check(row, token)` for each row, and its weight: `sampling.awrs.Step`, B of them.

    logits: float [B, V], of any device and scale (they are normalised first; the weight counts only what `allowed`
    leaves). budget: most checks of a row. allowed: bool [B, V], the only tokens that are tried, from a sound mask.
    generator: of the device of the logits. few: tokens of a row fetched at a time. A row is asked about no token twice.
    Raises ValueError for NaN, for rows without any mass, and for numbers that make no sense.
    """
    if logits.ndim != 2 or not logits.is_floating_point():
        raise ValueError(f"logits are {logits.dtype}{list(logits.shape)}: floats [rows, tokens] were asked for")
    if terms < 1 or few < 1 or (budget is not None and budget < 1):
        raise ValueError(f"terms, few and budget are 1 or more, not {terms!r}, {few!r} and {budget!r}")
    logs = torch.log_softmax(logits.double(), dim=-1)
    if torch.isnan(logs).any():
        raise ValueError("the logits hold NaN, or a row without any mass")
    if allowed is not None:
        logs = logs.masked_fill(~allowed, -math.inf)
    most = math.inf if budget is None else budget
    searches = [Search() for _ in range(len(logs))]
    rows = torch.arange(len(logs), device=logs.device)
    while len(rows):
        count = int(min(few, logs.shape[1]))
        clocks = torch.empty_like(logs).exponential_(generator=generator).log_() - logs  # log of Exp(1) / p
        tokens = clocks.topk(count, dim=-1, largest=False).indices
        masses = logs.gather(1, tokens).exp()
        left = logs.exp().sum(dim=-1)
        undone = []
        for at, (row, named, weighed, rest) in enumerate(
            zip(rows.tolist(), tokens.tolist(), masses.tolist(), left.tolist())
        ):
            if not arrivals(searches[row], row, named, weighed, rest, check, terms, most):
                undone.append(at)
        kept = torch.tensor(undone, dtype=torch.long, device=logs.device)
        rows, logs = rows[kept], logs[kept].scatter(1, tokens[kept], -math.inf)
    return [finished(search, terms, most) for search in searches]


def arrivals(
    search: Search,
    row: int,
    tokens: list[int],
    masses: list[float],
    left: float,
    check: Callable[[int, int], bool],
    terms: int,
    most: float,
) -> bool:
    """Takes tokens in order; whether the search is over. left: mass of the row's tokens that have not arrived."""
    # What is left behind the k-th is summed from the far end, so that nothing is lost where it is small.
    behind = [max(left - math.fsum(masses), 0.0)]
    for mass in reversed(masses):
        behind.append(behind[-1] + mass)
    for token, mass, before in zip(tokens, masses, reversed(behind[1:])):
        if mass <= 0:
            return True  # all that have any mass have arrived
        if search.checks >= most or len(search.terms) >= terms:
            return True
        search.see(token, mass, before, bool(check(row, token)))
    return search.checks >= most or len(search.terms) >= terms or behind[0] <= 0


def finished(search: Search, terms: int, most: float) -> Step:
    """The token and its weight. Terms that were promised and not seen, because no token is left, are the valid mass
    itself; none are promised beyond the budget."""
    if search.token is None:
        return Step(None, -math.inf, search.checks)
    first = search.checks - len(search.terms)
    promised = int(min(terms, most - first))
    if not promised:
        return Step(search.token, math.log(search.last), search.checks)
    seen = math.fsum(search.terms) + (promised - len(search.terms)) * search.valid
    return Step(search.token, math.log(seen / promised), search.checks)
