"""The texts of one prompt while they are drawn: which are accepted, and how often each was refused.

A text that satisfies the constraint may still be refused by a validator of the type or by `check=`. Drawing again until
one is accepted is rejection sampling (von Neumann 1951): every try is an independent draw, so an accepted text has the
distribution of the sampler given that it is accepted. With the sampler "exact" this is exactly p given the constraint
and the check; with "masked" it is biased as "masked" is. Each requested text has its own tries.

If the reason is put into the next prompt (`retry_prompt=`), the tries are not draws from one distribution any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..base.errors import Refusal, ValueRefused
from ..decoding.outcomes import Outcome

if TYPE_CHECKING:
    from .generation_result import Generation

__all__ = ["AcceptText", "DrawnTexts", "WantedText", "draw_accepted", "take_outcome"]

AcceptText = Callable[[Outcome], "Generation[Any]"]
"""Returns the Generation of a finished text, or raises ValueRefused."""


@dataclass(slots=True)
class WantedText:
    """One requested text: once it is accepted, its outcome and Generation; the refusals of its earlier tries, how many
    of them did not end, and the error with which it was given up.
    """

    outcome: Outcome | None = None
    generation: Generation[Any] | None = None
    refusals: tuple[Refusal, ...] = ()
    unfinished: int = 0
    error: BaseException | None = None

    @property
    def is_missing(self) -> bool:
        """Whether it is still to be drawn."""
        return self.generation is None and self.error is None

    @property
    def attempt(self) -> int:
        """The number of its earlier tries."""
        return len(self.refusals) + self.unfinished


@dataclass(slots=True)
class DrawnTexts:
    """The texts of one prompt.

    wanted: one for each requested text. unfinished: how many did not end, and were drawn again. dead: their tokens, if
    no further token passed the check.
    """

    wanted: list[WantedText] = field(default_factory=list)
    unfinished: int = 0
    dead: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def error(self) -> BaseException | None:
        """The first error of a text, or None."""
        return next((one.error for one in self.wanted if one.error is not None), None)

    @property
    def outcomes(self) -> list[Outcome]:
        """The accepted texts, in the order of the requested ones."""
        return [one.outcome for one in self.wanted if one.outcome is not None]

    @property
    def generations(self) -> list[Generation[Any]]:
        """The Generations of the accepted texts."""
        return [one.generation for one in self.wanted if one.generation is not None]

    @property
    def refused(self) -> int:
        """How many texts were refused."""
        return sum(len(one.refusals) for one in self.wanted)

    def list_missing(self) -> list[int]:
        """Return the numbers of the requested texts that are still to be drawn."""
        return [number for number, one in enumerate(self.wanted) if one.is_missing]


def take_outcome(texts: DrawnTexts, number: int, outcome: Outcome, accept: AcceptText, retries: int) -> None:
    """Accept a finished text as the requested text of this number, or note its refusal; after the last try, the error.

    retries: how often a text is drawn again.
    """
    wanted = texts.wanted[number]
    try:
        wanted.generation = replace(accept(outcome), refusals=wanted.refusals)
        wanted.outcome = outcome
    except ValueRefused as error:
        wanted.refusals = (*wanted.refusals, *error.refusals)
        if len(wanted.refusals) > retries:
            wanted.error = give_up(error, wanted.refusals)
    except Exception as error:
        wanted.error = error


def give_up(last: ValueRefused, refusals: tuple[Refusal, ...]) -> ValueRefused:
    """Return the error of a text whose last try was refused."""
    if len(refusals) == 1:
        return last
    error = ValueRefused(f"{len(refusals)} texts were drawn and refused; the last: {last.cause}", hint=last.hint)
    error.text, error.refusals, error.__cause__ = last.text, refusals, last.__cause__
    return error


def draw_accepted(
    draw: Callable[[Sequence[tuple[Refusal, ...]]], tuple[list[Outcome], int]],
    accept: AcceptText,
    n: int,
    retries: int,
) -> DrawnTexts:
    """Draw n texts, those that are refused again.

    Parameters
    ----------
    draw : callable
        Draws one text for each element, which has the refusals of its earlier tries. Returns those that ended, which
        are fewer if there are no others, and the number of unfinished texts.
    accept : callable
        See `AcceptText`.
    n : int
        Number of texts.
    retries : int
        How often a text is drawn again.

    Returns
    -------
    DrawnTexts

    Raises
    ------
    ValueRefused
        If the last try of a text is refused; its `refusals` are those of all tries.
    """
    texts = DrawnTexts([WantedText() for _ in range(n)])
    missing = texts.list_missing()
    while True:
        outcomes, unfinished = draw([texts.wanted[number].refusals for number in missing])
        texts.unfinished += unfinished
        drawn = missing[: len(outcomes)]
        for number, outcome in zip(drawn, outcomes):
            take_outcome(texts, number, outcome, accept, retries)
            if (error := texts.wanted[number].error) is not None:
                raise error
        missing = [number for number in drawn if texts.wanted[number].generation is None]
        if not missing:
            return texts
