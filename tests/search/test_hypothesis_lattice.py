"""The lattice of answers: it has them all as paths, and every path satisfies the constraint."""

from __future__ import annotations

import re

import pytest

from constrain.sampling.checkers import ValidatorChecker
from constrain.search import BeamSearch, beam_search, build_lattice
from tests.markov_factory import PIECES, cases, regular


@pytest.mark.parametrize("name", list(cases()))
def test_paths_are_texts_of_the_constraint_and_hold_the_answers(name: str) -> None:
    case = cases()[name]
    options = BeamSearch(width=12, distinct="text")
    found = beam_search(case.lm, case.constraint, options, n=12, max_tokens=case.max_tokens)
    lattice = build_lattice(case.constraint, found)
    paths = lattice.list_paths(5000)
    assert len(set(paths)) == len(paths)
    assert {one.tokens for answer in found for one in answer.spellings} <= set(paths)
    for tokens in paths:
        assert case.accepts(case.constraint.vocabulary.text(tokens))
    assert all(edge.logprob <= 0 for edge in lattice.edges)


def test_prefixes_with_the_same_future_are_one_node() -> None:
    """a or b at five places: one node per length, 2^5 paths from a handful of answers."""
    case = regular("square", PIECES, "[ab]{5}", 7, seed=1)
    found = beam_search(case.lm, case.constraint, BeamSearch(width=20), n=20, max_tokens=7)
    lattice = build_lattice(case.constraint, found)
    assert len(lattice.nodes) == 7, "lengths 0 to 5, and the end"
    texts = {PIECES.text(tokens) for tokens in lattice.list_paths()}
    assert len(texts) > len({answer.text for answer in found})
    assert all(re.fullmatch(rb"[ab]{5}", text) for text in texts)
    assert len(lattice.list_paths(3)) == 3


def test_a_checker_has_no_states_to_merge() -> None:
    case = cases()["pieces"]
    checker = ValidatorChecker(PIECES, accepts=case.accepts)
    found = beam_search(case.lm, case.constraint, BeamSearch(width=9), n=9, max_tokens=6)
    lattice = build_lattice(checker, found)
    assert {PIECES.text(tokens) for tokens in lattice.list_paths()} == {answer.text.encode() for answer in found}
