"""The run of a call of `generate` with `search=`: likely texts instead of random ones."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Union

import numpy as np

from ..base.errors import UnsupportedError, describe_value
from ..decoding.generation_loop import Outcome, Stats
from ..engine.constraint import Constraint
from ..sampling import Checker, LanguageModel
from ..sampling.checkers import BothCheckers
from ..sampling.core.masked_sampling import PLAIN, Proposal
from ..sampling.post_filtering import as_checker
from ..search import (
    BeamSearch,
    BestFirst,
    FoundAnswers,
    StochasticBeams,
    beam_search,
    best_first_search,
    stochastic_beam_search,
)

__all__ = ["Search", "check_search", "search_outcomes"]

Search = Union[BeamSearch, BestFirst, StochasticBeams]


def check_search(search: object, sampler: str, particles: object, proposal: Proposal, stream: object) -> None:
    """Raise TypeError unless `search` is the options of a search or None, UnsupportedError for arguments of sampling
    beside it.
    """
    if search is None:
        return
    if not isinstance(search, (BeamSearch, BestFirst, StochasticBeams)):
        raise TypeError(f"search is {describe_value(search)}: give a BeamSearch, BestFirst or StochasticBeams")
    given = {
        "sampler": sampler != "masked", "particles": particles is not None, "stream": stream is not None,
        "temperature": proposal.temperature != PLAIN.temperature, "top_k": proposal.top_k is not None,
        "top_p": proposal.top_p is not None,
    }  # fmt: skip
    wrong = [f"{name}=" for name, is_given in given.items() if is_given]
    if wrong:
        raise UnsupportedError(
            f"search= does not draw tokens at random, so it has no {', '.join(wrong)}",
            hint="Remove either search= or the others.",
        )


def search_outcomes(
    lm: LanguageModel,
    constraint: Constraint,
    search: Search,
    n: int,
    *,
    seed: int | None,
    max_tokens: int,
    checker: Checker | Callable[[bytes], bool] | None,
) -> list[Outcome]:
    """Search for n texts. ``stats.counts`` of each has the counts of the search, its score, and whether the answers are
    proven to be the likeliest.
    """
    start = perf_counter_ns()
    found = run_search(lm, add_checker(constraint, checker), search, n, seed, max_tokens)
    total_us = (perf_counter_ns() - start) / 1e3
    outcomes = []
    for answer in found:
        counts = {**found.stats, "score": answer.score, "optimal": float(found.optimal)}
        stats = Stats(tokens=len(answer.tokens) + 1, total_us=total_us / len(found), counts=counts)
        stats.model_calls, stats.sampler = round(found.stats["model_calls"]), type(search).__name__
        data = constraint.vocabulary.transcript(answer.tokens)
        outcomes.append(Outcome(list(answer.tokens), data, answer.logprob, answer.log_weight, "complete", stats))
    return outcomes


def run_search(
    lm: LanguageModel,
    constraint: Constraint | Checker,
    search: Search,
    n: int,
    seed: int | None,
    max_tokens: int,
) -> FoundAnswers:
    """Run the search that the options belong to."""
    if isinstance(search, BeamSearch):
        return beam_search(lm, constraint, search, n=n, max_tokens=max_tokens)
    if isinstance(search, BestFirst):
        return best_first_search(lm, constraint, search, n=n, max_tokens=max_tokens)
    rng = np.random.default_rng(seed)
    return stochastic_beam_search(lm, constraint, search, n=n, rng=rng, max_tokens=max_tokens)


def add_checker(constraint: Constraint, checker: Checker | Callable[[bytes], bool] | None) -> Constraint | Checker:
    """Return the conjunction of a constraint and a checker, which is asked about the tokens that the mask allows."""
    return constraint if checker is None else BothCheckers(constraint, as_checker(checker, constraint.vocabulary))
