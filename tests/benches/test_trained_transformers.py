"""Transformers trained on GAD's grammars, and the benches that use distilled models, in small."""

from __future__ import annotations

import math

import numpy as np
import pytest

import constrain
from bench.counted_models import CachedModel
from bench.faithful import distilled, trained
from bench.faithful.fixtures import build_fixture
from bench.faithful.real import Spread
from bench.faithful.shapes.gad import measure_windows
from bench.faithful.shapes.gad_grammars import TRAINED, draw_training_texts
from bench.faithful.shapes.trained_transformers import train_transformer
from bench.grammars import speed


@pytest.mark.slow
def test_training_lowers_the_loss_and_repeats_with_its_seed() -> None:
    pytest.importorskip("transformers")
    grammar = TRAINED[1]
    (one, figures), (other, _) = (train_transformer(grammar, seed=3, sentences=300, steps=40) for _ in range(2))
    assert figures.last_loss < figures.first_loss - 0.3
    prefixes = [[], [0], [3, 1]]
    end = one.vocabulary.eos_ids[0]
    rows = one.on([end]).next_logprobs(prefixes)
    assert (rows == other.on([end]).next_logprobs(prefixes)).all()
    assert np.exp(rows).sum(axis=1) == pytest.approx(1, abs=1e-9)
    texts = draw_training_texts(grammar, 3, 300)
    assert len(texts) == 300 and texts == draw_training_texts(grammar, 3, 300)
    firsts = np.bincount([text[0] for text in texts if text], minlength=end + 1) / len(texts)
    assert np.argmax(np.exp(rows[0])) in np.argsort(-firsts)[:4]


@pytest.mark.slow
def test_windows_of_a_trained_transformer() -> None:
    pytest.importorskip("transformers")
    grammar = TRAINED[1]
    loaded, _ = train_transformer(grammar, seed=4, sentences=300, steps=40)
    constraint = constrain.compile(loaded.vocabulary, grammar=constrain.gbnf(grammar.to_gbnf()))
    fixture = build_fixture(
        grammar.name, CachedModel(loaded.on([loaded.vocabulary.eos_ids[0]])), constraint, grammar.most, real=True
    )
    assert math.fsum(fixture.exact.values()) == pytest.approx(1) and 0 < fixture.z < 1
    windows = measure_windows(fixture, 300, 1, window=100)
    assert set(windows.true) == {"masked", "ASAp", "exact", "AWRS-SMC 5"}
    assert all(kl >= 0 for kls in windows.true.values() for kl in kls)
    assert windows.learnt[-1][1] < windows.learnt[0][1]
    assert len(trained.build_windows("x", windows).rows) == len(windows.at)


def test_verdicts_of_trained_transformers() -> None:
    good = {"name": "g", "floor": 0.01, "true": {"exact": [0.01], "ASAp": [0.02], "masked": [0.5]}}
    bad = {"name": "b", "floor": 0.01, "true": {"exact": [0.2], "ASAp": [0.6], "masked": [0.5]}}
    assert [verdict.met for verdict in trained.judge_rows([good])] == [True, True]
    assert [verdict.met for verdict in trained.judge_rows([good, bad])] == [False, False]


def test_verdicts_of_distilled_models() -> None:
    masks, worse = Spread(-3.0, 0.1, 1.0, 0.0, 9.0, 50.0), Spread(-3.0, 0.1, 1.2, 0.0, 9.0, 50.0)
    rows = [{"task": "t", "method": "masks", "spread": masks}, {"task": "t", "method": "HMM", "spread": masks}]
    assert distilled.judge_rows(rows).met
    assert not distilled.judge_rows([rows[0], {**rows[1], "spread": worse}]).met
    assert not distilled.judge_rows([rows[0], {"task": "t", "method": "HMM", "refused": "too large"}]).met
    assert not distilled.judge_rows([rows[0], {**rows[1], "spread": masks._replace(dead=0.1)}]).met


def test_published_measures_are_of_their_languages() -> None:
    times = {"count": 9, "mean": 2.0, "p50": 1.0, "p99": 5.0, "max": 7.0}
    row = {"engine": "constrain", "cold ms": [30.0, 10.0, 20.0], "first": {"mask µs": times, "advance µs": times}}
    table = speed.build_published_measures([{**row, "language": "go"}, {**row, "language": "c"}])
    assert [list(column.cells) for column in table.columns[:4]] == [["go"], ["constrain"], ["20.0"], ["4.0"]]
