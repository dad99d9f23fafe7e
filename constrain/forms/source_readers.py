"""What forms read sources with: the front ends, each imported when a source first needs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import cache
from os import PathLike, fspath
from os.path import abspath
from typing import Any

from ..automata.dfa import Dfa
from ..base.json_documents import LoadedDocument, References
from ..base.options import Limits, Style
from ..grammar.nodes import Grammar
from .schema_sources import normalise_schema

__all__ = [
    "absolute_folders",
    "as_schema",
    "find_schema_warnings",
    "plain_schema_grammar",
    "regex_grammar",
    "schema_grammar",
    "schema_receiver",
    "texts_with",
    "warn_of_schema",
]

schema_receiver: ContextVar[Callable[[tuple[str, ...]], None] | None] = ContextVar(
    "constrain_schema_warnings", default=None
)
"""What receives the messages about schemas in place of `warnings`, whose filters belong to all threads; None for it."""


def texts_with(text: str) -> Dfa:
    """Return the Dfa of all texts that contain `text`."""
    return Dfa.any_text().concatenate(Dfa.from_strings([text])).concatenate(Dfa.any_text())


def regex_grammar(pattern: str, limits: Limits) -> Grammar:
    """Return the Grammar of the texts that match a pattern of Python's `re`, whole."""
    from ..frontends import regex as front

    return front.to_grammar(pattern, max_states=limits.dfa_states)


def schema_grammar(schema: Any, style: Style, references: References, limits: Limits) -> Grammar:
    """Return the Grammar of the JSON documents of a schema, given as dict, bool or JSON text."""
    grammar: Grammar = _load_schema_front_end()[0](schema, style=style, registry=references, limits=limits)
    return grammar


def plain_schema_grammar(
    document: LoadedDocument, style: Style, references: References, limits: Limits
) -> Grammar | None:
    """Return the Grammar of a schema that certainly has no fault and no warning, as most; None if that is not known."""
    grammar: Grammar | None = _load_schema_front_end()[2](document, references, style, limits)
    return grammar


@cache
def _load_schema_front_end() -> tuple[
    Callable[..., Grammar], Callable[..., tuple[str, ...]], Callable[..., Grammar | None]
]:
    """Return the functions of JSON Schema that make the Grammar, the warnings, and the Grammar of plain schemas.

    Cached, since an import statement in a function is slow even where the module is loaded.
    """
    from ..frontends.json_schema import to_grammar
    from ..frontends.json_schema.reports.schema_warnings import list_schema_warnings, make_plain_grammar

    return to_grammar, list_schema_warnings, make_plain_grammar


def as_schema(source: Any) -> Any:
    """Return a schema as it is (dict, bool, JSON text or LoadedDocument), a file as its text, and a Python type as its
    JSON Schema.
    """
    source = normalise_schema(source)
    if isinstance(source, (dict, bool, str, LoadedDocument)):
        return source
    from ..frontends.python_types import to_schema

    return to_schema(source)


def find_schema_warnings(document: Any, references: References, style: Style, limits: Limits) -> tuple[str, ...]:
    """Return a message for each part of a schema that asserts nothing but was probably meant to."""
    return _load_schema_front_end()[1](document, references, style, limits)


def warn_of_schema(messages: tuple[str, ...]) -> None:
    """Issue a SchemaWarning for each message, or pass them to `schema_receiver`."""
    receive = schema_receiver.get() if messages else None
    if receive is not None:
        receive(messages)
    elif messages:
        from ..frontends.json_schema.reports.schema_warnings import warn_of_schema as warn

        warn(messages)


def absolute_folders(import_paths: Iterable[str | PathLike[str]]) -> tuple[str, ...]:
    """Return import paths as a tuple of absolute paths.

    Their meaning must not change with the current working directory. Raise TypeError for a single path.
    """
    if isinstance(import_paths, (str, PathLike)):
        raise TypeError(f"import_paths is a sequence of folders: import_paths=[{import_paths!r}]")
    return tuple(abspath(fspath(path)) for path in import_paths)
