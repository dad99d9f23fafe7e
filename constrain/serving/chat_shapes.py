"""Chat completions in the shape of OpenAI's: the answer, and the chunks of a stream."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from ..generation.generation_result import Generation
from ..vocabulary.vocabulary import Vocabulary
from .answer_call import AnswerCall
from .answer_message import (
    AnswerMessage,
    CallMade,
    describe_call_statistics,
    describe_text,
    find_ending,
)
from .answer_reader import Part
from .thought_tokens import count_thought_tokens
from .token_logprobs import TokenLogprob, describe_logprobs

__all__ = ["ChatShape", "describe_usage"]


def describe_usage(prompt: int, written: int) -> dict[str, int]:
    """Return numbers of tokens in the shape of OpenAI's."""
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


class ChatShape:
    """The shape of one answer. shows_usage: whether a stream ends with the numbers of tokens."""

    def __init__(self, model: str, call: AnswerCall, vocabulary: Vocabulary) -> None:
        self.call, self.vocabulary = call, vocabulary
        self.head = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": model}
        self.customs = {tool.name for tool in call.plan.customs}
        self.shows_usage = False
        self.calls: list[list[tuple[str, bool]]] = [[] for _ in range(call.count)]
        self.with_content: set[int] = set()
        self.made: list[Generation[Any]] = []

    def describe(self, messages: Sequence[AnswerMessage]) -> dict[str, Any]:
        """Return the whole answer."""
        made = [one.made for one in messages]
        extension = describe_call_statistics(self.call, made)
        return {
            **self.head, "object": "chat.completion",
            "choices": [self.describe_choice(index, one) for index, one in enumerate(messages)],
            "usage": self.describe_usage(made),
            **({"constrain": extension} if extension else {}),
        }  # fmt: skip

    def describe_choice(self, index: int, message: AnswerMessage) -> dict[str, Any]:
        """Return one choice."""
        body: dict[str, Any] = {"role": "assistant", "content": message.content, "refusal": None}
        if message.thoughts:
            body["reasoning_content"] = message.thoughts
        if message.calls:
            body["tool_calls"] = [describe_call_made(one) for one in message.calls]
        found = message.logprobs
        return {
            "index": index,
            "message": body,
            "finish_reason": message.ending,
            "logprobs": None if found is None else {"content": describe_logprobs(found), "refusal": None},
            **self.extend_choice(message.made),
        }

    def extend_choice(self, made: Generation[Any]) -> dict[str, Any]:
        """Return the member `constrain` of a choice, if it has one."""
        extension = describe_text(self.call, made)
        return {} if extension is None else {"constrain": extension}

    def make_chunk(self, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """Return a chunk."""
        usage = {"usage": None} if self.shows_usage else {}
        return {**self.head, "object": "chat.completion.chunk", "choices": choices, **usage, **more}

    def make_delta(self, index: int, delta: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Return the chunk of a change to one choice."""
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None, **more}
        return self.make_chunk([choice])

    def begin_choice(self, index: int) -> dict[str, Any]:
        """Return the first chunk of a choice, with the role, and with the extensions of the whole answer.

        Its content is null where there may be calls: a message that is nothing but calls has no content, and clients
        take an empty text for the beginning of one.
        """
        content = None if self.call.plan.tools else ""
        chunk = self.make_delta(index, {"role": "assistant", "content": content, "refusal": None})
        extension = describe_call_statistics(self.call, ())
        return {**chunk, "constrain": extension} if extension and not index else chunk

    def describe_parts(
        self, index: int, parts: Sequence[Part], logprobs: Sequence[TokenLogprob] | None
    ) -> list[dict[str, Any]]:
        """Return the chunks of parts. Log-probabilities are in the first chunk, or in one of their own."""
        deltas = [self.describe_part(index, part) for part in parts]
        if not logprobs:
            return [self.make_delta(index, delta) for delta in deltas]
        shown = {"content": describe_logprobs(logprobs), "refusal": None}
        first, *rest = deltas or [{}]
        return [self.make_delta(index, first, logprobs=shown), *(self.make_delta(index, one) for one in rest)]

    def describe_part(self, index: int, part: Part) -> dict[str, Any]:
        """Return the delta of a part."""
        if part.kind == "thoughts":
            return {"reasoning_content": part.text}
        if part.kind == "content":
            self.with_content.add(index)
            return {"content": part.text}
        calls = self.calls[index]
        if part.kind == "call":
            is_custom = part.text in self.customs
            calls.append((part.call, is_custom))
            kind, empty = ("custom", "input") if is_custom else ("function", "arguments")
            call = {"id": part.call, "type": kind, kind: {"name": part.text, empty: ""}}
        else:
            is_custom = calls[-1][1]
            call = {"custom": {"input": part.text}} if is_custom else {"function": {"arguments": part.text}}
        return {"tool_calls": [{"index": len(calls) - 1, **call}]}

    def end_choice(self, index: int, made: Generation[Any]) -> dict[str, Any]:
        """Return the last chunk of a choice, with the reason why it ended, and the content if that is an empty text."""
        self.made.append(made)
        ending = find_ending(self.call, made, len(self.calls[index]))
        delta = {} if self.calls[index] or index in self.with_content else {"content": ""}
        return self.make_delta(index, delta, finish_reason=ending, **self.extend_choice(made))

    def describe_usage_chunk(self) -> dict[str, Any]:
        """Return the chunk with the numbers of tokens, which has no choices."""
        return self.make_chunk([], usage=self.describe_usage(self.made))

    def describe_usage(self, made: Sequence[Generation[Any]]) -> dict[str, Any]:
        """Return the numbers of tokens of all texts; those of thoughts if there may be any."""
        usage = describe_usage(len(self.call.prompt), sum(one.stats.tokens for one in made))
        if self.call.marks is None:
            return usage
        thoughts = sum(count_thought_tokens(self.call, one, self.vocabulary) for one in made)
        return {**usage, "completion_tokens_details": {"reasoning_tokens": thoughts}}


def describe_call_made(call: CallMade) -> dict[str, Any]:
    """Return a call in the shape of chat completions."""
    if call.is_custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.text}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}}
