"""`check=` of `generate` for masked sampling: which checkers guide it token by token, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Any

import numpy as np

from ..base.errors import UnsupportedError, check_choice
from ..checking.checked_sampling import Dead, MaskOrder, draw_checked
from ..checking.verdicts import TextChecker
from ..decoding.outcomes import Outcome
from ..engine.constraint import Constraint
from ..sampling import Checker, LanguageModel
from ..sampling.core.masked_sampling import Proposal
from ..sampling.post_filtering import as_checker
from .finished_texts import DrawOutcomes, convert_draws, repeat_until_ended
from .model_preparation import limit_tokens

__all__ = ["check_mask_order", "find_mask_option", "is_guided", "make_checked_draw"]


def is_guided(arguments: Mapping[str, Any]) -> bool:
    """Return whether `check=` guides masked sampling token by token (`checking.checked_sampling`).

    It does if it judges prefixes. Texts that are streamed, drafted, healed, have forced text appended, or end at a stop
    string are checked after they were drawn; a search has a way of its own. arguments: keyword arguments of `generate`
    by name.
    """
    judges_prefixes = isinstance(arguments["check"], TextChecker) or hasattr(arguments["check"], "matcher")
    is_plain = all(arguments[name] is None for name in ("stream", "stop", "draft", "search"))
    for name, default in (("heal", "none"), ("forced", "sample")):
        is_plain = is_plain and isinstance(arguments[name], str) and arguments[name] == default
    return judges_prefixes and arguments["sampler"] == "masked" and is_plain


def check_mask_order(arguments: Mapping[str, Any]) -> None:
    """Raise ArgumentError or UnsupportedError unless the sampler can apply the mask in the order of `masks=`."""
    check_choice("masks", arguments["masks"], ("first", "after"))
    is_checked = is_guided(arguments) or (arguments["sampler"] == "awrs" and arguments["check"] is not None)
    if arguments["masks"] == "after" and not is_checked:
        raise UnsupportedError(
            'masks="after" needs a check= that judges the text so far, and the sampler "masked" or "awrs"',
            hint='Use masks="first".',
        )


def find_mask_option(sampler: str, checker: object, masks: MaskOrder) -> dict[str, str]:
    """Return the option by which a sampler of `sampling` applies the mask in this order."""
    if sampler != "awrs" or checker is None:
        return {}
    return {"masks": "first" if masks == "first" else "never"}


def make_checked_draw(
    constraint: Constraint,
    checker: Checker | Callable[[bytes], bool],
    *,
    seed: int | None,
    max_tokens: int,
    proposal: Proposal,
    masks: MaskOrder,
) -> DrawOutcomes:
    """Return a function that draws texts by masked sampling, with a checker of single tokens.

    Unfinished texts are drawn again (see `repeat_until_ended`); prefixes that were found to be dead are avoided.
    """
    rng, dead, checked = np.random.default_rng(seed), Dead(), as_checker(checker, constraint.vocabulary)

    def attempt(lm: LanguageModel, most: int, count: int) -> tuple[list[Outcome], int]:
        start = perf_counter_ns()
        draws = draw_checked(
            lm, constraint, checked, n=count, rng=rng, max_tokens=most, proposal=proposal, masks=masks, dead=dead
        ).without_unfinished()
        return convert_draws(draws, constraint, (perf_counter_ns() - start) / 1e3), draws.unfinished

    return lambda lm, n: repeat_until_ended(attempt, lm, n, limit_tokens(lm, max_tokens))
