"""Forms as sets of texts: the operators, operands without any text included, and forms that are nested deep."""

from __future__ import annotations

import copy
import pickle
from itertools import product

import pytest
from hypothesis import assume, given, strategies as st

from constrain import (
    LimitError,
    UnsatisfiableError,
    UnsupportedError,
    Vocabulary,
    compile,
    gbnf,
    json_schema,
    lark,
    literal,
    regex,
)
from constrain.base.options import Limits
from constrain.forms import Form, read_form
from tests.text_acceptance import accepts_text

VOCABULARY = Vocabulary.bytes()
MOST = 4
TEXTS = frozenset("".join(one) for n in range(MOST + 1) for one in product("ab", repeat=n))

Language = tuple[Form, frozenset[str]]
"""A form, and its texts among TEXTS."""

LEAVES: list[Language] = [
    (literal(""), frozenset({""})),
    (literal("a"), frozenset({"a"})),
    (literal("ba"), frozenset({"ba"})),
    (regex("a*b?"), frozenset(t for t in TEXTS if t.rstrip("b").strip("a") == "" and t.count("b") <= 1)),
    (gbnf('root ::= "a" root | "b"'), frozenset({"b", "ab", "aab", "aaab"})),
    (gbnf('root ::= "a" root "b" | ""'), frozenset({"", "ab", "aabb"})),
    (gbnf("root ::= root"), frozenset()),
    (gbnf('root ::= "a" root'), frozenset()),
    (regex("a(?!)"), frozenset()),
    (json_schema(False), frozenset()),
    (json_schema(True), frozenset()),
]


def joined(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    return frozenset(a + b for a in one for b in other if len(a + b) <= MOST)


def repeated(one: frozenset[str], low: int, high: int | None) -> frozenset[str]:
    found, power = frozenset[str](), frozenset({""})
    for count in range(low + MOST + 2 if high is None else high + 1):
        if count >= low:
            found |= power
        power = joined(power, one)
    return found


def combined(inner: st.SearchStrategy[Language]) -> st.SearchStrategy[Language]:
    pairs = st.tuples(inner, inner)
    counts = st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 2)))
    return st.one_of(
        pairs.map(lambda p: (p[0][0] + p[1][0], joined(p[0][1], p[1][1]))),
        pairs.map(lambda p: (p[0][0] | p[1][0], p[0][1] | p[1][1])),
        pairs.map(lambda p: (p[0][0] & p[1][0], p[0][1] & p[1][1])),
        inner.map(lambda one: (~one[0], TEXTS - one[1])),
        st.tuples(inner, counts).map(
            lambda p: (
                p[0][0].repeat(p[1][0], None if p[1][1] is None else sum(p[1])),
                repeated(p[0][1], p[1][0], None if p[1][1] is None else sum(p[1])),
            )
        ),
    )


languages = st.recursive(st.sampled_from(LEAVES), combined, max_leaves=5)


@given(languages)
def test_operators_mean_what_they_mean_of_sets(language: Language) -> None:
    form, texts = language
    try:
        constraint = compile(VOCABULARY, form)
    except UnsatisfiableError:
        assert not texts
        return
    except UnsupportedError:
        assume(False)
    assert {text for text in TEXTS if accepts_text(constraint, text)} == texts
    assert pickle.loads(pickle.dumps(form)) == copy.deepcopy(form) == read_form(form.plain()) == form


EMPTY = [
    gbnf("root ::= root"),
    regex("a(?!)"),
    json_schema({"type": "string", "minLength": 2, "maxLength": 1}),
    literal("a") & "b",
    ~(regex("(?s).*")),
    lark('start: "a" start'),
]


@pytest.mark.parametrize("empty", EMPTY)
def test_an_empty_operand(empty: Form) -> None:
    """A form is refused only if it has no text."""
    for whole in (empty, empty + "x", "x" + empty, empty & "x", empty.repeat(1), empty.quoted(), empty | empty):
        with pytest.raises(UnsatisfiableError):
            compile(VOCABULARY, whole)
    assert accepts_text(compile(VOCABULARY, ~empty), "any text")
    assert accepts_text(compile(VOCABULARY, empty | "x"), "x")
    assert accepts_text(compile(VOCABULARY, empty.repeat() + "x"), "x")
    assert accepts_text(compile(VOCABULARY, literal("x") & ~empty), "x")


def nested(kind: str, depth: int) -> Form:
    form = literal("a")
    for k in range(depth):
        if kind == "repeat":
            form = form.repeat(k % 2, 1)
        elif kind == "not":
            form = ~form
        elif kind == "mixed":
            form = ("(" + form + ")") | "b"
        else:
            form = form.quoted()
    return form


def in_a_deep_caller(calls: int, form: Form) -> bool:
    """Whether a form takes a text, be the caller as deep as that."""
    if calls:
        return in_a_deep_caller(calls - 1, form)
    form = read_form(form.plain())
    hash(form)
    return compile(VOCABULARY, form).matcher().shortest_completion() is not None


@pytest.mark.parametrize("kind", ["repeat", "not", "mixed"])
def test_forms_are_nested_as_deep_as_the_limit(kind: str) -> None:
    most = Limits().nesting
    assert in_a_deep_caller(350, nested(kind, most // (2 if kind == "mixed" else 1) - 2))
    with pytest.raises(LimitError, match=r"Limits\.nesting"):
        nested(kind, 1_000)


def test_forms_side_by_side_are_no_nesting() -> None:
    form = literal("a")
    for _ in range(3_000):
        form += "b"
    assert accepts_text(compile(VOCABULARY, form), "a" + "b" * 3_000)
