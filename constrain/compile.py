"""The pipeline on one page: source -> Grammar -> Program, and with a Vocabulary a Constraint.

schema, type --> frontends.json_schema --+
regex ---------> frontends.regex --------+--> Grammar --> Program --+--> Constraint --> Matcher
forms ---------> forms ------------------+
choices, Grammar ------------------------+      Vocabulary ---------+
"""

from __future__ import annotations

import json
import threading
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import asdict, fields
from functools import partial
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from .automata.program import Program
from .errors import SourceError, UnsatisfiableError, UnsupportedError, check_type, describe, shorten
from .forms import Form, from_plain, grammar as form_of
from .grammar.nodes import Grammar, Strings
from .store import asked, copied, programs, recent
from .style import Limits, Style
from .tokens.spelling import Spellable
from .tokens.symbols import Symbols
from .tokens.vocabulary import Vocabulary
from .work import work_budget

if TYPE_CHECKING:
    from .arena import Arena
    from .matcher import Matcher

__all__ = ["Constraint", "check_options", "compile", "compile_grammar", "to_grammar"]

FORMAT = "constrain 1"
MOST_ARENAS = 64
STYLE = tuple(one.name for one in fields(Style))


class Constraint:
    """A Grammar for a Vocabulary: immutable to its users, shared between threads.

    source: what it was compiled from, or None if from a Grammar.
    """

    def __init__(
        self,
        grammar: Grammar | Program,
        vocabulary: Vocabulary,
        limits: Limits,
        source: dict[str, Any] | None,
    ) -> None:
        self.vocabulary = vocabulary
        self.limits = limits
        self.source = source
        self.program = grammar if isinstance(grammar, Program) else Program(grammar, Symbols(vocabulary))
        self.spellable = Spellable.of(vocabulary)
        self._arenas: dict[tuple[int, int], Arena] = {}  # by thread and lane

    def __repr__(self) -> str:
        """What it was compiled from, in short."""
        source = {k: v for k, v in (self.source or {"grammar": self.grammar.start}).items() if k != "style"}
        text = ", ".join(f"{name}={value!r}" for name, value in source.items())
        return f"Constraint({text if len(text) <= 80 else text[:77] + '...'})"

    @property
    def grammar(self) -> Grammar:
        """What it was compiled to; read from the source only now, if the program was kept on disk."""
        return self.program.grammar

    @property
    def bytes_used(self) -> int:
        """Bytes that its arenas and its program fill by now."""
        arenas = list(self._arenas.values())
        return self.program.code.nbytes + sum(arena.bytes_filled() for arena in arenas)

    def matcher(self) -> Matcher:
        """A new position, before any text."""
        from .matcher import Matcher

        return Matcher(self)

    def arena(self, lane: int = 0) -> Arena:
        """This thread's arena: what grows while masking belongs to one thread, so nothing is locked per token.

        lane: a thread has several where `fill_masks` shares its matchers out among the cores.
        """
        from .arena import Arena

        mine = threading.get_ident(), lane
        found = self._arenas.get(mine)
        if found is None:
            if len(self._arenas) >= MOST_ARENAS:
                alive = {t.ident for t in threading.enumerate()}
                for gone in [key for key in list(self._arenas) if key[0] not in alive]:
                    self._arenas.pop(gone, None)
            found = self._arenas[mine] = Arena(self.program, self.vocabulary, self.limits.arena_bytes)
        return found

    def save(self, path: str | PathLike[str]) -> None:
        """Writes what the constraint is made from, as JSON with a checksum; compiling is lazy, so that is all."""
        if self.source is None:
            raise UnsupportedError("A constraint made from Grammar nodes cannot be saved.", hint="Save its source.")
        body = {"source": self.source, "limits": asdict(self.limits), "vocabulary": self.vocabulary.fingerprint}
        text = json.dumps(body, sort_keys=True)
        head = {"format": FORMAT, "digest": blake2b(text.encode(), digest_size=16).hexdigest()}
        Path(path).write_text(json.dumps(head) + "\n" + text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str], vocabulary: Vocabulary) -> Constraint:
        """Reads what `save` wrote. Raises SourceError if the file is damaged or was made for another vocabulary."""
        try:
            head_text, text = Path(path).read_text(encoding="utf-8").split("\n", 1)
            head, text = json.loads(head_text), text.rstrip("\n")
            intact = head["format"] == FORMAT and head["digest"] == blake2b(text.encode(), digest_size=16).hexdigest()
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(f"{path} is not a saved constraint: {error}.") from None
        if not intact:
            raise SourceError(f"{path} is damaged or of another version.", hint="Save the constraint again.")
        body = json.loads(text)
        if body["vocabulary"] != vocabulary.fingerprint:
            raise SourceError(f"{path} was saved for another vocabulary.", hint="Compile its source for this one.")
        source = dict(body["source"])
        style = Style(**source.pop("style"))
        if "form" in source:
            source["form"] = from_plain(source["form"])
        return compile(vocabulary, style=style, limits=Limits(**body["limits"]), **source)


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
    limits: Limits = Limits(),
) -> Constraint:
    """The Constraint that exactly one of form, schema, regex, grammar, choices, type stands for.

    form: what `constrain.json_schema`, `regex`, `gbnf`, `literal`, `free_text` make, and what is combined of them; a
    form has its own style and registry, and may be given as grammar, too.

    schema: a JSON Schema as dict, bool or JSON text, a Pydantic model, dataclass or TypedDict. regex: in Python's
    syntax, the whole text must match. grammar: Lark text (contextual lexer, LALR) or GBNF text, the name of a ready
    grammar (`constrain.grammars`), or a Grammar of nodes. choices: the whole text is one of them. type: any Python type
    that has a JSON Schema. registry: URI -> document for references that leave the schema; nothing is ever fetched.

    Raises SourceError, UnsupportedError, UnsatisfiableError, LimitError (see `errors`).
    """
    check_options(vocabulary, style, registry, limits)
    if choices is not None:
        if isinstance(choices, (str, bytes, Mapping)) or not isinstance(choices, Iterable):
            raise TypeError(f"choices is {describe(choices)}: give a list of texts, such as choices=['yes', 'no']")
        choices = list(choices)
    check_type("form", form, (Form, type_of_none), "give what constrain.json_schema, regex, gbnf or literal make")
    kinds = (str, Grammar, Form, type_of_none)
    check_type("grammar", grammar, kinds, "give Lark or GBNF text, the name of a ready grammar, or a Form")
    if form is not None:
        if grammar is not None:
            raise TypeError("give a form or a grammar, not both")
        grammar = form
    if isinstance(grammar, str):
        grammar = form_of(grammar)
    given = {"schema": schema, "regex": regex, "grammar": grammar, "choices": choices, "type": type}
    source = {name: value for name, value in given.items() if value is not None}
    if set(source) in ({"schema"}, {"type"}):
        source = {"schema": _plain(schema if type is None else type)}
    key = None
    proper = isinstance(style, Style) and isinstance(limits, Limits) and len(source) == 1
    if proper and not isinstance(grammar, Grammar):
        key, source, registry = _key(source, style, registry, limits)
    found = None if key is None else recent.get(vocabulary, key)
    if found is not None:
        return found
    with work_budget(limits.work):
        program = _program(vocabulary, key, source, style, registry, limits)
    written = None if isinstance(grammar, Grammar) else _written(source, style, registry)
    made = Constraint(program, vocabulary, limits, written)
    return made if key is None else recent.put(key, made)


