"""decode_masked: every output is in the language, whatever the model, the order and the budget."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import jsonschema
import numpy as np
import pytest

import constrain
from constrain.base.errors import ArgumentError, UnsatisfiableError
from constrain.infilling import Gap, decode_masked
from constrain.infilling.gaps import read_spans
from constrain.infilling.likeliest_completion import find_likeliest
from constrain.infilling.position_lattice import PositionLattice
from constrain.vocabulary.vocabulary import Vocabulary
from tests.masked_model_factory import NeighbourModel, RandomModel, train_transformer

BYTES = Vocabulary.bytes()
SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer", "minimum": 0, "maximum": 99}, "ok": {"type": "boolean"}},
    "required": ["id", "ok"],
    "additionalProperties": False,
}
COMPACT = constrain.Style(whitespace="compact")
LENGTH = 24


def sequences() -> list[list[int]]:
    """Documents as bytes, filled up with end tokens to a fixed length."""
    numbers = np.random.default_rng(0).integers(0, 99, (300, 2)).tolist()
    texts = [json.dumps({"id": one, "ok": other % 2 == 0}, separators=(",", ":")) for one, other in numbers]
    return [[*text.encode(), *[BYTES.eos_ids[0]] * (LENGTH - len(text))] for text in texts]


def is_valid(text: str) -> bool:
    try:
        jsonschema.validate(json.loads(text), SCHEMA)
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


def unconstrained(model: object, rng: np.random.Generator) -> str:
    """The same loop without masks."""
    anything = constrain.compile(BYTES, regex="(?s:.*)")
    tokens: list[int | None] = [None] * LENGTH
    for position in rng.permutation(LENGTH).tolist():
        row = np.exp(model.logprobs(tokens)[position].astype(np.float64))  # type: ignore[attr-defined]
        tokens[position] = int(rng.choice(len(row), p=row / row.sum()))
    text = anything.vocabulary.text([token for token in tokens if token is not None])
    return text.decode("utf-8", "replace")


@pytest.mark.parametrize("kind", ["neighbours", "transformer"])
def test_all_outputs_are_valid_where_few_are_without_a_constraint(kind: str) -> None:
    if kind == "transformer":
        pytest.importorskip("torch")
        model = train_transformer(BYTES, sequences())
    else:
        model = NeighbourModel(BYTES.size, sequences())
    constraint = constrain.compile(BYTES, schema=SCHEMA, style=COMPACT)
    rng = np.random.default_rng(1)
    free = [is_valid(unconstrained(model, rng)) for _ in range(12)]
    held = [decode_masked(model, [Gap.tokens(LENGTH)], constraint, rng=rng, order="random") for _ in range(12)]
    assert all(is_valid(one.text) for one in held)
    assert sum(free) < len(free) / 2
    assert all(one.model_calls == LENGTH and one.is_exact and one.builds == 1 for one in held)


@pytest.mark.parametrize("order", ["confident", "random", "left_to_right"])
@pytest.mark.parametrize("options", [{}, {"per_call": 5}, {"block": 6}, {"most_calls": 3}, {"temperature": 0.0}])
def test_orders_and_budgets(order: str, options: dict[str, object]) -> None:
    constraint = constrain.compile(BYTES, schema=SCHEMA, style=COMPACT)
    model = RandomModel(BYTES.size, 3)
    spans = ['{"id":', Gap.tokens(3), '"ok":', Gap.tokens(8)]
    out = decode_masked(model, spans, constraint, rng=np.random.default_rng(2), order=order, **options)  # type: ignore[arg-type]
    assert is_valid(out.text) and out.text.startswith('{"id":') and '"ok":' in out.text
    assert len(out.tokens) == 6 + 3 + 5 + 8
    assert sorted(out.order) == [*range(6, 9), *range(14, 22)]
    if order == "left_to_right" and not options:
        assert out.order == sorted(out.order)
    if "block" in options:
        assert [position // 6 for position in out.order] == sorted(position // 6 for position in out.order)
    if "most_calls" in options:
        assert out.model_calls == 3 and out.closing_tokens == 11 - 3
    if "per_call" in options:
        assert out.model_calls == 3
    assert out.logprob <= out.log_mass <= 0


def test_a_narrowed_lattice_keeps_the_guarantee() -> None:
    constraint = constrain.compile(BYTES, schema={"type": "object"}, style=COMPACT)
    for seed in range(4):
        out = decode_masked(
            RandomModel(BYTES.size, seed), ['{"a":[', Gap.tokens(10), "]}", Gap.tokens(1)], constraint,
            rng=np.random.default_rng(seed), most_states=300, most_builds=3,
        )  # fmt: skip
        assert isinstance(json.loads(out.text)["a"], list)
        assert not out.is_exact and 1 < out.builds <= 4


def test_the_order_of_choices_does_not_change_the_lattice() -> None:
    """A lattice restricted by choices allows what a new lattice of the same spans does."""
    constraint = constrain.compile(BYTES, regex="(ab|ba)*c{0,3}(d|ef)*")
    rng = np.random.default_rng(4)
    for _ in range(10):
        tokens: list[int | None] = [None] * 8
        lattice = PositionLattice.build(constraint, read_spans([tokens], BYTES), 1000)
        for position in rng.permutation(8).tolist():
            allowed = np.flatnonzero(np.unpackbits(lattice.position_mask(position).view(np.uint8), bitorder="little"))
            tokens[position] = int(rng.choice(allowed))
            lattice.choose(position, tokens[position])
            fresh = PositionLattice.build(constraint, read_spans([tokens], BYTES), 1000)
            for other in range(8):
                assert (lattice.position_mask(other) == fresh.position_mask(other)).all()


def test_choices_within_gaps_of_any_length_and_with_forms() -> None:
    """As above, where positions may be absent and the gap has its own constraint."""
    constraint = constrain.compile(BYTES, regex="x(ab|ba)*c{0,3}(d|ef)*y")
    gap = Gap(2, 5, "tokens", constrain.regex("[a-c]*|abdd"), "refused")
    rng = np.random.default_rng(5)
    for _ in range(10):
        first, middle, last = read_spans(["x", gap, "y"], BYTES)
        lattice = PositionLattice.build(constraint, [first, middle, last], 1000)
        for position in range(5):
            allowed = np.flatnonzero(np.unpackbits(lattice.position_mask(position).view(np.uint8), bitorder="little"))
            if not len(allowed):
                break
            lattice.choose(position, int(rng.choice(allowed)))
            known = [lattice.known_token(other) for other in range(5)]
            fresh = PositionLattice.build(
                constraint, [first, replace(middle, known=tuple(known), low=max(2, position + 1)), last], 1000
            )
            for other in range(5):
                assert (lattice.position_mask(other) == fresh.position_mask(other)).all()
        assert lattice.is_possible


def test_the_likeliest_completion_is_that_of_all_sequences() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", b"c", None], (4,))
    constraint = constrain.compile(vocabulary, regex="(ab|ba)*c{0,2}")
    matcher = constraint.matcher()
    rng = np.random.default_rng(6)
    for known in ([None] * 4, [None, 0, None, None], [2, None, None, 4], [None, None, 3, None]):
        rows = np.log(rng.dirichlet(np.full(5, 0.5), 4))
        scores = {}
        for tokens in product(range(5), repeat=4):
            trial = matcher.fork()
            text = [token for token in tokens if token != 4]
            if tokens != (*text, *[4] * (4 - len(text))) or any(k not in (None, t) for k, t in zip(known, tokens)):
                continue
            if all(trial.allows(token) and trial.advance(token) is None for token in text) and trial.is_complete:
                scores[tokens] = sum(rows[i, t] for i, t in enumerate(tokens) if known[i] is None)
        lattice = PositionLattice.build(constraint, read_spans([known], vocabulary), 1000)
        found, logprob = find_likeliest(lattice, rows)
        assert tuple(found) == max(scores, key=scores.__getitem__)
        assert abs(logprob - max(scores.values())) < 1e-9


def test_decode_masked_raises_for_invalid_or_unsatisfiable_input() -> None:
    constraint, rng = constrain.compile(BYTES, regex="abc"), np.random.default_rng(0)
    model = RandomModel(BYTES.size, 0)
    with pytest.raises(UnsatisfiableError, match="fits into these 2 positions"):
        decode_masked(model, [Gap.tokens(2)], constraint, rng=rng)
    with pytest.raises(ArgumentError, match="fixed number of positions"):
        decode_masked(model, [Gap()], constraint, rng=rng)
    with pytest.raises(ArgumentError, match="fixed number of positions"):
        decode_masked(model, [Gap(1, 3, "tokens")], constraint, rng=rng)
    with pytest.raises(TypeError, match="logprobs"):
        decode_masked(object(), [Gap.tokens(3)], constraint, rng=rng)  # type: ignore[arg-type]

    class Wrong:
        def logprobs(self, tokens: object) -> np.ndarray:
            return np.zeros((1, 5))

    with pytest.raises(ArgumentError, match="3 positions"):
        decode_masked(Wrong(), [Gap.tokens(3)], constraint, rng=rng)
    out = decode_masked(model, [Gap.tokens(5)], constraint, rng=rng)
    assert out.text == "abc" and out.tokens[3:] == [256, 256]


class Excluding:
    """A model that gives what is possible no probability."""

    def logprobs(self, tokens: object) -> np.ndarray:
        out = np.full((3, BYTES.size), -np.inf)
        out[:, ord("x")] = 0.0
        return out


def test_a_model_that_excludes_everything_gets_a_completion() -> None:
    constraint = constrain.compile(BYTES, regex="ab[cd]")
    out = decode_masked(Excluding(), [None, None, None], constraint, rng=np.random.default_rng(0))
    assert out.text in ("abc", "abd") and out.closing_tokens == 3 and out.log_mass == -np.inf
