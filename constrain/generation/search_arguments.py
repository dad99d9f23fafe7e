"""The argument `search=` of `generate` and `Engine`, and what it cannot be combined with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

from ..base.errors import UnsupportedError, describe_value
from ..decoding.token_choice import TokenChoice
from ..sampling.core.masked_sampling import PLAIN
from ..search import BeamSearch, BestFirst, StochasticBeams

__all__ = ["Search", "check_search"]

Search = Union[BeamSearch, BestFirst, StochasticBeams]


def check_search(choice: TokenChoice, arguments: Mapping[str, Any]) -> None:
    """Raise TypeError unless `search` is the options of a search or None, UnsupportedError for arguments of sampling
    beside it. arguments: keyword arguments of `generate` by name; those that are missing were not given.
    """
    search = arguments["search"]
    if search is None:
        return
    if not isinstance(search, (BeamSearch, BestFirst, StochasticBeams)):
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
        raise UnsupportedError(
            f"search= does not draw tokens at random, so it has no {', '.join(wrong)}",
            hint="Remove either search= or the others.",
        )
