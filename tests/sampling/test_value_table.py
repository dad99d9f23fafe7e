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
from constrain.sampling import ValueTable, draw, load_table, save_table, smc
from constrain.sampling.core.token_masses import Masses, allowed_tokens, mask_of
from constrain.sampling.learned_twist import fallback_rule, value_backups
from constrain.sampling.learned_twist.constraint_tables import (
    drop_table,
    forget_rare,
    keep_table,
    new_table,
    renumber_table,
    take_table,
)
from constrain.sampling.learned_twist.fallback_rule import Kind, Outcome, choose_kind, choose_probe, has_fallen_back
from constrain.sampling.learned_twist.state_numbers import StateNumbers, renumber
from constrain.sampling.learned_twist.value_backups import back_up, measure_gap
from constrain.sampling.learned_twist.value_table import (
    HORIZONS,
    LACK,
    MOST_REPEATS,
    PACES,
    PRICE,
    SMALLEST,
    SPEEDS,
    Values,
    count_horizons,
    find_pace,
    fit_line,
    guess_log,
    guess_logs,
)
from constrain.sampling.learned_twist.visited_prefixes import VisitedPrefix, VisitedPrefixes
from constrain.sampling.lookahead import FOLLOWED, LONGEST_REPEAT, ListedRest, SummedRest
from constrain.sampling.particles import Move, Prefixes
from constrain.sampling.twisted_populations import LearningTrie
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import LETTERS, cases
from tests.model_factory import UniformModel

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


SHORT = Vocabulary.from_tokens([b"a", b"b", b"c", b"ab", b"ca", None], eos_ids=[5])


