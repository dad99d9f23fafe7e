"""Dialects and scopes: which keywords a schema has, by its `$schema`, and which resource contains it.

`$schema` names a meta-schema: one of the five of the drafts, or one of the registry, whose own `$schema` names the
draft and whose `$vocabulary` (core specification, section 8.1.2) the groups of keywords; a keyword of another group is
unknown, so it asserts nothing. Any other name, or none, is taken as 2020-12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ....base.errors import SchemaError, UnsupportedError

__all__ = ["DIALECTS", "NEWEST", "Dialect", "Scope", "resolve_dialect"]


class Dialect(NamedTuple):
    """draft: 4, 6, 7, 2019 or 2020. vocabularies: names of its groups of keywords; None for the usual ones."""

    draft: int
    vocabularies: frozenset[str] | None = None

    @property
    def asserts_formats(self) -> bool:
        """Whether the dialect itself makes `format` an assertion."""
        return self.vocabularies is not None and "format-assertion" in self.vocabularies


class Scope(NamedTuple):
    """The resource that contains a subschema: its base URI, its root, the pointer of the root, its dialect.

    entered: pairs of a dynamic anchor and the URI of the first resource that has it in the dynamic scope, sorted; "" is
    the recursive anchor of 2019-09.
    """

    uri: str
    root: Any
    pointer: str
    dialect: Dialect
    entered: tuple[tuple[str, str], ...] = ()

    @property
    def draft(self) -> int:
        """The draft: 4, 6, 7, 2019 or 2020."""
        return self.dialect.draft


NEWEST = Dialect(2020)

DIALECTS = {
    "http://json-schema.org/draft-04/schema": Dialect(4),
    "http://json-schema.org/draft-06/schema": Dialect(6),
    "http://json-schema.org/draft-07/schema": Dialect(7),
    "https://json-schema.org/draft/2019-09/schema": Dialect(2019),
    "https://json-schema.org/draft/2020-12/schema": NEWEST,
}
"""Dialects by `$schema` without an empty fragment."""

UNSUPPORTED_DRAFTS = ("http://json-schema.org/draft-03/schema", "http://json-schema.org/draft-02/schema")

VOCABULARY_URIS = {
    2019: "https://json-schema.org/draft/2019-09/vocab/",
    2020: "https://json-schema.org/draft/2020-12/vocab/",
}
"""The prefix of the URI of each vocabulary, by draft."""

VOCABULARIES = {
    2019: frozenset(("core", "applicator", "validation", "meta-data", "format", "content")),
    2020: frozenset((
        "core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "format-assertion",
        "content",
    )),
}  # fmt: skip


def resolve_dialect(raw: dict[str, Any], inherited: Dialect, pointer: str, registry: Mapping[str, Any]) -> Dialect:
    """Return the dialect that `$schema` names, or the inherited one.

    Raise SchemaError if it is not a string, and UnsupportedError for draft 3 and older and for a meta-schema of the
    registry that requires an unknown vocabulary.
    """
    name = raw.get("$schema")
    if name is None:
        return inherited
    if not isinstance(name, str):
        raise SchemaError("$schema must be a string.", pointer=pointer + "/$schema")
    seen: set[str] = set()
    vocabularies = None
    while (name := name.removesuffix("#")) not in DIALECTS:
        if name in UNSUPPORTED_DRAFTS:
            raise UnsupportedError("Drafts before 4 are not supported.", pointer=pointer + "/$schema")
        meta = registry.get(name)
        if not isinstance(meta, dict) or name in seen:
            return NEWEST
        seen.add(name)
        vocabularies = meta.get("$vocabulary") if vocabularies is None else vocabularies
        name = meta.get("$schema")
        if not isinstance(name, str):
            name = "https://json-schema.org/draft/2020-12/schema"
    found = DIALECTS[name]
    return found if vocabularies is None or found.draft < 2019 else _declared(found.draft, vocabularies, pointer)


def _declared(draft: int, vocabularies: Any, pointer: str) -> Dialect:
    """Return the dialect of a meta-schema's `$vocabulary`."""
    names = set()
    for uri, required in vocabularies.items() if isinstance(vocabularies, dict) else ():
        name = uri.removeprefix(VOCABULARY_URIS[draft])
        if name in VOCABULARIES[draft]:
            names.add(name)
        elif required:
            raise UnsupportedError(
                f"The meta-schema contains a vocabulary that is not one of the draft's: {uri}",
                pointer=pointer + "/$schema",
                hint="Write false instead of true there, if the vocabulary need not be enforced.",
            )
    return Dialect(draft, frozenset(names))
