"""`AnswerReader`: divides the text that a model writes into thoughts, content and tool calls, while it is written.

    text -> ThoughtReader -> CallReader -> Part, Part, ...

A tool call begins with a text that contains its name (its head) and is followed by JSON arguments, or by the input of a
custom tool. Both are passed on as they are written. The same reader is used for finished answers, so that an answer is
the same whether it is streamed or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from uuid import uuid4

from ..dialogue import tool_calls
from ..dialogue.custom_tools import CLOSE, OPEN
from ..dialogue.harmony import HARMONY
from .call_formats import CALL_FORMATS, CallFormat
from .tool_requests import ToolPlan

__all__ = ["AnswerReader", "Part", "find_held"]

Kind = Literal["thoughts", "content", "call", "arguments", "input"]
JSON_KINDS = {"{": 1, "[": 1, "}": -1, "]": -1}


@dataclass(frozen=True)
class Part:
    """A piece of an answer.

    Attributes
    ----------
    kind : str
        "thoughts", "content": text. "call": a call begins, text is the name of its tool. "arguments", "input": text of
        the latest call, JSON for a function tool and the input for a custom one.
    text : str
    call : str
        The id of the call.
    """

    kind: Kind
    text: str
    call: str = ""


def find_held(text: str, marks: Iterable[str]) -> int:
    """Return the length of the longest end of a text with which one of the marks may begin."""
    held = 0
    for mark in marks:
        for size in range(min(len(mark) - 1, len(text)), held, -1):
            if text.endswith(mark[:size]):
                held = size
                break
    return held


def make_call_id() -> str:
    """Return a new id of a call."""
    return f"call_{uuid4().hex[:24]}"


class AnswerReader:
    """Reads one answer.

    Parameters
    ----------
    plan : ToolPlan
        The calls that the answer may have.
    tool_format : str
        How the model writes calls.
    thinking : tuple of str, optional
        The marks around the thoughts; the first is empty if the prompt ends with it.
    """

    def __init__(self, plan: ToolPlan, tool_format: str, thinking: tuple[str, str] | None = None) -> None:
        self.thoughts = None if thinking is None else ThoughtReader(*thinking)
        whole = tool_format not in CALL_FORMATS and plan.functions
        self.calls: CallReader | WholeReader = WholeReader(tool_format) if whole else CallReader(plan, tool_format)

    @property
    def thought_size(self) -> int | None:
        """The number of characters up to the end of the thoughts, marks included; None while it is unknown."""
        return 0 if self.thoughts is None else self.thoughts.size

    def feed(self, text: str) -> list[Part]:
        """Return the parts that a further piece of the text makes certain."""
        if self.thoughts is None:
            return self.calls.feed(text)
        thought, rest = self.thoughts.feed(text)
        return [*parts_of("thoughts", thought), *(self.calls.feed(rest) if rest else [])]

    def finish(self) -> list[Part]:
        """Return the parts that were held back until the end of the text."""
        if self.thoughts is None:
            return self.calls.finish()
        thought, rest = self.thoughts.finish()
        return [*parts_of("thoughts", thought), *self.calls.feed(rest), *self.calls.finish()]


def parts_of(kind: Kind, text: str, call: str = "") -> list[Part]:
    """Return a list of a part; an empty one for an empty text."""
    return [Part(kind, text, call)] if text else []


class ThoughtReader:
    """Splits a text into thoughts and what follows their closing mark. Without an opening mark it has no thoughts.

    size: the number of characters before what follows; None while it is unknown.
    """

    def __init__(self, open: str, close: str) -> None:
        self.open, self.close = open, close
        self.buffer = ""
        self.state = "thoughts" if not open else "start"
        self.fed = 0
        self.size: int | None = None

    def feed(self, text: str) -> tuple[str, str]:
        """Return the thoughts and the other text that a further piece makes certain."""
        thoughts, rest = self.split(text)
        self.fed += len(text)
        if self.state == "after" and self.size is None:
            self.size = self.fed - len(rest)
        return thoughts, rest

    def split(self, text: str) -> tuple[str, str]:
        """Return what `feed` does."""
        self.buffer += text
        if self.state == "start":
            if self.open.startswith(self.buffer) and len(self.buffer) < len(self.open):
                return "", ""
            is_open = self.buffer.startswith(self.open)
            self.buffer = self.buffer.removeprefix(self.open)
            self.state = "thoughts" if is_open else "after"
        if self.state == "after":
            rest, self.buffer = self.buffer, ""
            return "", rest
        before, found, after = self.buffer.partition(self.close)
        if found:
            self.buffer, self.state = "", "after"
            return before, after
        held = find_held(self.buffer, [self.close])
        cut = len(self.buffer) - held
        before, self.buffer = self.buffer[:cut], self.buffer[cut:]
        return before, ""

    def finish(self) -> tuple[str, str]:
        """Return what was held back."""
        rest, self.buffer = self.buffer, ""
        if self.size is None:
            self.size = self.fed if self.state == "thoughts" else 0
        return (rest, "") if self.state == "thoughts" else ("", rest)


class CallReader:
    """Divides a text into content and calls whose heads are known texts."""

    def __init__(self, plan: ToolPlan, tool_format: str) -> None:
        layout = CALL_FORMATS.get(tool_format, CallFormat((), ()))
        self.heads = {head: name for name in (tool.name for tool in plan.functions) for head in layout.list_heads(name)}
        self.custom = {f'{OPEN}{tool.name}">\n': tool.name for tool in plan.customs}
        self.marks = [*self.heads, *self.custom]
        self.tails = layout.tails
        self.buffer, self.call = "", ""
        self.state: Literal["content", "arguments", "input", "tail"] = "content"
        self.value = JsonEnd()
        self.tail = 0
        self.has_calls = False

    def feed(self, text: str) -> list[Part]:
        """Return the parts that a further piece of the text makes certain."""
        self.buffer += text
        return self.advance(held_back=True)

    def finish(self) -> list[Part]:
        """Return the rest."""
        parts = self.advance(held_back=False)
        if self.state == "content" and not (self.has_calls and not self.buffer.strip()):
            parts += parts_of("content", self.buffer)
            self.buffer = ""
        return parts

    def advance(self, *, held_back: bool) -> list[Part]:
        """Read the buffer as far as it is certain."""
        parts: list[Part] = []
        steps = {"content": self.read_content, "arguments": self.read_arguments, "input": self.read_input}
        while self.buffer:
            if self.state == "tail":
                if not self.skip_tail(held_back):
                    break
                continue
            more, is_done = steps[self.state](held_back)
            parts += more
            if not is_done:
                break
        return parts

    def read_content(self, held_back: bool) -> tuple[list[Part], bool]:
        """Pass content on up to the next call; return whether there is one."""
        found = [(place, -len(head), head) for head in self.marks if (place := self.buffer.find(head)) >= 0]
        if not found:
            held = find_held(self.buffer, self.marks) if held_back else 0
            cut = len(self.buffer) - held
            if self.marks:  # white space before a call is not content
                cut = len(self.buffer[:cut].rstrip())
            if not held_back and self.marks:
                return [], False
            text, self.buffer = self.buffer[:cut], self.buffer[cut:]
            return parts_of("content", text), False
        place, _, head = min(found)
        parts = parts_of("content", self.buffer[:place].rstrip())
        self.buffer = self.buffer[place + len(head) :]
        self.call, self.has_calls = make_call_id(), True
        self.state, self.value = ("input" if head in self.custom else "arguments"), JsonEnd()
        return [*parts, Part("call", self.custom.get(head) or self.heads[head], self.call)], True

    def read_arguments(self, held_back: bool) -> tuple[list[Part], bool]:
        """Pass the arguments of a call on; return whether they have ended."""
        end = self.value.find_end(self.buffer)
        text, self.buffer = (self.buffer, "") if end < 0 else (self.buffer[:end], self.buffer[end:])
        if end >= 0:
            self.state, self.tail = "tail", 0
        return parts_of("arguments", text, self.call), end >= 0

    def read_input(self, held_back: bool) -> tuple[list[Part], bool]:
        """Pass the input of a custom tool on; return whether it has ended."""
        text, found, after = self.buffer.partition(CLOSE)
        if found:
            self.buffer, self.state, self.tail = after, "tail", len(self.tails)
            return parts_of("input", text, self.call), True
        cut = len(self.buffer) - (find_held(self.buffer, [CLOSE]) if held_back else 0)
        text, self.buffer = self.buffer[:cut], self.buffer[cut:]
        return parts_of("input", text, self.call), False

    def skip_tail(self, held_back: bool) -> bool:
        """Skip what follows the arguments of a call; return whether there is more to read."""
        while self.tail < len(self.tails):
            options = self.tails[self.tail]
            if held_back and any(self.buffer != one and one.startswith(self.buffer) for one in options):
                return False
            taken = next((one for one in options if one and self.buffer.startswith(one)), "")
            self.buffer = self.buffer[len(taken) :]
            self.tail += 1
        self.state = "content"
        return True


class JsonEnd:
    """Finds the end of a JSON object or array that arrives in pieces."""

    def __init__(self) -> None:
        self.depth = 0
        self.in_string = self.is_escaped = False

    def find_end(self, text: str) -> int:
        """Return the offset after the end of the value in a further piece, or -1."""
        for place, char in enumerate(text):
            if self.is_escaped:
                self.is_escaped = False
            elif self.in_string:
                self.is_escaped, self.in_string = char == "\\", char != '"'
            elif char == '"':
                self.in_string = True
            elif char in JSON_KINDS:
                self.depth += JSON_KINDS[char]
                if self.depth == 0:
                    return place + 1
        return -1


class WholeReader:
    """Reads the formats in which a call is not recognised before it is complete; its parts come at the end."""

    def __init__(self, tool_format: str) -> None:
        self.tool_format, self.texts = tool_format, list[str]()

    def feed(self, text: str) -> list[Part]:
        """Keep a piece of the text."""
        self.texts.append(text)
        return []

    def finish(self) -> list[Part]:
        """Return the parts of the text."""
        text = "".join(self.texts)
        found = tool_calls(text, self.tool_format)
        if self.tool_format == HARMONY.name:
            parts = read_channels(text)
        else:
            parts = parts_of("content", text[: text.find(f"[{found[0].name}(")].rstrip() if found else text)
        for one in found:
            call = make_call_id()
            parts += [
                Part("call", one.name, call),
                Part("arguments", json.dumps(one.arguments, ensure_ascii=False), call),
            ]
        return parts


def read_channels(text: str) -> list[Part]:
    """Return thoughts and content of a text in harmony: its channels analysis and final."""
    parts: list[Part] = []
    for message in text.split("<|start|>"):
        head, _, written = message.partition("<|message|>")
        written = written.removesuffix("<|end|>")
        if "<|channel|>analysis" in head:
            parts += parts_of("thoughts", written)
        elif "<|channel|>final" in head or ("<|channel|>commentary" in head and "to=" not in head):
            parts += parts_of("content", written)
    return parts
