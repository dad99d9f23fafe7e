"""The compiler: source -> Grammar -> Program, and with a Vocabulary a Constraint.

schema, type --> frontends.json_schema --+
regex ---------> frontends.regex --------+--> Grammar --> Program --+--> Constraint --> Matcher
forms ---------> forms ------------------+
choices, Grammar ------------------------+      Vocabulary ---------+
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from operator import attrgetter
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from .. import forms
from ..base.errors import check_type, describe_value, shorten_text
from ..base.json_documents import MOST_DIGITS, LoadedDocument, References, plain_document
from ..base.keyword_names import explain_keywords
from ..base.options import Limits, Style
from ..base.work import WorkBudget, confine_budgets, work_budget
from ..cache.source_keys import cache_key, copy_source
from ..engine.constraint import Constraint
from ..forms.schema_sources import check_type_argument, read_source_file
from ..forms.source_grammar import LIMITS_WANTED, STYLE_WANTED, read_source
from ..forms.source_readers import (
    as_schema,
    find_schema_warnings,
    plain_schema_grammar,
    schema_grammar,
    warn_of_schema,
)
from ..grammar.grammar_source_type import GrammarSource
from ..grammar.nodes import Grammar
from ..kernels.entry_points import measure_text
from ..program.program import Program
from ..vocabulary.special_tokens import TokenSymbols
from ..vocabulary.vocabulary import Vocabulary
from .compile_caches import programs, recent

if TYPE_CHECKING:
    from ..forms import Form

__all__ = ["check_options", "compile", "compile_grammar", "to_grammar"]

LARGE_SHARE = 16
"""A source that takes more than 1 / LARGE_SHARE of Limits.work is large.

All rules of a large source are linked when it is compiled.
"""
HELD = 16
"""Bytes that a Constraint is taken to hold for each byte of its source: 5 on average over real schemas, 20 to 47 for
objects of 50,000 properties, enums of 200,000 values and grammars of 20,000 rules."""
WARNED = b" warned"
"""Suffix of the file keys of sources with schema warnings."""
STYLE = tuple(one.name for one in fields(Style))
STYLE_VALUES = attrgetter(*STYLE)


def warn_without_gil() -> None:
    """Warn that constrain is not tested on an interpreter that runs without the GIL."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        warnings.warn(
            "constrain is not tested on a Python that runs without the GIL: set PYTHON_GIL=1.",
            RuntimeWarning,
            stacklevel=2,
        )


warn_without_gil()


