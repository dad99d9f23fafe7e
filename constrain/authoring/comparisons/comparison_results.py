"""The results of comparisons, without their presentation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["ComparedLanguages", "ComparedSamplers", "Inclusion", "Method", "SamplerRow"]

Method = Literal["decided", "enumerated", "sampled", "empty"]
Relation = Literal["equal", "narrower", "wider", "overlapping", "unknown"]


@dataclass(frozen=True, slots=True)
class Inclusion:
    """Whether every text of one language is one of another.

    Attributes
    ----------
    included : bool or None
        None if no difference was found, which proves nothing.
    method : {"decided", "enumerated", "sampled", "empty"}
        How it was found, see `language_comparison`; "empty": the first language has no texts.
    example : str or None
        A text of the first that is none of the second: a shortest one where it was decided, or nearly so where items
        must be equal or differ.
    checked : int
        Number of texts that were checked, for "enumerated" and "sampled".
    reason : str
        Why it was not decided.
    """

    included: bool | None
    method: Method
    example: str | None = None
    checked: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ComparedLanguages:
    """Two languages.

    Attributes
    ----------
    names : tuple of str
        Their names.
    forward, backward : Inclusion
        Of the first in the second, and of the second in the first.
    """

    names: tuple[str, str]
    forward: Inclusion
    backward: Inclusion

    @property
    def relation(self) -> Relation:
        """The relation of the first to the second: "overlapping" if each has texts that the other lacks."""
        first, second = self.forward.included, self.backward.included
        if first is None or second is None:
            return "overlapping" if first is False and second is False else "unknown"
        return {(True, True): "equal", (True, False): "narrower", (False, True): "wider"}.get(  # type: ignore[return-value]
            (first, second), "overlapping"
        )


@dataclass(frozen=True, slots=True)
class SamplerRow:
    """One sampler.

    Attributes
    ----------
    sampler, target : str
        Its name, and what its draws are distributed as: "masked", "consistent" or "exact" (see `sampling.SAMPLERS`).
    draws, unfinished : int
        Number of draws that ended, and of those that did not.
    texts : int
        Number of different texts.
    shares : dict of str to float
        The share of each text, the largest first. by_weight: whether they are shares of the weight.
    ess : float
        Effective sample size: the equivalent number of independent faithful draws, as far as weights tell.
    distortion : float
        KL(q || p given the constraint) in nats, where q is the distribution of the draws: 0 for faithful samplers; nan
        where it is not known.
    model_calls : int
    seconds : float
        Time of all draws.
    """

    sampler: str
    target: str
    draws: int
    unfinished: int
    texts: int
    shares: dict[str, float]
    by_weight: bool
    ess: float
    distortion: float
    model_calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ComparedSamplers:
    """Samplers under one constraint.

    Attributes
    ----------
    rows : tuple of SamplerRow
    distance : float
        Total variation distance between the shares of the first two samplers, from 0 (the same answers equally often)
        to 1 (no answer in common).
    chance : float
        What the distance would be on average if both samplers had the same distribution; nan if it is not known.
    """

    rows: tuple[SamplerRow, ...]
    distance: float
    chance: float

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON data."""
        return {"rows": [asdict(row) for row in self.rows], "distance": self.distance, "chance": self.chance}
