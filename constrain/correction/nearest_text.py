"""The nearest text of a language, by least edits: error-correcting parsing over the states of a constraint.

A node of the search is (characters of the text that are read, state of the constraint). Keeping a character costs
nothing; inserting, deleting and replacing one are an edit each (Levenshtein 1966). Among paths of equally many edits
the one that keeps most of the original is cheaper: insertions and deletions before replacements. The cheapest path
from (0, start) to the end of the text in a final state is the nearest text (Wagner and Seiferas 1978 for finite
automata; Aho and Peterson 1972 for context-free languages). As states with equal futures are one node, this holds for
every constraint.

Two searches share the work:

    search_beam      fast and approximate: the best few states around each error. Its distance is an upper bound
    search_nearest   Dijkstra's algorithm, exact: ends with the nearest text, or when its budget of nodes is used up.
                     Every distance below the one it has reached is then excluded, which gives a lower bound. So
                     does a partial state of the graph: what it leaves out takes one more edit there at least
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from ..base.errors import LimitError
from ..base.work import spend_work
from .character_graph import CharacterGraph

__all__ = ["Alignment", "NearestSearch", "search_beam", "search_nearest"]

WIDTH = 24
"""States that the beam keeps at each position."""
INSERTED = 3
"""Characters that the beam inserts at one position, besides forced text."""
NODE_WORK = 20
TRACK_WORK = 10
"""Units of work of a node of the exact search, and of a path of the beam (`constrain.base.work`)."""
BEFORE = 24
"""Characters before a refused one at which the beam begins."""
SETTLED = 24
"""Characters that the best path keeps in a row when the beam ends."""
EDIT = 1 << 32
"""The cost of one edit; what is added to it decides between paths of equally many edits."""
INSERT, DELETE, REPLACE, REQUOTE = EDIT + 2, EDIT + 2, EDIT + 3, EDIT + 1
QUOTES = frozenset("'\"`‘’“”„«»")
"""One quotation mark in place of another is the likeliest mistake of a text that was meant to be JSON."""
Node = tuple[int, int]


class Alignment(NamedTuple):
    """A valid text aligned with the original.

    cost: `EDIT` for each edit, and less than that in all for their kinds. steps: pairs of an original character and the
    one in its place, "" for none.
    """

    cost: int
    steps: tuple[tuple[str, str], ...]

    @property
    def distance(self) -> int:
        """Number of edits."""
        return self.cost // EDIT

    @property
    def text(self) -> str:
        """The valid text."""
        return "".join(new for _, new in self.steps)


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
        try:
            spend_work(NODE_WORK, "the repair of a text")
            steps = list(list_steps(graph, text, (read, state)))
        except LimitError:  # what is known of the distance so far is a result
            return NearestSearch(None, min(cost, complete_below) // EDIT)
        for more, old, new, node in steps:
            total = cost + more
            if total < costs.get(node, below):
                costs[node] = total
                origins[node] = (read, state), old, new
                heappush(queue, (total, -node[0], node[1]))  # of equal costs, those that have read most
        if graph.is_partial(state):
            complete_below = min(complete_below, cost + EDIT)
    return NearestSearch(None, complete_below // EDIT)


def list_steps(graph: CharacterGraph, text: str, node: Node) -> Iterator[tuple[int, str, str, Node]]:
    """Yield the steps from a node as (cost, original character, new character, node)."""
    read, state = node
    old = text[read : read + 1]
    if old:
        kept = graph.follow(state, old)
        if kept is not None:
            yield 0, old, old, (read + 1, kept)
        yield DELETE, old, "", (read + 1, state)
    for new, after in graph.list_alternatives(state):
        if old:
            yield cost_replacement(old, new), old, new, (read + 1, after)
        yield INSERT, "", new, (read, after)


def cost_replacement(old: str, new: str) -> int:
    """Return the cost of one character in place of another."""
    return REQUOTE if old in QUOTES and new in QUOTES else REPLACE


def read_path(origins: dict[Node, tuple[Node, str, str]], node: Node) -> tuple[tuple[str, str], ...]:
    """Return the steps that led to a node."""
    steps = []
    while node in origins:
        node, old, new = origins[node]
        steps.append((old, new))
    return tuple(reversed(steps))


class Track(NamedTuple):
    """A path of the beam: its cost, its state, and its steps as a linked list from the last one."""

    cost: int
    state: int
    steps: tuple[object, str, str] | None

    def extend(self, more: int, state: int, old: str, new: str) -> Track:
        """Return the path with one more step."""
        return Track(self.cost + more, state, (self.steps, old, new))


def search_beam(graph: CharacterGraph, text: str, width: int = WIDTH) -> Alignment:
    """Return a valid text near the original: the best path that keeps `width` states at each position.

    Where the text is valid, it is only followed. The beam begins BEFORE characters before one that is refused, and ends
    when the best path has kept SETTLED characters in a row. At the end of the text the shortest completion is appended.
    """
    read, tracks = 0, [Track(0, 0, None)]
    while read < len(text):
        path = follow_text(graph, text, read, tracks[0])
        if len(path) == len(text) - read + 1:
            tracks = [path[-1]]
            break
        refused = read + len(path) - 1
        read += max(0, len(path) - 1 - BEFORE)
        tracks = [path[max(0, len(path) - 1 - BEFORE)]]
        while read < len(text) and not (read > refused and is_settled(tracks[0])):
            tracks = extend_tracks(graph, tracks, text, read, width)
            read += 1
        if read < len(text):
            tracks = tracks[:1]
    return min((close_track(graph, track) for track in tracks), key=lambda alignment: alignment.cost)


def follow_text(graph: CharacterGraph, text: str, start: int, track: Track) -> list[Track]:
    """Return a path, and the paths that keep one, two ... characters more, up to one that is refused."""
    path = [track]
    for read in range(start, len(text)):
        after = graph.follow(path[-1].state, text[read])
        if after is None:
            break
        path.append(path[-1].extend(0, after, text[read], text[read]))
    return path


def is_settled(track: Track) -> bool:
    """Return whether the last SETTLED characters of a path were kept."""
    linked: object = track.steps
    for _ in range(SETTLED):
        if not isinstance(linked, tuple):
            return False
        linked, old, new = linked
        if old != new:
            return False
    return True


def extend_tracks(graph: CharacterGraph, tracks: list[Track], text: str, read: int, width: int) -> list[Track]:
    """Return the best paths that have read one character more, the best first."""
    old, left = text[read], len(text) - read
    tracks = prune_tracks(graph, insert_characters(graph, tracks), left, width)
    following: list[Track] = []
    for track in tracks:
        kept = graph.follow(track.state, old)
        if kept is not None:
            following.append(track.extend(0, kept, old, old))
        following.append(track.extend(DELETE, track.state, old, ""))
        following += [
            track.extend(cost_replacement(old, new), after, old, new)
            for new, after in graph.list_alternatives(track.state)
        ]
    spend_work(TRACK_WORK * len(following), "the repair of a text")
    return prune_tracks(graph, following, left - 1, width)


def insert_characters(graph: CharacterGraph, tracks: list[Track]) -> list[Track]:
    """Return the paths, and those with up to INSERTED characters, or with forced text, inserted after them."""
    found = list(tracks)
    latest = tracks
    for _ in range(INSERTED):
        latest = [
            track.extend(INSERT, after, "", new)
            for track in keep_cheapest(latest)
            for new, after in graph.list_alternatives(track.state)
        ]
        latest = keep_cheapest(latest)[: 4 * WIDTH]
        found += latest
    for track in tracks:
        forced = track
        for new in graph.list_forced(track.state):
            after = graph.follow(forced.state, new)
            if after is None:
                break
            forced = forced.extend(INSERT, after, "", new)
        found.append(forced)
    return keep_cheapest(found)


def keep_cheapest(tracks: list[Track]) -> list[Track]:
    """Return the cheapest path to each state."""
    best: dict[int, Track] = {}
    for track in tracks:
        if track.state not in best or track.cost < best[track.state].cost:
            best[track.state] = track
    return list(best.values())


def prune_tracks(graph: CharacterGraph, tracks: list[Track], left: int, width: int) -> list[Track]:
    """Return the best paths to different states: by cost, and by how much longer than the rest of the text (`left`
    characters) their completions are.
    """
    cheap = sorted(keep_cheapest(tracks), key=lambda track: (track.cost, track.state))[: 4 * width]

    def estimate(track: Track) -> tuple[int, int]:
        return track.cost + INSERT * max(0, len(graph.complete(track.state)) - left), track.state

    return sorted(cheap, key=estimate)[:width]


def close_track(graph: CharacterGraph, track: Track) -> Alignment:
    """Return the alignment of a path at the end of the text, with its completion appended."""
    completion = graph.complete(track.state)
    steps: list[tuple[str, str]] = []
    linked: object = track.steps
    while isinstance(linked, tuple):
        linked, old, new = linked
        steps.append((old, new))
    return Alignment(track.cost + INSERT * len(completion), (*reversed(steps), *(("", new) for new in completion)))
