"""Loading of models by name: from the local disk first, and from the Hugging Face hub, with a log message, otherwise.

The logger is "constrain.hub"; its warnings reach stderr unless the application configures logging.
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
"""Timeout, in seconds, of the first request to the hub: for connecting, and for the response."""
HUB_ID = re.compile(r"[A-Za-z0-9_.-]{1,96}/[A-Za-z0-9_.-]{1,96}|[A-Za-z0-9_.-]{2,96}")


def is_hub_id(name: str) -> bool:
    """Return whether a text can be the id of a model on the hub: `name` or `owner/name`."""
    return HUB_ID.fullmatch(name) is not None and not name.startswith((".", "-")) and ".." not in name


def locally_first(name: str, load: Callable[[bool], T]) -> T:
    """Return `load(True)`, which reads the disk only, or `load(False)` if that fails, after logging it.

    If the hub does not answer a first request, no file is requested: huggingface_hub would retry each for half a
    minute.
    """
    try:
        return load(True)
    except ConstrainError as error:
        logging.getLogger("constrain.hub").warning("%s is not on this disk: asking the Hugging Face hub", name)
        if trouble := check_hub():
            raise type(error)(
                f"{name} is not on this disk, and the Hugging Face hub cannot be reached: {trouble}", hint=error.hint
            ) from error
    return load(False)


def check_hub() -> str:
    """Send one request to the hub, through huggingface_hub's own proxies.

    Return why it failed, or "" if it succeeded.
    """
    try:
        from huggingface_hub import constants
        from huggingface_hub.utils import get_session  # type: ignore[attr-defined,unused-ignore]
    except ImportError:
        return ""  # the caller reports the missing package
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
    except Exception as error:  # of requests or httpx, by the version of huggingface_hub
        return first_line(error)
    return ""


@contextmanager
def foreign_errors(cause: str, hint: str = "", kind: type[ConstrainError] = VocabularyError) -> Iterator[None]:
    """Turn any exception of another library in the block, including a panic of Rust, into an error of `kind`."""
    try:
        yield
    except ConstrainError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise kind(f"{cause}: {first_line(error)}", hint=hint) from error


def first_line(error: Any) -> str:
    """Return the first line of another library's error, shortened."""
    return shorten_text(next(iter(str(error).strip().splitlines()), "") or type(error).__name__)
