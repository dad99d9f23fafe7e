"""What every command that compiles takes: how JSON is spelled, and which documents a `$ref` may name.

The parameters of `asked` are the options, declared here once; `@takes_style` puts them where a command has a parameter
of type Asked, and hands it what they say.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_type_hints

import typer

from ..base.errors import LimitError, SourceError, shorten_text
from ..base.json_documents import References, load_document, parse_json
from ..base.options import Style
from .source_options import Source, about, read_schema

__all__ = ["Asked", "asked", "registered", "takes_style"]

MOST_FILES, MOST_BYTES = 1_000, 16 << 20
"""Most files of a folder given as registry, and their bytes."""
MOST_INDENT = 16
"""Most spaces of an indent: beyond it a number is more likely a slip."""


@dataclass(frozen=True)
class Asked:
    """What the options say. documents: (URI, text) of each document of the registry. base_uri: what relative
    references of the schema are relative to."""

    style: Style = Style()
    documents: tuple[tuple[str, str], ...] = ()
    base_uri: str = ""

    @cached_property
    def registry(self) -> References:
        """The documents by URI, numbers exact, and the base of relative references."""
        return References({uri: load_document(text) for uri, text in self.documents}, self.base_uri)

    def relative_to(self, source: Source) -> Asked:
        """The same, for a schema whose references are relative to its own file."""
        return replace(self, base_uri=source.uri)


def spelling(name: str, help: str, **how: Any) -> Any:
    """An option of how JSON is spelled."""
    return typer.Option(name, help=help, rich_help_panel="How JSON is spelled", **how)


def asked(
    base: Style,
    key_order: Annotated[Literal["schema", "any"] | None, spelling("--key-order", "Order of keys.")] = None,
    whitespace: Annotated[
        str | None,
        spelling(
            "--whitespace", "White space between tokens; N: indented by N spaces.", metavar="flexible|compact|any|N"
        ),
    ] = None,
    escapes: Annotated[
        Literal["canonical", "any"] | None, spelling("--escapes", "How keys and constants are escaped.")
    ] = None,
    numbers: Annotated[
        Literal["plain", "any"] | None,
        spelling("--numbers", "Spelling of numbers; any: also 1.0 and 1e2 for integers."),
    ] = None,
    digits: Annotated[
        int | None, spelling("--digits", "Most digits in a row, unless the schema demands more.", min=1, metavar="N")
    ] = None,
    formats: Annotated[
        Literal["assert", "annotate"] | None, spelling("--formats", "Whether format is enforced.")
    ] = None,
    anything: Annotated[
        bool, spelling("--any", "All that RFC 8259 and the schema allow: Style.any().", metavar=" ")
    ] = False,
    registry: Annotated[
        list[str] | None,
        typer.Option(
            "--registry",
            metavar="[URI=]FILE|FOLDER",
            help="A document that $ref may name, by its $id or by URI, or a folder of such, by $id or place; repeat "
            "it. "
            "Nothing is ever fetched.",
        ),
    ] = None,
) -> Asked:
    """What the options say; what they do not say is as in `base`."""
    said: dict[str, Any] = {
        "key_order": key_order, "escapes": escapes, "numbers": numbers, "digits": digits, "formats": formats,
        "whitespace": None if whitespace is None else whitespace_of(whitespace),
    }  # fmt: skip
    given = {name: value for name, value in said.items() if value is not None}
    return Asked(replace(Style.any() if anything else base, **given), registered(registry or []))


def whitespace_of(given: str) -> Literal["flexible", "compact", "any"] | int:
    """The white space that is meant. BadParameter if there is none."""
    if given.isascii() and given.isdigit() and len(given) < 5 and int(given) <= MOST_INDENT:
        return int(given)
    if given not in ("flexible", "compact", "any"):
        raise typer.BadParameter(
            f"{shorten_text(repr(given))} is none of flexible, compact, any, and no number up to {MOST_INDENT}.",
            param_hint="'--whitespace'",
        )
    return cast(Literal["flexible", "compact", "any"], given)


def registered(given: list[str]) -> tuple[tuple[str, str], ...]:
    """(URI, text) of each document. SourceError if one is no schema, has no name, or that of another one."""
    names: dict[str, str] = {}
    out = []
    for one in given:
        uri, equals, file = ("", "", one) if Path(one).exists() else one.rpartition("=")
        if not equals and Path(file).is_dir():
            for uri, source in in_folder(Path(file)):
                if names.setdefault(uri, source.name) != source.name:
                    with about(source.name):
                        raise SourceError(f"{names[uri]} is named {uri} too.", hint="Leave one of them out.")
                out.append((uri, source.text))
            continue
        source = read_schema(file)
        with about(source.name):
            uri = uri if equals else own_name(source)
            if uri in names:
                raise SourceError(
                    f"{names[uri]} is named {uri} too.", hint=f"Name one of them otherwise: --registry URI={file}."
                )
            load_document(source.text)
        names[uri] = source.name
        out.append((uri, source.text))
    return tuple(out)


def in_folder(folder: Path) -> Iterator[tuple[str, Source]]:
    """(URI, source) of the schemas in a folder and those below: by `$id`, by place, and relative to the folder.

    Read are regular files that end in .json and hold an object or a boolean; links are not followed. Raise LimitError
    for more than `MOST_FILES` files or `MOST_BYTES` bytes, SourceError for a file that is not JSON.
    """
    files = bytes_read = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(place, name)
            if not name.endswith(".json") or path.is_symlink() or not path.is_file():
                continue
            files, bytes_read = files + 1, bytes_read + path.stat().st_size
            if files > MOST_FILES or bytes_read > MOST_BYTES:
                raise LimitError(
                    f"The folder {folder} has more than {MOST_FILES:,} JSON files, or {MOST_BYTES >> 20} MiB of them.",
                    hint="Name the files that are needed: --registry FILE.",
                )
            source = read_schema(str(path))
            with about(source.name):
                document = parse_json(source.text)
                if isinstance(document, (dict, bool)):
                    own = id_of(document)
                    yield from ((uri, source) for uri in (own, source.uri, path.relative_to(folder).as_posix()) if uri)


def id_of(document: Any) -> str:
    """The URI that a document gives itself, or ""."""
    names = (document.get("$id"), document.get("id")) if isinstance(document, dict) else ()
    return next((name.partition("#")[0] for name in names if isinstance(name, str)), "")


def own_name(source: Source) -> str:
    """The URI that a document gives itself."""
    uri = id_of(load_document(source.text))
    if not uri:
        raise SourceError(
            "It has no $id, so no $ref can name it.",
            pointer="",
            hint=f"Add one, or name it here as the $ref does: --registry URI={source.name}.",
        )
    return uri


def takes_style(base: Style) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with the options of `asked` in place of its parameter of type Asked."""

    def taking(command: Callable[..., None]) -> Callable[..., None]:
        hints, own = get_type_hints(command, include_extras=True), inspect.signature(command)
        place = next(name for name, hint in hints.items() if hint is Asked)
        shared = {
            name: parameter.replace(annotation=get_type_hints(asked, include_extras=True)[name])
            for name, parameter in inspect.signature(asked).parameters.items()
            if name != "base"
        }

        @wraps(command)
        def with_options(**given: Any) -> None:
            said = {name: given.pop(name) for name in shared}
            command(**given, **{place: asked(base, **said)})

        parameters: list[inspect.Parameter] = []
        for name, parameter in own.parameters.items():
            parameters += shared.values() if name == place else [parameter.replace(annotation=hints[name])]
        keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        del with_options.__wrapped__  # type: ignore[attr-defined]
        with_options.__signature__ = own.replace(parameters=keywords)  # type: ignore[attr-defined]
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
        return with_options

    return taking
