"""The forms that are read from something: a text, a pattern, a schema, a grammar; and free text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from os.path import abspath
from typing import Any, Literal as OneOf

from .. import grammars as ready
from ..automata.dfa import Dfa
from ..base.errors import (
    ArgumentError,
    UnsatisfiableError,
    UnsupportedError,
    check_choice,
    check_count,
    check_type,
    describe_value,
)
from ..base.json_documents import References, load_document, parse_json, write_json
from ..base.options import Limits, Style
from ..frontends.lark.lark_imports import Module
from ..grammar.nodes import Chars, Grammar, Token
from .form import Form, as_form

__all__ = [
    "FreeText",
    "GbnfText",
    "LarkText",
    "RegexPattern",
    "SchemaText",
    "free_text",
    "gbnf",
    "grammar",
    "json_schema",
    "lark",
    "regex",
]


@dataclass(frozen=True, slots=True)
class RegexPattern(Form):
    """The texts that match a pattern, whole."""

    pattern: str

    def read(self, limits: Limits) -> Grammar:
        return regex_grammar(self.pattern, limits)


@dataclass(frozen=True, slots=True)
class SchemaText(Form):
    """The documents of a JSON Schema. schema, registry: as JSON text. base_uri: what references are relative to."""

    schema: str
    style: Style
    registry: str
    base_uri: str = ""

    def read(self, limits: Limits) -> Grammar:
        references = References(parse_json(self.registry, limits), self.base_uri)
        return schema_grammar(self.schema, self.style, references, limits)


@dataclass(frozen=True, slots=True)
class GbnfText(Form):
    """The texts of a GBNF grammar."""

    text: str
    start: str

    def read(self, limits: Limits) -> Grammar:
        from ..frontends import gbnf as front

        return front.to_grammar(self.text, start=self.start, limits=limits)

    def names(self, limits: Limits) -> Iterator[Token]:
        from ..grammar.visitor import inner_nodes

        try:
            made = self.grammar(limits)
        except UnsatisfiableError:  # Whether that matters is for the form that it is a part of.
            return
        todo = [made.start, *made.rules.values()]
        while todo:
            node = todo.pop()
            if isinstance(node, Token):
                yield node
            todo.extend(inner_nodes(node))


@dataclass(frozen=True, slots=True)
class LarkText(Form):
    """The texts of a Lark grammar. grammars: forms that its declared terminals stand for.

    import_paths: folders for `%import`, given by the caller. modules: texts that were found there, which go before
    them: a form that was written down has these instead of folders, see `plain`.
    """

    text: str
    start: str
    lexer: str
    grammars: tuple[tuple[str, Form], ...]
    import_paths: tuple[str, ...] = ()
    modules: tuple[Module, ...] = ()
    parser: str = ""

    def read(self, limits: Limits) -> Grammar:
        from .embedded_grammars import embed_with_lexer, embed_without_lexer

        grammars = {name: form.grammar(limits) for name, form in self.grammars}
        given = self.text, self.start, self.lexer, grammars, self.import_paths, self.modules, limits
        if self.lexer in ("dynamic", "dynamic_complete"):
            return embed_without_lexer(*given)
        return embed_with_lexer(*given, "resolve" if self.parser == "lalr" else "refuse")

    def plain(self) -> dict[str, Any]:
        """As `Form.plain`; what is imported from folders is written out, so that reading it back opens no file."""
        if not self.import_paths:
            return Form.plain(self)
        from ..frontends.lark.lark_loader import read_imported_modules

        modules = read_imported_modules(self.text, self.import_paths, self.modules)
        return Form.plain(replace(self, import_paths=(), modules=modules))


@dataclass(frozen=True, slots=True)
class FreeText(Form):
    """Any text of low to high characters, without some texts, or up to the first `until`, which is its end."""

    low: int
    high: int | None
    without: tuple[str, ...]
    until: str

    def read(self, limits: Limits) -> Grammar:
        most = limits.dfa_states
        dfa = Dfa.any_text()
        for text in self.without:
            dfa = dfa.subtract(texts_with(text), max_states=most)
        if self.until:
            end = Dfa.any_text().concatenate(Dfa.from_strings([self.until]))
            earlier = end.concatenate(Dfa.from_ranges([(0, 0x10FFFF)])).concatenate(Dfa.any_text())
            dfa = end.subtract(earlier, max_states=most).intersect(dfa, max_states=most)
        low, high = self.low, self.high
        if (low or high is not None) and not dfa.extensible():
            dfa, low, high = dfa.with_length(low, high, max_states=most), 0, None
        if dfa.is_empty:
            raise UnsatisfiableError("no free text has these bounds", hint="Allow more characters.")
        return Grammar(Chars(dfa, "utf8", low, high), {})


def texts_with(text: str) -> Dfa:
    """All texts in which `text` occurs."""
    return Dfa.any_text().concatenate(Dfa.from_strings([text])).concatenate(Dfa.any_text())


# ---- front ends, imported when a source first needs one


def regex_grammar(pattern: str, limits: Limits) -> Grammar:
    """Return the Grammar of the texts that match a pattern of Python's `re`, whole."""
    from ..frontends import regex as front

    return front.to_grammar(pattern, max_states=limits.dfa_states)


