"""The pipeline on one page: source -> Grammar -> Program, and with a Vocabulary a Constraint.

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
from os import PathLike
from typing import Any, cast

from ..base.errors import check_type, describe_value, shorten_text
from ..base.json_documents import References, plain_document
from ..base.options import Limits, Style
from ..base.work import WorkBudget, work_budget
from ..cache.source_keys import cache_key, copy_source
from ..engine.constraint import Constraint
from ..forms.form import Form
from ..forms.source_grammar import LIMITS_WANTED, STYLE_WANTED, read_source
from ..forms.sources import LarkText, as_schema, find_schema_warnings, grammar as grammar_form, warn_of_schema
from ..grammar.nodes import Grammar
from ..program.program import Program
from ..vocabulary.special_tokens import TokenSymbols
from ..vocabulary.vocabulary import Vocabulary
from .compile_caches import programs, recent

__all__ = ["check_options", "compile", "compile_grammar", "to_grammar"]

LARGE_SHARE = 16
"""Part of Limits.work from which on a source is large: its rules are linked when it is compiled."""
WARNED = b" warned"
STYLE = tuple(one.name for one in fields(Style))


def warn_without_gil() -> None:
    """Say that nobody has tested constrain on an interpreter that runs without the GIL."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        warnings.warn(
            "constrain is not tested on a Python that runs without the GIL: set PYTHON_GIL=1.",
            RuntimeWarning,
            stacklevel=2,
        )


warn_without_gil()


def compile(
    vocabulary: Vocabulary,
    form: Form | None = None,
    *,
    schema: Any = None,
    regex: str | None = None,
    grammar: str | Grammar | Form | None = None,
    choices: Iterable[str] | None = None,
    type: Any = None,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    base_uri: str = "",
    import_paths: Iterable[str | PathLike[str]] = (),
    limits: Limits = Limits(),
) -> Constraint:
    """The Constraint that exactly one of form, schema, regex, grammar, choices, type stands for.

    form: what `constrain.json_schema`, `regex`, `gbnf`, `literal`, `free_text` make, and what is combined of them; a
    form has its own style and registry, and may be given as grammar, too.

    schema: a JSON Schema as dict, bool or JSON text, a Pydantic model, dataclass or TypedDict. regex: in Python's
    syntax, the whole text must match. grammar: Lark text (contextual lexer, LALR) or GBNF text, the name of a ready
    grammar (`constrain.grammars`), or a Grammar of nodes. choices: the whole text is one of them. type: any Python type
    that has a JSON Schema. registry: URI -> document for references that leave the schema; nothing is ever fetched.
    base_uri: what relative references of the schema, and relative URIs of the registry, are relative to.
    import_paths: folders that `%import` in a Lark text reads from, besides the modules that ship with lark.

    Warns with SchemaWarning, every time, of what in a schema asserts nothing and was most likely meant to.
    Raises SourceError, UnsupportedError, UnsatisfiableError, LimitError (see `errors`).
    """
    check_options(vocabulary, style, registry, limits)
    if choices is not None:
        if isinstance(choices, (str, bytes, Mapping)) or not isinstance(choices, Iterable):
            raise TypeError(
                f"choices is {describe_value(choices)}: give a list of texts, such as choices=['yes', 'no']"
            )
        choices = list(choices)
    check_type("form", form, (Form, type_of_none), "give what constrain.json_schema, regex, gbnf or literal make")
    kinds = (str, Grammar, Form, type_of_none)
    check_type("grammar", grammar, kinds, "give Lark or GBNF text, the name of a ready grammar, or a Form")
    if form is not None:
        if grammar is not None:
            raise TypeError("give a form or a grammar, not both")
        grammar = form
    if isinstance(grammar, str):
        grammar = grammar_form(grammar, import_paths=import_paths)
    given = {"schema": schema, "regex": regex, "grammar": grammar, "choices": choices, "type": type}
    source = {name: value for name, value in given.items() if value is not None}
    if set(source) in ({"schema"}, {"type"}):
        source = {"schema": as_schema(schema if type is None else type)}
    references = References(registry, base_uri)
    key = None
    proper = isinstance(style, Style) and isinstance(limits, Limits) and len(source) == 1
    if proper and not isinstance(grammar, Grammar):
        key, source, references = _key(source, style, references, limits)
    found: Constraint | None = None if key is None else recent.get(vocabulary, key)
    if found is not None:
        warn_of_schema(found.schema_warnings)
        return found
    with work_budget(limits.work) as budget:
        program, messages, is_large = _program(vocabulary, key, source, style, references, limits, budget)
        if is_large:
            program.link_at_once(budget)
    warn_of_schema(messages)
    written = None if isinstance(grammar, Grammar) else _written(source, style, references)
    made = Constraint(program, vocabulary, limits, written, messages)
    return made if key is None else cast(Constraint, recent.put(key, made))


