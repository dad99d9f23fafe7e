"""Form: a description of a language, not yet bound to a vocabulary, so that forms can be combined.

    form = constrain.free_text(until="```json\\n") + constrain.json_schema(S) + "\\n```"
    constrain.compile(vocabulary, form);  constrain.generate("demo", grammar=form)

    a + b        concatenation                     a & b      intersection; a or b must be regular
    a | b        union                             ~a         complement; a must be regular
    a.repeat(1)  one or more repetitions           a.quoted() the texts of a as JSON strings
    a.named("n") the same language; the part of the text is captured

A Form is immutable, compares equal by its parts, and can be serialised as JSON. Its source is parsed when its Grammar
is first requested, so errors in the source are raised then. Forms can be nested at most as deep as the default of
`Limits.nesting`; parsing, serialising and searching nested forms is iterative, innermost forms first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from ..automata.dfa import Dfa
from ..base.errors import (
    ArgumentError,
    ConstrainError,
    LimitError,
    SourceError,
    UnsatisfiableError,
    UnsupportedError,
    check_count,
    check_type,
    describe_value,
)
from ..base.extensions import find_extension
from ..base.options import Limits, Style
from ..base.work import memoize_work, spend_work
from ..grammar.grammar_dfa import to_dfa
from ..grammar.grammar_source_type import GrammarSource
from ..grammar.intersection import intersect_grammar
from ..grammar.json_quoting import quote_as_json
from ..grammar.merged_rules import MergedRules
from ..grammar.nodes import Chars, Choice, Free, Grammar, Literal, Mark, Node, Repeat, Sequence, Token

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..vocabulary.vocabulary import Vocabulary

__all__ = [
    "Complement",
    "Concatenated",
    "Either",
    "Form",
    "Intersection",
    "LiteralText",
    "NamedForm",
    "QuotedForm",
    "RepeatedForm",
    "UNSAVED",
    "as_form",
    "count_characters",
    "literal",
    "walk_forms",
]

MOST_DEPTH = Limits().nesting
UNSAVED = {"saved": "no"}
"""Metadata of the fields of a form that `Form.plain` leaves out: they do not change the language."""
REMEMBERED = 64
"""Size of the LRU cache of Grammars of forms. A form is usually compiled for one or a few vocabularies."""


class Form(GrammarSource):
    """A description of a language: the set of texts that are allowed.

    Forms are made by `literal`, `regex`, `json_schema`, `lark`, `gbnf`, `free_text`, `mark`, `triggered`, `thinking`
    and `tools`, and combined with `+`, `|`, `&`, `~`, `repeat` and `quoted`. A str operand means exactly that text. See
    the module docstring for the operators.

    Attributes
    ----------
    depth : int
        Nesting depth, 1 for a form without inner forms. Constructing a form deeper than the default of `Limits.nesting`
        raises LimitError.
    """

    kinds: ClassVar[dict[str, type[Form]]] = {}
    depth: int

    def __init_subclass__(cls) -> None:
        Form.kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        depth = 1 + max((one.depth for one in _inner(self)), default=0)
        if depth > MOST_DEPTH:
            raise LimitError(
                f"Forms are nested deeper than Limits.nesting = {MOST_DEPTH}.",
                hint="Combine them side by side, or write the recursion as a grammar.",
            )
        object.__setattr__(self, "depth", depth)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a call of the constructor, which checks the nesting depth."""
        return type(self), tuple(getattr(self, one.name) for one in fields(self))  # type: ignore[arg-type]

    @abstractmethod
    def read(self, limits: Limits) -> Grammar:
        """Build the Grammar of this form, without caching."""

    def grammar(self, limits: Limits = Limits()) -> Grammar:
        """Return the Grammar of this form. The result is cached.

        Parameters
        ----------
        limits : Limits
            Budgets for building the Grammar.

        Returns
        -------
        Grammar

        Raises
        ------
        SourceError
            If the source is malformed.
        UnsupportedError
            If the source uses a feature that constrain does not enforce.
        UnsatisfiableError
            If no text matches.
        LimitError
            If a budget of `limits` is exceeded.
        """
        cache = _made.get()
        if cache is not None and id(self) in cache:
            grammar = cache[id(self)]
            if isinstance(grammar, ConstrainError):
                raise grammar
            return grammar
        cache = dict[int, "Grammar | ConstrainError"]()
        token = _made.set(cache)
        try:
            for form in walk_forms(self):
                try:
                    cache[id(form)] = _grammar(form, limits)
                except ConstrainError as error:  # The enclosing form decides whether an empty part matters.
                    cache[id(form)] = error
        finally:
            _made.reset(token)
        grammar = cache[id(self)]
        if isinstance(grammar, ConstrainError):
            raise grammar
        return grammar

    def compile(self, vocabulary: Vocabulary, *, limits: Limits = Limits()) -> Constraint:
        """Compile this form for a vocabulary.

        Parameters
        ----------
        vocabulary : Vocabulary
            Tokens of the language model.
        limits : Limits
            Budgets of the compilation.

        Returns
        -------
        Constraint

        Raises
        ------
        SourceError, UnsupportedError, UnsatisfiableError, LimitError
            As `constrain.compile` does.
        """
        constraint: Constraint = find_extension("compile")(vocabulary, self, limits=limits)
        return constraint

    def __add__(self, other: Form | str) -> Form:
        return Concatenated((*_parts(self, Concatenated), *_parts(as_form(other), Concatenated)))

    def __radd__(self, other: str) -> Form:
        return as_form(other) + self

    def __or__(self, other: Form | str) -> Form:
        return Either((*_parts(self, Either), *_parts(as_form(other), Either)))

    def __ror__(self, other: str) -> Form:
        return as_form(other) | self

    def __and__(self, other: Form | str) -> Form:
        return Intersection(self, as_form(other))

    def __rand__(self, other: str) -> Form:
        return as_form(other) & self

    def __invert__(self) -> Form:
        return Complement(self)

    def repeat(self, low: int = 0, high: int | None = None) -> Form:
        """Return the form of `low` to `high` repetitions of this form.

        Parameters
        ----------
        low : int
            Fewest repetitions.
        high : int or None
            Most repetitions; None for no upper bound.

        Returns
        -------
        Form

        Raises
        ------
        ArgumentError
            If a count is negative or `high` is less than `low`.
        """
        low = check_count("low", low)
        high = None if high is None else check_count("high", high)
        if high is not None and high < low:
            raise ArgumentError(f"repeat({low}, {high}): counts ascend from 0")
        return RepeatedForm(self, low, high)

    def quoted(self, style: Style = Style()) -> Form:
        """Return the form of this form's texts spelled as JSON strings, including both quotes.

        Parameters
        ----------
        style : Style
            Spelling of the string; see `Style.escapes`.

        Returns
        -------
        Form
        """
        check_type("style", style, Style, "give a constrain.Style")
        return QuotedForm(self, style)

    def named(self, name: str) -> Form:
        """Return this form under a name: the part of a text that it matches is a capture (see `captures`).

        The language is unchanged. `Generation.captures` has the captured texts by name.

        Parameters
        ----------
        name : str
            The name, not empty. Several forms may have the same name.

        Returns
        -------
        Form

        Raises
        ------
        ArgumentError
            If the name is empty.
        TypeError
            If the name is not a str.
        """
        check_type("name", name, str, "give the name of the capture")
        if not name:
            raise ArgumentError("the name of a capture is empty", hint='Give a name, such as "age".')
        return NamedForm(self, name)

    def token_nodes(self, limits: Limits) -> Iterator[Token | Mark | Free]:
        """Iterate over the nodes of the Grammar that name tokens, those of inner forms included.

        They are checked when the form is compiled, so that special tokens that the vocabulary lacks are reported then.
        """
        for form in walk_forms(self):
            yield from form.names(limits)

    def names(self, limits: Limits) -> Iterator[Token | Mark | Free]:
        """Iterate over the nodes that name tokens in this form itself, excluding inner forms."""
        return iter(())

    def plain(self) -> dict[str, Any]:
        """Return this form as a JSON-serialisable dict, which `form_json.read_form` reads."""
        written = dict[int, dict[str, Any]]()
        for form in walk_forms(self):
            saved = [one.name for one in fields(form) if one.metadata != UNSAVED]  # type: ignore[arg-type]
            body = {name: _written(getattr(form, name), written) for name in saved}
            written[id(form)] = {"kind": type(form).__name__, **body}
        return written[id(self)]


