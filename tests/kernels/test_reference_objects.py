"""The oracle's objects, against Python's JSON reader and the plain wording of each rule."""

from __future__ import annotations

import json
from itertools import permutations, product
from typing import Any

from hypothesis import given, strategies as st

from constrain.automata.dfa import Dfa
from constrain.grammar.nodes import EMPTY, Choice, Grammar, Layout, Literal, NameClass, Object, Property, Repeat, Rule
from tests.grammar_oracle import Reference
from tests.recogniser_oracle import accepts

TIGHT = Layout(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY)
LOOSE = Layout(*(Repeat(Literal(b" "), 0, 1),) * 2, Literal(b", "), Literal(b": "), EMPTY)
DIGIT = Choice((Literal(b"1"), Literal(b"2")))
DECLARED = ("a", "b", 'é"')
OTHERS = {"finite": Dfa.from_strings(["x", "y"]), "wide": Dfa.from_ranges([(ord("p"), ord("z"))]).repeat(1)}

objects = st.builds(
    lambda props, others, low, more, order: Object(
        tuple(props), tuple(NameClass(OTHERS[name], DIGIT) for name in others), TIGHT, low, more, order
    ),
    st.permutations(DECLARED).flatmap(
        lambda names: st.tuples(
            *(
                st.builds(
                    lambda name, required, needs: Property(name, DIGIT, required, frozenset(needs)),
                    st.just(name),
                    st.booleans(),
                    st.sets(st.sampled_from(DECLARED), max_size=1),
                )
                for name in names[:2]
            )
        )
    ),
    st.lists(st.sampled_from(sorted(OTHERS)), max_size=1),
    st.integers(0, 3),
    st.one_of(st.none(), st.integers(0, 4)),
    st.sampled_from(["schema", "any"]),
)


def satisfies(node: Object, members: list[tuple[str, Any]]) -> bool:
    """The rules of an Object, one after the other, in words."""
    names = [name for name, _ in members]
    declared = [prop.name for prop in node.properties]
    extra = [name for name in names if name not in declared]
    ranks = [declared.index(name) if name in declared else len(declared) for name in names]
    return (
        len(set(names)) == len(names)
        and all(any(other.names.accepts(name) for other in node.others) for name in extra)
        and all(prop.name in names for prop in node.properties if prop.required)
        and all(prop.needs <= set(names) for prop in node.properties if prop.name in names)
        and node.low <= len(names)
        and (node.high is None or len(names) <= node.high)
        and (node.order == "any" or ranks == sorted(ranks))
        and all(value in (1, 2) for _, value in members)
    )


def written(members: tuple[tuple[str, int], ...]) -> bytes:
    return ("{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{v}" for k, v in members) + "}").encode()


NAMES = (*DECLARED, "x", "y", "zz", "no")


@given(objects, st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 3)), max_size=4))
def test_an_object_is_accepted_if_it_satisfies_the_rules(node: Object, members: list[tuple[str, int]]) -> None:
    oracle = Reference(Grammar(node, {}))
    assert oracle.accepts(written(tuple(members))) == satisfies(node, members)


@given(objects)
def test_viable_is_that_some_object_starts_so(node: Object) -> None:
    """Against all objects of distinct names: nothing else is worth trying, as `high` is at most 4."""
    oracle = Reference(Grammar(node, {}))
    names = [*(prop.name for prop in node.properties), *(["x", "y", "zz"] if node.others else [])]
    texts = {
        written(members)
        for length in range(len(names) + 1)
        for chosen in permutations(names, length)
        if satisfies(node, members := tuple((name, 1) for name in chosen))  # type: ignore[arg-type]
    }
    heads = {text[:end] for text in texts for end in range(len(text) + 1)}
    assert oracle.viable(b"") == bool(texts)
    assert all(oracle.viable(head) for head in heads)
    for head, tail in product(
        sorted(heads)[:40], (b'"a', b'"b"', b'"x', b'"y"', b'"', b"}", b",", b'a"', b"1}", b'"n')
    ):
        if not oracle.viable(head + tail):
            assert head + tail not in heads
        elif (head + tail).isascii() and not node.others:
            assert head + tail in heads or b"2" in tail, (head, tail)


