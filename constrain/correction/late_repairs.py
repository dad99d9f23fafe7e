"""Repairs of errors that show late: keys of JSON objects that are required, and missing or misspelt.

A misspelt key may be valid as an undeclared one. That the object lacks a required key is seen at its end, thousands of
characters later. What is missing is spelt in the completion of the text, and a key of the text that is similar to it is
probably the one that was meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..base.work import spend_work
from .alignment import INSERT, cost_step
from .character_graph import CharacterGraph
from .edits import count_edits
from .repair_path import NODE_WORK, PathNode

__all__ = ["list_late_repairs"]

KEY = re.compile(r'"((?:[^"\\\n]|\\.){0,200}+)"(?=\s*:)')
BEFORE = 8192
"""Characters before the refused one in which keys are compared with those that are missing."""
LONG = 6
"""Characters of a name that is similar to keys with two edits; a shorter one is similar to those with one."""
INSERTED = 48
"""Characters of a completion that are inserted."""


def list_late_repairs(graph: CharacterGraph, text: str, refused: PathNode) -> Iterator[PathNode]:
    """Yield the ends of paths that insert the first characters of a completion after `refused`, where the text is
    refused, or write a key before it as one that is missing there.
    """
    completion = graph.complete(refused.state)
    state: int | None = refused.state
    for length, character in enumerate(completion[:INSERTED], 1):
        state = None if state is None else graph.follow(state, character)
        if state is None:
            break
        yield PathNode(refused.cost + INSERT * length, refused.read, state, refused, "", completion[:length])
    yield from list_key_repairs(graph, text, refused, len(text))


def list_key_repairs(graph: CharacterGraph, text: str, refused: PathNode, before: int) -> Iterator[PathNode]:
    """Yield the ends of paths to where the text is refused on which one or more keys in its first `before` characters
    are written as keys that are missing.
    """
    missing = list_missing_keys(graph, refused)
    later: list[PathNode] = []
    node: PathNode | None = refused if missing else None
    while node is not None and node.read >= refused.read - BEFORE:
        found = KEY.match(text, node.read, before) if text.startswith('"', node.read) else None
        for name in missing if found is not None else ():
            if found is not None and is_similar(found[1], name):
                steps = [one for one in reversed(later) if one.read > found.end(1)]
                end = follow_steps(graph, rewrite_text(graph, node, found[1], name), steps)
                if end is not None and name not in list_missing_keys(graph, end):
                    yield end
                    yield from list_key_repairs(graph, text, end, node.read)
        later.append(node)
        node = node.parent


def list_missing_keys(graph: CharacterGraph, node: PathNode) -> list[str]:
    """Return the keys in the completion of the text after a node, each once, as they are spelt."""
    return list(dict.fromkeys(KEY.findall(graph.complete(node.state))))


def is_similar(key: str, name: str) -> bool:
    """Return whether few edits lead from a key to another name."""
    return 0 < count_edits(key, name) <= (1 if len(name) < LONG else 2)


def follow_steps(graph: CharacterGraph, node: PathNode | None, steps: list[PathNode]) -> PathNode | None:
    """Return the end of a path with the steps that led to other nodes; None if one is refused."""
    spend_work(NODE_WORK * (1 + len(steps)), "the repair of a text")
    for step in steps:
        if node is None:
            return None
        state: int | None = node.state
        for character in step.new:
            state = None if state is None else graph.follow(state, character)
        if state is None:
            return None
        node = PathNode(node.cost + cost_step(step.old, step.new), step.read, state, node, step.old, step.new)
    return node


def rewrite_text(graph: CharacterGraph, node: PathNode, old: str, new: str) -> PathNode | None:
    """Return the end of a path that keeps the quotation mark after a node and writes `new` in place of `old`; None if
    it is refused.
    """
    for before, after in [('"', '"'), *align_texts(old, new)]:
        state = graph.follow(node.state, after) if after else node.state
        if state is None:
            return None
        node = PathNode(node.cost + cost_step(before, after), node.read + len(before), state, node, before, after)
    return node


def align_texts(old: str, new: str) -> list[tuple[str, str]]:
    """Return the steps of a cheapest alignment of two short texts, as in Alignment."""
    if not old or not new:
        return [(character, "") for character in old] + [("", character) for character in new]
    if old[0] == new[0]:
        return [(old[0], new[0]), *align_texts(old[1:], new[1:])]
    first = {
        count_edits(old[1:], new): (old[0], "", old[1:], new),
        count_edits(old, new[1:]): ("", new[0], old, new[1:]),
        count_edits(old[1:], new[1:]): (old[0], new[0], old[1:], new[1:]),
    }
    before, after, rest, others = first[min(first)]
    return [(before, after), *align_texts(rest, others)]
