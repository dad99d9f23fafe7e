"""Queries of kernels about members that must differ (`kernels.unique_members`), answered from the members' texts.

    answer_is_unique     is the value of a complete member different from all earlier ones?
    answer_candidates    which earlier members may a member still become equal to, and after which bytes?
    answer_can_differ    from a set where some remain, can a value unlike all earlier ones be reached?
    answer_name_free     can the prefix of an undeclared key become a key that the object does not have yet?

Values are compared as JSON Schema does (2020-12 core, section 4.2.2), see `json_equality`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...automata.dfa import Dfa
from ...base.errors import LimitError
from ...base.json_documents import find_deeper
from ...base.options import Limits
from ...kernels import layout as at
from ...kernels.entry_points import add_guard, compute_step, extend_chain, write_text_to_buffer
from .guarded_sets import GuardedSets
from .json_equality import Value, parse_value
from .json_prefixes import parse_prefix
from .value_continuations import possible_characters
from .value_index import Candidates, ValueIndex

__all__ = ["read_member", "answer_name_free", "answer_is_unique", "answer_candidates", "answer_can_differ"]

MOST_TRIED = 5_000
"""Most sets that a search for another value expands.

Beyond that one is assumed to exist, so a Matcher may become stuck.
"""
MOST_READ = 1_000_000
"""Most bytes of members that such a search reads."""
SET_BYTES = 64
"""Bytes that one set counts in addition to its member."""
MOST_NESTING = Limits().nesting

BLANKS = b" \t\r\n"
BLANK_BITS = sum(1 << byte for byte in BLANKS)
"""BLANKS as a set of 256 bits."""
ESCAPE_BIT = 1 << 0x5C

MOST_CANDIDATES, MOST_INDEXES, MOST_SIGNATURES = 256, 16, 4_096
"""Most memoised results. Members that follow each other need only the latest ones."""
SET_WORK = 100
"""Units of work for a set that a search expands."""
MEMBER_WORK = 20
"""Units of work for a query about one member."""

_K = TypeVar("_K")
_V = TypeVar("_V")


def answer_is_unique(cache: GuardedSets, register: int, text: int) -> None:
    """Store whether the value of a complete member differs from all earlier ones.

    `register` is that of the member, `text` its end.
    """
    names = cache.arrays[at.NAMES]
    members, start = int(names[3 * register]), int(names[3 * register + 1])
    spelled = read_member(cache, text, start)
    cache.uniqueness.spend(MEMBER_WORK + len(spelled) // 16)
    cache.run(add_guard, register, text, 0, int(parse_value(spelled) not in _index_values(cache, members).values))


def answer_candidates(cache: GuardedSets, chain: int, text: int) -> None:
    """Store which members of a chain may still become equal to an earlier one, and after which bytes.

    `chain` lists the registers of the members that are being written, `text` is what is written so far.
    """
    names = cache.arrays[at.NAMES]
    registers, following = [], set[int]()
    one = chain
    while one != at.NO_CANDIDATES:
        register, one = int(names[3 * one + 1]), int(names[3 * one])
        shared = _find_candidates(cache, register, text).following
        if shared is not None:
            registers.append(register)
            following |= shared
    remaining = at.NO_CANDIDATES
    for register in reversed(registers):
        remaining = cache.run(extend_chain, remaining, register)
    guard = cache.run(add_guard, chain, text, 0, remaining)
    bits = np.zeros(256, np.uint8)
    bits[list(following)] = 1
    first = guard * at.GUARD_W + at.GUARD_BYTES
    cache.arrays[at.GUARDS][first : first + 8] = np.packbits(bits, bitorder="little").view(np.int32)


def _find_candidates(cache: GuardedSets, register: int, text: int) -> Candidates:
    """Return the earlier values that the member of a register may still become equal to."""
    memo, names = cache.uniqueness, cache.arrays[at.NAMES]
    found = memo.candidates.get((register, text))
    if found is None:
        members, start, before = int(names[3 * register]), int(names[3 * register + 1]), int(names[3 * text])
        shorter = memo.candidates.get((register, before)) if text != start else None
        spelled = read_member(cache, text, start)
        memo.spend(MEMBER_WORK + len(spelled) // 16)
        if spelled[:1].strip(BLANKS) != spelled[:1]:  # white space before a value belongs to no member
            found = Candidates(None, [])
        else:
            index = _index_values(cache, members)
            found = index.candidates(spelled, shorter.compound if shorter is not None else None, memo.spend)
        _memoise(memo.candidates, (register, text), found, MOST_CANDIDATES)
    return found


def answer_can_differ(cache: GuardedSets, start: int) -> None:
    """Mark a set by whether a member unlike all earlier ones can be reached from it (depth-first search).

    If it can, so can the sets on the way from which it was reached; if it cannot, all that the search visited.
    """
    sets, known = cache.arrays[at.SETS], cache.uniqueness.can_differ
    if len(known) > MOST_SIGNATURES:
        known.clear()
    start_signature = _make_signature(cache, start)
    if start_signature in known:
        sets[start * at.SET_W + at.SET_FLAGS] |= at.CAN_DIFFER if known[start_signature] else at.CANNOT_DIFFER
        return
    stack, visited = [(start, start)], set[tuple[object, ...]]()  # sets, each with that from which it was reached
    origins = {start: (start_signature, start)}  # the signature of each set seen, and the set from which it was reached
    can_differ = False
    bytes_read = 0
    current = start
    while stack and not can_differ and len(origins) < MOST_TRIED and bytes_read < MOST_READ:
        reached, origin = stack.pop()
        signature = start_signature if reached == start else _make_signature(cache, reached)
        if signature in visited or known.get(signature) is False:
            continue
        current = reached
        visited.add(signature)
        origins[current] = signature, origin
        if signature in known:
            can_differ = True
            break
        length = len(_outermost_text(cache, current))
        bytes_read += SET_BYTES + length
        cache.uniqueness.spend(SET_WORK + length // 4)
        undecided: list[int] = []
        for byte in _order_bytes(cache, current):
            after = cache.run(compute_step, current, byte)
            flags = int(cache.arrays[at.SETS][after * at.SET_W + at.SET_FLAGS])
            if after == at.DEAD or flags & at.CANNOT_DIFFER:
                continue
            if not flags & at.HAS_CANDIDATES or flags & at.CAN_DIFFER:
                can_differ = True
                break
            undecided.append(after)
        stack.extend((after, current) for after in reversed(undecided))
    sets = cache.arrays[at.SETS]
    if can_differ or stack:
        for one, signature in _trace_back(origins, current if can_differ else start):
            sets[one * at.SET_W + at.SET_FLAGS] |= at.CAN_DIFFER
            known[signature] = True
    else:
        known.update(dict.fromkeys(visited, False))
        for one in origins:
            sets[one * at.SET_W + at.SET_FLAGS] |= at.CANNOT_DIFFER


def _trace_back(origins: dict[int, tuple[_K, int]], number: int) -> Iterator[tuple[int, _K]]:
    """Yield a set and its signature, then those from which a search reached it, up to its start."""
    while True:
        signature, before = origins[number]
        yield number, signature
        if before == number:
            return
        number = before


def answer_name_free(cache: GuardedSets, pc: int) -> None:
    """Store whether the prefix of an undeclared key can become a key that the object does not have.

    `pc` is the address of the OTHER instruction of the class of keys.
    """
    head, code, objects = cache.arrays[at.HEAD], cache.arrays[at.CODE], cache.arrays[at.OBJECTS]
    names, spelling, state = cache.arrays[at.NAMES], int(head[at.SPELLING]), int(head[at.NAMED_IN])
    prefix = parse_prefix(b'"' + _copy_text(cache, spelling, at.SPELLED))
    block = int(code[int(objects[state]) + at.OBJ_EXCLUDED])
    offsets = code[block + at.STR_OFFSETS : block + at.STR_OFFSETS + int(code[block]) + 1].tolist()
    taken = {code[start:end].astype(np.uint8).tobytes().decode() for start, end in zip(offsets, offsets[1:])}
    name = int(objects[state + at.O_NAMES])
    while name > at.UNKNOWN_NAMES:
        taken.add(_copy_text(cache, int(names[3 * name + 1]), at.DECODED).decode())
        name = int(names[3 * name])
    dfa = cache.program.leaves[int(code[pc + 2])][0]
    assert isinstance(dfa, Dfa)
    answer = dfa.leads_beyond(prefix.text, possible_characters(prefix.pending), taken)
    cache.run(add_guard, -state - 1, spelling, pc, int(answer))


def _make_signature(cache: GuardedSets, number: int) -> tuple[object, ...]:
    """Return the signature of a set: its configurations, and the parsed prefixes of the members that are being written.

    Sets that differ only in spelling have equal signatures. Counters of white space are left out, since they affect
    only how much more white space may follow. A number that may have few values has no last state, so that it is
    described by these, its sign and what is written of it (`_describe_digits`).
    """
    sets, configs, names = cache.arrays[at.SETS], cache.arrays[at.CONFIGS], cache.arrays[at.NAMES]
    code, leaves = cache.arrays[at.CODE], cache.table.arrays[at.LEAVES]
    first, count = sets[number * at.SET_W + at.SET_FIRST : number * at.SET_W + at.SET_COUNT + 1].tolist()
    records = configs[5 * first : 5 * (first + count + 1)].reshape(-1, 5).tolist()
    text, chain, *_ = records.pop()
    starts = []
    while chain != at.NO_CANDIDATES:
        register, chain = int(names[3 * chain + 1]), int(names[3 * chain])
        starts.append(int(names[3 * register + 1]))
    configurations: list[tuple[object, ...]] = []
    is_few, is_over = set[bool](), True
    for pc, q, node, register, extra in records:
        inside: object = q
        if code[pc] == at.LEAF:
            row = q * at.LEAF_W + at.LEAF_BYTES
            if not _read_bits(leaves[row : row + 8]) & ~BLANK_BITS:
                extra = 0
            else:
                values = cache.table.few_values(q) if cache.table.is_number(q) else None
                is_few.add(values is not None)
                if values is not None:
                    inside = values
                    is_over = is_over and cache.table.is_written_out(q)
        configurations.append((pc, inside, node, register, extra))
    texts = [read_member(cache, text, start) for start in starts]
    written: object = None
    if is_few == {True} and texts:
        whole = texts[0]
        texts = [one.rstrip(b".0123456789") for one in texts]
        written = _describe_digits(whole[len(texts[0]) :], is_over)
    return frozenset(configurations), tuple(map(parse_prefix, texts)), written


def _describe_digits(written: bytes, is_over: bool) -> tuple[object, ...]:
    """Return the phase of a number without its sign, and its digits from the first that is not 0.

    A search must not take a set for one from which it was reached, unless the same values can be reached from both in
    the same way. So all digits count until no other than 0 can follow (is_over); then those after the last that is not
    0 do not.
    """
    digits = written.replace(b".", b"").lstrip(b"0")
    return written == b"0", b"." in written, written[-1:] == b".", digits.rstrip(b"0") if is_over else digits


def _read_bits(words: NDArray[np.int32]) -> int:
    """Return a set of bytes, given as 256 bits, as one integer."""
    return int.from_bytes(words.tobytes(), "little")


def _allowed_bytes(cache: GuardedSets, number: int) -> int:
    """Return a superset of the bytes that can follow a set, as bits."""
    record = cache.arrays[at.SETS][number * at.SET_W : (number + 1) * at.SET_W]
    count = int(record[at.SET_ALLOWED])
    if count > at.NARROW:
        return _read_bits(record[at.SET_NEXT : at.SET_NEXT + 8])
    return sum(1 << byte for byte in record[at.SET_BYTES : at.SET_BYTES + 2].tobytes()[:count])


def _order_bytes(cache: GuardedSets, number: int) -> Iterator[int]:
    """Yield the bytes that may follow a set, in the order in which the search tries them.

    First bytes after which the member differs from all earlier ones, then characters, escapes, and white space.
    """
    sets, configs = cache.arrays[at.SETS], cache.arrays[at.CONFIGS]
    first, count = sets[number * at.SET_W + at.SET_FIRST : number * at.SET_W + at.SET_COUNT + 1].tolist()
    guard = at.GUARD_W * int(configs[5 * (first + count) + 2]) + at.GUARD_BYTES
    keeps_candidates = _read_bits(cache.arrays[at.GUARDS][guard : guard + 8])
    allowed = _allowed_bytes(cache, number)
    for group in (allowed & ~keeps_candidates, allowed & keeps_candidates):
        for bits in (group & ~(BLANK_BITS | ESCAPE_BIT), group & ESCAPE_BIT, group & BLANK_BITS):
            while bits:
                yield (bits & -bits).bit_length() - 1
                bits &= bits - 1


def _outermost_text(cache: GuardedSets, number: int) -> bytes:
    """Return the text of the outermost member that a set is within."""
    first, count = cache.arrays[at.SETS][
        number * at.SET_W + at.SET_FIRST : number * at.SET_W + at.SET_COUNT + 1
    ].tolist()
    return _copy_text(cache, int(cache.arrays[at.CONFIGS][5 * (first + count)]), at.SPELLED)


def read_member(cache: GuardedSets, end: int, start: int) -> bytes:
    """Return the text of a member. Raise LimitError if it is nested too deeply for functions that recurse."""
    text = _copy_text(cache, end, start)
    if find_deeper(text.decode("latin-1"), MOST_NESTING) >= 0:
        raise LimitError(
            f"Members that must differ are compared up to {MOST_NESTING} levels of nesting, as Limits.nesting.",
            hint="Close some brackets, or leave out uniqueItems.",
        )
    return text


def _copy_text(cache: GuardedSets, end: int, start: int) -> bytes:
    """Return the bytes of a text between two positions."""
    length = cache.run(write_text_to_buffer, start, end)
    return cache.arrays[at.BUFFER][:length].astype(np.uint8).tobytes()


def _index_values(cache: GuardedSets, members: int) -> ValueIndex:
    """Return the index of the values of a list of members."""
    memo, names = cache.uniqueness, cache.arrays[at.NAMES]
    todo, part = [], members
    while part != at.NO_MEMBERS and part not in memo.indexes:
        todo.append(part)
        part = int(names[3 * int(names[3 * part])])
    if not todo:
        return memo.indexes[members] if members != at.NO_MEMBERS else ValueIndex()
    known = memo.indexes[part] if part != at.NO_MEMBERS else ValueIndex()
    memo.spend(MEMBER_WORK * len(todo) + len(known.values) // 16)
    index = known.copy_with(_read_value(cache, todo.pop()))
    while todo:
        index.add(_read_value(cache, todo.pop()))
    _memoise(memo.indexes, members, index, MOST_INDEXES)
    return index


def _read_value(cache: GuardedSets, members: int) -> Value:
    """Return the value of the last member of a list."""
    known = cache.uniqueness.values
    if members not in known:
        names = cache.arrays[at.NAMES]
        register, end = int(names[3 * members]), int(names[3 * members + 1])
        text = read_member(cache, end, int(names[3 * register + 1]))
        cache.uniqueness.spend(MEMBER_WORK + len(text) // 16)
        known[members] = parse_value(text)
    return known[members]


def _memoise(memo: dict[_K, _V], key: _K, value: _V, most: int) -> None:
    """Store a value in a memo of at most `most` entries, evicting the oldest one."""
    if len(memo) >= most:
        del memo[next(iter(memo))]
    memo[key] = value
