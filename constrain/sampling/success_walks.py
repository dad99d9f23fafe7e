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
from ..engine.length_limits import explain_short_limit
from .core.language_model import LanguageModel, check_mass, rows_after
from .core.numeric_functions import read_verdict
from .core.results import Draw
from .core.token_masses import allowed_tokens, draw_index
from .success_trie import END, PrefixDistribution, SuccessTrie, TrieNode

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher

__all__ = ["Validator", "DistributionSource", "Walk", "build_prefix_distribution", "make_no_text_error"]

Validator = Callable[[bytes], Any]
"""A validator: whether complete bytes are accepted, or whether a prefix can still be accepted. It must be
deterministic. It may be slow and may reject late: it is called once per node, after the mask, and rejected
prefixes are pruned. For complete bytes it may also return a float from 0 to 1, the probability with which they are
accepted."""


class DistributionSource:
    """The next-token distributions of a model under a Constraint, a token limit and validators; counts calls and
    checks.

    Parameters
    ----------
    lm, constraint, max_tokens
        As in `sampling.draw`.
    trie : SuccessTrie, optional
        Success masses learnt so far, updated in place; a new trie by default.
    accepts : callable, optional
        Validator of complete texts, called with their bytes.
    viable : callable, optional
        Validator of prefixes, called once for each with its bytes. It may reject only prefixes that no accepted text
        continues.
    """

    def __init__(
        self,
        lm: LanguageModel,
        constraint: Constraint,
        trie: SuccessTrie | None,
        max_tokens: int,
        accepts: Validator | None = None,
        viable: Validator | None = None,
    ) -> None:
        if max_tokens < 1:
            raise LimitError(f"max_tokens is {max_tokens}: not even an end token fits")
        if trie is not None and not isinstance(trie, SuccessTrie):
            raise TypeError(f"trie is {trie!r}: give a SuccessTrie, or None for a new one")
        if trie is not None and trie.max_tokens != max_tokens:
            raise ArgumentError(
                f"the trie was learnt for max_tokens {trie.max_tokens}, not {max_tokens}: theta depends on it"
            )
        self.lm, self.constraint, self.vocabulary = lm, constraint, constraint.vocabulary
        self.trie = SuccessTrie(max_tokens) if trie is None else trie
        self.trie.belongs_to(constraint, validated=accepts is not None or viable is not None)
        self.max_tokens, self.accepts, self.viable = max_tokens, accepts, viable
        self.calls = self.rows = self.masks = self.checks = self.steps = 0

    def distributions_at(self, positions: Sequence[tuple[TrieNode, Matcher]]) -> list[PrefixDistribution]:
        """Return the distributions at nodes; those that are not cached are computed with one call of the model."""
        self.steps += len(positions)
        distributions = [self.trie.cached_distribution(node) for node, _ in positions]
        missing: dict[TrieNode, list[int]] = {}
        for i, (node, _) in enumerate(positions):
            if distributions[i] is None:
                missing.setdefault(node, []).append(i)
        requests = []
        for node, indices in missing.items():
            matcher = positions[indices[0]][1]
            if not self.is_viable(node, matcher):
                for i in indices:
                    distributions[i] = NOTHING
            else:
                requests.append((node, indices, matcher))
        if requests:
            rows = rows_after(self.lm, [matcher.tokens for _, _, matcher in requests], self.vocabulary.size)
            self.calls, self.rows = self.calls + 1, self.rows + len(requests)
            for (node, indices, matcher), row in zip(requests, rows):
                distribution = build_prefix_distribution(row, self.allowed(node, matcher), self.vocabulary.eos_ids)
                self.trie.cache_distribution(node, distribution)
                for i in indices:
                    distributions[i] = distribution
        return [distribution for distribution in distributions if distribution is not None]

    def allowed(self, node: TrieNode, matcher: Matcher) -> NDArray[np.int64]:
        """Return the tokens that the mask allows (int64 [k]); only end tokens at the last position."""
        self.masks += 1
        allowed = allowed_tokens(matcher.mask(None))
        return allowed[np.isin(allowed, self.vocabulary.eos_ids)] if node.depth + 1 >= self.max_tokens else allowed

    def is_viable(self, node: TrieNode, matcher: Matcher) -> bool:
        """Return whether the prefix can be continued: from its bound, and at the first visit from the validator of
        prefixes and from the number of tokens left.
        """
        if self.viable is not None and not node.visited:
            if not self.call_validator(self.viable, matcher):
                self.trie.close(node, 0.0)
        if node.depth + 1 >= self.max_tokens and not node.visited and not matcher.is_complete:
            self.trie.close(node, 0.0)  # only an end token would be in time: whatever the model says, nothing follows
            record = getattr(self.lm, "record_dead_end", None)
            if record is not None:
                record(matcher.tokens)
        return not (node.visited and node.theta == 0)

    def is_success(self, end: TrieNode, matcher: Matcher) -> bool:
        """Return whether a text that the mask allows to end can be accepted, see `rate_success`."""
        return self.rate_success(end, matcher) > 0

    def rate_success(self, end: TrieNode, matcher: Matcher) -> float:
        """Return the probability with which a text that the mask allows to end is accepted, divided by theta of its
        node END when that was chosen. The former is stored as theta of that node.
        """
        used = end.theta
        if not end.visited:
            accepted = 1.0
            if self.accepts is not None:
                accepted = self.call_validator(self.accepts, matcher)
            self.trie.close(end, accepted)
        return end.theta / used if used > 0 else 0.0

    def call_validator(self, validator: Validator, matcher: Matcher) -> float:
        """Call a validator with the text so far; return 1 or 0, or the probability that it returns.

        Raise ConstrainError if the call fails, ArgumentError for another float, or where a critic (`critics.Guide`)
        says what is wrong.
        """
        text = self.text_bytes(matcher.tokens)
        self.checks += 1
        try:
            answer = validator(text)
            if isinstance(answer, (float, np.floating)):
                if not 0 <= answer <= 1:
                    raise ArgumentError(f"the validator gives {text[-60:]!r} {answer}, which is not a probability")
                return float(answer)
            return float(read_verdict("the validator", text, answer))
        except ArgumentError:
            raise
        except Exception as error:
            raise ConstrainError(
                f"the validator failed on {text[-60:]!r}: {error.__class__.__name__}: {error}",
                hint="A validator must return True or False for every text: catch its exceptions and return False.",
            ) from error

    def text_bytes(self, tokens: Sequence[int]) -> bytes:
        """Return the bytes of some tokens."""
        return b"".join(self.vocabulary.tokens[token] or b"" for token in tokens)

    def no_text_error(self) -> LimitError:
        """Return the error for a constraint that no text of positive probability satisfies."""
        return make_no_text_error(self.constraint, self.max_tokens)

    @property
    def stats(self) -> dict[str, float]:
        """Counts by name: model_calls, rows computed in them, masks, steps (nodes visited), checks (calls of
        validators), and bound, an upper bound of p(L).
        """
        return {
            "model_calls": self.calls, "rows": self.rows, "masks": self.masks, "steps": self.steps,
            "checks": self.checks, "bound": self.trie.bound, "trie_bytes": self.trie.nbytes,
        }  # fmt: skip


