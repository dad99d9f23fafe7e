"""Names of models: the disk is asked first, the Hugging Face hub only for what is not there, and that is logged.

The logger is "constrain.hub"; a warning of it reaches stderr unless the application configures logging.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..errors import ConstrainError, VocabularyError, shorten

__all__ = ["foreign_errors", "is_hub_id", "locally_first"]

T = TypeVar("T")
HUB_ID = re.compile(r"[A-Za-z0-9_.-]{1,96}(/[A-Za-z0-9_.-]{1,96})?")


def is_hub_id(name: str) -> bool:
    """Whether a text can be the id of a model on the hub: `name` or `owner/name`."""
    return HUB_ID.fullmatch(name) is not None and not name.startswith((".", "-")) and ".." not in name


def locally_first(name: str, load: Callable[[bool], T]) -> T:
    """Return `load(True)`, which looks at the disk only, or `load(False)` if that fails, after logging it."""
    try:
        return load(True)
    except ConstrainError:
        logging.getLogger("constrain.hub").warning("%s is not on this disk: asking the Hugging Face hub", name)
    return load(False)


@contextmanager
def foreign_errors(cause: str, hint: str = "", kind: type[ConstrainError] = VocabularyError) -> Iterator[None]:
    """Turn whatever another library raises in the block, a panic of Rust included, into an error of `kind`."""
    try:
        yield
    except ConstrainError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise kind(f"{cause}: {first_line(error)}", hint=hint) from error


def first_line(error: Any) -> str:
    """The first line of another library's error, shortened."""
    return shorten(next(iter(str(error).strip().splitlines()), "") or type(error).__name__)
