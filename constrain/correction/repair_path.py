"""Paths of a search for a repair, as linked nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .character_graph import CharacterGraph

__all__ = ["NODE_WORK", "PathNode", "follow_text", "read_steps", "rewind_path"]

NODE_WORK = 4
"""Units of work of a node (`constrain.base.work`)."""


class PathNode(NamedTuple):
    """A node of a level, and the path to it.

    cost: as in Alignment. read: characters of the text that were read. parent: the node before. old, new: the
    original character and what stands in its place, as in Alignment; `new` may have several characters if `old` is "".
    is_closed: whether the text is complete.
    """

    cost: int
    read: int
    state: int
    parent: PathNode | None
    old: str
    new: str
    is_closed: bool = False


def follow_text(graph: CharacterGraph, text: str, node: PathNode, end: int) -> Iterator[PathNode]:
    """Yield a node and those after each further character that is kept, up to `end` or one that is refused."""
    yield node
    while node.read < end and not node.is_closed:
        character = text[node.read]
        after = graph.follow(node.state, character)
        if after is None:
            return
        node = PathNode(node.cost, node.read + 1, after, node, character, character)
        yield node


def rewind_path(end: PathNode, most: int) -> list[PathNode]:
    """Return the last nodes of a path, the last first: those within so many characters and since its last edit."""
    nodes, node = [end], end
    while node.parent is not None and node.old == node.new and node.parent.read >= end.read - most:
        node = node.parent
        nodes.append(node)
    return nodes


def read_steps(node: PathNode) -> list[tuple[str, str]]:
    """Return the steps of a path."""
    steps: list[tuple[str, str]] = []
    parent: PathNode | None = node
    while parent is not None:
        if parent.old:
            steps.append((parent.old, parent.new))
        else:
            steps += [("", character) for character in reversed(parent.new)]
        parent = parent.parent
    steps.reverse()
    return steps
