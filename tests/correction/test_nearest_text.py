"""The nearest text against brute force: every text of a small language, and its Levenshtein distance."""

from __future__ import annotations

import json
import random
import re
from itertools import product

import pytest
from hypothesis import assume, given, settings, strategies as st

import constrain
from constrain.base.errors import LimitError
from constrain.base.work import work_budget
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.correction.alignment import EDIT
from constrain.correction.character_graph import CharacterGraph
from constrain.correction.edit_beam import search_beam
from constrain.correction.edits import count_edits, list_edits
from constrain.correction.nearest_text import search_nearest
from constrain.correction.text_repair import repair_text
from constrain.grammar.nodes import Grammar
from constrain.vocabulary.vocabulary import Vocabulary
from tests import grammar_factory as make
from tests.grammar_oracle import Reference

BYTES = Vocabulary.bytes()


def apply_edits(text: str, edits: tuple[object, ...]) -> str:
    """The text after its edits, from the last to the first."""
    for edit in reversed(edits):
        end = edit.position + len(edit.removed)  # type: ignore[attr-defined]
        assert text[edit.position : end] == edit.removed  # type: ignore[attr-defined]
        text = text[: edit.position] + edit.inserted + text[end:]  # type: ignore[attr-defined]
    return text


def slow_distance(old: str, new: str) -> int:
    """Levenshtein's distance by its recursive definition."""
    if not old or not new:
        return len(old) + len(new)
    return min(
        slow_distance(old[1:], new[1:]) + (old[0] != new[0]),
        slow_distance(old[1:], new) + 1,
        slow_distance(old, new[1:]) + 1,
    )


@given(st.text("ab", max_size=4), st.text("abc", max_size=4))
def test_edits_are_counted(old: str, new: str) -> None:
    assert count_edits(old, new) == slow_distance(old, new)


def check_nearest(text: str, language: list[str], constraint: constrain.Constraint, longest: int) -> None:
    """Compare `repair_text` with the texts of the language of at most `longest` characters."""
    least = min(count_edits(text, one) for one in language)
    assume(len(text) + least <= longest)  # else a longer text could be nearer
    found = repair_text(text, constraint)
    assert found.text in language
    assert (found.distance, found.at_least) == (least, least)
    assert apply_edits(text, found.edits) == found.text
    assert count_edits(text, found.text) == least


WORDS = ["".join(word) for size in range(8) for word in product("ab", repeat=size)]


@pytest.mark.parametrize("pattern", ["(ab)*", "a{2,3}b?", "(a|bb)+a", "a*b{3}a*", "(?=.*bb)[ab]{3,6}", "b(ab|ba)*b"])
@settings(deadline=None, max_examples=25)
@given(text=st.text("abc", max_size=5))
def test_regexes(pattern: str, text: str) -> None:
    language = [word for word in WORDS if re.fullmatch(pattern, word)]
    check_nearest(text, language, constrain.compile(BYTES, regex=pattern), 7)


@settings(deadline=None, max_examples=35)
@given(data=st.data())
def test_grammars_with_recursion(data: st.DataObject) -> None:
    grammar: Grammar = data.draw(make.rules.filter(make.sound), label="grammar")
    oracle = Reference(grammar)
    letters = sorted({chr(byte) for byte in oracle.next_bytes(b"")} | {"a", "b"})[:3]
    words = ["".join(word) for size in range(6) for word in product(letters, repeat=size)]
    language = [word for word in words if oracle.accepts(word.encode())]
    assume(language)
    text = data.draw(st.text("".join(letters) + "z", max_size=3), label="text")
    constraint = compile_grammar(grammar, BYTES)
    found = repair_text(text, constraint)
    assert oracle.accepts(found.text.encode())
    assert found.is_nearest
    assert found.distance == count_edits(text, found.text) <= min(count_edits(text, one) for one in language)


ENUM = [{"a": 1}, {"b": [1, 2]}, {"a": 1, "b": []}, [], [{"a": "é"}], "x", 12, None]


@settings(deadline=None, max_examples=35)
@given(text=st.text('ab{}[]":,12é ', max_size=12))
def test_values_of_an_enum(text: str) -> None:
    """Every text of the language is known, whatever its length."""
    constraint = constrain.compile(BYTES, schema={"enum": ENUM})
    found = repair_text(text, constraint)
    assert json.loads(found.text) in ENUM
    assert found.is_nearest
    spelled = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in ENUM]
    assert found.distance <= min(count_edits(text, one) for one in spelled)


