"""Dispatch to the frontends: the Grammar of exactly one source, with the arguments of `constrain.compile`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..base.errors import SourceError, UnsatisfiableError, check_type, describe_value
from ..base.json_documents import References
from ..base.options import Limits, Style
from ..grammar.grammar_source_type import GrammarSource
from ..grammar.nodes import Grammar, Strings
from .source_readers import as_schema, regex_grammar, schema_grammar

if TYPE_CHECKING:
    from .form import Form

__all__ = ["LIMITS_WANTED", "STYLE_WANTED", "read_source"]

STYLE_WANTED = 'give a constrain.Style, such as Style(whitespace="compact")'
LIMITS_WANTED = "give a constrain.Limits, such as Limits(work=10_000_000)"


def read_source(
    schema: Any = None,
    regex: str | None = None,
    grammar: str | Grammar | Form | None = None,
    choices: Iterable[str] | None = None,
    type: Any = None,
    *,
    style: Style,
    registry: References,
    limits: Limits,
) -> Grammar:
    """Return the Grammar of exactly one source, without issuing warnings.

    This function is also called while a text is generated, to rebuild rules of a program that was loaded from the
    cache. Raise TypeError unless exactly one of schema, regex, grammar, choices and type is given.
    """
    sources = {"schema": schema, "regex": regex, "grammar": grammar, "choices": choices, "type": type}
    given = [name for name, value in sources.items() if value is not None]
    check_type("style", style, Style, STYLE_WANTED)
    check_type("limits", limits, Limits, LIMITS_WANTED)
    if len(given) != 1:
        found = ", ".join(given) or "none (null alone is type=type(None))"
        raise TypeError(f"give exactly one of schema, regex, grammar, choices, type; got {found}")
    if grammar is not None:
        if isinstance(grammar, Grammar):
            return grammar
        if not isinstance(grammar, GrammarSource):
            from .sources import grammar as grammar_form

            grammar = grammar_form(grammar)
        return grammar.grammar(limits)
    if choices is not None:
        options = tuple(sorted({encode_choice(choice) for choice in choices}))
        if not options:
            raise UnsatisfiableError("choices is empty.", hint="Give at least one choice.")
        return Grammar(Strings(options), {})
    if regex is not None:
        if not isinstance(regex, str):
            hint = "Give pattern.pattern, with its flags in front, such as (?i)."
            if isinstance(regex, GrammarSource):
                hint = "It is a form already: give it as grammar=."
            raise SourceError(f"regex is {describe_value(regex)}: it is the text of a pattern", hint=hint)
        return regex_grammar(regex, limits)
    return schema_grammar(as_schema(schema if schema is not None else type), style, registry, limits)


def encode_choice(text: str) -> bytes:
    """Return a choice as UTF-8. Raise SourceError if it is not a str or holds an unpaired surrogate."""
    if not isinstance(text, str):
        raise SourceError(
            f"a choice is {describe_value(text)}: choices are texts",
            hint="For members of an Enum use type= with the class, for other values schema={'enum': [...]}.",
        )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SourceError(
            "A choice holds half of a surrogate pair, which is not a character.",
            source=repr(text),
            position=error.start + 1,
        ) from None
