"""The nearest text of a language, by least edits: error-correcting parsing over the states of a constraint.

A node of the search is (characters of the text that are read, state of the constraint). Keeping a character costs
nothing; inserting, deleting and replacing one are an edit each (Levenshtein 1966). Among paths of equally many edits
the one that keeps most of the original is cheaper: insertions and deletions before replacements. The cheapest path
from (0, start) to the end of the text in a final state is the nearest text (Wagner and Seiferas 1978 for finite
automata; Aho and Peterson 1972 for context-free languages). As states with equal futures are one node, this holds for
every constraint.

The search, by Dijkstra's algorithm, ends with the nearest text, or when its budget of nodes is used up. Every distance
below the one that it has reached is then excluded, which gives a lower bound. So does a partial state of the graph:
what it leaves out takes one more edit there at least. An upper bound, which `edit_beam` finds first, saves the last and
largest level of the search: a node from which one more edit costs too much is followed along the text only.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from ..base.errors import LimitError
from ..base.work import spend_work
from .alignment import EDIT, Alignment, list_steps
from .character_graph import CharacterGraph

__all__ = ["NearestSearch", "search_nearest"]

NODE_WORK = 20
"""Units of work of a node (`constrain.base.work`)."""
Node = tuple[int, int]


class NearestSearch(NamedTuple):
    """What `search_nearest` found. found: None if there is nothing better. at_least: a lower bound of the distance."""

    found: Alignment | None
    at_least: int


def search_nearest(graph: CharacterGraph, text: str, most_nodes: int, below: int) -> NearestSearch:
    """Search for the nearest text with Dijkstra's algorithm.

    Parameters
    ----------
    graph : CharacterGraph
        The language.
    text : str
        The original.
    most_nodes : int
        Maximum number of nodes to expand.
    below : int
        Only texts that cost less than this are searched for.

    Returns
    -------
    NearestSearch
        With found None if there is no text of a lower cost, or the nodes or the active budget of work did not suffice.
    """
    costs: dict[Node, int] = {(0, 0): 0}
    origins: dict[Node, tuple[Node, str, str]] = {}
    queue: list[tuple[int, int, int]] = [(0, 0, 0)]
    expanded, complete_below = 0, below  # no text that costs less than the latter was passed over
    while queue:
        cost, unread, state = heappop(queue)
        read = -unread
        if costs[read, state] < cost:
            continue
        if read == len(text) and graph.is_final(state):
            found = Alignment(cost, read_path(origins, (read, state)))
            return NearestSearch(found, min(cost, complete_below) // EDIT)
        if expanded == most_nodes:
            return NearestSearch(None, min(cost, complete_below) // EDIT)
        expanded += 1
        is_edited = cost + EDIT < below
        try:
            spend_work(NODE_WORK, "the repair of a text")
            steps = list_following(graph, text, (read, state), is_edited)
        except LimitError:  # what is known of the distance so far is a result
            return NearestSearch(None, min(cost, complete_below) // EDIT)
        for more, old, new, node in steps:
            total = cost + more
            if total < costs.get(node, below):
                costs[node] = total
                origins[node] = (read, state), old, new
                heappush(queue, (total, -node[0], node[1]))  # of equal costs, those that have read most
        if is_edited and graph.is_partial(state):
            complete_below = min(complete_below, cost + EDIT)
    return NearestSearch(None, complete_below // EDIT)


def list_following(graph: CharacterGraph, text: str, node: Node, is_edited: bool) -> list[tuple[int, str, str, Node]]:
    """Return the steps from a node as (cost, original character, new character, node), without edits or with them."""
    read, state = node
    steps: list[tuple[int, str, str, Node]] = []
    kept = graph.follow(state, text[read]) if read < len(text) else None
    if kept is not None:
        steps.append((0, text[read], text[read], (read + 1, kept)))
    if is_edited:
        steps += [(cost, old, new, (to, after)) for cost, old, new, to, after in list_steps(graph, text, read, state)]
    return steps


def read_path(origins: dict[Node, tuple[Node, str, str]], node: Node) -> tuple[tuple[str, str], ...]:
    """Return the steps that led to a node."""
    steps = []
    while node in origins:
        node, old, new = origins[node]
        steps.append((old, new))
    return tuple(reversed(steps))
