"""A suffix automaton of token sequences with occurrence counts, built online.

The automaton recognises all substrings of the sequences; its states are the classes of substrings that occur at the
same positions (Blumer et al. 1985). Appending a token takes amortised constant time, and n tokens make at most 2 n
states. Several sequences share one automaton, each with its own state of the whole sequence so far (a generalised
suffix automaton): a transition that another sequence made is reused, and split where it stands for longer substrings.

    links[s]    the state of the longest suffix of s's substrings that occurs elsewhere, too
    lengths[s]  length of the longest substring of s
    counts[s]   number of occurrences of these substrings
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["START", "SuffixAutomaton"]

START = 0
"""The state of the empty sequence."""
COUNTED = 64
"""Most states whose counts one token raises. In a text that repeats one token, each position has as many suffixes as
tokens; counts of the shortest of these are then lower bounds."""


class SuffixAutomaton:
    """All substrings of a growing set of sequences, with their counts."""

    def __init__(self) -> None:
        self.transitions: list[dict[int, int]] = [{}]
        self.links, self.lengths, self.counts = [-1], [0], [0]

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self.links)

    def append(self, last: int, token: int) -> int:
        """Append a token to the sequence whose state is `last` (`START` for a new one). Return its new state."""
        target = self.transitions[last].get(token)
        if target is not None:
            current = self.split(last, token, target)
        else:
            current = self.add_state(self.lengths[last] + 1, {}, START, 0)
            state = last
            while state >= 0 and token not in self.transitions[state]:
                self.transitions[state][token] = current
                state = self.links[state]
            if state >= 0:
                self.links[current] = self.split(state, token, self.transitions[state][token])
        self.raise_counts(current)
        return current

    def split(self, state: int, token: int, target: int) -> int:
        """Return the state of the longest substring of `state` with `token` appended: `target`, or a new state that
        takes over the shorter substrings of `target`.
        """
        length = self.lengths[state] + 1
        if self.lengths[target] == length:
            return target
        clone = self.add_state(length, dict(self.transitions[target]), self.links[target], self.counts[target])
        self.links[target] = clone
        while state >= 0 and self.transitions[state].get(token) == target:
            self.transitions[state][token] = clone
            state = self.links[state]
        return clone

    def add_state(self, length: int, transitions: dict[int, int], link: int, count: int) -> int:
        """Add a state and return its number."""
        self.transitions.append(transitions)
        self.links.append(link)
        self.lengths.append(length)
        self.counts.append(count)
        return len(self.links) - 1

    def raise_counts(self, state: int) -> None:
        """Count one more occurrence of the substrings that end at the new token."""
        for _ in range(COUNTED):
            if state <= START:
                break
            self.counts[state] += 1
            state = self.links[state]

    def follow(self, state: int, length: int, tokens: Sequence[int]) -> tuple[int, int]:
        """Return the longest suffix of a text that is a substring, as its state and length, after further tokens.

        state, length: the longest suffix before these tokens. Its state may have been split since.
        """
        while state > START and self.lengths[self.links[state]] >= length:
            state = self.links[state]
        for token in tokens:
            while state >= 0 and token not in self.transitions[state]:
                state = self.links[state]
                length = self.lengths[state] if state >= 0 else 0
            if state < 0:
                state, length = START, 0
            else:
                state, length = self.transitions[state][token], length + 1
        return state, length

    def suffixes(self, state: int, length: int) -> Iterator[tuple[int, int]]:
        """Yield the state and length of ever shorter suffixes, `length` tokens of `state` first, the empty one last."""
        while state >= 0:
            if length > (self.lengths[self.links[state]] if state else -1):
                yield state, length
            state = self.links[state]
            length = min(length, self.lengths[state])
