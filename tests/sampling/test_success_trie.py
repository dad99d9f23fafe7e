"""The trie of success mass: always a bound, exact where all was seen, sound after evictions, the same after loading."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from constrain.base.errors import ArgumentError, SourceError, UnsupportedError
from constrain.sampling import asap, trie_rejection
from constrain.sampling.checkers import ValidatorChecker
from constrain.sampling.post_filtering import PostFilter
from constrain.sampling.success_trie import (
    END,
    NODE_BYTES,
    PrefixDistribution,
    SuccessTrie,
    TrieNode,
    digest,
    is_trie,
    trie_key,
)
from tests.markov_factory import Case, cases

NAMES = list(cases())


def learnt(case: Case, n: int, seed: int = 0, max_bytes: int = 1 << 24) -> SuccessTrie:
    trie = SuccessTrie(case.max_tokens, max_bytes=max_bytes)
    asap.draw_asap(
        case.lm, case.constraint, n=n, rng=np.random.default_rng(seed), max_tokens=case.max_tokens, trie=trie
    )
    return trie


def future(case: Case) -> Callable[[TrieNode], float]:
    """h of any node, from the enumerated distribution: the mass of the texts after a prefix over the mass of the
    prefix.
    """
    law, rows = case.law(), np.exp(case.lm.logs)

    def h(node: TrieNode) -> float:
        path = node.path()
        if path and path[-1] == END:
            return float(path[:-1] in law)
        reach = math.prod(rows[case.lm.context(path[:i]), token] for i, token in enumerate(path))
        return math.fsum(p for text, p in law.items() if text[: len(path)] == path) / reach

    return h


def consistent(trie: SuccessTrie) -> bool:
    """Whether every theta is the sum that defines it."""
    return all(node.theta == pytest.approx(node.added(), rel=1e-12, abs=1e-300) for node in trie.nodes())


@pytest.mark.parametrize("name", NAMES)
def test_theta_is_a_bound_and_the_sum_of_its_children(name: str) -> None:
    case = cases()[name]
    trie = learnt(case, 60)
    h = future(case)
    assert consistent(trie)
    assert trie.size == len(list(trie.nodes()))
    for node in trie.nodes():
        assert 0 <= h(node) <= node.theta * (1 + 1e-9) <= 1 + 1e-6


@pytest.mark.parametrize("name", ["counting", "sums", "single", "tiny mass"])
def test_theta_comes_down_to_the_truth(name: str) -> None:
    """When every prefix that the mask lets through was seen, theta is h; each draw only lowers it."""
    case = cases()[name]
    trie, before = SuccessTrie(case.max_tokens), 1.0
    rng = np.random.default_rng(3)
    for _ in range(40):
        trie_rejection.draw_exact(case.lm, case.constraint, n=20, rng=rng, max_tokens=case.max_tokens, trie=trie)
        assert trie.bound <= before
        before = trie.bound
    assert trie.bound == pytest.approx(case.z, rel=0.05)
    h = future(case)
    for node in trie.nodes():
        if node.rest == 0 and all(child.rest == 0 for child in node.children.values()):
            assert node.theta <= 1
        if node.parent is not None and not node.children and node.token == END:
            assert node.theta == h(node)


def test_evicted_prefixes_count_in_full_again() -> None:
    """Little memory: nodes go, theta stays a bound and a sum, and draws stay within the budget."""
    case = cases()["palindromes"]
    trie = learnt(case, 400)
    h, bound, size = future(case), trie.bound, trie.size
    trie.max_bytes = 40 * NODE_BYTES
    assert trie.full
    trie.evict_nodes()
    assert trie.size == len(list(trie.nodes())) == 20 < size
    assert not trie.full
    assert bound < trie.bound < 1
    assert consistent(trie)
    assert all(h(node) <= node.theta + 1e-12 for node in trie.nodes())
    small = learnt(case, 500, max_bytes=1 << 16)
    assert small.nbytes <= (1 << 16) + case.max_tokens * NODE_BYTES
    assert small.bound >= case.z


def test_the_least_important_nodes_are_evicted_first() -> None:
    """The nodes that are left hold nearly all of the decrease of theta(root)."""
    case = cases()["counting"]
    trie = learnt(case, 400)
    down, size = 1 - trie.bound, trie.size
    trie.max_bytes = size * NODE_BYTES  # half of the nodes stay
    trie.evict_nodes()
    assert trie.size == size // 2
    assert 1 - trie.bound > 0.9 * down


def test_distributions_are_dropped_before_nodes() -> None:
    trie = SuccessTrie(4, max_bytes=1 << 16)
    nodes = [trie.root, *(TrieNode(trie.root, i, 0.1) for i in range(3))]
    law = PrefixDistribution(np.arange(2000), np.full(2000, 1e-4))  # 32 kB: two fit
    for node in nodes:
        trie.cache_distribution(node, law)
    assert [trie.cached_distribution(node) is not None for node in nodes] == [False, False, True, True]
    assert trie.nbytes <= 1 << 16


def test_a_trie_is_saved_and_loaded_without_pickle(tmp_path: Path) -> None:
    case = cases()["pieces"]
    trie, path = learnt(case, 50), tmp_path / "trie.npz"
    trie.key = "the key"
    trie.save(path)
    again = SuccessTrie.load(path, key="the key")
    assert [(n.path(), n.prob, n.theta, n.rest) for n in again.nodes()] == [
        (n.path(), n.prob, n.theta, n.rest) for n in trie.nodes()
    ]
    assert (again.size, again.max_tokens, again.bound) == (trie.size, trie.max_tokens, trie.bound)
    more = {"n": 20, "max_tokens": case.max_tokens}
    draws = [
        list(trie_rejection.draw_exact(case.lm, case.constraint, rng=np.random.default_rng(1), trie=t, **more))
        for t in (trie, again)
    ]
    assert draws[0] == draws[1]
    with pytest.raises(SourceError, match="another model, prompt or constraint"):
        SuccessTrie.load(path, key="another")
    data = path.read_bytes()
    for wrong in (data[: len(data) // 2], b"", b"no archive at all", data.replace(b"masses", b"messes")):
        path.write_bytes(wrong)
        with pytest.raises(SourceError, match="Remove it"):
            SuccessTrie.load(path, key="the key")
    with pytest.raises(FileNotFoundError):
        SuccessTrie.load(tmp_path / "none", key="")


def test_a_file_that_was_made_up_is_no_trie(tmp_path: Path) -> None:
    """The digest is right, the tree is not."""
    trie, path = learnt(cases()["pieces"], 20), tmp_path / "trie.npz"
    trie.save(path)
    with np.load(path) as file:
        head, good = json.loads(str(file["head"])), {name: file[name] for name in ("parents", "tokens", "masses")}

    def written(**changed: np.ndarray) -> None:
        arrays = {**good, **changed}
        named = {**head, "digest": digest(*(arrays[name] for name in ("parents", "tokens", "masses")))}
        np.savez(path, head=np.array(json.dumps(named)), **arrays)

    written()
    assert SuccessTrie.load(path, key="").size == trie.size
    for name, place, value in [
        ("parents", 3, 7), ("parents", 2, -5), ("parents", 0, 0), ("tokens", 1, -9), ("masses", (1, 0), math.nan),
        ("masses", (2, 1), 5.0), ("masses", (2, 2), -3.0),
    ]:  # fmt: skip
        wrong = good[name].copy()
        wrong[place] = value
        written(**{name: wrong})
        with pytest.raises(SourceError, match="Remove it"):
            SuccessTrie.load(path, key="")
    twice = {name: np.concatenate([good[name], good[name][-1:]]) for name in good}
    written(**twice)
    with pytest.raises(SourceError, match="Remove it"):
        SuccessTrie.load(path, key="")


def arrays(**changed: object) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Those of a root, two children, and one below the second, all of them (prob, theta, rest)."""
    given = {"parents": [-1, 0, 0, 2], "tokens": [END, END, 3, END], "prob": 0.5, "theta": 0.5, "rest": 0.5, **changed}
    masses = np.full((4, 3), [given[name] for name in ("prob", "theta", "rest")], np.float64)
    return np.array(given["parents"], np.int32), np.array(given["tokens"], np.int32), masses


