"""Edge cases of samplers: no tokens left, no mass, no prefix, a text that was never explored."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from constrain import Vocabulary, compile
from constrain.authoring.samples import random_instances, readable_texts
from constrain.base.errors import LimitError
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.frontends.regex import to_dfa
from constrain.grammar.nodes import Chars, Grammar, Literal, Sequence
from constrain.sampling import NGram, pimh, success_trie
from constrain.sampling.core.masked_sampling import pick_under
from constrain.sampling.core.token_masses import Masses, mask_of
from constrain.sampling.particles import Prefixes, list_allowed_logprobs
from constrain.sampling.research.hidden_markov import Hmm, smooth_counts
from constrain.sampling.research.hmm_product import HiddenProduct
from constrain.sampling.research.markov_exact import Product
from constrain.sampling.success_trie import SuccessTrie
from tests.markov_factory import LETTERS, ChainModel

RNG = np.random.default_rng
ANY = compile(LETTERS, regex="[abc]*")
END = LETTERS.eos_ids[0]


def test_a_product_needs_a_token_for_the_end() -> None:
    """With no token at all there is no text, and one token is an end."""
    model = Hmm.random(2, LETTERS.size, rng=RNG(0))
    with pytest.raises(LimitError, match="max_tokens is 0: not even an end token fits"):
        HiddenProduct(model, ANY, max_tokens=0)
    ends = sum(float(p) * float(row[END]) for p, row in zip(model.start, model.emit))
    assert math.exp(HiddenProduct(model, ANY, max_tokens=1).log_z) == pytest.approx(ends, rel=1e-12)


def test_a_row_without_counts_becomes_uniform() -> None:
    made = smooth_counts(np.array([[0.0, 0.0, 0.0, 0.0], [3.0, 1.0, 0.0, 0.0]]))
    assert made[0] == pytest.approx([0.25] * 4, rel=1e-12)
    assert made[1] == pytest.approx([0.75, 0.25, 0.0, 0.0], abs=2e-9)
    assert made.sum(axis=1) == pytest.approx([1.0, 1.0], rel=1e-12)


def test_a_hidden_model_answers_a_row_for_each_prefix() -> None:
    """None at all where there is no prefix; before any token the mean of what its states write."""
    model = Hmm.random(2, 5, rng=RNG(0))
    assert model.next_logprobs([]).shape == (0, 5)
    rows = model.next_logprobs([[], []])
    first = [sum(float(model.start[state] * model.emit[state, token]) for state in range(2)) for token in range(5)]
    assert np.exp(rows[0]) == pytest.approx(first) and np.exp(rows[1]) == pytest.approx(first)


def test_a_text_that_was_not_explored_has_no_future() -> None:
    """Six letters where three tokens fit: nothing is known after them, and the values of the start do not apply."""
    made = Product.of(NGram([()], np.log([[0.25] * 4])), compile(LETTERS, regex="a{0,9}b"), max_tokens=3)
    matcher = made.automaton.constraint.matcher()
    assert made.futures(matcher, [], 3)[0].tolist() == [0, 1]
    for _ in range(6):
        matcher.advance(0)
    tokens, logs = made.futures(matcher, [0] * 6, 3)
    assert len(tokens) == len(logs) == 0
    assert made.future(matcher, [0] * 6, 3) == -math.inf


def test_many_allowed_tokens_without_any_mass_are_equally_likely() -> None:
    """More of them than are listed; the draw is valid and weighs nothing."""
    row, allowed = np.full(1000, -np.inf), range(7, 1000)
    row[0] = 0.0
    picks = [pick_under(row, mask_of(allowed, 1000), RNG(seed)) for seed in range(40)]
    assert all(pick is not None and pick.token in allowed for pick in picks)
    assert len({pick.token for pick in picks if pick}) > 30
    for pick in picks:
        assert pick is not None and pick.logprob == pick.logmass == -np.inf
        assert pick.logproposal == pytest.approx(-math.log(len(allowed)), rel=1e-12)


@pytest.mark.parametrize("asked", [(), (2,), (3,), (2, 3), (1, 3), (40, 1, 2, 3)])
def test_the_mass_of_some_tokens_is_that_of_the_allowed_ones(asked: tuple[int, ...]) -> None:
    allowed = {1, 3, 40}
    weights = [(token + 1) / 2080 for token in range(64)]
    made = Masses(np.log(np.array(weights)), mask_of(allowed, 64)).log_of(asked)
    assert math.exp(made) == pytest.approx(sum(weights[token] for token in asked if token in allowed), rel=1e-12)


@pytest.mark.parametrize("burn, thin", [(1, 1), (2, 1), (2, 3), (3, 2)])
def test_a_chain_applies_burn_in_and_thinning(burn: int, thin: int) -> None:
    """Against the same chain with all of its states."""
    lm = ChainModel.random(LETTERS, 1, 0)
    n = 6
    last = burn + 1 + (n - 1) * thin
    whole = pimh.draw_pimh(lm, ANY, n=last, rng=RNG(1), max_tokens=12, particles=4, burn=0, twist=None)
    made = pimh.draw_pimh(lm, ANY, n=n, rng=RNG(1), max_tokens=12, particles=4, burn=burn, thin=thin, twist=None)
    assert len({draw.tokens for draw in whole}) > last // 2
    assert [draw.tokens for draw in made] == [draw.tokens for draw in whole][burn::thin]


@pytest.mark.parametrize("text", ["abc", 'say "é"', "\\", "\n\x01"])
def test_characters_inside_quotes_are_written_as_json_spells_them(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chosen text is written without further quotes, and the walk continues after it."""
    inside = Chars(to_dfa(r"[\s\S]*"), "json", 1, 9)
    grammar = Grammar(Sequence((Literal(b'"'), inside, Literal(b'"'))), {})
    monkeypatch.setattr(random_instances, "draw_readable_text", lambda *_: text)
    made = random_instances.random_text(compile_grammar(grammar, Vocabulary.bytes()), RNG(0))
    assert made == json.dumps(text, ensure_ascii=False).encode()


