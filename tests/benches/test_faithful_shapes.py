"""The bench of the papers' shapes: checkers are correct, tasks run at tiny sizes, and plots show the stored results."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.counted_models import CachedModel
from bench.faithful import plots
from bench.faithful.shapes import accuracy, arithmetic, checks, gad, gad_grammars, molecules, sql
from bench.faithful.shapes.methods import METHODS
from bench.faithful.shapes.tasks import Task, ValidatedConstraint
from constrain.compilation.constraint_compiler import compile as compiled
from constrain.sampling import awrs
from constrain.sampling.core.masked_sampling import allowed_tokens
from constrain.sampling.success_trie import SuccessTrie
from tests.markov_factory import LETTERS, ChainModel, cases


def test_expressions_are_evaluated_as_python_does() -> None:
    for text in arithmetic.draw_expressions(200, 5):
        assert arithmetic.evaluate_expression(text) == eval(text)


@pytest.mark.parametrize("text", molecules.KNOWN)
def test_known_molecules_are_valid_and_their_prefixes_viable(text: str) -> None:
    assert molecules.is_valid(text.encode())
    assert all(molecules.is_viable(text[:i].encode()) for i in range(len(text) + 1))


@pytest.mark.parametrize(
    "text", ["C(", "C)C", "C1CC", "FFF", "C=", "C==C", "O(C)(C)C", "ccc", "C()C", "=CC", "C11", "N#N#N"]
)
def test_invalid_molecules_are_rejected(text: str) -> None:
    assert not molecules.is_valid(text.encode())


def test_sqlite_checks_queries_and_their_prefixes() -> None:
    database = sql.Database(sql.DATABASES["places"])
    assert database.finds_row(b"SELECT name FROM city WHERE people > 9")
    assert not database.finds_row(b"SELECT name FROM city WHERE people > 99"), "it finds nothing"
    assert not database.finds_row(b"SELECT length FROM city") and not database.finds_row(b"SELECT name")
    assert database.is_viable(b"SELECT length FROM ci") and not database.is_viable(b"SELECT length FROM city ")
    assert not database.is_viable(b"SELECT name FROM city WHERE length >")
    for text in sql.draw_queries(database, 50, 1):
        assert re.fullmatch(database.build_pattern(), text) and database.is_viable(text.encode())


def build_small_task() -> Task:
    """Build a task over a, b, c whose answers have as many a as b."""
    mask = compiled(vocabulary=LETTERS, regex="[abc]{1,4}")
    lm = CachedModel(ChainModel.random(LETTERS, 1, 3))
    return Task("small", "as many", lm, mask, 6, accepts=lambda t: t.count(b"a") == t.count(b"b"),
                viable=lambda t: not t.startswith(b"cc"))  # fmt: skip


def test_the_mask_of_a_validated_constraint_holds_the_tokens_that_it_allows() -> None:
    task = build_small_task()
    for text in (b"", b"a", b"c", b"ab", b"aabb"):
        position = task.constraint.matcher()
        for letter in text:
            position.advance(letter - 97)
        assert [token for token in range(4) if position.allows(token)] == allowed_tokens(position.mask()).tolist(), text


def test_an_empty_mask_is_a_dead_end() -> None:
    mask = compiled(vocabulary=LETTERS, regex="[abc]{2}")
    never: Any = ValidatedConstraint(mask, None, lambda text: len(text) < 2)
    row = np.full(4, np.log(0.25))
    position = never.matcher()
    position.advance(0)
    step = awrs.draw_token(row, position.allows, np.random.default_rng(0), mask=position.mask, ends=LETTERS.eos_ids)
    assert step.token is None and step.log_weight == -np.inf


def test_methods_rank_as_expected_on_a_small_task() -> None:
    rows = accuracy.measure_methods([build_small_task(), build_small_task()], 20, 1)
    assert [row.method for row in rows] == [method.name for method in METHODS if "twist" not in method.name]
    by_name = {row.method: row for row in rows}
    assert by_name["exact"].right == 1 and by_name["AWRS-SMC 32"].right > by_name["model alone"].right
    assert accuracy.check_order(rows) == (True, "")


def test_checks_grow_with_the_mass_that_the_mask_removes() -> None:
    case = cases()["counting"]
    task = Task("", "", CachedModel(case.lm), case.constraint, case.max_tokens)
    steps = checks.measure_steps_of_tasks([task], 20, 40, 1)
    assert steps.by_step > 0.5 and (steps.checks >= 1).all()
    assert checks.correlate_ranks(np.array([1.0, 2.0, 2.0, 5.0]), np.array([0.0, 3.0, 3.0, 9.0])) == pytest.approx(1.0)


def test_asap_starts_from_the_masked_distribution_and_converges_to_the_exact_one() -> None:
    from bench.faithful.fixtures import build_fixture

    case = cases()["traps"]
    f = build_fixture("", CachedModel(case.lm), case.constraint, case.max_tokens, real=False)
    law = gad.compute_walk_probabilities(gad.tabulate_distributions(f), SuccessTrie(f.max_tokens))
    assert law == pytest.approx(f.masked)
    found = gad.measure_windows(f, 400, 1, window=100)
    assert found.learnt[-1][1] < found.learnt[0][1] / 4
    assert max(found.true["exact"]) < 4 * found.floor < min(found.true["masked"])


def is_derived(rules: gad_grammars.Rules, words: list[str]) -> bool:
    """Whether words are a sentence of a grammar, by trying all derivations (no rule derives the empty text)."""
    from functools import cache

    @cache
    def derives(parts: tuple[str, ...], start: int, end: int) -> bool:
        if not parts:
            return start == end
        first, rest = parts[0], parts[1:]
        if first not in rules:
            return start < end and words[start] == first and derives(rest, start + 1, end)
        return any(
            derives(rest, middle, end) and any(derives(tuple(choice), start, middle) for choice in rules[first])
            for middle in range(start + 1, end - len(rest) + 1)
        )

    return any(derives(tuple(choice), 0, len(words)) for choice in rules[next(iter(rules))])


@pytest.mark.parametrize("grammar", gad_grammars.TRAINED, ids=lambda grammar: grammar.name)
def test_trained_models_put_mass_on_their_grammars(grammar: gad_grammars.TrainedGrammar) -> None:
    """The constraint is the grammar; the model writes its texts, and masking is wrong about them, ASAp less so."""
    (f,) = gad_grammars.list_trained_fixtures([grammar.name])
    words = grammar.words
    assert f.z > 0.01 and f.distortion > 0.02 and len(f.exact) > 10
    for tokens in f.exact:
        assert is_derived(grammar.rules, [words[token] for token in tokens])
    rng, inside = random.Random(1), 0
    for _ in range(400):
        tokens = gad_grammars.draw_sentence(grammar, rng)
        if len(tokens) < grammar.most:
            derived = is_derived(grammar.rules, [words[token] for token in tokens])
            assert derived == (tuple(tokens) in f.exact)
            inside += derived
    assert 0 < inside < 400
    found = gad.measure_windows(f, 400, 1, window=200)
    assert found.learnt[-1][1] < found.learnt[0][1] / 2
    assert max(found.true["exact"]) < 4 * found.floor


def test_plots_show_stored_results(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    line = {"sampler": "exact", "asked": [2.0, 9.0], "mean": [1.0, 0.0], "low": [0.5, 0.0], "high": [2.0, 0.2]}
    curve = {"name": "one", "sequences": 3, "z": 0.5, "at": [1, 10], "floor": [1.0, 0.1], "lines": [line]}
    text = plots.draw_curves(tmp_path / "curves.svg", [curve]).read_text("utf-8")
    assert "one: 3 sequences, p(L) = 0.5" in text and "model evaluations" in text and "nan" not in text.lower()
    answers = [{"method": name, "right": 0.5, "low": 0.5, "high": 0.6} for name in ("exact", "masked")]
    laws = {"masked": [1.0, 0.5], "exact": [0.0, 0.0]}
    grammar = {
        "name": "two",
        "at": [1, 2],
        "true": laws,
        "estimated": laws,
        "floor": 0.1,
        "learnt": [(0, 1.0), (1, 0.5)],
    }
    steps = {"exp_kl": [1.0, 2.0], "checks": [1.0, 1.5], "races": 8}
    facts = {"kinds": {"SQL": answers}, "steps": steps, "gad": [grammar]}
    text = plots.draw_shapes(tmp_path / "shapes.svg", facts).read_text("utf-8")
    for title in ("SQL: right answers", "two, true", "as GAD estimates"):
        assert title in text