@pytest.mark.parametrize(
    ("right", "changed"),
    [
        *[(True, {name: value}) for name in ("prob", "theta", "rest") for value in (0.0, 0.5, 1.0, 1.0 + 1e-9)],
        *[(False, {name: value}) for name in ("prob", "theta", "rest") for value in (1.5, -1.5, math.nan, math.inf)],
        (False, {"prob": -0.1}), (False, {"theta": -0.1}), (True, {"rest": -1.0}),
        (True, {"parents": [-1, 0, 1, 2]}), (False, {"parents": [0, 0, 1, 2]}), (False, {"parents": [-1, -1, 0, 0]}),
        (False, {"parents": [-1, 1, 0, 0]}), (False, {"parents": [-1, 0, 0, 3]}), (False, {"parents": [-1, 0, 3, 0]}),
        (False, {"tokens": [END, 3, 3, END]}), (False, {"tokens": [END, END - 1, 3, END]}),
        (True, {"tokens": [END, 2**31 - 1, 0, 2**31 - 1]}), (False, {"parents": [-1, 0, 0, 0]}),
    ],
)  # fmt: skip
def test_is_trie_validates_saved_arrays(right: bool, changed: dict[str, object]) -> None:
    assert is_trie(*arrays(**changed), 1) == right


def test_arrays_have_their_shapes_and_types() -> None:
    good = arrays()
    assert is_trie(*good, 1)
    assert not is_trie(*good, 0)
    assert not is_trie(*(one[:0] for one in good), 1)
    for i, wrong in enumerate([one[:3] for one in good]):
        assert not is_trie(*(wrong if j == i else one for j, one in enumerate(good)), 1)
    for i, kind in enumerate([np.int64, np.int64, np.float32]):
        assert not is_trie(*(one.astype(kind) if j == i else one for j, one in enumerate(good)), 1)
    root = tuple(one[:1] for one in good)
    assert is_trie(*root, 1)