@explain_keywords
def compile(
    vocabulary: Vocabulary | str | PathLike[str],
    form: Form | None = None,
    *,
    schema: Any = None,
    regex: str | None = None,
    grammar: str | PathLike[str] | Grammar | Form | None = None,
    choices: Iterable[str] | None = None,
    type: Any = None,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    base_uri: str = "",
    import_paths: Iterable[str | PathLike[str]] = (),
    limits: Limits = Limits(),
) -> Constraint:
    """Compile a source for a vocabulary. Exactly one of form, schema, regex, grammar, choices and type must be given.

    Compiling an equal source again returns the same Constraint while it is in the cache.

    Parameters
    ----------
    vocabulary : Vocabulary, str or path
        Tokens of the language model. A name is read by `Vocabulary.from_pretrained` in every call, so make the
        Vocabulary once for many.
    form : Form, optional
        A form, made by `constrain.json_schema`, `regex`, `gbnf`, `literal`, `free_text` and others, or a combination of
        forms. A form has its own style and registry. It may also be given as `grammar`.
    schema : dict, bool, str, path or type, optional
        A JSON Schema as a Python value, JSON text or Path of a file with it, a Pydantic model, a dataclass, or a
        TypedDict.
    regex : str, optional
        A regular expression in Python's syntax, which must match the whole text.
    grammar : str, path, Grammar or Form, optional
        Lark text (contextual lexer, LALR), GBNF text, the name of a bundled grammar (`constrain.grammars`), or a
        Grammar of nodes.
    choices : iterable of str, optional
        The texts of which the whole text must be one.
    type : type, optional
        Any Python type that has a JSON Schema.
    style : Style
        Spelling of JSON.
    registry : Mapping of str to Any, optional
        Documents by URI, for references that leave the schema. Nothing is ever fetched.
    base_uri : str
        URI that relative references of the schema, and relative URIs of the registry, are resolved against.
    import_paths : iterable of path-like
        Folders that `%import` in a Lark text reads from, in addition to the modules that ship with lark.
    limits : Limits
        Budgets of the compilation and of the Constraint.

    Returns
    -------
    Constraint

    Raises
    ------
    SourceError
        If the source is malformed: SchemaError, RegexError or GrammarError.
    UnsupportedError
        If the source uses a feature that constrain does not enforce.
    UnsatisfiableError
        If no text matches.
    LimitError
        If a budget of `limits` is exceeded.
    VocabularyError
        If the source names a token that the vocabulary lacks.
    TypeError
        If an argument has the wrong type, or not exactly one source is given.

    Warns
    -----
    SchemaWarning
        On every call, for parts of a schema that assert nothing but were probably meant to.
    """
    key: Hashable = None
    if (
        schema.__class__ is str
        and schema[:1] == "{"
        and form is None
        and regex is None
        and grammar is None
        and choices is None
        and type is None
        and registry is None
        and base_uri == ""
        and (vocabulary.__class__, style.__class__, limits.__class__) == USUAL_CLASSES
    ):  # What most calls are, and nothing in it has to be read or copied.
        source, references = {"schema": schema}, NO_REFERENCES
        key = cache_key(("schema", schema, None), style, limits)
    else:
        check_places(vocabulary, form)
        if not isinstance(vocabulary, Vocabulary) and isinstance(vocabulary, (str, PathLike)):
            vocabulary = Vocabulary.from_pretrained(vocabulary)
        check_options(vocabulary, style, registry, limits)
        check_type_argument(type)
        choices = _read_choices(choices)
        if form is not None or grammar is not None:
            grammar = _read_grammar_argument(form, grammar, import_paths)
        given = {"schema": schema, "regex": regex, "grammar": grammar, "choices": choices, "type": type}
        source = {name: value for name, value in given.items() if value is not None}
        if len(source) == 1 and (schema is not None or type is not None):
            source = {"schema": as_schema(schema if type is None else type)}
        references = References(registry, base_uri)
        is_cacheable = isinstance(style, Style) and isinstance(limits, Limits) and len(source) == 1
        if is_cacheable and not isinstance(grammar, Grammar):
            key, source, references = _make_key(source, style, references, limits)
    cached: Constraint | None = None if key is None else recent.get(vocabulary, key)
    if cached is not None:
        warn_of_schema(cached.schema_warnings)
        return cached
    if TYPE_CHECKING:  # checked above
        assert isinstance(vocabulary, Vocabulary)
    program, messages = _make_linked_program(vocabulary, key, source, style, references, limits)
    if messages:
        warn_of_schema(messages)
    describe = None if isinstance(grammar, Grammar) else partial(_describe_source, source, style, references)
    constraint = Constraint(program, vocabulary, limits, describe, messages)
    if key is None or not recent.most:
        return constraint
    return cast(Constraint, recent.put(key, constraint, HELD * _source_length(key)))


@confine_budgets
def _make_linked_program(
    vocabulary: Vocabulary, key: Hashable, source: dict[str, Any], style: Style, references: References, limits: Limits
) -> tuple[Program, tuple[str, ...]]:
    """Return the program of a source, with all rules linked if it is large, and the warnings about it."""
    with work_budget(limits.work) as budget:
        program, messages, is_large = _make_program(vocabulary, key, source, style, references, limits, budget)
        if is_large:
            program.link_at_once(budget)
    return program, messages


USUAL_CLASSES = Vocabulary, Style, Limits
NO_REFERENCES = References()


def _read_choices(choices: Any) -> list[str] | None:
    """Return the argument `choices` as a list. Raise TypeError if it is no list of texts."""
    if choices is None:
        return None
    if isinstance(choices, (str, bytes, Mapping)) or not isinstance(choices, Iterable):
        raise TypeError(f"choices is {describe_value(choices)}: give a list of texts, such as choices=['yes', 'no']")
    return list(choices)


