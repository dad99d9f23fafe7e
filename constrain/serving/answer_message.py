"""`AnswerMessage`: one answer, divided into thoughts, content and calls, with the reason why it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..generation.generation_result import Generation
from .answer_call import AnswerCall
from .answer_reader import Part
from .schema_notes import list_schema_notes
from .token_logprobs import TokenLogprob

__all__ = ["AnswerMessage", "CallMade", "describe_call_statistics", "describe_text", "find_ending", "fold_parts"]

Ending = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True)
class CallMade:
    """A call. text: JSON arguments; the input of a custom tool."""

    id: str
    name: str
    text: str
    is_custom: bool


@dataclass(frozen=True)
class AnswerMessage:
    """An answer. content: None if there are only calls."""

    thoughts: str
    content: str | None
    calls: tuple[CallMade, ...]
    ending: Ending
    made: Generation[Any]
    logprobs: Sequence[TokenLogprob] | None = None


def find_ending(call: AnswerCall, made: Generation[Any], calls: int) -> Ending:
    """Return why an answer ended. calls: the number of calls in it.

    "length" is the ending of free text that was cut off; what is constrained is complete, also where it had to be
    completed within max_tokens.
    """
    if made.finish_reason == "length":
        return "length"
    if calls:
        return "tool_calls"
    return "length" if made.finish_reason == "budget" and call.may_be_cut else "stop"


def fold_parts(
    call: AnswerCall, parts: Sequence[Part], made: Generation[Any], logprobs: Sequence[TokenLogprob] | None = None
) -> AnswerMessage:
    """Return the message of all parts of an answer."""
    customs = {tool.name for tool in call.plan.customs}
    names = {part.call: part.text for part in parts if part.kind == "call"}
    calls = tuple(
        CallMade(
            one, name, "".join(part.text for part in parts if part.call == one and part.kind != "call"), name in customs
        )
        for one, name in names.items()
    )
    content = "".join(part.text for part in parts if part.kind == "content")
    thoughts = "".join(part.text for part in parts if part.kind == "thoughts")
    shown = None if calls and not content else content
    return AnswerMessage(thoughts, shown, calls, find_ending(call, made, len(calls)), made, logprobs)


def describe_text(call: AnswerCall, made: Generation[Any]) -> dict[str, Any] | None:
    """Return the member `constrain` of a choice, which is not in OpenAI's shape; None unless a sampler was requested.

    logprob, log_weight: in nats, see `Generation`. finish_reason: "complete" if the model ended the text.
    """
    if call.sampler is None:
        return None
    return {"logprob": made.logprob, "log_weight": made.log_weight, "finish_reason": made.finish_reason}


def describe_call_statistics(call: AnswerCall, texts: Sequence[Generation[Any]]) -> dict[str, Any]:
    """Return the member `constrain` of an answer, which OpenAI's shape does not have: the tools that were left out, the
    warnings about schemas, the sampler and the statistics of its weights. Empty if there are none.
    """
    extension: dict[str, Any] = {}
    if call.plan.refused:
        extension["refused_tools"] = [
            {"name": one.name, "message": str(one.error), "param": one.error.pointer if one.error else one.pointer}
            for one in call.plan.refused
        ]
    notes = list_schema_notes()
    if notes:
        extension["warnings"] = notes
    if call.sampler is not None and texts:
        stats = texts[0].stats
        extension["sampler"], extension["weights"] = (
            stats.sampler,
            {name: finite(one) for name, one in stats.weights.items()},
        )
        if stats.reason:
            extension["reason"] = stats.reason
    return extension


def finite(value: float) -> float | None:
    """Return a number that JSON can hold, or None."""
    return float(value) if abs(value) < float("inf") else None
