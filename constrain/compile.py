"""The pipeline on one page: source -> Grammar -> Program, and with a Vocabulary a Constraint.

schema, type --> frontends.json_schema --+
regex ---------> frontends.regex --------+--> Grammar --> Program --+--> Constraint --> Matcher
forms ---------> forms ------------------+
choices, Grammar ------------------------+      Vocabulary ---------+
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .automata.program import Program
from .errors import SourceError, UnsatisfiableError, UnsupportedError
from .forms import Form, from_plain, grammar as form_of
from .grammar.nodes import Grammar, Strings
from .style import Limits, Style
from .tokens.spelling import Spellable
from .tokens.symbols import Symbols

if TYPE_CHECKING:
    from .arena import Arena
    from .matcher import Matcher
    from .tokens.vocabulary import Vocabulary

__all__ = ["Constraint", "compile", "compile_grammar", "to_grammar"]

FORMAT = "constrain 1"
MOST_ARENAS = 64


class Constraint:
    """A Grammar for a Vocabulary: immutable to its users, shared between threads.

    source: what it was compiled from, or None if from a Grammar.
    """

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary, limits: Limits, source: dict[str, Any] | None) -> None:
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.limits = limits
        self.source = source
        self.program = Program(grammar, Symbols(vocabulary))
        self.spellable = Spellable.of(vocabulary)
        self._arenas: dict[tuple[int, int], Arena] = {}  # by thread and lane

    def __repr__(self) -> str:
        """What it was compiled from, in short."""
        source = {k: v for k, v in (self.source or {"grammar": self.grammar.start}).items() if k != "style"}
        text = ", ".join(f"{name}={value!r}" for name, value in source.items())
        return f"Constraint({text if len(text) <= 80 else text[:77] + '...'})"

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
    if choices is not None:
        choices = list(choices)
    if form is not None:
        if grammar is not None:
            raise TypeError("give a form or a grammar, not both")
        grammar = form
    if isinstance(grammar, str):
        grammar = form_of(grammar)
    given = {"schema": schema, "regex": regex, "choices": choices, "type": type}
    made = to_grammar(**given, grammar=grammar, style=style, registry=registry, limits=limits)
    source = {k: _plain(v) for k, v in given.items() if v is not None}
    if "type" in source:
        source["schema"] = source.pop("type")
    if registry:
        source["registry"] = dict(registry)
    if isinstance(grammar, Form):
        source["form"] = grammar.plain()
        symbols = Symbols(vocabulary)
        for node in grammar.named(limits):  # What the vocabulary lacks is said now, not in the midst of a text.
            symbols(node)
    source["style"] = {name: getattr(style, name) for name in Style.__dataclass_fields__}
    return Constraint(made, vocabulary, limits, None if isinstance(grammar, Grammar) else source)


def compile_grammar(grammar: Grammar, vocabulary: Vocabulary, limits: Limits = Limits()) -> Constraint:
    """The Constraint of a Grammar made by hand."""
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
