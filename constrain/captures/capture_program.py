"""The program of a backtracking matcher for a Form with names: instructions, and their construction from the Form.

Every kind of form that combines others becomes a fragment of instructions with relative jumps:

    a + b         a b
    a | b         fork L1 L2;  L1: a, jump to the end;  L2: b
    a.repeat      enter loop;  L: test (fork to the body and to the end);  body; next (jump to L)
    a.named(n)    open n; a; close n
    a & b         enter guard; a; leave guard: b accepts the text since the guard was entered

All others are leaves, compiled to a Constraint of their own. A leaf may have names inside that its Constraint cannot
see: the form within a `quoted` form, or the groups of a regular expression. They are found in the leaf's text
afterwards (`Leaf.inner`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

from ..base.errors import UnsatisfiableError, UnsupportedError
from ..base.options import Limits
from ..compilation.constraint_compiler import compile
from ..engine.constraint import Constraint
from ..forms.form import (
    Complement,
    Concatenated,
    Either,
    Form,
    Intersection,
    NamedForm,
    QuotedForm,
    RepeatedForm,
    walk_forms,
)
from ..forms.free_text_forms import Thinking, Triggered, mark, unconstrained
from ..forms.llguidance_text import LlguidanceText
from ..forms.sources import GbnfText, LarkText, RegexPattern
from ..vocabulary.vocabulary import Vocabulary
from .lexeme_captures import LexemeCaptures
from .parser_captures import ParserCaptures
from .rule_captures import CaptureFinder, RuleCaptures

__all__ = [
    "CaptureProgram",
    "Edge",
    "EnterGuard",
    "EnterLoop",
    "Fork",
    "Instruction",
    "Jump",
    "Leaf",
    "LeaveGuard",
    "NextIteration",
    "TestLoop",
    "build_capture_program",
    "has_names",
]


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """Match as long a text of `constraint` as possible; None has no text. inner: what has names inside it, if any."""

    form: Form
    constraint: Constraint | None
    inner: InnerCaptures | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """Open or close the capture of a form."""

    form: NamedForm
    opens: bool


@dataclass(frozen=True, slots=True)
class Fork:
    """Continue at one of several relative addresses, in order of preference."""

    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Jump:
    """Continue at a relative address."""

    target: int


@dataclass(frozen=True, slots=True)
class EnterLoop:
    """Start a loop: push the frame (repetitions so far, whether the last one was not empty)."""


@dataclass(frozen=True, slots=True)
class TestLoop:
    """Repeat the body, which follows, or leave the loop to the relative address `end`."""

    low: int
    high: int | None
    end: int


@dataclass(frozen=True, slots=True)
class NextIteration:
    """Count a repetition and continue at the relative address of the test."""

    test: int


@dataclass(frozen=True, slots=True)
class EnterGuard:
    """Push the position at which a guarded text starts."""


@dataclass(frozen=True, slots=True, eq=False)
class LeaveGuard:
    """Pop the position; fail unless `constraint` accepts the text since then."""

    constraint: Constraint


Instruction = Union[Leaf, Edge, Fork, Jump, EnterLoop, TestLoop, NextIteration, EnterGuard, LeaveGuard]
Fragment = list[Instruction]


@dataclass(frozen=True, slots=True, eq=False)
class CaptureProgram:
    """Instructions, which accept at the address after the last one. names: those of the form, True where one text may
    have several captures of that name.
    """

    instructions: tuple[Instruction, ...]
    vocabulary: Vocabulary
    names: dict[str, bool]


InnerCaptures = Union[re.Pattern[str], CaptureProgram, CaptureFinder]
"""What finds the captures within the text of a leaf."""


def has_names(form: Form) -> bool:
    """Return whether a form may have captures.

    These are named forms, patterns with named groups that Python's `re` reads, and rules of grammars.
    """
    return any(
        isinstance(one, NamedForm) or has_rule_captures(one) or compile_groups(one) is not None
        for one in walk_forms(form)
    )


def has_rule_captures(form: Form) -> bool:
    """Return whether a form is a grammar that may have captures of rules."""
    if isinstance(form, LlguidanceText):
        return form.may_capture
    return isinstance(form, (LarkText, GbnfText)) and bool(form.captures)


def make_finder(form: Form, vocabulary: Vocabulary, limits: Limits) -> CaptureFinder | None:
    """Return what finds the captures of rules of a grammar; None for other forms."""
    if not has_rule_captures(form):
        return None
    if isinstance(form, LlguidanceText):
        return LexemeCaptures(form.captured_lexemes(limits), vocabulary, limits)
    if isinstance(form, LarkText) and form.has_lexer:
        return ParserCaptures(*form.captured_parser(limits))
    assert isinstance(form, (LarkText, GbnfText))
    return RuleCaptures(form.captured_grammar(limits), vocabulary, limits)


def compile_groups(form: Form) -> re.Pattern[str] | None:
    """Return the pattern of a regular expression with named groups; None for other forms, and in other syntaxes."""
    if not isinstance(form, RegexPattern) or "(?P<" not in form.pattern:
        return None
    try:
        pattern = re.compile(form.pattern)
    except re.error:
        return None
    return pattern if pattern.groupindex else None


def build_capture_program(form: Form, vocabulary: Vocabulary, limits: Limits = Limits()) -> CaptureProgram:
    """Return the program that finds the captures of `form`.

    Parameters
    ----------
    form : Form
        The form that the texts match.
    vocabulary : Vocabulary
        The vocabulary that the form is compiled for: it decides which marks are special tokens.
    limits : Limits
        Budgets of the Constraints of the leaves.

    Returns
    -------
    CaptureProgram

    Raises
    ------
    UnsupportedError
        If a name is where the form does not say which part of the text it has: inside `~`, inside both sides of `&`, or
        inside a grammar that Lark text embeds.
    SourceError, UnsatisfiableError, LimitError
        As `compile`, for the parts of the form.
    """
    return ProgramBuilder(vocabulary, limits).build(form)


class ProgramBuilder:
    """Builds the fragments of forms, innermost forms first, without recursion."""

    def __init__(self, vocabulary: Vocabulary, limits: Limits) -> None:
        self.vocabulary, self.limits = vocabulary, limits
        self.fragments: dict[int, Fragment] = {}
        self.counts: dict[int, dict[str, int]] = {}  # most captures of each name, 2 for any number above 1
        self.finders: dict[int, CaptureFinder | None] = {}

    def build(self, form: Form) -> CaptureProgram:
        """Return the program of a form."""
        expanded = expand_form(form)
        for one in walk_forms(expanded):
            self.finders[id(one)] = make_finder(one, self.vocabulary, self.limits)
            self.counts[id(one)] = self.count_names(one)
            self.fragments[id(one)] = self.make_fragment(one)
        names = {name: count > 1 for name, count in self.counts[id(expanded)].items()}
        return CaptureProgram(tuple(self.fragments[id(expanded)]), self.vocabulary, names)

    def count_names(self, form: Form) -> dict[str, int]:
        """Return the most captures of each name that one text of a form may have; 2 stands for several."""
        if isinstance(form, Concatenated):
            return merge_counts([self.counts[id(part)] for part in form.parts], lambda a, b: min(a + b, 2))
        if isinstance(form, Either):
            return merge_counts([self.counts[id(part)] for part in form.parts], max)
        if isinstance(form, RepeatedForm):
            inner = self.counts[id(form.form)]
            return inner if form.high is not None and form.high < 2 else dict.fromkeys(inner, 2)
        if isinstance(form, Intersection):
            return {**self.counts[id(form.first)], **self.counts[id(form.second)]}
        inner = self.counts[id(form.form)] if isinstance(form, (NamedForm, QuotedForm)) else {}
        if isinstance(form, NamedForm):
            return merge_counts([inner, {form.name: 1}], lambda a, b: 2)
        finder = self.finders[id(form)]
        if finder is not None:
            return finder.counts
        groups = compile_groups(form)
        return inner if groups is None else dict.fromkeys(groups.groupindex, 1)

    def make_fragment(self, form: Form) -> Fragment:
        """Return the instructions of a form, whose inner forms have theirs."""
        if isinstance(form, NamedForm):
            return [Edge(form, True), *self.fragments[id(form.form)], Edge(form, False)]
        if isinstance(form, Concatenated):
            return [one for part in form.parts for one in self.fragments[id(part)]]
        if isinstance(form, Either):
            return join_alternatives([self.fragments[id(part)] for part in form.parts])
        if isinstance(form, RepeatedForm):
            body = self.fragments[id(form.form)]
            loop = TestLoop(form.low, form.high, len(body) + 2)
            return [EnterLoop(), loop, *body, NextIteration(-len(body) - 1)]
        if isinstance(form, Intersection) and self.counts[id(form)]:
            return self.guard_fragment(form)
        if not isinstance(form, QuotedForm):
            refuse_names(form)
        return [Leaf(form, self.compile_leaf(form), self.inner_names(form))]

    def guard_fragment(self, form: Intersection) -> Fragment:
        """Return the instructions of `a & b`, of which one side has names: the other one guards the text."""
        if self.counts[id(form.first)] and self.counts[id(form.second)]:
            raise UnsupportedError("both sides of an `&` have named forms", hint="Name parts of one side only.")
        named, guard = (form.first, form.second) if self.counts[id(form.first)] else (form.second, form.first)
        constraint = self.compile_leaf(guard)
        if constraint is None:
            return [Leaf(guard, None)]
        return [EnterGuard(), *self.fragments[id(named)], LeaveGuard(constraint)]

    def compile_leaf(self, form: Form) -> Constraint | None:
        """Return the Constraint of a form; None if it has no text (an alternative or a repetition that never is)."""
        try:
            return compile(self.vocabulary, form, limits=self.limits)
        except UnsatisfiableError:
            return None

    def inner_names(self, form: Form) -> InnerCaptures | None:
        """Return what finds the names within the text of a leaf; None if there are none."""
        if isinstance(form, QuotedForm) and self.counts[id(form)]:
            names = {name: count > 1 for name, count in self.counts[id(form)].items()}
            return CaptureProgram(tuple(self.fragments[id(form.form)]), self.vocabulary, names)
        return self.finders[id(form)] or compile_groups(form)


def merge_counts(counts: list[dict[str, int]], combine: Callable[[int, int], int]) -> dict[str, int]:
    """Return the union of dicts, with `combine` applied to the values of a key in several."""
    out: dict[str, int] = {}
    for one in counts:
        out |= {name: combine(out[name], count) if name in out else count for name, count in one.items()}
    return out


def join_alternatives(fragments: list[Fragment]) -> Fragment:
    """Return the fragment that continues with one of several, in order of preference."""
    sizes = [len(fragment) + 1 for fragment in fragments]
    starts = [1 + sum(sizes[:k]) for k in range(len(sizes))]
    end = 1 + sum(sizes)
    out: Fragment = [Fork(tuple(starts))]
    for fragment in fragments:
        out += fragment
        out.append(Jump(end - len(out)))
    return out


def refuse_names(form: Form) -> None:
    """Raise UnsupportedError if a form in which names have no span has any."""
    if any(isinstance(one, NamedForm) for one in walk_forms(form)):
        places = {
            Complement: "inside `~`", LarkText: "in a grammar that Lark text embeds",
            LlguidanceText: "in a grammar that Lark text embeds",
        }  # fmt: skip
        place = places.get(type(form), f"inside a {type(form).__name__}")
        raise UnsupportedError(f"a named form is {place}", hint="Name a form around it instead.")


def expand_form(form: Form) -> Form:
    """Return a form with `triggered` and `thinking` replaced by combinations of other forms, wherever they have names
    inside.
    """
    if not any(isinstance(one, (Triggered, Thinking)) for one in walk_forms(form)):
        return form
    made: dict[int, Form] = {}
    for one in walk_forms(form):
        made[id(one)] = expand_once(one, made) if has_names(one) else one
    return made[id(form)]


def expand_once(form: Form, made: dict[int, Form]) -> Form:
    """Return a form whose inner forms are replaced by those in `made` (by id), itself expanded."""
    if isinstance(form, Thinking):
        thought = unconstrained((form.close,), form.close)  # the text is valid: it keeps to `form.most`
        opened = mark(form.open) + thought if form.open else thought
        return (opened.repeat(0, 1) if form.thought == "maybe" else opened) + made[id(form.form)]
    if isinstance(form, Triggered):
        return expand_triggered(form, made)
    return type(form)(**{name: replace_inner(getattr(form, name), made) for name in form.__dataclass_fields__})  # type: ignore[attr-defined]


def replace_inner(value: Any, made: dict[int, Form]) -> Any:
    """Return a field of a form with the forms in it replaced."""
    if isinstance(value, tuple):
        return tuple(replace_inner(one, made) for one in value)
    return made[id(value)] if isinstance(value, Form) else value


def expand_triggered(form: Triggered, made: dict[int, Form]) -> Form:
    """Return a Triggered form as repetition, choice and free text (see `Triggered.read`)."""
    marks = tuple(text for text, _ in form.forms)
    begun = [unconstrained(marks, begin) + made[id(inner)] for begin, inner in form.forms]
    one = begun[0] if len(begun) == 1 else Either(tuple(begun))
    if form.after == "text":
        return one.repeat(form.least, form.most) + unconstrained(marks)
    some = one.repeat(max(form.least, 1), form.most)
    return some if form.least else some | unconstrained(marks)
