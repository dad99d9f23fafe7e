"""Copies of earlier members, for completions in which some member must equal one (`grammar.nodes.Member.again`).

A best-first search by least lengths does not know the texts of earlier members, and would try all other texts first.
So it is given candidates as single steps: between two members the earlier members, and within a member the suffix of
each earlier member that begins like it.
"""

from __future__ import annotations

from typing import NamedTuple

from ...kernels import layout as at
from ...program.least_costs import LeastCosts
from .guarded_sets import GuardedSets
from .uniqueness_queries import read_member

__all__ = ["MemberCopies", "find_copies"]

MOST_COPIES = 16
"""Most earlier members that are tried as copies, the shortest first."""


class MemberCopies(NamedTuple):
    """A separator that may come next, and the texts of earlier members that may follow it, by length.

    Texts of more than `most_bytes` bytes are no shorter than two new members.
    """

    separator: bytes
    texts: list[bytes]
    most_bytes: int


def find_copies(cache: GuardedSets, costs: LeastCosts, number: int, most_bytes: int) -> MemberCopies | None:
    """Return the copies that may follow a set, where some member must equal an earlier one; None elsewhere.

    `most_bytes` is the longest useful suffix of a copy, for a set within a member.
    """
    record = cache.arrays[at.SETS][number * at.SET_W : number * at.SET_W + 4].tolist()
    first, count = record[at.SET_FIRST], record[at.SET_COUNT]
    if record[at.SET_FLAGS] & at.HAS_CANDIDATES:
        end, candidates, *_ = cache.arrays[at.CONFIGS][5 * (first + count) : 5 * (first + count + 1)].tolist()
        return MemberCopies(b"", _sort_texts(_find_suffixes(cache, end, candidates)), most_bytes)
    for pc, q, _, register, _ in cache.arrays[at.CONFIGS][5 * first : 5 * (first + count)].reshape(-1, 5).tolist():
        if q >= 0 and costs.code[pc] != at.LEAF:
            continue
        separator, cell = _read_separator(costs, pc)
        least = _least_member_length(costs, cell) if cell else None
        if least is not None:
            return MemberCopies(separator, _sort_texts(_member_texts(cache, register)), 2 * least + len(separator))
    return None


def _sort_texts(texts: set[bytes]) -> list[bytes]:
    """Return the shortest texts, at most MOST_COPIES, by length."""
    return sorted(texts, key=lambda text: (len(text), text))[:MOST_COPIES]


def _find_suffixes(cache: GuardedSets, end: int, candidates: int) -> set[bytes]:
    """Return the non-empty suffixes of earlier members that begin like a member that is being written.

    `candidates` is the list of the members that are being written, `end` the text written so far.
    """
    names, suffixes = cache.arrays[at.NAMES], set[bytes]()
    while candidates != at.NO_CANDIDATES:
        candidates, register = names[3 * candidates : 3 * candidates + 2].tolist()
        members, start = names[3 * register : 3 * register + 2].tolist()
        written = read_member(cache, end, start)
        suffixes.update(text[len(written) :] for text in _member_texts(cache, members) if text.startswith(written))
    return suffixes - {b""}


def _read_separator(costs: LeastCosts, pc: int) -> tuple[bytes, int]:
    """Return the literal bytes from an instruction up to a PASS, without white space, and the rule cell of the PASS.

    The cell is 0 if another instruction comes first.
    """
    code, separator = costs.code, bytearray()
    while code[pc] < 256 or (code[pc] == at.LEAF and costs.leaf(code[pc + 1], code[pc + 2]) == 0):
        if code[pc] < 256:
            separator.append(code[pc])
        pc += 1 if code[pc] < 256 else at.LENGTHS[at.LEAF - 256]
    return bytes(separator), code[pc + 1] if code[pc] == at.PASS else 0


def _least_member_length(costs: LeastCosts, cell: int) -> int | None:
    """Return the least bytes of the member with which a rule begins.

    Return None if the rule does not begin with a member, or the member need not equal an earlier one.
    """
    costs.ensure(cell)
    code, pc = costs.code, costs.code[cell]
    if code[pc] != at.MEMBER:
        return None
    end = pc + at.LENGTHS[at.MEMBER - 256] + at.LENGTHS[at.CALL - 256]
    return costs.least[code[pc + 3]] if code[end] == at.MEMBER_END and code[end + 1] else None


def _member_texts(cache: GuardedSets, members: int) -> set[bytes]:
    """Return the texts of a list of members."""
    names, texts = cache.arrays[at.NAMES], set[bytes]()
    while members > at.UNKNOWN_MEMBERS:
        register, end = names[3 * members : 3 * members + 2].tolist()
        members, start = names[3 * register : 3 * register + 2].tolist()
        texts.add(read_member(cache, end, start))
    return texts
