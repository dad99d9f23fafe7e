"""Options of all commands that compile a schema: how JSON is spelled, and which documents a `$ref` may name.

The parameters of `read_arguments` declare the options once; `@takes_style` inserts them in place of a command's
parameter of type SchemaOptions, and passes their values as one SchemaOptions.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_type_hints

import typer

from ..base.cached_property import cached_property
from ..base.errors import LimitError, SourceError, shorten_text
from ..base.json_documents import References, load_document, parse_json
from ..base.options import Style
from .help_pages import SHARED
from .source_options import SchemaSource, attribute_errors, read_schema

__all__ = ["SchemaOptions", "read_arguments", "read_registry", "takes_style"]

MOST_FILES, MOST_BYTES = 1_000, 16 << 20
"""Maximum number of files in a folder that is given as registry, and of their bytes."""
MOST_INDENT = 16
"""Maximum number of spaces of an indent: a larger number is more likely a mistake."""


@dataclass(frozen=True)
class SchemaOptions:
    """The values of the options.

    documents: (URI, text) of each document of the registry. base_uri: the base URI of the schema's relative references.
    """

    style: Style = Style()
    documents: tuple[tuple[str, str], ...] = ()
    base_uri: str = ""

    @cached_property
    def registry(self) -> References:
        """Return the documents by URI, with exact numbers, and the base of relative references."""
        return References({uri: load_document(text) for uri, text in self.documents}, self.base_uri)

    def relative_to(self, source: SchemaSource) -> SchemaOptions:
        """Return the same options for a schema whose references are relative to its own file."""
        return replace(self, base_uri=source.uri)


def spelling_option(name: str, help: str, **how: Any) -> Any:
    """Return an option that controls how JSON is spelled."""
    return typer.Option(name, help=help, rich_help_panel=SHARED, **how)


def read_arguments(
    base: Style,
    key_order: Annotated[Literal["schema", "any"] | None, spelling_option("--key-order", "Order of keys.")] = None,
    whitespace: Annotated[
        str | None,
        spelling_option(
            "--whitespace", "White space between tokens; N: indented by N spaces.", metavar="flexible|compact|any|N"
        ),
    ] = None,
    escapes: Annotated[
        Literal["canonical", "any"] | None, spelling_option("--escapes", "How keys and constants are escaped.")
    ] = None,
    numbers: Annotated[
        Literal["plain", "any"] | None,
        spelling_option("--numbers", "Spelling of numbers; any: also 1.0 and 1e2 for integers."),
    ] = None,
    digits: Annotated[
        int | None,
        spelling_option(
            "--digits", "Maximum number of digits in a row, unless the schema requires more.", min=1, metavar="N"
        ),
    ] = None,
    formats: Annotated[
        Literal["assert", "annotate"] | None, spelling_option("--formats", "Whether format is enforced.")
    ] = None,
    anything: Annotated[
        bool, spelling_option("--any", "Every spelling that RFC 8259 and the schema allow: Style.any().", metavar=" ")
    ] = False,
    registry: Annotated[
        list[str] | None,
        typer.Option(
            "--registry",
            metavar="[URI=]FILE|FOLDER",
            help="A document that $ref may refer to, by $id or URI, or a folder of such documents, by $id or path; "
            "may be repeated. Nothing is ever fetched.",
        ),
    ] = None,
) -> SchemaOptions:
    """Return the values of the options; those that are not given are taken from `base`."""
    values: dict[str, Any] = {
        "key_order": key_order, "escapes": escapes, "numbers": numbers, "digits": digits, "formats": formats,
        "whitespace": None if whitespace is None else whitespace_of(whitespace),
    }  # fmt: skip
    given = {name: value for name, value in values.items() if value is not None}
    return SchemaOptions(replace(Style.any() if anything else base, **given), read_registry(registry or []))


def whitespace_of(given: str) -> Literal["flexible", "compact", "any"] | int:
    """Return the white space style. Raise BadParameter if it is invalid."""
    if given.isascii() and given.isdigit() and len(given) < 5 and int(given) <= MOST_INDENT:
        return int(given)
    if given not in ("flexible", "compact", "any"):
        raise typer.BadParameter(
            f"{shorten_text(repr(given))} is not one of flexible, compact and any, nor a number up to {MOST_INDENT}.",
            param_hint="'--whitespace'",
        )
    return cast(Literal["flexible", "compact", "any"], given)


def read_registry(given: list[str]) -> tuple[tuple[str, str], ...]:
    """Return (URI, text) of each document.

    Raise SourceError if one is not a schema, has no URI, or the URI of another one.
    """
    names: dict[str, str] = {}
    out = []
    for one in given:
        uri, equals, file = ("", "", one) if Path(one).exists() else one.rpartition("=")
        if not equals and Path(file).is_dir():
            for uri, source in read_folder(Path(file)):
                if names.setdefault(uri, source.name) != source.name:
                    with attribute_errors(source.name):
                        raise SourceError(
                            f"two documents have the URI {uri}: {names[uri]} is the other", hint="Remove one of them."
                        )
                out.append((uri, source.text))
            continue
        source = read_schema(file)
        with attribute_errors(source.name):
            uri = uri if equals else require_id(source)
            if uri in names:
                raise SourceError(
                    f"two documents have the URI {uri}: {names[uri]} is the other",
                    hint=f"Give one of them another URI: --registry URI={file}.",
                )
            load_document(source.text)
        names[uri] = source.name
        out.append((uri, source.text))
    return tuple(out)


def read_folder(folder: Path) -> Iterator[tuple[str, SchemaSource]]:
    """Yield (URI, source) of the schemas in a folder and its subfolders: by `$id`, by file URI, and by path relative to
    the folder.

    Regular files that end in .json and contain an object or a boolean are read; links are not followed. Raise
    LimitError for more than `MOST_FILES` files or `MOST_BYTES` bytes, SourceError for a file that is not JSON.
    """
    files = bytes_read = 0
    for directory, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(directory, name)
            if not name.endswith(".json") or path.is_symlink() or not path.is_file():
                continue
            files, bytes_read = files + 1, bytes_read + path.stat().st_size
            if files > MOST_FILES or bytes_read > MOST_BYTES:
                raise LimitError(
                    f"the folder {folder} has more than {MOST_FILES:,} JSON files, or {MOST_BYTES >> 20} MiB of them.",
                    hint="Give the required files one at a time: --registry FILE.",
                )
            source = read_schema(str(path))
            with attribute_errors(source.name):
                document = parse_json(source.text)
                if isinstance(document, (dict, bool)):
                    identifier = id_of(document)
                    yield from (
                        (uri, source) for uri in (identifier, source.uri, path.relative_to(folder).as_posix()) if uri
                    )


def id_of(document: Any) -> str:
    """Return the URI in the `$id` (or `id`) of a document, or ""."""
    names = (document.get("$id"), document.get("id")) if isinstance(document, dict) else ()
    return next((name.partition("#")[0] for name in names if isinstance(name, str)), "")


def require_id(source: SchemaSource) -> str:
    """Return the URI in the `$id` of a document. Raise SourceError if there is none."""
    uri = id_of(load_document(source.text))
    if not uri:
        raise SourceError(
            "the document has no $id, so no $ref can refer to it",
            pointer="",
            hint=f"Add an $id, or give the URI that the $ref uses: --registry URI={source.name}.",
        )
    return uri


def takes_style(base: Style) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that replaces the SchemaOptions parameter of a command by options of the command line.

    The options are the parameters of `read_arguments`; `base` is the style without any of them.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints, signature = get_type_hints(command, include_extras=True), inspect.signature(command)
        slot = next(name for name, hint in hints.items() if hint is SchemaOptions)
        shared = {
            name: parameter.replace(annotation=get_type_hints(read_arguments, include_extras=True)[name])
            for name, parameter in inspect.signature(read_arguments).parameters.items()
            if name != "base"
        }

        @wraps(command)
        def with_options(**given: Any) -> None:
            values = {name: given.pop(name) for name in shared}
            command(**given, **{slot: read_arguments(base, **values)})

        parameters: list[inspect.Parameter] = []
        for name, parameter in signature.parameters.items():
            parameters += shared.values() if name == slot else [parameter.replace(annotation=hints[name])]
        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        del with_options.__wrapped__  # type: ignore[attr-defined]
        with_options.__signature__ = signature.replace(parameters=keywords)  # type: ignore[attr-defined]
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
        return with_options

    return decorate
