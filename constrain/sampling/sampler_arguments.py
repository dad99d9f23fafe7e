"""What every sampler asks of its arguments, in one place, before the model is called.

A wrong kind is a TypeError, a number that makes no sense a ValueError, a bound that no text can meet a LimitError; each
names the argument, what it was, and what it should be. n = 0 is no mistake: it asks for no draws.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, LimitError, UnsupportedError, describe_value
from .language_model import LanguageModel

__all__ = [
    "MOST_DRAWS",
    "check",
    "check_constraint",
    "check_counts",
    "check_masks",
    "check_judges",
    "check_options",
    "check_seconds",
    "options_of",
]

MOST_DRAWS = 10_000_000
"""Most draws of one call, which are all in memory."""
COMMON = ("lm", "constraint", "n", "rng", "max_tokens")


def check(lm: object, constraint: Any, n: object, rng: object, max_tokens: object) -> None:
    """The five arguments that all samplers have. Raises TypeError, ValueError, LimitError as said above.

    rng: a numpy Generator, or what answers like one; RandomState and the modules called random do not.
    """
    if not isinstance(lm, LanguageModel):
        raise TypeError(f"lm is a {name_of(lm)}: it must have a method next_logprobs, see sampling.LanguageModel")
    check_constraint(constraint)
    if isinstance(rng, type) or not (hasattr(rng, "random") and hasattr(rng, "integers")):
        raise TypeError(f"rng is a {name_of(rng)}: give numpy.random.default_rng(seed)")
    check_counts(0, n=n)
    if n > MOST_DRAWS:  # type: ignore[operator]
        raise LimitError(f"n is {n}: at most {MOST_DRAWS:,} texts are drawn in one call")
    if not is_count(max_tokens):
        raise TypeError(f"max_tokens is {describe_value(max_tokens)}: it is a whole number, the end token included")
    if max_tokens < 1:  # type: ignore[operator]
        raise LimitError(f"max_tokens is {max_tokens}: not even an end token fits", hint="Give 1 or more.")


def check_constraint(constraint: object) -> None:
    """Raise TypeError unless a value has what samplers use of a Constraint or Checker."""
    if isinstance(constraint, type) or not (hasattr(constraint, "matcher") and hasattr(constraint, "vocabulary")):
        raise TypeError(f"constraint is a {name_of(constraint)}: make one with constrain.compile")


def check_masks(constraint: Any, sampler: str) -> None:
    """Whether a constraint makes masks: those of `checkers` only say yes or no. Raises UnsupportedError."""
    if not hasattr(constraint.matcher(), "mask"):
        raise UnsupportedError(
            f"the sampler {sampler!r} needs masks, and a {name_of(constraint)} makes none",
            hint='Use sampler="awrs", or a Constraint, with the checker as accepts= and viable= where there are these.',
        )


def check_counts(least: int, **numbers: object) -> None:
    """Whole numbers, by name, of at least `least`; None for none is left to the caller. TypeError, ValueError."""
    for name, value in numbers.items():
        if not is_count(value):
            raise TypeError(f"{name} is {describe_value(value)}: it is a whole number from {least} on")
        if value < least:  # type: ignore[operator]
            raise ArgumentError(f"{name} must be {least} or more, not {value}")


def check_seconds(seconds: object) -> None:
    """None, or a number that is not NaN. A time that is over already is no mistake: nothing is found in it."""
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float, np.number)):
        raise TypeError(f"seconds is {describe_value(seconds)}: it is a number, or None for no bound")
    if np.isnan(float(seconds)):
        raise ArgumentError("seconds is not a number (NaN)")


def check_judges(**judges: object) -> None:
    """Validators, by name: functions, or None. Raises TypeError."""
    for name, judge in judges.items():
        if judge is not None and not callable(judge):
            raise TypeError(f"{name} is {describe_value(judge)}: it is a function of bytes that says True or False")


def check_options(sampler: str, draw: Callable[..., Any], names: Iterable[str]) -> None:
    """Whether `draw` takes options of these names. Raises TypeError that lists those it has."""
    known = options_of(draw)
    for name in names:
        if name not in known:
            raise TypeError(f"the sampler {sampler!r} has no option {name!r}; it has {', '.join(known) or 'none'}")


def options_of(draw: Callable[..., Any]) -> list[str]:
    """The names of the options that are a sampler's own."""
    return [name for name in inspect.signature(draw).parameters if name not in COMMON]


def is_count(value: object) -> bool:
    """Whether a value is a whole number, of Python or numpy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def name_of(value: object) -> str:
    """Its class."""
    return value.__class__.__name__
