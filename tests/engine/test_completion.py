"""The shortest completion: it completes, from wherever; where costs are exact it is the shortest."""

from __future__ import annotations

import json
from collections import deque

import pytest
from hypothesis import assume, given, strategies as st

from constrain import LimitError, Matcher, Style, TokenRefused, UnsatisfiableError, Vocabulary, compile, compile_grammar
from constrain.automata.listed_words import ListedWords
from constrain.engine.shortest_completion import completion_search
from constrain.grammar.nodes import Choice, Grammar, JsonString, Literal, Node, Repeat, Rule, Sequence, Strings
from constrain.program.least_costs import NEVER
from tests import grammar_factory as make

VOCABULARY = Vocabulary.bytes()
MOST_STEPS = 8


def walk_randomly(grammar: Grammar, data: st.DataObject) -> Matcher:
    """A matcher some random bytes into a text."""
    matcher = compile_grammar(grammar, VOCABULARY).matcher()
    for _ in range(data.draw(st.integers(0, MOST_STEPS))):
        allowed = sorted(matcher.next_bytes())
        if not allowed:
            break
        matcher.advance_bytes(bytes([data.draw(st.sampled_from(allowed))]))
    return matcher


def find_shortest_length(matcher: Matcher, most: int) -> int | None:
    """Length of the shortest completion, by breadth first search; None if it is longer than `most`."""
    todo, seen = deque([(matcher, 0)]), {matcher._set}
    while todo:
        current, length = todo.popleft()
        if current.is_complete:
            return length
        for byte in current.next_bytes() if length < most else ():
            after = current.fork()
            after.advance_bytes(bytes([byte]))
            if after._set not in seen:
                seen.add(after._set)
                todo.append((after, length + 1))
    return None


@given(st.one_of(make.rules, make.characters, make.objects), st.data())
def test_shortest_completion_completes_the_text(grammar: Grammar, data: st.DataObject) -> None:
    assume(make.sound(grammar))
    matcher = walk_randomly(grammar, data)
    text = matcher.shortest_completion()
    assert text is not None
    matcher.advance_bytes(text)
    assert matcher.is_complete
    assert matcher.shortest_completion() == b""


@given(st.one_of(make.rules, make.objects), st.data())
def test_completions_do_not_depend_on_earlier_searches(grammar: Grammar, data: st.DataObject) -> None:
    """Searches end where they meet a completion that an earlier one has found; the text is that of a full search."""
    assume(make.sound(grammar))
    matcher, text = compile_grammar(grammar, VOCABULARY).matcher(), b""
    for _ in range(MOST_STEPS):
        known = matcher.shortest_completion()
        other = compile_grammar(grammar, VOCABULARY).matcher()
        other.advance_bytes(text)
        assert known == other.shortest_completion()
        allowed = sorted(matcher.next_bytes())
        if not allowed:
            break
        step = bytes([data.draw(st.sampled_from(allowed))])
        matcher.advance_bytes(step)
        text += step


WORDS = st.lists(st.text('ab"\\\n\x01é\ud7ff😀', max_size=3), min_size=1, max_size=4)


@given(WORDS, st.data())
def test_costs_of_listed_words_are_exact(words: list[str], data: st.DataObject) -> None:
    """Also within an escape, and after characters that must be escaped: the cost is the length of a shortest rest."""
    matcher = compile_grammar(Grammar(JsonString(ListedWords(words)), {}), VOCABULARY).matcher()
    for _ in range(data.draw(st.integers(1, 14))):
        assert completion_search(matcher._state_cache).cost(matcher._set) == find_shortest_length(matcher, 50)
        allowed = sorted(matcher.next_bytes())
        if not allowed:
            break
        # A backslash more often than by chance: escapes are long.
        byte = 92 if 92 in allowed and data.draw(st.booleans()) else data.draw(st.sampled_from(allowed))
        matcher.advance_bytes(bytes([byte]))


KEYS = "abcd"


@st.composite
def small_objects(draw: st.DrawFn) -> dict[str, object]:
    """A schema of an object whose keys may be required, by themselves, by others, or to reach a number of members."""
    values = st.sampled_from([{"const": 0}, {"const": 1000}, {"const": ""}, {"enum": [10, 2]}])
    names = st.lists(st.sampled_from(KEYS), unique=True, max_size=2)
    properties = {key: draw(values) for key in KEYS[: draw(st.integers(1, 4))]}
    schema: dict[str, object] = {"type": "object", "properties": properties, "additionalProperties": False}
    schema["required"] = [key for key in draw(names) if key in properties]
    schema["minProperties"] = draw(st.integers(0, len(properties) + 1))
    if draw(st.booleans()):
        schema["patternProperties"] = {"^[xy]?$": draw(values)}
    if draw(st.booleans()):
        schema["dependentRequired"] = draw(st.dictionaries(st.sampled_from(KEYS), names, max_size=2))
    return schema


