"""SuccessTrie: upper bounds on the probability that prefixes can be completed, learnt from the prefixes visited so far.

Masking ignores h(u) = P(the text ends in L | prefix u). A node stores a bound theta(u) >= h(u): 1 before the first
visit, 0 for dead prefixes, and after a visit the sum over next tokens a of p(a | u) theta(ua). Every visit lowers theta
at the node and at its ancestors, so theta(root) is an upper bound of p(L) that converges to it. Source: GAD (Park et
al. 2024, section 4). The samplers `asap`, `trie_rejection` and `without_replacement` use it.

A node stores only its visited children, and the mass of all others as one number, so that all sums have positive terms.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
from numpy.typing import NDArray

from ..base.errors import ArgumentError, SourceError, UnsupportedError, check_type
from ..engine.constraint import Constraint
from .core.sampler_arguments import check_counts

__all__ = ["END", "PrefixDistribution", "TrieNode", "SuccessTrie", "trie_key"]

FORMAT = "constrain success trie 1"
END = -1
"""Pseudo-token for all end tokens, which count as one event."""
NODE_BYTES = 450
"""Estimated memory of a TrieNode, with its entry in the parent's dict (measured: 380 to 440 bytes)."""
KEPT = 0.5
"""Share of the budget that remains in use after an eviction; evictions are then too rare to matter."""
SMALLEST = 1e-200
"""Lower limit of bounds other than 0: products of bounds and probabilities must not underflow, or unlikely prefixes
would be treated as dead. A bound that is too large costs attempts, not exactness."""
STALE = 0.5
"""A sum that subtractions have reduced below this share of itself is recomputed, to limit rounding errors."""


class PrefixDistribution:
    """The model's distribution over the allowed next tokens of a prefix.

    tokens: int64 [k], ascending, END first if the text may end. probs: float64 [k], not renormalised: they sum to the
    allowed mass.
    """

    __slots__ = ("probs", "tokens")

    def __init__(self, tokens: NDArray[np.int64], probs: NDArray[np.float64]) -> None:
        self.tokens, self.probs = tokens, probs

    @property
    def nbytes(self) -> int:
        """Size of both arrays in bytes."""
        return int(self.tokens.nbytes + self.probs.nbytes)


class TrieNode:
    """A visited prefix, or the END of one.

    prob: p(token | parent); theta: upper bound of h; rest: mass of the children that were not visited, negative before
    the first visit; exact: theta when it was last recomputed; children: by token; depth: number of tokens from the
    root.
    """

    __slots__ = ("children", "depth", "exact", "parent", "prob", "rest", "theta", "token")

    def __init__(self, parent: TrieNode | None, token: int, prob: float) -> None:
        self.parent, self.token, self.prob = parent, token, prob
        self.theta = self.exact = 1.0
        self.rest = -1.0  # not visited
        self.children: dict[int, TrieNode] = {}
        self.depth: int = 0 if parent is None else parent.depth + 1

    @property
    def visited(self) -> bool:
        """Whether the distribution at this node was seen (for END: whether the text was checked)."""
        return self.rest >= 0

    def added(self) -> float:
        """Compute theta from its definition, as a sum of positive terms."""
        return self.rest + sum(child.prob * child.theta for child in self.children.values())

    def path(self) -> tuple[int, ...]:
        """Return the tokens from the root, END included."""
        tokens: list[int] = []
        node: TrieNode | None = self
        while node is not None and node.parent is not None:
            tokens.append(node.token)
            node = node.parent
        return tuple(reversed(tokens))


