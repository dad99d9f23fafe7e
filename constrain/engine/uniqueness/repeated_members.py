"""Copies of members in completions: where some member must equal an earlier one (`grammar.nodes.Member.again`).

A best-first search by least lengths does not know which texts were written, and would try all others first. Between two
members it is therefore shown the earlier ones, and inside one the rest of each that begins so, as whole steps.
"""

from __future__ import annotations

from typing import NamedTuple

from ...kernels import layout as at
from ...program.least_costs import LeastCosts
from .guarded_sets import GuardedSets
from .uniqueness_queries import read_member

__all__ = ["MemberCopies", "find_copies"]

MOST_COPIES = 16
"""Earlier members that are tried as copies, the shortest first."""


class MemberCopies(NamedTuple):
    """What may come next: a separator, then one of the texts of earlier members, by length.

    worth: a longer text than this is not shorter than two new members.
    """

    separator: bytes
    texts: list[bytes]
    worth: int


def find_copies(cache: GuardedSets, costs: LeastCosts, number: int, worth: int) -> MemberCopies | None:
    """The copies that may come after a set between two members of which one must equal another; None elsewhere.

    worth: that of the rest of a copy, inside a member.
    """
    record = cache.arrays[at.SETS][number * at.SET_W : number * at.SET_W + 4].tolist()
    first, count = record[at.SET_FIRST], record[at.SET_COUNT]
    if record[at.SET_FLAGS] & at.HAS_CANDIDATES:
        end, watched, *_ = cache.arrays[at.CONFIGS][5 * (first + count) : 5 * (first + count + 1)].tolist()
        return MemberCopies(b"", _shortest(_rests(cache, end, watched)), worth)
    for pc, q, _, register, _ in cache.arrays[at.CONFIGS][5 * first : 5 * (first + count)].reshape(-1, 5).tolist():
        if q >= 0 and costs.code[pc] != at.LEAF:
            continue
        separator, cell = _separator(costs, pc)
        least = _least_member(costs, cell) if cell else None
        if least is not None:
            return MemberCopies(separator, _shortest(_texts(cache, register)), 2 * least + len(separator))
    return None


def _shortest(texts: set[bytes]) -> list[bytes]:
    return sorted(texts, key=lambda text: (len(text), text))[:MOST_COPIES]


def _rests(cache: GuardedSets, end: int, watched: int) -> set[bytes]:
    """What is left of the earlier members that begin as one of the watched members does, up to the end of a text."""
    names, found = cache.arrays[at.NAMES], set[bytes]()
    while watched != at.NO_CANDIDATES:
        watched, register = names[3 * watched : 3 * watched + 2].tolist()
        members, start = names[3 * register : 3 * register + 2].tolist()
        begun = read_member(cache, end, start)
        found.update(text[len(begun) :] for text in _texts(cache, members) if text.startswith(begun))
    return found - {b""}


def _separator(costs: LeastCosts, pc: int) -> tuple[bytes, int]:
    """The literal bytes from an instruction to a PASS, white space left out, and the rule that it names; 0: none."""
    code, separator = costs.code, bytearray()
    while code[pc] < 256 or (code[pc] == at.LEAF and costs.leaf(code[pc + 1], code[pc + 2]) == 0):
        if code[pc] < 256:
            separator.append(code[pc])
        pc += 1 if code[pc] < 256 else at.LENGTHS[at.LEAF - 256]
    return bytes(separator), code[pc + 1] if code[pc] == at.PASS else 0


def _least_member(costs: LeastCosts, cell: int) -> int | None:
    """The least bytes of a member with which a rule begins, if an equal one may have been there; None: it does not."""
    costs.ensure(cell)
    code, pc = costs.code, costs.code[cell]
    if code[pc] != at.MEMBER:
        return None
    end = pc + at.LENGTHS[at.MEMBER - 256] + at.LENGTHS[at.CALL - 256]
    return costs.least[code[pc + 3]] if code[end] == at.MEMBER_END and code[end + 1] else None


def _texts(cache: GuardedSets, members: int) -> set[bytes]:
    """The texts of a list of members."""
    names, found = cache.arrays[at.NAMES], set[bytes]()
    while members > at.UNKNOWN_MEMBERS:
        register, end = names[3 * members : 3 * members + 2].tolist()
        members, start = names[3 * register : 3 * register + 2].tolist()
        found.add(read_member(cache, end, start))
    return found
