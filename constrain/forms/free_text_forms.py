"""Forms within free text: forms that start at a trigger, and a reasoning section before an answer.

    constrain.triggered({"<tool_call>": call + "</tool_call>"})     text; after each trigger its form, then text again
    constrain.thinking(answer)                                      <think> ... </think> answer

A *mark* is the special token of that name in the vocabulary, or if there is none, this text, however it is tokenised;
special tokens that are part of it (`<tool_call>` of `<tool_call>\\n`) are these tokens. Before a mark, the mask allows
almost every token: all bytes, valid UTF-8 or not, and all special tokens that are not marks, so the model's free text
is unchanged bit for bit. An end token is allowed where the text may end. Two kinds of tokens are not allowed: those
that would complete a mark and continue in violation of its form, among them special tokens whose names contain a mark,
and ordinary tokens that contain a byte 0xFF, which never occurs in UTF-8.
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
    """A special token, or a text if the vocabulary has no such token; special tokens in the text are these tokens."""

    text: str

    def read(self, limits: Limits) -> Grammar:
        return Grammar(Mark(self.text), {})

    def names(self, limits: Limits) -> Iterator[Token | Mark | Free]:
        yield Mark(self.text)


@dataclass(frozen=True, slots=True)
class Unconstrained(Form):
    """Any model output without the marks `without`, or up to and including the first `until`; see `unconstrained`."""

    without: tuple[str, ...]
    until: str | None
    excluded: tuple[str, ...] = ()

    def read(self, limits: Limits) -> Grammar:
        return Grammar(Free(self.without, self.until, None, self.excluded), {})

    def names(self, limits: Limits) -> Iterator[Token | Mark | Free]:
        yield Free(self.without, self.until, None, self.excluded)


@dataclass(frozen=True, slots=True)
class Triggered(Form):
    """Free text in which each mark is followed by its form."""

    forms: tuple[tuple[str, Form], ...]
    least: int
    most: int | None
    after: After

    def read(self, limits: Limits) -> Grammar:
        marks = tuple(text for text, _ in self.forms)
        allowed: list[str] = []
        grammars: list[Grammar] = []
        reason: UnsatisfiableError | None = None
        for begin, form in self.forms:
            try:
                grammars.append(form.grammar(limits))
                allowed.append(begin)
            except UnsatisfiableError as error:  # A trigger whose form is unsatisfiable is not allowed.
                reason = error
        if reason is not None and not allowed and self.least:
            raise reason
        rules = MergedRules(grammars)
        begun = tuple(Sequence((Free(marks, begin), rules.start(k))) for k, begin in enumerate(allowed))
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
    """A reasoning section up to and including the mark `close`, followed by a form."""

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
    """Return the form of a special token.

    Parameters
    ----------
    text : str
        Name of the special token. In a vocabulary without it, the form matches this text, in which names of other
        special tokens are these tokens.

    Returns
    -------
    Form

    Raises
    ------
    SourceError
        If `text` is empty, not a str, or holds an unpaired surrogate.
    """
    return MarkOf(check_mark(text, "a mark"))


def unconstrained(without: Iterable[str] = (), until: str | None = None, excluded: Iterable[str] = ()) -> Form:
    """Return the form of any model output that contains none of these marks.

    If `until` is given, the output ends with the first `until`, which is part of it; it is added to the marks. A mark
    that `until` is the end of may end there, too, unless it is one of `excluded`, which are added to the marks.
    """
    refused = tuple(check_mark(text, "a mark") for text in excluded)
    marks = tuple(dict.fromkeys((*(check_mark(text, "a mark") for text in without), *refused)))
    if until is not None and until not in marks:
        marks = (*marks, check_mark(until, "a mark"))
    return Unconstrained(marks, until, refused)


def triggered(
    forms: Mapping[str, Form | str] | Iterable[tuple[str, Form | str]],
    *,
    least: int = 0,
    most: int | None = None,
    after: After = "text",
) -> Form:
    """Return the form of free text in which each trigger is followed by its form.

    After the form, free text continues.

    Parameters
    ----------
    forms : Mapping of str to Form or str, or iterable of pairs
        For each trigger (a mark, see the module) the form that must follow it. The form includes its own terminator,
        such as `json_schema(S) + "</tool_call>"`.
    least, most : int
        Fewest and most triggers in the text. `most` may be None for no upper bound.
    after : {"text", "end"}
        "text": free text may follow the last triggered form. "end": the text ends after the last triggered form, or is
        entirely free text if `least` is 0.

    Returns
    -------
    Form

    Raises
    ------
    SourceError
        If there are no triggers, one is given twice, or one can never occur because it contains another one that is
        complete earlier.
    TypeError, ArgumentError
        If an argument has the wrong type or value.

    Notes
    -----
    Where triggers overlap, the one that is complete first starts its form. In the structural tags of XGrammar and vLLM,
    `at_least_one` is `least=1`, and `stop_after_first` is `most=1, after="end"`.
    """
    try:
        pairs = tuple((text, form) for text, form in (forms.items() if isinstance(forms, Mapping) else forms))
    except (TypeError, ValueError):
        raise TypeError(f"forms is {describe_value(forms)}: give a dict of trigger -> Form") from None
    triggers = tuple((check_mark(text, "a trigger"), as_form(form)) for text, form in pairs)
    texts = [text for text, _ in triggers]
    if not triggers:
        raise SourceError("triggered() has no triggers", hint="Give {mark: form}, or use free_text().")
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise SourceError(f"the trigger {twice!r} is given twice", hint="Give it once, with `one | other`.")
    for text in texts:
        shorter = next((other for other in texts if other in text[:-1]), None)
        if shorter is not None:
            raise SourceError(
                f"the trigger {text!r} can never occur, because it contains the trigger {shorter!r}",
                hint=f"Put the rest of {text!r} into the form of {shorter!r}.",
            )
    least = check_count("least", least)
    if most is not None and check_count("most", most) < least:
        raise ArgumentError(f"triggered(least={least}, most={most}): give 0 <= least <= most")
    check_choice("after", after, ("text", "end"))
    return Triggered(triggers, least, most, after)


def thinking(
    form: Form | str,
    open: str = "<think>",
    close: str = "</think>",
    *,
    most: int | None = None,
    thought: OneOf["always", "maybe"] = "always",
) -> Form:
    """Return the form of a reasoning section followed by a form.

    Parameters
    ----------
    form : Form or str
        The answer, which follows the mark `close`.
    open : str
        The mark that starts the reasoning; "" if the prompt already contains it.
    close : str
        The mark that ends the reasoning.
    most : int, optional
        Most bytes of reasoning; once they are used up, only `close` is allowed. A token of English text has about four
        bytes; a special token counts as five.
    thought : {"always", "maybe"}
        "maybe": the reasoning section may be omitted; requires a non-empty `open`.

    Returns
    -------
    Form

    Raises
    ------
    SourceError
        If a mark is not valid, or `thought` is "maybe" and `open` is "".
    TypeError, ArgumentError
        If another argument has the wrong type or value.
    """
    check_choice("thought", thought, ("always", "maybe"))
    for name, mark in (("open", open), ("close", close)):
        check_type(name, mark, str, "give the text of a mark, such as '<think>'")
    if open == "" and thought == "maybe":
        raise SourceError("reasoning without an opening mark cannot be optional", hint="Give the mark that opens it.")
    most = None if most is None else check_count("most", most)
    return Thinking(as_form(form), open and check_mark(open, "a mark"), check_mark(close, "a mark"), most, thought)


def check_mark(text: str, role: str) -> str:
    """Return a mark. Raise SourceError if it is not a non-empty, encodable str."""
    if not isinstance(text, str) or not text:
        raise SourceError(f"{role} is {describe_value(text)}, which is not a text", hint="Such as '<tool_call>'.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SourceError(f"{role} is {text!r}: half of a surrogate pair is not a character") from None
    return text
