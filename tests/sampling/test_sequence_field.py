"""Constrained random fields: log Z, marginals, Viterbi and samples against enumeration; gradients; a small task."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from constrain import compile as compile_constraint
from constrain.base.errors import ArgumentError, LimitError, TokenRefused
from constrain.sampling.research.sequence_field import SequenceField
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import g_test

LABELS = Vocabulary.from_tokens([b"O", b"A", b"B", b"C", None], eos_ids=[4])
PATTERNS = ["O*AO*BO*", "(O|A)*|(O|B)*C", "(OA)*", "[OABC]*", "(O*A){2}[BC]?O*", "C?A*B*"]


def field(pattern: str) -> SequenceField:
    return SequenceField(compile_constraint(LABELS, regex=pattern))


def potentials(length: int, seed: int = 0, *, moving: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Unnormalised numbers: by place, and by place and pair or by pair alone."""
    rng = np.random.default_rng(seed)
    shape = (length - 1, 5, 5) if moving else (5, 5)
    return rng.normal(1, 2, (length, 5)), rng.normal(-1, 2, shape)


def enumerate_scores(
    one: SequenceField, emissions: np.ndarray, transitions: np.ndarray
) -> dict[tuple[int, ...], float]:
    """The score of every accepted sequence, by the definition."""
    length, out = len(emissions), {}
    for labels in itertools.product(range(4), repeat=length):
        matcher = one.constraint.matcher()
        text = b"".join(LABELS.tokens[label] for label in labels)
        try:
            matcher.advance_bytes(text)
        except TokenRefused:
            continue
        if matcher.is_complete:
            score = sum(emissions[t, label] for t, label in enumerate(labels))
            for t, (a, b) in enumerate(itertools.pairwise(labels)):
                score += transitions[t, a, b] if transitions.ndim == 3 else transitions[a, b]
            out[labels] = float(score)
    return out


@pytest.mark.parametrize("moving", [True, False])
@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_sums_and_best_by_enumeration(pattern: str, length: int, moving: bool) -> None:
    one = field(pattern)
    emissions, transitions = potentials(length, moving=moving)
    scores = enumerate_scores(one, emissions, transitions)
    if not scores:
        with pytest.raises(LimitError, match=f"no sequence of {length} labels"):
            one.log_z(emissions, transitions)
        return
    found = one.marginals(emissions, transitions)
    log_z = float(np.logaddexp.reduce(list(scores.values())))
    assert one.log_z(emissions, transitions) == pytest.approx(log_z, abs=1e-12)
    assert found.log_z == pytest.approx(log_z, abs=1e-12)
    labels, pairs = np.zeros((length, 5)), np.zeros((length - 1, 5, 5))
    for sequence, score in scores.items():
        p = math.exp(score - log_z)
        labels[np.arange(length), sequence] += p
        for t, (a, b) in enumerate(itertools.pairwise(sequence)):
            pairs[t, a, b] += p
        assert one.score(sequence, emissions, transitions) == pytest.approx(score, abs=1e-12)
    assert np.abs(found.labels - labels).max() < 1e-12
    assert np.abs(found.pairs - pairs).max(initial=0) < 1e-12
    best, total = one.best(emissions, transitions)
    assert tuple(best) == max(scores, key=scores.__getitem__)
    assert total == pytest.approx(max(scores.values()), abs=1e-12)


def test_samples_have_the_law_of_the_field() -> None:
    one, (emissions, transitions) = field("O*AO*BO*"), potentials(5)
    scores = enumerate_scores(one, 0.4 * emissions, 0.4 * transitions)
    log_z = float(np.logaddexp.reduce(list(scores.values())))
    drawn = one.sample(2000, np.random.default_rng(1), 0.4 * emissions, 0.4 * transitions)
    law = {labels: math.exp(score - log_z) for labels, score in scores.items()}
    assert g_test(Counter(map(tuple, drawn)), law) > 1e-6


def test_potentials_of_minus_infinity_exclude() -> None:
    one, (emissions, transitions) = field("[OA]*"), potentials(3)
    emissions[1, 0] = transitions[0, 0, 1] = -np.inf
    assert one.best(emissions, transitions)[0][1] == 1
    found = one.marginals(emissions, transitions)
    assert found.labels[1] == pytest.approx([0, 1, 0, 0, 0])
    assert found.pairs[0, 0, 1] == 0
    emissions[0] = -np.inf
    for call in (one.log_z, one.best, one.marginals):
        with pytest.raises(LimitError, match="no sequence of 3 labels"):
            call(emissions, transitions)
    assert one.score([2, 0, 0], emissions) == -np.inf


def test_a_union_has_no_states_but_those_of_its_parts() -> None:
    """The graph of a union is at most as large as those of its parts together, not as their product."""
    parts = [f"O*{label}O*{other}O*" for label in "ABC" for other in "ABC"]

    def count(pattern: str, length: int = 12) -> int:
        return int(field(pattern).paths(length).live.any(axis=0).sum())

    sizes = [count(part) for part in parts]
    for k in range(1, len(parts) + 1):
        assert count("|".join(parts[:k])) <= sum(sizes[:k]) + 4
    product = math.prod(sizes)
    assert count("|".join(parts)) < product / 1000
    disjoint = [f"(O{{{k}}}A)*" for k in range(1, 6)]
    assert count("|".join(disjoint)) <= sum(map(count, disjoint)) + 4


def test_constraints_that_are_no_regular_language() -> None:
    """Balanced labels: the graph holds what the length allows."""
    nested = SequenceField(compile_constraint(LABELS, grammar='root ::= "A" root "B" root | ""'))
    emissions, transitions = potentials(6)
    counts = {
        labels for labels in itertools.product((1, 2), repeat=6)
        if all(labels[:k].count(1) >= labels[:k].count(2) for k in range(7)) and labels.count(1) == 3
    }  # fmt: skip
    assert nested.log_z(np.zeros((6, 5))) == pytest.approx(math.log(len(counts)))
    assert tuple(nested.best(emissions, transitions)[0]) in counts


