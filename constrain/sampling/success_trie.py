"""SuccessTrie: what is known of the mass that prefixes lose later, learnt from the prefixes that were visited.

h(u) = P(the text ends in L | prefix u) is what masking ignores. A node keeps theta(u) >= h(u): 1 where nobody was yet,
0 where nothing can come, and after a visit the sum over next tokens a of p(a | u) theta(ua). Every visit lowers theta
there and on the way to the root, so theta(root) is a bound from above of p(L) that comes down to it. Source: GAD (Park
et al. 2024, section 4); samplers over it: `asap`, `exact`, `without_replacement`.

A node stores the visited children only, and the mass of all others as one number, so that sums are of positive terms.
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

__all__ = ["END", "PrefixLaw", "TrieNode", "SuccessTrie", "trie_key"]

FORMAT = "constrain success trie 1"
END = -1
"""Stands for all end tokens, which count as one event."""
NODE_BYTES = 450
"""Of a Node with its place in its parent's dict and in memory's grid (measured: 380 to 440)."""
KEPT = 0.5
"""Part of the budget that is kept when nodes are forgotten: seldom enough to cost nothing."""
SMALLEST = 1e-200
"""No bound that is not 0 goes below this: products of bounds and probabilities must stay numbers, or what is hardly
likely is taken for nothing. A bound that is larger than it has to be costs attempts, and no exactness."""
STALE = 0.5
"""A sum that differences brought below this part of itself is added up anew, so that rounding never matters."""


class PrefixLaw:
    """What may come after a prefix. tokens: int64 [k], ascending, END first if the text may end; probs: float64 [k],
    the model's (not renormalised: their sum is what the mask leaves)."""

    __slots__ = ("probs", "tokens")

    def __init__(self, tokens: NDArray[np.int64], probs: NDArray[np.float64]) -> None:
        self.tokens, self.probs = tokens, probs

    @property
    def nbytes(self) -> int:
        """Of both arrays."""
        return int(self.tokens.nbytes + self.probs.nbytes)