def test_keys_may_be_escaped_where_the_style_says_so() -> None:
    props = (Property("a", DIGIT), Property('"', DIGIT))
    other = (NameClass(Dfa.from_strings(["b"]), DIGIT),)
    plain = Reference(Grammar(Object(props, other, TIGHT), {}))
    loose = Reference(Grammar(Object(props, other, TIGHT, escapes="any"), {}))
    escaped = rb'{"\u0061":1}'
    assert plain.accepts(b'{"a":1}') and loose.accepts(b'{"a":1}')
    assert not plain.viable(escaped[:5]) or not plain.viable(escaped)
    assert loose.accepts(escaped) and not plain.accepts(escaped)
    assert plain.accepts(rb'{"\"":1}') and not plain.accepts(rb'{"\u0022":1}') and loose.accepts(rb'{"\u0022":1}')
    assert plain.accepts(rb'{"\u0062":1}'), "an undeclared key may always be escaped"
    assert not loose.accepts(rb'{"a":1,"\u0061":1}') and not plain.accepts(rb'{"b":1,"\u0062":1}')


def test_a_finite_class_of_names_runs_out() -> None:
    names = (NameClass(OTHERS["finite"], DIGIT),)
    assert not Reference(Grammar(Object((), names, TIGHT, 3), {})).viable(b"")
    two = Reference(Grammar(Object((), names, TIGHT, 2), {}))
    assert two.viable(b'{"x":1,"') and not two.viable(b'{"x":1,"x') and not two.viable(b'{"x":1}')
    three = Reference(Grammar(Object((Property("a", DIGIT),), names, TIGHT, 3, order="any"), {}))
    assert three.viable(b'{"x":1,"a":1,"y') and not three.viable(b'{"x":1,"a":1,"x')


def test_white_space_recursion_and_values_that_cannot_be() -> None:
    tree = Object((Property("t", Rule("tree")),), (), LOOSE)
    oracle = Reference(Grammar(Rule("tree"), {"tree": tree}))
    assert oracle.accepts(b"{}") and oracle.accepts(b'{"t": { "t": {}} }') and not oracle.viable(b'{"t":{')
    endless = Object((Property("t", Rule("tree"), required=True),), (), LOOSE)
    assert not Reference(Grammar(Rule("tree"), {"tree": endless})).viable(b"")
    never = Object((Property("t", Choice(())),), (), TIGHT)
    assert Reference(Grammar(never, {})).viable(b"{}") and not Reference(Grammar(never, {})).viable(b'{"')


LETTERS = {text: Dfa.from_strings(list(text)) for text in ("xy", "yz", "xyz", "z")}
classes = st.lists(
    st.builds(
        NameClass, st.sampled_from([*LETTERS.values(), OTHERS["wide"]]),
        st.sampled_from([Literal(b"1"), Literal(b"2"), DIGIT]), st.booleans(),
    ),
    min_size=1, max_size=3,
)  # fmt: skip
MEMBERS = st.lists(
    st.tuples(st.sampled_from(["a", "x", "y", "z"]), st.integers(1, 2)), max_size=4, unique_by=lambda m: m[0]
)


def assigned(node: Object, members: list[tuple[str, int]]) -> bool:
    """Whether the undeclared members can be shared out among the classes so that each required one has a member."""
    fits = [
        [i for i, other in enumerate(node.others) if other.names.accepts(name) and allows(other.value, value)]
        for name, value in members
        if name != "a"
    ]
    wanted = {i for i, other in enumerate(node.others) if other.required}
    return any(wanted <= set(choice) for choice in product(*fits))


def allows(value: Any, digit: int) -> bool:
    return value is DIGIT or value == Literal(str(digit).encode())


@given(classes, st.integers(0, 2), st.one_of(st.none(), st.integers(0, 3)), st.sampled_from(["schema", "any"]), MEMBERS)
def test_required_classes_have_a_member_each(
    others: list[NameClass], low: int, high: int | None, order: Any, members: list[tuple[str, int]]
) -> None:
    node = Object((Property("a", DIGIT),), tuple(others), TIGHT, low, high, order, excluded=("zz",))
    text, grammar = written(tuple(members)), Grammar(node, {})
    right = assigned(node, members) and low <= len(members) and (high is None or len(members) <= high)
    right = right and (order == "any" or all(name != "a" for name, _ in members[1:]))
    oracle = Reference(grammar)
    assert oracle.accepts(text) == accepts(grammar, text) == right
    assert not right or all(oracle.viable(text[:end]) for end in range(len(text)))


def test_a_key_that_a_required_class_cannot_do_without() -> None:
    first, second = NameClass(LETTERS["xy"], DIGIT, required=True), NameClass(LETTERS["z"], DIGIT, required=True)
    oracle = Reference(Grammar(Object((Property("a", DIGIT),), (first, second), TIGHT, 0, 2), {}))
    assert not oracle.viable(b'{"a') and oracle.viable(b'{"x":1,"z') and not oracle.viable(b'{"x":1,"y')
    assert not oracle.viable(b'{"x":1}') and oracle.accepts(b'{"z":2,"y":1}')