@settings(deadline=None, max_examples=25)
@given(text=st.text("ab(){}", max_size=8))
def test_the_beam_is_an_upper_bound_and_the_budget_a_lower_one(text: str) -> None:
    grammar = constrain.gbnf('root ::= "(" root ")" | "{" root "}" | [ab]*')
    graph = CharacterGraph(constrain.compile(BYTES, grammar))
    near = search_beam(graph, text, width=2)
    exact = search_nearest(graph, text, 10**6, near.cost)
    distance = (exact.found or near).distance
    assert exact.at_least == distance <= near.distance
    assert count_edits(text, near.text) <= near.distance
    for most in (0, 1, 5, 25):
        assert search_nearest(graph, text, most, near.cost).at_least <= distance


def test_kinds_of_edits_decide_between_equal_numbers() -> None:
    """A missing member is inserted rather than written over another one, and quotation marks are exchanged."""
    schema = {
        "type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"], "additionalProperties": False,
    }  # fmt: skip
    constraint = constrain.compile(BYTES, schema=schema, style=constrain.Style.any())
    assert repair_text('{"name": "Bob"}', constraint).text == '{"name": "Bob","age":0}'
    assert repair_text("{'name': 'Bob', 'age': 4}", constraint).text == '{"name": "Bob", "age": 4}'
    assert repair_text('{"name": "Bob", "age": "4"}', constraint).text == '{"name": "Bob", "age": 4}'


def test_edits_of_an_alignment_are_merged() -> None:
    steps = [("a", "a"), ("b", ""), ("", "x"), ("c", "c"), ("", "y")]
    assert [str(edit) for edit in list_edits(steps)] == ["replace 'b' by 'x' at 1", "insert 'y' at 3"]
    assert EDIT > 1000


LANGUAGE = {"schema": {}, "style": constrain.Style.any()}


@settings(max_examples=5, deadline=None)
@given(
    st.integers(1, 15), st.lists(st.tuples(st.integers(0, 1 << 20), st.sampled_from("dxr"), st.sampled_from('",:}0a')))
)
def test_long_texts_with_few_errors_are_repaired_near_them(size: int, errors: list[tuple[int, str, str]]) -> None:
    """The beam works around the errors only; the edits made are an upper bound of what it may need, but for few."""
    text = json.dumps([{"name": f"n{i}", "age": i, "tags": ["a", "b"]} for i in range(size)])
    broken = text
    for place, kind, character in errors[:1]:
        at = place % len(broken)
        broken = broken[:at] + {"d": "", "x": character + broken[at], "r": character}[kind] + broken[at + 1 :]
    constraint = constrain.compile(BYTES, **LANGUAGE)
    found = repair_text(broken, constraint, most_nodes=200)
    json.loads(found.text)
    assert found.distance == count_edits(broken, found.text) or found.distance >= found.at_least
    assert found.at_least <= len(errors[:1])
    assert found.distance <= 8 * len(errors[:1])


PAIRS: dict[str, dict[str, str]] = {
    "start": {**dict.fromkeys("ab", "name")}, "name": {**dict.fromkeys("ab", "name"), "=": "equals"},
    "equals": {**dict.fromkeys("01", "number")}, "number": {**dict.fromkeys("01", "number"), ";": "start"},
}  # fmt: skip
"""An automaton of ([ab]+=[01]+;)*, by state and character. It starts and ends in "start"."""


def slow_automaton_distance(text: str) -> int:
    """The least number of edits from a text to one that PAIRS accepts, position by position (Wagner 1974)."""
    states = list(PAIRS)
    costs = {state: 0 if state == "start" else len(text) + 9 for state in states}

    def insert(costs: dict[str, int]) -> dict[str, int]:
        for _ in states:  # no insertion of more characters than there are states saves anything
            for state in states:
                for after in PAIRS[state].values():
                    costs[after] = min(costs[after], costs[state] + 1)
        return costs

    costs = insert(costs)
    for old in text:
        following = {state: cost + 1 for state, cost in costs.items()}
        for state in states:
            for new, after in PAIRS[state].items():
                following[after] = min(following[after], costs[state] + (new != old))
        costs = insert(following)
    return costs["start"]


