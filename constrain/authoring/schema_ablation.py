"""Which keywords of a schema refuse a text: those without which the text could go on.

A byte is refused if no text of the language continues with it, and in general no single keyword "did" that: `required`
refuses a closing brace only because `properties` let the object come so far. What can be stated exactly is the
counterfactual: *if this keyword were not in the schema, the byte would be allowed*. It is found by removing keywords
and compiling what is left, so that it holds for everything that is enforced, guards and `uniqueItems` included.

Where no single keyword suffices, a minimal set is found by divide and conquer (QuickXplain, Junker 2004), in about
k log(n / k) compilations for k of n keywords. A keyword below `not`, `oneOf`, `if` or `contains` is not removed alone,
since a weaker subschema there makes a stronger schema; the outer keyword is removed as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..base.errors import ConstrainError, TokenRefused, shorten_text
from ..base.json_documents import References, parse_json
from ..base.options import Limits, Style
from ..base.work import confine_budgets, work_budget
from ..compilation.constraint_compiler import compile_grammar
from ..engine.constraint import Constraint
from ..forms.source_grammar import read_source
from ..frontends.json_schema.reading.keywords import KEYWORDS, iterate_subschemas
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["MOST_COMPILATIONS", "Ablation", "RefusingKeyword", "find_refusing_keywords"]

MOST_COMPILATIONS = 120
"""Maximum number of schemas that are compiled to explain one refusal."""
MOST_SINGLE = 40
"""Up to so many keywords are removed one by one, so that all that refuse a text by themselves are found."""
LATEST = 2020
SHOWN = 80
"""Maximum number of characters of a keyword's value that are shown."""
WHOLE = frozenset(("not", "oneOf", "if", "contains", "enum", "const", "dependencies", "propertyNames"))
"""Keywords that are removed as a whole, with the subschemas in them."""
ASSERTIONS = frozenset(row.name for row in KEYWORDS if not row.holds and not row.name.startswith("$")) | WHOLE
APPLICATORS = frozenset(row.name for row in KEYWORDS) - ASSERTIONS

Path = tuple[str | int, ...]
Place = tuple[str, Path]
"""The URI of a document ("" for the schema itself), and the reference tokens of a keyword in it."""
Cause = Literal["keywords", "all keywords", "style", "json", "unknown"]


@dataclass(frozen=True, slots=True)
class RefusingKeyword:
    """A keyword without which a text would be allowed.

    Attributes
    ----------
    keyword : str
        Its name.
    pointer : str
        Its place: the URI of the document, empty for the schema itself, "#", and a JSON pointer.
    value : str
        Its value as JSON, shortened.
    """

    keyword: str
    pointer: str
    value: str

    def __str__(self) -> str:
        return f"{self.keyword} at {self.pointer}: {self.value}"


@dataclass(frozen=True, slots=True)
class Ablation:
    """What refuses a text.

    Attributes
    ----------
    cause : {"keywords", "all keywords", "style", "json", "unknown"}
        "keywords": without any one of `keywords` the text would be allowed, and with other values of the fields `style`
        of the Style, if there are any. "all keywords": only without all of them. "style": only with other values of
        `style`. "json": the text is the beginning of no JSON
        text. "unknown": nothing of these was found within `MOST_COMPILATIONS` compilations.
    keywords : tuple of RefusingKeyword
    style : tuple of str
        Names of fields of Style.
    compilations : int
        Number of schemas that were compiled to find this.
    """

    cause: Cause
    keywords: tuple[RefusingKeyword, ...] = ()
    style: tuple[str, ...] = ()
    compilations: int = 0


class OutOfCompilations(Exception):
    """The explanation needs more than MOST_COMPILATIONS compilations."""


def find_refusing_keywords(
    source: Mapping[str, Any], accepts: Callable[[Constraint], bool], limits: Limits
) -> Ablation:
    """Find the keywords, or the fields of the Style, that refuse a text.

    Parameters
    ----------
    source : Mapping
        The source of a Constraint (`Constraint.source`), made of a schema.
    accepts : callable
        Whether a Constraint over single bytes allows the text.
    limits : Limits
        Budgets of each compilation.

    Returns
    -------
    Ablation
    """
    search = _Search(source, accepts, limits)
    try:
        return search.find()
    except OutOfCompilations:
        return Ablation("unknown", compilations=search.compilations)