@given(small_objects(), st.sampled_from(["schema", "any"]), st.data())
def test_costs_in_objects_are_exact(schema: dict[str, object], key_order: str, data: st.DataObject) -> None:
    """With undeclared keys they are lower bounds, since these must differ from each other."""
    style = Style(whitespace="compact", key_order=key_order)  # type: ignore[arg-type]
    try:
        matcher = compile(VOCABULARY, schema=schema, style=style).matcher()
    except UnsatisfiableError:
        return
    while not matcher.is_finished:
        search = completion_search(matcher._state_cache)
        cost, shortest = search.cost(matcher._set), find_shortest_length(matcher, 100)
        assert shortest is not None
        assert cost <= shortest if "patternProperties" in schema else cost == shortest
        allowed = sorted(matcher.next_bytes())
        matcher.advance_bytes(bytes([data.draw(st.sampled_from(allowed))]))


def test_a_search_ends_at_a_known_completion() -> None:
    """Kernel calls of a search from within a member are few once the rest of the text is known."""
    properties = {f"key{number}": {"type": "array", "items": {"type": "integer"}} for number in range(30)}
    matcher = compile(
        VOCABULARY, schema={"type": "object", "properties": properties, "required": list(properties)}
    ).matcher()
    whole = matcher.shortest_completion()
    assert whole is not None
    matcher.advance_bytes(b'{"key0": [1')
    search, steps = completion_search(matcher._state_cache), 0
    run = search.state_cache.run

    def count_steps(*arguments: object, **options: object) -> int:
        nonlocal steps
        steps += 1
        return run(*arguments, **options)

    search.state_cache.run = count_steps  # type: ignore[method-assign]
    assert matcher.shortest_completion() == b"]" + whole[len('{"key0":[]') :]
    assert steps < 20 < len(whole)


def test_a_deep_text_is_closed() -> None:
    """The stack of callers is as deep as the text; Python's is not."""
    matcher = compile(VOCABULARY, schema=True).matcher()
    matcher.advance_bytes(b'[{"a":' * 3_000)
    text = matcher.shortest_completion()
    assert text is not None
    assert text[1:] == b"}]" * 3_000


def test_many_keys_are_closed_as_fast_as_they_are_written() -> None:
    """The missing keys of an object are computed once a state, not once a key and byte."""
    properties = {f"k{i}": {"type": "integer"} for i in range(300)}
    matcher = compile(
        VOCABULARY, schema={"properties": properties, "required": list(properties), "type": "object"}
    ).matcher()
    text = matcher.shortest_completion()
    assert text is not None
    assert set(json.loads(text)) == set(properties)


def test_an_object_that_no_shortest_text_needs_is_closed_too() -> None:
    """Its rule is not needed for the least costs of the start, but the costs inside it are still queried."""
    kinds = {
        f"k{i}": {"type": "object", "properties": {"key": {"minimum": i, "type": "integer"}}, "minProperties": 1}
        for i in range(80)
    }
    constraint = compile(VOCABULARY, schema={"type": "object", "properties": kinds})
    for text in (b'{"k79":{"key', b'{"k78":{"new', b'{"k77":{"key":99,"x', b'{"k76":{"'):
        matcher = constraint.matcher()
        matcher.advance_bytes(text)
        rest = matcher.shortest_completion()
        assert rest is not None
        matcher.advance_bytes(rest)
        assert matcher.is_complete


def test_blanks_are_not_a_prefix_of_a_required_part() -> None:
    """The chain must be three links long: the least cost of a link alone is too low a bound before its key."""
    link = {"type": "object", "additionalProperties": False}
    schema = {
        "$defs": {
            "a": {**link, "properties": {"n": {"$ref": "#/$defs/b"}}},
            "b": {**link, "properties": {"n": {"$ref": "#/$defs/c"}}, "minProperties": 1},
            "c": {**link, "properties": {"n": {"$ref": "#/$defs/a"}}, "minProperties": 1},
        },
        "allOf": [{"$ref": "#/$defs/a"}, {"minProperties": 1}, {"not": {"const": {"n": {"n": {"n": {}}}}}}],
    }
    matcher = compile(VOCABULARY, schema=schema).matcher()
    text = matcher.shortest_completion()
    assert text is not None
    assert text == json.dumps(json.loads(text), separators=(",", ":")).encode()
    assert text == b'{"n":' * 6 + b"{}" + b"}" * 6


