"""`RequestObject`: a JSON object of a request, whose members are read by name and checked type.

Each error has the JSON pointer of the member. A member that is null counts as absent, as clients send it. `finish`
refuses members that nobody read, so that a misspelt one is never ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from ..base.errors import describe_value, shorten_text
from ..base.json_documents import pointer_token
from .request_errors import RequestError

__all__ = ["RequestObject"]

NO_SYNONYMS: Mapping[str, str] = {}


class RequestObject:
    """A JSON object at a place of a request.

    value: the object; an error is raised if it is none. pointer: its place.
    """

    def __init__(self, value: Any, pointer: str = "") -> None:
        if not isinstance(value, dict):
            raise RequestError(f"an object is wanted here, not {describe_value(value)}", pointer, code="invalid_type")
        self.value, self.pointer = value, pointer
        self.seen: set[str] = set()

    def place(self, name: str) -> str:
        """Return the pointer of a member."""
        return f"{self.pointer}/{pointer_token(name)}"

    def refuse(self, name: str, cause: str, *, hint: str = "", code: str = "invalid_value") -> RequestError:
        """Return the error of a member."""
        return RequestError(cause, self.place(name), hint=hint, code=code)

    def has(self, name: str) -> bool:
        """Return whether a member is given and not null."""
        return self.value.get(name) is not None

    def read(self, name: str) -> Any:
        """Return a member of any type, or None."""
        self.seen.add(name)
        return self.value.get(name)

    def require(self, name: str) -> Any:
        """Return a member of any type. Raise RequestError if it is absent."""
        if not self.has(name):
            raise self.refuse(name, f"the member {name!r} is missing", code="missing")
        return self.read(name)

    def read_typed(self, name: str, valid: Callable[[Any], bool], wanted: str) -> Any:
        """Return a member, or None. Raise RequestError unless it is valid."""
        value = self.read(name)
        if value is not None and not valid(value):
            raise self.refuse(name, f"{name} is {describe_value(value)}: give {wanted}", code="invalid_type")
        return value

    def read_text(self, name: str) -> str | None:
        """Return a text, or None."""
        text: str | None = self.read_typed(name, lambda value: isinstance(value, str), "a text")
        return text

    def require_text(self, name: str) -> str:
        """Return a text. Raise RequestError if it is absent."""
        self.require(name)
        return str(self.read_text(name))

    def read_flag(self, name: str) -> bool | None:
        """Return true or false, or None."""
        flag: bool | None = self.read_typed(name, lambda value: isinstance(value, bool), "true or false")
        return flag

    def read_count(self, name: str, least: int, most: int | None = None) -> int | None:
        """Return a whole number in a range, or None."""
        wanted = f"a whole number from {least:,}" + ("" if most is None else f" to {most:,}")
        value = self.read_typed(name, lambda one: isinstance(one, int) and not isinstance(one, bool), wanted)
        if value is not None and not least <= value <= (math.inf if most is None else most):
            raise self.refuse(name, f"{name} is {shorten_text(value, 40)}: give {wanted}")
        return value  # type: ignore[no-any-return]

    def read_number(self, name: str, low: float, high: float) -> float | None:
        """Return a number in a range, or None."""
        wanted = f"a number from {low:g} to {high:g}"
        value = self.read_typed(
            name, lambda one: isinstance(one, (int, float)) and not isinstance(one, bool), wanted
        )  # fmt: skip
        if value is not None and not low <= value <= high:
            raise self.refuse(name, f"{name} is {shorten_text(value, 40)}: give {wanted}")
        return None if value is None else float(value)

    def read_option(self, name: str, options: Iterable[str]) -> str | None:
        """Return one of several texts, or None."""
        value, known = self.read_text(name), list(options)
        if value is not None and value not in known:
            close = get_close_matches(value, known, 1)
            hint = f"Did you mean {close[0]!r}?" if close else ""
            raise self.refuse(name, f"{name} is {shorten_text(repr(value))}: give {list_texts(known)}", hint=hint)
        return value

    def require_option(self, name: str, options: Iterable[str]) -> str:
        """Return one of several texts. Raise RequestError if it is absent."""
        self.require(name)
        return str(self.read_option(name, options))

    def read_list(self, name: str, most: int | None = None) -> list[tuple[str, Any]] | None:
        """Return the items of a list with their places, or None."""
        items = self.read_typed(name, lambda value: isinstance(value, list), "a list")
        if items is None:
            return None
        if most is not None and len(items) > most:
            raise self.refuse(name, f"{name} has {len(items)} items: at most {most} are allowed")
        return [(f"{self.place(name)}/{number}", item) for number, item in enumerate(items)]

    def read_texts(self, name: str) -> list[str] | None:
        """Return a list of texts, or None."""
        items = self.read_list(name)
        for place, item in items or ():
            if not isinstance(item, str):
                raise RequestError(f"a text is wanted here, not {describe_value(item)}", place, code="invalid_type")
        return None if items is None else [item for _, item in items]

    def read_object(self, name: str) -> RequestObject | None:
        """Return a member that is an object, or None."""
        value = self.read(name)
        return None if value is None else RequestObject(value, self.place(name))

    def require_object(self, name: str) -> RequestObject:
        """Return a member that is an object. Raise RequestError if it is absent."""
        return RequestObject(self.require(name), self.place(name))

    def finish(self, synonyms: Mapping[str, str] = NO_SYNONYMS, refused: Container[str] = ()) -> None:
        """Refuse members that were not read.

        synonyms: what is suggested for some of them. refused: members that are not suggested.
        """
        for name, value in self.value.items():
            if name not in self.seen and value is not None:
                known = [one for one in self.seen if one not in refused]
                close = [synonyms[name]] if name in synonyms else get_close_matches(name, known, 1)
                hint = f"Did you mean {close[0]!r}?" if close else ""
                raise self.refuse(
                    name, f"there is no member {shorten_text(repr(name))} here", hint=hint, code="unknown_field"
                )


def list_texts(texts: list[str]) -> str:
    """Return alternatives as a phrase."""
    shown = [repr(text) for text in texts]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"
