"""Fields of a longer text: their law, by playing every random choice through, against a slow definition."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import constrain
from constrain.base.errors import LimitError, UnsatisfiableError
from constrain.decoding.field_writing import WrittenField, build_field_constraint, write_field
from constrain.engine.length_limits import TokenLimit
from constrain.sampling.core.masked_sampling import Proposal
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import ChainModel, outcomes
from tests.model_factory import TableModel

SMALL = Vocabulary.from_tokens([b"a", b"b", b"c", b"ab", b"bc", b"abc", b"cab", None, None], [7], special={"<s>": 8})
END = 7
SHORT = TokenLimit(8, None)


def field_law(lm: ChainModel, kept: list[int], prefix: bytes, texts: set[bytes]) -> dict[bytes, float]:
    """The definition: follow every token string until its longest prefix in the language is decided."""
    language = {prefix + text for text in texts}
    law = dict.fromkeys(texts, 0.0)
    rows = np.exp(lm.logs)

    def explore(tokens: list[int], data: bytes, p: float, ended: bool) -> None:
        matches = [text for text in language if data.startswith(text)]
        longer = any(text.startswith(data) and text != data for text in language) and not ended
        if not longer:
            if matches:
                law[max(matches, key=len)[len(prefix) :]] += p
            return
        row = rows[lm.context([*kept, *tokens])]
        for token, spelled in enumerate(SMALL.tokens):
            added = spelled if spelled is not None else b"" if token == END else b"\xff"
            explore([*tokens, token], data + added, p * float(row[token]), token == END)

    explore([], b"", 1.0, False)
    return law


@pytest.mark.parametrize(
    ("kept", "prefix", "texts"),
    [
        ([], b"", {b"a", b"ab", b"b"}),
        ([2], b"", {b"", b"ab"}),
        ([0, 1], b"c", {b"a", b"abc", b"c"}),
        ([0], b"ab", {b"", b"c", b"cc"}),
        ([8], b"", {b"abc", b"bcab"}),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_law_of_a_field(kept: list[int], prefix: bytes, texts: set[bytes], seed: int) -> None:
    lm = ChainModel.random(SMALL, 1, seed=seed)
    field = build_field_constraint(constrain.compile(SMALL, choices=[text.decode() for text in texts]), prefix)

    def run(script) -> WrittenField:  # type: ignore[no-untyped-def]
        return write_field(lm, field, kept, rng=script, limit=TokenLimit(12, None))

    found = dict.fromkeys(texts, 0.0)
    for probability, out in outcomes(run):
        assert out.finish_reason == "complete"
        found[out.data] += probability * math.exp(out.log_weight)
        assert prefix + out.data == SMALL.text(out.tokens[: out.kept]) + out.rest
    law = field_law(lm, kept, prefix, texts)
    for text in texts:
        assert found[text] == pytest.approx(law[text], rel=1e-9)


def test_a_stop_text_ends_a_field_at_its_first_occurrence() -> None:
    lm = ChainModel.random(SMALL, 1, seed=3)
    field = build_field_constraint(constrain.compile(SMALL, regex="[abc]{0,3}"), b"", "bc")

    def run(script) -> WrittenField:  # type: ignore[no-untyped-def]
        return write_field(lm, field, [], rng=script, limit=TokenLimit(12, None))

    found: dict[bytes, float] = {}
    for probability, out in outcomes(run):
        found[out.data] = found.get(out.data, 0.0) + probability * math.exp(out.log_weight)
    law = field_law(lm, [], b"", {text + b"bc" for text in found})
    words = {"".join(word) for n in range(4) for word in product("abc", repeat=n)}
    assert set(found) == {word.encode() for word in words if (word + "bc").index("bc") == len(word)}
    for text, p in found.items():
        assert p == pytest.approx(law[text + b"bc"], rel=1e-9)
    with pytest.raises(UnsatisfiableError, match="stop"):
        build_field_constraint(constrain.compile(SMALL, choices=["abca"]), b"", "b" + "c")


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8])
def test_the_budget_of_a_field_holds(most: int) -> None:
    vocabulary = Vocabulary.bytes()
    constraint = constrain.compile(vocabulary, regex="(ab|ba)*x?|[0-9]+")
    field = build_field_constraint(constraint, b"")
    for seed in range(20):
        lm = TableModel(257, seed, spread=0.1)
        out = write_field(lm, field, [], rng=np.random.default_rng(seed), limit=TokenLimit(most, None))
        assert len(out.tokens) <= most
        matcher = constraint.matcher()
        matcher.advance_bytes(out.data)
        assert matcher.is_complete
    with pytest.raises(LimitError):
        write_field(lm, build_field_constraint(constraint, b"abcdefghi"), [], rng=np.random.default_rng(0), limit=SHORT)


@pytest.mark.parametrize("left", [None, 9, 8])
def test_a_field_that_does_not_end_names_what_is_too_small(left: int | None) -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"c", None], [2])  # no token spells the shortest end
    constraint = constrain.compile(vocabulary, regex="a*(b|c{20})")
    with pytest.raises(LimitError) as error:
        write_field(
            TableModel(3, 1), build_field_constraint(constraint, b""), [], rng=np.random.default_rng(0),
            limit=TokenLimit(8, left),
        )  # fmt: skip
    assert error.value.is_of_context == ("max_tokens" not in str(error.value)) == (left == 8)


def test_greedy_fields_and_forced_runs() -> None:
    vocabulary = Vocabulary.bytes()
    field = build_field_constraint(constrain.compile(vocabulary, choices=["hello world", "hello there"]), b"")
    lm = TableModel(257, 1)
    out = write_field(
        lm, field, [], rng=np.random.default_rng(0), limit=TokenLimit(50, None), proposal=Proposal(temperature=0)
    )
    assert out.data in (b"hello world", b"hello there")
    assert out.calls < len(out.tokens)
    assert out.logprob == pytest.approx(
        sum(lm.table[before, token] for before, token in zip([257, *out.tokens], out.tokens))
    )