def schema_grammar(schema: Any, style: Style, references: References, limits: Limits) -> Grammar:
    """Return the Grammar of the JSON documents of a schema, given as dict, bool or JSON text."""
    from ..frontends import json_schema as front

    return front.to_grammar(schema, style=style, registry=references, limits=limits)


def as_schema(source: Any) -> Any:
    """Return a schema as it is (dict, bool, list or JSON text), and a Python type as its JSON Schema."""
    if isinstance(source, (dict, bool, str, list)):
        return source
    from ..frontends.python_types import to_schema

    return to_schema(source)


def find_schema_warnings(document: Any, references: References, style: Style, limits: Limits) -> tuple[str, ...]:
    """Return a message for whatever asserts nothing in a schema and was most likely meant to."""
    from ..frontends.json_schema.reports.schema_warnings import list_schema_warnings

    return list_schema_warnings(document, references, style, limits)


def warn_of_schema(messages: tuple[str, ...]) -> None:
    """Issue a SchemaWarning for each message."""
    if messages:
        from ..frontends.json_schema.reports.schema_warnings import warn_of_schema as warn

        warn(messages)


# ---- making them


def regex(pattern: str) -> Form:
    """The texts that match a pattern of Python's `re`, whole."""
    if not isinstance(pattern, str):
        raise TypeError(
            f"a pattern is {describe_value(pattern)}: give its text, such as pattern.pattern, with (?i) in front"
        )
    return RegexPattern(pattern)


def json_schema(
    schema: Any, *, style: Style = Style(), registry: Mapping[str, Any] | None = None, base_uri: str = ""
) -> Form:
    """The JSON documents of a schema: a dict, bool or JSON text, or a Python type that has one.

    registry, base_uri, and what is warned of: as with `constrain.compile`. Raise SchemaError for what is no schema
    document; what else is wrong with it is said when the form is read.
    """
    check_type("style", style, Style, "give a constrain.Style")
    references = References(registry, base_uri)
    document = load_document(as_schema(schema))
    documents = {uri: load_document(one) for uri, one in references.items()}
    warn_of_schema(find_schema_warnings(document, references, style, Limits()))
    return SchemaText(write_json(document), style, write_json(documents), base_uri)


def gbnf(text: str, *, start: str = "root") -> Form:
    """The texts of a grammar of llama.cpp's."""
    check_type("text", text, str, "give the text of a GBNF grammar")
    check_type("start", start, str, "give the name of a rule")
    return GbnfText(text, start)


