"""The options of the searches, checked when they are created.

`BeamSearch`, `BestFirst` and `StochasticBeams` are accepted by the functions of this package and by
`generate(..., search=)`. `PhraseBanks` and `Lookahead` are parts of a BeamSearch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, Union

import numpy as np

from ..base.errors import ArgumentError, check_choice, check_count, check_type, describe_value
from ..sampling.critics import Critic, Guide, as_guide

__all__ = ["BeamSearch", "BestFirst", "Clause", "Distinct", "Lookahead", "PhraseBanks", "StochasticBeams"]

Distinct = Literal["tokens", "text", "value"]
"""What makes two answers different: their token sequences, their texts, or their JSON values."""
Phrase = Union[str, bytes]
Clause = Union[Phrase, Sequence[Phrase]]
"""A phrase, or alternatives of which at least one must occur, such as the inflections of a word."""
DISTINCT = ("tokens", "text", "value")
MOST_CLAUSES = 63
MOST_WIDTH = 100_000


@dataclass(frozen=True, slots=True)
class PhraseBanks:
    """Phrases that every answer must contain, and how the beam is divided by the number of phrases met so far.

    Attributes
    ----------
    clauses : sequence of str, bytes or sequences of these
        A conjunction: every clause must be met. A clause is a phrase, or several alternatives. Phrases are compared
        byte for byte, also where they begin or end inside a token; ``tuple`` of ``tuple`` of bytes after construction.
    method : {"dynamic", "grid", "clauses"}
        "dynamic": the beam is divided over the banks, and slots that a bank cannot use go to its neighbours (Dynamic
        Beam Allocation, Post and Vilar 2018). "grid": a beam of full width for every bank (Grid Beam Search, Hokamp and
        Liu 2017). "clauses": hypotheses are grouped by the set of clauses that they meet, and the groups take turns
        (NeuroLogic, Lu et al. 2021).
    reward : float
        Nats per clause that is met, and in proportion for the part of a phrase that the text ends with, added to the
        log-probability when candidates are ranked (NeuroLogic, section 2.3).
    keep : int, optional
        "clauses" only: candidates considered at a step, the likeliest first; all by default.
    tolerance : int, optional
        "clauses" only: candidates are dropped that meet this many clauses fewer than the best one, plus one or more.
    """

    clauses: Sequence[Clause]
    method: Literal["dynamic", "grid", "clauses"] = "dynamic"
    reward: float = 0.0
    keep: int | None = None
    tolerance: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clauses", read_clauses(self.clauses))
        check_choice("method", self.method, ("dynamic", "grid", "clauses"))
        set_real(self, "reward", 0.0)
        for name, least in (("keep", 1), ("tolerance", 0)):
            if getattr(self, name) is not None:
                set_count(self, name, least)
                if self.method != "clauses":
                    raise ArgumentError(f'{name} is an option of method="clauses", not of {self.method!r}')


@dataclass(frozen=True, slots=True)
class Lookahead:
    """A heuristic of what a hypothesis will reach, added to its log-probability when candidates are ranked.

    Attributes
    ----------
    steps : int
        Length of the greedy continuation of each candidate under the mask (NeuroLogic A*esque, Lu et al. 2022), with
        one call of the model per step for all candidates; 0 for none.
    weight : float
        Factor of the heuristic. Without phrases it is the log-probability of the continuation; with phrases that are
        not met yet, the largest log-probability within it of a token that continues or completes one.
    breadth : int
        Candidates per slot of the beam whose continuations are computed.
    """

    steps: int = 0
    weight: float = 1.0
    breadth: int = 2

    def __post_init__(self) -> None:
        set_count(self, "steps", 0)
        set_count(self, "breadth", 1)
        set_real(self, "weight", 0.0)


@dataclass(frozen=True, slots=True)
class BeamSearch:
    """Options of `beam_search`.

    Attributes
    ----------
    width : int
        Number of hypotheses that are continued at every step.
    length_penalty : float
        Exponent of the length by which log-probabilities are divided to give scores; 0 ranks by log-probability, more
        favours longer texts.
    normalization : {"power", "wu"}
        "power": the length itself, as in transformers; "wu": (5 + length) / 6 (Wu et al. 2016, section 7). The end
        token counts.
    patience : float
        The search ends after ``ceil(patience * width)`` finished texts instead of `width` (Kasai et al. 2022).
    early_stopping : {"heuristic", "always", "never"}
        When the search ends after that many texts. "always": at once (True in transformers). "heuristic": when the best
        hypothesis would not beat the worst of them at its current length (False). "never": when it cannot at any
        length.
    groups : int
        Number of groups of diverse beam search (Vijayakumar et al. 2018), each of ``width / groups`` hypotheses.
    diversity : float
        Penalty for each earlier group that chose the same token at the same step.
    distinct : {"tokens", "text", "value"}
        "text": tokenisations of one text are one answer, and their probabilities are added; "value": texts with equal
        JSON values are. In both cases other spellings of a text do not take the places of other texts in the beam.
    phrases : PhraseBanks, optional
        Phrases that every answer must contain.
    lookahead : Lookahead
        Heuristic by which candidates are ranked.
    critic : callable or sampling.Guide, optional
        Log-weight of a complete text in nats, added to the log-probability in scores. With a Guide, candidates are
        ranked by its judgement of the text so far as well (guided beam search, Xie et al. 2023; with a width of 1
        ARGS, Khanov et al. 2024); `Lookahead.breadth` candidates per slot are judged.
    """

    width: int = 4
    length_penalty: float = 0.0
    normalization: Literal["power", "wu"] = "power"
    patience: float = 1.0
    early_stopping: Literal["heuristic", "always", "never"] = "heuristic"
    groups: int = 1
    diversity: float = 0.0
    distinct: Distinct = "tokens"
    phrases: PhraseBanks | None = None
    lookahead: Lookahead = field(default_factory=Lookahead)
    critic: Critic | Guide | None = None

    def __post_init__(self) -> None:
        if self.critic is not None:
            object.__setattr__(self, "critic", as_guide(self.critic))
        set_width(self, "width")
        set_count(self, "groups", 1)
        set_real(self, "length_penalty", None)
        set_real(self, "patience", 0.0)
        set_real(self, "diversity", 0.0)
        check_choice("normalization", self.normalization, ("power", "wu"))
        check_choice("early_stopping", self.early_stopping, ("heuristic", "always", "never"))
        check_choice("distinct", self.distinct, DISTINCT)
        if self.patience == 0:
            raise ArgumentError("patience is 0: it is a number above 0")
        if self.phrases is not None:
            check_type("phrases", self.phrases, PhraseBanks, 'give a PhraseBanks, such as PhraseBanks(["New York"])')
        check_type("lookahead", self.lookahead, Lookahead, "give a Lookahead, such as Lookahead(steps=3)")
        if self.width % self.groups:
            raise ArgumentError(f"width is {self.width}: it is a multiple of groups, which is {self.groups}")
        if self.groups > 1 and self.phrases is not None:
            raise ArgumentError("phrases divide the beam into banks, so it cannot have groups as well")


@dataclass(frozen=True, slots=True)
class BestFirst:
    """Options of `best_first_search`.

    Attributes
    ----------
    max_calls : int
        Number of calls of the model after which the search ends without proof, in addition to those of the beam search.
    beam : int
        Width of a beam search that gives the first answers (n if that is more), so that there are some if the calls are
        used up, and that prefixes below them need not be stored; 0 for none.
    together : int
        Number of prefixes in a call of the model.
    distinct : {"tokens", "text", "value"}
        As in `BeamSearch`.
    heuristic : {"none", "completion"}
        Order of exploration. "none": by the admissible bound. "completion": by the bound minus `weight` nats for every
        token of a shortest completion, which finds some answers sooner and proves that they are the likeliest later.
    weight : float
        Nats per token of "completion".
    """

    max_calls: int = 1000
    beam: int = 4
    together: int = 8
    distinct: Distinct = "tokens"
    heuristic: Literal["none", "completion"] = "none"
    weight: float = 1.0

    def __post_init__(self) -> None:
        set_count(self, "max_calls", 1)
        set_width(self, "together")
        set_width(self, "beam", 0)
        set_real(self, "weight", 0.0)
        check_choice("distinct", self.distinct, DISTINCT)
        check_choice("heuristic", self.heuristic, ("none", "completion"))


@dataclass(frozen=True, slots=True)
class StochasticBeams:
    """Options of `stochastic_beam_search`.

    Attributes
    ----------
    max_calls : int
        Number of calls of the model after which the search ends with the texts found so far.
    """

    max_calls: int = 10_000

    def __post_init__(self) -> None:
        set_count(self, "max_calls", 1)


def read_clauses(clauses: object) -> tuple[tuple[bytes, ...], ...]:
    """Return clauses as alternatives of bytes. Raise TypeError or ArgumentError if they are not phrases."""
    wanted = "give a list of texts, or of lists of alternatives"
    if isinstance(clauses, (str, bytes)):
        raise TypeError(f"clauses is the single phrase {describe_value(clauses)}: {wanted}")
    check_type("clauses", clauses, Sequence, wanted)
    read = []
    for clause in clauses:  # type: ignore[attr-defined]
        alternatives = [clause] if isinstance(clause, (str, bytes)) else clause
        check_type("a clause", alternatives, Sequence, wanted)
        for phrase in alternatives:
            check_type("a phrase", phrase, (str, bytes), "give a text or bytes")
        phrases = [one.encode("utf-8", "surrogatepass") if isinstance(one, str) else one for one in alternatives]
        if not phrases or not all(phrases):
            raise ArgumentError(f"the clause {describe_value(clause)} is met by every text, or by none")
        read.append(tuple(dict.fromkeys(phrases)))
    if not 0 < len(read) <= MOST_CLAUSES:
        raise ArgumentError(f"there are {len(read)} clauses: give 1 to {MOST_CLAUSES}")
    return tuple(read)


def set_count(options: Any, name: str, least: int) -> None:
    """Replace a field by its value as an int. Raise TypeError or ArgumentError for other values."""
    object.__setattr__(options, name, check_count(name, getattr(options, name), least))


def set_width(options: Any, name: str, least: int = 1) -> None:
    """Replace a field by its value as an int of at most MOST_WIDTH."""
    set_count(options, name, least)
    if getattr(options, name) > MOST_WIDTH:
        raise ArgumentError(f"{name} is {getattr(options, name)}: at most {MOST_WIDTH:,}")


def set_real(options: Any, name: str, least: float | None) -> None:
    """Replace a field by its value as a finite float. Raise TypeError or ArgumentError for other values."""
    value = getattr(options, name)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} is {describe_value(value)}: it is a number")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number) or (least is not None and number < least):
        wanted = "a finite number" if least is None else f"a finite number from {least:g} on"
        raise ArgumentError(f"{name} is {describe_value(value)}: it is {wanted}")
    object.__setattr__(options, name, number)