def _read_grammar_argument(
    form: Form | None, grammar: Any, import_paths: Iterable[str | PathLike[str]]
) -> Grammar | Form:
    """Return the form or the grammar that `compile` was given. Raise TypeError for both, and for anything else."""
    check_type("form", form, (type_of_none, forms.Form), FORM_WANTED)
    kinds = (type_of_none, str, Grammar, forms.Form, PathLike)
    check_type("grammar", grammar, kinds, "give Lark or GBNF text, a Path, the name of a bundled grammar, or a Form")
    if form is not None:
        if grammar is not None:
            raise TypeError("give a form or a grammar, not both")
        return form
    if isinstance(grammar, PathLike):
        grammar = read_source_file(grammar, "grammar")
    if isinstance(grammar, str):
        grammar = forms.grammar(grammar, import_paths=import_paths)
    return cast("Grammar | Form", grammar)


type_of_none = type(None)
FORM_WANTED = (
    "give a schema by name, schema=..., and so regex=, grammar=, choices= or type=; "
    "a form is what constrain.json_schema, regex, gbnf or literal make"
)


def check_places(vocabulary: object, form: object) -> None:
    """Raise TypeError if the Vocabulary was given in the second place."""
    if isinstance(form, Vocabulary):
        raise TypeError(
            f"vocabulary is {describe_value(vocabulary)}, and the Vocabulary is in the second place: "
            "give constrain.compile(vocabulary, schema=...)"
        )


def check_options(vocabulary: object, style: object, registry: object, limits: object) -> None:
    """Raise TypeError for an argument of the wrong type. The message says what to pass instead."""
    if type(vocabulary) is Vocabulary and type(style) is Style and type(limits) is Limits and registry is None:
        return
    if not isinstance(vocabulary, Vocabulary):
        if isinstance(vocabulary, (str, PathLike)):
            name = shorten_text(repr(str(vocabulary)), 80)
            wanted = f"give constrain.Vocabulary.from_pretrained({name})"
        elif hasattr(vocabulary, "encode") or hasattr(vocabulary, "backend_tokenizer"):
            wanted = "give constrain.Vocabulary.from_tokenizer(tokenizer)"
        else:
            wanted = "make a constrain.Vocabulary from the tokenizer of the model"
        raise TypeError(f"vocabulary is {describe_value(vocabulary)}: {wanted}")
    check_type("style", style, Style, STYLE_WANTED)
    check_type("limits", limits, Limits, LIMITS_WANTED)
    check_type("registry", registry, (type_of_none, Mapping), "give a dict of URI -> document")
    for uri in cast(Mapping[str, Any], registry) if registry is not None else ():
        check_type("a key of registry", uri, str, "give a dict of URI -> document")


Source = dict[str, Any]


def _make_key(
    source: Source, style: Style, references: References, limits: Limits
) -> tuple[Hashable, Source, References]:
    """Return the cache key of a source (None if it has none), and immutable copies of the source and the registry."""
    ((name, value),) = source.items()
    if not isinstance(value, str) and isinstance(value, GrammarSource):
        return (value, style, limits), source, references
    if name == "schema":
        source = {name: value if isinstance(value, str) else plain_document(value, limits)}
        if references:
            documents = {uri: plain_document(document, limits) for uri, document in references.items()}
            references = References(documents, references.base_uri)
    references_key = (dict(references), references.base_uri) if references or references.base_uri else None
    key = cache_key((name, source[name], references_key), style, limits)
    if key is None or (isinstance(value, str) and not references):
        return key, source, references
    name, value, references_key = copy_source(key)
    return key, {name: value}, References(*references_key or ())


def _source_length(key: Hashable) -> int:
    """Return the number of bytes or characters of the source in a cache key."""
    if isinstance(key, bytes):
        return len(key)
    form: Form = key[0]  # type: ignore[index]
    return forms.count_characters(form)


