"""Walks through a SuccessTrie from the root to the end of a text: the steps shared by `asap` and `trie_rejection`.

At a prefix u, chosen when its bound theta(u) was `used`: update theta(u) to m(u), the sum of p(a | u) theta(ua), and
the ancestors accordingly; then choose a with probability p(a | u) theta(ua) / m(u). For a whole text x

    product of m(u) / used(u), root excluded  *  m(root)  *  P(the walk takes x)  =  p(x) [x in L]

because each factor p theta / m cancels against the m / theta of the next step. `asap` uses the factors on the left as a
weight, `trie_rejection` as a probability of continuing. `used` belongs to the walk, so other walks may update the trie
in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, ConstrainError, LimitError
from .core.language_model import LanguageModel, check_mass, rows_after
from .core.results import Draw
from .core.token_masses import allowed_tokens, draw_index
from .success_trie import END, PrefixLaw, SuccessTrie, TrieNode

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher

__all__ = ["Judge", "Laws", "Walk", "prefix_law"]

Judge = Callable[[bytes], bool]
"""A validator: whether complete bytes are accepted, or whether a prefix can still be accepted. It must be
deterministic. It may be slow and may reject late: it is called once per node, after the mask, and rejected
prefixes are pruned."""


class Laws:
    """The distributions of a model under a Constraint, a token limit and validators; counts calls and checks.

    accepts: validator of complete texts. viable: validator of prefixes, called once for each; it may reject only
    prefixes that no accepted text continues.
    """

    def __init__(
        self,
        lm: LanguageModel,
        constraint: Constraint,
        trie: SuccessTrie | None,
        max_tokens: int,
        accepts: Judge | None = None,
        viable: Judge | None = None,
    ) -> None:
        if max_tokens < 1:
            raise LimitError(f"max_tokens is {max_tokens}: not even an end token fits")
        if trie is not None and not isinstance(trie, SuccessTrie):
            raise TypeError(f"trie is {trie!r}: it is a SuccessTrie, or None for a new one")
        if trie is not None and trie.max_tokens != max_tokens:
            raise ArgumentError(
                f"the trie was learnt for max_tokens {trie.max_tokens}, not {max_tokens}: theta depends on it"
            )
        self.lm, self.constraint, self.vocabulary = lm, constraint, constraint.vocabulary
        self.trie = SuccessTrie(max_tokens) if trie is None else trie
        self.trie.belongs_to(constraint, judged=accepts is not None or viable is not None)
        self.max_tokens, self.accepts, self.viable = max_tokens, accepts, viable
        self.calls = self.rows = self.masks = self.checks = self.steps = 0

    def at(self, places: Sequence[tuple[TrieNode, Matcher]]) -> list[PrefixLaw]:
        """Return the distributions at nodes; those that are not cached are computed with one call of the model."""
        self.steps += len(places)
        laws = [self.trie.law(node) for node, _ in places]
        missing: dict[TrieNode, list[int]] = {}
        for i, (node, _) in enumerate(places):
            if laws[i] is None:
                missing.setdefault(node, []).append(i)
        asked = []
        for node, at in missing.items():
            matcher = places[at[0]][1]
            if not self.is_viable(node, matcher):
                for i in at:
                    laws[i] = NOTHING
            else:
                asked.append((node, at, matcher))
        if asked:
            rows = rows_after(self.lm, [matcher.tokens for _, _, matcher in asked], self.vocabulary.size)
            self.calls, self.rows = self.calls + 1, self.rows + len(asked)
            for (node, at, matcher), row in zip(asked, rows):
                law = prefix_law(row, self.allowed(node, matcher), self.vocabulary.eos_ids)
                self.trie.keep(node, law)
                for i in at:
                    laws[i] = law
        return [law for law in laws if law is not None]

    def allowed(self, node: TrieNode, matcher: Matcher) -> NDArray[np.int64]:
        """Return the tokens that the mask allows (int64 [k]); only end tokens at the last position."""
        self.masks += 1
        allowed = allowed_tokens(matcher.mask(None))
        return allowed[np.isin(allowed, self.vocabulary.eos_ids)] if node.depth + 1 >= self.max_tokens else allowed

    def is_viable(self, node: TrieNode, matcher: Matcher) -> bool:
        """Return whether the prefix can be continued: from its bound, and at the first visit from the validator of
        prefixes.
        """
        if self.viable is not None and not node.visited:
            if not self.ask(self.viable, matcher):
                self.trie.close(node, 0.0)
        return not (node.visited and node.theta == 0)

    def is_success(self, end: TrieNode, matcher: Matcher) -> bool:
        """Return whether a text that the mask allows to end is accepted; the answer is stored in its node END."""
        if not end.visited:
            accepted = True
            if self.accepts is not None:
                accepted = self.ask(self.accepts, matcher)
            self.trie.close(end, float(accepted))
        return end.theta > 0

    def ask(self, judge: Judge, matcher: Matcher) -> bool:
        """Call a validator with the text so far. Raise ConstrainError if the call fails."""
        text = self.data(matcher.tokens)
        self.checks += 1
        try:
            return bool(judge(text))
        except Exception as error:
            raise ConstrainError(
                f"the validator failed on {text[-60:]!r}: {error.__class__.__name__}: {error}",
                hint="It must answer for every text; catch what means no, and answer False.",
            ) from error

    def data(self, tokens: Sequence[int]) -> bytes:
        """Return the bytes of some tokens."""
        return b"".join(self.vocabulary.tokens[token] or b"" for token in tokens)

    def nothing(self) -> LimitError:
        """Return the error for a constraint with p(L) = 0."""
        return LimitError(
            f"no text of at most {self.max_tokens} tokens satisfies the constraint with any probability",
            hint="Raise max_tokens, or see what the model or the validator refuses.",
        )

    @property
    def stats(self) -> dict[str, float]:
        """Counts by name: model_calls, rows computed in them, masks, steps (nodes visited), checks (calls of
        validators), and bound, an upper bound of p(L).
        """
        return {
            "model_calls": self.calls, "rows": self.rows, "masks": self.masks, "steps": self.steps,
            "checks": self.checks, "bound": self.trie.bound, "trie_bytes": self.trie.nbytes,
        }  # fmt: skip


NOTHING = PrefixLaw(np.zeros(0, np.int64), np.zeros(0))


class Walk:
    """One walk. used: theta of the node when it was chosen; logprob: of the tokens so far; logratio: sum of the logs of
    m / used, where the factor of the root is m itself.
    """

    def __init__(self, laws: Laws) -> None:
        self.laws, self.trie = laws, laws.trie
        self.restart()

    def restart(self) -> None:
        """Return to the root."""
        self.node: TrieNode = self.trie.root
        self.matcher = self.laws.constraint.matcher()
        self.used, self.logprob, self.logratio = 1.0, 0.0, 0.0

    def visit(self, law: PrefixLaw) -> float:
        """Update the bound at this node. Return the factor m / used, at most 1 (m itself at the root)."""
        self.weights = self.trie.weights(self.node, law)
        ratio = min(self.trie.visit(self.node, self.weights) / self.used, 1.0)
        self.logratio += float(np.log(ratio)) if ratio > 0 else -np.inf
        return ratio

    def choose(self, law: PrefixLaw, rng: np.random.Generator) -> bool | None:
        """Choose a token at a node that was just visited (m > 0). Return None to continue, else whether the ended text
        succeeded.
        """
        index = draw_index(self.weights, rng)
        self.logprob += float(np.log(law.probs[index]))
        child = self.trie.child(self.node, law, index)
        if child.token == END:
            return self.laws.is_success(child, self.matcher)
        self.node, self.used = child, child.theta
        self.matcher.advance(child.token)
        return None

    def draw(self, log_weight: float) -> Draw:
        """Return the current text as a Draw; one of weight 0 did not end and has logprob -inf."""
        tokens = tuple(self.matcher.tokens)
        logprob = self.logprob if log_weight > -np.inf else -np.inf
        return Draw(tokens, self.laws.vocabulary.decode(tokens), logprob, log_weight)


def prefix_law(row: NDArray[np.floating[Any]], allowed: NDArray[np.int64], ends: Sequence[int]) -> PrefixLaw:
    """Restrict the model's row (float [V], natural logs) to the allowed tokens (int64 [k], ascending), merging end
    tokens.

    Raise ValueError for NaN, for a row without any probability, and for one that sums to more than 1.
    """
    logs = row[allowed].astype(np.float64)
    if np.isnan(logs).any():
        raise ArgumentError("the model's log-probabilities are not numbers (NaN)")
    probs = np.exp(logs)
    total = float(probs.sum())
    check_mass(float(np.log(total)) if total > 0 else -np.inf)
    ending = np.isin(allowed, ends)
    if not ending.any():
        return PrefixLaw(allowed, probs)
    tokens = np.concatenate(([END], allowed[~ending]))
    return PrefixLaw(tokens, np.concatenate(([probs[ending].sum()], probs[~ending])))
