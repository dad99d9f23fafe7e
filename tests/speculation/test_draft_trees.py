"""Draft trees: filtered by a constraint, grown best first, merged, and evaluated by a model."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings, strategies as st

from constrain.speculation.draft_filter import filter_tree
from constrain.speculation.draft_source import ROOT, DraftTree, list_paths
from constrain.speculation.tree_growth import append_tree, grow_tree, merge_trees
from tests.markov_factory import cases

CASE = cases()["pieces"]


@st.composite
def trees(draw, most: int = 8, size: int = 8) -> DraftTree:
    """A tree whose siblings differ."""
    tokens: list[int] = []
    parents: list[int] = []
    used: set[tuple[int, int]] = set()
    for _ in range(draw(st.integers(0, most))):
        parent, token = draw(st.integers(-1, len(tokens) - 1)), draw(st.integers(0, size - 1))
        if (parent, token) not in used:
            used.add((parent, token))
            tokens.append(token)
            parents.append(parent)
    return DraftTree(tuple(tokens), tuple(parents))


def paths(tree: DraftTree) -> list[tuple[int, ...]]:
    return [tuple(text) for text in list_paths([], tree)[1:]]


@given(trees(), st.integers(0, 8))
@settings(max_examples=150)
def test_a_filtered_tree_has_the_allowed_paths_and_their_positions(tree: DraftTree, limit: int) -> None:
    constraint = CASE.constraint

    def accepts(path: tuple[int, ...]) -> bool:
        matcher = constraint.matcher()
        for token in path:
            if token in constraint.vocabulary.eos_ids or not matcher.allows(token):
                return False
            matcher.advance(token)
        return True

    matcher = constraint.matcher()
    found, matchers = filter_tree(tree, matcher)
    assert paths(found) == [path for path in paths(tree) if accepts(path)]
    assert not matcher.tokens
    for path, position in zip(paths(found), matchers):
        fresh = constraint.matcher()
        for token in path:
            fresh.advance(token)
        assert position.state == fresh.state
        assert (position.mask(None) == fresh.mask(None)).all()
    assert paths(filter_tree(tree, constraint.matcher(), limit)[0]) == paths(found)[:limit]


def test_probabilities_follow_their_nodes() -> None:
    """The first token is refused: the others move up."""
    rows = {node: np.full(8, node + 1.0) for node in (ROOT, 1, 2)}
    tree = DraftTree((6, 0, 1, 1), (ROOT, ROOT, 1, 2), rows)
    found, _ = filter_tree(tree, CASE.constraint.matcher())
    assert found == DraftTree((0, 1, 1), (ROOT, 0, 1))
    assert {node: row[0] for node, row in found.probabilities.items()} == {ROOT: 0.0, 0: 2.0, 1: 3.0}


@given(st.integers(0, 300), st.integers(0, 12), st.sampled_from([0.0, 0.05, 0.3]))
@settings(max_examples=60)
def test_growth_takes_the_likeliest_allowed_paths(seed: int, limit: int, least: float) -> None:
    """A Markov chain of 4 tokens: compared with the sorted list of all short paths."""
    shares = np.random.default_rng(seed).dirichlet(np.ones(8), 9)
    shares[:, 6:] = 0

    def successors(state: int) -> list[tuple[int, int, float]]:
        return [(token, token, float(shares[state, token])) for token in range(6)]

    for matcher in (None, CASE.constraint.matcher()):
        tree = grow_tree(8, successors, matcher, limit, least)
        probabilities = [path_share(shares, path) for path in paths(tree)]
        assert probabilities == sorted(probabilities, reverse=True)
        assert all(share >= least for share in probabilities)
        assert len(set(paths(tree))) == len(tree) <= limit
        if matcher is not None:
            assert filter_tree(tree, matcher)[0] is tree
        level, every = [()], []
        for _ in range(3):
            level = [(*path, token) for path in level for token in range(6)]
            every += level
        allowed = [path for path in every if matcher is None or len(filter_tree(chain(path), matcher)[0]) == len(path)]
        better = [path for path in allowed if path not in paths(tree) and path_share(shares, path) > max(least, 0)]
        if len(tree) == limit and limit:
            assert all(path_share(shares, path) <= probabilities[-1] + 1e-15 for path in better)
        else:
            assert not better or limit == 0


def chain(path: tuple[int, ...]) -> DraftTree:
    return DraftTree.chain(path)


def path_share(shares: np.ndarray, path: tuple[int, ...]) -> float:
    share = 1.0
    for before, token in zip((8, *path), path):
        share *= float(shares[before, token])
    return share


@given(trees(), trees(), st.integers(0, 16))
def test_the_union_has_each_path_once(first: DraftTree, second: DraftTree, limit: int) -> None:
    merged = merge_trees([first, second], limit)
    union = list(dict.fromkeys([*paths(first), *paths(second)]))
    assert len(merged) == min(limit, len(union))
    assert set(paths(merged)) <= set(union)
    assert paths(merge_trees([first, second], 99)) == union


def test_sampled_drafts_stay_alone() -> None:
    sampled = DraftTree((1, 2), (ROOT, 0), {ROOT: np.ones(8) / 8})
    fixed = DraftTree.chain([3])
    assert merge_trees([DraftTree(), sampled, fixed], 9) is sampled
    assert merge_trees([fixed, sampled], 9) == fixed
    appended = append_tree([4, 5], sampled)
    assert appended == DraftTree((4, 5, 1, 2), (ROOT, 0, 1, 2))
    assert list(appended.probabilities) == [1]


@given(trees(), st.lists(st.integers(0, 5), max_size=3))
def test_paths_are_those_of_the_nodes(tree: DraftTree, prefix: list[int]) -> None:
    texts = list_paths(prefix, tree)
    assert texts[0] == prefix
    assert texts[1:] == [prefix + [tree.tokens[one] for one in tree.path(node)] for node in range(len(tree))]
