"""Is one language included in another? Decided where it can be, otherwise searched for a difference; it says which.

    compare_schemas(a, b)    two JSON Schemas: every value that one accepts and the other does not
    compare_forms(a, b)      two Forms, by their texts: patterns, grammars, one schema in two styles

*Decided.* A is included in B if and only if "A and not B" is empty. For schemas that is again a schema, whose emptiness
the compiler decides ({"allOf": [A, {"not": B}]}); for forms it is the intersection with a complement, for which B must
be regular. If it is not empty, its shortest text is an example of the difference.

*Enumerated.* If the compiler refuses that, but A has few texts, all of them are checked.

*Sampled.* Otherwise random texts of A are checked against B. An example found so is a proof of a difference; that none
was found proves nothing.

Every example was checked: A accepts it and B refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...base.errors import ConstrainError, TokenRefused, UnsatisfiableError
from ...base.json_documents import parse_json
from ...base.options import Limits, Style
from ...compilation.constraint_compiler import compile
from ...engine.constraint import Constraint
from ...engine.text_enumeration import list_texts
from ...forms.form import Form
from ...grammar.visitor import walk_nodes
from ...vocabulary.vocabulary import Vocabulary
from ..samples.random_instances import Walker, random_text
from .comparison_report import draw_languages
from .comparison_results import ComparedLanguages, Inclusion, Method

__all__ = ["MOST_TEXTS", "LanguageComparison", "compare_forms", "compare_schemas"]

MOST_TEXTS = 20_000
"""Maximum number of texts of a language that are enumerated."""
LONGEST_WALK, STOP = 60, 0.2
"""Number of bytes after which a random text is completed; the probability of stopping where it is complete."""
SAMPLES = 500
"""Default number of random texts."""


class LanguageComparison(ComparedLanguages):
    """Two languages, for a notebook too. The attributes are those of `ComparedLanguages`."""

    def _repr_html_(self) -> str:
        return draw_languages(self)


@dataclass(frozen=True)
class _Side:
    """A language: whether it has a text, and its Constraint, which raises UnsatisfiableError if it has none."""

    accepts: Callable[[bytes], bool]
    constraint: Callable[[], Constraint]


def compare_schemas(
    first: Any,
    second: Any,
    *,
    names: tuple[str, str] = ("A", "B"),
    registry: Mapping[str, Any] | None = None,
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
    limits: Limits = Limits(),
) -> LanguageComparison:
    """Compare the values that two JSON Schemas accept, in any spelling.

    Parameters
    ----------
    first, second : dict, bool or str
        The schemas, as Python values or JSON texts.
    names : tuple of str
        Names for the report.
    registry : mapping, optional
        Documents by URI, for references that leave the schemas.
    samples : int
        Number of random values of each schema that are checked where inclusion cannot be decided.
    rng : numpy.random.Generator, optional
        By default one with seed 0.
    limits : Limits
        Budgets of each compilation.

    Returns
    -------
    LanguageComparison

    Raises
    ------
    SourceError, UnsupportedError, LimitError
        If one of the schemas cannot be compiled.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    style = Style.any()
    build = partial(_compile, style=style, registry=dict(registry or {}), limits=limits)
    sides = [_make_side(partial(build, schema=one)) for one in (first, second)]
    documents = [parse_json(one) if isinstance(one, str) else one for one in (first, second)]

    def difference(a: int, b: int) -> Constraint:
        uris = ("urn:constrain:first", "urn:constrain:second")
        both = {uri: _without_id(document) for uri, document in zip(uris, documents)}
        schema = {"allOf": [{"$ref": uris[a]}, {"not": {"$ref": uris[b]}}]}
        return _compile(schema=schema, style=style, registry={**(registry or {}), **both}, limits=limits)

    return _compare(sides, difference, names, samples, rng)


