"""`generate` with `search=`: likely texts instead of random ones."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns
from typing import Any, Union

import numpy as np

from ..base.errors import UnsupportedError, describe_value
from ..decoding.outcomes import Outcome, Stats
from ..decoding.token_choice import TokenChoice
from ..engine.constraint import Constraint
from ..sampling import Checker, LanguageModel
from ..sampling.checkers import BothCheckers
from ..sampling.core.masked_sampling import PLAIN
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
from .generation_arguments import ConstraintRequest
from .generation_result import Generation, as_generation
from .model_preparation import as_bytes_checker, limit_tokens

__all__ = ["Search", "check_search", "search_generations"]

Search = Union[BeamSearch, BestFirst, StochasticBeams]


def check_search(choice: TokenChoice, arguments: Mapping[str, Any]) -> None:
    """Raise TypeError unless `search` is the options of a search or None, UnsupportedError for arguments of sampling
    beside it. arguments: all keyword arguments of `generate` by name.
    """
    search = arguments["search"]
    if search is None:
        return
    if not isinstance(search, (BeamSearch, BestFirst, StochasticBeams)):
        raise TypeError(f"search is {describe_value(search)}: give a BeamSearch, BestFirst or StochasticBeams")
    names = ("temperature", "top_k", "top_p", "min_p")
    wrong = [f"{name}=" for name in names if getattr(choice.proposal, name) != getattr(PLAIN, name)]
    wrong += [f"{name}=" for name in ("particles", "stream", "draft", "retry_prompt") if arguments[name] is not None]
    wrong += ["stop="] if choice.stop else []
    wrong += ["sampler="] if arguments["sampler"] != "masked" else []
    if wrong:
        raise UnsupportedError(
            f"search= does not draw tokens at random, so it has no {', '.join(wrong)}",
            hint="Remove either search= or the others.",
        )


def search_generations(
    lm: LanguageModel,
    constraint: Constraint,
    request: ConstraintRequest,
    compile_us: float,
    arguments: Mapping[str, Any],
) -> Generation[Any] | list[Generation[Any]]:
    """Search for texts. ``stats.counts`` of each has the counts of the search, its score, and whether the answers are
    proven to be the likeliest.
    """
    search, n, check = arguments["search"], arguments["n"], arguments["check"]
    checked: Constraint | Checker = constraint
    if check is not None:
        checked = BothCheckers(constraint, as_checker(as_bytes_checker(check), constraint.vocabulary))
    start = perf_counter_ns()
    max_tokens = limit_tokens(lm, arguments["max_tokens"])
    found = run_search(lm, checked, search, 1 if n is None else n, arguments["seed"], max_tokens)
    total_us = (perf_counter_ns() - start) / 1e3
    generations = []
    for answer in found:
        counts = {**found.stats, "score": answer.score, "optimal": float(found.optimal)}
        stats = Stats(tokens=len(answer.tokens) + 1, total_us=total_us / len(found), counts=counts)
        stats.model_calls, stats.sampler = round(found.stats["model_calls"]), type(search).__name__
        stats.compile_us = compile_us
        data = constraint.vocabulary.transcript(answer.tokens)
        outcome = Outcome(list(answer.tokens), data, answer.logprob, answer.log_weight, "complete", stats)
        generations.append(as_generation(outcome, request))
    return generations[0] if n is None else generations


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
