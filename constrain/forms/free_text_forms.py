"""Free text around what is constrained: forms that begin where a mark is written, and thoughts before an answer.

    constrain.triggered({"<tool_call>": call + "</tool_call>"})     text and, after each mark, its form; then text again
    constrain.thinking(answer)                                      <think> ... </think> answer

A *mark* is a special token of that name in the vocabulary, or else this very text, however tokens cut it. Before it the
mask allows every token: all bytes, whether or not they are UTF-8, and all special tokens that are no marks, so that
what is written is bit for bit what the model writes by itself. An end token is allowed where the text may end. Two
kinds of tokens are not: those that would write a mark and go on against its form; and ordinary tokens that hold a byte
0xFF, which no UTF-8 text has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from ..base.errors import (
    ArgumentError,
    SourceError,
    UnsatisfiableError,
    check_choice,
    check_count,
    check_type,
    describe_value,
)
from ..base.options import Limits
from ..grammar.merged_rules import MergedRules
from ..grammar.nodes import EMPTY, Choice, Free, Grammar, Mark, Node, Repeat, Sequence, Token
from .form import Form, as_form

__all__ = ["MarkOf", "Thinking", "Triggered", "Unconstrained", "mark", "thinking", "triggered", "unconstrained"]

After = OneOf["text", "end"]


@dataclass(frozen=True, slots=True)
class MarkOf(Form):
    """A special token, or a text."""

    text: str

    def read(self, limits: Limits) -> Grammar:
        return Grammar(Mark(self.text), {})

    def names(self, limits: Limits) -> Iterator[Token | Mark | Free]:
        yield Mark(self.text)


@dataclass(frozen=True, slots=True)
class Unconstrained(Form):
    """Whatever a model writes, but for marks."""

    without: tuple[str, ...]
    until: str | None

    def read(self, limits: Limits) -> Grammar:
        return Grammar(Free(self.without, self.until), {})

    def names(self, limits: Limits) -> Iterator[Token | Mark | Free]:
        yield Free(self.without, self.until)


@dataclass(frozen=True, slots=True)
class Triggered(Form):
    """Free text in which each mark begins its form."""

    forms: tuple[tuple[str, Form], ...]
    least: int
    most: int | None
    after: After

    def read(self, limits: Limits) -> Grammar:
        marks = tuple(text for text, _ in self.forms)
        kept: list[str] = []
        grammars: list[Grammar] = []
        reason: UnsatisfiableError | None = None
        for begin, form in self.forms:
            try:
                grammars.append(form.grammar(limits))
                kept.append(begin)
            except UnsatisfiableError as error:  # What leads nowhere is not begun.
                reason = error
        if reason is not None and not kept and self.least:
            raise reason
        rules = MergedRules(grammars)
        begun = tuple(Sequence((Free(marks, begin), rules.start(k))) for k, begin in enumerate(kept))
        text = Free(marks)
        if not begun or self.most == 0:
            return Grammar(text, {})
        one: Node = begun[0] if len(begun) == 1 else Choice(begun)
        if self.after == "text":
            return Grammar(Sequence((Repeat(one, self.least, self.most), text)), rules)
        some = Repeat(one, max(self.least, 1), self.most)
        return Grammar(some if self.least else Choice((some, text)), rules)

    def names(self, limits: Limits) -> Iterator[Token | Mark | Free]:
        yield from (Mark(text) for text, _ in self.forms)


@dataclass(frozen=True, slots=True)
class Thinking(Form):
    """Thoughts up to a mark, then a form."""

    form: Form
    open: str
    close: str
    most: int | None
    thought: OneOf["always", "maybe"]

    def read(self, limits: Limits) -> Grammar:
        rules = MergedRules([self.form.grammar(limits)])
        opened: Node = Mark(self.open) if self.open else EMPTY
        thoughts: Node = Sequence((opened, Free((self.close,), self.close, self.most)))
        if self.thought == "maybe":
            thoughts = Repeat(thoughts, 0, 1)
        return Grammar(Sequence((thoughts, rules.start(0))), rules)

    def names(self, limits: Limits) -> Iterator[Token | Mark | Free]:
        yield from (Mark(text) for text in (self.open, self.close) if text)


def mark(text: str) -> Form:
    """The special token of this name; where the vocabulary has none, this text."""
    return MarkOf(check_mark(text, "a mark"))


def unconstrained(without: Iterable[str] = (), until: str | None = None) -> Form:
    """Whatever a model writes, without these marks, or up to the first `until`, which is one of them and ends it."""
    marks = tuple(check_mark(text, "a mark") for text in without)
    if until is not None and until not in marks:
        marks = (*marks, check_mark(until, "a mark"))
    return Unconstrained(marks, until)


def triggered(
    forms: Mapping[str, Form | str] | Iterable[tuple[str, Form | str]],
    *,
    least: int = 0,
    most: int | None = None,
    after: After = "text",
) -> Form:
    """Free text; wherever one of the marks is written, its form follows, and then free text again.

    forms: mark -> what must follow it. A form holds its own end, such as `json_schema(S) + "</tool_call>"`.
    least, most: how many are begun. after: "text": free text may follow the last of them; "end": the text ends with the
    last, or is free text as a whole, if least is 0. In XGrammar's and vLLM's structural tags `at_least_one` is least=1,
    `stop_after_first` is most=1, after="end".

    Where marks overlap, the one that is whole first begins its form. Raises SourceError for marks that never can.
    """
    try:
        pairs = tuple((text, form) for text, form in (forms.items() if isinstance(forms, Mapping) else forms))
    except (TypeError, ValueError):
        raise TypeError(f"forms is {describe_value(forms)}: give a dict of trigger -> Form") from None
    made = tuple((check_mark(text, "a trigger"), as_form(form)) for text, form in pairs)
    texts = [text for text, _ in made]
    if not made:
        raise SourceError("triggered() has no triggers", hint="Give {mark: form}, or use free_text().")
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise SourceError(f"the trigger {twice!r} is given twice", hint="Give it once, with `one | other`.")
    for text in texts:
        shorter = next((other for other in texts if other in text[:-1]), None)
        if shorter is not None:
            raise SourceError(
                f"the trigger {text!r} never comes: {shorter!r} is in it and is whole before",
                hint=f"Put the rest of {text!r} into the form of {shorter!r}.",
            )
    least = check_count("least", least)
    if most is not None and check_count("most", most) < least:
        raise ArgumentError(f"triggered(least={least}, most={most}): counts ascend from 0")
    check_choice("after", after, ("text", "end"))
    return Triggered(made, least, most, after)


def thinking(
    form: Form | str,
    open: str = "<think>",
    close: str = "</think>",
    *,
    most: int | None = None,
    thought: OneOf["always", "maybe"] = "always",
) -> Form:
    """Thoughts, and behind the mark `close` the form.

    open: the mark that begins the thoughts; "" where the prompt has it already. most: most bytes of thoughts, at which
    `close` is all that may come (a token of English text has some four bytes; a special token counts for five).
    thought: "maybe": the text may also begin with the form at once; not with open="".
    """
    check_choice("thought", thought, ("always", "maybe"))
    for name, mark in (("open", open), ("close", close)):
        check_type(name, mark, str, "give the text of a mark, such as '<think>'")
    if open == "" and thought == "maybe":
        raise SourceError("thoughts that nothing opens cannot be left out", hint="Name the mark that opens them.")
    most = None if most is None else check_count("most", most)
    return Thinking(as_form(form), open and check_mark(open, "a mark"), check_mark(close, "a mark"), most, thought)


def check_mark(text: str, what: str) -> str:
    """A mark, if it is one."""
    if not isinstance(text, str) or not text:
        raise SourceError(f"{what} is {describe_value(text)}: it is a text", hint="Such as '<tool_call>'.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SourceError(f"{what} is {text!r}: half of a surrogate pair is no character") from None
    return text
