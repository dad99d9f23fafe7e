"""Forms that are read from a source (pattern, JSON Schema, Lark or GBNF grammar), and free text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from types import ModuleType
from typing import Any, Literal as OneOf

from .. import grammars as ready
from ..automata.dfa import Dfa
from ..base.errors import (
    ArgumentError,
    GrammarError,
    UnsatisfiableError,
    UnsupportedError,
    check_choice,
    check_count,
    check_type,
    describe_value,
    shorten_text,
)
from ..base.json_documents import References, load_document, parse_json, write_json
from ..base.options import Limits, Style
from ..frontends.lark.lark_imports import Module
from ..grammar.captured_grammar import CapturedGrammar
from ..grammar.nodes import Chars, Free, Grammar, Mark, Parsed, Token
from ..lalr.parser_code import Parser
from .form import UNSAVED, Form, as_form
from .llguidance_text import LlguidanceText, uses_llguidance_syntax
from .schema_sources import drop_byte_order_mark, names_file
from .source_readers import (
    absolute_folders,
    as_schema,
    find_schema_warnings,
    regex_grammar,
    schema_grammar,
    texts_with,
    warn_of_schema,
)

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
    """The texts that a pattern matches in full."""

    pattern: str

    def read(self, limits: Limits) -> Grammar:
        return regex_grammar(self.pattern, limits)


@dataclass(frozen=True, slots=True)
class SchemaText(Form):
    """The documents that a JSON Schema accepts.

    `schema` and `registry` are JSON texts; `base_uri` is the URI that relative references are resolved against.
    `python_type` is the type whose schema it is, if any: captures of the form are values of this type. It is not saved.
    """

    schema: str
    style: Style
    registry: str
    base_uri: str = ""
    python_type: Any = field(default=None, compare=False, repr=False, metadata=UNSAVED)

    def read(self, limits: Limits) -> Grammar:
        references = References(parse_json(self.registry, limits), self.base_uri)
        return schema_grammar(self.schema, self.style, references, limits)


def load_gbnf_front_ends(dialect: str) -> tuple[ModuleType, ModuleType]:
    """Return the front end of GBNF and that of a dialect of it, which are imported when a grammar is first read."""
    from ..frontends import ebnf, gbnf

    return gbnf, ebnf if dialect == "xgrammar" else gbnf


@dataclass(frozen=True, slots=True)
class GbnfText(Form):
    """The texts of a grammar in the notation of llama.cpp or XGrammar, with captures of the rules `captures`."""

    text: str
    start: str
    dialect: OneOf["llama.cpp", "xgrammar"] = "llama.cpp"
    captures: tuple[str, ...] = ()

    def read(self, limits: Limits) -> Grammar:
        _, dialect = load_gbnf_front_ends(self.dialect)
        grammar: Grammar = dialect.to_grammar(self.text, start=self.start, limits=limits)
        return grammar

    def captured_grammar(self, limits: Limits) -> CapturedGrammar:
        """Return the rules with their captures. Raise GrammarError if one of `captures` is not a rule."""
        gbnf, dialect = load_gbnf_front_ends(self.dialect)
        found: CapturedGrammar = gbnf.capture_rules(dialect.parse_rules(self.text, limits), self.start, self.captures)
        return found

    def names(self, limits: Limits) -> Iterator[Token | Mark | Free]:
        from ..grammar.visitor import walk_nodes

        try:
            grammar = self.grammar(limits)
        except UnsatisfiableError:  # The enclosing form decides whether an empty part matters.
            return
        nodes = walk_nodes(grammar.start, *grammar.rules.values())
        yield from (node for node in nodes if isinstance(node, (Token, Mark, Free)))


def load_embedding() -> ModuleType:
    """Return the module that reads Lark grammars, which is imported when a grammar is first read."""
    from . import embedded_grammars

    return embedded_grammars


def load_capturing() -> ModuleType:
    """Return the module that reads Lark grammars with captures, which is imported when one is first read."""
    from . import captured_symbols

    return captured_symbols


@dataclass(frozen=True, slots=True)
class LarkText(Form):
    """The texts of a Lark grammar.

    `grammars` are the forms of terminals that the text declares. `import_paths` are the folders for `%import`, given by
    the caller. `modules` are texts found in such folders, which take precedence over the folders: a form read from JSON
    has modules instead of folders, see `plain`. `captures` are the rules and terminals to capture.
    """

    text: str
    start: str
    lexer: str
    grammars: tuple[tuple[str, Form], ...]
    import_paths: tuple[str, ...] = ()
    modules: tuple[Module, ...] = ()
    parser: str = ""
    captures: tuple[str, ...] = ()

    def read(self, limits: Limits) -> Grammar:
        if self.has_lexer:
            conflicts = "resolve" if self.parser == "lalr" else "refuse"
            grammar: Grammar = load_embedding().embed_with_lexer(*self.given(limits), conflicts)
        else:
            grammar = load_embedding().embed_without_lexer(*self.given(limits))
        return grammar

    @property
    def has_lexer(self) -> bool:
        return self.lexer not in ("dynamic", "dynamic_complete")

    def given(self, limits: Limits) -> tuple[Any, ...]:
        """Return the arguments of the functions that read the text."""
        grammars = {name: form.grammar(limits) for name, form in self.grammars}
        return self.text, self.start, self.lexer, grammars, self.import_paths, self.modules, limits

    def captured_grammar(self, limits: Limits) -> CapturedGrammar:
        """Return the rules of a grammar without a lexer. Raise GrammarError if one of `captures` is no symbol."""
        found: CapturedGrammar = load_capturing().capture_without_lexer(*self.given(limits), self.captures)
        return found

    def captured_parser(self, limits: Limits) -> tuple[Parser, dict[int, str]]:
        """Return the parser with a lexer, and the name of each symbol to capture: terminal t is t, nonterminal n is ~n.

        Raise GrammarError if one of `captures` is no symbol.
        """
        node = self.grammar(limits).start
        assert isinstance(node, Parsed)
        return node.parser, load_capturing().find_captured_symbols(node.parser.productions, self.captures, self.text)

    def plain(self) -> dict[str, Any]:
        """Return this form as `Form.plain` does, with imported modules included.

        Reading the result back therefore opens no file.
        """
        if not self.import_paths:
            return Form.plain(self)
        from ..frontends.lark.lark_loader import read_imported_modules

        modules = read_imported_modules(self.text, self.import_paths, self.modules)
        return Form.plain(replace(self, import_paths=(), modules=modules))


@dataclass(frozen=True, slots=True)
class FreeText(Form):
    """Any text of `low` to `high` code points that contains none of the texts `without`.

    If `until` is not empty, the text ends with the first occurrence of `until`, which is part of it.
    """

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


# ---- public constructors


def regex(pattern: str) -> Form:
    """Return the form of the texts that a regular expression matches in full.

    Parameters
    ----------
    pattern : str
        A pattern in the syntax of Python's `re`. Flags are written inline, such as `(?i)`.

    Returns
    -------
    Form

    Raises
    ------
    TypeError
        If `pattern` is not a str.
    """
    if not isinstance(pattern, str):
        raise TypeError(
            f"a pattern is {describe_value(pattern)}: give its text, such as pattern.pattern, with (?i) in front"
        )
    return RegexPattern(pattern)


def json_schema(
    schema: Any, *, style: Style = Style(), registry: Mapping[str, Any] | None = None, base_uri: str = ""
) -> Form:
    """Return the form of the JSON documents that a schema accepts.

    Parameters
    ----------
    schema : dict, bool, str or type
        A JSON Schema as a Python value or JSON text, or a Python type that has a JSON Schema. Captures of the form of a
        type are values of this type.
    style : Style
        Spelling of the documents.
    registry : Mapping of str to Any, optional
        Documents by URI, for references that leave the schema. Nothing is ever fetched.
    base_uri : str
        URI that relative references are resolved against.

    Returns
    -------
    Form

    Raises
    ------
    SchemaError
        If `schema` is not a schema document. Other errors in it are raised when the form is read.

    Warns
    -----
    SchemaWarning
        For parts of the schema that assert nothing but were probably meant to.
    """
    check_type("style", style, Style, "give a constrain.Style")
    references = References(registry, base_uri)
    document = load_document(as_schema(schema))
    documents = {uri: load_document(one) for uri, one in references.items()}
    warn_of_schema(find_schema_warnings(document, references, style, Limits()))
    python_type = None if isinstance(schema, (dict, bool, str, list)) else schema
    return SchemaText(write_json(document), style, write_json(documents), base_uri, python_type)


def gbnf(
    text: str,
    *,
    start: str = "root",
    dialect: OneOf["llama.cpp", "xgrammar"] = "llama.cpp",
    captures: Iterable[str] = (),
) -> Form:
    """Return the form of the texts of a GBNF grammar, the format of llama.cpp, or of XGrammar's EBNF.

    Parameters
    ----------
    text : str
        The grammar.
    start : str
        Name of the start rule.
    dialect : {"llama.cpp", "xgrammar"}
        "xgrammar": lines may end anywhere, and there are macros such as `TagDispatch`; see
        `docs/how-to/write-a-grammar.md`.
    captures : iterable of str
        Names of rules: what they match is in `Generation.captures` under these names.

    Returns
    -------
    Form

    Raises
    ------
    TypeError, ArgumentError
        If an argument is not a str, or not one of its options.
    """
    check_type("text", text, str, "give the text of a GBNF grammar")
    check_type("start", start, str, "give the name of a rule")
    check_choice("dialect", dialect, ("llama.cpp", "xgrammar"))
    return GbnfText(drop_byte_order_mark(text), start, dialect, check_captures(captures))


def check_captures(captures: Iterable[str]) -> tuple[str, ...]:
    """Return names of rules as a tuple. Raise TypeError if they are not texts."""
    if isinstance(captures, str) or not isinstance(captures, Iterable):
        raise TypeError(f"captures is {describe_value(captures)}: give a list of names of rules")
    names = tuple(captures)
    for name in names:
        check_type("captures", name, str, "give names of rules")
    return tuple(dict.fromkeys(names))


def lark(
    text: str,
    *,
    start: str = "start",
    lexer: OneOf["contextual", "basic", "dynamic", "dynamic_complete"] = "contextual",
    grammars: Mapping[str, Form | str] = {},
    import_paths: Iterable[str | PathLike[str]] = (),
    parser: OneOf["lalr", "earley"] | None = None,
    dialect: OneOf["lark", "llguidance"] | None = None,
    captures: Iterable[str] = (),
) -> Form:
    """Return the form of the texts of a Lark grammar: exactly those that lark accepts, or that llguidance accepts.

    Parameters
    ----------
    text : str
        The grammar.
    start : str
        Name of the start rule.
    lexer : {"contextual", "basic", "dynamic", "dynamic_complete"}
        "contextual" and "basic" as with lark's LALR parser; "dynamic" and "dynamic_complete" as with its Earley parser,
        which has no lexer.
    grammars : Mapping of str to Form or str
        Forms of the terminals that the text declares (`%declare NAME`). With a lexer they must be regular and are
        treated like any other terminal. Without one they may be any form, such as `constrain.json_schema(S)`; ignored
        terminals do not apply inside them.
    import_paths : iterable of path-like
        Folders that `%import` reads from, in addition to the modules that ship with lark and constrain. No other file
        is ever read.
    parser : {"lalr", "earley"}, optional
        "earley": all texts of the rules; the lexer is "dynamic_complete" unless it is "dynamic". "lalr": the texts that
        remain after Lark's LALR parser has resolved all conflicts. None: as "lalr", except that a grammar that loses a
        text by conflict resolution is refused, with that text in the error.
    dialect : {"lark", "llguidance"}, optional
        "llguidance": the syntax and the lexing rules of llguidance, as `docs/how-to/write-a-grammar.md` describes them;
        `grammars` are then what `@name` refers to, and the other options must have their defaults. None: "llguidance"
        if the text begins with `%llguidance`, else "lark".
    captures : iterable of str
        Names of rules or terminals (of rules in llguidance's dialect, which also has the attribute `[capture]`): what
        they match is in `Generation.captures` under these names.

    Returns
    -------
    Form

    Raises
    ------
    TypeError, ArgumentError
        If an argument has the wrong type or is not one of its options.
    UnsupportedError
        If `parser` is "earley" and `lexer` is "basic".
    """
    check_type("text", text, str, "give the text of a Lark grammar")
    text = drop_byte_order_mark(text)
    check_type("start", start, str, "give the name of a rule")
    check_choice("lexer", lexer, ("contextual", "basic", "dynamic", "dynamic_complete"))
    if parser is not None:
        check_choice("parser", parser, ("lalr", "earley"))
    check_type("grammars", grammars, Mapping, "give a dict of terminal -> Form")
    inner, names = tuple((name, as_form(form)) for name, form in grammars.items()), check_captures(captures)
    if dialect is not None:
        check_choice("dialect", dialect, ("lark", "llguidance"))
    if dialect == "llguidance" or (dialect is None and uses_llguidance_syntax(text)):
        folders = absolute_folders(import_paths)
        if (start, lexer, parser) != ("start", "contextual", None) or folders:
            raise ArgumentError(
                "a grammar for llguidance has no other start, lexer, parser or import_paths",
                hint='Leave them out, or give dialect="lark".',
            )
        return LlguidanceText(text, inner, Style(whitespace="any"), names)
    if parser == "earley":
        if lexer == "basic":
            raise UnsupportedError('the parser "earley" has no basic lexer here', hint='Use lexer="dynamic_complete".')
        lexer = "dynamic_complete" if lexer == "contextual" else lexer
    kind = "lalr" if parser == "lalr" else ""
    return LarkText(text, start, lexer, inner, absolute_folders(import_paths), parser=kind, captures=names)


GBNF_RULE = re.compile(r"^\s*[A-Za-z][\w-]*\s*::=", re.M)
XGRAMMAR_MACRO = re.compile(r"\b(?:Token)?TagDispatch\s*\(|\b(?:Exclude)?Token\s*\(")
READY = re.compile(r"\w+")


def grammar(text: str, *, import_paths: Iterable[str | PathLike[str]] = ()) -> Form:
    """Return the form of a grammar given as text, or of a bundled grammar (`constrain.grammars`) given by name.

    The text is read as GBNF if it has a rule with `::=`, and as XGrammar's EBNF if it also has one of its macros, else
    as Lark with the contextual lexer. Errors in it are
    raised when the form is read. `import_paths` is as for `lark`; GBNF and bundled grammars ignore it.
    """
    check_type("grammar", text, str, "give Lark or GBNF text, or the name of a bundled grammar")
    text = drop_byte_order_mark(text)
    if names_file(text):
        name = shorten_text(repr(text), 100)
        raise GrammarError(
            f"The grammar is {name}, which is the name of a file.", hint=f"Give pathlib.Path({name}), or its text."
        )
    if text.lstrip().startswith("{"):
        raise GrammarError(
            "The grammar begins with { and so is JSON.", source=text, position=len(text) - len(text.lstrip()),
            hint="Give a JSON Schema as schema=.",
        )  # fmt: skip
    if READY.fullmatch(text):
        ready_grammar = ready.read(text)
        return lark(ready_grammar.text, lexer=ready_grammar.lexer)
    if not GBNF_RULE.search(text):
        return lark(text, import_paths=import_paths)
    return gbnf(text, dialect="xgrammar" if XGRAMMAR_MACRO.search(text) else "llama.cpp")


def free_text(least: int = 0, most: int | None = None, *, without: str | Iterable[str] = (), until: str = "") -> Form:
    """Return the form of free text with bounds.

    Parameters
    ----------
    least, most : int
        Fewest and most characters (Unicode code points). `most` may be None for no upper bound.
    without : str or iterable of str
        Texts that must not occur in it.
    until : str
        If not empty, the text ends with the first occurrence of `until`, which is part of it.

    Returns
    -------
    Form

    Raises
    ------
    TypeError
        If `without` or `until` are not texts, or a bound is not an integer.
    ArgumentError
        If a bound is negative, `most` is less than `least`, or `without` holds the empty text.
    """
    texts = (without,) if isinstance(without, str) else tuple(without)
    for one in (*texts, until):
        check_type("without and until", one, str, "give texts")
    least = check_count("least", least)
    most = None if most is None else check_count("most", most)
    if "" in texts or least < 0 or (most is not None and most < least):
        raise ArgumentError(f"free_text({least}, {most}, without={texts!r}): counts ascend from 0, texts are not empty")
    return FreeText(least, most, texts, until)