def test_a_distribution_has_no_token_without_probability() -> None:
    class Model:
        def next_logprobs(self, prefixes: list[list[int]]) -> Any:
            with np.errstate(divide="ignore"):
                return np.log(np.array([[0.5, 0.0, 0.25, 0.25]] * len(prefixes)))

    prefixes = Prefixes(Model(), ANY)
    prefixes.fetch_rows([prefixes.root])
    tokens, logs = list_allowed_logprobs(prefixes, prefixes.root, 5)
    assert dict(zip(tokens.tolist(), np.exp(logs))) == pytest.approx({0: 0.5, 2: 0.25, END: 0.25})
    tokens, logs = list_allowed_logprobs(prefixes, prefixes.root, 1)
    assert dict(zip(tokens.tolist(), np.exp(logs))) == pytest.approx({END: 0.25})


def test_a_stroll_ends_where_nothing_follows() -> None:
    """Even if the text is shorter than requested."""
    assert readable_texts.walk_towards(to_dfa("ab"), 9, RNG(0)) == "ab"


@pytest.mark.parametrize("fails", [False, True])
def test_a_saved_file_is_closed_before_it_is_moved_or_removed(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not every system moves or removes a file that is open. A moved file is complete by then."""
    files: list[Any] = []
    done: list[tuple[str, bool]] = []
    make, replace, unlink, savez = tempfile.NamedTemporaryFile, os.replace, Path.unlink, np.savez

    def makes(**options: Any) -> Any:
        files.append(make(**options))
        return files[-1]

    def moves(source: str, target: Path) -> None:
        done.append(("moved", files[-1].file.closed))
        assert SuccessTrie.load(source, key="one").max_tokens == 7
        replace(source, target)

    def removes(path: Path, missing_ok: bool = False) -> None:
        done.append(("removed", files[-1].file.closed))
        unlink(path, missing_ok)

    def writes(*args: Any, **arrays: Any) -> None:
        if fails:
            raise OSError("no space")
        savez(*args, **arrays)

    monkeypatch.setattr(success_trie, "NamedTemporaryFile", makes)
    monkeypatch.setattr(os, "replace", moves)
    monkeypatch.setattr(np, "savez", writes)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", removes)
        if fails:
            with pytest.raises(OSError, match="no space"):
                SuccessTrie(7, key="one").save(tmp_path / "trie")
        else:
            SuccessTrie(7, key="one").save(tmp_path / "trie")
    assert done == [("removed" if fails else "moved", True)]
    assert [path.name for path in tmp_path.iterdir()] == ([] if fails else ["trie"])