type_of_none = type(None)


def check_options(vocabulary: object, style: object, registry: object, limits: object) -> None:
    """Raise TypeError for arguments of the wrong type, with what to give instead."""
    if not isinstance(vocabulary, Vocabulary):
        if isinstance(vocabulary, (str, PathLike)):
            name = shorten(repr(str(vocabulary)), 80)
            wanted = f"give constrain.Vocabulary.from_pretrained({name})"
        elif hasattr(vocabulary, "encode") or hasattr(vocabulary, "backend_tokenizer"):
            wanted = "give constrain.Vocabulary.from_tokenizer(tokenizer)"
        else:
            wanted = "make a constrain.Vocabulary from the tokenizer of the model"
        raise TypeError(f"vocabulary is {describe(vocabulary)}: {wanted}")
    check_type("style", style, Style, 'give a constrain.Style, such as Style(whitespace="compact")')
    check_type("limits", limits, Limits, "give a constrain.Limits, such as Limits(work=10_000_000)")
    check_type("registry", registry, (Mapping, type_of_none), "give a dict of URI -> document")
    for uri in registry if isinstance(registry, Mapping) else ():
        check_type("a key of registry", uri, str, "give a dict of URI -> document")


Source = dict[str, Any]
Registry = Union[Mapping[str, Any], None]


