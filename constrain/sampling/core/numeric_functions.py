"""Calls of functions that callers give, such as utilities and scores: their mistakes are errors that name the text."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...base.errors import ArgumentError, describe_value

__all__ = ["call_function", "compute_number", "read_number"]


def call_function(name: str, function: Callable[..., Any], *texts: str) -> Any:
    """Return what a function says of texts. Raise ArgumentError, which names them, if the call fails."""
    try:
        return function(*texts)
    except Exception as error:
        raise ArgumentError(
            f"{name} failed on {show_texts(texts)}: {error.__class__.__name__}: {error}",
            hint="It must return a number for every text: catch its exceptions.",
        ) from error


def compute_number(name: str, function: Callable[..., Any], *texts: str, finite: bool = False) -> float:
    """Return what a function says of texts as a float. Raise ArgumentError if the call fails or returns no number below
    infinity; with `finite`, also for minus infinity.
    """
    given = call_function(name, function, *texts)
    value = read_number(given)
    if not value < math.inf or (finite and value == -math.inf):
        wanted = "a finite number" if finite else "a number below infinity"
        raise ArgumentError(f"{name} of {show_texts(texts)} is {describe_value(given)}: it is {wanted}")
    return value


def read_number(value: Any) -> float:
    """Return a number, also of numpy or torch, as a float; NaN if it is something else."""
    if isinstance(value, (str, bytes, bytearray)):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: a tensor of several elements
        return math.nan


def show_texts(texts: tuple[str, ...]) -> str:
    """Return the ends of texts for a message."""
    return " and ".join(repr(text[-60:]) for text in texts)