@settings(deadline=None, max_examples=30)
@given(
    pairs=st.lists(st.from_regex(r"[ab]{1,4}=[01]{1,4};", fullmatch=True), min_size=10, max_size=40),
    errors=st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from(["", "a", "1", "=", ";", "x"]), st.booleans()), max_size=6
    ),
)
def test_long_texts_against_an_automaton(pairs: list[str], errors: list[tuple[int, str, bool]]) -> None:
    text = "".join(pairs)
    for place, character, is_inserted in errors:
        at = place % len(text)
        text = text[:at] + character + text[at + (not is_inserted) :]
    found = repair_text(text, constrain.compile(BYTES, regex="([ab]+=[01]+;)*"))
    assert (found.distance, found.at_least) == (slow_automaton_distance(text),) * 2
    assert apply_edits(text, found.edits) == found.text


def mangle_text(text: str, errors: int, rng: random.Random) -> str:
    """A text in which characters were deleted, inserted and replaced."""
    for _ in range(errors):
        at, kind, character = rng.randrange(len(text)), rng.randrange(3), rng.choice('",:{}[]0a ')
        text = text[:at] + ["", character + text[at], character][kind] + text[at + 1 :]
    return text


@pytest.mark.parametrize("schema", [{}, {"items": {"properties": {"name": {"type": "string"}}, "required": ["name"]}}])
@pytest.mark.parametrize("seed", range(4))
def test_texts_of_5000_characters_take_no_more_edits_than_were_made(schema: dict[str, object], seed: int) -> None:
    rng = random.Random(seed)
    items = [{"name": f"n{i}", "age": rng.randrange(99), "tags": ["a", "b"], "in": {"x": 0.5}} for i in range(75)]
    broken = mangle_text(json.dumps(items), 5, rng)
    assert len(broken) > 4_900
    found = repair_text(broken, constrain.compile(BYTES, schema=schema, style=constrain.Style.any()), most_nodes=2_000)
    json.loads(found.text)
    assert found.distance <= 5
    assert apply_edits(broken, found.edits) == found.text


def test_misspelt_keys_are_found_where_they_are_missing() -> None:
    """They are valid keys of their own; that they are not the required ones shows at the end of the object."""
    names = ["sample_name", "sample_project"]
    schema = {"type": "object", "required": names, "properties": {key: {"type": "string"} for key in names}}
    constraint = constrain.compile(BYTES, schema=schema, style=constrain.Style.any())
    filler = "".join(f'"k{i}": {i}, ' for i in range(100))
    text = '{"sanple_name": "a", ' + filler + '"sample_roject": "b", ' + filler.replace("k", "l") + '"z": 0}'
    found = repair_text(text, constraint, most_nodes=100)
    assert found.text == text.replace("sanple", "sample").replace("roject", "project")
    assert found.distance == 2
    found = repair_text('{"sample_name": "a", "z": 0}', constraint, most_nodes=100)
    assert json.loads(found.text)["sample_project"] == ""
    assert found.distance == len(',"sample_project":""')


def test_an_object_key_may_continue_in_more_ways_than_are_followed() -> None:
    """No key may occur twice, so that each character of a key leads to a state of its own."""
    graph = CharacterGraph(constrain.compile(BYTES, **LANGUAGE))
    state = graph.follow(0, "{")
    assert state is not None
    key = graph.follow(state, '"')
    assert key is not None
    assert len(graph.list_alternatives(key)) < 20
    assert graph.is_partial(key)
    assert not graph.is_partial(0)
    found = repair_text('{"a": 1, "a": 2}', constrain.compile(BYTES, **LANGUAGE))
    assert len(json.loads(found.text)) == 2
    assert (found.distance, found.at_least) == (1, 1)


def test_work_is_limited() -> None:
    constraint = constrain.compile(BYTES, regex="b*")
    with pytest.raises(LimitError, match=r"repair of a text.*Limits.work = 10,000"):
        repair_text("a" * 100_000, constraint, work=10_000)
    assert repair_text("b" * 100_000, constraint, work=1).distance == 0, "a valid text takes no work"
    schema = constrain.compile(BYTES, **LANGUAGE)
    found = repair_text("[1, 2, {3: 4" * 12, schema, work=4_000_000)
    json.loads(found.text)
    assert (found.distance, found.at_least) == (2, 2), "a string of it"


def test_states_are_charged_by_the_length_of_their_texts() -> None:
    """Each has a Matcher that holds its text: many states of long texts are the square of the length in memory."""
    counts = []
    for work in (200_000, 3_200_000):
        graph = CharacterGraph(constrain.compile(BYTES, schema={}))
        state: int | None = 0
        with pytest.raises(LimitError, match="The repair of a text"), work_budget(work):
            while state is not None:
                state = graph.follow(state, "[")
        counts.append(len(graph))
    assert counts[0] > 1_000 and counts[1] < 8 * counts[0]  # not 16
