"""Limits on the numbers, lists and constraints of a request, whatever its endpoint.

Fields of a wrong type are left to the reader of the endpoint. Nothing is lowered to a limit: what exceeds one
is refused with the JSON pointer of the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from ..base.errors import SchemaError
from ..base.json_documents import plain_document, write_json
from ..forms.form import Form
from .request_errors import RequestError
from .server_settings import ServerSettings

__all__ = ["check_request_size", "digest_constraint"]

COUNTED = {
    "n": "max_n", "best_of": "max_n", "max_tokens": "max_tokens", "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
}  # fmt: skip
"""Fields that are numbers, and the settings that limit them."""
LISTED = {"tools": "max_tools", "functions": "max_tools", "stop": "max_stops", "prompt": "max_n"}
"""Fields that are lists, and the settings that limit their lengths."""
SOURCES = ("schema", "regex", "grammar", "choices")
"""The options of the Engine that hold a constraint."""


def check_request_size(body: Mapping[str, Any], settings: ServerSettings) -> None:
    """Check the numbers and lengths of a request.

    Parameters
    ----------
    body : mapping
        The body, parsed.
    settings : ServerSettings

    Raises
    ------
    RequestError
        If a number or a length exceeds its limit.
    """
    for field, what, value, setting in list_sizes(body):
        most = getattr(settings, setting)
        if value > most:
            raise RequestError(
                f"{field} {what} {value:,}, and this server allows at most {most:,}", f"/{field}",
                hint=f"Its operator can raise the limit {setting}.", code="limit_exceeded",
            )  # fmt: skip


def list_sizes(body: Mapping[str, Any]) -> Iterator[tuple[str, str, float, str]]:
    """Yield the fields that are limited: name, a verb, size, and the setting."""
    for field, setting in COUNTED.items():
        value = body.get(field)
        if isinstance(value, (int, float)):
            yield field, "is", value, setting
    for field, setting in LISTED.items():
        value = body.get(field)
        if isinstance(value, list) and not (field == "prompt" and all(isinstance(one, int) for one in value)):
            yield field, "has a length of", len(value), setting
    stops = body.get("stop")
    for stop in stops if isinstance(stops, list) else [stops]:
        if isinstance(stop, str):
            yield "stop", "has a text whose bytes are", len(stop.encode("utf-8", "surrogatepass")), "max_stop_bytes"


def digest_constraint(options: Mapping[str, Any], settings: ServerSettings, pointer: str) -> str:
    """Return the kind and a digest of the constraint of a call, such as "schema:5f2b0c…"; "" if it has none.

    Raises
    ------
    RequestError
        If the constraint has more bytes than the server allows, or cannot be written as JSON.
    """
    name = next((name for name in SOURCES if options.get(name) is not None), None)
    if name is None:
        return ""
    try:
        given = options[name]
        data = write_json(plain_document(given.plain() if isinstance(given, Form) else given)).encode()
    except SchemaError as error:
        raise RequestError(f"the {name} cannot be written as JSON: {error}", pointer) from None
    if len(data) > settings.max_schema_bytes:
        raise RequestError(
            f"the {name} has {len(data):,} bytes, and this server allows at most {settings.max_schema_bytes:,}",
            pointer, hint="Its operator can raise the limit max_schema_bytes.", code="limit_exceeded",
        )  # fmt: skip
    return f"{name}:{sha256(data).hexdigest()[:16]}"
