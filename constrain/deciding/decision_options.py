"""The options of the decision rules, checked when they are created, and their names in `generate(decide=...)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from ..base.errors import ArgumentError, UnsupportedError, check_choice, check_type, describe_value
from ..sampling import SAMPLERS
from ..search.search_options import set_count, set_real
from .answer_utilities import UTILITIES, Utility

__all__ = [
    "DECISIONS",
    "AStarDecoding",
    "Decision",
    "MinimumBayesRisk",
    "PhiDecoding",
    "PlanningGuided",
    "Superposed",
    "TextScore",
    "find_decision",
]

TextScore = Callable[[str], float]
"""A number for a text, complete or not; more is better."""


@dataclass(frozen=True, slots=True)
class MinimumBayesRisk:
    """Return the answer that agrees best with the others that the model may give (Eikema & Aziz 2020; Kumar & Byrne
    2004).

    Attributes
    ----------
    samples : int
        Number of draws, which are both candidates and evidence.
    utility : {"fields", "characters"} or callable
        ``utility(candidate, reference)``, larger for more alike. "fields": F1 of the leaves of JSON values, each with
        its place; texts that are not JSON are one leaf, so that equal texts win by votes (self-consistency, Wang et al.
        2023). "characters": F1 of character n-grams of length 1 to 6 (chrF, Popović 2015).
    sampler : str
        A sampler of `sampling.SAMPLERS`; draws count by their weights, so that expectations are those of the model
        conditioned on the constraint for every sampler.
    """

    samples: int = 32
    utility: str | Utility = "fields"
    sampler: str = "masked"

    def __post_init__(self) -> None:
        set_count(self, "samples", 1)
        if not callable(self.utility):
            check_choice("utility", self.utility, tuple(UTILITIES))
        check_choice("sampler", self.sampler, (*SAMPLERS, "auto"))


@dataclass(frozen=True, slots=True)
class PhiDecoding:
    """Sample block by block, choosing blocks by where they lead: φ-decoding (Xu et al. 2025).

    Attributes
    ----------
    width : int
        Texts that are continued.
    rollouts : int
        Blocks that are drawn after each of them.
    block : int
        Tokens of a block.
    foresight : int
        Tokens of the greedy continuation of each block, its foresight.
    temperature : float
        Of the choice among blocks; 0 takes the best.
    """

    width: int = 2
    rollouts: int = 3
    block: int = 4
    foresight: int = 8
    temperature: float = 0.6

    def __post_init__(self) -> None:
        for name in ("width", "rollouts", "block"):
            set_count(self, name, 1)
        set_count(self, "foresight", 0)
        set_real(self, "temperature", 0.0)


@dataclass(frozen=True, slots=True)
class AStarDecoding:
    """Search over blocks of tokens, those with the largest sum of log-probability and score first: A*-decoding
    (Chatziveroglou 2025).

    Attributes
    ----------
    score : callable, optional
        Value of a text so far in nats, an estimate of the log-probability that it leads to a right answer (in the paper
        a process reward model). None: 0 for all texts.
    branches : int
        Blocks that are tried after a text: the likeliest one, and draws.
    block : int
        Tokens of a block.
    weight : float
        Factor of the score.
    expansions : int
        Most texts that are continued.
    """

    score: TextScore | None = None
    branches: int = 3
    block: int = 4
    weight: float = 1.0
    expansions: int = 200

    def __post_init__(self) -> None:
        if self.score is not None:
            check_type("score", self.score, Callable, "give a function of a text that returns a number")  # type: ignore[arg-type]
        for name in ("branches", "block", "expansions"):
            set_count(self, name, 1)
        set_real(self, "weight", 0.0)


@dataclass(frozen=True, slots=True)
class PlanningGuided:
    """Search by the reward of complete texts with Monte Carlo tree search: planning-guided decoding, PG-TD (Zhang et
    al. 2023).

    Attributes
    ----------
    reward : callable
        Reward of a complete text, such as the share of tests that a program passes.
    rollouts : int
        Number of rollouts, each of which completes and rewards one text.
    branches : int
        Likeliest tokens that become children of a node.
    exploration : float
        The constant c of the selection rule (P-UCB).
    base : float
        The constant c_base of the selection rule: the larger, the slower exploration grows with visits.
    """

    reward: TextScore
    rollouts: int = 32
    branches: int = 3
    exploration: float = 4.0
    base: float = 10.0

    def __post_init__(self) -> None:
        check_type("reward", self.reward, Callable, "give a function of a complete text that returns a number")  # type: ignore[arg-type]
        for name in ("rollouts", "branches"):
            set_count(self, name, 1)
        set_real(self, "exploration", 0.0)
        set_real(self, "base", 1.0)


@dataclass(frozen=True, slots=True)
class Superposed:
    """Write several drafts with one row of the model per token: superposed decoding (Shen et al. 2024).

    The model reads, in place of a token, the mean of the embeddings of the drafts' tokens, weighted by the drafts'
    probabilities. Each draft keeps a position in the constraint of its own, so that all of them are valid. Needs a
    model of the transformers library.

    Attributes
    ----------
    drafts : int
        Number of drafts.
    bigrams : float
        Exponent, from 0 to 1, of a bigram model of the prompt that tells the drafts apart: a token is rated by
        ``p ** (1 - bigrams) * q ** bigrams`` (the n-gram interpolation of the paper, section 4).
    """

    drafts: int = 3
    bigrams: float = 0.2

    def __post_init__(self) -> None:
        set_count(self, "drafts", 1)
        set_real(self, "bigrams", 0.0)
        if self.bigrams > 1:
            raise ArgumentError(f"bigrams is {self.bigrams}: it is an exponent from 0 to 1")


Decision = Union[MinimumBayesRisk, PhiDecoding, AStarDecoding, PlanningGuided, Superposed]

DECISIONS: Mapping[str, type[Any]] = {
    "mbr": MinimumBayesRisk,
    "phi": PhiDecoding,
    "astar": AStarDecoding,
    "pgtd": PlanningGuided,
    "superposed": Superposed,
}
"""Names that `generate(decide=...)` takes for a rule with its defaults."""


def find_decision(decide: object) -> Decision | None:
    """Return the options that a name stands for; options and None unchanged.

    Raise UnsupportedError for another name, ArgumentError for one whose rule has no default, TypeError for others.
    """
    classes = ", ".join(one.__name__ for one in DECISIONS.values())
    if decide is None or isinstance(decide, tuple(DECISIONS.values())):
        return decide  # type: ignore[return-value]
    if not isinstance(decide, str):
        raise TypeError(f"decide is {describe_value(decide)}: give one of {', '.join(DECISIONS)}, or a {classes}")
    if decide not in DECISIONS:
        raise UnsupportedError(
            f"there is no decision rule {decide!r}", hint=f"Give one of {', '.join(DECISIONS)}, or a {classes}."
        )
    if decide == "pgtd":
        raise ArgumentError(
            "decide='pgtd' needs the reward of a complete text", hint="Give decide=PlanningGuided(reward=...)."
        )
    made: Decision = DECISIONS[decide]()
    return made
