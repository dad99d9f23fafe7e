"""`AnswerCall`: a request, read and checked, as what the Engine runs and as how its text is read.

AnswerFormat, ToolPlan, ThinkingMarks -> constraint of the Engine       (make_constraint)
text of the model -> AnswerReader -> thoughts, content, calls           (AnswerCall.open_reader)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..dialogue import tools
from ..dialogue.custom_tools import with_custom_calls
from ..forms import Form, thinking
from ..forms.free_text_forms import unconstrained
from .answer_formats import AnswerFormat
from .answer_reader import AnswerReader
from .request_errors import locate_errors
from .request_objects import RequestObject
from .server_settings import ServerSettings
from .tool_requests import ToolPlan

__all__ = ["AnswerCall", "ThinkingMarks", "make_constraint", "read_thinking"]


@dataclass(frozen=True)
class ThinkingMarks:
    """The marks around the thoughts of a reasoning model; constraints apply after them.

    open: empty if the prompt ends with it. most: most bytes of thoughts. is_optional: whether there may be none.
    """

    open: str
    close: str
    most: int | None = None
    is_optional: bool = False


@dataclass(frozen=True)
class AnswerCall:
    """A call of the Engine.

    Attributes
    ----------
    prompt : sequence of int
        Token ids.
    count : int
        Number of texts.
    options : dict
        Further arguments of `Engine.agenerate`, the constraint among them.
    pointer : str
        The place of the constraint in the request.
    wanted, plan, marks
        What the answer is, its calls, and its thoughts.
    tool_format : str
        How the model writes calls.
    top_logprobs : int or None
        Alternatives at each token, reported with log-probabilities; None for no log-probabilities.
    sampler : str or None
        A sampler of `constrain.generate`, and its options; None for the Engine's.
    prompt_pointer : str
        The place of the prompt in the request.
    length_name : str
        The name by which the request gives the most tokens of an answer.
    """

    prompt: Sequence[int]
    count: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    pointer: str = ""
    wanted: AnswerFormat = field(default_factory=AnswerFormat)
    plan: ToolPlan = field(default_factory=ToolPlan)
    marks: ThinkingMarks | None = None
    tool_format: str = "json"
    top_logprobs: int | None = None
    sampler: str | None = None
    sampler_options: dict[str, Any] = field(default_factory=dict)
    prompt_pointer: str = ""
    length_name: str = "max_tokens"

    @property
    def may_be_cut(self) -> bool:
        """Whether the answer may be free text, which max_tokens cuts off rather than completes."""
        return self.wanted.has_free_text and not (self.plan.tools and self.plan.is_required)

    @property
    def is_empty(self) -> bool:
        """Whether answers have no tokens: only the prompt is wanted."""
        return self.options.get("max_tokens") == 0

    def open_reader(self) -> AnswerReader:
        """Return a reader of one text of the call."""
        marks = None if self.marks is None else (self.marks.open, self.marks.close)
        return AnswerReader(self.plan, self.tool_format, marks)


def make_constraint(
    wanted: AnswerFormat, plan: ToolPlan, marks: ThinkingMarks | None, tool_format: str
) -> tuple[dict[str, Any], str]:
    """Return the constraint of a call as arguments of `Engine.generate`, and its place in the request."""
    if not plan.tools and marks is None:
        return ({**wanted.constraint, "style": wanted.style} if wanted.constraint else {}), wanted.pointer
    form: Form | None = None if wanted.is_free else wanted.make_form()
    pointer = wanted.pointer
    if plan.tools:
        pointer = plan.pointer
        with locate_errors(pointer):
            only_calls = plan.is_required or form is not None
            calls = make_call_form(plan, tool_format, "required" if only_calls else "auto")
            form = calls if form is None or plan.is_required else calls | form
    if marks is not None:
        with locate_errors("/thinking"):
            thought = "maybe" if marks.is_optional else "always"
            answer = unconstrained() if form is None else form
            form = thinking(answer, marks.open, marks.close, most=marks.most, thought=thought)  # type: ignore[arg-type]
    return {"grammar": form}, pointer


def make_call_form(plan: ToolPlan, tool_format: str, choice: str) -> Form:
    """Return the form of answers with calls."""
    functions = tools(plan.functions, tool_format, choice=choice, most=plan.most) if plan.functions else None
    if not plan.customs:
        assert functions is not None  # a plan with tools has one kind or the other
        return functions
    return with_custom_calls(functions, plan.customs, choice=choice, most=plan.most)


def read_thinking(body: RequestObject, settings: ServerSettings) -> ThinkingMarks | None:
    """Return the marks of a request, by default those of the server; false turns them off."""
    by_default = ThinkingMarks(settings.think_open, settings.think_close) if settings.think_close else None
    if body.value.get("thinking") is None or isinstance(body.value["thinking"], bool):
        return None if body.read_flag("thinking") is False else by_default
    given = body.require_object("thinking")
    known = by_default or ThinkingMarks("<think>", "</think>")
    marks = (given.read_text("open"), given.read_text("close"))
    read = ThinkingMarks(
        known.open if marks[0] is None else marks[0], marks[1] or known.close, given.read_count("max_bytes", 0),
        bool(given.read_flag("optional")),
    )  # fmt: skip
    given.finish()
    return read
