"""Validation of the arguments of samplers, before the model is called.

Arguments of the wrong type raise TypeError, invalid numbers ValueError, and bounds that no text can satisfy LimitError.
Each message names the argument, its value, and what is expected. n = 0 is valid and gives no draws.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...base.errors import ArgumentError, LimitError, UnsupportedError, VocabularyError, describe_value
from .language_model import LanguageModel

__all__ = [
    "MOST_DRAWS",
    "check_common_arguments",
    "check_constraint",
    "check_counts",
    "check_masks",
    "check_function",
    "check_validators",
    "check_options",
    "end_texts",
    "check_particles",
    "check_rng",
    "check_seconds",
    "options_of",
]

MOST_DRAWS = 10_000_000
"""Maximum number of draws of one call; all of them are in memory."""
MOST_PARTICLES = 1_000_000
"""Maximum size of a population; all its texts are in memory, with rows of the model for different ones."""
COMMON = ("lm", "constraint", "n", "rng", "max_tokens")


def check_common_arguments(lm: object, constraint: Any, n: object, rng: object, max_tokens: object) -> None:
    """Validate the five arguments that all samplers have. Raise TypeError, ValueError or LimitError, see the module, or
    VocabularyError if the model says that its tokens are others than those of the constraint.

    rng: a numpy Generator, or an object with the same methods; RandomState and the modules called random are rejected.
    """
    if not isinstance(lm, LanguageModel):
        raise TypeError(f"lm is a {class_name(lm)}: it must have a method next_logprobs, see sampling.LanguageModel")
    check_constraint(constraint)
    if getattr(lm, "vocabulary", constraint.vocabulary) != constraint.vocabulary:
        raise VocabularyError(
            "the constraint was compiled for another vocabulary than the model's",
            hint="Compile it for the vocabulary of the model, its attribute `vocabulary`.",
        )
    check_rng(rng)
    check_counts(0, n=n)
    if n > MOST_DRAWS:  # type: ignore[operator]
        raise LimitError(f"n is {n}: at most {MOST_DRAWS:,} texts are drawn in one call")
    if not is_count(max_tokens):
        raise TypeError(f"max_tokens is {describe_value(max_tokens)}: it is a whole number, the end token included")
    if max_tokens < 1:  # type: ignore[operator]
        raise LimitError(f"max_tokens is {max_tokens}: not even an end token fits", hint="Give 1 or more.")


def check_rng(rng: object) -> None:
    """Raise TypeError unless the value is a numpy Generator, or an object with the same methods."""
    if isinstance(rng, type) or not (hasattr(rng, "random") and hasattr(rng, "integers")):
        raise TypeError(f"rng is a {class_name(rng)}: give numpy.random.default_rng(seed)")


def check_constraint(constraint: object) -> None:
    """Raise TypeError unless the value has the attributes of a Constraint or Checker that samplers use."""
    if isinstance(constraint, type) or not (hasattr(constraint, "matcher") and hasattr(constraint, "vocabulary")):
        raise TypeError(f"constraint is a {class_name(constraint)}: make one with constrain.compile")


def check_masks(constraint: Any, sampler: str) -> None:
    """Raise UnsupportedError if a constraint does not compute masks, as those of `checkers` do not."""
    if not hasattr(constraint.matcher(), "mask"):
        raise UnsupportedError(
            f"the sampler {sampler!r} needs masks, which a {class_name(constraint)} does not compute",
            hint='Use sampler="awrs", or a Constraint, with the checker as accepts= and viable= where there are these.',
        )


def check_particles(particles: object) -> None:
    """Raise TypeError, ValueError or LimitError unless this is the size of a population."""
    check_counts(1, particles=particles)
    if particles > MOST_PARTICLES:  # type: ignore[operator]
        raise LimitError(f"particles is {describe_value(particles)}: a population has at most {MOST_PARTICLES:,}")


def check_counts(least: int, **numbers: object) -> None:
    """Raise TypeError unless all numbers are integers, and ValueError if one is less than `least`."""
    for name, value in numbers.items():
        if not is_count(value):
            raise TypeError(f"{name} is {describe_value(value)}: it is a whole number from {least} on")
        if value < least:  # type: ignore[operator]
            raise ArgumentError(f"{name} must be {least} or more, not {value}")


def end_texts(texts: Iterable[Sequence[int]], end: int, size: int) -> list[list[int]]:
    """Return token sequences with the end token added. Raise TypeError or ArgumentError unless all, and `end`, are
    tokens of a vocabulary of `size`.
    """
    check_counts(1, size=size)
    check_counts(0, end=end)
    ended = [[*text, end] for text in texts]
    for number, text in enumerate(ended):
        if not all(map(is_count, text)):
            wrong = next(token for token in text if not is_count(token))
            raise TypeError(f"text {number} has the token {describe_value(wrong)}: give token ids, which are integers")
        if min(text) < 0 or max(text) >= size:
            wrong = next(token for token in text if not 0 <= token < size)
            raise ArgumentError(f"token {wrong} of text {number} is not one of the {size} tokens of the vocabulary")
    return ended


def check_seconds(seconds: object) -> None:
    """Raise TypeError or ValueError unless a time limit is None or a number other than NaN. Limits of 0 or less are
    valid.
    """
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float, np.number)):
        raise TypeError(f"seconds is {describe_value(seconds)}: it is a number, or None for no bound")
    if np.isnan(float(seconds)):
        raise ArgumentError("seconds is not a number (NaN)")


def check_validators(**validators: object) -> None:
    """Raise TypeError unless all validators, given by name, are callables or None."""
    for name, validator in validators.items():
        if validator is not None and not callable(validator):
            raise TypeError(
                f"{name} is {describe_value(validator)}: it is a function of bytes that returns True or False"
            )


def check_function(name: str, function: object, wanted: str) -> None:
    """Raise TypeError unless an optional function is None or can be called."""
    if function is not None and not callable(function):
        raise TypeError(f"{name} is {describe_value(function)}: give {wanted}")


def check_options(sampler: str, draw: Callable[..., Any], names: Iterable[str]) -> None:
    """Raise TypeError, which lists the known options, if `draw` does not take one of these options."""
    known = options_of(draw)
    for name in names:
        if name not in known:
            raise TypeError(f"the sampler {sampler!r} has no option {name!r}; it has {', '.join(known) or 'none'}")


def options_of(draw: Callable[..., Any]) -> list[str]:
    """Return the names of the options that are specific to a sampler."""
    return [name for name in inspect.signature(draw).parameters if name not in COMMON]


def is_count(value: object) -> bool:
    """Return whether a value is a Python or numpy integer, bool excluded."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def class_name(value: object) -> str:
    """Return the name of the class of a value."""
    return value.__class__.__name__