class _Search:
    """The search for one text. documents: the schema under "", and those of the registry by URI."""

    def __init__(self, source: Mapping[str, Any], accepts: Callable[[Constraint], bool], limits: Limits) -> None:
        schema = source["schema"]
        self.documents: dict[str, Any] = {"": parse_json(schema) if isinstance(schema, str) else schema}
        self.documents.update(source.get("registry", {}))
        self.style, self.base_uri = Style(**source.get("style", {})), source.get("base_uri", "")
        self.accepts, self.limits, self.compilations = accepts, limits, 0
        self.vocabulary = Vocabulary.bytes()

    def find(self) -> Ablation:
        """Find the cause: keywords that assert something, then the style, then both, then keywords with subschemas."""
        loose = Style.any()
        if not self.allows_anything(loose):
            return Ablation("json", compilations=self.compilations)
        places = sorted(self.list_places(), key=lambda place: (-len(place[1]), str(place)))
        asserting = [place for place in places if self.is_assertion(place)]
        if self.allows(asserting, self.style):
            return self.reduce(asserting, self.style)
        if self.allows((), loose):
            return Ablation("style", style=self.find_style(), compilations=self.compilations)
        for chosen, style in ((asserting, loose), (places, self.style), (places, loose)):
            if self.allows(chosen, style):
                return self.reduce(chosen, style)
        return Ablation("unknown", compilations=self.compilations)

    def reduce(self, places: Sequence[Place], style: Style) -> Ablation:
        """Return the Ablation of places all of which together refuse the text."""
        fields = self.find_alternative_style() if style == self.style else self.find_style(places)
        if len(places) <= MOST_SINGLE:
            alone = [place for place in places if self.allows((place,), style)]
            if alone:
                return self.report("keywords", alone, fields)
        found = self.explain((), False, list(places), style)
        return self.report("keywords" if len(found) == 1 else "all keywords", found, fields)

    def explain(self, removed: Sequence[Place], grown: bool, places: list[Place], style: Style) -> list[Place]:
        """Return a minimal part of `places` whose removal, with that of `removed`, allows the text (QuickXplain)."""
        if grown and self.allows(removed, style):
            return []
        if len(places) == 1:
            return places
        first, second = places[: len(places) // 2], places[len(places) // 2 :]
        right = self.explain((*removed, *first), bool(first), second, style)
        return [*self.explain((*removed, *right), bool(right), first, style), *right]

    def report(self, cause: Cause, places: Sequence[Place], style: tuple[str, ...]) -> Ablation:
        """Return the Ablation of these places, in the order of the documents."""
        named = tuple(self.describe(place) for place in sorted(places, key=str))
        return Ablation(cause, named, style, self.compilations)

    def describe(self, place: Place) -> RefusingKeyword:
        """Return a place as a RefusingKeyword. The names in `required` are places of their own."""
        uri, path = place
        keyword = next(str(step) for step in reversed(path) if not isinstance(step, int))
        pointer = "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
        value = shorten_text(json.dumps(follow(self.documents[uri], path), ensure_ascii=False, default=str), SHOWN)
        return RefusingKeyword(keyword, f"{uri}#{pointer}", value)

    # ---- style ------------------------------------------------------------------------------------------------

    def find_style(self, removed: Sequence[Place] = ()) -> tuple[str, ...]:
        """Return a minimal set of fields of the Style that refuse the text, with these places removed."""
        loose = Style.any()
        fields = [name for name in STYLE_FIELDS if getattr(loose, name) != getattr(self.style, name)]
        kept = list(fields)
        for name in fields:
            fewer = [one for one in kept if one != name]
            if self.allows(removed, self.loosen(fewer)):
                kept = fewer
        return tuple(kept)

    def find_alternative_style(self) -> tuple[str, ...]:
        """Return the fields of the Style that refuse a text by themselves, too, such as the order of keys.

        Other spellings of numbers are no answer: 360 does not violate `maximum: 100` if it is continued as 360e-1.
        """
        if not self.allows((), Style.any()):
            return ()
        fields = self.find_style()
        return () if "numbers" in fields else fields

    def loosen(self, fields: Sequence[str]) -> Style:
        """Return the style with these fields as in `Style.any()`."""
        loose = Style.any()
        values = {name: getattr(loose if name in fields else self.style, name) for name in STYLE_FIELDS}
        return Style(**values, formats=self.style.formats)

    # ---- schemas ----------------------------------------------------------------------------------------------

    def list_places(self) -> Iterator[Place]:
        """Yield the places of all keywords that can be removed."""
        for uri, document in self.documents.items():
            todo: list[tuple[Path, Any]] = [((), document)]
            while todo:
                path, schema = todo.pop()
                if not isinstance(schema, dict):
                    continue
                for name, value in schema.items():
                    if name == "required" and isinstance(value, list):
                        yield from ((uri, (*path, name, index)) for index in range(len(value)))
                    elif name in ASSERTIONS or name in APPLICATORS:
                        yield uri, (*path, name)
                todo += [
                    ((*path, *steps), inner)
                    for steps, inner in iterate_subschemas(schema, LATEST)
                    if steps[0] not in WHOLE
                ]

    def is_assertion(self, place: Place) -> bool:
        """Return whether a place asserts something itself: not through subschemas, except for false."""
        uri, path = place
        names = [step for step in path if not isinstance(step, int)]
        return names[-1] in ASSERTIONS or follow(self.documents[uri], path) is False

    def allows_anything(self, style: Style) -> bool:
        """Return whether the text is allowed as a JSON text of any value."""
        return self.try_documents({"": True}, style)

    def allows(self, removed: Sequence[Place], style: Style) -> bool:
        """Return whether the text is allowed without these keywords."""
        by_document: dict[str, list[Path]] = {}
        for uri, path in removed:
            by_document.setdefault(uri, []).append(path)
        return self.try_documents(
            {uri: remove_paths(document, by_document.get(uri, [])) for uri, document in self.documents.items()}, style
        )

    @confine_budgets
    def try_documents(self, documents: Mapping[str, Any], style: Style) -> bool:
        """Compile documents and return whether the text is allowed; it is not if they cannot be compiled."""
        if self.compilations >= MOST_COMPILATIONS:
            raise OutOfCompilations
        self.compilations += 1
        registry = References({uri: document for uri, document in documents.items() if uri}, self.base_uri)
        try:
            with work_budget(self.limits.work):
                grammar = read_source(schema=documents[""], style=style, registry=registry, limits=self.limits)
                return self.accepts(compile_grammar(grammar, self.vocabulary, self.limits))
        except TokenRefused:
            return False
        except ConstrainError:  # without a keyword, the others may be unsatisfiable, unsupported or too large
            return False


STYLE_FIELDS = ("whitespace", "key_order", "escapes", "numbers", "digits")


def follow(document: Any, path: Path) -> Any:
    """Return the value at a path."""
    for step in path:
        document = document[step]
    return document


def remove_paths(document: Any, paths: Sequence[Path]) -> Any:
    """Return a copy of a document without the values at these paths. Parts that do not change are shared."""
    if not paths:
        return document
    if isinstance(document, list):
        inner: dict[int, list[Path]] = {}
        for first, *rest in paths:
            inner.setdefault(int(first), []).append(tuple(rest))
        return [
            remove_paths(value, inner.get(index, []))
            for index, value in enumerate(document)
            if () not in inner.get(index, [])
        ]
    below: dict[str, list[Path]] = {}
    for first, *rest in paths:
        below.setdefault(str(first), []).append(tuple(rest))
    return {
        name: remove_paths(value, below.get(name, []))
        for name, value in document.items()
        if () not in below.get(name, [])
    }