class TrieNode:
    """A visited prefix, or END behind one.

    parent, token: where it hangs; prob: p(token | parent); theta: bound of h here; rest: mass of the children that
    were not visited; exact: theta when it was last added up; children: by token; depth: tokens on the way here.
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
        """Whether its law was seen (END is visited once it was checked)."""
        return self.rest >= 0

    def added(self) -> float:
        """theta by its definition: a sum of positive terms."""
        return self.rest + sum(child.prob * child.theta for child in self.children.values())

    def path(self) -> tuple[int, ...]:
        """The tokens from the root, END included."""
        tokens: list[int] = []
        node: TrieNode | None = self
        while node is not None and node.parent is not None:
            tokens.append(node.token)
            node = node.parent
        return tuple(reversed(tokens))


class SuccessTrie:
    """Learnt success mass of one model after one prompt, under one Constraint (and validators), of at most max_tokens
    tokens, end token included. key: what it is of, see `trie_key`; checked when it is loaded.

    max_bytes: of nodes and of laws kept beside them. Laws are dropped first, the longest unused; nodes are forgotten by
    `forget`, when no walk is under way, those first that lower theta(root) least. Both keep every theta a bound.
    """

    def __init__(self, max_tokens: int, *, key: str = "", max_bytes: int = 256 << 20) -> None:
        if max_tokens < 1 or max_bytes < 1 << 16:
            raise ArgumentError(f"max_tokens is 1 or more, max_bytes 65536 or more, not {max_tokens} and {max_bytes}")
        self.max_tokens, self.key, self.max_bytes = max_tokens, key, max_bytes
        self._of: tuple[object, str, bool] | None = None
        self.root = TrieNode(None, END, 1.0)
        self.size = 1
        self._laws: OrderedDict[TrieNode, PrefixLaw] = OrderedDict()
        self._law_bytes = 0

    @property
    def bound(self) -> float:
        """theta(root): p(L) is at most this, for sure (L: the texts that end in time)."""
        return self.root.theta

    @property
    def nbytes(self) -> int:
        """Of nodes and laws, about."""
        return self.size * NODE_BYTES + self._law_bytes

    @property
    def full(self) -> bool:
        """Whether the nodes alone are beyond max_bytes: time to `forget`."""
        return self.size * NODE_BYTES > self.max_bytes

    def belongs_to(self, constraint: Constraint, *, judged: bool) -> None:
        """Whether what is known here is of this Constraint, with validators behind it (judged) or none. The first use
        settles it. Raises ValueError; another model, or other validators, only a key can tell."""
        first = getattr(constraint, "first", constraint)
        source = getattr(first, "source", None)
        judged = judged or first is not constraint
        of = source or getattr(first, "grammar", first), first.vocabulary.fingerprint, judged
        if self._of is None:
            self._of = of
        known = self._of
        if known[0] is not of[0] and not (source and known[0] == source):
            raise ArgumentError("the trie was learnt under another constraint: give each one a trie of its own")
        if known[1] != of[1]:
            raise ArgumentError("the trie was learnt for another vocabulary: give each one a trie of its own")
        if known[2] != of[2]:
            behind = "with" if known[2] else "without"
            raise ArgumentError(f"the trie was learnt {behind} a validator: give each one a trie of its own")

    # ---- learning ----------------------------------------------------------------------------------------------------

    def weights(self, node: TrieNode, law: PrefixLaw) -> NDArray[np.float64]:
        """p(a | u) theta(ua) for each token of its law: float64 [k]."""
        weights: NDArray[np.float64] = law.probs.copy()
        if node.children:
            index = np.searchsorted(law.tokens, list(node.children))
            weights[index] *= [child.theta for child in node.children.values()]
        return weights

    def visit(self, node: TrieNode, weights: NDArray[np.float64]) -> float:
        """theta(u) is now the sum of `weights`, here and on the way up. Returns the sum, or theta if that is less."""
        theta = float(weights.sum())
        if not node.visited:
            node.rest = theta
        self.lower(node, theta)
        node.exact = node.theta
        return min(theta, node.theta)

    def lower(self, node: TrieNode, theta: float) -> None:
        """theta(u) comes down to a smaller bound, and with it those above; a larger one changes nothing."""
        while (theta := floor_theta(theta)) < node.theta:
            parent, less = node.parent, node.prob * (node.theta - theta)
            node.theta = theta
            if parent is None:
                return
            theta = max(parent.theta - less, 0.0)
            if theta < STALE * parent.exact:
                theta = parent.exact = min(parent.added(), parent.theta)
            node = parent

    def child(self, node: TrieNode, law: PrefixLaw, index: int) -> TrieNode:
        """The child by the token at law.tokens[index], new if there is none: theta is 1 until it is visited."""
        token = int(law.tokens[index])
        found = node.children.get(token)
        if found is None:
            found = node.children[token] = TrieNode(node, token, float(law.probs[index]))
            self.size += 1
            others = law.probs.copy()
            others[np.searchsorted(law.tokens, list(node.children))] = 0.0
            node.rest = float(others.sum())
        return found

    def close(self, node: TrieNode, success: float) -> None:
        """What is known for sure of a node that has nothing behind it: END that was checked (1 or 0), a dead prefix."""
        node.rest = success
        self.lower(node, success)

    # ---- laws at hand ------------------------------------------------------------------------------------------------

    def law(self, node: TrieNode) -> PrefixLaw | None:
        """The law at a node, if it is still kept."""
        found = self._laws.get(node)
        if found is not None:
            self._laws.move_to_end(node)
        return found

    def keep(self, node: TrieNode, law: PrefixLaw) -> None:
        """Keep a law as long as there is room: the next visit costs no call of the model."""
        if node not in self._laws:
            self._laws[node] = law
            self._law_bytes += law.nbytes
        while self._laws and self.nbytes > self.max_bytes:
            self._law_bytes -= self._laws.popitem(last=False)[1].nbytes

    # ---- forgetting --------------------------------------------------------------------------------------------------

    def nodes(self) -> Iterator[TrieNode]:
        """All of them, parents first."""
        level = [self.root]
        while level:
            yield from level
            level = [child for node in level for child in node.children.values()]

    def forget(self) -> None:
        """Forget nodes until KEPT of max_bytes is left. Not while a walk is under way: what it was told would not hold.

        A node lowers theta(root) by P(prefix) (1 - theta), which is at least the sum of that over its children; so
        those that lower it least are never above others that stay. Every theta is added up anew, upwards.
        """
        listed = list(self.nodes())
        keep = int(KEPT * self.max_bytes / NODE_BYTES)
        if len(listed) <= keep:
            return
        reach = {self.root: 1.0}
        for node in listed[1:]:
            assert node.parent is not None
            reach[node] = reach[node.parent] * node.prob
        gain = [-reach[node] * (1 - node.theta) for node in listed]
        gain[0] = -np.inf
        staying = {listed[i] for i in np.argsort(gain, kind="stable")[:keep]}
        for node in reversed(listed):
            if node in staying:
                gone = [child for child in node.children.values() if child not in staying]
                for child in gone:
                    del node.children[child.token]
                    node.rest += child.prob
                if node.children or gone:
                    node.theta = node.exact = min(floor_theta(node.added()), 1.0)
            elif (law := self._laws.pop(node, None)) is not None:
                self._law_bytes -= law.nbytes
        self.size = len(staying)

    # ---- on disk -----------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the nodes as arrays (numpy's .npz, nothing that is executed when read); laws are not kept.

        The file appears whole or not at all, also to others that read it: what was there is replaced at the end.
        """
        listed = list(self.nodes())
        number = {node: i for i, node in enumerate(listed)}
        parents = np.array([-1 if node.parent is None else number[node.parent] for node in listed], np.int32)
        tokens = np.array([node.token for node in listed], np.int32)
        masses = np.array([(node.prob, node.theta, node.rest) for node in listed], np.float64)
        head = {"format": FORMAT, "key": self.key, "max_tokens": self.max_tokens}
        head["digest"] = digest(parents, tokens, masses)
        target = Path(path)
        with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                np.savez(file, head=np.array(json.dumps(head)), parents=parents, tokens=tokens, masses=masses)
                file.close()
                os.replace(file.name, target)
            except BaseException:
                file.close()
                Path(file.name).unlink(missing_ok=True)
                raise

    @classmethod
    def load(cls, path: str | PathLike[str], *, key: str, max_bytes: int = 256 << 20) -> SuccessTrie:
        """Reads what `save` wrote. SourceError if it is damaged, or of another model, prompt or constraint than key.

        Where it holds more than max_bytes, the nodes that matter least are forgotten at once, see `forget`.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                head = json.loads(str(file["head"]))
                parents, tokens, masses = file["parents"], file["tokens"], file["masses"]
            intact = head["format"] == FORMAT and head["digest"] == digest(parents, tokens, masses)
            intact = intact and is_trie(parents, tokens, masses, int(head["max_tokens"]))
        except OSError:
            raise
        except Exception as error:  # numpy and zipfile raise a dozen kinds for a file that is none of theirs
            raise SourceError(f"{path} is not a saved trie: {error}.", hint="Remove it; it is learnt anew.") from None
        if not intact:
            raise SourceError(f"{path} is damaged or of another version.", hint="Remove it; it is learnt anew.")
        if head["key"] != key:
            raise SourceError(f"{path} was learnt under another model, prompt or constraint.")
        trie = cls(int(head["max_tokens"]), key=key, max_bytes=max_bytes)
        listed = [trie.root]
        for parent, token, (prob, theta, rest) in zip(parents.tolist(), tokens.tolist(), masses.tolist()):
            node = trie.root if parent < 0 else TrieNode(listed[parent], token, prob)
            if parent >= 0:
                listed[parent].children[token] = node
                listed.append(node)
            node.theta, node.exact, node.rest = theta, theta, rest
        trie.size = len(listed)
        if trie.full:
            trie.forget()
        return trie

    @classmethod
    def open(cls, path: str | PathLike[str], *, key: str, max_tokens: int, max_bytes: int = 256 << 20) -> SuccessTrie:
        """The saved one if there is one, else a new one. SourceError as of `load`, and if it is for another bound of
        tokens: theta depends on it."""
        if not Path(path).exists():
            return cls(max_tokens, key=key, max_bytes=max_bytes)
        trie = cls.load(path, key=key, max_bytes=max_bytes)
        if trie.max_tokens != max_tokens:
            raise SourceError(f"{path} was learnt for max_tokens {trie.max_tokens}, not {max_tokens}.")
        return trie


def is_trie(
    parents: NDArray[np.generic], tokens: NDArray[np.generic], masses: NDArray[np.generic], max_tokens: int
) -> bool:
    """Whether saved arrays are those of a trie: a digest says that they are as written, not who wrote them."""
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
    laws = ((prob >= 0) & (prob <= 1.01) & (theta >= 0) & (theta <= 1.01) & (rest >= -1) & (rest <= 1.01)).all()
    return bool(laws) and len(np.unique(pairs)) == len(pairs)


def floor_theta(theta: float) -> float:
    """SMALLEST for what is less and not 0."""
    return SMALLEST if 0 < theta < SMALLEST else theta


def digest(*arrays: NDArray[np.generic]) -> str:
    """Of their bytes."""
    made = blake2b(digest_size=16)
    for array in arrays:
        made.update(np.ascontiguousarray(array).tobytes())
    return made.hexdigest()


def trie_key(constraint: Constraint, *, model: str, prompt: str = "", validators: str = "") -> str:
    """A key for `SuccessTrie`: of all that theta depends on. model, validators: names that change when they do.

    Raises UnsupportedError for a Constraint made of Grammar nodes, which has no source to be known by.
    """

    check_type("constraint", constraint, Constraint, "give what constrain.compile returned")
    for name, text in (("model", model), ("prompt", prompt), ("validators", validators)):
        check_type(name, text, str, "give a text that changes when it does")
    if constraint.source is None:
        raise UnsupportedError(
            "A constraint made from Grammar nodes has no source to be known by.", hint="Give a key of your own."
        )
    named = [constraint.source, constraint.vocabulary.fingerprint, model, prompt, validators]
    return blake2b(json.dumps(named, sort_keys=True).encode(), digest_size=16).hexdigest()
