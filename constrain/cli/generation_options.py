"""The options of `constrain generate` whose values have a form of their own: --search, --check and --logit-bias."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from ..base.errors import SourceError, shorten_text
from ..checking import PythonChecker, SqliteChecker, TextChecker
from ..sampling.sampler_table import SAMPLERS
from ..search import BeamSearch, BestFirst, StochasticBeams
from .source_options import attribute_errors, read_bytes

if TYPE_CHECKING:
    from ..generation.search_arguments import Search

__all__ = ["CHOICE", "read_sampler", "read_bias", "read_checker", "read_search"]

CHOICE = "How tokens are chosen"
"""Heading of options in the help page."""


def read_search(option: str | None) -> Search | None:
    """Return the search of an option NAME[:N]. Raise BadParameter if there is none of that name."""
    if option is None:
        return None
    name, _, number = option.partition(":")
    searches: dict[str, Callable[..., Search]] = {
        "beam": BeamSearch,
        "best-first": BestFirst,
        "stochastic": StochasticBeams,
    }
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    if name not in searches or (":" in option and not is_number):
        raise typer.BadParameter(f"--search is {option!r}: give beam:8, best-first:1000 or stochastic:1000.")
    return searches[name](*([int(number)] if number else []))


def read_checker(option: str | None) -> TextChecker | None:
    """Return the checker of an option NAME[=FILE]. Raise BadParameter if there is none of that name."""
    if option is None:
        return None
    name, _, file = option.partition("=")
    if option == "python":
        return PythonChecker()
    if name != "sqlite" or not file:
        raise typer.BadParameter(f"--check is {option!r}: give python, or sqlite=FILE with CREATE statements.")
    with attribute_errors(file):
        try:
            return SqliteChecker(read_bytes(file).decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise SourceError(f"byte {error.start} is not valid UTF-8", hint="Give a script of SQL.") from None


def read_sampler(name: str) -> str:
    """Return the name of a sampler. Raise BadParameter if there is none of that name."""
    names = (*SAMPLERS, "auto")
    if name not in names:
        raise typer.BadParameter(f"--sampler is {shorten_text(repr(name))}: give one of {', '.join(names)}.")
    return name


def read_bias(option: str) -> tuple[int | str, float]:
    """Return the token and bias of an option TOKEN=BIAS; a token of digits is an id. Raise BadParameter otherwise."""
    token, _, bias = option.rpartition("=")
    try:
        number = float(bias)
    except ValueError:
        number = float("nan")
    if not token or number != number:
        raise typer.BadParameter(f"--logit-bias is {option!r}: give TOKEN=BIAS, such as 17=-5 or yes=2.")
    return int(token) if token.isascii() and token.isdigit() and len(token) < 10 else token, number