class SuccessTrie:
    """Success masses learnt for one model, prompt and Constraint (with validators, if any).

    Nodes and cached distributions share the budget max_bytes. Distributions are evicted first, in LRU order;
    `evict_nodes` evicts nodes between walks, those that lower theta(root) least first. Neither invalidates a bound.

    Parameters
    ----------
    max_tokens : int
        Maximum number of tokens of a text, end token included.
    key : str
        Identifies model, prompt and constraint, see `trie_key`; checked by `load`.
    max_bytes : int
        Memory budget, at least 65536.
    """

    def __init__(self, max_tokens: int, *, key: str = "", max_bytes: int = 256 << 20) -> None:
        check_counts(0, max_tokens=max_tokens, max_bytes=max_bytes)
        if max_tokens < 1 or max_bytes < 1 << 16:
            raise ArgumentError(f"max_tokens is 1 or more, max_bytes 65536 or more, not {max_tokens} and {max_bytes}")
        self.max_tokens, self.key, self.max_bytes = max_tokens, key, max_bytes
        self._of: tuple[object, str, bool] | None = None
        self.root = TrieNode(None, END, 1.0)
        self.size = 1
        self._distributions: OrderedDict[TrieNode, PrefixDistribution] = OrderedDict()
        self._distribution_bytes = 0

    @property
    def bound(self) -> float:
        """theta(root), an upper bound of p(L), where L contains only texts that end within max_tokens."""
        return self.root.theta

    @property
    def nbytes(self) -> int:
        """Approximate size of nodes and cached distributions in bytes."""
        return self.size * NODE_BYTES + self._distribution_bytes

    @property
    def full(self) -> bool:
        """Whether the nodes alone exceed max_bytes, so that `evict_nodes` should be called."""
        return self.size * NODE_BYTES > self.max_bytes

    def belongs_to(self, constraint: Constraint, *, validated: bool) -> None:
        """Bind the trie to a Constraint at first use; afterwards raise ValueError if it is used with another one.

        validated: whether validators are applied in addition. The vocabulary is compared too. Other models and other
        validators are not detected; only a key distinguishes them.
        """
        first = getattr(constraint, "first", constraint)
        source = getattr(first, "source", None)
        validated = validated or first is not constraint
        identity = source or getattr(first, "grammar", first), first.vocabulary.fingerprint, validated
        if self._of is None:
            self._of = identity
        bound_to = self._of
        if bound_to[0] is not identity[0] and not (source and bound_to[0] == source):
            raise ArgumentError("the trie was learnt under another constraint: use a separate trie for each")
        if bound_to[1] != identity[1]:
            raise ArgumentError("the trie was learnt for another vocabulary: use a separate trie for each")
        if bound_to[2] != identity[2]:
            learnt = "with" if bound_to[2] else "without"
            raise ArgumentError(f"the trie was learnt {learnt} a validator: use a separate trie for each")

    # ---- learning ----------------------------------------------------------------------------------------------------

    def weights(self, node: TrieNode, distribution: PrefixDistribution) -> NDArray[np.float64]:
        """Return p(a | u) theta(ua) for each token of the distribution at a node: float64 [k]."""
        weights: NDArray[np.float64] = distribution.probs.copy()
        if node.children:
            index = np.searchsorted(distribution.tokens, list(node.children))
            weights[index] *= [child.theta for child in node.children.values()]
        return weights

    def visit(self, node: TrieNode, weights: NDArray[np.float64]) -> float:
        """Lower theta(u) to the sum of `weights`, and the bounds of its ancestors accordingly. Return the smaller of
        both.
        """
        theta = float(weights.sum())
        if not node.visited:
            node.rest = theta
        self.lower(node, theta)
        node.exact = node.theta
        return min(theta, node.theta)

    def lower(self, node: TrieNode, theta: float) -> None:
        """Lower theta of a node to a smaller bound and update its ancestors; do nothing if the bound is not smaller."""
        while (theta := floor_theta(theta)) < node.theta:
            parent, less = node.parent, node.prob * (node.theta - theta)
            node.theta = theta
            if parent is None:
                return
            theta = max(parent.theta - less, 0.0)
            if theta < STALE * parent.exact:
                theta = parent.exact = min(parent.added(), parent.theta)
            node = parent

    def child(self, node: TrieNode, distribution: PrefixDistribution, index: int) -> TrieNode:
        """Return the child for distribution.tokens[index]; create it with theta = 1 if it does not exist."""
        token = int(distribution.tokens[index])
        child = node.children.get(token)
        if child is None:
            child = node.children[token] = TrieNode(node, token, float(distribution.probs[index]))
            self.size += 1
            others = distribution.probs.copy()
            others[np.searchsorted(distribution.tokens, list(node.children))] = 0.0
            node.rest = float(others.sum())
        return child

    def close(self, node: TrieNode, success: float) -> None:
        """Set the known success probability of a leaf: 1 or 0 for a checked END, 0 for a dead prefix."""
        node.rest = success
        self.lower(node, success)

    # ---- cached distributions ----------------------------------------------------------------------------------------

    def cached_distribution(self, node: TrieNode) -> PrefixDistribution | None:
        """Return the cached distribution at a node, or None."""
        distribution = self._distributions.get(node)
        if distribution is not None:
            self._distributions.move_to_end(node)
        return distribution

    def cache_distribution(self, node: TrieNode, distribution: PrefixDistribution) -> None:
        """Cache the distribution at a node, so that the next visit needs no call of the model; evict the least recently
        used ones.
        """
        if node not in self._distributions:
            self._distributions[node] = distribution
            self._distribution_bytes += distribution.nbytes
        while self._distributions and self.nbytes > self.max_bytes:
            self._distribution_bytes -= self._distributions.popitem(last=False)[1].nbytes

    # ---- eviction ----------------------------------------------------------------------------------------------------

    def nodes(self) -> Iterator[TrieNode]:
        """Iterate over all nodes, parents first."""
        level = [self.root]
        while level:
            yield from level
            level = [child for node in level for child in node.children.values()]

    def evict_nodes(self) -> None:
        """Evict nodes until KEPT of max_bytes is left. Must not be called during a walk, which relies on its bounds.

        A node lowers theta(root) by P(prefix) (1 - theta), which is at least the sum of the same over its children.
        Evicting the nodes with the smallest contribution therefore never removes an ancestor of a node that stays. All
        bounds are then recomputed bottom-up.
        """
        nodes = list(self.nodes())
        capacity = int(KEPT * self.max_bytes / NODE_BYTES)
        if len(nodes) <= capacity:
            return
        reach = {self.root: 1.0}
        for node in nodes[1:]:
            assert node.parent is not None
            reach[node] = reach[node.parent] * node.prob
        gain = [-reach[node] * (1 - node.theta) for node in nodes]
        gain[0] = -np.inf
        retained = {nodes[i] for i in np.argsort(gain, kind="stable")[:capacity]}
        for node in reversed(nodes):
            if node in retained:
                evicted = [child for child in node.children.values() if child not in retained]
                for child in evicted:
                    del node.children[child.token]
                    node.rest += child.prob
                if node.children or evicted:
                    node.theta = node.exact = min(floor_theta(node.added()), 1.0)
            elif (distribution := self._distributions.pop(node, None)) is not None:
                self._distribution_bytes -= distribution.nbytes
        self.size = len(retained)

    # ---- on disk -----------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the nodes to a file in numpy's .npz format, without pickled objects. Cached distributions are not
        saved.

        The file is replaced atomically.
        """
        nodes = list(self.nodes())
        number = {node: i for i, node in enumerate(nodes)}
        parents = np.array([-1 if node.parent is None else number[node.parent] for node in nodes], np.int32)
        tokens = np.array([node.token for node in nodes], np.int32)
        masses = np.array([(node.prob, node.theta, node.rest) for node in nodes], np.float64)
        header = {"format": FORMAT, "key": self.key, "max_tokens": self.max_tokens}
        header["digest"] = digest(parents, tokens, masses)
        target = Path(path)
        with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                np.savez(file, head=np.array(json.dumps(header)), parents=parents, tokens=tokens, masses=masses)
                file.close()
                os.replace(file.name, target)
            except BaseException:
                file.close()
                Path(file.name).unlink(missing_ok=True)
                raise

    @classmethod
    def load(cls, path: str | PathLike[str], *, key: str, max_bytes: int = 256 << 20) -> SuccessTrie:
        """Read a file that `save` wrote. If the trie exceeds max_bytes, evict nodes as `evict_nodes` does.

        Raises
        ------
        OSError
            If the file cannot be read.
        SourceError
            If the file is damaged, or its key is not `key`.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                header = json.loads(str(file["head"]))
                parents, tokens, masses = file["parents"], file["tokens"], file["masses"]
            intact = header["format"] == FORMAT and header["digest"] == digest(parents, tokens, masses)
            intact = intact and is_trie(parents, tokens, masses, int(header["max_tokens"]))
        except OSError:
            raise
        except Exception:  # numpy and zipfile raise many types for files of other formats
            raise SourceError(
                f"{path} is not a success trie that `SuccessTrie.save` wrote.",
                hint="Remove it; the next call learns a new one.",
            ) from None
        if not intact:
            raise SourceError(
                f"{path} is damaged or of another version.", hint="Remove it; the next call learns a new one."
            )
        if header["key"] != key:
            raise SourceError(
                f"{path} was learnt under another model, prompt or constraint, as its key shows.",
                hint="Give another path.",
            )
        trie = cls(int(header["max_tokens"]), key=key, max_bytes=max_bytes)
        nodes = [trie.root]
        for parent, token, (prob, theta, rest) in zip(parents.tolist(), tokens.tolist(), masses.tolist()):
            node = trie.root if parent < 0 else TrieNode(nodes[parent], token, prob)
            if parent >= 0:
                nodes[parent].children[token] = node
                nodes.append(node)
            node.theta, node.exact, node.rest = theta, theta, rest
        trie.size = len(nodes)
        if trie.full:
            trie.evict_nodes()
        return trie

    @classmethod
    def open(cls, path: str | PathLike[str], *, key: str, max_tokens: int, max_bytes: int = 256 << 20) -> SuccessTrie:
        """Load the trie at `path` if the file exists; otherwise make a new one.

        Raises
        ------
        SourceError
            As `load`, and if the saved trie is for a different max_tokens, which theta depends on.
        """
        if not Path(path).exists():
            return cls(max_tokens, key=key, max_bytes=max_bytes)
        trie = cls.load(path, key=key, max_bytes=max_bytes)
        if trie.max_tokens != max_tokens:
            raise SourceError(f"{path} was learnt for max_tokens {trie.max_tokens}, not {max_tokens}.")
        return trie


