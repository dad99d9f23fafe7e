"""The arguments `search=` and `decide=` of `generate` and `Engine`, and what they cannot be combined with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

from ..base.errors import UnsupportedError, describe_value
from ..deciding import DECISIONS, Decision, MinimumBayesRisk, find_decision
from ..decoding.token_choice import TokenChoice
from ..sampling.core.masked_sampling import PLAIN
from ..search import BeamSearch, BestFirst, StochasticBeams

__all__ = ["Search", "TextSearch", "check_search", "merge_search"]

Search = Union[BeamSearch, BestFirst, StochasticBeams]
TextSearch = Union[Search, Decision]
"""A search or a decision rule: both return answers with scores, best first."""
SEARCHES = (BeamSearch, BestFirst, StochasticBeams, *DECISIONS.values())


def merge_search(search: Any, decide: Any) -> Any:
    """Return what takes the place of sampling: the search, or the decision rule; or None.

    Raise UnsupportedError if both are given, and the errors of `find_decision`.
    """
    rule = find_decision(decide)
    if search is not None and rule is not None:
        raise UnsupportedError("search= and decide= were both given", hint="Remove one of them.")
    return search if rule is None else rule


def check_search(choice: TokenChoice, arguments: Mapping[str, Any]) -> None:
    """Raise TypeError unless `search` is the options of a search or a decision rule or None, UnsupportedError for
    arguments of sampling beside it.

    arguments: keyword arguments of `generate` by name; those that are missing were not given.
    """
    search = arguments["search"]
    if search is None:
        return
    if not isinstance(search, SEARCHES):
        raise TypeError(f"search is {describe_value(search)}: give a BeamSearch, BestFirst or StochasticBeams")
    names = ("temperature", "top_k", "top_p", "min_p")
    wrong = [f"{name}=" for name in names if getattr(choice.proposal, name) != getattr(PLAIN, name)]
    wrong += [
        f"{name}=" for name in ("particles", "stream", "draft", "retry_prompt") if arguments.get(name) is not None
    ]
    wrong += ["stop="] if choice.stop else []
    wrong += ["forced="] if choice.forced != "sample" else []
    wrong += ["sampler="] if arguments.get("sampler", "masked") != "masked" else []
    if wrong:
        name = "decide=" if isinstance(search, tuple(DECISIONS.values())) else "search="
        raise UnsupportedError(
            f"{name} does not draw tokens one by one, so it has no {', '.join(wrong)}",
            hint="Give decide=MinimumBayesRisk(sampler=...)."
            if wrong == ["sampler="] and isinstance(search, MinimumBayesRisk)
            else f"Remove either {name} or the others.",
        )
