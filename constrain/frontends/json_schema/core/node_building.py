"""Small constructors of Grammar nodes that the keyword groups share."""

from __future__ import annotations

from ....grammar.nodes import EMPTY, Choice, Node, Sequence

__all__ = ["choice_of", "sequence_of"]


def sequence_of(*parts: Node) -> Node:
    """Return the concatenation of some nodes: flat, without empty parts, and without a Sequence around a single one."""
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Sequence) else () if part is EMPTY else (part,))
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def choice_of(options: list[Node]) -> Node:
    """Return the union of some nodes; the option itself if there is only one."""
    return options[0] if len(options) == 1 else Choice(tuple(options))