def test_wrong_potentials_are_refused() -> None:
    one = field("[OABC]*")
    for emissions, transitions, words in (
        (np.zeros(5), None, r"emissions are \[5\]"), (np.zeros((0, 5)), None, "T of 1 or more"),
        (np.zeros((3, 4)), None, "emissions"), (np.zeros((3, 5)), np.zeros((3, 5, 5)), "transitions are"),
        (np.full((3, 5), np.nan), None, "NaN"), (np.zeros((3, 5)), np.full((5, 5), np.inf), r"transitions contain"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=words):
            one.log_z(emissions, transitions)
    with pytest.raises(ArgumentError, match="2 labels for 3"):
        one.score([0, 0], np.zeros((3, 5)))
    with pytest.raises(LimitError, match="more than 2 states"):
        SequenceField(one.constraint, most_states=2).log_z(np.zeros((3, 5)))


# ---- torch -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moving", [True, False])
def test_gradients_are_those_of_finite_differences(moving: bool) -> None:
    torch = pytest.importorskip("torch")
    from constrain.integrations.torch_fields import field_log_z, field_loss

    one, (emissions, transitions) = field("O*AO*BO*"), potentials(4, moving=moving)
    given = [torch.tensor(values, requires_grad=True) for values in (emissions, transitions)]
    assert torch.autograd.gradcheck(lambda a, b: field_log_z(one, a, b), given)
    assert torch.autograd.gradcheck(lambda a: field_log_z(one, a), given[:1])
    loss = field_loss(one, [1, 0, 2, 0], *given)
    assert loss.item() == pytest.approx(
        one.log_z(emissions, transitions) - one.score([1, 0, 2, 0], emissions, transitions)
    )
    (3 * loss).backward()
    found = one.marginals(emissions, transitions)
    own = np.zeros((4, 5))
    own[np.arange(4), [1, 0, 2, 0]] = 1
    assert given[0].grad.numpy() == pytest.approx(3 * (found.labels - own), abs=1e-10)
    assert float(field_loss(one, [1, 1, 2, 0], *given)) == math.inf
    assert field_loss(one, [1, 2], given[0][:2]).item() >= 0


def make_task(count: int, seed: int) -> list[tuple[np.ndarray, list[int]]]:
    """Sequences of 8 labels with one A and one B, of the same side: both in the first half or both in the second.

    What is observed is the label with noise, so that only the constraint knows what belongs together.
    """
    rng, out = np.random.default_rng(seed), []
    for _ in range(count):
        a, b = sorted(rng.choice(4, 2, replace=False) + 4 * rng.integers(2))
        labels = np.zeros(8, np.int64)
        labels[a], labels[b] = 1, 2
        observed = np.eye(5)[labels] + rng.normal(0, 0.55, (8, 5))
        out.append((observed, labels.tolist()))
    return out


def train(one: SequenceField, data: list[tuple[np.ndarray, list[int]]]) -> tuple[Any, Any, list[float]]:
    """A linear field: emissions are a matrix times what is observed; transitions are free."""
    torch = pytest.importorskip("torch")
    from constrain.integrations.torch_fields import field_loss

    matrix = torch.zeros((5, 5), dtype=torch.float64, requires_grad=True)
    moves = torch.zeros((5, 5), dtype=torch.float64, requires_grad=True)
    optimiser, losses = torch.optim.LBFGS([matrix, moves], max_iter=12), []

    def step() -> Any:
        optimiser.zero_grad()
        loss = sum(field_loss(one, labels, torch.tensor(seen) @ matrix, moves) for seen, labels in data) / len(data)
        loss = loss + 1e-3 * (matrix.square().sum() + moves.square().sum())
        loss.backward()
        losses.append(float(loss.detach()))
        return loss

    optimiser.step(step)
    return matrix.detach().numpy(), moves.detach().numpy(), losses


def test_training_on_a_small_task() -> None:
    """The loss falls, decoding is always valid and better than without the constraint, and constrained training gives
    the labels more probability than constraining a field that was trained without (Papay et al. 2022, section 5).
    """
    halves = "O*AO*BO*"
    pattern = "|".join(
        "O" * before + "A" + "O" * between + "B" + "O" * (6 - before - between)
        for start in (0, 4) for before in range(start, start + 3) for between in range(start + 3 - before)
    )  # fmt: skip
    constrained, loose = field(pattern), field("[OAB]*")
    data, held_out = make_task(60, 0), make_task(200, 1)
    trained, free = train(constrained, data), train(loose, data)
    assert trained[2][-1] < 0.6 * trained[2][0]

    def measure(one: SequenceField, parameters: Any) -> tuple[float, float]:
        matrix, moves, _ = parameters
        right = [one.best(seen @ matrix, moves)[0] == labels for seen, labels in held_out]
        losses = [
            one.log_z(seen @ matrix, moves) - one.score(labels, seen @ matrix, moves) for seen, labels in held_out
        ]
        return float(np.mean(right)), float(np.mean(losses))

    with_training, decoding_only, alone = (
        measure(constrained, trained), measure(constrained, free), measure(loose, free)
    )  # fmt: skip
    assert with_training[0] > alone[0] + 0.05
    assert with_training[1] < decoding_only[1] < alone[1]
    assert all(constrained.accepts(constrained.best(seen @ trained[0], trained[1])[0]) for seen, _ in held_out)
    assert field(halves).accepts([1, 2, 0])
