"""Which candidates of a step are continued, and which finished texts are kept.

The candidates of all hypotheses are merged in order of their keys and admitted one by one until there are as many as
needed (`take_candidates`): a checker is asked about no others, and the result is the same as if it had been asked about
the whole vocabulary. `split_candidates` is the rule of beam search: of the candidates in order, the first `slots` that
do not end are continued, and ends are kept if they are among the first `slots`.

With phrases, candidates are divided into banks, and each bank is treated like a beam of its own:

    dynamic   `width` slots are divided over the banks by `allocate_banks` (Post and Vilar 2018, section 3.3)
    grid      every bank has `width` slots (Hokamp and Liu 2017, algorithm 1)
    clauses   banks are sets of clauses; they take turns until `width` slots are filled (Lu et al. 2021, section 2.3)
"""

from __future__ import annotations

import heapq
from collections import ChainMap, deque
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from .hypotheses import END, Candidate, SearchSpace
from .search_options import PhraseBanks

__all__ = ["CandidateStreams", "allocate_banks", "rotate_banks", "split_banks", "split_candidates", "take_candidates"]

Stream = Iterator[Candidate]
TRIED = 64
"""Candidates that cannot be closed within the budget or repeat a text are passed over until there are this many, and 8
per slot."""


@dataclass(slots=True)
class CandidateStreams:
    """The candidates of one bank.

    certain: ends, and tokens that begin a completion known to fit into the budget. fitting: other tokens after
    hypotheses with a completion, most of which fit as well. others: tokens after hypotheses without one, which are used
    only where there are too few. Streams are one per hypothesis, in falling order of keys.
    """

    certain: list[Candidate] = field(default_factory=list)
    fitting: list[Stream] = field(default_factory=list)
    others: list[Stream] = field(default_factory=list)


def merge_streams(streams: list[Stream]) -> Stream:
    """Merge streams in falling order of keys; equal keys in the order of the streams."""
    return heapq.merge(*streams, key=lambda candidate: -candidate.key)


def take_candidates(
    space: SearchSpace, streams: CandidateStreams, slots: int, known: dict[bytes, float] | None = None
) -> list[Candidate]:
    """Return admitted candidates in order of rank: all until `slots` of them do not end.

    known: largest log-probability of the prefixes with each text so far. Less likely spellings of these texts, and of
    likelier candidates, are used only where there are too few others. None: spellings do not matter.
    """
    certain = deque(sorted(streams.certain, key=lambda candidate: candidate.rank))
    merged = merge_streams(streams.fitting)
    taken, spare, count = list[Candidate](), list[Candidate](), 0
    found = None if known is None else ChainMap[bytes, float]({}, known)
    following = next(merged, None)
    while count < slots:
        if certain and (following is None or certain[0].key >= following.key):
            candidate = certain.popleft()
        elif following is not None and len(spare) <= TRIED + 8 * slots:
            candidate, following = following, next(merged, None)
        elif certain:
            candidate = certain.popleft()
        else:
            break
        if space.admit(candidate):
            if found is not None and candidate.token != END:
                mark_repeated(candidate, found)
            is_good = candidate.fits and not candidate.repeats
            (taken if is_good else spare).append(candidate)
            count += is_good and candidate.token != END
    spare.sort(key=lambda candidate: candidate.rank)
    for candidate in chain(spare, merge_streams(streams.others)):
        if count >= slots:
            break
        if candidate.position is not None or space.admit(candidate):
            taken.append(candidate)
            count += 1
    return sorted(taken, key=lambda candidate: candidate.rank)


def mark_repeated(candidate: Candidate, known: MutableMapping[bytes, float]) -> None:
    """Set whether a candidate is a less likely spelling of a known text; otherwise make it the known one."""
    candidate.repeats = known.get(candidate.text, -np.inf) >= candidate.logprob
    if not candidate.repeats:
        known[candidate.text] = candidate.logprob


def split_candidates(candidates: list[Candidate], slots: int) -> tuple[list[Candidate], list[Candidate]]:
    """Return the candidates that are continued, at most `slots`, and those that end the text within the first
    `slots`.
    """
    running = [candidate for candidate in candidates if candidate.token != END][:slots]
    ended = [candidate for candidate in candidates[: max(slots, 1)] if candidate.token == END]
    return running, ended


def split_banks(
    banks: Mapping[int, list[Candidate]], options: PhraseBanks, width: int
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the candidates that are continued and those that end, of banks of candidates in order of rank."""
    if options.method == "clauses":
        return split_candidates(rotate_banks(banks, options.keep, options.tolerance), width)
    slots = dict.fromkeys(banks, width)
    if options.method == "dynamic":
        counts = [0] * (max(banks) + 1)
        for bank, candidates in banks.items():
            counts[bank] = len(candidates)
        slots = dict(enumerate(allocate_banks(width, counts)))
    parts = [split_candidates(candidates, slots[bank]) for bank, candidates in sorted(banks.items(), reverse=True)]
    return list(chain(*(running for running, _ in parts))), list(chain(*(ended for _, ended in parts)))


def allocate_banks(width: int, counts: list[int]) -> list[int]:
    """Return the slots of each bank, given the number of candidates in each.

    The beam is divided evenly, with the remainder for the last bank. From the last to the first, slots that a bank
    cannot use go to the bank before it; those of the first go to the last banks that can use them.
    """
    slots = [width // len(counts)] * len(counts)
    slots[-1] += width % len(counts)
    unused = 0
    for _ in range(2):
        for bank in reversed(range(len(counts))):
            available = slots[bank] + unused
            slots[bank] = min(available, counts[bank])
            unused = available - slots[bank]
    return slots


def rotate_banks(banks: Mapping[int, list[Candidate]], keep: int | None, tolerance: int | None) -> list[Candidate]:
    """Return the candidates of banks, which are sets of clauses as bits: the best of each bank, then the second of
    each, and so on.

    keep: only the candidates with the largest keys. tolerance: only banks with so many clauses fewer than the best.
    """
    kept = dict(banks)
    if keep is not None:
        keys = sorted((candidate.key for candidates in banks.values() for candidate in candidates), reverse=True)
        least = keys[keep - 1] if keep <= len(keys) else -np.inf
        kept = {met: [one for one in candidates if one.key >= least] for met, candidates in kept.items()}
    if tolerance is not None:
        most = max((met.bit_count() for met, candidates in kept.items() if candidates), default=0)
        kept = {met: candidates for met, candidates in kept.items() if met.bit_count() >= most - tolerance}
    rounds = max(map(len, kept.values()), default=0)
    turns = [[candidates[i] for candidates in kept.values() if i < len(candidates)] for i in range(rounds)]
    return list(chain(*(sorted(turn, key=lambda candidate: candidate.rank) for turn in turns)))
