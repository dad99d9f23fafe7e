"""Names of models: the disk is asked first, the Hugging Face hub only for what is not there, and that is logged.

The logger is "constrain.hub"; a warning of it reaches stderr unless the application configures logging.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..base.errors import ConstrainError, VocabularyError, shorten_text

__all__ = ["foreign_errors", "is_hub_id", "locally_first"]

T = TypeVar("T")
SECONDS = 10
"""How long the first request to the hub may take to connect, and to be answered."""
HUB_ID = re.compile(r"[A-Za-z0-9_.-]{1,96}(/[A-Za-z0-9_.-]{1,96})?")


def is_hub_id(name: str) -> bool:
    """Whether a text can be the id of a model on the hub: `name` or `owner/name`."""
    return HUB_ID.fullmatch(name) is not None and not name.startswith((".", "-")) and ".." not in name


def locally_first(name: str, load: Callable[[bool], T]) -> T:
    """Return `load(True)`, which looks at the disk only, or `load(False)` if that fails, after logging it.

    A hub that does not answer one request is not asked again: huggingface_hub would retry each file for half a minute.
    """
    try:
        return load(True)
    except ConstrainError as error:
        logging.getLogger("constrain.hub").warning("%s is not on this disk: asking the Hugging Face hub", name)
        if trouble := unreachable():
            raise type(error)(
                f"{name} is not on this disk, and the Hugging Face hub cannot be reached: {trouble}", hint=error.hint
            ) from error
    return load(False)


def unreachable() -> str:
    """Send the hub one request, with huggingface_hub's own proxies; return why it has no answer, "" if it has one."""
    try:
        from huggingface_hub import constants
        from huggingface_hub.utils import get_session  # type: ignore[attr-defined,unused-ignore]
    except ImportError:
        return ""  # what needs it says so
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
    except Exception as error:  # of requests or httpx, by the version of huggingface_hub
        return first_line(error)
    return ""


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
    return shorten_text(next(iter(str(error).strip().splitlines()), "") or type(error).__name__)