type_of_none = type(None)


def check_options(vocabulary: object, style: object, registry: object, limits: object) -> None:
    """Raise TypeError for arguments of the wrong type, with what to give instead."""
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
    check_type("registry", registry, (Mapping, type_of_none), "give a dict of URI -> document")
    for uri in registry if isinstance(registry, Mapping) else ():
        check_type("a key of registry", uri, str, "give a dict of URI -> document")


Source = dict[str, Any]


def _key(source: Source, style: Style, references: References, limits: Limits) -> tuple[Hashable, Source, References]:
    """What tells a source from all others, None if nothing does; the source and the registry, which nobody can change
    any more."""
    ((name, value),) = source.items()
    if isinstance(value, Form):
        return (value, style, limits), source, references
    if name == "schema":
        source = {name: value if isinstance(value, str) else plain_document(value, limits)}
        documents = {uri: plain_document(document, limits) for uri, document in references.items()}
        references = References(documents, references.base_uri)
    beside = (dict(references), references.base_uri) if references or references.base_uri else None
    key = cache_key((name, source[name], beside), style, limits)
    if key is None or (isinstance(value, str) and not references):
        return key, source, references
    name, value, beside = copy_source(key)
    return key, {name: value}, References(*beside or ())


def _program(
    vocabulary: Vocabulary,
    key: Hashable,
    source: Source,
    style: Style,
    references: References,
    limits: Limits,
    budget: WorkBudget,
) -> tuple[Program, tuple[str, ...], bool]:
    """The Program of a source, from disk or made and kept for the next process; what there is to warn of; is it large?

    What took much work is not kept: a Program from disk is made again, in one step, when more of it is wanted.

    A source with warnings has a file of another name, so that one whose Program is found under the first has none.
    """
    remake = partial(read_source, **source, style=style, registry=references, limits=limits)
    form, symbols = source.get("grammar"), TokenSymbols(vocabulary)
    spelled = _spelled(form, vocabulary, style, limits) if isinstance(form, Form) else key
    path = programs.name(spelled) if isinstance(spelled, bytes) else None
    kept = None if path is None else programs.fetch(path, remake, symbols)
    if kept is not None:
        return kept, (), False
    messages = _schema_warnings(source, style, references, limits)
    if messages and isinstance(spelled, bytes):
        path = programs.name(spelled + WARNED)
        kept = None if path is None else programs.fetch(path, remake, symbols)
        if kept is not None:
            return kept, messages, False
    before = budget.spent
    program = Program(remake(), symbols)
    program.work = limits.work
    is_large = budget.spent - before > limits.work // LARGE_SHARE
    if isinstance(form, Form):
        for node in form.named(limits):  # What the vocabulary lacks is said now, not in the midst of a text.
            symbols(node)
    if path is not None and not is_large:
        programs.keep(path, program)
    return program, messages, is_large


def _schema_warnings(source: Source, style: Style, references: References, limits: Limits) -> tuple[str, ...]:
    """Return what there is to warn of in a source. A form warned when it was made."""
    if set(source) != {"schema"} or not isinstance(limits, Limits) or not isinstance(style, Style):
        return ()
    return find_schema_warnings(source["schema"], references, style, limits)


def _spelled(form: Form, vocabulary: Vocabulary, style: Style, limits: Limits) -> bytes | None:
    """A form as bytes, with the vocabulary that its tokens are of; None if it depends on files."""
    plain = form.plain()
    todo = [plain]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            if one.get("kind") == LarkText.__name__:
                return None
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)
    return cache_key((plain, vocabulary.fingerprint), style, limits)


def _written(source: Source, style: Style, references: References) -> Source:
    """What a Constraint says that it was compiled from."""
    written = dict(source)
    if "grammar" in written:
        written["form"] = written.pop("grammar").plain()
    if references:
        written["registry"] = dict(references)
    if references.base_uri:
        written["base_uri"] = references.base_uri
    return {**written, "style": {name: getattr(style, name) for name in STYLE}}


def compile_grammar(grammar: Grammar, vocabulary: Vocabulary, limits: Limits = Limits()) -> Constraint:
    """The Constraint of a Grammar made by hand."""
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
    """The Grammar of exactly one source; arguments and warnings as of `compile`."""
    references = References(registry, base_uri)
    made = read_source(schema, regex, grammar, choices, type, style=style, registry=references, limits=limits)
    if schema is not None or type is not None:
        warn_of_schema(
            _schema_warnings({"schema": as_schema(schema if schema is not None else type)}, style, references, limits)
        )
    return made
