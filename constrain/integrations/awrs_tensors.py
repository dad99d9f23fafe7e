"""AWRS for a batch of rows on any device: keys and the first few tokens of each race there, checks of those here.

    logits [B, V]  ->  clocks Exp(1) / p  ->  the k that go off first, by row  ->  check(row, token) on the host
                            ^                                                          |
                            +---------- rows that need more: the next k of these ------+

The order of arrival is a draw without replacement, and clocks have no memory: to wind those anew that have not gone off
is the same race (see `sampling.exponential_race`). So k tokens of each row, not V, cross to the host, most often once.
On a card a kernel runs the race (`cuda.race`), and goes on where it stopped; elsewhere torch's operations do. Weights
are those of `sampling.token_rejection.DesRaj` without slack: the mean of `terms` terms after the first valid token, of
mean Z given the token, hence E[exp(log_weight) 1{token = a}] = p(a) [a valid] for every row, whatever the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch

from ..base.errors import ArgumentError
from ..sampling.awrs import WeightedToken

__all__ = ["BatchRace", "TorchRace", "step_batch"]

FEW = 32
"""Tokens of each row that are fetched at a time: beyond the median of checks, and one small copy."""


@dataclass(slots=True)
class RowSearch:
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


class BatchRace(Protocol):
    """Races of a batch of rows."""

    def arrivals(self, rows: list[int]) -> tuple[list[list[int]], list[list[float]], list[float]]:
        """Of each of these rows the next tokens, in order; their masses, of a law that sums to 1; and the mass of all
        that had not arrived before. Tokens of mass 0 fill a row up in which fewer are left."""
        ...  # pragma: no cover


class TorchRace:
    """Races by torch's operations, on any device. Clocks are wound anew each time, on what is left."""

    def __init__(
        self, logits: torch.Tensor, generator: torch.Generator | None, allowed: torch.Tensor | None, round_size: int
    ) -> None:
        self.logs = torch.log_softmax(logits.double(), dim=-1)
        if torch.isnan(self.logs).any():
            raise ArgumentError("the logits hold NaN, or a row without any mass")
        if allowed is not None:
            self.logs = self.logs.masked_fill(~allowed, -math.inf)
        self.generator, self.round_size = generator, min(round_size, logits.shape[1])

    def arrivals(self, rows: list[int]) -> tuple[list[list[int]], list[list[float]], list[float]]:
        """See `BatchRace`."""
        these = torch.tensor(rows, dtype=torch.long, device=self.logs.device)
        logs = self.logs if len(rows) == len(self.logs) else self.logs[these]
        clocks = torch.empty_like(logs).exponential_(generator=self.generator).log_() - logs  # log of Exp(1) / p
        tokens = clocks.topk(self.round_size, dim=-1, largest=False).indices
        masses, left = logs.gather(1, tokens).exp(), logs.exp().sum(dim=-1)
        self.logs[these[:, None], tokens] = -math.inf
        return tokens.tolist(), masses.tolist(), left.tolist()


def step_batch(
    logits: torch.Tensor,
    check: Callable[[int, int], bool],
    *,
    generator: torch.Generator | None = None,
    terms: int = 4,
    budget: int | None = None,
    allowed: torch.Tensor | None = None,
    round_size: int = FEW,
    race: BatchRace | None = None,
) -> list[WeightedToken]:
    """A token that passes `check(row, token)` for each row, and its weight: `sampling.awrs.WeightedToken`, B of them.

    logits: float [B, V], of any device and scale (they are normalised first; the weight counts only what `allowed`
    leaves). budget: most checks of a row. allowed: bool [B, V], the only tokens that are tried, from a sound mask.
    generator: of the device of the logits. round_size: tokens of a row fetched at a time. A row is asked about no token
    twice. race: where tokens come from; by default a kernel's where the logits are on a card, else torch's. Raises
    ValueError for NaN, for rows without any mass, and for numbers that make no sense.
    """
    if logits.ndim != 2 or not logits.is_floating_point():
        raise ArgumentError(f"logits are {logits.dtype}{list(logits.shape)}: floats [rows, tokens] were asked for")
    if terms < 1 or round_size < 1 or (budget is not None and budget < 1):
        raise ArgumentError(f"terms, round_size and budget are 1 or more, not {terms!r}, {round_size!r} and {budget!r}")
    if race is None:
        race = race_of(logits, generator, allowed, round_size)
    most = math.inf if budget is None else budget
    searches = [RowSearch() for _ in range(len(logits))]
    rows = list(range(len(logits)))
    while rows:
        undone = []
        for row, tokens, masses, left in zip(rows, *race.arrivals(rows)):
            if not take_arrivals(searches[row], row, tokens, masses, left, check, terms, most):
                undone.append(row)
        rows = undone
    return [finish_search(search, terms, most) for search in searches]


def race_of(
    logits: torch.Tensor, generator: torch.Generator | None, allowed: torch.Tensor | None, round_size: int
) -> BatchRace:
    """By a kernel where there is a card that numba finds too, and logits that kernels read."""
    if logits.is_cuda and logits.dtype in (torch.float32, torch.bfloat16, torch.float16):
        from numba import cuda

        if cuda.is_available():
            from .cuda.device_race import KernelRace

            return KernelRace(logits, generator, allowed, round_size)
    return TorchRace(logits, generator, allowed, round_size)


def take_arrivals(
    search: RowSearch,
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


def finish_search(search: RowSearch, terms: int, most: float) -> WeightedToken:
    """The token and its weight. Terms that were promised and not seen, because no token is left, are the valid mass
    itself; none are promised beyond the budget."""
    if search.token is None:
        return WeightedToken(None, -math.inf, search.checks)
    first = search.checks - len(search.terms)
    promised = int(min(terms, most - first))
    if not promised:
        return WeightedToken(search.token, math.log(search.last), search.checks)
    seen = math.fsum(search.terms) + (promised - len(search.terms)) * search.valid
    return WeightedToken(search.token, math.log(seen / promised), search.checks)