_made: ContextVar[dict[int, Grammar | ConstrainError] | None] = ContextVar("constrain_forms_made", default=None)
"""Results for the inner forms of the form that is being read: Grammar or error by `id` of the form."""


def _inner(form: Form) -> list[Form]:
    """Return the direct inner forms of a form."""
    parts: list[Form] = []
    todo = [getattr(form, one.name) for one in fields(form)]  # type: ignore[arg-type]
    while todo:
        value = todo.pop()
        if isinstance(value, Form):
            parts.append(value)
        elif isinstance(value, tuple):
            todo.extend(value)
    return parts


def walk_forms(form: Form) -> list[Form]:
    """Return a form and all its inner forms in post-order, each once."""
    order, known, todo = list[Form](), set[int](), [(form, False)]
    while todo:
        one, opened = todo.pop()
        if opened:
            order.append(one)
        elif id(one) not in known:
            known.add(id(one))
            todo.append((one, True))
            todo.extend((part, False) for part in _inner(one))
    return order


def count_characters(form: Form) -> int:
    """Return the number of characters of the texts that a form is made of."""
    values = (getattr(one, field.name) for one in walk_forms(form) for field in fields(one))  # type: ignore[arg-type]
    return sum(len(value) for value in values if isinstance(value, str))


@memoize_work(REMEMBERED)
def _grammar(form: Form, limits: Limits) -> Grammar:
    return form.read(limits)


def _parts(form: Form, kind: type[Concatenated] | type[Either]) -> tuple[Form, ...]:
    return form.parts if isinstance(form, kind) else (form,)


