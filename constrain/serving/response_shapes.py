"""Responses in the shape of OpenAI's: the object, which grows item by item, and the events that say so.

created, in_progress
  for each item    output_item.added, [content_part.added,] deltas, done, [content_part.done,] output_item.done
completed | incomplete | failed
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from ..generation.generation_result import Generation
from ..vocabulary.vocabulary import Vocabulary
from .answer_call import AnswerCall
from .answer_message import describe_call_statistics, describe_text, find_ending
from .answer_reader import Part
from .thought_tokens import count_thought_tokens
from .token_logprobs import TokenLogprob, describe_logprobs

__all__ = ["ResponseShape"]

ECHOED = ("instructions", "max_output_tokens", "metadata", "temperature", "top_p", "user", "reasoning", "top_logprobs")
"""Members of the request that the answer repeats."""
Event = dict[str, Any]


class ResponseShape:
    """One answer. body: the request. response: the answer so far."""

    def __init__(self, model: str, call: AnswerCall, body: dict[str, Any], vocabulary: Vocabulary) -> None:
        self.call, self.vocabulary, self.number = call, vocabulary, 0
        self.customs = {tool.name for tool in call.plan.customs}
        self.response: dict[str, Any] = {
            "id": f"resp_{uuid4().hex}", "object": "response", "created_at": int(time.time()), "status": "in_progress",
            "model": model, "output": [], "error": None, "incomplete_details": None, "usage": None,
            "parallel_tool_calls": body.get("parallel_tool_calls") is not False, "previous_response_id": None,
            "tool_choice": body.get("tool_choice") or "auto", "tools": body.get("tools") or [],
            "text": body.get("text") or {"format": {"type": "text"}}, "truncation": "disabled", "store": False,
            "background": False, **{name: body.get(name) for name in ECHOED},
        }  # fmt: skip
        self.item: WritingItem | None = None
        self.logprobs: list[dict[str, Any]] = []

    def make_event(self, kind: str, **more: Any) -> Event:
        """Return the next event."""
        event = {"type": f"response.{kind}", "sequence_number": self.number, **more}
        self.number += 1
        return event

    def begin(self) -> Iterator[Event]:
        """Yield the events at the start."""
        extension = describe_call_statistics(self.call, ())
        if extension:
            self.response["constrain"] = extension
        yield self.make_event("created", response=dict(self.response))
        yield self.make_event("in_progress", response=dict(self.response))

    def add(self, parts: Sequence[Part], logprobs: Sequence[TokenLogprob] | None) -> Iterator[Event]:
        """Yield the events of parts of the answer, and of the items that begin and end with them."""
        self.logprobs += describe_logprobs(logprobs or ())
        for part in parts:
            kind = self.find_kind(part)
            if part.kind == "call" or self.item is None or self.item.kind != kind:
                yield from self.end_item()
                self.item = WritingItem(kind, part, len(self.response["output"]))
                yield self.make_event(
                    "output_item.added", output_index=self.item.index, item=self.item.describe("in_progress")
                )
                if self.item.part_kind:
                    yield self.make_event("content_part.added", **self.item.place, part=self.item.describe_content(""))
            if part.kind != "call":
                yield self.make_event(
                    f"{self.item.event}.delta", **self.item.place, delta=part.text, **self.take_logprobs()
                )
                self.item.text += part.text

    def find_kind(self, part: Part) -> str:
        """Return the type of the item that a part belongs to."""
        if part.kind in ("thoughts", "content"):
            return "reasoning" if part.kind == "thoughts" else "message"
        name = part.text if part.kind == "call" else "" if self.item is None else self.item.name
        return "custom_tool_call" if name in self.customs else "function_call"

    def take_logprobs(self) -> dict[str, Any]:
        """Return the log-probabilities that go with a piece of text, and keep them for its item."""
        if self.item is None or self.item.kind != "message":
            return {}
        found, self.logprobs = self.logprobs, []
        self.item.logprobs += found
        return {"logprobs": found}

    def end_item(self, status: str = "completed") -> Iterator[Event]:
        """Yield the events at the end of the item that is being written, and add it to the answer."""
        if self.item is None:
            return
        item, self.item = self.item, None
        more = {"logprobs": item.logprobs} if item.kind == "message" else {}
        name = {"name": item.name} if item.kind == "function_call" else {}
        yield self.make_event(f"{item.event}.done", **item.place, **{item.member: item.text}, **name, **more)
        if item.part_kind:
            yield self.make_event("content_part.done", **item.place, part=item.describe_content(item.text))
        self.response["output"].append(item.describe(status))
        yield self.make_event("output_item.done", output_index=item.index, item=item.describe(status))

    def end(self, made: Generation[Any]) -> Iterator[Event]:
        """Yield the events at the end."""
        kinds = [item["type"] for item in self.response["output"]]
        if self.item is not None:
            kinds.append(self.item.kind)
        is_cut = find_ending(self.call, made, sum(kind.endswith("_call") for kind in kinds)) == "length"
        status = "incomplete" if is_cut else "completed"
        if not is_cut and not any(kind == "message" or kind.endswith("_call") for kind in kinds):
            yield from self.add([Part("content", "")], None)  # an answer that is an empty text is a message, too
        yield from self.end_item(status)
        self.response |= {"status": status, "usage": self.describe_usage(made)}
        if is_cut:
            self.response["incomplete_details"] = {"reason": "max_output_tokens"}
        extension = {**describe_call_statistics(self.call, [made]), **(describe_text(self.call, made) or {})}
        if extension:
            self.response["constrain"] = extension
        yield self.make_event(status, response=dict(self.response))

    def fail(self, error: dict[str, Any]) -> Event:
        """Return the event of an error."""
        self.response |= {
            "status": "failed", "error": {"code": "server_error", "message": error["message"]}
        }  # fmt: skip
        return self.make_event("failed", response=dict(self.response))

    def interrupt(self, body: dict[str, Any]) -> Event:
        """Return the event by which a stream is ended from outside, given the body of an error.

        The event has the members of the error, as OpenAI's type says, and its `error`, by which clients know that they
        must raise it.
        """
        error = body["error"]
        members = {name: error[name] for name in ("code", "message", "param")}
        return {"type": "error", "sequence_number": self.number, **members, "error": error}

    def describe_usage(self, made: Generation[Any]) -> dict[str, Any]:
        """Return the numbers of tokens."""
        prompt, written = len(self.call.prompt), made.stats.tokens
        return {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": count_thought_tokens(self.call, made, self.vocabulary)},
            "total_tokens": prompt + written,
        }


PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
EVENTS = {
    "message": ("output_text", "text", "output_text"),
    "reasoning": ("reasoning_text", "text", "reasoning_text"),
    "function_call": ("function_call_arguments", "arguments", ""),
    "custom_tool_call": ("custom_tool_call_input", "input", ""),
}
"""For each type of item: the name of its events, the member with its text, and the type of its content part."""


class WritingItem:
    """An item of an answer while it is written."""

    def __init__(self, kind: str, part: Part, index: int) -> None:
        self.kind, self.index = kind, index
        self.id = f"{PREFIXES[kind]}_{uuid4().hex}"
        self.name, self.call = (part.text, part.call) if part.kind == "call" else ("", "")
        self.event, self.member, self.part_kind = EVENTS[kind]
        self.text = ""
        self.logprobs: list[dict[str, Any]] = []

    @property
    def place(self) -> dict[str, Any]:
        """Where an event belongs."""
        content = {"content_index": 0} if self.part_kind else {}
        return {"item_id": self.id, "output_index": self.index, **content}

    def describe_content(self, text: str) -> dict[str, Any]:
        """Return the content part of a message or of reasoning."""
        if self.kind == "reasoning":
            return {"type": self.part_kind, "text": text}
        return {"type": self.part_kind, "text": text, "annotations": [], "logprobs": list(self.logprobs)}

    def describe(self, status: str) -> dict[str, Any]:
        """Return the item."""
        item: dict[str, Any] = {"id": self.id, "type": self.kind, "status": status}
        if self.part_kind:
            item["content"] = [self.describe_content(self.text)] if status != "in_progress" else []
            return {**item, "role": "assistant"} if self.kind == "message" else {**item, "summary": []}
        return {**item, "call_id": self.call, "name": self.name, self.member: self.text}
