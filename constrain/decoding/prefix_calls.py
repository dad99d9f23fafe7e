"""Rows of the model after prefixes, for programs that ask for them call by call: searches and sessions.

Such a program, a `PrefixReader`, has one prompt. It asks for the rows after some prefixes, decides, and asks again. Its
calls are answered in the steps of the scheduler, beside the texts that are being generated, in slots of the same cache:

    prefixes  ->  chains, each of which extends its prefix before  ->  for each the slot with the longest common text
              ->  shared if others need it, too, otherwise extended in place  ->  fed what is missing  ->  rows

Between two calls the slots only save work: every call has whole prefixes, so a slot can be taken at any time and its
text is fed again. Programs thus never wait for each other, however many are open: a call needs one slot, which a text
that ends or an idle program gives up.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ConstrainError
from ..speculation.draft_source import DraftTree
from .model_runner import LogprobRows, ModelRunner, RowStep

__all__ = ["PrefixCall", "PrefixCalls", "PrefixReader", "RowKind"]

Prefix = tuple[int, ...]
RowKind = Literal["logprobs", "logits"]


@dataclass(eq=False, slots=True)
class PrefixReader:
    """A program and its slots. Changed by the thread that steps the scheduler only, except `is_idle`.

    Attributes
    ----------
    prompt : sequence of int
        Token ids; empty for a model that holds its own prompt.
    texts : dict of int to tuple of int
        The tokens after the prompt that each slot holds, the least recently used first, without slots that are fed.
    first_rows : dict of str to float [V]
        The rows after the prompt, by kind.
    is_idle : bool
        Set when the program has ended, for now: its slots are freed before the next step.
    width : int
        Most texts that it keeps for later calls. What one call needs may be more.
    """

    prompt: Sequence[int]
    width: int = 1
    texts: dict[int, Prefix] = field(default_factory=dict)
    first_rows: dict[str, LogprobRows] = field(default_factory=dict)
    is_idle: bool = False


@dataclass(eq=False, slots=True)
class ChainFeed:
    """A chain of prefixes that is fed to a slot. unfed: tokens up to the end of its first prefix."""

    slot: int
    chain: Sequence[Prefix]
    unfed: list[int]
    has_begun: bool = False
    part: int = 0

    def make_step(self, budget: int, kind: RowKind) -> RowStep:
        """Return the next step; `part` is the number of tokens that it feeds of `unfed`."""
        fed, self.part = self.unfed[:budget], min(budget, len(self.unfed))
        if self.part < len(self.unfed):
            return RowStep(self.slot, fed, rows="none")
        return RowStep(self.slot, fed, DraftTree.chain(self.chain[-1][len(self.chain[0]) :]), kind)


@dataclass(eq=False, slots=True)
class PrefixCall:
    """A call of a reader. done: its result, float [len(prefixes), V]. is_cancelled: set by any thread."""

    reader: PrefixReader
    prefixes: Sequence[Prefix]
    kind: RowKind
    done: Future[NDArray[np.floating[Any]]] = field(default_factory=Future)
    waiting: deque[Sequence[Prefix]] | None = None
    feeds: list[ChainFeed] = field(default_factory=list)
    rows: dict[Prefix, LogprobRows] = field(default_factory=dict)
    is_cancelled: bool = False

    def list_waiting(self) -> deque[Sequence[Prefix]]:
        """Return the chains that are not being fed yet."""
        if self.waiting is None:
            known = self.reader.first_rows.get(self.kind)
            if known is not None:
                self.rows[()] = known
            self.waiting = deque(divide_prefixes([prefix for prefix in self.prefixes if prefix not in self.rows]))
        return self.waiting


class PrefixCalls:
    """The calls of all readers in one scheduler. Used by the thread that steps it, except `submit` and `cancel`."""

    def __init__(self, runner: ModelRunner) -> None:
        self.runner = runner
        self.calls: list[PrefixCall] = []
        self.readers: dict[PrefixReader, None] = {}
        self.held = 0

    def submit(self, reader: PrefixReader, prefixes: Sequence[Sequence[int]], kind: RowKind) -> PrefixCall:
        """Queue a call."""
        call = PrefixCall(reader, [tuple(prefix) for prefix in prefixes], kind)
        call.done.set_running_or_notify_cancel()
        reader.is_idle = False
        self.calls.append(call)
        return call

    @property
    def has_work(self) -> bool:
        """Whether a call is not answered, or slots are to be freed."""
        return bool(self.calls) or any(reader.is_idle and reader.texts for reader in tuple(self.readers))

    # ---- a step -----------------------------------------------------------------------------------------------------

    def plan_steps(self, capacity: int, budget: int) -> list[tuple[PrefixCall, ChainFeed, RowStep]]:
        """Return what the next step feeds. capacity: most slots of all readers. budget: most tokens that are fed."""
        self.drop_ended()
        planned = list[tuple[PrefixCall, ChainFeed, RowStep]]()
        for call in list(self.calls):
            try:
                self.begin_chains(call, capacity)
            except Exception as error:
                self.fail(call, error)
                continue
            for feed in call.feeds:
                if budget > 0 or not feed.unfed:
                    step = feed.make_step(budget, call.kind)
                    budget -= feed.part
                    planned.append((call, feed, step))
            self.end_if_answered(call)
        return planned

    def drop_ended(self) -> None:
        """Free the slots of calls that were cancelled and of idle readers."""
        for call in [call for call in self.calls if call.is_cancelled]:
            self.fail(call, ConstrainError("the call was cancelled"))
        for reader in list(self.readers):
            if reader.is_idle:
                for slot in list(reader.texts):
                    self.release(reader, slot)
                del self.readers[reader]

    def deliver(self, call: PrefixCall, feed: ChainFeed, found: LogprobRows) -> None:
        """Take the rows of a step."""
        if call not in self.calls:
            return
        del feed.unfed[: feed.part]
        if feed.unfed:
            self.runner.commit(feed.slot, ())
            return
        first, last = feed.chain[0], feed.chain[-1]
        self.runner.commit(feed.slot, range(len(last) - len(first)))
        for prefix in feed.chain:
            call.rows[prefix] = found[len(prefix) - len(first)]
        if not first:
            call.reader.first_rows[call.kind] = call.rows[first].copy()
        call.feeds.remove(feed)
        call.reader.texts[feed.slot] = last
        self.end_if_answered(call)

    def end_if_answered(self, call: PrefixCall) -> None:
        """Return the rows of a call that are all known."""
        if not call.feeds and not call.list_waiting():
            self.calls.remove(call)
            rows = [call.rows[prefix] for prefix in call.prefixes]
            call.done.set_result(np.stack(rows) if rows else np.zeros((0, 0)))

    def fail(self, call: PrefixCall, error: BaseException) -> None:
        """End a call with an error, and free the slots that it was feeding."""
        if call in self.calls:
            self.calls.remove(call)
            for feed in call.feeds:
                self.runner.release(feed.slot)
                self.held -= 1
            call.done.set_exception(error)

    def abort(self, error: BaseException) -> None:
        """End all calls with an error, and free all slots."""
        for call in list(self.calls):
            self.fail(call, error)
        for reader in self.readers:
            for slot in list(reader.texts):
                self.release(reader, slot)
        self.readers.clear()

    def forget_calls(self) -> None:
        """Forget all calls and slots, in a forked process, where nobody waits for them."""
        for reader in self.readers:
            reader.texts.clear()
        self.calls.clear()
        self.readers.clear()
        self.held = 0

    # ---- slots ------------------------------------------------------------------------------------------------------

    def begin_chains(self, call: PrefixCall, capacity: int) -> None:
        """Begin as many chains of a call as there are slots for."""
        reader, waiting = call.reader, call.list_waiting()
        self.readers[reader] = self.readers.pop(reader, None)  # the last one used
        sources = [find_longest_text(reader.texts, chain[0])[0] for chain in waiting]
        needed = Counter(sources)
        for source in sources:
            needed[source] -= 1
            feed = self.begin_chain(reader, waiting[0], capacity, needed)
            if feed is None:
                return
            waiting.popleft()
            call.feeds.append(feed)

    def begin_chain(
        self, reader: PrefixReader, chain: Sequence[Prefix], capacity: int, needed: Counter[int | None]
    ) -> ChainFeed | None:
        """Begin a chain; None if there is no slot. needed: how many other chains of the call begin as a slot does."""
        first = chain[0]
        source, common = find_longest_text(reader.texts, first)
        if source is None or not first:
            if self.held >= capacity and not (self.drop_text(reader, needed) or self.give_up_slot()):
                return None
            opened = self.runner.open(reader.prompt)
            self.held += 1
            return ChainFeed(opened.slot, chain, [*opened.unfed, *first])
        is_kept = common < len(reader.texts[source]) and len(reader.texts) < reader.width
        slot = source
        if (needed[source] or is_kept) and (self.held < capacity or self.drop_text(reader, needed, source)):
            slot = self.runner.share(source)
            self.held += 1
        else:
            del reader.texts[source]
        self.runner.rewind(slot, common)
        return ChainFeed(slot, chain, list(first[common:]))

    def drop_text(self, reader: PrefixReader, needed: Counter[int | None], kept: int | None = None) -> bool:
        """Free the slot of a reader that was not used for longest, is not needed by its call, and is not `kept`. Return
        whether there was one.
        """
        slot = next((slot for slot in reader.texts if slot != kept and not needed[slot]), None)
        if slot is not None:
            self.release(reader, slot)
        return slot is not None

    def give_up_slot(self) -> bool:
        """Free a slot that no call is using, of the reader that was not used for longest. Return whether there was
        one.
        """
        return any(self.drop_text(reader, Counter()) for reader in self.readers)

    def release(self, reader: PrefixReader, slot: int) -> None:
        """Free a slot of a reader that is not being fed."""
        del reader.texts[slot]
        self.runner.release(slot)
        self.held -= 1


def divide_prefixes(prefixes: Sequence[Prefix]) -> list[list[Prefix]]:
    """Divide prefixes into chains, each of which extends its prefix before."""
    chains: list[list[Prefix]] = []
    for prefix in sorted(set(prefixes)):
        if chains and prefix[: len(chains[-1][-1])] == chains[-1][-1]:
            chains[-1].append(prefix)
        else:
            chains.append([prefix])
    return chains


def find_longest_text(texts: dict[int, Prefix], prefix: Prefix) -> tuple[int | None, int]:
    """Return the slot with the longest text in common with a prefix, and its length, less than that of the prefix, so
    that a token remains to be fed; (None, 0) without slots.
    """
    best, longest = None, -1
    for slot, text in texts.items():
        common = min(count_common(text, prefix), max(len(prefix) - 1, 0))
        if common > longest or (common == longest and best is not None and len(text) < len(texts[best])):
            best, longest = slot, common
    return best, max(longest, 0)


def count_common(text: Prefix, prefix: Prefix) -> int:
    """Return the length of the longest common prefix."""
    if prefix[: len(text)] == text:
        return len(text)
    differing = (place for place, (one, other) in enumerate(zip(text, prefix)) if one != other)
    return next(differing, min(len(text), len(prefix)))
