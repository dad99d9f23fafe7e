"""Guards: what kernels cannot know of members that must differ (`kernels.unique_members`), answered from their text.

Four questions. *Verdict*: is the value of this text new? *Watch*: a member has begun; which of those that were there
may it still become equal to, and which bytes keep that open? *Way*: from a set where that is so, can another value
still be reached? *Name*: can what is spelled of an undeclared key become one that is not there yet? Values are compared
as JSON Schema does (2020-12 core, 4.2.2): numbers by what they are, strings by their characters, objects without order.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from ...base.errors import LimitError
from ...base.json_documents import find_deeper
from ...base.options import Limits
from ...kernels import layout as at
from ...kernels.interned_names import extend_chain
from ...kernels.sets import compute_step
from ...kernels.unique_members import add_guard, copy_text
from .guarded_sets import GuardedSets
from .json_equality import Value, parse_value
from .json_prefixes import parse_prefix
from .value_continuations import possible_characters
from .value_index import Candidates, ValueIndex

__all__ = ["read_member", "answer_name_free", "answer_is_unique", "answer_candidates", "answer_can_differ"]

MOST_TRIED = 5_000
"""Sets from which a search for another value goes on. Beyond, there is taken to be one: a Matcher may then be stuck."""
MOST_READ = 1_000_000
"""Bytes of members that such a search reads, at most."""
SET_BYTES = 64
"""Bytes that one set counts for beside its member."""
MOST_NESTING = Limits().nesting

BLANKS = b" \t\r\n"
BLANK_BITS = np.array([sum(1 << byte for byte in b"\t\n\r"), 1, 0, 0, 0, 0, 0, 0], np.int32)
"""The same as 256 bits."""


MOST_CANDIDATES, MOST_INDEXES, MOST_WAYS = 256, 16, 4_096
"""Results that are remembered. Members that are written one after the other need only the last ones."""
TRIED = 100
"""Units of work for a set from which a search goes on."""
QUESTION = 20
"""Units of work for a question about one member."""

_K = TypeVar("_K")
_V = TypeVar("_V")


def answer_is_unique(cache: GuardedSets, register: int, text: int) -> None:
    """Answers whether the member of a register, ended by a text, differs from those before it."""
    names = cache.arrays[at.NAMES]
    members, start = int(names[3 * register]), int(names[3 * register + 1])
    spelled = read_member(cache, text, start)
    cache.guarded.spend(QUESTION + len(spelled) // 16)
    cache.run(add_guard, register, text, int(parse_value(spelled) not in _index(cache, members).values))


def answer_candidates(cache: GuardedSets, watched: int, text: int) -> None:
    """Answers which of the watched members may still become like one that was there, and by which bytes."""
    names = cache.arrays[at.NAMES]
    still, following = [], set[int]()
    one = watched
    while one != at.NO_CANDIDATES:
        register, one = int(names[3 * one + 1]), int(names[3 * one])
        shared = _candidates(cache, register, text).following
        if shared is not None:
            still.append(register)
            following |= shared
    left = at.NO_CANDIDATES
    for register in reversed(still):
        left = cache.run(extend_chain, left, register)
    guard = cache.run(add_guard, watched, text, left)
    bits = np.zeros(256, np.uint8)
    bits[list(following)] = 1
    first = guard * at.GUARD_W + at.GUARD_BYTES
    cache.arrays[at.GUARDS][first : first + 8] = np.packbits(bits, bitorder="little").view(np.int32)


def _candidates(cache: GuardedSets, register: int, text: int) -> Candidates:
    """The values before the member of a register that it may still become equal to."""
    memory, names = cache.guarded, cache.arrays[at.NAMES]
    found = memory.candidates.get((register, text))
    if found is None:
        members, start, before = int(names[3 * register]), int(names[3 * register + 1]), int(names[3 * text])
        shorter = memory.candidates.get((register, before)) if text != start else None
        spelled = read_member(cache, text, start)
        memory.spend(QUESTION + len(spelled) // 16)
        if spelled[:1].strip(BLANKS) != spelled[:1]:  # a member never begins with white space: it has ended unborn
            found = Candidates(None, [])
        else:
            index = _index(cache, members)
            found = index.candidates(spelled, shorter.compound if shorter is not None else None, memory.spend)
        _keep(memory.candidates, (register, text), found, MOST_CANDIDATES)
    return found


def answer_can_differ(cache: GuardedSets, start: int) -> None:
    """Marks a watched set, and those met on the way, by whether a member unlike all others can be reached."""
    sets, ways = cache.arrays[at.SETS], cache.guarded.ways
    if len(ways) > MOST_WAYS:
        ways.clear()
    first = _likeness(cache, start)
    if first in ways:
        sets[start * at.SET_W + at.SET_FLAGS] |= at.CAN_DIFFER if ways[first] else at.CANNOT_DIFFER
        return
    todo, done, tried = [start], {first}, [start]
    found = False
    read = 0
    while todo and not found and len(tried) < MOST_TRIED and read < MOST_READ:
        current = todo.pop()
        written = len(_written(cache, current))
        read += SET_BYTES + written
        cache.guarded.spend(TRIED + written // 4)
        later: list[int] = []
        for byte in _in_order(cache, current):
            after = cache.run(compute_step, current, byte)
            sets = cache.arrays[at.SETS]
            flags = int(sets[after * at.SET_W + at.SET_FLAGS])
            if after == at.DEAD or flags & at.CANNOT_DIFFER:
                continue
            if not flags & at.HAS_CANDIDATES or flags & at.CAN_DIFFER:
                found = True
                break
            later.append(after)
        for after in reversed(later):
            likeness = _likeness(cache, after)
            if ways.get(likeness):
                found = True
                break
            if likeness not in done and likeness not in ways:
                done.add(likeness)
                todo.append(after)
                tried.append(after)
    sets = cache.arrays[at.SETS]
    if found or todo:
        sets[start * at.SET_W + at.SET_FLAGS] |= at.CAN_DIFFER
        ways[first] = True
    else:
        ways.update(dict.fromkeys(done, False))
        for one in tried:
            sets[one * at.SET_W + at.SET_FLAGS] |= at.CANNOT_DIFFER


def answer_name_free(cache: GuardedSets, place: int) -> None:
    """Answers whether a name is left for what is spelled of a key of the class that OTHER at `place` takes."""
    head, code, objects = cache.arrays[at.HEAD], cache.arrays[at.CODE], cache.arrays[at.OBJECTS]
    names, spelling, state = cache.arrays[at.NAMES], int(head[at.SPELLING]), int(head[at.NAMED_IN])
    begun = parse_prefix(b'"' + _spelled(cache, spelling, at.SPELLED))
    block = int(code[int(objects[state]) + at.OBJ_EXCLUDED])
    offsets = code[block + at.STR_OFFSETS : block + at.STR_OFFSETS + int(code[block]) + 1].tolist()
    taken = {code[one:end].astype(np.uint8).tobytes().decode() for one, end in zip(offsets, offsets[1:])}
    seen = int(objects[state + at.O_NAMES])
    while seen > at.UNKNOWN_NAMES:
        taken.add(_spelled(cache, int(names[3 * seen + 1]), at.DECODED).decode())
        seen = int(names[3 * seen])
    dfa = cache.program.leaves[int(code[place + 2])][0]
    answer = dfa.leads_beyond(begun.text, possible_characters(begun.pending), taken)
    cache.run(add_guard, -state - 1, spelling, int(answer))


def _likeness(cache: GuardedSets, number: int) -> tuple[object, ...]:
    """What sets that differ in spelling only have in common: where they are, and what is written.

    How much white space there has been tells sets apart only by how much more there may be: it is left out.
    """
    sets, configs, names = cache.arrays[at.SETS], cache.arrays[at.CONFIGS], cache.arrays[at.NAMES]
    code, leaves = cache.arrays[at.CODE], cache.table.arrays[at.LEAVES]
    first, count = sets[number * at.SET_W + at.SET_FIRST : number * at.SET_W + at.SET_COUNT + 1].tolist()
    records = configs[5 * first : 5 * (first + count + 1)].reshape(-1, 5).tolist()
    text, watched, *_ = records.pop()
    starts = []
    while watched != at.NO_CANDIDATES:
        register, watched = int(names[3 * watched + 1]), int(names[3 * watched])
        starts.append(int(names[3 * register + 1]))
    places = []
    for pc, q, node, register, extra in records:
        if code[pc] == at.LEAF:
            row = q * at.LEAF_W + at.LEAF_BYTES
            if not any(leaves[row : row + 8] & ~BLANK_BITS):
                extra = 0
        places.append((pc, q, node, register, extra))
    return frozenset(places), tuple(parse_prefix(read_member(cache, text, start)) for start in starts)


def _perhaps(cache: GuardedSets, number: int) -> list[int]:
    """The bytes that a set names as allowed, perhaps a few too many."""
    record = cache.arrays[at.SETS][number * at.SET_W : (number + 1) * at.SET_W]
    count = int(record[at.SET_ALLOWED])
    if count > at.NARROW:
        bits = np.unpackbits(record[at.SET_NEXT : at.SET_NEXT + 8].view(np.uint8), bitorder="little")
        return [int(byte) for byte in np.flatnonzero(bits)]
    return list(record[at.SET_BYTES : at.SET_BYTES + 2].tobytes()[:count])


def _in_order(cache: GuardedSets, number: int) -> list[int]:
    """The bytes that a set may go on by: those that leave the watch, bytes as they are, escapes, then white space."""
    sets, configs = cache.arrays[at.SETS], cache.arrays[at.CONFIGS]
    first, count = sets[number * at.SET_W + at.SET_FIRST : number * at.SET_W + at.SET_COUNT + 1].tolist()
    guard = at.GUARD_W * int(configs[5 * (first + count) + 2]) + at.GUARD_BYTES
    bits = cache.arrays[at.GUARDS][guard : guard + 8].view(np.uint8)
    watched = np.unpackbits(bits, bitorder="little").tolist()
    allowed = _perhaps(cache, number)
    return sorted(allowed, key=lambda byte: (watched[byte], byte in BLANKS, byte == 0x5C, byte))


def _written(cache: GuardedSets, number: int) -> bytes:
    """What was written of the outermost member that a set is inside of."""
    first, count = cache.arrays[at.SETS][
        number * at.SET_W + at.SET_FIRST : number * at.SET_W + at.SET_COUNT + 1
    ].tolist()
    return _spelled(cache, int(cache.arrays[at.CONFIGS][5 * (first + count)]), at.SPELLED)


def read_member(cache: GuardedSets, end: int, start: int) -> bytes:
    """The bytes of a member, which is read by functions that recurse: LimitError if it is nested too deep."""
    text = _spelled(cache, end, start)
    if find_deeper(text.decode("latin-1"), MOST_NESTING) >= 0:
        raise LimitError(
            f"Members that must differ are compared up to {MOST_NESTING} levels of nesting, as Limits.nesting.",
            hint="Close some brackets, or leave out uniqueItems.",
        )
    return text


def _spelled(cache: GuardedSets, end: int, start: int) -> bytes:
    """The bytes of a text from one place to another."""
    length = cache.run(copy_text, start, end)
    return cache.arrays[at.BUFFER][:length].astype(np.uint8).tobytes()


def _index(cache: GuardedSets, members: int) -> ValueIndex:
    """The values of a list of members."""
    memory, names = cache.guarded, cache.arrays[at.NAMES]
    todo, one = [], members
    while one != at.NO_MEMBERS and one not in memory.indexes:
        todo.append(one)
        one = int(names[3 * int(names[3 * one])])
    if not todo:
        return memory.indexes[members] if members != at.NO_MEMBERS else ValueIndex()
    known = memory.indexes[one] if one != at.NO_MEMBERS else ValueIndex()
    memory.spend(QUESTION * len(todo) + len(known.values) // 16)
    found = known.adding(_value(cache, todo.pop()))
    while todo:
        found.add(_value(cache, todo.pop()))
    _keep(memory.indexes, members, found, MOST_INDEXES)
    return found


def _value(cache: GuardedSets, members: int) -> Value:
    """The value of the last member of a list."""
    known = cache.guarded.values
    if members not in known:
        names = cache.arrays[at.NAMES]
        register, end = int(names[3 * members]), int(names[3 * members + 1])
        text = read_member(cache, end, int(names[3 * register + 1]))
        cache.guarded.spend(QUESTION + len(text) // 16)
        known[members] = parse_value(text)
    return known[members]


def _keep(memo: dict[_K, _V], key: _K, value: _V, most: int) -> None:
    """Remember a value instead of the oldest of so many."""
    if len(memo) >= most:
        del memo[next(iter(memo))]
    memo[key] = value