USES: dict[str, tuple[bool, bool]] = {
    "alone": (False, False), "judged": (False, True), "guarded": (True, False), "both": (True, True),
}  # fmt: skip


@pytest.mark.parametrize("later", USES)
@pytest.mark.parametrize("first", USES)
def test_a_trie_is_used_with_validators_or_without(first: str, later: str) -> None:
    """Validators given as arguments or attached to the constraint are equivalent."""
    constraint = cases()["counting"].constraint
    guarded: Any = PostFilter(constraint, ValidatorChecker(constraint.vocabulary, lambda text: True))
    trie = SuccessTrie(4)
    behind, judged = USES[first]
    trie.belongs_to(guarded if behind else constraint, validated=judged)
    behind, judged = USES[later]
    if any(USES[first]) == any(USES[later]):
        trie.belongs_to(guarded if behind else constraint, validated=judged)
    else:
        with pytest.raises(ArgumentError, match="with a validator" if any(USES[first]) else "without a validator"):
            trie.belongs_to(guarded if behind else constraint, validated=judged)


def test_saving_is_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trie, path = learnt(cases()["pieces"], 20), tmp_path / "trie.npz"
    trie.save(path)
    before = path.read_bytes()

    def breaks(file: IO[bytes], **arrays: object) -> None:
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", breaks)
    with pytest.raises(OSError, match="no space"):
        trie.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_saved_trie_is_opened_or_a_new_one(tmp_path: Path) -> None:
    """`asap` learns, `exact` continues with it in another session; a trie that is too large evicts nodes."""
    case, path = cases()["counting"], tmp_path / "trie.npz"
    given = {"n": 200, "max_tokens": case.max_tokens}
    trie = SuccessTrie.open(path, key="k", max_tokens=case.max_tokens)
    cold = trie_rejection.draw_exact(case.lm, case.constraint, rng=np.random.default_rng(1), **given)
    asap.draw_asap(case.lm, case.constraint, rng=np.random.default_rng(0), trie=trie, **given)
    trie.save(path)
    again = SuccessTrie.open(path, key="k", max_tokens=case.max_tokens)
    warm = trie_rejection.draw_exact(case.lm, case.constraint, rng=np.random.default_rng(1), trie=again, **given)
    assert warm.stats["attempts"] < cold.stats["attempts"]
    with pytest.raises(SourceError, match="max_tokens"):
        SuccessTrie.open(path, key="k", max_tokens=3)
    big = learnt(cases()["tiny mass"], 200)
    big.save(path)
    small = SuccessTrie.load(path, key="", max_bytes=1 << 16)
    assert big.size * NODE_BYTES > 1 << 16 >= small.size * NODE_BYTES
    assert small.bound >= big.bound


def test_keys_cover_everything_that_theta_depends_on() -> None:
    one, other = cases()["counting"].constraint, cases()["pieces"].constraint
    keys = {
        trie_key(one, model="a"), trie_key(one, model="b"), trie_key(other, model="a"),
        trie_key(one, model="a", prompt="x"), trie_key(one, model="a", validators="x"),
    }  # fmt: skip
    assert len(keys) == 5
    assert trie_key(one, model="a") == trie_key(one, model="a")
    assert all(re.fullmatch("[0-9a-f]{32}", key) for key in keys)
    with pytest.raises(UnsupportedError, match="no source"):
        trie_key(cases()["brackets"].constraint, model="a")


def test_budgets_must_make_sense() -> None:
    for wrong in ({"max_tokens": 0}, {"max_tokens": 3, "max_bytes": 10}):
        with pytest.raises(ValueError, match="max_tokens is 1 or more"):
            SuccessTrie(**wrong)
