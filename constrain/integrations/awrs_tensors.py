"""AWRS for a batch of rows on any device: exponential races on the device, checks of the first arrivals on the host.

    logits [B, V]  ->  clocks Exp(1) / p  ->  the k smallest of each row  ->  check(row, token) on the host
                            ^                                                     |
                            +---------- the next k of rows that need more --------+

The order of arrival is a draw without replacement. The exponential distribution is memoryless, so redrawing the clocks
of tokens that have not arrived continues the same race (see `sampling.exponential_race`). Thus k tokens of each row,
not V, are copied to the host, in most cases once. On a GPU a kernel runs the race (`cuda.device_race`) and resumes it
where it stopped; elsewhere torch operations do. Weights are those of `sampling.token_rejection.DesRaj` without slack:
the mean of `terms` terms after the first valid token, with expectation Z given the token, hence
E[exp(log_weight) 1{token = a}] = p(a) [a valid] for every row, whatever the budget.
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
"""Tokens of each row fetched in one round: more than the median number of checks, and still one small copy."""


@dataclass(slots=True)
class RowSearch:
    """The race of one row, as far as it has been observed.

    used, valid: mass of the checked tokens, and of the valid ones.
    """

    token: int | None = None
    terms: list[float] = field(default_factory=list)
    used: float = 0.0
    valid: float = 0.0
    checks: int = 0
    last: float = 0.0

    def see(self, token: int, mass: float, left: float, ok: bool) -> None:
        """Record one more arrival. left: mass of all tokens that had not arrived before it."""
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
        """Return the next tokens of each of these rows in order of arrival, their masses, and the remaining mass.

        Masses are those of a distribution that sums to 1. The remaining mass is that of all tokens that had not arrived
        before. A row with fewer tokens left is filled up with tokens of mass 0.
        """
        ...  # pragma: no cover


class TorchRace:
    """Races by torch operations, on any device. Each round draws new clocks for the tokens that are left."""

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
    """Draw for each row a token that passes `check(row, token)`, with its importance weight, by AWRS.

    No token of a row is checked twice.

    Parameters
    ----------
    logits : Tensor, floating point [B, V]
        Logits on any device. They need not be normalised; the weight accounts for the mass that `allowed` leaves.
    check : callable
        check(row, token) returns whether the token is valid.
    generator : torch.Generator, optional
        A generator of the device of the logits.
    terms : int
        Number of terms of the weight's estimate after the first valid token.
    budget : int, optional
        Most checks of a row.
    allowed : Tensor, bool [B, V], optional
        The only tokens to try, for example from a sound mask.
    round_size : int
        Tokens of a row fetched in one round.
    race : BatchRace, optional
        The source of tokens: by default a kernel for logits on a GPU, else torch.

    Returns
    -------
    list of WeightedToken
        One `sampling.awrs.WeightedToken` for each row.

    Raises
    ------
    ValueError
        If logits hold NaN, a row has no mass, or a number is out of range.
    """
    if logits.ndim != 2 or not logits.is_floating_point():
        raise ArgumentError(f"logits are {logits.dtype}{list(logits.shape)}: give floats [rows, tokens]")
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
    """Return a race run by a kernel if numba finds the GPU and kernels read the dtype of the logits, else one run by
    torch.
    """
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
    """Check tokens in order of arrival and return whether the search is over.

    left: mass of tokens that have not arrived.
    """
    # The mass after each arrival is summed from the last one on, so that small remainders do not cancel.
    remaining_mass = [max(left - math.fsum(masses), 0.0)]
    for mass in reversed(masses):
        remaining_mass.append(remaining_mass[-1] + mass)
    for token, mass, before in zip(tokens, masses, reversed(remaining_mass[1:])):
        if mass <= 0:
            return True  # all that have any mass have arrived
        if search.checks >= most or len(search.terms) >= terms:
            return True
        search.see(token, mass, before, bool(check(row, token)))
    return search.checks >= most or len(search.terms) >= terms or remaining_mass[0] <= 0


def finish_search(search: RowSearch, terms: int, most: float) -> WeightedToken:
    """Return the token and its weight.

    Terms that were not observed because no token is left equal the valid mass. No term is expected beyond the budget.
    """
    if search.token is None:
        return WeightedToken(None, -math.inf, search.checks)
    first = search.checks - len(search.terms)
    promised = int(min(terms, most - first))
    if not promised:
        return WeightedToken(search.token, math.log(search.last), search.checks)
    seen = math.fsum(search.terms) + (promised - len(search.terms)) * search.valid
    return WeightedToken(search.token, math.log(seen / promised), search.checks)
