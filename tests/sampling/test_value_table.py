"""Tables of values: what stands in where nothing was learned, backups beside their definition, files, kept tables."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.base.errors import SourceError
from constrain.engine.abstract_states import abstract_state, abstract_states_after
from constrain.sampling import ValueTable, load_table, save_table, smc
from constrain.sampling.core.token_masses import Masses, allowed_tokens, mask_of
from constrain.sampling.learned_twist import fallback_rule
from constrain.sampling.learned_twist.constraint_tables import (
    drop_table,
    forget_rare,
    keep_table,
    new_table,
    renumber_table,
    take_table,
)
from constrain.sampling.learned_twist.fallback_rule import Outcome, choose_kind, has_fallen_back
from constrain.sampling.learned_twist.state_numbers import StateNumbers, renumber
from constrain.sampling.learned_twist.value_backups import back_up, measure_gap
from constrain.sampling.learned_twist.value_table import (
    BANDS,
    COLUMNS,
    PACES,
    PRICE,
    Values,
    find_band,
    find_pace,
    fit_line,
)
from constrain.sampling.learned_twist.visited_prefixes import VisitedPrefix, VisitedPrefixes
from constrain.sampling.lookahead import FOLLOWED, ListedRest, SummedRest, list_likely
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import LETTERS, cases

BYTES = Vocabulary.bytes()
SCHEMA = {
    "type": "object", "required": ["a"],
    "properties": {"a": {"enum": ["x", "yes"]}, "b": {"type": "array", "items": {"type": "integer"}}},
}  # fmt: skip


def learned(seed: int = 0) -> tuple[Any, ValueTable]:
    """A case and the table that it has kept."""
    case = cases()["pieces"]
    drop_table(case.constraint)
    smc.draw_smc(
        case.lm, case.constraint, n=6, rng=np.random.default_rng(seed), max_tokens=case.max_tokens, particles=8
    )
    return case, take_table(case.constraint)


# ---- abstract states -------------------------------------------------------------------------------------------------


def state_after(constraint: Any, text: bytes) -> Any:
    matcher = constraint.matcher()
    matcher.advance_bytes(text)
    return abstract_state(matcher)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a": "x", "b": [1, 2, 3', b'{"a": "x", "b": [7, 8, 9', True),
        (b'{"q', b'{"zzzz', True),  # undeclared names
        (b'{"a": "', b'{"b": [1], "a": "', False),  # other keys are written
        (b'{"a": "x', b'{"a": "y', False),  # places in an enum
        (b'{"q": 1, "a": "x", ', b'{"r": 1, "a": "x", ', True),
    ],
)
def test_states_are_equal_where_details_do_not_matter(one: bytes, other: bytes, same: bool) -> None:
    constraint = constrain.compile(BYTES, schema=SCHEMA, style=constrain.Style.any())
    assert (state_after(constraint, one).key == state_after(constraint, other).key) is same


def test_states_ahead_are_those_behind() -> None:
    constraint = constrain.compile(BYTES, schema=SCHEMA, style=constrain.Style.any())
    for text in (b"", b'{"', b'{"a": "', b'{"b": [', b'{"a": "x"', b'{"a": "x", "b": [-1'):
        matcher = constraint.matcher()
        matcher.advance_bytes(text)
        allowed = allowed_tokens(matcher.mask())
        allowed = allowed[~np.isin(allowed, BYTES.eos_ids)]
        for token, state in zip(allowed.tolist(), abstract_states_after(matcher, allowed)):
            after = matcher.fork()
            after.advance(token)
            assert state is not None and state.key == abstract_state(after).key
            assert state.least == abstract_state(after).least


def test_the_least_rest_is_a_bound_of_the_shortest_completion() -> None:
    constraint = constrain.compile(BYTES, schema=SCHEMA, style=constrain.Style.any())
    for text in (b"", b'{"b', b'{"a": "y', b'{"b": [1, 2]'):
        matcher = constraint.matcher()
        matcher.advance_bytes(text)
        shortest = matcher.shortest_completion()
        assert shortest is not None and abstract_state(matcher).least <= len(shortest)


def test_states_are_found_again_by_their_examples() -> None:
    case, table = learned()
    numbers, found = renumber(case.constraint, table.numbers.examples)
    assert found.tolist() == list(range(len(table.numbers)))
    assert numbers.least.tolist() == table.numbers.least.tolist()
    assert numbers.coarse.tolist() == table.numbers.coarse.tolist()
    refused = renumber(constrain.compile(LETTERS, regex="c"), [(0,), (2,)])[1]
    assert refused.tolist() == [-1, 0]


def test_a_copy_grows_alone() -> None:
    _, table = learned()
    copy = table.copy()
    state = state_after(constrain.compile(BYTES, schema=SCHEMA, style=constrain.Style.any()), b'{"a')
    number = copy.numbers.add(state, (1, 2))
    assert number == len(table.numbers) == len(copy.numbers) - 1
    assert table.numbers.find(state) == -1 and copy.numbers.find(state) == number


# ---- values ----------------------------------------------------------------------------------------------------------


def numbers_of(least: list[int]) -> StateNumbers:
    """A numbering of made-up states, all of one coarse state if they need equally many bytes."""
    from constrain.engine.abstract_states import AbstractState

    numbers = StateNumbers(0)
    for i, length in enumerate(least):
        numbers.add(AbstractState((i,), (length,), length), (i,))
    return numbers


def test_an_empty_table_prices_the_least_rest() -> None:
    table = replace(new_table(cases()["pieces"].constraint), numbers=numbers_of([0, 10]))
    values = Values(table)
    assert values.of_slots(np.array([0, COLUMNS + 3])).tolist() == [0.0, -PRICE * 10]
    assert Values(table, unseen=0.0).of_slots(np.array([COLUMNS])).tolist() == [0.0]


def test_what_stands_in_for_an_unknown_slot() -> None:
    """The nearest band of the same pace, more tokens left first; then other paces, the coarse state, and the line."""
    logs, coarse = np.full((3, PACES, BANDS), math.nan), np.full((2, PACES, BANDS), math.nan)
    logs[0, 1, [1, 3]] = -1.0, -3.0
    coarse[0, 0, 0] = -7.0
    table = ValueTable(
        numbers_of([5, 5, 9]), 10, logs.reshape(3, -1), np.zeros((3, COLUMNS)), coarse.reshape(2, -1),
        np.array([4 * 1 + 12]), np.array([-0.5]), np.array([1.0]), (-2.0, -0.25),
    )  # fmt: skip
    filled = Values(table).slots.reshape(-1, PACES, BANDS)
    assert filled[0].tolist() == [[-1.0, -1.0, *[-3.0] * (BANDS - 2)]] * PACES
    assert filled[1, 0].tolist() == [-7.0, *[-3.25] * (BANDS - 1)]
    assert (filled[1, 1:] == -3.25).all() and (filled[2] == -4.25).all()
    assert (Values(table, unseen=0.0).slots.reshape(-1, COLUMNS)[1] == 0).all()
    known = Values(table).of_pairs(np.array([1, 1]), np.array([6, 7]))
    assert known.tolist() == [-0.5, -1.0]


@given(st.floats(0, 1), st.floats(0, 1))
def test_paces_rise_with_exit_rates(one: float, other: float) -> None:
    assert find_pace(math.nan) == 0
    assert 0 < find_pace(min(one, other)) <= find_pace(max(one, other)) < PACES


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_bands_rise_with_what_is_left(least: int, left: int) -> None:
    assert 0 <= find_band(least, left) <= find_band(least, left + 1) < BANDS
    assert find_band(least + 1, left) <= find_band(least, left)


def test_a_line_never_rises() -> None:
    x = np.array([1.0, 2.0, 5.0])
    assert fit_line(x, -3 - 0.5 * x) == pytest.approx((-3.0, -0.5))
    assert fit_line(x, x) == pytest.approx((8 / 3, 0.0))
    assert fit_line(x[:1], x[:1]) == (1.0, 0.0)


# ---- backups ---------------------------------------------------------------------------------------------------------


@st.composite
def tries(draw: Any) -> VisitedPrefixes:
    """Visited texts of four tokens: each with a part of its next tokens followed."""
    visited, size = VisitedPrefixes(), draw(st.integers(1, 12))
    for i in range(size):
        parent = None if i == 0 else draw(st.sampled_from(visited.listed))
        token = -1 if parent is None else draw(st.integers(0, 3))
        if parent is not None and token in parent.children:
            continue
        one = visited.add(parent, draw(st.integers(0, 3 * COLUMNS - 1)), token, draw(st.floats(0.01, 0.3)))
        one.tokens = np.array(sorted(draw(st.sets(st.integers(0, 3), max_size=3))), np.int64)
        count = len(one.tokens)
        one.slots = np.array(draw(st.lists(st.integers(0, 4 * COLUMNS - 1), min_size=count, max_size=count)), np.int64)
        one.probs = np.array(draw(st.lists(st.floats(0.01, 0.2), min_size=count, max_size=count)))
        one.end_prob, one.rest_prob = draw(st.sampled_from([0.0, 0.1])), draw(st.floats(0.0, 0.1))
        one.rest_slot = draw(st.integers(0, 3 * COLUMNS - 1))
    return visited


def value_by_definition(one: VisitedPrefix, values: Values) -> float:
    """V(u) = p(end | u) + sum over next tokens of p v, v being V of a visited text."""

    def worth(slot: int, token: int) -> float:
        return math.exp(values.of_pairs(np.array([slot]), np.array([token]))[0])

    rest = math.exp(values.of_slots(np.array([one.rest_slot]))[0])
    total = one.end_prob + one.rest_prob * rest
    for token, slot, prob in zip(one.tokens.tolist(), one.slots.tolist(), one.probs.tolist()):
        child = one.children.get(token)
        total += prob * (worth(slot, token) if child is None else value_by_definition(child, values))
    for token, child in one.children.items():
        if token not in one.tokens:
            total += child.prob * (value_by_definition(child, values) - rest)
    return min(max(total, 1e-250), 1.0)


def log_mean(texts: list[VisitedPrefix]) -> float:
    return math.log(sum(one.value or 0.0 for one in texts) / len(texts))


def shrink_by_definition(texts: list[VisitedPrefix], towards: float) -> float:
    """The log-mean of n texts, drawn towards a value that counts for half a text; never lower than caution allows."""
    n = len(texts)
    return max((n * log_mean(texts) + 0.5 * towards) / (n + 0.5), towards + 3 * math.log(0.5 / (n + 0.5)))


def log_of_slot(slot: int, texts: list[VisitedPrefix], table: ValueTable) -> float:
    """From the coarse state to the state and to the slot, all of them in the same band."""
    state, band, numbers = slot // COLUMNS, slot % BANDS, table.numbers
    near = [x for x in texts if x.slot % BANDS == band]
    alike = [x for x in near if numbers.coarse_of(x.slot // COLUMNS) == numbers.coarse_of(state)]
    value = log_mean(alike)
    if value <= math.log(1e-200):
        line = min(0.0, table.line[0] + table.line[1] * numbers.least_of(state))
        value = line + 3 * math.log(0.5 / (len(alike) + 0.5))
    value = shrink_by_definition([x for x in near if x.slot // COLUMNS == state], value)
    return shrink_by_definition([x for x in near if x.slot == slot], value)


@settings(max_examples=60, deadline=None)
@given(tries())
def test_backups_are_the_equation(visited: VisitedPrefixes) -> None:
    prior = replace(new_table(cases()["pieces"].constraint), numbers=numbers_of([3, 4, 4, 9]))
    table = back_up(visited, prior, prior, sweeps=1)
    for one in visited.listed:
        assert one.value == pytest.approx(value_by_definition(one, Values(prior)), rel=1e-9)
    for one in visited.listed:
        slot = log_of_slot(one.slot, visited.listed, table)
        assert table.logs.reshape(-1)[one.slot] == pytest.approx(slot)
        assert table.counts.reshape(-1)[one.slot] == sum(other.slot == one.slot for other in visited.listed)
    for one in visited.listed[1:]:
        alike = [x for x in visited.listed[1:] if (x.slot, x.token) == (one.slot, one.token)]
        code = one.slot * prior.size + one.token
        wanted = shrink_by_definition(alike, log_of_slot(one.slot, visited.listed, table))
        assert table.pair_logs[table.pairs == code].tolist() == pytest.approx([wanted])
    low, high = measure_gap(visited, table)
    assert low <= high + 1e-9


def test_texts_that_all_died_do_not_make_a_slot_impossible() -> None:
    visited = VisitedPrefixes()
    root = visited.add(None, 0, -1, 1.0)
    root.tokens, root.slots, root.probs = np.array([0, 1]), np.array([COLUMNS, 2 * COLUMNS]), np.array([0.5, 0.5])
    for token in (0, 1):
        visited.add(root, COLUMNS, token, 0.5)
    prior = replace(new_table(cases()["pieces"].constraint), numbers=numbers_of([3, 4, 4]))
    table = back_up(visited, prior, prior)
    assert -50 < table.logs[1, 0] < Values(prior).of_slots(np.array([COLUMNS]))[0] + 1
    assert (table.pair_logs > -60).all()


def test_what_earlier_calls_have_learned_counts_for_few_texts() -> None:
    visited = VisitedPrefixes()
    root = visited.add(None, 0, -1, 1.0)
    root.end_prob = 0.5
    empty = replace(new_table(cases()["pieces"].constraint), numbers=numbers_of([3]))
    prior = back_up(visited, empty, empty)
    assert prior.logs[0, 0] == pytest.approx(math.log(0.5))
    root.end_prob = 0.1
    old = replace(prior, counts=100 * prior.counts)
    assert math.exp(back_up(visited, old, old).logs[0, 0]) == pytest.approx((4 * 0.5 + 0.1) / 5)


# ---- the tokens that are followed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.1, 1.0, 6.0])
def test_the_rest_of_a_large_mask_is_exact(scale: float) -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(scale=scale, size=3000)
    row = logits - np.logaddexp.reduce(logits)
    allowed = np.flatnonzero(rng.random(3000) < 0.7)
    masses = Masses(row, mask_of(allowed, 3000))
    top = np.sort(list_likely(masses, FOLLOWED))
    assert len(set(top.tolist())) == FOLLOWED and set(top.tolist()) <= set(allowed.tolist())
    best = np.sort(row[allowed])[-16:]
    assert set(allowed[row[allowed] >= best[0]].tolist()) <= set(top.tolist()) or scale < 1
    others = np.setdiff1d(allowed, top)
    rest = masses.without(top)
    assert rest.logmass == pytest.approx(np.logaddexp.reduce(row[others]))
    listed = ListedRest(others, row[others], rest.logmass)
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(50):
        assert SummedRest(rest).draw(one) == pytest.approx(listed.draw(two))
    assert masses.logmass == pytest.approx(np.logaddexp.reduce(row[allowed])), "the whole is not changed"


def test_a_faint_rest_is_not_lost() -> None:
    row = np.full(2000, -800.0)
    row[7] = 0.0
    rest = Masses(row, mask_of(range(2000), 2000)).without(np.array([7]))
    assert rest.logmass == pytest.approx(-800 + math.log(1999))


# ---- the fallback ----------------------------------------------------------------------------------------------------


def history(*runs: tuple[str, float]) -> list[Outcome]:
    return [Outcome(kind, log_z, i + 2) for i, (kind, log_z) in enumerate(runs)]  # type: ignore[arg-type]


def test_a_twist_that_does_well_stays() -> None:
    assert choose_kind([], False) == "learned"
    steady = history(*[("learned", -5.0 + 0.1 * i) for i in range(12)])
    assert all(choose_kind(steady[:i], False) == "learned" for i in range(12))


def test_a_twist_that_dies_or_spreads_is_compared_once_and_left_if_it_is_worse() -> None:
    dead = history(("learned", -5.0), ("learned", -math.inf))
    assert choose_kind(dead, False) == "flat"
    spread = history(("learned", -5.0), ("learned", -9.0), ("learned", -30.0))
    assert choose_kind(spread, False) == "flat"
    worse = [*history(("learned", -5.0), ("learned", -math.inf)), Outcome("flat", -4.0, 6)]
    assert choose_kind(worse, False) == "learned", "which is due for another try"
    assert choose_kind([*worse, Outcome("learned", -20.0, 7)], False) == "flat"
    assert has_fallen_back([*spread, Outcome("flat", -4.0, 6)], False)
    assert not has_fallen_back([*spread, Outcome("flat", -40.0, 6)], False)
    assert choose_kind([*spread, Outcome("flat", -40.0, 6)], False) == "learned"


def test_the_spread_of_a_cold_table_says_nothing() -> None:
    cold = [Outcome("learned", log_z, i) for i, log_z in enumerate((-60.0, -math.inf))]
    assert choose_kind(cold, False) == "learned"


def test_the_learned_twist_is_tried_again() -> None:
    kinds: list[str] = []
    past: list[Outcome] = []
    for i in range(12):
        kinds.append(choose_kind(past, True))
        past.append(Outcome(kinds[-1], -5.0 if kinds[-1] == "flat" else -20.0, 9 + i))  # type: ignore[arg-type]
    assert kinds == [*["flat"] * (fallback_rule.RETRY - 1), "learned"] * 3
    assert has_fallen_back(past, True)
    assert not has_fallen_back([*past, *history(*[("learned", -4.0)] * 4)], True)


# ---- kept tables and files -------------------------------------------------------------------------------------------


def assert_same_table(one: ValueTable, other: ValueTable) -> None:
    for name in ("logs", "counts", "pairs", "pair_logs", "pair_counts"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name))
    assert (one.line, one.size, one.populations) == (other.line, other.size, other.populations)
    assert one.numbers.examples == other.numbers.examples


def test_tables_survive_a_file(tmp_path: Path) -> None:
    case, table = learned()
    save_table(case.constraint, tmp_path / "values.npz")
    drop_table(case.constraint)
    assert take_table(case.constraint).populations == 0
    assert_same_table(load_table(case.constraint, tmp_path / "values.npz"), table)
    assert_same_table(take_table(case.constraint), table)
    assert [path.name for path in tmp_path.iterdir()] == ["values.npz"]


def test_files_of_other_constraints_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    case, _ = learned()
    path = tmp_path / "values.npz"
    save_table(case.constraint, path)
    with pytest.raises(SourceError, match="another constraint"):
        load_table(constrain.compile(LETTERS, regex="abc"), path)
    data = path.read_bytes()
    place = data.rindex(b"PK\5\6") + 16  # where the directory is said to begin: its entries then lie before the file
    moved = data[:place] + (int.from_bytes(data[place : place + 4], "little") + 10**6).to_bytes(4, "little")
    for damaged in (b"", data[: len(data) // 2], b"PK" + data[:40], b"x" * 100, moved + data[place + 4 :]):
        path.write_bytes(damaged)
        with pytest.raises(SourceError, match="not a table"):
            load_table(case.constraint, path)
    with pytest.raises(FileNotFoundError):
        load_table(case.constraint, tmp_path / "none.npz")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("head", lambda x: x + 1), ("head", lambda x: np.array([*x[:2], 2**62])),
        ("head", lambda x: np.array([*x[:2], -1])), ("logs", lambda x: x + 900), ("logs", lambda x: x[:, :2]),
        ("pairs", lambda x: x[::-1].copy()), ("pairs", lambda x: x + 10**9), ("pair_logs", lambda x: x[:-1]),
        ("pair_logs", lambda x: x * np.nan), ("counts", lambda x: -1 - x), ("counts", lambda x: x + 1e300),
        ("pair_counts", lambda x: x + np.inf), ("line", lambda x: x + 5),
        ("example_starts", lambda x: x[:-1]), ("example_tokens", lambda x: x + 1000),
        ("logs", lambda x: x.astype(np.float32)), ("pairs", lambda x: np.array([object()] * 3)),
    ],
)  # fmt: skip
def test_files_that_others_wrote_are_checked(name: str, change: Any, tmp_path: Path) -> None:
    case, _ = learned()
    save_table(case.constraint, tmp_path / "values.npz")
    with np.load(tmp_path / "values.npz") as file:
        arrays = dict(file)
    arrays[name] = change(arrays[name])
    np.savez(tmp_path / "values.npz", **arrays)
    with pytest.raises(SourceError, match="table"):
        load_table(case.constraint, tmp_path / "values.npz")


def test_tables_are_renumbered_when_the_program_was_relinked() -> None:
    case, table = learned()
    drop_table(case.constraint)
    keep_table(case.constraint, replace(table, numbers=_of_generation(table.numbers, -5)))
    again = take_table(case.constraint)
    assert_same_table(again, table)
    assert again.numbers.generation == case.constraint.program.generation
    assert_same_table(renumber_table(table, case.constraint), table)


def _of_generation(numbers: StateNumbers, generation: int) -> StateNumbers:
    other = numbers.copy()
    other.generation = generation
    return other


def test_rare_pairs_are_forgotten_first() -> None:
    _, table = learned()
    few = forget_rare(table, 3)
    assert len(few.pairs) == len(few.pair_logs) == 3 and (np.diff(few.pairs) > 0).all()
    assert few.pair_counts.min() >= np.sort(table.pair_counts)[-3]
    assert forget_rare(table, 10**6) is table