def compare_forms(
    first: Form,
    second: Form,
    *,
    names: tuple[str, str] = ("A", "B"),
    samples: int = SAMPLES,
    rng: np.random.Generator | None = None,
    limits: Limits = Limits(),
) -> LanguageComparison:
    """Compare the texts of two Forms: patterns, grammars, or schemas in some style.

    Arguments and errors are as for `compare_schemas`.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    forms = (first, second)
    sides = [_make_side(partial(_compile, grammar=form, limits=limits)) for form in forms]
    return _compare(sides, lambda a, b: _compile(grammar=forms[a] & ~forms[b], limits=limits), names, samples, rng)


def _compile(*, limits: Limits, **source: Any) -> Constraint:
    return compile(Vocabulary.bytes(), limits=limits, **source)


def _without_id(document: Any) -> Any:
    """Return a schema without its own URI: two versions of one schema usually have the same."""
    return {k: v for k, v in document.items() if k not in ("$id", "id")} if isinstance(document, dict) else document


def _make_side(build: Callable[[], Constraint]) -> _Side:
    """Return a language that is compiled once. Raise the errors of the compilation, except that it is empty."""
    try:
        constraint = build()
    except UnsatisfiableError:
        return _Side(lambda _: False, build)

    def accepts(text: bytes) -> bool:
        matcher = constraint.matcher()
        try:
            matcher.advance_bytes(text)
        except TokenRefused:
            return False
        return matcher.is_complete

    return _Side(accepts, lambda: constraint)


def _compare(
    sides: list[_Side],
    difference: Callable[[int, int], Constraint],
    names: tuple[str, str],
    samples: int,
    rng: np.random.Generator,
) -> LanguageComparison:
    """Compare two languages in both directions."""
    directions = [
        _find_inclusion(sides[a], sides[b], partial(difference, a, b), samples, rng) for a, b in ((0, 1), (1, 0))
    ]
    return LanguageComparison(names, *directions)


def _find_inclusion(
    inner: _Side, outer: _Side, difference: Callable[[], Constraint], samples: int, rng: np.random.Generator
) -> Inclusion:
    """Return whether every text of `inner` is one of `outer`."""
    try:
        constraint = inner.constraint()
    except UnsatisfiableError:
        return Inclusion(True, "empty")
    decided = _decide(inner, outer, difference)
    if decided.included is not None:
        return decided
    listed = list_texts(constraint.grammar, MOST_TEXTS)
    if listed is not None:
        return replace(_check(iter(listed), inner, outer, "enumerated"), reason=decided.reason)
    found = _check((draw_text(constraint, rng) for _ in range(samples)), inner, outer, "sampled")
    return replace(found, included=None if found.included else False, reason=decided.reason)


def _decide(inner: _Side, outer: _Side, difference: Callable[[], Constraint]) -> Inclusion:
    """Decide inclusion by the emptiness of the difference; `included` is None, with the reason, if that fails."""
    try:
        example = difference().matcher().shortest_completion()
    except UnsatisfiableError:
        return Inclusion(True, "decided")
    except ConstrainError as error:
        return Inclusion(None, "decided", reason=error.cause)
    if example is None or not inner.accepts(example) or outer.accepts(example):
        return Inclusion(None, "decided", reason="the difference could not be confirmed by an example")
    return Inclusion(False, "decided", show(example), 1)


def _check(texts: Iterator[bytes], inner: _Side, outer: _Side, method: Method) -> Inclusion:
    """Check texts of `inner`, and return the first, or among samples the shortest, that `outer` refuses."""
    checked, shortest = 0, None
    for text in texts:
        checked += 1
        if inner.accepts(text) and not outer.accepts(text) and (shortest is None or len(text) < len(shortest)):
            shortest = text
            if method == "enumerated":  # they are listed by length
                break
    return Inclusion(shortest is None, method, None if shortest is None else show(shortest), checked)


def draw_text(constraint: Constraint, rng: np.random.Generator) -> bytes:
    """Return a random text of a constraint: a readable one, or a walk through the bytes that may come next."""
    grammar = constraint.grammar
    if all(isinstance(node, Walker.node_classes) for node in walk_nodes(grammar.start, *grammar.rules.values())):
        return random_text(constraint, rng)
    matcher, text = constraint.matcher(), b""
    while len(text) < LONGEST_WALK and not (matcher.is_complete and rng.random() < STOP):
        choices = sorted(matcher.next_bytes())
        if not choices:
            break
        byte = bytes((choices[int(rng.integers(len(choices)))],))
        matcher.advance_bytes(byte)
        text += byte
    return text + (matcher.shortest_completion() or b"")


def show(text: bytes) -> str:
    """Return an example as text; bytes that are no UTF-8 as escapes."""
    return text.decode("utf-8", "backslashreplace")