def lark(
    text: str,
    *,
    start: str = "start",
    lexer: OneOf["contextual", "basic", "dynamic", "dynamic_complete"] = "contextual",
    grammars: Mapping[str, Form | str] = {},
    import_paths: Iterable[str | PathLike[str]] = (),
    parser: OneOf["lalr", "earley"] | None = None,
) -> Form:
    """The texts of a Lark grammar, exactly those that lark accepts.

    lexer: "contextual" and "basic" as with lark's LALR parser, "dynamic" and "dynamic_complete" as with its Earley
    parser, which has no lexer. grammars: what terminals that the text declares (`%declare NAME`) stand for. With a
    lexer these are regular, and terminals like any others; without one they may be any forms, such as
    `constrain.json_schema(S)`, in which nothing is ignored. import_paths: folders that `%import` reads from, besides
    the modules that ship with lark and constrain; nothing else is ever read.
    parser: "earley" for all texts of the rules, whose lexer is "dynamic_complete" unless it is "dynamic"; "lalr" for
    those that are left once Lark's LALR parser has resolved all conflicts. None: the same, but a grammar that loses a
    text by that is refused with the text.
    """
    check_type("text", text, str, "give the text of a Lark grammar")
    check_type("start", start, str, "give the name of a rule")
    check_choice("lexer", lexer, ("contextual", "basic", "dynamic", "dynamic_complete"))
    if parser is not None:
        check_choice("parser", parser, ("lalr", "earley"))
    check_type("grammars", grammars, Mapping, "give a dict of terminal -> Form")
    if parser == "earley":
        if lexer == "basic":
            raise UnsupportedError('the parser "earley" has no basic lexer here', hint='Use lexer="dynamic_complete".')
        lexer = "dynamic_complete" if lexer == "contextual" else lexer
    inner = tuple((name, as_form(form)) for name, form in grammars.items())
    kind = "lalr" if parser == "lalr" else ""
    return LarkText(text, start, lexer, inner, absolute_folders(import_paths), parser=kind)


def absolute_folders(import_paths: Iterable[str | PathLike[str]]) -> tuple[str, ...]:
    """Return import paths as a tuple of absolute paths: what they mean must not change with the current folder."""
    if isinstance(import_paths, (str, PathLike)):
        raise TypeError(f"import_paths is a sequence of folders: import_paths=[{import_paths!r}]")
    return tuple(abspath(fspath(path)) for path in import_paths)


GBNF_RULE = re.compile(r"^\s*[A-Za-z][\w-]*\s*::=", re.M)
READY = re.compile(r"\w+")


def grammar(text: str, *, import_paths: Iterable[str | PathLike[str]] = ()) -> Form:
    """The form of a grammar's text, or of the ready grammar (`constrain.grammars`) that is called so.

    GBNF if it has a rule with `::=`, else Lark, with the contextual lexer. Errors when it is read. import_paths: as of
    `lark`; other grammars import nothing.
    """
    check_type("grammar", text, str, "give Lark or GBNF text, or the name of a ready grammar")
    if READY.fullmatch(text):
        found = ready.read(text)
        return lark(found.text, lexer=found.lexer)
    return gbnf(text) if GBNF_RULE.search(text) else lark(text, import_paths=import_paths)


def free_text(least: int = 0, most: int | None = None, *, without: str | Iterable[str] = (), until: str = "") -> Form:
    """Any text of `least` to `most` characters (Unicode code points).

    without: texts that do not occur in it. until: it ends with the first time that this occurs, which belongs to it.
    """
    texts = (without,) if isinstance(without, str) else tuple(without)
    for one in (*texts, until):
        check_type("without and until", one, str, "give texts")
    least = check_count("least", least)
    most = None if most is None else check_count("most", most)
    if "" in texts or least < 0 or (most is not None and most < least):
        raise ArgumentError(f"free_text({least}, {most}, without={texts!r}): counts ascend from 0, texts are not empty")
    return FreeText(least, most, texts, until)