class ShortTexts:
    """A LanguageModel with rows of its own after every prefix, so that no text goes on for long."""

    def next_logprobs(self, prefixes: list[list[int]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        rows = np.array(
            [np.random.default_rng([0, *(token + 1 for token in prefix)]).normal(size=6) for prefix in prefixes]
        )
        return np.array(rows - np.log(np.exp(rows).sum(axis=1, keepdims=True)))


def draw_short(most_tokens: int) -> tuple[Any, ValueTable]:
    """Draw with a fresh table, and return the draws and the table."""
    constraint = constrain.compile(SHORT, regex="(a|b)*c")
    drop_table(constraint)
    draws = draw(ShortTexts(), constraint, sampler="smc", n=4, rng=np.random.default_rng(0), max_tokens=most_tokens)
    return draws, take_table(constraint)


def test_settled_values_are_those_of_every_number_of_tokens_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backups skip numbers of tokens left where nothing changes; the oracle computes each of them."""
    draws, table = draw_short(1500)
    monkeypatch.setattr(value_backups, "SETTLES", 10**9)
    expected, expected_table = draw_short(1500)
    assert [draw.tokens for draw in draws] == [draw.tokens for draw in expected]
    assert draws.stats["log_z"] == pytest.approx(expected.stats["log_z"], abs=1e-3)
    assert np.array_equal(table.slots, expected_table.slots)
    assert np.abs(table.logs - expected_table.logs).max() < 0.02


def test_any_number_of_tokens_may_be_left() -> None:
    """Beyond the last of HORIZONS, too."""
    draws, table = draw_short(10**9)
    assert len(draws) == 4 and draws.stats["log_z"] > -math.inf and table.logs.shape[1] == len(HORIZONS)


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
    texts = (b"", b'{"', b'{"a": "', b'{"b": [', b'{"a": "x"', b'{"a": "x", "b": [-1')
    for text in (*texts, b'{"a', b'{"a": "x", "a', b'{"q', b'{"q": 1, "q'):  # names, declared and written ones too
        matcher = constraint.matcher()
        matcher.advance_bytes(text)
        allowed = allowed_tokens(matcher.mask())
        allowed = allowed[~np.isin(allowed, BYTES.eos_ids)]
        states = abstract_states_after(matcher, allowed)
        assert len(states) == len(allowed)
        for token, state in zip(allowed.tolist(), states):
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
    assert values.of_slots(np.array([0, PACES + 3]), 50).tolist() == [0.0, -PRICE * 10]
    assert values.of_slots(np.array([PACES]), 3).tolist() == pytest.approx([-PRICE * 10 - LACK * (1 + 10 / 3 - 3)])
    assert Values(table, unseen=0.0).of_slots(np.array([PACES]), 3).tolist() == [0.0]


@pytest.mark.parametrize("line", [(0.0, -PRICE), (-2.0, -0.25), (1.5, -400.0)])
def test_guesses_of_one_state_are_those_of_many(line: tuple[float, float]) -> None:
    least = [0.0, 1.0, 7.0, 300.0]
    for left in (0, 1, 3, 1000):
        assert [guess_log(line, one, left) for one in least] == guess_logs(line, np.array(least), left).tolist()


def test_unknown_slots_get_estimated_values() -> None:
    """The mean of the state, by texts; or what `guess_logs` says, with the coarse state's mean departure from it."""
    numbers, line = numbers_of([5, 5, 9, 5]), (-2.0, -0.25)
    logs = np.repeat([[-1.0], [-3.0], [-8.0]], 3, axis=1)
    table = ValueTable(
        numbers, 10, np.array([0, 1, 3 * PACES]), logs, np.array([1.0, 3.0, 0.0]),
        np.array([2.0, 4.0, 9.0]), np.array([4, 37]), np.array([-0.5, 2.0]), np.array([1.0, 1.0]), line,
    )  # fmt: skip
    values, unknown = Values(table), np.array([2, PACES, 2 * PACES])
    assert values.of_slots(np.array([0, 1, 3 * PACES]), 2).tolist() == [-1.0, -3.0, -8.0]
    assert values.of_slots(unknown, 9).tolist() == pytest.approx([-2.5, -2.5, -4.25], abs=1e-5)
    assert Values(table, unseen=0.0).of_slots(np.array([0, *unknown, 3 * PACES]), 9)[[0, 2, 3, 4]].tolist() == [
        -1,
        0,
        0,
        0,
    ]
    known = values.of_pairs(np.array([1, 1, 3 * PACES, 3 * PACES]), np.array([4, 5, 7, 8]), 2)
    assert known.tolist() == [-3.5, -3.0, -6.0, -8.0]
    assert values.spreads_of(np.array([1, 0, *unknown, 3 * PACES])).tolist() == [4.0, 2.0, 3.5, 3.5, 3.5, 9.0]


def test_values_between_two_horizons_are_interpolated() -> None:
    columns = count_horizons(40)
    assert HORIZONS[columns - 1] == 40 and HORIZONS[columns - 2] == 38
    logs = -np.arange(columns, dtype=np.float64)[None]
    table = replace(new_table(cases()["pieces"].constraint), numbers=numbers_of([5]), slots=np.array([0]), logs=logs,
                    counts=np.array([1.0]))  # fmt: skip
    wanted = [0, -7, -columns + 2, -columns + 1.5, -columns + 1, -columns + 1]
    assert [table.logs_at(left)[0] for left in (0, 7, 38, 39, 40, 1000)] == wanted


def test_a_line_feed_is_remembered() -> None:
    """Whether a text has one is part of its slot, and of the slots of the tokens that follow."""
    constraint = constrain.compile(BYTES, schema=SCHEMA, style=constrain.Style.any())
    prefixes, numbers = Prefixes(UniformModel(BYTES.size), constraint), StateNumbers(0)
    assert np.flatnonzero(prefixes.newlines).tolist() == [10]
    trie = LearningTrie(prefixes, numbers, 100)
    node = trie.begin()
    for token, before in zip(b'{\n"', (False, False, True)):
        prefixes.fetch_rows([node])
        ahead, visited = trie.look_ahead(node, 50 - node.depth)
        assert visited is not None and visited.slot % PACES // SPEEDS % 2 == before
        paces = ahead.slots % PACES // SPEEDS % 2
        assert (paces == (before | (ahead.tokens == 10))).all()
        node = prefixes.child(node, Move(token, -5.0, 0.0))
        node.has_newline = before or token == 10


@given(st.lists(st.sampled_from(b"ab:"), max_size=13).map(lambda pieces: [*b'{"q":"', *pieces]))
def test_texts_that_repeat_their_last_tokens_have_slots_of_their_own(text: list[int]) -> None:
    """By the definition, for the text and for all that may follow it."""

    def repeats(tokens: list[int]) -> int:
        """The largest n for which the text ends with n + 1 times the same k tokens."""
        ways = [
            times for times in range(1, MOST_REPEATS + 1) for k in range(1, LONGEST_REPEAT + 1)
            if len(tokens) >= k * (times + 1) and tokens[-k * (times + 1):] == tokens[-k:] * (times + 1)
        ]  # fmt: skip
        return max(ways, default=0)

    constraint = constrain.compile(BYTES, schema=SCHEMA, style=constrain.Style.any())
    prefixes, numbers = Prefixes(UniformModel(BYTES.size), constraint), StateNumbers(0)
    trie = LearningTrie(prefixes, numbers, 100)
    node = trie.begin()
    for token in text:
        prefixes.fetch_rows([node])
        trie.look_ahead(node, 50 - node.depth)
        node = prefixes.child(node, Move(token, -5.0, 0.0))
    prefixes.fetch_rows([node])
    ahead, visited = trie.look_ahead(node, 50 - node.depth)
    assert visited is not None and visited.slot % PACES // SPEEDS // 2 == repeats(text)
    assert (ahead.slots % PACES // SPEEDS // 2).tolist() == [repeats([*text, token]) for token in ahead.tokens.tolist()]
    assert ahead.own_slot % PACES // SPEEDS // 2 == 0, "the rest seldom repeats anything"


@given(st.floats(0, 1), st.floats(0, 1))
def test_paces_rise_with_exit_rates(one: float, other: float) -> None:
    flags = [(newline, repeats) for repeats in range(MOST_REPEATS + 1) for newline in (False, True)]
    blocks = [SPEEDS * i for i in range(2 * MOST_REPEATS + 2)]
    assert [find_pace(math.nan, *flag) for flag in flags] == blocks
    assert 0 < find_pace(min(one, other), False, 0) <= find_pace(max(one, other), False, 0) < SPEEDS
    paces = [find_pace(one, *flag) for flag in flags]
    assert [pace - paces[0] for pace in paces] == blocks and paces[-1] < PACES


@given(st.floats(0, 400), st.integers(0, 100))
def test_guesses_rise_with_the_remaining_tokens(least: float, left: int) -> None:
    now, later = (guess_logs((0.0, -PRICE), np.array([least]), one)[0] for one in (left, left + 1))
    assert SMALLEST <= now <= later <= 0
    assert guess_logs((0.0, -PRICE), np.array([least + 1]), left)[0] <= now


def test_a_line_never_rises() -> None:
    x = np.array([0.0, 2.0, 5.0])
    assert fit_line(x, -3 - 0.5 * x) == pytest.approx((-3.0, -0.5))
    assert fit_line(x, x - 9) == pytest.approx((-9 + math.log(np.exp(x).mean()), 0.0))
    assert fit_line(x[:1], x[:1] - 2) == (-2.0, 0.0)


@given(st.lists(st.tuples(st.floats(0, 40), st.floats(-30, 0)), min_size=1, max_size=9))
def test_a_line_is_raised_to_the_mean_of_values(points: list[tuple[float, float]]) -> None:
    """Not to the mean of their logs, which is below it: values are expectations."""
    x, logs = np.array([(0.0, -20.0), *points]).T
    start, slope = fit_line(x, logs)
    assert slope <= 0
    assert np.exp(logs - (start + slope * x)).mean() <= 1 + 1e-9


def test_a_line_begins_at_one_until_a_text_could_end() -> None:
    """Its slope is the median price of a byte: a few values that are far off do not move it."""
    x = np.array([1.0, 2.0, 5.0])
    assert fit_line(x, -3 - 0.5 * x) == (0.0, -2.0)
    assert fit_line(np.append(x, [4.0, 4.0]), np.append(-0.5 * x, [-2.0, -400.0])) == (0.0, -0.5)
    assert fit_line(x, x) == (0.0, 0.0)


# ---- backups ---------------------------------------------------------------------------------------------------------


SLOTS = 3 * PACES


@st.composite
def tries(draw: Any) -> VisitedPrefixes:
    """Visited texts of four tokens: each with a part of its next tokens followed."""
    visited, size = VisitedPrefixes(), draw(st.integers(1, 12))
    for i in range(size):
        parent = None if i == 0 else draw(st.sampled_from([one for one in visited.listed if one.left > 2]))
        token = -1 if parent is None else draw(st.integers(0, 3))
        if parent is not None and token in parent.children:
            continue
        left = 9 if parent is None else parent.left - 1
        one = visited.add(parent, draw(st.integers(0, SLOTS - 1)), token, draw(st.floats(0.01, 0.1)), left)
        one.tokens = np.array(sorted(draw(st.sets(st.integers(0, 3), max_size=3))), np.int64)
        count = len(one.tokens)
        one.slots = np.array(draw(st.lists(st.integers(0, 4 * PACES - 1), min_size=count, max_size=count)), np.int64)
        one.probs = np.array(draw(st.lists(st.floats(0.01, 0.2), min_size=count, max_size=count)))
        one.end_prob, one.rest_prob = draw(st.sampled_from([0.0, 0.1])), draw(st.floats(0.3, 0.4))
        one.rest_slot = draw(st.integers(0, SLOTS - 1))
        one.weight = draw(st.sampled_from([1.0, 0.3, 1e-4]))
    return visited


def value_by_definition(one: VisitedPrefix, table: ValueTable, shifts: dict[int, float], left: int) -> float:
    """V(u, l) = p(end | u) + sum over next tokens of p v(l - 1), v being V of a visited text."""
    if left == 0:
        return 0.0

    def worth(slot: int, token: int) -> float:
        if left == 1:
            return 0.0
        value = float(table.logs_at(left - 1)[table.slots.searchsorted(slot)])
        return math.exp(value + shifts.get(slot // PACES * table.size + token, 0.0))

    total = one.end_prob + one.rest_prob * worth(one.rest_slot, -1)
    for token, slot, prob in zip(one.tokens.tolist(), one.slots.tolist(), one.probs.tolist()):
        child = one.children.get(token)
        total += prob * (worth(slot, token) if child is None else value_by_definition(child, table, shifts, left - 1))
    for token, child in one.children.items():
        if token not in one.tokens:
            below = value_by_definition(child, table, shifts, left - 1)
            total += child.prob * (below - worth(one.rest_slot, -1))
    return min(total, 1.0)


def spread_by_definition(table: ValueTable, visited: VisitedPrefixes, slot: int) -> float:
    """Mean square of V / value - 1 over texts of a slot, with 4 texts of its state's, which has 4 of all's."""

    def square(one: VisitedPrefix) -> float:
        value = float(table.logs_at(one.left)[table.slots.searchsorted(one.slot)])
        ratio = value_by_definition(one, table, {}, one.left) / math.exp(value)
        return float(one.weight * (min(ratio, math.exp(1.5)) - 1) ** 2)

    mean, texts = 0.0, [one for one in visited.listed if value_by_definition(one, table, {}, one.left) > 0]
    for extra, alike in (
        (0.0, texts),
        (4.0, [one for one in texts if one.slot // PACES == slot // PACES]),
        (4.0, [one for one in texts if one.slot == slot]),
    ):
        weight = sum(one.weight for one in alike)
        mean = (sum(map(square, alike)) + extra * mean) / (weight + extra) if weight + extra else 0.0
    return mean


def value_of_slots(
    table: ValueTable, visited: VisitedPrefixes, line: tuple[float, float], left: int
) -> dict[int, float]:
    """Log of a guess times the mean ratios to it of coarse state, state and slot, each drawn towards 1 by 3, 1 and 12
    texts.
    """
    texts, numbers = visited.listed, table.numbers

    def near(one: VisitedPrefix) -> float:
        return one.weight * (value_backups.BASE + math.exp(-abs(one.left - left) / value_backups.REACH))

    found: dict[int, float] = {}
    means: dict[int, float] = {}
    for slot in table.slots.tolist():
        found[slot] = float(guess_logs(line, numbers.least[[slot // PACES]].astype(float), left)[0])
        alike = [x for x in texts if x.slot == slot]
        if alike:
            means[slot] = sum(near(x) * value_by_definition(x, table, {}, left) for x in alike) / sum(map(near, alike))
    groups = (
        (lambda slot: numbers.coarse_of(slot // PACES), 3),
        (lambda slot: slot // PACES, 1),
        (lambda slot: slot, 12),
    )
    for group, shrink in groups:
        ratios: dict[Any, list[tuple[float, float]]] = {}
        for x in texts:
            ratios.setdefault(group(x.slot), []).append((x.weight, means[x.slot] / math.exp(found[x.slot])))
        for slot in found:
            seen = ratios.get(group(slot), [])
            total = sum(weight * ratio for weight, ratio in seen) + shrink
            found[slot] += math.log(total / (sum(weight for weight, _ in seen) + shrink))
    return found


@settings(max_examples=35, deadline=None)
@given(tries())
def test_backups_are_the_equation(visited: VisitedPrefixes) -> None:
    prior = replace(new_table(cases()["pieces"].constraint), numbers=numbers_of([3, 4, 4, 9]))
    table = back_up(visited, prior, prior, passes=1)
    for one in visited.listed:
        wanted = value_by_definition(one, table, {}, one.left)
        assert one.value == pytest.approx(wanted, rel=1e-9, abs=math.exp(SMALLEST))
    assert table.logs.shape == (len(table.slots), 10)
    for left in range(1, 10):
        for slot, value in value_of_slots(table, visited, prior.line, left).items():
            assert table.logs_at(left)[table.slots.searchsorted(slot)] == pytest.approx(min(value, 0.0))
    counts = [sum(one.weight for one in visited.listed if one.slot == slot) for slot in table.slots.tolist()]
    assert table.counts.tolist() == pytest.approx(counts)
    spreads = [spread_by_definition(table, visited, slot) for slot in table.slots.tolist()]
    assert table.spreads.tolist() == pytest.approx(spreads, abs=1e-12)
    for one in visited.listed[1:]:
        alike = [x for x in visited.listed[1:] if (x.slot // PACES, x.token) == (one.slot // PACES, one.token)]
        bases = [math.exp(table.logs_at(x.left)[table.slots.searchsorted(x.slot)]) for x in alike]
        tiny = math.exp(SMALLEST)
        values = sum(x.weight * (x.value or 0.0) for x in alike)
        new = math.log((values + tiny) / (sum(x.weight * base for x, base in zip(alike, bases)) + tiny))
        count = sum(x.weight for x in alike)
        code = one.slot // PACES * prior.size + one.token
        wanted = math.log((count * math.exp(min(max(new, -8.0), 8.0)) + 2.0) / (count + 2.0))
        assert table.pair_logs[table.pairs == code].tolist() == pytest.approx([wanted])
    again = back_up(visited, prior, table, passes=1)
    shifts = dict(zip(table.pairs.tolist(), table.pair_logs.tolist()))
    for one in visited.listed:
        wanted = value_by_definition(one, again, shifts, one.left)
        assert one.value == pytest.approx(wanted, rel=1e-9, abs=math.exp(SMALLEST))
    low, high = measure_gap(visited, table)
    assert low <= high + 1e-9


def test_one_row_says_what_any_number_of_tokens_is_worth() -> None:
    """A text that goes on with probability 0.5 and ends with 0.3: V(l) = 0.3 (1 + 0.5 + ...), from a single text."""
    visited = VisitedPrefixes()
    root = visited.add(None, 0, -1, 1.0, 20)
    root.tokens, root.slots, root.probs, root.end_prob = np.array([0]), np.array([0]), np.array([0.5]), 0.3
    prior = replace(new_table(cases()["pieces"].constraint), numbers=numbers_of([3]))
    table = back_up(visited, prior, prior, passes=1)
    low, high = measure_gap(visited, table)
    assert math.exp(low) == pytest.approx(math.exp(high)) == pytest.approx(0.3 * (1 - 0.5**20) / 0.5)
    assert table.logs[0, 1:].tolist() == sorted(table.logs[0, 1:].tolist())


def test_texts_that_all_died_do_not_make_a_slot_impossible() -> None:
    visited = VisitedPrefixes()
    root = visited.add(None, 0, -1, 1.0, 30)
    root.tokens, root.slots, root.probs = np.array([0, 1]), np.array([PACES, 2 * PACES]), np.array([0.5, 0.5])
    for token in (0, 1):
        visited.add(root, PACES, token, 0.5, 29)
    prior = replace(new_table(cases()["pieces"].constraint), numbers=numbers_of([3, 4, 4]))
    table = back_up(visited, prior, prior)
    index = table.slots.searchsorted(PACES)
    assert -50 < table.logs[index, -1] < Values(prior).of_slots(np.array([PACES]), 29)[0]
    assert (abs(table.pair_logs) <= value_backups.MOST_SHIFT).all()


def test_counts_of_earlier_calls_are_capped_in_backups() -> None:
    visited = VisitedPrefixes()
    root = visited.add(None, 0, -1, 1.0, 30)
    root.end_prob = 0.5
    empty = replace(new_table(cases()["pieces"].constraint), numbers=numbers_of([0]))
    prior = back_up(visited, empty, empty, passes=1)
    shrunk = (0.5 + 3) / 4, (0.5 + 3) / 4 * ((0.5 / 0.875 + 1) / 2)  # of coarse state and state; the guess is 1
    assert math.exp(prior.logs[0, -1]) == pytest.approx(shrunk[1] * (0.5 / shrunk[1] + 12) / 13)
    many = back_up(visited, replace(prior, counts=100 * prior.counts), prior, passes=1)
    few = back_up(visited, replace(prior, counts=4 * prior.counts), prior, passes=1)
    assert many.logs.tolist() == few.logs.tolist() and many.counts.tolist() == [5.0]
    root.slot = root.rest_slot = 1
    kept = back_up(visited, prior, prior, passes=1)
    assert kept.slots.tolist() == [0, 1]
    assert kept.logs[0, 1:] == pytest.approx(prior.logs[0, 1:]), "no new text"


# ---- the tokens that are followed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [3000, 20_011])  # fewer and more words than tokens that are followed
@pytest.mark.parametrize("scale", [0.1, 1.0, 6.0])
def test_the_rest_of_a_large_mask_is_exact(scale: float, size: int) -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(scale=scale, size=size)
    row = logits - np.logaddexp.reduce(logits)
    allowed = np.flatnonzero(rng.random(size) < 0.7)
    masses = Masses(row, mask_of(allowed, size))
    top, logs = masses.list_likeliest(FOLLOWED)
    assert top.tolist() == np.sort(allowed[np.argsort(-row[allowed])[:FOLLOWED]]).tolist()
    assert logs.tolist() == row[top].tolist()
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
    row[[8, 70]] = -799.0
    likely, logs = Masses(row, mask_of(range(8, 2000), 2000)).list_likeliest(2)
    assert likely.tolist() == [8, 70] and logs.tolist() == [-799.0, -799.0]
    row = row.astype(np.float32)
    row[[8, 70]] = -799.3, -799.1
    likely, logs = Masses(row, mask_of(range(8, 2000), 2000)).list_likeliest(2)
    assert likely.tolist() == [8, 70] and logs.tolist() == row[[8, 70]].tolist()


# ---- the fallback ----------------------------------------------------------------------------------------------------


def history(*runs: tuple[str, float]) -> list[Outcome]:
    return [Outcome(kind, log_z, i + fallback_rule.WARM) for i, (kind, log_z) in enumerate(runs)]  # type: ignore[arg-type]


def test_a_twist_that_does_well_stays() -> None:
    steady = history(*[("learned", -5.0 + 0.1 * i) for i in range(12)])
    assert all(choose_kind(steady[:i], False) == "learned" for i in range(12))
    assert all(choose_probe(steady[:i], False) is None for i in range(12))


def test_a_twist_that_dies_or_spreads_is_compared_and_left_if_it_is_worse() -> None:
    dead = history(("learned", -5.0), ("learned", -math.inf))
    assert choose_probe(dead, False) == "flat"
    spread = history(("learned", -5.0), ("learned", -9.0), ("learned", -30.0))
    assert choose_probe(spread, False) == "flat"
    worse = [*spread]
    for log_z in (-4.0, -4.5, -5.5):
        assert choose_probe(worse, False) == "flat", "one good estimate may be chance"
        assert choose_kind(worse, False) == "learned"
        worse.append(Outcome("flat", log_z, 6, counts=False))
    assert has_fallen_back(worse, False) and choose_kind(worse, False) == "flat"
    better = [*spread, Outcome("flat", -40.0, 6, counts=False)]
    assert not has_fallen_back(better, False) and choose_kind(better, False) == "learned"
    assert choose_probe(better, False) is None, "it was compared"


def test_a_difference_within_its_error_is_none() -> None:
    learned = history(*[("learned", log_z) for log_z in (-5.0, -7.0, -5.5, -6.5)])
    within = [*learned, *history(*[("flat", log_z) for log_z in (-5.0, -7.0, -5.2)])]
    assert not has_fallen_back(within, False)
    beyond = [*learned, *history(*[("flat", log_z) for log_z in (-4.0, -5.0, -4.2)])]
    assert has_fallen_back(beyond, False)


def test_the_spread_of_a_cold_table_says_nothing() -> None:
    cold = [Outcome("learned", log_z, i) for i, log_z in enumerate((-60.0, -math.inf, -20.0, -math.inf))]
    assert choose_probe(cold, False) is None
    assert [choose_probe(cold[:i], False) for i in range(4)] == [None, None, "flat", None], (
        "a new table is compared once"
    )


def test_the_learned_twist_is_probed_again() -> None:
    kinds: list[tuple[Kind | None, Kind]] = []
    past: list[Outcome] = []
    for i in range(2 * fallback_rule.RETRY + 1):
        probe = choose_probe(past, True)
        if probe is not None:
            past.append(Outcome(probe, -20.0, 9 + i, counts=False))
        kinds.append((probe, choose_kind(past, True)))
        past.append(Outcome(kinds[-1][1], -5.0, 9 + i))
    rest: list[tuple[Kind | None, Kind]] = [(None, "flat")] * (fallback_rule.RETRY - 1)
    assert kinds == [(None, "flat"), *rest, ("learned", "flat"), *rest, ("learned", "flat")]
    assert has_fallen_back(past, True)
    assert not has_fallen_back([*past, *history(*[("learned", -4.0)] * 4)], True)


# ---- kept tables and files -------------------------------------------------------------------------------------------


def assert_same_table(one: ValueTable, other: ValueTable) -> None:
    for name in ("slots", "logs", "counts", "spreads", "pairs", "pair_logs", "pair_counts"):
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
    with pytest.raises(SourceError, match=r"none\.npz cannot be read: No such file.*\n.*that `save_table` wrote"):
        load_table(case.constraint, tmp_path / "none.npz")
    with pytest.raises(SourceError, match="cannot be read: Is a directory"):
        load_table(case.constraint, tmp_path)
    with pytest.raises(SourceError, match=r"cannot be written: No such file.*\n.*Make its folder first"):
        save_table(case.constraint, tmp_path / "none" / "table.npz")
    with pytest.raises(SourceError, match=r"cannot be written: Is a directory.*\n.*not of a folder"):
        save_table(case.constraint, tmp_path)
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("head", lambda x: x + 1), ("head", lambda x: np.array([*x[:2], 2**62])),
        ("head", lambda x: np.array([*x[:2], -1])), ("logs", lambda x: x + 900), ("logs", lambda x: x[:-1]),
        ("logs", lambda x: np.repeat(x, 99, 1)), ("slots", lambda x: x - 5),
        ("slots", lambda x: x[::-1].copy()), ("slots", lambda x: x + 10**9),
        ("pairs", lambda x: x[::-1].copy()), ("pairs", lambda x: x + 10**9), ("pair_logs", lambda x: x[:-1]),
        ("pair_logs", lambda x: x * np.nan), ("pair_logs", lambda x: x + 900),
        ("counts", lambda x: -1 - x), ("counts", lambda x: x + 1e300), ("spreads", lambda x: x[:-1]),
        ("spreads", lambda x: x * np.nan), ("spreads", lambda x: -1 - x),
        ("pair_counts", lambda x: x + np.inf), ("line", lambda x: x + 5),
        ("line", lambda x: x * 1e200),
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
