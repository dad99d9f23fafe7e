"""Calls of functions that callers give, such as utilities, scores and checks: their mistakes are errors that name the
text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from ...base.errors import ArgumentError, describe_value

__all__ = ["call_function", "compute_number", "read_number", "read_verdict"]


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


def read_verdict(name: str, text: str | bytes, verdict: Any) -> bool:
    """Return what a function says of a text: whether it is accepted.

    Besides a bool, a number, None and the match of a pattern are taken for one. Raise ArgumentError for anything else,
    such as a text, which would be true whatever it says.
    """
    is_number = read_number(verdict) == read_number(verdict)
    if verdict is None or isinstance(verdict, (bool, re.Match)) or is_number:
        return bool(verdict)
    raise ArgumentError(
        f"{name} of {text[-60:]!r} is {describe_value(verdict)}: it is True or False",
        hint="To give a reason, raise a ValueError with it." if name == "the check" else "",
    )


def show_texts(texts: tuple[str, ...]) -> str:
    """Return the ends of texts for a message."""
    return " and ".join(repr(text[-60:]) for text in texts)