def is_trie(
    parents: NDArray[np.generic], tokens: NDArray[np.generic], masses: NDArray[np.generic], max_tokens: int
) -> bool:
    """Return whether loaded arrays form a valid trie.

    The digest of the file does not show this: it detects damage, not who wrote the file.
    """
    n = len(parents)
    if not (parents.shape == tokens.shape == (n,) and masses.shape == (n, 3) and n > 0 and masses.dtype == np.float64):
        return False
    if parents.dtype != np.int32 or tokens.dtype != np.int32 or max_tokens < 1 or not np.isfinite(masses).all():
        return False
    above, named = parents[1:].astype(np.int64), tokens[1:].astype(np.int64)
    if parents[0] != -1 or (above < 0).any() or (above >= np.arange(1, n)).any() or (named < END).any():
        return False
    prob, theta, rest = masses.T
    pairs = above << 32 | named + 1
    in_range = ((prob >= 0) & (prob <= 1.01) & (theta >= 0) & (theta <= 1.01) & (rest >= -1) & (rest <= 1.01)).all()
    return bool(in_range) and len(np.unique(pairs)) == len(pairs)


def floor_theta(theta: float) -> float:
    """Return theta, raised to SMALLEST if it is smaller but not 0."""
    return SMALLEST if 0 < theta < SMALLEST else theta


