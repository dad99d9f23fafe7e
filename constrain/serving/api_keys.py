"""API keys of a server: `Authorization: Bearer KEY`, compared in constant time.

A key file has one key a line; empty lines and lines that begin with # are ignored. Only SHA-256 digests of the keys are
kept, and each request is compared with all of them, so that the time says nothing about any key.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from hmac import compare_digest

from ..base.errors import ArgumentError, shorten_text

__all__ = ["ApiKeys", "read_key_lines", "split_keys"]

SHORTEST = 8
"""Fewest characters of a key."""


class ApiKeys:
    """The keys that a server accepts; without any, every request is accepted.

    Parameters
    ----------
    keys : iterable of str
        Printable ASCII without spaces, at least 8 characters each.

    Raises
    ------
    ArgumentError
        If a key is not so. The message does not contain it.
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._digests: list[bytes] = []
        for number, key in enumerate(keys, 1):
            if len(key) < SHORTEST or not all("!" <= letter <= "~" for letter in key):
                raise ArgumentError(
                    f"API key {number} is not at least {SHORTEST} printable ASCII characters without spaces",
                    hint='Make one with python -c "import secrets; print(secrets.token_urlsafe(32))".',
                )
            self._digests.append(sha256(key.encode()).digest())

    @property
    def is_required(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._digests)

    def accepts(self, authorization: str | None) -> bool:
        """Return whether the value of an Authorization header holds one of the keys."""
        if not self._digests:
            return True
        scheme, _, key = (authorization or "").partition(" ")
        digest = sha256(key.strip().encode("utf-8", "surrogateescape")).digest()
        found = False
        for known in self._digests:
            found |= compare_digest(known, digest)
        return found and scheme.lower() == "bearer"


def read_key_lines(text: str, name: str) -> tuple[str, ...]:
    """Return the keys of the text of a key file. Raise ArgumentError, with the name of the file, if it has none."""
    lines = (line.strip() for line in text.splitlines())
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys:
        raise ArgumentError(f"{shorten_text(name)} contains no API key", hint="Write one key a line.")
    return keys


def split_keys(text: str) -> tuple[str, ...]:
    """Return the keys of a text that separates them by commas."""
    return tuple(key for part in text.split(",") if (key := part.strip()))
