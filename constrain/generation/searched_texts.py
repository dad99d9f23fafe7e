"""`generate` with `search=` or `decide=`: likely or well supported texts instead of random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..base.errors import UnsupportedError
from ..deciding import decide_answers
from ..decoding.logit_adjustment import AdjustedModel
from ..decoding.outcomes import Outcome, Stats
from ..engine.constraint import Constraint
from ..engine.length_limits import name_full_context
from ..sampling import Checker, LanguageModel
from ..sampling.checkers import BothCheckers
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
from .engine_call import EngineCall, PromptResult
from .generation_result import Generation, as_generation
from .masked_batches import BatchPrompt
from .model_preparation import bind_check
from .search_arguments import TextSearch

__all__ = ["OpenModel", "search_call"]

OpenModel = Callable[[Sequence[int]], Any]
"""Returns the model after a prompt: a `LanguageModel` with a method `close`, such as a SlotModel."""


def search_call(call: EngineCall, open_model: OpenModel, *, workers: int = 1) -> PromptResult:
    """Return the results of a call with a search: of its prompt, or a list of those of its prompts.

    open_model: makes the model after the prompt of each search. workers: most searches at a time, in threads.
    """

    def run(prompt: BatchPrompt, compile_us: float) -> Any:
        model = open_model(prompt.prompt)
        try:
            return search_prompt(call, prompt, model, compile_us)
        except Exception as error:
            if call.errors == "raise":
                raise
            return error
        finally:
            model.close()

    if workers == 1 or len(call.prompts) == 1:
        results = [run(*one) for one in zip(call.prompts, call.compile_us)]
    else:
        with ThreadPoolExecutor(min(workers, len(call.prompts)), thread_name_prefix="constrain-search") as pool:
            results = list(pool.map(run, call.prompts, call.compile_us))
    return results if call.is_list else results[0]


def search_prompt(
    call: EngineCall, prompt: BatchPrompt, model: Any, compile_us: float
) -> Generation[Any] | list[Generation[Any]]:
    """Search for the texts of one prompt. ``stats.counts`` of each has the counts of the search, its score, and whether
    the answers are proven to be the likeliest.
    """
    if prompt.constraint is None:
        raise UnsupportedError("search= needs a constraint for every prompt", hint="Give regex='(?s).*' for any text.")
    checked = join_check(call, prompt, prompt.constraint)
    adjustment, start = call.choice.adjustment, perf_counter_ns()
    lm = model if adjustment.is_empty else AdjustedModel(model, adjustment, prompt.prompt)
    assert call.search is not None
    with name_full_context(prompt.positions_left):
        found = run_search(lm, checked, call.search, call.count, prompt.seed, prompt.max_tokens)
    total_us = (perf_counter_ns() - start) / 1e3
    generations = []
    for answer in found:
        counts = {**found.stats, "score": answer.score, "optimal": float(found.optimal)}
        stats = Stats(tokens=len(answer.tokens) + 1, total_us=total_us / len(found), counts=counts)
        stats.model_calls, stats.sampler = round(found.stats["model_calls"]), type(call.search).__name__
        stats.compile_us = compile_us
        data = call.vocabulary.transcript(answer.tokens)[len(prompt.prefix) :]
        outcome = Outcome(list(answer.tokens), data, answer.logprob, answer.log_weight, "complete", stats)
        outcome.skipped = len(prompt.prefix)
        generations.append(as_generation(outcome, prompt.request, prompt.captures, prompt.source))
    return generations[0] if call.n is None else generations


def join_check(call: EngineCall, prompt: BatchPrompt, constraint: Constraint) -> Constraint | Checker:
    """Return the constraint of a prompt together with its check."""
    check = prompt.check if prompt.token_check is None else prompt.token_check.checker
    if check is None:
        return constraint
    if prompt.prefix and prompt.token_check is None and isinstance(check, Checker):
        raise UnsupportedError(
            "a sampling.Checker knows whole tokens, and heal= divides them", hint="Give a checking.TextChecker."
        )
    bound = bind_check(check, call.vocabulary, len(prompt.prefix))
    return BothCheckers(constraint, as_checker(bound, call.vocabulary))


def run_search(
    lm: LanguageModel,
    constraint: Constraint | Checker,
    search: TextSearch,
    n: int,
    seed: np.random.SeedSequence,
    max_tokens: int,
) -> FoundAnswers:
    """Run the search or the decision rule that the options belong to."""
    if isinstance(search, BeamSearch):
        return beam_search(lm, constraint, search, n=n, max_tokens=max_tokens)
    if isinstance(search, BestFirst):
        return best_first_search(lm, constraint, search, n=n, max_tokens=max_tokens)
    rng = np.random.default_rng(seed)
    if not isinstance(search, StochasticBeams):
        return decide_answers(lm, constraint, search, n=n, rng=rng, max_tokens=max_tokens)
    return stochastic_beam_search(lm, constraint, search, n=n, rng=rng, max_tokens=max_tokens)