def as_form(value: Form | str) -> Form:
    """Return a Form unchanged, and a str as its `literal`. Raise TypeError for other values."""
    if isinstance(value, Form):
        return value
    if isinstance(value, str):
        return literal(value)
    raise TypeError(
        f"give a form or a text, not {describe_value(value)}: constrain.json_schema, regex and gbnf make forms"
    )


def literal(text: str) -> Form:
    """Return the form that matches exactly one text.

    Parameters
    ----------
    text : str
        The text, encoded as UTF-8.

    Returns
    -------
    Form

    Raises
    ------
    TypeError
        If `text` is not a str.
    SourceError
        If `text` holds an unpaired surrogate.
    """
    if not isinstance(text, str):
        raise TypeError(f"a literal is {describe_value(text)}: give a text")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SourceError(
            "a literal holds half of a surrogate pair, which is not a character.",
            source=repr(text),
            position=error.start + 1,
        ) from None
    return LiteralText(text)


# ---- combined forms


@dataclass(frozen=True, slots=True)
class LiteralText(Form):
    """Exactly one text."""

    text: str

    def read(self, limits: Limits) -> Grammar:
        return Grammar(Literal(self.text.encode()), {})


@dataclass(frozen=True, slots=True)
class Concatenated(Form):
    """The concatenation of several forms."""

    parts: tuple[Form, ...]

    def read(self, limits: Limits) -> Grammar:
        spend_work(len(self.parts), "the parts of a form")
        rules = MergedRules([part.grammar(limits) for part in self.parts])
        return Grammar(Sequence(tuple(rules.start(k) for k in range(len(self.parts)))), rules)


@dataclass(frozen=True, slots=True)
class Either(Form):
    """The union of several forms. Unsatisfiable alternatives are dropped unless all are unsatisfiable."""

    parts: tuple[Form, ...]

    def read(self, limits: Limits) -> Grammar:
        spend_work(len(self.parts), "the parts of a form")
        grammars: list[Grammar] = []
        reason: UnsatisfiableError | None = None
        for part in self.parts:
            try:
                grammars.append(part.grammar(limits))
            except UnsatisfiableError as error:  # An alternative with an empty language is dropped.
                reason = error
        if not grammars and reason is not None:
            raise reason
        rules = MergedRules(grammars)
        options: list[Node] = [rules.start(k) for k in range(len(grammars))]
        return Grammar(options[0] if len(options) == 1 else Choice(tuple(options)), rules)


@dataclass(frozen=True, slots=True)
class Intersection(Form):
    """The intersection of two forms, at least one of which must be regular."""

    first: Form
    second: Form

    def read(self, limits: Limits) -> Grammar:
        first, second = self.first.grammar(limits), self.second.grammar(limits)
        try:
            product = intersect_grammar(first, to_dfa(second, "a & b", limits), limits)
        except UnsupportedError as error:
            try:
                dfa = to_dfa(first, "a & b", limits)
            except UnsupportedError:
                raise error from None
            product = intersect_grammar(second, dfa, limits)
        if product is None:
            raise UnsatisfiableError("the intersection of both forms of an `&` is empty", hint="Relax one of them.")
        return product


@dataclass(frozen=True, slots=True)
class Complement(Form):
    """All texts that a regular form does not match."""

    form: Form

    def read(self, limits: Limits) -> Grammar:
        try:
            dfa = to_dfa(self.form.grammar(limits), "~a", limits).complement()
        except UnsatisfiableError:
            dfa = Dfa.any_text()
        if dfa.is_empty:
            raise UnsatisfiableError("the form that `~` excludes matches every text")
        return Grammar(Chars(dfa), {})


@dataclass(frozen=True, slots=True)
class RepeatedForm(Form):
    """`low` to `high` repetitions of a form; no upper bound if `high` is None."""

    form: Form
    low: int
    high: int | None

    def read(self, limits: Limits) -> Grammar:
        try:
            rules = MergedRules([self.form.grammar(limits)])
        except UnsatisfiableError:
            if self.low:
                raise
            return Grammar(Literal(b""), {})
        return Grammar(Repeat(rules.start(0), self.low, self.high), rules)


@dataclass(frozen=True, slots=True)
class QuotedForm(Form):
    """The texts of a form spelled as JSON strings."""

    form: Form
    style: Style

    def read(self, limits: Limits) -> Grammar:
        return quote_as_json(self.form.grammar(limits), self.style, limits)


@dataclass(frozen=True, slots=True)
class NamedForm(Form):
    """A form whose part of the text is captured under a name; the language is that of the form."""

    form: Form
    name: str

    def read(self, limits: Limits) -> Grammar:
        return self.form.grammar(limits)


# ---- serialisation


def _written(value: Any, written: Mapping[int, dict[str, Any]]) -> Any:
    """Return the JSON value of a field, given the JSON of all inner forms by `id`."""
    if isinstance(value, Form):
        return written[id(value)]
    if isinstance(value, tuple):
        return [_written(one, written) for one in value]
    return asdict(value) if isinstance(value, Style) else value