def digest(*arrays: NDArray[np.generic]) -> str:
    """Return a digest of the bytes of some arrays."""
    hasher = blake2b(digest_size=16)
    for array in arrays:
        hasher.update(np.ascontiguousarray(array).tobytes())
    return hasher.hexdigest()


def trie_key(constraint: Constraint, *, model: str, prompt: str = "", validators: str = "") -> str:
    """Return a key for a `SuccessTrie`, computed from everything that theta depends on.

    Parameters
    ----------
    constraint : Constraint
    model : str
        A name that identifies the model.
    prompt : str
        The prompt.
    validators : str
        A name that identifies the validators.

    Returns
    -------
    str

    Raises
    ------
    UnsupportedError
        If the Constraint was made of Grammar nodes and so has no source text.
    """

    check_type("constraint", constraint, Constraint, "give what constrain.compile returned")
    for name, text in (("model", model), ("prompt", prompt), ("validators", validators)):
        check_type(name, text, str, "give a text that identifies it")
    if constraint.source is None:
        raise UnsupportedError(
            "a constraint made from Grammar nodes has no source to compute a key from",
            hint="Pass key= to SuccessTrie yourself.",
        )
    named = [constraint.source, constraint.vocabulary.fingerprint, model, prompt, validators]
    return blake2b(json.dumps(named, sort_keys=True).encode(), digest_size=16).hexdigest()
