"""The tokens of an answer with what the model wanted and what the constraint allowed, without their presentation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from math import exp
from typing import TYPE_CHECKING, Any, Literal

from ...base.cached_property import cached_property
from ..rendering.readable_tokens import show_bytes
from ..token_refusals import TokenRefusal, explain_token

if TYPE_CHECKING:
    from ...engine.constraint import Constraint
    from ...engine.matcher import Matcher

__all__ = ["Chooser", "ExplainedAnswer", "TokenStep"]

Chooser = Literal["model", "mask", "forced", "closing"]
HARDEST = 3
"""Number of steps whose refused token is explained by default."""
NEGLIGIBLE = 0.99
"""A step that leaves the model more than this share of its probability is not listed as one that pushed."""


@dataclass(frozen=True, slots=True)
class TokenStep:
    """One token of an answer. Logarithms are in nats.

    Attributes
    ----------
    number : int
        Its position, from 0.
    token : int
        The token that was taken.
    data : bytes
        Its bytes, special tokens by name; empty for an end token.
    chosen_by : {"model", "mask", "forced", "closing"}
        "forced": the constraint left only one text. "mask": the likeliest token of the model was refused. "closing":
        written to end the text within the token budget. "model": otherwise.
    wanted : int
        The likeliest token without the mask.
    wanted_data : bytes
    wanted_logprob, logprob : float
        Log-probabilities of the wanted and of the taken token under the model; of all end tokens together for an end.
    logmass : float
        Log of the probability of all allowed tokens: what the mask left.
    allowed : int
        Number of allowed tokens.
    is_end : bool
        Whether it is the end token.
    """

    number: int
    token: int
    data: bytes
    chosen_by: Chooser
    wanted: int
    wanted_data: bytes
    wanted_logprob: float
    logprob: float
    logmass: float
    allowed: int
    is_end: bool = False

    @property
    def text(self) -> str:
        """The taken token in a readable form."""
        return "end" if self.is_end else show_bytes(self.data)

    @property
    def mass(self) -> float:
        """The share of the model's probability that the mask left, from 0 to 1."""
        return min(1.0, exp(self.logmass))


@dataclass(frozen=True)
class ExplainedAnswer:
    """The tokens of an answer, with what the model wanted and what the constraint allowed.

    Attributes
    ----------
    text : str
        The answer.
    steps : tuple of TokenStep
        Its tokens in order, the end token included.
    constraint : Constraint
        What it was generated under.
    rows : int
        Number of positions of the model that were computed.
    seconds : float
        How long that took.
    note : str
        What is not explained, and why; usually empty.
    """

    text: str
    steps: tuple[TokenStep, ...]
    constraint: Constraint = field(repr=False, compare=False)
    rows: int = 0
    seconds: float = field(default=0.0, compare=False)
    note: str = ""

    @property
    def log_mass(self) -> float:
        """Sum of the logs of the masses (nats): log of the weight of the answer under plain masked sampling."""
        return float(sum(step.logmass for step in self.steps))

    @property
    def counts(self) -> dict[Chooser, int]:
        """Number of tokens by who chose them."""
        names: tuple[Chooser, ...] = ("model", "mask", "forced", "closing")
        return {name: sum(step.chosen_by == name for step in self.steps) for name in names}

    def hardest(self, n: int = HARDEST) -> list[TokenStep]:
        """Return the n steps at which the mask left the least of the model's probability, the hardest first.

        Steps that left nearly all of it are not included.
        """
        pushed = [step for step in self.steps if step.mass < NEGLIGIBLE]
        return sorted(pushed, key=lambda step: (step.logmass, step.number))[:n]

    @cached_property
    def refusals(self) -> dict[int, TokenRefusal]:
        """Why the wanted token was refused, by the numbers of the hardest steps (see `explain_token`)."""
        refusals = {}
        for step in self.hardest():
            refusal = explain_token(self.position(step.number), step.wanted)
            if refusal is not None:
                refusals[step.number] = refusal
        return refusals

    def position(self, number: int) -> Matcher:
        """Return a Matcher before the step of this number."""
        matcher = self.constraint.matcher()
        for step in self.steps[:number]:
            matcher.advance(step.token)
        return matcher

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON data."""
        steps = []
        for step in self.steps:
            written = asdict(step) | {"text": step.text, "mass": step.mass}
            written["data"], written["wanted_data"] = step.data.hex(), step.wanted_data.hex()
            steps.append(written)
        hardest = [
            {"number": step.number, "mass": step.mass, "refusal": str(self.refusals.get(step.number, "")) or None}
            for step in self.hardest()
        ]
        return {
            "text": self.text, "log_mass": self.log_mass, "counts": self.counts, "steps": steps, "hardest": hardest,
            "rows": self.rows, "seconds": self.seconds, "note": self.note,
        }  # fmt: skip

    def to_json(self) -> str:
        """Return the explanation as JSON text, in ASCII."""
        return json.dumps(self.to_dict())