def _make_program(
    vocabulary: Vocabulary,
    key: Hashable,
    source: Source,
    style: Style,
    references: References,
    limits: Limits,
    budget: WorkBudget,
) -> tuple[Program, tuple[str, ...], bool]:
    """Return the Program of a source, its schema warnings, and whether the source is large.

    The Program is loaded from disk, or built and saved. Large sources are not saved, because rebuilding any missing
    part of a Program from disk repeats the whole construction in one step. A source with warnings has a file of another
    name, so a source whose Program is found under the first name has none.
    """
    make_grammar = partial(read_source, style=style, registry=references, limits=limits, **source)
    form, symbols = source.get("grammar"), TokenSymbols(vocabulary)
    is_form = form is not None and isinstance(form, GrammarSource)
    file_key = _make_form_key(cast("Form", form), vocabulary, style, limits) if is_form else key
    path = programs.name(file_key) if programs.most and isinstance(file_key, bytes) else None
    restored = None if path is None else programs.fetch(path, make_grammar, symbols)
    if restored is not None:
        return restored, (), False
    before = budget.spent
    messages: tuple[str, ...] = ()
    loaded, grammar = source, None
    if len(source) == 1 and "schema" in source:  # It is parsed once, for the warnings and for the Grammar.
        document = LoadedDocument.of(source["schema"], limits, _measure_text)
        grammar = plain_schema_grammar(document, style, references, limits)
        if grammar is None:
            loaded = {"schema": document}
            messages = find_schema_warnings(document, references, style, limits)
    if messages and isinstance(file_key, bytes):
        path = programs.name(file_key + WARNED)
        restored = None if path is None else programs.fetch(path, make_grammar, symbols)
        if restored is not None:
            return restored, messages, False
    if grammar is None and loaded is source:
        grammar = make_grammar()
    elif grammar is None:
        grammar = schema_grammar(loaded["schema"], style, references, limits)
    program = Program(grammar, symbols)
    program.work = limits.work
    is_large = budget.spent - before > limits.work // LARGE_SHARE
    if is_form:
        # Report tokens that the vocabulary lacks now, not during generation.
        for node in cast("Form", form).token_nodes(limits):
            symbols(node)
    if path is not None and not is_large:
        programs.store(path, program)
    return program, messages, is_large


def _measure_text(text: str) -> int | None:
    """Return what `LoadedDocument.of` wants to know of a text, by a kernel."""
    try:
        return measure_text(text.encode(), MOST_DIGITS)
    except UnicodeEncodeError:
        return None


def _make_form_key(form: Form, vocabulary: Vocabulary, style: Style, limits: Limits) -> bytes | None:
    """Return the cache key of a form and the vocabulary of its tokens; None if the form depends on files."""
    plain = form.plain()
    todo = [plain]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            if part.get("kind") == forms.LarkText.__name__:
                return None
            todo.extend(part.values())
        elif isinstance(part, list):
            todo.extend(part)
    return cache_key((plain, vocabulary.fingerprint), style, limits)


def _describe_source(source: Source, style: Style, references: References) -> Source:
    """Return the description of a source for `Constraint.source`."""
    written = dict(source)
    if "grammar" in written:
        written["form"] = written.pop("grammar").plain()
    if references:
        written["registry"] = dict(references)
    if references.base_uri:
        written["base_uri"] = references.base_uri
    return {**written, "style": dict(zip(STYLE, STYLE_VALUES(style)))}


def compile_grammar(grammar: Grammar, vocabulary: Vocabulary, limits: Limits = Limits()) -> Constraint:
    """Compile a Grammar of nodes for a vocabulary.

    Parameters
    ----------
    grammar : Grammar
        The grammar.
    vocabulary : Vocabulary
        Tokens of the language model.
    limits : Limits
        Budgets of the Constraint.

    Returns
    -------
    Constraint

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    """
    check_options(vocabulary, Style(), None, limits)
    check_type("grammar", grammar, Grammar, "give a constrain.Grammar; for text use compile(vocabulary, grammar=...)")
    return Constraint(grammar, vocabulary, limits, None)


def to_grammar(
    *,
    schema: Any = None,
    regex: str | None = None,
    grammar: str | Grammar | Form | None = None,
    choices: Iterable[str] | None = None,
    type: Any = None,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    base_uri: str = "",
    limits: Limits = Limits(),
) -> Grammar:
    """Return the Grammar of exactly one source. Arguments, errors and warnings are as for `compile`."""
    references = References(registry, base_uri)
    made = read_source(schema, regex, grammar, choices, type, style=style, registry=references, limits=limits)
    if schema is not None or type is not None:
        document = as_schema(schema if schema is not None else type)
        warn_of_schema(find_schema_warnings(document, references, style, limits))
    return made
