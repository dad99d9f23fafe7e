"""The fields of the formats of structural tags: which there are, their types, and readers that check them.

`FIELDS` lists the fields of each format; one that is missing, unknown or of another type is refused with its pointer.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Literal as OneOf

from ..base.errors import SchemaError, UnsupportedError, shorten_text
from ..base.json_documents import echo_value, pointer_token

__all__ = ["FIELDS", "FORMATS", "Element"]

FIELDS: dict[str, tuple[str, str]] = {
    # format: its required fields, its optional fields
    "structural_tag": ("type format", ""),
    "structures": ("type structures triggers", "at_least_one stop_after_first"),
    "structure": ("begin schema end", ""),
    "structure_tag": ("begin schema content end", ""),
    "const_string": ("value", ""),
    "json_schema": ("json_schema", "style any_order max_whitespace_cnt excludes"),
    "qwen_xml_parameter": ("json_schema", ""),
    "grammar": ("grammar", ""),
    "regex": ("pattern", ""),
    "any_text": ("", "excludes max_tokens max_chars"),
    "sequence": ("elements", ""),
    "or": ("elements", ""),
    "optional": ("content", ""),
    "plus": ("content", ""),
    "star": ("content", ""),
    "repeat": ("min max content", ""),
    "tag": ("begin content end", ""),
    "triggered_tags": ("triggers tags", "at_least_one stop_after_first excludes"),
    "dispatch": ("rules", "loop excludes"),
    "tags_with_separator": ("tags separator", "at_least_one stop_after_first"),
    "token": ("token", ""),
    "exclude_token": ("", "exclude_tokens"),
    "any_tokens": ("", "exclude_tokens max_tokens"),
    "token_triggered_tags": ("trigger_tokens tags", "exclude_tokens at_least_one stop_after_first"),
    "token_dispatch": ("rules", "loop exclude_tokens"),
}
FORMATS = tuple(name for name in FIELDS if not name.startswith("struct"))
LARGEST = 2**31 - 1


class Element:
    """An object of a structural tag: its kind, its fields, and its place.

    Parameters
    ----------
    body : Any
        The object.
    pointer : str
        JSON pointer of the object.
    kind : str, optional
        Its kind where the place determines it; else the field "type" does.
    places : dict of str to str, optional
        JSON pointers of fields that come from another place.
    """

    def __init__(self, body: Any, pointer: str, kind: str | None = None, places: dict[str, str] | None = None) -> None:
        self.pointer, self.places = pointer, places or {}
        if not isinstance(body, dict):
            raise SchemaError(f"a format is an object, not {echo_value(body)}", pointer=pointer)
        self.body: dict[str, Any] = body
        if kind is None:
            given = body.get("type")
            if not isinstance(given, str) or given not in FORMATS:
                close = get_close_matches(str(given), FORMATS, 1)
                raise SchemaError(
                    f"the type of a format is {echo_value(given)}" if "type" in body else "a format has no type",
                    pointer=f"{pointer}/type",
                    hint=f"Did you mean {close[0]!r}?" if close else f"The types are {', '.join(FORMATS)}.",
                )
            kind = given
        elif "type" in body and kind in FORMATS and body["type"] != kind:
            raise SchemaError(f"the type here is {kind!r}, not {echo_value(body['type'])}", pointer=f"{pointer}/type")
        self.kind = kind
        self.check_names()
        if kind in ("structural_tag", "structures") and body["type"] != "structural_tag":
            raise SchemaError(
                f"the type of a structural tag is {echo_value(body['type'])}", pointer="/type",
                hint='It is "structural_tag".',
            )  # fmt: skip

    def check_names(self) -> None:
        """Refuse missing and unknown fields."""
        required, optional = (names.split() for names in FIELDS[self.kind])
        for name in required:
            if name not in self.body:
                raise SchemaError(f"a {self.kind} needs the field {name!r}", pointer=self.pointer)
        for name in self.body:
            if name != "type" and name not in required and name not in optional:
                close = get_close_matches(name, [*required, *optional], 1)
                raise SchemaError(
                    f"a {self.kind} has no field {shorten_text(repr(name))}",
                    pointer=f"{self.pointer}/{pointer_token(shorten_text(name))}",
                    hint=f"Did you mean {close[0]!r}?" if close else f"It has {', '.join([*required, *optional])}.",
                )

    def place(self, name: str) -> str:
        """Return the pointer of a field."""
        return self.places.get(name, f"{self.pointer}/{name}")

    def wrong(self, name: str, wanted: str) -> SchemaError:
        """Return the error for a field of another type."""
        return SchemaError(f"{name!r} is {echo_value(self.body.get(name))}, not {wanted}", pointer=self.place(name))

    def text(self, name: str) -> str:
        """Return a field that is a text."""
        value = self.body[name]
        if not isinstance(value, str):
            raise self.wrong(name, "a text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that is a list of texts, or one text for `end`; () if it is absent."""
        value = self.body.get(name, [])
        if isinstance(value, str) and name == "end":
            return (value,)
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.wrong(name, "a list of texts")
        if "" in value and name != "end":
            raise SchemaError(f"{name!r} has an empty text", pointer=self.place(name), hint="Every text contains it.")
        if not value and name == "triggers":
            raise SchemaError("there are no triggers", pointer=self.place(name), hint="Give one or more texts.")
        return tuple(value)

    def token(self, name: str) -> str | int:
        """Return a field that names a token."""
        return self.check_token(self.body[name], name)

    def tokens(self, name: str) -> tuple[str | int, ...]:
        """Return a field that is a list of tokens; () if it is absent."""
        value = self.body.get(name, [])
        if not isinstance(value, list):
            raise self.wrong(name, "a list of tokens")
        return tuple(self.check_token(one, name) for one in value)

    def check_token(self, value: Any, name: str) -> str | int:
        """Return the name or the id of a token."""
        if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
            raise self.wrong(name, "the name or the id of a token")
        if isinstance(value, int) and not 0 <= value <= LARGEST:
            raise self.wrong(name, "the id of a token")
        return value

    def flag(self, name: str, default: OneOf["yes", "no"] = "no") -> bool:
        """Return a field that is a boolean."""
        value = self.body.get(name, default == "yes")
        if not isinstance(value, bool):
            raise self.wrong(name, "a boolean")
        return value

    def choice(self, name: str, options: tuple[str, ...], default: str) -> str:
        """Return a field that is one of several texts."""
        value = self.body.get(name, default)
        if not isinstance(value, str) or value not in options:
            raise self.wrong(name, f"one of {', '.join(options)}")
        return value

    def count(self, name: str, default: int | None, low: int = 0) -> int | None:
        """Return a field that is a number from `low`; null and an absent one are `default`."""
        value = self.body.get(name)
        if value is None and name not in FIELDS[self.kind][0].split():
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= LARGEST:
            raise self.wrong(name, f"an integer from {low}")
        return value

    def schema(self, name: str) -> Any:
        """Return a field that is a JSON Schema."""
        if not isinstance(self.body[name], (dict, bool)):
            raise self.wrong(name, "a JSON Schema, which is an object or a boolean")
        return self.body[name]

    def members(self, name: str) -> list[Any]:
        """Return a field that is a list with members."""
        value = self.body[name]
        if not isinstance(value, list):
            raise self.wrong(name, "a list")
        if not value:
            raise SchemaError(f"{name!r} is empty", pointer=self.place(name), hint="Give one or more.")
        return value

    def element(self, name: str, kind: str | None = None) -> Element:
        """Return a field that is a format."""
        return Element(self.body[name], self.place(name), kind)

    def elements(self, name: str, kind: str | None = None) -> list[Element]:
        """Return a field that is a list of formats."""
        return [Element(one, f"{self.pointer}/{name}/{k}", kind) for k, one in enumerate(self.members(name))]

    def pairs(self, name: str) -> list[tuple[Any, Element]]:
        """Return a field that is a list of pairs of anything and a format."""
        for k, one in enumerate(self.members(name)):
            if not isinstance(one, list) or len(one) != 2:
                raise SchemaError("a rule is a pair of a pattern and a format", pointer=f"{self.pointer}/{name}/{k}")
        return [(one[0], Element(one[1], f"{self.pointer}/{name}/{k}/1")) for k, one in enumerate(self.members(name))]

    def rules(self, name: str) -> list[tuple[str, Element]]:
        """Return a field that is a list of pairs of a text and a format."""
        pairs = self.pairs(name)
        for k, (text, _) in enumerate(pairs):
            if not isinstance(text, str) or not text:
                raise SchemaError(f"a pattern is {echo_value(text)}", pointer=f"{self.pointer}/{name}/{k}/0")
        return pairs

    def token_rules(self, name: str) -> list[tuple[str | int, Element]]:
        """Return a field that is a list of pairs of a token and a format."""
        return [(self.check_token(token, name), part) for token, part in self.pairs(name)]

    def refuse(self, name: str, cure: str) -> None:
        """Raise UnsupportedError if a field is given and not empty."""
        if self.body.get(name):
            raise UnsupportedError(
                f"{name!r} of a {self.kind} format is not supported", pointer=self.place(name), hint=f"Instead, {cure}."
            )