NOTHING = PrefixDistribution(np.zeros(0, np.int64), np.zeros(0))


def make_no_text_error(constraint: Any, max_tokens: int) -> LimitError:
    """Return the error for a constraint that no text of positive probability satisfies within max_tokens."""
    return explain_short_limit(constraint, max_tokens) or LimitError(
        f"no text of at most {max_tokens} tokens satisfies the constraint with any probability",
        hint="Raise max_tokens, or check which texts the model and the validator reject. Probabilities below 1e-308 "
        "count as none here, as those of a temperature near 0 may be: sampler='smc' adds logarithms.",
    )


class Walk:
    """One walk. used: theta of the node when it was chosen; logprob: of the tokens so far; logratio: sum of the logs of
    m / used, where the factor of the root is m itself.
    """

    def __init__(self, source: DistributionSource) -> None:
        self.source, self.trie = source, source.trie
        self.restart()

    def restart(self) -> None:
        """Return to the root."""
        self.node: TrieNode = self.trie.root
        self.matcher = self.source.constraint.matcher()
        self.used, self.logprob, self.logratio = 1.0, 0.0, 0.0

    def visit(self, distribution: PrefixDistribution) -> float:
        """Update the bound at this node. Return the factor m / used, at most 1 (m itself at the root)."""
        self.weights = self.trie.weights(self.node, distribution)
        ratio = min(self.trie.visit(self.node, self.weights) / self.used, 1.0)
        self.logratio += float(np.log(ratio)) if ratio > 0 else -np.inf
        return ratio

    def choose(self, distribution: PrefixDistribution, rng: np.random.Generator) -> bool | None:
        """Choose a token at a node that was just visited (m > 0). Return None to continue, else whether the ended text
        succeeded.
        """
        index = draw_index(self.weights, rng)
        self.logprob += float(np.log(distribution.probs[index]))
        child = self.trie.child(self.node, distribution, index)
        if child.token == END:
            rate = self.source.rate_success(child, self.matcher)
            return rate > 0 and (rate >= 1 or rng.random() < rate)
        self.node, self.used = child, child.theta
        self.matcher.advance(child.token)
        return None

    def draw(self, log_weight: float) -> Draw:
        """Return the current text as a Draw; one of weight 0 did not end and has logprob -inf."""
        tokens = tuple(self.matcher.tokens)
        logprob = self.logprob if log_weight > -np.inf else -np.inf
        return Draw(tokens, self.source.vocabulary.decode(tokens), logprob, log_weight)


def build_prefix_distribution(
    row: NDArray[np.floating[Any]], allowed: NDArray[np.int64], ends: Sequence[int]
) -> PrefixDistribution:
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
        return PrefixDistribution(allowed, probs)
    tokens = np.concatenate(([END], allowed[~ending]))
    return PrefixDistribution(tokens, np.concatenate(([probs[ending].sum()], probs[~ending])))
