"""The bench of numbers judges as the definition does, and notices an automaton that does not."""

from __future__ import annotations

from random import Random

import pytest

from bench import number_texts
from constrain.automata.numerals.number_automaton import NumberAutomaton
from tests.number_oracle import random_oracle


def test_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert number_texts.main(["--texts", "500", "--length", "2"]) == 0
    assert "wrong" in capsys.readouterr().out


def test_a_wrong_automaton_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    accepts = NumberAutomaton.accepts
    monkeypatch.setattr(NumberAutomaton, "accepts", lambda self, state: state == 1 or accepts(self, state))
    counts = [number_texts.check_set(random_oracle(Random(seed)), 2, Random(seed)) for seed in range(8)]
    assert any(one.wrong for one in counts)
