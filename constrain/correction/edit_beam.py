"""A valid text near an invalid one, fast and approximate: errors are repaired one by one.

Where the text is refused, a window around that position is searched by increasing numbers of edits. A level of the
search holds the nodes (characters read, state) that a number of edits leads to, together with those that the text
itself leads to from there without an edit. The text is followed to where it is refused again before anything else is
tried, so that a level costs as much as its edits, not as its characters (furthest-reaching paths; Ukkonen 1985, Myers
1986). Of each level the nodes that have read most are edited. The search ends when the text has been followed for some
characters beyond the error. Of the repairs with equally many edits, that one is taken from which the rest of the text
can be followed furthest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from ..base.work import spend_work
from .alignment import EDIT, INSERT, Alignment, list_steps
from .character_graph import CharacterGraph
from .late_repairs import list_late_repairs
from .repair_path import NODE_WORK, PathNode, follow_text, read_steps, rewind_path

__all__ = ["search_beam"]

WIDTH = 12
"""Nodes of a level that are edited, if the window needs many edits."""
WIDER = (64, 16, 4)
"""How many times as many nodes are edited in the first levels, where most errors are repaired."""
BEFORE = 48
"""Characters before a refused one at which a window begins."""
SETTLED = 24
"""Characters after a refused one that are read when a window ends."""
PATIENCE = 8
"""Levels after which only what late repairs lead to is searched further, if there are any."""
CHOICES = 6
"""Repairs of a window from which the rest of the text is followed."""


def search_beam(graph: CharacterGraph, text: str, width: int = WIDTH) -> Alignment:
    """Return a valid text near the original. Its distance is an upper bound of that of the nearest text.

    Parameters
    ----------
    graph : CharacterGraph
        The language.
    text : str
        The original.
    width : int
        How many nodes of a level are edited at least.

    Returns
    -------
    Alignment

    Raises
    ------
    LimitError
        If the active budget of work does not suffice.
    """
    node = PathNode(0, 0, 0, None, "", "")
    while not node.is_closed:
        *_, node = follow_text(graph, text, node, len(text))
        if node.read == len(text) and graph.is_final(node.state):
            break
        node = repair_error(graph, text, node, width)
    return Alignment(node.cost, tuple(read_steps(node)))


def repair_error(graph: CharacterGraph, text: str, refused: PathNode, width: int) -> PathNode:
    """Return the end of a path beyond the node after which the text is refused: by fewest edits of the last BEFORE
    characters, as far as the beam sees; and of these the one that leads furthest.
    """
    goal = refused.read + SETTLED
    late = list(list_late_repairs(graph, text, refused))
    levels = group_levels([*rewind_path(refused, BEFORE), *late])
    costs: dict[tuple[int, int], int] = {}
    for number in count():
        if number == PATIENCE and (rest := [node for node in late if node.cost // EDIT >= min(levels)]):
            levels, costs = group_levels(rest), {}  # so that the nodes are edited, though cheaper paths lead to them
        level = min(levels)
        nodes = follow_level(graph, text, levels.pop(level), goal, costs)
        found = [node for node in nodes if node.is_closed or node.read >= goal]
        if found:
            return choose_repair(graph, text, found)
        most = width * WIDER[number] if number < len(WIDER) else width
        for node in sorted(nodes, key=lambda node: (-node.read, node.cost))[:most]:
            for after in edit_node(graph, text, node):
                levels.setdefault(after.cost // EDIT, []).append(after)
    raise AssertionError("unreachable: a level always has a node that deletes the next character or completes the text")


def group_levels(nodes: Iterable[PathNode]) -> dict[int, list[PathNode]]:
    """Return nodes by their numbers of edits."""
    levels: dict[int, list[PathNode]] = {}
    for node in nodes:
        levels.setdefault(node.cost // EDIT, []).append(node)
    return levels


def follow_level(
    graph: CharacterGraph, text: str, starts: Iterable[PathNode], goal: int, costs: dict[tuple[int, int], int]
) -> list[PathNode]:
    """Return the nodes of a level: its starts, and what follows from them, each once.

    costs: the least cost of each node of the levels so far, which is brought up to date.
    """
    found: dict[tuple[int, int], PathNode] = {}
    closed: list[PathNode] = []
    for start in sorted(starts, key=lambda node: node.cost):
        if start.is_closed:
            closed.append(start)
            continue
        for node in follow_text(graph, text, start, min(goal, len(text))):
            key = node.read, node.state
            if costs.get(key, node.cost + 1) <= node.cost:
                break
            costs[key], found[key] = node.cost, node
            if node.read == len(text) and graph.is_final(node.state):
                closed.append(node._replace(is_closed=True))
    spend_work(NODE_WORK * (1 + len(found)), "the repair of a text")
    return [*closed, *found.values()]


def edit_node(graph: CharacterGraph, text: str, node: PathNode) -> Iterator[PathNode]:
    """Yield the nodes after each edit of one character, and after the insertion of what completes the text."""
    for more, old, new, read, state in list_steps(graph, text, node.read, node.state):
        yield PathNode(node.cost + more, read, state, node, old, new)
    if node.read == len(text):
        completion = graph.complete(node.state)
        yield PathNode(node.cost + INSERT * len(completion), node.read, node.state, node, "", completion, True)


def choose_repair(graph: CharacterGraph, text: str, found: list[PathNode]) -> PathNode:
    """Return the end of a cheapest repair; of several, that which leads furthest."""
    closed = [node for node in found if node.is_closed]
    if closed:
        return min(closed, key=lambda node: node.cost)
    cheapest = sorted(found, key=lambda node: node.cost)[:CHOICES]
    if len(cheapest) == 1:
        return cheapest[0]
    ends: list[PathNode] = []
    for node in cheapest:
        *_, last = follow_text(graph, text, node, len(text))
        spend_work(NODE_WORK * (1 + last.read - node.read), "the repair of a text")
        ends.append(last)
        if last.read == len(text) and graph.is_final(last.state):
            break
    return max(ends, key=lambda node: (node.read, graph.is_final(node.state), -node.cost))
