"""Draft trees, and the drafts of forced text."""

from __future__ import annotations

import pytest

from constrain.base.errors import ArgumentError
from constrain.speculation.draft_source import NO_DRAFT, ROOT, DraftSource, DraftTree, EmptyDrafts
from constrain.speculation.forced_drafts import LONGEST_DRAFT, ForcedDrafts
from constrain.vocabulary.vocabulary import Vocabulary
from tests.finite_grammar_factory import FiniteConstraint


def test_a_tree_knows_children_depths_and_paths() -> None:
    tree = DraftTree((5, 6, 7, 5), (ROOT, 0, ROOT, 1))
    assert tree.children == {ROOT: {5: 0, 7: 2}, 0: {6: 1}, 1: {5: 3}}
    assert tree.depths == (0, 1, 0, 2)
    assert tree.path(3) == [0, 1, 3]
    assert tree.path(ROOT) == []
    assert not tree.is_chain
    assert DraftTree.chain([3, 4]).is_chain
    assert len(NO_DRAFT) == 0


@pytest.mark.parametrize(("tokens", "parents"), [((1,), ()), ((1,), (0,)), ((1, 2), (-1, 1)), ((1,), (-2,))])
def test_parents_come_first(tokens: tuple[int, ...], parents: tuple[int, ...]) -> None:
    with pytest.raises(ArgumentError):
        DraftTree(tokens, parents)


def test_forced_drafts_shrink_where_the_model_disagrees() -> None:
    source, matcher = ForcedDrafts(), FiniteConstraint(Vocabulary.bytes(), [b"a" * 100]).matcher()
    assert isinstance(source, DraftSource)
    assert source.propose([], None, 9) == NO_DRAFT
    assert source.propose([], matcher, 9) == DraftTree.chain([97] * 9)
    assert len(source.propose([], matcher, 200)) == LONGEST_DRAFT
    source.observe([97, 97, 98, 97])
    for length in (4, 8, 16, 32, 64, 64):
        assert len(source.propose([], matcher, 200)) == length
        source.observe([97] * (length - 1))
        source.observe([97, 98])
    source.propose([], matcher, 200)
    source.observe([98])
    assert len(source.propose([], matcher, 200)) == 1
    assert len(source.propose([], matcher, 200)) == 1, "as long as nothing was accepted"


def test_the_last_forced_token_is_drafted_as_long_as_it_is_mostly_right() -> None:
    """It may merge with what follows. What comes after the draft shows whether it would have been right."""
    source, constraint = ForcedDrafts(), FiniteConstraint(Vocabulary.bytes(), [b"abcd", b"abce"])
    forced = [97, 98, 99]
    assert source.propose([], constraint.matcher(), 9) == DraftTree.chain(forced)
    for _ in range(3):
        source.observe([97, 98, 100])
        source.propose([], constraint.matcher(), 9)
    assert source.propose([], constraint.matcher(), 9) == DraftTree.chain(forced[:2])
    assert source.limit == LONGEST_DRAFT, "a last token that was wrong says nothing about those before it"
    for _ in range(4):
        source.observe(forced)
        source.propose([], constraint.matcher(), 9)
    assert source.propose([], constraint.matcher(), 9) == DraftTree.chain(forced)
    assert source.propose([], constraint.matcher(), 2) == DraftTree.chain(forced[:2])


def test_a_source_without_guesses_is_a_source() -> None:
    source = EmptyDrafts()
    assert isinstance(source, DraftSource)
    assert source.propose([1], None, 5) == NO_DRAFT