def _key(source: Source, style: Style, registry: Registry, limits: Limits) -> tuple[Hashable, Source, Registry]:
    """What tells a source from all others, None if nothing does; the source and the registry, which nobody can change
    any more."""
    ((name, value),) = source.items()
    if isinstance(value, Form):
        return (value, style, limits), source, registry
    key = asked((name, value, registry or None), style, limits)
    if key is None or (isinstance(value, str) and not registry):
        return key, source, registry
    name, value, registry = copied(key)
    return key, {name: value}, registry


def _program(
    vocabulary: Vocabulary, key: Hashable, source: Source, style: Style, registry: Registry, limits: Limits
) -> Program:
    """The Program of a source: from disk, or made, and kept for the next process."""
    remake = partial(to_grammar, **source, style=style, registry=registry, limits=limits)
    form, symbols = source.get("grammar"), Symbols(vocabulary)
    spelled = _spelled(form, vocabulary, style, limits) if isinstance(form, Form) else key
    path = programs.name(spelled) if isinstance(spelled, bytes) else None
    kept = None if path is None else programs.fetch(path, remake, symbols)
    if kept is not None:
        return kept
    program = Program(remake(), symbols)
    if isinstance(form, Form):
        for node in form.named(limits):  # What the vocabulary lacks is said now, not in the midst of a text.
            symbols(node)
    if path is not None:
        programs.keep(path, program)
    return program


def _spelled(form: Form, vocabulary: Vocabulary, style: Style, limits: Limits) -> bytes | None:
    """A form as bytes, with the vocabulary that its tokens are of; None if it depends on files."""
    plain = form.plain()
    todo = [plain]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            if one.get("kind") == "Lark":
                return None
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)
    return asked((plain, vocabulary.fingerprint), style, limits)


def _written(source: Source, style: Style, registry: Registry) -> Source:
    """What a Constraint says that it was compiled from."""
    written = dict(source)
    if "grammar" in written:
        written["form"] = written.pop("grammar").plain()
    if registry:
        written["registry"] = dict(registry)
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
    limits: Limits = Limits(),
) -> Grammar:
    """The Grammar of exactly one source; arguments as of `compile`."""
    sources = {"schema": schema, "regex": regex, "grammar": grammar, "choices": choices, "type": type}
    given = [name for name, value in sources.items() if value is not None]
    if not isinstance(style, Style) or not isinstance(limits, Limits):
        raise TypeError(f"style is a constrain.Style and limits a constrain.Limits, not {style!r} and {limits!r}")
    if len(given) != 1:
        raise TypeError(f"give exactly one of schema, regex, grammar, choices, type; got {', '.join(given) or 'none'}")
    if grammar is not None:
        if isinstance(grammar, Grammar):
            return grammar
        return (grammar if isinstance(grammar, Form) else form_of(grammar)).grammar(limits)
    if choices is not None:
        options = tuple(sorted({_utf8(choice) for choice in choices}))
        if not options:
            raise UnsatisfiableError("choices is empty: no text can be one of none.", hint="Give at least one choice.")
        return Grammar(Strings(options), {})
    if regex is not None:
        if not isinstance(regex, str):
            raise SourceError(
                f"regex is {regex!r}: it is the text of a pattern",
                hint="Give pattern.pattern, with its flags in front, such as (?i).",
            )
        from .frontends import regex as front

        return front.to_grammar(regex, max_states=limits.dfa_states)
    from .frontends import json_schema

    source = _plain(schema if schema is not None else type)
    return json_schema.to_grammar(source, style=style, registry=registry, limits=limits)


def _utf8(text: str) -> bytes:
    """A choice as bytes."""
    if not isinstance(text, str):
        raise SourceError(
            f"a choice is {text!r}: choices are texts", hint="For other values use schema={'enum': [...]}."
        )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SourceError(
            "A choice holds half of a surrogate pair, which is no character.",
            source=repr(text),
            position=error.start + 1,
        ) from None


def _plain(source: Any) -> Any:
    """A schema as dict, bool or text; a Python type as its JSON Schema."""
    if isinstance(source, (dict, bool, str, list)):
        return source
    from .frontends import types

    return types.to_schema(source)