@given(make.rules, st.data())
def test_completion_is_shortest_for_rules_over_bytes(grammar: Grammar, data: st.DataObject) -> None:
    assume(make.sound(grammar))
    matcher = walk_randomly(grammar, data)
    text = matcher.shortest_completion()
    assert text is not None
    least = find_shortest_length(matcher, 6)
    if least is not None:
        assert len(text) == least
        assert matcher.shortest_completion(limit=least) == text
        assert least == 0 or matcher.shortest_completion(limit=least - 1) is None


counted = st.recursive(
    st.sampled_from([Literal(b"a"), Literal(b"b"), Literal(b""), Strings((b"", b"ab")), Strings((b"a", b"bb"))]),
    lambda inner: st.one_of(
        make.repeats(inner),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: Sequence(tuple(parts))),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: Choice(tuple(parts))),
    ),
    max_leaves=5,
)


@given(counted, st.integers(0, 2), st.data())
def test_completion_is_shortest_inside_nested_counts(node: Node, low: int, data: st.DataObject) -> None:
    """Counts inside counts, inside loops, of nothing, and of what may be nothing: from every prefix."""
    for outer in (
        node,
        Repeat(node, low),
        Repeat(node, 0, 0),
        Sequence((node, Repeat(node, 1, low + 1), Literal(b";"))),
    ):
        matcher = walk_randomly(Grammar(outer, {}), data)
        text = matcher.shortest_completion()
        assert text is not None
        least = find_shortest_length(matcher, 8)
        assert least is None or len(text) == least
        matcher.advance_bytes(text)
        assert matcher.is_complete


@pytest.mark.parametrize("style", [Style(), Style.any()])
@pytest.mark.parametrize("items", [{}, {"type": "integer"}, {"type": "boolean"}, {"enum": [1, 1.0, "1", [1]]}])
@pytest.mark.parametrize("begun", [b"", b"[", b"[ ", b"[1", b"[1,", b"[1,1", b"[true", b'["1"', b"[[1"])
def test_members_that_differ_are_short(style: Style, items: dict[str, object], begun: bytes) -> None:
    """A member that must differ from earlier ones costs a few bytes more than one that need not."""
    schema = {"type": "array", "uniqueItems": True, "minItems": 2, "items": items}
    matcher = compile(VOCABULARY, schema=schema, style=style).matcher()
    free = compile(VOCABULARY, schema={**schema, "uniqueItems": False}, style=style).matcher()
    try:
        matcher.advance_bytes(begun)
    except TokenRefused:
        return
    free.advance_bytes(begun)
    text, least = matcher.shortest_completion(), free.shortest_completion()
    assert text is not None
    assert least is not None
    assert len(text) <= len(least) + 2 + 5 * (items == {"type": "boolean"})
    values = json.loads(begun + text)
    assert len({(type(value) is bool, json.dumps(value)) for value in values}) == len(values)


def test_a_completion_beyond_the_budget_is_refused() -> None:
    matcher = compile(VOCABULARY, schema={"type": "string", "minLength": 10**9}).matcher()
    with pytest.raises(LimitError, match=r"Limits\.work"):
        matcher.shortest_completion()
    assert matcher.shortest_completion(100) is None
    with pytest.raises(LimitError) as second:
        matcher.shortest_completion()
    search = completion_search(matcher._state_cache)
    kept = search._refused[matcher._set, None]
    assert kept.__traceback__ is None, "it would hold whatever its callers work on"
    assert (str(kept), kept.is_of_source) == (str(second.value), True)


@given(make.rules, st.data())
def test_costs_are_the_shortest_texts_of_rules(grammar: Grammar, data: st.DataObject) -> None:
    """Against Bellman and Ford over the nodes."""
    assume(make.sound(grammar))
    least = dict.fromkeys(grammar.rules, NEVER)

    def cost(node: Node) -> int:
        match node:
            case Literal(text):
                return len(text)
            case Strings(options):
                return min(map(len, options))
            case Sequence(parts):
                return min(NEVER, sum(map(cost, parts)))
            case Choice(options):
                return min(map(cost, options))
            case Repeat(inner, low, _):
                return min(NEVER, low * cost(inner)) if low else 0
            case Rule(name):
                return least[name]
        raise AssertionError(node)

    while (better := {name: cost(body) for name, body in grammar.rules.items()}) != least:
        least = better
    program = compile_grammar(grammar, VOCABULARY).program
    costs = program.costs()
    for name in data.draw(st.permutations(list(grammar.rules))):
        cell = program.cell(Rule(name))
        costs.ensure(cell)
        assert costs.least[cell] == least[name]
