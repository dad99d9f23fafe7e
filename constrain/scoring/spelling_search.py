"""Probabilities of texts summed over all their tokenisations, by best-first search with certified bounds.

The probability of a text is the sum over its tokenisations x of p(x) p(end | x). Their number grows exponentially with
the length of the text, and each has rows of its own, but nearly all of the mass lies on few of them. The search keeps a
set of token sequences that cover all tokenisations which have not been summed up yet, the *frontier*. What follows a
sequence u has at most the probability p(u), and what follows different sequences of the frontier is disjoint. So with
`found` the sum so far,

    found <= P(texts) <= found + sum of p(u) over the frontier

at any time. In every round, the likeliest sequences of the frontier are replaced by their continuations, until the
frontier has at most `tolerance` times the mass that was found. A round is one call of the model: together with each
sequence, the prefixes of its completion by the tokenizer's own choice are evaluated, which are usually needed next.
The first round thus evaluates the canonical tokenisations of all texts.

On the difference between the canonical tokenisation and all of them: Cao and Rimell 2021 (You should evaluate your
language model on marginal likelihood over tokenisations); Vieira et al. 2024 (From language models over tokens to
language models over characters), whose beam of covering sequences is this frontier.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import LimitError
from ..sampling.core.language_model import LanguageModel, rows_after
from ..sampling.core.results import log_sum
from .option_trie import Ends, OptionTrie

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["SpellingMasses", "sum_spellings"]

Tokens = tuple[int, ...]

FLOATS = 2**25
"""Maximum number of log-probabilities requested in one call of the model: 256 MB."""
NODES = 64
"""Maximum number of sequences of the frontier that are expanded in one round."""
CELLS = 2**25
"""Maximum number of token ids in the prefixes of one round, of which a text of n tokens has n (n + 1) / 2: 256 MB."""


@dataclass(frozen=True, slots=True)
class SpellingMasses:
    """The result of a search. Logs are natural.

    Attributes
    ----------
    trie : OptionTrie
        The texts.
    found : float64 [texts]
        Log of the mass of each text that was summed up.
    spellings : int64 [texts]
        The number of tokenisations in each sum; with ends = "prefix", of tokens that complete the text.
    frontier : dict of int to float
        Log of the mass that was not resolved, by the node of the trie at which it lies.
    model_calls, rows : int
        Calls of the model, and rows that they returned.
    """

    trie: OptionTrie
    found: NDArray[np.float64]
    spellings: NDArray[np.int64]
    frontier: dict[int, float]
    model_calls: int
    rows: int

    @property
    def log_found(self) -> float:
        """Log of the mass of all texts that was found."""
        return log_sum(self.found)

    @property
    def log_frontier(self) -> float:
        """Log of the mass that was not resolved."""
        return log_sum(np.array(list(self.frontier.values())))


def sum_spellings(
    lm: LanguageModel,
    vocabulary: Vocabulary,
    texts: Sequence[bytes],
    *,
    ends: Ends = "token",
    tolerance: float = 1e-3,
    max_rows: int = 4096,
) -> SpellingMasses:
    """Sum the probabilities of texts over their tokenisations.

    Parameters
    ----------
    lm : LanguageModel
        The model, after its prompt.
    vocabulary : Vocabulary
        Its tokens.
    texts : sequence of bytes
        Different texts; with ends = "prefix", none a prefix of another.
    ends : {"token", "prefix"}
        "token": the probability that the model writes the text and ends. "prefix": that it writes a text that begins
        with it.
    tolerance : float
        Stop when the unresolved mass is at most this share of the mass that was found; 0 resolves everything.
    max_rows : int
        Stop when so many rows have been requested. What is then unresolved is in the result.

    Returns
    -------
    SpellingMasses

    Raises
    ------
    LimitError
        If the model has not enough positions for the canonical tokenisation of a text, or the prefixes of the canonical
        tokenisations have more than CELLS tokens together.
    VocabularyError
        If no tokens spell a text.
    """
    search = SpellingSearch(lm, OptionTrie(texts, vocabulary, ends))
    search.check_positions()
    search.run_round([(0.0, (), 0)], math.inf)
    while search.heap and search.rows < max_rows:
        target = math.log(tolerance) + log_sum(search.found) if tolerance else -math.inf
        chosen = search.pop_likeliest(target, max_rows)
        if not chosen:
            break
        search.run_round(chosen, max_rows - search.rows)
    return search.result()


@dataclass(slots=True)
class CompactRow:
    """What is needed of a row of the model: logs of the end, of each arc, and of the tokens that cover a text."""

    end: float
    arcs: NDArray[np.float64]
    covering: list[tuple[int, float, int]] = field(default_factory=list)


class SpellingSearch:
    """The state of a search: the sums, and the frontier as a heap of (-log mass, tokens, node)."""

    def __init__(self, lm: LanguageModel, trie: OptionTrie) -> None:
        self.lm, self.trie, self.vocabulary = lm, trie, trie.vocabulary
        self.ends = list(trie.vocabulary.eos_ids)
        self.found = np.full(len(trie.texts), -np.inf)
        if trie.ends == "prefix":
            self.found[[not text for text in trie.texts]] = 0.0  # every text begins with the empty one
        self.spellings = np.zeros(len(trie.texts), np.int64)
        self.heap: list[tuple[float, Tokens, int]] = []
        self.blocked: list[tuple[float, int]] = []
        self.calls = self.rows = self.cells = 0
        self.canonical: dict[bytes, Tokens] = {}
        limit: int | None = getattr(lm, "max_new_tokens", None)
        self.longest = math.inf if limit is None else limit - 1

    def check_positions(self) -> None:
        """Raise LimitError if a canonical tokenisation is longer than the model allows, or too long to be searched."""
        widest, cells = max(len(data) for data in self.vocabulary.tokens if data), 0
        for text in self.trie.texts:
            length, least = -(-len(text) // widest), "at least "  # some tokenizers are slow on long texts
            if length <= self.longest and count_cells(length) <= CELLS:
                length, least = len(self.spell(text)), ""
            if length > self.longest:
                raise LimitError(
                    f"a text of {least}{length} tokens and its end do not fit into the {self.longest + 1} positions "
                    "that the model has left",
                    hint="Shorten the text or the prompt.",
                )
            cells += count_cells(length)
            if cells > CELLS:
                raise LimitError(
                    f"a text of {least}{length:,} tokens is too long to be compared: the model reads each prefix, "
                    f"and all of them have more than {CELLS:,} tokens together",
                    hint="Shorten the texts, or compare fewer at a time.",
                )

    def spell(self, data: bytes) -> Tokens:
        """Return the tokenizer's own tokens for bytes; cached."""
        if data not in self.canonical:
            self.canonical[data] = tuple(self.vocabulary.tokenize(data)) if data else ()
        return self.canonical[data]

    def pop_likeliest(self, target: float, max_rows: int) -> list[tuple[float, Tokens, int]]:
        """Take sequences from the frontier, the likeliest first, until what is left has at most the log mass `target`,
        and at most NODES or `max_rows` in all.
        """
        masses = np.sort(-np.array([entry[0] for entry in self.heap]))
        blocked = [mass for mass, _ in self.blocked]
        below = np.logaddexp.accumulate(masses)  # log mass of the k + 1 least likely
        allowance = target if not blocked or target == -np.inf else log_difference(target, log_sum(np.array(blocked)))
        kept = int(np.searchsorted(below, allowance, side="right")) if allowance > -np.inf else 0
        count = min(len(masses) - kept, NODES, max_rows - self.rows)
        return [self.take() for _ in range(count)]

    def take(self) -> tuple[float, Tokens, int]:
        """Remove and return the likeliest sequence of the frontier."""
        negative, tokens, node = heapq.heappop(self.heap)
        return -negative, tokens, node

    def run_round(self, chosen: list[tuple[float, Tokens, int]], most: float) -> None:
        """Replace sequences (log mass, tokens, node) of the frontier by their continuations. most: rows to evaluate."""
        planned: dict[Tokens, int] = {}
        self.cells = 0
        for _, tokens, node in chosen:
            if len(planned) < most:
                self.plan(tokens, node, planned, most)
        rows = self.evaluate(planned)
        pending = list(chosen)
        while pending:
            mass, tokens, node = pending.pop()
            row = rows.get(tokens)
            if row is None:
                self.wait(mass, tokens, node)
                continue
            self.add_found(mass, row, node)
            arcs = self.trie.arcs(node)
            for token, target, log in zip(arcs.tokens.tolist(), arcs.targets.tolist(), row.arcs.tolist()):
                if log > -np.inf:
                    pending.append((mass + log, (*tokens, token), target))

    def wait(self, mass: float, tokens: Tokens, node: int) -> None:
        """Put a sequence into the frontier; one that the model has no positions for stays there."""
        if len(tokens) > self.longest:
            self.blocked.append((mass, node))
        else:
            heapq.heappush(self.heap, (-mass, tokens, node))

    def plan(self, tokens: Tokens, node: int, planned: dict[Tokens, int], most: float) -> None:
        """Add a sequence, and its completions by the tokenizer to each text below it, to the prefixes to evaluate, of
        which there are at most `most`, with at most CELLS tokens together.
        """
        planned[tokens] = node
        for number in self.trie.below[node]:
            left = self.trie.texts[number][self.trie.depth[node] :]
            at, depth, path = tokens, self.trie.depth[node], self.trie.paths[number]
            for token in self.spell(left):
                at, depth = (*at, token), depth + len(self.vocabulary.tokens[token] or b"")
                last = depth == len(path) - 1
                if len(at) > self.longest or (last and self.trie.ends == "prefix"):
                    break
                self.cells += len(at)
                if len(planned) >= most or self.cells > CELLS:
                    return
                planned[at] = path[depth]

    def evaluate(self, planned: dict[Tokens, int]) -> dict[Tokens, CompactRow]:
        """Return the rows after some prefixes, with one call of the model unless they take too much memory."""
        size = max(1, FLOATS // self.vocabulary.size)
        prefixes, rows = list(planned), dict[Tokens, CompactRow]()
        for start in range(0, len(prefixes), size):
            some = prefixes[start : start + size]
            answer = rows_after(self.lm, [list(prefix) for prefix in some], self.vocabulary.size)
            self.calls, self.rows = self.calls + 1, self.rows + len(some)
            for prefix, row in zip(some, answer):
                rows[prefix] = self.reduce_row(row, planned[prefix])
        return rows

    def reduce_row(self, row: NDArray[np.floating[Any]], node: int) -> CompactRow:
        """Return what is needed of a row."""
        arcs = self.trie.arcs(node)
        ended = self.trie.ends == "token" and self.trie.text_at[node] >= 0
        end = log_sum(row[self.ends].astype(np.float64)) if ended else -math.inf
        covering = [(number, log_sum(row[ids].astype(np.float64)), len(ids)) for number, ids in arcs.covering]
        return CompactRow(end, row[arcs.tokens].astype(np.float64), covering)

    def add_found(self, mass: float, row: CompactRow, node: int) -> None:
        """Add the mass of the texts that are complete after a sequence."""
        complete = [(self.trie.text_at[node], row.end, 1)] if row.end > -np.inf else []
        for number, log, count in (*complete, *row.covering):
            self.found[number] = np.logaddexp(self.found[number], mass + log)
            self.spellings[number] += count

    def result(self) -> SpellingMasses:
        """Return the sums and the unresolved mass."""
        frontier: dict[int, float] = {}
        for mass, node in [*((-negative, node) for negative, _, node in self.heap), *self.blocked]:
            frontier[node] = float(np.logaddexp(frontier.get(node, -np.inf), mass))
        return SpellingMasses(self.trie, self.found, self.spellings, frontier, self.calls, self.rows)


def count_cells(length: int) -> int:
    """Return the number of tokens in all prefixes of a text of so many tokens."""
    return length * (length + 1) // 2


def log_difference(log_a: float, log_b: float) -> float:
    """Return log(exp(log_a) - exp(log_b)), -inf if it is not positive."""
    return log_a + math.log1p(-math.exp(log_b - log_a)) if log_b < log_a else -math.inf
