"""Smart constructors: sequences and choices in normal form, without nesting, adjacent literals or repeated options."""

from __future__ import annotations

from collections.abc import Iterable

from .nodes import EMPTY, Choice, Literal, Node, Sequence

__all__ = ["flatten_choice", "flatten_sequence", "make_choice", "make_sequence"]


def flatten_sequence(node: Node) -> tuple[Node, ...]:
    """Return a node as a list of consecutive parts, with nested sequences flattened."""
    if isinstance(node, Sequence):
        return tuple(step for part in node.parts for step in flatten_sequence(part))
    return () if node == EMPTY else (node,)


def flatten_choice(node: Node) -> tuple[Node, ...]:
    """Return a node as a list of distinct options, with nested choices flattened."""
    if isinstance(node, Choice):
        return tuple(dict.fromkeys(option for part in node.options for option in flatten_choice(part)))
    return (node,)


def make_sequence(parts: Iterable[Node]) -> Node:
    """Return the concatenation of the parts, with adjacent literals merged."""
    out: list[Node] = []
    for part in (step for several in parts for step in flatten_sequence(several)):
        if out and isinstance(part, Literal) and isinstance(last := out[-1], Literal):
            out[-1] = Literal(last.data + part.data)
        else:
            out.append(part)
    return out[0] if len(out) == 1 else Sequence(tuple(out)) if out else EMPTY


def make_choice(options: Iterable[Node]) -> Node:
    """Return the choice of the distinct options."""
    distinct = tuple(dict.fromkeys(option for part in options for option in flatten_choice(part)))
    return distinct[0] if len(distinct) == 1 else Choice(distinct)
